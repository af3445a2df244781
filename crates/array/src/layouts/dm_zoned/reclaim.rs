//! Reclaim: what a random zone holds is brought to a sequential one, so that the random zone is free.

use super::records::{Change, Chunk};
use super::table::UNIT;
use super::{DRIVE, DmZoned, Doing, Task, Wait};
use crate::{End, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp};
use std::ops::Range;

/// How a chunk's blocks come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All of the buffer is above the sequential zone's write pointer: it is written there.
    Append,
    /// The chunk has a random zone alone: all is copied to a free sequential zone.
    Move,
    /// What the sequential zone holds is copied to the buffer, and that zone is free; the buffer is moved another time.
    Fold,
}

/// A random zone that could be reclaimed.
#[derive(Clone, Copy)]
struct Candidate {
    chunk: u64,
    way: Way,
    /// Something is being written to its chunk.
    busy: bool,
    /// When the random zone was written last, and its number.
    order: (u64, u32),
    /// What is valid in its chunk's sequential zone.
    weight: u64,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Gap,
    Read,
    Write,
}

/// A reclaim under way.
#[derive(Clone, Debug)]
pub(super) struct Reclaim {
    chunk: u64,
    /// A write waits for its end.
    wanted: bool,
    way: Way,
    from: u32,
    to: u32,
    /// Blocks of the chunk below are copied.
    done: u64,
    step: Step,
    /// The run of valid blocks that is being copied.
    run: Range<u64>,
}

/// Reclaim, of which there is one at a time.
#[derive(Clone, Debug)]
pub(super) enum Reclaiming {
    No,
    /// Its job has not begun.
    Queued,
    Running(Reclaim),
}

impl DmZoned {
    /// Whether a chunk is being reclaimed. A write that finds it so waits, and the reclaim ends as soon as it can.
    pub(super) fn awaits_reclaim(&mut self, chunk: u64) -> bool {
        match &mut self.reclaiming {
            Reclaiming::Running(reclaim) if reclaim.chunk == chunk => {
                reclaim.wanted = true;
                true
            }
            _ => false,
        }
    }

    /// Has a reclaim begin where a write found few random zones free, or works wait for one. Chunks that are being written cannot be reclaimed: the
    /// end of these writes asks again.
    pub(super) fn wants_reclaim(&mut self, plan: &mut MemberPlan) {
        self.few &= self.few_are_free();
        if self.can_reclaim() && (self.few || self.zones_wanted()) && self.victim().is_some() {
            self.end_pauses();
            self.queue_reclaim(plan);
        }
    }

    pub(super) fn few_are_free(&self) -> bool {
        (self.table.free_random.len() as u64) < self.options.low
    }

    /// Whether one may begin: one at a time, and none before the last one's metadata are written.
    pub(super) fn can_reclaim(&self) -> bool {
        let used = self.table.free_random.len() < self.table.shape.random().len();
        used && matches!(self.reclaiming, Reclaiming::No) && !self.committing && !self.dead
    }

    fn zones_wanted(&self) -> bool {
        self.parked.iter().any(|p| p.1 == Wait::Zone)
    }

    pub(super) fn queue_reclaim(&mut self, plan: &mut MemberPlan) {
        self.reclaiming = Reclaiming::Queued;
        plan.job(Task::Reclaim(0));
    }

    fn candidate(&self, zone: u32) -> Option<Candidate> {
        let chunk = self.table.owner(zone)?;
        let Chunk { data, buffer } = self.table.chunk(chunk);
        let pointer = data.map_or(0, |data| self.table.pointer(data));
        let above = |buffer| self.table.first_of(buffer).is_none_or(|first| first / UNIT * UNIT >= pointer);
        let way = match buffer {
            Some(buffer) if above(buffer) => Way::Append,
            Some(_) => Way::Fold,
            None if self.table.free_sequential.is_empty() => return None,
            None => Way::Move,
        };
        let weight = data.filter(|_| way != Way::Move).map_or(0, |data| self.table.valid_in(data));
        let order = (self.table.stamp(zone), zone);
        Some(Candidate { chunk, way, busy: self.writing.contains(&chunk), order, weight })
    }

    /// What is reclaimed next: of chunks that have a random zone alone that which was written longest ago; where there is none, the chunk
    /// whose sequential zone holds most; where that is being written, the one with a buffer that was written longest ago.
    fn victim(&self) -> Option<Candidate> {
        let all = self.table.shape.random().filter_map(|zone| self.candidate(zone));
        let (alone, buffers): (Vec<_>, Vec<_>) = all.partition(|c| c.way == Way::Move);
        let oldest = |of: &[Candidate]| of.iter().filter(|c| !c.busy).min_by_key(|c| c.order).copied();
        let heaviest = buffers.iter().min_by_key(|c| (u64::MAX - c.weight, c.order));
        oldest(&alone).or_else(|| heaviest.filter(|c| !c.busy).copied()).or_else(|| oldest(&buffers))
    }

    pub(super) fn start_reclaim(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        self.reclaiming = Reclaiming::No;
        let victim = self.victim();
        self.stuck = victim.is_none();
        let Some(Candidate { chunk, way, .. }) = victim else { return plan.end(ticket) };
        let Chunk { data, buffer } = self.table.chunk(chunk);
        let (from, to) = match way {
            Way::Append => (buffer, data),
            Way::Fold => (data, buffer),
            Way::Move => (data, self.allocate_any(plan)),
        };
        let (Some(from), Some(to)) = (from, to) else { return plan.end(ticket) };
        plan.cleaning("zone-reclaim", ticket, Blocks(self.table.live(chunk)));
        self.counters.reclaims += 1;
        let done = if way == Way::Append { self.table.pointer(to) } else { 0 };
        let (step, run) = (Step::Write, done..done);
        let reclaim = Reclaim { chunk, wanted: false, way, from, to, done, step, run };
        self.copy(ticket, reclaim, plan);
    }

    /// A free sequential zone; reclaim takes reserved ones, too.
    fn allocate_any(&mut self, plan: &mut MemberPlan) -> Option<u32> {
        let zone = self.table.take_sequential()?;
        if self.table.take_needed(zone) {
            plan.fence();
        }
        Some(zone)
    }

    /// A step of a reclaim is done: what comes next. A write that waits ends it between two runs.
    pub(super) fn reclaimed(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        let now = std::mem::replace(&mut self.reclaiming, Reclaiming::No);
        let Reclaiming::Running(mut reclaim) = now else { return plan.end(ticket) };
        match reclaim.step {
            Step::Gap => self.read_part(ticket, reclaim, plan),
            Step::Read => self.write_part(ticket, reclaim, plan),
            Step::Write => {
                let blocks = self.part(&reclaim);
                reclaim.done = blocks.end;
                if reclaim.way == Way::Append {
                    self.change(&Change::Took { chunk: reclaim.chunk, zone: reclaim.to, blocks }, plan);
                }
                match reclaim.done < reclaim.run.end {
                    true => self.read_part(ticket, reclaim, plan),
                    false => self.copy(ticket, reclaim, plan),
                }
            }
        }
    }

    /// What of the run is copied at a time.
    fn part(&self, reclaim: &Reclaim) -> Range<u64> {
        let from = reclaim.done.max(reclaim.run.start);
        from..reclaim.run.end.min(from + self.options.copy)
    }

    /// Goes on with the next run of valid blocks. What is written in order has zeroes up to there.
    fn copy(&mut self, ticket: Ticket, mut reclaim: Reclaim, plan: &mut MemberPlan) {
        let Some(run) = self.table.run(reclaim.from, reclaim.done) else {
            return self.end_reclaim(ticket, &reclaim, true, plan);
        };
        if reclaim.wanted && !self.zones_wanted() {
            return self.end_reclaim(ticket, &reclaim, false, plan);
        }
        let gap = reclaim.done..run.start;
        reclaim.run = run;
        if reclaim.way == Way::Fold || gap.is_empty() {
            return self.read_part(ticket, reclaim, plan);
        }
        reclaim.step = Step::Gap;
        self.write_to(ticket, &reclaim, &gap, End::Zero, plan);
        self.under_way(ticket, reclaim);
    }

    fn read_part(&mut self, ticket: Ticket, mut reclaim: Reclaim, plan: &mut MemberPlan) {
        let part = self.part(&reclaim);
        let place = (self.table.shape.at(reclaim.from, part.start), Blocks(part.end - part.start));
        plan.read_slot(ticket, DRIVE, Cause::Clean, place, 0);
        reclaim.step = Step::Read;
        self.under_way(ticket, reclaim);
    }

    fn write_part(&mut self, ticket: Ticket, mut reclaim: Reclaim, plan: &mut MemberPlan) {
        let part = self.part(&reclaim);
        self.counters.relocated += part.end - part.start;
        self.write_to(ticket, &reclaim, &part, End::Slot(0, Blocks::ZERO), plan);
        reclaim.step = Step::Write;
        self.under_way(ticket, reclaim);
    }

    fn write_to(
        &mut self,
        ticket: Ticket,
        reclaim: &Reclaim,
        blocks: &Range<u64>,
        from: End,
        plan: &mut MemberPlan,
    ) {
        let n = Blocks(blocks.end - blocks.start);
        let r = HostRequest::new(HostOp::Write, self.table.shape.at(reclaim.to, blocks.start), n);
        if reclaim.way != Way::Fold {
            self.reset(ticket, reclaim.to, blocks.start, plan);
            self.table.point(reclaim.to, blocks.end);
        }
        plan.ask(ticket, DRIVE, r.because(Cause::Clean), |out| out.push(n, from));
    }

    fn under_way(&mut self, ticket: Ticket, reclaim: Reclaim) {
        self.reclaiming = Reclaiming::Running(reclaim);
        self.works.put(ticket, Doing::Reclaiming);
    }

    /// All is copied, and the metadata say so; or a write waits, and what is copied is for nothing unless it was appended.
    fn end_reclaim(&mut self, ticket: Ticket, reclaim: &Reclaim, over: bool, plan: &mut MemberPlan) {
        let (chunk, zone) = (reclaim.chunk, reclaim.to);
        if !over {
            self.counters.given_up += 1;
            if reclaim.way == Way::Move {
                // What it holds is reset when the zone is taken again.
                self.table.free_sequential.insert(zone);
            }
            return plan.end(ticket);
        }
        match reclaim.way {
            Way::Move => self.change_and_settle(&Change::Moved { chunk, zone }, chunk, plan),
            Way::Append | Way::Fold => {
                let blocks = 0..self.table.shape.size;
                self.change_and_settle(&Change::Took { chunk, zone, blocks }, chunk, plan);
            }
        }
        self.flush(ticket, HostRequest::flush().because(Cause::Metadata), plan);
    }
}
