//! Members that refuse some of what they are asked for, and are alive: every work has an end, and nothing is held for ever by one that was
//! refused.

use crate::plan::Outcome;
use crate::{Array, ArrayContext, Locks, MemberPlan, Phase, Ticket, Work, counted, parse};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::{BTreeMap, VecDeque};

const SIZE: u64 = 480;

/// Works, of which those whose locks meet are done one after the other, as a list of all tells.
struct Works {
    text: String,
    array: Box<dyn Array>,
    tickets: u32,
    waiting: VecDeque<(Ticket, Work, Locks)>,
    started: BTreeMap<Ticket, Locks>,
    /// Phases under way, and whether they read and write.
    open: BTreeMap<Ticket, (bool, bool)>,
    /// How host requests ended.
    ended: BTreeMap<Ticket, Option<Refusal>>,
    /// Of so many phases one is refused; 0: none.
    refuses: u64,
    /// Reads are, too.
    reads: bool,
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
        Self { text: text.to_owned(), array, tickets: 0, waiting, started, open, ended, refuses, reads: true }
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
        let mut plan = MemberPlan::new(true);
        self.array.start(ticket, &work, &mut plan);
        self.take(&plan);
        true
    }

    /// Ends a phase that is drawn.
    fn complete(&mut self, rng: &mut Rng) {
        let Some(n) = (self.open.len() as u64).checked_sub(1) else { return };
        let ticket = *self.open.keys().nth(rng.below(n + 1) as usize).unwrap();
        let (reads, writes) = self.open.remove(&ticket).unwrap();
        let refused = self.refuses > 0 && rng.one_in(self.refuses);
        let why = if rng.one_in(2) { Refusal::ZoneReadOnly } else { Refusal::NoSpace };
        let (lost, untaken) = (refused && reads && self.reads, (refused && writes).then_some(why));
        let mut plan = MemberPlan::new(true);
        self.array.complete(Phase { ticket, lost, untaken, busy: false }, &mut plan);
        self.take(&plan);
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
            let (reads, writes) = self.open.entry(op.ticket).or_default();
            *reads |= op.request.op == HostOp::Read;
            *writes |= op.request.op == HostOp::Write;
        }
        plan.jobs().iter().for_each(|job| _ = self.add(Work::Job(*job)));
    }

    /// All that was begun; requests of the host's wait for nothing else.
    fn settle(&mut self, rng: &mut Rng) {
        let mut phases = 0;
        while self.start() || !self.open.is_empty() {
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
            while self.start() {}
            (0..rng.below(4)).for_each(|_| self.complete(rng));
        }
        self.settle(rng);
        self.refused() - before
    }

    fn refused(&self) -> usize {
        self.ended.values().flatten().count()
    }

    fn level(&self, name: &str) -> u64 {
        counted(&*self.array).get(name).unwrap_or(0)
    }
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
            let space = own.array.host_blocks().0;
            for array in [&mut own, &mut other] {
                for round in 0..3 {
                    for lba in (0..space).step_by(5) {
                        array.host(HostOp::Write, lba, (space - lba).min(5));
                    }
                    let before = array.refused();
                    array.settle(&mut rng);
                    assert_eq!(array.refused(), before, "{text}: writes of round {round}");
                }
                array.host(HostOp::Discard, 0, space);
                array.settle(&mut rng);
            }
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
            let fill = |works: &mut Works, rng: &mut Rng| {
                (0..space)
                    .step_by(5)
                    .for_each(|lba| _ = works.host(HostOp::Write, lba, (space - lba).min(5)));
                works.settle(rng);
            };
            fill(&mut works, &mut rng);
            works.random(400, &mut rng);
            works.refuses = refuses;
            let refused = works.random(400, &mut rng);
            assert!(refused > 50, "{text}: {refused}");
            works.refuses = 0;
            works.host(HostOp::Discard, 0, space / 2);
            works.settle(&mut rng);
            let before = works.refused();
            (0..3).for_each(|_| fill(&mut works, &mut rng));
            assert_eq!(works.refused(), before, "{text}");
        }
    }
}
