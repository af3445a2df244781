//! DVS: dynamic variable-width striping over segments that are only appended to (Luo et al.).
//!
//! A group is one segment of every disk. A write packs its chunks into new stripes of any width, behind each disk's own
//! append pointer; old data and parity are never read or overwritten. A group without room is collected: its live chunks
//! are read, its segments reset, and all is striped anew. A group is locked from the first read to the last write.

pub mod destage;
mod entry;
pub mod group;
pub mod groups;
pub mod held;
mod journal;
mod options;
pub mod pack;
mod reads;
mod rebuild;
pub mod shape;
mod state;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod victim;
mod wait;
mod writes;

pub use entry::ENTRY;
pub use options::{Options, Stripes};

use crate::layouts::chunks::Lost;
use crate::layouts::disks::Disks;
use crate::layouts::places::Places;
use crate::layouts::rebuild::Order;
use crate::plan::tasks;
use crate::tickets::Tickets;
use crate::{Array, Change, Health, Locks, MemberId, MemberPlan, Phase, Records, Term, Ticket, Work};
use destage::Destage;
use group::{Cell, Group};
use groups::Groups;
use held::Held;
use journal::{Event, Kept};
use pack::Packer;
use shape::Shape;
use smrlab_stl::{Cause, Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use state::{At, Doing, State};
use std::collections::BTreeSet;
use std::ops::Range;
use tables::Changed;

/// The first of four tags of records about disks.
const DISKS: u32 = 4;

tasks! {
    /// What the array does by itself.
    enum Task from 0 {
        /// Rebuilds this group of the disk whose turn it is.
        Rebuild,
        /// Collects this group in idle time.
        Collect,
        /// Does again the collection that this place of the journal holds.
        Redo,
        /// Writes the tables that changed to their zone.
        Tables,
    }
}

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
    options: Options,
    groups: Groups,
    /// Requests that touched each group, and the number of the last; none where nothing is collected in idle time.
    touched: Vec<(u32, u64)>,
    disks: Disks,
    /// Boxed: they are large, and handed from hand to hand.
    states: Tickets<Box<State>>,
    /// States and destages of works that are over, for use again.
    #[expect(clippy::vec_box, reason = "the same boxes go back to `states`")]
    pool: Vec<Box<State>>,
    spare: Vec<Destage>,
    packer: Packer,
    /// What the rule says, and group, of those worth collecting.
    victims: BTreeSet<(u64, std::cmp::Reverse<u64>)>,
    collecting: bool,
    /// Requests of the host's so far.
    touches: u64,
    changed: Changed,
    held: Held,
    places: Places<Kept>,
    counts: Counts,
}

impl Dvs {
    /// Of this shape.
    pub fn new(shape: Shape, options: Options) -> Self {
        Self {
            shape,
            options,
            groups: Groups::new(shape.groups),
            touched: vec![(0, 0); options.idle.map_or(0, |_| shape.groups as usize)],
            disks: Disks::new(shape.disks as usize, 1, DISKS),
            states: Tickets::default(),
            pool: Vec::new(),
            spare: Vec::new(),
            packer: Packer::default(),
            victims: BTreeSet::new(),
            collecting: false,
            touches: 0,
            changed: Changed::default(),
            held: Held::new(options.tables),
            places: Places::new(if options.journal { journal::PLACES } else { 0 }),
            counts: Counts::default(),
        }
    }

    fn groups_of(&self, blocks: &Range<u64>) -> Range<u64> {
        let group = self.shape.logical * self.shape.chunk;
        blocks.start / group..blocks.end.div_ceil(group)
    }

    /// The chunks of a range: group, chunk, blocks within it, offset in the range.
    fn chunks(&self, blocks: Range<u64>) -> impl Iterator<Item = (u64, u64, Range<u64>, u64)> + use<> {
        let (chunk, logical) = (self.shape.chunk, self.shape.logical);
        (blocks.start / chunk..blocks.end.div_ceil(chunk)).map(move |c| {
            let start = blocks.start.max(c * chunk);
            let end = blocks.end.min((c + 1) * chunk);
            (c / logical, c % logical, start - c * chunk..end - c * chunk, start - blocks.start)
        })
    }

    fn group(&self, group: u64) -> Option<&Group> {
        self.groups.get(group)
    }

    fn group_mut(&mut self, group: u64) -> &mut Group {
        self.groups.begin(group, &self.shape)
    }

    fn start_collection(
        &mut self,
        ticket: Ticket,
        group: u64,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        let mut state = self.begin(Doing::Task(Task::Collect(group)), At::Olds);
        state.destages.push(self.destage(group, true));
        self.pack(&mut state, true)?;
        match state.slots.reads.is_empty() {
            true => self.write(ticket, &mut state, plan),
            false => state.slots.plan(ticket, Cause::Clean, plan),
        }
        Ok(state)
    }

    /// Begins a work; tables that the SSD does not have are read first.
    fn begin_work(&mut self, now: SimTime, ticket: Ticket, doing: Doing, plan: &mut MemberPlan) {
        let groups = match doing {
            Doing::Host(r) => self.groups_of(&r.lba.span(r.blocks)),
            Doing::Task(Task::Rebuild(group) | Task::Collect(group)) => group..group + 1,
            Doing::Runs | Doing::Task(Task::Redo(_) | Task::Tables(_)) => 0..0,
        };
        if self.read_tables(now, ticket, groups, plan) {
            let state = self.begin(doing, At::Tables);
            return self.states.put(ticket, state);
        }
        self.with_tables(now, ticket, doing, plan);
    }

    /// Begins a work whose tables the SSD has.
    fn with_tables(&mut self, now: SimTime, ticket: Ticket, doing: Doing, plan: &mut MemberPlan) {
        let state = match doing {
            Doing::Host(r) if matches!(r.op, HostOp::Append | HostOp::Zone(_)) => {
                return plan.refuse(ticket, Refusal::Unsupported);
            }
            Doing::Host(r) => {
                self.touch(self.groups_of(&r.lba.span(r.blocks)));
                self.start_host(now, ticket, &r, plan)
            }
            Doing::Runs => return plan.end(ticket),
            Doing::Task(Task::Rebuild(group)) => Ok(self.start_rebuild(ticket, group, plan)),
            Doing::Task(Task::Collect(group)) => self.start_collection(ticket, group, plan),
            Doing::Task(Task::Redo(place)) => self.start_redo(ticket, place, plan),
            Doing::Task(Task::Tables(_)) => match self.write_tables(ticket, plan) {
                true => Ok(self.begin(doing, At::Last)),
                false => return plan.end(ticket),
            },
        };
        match state {
            Ok(state) => self.states.put(ticket, state),
            Err(Lost) => {
                plan.clear();
                self.refuse(ticket, doing, plan);
            }
        }
    }

    fn start_host(
        &mut self,
        now: SimTime,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        match r.op {
            HostOp::Read => self.read(ticket, r, plan),
            HostOp::Write | HostOp::Discard => self.start_write(now, ticket, r, plan),
            _ => {
                self.disks.answering().for_each(|disk| plan.ask(ticket, disk, *r, |_| {}));
                Ok(self.begin(Doing::Host(*r), At::Last))
            }
        }
    }

    /// A work cannot be done.
    fn refuse(&mut self, ticket: Ticket, doing: Doing, plan: &mut MemberPlan) {
        match doing {
            Doing::Task(Task::Collect(_)) => self.collecting = false,
            Doing::Task(Task::Rebuild(_)) => self.disks.give_up(plan),
            Doing::Host(_) | Doing::Runs | Doing::Task(Task::Redo(_) | Task::Tables(_)) => {}
        }
        plan.refuse(ticket, Refusal::Lost);
    }

    /// A read of a phase got nothing, because its disk died: nothing was written yet, so that the same begins again without that disk.
    fn again(&mut self, now: SimTime, ticket: Ticket, state: &State, plan: &mut MemberPlan) {
        match state.doing {
            doing if state.changes == self.disks.changes() => self.refuse(ticket, doing, plan),
            Doing::Runs => _ = self.start_runs(now, ticket, &state.runs, plan),
            doing => self.begin_work(now, ticket, doing, plan),
        }
    }

    /// Stripes of a work are written: they hold, and what the journal had no room for follows.
    fn written(&mut self, now: SimTime, ticket: Ticket, mut state: Box<State>, plan: &mut MemberPlan) {
        self.commit(now, &state, plan);
        self.collecting &= !matches!(state.doing, Doing::Task(Task::Collect(_)));
        self.room(plan);
        if state.rest.is_empty() {
            return self.end(ticket, state, plan);
        }
        state.destages = std::mem::take(&mut state.rest);
        self.write(ticket, &mut state, plan);
        self.states.put(ticket, state);
    }

    /// What a read of lost chunks brought is put together.
    fn deliver(&mut self, ticket: Ticket, state: Box<State>, plan: &mut MemberPlan) {
        for lost in &state.missing {
            let terms: Vec<Term> = lost.slots.clone().map(|s| Term::slot(s, Blocks::ZERO)).collect();
            plan.deliver(ticket, Blocks(lost.host), Blocks(lost.blocks), &terms);
        }
        self.end(ticket, state, plan);
    }
}

impl Array for Dvs {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.shape.groups * self.shape.logical * self.shape.chunk)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) if r.op == HostOp::Flush => Locks::NONE,
            Work::Host(r) => {
                Locks { stripes: self.groups_of(&r.lba.span(r.blocks)), shared: r.op == HostOp::Read }
            }
            Work::Job(job) => {
                let group = match Task::of(*job) {
                    Some(Task::Rebuild(group) | Task::Collect(group)) => group,
                    Some(Task::Redo(place)) => self.places.get(place).map_or(0, |kept| kept.group),
                    Some(Task::Tables(_)) | None => return Locks::NONE,
                };
                Locks { stripes: group..group + 1, shared: false }
            }
        }
    }

    fn prefetch(&mut self, request: &HostRequest) {
        let group = self.groups_of(&request.lba.span(request.blocks)).start;
        self.groups.prefetch(group);
    }

    fn start(&mut self, now: SimTime, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(r) => self.begin_work(now, ticket, Doing::Host(*r), plan),
            Work::Job(job) => match Task::of(*job) {
                Some(task) => self.begin_work(now, ticket, Doing::Task(task), plan),
                None => plan.end(ticket),
            },
        }
    }

    fn start_runs(
        &mut self,
        now: SimTime,
        ticket: Ticket,
        runs: &[Range<u64>],
        plan: &mut MemberPlan,
    ) -> bool {
        let touched: BTreeSet<u64> = runs.iter().flat_map(|r| self.groups_of(r)).collect();
        if self.read_tables(now, ticket, touched.iter().copied(), plan) {
            let mut state = self.begin(Doing::Runs, At::Tables);
            state.runs = runs.to_vec();
            self.states.put(ticket, state);
        } else {
            self.write_runs(ticket, runs, plan);
        }
        true
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

    fn complete(&mut self, now: SimTime, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        let Some(mut state) = self.states.take(ticket) else { return plan.end(ticket) };
        if phase.lost {
            return self.again(now, ticket, &state, plan);
        }
        match (state.at, state.doing) {
            (At::Olds | At::Tables, Doing::Task(Task::Collect(_))) if phase.busy => {
                self.collecting = false;
                self.counts.given_up += 1;
                plan.end(ticket);
            }
            (At::Tables, Doing::Runs) => self.write_runs(ticket, &state.runs, plan),
            (At::Tables, doing) => self.with_tables(now, ticket, doing, plan),
            (At::Room, _) => self.states.put(ticket, state),
            (At::Olds, _) => {
                self.write(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            (At::Journal, _) => {
                self.journalled(&state, plan);
                self.write(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            (At::Sources, _) => {
                self.write_rebuilt(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            (At::Writes, Doing::Task(Task::Rebuild(group))) => {
                self.disks.rebuilt(now, group, state.changes, plan);
                plan.end(ticket);
            }
            (At::Writes, _) => self.written(now, ticket, state, plan),
            (At::Last, _) => self.deliver(ticket, state, plan),
        }
    }

    fn failed(&mut self, _: SimTime, member: MemberId, plan: &mut MemberPlan) {
        self.disks.failed(member, plan);
    }

    fn replaced(&mut self, now: SimTime, member: MemberId, plan: &mut MemberPlan) {
        let (rebuild, empty) = (self.rebuilds(now), self.empty_groups());
        let begun = |disk| {
            let mut rebuild = rebuild(disk);
            empty.into_iter().for_each(|group| _ = rebuild.finished(group));
            rebuild
        };
        self.disks.replace(member, begun, plan);
        self.tables_gone(now, u64::from(member.0));
    }

    fn rebuildable(&self, member: MemberId) -> bool {
        self.disks.rebuildable(member)
    }

    fn health(&self, member: MemberId) -> Health {
        self.disks.health(member)
    }

    fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime> {
        let may = !self.collecting && !self.victims.is_empty();
        let collect = || Some(idle? + self.options.idle?);
        let next = self.disks.next_at(self.options.depth).or_else(|| if may { collect() } else { None });
        // The earlier of the two.
        self.changed.due.into_iter().chain(next).min()
    }

    fn wake(&mut self, now: SimTime, plan: &mut MemberPlan) {
        if self.changed.due.is_some_and(|due| due <= now) {
            self.changed.due = None;
            return plan.job(Task::Tables(0));
        }
        if let Some(group) = self.disks.begin(now, SimTime::ZERO) {
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
            match Event::of(record) {
                Some(event) => self.recovered(event, &mut cells),
                None => _ = self.disks.recover(record, &rebuild),
            }
        }
        (0..self.shape.groups).for_each(|g| self.list(g));
        self.places.open().for_each(|(place, _)| plan.job(Task::Redo(place)));
    }

    fn checkpoint(&self, out: &mut Records) {
        for (group, tables) in self.groups.iter() {
            tables.stripes().for_each(|stripe| out.add(&Event::Stripe(group, stripe.into())));
            let chunks = tables.stripes().flatten().filter_map(|c| match c.holds() {
                group::Holds::Chunk(lcn) => Some(u64::from(lcn)),
                _ => None,
            });
            let gone: BTreeSet<u64> = chunks.filter(|lcn| tables.place(*lcn).is_none()).collect();
            gone.into_iter().for_each(|lcn| out.add(&Event::Unmap { group, lcn }));
        }
        let whole = self.places.open().filter(|(_, kept)| !kept.lcns.is_empty());
        whole.for_each(|(place, kept)| out.add(&Event::Kept(place, kept.clone())));
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
            out.count("tables_written", self.changed.written);
            out.count("table_writes", self.changed.writes);
        }
        if self.held.bounded() {
            out.count("tables_read", self.held.read);
            out.count("table_reads", self.held.reads);
        }
        out.count("collections_foreground", c.foreground);
        out.count("collections_background", c.background);
        out.count("collections_given_up", c.given_up);
        out.count("chunks_moved", c.moved);
        if self.options.journal {
            out.count("chunks_journalled", c.journalled);
        }
        out.count("used_chunks", self.groups.iter().map(|(_, g)| g.live_chunks()).sum());
        self.disks.counters(out);
    }
}

/// In the order of [`Rebuild`]: by address.
const ORDER: Order = Order::Address;
