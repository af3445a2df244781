//! Where the zones lie: conventional ones on tracks that are far enough apart, or that are not shingled, the others each on tracks of their
//! own with a guard behind them, so that no write harms another zone.

use super::table::PHYSICAL;
use crate::entry::BuildContext;
use smrlab_disk::geometry::Stroke;
use smrlab_disk::{BandId, Bands, DriveError, DriveModel, Geometry, Interference, RandomAccess, TrackNo};
use smrlab_units::reciprocal::RunIndex;
use smrlab_units::{Blocks, Pba, counted};

/// See the [module](self).
pub(super) struct Places {
    /// The zones that have a write pointer.
    pub bands: Bands,
    /// Host blocks of the conventional zones, and the tracks on which they lie: the host's first block of each, and the track's.
    conventional: u64,
    tracks: RunIndex,
    starts: Vec<Pba>,
    /// From the beginning of a zone to that of the next.
    pub size: u64,
    /// Blocks of a zone with a write pointer.
    pub capacity: u64,
    /// Blocks that the last zone lacks.
    short: u64,
}

/// How long zones are, in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// From the beginning of a zone to that of the next.
    pub size: u64,
    /// What a zone with a write pointer has of it.
    pub capacity: u64,
    /// What the last zone has, where that is less.
    pub runt: Option<u64>,
}

/// The share of conventional zones where none is given: what drives have that are sold.
const SHARE: f64 = 0.01;

/// Zones of these lengths, of which `share` are conventional, and no more than the drive counts.
pub(super) fn lay(
    context: &BuildContext,
    lengths: Lengths,
    share: Option<f64>,
) -> Result<Places, DriveError> {
    let drive = &context.drive;
    let geometry = drive.geometry();
    let Lengths { size, capacity, .. } = lengths;
    if matches!(drive.interference(), Interference::Blocks(_)) {
        return lay_unshingled(drive, lengths, share);
    }
    let share = share.unwrap_or(SHARE);
    let guard = drive.head_width() - 1;
    let most = drive.counted_blocks().0 / capacity;
    let all = (starts(geometry, capacity, guard, 0).len() as u64).min(most);
    let wanted = if share > 0.0 { ((all as f64 * share).round() as u64).max(1) } else { 0 };
    let (rows, tracks) = set_aside(geometry, wanted * size, guard + 1).unwrap_or_default();
    // As many whole zones as were asked for lie on the tracks, or none; of the last track some may be left.
    let found = if tracks.0.is_empty() { 0 } else { wanted };
    let mut places = starts(geometry, capacity, guard, rows);
    places.truncate(most.saturating_sub((wanted * size).div_ceil(capacity)) as usize);
    let bands = at(&places, capacity, (found > 0).then_some("a smaller conventional="))?;
    Ok(Places::new(bands, lengths, found, tracks))
}

/// The same on a drive with a block profile: conventional zones lie on the tracks that are not shingled, one behind the other.
fn lay_unshingled(drive: &DriveModel, lengths: Lengths, share: Option<f64>) -> Result<Places, DriveError> {
    let Lengths { size, capacity, .. } = lengths;
    let (counted, aside) = (drive.counted_blocks().0, drive.unshingled().0);
    let room = aside / size;
    let wanted = match share {
        Some(share) if share > 0.0 => ((counted as f64 * share / size as f64).round() as u64).max(1),
        Some(_) => 0,
        None => room,
    };
    if wanted > room {
        let (tracks, g) = (drive.spec().bands.random_access, drive.geometry());
        let last = g.track_of(Pba((wanted * size).min(g.blocks().0) - 1));
        let unit = g.strokes().next().map_or(1, |stroke| stroke.unit);
        let reason = format!(
            "they do not fit on the {tracks} tracks of {} that are not shingled: give the drive random_access={}, or use a smaller \
             conventional= or zone=",
            drive.name(),
            last.0 / unit + 1
        );
        return Err(DriveError::one("conventional zones", reason));
    }
    // What is left of those tracks is less than a zone: where the medium has room for one more zone, there is one.
    let number = counted.saturating_sub(aside) / capacity..=counted.saturating_sub(room * size) / capacity;
    let bands = drive.shingled_bands(Blocks(capacity), number, "zone")?;
    let tracks = if wanted > 0 { (vec![0], vec![Pba(0)]) } else { Tracks::default() };
    Ok(Places::new(bands, lengths, wanted, tracks))
}

/// Bands of this many blocks, all there is room for behind the tracks that are set aside for random access.
pub(super) fn all_bands(context: &BuildContext, size: u64) -> Result<Bands, DriveError> {
    let drive = &context.drive;
    if matches!(drive.interference(), Interference::Blocks(_)) {
        return drive.block_bands(Blocks(size));
    }
    let aside = drive.spec().bands.random_access;
    let starts = starts(drive.geometry(), size, drive.head_width() - 1, aside);
    at(&starts, size, (aside > 0).then_some("a drive with a smaller random_access="))
}

/// Zones of `size` blocks at `starts`; `remedy`: what would leave more room for them.
fn at(starts: &[Pba], size: u64, remedy: Option<&str>) -> Result<Bands, DriveError> {
    if starts.is_empty() {
        let smaller = (size > PHYSICAL).then_some("a smaller zone=");
        let all: Vec<_> = smaller.into_iter().chain(remedy).chain(["a larger drive"]).collect();
        let reason = format!(
            "not one of {} and the free tracks behind it fits on a stroke of this drive: use {}",
            counted(size, "block"),
            all.join(" or ")
        );
        return Err(DriveError::one("zones", reason));
    }
    Bands::at(starts, Blocks(size))
}

/// Places of zones on each stroke, behind `rows` rows that are set aside.
fn starts(geometry: &Geometry, size: u64, guard: u64, rows: u64) -> Vec<Pba> {
    let mut out = Vec::new();
    for (stroke, aside) in geometry.set_aside(rows) {
        let row = |n: u64| TrackNo(stroke.first.0 + n * stroke.unit);
        let mut at = aside;
        while let Some(used) =
            rows_from(geometry, &stroke, at, size).filter(|used| used + guard <= rows_in(&stroke))
        {
            out.push(geometry.track_start(row(at)));
            at = used + guard;
        }
    }
    out
}

fn rows_in(stroke: &Stroke) -> u64 {
    stroke.tracks / stroke.unit
}

/// One past the last row that a zone from row `at` of a stroke on needs.
fn rows_from(geometry: &Geometry, stroke: &Stroke, at: u64, size: u64) -> Option<u64> {
    if at >= rows_in(stroke) {
        return None;
    }
    let first = geometry.track_start(TrackNo(stroke.first.0 + at * stroke.unit));
    let last = Pba(first.0 + size - 1);
    if last.0 >= geometry.blocks().0 {
        return None;
    }
    let track = geometry.track_of(last).0 - stroke.first.0;
    (track < stroke.tracks).then(|| track / stroke.unit + 1)
}

/// Tracks for `blocks` blocks that can be written in place: the host's first block of each, and its own.
type Tracks = (Vec<u64>, Vec<Pba>);

/// How many rows must be set aside for such tracks, and the tracks.
fn set_aside(geometry: &Geometry, blocks: u64, width: u64) -> Option<(u64, Tracks)> {
    if blocks == 0 {
        return None;
    }
    let unit = geometry.strokes().next()?.unit;
    let mut rows = blocks / (geometry.blocks().0 / geometry.tracks()).max(1) / unit * width;
    loop {
        // Tracks differ in length, and the end of a stroke is left out: some more, until there is room.
        rows += (rows / 64).max(1) * width;
        let zone = RandomAccess::of(geometry, rows, width)?;
        let (mut tracks, mut at) = ((Vec::new(), Vec::new()), 0);
        for i in 0..zone.usable {
            if at >= blocks {
                return Some((rows, tracks));
            }
            let track = zone.track(i);
            tracks.0.push(at);
            tracks.1.push(geometry.track_start(track));
            at += geometry.track_blocks(track).0;
        }
        if rows > geometry.tracks() {
            return None;
        }
    }
}

impl Places {
    fn new(
        bands: Bands,
        Lengths { size, capacity, runt }: Lengths,
        conventional: u64,
        (firsts, starts): Tracks,
    ) -> Self {
        let conventional = conventional * size;
        let firsts = if firsts.is_empty() { vec![0] } else { firsts };
        let tracks = RunIndex::new(firsts, conventional.max(1));
        let short = runt.map_or(0, |runt| capacity - runt);
        Self { bands, conventional, tracks, starts, size, capacity, short }
    }

    /// Conventional zones.
    pub(super) fn conventional(&self) -> u64 {
        self.conventional / self.size
    }

    /// Blocks in all zones and gaps.
    pub(super) fn blocks(&self) -> u64 {
        self.conventional + self.bands.len() * self.size - self.short
    }

    /// Where a block of the host's lies, and how many from there on lie behind each other, of `blocks` that do not leave its zone.
    #[inline]
    pub(super) fn place(&self, lba: u64, blocks: u64) -> (Pba, u64) {
        if lba < self.conventional {
            let track = self.tracks.find(lba);
            let offset = lba - self.tracks.start(track);
            let end =
                if track + 1 < self.starts.len() { self.tracks.start(track + 1) } else { self.conventional };
            return (self.starts[track] + Blocks(offset), blocks.min(end - lba));
        }
        let (band, offset) = ((lba - self.conventional) / self.size, (lba - self.conventional) % self.size);
        (self.bands.start(BandId(band)) + Blocks(offset), blocks)
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        self.bands.bytes() + self.tracks.bytes() + size_of_val(self.starts.as_slice()) as u64
    }
}
