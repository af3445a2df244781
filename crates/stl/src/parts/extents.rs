//! Which blocks of the host's lie in a log or ring, as extents.

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
    /// The block behind it.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.lba + self.blocks
    }

    /// The part of it within a range that it meets.
    #[inline]
    pub(super) fn within(&self, span: &Range<u64>) -> Self {
        let lba = self.lba.max(span.start);
        Self { lba, blocks: self.end().min(span.end) - lba, at: self.at + (lba - self.lba), ..*self }
    }

    /// Whether another one begins where this one ends, both for the host and in their packet.
    #[inline]
    pub(super) fn goes_on_in(&self, next: &Self) -> bool {
        (self.end(), self.packet, self.at + self.blocks) == (next.lba, next.packet, next.at)
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

/// The first row that ends behind a block.
#[inline]
fn first_behind(rows: &[Row], lba: u64) -> usize {
    // Halving asks for the one number of each row.
    let later = rows.partition_point(|row| row.lba <= lba);
    later - usize::from(later > 0 && rows[later - 1].end() > lba)
}

/// Extents of a leaf at most, and leaves of a group.
const ROWS: usize = 32;
const LEAVES: usize = if cfg!(test) { 4 } else { 256 };

/// Values by ascending keys. Two arrays: a key is found by halving, and may become another one where it is.
#[derive(Clone, Debug, Default)]
struct Sorted<V> {
    keys: Vec<u64>,
    values: Vec<V>,
}

impl<V> Sorted<V> {
    fn one(key: u64, value: V) -> Self {
        Self { keys: vec![key], values: vec![value] }
    }

    /// The last of those whose keys are at most `key`, the first of all where there is none.
    #[inline]
    fn at(&self, key: u64) -> usize {
        self.keys.partition_point(|&k| k <= key).saturating_sub(1)
    }

    fn insert(&mut self, at: usize, key: u64, value: V) {
        self.keys.insert(at, key);
        self.values.insert(at, value);
    }

    fn remove(&mut self, at: usize) {
        self.keys.remove(at);
        self.values.remove(at);
    }

    /// Bytes of its arrays.
    fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<u64>() + self.values.capacity() * size_of::<V>()
    }
}

/// Leaves of extents, each by the LBA of its first one; none is empty.
type Group = Sorted<Vec<Row>>;

/// Extents by LBA; they never overlap.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// Each by the LBA of its first extent; none is empty. So what begins at or before a block is in the last leaf that does, and a
    /// change is made there with no further search.
    groups: Sorted<Group>,
}

impl Extents {
    /// The group and leaf of what begins at or before a block; the first ones where nothing does.
    #[inline]
    fn place(&self, lba: u64) -> (usize, usize) {
        let g = self.groups.at(lba);
        (g, self.groups.values.get(g).map_or(0, |group| group.at(lba)))
    }

    fn leaf(&self, g: usize, l: usize) -> Option<&[Row]> {
        Some(self.groups.values.get(g)?.values.get(l)?)
    }

    fn leaf_mut(&mut self, (g, l): (usize, usize)) -> Option<&mut Vec<Row>> {
        self.groups.values.get_mut(g)?.values.get_mut(l)
    }

    /// The parts of extents that lie in `span`, ascending.
    #[inline]
    pub fn within(&self, span: Range<u64>) -> impl Iterator<Item = Extent> + '_ {
        let (mut g, mut l) = self.place(span.start);
        let leaf = self.leaf(g, l).unwrap_or_default();
        let mut rows = leaf[first_behind(leaf, span.start)..].iter();
        std::iter::from_fn(move || {
            loop {
                if let Some(e) = rows.next() {
                    return (e.lba < span.end).then(|| e.extent().within(&span));
                }
                (g, l) = if self.leaf(g, l + 1).is_some() { (g, l + 1) } else { (g + 1, 0) };
                rows = self.leaf(g, l)?.iter();
            }
        })
    }

    /// Takes out whatever lies in `span`; `gone` is told each part, descending.
    pub fn remove(&mut self, span: Range<u64>, mut gone: impl FnMut(Extent)) {
        if span.is_empty() {
            return;
        }
        loop {
            let place = self.place(span.end - 1);
            let Some(leaf) = self.leaf_mut(place) else { return };
            let to = leaf.partition_point(|e| e.lba < span.end);
            // Few lie in the span: found by halving they would take longer.
            let from = leaf[..to].iter().rposition(|e| e.end() <= span.start).map_or(0, |before| before + 1);
            if from == to {
                return;
            }
            leaf[from..to].iter().rev().for_each(|e| gone(e.extent().within(&span)));
            let (first, last) = (leaf[from].extent(), leaf[to - 1].extent());
            let mut cut = from..to;
            if first.lba < span.start {
                leaf[from] = Row::new(&first.within(&(first.lba..span.start)));
                cut.start += 1;
            }
            let behind = (last.end() > span.end).then(|| Row::new(&last.within(&(span.end..last.end()))));
            match behind {
                Some(behind) if cut.is_empty() => leaf.insert(to, behind),
                Some(behind) => {
                    cut.end -= 1;
                    leaf[cut.end] = behind;
                }
                None => {}
            }
            leaf.drain(cut);
            self.settle(place);
            if from > 0 || first.lba <= span.start {
                return;
            }
        }
    }

    /// Has the keys say what a leaf that was changed begins with. What is empty goes, what is too long becomes two.
    fn settle(&mut self, (g, l): (usize, usize)) {
        let group = &mut self.groups.values[g];
        let leaf = &mut group.values[l];
        if let Some(first) = leaf.first() {
            group.keys[l] = first.lba;
            if leaf.len() > ROWS {
                let upper = leaf.split_off(ROWS / 2);
                group.insert(l + 1, upper[0].lba, upper);
            }
        } else {
            group.remove(l);
        }
        if let Some(&first) = group.keys.first() {
            self.groups.keys[g] = first;
            if group.keys.len() > LEAVES {
                let (keys, values) = (group.keys.split_off(LEAVES / 2), group.values.split_off(LEAVES / 2));
                self.groups.insert(g + 1, keys[0], Sorted { keys, values });
            }
        } else {
            self.groups.remove(g);
        }
    }

    /// Puts in an extent, of whose blocks none may be in.
    pub fn insert(&mut self, e: Extent) {
        debug_assert!(e.blocks > 0 && self.within(e.lba..e.end()).next().is_none());
        let place = self.place(e.lba);
        if let Some(leaf) = self.leaf_mut(place) {
            leaf.insert(leaf.partition_point(|other| other.lba < e.lba), Row::new(&e));
            self.settle(place);
        } else {
            self.groups.insert(0, e.lba, Sorted::one(e.lba, vec![Row::new(&e)]));
        }
    }

    /// Puts in an extent instead of whatever lies there; `gone` is told each part of that, descending.
    pub fn replace(&mut self, e: Extent, mut gone: impl FnMut(Extent)) {
        let place = self.place(e.lba);
        if let Some(leaf) = self.leaf_mut(place) {
            let at = first_behind(leaf, e.lba);
            match leaf.get_mut(at) {
                // What is written again is mostly written as it was.
                Some(old) if old.lba == e.lba && u64::from(old.blocks) == e.blocks => {
                    gone(old.extent());
                    *old = Row::new(&e);
                    return;
                }
                Some(next) if next.lba >= e.end() => {
                    leaf.insert(at, Row::new(&e));
                    return self.settle(place);
                }
                _ => {}
            }
        }
        self.remove(e.lba..e.end(), gone);
        self.insert(e);
    }

    /// Makes one extent of the one that begins at `lba` and the one before it, where that goes on in it.
    pub fn join(&mut self, lba: u64) {
        let place = self.place(lba);
        let Some(leaf) = self.leaf_mut(place) else { return };
        let i = leaf.partition_point(|e| e.lba < lba);
        let Some(&second) = leaf.get(i).filter(|e| e.lba == lba) else { return };
        let before = match i.checked_sub(1) {
            Some(before) => leaf.get_mut(before),
            // In the leaf before, where there is one.
            None => lba.checked_sub(1).and_then(|before| {
                let place = self.place(before);
                self.leaf_mut(place)?.last_mut()
            }),
        };
        let Some(before) = before else { return };
        let follows = before.extent().goes_on_in(&second.extent());
        if follows && let Some(both) = before.blocks.checked_add(second.blocks) {
            before.blocks = both;
            if let Some(leaf) = self.leaf_mut(place) {
                leaf.remove(i);
                self.settle(place);
            }
        }
    }

    fn leaves(&self) -> impl Iterator<Item = &Vec<Row>> {
        self.groups.values.iter().flat_map(|group| &group.values)
    }

    /// All extents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Extent> {
        self.leaves().flatten().map(Row::extent)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        let groups = self.groups.bytes() + self.groups.values.iter().map(Sorted::bytes).sum::<usize>();
        (groups + self.leaves().map(|leaf| leaf.capacity() * size_of::<Row>()).sum::<usize>()) as u64
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
                assert!(map.leaves().count() > 2 && map.iter().eq((0..many).map(single)));
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
            for (first, group) in map.groups.keys.iter().zip(&map.groups.values) {
                assert!(group.keys[0] == *first && group.keys.len() <= LEAVES);
                let mut leaves = group.keys.iter().zip(&group.values);
                assert!(leaves.all(|(&key, leaf)| leaf[0].lba == key && leaf.len() <= ROWS));
            }
            most_leaves = most_leaves.max(map.leaves().count());
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
