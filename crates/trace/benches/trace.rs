//! MB/s and records/s of user CPU time of every reader that has a figure to reach, and of the generators.
//!
//! `cargo bench -p smrlab-trace`; each figure is the median of five. Input is made here, so it runs anywhere.

use smrlab_trace::{Batch, OpenContext, Packing, ParquetWriter, TraceSource, open, open_bytes};
use smrlab_units::{HostOp, SimTime};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Requests of the Parquet trace and of the generators.
const REQUESTS: u64 = 10_000_000;
/// Requests of the text traces.
const LINES: u64 = 2_000_000;

/// User CPU seconds of this process so far, to the clock tick that the kernel reports.
fn user_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |p| p.1);
    after.split_whitespace().nth(11).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0) / 100.0
}

/// The median user time of five readings to the end, and the requests read.
fn measure(mut make: impl FnMut() -> Box<dyn TraceSource>) -> (f64, u64) {
    let mut rows = 0;
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let mut source = make();
            let mut batch = Batch::new();
            let start = user_seconds();
            rows = 0;
            while source.next_batch(&mut batch).expect("the input is good") {
                rows += batch.len() as u64;
            }
            user_seconds() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[2].max(0.01), rows)
}

fn report(name: &str, bytes: u64, (seconds, rows): (f64, u64)) {
    let (mb, m) = (bytes as f64 / 1e6 / seconds, rows as f64 / 1e6 / seconds);
    println!(
        "{name:<34} {rows:>10} requests {:>8.1} MB {mb:>8.0} MB/s {m:>8.1} M requests/s (user CPU)",
        bytes as f64 / 1e6
    );
}

fn synth(item: &str) -> Box<dyn TraceSource> {
    open(&format!("synth:{item},span=8TB,requests={REQUESTS}"), &OpenContext::default()).expect("a good item")
}

fn text(format: &str) -> String {
    let mut out = String::new();
    let mut source = open(
        &format!("synth:uniform,span=400GB,requests={LINES},interarrival=exp(1ms),size=exp(8KiB),align=4KiB"),
        &OpenContext::default(),
    )
    .expect("a good item");
    let mut batch = Batch::new();
    while source.next_batch(&mut batch).expect("generators do not fail") {
        for r in batch.iter() {
            let read = r.op == HostOp::Read;
            let SimTime(ns) = r.arrival;
            let _ = if format == "msr" {
                let ticks = 128_166_372_000_000_000 + ns / 100;
                let op = if read { "Read" } else { "Write" };
                let (offset, size) = (r.lba.0 * 512, r.blocks * 512);
                writeln!(out, "{ticks},prxy,0,{op},{offset},{size},{}", ns % 90_000)
            } else {
                let (ms, part) = (ns / 1_000_000, ns % 1_000_000);
                writeln!(out, "{ms}.{part:06} 0 {} {} {}", r.lba, r.blocks, u8::from(read))
            };
        }
    }
    out
}

fn parquet(dir: &Path, packing: Packing) -> PathBuf {
    let path = dir.join(format!("bench-{packing:?}.parquet"));
    let mut writer = ParquetWriter::with_packing(&path, "bench", packing).expect("room for the file");
    let mut source = synth("uniform,interarrival=exp(10ms)");
    let mut batch = Batch::new();
    while source.next_batch(&mut batch).expect("generators do not fail") {
        writer.write(&batch).expect("room for the file");
    }
    writer.finish(|d| d.to_string()).expect("room for the file");
    path
}

fn main() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&dir).expect("the target folder can be written");
    for packing in [Packing::DeltaZstd, Packing::Delta, Packing::PlainZstd, Packing::PlainLz4, Packing::Plain]
    {
        let path = parquet(&dir, packing);
        let bytes = std::fs::metadata(&path).map_or(0, |m| m.len());
        let name = path.display().to_string();
        let times = measure(|| open(&name, &OpenContext::default()).expect("a good file"));
        report(&format!("parquet {packing:?}"), bytes, times);
        let _ = std::fs::remove_file(&path);
    }
    for format in ["msr", "disksim"] {
        let lines = text(format).into_bytes();
        let times = measure(|| open_bytes(lines.clone(), format).expect("good text"));
        report(&format!("{format} text"), lines.len() as u64, times);
    }
    for item in ["uniform", "uniform,interarrival=exp(10ms)", "zipf", "sequential"] {
        report(&format!("synth:{item}"), 0, measure(|| synth(item)));
    }
}
