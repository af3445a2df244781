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

mod clip;
mod concat;
mod digest;
mod interleave;
mod limit;
mod merge;
mod offset;
mod prefill;
mod scale;
mod select;
mod sort;
mod start;
mod window;
mod wrap;

pub use clip::Clip;
pub use concat::{Concat, DeviceExtents};
pub use digest::Digested;
pub use interleave::Interleave;
pub use limit::Limit;
pub use merge::Merge;
pub use offset::Offset;
pub use prefill::{Order, Prefill};
pub use scale::Scale;
pub use select::Select;
pub use sort::SortWindow;
pub use start::Started;
pub use window::Window;
pub use wrap::Wrap;
