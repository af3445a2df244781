//! The drive's own buffer: command overheads, the bus, and a buffer in segments with read-ahead and write-back.
//!
//! A pure state machine over the mechanics. The medium goes on by itself after a command: it reads ahead, it writes what the
//! buffer took. What was read is kept by its place on the medium, so that reading ahead works behind any translation layer
//! (`docs/decisions/0010-the-drives-own-buffer.md`).
//!
//! What it is made of, each in a file: [`Front`] has the overheads and says when the next command begins; [`AtMedium`] what the
//! mechanics were told to do; [`Segments`] the blocks that were read; [`Ahead`] the reading that goes on; [`Writes`] what was taken and
//! is not on the medium yet. Commands of one media operation are in `reads.rs` and `writes.rs`, those of several in `several.rs`.
//!
//! First come, first served, commands are served one at a time, in the order in which they are given. Behind a scheduler the
//! [queue](crate::scheduled) keeps what is to be written, and has it written when its turn comes.

mod ahead;
mod counters;
mod dirty;
mod front;
mod medium;
mod reads;
mod segments;
mod several;
#[cfg(test)]
pub(crate) mod tests;
mod writes;

pub use counters::Counters;
pub(crate) use medium::Track;

use ahead::Ahead;
use dirty::Writes;
use front::Front;
use medium::{AtMedium, Passed};
use segments::Segments;
use smrlab_disk::Mechanics;
use smrlab_disk::model::ControllerSpec;
use smrlab_stl::MediaOp;
use smrlab_units::{Dir, SimTime};

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct DriveBuffer {
    spec: ControllerSpec,
    front: Front,
    medium: AtMedium,
    segments: Segments,
    ahead: Ahead,
    writes: Writes,
    /// Blocks that the last read of one operation asked for.
    asked: u64,
    counters: Counters,
}

impl DriveBuffer {
    /// An empty buffer.
    pub fn new(spec: ControllerSpec) -> Self {
        Self {
            front: Front::new(),
            medium: AtMedium::default(),
            segments: Segments::new(spec.buffer.segments, spec.buffer.segment_blocks),
            ahead: Ahead::default(),
            writes: Writes::default(),
            asked: 0,
            counters: Counters::default(),
            spec,
        }
    }

    /// What the buffer has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When the medium will be free of everything that it must finish.
    pub fn free_at(&self) -> SimTime {
        self.medium.free
    }

    /// What it is.
    pub fn spec(&self) -> &ControllerSpec {
        &self.spec
    }

    /// Commands wait in a queue before it: answers come in another order than commands.
    pub(crate) fn behind_queue(&mut self) {
        self.front.behind_queue();
    }

    /// When a command that comes at `now` begins, with everything noted that happened until then but reading ahead, which
    /// [`catch_up`](Self::catch_up) notes.
    #[inline]
    pub(crate) fn begin(&mut self, now: SimTime) -> SimTime {
        let start = self.front.begin(now);
        self.settle_until(start);
        self.ahead.interrupted(start);
        start
    }

    /// A scheduler chooses a command now.
    pub(crate) fn choose(&mut self, now: SimTime, m: &mut Mechanics) {
        self.front.choose(now);
        self.note(now, m);
    }

    /// Notes what has happened until `now`.
    pub(crate) fn note(&mut self, now: SimTime, m: &mut Mechanics) {
        self.settle_until(now);
        self.read_on(now, m);
    }

    /// The medium is at other work until `free`.
    #[inline]
    pub(crate) fn engaged(&mut self, free: SimTime) {
        self.medium.engaged(free);
    }

    /// Serves a command that arrives at `now`; answers when it completes.
    pub fn serve(&mut self, now: SimTime, dir: Dir, lba: u64, blocks: u64, m: &mut Mechanics) -> SimTime {
        let start = self.begin(now);
        self.command(start, (dir, false), lba, blocks, m)
    }

    /// Serves a command that begins at `start` as [`begin`](Self::begin) said, or a scheduler; `through`: a write that is answered when
    /// it is on the medium.
    #[inline]
    pub(crate) fn command(
        &mut self,
        start: SimTime,
        (dir, through): (Dir, bool),
        lba: u64,
        blocks: u64,
        m: &mut Mechanics,
    ) -> SimTime {
        self.medium.passed = None;
        let done = match dir {
            Dir::Read => self.read(start, lba, blocks, m),
            Dir::Write => self.write(start, lba, blocks, through, m),
        };
        self.answered(dir, done, self.medium.passed.is_some())
    }

    /// What passed the head for the last command.
    pub(crate) fn passed(&self) -> Option<&Passed> {
        self.medium.passed.as_ref()
    }

    /// A command of this kind is over at `done`, on the `medium` or in the buffer; answers when it completes.
    #[inline]
    pub(crate) fn answered(&mut self, dir: Dir, done: SimTime, medium: bool) -> SimTime {
        self.front.answered(&self.spec, dir, done, medium)
    }

    /// `start`, or when a scheduler chose the present command, whichever is later.
    pub(crate) fn chosen(&self, start: SimTime) -> SimTime {
        self.front.chosen(start)
    }

    /// What the bus needs for so many blocks.
    #[inline]
    pub(crate) fn bus(&self, dir: Dir, blocks: u64) -> SimTime {
        front::bus(&self.spec, dir, blocks)
    }

    /// Whether it has all of these blocks.
    pub(crate) fn holds(&self, lba: u64, blocks: u64) -> bool {
        let end = lba + blocks;
        match self.writes.newest_on(lba, end) {
            Some((d, _)) => self.spec.buffer.written_hits && d.has_all(lba, end),
            None => self.segments.hold(lba, end),
        }
    }

    /// An operation was carried out by whatever: what the buffer holds of blocks that were written is out of date.
    pub(crate) fn carried_out(&mut self, op: &MediaOp) {
        if op.dir == Dir::Write {
            self.forget(op.pba.0, op.pba.0 + op.blocks.0);
        }
    }

    /// The medium is written, by whatever: what the buffer holds of these blocks is out of date.
    #[inline]
    fn forget(&mut self, lba: u64, end: u64) {
        if self.segments.forget(lba, end) && self.ahead.segment().is_some_and(|i| self.segments.is_empty(i)) {
            self.ahead.stream = None;
        }
    }
}
