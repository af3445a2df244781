//! Integration tests of this crate, one binary: drives seen from outside.

mod geometry;
mod pages;
