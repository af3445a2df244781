//! Integration tests of this crate, one binary: the drive at work.

mod buffered;
mod crosschecks;
