//! RAID 4S: data on shingled drives that write out of place, parity on a conventional one.
//!
//! It is RAID-4 by the machine of [`parity`](super::parity); what is its own is that the last drive, which has all parity, is conventional.

use super::parity::rows::Rotation;
use super::parity::{INTENT, JOURNAL, ParityOptions, WRITE, built, common};
use super::rebuild;
use crate::Capabilities;
use crate::entry::{ArrayContext, ArrayEntry, CHUNK, MOST_DISKS};
use smrlab_units::spec::{Kind, Param, Values, joined};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "raid4s",
    summary: "chunks in rows on shingled drives, parity on one conventional drive; survives the loss of one drive",
    reference: "Le, Amer, Holliday: RAID 4SMR, RAID array with shingled magnetic recording disk for mass storage systems (MASCOTS 2015; JCST 2019)",
    page: "\
The rows of RAID-4: as `raid5`, but the parity of all rows is on the last drive, and this drive is conventional (`cmr`), whatever \
layer the others have. Data are written seldom enough for a shingled drive, each write of any of them writes parity.

Published: updates of data go out of place to free space of the same drive, with a map; parity is updated in place; up to 89 % better \
than RAID-4 that updates in place. *Assumed* here: a data drive maps and cleans by itself, so that the layer says how: \
`--stack 'raid4s / log'`, or `s-block`; with `rmw` they update in place, for the comparison with `raid5,layout=parity-last / rmw`. \
Only as much of the conventional drive is used as the data drives have.

One drive may be lost, the one with parity too. The fresh one that takes its place is conventional, too; only where \
a `timeout` throws it out of a run, which nobody knows before, is it a spare as the others. Degraded reads, rebuilds, `intent` and `journal` are those of `raid5`. Discards do \
not reach the drives: a log reads zeroes where a conventional drive keeps what it had, and parity would not fit.",
    params: &joined::<10>(&[
        &[
        Param::new("disks", Kind::Count(3, MOST_DISKS), "5").doc("drives, the conventional one included"),
        CHUNK,
        WRITE,
        INTENT,
        JOURNAL,
        ],
        &rebuild::PARAMS,
    ]),
    capabilities: Capabilities { losses: 1, survives_cut: true, discards: false },
    conventional: |values| Some(values.count("disks") as u32 - 1),
    ..ArrayEntry::new(|context: &ArrayContext<'_>, values: &Values| {
        let chunk = context.chunk(values)?;
        let (rows, options) = common(context, values, (Rotation::ParityLast, 1), chunk, context.least().0 / chunk.0)?;
        built(rows, ParityOptions { mixed: true, ..options })
    })
};
