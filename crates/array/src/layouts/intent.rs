//! What is remembered of stripes that are being written, so that after a power cut copies or parity can be made to fit again: stripes
//! one by one where that is recorded, all of them in order, some at a time, where it is not.

use crate::{MemberPlan, Record, Sink, Stop};
use smrlab_stl::Counted;
use std::collections::BTreeSet;
use std::ops::Range;

/// Stripes in doubt after which it is remembered how far a scrub is.
const REMEMBERED: u64 = 1024;

/// What is recorded. The tags are the same in all layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IntentChange {
    /// These stripes may not fit.
    Dirty(Range<u64>),
    /// They fit again.
    Clean(Range<u64>),
    /// After a power loss of the host all stripes from this one on are in doubt.
    Doubt(u64),
}

impl IntentChange {
    /// As a record.
    pub(super) fn put(&self, to: &mut dyn Sink) {
        match self {
            Self::Dirty(stripes) => to.push(5, [stripes.start, stripes.end]),
            Self::Clean(stripes) => to.push(6, [stripes.start, stripes.end]),
            Self::Doubt(from) => to.push(7, [*from]),
        }
    }

    /// The event that a record is.
    pub(super) fn of(record: Record<'_>) -> Option<Self> {
        let stripes = record.word(0)..record.word(1);
        match record.tag {
            5 => Some(Self::Dirty(stripes)),
            6 => Some(Self::Clean(stripes)),
            7 => Some(Self::Doubt(stripes.start)),
            _ => None,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Intent {
    stripes: u64,
    /// So many are looked at at a time.
    at_a_time: u64,
    /// Those from the first of these on are in doubt.
    doubt: Range<u64>,
    /// The first of them that nobody looks at yet.
    next: u64,
    /// Those before that one, behind the first in doubt, that were looked at.
    looked_at: BTreeSet<u64>,
    /// Stripes of which the records say that they may not fit: those of works that were cut.
    dirty: BTreeSet<u64>,
}

impl Intent {
    /// Of so many stripes, of which `at_a_time` are looked at together.
    pub(super) fn new(stripes: u64, at_a_time: u64) -> Self {
        Self { stripes, at_a_time, ..Self::default() }
    }

    /// These stripes may not fit from here on.
    pub(super) fn dirty(&self, stripes: Range<u64>, plan: &mut MemberPlan) {
        IntentChange::Dirty(stripes).put(plan.records_mut());
    }

    /// They fit again.
    pub(super) fn clean(&mut self, stripes: Range<u64>, plan: &mut MemberPlan) {
        if !self.dirty.is_empty() {
            stripes.clone().for_each(|stripe| _ = self.dirty.remove(&stripe));
        }
        IntentChange::Clean(stripes).put(plan.records_mut());
    }

    /// The server ended badly; where it was killed and works are `remembered`, their records say what was under way, else all is in
    /// doubt.
    pub(super) fn unclean(&mut self, stop: Stop, remembered: bool, plan: &mut MemberPlan) {
        if stop != Stop::Killed || !remembered {
            self.doubt_from(0);
            IntentChange::Doubt(0).put(plan.records_mut());
        }
    }

    fn doubt_from(&mut self, stripe: u64) {
        (self.doubt, self.next) = (stripe..self.stripes, stripe);
        self.looked_at.clear();
    }

    /// Whether a stripe is in doubt, or was until all before it have been looked at.
    #[inline]
    pub(super) fn doubts(&self, stripe: u64) -> bool {
        self.doubt.contains(&stripe)
    }

    /// Stripes in doubt.
    pub(super) fn left(&self) -> u64 {
        self.doubt.end - self.doubt.start
    }

    /// Whether one of them waits to be looked at, and may be.
    pub(super) fn waits(&self) -> bool {
        self.next < self.doubt.end && self.next - self.doubt.start < self.at_a_time
    }

    /// The stripe to look at next.
    pub(super) fn look(&mut self) -> Option<u64> {
        self.waits().then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// A stripe was looked at: it fits, or cannot be made to. Every so often it is remembered up to where all were.
    pub(super) fn looked_at(&mut self, stripe: u64, plan: &mut MemberPlan) {
        if (self.doubt.start..self.next).contains(&stripe) {
            self.looked_at.insert(stripe);
        }
        while self.looked_at.remove(&self.doubt.start) {
            self.doubt.start += 1;
            if self.left() == 0 || self.doubt.start.is_multiple_of(REMEMBERED) {
                IntentChange::Doubt(self.doubt.start).put(plan.records_mut());
            }
        }
    }

    /// Takes up an event that was recorded.
    pub(super) fn recover(&mut self, event: IntentChange) {
        match event {
            IntentChange::Dirty(stripes) => stripes.for_each(|stripe| _ = self.dirty.insert(stripe)),
            IntentChange::Clean(stripes) => stripes.for_each(|stripe| _ = self.dirty.remove(&stripe)),
            IntentChange::Doubt(from) => self.doubt_from(from),
        }
    }

    /// Stripes of which the records say that they may not fit, and that were not made to since.
    pub(super) fn left_dirty(&self) -> impl Iterator<Item = u64> {
        self.dirty.iter().copied()
    }

    /// How many are in doubt, where any is: rows, or chunks of a mirror.
    pub(super) fn counters(&self, out: &mut Counted) {
        if self.left() > 0 {
            out.level("rows_in_doubt", self.left());
        }
    }

    /// The present state as records, beside the stripes of works under way.
    pub(super) fn checkpoint(&self, out: &mut dyn Sink) {
        if self.left() > 0 {
            IntentChange::Doubt(self.doubt.start).put(out);
        }
        self.left_dirty().for_each(|stripe| IntentChange::Dirty(stripe..stripe + 1).put(out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;

    /// After a power cut all of 3000 stripes are looked at, one at a time; that is remembered at the beginning, after each 1024, and at the
    /// end, and who takes up the records goes on there.
    #[test]
    fn a_scrub_is_remembered_every_so_often() {
        let (mut intent, mut plan) = (Intent::new(3000, 1), MemberPlan::new(false));
        intent.unclean(Stop::PowerLost, true, &mut plan);
        let mut left = Vec::new();
        for stripe in 0..3000 {
            assert_eq!((intent.look(), intent.look()), (Some(stripe), None));
            intent.looked_at(stripe + 1, &mut plan);
            assert!(intent.doubts(stripe) && !intent.waits());
            intent.looked_at(stripe, &mut plan);
            let mut told = Counted::default();
            intent.counters(&mut told);
            assert_eq!(told.iter().next(), (stripe < 2999).then_some(("rows_in_doubt", 2999 - stripe)));
            if stripe % 1000 == 999 {
                let mut again = Intent::new(3000, 1);
                plan.records().iter().filter_map(IntentChange::of).for_each(|change| again.recover(change));
                left.push((intent.left(), again.left()));
            }
        }
        let told: Vec<_> = plan.records().iter().filter_map(IntentChange::of).collect();
        assert_eq!(told, [0, 1024, 2048, 3000].map(IntentChange::Doubt));
        assert_eq!((left, intent.look()), (vec![(2000, 3000), (1000, 1976), (0, 0)], None));
        let mut killed = Intent::new(3000, 1);
        killed.unclean(Stop::Killed, true, &mut plan);
        assert_eq!(killed.left(), 0, "records say what was under way");
    }

    /// Of five stripes three are looked at at a time. What ends before those in front of it is in doubt until they have ended.
    #[test]
    fn some_are_looked_at_at_a_time() {
        let (mut intent, mut plan) = (Intent::new(5, 3), MemberPlan::new(false));
        intent.unclean(Stop::PowerLost, true, &mut plan);
        let looks = |intent: &mut Intent| std::iter::from_fn(|| intent.look()).collect::<Vec<_>>();
        assert_eq!(looks(&mut intent), [0, 1, 2]);
        for (ends, begin, left) in
            [(1, vec![], 5), (4, vec![], 5), (0, vec![3, 4], 3), (4, vec![], 3), (2, vec![], 2)]
        {
            intent.looked_at(ends, &mut plan);
            assert_eq!((looks(&mut intent), intent.left()), (begin, left), "{ends}");
        }
        assert!(intent.doubts(4), "it ended before 3");
        intent.looked_at(3, &mut plan);
        assert_eq!((intent.left(), intent.waits()), (0, false));
        let told: Vec<_> = plan.records().iter().filter_map(IntentChange::of).collect();
        assert_eq!(told, [0, 5].map(IntentChange::Doubt));
        // Who takes up the records in between begins with all that may be in doubt.
        intent.recover(IntentChange::Doubt(2));
        assert_eq!((intent.left(), looks(&mut intent)), (3, vec![2, 3, 4]));
    }

    /// Of three stripes that a cut left in doubt one is made to fit: a checkpoint has the others.
    #[test]
    fn a_checkpoint_has_what_a_cut_left() {
        let (mut intent, mut plan, mut kept) =
            (Intent::new(9, 1), MemberPlan::new(false), Records::default());
        intent.recover(IntentChange::Dirty(3..6));
        intent.clean(4..5, &mut plan);
        intent.checkpoint(&mut kept);
        let told: Vec<_> = kept.iter().filter_map(IntentChange::of).collect();
        assert_eq!(told, [IntentChange::Dirty(3..4), IntentChange::Dirty(5..6)]);
    }
}
