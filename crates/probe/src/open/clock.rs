//! The clock of targets that are real.

use smrlab_units::SimTime;
use std::time::{Duration, Instant};

/// Time since a target was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> SimTime {
        SimTime(self.0.elapsed().as_nanos() as u64)
    }

    /// Waits to within microseconds: sleeps for most of it, and spins for the rest.
    pub(super) fn pause(self, span: SimTime) {
        let until = Instant::now() + Duration::from_nanos(span.0);
        let slack = Duration::from_millis(2);
        if let Some(rest) = until.checked_duration_since(Instant::now()).filter(|rest| *rest > slack) {
            std::thread::sleep(rest - slack);
        }
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short pauses and long ones, which are slept through in part.
    #[test]
    fn a_pause_is_no_shorter_than_it_is_meant_to_be() {
        let clock = Clock::start();
        for us in [0, 300, 1900, 2100, 5000] {
            let before = clock.now();
            clock.pause(SimTime(us * 1000));
            assert!(clock.now().since(before) >= SimTime(us * 1000), "{us} us");
        }
    }

    /// A sleep ends some 50 us late: the end of a pause is not slept through. Now and then the host is late all the same.
    #[test]
    fn a_pause_ends_in_time() {
        let clock = Clock::start();
        let late = |_| {
            let before = clock.now();
            clock.pause(SimTime::from_ms(4));
            clock.now().since(before).since(SimTime::from_ms(4))
        };
        let best = (0..50).map(late).min();
        assert!(best < Some(SimTime::from_us(20)), "{best:?}");
    }
}
