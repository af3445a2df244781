//! Cuts the power of media with a volatile write cache, for every layer and set of options that promises to survive.

use smrlab_stl::Metadata;
use smrlab_testkit::{Harness, Outcome, Volatile, drives, layers};
use smrlab_units::spec::split_item;
use std::collections::BTreeMap;

/// Drives of the kit that take turns.
const DRIVES: &[&str] = &[
    "zones and skew",
    "tiny",
    "cylinders",
    "slipped sectors",
    "hybrid serpentine",
    "outwards, three tracks",
];

fn run(text: &str, drive: &str, metadata: Metadata, load: Volatile) -> Outcome {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
    let mut h = Harness::new(text, drive, metadata).unwrap_or_else(|e| panic!("{e}"));
    let outcome = load.run(&mut h);
    println!("{text}: {outcome:?}");
    outcome
}

/// Every layer that promises to survive, with each set of options, on the drive whose turn it is or the next that fits.
fn texts() -> Vec<(String, &'static str)> {
    let all = drives::all();
    let fits = |text: &str, name: &str| {
        let (_, drive) = all.iter().find(|d| d.0 == name).expect("a drive of the kit");
        Harness::new(text, drive, Metadata::Nv).is_ok()
    };
    let texts = layers().into_iter().flat_map(|entry| entry.durable_texts());
    texts
        .enumerate()
        .map(|(i, text)| {
            let mut turn = DRIVES.iter().cycle().skip(i).take(DRIVES.len());
            let drive = turn.find(|d| fits(&text, d)).unwrap_or_else(|| panic!("{text} fits on no drive"));
            (text, *drive)
        })
        .collect()
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

/// A step of background work is given up before its last operation or not at all: its records on the medium are written with that.
#[test]
fn steps_whose_records_are_on_the_medium_are_whole_or_never_were() {
    let load = Volatile { requests: 100, longest: 40, seed: 0, every: 6, fences: true };
    for text in ["disk-cache,journal=on,idle=1ms,association=dynamic", "host-aware", "persistent-cache"] {
        for seed in 0..20 {
            let o = run(text, "tiny", Metadata::Media, Volatile { seed, ..load });
            assert_eq!(o.lost, 0, "{text}, seed {seed}: {o:?}");
        }
    }
}

/// Of every layer. Which of its options are met with a fence in so short a run is chance, and so is whether a cut does harm at all:
/// layers of which nothing was seen yet get more runs.
#[test]
fn a_medium_that_does_not_heed_fences_loses_what_was_flushed() {
    let mut seen = BTreeMap::<String, (u64, u64)>::new();
    for round in 0..10 {
        for (i, (text, drive)) in texts().into_iter().filter(|t| t.0 != "cmr").enumerate() {
            let (fences, harmful) = seen.entry(split_item(&text).0.to_owned()).or_default();
            if round > 0 && *fences > 0 && *harmful > 0 {
                continue;
            }
            let seed = 1000 * round + i as u64;
            let load = Volatile { requests: 250, longest: 60, seed, every: 20, fences: false };
            let o = run(&text, drive, Metadata::Nv, load);
            (*fences, *harmful) = (*fences + o.fences, *harmful + o.harmful);
        }
    }
    for (layer, (fences, harmful)) in seen {
        assert!(fences > 0 && harmful > 0, "{layer}: {fences} fences, {harmful} harmful cuts");
    }
}
