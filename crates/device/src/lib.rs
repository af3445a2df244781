//! Serves a drive with real bytes in real time, to whatever surface: there is no protocol in here.
//!
//! [`shingle`] knows what a shingled medium holds, from the ordered runs of [`runs`] and the geometry of [`tracks`].

pub mod error;
pub mod runs;
pub mod shingle;
pub mod tracks;
