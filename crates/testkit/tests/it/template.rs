//! The template for layers of one's own, proven like the layers of the registry.

#[path = "../../../../examples/greedy_log.rs"]
mod greedy_log;

use greedy_log::ENTRY;
use smrlab_disk::{DriveModel, DriveSpec};
use smrlab_stl::Metadata;
use smrlab_stl::entry::BuildContext;
use smrlab_stl::registry::build_as;
use smrlab_testkit::{Cuts, Harness, Volatile, Workload, drives};
use smrlab_units::Blocks;
use std::sync::Arc;

fn on(drive: &str, metadata: Metadata) -> Harness {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
    Harness::of(&ENTRY, ENTRY.name, drive, metadata).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn it_keeps_what_it_is_given_on_every_drive() {
    let mut fits = 0;
    for (name, drive) in drives::all() {
        let Ok(mut h) = Harness::of(&ENTRY, ENTRY.name, &drive, Metadata::Nv) else { continue };
        println!("{name}");
        fits += 1;
        h.exercise(Workload { requests: 300, seed: fits, longest: u64::MAX });
        h.exercise(Workload { requests: 3_000, seed: 100 + fits, longest: 200 });
    }
    assert!(fits >= 8, "on {fits} drives only");
    on("tiny", Metadata::Media).exercise(Workload { requests: 500, seed: 3, longest: 40 });
}

/// What the registry's own tests ask of the entries there, of which the template is none.
#[test]
fn its_copy_can_be_shipped() {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == "tiny").expect("a drive of the kit");
    let counted = Blocks(40);
    let spec = DriveSpec { counted: Some(counted), ..drive.spec().clone() };
    let context = BuildContext::new(Arc::new(DriveModel::new(spec, Vec::new()).expect("a drive")));
    let built = build_as(&ENTRY, ENTRY.name, &context).expect("it fits");
    assert_eq!(built.layer.host_blocks(), counted);
    assert!(ENTRY.page.len() > 200);
}

#[test]
fn it_goes_on_as_if_nothing_had_been() {
    let digests = [None, Some(true), Some(false)].map(|restart| {
        let mut h = on("zones and skew", Metadata::Nv);
        h.exercise(Workload { requests: 400, seed: 11, longest: 100 });
        if let Some(from_checkpoint) = restart {
            h.restart(from_checkpoint);
        }
        h.exercise(Workload { requests: 200, seed: 12, longest: 100 });
        h.digest()
    });
    assert_eq!(digests, [digests[0]; 3]);
}

#[test]
fn it_survives_cuts_and_needs_its_fences() {
    for drive in ["zones and skew", "slipped sectors"] {
        let losses = Cuts { requests: 60, longest: 40, seed: 5 }.run(&mut on(drive, Metadata::Nv));
        assert!(losses.cuts > 100 && (losses.lost, losses.mixed) == (0, 0), "{drive}: {losses:?}");
    }
    let load = Volatile { requests: 500, longest: 60, seed: 1, every: 25, fences: true };
    let o = load.run(&mut on("zones and skew", Metadata::Nv));
    assert!(o.cuts > 20 && o.lost == 0, "{o:?}");
    // Whether a cut does harm is chance: of ten rounds one has to.
    let harm = |seed| {
        Volatile { every: 5, fences: false, seed, ..load }.run(&mut on("zones and skew", Metadata::Nv))
    };
    let rounds: Vec<_> = (1..=10).map(harm).collect();
    assert!(rounds.iter().any(|o| o.fences > 0 && o.harmful > 0), "{rounds:?}");
}
