//! Random commands, first come, first served and behind a queue, to a buffer and to the naive one.

use super::{Disk, Naive, any_controller, any_disk};
use crate::buffer::ahead::Stream;
use crate::buffer::{Counters, DriveBuffer};
use smrlab_disk::{Mechanics, Model};
use smrlab_units::rng::Rng;
use smrlab_units::{Dir, Pba, SimTime};

/// A buffer and its second, on the same disk.
struct Pair {
    naive: Naive,
    buffer: DriveBuffer,
    m: Mechanics,
}

impl Pair {
    fn any(rng: &mut Rng, queued: bool) -> Self {
        let ((g, spec), controller) = (any_disk(rng), any_controller(rng));
        let m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
        let mut buffer = DriveBuffer::new(controller);
        if queued {
            buffer.behind_queue();
        }
        let naive = Naive::new(controller, Disk::new(g, spec), queued);
        Self { naive, buffer, m }
    }

    /// Everything that can be seen of both, but for what passed the head for a command.
    fn agree(&mut self, at: &str) {
        let (n, b) = (&self.naive, &mut self.buffer);
        b.catch_up(&mut self.m);
        let segments: Vec<_> = n.held.iter().flatten().map(|h| (h.start, h.end)).collect();
        let held: Vec<_> = b.segments.filled().map(|s| (s.start, s.end())).collect();
        assert_eq!(held, segments, "{at}: segments");
        let stream = |s: Stream| (s.segment, s.from, s.began.0, s.to, s.first);
        assert_eq!(b.ahead.stream.map(stream), n.ahead, "{at}: reading ahead");
        let pieces: Vec<_> = n.dirty.iter().map(|d| (d.0, d.1, SimTime(d.2))).collect();
        let dirty: Vec<_> = b.writes.all().map(|d| (d.start, d.end, d.done)).collect();
        assert_eq!(dirty, pieces, "{at}: dirty pieces");
        assert_eq!(b.counters(), n.counters, "{at}");
        assert_eq!((b.free_at().0, self.m.head().ready.0), (n.free, n.disk.ready()), "{at}: the medium");
        for lba in [0, 17, 100, 180] {
            assert_eq!(b.holds(lba, 9), n.holds(lba, 9), "{at}: nine blocks from {lba} on");
        }
    }

    /// Something else keeps the medium.
    fn other_work_until(&mut self, free: u64) {
        self.naive.free = free;
        self.buffer.engaged(SimTime(free));
        self.buffer.engaged(SimTime(free / 2));
    }

    /// What passed the head for the last command.
    fn agree_on_what_passed(&self, at: &str) {
        let shown = self.buffer.passed().map(|p| (p.lba, p.blocks, p.start.0, p.end.0, p.before.0));
        let track = |pba| self.naive.disk.g.track_of(Pba(pba)).0;
        let want = self.naive.shown.map(|s| (s.0, s.1, s.2, s.3, track(s.4)));
        assert_eq!(shown, want, "{at}: what passed the head");
    }
}

/// Blocks that are often those of the command before, or follow them, or lie near.
fn any_span(rng: &mut Rng, before: (u64, u64), blocks: u64) -> (u64, u64) {
    let most = if rng.one_in(8) { 90 } else { 14 };
    let n = 1 + rng.below(most);
    let lba = match rng.below(5) {
        0 => before.0 + rng.below(4),
        1 | 2 => before.0 + before.1,
        3 => (before.0 + rng.below(120)).saturating_sub(60),
        _ => rng.below(blocks),
    };
    (lba.min(blocks - n), n)
}

#[test]
fn a_buffer_does_what_a_naive_one_does() {
    let mut rng = Rng::new(2811);
    let mut sum = Counters::default();
    // Reads that found the segment of the command before quiet.
    let mut at_once = 0;
    for drive in 0..260 {
        let mut p = Pair::any(&mut rng, false);
        let (blocks, mut now, mut span) = (p.m.geometry().blocks().0, 0, (0, 1));
        for command in 0..60 {
            now += [0, rng.below(3_000_000), rng.below(40_000_000)][rng.below(3) as usize];
            span = any_span(&mut rng, span, blocks);
            let kind = ([Dir::Read, Dir::Write][rng.below(2) as usize], rng.one_in(6));
            let at = format!(
                "drive {drive}, command {command}: {kind:?} of {span:?} at {now} of {:?}",
                p.naive.spec
            );
            let start = p.naive.begin(now);
            let done = p.naive.serve(start, kind, span.0, span.1);
            let tries = kind.0 == Dir::Read && command % 4 > 0;
            match tries.then(|| p.buffer.again(SimTime(now), span.0, span.1)).flatten() {
                Some(served) => {
                    at_once += 1;
                    assert_eq!(served, (SimTime(start), SimTime(done)), "{at}");
                }
                None => {
                    assert_eq!(p.buffer.begin(SimTime(now)).0, start, "{at}");
                    let got = p.buffer.command(SimTime(start), kind, span.0, span.1, &mut p.m);
                    assert_eq!(got.0, done, "{at}");
                }
            }
            p.agree_on_what_passed(&at);
            if command % 3 == 0 {
                p.agree(&at);
            }
        }
        sum = sum + p.buffer.counters();
    }
    assert!(sum.named().all(|c| c.1 > 500), "{sum:?}");
    assert!(at_once > 20, "{at_once}");
}

/// Commands wait: some are chosen when the medium is free, their overhead having passed meanwhile; writes are accepted, answer reads, and are
/// written later.
#[test]
fn behind_a_queue_it_does_what_a_naive_one_does() {
    let mut rng = Rng::new(2812);
    let mut sum = Counters::default();
    for drive in 0..200 {
        let mut p = Pair::any(&mut rng, true);
        let (blocks, mut now, mut span) = (p.m.geometry().blocks().0, 0, (0, 1));
        let (mut accepted, mut other) = (Vec::new(), 0);
        for command in 0..60 {
            now += [0, rng.below(3_000_000), rng.below(40_000_000)][rng.below(3) as usize];
            span = any_span(&mut rng, span, blocks);
            let kind = ([Dir::Read, Dir::Write][rng.below(2) as usize], rng.one_in(3));
            let what = rng.below(5);
            let at = format!(
                "drive {drive}, command {command}: {what} {kind:?} of {span:?} at {now} of {:?}",
                p.naive.spec
            );
            match what {
                0 => {
                    let (start, ack) = p.naive.accept(now, span.1);
                    assert_eq!(
                        p.buffer.accept(SimTime(now), span.1, &mut p.m),
                        (SimTime(start), SimTime(ack)),
                        "{at}"
                    );
                    accepted.push((ack, span));
                }
                1 => {
                    let (start, ack) = p.naive.answer_waiting(now, span.1);
                    assert_eq!(
                        p.buffer.answer(SimTime(now), span.1, &mut p.m),
                        (SimTime(start), SimTime(ack)),
                        "{at}"
                    );
                }
                2 | 3 if !accepted.is_empty() => {
                    let (ack, span) = accepted.remove(0);
                    now = now.max(p.naive.free);
                    p.naive.choose(now);
                    p.buffer.choose(SimTime(now), &mut p.m);
                    p.naive.destage(now, ack, span);
                    p.buffer.destage(SimTime(now), SimTime(ack), span, &mut p.m);
                    p.agree_on_what_passed(&at);
                }
                4 => {
                    other = p.naive.free.max(now) + rng.below(9_000_000);
                    p.other_work_until(other);
                }
                _ => {
                    let placed = now;
                    now = now.max(p.naive.free);
                    p.naive.choose(now);
                    p.buffer.choose(SimTime(now), &mut p.m);
                    let done = p.naive.serve(placed, kind, span.0, span.1);
                    assert_eq!(
                        p.buffer.command(SimTime(placed), kind, span.0, span.1, &mut p.m).0,
                        done,
                        "{at}"
                    );
                    p.agree_on_what_passed(&at);
                }
            }
            p.agree(&at);
        }
        assert!(other > 0);
        sum = sum + p.buffer.counters();
    }
    assert!(sum.named().all(|c| c.1 > 100), "{sum:?}");
}
