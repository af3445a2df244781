//! Heimdall's cut MSR traces.

use super::tabular::{Preset, fits};
use super::{Format, Sample, Verdict};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    aliases: &["msr.cut"],
    summary: "ms device offset size op (1 read, 0 write), offset and size in bytes",
    reference: "Cut and re-based MSR traces of the Heimdall project (msr.cut.*). Looks like disksim: told apart by sizes in bytes.",
    ..Format::columns(&PRESET, detect)
};

/// The columns.
pub(super) const PRESET: Preset = Preset {
    name: "msr-cut",
    columns: "time:ms;device;offset:B;size:B;op",
    sep: "blank",
    read: "1",
    write: "0",
    device: "d",
};

fn detect(sample: &Sample<'_>) -> Verdict {
    super::disksim::five_numbers(sample)
        .map_or(Verdict::No, |f| if fits(sample, &PRESET) { f.msr_cut } else { Verdict::No })
}
