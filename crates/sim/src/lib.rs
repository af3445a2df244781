//! The engine: requests of a trace meet a drive, and a result comes out.
//!
//! [`spec`] says what a run is made of, [`mod@resolve`] makes it, [`engine`] feeds it requests in simulated time, [`metrics`]
//! counts. The drive itself is `smrlab_drive`'s, for simulator and served device alike.

mod columns;
pub mod compared;
pub mod control;
mod document;
pub mod engine;
pub mod error;
pub mod import;
pub mod key;
pub mod keys;
pub mod list;
mod logs;
pub mod metrics;
pub mod prefill;
mod prefill_cache;
pub mod resolve;
mod result;
mod rig;
pub mod run;
pub mod spaces;
pub mod spec;
mod spent;
pub mod state;
pub mod table;
pub mod validate;
pub mod verify;
mod watch;

pub use control::{Control, Keep};
pub use document::RunResult;
pub use error::{Result, RunError};
pub use list::{explain_json, list_json};
pub use resolve::{resolve, resolve_with};
pub use run::{run, run_resolved};
pub use spec::Spec;
