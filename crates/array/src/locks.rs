//! Stripe locks: works whose stripes meet are done in the order in which they came.

use crate::{Locks, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// Who holds a stripe and who waits for it. The front of the queue holds it, together with the shared ones that follow
/// a shared one.
type Queue = VecDeque<(Ticket, bool)>;

/// Stripe locks. A work queues for all its stripes at once, so no two can wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Table {
    queues: BTreeMap<u64, Queue>,
    /// Emptied queues, for use again.
    spare: Vec<Queue>,
}

impl Table {
    /// Queues for `locks`; answers how many stripes are not granted yet.
    pub(crate) fn acquire(&mut self, ticket: Ticket, locks: &Locks) -> u32 {
        let mut missing = 0;
        for stripe in locks.stripes.clone() {
            let spare = &mut self.spare;
            let queue = self.queues.entry(stripe).or_insert_with(|| spare.pop().unwrap_or_default());
            let granted = queue.is_empty() || (locks.shared && queue.iter().all(|q| q.1));
            missing += u32::from(!granted);
            queue.push_back((ticket, locks.shared));
        }
        missing
    }

    /// Gives `locks` back; `granted` is told each stripe that another work gets by it.
    pub(crate) fn release(&mut self, ticket: Ticket, locks: &Locks, mut granted: impl FnMut(Ticket)) {
        for stripe in locks.stripes.clone() {
            let Some(queue) = self.queues.get_mut(&stripe) else { continue };
            let Some(i) = queue.iter().position(|q| q.0 == ticket) else { continue };
            let before = holders(queue);
            queue.remove(i);
            // One holder fewer; whoever holds it now and did not before is told.
            for &(other, _) in queue.iter().take(holders(queue)).skip(before.saturating_sub(1)) {
                granted(other);
            }
            if queue.is_empty()
                && let Some(queue) = self.queues.remove(&stripe)
            {
                self.spare.push(queue);
            }
        }
    }
}

/// How many of the queue hold the stripe.
fn holders(queue: &Queue) -> usize {
    match queue.front() {
        None => 0,
        Some((_, false)) => 1,
        Some((_, true)) => queue.iter().take_while(|q| q.1).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(stripes: std::ops::Range<u64>, shared: bool) -> Locks {
        Locks { stripes, shared }
    }

    #[test]
    fn writers_wait_for_readers_and_readers_share() {
        let mut table = Table::default();
        let (a, b, c, d) = (Ticket(1), Ticket(2), Ticket(3), Ticket(4));
        let [la, lb, lc, ld] = [locks(0..2, true), locks(1..3, true), locks(1..2, false), locks(1..4, true)];
        assert_eq!(table.acquire(a, &la), 0);
        assert_eq!(table.acquire(b, &lb), 0);
        assert_eq!(table.acquire(c, &lc), 1);
        // A reader behind a waiting writer waits too: nobody is overtaken.
        assert_eq!(table.acquire(d, &ld), 1);
        let mut got = Vec::new();
        table.release(a, &la, |t| got.push(t));
        assert_eq!(got, []);
        table.release(b, &lb, |t| got.push(t));
        assert_eq!(got, [c]);
        got.clear();
        table.release(c, &lc, |t| got.push(t));
        assert_eq!(got, [d]);
        table.release(d, &ld, |_| panic!("nobody is left"));
        assert!(table.queues.is_empty());
    }
}
