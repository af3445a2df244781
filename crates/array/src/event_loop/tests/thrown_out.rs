//! Drives that take too long: in the queue of their scheduler, and on a bus that they share.

use super::*;
use crate::{ArrayContext, parse};

/// Two drives, and two spares; what is asked at which time; who died when, and of each request when it was done and whether it was.
fn run(
    (drive, scheduler, text): (&str, &str, &str),
    requests: &[(u64, HostOp, u64, u64)],
) -> (Vec<(u32, u64)>, Vec<(u64, bool)>) {
    let member = || of(drive, "cmr", scheduler);
    let members = vec![member(), member()];
    let sizes = [0, 1].map(|n: usize| members[n].drive().unwrap().layer().host_blocks());
    let chosen = parse(text).unwrap();
    let array = chosen.build(&ArrayContext::new(&sizes)).unwrap().array;
    let mut all = EventLoop::new(array, members, vec![member(), member()], chosen.schedule, false);
    let (mut died, mut done) = (Vec::new(), vec![(0, false); requests.len()]);
    let mut told = Told::default();
    let mut take = |all: &mut EventLoop, told: &mut Told| {
        let new = told.0.drain(..).filter(|l| l.starts_with("died"));
        died.extend(new.map(|l| (u32::from(l.contains("(1)")), all.now().0)));
        while let Some(d) = all.next_done() {
            done[d.request.id as usize] = (d.ack.0, d.refusal.is_none());
        }
    };
    for (id, &(at, op, lba, blocks)) in (0..).zip(requests) {
        while let Ok(true) = all.step(Some(SimTime(at)), &mut told) {
            take(&mut all, &mut told);
        }
        let r = HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id);
        let Ok(()) = all.submit(SimTime(at), &r, &mut told);
    }
    while all.in_flight() > 0 {
        let Ok(_) = all.step(None, &mut told);
        take(&mut all, &mut told);
    }
    take(&mut all, &mut told);
    (died, done)
}

/// A far read comes while the head is busy, and near ones keep coming: the scheduler prefers those, each of which is in time. When the
/// far one has waited as long as it may its drive is thrown out, in the midst of a near one, which it never ends.
#[test]
fn what_waits_in_a_queue_is_timed() {
    let ms = 1_000_000;
    let near = (0..8).map(|i| (20 * ms * i, HostOp::Read, 64 * i, 64));
    let mut requests: Vec<_> = near.chain([(1, HostOp::Read, 2400, 1)]).collect();
    requests.sort_by_key(|r| r.0);
    let (died, free) = run(("tiny", "sstf,depth=8", "spanning,disks=2"), &requests);
    assert!(died.is_empty() && free.iter().all(|d| d.1));
    assert!(free[1].0 > free[8].0, "the far one is the last: {free:?}");
    // It came at 1 ns.
    let limit = free[4].0 + 5 * ms;
    let (died, done) =
        run(("tiny", "sstf,depth=8", &format!("spanning,disks=2,timeout={limit}ns")), &requests);
    assert_eq!(died, [(0, limit + 1)]);
    for (i, (free, done)) in free.into_iter().zip(done).enumerate() {
        let came = requests[i].0;
        let expected = if free.0 <= limit + 1 { free } else { (came.max(limit + 1), false) };
        assert_eq!(done, expected, "{i}");
    }
}

/// 0.5 ms a block, on a bus that both drives share; commands take 1 ms, and buffers take the writes: without a limit four blocks of the
/// first drive have passed after 3 ms, and those of the second after 5 ms; of 256 blocks each, in turns of 128, after 193 and 257 ms.
#[test]
fn time_on_a_shared_bus_counts() {
    let drive = "tiny,command=1ms,bus=1.024,write_cache=on,cache_size=1024blk,segments=4";
    let us = 1000;
    for scheduler in ["fcfs", "sptf,depth=8"] {
        let of = |more: &str, blocks: u64| {
            let text = format!("spanning,disks=2,bus=1.024{more}");
            let size = behind("cmr", scheduler).drive().unwrap().layer().host_blocks().0;
            let writes = [(0, HostOp::Write, 8, blocks), (0, HostOp::Write, size + 8, blocks)];
            run((drive, scheduler, &text), &writes)
        };
        let whole = (vec![], vec![(3000 * us, true), (5000 * us, true)]);
        assert_eq!(of("", 4), whole, "{scheduler}");
        assert_eq!(of(",timeout=5ms", 4), whole, "{scheduler}: in time");
        let cut = |at: u64| (vec![(1, at)], vec![(3000 * us, true), (at, false)]);
        assert_eq!(of(",timeout=4999us", 4), cut(4999 * us), "{scheduler}");
        assert_eq!(of(",fail=1@4ms", 4), cut(4000 * us), "{scheduler}: it dies while they pass");
        let long = (vec![(1, 200_000 * us)], vec![(193_000 * us, true), (200_000 * us, false)]);
        assert_eq!(of(",timeout=200ms", 256), long, "{scheduler}");
    }
}
