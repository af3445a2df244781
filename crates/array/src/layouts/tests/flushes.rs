//! Flushes of all layouts: who is asked, and what is answered where nobody is left.

use super::{array, complete, host, start};
use crate::plan::Outcome;
use crate::{MemberId, MemberPlan, Ticket};
use smrlab_stl::Refusal;
use smrlab_units::HostOp;

/// A flush goes to the disks that are alive, and is over when they have done it.
#[test]
fn a_flush_waits_for_the_disks_that_are_left() {
    for (text, disks, dead) in [
        ("mirror", 2, 1),
        ("mirror,disks=4,copies=2", 4, 2),
        ("raid5,disks=3,chunk=4blk", 3, 1),
        ("raid6,disks=4,chunk=4blk", 4, 2),
        ("dvs,disks=4,chunk=8blk,segment=4", 4, 1),
    ] {
        let mut array = array(text, &vec![960; disks]);
        // Every second one: of pairs one each.
        let dead: Vec<u32> = (0..dead).map(|i| 2 * i).collect();
        dead.iter().for_each(|d| array.failed(MemberId(*d), &mut MemberPlan::new(true)));
        let plan = start(&mut *array, host(HostOp::Flush, 0, 0));
        let asked: Vec<_> = plan.ops().iter().map(|op| (op.request.op, op.member.0)).collect();
        let left = (0..disks as u32).filter(|d| !dead.contains(d)).map(|d| (HostOp::Flush, d));
        assert!(asked.iter().copied().eq(left), "{text}: {asked:?}");
        assert_eq!(complete(&mut *array, false).outcomes(), [Outcome::Ended(Ticket(0))], "{text}");
    }
}

/// With no disk that answers a flush has nobody to wait for: it is refused.
#[test]
fn a_flush_that_no_disk_can_do_is_refused() {
    let each = [
        ("mirror", 2),
        ("raid5,disks=3,chunk=4blk", 3),
        ("raid6,disks=4,chunk=4blk", 4),
        ("striped,disks=2", 2),
        ("spanning,disks=2", 2),
        ("dedicated,disks=2", 2),
        ("raid4s,disks=4,chunk=4blk", 4),
        ("dvs,disks=4,chunk=4blk,segment=10", 4),
        ("full-stripe,disks=4,chunk=4blk,segment=8", 4),
    ];
    for (text, disks) in each {
        let mut array = array(text, &vec![480; disks]);
        let mut dead = MemberPlan::new(true);
        (0..disks as u32).for_each(|disk| array.failed(MemberId(disk), &mut dead));
        let plan = start(&mut *array, host(HostOp::Flush, 0, 0));
        assert_eq!(plan.outcomes(), [Outcome::Refused(Ticket(0), Refusal::Lost)], "{text}");
    }
}
