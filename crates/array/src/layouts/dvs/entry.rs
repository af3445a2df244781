//! The registry entry.

use super::group::Shape;
use super::{Dvs, Options};
use crate::Capabilities;
use crate::entry::{ArrayContext, ArrayEntry, BuildResult};
use smrlab_units::spec::{Kind, Param, Values};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "dvs",
    summary: "dynamic variable-width striping: every write makes new stripes behind append pointers; parity without reads",
    reference: "Luo, Yao, Qu, Wan, Xie: DVS: Dynamic Variable-width Striping RAID for Shingled Write Disks (NAS 2016)",
    page: "\
A segment is `segment` chunks that a drive appends to; a group is one segment of every drive. A chunk has its home drive \
for good (that of a left-asymmetric RAID-5), its place in the segment is where the append pointer was. A write packs its \
chunks into stripes, as wide as the chunks allow, each with a parity chunk: `w + 1` writes for `w` chunks, and no read of \
old data or parity. It takes as many stripes as there must be: the longest list of one drive, or all chunks over N.

What a write covers only in part is completed by a read of the old copy (`fill_reads`). A group without room is collected \
in the foreground: live chunks are read, the segments reset (the layer below is told by a discard), and all is striped \
anew. With `idle` groups are collected in idle time too, the one with most obsolete chunks first, if at least `obsolete` \
of its chunks are; a request gives that up before its first write. `overprovision` of a group's chunks are not the \
host's: without any, a full group is collected by every write.

A dead drive's chunks are made from their stripes, obsolete members included; a replaced drive is rebuilt group by group, \
only what was written. Acknowledged data survive a power cut, but for one in mid-collection: live chunks are in memory \
then and nowhere else. With `journal=on` all chunks of a collection are on an SSD (`ssd_latency`, `ssd_rate`) before their \
segments are reset, and it is done again after a cut. The published write cache is `ssd_write` with `ssd_write_policy=lru-lfu`.",
    params: &[
        Param { name: "disks", kind: Kind::Count(3, 64), default: "5", doc: "drives, parity included" },
        Param { name: "chunk", kind: Kind::Size, default: "64KiB", doc: "blocks that are placed together" },
        Param {
            name: "segment",
            kind: Kind::Count(2, 1000),
            default: "50",
            doc: "chunks in a segment: tracks in a band (50 in the paper's text, 32 in its Table I)",
        },
        Param {
            name: "overprovision",
            kind: Kind::Share(0.0, 0.9),
            default: "0",
            doc: "share of a group's data chunks that the host does not see",
        },
        Param { name: "idle", kind: Kind::Time, default: "", doc: "idle time before groups are collected; never without it" },
        Param {
            name: "obsolete",
            kind: Kind::Share(0.0, 1.0),
            default: "25%",
            doc: "groups with a smaller share of obsolete chunks are not collected in idle time",
        },
        Param {
            name: "journal",
            kind: Kind::Switch,
            default: "off",
            doc: "a collection has its chunks on an SSD before it resets their segments, so that a power cut loses nothing",
        },
        Param { name: "rebuild_depth", kind: Kind::Count(1, 1024), default: "1", doc: "groups rebuilt at a time" },
    ],
    capabilities: Capabilities { losses: 1, survives_cut: false, discards: true },
    disks: |values| values.count("disks").unwrap_or(5) as u32,
    build,
};

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let chunk = context.unit(values, "chunk")?.0;
    let length = values.count("segment").unwrap_or(50);
    let least = context.disks().iter().map(|b| b.0).min().unwrap_or(0);
    let disks = context.disks().len() as u64;
    let groups = least / (chunk * length);
    if groups == 0 {
        return Err(values.bad("segment", format!("a segment that fits on a drive of {least} blocks")));
    }
    let all = (disks - 1) * length;
    if all >= u64::from(u16::MAX) - 1 {
        return Err(values.bad("segment", "at most 65533 data chunks in a group"));
    }
    let share = values.share("overprovision").unwrap_or(0.0);
    let logical = ((all as f64 * (1.0 - share)).round() as u64).clamp(1, all);
    let shape = Shape { chunk, disks, length, logical, groups };
    let options = Options {
        idle: values.time("idle"),
        obsolete: values.share("obsolete").unwrap_or(0.25),
        depth: values.count("rebuild_depth").unwrap_or(1),
        journal: values.on("journal"),
        seed: context.seed,
    };
    Ok(Box::new(Dvs::new(shape, options)))
}
