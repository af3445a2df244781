//! Integration tests of this crate, one binary: served devices.

mod array_queue;
mod array_sizes;
mod arrays;
mod bands;
mod cache_refusals;
mod capture;
mod checkpoint;
mod counting;
mod drawn_clients;
mod drawn_stacks;
mod drawn_states;
mod durable;
mod every_cut;
mod exactness;
mod fuzzed;
mod large;
mod lent;
mod on_record;
mod parts;
mod power;
mod power_loss;
mod queue;
mod room;
mod served;
mod state;
mod zone_lives;
