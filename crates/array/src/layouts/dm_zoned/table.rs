//! What is known of the drive's zones: which chunk has which, what is valid in them, which are free.

use super::records::{Change, Chunk};
use crate::layouts::chunks::cut;
use smrlab_blockmap::BlockSet;
use smrlab_units::{Lba, Zone, ZoneCondition};
use std::collections::BTreeSet;
use std::ops::Range;

/// Blocks of what is written at a time: 4 KiB.
pub(super) const UNIT: u64 = 8;
/// Chunks whose mapping a metadata block holds, 8 bytes each.
const MAPPINGS: u64 = 512;
/// Units whose validity a metadata block holds, a bit each.
const BITS: u64 = 1 << 15;

/// `at` rounded down and up to whole units.
pub(super) fn outward(blocks: &Range<u64>) -> Range<u64> {
    blocks.start / UNIT * UNIT..blocks.end.next_multiple_of(UNIT)
}

/// How the drive's zones are used: first the two sets of metadata, then random zones, then sequential ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Blocks in a zone, and in a chunk.
    pub size: u64,
    /// Zones of a set of metadata.
    pub set: u32,
    /// Conventional zones.
    pub conventional: u32,
    /// All zones.
    pub zones: u32,
    /// Sequential zones that the host does not see.
    pub reserved: u32,
}

impl Shape {
    /// Over so many zones, the first `conventional` of which take writes anywhere.
    pub(super) fn new(size: u64, (conventional, zones): (u32, u32), reserved: u32) -> Self {
        let mut shape = Self { size, set: 0, conventional, zones, reserved };
        let units = 1 + u64::from(zones).div_ceil(MAPPINGS) + u64::from(zones) * shape.bitmap();
        shape.set = (units * UNIT).div_ceil(size) as u32;
        shape
    }

    /// Conventional zones behind the metadata.
    pub(super) fn random(&self) -> Range<u32> {
        (2 * self.set).min(self.conventional)..self.conventional
    }

    /// The others.
    pub(super) fn sequential(&self) -> Range<u32> {
        self.conventional..self.zones
    }

    /// Whether a zone is written in order.
    pub(super) fn is_sequential(&self, zone: u32) -> bool {
        zone >= self.conventional
    }

    /// Chunks that the host sees.
    pub(super) fn chunks(&self) -> u64 {
        let data = self.random().len() + self.sequential().len();
        (data as u64).saturating_sub(u64::from(self.reserved))
    }

    /// A block of a zone on the drive.
    pub(super) fn at(&self, zone: u32, offset: u64) -> Lba {
        Lba(u64::from(zone) * self.size + offset)
    }

    /// Blocks of a zone, in the numbers of [`at`](Self::at).
    fn span(&self, zone: u32, blocks: &Range<u64>) -> Range<u64> {
        self.at(zone, blocks.start).0..self.at(zone, blocks.end).0
    }

    /// Metadata blocks of a zone's bitmap.
    fn bitmap(&self) -> u64 {
        (self.size / UNIT).div_ceil(BITS)
    }

    /// The metadata block that says where a chunk is. Block 0 is the superblock.
    fn mapping_of(&self, chunk: u64) -> u64 {
        1 + chunk / MAPPINGS
    }

    /// The metadata blocks that say what is valid in some blocks of a zone.
    fn bitmaps_of(&self, zone: u32, blocks: &Range<u64>) -> Range<u64> {
        let first = 1 + u64::from(self.zones).div_ceil(MAPPINGS) + u64::from(zone) * self.bitmap();
        first + blocks.start / UNIT / BITS..first + blocks.end.div_ceil(UNIT).div_ceil(BITS)
    }
}

/// See the [module](self).
pub(super) struct Table {
    pub shape: Shape,
    chunks: Vec<Chunk>,
    /// The chunk that has a zone.
    owners: Vec<Option<u64>>,
    /// When a zone was written last, or freed, by count of both.
    stamps: Vec<u64>,
    clock: u64,
    pub free_random: BTreeSet<u32>,
    pub free_sequential: BTreeSet<u32>,
    /// Blocks of each zone below its write pointer.
    pointers: Vec<u64>,
    valid: BlockSet,
    /// Metadata blocks that changed since the last commit.
    pub dirty: BTreeSet<u64>,
    /// Zones that were freed since the last fence: durable state may refer to what they hold.
    needed: BTreeSet<u32>,
}

impl Table {
    /// Nothing is mapped.
    pub(super) fn new(shape: Shape) -> Self {
        let zones = shape.zones as usize;
        Self {
            chunks: vec![Chunk::default(); shape.chunks() as usize],
            owners: vec![None; zones],
            stamps: vec![0; zones],
            clock: 0,
            free_random: shape.random().collect(),
            free_sequential: shape.sequential().collect(),
            pointers: vec![0; zones],
            valid: BlockSet::new(),
            dirty: BTreeSet::new(),
            needed: BTreeSet::new(),
            shape,
        }
    }

    /// The zones of a chunk.
    pub(super) fn chunk(&self, chunk: u64) -> Chunk {
        self.chunks[chunk as usize]
    }

    /// The chunk that has a zone.
    pub(super) fn owner(&self, zone: u32) -> Option<u64> {
        self.owners[zone as usize]
    }

    /// When a zone was written last.
    pub(super) fn stamp(&self, zone: u32) -> u64 {
        self.stamps[zone as usize]
    }

    /// Where a zone is to be written next.
    pub(super) fn pointer(&self, zone: u32) -> u64 {
        self.pointers[zone as usize]
    }

    /// A sequential zone is written up to here, or reset.
    pub(super) fn point(&mut self, zone: u32, to: u64) {
        self.pointers[zone as usize] = to;
    }

    /// Takes what the drive reports of its zones: zones that failed are free for nobody.
    pub(super) fn reported(&mut self, zones: &[Zone]) {
        for (i, zone) in (0..self.shape.zones).zip(zones) {
            let written = zone.pointer.map_or(self.shape.size, |at| at.0 - zone.start.0);
            self.point(i, if self.shape.is_sequential(i) { written } else { 0 });
            if matches!(zone.condition, ZoneCondition::ReadOnly | ZoneCondition::Offline) {
                self.free_of(i).remove(&i);
            }
        }
    }

    /// The runs of a chunk's blocks that are valid, each with the zone that holds it, ascending.
    pub(super) fn runs(&self, chunk: u64, blocks: Range<u64>) -> Vec<(u32, Range<u64>)> {
        let base = |zone| self.shape.at(zone, 0).0;
        let of = |zone: u32| {
            let runs = self.valid.runs_in(self.shape.span(zone, &blocks));
            runs.map(move |run| (zone, run.start - base(zone)..run.end - base(zone)))
        };
        let mut all: Vec<_> = self.chunk(chunk).zones().flat_map(of).collect();
        all.sort_by_key(|(_, run)| run.start);
        all
    }

    /// The first run of whole units of a zone in which something is valid, from a unit on.
    pub(super) fn run(&self, zone: u32, from: u64) -> Option<Range<u64>> {
        let base = self.shape.at(zone, 0).0;
        let runs = self.valid.runs_in(base + from..base + self.shape.size);
        let mut runs = runs.map(|run| outward(&(run.start - base..run.end - base)));
        let mut first = runs.next()?;
        while let Some(next) = runs.next().filter(|next| next.start <= first.end) {
            first.end = next.end;
        }
        Some(first)
    }

    /// The first valid block of a zone.
    pub(super) fn first_of(&self, zone: u32) -> Option<u64> {
        let base = self.shape.at(zone, 0).0;
        self.valid.next_set(base).filter(|at| *at < base + self.shape.size).map(|at| at - base)
    }

    /// How many blocks of a zone are valid.
    pub(super) fn valid_in(&self, zone: u32) -> u64 {
        self.valid.count_in(self.shape.span(zone, &(0..self.shape.size)))
    }

    /// How many blocks of a chunk are valid.
    pub(super) fn live(&self, chunk: u64) -> u64 {
        self.chunk(chunk).zones().map(|zone| self.valid_in(zone)).sum()
    }

    /// Takes the random zone that is free for longest.
    pub(super) fn take_random(&mut self) -> Option<u32> {
        let zone = self.free_random.iter().copied().min_by_key(|zone| (self.stamp(*zone), *zone))?;
        self.free_random.remove(&zone);
        Some(zone)
    }

    /// Takes the sequential zone that is free for longest; those that were reserved to begin with come last.
    pub(super) fn take_sequential(&mut self) -> Option<u32> {
        let reserved = self.shape.conventional + self.shape.reserved;
        let key = |zone: &u32| (*zone < reserved, self.stamp(*zone), *zone);
        let zone = self.free_sequential.iter().copied().min_by_key(key)?;
        self.free_sequential.remove(&zone);
        Some(zone)
    }

    /// Whether a zone may not be written before a fence; one settles all.
    pub(super) fn take_needed(&mut self, zone: u32) -> bool {
        let needed = self.needed.contains(&zone);
        if needed {
            self.durable();
        }
        needed
    }

    /// All that was done so far is durable.
    pub(super) fn durable(&mut self) {
        self.needed.clear();
    }

    /// What a chunk's mapping becomes because one of its zones holds nothing valid any more.
    pub(super) fn settled(&self, chunk: u64) -> Option<Change> {
        let Chunk { data, buffer } = self.chunk(chunk);
        let used = |zone: &u32| self.first_of(*zone).is_some();
        let (data_used, buffer_used) = (data.filter(used), buffer.filter(used));
        let to = Chunk { data: data_used.or(buffer_used), buffer: data_used.and(buffer_used) };
        (to != Chunk { data, buffer }).then_some(Change::Mapped { chunk, to })
    }

    /// Makes a change.
    pub(super) fn apply(&mut self, change: &Change) {
        match *change {
            Change::Mapped { chunk, to } => self.map(chunk, to),
            Change::Wrote { chunk, zone, ref blocks } => {
                self.clock += 1;
                self.stamps[zone as usize] = self.clock;
                self.take(chunk, zone, &outward(blocks));
                self.valid.insert(self.shape.span(zone, blocks));
            }
            Change::Took { chunk, zone, ref blocks } => self.take(chunk, zone, blocks),
            Change::Moved { chunk, zone } => {
                let all = 0..self.shape.size;
                self.take(chunk, zone, &all);
                self.map(chunk, Chunk { data: Some(zone), buffer: None });
            }
            Change::Discarded { chunk, ref blocks } => {
                for zone in self.chunk(chunk).zones() {
                    self.valid.remove(self.shape.span(zone, blocks));
                    self.dirty.extend(self.shape.bitmaps_of(zone, blocks));
                }
            }
            Change::Stamped { zone, stamp, clock } => {
                self.stamps[zone as usize] = stamp;
                self.clock = clock;
            }
            Change::Committed => self.dirty.clear(),
            Change::Uncommitted { ref blocks } => self.dirty.extend(blocks.clone()),
            Change::Dead => {}
        }
    }

    /// Blocks of a chunk that are valid are so in `zone` from here on.
    fn take(&mut self, chunk: u64, zone: u32, blocks: &Range<u64>) {
        for (from, run) in self.runs(chunk, blocks.clone()) {
            if from != zone {
                self.valid.remove(self.shape.span(from, &run));
                self.valid.insert(self.shape.span(zone, &run));
                self.dirty.extend(self.shape.bitmaps_of(from, &run));
            }
        }
        self.dirty.extend(self.shape.bitmaps_of(zone, blocks));
    }

    fn map(&mut self, chunk: u64, to: Chunk) {
        let from = std::mem::replace(&mut self.chunks[chunk as usize], to);
        self.dirty.insert(self.shape.mapping_of(chunk));
        for zone in from.zones().filter(|zone| to.zones().all(|z| z != *zone)) {
            self.owners[zone as usize] = None;
            let all = 0..self.shape.size;
            self.valid.remove(self.shape.span(zone, &all));
            self.dirty.extend(self.shape.bitmaps_of(zone, &all));
            self.needed.insert(zone);
            self.clock += 1;
            self.stamps[zone as usize] = self.clock;
            self.free_of(zone).insert(zone);
        }
        for zone in to.zones() {
            self.owners[zone as usize] = Some(chunk);
            self.free_of(zone).remove(&zone);
        }
    }

    /// The free zones of a zone's kind.
    pub(super) fn free_of(&mut self, zone: u32) -> &mut BTreeSet<u32> {
        if self.shape.is_sequential(zone) { &mut self.free_sequential } else { &mut self.free_random }
    }

    /// Metadata blocks that changed since the last commit, in runs.
    pub(super) fn uncommitted(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for &block in &self.dirty {
            match runs.last_mut().filter(|run| run.end == block) {
                Some(run) => run.end += 1,
                None => runs.push(block..block + 1),
            }
        }
        runs
    }

    /// The present state as changes.
    pub(super) fn changes(&self, out: &mut dyn FnMut(Change)) {
        for (chunk, &to) in (0..).zip(&self.chunks).filter(|(_, c)| **c != Chunk::default()) {
            out(Change::Mapped { chunk, to });
            for (zone, blocks) in self.runs(chunk, 0..self.shape.size) {
                out(Change::Wrote { chunk, zone, blocks });
            }
        }
        // Also of zones that were filled by moves alone: what says where blocks are stamps them when it is taken up.
        for zone in (0..self.shape.zones).filter(|z| self.stamp(*z) > 0 || self.owner(*z).is_some()) {
            out(Change::Stamped { zone, stamp: self.stamp(zone), clock: self.clock });
        }
        out(Change::Committed);
        self.uncommitted().into_iter().for_each(|blocks| out(Change::Uncommitted { blocks }));
    }

    /// Which of the host's blocks are valid, ascending.
    pub(super) fn allocated(&self, blocks: Range<u64>, out: &mut dyn FnMut(Range<u64>)) {
        for (chunk, within, _) in cut(&blocks, self.shape.size) {
            let base = chunk * self.shape.size;
            self.runs(chunk, within).into_iter().for_each(|(_, run)| out(base + run.start..base + run.end));
        }
    }

    /// Random and sequential zones in use.
    pub(super) fn used(&self) -> (u64, u64) {
        let used = |zones: Range<u32>| zones.filter(|z| self.owner(*z).is_some()).count() as u64;
        (used(self.shape.random()), used(self.shape.sequential()))
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        let a_zone = size_of::<Option<u64>>() + 2 * size_of::<u64>();
        (self.chunks.capacity() * size_of::<Chunk>() + self.owners.capacity() * a_zone + self.valid.bytes())
            as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{Blocks, ZoneKind};

    /// Of six random zones and twenty sequential ones one each is offline and one read-only: none of the four is ever taken.
    #[test]
    fn a_zone_that_failed_is_taken_by_nobody() {
        let shape = Shape::new(64, (16, 36), 2);
        let (random, sequential) = (shape.random(), shape.sequential());
        assert_eq!((random.len(), sequential.len()), (6, 20));
        let offline = [random.start + 3, sequential.start + 5];
        let read_only = [random.start + 5, sequential.start + 11];
        let zone = |i: u32| {
            let start = shape.at(i, 0);
            let kind = match shape.is_sequential(i) {
                true => ZoneKind::SequentialRequired,
                false => ZoneKind::Conventional,
            };
            let condition = match i {
                _ if offline.contains(&i) => ZoneCondition::Offline,
                _ if read_only.contains(&i) => ZoneCondition::ReadOnly,
                _ => ZoneCondition::Empty,
            };
            let pointer = (condition == ZoneCondition::Empty).then_some(start);
            Zone { start, blocks: Blocks(64), kind, condition, pointer, non_sequential: false }
        };
        let mut table = Table::new(shape);
        table.reported(&(0..36).map(zone).collect::<Vec<_>>());
        let of_random: Vec<u32> = std::iter::from_fn(|| table.take_random()).collect();
        let of_sequential: Vec<u32> = std::iter::from_fn(|| table.take_sequential()).collect();
        assert_eq!((of_random.len(), of_sequential.len()), (4, 18));
        let taken = |zone: &u32| of_random.contains(zone) || of_sequential.contains(zone);
        assert!(!offline.iter().chain(&read_only).any(taken));
    }

    /// Two zones that were freed hold what a loss of power would bring back: the first of them that is written again needs a fence, which does for both.
    #[test]
    fn one_fence_is_for_all_that_is_needed() {
        let shape = Shape::new(64, (10, 30), 2);
        let first = shape.sequential().start + 2;
        let mut table = Table::new(shape);
        for (chunk, zone) in [(0, first), (1, first + 1)] {
            table.apply(&Change::Mapped { chunk, to: Chunk { data: Some(zone), buffer: None } });
            table.apply(&Change::Wrote { chunk, zone, blocks: 0..64 });
            table.apply(&Change::Mapped { chunk, to: Chunk { data: None, buffer: None } });
        }
        assert_eq!([first, first + 1, first].map(|zone| table.take_needed(zone)), [true, false, false]);
    }

    /// What a restart has to know: zones of each chunk and what is valid there, what a commit has to write, and which zones were
    /// written or freed last, by which zones are taken and reclaimed.
    #[test]
    fn a_checkpoint_is_all_of_the_state() {
        let shape = Shape::new(64, (10, 30), 2);
        let (random, first) = (shape.random().start, shape.sequential().start + 2);
        let mut table = Table::new(shape);
        let chunk = |data, buffer| Chunk { data, buffer };
        for change in [
            Change::Mapped { chunk: 0, to: chunk(Some(first), None) },
            Change::Wrote { chunk: 0, zone: first, blocks: 0..40 },
            Change::Mapped { chunk: 3, to: chunk(Some(first + 1), None) },
            Change::Wrote { chunk: 3, zone: first + 1, blocks: 0..64 },
            Change::Mapped { chunk: 3, to: chunk(Some(first + 1), Some(random)) },
            Change::Wrote { chunk: 3, zone: random, blocks: 8..16 },
            Change::Wrote { chunk: 0, zone: first, blocks: 40..48 },
            Change::Discarded { chunk: 0, blocks: 8..24 },
            Change::Committed,
            Change::Moved { chunk: 3, zone: first + 2 },
        ] {
            table.apply(&change);
        }
        assert!(!table.uncommitted().is_empty());
        let mut again = Table::new(shape);
        table.changes(&mut |change| again.apply(&change));
        let state = |t: &Table| {
            let stamps: Vec<u64> = (0..30).map(|zone| t.stamp(zone)).collect();
            let runs: Vec<_> = (0..shape.chunks()).flat_map(|c| t.runs(c, 0..64)).collect();
            let owners: Vec<_> = (0..30).map(|zone| t.owner(zone)).collect();
            (stamps, t.clock, runs, owners, t.uncommitted(), t.free_random.clone(), t.free_sequential.clone())
        };
        assert_eq!(state(&again), state(&table));
        // Nothing is taken before what was freed last.
        assert_eq!(again.take_random(), table.take_random());
    }

    /// Zones whose bitmaps are two metadata blocks each: a commit writes those of which a bit changed, and all of a zone that is let go.
    #[test]
    fn a_commit_writes_the_bitmaps_that_changed() {
        let half = UNIT * BITS;
        let shape = Shape::new(2 * half, (10, 30), 2);
        let (zone, random) = (shape.sequential().start, shape.random().start);
        let mut table = Table::new(shape);
        let mapping = 1;
        let bitmap = |zone: u32, part: u64| 2 + u64::from(zone) * 2 + part;
        let chunk = |data, buffer| Chunk { data, buffer };
        let blocks = |from: u64, to: u64| vec![Range { start: from, end: to + 1 }];
        let all = |zone| vec![mapping..mapping + 1, bitmap(zone, 0)..bitmap(zone, 1) + 1];
        let both =
            [blocks(bitmap(random, 0), bitmap(random, 0)), blocks(bitmap(zone, 0), bitmap(zone, 0))].concat();
        for (change, expected) in [
            (Change::Mapped { chunk: 0, to: chunk(Some(zone), None) }, blocks(mapping, mapping)),
            (Change::Wrote { chunk: 0, zone, blocks: 0..half }, blocks(bitmap(zone, 0), bitmap(zone, 0))),
            (
                Change::Wrote { chunk: 0, zone, blocks: half..half + 8 },
                blocks(bitmap(zone, 1), bitmap(zone, 1)),
            ),
            (
                Change::Wrote { chunk: 0, zone, blocks: half - 8..half + 8 },
                blocks(bitmap(zone, 0), bitmap(zone, 1)),
            ),
            (Change::Discarded { chunk: 0, blocks: 0..8 }, blocks(bitmap(zone, 0), bitmap(zone, 0))),
            (Change::Mapped { chunk: 0, to: chunk(Some(zone), Some(random)) }, blocks(mapping, mapping)),
            // What is valid in the buffer is so in the zone no more.
            (Change::Wrote { chunk: 0, zone: random, blocks: 8..16 }, both.clone()),
            (Change::Took { chunk: 0, zone, blocks: 8..16 }, both),
            (Change::Mapped { chunk: 0, to: chunk(Some(zone), None) }, all(random)),
            (Change::Mapped { chunk: 0, to: Chunk::default() }, all(zone)),
        ] {
            table.apply(&change);
            assert_eq!(table.uncommitted(), expected, "{change:?}");
            table.apply(&Change::Committed);
            assert_eq!(table.uncommitted(), []);
        }
    }
}
