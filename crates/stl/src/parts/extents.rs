//! Which blocks of the host's lie in a log or ring, as extents.

use std::collections::BTreeMap;
use std::ops::Range;

/// Consecutive blocks of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First LBA.
    pub lba: u64,
    /// Blocks.
    pub blocks: u64,
    /// Number of the packet, modulo 2^32: far fewer are kept.
    pub packet: u32,
    /// Offset of the first block in the packet's data.
    pub at: u64,
}

impl Extent {
    fn end(&self) -> u64 {
        self.lba + self.blocks
    }

    /// The part of it within a range that it meets.
    fn within(&self, span: &Range<u64>) -> Self {
        let lba = self.lba.max(span.start);
        Self { lba, blocks: self.end().min(span.end) - lba, at: self.at + (lba - self.lba), ..*self }
    }
}

/// An extent as it is kept: short, because trees are read from memory. Packets have fewer than 2^32 blocks.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Row {
    lba: u64,
    packet: u32,
    at: u32,
    blocks: u32,
}

impl Row {
    fn new(e: &Extent) -> Self {
        Self { lba: e.lba, packet: e.packet, at: e.at as u32, blocks: e.blocks as u32 }
    }

    fn extent(&self) -> Extent {
        Extent { lba: self.lba, blocks: self.blocks.into(), packet: self.packet, at: self.at.into() }
    }

    fn end(&self) -> u64 {
        self.lba + u64::from(self.blocks)
    }
}

/// Extents of a leaf at most.
const ROWS: usize = 32;

/// Extents by LBA; they never overlap.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// Leaves, each by the LBA of the first of its extents, which are ascending; none is empty. So what begins at or before a block
    /// is in the last leaf that does, and a change is made there with no further look at the tree.
    leaves: BTreeMap<u64, Vec<Row>>,
}

impl Extents {
    /// The parts of extents that lie in `span`, ascending.
    #[inline]
    pub fn within(&self, span: Range<u64>) -> impl Iterator<Item = Extent> + '_ {
        let leaf = self.leaves.range(..=span.start).next_back().map_or(&[][..], |(_, leaf)| leaf);
        let from = leaf.partition_point(|e| e.end() <= span.start);
        let goes_on = leaf.last().is_none_or(|e| e.lba < span.end) && span.start + 1 < span.end;
        let others = goes_on.then(|| self.leaves.range(span.start + 1..span.end));
        let others = others.into_iter().flatten().flat_map(|(_, leaf)| leaf);
        let rows = leaf[from..].iter().chain(others).take_while(move |e| e.lba < span.end);
        rows.map(move |e| e.extent().within(&span))
    }

    /// Takes out whatever lies in `span`; `gone` is told each part, descending.
    pub fn remove(&mut self, span: Range<u64>, mut gone: impl FnMut(Extent)) {
        if span.is_empty() {
            return;
        }
        while let Some((&key, leaf)) = self.leaves.range_mut(..span.end).next_back() {
            let to = leaf.partition_point(|e| e.lba < span.end);
            let from = leaf[..to].partition_point(|e| e.end() <= span.start);
            if from == to {
                return;
            }
            leaf[from..to].iter().rev().for_each(|e| gone(e.extent().within(&span)));
            let (first, last) = (leaf[from].extent(), leaf[to - 1].extent());
            let front = (first.lba < span.start).then(|| Row::new(&first.within(&(first.lba..span.start))));
            let behind = (last.end() > span.end).then(|| Row::new(&last.within(&(span.end..last.end()))));
            leaf.splice(from..to, front.into_iter().chain(behind));
            if leaf.len() > ROWS || leaf.first().is_none_or(|e| e.lba != key) {
                self.settle(key);
            }
            if key <= span.start {
                return;
            }
        }
    }

    /// Puts a leaf that was changed where it belongs.
    fn settle(&mut self, key: u64) {
        let Some(mut leaf) = self.leaves.remove(&key) else { return };
        if leaf.len() > ROWS {
            let upper = leaf.split_off(ROWS / 2);
            self.leaves.insert(upper[0].lba, upper);
        }
        if let Some(first) = leaf.first() {
            self.leaves.insert(first.lba, leaf);
        }
    }

    /// Puts in an extent, of whose blocks none may be in.
    pub fn insert(&mut self, e: Extent) {
        debug_assert!(e.blocks > 0 && self.within(e.lba..e.end()).next().is_none());
        let Some((&key, leaf)) = self.leaves.range_mut(..e.lba).next_back() else {
            // It begins before all others, which the first leaf does from now on.
            let mut first = self.leaves.pop_first().map_or_else(Vec::new, |(_, leaf)| leaf);
            first.insert(0, Row::new(&e));
            self.leaves.insert(e.lba, first);
            return self.settle(e.lba);
        };
        leaf.insert(leaf.partition_point(|other| other.lba < e.lba), Row::new(&e));
        if leaf.len() > ROWS {
            self.settle(key);
        }
    }

    /// Puts in an extent instead of whatever lies there; `gone` is told each part of that, descending.
    pub fn replace(&mut self, e: Extent, mut gone: impl FnMut(Extent)) {
        if let Some((&key, leaf)) = self.leaves.range_mut(..=e.lba).next_back() {
            let at = leaf.partition_point(|old| old.end() <= e.lba);
            match leaf.get_mut(at) {
                // What is written again is mostly written as it was.
                Some(old) if old.lba == e.lba && u64::from(old.blocks) == e.blocks => {
                    gone(old.extent());
                    *old = Row::new(&e);
                    return;
                }
                Some(next) if next.lba >= e.end() => {
                    leaf.insert(at, Row::new(&e));
                    if leaf.len() > ROWS {
                        self.settle(key);
                    }
                    return;
                }
                _ => {}
            }
        }
        self.remove(e.lba..e.end(), gone);
        self.insert(e);
    }

    /// Makes one extent of the one that begins at `lba` and the one before it, where that goes on in it.
    pub fn join(&mut self, lba: u64) {
        let mut leaves = self.leaves.range_mut(..=lba);
        let Some((&key, leaf)) = leaves.next_back() else { return };
        let i = leaf.partition_point(|e| e.lba < lba);
        let Some(&second) = leaf.get(i).filter(|e| e.lba == lba) else { return };
        let before = if i > 0 {
            leaf.get_mut(i - 1)
        } else {
            leaves.next_back().and_then(|(_, leaf)| leaf.last_mut())
        };
        let Some(before) = before else { return };
        let follows =
            before.end() == lba && (before.packet, before.at + before.blocks) == (second.packet, second.at);
        if follows && let Some(both) = before.blocks.checked_add(second.blocks) {
            before.blocks = both;
            leaf.remove(i);
            if i == 0 {
                self.settle(key);
            }
        }
    }

    /// All extents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Extent> {
        self.leaves.values().flatten().map(Row::extent)
    }

    /// Bytes on the heap, estimated.
    pub fn bytes(&self) -> u64 {
        // Leaves are two thirds full on the average.
        (self.leaves.values().map(Vec::len).sum::<usize>() * size_of::<Row>() * 3 / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    #[test]
    fn what_goes_on_is_one_extent() {
        let mut map = Extents::default();
        let e = |lba, blocks, packet: u32, at| Extent { lba, blocks, packet, at };
        [e(10, 2, 1, 0), e(12, 3, 1, 2), e(15, 1, 1, 6), e(16, 1, 2, 7)]
            .into_iter()
            .for_each(|e| map.insert(e));
        // Joined: the second goes on in the first; not the third, elsewhere in the packet, nor the fourth, of another one.
        [10, 11, 12, 15, 16].into_iter().for_each(|lba| map.join(lba));
        assert_eq!(map.iter().collect::<Vec<_>>(), [e(10, 5, 1, 0), e(15, 1, 1, 6), e(16, 1, 2, 7)]);
    }

    #[test]
    fn what_goes_on_in_another_leaf_is_one_extent_too() {
        let many = 5 * ROWS as u64;
        let single = |i: u64| Extent { lba: 10 + i, blocks: 1, packet: 1, at: i };
        let rising: Vec<_> = (0..many).collect();
        let falling: Vec<_> = rising.iter().rev().copied().collect();
        for order in [&rising, &falling] {
            for joins in [&rising, &falling] {
                let mut map = Extents::default();
                order.iter().for_each(|&i| map.insert(single(i)));
                assert!(map.leaves.len() > 2 && map.iter().eq((0..many).map(single)));
                joins.iter().for_each(|&i| map.join(10 + i));
                assert_eq!(map.iter().collect::<Vec<_>>(), [Extent { blocks: many, ..single(0) }]);
            }
        }
    }

    /// Against a packet and an offset for each block.
    #[test]
    fn agrees_with_a_plain_array() {
        const SPACE: usize = 2000;
        let (mut map, mut plain, mut rng) = (Extents::default(), vec![None; SPACE], Rng::new(5));
        let mut most_leaves = 0;
        for packet in 1..8000u32 {
            let lba = rng.below(SPACE as u64 - 10);
            let most = if rng.one_in(60) { SPACE as u64 - 10 - lba } else { 9 };
            let blocks = 1 + rng.below(most);
            let span = lba as usize..(lba + blocks) as usize;
            let mut seen: Vec<_> = map.within(lba..lba + blocks).collect();
            let mut gone: Vec<Extent> = Vec::new();
            let removes = rng.one_in(3);
            if removes {
                map.remove(lba..lba + blocks, |e| gone.push(e));
            } else {
                map.replace(Extent { lba, blocks, packet, at: 7 }, |e| gone.push(e));
            }
            seen.reverse();
            assert!(gone == seen && gone.is_sorted_by(|a, b| a.lba > b.lba));
            let leaves = map.leaves.iter();
            assert!(leaves.clone().all(|(&key, leaf)| leaf[0].lba == key && leaf.len() <= ROWS));
            most_leaves = most_leaves.max(leaves.len());
            let mut before = vec![None; SPACE];
            for e in gone {
                (0..e.blocks).for_each(|i| before[(e.lba + i) as usize] = Some((e.packet, e.at + i)));
            }
            assert_eq!(before[span.clone()], plain[span.clone()], "what is told is what was there");
            plain[span].iter_mut().zip(7..).for_each(|(b, at)| *b = (!removes).then_some((packet, at)));
            let mut now = vec![None; SPACE];
            for e in map.iter() {
                (0..e.blocks).for_each(|i| now[(e.lba + i) as usize] = Some((e.packet, e.at + i)));
            }
            assert_eq!(now, plain);
        }
        assert!(most_leaves > 9, "{most_leaves}");
    }

    #[test]
    fn parts_are_taken_out_of_the_middle() {
        let mut map = Extents::default();
        let e = |lba, blocks, packet: u32, at| Extent { lba, blocks, packet, at };
        map.insert(e(10, 10, 1, 0));
        map.insert(e(20, 5, 2, 7));
        let mut gone = Vec::new();
        map.remove(13..22, |e| gone.push(e));
        assert_eq!(gone, [e(20, 2, 2, 7), e(13, 7, 1, 3)]);
        map.insert(e(13, 9, 3, 0));
        map.remove(15..16, |_| ());
        assert_eq!(
            map.iter().collect::<Vec<_>>(),
            [e(10, 3, 1, 0), e(13, 2, 3, 0), e(16, 6, 3, 3), e(22, 3, 2, 9)]
        );
        let seen: Vec<_> = map.within(11..17).collect();
        assert_eq!(seen, [e(11, 2, 1, 1), e(13, 2, 3, 0), e(16, 1, 3, 3)]);
        map.remove(12..12, |_| panic!("nothing lies in an empty span"));
        for (new, old) in [(e(22, 3, 4, 5), e(22, 3, 2, 9)), (e(21, 3, 5, 0), e(22, 2, 4, 5))] {
            gone.clear();
            map.replace(new, |e| gone.push(e));
            assert_eq!((gone[0], map.within(new.lba..new.end()).next()), (old, Some(new)));
        }
        assert_eq!(map.iter().last(), Some(e(24, 1, 4, 7)));
    }
}
