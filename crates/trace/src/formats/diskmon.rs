//! Windows DiskMon (Sysinternals) logs.

use super::Format;
use super::tabular::{Preset, fits};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    summary: "DiskMon log: sequence, time s, duration s, disk, Read|Write, sector, sectors",
    reference: "Sysinternals DiskMon. Durations come in coarse steps and are not used.",
    ..Format::columns(&PRESET, |sample| fits(sample, &PRESET).into())
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "diskmon",
    columns: "-;time:s;-;device;op;lba;size:blk",
    sep: "blank",
    read: "",
    write: "",
    device: "disk",
};
