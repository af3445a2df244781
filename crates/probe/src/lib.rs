//! Drives seen from outside: their geometry, and what kind of shingled drive they are.
//!
//! Everything is concluded from when requests complete: a pure algorithm over a [`TimedTarget`]. The same code reads a
//! simulated drive on a virtual clock, a served device and a disk.

mod dial;
mod error;
#[cfg(test)]
mod fakes;
pub mod fit;
pub mod geometry;
pub mod identify;
mod mirrored;
mod noise;
pub mod open;
mod sim;
mod stats;
mod target;
mod watch;

pub use dial::{Dial, Quality};
pub use error::{Kind, ProbeError, Result};
pub use mirrored::Mirrored;
pub use noise::Noisy;
pub use sim::SimTarget;
pub use target::{TargetError, TimedTarget, Timing, zone_with_room};
pub use watch::{Quiet, Watch};
