//! Which blocks hold data: the live set of in-place layers, with the records by which it survives.

use crate::{Plan, Record, Sink};
use smrlab_blockmap::{BlockSet, Gather};
use smrlab_units::Blocks;
use std::cell::RefCell;
use std::ops::Range;

/// `words` = first block, blocks: they hold data from now on.
const LIVE: u32 = 0x4c01;
/// `words` = first block, blocks: they were discarded.
const DEAD: u32 = 0x4c02;

/// A set of blocks (LBAs or PBAs: the layer's choice) that hold data.
#[derive(Default)]
pub struct Live {
    set: BlockSet,
}

impl Live {
    /// Adds `range`, with a record if any of it is new; answers how many of its blocks are.
    #[inline]
    pub fn insert(&mut self, range: Range<u64>, plan: &mut Plan) -> u64 {
        let new = self.set.insert(range.clone());
        if new > 0 {
            plan.record(Record { tag: LIVE, words: [range.start, range.end - range.start, 0] });
        }
        new
    }

    /// Adds `range`, of which there is a record.
    pub fn add(&mut self, range: Range<u64>) {
        self.set.insert(range);
    }

    /// Removes `range`, with a record if there was any of it; answers how many of its blocks there were.
    pub fn remove(&mut self, range: Range<u64>, plan: &mut Plan) -> u64 {
        let gone = self.set.remove(range.clone());
        if gone > 0 {
            plan.record(Record { tag: DEAD, words: [range.start, range.end - range.start, 0] });
        }
        gone
    }

    /// The set.
    #[inline]
    pub fn set(&self) -> &BlockSet {
        &self.set
    }

    /// Those parts of `range` that hold no data read as zeroes at `host` and following.
    #[inline]
    pub fn zero_rest(&self, range: Range<u64>, host: Blocks, plan: &mut Plan) {
        if !plan.wants_data() {
            return;
        }
        let mut at = range.start;
        let mut zero_up_to = |run: Range<u64>| {
            if run.start > at {
                plan.zero_to_host(host + Blocks(at - range.start), Blocks(run.start - at));
            }
            at = run.end;
        };
        self.set.runs_in(range.clone()).for_each(&mut zero_up_to);
        zero_up_to(range.end..range.end);
    }

    /// Takes a record of the set's: answers the range and whether it holds data now.
    pub fn take(&mut self, record: &Record) -> Option<(Range<u64>, bool)> {
        let range = record.words[0]..record.words[0] + record.words[1];
        match record.tag {
            LIVE => self.set.insert(range.clone()),
            DEAD => self.set.remove(range.clone()),
            _ => return None,
        };
        Some((range, record.tag == LIVE))
    }

    /// The set as records.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        for run in self.set.runs() {
            out.push(LIVE, [run.start, run.end - run.start, 0]);
        }
    }
}

/// A live set on which no plan depends: while nobody wants data or records, blocks are added later, many at a time.
/// Whoever asks sees them all.
pub struct LateLive {
    state: RefCell<(Live, Gather<(u64, u64)>)>,
}

impl LateLive {
    /// For blocks below `space`.
    pub fn new(space: Blocks) -> Self {
        Self { state: RefCell::new((Live::default(), Gather::new(space.0))) }
    }

    /// Adds `range`, as [`Live::insert`].
    #[inline]
    pub fn insert(&mut self, range: Range<u64>, plan: &mut Plan) {
        if plan.wants_data() || plan.wants_records() {
            self.now().insert(range, plan);
            return;
        }
        let state = self.state.get_mut();
        if state.1.push((range.start, range.end)) {
            settle(state);
        }
    }

    /// The set, to change it.
    pub fn now(&mut self) -> &mut Live {
        let state = self.state.get_mut();
        settle_and_free(state);
        &mut state.0
    }

    /// What `ask` answers of the set.
    pub fn ask<R>(&self, ask: impl FnOnce(&Live) -> R) -> R {
        let mut state = self.state.borrow_mut();
        settle_and_free(&mut state);
        ask(&state.0)
    }
}

#[cold]
#[inline(never)]
fn settle((live, late): &mut (Live, Gather<(u64, u64)>)) {
    late.drain(&mut live.set, |run| run.0, |set, run| _ = set.insert(run.0..run.1));
}

#[inline]
fn settle_and_free(state: &mut (Live, Gather<(u64, u64)>)) {
    if !state.1.is_empty() {
        settle(state);
        state.1.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_sees_what_was_put_off() {
        let mut late = LateLive::new(Blocks(1 << 34));
        let mut plan = Plan::new(false, false);
        // More than are put off at once; every second place twice.
        let n = (1u64 << 18) + 1000;
        for i in 0..n {
            let at = i / 2 * 7_919 * 8;
            late.insert(at..at + 8, &mut plan);
        }
        assert_eq!(late.ask(|live| live.set().count()), n / 2 * 8);
        late.insert(3..5, &mut plan);
        late.now().remove(4..12, &mut plan);
        assert_eq!(late.ask(|live| (live.set().count_in(0..12), live.set().contains_all(0..4))), (4, true));
        let mut plan = Plan::new(false, true);
        late.insert(0..6, &mut plan);
        late.insert(0..6, &mut plan);
        assert_eq!(plan.records().len(), 1);
    }
}
