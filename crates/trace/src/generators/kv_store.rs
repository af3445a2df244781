//! What a key-value store asks of a drive: the same puts and gets through SMRDB, LevelDB or a B-tree.
//!
//! Keys are drawn by a generator of their own, so that all stores get the same operations. A store answers each with the requests that it
//! sends, in order: perhaps none, perhaps those of a whole compaction.

mod btree;
mod lsm;

use super::zipf::Zipf;
use super::{Common, Drawn, Generator, Made, Pattern};
use btree::BTree;
use lsm::{Lsm, Shape};
use smrlab_units::rng::{Rng, coprime};
use smrlab_units::spec::{Kind, Param, Values};
use smrlab_units::{Blocks, HostOp};
use std::collections::VecDeque;

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "kv-store",
    summary: "puts and gets of a key-value store on SMRDB (bands as tables, two levels), LevelDB, or a B-tree",
    reference: "Pitchumani, Hughes & Miller 2015, SMRDB: Key-Value Data Store for Shingled Magnetic Recording Disks: an LSM tree of two levels whose \
                tables are as long as bands, against LevelDB. How many tables of the first level begin a compaction, what a compaction reads at \
                once, and all of the B-tree are assumed. A table knows its keys (a filter), so that a get reads one block; tables are merged \
                whole; the log is written 64KiB at a time.",
    params: &[
        Param::new("store", Kind::Choice(&["smrdb", "leveldb", "btree"]), "smrdb").doc(
            "smrdb: two levels, tables as long as bands; leveldb: levels of which each is ten times the \
             one before, tables of 2MiB; btree: pages of 4KiB, updated in place",
        ),
        Param::new("records", Kind::Count(100, 1 << 31), "")
            .doc("keys; default: as many as fill a quarter of the span"),
        Param::new("value", Kind::Size, "1KiB").doc("a record, its key included"),
        Param::new("operations", Kind::Count(0, u64::MAX), "").doc(
            "puts and gets behind the load; the trace ends with them; default: as many as there are \
             records",
        ),
        Param::new("load", Kind::Switch, "on").doc("on: each record is put once before, in a random order"),
        Param::new("theta", Kind::Real(0.0, 10.0), "0.99").doc("skew of the keys (see zipf); 0: all alike"),
        Param::new("table", Kind::Size, "").doc(
            "smrdb, leveldb: length of a table and of what is gathered in memory for it; default: 64MiB \
             and 2MiB, halved while the span has room for fewer than 64",
        ),
        Param::new("reset", Kind::Switch, "off").doc(
            "on: the place of a table is reset before it is written again, as a zone; then table= is \
             the drive's zone size",
        ),
        Param::new("cache", Kind::Share(0.0, 1.0), "10%").doc("btree: share of the pages that are in memory"),
    ],
    // The operations say how many requests there are. Many are of 1 MiB, which takes a small drive 130 ms.
    defaults: &[
        ("requests", "18446744073709551615"),
        ("write", "50%"),
        ("size", "4KiB"),
        ("interarrival", "200ms"),
    ],
    make,
};

/// What is sent to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    op: HostOp,
    lba: u64,
    blocks: u64,
}

/// Requests that wait.
type Queue = VecDeque<Access>;

/// Bytes of a request of a whole table or log, at most: 1 MiB.
const LONGEST: u64 = 2048;

/// Sends the blocks from `at` on, in order, in requests that are not longer than [`LONGEST`].
fn send(op: HostOp, at: u64, blocks: u64, out: &mut Queue) {
    for from in (0..blocks).step_by(LONGEST as usize) {
        out.push_back(Access { op, lba: at + from, blocks: LONGEST.min(blocks - from) });
    }
}

/// A key-value store.
trait Store: Send {
    fn put(&mut self, key: u32, out: &mut Queue);
    fn get(&mut self, key: u32, out: &mut Queue);
}

/// The operations: first each key once, then puts and gets.
struct Operations {
    rng: Rng,
    records: u32,
    step: u64,
    zipf: Option<Zipf>,
    puts: f64,
    loaded: u32,
    left: u64,
}

impl Operations {
    /// The next one: the key, and whether it is put.
    fn next(&mut self) -> Option<(u32, bool)> {
        let scattered = |n: u64| (n * self.step % u64::from(self.records)) as u32;
        if self.loaded < self.records {
            self.loaded += 1;
            return Some((scattered(u64::from(self.loaded - 1)), true));
        }
        self.left = self.left.checked_sub(1)?;
        let put = self.rng.chance(self.puts);
        let rank = match &self.zipf {
            Some(zipf) => zipf.draw(&mut self.rng),
            None => self.rng.below(self.records.into()),
        };
        Some((scattered(rank), put))
    }
}

struct KvStore {
    operations: Operations,
    store: Box<dyn Store>,
    queue: Queue,
}

impl Pattern for KvStore {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        loop {
            if let Some(Access { op, lba, blocks }) = self.queue.pop_front() {
                return Some(common.does(op, lba, blocks));
            }
            match self.operations.next()? {
                (key, true) => self.store.put(key, &mut self.queue),
                (key, false) => self.store.get(key, &mut self.queue),
            }
        }
    }
}

fn make(v: &Values, common: &Common) -> Made {
    let whole = Blocks(common.span);
    let value = v.size("value", whole).0.max(1);
    let records = v.given("records", Values::count).unwrap_or((common.span / 4 / value).clamp(100, 1 << 31));
    let operations = Operations {
        rng: common.rng.clone(),
        records: records as u32,
        step: coprime(records, 0x9e37_79b9_7f4a_7c15),
        zipf: Some(v.real("theta")).filter(|theta| *theta > 0.0).map(|theta| Zipf::new(records, theta)),
        puts: common.write,
        loaded: if v.on("load") { 0 } else { records as u32 },
        left: v.given("operations", Values::count).unwrap_or(records),
    };
    let data = records * value;
    let store: Box<dyn Store> = match v.text("store") {
        Some("btree") => {
            let tree = BTree::new(records, value, common.span, v.share("cache"));
            Box::new(
                tree.ok_or_else(|| {
                    v.bad("records", "fewer, or a larger span: pages take 1.5 times the data")
                })?,
            )
        }
        store => {
            let shape = if store == Some("leveldb") { Shape::LEVELDB } else { Shape::SMRDB };
            let asked = v.given("table", |v, key| v.size(key, whole).0).filter(|b| *b > 0);
            let mut table = asked.unwrap_or(shape.table);
            while asked.is_none() && table > 2 * LSM_LEAST * value && common.span / table < 64 {
                table /= 2;
            }
            if table < LSM_LEAST * value || !table.is_multiple_of(8) {
                return Err(v.bad("table", "room for sixteen records, in multiples of 4KiB"));
            }
            let lsm = Lsm::new(shape, table, value, common.span, v.on("reset"));
            if !lsm.holds(data) {
                return Err(
                    v.bad("records", "fewer, or a larger span: a store needs twice its data and ten tables")
                );
            }
            Box::new(lsm)
        }
    };
    Ok(Box::new(KvStore { operations, store, queue: Queue::new() }))
}

/// Records of a table, at least.
const LSM_LEAST: u64 = 16;
