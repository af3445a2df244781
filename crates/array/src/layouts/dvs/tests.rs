//! Groups, tables and stripes, work by work.

use super::group::Holds;
use super::shape::TableZone;
use super::*;
use crate::{ArrayContext, parse};
use smrlab_stl::Cause;

/// Three disks, chunks of two blocks, eight of the host's in a group, segments of `length`.
fn dvs(length: u64, zone: bool, options: impl FnOnce(&mut DvsOptions)) -> Dvs {
    let shape = Shape { chunk: 2, disks: 3, length, logical: 8, groups: 9, zone: None };
    let zone = if zone { TableZone::new(&shape, 11, SimTime::from_ms(1000)) } else { None };
    let mut all = DvsOptions { idle: Some(SimTime::from_ms(50)), ..DvsOptions::plain() };
    options(&mut all);
    Dvs::new(Shape { zone, ..shape }, all)
}

/// Does all phases of a work; what was asked of the disks for the tables: disk, first block, blocks.
fn carry_out(dvs: &mut Dvs, ms: u64, work: Work) -> Vec<(u32, u64, u64)> {
    let (ticket, mut plan, mut asked) = (Ticket(0), MemberPlan::at(SimTime::from_ms(ms)), Vec::new());
    dvs.start(ticket, &work, &mut plan);
    while !plan.ops().is_empty() {
        let tables = plan.ops().iter().filter(|op| op.request.why == Cause::Metadata);
        asked.extend(tables.map(|op| (op.member.0, op.request.lba.0, op.request.blocks.0)));
        plan.clear();
        dvs.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
    }
    asked
}

/// Blocks `lba` to `lba + blocks`; a group has 16.
fn host(op: HostOp, lba: u64, blocks: u64) -> Work {
    Work::Host(HostRequest::new(op, Lba(lba), Blocks(blocks)))
}

/// The group that is collected next.
fn next(dvs: &mut Dvs) -> Option<u64> {
    dvs.wake_at(Some(SimTime::ZERO))?;
    let mut plan = MemberPlan::at(SimTime::from_ms(50));
    dvs.wake(&mut plan);
    dvs.collecting = false;
    plan.jobs().first().map(|job| job.of)
}

/// Of five chunks written one is obsolete, a fifth; of six two, a third: only that is worth it.
#[test]
fn a_group_is_collected_when_enough_of_it_is_obsolete() {
    let mut dvs = dvs(4, false, |_| {});
    for lba in [0, 2, 4, 6, 0] {
        carry_out(&mut dvs, 1, host(HostOp::Write, lba, 2));
    }
    assert_eq!(next(&mut dvs), None);
    carry_out(&mut dvs, 1, host(HostOp::Write, 2, 2));
    assert_eq!(next(&mut dvs), Some(0));
    assert_eq!(dvs.wake_at(Some(SimTime::from_ms(7))), Some(SimTime::from_ms(57)));
}

/// Groups 0 and 1, half obsolete each. Every request counts for all the groups that it touches, reads too.
#[test]
fn victims_follow_the_requests() {
    let with = |rule| {
        let mut dvs = dvs(8, false, |o| o.victim = victim::named(rule));
        for lba in [0, 0, 16, 16] {
            carry_out(&mut dvs, 1, host(HostOp::Write, lba, 2));
        }
        let mut found = vec![next(&mut dvs)];
        for (lba, blocks) in [(0, 2), (14, 4), (16, 2)] {
            carry_out(&mut dvs, 2, host(HostOp::Read, lba, blocks));
            found.push(next(&mut dvs));
        }
        found.into_iter().map(|group| group.unwrap()).collect::<Vec<_>>()
    };
    // A request of both leaves them level, and the first one goes; so it is where as many touched each.
    assert_eq!(with("recent"), [1, 0, 0, 1]);
    assert_eq!(with("least-recent"), [0, 1, 0, 0]);
    assert_eq!(with("frequent"), [0, 0, 0, 0]);
}

/// A stripe of chunk 4 of the third row is filled from that row: with chunk 5, not with 3 of the row before it.
#[test]
fn stripes_are_filled_from_the_row_that_is_written() {
    let mut dvs = dvs(8, false, |o| o.stripes = Stripes::Fill);
    carry_out(&mut dvs, 1, host(HostOp::Write, 0, 16));
    carry_out(&mut dvs, 1, host(HostOp::Write, 8, 2));
    let last = dvs.group(0).and_then(|g| g.stripes().last()).unwrap();
    let holds: Vec<_> = last.iter().map(|c| c.holds()).collect();
    assert_eq!(holds, [Holds::Parity, Holds::Chunk(4), Holds::Chunk(5)]);
    assert_eq!(dvs.counts.filled, 1);
}

/// Chunks 0 and 2 are on disk 0, 1 on disk 1: a stripe is filled neither with what is written beside it nor twice with one chunk.
#[test]
fn stripes_are_filled_with_chunks_that_are_in_no_other() {
    let mut dvs = dvs(8, false, |o| o.stripes = Stripes::Fill);
    (0..2).for_each(|_| _ = carry_out(&mut dvs, 1, host(HostOp::Write, 0, 6)));
    assert_eq!(dvs.counts.filled, 0);
    let mut dvs = self::dvs(8, false, |o| o.stripes = Stripes::Fill);
    carry_out(&mut dvs, 1, host(HostOp::Write, 0, 6));
    let (ticket, mut plan) = (Ticket(0), MemberPlan::at(SimTime::from_ms(1)));
    dvs.start_runs(ticket, &[0..2, 4..6], &mut plan);
    while !plan.ops().is_empty() {
        plan.clear();
        dvs.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
    }
    assert_eq!(dvs.counts.filled, 1);
}

/// A collection in idle time reads the chunks and has them on the SSD before it resets anything.
#[test]
fn collections_in_idle_time_go_through_the_journal() {
    let mut dvs = dvs(8, false, |o| o.journal = true);
    (0..2).for_each(|_| _ = carry_out(&mut dvs, 1, host(HostOp::Write, 0, 4)));
    let (ticket, mut plan) = (Ticket(0), MemberPlan::at(SimTime::from_ms(1)));
    dvs.start(ticket, &Work::Job(Task::Collect(0).into()), &mut plan);
    plan.clear();
    dvs.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
    let asked: Vec<_> =
        plan.ops().iter().map(|op| (op.member.0, op.request.op, op.request.blocks.0)).collect();
    assert_eq!(asked, [(3, HostOp::Write, 4)]);
}

/// While it reads, a collection in idle time is given up when the host is back, and may begin again; once it writes, it goes on.
#[test]
fn a_collection_is_given_up_when_the_host_is_back_before_it_writes() {
    let ticket = Ticket(0);
    for after in [0, 1] {
        let mut dvs = dvs(8, false, |_| {});
        (0..2).for_each(|_| _ = carry_out(&mut dvs, 1, host(HostOp::Write, 0, 4)));
        let mut plan = MemberPlan::at(SimTime::from_ms(1));
        dvs.wake(&mut plan);
        let job = plan.jobs()[0];
        plan.clear();
        dvs.start(ticket, &Work::Job(job), &mut plan);
        for _ in 0..after {
            plan.clear();
            dvs.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
        }
        assert_eq!(plan.ops().iter().any(|op| op.request.op == HostOp::Write), after == 1);
        plan.clear();
        dvs.complete(Phase { ticket, lost: false, untaken: None, busy: true }, &mut plan);
        assert!(plan.ops().is_empty());
        assert_eq!((dvs.counts.given_up, dvs.counts.background), [(1, 0), (0, 1)][after]);
        assert_eq!((dvs.collecting, next(&mut dvs)), (false, [Some(0), None][after]));
    }
}

/// Tables of a dead disk are on the SSD alone; a fresh one gets those of all groups that have any, adjacent ones at once.
/// Groups 0 and 3 have theirs on disk 0, blocks 38 and 39 where segments are of four chunks.
#[test]
fn a_fresh_disk_gets_its_tables() {
    let mut dvs = dvs(4, true, |o| o.idle = None);
    (0..4).for_each(|g| _ = carry_out(&mut dvs, 1, host(HostOp::Write, g * 16, 2)));
    assert_eq!(
        carry_out(&mut dvs, 1001, Work::Job(Task::WriteTables(0).into())),
        [(0, 38, 2), (1, 38, 1), (2, 38, 1)]
    );
    let mut plan = MemberPlan::at(SimTime::from_ms(1002));
    dvs.failed(MemberId(1), &mut plan);
    (0..2).for_each(|g| _ = carry_out(&mut dvs, 1003, host(HostOp::Write, g * 16, 2)));
    assert_eq!(carry_out(&mut dvs, 2003, Work::Job(Task::WriteTables(0).into())), [(0, 38, 1)]);
    plan.begin(SimTime::from_ms(2004));
    dvs.replaced(MemberId(1), &mut plan);
    assert_eq!(dvs.dirty_tables.due, Some(SimTime::from_ms(3004)));
    // It does not answer before some of it is rebuilt; then the tables are written.
    assert_eq!(dvs.dirty_tables.groups, BTreeSet::from([1]));
}

/// Tables of two blocks: three blocks have room for one, four for two. Reads that go to and fro between two groups read a table each, or none.
#[test]
fn room_for_tables_is_a_size() {
    let read = |room: u64| {
        let text =
            format!("dvs,disks=3,chunk=8blk,segment=50,overprovision=0%,tables=zone,tables_cache={room}blk");
        let context = ArrayContext::new(&[Blocks(2000); 3]);
        let mut array = parse(&text).unwrap().build(&context).unwrap().array;
        let last = array.host_blocks().0 - 8;
        let carry_out = |array: &mut dyn Array, now: SimTime, work: Work| {
            let (ticket, mut plan) = (Ticket(0), MemberPlan::at(now));
            array.start(ticket, &work, &mut plan);
            while !plan.ops().is_empty() {
                plan.clear();
                array.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
            }
        };
        let mut now = SimTime::from_ms(1);
        for lba in [0, last] {
            carry_out(&mut *array, now, host(HostOp::Write, lba, 8));
            // What was changed is written, and may be forgotten.
            while let Some(at) = array.wake_at(None) {
                now = now.max(at);
                let mut plan = MemberPlan::at(now);
                array.wake(&mut plan);
                plan.jobs().to_vec().into_iter().for_each(|job| carry_out(&mut *array, now, Work::Job(job)));
            }
        }
        let before = crate::counted(&*array).get("tables_read");
        for lba in [0, last, 0, last, 0, last] {
            carry_out(&mut *array, now, host(HostOp::Read, lba, 8));
        }
        crate::counted(&*array).get("tables_read").zip(before).map(|(after, before)| after - before)
    };
    assert_eq!([2, 3, 4, 5].map(read), [6, 6, 0, 0].map(Some));
}

/// The power fails while a drive is rebuilt and a write to a group that was never written is under way: of that group nothing is read and written,
/// and the rebuild is over all the same.
#[test]
fn a_rebuild_goes_over_a_group_that_holds_nothing() {
    for checkpoint in [false, true] {
        let mut first = dvs(8, false, |_| {});
        carry_out(&mut first, 1, host(HostOp::Write, 16, 16));
        let mut records = Records::default();
        let mut plan = MemberPlan::at(SimTime::from_ms(2));
        first.checkpoint(&mut records);
        first.start(Ticket(9), &host(HostOp::Write, 48, 16), &mut plan);
        plan.clear();
        first.failed(MemberId(1), &mut plan);
        first.replaced(MemberId(1), &mut plan);
        plan.records().iter().for_each(|record| records.push(record.tag, record.words.iter().copied()));
        if checkpoint {
            records.clear();
            first.checkpoint(&mut records);
        }
        let mut again = dvs(8, false, |_| {});
        again.recover(&records, &mut MemberPlan::new(true));
        let (mut written, mut flushes, mut rebuilt) = (Vec::new(), 0, 0);
        while again.wake_at(None).is_some() {
            let mut plan = MemberPlan::at(SimTime::from_ms(3));
            again.wake(&mut plan);
            let job = Work::Job(plan.jobs()[0]);
            rebuilt += 1;
            plan.clear();
            again.start(Ticket(0), &job, &mut plan);
            while !plan.ops().is_empty() {
                flushes += plan.ops().iter().filter(|op| op.request.op == HostOp::Flush).count();
                let writes = plan.ops().iter().filter(|op| op.request.op == HostOp::Write);
                written.extend(writes.map(|op| (op.member.0, op.request.lba.0)));
                plan.clear();
                again.complete(
                    Phase { ticket: Ticket(0), lost: false, untaken: None, busy: false },
                    &mut plan,
                );
            }
        }
        assert_eq!((rebuilt, flushes), (2, 1));
        assert_eq!(written, [(1, 16)], "the segment of group 1");
        assert_eq!((again.health(MemberId(1)), again.unfinished()), (Health::Whole, false));
    }
}
