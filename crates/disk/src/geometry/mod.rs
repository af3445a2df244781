//! Where each PBA lies: recording zones, surfaces, skew, serpentines, spares and slipped sectors.
//!
//! PBAs are dense from 0 and rise in the shingling direction of their track. *Raw* block numbers, used inside this
//! crate, also count slipped sectors. Cylinders are in *forward* order inside (0 where PBA 0 lies) and counted from the
//! outermost in [`Position`].

mod build;
mod builder;
mod listed;
mod raw;
mod slips;
mod spec;
#[cfg(test)]
pub(crate) mod tests;
mod zone_run;

pub(crate) use raw::Even;
pub(crate) use slips::Slips;
pub use spec::{
    Defect, GeometrySpec, GroupSpec, Layout, REVOLUTION, Remap, RunSpec, Slip, Toward, ZoneSkew, ZoneSpec,
};
pub(crate) use spec::{MOST_SECTORS, angle_of};
pub use zone_run::{StartSlots, wrapped};
pub(crate) use zone_run::{Switches, TrackPlace, ZoneRun};

use crate::Result;
use smrlab_units::reciprocal::{Reciprocal, RunIndex};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// A track that holds PBAs, numbered in PBA order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackNo(pub u64);

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Cylinder, 0 being the outermost.
    pub cylinder: u32,
    /// Surface (head).
    pub surface: u32,
    /// Sector on the track, in the order of transfer.
    pub sector: u32,
    /// The angle at which the sector begins, in [`REVOLUTION`] units.
    pub angle: u64,
}

/// Tracks that follow each other in PBA order and lie side by side in one direction. On a cylinder layout the unit is
/// the whole cylinder: `unit` tracks, one on each surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// First track.
    pub first: TrackNo,
    /// Number of tracks.
    pub tracks: u64,
    /// Tracks that lie side by side with `unit` others each: 1, or the surfaces of a cylinder layout.
    pub unit: u64,
}

/// A part of a recording zone with equal tracks, in PBA order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// The zone's index in the drive file, 0 being the outermost.
    pub zone: u32,
    /// First track of the part.
    pub first_track: TrackNo,
    /// Its tracks.
    pub tracks: u64,
    /// First block of the part.
    pub first: Pba,
    /// Its blocks.
    pub blocks: Blocks,
    /// Sectors in a revolution.
    pub sectors: u32,
}

/// A raw block's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loc<'a> {
    pub zone_run: usize,
    pub seg: &'a ZoneRun,
    /// Track within the run of a zone.
    pub track: u64,
    pub sector: u64,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Geometry {
    spec: GeometrySpec,
    zone_runs: Vec<ZoneRun>,
    by_raw: RunIndex,
    by_track: RunIndex,
    slips: Slips,
    blocks: u64,
    raw_blocks: u64,
    tracks: u64,
    cylinders: u32,
    /// Of each surface the runs of zones by their first forward cylinder.
    by_surface: Vec<Vec<(u32, u32)>>,
    /// Remapped blocks, and the raw numbers of where they lie, ascending.
    remaps: Vec<(u64, u64)>,
}

impl Geometry {
    /// Builds the geometry.
    ///
    /// # Errors
    /// All faults of `spec`, placed under `geometry`.
    pub fn new(spec: GeometrySpec) -> Result<Self> {
        spec.check("geometry")?;
        build::build(spec)
    }

    /// What it was built from.
    pub fn spec(&self) -> &GeometrySpec {
        &self.spec
    }

    /// How many PBAs there are.
    pub fn blocks(&self) -> Blocks {
        Blocks(self.blocks)
    }

    /// How many tracks hold PBAs.
    pub fn tracks(&self) -> u64 {
        self.tracks
    }

    /// Recorded surfaces.
    pub fn surfaces(&self) -> u32 {
        self.spec.surfaces
    }

    /// Cylinders, spare ones included.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    #[inline]
    pub(crate) fn locate(&self, raw: u64) -> Loc<'_> {
        let zone_run = self.by_raw.find(raw);
        let seg = &self.zone_runs[zone_run];
        let (track, sector) = seg.usable.div_rem(raw - seg.first_raw);
        Loc { zone_run, seg, track, sector }
    }

    /// The raw number of a block where it lies, or would if it were not remapped.
    #[inline]
    pub(crate) fn home(&self, pba: Pba) -> u64 {
        debug_assert!(pba.0 < self.blocks, "PBA {pba} of {}", self.blocks);
        self.slips.to_raw(pba.0)
    }

    /// The raw number of where a block lies.
    #[inline]
    pub(crate) fn raw(&self, pba: Pba) -> u64 {
        debug_assert!(pba.0 < self.blocks, "PBA {pba} of {}", self.blocks);
        // What is remapped lies on spare sectors, which are slipped.
        if self.slips.is_empty() { pba.0 } else { self.slipped_raw(pba) }
    }

    #[inline(never)]
    fn slipped_raw(&self, pba: Pba) -> u64 {
        if !self.remaps.is_empty()
            && let Ok(i) = self.remaps.binary_search_by_key(&pba.0, |r| r.0)
        {
            return self.remaps[i].1;
        }
        self.home(pba)
    }

    pub(crate) fn slips(&self) -> &Slips {
        &self.slips
    }

    pub(crate) fn zone_runs(&self) -> &[ZoneRun] {
        &self.zone_runs
    }

    /// The sector of a raw number.
    pub(crate) fn sector_of(&self, raw: u64) -> Defect {
        let loc = self.locate(raw);
        let place = loc.seg.place(loc.track);
        let cylinder = self.turn(loc.seg.cylinder(place));
        Defect { cylinder, surface: loc.seg.surface(place), sector: loc.sector as u32 }
    }

    /// The run of a zone of a track and its number there.
    #[inline]
    pub(crate) fn zone_run_of(&self, track: TrackNo) -> (usize, u64) {
        let i = self.by_track.find(track.0);
        (i, track.0 - self.zone_runs[i].first_track)
    }

    /// The raw number of a track's first sector; `tracks()` gives the end.
    pub(crate) fn track_raw(&self, track: TrackNo) -> u64 {
        if track.0 >= self.tracks {
            return self.raw_blocks;
        }
        let (i, rel) = self.zone_run_of(track);
        self.zone_runs[i].first_raw + rel * self.zone_runs[i].usable.divisor()
    }

    /// The track that holds a block, or would if it were not remapped.
    #[inline]
    pub fn track_of(&self, pba: Pba) -> TrackNo {
        let loc = self.locate(self.home(pba));
        TrackNo(loc.seg.first_track + loc.track)
    }

    /// The first block on a track, or after it where all its sectors are slipped. `tracks()` gives `blocks()`.
    #[inline]
    pub fn track_start(&self, track: TrackNo) -> Pba {
        Pba(self.slips.to_dense(self.track_raw(track)))
    }

    /// The blocks of the track that holds a block (or would if it were not remapped), and the division by its sectors.
    #[inline]
    pub fn track_with(&self, pba: Pba) -> (Range<u64>, Reciprocal) {
        let loc = self.locate(self.home(pba));
        let usable = loc.seg.usable.divisor();
        let first = loc.seg.first_raw + loc.track * usable;
        let dense = |raw: u64| self.slips.to_dense(raw);
        (dense(first)..dense(first + usable), loc.seg.sectors)
    }

    /// Sectors of a track, those without a block included.
    #[inline]
    pub fn sectors(&self, track: TrackNo) -> u32 {
        self.zone_runs[self.zone_run_of(track).0].sectors.divisor() as u32
    }

    /// How many sectors of a track can hold blocks: slipped ones count, spare ones do not.
    pub fn usable_sectors(&self, track: TrackNo) -> u64 {
        self.zone_runs[self.zone_run_of(track).0].usable.divisor()
    }

    /// How many blocks a track holds.
    #[inline]
    pub fn track_blocks(&self, track: TrackNo) -> Blocks {
        self.track_start(TrackNo(track.0 + 1)) - self.track_start(track)
    }

    /// The whole sectors nearest to where a track and those behind it in its stroke and recording zone start.
    #[inline]
    pub fn start_slots(&self, track: TrackNo) -> StartSlots {
        let (i, rel) = self.zone_run_of(track);
        self.zone_runs[i].start_slots(rel)
    }

    /// Where a block lies.
    pub fn position(&self, pba: Pba) -> Position {
        let loc = self.locate(self.raw(pba));
        let place = loc.seg.place(loc.track);
        let angle = loc.seg.start(place) + loc.seg.sector_angle(loc.sector);
        Position {
            cylinder: self.turn(loc.seg.cylinder(place)),
            surface: loc.seg.surface(place),
            sector: loc.sector as u32,
            angle: wrapped(angle, REVOLUTION),
        }
    }

    /// The block at a place (its angle follows from the sector); `None` where there is none: spare, slipped, or outside.
    pub fn at(&self, cylinder: u32, surface: u32, sector: u32) -> Option<Pba> {
        let raw = self.raw_at(cylinder, surface, sector)?;
        if let Some(r) = self.remaps.iter().find(|r| r.1 == raw) {
            return Some(Pba(r.0));
        }
        let pba = Pba(self.slips.to_dense(raw));
        (!self.slips.contains(raw) && self.raw(pba) == raw).then_some(pba)
    }

    /// The raw number of a sector.
    pub(crate) fn raw_at(&self, cylinder: u32, surface: u32, sector: u32) -> Option<u64> {
        if cylinder >= self.cylinders {
            return None;
        }
        let (i, track) = self.track_at_forward(self.turn(cylinder), surface)?;
        let seg = &self.zone_runs[i];
        (u64::from(sector) < seg.usable.divisor())
            .then(|| seg.first_raw + track * seg.usable.divisor() + u64::from(sector))
    }

    /// Between forward cylinders and cylinders from the outermost (its own inverse).
    #[inline]
    fn turn(&self, cylinder: u32) -> u32 {
        match self.spec.toward {
            Toward::Inner => cylinder,
            Toward::Outer => self.cylinders - 1 - cylinder,
        }
    }

    /// ZoneRun and track there of a forward cylinder; `None` for spares and beyond the surface.
    #[inline]
    pub(crate) fn track_at_forward(&self, cylinder: u32, surface: u32) -> Option<(usize, u64)> {
        if cylinder >= self.cylinders || surface >= self.spec.surfaces {
            return None;
        }
        let runs = &self.by_surface[surface as usize];
        let i = runs.partition_point(|r| r.0 <= cylinder).checked_sub(1)?;
        let seg = &self.zone_runs[runs[i].1 as usize];
        let inside = u64::from(cylinder - seg.first_cylinder) < seg.tracks / u64::from(seg.surfaces);
        inside.then(|| (runs[i].1 as usize, seg.track_at(cylinder, surface)))
    }

    /// The `j`-th track after `track` on the same surface in its shingling direction; `None` past the last cylinder or
    /// on a spare one.
    pub fn following(&self, track: TrackNo, j: u32) -> Option<TrackNo> {
        self.neighbour(track, i64::from(j))
    }

    /// As [`following`](Self::following), but against the shingling direction where `j` is negative.
    pub fn neighbour(&self, track: TrackNo, j: i64) -> Option<TrackNo> {
        let (i, rel) = self.zone_run_of(track);
        let seg = &self.zone_runs[i];
        let place = seg.place(rel);
        let step = if seg.forward(place) { j } else { -j };
        let cylinder = u32::try_from(i64::from(seg.cylinder(place)) + step).ok()?;
        let (i, rel) = self.track_at_forward(cylinder, seg.surface(place))?;
        Some(TrackNo(self.zone_runs[i].first_track + rel))
    }

    /// How many rows of tracks (cylinders, where PBAs go round the surfaces) a track is behind the first of its stroke.
    pub fn row_of(&self, track: TrackNo) -> u64 {
        let runs = self.stroke_runs();
        let of = |r: &&StrokeRun| r.first <= track.0 && track.0 < r.first + r.tracks * r.repeat;
        runs.iter().find(of).map_or(0, |r| (track.0 - r.first) % r.tracks / r.unit)
    }

    /// The parts of recording zones in PBA order.
    pub fn zones(&self) -> impl Iterator<Item = ZoneInfo> + '_ {
        (0..self.zone_runs.len()).map(|i| self.zone_info(i))
    }

    /// The part of a recording zone that holds a track.
    pub fn zone_of(&self, track: TrackNo) -> ZoneInfo {
        self.zone_info(self.zone_run_of(track).0)
    }

    fn zone_info(&self, i: usize) -> ZoneInfo {
        let s = &self.zone_runs[i];
        let first = self.slips.to_dense(s.first_raw);
        ZoneInfo {
            zone: s.zone,
            first_track: TrackNo(s.first_track),
            tracks: s.tracks,
            first: Pba(first),
            blocks: Blocks(self.slips.to_dense(s.first_raw + s.blocks()) - first),
            sectors: s.sectors.divisor() as u32,
        }
    }

    /// The strokes in PBA order: see [`Stroke`].
    pub fn strokes(&self) -> impl Iterator<Item = Stroke> + '_ {
        self.stroke_runs().into_iter().flat_map(|run| {
            (0..run.repeat).map(move |i| Stroke {
                first: TrackNo(run.first + i * run.tracks),
                tracks: run.tracks,
                unit: run.unit,
            })
        })
    }

    /// The strokes, and how many rows of each are among the first `rows` of the drive. Rows are tracks, or cylinders where the
    /// strokes' unit is a cylinder.
    pub fn set_aside(&self, rows: u64) -> impl Iterator<Item = (Stroke, u64)> + '_ {
        self.strokes().scan(rows, |left, stroke| {
            let rows = (*left).min(stroke.tracks / stroke.unit);
            *left -= rows;
            Some((stroke, rows))
        })
    }

    /// Rows of all strokes.
    pub(crate) fn rows(&self) -> u64 {
        self.stroke_runs().iter().map(|s| s.tracks / s.unit * s.repeat).sum()
    }

    /// Equal strokes that follow each other, as one item.
    pub(crate) fn stroke_runs(&self) -> Vec<StrokeRun> {
        let unit = u64::from(self.spec.surfaces);
        match self.spec.layout {
            Layout::Cylinder { .. } | Layout::ZoneAlternate => {
                vec![StrokeRun {
                    first: 0,
                    tracks: self.tracks,
                    unit,
                    repeat: 1,
                    zone_runs: 0..self.zone_runs.len(),
                }]
            }
            Layout::Surface => {
                let zones = self.spec.zones.len();
                (0..self.spec.surfaces as usize)
                    .map(|s| {
                        let zone_runs = s * zones..(s + 1) * zones;
                        let tracks = self.zone_runs[zone_runs.clone()].iter().map(|g| g.tracks).sum();
                        let first = self.zone_runs[zone_runs.start].first_track;
                        StrokeRun { first, tracks, unit: 1, repeat: 1, zone_runs }
                    })
                    .collect()
            }
            Layout::Hybrid { .. } | Layout::Listed => self
                .zone_runs
                .iter()
                .enumerate()
                .map(|(i, g)| {
                    let tracks = g.width.divisor();
                    StrokeRun {
                        first: g.first_track,
                        tracks,
                        unit: 1,
                        repeat: g.tracks / tracks,
                        zone_runs: i..i + 1,
                    }
                })
                .collect(),
        }
    }
}

/// `repeat` strokes of `tracks` each, from track `first`, lying in `runs of zones`.
#[derive(Clone, Debug)]
pub(crate) struct StrokeRun {
    pub first: u64,
    pub tracks: u64,
    pub unit: u64,
    pub repeat: u64,
    pub zone_runs: Range<usize>,
}
