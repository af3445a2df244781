//! Rows of chunks with parities that go round: RAID-5 with one in a row, RAID-6 with two.
//!
//! A write of a row reads what its new parities need, then writes data and parities; the row is locked from the first read
//! to the last write. What dead disks held is made from the others ([`code`]).

pub mod code;
mod entry;
mod images;
mod journal;
pub mod log;
pub mod method;
mod operation;
mod reads;
pub mod rows;
mod tasks;
#[cfg(test)]
mod tests;
mod told;
mod writes;

pub(crate) use entry::common;
pub use entry::{INTENT, JOURNAL, LAYOUT, WRITE, built};

use crate::layouts::disks::Disks;
use crate::layouts::intent::{self, Intent};
use crate::layouts::places::Places;
use crate::layouts::rebuild::{Rebuild, RebuildSettings};
use crate::tickets::Tickets;
use crate::{Array, Health, Locks, MemberId, MemberPlan, Phase, Record, Records, Sink, Stop, Ticket, Work};
use code::Lost;
use method::Preference;
use operation::{Operation, Task, TaskPhase, WriteOp, WritePhase};
use rows::Rows;
use smrlab_stl::{Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, SimTime, counters, forward};

/// The first of four tags of records about disks.
const DISKS: u32 = 1;

/// How an array behaves beyond its shape.
#[derive(Clone, Copy, Debug)]
pub struct ParityOptions {
    /// How parity follows a write.
    pub preference: Preference,
    /// How a disk is rebuilt.
    pub rebuild: RebuildSettings,
    /// Rows whose parity is in doubt are remembered, and made good after a power cut.
    pub intent: bool,
    /// Rows are on an SSD before the disks are written.
    pub journal: bool,
    /// Parity of small writes is logged.
    pub log: log::LogSettings,
    /// Disks make different things of a discard, so that data and parity would not stay in step: none reaches them.
    pub mixed: bool,
}

counters! {
    /// What is counted.
    struct Counts {
        degraded,
        full => "rows_written_whole",
        modified => "rows_modified",
        reconstructed => "rows_reconstructed",
        journalled,
    }
}

/// More disks are dead than there are parities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooManyDead;

/// See the [module](self).
pub struct Parity {
    rows: Rows,
    options: ParityOptions,
    disks: Disks,
    intent: Intent,
    places: Places<journal::Entry>,
    logs: images::Logs,
    operations: Tickets<Operation>,
    /// Writes that are over, whose memory the next ones use.
    #[expect(clippy::vec_box, reason = "the same boxes go back to `operations`")]
    pool: Vec<Box<WriteOp>>,
    /// An empty plan, for use again.
    scratch: MemberPlan,
    counts: Counts,
}

impl Parity {
    /// Of this shape.
    pub fn new(rows: Rows, options: ParityOptions) -> Self {
        Self {
            rows,
            options,
            disks: Disks::new(rows.disks as usize, rows.parities, DISKS),
            intent: Intent::new(rows.rows, options.rebuild.rows * options.rebuild.depth),
            places: journal::places(options.journal),
            logs: images::Logs::default(),
            operations: Tickets::default(),
            pool: Vec::new(),
            scratch: MemberPlan::default(),
            counts: Counts::default(),
        }
    }

    /// Whether a disk holds its part of a row.
    #[inline]
    fn has(&self, disk: u64, row: u64) -> bool {
        !self.disks.degraded() || self.disks.has(disk, row / self.options.rebuild.rows)
    }

    /// The roles in a row whose disks do not hold their parts.
    fn lost(&self, row: u64) -> Result<Lost, TooManyDead> {
        let mut lost = Lost::NONE;
        if self.disks.degraded() {
            for disk in (0..self.rows.disks).filter(|d| !self.has(*d, row)) {
                lost = lost.and(self.rows.role(row, disk)).ok_or(TooManyDead)?;
            }
        }
        if lost.count() > self.rows.parities { Err(TooManyDead) } else { Ok(lost) }
    }

    /// Begins a request of the host's.
    fn start_host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let started = match r.op {
            HostOp::Read => self.start_read(ticket, r, plan),
            HostOp::Write => self.start_write(ticket, r, plan),
            HostOp::Flush => self.start_flush(ticket, r, plan),
            HostOp::Discard => {
                self.start_discard(ticket, r, plan);
                Ok(())
            }
            HostOp::Append | HostOp::Zone(_) => return plan.refuse(ticket, Refusal::Unsupported),
        };
        if started == Err(TooManyDead) {
            plan.clear();
            plan.refuse(ticket, Refusal::Lost);
        }
        self.apply_full(plan);
    }

    fn start_flush(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<(), TooManyDead> {
        if !self.disks.flush(ticket, r, plan) {
            return Err(TooManyDead);
        }
        self.operations.put(ticket, Operation::Simple(*r));
        Ok(())
    }

    /// A read of a phase got nothing. Where a disk died meanwhile, the operation, which has written nothing yet, begins again without it.
    fn restart(&mut self, ticket: Ticket, op: Operation, plan: &mut MemberPlan) {
        let changes = self.disks.changes();
        match op {
            Operation::Read(op) if op.changes != changes => self.start_host(ticket, &op.request, plan),
            Operation::Write(op) if op.changes != changes => {
                let request = op.request;
                self.pool.push(op);
                self.start_host(ticket, &request, plan);
            }
            Operation::Task(op) if op.changes != changes => self.start_task(ticket, op.task, plan),
            op => {
                if let Operation::Task(_) = op {
                    self.disks.give_up(plan);
                }
                plan.refuse(ticket, Refusal::Lost);
            }
        }
    }

    /// What the rebuild of a disk begins with.
    fn rebuilds(&self, now: SimTime) -> impl Fn(u64) -> Rebuild + use<> {
        let (rows, settings) = (self.rows.rows, self.options.rebuild);
        move |disk| settings.begin(disk, rows, now)
    }

    /// Takes up a record.
    fn recovered(&mut self, record: Record<'_>) {
        if let Some(event) = intent::IntentChange::of(record) {
            return self.intent.recover(event);
        }
        if self.recover_journal(record) || self.recover_log(record) {
            return;
        }
        let rebuild = self.rebuilds(SimTime::ZERO);
        if let Some(dead) = self.disks.recover(record, rebuild) {
            self.logs_die(dead);
        }
    }
}

impl Array for Parity {
    forward! { disks:
        fn rebuildable(&self, member: MemberId) -> bool;
        fn health(&self, member: MemberId) -> Health;
    }

    fn host_blocks(&self) -> Blocks {
        Blocks(self.rows.rows * self.rows.host_blocks())
    }

    fn group_blocks(&self) -> Option<Blocks> {
        Some(Blocks(self.rows.host_blocks()))
    }

    fn journal_blocks(&self) -> Blocks {
        self.journal_size() + self.log_size()
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) => Locks::of_host(r, |blocks| self.rows.rows_of(blocks)),
            Work::Job(job) => {
                Locks { stripes: Task::of(*job).map_or(0..0, |task| self.rows_of_task(task)), shared: false }
            }
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(request) => self.start_host(ticket, request, plan),
            Work::Job(job) => match Task::of(*job) {
                Some(task) => self.start_task(ticket, task, plan),
                None => plan.end(ticket),
            },
        }
    }

    fn writes(&mut self, request: &HostRequest, write: &mut dyn FnMut(MemberId, &HostRequest)) -> bool {
        self.tell_write(request, write)
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        match self.operations.take(ticket) {
            Some(op) if phase.lost => self.restart(ticket, op, plan),
            Some(Operation::Write(op)) => self.go_on_with_write(op, plan),
            Some(Operation::Task(op)) => self.go_on_with_task(op, plan),
            Some(Operation::Read(op)) => {
                self.deliver_lost(ticket, &op, plan);
                plan.end(ticket);
            }
            Some(Operation::Simple(request)) => {
                self.clean(&request, plan);
                plan.end(ticket);
            }
            None => plan.end(ticket),
        }
    }

    fn failed(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.disks.failed(member, plan);
        self.logs_die(member);
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        let rebuild = self.rebuilds(plan.now());
        self.disks.replace(member, rebuild, plan);
    }

    fn wake_at(&self, _: Option<SimTime>) -> Option<SimTime> {
        match self.intent.left() {
            0 => self.disks.next_at(self.options.rebuild.depth),
            _ => self.intent.waits().then_some(SimTime::ZERO),
        }
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        if let Some(row) = self.intent.look() {
            return plan.job(Task::Resync(row));
        }
        let unit = self.disks.begin(plan.now(), self.options.rebuild.pace);
        unit.into_iter().for_each(|unit| plan.job(Task::Rebuild(unit)));
    }

    fn unfinished(&self) -> bool {
        self.disks.rebuild().is_some() || self.intent.left() > 0
    }

    fn unclean(&mut self, stop: Stop, plan: &mut MemberPlan) {
        self.intent.unclean(stop, self.options.intent || self.options.journal, plan);
    }

    fn durable(&mut self) {
        self.places.durable();
    }

    fn recover(&mut self, records: &Records, plan: &mut MemberPlan) {
        records.iter().for_each(|record| self.recovered(record));
        self.plan_replays(plan);
        let dirty = self.intent.left_dirty();
        dirty.filter(|row| !self.resynced(*row).is_empty()).for_each(|row| plan.job(Task::Resync(row)));
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.disks.checkpoint(out);
        self.intent.checkpoint(out);
        self.checkpoint_journal(out);
        self.checkpoint_log(out);
        let changing = self.operations.iter().filter_map(|(_, op)| match op {
            Operation::Write(op) if op.phase == WritePhase::WriteRows => self.changing(&op.request),
            Operation::Simple(request) => self.changing(request),
            Operation::Task(op) if op.phase == TaskPhase::WriteTargets => self.applying(op.task),
            _ => None,
        });
        changing.for_each(|rows| intent::IntentChange::Dirty(rows).put(out));
    }

    fn map_bytes(&self) -> u64 {
        self.disks.bytes() + self.logs.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        let c = &self.counts;
        out.counts(c.named());
        if c.degraded > 0 {
            out.count("degraded_rows", c.degraded);
        }
        if self.options.journal {
            out.count("rows_journalled", c.journalled);
        }
        if self.logs_parity() {
            self.logs.counters(out);
        }
        self.disks.counters(out);
        self.intent.counters(out);
    }
}
