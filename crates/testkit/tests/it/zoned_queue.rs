//! Host-managed drives with their write cache on, and behind schedulers that reorder: each request is judged when it comes, as a second model
//! says; reads bring what was acknowledged; and after a power cut at every media operation zones are as they were at some time since the
//! last promise.

use crate::zones_model::{BLOCK, Model, Zone, read_zone, same_zones};
use smrlab_drive::{Buffered, Observer, ScheduledDrive, TimedPlan, Wanted, assemble};
use smrlab_stl::{
    BuildContext, Dir, Executor, HostBuffer, HostRequest, Plan, Records, Sink as _, Step, zones_of,
};
use smrlab_testkit::{Order, PlainMedium, Rng, promised};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

const CACHED: &str = "tiny,write_cache=on,cache_size=64KiB,segments=8,command=200us,bus=5";
const SMALL: &str = "zoned,zone=16KiB,max_open=3,max_active=5,conventional=10%";

/// What a zone, or a block of a conventional one, was after a request.
#[derive(Clone)]
struct Version<T> {
    request: u64,
    sent: SimTime,
    is: T,
}

/// What a cut before the end of an operation leaves: zones at rest, with their bytes.
struct Left {
    at: SimTime,
    zones: Vec<Zone>,
}

/// The drive's medium, and the host's side.
struct Bench {
    layer: String,
    context: BuildContext,
    medium: PlainMedium,
    records: Records,
    exec: Executor,
    /// What requests write, or should read.
    data: BTreeMap<u64, Vec<u8>>,
    acks: BTreeMap<u64, SimTime>,
    refused: BTreeMap<u64, &'static str>,
    left: Vec<Left>,
    /// The highest number that was dispatched.
    newest: u64,
    counts: Counts,
}

/// What a run met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    cuts: u64,
    /// Writes that were acknowledged before they were on the medium.
    buffered: u64,
    /// Reads that were answered from such writes.
    answered: u64,
    /// Requests that were dispatched after a later one.
    overtaken: u64,
    refused: u64,
    /// Cuts after which a zone with a pointer was not as its last acknowledged request left it.
    fell_back: u64,
}

impl Bench {
    /// The zones as a fresh layer has them that recovers from what is there.
    fn recovered(&self) -> Vec<Zone> {
        let mut layer = smrlab_stl::build(&self.layer, &self.context).expect("built before").layer;
        layer.recover(&self.records, &mut Plan::new(true, true));
        let mut zones = Model::of(&*layer, (1, 1), true).zones;
        let mut medium = self.medium.clone();
        let reported = zones_of(&*layer);
        for (zone, told) in zones.iter_mut().zip(&reported).filter(|z| !z.0.gap) {
            let mut bytes = read_zone(&mut *layer, &mut medium, zone);
            if let Some(pointer) = told.pointer {
                let above = bytes.split_off((pointer.0 - zone.start) as usize * BLOCK);
                assert!(above.iter().all(|b| *b == 0), "something is read above a pointer");
            }
            zone.bytes = Arc::new(bytes);
        }
        zones
    }

    fn carry_out(&mut self, r: &HostRequest, e: &TimedPlan<'_>) {
        let mut data = self.data[&r.id].clone();
        let wanted = data.clone();
        let mut host = match r.op {
            HostOp::Read => HostBuffer::Read(&mut data),
            HostOp::Write | HostOp::Append => HostBuffer::Write(&data),
            _ => HostBuffer::None,
        };
        self.exec.begin();
        for step in e.plan.walk() {
            match step {
                Step::Record(record) => self.records.take(record),
                Step::Op(id, op) => {
                    if op.dir == Dir::Write {
                        let (at, zones) = (e.ends[id.0 as usize], self.recovered());
                        self.left.push(Left { at, zones });
                    }
                    let Ok(()) = self.exec.step(e.plan, id, &mut host, &mut self.medium);
                }
                _ => {}
            }
        }
        Executor::finish(e.plan, &mut host);
        assert!(r.op != HostOp::Read || data == wanted, "{}: {r:?} reads something else", self.layer);
    }
}

impl Observer for Bench {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        if let Some(why) = e.plan.refusal() {
            assert!(e.plan.ops().is_empty() && e.plan.records().is_empty());
            assert!(!self.acks.contains_key(&r.id), "{r:?} is refused after it was acknowledged");
            self.refused.insert(r.id, why.name());
            return Ok(());
        }
        self.counts.overtaken += u64::from(r.id < self.newest);
        self.newest = self.newest.max(r.id);
        self.carry_out(r, e);
        self.acks.entry(r.id).or_insert(e.served.ack);
        let later = e.ends.iter().any(|end| *end > self.acks[&r.id]);
        self.counts.buffered += u64::from(r.op == HostOp::Write && later);
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<(), Infallible> {
        self.acks.insert(write.request.id, write.served.ack);
        Ok(())
    }

    fn answered(&mut self, read: &Buffered<'_>, from: &HostRequest) -> Result<(), Infallible> {
        let r = read.request;
        let at = (r.lba.0 - from.lba.0) as usize * BLOCK;
        let held = &self.data[&from.id][at..][..self.data[&r.id].len()];
        assert!(held == self.data[&r.id], "{}: {r:?} is answered with something else", self.layer);
        self.counts.answered += 1;
        Ok(())
    }
}

/// What was sent, and how zones with a pointer, and blocks of others, were after each of these requests.
#[derive(Default)]
struct History {
    sent: Vec<(SimTime, HostRequest)>,
    zones: Vec<Vec<Version<Zone>>>,
    blocks: BTreeMap<u64, Vec<Version<Vec<u8>>>>,
}

impl History {
    fn of(model: &Model) -> Self {
        let first = |z: &Zone| vec![Version { request: u64::MAX, sent: SimTime::ZERO, is: at_rest(z) }];
        Self { zones: model.zones.iter().map(first).collect(), ..Self::default() }
    }

    fn note(&mut self, now: SimTime, r: &HostRequest, (before, after): (&Model, &Model)) {
        self.sent.push((now, *r));
        let all = before.zones.iter().zip(&after.zones).zip(&mut self.zones);
        for ((before, after), versions) in all {
            if !after.conventional() {
                // That a zone is closed for another one is nothing that a cut leaves.
                if at_rest(before) == at_rest(after) {
                    continue;
                }
                versions.push(Version { request: r.id, sent: now, is: at_rest(after) });
                continue;
            }
            for (i, (was, is)) in before.bytes.chunks(BLOCK).zip(after.bytes.chunks(BLOCK)).enumerate() {
                let lba = after.start + i as u64;
                if r.span().contains(&lba) {
                    let first = Version { request: u64::MAX, sent: SimTime::ZERO, is: was.to_vec() };
                    let versions = self.blocks.entry(lba).or_insert_with(|| vec![first]);
                    versions.push(Version { request: r.id, sent: now, is: is.to_vec() });
                }
            }
        }
    }

    /// Holds what the cuts left against what was promised by then.
    fn judge(&self, bench: &Bench) -> Counts {
        let never = SimTime(u64::MAX);
        let ack = |id: u64| bench.acks.get(&id).copied().unwrap_or(never);
        let promised = promised(&self.sent, &bench.acks, |r| r.fua);
        let mut counts = bench.counts;
        for Left { at, zones } in &bench.left {
            counts.cuts += 1;
            let holds = |id: u64| promised.get(id as usize).is_none_or(|t| t < at);
            let mut fell = false;
            for (i, (zone, versions)) in zones.iter().zip(&self.zones).enumerate() {
                if zone.conventional() {
                    for (block, bytes) in zone.bytes.chunks(BLOCK).enumerate() {
                        let Some(all) = self.blocks.get(&(zone.start + block as u64)) else { continue };
                        let may = window(all, *at, &holds).any(|v| v.is == bytes);
                        assert!(may, "block {block} of zone {i} is lost at {at:?}");
                    }
                    continue;
                }
                let may = window(versions, *at, &holds).any(|v| same(zone, &v.is));
                let seen = (zone.condition, zone.pointer());
                assert!(may, "{}: zone {i} is {seen:?} after a cut at {at:?}", bench.layer);
                let acked = versions.iter().rev().find(|v| v.request == u64::MAX || ack(v.request) < *at);
                fell |= acked.is_some_and(|v| !same(zone, &v.is) && v.is.bytes.len() > zone.bytes.len());
            }
            counts.fell_back += u64::from(fell);
        }
        counts
    }
}

/// The versions that may be there at `at`: from the last that was promised by then on.
fn window<'a, T>(
    all: &'a [Version<T>],
    at: SimTime,
    holds: &dyn Fn(u64) -> bool,
) -> impl Iterator<Item = &'a Version<T>> {
    let oldest = all.iter().rposition(|v| holds(v.request)).unwrap_or(0);
    all[oldest..].iter().filter(move |v| v.sent <= at)
}

fn at_rest(zone: &Zone) -> Zone {
    let mut zone = zone.clone();
    zone.rest();
    zone
}

/// Whether a recovered zone is as a version says: condition, pointer, bytes; what a full one was not written with reads as zeroes.
fn same(zone: &Zone, version: &Zone) -> bool {
    let mut bytes = version.bytes.to_vec();
    if zone.condition == "full" {
        bytes.resize(zone.bytes.len(), 0);
    }
    zone.condition == version.condition && *zone.bytes == bytes
}

/// A drive with a layer, behind a scheduler.
#[derive(Clone, Copy, Debug)]
struct Rig {
    drive: &'static str,
    layer: &'static str,
    scheduler: &'static str,
    requests: u64,
    seed: u64,
}

impl Rig {
    fn start(&self) -> (ScheduledDrive, Bench) {
        let mut problems = Problems::default();
        let Self { drive, layer, scheduler, .. } = *self;
        let wanted =
            Wanted { drive, layer, scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 };
        let made = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
        let made = made.unwrap_or_else(|| panic!("{self:?}: {problems:?}"));
        let model = &made.built.drive;
        let bench = Bench {
            layer: layer.to_owned(),
            context: BuildContext::new(model.clone()),
            medium: PlainMedium::new(model.geometry(), model.interference()),
            records: Records::default(),
            exec: Executor::default(),
            data: BTreeMap::new(),
            acks: BTreeMap::new(),
            refused: BTreeMap::new(),
            left: Vec::new(),
            newest: 0,
            counts: Counts::default(),
        };
        let (drive, chosen) = made.start(true, true);
        (ScheduledDrive::new(drive, &chosen), bench)
    }

    /// Sends random requests, several outstanding, and cuts the power before every operation.
    fn run(&self) -> Counts {
        let (mut drive, mut bench) = self.start();
        let mut rng = Rng::new(self.seed);
        let mut model = Model::of(drive.drive().layer(), (3, 5), true);
        let mut history = History::of(&model);
        let (mut now, mut written) = (SimTime::ZERO, (Lba(0), Blocks(8)));
        for id in 0..self.requests {
            let mut r = match rng.below(12) {
                0 => HostRequest::flush(),
                // What was written last may be in the drive's memory only.
                1 | 2 => HostRequest::new(HostOp::Read, written.0, written.1),
                3..=6 => model.next_write(&mut rng),
                _ => model.random_command(&mut rng),
            }
            .numbered(id);
            r.fua = r.op == HostOp::Write && rng.one_in(6);
            // What is discarded is as it was, whether it is in the drive's memory or not.
            if r.op == HostOp::Read && rng.one_in(5) {
                r.op = HostOp::Discard;
            }
            now += SimTime::from_us(rng.below(6_000));
            let Ok(()) = drive.wake(now, &mut bench);
            while !drive.has_room() {
                now = now.max(drive.next_decision().expect("a request waits"));
                let Ok(_) = drive.decide_once(now, &mut bench);
            }
            let mut data = vec![0; r.blocks.bytes() as usize];
            if matches!(r.op, HostOp::Write | HostOp::Append) {
                data.chunks_mut(8).for_each(|w| w.copy_from_slice(&rng.bits().to_le_bytes()));
            }
            let before = model.clone();
            let expected = model.expected(&r, &mut data);
            if r.op == HostOp::Write && expected.is_none() {
                written = (r.lba, r.blocks);
            }
            history.note(now, &r, (&before, &model));
            bench.data.insert(id, data);
            let Ok(_) = drive.submit(now, &r, &mut bench);
            assert_eq!(bench.refused.get(&id).copied(), expected, "{self:?}: {r:?}");
            same_zones(drive.drive().layer(), &model, &format!("{r:?}"));
            bench.counts.refused += u64::from(expected.is_some());
        }
        let Ok(()) = drive.drain(&mut bench);
        // In the end everything is on the medium.
        let zones = bench.recovered();
        for (zone, own) in zones.iter().zip(&model.zones).filter(|z| !z.0.gap) {
            assert!(zone.conventional() && zone.bytes == own.bytes || same(zone, &at_rest(own)), "{self:?}");
        }
        bench.left.push(Left { at: SimTime(u64::MAX), zones });
        history.judge(&bench)
    }
}

const RIG: Rig = Rig { drive: CACHED, layer: SMALL, scheduler: "fcfs", requests: 400, seed: 1 };

#[test]
fn zones_behind_a_cache_and_schedulers_do_what_a_second_model_says_and_survive_cuts() {
    let gaps = "zoned,zone=16KiB,capacity=12KiB,max_open=3,max_active=5,conventional=10%";
    let runt = "zoned,zone=16KiB,runt=4KiB,max_open=3,max_active=5,conventional=0%";
    for (i, scheduler) in ["fcfs", "sptf,depth=8", "look,depth=4", "c-look,depth=16"].into_iter().enumerate()
    {
        for (layer, requests) in [(SMALL, 400), (gaps, 200), (runt, 200)] {
            let seed = 10 + i as u64;
            let o = Rig { layer, scheduler, requests, seed, ..RIG }.run();
            println!("{layer}, {scheduler}: {o:?}");
            assert!(o.cuts > requests / 8 && o.buffered > 10 && o.refused > 20 && o.fell_back > 0, "{o:?}");
            assert_eq!(o.overtaken > 5, scheduler != "fcfs", "{scheduler}: {o:?}");
            assert_eq!(o.answered > 0, scheduler != "fcfs", "{scheduler}: {o:?}");
        }
    }
}

/// Without a cache what was acknowledged is on the medium, in whatever order a scheduler has it done.
#[test]
fn without_a_cache_nothing_that_was_acknowledged_falls_back() {
    for scheduler in ["fcfs", "sptf,depth=8", "sstf,depth=8"] {
        let o = Rig { drive: "tiny,cache=off", scheduler, seed: 5, ..RIG }.run();
        println!("{scheduler}: {o:?}");
        assert_eq!((o.fell_back, o.buffered, o.answered), (0, 0, 0), "{scheduler}: {o:?}");
        assert_eq!(o.overtaken > 5, scheduler != "fcfs", "{scheduler}: {o:?}");
    }
}

/// Three writes of one zone far out, and one of a near zone, which came last: that one goes first, and the three keep their order.
#[test]
fn other_zones_and_reads_go_past_a_zone_whose_writes_keep_their_order() {
    let (mut drive, _) =
        Rig { drive: "tiny,cache=off", scheduler: "sptf,depth=8", layer: "zoned,zone=16KiB", ..RIG }.start();
    // Behind the conventional zone.
    let (near, far) = (Lba(64), Lba(32 * 31));
    let mut order = Order::default();
    let mut send = |id: u64, op: HostOp, lba: Lba| {
        let r = HostRequest::new(op, lba, Blocks(8)).numbered(id);
        let Ok(_) = drive.submit(SimTime::ZERO, &r, &mut order);
    };
    // The first one keeps the drive busy, near the beginning, while the others come.
    send(0, HostOp::Write, near);
    (1..4).for_each(|i| send(i, HostOp::Write, far + Blocks(8 * (i - 1))));
    send(4, HostOp::Read, near);
    send(5, HostOp::Write, near + Blocks(8));
    let Ok(()) = drive.drain(&mut order);
    let at = |id| order.at(id);
    assert!(at(1) < at(2) && at(2) < at(3), "{:?}", order.ids());
    assert!(at(0) < at(4) && at(0) < at(5), "{:?}", order.ids());
    assert!(at(4) < at(1) && at(5) < at(1), "{:?}", order.ids());
}

/// A reset of all zones needs no medium, and stays behind a read far out, which came before it: it changes what is read there.
#[test]
fn a_reset_of_all_zones_waits_for_a_read_of_each() {
    let (mut drive, _) =
        Rig { drive: "tiny,cache=off", scheduler: "sptf,depth=8", layer: "zoned,zone=16KiB", ..RIG }.start();
    let (near, far) = (Lba(64), Lba(32 * 31));
    let mut order = Order::default();
    let mut all = HostRequest::new(HostOp::Zone(ZoneAction::Reset), Lba(0), Blocks(32 * 32));
    all.all_zones = true;
    let sent = [
        HostRequest::new(HostOp::Write, far, Blocks(8)),
        HostRequest::new(HostOp::Write, near, Blocks(8)),
        HostRequest::new(HostOp::Read, far, Blocks(8)),
        all,
    ];
    for (id, r) in (0..).zip(sent) {
        let Ok(_) = drive.submit(SimTime::ZERO, &r.numbered(id), &mut order);
    }
    let Ok(()) = drive.drain(&mut order);
    assert_eq!(order.at(3), 3, "{:?}", order.ids());
}
