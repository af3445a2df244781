//! Windows DiskMon (Sysinternals) logs.

use super::Format;
use super::tabular::{Preset, fits, open_preset};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: PRESET.name,
    summary: "DiskMon log: sequence, time s, duration s, disk, Read|Write, sector, sectors",
    reference: "Sysinternals DiskMon. Durations come in coarse steps and are not used.",
    ..Format::stream(
        |sample| fits(sample, &PRESET).into(),
        |input, _, tolerance| open_preset(input, &PRESET, tolerance),
    )
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
