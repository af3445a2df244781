//! RAID-5: chunks and a parity chunk in each row, the parity going round.
//!
//! A write of a row reads what its new parity needs, then writes data and parity; the row is locked from the first read
//! to the last write. What a dead disk held is the XOR of the others.

mod entry;
mod jobs;
mod journal;
pub mod log;
mod reads;
pub mod rows;
pub mod write;
mod writes;

pub use entry::ENTRY;

use crate::layouts::disks::Disks;
use crate::layouts::places::Places;
use crate::layouts::rebuild::{Order, Rebuild};
use crate::plan::place;
use crate::tickets::Tickets;
use crate::{Array, End, Health, Locks, MemberId, MemberPlan, Phase, Stop, Term, Ticket, Work};
use rows::Rows;
use smrlab_stl::{Cause, HostRequest, Record, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::ops::Range;
use write::{Method, Old, Planned, Preference};

/// [`Record`]: the first of four about disks.
const DISKS: u32 = 1;
/// Parity of these rows may not fit their data.
const DIRTY: u32 = 5;
/// It fits again.
const CLEAN: u32 = 6;

/// After a power loss of the host the parity of the rows from this one on is in doubt; past the last one: of none.
const DOUBT: u32 = 7;

/// The journal holds new blocks of this row: its place and whether the parity is there, which blocks.
const KEPT: u32 = 8;
/// The disks hold them too: this place is free.
const FREE: u32 = 9;

/// The log has what the parity of this row lacks: blocks, where in the log.
const LOGGED: u32 = 10;
/// The parity of these rows lacks nothing any more: which blocks.
const VOID: u32 = 11;

/// Jobs from this number on do again what a place of the journal holds.
const REDO: u64 = 3 << 61;
/// Jobs from this number on make the parity of a row anew.
const RESYNC: u64 = 1 << 62;
/// Jobs from this number on put the logs of a region into the parity; below, they rebuild a unit.
const APPLY: u64 = 1 << 61;

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
    /// Rows are on an SSD before the disks are written.
    pub journal: bool,
    /// Parity of small writes is logged.
    pub log: log::Settings,
    /// Seed of what is drawn.
    pub seed: u64,
}

/// What a work is at.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Its one phase: a read, a flush, a discard, the writes of a write.
    Last,
    /// The reads that a write needs.
    Olds,
    /// The reads of a rebuild or resync.
    Sources,
    /// Waits for room in the journal.
    Room,
    /// Rows being written to the journal.
    Journal,
    /// And then to the disks.
    Writes,
}

/// A work under way.
#[derive(Clone, Debug)]
struct State {
    work: Work,
    at: At,
    /// [`Disks::changes`] when it was planned.
    changes: u64,
    planned: Vec<Planned>,
    olds: Vec<Old>,
    /// Of a read: what is put together at the end.
    missing: Vec<Old>,
    /// Rows whose parity goes to the log, and where in it.
    logged: Vec<(u64, u64)>,
    /// Rows that are in the journal, and their places there.
    batch: Range<u64>,
    places: Vec<u64>,
}

impl State {
    /// The segments of a row, none where the disk of its parity is dead.
    fn parity_of(&self, row: u64) -> &[Planned] {
        // Row by row, ascending; in a row all have a method or none.
        let first = self.planned.partition_point(|p| p.row < row);
        let n = self.planned[first..].iter().take_while(|p| p.row == row && p.method.is_some()).count();
        &self.planned[first..first + n]
    }
}

/// See the [module](self).
pub struct Raid5 {
    rows: Rows,
    options: Options,
    disks: Disks,
    /// Rows whose parity is in doubt and not yet looked at.
    doubt: Range<u64>,
    /// A row of those is made good now.
    resyncing: bool,
    places: Places<journal::Kept>,
    journalled: u64,
    logs: log::Logs,
    /// Boxed: they are large, and handed from hand to hand.
    states: Tickets<Box<State>>,
    #[expect(clippy::vec_box, reason = "the same boxes go back to `states`")]
    pool: Vec<Box<State>>,
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
            disks: Disks::new(rows.disks, DISKS),
            doubt: 0..0,
            resyncing: false,
            places: journal::places(options.journal),
            journalled: 0,
            logs: log::Logs::default(),
            states: Tickets::default(),
            pool: Vec::new(),
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
        !self.disks.degraded() || self.disks.has(disk, self.unit_of(row))
    }

    /// The role in a row whose disk does not hold its part; an error where there are two.
    fn dead_role(&self, row: u64) -> Result<Option<u64>, Refusal> {
        if !self.disks.degraded() {
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

    fn begin(&mut self, work: &Work) -> Box<State> {
        let mut state = self.pool.pop().unwrap_or_else(|| {
            Box::new(State {
                work: *work,
                at: At::Last,
                changes: 0,
                planned: Vec::new(),
                olds: Vec::new(),
                missing: Vec::new(),
                logged: Vec::new(),
                batch: 0..0,
                places: Vec::new(),
            })
        });
        (state.work, state.at, state.changes) = (*work, At::Last, self.disks.changes());
        state.planned.clear();
        state.olds.clear();
        state.missing.clear();
        state.logged.clear();
        state.places.clear();
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
                self.disks.give_up();
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

    fn whole_rows(&self, r: &HostRequest) -> Range<u64> {
        let (row, span) = (self.rows.chunk * self.rows.data(), r.lba.span(r.blocks));
        span.start.div_ceil(row)..span.end / row
    }

    /// Discards reach the disks where they take whole rows: then data and parity stay in step whatever a disk makes of it.
    fn discard(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let whole = self.whole_rows(r);
        // What disks make of parity and of blocks that their logs are about is anybody's guess.
        if whole.is_empty() || self.disks.degraded() || self.logs.has(whole.clone()) {
            return plan.end(ticket);
        }
        self.dirty(r, plan);
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
                    self.begin_writes(ticket, r, &mut state, plan);
                } else if fits {
                    state.at = At::Olds;
                    self.read_olds(ticket, &state, plan);
                }
                fits
            }
            HostOp::Append | HostOp::Zone(_) => false,
            HostOp::Flush => {
                self.disks.answering().for_each(|disk| plan.ask(ticket, disk, *r, |_| {}));
                true
            }
            HostOp::Discard => {
                self.discard(ticket, r, plan);
                true
            }
        };
        self.states.put(ticket, state);
        self.apply_full(plan);
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

    fn journal_blocks(&self) -> Blocks {
        self.journal_size() + self.log_size()
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) if r.op == HostOp::Flush => Locks::NONE,
            Work::Host(r) => {
                Locks { stripes: self.rows.rows_of(r.lba.span(r.blocks)), shared: r.op == HostOp::Read }
            }
            Work::Job(job) if *job >= REDO => {
                let row = self.kept_row(job - REDO);
                Locks { stripes: row..row + 1, shared: false }
            }
            Work::Job(job) if *job >= RESYNC => {
                Locks { stripes: job - RESYNC..job - RESYNC + 1, shared: false }
            }
            Work::Job(job) if *job >= APPLY => {
                Locks { stripes: self.region_rows(job - APPLY), shared: false }
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
        let (work, at, changes) = (state.work, state.at, state.changes);
        if phase.lost {
            let again = changes != self.disks.changes();
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
            (Work::Host(r), At::Olds) => self.begin_writes(ticket, &r, &mut state, plan),
            (Work::Host(_), At::Room) => state.at = At::Room,
            (Work::Host(r), At::Journal) => {
                self.kept(&r, &state, plan);
                self.write(ticket, &r, state.batch.clone(), &mut state, plan);
            }
            (Work::Host(r), At::Writes) if self.next_batch(ticket, &r, &mut state, plan) => {}
            (Work::Host(r), _) => {
                self.deliver(ticket, &r, &state, plan);
                self.logged(&state, plan);
                self.clean(&r, plan);
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
        self.disks.failed(member, plan);
        self.logs_die(u64::from(member.0));
    }

    fn replaced(&mut self, now: SimTime, member: MemberId, plan: &mut MemberPlan) {
        let rebuild = self.rebuilds(now);
        self.disks.replace(member, rebuild, plan);
    }

    fn health(&self, member: MemberId) -> Health {
        self.disks.health(member)
    }

    fn wake_at(&self, _: Option<SimTime>) -> Option<SimTime> {
        if !self.doubt.is_empty() {
            return (!self.resyncing).then_some(SimTime::ZERO);
        }
        self.disks.next_at(self.options.depth)
    }

    fn wake(&mut self, now: SimTime, plan: &mut MemberPlan) {
        if !self.doubt.is_empty() {
            self.resyncing = true;
            return plan.job(RESYNC + self.doubt.start);
        }
        self.disks.begin(now, self.options.pace).into_iter().for_each(|unit| plan.job(unit));
    }

    fn unfinished(&self) -> bool {
        self.disks.rebuild().is_some() || !self.doubt.is_empty()
    }

    fn unclean(&mut self, stop: Stop, plan: &mut MemberPlan) {
        // What was recorded by then says which rows were under way.
        if stop == Stop::Killed && (self.options.intent || self.options.journal) {
            return;
        }
        self.doubt = 0..self.rows.rows;
        plan.record(Record { tag: DOUBT, words: [0; 3] });
    }

    fn durable(&mut self) {
        self.places.durable();
    }

    fn recover(&mut self, records: &mut dyn Iterator<Item = Record>, plan: &mut MemberPlan) {
        let mut dirty = std::collections::BTreeMap::new();
        for record in records {
            let Record { tag, words } = record;
            match tag {
                DIRTY => (words[0]..words[1]).for_each(|row| *dirty.entry(row).or_insert(0u32) += 1),
                KEPT => self.recover_kept(words),
                FREE => _ = self.places.give(words[0]),
                DOUBT => self.doubt = words[0]..self.rows.rows,
                LOGGED | VOID => self.recover_log(tag, words),
                CLEAN => (words[0]..words[1]).for_each(|row| _ = dirty.remove(&row)),
                _ => {
                    let rebuild = self.rebuilds(SimTime::ZERO);
                    self.disks.recover(&record, rebuild);
                    if tag == DISKS {
                        self.logs_die(words[0]);
                    }
                }
            }
        }
        let whole = |row: &u64| (0..self.rows.disks).all(|d| self.has(d, *row));
        self.redo(plan);
        dirty.into_keys().filter(whole).for_each(|row| plan.job(RESYNC + row));
    }

    fn checkpoint(&self, out: &mut dyn FnMut(Record)) {
        self.disks.checkpoint(out);
        if !self.doubt.is_empty() {
            out(Record { tag: DOUBT, words: [self.doubt.start, 0, 0] });
        }
        self.keep(out);
        self.keep_log(out);
        for (_, state) in self.states.iter() {
            if let (Work::Host(r), At::Last | At::Writes) = (state.work, &state.at)
                && let Some(rows) = self.changing(&r)
            {
                out(Record { tag: DIRTY, words: [rows.start, rows.end, 0] });
            }
        }
    }

    fn map_bytes(&self) -> u64 {
        self.disks.bytes() + self.logs.bytes()
    }

    fn counters(&self, out: &mut dyn FnMut(&'static str, u64)) {
        out("rows_written_whole", self.full);
        out("rows_modified", self.modified);
        out("rows_reconstructed", self.reconstructed);
        if self.degraded > 0 {
            out("degraded_rows", self.degraded);
        }
        if self.options.journal {
            out("rows_journalled", self.journalled);
        }
        if self.logs_parity() {
            self.logs.counters(out);
        }
        self.disks.counters(out);
        if !self.doubt.is_empty() {
            out("rows_in_doubt", self.doubt.end - self.doubt.start);
        }
    }
}
