//! CloudPhysics traces as CSV.

use super::tabular::Preset;
use super::{Clock, Format};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    summary: "CloudPhysics CSV: version,time s,op (SCSI code, hex),size bytes,lbn",
    reference: "The CSV form of the VSCSI traces in libCacheSim. Times have whole seconds only; the binary form has microseconds.",
    clock: Clock::World,
    ..Format::columns(&PRESET, |sample| sample.bytes.starts_with(b"version,time,op,size,lbn").into())
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "vscsi-csv",
    columns: "-;time:s;op;size:B;lba",
    sep: "comma",
    read: "28;8;08;88;a8",
    write: "2a;0a;a;8a;aa",
    device: "",
};
