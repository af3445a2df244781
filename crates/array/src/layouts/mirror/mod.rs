//! Copies of every chunk on different disks: RAID-1, and with more disks than copies RAID-10.
//!
//! A write goes to all living copies, a read to one of them (`shape.rs` says which disks have a chunk); a stripe that is being
//! written is noted, so that after a bad end its copies are made equal.

mod entry;
mod shape;

pub use entry::ENTRY;

use super::disks::Disks;
use super::intent::{self, Intent};
use super::mapped::{self, Extent};
use super::rebuild;
use crate::job::tasks;
use crate::tickets::Tickets;
use crate::{Array, End, Health, Locks, MemberId, MemberPlan, Phase, Records, Sink, Stop, Ticket, Work};
use shape::{Copied, Shape};
use smrlab_stl::{Cause, Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, forward, named};
use std::ops::Range;

named! {
    /// Which copy is read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reads {
        /// On the disk whose last request ended nearest to it.
        Nearest => "nearest",
        /// One after the other.
        Turns => "turns",
        /// The first.
        First => "first",
    }
}

tasks! {
    /// What the array does by itself.
    enum Task from 0 {
        /// Rebuilds this unit of the disk whose turn it is.
        Rebuild,
        /// Makes all copies of this chunk equal.
        Resync,
    }
}

/// What is under way, and the phase that it waits for.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A request of the host's: its one phase.
    Host(HostRequest),
    /// A task reads.
    ReadSources(Task),
    /// A task writes.
    WriteTarget(Task),
}

/// Consecutive chunks of a disk that a rebuild reads, into one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RowRun {
    disk: u64,
    rows: Range<u64>,
}

/// What a unit of a disk is made from.
#[derive(Clone, Debug, Default)]
struct Sources {
    runs: Vec<RowRun>,
    /// Of each of its rows: the slot, and where in it.
    rows: Vec<End>,
}

/// No copy of a chunk is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NoCopy;

/// See the [module](self).
pub struct Mirror {
    shape: Shape,
    reads: Reads,
    remembers: bool,
    rebuild: rebuild::RebuildSettings,
    disks: Disks,
    intent: Intent,
    operations: Tickets<(Operation, u64)>,
    /// Where the last request to each disk ended.
    tails: Vec<u64>,
    turn: u64,
    degraded: u64,
}

impl Mirror {
    fn new(shape: Shape, reads: Reads, remembers: bool, rebuild: rebuild::RebuildSettings) -> Self {
        let disks = shape.disks as usize;
        Self {
            shape,
            reads,
            remembers,
            rebuild,
            // Whether a copy of each chunk is left is found out chunk by chunk.
            disks: Disks::new(disks, shape.disks - 1, 1),
            intent: Intent::new(shape.chunks(), rebuild.rows * rebuild.depth),
            operations: Tickets::default(),
            tails: vec![0; disks],
            turn: 0,
            degraded: 0,
        }
    }

    fn has(&self, copy: &Copied) -> bool {
        !self.disks.degraded() || self.disks.has(copy.disk, copy.row / self.rebuild.rows)
    }

    fn copies(&self, chunk: u64) -> impl Iterator<Item = Copied> {
        self.shape.copies(chunk).filter(|copy| self.has(copy))
    }

    /// Whether of each chunk of a request a copy is left.
    fn has_copies(&self, r: &HostRequest) -> bool {
        self.shape.chunks_of(&r.span()).all(|chunk| self.copies(chunk).next().is_some())
    }

    /// Where blocks of the host's are in a copy of their chunk.
    fn extent(&self, copy: Copied, chunk: u64, span: &Range<u64>) -> Extent {
        let base = chunk * self.shape.chunk;
        let (start, end) = (span.start.max(base), span.end.min(base + self.shape.chunk));
        Extent {
            member: MemberId(copy.disk as u32),
            lba: Lba(copy.row * self.shape.chunk + start - base),
            blocks: Blocks(end - start),
            host: Blocks(start - span.start),
        }
    }

    /// The copy of a chunk to read. While copies may differ it is always the same.
    fn choose(&self, chunk: u64, span: &Range<u64>) -> Option<Extent> {
        let all = || self.copies(chunk).map(|copy| self.extent(copy, chunk, span));
        match self.reads {
            _ if self.intent.doubts(chunk) => all().next(),
            Reads::First => all().next(),
            Reads::Turns => all().nth((self.turn % all().count().max(1) as u64) as usize),
            Reads::Nearest => all().min_by_key(|e| e.lba.0.abs_diff(self.tails[e.member.at()])),
        }
    }

    /// Plans a request of the host's.
    fn ask(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) -> Result<(), NoCopy> {
        let (span, mut all) = (r.span(), Vec::new());
        self.turn += u64::from(r.op == HostOp::Read);
        for chunk in self.shape.chunks_of(&span) {
            let first = all.len();
            match r.op {
                HostOp::Read => all.extend(self.choose(chunk, &span)),
                _ => all.extend(self.copies(chunk).map(|copy| self.extent(copy, chunk, &span))),
            }
            if all.len() == first {
                return Err(NoCopy);
            }
            self.degraded += u64::from(self.shape.copies(chunk).any(|copy| !self.has(&copy)));
            all[first..].iter().for_each(|e| self.tails[e.member.at()] = (e.lba + e.blocks).0);
        }
        self.changing(r).into_iter().for_each(|chunks| self.intent.dirty(chunks, plan));
        mapped::ask(&mut all, ticket, r, plan);
        Ok(())
    }

    /// Chunks that a request changes, where that is to be remembered.
    fn changing(&self, r: &HostRequest) -> Option<Range<u64>> {
        let changes = self.remembers && matches!(r.op, HostOp::Write | HostOp::Discard);
        changes.then(|| self.shape.chunks_of(&r.span()))
    }

    fn start_host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        if matches!(r.op, HostOp::Append | HostOp::Zone(_)) {
            return plan.refuse(ticket, Refusal::Unsupported);
        }
        if r.op == HostOp::Flush {
            if !self.disks.flush(ticket, r, plan) {
                return plan.refuse(ticket, Refusal::Lost);
            }
        } else if self.ask(ticket, r, plan) == Err(NoCopy) {
            return plan.refuse(ticket, Refusal::Lost);
        }
        self.operations.put(ticket, (Operation::Host(*r), self.disks.changes()));
    }

    /// What a unit of the disk whose turn it is is made from; `None`: of some of it no copy is left.
    fn sources(&self, unit: u64) -> Option<Sources> {
        let (mut all, target) = (Sources::default(), self.disks.target()?);
        for row in self.rebuild.rows_of(unit, self.shape.rows) {
            let Some(chunk) = self.shape.chunk_at(Copied { disk: target, row }) else { break };
            let from = self.copies(chunk).find(|copy| copy.disk != target)?;
            let follows = |run: &RowRun| run.disk == from.disk && run.rows.end == from.row;
            let slot = all.runs.iter().position(follows).unwrap_or(all.runs.len());
            if slot == all.runs.len() {
                all.runs.push(RowRun { disk: from.disk, rows: from.row..from.row });
            }
            let run = &mut all.runs[slot];
            all.rows.push(End::Slot(slot as u32, Blocks((from.row - run.rows.start) * self.shape.chunk)));
            run.rows.end += 1;
        }
        Some(all)
    }

    /// Plans the reads of a task; answers whether it goes on.
    fn read_sources(&mut self, ticket: Ticket, task: Task, plan: &mut MemberPlan) -> bool {
        let chunk = self.shape.chunk;
        match task {
            Task::Rebuild(unit) => {
                let Some(all) = self.sources(unit) else {
                    self.disks.give_up(plan);
                    return false;
                };
                for (slot, run) in (0..).zip(&all.runs) {
                    let at = (Lba(run.rows.start * chunk), Blocks((run.rows.end - run.rows.start) * chunk));
                    plan.read_slot(ticket, MemberId(run.disk as u32), Cause::Rebuild, at, slot);
                }
                if all.runs.is_empty() {
                    self.disks.rebuilt(unit, self.disks.changes(), plan);
                }
                !all.runs.is_empty()
            }
            Task::Resync(of) => {
                let copies: Vec<Copied> = self.copies(of).take(2).collect();
                let [copy, _] = copies[..] else {
                    self.intent.looked_at(of, plan);
                    return false;
                };
                let at = (Lba(copy.row * chunk), Blocks(chunk));
                plan.read_slot(ticket, MemberId(copy.disk as u32), Cause::Rebuild, at, 0);
                true
            }
        }
    }

    /// They are read: plans the writes.
    fn write_target(&self, ticket: Ticket, task: Task, plan: &mut MemberPlan) {
        let chunk = self.shape.chunk;
        let write = |copy: Copied, why, ends: &[End], plan: &mut MemberPlan| {
            let blocks = Blocks(ends.len() as u64 * chunk);
            let r = HostRequest::new(HostOp::Write, Lba(copy.row * chunk), blocks);
            plan.ask(ticket, MemberId(copy.disk as u32), r.because(why), |out| {
                ends.iter().for_each(|end| out.push(Blocks(chunk), *end));
            });
        };
        match task {
            Task::Rebuild(unit) => {
                if let (Some(disk), Some(all)) = (self.disks.target(), self.sources(unit)) {
                    let row = self.rebuild.rows_of(unit, self.shape.rows).start;
                    write(Copied { disk, row }, Cause::Rebuild, &all.rows, plan);
                }
            }
            Task::Resync(of) => {
                let others = self.copies(of).skip(1);
                others.for_each(|copy| write(copy, Cause::Rebuild, &[End::Slot(0, Blocks::ZERO)], plan));
            }
        }
    }

    fn start_task(&mut self, ticket: Ticket, task: Task, plan: &mut MemberPlan) {
        match self.read_sources(ticket, task, plan) {
            true => self.operations.put(ticket, (Operation::ReadSources(task), self.disks.changes())),
            false => plan.end(ticket),
        }
    }

    /// What was read is lost or out of date, because a disk died: the same without it, where that died just now.
    fn restart(&mut self, ticket: Ticket, operation: Operation, changed: bool, plan: &mut MemberPlan) {
        match operation {
            Operation::Host(r) if changed => self.start_host(ticket, &r, plan),
            Operation::ReadSources(task) | Operation::WriteTarget(task) if changed => {
                self.start_task(ticket, task, plan)
            }
            Operation::Host(_) => plan.refuse(ticket, Refusal::Lost),
            Operation::ReadSources(_) | Operation::WriteTarget(_) => {
                self.disks.give_up(plan);
                plan.refuse(ticket, Refusal::Lost);
            }
        }
    }
}

impl Array for Mirror {
    forward! { disks:
        fn failed(&mut self, member: MemberId, plan: &mut MemberPlan);
        fn health(&self, member: MemberId) -> Health;
    }

    fn rebuildable(&self, member: MemberId) -> bool {
        let dead = |disk| self.disks.is_dead(MemberId(disk as u32));
        self.disks.rebuildable(member)
            && self.shape.first_chunks().map(|chunk| self.shape.copies(chunk)).all(|mut copies| {
                !copies.clone().any(|copy| copy.disk == u64::from(member.0))
                    || copies.any(|copy| !dead(copy.disk))
            })
    }

    fn host_blocks(&self) -> Blocks {
        Blocks(self.shape.chunks() * self.shape.chunk)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) => Locks::of_host(r, |blocks| self.shape.chunks_of(&blocks)),
            Work::Job(job) => {
                let stripes = match Task::of(*job) {
                    Some(Task::Rebuild(unit)) => {
                        self.shape.chunks_in(&self.rebuild.rows_of(unit, self.shape.rows))
                    }
                    Some(Task::Resync(chunk)) => chunk..chunk + 1,
                    None => 0..0,
                };
                Locks { stripes, shared: false }
            }
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(r) => self.start_host(ticket, r, plan),
            Work::Job(job) => match Task::of(*job) {
                Some(task) => self.start_task(ticket, task, plan),
                None => plan.end(ticket),
            },
        }
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        let Some((operation, changes)) = self.operations.take(ticket) else { return plan.end(ticket) };
        let changed = changes != self.disks.changes();
        match operation {
            _ if phase.lost => return self.restart(ticket, operation, changed, plan),
            Operation::ReadSources(_) if changed => {
                return self.restart(ticket, operation, changed, plan);
            }
            Operation::ReadSources(task) => {
                self.operations.put(ticket, (Operation::WriteTarget(task), changes));
                return self.write_target(ticket, task, plan);
            }
            Operation::Host(r) if phase.untaken.is_some() && !self.has_copies(&r) => {
                return plan.refuse(ticket, Refusal::Lost);
            }
            Operation::Host(r) => {
                self.changing(&r).into_iter().for_each(|chunks| self.intent.clean(chunks, plan));
            }
            Operation::WriteTarget(Task::Rebuild(unit)) => self.disks.rebuilt(unit, changes, plan),
            Operation::WriteTarget(Task::Resync(chunk)) => {
                self.intent.clean(chunk..chunk + 1, plan);
                self.intent.looked_at(chunk, plan);
            }
        }
        plan.end(ticket);
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        if !self.rebuildable(member) {
            return;
        }
        let (settings, rows, now) = (self.rebuild, self.shape.rows, plan.now());
        self.disks.replace(member, |disk| settings.begin(disk, rows, now), plan);
    }

    fn wake_at(&self, _: Option<SimTime>) -> Option<SimTime> {
        match self.intent.left() {
            0 => self.disks.next_at(self.rebuild.depth),
            _ => self.intent.waits().then_some(SimTime::ZERO),
        }
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        if let Some(chunk) = self.intent.look() {
            return plan.job(Task::Resync(chunk));
        }
        self.disks
            .begin(plan.now(), self.rebuild.pace)
            .into_iter()
            .for_each(|unit| plan.job(Task::Rebuild(unit)));
    }

    fn unfinished(&self) -> bool {
        self.disks.rebuild().is_some() || self.intent.left() > 0
    }

    fn unclean(&mut self, stop: Stop, plan: &mut MemberPlan) {
        self.intent.unclean(stop, self.remembers, plan);
    }

    fn recover(&mut self, records: &Records, plan: &mut MemberPlan) {
        let (settings, rows) = (self.rebuild, self.shape.rows);
        for record in records.iter() {
            match intent::IntentChange::of(record) {
                Some(event) => self.intent.recover(event),
                None => {
                    let fresh = |disk| settings.begin(disk, rows, SimTime::ZERO);
                    self.disks.recover(record, fresh);
                }
            }
        }
        self.intent.left_dirty().for_each(|chunk| plan.job(Task::Resync(chunk)));
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.disks.checkpoint(out);
        self.intent.checkpoint(out);
        for (_, (operation, _)) in self.operations.iter() {
            if let Operation::Host(r) = operation {
                self.changing(r).into_iter().for_each(|chunks| intent::IntentChange::Dirty(chunks).put(out));
            }
        }
    }

    fn map_bytes(&self) -> u64 {
        self.disks.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        if self.degraded > 0 {
            out.count("degraded_chunks", self.degraded);
        }
        self.disks.counters(out);
        self.intent.counters(out);
    }
}
