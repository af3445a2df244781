//! The registry entry.

use super::group::Group;
use super::shape::{Shape, TableZone};
use super::{Dvs, DvsOptions, Stripes, victim};
use crate::entry::{ArrayContext, ArrayEntry, BuildResult, MOST_DISKS};
use crate::layouts::full_stripe::{BATCH, FILL, moving};
use crate::{Capabilities, cache};
use smrlab_units::Blocks;
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
host's: with 0%, which the paper's silence means, a full group is collected by every write. The paper's own figures need \
groups of which some 30 % is live, hence the default; a run says when its groups are nearly full.

A dead drive's chunks are made from their stripes, obsolete members included; a replaced drive is rebuilt group by group, \
only what was written.

With `tables=zone` the SSD has all tables, and those of groups that changed are written, `tables_every` after the \
first change, to a zone in the middle of the drives (`tables_written`): the last chunk of each of its segments, which nothing \
follows, so that a table is written in place and rewrites nothing; the rest of these segments is lost to the host. Where the \
SSD has room for `tables_cache` of them only, those used last are there: a request to a group whose table is not reads it \
first (`tables_read`), and one that changed is written before it goes.

Acknowledged data survive a power cut, but for one in mid-collection: live chunks are in memory \
then and nowhere else. With `journal=on` all chunks of a collection are on an SSD (`ssd_latency`, `ssd_rate`) before their \
segments are reset, and it is done again after a cut. 

With `groups=moving`, which is not the paper's, a chunk has neither a group nor a drive of its own: what is written goes to the group that is being filled, stripes as wide as there are chunks, and a collection moves the chunks of the group with fewest live ones, `batch` at a time, to a group of what has outlived others. `overprovision` is then that of all groups together, so that a write costs what it costs in a log; where writes are hot in some places it is free long before every group is. It needs no `journal`: what a collection moves stays where it was until the copies hold. `full-stripe` is the same with full stripes only.

The published write cache is `ssd_write` with `ssd_write_policy=lru-lfu`.",
    params: &[
        Param::new("disks", Kind::Count(3, MOST_DISKS), "5").doc("drives, parity included"),
        Param::new("chunk", Kind::Size, "64KiB").doc("blocks that are placed together"),
        Param::new("segment", Kind::Count(2, 1000), "50")
            .doc("chunks in a segment: tracks in a band (50 in the paper's text, 32 in its Table I)"),
        Param::new("overprovision", Kind::Share(0.0, 0.9), "70%")
            .doc("share of a group's data chunks that the host does not see: what is left of them is live \
                  when the host's space is full. 70% is what the paper's own figures need; the less, the \
                  more is moved for each write"),
        Param::new("stripes", Kind::Choice(Stripes::NAMES), "variable")
            .doc("a stripe that is not full: written as it is; filled with old chunks, read and written \
                  again; or its chunks wait in the write cache (`ssd_write`)"),
        Param::new("groups", Kind::Choice(&["fixed", "moving"]), "fixed")
            .doc("a chunk's group is its own for good; or it is where it was written last, and a collection \
                  gathers what is cold"),
        Param { doc: "with groups=moving: chunks that a collection moves at a time", ..BATCH },
        Param {
            default: "8",
            doc: "with groups=moving: groups that the host fills in turn, a stripe each, and as many that the collector does: chunks of a segment lie one \
                  above the other, and so many lie side by side",
            ..FILL
        },
        Param::new("idle", Kind::Time, "").doc("idle time before groups are collected; never without it"),
        Param::new("obsolete", Kind::Share(0.0, 1.0), "25%")
            .doc("groups with a smaller share of obsolete chunks are not collected in idle time"),
        Param::new("victim", Kind::Choice(victim::NAMES), "most-invalid")
            .doc("which of these goes first: most obsolete chunks, fewest live ones, most requests, the last \
                  request, the oldest one"),
        Param::new("tables", Kind::Choice(&["nv", "zone"]), "nv")
            .doc("maps and stripe tables survive and cost nothing; or those that changed are written to a \
                  random-access zone, too"),
        Param::new("tables_every", Kind::Time, "1s").doc("how long after a change, with tables=zone"),
        Param::new("tables_cache", Kind::Size, "")
            .doc("room of the SSD for tables, with tables=zone; default: for all of them"),
        Param::new("journal", Kind::Switch, "off")
            .doc("a collection has its chunks on an SSD before it resets their segments, so that a power cut \
                  loses nothing"),
        Param::new("rebuild_depth", Kind::Count(1, 1024), "1").doc("groups rebuilt at a time"),
    ],
    capabilities: Capabilities { losses: 1, survives_cut: false, discards: true },
    ..ArrayEntry::new(build)
};

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    if values.text("groups") == Some("moving") {
        return moving(context, values);
    }
    let chunk = context.chunk(values)?.0;
    let length = values.count("segment");
    let least = context.disks().iter().map(|b| b.0).min().unwrap_or(0);
    let disks = context.disks().len() as u64;
    let all_groups = least / (chunk * length);
    if all_groups == 0 {
        return Err(values.bad("segment", format!("a segment that fits on a drive of {least} blocks")));
    }
    let all = (disks - 1) * length;
    let share = values.share("overprovision");
    let logical = ((all as f64 * (1.0 - share)).round() as u64).clamp(1, all);
    let shape = Shape { chunk, disks, length, logical, groups: all_groups, zone: None };
    if !Group::numbers(&shape) {
        return Err(values.bad("segment", "at most 65533 data chunks in a group, less one for each drive"));
    }
    let mut zone = None;
    if values.text("tables") == Some("zone") {
        let every = values.time("tables_every");
        zone = TableZone::new(&shape, all_groups, every);
        if zone.is_none() {
            return Err(values.bad(
                "tables",
                "a zone where a chunk holds a group's tables and drives have several groups",
            ));
        }
    }
    let shape = Shape { groups: all_groups - zone.map_or(0, |z| z.groups), zone, ..shape };
    let stripes = values.word("stripes", Stripes::named);
    if stripes == Stripes::Wait && cache::asked(values, "ssd_write", Blocks(1 << 40)) == Blocks::ZERO {
        return Err(values.bad("stripes", "wait only with ssd_write=, where chunks can wait"));
    }
    let tables = values.given("tables_cache", |v, key| (zone, v.size(key, Blocks(1 << 40))));
    let tables = match tables {
        Some((None, _)) => return Err(values.bad("tables_cache", "a size only with tables=zone")),
        Some((Some(zone), room)) if room.0 < zone.table => {
            return Err(values.bad("tables_cache", format!("at least a table: {} blocks", zone.table)));
        }
        Some((Some(zone), room)) => Some(room.0 / zone.table),
        None => None,
    };
    let options = DvsOptions {
        idle: values.given("idle", Values::time),
        obsolete: values.share("obsolete"),
        victim: victim::named(values.text("victim").unwrap_or_default()),
        stripes,
        tables,
        depth: values.count("rebuild_depth"),
        journal: values.on("journal"),
        seed: context.seed,
    };
    Ok(Box::new(Dvs::new(shape, options)))
}
