//! SSD caches before an array: reads that need no disk, writes that are acknowledged when the SSD has them.
//!
//! A cache is an array around an array. Host requests take no stripes: what needs the disks is a job that takes those of
//! the array within, and asks it under the ticket of the host's request (or of the job, where it destages). Writes
//! wait, in their order, while there is no room, or while a read of the same blocks is under way; so does what overlaps a
//! write that waits.

mod destage;
mod entry;
mod evict;
mod lists;
mod pages;
mod params;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use entry::{before, ssd};
pub use params::PARAMS;

use crate::plan::Outcome;
use crate::tickets::Tickets;
use crate::{Array, Health, Locks, MemberId, MemberPlan, Phase, Stop, Ticket, Work};
use destage::Destage;
use evict::{Dirty, Evict};
use lists::ReadPolicy;
use pages::{Page, Pages};
use smrlab_stl::{HostRequest, Record};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::VecDeque;
use std::ops::Range;

/// Jobs from this number on are the cache's; below, those of the array within.
const OWN: u64 = 1 << 63;
/// Of the cache's jobs: these destage a group; below, a host request needs the disks.
const DESTAGE: u64 = OWN | 1 << 62;
/// The slot of what comes from the SSD; the array within counts its own from 0.
const SLOT: u32 = u32::MAX;

/// [`Record`]: a dirty page: its number and place (40 and 24 bits), valid sectors.
const PUT: u32 = 1 << 16;
/// This page is not dirty any more.
const GONE: u32 = PUT + 1;

/// What is set by parameters; sizes in pages but for `page`, in blocks.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The SSD.
    pub ssd: MemberId,
    /// First block of it that is the caches'.
    pub base: u64,
    /// Blocks of a page.
    pub page: u64,
    /// Pages of a group.
    pub group: u64,
    /// Pages of the read cache.
    pub read: u64,
    /// Pages of the write cache.
    pub write: u64,
    /// Dirty pages at which destaging begins.
    pub high: u64,
    /// Dirty pages at which it ends.
    pub low: u64,
    /// Destages under way grow with the dirty pages.
    pub rate: bool,
    /// Groups destaged at a time.
    pub depth: u64,
    /// Pages destaged of a group at a time; 0: all.
    pub batch: u64,
    /// A write makes all of a page dirty.
    pub round: bool,
    /// What is discarded reads as zeroes.
    pub discards: bool,
}

/// What a ticket is at.
#[derive(Clone, Debug)]
enum Doing {
    /// A host request that waits, of which so many blocks are done.
    Waiting(HostRequest, u64),
    /// The last phase: a read from the SSD alone, or what a read brought being written to the read cache.
    Last,
    /// Blocks of a write, by their offsets, are being written to the SSD.
    Write(HostRequest, Range<u64>),
    /// A read, write or discard that needs the disks and waits for its job.
    Asked(HostRequest),
    /// It is being done by the array within, under the stripes of this job.
    Within(HostRequest, Ticket, Overlay),
    Destage(Destage),
    /// Work of the array within.
    Passed,
}

/// Dirty blocks that are laid over what a read brings: offset in the request and length; and whether the array within is done.
#[derive(Clone, Debug, Default)]
struct Overlay {
    dirty: Vec<(u64, u64)>,
    done: bool,
}

/// Host requests under way.
#[derive(Clone, Debug, Default)]
struct Under(Vec<(Ticket, Range<u64>)>);

impl Under {
    fn add(&mut self, ticket: Ticket, r: &HostRequest) {
        self.0.push((ticket, r.lba.span(r.blocks)));
    }

    fn remove(&mut self, ticket: Ticket) {
        self.0.retain(|u| u.0 != ticket);
    }

    fn meets(&self, blocks: &Range<u64>) -> bool {
        self.0.iter().any(|(_, u)| u.start < blocks.end && blocks.start < u.end)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    read_hits: u64,
    read_misses: u64,
    write_hits: u64,
    write_waits: u64,
    fills: u64,
    destages: u64,
    destaged_pages: u64,
    destaged_blocks: u64,
}

/// See the [module](self).
pub struct Cached {
    inner: Box<dyn Array>,
    settings: Settings,
    dirty: Pages,
    clean: Pages,
    reads: Box<dyn ReadPolicy>,
    evict: Box<dyn Evict>,
    stamp: u64,
    doing: Tickets<Doing>,
    /// Host requests that wait, in their order.
    waiting: VecDeque<Ticket>,
    /// Reads that need the disks, writes to the SSD, and what else changes the disks, under way.
    reading: Under,
    writing: Under,
    changing: Under,
    /// Groups that are being destaged, or about to be.
    destaging: Vec<u64>,
    /// Between high and low.
    draining: bool,
    counts: Counts,
}

impl Cached {
    /// Before `inner`.
    fn new(
        inner: Box<dyn Array>,
        settings: Settings,
        reads: Box<dyn ReadPolicy>,
        evict: Box<dyn Evict>,
    ) -> Self {
        Self {
            inner,
            dirty: Pages::new(settings.write),
            clean: Pages::new(settings.read),
            settings,
            reads,
            evict,
            stamp: 0,
            doing: Tickets::default(),
            waiting: VecDeque::new(),
            reading: Under::default(),
            writing: Under::default(),
            changing: Under::default(),
            destaging: Vec::new(),
            draining: false,
            counts: Counts::default(),
        }
    }

    /// The pages of a range: number, blocks within it, offset in the range.
    fn pages(&self, blocks: &Range<u64>) -> impl Iterator<Item = (u64, Range<u64>, u64)> + use<> {
        let (size, blocks) = (self.settings.page, blocks.clone());
        (blocks.start / size..blocks.end.div_ceil(size)).map(move |p| {
            let (start, end) = (blocks.start.max(p * size), blocks.end.min((p + 1) * size));
            (p, start - p * size..end - p * size, start - blocks.start)
        })
    }

    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Where a block of a place of the write cache is on the SSD; that of the read cache comes behind.
    fn on_ssd(&self, of_reads: bool, slot: u64, within: u64) -> Lba {
        let slot = slot + if of_reads { self.settings.write } else { 0 };
        Lba(self.settings.base + slot * self.settings.page + within)
    }

    fn record_put(&self, page: u64, found: &Page) -> Record {
        Record { tag: PUT, words: [page << 24 | found.slot, found.valid as u64, (found.valid >> 64) as u64] }
    }
}

impl Array for Cached {
    fn host_blocks(&self) -> Blocks {
        self.inner.host_blocks()
    }

    fn health(&self, member: MemberId) -> Health {
        self.inner.health(member)
    }

    fn unclean(&mut self, stop: Stop, plan: &mut MemberPlan) {
        self.inner.unclean(stop, plan);
    }

    fn durable(&mut self) {
        self.dirty.durable();
        self.inner.durable();
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(_) => Locks::NONE,
            Work::Job(job) if *job >= DESTAGE => {
                self.inner.locks(&Work::Host(self.group_request(job - DESTAGE)))
            }
            Work::Job(job) if *job >= OWN => match self.doing.get(Ticket((job - OWN) as u32)) {
                Some(Doing::Asked(r)) => self.inner.locks(&Work::Host(*r)),
                _ => Locks::NONE,
            },
            Work::Job(_) => self.inner.locks(work),
        }
    }

    fn prefetch(&mut self, request: &HostRequest) {
        self.inner.prefetch(request);
    }

    fn start(&mut self, now: SimTime, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(r) => self.arrive(now, ticket, r, plan),
            Work::Job(job) if *job >= DESTAGE => self.start_destage(now, ticket, job - DESTAGE, plan),
            Work::Job(job) if *job >= OWN => self.granted(now, Ticket((job - OWN) as u32), ticket, plan),
            Work::Job(_) => {
                self.doing.put(ticket, Doing::Passed);
                self.inner.start(now, ticket, work, plan);
            }
        }
    }

    fn complete(&mut self, now: SimTime, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        match self.doing.take(ticket) {
            Some(Doing::Write(r, done)) => self.written(now, ticket, r, &done, plan),
            Some(Doing::Within(r, job, overlay)) => self.within(now, phase, (r, job, overlay), plan),
            Some(Doing::Destage(destage)) => self.destage_phase(now, phase, destage, plan),
            Some(Doing::Passed) => {
                self.doing.put(ticket, Doing::Passed);
                self.inner.complete(now, phase, plan);
            }
            _ => plan.end(ticket),
        }
        self.redirect(plan);
    }

    fn failed(&mut self, now: SimTime, member: MemberId, plan: &mut MemberPlan) {
        self.inner.failed(now, member, plan);
    }

    fn replaced(&mut self, now: SimTime, member: MemberId, plan: &mut MemberPlan) {
        self.inner.replaced(now, member, plan);
    }

    fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime> {
        self.inner.wake_at(idle)
    }

    fn wake(&mut self, now: SimTime, plan: &mut MemberPlan) {
        self.inner.wake(now, plan);
    }

    fn unfinished(&self) -> bool {
        self.inner.unfinished()
    }

    fn recover(&mut self, records: &mut dyn Iterator<Item = Record>, plan: &mut MemberPlan) {
        let mut within = Vec::new();
        for record in records {
            let [word, low, high] = record.words;
            match record.tag {
                PUT => {
                    self.stamp += 1;
                    let valid = u128::from(low) | u128::from(high) << 64;
                    let page = Page { slot: word & 0xff_ffff, valid, stamp: self.stamp };
                    self.dirty.restore(word >> 24, page);
                }
                GONE => self.dirty.remove(word),
                _ => within.push(record),
            }
        }
        self.dirty.restored();
        let groups: Vec<u64> = self.dirty.range(0..u64::MAX).map(|(p, _)| p / self.settings.group).collect();
        groups.into_iter().for_each(|g| self.evict.touched(g));
        self.inner.recover(&mut within.into_iter(), plan);
    }

    fn checkpoint(&self, out: &mut dyn FnMut(Record)) {
        self.dirty.range(0..u64::MAX).for_each(|(page, found)| out(self.record_put(page, found)));
        self.inner.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        let mut all = Vec::new();
        self.inner.allocated(lba, blocks, &mut |r| all.push(r));
        for (page, within, _) in self.pages(&lba.span(blocks)) {
            let base = page * self.settings.page;
            pages::runs(self.dirty.valid(page) & pages::mask(&within), |r| {
                all.push(base + r.start..base + r.end)
            });
        }
        all.sort_unstable_by_key(|r| r.start);
        let mut open: Option<Range<u64>> = None;
        for r in all {
            match &mut open {
                Some(o) if r.start <= o.end => o.end = o.end.max(r.end),
                _ => _ = open.replace(r).map(&mut *out),
            }
        }
        open.into_iter().for_each(out);
    }

    fn group_blocks(&self) -> Option<Blocks> {
        self.inner.group_blocks()
    }

    fn journal_blocks(&self) -> Blocks {
        self.inner.journal_blocks()
    }

    fn map_bytes(&self) -> u64 {
        self.inner.map_bytes() + self.dirty.bytes() + self.clean.bytes()
    }

    fn counters(&self, out: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        if self.settings.read > 0 {
            out("ssd_read_hits", c.read_hits);
            out("ssd_read_misses", c.read_misses);
            out("ssd_fills", c.fills);
        }
        if self.settings.write > 0 {
            out("ssd_write_hits", c.write_hits);
            out("ssd_write_waits", c.write_waits);
            out("ssd_destages", c.destages);
            out("ssd_destaged_pages", c.destaged_pages);
            out("ssd_destaged_blocks", c.destaged_blocks);
            out("used_ssd_pages", self.dirty.len());
        }
        self.inner.counters(out);
    }
}
