//! The registry entry, and the option of `dvs` that is the same log with stripes of any width.

use super::shape::{FEWEST, LONGEST, Shape};
use super::{FullStripe, FullStripeOptions, Stripes};
use crate::entry::{ArrayContext, ArrayEntry, BuildResult, MOST_DISKS, Takes};
use crate::{Capabilities, cache};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Zone};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "full-stripe",
    summary: "a log of full stripes with parity over ordinary drives or over zones: appends only, moves what is live, survives one loss",
    reference: "Jin, Xi, Ching, Huo, Lim: HiSMRfs (MSST 2014), its RAID of full stripes; as SFS (Le Moal et al. 2012) with bands",
    page: "\
All drives are cut into segments, and a group is one segment of each. What is written goes to the group that is being filled, wherever it belongs: \
N chunks on as many drives and their parity on the last one, a stripe at a time, so that no drive is ever written but at its append pointers, \
parity is sequential, and neither old data nor old parity is read. A map says where each chunk is. A chunk that is written in part is completed \
by a read (`fill_reads`): choose `chunk` as small as the requests are.

What is too little for a stripe is padded with zeroes (`stripes=pad`; `chunks_padded`), or waits in the write cache until it makes some \
(`stripes=wait`, with `ssd_write`): the SSD acknowledges, and whole stripes are taken from it, round and round by address.

When few groups are free, the one with fewest live chunks is emptied, `batch` of them at a time while the host's requests go on: they are appended to a \
group of their own, so that what has outlived others lies together and is seldom moved again. A write waits only where no group is free. The host does not see \
`overprovision` of the space, nor five groups and two for each one of `fill`.

Over drives with zones (`--stack 'full-stripe / zoned'`) a segment is a zone, which is reset before it is filled again; over others the layer is told by a \
discard. The map is kept at no cost. Stripes hold once they are written as a whole, so there is no write hole: what was acknowledged \
survives a power cut and with it the loss of a drive. A dead drive's chunks are made of the others of their stripe; a replaced drive gets what groups \
hold, `rebuild_unit` at a time, and all of what is written meanwhile. *Assumed*: HiSMRfs says that parity is sequential and stripes always full, \
and neither how it collects nor what it does with less than a stripe.",
    params: &[
        Param::new("disks", Kind::Count(3, MOST_DISKS), "5").doc("drives, parity included"),
        Param::new("chunk", Kind::Size, "64KiB").doc("blocks that are placed together"),
        Param::new("segment", Kind::Count(4, LONGEST), "50").doc("chunks in a segment, where it is no zone"),
        Param::new("overprovision", Kind::Share(0.0, 0.9), "15%")
            .doc("share of the space that the host does not see, beside the groups kept free"),
        Param::new("stripes", Kind::Choice(&["pad", "wait"]), "pad")
            .doc("what makes no full stripe: padded with zeroes, or waits in the write cache (`ssd_write`)"),
        BATCH,
        FILL,
        REBUILD_UNIT,
        REBUILD_DEPTH,
    ],
    capabilities: Capabilities { losses: 1, survives_cut: true, discards: true },
    takes: Takes::Both,
    ..ArrayEntry::new(|context, values| {
        let stripes = if values.text("stripes") == Some("wait") { Stripes::Wait } else { Stripes::Pad };
        let unit = values.size("rebuild_unit", context.least());
        let asked = Asked { stripes, reserve: values.share("overprovision"), unit };
        built(context, values, &asked)
    })
};

/// Chunks that are moved at a time.
pub(in crate::layouts) const BATCH: Param = Param::new("batch", Kind::Count(1, 1 << 20), "64")
    .doc("chunks that a collection moves at a time, rounded up to whole stripes");

/// Groups that the host fills in turn.
pub(in crate::layouts) const FILL: Param = Param::new("fill", Kind::Count(1, 1024), "1").doc(
    "groups that the host fills in turn, a stripe each, and as many that the collector does: over \
     `segment`, whose chunks lie one above the other, so many lie side by side",
);

const REBUILD_UNIT: Param = Param::new("rebuild_unit", Kind::Size, "1MiB")
    .doc("blocks of the replaced drive that are rebuilt at a time, at least a chunk");

const REBUILD_DEPTH: Param = Param::new("rebuild_depth", Kind::Count(1, 1024), "1")
    .doc("units rebuilt at a time; one over zones, which are written in order");

/// `dvs` whose chunks may change their group: stripes of any width.
///
/// # Errors
/// What does not fit.
pub(in crate::layouts) fn moving(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let stripes = match values.text("stripes") {
        Some("wait") => Stripes::Wait,
        Some("fill") => {
            return Err(values
                .bad("stripes", "variable or wait with groups=moving, where no old chunk fills a stripe"));
        }
        _ => Stripes::Variable,
    };
    let not =
        |key: &str, set: bool| if set { Err(values.bad(key, "nothing with groups=moving")) } else { Ok(()) };
    not("tables", values.text("tables") == Some("zone"))?;
    not("idle", values.text("idle").is_some())?;
    not("journal", values.on("journal"))?;
    // A segment is rebuilt at once, as with fixed groups.
    let unit = Blocks(u64::MAX);
    built(context, values, &Asked { stripes, reserve: values.share("overprovision"), unit })
}

/// What the two entries differ in.
struct Asked {
    stripes: Stripes,
    /// Share of the space that the host does not see.
    reserve: f64,
    /// Blocks rebuilt at a time.
    unit: Blocks,
}

/// The zones of each drive that are alike: a shorter one can only be the last.
fn alike(zones: &[Zone]) -> &[Zone] {
    let size = zones.first().map_or(Blocks::ZERO, |zone| zone.blocks);
    &zones[..zones.iter().take_while(|zone| zone.blocks == size).count()]
}

/// Most chunks of an array, parity and what is kept back included. The host sees fewer: a cell's four words for no chunk of the host's fit, too.
const MOST_CHUNKS: u128 = 1 << 40;

/// Blocks that drives with zones write at a time.
const AT_A_TIME: u64 = 8;

fn built(context: &ArrayContext<'_>, values: &Values, asked: &Asked) -> BuildResult {
    let chunk = context.chunk(values)?.0;
    let disks = context.disks().len() as u64;
    let zones: Vec<Vec<Zone>> = (0..context.disks().len())
        .map(|d| alike(context.zones(d)).to_vec())
        .filter(|z| !z.is_empty())
        .collect();
    let (length, spacing, groups) = match zones.first() {
        Some(first) => {
            if zones.len() as u64 != disks || zones.iter().any(|z| z[0].blocks != first[0].blocks) {
                return Err(SpecError::Other(format!(
                    "{}: its drives must have zones of one size",
                    ENTRY.name
                )));
            }
            let size = first[0].blocks.0;
            let groups = zones.iter().map(Vec::len).min().unwrap_or(0) as u64;
            (size / chunk, size, groups)
        }
        None => {
            let least = context.disks().iter().map(|b| b.0).min().unwrap_or(0);
            let length = values.count("segment");
            (length, length * chunk, least / (length * chunk))
        }
    };
    if !zones.is_empty() && !chunk.is_multiple_of(AT_A_TIME) {
        return Err(values.bad("chunk", "a multiple of 4KiB, which drives with zones write at a time"));
    }
    let filled = values.count("fill");
    let shape = Shape { chunk, disks, length, spacing, groups, filled, logical: 0, unit: 1 };
    let fewest = shape.kept() + FEWEST;
    if groups < fewest || !(4..=LONGEST).contains(&length) {
        let key = if zones.is_empty() { "segment" } else { "chunk" };
        let problem =
            format!("at least {fewest} segments of at least 4 chunks on a drive; here {groups} of {length}");
        return Err(values.bad(key, problem));
    }
    // A cell has 40 bits for its chunk, and a chunk 32 for its group.
    if u128::from(groups) * u128::from(length * disks) > MOST_CHUNKS || groups > u64::from(u32::MAX) {
        let problem = "a size with which the array has at most 2^40 chunks, in fewer than 2^32 groups";
        return Err(values.bad("chunk", problem));
    }
    if asked.stripes == Stripes::Wait && cache::asked(values, "ssd_write", Blocks(1 << 40)) == Blocks::ZERO {
        return Err(values.bad("stripes", "wait only with ssd_write=, where chunks can wait"));
    }
    let unit = (asked.unit.0 / chunk).clamp(1, length);
    let shape = Shape { logical: shape.logical(asked.reserve), unit, ..shape };
    let depth = if zones.is_empty() { values.count("rebuild_depth") } else { 1 };
    // Each stripe that is not full takes parity beyond what the shape has room for: collecting would win nothing, and never end.
    let batch = values.count("batch").next_multiple_of(disks - 1);
    let options = FullStripeOptions { stripes: asked.stripes, batch, depth };
    Ok(Box::new(FullStripe::new(shape, options, context.seed, &zones)))
}

#[cfg(test)]
mod tests {
    use crate::{ArrayContext, parse};
    use smrlab_units::Blocks;

    /// 32 TB are 7.8e9 chunks of 4 KiB: of 200 such drives 40 bits do not number them, and segments of four blocks are too many groups.
    #[test]
    fn more_chunks_or_groups_than_have_numbers_are_refused() {
        let built = |text: &str, disks: usize| {
            let sizes = vec![Blocks(62_500_000_000); disks];
            parse(text).unwrap().build(&ArrayContext::new(&sizes)).map(drop).map_err(|e| e.to_string())
        };
        for (text, disks) in
            [("full-stripe,disks=200,chunk=4KiB", 200), ("full-stripe,disks=4,chunk=512B,segment=4", 4)]
        {
            let e = built(text, disks).unwrap_err();
            assert!(e.contains("at most 2^40 chunks, in fewer than 2^32 groups"), "{text}: {e}");
        }
        assert_eq!(built("full-stripe,disks=4,chunk=256KiB", 4), Ok(()));
    }
}
