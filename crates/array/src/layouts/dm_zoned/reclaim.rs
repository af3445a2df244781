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

/// A reclaim under way.
#[derive(Clone, Debug)]
pub(super) struct Reclaim {
    pub chunk: u64,
    /// A write waits for its end.
    pub wanted: bool,
    way: Way,
    to: u32,
    /// Blocks of the chunk that are not copied yet.
    left: Range<u64>,
    /// What is being copied, and what of it is valid, in which zone: each run has a slot.
    step: Range<u64>,
    runs: Vec<(u32, Range<u64>)>,
    /// That is being read; else written.
    reading: bool,
}

impl DmZoned {
    /// Has a reclaim begin where few random zones are free, or works wait for one. Chunks that are being written cannot be reclaimed: the
    /// end of these writes asks again.
    pub(super) fn wants_reclaim(&mut self, plan: &mut MemberPlan) {
        let few = (self.table.free_random.len() as u64) < self.options.low;
        if self.can_reclaim() && (few || self.zones_wanted()) && self.victim().is_some() {
            self.queue_reclaim(plan);
        }
    }

    /// Whether one may begin: one at a time.
    pub(super) fn can_reclaim(&self) -> bool {
        let used = self.table.free_random.len() < self.table.shape.random().len();
        used && self.reclaim.is_none() && !self.queued && !self.dead
    }

    fn zones_wanted(&self) -> bool {
        self.parked.iter().any(|p| p.1 == Wait::Zone)
    }

    pub(super) fn queue_reclaim(&mut self, plan: &mut MemberPlan) {
        self.queued = true;
        plan.job(Task::Reclaim(0));
    }

    /// The chunk that is reclaimed next, and how: of chunks that have a random zone alone that which was written longest ago; where there is
    /// none, that whose sequential zone holds most.
    fn victim(&self) -> Option<(u64, Way)> {
        let none_free = self.table.free_sequential.is_empty();
        let of = |zone: u32| {
            let chunk = self.table.owner(zone).filter(|chunk| !self.writing.contains(chunk))?;
            let Chunk { data, buffer } = self.table.chunk(chunk);
            let pointer = data.map_or(0, |data| self.table.pointer(data));
            let above =
                |buffer| self.table.first_of(buffer).is_none_or(|first| first / UNIT * UNIT >= pointer);
            let way = match buffer {
                Some(buffer) if above(buffer) => Way::Append,
                Some(_) => Way::Fold,
                None if none_free => return None,
                None => Way::Move,
            };
            let rank = match way {
                Way::Move => (0, self.table.stamp(zone)),
                Way::Append | Way::Fold => (1, u64::MAX - data.map_or(0, |data| self.table.valid_in(data))),
            };
            Some((rank, zone, chunk, way))
        };
        let first = self.table.shape.random().filter_map(of).min_by_key(|v| (v.0, v.1));
        first.map(|(.., chunk, way)| (chunk, way))
    }

    pub(super) fn start_reclaim(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        self.queued = false;
        let victim = self.victim();
        self.stuck = victim.is_none();
        let Some((chunk, way)) = victim else { return plan.end(ticket) };
        let Chunk { data, buffer } = self.table.chunk(chunk);
        let end = |zone: Option<u32>| zone.map_or(0, |zone| self.table.end_of(zone).next_multiple_of(UNIT));
        let from = if way == Way::Append { data.map_or(0, |data| self.table.pointer(data)) } else { 0 };
        let left = from..end(data).max(end(buffer)).max(from);
        let to = match way {
            Way::Append => data,
            Way::Fold => buffer,
            Way::Move => self.allocate_any(plan),
        };
        let Some(to) = to else { return plan.end(ticket) };
        plan.cleaning("zone-reclaim", ticket, Blocks(self.table.live(chunk)));
        self.counters.reclaims += 1;
        let (step, runs) = (left.start..left.start, Vec::new());
        let reclaim = Reclaim { chunk, wanted: false, way, to, left, step, runs, reading: false };
        self.go_on_reclaiming(ticket, reclaim, plan);
    }

    /// A free sequential zone; reclaim takes reserved ones, too.
    fn allocate_any(&mut self, plan: &mut MemberPlan) -> Option<u32> {
        let zone = self.table.take_sequential()?;
        if self.table.take_needed(zone) {
            plan.fence();
        }
        Some(zone)
    }

    /// Reads or writes of a reclaim are done: what comes next.
    pub(super) fn reclaimed(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        let Some(mut reclaim) = self.reclaim.take() else { return plan.end(ticket) };
        if std::mem::take(&mut reclaim.reading) {
            return self.copy(ticket, reclaim, plan);
        }
        if reclaim.way != Way::Move && !reclaim.runs.is_empty() {
            let (chunk, zone, blocks) = (reclaim.chunk, reclaim.to, reclaim.step.clone());
            self.change(&Change::Took { chunk, zone, blocks }, plan);
        }
        match reclaim.wanted && !reclaim.left.is_empty() && !self.zones_wanted() {
            true => self.end_reclaim(ticket, &reclaim, plan),
            false => self.go_on_reclaiming(ticket, reclaim, plan),
        }
    }

    /// Plans the reads of the next step, or its writes where it has only gaps.
    fn go_on_reclaiming(&mut self, ticket: Ticket, mut reclaim: Reclaim, plan: &mut MemberPlan) {
        loop {
            if reclaim.left.is_empty() {
                return self.end_reclaim(ticket, &reclaim, plan);
            }
            let end = (reclaim.left.start + self.options.copy).min(reclaim.left.end);
            reclaim.step = reclaim.left.start..end;
            reclaim.left.start = end;
            reclaim.runs = self.table.unit_runs(reclaim.chunk, reclaim.step.clone());
            // What is there already stays where it is.
            reclaim.runs.retain(|(zone, _)| *zone != reclaim.to);
            if !reclaim.runs.is_empty() || reclaim.way != Way::Fold {
                break;
            }
        }
        if reclaim.runs.is_empty() {
            return self.copy(ticket, reclaim, plan);
        }
        for (slot, (zone, run)) in (0..).zip(&reclaim.runs) {
            let place = (self.table.shape.at(*zone, run.start), Blocks(run.end - run.start));
            plan.read_slot(ticket, DRIVE, Cause::Clean, place, slot);
        }
        reclaim.reading = true;
        self.under_way(ticket, reclaim);
    }

    fn under_way(&mut self, ticket: Ticket, reclaim: Reclaim) {
        self.reclaim = Some(reclaim);
        self.works.put(ticket, Doing::Reclaiming);
    }

    /// Plans the writes of a step. What is written in order has zeroes for its gaps.
    fn copy(&mut self, ticket: Ticket, reclaim: Reclaim, plan: &mut MemberPlan) {
        let Reclaim { to, step, runs, .. } = &reclaim;
        let blocks = |run: &Range<u64>| Blocks(run.end - run.start);
        let write = |run: &Range<u64>| {
            let r = HostRequest::new(HostOp::Write, self.table.shape.at(*to, run.start), blocks(run));
            HostRequest { why: Cause::Clean, ..r }
        };
        let slot = |slot: usize| End::Slot(slot as u32, Blocks::ZERO);
        if reclaim.way == Way::Fold {
            for (i, (_, run)) in runs.iter().enumerate() {
                plan.ask(ticket, DRIVE, write(run), |out| out.push(blocks(run), slot(i)));
            }
        } else {
            let request = write(step);
            self.reset(ticket, *to, step.start, plan);
            self.table.point(*to, step.end);
            plan.ask(ticket, DRIVE, request, |out| {
                let mut at = step.start;
                for (i, (_, run)) in runs.iter().enumerate() {
                    if run.start > at {
                        out.push(Blocks(run.start - at), End::Zero);
                    }
                    out.push(blocks(run), slot(i));
                    at = run.end;
                }
                if at < step.end {
                    out.push(Blocks(step.end - at), End::Zero);
                }
            });
        }
        self.counters.relocated += runs.iter().map(|(_, run)| run.end - run.start).sum::<u64>();
        self.under_way(ticket, reclaim);
    }

    /// All is copied; or a write waits, and what is copied counts as far as it is of use.
    fn end_reclaim(&mut self, ticket: Ticket, reclaim: &Reclaim, plan: &mut MemberPlan) {
        let (chunk, zone, over) = (reclaim.chunk, reclaim.to, reclaim.left.is_empty());
        match reclaim.way {
            Way::Move if over => self.change_and_settle(&Change::Moved { chunk, zone }, chunk, plan),
            // What it holds is reset when the zone is taken again.
            Way::Move => _ = self.table.free_sequential.insert(zone),
            Way::Append | Way::Fold => {
                if let Some(mapped) = self.table.settled(chunk) {
                    self.change(&mapped, plan);
                }
            }
        }
        self.counters.given_up += u64::from(!over);
        plan.end(ticket);
    }
}
