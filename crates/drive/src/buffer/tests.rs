//! Times by hand: 6000 rpm (10 ms), 100 blocks a track, seeks of 2 ms, a bus of 0.2 ms a block, half as fast as the medium.

pub(crate) mod naive;

use super::*;
use smrlab_disk::mechanics::Distance;
use smrlab_disk::model::{BufferSpec, ReadAhead, WriteBack};
use smrlab_disk::{Geometry, GeometrySpec, Mechanics, MechanicsSpec, Model, SeekCurve, ZoneSpec};
use smrlab_units::Blocks;
use std::sync::Arc;

fn us(n: u64) -> SimTime {
    SimTime::from_us(n)
}

fn mechanics() -> Mechanics {
    let geometry = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(100, 100)])).unwrap();
    let seek = SeekCurve::Constant(us(2000));
    let spec = MechanicsSpec {
        rpm: 6000,
        distance: Distance::Cylinders,
        read_seek: seek.clone(),
        write_seek: seek,
        head_switch: SimTime::ZERO,
        write_head_switch: None,
        write_settle: SimTime::ZERO,
        read_overhead: SimTime::ZERO,
        write_overhead: SimTime::ZERO,
        read_late: Blocks::ZERO,
        one_place: 0,
        rate: None,
    };
    Mechanics::new(Arc::new(geometry), &spec, Model::Full).unwrap()
}

fn spec(read_ahead: ReadAhead, write_back: WriteBack) -> ControllerSpec {
    ControllerSpec {
        read_hit: [us(300); 2],
        read_miss: [us(500), us(700)],
        write_hit: [us(400); 2],
        write_miss: [us(600), us(900)],
        done: [us(10), us(20)],
        bus: [us(200); 2],
        write_delay: SimTime::ZERO,
        read_settle: [SimTime::ZERO; 2],
        read_gather: 0,
        buffer: BufferSpec {
            segments: 2,
            segment_blocks: 32,
            write_segments: 1,
            read_ahead,
            read_ahead_blocks: 16,
            keeps_requested: false,
            passing: false,
            ahead_on_hit: false,
            zero_latency: [false; 2],
            write_back,
            written_hits: true,
        },
    }
}

/// Serves (arrival in us, direction, LBA, blocks); the durations in us.
fn durations(spec: ControllerSpec, commands: &[(u64, Dir, u64, u64)]) -> (Vec<u64>, Counters) {
    let (mut m, mut c) = (mechanics(), DriveBuffer::new(spec));
    let times = commands
        .iter()
        .map(|&(at, dir, lba, blocks)| c.serve(us(at), dir, lba, blocks, &mut m).since(us(at)).0 / 1000)
        .collect();
    (times, c.counters())
}

use Dir::{Read, Write};

#[test]
fn a_miss_is_overhead_rotation_and_the_bus() {
    // The first command counts as coming after a write. Block 50 begins at 5.0 ms and has passed at 5.1 ms.
    let (t, c) = durations(spec(ReadAhead::Off, WriteBack::Off), &[(0, Read, 50, 4), (10_000, Read, 50, 4)]);
    assert_eq!(t, [5100 + 800 + 10, 300 + 800 + 10]);
    assert_eq!((c.misses, c.hits, c.read_ahead), (1, 1, 0));
    // Three of four blocks gathered before the bus begins.
    let gather = ControllerSpec { read_gather: 750, ..spec(ReadAhead::Off, WriteBack::Off) };
    assert_eq!(durations(gather, &[(0, Read, 50, 4)]).0, [5300 + 800 + 10]);
    // A medium that is slower than the bus: the last block and what it needs.
    let fast = ControllerSpec { bus: [us(10); 2], ..spec(ReadAhead::Off, WriteBack::Off) };
    assert_eq!(durations(fast, &[(0, Read, 50, 4)]).0, [5400 + 10 + 10]);
}

#[test]
fn reading_ahead_is_broken_off_at_a_block() {
    let s = spec(ReadAhead::Segment, WriteBack::Off);
    // Blocks 54 on pass from 5.4 ms, one each 0.1 ms. The miss at 6.0 ms moves the head at 6.5 ms: 11 blocks came, to 64.
    let (t, c) = durations(
        s,
        &[(0, Read, 50, 4), (6000, Read, 5020, 1), (30_000, Read, 60, 5), (40_000, Read, 60, 6)],
    );
    // Arrives at 8.5 ms; block 20 of the track has passed at 12.1 ms.
    assert_eq!(t[1..3], [6100 + 200 + 10, 300 + 1000 + 10]);
    assert_eq!((c.hits, c.partial_hits), (1, 1), "block 65 was not there");
    // Left alone, it ends after 16 blocks, however late it is looked at.
    let (t, c) = durations(s, &[(0, Read, 50, 4), (50_000, Read, 66, 4), (60_000, Read, 70, 1)]);
    assert_eq!((t[1], c.hits), (300 + 800 + 10, 1), "{t:?}");
    // A request for what is on its way takes until it has come: block 69 has passed at 7.0 ms.
    let (t, c) = durations(s, &[(0, Read, 50, 4), (5950, Read, 68, 2)]);
    assert_eq!(c.misses, 2, "not the next block: no hit");
    let (t2, c) = durations(s, &[(0, Read, 50, 2), (5600, Read, 52, 14)]);
    assert_eq!((c.partial_hits, t2[1]), (1, 300 + 2800 + 10), "the bus is slower than the medium: {t:?}");
}

#[test]
fn the_buffer_acknowledges_writes_and_the_medium_follows() {
    let s = spec(ReadAhead::Off, WriteBack::On);
    // Eight blocks on the bus until 2.0 ms; the medium takes 0.8 ms, so that block 50 may begin from 1.3 ms on: at 5 ms.
    let (t, c) = durations(s, &[(0, Write, 50, 8), (3000, Read, 52, 2), (4000, Read, 5000, 1)]);
    assert_eq!((t[0], t[1]), (400 + 1600 + 20, 300 + 400 + 10));
    // The miss waits for the medium: free at 5.8 ms, there at 7.8 ms, block 0 of the track passes until 10.1 ms.
    assert_eq!((t[2], c.buffered), (6100 + 200 + 10, 1));
    // Another write waits for the one dirty segment.
    let (t, _) = durations(s, &[(0, Write, 50, 8), (3000, Write, 5000, 1)]);
    assert_eq!(t[1], 2800 + 200 + 20);
    // What is overwritten is no longer read from the buffer.
    let (_, c) = durations(s, &[(0, Read, 50, 4), (10_000, Write, 52, 1), (30_000, Read, 50, 1)]);
    assert_eq!((c.hits, c.misses), (0, 2));
}

#[test]
fn without_write_back_the_host_waits_for_the_medium() {
    let s = spec(ReadAhead::Off, WriteBack::Off);
    assert_eq!(durations(s, &[(0, Write, 50, 4)]).0, [5400 + 20]);
    // Block 10 passes at 1.0 ms, before its data have come (0.9 + 0.2 ms): a revolution later.
    assert_eq!(durations(s, &[(0, Write, 10, 1)]).0, [11_100 + 20]);
    assert_eq!(durations(s, &[(0, Write, 11, 1)]).0, [1200 + 20]);
    // Ten blocks need the bus until 2.9 ms and the medium for 1 ms: not before 2.0 ms.
    assert_eq!(durations(s, &[(0, Write, 19, 10)]).0, [12_900 + 20]);
    assert_eq!(durations(s, &[(0, Write, 20, 10)]).0, [3000 + 20]);
}

#[test]
fn zero_latency_takes_one_revolution_at_most() {
    let mut s = spec(ReadAhead::Off, WriteBack::Off);
    s.buffer.zero_latency = [true, false];
    s.bus = [us(1); 2];
    // At 0.75 ms (overhead of a read after a read) the head is in the middle of block 7: 8 to 99 first, then 0 to 7.
    s.read_miss = [us(750); 2];
    assert_eq!(durations(s, &[(0, Read, 0, 100)]).0, [10_800 + 1 + 10]);
    s.buffer.zero_latency = [false; 2];
    assert_eq!(durations(s, &[(0, Read, 0, 100)]).0, [20_000 + 1 + 10]);
}

#[test]
fn a_head_on_its_cylinder_settles_anew_after_a_write() {
    let mut s = spec(ReadAhead::Off, WriteBack::Off);
    s.read_settle = [us(0), us(1500)];
    // The write ends at 5.4 ms, its command 0.02 ms later; 0.7 ms of overhead and 1.5 of settling: block 77 passes from 7.7 ms on. After a
    // read there is no settling: block 96 passes from 9.6 ms on.
    let (t, _) = durations(s, &[(0, Write, 50, 4), (5420, Read, 77, 1), (9000, Read, 96, 1)]);
    assert_eq!(t, [5420, 2380 + 200 + 10, 700 + 200 + 10]);
    // Block 76 began at 7.6 ms: a revolution later.
    assert_eq!(durations(s, &[(0, Write, 50, 4), (5420, Read, 76, 1)]).0[1], 12_280 + 200 + 10);
    // Seeks settle by themselves: 2 ms, and block 2 of the other track passes from 10.2 ms on.
    assert_eq!(durations(s, &[(0, Write, 50, 4), (5420, Read, 5002, 1)]).0[1], 10_300 - 5420 + 200 + 10);
}

#[test]
fn reading_ahead_may_leave_what_was_asked_for() {
    let mut s = spec(ReadAhead::Segment, WriteBack::Off);
    s.buffer.read_ahead_blocks = 32;
    // A segment of 32 blocks: with reading ahead over all of it the 4 that were asked for are gone, else 28 follow them.
    let asked = [(0, Read, 50, 4), (30_000, Read, 50, 4)];
    assert_eq!((durations(s, &asked).1.misses, durations(s, &asked).1.read_ahead), (2, 32));
    s.buffer.keeps_requested = true;
    assert_eq!((durations(s, &asked).1.misses, durations(s, &asked).1.read_ahead), (1, 28));
}

#[test]
fn what_passes_on_the_way_is_kept() {
    let mut s = spec(ReadAhead::Off, WriteBack::Off);
    s.buffer.passing = true;
    // From 0.7 ms to 5.0 ms 43 blocks pass; the segment has room for 28 beside the 4 that were asked for.
    let (_, c) = durations(s, &[(0, Read, 50, 4), (20_000, Read, 22, 2), (30_000, Read, 21, 1)]);
    assert_eq!((c.hits, c.misses), (1, 2));
}

/// A segment that a write touches at its first block, its last, all of them or more is out of date; one beside it is not.
#[test]
fn what_a_write_touches_is_read_from_the_medium() {
    for write_back in [WriteBack::Off, WriteBack::On] {
        let mut s = spec(ReadAhead::Off, write_back);
        s.buffer.written_hits = false;
        for (lba, blocks, read, hit) in
            [(48, 3, 50, 0), (53, 3, 53, 0), (50, 4, 52, 0), (49, 6, 51, 0), (46, 4, 50, 1), (54, 2, 53, 1)]
        {
            let commands = [(0, Read, 50, 4), (20_000, Write, lba, blocks), (60_000, Read, read, 1)];
            let (_, c) = durations(s, &commands);
            assert_eq!((c.hits, c.misses), (hit, 2 - hit), "a read of {read} after {blocks} blocks at {lba}");
        }
    }
}

#[test]
fn the_longest_write_that_is_taken_fills_a_segment() {
    let s = spec(ReadAhead::Off, WriteBack::On);
    let of = |blocks| durations(s, &[(0, Write, 0, blocks)]).1;
    assert_eq!((of(32).buffered, of(32).through), (1, 0));
    assert_eq!((of(33).buffered, of(33).through), (0, 1));
}

/// A read of which half is dirty waits for it and for the medium: no hit.
#[test]
fn half_of_what_is_dirty_is_no_hit() {
    let (_, c) = durations(spec(ReadAhead::Off, WriteBack::On), &[(0, Write, 50, 8), (3000, Read, 54, 8)]);
    assert_eq!((c.hits, c.partial_hits, c.misses), (0, 1, 0));
}

/// With two segments for writes: block 50 is on the medium at 5.1 ms, block 5000 (a seek later, at the start of its track) at
/// 10.1 ms. What comes at 6 ms takes the place of the first; what comes at 7 ms waits for that of the second.
#[test]
fn writes_leave_the_buffer_in_their_order() {
    let mut s = spec(ReadAhead::Off, WriteBack::On);
    s.buffer.write_segments = 2;
    let commands =
        [(0, Write, 50, 1), (1000, Write, 5000, 1), (6000, Write, 7000, 1), (7000, Write, 9000, 1)];
    assert_eq!(durations(s, &commands).0, [620, 620, 620, 3100 + 220]);
}

/// 32 blocks may be unwritten. Blocks 50 to 69 are on the medium at 7.0 ms: what continues them has room then, though both are one piece of
/// the buffer; the bus takes 4 ms for its 20 blocks.
#[test]
fn a_write_waits_until_its_blocks_have_room() {
    let (times, c) =
        durations(spec(ReadAhead::Off, WriteBack::On), &[(0, Write, 50, 20), (1000, Write, 70, 20)]);
    assert_eq!((times, c.buffered), (vec![4420, 7000 + 4000 + 20 - 1000], 2));
}

/// What the buffers of several drives counted is one sum, name by name.
#[test]
fn counters_add_up_name_by_name() {
    let [a, b] = [1, 10].map(|n| Counters {
        hits: n,
        partial_hits: 2 * n,
        misses: 3 * n,
        buffered: 4 * n,
        through: 5 * n,
        read_ahead: 6 * n,
    });
    assert!((a + b).named().map(|c| c.1).eq([11, 22, 33, 44, 55, 66]));
}

/// How far reading ahead came is worked out when a command stops it: the same as when it is worked out at every command's
/// beginning, block for block.
#[test]
fn what_is_noted_late_is_what_is_noted_at_once() {
    let mut x = 1u64;
    let mut random = |n: u64| {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 33) % n
    };
    for round in 0..240u64 {
        let ahead = [ReadAhead::Segment, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::TwoTracks];
        let mut s =
            spec(ahead[round as usize % 4], [WriteBack::On, WriteBack::Off][(round / 4) as usize % 2]);
        s.buffer.ahead_on_hit = round / 8 % 2 == 0;
        s.buffer.written_hits = round / 16 % 2 == 0;
        s.buffer.segments = 1 + (round / 32 % 3) as u32;
        (s.buffer.segment_blocks, s.buffer.read_ahead_blocks) = (150, 140);
        let (mut late, mut early) = (DriveBuffer::new(s), DriveBuffer::new(s));
        let (mut m, mut n) = (mechanics(), mechanics());
        let mut now = SimTime::ZERO;
        for _ in 0..300 {
            now += us(random(30_000) * random(2));
            let (dir, lba) = ([Read, Read, Write][random(3) as usize], random(500));
            let blocks = 1 + random(20);
            let start = late.begin(now);
            let done = late.command(start, (dir, false), lba, blocks, &mut m);
            let begun = early.begin(now);
            early.catch_up(&mut n);
            assert_eq!((begun, early.command(begun, (dir, false), lba, blocks, &mut n)), (start, done));
            assert_eq!(format!("{late:?} {:?}", m.head()), format!("{early:?} {:?}", n.head()));
        }
        assert!(late.counters().read_ahead > 1000);
    }
}

/// A segment holds blocks in a row, and no more of them than it has room for; what is being read ahead goes on at the end of
/// its own, whatever is written meanwhile.
#[test]
fn reading_ahead_keeps_its_segment() {
    let mut rng = smrlab_units::rng::Rng::new(3);
    let mut held = 0;
    for (segments, write_segments) in [(1, 1), (2, 1), (2, 2), (3, 3)] {
        let mut spec = spec(ReadAhead::Segment, WriteBack::On);
        (spec.buffer.segments, spec.buffer.write_segments, spec.buffer.ahead_on_hit) =
            (segments, write_segments, true);
        let (mut m, mut c, mut at) = (mechanics(), DriveBuffer::new(spec), SimTime::ZERO);
        for _ in 0..5000 {
            at += us(rng.below(20_000));
            let dir = if rng.below(2) == 0 { Read } else { Write };
            c.serve(at, dir, rng.below(300), 1 + rng.below(24), &mut m);
            for s in c.segments.filled() {
                assert!(s.start < s.end() && s.end() - s.start <= 32, "{s:?} of {segments}");
            }
            if let Some(a) = c.ahead.stream {
                assert_eq!(c.segments.get(a.segment).end(), a.from, "of {segments}");
                held += 1;
            }
        }
    }
    assert!(held > 1000, "{held}");
}

/// A forced write at 21 ms has the write before it on the medium first: that one leaves the buffer a command earlier, and is the one
/// that has not been used for longer when a read needs a segment.
#[test]
fn a_forced_write_finds_nothing_dirty() {
    let mut s = spec(ReadAhead::Off, WriteBack::On);
    s.buffer.write_segments = 2;
    let after = |lba| {
        let (mut m, mut c) = (mechanics(), DriveBuffer::new(s));
        c.serve(us(0), Read, 1000, 1, &mut m);
        c.serve(us(20_000), Write, 50, 8, &mut m);
        let start = c.begin(us(21_000));
        let answered = c.command(start, (Write, true), 5000, 1, &mut m);
        let dirty = c.writes.oldest().unwrap();
        assert!(c.writes.len() == 1 && dirty.start == 5000 && answered > dirty.done);
        c.serve(us(60_000), Read, 9000, 1, &mut m);
        let before = c.counters().hits;
        c.serve(us(90_000), Read, lba, 1, &mut m);
        c.counters().hits - before
    };
    assert_eq!((after(5000), after(50)), (1, 0));
}

/// What a scheduler has written from the buffer makes older copies of it out of date.
#[test]
fn what_was_destaged_is_read_from_the_medium() {
    let mut s = spec(ReadAhead::Off, WriteBack::On);
    s.buffer.written_hits = false;
    for (lba, hits) in [(52, 0), (60, 1)] {
        let (mut m, mut c) = (mechanics(), DriveBuffer::new(s));
        c.serve(us(0), Read, 50, 4, &mut m);
        c.choose(us(20_000), &mut m);
        c.destage(us(20_000), us(20_000), (lba, 1), &mut m);
        c.serve(us(60_000), Read, 50, 4, &mut m);
        assert_eq!(c.counters().hits, hits, "block {lba} was written");
    }
}

/// Behind a queue: a read that hits waits for the bus until 12.3 ms, and notes what was read ahead by then, which ended at 7.0 ms. What is
/// written at 6.0 ms begins behind that: it misses block 85 of its track at 8.5 ms.
#[test]
fn nothing_begins_before_what_was_noted_has_passed() {
    let (mut m, mut c) = (mechanics(), DriveBuffer::new(spec(ReadAhead::Segment, WriteBack::On)));
    c.behind_queue();
    c.serve(us(0), Read, 50, 4, &mut m);
    c.accept(us(5500), 32, &mut m);
    c.serve(us(5600), Read, 50, 1, &mut m);
    assert_eq!((m.head().ready, c.counters().read_ahead), (us(7000), 16));
    c.destage(us(6000), us(6000), (5085, 1), &mut m);
    assert_eq!(c.free_at(), us(18_600));
}

/// Data that come 0.1 ms later miss block 11, which begins 1.1 ms after the command, and are there for block 12.
#[test]
fn a_write_delay_puts_off_the_data() {
    let s = ControllerSpec { write_delay: us(100), ..spec(ReadAhead::Off, WriteBack::Off) };
    assert_eq!(durations(s, &[(0, Write, 12, 1)]).0, [1300 + 20]);
    assert_eq!(durations(s, &[(0, Write, 11, 1)]).0, [11_200 + 20]);
}

/// From 0.7 ms on the head waits for block 12 at 1.2 ms: blocks 7 to 11 pass, and no more.
#[test]
fn what_passed_is_what_the_head_waited_for() {
    let mut s = spec(ReadAhead::Off, WriteBack::Off);
    s.buffer.passing = true;
    for (lba, hits) in [(7, 1), (6, 0)] {
        let (_, c) = durations(s, &[(0, Read, 12, 4), (20_000, Read, lba, 1)]);
        assert_eq!(c.hits, hits, "block {lba}");
    }
}

/// A scheduler chooses it at 20 ms: its overhead of 0.3 ms has passed by then, and four blocks go over the bus.
#[test]
fn what_waited_in_a_queue_begins_when_it_is_chosen() {
    let (mut m, mut c) = (mechanics(), DriveBuffer::new(spec(ReadAhead::Off, WriteBack::Off)));
    c.behind_queue();
    c.serve(us(0), Read, 50, 4, &mut m);
    c.choose(us(20_000), &mut m);
    assert_eq!(c.command(us(1000), (Read, false), 50, 4, &mut m), us(20_000 + 800 + 10));
    c.choose(us(30_000), &mut m);
    assert_eq!(c.command(us(29_900), (Read, false), 50, 4, &mut m), us(30_200 + 800 + 10));
}

/// A read of half of what was written first waits for that, and leaves what was written later in the buffer.
#[test]
fn only_what_is_as_old_has_to_be_on_the_medium() {
    let mut s = spec(ReadAhead::Off, WriteBack::On);
    s.buffer.write_segments = 2;
    let (mut m, mut c) = (mechanics(), DriveBuffer::new(s));
    c.serve(us(0), Write, 50, 8, &mut m);
    c.serve(us(2000), Write, 5000, 1, &mut m);
    c.serve(us(3000), Read, 54, 8, &mut m);
    assert_eq!(c.writes.oldest().map(|d| (d.start, c.writes.len())), Some((5000, 1)));
}

/// Of the five blocks before it on its track, and of none of the track before: these did not pass.
#[test]
fn what_passes_on_the_way_lies_on_one_track() {
    let mut s = spec(ReadAhead::Off, WriteBack::Off);
    s.buffer.passing = true;
    for (lba, hits) in [(5000, 1), (4999, 0)] {
        let (_, c) = durations(s, &[(0, Read, 5005, 4), (30_000, Read, lba, 1)]);
        assert_eq!(c.hits, hits, "block {lba}");
    }
}

/// To the end of the track, and of the next one where the stream began on an earlier one.
#[test]
fn two_tracks_are_read_ahead_in_a_stream() {
    let mut s = spec(ReadAhead::TwoTracks, WriteBack::Off);
    (s.buffer.segment_blocks, s.buffer.read_ahead_blocks) = (400, 400);
    for (lba, ahead) in [(100, 96), (101, 95), (99, 197)] {
        let (_, c) = durations(s, &[(0, Read, lba, 4), (200_000, Read, 5000, 1)]);
        assert_eq!(c.read_ahead, ahead, "from {lba} on");
    }
}
