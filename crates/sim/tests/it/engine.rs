//! The engine by formula: what a request takes, who is served next, how load and backlog are told.

use serde_json::Value;
use smrlab_array::{ArrayContext, ArrayObserver, EventLoop, Member, MemberId, Schedule};
use smrlab_disk::{DriveModel, TrackNo};
use smrlab_drive::{Drive as Simulated, DriveSetup, Observer, ScheduledDrive, TimedPlan, sched};
use smrlab_sim::engine::{self, Arrivals, Feed};
use smrlab_sim::{Control, RunError, Spec, run};
use smrlab_stl::{BuildContext, HostRequest};
use smrlab_trace::{Memory, Record, Steps};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::convert::Infallible;
use std::sync::Arc;

fn tiny() -> Arc<DriveModel> {
    Arc::new(smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap())
}

/// Requests in the order in which they are served: id, arrival, start, acknowledgement.
#[derive(Default)]
struct Order(Vec<(u64, SimTime, SimTime, SimTime)>);

impl Observer for Order {
    type Error = RunError;
    fn dispatched(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        executed: &TimedPlan<'_>,
    ) -> Result<(), RunError> {
        self.0.push((request.id, arrival, executed.served.start, executed.served.ack));
        Ok(())
    }
}

fn record(arrival: u64, op: HostOp, lba: u64, blocks: u32) -> Record {
    Record { arrival: SimTime(arrival), op, lba: Lba(lba), blocks, device: 0, stream: 0, fua: false }
}

/// Serves records on the tiny drive without shingling.
fn serve(records: Vec<Record>, arrivals: Arrivals, scheduler: &str) -> (Order, Option<u64>) {
    let built = smrlab_stl::build("cmr", &BuildContext::new(tiny())).unwrap();
    let host = built.layer.host_blocks();
    let mechanics = built.drive.mechanics(Some(smrlab_disk::Model::Full)).unwrap();
    let setup = DriveSetup { stable_locations: true, ..DriveSetup::default() };
    let drive = Simulated::new(built.layer, mechanics, setup);
    let mut feed = Feed::new(Box::new(Memory::new(records)), Steps::default(), host).unwrap();
    let mut order = Order::default();
    let chosen = sched::parse(scheduler).unwrap();
    let backlog = engine::run(
        &mut ScheduledDrive::new(drive, &chosen),
        &mut feed,
        arrivals,
        &mut order,
        &Control::new(),
    )
    .unwrap();
    (order, backlog)
}

#[test]
fn times_are_those_of_the_mechanics_to_the_nanosecond() {
    let mut mechanics = tiny().mechanics(Some(smrlab_disk::Model::Full)).unwrap();
    let places = [(0, 100u64), (0, 7), (50_000_000, 300)];
    let records = places.iter().map(|&(at, lba)| record(at, HostOp::Read, lba, 8)).collect();
    let (order, backlog) = serve(records, Arrivals::Trace, "fcfs");
    let mut free = SimTime::ZERO;
    for (&(at, lba), served) in places.iter().zip(&order.0) {
        let start = free.max(SimTime(at));
        free = mechanics.service(start, Dir::Read, Pba(lba), Blocks(8));
        assert_eq!((served.2, served.3), (start, free));
    }
    assert_eq!(backlog, Some(2));
}

#[test]
fn a_closed_loop_sends_after_completions() {
    let think = SimTime::from_ms(3);
    let records: Vec<_> = (0..20).map(|i| record(0, HostOp::Read, i * 37 % 500, 8)).collect();
    for scheduler in ["fcfs", "sptf,depth=4"] {
        let (order, _) = serve(records.clone(), Arrivals::Closed { depth: 4, think }, scheduler);
        let mut by_id = order.0.clone();
        by_id.sort_unstable();
        for (i, served) in by_id.iter().enumerate().skip(4) {
            assert_eq!(served.1, order.0[i - 4].3 + think, "{scheduler}: the {i}-th");
        }
    }
}

#[test]
fn pauses_of_a_trace_follow_completions() {
    let times = [5_u64, 5, 2_000_005, 9_000_000];
    let records = (0..).zip(times).map(|(i, at)| record(at, HostOp::Read, i * 100, 8)).collect();
    let (order, backlog) = serve(records, Arrivals::Pauses, "fcfs");
    let (mut done, mut before) = (SimTime::ZERO, 0);
    for (served, at) in order.0.iter().zip(times) {
        assert_eq!(served.1, done + SimTime(at - before));
        (done, before) = (served.3, at);
    }
    assert_eq!((order.0.len(), backlog), (4, None));
}

/// A request that comes when background work is due goes first: nothing is begun that it would have to end.
#[test]
fn background_work_begins_after_its_time_not_at_it() {
    let layer = "disk-cache,band=16blk,cache=20%,idle=10ms";
    let built = smrlab_stl::build(layer, &BuildContext::new(tiny())).unwrap();
    let mechanics = built.drive.mechanics(Some(smrlab_disk::Model::Full)).unwrap();
    let mut drive = Simulated::new(built.layer, mechanics, DriveSetup::default());
    let end = drive
        .dispatch(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(0), Blocks(4)), &mut ())
        .served
        .end;
    let due = end + SimTime::from_ms(10);
    assert_eq!(drive.next_wake(), Some(due), "idle time counts from the end of the work");
    assert!(drive.next_step(due, &mut ()).is_none() && drive.interrupt().is_none());
    assert!(drive.next_step(SimTime(due.0 + 1), &mut ()).is_none(), "it takes longer than that");
    assert!(drive.interrupt().is_some_and(|step| step.began == due && step.done == 1 && !step.whole));
}

/// Background steps, by when they began: operations that were carried out, and whether those were all.
#[derive(Default)]
struct Background(Vec<(SimTime, usize, bool)>);

impl Observer for Background {
    type Error = Infallible;
    fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.0.push((step.began, step.done, step.whole));
        Ok(())
    }
}

impl ArrayObserver for Background {}

/// An array is left while its drive cleans in idle time: whoever follows the data is told of the operation that the drive has done,
/// once, before the state is taken.
#[test]
fn what_a_drive_has_done_in_idle_time_is_told_when_its_array_winds_up() {
    for scheduler in ["fcfs", "sptf"] {
        let layer = "disk-cache,band=16blk,cache=20%,idle=10ms";
        let built = smrlab_stl::build(layer, &BuildContext::new(tiny())).unwrap();
        let sizes = [built.layer.host_blocks()];
        let mechanics = built.drive.mechanics(Some(smrlab_disk::Model::Full)).unwrap();
        let drive = Simulated::new(built.layer, mechanics, DriveSetup::default());
        let member = Member::of_drive(drive, &sched::parse(scheduler).unwrap());
        let spanning = smrlab_array::parse("spanning,disks=1").unwrap();
        let array = spanning.build(&ArrayContext::new(&sizes)).unwrap().array;
        let mut event_loop = EventLoop::new(array, vec![member], Vec::new(), Schedule::default(), false);
        let mut told = Background::default();
        let write = HostRequest::new(HostOp::Write, Lba(0), Blocks(4));
        event_loop.submit(SimTime::ZERO, &write, &mut told).unwrap();
        event_loop.finish(&mut told).unwrap();
        let due = event_loop.drive_mut(MemberId(0)).unwrap().next_wake().unwrap();
        assert!(!event_loop.idle_step(SimTime(due.0 + 1), &mut told).unwrap(), "it takes longer than that");
        assert_eq!(told.0, []);
        (0..2).for_each(|_| event_loop.wind_up(&mut told).unwrap());
        assert_eq!(told.0, [(due, 1, false)], "{scheduler}");
    }
}

fn ids(order: &Order) -> Vec<u64> {
    order.0.iter().map(|o| o.0).collect()
}

#[test]
fn schedulers_choose_by_their_rule() {
    let drive = tiny();
    let at = |track: u64| drive.geometry().track_start(TrackNo(track)).0;
    // The first request takes the drive while the others arrive; the head then stands on track 20.
    let tracks = [20, 30, 18, 40, 10, 21];
    let reads: Vec<_> =
        tracks.iter().enumerate().map(|(i, &t)| record(i as u64, HostOp::Read, at(t), 1)).collect();
    for (scheduler, want) in [
        ("fcfs", [0, 1, 2, 3, 4, 5]),
        ("sstf", [0, 5, 2, 4, 1, 3]),
        ("look", [0, 5, 1, 3, 2, 4]),
        ("c-look", [0, 5, 1, 3, 4, 2]),
    ] {
        let (order, backlog) = serve(reads.clone(), Arrivals::Trace, scheduler);
        assert_eq!(ids(&order), want, "{scheduler}");
        assert_eq!(backlog, Some(6), "{scheduler}");
    }
    let (old, _) = serve(reads.clone(), Arrivals::Trace, "sstf,max_wait=1us");
    assert_eq!(ids(&old), [0, 1, 2, 3, 4, 5], "all are overdue");
    let (narrow, _) = serve(reads, Arrivals::Trace, "sstf,depth=2");
    assert_eq!(ids(&narrow), [0, 2, 1, 3, 5, 4], "of two at a time");
}

#[test]
fn sptf_always_takes_the_soonest() {
    let drive = tiny();
    let blocks = drive.geometry().blocks().0;
    let reads: Vec<_> =
        (0..40u64).map(|i| record(0, HostOp::Read, i * 7919 * 13 % (blocks - 8), 8)).collect();
    let (order, _) = serve(reads.clone(), Arrivals::Trace, "sptf,depth=64");
    let mut mechanics = drive.mechanics(Some(smrlab_disk::Model::Full)).unwrap();
    let mut left: Vec<u64> = (0..40).collect();
    for &(id, _, start, ack) in &order.0 {
        let time = |id: u64| {
            let target = mechanics.target(Pba(reads[id as usize].lba.0));
            (mechanics.positioning(start, Dir::Read, &target), id)
        };
        let soonest = left.iter().copied().min_by_key(|&i| time(i)).unwrap();
        assert_eq!(id, soonest);
        left.retain(|&i| i != id);
        assert_eq!(ack, mechanics.service(start, Dir::Read, Pba(reads[id as usize].lba.0), Blocks(8)));
    }
    assert!(left.is_empty());
}

#[test]
fn writes_do_not_overtake_what_they_overlap() {
    let drive = tiny();
    let at = |track: u64| drive.geometry().track_start(TrackNo(track)).0;
    let records = vec![
        record(0, HostOp::Read, at(20), 1),
        record(1, HostOp::Read, at(60), 8),
        record(2, HostOp::Write, at(60) + 7, 8),
        record(3, HostOp::Read, at(60) + 14, 1),
        record(4, HostOp::Read, at(21), 1),
        record(5, HostOp::Flush, 0, 0),
        record(6, HostOp::Read, at(20), 1),
    ];
    for scheduler in ["sstf", "look", "c-look", "sptf"] {
        let order = ids(&serve(records.clone(), Arrivals::Trace, scheduler).0);
        let place = |id: u64| order.iter().position(|&o| o == id).unwrap();
        assert!(place(1) < place(2) && place(2) < place(3), "{scheduler}: {order:?}");
        assert!((1..5).all(|i| place(i) < place(5)) && place(5) < place(6), "{scheduler}: {order:?}");
    }
}

/// The newer one is nearer to the head, and ends with the first block of the older one.
#[test]
fn requests_that_overlap_by_one_block_from_below_keep_their_order() {
    let drive = tiny();
    let at = |track: u64| drive.geometry().track_start(TrackNo(track)).0;
    for (blocks, swaps) in [(4, false), (3, true)] {
        let records = vec![
            record(0, HostOp::Read, at(20), 1),
            record(1, HostOp::Write, at(61), 8),
            record(2, HostOp::Read, at(61) - 3, blocks),
        ];
        for scheduler in ["sstf", "look", "c-look"] {
            let order = ids(&serve(records.clone(), Arrivals::Trace, scheduler).0);
            assert_eq!(order, if swaps { [0, 2, 1] } else { [0, 1, 2] }, "{scheduler}, {blocks} blocks");
        }
    }
}

/// Taking a request moves the last one to its place in the list, and still the older of two equals goes first.
#[test]
fn of_equals_the_oldest_is_served_first() {
    let drive = tiny();
    let at = |track: u64| drive.geometry().track_start(TrackNo(track)).0;
    let places = [at(20), at(21), at(30), at(30), at(30), at(30)];
    let records: Vec<_> =
        places.iter().enumerate().map(|(i, &lba)| record(i as u64, HostOp::Read, lba, 1)).collect();
    for scheduler in ["sstf", "look", "c-look", "sptf", "sstf,max_wait=1us"] {
        let order = ids(&serve(records.clone(), Arrivals::Trace, scheduler).0);
        assert_eq!(order, [0, 1, 2, 3, 4, 5], "{scheduler}");
    }
}

/// A layer moves what other requests wait for; the queue asserts that it knows where they start.
#[test]
fn places_are_looked_up_again_after_a_layer_moved_them() {
    for layer in smrlab_stl::LAYERS.iter().filter(|e| e.capabilities.locates).flat_map(|e| e.texts()) {
        let text = format!(
            "drive = 'tiny'\nmechanics = 'full'\nlayer = '{layer}'\nscheduler = 'sptf,depth=24'\n\
             trace = 'synth:bursty,requests=600,size=2KiB,write=60%,span=300blk'\nprefill = '100%,order=random'"
        );
        let host = &json(&text)["host"];
        assert_eq!(host["reads"].as_u64().unwrap() + host["writes"].as_u64().unwrap(), 600, "{layer}");
    }
}

/// The same while the drive cleans in pauses that are shorter than a step: requests come in the middle of one.
#[test]
fn nobody_waits_for_what_background_work_moves() {
    let layers = [
        "disk-cache,band=24blk,cache=10%,idle=5ms",
        "persistent-cache,map_trigger=6,map_limit=9,memory=16blk,slot=0.1,packet=6blk,idle=5ms",
    ];
    for layer in layers {
        let text = format!(
            "drive = 'tiny'\nmechanics = 'full'\nlayer = '{layer}'\nscheduler = 'sptf,depth=24'\n\
             trace = 'synth:uniform,requests=4000,size=2KiB,write=60%,span=200blk,interarrival=exp(25ms)'"
        );
        let share = json(&text)["media"]["background_share"].as_f64().unwrap();
        assert!(share > 0.0, "{layer}: nothing is done in pauses");
    }
}

fn json(text: &str) -> Value {
    run(&Spec::from_toml(text).unwrap(), &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}")).json
}

#[test]
fn overload_is_said_with_a_remedy_that_works() {
    let text = |scheduler: &str, scale: f64| {
        format!(
            "drive = 'tiny'\nmechanics = 'full'\nlayer = 'cmr'\nscheduler = '{scheduler}'\nscale_time = {scale}\n\
             trace = 'synth:uniform,requests=20000,size=4KiB,interarrival=2ms'"
        )
    };
    for scheduler in ["fcfs", "sstf,depth=8"] {
        let r = json(&text(scheduler, 1.0));
        let load = r["offered_load"].as_f64().unwrap();
        assert!(load > 1.0, "{load}");
        let backlog = r["backlog_max"].as_f64().unwrap();
        let expected = 20_000.0 * (1.0 - 1.0 / load);
        assert!((backlog / expected - 1.0).abs() < 0.05, "{scheduler}: {backlog} for {expected}");
        let scale = r["overload"]["suggested_scale_time"].as_f64().unwrap();
        let calm = json(&text(scheduler, scale));
        assert!(calm.get("overload").is_none(), "{:#}", calm);
        assert!(calm["offered_load"].as_f64().unwrap() < 0.8);
    }
}

#[test]
fn results_are_the_same_on_any_number_of_threads() {
    let specs: Vec<Spec> = ["cmr", "rmw", "static-14R(23)", "cmr"]
        .iter()
        .enumerate()
        .map(|(i, layer)| {
            let scheduler = if i == 3 { "sptf,depth=16" } else { "fcfs" };
            let text = format!(
                "drive = 'tiny'\nlayer = '{layer}'\nscheduler = '{scheduler}'\nwrap = 'capacity'\nseed = 5\n\
                 trace = 'synth:uniform,requests=3000,size=exp(16KiB)'\nprefill = '50%,order=random'"
            );
            Spec::from_toml(&text).unwrap()
        })
        .collect();
    let texts = |threads: usize| -> Vec<String> {
        let one = |spec: &Spec| {
            let r = run(spec, &Control::new(), None).unwrap();
            format!("{}\n{:?}", r.json, r.tables)
        };
        std::thread::scope(|scope| {
            let share = specs.len().div_ceil(threads);
            let all = |s: &[Spec]| s.iter().map(one).collect::<Vec<_>>();
            let work: Vec<_> = specs.chunks(share).map(|s| scope.spawn(move || all(s))).collect();
            work.into_iter().flat_map(|w| w.join().unwrap()).collect()
        })
    };
    let once = texts(1);
    assert_eq!(once, texts(1), "twice");
    assert_eq!(once, texts(2), "on two threads");
    assert_ne!(once[0], once[3]);
}

#[test]
fn compared_runs_see_the_same_requests() {
    let base = Spec::new("synth:zipf,requests=2000", "tiny", "cmr");
    let base = Spec { wrap: Some("capacity".to_owned()), ..base };
    let layers: Vec<String> = ["cmr", "rmw", "static-1234"].map(str::to_owned).to_vec();
    let specs = smrlab_sim::compared::compared(&base, &layers, &|_, spec| smrlab_sim::resolve(spec)).unwrap();
    let digest = |s: &Spec| run(s, &Control::new(), None).unwrap().json["provenance"]["trace_digest"].clone();
    assert_eq!(digest(&specs[0]), digest(&specs[1]));
    assert_eq!(digest(&specs[0]), digest(&specs[2]));
    // The smallest host space counts, wherever it stands.
    let smallest = specs[0].host_blocks;
    for layers in [[&layers[0], &layers[2]], [&layers[2], &layers[0]]] {
        let layers = layers.map(Clone::clone);
        let of = |_, spec: &Spec| smrlab_sim::resolve(spec);
        let specs = smrlab_sim::compared::compared(&base, &layers, &of).unwrap();
        assert_eq!([specs[0].host_blocks, specs[1].host_blocks], [smallest, smallest], "{layers:?}");
    }
    let unknown = ["cmmr".to_owned(), "rmww".to_owned()];
    let e =
        smrlab_sim::compared::compared(&base, &unknown, &|_, spec| smrlab_sim::resolve(spec)).unwrap_err();
    assert!(e.to_string().contains("'cmr'?") && e.to_string().contains("'rmw'?"), "{e}");
}
