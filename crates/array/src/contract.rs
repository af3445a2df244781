//! The contract of an array.

use crate::{MemberId, MemberPlan, Records, Sink, Ticket, Work};
use smrlab_stl::{Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Zone};
use std::ops::Range;

/// The stripes that a work needs for itself, from its first read to its last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locks {
    /// Stripes, in the array's own numbers; empty: none.
    pub stripes: Range<u64>,
    /// Others that are not exclusive may work on them too.
    pub shared: bool,
}

impl Locks {
    /// Nothing.
    pub const NONE: Self = Self { stripes: 0..0, shared: true };

    /// Of a request of the host's: the stripes of its blocks, which reads share; a flush needs none.
    pub fn of_host(r: &HostRequest, stripes_of: impl FnOnce(Range<u64>) -> Range<u64>) -> Self {
        match r.op {
            HostOp::Flush => Self::NONE,
            op => Self { stripes: stripes_of(r.span()), shared: op == HostOp::Read },
        }
    }
}

/// How the server of an array ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// In good order.
    #[default]
    Orderly,
    /// It was killed while disks were written: what it had recorded and issued is there, what it had not issued is not.
    Killed,
    /// The host lost its power: of what was not made durable any part is there.
    PowerLost,
}

/// A phase that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The work.
    pub ticket: Ticket,
    /// A read failed because its member died: its slot holds nothing.
    pub lost: bool,
    /// A write was not taken, and why: its member was dead, or died meanwhile, or refused it.
    pub untaken: Option<Refusal>,
    /// Requests of the host's are in the array.
    pub busy: bool,
}

/// What a disk is to its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It holds all that it should.
    Whole,
    /// Dead, and not replaced.
    Dead,
    /// Replaced: the first number of parts is rebuilt, of the second.
    Rebuilding(u64, u64),
}

/// What an array promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How many disks it can lose.
    pub losses: u32,
    /// Acknowledged data survive a power cut at any member request (perhaps only with an option: see its page).
    pub survives_cut: bool,
    /// Discarded blocks read as zeroes.
    pub discards: bool,
}

/// An array of members: a pure state machine. It learns that a phase is over, never how long it took; it never reads a
/// clock, touches a file, spawns a thread or draws from an ambient random source.
pub trait Array: Send {
    /// How many blocks the host sees.
    fn host_blocks(&self) -> Blocks;

    /// How many spaces of so many blocks it has: a request of stream `s` is to space `s` modulo this. One host sees one; several
    /// are for sources each of which has its own.
    fn spaces(&self) -> u16 {
        1
    }

    /// Which stripes `work` needs. Works whose needs meet are done one after the other, in the order in which they came.
    fn locks(&self, _work: &Work) -> Locks {
        Locks::NONE
    }

    /// Which stripes [`start_runs`](Self::start_runs) needs for ranges within these blocks.
    fn destage_locks(&self, group: &HostRequest) -> Locks {
        self.locks(&Work::Host(*group))
    }

    /// A hint that `request` will come some requests from now: brings what it needs into the processor's caches.
    fn prefetch(&mut self, _request: &HostRequest) {}

    /// Plans the first phase of `work`, whose stripes are its own now.
    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan);

    /// Does a write of which nothing is left behind but what the members hold, none of which refuses it, while nothing is under way: tells
    /// who reads and writes what, in the order in which its phases would; `false`: nothing was done, it is more than that. For callers to
    /// whom neither time nor data matter.
    fn writes(&mut self, _request: &HostRequest, _tell: &mut dyn FnMut(MemberId, &HostRequest)) -> bool {
        false
    }

    /// Whether it writes several ranges at a time, by [`start_runs`](Self::start_runs).
    fn takes_runs(&self) -> bool {
        false
    }

    /// Plans the first phase of a write of several ranges of the host's blocks, ascending and apart, of which the host's
    /// buffer holds one after the other. Asked for only where it [takes them](Self::takes_runs).
    fn start_runs(&mut self, _ticket: Ticket, _runs: &[Range<u64>], _plan: &mut MemberPlan) {}

    /// Blocks of the host's that are best written together.
    fn group_blocks(&self) -> Option<Blocks> {
        None
    }

    /// Those of these ranges of the host's blocks that are best written now, whereas the rest had better wait in a write cache
    /// for others; `None`: it never matters.
    fn ripe(&self, _runs: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
        None
    }

    /// Blocks that it needs on an SSD, from the first on.
    fn journal_blocks(&self) -> Blocks {
        Blocks::ZERO
    }

    /// A phase is over: plans the next one, acknowledges, or ends the work.
    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan);

    /// A member is dead: it is asked for nothing any more.
    fn failed(&mut self, _member: MemberId, _plan: &mut MemberPlan) {}

    /// A fresh drive, never written, takes the place of a dead member.
    fn replaced(&mut self, _member: MemberId, _plan: &mut MemberPlan) {}

    /// Whether a fresh drive in the place of this dead member would get back what that held.
    fn rebuildable(&self, _member: MemberId) -> bool {
        false
    }

    /// How a disk is.
    fn health(&self, member: MemberId) -> Health;

    /// The server did not end in good order, and nobody knows which requests reached the disks: plans, or makes itself do later,
    /// what makes them fit each other again.
    fn unclean(&mut self, _stop: Stop, _plan: &mut MemberPlan) {}

    /// A member reports its zones, before [`recover`](Self::recover): how they are after whatever became of them.
    fn reported(&mut self, _member: MemberId, _zones: &[Zone]) {}

    /// All that was done and recorded so far survives a loss of power.
    fn durable(&mut self) {}

    /// When it wants to be woken; `idle`: since when no request of the host's is in the array, if none is.
    fn wake_at(&self, _idle: Option<SimTime>) -> Option<SimTime> {
        None
    }

    /// The time of [`wake_at`](Self::wake_at) has come.
    fn wake(&mut self, _plan: &mut MemberPlan) {}

    /// A [`checkpoint`](Self::checkpoint) now says what is on the members; else it may say what is on its way to them.
    fn is_settled(&self) -> bool {
        true
    }

    /// It has begun something, such as a rebuild, that should end before the array is looked at.
    fn unfinished(&self) -> bool {
        false
    }

    /// Takes up the state that was recorded. Works that were cut are gone; what they leave to do is planned as jobs.
    fn recover(&mut self, _records: &Records, _plan: &mut MemberPlan) {}

    /// Its present state as records.
    fn checkpoint(&self, _out: &mut dyn Sink) {}

    /// Which of `blocks` from `lba` hold data of the host's, as ascending ranges.
    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        out(lba.span(blocks));
    }

    /// Bytes of memory that its tables take.
    fn map_bytes(&self) -> u64 {
        0
    }

    /// Counters for the results: name and value.
    fn counters(&self, _out: &mut Counted) {}

    /// Its members, where they are arrays.
    fn members(&self) -> Vec<&dyn Array> {
        Vec::new()
    }
}

/// What an array counted from the beginning on.
pub fn counted(array: &dyn Array) -> Counted {
    let mut all = Counted::default();
    array.counters(&mut all);
    all
}

/// The same of an array and of the arrays that are its members.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    own: Counted,
    members: Vec<Self>,
}

impl Counts {
    /// What was counted from the beginning on.
    pub fn of(array: &dyn Array) -> Self {
        Self { own: counted(array), members: array.members().into_iter().map(Self::of).collect() }
    }

    /// What happened after `before` was counted. Levels stay as they are.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        let nothing = Self::default();
        let before_of = before.members.iter().chain(std::iter::repeat(&nothing));
        Self {
            own: self.own.since(&before.own),
            members: self.members.into_iter().zip(before_of).map(|(m, b)| m.since(b)).collect(),
        }
    }

    /// What `make` makes of the array's counters and of what it made of those of its members.
    pub fn told<T>(&self, make: &impl Fn(&Counted, Vec<T>) -> T) -> T {
        make(&self.own, self.members.iter().map(|member| member.told(make)).collect())
    }
}
