//! Shared data where it is there, and comparison with its independent conversions.

#![allow(dead_code, reason = "each test uses its part of this")]

pub(crate) mod written;

use smrlab_trace::{OpenContext, TraceSource, open, read_all};
use smrlab_units::HostOp;
use std::io::{Read, Write};
use std::path::PathBuf;

/// A file of the shared traces; `None` (and a printed reason) where they are absent.
pub(crate) fn shared(path: &str) -> Option<String> {
    let root = std::env::var_os("SMRLAB_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let file = root.join("traces").join(path);
    if file.exists() {
        return Some(file.to_str()?.to_owned());
    }
    skipped(&format!("{} is not here (set SMRLAB_SHARED)", file.display()));
    None
}

/// Past the harness, which keeps what a passing test prints to itself.
fn skipped(why: &str) {
    let this = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", this.name().unwrap_or_default());
}

/// A row of a norm file: microseconds, device, operation, first block, blocks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub us: u64,
    pub device: String,
    pub op: HostOp,
    pub lba: u64,
    pub blocks: u32,
}

/// The rows of a norm file, in its order.
pub(crate) fn norm(path: &str) -> Vec<Row> {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    zstd::Decoder::new(file).unwrap().read_to_string(&mut text).unwrap();
    text.lines().skip(1).map(norm_row).collect()
}

fn norm_row(line: &str) -> Row {
    let fields: Vec<&str> = line.split(',').collect();
    // blktrace devices are an unquoted "8,16".
    let op = fields.iter().position(|f| matches!(*f, "R" | "W")).unwrap();
    let (offset, size): (u64, u64) = (fields[op + 1].parse().unwrap(), fields[op + 2].parse().unwrap());
    let (whole, fraction) = fields[0].split_once('.').unwrap();
    Row {
        us: whole.parse::<u64>().unwrap() * 1_000_000 + fraction.parse::<u64>().unwrap(),
        device: fields[1..op].join(","),
        op: if fields[op] == "R" { HostOp::Read } else { HostOp::Write },
        lba: offset / 512,
        blocks: ((offset + size).div_ceil(512) - offset / 512) as u32,
    }
}

/// What our reader makes of `target`, times rounded to the norm's microseconds.
pub(crate) fn ours(target: &str) -> Vec<Row> {
    let mut source = open(target, &OpenContext::default()).unwrap();
    let all = read_all(&mut source).unwrap();
    all.iter()
        .map(|r| Row {
            us: (r.arrival.0 + 500) / 1000,
            device: source.device_name(r.device),
            op: r.op,
            lba: r.lba.0,
            blocks: r.blocks,
        })
        .collect()
}

/// Both agree row by row, to the microsecond that the norm was rounded to.
pub(crate) fn assert_agree(ours: &[Row], norm: &[Row]) {
    assert_eq!(ours.len(), norm.len(), "number of requests");
    for (i, (a, b)) in ours.iter().zip(norm).enumerate() {
        let near = Row { us: if a.us.abs_diff(b.us) <= 1 { b.us } else { a.us }, ..a.clone() };
        assert_eq!(&near, b, "row {i}");
    }
}
