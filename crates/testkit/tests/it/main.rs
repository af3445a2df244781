//! Integration tests of this crate, one binary: layers and arrays on bytes, cut and recovered.

mod arrays;
mod bijection;
mod cache_refusals;
mod caveat_scriptor;
mod cut_arrays;
mod cuts;
mod drawn_arrays;
mod drawn_parameters;
mod floating;
mod host_aware;
mod host_aware_queue;
mod layers;
mod on_record;
mod persistent_cache;
mod power;
mod refused_writes;
mod restarts_on_record;
mod scenarios;
mod template;
mod volatile;
mod war;
mod waves;
mod zoned;
mod zoned_arrays;
mod zoned_queue;
mod zones_model;
