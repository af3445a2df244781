//! Stalls: requests whose response takes longer than people wait, and the time in which any of them was waiting.

use crate::SimTime;

/// Episodes that are kept apart; the oldest are closed beyond that, which no request waits long enough to notice.
const KEPT: usize = 1 << 16;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    threshold: SimTime,
    /// Requests that stalled.
    pub count: u64,
    /// When the first of them arrived.
    pub first: SimTime,
    /// Sum of their response times, ns: of many requests in a long queue more than 64 bits hold.
    pub total_ns: u128,
    /// The longest response time of one.
    pub max: SimTime,
    /// Time in which at least one was waiting, ns.
    pub waiting_ns: u64,
    /// The spans of that time, ascending and apart.
    episodes: Vec<(SimTime, SimTime)>,
    /// Spans that were closed.
    closed: u64,
}

impl Stalls {
    /// No stalls yet; one is a response longer than `threshold`.
    pub fn new(threshold: SimTime) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// A response longer than this is a stall.
    pub fn threshold(&self) -> SimTime {
        self.threshold
    }

    /// Spans of time in which at least one stalled request was waiting.
    pub fn episodes(&self) -> u64 {
        self.closed + self.episodes.len() as u64
    }

    /// A request that arrived at `arrival` was acknowledged at `ack`; requests come nearly in the order of their
    /// acknowledgements. `newly` gets the parts of its wait in which no other stalled request was seen to wait.
    #[inline]
    pub fn response(&mut self, arrival: SimTime, ack: SimTime, newly: impl FnMut(SimTime, SimTime)) {
        if ack.since(arrival) > self.threshold {
            self.stalled(arrival, ack, newly);
        }
    }

    #[cold]
    fn stalled(&mut self, arrival: SimTime, ack: SimTime, mut newly: impl FnMut(SimTime, SimTime)) {
        let took = ack.since(arrival);
        self.first = if self.count == 0 { arrival } else { self.first.min(arrival) };
        self.count += 1;
        self.total_ns += u128::from(took.0);
        self.max = self.max.max(took);
        // Of a long queue: it came in the last span, and makes that longer.
        if let Some(last) = self.episodes.last_mut()
            && last.0 <= arrival
            && arrival <= last.1
        {
            if last.1 < ack {
                self.waiting_ns += ack.since(last.1).0;
                newly(last.1, ack);
                last.1 = ack;
            }
            return;
        }
        // The spans that it touches. A drive's buffer answers some requests before others that were told of earlier, so
        // that spans may lie behind it too.
        let first = match self.episodes.last() {
            Some(last) if arrival <= last.1 => self.episodes.partition_point(|e| e.1 < arrival),
            // Mostly all of them are over.
            _ => self.episodes.len(),
        };
        let touched = self.episodes[first..].iter().take_while(|e| e.0 <= ack).count();
        let (mut from, mut at, mut to) = (arrival, ack, ack);
        for &(start, end) in self.episodes[first..first + touched].iter().rev() {
            if end < at {
                self.waiting_ns += at.since(end).0;
                newly(end, at);
            }
            (from, at, to) = (from.min(start), at.min(start), to.max(end));
        }
        if arrival < at {
            self.waiting_ns += at.since(arrival).0;
            newly(arrival, at);
        }
        self.episodes.splice(first..first + touched, [(from, to)]);
        if self.episodes.len() > KEPT {
            self.episodes.drain(..KEPT / 2);
            self.closed += KEPT as u64 / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a list of waits (arrival and acknowledgement, ms) comes to, with the parts that were new.
    fn told(waits: &[(u64, u64)]) -> (Stalls, Vec<(u64, u64)>) {
        let mut stalls = Stalls::new(SimTime::from_ms(500));
        let mut new = Vec::new();
        for &(arrival, ack) in waits {
            stalls.response(SimTime::from_ms(arrival), SimTime::from_ms(ack), |a, b| {
                new.push((a.0 / 1_000_000, b.0 / 1_000_000));
            });
        }
        (stalls, new)
    }

    #[test]
    fn a_stall_takes_longer_than_the_threshold() {
        let (s, _) = told(&[(0, 500), (1000, 1501)]);
        assert_eq!((s.count, s.first, s.max), (1, SimTime::from_ms(1000), SimTime::from_ms(501)));
        assert_eq!(s.waiting_ns, 501_000_000);
    }

    #[test]
    fn time_in_which_several_wait_counts_once() {
        // Two that overlap, one apart, and one that waited over all of them and before.
        let (s, new) = told(&[(100, 1100), (600, 1600), (3000, 4000)]);
        assert_eq!((s.waiting_ns, s.episodes(), s.total_ns), (2_500_000_000, 2, 3_000_000_000));
        assert_eq!(new, [(100, 1100), (1100, 1600), (3000, 4000)]);
        let (s, new) = told(&[(100, 1100), (600, 1600), (3000, 4000), (50, 5000)]);
        assert_eq!((s.waiting_ns, s.episodes(), s.first), (4_950_000_000, 1, SimTime::from_ms(50)));
        assert_eq!(new[3..], [(4000, 5000), (1600, 3000), (50, 100)]);
        assert_eq!((s.count, s.max), (4, SimTime::from_ms(4950)));
    }

    /// The second is told after the first, which was answered later; the third waited in the gap between them.
    #[test]
    fn an_answer_that_is_told_late_leaves_the_time_after_it_free() {
        let (s, new) = told(&[(3000, 4000), (1000, 1600), (1500, 2500)]);
        assert_eq!((s.waiting_ns, s.episodes()), (2_500_000_000, 2));
        assert_eq!(new, [(3000, 4000), (1000, 1600), (1600, 2500)]);
        // From the one to the other.
        let (s, new) = told(&[(3000, 4000), (1000, 1600), (1500, 3500), (0, 900)]);
        assert_eq!(
            (s.waiting_ns, s.episodes(), &new[2..]),
            (3_900_000_000, 2, &[(1600, 3000), (0, 900)][..])
        );
    }

    /// Forty requests that wait for thirty years each: 1200 years, of which 64 bits hold 584.
    #[test]
    fn the_sum_of_a_long_queue_is_more_than_64_bits_hold() {
        let mut s = Stalls::new(SimTime::from_ms(500));
        let year = 365 * 86_400 * 1_000_000_000;
        for _ in 0..40 {
            s.response(SimTime::ZERO, SimTime(30 * year), |_, _| ());
        }
        assert_eq!((s.total_ns, s.count, s.waiting_ns), (1200 * u128::from(year), 40, 30 * year));
    }

    #[test]
    fn old_episodes_are_closed_and_still_counted() {
        let n = KEPT as u64 + 10;
        let waits: Vec<_> = (0..n).map(|i| (i * 2000, i * 2000 + 600)).collect();
        let (s, _) = told(&waits);
        assert_eq!((s.episodes(), s.waiting_ns), (n, n * 600_000_000));
        assert!(s.episodes.len() <= KEPT);
    }
}
