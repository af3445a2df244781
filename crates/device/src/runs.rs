//! What was written when: an ordered map of runs, each with the number of the write that finished it.
//!
//! A sector needs no entry of its own and a write does the same work for every head width: which sectors it destroyed is
//! found out when they are read. Runs lie in leaves of a two-level array: one binary search in memory that stays in the
//! processor's caches, a second in one leaf.

/// Runs in a leaf before it is split.
const LEAF: usize = 64;

/// Consecutive blocks whose order among each other is ascending and that count, towards all blocks that they can
/// destroy or be destroyed by, as written at `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block.
    pub start: u64,
    /// One past the last block.
    pub end: u64,
    /// Number of the write; numbers rise and are never zero.
    pub seq: u64,
}

#[derive(Clone)]
struct Leaf {
    len: usize,
    starts: [u64; LEAF],
    ends: [u64; LEAF],
    seqs: [u64; LEAF],
}

impl Leaf {
    const EMPTY: Self = Self { len: 0, starts: [0; LEAF], ends: [0; LEAF], seqs: [0; LEAF] };

    /// How many runs start at or before `block`.
    #[inline]
    fn upto(&self, block: u64) -> usize {
        let (mut lo, mut n) = (0, self.len);
        while n > 0 {
            let half = n / 2;
            let right = self.starts[lo + half] <= block;
            lo = if right { lo + half + 1 } else { lo };
            n = if right { n - half - 1 } else { half };
        }
        lo
    }

    fn run(&self, i: usize) -> Run {
        Run { start: self.starts[i], end: self.ends[i], seq: self.seqs[i] }
    }

    fn insert(&mut self, i: usize, run: Run) {
        for (column, value) in self.columns(run) {
            column.copy_within(i..LEAF - 1, i + 1);
            column[i] = value;
        }
        self.len += 1;
    }

    fn remove(&mut self, from: usize, to: usize) {
        let len = self.len;
        for (column, _) in self.columns(Run { start: 0, end: 0, seq: 0 }) {
            column.copy_within(to..len, from);
        }
        self.len -= to - from;
    }

    fn columns(&mut self, run: Run) -> [(&mut [u64; LEAF], u64); 3] {
        [(&mut self.starts, run.start), (&mut self.ends, run.end), (&mut self.seqs, run.seq)]
    }
}

/// The position of a run.
#[derive(Clone, Copy, Debug)]
struct At {
    leaf: usize,
    slot: usize,
}

/// See the [module](self).
#[derive(Clone)]
pub struct RunMap {
    firsts: Vec<u64>,
    // Boxed, so that a leaf put in between moves pointers and not the leaves behind it.
    #[allow(clippy::vec_box)]
    leaves: Vec<Box<Leaf>>,
    runs: usize,
}

impl Default for RunMap {
    fn default() -> Self {
        Self { firsts: vec![0], leaves: vec![Box::new(Leaf::EMPTY)], runs: 0 }
    }
}

impl RunMap {
    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.runs
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.runs == 0
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        (self.leaves.len() * (size_of::<Leaf>() + 2 * size_of::<u64>())) as u64
    }

    #[inline]
    fn leaf_of(&self, block: u64) -> usize {
        self.firsts.partition_point(|f| *f <= block).saturating_sub(1)
    }

    /// The run that holds `block`, or else the next one after it.
    #[inline]
    fn seek(&self, block: u64) -> At {
        let leaf = self.leaf_of(block);
        let slot = self.leaves[leaf].upto(block);
        if slot > 0 && self.leaves[leaf].ends[slot - 1] > block {
            return At { leaf, slot: slot - 1 };
        }
        self.settle(At { leaf, slot })
    }

    /// Moves a position past its leaf's end to the next leaf that has runs.
    #[inline]
    fn settle(&self, mut at: At) -> At {
        while at.leaf < self.leaves.len() && at.slot >= self.leaves[at.leaf].len {
            at = At { leaf: at.leaf + 1, slot: 0 };
        }
        at
    }

    #[inline]
    fn get(&self, at: At) -> Option<Run> {
        self.leaves.get(at.leaf).map(|l| l.run(at.slot))
    }

    /// The runs that touch `start..end`, ascending, not clipped.
    #[inline]
    pub fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = Run> + '_ {
        let mut at = self.seek(start);
        std::iter::from_fn(move || {
            let run = self.get(at)?;
            at = self.settle(At { leaf: at.leaf, slot: at.slot + 1 });
            Some(run)
        })
        .take_while(move |r| r.start < end)
    }

    /// All runs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.overlapping(0, u64::MAX)
    }

    /// The run that ends exactly at `block`.
    #[inline]
    pub fn ending_at(&self, block: u64) -> Option<Run> {
        let before = block.checked_sub(1)?;
        self.get(self.seek(before)).filter(|r| r.end == block)
    }

    /// Replaces whatever `start..end` held by one run of `seq`.
    pub fn set(&mut self, start: u64, end: u64, seq: u64) {
        let at = self.seek(start);
        if let Some(leaf) = self.leaves.get_mut(at.leaf)
            && leaf.starts[at.slot] == start
            && leaf.ends[at.slot] == end
        {
            leaf.seqs[at.slot] = seq;
            return;
        }
        self.clear(start, end);
        self.insert(Run { start, end, seq });
    }

    /// Extends the run that ends at `start` up to `end` and renews its number.
    pub fn extend(&mut self, start: u64, end: u64, seq: u64) {
        self.clear(start, end);
        let at = self.seek(start - 1);
        let leaf = &mut self.leaves[at.leaf];
        debug_assert_eq!(leaf.ends[at.slot], start);
        leaf.ends[at.slot] = end;
        leaf.seqs[at.slot] = seq;
    }

    /// Forgets what `start..end` held; runs that reach over an edge are cut there.
    pub fn clear(&mut self, start: u64, end: u64) {
        let at = self.seek(start);
        let Some(first) = self.get(at).filter(|r| r.start < end) else { return };
        if first.start < start {
            self.leaves[at.leaf].ends[at.slot] = start;
            if first.end > end {
                self.insert(Run { start: end, end: first.end, seq: first.seq });
                return;
            }
        }
        let from = if first.start < start { At { leaf: at.leaf, slot: at.slot + 1 } } else { at };
        self.remove_inside(from, end);
    }

    /// Removes the runs from `at` on that end by `end`, and cuts off the head of one that reaches over it.
    fn remove_inside(&mut self, mut at: At, end: u64) {
        loop {
            at = self.settle(at);
            let Some(leaf) = self.leaves.get_mut(at.leaf) else { return };
            let stop = (at.slot..leaf.len).find(|i| leaf.ends[*i] > end).unwrap_or(leaf.len);
            let whole = stop == leaf.len;
            leaf.remove(at.slot, stop);
            self.runs -= stop - at.slot;
            if !whole {
                // This run reaches past the end: its head, if inside, goes.
                leaf.starts[at.slot] = leaf.starts[at.slot].max(end);
                if at.slot == 0 && at.leaf > 0 {
                    self.firsts[at.leaf] = leaf.starts[0];
                }
                return;
            }
            if leaf.len == 0 && self.leaves.len() > 1 && at.leaf > 0 {
                self.leaves.remove(at.leaf);
                self.firsts.remove(at.leaf);
            } else {
                at = At { leaf: at.leaf + 1, slot: 0 };
            }
        }
    }

    fn insert(&mut self, run: Run) {
        let mut leaf = self.leaf_of(run.start);
        if self.leaves[leaf].len == LEAF {
            self.split(leaf, run.start);
            leaf = self.leaf_of(run.start);
        }
        let slot = self.leaves[leaf].upto(run.start);
        self.leaves[leaf].insert(slot, run);
        self.runs += 1;
    }

    /// Splits a full leaf: in the middle, or at its end where runs arrive in ascending order (so that leaves stay full).
    fn split(&mut self, leaf: usize, next: u64) {
        let old = &mut self.leaves[leaf];
        let at = if old.starts[LEAF - 1] < next { LEAF - 1 } else { LEAF / 2 };
        let mut new = Box::new(Leaf::EMPTY);
        for i in at..LEAF {
            new.insert(i - at, old.run(i));
        }
        old.len = at;
        self.firsts.insert(leaf + 1, new.starts[0]);
        self.leaves.insert(leaf + 1, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The map equals one number per block, through splits of leaves and removals of whole leaves.
        #[test]
        fn equals_a_number_per_block(ops in prop::collection::vec((0u64..3000, 1u64..40, 0u8..12), 1..2500)) {
            let mut map = RunMap::default();
            let mut plain = vec![0u64; 4000];
            for (n, (start, len, kind)) in ops.into_iter().enumerate() {
                let (seq, len) = (n as u64 + 1, if kind == 11 { len * 20 } else { len });
                let range = start as usize..(start + len) as usize;
                if kind == 0 {
                    map.clear(start, start + len);
                    plain[range].fill(0);
                } else if kind < 4 && let Some(before) = map.ending_at(start) {
                    map.extend(start, start + len, seq);
                    plain[before.start as usize..(start + len) as usize].fill(seq);
                } else {
                    map.set(start, start + len, seq);
                    plain[range].fill(seq);
                }
            }
            let mut seen = vec![0u64; 4000];
            let mut last = 0;
            for r in map.iter() {
                prop_assert!(r.start >= last && r.start < r.end);
                last = r.end;
                seen[r.start as usize..r.end as usize].fill(r.seq);
            }
            prop_assert_eq!(map.iter().count(), map.len());
            prop_assert_eq!(seen, plain);
        }
    }
}
