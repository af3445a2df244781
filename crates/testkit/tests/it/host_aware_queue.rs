//! Host-aware drives with their write cache on, behind schedulers that reorder and with their cleaning in idle time: zones are as a second model says
//! in the order in which requests come, reads bring what was sent before them, and after a power cut at every media write each block holds
//! what it was at some time since the last promise.

use crate::host_aware::{BLOCK, Model, SMALL, build_on, random_command, same_zones};
use smrlab_drive::{Buffered, Observer, ScheduledDrive, TimedPlan, Wanted, assemble};
use smrlab_stl::{BuildContext, Dir, Executor, HostBuffer, HostRequest, Plan, Records, Sink as _, Step};
use smrlab_testkit::{Order, PlainMedium, Rng, promised};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

const CACHED: &str = "tiny,write_cache=on,cache_size=64KiB,segments=8,command=200us,bus=5";
/// A pause in which the drive cleans all that there is.
const LONG: SimTime = SimTime::from_ms(400);

/// What a run met.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cuts: u64,
    /// Writes that were acknowledged before they were on the medium.
    buffered: u64,
    /// Reads that were answered from such writes.
    answered: u64,
    /// Requests that were dispatched after a later one.
    overtaken: u64,
    refused: u64,
    cleaned: u64,
    /// Blocks that a cut left as they were before the last change that was acknowledged.
    fell_back: u64,
}

/// The bytes that a cut at a time leaves.
struct Left {
    at: SimTime,
    bytes: Vec<u8>,
}

/// The drive's medium, and the host's side.
struct Bench {
    context: BuildContext,
    medium: PlainMedium,
    records: Records,
    exec: Executor,
    /// Requests that are not refused.
    done: BTreeSet<u64>,
    /// What requests write, or should read.
    data: BTreeMap<u64, Vec<u8>>,
    acks: BTreeMap<u64, SimTime>,
    left: Vec<Left>,
    newest: u64,
    counts: Counts,
}

/// All bytes of a fresh layer that recovers from what is there; behind the pointers of its zones there is nothing.
fn recovered(context: &BuildContext, medium: &PlainMedium, records: &Records) -> Vec<u8> {
    let (mut layer, mut medium) = (build_on(context), medium.clone());
    let mut plan = Plan::new(true, true);
    layer.recover(records, &mut plan);
    let Ok(()) = Executor::default().run(&plan, HostBuffer::None, &mut medium);
    let mut bytes = vec![0x11; layer.host_blocks().bytes() as usize];
    let all = HostRequest::new(HostOp::Read, Lba(0), layer.host_blocks());
    plan = Plan::new(true, false);
    layer.submit(SimTime::ZERO, &all, &mut plan);
    let Ok(()) = Executor::default().run(&plan, HostBuffer::Read(&mut bytes), &mut medium);
    layer.zones(Lba(0), &mut |z| {
        assert!(!z.condition.is_open());
        let behind = z.pointer.map_or(z.end().0, |p| p.0) as usize * BLOCK..z.end().0 as usize * BLOCK;
        assert!(bytes[behind].iter().all(|b| *b == 0), "{z:?} returns what is behind its pointer");
        true
    });
    bytes
}

impl Bench {
    /// Carries out what the drive did of a plan, and cuts the power before each of its writes.
    fn carry_out(&mut self, data: &mut [u8], op: Option<HostOp>, e: &TimedPlan<'_>) {
        let written = data.to_vec();
        let mut host = match op {
            Some(HostOp::Read) => HostBuffer::Read(data),
            Some(HostOp::Write) => HostBuffer::Write(&written),
            _ => HostBuffer::None,
        };
        self.exec.begin();
        for step in e.plan.walk() {
            match step {
                Step::Record(record) if e.whole => self.records.take(record),
                Step::Op(id, op) if (id.0 as usize) < e.done => {
                    if op.dir == Dir::Write {
                        let bytes = recovered(&self.context, &self.medium, &self.records);
                        self.left.push(Left { at: e.ends[id.0 as usize], bytes });
                    }
                    let Ok(()) = self.exec.step(e.plan, id, &mut host, &mut self.medium);
                }
                _ => {}
            }
        }
        Executor::finish(e.plan, &mut host);
    }
}

impl Observer for Bench {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        let mut data = self.data[&r.id].clone();
        let (sent, done) = (data.clone(), self.done.contains(&r.id));
        assert_eq!(e.plan.refusal().is_none(), done, "{r:?}");
        self.acks.entry(r.id).or_insert(e.served.ack);
        if !done {
            assert!(e.plan.ops().is_empty() && e.plan.records().is_empty());
            self.counts.refused += 1;
            return Ok(());
        }
        self.counts.overtaken += u64::from(r.id < self.newest);
        self.newest = self.newest.max(r.id);
        self.carry_out(&mut data, Some(r.op), e);
        assert!(data == sent, "{r:?} reads something else than was sent before it");
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
        assert!(held == self.data[&r.id], "{r:?} is answered with something else");
        self.counts.answered += 1;
        Ok(())
    }

    fn background(&mut self, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.counts.cleaned += u64::from(e.whole);
        self.carry_out(&mut [], None, e);
        Ok(())
    }
}

/// What a block was after a request that changed it.
struct Version {
    request: u64,
    sent: SimTime,
    is: Vec<u8>,
}

/// What was sent, and what each of these requests made of its blocks.
struct History {
    sent: Vec<(SimTime, HostRequest)>,
    blocks: Vec<Vec<Version>>,
}

impl History {
    fn of(blocks: Blocks) -> Self {
        let first = || vec![Version { request: u64::MAX, sent: SimTime::ZERO, is: vec![0; BLOCK] }];
        Self { sent: Vec::new(), blocks: (0..blocks.0).map(|_| first()).collect() }
    }

    fn note(&mut self, now: SimTime, r: &HostRequest, bytes: &[u8]) {
        self.sent.push((now, *r));
        if matches!(r.op, HostOp::Write | HostOp::Discard | HostOp::Zone(ZoneAction::Reset)) {
            // A reset is one of whole zones, whichever of their blocks it names.
            let all = 0..self.blocks.len() as u64;
            for lba in if r.op == HostOp::Write || r.op == HostOp::Discard { r.span() } else { all } {
                let is = bytes[lba as usize * BLOCK..][..BLOCK].to_vec();
                let versions = &mut self.blocks[lba as usize];
                if r.op == HostOp::Write || versions.last().is_some_and(|v| v.is != is) {
                    versions.push(Version { request: r.id, sent: now, is });
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
        for Left { at, bytes } in &bench.left {
            counts.cuts += 1;
            for (lba, (got, all)) in bytes.chunks(BLOCK).zip(&self.blocks).enumerate() {
                let held = |v: &Version| v.request == u64::MAX || promised[v.request as usize] < *at;
                let oldest = all.iter().rposition(held).expect("the first one");
                let may = all[oldest..].iter().any(|v| v.sent <= *at && v.is == got);
                assert!(may, "block {lba} is lost at {at:?}");
                let acked = all.iter().rev().find(|v| v.request == u64::MAX || ack(v.request) < *at);
                counts.fell_back += u64::from(acked.is_some_and(|v| v.is != got && v.sent < *at));
            }
        }
        counts
    }
}

fn start(drive: &str, scheduler: &str) -> (ScheduledDrive, Bench) {
    let mut problems = Problems::default();
    let wanted =
        Wanted { drive, layer: SMALL, scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 };
    let made = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    let made = made.unwrap_or_else(|| panic!("{drive}, {scheduler}: {problems:?}"));
    let model = &made.built.drive;
    let context = BuildContext::new(model.clone());
    let bench = Bench {
        medium: PlainMedium::new(model.geometry(), model.interference()),
        records: Records::default(),
        exec: Executor::default(),
        done: BTreeSet::new(),
        context,
        data: BTreeMap::new(),
        acks: BTreeMap::new(),
        left: Vec::new(),
        newest: 0,
        counts: Counts::default(),
    };
    let (drive, chosen) = made.start(true, true);
    (ScheduledDrive::new(drive, &chosen), bench)
}

/// Sends random requests, several outstanding, and cuts the power before every write of the medium.
fn run(drive: &str, scheduler: &str, (requests, seed): (u64, u64)) -> Counts {
    let (mut drive, mut bench) = start(drive, scheduler);
    let (mut rng, mut arrival) = (Rng::new(seed), Model::of(&*build_on(&bench.context)));
    let mut history = History::of(drive.drive().layer().host_blocks());
    let (mut now, mut written) = (SimTime::ZERO, (Lba(0), Blocks(8)));
    for id in 0..requests {
        let mut r = match rng.below(12) {
            0 => HostRequest::flush(),
            1 | 2 => HostRequest::new(HostOp::Read, written.0, written.1),
            _ => random_command(&arrival, &mut rng),
        }
        .numbered(id);
        r.fua = r.op == HostOp::Write && rng.one_in(6);
        now += if rng.one_in(30) { LONG } else { SimTime::from_us(rng.below(6_000)) };
        let Ok(()) = drive.wake(now, &mut bench);
        while !drive.has_room() {
            now = now.max(drive.next_decision().expect("a request waits"));
            let Ok(_) = drive.decide_once(now, &mut bench);
        }
        let mut data = vec![0; r.blocks.bytes() as usize];
        if r.op == HostOp::Write {
            data.chunks_mut(8).for_each(|w| w.copy_from_slice(&rng.bits().to_le_bytes()));
            written = (r.lba, r.blocks);
        }
        // Requests of the same blocks keep their order, so bytes are those of the order in which requests come.
        if arrival.go(&r, &mut data) {
            bench.done.insert(id);
        }
        history.note(now, &r, &arrival.bytes);
        bench.data.insert(id, data);
        let Ok(_) = drive.submit(now, &r, &mut bench);
        same_zones(drive.drive().layer(), &arrival, &format!("{r:?}"));
    }
    let Ok(()) = drive.drain(&mut bench);
    let bytes = recovered(&bench.context, &bench.medium, &bench.records);
    assert!(bytes == arrival.bytes, "in the end everything is on the medium");
    bench.left.push(Left { at: SimTime(u64::MAX), bytes });
    history.judge(&bench)
}

#[test]
fn host_aware_zones_behind_a_cache_and_schedulers_do_what_a_second_model_says_and_survive_cuts() {
    for (seed, scheduler) in (1..).zip(["fcfs", "sptf,depth=8", "look,depth=4", "c-look,depth=16"]) {
        let o = run(CACHED, scheduler, (300, seed));
        println!("{scheduler}: {o:?}");
        assert!(
            o.cuts > 100 && o.buffered > 10 && o.refused > 2 && o.fell_back > 0 && o.cleaned > 2,
            "{o:?}"
        );
        assert_eq!((o.overtaken > 5, o.answered > 0), (scheduler != "fcfs", scheduler != "fcfs"), "{o:?}");
    }
}

/// Without a cache of the drive's there is the layer's own memory: what was promised is on the medium here, too.
#[test]
fn host_aware_zones_behind_schedulers_without_a_cache() {
    for scheduler in ["fcfs", "sptf,depth=8"] {
        let o = run("tiny,cache=off", scheduler, (300, 9));
        println!("{scheduler}: {o:?}");
        assert_eq!(
            (o.buffered, o.answered, o.overtaken > 5),
            (0, 0, scheduler != "fcfs"),
            "{scheduler}: {o:?}"
        );
    }
}

/// A write, and then a reset of its zone that names another block of it and needs no medium: the reset waits for the write, though the scheduler
/// has others change places.
#[test]
fn a_zone_command_waits_for_what_is_in_its_zone() {
    let (mut drive, _) = start("tiny,cache=off", "sptf,depth=8");
    let mut zones = Vec::new();
    drive.drive().layer().zones(Lba(0), &mut |z| {
        zones.push(z.start);
        true
    });
    let (near, far) = (zones[2], zones[zones.len() - 3]);
    let mut order = Order::default();
    let sent = [
        HostRequest::new(HostOp::Write, near, Blocks(8)),
        HostRequest::new(HostOp::Write, far + Blocks(8), Blocks(8)),
        HostRequest::new(HostOp::Zone(ZoneAction::Reset), far, Blocks(1)),
    ];
    for (id, r) in (0..).zip(sent) {
        let Ok(_) = drive.submit(SimTime::ZERO, &r.numbered(id), &mut order);
    }
    let Ok(()) = drive.drain(&mut order);
    let at = |id| order.at(id);
    assert!(at(1) < at(0), "others change places: {:?}", order.ids());
    assert!(at(1) < at(2), "{:?}", order.ids());
}
