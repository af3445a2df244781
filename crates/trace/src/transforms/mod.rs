//! Sources made of other sources, one file each.

mod sort;
mod start;

pub use sort::SortWindow;
pub use start::Started;
