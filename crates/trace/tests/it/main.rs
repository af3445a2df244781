//! Integration tests of this crate, one binary: readers, generators and the pipeline.

mod bad_input;
mod combine;
mod edges;
mod generators;
mod info;
mod naive_info;
mod naive_transforms;
mod norm;
mod on_record;
mod parquet;
mod pipeline;
mod readers;
mod samples;
mod stores;
mod support;
mod told;
mod transforms;
mod traps;
mod written;
mod written_events;
mod written_records;
