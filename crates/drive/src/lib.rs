//! The drive at work: a translation layer and the mechanics that carry out its plans, and who is served next. It knows
//! nothing of traces, metrics, bytes or wall clocks; arrays, the simulator and the served device stand on it.

pub mod assemble;
pub mod buffer;
pub mod drive;
pub mod events;
pub mod sched;
pub mod scheduled;
pub mod state;
#[cfg(test)]
mod tests;
pub mod waiting;

pub use assemble::{Assembled, Wanted, assemble};
pub use drive::{Drive, DriveSetup, Served, TimedPlan};
pub use events::{Buffered, MemberId, Observer, OpDone, Row, Tracks};
pub use sched::Chosen;
pub use scheduled::ScheduledDrive;
pub use state::SavedState;
