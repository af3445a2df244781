//! `cargo bench -p smrlab-sim [-- WORD...]`: requests per second of user CPU time on a Parquet trace of 10 M requests
//! (uniform 4 KiB, 70 % writes) on `modern-7200`, all metrics included, and peak memory. Words choose contestants by
//! part of their name; `rounds=N` repeats them (medians are shown).

use smrlab_sim::{Control, Spec, run};
use smrlab_trace::{Batch, OpenContext, convert, open};
use std::fs;
use std::path::{Path, PathBuf};

/// As in the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REQUESTS: u64 = 10_000_000;

/// What is measured: name, target in requests a second, and the fields of the run.
const CONTESTANTS: &[(&str, f64, &str)] = &[
    ("fcfs cmr", 10e6, "layer = 'cmr'"),
    ("fcfs static-1234", 10e6, "layer = 'static-1234'"),
    ("fcfs static-R(4123)", 10e6, "layer = 'static-R(4123)'"),
    ("fcfs static-124R(3)", 10e6, "layer = 'static-124R(3)'"),
    ("fcfs static-14R(23)", 10e6, "layer = 'static-14R(23)'"),
    ("fcfs rmw", 5e6, "layer = 'rmw'"),
    ("sptf depth 32 cmr", 1e6, "layer = 'cmr'\nscheduler = 'sptf,depth=32'\narrivals = 'closed,depth=32'"),
    (
        "sptf depth 32 static-14R(23)",
        1e6,
        "layer = 'static-14R(23)'\nscheduler = 'sptf,depth=32'\narrivals = 'closed,depth=32'",
    ),
    ("striped, 5 disks, cmr", 2e6, "layer = 'cmr'\narray = 'striped,disks=5'"),
    ("raid5, 5 disks, cmr", 1e6, "layer = 'cmr'\narray = 'raid5,disks=5'"),
    ("dvs, 5 disks, cmr", 1e6, "layer = 'cmr'\narray = 'dvs,disks=5,overprovision=40%'"),
];

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

fn trace_file() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target directory");
    let dir = target.join("bench-data");
    let file = dir.join("uniform-10m.parquet");
    if !file.exists() {
        fs::create_dir_all(&dir).expect("the target directory can be written");
        let text =
            format!("synth:uniform,requests={REQUESTS},size=4KiB,write=70%,span=12TB,interarrival=100ms");
        let mut source = open(&text, &OpenContext::default()).expect("a valid generator");
        convert(&mut source, &file, &text, |_| true).expect("the trace can be written");
    }
    file
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Reads the trace and does nothing with it.
fn decode(file: &Path) -> u64 {
    let mut source = open(&file.display().to_string(), &OpenContext::default()).expect("just written");
    let (mut batch, mut rows) = (Batch::new(), 0);
    while source.next_batch(&mut batch).expect("just written") {
        rows += batch.len() as u64;
    }
    rows
}

fn simulate(file: &Path, fields: &str) -> u64 {
    let text = format!("drive = 'modern-7200'\ntrace = '{}'\n{fields}", file.display());
    let spec = Spec::from_toml(&text).expect("valid fields");
    let result = run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{fields}: {e}"));
    let count = |key: &str| result.json["host"][key].as_u64().unwrap_or(0);
    count("reads") + count("writes")
}

fn measure(name: &str, target: f64, rounds: usize, mut work: impl FnMut() -> u64) {
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

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let rounds = args.iter().find_map(|a| a.strip_prefix("rounds=")?.parse().ok()).unwrap_or(3);
    let words: Vec<&String> = args.iter().filter(|a| !a.starts_with("rounds=")).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()));
    let file = trace_file();
    println!("{:<32}{:>13} {:>12} {:>12}", "10 M requests, modern-7200", "user CPU", "a request", "peak");
    if wanted("parquet") {
        measure("parquet alone", 20e6, rounds, || decode(&file));
    }
    for (name, target, fields) in CONTESTANTS {
        if wanted(name) {
            measure(name, *target, rounds, || simulate(&file, fields));
        }
    }
}
