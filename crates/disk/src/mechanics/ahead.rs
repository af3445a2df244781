//! What a controller asks of the mechanics beside plain operations: when requests would begin, how far a transfer will have come,
//! and access that begins with whichever block passes first.

use super::transfer::{Aim, EndPlace, on_track, turn};
use super::{Mechanics, Model, Positioning, Target};
use crate::geometry::{REVOLUTION, TrackNo, wrapped};
use smrlab_units::{Blocks, Dir, Pba, SimTime};

impl Mechanics {
    /// When the transfer of a request that starts at `target` would begin if it were dispatched at `now`.
    #[inline]
    pub fn positioning(&self, now: SimTime, dir: Dir, target: &Target) -> SimTime {
        self.positionings(now)(dir, target)
    }

    /// The same for any number of requests: what they share is worked out once.
    #[inline]
    pub fn positionings(&self, now: SimTime) -> impl Fn(Dir, &Target) -> SimTime + '_ {
        let angle = self.angle(now);
        move |dir, target| {
            if self.model == Model::Instant {
                return now;
            }
            let p = self.position(now, angle, dir, target);
            SimTime(p.arrive + self.per_rpm.div_ceil(p.wait.max(0) as u64))
        }
    }

    /// When the first block and the last block of an operation that starts at `start` would have passed the head.
    pub fn preview(&self, start: SimTime, dir: Dir, pba: Pba, blocks: Blocks) -> (SimTime, SimTime) {
        let (target, aim) = self.aim(pba);
        let p = match self.model {
            Model::Instant => return (start, start),
            Model::NoRotation => {
                let p = self.position(start, self.angle(start), dir, &target);
                let end = |n| SimTime(p.arrive + self.plain_transfer(aim, pba, Blocks(n)));
                return (end(1), end(blocks.0));
            }
            Model::Full => self.position(start, self.angle(start), dir, &target),
        };
        let end =
            |units: u64| SimTime(p.arrive + self.per_rpm.div_ceil((p.wait + units as i64).max(0) as u64));
        let (units, _) = self.full_transfer(dir, &target, aim, pba, blocks);
        (end(self.full_transfer(dir, &target, aim, pba, Blocks(1)).0), end(units))
    }

    /// Reads as many of at most `most` blocks from `start` on as have passed the head at `until`. Answers how many, and when the
    /// last of them had passed.
    #[inline]
    pub fn read_until(
        &mut self,
        start: SimTime,
        pba: Pba,
        most: Blocks,
        until: SimTime,
    ) -> (Blocks, SimTime) {
        match self.run_on(start, pba, most, until) {
            Some(read) => read,
            None => self.read_some(start, pba, most, until),
        }
    }

    /// The same of blocks with which the last transfer goes on, where they lie on its track, which is the one that was noted: so reading
    /// ahead mostly goes. `None`: nothing was done.
    #[inline(always)]
    fn run_on(
        &mut self,
        start: SimTime,
        pba: Pba,
        most: Blocks,
        until: SimTime,
    ) -> Option<(Blocks, SimTime)> {
        let (track, at) = &self.noted;
        let seg = &self.geometry.zone_runs()[at.zone_run];
        if self.model != Model::Full
            || !self.head.goes_on(start, pba.0)
            || track.track != self.head.track.0
            || !self.even.has(pba, most.0)
        {
            return None;
        }
        let sector = self.even.raw(pba).wrapping_sub(at.raw - at.sector);
        let end_sector = sector.wrapping_add(most.0);
        if sector > end_sector || end_sector > seg.usable.divisor() {
            return None;
        }
        let from = seg.sector_angle(sector);
        let begin = wrapped(at.start + from, REVOLUTION);
        let late = turn(self.head.angle, self.angle(start));
        let wait = turn(self.head.angle, begin) as i64 - late as i64;
        // So much angle has passed by then, as far as it matters, and so the last edge of a sector.
        let passed = (until.since(start).0.min(3 * self.revolution) * self.rpm) as i64 - wait;
        let edge = seg.last_edge((from as i64 + passed).max(0) as u64);
        let done = edge.clamp(sector, end_sector) - sector;
        if done == 0 {
            return Some((Blocks::ZERO, start));
        }
        let to = seg.sector_angle(sector + done);
        let end = SimTime(start.0 + self.per_rpm.div_ceil((wait + (to - from) as i64).max(0) as u64));
        self.last = (start.0, Positioning { overhead: 0, arrive: start.0, wait });
        self.began = track.lies_on();
        self.head.angle = wrapped(at.start + to, REVOLUTION);
        self.head.ended(pba + Blocks(done), end);
        Some((Blocks(done), end))
    }

    /// As [`read_until`](Self::read_until), wherever the blocks lie.
    #[inline(never)]
    pub(super) fn read_some(
        &mut self,
        start: SimTime,
        pba: Pba,
        most: Blocks,
        until: SimTime,
    ) -> (Blocks, SimTime) {
        let (target, aim) = self.aim_near(pba);
        if self.model != Model::Full {
            let done = self.passed_plainly(start, pba, most, until);
            let end = if done > Blocks::ZERO { self.service(start, Dir::Read, pba, done) } else { start };
            return (done, end);
        }
        let p = self.position(start, self.angle(start), Dir::Read, &target);
        if p.arrive >= until.0 {
            return (Blocks::ZERO, start);
        }
        let end = |units: u64| p.arrive + self.per_rpm.div_ceil((p.wait + units as i64).max(0) as u64);
        let upto = |n: u64| self.full_transfer(Dir::Read, &target, aim, pba, Blocks(n));
        let passed = |n: u64| Some(upto(n)).filter(|(units, _)| end(*units) <= until.0);
        let (mut done, mut reached) = (most.0, passed(most.0));
        if reached.is_none() {
            let mut not = most.0;
            done = 0;
            // On the first track sectors come at an even pace: near enough to look right there.
            let sectors = self.geometry.zone_runs()[aim.zone_run].sectors.divisor();
            let angle = ((until.0 - p.arrive) * self.rpm).saturating_sub(p.wait.max(0) as u64);
            let guess = (angle.saturating_mul(sectors) / REVOLUTION).max(1);
            let mut looks = 0;
            while not - done > 1 {
                let n = match looks {
                    0 => guess,
                    1 if done == guess => guess + 1,
                    1 => guess - 1,
                    _ => done + (not - done) / 2,
                };
                let n = n.clamp(done + 1, not - 1);
                looks += 1;
                match passed(n) {
                    Some(place) => (done, reached) = (n, Some(place)),
                    None => not = n,
                }
            }
        }
        let Some((units, place)) = reached else { return (Blocks::ZERO, start) };
        let end = SimTime(end(units));
        self.leave(start, p, target.lies_on(), (place, pba + Blocks(done), end));
        (Blocks(done), end)
    }

    /// How many blocks have passed at `until` where the angle does not count.
    fn passed_plainly(&self, start: SimTime, pba: Pba, most: Blocks, until: SimTime) -> Blocks {
        let (target, aim) = self.aim(pba);
        if self.model == Model::Instant {
            return most;
        }
        let arrive = self.position(start, self.angle(start), Dir::Read, &target).arrive;
        let (mut done, mut not) = (0, most.0 + 1);
        while not - done > 1 {
            let middle = if not > most.0 { most.0 } else { done + (not - done) / 2 };
            let end = arrive + self.plain_transfer(aim, pba, Blocks(middle));
            if end <= until.0 { done = middle } else { not = middle }
        }
        Blocks(if arrive < until.0 { done } else { 0 })
    }

    /// As [`service`](Self::service) of a read; answers also when its first `gather` blocks have passed the head.
    #[inline]
    pub fn read_gathering(
        &mut self,
        start: SimTime,
        pba: Pba,
        blocks: Blocks,
        gather: Blocks,
    ) -> (SimTime, SimTime) {
        if self.model != Model::Full {
            let (_, gathered) = self.preview(start, Dir::Read, pba, gather);
            return (gathered, self.service(start, Dir::Read, pba, blocks));
        }
        self.look_at(pba);
        let (target, aim) = &self.noted;
        let p = self.position(start, self.angle(start), Dir::Read, target);
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        let near = self.even.has(pba, blocks.0) && aim.sector + blocks.0 <= seg.usable.divisor();
        let (gathered, (units, place)) = if near {
            (on_track(seg, target, aim, gather.0).0, on_track(seg, target, aim, blocks.0))
        } else {
            self.gathered(pba, blocks, gather)
        };
        let end =
            |units: u64| SimTime(p.arrive + self.per_rpm.div_ceil((p.wait + units as i64).max(0) as u64));
        let (first, last) = (end(gathered), end(units));
        self.leave(start, p, target.lies_on(), (place, pba + blocks, last));
        (first, last)
    }

    /// The angle that passes with the first `gather` of some blocks that were noted and with all of them, and where the head is then.
    #[inline(never)]
    fn gathered(&self, pba: Pba, blocks: Blocks, gather: Blocks) -> (u64, (u64, EndPlace)) {
        let (target, aim) = &self.noted;
        let all = |blocks| self.full_transfer(Dir::Read, target, *aim, pba, blocks);
        (all(gather).0, all(blocks))
    }

    #[inline(always)]
    fn leave(
        &mut self,
        start: SimTime,
        p: Positioning,
        began: (TrackNo, u32),
        (place, next, end): (EndPlace, Pba, SimTime),
    ) {
        place.leave(&mut self.head);
        self.head.ended(next, end);
        (self.last, self.began) = ((start.0, p), began);
    }

    /// The angle from the begin of the sector `aim` to the first edge of a sector of its track that is `inside` or more behind it.
    fn next_edge(&self, aim: Aim, inside: u64) -> u64 {
        let seg = &self.geometry.zone_runs()[aim.zone_run];
        let begin = seg.sector_angle(aim.sector);
        let edge = ((begin + inside) * seg.sectors.divisor()).div_ceil(REVOLUTION);
        seg.sectors_angle(edge) - begin
    }

    /// As [`service`](Self::service), but begins with whichever of the blocks passes the head first, where they lie on
    /// one track (zero-latency access). Answers when the first of them and when all have passed the head.
    pub fn service_any(&mut self, start: SimTime, dir: Dir, pba: Pba, blocks: Blocks) -> (SimTime, SimTime) {
        let (target, aim) = self.aim(pba);
        let goes_on = self.head.goes_on(start, pba.0);
        if self.model == Model::Full && !goes_on && self.on_one_track(aim, pba, blocks) {
            let p = self.position(start, self.angle(start), dir, &target);
            let (units, place) = self.full_transfer(dir, &target, aim, pba, blocks);
            let wait = p.wait.max(0) as u64;
            if wait + units > REVOLUTION {
                // The head arrives within the blocks: up to the next sector's edge, and once round.
                let first_block = self.full_transfer(dir, &target, aim, pba, Blocks(1)).0;
                let edge = self.next_edge(aim, REVOLUTION - wait);
                let end = SimTime(p.arrive + self.per_rpm.div_ceil(wait + edge));
                place.leave(&mut self.head);
                self.head.angle = (target.angle + edge) % REVOLUTION;
                self.head.ended(pba + blocks, end);
                (self.last, self.began) = ((start.0, p), target.lies_on());
                let first = SimTime(p.arrive + self.per_rpm.div_ceil(wait + first_block));
                return (first, end);
            }
        }
        let (first, _) = self.preview(start, dir, pba, blocks);
        (first, self.service(start, dir, pba, blocks))
    }
}
