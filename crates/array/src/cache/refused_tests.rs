//! What becomes of pages that the array within refuses, request by request.

use super::{Cached, GONE, Settings, destage_policies, read_policies};
use crate::plan::Outcome;
use crate::{Array, Health, Job, MemberId, MemberPlan, Phase, Records, Ticket, Work, counted};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes everything at once, but for these blocks while it is picky.
struct Picky {
    refuses: Range<u64>,
    picky: Arc<AtomicBool>,
    rebuilds: Arc<AtomicBool>,
}

impl Array for Picky {
    fn host_blocks(&self) -> Blocks {
        Blocks(40)
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            Work::Host(HostRequest { op: HostOp::Write | HostOp::Discard, lba, blocks, .. })
                if self.picky.load(Ordering::Relaxed)
                    && lba.0 < self.refuses.end
                    && self.refuses.start < lba.0 + blocks.0 =>
            {
                plan.refuse(ticket, Refusal::ZoneReadOnly);
            }
            _ => plan.end(ticket),
        }
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        plan.end(phase.ticket);
    }

    fn replaced(&mut self, _: MemberId, _: &mut MemberPlan) {
        self.picky.store(false, Ordering::Relaxed);
    }

    fn unfinished(&self) -> bool {
        self.rebuilds.load(Ordering::Relaxed)
    }

    fn health(&self, _: MemberId) -> Health {
        Health::Whole
    }
}

/// A cache before it.
struct Rig {
    cached: Cached,
    picky: Arc<AtomicBool>,
    rebuilds: Arc<AtomicBool>,
    tickets: u32,
}

/// What a call led to.
#[derive(Default, PartialEq, Debug)]
struct Seen {
    /// Pages that are clean now.
    gone: Vec<u64>,
    refused: Vec<(u32, Refusal)>,
    jobs: Vec<Job>,
    /// Blocks of the SSD that were asked for.
    ssd: Vec<u64>,
}

impl Seen {
    fn of(plan: &MemberPlan) -> Self {
        let refused = plan.outcomes().iter().filter_map(|outcome| match outcome {
            Outcome::Refused(ticket, why) => Some((ticket.0, *why)),
            _ => None,
        });
        Self {
            gone: plan.records().iter().filter(|r| r.tag == GONE).map(|r| r.word(0)).collect(),
            refused: refused.collect(),
            jobs: plan.jobs().to_vec(),
            ssd: plan.ops().iter().map(|op| op.request.lba.0).collect(),
        }
    }
}

impl Rig {
    /// Four pages of a block, in groups of four; destaged from the third dirty one on, until one is.
    fn new() -> Self {
        let (picky, rebuilds) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let inner = Picky { refuses: 2..12, picky: picky.clone(), rebuilds: rebuilds.clone() };
        let settings = Settings {
            ssd: MemberId(1),
            base: 0,
            page: 1,
            group: 4,
            read: 0,
            write: 4,
            high: 2,
            low: 1,
            rate: false,
            depth: 4,
            batch: 0,
            round: false,
            discards: true,
        };
        let (reads, destages) = (read_policies::named("lru", 0), destage_policies::named("lru", 9));
        let cached = Cached::new(Box::new(inner), settings, reads, destages);
        Self { cached, picky, rebuilds, tickets: 0 }
    }

    /// Begins a work; its ticket.
    fn begin(&mut self, work: Work) -> (u32, Seen) {
        self.tickets += 1;
        let mut plan = MemberPlan::new(true);
        self.cached.start(Ticket(self.tickets), &work, &mut plan);
        (self.tickets, Seen::of(&plan))
    }

    fn complete(&mut self, ticket: u32) -> Seen {
        let mut plan = MemberPlan::new(true);
        let phase = Phase { ticket: Ticket(ticket), lost: false, untaken: None, busy: false };
        self.cached.complete(phase, &mut plan);
        Seen::of(&plan)
    }

    fn ask(&mut self, op: HostOp, lba: u64) -> (u32, Seen) {
        let blocks = Blocks(u64::from(op != HostOp::Flush));
        self.begin(Work::Host(HostRequest::new(op, Lba(lba), blocks)))
    }

    /// Writes a block; the jobs that this leads to.
    fn write(&mut self, lba: u64) -> Vec<Job> {
        let (ticket, begun) = self.ask(HostOp::Write, lba);
        assert_eq!((begun.ssd.len(), &begun.refused[..]), (1, &[][..]), "{lba}");
        self.complete(ticket).jobs
    }

    /// Does a destage: it is read from the SSD, and then the array within is asked.
    fn destage(&mut self, job: Job) -> Seen {
        let (ticket, _) = self.begin(Work::Job(job));
        self.complete(ticket)
    }

    fn counts(&self) -> [u64; 3] {
        let all = counted(&self.cached);
        ["used_ssd_pages", "ssd_refused_pages", "kept_ssd_pages"].map(|name| all.get(name).unwrap_or(0))
    }

    /// Pages 2, 3, 10 and 11 are dirty and refused, and 1 was destaged: nothing has room.
    fn full() -> Self {
        let mut rig = Self::new();
        assert_eq!((rig.write(1), rig.write(2)), (vec![], vec![]));
        let jobs = rig.write(3);
        // The run of blocks 1 to 3 is refused, and tried page by page.
        assert_eq!(rig.destage(jobs[0]), Seen { gone: vec![1], ..Seen::default() });
        assert_eq!(rig.counts(), [2, 2, 2]);
        for (page, kept) in [(10, 3), (11, 4)] {
            let jobs = rig.write(page);
            assert_eq!(jobs.len(), 1, "of its group only what was not refused is tried");
            assert_eq!(rig.destage(jobs[0]), Seen::default());
            assert_eq!(rig.counts(), [kept, kept, kept]);
        }
        rig
    }
}

#[test]
fn what_is_refused_is_read_and_written_on_the_ssd() {
    let mut rig = Rig::full();
    // Page 2 came second. It is there to be read, and has its place.
    assert_eq!(rig.ask(HostOp::Read, 2).1.ssd, [1]);
    assert_eq!(rig.write(2), []);
    // A discard that is refused leaves it; one that is done makes room.
    let (ticket, begun) = rig.ask(HostOp::Discard, 3);
    assert_eq!(rig.begin(Work::Job(begun.jobs[0])).1.refused, [(ticket, Refusal::ZoneReadOnly)]);
    assert_eq!(rig.counts()[0], 4);
    rig.picky.store(false, Ordering::Relaxed);
    let (_, begun) = rig.ask(HostOp::Discard, 3);
    rig.begin(Work::Job(begun.jobs[0]));
    assert_eq!(rig.counts(), [3, 4, 3]);
    assert_eq!(rig.write(30).len(), 1);
}

/// A write without room has one group tried again, each in its turn, and is refused with the reason when that fails.
#[test]
fn a_write_without_room_is_refused_after_one_try() {
    let mut rig = Rig::full();
    for group in [0, 2, 0] {
        let (ticket, begun) = rig.ask(HostOp::Write, 30);
        assert_eq!((&begun.refused[..], &begun.ssd[..]), (&[][..], &[][..]), "it waits");
        assert_eq!(begun.jobs.iter().map(|job| job.of).collect::<Vec<_>>(), [group]);
        // A second one waits for the same try.
        let (second, begun_too) = rig.ask(HostOp::Write, 31);
        assert_eq!(begun_too, Seen::default());
        let over = rig.destage(begun.jobs[0]);
        let refused = [ticket, second].map(|ticket| (ticket, Refusal::ZoneReadOnly)).to_vec();
        assert_eq!(over, Seen { refused, ..Seen::default() });
    }
    assert_eq!(rig.counts(), [4, 10, 4]);
}

/// When the array takes a page of those that are tried, the other groups follow, and the write goes on.
#[test]
fn a_try_that_is_taken_brings_the_others() {
    let mut rig = Rig::full();
    let (_, begun) = rig.ask(HostOp::Write, 30);
    rig.picky.store(false, Ordering::Relaxed);
    let over = rig.destage(begun.jobs[0]);
    assert_eq!((&over.gone[..], over.ssd.len(), over.jobs.len()), (&[2, 3][..], 1, 1));
    assert_eq!(rig.destage(over.jobs[0]).gone, [10, 11]);
    assert_eq!(rig.counts()[0], 1);
}

/// So they do where the host writes those pages anew while they are tried: they stay dirty, and the array has taken what they held.
#[test]
fn a_try_of_pages_that_are_written_anew_brings_the_others() {
    let mut rig = Rig::full();
    let (_, flushed) = rig.ask(HostOp::Flush, 0);
    let (ticket, _) = rig.begin(Work::Job(flushed.jobs[0]));
    rig.picky.store(false, Ordering::Relaxed);
    assert_eq!((rig.write(2), rig.write(3)), (vec![], vec![]));
    let over = rig.complete(ticket);
    assert_eq!((&over.gone[..], over.jobs.iter().map(|job| job.of).collect()), (&[][..], vec![0, 2]));
}

/// A flush has one group tried again; a drive that was replaced, or a rebuild that is over, all of them.
#[test]
fn what_is_refused_is_tried_again_when_something_has_changed() {
    let mut rig = Rig::full();
    let (_, flushed) = rig.ask(HostOp::Flush, 0);
    assert_eq!((flushed.jobs.len(), &flushed.refused[..]), (1, &[][..]));
    assert_eq!(rig.ask(HostOp::Flush, 0).1.jobs, [], "one try at a time");
    assert_eq!(rig.destage(flushed.jobs[0]), Seen::default());
    let mut plan = MemberPlan::new(true);
    rig.cached.replaced(MemberId(0), &mut plan);
    let jobs = plan.jobs().to_vec();
    let gone: Vec<_> = jobs.into_iter().flat_map(|job| rig.destage(job).gone).collect();
    assert_eq!(gone, [2, 3, 10, 11]);
    // Four pages and two of them once more were refused, which is told though none is kept.
    assert_eq!(rig.counts(), [0, 6, 0]);

    let mut rig = Rig::full();
    rig.rebuilds.store(true, Ordering::Relaxed);
    assert_eq!(rig.ask(HostOp::Read, 2).1.jobs, []);
    rig.rebuilds.store(false, Ordering::Relaxed);
    assert_eq!(rig.ask(HostOp::Read, 2).1.jobs.len(), 2);
    assert_eq!(rig.ask(HostOp::Read, 2).1.jobs, []);
}

/// What was refused is dirty after a restart as before.
#[test]
fn what_is_refused_survives_a_restart() {
    let rig = Rig::full();
    let mut records = Records::default();
    rig.cached.checkpoint(&mut records);
    let mut again = Rig::new();
    again.cached.recover(&records, &mut MemberPlan::new(true));
    assert_eq!(again.counts(), [4, 0, 0]);
    assert_eq!(again.ask(HostOp::Read, 11).1.ssd, rig.cached.dirty.get(11).map(|p| p.slot).as_slice());
    again.picky.store(false, Ordering::Relaxed);
    let (_, begun) = again.ask(HostOp::Write, 30);
    let gone: Vec<_> = begun.jobs.into_iter().flat_map(|job| again.destage(job).gone).collect();
    assert_eq!(gone, [2, 3, 10, 11]);
}

/// A page of a probe that is refused once more is of no probe: that it is taken later, when it was written again, says nothing of others.
#[test]
fn a_page_that_is_refused_again_is_of_no_probe() {
    let mut refused = super::refused::Refused::default();
    [1, 2].into_iter().for_each(|page| refused.put(page, Refusal::Lost));
    assert_eq!(refused.next_group(8), Some(0));
    assert!(!refused.has(1));
    refused.put(1, Refusal::Lost);
    assert_eq!((refused.taken(1), refused.taken(2)), (false, true));
}
