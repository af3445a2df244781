//! SSD caches before an array: reads that need no disk, writes that are acknowledged when the SSD has them.
//!
//! A cache is an array around an array. Host requests take no stripes: what needs the disks is a job that takes those of
//! the array within, and asks it under the ticket of the host's request (or of the job, where it destages). Writes
//! wait, in their order, while there is no room, or while a read of the same blocks is under way; so does what overlaps a
//! write that waits.
//!
//! | a ticket's way | stages, and the file that has them |
//! |---|---|
//! | a host request that waits | `Turn`, in `turns` |
//! | a write to the SSD | `WriteSsd`, in `on_ssd` |
//! | a read of what the SSD has | `Last`, in `on_ssd` |
//! | other reads, discards, writes without a write cache | `Stripes`, `OnDisks`, `ReadDirty`, `Last`, in `on_disks` |
//! | the destage of a group | `ReadPages`, `Destage`, in `destage`; which one and when: `schedule` |
//! | flushes, and work of the array within | `Passed`, in `inner` |
//!
//! The array within plans into a plan of its own, which [`inner`] takes over.

mod destage;
mod destage_policies;
mod entry;
mod inner;
mod on_disks;
mod on_ssd;
mod pages;
mod params;
mod policy;
mod read_policies;
mod refused;
#[cfg(test)]
mod refused_tests;
mod ring;
mod schedule;
mod stow;
#[cfg(test)]
mod tests;
mod turns;

pub(crate) use entry::{asked, before, ssd};
pub(crate) use params::PARAMS;

use crate::job::tasks;
use crate::plan::Outcome;
use crate::tickets::Tickets;
use crate::{
    Array, Change, Health, Locks, MemberId, MemberPlan, Phase, Record, Records, Sink, Stop, Ticket, Work,
};
use destage::Destage;
use on_disks::OnDisks;
use pages::{Page, Pages, Part, meet};
use policy::DestagePolicy;
use read_policies::ReadPolicy;
use refused::Refused;
use smrlab_stl::{Counted, HostRequest};
use smrlab_units::{Blocks, Lba, SimTime, Zone, forward};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

tasks! {
    /// What the cache does by itself, beside the tasks of the array within.
    enum Task from 0x1_0000 {
        /// Destages this group.
        Destage,
        /// Takes the stripes that the host request of this ticket needs on the disks.
        TakeStripes,
    }
}

/// The slot of what comes from the SSD; the array within counts its own from 0.
const SLOT: u32 = u32::MAX;

/// A change of the dirty pages; the array within has changes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirtyChange {
    /// This page is dirty: where it is, and its valid sectors.
    Put { page: u64, slot: u64, valid: pages::Mask },
    /// This page is not dirty any more.
    Gone(u64),
}

/// Tags of records.
const PUT: u32 = 1 << 16;
const GONE: u32 = PUT + 1;
/// As [`PUT`], with words of their own for a page's number and place, where one word has no room for both.
const FAR: u32 = PUT + 2;

impl DirtyChange {
    fn of_page(page: u64, found: &Page) -> Self {
        Self::Put { page, slot: found.slot, valid: found.valid }
    }
}

impl Change for DirtyChange {
    fn put(&self, to: &mut dyn Sink) {
        match *self {
            Self::Put { page, slot, valid } => {
                let [low, high] = [valid as u64, (valid >> 64) as u64];
                match page < 1 << 40 && slot < 1 << 24 {
                    true => to.push(PUT, [page << 24 | slot, low, high]),
                    false => to.push(FAR, [page, slot, low, high]),
                }
            }
            Self::Gone(page) => to.push(GONE, [page]),
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let words: [u64; 4] = std::array::from_fn(|i| record.word(i));
        let valid = |low: usize| u128::from(words[low]) | u128::from(words[low + 1]) << 64;
        match record.tag {
            PUT => Some(Self::Put { page: words[0] >> 24, slot: words[0] & 0xff_ffff, valid: valid(1) }),
            FAR => Some(Self::Put { page: words[0], slot: words[1], valid: valid(2) }),
            GONE => Some(Self::Gone(words[0])),
            _ => None,
        }
    }
}

/// What is set by parameters; sizes in pages but for `page`, in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
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

impl Settings {
    /// The host's blocks of a page.
    fn page_span(&self, page: u64) -> Range<u64> {
        page * self.page..(page + 1) * self.page
    }

    fn group_pages(&self, group: u64) -> Range<u64> {
        group * self.group..(group + 1) * self.group
    }
}

/// What a ticket waits for.
#[derive(Clone, Debug)]
enum Stage {
    /// A host request waits for its turn, or for room; so many blocks of it are done.
    Turn(HostRequest, u64),
    /// Blocks of a write, by their offsets, are written to the SSD.
    WriteSsd(HostRequest, Range<u64>),
    /// A read, write or discard that needs the disks waits for its stripes.
    Stripes(HostRequest),
    /// The array within does it.
    OnDisks(OnDisks),
    /// The array within is done with a read; dirty blocks are still being read from the SSD.
    ReadDirty(OnDisks),
    /// The last phase: a read from the SSD alone, or the read cache takes what a read brought.
    Last,
    /// Pages of a group that is destaged are read from the SSD.
    ReadPages(Destage),
    /// The array within writes them.
    Destage(Destage),
    /// Work of the array within.
    Passed,
}

/// Host requests under way, and their blocks.
#[derive(Clone, Debug, Default)]
struct UnderWay(Vec<(Ticket, Range<u64>)>);

impl UnderWay {
    fn add(&mut self, ticket: Ticket, r: &HostRequest) {
        self.0.push((ticket, r.span()));
    }

    fn remove(&mut self, ticket: Ticket) {
        self.0.retain(|u| u.0 != ticket);
    }

    fn meets(&self, blocks: &Range<u64>) -> bool {
        self.0.iter().any(|(_, under_way)| meet(under_way, blocks))
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
pub(crate) struct Cached {
    inner: Box<dyn Array>,
    settings: Settings,
    dirty: Pages,
    clean: Pages,
    read_policy: Box<dyn ReadPolicy>,
    destage_policy: Box<dyn DestagePolicy>,
    stamp: u64,
    stages: Tickets<Stage>,
    /// Works that the array within ended, of which the cache has more to do.
    ended: VecDeque<Outcome>,
    /// An emptied plan, for use again.
    inner_plan: MemberPlan,
    /// Host requests that wait, in their order.
    waiting: VecDeque<Ticket>,
    /// Reads that need the disks, writes to the SSD, and what else changes the disks, under way.
    reading: UnderWay,
    writing: UnderWay,
    changing: UnderWay,
    /// Groups that are being destaged, or about to be.
    destaging: Vec<u64>,
    /// Groups of which a destage left what a discard is under way for.
    left_for_discards: BTreeSet<u64>,
    /// Pages that the array within refused to take.
    refused: Refused,
    /// Between high and low.
    draining: bool,
    counts: Counts,
}

impl Cached {
    /// Before `inner`.
    fn new(
        inner: Box<dyn Array>,
        settings: Settings,
        read_policy: Box<dyn ReadPolicy>,
        destage_policy: Box<dyn DestagePolicy>,
    ) -> Self {
        // An SSD may be larger than all that it can be asked to hold.
        let most = inner.host_blocks().0.div_ceil(settings.page);
        let places = |first: u64, n: u64| Pages::new(first..first + n.min(most));
        Self {
            inner,
            dirty: places(0, settings.write),
            clean: places(settings.write, settings.read),
            settings,
            read_policy,
            destage_policy,
            stamp: 0,
            stages: Tickets::default(),
            ended: VecDeque::new(),
            inner_plan: MemberPlan::default(),
            waiting: VecDeque::new(),
            reading: UnderWay::default(),
            writing: UnderWay::default(),
            changing: UnderWay::default(),
            destaging: Vec::new(),
            left_for_discards: BTreeSet::new(),
            refused: Refused::default(),
            draining: false,
            counts: Counts::default(),
        }
    }

    /// A range, page by page.
    fn parts(&self, blocks: &Range<u64>) -> impl Iterator<Item = Part> + use<> {
        Part::of(blocks, self.settings.page)
    }

    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}

impl Array for Cached {
    forward! { inner:
        fn host_blocks(&self) -> Blocks;
        fn health(&self, member: MemberId) -> Health;
        fn rebuildable(&self, member: MemberId) -> bool;
        fn unclean(&mut self, stop: Stop, plan: &mut MemberPlan);
        fn is_settled(&self) -> bool;
        fn reported(&mut self, member: MemberId, zones: &[Zone]);
        fn prefetch(&mut self, request: &HostRequest);
        fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime>;
        fn unfinished(&self) -> bool;
        fn group_blocks(&self) -> Option<Blocks>;
        fn journal_blocks(&self) -> Blocks;
    }

    fn durable(&mut self) {
        self.dirty.durable();
        self.inner.durable();
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(_) => Locks::NONE,
            Work::Job(job) => match Task::of(*job) {
                Some(Task::Destage(group)) => self.inner.destage_locks(&self.group_request(group)),
                Some(Task::TakeStripes(of)) => match self.stages.get(Ticket(of as u32)) {
                    Some(Stage::Stripes(r)) => self.inner.locks(&Work::Host(*r)),
                    _ => Locks::NONE,
                },
                None => self.inner.locks(work),
            },
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(r) => self.arrive(ticket, r, plan),
            Work::Job(job) => match Task::of(*job) {
                Some(Task::Destage(group)) => self.start_destage(ticket, group, plan),
                Some(Task::TakeStripes(of)) => self.start_on_disks(Ticket(of as u32), ticket, plan),
                None => self.pass(ticket, work, plan),
            },
        }
        self.go_on(plan);
    }

    fn writes(&mut self, request: &HostRequest, tell: &mut dyn FnMut(MemberId, &HostRequest)) -> bool {
        // Without a write cache they go to the disks.
        let done = self.settings.write == 0 && self.inner.writes(request, tell);
        if done {
            self.parts(&request.span()).for_each(|part| self.forget_clean(part.page, part.mask()));
        }
        done
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        match self.stages.get(ticket) {
            Some(Stage::OnDisks(_) | Stage::Destage(_) | Stage::Passed) => {
                let outcome = self.within(Some(ticket), plan, |inner, own| inner.complete(phase, own));
                self.went_on(ticket, outcome, plan);
            }
            _ => match self.stages.take(ticket) {
                Some(Stage::WriteSsd(r, done)) => self.written(ticket, &r, &done, plan),
                Some(Stage::ReadDirty(read)) => self.disks_did(ticket, &read, plan),
                Some(Stage::ReadPages(destage)) => self.write_pages(ticket, destage, plan),
                _ => plan.end(ticket),
            },
        }
        self.go_on(plan);
    }

    fn failed(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.within(None, plan, |inner, own| inner.failed(member, own));
        self.go_on(plan);
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.within(None, plan, |inner, own| inner.replaced(member, own));
        self.try_again(plan);
        self.go_on(plan);
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        self.within(None, plan, |inner, own| inner.wake(own));
        self.go_on(plan);
    }

    fn recover(&mut self, records: &Records, plan: &mut MemberPlan) {
        let mut within = Records::default();
        for record in records.iter() {
            match DirtyChange::of(record) {
                Some(DirtyChange::Put { page, slot, valid }) => {
                    let stamp = self.stamp();
                    self.dirty.restore(page, Page { slot, valid, stamp });
                }
                Some(DirtyChange::Gone(page)) => self.dirty.remove(page),
                None => within.push(record.tag, record.words.iter().copied()),
            }
        }
        self.dirty.restored();
        let groups: Vec<u64> = self.dirty.range(0..u64::MAX).map(|(p, _)| p / self.settings.group).collect();
        groups.into_iter().for_each(|g| self.destage_policy.touched(g));
        self.inner.recover(&within, plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.dirty.range(0..u64::MAX).for_each(|(page, found)| out.add(&DirtyChange::of_page(page, found)));
        self.inner.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        let mut all = Vec::new();
        self.inner.allocated(lba, blocks, &mut |r| all.push(r));
        for part in self.parts(&lba.span(blocks)) {
            let start = self.settings.page_span(part.page).start;
            pages::runs(self.dirty.valid(part.page) & part.mask(), |r| {
                all.push(start + r.start..start + r.end);
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

    fn map_bytes(&self) -> u64 {
        self.inner.map_bytes() + self.dirty.bytes() + self.clean.bytes()
    }

    fn counters(&self, out: &mut Counted) {
        let c = &self.counts;
        if self.settings.read > 0 {
            out.count("ssd_read_hits", c.read_hits);
            out.count("ssd_read_misses", c.read_misses);
            out.count("ssd_fills", c.fills);
        }
        if self.settings.write > 0 {
            out.count("ssd_write_hits", c.write_hits);
            out.count("ssd_write_waits", c.write_waits);
            out.count("ssd_destages", c.destages);
            out.count("ssd_destaged_pages", c.destaged_pages);
            out.count("ssd_destaged_blocks", c.destaged_blocks);
            out.level("used_ssd_pages", self.dirty.len());
            if self.refused.count > 0 {
                out.count("ssd_refused_pages", self.refused.count);
                out.level("kept_ssd_pages", self.refused.len());
            }
        }
        self.inner.counters(out);
    }
}
