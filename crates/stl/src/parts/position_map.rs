//! The bijection of static maps: LBA to (band, track) by an [`Order`], without a table of blocks.
//!
//! Bands of equal shape that follow each other form an *area*; a drive with recording zones or slipped sectors has
//! several. The order is applied to all areas together, phase by phase: LBAs first fill the order's first phase in every
//! area, then its second. So a share of the LBA space fills the same positions on every part of the drive, and the
//! bijection is exact whatever the track lengths are. On cylinder layouts a position is a whole cylinder.

use crate::parts::order::Order;
use smrlab_disk::{BandId, Bands, Geometry, TrackNo};
use smrlab_units::reciprocal::{Reciprocal, RunIndex};
use smrlab_units::{Blocks, Lba, Pba};

/// A track within the part of a band that a phase fills.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Offset among the blocks that the phase fills of a band.
    in_phase: u64,
    /// Offset in the band.
    in_band: u64,
    blocks: u64,
}

/// One phase in one area.
#[derive(Clone, Debug)]
struct Segment {
    lba: u64,
    first_band: u64,
    /// Blocks that the phase fills of each band.
    run: Reciprocal,
    /// Length of all tracks, where they are equal; else [`UNEQUAL`].
    track: Reciprocal,
    /// Offset in a band of the last of its positions, whether the phase fills it or not.
    last: u64,
    slots: Vec<Slot>,
}

/// More blocks than a track has.
const UNEQUAL: u64 = u64::MAX;

/// Bands of equal shape.
#[derive(Clone, Debug)]
struct Area {
    first_band: u64,
    bands: u64,
    /// Blocks of each track.
    tracks: Vec<u64>,
}

/// Part of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The band.
    pub band: BandId,
    /// First block.
    pub pba: Pba,
    /// Blocks up to the end of the track.
    pub blocks: Blocks,
    /// Blocks of the whole track.
    pub track: Blocks,
    /// The first block of the band's last position, behind which there is nothing but the guard.
    pub last: Pba,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct PositionMap {
    segments: Vec<Segment>,
    by_lba: RunIndex,
    blocks: u64,
    /// The first block of the positions that the order fills last; 0 where it fills all together.
    pub last_phase: Lba,
}

impl PositionMap {
    /// Maps onto the first `count` of `bands`, which must have `order.tracks()` positions.
    pub fn new(geometry: &Geometry, bands: &Bands, count: u64, order: &Order) -> Self {
        let areas = areas(geometry, bands, count);
        let by_lba = RunIndex::new(vec![0], 0);
        let mut map = Self { segments: Vec::new(), by_lba, blocks: 0, last_phase: Lba(0) };
        for phase in order.phases() {
            map.last_phase = Lba(map.blocks);
            for area in &areas {
                map.push(area, &phase, u64::from(order.tracks()));
            }
        }
        map.by_lba = RunIndex::new(map.segments.iter().map(|s| s.lba).collect(), map.blocks);
        map
    }

    fn push(&mut self, area: &Area, phase: &[u32], positions: u64) {
        let unit = (area.tracks.len() as u64 / positions) as usize;
        let mut slots = Vec::new();
        let mut run = 0;
        for &p in phase {
            for track in p as usize * unit..(p as usize + 1) * unit {
                let in_band = area.tracks[..track].iter().sum();
                slots.push(Slot { in_phase: run, in_band, blocks: area.tracks[track] });
                run += area.tracks[track];
            }
        }
        if run == 0 {
            return;
        }
        let track = slots[0].blocks;
        let equal = slots.iter().all(|s| s.blocks == track);
        let track = Reciprocal::new(if equal { track } else { UNEQUAL });
        let (lba, first_band) = (self.blocks, area.first_band);
        let last = area.tracks[..area.tracks.len() - unit].iter().sum();
        self.segments.push(Segment { lba, first_band, run: Reciprocal::new(run), track, last, slots });
        self.blocks += area.bands * run;
    }

    /// Blocks that the host sees.
    pub fn blocks(&self) -> Blocks {
        Blocks(self.blocks)
    }

    /// Where a block is, and how much of its track follows.
    #[inline]
    pub fn locate(&self, bands: &Bands, lba: Lba) -> Extent {
        let seg = &self.segments[self.by_lba.find(lba.0)];
        let (band, at) = seg.run.div_rem_wide(lba.0 - seg.lba);
        let slot = match seg.track.divisor() {
            UNEQUAL => seg.slots.partition_point(|s| s.in_phase <= at) - 1,
            _ => seg.track.div_wide(at) as usize,
        };
        let slot = &seg.slots[slot];
        let band = BandId(seg.first_band + band);
        let within = at - slot.in_phase;
        let start = bands.start(band);
        let (pba, last) = (start + Blocks(slot.in_band + within), start + Blocks(seg.last));
        Extent { band, pba, blocks: Blocks(slot.blocks - within), track: Blocks(slot.blocks), last }
    }

    /// The inverse; `None` on guards and what the map leaves unused.
    pub fn lba_of(&self, bands: &Bands, pba: Pba) -> Option<Lba> {
        let (band, at) = bands.band_of(pba)?;
        self.segments.iter().enumerate().find_map(|(i, seg)| {
            let end = self.segments.get(i + 1).map_or(self.blocks, |s| s.lba);
            let nth = band.0.checked_sub(seg.first_band).filter(|n| n * seg.run.divisor() < end - seg.lba)?;
            let slot = seg.slots.iter().find(|s| (s.in_band..s.in_band + s.blocks).contains(&at.0))?;
            Some(Lba(seg.lba + nth * seg.run.divisor() + slot.in_phase + at.0 - slot.in_band))
        })
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|s| size_of::<Segment>() + s.slots.len() * size_of::<Slot>()).sum()
    }
}

/// Splits the first `count` bands into areas.
fn areas(g: &Geometry, bands: &Bands, count: u64) -> Vec<Area> {
    let mut out = Vec::new();
    let mut first = 0;
    while first < count {
        let band = bands.band(BandId(first));
        let tracks: Vec<u64> =
            (0..band.tracks).map(|t| g.track_blocks(TrackNo(band.first_track.0 + t)).0).collect();
        let zone = g.zone_of(band.first_track);
        let end = zone.first_track.0 + zone.tracks;
        let inside = |b: u64| bands.band(BandId(b)).first_track.0 + band.tracks <= end;
        // Slipped sectors make what follows come earlier than a multiple of the band, for good within the zone.
        let regular = |b: u64| {
            bands.first_data(BandId(b + 1)) - bands.first_data(BandId(first))
                == (b + 1 - first) * band.blocks.0
        };
        let equal = tracks.iter().all(|t| *t == tracks[0]) && tracks[0] == nominal(g, band.first_track);
        let n = if equal && inside(first) {
            first_not(first..count, |b| inside(b) && regular(b)) - first
        } else {
            1
        };
        out.push(Area { first_band: first, bands: n, tracks });
        first += n;
    }
    out
}

/// The length of a track in this track's zone that has no slipped sectors.
fn nominal(g: &Geometry, track: TrackNo) -> u64 {
    g.usable_sectors(track)
}

/// The first of `range` for which `holds` is false, where it is true up to there and false behind.
fn first_not(range: std::ops::Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut lo, mut hi) = (range.start, range.end);
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if holds(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
}
