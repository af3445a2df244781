//! The registry's entry of `laz-raz`: the log beside tracks for random access (Amer et al. 2010).

use super::entry::{GRANULARITY, OVERPROVISION, unit};
use super::{LogLayer, LogOptions, Raz, Separate};
use crate::entry::{BAND_OF_TRACKS, BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::slots::Slots;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

const PAGE: &str = "\
The drive has two kinds of zones. In the log-access zones bands are written by appending, as by `log`. The random-access zone
has tracks that lie W apart for a head of W tracks, so that nothing is harmed by a write in place; it holds a W-th of what shingled
tracks would hold there, and that is its price.

What goes where is told by how stable a unit (4 KiB) is. A unit that is written once, or seldom, is appended. One that was
written `hot_writes` times before gets a place in the random-access zone, and from then on each write to it is one operation in place, of just
the host's blocks: no rest is read, and the log has no dead copy of it to clean. A compaction that moves a unit halves its count.

When all places are taken, a hand goes round over them: it looks at 16 places at most for a write, passes those whose unit was written since it
passed last, and moves the first other unit to the log. Where it finds none the write is appended, to bands of units that are
written often.

Published: log-access and random-access zones; what is stable in the one, what is updated in place in the other; 0.5 % of the
space holds all blocks that are updated at random in special workloads. *Assumed* here: counts of writes as the measure, the hand, units of 4 KiB, and a zone
at the end of the drive whose space the host does not see, since all of it may have to go back to the log.

Which bands are compacted is `log`'s `greedy`. Discarded blocks read as zeroes without the medium. Power cuts lose nothing that was
acknowledged: a place that a unit left is written again only behind a fence.
";

/// See the page.
pub static ENTRY_LAZ_RAZ: LayerEntry = LayerEntry {
    name: "laz-raz",
    aliases: &["amer2010"],
    summary: "a log, and tracks for random access where units live that are written often",
    reference: "Amer, Long, Miller, Paris & Schwarz 2010, Design Issues for a Shingled Write Disk System",
    page: PAGE,
    idle: "nothing, by default and with any option: bands are compacted while a write waits",
    params: &[
        Param::new("raz", Kind::Share(0.0, 0.9), "1%")
            .doc("share of the bands that become tracks for random access; at least one band"),
        Param::new("hot_writes", Kind::Count(1, 255), "2")
            .doc("a unit that was written so many times before gets a place for random access"),
        Param::new("band", Kind::Band, "").doc(BAND_OF_TRACKS),
        OVERPROVISION,
        GRANULARITY,
        HEAD_TRACKS,
    ],
    tested: &[
        "granularity=1,band=2,hot_writes=1",
        "granularity=2,band=2,raz=40%",
        "granularity=1,band=3,tracks=3",
    ],
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    ENTRY_LAZ_RAZ.needs_tracks(&context.drive)?;
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY_LAZ_RAZ.name));
    let size = context.band_length(values, BandLength::Tracks);
    let bands = context.bands(&ENTRY_LAZ_RAZ, size)?;
    let unit = unit(values, &bands);
    let slots = Slots::new(bands, unit).map_err(refuse)?;
    let raz = Raz::new(&context.drive, &slots, values.share("raz")).map_err(refuse)?;
    let options = LogOptions {
        separate: Separate::Frequency(values.count("hot_writes") as u32),
        overprovision: values.share("overprovision"),
        most: context.drive.counted_blocks(),
        ..LogOptions::default()
    };
    Ok(Box::new(LogLayer::beside(Some(raz), slots, options).map_err(refuse)?))
}
