//! The side of the host: the overhead of a command, the bus, and when the command after it can begin.

use smrlab_disk::model::ControllerSpec;
use smrlab_units::{Dir, SimTime};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Front {
    /// The kind of the command before: overheads depend on it.
    last: Dir,
    /// When the last command was answered.
    answered: SimTime,
    /// A scheduler chose the present command then; its overhead may have passed before.
    chosen: SimTime,
    /// Commands wait in a queue: those that the medium serves do not keep others from being answered.
    queued: bool,
}

impl Front {
    /// Before the first command, which counts as following a write.
    pub(super) fn new() -> Self {
        Self { last: Dir::Write, answered: SimTime::ZERO, chosen: SimTime::ZERO, queued: false }
    }

    /// Commands wait in a queue before it: answers come in another order than commands.
    pub(super) fn behind_queue(&mut self) {
        self.queued = true;
    }

    /// When a command that comes at `now` begins.
    #[inline]
    pub(super) fn begin(&mut self, now: SimTime) -> SimTime {
        self.chosen = SimTime::ZERO;
        now.max(self.answered)
    }

    /// A scheduler chooses the present command.
    pub(super) fn choose(&mut self, now: SimTime) {
        self.chosen = now;
    }

    /// `start`, or when a scheduler chose the present command, whichever is later.
    #[inline]
    pub(super) fn chosen(&self, start: SimTime) -> SimTime {
        start.max(self.chosen)
    }

    /// Of times after a read and after a write, the one that holds for the present command.
    pub(super) fn after(&self, times: [SimTime; 2]) -> SimTime {
        times[self.last as usize]
    }

    /// When the overhead of a command that begins at `now` is over.
    #[inline]
    pub(super) fn over(&self, now: SimTime, overhead: [SimTime; 2]) -> SimTime {
        (now + self.after(overhead)).max(self.chosen)
    }

    /// When a read that finds the buffer at rest after another read can come, and how long it then takes to get `blocks` out of the buffer.
    /// `None`: the command before was none, or commands wait in a queue.
    #[inline]
    pub(super) fn reads_on(&self, spec: &ControllerSpec, blocks: u64) -> Option<(SimTime, SimTime)> {
        let read = Dir::Read as usize;
        let took = spec.read_hit[read] + bus(spec, Dir::Read, blocks) + spec.done[read];
        (self.last == Dir::Read && !self.queued).then_some((self.answered, took))
    }

    /// Such reads were answered, the last one at `done`.
    #[inline]
    pub(super) fn read_on(&mut self, done: SimTime) {
        (self.chosen, self.answered) = (SimTime::ZERO, done);
    }

    /// A command of this kind is over at `done`, on the `medium` or in the buffer; answers when it completes.
    #[inline]
    pub(super) fn answered(
        &mut self,
        spec: &ControllerSpec,
        dir: Dir,
        done: SimTime,
        medium: bool,
    ) -> SimTime {
        self.last = dir;
        let done = done + spec.done[dir as usize];
        if !self.queued || !medium {
            self.answered = self.answered.max(done);
        }
        done
    }
}

/// What the bus needs for so many blocks.
pub(super) fn bus(spec: &ControllerSpec, dir: Dir, blocks: u64) -> SimTime {
    SimTime(spec.bus[dir as usize].0 * blocks)
}
