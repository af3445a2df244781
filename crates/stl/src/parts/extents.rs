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

/// An extent but for its LBA; short, because trees are read from memory. Packets have fewer than 2^32 blocks.
#[derive(Clone, Copy, Debug)]
struct ExtentPlace {
    packet: u32,
    at: u32,
    blocks: u32,
}

/// Extents by LBA; they never overlap.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    map: BTreeMap<u64, ExtentPlace>,
    /// Those that are being taken out; empty between changes.
    found: Vec<Extent>,
}

fn extent((&lba, c): (&u64, &ExtentPlace)) -> Extent {
    Extent { lba, blocks: c.blocks.into(), packet: c.packet, at: c.at.into() }
}

fn place(e: &Extent) -> ExtentPlace {
    ExtentPlace { packet: e.packet, at: e.at as u32, blocks: e.blocks as u32 }
}

impl Extents {
    /// The last extent that begins before `end`, if it reaches beyond `start`.
    #[inline]
    fn last_in(&self, span: &Range<u64>) -> Option<Extent> {
        self.map.range(..span.end).next_back().map(extent).filter(|e| e.end() > span.start)
    }

    /// The parts of extents that lie in `span`, ascending.
    pub fn within(&self, span: Range<u64>) -> impl Iterator<Item = Extent> + '_ {
        // Mostly none or one: then no others are looked for.
        let last = self.last_in(&span);
        let others = last.filter(|e| e.lba > span.start).map(|last| {
            let before = self.map.range(..span.start).next_back().map(extent);
            let between = self.map.range(span.start..last.lba).map(extent);
            before.filter(|e| e.end() > span.start).into_iter().chain(between)
        });
        others.into_iter().flatten().chain(last).map(move |e| e.within(&span))
    }

    /// Takes out whatever lies in `span`; `gone` is told each part, descending.
    pub fn remove(&mut self, span: Range<u64>, mut gone: impl FnMut(Extent)) {
        if span.is_empty() {
            return;
        }
        // Only the last one can reach behind the span, and only the first one in front of it. So the map is looked at once for those
        // that are in, and once for each of them.
        let mut all = std::mem::take(&mut self.found);
        all.extend(self.map.range(..span.end).rev().map(extent).take_while(|e| e.end() > span.start));
        if let Some(last) = all.first().filter(|last| last.end() > span.end) {
            self.put(last.within(&(span.end..last.end())));
        }
        for e in all.drain(..) {
            gone(e.within(&span));
            if e.lba < span.start {
                self.put(Extent { blocks: span.start - e.lba, ..e });
            } else {
                self.map.remove(&e.lba);
            }
        }
        self.found = all;
    }

    fn put(&mut self, e: Extent) {
        self.map.insert(e.lba, place(&e));
    }

    /// Puts in an extent, of whose blocks none may be in.
    pub fn insert(&mut self, e: Extent) {
        debug_assert!(e.blocks > 0 && self.within(e.lba..e.end()).next().is_none());
        self.put(e);
    }

    /// Puts in an extent instead of whatever lies there; `gone` is told each part of that, descending.
    pub fn replace(&mut self, e: Extent, mut gone: impl FnMut(Extent)) {
        // What is written again is mostly written as it was: then one look will do.
        match self.map.range_mut(..e.end()).next_back() {
            Some((&lba, c)) if lba == e.lba && u64::from(c.blocks) == e.blocks => {
                gone(extent((&lba, c)));
                *c = place(&e);
                return;
            }
            Some((&lba, c)) if lba + u64::from(c.blocks) > e.lba => self.remove(e.lba..e.end(), gone),
            _ => {}
        }
        self.insert(e);
    }

    /// Makes one extent of the one that begins at `lba` and the one before it, where that goes on in it.
    pub fn join(&mut self, lba: u64) {
        let Some(&second) = self.map.get(&lba) else { return };
        let Some((&first, before)) = self.map.range_mut(..lba).next_back() else { return };
        let follows = first + u64::from(before.blocks) == lba
            && (before.packet, before.at + before.blocks) == (second.packet, second.at);
        if follows && let Some(both) = before.blocks.checked_add(second.blocks) {
            before.blocks = both;
            self.map.remove(&lba);
        }
    }

    /// All extents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Extent> {
        self.map.iter().map(extent)
    }

    /// Bytes on the heap, estimated.
    pub fn bytes(&self) -> u64 {
        // Nodes of the tree are two thirds full on the average.
        (self.map.len() * (size_of::<ExtentPlace>() + size_of::<u64>()) * 3 / 2) as u64
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

    /// Against a packet and an offset for each block.
    #[test]
    fn agrees_with_a_plain_array() {
        let (mut map, mut plain, mut rng) = (Extents::default(), vec![None; 200], Rng::new(5));
        for packet in 1..3000u32 {
            let lba = rng.below(190);
            let most = if rng.one_in(6) { 190 - lba } else { 9 };
            let blocks = 1 + rng.below(most);
            let span = lba as usize..(lba + blocks) as usize;
            let mut gone: Vec<Extent> = Vec::new();
            let removes = rng.one_in(3);
            if removes {
                map.remove(lba..lba + blocks, |e| gone.push(e));
            } else {
                map.replace(Extent { lba, blocks, packet, at: 7 }, |e| gone.push(e));
            }
            assert!(gone.is_sorted_by(|a, b| a.lba > b.lba));
            let mut before = vec![None; 200];
            for e in gone {
                (0..e.blocks).for_each(|i| before[(e.lba + i) as usize] = Some((e.packet, e.at + i)));
            }
            assert_eq!(before[span.clone()], plain[span.clone()], "what is told is what was there");
            plain[span].iter_mut().zip(7..).for_each(|(b, at)| *b = (!removes).then_some((packet, at)));
            let mut now = vec![None; 200];
            for e in map.iter() {
                (0..e.blocks).for_each(|i| now[(e.lba + i) as usize] = Some((e.packet, e.at + i)));
            }
            assert_eq!(now, plain);
        }
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
