//! Integration tests of this crate, one binary: the drive at work.

mod assembling;
mod buffered;
mod crosschecks;
