//! The layouts, one file each.

pub mod dedicated;
mod disks;
pub mod dvs;
pub mod mapped;
mod places;
pub mod raid5;
mod rebuild;
pub mod single;
pub mod spanning;
pub mod striped;
