//! The wall clock beside the model's: when requests come in model time, and waiting until the model has done them.
//!
//! Deadlines are absolute, so a late wake-up delays one request and nothing after it: the model's clock never drifts.
#![allow(unsafe_code)]

use crate::capture::Recorder;
use crate::config::Timing;
use crate::error::Result;
use serde_json::{Value, json};
use smrlab_units::{HostOp, SimTime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The last stretch before a deadline is not slept: a sleeper wakes later than asked.
const SPIN: Duration = Duration::from_micros(60);
/// Lateness is counted in buckets of an eighth of a power of two of nanoseconds.
const BUCKETS: usize = 64 * 8;

/// See the [module](self).
pub struct Pace {
    start: Instant,
    speed: f64,
    timing: Timing,
    late: Vec<AtomicU64>,
    recorder: Option<Recorder>,
}

impl Pace {
    /// The model's time 0 is now.
    pub fn new(timing: Timing, speed: f64, recorder: Option<Recorder>) -> Self {
        let late = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { start: Instant::now(), speed, timing, late, recorder }
    }

    /// Whether requests complete in model time.
    pub fn modelled(&self) -> bool {
        self.timing == Timing::Model
    }

    /// The model's time.
    #[inline]
    pub fn now(&self) -> SimTime {
        let ns = self.start.elapsed().as_nanos() as u64;
        SimTime(if self.speed == 1.0 { ns } else { (ns as f64 * self.speed) as u64 })
    }

    /// The model's time at which it gets a request, noted in the capture; the caller holds what keeps requests in order.
    ///
    /// # Errors
    /// When the capture cannot be written on.
    #[inline]
    pub fn arrive(&self, op: HostOp, start: u64, blocks: u64) -> Result<SimTime> {
        let now = self.now();
        if let Some(recorder) = &self.recorder {
            recorder.note(now, op, start, blocks)?;
        }
        Ok(now)
    }

    /// Finishes the capture.
    ///
    /// # Errors
    /// As [`Recorder::finish`].
    pub fn finish(&self) -> Result<()> {
        self.recorder.as_ref().map_or(Ok(()), Recorder::finish)
    }

    /// When the model's time is `at`.
    pub fn instant(&self, at: SimTime) -> Instant {
        let ns = if self.speed == 1.0 { at.0 } else { (at.0 as f64 / self.speed) as u64 };
        self.start + Duration::from_nanos(ns)
    }

    /// Returns when the model's time is `at`, and notes by how much later than that it is.
    pub fn wait(&self, at: SimTime) {
        if !self.modelled() {
            return;
        }
        let deadline = self.instant(at);
        let slept = deadline.checked_sub(SPIN).map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = slept.filter(|r| !r.is_zero()) {
            sharp();
            std::thread::sleep(rest);
        }
        while Instant::now() < deadline {
            std::hint::spin_loop();
        }
        let late = Instant::now().saturating_duration_since(deadline).as_nanos() as u64;
        self.late[bucket(late)].fetch_add(1, Relaxed);
    }

    /// Forgets the lateness so far.
    pub fn reset(&self) {
        self.late.iter().for_each(|b| b.store(0, Relaxed));
    }

    /// How late requests were: count, p50, p99 and maximum in microseconds (an eighth of an octave too high at most).
    pub fn lateness(&self) -> Value {
        let counts: Vec<u64> = self.late.iter().map(|b| b.load(Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        let at = |share: f64| {
            let mut left = (total as f64 * share).ceil() as u64;
            let found = counts.iter().position(|n| {
                let done = *n >= left;
                left = left.saturating_sub(*n);
                done
            });
            upper(found.unwrap_or(0)) / 1e3
        };
        match total {
            0 => json!({"requests": 0}),
            _ => json!({"requests": total, "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0)}),
        }
    }
}

/// Asks the kernel to wake this thread as exactly as it can: by default it may be 50 us late.
fn sharp() {
    thread_local! {
        static DONE: () = {
            // SAFETY: a plain system call that concerns this thread only.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
        };
    }
    DONE.with(|()| ());
}

fn bucket(ns: u64) -> usize {
    match ns {
        0..8 => ns as usize,
        _ => {
            let octave = 63 - ns.leading_zeros() as usize;
            (octave - 2) * 8 + ((ns >> (octave - 3)) & 7) as usize
        }
    }
}

/// The upper edge of a bucket in nanoseconds.
fn upper(bucket: usize) -> f64 {
    match bucket {
        0..8 => bucket as f64 + 1.0,
        _ => {
            let (octave, part) = (bucket / 8 + 2, bucket % 8);
            2f64.powi(octave as i32) * (1.0 + (part as f64 + 1.0) / 8.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lateness_lies_below_the_edge_of_its_bucket_and_not_far() {
        for ns in [0u64, 1, 7, 8, 9, 15, 16, 100, 149_999, 150_001, 1 << 40] {
            let edge = upper(bucket(ns));
            assert!(edge > ns as f64 && edge <= ns as f64 * 1.15 + 2.0, "{ns} -> {edge}");
        }
    }

    #[test]
    fn a_deadline_is_kept_and_counted() {
        let pace = Pace::new(Timing::Model, 2.0, None);
        pace.wait(SimTime::from_ms(20));
        assert!(pace.start.elapsed() >= Duration::from_millis(10));
        assert_eq!(pace.lateness()["requests"], 1);
    }
}
