//! Writes without time, as prefills send them.

use super::*;
use crate::{ArrayContext, parse};
use smrlab_stl::zones_of;
use std::ops::Range;

/// The blocks of each member that were told to be written without time.
#[derive(Default)]
struct Filled([Vec<u64>; 3]);

impl Observer for Filled {
    type Error = Infallible;
}

impl ArrayObserver for Filled {
    fn prefilled(&mut self, op: &MemberOp, _: &MemberPlan, _: Option<&TimedPlan<'_>>) {
        if op.request.op == HostOp::Write {
            self.filled(op.member, op.request.span());
        }
    }

    fn filled(&mut self, member: MemberId, blocks: Range<u64>) {
        self.0[member.at()].extend(blocks);
    }
}

/// Two rows of three drives in chunks of eight blocks: each drive writes the first sixteen blocks of its first zone, and observers are
/// told so, whether the rows are written whole, which takes no plan, or a chunk at a time.
#[test]
fn drives_and_observers_get_the_same_of_whole_rows_and_of_parts() {
    for blocks in [32, 8] {
        let members: Vec<Member> = (0..3).map(|_| drive("host-aware,zone=128KiB")).collect();
        let size = members[0].drive().unwrap().layer().host_blocks();
        let array = parse("raid5,disks=3,chunk=8blk").unwrap().build(&ArrayContext::new(&[size; 3])).unwrap();
        let mut all = EventLoop::new(array.array, members, Vec::new(), Schedule::default(), false);
        let mut filled = Filled::default();
        for lba in (0..32).step_by(blocks) {
            let Ok(()) =
                all.instantly(&HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks as u64)), &mut filled);
        }
        for told in &mut filled.0 {
            told.sort_unstable();
            told.dedup();
            assert_eq!(*told, (0..16).collect::<Vec<u64>>(), "in writes of {blocks}");
        }
        for drive in all.members().filter_map(Member::drive) {
            assert_eq!(zones_of(drive.layer())[0].pointer, Some(Lba(16)), "in writes of {blocks}");
        }
    }
}
