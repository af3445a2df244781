//! The wall clock beside the model's: when requests come in model time, and waiting until the model has done them.
//!
//! Deadlines are absolute, so a late wake-up delays one request and nothing after it: the model's clock never drifts.
#![allow(unsafe_code)]

use crate::capture::Recorder;
use crate::config::Timing;
use crate::error::Result;
use parking_lot::Mutex;
use serde_json::{Value, json};
use smrlab_stl::HostRequest;
use smrlab_units::{Histogram, SimTime};
use std::time::{Duration, Instant};

/// The last stretch before a deadline is not slept: a sleeper wakes later than asked.
const SPIN: Duration = Duration::from_micros(60);

/// A command of the host's, which came at a time of the model's.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The clock.
    pub clock: &'a ModelClock,
    /// When it came.
    pub came: SimTime,
}

impl Call<'_> {
    /// The model's time at which it gets a request of the command's, noted in the capture; the caller holds what keeps requests in
    /// order. Where nothing takes time and nobody notes the order that is when the command came, to spare a look at the clock.
    ///
    /// # Errors
    /// When the capture cannot be written on.
    #[inline]
    pub fn arrive(&self, request: &HostRequest) -> Result<SimTime> {
        let Self { clock, came } = *self;
        match &clock.recorder {
            None if !clock.modelled() => Ok(came),
            None => Ok(clock.now()),
            Some(recorder) => {
                let now = clock.now();
                recorder.note(now, request).map(|()| now)
            }
        }
    }
}

/// What Linux has on its steady clock, in ns: what [`Instant`] has, without turning it into parts and back.
#[inline]
fn monotonic_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `t` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// See the [module](self).
pub struct ModelClock {
    start: Instant,
    /// The same on [`monotonic_ns`].
    begun: u64,
    speed: f64,
    timing: Timing,
    /// By how much later than due requests were answered, in ns.
    late: Mutex<Histogram>,
    recorder: Option<Recorder>,
}

impl ModelClock {
    /// The model's time 0 is now.
    pub fn new(timing: Timing, speed: f64, recorder: Option<Recorder>) -> Self {
        Self { start: Instant::now(), begun: monotonic_ns(), speed, timing, late: Mutex::default(), recorder }
    }

    /// Whether requests complete in model time.
    pub fn modelled(&self) -> bool {
        self.timing == Timing::Model
    }

    /// The model's time.
    #[inline]
    pub fn now(&self) -> SimTime {
        let ns = monotonic_ns().saturating_sub(self.begun);
        SimTime(if self.speed == 1.0 { ns } else { (ns as f64 * self.speed) as u64 })
    }

    /// A command comes now.
    #[inline]
    pub fn call(&self) -> Call<'_> {
        Call { clock: self, came: self.now() }
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
        self.late.lock().add(late);
    }

    /// Forgets the lateness so far.
    pub fn reset(&self) {
        *self.late.lock() = Histogram::default();
    }

    /// How late requests were: count, p50, p99 and maximum in microseconds.
    pub fn lateness(&self) -> Value {
        let late = self.late.lock();
        let at = |share: f64| late.percentile(share) / 1e3;
        match late.count() {
            0 => json!({"requests": 0}),
            n => {
                json!({"requests": n, "p50_us": at(0.5), "p99_us": at(0.99), "max_us": late.max() as f64 / 1e3})
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_trace::Batch;
    use smrlab_units::{Blocks, HostOp, Lba};

    #[test]
    fn a_deadline_is_kept_and_counted() {
        let clock = ModelClock::new(Timing::Model, 2.0, None);
        clock.wait(SimTime::from_ms(20));
        assert!(clock.start.elapsed() >= Duration::from_millis(10));
        assert_eq!(clock.lateness()["requests"], 1);
    }

    /// Who sleeps until a deadline is woken as exactly as the kernel can: by default it may take 50 us more.
    #[test]
    fn who_waits_is_woken_sharply() {
        let slack = || {
            std::thread::spawn(|| {
                let clock = ModelClock::new(Timing::Model, 1.0, None);
                clock.wait(SimTime::from_ms(2));
                // SAFETY: a plain system call that concerns this thread only.
                unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }
            })
        };
        assert_eq!(slack().join().unwrap(), 1_000);
    }

    /// At double speed 20 ms of the model pass in 10 ms, and the other way round.
    #[test]
    fn the_models_time_goes_by_the_speed() {
        for speed in [0.25, 1.0, 4.0] {
            let clock = ModelClock::new(Timing::Model, speed, None);
            let due = clock.instant(SimTime::from_ms(20)) - clock.start;
            assert_eq!(due, Duration::from_millis(20).div_f64(speed), "speed {speed}");
            std::thread::sleep(Duration::from_millis(10));
            let model = || ((monotonic_ns() - clock.begun) as f64 * speed) as u64;
            let (from, now, to) = (model(), clock.now().0, model());
            assert!((from..=to).contains(&now), "speed {speed}: {now} is not in {from}..={to}");
        }
    }

    /// Two commands that are served in the other order than they came in: each request gets a time of its own where the order is
    /// noted, or where time passes, else the time of its command.
    #[test]
    fn requests_get_times_in_the_order_in_which_they_are_served() {
        let folder = tempfile::tempdir().unwrap();
        for (timing, records) in [(Timing::None, false), (Timing::None, true), (Timing::Model, false)] {
            let recorder = || Recorder::create(&folder.path().join("t.parquet"), "t").unwrap();
            let clock = ModelClock::new(timing, 1.0, records.then(recorder));
            let [first, second] = [(); 2].map(|()| {
                std::thread::sleep(Duration::from_millis(1));
                clock.call()
            });
            let served = [second, first].map(|call| call.arrive(&HostRequest::flush()).unwrap());
            let as_they_came = served == [second.came, first.came];
            assert_eq!(as_they_came, timing == Timing::None && !records);
            assert_eq!(served.is_sorted(), !as_they_came, "{served:?}");
        }
    }

    /// A request that is nowhere: the capture cannot be written on, which whoever sent the last one of those that are kept hears.
    #[test]
    fn a_capture_that_fails_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(&folder.path().join("t.parquet"), "t").unwrap();
        let clock = ModelClock::new(Timing::None, 1.0, Some(recorder));
        let nowhere = HostRequest::new(HostOp::Read, Lba(1 << 63), Blocks(1));
        let answers: Vec<_> = (0..Batch::ROWS).map(|_| clock.call().arrive(&nowhere)).collect();
        assert_eq!(answers.iter().position(Result::is_err), Some(Batch::ROWS - 1));
        let e = answers[Batch::ROWS - 1].as_ref().unwrap_err();
        assert!(e.errno() == libc::EIO && e.to_string().starts_with("recording: "), "{e}");
    }

    /// Nobody waits for a model that does not set the time, and nothing can be late.
    #[test]
    fn without_the_models_time_nobody_waits() {
        let clock = ModelClock::new(Timing::None, 1.0, None);
        clock.wait(SimTime::from_ms(100));
        assert_eq!(clock.lateness(), json!({"requests": 0}));
    }

    /// Lateness is kept in nanoseconds and told in microseconds.
    #[test]
    fn lateness_is_told_in_microseconds() {
        let clock = ModelClock::new(Timing::None, 1.0, None);
        assert_eq!(clock.lateness(), json!({"requests": 0}));
        (0..99).for_each(|_| clock.late.lock().add(40_000));
        clock.late.lock().add(2_000_000);
        let told = clock.lateness();
        assert_eq!((&told["requests"], &told["max_us"]), (&json!(100), &json!(2000.0)));
        for (name, us) in [("p50_us", 40.0), ("p99_us", 40.0)] {
            assert!((told[name].as_f64().unwrap() / us - 1.0).abs() < 0.01, "{name}: {told}");
        }
        clock.reset();
        assert_eq!(clock.lateness(), json!({"requests": 0}));
    }
}
