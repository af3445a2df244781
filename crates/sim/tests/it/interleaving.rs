//! Four sources on four shingled drives (Le, Holliday and Amer, the study of interleaved workloads): claims A1 to A6 as orderings, on
//! synthetic sources. Burst size is how many requests of one source come before another's.

use serde_json::Value;
use smrlab_sim::{Control, Spec, run};
use std::path::Path;
use std::sync::LazyLock;

/// Tracks of 64 units of 4 KiB, bands of 16 tracks: the study's model, its footprints by four. Written once: the tests run
/// at the same time.
static DRIVE: LazyLock<String> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/tiny.toml");
    let text = std::fs::read_to_string(root).unwrap();
    let text = text
        .replace("[[40, 32], [40, 24], [40, 16]]", "[[360, 512]]")
        .replace("tracks = { value = 4,", "tracks = { value = 16,");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interleaving.toml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
});

/// Footprint in MiB, hot share of runs, hot part, writes, mean run: the study gives none, these are stand-ins.
const SOURCES: [(u64, u64, u64, u64, u64); 4] =
    [(40, 90, 2, 15, 1024), (60, 80, 10, 30, 512), (50, 90, 5, 36, 614), (50, 70, 20, 24, 256)];

fn go(array: &str, layer: &str, burst: u64) -> Value {
    let traces = SOURCES.map(|(mib, share, hot, write, run)| {
        format!(
            "'synth:runs,requests=20000,size=4KiB,align=4KiB,span={mib}MiB,share={share}%,hot={hot}%,write={write}%,run={run},seed={mib}{hot}'"
        )
    });
    let text = format!(
        "drive = '{}'\nlayer = '{layer}'\narray = '{array}'\ntrace = [{}]\nburst = {burst}\narrivals = 'closed'\n\
         mechanics = 'instant'\nprefill = '100%'\n",
        *DRIVE,
        traces.join(", ")
    );
    let spec = Spec::from_toml(&text).unwrap();
    run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}")).json
}

fn switches(r: &Value) -> f64 {
    r["movement"]["track_switches"].as_f64().unwrap()
}

fn relocated(r: &Value) -> f64 {
    r.pointer("/cleaning/relocated_blocks").and_then(Value::as_f64).unwrap_or(0.0)
}

const STRIPED: &str = "striped,disks=4,chunk=8blk";
/// Longer than any source: one after the other.
const WHOLE: u64 = 1_000_000;

#[test]
fn movement_falls_with_the_burst_and_separation_is_best() {
    let pure = go("spanning,disks=4", "log", WHOLE);
    let ratio = |burst| switches(&go(STRIPED, "log", burst)) / switches(&pure);
    let bursts = [1, 10, 50, 100, 250, 500, 1000];
    let ratios: Vec<f64> = bursts.iter().map(|b| ratio(*b)).collect();
    let dedicated = go("dedicated,disks=4", "log", WHOLE);
    let apart = switches(&dedicated) / switches(&pure);
    println!("striped over pure: {bursts:?} {ratios:.2?}; dedicated over pure: {apart:.2}");
    println!("relocated blocks: pure {}, dedicated {}", relocated(&pure), relocated(&dedicated));
    // A1, A2: many times as much at a burst of one, a fraction of that at 50 and at 250.
    assert!((10.0..80.0).contains(&ratios[0]), "{ratios:?}");
    assert!(ratios[2] <= ratios[0] / 4.0 && ratios[4] <= ratios[0] / 8.0, "{ratios:?}");
    // A3, A6: never rising, and towards consecutive replay.
    assert!(ratios.windows(2).all(|w| w[1] <= w[0] * 1.03), "{ratios:?}");
    assert!(ratios[6] <= 2.5, "{ratios:?}");
    // A4: a drive for each source moves less, because unrelated data never share a band.
    assert!((0.5..0.98).contains(&apart), "{apart}");
    // A5: bursts mean nothing to drives that see one source each.
    assert_eq!(switches(&go("dedicated,disks=4", "log", 50)), switches(&dedicated));
}

/// Append streams, one for each source, on drives that share all sources: bands hold what dies together.
#[test]
fn append_streams_relocate_no_more() {
    let one = relocated(&go(STRIPED, "log,streams=1", 10));
    let four = relocated(&go(STRIPED, "log,streams=4", 10));
    println!("relocated blocks with one stream {one}, with four {four}");
    assert!(one > 0.0 && four <= one);
}

/// The same composer over S-blocks: relocation is by address there, movement falls with the burst all the same.
#[test]
fn s_blocks_under_the_composer() {
    let layer = "s-block,sblock_blocks=512,cache=5%,overprovision=10%,sections=1";
    let all: Vec<f64> = [1, 50, 1000].map(|burst| switches(&go(STRIPED, layer, burst))).to_vec();
    println!("s-block, switches at bursts of 1, 50, 1000: {all:?}");
    assert!(all[0] > 2.0 * all[1] && all[1] > all[2], "{all:?}");
}

/// `burst` is short for a join in bursts, and says so where both are given.
#[test]
fn a_burst_is_a_join_in_bursts() {
    let of = |more: &str| {
        let text = format!(
            "trace = ['synth:uniform,requests=3', 'synth:uniform,requests=3']\ndrive = 'tiny'\n{more}"
        );
        smrlab_sim::resolve(&Spec::from_toml(&text).unwrap()).map(|r| r.spec.join)
    };
    assert_eq!(of("burst = 7").unwrap(), "bursts,requests=7");
    assert_eq!(of("").unwrap(), "time");
    let fault = |more: &str| of(more).unwrap_err().to_string();
    assert!(fault("burst = 0").contains("burst: 0 is not accepted"), "{}", fault("burst = 0"));
    let both = fault("burst = 7\njoin = 'chain'");
    assert!(both.contains("burst: join=chain says how traces are joined"), "{both}");
}
