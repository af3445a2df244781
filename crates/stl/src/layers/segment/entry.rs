//! The registry's entry of segments: its page, its parameters, and building it for a drive.

use super::{Layout, Rewrite, Segments};
use crate::entry::{BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry, does_not_fit};
use crate::parts::update::{JOURNAL, Journal};
use smrlab_disk::{BandLayout, Bands, DriveError};
use smrlab_units::Blocks;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

/// 64 KiB.
const CHUNK: u64 = 128;

const PAGE: &str = "\
Each band is cut by angle: segment a is the same arc of all its tracks, a column of chunks (64 KiB) that lie over each other.
A write destroys the chunks that lie behind it in its own segment and nothing else, so an update rewrites the segment's
tail, not the band's: with n arcs on a track that is one n-th of what `rmw` copies.

LBAs fill chunk after chunk of a segment, then the next segment of the band, then the next band. A write of chunk j reads
what holds data in chunk j (cause `fill`) and in the chunks behind it (cause `clean`), and writes all of it again, from j
on. It stops where as many chunks in a row hold nothing as the head reaches. With `rewrite=arc` only the angles that were
written are rewritten in the chunks behind.

Arcs are fixed by physical angle: where the drive's skew puts the index of a track into an arc, its chunk is two media
operations. Chunks of a segment follow each other at the same angle on neighbouring tracks, so reading a segment in order
costs about a revolution a chunk; that is what the layout pays for its cheap updates.

Bands that cross the edge of a recording zone, or have spare or slipped sectors, are not used, nor is what is left of a
track behind its last arc. The layout needs tracks, and damage that does not spread along them.

A power cut in the middle of a rewrite destroys chunks that were acknowledged long before. With `journal=on` each rewrite
goes to a journal first (bands at the end of the medium) and is replayed after a cut.

With `guards=shared` bands are shingled in opposite directions by twos and share the guard between them (wave-like recording):
2 N of 2 N + W - 1 tracks hold data instead of N of N + W - 1. The drive's interference is turned round for every second band then.
For runs only, without a journal and without a random-access zone.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "segment",
    aliases: &["segments", "hwsr"],
    summary: "bands cut by angle into segments; an update rewrites its segment's tail in place",
    reference: "Luo et al., DVS (segment layout of its section on shingled disks); Wan et al. 2012, HWSR",
    page: PAGE,
    idle: "nothing, by default and with any option: a segment's tail is rewritten while its write waits",
    params: &[
        Param::new("chunk", Kind::Size, "")
            .doc("size of a chunk; default: 64KiB, or a quarter of the shortest track where that is less"),
        Param::new("rewrite", Kind::Choice(&["chunks", "arc"]), "chunks")
            .doc("an update rewrites whole chunks, or of those behind it only the angles that were written"),
        Param::new("band", Kind::Band, "").doc(
            "size of a band: 64tracks (cylinders on cylinder layouts), 25MB or 50000blk, in whole \
             tracks, which are the chunks of a segment; give a unit, a bare number means tracks; \
             default: the drive's",
        ),
        HEAD_TRACKS,
        Param::new("guards", Kind::Choice(&["own", "shared"]), "own").doc(
            "each band has a guard behind it; or two that are shingled in opposite directions share \
             one",
        ),
        JOURNAL,
    ],
    tested: &["chunk=1blk", "chunk=5blk,band=2", "rewrite=arc,chunk=4blk", "chunk=3blk,journal=on,band=3"],
    ..LayerEntry::new(build)
};

/// Tracks of a band.
fn tracks(context: &BuildContext, values: &Values) -> u64 {
    let own = || context.drive.spec().bands.tracks.unwrap_or(4);
    let size = context.band_length(values, BandLength::Tracks);
    size.map_or_else(own, |size| context.tracks_of(size))
}

/// Tracks of bands that are to share guards.
pub(crate) fn shared_guards(context: &BuildContext, values: &Values) -> Option<u64> {
    (values.text("guards") == Some("shared")).then(|| tracks(context, values))
}

/// Two bands and the guard between them as one, which needs none behind it.
fn pairs(context: &BuildContext, length: u64) -> Result<Bands, DriveError> {
    let tracks = 2 * length + context.drive.head_width() - 1;
    Bands::new(context.drive.geometry(), BandLayout { tracks, head_width: 1, random_access: 0 })
}

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    let bands = match shared_guards(context, values) {
        Some(length) if values.on("journal") => {
            return Err(refuse(format!("bands of {length} tracks share their guards: journal=off only")));
        }
        Some(length) => pairs(context, length).map_err(|e| does_not_fit(&ENTRY, &e))?,
        None => context.bands(&ENTRY, Some(BandLength::Tracks(tracks(context, values))))?,
    };
    let (journal, count) = Journal::chosen(values, ENTRY.name, &bands)?;
    let count = count.min(context.counted(&bands));
    let shortest = context.drive.geometry().zones().map(|z| u64::from(z.sectors)).min().unwrap_or(1);
    let default = CHUNK.min((shortest / 4).max(1));
    let chunk = values.given("chunk", |v, key| v.size(key, Blocks(shortest)).0).unwrap_or(default);
    if chunk == 0 {
        return Err(refuse("a chunk has a block at least: use a larger chunk=".to_owned()));
    }
    let rewrite = if values.text("rewrite") == Some("arc") { Rewrite::Arc } else { Rewrite::Chunks };
    let layout = Layout::new(&context.drive, bands, count, chunk).map_err(refuse)?;
    Ok(Box::new(Segments::new(layout, rewrite, journal)))
}
