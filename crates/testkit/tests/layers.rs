//! Walks the registry: every layer on bytes, on every small drive, read back; and the same again.

use smrlab_stl::{LAYERS, LayerEntry, Metadata};
use smrlab_testkit::{Harness, Workload, drives};

/// Further options under which a layer is proven, beside its defaults.
const VARIANTS: &[(&str, &[&str])] = &[
    ("rmw", &["mode=partial", "journal=on", "mode=partial,journal=on,band=3"]),
    (
        "static",
        &[
            "order=1-9",
            "order=1324",
            "order=R(21)",
            "order=13R(2)R(54)",
            "order=1",
            "order=14R(23),journal=on",
        ],
    ),
    ("static-R(4123)", &["tracks=3"]),
];

fn texts(entry: &LayerEntry) -> Vec<String> {
    let variants = VARIANTS.iter().filter(|v| v.0 == entry.name).flat_map(|v| v.1);
    [entry.name.to_owned()].into_iter().chain(variants.map(|v| format!("{},{v}", entry.name))).collect()
}

fn run(text: &str, drive: &str, requests: u64) -> Option<u64> {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
    let mut h = Harness::new(text, drive, Metadata::Nv).ok()?;
    h.exercise(Workload { requests, seed: 1, longest: u64::MAX });
    Some(h.digest())
}

#[test]
fn every_layer_keeps_what_it_is_given_on_every_drive() {
    for entry in LAYERS {
        for text in texts(entry) {
            let mut fits = 0;
            for (name, drive) in drives::all() {
                println!("{text} on {name}");
                let Ok(mut h) = Harness::new(&text, &drive, Metadata::Nv) else { continue };
                fits += 1;
                h.exercise(Workload { requests: 1_000, seed: fits, longest: u64::MAX });
            }
            assert!(fits >= 3, "{text} fits on {fits} of the kit's drives only");
        }
    }
}

#[test]
fn ten_thousand_requests_on_the_tiny_drive() {
    for entry in LAYERS {
        run(entry.name, "tiny", 10_000).unwrap_or_else(|| panic!("{} does not fit on tiny", entry.name));
    }
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    for entry in LAYERS {
        let digests = [0; 2].map(|_| run(entry.name, "zones and skew", 300).expect("fits"));
        assert_eq!(digests[0], digests[1], "{}", entry.name);
    }
}
