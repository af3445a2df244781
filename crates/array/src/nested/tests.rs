//! Arrays of arrays, work by work.

use crate::{
    Array, ArrayContext, Health, MemberId, MemberPlan, Phase, Records, Stop, Ticket, Work, counted, parse,
};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Zone, ZoneCondition, ZoneKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An array all of whose works are done at once, one after the other.
struct Bench {
    array: Box<dyn Array>,
    now: SimTime,
    tickets: u32,
    jobs: VecDeque<Work>,
    open: BTreeSet<Ticket>,
    /// What drives were asked for, and why.
    asked: Vec<(u32, HostRequest)>,
    /// What was recorded.
    records: Records,
}

fn ms(ms: u64) -> SimTime {
    SimTime::from_ms(ms)
}

impl Bench {
    fn new(text: &str, seed: u64) -> Self {
        let chosen = parse(text).unwrap();
        let sizes = vec![Blocks(480); chosen.disks as usize];
        let array = chosen.build(&ArrayContext::new(&sizes).seeded(seed)).unwrap().array;
        let (jobs, open, asked, records) = Default::default();
        Self { array, now: SimTime::ZERO, tickets: 0, jobs, open, asked, records }
    }

    /// Has the array do something, and all that follows.
    fn act(&mut self, now: SimTime, what: impl FnOnce(&mut dyn Array, &mut MemberPlan)) {
        self.now = now;
        self.once(what);
        loop {
            if let Some(work) = self.jobs.pop_front() {
                self.tickets += 1;
                let ticket = Ticket(self.tickets);
                self.once(|array, plan| array.start(ticket, &work, plan));
            } else if let Some(ticket) = self.open.pop_first() {
                let phase = Phase { ticket, lost: false, untaken: None, busy: false };
                self.once(|array, plan| array.complete(phase, plan));
            } else {
                return;
            }
        }
    }

    fn once(&mut self, what: impl FnOnce(&mut dyn Array, &mut MemberPlan)) {
        let mut plan = MemberPlan::at(self.now);
        what(&mut *self.array, &mut plan);
        self.open.extend(plan.ops().iter().map(|op| op.ticket));
        self.asked.extend(plan.ops().iter().map(|op| (op.member.0, op.request)));
        self.jobs.extend(plan.jobs().iter().map(|job| Work::Job(*job)));
        plan.records().iter().for_each(|record| self.records.push(record.tag, record.words.iter().copied()));
    }

    fn write(&mut self, now: u64, lba: u64, blocks: u64) {
        self.jobs.push_back(Work::Host(HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks))));
        self.act(ms(now), |_, _| ());
    }

    /// Drives on which something was cleaned when the array was woken.
    fn woken(&mut self, now: u64) -> Vec<u32> {
        self.asked.clear();
        self.act(ms(now), |array, plan| array.wake(plan));
        let cleaned = self.asked.iter().filter(|(_, request)| request.why == Cause::Clean);
        cleaned.map(|(drive, _)| *drive).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// A member cleans when it was idle for long enough itself, whatever the host asks of others, and no other one does then.
#[test]
fn a_member_is_idle_by_itself() {
    let mut bench = Bench::new("spanning,disks=2 / dvs,disks=3,chunk=2blk,segment=8,idle=50ms", 1);
    let half = bench.array.host_blocks().0 / 2;
    for lba in [0, half] {
        (0..3).for_each(|_| bench.write(1 + lba / half * 20, lba, 4));
    }
    for idle in [None, Some(ms(21)), Some(ms(5000))] {
        assert_eq!(bench.array.wake_at(idle), Some(ms(51)), "{idle:?}");
    }
    assert_eq!(bench.woken(50), []);
    assert_eq!(bench.woken(51), [0, 1, 2]);
    assert_eq!(bench.array.wake_at(None), Some(ms(71)));
    assert_eq!(bench.woken(70), []);
    assert_eq!(bench.woken(71), [3, 4, 5]);
    assert_eq!(bench.array.wake_at(Some(ms(21))), None);
    // A request begins a pause anew.
    (0..3).for_each(|_| bench.write(100, half, 4));
    bench.write(130, half, 4);
    bench.write(140, 0, 4);
    assert_eq!(bench.array.wake_at(Some(ms(140))), Some(ms(180)));
}

/// The array above cleans after its own time and its members after theirs: the one whose time is first goes first.
#[test]
fn the_first_of_two_idle_times_counts() {
    for (above, below, first) in [(20, 50, 20), (80, 50, 50), (50, 50, 50)] {
        let text = format!(
            "dvs,disks=3,chunk=2blk,segment=8,idle={above}ms / dvs,disks=3,chunk=2blk,segment=8,idle={below}ms"
        );
        let mut bench = Bench::new(&text, 1);
        (0..3).for_each(|_| bench.write(7, 0, 4));
        // What the array above cleans and writes anew is obsolete in the members.
        assert_eq!(bench.array.wake_at(Some(ms(7))), Some(ms(7 + above)), "{text}");
        assert_ne!(bench.woken(7 + above), [], "{text}");
        assert_eq!(bench.array.wake_at(None), Some(ms(7 + above + below)), "{text}");
        (0..3).for_each(|_| bench.write(100, 0, 4));
        assert_eq!(bench.array.wake_at(Some(ms(100))), Some(ms(100 + first)), "{text}");
        // While the host is at work the array above waits, and its members do not.
        assert_eq!(bench.array.wake_at(None), Some(ms(100 + below)), "{text}");
        assert_eq!(bench.woken(99 + first), [], "{text}");
        assert_ne!(bench.woken(100 + first), [], "{text}");
    }
}

/// The order of the writes of a rebuild on each drive of an array of which one drive of each member is replaced.
fn rebuilt(text: &str, each: u32, seed: u64) -> BTreeMap<u32, Vec<u64>> {
    let mut bench = Bench::new(text, seed);
    let drives = parse(text).unwrap().disks;
    for drive in (1..drives).step_by(each as usize) {
        bench.act(ms(1), |array, plan| array.failed(MemberId(drive), plan));
        bench.act(ms(1), |array, plan| array.replaced(MemberId(drive), plan));
        while bench.array.wake_at(None).is_some_and(|at| at <= ms(1)) {
            bench.act(ms(1), |array, plan| array.wake(plan));
        }
    }
    let mut found = BTreeMap::<u32, Vec<u64>>::new();
    for (drive, request) in bench.asked.iter().filter(|(_, request)| request.op == HostOp::Write) {
        found.entry(*drive).or_default().push(request.lba.0);
    }
    found
}

/// What is drawn differs from member to member, and goes by the seed.
#[test]
fn every_member_draws_by_itself() {
    for text in [
        "striped,disks=4 / raid5,disks=3,chunk=8blk,rebuild_unit=4KiB,rebuild_order=metadata",
        "striped,disks=2 / striped,disks=2 / raid5,disks=3,chunk=8blk,rebuild_unit=4KiB,rebuild_order=metadata",
    ] {
        let found = rebuilt(text, 3, 5);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 4, 7, 10], "{text}");
        let orders: BTreeSet<&Vec<u64>> = found.values().collect();
        assert_eq!(orders.len(), 4, "{text}: two draw the same");
        let mut sorted: Vec<Vec<u64>> = found.values().cloned().collect();
        sorted.iter_mut().for_each(|order| order.sort_unstable());
        assert!(sorted.iter().all(|order| *order == sorted[0] && order.len() == 60), "{text}: {sorted:?}");
        assert_eq!(rebuilt(text, 3, 5), found, "{text}");
        assert_ne!(rebuilt(text, 3, 50), found, "{text}");
    }
}

/// A member that cleans in idle time gives way to what the array above asks of it, also where that is no request of the host's.
#[test]
fn a_member_gives_way_to_the_array_above() {
    for asked in [false, true] {
        let mut bench =
            Bench::new("raid5,disks=3,chunk=2blk / dvs,disks=3,chunk=2blk,segment=8,idle=50ms", 1);
        (0..3).for_each(|_| bench.write(1, 0, 8));
        let woken = |array: &mut dyn Array, first: u32| {
            let mut plan = MemberPlan::at(ms(60));
            array.wake(&mut plan);
            let works = plan.jobs().iter().map(|job| Work::Job(*job)).collect::<Vec<_>>();
            let started = (first..).map(Ticket).zip(&works);
            started.for_each(|(ticket, work)| array.start(ticket, work, &mut MemberPlan::at(ms(60))));
            works.len()
        };
        assert_eq!(woken(&mut *bench.array, 100), 3, "each member cleans");
        if asked {
            bench.array.unclean(Stop::PowerLost, &mut MemberPlan::at(ms(60)));
            assert_eq!(woken(&mut *bench.array, 200), 1, "a row is looked at");
        }
        for ticket in (100..103).map(Ticket) {
            let phase = Phase { ticket, lost: false, untaken: None, busy: false };
            bench.array.complete(phase, &mut MemberPlan::at(ms(61)));
        }
        let given_up = |member: &dyn Array| counted(member).get("collections_given_up");
        let each: Vec<_> = bench.array.members().into_iter().map(given_up).collect();
        // The parity of the first row, on the last member, is not read.
        assert_eq!(each, [u64::from(asked), u64::from(asked), 0].map(Some));
    }
}

/// Drives die and are replaced in any order, also fresh ones of members that are lost: after a restart from what was recorded, or from a
/// checkpoint, the same ones are dead.
#[test]
fn the_same_drives_are_dead_after_a_restart() {
    for text in [
        "raid5,disks=3,chunk=8blk / mirror,disks=2,copies=2",
        "mirror,disks=2,copies=2 / raid5,disks=3,chunk=8blk",
        "mirror,disks=2,copies=2 / mirror,disks=2,copies=2 / mirror,disks=2,copies=2",
    ] {
        for seed in 0..40 {
            let (mut bench, mut rng) = (Bench::new(text, 1), Rng::new(seed));
            let drives = parse(text).unwrap().disks;
            let dead = |array: &dyn Array| {
                (0..drives).filter(|d| array.health(MemberId(*d)) == Health::Dead).collect::<Vec<_>>()
            };
            for step in 0..12 {
                let drive = MemberId(rng.below(drives.into()) as u32);
                match bench.array.health(drive) {
                    Health::Dead if !bench.array.rebuildable(drive) => continue,
                    Health::Dead => bench.act(ms(step), |array, plan| array.replaced(drive, plan)),
                    _ => bench.act(ms(step), |array, plan| array.failed(drive, plan)),
                }
                while rng.below(3) > 0 && bench.array.wake_at(None).is_some_and(|at| at <= ms(step)) {
                    bench.act(ms(step), |array, plan| array.wake(plan));
                }
                let mut kept = Records::default();
                bench.array.checkpoint(&mut kept);
                for (what, records) in [("records", &bench.records), ("checkpoint", &kept)] {
                    let mut again = Bench::new(text, 1).array;
                    again.recover(records, &mut MemberPlan::at(ms(step)));
                    assert_eq!(dead(&*again), dead(&*bench.array), "{text} {seed} {step}: {what}");
                }
            }
        }
    }
}

/// What makes copies and parities fit is asked by no host: it is not counted as load.
#[test]
fn making_fit_is_work_as_a_rebuild_is() {
    for text in ["mirror,chunk=8blk", "raid5,disks=3,chunk=8blk", "raid6,disks=4,chunk=8blk"] {
        let mut bench = Bench::new(text, 1);
        bench.act(ms(1), |array, plan| array.unclean(Stop::PowerLost, plan));
        bench.act(ms(1), |array, plan| array.wake(plan));
        let asked: BTreeSet<_> = bench.asked.iter().map(|(_, r)| (r.op.name(), r.why)).collect();
        assert_eq!(asked, BTreeSet::from([("read", Cause::Rebuild), ("write", Cause::Rebuild)]), "{text}");
    }
}

/// A lost member whose drives are all replaced holds nothing, as a new array, and fits; an old drive may hold anything.
#[test]
fn a_member_of_new_drives_alone_has_nothing_to_make_fit() {
    for (text, dead, doubts) in [
        ("raid5,disks=3,chunk=8blk / mirror,disks=2,copies=2,chunk=8blk", 2..4, false),
        ("mirror,disks=2,copies=2,chunk=8blk / raid5,disks=3,chunk=8blk", 3..5, true),
        ("mirror,disks=2,copies=2,chunk=8blk / raid5,disks=3,chunk=8blk", 3..6, false),
    ] {
        let mut bench = Bench::new(text, 1);
        dead.clone().for_each(|d| bench.act(ms(1), |array, plan| array.failed(MemberId(d), plan)));
        dead.for_each(|d| bench.act(ms(2), |array, plan| array.replaced(MemberId(d), plan)));
        let members = bench.array.members();
        let found = counted(members[1]).get("rows_in_doubt").is_some();
        assert_eq!((found, counted(members[0]).get("rows_in_doubt")), (doubts, None), "{text}");
        let mut again = Bench::new(text, 1).array;
        again.recover(&bench.records, &mut MemberPlan::at(ms(3)));
        assert_eq!(
            counted(again.members()[1]).get("rows_in_doubt").is_some(),
            doubts,
            "{text}: after a restart"
        );
    }
}

/// A write that a member is in the middle of is in its tables and not on its drive: a checkpoint waits for it, whichever member that is.
#[test]
fn a_member_in_mid_write_is_not_settled() {
    let zone = |at: u64| {
        let (start, blocks) = (Lba(at * 64), Blocks(64));
        let (kind, condition) = (ZoneKind::SequentialRequired, ZoneCondition::Empty);
        Zone { start, blocks, kind, condition, pointer: Some(start), non_sequential: false }
    };
    let (sizes, zones) = ([Blocks(640); 2], [0, 1].map(|_| (0..10).map(zone).collect::<Vec<_>>()));
    let context = ArrayContext::new(&sizes).zoned(&zones);
    for text in
        ["striped,disks=2,chunk=8blk / zone-log", "spanning,disks=1 / striped,disks=2,chunk=8blk / zone-log"]
    {
        for lba in [0, 8] {
            let array = parse(text).unwrap().build(&context).unwrap().array;
            let mut bench = Bench { array, ..Bench::new("mirror", 1) };
            bench.jobs.push_back(Work::Host(HostRequest::new(HostOp::Write, Lba(lba), Blocks(8))));
            while let Some(work) = bench.jobs.pop_front() {
                assert!(bench.array.is_settled(), "{text}: {lba} is not begun");
                bench.tickets += 1;
                let ticket = Ticket(bench.tickets);
                bench.once(|array, plan| array.start(ticket, &work, plan));
            }
            assert!(!bench.array.is_settled(), "{text}: {lba}");
            bench.act(ms(1), |_, _| ());
            assert!(bench.array.is_settled(), "{text}: {lba} is written");
        }
    }
}
