//! What the benches share: user CPU time, peak memory, medians.

use std::fs;
use std::path::{Path, PathBuf};

/// Which contestants, and how often.
pub struct Wanted {
    /// Repetitions, of which the median is shown.
    pub rounds: usize,
    /// Parts of names; none: all.
    pub words: Vec<String>,
}

impl Wanted {
    /// From the command line: words, and `rounds=N`.
    pub fn from_args() -> Self {
        let args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
        let (rounds, words): (Vec<String>, Vec<String>) = args.partition(|a| a.starts_with("rounds="));
        let rounds = rounds.iter().find_map(|a| a.strip_prefix("rounds=")?.parse().ok()).unwrap_or(3);
        Self { rounds, words }
    }
}

/// Where traces are kept from one call to the next.
pub fn folder() -> PathBuf {
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

/// Shows requests per second of user CPU time and peak memory of `work`, which answers how many it did.
pub fn measure(name: &str, target: f64, rounds: usize, mut work: impl FnMut() -> u64) {
    let mut rates = Vec::new();
    let mut peak = 0.0f64;
    for _ in 0..rounds {
        reset_peak();
        let start = user_seconds();
        let requests = work();
        rates.push(requests as f64 / (user_seconds() - start).max(1e-9));
        peak = peak.max(peak_mb());
    }
    let rate = median(rates);
    println!(
        "{name:<32}{:>9.2} M/s {:>9.1} ns {peak:>9.0} MB   target {:.0} M/s",
        rate / 1e6,
        1e9 / rate,
        target / 1e6
    );
}
