//! Which groups' tables the SSD holds, where it has no room for all: the others are in the zone alone, and whoever needs one
//! reads it first.

use super::Dvs;
use crate::{End, MemberPlan, Ticket};
use lru::LruCache;
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, SimTime};
use std::collections::BTreeSet;

/// The tables used last.
#[derive(Debug)]
pub struct CachedTables {
    /// Room for so many tables; `None`: for all.
    room: Option<usize>,
    list: LruCache<u64, ()>,
    /// Tables read from the zone.
    pub read: u64,
    /// Requests that read them.
    pub reads: u64,
}

impl CachedTables {
    /// With room for so many tables, or for all.
    pub fn new(room: Option<u64>) -> Self {
        Self { room: room.map(|n| n as usize), list: LruCache::unbounded(), read: 0, reads: 0 }
    }

    /// Whether it may lack some.
    pub fn bounded(&self) -> bool {
        self.room.is_some()
    }

    /// The SSD has this table now; answers whether it had it before.
    pub fn put(&mut self, group: u64) -> bool {
        self.bounded() && self.list.put(group, ()).is_some()
    }

    /// Forgets what there is no room for, `changed` ones never: `false` where one of them is in the way.
    fn shrink(&mut self, changed: impl Fn(u64) -> bool) -> bool {
        while self.room.is_some_and(|room| self.list.len() > room) {
            match self.list.peek_lru() {
                Some((group, ())) if changed(*group) => return false,
                _ => _ = self.list.pop_lru(),
            }
        }
        true
    }
}

impl Dvs {
    /// Reads those tables of `groups` that are in the zone alone; `false`: there are none, and the operation may begin. Before the
    /// run, at time 0, nothing is read.
    pub(super) fn read_tables(
        &mut self,
        ticket: Ticket,
        groups: &BTreeSet<u64>,
        plan: &mut MemberPlan,
    ) -> bool {
        let Some(zone) = self.shape.zone else { return false };
        let absent = |g: &u64| !self.cached_tables.put(*g) && self.groups.get(*g).is_some();
        let wanted: Vec<u64> = groups.iter().copied().filter(absent).collect();
        let changed = &self.dirty_tables.groups;
        if !self.cached_tables.shrink(|g| changed.contains(&g)) {
            // It is written before it goes.
            self.dirty_tables.due = Some(plan.now());
        }
        if plan.now() == SimTime::ZERO {
            return false;
        }
        let runs = self.in_zone(zone, &mut wanted.into_iter());
        for run in &runs {
            let blocks = Blocks(run.tables * zone.table);
            let read = HostRequest::new(HostOp::Read, run.lba, blocks).because(Cause::Metadata);
            plan.ask(ticket, run.member, read, |p| p.push(blocks, End::Zero));
            self.cached_tables.read += run.tables;
            self.cached_tables.reads += 1;
        }
        !runs.is_empty()
    }
}
