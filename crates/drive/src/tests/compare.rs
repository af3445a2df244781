//! Random requests to a drive and to the naive one.

use super::made_up::{GROUP, HOST, Script};
use super::naive::{Told, World};
use crate::buffer::tests::naive::{Disk, Naive, any_controller, any_disk};
use crate::{Buffered, Drive, DriveSetup, Observer, ScheduledDrive, TimedPlan, sched};
use smrlab_disk::model::WriteBack;
use smrlab_disk::{Mechanics, Model};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// A drive, and the one that is to do the same.
fn both(seed: u64, buffered: bool, scheduler: &str) -> (ScheduledDrive, World) {
    let mut rng = Rng::new(seed);
    let (g, mut spec) = any_disk(&mut rng);
    spec.write_settle = SimTime::ZERO;
    let mut controller = any_controller(&mut rng);
    (controller.buffer.segment_blocks, controller.buffer.write_back) = (24, WriteBack::On);
    let script = Script {
        rng: Rng::new(seed + 1),
        medium: g.blocks().0,
        moved: vec![false; (HOST / GROUP) as usize],
        moves: rng.one_in(2),
        left: rng.below(3),
        idle: [None, Some(SimTime::ZERO), Some(SimTime::from_ms(3))][rng.below(3) as usize],
        step: Vec::new(),
        last: false,
        reach: rng.one_in(2).then_some(Blocks(GROUP)),
    };
    let chosen = sched::parse(scheduler).unwrap();
    let m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
    let drive = Drive::new(Box::new(script.clone()), m, DriveSetup::default());
    let real = ScheduledDrive::new(drive.behind(buffered.then_some(controller)), &chosen);
    let world = World {
        script,
        b: Naive::new(controller, Disk::new(g, spec), chosen.entry.build.is_some()),
        buffered,
        policy: chosen.entry.name,
        up: true,
        max_wait: chosen.max_wait.map(|t| t.0),
        waiting: Vec::new(),
        leaving: (0, 0),
        free: 0,
        idle_since: 0,
        step: None,
        told: Vec::new(),
    };
    (real, world)
}

/// A request near the one before or elsewhere, within a group. What has no place counts as being where the head was when it was looked at
/// last: there are such only where that decides nothing.
fn any_request(rng: &mut Rng, at: &mut u64, scheduler: &str) -> HostRequest {
    if rng.one_in(2) {
        *at = rng.below(HOST);
    }
    let ops = [HostOp::Read, HostOp::Read, HostOp::Write, HostOp::Write, HostOp::Write];
    let blocks = Blocks(1 + rng.below(GROUP - *at % GROUP));
    let mut r = HostRequest::new(ops[rng.below(5) as usize], Lba(*at), blocks);
    r.fua = rng.one_in(5);
    if rng.one_in(15) && scheduler == "fcfs" {
        r.op = HostOp::Discard;
    } else if rng.one_in(15) && scheduler != "look" {
        r = HostRequest::flush();
    }
    r.why = if rng.one_in(3) { Cause::Parity } else { Cause::Host };
    r
}

/// Random requests at random times through a drive and its second; how much was told.
fn compare(seed: u64, buffered: bool, scheduler: &str) -> usize {
    let (mut real, mut world) = both(seed, buffered, scheduler);
    let mut rng = Rng::new(seed + 2);
    let (mut told, mut now, mut at) = (Told::default(), 0, 0);
    for id in 0..120 {
        now += [0, rng.below(9_000_000), rng.below(60_000_000)][rng.below(3) as usize];
        let r = any_request(&mut rng, &mut at, scheduler).numbered(id);
        let came = now - rng.below(2).min(now);
        let Ok(_) = real.submit_waited(SimTime(now), (SimTime(came), &r), &mut told);
        world.submit(now, came, &r);
        if rng.one_in(4) {
            now += rng.below(5_000_000);
            let Ok(()) = real.wake(SimTime(now), &mut told);
            world.wake(now);
            assert_eq!(real.next_wake().map(|t| t.0), world.next_wake(), "{seed} {scheduler}");
        }
        let n = told.0.len().min(world.told.len());
        let i = (0..n).find(|i| told.0[*i] != world.told[*i]).unwrap_or(n);
        let tail = |all: &[String]| all[i.saturating_sub(3)..].join("\n  ");
        assert!(
            told.0 == world.told,
            "seed {seed}, {scheduler}, request {id} at {now}: told\n  {}\nand not\n  {}\nof {:?}",
            tail(&told.0),
            tail(&world.told),
            world.b.spec
        );
        let waiting = world.waiting.iter().filter(|w| w.taken.is_none()).count();
        assert_eq!((real.waiting(), real.drive().free_at().0), (waiting, world.free), "{seed} {scheduler}");
    }
    let Ok(()) = real.drain(&mut told);
    world.drain();
    assert!(told.0 == world.told, "{seed} {scheduler}: {:?}\n{:?}", told.0.last(), world.told.last());
    assert_eq!(real.drive().buffer_counters(), buffered.then_some(world.b.counters));
    told.0.len()
}

#[test]
fn a_drive_does_what_a_naive_one_does() {
    let mut lines = 0;
    for seed in 0..60 {
        for scheduler in ["fcfs", "sstf", "look", "c-look", "sptf", "sptf,max_wait=20ms"] {
            lines += compare(100 * seed, false, scheduler);
        }
    }
    assert!(lines > 60_000, "{lines}");
}

#[test]
fn a_drive_with_a_buffer_does_what_a_naive_one_does() {
    let mut lines = 0;
    for seed in 0..150 {
        for scheduler in ["fcfs", "sptf", "sstf,max_wait=30ms"] {
            lines += compare(100 * seed + 7, true, scheduler);
        }
    }
    assert!(lines > 60_000, "{lines}");
}

/// Objects to the `at`-th thing that it may object to; 0: to none.
struct Objects {
    at: usize,
    told: usize,
}

impl Objects {
    fn told(&mut self) -> Result<(), usize> {
        self.told += 1;
        if self.told == self.at { Err(self.at) } else { Ok(()) }
    }
}

impl Observer for Objects {
    type Error = usize;

    fn dispatched(&mut self, _: SimTime, _: &HostRequest, _: &TimedPlan<'_>) -> Result<(), usize> {
        self.told()
    }

    fn accepted(&mut self, _: &Buffered<'_>) -> Result<(), usize> {
        self.told()
    }

    fn answered(&mut self, _: &Buffered<'_>, _: &HostRequest) -> Result<(), usize> {
        self.told()
    }

    fn background(&mut self, _: &TimedPlan<'_>) -> Result<(), usize> {
        self.told()
    }
}

/// Sends a drive random requests until it is kept from going on; what by, and how much was told by then.
fn sent(seed: u64, scheduler: &str, at: usize) -> (Result<(), usize>, usize) {
    let (mut real, _) = both(seed, true, scheduler);
    let (mut rng, mut objects) = (Rng::new(seed + 2), Objects { at, told: 0 });
    let (mut now, mut lba) = (0, 0);
    let mut send = || {
        for id in 0..40 {
            now += [0, rng.below(9_000_000), rng.below(60_000_000)][rng.below(3) as usize];
            let r = any_request(&mut rng, &mut lba, scheduler).numbered(id);
            real.submit(SimTime(now), &r, &mut objects)?;
            real.wake(SimTime(now), &mut objects)?;
        }
        real.drain(&mut objects)
    };
    (send(), objects.told)
}

/// Whatever a watcher objects to, the caller hears of it at once.
#[test]
fn no_objection_is_passed_over() {
    for seed in (0..600).step_by(100) {
        for scheduler in ["fcfs", "sptf"] {
            let (all, told) = sent(seed, scheduler, 0);
            assert!(all.is_ok() && told >= 40, "{seed} {scheduler}: {told}");
            (1..=told)
                .for_each(|at| assert_eq!(sent(seed, scheduler, at), (Err(at), at), "{seed} {scheduler}"));
        }
    }
}
