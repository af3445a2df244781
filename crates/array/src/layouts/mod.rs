//! The layouts, one file each.

pub mod dedicated;
pub mod dvs;
pub mod mapped;
pub mod raid5;
pub mod single;
pub mod spanning;
pub mod striped;
