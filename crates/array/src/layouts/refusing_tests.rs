//! Members that refuse some of what they are asked for, and are alive, and others that die meanwhile: every work has an end, and nothing is
//! held for ever by one that was refused.

use crate::plan::Outcome;
use crate::{Array, ArrayContext, Health, Locks, MemberId, MemberPlan, Phase, Ticket, Work, counted, parse};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const SIZE: u64 = 480;

/// Works, of which those whose locks meet are done one after the other, as a list of all tells.
struct Works {
    text: String,
    array: Box<dyn Array>,
    tickets: u32,
    waiting: VecDeque<(Ticket, Work, Locks)>,
    started: BTreeMap<Ticket, Locks>,
    /// Phases under way.
    open: BTreeMap<Ticket, Open>,
    /// How host requests ended.
    ended: BTreeMap<Ticket, Option<Refusal>>,
    /// Of so many phases one is refused; 0: none.
    refuses: u64,
    /// Reads are, too.
    reads: bool,
    now: SimTime,
}

/// A phase under way.
#[derive(Default)]
struct Open {
    /// Of whom it reads, and to whom it writes.
    reads: BTreeSet<MemberId>,
    writes: BTreeSet<MemberId>,
    /// One of them died.
    lost: bool,
    untaken: bool,
}

fn meet(a: &Locks, b: &Locks) -> bool {
    !(a.shared && b.shared) && a.stripes.start < b.stripes.end && b.stripes.start < a.stripes.end
}

impl Works {
    fn new(text: &str, refuses: u64) -> Self {
        let chosen = parse(text).unwrap();
        let sizes = vec![Blocks(SIZE); chosen.disks as usize];
        let array = chosen.build(&ArrayContext::new(&sizes)).unwrap().array;
        let (waiting, started, open, ended) = Default::default();
        let (text, now) = (text.to_owned(), SimTime::ZERO);
        Self { text, array, tickets: 0, waiting, started, open, ended, refuses, reads: true, now }
    }

    fn add(&mut self, work: Work) -> Ticket {
        self.tickets += 1;
        let (ticket, locks) = (Ticket(self.tickets), self.array.locks(&work));
        self.waiting.push_back((ticket, work, locks));
        ticket
    }

    /// Starts what meets neither what is under way nor what came before it; `false`: nothing.
    fn start(&mut self) -> bool {
        let first = (0..self.waiting.len()).find(|i| {
            let before = self.waiting.iter().take(*i).map(|w| &w.2);
            !self.started.values().chain(before).any(|other| meet(other, &self.waiting[*i].2))
        });
        let Some((ticket, work, locks)) = first.and_then(|i| self.waiting.remove(i)) else { return false };
        self.started.insert(ticket, locks);
        self.act(|array, plan| array.start(ticket, &work, plan));
        true
    }

    /// Has the array do something.
    fn act(&mut self, what: impl FnOnce(&mut dyn Array, &mut MemberPlan)) {
        self.now += SimTime(1000);
        let mut plan = MemberPlan::at(self.now);
        what(&mut *self.array, &mut plan);
        self.take(&plan);
    }

    /// Has the array do what it wants to at a time; `false`: nothing, for now.
    fn wake(&mut self) -> bool {
        let idle = self.open.is_empty().then_some(self.now);
        let due = self.array.wake_at(idle).is_some_and(|at| at <= self.now);
        if due {
            self.act(|array, plan| array.wake(plan));
        }
        due
    }

    /// A member dies, with what it is asked for.
    fn kill(&mut self, disk: u32) {
        let member = MemberId(disk);
        for open in self.open.values_mut() {
            open.lost |= open.reads.contains(&member);
            open.untaken |= open.writes.contains(&member);
        }
        self.act(|array, plan| array.failed(member, plan));
    }

    fn replace(&mut self, disk: u32) {
        self.act(|array, plan| array.replaced(MemberId(disk), plan));
    }

    /// Whether all members are as good as new.
    fn is_whole(&self, disks: u32) -> bool {
        (0..disks).all(|disk| self.array.health(MemberId(disk)) == Health::Whole)
    }

    /// Ends a phase that is drawn.
    fn complete(&mut self, rng: &mut Rng) {
        let Some(n) = (self.open.len() as u64).checked_sub(1) else { return };
        let ticket = *self.open.keys().nth(rng.below(n + 1) as usize).unwrap();
        let open = self.open.remove(&ticket).unwrap();
        let (reads, writes) = (!open.reads.is_empty(), !open.writes.is_empty());
        let refused = self.refuses > 0 && rng.one_in(self.refuses);
        let why = if rng.one_in(2) { Refusal::ZoneReadOnly } else { Refusal::NoSpace };
        let (lost, untaken) = (refused && reads && self.reads, (refused && writes).then_some(why));
        let (lost, untaken) = (lost || open.lost, untaken.or(open.untaken.then_some(Refusal::Lost)));
        self.act(|array, plan| array.complete(Phase { ticket, lost, untaken, busy: false }, plan));
    }

    fn take(&mut self, plan: &MemberPlan) {
        for outcome in plan.outcomes() {
            let why = match outcome {
                Outcome::Refused(_, why) => Some(*why),
                Outcome::Acknowledged(_) | Outcome::Ended(_) => None,
            };
            self.ended.insert(outcome.ticket(), why);
            if !matches!(outcome, Outcome::Acknowledged(_)) {
                assert!(self.started.remove(&outcome.ticket()).is_some(), "{outcome:?} of what is over");
            }
        }
        for op in plan.ops() {
            assert!(self.started.contains_key(&op.ticket), "{op:?} of what is over");
            let open = self.open.entry(op.ticket).or_default();
            match op.request.op {
                HostOp::Read => _ = open.reads.insert(op.member),
                HostOp::Write => _ = open.writes.insert(op.member),
                _ => {}
            }
        }
        plan.jobs().iter().for_each(|job| _ = self.add(Work::Job(*job)));
    }

    /// All that was begun; requests of the host's wait for nothing else.
    fn settle(&mut self, rng: &mut Rng) {
        let mut phases = 0;
        while self.start() || self.wake() || !self.open.is_empty() {
            self.complete(rng);
            phases += 1;
            assert!(phases < 100_000, "{}: it never ends", self.text);
        }
        let left = self.started.keys().map(|ticket| ticket.0).collect::<Vec<_>>();
        assert!(self.waiting.is_empty() && left.is_empty(), "{}: {left:?} have no end", self.text);
    }

    fn host(&mut self, op: HostOp, lba: u64, blocks: u64) -> Ticket {
        self.add(Work::Host(HostRequest::new(op, Lba(lba), Blocks(blocks))))
    }

    /// Random requests, several at a time; how many were refused.
    fn random(&mut self, requests: u64, rng: &mut Rng) -> usize {
        let (space, before) = (self.array.host_blocks().0, self.refused());
        for _ in 0..requests {
            let op = [HostOp::Write, HostOp::Write, HostOp::Write, HostOp::Read, HostOp::Discard];
            let blocks = (1 + rng.below(12)).min(space);
            self.host(op[rng.below(5) as usize], rng.below(space - blocks + 1), blocks);
            self.go_on(rng);
            (0..rng.below(4)).for_each(|_| self.complete(rng));
        }
        self.settle(rng);
        self.refused() - before
    }

    /// Writes everything.
    fn write_all(&mut self, rng: &mut Rng) {
        let space = self.array.host_blocks().0;
        for lba in (0..space).step_by(5) {
            self.host(HostOp::Write, lba, (space - lba).min(5));
            self.go_on(rng);
        }
        self.settle(rng);
    }

    /// Starts what can be started; of what waits behind that not much is left.
    fn go_on(&mut self, rng: &mut Rng) {
        while self.start() || self.wake() || (self.waiting.len() > 12 && !self.open.is_empty()) {
            if self.waiting.len() > 12 {
                self.complete(rng);
            }
        }
    }

    fn refused(&self) -> usize {
        self.ended.values().flatten().count()
    }

    fn level(&self, name: &str) -> u64 {
        counted(&*self.array).get(name).unwrap_or(0)
    }
}

/// Writes everything three times, of which nothing may be refused, and discards it.
fn fill_and_discard(array: &mut Works, rng: &mut Rng, text: &str) {
    let space = array.array.host_blocks().0;
    for round in 0..3 {
        let before = array.refused();
        array.write_all(rng);
        assert_eq!(array.refused(), before, "{text}: writes of round {round}");
    }
    array.host(HostOp::Discard, 0, space);
    array.settle(rng);
}

/// As before it was refused anything: what is written over and over fits, and what is discarded leaves the array as empty as one of which
/// nothing was refused.
#[test]
fn who_was_refused_holds_nothing_for_ever() {
    for text in [
        "spanning,disks=2",
        "striped,disks=4,chunk=4blk",
        "mirror,disks=4,copies=2,chunk=4blk",
        "raid5,disks=4,chunk=4blk",
        "raid5,disks=4,chunk=4blk,write=modify,intent=on",
        "raid5,disks=4,chunk=4blk,write=modify,parity=log,log=9blk,log_region=12blk",
        "raid4s,disks=4,chunk=4blk",
        "raid6,disks=4,chunk=4blk,write=reconstruct",
        "dvs,disks=4,chunk=2blk,segment=5,overprovision=20%",
        "dvs,groups=moving,fill=1,disks=4,chunk=2blk,segment=4,overprovision=10%",
        "full-stripe,disks=4,chunk=2blk,segment=6,batch=2",
        "full-stripe,disks=4,chunk=1blk,segment=8,batch=5",
    ] {
        let mut refused = 0;
        for seed in 0..3 {
            let mut rng = Rng::new(seed);
            let (mut own, mut other) = (Works::new(text, 9), Works::new(text, 0));
            refused += own.random(800, &mut rng);
            own.refuses = 0;
            assert_eq!(other.random(800, &mut rng), 0, "{text}");
            [&mut own, &mut other].into_iter().for_each(|array| fill_and_discard(array, &mut rng, text));
            let full = |name: &str| own.level(name).abs_diff(other.level(name));
            assert_eq!((own.level("used_chunks"), other.level("used_chunks")), (0, 0), "{text}");
            assert!(
                full("free_groups") <= 2,
                "{text}: {} and {}",
                own.level("free_groups"),
                other.level("free_groups")
            );
        }
        assert!(refused > 0, "{text}");
    }
}

/// Logs of which the disks take no stripe, or every second or third, for a while: what has no room meanwhile is refused, and nothing waits for
/// ever. Then all is as it was.
#[test]
fn a_log_that_finds_no_room_says_so() {
    for text in [
        "full-stripe,disks=4,chunk=2blk,segment=6,batch=2,overprovision=0%",
        "full-stripe,disks=3,chunk=1blk,segment=5,batch=3,overprovision=0%",
        "dvs,groups=moving,fill=1,disks=4,chunk=2blk,segment=4,overprovision=0%",
    ] {
        for (refuses, seed) in [(1, 0), (2, 1), (3, 2), (2, 3), (3, 4)] {
            let (mut rng, mut works) = (Rng::new(seed), Works::new(text, 0));
            works.reads = false;
            let space = works.array.host_blocks().0;
            works.write_all(&mut rng);
            works.random(400, &mut rng);
            works.refuses = refuses;
            let refused = works.random(400, &mut rng);
            assert!(refused > 50, "{text}: {refused}");
            works.refuses = 0;
            works.host(HostOp::Discard, 0, space / 2);
            works.settle(&mut rng);
            let before = works.refused();
            (0..3).for_each(|_| works.write_all(&mut rng));
            assert_eq!(works.refused(), before, "{text}");
        }
    }
}

/// Members die and are replaced while others refuse: works end all the same, and when nobody refuses any more a replaced member is made whole, what
/// is written over and over fits, and what is discarded leaves nothing.
#[test]
fn deaths_among_refusals_leave_nothing_behind() {
    for (text, deaths) in [
        ("mirror,disks=4,copies=2,chunk=4blk", 1),
        ("raid5,disks=4,chunk=4blk", 1),
        ("raid5,disks=4,chunk=4blk,write=modify,intent=on", 1),
        ("raid5,disks=4,chunk=4blk,write=modify,parity=log,log=9blk,log_region=12blk", 1),
        ("raid4s,disks=4,chunk=4blk", 1),
        ("raid6,disks=4,chunk=4blk,write=reconstruct", 2),
        ("dvs,disks=4,chunk=2blk,segment=5,overprovision=20%", 1),
        ("dvs,groups=moving,fill=1,disks=4,chunk=2blk,segment=4,overprovision=10%", 1),
        ("full-stripe,disks=4,chunk=2blk,segment=6,batch=2", 1),
        ("full-stripe,disks=4,chunk=1blk,segment=8,batch=5", 1),
    ] {
        for seed in 0..2 {
            let mut rng = Rng::new(seed);
            let (mut own, mut other) = (Works::new(text, 9), Works::new(text, 0));
            own.random(200, &mut rng);
            for round in 0..3u32 {
                let dying: Vec<u32> = (0..deaths).map(|i| (round + i + seed as u32) % 4).collect();
                for &disk in &dying {
                    own.kill(disk);
                    assert_eq!(own.array.health(MemberId(disk)), Health::Dead, "{text}");
                    own.random(60, &mut rng);
                }
                dying.iter().for_each(|disk| own.replace(*disk));
                own.random(60, &mut rng);
                // A rebuild that was refused is given up: another drive is put in the place.
                own.refuses = 0;
                own.settle(&mut rng);
                for _ in 0..3 {
                    let dead = |disk: &u32| own.array.health(MemberId(*disk)) == Health::Dead;
                    let given_up: Vec<u32> = (0..4).filter(dead).collect();
                    given_up.into_iter().for_each(|disk| own.replace(disk));
                    own.settle(&mut rng);
                }
                let healths: Vec<Health> = (0..4).map(|disk| own.array.health(MemberId(disk))).collect();
                assert!(own.is_whole(4) && !own.array.unfinished(), "{text}: {seed} {round} {healths:?}");
                own.refuses = 9;
            }
            own.refuses = 0;
            other.random(500, &mut rng);
            [&mut own, &mut other].into_iter().for_each(|array| fill_and_discard(array, &mut rng, text));
            assert_eq!((own.level("used_chunks"), other.level("used_chunks")), (0, 0), "{text}");
            let free = [own.level("free_groups"), other.level("free_groups")];
            assert!(free[0].abs_diff(free[1]) <= 2, "{text}: {free:?}");
        }
    }
}
