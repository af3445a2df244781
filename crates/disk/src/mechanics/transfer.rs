//! Transfers: the angle that passes from the first block to the last, in closed form for each recording zone.
//!
//! Slipped sectors are passed like others: one at the end of a track gives the head no more time to switch.

use super::{Mechanics, Target};
use crate::geometry::{REVOLUTION, Switches, TrackNo, TrackPlace, ZoneRun, wrapped};
use smrlab_units::{Blocks, Dir, Pba, SimTime};
use std::ops::Range;

/// Kinds of switch within a run of a zone: next track of a run, next run of a group, next group, and next track of a run that goes
/// the other way than the first one.
const KINDS: usize = 4;

/// The angle from a track's start to that of the next one where a transfer goes on from the one to the other, by kind of switch: the
/// skew, and as many turns more as the switch needs.
pub(super) type Advance = [u64; KINDS];

/// The angle from one angle on to another.
#[inline(always)]
pub(super) fn turn(from: u64, to: u64) -> u64 {
    wrapped(to + REVOLUTION - from, REVOLUTION)
}

/// Where a transfer ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndPlace {
    track: u64,
    cylinder: u32,
    surface: u32,
    angle: u64,
}

impl EndPlace {
    pub(super) fn leave(self, head: &mut super::Head) {
        head.track = TrackNo(self.track);
        (head.cylinder, head.surface, head.angle) = (self.cylinder, self.surface, self.angle);
    }
}

/// The first block of a transfer within its run of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Aim {
    pub(super) raw: u64,
    pub(super) zone_run: usize,
    track: u64,
    pub(super) sector: u64,
    place: TrackPlace,
    /// The angle at which the track starts.
    pub(super) start: u64,
}

/// The part of a transfer within one run of a zone, but for its angle: that depends on the direction.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    /// The last track, and how many of its sectors have passed in the end.
    place: TrackPlace,
    last: u64,
    sectors: u64,
    switches: Switches,
}

/// The transfer over several tracks that was done last: what is read whole to be changed is written whole next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Swept {
    begun: Target,
    aim: Aim,
    /// None: nothing is known.
    blocks: u64,
    stretch: Stretch,
}

impl Swept {
    /// Where it began, if that was with `pba`.
    pub(super) fn begun(&self, pba: Pba) -> Option<(Target, Aim)> {
        (self.begun.pba == pba.0 && self.blocks > 0).then_some((self.begun, self.aim))
    }
}

/// The stretch from `aim` up to the raw block `end`, in the same run of a zone.
// In place: noted from a call's answer, it was copied from what was just put together from parts, and that waits.
#[inline(always)]
fn stretch(seg: &ZoneRun, aim: Aim, end: u64) -> Stretch {
    let (last, sector) = seg.usable.div_rem(end - 1 - seg.first_raw);
    let place = seg.place(last);
    Stretch { place, last, sectors: sector + 1, switches: seg.switches(aim.place, place) }
}

/// A transfer of so many sectors that ends on the track on which it begins.
#[inline(always)]
pub(super) fn on_track(seg: &ZoneRun, t: &Target, aim: &Aim, sectors: u64) -> (u64, EndPlace) {
    let (begin, end) =
        (wrapped(t.angle + REVOLUTION - aim.start, REVOLUTION), seg.sector_angle(aim.sector + sectors));
    let place = EndPlace {
        track: t.track,
        cylinder: t.cylinder,
        surface: t.surface,
        angle: wrapped(aim.start + end, REVOLUTION),
    };
    (end - begin, place)
}

impl Mechanics {
    /// Where a block lies, for schedulers and for the transfer.
    #[inline(always)]
    pub(super) fn aim(&self, pba: Pba) -> (Target, Aim) {
        self.aim_raw(pba, self.geometry.raw(pba))
    }

    /// The same, and remembers the blocks around it.
    #[inline(always)]
    pub(super) fn aim_at(&mut self, pba: Pba) -> (Target, Aim) {
        let raw = self.raw(pba);
        self.aim_raw(pba, raw)
    }

    /// The raw number of a block that is mostly near the one that was looked at last.
    #[inline(always)]
    fn raw(&mut self, pba: Pba) -> u64 {
        if !self.even.has(pba, 1) {
            self.geometry.even_around(pba, &mut self.even);
        }
        self.even.raw(pba)
    }

    #[inline(always)]
    fn aim_raw(&self, pba: Pba, raw: u64) -> (Target, Aim) {
        let loc = self.geometry.locate(raw);
        let (seg, zone_run) = (loc.seg, loc.zone_run);
        let place = seg.place(loc.track);
        let start = seg.start(place);
        let target = Target {
            pba: pba.0,
            angle: wrapped(start + seg.sector_angle(loc.sector), REVOLUTION),
            track: seg.first_track + loc.track,
            cylinder: seg.cylinder(place),
            surface: seg.surface(place),
        };
        (target, Aim { raw, zone_run, track: loc.track, sector: loc.sector, place, start })
    }

    /// The same, and notes the track: what is asked for next is mostly on it.
    #[inline(always)]
    pub(super) fn aim_noted(&mut self, pba: Pba) -> (Target, Aim) {
        let (target, aim) = self.aim_at(pba);
        self.noted = (target, aim);
        (target, aim)
    }

    /// As [`aim`](Self::aim), of a block that is mostly the one that was noted last, or on its track.
    #[inline(always)]
    pub(super) fn aim_near(&mut self, pba: Pba) -> (Target, Aim) {
        if self.noted.0.pba == pba.0 {
            return self.noted;
        }
        let raw = self.raw(pba);
        let (track, at) = &self.noted;
        let seg = &self.geometry.zone_runs()[at.zone_run];
        let sector = raw.wrapping_sub(at.raw - at.sector);
        if sector >= seg.usable.divisor() {
            return self.aim_noted(pba);
        }
        let angle = wrapped(at.start + seg.sector_angle(sector), REVOLUTION);
        (Target { pba: pba.0, angle, ..*track }, Aim { raw, sector, ..*at })
    }

    /// Notes the place of a block that will be read or written, and answers with it: what is asked about it then costs little.
    #[inline(always)]
    pub fn look_at(&mut self, pba: Pba) -> &Target {
        if self.noted.0.pba != pba.0 {
            let raw = self.raw(pba);
            let (target, aim) = &mut self.noted;
            let seg = &self.geometry.zone_runs()[aim.zone_run];
            let sector = raw.wrapping_sub(aim.raw - aim.sector);
            if sector < seg.usable.divisor() {
                (aim.raw, aim.sector, target.pba) = (raw, sector, pba.0);
                target.angle = wrapped(aim.start + seg.sector_angle(sector), REVOLUTION);
            } else {
                // As it is put together: copied, it is many parts.
                self.noted = self.aim_raw(pba, raw);
            }
        }
        &self.noted.0
    }

    /// The blocks of the track that holds a block (or would if it were not remapped), which is mostly the one that was noted last;
    /// and how long the head takes to pass a block's length there, rounded down.
    #[inline]
    pub fn track_with(&self, pba: Pba) -> (Range<u64>, SimTime) {
        let at = &self.noted.1;
        let seg = &self.geometry.zone_runs()[at.zone_run];
        let first = at.raw - at.sector;
        let (blocks, sectors) = match self.even.blocks_in(&(first..first + seg.usable.divisor())) {
            Some(blocks) if blocks.contains(&pba.0) => (blocks, seg.sectors),
            _ => self.geometry.track_with(pba),
        };
        // Divided by the one after the other: the same, rounded down.
        (blocks, SimTime(sectors.div(self.revolution)))
    }

    /// From a track of one cylinder to one of another within a transfer.
    pub(super) fn switch_time(&self, dir: Dir, (from, to): (u32, u32), surface_changes: bool) -> u64 {
        let to = if self.blocks_distance { from } else { to };
        self.moved(dir, self.curves[dir as usize].between(from.into(), to.into()), surface_changes)
    }

    pub(super) fn advance(&self, seg: &ZoneRun, dir: Dir) -> Advance {
        let (group, n) = (seg.group.divisor(), seg.usable.divisor());
        let across = if seg.tracks > group {
            let (a, b) = (seg.place(group - 1), seg.place(group));
            self.switch_time(dir, (seg.cylinder(a), seg.cylinder(b)), seg.surface(a) != seg.surface(b))
        } else {
            0
        };
        let step = |back| self.switch_time(dir, if back { (1, 0) } else { (0, 1) }, false);
        let times = [step(seg.reversed), self.switch_time(dir, (0, 0), true), across, step(!seg.reversed)];
        let skews = [seg.step_skew, seg.head_skew, seg.step_skew, seg.step_skew];
        // Spares at the end of a cylinder pass while the head switches.
        let left = [n, n, n.saturating_sub(seg.cylinder_spares), n];
        std::array::from_fn(|k| {
            let ready = (seg.sector_angle(left[k]) + times[k] * self.rpm).max(seg.sector_angle(n));
            skews[k] + ready.saturating_sub(skews[k]).div_ceil(REVOLUTION) * REVOLUTION
        })
    }

    #[inline]
    pub(super) fn on_one_track(&self, aim: Aim, pba: Pba, blocks: Blocks) -> bool {
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        !self.scattered(pba, blocks)
            && aim.sector + (self.raw_end(aim.raw, pba, blocks) - aim.raw) <= seg.usable.divisor()
    }

    /// Angle from the first block's begin to the last block's end, and where the head is then.
    #[inline(always)]
    pub(super) fn full_transfer(
        &self,
        dir: Dir,
        t: &Target,
        aim: Aim,
        pba: Pba,
        blocks: Blocks,
    ) -> (u64, EndPlace) {
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        if !self.even.has(pba, blocks.0) {
            return self.slipped_transfer(dir, *t, aim, pba, blocks);
        }
        if aim.sector + blocks.0 <= seg.usable.divisor() {
            return on_track(seg, t, &aim, blocks.0);
        }
        self.long_transfer(dir, aim, aim.raw + blocks.0)
    }

    /// As [`full_transfer`](Self::full_transfer), of which the next may go over the same tracks.
    #[inline(always)]
    pub(super) fn sweep_over(
        &mut self,
        dir: Dir,
        t: &Target,
        aim: Aim,
        pba: Pba,
        blocks: Blocks,
    ) -> (u64, EndPlace) {
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        if aim.sector + blocks.0 <= seg.usable.divisor() || !self.geometry.slips().is_empty() {
            return self.full_transfer(dir, t, aim, pba, blocks);
        }
        self.sweep_tracks(dir, *t, aim, blocks)
    }

    #[inline(never)]
    fn sweep_tracks(&mut self, dir: Dir, t: Target, aim: Aim, blocks: Blocks) -> (u64, EndPlace) {
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        let raw_end = aim.raw + blocks.0;
        if raw_end > seg.first_raw + seg.blocks() {
            return self.long_transfer(dir, aim, raw_end);
        }
        if self.swept.blocks != blocks.0 || self.swept.begun.pba != t.pba {
            let stretch = stretch(seg, aim, raw_end);
            self.swept = Swept { begun: t, aim, blocks: blocks.0, stretch };
        }
        self.pass(dir, seg, aim, &self.swept.stretch)
    }

    /// The same where sectors are slipped, and perhaps blocks remapped.
    #[inline(never)]
    fn slipped_transfer(&self, dir: Dir, t: Target, aim: Aim, pba: Pba, blocks: Blocks) -> (u64, EndPlace) {
        if self.scattered(pba, blocks) {
            return self.scattered_transfer(dir, pba, blocks);
        }
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        let raw_end = self.raw_end(aim.raw, pba, blocks);
        let slots = raw_end - aim.raw;
        if aim.sector + slots <= seg.usable.divisor() {
            return on_track(seg, &t, &aim, slots);
        }
        self.long_transfer(dir, aim, raw_end)
    }

    /// Whether some of several blocks are remapped.
    #[inline]
    fn scattered(&self, pba: Pba, blocks: Blocks) -> bool {
        // What is remapped lies on spare sectors, which are slipped.
        !self.geometry.slips().is_empty()
            && blocks.0 > 1
            && !self.geometry.remapped(pba.0..pba.0 + blocks.0).is_empty()
    }

    /// As [`full_transfer`](Self::full_transfer), by way of the places of remapped blocks.
    fn scattered_transfer(&self, dir: Dir, pba: Pba, blocks: Blocks) -> (u64, EndPlace) {
        let end = pba.0 + blocks.0;
        let (mut at, mut units, mut last) = (pba.0, 0, None::<EndPlace>);
        let mut remaps = self.geometry.remapped(at..end).iter().map(|r| r.0).peekable();
        loop {
            let next = remaps.peek().copied().unwrap_or(end);
            let piece = if next == at { 1 } else { next - at };
            remaps.next_if_eq(&at);
            let (t, aim) = self.aim(Pba(at));
            if let Some(from) = last {
                let switch = self.switch_time(dir, (from.cylinder, t.cylinder), from.surface != t.surface);
                units += self.gap_after(switch, from.angle, t.angle);
            }
            let (passed, place) = self.full_transfer(dir, &t, aim, Pba(at), Blocks(piece));
            (at, units, last) = (at + piece, units + passed, Some(place));
            if at == end {
                return (units, place);
            }
        }
    }

    /// The angle from where one track was left until another one can be read at `to`, `switch` ns later at the earliest.
    fn gap_after(&self, switch: u64, from: u64, to: u64) -> u64 {
        let gap = (to + REVOLUTION - from) % REVOLUTION;
        gap + (switch * self.rpm).saturating_sub(gap).div_ceil(REVOLUTION) * REVOLUTION
    }

    #[inline]
    fn raw_end(&self, raw: u64, pba: Pba, blocks: Blocks) -> u64 {
        if self.geometry.slips().is_empty() {
            raw + blocks.0
        } else {
            self.geometry.raw(Pba(pba.0 + blocks.0 - 1)) + 1
        }
    }

    /// Where a transfer can go on in one sweep to, and where it goes on then: whole tracks that hold no PBA are skipped.
    fn sweep(&self, seg: &ZoneRun, raw: u64, raw_end: u64) -> (u64, u64) {
        let (n, end) = (seg.sectors.divisor(), raw_end.min(seg.first_raw + seg.blocks()));
        if self.even.blocks_in(&(raw..raw_end)).is_some() {
            return (end, end);
        }
        let long = |from: u64, to: u64, n: u64| {
            let mut holes = self.geometry.slips().within(from..to).iter();
            holes.find(|hole| hole.end - hole.start >= n).filter(|hole| hole.start < raw_end)
        };
        // Where the next run begins, with tracks that may be shorter.
        let behind = || {
            let next = (end < raw_end).then(|| self.geometry.locate(end).seg.sectors.divisor());
            next.and_then(|next| long(end, end + 1, n.min(next)))
        };
        match long(raw, end, n).or_else(behind) {
            Some(hole) => (hole.start.min(end), hole.end),
            None => (end, end),
        }
    }

    /// The same of a transfer that goes on to other tracks, up to `raw_end`.
    #[inline(never)]
    fn long_transfer(&self, dir: Dir, mut aim: Aim, raw_end: u64) -> (u64, EndPlace) {
        let mut units = 0;
        loop {
            let seg = &self.geometry.zone_runs()[aim.zone_run];
            let (part_end, next_raw) = self.sweep(seg, aim.raw, raw_end);
            let (passed, place) = self.pass(dir, seg, aim, &stretch(seg, aim, part_end));
            units += passed;
            if part_end == raw_end {
                return (units, place);
            }
            let loc = self.geometry.locate(next_raw);
            let next = loc.seg;
            let start = next.place(loc.track);
            let switch = self.switch_time(
                dir,
                (place.cylinder, next.cylinder(start)),
                next.surface(start) != place.surface,
            );
            let (angle, sector) = (next.start(start), loc.sector);
            units +=
                self.gap_after(switch, place.angle, wrapped(angle + next.sector_angle(sector), REVOLUTION));
            let (zone_run, track) = (loc.zone_run, loc.track);
            aim = Aim { raw: next_raw, zone_run, track, sector, place: start, start: angle };
        }
    }

    /// The angle of a transfer's part in one run of a zone, gaps and lost turns included, and where it ends.
    fn pass(&self, dir: Dir, seg: &ZoneRun, aim: Aim, part: &Stretch) -> (u64, EndPlace) {
        let (advance, s) = (&self.advances[aim.zone_run][dir as usize], part.switches);
        let starts =
            s.steps * advance[0] + s.heads * advance[1] + s.groups * advance[2] + s.back * advance[3];
        let end = starts + seg.sector_angle(part.sectors);
        let place = EndPlace {
            track: seg.first_track + part.last,
            cylinder: seg.cylinder(part.place),
            surface: seg.surface(part.place),
            angle: (aim.start + end) % REVOLUTION,
        };
        (end - seg.sector_angle(aim.sector), place)
    }

    /// Nanoseconds of a transfer in the model without rotation.
    #[inline]
    pub(super) fn plain_transfer(&self, aim: Aim, pba: Pba, blocks: Blocks) -> u64 {
        if let Some((num, div)) = self.rate {
            return match blocks.0.checked_mul(num) {
                Some(product) => div.div_ceil(product),
                None => (u128::from(blocks.0) * u128::from(num)).div_ceil(u128::from(div.divisor())) as u64,
            };
        }
        let (mut raw, mut zone_run, mut units) = (aim.raw, aim.zone_run, 0);
        let raw_end =
            if self.scattered(pba, blocks) { raw + blocks.0 } else { self.raw_end(raw, pba, blocks) };
        while raw < raw_end {
            let seg = &self.geometry.zone_runs()[zone_run];
            let end = raw_end.min(seg.first_raw + seg.blocks());
            units += seg.sectors_angle(end - raw);
            (raw, zone_run) = (end, zone_run + 1);
        }
        self.per_rpm.div_ceil(units)
    }

    /// Puts the head where a transfer ends, in the models that do not need the angle.
    #[inline]
    pub(super) fn head_to_last(&mut self, first: Target, aim: Aim, pba: Pba, blocks: Blocks) {
        let usable = self.geometry.zone_runs()[aim.zone_run].usable.divisor();
        let last = if aim.sector + blocks.0 <= usable && self.geometry.slips().is_empty() {
            first
        } else {
            self.target(Pba(pba.0 + blocks.0 - 1))
        };
        self.head.track = TrackNo(last.track);
        (self.head.cylinder, self.head.surface) = (last.cylinder, last.surface);
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
