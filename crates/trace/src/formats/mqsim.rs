//! MQSim's (and SSDSim's) five columns.

use super::tabular::{Preset, fits};
use super::{Format, Sample, Verdict};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    aliases: &["ssdsim"],
    summary: "ns device lba sectors op (1 read, 0 write), blank-separated",
    reference: "MQSim ASCII traces; times in nanoseconds, 512-byte sectors. Looks like disksim: told apart by absurd times.",
    ..Format::columns(&PRESET, detect)
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "mqsim",
    columns: "time:ns;device;lba;size:blk;op",
    sep: "blank",
    read: "1",
    write: "0",
    device: "",
};

fn detect(sample: &Sample<'_>) -> Verdict {
    super::disksim::five_numbers(sample)
        .map_or(Verdict::No, |f| if fits(sample, &PRESET) { f.mqsim } else { Verdict::No })
}
