//! Alibaba cloud block storage.

use super::tabular::{Preset, fits};
use super::{Clock, Format};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    summary: "Alibaba: device_id,opcode (R|W),offset,length,timestamp us",
    reference: "Li et al., An In-Depth Analysis of Cloud Block Storage Workloads, IISWC'20. Offset and length in bytes, time in microseconds. A virtual disk is a device.",
    clock: Clock::World,
    ..Format::columns(&PRESET, |sample| fits(sample, &PRESET).into())
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "alibaba",
    columns: "device;op;offset:B;size:B;time:us",
    sep: "comma",
    read: "R",
    write: "W",
    device: "",
};
