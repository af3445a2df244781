//! Which chunk reclaim takes, and what a write that waits for it costs, work by work.

use super::table::{Shape, Table};
use super::{DmZoned, DmZonedOptions};
use crate::{Array as _, MemberPlan, Phase, Ticket, Work};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction};

/// Zones of 64 blocks. 8 hold metadata, four are random, the others written in order: zone 12 is in reserve.
const ZONE: u64 = 64;
const RANDOM: u32 = 8;

/// What the drive is asked for, behind the metadata: the work, what, zone, first block there, blocks.
type Asked = (u32, HostOp, u64, u64, u64);

struct Bench {
    zoned: DmZoned,
    works: u32,
    /// Blocks of metadata.
    metadata: u64,
}

impl Bench {
    /// Reclaim begins where a write takes a random zone of which fewer than so many are free. A chunk that is written from its beginning on has a sequential zone.
    fn new(low: u64) -> Self {
        let shape = Shape::new(ZONE, (12, 30), 1);
        assert_eq!(shape.random(), RANDOM..12);
        let options = DmZonedOptions {
            sequential_first: true,
            idle: SimTime(10),
            all_pauses: false,
            high: 4,
            low,
            copy: 2048,
        };
        Self { zoned: DmZoned::new(Table::new(shape), options), works: 0, metadata: 0 }
    }

    /// What a plan asks for, with what the jobs that it begins ask for.
    fn take(&mut self, plan: &MemberPlan) -> Vec<Asked> {
        let mut asked = Vec::new();
        for op in plan.ops() {
            let (r, at) = (&op.request, op.request.lba.0);
            match r.why {
                Cause::Metadata if !matches!(r.op, HostOp::Zone(_)) => self.metadata += r.blocks.0,
                _ => asked.push((op.ticket.0, r.op, at / ZONE, at % ZONE, r.blocks.0)),
            }
        }
        for job in plan.jobs() {
            asked.extend(self.start(&Work::Job(*job)));
        }
        asked
    }

    fn start(&mut self, work: &Work) -> Vec<Asked> {
        let mut plan = MemberPlan::new(true);
        self.works += 1;
        self.zoned.start(Ticket(self.works), work, &mut plan);
        self.take(&plan)
    }

    /// What the end of a phase brings.
    fn end(&mut self, ticket: u32) -> Vec<Asked> {
        let mut plan = MemberPlan::new(true);
        let phase = Phase { ticket: Ticket(ticket), lost: false, untaken: None, busy: false };
        self.zoned.complete(phase, &mut plan);
        self.take(&plan)
    }

    /// A write of the host's begins.
    fn write(&mut self, chunk: u64, at: u64, blocks: u64) -> Vec<Asked> {
        self.start(&Work::Host(HostRequest::new(HostOp::Write, Lba(chunk * ZONE + at), Blocks(blocks))))
    }

    /// The same, and ends; nothing else happens.
    fn written(&mut self, chunk: u64, at: u64, blocks: u64) {
        let asked = self.write(chunk, at, blocks);
        assert_eq!((asked.len(), asked[0].1), (1, HostOp::Write));
        assert_eq!(self.end(asked[0].0), []);
    }

    /// Chunks 0, 1 and 2 hold 16, 24 and 48 blocks in zones 13, 14 and 15. Of two of them the first eight are in buffers now; the
    /// buffer of the third has reclaim begin.
    fn third_buffer(chunks: [u64; 3]) -> Vec<Asked> {
        let mut bench = Self::new(3);
        for (chunk, blocks) in [(0, 16), (1, 24), (2, 48)] {
            bench.written(chunk, 0, blocks);
        }
        let [first, second, third] = chunks;
        bench.written(first, 0, 8);
        bench.written(second, 0, 8);
        bench.write(third, 0, 8)
    }
}

#[test]
fn the_chunk_with_most_to_fold_comes_first() {
    let asked = Bench::third_buffer([0, 2, 1]);
    assert_eq!(asked, [(6, HostOp::Write, 10, 0, 8), (7, HostOp::Read, 15, 8, 40)]);
}

/// Not the one that has most of the others.
#[test]
fn while_that_chunk_is_written_the_oldest_is_taken() {
    let asked = Bench::third_buffer([0, 1, 2]);
    assert_eq!(asked, [(6, HostOp::Write, 10, 0, 8), (7, HostOp::Read, 13, 8, 8)]);
}

/// What a fold that was given up has copied is read from where it was, and is copied again.
#[test]
fn a_fold_that_is_given_up_was_for_nothing() {
    let mut bench = Bench::new(5);
    bench.written(0, 0, 48);
    // Valid in the sequential zone: 8 blocks, and 24 behind the gap.
    let asked = bench.write(0, 8, 16);
    assert_eq!(asked, [(2, HostOp::Write, 8, 8, 16)]);
    let fold = bench.end(2);
    assert_eq!(fold, [(3, HostOp::Read, 13, 0, 8)]);
    assert_eq!(bench.end(3), [(3, HostOp::Write, 8, 0, 8)]);
    // Reads go on, writes wait.
    assert_eq!(bench.write(0, 40, 8), []);
    let asked = bench.end(3);
    assert_eq!(asked, [(4, HostOp::Write, 8, 40, 8)]);
    let read = HostRequest::new(HostOp::Read, Lba(0), Blocks(8));
    assert_eq!(bench.start(&Work::Host(read))[0].2, 13);
    let again = bench.end(4);
    assert_eq!(again, [(6, HostOp::Read, 13, 0, 8)]);
}

/// A reclaim that is done writes its metadata. Meanwhile no write of the host's and no other reclaim begins.
#[test]
fn a_reclaim_ends_with_its_metadata() {
    let mut bench = Bench::new(5);
    bench.written(0, 0, 48);
    assert_eq!(bench.write(0, 0, 8).len(), 1);
    assert_eq!(bench.end(2), [(3, HostOp::Read, 13, 8, 40)]);
    assert_eq!(bench.end(3), [(3, HostOp::Write, 8, 8, 40)]);
    assert_eq!(bench.end(3), []);
    assert_eq!(bench.write(5, 8, 8), []);
    let mut then = Vec::new();
    while then.is_empty() {
        then = bench.end(3);
    }
    // Two sets of a superblock, a mapping, and the bitmaps of two zones.
    assert_eq!(bench.metadata, 2 * 4 * 8);
    // Behind them the zone is reset that was folded. Then the write goes on, and what was folded moves.
    assert_eq!(then, [(3, HostOp::Zone(ZoneAction::Reset), 13, 0, ZONE)]);
    assert_eq!(bench.end(3), [(4, HostOp::Write, 9, 8, 8), (5, HostOp::Read, 8, 0, 48)]);
}

/// Three of four random zones are free, and reclaim begins in the first pause; in the second it does so with `pauses=all` alone, and so it does
/// where a write had it begin before.
#[test]
fn a_pause_has_random_zones_reclaimed_where_nothing_was_before() {
    let pause = Some(SimTime(100));
    for (all_pauses, low) in [(false, 0), (true, 0), (false, 5), (true, 5)] {
        let mut bench = Bench::new(low);
        bench.zoned.options.all_pauses = all_pauses;
        assert_eq!(bench.zoned.wake_at(pause), None, "nothing to reclaim");
        let asked = bench.write(0, 8, 8);
        assert_eq!(asked, [(1, HostOp::Write, 8, 8, 8)]);
        let mut asked = bench.end(1);
        if low == 0 {
            assert_eq!((asked.len(), bench.zoned.wake_at(None)), (0, None), "the host is at work");
            assert_eq!(bench.zoned.wake_at(pause), Some(SimTime(110)));
            let mut plan = MemberPlan::new(true);
            bench.zoned.wake(&mut plan);
            asked = bench.take(&plan);
        }
        assert_eq!(asked, [(2, HostOp::Write, 13, 0, 8)], "zeroes up to what is valid");
        while !bench.zoned.can_reclaim() && bench.zoned.table.free_random.len() < 4 || bench.zoned.committing
        {
            bench.end(2);
        }
        assert_eq!(bench.zoned.counters.reclaims, 1);
        bench.zoned.options.low = 0;
        bench.written(1, 8, 8);
        assert_eq!(bench.zoned.wake_at(pause), all_pauses.then_some(SimTime(110)), "{low}");
    }
}

/// Where the one chunk that could be reclaimed is being written, a pause finds nothing to do; once that write is done the next one does.
#[test]
fn a_pause_that_found_nothing_is_followed_by_others_once_something_was_written() {
    let pause = Some(SimTime(100));
    let mut bench = Bench::new(0);
    bench.zoned.options.all_pauses = true;
    assert_eq!(bench.write(0, 8, 8), [(1, HostOp::Write, 8, 8, 8)]);
    let mut plan = MemberPlan::new(true);
    bench.zoned.wake(&mut plan);
    assert_eq!(bench.take(&plan), []);
    assert_eq!(bench.zoned.wake_at(pause), None, "it is being written");
    assert_eq!(bench.end(1), []);
    assert_eq!(bench.zoned.wake_at(pause), Some(SimTime(110)));
}
