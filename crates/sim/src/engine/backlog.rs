//! How many requests are in the system, counted exactly while they are few.

use smrlab_units::SimTime;

const SLOTS: usize = 4096;

/// Requests without an answer, and the latest answers that are known beforehand. Of what comes and is answered at the same instant the
/// order does not matter: they are counted when it is over.
pub struct Backlog {
    open: u64,
    /// The instant at which the latest request came.
    now: SimTime,
    /// When requests are acknowledged, ascending.
    ends: Box<[SimTime; SLOTS]>,
    first: usize,
    len: usize,
    /// The last of them, or of those that were there before.
    last: SimTime,
    max: u64,
    exact: bool,
}

impl Default for Backlog {
    fn default() -> Self {
        let ends = vec![SimTime::ZERO; SLOTS].into_boxed_slice().try_into().expect("made with this length");
        Self { open: 0, now: SimTime::ZERO, ends, first: 0, len: 0, last: SimTime::ZERO, max: 0, exact: true }
    }
}

impl Backlog {
    /// A request arrived; where the queue was full then, it is noticed later, and the answers since are known.
    #[inline]
    pub fn arrived(&mut self, at: SimTime) {
        if at > self.now {
            self.max = self.there();
            self.now = at;
            self.drop_over();
        }
        self.open += 1;
    }

    /// Forgets the answers that are there.
    #[inline]
    fn drop_over(&mut self) {
        if self.last <= self.now {
            // Nearly always none waits: then few cache lines are in use.
            (self.first, self.len) = (0, 0);
        }
        while self.len > 0 && self.ends[self.first] <= self.now {
            self.first = (self.first + 1) % SLOTS;
            self.len -= 1;
        }
    }

    /// The most so far, with those that are there now.
    fn there(&self) -> u64 {
        self.max.max(self.open + self.len as u64)
    }

    /// It is known when one of them is acknowledged.
    #[inline]
    pub fn answered(&mut self, ack: SimTime) {
        self.open -= 1;
        if ack <= self.now {
            return;
        }
        if self.len == SLOTS {
            self.exact = false;
            self.first = (self.first + 1) % SLOTS;
            self.len -= 1;
        }
        let mut i = self.len;
        if i == 0 || ack >= self.last {
            self.last = ack;
        }
        // What a buffer answers is over before what was sent earlier.
        while i > 0 && self.ends[(self.first + i - 1) % SLOTS] > ack {
            self.ends[(self.first + i) % SLOTS] = self.ends[(self.first + i - 1) % SLOTS];
            i -= 1;
        }
        self.ends[(self.first + i) % SLOTS] = ack;
        self.len += 1;
    }

    /// Whether all have an answer.
    pub fn all_answered(&self) -> bool {
        self.open == 0
    }

    /// The largest number of requests in the system, at least the one that comes; `None`: more than are counted here.
    pub fn max(&self) -> Option<u64> {
        self.exact.then(|| self.there().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_those_that_have_not_completed() {
        let mut b = Backlog::default();
        let mut serve = |arrival, end| {
            b.arrived(SimTime(arrival));
            b.answered(SimTime(end));
            b.max()
        };
        // The third one arrives when the first is over, and is over before the second.
        let seen = [(0, 10), (5, 30), (10, 20), (20, 40), (30, 50)].map(|(a, e)| serve(a, e));
        assert_eq!(seen, [1, 2, 2, 2, 2].map(Some));
        for _ in 0..SLOTS {
            serve(31, 1000);
        }
        assert_eq!(b.max(), None);
    }

    #[test]
    fn those_that_a_full_queue_left_outside_count() {
        let mut b = Backlog::default();
        // A queue of two: what comes at 2 and 3 is noticed when there is room, at 10 and at 20.
        [0, 1].into_iter().for_each(|at| b.arrived(SimTime(at)));
        b.answered(SimTime(10));
        b.arrived(SimTime(2));
        b.answered(SimTime(20));
        b.arrived(SimTime(3));
        assert_eq!(b.max(), Some(4));
    }

    #[test]
    fn those_without_an_answer_count_until_they_have_one() {
        let mut b = Backlog::default();
        (0..5).for_each(|at| b.arrived(SimTime(at)));
        assert_eq!(b.max(), Some(5));
        (0..5).for_each(|_| b.answered(SimTime(6)));
        b.arrived(SimTime(6));
        assert_eq!(b.max(), Some(5));
    }

    #[test]
    fn what_is_answered_as_it_comes_does_not_wait() {
        let mut b = Backlog::default();
        b.arrived(SimTime(0));
        b.answered(SimTime(0));
        assert_eq!(b.max(), Some(1), "it is one when it comes");
        // All come at 7, and then it is known that the first was answered at once.
        (0..3).for_each(|_| b.arrived(SimTime(7)));
        [7, 9, 9].into_iter().for_each(|ack| b.answered(SimTime(ack)));
        b.arrived(SimTime(8));
        assert_eq!(b.max(), Some(3));
    }

    /// Beside a list of all requests that is looked through at each arrival: answers come in any order, some only when others have arrived.
    #[test]
    fn counts_what_a_list_of_all_does() {
        for seed in 0..40 {
            let mut rng = smrlab_units::rng::Rng::new(seed);
            let (mut b, mut most, mut at) = (Backlog::default(), 0, 0);
            let mut all = Vec::new();
            let longest = [3, 60, 900][rng.below(3) as usize];
            let waiting = |all: &[(u64, Option<u64>)], t| {
                all.iter().filter(|(_, ack)| ack.is_none_or(|ack| ack > t)).count() as u64
            };
            for _ in 0..600 {
                let later = rng.below(4) * rng.below(9);
                if later > 0 {
                    most = most.max(waiting(&all, at));
                }
                at += later;
                b.arrived(SimTime(at));
                all.push((at, None));
                for (_, open) in all.iter_mut().filter(|(_, ack)| ack.is_none()) {
                    if rng.below(4) > 0 {
                        let ack = at + rng.below(longest);
                        *open = Some(ack);
                        b.answered(SimTime(ack));
                    }
                }
                assert_eq!(b.max(), Some(most.max(waiting(&all, at)).max(1)), "seed {seed} at {at}");
            }
        }
    }
}
