//! Counters and events of a served device.

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Events that are kept.
const KEPT: usize = 1000;

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
    /// Flushes, FUA writes included.
    flushes,
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

/// The last [`KEPT`] events.
#[derive(Debug, Default)]
pub struct Events(Mutex<(u64, VecDeque<Event>)>);

impl Events {
    /// Notes an event.
    pub fn push(&self, kind: &'static str, block: Option<u64>, text: impl Into<String>) {
        let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let (count, kept) = &mut *self.0.lock();
        *count += 1;
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Event { number: *count, time_s, kind, block, text: text.into() });
    }

    /// The events after number `after`.
    pub fn after(&self, after: u64) -> Vec<Event> {
        self.0.lock().1.iter().filter(|e| e.number > after).cloned().collect()
    }
}
