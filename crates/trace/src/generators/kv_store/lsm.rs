//! Log-structured merge trees: SMRDB's, of two levels with tables as long as bands, and LevelDB's.
//!
//! What is put is logged and gathered in memory; a full memory becomes a table of level 0. Tables of a level below are disjoint and in the
//! order of their keys. A compaction merges tables of one level with those of the next that they overlap.

use super::{Access, LONGEST, Queue, Store, send};
use smrlab_units::{HostOp, ZoneAction};
use std::collections::{BTreeMap, BTreeSet};

/// How levels are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Blocks of a table.
    pub(super) table: u64,
    /// Tables of level 0 that begin a compaction.
    trigger: usize,
    /// Blocks of level 1 from which on it is compacted, and how many times as many each level below has; `None`: it is the last one.
    below: Option<(u64, u64)>,
}

impl Shape {
    /// Pitchumani et al. 2015: bands of 64 MiB; four tables of level 0 are assumed.
    pub(super) const SMRDB: Self = Self { table: 1 << 17, trigger: 4, below: None };
    /// LevelDB's defaults: tables of 2 MiB, four of them in level 0, 10 MiB in level 1 and ten times as much in each below.
    pub(super) const LEVELDB: Self = Self { table: 1 << 12, trigger: 4, below: Some((20_480, 10)) };
}

/// Blocks of the log that are written at once: 64 KiB.
const LOGGED: u64 = 128;

/// A table: its keys in order, and where it is.
#[derive(Clone, Debug)]
struct Table {
    keys: Vec<u32>,
    slot: u64,
}

impl Table {
    fn span(&self) -> (u32, u32) {
        (self.keys[0], self.keys[self.keys.len() - 1])
    }
}

/// See the [module](self).
pub(super) struct Lsm {
    shape: Shape,
    /// Blocks of a table's place, and of a record.
    table: u64,
    value: u64,
    resets: bool,
    slots: u64,
    /// Places that are free; whether each was written before.
    free: BTreeMap<u64, bool>,
    memory: BTreeSet<u32>,
    /// The place of the log, how much of it is written, and how much waits.
    log: Option<u64>,
    logged: u64,
    waiting: u64,
    /// Of level 0 the newest table is the last one.
    levels: Vec<Vec<Table>>,
    /// Of each level: the last key of the table that was compacted last.
    turn: Vec<u32>,
}

impl Lsm {
    pub(super) fn new(shape: Shape, table: u64, value: u64, span: u64, resets: bool) -> Self {
        let slots = span / table;
        // Level 1 of LevelDB is five tables where these are shorter than its own.
        let below = shape.below.map(|(_, ratio)| (5 * table, ratio));
        Self {
            shape: Shape { below, ..shape },
            table,
            value,
            resets,
            slots,
            free: (0..slots).map(|slot| (slot, false)).collect(),
            memory: BTreeSet::new(),
            log: None,
            logged: 0,
            waiting: 0,
            levels: vec![Vec::new(), Vec::new()],
            turn: vec![0; 2],
        }
    }

    /// Whether there is always a free place with so many blocks of data: a compaction holds the old tables and the new ones.
    pub(super) fn holds(&self, data: u64) -> bool {
        self.slots >= 2 * data.div_ceil(self.per_table() * self.value) + 2 * self.shape.trigger as u64 + 2
    }

    fn per_table(&self) -> u64 {
        self.table / self.value
    }

    /// A free place, the first one, reset where it was written before.
    fn take(&mut self, out: &mut Queue) -> u64 {
        let (slot, written) = self.free.pop_first().expect("the span was found large enough");
        if written && self.resets {
            let op = HostOp::Zone(ZoneAction::Reset);
            out.push_back(Access { op, lba: slot * self.table, blocks: self.table });
        }
        slot
    }

    fn give_up(&mut self, slot: u64) {
        self.free.insert(slot, true);
    }

    /// Blocks of so many records, whole physical blocks.
    fn blocks(&self, records: usize) -> u64 {
        (records as u64 * self.value).next_multiple_of(8).min(self.table)
    }

    /// Writes a table.
    fn write(&mut self, keys: Vec<u32>, out: &mut Queue) -> Table {
        let slot = self.take(out);
        send(HostOp::Write, slot * self.table, self.blocks(keys.len()), out);
        Table { keys, slot }
    }

    /// What is in memory becomes a table of level 0; the log of it is over.
    fn flush(&mut self, out: &mut Queue) {
        let keys: Vec<u32> = std::mem::take(&mut self.memory).into_iter().collect();
        let table = self.write(keys, out);
        self.levels[0].push(table);
        if let Some(log) = self.log.take() {
            self.give_up(log);
        }
        (self.logged, self.waiting) = (0, 0);
        if self.levels[0].len() >= self.shape.trigger {
            self.compact(0, out);
        }
        for level in 1.. {
            let Some((first, ratio)) = self.shape.below else { return };
            let limit = first * ratio.pow(level as u32 - 1);
            if level >= self.levels.len() {
                return;
            }
            while self.levels[level].len() as u64 * self.table > limit {
                self.compact(level, out);
            }
        }
    }

    /// Merges tables of a level with those of the next one that they overlap: all of level 0, else the next in turn.
    fn compact(&mut self, level: usize, out: &mut Queue) {
        if self.levels.len() == level + 1 {
            self.levels.push(Vec::new());
            self.turn.push(0);
        }
        let upper = if level == 0 {
            std::mem::take(&mut self.levels[0])
        } else {
            let turn = self.turn[level];
            let next = self.levels[level].iter().position(|t| t.span().0 > turn).unwrap_or(0);
            let table = self.levels[level].remove(next);
            self.turn[level] = table.span().1;
            vec![table]
        };
        let first = upper.iter().map(|t| t.span().0).min().unwrap_or(0);
        let last = upper.iter().map(|t| t.span().1).max().unwrap_or(0);
        let below = std::mem::take(&mut self.levels[level + 1]);
        let (lower, mut kept): (Vec<_>, Vec<_>) =
            below.into_iter().partition(|t| t.span().1 >= first && t.span().0 <= last);
        if lower.is_empty() && upper.len() == 1 {
            // It moves down without being copied.
            kept.extend(upper);
        } else {
            let inputs: Vec<Table> = upper.into_iter().chain(lower).collect();
            for table in &inputs {
                send(HostOp::Read, table.slot * self.table, self.blocks(table.keys.len()), out);
            }
            let mut keys: Vec<u32> = inputs.iter().flat_map(|t| t.keys.iter().copied()).collect();
            keys.sort_unstable();
            keys.dedup();
            let written: Vec<Table> =
                keys.chunks(self.per_table() as usize).map(|part| self.write(part.to_vec(), out)).collect();
            kept.extend(written);
            inputs.iter().for_each(|table| self.give_up(table.slot));
        }
        kept.sort_unstable_by_key(|t| t.span().0);
        self.levels[level + 1] = kept;
    }

    /// The table of a level that could hold a key, if it does, and which of its records it is.
    fn in_table(table: &Table, key: u32) -> Option<(u64, u64)> {
        table.keys.binary_search(&key).ok().map(|i| (table.slot, i as u64))
    }

    fn find(&self, key: u32) -> Option<(u64, u64)> {
        let newest = self.levels[0].iter().rev().find_map(|t| Self::in_table(t, key));
        newest.or_else(|| {
            self.levels[1..].iter().find_map(|tables| {
                let i = tables.partition_point(|t| t.span().0 <= key).checked_sub(1)?;
                Self::in_table(&tables[i], key)
            })
        })
    }
}

impl Store for Lsm {
    fn put(&mut self, key: u32, out: &mut Queue) {
        self.waiting += self.value;
        if self.waiting >= LOGGED {
            let log = self.log.unwrap_or_else(|| self.take(out));
            self.log = Some(log);
            let blocks = self.waiting.next_multiple_of(8).min(LONGEST).min(self.table - self.logged);
            out.push_back(Access { op: HostOp::Write, lba: log * self.table + self.logged, blocks });
            self.logged += blocks;
            self.waiting = 0;
        }
        self.memory.insert(key);
        if self.memory.len() as u64 >= self.per_table() || self.logged == self.table {
            self.flush(out);
        }
    }

    fn get(&mut self, key: u32, out: &mut Queue) {
        if self.memory.contains(&key) {
            return;
        }
        if let Some((slot, record)) = self.find(key) {
            let at = record * self.value;
            let first = at / 8 * 8;
            let blocks = (at + self.value).next_multiple_of(8).min(self.table) - first;
            out.push_back(Access { op: HostOp::Read, lba: slot * self.table + first, blocks });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of eight records of two blocks.
    fn lsm(shape: Shape) -> Lsm {
        Lsm::new(shape, 16, 2, 4000, false)
    }

    fn put(lsm: &mut Lsm, keys: impl Iterator<Item = u32>) -> Queue {
        let mut out = Queue::new();
        keys.for_each(|key| lsm.put(key, &mut out));
        out
    }

    #[test]
    fn the_newest_table_answers() {
        let mut lsm = lsm(Shape::SMRDB);
        put(&mut lsm, (0..8).chain(4..12));
        let mut out = Queue::new();
        lsm.get(5, &mut out);
        // Places are taken in order: 0 for keys 0 to 7, 1 for 4 to 11; 5 is the second record there, in the first 4 KiB.
        assert_eq!(out.pop_front(), Some(Access { op: HostOp::Read, lba: 16, blocks: 8 }));
        [3, 99].into_iter().for_each(|key| lsm.get(key, &mut out));
        assert_eq!(
            (out.pop_front().map(|a| a.lba), out.len()),
            (Some(0), 0),
            "nothing is read for what is not there"
        );
    }

    /// The last of six records of two blocks: its table ends with half a physical block.
    #[test]
    fn a_read_ends_with_its_table() {
        let mut lsm = Lsm::new(Shape::SMRDB, 12, 2, 4000, false);
        let written = put(&mut lsm, 0..6);
        assert!(written.iter().all(|a| a.lba + a.blocks <= 12), "no more than the table: {written:?}");
        let mut out = Queue::new();
        lsm.get(5, &mut out);
        assert_eq!(out, [Access { op: HostOp::Read, lba: 8, blocks: 4 }]);
    }

    /// Four tables of the first level, each with all keys: they are read, and one of each key is written.
    #[test]
    fn a_compaction_keeps_each_key_once() {
        let mut lsm = lsm(Shape::SMRDB);
        let out = put(&mut lsm, (0..4).flat_map(|_| 0..8));
        let blocks = |op: HostOp| -> u64 { out.iter().filter(|a| a.op == op).map(|a| a.blocks).sum() };
        assert_eq!((blocks(HostOp::Read), blocks(HostOp::Write)), (4 * 16, 5 * 16));
        assert_eq!((lsm.levels[0].len(), lsm.levels[1].len()), (0, 1));
        assert_eq!(lsm.free.len() as u64, lsm.slots - 1, "the places of old tables are free");
    }

    #[test]
    fn a_level_has_at_most_its_share_and_tables_that_do_not_overlap() {
        let mut lsm = lsm(Shape::LEVELDB);
        let mut most = 0;
        for round in 0..20u32 {
            for i in 0..97 {
                put(&mut lsm, std::iter::once((i * 61 + round * 13) % 800));
                most = most.max(lsm.levels[1].len());
            }
        }
        assert!(lsm.levels.len() > 2 && most == 5, "{} levels, {most} tables in level 1", lsm.levels.len());
        for tables in &lsm.levels[1..] {
            assert!(tables.windows(2).all(|w| w[0].span().1 < w[1].span().0));
        }
        let keys = (0..800).filter(|key| lsm.find(*key).is_some() || lsm.memory.contains(key)).count();
        let put: BTreeSet<u32> =
            (0..20u32).flat_map(|r| (0..97).map(move |i| (i * 61 + r * 13) % 800)).collect();
        assert_eq!(keys, put.len(), "a key was lost");
    }
}
