//! Drives with a buffer behind a scheduler.

use super::*;

#[test]
fn a_scheduler_chooses_among_reads_and_what_is_to_be_written() {
    let text = format!("{COSTS},write_cache=on");
    let requests = [
        (0, request(Read, 900, 1)),
        (100, request(Write, 8, 4)),
        (200, request(Write, 700, 1)),
        // All of it is in the newest write that it concerns.
        (300, request(Read, 9, 2)),
        (400, request(Flush, 0, 0)),
        (500, request(Write, 700, 1)),
        // A part of it is not.
        (600, request(Read, 7, 2)),
    ];
    let (seen, acks, c) = go(drive(&text, "cmr", "sptf,depth=8", None), &requests);
    // One after the other on the bus: 0.1 + 1 + 2, + 1 + 0.5, + 1 + 1.
    assert_eq!((acks[1], acks[2], acks[3]), (3100, 4600, 6600));
    assert_eq!(seen.accepted.iter().map(|a| a.0).collect::<Vec<_>>(), [1, 2, 5]);
    assert_eq!(seen.answered.iter().map(|a| a.0).collect::<Vec<_>>(), [3]);
    // The flush waits for both writes; what came after it waits for the flush on the medium, not in the buffer.
    let write_ends: Vec<_> = seen.ops.iter().filter(|o| o.0 == Dir::Write).map(|o| o.4).collect();
    assert_eq!(write_ends.len(), 3);
    assert_eq!(acks[4], write_ends[1].0.div_ceil(1000));
    assert!(acks[5] < acks[4] && acks[6] > acks[4]);
    assert_eq!(c.drive().buffer_counters().unwrap().buffered, 3);
}

/// What came when the queue was full is the buffer's, or the medium's, from when it got its place.
#[test]
fn a_full_queue_keeps_requests_from_the_buffer() {
    let mut c = drive(&format!("{COSTS},write_cache=on"), "cmr", "sptf,depth=1", None);
    let mut seen = Seen::default();
    let reads = [(0, request(Read, 0, 1)), (100, request(Read, 900, 1))];
    for (id, (at, r)) in (0..).zip(reads) {
        let Ok(_) = c.submit(us(at), &r.numbered(id), &mut seen);
    }
    assert!(!c.has_room());
    // The second read is taken out when the first has passed the head: then the write has its place, at 200 us it had none.
    let room = c.next_decision().unwrap();
    assert_eq!(room, seen.ops[0].4);
    let Ok(_) = c.decide_once(room, &mut seen);
    let Ok(served) = c.submit_waited(room, (us(200), &request(Write, 8, 4).numbered(2)), &mut seen);
    assert_eq!(served.unwrap().ack, room + us(1000 + 4 * 500));
    // Nor does a command's overhead pass before: the medium is free at `began`, the command comes then and costs 1 ms.
    let mut c = drive(COSTS, "cmr", "sptf,depth=1", None);
    let mut seen = Seen::default();
    let Ok(_) = c.submit(us(0), &request(Read, 0, 1).numbered(0), &mut seen);
    let Ok(()) = c.drain(&mut seen);
    let began = c.drive().free_at();
    let Ok(_) = c.submit_waited(began, (us(200), &request(Read, 3, 1).numbered(1)), &mut seen);
    let Ok(()) = c.drain(&mut seen);
    assert_eq!(seen.ops[1].3, began + us(1000));
    assert_eq!(seen.dispatched[1].1.start, began);
}

/// Whatever comes: all are answered once, a flush not before what was accepted is on the medium, and what concerns the same
/// blocks keeps its order.
#[test]
fn behind_a_scheduler_order_and_flushes_are_kept() {
    for (seed, layer) in (1..).zip(["cmr", "rmw", "static-124R(3)", "cmr"]) {
        let text = format!("{COSTS},write_cache=on,cache_size=64blk,segments=8");
        let mut rng = Rng::new(seed);
        let mut at = 0;
        let requests: Vec<_> = (0..2000)
            .map(|_| {
                at += rng.below(12_000);
                let op = [Read, Read, Write, Write, Write, Flush][rng.below(6) as usize];
                let op = if op == Flush && !rng.one_in(8) { Write } else { op };
                let (lba, blocks) = (rng.below(300), 1 + rng.below(10));
                (at, if op == Flush { request(op, 0, 0) } else { request(op, lba, blocks) })
            })
            .collect();
        let (seen, _, _) = go(drive(&text, layer, "sptf,depth=16", None), &requests);
        let order: Vec<u64> = seen.dispatched.iter().map(|a| a.0).collect();
        let mut all: Vec<u64> = order.iter().copied().chain(seen.answered.iter().map(|a| a.0)).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..2000), "{layer}");
        let place = |id: u64| order.iter().position(|o| *o == id);
        let span = |id: u64| requests[id as usize].1.lba.span(requests[id as usize].1.blocks);
        for (a, (_, first)) in (0..).zip(&requests) {
            for (b, (_, then)) in (0..).zip(&requests).skip(a as usize + 1).take(60) {
                let (x, y) = (span(a), span(b));
                let overlap = x.start < y.end && y.start < x.end && (first.op, then.op) != (Read, Read);
                if (overlap || first.op == Flush || then.op == Flush)
                    && let (Some(p), Some(q)) = (place(a), place(b))
                {
                    assert!(p < q, "{layer}: {a} {first:?} and {b} {then:?}");
                }
            }
        }
        for (id, served) in &seen.dispatched {
            if requests[*id as usize].1.op == Flush {
                let writes =
                    seen.dispatched.iter().filter(|(o, _)| o < id && requests[*o as usize].1.op == Write);
                assert!(writes.map(|w| w.1.end).all(|end| end <= served.ack), "{layer}: flush {id}");
            }
        }
    }
}

/// A read that ends behind what waits to be written is not answered from it, nor is one that begins before it.
#[test]
fn a_read_of_more_than_an_accepted_write_waits_for_it() {
    let text = format!("{COSTS},write_cache=on");
    for (lba, blocks, answered) in [(8, 4, true), (9, 3, true), (10, 4, false), (7, 2, false)] {
        let requests =
            [(0, request(Read, 900, 1)), (100, request(Write, 8, 4)), (200, request(Read, lba, blocks))];
        let (seen, ..) = go(drive(&text, "cmr", "sptf,depth=8", None), &requests);
        assert_eq!(!seen.answered.is_empty(), answered, "{blocks} blocks from {lba} on");
    }
}

/// Reading the whole of block 900's track takes the drive until `free`. What comes then is looked at together with what waits; what has waited
/// for `max_wait` goes before what is nearer, and a nanosecond earlier it does not.
#[test]
fn a_decision_knows_all_that_came_by_then() {
    let first = |scheduler: &str, late: SimTime| {
        let mut c = drive("tiny", "cmr", scheduler, None);
        let mut seen = Seen::default();
        let Ok(_) = c.submit(us(0), &request(Read, 900, 24).numbered(0), &mut seen);
        let Ok(_) = c.submit(us(100), &request(Read, 2000, 1).numbered(1), &mut seen);
        let free = c.drive().free_at();
        let Ok(_) = c.submit(free + late, &request(Read, 925, 1).numbered(2), &mut seen);
        let Ok(()) = c.drain(&mut seen);
        (seen.dispatched[1].0, free)
    };
    let (next, free) = first("sstf,depth=8", SimTime::ZERO);
    assert_eq!((next, first("sstf,depth=8", SimTime(1)).0), (2, 1));
    let wait = free.since(us(100)).0;
    assert_eq!(first(&format!("sstf,depth=8,max_wait={wait}ns"), SimTime::ZERO).0, 1);
    assert_eq!(first(&format!("sstf,depth=8,max_wait={}ns", wait + 1), SimTime::ZERO).0, 2);
}

/// The buffer answers what it has while the medium is busy: 1 ms and 4 blocks on the bus.
#[test]
fn what_the_buffer_has_does_not_wait_for_the_medium() {
    let text = format!("{COSTS},cache=on,read_ahead=track");
    let requests = [(0, request(Read, 0, 2)), (30_000, request(Read, 900, 8)), (30_100, request(Read, 5, 4))];
    let (_, acks, c) = go(drive(&text, "cmr", "sptf,depth=8", None), &requests);
    assert!(acks[2] < acks[1], "{acks:?}");
    assert_eq!(c.drive().buffer_counters().unwrap().hits, 1);
}

/// A write that no cache may answer is not in the buffer, though another is: a read of it waits for the medium.
#[test]
fn a_write_that_the_buffer_has_not_taken_answers_no_read() {
    let text = format!("{COSTS},write_cache=on");
    let fua = HostRequest { fua: true, ..request(Write, 8, 4) };
    let requests =
        [(0, request(Read, 900, 1)), (50, request(Write, 500, 4)), (100, fua), (200, request(Read, 9, 2))];
    let (seen, ..) = go(drive(&text, "cmr", "sptf,depth=8", None), &requests);
    assert_eq!((seen.accepted.len(), seen.answered.len()), (1, 0));
}

/// Two reads of the same blocks wait; when the first has passed the head the buffer has the second, which is chosen then: four blocks go
/// over the bus.
#[test]
fn what_was_read_meanwhile_is_answered_when_it_is_chosen() {
    let text = format!("{COSTS},cache=on,read_ahead=off");
    let requests = [(0, request(Read, 900, 1)), (100, request(Read, 8, 4)), (200, request(Read, 8, 4))];
    let (seen, acks, _) = go(drive(&text, "cmr", "sptf,depth=8", None), &requests);
    assert_eq!((seen.ops.len(), acks[2]), (2, (seen.ops[1].4 + us(2000)).0.div_ceil(1000)));
}
