//! Counters and events of a served device.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};
use smrlab_units::{SimTime, Stalls};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Events that are kept.
const KEPT: usize = 1000;
/// Events of a server that are written down.
const WRITTEN: u64 = 10_000;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What clients did, since the last reset.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }

        impl Counters {
            /// Name and value of each.
            pub fn json(&self) -> Map<String, Value> {
                let mut map = Map::new();
                $(map.insert(stringify!($name).to_owned(), self.$name.load(Relaxed).into());)*
                map
            }

            /// Begins again at zero.
            pub fn reset(&self) {
                $(self.$name.store(0, Relaxed);)*
            }
        }
    };
}

counters! {
    /// Read requests.
    reads,
    /// Write requests.
    writes,
    /// Bytes read.
    bytes_read,
    /// Bytes written.
    bytes_written,
    /// Flushes.
    flushes,
    /// Writes, trims and write-zeroes that were durable when they were answered (FUA).
    fua,
    /// Trim requests.
    trims,
    /// Write-zeroes requests.
    zeroes,
    /// Reads that found destroyed blocks.
    destroyed_reads,
    /// Requests answered with an error.
    errors,
}

impl Counters {
    /// Adds to a counter; other threads see it soon.
    #[inline]
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }
}

/// Something worth knowing that happened once.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Number since the server started.
    pub number: u64,
    /// Seconds since 1970, UTC.
    pub time_s: f64,
    /// What kind: `destroyed-read`, `error`, `reset-band`, `start`, …
    pub kind: &'static str,
    /// The first block concerned, where there is one.
    pub block: Option<u64>,
    /// In words.
    pub text: String,
}

/// The last [`KEPT`] events; the first ones of a server also in a file, for who asks what befell one that died.
#[derive(Debug, Default)]
pub struct Events(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    count: u64,
    last: VecDeque<Event>,
    file: Option<File>,
}

impl Events {
    /// Keeps events also in the file at `path`, begun anew.
    pub fn kept_in(path: &Path) -> Self {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        Self(Mutex::new(Kept { file: file.ok(), ..Kept::default() }))
    }

    /// Notes an event.
    pub fn push(&self, kind: &'static str, block: Option<u64>, text: impl Into<String>) {
        let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let kept = &mut *self.0.lock();
        kept.count += 1;
        if kept.last.len() == KEPT {
            kept.last.pop_front();
        }
        let event = Event { number: kept.count, time_s, kind, block, text: text.into() };
        if let Some(file) = kept.file.as_mut().filter(|_| event.number <= WRITTEN) {
            // Events are a help: the device does not fail for want of them.
            let _ = file.write_all(format!("{}\n", json!(event)).as_bytes());
        }
        kept.last.push_back(event);
    }

    /// The events after number `after`.
    pub fn after(&self, after: u64) -> Vec<Event> {
        self.0.lock().last.iter().filter(|e| e.number > after).cloned().collect()
    }
}

/// How long requests took, in the model's time: the longest, and those that stalled.
#[derive(Debug)]
pub struct Responses {
    threshold: SimTime,
    /// The longest response plus 1, ns; 0: none.
    max: AtomicU64,
    /// Stalls since `since`.
    stalls: Mutex<(Stalls, SimTime)>,
}

impl Responses {
    /// A stall is a response longer than `threshold`.
    pub fn new(threshold: SimTime) -> Self {
        Self {
            threshold,
            max: AtomicU64::new(0),
            stalls: Mutex::new((Stalls::new(threshold), SimTime::ZERO)),
        }
    }

    /// A request that came at `arrival` was answered at `ack`.
    #[inline]
    pub fn note(&self, arrival: SimTime, ack: SimTime) {
        let took = ack.since(arrival);
        if took.0 >= self.max.load(Relaxed) {
            self.max.fetch_max(took.0 + 1, Relaxed);
        }
        if took > self.threshold {
            self.stalls.lock().0.response(arrival, ack, |_, _| ());
        }
    }

    /// Begins anew at `now`.
    pub fn reset(&self, now: SimTime) {
        self.max.store(0, Relaxed);
        *self.stalls.lock() = (Stalls::new(self.threshold), now);
    }

    /// The longest response and the stalls, with the keys that a run's result has.
    pub fn json(&self, now: SimTime) -> (Value, Value) {
        let seconds = |t: SimTime| t.0 as f64 / 1e9;
        let (stalls, since) = &*self.stalls.lock();
        let span = now.since(*since).0.max(1);
        let mut out = json!({"threshold_s": seconds(self.threshold), "count": stalls.count,
                             "share": stalls.waiting_ns as f64 / span as f64});
        if stalls.count > 0 {
            out["first_s"] = seconds(stalls.first.since(*since)).into();
            out["total_s"] = (stalls.total_ns as f64 / 1e9).into();
            out["max_s"] = seconds(stalls.max).into();
            out["episodes"] = stalls.episodes().into();
        }
        let mut response = Map::new();
        if let Some(max) = self.max.load(Relaxed).checked_sub(1) {
            response.insert("max".to_owned(), (max as f64 / 1e6).into());
        }
        (response.into(), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The newest thousand, by their numbers; a server that runs for months keeps no more.
    #[test]
    fn old_events_go() {
        let events = Events::default();
        (1..=KEPT + 500).for_each(|n| events.push("test", None, n.to_string()));
        let kept = events.after(0);
        assert_eq!((kept.len(), kept[0].number, &*kept[0].text), (KEPT, 501, "501"));
        assert_eq!(events.after(1499).iter().map(|e| e.number).collect::<Vec<_>>(), [1500]);
    }

    /// The first ten thousand are in the file, each in a line; what was there before is gone.
    #[test]
    fn the_first_events_are_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        std::fs::write(&path, "of another server\n".repeat(20_000)).unwrap();
        let events = Events::kept_in(&path);
        (1..=WRITTEN + 2).for_each(|n| events.push("test", Some(n), n.to_string()));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let numbers = lines.iter().map(|line| (line["number"].as_u64(), line["block"].as_u64()));
        assert!(numbers.eq((1..=WRITTEN).map(|n| (Some(n), Some(n)))), "{} lines", lines.len());
    }

    /// Nothing is the longest of no responses; of those that took no time, that is.
    #[test]
    fn the_longest_of_no_responses_is_left_out() {
        let responses = Responses::new(SimTime::from_ms(100));
        let longest = |r: &Responses| r.json(SimTime::ZERO).0;
        assert_eq!(longest(&responses), json!({}));
        responses.note(SimTime::from_ms(5), SimTime::from_ms(5));
        assert_eq!(longest(&responses), json!({"max": 0.0}));
        responses.note(SimTime::from_ms(5), SimTime::from_ms(8));
        assert_eq!(longest(&responses), json!({"max": 3.0}));
        responses.reset(SimTime::from_ms(9));
        assert_eq!(longest(&responses), json!({}));
    }

    /// Two stalls of a threshold of 100 ms, one from 1.0 s to 1.3 s and one from 2.0 s to 2.2 s, counted from 0.5 s on until 4.5 s.
    #[test]
    fn stalls_are_told_as_a_run_tells_them() {
        let (ms, responses) = (SimTime::from_ms, Responses::new(SimTime::from_ms(100)));
        responses.reset(ms(500));
        let quiet = json!({"threshold_s": 0.1, "count": 0, "share": 0.0});
        assert_eq!(responses.json(ms(600)).1, quiet, "without a stall there is nothing to tell of one");
        for (arrival, ack) in [(600, 700), (1000, 1300), (2000, 2200), (2300, 2301)] {
            responses.note(ms(arrival), ms(ack));
        }
        let (longest, stalls) = responses.json(ms(4500));
        assert_eq!(longest, json!({"max": 300.0}));
        let told = json!({"threshold_s": 0.1, "count": 2, "share": 0.5 / 4.0, "first_s": 0.5, "total_s": 0.5,
                          "max_s": 0.3, "episodes": 2});
        assert_eq!(stalls, told);
    }
}
