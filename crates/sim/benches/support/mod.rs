//! What the benches share: user CPU time, peak memory, medians.

use std::fs;
use std::path::{Path, PathBuf};

/// Which contestants, and how often.
pub(crate) struct Wanted {
    /// Repetitions, of which the median is shown, where they are given.
    pub rounds: Option<usize>,
    /// Parts of names; none: all.
    pub words: Vec<String>,
}

impl Wanted {
    /// From the command line: words, and `rounds=N`.
    pub(crate) fn from_args() -> Self {
        let args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
        let (rounds, words): (Vec<String>, Vec<String>) = args.partition(|a| a.starts_with("rounds="));
        let rounds = rounds.iter().find_map(|a| a.strip_prefix("rounds=")?.parse().ok());
        Self { rounds, words }
    }

    /// Whether a part of the name was given, or none at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|w| name.contains(w.as_str()))
    }
}

/// What a contestant did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Done {
    pub requests: u64,
    /// Bytes of map for each block that was cached at the end, where it caches.
    pub bytes: Option<f64>,
}

impl From<u64> for Done {
    fn from(requests: u64) -> Self {
        Self { requests, bytes: None }
    }
}

/// Where traces are kept from one call to the next.
pub(crate) fn folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target directory");
    let dir = target.join("bench-data");
    fs::create_dir_all(&dir).expect("the target directory can be written");
    dir
}

/// The user CPU time of this process so far, in seconds.
fn user_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields are counted from behind the command's name, which may hold blanks; ticks are of 10 ms.
    let field = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)?.parse::<f64>().ok());
    field.unwrap_or(0.0) / 100.0
}

/// Peak resident memory since the last reset, in MB.
fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb =
        status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().trim_end_matches(" kB").parse().ok());
    kb.map_or(0.0, |kb: f64| kb / 1e3)
}

fn reset_peak() {
    // Where the kernel does not allow it, the figure is the peak of all contestants so far.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Shows requests per second of user CPU time and peak memory of `work`, which answers what it did.
pub(crate) fn measure<D: Into<Done>>(name: &str, target: f64, rounds: usize, mut work: impl FnMut() -> D) {
    let mut rates = Vec::new();
    let (mut peak, mut done) = (0.0f64, Done::default());
    for _ in 0..rounds {
        reset_peak();
        let start = user_seconds();
        done = work().into();
        rates.push(done.requests as f64 / (user_seconds() - start).max(1e-9));
        peak = peak.max(peak_mb());
    }
    let rate = median(rates);
    let bytes = done.bytes.map_or(String::new(), |b| format!("   {b:.1} bytes a cached block"));
    println!(
        "{name:<32}{:>9.2} M/s {:>9.1} ns {peak:>9.0} MB   target {:.0} M/s{bytes}",
        rate / 1e6,
        1e9 / rate,
        target / 1e6
    );
}
