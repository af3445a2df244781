//! The registry entry.

use super::shape::Shape;
use super::{Mirror, Reads};
use crate::Capabilities;
use crate::entry::{ArrayContext, ArrayEntry, BuildResult, CHUNK, MOST_DISKS};
use crate::layouts::rebuild;
use smrlab_units::spec::{Kind, Param, Values, joined};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "mirror",
    summary: "copies of every chunk on different drives: RAID-1, and striped over mirrors (RAID-10) with more drives than copies",
    reference: "Patterson, Gibson, Katz (SIGMOD 1988); places as in the near layout of Linux md's raid10",
    page: "\
Each chunk is on `copies` drives. With as many drives as copies all drives are equal (RAID-1). With more, chunks are dealt out over them \
row by row, the copies of a chunk side by side: with a multiple of `copies` a stripe over mirrors (RAID-10), and any other number \
above it will do (three drives with two copies). A write goes to all copies and is done when the last is; a read goes to one: \
the one nearest to where its drive was asked last (`reads=nearest`, as md does, by block number: positions of heads are the drives' own \
affair), each in turn, or the first. A chunk is locked while it is written.

A chunk can be read as long as one copy is left: one drive may be lost, more where no chunk had all its copies on them. A \
replaced drive is rebuilt in units of `rebuild_unit` from the first copies that are left; several are rebuilt one after the other.

A power cut can leave copies that differ, and then each read may find another. With `intent=on` chunks that are being written are \
remembered in memory that survives, and their copies are made equal before they are read. Without it a served array does so for all \
chunks after a server was killed or the host lost power, in the background, and reads only first copies where it has not been yet.",
    params: &joined::<10>(&[
        &[
        Param::new("disks", Kind::Count(2, MOST_DISKS), "2").doc("drives, at least as many as copies"),
        Param::new("copies", Kind::Count(2, MOST_DISKS), "2").doc("copies of each chunk"),
        CHUNK,
        Param::new("reads", Kind::Choice(Reads::NAMES), "nearest")
            .doc("which copy is read: nearest to where its drive was asked last, in turn, or the first"),
        Param::new("intent", Kind::Switch, "off")
            .doc("chunks that are being written are remembered, and made equal after a power cut"),
        ],
        &rebuild::PARAMS,
    ]),
    capabilities: Capabilities { losses: 1, survives_cut: true, discards: true },
    ..ArrayEntry::new(build)
};

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let chunk = context.chunk(values)?;
    let (disks, copies) = (context.disks().len() as u64, values.count("copies"));
    if copies > disks {
        return Err(values.bad("copies", format!("at most the {disks} drives of disks=")));
    }
    let rows = context.least().0 / chunk.0;
    let rebuild = rebuild::RebuildSettings::of(context, values, chunk, rows)?;
    let reads = values.word("reads", Reads::named);
    let shape = Shape { chunk: chunk.0, disks, copies, rows };
    Ok(Box::new(Mirror::new(shape, reads, values.on("intent"), rebuild)))
}
