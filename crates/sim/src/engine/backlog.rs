//! How many requests are in the system, counted exactly while they are few.

use smrlab_units::SimTime;

const SLOTS: usize = 4096;

/// The completion times of the latest requests, which must not fall.
pub struct Backlog {
    ends: Box<[SimTime; SLOTS]>,
    first: usize,
    len: usize,
    max: usize,
    overflowed: bool,
}

impl Default for Backlog {
    fn default() -> Self {
        let ends = vec![SimTime::ZERO; SLOTS].into_boxed_slice().try_into().expect("made with this length");
        Self { ends, first: 0, len: 0, max: 0, overflowed: false }
    }
}

impl Backlog {
    /// A request that arrived at `arrival` will complete at `end`.
    #[inline]
    pub fn add(&mut self, arrival: SimTime, end: SimTime) {
        while self.len > 0 && self.ends[self.first] <= arrival {
            self.first = (self.first + 1) % SLOTS;
            self.len -= 1;
        }
        if self.len == 0 {
            // Few are waiting nearly always: then few cache lines are in use.
            self.first = 0;
        }
        if self.len == SLOTS {
            self.overflowed = true;
            self.first = (self.first + 1) % SLOTS;
            self.len -= 1;
        }
        self.ends[(self.first + self.len) % SLOTS] = end;
        self.len += 1;
        self.max = self.max.max(self.len);
    }

    /// The largest number of requests in the system; `None`: more than are counted here.
    pub fn max(&self) -> Option<u64> {
        (!self.overflowed).then_some(self.max as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_those_that_have_not_completed() {
        let mut b = Backlog::default();
        for (arrival, end) in [(0, 10), (5, 20), (10, 30), (30, 40)] {
            b.add(SimTime(arrival), SimTime(end));
        }
        assert_eq!(b.max(), Some(2));
        for _ in 0..SLOTS {
            b.add(SimTime(31), SimTime(1000));
        }
        assert_eq!(b.max(), None);
    }
}
