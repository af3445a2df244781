//! RAID-5: chunks and a parity chunk in each row, the parity going round.
//!
//! A write of a row reads what its new parity needs, then writes data and parity; the row is locked from the first read
//! to the last write. What a dead disk held is the XOR of the others.

mod entry;
mod jobs;
mod reads;
pub mod rebuild;
pub mod rows;
pub mod write;
mod writes;

pub use entry::ENTRY;

use crate::plan::place;
use crate::tickets::Tickets;
use crate::{Array, End, Health, Locks, MemberId, MemberPlan, Phase, Term, Ticket, Work};
use rebuild::{Order, Rebuild, health};
use rows::Rows;
use smrlab_stl::{Cause, HostRequest, Record, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::ops::Range;
use write::{Method, Old, Planned, Preference};

/// [`Record`]: this disk is dead.
const DEAD: u32 = 1;
/// This disk was replaced: nothing of it is rebuilt.
const REPLACED: u32 = 2;
/// This unit of the replaced disk is rebuilt.
const REBUILT: u32 = 3;
/// The replaced disk is whole.
const WHOLE: u32 = 4;
/// Parity of these rows may not fit their data.
const DIRTY: u32 = 5;
/// It fits again.
const CLEAN: u32 = 6;

/// After a power loss of the host the parity of the rows from this one on is in doubt; past the last one: of none.
const DOUBT: u32 = 7;

/// Jobs from this number on make the parity of a row anew.
const RESYNC: u64 = 1 << 62;

/// How an array behaves beyond its shape.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How parity follows a write.
    pub preference: Preference,
    /// Rows that are rebuilt at a time.
    pub unit_rows: u64,
    /// Units under way at a time.
    pub depth: u64,
    /// Time between the beginnings of units, ns a unit.
    pub pace: SimTime,
    /// Order of the rebuild.
    pub order: Order,
    /// Rows whose parity is in doubt are remembered, and made good after a power cut.
    pub intent: bool,
    /// Seed of what is drawn.
    pub seed: u64,
}

/// What a work is at.
#[derive(Clone, Debug)]
enum At {
    /// Its one phase: a read, a flush, a discard, the writes of a write.
    Last,
    /// The reads that a write needs.
    Olds,
    /// The reads of a rebuild or resync.
    Sources,
}

/// A work under way.
#[derive(Clone, Debug)]
struct State {
    work: Work,
    at: At,
    /// [`Raid5::changes`] when it was planned.
    changes: u64,
    planned: Vec<Planned>,
    olds: Vec<Old>,
    /// Of a read: what is put together at the end.
    missing: Vec<Old>,
}

/// See the [module](self).
pub struct Raid5 {
    rows: Rows,
    options: Options,
    dead: Vec<bool>,
    deaths: u64,
    /// Deaths ever, so that works notice that something changed.
    changes: u64,
    rebuild: Option<Rebuild>,
    /// Rows whose parity is in doubt and not yet looked at.
    doubt: Range<u64>,
    /// A row of those is made good now.
    resyncing: bool,
    states: Tickets<State>,
    pool: Vec<State>,
    rebuilds: u64,
    rebuild_ns: u64,
    degraded: u64,
    full: u64,
    modified: u64,
    reconstructed: u64,
}

impl Raid5 {
    /// Of this shape.
    pub fn new(rows: Rows, options: Options) -> Self {
        Self {
            rows,
            options,
            dead: vec![false; rows.disks as usize],
            deaths: 0,
            changes: 0,
            rebuild: None,
            doubt: 0..0,
            resyncing: false,
            states: Tickets::default(),
            pool: Vec::new(),
            rebuilds: 0,
            rebuild_ns: 0,
            degraded: 0,
            full: 0,
            modified: 0,
            reconstructed: 0,
        }
    }

    fn unit_of(&self, row: u64) -> u64 {
        row / self.options.unit_rows
    }

    fn units(&self) -> u64 {
        self.rows.rows.div_ceil(self.options.unit_rows)
    }

    fn rows_of_unit(&self, unit: u64) -> Range<u64> {
        let n = self.options.unit_rows;
        unit * n..((unit + 1) * n).min(self.rows.rows)
    }

    /// Whether a disk holds its part of a row.
    #[inline]
    fn has(&self, disk: u64, row: u64) -> bool {
        !self.dead[disk as usize]
            || self.rebuild.as_ref().is_some_and(|r| r.disk == disk && r.has(self.unit_of(row)))
    }

    /// The role in a row whose disk does not hold its part; an error where there are two.
    fn dead_role(&self, row: u64) -> Result<Option<u64>, Refusal> {
        if self.deaths == 0 {
            return Ok(None);
        }
        let mut dead = (0..self.rows.disks).filter(|d| !self.has(*d, row));
        match (dead.next(), dead.next()) {
            (Some(disk), None) => Ok(Some(self.rows.role(row, disk))),
            (None, _) => Ok(None),
            _ => Err(Refusal::Lost),
        }
    }

    fn member(&self, row: u64, role: u64) -> MemberId {
        MemberId(self.rows.disk(row, role) as u32)
    }

    fn on_member(&self, row: u64, blocks: &Range<u64>) -> (Lba, Blocks) {
        let start = row * self.rows.chunk;
        place(start + blocks.start..start + blocks.end)
    }

    fn begin(&mut self, work: &Work) -> State {
        let mut state = self.pool.pop().unwrap_or_else(|| State {
            work: *work,
            at: At::Last,
            changes: 0,
            planned: Vec::new(),
            olds: Vec::new(),
            missing: Vec::new(),
        });
        (state.work, state.at, state.changes) = (*work, At::Last, self.changes);
        state.planned.clear();
        state.olds.clear();
        state.missing.clear();
        state
    }

    fn end(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        if let Some(state) = self.states.take(ticket) {
            self.pool.push(state);
        }
        plan.end(ticket);
    }

    fn refuse(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        if let Some(state) = self.states.take(ticket) {
            if matches!(state.work, Work::Job(_)) {
                self.rebuild = None;
            }
            self.pool.push(state);
        }
        plan.refuse(ticket, Refusal::Lost);
    }

    /// The term for a block that was read before.
    fn slot(&self, state: &State, row: u64, role: u64, at: u64) -> Option<Term> {
        let holds = |o: &Old| o.row == row && o.role == role && o.blocks.contains(&at);
        let i = state.olds.iter().position(holds)?;
        Some(Term::Slot(i as u32, Blocks(at - state.olds[i].blocks.start)))
    }

    /// Discards reach the disks where they take whole rows: then data and parity stay in step whatever a disk makes of it.
    fn discard(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let row = self.rows.chunk * self.rows.data();
        let span = r.lba.span(r.blocks);
        let whole = span.start.div_ceil(row)..span.end / row;
        if whole.is_empty() || self.deaths > 0 {
            return plan.end(ticket);
        }
        let (lba, blocks) = place(whole.start * self.rows.chunk..whole.end * self.rows.chunk);
        for disk in 0..self.rows.disks {
            plan.ask(ticket, MemberId(disk as u32), HostRequest { lba, blocks, ..*r }, |_| {});
        }
    }

    fn start_host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let mut state = self.begin(&Work::Host(*r));
        let fits = match r.op {
            HostOp::Read => self.read(ticket, r, &mut state, plan),
            HostOp::Write => {
                let fits = self.plan_write(r, &mut state);
                if fits && state.olds.is_empty() {
                    self.write(ticket, r, &state, plan);
                } else if fits {
                    state.at = At::Olds;
                    self.read_olds(ticket, &state, plan);
                }
                fits
            }
            HostOp::Flush => {
                for disk in (0..self.rows.disks).filter(|d| !self.dead[*d as usize]) {
                    plan.ask(ticket, MemberId(disk as u32), *r, |_| {});
                }
                true
            }
            HostOp::Discard => {
                self.discard(ticket, r, plan);
                true
            }
        };
        self.states.put(ticket, state);
        if !fits {
            plan.clear();
            self.refuse(ticket, plan);
        }
    }
}

impl Array for Raid5 {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.rows.rows * self.rows.chunk * self.rows.data())
    }

    fn group_blocks(&self) -> Option<Blocks> {
        Some(Blocks(self.rows.chunk * self.rows.data()))
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) if r.op == HostOp::Flush => Locks::NONE,
            Work::Host(r) => {
                Locks { stripes: self.rows.rows_of(r.lba.span(r.blocks)), shared: r.op == HostOp::Read }
            }
            Work::Job(job) if *job >= RESYNC => {
                Locks { stripes: job - RESYNC..job - RESYNC + 1, shared: false }
            }
            Work::Job(unit) => Locks { stripes: self.rows_of_unit(*unit), shared: false },
        }
    }

    fn start(&mut self, _: SimTime, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(request) => self.start_host(ticket, request, plan),
            Work::Job(job) => self.start_job(ticket, *job, plan),
        }
    }

    fn complete(&mut self, now: SimTime, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        let Some(mut state) = self.states.take(ticket) else { return plan.end(ticket) };
        let (work, at, changes) = (state.work, state.at.clone(), state.changes);
        if phase.lost {
            let again = changes != self.changes;
            self.states.put(ticket, state);
            return match (again, work) {
                // Nothing was written yet: the same without the disk that died.
                (true, Work::Host(r)) => self.start_host(ticket, &r, plan),
                (true, Work::Job(job)) => self.start_job(ticket, job, plan),
                _ => self.refuse(ticket, plan),
            };
        }
        state.at = At::Last;
        match (work, at) {
            (Work::Host(r), At::Olds) => self.write(ticket, &r, &state, plan),
            (Work::Host(r), _) => {
                self.deliver(ticket, &r, &state, plan);
                if self.options.intent && r.op == HostOp::Write {
                    let rows = self.rows.rows_of(r.lba.span(r.blocks));
                    plan.record(Record { tag: CLEAN, words: [rows.start, rows.end, 0] });
                }
                self.states.put(ticket, state);
                return self.end(ticket, plan);
            }
            (Work::Job(job), At::Sources) => {
                self.states.put(ticket, state);
                return self.write_job(ticket, job, plan);
            }
            (Work::Job(job), _) => {
                self.states.put(ticket, state);
                return self.job_done(now, ticket, job, changes, plan);
            }
        }
        self.states.put(ticket, state);
    }

    fn failed(&mut self, _: SimTime, member: MemberId, plan: &mut MemberPlan) {
        self.lose(u64::from(member.0));
        plan.record(Record { tag: DEAD, words: [u64::from(member.0), 0, 0] });
    }

    fn replaced(&mut self, now: SimTime, member: MemberId, plan: &mut MemberPlan) {
        if self.replace(u64::from(member.0), now) {
            plan.record(Record { tag: REPLACED, words: [u64::from(member.0), 0, 0] });
        }
    }

    fn health(&self, member: MemberId) -> Health {
        health(self.rebuild.as_ref(), &self.dead, member)
    }

    fn wake_at(&self, _: Option<SimTime>) -> Option<SimTime> {
        if !self.doubt.is_empty() {
            return (!self.resyncing).then_some(SimTime::ZERO);
        }
        let open = |r: &&Rebuild| r.under_way < self.options.depth && !r.all_begun();
        self.rebuild.as_ref().filter(open).map(|r| r.next_at)
    }

    fn wake(&mut self, now: SimTime, plan: &mut MemberPlan) {
        if !self.doubt.is_empty() {
            self.resyncing = true;
            return plan.job(RESYNC + self.doubt.start);
        }
        let pace = self.options.pace;
        if let Some(rebuild) = &mut self.rebuild
            && let Some(unit) = rebuild.begin()
        {
            rebuild.next_at = now + pace;
            plan.job(unit);
        }
    }

    fn unfinished(&self) -> bool {
        self.rebuild.is_some() || !self.doubt.is_empty()
    }

    fn unclean(&mut self, plan: &mut MemberPlan) {
        self.doubt = 0..self.rows.rows;
        plan.record(Record { tag: DOUBT, words: [0; 3] });
    }

    fn recover(&mut self, records: &mut dyn Iterator<Item = Record>, plan: &mut MemberPlan) {
        let mut dirty = std::collections::BTreeMap::new();
        for Record { tag, words } in records {
            match tag {
                DEAD => self.lose(words[0]),
                REPLACED => _ = self.replace(words[0], SimTime::ZERO),
                REBUILT => _ = self.rebuild.as_mut().map(|r| r.finished(words[0])),
                WHOLE => self.whole(),
                DIRTY => (words[0]..words[1]).for_each(|row| *dirty.entry(row).or_insert(0u32) += 1),
                DOUBT => self.doubt = words[0]..self.rows.rows,
                CLEAN => (words[0]..words[1]).for_each(|row| _ = dirty.remove(&row)),
                _ => {}
            }
        }
        let whole = |row: &u64| (0..self.rows.disks).all(|d| self.has(d, *row));
        dirty.into_keys().filter(whole).for_each(|row| plan.job(RESYNC + row));
    }

    fn checkpoint(&self, out: &mut dyn FnMut(Record)) {
        let mut say = |tag, word| out(Record { tag, words: [word, 0, 0] });
        (0..self.rows.disks).filter(|d| self.dead[*d as usize]).for_each(|d| say(DEAD, d));
        if let Some(rebuild) = &self.rebuild {
            say(REPLACED, rebuild.disk);
            rebuild.rebuilt().for_each(|unit| say(REBUILT, unit));
        }
        if !self.doubt.is_empty() {
            say(DOUBT, self.doubt.start);
        }
        for (_, state) in self.states.iter() {
            if let (Work::Host(r), At::Last) = (state.work, &state.at)
                && r.op == HostOp::Write
            {
                let rows = self.rows.rows_of(r.lba.span(r.blocks));
                out(Record { tag: DIRTY, words: [rows.start, rows.end, 0] });
            }
        }
    }

    fn map_bytes(&self) -> u64 {
        self.rebuild.as_ref().map_or(0, |r| r.progress().1 * 4)
    }

    fn counters(&self, out: &mut dyn FnMut(&'static str, u64)) {
        out("rows_written_whole", self.full);
        out("rows_modified", self.modified);
        out("rows_reconstructed", self.reconstructed);
        if self.degraded > 0 || self.deaths > 0 || self.rebuilds > 0 {
            out("degraded_rows", self.degraded);
            out("disks_dead", self.dead.iter().filter(|d| **d).count() as u64);
            out("rebuilds", self.rebuilds);
            out("rebuild_ms", self.rebuild_ns / 1_000_000);
        }
        if !self.doubt.is_empty() {
            out("rows_in_doubt", self.doubt.end - self.doubt.start);
        }
        if let Some(rebuild) = &self.rebuild {
            let (done, all) = rebuild.progress();
            out("rebuild_units_done", done);
            out("rebuild_units", all);
        }
    }
}
