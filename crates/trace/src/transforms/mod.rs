//! Sources made of other sources, one file each.

/// Passes names, counts and progress through from the field `inner`.
macro_rules! pass_through {
    () => {
        fn device_name(&self, device: u32) -> String {
            self.inner.device_name(device)
        }
        fn skipped(&self) -> u64 {
            self.inner.skipped()
        }
        fn progress(&self) -> Option<f64> {
            self.inner.progress()
        }
    };
}

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
