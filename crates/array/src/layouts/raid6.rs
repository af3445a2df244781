//! RAID-6: rows of chunks, each with two parity chunks.

use super::parity::code;
use super::parity::rows::Rotation;
use super::parity::{INTENT, JOURNAL, LAYOUT, WRITE, built, common};
use super::rebuild;
use crate::Capabilities;
use crate::entry::{ArrayContext, ArrayEntry, CHUNK};
use smrlab_units::spec::{Kind, Param, Values, joined};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "raid6",
    summary: "chunks in rows, each row with two parity chunks that go round; survives the loss of any two drives",
    reference: "H. P. Anvin: The mathematics of RAID-6 (2004-2011); layouts as in Linux md",
    page: "\
As `raid5`, with two parity chunks in a row, side by side: P is the XOR of the data chunks, Q is the sum of chunk `i` times \
`x^i` in GF(256) with the polynomial 11Dh, as in Linux md. A read-modify-write of `w` chunks reads `w + 2`, a reconstruct-write of `N` \
data chunks reads `N - w`, whichever is cheaper; then `w + 2` are written. Whole rows are written without a read.

With one drive dead its chunks are made from the others of the row and P; Q is read only where P or another chunk is dead too, and \
with two chunks dead both are read. A write of one of two dead chunks reads all that is left of the row. Replaced drives are rebuilt \
one after the other, units and order as `raid5` has them; a unit reads each drive that one of its rows needs as a whole. A third \
death before that loses data: requests that need them are refused.

After a power cut, rows whose parities do not fit are known with `intent=on`, and resynchronised: from the data where these are all \
alive; with a chunk dead, what P says of it counts, and Q is made to fit that. So a cut together with a dead drive still \
loses blocks of such rows that nobody was writing (the write hole); with `journal=on` nothing is lost: both parities of a row are on \
the SSD with its new blocks before the drives are written.

Discards reach the drives where they take whole rows; blocks do not read as zeroes afterwards unless the drives say so.",
    params: &joined::<11>(&[
        &[
        Param::new("disks", Kind::Count(4, code::CHUNKS + 2), "6")
            .doc("drives, both parities included: the field has 255 powers for as many chunks"),
        CHUNK,
        LAYOUT,
        WRITE,
        INTENT,
        JOURNAL,
        ],
        &rebuild::PARAMS,
    ]),
    capabilities: Capabilities { losses: 2, survives_cut: true, discards: false },
    ..ArrayEntry::new(|context: &ArrayContext<'_>, values: &Values| {
        let chunk = context.chunk(values)?;
        let (rows, options) = common(context, values, (values.word("layout", Rotation::named), 2), chunk, context.least().0 / chunk.0)?;
        built(rows, options)
    })
};
