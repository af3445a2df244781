//! `cargo bench -p smrlab-sim [-- WORD...]`: requests per second of user CPU time on a Parquet trace of 10 M requests
//! (uniform 4 KiB, 70 % writes) on `modern-7200`, all metrics included, and peak memory. Words choose contestants by
//! part of their name; `rounds=N` repeats them (medians are shown).

mod support;

use smrlab_sim::{Control, Spec, run};
use smrlab_trace::{Batch, OpenContext, convert, open};
use std::path::{Path, PathBuf};
use support::{Wanted, measure};

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

fn trace_file() -> PathBuf {
    let file = support::folder().join("uniform-10m.parquet");
    if !file.exists() {
        let text =
            format!("synth:uniform,requests={REQUESTS},size=4KiB,write=70%,span=12TB,interarrival=100ms");
        let mut source = open(&text, &OpenContext::default()).expect("a valid generator");
        convert(&mut source, &file, &text, |_| true).expect("the trace can be written");
    }
    file
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

fn main() {
    let Wanted { rounds, words } = Wanted::from_args();
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
