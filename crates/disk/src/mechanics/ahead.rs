//! What a controller asks of the mechanics beside plain operations: how far a transfer will have come, and access that begins
//! with whichever block passes first.

use super::{Mechanics, Model};
use crate::geometry::REVOLUTION;
use smrlab_units::{Blocks, Dir, Pba, SimTime};

impl Mechanics {
    /// When the first block and the last block of an operation that starts at `start` would have passed the head.
    pub fn preview(&self, start: SimTime, dir: Dir, pba: Pba, blocks: Blocks) -> (SimTime, SimTime) {
        let (target, aim) = self.aim(pba);
        let p = match self.model {
            Model::Instant => return (start, start),
            Model::NoRotation => {
                let p = self.position(start, dir, &target);
                let end = |n| SimTime(p.arrive + self.plain_transfer(aim, pba, Blocks(n)));
                return (end(1), end(blocks.0));
            }
            Model::Full => self.position(start, dir, &target),
        };
        let end =
            |units: u64| SimTime(p.arrive + self.per_rpm.div_ceil((p.wait + units as i64).max(0) as u64));
        let (units, _) = self.full_transfer(dir, &target, aim, pba, blocks);
        (end(self.full_transfer(dir, &target, aim, pba, Blocks(1)).0), end(units))
    }

    /// How many blocks of an operation of at most `most` blocks that starts at `start` have passed the head at `until`.
    pub fn passed(&self, start: SimTime, dir: Dir, pba: Pba, most: Blocks, until: SimTime) -> Blocks {
        let (target, aim) = self.aim(pba);
        let p = match self.model {
            Model::Instant => return most,
            _ => self.position(start, dir, &target),
        };
        let end = |n: u64| match self.model {
            Model::Full => {
                let (units, _) = self.full_transfer(dir, &target, aim, pba, Blocks(n));
                p.arrive + self.per_rpm.div_ceil((p.wait + units as i64).max(0) as u64)
            }
            _ => p.arrive + self.plain_transfer(aim, pba, Blocks(n)),
        };
        if p.arrive >= until.0 {
            return Blocks::ZERO;
        }
        let (mut done, mut not) = (0, most.0 + 1);
        while not - done > 1 {
            let middle = if not > most.0 { most.0 } else { done + (not - done) / 2 };
            if end(middle) <= until.0 { done = middle } else { not = middle }
        }
        Blocks(done)
    }

    /// As [`service`](Self::service), but begins with whichever of the blocks passes the head first, where they lie on
    /// one track (zero-latency access). Answers when the first of them and when all have passed the head.
    pub fn service_any(&mut self, start: SimTime, dir: Dir, pba: Pba, blocks: Blocks) -> (SimTime, SimTime) {
        let (target, aim) = self.aim(pba);
        let follows = pba == self.head.next && start == self.head.ready;
        if self.model == Model::Full && !follows && self.on_one_track(aim, pba, blocks) {
            let p = self.position(start, dir, &target);
            let (units, place) = self.full_transfer(dir, &target, aim, pba, blocks);
            let wait = p.wait.max(0) as u64;
            if wait + units > REVOLUTION {
                // The head arrives within the blocks: up to the next sector's edge, and once round.
                let each = REVOLUTION / self.geometry.zone_runs()[aim.zone_run].sectors.divisor();
                let inside = REVOLUTION - wait;
                let edge = (each - inside % each) % each;
                let end = SimTime(p.arrive + self.per_rpm.div_ceil(edge + REVOLUTION));
                place.leave(&mut self.head);
                self.head.angle = (target.angle + inside + edge) % REVOLUTION;
                (self.head.next, self.head.ready, self.head.dir) = (pba + blocks, end, dir);
                (self.last, self.began) = ((start.0, p), target);
                let first = SimTime(p.arrive + self.per_rpm.div_ceil(wait + each));
                return (first, end);
            }
        }
        let (first, _) = self.preview(start, dir, pba, blocks);
        (first, self.service(start, dir, pba, blocks))
    }
}
