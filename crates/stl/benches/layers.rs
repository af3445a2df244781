//! `cargo bench -p smrlab-stl`: CPU ns for one request of each layer alone, uniform 4 KiB, 70 % writes, on the modern drive
//! and on a small part of it, where maps fit into the processor's caches (median of five rounds), with the engine's prefetch; and bytes of map. Names of layers as arguments select.

use smrlab_disk::model;
use smrlab_stl::{BuildContext, HostRequest, Plan};
use smrlab_units::rng::splitmix;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::hint::black_box;
use std::sync::Arc;

const ROUND: usize = 1_000_000;
/// How far ahead the engine hints.
const AHEAD: usize = 16;

fn requests(seed: u64, blocks: u64, count: usize) -> Vec<HostRequest> {
    let mut state = seed;
    let mut next = || splitmix(&mut state);
    (0..count)
        .map(|_| {
            let op = if next() % 10 < 7 { HostOp::Write } else { HostOp::Read };
            let unit = ((u128::from(next()) * u128::from(blocks / 8)) >> 64) as u64;
            HostRequest::new(op, Lba(unit * 8), Blocks(8))
        })
        .collect()
}

/// CPU time of this process: on a shared machine wall time says little.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat begins with CPU time in ns")
}

fn main() {
    for name in ["modern-7200", "modern-7200,capacity=100GB"] {
        println!("{name}");
        on(name);
    }
}

fn on(name: &str) {
    let modern = Arc::new(model::load(name, |_| Err(String::new())).expect("a preset"));
    let texts = [
        "cmr",
        "raw",
        "rmw",
        "rmw,mode=partial",
        "static-1234",
        "static-R(4123)",
        "static-124R(3)",
        "static-14R(23)",
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for text in texts.into_iter().filter(|t| wanted.is_empty() || wanted.iter().any(|w| w == t)) {
        let built = smrlab_stl::build(text, &BuildContext::new(Arc::clone(&modern))).expect("fits");
        let mut layer = built.layer;
        let mut plan = Plan::new(false, false);
        let mut ops = 0;
        let mut times: Vec<f64> = (0..5)
            .map(|round| {
                let requests = requests(round, layer.host_blocks().0, ROUND);
                let start = cpu_ns();
                for (i, r) in requests.iter().enumerate() {
                    if let Some(ahead) = requests.get(i + AHEAD) {
                        layer.prefetch(ahead);
                    }
                    plan.clear();
                    layer.submit(SimTime::ZERO, r, &mut plan);
                    ops += black_box(plan.ops()).len();
                }
                (cpu_ns() - start) / ROUND as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let per = ops as f64 / (5 * ROUND) as f64;
        println!("{text:<20}{:>8.1} ns {per:>6.2} operations {:>12} bytes", times[2], layer.map_bytes());
    }
}
