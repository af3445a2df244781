//! The drive at work: a translation layer and the mechanics that carry out its plans, and who is served next. It knows
//! nothing of traces, metrics, bytes or wall clocks; arrays, the simulator and the served device stand on it.

pub mod assemble;
pub mod controller;
pub mod drive;
pub mod events;
pub mod onboard;
pub mod sched;
pub mod state;
pub mod waiting;

pub use assemble::{Assembled, Wanted, assemble};
pub use controller::Controller;
pub use drive::{Drive, DriveSetup, Executed, Served};
pub use events::{MemberId, Observer, OpDone, Tracks};
pub use sched::Chosen;
pub use state::State;
