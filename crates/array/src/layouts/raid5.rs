//! RAID-5: rows of chunks, each with a parity chunk.

use super::parity::method::Preference;
use super::parity::rows::Rotation;
use super::parity::{INTENT, JOURNAL, LAYOUT, ParityOptions, WRITE, built, common, log};
use super::rebuild;
use crate::Capabilities;
use crate::entry::{ArrayContext, ArrayEntry, BuildResult, CHUNK, MOST_DISKS};
use smrlab_units::Blocks;
use smrlab_units::spec::{Kind, Param, SpecError, Values, joined};

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

With `parity=log` a read-modify-write reads no old parity and writes none: it appends the XOR of old and new data to a log of the drive that has the parity, 3 requests instead of 4, or, with `log_on=ssd`, 2 and one to the SSD. Rows are in regions of `log_region` of each drive, with a log of `log` for each drive. When one is full, the region's logs are read, each at once, and the parity of their rows is read and written, each row once however often it was written; nobody has these rows meanwhile. Writes that find no room update the parity in place. A dead drive's chunks are made from all others and the images in the log; while a drive is dead nothing more is logged. With few chunks of parity in a region (large chunks) or rows that are written again and again a log holds many images of each parity chunk, and pays; where each row is written once before the log is full it does not. With `intent=on` a power cut is followed as without a log. A cut together with a dead drive loses blocks of rows that were being written, or whose log was being applied: an image is a difference, of no use where nobody knows whether the data that it belongs to were written, so the log is no journal. Not with `journal=on`, whose write to the SSD for each row would take back what the log wins: where a cut and a dead drive together must lose nothing, take `journal=on` alone.

Discards reach the drives where they take whole rows; blocks do not read as zeroes afterwards unless the drives say so.",
    params: &joined::<15>(&[
        &[
        Param::new("disks", Kind::Count(3, MOST_DISKS), "5").doc("drives, parity included"),
        CHUNK,
        LAYOUT,
        WRITE,
        Param::new("parity", Kind::Choice(&["write", "log"]), "write")
            .doc("the parity of a part of a row is written at once; or what changes of it is logged"),
        Param::new("log", Kind::Size, "1MiB").doc("log that a region has for each drive, with parity=log"),
        Param::new("log_region", Kind::Size, "64MiB")
            .doc("blocks of a drive whose rows have logs of their own, at least a chunk"),
        Param::new("log_on", Kind::Choice(&["drives", "ssd"]), "drives")
            .doc("logs are at the end of the drives, or on an SSD"),
        INTENT,
        JOURNAL,
        ],
        &rebuild::PARAMS,
    ]),
    capabilities: Capabilities { losses: 1, survives_cut: true, discards: false },
    ..ArrayEntry::new(build)
};

/// Where parity is logged, and how many rows are left.
fn logs(values: &Values, chunk: Blocks, least: Blocks) -> Result<(log::LogSettings, u64), SpecError> {
    let region = values.size("log_region", least);
    let rows = (region.0 / chunk.0).max(1);
    let ssd = values.text("log_on") == Some("ssd");
    let off = log::LogSettings { rows, ..log::LogSettings::OFF };
    if values.text("parity") != Some("log") {
        return Ok((off, least.0 / chunk.0));
    }
    let blocks = values.size("log", least).0;
    if blocks == 0 {
        return Err(values.bad("log", "at least a block"));
    }
    if values.on("journal") {
        return Err(values.bad(
            "journal",
            "off with parity=log, which wins nothing behind a journal: leave out one of them",
        ));
    }
    if chunk.0 > u64::from(u32::MAX) {
        return Err(values.bad("chunk", "with parity=log less than 2 TiB"));
    }
    if ssd {
        return Ok((log::LogSettings { blocks, ssd, ..off }, least.0 / chunk.0));
    }
    let whole = least.0 / (rows * chunk.0 + blocks);
    let rest = least.0 - whole * (rows * chunk.0 + blocks);
    let all = whole * rows + rest.saturating_sub(blocks) / chunk.0;
    if all == 0 {
        return Err(values.bad("log", format!("less than the {least} blocks of a drive")));
    }
    Ok((log::LogSettings { blocks, ..off }, all))
}

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let chunk = context.chunk(values)?;
    let (log, rows) = logs(values, chunk, context.least())?;
    let (rows, options) = common(context, values, (values.word("layout", Rotation::named), 1), chunk, rows)?;
    let preference = match options.preference {
        Preference::Cheapest { .. } => Preference::Cheapest { logged: log.blocks > 0 },
        always @ Preference::Always(_) => always,
    };
    built(rows, ParityOptions { preference, log, ..options })
}
