//! The registry entry.

use super::rows::{Rotation, Rows};
use super::write::{Method, Preference};
use super::{Options, Raid5};
use crate::Capabilities;
use crate::entry::{ArrayContext, ArrayEntry, BuildResult};
use crate::layouts::rebuild::Order;
use smrlab_units::spec::{Kind, Param, Values};
use smrlab_units::{BLOCK_BYTES, Blocks, SimTime};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "raid5",
    summary: "chunks in rows, each row with a parity chunk that goes round; survives the loss of one drive",
    reference: "Patterson, Gibson, Katz (SIGMOD 1988); layouts as in Linux md",
    page: "\
Row `r` has a chunk on each drive: one is the XOR of the others. A write of whole rows writes data and parity; any other \
reads first, either the old data and the old parity (read-modify-write, `w + 1` reads of chunks for `w` written) or the \
chunks that are not written (reconstruct-write, `N - w`), whichever is cheaper, and then writes `w + 1`. A row is locked \
from the first read to the last write.

With one drive dead, its chunks are made from all others (degraded reads), and writes keep the parity such that this \
stays true. A replaced drive is rebuilt in units of `rebuild_unit`, `rebuild_depth` at a time, not faster than \
`rebuild_rate`, in the order `rebuild_order`: by address; as a classical resilver follows a filesystem's tree (`metadata`: \
anywhere); or such units gathered in batches of `rebuild_batch` and sorted. Rows that are not rebuilt yet are served as \
degraded ones. A second death loses data: requests that need them are refused.

A power cut can leave a row whose parity does not fit its data; with `intent=on` rows being written are remembered in \
memory that survives, and their parity is made good after the cut. A cut together with a dead drive still loses blocks of \
such rows that nobody was writing (the write hole). With `journal=on` the new blocks and the new parity of a row are on an SSD \
(`ssd_latency`, `ssd_rate`) before its drives are written, and are written again after a cut: nothing is lost then, for one write \
to the SSD a row.

Discards reach the drives where they take whole rows; blocks do not read as zeroes afterwards unless the drives say so.",
    params: &[
        Param { name: "disks", kind: Kind::Count(3, 64), default: "5", doc: "drives, parity included" },
        Param { name: "chunk", kind: Kind::Size, default: "64KiB", doc: "consecutive blocks on one drive" },
        Param {
            name: "layout",
            kind: Kind::Choice(Rotation::NAMES),
            default: "left-asymmetric",
            doc: "how parity goes round",
        },
        Param {
            name: "write",
            kind: Kind::Choice(&["cheapest", "modify", "reconstruct"]),
            default: "cheapest",
            doc: "how a part of a row is written: read-modify-write, reconstruct-write, or the one with fewer reads",
        },
        Param {
            name: "intent",
            kind: Kind::Switch,
            default: "off",
            doc: "rows that are being written are remembered, and resynchronised after a power cut",
        },
        Param {
            name: "journal",
            kind: Kind::Switch,
            default: "off",
            doc: "rows are on an SSD before their drives are written, so that a power cut and a lost drive together lose nothing",
        },
        Param {
            name: "rebuild_unit",
            kind: Kind::Size,
            default: "1MiB",
            doc: "blocks of the replaced drive that are rebuilt at a time, at least a chunk",
        },
        Param { name: "rebuild_depth", kind: Kind::Count(1, 1024), default: "1", doc: "units under way at a time" },
        Param {
            name: "rebuild_rate",
            kind: Kind::Real(0.0, 1e6),
            default: "0",
            doc: "at most so many MB/s of the replaced drive; 0: as fast as the drives are",
        },
        Param {
            name: "rebuild_order",
            kind: Kind::Choice(&["address", "metadata", "sorted"]),
            default: "address",
            doc: "which unit is rebuilt next",
        },
        Param {
            name: "rebuild_batch",
            kind: Kind::Count(1, 1 << 30),
            default: "1024",
            doc: "units in a batch, with rebuild_order=sorted",
        },
    ],
    capabilities: Capabilities { losses: 1, survives_cut: true, discards: false },
    disks: |values| values.count("disks").unwrap_or(5) as u32,
    build,
};

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let chunk = context.unit(values, "chunk")?;
    let least = context.disks().iter().copied().min().unwrap_or_default();
    let layout = values.text("layout").and_then(|l| Rotation::NAMES.iter().position(|n| *n == l));
    let rotation = Rotation::ALL[layout.unwrap_or(0)];
    let disks = context.disks().len() as u64;
    let rows = Rows { chunk: chunk.0, disks, rotation, rows: least.0 / chunk.0 };
    let preference = match values.text("write") {
        Some("modify") => Preference::Always(Method::Modify),
        Some("reconstruct") => Preference::Always(Method::Reconstruct),
        _ => Preference::Cheapest,
    };
    let unit = values.size("rebuild_unit", least).unwrap_or(Blocks(2048));
    let unit_rows = (unit.0 / chunk.0).clamp(1, rows.rows.max(1));
    let bytes = (unit_rows * chunk.0 * BLOCK_BYTES) as f64;
    let rate = values.real("rebuild_rate").unwrap_or(0.0) * 1e6;
    let pace = SimTime(if rate > 0.0 { (bytes / rate * 1e9).round() as u64 } else { 0 });
    let order = match values.text("rebuild_order") {
        Some("metadata") => Order::Metadata,
        Some("sorted") => Order::Sorted(values.count("rebuild_batch").unwrap_or(1024)),
        _ => Order::Address,
    };
    let depth = values.count("rebuild_depth").unwrap_or(1);
    let (intent, journal, seed) = (values.on("intent"), values.on("journal"), context.seed);
    if journal && disks * chunk.0 > u64::from(u32::MAX) {
        return Err(values.bad("chunk", "with journal=on rows of less than 2 TiB"));
    }
    let options = Options { preference, unit_rows, depth, pace, order, intent, journal, seed };
    Ok(Box::new(Raid5::new(rows, options)))
}
