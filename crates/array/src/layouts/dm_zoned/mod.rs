//! `dm-zoned`: a host-managed drive as an ordinary one, as the Linux target of that name makes it.
//!
//! A chunk of the host's space is as large as a zone. Writes go to the chunk's sequential zone where they begin at its write pointer, else
//! to a random zone. What a drive is asked for is done in the order in which it is asked, so a zone may be given to others while reads of
//! what it held are on their way.

mod commit;
mod entry;
mod reclaim;
mod records;
mod table;
#[cfg(test)]
mod tests;
mod writes;

pub use entry::ENTRY;

use crate::job::tasks;
use crate::layouts::chunks::{cut, numbers};
use crate::tickets::Tickets;
use crate::{
    Array, Change as _, End, Health, Locks, MemberId, MemberPlan, Phase, Record, Records, Sink, Ticket, Work,
};
use commit::Commit;
use reclaim::Reclaiming;
use records::Change;
use smrlab_stl::{Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Zone, counters};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use table::Table;

/// The drive.
const DRIVE: MemberId = MemberId(0);

/// What users set.
#[derive(Clone, Copy, Debug)]
struct DmZonedOptions {
    /// A chunk that is written for the first time gets a sequential zone where it is written from its beginning on.
    sequential_first: bool,
    /// How long there is no request before reclaim begins while fewer random zones than `high` are free.
    idle: SimTime,
    /// In every pause that is as long, not only in the first and where nothing was reclaimed before.
    all_pauses: bool,
    /// Free random zones below which reclaim begins in idle time, and at any time.
    high: u64,
    low: u64,
    /// Blocks that reclaim copies at a time.
    copy: u64,
}

tasks! {
    /// What it does by itself.
    enum Task from 0 {
        /// Reclaims a random zone, whichever was written longest ago.
        Reclaim,
    }
}

/// The part of a request that lies in one chunk.
#[derive(Clone, Debug)]
struct Piece {
    chunk: u64,
    /// In the chunk.
    blocks: Range<u64>,
    /// Where they are in the host's buffer.
    host: u64,
}

/// A write of the host's.
#[derive(Clone, Debug)]
struct Writing {
    request: HostRequest,
    /// What is not on its way yet.
    left: VecDeque<Piece>,
    /// What is, and the zones to which it goes.
    doing: Vec<(Piece, u32)>,
    /// What completes its first and its last unit was read into slots 0 and 1.
    filled: [bool; 2],
    /// It had to wait.
    waited: bool,
}

impl Writing {
    fn new(request: HostRequest, left: VecDeque<Piece>) -> Self {
        Self { request, left, doing: Vec::new(), filled: [false; 2], waited: false }
    }
}

/// What a work is at.
#[derive(Clone, Debug)]
enum Doing {
    /// Its reads, or its flush, are the last phase.
    Last,
    /// Reads what completes the first and the last unit.
    Filling(Writing),
    Writing(Writing),
    /// Waits for its turn to write down metadata.
    Flushing(HostRequest),
    Committing(Commit),
    Reclaiming,
}

/// What keeps a work from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A random zone.
    Zone,
    /// The end of the reclaim of this chunk.
    Reclaim,
    /// The end of a commit.
    Commit,
}

/// What pauses of the host's are for, unless all of them have reclaim begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pauses {
    /// The first one has it begin.
    Awaited,
    /// It has.
    Used,
    /// None has it begin any more: the host has come back since, or a write had it begin.
    Over,
}

counters! {
    /// Events that are counted.
    struct Counters {
        /// Blocks that the host wrote at write pointers, and to random zones.
        at_pointer => "blocks_at_pointer",
        random => "blocks_to_random_zones",
        resets => "zone_resets",
        waits => "waits",
        commits => "commits",
        metadata => "metadata_blocks",
        reclaims => "reclaims",
        given_up => "reclaims_given_up",
        relocated => "reclaimed_blocks",
    }
}

/// See the [module](self).
pub struct DmZoned {
    options: DmZonedOptions,
    table: Table,
    works: Tickets<Doing>,
    /// Works that cannot go on, the first that came first.
    parked: VecDeque<(Ticket, Wait)>,
    /// Chunks to which something is being written.
    writing: BTreeSet<u64>,
    reclaiming: Reclaiming,
    pauses: Pauses,
    /// A write that took a random zone found few of them free, and few still are.
    few: bool,
    /// No random zone could be reclaimed, and nothing was written since.
    stuck: bool,
    committing: bool,
    dead: bool,
    counters: Counters,
}

impl DmZoned {
    fn new(table: Table, options: DmZonedOptions) -> Self {
        Self {
            options,
            table,
            works: Tickets::default(),
            parked: VecDeque::new(),
            writing: BTreeSet::new(),
            reclaiming: Reclaiming::No,
            pauses: Pauses::Awaited,
            few: false,
            stuck: false,
            committing: false,
            dead: false,
            counters: Counters::default(),
        }
    }

    fn pieces(&self, r: &HostRequest) -> impl Iterator<Item = Piece> + use<> {
        let pieces = cut(&r.span(), self.table.shape.size);
        pieces.map(|(chunk, blocks, host)| Piece { chunk, blocks, host })
    }

    /// Makes a change, and records it.
    fn change(&mut self, change: &Change, plan: &mut MemberPlan) {
        self.table.apply(change);
        plan.record(change.clone());
    }

    /// The same, and what follows of it for the chunk's zones.
    fn change_and_settle(&mut self, change: &Change, chunk: u64, plan: &mut MemberPlan) {
        self.change(change, plan);
        if let Some(mapped) = self.table.settled(chunk) {
            self.change(&mapped, plan);
        }
    }

    /// A write, or a discard, cannot go on.
    fn park(&mut self, ticket: Ticket, mut writing: Writing, why: Wait) {
        self.counters.waits += u64::from(!std::mem::replace(&mut writing.waited, true));
        self.works.put(ticket, Doing::Writing(writing));
        self.parked.push_back((ticket, why));
    }

    fn read(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let mut asked = false;
        for piece in self.pieces(r) {
            let mut at = piece.blocks.start;
            let host = |offset: u64| Blocks(piece.host + offset - piece.blocks.start);
            for (zone, run) in self.table.runs(piece.chunk, piece.blocks.clone()) {
                if run.start > at {
                    plan.deliver(ticket, host(at), Blocks(run.start - at), &[]);
                }
                let blocks = Blocks(run.end - run.start);
                let part = HostRequest { lba: self.table.shape.at(zone, run.start), blocks, ..*r };
                plan.ask(ticket, DRIVE, part, |out| out.push(blocks, End::Host(host(run.start))));
                (asked, at) = (true, run.end);
            }
            if at < piece.blocks.end {
                plan.deliver(ticket, host(at), Blocks(piece.blocks.end - at), &[]);
            }
        }
        match asked {
            true => self.works.put(ticket, Doing::Last),
            false => plan.end(ticket),
        }
    }

    fn start_host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        match r.op {
            HostOp::Read => self.read(ticket, r, plan),
            HostOp::Write => self.fill(ticket, *r, plan),
            HostOp::Discard => {
                let all = Writing::new(*r, self.pieces(r).collect());
                self.discard(ticket, all, plan);
            }
            HostOp::Flush => self.flush(ticket, *r, plan),
            HostOp::Append | HostOp::Zone(_) => plan.refuse(ticket, Refusal::Unsupported),
        }
    }

    /// Works that waited go on as far as they can.
    fn go_on(&mut self, plan: &mut MemberPlan) {
        for (ticket, _) in std::mem::take(&mut self.parked) {
            match self.works.take(ticket) {
                Some(Doing::Writing(w)) if w.request.op == HostOp::Discard => self.discard(ticket, w, plan),
                Some(Doing::Writing(w)) => self.write(ticket, w, plan),
                Some(Doing::Flushing(r)) => self.flush(ticket, r, plan),
                _ => debug_assert!(false, "nothing that waits"),
            }
        }
        self.wants_reclaim(plan);
    }

    /// Pauses have nothing more to begin.
    fn end_pauses(&mut self) {
        if !self.options.all_pauses {
            self.pauses = Pauses::Over;
        }
    }

    /// Nothing can be read or written any more.
    fn give_up(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        self.works.remove(ticket);
        plan.refuse(ticket, Refusal::Lost);
    }
}

impl Array for DmZoned {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.table.shape.chunks() * self.table.shape.size)
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) => Locks::of_host(r, |blocks| numbers(&blocks, self.table.shape.size)),
            Work::Job(_) => Locks::NONE,
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            _ if self.dead => plan.refuse(ticket, Refusal::Lost),
            Work::Host(r) => {
                if self.pauses == Pauses::Used {
                    self.end_pauses();
                }
                self.start_host(ticket, r, plan);
                self.wants_reclaim(plan);
            }
            Work::Job(job) => match Task::of(*job) {
                Some(Task::Reclaim(_)) => {
                    self.start_reclaim(ticket, plan);
                    if matches!(self.reclaiming, Reclaiming::No) {
                        self.go_on(plan);
                    }
                }
                None => plan.end(ticket),
            },
        }
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        if self.dead || phase.lost || phase.untaken.is_some() {
            return self.give_up(ticket, plan);
        }
        match self.works.take(ticket) {
            Some(Doing::Filling(w)) => self.write(ticket, w, plan),
            Some(Doing::Writing(w)) => self.written(ticket, w, plan),
            Some(Doing::Committing(commit)) => self.commit(ticket, commit, plan),
            Some(Doing::Reclaiming) => self.reclaimed(ticket, plan),
            Some(Doing::Last | Doing::Flushing(_)) | None => plan.end(ticket),
        }
        self.go_on(plan);
    }

    fn failed(&mut self, _: MemberId, plan: &mut MemberPlan) {
        self.dead = true;
        plan.record(Change::Dead);
        for (ticket, _) in std::mem::take(&mut self.parked) {
            self.give_up(ticket, plan);
        }
    }

    fn health(&self, _: MemberId) -> Health {
        if self.dead { Health::Dead } else { Health::Whole }
    }

    fn reported(&mut self, _: MemberId, zones: &[Zone]) {
        self.table.reported(zones);
    }

    fn durable(&mut self) {
        self.table.durable();
    }

    fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime> {
        let few = (self.table.free_random.len() as u64) < self.options.high;
        let waits = few && !self.stuck && self.pauses != Pauses::Over && self.can_reclaim();
        idle.filter(|_| waits).map(|at| at + self.options.idle)
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        self.pauses = Pauses::Used;
        self.queue_reclaim(plan);
    }

    fn recover(&mut self, records: &Records, _: &mut MemberPlan) {
        for change in records.iter().filter_map(|r: Record<'_>| Change::of(r)) {
            self.dead |= change == Change::Dead;
            self.table.apply(&change);
        }
        self.table.durable();
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.table.changes(&mut |change| out.add(&change));
        if self.dead {
            out.add(&Change::Dead);
        }
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.table.allocated(lba.span(blocks), out);
    }

    fn map_bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        let (random, sequential) = self.table.used();
        out.counts(self.counters.named());
        out.level("used_random_zones", random);
        out.level("used_sequential_zones", sequential);
    }
}
