//! Block traces: the record, one file per format, generators, transforms, and the fast store.
//!
//! Everything is a [`TraceSource`]: a stream of [`Batch`]es in bounded memory. [`open`] makes one from what a user
//! writes; transforms wrap one in another; [`convert`] stores one as Parquet.

mod archive;
mod combine;
mod described;
mod detect;
mod devices;
mod error;
pub mod fields;
mod files;
mod filter;
pub mod formats;
pub mod generators;
pub mod info;
pub mod input;
mod layout;
mod open;
mod parquet_writer;
pub mod pipeline;
mod raw;
pub mod reader;
mod record;
pub mod remote;
mod source;
mod stop;
mod target;
pub mod transforms;

pub use combine::{AddressSpace, Mix, combine};
pub use described::{read_described, read_drive};
pub use error::{Result, TraceError};
pub use files::{can_replace_file, read_known, replace_file};
pub use filter::{Filter, PARAMS as FILTER};
pub use formats::parquet::ParquetSource;
pub use open::{OpenContext, open, open_bytes};
pub use parquet_writer::{Packing, ParquetWriter, SCHEMA_VERSION, convert};
pub use pipeline::{Pipeline, Steps};
pub use record::{Batch, Record};
pub use source::{Memory, TraceSource, read_all};
pub use stop::Stop;
