//! Writes that the buffer took and the medium does not have yet, in the order in which it gets them.

use smrlab_units::SimTime;
use std::collections::VecDeque;

/// Consecutive blocks of one write or of several that follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    pub start: u64,
    pub end: u64,
    /// When the medium has all of it.
    pub done: SimTime,
}

impl Dirty {
    /// What goes to several places of the medium: none of its blocks is looked for here.
    pub(super) fn scattered(done: SimTime) -> Self {
        Self { start: u64::MAX, end: u64::MAX, done }
    }

    /// Whether it has all of the blocks from `lba` up to `end`.
    pub(super) fn has_all(&self, lba: u64, end: u64) -> bool {
        self.start <= lba && end <= self.end
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    pieces: VecDeque<Dirty>,
    /// Command by command: when it is on the medium, and its blocks.
    commands: VecDeque<(SimTime, u64)>,
    /// The sum of those blocks.
    blocks: u64,
}

impl Writes {
    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The oldest piece.
    #[inline]
    pub(super) fn oldest(&self) -> Option<&Dirty> {
        self.pieces.front()
    }

    /// The medium has the oldest piece.
    pub(super) fn settle(&mut self) -> Option<Dirty> {
        self.pieces.pop_front()
    }

    /// The newest piece that reaches into the blocks from `lba` up to `end`, and how many are as old or older.
    #[inline]
    pub(super) fn newest_on(&self, lba: u64, end: u64) -> Option<(Dirty, usize)> {
        if self.pieces.is_empty() {
            return None;
        }
        let i = self.pieces.iter().rposition(|d| (d.start < end) & (lba < d.end))?;
        Some((self.pieces[i], i + 1))
    }

    /// When there is room, from `start` on, for `blocks` more of at most `most` that are on their way to the medium.
    pub(super) fn room(&mut self, mut start: SimTime, blocks: u64, most: u64) -> SimTime {
        while let Some(&(done, n)) = self.commands.front()
            && (done <= start || self.blocks + blocks > most)
        {
            start = start.max(done);
            self.commands.pop_front();
            self.blocks -= n;
        }
        start
    }

    /// Takes the youngest piece back where a write from `lba` on continues it; answers where it begins.
    pub(super) fn continued(&mut self, lba: u64) -> Option<u64> {
        let start = self.pieces.back().filter(|d| d.end == lba)?.start;
        self.pieces.pop_back();
        Some(start)
    }

    /// All pieces, the oldest first.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &Dirty> {
        self.pieces.iter()
    }

    /// A piece is on its way to the medium, for whose place nobody has to wait.
    pub(super) fn note(&mut self, piece: Dirty) {
        self.pieces.push_back(piece);
    }

    /// A piece was taken; its last command has so many `blocks`.
    pub(super) fn take(&mut self, piece: Dirty, blocks: u64) {
        self.commands.push_back((piece.done, blocks));
        self.blocks += blocks;
        self.note(piece);
    }
}
