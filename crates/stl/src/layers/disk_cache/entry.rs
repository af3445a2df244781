//! The registry's entry of the disk cache: its page, its parameters, and building it for a drive.

use super::{Cleaning, DiskCache, DiskCacheOptions, Placement};
use crate::entry::{BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry, does_not_fit};
use smrlab_disk::{BandId, DriveModel, Interference, TrackNo};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Pba};

const PAGE: &str = "\
The medium is cut into bands of equal length. A share of them (`cache`) is cache, the others are native: band i of the
host's space lies in native band i, and its writes go to cache band `i mod M` (M cache bands; 99 native bands for each at
1 %). A write is appended to its cache band; a read takes every block from where its newest copy lies.

When a cache band is full it is cleaned before the write goes on: its used part is read in one piece, then each native band
that has blocks in it, in ascending order, is read, patched in memory and written as a whole. The cache band is then empty.
A write longer than what is left is appended in parts with cleaning in between. A block that is written again is appended
again; the older copy takes up room until the cache band is cleaned. Cleaning is not interrupted.

Options beyond the paper:

- `cleaning=partial` rewrites only the `clean_bands` native bands with the most cached blocks and moves what is left to the
  front of the cache band. As the paper says, this shortens an outage but wins nothing on random writes.
- `association=dynamic` gives a native band, at the first block that is cached of it, to the cache band with the most room.
- `idle=TIME` cleans one native band after the other of the fullest cache band while the drive is idle.
- `gc_all_assoc=on` rewrites every associated native band, present or not: the reading of the paper's Table I in which 21
  cleanings make 2058 rewrites.
- `placement=per-set` puts a cache band before every group of native bands instead of all of them in front.
- `granularity=8` maps units of 4 KiB. Writes that cover only a part of one read the rest first (cause `fill`).

Power cuts: without a journal a cut in mid-rewrite loses blocks of the native band that were acknowledged long before (the
paper says so), and the layer does not count as one that survives cuts (`survives_cut` is false). With `journal=on` it does: a
band is first written to a scratch band at the end of the medium; it costs one more band write a rewrite (cause `journal`). The map is assumed to survive (`--metadata nv`).

On a drive with tracks, bands have `band` blocks, begin with a track, never cross a stroke, and are followed by what is left of
their last track and the `k - 1` tracks that the head needs as a guard; a size that is no whole number of tracks wastes the
rest. On a one-dimensional drive the guards lie outside the counted blocks, and bands too small for that are refused. Bands
that do not make a full set are not used. On small drives the default band is halved until at least 16 fit. Discards drop cached blocks, and read as zeroes until the blocks are written again.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "disk-cache",
    aliases: &["sadc", "set-associative"],
    summary: "set-associative cache bands on the medium; a full one is written home band by band",
    reference: "Cassuto et al. 2010, Indirection systems for shingled-recording disk drives, section IV",
    page: PAGE,
    idle: "nothing by default: the cache stays as full as it is. With `idle=TIME` it cleans native band after native band of the fullest cache band, from so long after the last request until the cache is empty",
    params: PARAMS,
    tested: &[
        "granularity=8,cache=20%",
        "journal=on,cleaning=partial,clean_bands=2,band=16",
        "association=dynamic,placement=per-set,band=24,cache=10%",
        "gc_all_assoc=on,idle=10ms,band=16,cache=20%",
        "journal=on,gc_all_assoc=on,idle=10ms,band=16,cache=20%",
        "journal=on,association=dynamic,placement=per-set,band=24,cache=10%",
        "journal=on,association=dynamic,gc_all_assoc=on,idle=10ms,cleaning=partial,clean_bands=3,band=24,cache=20%",
        "journal=on,granularity=8,cache=20%",
    ],
    ..LayerEntry::new(build)
};

const PARAMS: &[Param] = &[
    Param::new("cache", Kind::Share(0.0001, 0.5), "1%")
        .doc("share of the bands that is cache (paper: 1 to 10 %)"),
    Param::new("band", Kind::Band, "").doc(
        "size of a band: 50000blk, 25MB or 4tracks (of the average length); give a unit, a bare number \
         means blocks; default: the drive's bands (50 000 blocks in the paper), less on small drives",
    ),
    Param::new("placement", Kind::Choice(&["contiguous", "per-set"]), "contiguous")
        .doc("cache bands at the lowest PBAs, or one before each group of native bands"),
    Param::new("cleaning", Kind::Choice(&["full", "partial"]), "full")
        .doc("rewrite every native band present in a full cache band, or only those with the most blocks"),
    Param::new("clean_bands", Kind::Count(1, 1 << 20), "10")
        .doc("native bands that a partial cleaning rewrites"),
    Param::new("association", Kind::Choice(&["fixed", "dynamic"]), "fixed").doc(
        "native band i to cache band i mod M, or to the one with the most room at its first cached \
         block",
    ),
    Param::new("gc_all_assoc", Kind::Switch, "off").doc(
        "cleaning rewrites every associated native band, present or not (which Table I of the paper \
         takes)",
    ),
    Param::new("idle", Kind::Time, "")
        .doc("idle time after which native bands are cleaned in the background; default: never"),
    Param::new("journal", Kind::Switch, "off")
        .doc("write each band to a scratch band first, so that a power cut loses nothing"),
    Param::new("granularity", Kind::Choice(&["1", "8"]), "1").doc("blocks in a unit of the map"),
    HEAD_TRACKS,
];

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let asked = context.band_length(values, |n| BandLength::Blocks(Blocks(n)));
    let (band, starts) = match asked.map(|size| context.blocks_of(size).0) {
        Some(band) => (band, lay(&context.drive, band)?),
        None => default_bands(context)?,
    };
    let options = DiskCacheOptions {
        cache: values.share("cache"),
        placement: match values.text("placement") {
            Some("per-set") => Placement::PerSet,
            _ => Placement::Contiguous,
        },
        cleaning: match values.text("cleaning") {
            Some("partial") => Cleaning::Partial(values.count("clean_bands") as u32),
            _ => Cleaning::Full,
        },
        dynamic: values.text("association") == Some("dynamic"),
        all_associated: values.on("gc_all_assoc"),
        granularity: if values.text("granularity") == Some("8") { 8 } else { 1 },
        journal: values.on("journal"),
        idle: values.given("idle", Values::time),
    };
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    if starts.len() < 2 {
        return Err(refuse(format!(
            "{} of {band} blocks on this drive, and it takes two: {}",
            if starts.is_empty() { "there is no room for a band" } else { "there is room for one band" },
            match largest(&context.drive, band) {
                0 => "use a larger drive".to_owned(),
                fits => format!("band={fits}blk is the largest that fits"),
            }
        )));
    }
    Ok(Box::new(DiskCache::new(&starts, band, options).map_err(refuse)?))
}

/// Where bands of `band` blocks begin, as many as the drive holds. On a drive with tracks each begins with a track (or
/// cylinder), and the guard behind it is the rest of its last track and the tracks that the head touches beside that.
fn lay(drive: &DriveModel, band: u64) -> Result<Vec<Pba>, SpecError> {
    if matches!(drive.interference(), Interference::Blocks(_)) {
        let bands = drive.block_bands(Blocks(band)).map_err(|e| does_not_fit(&ENTRY, &e))?;
        return Ok((0..bands.len()).map(|b| bands.start(BandId(b))).collect());
    }
    let geometry = drive.geometry();
    let most = drive.counted_blocks().0 / band;
    let mut starts = Vec::new();
    for (stroke, mut row) in geometry.set_aside(drive.spec().bands.random_access) {
        let rows = stroke.tracks / stroke.unit;
        let end = geometry.track_start(TrackNo(stroke.first.0 + stroke.tracks));
        while row < rows && (starts.len() as u64) < most {
            let first = geometry.track_start(TrackNo(stroke.first.0 + row * stroke.unit));
            if first.0 + band > end.0 {
                break;
            }
            let last = geometry.track_of(Pba(first.0 + band - 1));
            let next = (last.0 - stroke.first.0) / stroke.unit + drive.head_width();
            if next > rows {
                break;
            }
            starts.push(first);
            row = next;
        }
    }
    Ok(starts)
}

/// The largest band below `band`, in whole units of 4 KiB, of which two fit; 0: none.
fn largest(drive: &DriveModel, band: u64) -> u64 {
    let (mut fits, mut not) = (0, band.div_ceil(8));
    while not - fits > 1 {
        let middle = fits.midpoint(not);
        let enough = lay(drive, middle * 8).is_ok_and(|starts| starts.len() >= 2);
        *(if enough { &mut fits } else { &mut not }) = middle;
    }
    fits * 8
}

/// Bands fewer than this are halved where the user gave no size.
const FEW: usize = 16;

/// The drive's bands in blocks: as they are, or as many blocks as its bands of tracks have on the average, in whole units;
/// smaller ones where only a few would fit.
fn default_bands(context: &BuildContext) -> Result<(u64, Vec<Pba>), SpecError> {
    let defaults = context.drive.spec().bands;
    let own = BandLength::Tracks(defaults.tracks.unwrap_or(4));
    let mut band = defaults.blocks.map_or((context.blocks_of(own).0 / 8 * 8).max(8), |b| b.0);
    let mut starts = lay(&context.drive, band)?;
    while starts.len() < FEW && band > 8 {
        let less = (band / 2 / 8 * 8).max(8);
        // Where guards cannot be kept outside the size, larger bands have to do.
        let Ok(more) = lay(&context.drive, less) else { break };
        (band, starts) = (less, more);
    }
    Ok((band, starts))
}
