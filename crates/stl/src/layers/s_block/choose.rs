//! Which S-block to destage (Cassuto et al. 2010, section V.C): policies see the section and answer with a choice.

use super::blocks::{NONE, SBlocks};
use super::cache::CacheRing;
use super::slots::SlotRing;
use crate::parts::chunked::Chunked;

/// How the S-block to destage is chosen among those that have cached blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The first one from the tail of the S-block ring (the paper's winner on random writes).
    ClosestToTail,
    /// The one with the most cached blocks; of several the one that has had as many for longest.
    MostCached,
    /// The one whose block lies at the tail of the cache ring.
    TailOfCache,
    /// The highest weighted sum of the three closenesses, among the first S-blocks of each.
    Mix(Weights),
}

/// Weights of [`Policy::Mix`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Of being close to the tail of the S-block ring.
    pub tail: f64,
    /// Of the share of its blocks that are cached.
    pub cached: f64,
    /// Of having a block close to the tail of the cache ring.
    pub age: f64,
}

impl Policy {
    /// Whether [`Queue`] has to be kept.
    pub fn counts(self) -> bool {
        matches!(self, Self::MostCached | Self::Mix(_))
    }
}

/// What a policy may look at.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub slots: &'a SlotRing,
    pub blocks: &'a SBlocks,
    pub cache: &'a CacheRing,
    pub queue: Option<&'a Queue>,
    /// Blocks in an S-block.
    pub size: u64,
}

/// How many S-blocks near the tail of their ring [`Policy::Mix`] compares.
const CANDIDATES: usize = 16;

impl View<'_> {
    /// The S-block to destage: one with cached blocks; `None` where there is none.
    pub(super) fn choose(&self, policy: Policy) -> Option<u32> {
        match policy {
            Policy::ClosestToTail => self.slots.cached_from(0).map(|(x, _)| x),
            Policy::MostCached => self.queue?.most(),
            Policy::TailOfCache => self.cache.oldest(),
            Policy::Mix(weights) => self.best(weights),
        }
    }

    fn best(&self, w: Weights) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        let mut consider = |x: u32| {
            let score = self.score(x, w);
            if best.is_none_or(|b| score > b.0) {
                best = Some((score, x));
            }
        };
        let mut from = 0;
        for _ in 0..CANDIDATES {
            let Some((x, ahead)) = self.slots.cached_from(from) else { break };
            consider(x);
            from = ahead + 1;
        }
        self.queue.and_then(Queue::most).into_iter().for_each(&mut consider);
        self.cache.oldest().into_iter().for_each(&mut consider);
        best.map(|b| b.1)
    }

    fn score(&self, x: u32, w: Weights) -> f64 {
        let s = self.blocks.at(x);
        let from_tail = self.slots.ahead(s.slot) as f64 / self.slots.ring.size() as f64;
        w.tail * (1.0 - from_tail)
            + w.cached * f64::from(self.queue.map_or(0, |q| q.count(x))) / self.size as f64
            + w.age * self.cache.age(&s)
    }
}

/// An S-block in a [`Queue`]: its neighbours among those with as many cached blocks.
#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    behind: u32,
    cached: u32,
}

/// S-blocks by their number of cached blocks, first in first out among equals.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// First and last of each number.
    ends: Vec<(u32, u32)>,
    nodes: Chunked<Node>,
    most: usize,
}

impl Queue {
    pub(super) fn new(blocks: usize, size: u64) -> Self {
        Self { ends: vec![(NONE, NONE); size as usize + 1], nodes: Chunked::new(blocks), most: 0 }
    }

    fn node(&mut self, x: u32) -> &mut Node {
        self.nodes.get_mut(x as usize, |_| Node { before: NONE, behind: NONE, cached: 0 })
    }

    /// Cached blocks of an S-block.
    pub(super) fn count(&self, x: u32) -> u32 {
        self.nodes.get(x as usize).map_or(0, |n| n.cached)
    }

    /// S-block `x` has got `more` cached blocks and lost `fewer`.
    pub(super) fn change(&mut self, x: u32, more: u32, fewer: u32) {
        if more != fewer {
            let count = self.count(x) + more - fewer;
            self.take_out(x);
            self.put_in(x, count);
        }
    }

    /// S-block `x` is the latest with its number of cached blocks.
    pub(super) fn renew(&mut self, x: u32) {
        let count = self.count(x);
        self.take_out(x);
        self.put_in(x, count);
    }

    fn take_out(&mut self, x: u32) {
        let Node { before, behind, cached } = *self.node(x);
        if cached == 0 {
            return;
        }
        match before {
            NONE => self.ends[cached as usize].0 = behind,
            b => self.node(b).behind = behind,
        }
        match behind {
            NONE => self.ends[cached as usize].1 = before,
            b => self.node(b).before = before,
        }
    }

    fn put_in(&mut self, x: u32, cached: u32) {
        let last = if cached == 0 { NONE } else { self.ends[cached as usize].1 };
        *self.node(x) = Node { before: last, behind: NONE, cached };
        if cached > 0 {
            match last {
                NONE => self.ends[cached as usize].0 = x,
                l => self.node(l).behind = x,
            }
            self.ends[cached as usize].1 = x;
            self.most = self.most.max(cached as usize);
        }
        while self.most > 0 && self.ends[self.most].0 == NONE {
            self.most -= 1;
        }
    }

    /// The first S-block of the highest number.
    pub(super) fn most(&self) -> Option<u32> {
        Some(self.ends[self.most].0).filter(|&x| self.most > 0 && x != NONE)
    }

    /// All S-blocks in the order in which they came to their numbers.
    pub(super) fn order(&self, out: &mut dyn FnMut(u32)) {
        for &(first, _) in &self.ends[1..] {
            let mut x = first;
            while x != NONE {
                out(x);
                x = self.nodes.get(x as usize).map_or(NONE, |n| n.behind);
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.ends.capacity() * size_of::<(u32, u32)>()) as u64 + self.nodes.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_cached_comes_first_and_the_elder_of_equals() {
        let mut q = Queue::new(4, 10);
        q.change(0, 3, 0);
        q.change(1, 5, 0);
        q.change(2, 5, 0);
        assert_eq!(q.most(), Some(1));
        q.change(1, 0, 5);
        assert_eq!(q.most(), Some(2));
        q.change(2, 0, 3);
        assert_eq!(q.most(), Some(0));
        q.change(0, 0, 3);
        assert_eq!(q.most(), Some(2));
        q.change(2, 0, 2);
        assert_eq!(q.most(), None);
    }
}
