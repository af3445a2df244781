//! SYSTOR'17 virtual desktop traces (SNIA IOTTA 4928).

use super::tabular::Preset;
use super::{Clock, Format};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    aliases: &["systor"],
    summary: "SYSTOR'17: Timestamp s,Response s,IOType,LUN,Offset,Size in bytes",
    reference: "Lee et al., Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop Infrastructure, SYSTOR'17. Rows are in the order of completion: sorted within sort_window. The response may be missing.",
    clock: Clock::World,
    sort_window: "60s",
    ..Format::columns(&PRESET, |sample| {
        sample.bytes.starts_with(b"Timestamp,Response,IOType,LUN,Offset,Size").into()
    })
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "systor17",
    columns: "time:s;-;op;device;offset:B;size:B",
    sep: "comma",
    read: "",
    write: "",
    device: "LUN",
};
