//! What a write destroys.
//!
//! Two descriptions (Cassuto et al. 2010, II.A): the *physical* profile says how many tracks are hit on either side and how far the
//! damage reaches along them; the *block* profile says how many consecutive PBAs from the written one on are damaged.
//! Victims on other tracks follow the formula of Pitchumani 2012, section 3.2.2, corrected (docs/papers/dm-shingle.md).

use crate::Result;
use crate::geometry::{Geometry, REVOLUTION, Toward, TrackNo, TrackPlace, ZoneRun};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// `[s_id, s_od, phi_cw, phi_ccw]`: at most one of the first two may exceed 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalProfile {
    /// Tracks hit towards the inner diameter, the written one included.
    pub s_id: u32,
    /// Tracks hit towards the outer diameter, the written one included.
    pub s_od: u32,
    /// How far the damage reaches on the neighbouring tracks behind the end of the write, in [`REVOLUTION`] units.
    pub phi_cw: u64,
    /// The same before its beginning.
    pub phi_ccw: u64,
    /// Of so many tracks (rows of cylinders), from the beginning of each stroke on, the latter half without the guard in the
    /// middle is hit the other way: bands in pairs that share a guard. 0: all the same way.
    pub wave: u64,
}

impl PhysicalProfile {
    /// Tracks that one track write touches, itself included.
    pub const fn width(&self) -> u64 {
        (if self.s_id > self.s_od { self.s_id } else { self.s_od }) as u64
    }

    /// Whether this row of a stroke is hit the other way.
    const fn reversed(&self, row: u64) -> bool {
        // The first band and the guard go one way.
        self.wave > 0 && row % self.wave >= (self.wave + self.width() - 1) / 2
    }
}

/// `I_b` without tracks: what a write does to the blocks behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockProfile {
    /// The written block itself and those behind it that it damages.
    pub reach: u64,
    /// The first shingled block: what lies before is written without overlap, and no write there damages another block.
    pub from: u64,
}

impl BlockProfile {
    /// The blocks that a write of `written` damages behind its end.
    pub fn hit(&self, written: Range<u64>) -> Range<u64> {
        if written.end <= self.from { 0..0 } else { written.end..written.end + self.reach.max(1) - 1 }
    }
}

/// What a write destroys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// Neighbouring tracks.
    Physical(PhysicalProfile),
    /// Following blocks.
    Blocks(BlockProfile),
}

impl Interference {
    /// A head that covers `width` tracks, itself included, in the shingling direction; no angular reach.
    pub const fn tracks(width: u32) -> Self {
        Self::Physical(PhysicalProfile { s_id: width, s_od: 1, phi_cw: 0, phi_ccw: 0, wave: 0 })
    }

    /// Each write damages the following `reach - 1` blocks, wherever it is.
    pub const fn blocks(reach: u64) -> Self {
        Self::Blocks(BlockProfile { reach, from: 0 })
    }

    /// Checks it; places are given relative to `at` ("interference").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut f = Problems::default();
        match self {
            Self::Blocks(p) => f.range(format!("{at}.blocks"), p.reach, 1..=1 << 32),
            Self::Physical(p) => {
                f.range(format!("{at}.s_id"), p.s_id, 1..=1024);
                f.range(format!("{at}.s_od"), p.s_od, 1..=1024);
                if p.s_id > 1 && p.s_od > 1 {
                    f.add(at, "s_id and s_od are both above 1: shingles overlap on one side only");
                }
                for (name, phi) in [("phi_cw", p.phi_cw), ("phi_ccw", p.phi_ccw)] {
                    if phi > REVOLUTION / 4 {
                        f.add(format!("{at}.{name}"), "not accepted: from 0 to a quarter of a revolution");
                    }
                }
            }
        }
        f.finish()
    }

    /// Whether nothing but the written blocks is hit.
    pub const fn is_none(&self) -> bool {
        match self {
            Self::Physical(p) => p.s_id <= 1 && p.s_od <= 1,
            Self::Blocks(p) => p.reach <= 1,
        }
    }

    /// The side towards which PBAs must rise, so that writes hit what comes later.
    pub const fn toward(&self) -> Toward {
        match self {
            Self::Physical(p) if p.s_od > 1 => Toward::Outer,
            _ => Toward::Inner,
        }
    }

    /// The ranges of PBAs that an ascending write of `blocks` from `pba` destroys and does not itself rewrite. Ranges may
    /// overlap each other, and need not be in order.
    pub fn victims(&self, g: &Geometry, pba: Pba, blocks: Blocks, hit: &mut dyn FnMut(Range<u64>)) {
        if blocks.0 == 0 || self.is_none() {
            return;
        }
        let end = pba.0 + blocks.0;
        match self {
            Self::Blocks(p) => {
                let behind = p.hit(pba.0..end);
                let behind = behind.start..behind.end.min(g.blocks().0);
                if !behind.is_empty() {
                    hit(behind);
                }
            }
            Self::Physical(p) => {
                let mut w = Walk { g, profile: p, written: g.home(pba)..g.home(Pba(end - 1)) + 1, hit };
                // Slipped sectors within the extent are not written.
                let (mut from, stop) = (w.written.start, w.written.end);
                for slip in g.slips().within(from..stop) {
                    w.extent(from..slip.start);
                    from = slip.end;
                }
                w.extent(from..stop);
            }
        }
    }
}

struct Walk<'a> {
    g: &'a Geometry,
    profile: &'a PhysicalProfile,
    /// Raw blocks of the whole write, slipped ones included.
    written: Range<u64>,
    hit: &'a mut dyn FnMut(Range<u64>),
}

impl Walk<'_> {
    /// Raw blocks that are all written, track by track.
    #[inline]
    fn extent(&mut self, raw: Range<u64>) {
        let mut at = raw.start;
        while at < raw.end {
            let loc = self.g.locate(at);
            let count = (loc.seg.usable.divisor() - loc.sector).min(raw.end - at);
            let place = loc.seg.place(loc.track);
            let start = loc.seg.start_slot(place) + loc.sector;
            self.track(loc.seg, loc.track, place, start..start + count);
            at += count;
        }
    }

    /// Sector-sized angles `slots` (perhaps beyond a revolution) of track `written` of `seg`, at `place`, are written.
    #[inline]
    fn track(&mut self, seg: &ZoneRun, written: u64, place: TrackPlace, slots: Range<u64>) {
        let width = self.profile.width();
        let track = TrackNo(seg.first_track + written);
        let reversed = self.profile.wave > 0 && self.profile.reversed(self.g.row_of(track));
        for j in 1..width {
            let step = place.step + j;
            if step < seg.width.divisor() && !reversed {
                // Within a run the next track is the neighbour.
                let start = seg.start_slot(TrackPlace { step, ..place });
                self.victim(seg, seg, written + j, start, slots.clone(), true);
                continue;
            }
            let j = if reversed { -(j as i64) } else { j as i64 };
            let Some(victim) = self.g.neighbour(track, j) else { continue };
            let (i, rel) = self.g.zone_run_of(victim);
            let target = &self.g.zone_runs()[i];
            let start = target.start_slot(target.place(rel));
            self.victim(seg, target, rel, start, slots.clone(), victim > track);
        }
    }

    /// Track `rel` of `target`, which begins at slot `start`, is hit by the angles `slots` of a track of `seg`.
    #[inline]
    fn victim(
        &mut self,
        seg: &ZoneRun,
        target: &ZoneRun,
        rel: u64,
        start: u64,
        slots: Range<u64>,
        rewritten: bool,
    ) {
        let n = target.sectors.divisor();
        let (from, count) = self.reach(seg, target, slots);
        let first = target.first_raw + rel * target.usable.divisor();
        let sector = target.sectors.div_rem(from + n - start).1;
        self.sectors(target, first, sector..(sector + count).min(n), rewritten);
        if sector + count > n {
            self.sectors(target, first, 0..sector + count - n, rewritten);
        }
    }

    /// The slots of a track of `target` (first, count) that the angles `slots` of a track of `seg` reach.
    #[inline]
    fn reach(&self, seg: &ZoneRun, target: &ZoneRun, slots: Range<u64>) -> (u64, u64) {
        let (n, m) = (seg.sectors.divisor(), target.sectors.divisor());
        let (mut from, mut to) = if n == m {
            (slots.start, slots.end)
        } else if m < n {
            // Fewer sectors: each written one hits the one that its beginning lies in; all are hit by some.
            (slots.start * m / n, (slots.end - 1) * m / n + 1)
        } else {
            (slots.start * m / n, (slots.end * m).div_ceil(n))
        };
        if self.profile.phi_cw > 0 || self.profile.phi_ccw > 0 {
            // Exact overlap of the widened arc, a turn added so that it cannot become negative.
            let turn = |slot: u64, add: i128| {
                (i128::from(slot) + i128::from(n)) * i128::from(REVOLUTION) + add * i128::from(n)
            };
            let per = i128::from(n) * i128::from(REVOLUTION);
            let before = turn(slots.start, -i128::from(self.profile.phi_ccw)) * i128::from(m);
            let after = turn(slots.end, i128::from(self.profile.phi_cw)) * i128::from(m);
            from = (from + m).min((before / per) as u64);
            to = (to + m).max(((after + per - 1) / per) as u64);
        }
        let count = (to - from).min(m);
        (from, count)
    }

    /// Reports sectors of the track that begins at raw block `first`, without spares and what is rewritten later.
    fn sectors(&mut self, target: &ZoneRun, first: u64, sectors: Range<u64>, rewritten: bool) {
        let end = first + sectors.end.min(target.usable.divisor());
        let raw = first + sectors.start..end;
        if !rewritten {
            return self.report(raw);
        }
        self.report(raw.start..raw.end.min(self.written.start));
        self.report(raw.start.max(self.written.end)..raw.end);
    }

    fn report(&mut self, raw: Range<u64>) {
        if raw.start < raw.end {
            let dense = self.g.slips().to_dense(raw.start)..self.g.slips().to_dense(raw.end);
            if dense.start < dense.end {
                (self.hit)(dense);
            }
        }
    }
}

#[cfg(test)]
#[path = "interference_tests.rs"]
mod tests;
