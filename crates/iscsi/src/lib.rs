//! An iSCSI target as small as RFC 7143 allows: error recovery level 0, one connection a session, any number of sessions.
//!
//! [`pdu`] is what goes over the wire, [`login`] how a session begins, [`session`] how it goes on, [`target`] who has sessions; [`served`] makes a
//! served device a disk of `smrlab-scsi`, which answers the commands.

pub mod chap;
mod erasure;
mod events;
mod failure;
pub mod keys;
pub mod listener;
pub mod login;
pub mod pdu;
pub mod served;
pub mod session;
pub mod target;

pub use served::listen;
pub use target::{Ended, Target};
