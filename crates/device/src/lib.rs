//! Serves a drive with real bytes in real time, to whatever surface: there is no protocol in here.
//!
//! [`shingle`] knows what a shingled medium holds, from the ordered runs of [`run_map`] and the geometry of [`tracks`];
//! [`medium`] gives it bytes in a [`store`] and durable state in a [`log`].

pub mod arrayed;
pub mod buffer;
pub mod capture;
mod changes;
pub mod clock;
pub mod config;
pub mod control;
pub mod device;
pub(crate) mod disk;
pub(crate) mod engine;
pub(crate) mod entry;
pub mod error;
#[cfg(test)]
mod failing_sync;
pub mod faults;
pub mod layered;
pub(crate) mod leaves;
pub(crate) mod ledger;
pub mod log;
pub mod machine;
pub mod medium;
pub(crate) mod members;
pub(crate) mod one_drive;
pub(crate) mod open;
pub mod picture;
pub(crate) mod pieces;
pub(crate) mod plan_bytes;
pub mod raw;
pub mod run_map;
pub mod scan;
pub mod shingle;
pub mod stats;
pub mod store;
pub(crate) mod synced;
pub(crate) mod table;
pub mod tag;
pub mod tracks;

pub use buffer::Buffer;
pub use config::Config;
pub use device::Device;
pub use error::{DeviceError, Result};
