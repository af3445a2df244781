//! What was written when: an ordered map of runs, each with the number of the write that finished it.
//!
//! A sector needs no entry of its own and a write does the same work for every head width: which sectors it destroyed is
//! found out when they are read. Runs lie in [`leaves`](crate::leaves) of a page each, leaves under nodes that say which
//! blocks they begin with: two binary searches in memory that stays in the processor's caches, a third in one leaf.
//! Nodes are always in memory, at most 13 bytes a leaf that is half full at least.

use crate::error::Result;
pub use crate::leaves::WriteRun;
use crate::leaves::{FAN, LEAF, Leaf, Leaves, Node, Room, View, upto};
use std::path::Path;

/// The position of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    node: usize,
    leaf: usize,
    slot: usize,
}

/// What stands where a write is to begin.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// The run that ends there.
    pub before: Option<WriteRun>,
    /// The run that begins there, or the next one after it.
    at: At,
    next: Option<WriteRun>,
}

/// See the [module](self).
pub struct RunMap {
    /// First blocks of the nodes.
    firsts: Vec<u64>,
    // Boxed, so that a node put in between moves pointers and not what lies behind it.
    #[allow(clippy::vec_box)]
    nodes: Vec<Box<Node>>,
    leaves: Leaves,
    runs: usize,
}

impl Default for RunMap {
    fn default() -> Self {
        let (mut leaves, mut node) = (Leaves::default(), Node::new());
        node.insert(0, 0, leaves.take(), 0);
        Self { firsts: vec![0], nodes: vec![node], leaves, runs: 0 }
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

    /// Bytes in memory and in the file.
    pub fn room(&self) -> Room {
        let Room { resident, spilled } = self.leaves.room();
        Room { resident: resident + (self.nodes.len() * size_of::<Node>()) as u64, spilled }
    }

    /// Keeps the map within `budget` bytes of memory, the rest in a file in `dir`. An eighth of it is for the nodes,
    /// which suffices for some 700 runs a KiB of budget.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn spill_into(&mut self, dir: &Path, budget: u64) -> Result<()> {
        self.leaves.spill_into(dir, budget - budget / 8)
    }

    /// Whether there is a file to spill into.
    pub fn spills(&self) -> bool {
        self.leaves.spills()
    }

    /// Takes the space that the next change may need in the file.
    ///
    /// # Errors
    /// When the disk is full. A change made all the same takes more memory than the budget.
    #[inline]
    pub fn reserve(&mut self) -> Result<()> {
        self.leaves.reserve()
    }

    /// Its file grows no more.
    #[cfg(test)]
    pub(crate) fn disk_is_full(&mut self) {
        self.leaves.disk_is_full();
    }

    #[inline]
    fn node_of(&self, block: u64) -> usize {
        upto(&self.firsts, block).saturating_sub(1)
    }

    /// The leaf that has `block` or would get it.
    #[inline]
    fn leaf_of(&self, block: u64) -> (usize, usize) {
        let node = self.node_of(block);
        let n = &self.nodes[node];
        (node, upto(&n.firsts[..n.len], block).saturating_sub(1))
    }

    #[inline]
    fn view(&self, at: At) -> View<'_> {
        self.leaves.view(self.nodes[at.node].places[at.leaf])
    }

    fn len_at(&self, at: At) -> usize {
        usize::from(self.nodes[at.node].lens[at.leaf])
    }

    /// How many runs of a leaf start at or before `block` if its runs are as long as each other.
    #[inline]
    fn guess(&self, at: At, block: u64) -> usize {
        let len = self.len_at(at);
        let (first, behind) = (self.nodes[at.node].firsts[at.leaf], self.first_behind(at));
        match behind {
            Some(behind) if block > first && len > 0 => {
                // Below 2^55, and the leaf that `block` belongs to.
                ((block - first) * len as u64 / (behind - first)).min(len as u64 - 1) as usize + 1
            }
            None if block > first => len,
            _ => 0,
        }
    }

    /// The leaf that `block` belongs to; the slot is the number of its runs that start at or before.
    #[inline]
    fn find(&self, block: u64) -> (At, View<'_>) {
        let (node, leaf) = self.leaf_of(block);
        let at = At { node, leaf, slot: 0 };
        let (guess, place) = (self.guess(at, block), self.nodes[node].places[leaf]);
        self.leaves.prefetch(place, guess.saturating_sub(1));
        let view = self.leaves.view(place);
        let slot = view.upto(self.len_at(at), block, guess);
        (At { slot, ..at }, view)
    }

    /// Says that `block` will be looked for soon.
    #[inline]
    pub fn prefetch(&self, block: u64) {
        let (node, leaf) = self.leaf_of(block);
        let guess = self.guess(At { node, leaf, slot: 0 }, block);
        self.leaves.prefetch(self.nodes[node].places[leaf], guess.saturating_sub(1));
    }

    /// The run that holds `block`, or else the next one after it.
    #[inline]
    fn seek(&self, block: u64) -> At {
        let (at, view) = self.find(block);
        if at.slot > 0 && view.ends[at.slot - 1] > block {
            return At { slot: at.slot - 1, ..at };
        }
        self.settle(at)
    }

    /// Moves a position past its leaf's end to the next leaf; past the last one there is none.
    #[inline]
    fn settle(&self, mut at: At) -> At {
        while at.node < self.nodes.len() && (at.leaf >= self.nodes[at.node].len || at.slot >= self.len_at(at))
        {
            at = if at.leaf + 1 < self.nodes[at.node].len {
                At { node: at.node, leaf: at.leaf + 1, slot: 0 }
            } else {
                At { node: at.node + 1, leaf: 0, slot: 0 }
            };
        }
        at
    }

    #[inline]
    fn get(&self, at: At) -> Option<WriteRun> {
        (at.node < self.nodes.len()).then(|| self.view(at).run(at.slot))
    }

    /// The runs that touch `start..end`, ascending, not clipped.
    #[inline]
    pub fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = WriteRun> + '_ {
        let (mut at, mut view) = self.find(start);
        let mut len = self.len_at(at);
        at.slot -= usize::from(at.slot > 0 && view.ends[at.slot - 1] > start);
        std::iter::from_fn(move || {
            if at.slot >= len {
                at = self.settle(at);
                if at.node >= self.nodes.len() {
                    return None;
                }
                (view, len) = (self.view(at), self.len_at(at));
            }
            at.slot += 1;
            Some(view.run(at.slot - 1)).filter(|r| r.start < end)
        })
    }

    /// All runs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = WriteRun> + '_ {
        self.overlapping(0, u64::MAX)
    }

    /// The run that ends exactly at `block`.
    #[inline]
    pub fn ending_at(&self, block: u64) -> Option<WriteRun> {
        let before = block.checked_sub(1)?;
        self.overlapping(before, block).next().filter(|r| r.end == block)
    }

    /// What stands at `block`, found with one search as a rule; its leaf is in memory then.
    #[inline]
    pub fn spot(&mut self, block: u64) -> Spot {
        if self.spills() {
            self.ready();
            let (node, leaf) = self.leaf_of(block);
            let frame = self.frame(At { node, leaf, slot: 0 });
            self.leaves.frame(frame);
        }
        let (mut at, view) = self.find(block);
        let len = self.len_at(at);
        at.slot -= usize::from(at.slot > 0 && view.starts[at.slot - 1] == block);
        let before = if at.slot > 0 {
            Some(view.run(at.slot - 1)).filter(|r| r.end == block)
        } else {
            self.ending_at(block)
        };
        let next = (at.slot < len).then(|| view.run(at.slot));
        Spot { before, at, next }
    }

    /// Renews the number of the run at `spot` if it is exactly `start..end`; answers whether it was.
    #[inline]
    pub fn renew(&mut self, spot: &Spot, start: u64, end: u64, seq: u64) -> bool {
        let exact = spot.next.is_some_and(|r| r.start == start && r.end == end);
        let frame = self.nodes[spot.at.node].places[spot.at.leaf].frame().filter(|_| exact);
        if let Some(frame) = frame {
            self.leaves.frame(frame).seqs[spot.at.slot] = seq;
        }
        frame.is_some()
    }

    /// Puts leaves out until a change can be made in memory.
    #[inline]
    fn ready(&mut self) {
        while !self.leaves.ready() {
            let Some((first, place)) = self.leaves.put_out() else { return };
            let (node, leaf) = self.leaf_of(first);
            self.nodes[node].places[leaf] = place;
        }
    }

    /// The frame of a leaf, which is read back if need be.
    #[inline]
    fn frame(&mut self, at: At) -> usize {
        let place = self.nodes[at.node].places[at.leaf];
        place.frame().unwrap_or_else(|| {
            let place = self.leaves.load(place);
            self.nodes[at.node].places[at.leaf] = place;
            place.frame().expect("a frame")
        })
    }

    #[inline]
    fn leaf(&mut self, at: At) -> &mut Leaf {
        let frame = self.frame(at);
        self.leaves.frame(frame)
    }

    /// Replaces whatever `start..end` held by one run of `seq`.
    pub fn set(&mut self, start: u64, end: u64, seq: u64) {
        self.clear(start, end);
        self.insert(WriteRun { start, end, seq });
    }

    /// Puts a run behind all others, without a search.
    pub fn push(&mut self, run: WriteRun) {
        let node = self.nodes.len() - 1;
        let at = At { node, leaf: self.nodes[node].len - 1, slot: 0 };
        let len = self.len_at(at);
        let frame = self.nodes[node].places[at.leaf].frame().filter(|_| (1..LEAF).contains(&len));
        let Some(frame) = frame else { return self.insert(run) };
        let leaf = self.leaves.frame(frame);
        debug_assert!(leaf.ends[len - 1] <= run.start);
        (leaf.starts[len], leaf.ends[len], leaf.seqs[len]) = (run.start, run.end, run.seq);
        self.nodes[node].lens[at.leaf] = len as u8 + 1;
        self.runs += 1;
    }

    /// Extends the run that ends at `start` up to `end` and renews its number.
    pub fn extend(&mut self, start: u64, end: u64, seq: u64) {
        self.clear(start, end);
        let at = self.seek(start - 1);
        let leaf = self.leaf(at);
        debug_assert_eq!(leaf.ends[at.slot], start);
        leaf.ends[at.slot] = end;
        leaf.seqs[at.slot] = seq;
    }

    /// Forgets what `start..end` held; runs that reach over an edge are cut there.
    pub fn clear(&mut self, start: u64, end: u64) {
        self.ready();
        let at = self.seek(start);
        let Some(first) = self.get(at).filter(|r| r.start < end) else { return };
        if first.start >= start {
            return self.remove_inside(at, end);
        }
        self.leaf(at).ends[at.slot] = start;
        if first.end > end {
            return self.insert(WriteRun { start: end, ..first });
        }
        self.remove_inside(At { slot: at.slot + 1, ..at }, end);
    }

    /// Removes the runs from `at` on that end by `end`, and cuts off the head of one that reaches over it.
    fn remove_inside(&mut self, mut at: At, end: u64) {
        loop {
            at = self.settle(at);
            if at.node >= self.nodes.len() {
                return;
            }
            if at.slot == 0 && self.first_behind(at).is_some_and(|next| next <= end) {
                // All of it: there is no need to look.
                self.runs -= self.len_at(at);
                self.remove_leaf(at);
                continue;
            }
            let len = self.len_at(at);
            let leaf = self.leaf(at);
            let stop = (at.slot..len).find(|i| leaf.ends[*i] > end).unwrap_or(len);
            if stop < len {
                leaf.starts[stop] = leaf.starts[stop].max(end);
            }
            leaf.remove(len, at.slot, stop);
            let first = leaf.starts[0];
            let left = len - (stop - at.slot);
            self.runs -= stop - at.slot;
            self.nodes[at.node].lens[at.leaf] = left as u8;
            if left == 0 {
                self.remove_leaf(at);
            } else if at.slot == 0 {
                self.set_first(at, first);
            }
            if stop < len {
                return self.merge(at);
            }
            if left > 0 {
                at.slot = left;
            }
        }
    }

    /// First block of the leaf behind that of `at`.
    fn first_behind(&self, at: At) -> Option<u64> {
        let node = &self.nodes[at.node];
        if at.leaf + 1 < node.len {
            Some(node.firsts[at.leaf + 1])
        } else {
            self.firsts.get(at.node + 1).copied()
        }
    }

    /// Notes the first block of a leaf.
    #[inline]
    fn set_first(&mut self, at: At, first: u64) {
        self.nodes[at.node].firsts[at.leaf] = first;
        if at.leaf == 0 {
            self.firsts[at.node] = first;
        }
    }

    /// Takes a leaf out; the last one stays, empty.
    fn remove_leaf(&mut self, at: At) {
        let node = &mut self.nodes[at.node];
        if self.firsts.len() == 1 && node.len == 1 {
            node.lens[0] = 0;
            return;
        }
        self.leaves.free(node.places[at.leaf]);
        node.remove(at.leaf);
        if node.len == 0 {
            self.nodes.remove(at.node);
            self.firsts.remove(at.node);
            return;
        }
        self.firsts[at.node] = node.firsts[0];
        self.merge_nodes(at.node);
    }

    /// Joins a leaf that became small with a neighbour under the same node.
    fn merge(&mut self, at: At) {
        let Some(node) = self.nodes.get(at.node).filter(|n| at.leaf < n.len) else { return };
        let len = |i: usize| usize::from(node.lens[i]);
        let left = if at.leaf + 1 < node.len { at.leaf } else { at.leaf.saturating_sub(1) };
        if len(at.leaf) > LEAF / 4 || left + 1 >= node.len || len(left) + len(left + 1) > LEAF * 3 / 4 {
            return;
        }
        let (n, more) = (len(left), len(left + 1));
        let (left, right) = (At { leaf: left, ..at }, At { leaf: left + 1, ..at });
        let (to, from) = (self.frame(left), self.frame(right));
        self.leaves.copy_runs(from, 0..more, to, n);
        self.nodes[at.node].lens[left.leaf] = (n + more) as u8;
        self.remove_leaf(right);
    }

    /// Joins a node that became small with the one behind it.
    fn merge_nodes(&mut self, node: usize) {
        let Some(right) = self.nodes.get(node + 1) else { return };
        if self.nodes[node].len > FAN / 4 || self.nodes[node].len + right.len > FAN * 3 / 4 {
            return;
        }
        self.firsts.remove(node + 1);
        let mut right = self.nodes.remove(node + 1);
        self.nodes[node].take(&mut right, 0);
    }

    fn insert(&mut self, run: WriteRun) {
        self.ready();
        let (mut node, mut leaf) = self.leaf_of(run.start);
        if usize::from(self.nodes[node].lens[leaf]) == LEAF {
            self.split(node, leaf, run.start);
            (node, leaf) = self.leaf_of(run.start);
        }
        let at = At { node, leaf, slot: 0 };
        let (len, guess) = (self.len_at(at), self.guess(at, run.start));
        let leaf = self.leaf(at);
        let slot = leaf.upto(len, run.start, guess);
        leaf.insert(len, slot, run);
        self.nodes[at.node].lens[at.leaf] = len as u8 + 1;
        if slot == 0 {
            self.set_first(at, run.start);
        }
        self.runs += 1;
    }

    /// Splits a full leaf: in the middle, or at its end where runs arrive in ascending order (so that leaves stay full).
    fn split(&mut self, node: usize, leaf: usize, next: u64) {
        let from = self.frame(At { node, leaf, slot: 0 });
        let old = self.leaves.frame(from);
        let at = if old.starts[LEAF - 1] < next { LEAF - 1 } else { LEAF / 2 };
        let first = old.starts[at];
        let new = self.leaves.take();
        self.leaves.copy_runs(from, at..LEAF, new.frame().expect("a frame"), 0);
        self.nodes[node].lens[leaf] = at as u8;
        let (mut node, mut leaf) = (node, leaf + 1);
        if self.nodes[node].len == FAN {
            // As with leaves.
            let half = if leaf == FAN { FAN - 1 } else { FAN / 2 };
            let mut right = Node::new();
            right.take(&mut self.nodes[node], half);
            self.firsts.insert(node + 1, right.firsts[0]);
            self.nodes.insert(node + 1, right);
            (node, leaf) = if leaf > half { (node + 1, leaf - half) } else { (node, leaf) };
        }
        self.nodes[node].insert(leaf, first, new, LEAF - at);
    }
}

#[cfg(test)]
#[path = "run_map_tests.rs"]
mod tests;
