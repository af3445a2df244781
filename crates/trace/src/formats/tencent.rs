//! Tencent cloud block storage (SNIA IOTTA 27917).

use super::tabular::{Preset, fits};
use super::{Clock, Format, Sample, Verdict};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    aliases: &["tencent-cbs"],
    summary: "Tencent CBS: Timestamp s,Offset sectors,Size sectors,IOType (1 write),VolumeID",
    reference: "Zhang et al., OSCA, ATC'20. Times have whole seconds only and run back: sorted within sort_window. A volume is a device.",
    clock: Clock::World,
    sort_window: "10s",
    ..Format::columns(&PRESET, detect)
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "tencent",
    columns: "time:s;lba;size:blk;op;device",
    sep: "comma",
    read: "0",
    write: "1",
    device: "v",
};

fn detect(sample: &Sample<'_>) -> Verdict {
    // Dates of our days, in whole seconds: ten digits.
    let dated = sample.all_lines(|l| l.get(10) == Some(&b',') && l[..10].iter().all(u8::is_ascii_digit));
    (dated && fits(sample, &PRESET)).into()
}
