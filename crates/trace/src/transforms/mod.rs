//! Sources made of other sources, one file each.

mod chain;
mod concat;
mod interleave;
mod merge;
mod offset;
mod peeked;
mod sort;
mod start;

pub use chain::Chain;
pub use concat::{Concat, DeviceExtents};
pub use interleave::Interleave;
pub use merge::Merge;
pub use offset::Offset;
pub use peeked::Peeked;
pub use sort::SortWindow;
pub use start::{Origin, Started};
