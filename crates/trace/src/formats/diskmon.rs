//! Windows DiskMon (Sysinternals) logs.

use super::tabular::{Preset, fits, open_preset};
use super::{Clock, Format, Open};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: PRESET.name,
    aliases: &[],
    summary: "DiskMon log: sequence, time s, duration s, disk, Read|Write, sector, sectors",
    reference: "Sysinternals DiskMon. Durations come in coarse steps and are not used.",
    params: &[],
    clock: Clock::Trace,
    sort_window: "0",
    detect: |sample| fits(sample, &PRESET).into(),
    open: Open::Stream(|input, _, tolerance| open_preset(input, &PRESET, tolerance)),
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
