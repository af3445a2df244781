//! Walks the registry: every layer on bytes, on every small drive, read back; and the same again.

use smrlab_disk::geometry::GeometrySpec;
use smrlab_disk::{DriveModel, Interference, ZoneSpec};
use smrlab_stl::{BuildContext, HostRequest, Metadata, Plan, Records};
use smrlab_testkit::medium::DESTROYED;
use smrlab_testkit::{
    BlockState, ByteMedium, Digest, Harness, Rng, Workload, all_layers, cases, drives, layers,
};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn run(text: &str, drive: &str, requests: u64) -> Option<Digest> {
    let all = drives::all();
    let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
    let mut h = Harness::new(text, drive, Metadata::Nv).ok()?;
    h.exercise(Workload { requests, seed: 1, longest: u64::MAX });
    Some(h.digest())
}

/// Thousands of requests on every drive on which `text` fits; some of the first ones are as long as all of the space.
fn exercise_everywhere(text: &str) {
    let mut fits = 0;
    for (name, drive) in drives::all() {
        let Ok(mut h) = Harness::new(text, &drive, Metadata::Nv) else { continue };
        println!("{text} on {name}");
        fits += 1;
        h.exercise(Workload { requests: cases(1_000), seed: fits, longest: u64::MAX });
        h.exercise(Workload { requests: cases(9_000), seed: 100 + fits, longest: 200 });
    }
    assert!(fits >= 3, "{text} fits on {fits} of the kit's drives only");
}

#[test]
fn every_layer_keeps_what_it_is_given_on_every_drive() {
    let all: Vec<String> = layers().into_iter().flat_map(|entry| entry.texts()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(text) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            exercise_everywhere(text);
        }
    };
    std::thread::scope(|threads| _ = [(); 2].map(|()| threads.spawn(work)));
}

/// Bands are longest in the middle: a layer that says how far its plans move what waits says so of those too.
#[test]
fn plans_move_what_waits_no_further_than_said() {
    let zones = [4, 90, 4].map(|sectors| ZoneSpec::plain(24, sectors)).to_vec();
    let drive = drives::drive(GeometrySpec::single_surface(zones), Interference::tracks(2), 4);
    for text in layers().into_iter().flat_map(|entry| entry.texts()) {
        let Ok(mut h) = Harness::new(&text, &drive, Metadata::Nv) else { continue };
        h.exercise(Workload { requests: 400, seed: 5, longest: 40 });
    }
}

/// Long bands under a wide head, of which never much holds data: no update takes a hole that is narrower than what it destroys for the end.
#[test]
fn holes_in_bands_are_no_ends_of_them() {
    let drive = drives::plain(120, 20, 3, 12);
    let mut fits = 0;
    for text in layers().into_iter().flat_map(|entry| entry.texts()) {
        let Ok(mut h) = Harness::new(&text, &drive, Metadata::Nv) else { continue };
        let (mut rng, space) = (Rng::new(11), h.layer.host_blocks().0.min(400));
        for i in 1..=240 {
            let write = rng.below(3) > 0;
            let (op, most) = if write { (HostOp::Write, 3) } else { (HostOp::Discard, 14) };
            let lba = rng.below(space);
            h.request(op, lba, (1 + rng.below(most)).min(space - lba), &mut rng);
            if i % 40 == 0 {
                h.request(HostOp::Read, 0, space, &mut rng);
            }
        }
        fits += 1;
    }
    assert!(!all_layers() || fits > 40, "{fits}");
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    for entry in layers() {
        let digests = [0; 2].map(|_| run(entry.name, "zones and skew", 300).expect("fits"));
        assert_eq!(digests[0], digests[1], "{}", entry.name);
    }
}

/// A drive file that says nothing of bands has such of four tracks, for every layer that is given none either.
#[test]
fn bands_are_four_tracks_where_nobody_says() {
    let on = |tracks: Option<u64>, text: &str| {
        let mut spec = drives::plain(240, 20, 2, 4).spec().clone();
        spec.bands.tracks = tracks;
        let drive = Arc::new(DriveModel::new(spec, Vec::new()).unwrap());
        let mut h = Harness::new(text, &drive, Metadata::Nv).unwrap_or_else(|e| panic!("{e}"));
        h.exercise(Workload { requests: 60, seed: 9, longest: 200 });
        h.digest()
    };
    let mut by_drive = Vec::new();
    for entry in layers() {
        let four = on(Some(4), entry.name);
        assert!(on(None, entry.name) == four, "{}", entry.name);
        if on(Some(5), entry.name) != four {
            by_drive.push(entry.name);
        }
    }
    let expected = [
        "rmw",
        "disk-cache",
        "log",
        "laz-raz",
        "h-swd",
        "segment",
        "persistent-cache",
        "virtualguard",
        "e-region",
        "steady-log",
    ];
    assert!(!all_layers() || by_drive == expected, "{by_drive:?}");
}

#[test]
fn metadata_on_the_medium_cost_writes_and_harm_nothing() {
    for entry in layers() {
        let mut h = Harness::new(entry.name, &drives::preset("tiny"), Metadata::Media)
            .unwrap_or_else(|e| panic!("{e}"));
        h.exercise(Workload { requests: 1_000, seed: 3, longest: 40 });
        let mut without = Harness::new(entry.name, &drives::preset("tiny"), Metadata::Nv).expect("fits too");
        without.exercise(Workload { requests: 1_000, seed: 3, longest: 40 });
        let [bytes, plain] = [&h, &without].map(|h| h.layer.map_bytes());
        assert!(2 * bytes >= plain && bytes <= 4 * plain, "{}: {bytes} bytes, {plain} without", entry.name);
        let checkpoints = smrlab_stl::counted(&*h.layer).get("metadata_checkpoints");
        let expected = entry.capabilities.keeps_data && !entry.conventional;
        let some = checkpoints.is_some_and(|n| n > 0);
        assert_eq!(some, expected, "{}: {checkpoints:?} checkpoints", entry.name);
    }
}

/// The product's medium and the plain model hold the same wherever neither says that it was destroyed.
#[test]
fn the_shingled_medium_does_what_the_plain_model_does() {
    for (name, drive) in drives::all() {
        let mut medium = ByteMedium::of(&drive);
        let mut h = Harness::new("raw", &drive, Metadata::Nv).unwrap();
        let mut rng = Rng::new(7);
        let space = h.layer.host_blocks().0;
        for _ in 0..500 {
            let lba = rng.below(space);
            let blocks = 1 + rng.below((space - lba).min(30));
            let data = h.write_random(lba, blocks, &mut rng);
            medium.write(Pba(lba), &data);
        }
        for (block, bytes) in h.medium.bytes().chunks(512).enumerate() {
            let destroyed = matches!(medium.state(Pba(block as u64)), BlockState::Destroyed { .. });
            assert_eq!(bytes == [DESTROYED; 512], destroyed, "{name}: block {block}");
            let mut out = [0; 512];
            medium.read_raw(Pba(block as u64), &mut out);
            assert!(destroyed || bytes == out, "{name}: block {block}");
        }
    }
}

/// A fresh layer that recovers is the same layer: it goes on with the same operations as one that was never stopped.
#[test]
fn a_layer_that_recovers_goes_on_as_if_nothing_had_been() {
    let mut others = Vec::new();
    for entry in layers() {
        for text in entry.texts() {
            let [straight, checkpoint, records] = [None, Some(true), Some(false)].map(|restart| {
                let mut h = Harness::new(&text, &drives::preset("tiny"), Metadata::Nv).unwrap();
                h.exercise(Workload { requests: 400, seed: 11, longest: 100 });
                if let Some(from_checkpoint) = restart {
                    h.restart(from_checkpoint);
                }
                h.exercise(Workload { requests: 200, seed: 12, longest: 100 });
                h.digest()
            });
            if straight != checkpoint {
                others.push(format!("{text} from a checkpoint"));
            }
            if straight != records {
                others.push(format!("{text} from its records"));
            }
        }
    }
    assert!(others.is_empty(), "go on otherwise: {others:#?}");
}

/// The parts of which a layer says that they know nothing of each other: brought together by parts, the same writes leave
/// the same layer.
#[test]
fn parts_of_the_space_know_nothing_of_each_other() {
    let drive = drives::preset("tiny");
    let mut with_parts = 0;
    for text in layers().into_iter().flat_map(smrlab_stl::LayerEntry::texts) {
        let fresh = || smrlab_stl::build(&text, &BuildContext::new(drive.clone())).unwrap().layer;
        let Some(parts) = fresh().facts().independent else { continue };
        let (each, host) = (parts.each.0, fresh().host_blocks().0);
        let mut rng = Rng::new(5);
        // Enough for caches to be cleaned many times; within one part each.
        let mut writes: Vec<HostRequest> = (0..3000)
            .map(|_| {
                let lba = rng.below(host);
                let most = (each - lba % each).min(host - lba).min(40);
                HostRequest::new(HostOp::Write, Lba(lba), Blocks(1 + rng.below(most)))
            })
            .collect();
        let left = [false, true].map(|together| {
            if together {
                writes.sort_by_key(|w| parts.of(w.lba));
            }
            let (mut layer, mut plan, mut cleanings) = (fresh(), Plan::new(false, false), 0);
            for w in &writes {
                plan.clear();
                layer.submit(SimTime::ZERO, w, &mut plan);
                cleanings += plan.cleanings().len();
            }
            assert!(cleanings > 50, "{text}: {cleanings} cleanings");
            let mut records = Records::default();
            layer.checkpoint(&mut records);
            (records, smrlab_stl::counted(&*layer), cleanings)
        });
        assert!(left[0] == left[1], "{text}");
        with_parts += 1;
    }
    assert!(with_parts >= 10 || !all_layers(), "{with_parts} layers with parts");
}

/// Drives of which so few blocks count that many layers have no room: these say so, the others work.
#[test]
fn on_drives_of_a_few_blocks_layers_work_or_say_why_not() {
    let (mut work, mut refused) = (0, 0);
    for counted in [1, 7, 10, 33, 64, 128, 200, 500] {
        let mut spec = drives::preset("tiny").spec().clone();
        spec.counted = Some(Blocks(counted));
        let Ok(drive) = DriveModel::new(spec, Vec::new()).map(Arc::new) else { continue };
        for text in layers().into_iter().filter(|e| e.capabilities.keeps_data).flat_map(|e| e.texts()) {
            match Harness::new(&text, &drive, Metadata::Nv) {
                Ok(h) if h.layer.host_blocks().0 == 0 => refused += 1,
                Ok(mut h) => {
                    work += 1;
                    h.exercise(Workload { requests: 30, seed: counted, longest: 9 });
                }
                Err(e) => {
                    refused += 1;
                    assert!(e.to_string().len() > 20, "{text} on {counted} blocks: {e}");
                }
            }
        }
    }
    assert!(work > 100 && refused > 100 || !all_layers(), "{work} work, {refused} do not fit");
}
