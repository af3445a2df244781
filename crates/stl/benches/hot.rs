//! `cargo bench -p smrlab-stl --bench hot`: layers under real work: random 4 KiB requests, one third reads, over a hot part of
//! a large drive, written again and again: CPU ns a request of the layer alone, with the engine's prefetch, after a warm-up
//! that fills the region, and bytes of map a mapped block. Names of layers as arguments select.

use smrlab_disk::model;
use smrlab_stl::{BuildContext, HostRequest, Plan};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::hint::black_box;
use std::sync::Arc;

const ROUND: usize = 1_000_000;
/// How far ahead the engine hints.
const AHEAD: usize = 16;
/// Region in GB and requests before the measurement: enough that most of the region was written.
const REGIONS: [(u64, usize); 2] = [(1, 2_000_000), (9, 6_000_000)];

fn requests(seed: u64, blocks: u64, count: usize) -> Vec<HostRequest> {
    let mut rng = Rng::new(seed);
    (0..count)
        .map(|_| {
            let op = if rng.one_in(3) { HostOp::Read } else { HostOp::Write };
            let lba = rng.below(blocks / 8) * 8;
            HostRequest::new(op, Lba(lba), Blocks(8))
        })
        .collect()
}

/// CPU time of this process: on a shared machine wall time says little.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat begins with CPU time in ns")
}

fn main() {
    let modern = Arc::new(model::load("modern-7200", |_| Err(String::new())).expect("a preset"));
    // The small drive is full of the region, so that it is compacted all the time.
    let small = Arc::new(model::load("modern-7200,capacity=12GB", |_| Err(String::new())).expect("a preset"));
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let texts = ["cmr", "log", "log,separate=frequency", "log,separate=recency", "segment"];
    for (name, drive) in [("modern-7200", &modern), ("12 GB of it", &small)] {
        for text in texts.into_iter().filter(|t| wanted.is_empty() || wanted.iter().any(|w| w == t)) {
            for (gb, warm_up) in REGIONS {
                let built = smrlab_stl::build(text, &BuildContext::new(Arc::clone(drive))).expect("fits");
                let mut layer = built.layer;
                let blocks = (gb * 1_000_000_000 / 512).min(layer.host_blocks().0);
                let mut plan = Plan::new(false, false);
                let (mut times, mut ops) = (Vec::new(), 0);
                for round in 0..warm_up / ROUND + 3 {
                    let requests = requests(round as u64, blocks, ROUND);
                    let (start, before) = (cpu_ns(), ops);
                    for (i, r) in requests.iter().enumerate() {
                        if let Some(ahead) = requests.get(i + AHEAD) {
                            layer.prefetch(ahead);
                        }
                        plan.clear();
                        layer.submit(SimTime::ZERO, r, &mut plan);
                        ops += black_box(plan.ops()).len();
                    }
                    times.push(((cpu_ns() - start) / ROUND as f64, (ops - before) as f64 / ROUND as f64));
                }
                let mut last = times[times.len() - 3..].to_vec();
                last.sort_by(|a, b| a.0.total_cmp(&b.0));
                let ((ns, per), bytes) = (last[1], layer.map_bytes() as f64 / blocks as f64);
                println!(
                    "{name:<12} {text:<24}{gb:>4} GB{ns:>8.1} ns{per:>6.2} operations{bytes:>7.2} bytes a block"
                );
            }
        }
    }
}
