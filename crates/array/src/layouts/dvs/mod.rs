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
mod state;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod victim;
mod wait;
mod writes;

pub use entry::ENTRY;
pub use options::{Options, Stripes};

use crate::layouts::disks::Disks;
use crate::layouts::places::Places;
use crate::layouts::rebuild::{Order, Rebuild};
use crate::tickets::Tickets;
use crate::{Array, End, Health, Locks, MemberId, MemberPlan, Phase, Term, Ticket, Work};
use destage::{Chunk, Destage, Lost, Slots, missing};
use group::{Cell, Group, Shape};
use groups::Groups;
use held::Held;
use journal::{Kept, record_stripe};
use pack::Packer;
use smrlab_stl::{Cause, HostRequest, Record, Refusal};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, SimTime};
use state::{At, State};
use std::collections::BTreeSet;
use std::ops::Range;
use tables::Changed;

/// [`Record`]: group, stripe and disk, cell.
const CELL: u32 = 1;
/// This group was reset.
const RESET: u32 = 2;
/// This chunk of this group holds nothing any more.
const UNMAP: u32 = 3;
/// The first of four about disks.
const DISKS: u32 = 4;
/// The journal holds this chunk of this group: place and number there.
const KEPT: u32 = 8;

/// The job that writes tables to their zone.
const TABLES: u64 = 7 << 60;
/// Jobs from this number on do again a collection that the journal holds.
const REDO: u64 = 3 << 61;
/// Jobs from this number on collect a group in idle time; below, they rebuild one.
const COLLECT: u64 = 1 << 62;

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
            disks: Disks::new(shape.disks, DISKS),
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
        job: u64,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        let mut state = self.begin(&Work::Job(job), At::Olds);
        let group = job - COLLECT;
        state.destages.push(self.destage(group, true));
        self.pack(&mut state, true)?;
        match state.slots.reads.is_empty() {
            true => self.write(ticket, &mut state, plan),
            false => state.slots.plan(ticket, Cause::Clean, plan),
        }
        Ok(state)
    }

    fn begin_work(&mut self, now: SimTime, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        let groups = match work {
            Work::Host(r) => self.groups_of(&r.lba.span(r.blocks)),
            Work::Job(job) if *job >= REDO => 0..0,
            Work::Job(job) => job & (COLLECT - 1)..(job & (COLLECT - 1)) + 1,
        };
        if self.read_tables(now, ticket, groups, plan) {
            let state = self.begin(work, At::Tables);
            return self.states.put(ticket, state);
        }
        self.with_tables(now, ticket, work, plan);
    }

    /// Begins a work whose tables the SSD has.
    fn with_tables(&mut self, now: SimTime, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        if let Work::Host(r) = work {
            self.touch(self.groups_of(&r.lba.span(r.blocks)));
        }
        let state = match work {
            Work::Host(r) => match r.op {
                HostOp::Read => self.read(ticket, r, plan),
                HostOp::Write | HostOp::Discard => self.start_write(now, ticket, r, plan),
                HostOp::Append | HostOp::Zone(_) => return plan.refuse(ticket, Refusal::Unsupported),
                HostOp::Flush => {
                    self.disks.answering().for_each(|disk| plan.ask(ticket, disk, *r, |_| {}));
                    Ok(self.begin(work, At::Last))
                }
            },
            Work::Job(TABLES) => Ok(self.write_tables(ticket, plan)),
            Work::Job(job) if *job >= REDO => self.start_redo(ticket, *job, plan),
            Work::Job(job) if *job >= COLLECT => self.start_collection(ticket, *job, plan),
            Work::Job(job) => Ok(self.start_rebuild(ticket, *job, plan)),
        };
        match state {
            Ok(state) if state.work == Work::Job(TABLES) && plan.ops().is_empty() => plan.end(ticket),
            Ok(state) => self.states.put(ticket, state),
            Err(Lost) => {
                plan.clear();
                self.refused(work);
                plan.refuse(ticket, Refusal::Lost);
            }
        }
    }

    fn refused(&mut self, work: &Work) {
        match work {
            Work::Job(job) if *job >= COLLECT => self.collecting = false,
            Work::Job(_) => self.disks.give_up(),
            Work::Host(_) => {}
        }
    }
}

impl Array for Dvs {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.shape.groups * self.shape.logical * self.shape.chunk)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) if r.op == HostOp::Flush => Locks::NONE,
            Work::Job(TABLES) => Locks::NONE,
            Work::Host(r) => {
                Locks { stripes: self.groups_of(&r.lba.span(r.blocks)), shared: r.op == HostOp::Read }
            }
            Work::Job(job) => {
                let kept = job.checked_sub(REDO).and_then(|place| self.places.get(place));
                let group = kept.map_or(job & (COLLECT - 1), |k| k.group);
                Locks { stripes: group..group + 1, shared: false }
            }
        }
    }

    fn prefetch(&mut self, request: &HostRequest) {
        let group = self.groups_of(&request.lba.span(request.blocks)).start;
        self.groups.prefetch(group);
    }

    fn start(&mut self, now: SimTime, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        self.begin_work(now, ticket, work, plan);
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
            let mut state = self.begin(&Work::Host(HostRequest::flush()), At::Tables);
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
            // Nothing was written yet: the same without the disk that died.
            if state.changes != self.disks.changes() && !state.runs.is_empty() {
                self.start_runs(now, ticket, &state.runs, plan);
                return;
            }
            if state.changes != self.disks.changes() {
                return self.begin_work(now, ticket, &state.work, plan);
            }
            self.refused(&state.work);
            return plan.refuse(ticket, Refusal::Lost);
        }
        let collection = matches!(state.work, Work::Job(job) if (COLLECT..REDO).contains(&job));
        match state.at {
            At::Olds | At::Tables if collection && phase.busy => {
                self.collecting = false;
                self.counts.given_up += 1;
                plan.end(ticket);
            }
            At::Tables if state.runs.is_empty() => self.with_tables(now, ticket, &state.work, plan),
            At::Tables => self.write_runs(ticket, &state.runs, plan),
            At::Room => self.states.put(ticket, state),
            At::Journal => {
                self.journalled(&state, plan);
                self.write(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            At::Olds => {
                self.write(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            At::Writes if matches!(state.work, Work::Job(job) if job < COLLECT) => {
                self.rebuilt(now, ticket, &state, plan);
            }
            At::Writes => {
                self.commit(now, &state, plan);
                self.collecting &= !collection;
                self.room(plan);
                if state.rest.is_empty() {
                    return self.end(ticket, state, plan);
                }
                state.destages = std::mem::take(&mut state.rest);
                self.write(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            At::Sources => {
                self.write_rebuilt(ticket, &mut state, plan);
                self.states.put(ticket, state);
            }
            At::Last => {
                for (host, n, slots) in &state.missing {
                    let terms: Vec<Term> = slots.clone().map(|s| Term::Slot(s, Blocks::ZERO)).collect();
                    plan.deliver(ticket, Blocks(*host), Blocks(*n), &terms);
                }
                self.end(ticket, state, plan);
            }
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
            return plan.job(TABLES);
        }
        if let Some(group) = self.disks.begin(now, SimTime::ZERO) {
            return plan.job(group);
        }
        if let Some((_, group)) = self.victims.last() {
            self.collecting = true;
            plan.job(COLLECT + group.0);
        }
    }

    fn unfinished(&self) -> bool {
        self.disks.rebuild().is_some()
    }

    fn durable(&mut self) {
        self.places.durable();
    }

    fn recover(&mut self, records: &mut dyn Iterator<Item = Record>, plan: &mut MemberPlan) {
        let disks = self.shape.disks as usize;
        let mut stripe: Vec<Cell> = Vec::with_capacity(disks);
        let rebuild = self.rebuilds(SimTime::ZERO);
        for record in records {
            let Record { tag, words: [a, b, c] } = record;
            match tag {
                CELL => {
                    // One that was cut off while it was recorded is none.
                    if b & 0xffff == 0 {
                        stripe.clear();
                    }
                    stripe.push(Cell::from_word(c));
                    if stripe.len() == disks {
                        self.group_mut(a).append(&stripe);
                        stripe.clear();
                    }
                }
                RESET => {
                    let shape = self.shape;
                    self.group_mut(a).reset(&shape);
                    self.close_journal(a);
                }
                KEPT => self.recover_journal([a, b, c]),
                UNMAP => self.group_mut(a).unmap(b),
                _ => self.disks.recover(&record, &rebuild),
            }
        }
        (0..self.shape.groups).for_each(|g| self.list(g));
        self.places.open().for_each(|(place, _)| plan.job(REDO + place));
    }

    fn checkpoint(&self, out: &mut dyn FnMut(Record)) {
        for (i, tables) in self.groups.iter() {
            for (s, stripe) in tables.stripes().enumerate() {
                record_stripe(i, s as u64, &stripe, out);
            }
            let chunks = tables.stripes().flatten().filter_map(|c| match c.holds() {
                group::Holds::Chunk(lcn) => Some(u64::from(lcn)),
                _ => None,
            });
            let gone: BTreeSet<u64> = chunks.filter(|lcn| tables.place(*lcn).is_none()).collect();
            gone.into_iter().for_each(|lcn| out(Record { tag: UNMAP, words: [i, lcn, 0] }));
        }
        self.places.open().for_each(|(place, kept)| kept.records(place, out));
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

    fn counters(&self, out: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        out("stripes_full", c.full);
        out("stripes_partial", c.partial);
        out("fill_reads", c.fills);
        if self.options.stripes == Stripes::Fill {
            out("chunks_filled", c.filled);
        }
        if self.shape.zone.is_some() {
            out("tables_written", self.changed.written);
            out("table_writes", self.changed.writes);
        }
        if self.held.bounded() {
            out("tables_read", self.held.read);
            out("table_reads", self.held.reads);
        }
        out("collections_foreground", c.foreground);
        out("collections_background", c.background);
        out("collections_given_up", c.given_up);
        out("chunks_moved", c.moved);
        if self.options.journal {
            out("chunks_journalled", c.journalled);
        }
        out("used_chunks", self.groups.iter().map(|(_, g)| g.live_chunks()).sum());
        self.disks.counters(out);
    }
}

/// In the order of [`Rebuild`]: by address.
const ORDER: Order = Order::Address;
