//! A target whose LBAs run backwards.

use crate::target::{TargetError, TimedTarget, Timing};
use smrlab_units::{Blocks, Dir, Lba, SimTime, forward};

/// What is shingled towards higher LBAs is shingled towards lower ones here.
#[derive(Debug)]
pub struct Mirrored<T>(pub T);

impl<T: TimedTarget> TimedTarget for Mirrored<T> {
    forward! { 0:
        fn blocks(&self) -> Blocks;
        fn flush(&mut self) -> Result<Timing, TargetError>;
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        // What does not lie within the target stays so.
        let end = lba.0.saturating_add(blocks.0);
        let lba = self.blocks().0.checked_sub(end).map_or(Lba(u64::MAX), Lba);
        self.0.access(dir, lba, blocks)
    }

    fn pause(&mut self, span: SimTime) {
        self.0.pause(span);
    }
}
