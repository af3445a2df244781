//! Drives behind their own buffer and bus, timed by formula. The preset `tiny` turns once in 10 ms; its outer tracks have 32
//! blocks, a seek takes 2 ms. A bus of 1.024 MB/s needs 0.5 ms a block, a command 1 ms.

mod presets;
mod queued;
mod rows;

use smrlab_drive::{
    Buffered, MemberId, Observer, OpDone, ScheduledDrive, Served, TimedPlan, Wanted, assemble,
};
use smrlab_stl::{Dir, Facts, HostRequest};
use smrlab_units::problems::Problems;
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::convert::Infallible;

const COSTS: &str = "tiny,command=1ms,bus=1.024";

fn drive(text: &str, layer: &str, scheduler: &str, mechanics: Option<&str>) -> ScheduledDrive {
    let mut problems = Problems::default();
    let wanted = Wanted { drive: text, layer, scheduler, metadata: "nv", mechanics, medium: None, seed: 1 };
    let drive = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    let (drive, chosen) = drive.unwrap_or_else(|| panic!("{problems}")).start(false, false);
    ScheduledDrive::new(drive, &chosen)
}

/// A media operation: direction, first block, blocks, begin and end.
type Op = (Dir, u64, u64, SimTime, SimTime);

#[derive(Default)]
struct Seen {
    dispatched: Vec<(u64, Served)>,
    accepted: Vec<(u64, Served)>,
    answered: Vec<(u64, Served)>,
    ops: Vec<Op>,
    /// Those that a buffer answered.
    buffered: Vec<u64>,
    /// Of each step of background work: operations done, operations, and whether that was all.
    steps: Vec<(usize, usize, bool)>,
    /// When the layer was looked at.
    looked: Vec<SimTime>,
}

impl Observer for Seen {
    type Error = Infallible;

    fn op(&mut self, d: &OpDone<'_>) {
        self.ops.push((d.op.dir, d.op.pba.0, d.op.blocks.0, d.start, d.end));
    }

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        assert_eq!((e.ends.len(), e.whole), (e.plan.ops().len(), true));
        self.dispatched.push((r.id, e.served));
        if e.buffered {
            self.buffered.push(r.id);
        }
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<(), Infallible> {
        self.accepted.push((write.request.id, write.served));
        Ok(())
    }

    fn answered(&mut self, read: &Buffered<'_>, write: &HostRequest) -> Result<(), Infallible> {
        let (has, asked) = (write.span(), read.request.span());
        assert!(write.op == HostOp::Write && has.start <= asked.start && asked.end <= has.end);
        self.answered.push((read.request.id, read.served));
        Ok(())
    }

    fn background(&mut self, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        assert_eq!(e.ends.len(), e.done, "each operation that was done has its end");
        self.steps.push((e.done, e.plan.ops().len(), e.whole));
        Ok(())
    }

    fn looks(&self, _: MemberId, _: SimTime) -> bool {
        true
    }

    fn looked(&mut self, _: MemberId, at: SimTime, _: &Facts<'_>) {
        self.looked.push(at);
    }
}

fn us(n: u64) -> SimTime {
    SimTime::from_us(n)
}

fn request(op: HostOp, lba: u64, blocks: u64) -> HostRequest {
    HostRequest::new(op, Lba(lba), Blocks(blocks))
}

/// Submits (arrival in us, request), numbered from 0 on, and lets the drive finish; what was seen, and when each was answered
/// in microseconds.
fn go(mut c: ScheduledDrive, requests: &[(u64, HostRequest)]) -> (Seen, Vec<u64>, ScheduledDrive) {
    let mut seen = Seen::default();
    for (id, (at, r)) in (0..).zip(requests) {
        let Ok(_) = c.submit(us(*at), &r.numbered(id), &mut seen);
    }
    let Ok(()) = c.drain(&mut seen);
    let mut acks = vec![0; requests.len()];
    for (id, served) in seen.dispatched.iter().chain(&seen.answered) {
        acks[*id as usize] = served.ack.0.div_ceil(1000);
    }
    (seen, acks, c)
}

use HostOp::{Flush, Read, Write};

#[test]
fn a_command_costs_once_and_the_bus_follows_the_medium() {
    // Block 8 passes from 2.5 to 2.8125 ms. The second command begins when the first is answered; block 16 passes at 5 ms.
    let (seen, acks, _) =
        go(drive(COSTS, "cmr", "fcfs", None), &[(0, request(Read, 8, 1)), (0, request(Read, 16, 1))]);
    assert_eq!(acks, [3313, 5813]);
    assert_eq!(seen.ops.iter().map(|o| o.4.0).collect::<Vec<_>>(), [2_812_500, 5_312_500]);
    assert_eq!(seen.looked, seen.dispatched.iter().map(|d| d.1.end).collect::<Vec<_>>());
    // However many media operations it leads to: without rotation a command more is 1 ms more.
    for layer in ["cmr", "rmw", "static-1234", "disk-cache,cache=10%"] {
        let one =
            |text: &str| go(drive(text, layer, "fcfs", Some("no-rotation")), &[(0, request(Write, 3, 4))]);
        let (plain, with) = (one("tiny"), one("tiny,command=1ms"));
        assert_eq!(with.1[0], plain.1[0] + 1000, "{layer}: {} operations", plain.0.ops.len());
        assert_eq!(with.0.ops.len(), plain.0.ops.len());
    }
}

#[test]
fn reading_ahead_goes_by_places_on_the_medium() {
    for layer in ["cmr", "rmw", "static-1234"] {
        let text = format!("{COSTS},cache=on,read_ahead=track");
        // From block 0 on at 10 ms (the command takes 1 ms); the rest of the track has passed at 20 ms.
        let (seen, acks, c) = go(
            drive(&text, layer, "fcfs", None),
            &[(0, request(Read, 0, 2)), (30_000, request(Read, 2, 20)), (60_000, request(Read, 5, 27))],
        );
        // 10.3125 ms and two blocks on the bus.
        assert_eq!(acks, [11_313, 30_000 + 1000 + 10_000, 60_000 + 1000 + 13_500], "{layer}");
        assert_eq!((seen.ops.len(), seen.ops[0].2), (1, 2), "{layer}: what is read ahead is no operation");
        let b = c.drive().buffer_counters().unwrap();
        assert_eq!((b.hits, b.misses, b.read_ahead), (2, 1, 30), "{layer}");
        let off = format!("{COSTS},cache=on,read_ahead=off");
        assert_eq!(
            go(drive(&off, layer, "fcfs", None), &[(0, request(Read, 0, 2)), (30_000, request(Read, 2, 2))])
                .2
                .drive()
                .buffer_counters()
                .unwrap()
                .hits,
            0
        );
    }
}

/// Of a read of two operations the buffer has the first block of the first one: neither is in the buffer, all is a miss.
#[test]
fn the_beginning_of_a_part_is_not_the_part() {
    let text = format!("{COSTS},cache=on,read_ahead=off");
    let requests = [(0, request(Read, 30, 1)), (30_000, request(Read, 30, 4))];
    let (seen, acks, c) = go(drive(&text, "static-R(4123)", "fcfs", None), &requests);
    assert_eq!(seen.ops.len(), 3, "30 and 31 end a track, and 32 is in another band");
    let b = c.drive().buffer_counters().unwrap();
    assert_eq!((b.hits, b.partial_hits, b.misses), (0, 0, 2));
    // The last two blocks go over the bus from when the first of them has passed: it takes longer than they do.
    let block = 10_000_000 / 32;
    assert_eq!(acks[1], (seen.ops[2].4.0 - block + 2 * 500_000).div_ceil(1000));
    // Block 31 was read ahead meanwhile: a part of this one is there.
    let text = format!("{COSTS},cache=on,read_ahead=track");
    let requests = [(0, request(Read, 30, 1)), (30_000, request(Read, 31, 3))];
    let b = go(drive(&text, "static-R(4123)", "fcfs", None), &requests).2.drive().buffer_counters().unwrap();
    assert_eq!((b.hits, b.partial_hits, b.misses), (0, 1, 1));
}

/// Destaged writes are host writes to the layer: the same operations, and the host waits for the bus alone.
#[test]
fn a_write_cache_acknowledges_and_the_layer_writes() {
    let requests = [(0, request(Write, 3, 4)), (1000, request(Write, 40, 2)), (2000, request(Flush, 0, 0))];
    for layer in ["cmr", "rmw", "static-1234", "disk-cache,cache=10%", "s-block,sblock_blocks=160"] {
        let ops = |seen: &Seen| seen.ops.iter().map(|o| (o.0, o.1, o.2)).collect::<Vec<_>>();
        let (plain, ..) = go(drive("tiny", layer, "fcfs", None), &requests);
        let (on, acks, c) = go(drive(&format!("{COSTS},write_cache=on"), layer, "fcfs", None), &requests);
        let (off, through, _) =
            go(drive(&format!("{COSTS},write_cache=off"), layer, "fcfs", None), &requests);
        assert_eq!((ops(&on), ops(&off)), (ops(&plain), ops(&plain)), "{layer}");
        // 1 ms and 4 blocks; the second begins then.
        assert_eq!(acks[..2], [3000, 5000], "{layer}");
        let last = on.ops.last().unwrap().4;
        assert_eq!(acks[2], last.0.div_ceil(1000), "{layer}: a flush ends with the medium");
        assert!(through[1] >= off.ops.last().unwrap().4.0 / 1000, "{layer}");
        assert_eq!(c.drive().buffer_counters().unwrap().buffered, 2);
        // FUA waits for the medium all the same.
        let fua = HostRequest { fua: true, ..requests[0].1 };
        let (seen, acks, _) = go(drive(&format!("{COSTS},write_cache=on"), layer, "fcfs", None), &[(0, fua)]);
        assert!(us(acks[0]) >= seen.dispatched[0].1.ack && acks[0] > 3000, "{layer}: {acks:?}");
    }
}

/// Block 8 passes from 2.5 to 2.8125 ms: then a FUA write is answered, another one when a block has come over the bus.
#[test]
fn a_fua_write_costs_a_write_that_no_cache_answers() {
    let text = format!("{COSTS},write_cache=on");
    let fua = |lba, blocks| HostRequest { fua: true, ..request(Write, lba, blocks) };
    let one = |r| go(drive(&text, "cmr", "fcfs", None), &[(0, r)]).1[0];
    assert_eq!((one(request(Write, 8, 1)), one(fua(8, 1))), (1500, 2813));
    // Without rotation, two writes in the buffer, each a seek of 2 ms away: it is chosen first, comes over the bus until 1.5 ms and
    // waits for nothing else. A flush waits for both: 2.3125 ms each.
    let waiting = |last| {
        let requests = [(0, request(Write, 900, 1)), (0, request(Write, 700, 1)), (0, last)];
        go(drive(&text, "cmr", "sptf,depth=8", Some("no-rotation")), &requests)
    };
    let (seen, acks, c) = waiting(fua(8, 1));
    assert_eq!(seen.buffered, [0, 1]);
    for layer in ["cmr", "rmw"] {
        let requests = [request(Read, 8, 1), request(Write, 8, 1), fua(8, 1)].map(|r| (0, r));
        assert_eq!(go(drive(&text, layer, "fcfs", None), &requests).0.buffered, [1], "{layer}");
    }
    assert_eq!((acks[2], seen.ops[0].1), (1813, 8));
    let b = c.drive().buffer_counters().unwrap();
    assert_eq!((b.buffered, b.through), (2, 1));
    assert_eq!(waiting(request(Flush, 0, 0)).1[2], 4625);
}

#[test]
fn the_write_cache_has_so_much_room() {
    // Two segments, one of them for writes, of 8 blocks each: the second write waits for the first to be on the medium.
    let text = format!("{COSTS},write_cache=on,cache_size=16blk,segments=2");
    let requests = [(0, request(Write, 8, 1)), (0, request(Write, 100, 1)), (0, request(Write, 101, 1))];
    let (seen, acks, _) = go(drive(&text, "cmr", "fcfs", None), &requests);
    assert_eq!(acks[0], 1500);
    let first = seen.ops[0].4.0.div_ceil(1000);
    assert_eq!(acks[1], first + 500, "one more block on the bus");
    assert_eq!(acks[2], acks[1] + 1500, "what is appended needs no segment of its own");
    // Longer than a segment: to the medium.
    let (seen, acks, c) = go(drive(&text, "cmr", "fcfs", None), &[(0, request(Write, 0, 9))]);
    assert_eq!(acks[0], seen.ops[0].4.0.div_ceil(1000));
    assert_eq!(c.drive().buffer_counters().unwrap().through, 1);
}

/// A controller that costs nothing and keeps nothing changes nothing.
#[test]
fn off_is_off() {
    for layer in ["cmr", "rmw", "disk-cache,cache=10%", "static-R(4123)"] {
        for scheduler in ["fcfs", "sptf,depth=8"] {
            let mut rng = Rng::new(7);
            let requests: Vec<_> = (0..300)
                .map(|i| {
                    let op = if rng.one_in(2) { Write } else { Read };
                    (i * rng.below(40_000), request(op, rng.below(1500), 1 + rng.below(8)))
                })
                .collect();
            let mut requests = requests;
            requests.sort_by_key(|r| r.0);
            let (a, acks, _) = go(drive("tiny", layer, scheduler, None), &requests);
            let (b, same, _) = go(drive("tiny,cache=off", layer, scheduler, None), &requests);
            assert_eq!(acks, same, "{layer} {scheduler}");
            assert_eq!(a.ops, b.ops, "{layer} {scheduler}");
        }
    }
}

/// Two segments of 8 blocks, one of them for writes: what is being written has its room until it is on the medium, and has none behind
/// that; then the oldest of those that wait is taken.
#[test]
fn room_is_free_when_the_medium_has_what_was_in_it() {
    let text = format!("{COSTS},write_cache=on,cache_size=16blk,segments=2");
    let requests: Vec<_> = (0..3).map(|i| (i * 100, request(Write, 300 * i, 8))).collect();
    let (seen, _, c) = go(drive(&text, "cmr", "sptf,depth=8", None), &requests);
    assert_eq!(seen.accepted.iter().map(|a| a.0).collect::<Vec<_>>(), [0, 1, 2]);
    for i in 1..3 {
        assert!(seen.accepted[i].1.start >= seen.ops[i - 1].4, "{i}: {:?}", seen.accepted);
    }
    assert_eq!(c.drive().buffer_counters().unwrap().through, 0);
    // First come, first served: 8 blocks in two requests fill it, and the second one does not wait. Block 0 passes at 10 ms.
    let append = [(0, request(Write, 0, 4)), (0, request(Write, 4, 4))];
    assert_eq!(go(drive(&text, "cmr", "fcfs", None), &append).1, [3000, 6000]);
    // A write of several operations waits for the one before it, too: a block more on the bus.
    let (seen, acks, _) =
        go(drive(&text, "rmw", "fcfs", None), &[(0, request(Write, 3, 1)), (0, request(Write, 300, 1))]);
    let first = seen.ops.iter().rposition(|o| o.1 < 128).unwrap();
    assert_eq!(acks, [1500, seen.ops[first].4.0.div_ceil(1000) + 500]);
}

/// A bus of 40 ms a block: a band is read meanwhile, and is not written before the data are there.
#[test]
fn a_band_is_rewritten_when_its_data_have_come() {
    let text = "tiny,command=1ms,bus=0.0128,write_cache=on";
    let (seen, _, _) = go(drive(text, "rmw", "fcfs", None), &[(0, request(Write, 3, 4))]);
    let (read, write) = (seen.ops[0], seen.ops.last().unwrap());
    assert!(read.0 == Dir::Read && read.4 < us(100_000) && write.3 >= us(161_000), "{:?}", seen.ops);
}

/// The band of block 0 is rewritten for block 1: what the buffer has of it is out of date.
#[test]
fn what_a_layer_rewrites_is_read_from_the_medium() {
    let text = format!("{COSTS},cache=on,read_ahead=off,write_cache=off");
    for (written, hits) in [(1, 0), (300, 1)] {
        let requests =
            [(0, request(Read, 0, 2)), (100_000, request(Write, written, 1)), (900_000, request(Read, 0, 2))];
        let (_, _, c) = go(drive(&text, "rmw", "fcfs", None), &requests);
        assert_eq!(c.drive().buffer_counters().unwrap().hits, hits, "block {written} written");
    }
}

const CLEANS: &str = "disk-cache,cache=10%,idle=5ms";

/// Background work begins 5 ms after the medium is free, its operations one after the other; what a request leaves of a step is told.
#[test]
fn background_work_begins_when_the_medium_has_been_idle() {
    for text in ["tiny".to_owned(), format!("{COSTS},write_cache=on")] {
        let mut c = drive(&text, CLEANS, "fcfs", None);
        let mut seen = Seen::default();
        for (id, lba) in [(0, 3), (1, 300), (2, 600)] {
            let Ok(_) = c.submit(us(0), &request(Write, lba, 4).numbered(id), &mut seen);
        }
        let (free, before) = (c.drive().free_at(), seen.ops.len());
        assert_eq!(c.drive().next_wake(), Some(free + us(5000)), "{text}");
        let mut whole = drive(&text, CLEANS, "fcfs", None);
        let mut all = Seen::default();
        for (id, lba) in [(0, 3), (1, 300), (2, 600)] {
            let Ok(_) = whole.submit(us(0), &request(Write, lba, 4).numbered(id), &mut all);
        }
        let Ok(()) = whole.wake(us(5_000_000), &mut all);
        assert_eq!(all.ops[before].3, free + us(5000), "{text}");
        assert!(all.ops.windows(2).all(|o| o[0].4 <= o[1].3), "{text}: {:?}", all.ops);
        assert!(
            all.steps.len() > 1 && all.steps.iter().all(|s| s.2 && s.0 == s.1),
            "{text}: {:?}",
            all.steps
        );
        // A request comes when the first operation of the first step has begun.
        let Ok(_) = c.submit(free + us(5001), &request(Read, 1500, 1).numbered(3), &mut seen);
        assert!(matches!(seen.steps[..], [(1, n, false)] if n > 1), "{text}: {:?}", seen.steps);
    }
}

/// Cleaning ends reading ahead, and makes what the buffer has of a band that it rewrites out of date. In the 5 ms before it 16 blocks of
/// 0.3125 ms pass the head.
#[test]
fn background_work_ends_reading_ahead_and_leaves_nothing_old() {
    let text = format!("{COSTS},cache=on,read_ahead=track,write_cache=off");
    let mut c = drive(&text, CLEANS, "fcfs", None);
    let mut seen = Seen::default();
    let Ok(_) = c.submit(us(0), &request(Read, 0, 1).numbered(0), &mut seen);
    let Ok(_) = c.submit(us(0), &request(Write, 3, 4).numbered(1), &mut seen);
    let Ok(_) = c.submit(us(0), &request(Read, 600, 1).numbered(2), &mut seen);
    let ahead = |c: &ScheduledDrive| c.drive().buffer_counters().unwrap().read_ahead;
    let before = ahead(&c);
    let Ok(()) = c.wake(us(5_000_000), &mut seen);
    assert!(!seen.steps.is_empty());
    let read = ahead(&c) - before;
    assert!((1..=16).contains(&read), "{read} blocks");
    let Ok(_) = c.submit(us(9_000_000), &request(Read, 0, 1).numbered(3), &mut seen);
    assert_eq!(c.drive().buffer_counters().unwrap().hits, 0, "its band was rewritten");
}

/// What a run's metrics are told, without plans: requests with when they were served.
#[derive(Default)]
struct Plain {
    served: Vec<(u64, Served)>,
    held: usize,
    arrived: usize,
    ops: Vec<Op>,
}

impl Observer for Plain {
    type Error = Infallible;
    const PLANS: bool = false;

    fn arrived(&mut self, _: SimTime, _: &HostRequest) {
        self.arrived += 1;
    }

    fn op(&mut self, d: &OpDone<'_>) {
        self.ops.push((d.op.dir, d.op.pba.0, d.op.blocks.0, d.start, d.end));
    }

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.served.push((r.id, e.served));
        Ok(())
    }

    fn held(&mut self, _: SimTime, r: &HostRequest, served: &Served) -> Result<(), Infallible> {
        self.held += 1;
        self.served.push((r.id, *served));
        Ok(())
    }
}

/// Reads in order, now and then a jump or a write: who looks at no plan is told the same, and the drive is the same afterwards. A layer
/// that moves blocks plans each read.
#[test]
fn reads_without_a_plan_are_served_alike() {
    for (layer, quick) in [("cmr", true), ("raw", true), ("caveat-scriptor", false), ("rmw", false)] {
        let text = format!("{COSTS},cache=on,read_ahead=track,write_cache=on");
        let [mut with, mut without] = [(); 2].map(|()| drive(&text, layer, "fcfs", None));
        let (mut seen, mut plain, mut rng) = (Seen::default(), Plain::default(), Rng::new(5));
        let (mut at, mut lba) = (SimTime::ZERO, 0);
        for id in 0..4000 {
            at += us([0, rng.below(3000), 20_000][rng.below(3) as usize]);
            if rng.one_in(12) || lba > 300 {
                lba = rng.below(300);
            }
            let op = if rng.one_in(20) { Write } else { Read };
            let r = request(op, lba, 1 + rng.below(2)).numbered(id);
            lba += r.blocks.0;
            let Ok(one) = with.submit(at, &r, &mut seen);
            let Ok(other) = without.submit(at, &r, &mut plain);
            assert_eq!(one, other, "{layer}: {r:?} at {at}");
            let state =
                |c: &ScheduledDrive| (c.drive().buffer_counters(), c.drive().free_at(), c.next_wake());
            assert_eq!(state(&with), state(&without), "{layer}: after {r:?} at {at}");
        }
        assert_eq!((seen.dispatched, seen.ops), (plain.served, plain.ops), "{layer}");
        assert_eq!(plain.held > 500, quick, "{layer}: {}", plain.held);
    }
}
