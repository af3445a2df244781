//! Requests one behind the other.

use super::{Common, Drawn, Generator, Pattern};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub const GENERATOR: Generator = Generator {
    name: "sequential",
    summary: "each request begins where the one before ended; over the span, then from its start again",
    reference: "Streaming reads and writes, full-disk passes.",
    params: &[Param {
        name: "streams",
        kind: Kind::Count(1, 65_536),
        default: "1",
        doc: "streams in turn, each in its own equal part of the span",
    }],
    defaults: &[],
    make: |v, common| {
        let streams = v.count("streams").unwrap_or(1);
        let part = common.span / streams;
        if part == 0 {
            return Err(v.bad("streams", "the span must hold at least a block for each stream"));
        }
        Ok(Box::new(Sequential { at: vec![0; streams as usize], part, turn: 0 }))
    },
};

struct Sequential {
    /// Where each stream goes on, within its part.
    at: Vec<u64>,
    /// Blocks a stream has.
    part: u64,
    turn: usize,
}

impl Pattern for Sequential {
    fn next(&mut self, common: &mut Common) -> Drawn {
        let turn = self.turn;
        self.turn = (turn + 1) % self.at.len();
        let blocks = common.size().min(self.part);
        if self.at[turn] + blocks > self.part {
            self.at[turn] = 0;
        }
        let lba = turn as u64 * self.part + self.at[turn];
        self.at[turn] += blocks;
        common.at(lba, blocks)
    }
}
