//! Where tracks lie, as far as destruction goes: a view of the drive's geometry that answers within nanoseconds. Blocks are counted with
//! slipped sectors here ([`raw_ranges`](Geometry::raw_ranges)), so that all tracks of a zone are equally long.

use smrlab_disk::geometry::Layout;
use smrlab_disk::{Geometry, TrackNo};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its number in the order of block addresses.
    pub index: u64,
    /// Its first block.
    pub start: u64,
    /// Blocks on it.
    pub sectors: u64,
    /// Sectors in a revolution, spare ones included.
    pub turn: u64,
    zone: usize,
    stroke: usize,
}

impl Track {
    /// One past the last block.
    pub fn end(&self) -> u64 {
        self.start + self.sectors
    }
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    block: u64,
    track: u64,
    sectors: u64,
    turn: u64,
}

/// Tracks of which is remembered where they begin on their revolution.
const SHIFTS: usize = 1024;

/// The tracks of a drive. Block addresses rise in the shingling direction of each stroke.
#[derive(Debug)]
pub struct Tracks {
    geometry: Arc<Geometry>,
    zones: Vec<Zone>,
    /// First tracks of the strokes (tracks side by side in PBA order), and the end.
    strokes: Vec<u64>,
    /// Tracks between neighbours on a surface within a stroke.
    unit: u64,
    /// Whether neighbours within a stroke are exactly `unit` apart.
    regular: bool,
    /// Per track, modulo [`SHIFTS`]: its number plus one, and in the lower half the sectors of its first block from the
    /// reference line.
    shifts: Vec<AtomicU64>,
}

impl Tracks {
    /// A view of `geometry`.
    pub fn new(geometry: Arc<Geometry>) -> Self {
        let mut block = 0;
        let zones = geometry.zones().map(|z| {
            let sectors = geometry.usable_sectors(z.first_track);
            let zone = Zone { block, track: z.first_track.0, sectors, turn: u64::from(z.sectors) };
            block += sectors * z.tracks;
            zone
        });
        let zones = zones.collect();
        let mut strokes: Vec<u64> = geometry.strokes().map(|s| s.first.0).collect();
        strokes.push(geometry.tracks());
        let unit = geometry.strokes().next().map_or(1, |s| s.unit);
        // Where every second cylinder is filled backwards, neighbours on a surface are at changing distances.
        let regular = match geometry.spec().layout {
            Layout::Cylinder { alternate } => !alternate,
            Layout::ZoneAlternate => false,
            Layout::Surface | Layout::Hybrid { .. } | Layout::Listed => true,
        };
        let shifts = (0..SHIFTS).map(|_| AtomicU64::new(0)).collect();
        Self { geometry, zones, strokes, unit, regular, shifts }
    }

    /// The geometry that it is a view of.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// Blocks in all, without slipped sectors.
    pub fn blocks(&self) -> u64 {
        self.geometry.blocks().0
    }

    /// Tracks in all.
    pub fn count(&self) -> u64 {
        self.geometry.tracks()
    }

    /// The track of a block.
    #[inline]
    pub fn at(&self, block: u64) -> Track {
        let zone = self.zones.partition_point(|z| z.block <= block) - 1;
        let z = &self.zones[zone];
        let index = z.track + (block - z.block) / z.sectors;
        self.track(zone, index, self.stroke_of(index))
    }

    /// The track of a number below [`count`](Self::count).
    pub fn by_index(&self, index: u64) -> Track {
        let zone = self.zones.partition_point(|z| z.track <= index) - 1;
        self.track(zone, index, self.stroke_of(index))
    }

    #[inline]
    fn stroke_of(&self, index: u64) -> usize {
        self.strokes.partition_point(|s| *s <= index) - 1
    }

    #[inline]
    fn track(&self, zone: usize, index: u64, stroke: usize) -> Track {
        let z = &self.zones[zone];
        let start = z.block + (index - z.track) * z.sectors;
        Track { index, start, sectors: z.sectors, turn: z.turn, zone, stroke }
    }

    /// The track that lies `distance` tracks upstream on the same surface: a write there destroys `track` if the head is
    /// wider than `distance`. `None` beyond the edge.
    #[inline]
    pub fn upstream(&self, track: &Track, distance: u64) -> Option<Track> {
        let index = track.index.wrapping_sub(distance * self.unit);
        if self.regular
            && index >= self.zones[track.zone].track
            && index < track.index
            && index >= self.strokes[track.stroke]
        {
            return Some(self.track(track.zone, index, track.stroke));
        }
        self.neighbour(track, -(distance as i64))
    }

    /// The track that a write to `track` destroys at `distance` tracks downstream.
    #[inline]
    pub fn downstream(&self, track: &Track, distance: u64) -> Option<Track> {
        let index = track.index + distance * self.unit;
        let zone_end = self.zones.get(track.zone + 1).map_or(self.count(), |z| z.track);
        if self.regular && index < zone_end && index < self.strokes[track.stroke + 1] {
            return Some(self.track(track.zone, index, track.stroke));
        }
        self.neighbour(track, distance as i64)
    }

    #[cold]
    fn neighbour(&self, track: &Track, distance: i64) -> Option<Track> {
        self.geometry.neighbour(TrackNo(track.index), distance).map(|t| self.by_index(t.0))
    }

    /// Whether two tracks lie on one stroke.
    pub fn same_stroke(&self, a: &Track, b: &Track) -> bool {
        a.stroke == b.stroke
    }

    /// Whether `block` is the first of a stroke.
    pub fn begins_stroke(&self, block: u64, track: &Track) -> bool {
        block == track.start && track.index == self.strokes[track.stroke]
    }

    /// Tracks between neighbours on one surface.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Sectors from the reference line to the track's first block.
    #[inline]
    fn shift(&self, track: &Track) -> u64 {
        let known = &self.shifts[track.index as usize % SHIFTS];
        let entry = known.load(Relaxed);
        if entry >> 32 == track.index + 1 {
            return entry & u64::from(u32::MAX);
        }
        let shift = self.geometry.start_slots(TrackNo(track.index)).of(0) % track.turn;
        if track.index < u64::from(u32::MAX) {
            known.store((track.index + 1) << 32 | shift, Relaxed);
        }
        shift
    }

    /// The sectors of `writer` that destroy sectors `from..from + n` of `victim`: at most two ranges of block addresses,
    /// each with the first sector of the victims that it destroys. Between tracks of unequal length only the ranges
    /// count, and they may be too large.
    ///
    /// The mapping is that of the emulator's paper with its rounding repaired (Pitchumani 2012, section 3.2.2): towards fewer sectors
    /// several writers share a victim, towards more a writer destroys all that it reaches into.
    pub fn writers(&self, victim: &Track, from: u64, n: u64, writer: &Track) -> [(u64, Range<u64>); 2] {
        let (tv, tw) = (victim.turn, writer.turn);
        let angle = (from + self.shift(victim)) % tv;
        let (first, n) = if tv == tw {
            (angle, n)
        } else if angle + n > tv {
            // Over the reference line: the whole track is an answer that is never too small.
            return [(from, writer.start..writer.end()), (0, 0..0)];
        } else {
            let first = if tw > tv { (angle * tw).div_ceil(tv) } else { angle * tw / tv };
            (first, ((angle + n) * tw).div_ceil(tv) - first)
        };
        let slot = (first + tw - self.shift(writer)) % tw;
        let head = n.min(tw - slot);
        let part = |victim: u64, slot: u64, n: u64| {
            let end = (slot + n).min(writer.sectors);
            (victim, writer.start + slot..writer.start + end.max(slot))
        };
        [part(from, slot, head), part(from + head, 0, n - head)]
    }
}
