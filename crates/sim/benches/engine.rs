//! `cargo bench -p smrlab-sim [-- WORD...]`: requests per second of user CPU time on a Parquet trace of 10 M requests
//! (uniform 4 KiB, 70 % writes) on `modern-7200`, all metrics included, and peak memory; then as many writes in order to 32
//! zones in turn. Then every layer on what real work is like: as many requests, one third of them writes, over a hot 1, 9
//! and 100 GB of the same drive, uniform and Zipf, with the bytes of map that a cached block takes. Words choose contestants
//! by part of their name (`hot` all of the second kind); `rounds=N` repeats them (medians are shown; three times where it is
//! not given, hot ones once).

mod support;

use smrlab_sim::{Control, Spec, run};
use smrlab_trace::{Batch, OpenContext, convert, open};
use std::path::{Path, PathBuf};
use support::{Done, Wanted, measure};

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
    ("fcfs disk-cache", 6e6, "layer = 'disk-cache'"),
    ("fcfs s-block", 3e6, "layer = 's-block'"),
    ("sptf depth 32 cmr", 1e6, "layer = 'cmr'\nscheduler = 'sptf,depth=32'\narrivals = 'closed,depth=32'"),
    (
        "sptf depth 32 static-14R(23)",
        1e6,
        "layer = 'static-14R(23)'\nscheduler = 'sptf,depth=32'\narrivals = 'closed,depth=32'",
    ),
    ("striped, 5 disks, cmr", 2e6, "layer = 'cmr'\narray = 'striped,disks=5'"),
    ("raid5, 5 disks, cmr", 1e6, "layer = 'cmr'\narray = 'raid5,disks=5'"),
    ("raid5, parity log, 5 disks, cmr", 1e6, "layer = 'cmr'\narray = 'raid5,disks=5,parity=log'"),
    ("dvs, 5 disks, cmr", 1e6, "layer = 'cmr'\narray = 'dvs,disks=5,overprovision=40%'"),
];

/// Layers on a hot region, where every one is to serve [`HOT_TARGET`].
const HOT_LAYERS: &[&str] = &[
    "cmr",
    "static-1234",
    "static-R(4123)",
    "static-124R(3)",
    "static-14R(23)",
    "rmw",
    "disk-cache",
    "s-block",
    "persistent-cache",
    "log",
    "segment",
];
const HOT_TARGET: f64 = 3e6;
const HOT_GB: [u64; 3] = [1, 9, 100];
const HOT_KINDS: [&str; 2] = ["uniform", "zipf"];

fn trace_file(name: &str, generator: &str) -> PathBuf {
    let file = support::folder().join(name);
    if !file.exists() {
        let text = format!("synth:{generator},requests={REQUESTS},size=4KiB,interarrival=100ms");
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

fn simulate(file: &Path, fields: &str) -> Done {
    let text = format!("drive = 'modern-7200'\ntrace = '{}'\n{fields}", file.display());
    let spec = Spec::from_toml(&text).expect("valid fields");
    let result = run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{fields}: {e}"));
    let count = |key: &str| result.json["host"][key].as_u64().unwrap_or(0);
    let cached = result.json["cache"]["cached_blocks"].as_f64().filter(|n| *n > 0.0);
    let map = result.json["space"]["map_bytes_peak"].as_f64().unwrap_or(0.0);
    Done { requests: count("reads") + count("writes"), bytes: cached.map(|n| map / n) }
}

fn main() {
    let wanted = Wanted::from_args();
    let rounds = wanted.rounds.unwrap_or(3);
    let file = trace_file("uniform-10m.parquet", "uniform,write=70%,span=12TB");
    println!("{:<32}{:>13} {:>12} {:>12}", "10 M requests, modern-7200", "user CPU", "a request", "peak");
    if wanted.has("parquet") {
        measure("parquet alone", 20e6, rounds, || decode(&file));
    }
    for (name, target, fields) in CONTESTANTS {
        if wanted.has(name) {
            measure(name, *target, rounds, || simulate(&file, fields));
        }
    }
    let (name, trace) = ("zoned, 32 writers", "synth:zoned,writers=32,requests=10000000,size=128KiB");
    if wanted.has(name) {
        measure(name, 3e6, rounds, || simulate(Path::new(trace), "layer = 'zoned'"));
    }
    let regions = HOT_GB.into_iter().flat_map(|gb| HOT_KINDS.map(|kind| (gb, kind)));
    for (gb, kind) in regions {
        for layer in HOT_LAYERS {
            hot(&wanted, gb, kind, layer);
        }
    }
}

fn hot(wanted: &Wanted, gb: u64, kind: &str, layer: &str) {
    let name = format!("hot {gb} GB {kind} {layer}");
    if wanted.has(&name) {
        let file =
            trace_file(&format!("hot-{gb}gb-{kind}.parquet"), &format!("{kind},write=33.3333%,span={gb}GB"));
        let rounds = wanted.rounds.unwrap_or(1);
        measure(&name, HOT_TARGET, rounds, || simulate(&file, &format!("layer = '{layer}'")));
    }
}
