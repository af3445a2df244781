//! What the tests of all layers do not ask: that no write waits for a whole band, that idle time is used, and in which order a read
//! goes.

use super::{SteadyLog, SteadyLogOptions, Victim, records};
use crate::{Cause, HostRequest, Plan, StepEnd, TranslationLayer};
use smrlab_disk::geometry::GeometrySpec;
use smrlab_disk::{BandLayout, Bands, Geometry, ZoneSpec};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, HostOp, Lba, SimTime};

/// 100 bands of 16 tracks of 64 blocks.
fn bands() -> Bands {
    let spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(100 * 17, 64)]);
    let geometry = Geometry::new(spec).unwrap();
    Bands::new(&geometry, BandLayout { tracks: 16, head_width: 2, random_access: 0 }).unwrap()
}

const STEP: u64 = 64;

fn options() -> SteadyLogOptions {
    let most = Blocks(u64::MAX);
    SteadyLogOptions { most, overprovision: 0.07, step: STEP, idle: None, idle_free: 0.3, idle_dead: 0.1 }
}

fn request(layer: &mut SteadyLog, op: HostOp, lba: u64, blocks: u64) -> Plan {
    let mut plan = Plan::new(false, false);
    layer.submit(SimTime::ZERO, &HostRequest::new(op, Lba(lba), Blocks(blocks)), &mut plan);
    plan
}

/// Writes all of the space in order; answers how much that is.
fn fill(layer: &mut SteadyLog) -> u64 {
    let space = layer.host_blocks().0;
    (0..space).step_by(STEP as usize).for_each(|lba| {
        request(layer, HostOp::Write, lba, STEP.min(space - lba));
    });
    space
}

#[test]
fn no_short_write_waits_for_more_than_a_few_steps() {
    let mut layer = SteadyLog::new(bands(), options()).unwrap();
    let space = fill(&mut layer);
    let mut rng = Rng::new(5);
    let (mut most, mut all) = (0, 0);
    let writes = 200_000;
    for _ in 0..writes {
        let plan = request(&mut layer, HostOp::Write, rng.below(space - 8), 8);
        let moved: u64 = plan.cleanings().iter().map(|c| c.relocated.0).sum();
        let passed = plan.ops().iter().filter(|op| op.cause == Cause::Defrag && op.dir == Dir::Read);
        assert!(passed.map(|op| op.blocks.0).sum::<u64>() <= 8 * STEP, "{:?}", plan.ops());
        let own = plan.ops().iter().filter(|op| op.cause == Cause::Host).count();
        assert_eq!(plan.ack_after(), own, "the host waits for its own write only");
        (most, all) = (most.max(moved), all + moved);
    }
    // A band has 16 steps. All that the host sees holds data, nine tenths of the bands: a victim is about seven eighths live, so that
    // seven blocks move for one written.
    assert!(most <= 4 * STEP, "{most} blocks moved behind one write");
    let per = all as f64 / (8 * writes) as f64;
    assert!((4.0..10.0).contains(&per), "{per} blocks moved a block written");
}

/// A band of which only the last ten blocks are live: a step moves nothing and passes two steps' worth of dead ones; the one that comes to the
/// end moves the ten.
#[test]
fn a_step_passes_no_more_than_twice_what_it_may_move() {
    let mut layer = SteadyLog::new(bands(), options()).unwrap();
    (0..1024).step_by(64).for_each(|lba| _ = request(&mut layer, HostOp::Write, lba, 64));
    (0..1014).step_by(6).for_each(|lba| _ = request(&mut layer, HostOp::Write, lba, 6));
    let band = (0..100).find(|&b| layer.holdings.live(b) == 10).unwrap();
    let step = |done: u64| {
        let (mut plan, mut out) = (Plan::new(false, true), Vec::new());
        layer.plan_step(Victim { done, ..layer.begun(band) }, &mut plan, &mut out);
        let read = plan.ops().iter().filter(|op| op.dir == Dir::Read).map(|op| op.blocks.0).sum::<u64>();
        (read, *out.last().unwrap())
    };
    assert_eq!(step(0), (0, records::passed(band, 2 * STEP)));
    assert_eq!(step(2 * STEP), (0, records::passed(band, 4 * STEP)));
    assert_eq!(step(1024 - STEP), (10, records::freed(band)));
}

#[test]
fn idle_time_wins_space_that_writes_need_not_wait_for() {
    let idle = Some(SimTime::from_ms(10));
    let mut layer = SteadyLog::new(bands(), SteadyLogOptions { idle, ..options() }).unwrap();
    let space = fill(&mut layer);
    let mut rng = Rng::new(3);
    for _ in 0..10_000 {
        request(&mut layer, HostOp::Write, rng.below(space / 4), 1);
    }
    let (mut steps, mut plan) = (0, Plan::new(false, true));
    while layer.background_after().is_some() {
        plan.clear();
        layer.background(SimTime::ZERO, &mut plan);
        assert!(!plan.records().is_empty(), "a step that does nothing");
        // Every third one is given up, and nothing of it holds.
        layer.background_end(if steps % 3 == 2 { StepEnd::GivenUp } else { StepEnd::Done });
        steps += 1;
    }
    assert!(steps > 10 && layer.victim.is_none() && layer.ledger.ripe == 0, "{steps} steps");
    let room = u64::from(layer.free.len() - layer.reserve - super::AHEAD) * 1024;
    assert!(room > 0);
    let cleaned =
        |i: u64, layer: &mut SteadyLog| request(layer, HostOp::Write, i % space, 1).cleanings().len();
    assert_eq!((0..room).map(|i| cleaned(i, &mut layer)).sum::<usize>(), 0, "{room} blocks were free");
}

#[test]
fn a_read_goes_in_the_order_of_the_medium() {
    let mut layer = SteadyLog::new(bands(), options()).unwrap();
    for lba in [30, 10, 20] {
        request(&mut layer, HostOp::Write, lba, 10);
    }
    let plan = request(&mut layer, HostOp::Read, 10, 30);
    let ops: Vec<_> = plan.ops().iter().map(|op| (op.pba.0, op.blocks.0)).collect();
    // Blocks 30 to 39 lie first; 10 to 29 lie behind them, side by side and in order.
    assert_eq!((ops, plan.extents()), (vec![(0, 10), (10, 20)], 2));
}
