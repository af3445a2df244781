//! The layers, one file each.

pub mod caveat_scriptor;
pub mod cmr;
pub mod disk_cache;
pub mod e_region;
pub mod floating;
pub mod log;
pub mod persistent_cache;
pub mod raw;
pub mod rmw;
pub mod s_block;
pub mod segment;
pub mod smart;
pub mod static_map;
pub mod steady_log;
pub mod virtual_guard;
pub mod zoned;

#[cfg(test)]
pub(crate) mod test_medium;
