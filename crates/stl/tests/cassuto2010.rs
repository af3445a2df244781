//! The claims of Cassuto et al. 2010 (IV and V): the disk cache and S-blocks on a calibrated drive, requests
//! back to back. What the whole engine measures is in `papers/cassuto2010/verdicts.toml`; `--nocapture` prints it.

use smrlab_disk::{Mechanics, model};
use smrlab_stl::{BuildContext, HostRequest, Plan, TranslationLayer};
use smrlab_units::rng::splitmix;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::sync::Arc;

const DRIVE: &str = "cassuto2010-307gb";
/// 1e8 blocks: taken for the S-block runs, whose drive the paper does not state.
const SMALL: &str = "cassuto2010-307gb,capacity=100000000blk";

/// Adjusted operations: of at most 1000 blocks each.
fn adjusted(blocks: u64) -> u64 {
    blocks.div_ceil(1000)
}

/// A layer and its drive, fed back to back.
struct Run {
    layer: Box<dyn TranslationLayer>,
    mechanics: Mechanics,
    plan: Plan,
    now: SimTime,
    /// Completions in each window.
    windows: Vec<u32>,
    window: u64,
    /// Response of each request in ns.
    responses: Vec<u64>,
    media_adjusted: u64,
    media_blocks: u64,
    first_cleaning: Option<SimTime>,
    random: u64,
}

impl Run {
    fn new(drive: &str, layer: &str, window_s: u64) -> Self {
        let drive = Arc::new(model::load(drive, |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}")));
        let built = smrlab_stl::build(layer, &BuildContext::new(Arc::clone(&drive)))
            .unwrap_or_else(|e| panic!("{e}"));
        Self {
            layer: built.layer,
            mechanics: drive.mechanics(None).unwrap_or_else(|e| panic!("{e}")),
            plan: Plan::new(false, false),
            now: SimTime::ZERO,
            windows: Vec::new(),
            window: window_s * 1_000_000_000,
            responses: Vec::new(),
            media_adjusted: 0,
            media_blocks: 0,
            first_cleaning: None,
            random: 1,
        }
    }

    fn host(&self) -> u64 {
        self.layer.host_blocks().0
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(splitmix(&mut self.random)) * u128::from(n)) >> 64) as u64
    }

    fn submit(&mut self, op: HostOp, lba: u64, blocks: u64) {
        self.plan.clear();
        let request = HostRequest::new(op, Lba(lba), Blocks(blocks));
        self.layer.submit(self.now, &request, &mut self.plan);
    }

    /// A request in time.
    fn timed(&mut self, op: HostOp, lba: u64, blocks: u64) {
        self.submit(op, lba, blocks);
        let start = self.now;
        if !self.plan.cleanings().is_empty() {
            self.first_cleaning.get_or_insert(start);
        }
        for o in self.plan.ops() {
            self.now = self.mechanics.service(self.now, o.dir, o.pba, o.blocks);
            self.media_adjusted += adjusted(o.blocks.0);
            self.media_blocks += o.blocks.0;
        }
        let window = (self.now.0 / self.window) as usize;
        if self.windows.len() <= window {
            self.windows.resize(window + 1, 0);
        }
        self.windows[window] += 1;
        self.responses.push(self.now.0 - start.0);
    }

    fn random_write(&mut self) {
        let lba = self.below(self.host() / 8) * 8;
        self.timed(HostOp::Write, lba, 8);
    }

    /// Random 4 KiB writes until `seconds`.
    fn random_writes(&mut self, seconds: u64) {
        while self.now.0 < seconds * 1_000_000_000 {
            self.random_write();
        }
    }

    /// Mean IOPS from second `from` to `to`.
    fn iops(&self, from: u64, to: u64) -> f64 {
        let s = self.window / 1_000_000_000;
        let n: u32 = self.windows[(from / s) as usize..(to / s) as usize].iter().sum();
        f64::from(n) / (to - from) as f64
    }

    fn percentile_ms(&self, p: f64, from: usize) -> f64 {
        let mut r = self.responses[from..].to_vec();
        r.sort_unstable();
        r[((r.len() - 1) as f64 * p) as usize] as f64 / 1e6
    }
}

fn claim(id: &str, got: f64, band: std::ops::RangeInclusive<f64>) {
    println!("{id}: {got:.3} (band {:.3} to {:.3})", band.start(), band.end());
    assert!(band.contains(&got), "{id}: {got} is not within {band:?}");
}

/// Table I: media traffic of the paper's disk cache, rebuilt from 21 cleanings of 98 regions (Cassuto et al. 2010, IV.C).
#[test]
fn s1_to_s3_arithmetic_of_table_i() {
    let floor_plus_1 = |n: u64| n / 1000 + 1;
    let (rewrites, cleanings) = (21 * 98, 21);
    // Each rewrite reads and writes a region of 50 000 blocks, each cleaning reads a cache region; 40 writes and 1394 reads
    // were split.
    let writes = 75_615 + rewrites * floor_plus_1(50_000) + 40;
    let reads = 435_565 + rewrites * floor_plus_1(50_000) + cleanings * floor_plus_1(50_000) + 1374;
    assert_eq!((rewrites, writes, reads), (2058, 180_613, 542_968), "Table I, adjusted writes and reads");
    let extra: u64 = 180_613 + 542_968 - 435_565;
    assert_eq!(extra, 288_016);
    claim("S1 write overloading", extra as f64 / 75_615.0, 3.8085..=3.8095);
    claim("S2 slowdown", 2172.81 / 623.24, 3.4855..=3.4865);
    claim("S3 blocks a block written, whole regions", 2.0 * 50_000.0 / 38.2, 1e3..=1e4);
}

#[test]
fn s10_native_bands_for_each_cache_band() {
    for band in [50_000, 10_000] {
        let r = Run::new(DRIVE, &format!("disk-cache,band={band}"), 10);
        assert_eq!(r.host(), 600_000_000 / 100 * 99, "99 native bands for each cache band");
    }
}

/// Measured on a tenth of the drive with bands of a tenth: what is cleaned, how often, and how many bands are in a set
/// stay the same, and so does write overloading, which has no other scale than 1000 blocks.
#[test]
fn s4_write_overloading_falls_with_the_cache() {
    let drive = "cassuto2010-307gb,capacity=60000000blk,interference_blocks=200";
    let curve: Vec<f64> = (1..=10)
        .map(|percent| {
            let mut r = Run::new(drive, &format!("disk-cache,band=5000,cache={percent}%"), 10);
            let cycle = 75_000 * percent;
            (0..cycle).for_each(|_| r.random_write());
            r.media_adjusted = 0;
            (0..3 * cycle).for_each(|_| r.random_write());
            r.media_adjusted as f64 / (3 * cycle) as f64
        })
        .collect();
    println!("S4: {curve:.3?}");
    for (percent, got) in (1..=10).zip(&curve) {
        let associated = (100.0 - f64::from(percent)) / f64::from(percent);
        let formula = 1.0 + 2.0 * associated * 8.0 / 1000.0;
        assert!((got / formula - 1.0).abs() < 0.05, "{percent} %: {got}, formula {formula}");
    }
    assert!(curve.windows(2).all(|w| w[1] < w[0]), "monotone");
    assert!(curve.windows(3).all(|w| w[2] - 2.0 * w[1] + w[0] >= -0.05 * (w[1] - 1.0)), "convex");
}

#[test]
fn s5_to_s7_cliff_outage_and_return() {
    let mut r = Run::new(DRIVE, "disk-cache", 10);
    r.random_writes(9_000);
    let cliff = r.first_cleaning.expect("it fills").as_secs_f64();
    claim("S5 first cleaning, s", cliff, 702.0..=858.0);
    let before = r.iops(0, 700);
    let from = (cliff / 10.0).ceil() as usize;
    let after = &r.windows[from..from + 150];
    let share = |f: &dyn Fn(u32) -> bool| after.iter().filter(|&&n| f(n)).count() as f64 / 150.0;
    println!("initial {before:.0} IOPS");
    claim("S6 windows below 50 IOPS", share(&|n| n < 500), 0.8..=1.0);
    claim("S6 windows at 0 IOPS", share(&|n| n == 0), 0.5..=1.0);
    let best = r.windows[from + 150..].iter().max().copied().unwrap_or(0);
    claim("S7 highest window after the outage / initial", f64::from(best) / 10.0 / before, 0.9..=1.1);
}

#[test]
fn s8_and_s9_smaller_regions() {
    let mut small = Run::new(DRIVE, "disk-cache,band=10000", 10);
    small.random_writes(2_500);
    let zero = small.windows[..250].iter().filter(|&&n| n == 0).count();
    claim("S8 windows at 0 IOPS with regions of 10 000", zero as f64, 0.0..=0.0);
    let mut large = Run::new(DRIVE, "disk-cache", 10);
    large.random_writes(2_500);
    claim("S9 IOPS over 2500 s, 10 000 / 50 000", small.iops(0, 2_500) / large.iops(0, 2_500), 0.95..=1.05);
    let long = |band: u64| {
        let mut r = Run::new(DRIVE, &format!("disk-cache,granularity=8,band={band}"), 10);
        (0..3_000_000).for_each(|_| r.random_write());
        3e6 / r.now.as_secs_f64()
    };
    let (small, large) = (long(10_000), long(50_000));
    println!("S9 long run: {small:.1} and {large:.1} IOPS");
    claim("S9 long run, 10 000 / 50 000", small / large, 0.95..=1.05);
}

/// MB/s of reading in order, after so many blocks were written: a quarter of the host's space, in thirty long stretches that
/// lie all over it.
fn sequential_read(blocks: u64, random: bool) -> f64 {
    let mut r = Run::new(DRIVE, "disk-cache,granularity=8", 10);
    let host = r.host();
    for i in 0..blocks / 8 {
        let lba = if random { r.below(host / 8) * 8 } else { i * 8 };
        r.submit(HostOp::Write, lba, 8);
    }
    let stretch = host / 120 / 2000 * 2000;
    for start in (0..30).map(|i| host / 30 * i) {
        (start..start + stretch).step_by(2000).for_each(|lba| r.timed(HostOp::Read, lba, 2000));
    }
    (30 * stretch) as f64 * 512.0 / 1e6 / r.now.as_secs_f64()
}

#[test]
fn s11_and_s12_sequential_reads_after_filling_the_cache() {
    let cache = 6_000_000;
    // A random fill of the whole cache would clean the first set that is full: Poisson.
    let random: Vec<f64> = [0, 20, 40, 60, 80, 96].map(|p| sequential_read(cache * p / 100, true)).to_vec();
    println!("S11, MB/s at 0, 20, 40, 60, 80, 96 %: {random:.1?}");
    claim("S11 20 % / empty", random[1] / random[0], 0.0..=0.85);
    assert!(random.windows(2).all(|w| w[1] < w[0]), "monotone");
    let sequential = sequential_read(cache, false);
    claim("S12 sequential fill / empty", sequential / random[0], 0.95..=1.01);
}

/// Random writes for 1000 s on 1e8 blocks in ten sections.
fn sblocks(more: &str) -> (Run, usize, u64) {
    // The paper's drive is full.
    let mut r = Run::new(SMALL, &format!("s-block,unwritten=copy,moves=at-once{more}"), 1);
    while r.first_cleaning.is_none() {
        r.random_write();
    }
    let (drop, at) = (r.responses.len(), r.now.0 / 1_000_000_000 + 1);
    r.random_writes(1_001);
    (r, drop, at)
}

#[test]
fn s13_to_s17_sblocks() {
    let (tail, drop, at) = sblocks("");
    println!("initial {:.0} IOPS, drop after {at} s", tail.iops(0, at - 1));
    let least = tail.windows[at as usize..1000].iter().min().copied().unwrap_or(0);
    claim("S13 lowest window, IOPS", f64::from(least), 20.0..=60.0);
    let first = tail.iops(at, at + 50);
    claim("S13 first 50 s after the drop, IOPS", first, 35.0..=75.0);
    let last = tail.iops(750, 1000);
    claim("S14 last quarter, IOPS", last, 65.0..=100.0);
    claim("S14 last quarter / drop", last / first, 1.25..=2.0);
    claim("S15 99 %, ms", tail.percentile_ms(0.99, drop), 20.0..=55.0);
    let tail_max = tail.percentile_ms(1.0, drop);
    claim("S15 highest, ms", tail_max, 30.0..=150.0);
    let (most, drop, at_most) = sblocks(",policy=most-cached");
    let most_max = most.percentile_ms(1.0, drop);
    claim("S16 highest of most-cached, ms", most_max, 3_000.0..=60_000.0);
    claim("S16 highest, most-cached / closest-to-tail", most_max / tail_max, 20.0..=1e4);
    let zero = most.windows[at_most as usize..1000].iter().filter(|&&n| n == 0).count();
    claim("S16 windows at 0 IOPS", zero as f64, 1.0..=1e3);
    let ratio = tail.iops(at, 1000) / most.iops(at_most, 1000);
    claim("S17 IOPS, closest-to-tail / most-cached", ratio, 5.0..=1e3);
}

/// Destaging only where no block at all is invalid, as printed, collapses.
#[test]
fn the_literal_rules_collapse() {
    // Algorithm V.2 copies block by block; in batches the stalls last a second, and the mean is as low.
    let (r, drop, at) = sblocks(",rules=literal,batch=8");
    claim("literal rules, IOPS", r.iops(at, 1000), 0.0..=7.0);
    claim("literal rules, highest response, s", r.percentile_ms(1.0, drop) / 1e3, 5.0..=100.0);
    let (r, _, at) = sblocks(",rules=literal");
    claim("literal rules in batches, IOPS", r.iops(at, 1000), 0.0..=7.0);
}
