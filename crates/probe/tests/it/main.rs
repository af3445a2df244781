//! Integration tests of this crate, one binary: drives seen from outside.

mod asked;
mod geometry;
mod pages;
