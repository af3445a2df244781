//! Sparse containers over the address space of a whole drive: memory goes with what was touched, never with capacity.
//!
//! - [`BlockSet`]: a set of 512-byte blocks.
//! - [`UnitMap`]: a 32-bit tag for each 4 KiB unit.
//! - [`Gather`]: puts changes off and makes them in an order that suits the processor's caches.
//!
//! The first two share one tree of 128 MiB regions. A region is one value throughout, a short sorted array (of
//! runs in a set, of units in a map), or 32 leaves of 4 MiB, each of which is again one value, a sorted array or a plain
//! array. Bounds, tested at 10 M
//! units: at most 16 bytes for each touched 4 KiB unit where they are scattered, 2 (set) or 5 (map) where they are
//! dense, and in addition 192 bytes for each GiB in the neighbourhood of which anything was touched.
//!
//! Everything is deterministic and ordered by address; ranges are half open. Blocks and units are plain `u64` so that
//! one container serves host addresses ([`Lba::span`](smrlab_units::Lba::span)) and media addresses alike.

mod entries;
mod gather;
mod node;
mod payload;
mod prefetch;
mod search;
mod set;
mod tree;
mod unit_map;

pub use gather::Gather;
pub use prefetch::{Hints, prefetch};
pub use set::{BlockSet, Look};
pub use unit_map::UnitMap;

/// Blocks of 512 bytes in a unit of 4 KiB.
pub const UNIT_BLOCKS: u64 = 8;
