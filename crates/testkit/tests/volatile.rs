//! Cuts the power of media with a volatile write cache, for every layer and set of options that promises to survive.

use smrlab_stl::{LAYERS, Metadata};
use smrlab_testkit::{Harness, Outcome, Volatile, drives};

/// Layer and drive, beside each entry's own defaults.
const VARIANTS: &[(&str, &str)] = &[
    ("rmw,mode=partial,journal=on", "zones and skew"),
    ("rmw,mode=partial,journal=on,band=3", "cylinders"),
    ("static,order=14R(23),journal=on", "slipped sectors"),
    ("static,order=1-9,journal=on", "hybrid serpentine"),
    ("disk-cache,journal=on,band=16,cache=20%", "tiny"),
    ("disk-cache,journal=on,cleaning=partial,clean_bands=2,band=16,cache=10%", "tiny"),
    ("disk-cache,journal=on,association=dynamic,placement=per-set,band=24,cache=10%", "tiny"),
    ("disk-cache,journal=on,gc_all_assoc=on,idle=10ms,band=16,cache=20%", "tiny"),
    ("disk-cache,journal=on,granularity=8,cache=20%", "tiny"),
    ("s-block,granularity=8,sblock_blocks=16", "tiny"),
    ("s-block,policy=most-cached,rules=literal", "zones and skew"),
    ("s-block,policy=tail-of-cache,destage_ahead=2,low_water=20%", "tiny"),
    ("s-block,policy=mix,bypass=off,sections=2,sblock_blocks=16,tracks=2", "outwards, three tracks"),
];

fn run(text: &str, drive: &str, metadata: Metadata, load: Volatile) -> Outcome {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
    let mut h = Harness::new(text, drive, metadata).unwrap_or_else(|e| panic!("{e}"));
    let outcome = load.run(&mut h);
    println!("{text}: {outcome:?}");
    outcome
}

/// Every layer that promises to survive with its best options, on one drive; then the others.
fn texts() -> Vec<(String, &'static str)> {
    let own = LAYERS.iter().filter(|e| e.capabilities.survives_cut).map(|e| {
        let journal = e.params.iter().any(|p| p.name == "journal");
        (format!("{}{}", e.name, if journal { ",journal=on" } else { "" }), "zones and skew")
    });
    own.chain(VARIANTS.iter().map(|v| (v.0.to_owned(), v.1))).collect()
}

#[test]
fn what_was_flushed_survives_and_nothing_is_mixed_up() {
    for (i, (text, drive)) in texts().into_iter().enumerate() {
        let everywhere = Volatile { requests: 40, longest: 40, seed: i as u64, every: 1, fences: true };
        let sampled = Volatile { requests: 500, longest: 60, seed: 100 + i as u64, every: 25, fences: true };
        for load in [everywhere, sampled] {
            let o = run(&text, drive, Metadata::Nv, load);
            assert!(o.cuts > 20, "{text}: {o:?}");
            assert_eq!(o.lost, 0, "{text}: {o:?}");
        }
    }
    let load = Volatile { requests: 400, longest: 40, seed: 3, every: 5, fences: true };
    let o = run("static-14R(23),journal=on", "zones and skew", Metadata::Media, load);
    assert_eq!(o.lost, 0, "metadata on the medium: {o:?}");
}

#[test]
fn a_medium_that_does_not_heed_fences_loses_what_was_flushed() {
    for (i, (text, drive)) in texts().into_iter().filter(|t| t.0 != "cmr").enumerate() {
        let load = Volatile { requests: 250, longest: 60, seed: i as u64, every: 20, fences: false };
        let o = run(&text, drive, Metadata::Nv, load);
        assert!(o.fences > 0 && o.harmful > 0, "{text}: {o:?}");
    }
}
