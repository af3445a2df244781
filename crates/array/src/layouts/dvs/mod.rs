//! DVS: dynamic variable-width striping over segments that are only appended to (Luo et al.).
//!
//! A group is one segment of every disk. A write packs its chunks into new stripes of any width, behind each disk's own
//! append pointer; old data and parity are never read or overwritten. A group without room is collected: its live chunks
//! are read, its segments reset, and all is striped anew. A group is locked from the first read to the last write.

pub mod cached_tables;
mod entry;
pub mod group;
pub mod group_write;
pub mod groups;
mod journal;
mod operation;
mod options;
pub mod pack;
mod reads;
mod rebuild;
pub mod shape;
pub mod source;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod victim;
mod wait;
mod writes;

pub use entry::ENTRY;
pub use options::{DvsOptions, Stripes};

use crate::layouts::chunks::{Lost, cut, deliver_lost, numbers};
use crate::layouts::disks::Disks;
use crate::layouts::places::Places;
use crate::tickets::Tickets;
use crate::{Array, Change, Health, Locks, MemberId, MemberPlan, Phase, Records, Sink, Ticket, Work};
use cached_tables::CachedTables;
use group::{Cell, Group};
use group_write::GroupWrite;
use groups::Groups;
use journal::{Entry, TableChange};
use operation::{Operation, Purpose, Task, WriteOp};
use pack::Packer;
use shape::Shape;
use smrlab_stl::{Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, forward};
use source::Source;
use std::collections::BTreeSet;
use std::ops::Range;
use tables::DirtyTables;

/// The first of four tags of records about disks.
const DISKS: u32 = 4;

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    full: u64,
    partial: u64,
    fills: u64,
    foreground: u64,
    background: u64,
    given_up: u64,
    moved: u64,
    filled: u64,
    journalled: u64,
}

/// See the [module](self).
pub struct Dvs {
    shape: Shape,
    options: DvsOptions,
    groups: Groups,
    /// Requests that touched each group, and the number of the last; none where nothing is collected in idle time.
    touched: Vec<(u32, u64)>,
    disks: Disks,
    operations: Tickets<Operation>,
    /// Writes that are over, whose memory the next ones use.
    #[expect(clippy::vec_box, reason = "the same boxes go back to `operations`")]
    pool: Vec<Box<WriteOp>>,
    spare: Vec<GroupWrite>,
    packer: Packer,
    /// What the rule says, and group, of those worth collecting.
    victims: BTreeSet<(u64, std::cmp::Reverse<u64>)>,
    collecting: bool,
    /// Requests of the host's so far.
    touches: u64,
    dirty_tables: DirtyTables,
    cached_tables: CachedTables,
    places: Places<Entry>,
    counts: Counts,
}

impl Dvs {
    /// Of this shape.
    pub fn new(shape: Shape, options: DvsOptions) -> Self {
        Self {
            shape,
            options,
            groups: Groups::new(shape.groups),
            touched: vec![(0, 0); options.idle.map_or(0, |_| shape.groups as usize)],
            disks: Disks::new(shape.disks as usize, 1, DISKS),
            operations: Tickets::default(),
            pool: Vec::new(),
            spare: Vec::new(),
            packer: Packer::default(),
            victims: BTreeSet::new(),
            collecting: false,
            touches: 0,
            dirty_tables: DirtyTables::default(),
            cached_tables: CachedTables::new(options.tables),
            places: Places::new(if options.journal { journal::PLACES } else { 0 }),
            counts: Counts::default(),
        }
    }

    fn groups_of(&self, blocks: &Range<u64>) -> Range<u64> {
        numbers(blocks, self.shape.logical * self.shape.chunk)
    }

    /// The chunks of a range: group, chunk, blocks within it, offset in the range.
    fn chunks(&self, blocks: Range<u64>) -> impl Iterator<Item = (u64, u64, Range<u64>, u64)> + use<> {
        let logical = self.shape.logical;
        cut(&blocks, self.shape.chunk).map(move |(c, part, at)| (c / logical, c % logical, part, at))
    }

    fn group(&self, group: u64) -> Option<&Group> {
        self.groups.get(group)
    }

    /// A group that was written, to be read.
    fn source(&self, group: u64) -> Option<Source<'_>> {
        Some(Source { shape: &self.shape, group, tables: self.group(group)?, disks: &self.disks })
    }

    fn group_mut(&mut self, group: u64) -> &mut Group {
        self.groups.begin(group, &self.shape)
    }

    /// The groups that an operation needs the tables of, besides those that are in the journal.
    fn groups_needed(&self, purpose: &Purpose) -> BTreeSet<u64> {
        match purpose {
            Purpose::Host(r) => self.groups_of(&r.span()).collect(),
            Purpose::Runs(runs) => runs.iter().flat_map(|run| self.groups_of(run)).collect(),
            Purpose::Task(Task::Rebuild(group) | Task::Collect(group)) => [*group].into(),
            Purpose::Task(Task::Replay(_) | Task::WriteTables(_)) => BTreeSet::new(),
        }
    }

    /// Begins an operation; tables that the SSD does not have are read first.
    fn begin(&mut self, ticket: Ticket, purpose: Purpose, plan: &mut MemberPlan) {
        if self.cached_tables.bounded() && self.read_tables(ticket, &self.groups_needed(&purpose), plan) {
            let operation = Operation::ReadTables(purpose, self.disks.changes());
            return self.operations.put(ticket, operation);
        }
        self.begin_with_tables(ticket, purpose, plan);
    }

    /// Begins an operation whose tables the SSD has.
    fn begin_with_tables(&mut self, ticket: Ticket, purpose: Purpose, plan: &mut MemberPlan) {
        let task = purpose.task();
        let begun = match purpose {
            Purpose::Host(r) => self.begin_host(ticket, &r, plan),
            Purpose::Runs(_) if self.disks.too_many() => Err(Lost),
            Purpose::Runs(runs) => self.begin_runs(ticket, runs, plan),
            Purpose::Task(Task::Rebuild(group)) => {
                self.begin_rebuild(ticket, group, plan);
                Ok(())
            }
            Purpose::Task(Task::Collect(group)) => self.begin_collection(ticket, group, plan),
            Purpose::Task(Task::Replay(place)) => self.begin_replay(ticket, place, plan),
            Purpose::Task(Task::WriteTables(_)) => {
                self.write_tables(ticket, plan);
                Ok(())
            }
        };
        if begun == Err(Lost) {
            plan.clear();
            self.refuse(ticket, task, plan);
        }
    }

    fn begin_host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) -> Result<(), Lost> {
        if !matches!(r.op, HostOp::Append | HostOp::Zone(_)) {
            self.touch(self.groups_of(&r.span()));
        }
        match r.op {
            HostOp::Read => return self.begin_read(ticket, r, plan),
            // Chunk and parity could both fall to dead disks.
            HostOp::Write | HostOp::Discard if self.disks.too_many() => return Err(Lost),
            HostOp::Write => return self.begin_write(ticket, r, plan),
            HostOp::Discard => {
                self.unmap(r, plan);
                return self.begin_write(ticket, r, plan);
            }
            HostOp::Flush if !self.disks.flush(ticket, r, plan) => return Err(Lost),
            HostOp::Flush => self.operations.put(ticket, Operation::Simple),
            HostOp::Append | HostOp::Zone(_) => plan.refuse(ticket, Refusal::Unsupported),
        }
        Ok(())
    }

    /// An operation cannot be done; `task`: it is one of the array's own.
    fn refuse(&mut self, ticket: Ticket, task: Option<Task>, plan: &mut MemberPlan) {
        match task {
            Some(Task::Collect(_)) => self.collecting = false,
            Some(Task::Rebuild(_)) => self.disks.give_up(plan),
            Some(Task::Replay(_) | Task::WriteTables(_)) | None => {}
        }
        plan.refuse(ticket, Refusal::Lost);
    }

    /// A read of a phase got nothing. Where a disk died meanwhile, the operation, which has written nothing yet, begins again without it.
    fn restart(&mut self, ticket: Ticket, operation: Operation, plan: &mut MemberPlan) {
        let (purpose, changes) = match operation {
            Operation::ReadTables(purpose, changes) => (purpose, changes),
            Operation::Read(op) => (Purpose::Host(op.request), op.changes),
            Operation::Write(op) => (op.purpose, op.changes),
            Operation::Rebuild(op) => (Purpose::Task(Task::Rebuild(op.group)), op.changes),
            // It reads nothing.
            Operation::Simple => return plan.end(ticket),
        };
        if changes != self.disks.changes() {
            return self.begin(ticket, purpose, plan);
        }
        self.refuse(ticket, purpose.task(), plan);
    }
}

impl Array for Dvs {
    forward! { disks:
        fn failed(&mut self, member: MemberId, plan: &mut MemberPlan);
        fn rebuildable(&self, member: MemberId) -> bool;
        fn health(&self, member: MemberId) -> Health;
    }

    fn host_blocks(&self) -> Blocks {
        Blocks(self.shape.groups * self.shape.logical * self.shape.chunk)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) => Locks::of_host(r, |blocks| self.groups_of(&blocks)),
            Work::Job(job) => {
                let group = match Task::of(*job) {
                    Some(Task::Rebuild(group) | Task::Collect(group)) => group,
                    Some(Task::Replay(place)) => self.places.get(place).map_or(0, |entry| entry.group),
                    Some(Task::WriteTables(_)) | None => return Locks::NONE,
                };
                Locks { stripes: group..group + 1, shared: false }
            }
        }
    }

    fn prefetch(&mut self, request: &HostRequest) {
        let group = self.groups_of(&request.span()).start;
        self.groups.prefetch(group);
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(r) => self.begin(ticket, Purpose::Host(*r), plan),
            Work::Job(job) => match Task::of(*job) {
                Some(task) => self.begin(ticket, Purpose::Task(task), plan),
                None => plan.end(ticket),
            },
        }
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn start_runs(&mut self, ticket: Ticket, runs: &[Range<u64>], plan: &mut MemberPlan) {
        self.begin(ticket, Purpose::Runs(runs.to_vec()), plan);
    }

    fn ripe(&self, runs: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
        (self.options.stripes == Stripes::Wait).then(|| self.full_stripes(runs))
    }

    fn journal_blocks(&self) -> Blocks {
        self.journal_size()
    }

    fn group_blocks(&self) -> Option<Blocks> {
        Some(Blocks(self.shape.logical * self.shape.chunk))
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        match self.operations.take(ticket) {
            Some(op) if phase.lost => self.restart(ticket, op, plan),
            Some(op) if phase.busy && op.is_begun_collection() => {
                self.collecting = false;
                self.counts.given_up += 1;
                plan.end(ticket);
            }
            Some(Operation::ReadTables(purpose, _)) => self.begin_with_tables(ticket, purpose, plan),
            Some(Operation::Write(op)) => self.go_on_with_write(op, plan),
            Some(Operation::Rebuild(op)) => self.go_on_with_rebuild(ticket, op, plan),
            Some(Operation::Read(op)) => {
                deliver_lost(&op.lost, ticket, plan);
                plan.end(ticket);
            }
            Some(Operation::Simple) | None => plan.end(ticket),
        }
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        let (rebuild, empty) = (self.rebuilds(plan.now()), self.empty_groups());
        let begun = |disk| {
            let mut rebuild = rebuild(disk);
            empty.into_iter().for_each(|group| _ = rebuild.finished(group));
            rebuild
        };
        self.disks.replace(member, begun, plan);
        self.tables_gone(plan.now(), u64::from(member.0));
    }

    fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime> {
        let may = !self.collecting && !self.victims.is_empty();
        let collect = || Some(idle? + self.options.idle?);
        let next = self.disks.next_at(self.options.depth).or_else(|| if may { collect() } else { None });
        // The earlier of the two.
        self.dirty_tables.due.into_iter().chain(next).min()
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        if self.dirty_tables.due.is_some_and(|due| due <= plan.now()) {
            self.dirty_tables.due = None;
            return plan.job(Task::WriteTables(0));
        }
        if let Some(group) = self.disks.begin(plan.now(), SimTime::ZERO) {
            return plan.job(Task::Rebuild(group));
        }
        if let Some((_, group)) = self.victims.last() {
            self.collecting = true;
            plan.job(Task::Collect(group.0));
        }
    }

    fn unfinished(&self) -> bool {
        self.disks.rebuild().is_some()
    }

    fn durable(&mut self) {
        self.places.durable();
    }

    fn recover(&mut self, records: &Records, plan: &mut MemberPlan) {
        let rebuild = self.rebuilds(SimTime::ZERO);
        let mut cells: Vec<Cell> = Vec::new();
        for record in records.iter() {
            match TableChange::of(record) {
                Some(event) => self.recovered(event, &mut cells),
                None => _ = self.disks.recover(record, &rebuild),
            }
        }
        (0..self.shape.groups).for_each(|g| self.list(g));
        self.places.open().for_each(|(place, _)| plan.job(Task::Replay(place)));
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        for (group, tables) in self.groups.iter() {
            tables.stripes().for_each(|stripe| out.add(&TableChange::Stripe(group, stripe.into())));
            let chunks = tables.stripes().flatten().filter_map(|c| match c.holds() {
                group::Holds::Chunk(lcn) => Some(u64::from(lcn)),
                _ => None,
            });
            let gone: BTreeSet<u64> = chunks.filter(|lcn| tables.place(*lcn).is_none()).collect();
            gone.into_iter().for_each(|lcn| out.add(&TableChange::Unmap { group, lcn }));
        }
        let whole = self.places.open().filter(|(_, entry)| !entry.lcns.is_empty());
        whole.for_each(|(place, entry)| out.add(&TableChange::Journalled(place, entry.clone())));
        self.disks.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        for (group, lcn, part, at) in self.chunks(lba.span(blocks)) {
            if self.group(group).is_some_and(|g| g.place(lcn).is_some()) {
                out(lba.0 + at..lba.0 + at + part.end - part.start);
            }
        }
    }

    fn map_bytes(&self) -> u64 {
        size_of_val(&*self.touched) as u64 + self.groups.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        let c = &self.counts;
        out.count("stripes_full", c.full);
        out.count("stripes_partial", c.partial);
        out.count("fill_reads", c.fills);
        if self.options.stripes == Stripes::Fill {
            out.count("chunks_filled", c.filled);
        }
        if self.shape.zone.is_some() {
            out.count("tables_written", self.dirty_tables.written);
            out.count("table_writes", self.dirty_tables.writes);
        }
        if self.cached_tables.bounded() {
            out.count("tables_read", self.cached_tables.read);
            out.count("table_reads", self.cached_tables.reads);
        }
        out.count("collections_foreground", c.foreground);
        out.count("collections_background", c.background);
        out.count("collections_given_up", c.given_up);
        out.count("chunks_moved", c.moved);
        if self.options.journal {
            out.count("chunks_journalled", c.journalled);
        }
        out.level("used_chunks", self.groups.iter().map(|(_, g)| g.live_chunks()).sum());
        self.disks.counters(out);
    }
}
