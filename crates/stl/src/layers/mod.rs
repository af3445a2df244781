//! The layers, one file each.

pub mod cmr;
pub mod raw;
pub mod rmw;
