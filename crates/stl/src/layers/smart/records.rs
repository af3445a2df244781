//! What survives a power cut: the row of each track, as records that are applied by the same functions.

use super::Smart;
use crate::{Record, Sink};

records! {
    /// Track `words[0]` was written to row `words[1]` for the first time, or was moved there by a gathering.
    PLACED = 1: placed(track: u64, row: u64) -> [track, row, 0];
    /// Track `words[0]` went to row `words[1]` because it was updated.
    MOVED = 2: moved(track: u64, row: u64) -> [track, row, 0];
    /// Nothing of track `words[0]` holds data any more.
    EMPTIED = 3: emptied(track: u64) -> [track, 0, 0];
    /// Checkpoint: the cursor of pool `words[0]` is at row `words[1]`.
    CURSOR = 4;
}

impl Smart {
    /// Makes the change that a record tells.
    pub(super) fn apply(&mut self, record: &Record) {
        let [a, b, _] = record.words;
        match record.tag {
            PLACED | MOVED => {
                let pool = self.space.pool_of_track(a);
                self.leave(pool, a);
                self.home.set(a, b as u32 + 1);
                self.owner.set(b, a as u32 + 1);
                self.space.take(pool, b);
                if record.tag == MOVED {
                    self.space.set_cursor(pool, b);
                }
            }
            EMPTIED => {
                self.leave(self.space.pool_of_track(a), a);
                self.home.set(a, 0);
            }
            CURSOR => self.space.restore_cursor(a as usize, b),
            _ => {
                let known = self.live.take(record).is_some();
                debug_assert!(known, "record {} is not smart's", record.tag);
            }
        }
    }

    /// The row of a track is free.
    fn leave(&mut self, pool: usize, track: u64) {
        if let Some(row) = self.row(track) {
            self.owner.set(row, 0);
            self.space.free(pool, row);
        }
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        self.live.checkpoint(out);
        for (rows, track) in self.owner.runs_in(0..self.rows.count()) {
            out.add(&placed(u64::from(track) - 1, rows.start));
        }
        for pool in 0..self.space.pools() {
            out.push(CURSOR, [pool as u64, self.space.pool(pool).cursor, 0]);
        }
    }
}
