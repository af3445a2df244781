//! `cargo bench -p smrlab-stl --bench indirection`: the disk cache and S-blocks on Cassuto's drive in their steady state,
//! uniform 4 KiB writes: CPU ns a host request of the layer alone and with the drive's mechanics, media operations, and
//! bytes of map for each cached block and S-block. Medians of five rounds.

use smrlab_disk::{Mechanics, model};
use smrlab_stl::{BuildContext, HostRequest, Plan, TranslationLayer};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::hint::black_box;
use std::sync::Arc;

const ROUND: usize = 500_000;
/// Enough for the caches to fill and for the destages to have gone round all S-blocks.
const WARM_UP: usize = 3_000_000;
/// How far ahead the engine hints.
const AHEAD: usize = 16;

fn requests(seed: u64, blocks: u64, count: usize) -> Vec<HostRequest> {
    let mut rng = Rng::new(seed);
    let mut lba = || Lba(rng.below(blocks / 8) * 8);
    (0..count).map(|_| HostRequest::new(HostOp::Write, lba(), Blocks(8))).collect()
}

/// CPU time of this process: on a shared machine wall time says little.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat begins with CPU time in ns")
}

fn go(
    layer: &mut dyn TranslationLayer,
    requests: &[HostRequest],
    mut mechanics: Option<&mut Mechanics>,
    now: &mut SimTime,
) -> usize {
    let mut plan = Plan::new(false, false);
    let mut ops = 0;
    for (i, r) in requests.iter().enumerate() {
        if let Some(ahead) = requests.get(i + AHEAD) {
            layer.prefetch(ahead);
        }
        plan.clear();
        layer.submit(*now, r, &mut plan);
        ops += black_box(plan.ops()).len();
        if let Some(m) = &mut mechanics {
            for o in plan.ops() {
                *now = m.service(*now, o.dir, o.pba, o.blocks);
            }
        }
    }
    ops
}

fn main() {
    let drive = Arc::new(model::load("cassuto2010-307gb", |_| Err(String::new())).expect("a preset"));
    let only = std::env::args().skip(1).find(|a| !a.starts_with("--"));
    let texts = [
        "disk-cache",
        "disk-cache,granularity=8",
        "disk-cache,band=10000",
        "disk-cache,band=100000",
        "s-block",
        "s-block,granularity=8",
        "s-block,policy=most-cached",
    ];
    for text in texts.into_iter().filter(|t| only.as_ref().is_none_or(|o| o == t)) {
        let built = smrlab_stl::build(text, &BuildContext::new(Arc::clone(&drive))).expect("fits");
        let mut layer = built.layer;
        let mut mechanics = drive.mechanics(None).expect("a preset");
        let mut now = SimTime::ZERO;
        let host = layer.host_blocks().0;
        go(layer.as_mut(), &requests(99, host, WARM_UP), None, &mut now);
        let mut rounds = |mut mechanics: Option<&mut Mechanics>| {
            let mut ops = 0;
            let mut times: Vec<f64> = (0..5)
                .map(|round| {
                    let requests = requests(round + 1 + 5 * u64::from(mechanics.is_some()), host, ROUND);
                    let start = cpu_ns();
                    ops += go(layer.as_mut(), &requests, mechanics.as_deref_mut(), &mut now);
                    (cpu_ns() - start) / ROUND as f64
                })
                .collect();
            times.sort_by(f64::total_cmp);
            (times[2], ops as f64 / (5 * ROUND) as f64)
        };
        let alone = rounds(None);
        let timed = rounds(Some(&mut mechanics));
        println!(
            "{text:<28} layer {:>6.1} ns; with mechanics {:>6.1} ns: {:>5.2} M requests/s, {:>5.2} M operations/s \
             ({:.2} a request); map {} bytes",
            alone.0,
            timed.0,
            1e3 / timed.0,
            1e3 * timed.1 / timed.0,
            timed.1,
            layer.map_bytes()
        );
    }
}
