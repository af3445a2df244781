//! `cargo bench -p smrlab-sim --bench buffered [-- WORD...]`: requests per second of user CPU time, whole process without
//! start-up, on drives with their own cache and bus. The trace is DiskSim ASCII: 4 KiB requests, 67 % reads, at times that are
//! 20 ms apart on the average. The drives have round figures of their class, not those of a product. A last line runs
//! a hundred times as many requests, for the peak of memory (`long`).

mod support;

use smrlab_sim::{Control, Spec, run};
use smrlab_trace::{Batch, OpenContext, open};
use smrlab_units::HostOp;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use support::{Wanted, measure};

/// As in the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REQUESTS: u64 = 1_000_000;

/// A drive file without provenance: `key = value unit` a line, words as they are.
const DRIVE: &str = r#"schema = 1
summary = "for the bench"
reference = "round figures"
[geometry]
layout = "cylinder"
track_skew = 0.16 rev
cylinder_skew = 0.22 rev
surfaces = SURFACES surfaces
[geometry.zones]
list = ZONES
kind = "assumed"
source = "round figures of the class"
[geometry.slips]
list = SLIPS
kind = "assumed"
source = "round figures of the class"
[interference]
s_id = 1 tracks
s_od = 1 tracks
[mechanics]
model = "full"
seek_over = "cylinders"
rpm = 10000 1/min
head_switch = 0.8 ms
write_settle = 0.3 ms
read_overhead = 0 ms
write_overhead = 0 ms
[mechanics.read_seek]
curve = "three-point"
single = 0.8 ms
average = 5.4 ms
full_stroke = 10.5 ms
[controller]
read_hit_after_read = 0.2 ms
read_hit_after_write = 0.2 ms
read_miss_after_read = 0.3 ms
read_miss_after_write = 0.3 ms
write_hit_after_read = 0.3 ms
write_hit_after_write = 0.3 ms
write_miss_after_read = 0.3 ms
write_miss_after_write = 0.3 ms
bus_read = BUS ns
bus_write = BUS ns
[controller.buffer]
read_ahead = "two-tracks"
passing_blocks = "off"
ahead_on_hit = "off"
zero_latency_reads = "off"
zero_latency_writes = "off"
write_back = "on"
written_hits = "on"
segments = SEGMENTS 1
write_segments = WRITES 1
segment_blocks = BLOCKS blk
read_ahead_blocks = BLOCKS blk
"#;

/// A server drive of the late nineties: 10 000 rpm, 12 surfaces, 9 GB, three segments; or its successor with half the heads,
/// tracks half as long again, and ten segments. As in drives that were extracted, sectors are slipped: so many in each zone.
fn drive(
    name: &str,
    (surfaces, slips): (u32, u32),
    zones: &[[u32; 2]],
    (segments, blocks): (u32, u32),
    bus: u32,
) -> PathBuf {
    let slipped = (0..zones.len() as u32 * slips).map(|i| [i / slips, (i % slips + 1) * 29_989, 1]);
    let mut text = DRIVE.replace("ZONES", &format!("{zones:?}"));
    text = text.replace("SLIPS", &format!("{:?}", slipped.collect::<Vec<_>>()));
    let writes = segments.div_ceil(3);
    let fields = [
        ("SURFACES", surfaces),
        ("SEGMENTS", segments),
        ("WRITES", writes),
        ("BLOCKS", blocks),
        ("BUS", bus),
    ];
    for (key, n) in fields {
        text = text.replace(key, &n.to_string());
    }
    let figure = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [key, "=", value, unit] if !value.starts_with(['"', '[']) => format!(
            "{key} = {{ value = {value}, unit = \"{unit}\", kind = \"assumed\", source = \"round figure of the class\" }}\n"
        ),
        _ => format!("{line}\n"),
    };
    let toml =
        text.lines().map(figure).collect::<String>().replacen('\n', &format!("\nname = \"{name}\"\n"), 1);
    let path = support::folder().join(format!("{name}.toml"));
    std::fs::write(&path, toml).expect("the target directory can be written");
    path
}

/// A trace of DiskSim's format, of 17 500 000 blocks.
fn trace(name: &str, generator: &str) -> PathBuf {
    let path = support::folder().join(name);
    if path.exists() {
        return path;
    }
    let text = format!("synth:{generator},requests={REQUESTS},size=4KiB,span=8900MB,interarrival=exp(20ms)");
    let mut source = open(&text, &OpenContext::default()).expect("a valid generator");
    let (mut batch, mut out) = (Batch::new(), String::new());
    while source.next_batch(&mut batch).expect("a generator") {
        for i in 0..batch.len() {
            let at = batch.arrival[i].0;
            let read = u8::from(batch.op[i] == HostOp::Read);
            let (ms, us) = (at / 1_000_000, at % 1_000_000 / 1000);
            let _ = writeln!(out, "{ms}.{us:03} 0 {} {} {read}", batch.lba[i], batch.blocks[i]);
        }
    }
    std::fs::write(&path, out).expect("the target directory can be written");
    path
}

fn simulate(drive: &Path, trace: &Path, fields: &str) -> u64 {
    let text = format!("drive = '{}'\ntrace = '{}:disksim'\n{fields}", drive.display(), trace.display());
    let spec = Spec::from_toml(&text).expect("valid fields");
    let result = run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{fields}: {e}"));
    let count = |key: &str| result.json["host"][key].as_u64().unwrap_or(0);
    count("reads") + count("writes")
}

fn main() {
    let wanted = Wanted::from_args();
    let rounds = wanted.rounds.unwrap_or(3);
    let drives = [
        drive(
            "server-9gb-12-heads",
            (12, 120),
            &[[1700, 250], [1700, 230], [1700, 205], [1862, 180]],
            (3, 560),
            105_000,
        ),
        drive(
            "server-9gb-6-heads",
            (6, 16),
            &[[2500, 334], [2500, 310], [2500, 280], [2542, 245]],
            (10, 408),
            26_000,
        ),
    ];
    let random = trace("random-1m.disksim", "uniform,write=33%");
    let sequential = trace("sequential-reads-1m.disksim", "sequential,write=0%");
    println!(
        "{:<44}{:>13} {:>12} {:>12}",
        "1 M requests of DiskSim's format, cache and bus", "user CPU", "a request", "peak"
    );
    for (drive, class) in drives.iter().zip(["12 heads", "6 heads"]) {
        for (what, target, trace, fields) in [
            ("random", 5e6, &random, ""),
            ("sequential reads", 8e6, &sequential, ""),
            ("sptf depth 32", 1e6, &random, "scheduler = 'sptf,depth=32'\narrivals = 'closed,depth=32'"),
        ] {
            let name = format!("{class}, {what}");
            if wanted.has(&name) {
                // The clock has ticks of 10 ms.
                let many = || (0..4).map(|_| simulate(drive, trace, fields)).sum::<u64>();
                measure(&name, target, rounds, many);
            }
        }
    }
    if !wanted.words.is_empty() && wanted.has("long") {
        let traces = vec![format!("'{}:disksim'", random.display()); 100].join(",");
        let text = format!("drive = '{}'\ntrace = [{traces}]\njoin = 'chain'", drives[0].display());
        let spec = Spec::from_toml(&text).expect("valid fields");
        measure("12 heads, random, 100 M (long)", 5e6, 1, || {
            let result = run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{e}"));
            result.json["host"]["reads"].as_u64().unwrap_or(0)
                + result.json["host"]["writes"].as_u64().unwrap_or(0)
        });
    }
}
