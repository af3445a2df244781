//! A second event loop, written from what the pages say: stripes are a list that is looked through, events a list of which the first is taken,
//! members are drives of its own. Arrays are made up: each work has any number of phases of any requests, acknowledges anywhere, begins jobs;
//! members die and are replaced. What is told, and when each request is done, must be the same.

mod made_up;
mod naive;
mod prefilled;
mod served;
mod thrown_out;

use super::{EventLoop, Schedule};
use crate::member::Ssd;
use crate::{ArrayObserver, Done, Member, MemberId, MemberOp, MemberPlan, Ticket};
use made_up::Script;
use naive::World;
use smrlab_drive::{Observer, TimedPlan};
use smrlab_stl::HostRequest;
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::convert::Infallible;

/// What was told, as lines; and which request of a drive came when and ended when.
#[derive(Default)]
struct Told(Vec<String>, Vec<(MemberId, SimTime, SimTime)>);

impl Observer for Told {
    type Error = Infallible;

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.0.push(format!("step of {:?} from {:?}: {} {}", step.member, step.began, step.done, step.whole));
        Ok(())
    }
}

impl ArrayObserver for Told {
    fn began(&mut self, ticket: Ticket, request: &HostRequest) {
        self.0.push(format!("began {} as {ticket:?}", request.id));
    }

    fn issued(
        &mut self,
        at: SimTime,
        op: &MemberOp,
        _: &MemberPlan,
        executed: Option<&TimedPlan<'_>>,
    ) -> Result<(), Infallible> {
        let served = executed.map(|e| (e.served.start.0, e.served.ack.0, e.member));
        self.1.extend(executed.map(|e| (e.member, at, e.served.ack)));
        self.0.push(issued(at, op, served));
        Ok(())
    }

    fn died(&mut self, member: MemberId) {
        self.0.push(format!("died {member:?}"));
    }

    fn replaced(&mut self, member: MemberId) {
        self.0.push(format!("replaced {member:?}"));
    }

    fn cleaned(&mut self, kind: &'static str, from: SimTime, to: SimTime, relocated: u64) {
        self.0.push(format!("{kind} from {from:?} to {to:?}: {relocated}"));
    }
}

fn issued(at: SimTime, op: &MemberOp, served: Option<(u64, u64, MemberId)>) -> String {
    let r = &op.request;
    let request = (r.id, r.op, r.lba.0, r.blocks.0, r.why);
    format!(
        "{:?} of {:?} asks {:?} for {request:?} at {}: {served:?}",
        op.ticket, op.buffers, op.member, at.0
    )
}

/// A disk with a cache that it cleans when idle, or a plain one, first come first served.
fn drive(layer: &str) -> Member {
    behind(layer, "fcfs")
}

fn behind(layer: &str, scheduler: &str) -> Member {
    of("tiny", layer, scheduler)
}

fn of(drive: &str, layer: &str, scheduler: &str) -> Member {
    let mut problems = smrlab_units::problems::Problems::default();
    let wanted = smrlab_drive::Wanted {
        drive,
        layer,
        scheduler,
        metadata: "nv",
        mechanics: None,
        medium: None,
        seed: 1,
    };
    let made = smrlab_drive::assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    let (drive, chosen) = made.unwrap().start(false, false);
    Member::of_drive(drive, &chosen)
}

fn members(rng: &Rng) -> Vec<Member> {
    let mut rng = rng.clone();
    let layer = |n| ["cmr", "rmw", "disk-cache,cache=10%,idle=5ms"][n as usize];
    let mut all: Vec<Member> = (0..3).map(|_| drive(layer(rng.below(3)))).collect();
    all.push(Member::Ssd(Ssd::new(SimTime::from_us(90), 3000, Blocks(4000))));
    all
}

fn any_schedule(rng: &mut Rng) -> Schedule {
    let fails = (0..rng.below(3)).map(|_| (MemberId(rng.below(4) as u32), SimTime(rng.below(3_000_000_000))));
    Schedule {
        fails: fails.collect(),
        replace_after: rng.one_in(2).then_some(SimTime::from_ms(40)),
        timeout: rng.one_in(3).then_some(SimTime::from_ms(200)),
        buses: Vec::new(),
    }
}

/// Runs both with what befalls the members changed by `change`; counts what happened, and says what drives did.
fn compare(seed: u64, change: impl FnOnce(&mut Schedule)) -> ([usize; 4], Vec<(MemberId, SimTime, SimTime)>) {
    let mut rng = Rng::new(seed);
    let script = Script::new(Rng::new(seed + 1));
    let (all, mut schedule) = (rng.clone(), any_schedule(&mut rng));
    change(&mut schedule);
    let spares = || members(&all).into_iter().take(2).collect::<Vec<_>>();
    let array = Box::new(script.clone());
    let mut real = EventLoop::new(array, members(&all), spares(), schedule.clone(), false);
    let mut world = World::new(script, members(&all), spares(), schedule);
    let (mut told, mut now, mut done) = (Told::default(), SimTime::ZERO, 0);
    for id in 0..150 {
        now += SimTime([0, rng.below(9_000_000), rng.below(60_000_000)][rng.below(3) as usize]);
        let op = [HostOp::Read, HostOp::Write, HostOp::Write, HostOp::Flush, HostOp::Append]
            [rng.below(5) as usize];
        let mut r = HostRequest::new(op, Lba(rng.below(200)), Blocks(1 + rng.below(60))).numbered(id);
        if op == HostOp::Flush {
            r.blocks = Blocks(0);
        }
        let Ok(()) = real.advance(now, &mut told);
        world.advance(now);
        assert_eq!(real.next_event(), world.next_event(), "{seed}: before {id}");
        let Ok(()) = real.submit(now, &r, &mut told);
        world.submit(now, &r);
        done += same(seed, &mut real, &mut world, &told);
    }
    let Ok(()) = real.finish(&mut told);
    world.finish();
    done += same(seed, &mut real, &mut world, &told);
    let count = |what: &str| told.0.iter().filter(|line| line.contains(what)).count();
    ([done, count("died"), count("replaced"), count("cleans")], told.1)
}

/// Compares what was told and done so far; answers how many requests are done.
fn same(seed: u64, real: &mut EventLoop, world: &mut World, told: &Told) -> usize {
    let n = told.0.len().min(world.told.len());
    let i = (0..n).find(|i| told.0[*i] != world.told[*i]).unwrap_or(n);
    let tail = |all: &[String]| all[i.saturating_sub(3)..].join("\n  ");
    assert!(told.0 == world.told, "{seed}: told\n  {}\nand not\n  {}", tail(&told.0), tail(&world.told));
    let line = |d: &Done| format!("{:?}", (d.request.id, d.arrival, d.start, d.ack, d.ops, d.refusal));
    let got: Vec<_> = std::iter::from_fn(|| real.next_done()).map(|d| line(&d)).collect();
    let want: Vec<_> = world.done.drain(..).map(|d| line(&d)).collect();
    assert_eq!(got, want, "{seed}");
    assert_eq!(
        (real.in_flight(), real.deaths(), real.now()),
        (world.hosts, world.deaths, world.now),
        "{seed}"
    );
    assert_eq!(real.is_at_rest(), world.at_rest(), "{seed}");
    got.len()
}

#[test]
fn an_event_loop_does_what_a_naive_one_does() {
    let mut sums = [0; 4];
    for seed in 0..90 {
        let (counts, _) = compare(1000 * seed, |_| {});
        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    assert_eq!(sums[0], 90 * 150, "all requests are done");
    assert!(sums[1..].iter().all(|n| *n > 20), "{sums:?}");
}

/// A drive dies in the very nanosecond in which a request of it ends: that is answered; where a request takes as long as the limit to the
/// nanosecond, its drive is kept. With a limit that no drive keeps SSDs stay.
#[test]
fn edges_are_those_of_a_naive_one() {
    let mut deaths = [0; 4];
    for seed in 0..24 {
        let (before, seen) = compare(1000 * seed, |_| {});
        let (member, came, ended) = seen[seen.len() / 3 + 7 * seed as usize % (seen.len() / 3)];
        let dies = |at| compare(1000 * seed, |schedule| schedule.fails.push((member, at))).0[1];
        let limit = |n| compare(1000 * seed, |schedule| schedule.timeout = Some(n)).0[1];
        let after = [dies(ended), limit(ended.since(came)), limit(SimTime::from_us(150))];
        deaths.iter_mut().zip([before[1]].into_iter().chain(after)).for_each(|(sum, n)| *sum += n);
    }
    assert!(deaths[1..].iter().all(|n| *n > deaths[0]), "{deaths:?}");
}

/// A drive that was replaced dies when its place's next time has come, in whatever order the times are given; one that is dead by then does not
/// die again. In an array of arrays all drives of a member die at its time, also one that was replaced before.
#[test]
fn what_was_replaced_dies_again() {
    let died = |text: &str, layers: usize| {
        let chosen = crate::parse(text).unwrap();
        let members: Vec<Member> = (0..layers).map(|_| drive("cmr")).collect();
        let sizes: Vec<Blocks> =
            members.iter().filter_map(|m| Some(m.drive()?.layer().host_blocks())).collect();
        let array = chosen.build(&crate::ArrayContext::new(&sizes)).unwrap().array;
        let spares = (0..chosen.spares).map(|_| drive("cmr")).collect();
        let mut all = EventLoop::new(array, members, spares, chosen.schedule, false);
        let mut told = Told::default();
        let Ok(()) = all.advance(SimTime::from_ms(100_000), &mut told);
        told.0.retain(|line| line.starts_with("died") || line.starts_with("replaced"));
        told.0.iter().map(|line| line.replace("MemberId", "")).collect::<Vec<_>>().join(", ")
    };
    let twice = "died (1), replaced (1), died (1), replaced (1)";
    for times in ["1@10s+1@30s", "1@30s+1@10s"] {
        assert_eq!(died(&format!("mirror,disks=2,fail={times},replace=1s,spares=9"), 2), twice);
        assert_eq!(died(&format!("mirror,disks=2,fail={times}"), 2), "died (1)");
    }
    assert_eq!(died("mirror,disks=2,fail=1@10s+1@11s+1@11500ms+1@30s,replace=2s,spares=2", 2), twice);
    assert_eq!(
        died("striped,disks=2,fail=0.1@10s+0@30s,replace=1s,spares=1 / mirror", 4),
        "died (1), replaced (1), died (0), died (1)"
    );
}

/// A server stops while a read waits for a write of its page to the SSD: the read, which has to take its stripes first, is answered.
#[test]
fn what_waits_for_stripes_is_done_before_a_server_stops() {
    let text = "striped,disks=3,chunk=8blk,ssd_write=16blk,ssd_page=8blk";
    let all = members(&Rng::new(1));
    let sizes: Vec<Blocks> =
        all.iter().filter_map(|m| m.drive()).map(|drive| drive.layer().host_blocks()).collect();
    let array = crate::parse(text).unwrap().build(&crate::ArrayContext::new(&sizes)).unwrap().array;
    let (mut real, mut told) =
        (EventLoop::new(array, all, Vec::new(), Schedule::default(), false), Told::default());
    for (id, op, blocks) in [(1, HostOp::Write, 4), (2, HostOp::Read, 8)] {
        let r = HostRequest::new(op, Lba(0), Blocks(blocks)).numbered(id);
        let Ok(()) = real.submit(SimTime::ZERO, &r, &mut told);
    }
    assert!(real.next_done().is_none());
    let Ok(()) = real.wind_up(&mut told);
    let done: Vec<_> = std::iter::from_fn(|| real.next_done()).map(|d| (d.request.id, d.refusal)).collect();
    assert_eq!(done, [(1, None), (2, None)]);
    assert!(real.is_at_rest());
}
