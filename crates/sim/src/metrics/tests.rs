//! Every figure of a run, counted once more from a list of all that happened, by looping over that list for each figure. Random requests go to
//! drives with layers that split, clean, pause, refuse and work when idle; the list is what the drive told.

mod naive;

use super::*;
use naive::{List, Op, Plans};
use smrlab_disk::Bands;
use smrlab_drive::{Drive, DriveSetup, MemberId, Observer, OpDone, ScheduledDrive, sched};
use smrlab_stl::{BuildContext, Cause, Facts, Pause};
use smrlab_units::Lba;
use smrlab_units::rng::Rng;
use std::convert::Infallible;
use std::sync::Arc;

/// Units of 8 blocks, by either rule, below, at and above the edges.
#[test]
fn transfers_are_counted_in_units() {
    let units =
        |floor_plus_one| [0, 1, 7, 8, 9, 15, 16, 17].map(|n| Adjusted { blocks: 8, floor_plus_one }.units(n));
    assert_eq!(units(false), [1, 1, 1, 1, 2, 2, 2, 3]);
    assert_eq!(units(true), [1, 1, 1, 2, 2, 2, 3, 3]);
}

/// Counts, and keeps the list.
struct Both {
    metrics: Metrics,
    list: List,
}

impl Both {
    fn plan(&mut self, e: &TimedPlan<'_>) {
        let over = e.plan.cleanings().iter().zip(e.plan.cleaning_parts());
        let over = over.map(|(c, part)| (c.kind, *part, Some(c.relocated.0)));
        let to_come = e.plan.unfinished().map(|(kind, part)| (kind, part, None));
        // What was told of the plan's pauses.
        let told = if e.whole { e.plan.pauses().len() } else { 0 };
        let told = self.list.pauses.len() - told..;
        for (kind, part, relocated) in over.chain(to_come) {
            let ops = (part.first as usize)..(part.end as usize).min(e.done);
            let pauses = e.plan.pauses()[..part.pauses as usize].iter().zip(&self.list.pauses[told.clone()]);
            let mut pauses: Vec<_> = pauses.filter(|((at, _), _)| *at >= part.first).collect();
            let mut from = if ops.start == 0 { e.began.0 } else { e.ends[ops.start - 1].0 };
            // A commit before it, say.
            while pauses.first().is_some_and(|((at, p), _)| *at == part.first && p.cause != Cause::Clean) {
                from = pauses.remove(0).1.3;
            }
            let pauses = pauses.into_iter().map(|(_, told)| told.3);
            let Some(to) = ops.map(|op| e.ends[op].0).chain(pauses).max() else { continue };
            self.list.cleanings.push((kind, from, to, relocated, e.whole));
        }
        self.list.cleaned_since |= !e.plan.cleanings().is_empty();
    }
}

impl Observer for Both {
    type Error = Infallible;

    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        self.list.arrivals.push((at.0, *request));
        self.metrics.arrived(at, request);
    }

    fn op(&mut self, d: &OpDone<'_>) {
        self.list.ops.push(Op {
            idle: d.request.is_none(),
            cause: d.cause,
            op: *d.op,
            start: d.start.0,
            end: d.end.0,
            tracks: d.tracks,
        });
        self.metrics.op(d);
    }

    fn paused(&mut self, _: MemberId, request: Option<u64>, pause: &Pause, start: SimTime) {
        self.list.pauses.push((request.is_none(), pause.cause, start.0, (start + pause.time).0));
        self.metrics.paused(request, pause, start);
    }

    fn dispatched(&mut self, came: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        let work = (e.plan.ops().len() as u64, u64::from(e.plan.extents()));
        self.list.done.push(Plans { came: came.0, r: *r, served: e.served, work, outcome: e.plan.outcome() });
        self.plan(e);
        self.metrics.served(came, r, e);
        Ok(())
    }

    fn background(&mut self, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.plan(e);
        self.metrics.executed(e);
        Ok(())
    }

    fn looks(&self, _: MemberId, at: SimTime) -> bool {
        let due = self.metrics.fill.due(at);
        assert!(self.list.due(at.0).is_none_or(|want| due == want), "a look at {at}");
        due
    }

    fn looked(&mut self, _: MemberId, at: SimTime, facts: &Facts<'_>) {
        self.list.looked(at.0, facts.fill().map(|f| (f.0.0, f.1.0)));
        self.metrics.looked(at, facts);
    }
}

/// A drive of this layer, its bands, and the host's blocks.
fn drive(name: &str, layer: &str, scheduler: &str) -> (ScheduledDrive, Option<Bands>, u64) {
    let model = smrlab_disk::model::load(name, |_| Err(String::new())).unwrap();
    let built = smrlab_stl::build(layer, &BuildContext::new(Arc::new(model))).unwrap();
    let mechanics = built.drive.mechanics(None).unwrap();
    let bands = built.layer.facts().bands.cloned();
    let host = built.layer.host_blocks().0;
    let drive = Drive::new(built.layer, mechanics, DriveSetup::default());
    (ScheduledDrive::new(drive, &sched::parse(scheduler).unwrap()), bands, host)
}

fn compare(seed: u64, (name, layer, scheduler): (&str, &str, &str), window: Option<SimTime>) -> List {
    let mut rng = Rng::new(seed);
    let (mut drive, bands, host) = drive(name, layer, scheduler);
    let setup = MetricsSetup {
        host_blocks: Blocks(host),
        spaces: Spaces::one(Blocks(host)),
        adjusted: Adjusted { blocks: 1 + rng.below(9), floor_plus_one: rng.one_in(2) },
        window,
        stall: SimTime::from_ms(60),
        foretold: rng.one_in(2),
        heatmap: true,
        drives: 1,
    };
    let mut both = Both { metrics: Metrics::new(&setup), list: List::new(&setup) };
    both.metrics.bands = bands.clone().map(BandWalk::new);
    // Blocks that were written before, and what they leave to clean before the first request comes.
    for _ in 0..30 {
        let r = HostRequest::new(HostOp::Write, Lba(rng.below(host - 8)), Blocks(1 + rng.below(8)));
        drive.drive_mut().instantly(&r);
        let prefilled = if rng.one_in(2) { Updates::prefilled_close } else { Updates::prefilled };
        prefilled(&mut both.metrics.updates, r.lba, r.blocks);
        both.list.prefilled(&r);
    }
    let mut now = SimTime::from_ms(rng.below(2) * 700 + 3);
    for id in 0..250 {
        now += SimTime([0, rng.below(9_000_000), rng.below(90_000_000)][rng.below(3) as usize]);
        let lba = if rng.one_in(2) { rng.below(200) } else { rng.below(host - 40) };
        let op =
            [HostOp::Read, HostOp::Read, HostOp::Write, HostOp::Write, HostOp::Write][rng.below(5) as usize];
        let mut r = HostRequest::new(op, Lba(lba), Blocks(1 + rng.below(24))).numbered(id);
        r.why = if rng.one_in(5) { Cause::Parity } else { Cause::Host };
        if rng.one_in(20) {
            r.op = HostOp::Discard;
        } else if rng.one_in(20) {
            r = HostRequest::flush().numbered(id);
        }
        both.arrived(now, &r);
        let Ok(_) = drive.submit(now, &r, &mut both);
    }
    let Ok(()) = drive.drain(&mut both);
    let Ok(()) = drive.wake(now + SimTime::from_ms(4000), &mut both);
    both.list.agrees(&mut both.metrics, bands.as_ref(), &format!("seed {seed}, {layer}, {scheduler}"));
    both.list
}

/// What must have happened in all that was compared.
const HAPPENED: [&str; 9] = [
    "updates",
    "reads of the unwritten",
    "cleanings",
    "given up",
    "stalls",
    "work before the first request",
    "idle work",
    "refusals",
    "pauses",
];

#[test]
fn every_figure_is_what_a_list_of_all_that_happened_says() {
    let mut seen = [0u64; HAPPENED.len()];
    let layers = [
        ("tiny", "cmr"),
        ("tiny", "rmw"),
        ("tiny", "static-1234"),
        ("tiny", "static-R(4123)"),
        // Each update moves where the next one begins.
        ("tiny", "static-124R(3),tracks=15,journal=on"),
        ("tiny", "disk-cache,cache=10%,idle=5ms"),
        ("tiny", "s-block,sblock_blocks=160"),
        ("tiny", "log"),
        ("tiny", "caveat-scriptor"),
        ("tiny", "persistent-cache"),
    ];
    let schedulers = ["fcfs", "sptf,depth=64"];
    for (i, (name, layer)) in layers.into_iter().enumerate() {
        for (j, window) in [Some(SimTime::from_ms(7)), None].into_iter().enumerate() {
            for scheduler in schedulers {
                let what = (name, layer, scheduler);
                if layer.starts_with("caveat") && scheduler != "fcfs" {
                    continue;
                }
                let list = compare((10 * i + j) as u64, what, window);
                seen.iter_mut().zip(list.happened()).for_each(|(sum, n)| *sum += n);
            }
        }
    }
    let missing: Vec<_> = HAPPENED.iter().zip(seen).filter(|s| s.1 == 0).map(|s| s.0).collect();
    assert!(missing.is_empty(), "did not happen: {missing:?}; {seen:?}");
}

/// The caches of two drives, looked at at their own times, are one cache: at the end of each window what either held last.
#[test]
fn the_caches_of_drives_add_up_window_by_window() {
    let ms = SimTime::from_ms;
    let setup = MetricsSetup {
        host_blocks: Blocks(1000),
        spaces: Spaces::one(Blocks(1000)),
        adjusted: Adjusted { blocks: 8, floor_plus_one: false },
        window: Some(ms(10)),
        stall: ms(500),
        foretold: false,
        heatmap: false,
        drives: 2,
    };
    let of = |looks: &[(u64, u64)]| {
        let mut m = Metrics::new(&setup);
        m.began(ms(100));
        for &(at, used) in looks {
            let facts = Facts { cache: Some(Blocks(50)), cached: Some(Blocks(used)), ..Facts::default() };
            m.looked(ms(100 + at), &facts);
        }
        m
    };
    let mut total = of(&[]);
    total.arrived(ms(145), &HostRequest::new(HostOp::Read, Lba(0), Blocks(1)));
    total.looked_by(&[of(&[(3, 5), (4, 6), (25, 7)]), of(&[(12, 1)]), of(&[])]);
    let cached: Vec<_> = total.timeline.rows().map(|r| r.0.cached).collect();
    assert_eq!(cached, [Some(6), Some(7), Some(8), Some(8), Some(8)]);
    assert_eq!(total.fill.capacity, 100);
}

/// So much was written that it is gathered before it is noted: what is asked for has all of it.
#[test]
fn what_is_gathered_counts_as_written() {
    let mut updates = Updates::new(Blocks(1 << 30), true);
    let n = 1 << 17;
    (0..n).for_each(|i| updates.prefilled(Lba(i << 13 | 1 << 11), Blocks(8)));
    assert_eq!(updates.written_within(n as usize).unwrap().len() as u64, n);
    assert_eq!(updates.written_within(10), None);
    updates.prefilled(Lba(7), Blocks(2));
    assert_eq!(updates.written_within(usize::MAX).unwrap()[0], 7..9);
}
