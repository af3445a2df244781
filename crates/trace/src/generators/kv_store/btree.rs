//! A B-tree whose pages are updated in place, behind a log that goes round in a place of its own.

use super::{Access, Queue, Store};
use smrlab_units::HostOp;
use std::collections::{BTreeMap, VecDeque};

/// Blocks of a page: 4 KiB, or what a record needs.
const PAGE: u64 = 8;
/// Blocks of the log that are written at once: 64 KiB.
const LOGGED: u64 = 128;

/// A page in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Cached {
    dirty: bool,
    /// It was used since it came, or since it was passed over last.
    used: bool,
}

/// See the [module](self).
pub(super) struct BTree {
    /// Records of a page: two thirds of what fits.
    per_page: u64,
    page: u64,
    value: u64,
    /// Blocks of the log, from 0 on; where it is written next, and how much waits.
    log: u64,
    at: u64,
    waiting: u64,
    /// Pages that were written at least once.
    written: Vec<bool>,
    cached: BTreeMap<u64, Cached>,
    /// The cached pages in the order in which one is sought to make room.
    order: VecDeque<u64>,
    most: usize,
}

impl BTree {
    /// `None`: the span is too small.
    pub(super) fn new(records: u64, value: u64, span: u64, cache: f64) -> Option<Self> {
        let page = value.next_multiple_of(PAGE);
        let per_page = (page * 2 / 3 / value).max(1);
        let pages = records.div_ceil(per_page);
        let log = (span / 64).max(LOGGED) / LOGGED * LOGGED;
        let most = ((pages as f64 * cache) as usize).max(1);
        (log + pages * page <= span).then(|| Self {
            per_page,
            page,
            value,
            log,
            at: 0,
            waiting: 0,
            written: vec![false; pages as usize],
            cached: BTreeMap::new(),
            order: VecDeque::new(),
            most,
        })
    }

    fn lba(&self, page: u64) -> u64 {
        self.log + page * self.page
    }

    /// Brings a page into memory.
    fn touch(&mut self, page: u64, out: &mut Queue) {
        if let Some(cached) = self.cached.get_mut(&page) {
            cached.used = true;
            return;
        }
        while self.cached.len() >= self.most {
            self.evict(out);
        }
        if self.written[page as usize] {
            out.push_back(Access { op: HostOp::Read, lba: self.lba(page), blocks: self.page });
        }
        self.cached.insert(page, Cached::default());
        self.order.push_back(page);
    }

    /// The first page that was not used since it was passed over leaves memory.
    fn evict(&mut self, out: &mut Queue) {
        let Some(page) = self.order.pop_front() else { return };
        let Some(cached) = self.cached.get_mut(&page) else { return };
        if std::mem::take(&mut cached.used) {
            self.order.push_back(page);
            return;
        }
        if cached.dirty {
            self.written[page as usize] = true;
            out.push_back(Access { op: HostOp::Write, lba: self.lba(page), blocks: self.page });
        }
        self.cached.remove(&page);
    }
}

impl Store for BTree {
    fn put(&mut self, key: u32, out: &mut Queue) {
        self.waiting += self.value;
        while self.waiting >= LOGGED {
            out.push_back(Access { op: HostOp::Write, lba: self.at, blocks: LOGGED });
            self.at = (self.at + LOGGED) % self.log;
            self.waiting -= LOGGED;
        }
        let page = u64::from(key) / self.per_page;
        self.touch(page, out);
        self.cached.entry(page).or_default().dirty = true;
    }

    fn get(&mut self, key: u32, out: &mut Queue) {
        self.touch(u64::from(key) / self.per_page, out);
    }
}
