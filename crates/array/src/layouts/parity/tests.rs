//! What parity arrays do when disks die or the power fails while they work by themselves, phase by phase.

use crate::plan::Outcome;
use crate::{Array, ArrayContext, MemberId, MemberPlan, Phase, Stop, Ticket, Work, parse};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba};

/// RAID-6 of five disks: data on disks 0 to 2, P on 3 and Q on 4 in every row. These disks are dead.
fn raid6(dead: &[u32]) -> Box<dyn Array> {
    let chosen = parse("raid6,disks=5,chunk=8blk,layout=parity-last,rebuild_unit=16blk").unwrap();
    let mut array = chosen.build(&ArrayContext::new(&[Blocks(80); 5])).unwrap().array;
    dead.iter().for_each(|disk| fail(&mut *array, *disk));
    array
}

fn fail(array: &mut dyn Array, disk: u32) {
    array.failed(MemberId(disk), &mut MemberPlan::new(true));
}

fn replace(array: &mut dyn Array, disk: u32) {
    array.replaced(MemberId(disk), &mut MemberPlan::new(true));
}

/// What is asked of which disk.
fn asked(plan: &MemberPlan) -> Vec<(HostOp, u32)> {
    plan.ops().iter().map(|op| (op.request.op, op.member.0)).collect()
}

/// Begins the next job of the array's own; what it asks for first.
fn begin(array: &mut dyn Array) -> Vec<(HostOp, u32)> {
    let mut plan = MemberPlan::new(true);
    array.wake(&mut plan);
    let job = plan.jobs()[0];
    plan.clear();
    array.start(Ticket(0), &Work::Job(job), &mut plan);
    asked(&plan)
}

/// A phase of it is over; what it asks for next.
fn go_on(array: &mut dyn Array, lost: bool) -> Vec<(HostOp, u32)> {
    let mut plan = MemberPlan::new(true);
    array.complete(Phase { ticket: Ticket(0), lost, untaken: None, busy: false }, &mut plan);
    asked(&plan)
}

fn reads(disks: [u32; 3]) -> Vec<(HostOp, u32)> {
    disks.map(|disk| (HostOp::Read, disk)).to_vec()
}

/// Disk 0 is rebuilt from 1, 2 and P. Disk 1 dies, before it has answered or after: that takes P and Q, which is read now.
#[test]
fn a_unit_is_read_again_when_another_disk_dies_meanwhile() {
    for answered in [true, false] {
        let mut array = raid6(&[0]);
        replace(&mut *array, 0);
        assert_eq!(begin(&mut *array), reads([1, 2, 3]));
        fail(&mut *array, 1);
        assert_eq!(go_on(&mut *array, !answered), reads([2, 3, 4]));
        assert_eq!(go_on(&mut *array, false), [(HostOp::Write, 0)]);
        // The second of five units is read from what is left at once.
        assert_eq!(go_on(&mut *array, false), []);
        assert_eq!(begin(&mut *array), reads([2, 3, 4]));
    }
}

/// After a power cut each row gets parity anew, but for one for each chunk that is lost: that parity is all that is known of the chunk.
#[test]
fn a_row_in_doubt_keeps_the_parity_that_stands_for_a_lost_chunk() {
    let resync = |dead: &[u32]| {
        let mut array = raid6(dead);
        array.unclean(Stop::PowerLost, &mut MemberPlan::new(true));
        let first = begin(&mut *array);
        (first, go_on(&mut *array, false))
    };
    let (p, q) = ((HostOp::Write, 3), (HostOp::Write, 4));
    assert_eq!(resync(&[]), (reads([0, 1, 2]), vec![p, q]));
    assert_eq!(resync(&[1]), (reads([0, 2, 3]), vec![q]));
    assert_eq!(resync(&[3]), (reads([0, 1, 2]), vec![q]));
    assert_eq!(resync(&[4]), (reads([0, 1, 2]), vec![p]));
    assert_eq!(resync(&[0, 1]), (vec![], vec![]));
}

/// The same when a disk dies while the row is read: what is made anew follows the disks that are left.
#[test]
fn a_row_in_doubt_is_read_again_when_a_disk_dies_meanwhile() {
    let mut array = raid6(&[]);
    array.unclean(Stop::PowerLost, &mut MemberPlan::new(true));
    assert_eq!(begin(&mut *array), reads([0, 1, 2]));
    fail(&mut *array, 1);
    assert_eq!(go_on(&mut *array, false), reads([0, 2, 3]));
    assert_eq!(go_on(&mut *array, false), [(HostOp::Write, 4)]);
}

/// Disk 0 is rebuilt up to row 2 when disks 1 and 2 die, too: the first two rows can be read and written, the others cannot. What touches both
/// kinds is refused, and asks no disk for what could be had.
#[test]
fn what_is_refused_asks_for_nothing() {
    let mut array = raid6(&[0]);
    replace(&mut *array, 0);
    assert_eq!(begin(&mut *array), reads([1, 2, 3]));
    assert_eq!(go_on(&mut *array, false), [(HostOp::Write, 0)]);
    assert_eq!(go_on(&mut *array, false), []);
    [1, 2].into_iter().for_each(|disk| fail(&mut *array, disk));
    // A row holds 24 blocks of the host's.
    for (op, first) in [(HostOp::Read, vec![0, 3, 4]), (HostOp::Write, vec![0, 3, 4])] {
        let mut ask = |lba: u64, blocks: u64| {
            let mut plan = MemberPlan::new(true);
            array.start(Ticket(1), &Work::Host(HostRequest::new(op, Lba(lba), Blocks(blocks))), &mut plan);
            (plan.ops().iter().map(|op| op.member.0).collect::<Vec<_>>(), plan.outcomes().to_vec())
        };
        assert_eq!(ask(24, 24), (first, vec![]), "{op:?}");
        assert_eq!(ask(24, 48), (vec![], vec![Outcome::Refused(Ticket(1), Refusal::Lost)]), "{op:?}");
    }
}
