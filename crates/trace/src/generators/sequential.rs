//! Requests one behind the other.

use super::{Common, Drawn, Generator, Pattern};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "sequential",
    summary: "each request begins where the one before ended; over the span, then from its start again",
    reference: "Streaming reads and writes, full-disk passes.",
    params: &[
        Param::new("streams", Kind::Count(1, 65_536), "1")
            .doc("streams in turn, each in its own equal part of the span"),
        Param::new("once", Kind::Switch, "off").doc("on: the trace ends when a stream's part is full"),
    ],
    defaults: &[],
    make: |v, common| {
        let streams = v.count("streams");
        if common.span < streams {
            return Err(v.bad("streams", "the span must hold at least a block for each stream"));
        }
        Ok(Box::new(Sequential::new(common, streams, v.on("once"))))
    },
};

/// Streams in turn.
pub(super) struct Sequential {
    /// Where each stream goes on, within its part.
    at: Vec<u64>,
    /// Blocks a stream has.
    part: u64,
    turn: usize,
    once: bool,
}

impl Sequential {
    /// `streams` must not exceed the span's blocks.
    pub(super) fn new(common: &Common, streams: u64, once: bool) -> Self {
        Self { at: vec![0; streams as usize], part: common.span / streams, turn: 0, once }
    }
}

impl Pattern for Sequential {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let turn = self.turn;
        self.turn = (turn + 1) % self.at.len();
        let mut blocks = common.size().min(self.part);
        let room = self.part - self.at[turn];
        if blocks > room {
            match (self.once, room) {
                (true, 0) => return None,
                // The last request of a part is as long as what is left of it.
                (true, _) => blocks = room,
                (false, _) => self.at[turn] = 0,
            }
        }
        let lba = turn as u64 * self.part + self.at[turn];
        self.at[turn] += blocks;
        Some(common.at(lba, blocks))
    }
}
