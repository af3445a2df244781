//! Integration tests of this crate, one binary: the engine, runs and results.

mod array_schedulers;
mod arrays;
mod cassuto2010;
mod drive_managed;
mod dvs;
mod dvs_claims;
mod engine;
mod golden;
mod he2014;
mod imported;
mod interleaving;
mod list;
mod loads;
mod measured;
mod members;
mod nested;
mod on_record;
mod prefill_cache;
mod recovery;
mod results;
mod run;
mod shipped_buffer;
mod state;
mod support;
mod verify;
mod zoned;
