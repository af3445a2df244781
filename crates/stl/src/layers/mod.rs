//! The layers, one file each.

pub mod cmr;
pub mod raw;
pub mod rmw;
pub mod static_map;
