//! A log of stripes over all drives: every write goes behind the append pointers of a group, a segment of each drive, wherever it belongs.
//!
//! A map says where each chunk is. Nothing is written over, so parity is made of what is written with it and never read. A group that holds few
//! current chunks is emptied: they move to a group of what has outlived others. With segments that are zones the drives may be host-managed.
//!
//! What a work reads from a group keeps the group as it is until the work is over; what it writes holds, and is recorded, when all of it is written.

mod collect;
mod entry;
mod reads;
mod rebuild;
mod records;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod work;
mod writes;

pub use entry::ENTRY;
pub(super) use entry::{BATCH, FILL, moving};

use crate::job::tasks;
use crate::layouts::chunks::{Lost, cut, deliver_lost, numbers, parts_in, touched};
use crate::layouts::disks::Disks;
use crate::tickets::Tickets;
use crate::{Array, Health, Locks, MemberId, MemberPlan, Phase, Records, Sink, Ticket, Work};
use records::{DISKS, Event};
use shape::Shape;
use smrlab_stl::{Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Zone, ZoneKind, counters, forward};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use table::Table;
use work::{Claim, Operation, Purpose, ReadOp, RebuildOp, WriteOp};

/// Stripes that a write cache gives at a time, where chunks wait in it.
const TOGETHER: usize = 16;

tasks! {
    /// What it does by itself.
    enum Task from 0 {
        /// Rebuilds this unit of the disk whose turn it is.
        Rebuild,
        /// Moves some chunks of the group that is being emptied.
        Collect,
    }
}

/// What becomes of a write that fills no stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stripes {
    /// Its stripe is as narrow as it is.
    Variable,
    /// Zeroes are written beside it.
    Pad,
    /// It waits in the write cache.
    Wait,
}

/// What users set beside the shape.
#[derive(Clone, Copy, Debug)]
struct FullStripeOptions {
    stripes: Stripes,
    /// Chunks that the collector moves at a time.
    batch: u64,
    /// Units rebuilt at a time.
    depth: u64,
}

/// A zone of a drive.
#[derive(Clone, Copy, Debug)]
struct OnDrive {
    /// It takes writes anywhere.
    anywhere: bool,
    /// Blocks of it that are written.
    written: u64,
}

counters! {
    /// Events that are counted.
    struct Counts {
        full => "stripes_full",
        partial => "stripes_partial",
        padded => "chunks_padded",
        fills => "fill_reads",
        collections => "collections",
        moved => "chunks_moved",
        resets,
    }
}

/// See the [module](self).
pub struct FullStripe {
    shape: Shape,
    options: FullStripeOptions,
    seed: u64,
    table: Table,
    disks: Disks,
    /// Of each disk its zones; nothing where segments are no zones.
    zones: Vec<Vec<OnDrive>>,
    operations: Tickets<Operation>,
    /// Works that wait for room, or for writes to a group that they rebuild, the first that came first.
    parked: VecDeque<Ticket>,
    /// The chunks of writes under way, where a write cache gathers its own from everywhere.
    claims: Vec<Claim>,
    /// Groups whose old content the layers below are to be told of.
    resets: Vec<u64>,
    /// The group that is being emptied; whether a job for it is under way; whether what it holds is lost.
    victim: Option<u64>,
    collecting: bool,
    stuck: bool,
    /// The first chunk that a write cache has not offered lately.
    hand: u64,
    counts: Counts,
}

impl FullStripe {
    fn new(shape: Shape, options: FullStripeOptions, seed: u64, zones: &[Vec<Zone>]) -> Self {
        let mut array = Self {
            shape,
            options,
            seed,
            table: Table::new(shape),
            disks: Disks::new(shape.disks as usize, 1, DISKS),
            zones: vec![Vec::new(); zones.len()],
            operations: Tickets::default(),
            parked: VecDeque::new(),
            claims: Vec::new(),
            resets: Vec::new(),
            victim: None,
            collecting: false,
            stuck: false,
            hand: 0,
            counts: Counts::default(),
        };
        (0..).map(MemberId).zip(zones).for_each(|(disk, zones)| array.reported(disk, zones));
        array
    }

    /// The chunks of a range: number, blocks within it, offset in the range.
    fn chunks(&self, blocks: Range<u64>) -> impl Iterator<Item = (u64, Range<u64>, u64)> + use<> {
        cut(&blocks, self.shape.chunk)
    }

    fn start_host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let done = match r.op {
            HostOp::Append | HostOp::Zone(_) => return plan.refuse(ticket, Refusal::Unsupported),
            HostOp::Flush if !self.disks.flush(ticket, r, plan) => Err(Lost),
            HostOp::Flush => {
                let op = ReadOp::new(*r, self.disks.changes());
                return self.operations.put(ticket, Operation::Read(op));
            }
            HostOp::Read => self.read(ticket, r, plan),
            HostOp::Write | HostOp::Discard if self.disks.too_many() => Err(Lost),
            HostOp::Write | HostOp::Discard => self.start_write(ticket, Purpose::Host(*r), plan),
        };
        if done == Err(Lost) {
            plan.refuse(ticket, Refusal::Lost);
        }
    }

    /// A read of a phase got nothing, because its disk died: nothing was written yet, so that the same begins again without that disk.
    fn restart(&mut self, ticket: Ticket, operation: &Operation, plan: &mut MemberPlan) {
        let (Operation::Read(ReadOp { reads, changes, .. })
        | Operation::Write(WriteOp { reads, changes, .. })
        | Operation::Rebuild(RebuildOp { reads, changes, .. })) = operation;
        self.over(ticket, reads);
        let same = *changes == self.disks.changes();
        match operation {
            Operation::Rebuild(op) if !same && self.disks.is_own(op.changes) => {
                self.rebuild(ticket, op.unit, plan);
            }
            Operation::Rebuild(_) => {
                if same {
                    self.disks.give_up(plan);
                }
                plan.end(ticket);
            }
            Operation::Write(op) if !same || op.is_collection() => {
                self.begin_again(ticket, &op.purpose, plan);
            }
            Operation::Read(op) if !same => self.start_host(ticket, &op.request, plan),
            Operation::Write(_) | Operation::Read(_) => plan.refuse(ticket, Refusal::Lost),
        }
    }

    /// What a read of lost chunks brought is put together.
    fn deliver(&mut self, ticket: Ticket, op: &ReadOp, plan: &mut MemberPlan) {
        deliver_lost(&op.missing, ticket, plan);
        self.over(ticket, &op.reads);
        plan.end(ticket);
    }

    /// The chunks that a write cache had better give now: whole stripes of what is dirty, from the hand on.
    fn full_stripes(&self, runs: &[Range<u64>]) -> BTreeSet<u64> {
        let dirty = touched(runs, self.shape.chunk);
        let wide = self.shape.disks as usize - 1;
        let n = dirty.len() / wide * wide;
        let round = dirty.range(self.hand..).chain(dirty.range(..self.hand));
        round.take(n.min(TOGETHER * wide)).copied().collect()
    }
}

impl Array for FullStripe {
    forward! { disks:
        fn failed(&mut self, member: MemberId, plan: &mut MemberPlan);
        fn rebuildable(&self, member: MemberId) -> bool;
        fn health(&self, member: MemberId) -> Health;
    }

    fn host_blocks(&self) -> Blocks {
        Blocks(self.shape.logical * self.shape.chunk)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) => {
                Locks::of_host(r, |blocks| numbers(&blocks, self.shape.locked() * self.shape.chunk))
            }
            Work::Job(_) => Locks::NONE,
        }
    }

    fn destage_locks(&self, group: &HostRequest) -> Locks {
        match self.options.stripes {
            // Of works that write the same chunk one at a time has it; what is read stays where it is.
            Stripes::Wait => Locks::NONE,
            Stripes::Variable | Stripes::Pad => self.locks(&Work::Host(*group)),
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(r) => self.start_host(ticket, r, plan),
            Work::Job(job) => match Task::of(*job) {
                Some(Task::Rebuild(unit)) => self.rebuild(ticket, unit, plan),
                Some(Task::Collect(_)) => self.start_collect(ticket, plan),
                None => plan.end(ticket),
            },
        }
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn start_runs(&mut self, ticket: Ticket, runs: &[Range<u64>], plan: &mut MemberPlan) {
        self.hand = runs.last().map_or(0, |r| r.end.div_ceil(self.shape.chunk));
        if self.disks.too_many() || self.start_write(ticket, Purpose::Runs(runs.to_vec()), plan) == Err(Lost)
        {
            plan.refuse(ticket, Refusal::Lost);
        }
    }

    fn ripe(&self, runs: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
        let wait = self.options.stripes == Stripes::Wait;
        wait.then(|| parts_in(runs, self.shape.chunk, &self.full_stripes(runs)))
    }

    fn group_blocks(&self) -> Option<Blocks> {
        (self.options.stripes == Stripes::Wait).then(|| self.host_blocks())
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        let Some(operation) = self.operations.take(ticket) else { return plan.end(ticket) };
        match operation {
            operation if phase.lost => self.restart(ticket, &operation, plan),
            Operation::Read(op) => self.deliver(ticket, &op, plan),
            Operation::Write(op) => self.go_on_with_write(ticket, op, phase.untaken, plan),
            Operation::Rebuild(op) => self.go_on_with_rebuild(ticket, op, plan),
        }
        self.go_on(plan);
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.replace(member, plan);
    }

    fn reported(&mut self, member: MemberId, zones: &[Zone]) {
        let of = |zone: &Zone| OnDrive {
            anywhere: zone.kind == ZoneKind::Conventional,
            written: zone.pointer.map_or(zone.blocks.0, |pointer| pointer.0 - zone.start.0),
        };
        if let Some(own) = self.zones.get_mut(member.at()) {
            *own = zones.iter().take(self.shape.groups as usize).map(of).collect();
        }
    }

    fn wake_at(&self, _: Option<SimTime>) -> Option<SimTime> {
        self.disks.next_at(self.options.depth)
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        if let Some(unit) = self.disks.begin(plan.now(), SimTime::ZERO) {
            plan.job(Task::Rebuild(unit));
        }
    }

    fn unfinished(&self) -> bool {
        self.disks.rebuild().is_some()
    }

    fn durable(&mut self) {
        self.table.durable();
    }

    fn recover(&mut self, records: &Records, _: &mut MemberPlan) {
        self.restore(records);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        out.add(&Event::Used(self.table.fresh()));
        for (group, tables) in self.table.groups() {
            out.add(&Event::Opened(group));
            for words in tables.stripes() {
                out.add(&Event::Stripe(group, words.iter().map(|w| table::Cell::of(*w)).collect()));
            }
        }
        self.disks.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        for (lcn, part, at) in self.chunks(lba.span(blocks)) {
            if self.table.place(lcn).is_some() {
                out(lba.0 + at..lba.0 + at + part.end - part.start);
            }
        }
    }

    fn map_bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        let c = &self.counts;
        out.counts(c.named());
        if !self.zones.is_empty() {
            out.count("zone_resets", c.resets);
        }
        out.level("free_groups", self.table.free());
        out.level("used_chunks", self.table.live());
        self.disks.counters(out);
    }
}
