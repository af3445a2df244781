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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::Fake;

    /// The same blocks from the other end, however many; all else is the target's own.
    #[test]
    fn blocks_are_counted_from_the_end() {
        let mut target = Mirrored(Fake::new(1000, |_, _, _, now| now + 7));
        target.0.flush = 5;
        for (lba, blocks) in [(0, 1), (0, 8), (992, 8), (10, 990), (999, 1), (0, 1000)] {
            target.access(Dir::Write, Lba(lba), Blocks(blocks)).unwrap();
            let (dir, first, n) = *target.0.asked.last().unwrap();
            assert_eq!((dir, first + lba + n, n), (Dir::Write, 1000, blocks));
        }
        assert_eq!(target.blocks(), Blocks(1000));
        target.pause(SimTime(100));
        let flush = target.flush().unwrap();
        assert_eq!((flush.start, flush.end), (SimTime(6 * 7 + 100), SimTime(6 * 7 + 105)));
    }
}
