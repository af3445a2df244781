//! What arrays and layers do with one random load each, as it is on [record](smrlab_testkit::record) in `on_record.txt`: which member or media
//! operations, when, why, and what was counted. Anew: `SMRLAB_RECORD=FILE cargo test -p smrlab-testkit --test it on_record`.

use crate::arrays::{ARRAYS, losses};
use crate::zoned_arrays::ZONED;
use smrlab_array::{
    ArrayContext, ArrayObserver, EventLoop, Member, MemberId, MemberOp, MemberPlan, Schedule, Ssd, counted,
};
use smrlab_disk::{DriveModel, Model};
use smrlab_drive::{Drive, DriveSetup, Observer, TimedPlan, Wanted, assemble, sched};
use smrlab_stl::{BuildContext, HostRequest, zones_of};
use smrlab_testkit::record::differs;
use smrlab_testkit::{Digest, Rng, drives, layers};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

const ON_RECORD: &str = include_str!("on_record.txt");

/// Caches that are full often, and count what they hold down.
pub(crate) const FULL_CACHES: &[&str] = &[
    "striped,disks=3,chunk=4blk,ssd_write=60blk,ssd_page=2blk,ssd_age=7,ssd_write_policy=lru-lfu",
    "striped,disks=2,chunk=4blk,ssd_read=30blk,ssd_page=1blk,ssd_read_policy=arc",
    "full-stripe,disks=4,chunk=2blk,segment=6,stripes=wait,ssd_write=120blk,ssd_page=2blk",
    "striped,disks=2,chunk=4blk,ssd_write=60blk,ssd_read=30blk,ssd_page=2blk,bus=1",
];

/// What happens, as one number and two counts.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) digest: Digest,
    pub(crate) asked: u64,
    pub(crate) operations: u64,
}

impl Seen {
    fn carried_out(&mut self, executed: &TimedPlan<'_>) {
        for (op, end) in executed.plan.ops().iter().zip(executed.ends) {
            self.operations += 1;
            self.digest.note(&[op.pba.0, op.blocks.0, op.dir as u64, op.cause as u64, end.0]);
        }
    }

    fn asked(&mut self, at: SimTime, op: &MemberOp) {
        self.asked += 1;
        let r = &op.request;
        self.digest.note(&[at.0, op.member.0.into(), r.lba.0, r.blocks.0, r.why as u64, r.fua.into()]);
        self.digest.note_debug(&r.op);
    }
}

impl Observer for Seen {
    type Error = Infallible;

    fn dispatched(
        &mut self,
        _: SimTime,
        _: &HostRequest,
        executed: &TimedPlan<'_>,
    ) -> Result<(), Infallible> {
        self.carried_out(executed);
        Ok(())
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.carried_out(step);
        Ok(())
    }
}

impl ArrayObserver for Seen {
    fn issued(
        &mut self,
        at: SimTime,
        op: &MemberOp,
        _: &MemberPlan,
        executed: Option<&TimedPlan<'_>>,
    ) -> Result<(), Infallible> {
        self.asked(at, op);
        executed.into_iter().for_each(|executed| self.carried_out(executed));
        Ok(())
    }

    fn sent(&mut self, at: SimTime, op: &MemberOp, _: u64, _: &MemberPlan) {
        self.asked(at, op);
    }

    fn cleaned(&mut self, kind: &'static str, from: SimTime, to: SimTime, relocated: u64) {
        self.digest.note(&[kind.len() as u64, from.0, to.0, relocated]);
    }
}

fn disk(layer: &str, context: &BuildContext) -> Drive {
    let built = smrlab_stl::build(layer, context).unwrap_or_else(|e| panic!("{e}"));
    let mechanics = built.drive.mechanics(Some(Model::Full)).expect("a drive of the kit");
    let stable_locations = built.capabilities.stable_location;
    Drive::new(built.layer, mechanics, DriveSetup { wants_data: true, wants_records: true, stable_locations })
}

/// `text` over disks of this layer behind a scheduler, of which one dies and is replaced where the array survives that.
fn event_loop(text: &str, layer: &str, scheduler: &str, drive: &Arc<DriveModel>) -> Option<EventLoop> {
    let context = BuildContext::new(Arc::clone(drive));
    smrlab_stl::build(layer, &context).ok()?;
    let chosen = smrlab_array::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let disks: Vec<_> = (0..chosen.disks).map(|at| disk(chosen.layer_of(at, layer), &context)).collect();
    let sizes: Vec<Blocks> = disks.iter().map(|d| d.layer().host_blocks()).collect();
    let zones: Vec<_> = disks.iter().map(|d| zones_of(d.layer())).collect();
    let built = chosen.build(&ArrayContext::new(&sizes).zoned(&zones)).unwrap_or_else(|e| panic!("{e}"));
    let scheduler = sched::parse(scheduler).unwrap();
    let flash = |blocks| Member::Ssd(Ssd::new(SimTime::from_us(20), 3000, blocks));
    let members = disks.into_iter().map(|disk| Member::of_drive(disk, &scheduler));
    let members = members.chain(built.ssds.iter().map(|ssd| flash(ssd.blocks))).collect();
    let lost = MemberId(1);
    let fails =
        if chosen.disks > 1 && losses(text) > 0 { vec![(lost, SimTime::from_ms(1500))] } else { Vec::new() };
    let spares =
        fails.iter().map(|_| Member::of_drive(disk(chosen.layer_of(1, layer), &context), &scheduler));
    let spares = spares.collect();
    let schedule = Schedule { fails, replace_after: Some(SimTime::from_ms(400)), ..Schedule::default() };
    Some(EventLoop::new(built.array, members, spares, schedule, true))
}

/// A drive with all that its text says.
fn of_drive(drive: &str, layer: &str, scheduler: &str) -> EventLoop {
    let wanted = Wanted { drive, layer, scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 };
    let mut problems = Problems::default();
    let made = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    let (drive, scheduler) =
        made.unwrap_or_else(|| panic!("{drive}, {layer}: {problems:?}")).start(true, true);
    let array = smrlab_array::parse("single").unwrap();
    let built = array.build(&ArrayContext::new(&[drive.layer().host_blocks()])).unwrap();
    EventLoop::new(
        built.array,
        vec![Member::of_drive(drive, &scheduler)],
        Vec::new(),
        Schedule::default(),
        true,
    )
}

/// What it does with so many requests: bursts, pauses, and at last all that it has begun.
fn said(event_loop: EventLoop, requests: u64) -> String {
    said_of(event_loop, requests, false)
}

/// As [`said`]; `on`: many requests go on where the one before ended, or end there.
fn said_of(mut event_loop: EventLoop, requests: u64, on: bool) -> String {
    let (mut rng, mut seen, mut now) = (Rng::new(97), Seen::default(), SimTime::ZERO);
    let space = event_loop.array().host_blocks().0;
    let space = if on { space.min(20_000) } else { space };
    let (mut done, mut refused, mut last) = (0, 0, 0);
    for id in 0..requests {
        let pause = match rng.below(40) {
            0 => 3_000_000_000,
            1..=9 => 40_000_000,
            _ => 700_000,
        };
        now += SimTime(1 + rng.below(pause));
        let op = match rng.below(20) {
            0..=11 => HostOp::Write,
            12..=17 => HostOp::Read,
            18 => HostOp::Discard,
            _ => HostOp::Flush,
        };
        let most = space.min(if rng.one_in(9) { 40 } else { 7 });
        let blocks = 1 + rng.below(most);
        let near = if rng.one_in(3) { space } else { space.div_ceil(4).max(blocks) };
        let lba = rng.below(near - blocks + 1);
        let lba = match if on { rng.below(6) } else { 5 } {
            0..=2 if last + blocks <= space => last,
            3 => last.saturating_sub(blocks),
            _ => lba,
        };
        last = lba + blocks;
        let request = match op {
            HostOp::Flush => HostRequest::flush(),
            _ => HostRequest::new(op, Lba(lba), Blocks(blocks)),
        };
        let request = HostRequest { fua: op == HostOp::Write && rng.one_in(16), ..request.numbered(id) };
        let Ok(()) = event_loop.advance(now, &mut seen);
        let Ok(()) = event_loop.submit(now, &request, &mut seen);
    }
    let Ok(()) = event_loop.finish(&mut seen);
    while let Some(d) = event_loop.next_done() {
        done += 1;
        refused += u64::from(d.refusal.is_some());
        seen.digest.note(&[d.request.id, d.arrival.0, d.start.0, d.ack.0, d.ops, d.refusal.is_some().into()]);
    }
    let array = event_loop.array();
    let mut allocated = 0;
    array.allocated(Lba(0), Blocks(space), &mut |r| allocated += r.end - r.start);
    let mut out = format!(
        "{done} done {refused} refused; {} asked, {} operations, {} ns, {}; {allocated} of {space} allocated, {} bytes;",
        seen.asked,
        seen.operations,
        event_loop.now().0,
        seen.digest,
        array.map_bytes(),
    );
    let disks: Vec<_> = event_loop
        .members()
        .filter_map(Member::drive)
        .take(1)
        .map(|d| smrlab_stl::counted(d.layer()))
        .collect();
    let mut bytes = 0;
    event_loop.members().filter_map(Member::drive).for_each(|d| bytes += d.layer().map_bytes());
    for counted in [counted(array)].into_iter().chain(disks) {
        counted.iter().for_each(|(name, n)| _ = write!(out, " {name}={n}"));
    }
    _ = write!(out, " layers={bytes}");
    for buffer in event_loop.members().filter_map(Member::drive).filter_map(Drive::buffer_counters) {
        _ = write!(out, " {buffer:?}");
    }
    out
}

#[test]
fn arrays_do_what_is_on_record() {
    let drive = drives::plain(60, 8, 2, 4);
    let mut wrong = Vec::new();
    for (i, text) in ARRAYS.iter().chain(FULL_CACHES).enumerate() {
        for scheduler in ["fcfs", "c-look,depth=8"] {
            let layer = if i % 2 == 0 { "cmr" } else { "rmw" };
            let own = event_loop(text, layer, scheduler, &drive).expect("fits");
            wrong.extend(differs(ON_RECORD, &format!("{text} / {layer}, {scheduler}"), &said(own, 500)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arrays_of_zoned_drives_do_what_is_on_record() {
    let drive = drives::plain(200, 24, 2, 4);
    let mut wrong = Vec::new();
    for (text, layer) in ZONED {
        let own = event_loop(text, layer, "fcfs", &drive).expect("fits");
        wrong.extend(differs(ON_RECORD, &format!("{text} / {layer}"), &said(own, 500)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn layers_do_what_is_on_record() {
    let mut wrong = Vec::new();
    for (name, drive) in drives::all().into_iter().filter(|d| ["tiny", "zones and skew"].contains(&d.0)) {
        for text in layers().into_iter().flat_map(|entry| entry.texts()) {
            let Some(own) = event_loop("single", &text, "fcfs", &drive) else { continue };
            wrong.extend(differs(ON_RECORD, &format!("{text} on {name}"), &said(own, 1000)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Drives with buffers, costs of commands and of switches, and other orders of the queue.
const DRIVES: &[&str] = &[
    "tiny,write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100",
    "tiny,cache=on,write_cache=off,segments=4,cache_size=16KiB,read_ahead=track,bus=3",
    "tiny,write_cache=on,segments=2,cache_size=64KiB,read_ahead=off,zero_latency=on,bus=50",
    "tiny,cache=on,segments=6,cache_size=48KiB,read_ahead=cylinder,head_switch=2ms,write_settle=1ms",
    "tiny,cache=on,segments=6,cache_size=48KiB,read_ahead=two-tracks,read_overhead=0.2ms,write_overhead=0.3ms",
    "tiny,cache=on,segments=3,cache_size=96KiB,read_ahead=segment,zero_latency=on,rpm=5400,command=0.5ms,bus=8",
    "tiny,cache=off,command=0.4ms,bus=20,zero_latency=on",
    "seagate-st8000as0002,capacity=1GiB",
    "seagate-exos-x24,capacity=1GiB",
    "seagate-exos-2x18-half,capacity=1GiB,segments=16",
];

#[test]
fn drives_do_what_is_on_record() {
    let mut wrong = Vec::new();
    for drive in DRIVES {
        for (layer, scheduler) in [("cmr", "fcfs"), ("cmr", "sptf,depth=8"), ("s-block", "look,depth=4")] {
            let own = of_drive(drive, layer, scheduler);
            wrong.extend(differs(
                ON_RECORD,
                &format!("{drive}, {layer}, {scheduler}"),
                &said_of(own, 800, true),
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
