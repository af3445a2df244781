//! The engine: requests of a trace meet a drive, and a result comes out.
//!
//! [`drive`] is the drive itself, for simulator and served device alike. [`engine`] feeds it requests in simulated
//! time, [`sched`] chooses among waiting ones, [`metrics`] counts. [`spec`] says what a run is made of.

pub mod array;
pub mod compared;
pub mod control;
pub mod engine;
pub mod error;
pub mod import;
mod kept;
pub mod keys;
pub mod list;
mod logs;
pub mod metrics;
pub mod prefill;
pub mod resolve;
mod result;
pub mod run;
pub mod spec;
pub mod state;
pub mod table;
pub mod validate;
pub mod verify;
mod watch;

pub use control::Control;
pub use error::RunError;
pub use kept::Keep;
pub use list::{explain_json, list_json};
pub use resolve::{resolve, resolve_with};
pub use run::{RunResult, run, run_resolved};
pub use spec::Spec;
