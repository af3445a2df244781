//! Extractions of simulated drives against the truth.

use super::*;
use crate::{Noisy, Quiet, SimTarget};
use smrlab_disk::geometry::{Defect, Layout, REVOLUTION, ZoneSpec};
use smrlab_disk::model::load;
use smrlab_disk::{DriveModel, Model, SeekCurve};
use smrlab_drive::{Drive, DriveSetup};
use smrlab_units::{Blocks, Dir, SimTime};

fn model(text: &str) -> DriveModel {
    load(text, |_| Err("no files here".to_owned())).unwrap()
}

fn target(model: &DriveModel) -> SimTarget<Drive> {
    let built =
        smrlab_stl::build("cmr", &smrlab_stl::BuildContext::new(std::sync::Arc::new(model.clone()))).unwrap();
    let drive = Drive::new(built.layer, model.mechanics(None).unwrap(), DriveSetup::default());
    SimTarget::new(drive.behind(model.spec().controller))
}

fn extraction(model: &DriveModel, noise_us: u64, options: Options) -> Extraction {
    let mut t = Noisy::new(target(model), SimTime::from_us(noise_us), if noise_us > 0 { 500 } else { 0 }, 7);
    let mut out = Extraction::new(t.blocks().0);
    extract(&mut t, &mut Quiet, options, &mut out, &mut |_| ())
        .unwrap_or_else(|e| panic!("{}: {e}", model.name()));
    out
}

fn check_zones(model: &DriveModel, e: &Extraction) {
    let mut truth: Vec<(u64, u64, u64)> = Vec::new();
    for z in model.geometry().zones() {
        let usable =
            u64::from(z.sectors) - u64::from(model.spec().geometry.zones[z.zone as usize].spare_sectors);
        match truth.last_mut() {
            Some(last) if last.2 == usable => last.1 += z.tracks,
            _ => truth.push((z.first.0, z.tracks, usable)),
        }
    }
    // What lies behind the blocks that the drive offers to its host is not seen from outside.
    truth.retain(|z| z.0 < e.blocks);
    if let Some(last) = truth.last_mut() {
        last.1 = last.1.min((e.blocks - last.0).div_ceil(last.2));
    }
    let found: Vec<_> = e.zones.iter().map(|z| (z.first_lba, z.tracks, z.usable)).collect();
    assert_eq!(found, truth, "{}", model.name());
}

fn check_rpm(model: &DriveModel, e: &Extraction) {
    let (found, truth) = (e.rpm.unwrap().value, f64::from(model.spec().mechanics.rpm));
    assert!((found / truth - 1.0).abs() < 10e-6, "{}: {found} rpm, {truth}", model.name());
}

/// The model's own seek over `d` cylinders of the first surface, overhead excluded, in nanoseconds.
fn seek_truth(model: &DriveModel, dir: Dir, d: u32) -> f64 {
    let g = model.geometry();
    let mut m = model.mechanics(None).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Read, g.at(0, 0, 0).unwrap(), Blocks(1));
    m.service(end, dir, g.at(d, 0, 0).unwrap(), Blocks(1));
    m.phases().seek.0 as f64
}

fn check_seeks(model: &DriveModel, e: &Extraction, dir: Dir) {
    let seeks = e.seek.as_ref().unwrap();
    let curve = if dir == Dir::Read { &seeks.read } else { &seeks.write };
    assert!(curve.len() >= 5);
    for &(d, time) in curve {
        let truth = seek_truth(model, dir, d as u32);
        let off = (time - truth).abs();
        let allowed = (0.02 * truth).max(3.0 * seeks.spread_ns);
        assert!(off <= allowed, "{}: {d} cylinders take {time} ns, in truth {truth}", model.name());
    }
}

/// Within a sector or three standard errors.
fn check_skew(model: &DriveModel, e: &Extraction) {
    let (skew, spec) = (e.skew.unwrap(), &model.spec().geometry);
    let sector = 1.0 / spec.zones.iter().map(|z| z.sectors).min().unwrap() as f64;
    let check = |found: Measured, truth: u64, what: &str| {
        let off = crate::stats::wrap(found.value - truth as f64 / REVOLUTION as f64).abs();
        assert!(off <= sector.max(3.0 * found.spread), "{}: {what} skew {found:?}", model.name());
    };
    check(skew.cylinder, spec.cylinder_skew, "cylinder");
    if spec.surfaces > 1 && !matches!(spec.layout, Layout::Surface) {
        check(skew.track.unwrap(), spec.track_skew, "track");
    }
    let surfaces = u64::from(spec.surfaces);
    let truth = match spec.layout {
        _ if surfaces == 1 => Order::Surface { surfaces },
        Layout::Surface => Order::Surface { surfaces },
        Layout::Cylinder { .. } | Layout::ZoneAlternate => Order::Cylinder { surfaces },
        Layout::Hybrid { width } => Order::Hybrid { surfaces, group_cylinders: u64::from(width) },
    };
    assert_eq!(skew.order, truth, "{}", model.name());
}

fn check_all(model: &DriveModel, e: &Extraction) {
    check_rpm(model, e);
    check_zones(model, e);
    check_skew(model, e);
    check_seeks(model, e, Dir::Read);
}

/// A drive like `modern-7200` with other surfaces and zones.
fn made(name: &str, surfaces: u32, layout: Layout, zones: &[[u32; 4]], defects: usize) -> DriveModel {
    let mut spec = model("modern-7200").spec().clone();
    spec.name = name.to_owned();
    spec.geometry.surfaces = surfaces;
    spec.geometry.layout = layout;
    spec.geometry.zones = zones
        .iter()
        .map(|&[cylinders, sectors, spare_sectors, spare_cylinders]| {
            let mut zone = ZoneSpec::plain(cylinders, sectors);
            (zone.spare_sectors, zone.spare_cylinders) = (spare_sectors, spare_cylinders);
            zone
        })
        .collect();
    let cylinders: u32 = zones.iter().map(|z| z[0]).sum();
    let mut x = 12_345u64;
    spec.geometry.defects = (0..defects)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let n = (x >> 33) as u32;
            Defect { cylinder: n % cylinders, surface: n % surfaces, sector: (x >> 7) as u32 % 500 }
        })
        .collect();
    // Full distances of 0 stand for the whole drive.
    for curve in [&mut spec.mechanics.read_seek, &mut spec.mechanics.write_seek] {
        if let SeekCurve::ThreePoint { full, .. } = curve {
            *full = 0;
        }
    }
    DriveModel::new(spec, Vec::new()).unwrap()
}

const ZONES: [[u32; 4]; 4] = [[3000, 1200, 0, 0], [1777, 1100, 0, 0], [5011, 1000, 0, 0], [901, 900, 0, 0]];

fn layouts() -> Vec<DriveModel> {
    vec![
        made("cylinder", 6, Layout::Cylinder { alternate: false }, &ZONES, 0),
        made("cylinder-to-and-fro", 4, Layout::Cylinder { alternate: true }, &ZONES, 0),
        made("cylinder-of-two", 2, Layout::Cylinder { alternate: false }, &ZONES, 0),
        made("surface", 3, Layout::Surface, &ZONES, 0),
        made("hybrid", 8, Layout::Hybrid { width: 50 }, &ZONES, 0),
        made("hybrid-wide", 4, Layout::Hybrid { width: 300 }, &ZONES, 0),
    ]
}

#[test]
fn the_shipped_drives_come_out_as_they_are() {
    // The tracks of these follow each other within a microsecond of their turn: their source has no other switch.
    let unseen = ["seagate-st8000as0002", "seagate-st8000dm004"];
    let rotating = smrlab_disk::DRIVES.iter().filter(|d| d.drive().spec().model == Model::Full);
    for entry in rotating.filter(|d| !unseen.contains(&d.name)) {
        // Caches of hundreds of MiB that keep what passes the head are not seen through: docs/probe.md.
        let own_cache = entry.drive().spec().controller.is_some();
        let m = model(&if own_cache { format!("{},cache=off", entry.name) } else { entry.name.to_owned() });
        let e = extraction(&m, 0, Options::default());
        eprintln!("{}: {:?}", entry.name, e.quality);
        check_all(&m, &e);
        assert!(e.quality.seconds < 1200.0, "{} s of the drive's time", e.quality.seconds);
    }
}

#[test]
fn a_drives_own_cache_does_not_hide_it() {
    for text in ["modern-7200,cache=on", "modern-7200,cache=on,write_cache=off,read_ahead=off"] {
        let m = model(text);
        assert!(m.spec().controller.is_some(), "{text} has a cache");
        for noise in [0, 20] {
            let e = extraction(&m, noise, Options::default());
            eprintln!("{text} at {noise} us: {:?} {:?}", e.quality, e.cache);
            check_all(&m, &e);
            assert!(e.cache.unwrap().present);
            // Each repetition of a noisy measurement pushes the block out of the cache first.
            let most = if noise > 0 { 1800.0 } else { 1200.0 };
            assert!(e.quality.seconds < most, "{} s of the drive's time", e.quality.seconds);
        }
    }
}

#[test]
fn every_layout_comes_out() {
    for m in layouts() {
        check_all(&m, &extraction(&m, 0, Options::default()));
    }
}

#[test]
fn noise_of_the_host_is_averaged_out() {
    for noise in [20, 100] {
        for m in [model("he2014-example"), model("modern-7200")].iter().chain(&layouts()) {
            let e = extraction(m, noise, Options::default());
            eprintln!("{} at {noise} us: {:?}", m.name(), e.quality);
            check_all(m, &e);
            assert!(e.quality.seconds < 1200.0, "{} s of the drive's time", e.quality.seconds);
        }
    }
}

#[test]
fn slipped_and_spare_sectors_do_not_hide_the_zones() {
    let zones = [[3000, 1200, 8, 10], [1777, 1100, 0, 5], [5011, 1000, 20, 0], [901, 900, 0, 7]];
    for layout in [Layout::Cylinder { alternate: false }, Layout::Hybrid { width: 200 }] {
        let m = made("spares", 4, layout, &zones, 0);
        check_all(&m, &extraction(&m, 0, Options::default()));
        let m = made("defects", 4, layout, &ZONES, 60);
        let e = extraction(&m, 0, Options::default());
        check_all(&m, &e);
        let slips: u64 = e.zones.iter().map(|z| z.slips).sum();
        let held: u64 = e.zones.iter().map(|z| z.tracks * z.usable).sum();
        assert_eq!(slips, held - m.geometry().blocks().0, "every slipped sector is counted");
    }
}

#[test]
fn writes_are_measured_where_they_are_allowed() {
    let m = made("writes", 4, Layout::Hybrid { width: 300 }, &ZONES, 0);
    let e = extraction(&m, 0, Options { destroy: true, ..Options::default() });
    check_seeks(&m, &e, Dir::Write);
    let seeks = e.seek.unwrap();
    let truth = &m.spec().mechanics;
    for (found, truth) in [
        (seeks.read_overhead_ns, truth.read_overhead),
        (seeks.write_overhead_ns.unwrap(), truth.write_overhead),
        (seeks.head_switch_ns.unwrap(), truth.head_switch),
    ] {
        assert!((found - truth.0 as f64).abs() < 3.0 * seeks.spread_ns, "{found} ns, in truth {truth}");
    }
}

#[test]
fn zones_alone_take_less_than_a_minute() {
    let m = model("modern-7200");
    for noise in [0, 100] {
        let e = extraction(&m, noise, Options { zones_only: true, ..Options::default() });
        check_zones(&m, &e);
        assert!(e.quality.seconds < 60.0, "{} s", e.quality.seconds);
        assert!(e.skew.is_none() && e.seek.is_none());
    }
}

/// Stops after so many checks.
struct StopAfter(std::cell::Cell<u32>);

impl Watch for StopAfter {
    fn stopped(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn what_was_measured_is_kept_and_not_measured_again() {
    let m = made("stops", 4, Layout::Hybrid { width: 300 }, &ZONES, 0);
    let whole = extraction(&m, 0, Options::default());
    let mut t = target(&m);
    let mut out = Extraction::new(m.geometry().blocks().0);
    let mut sittings = 0;
    while !out.done(Options::default()) {
        sittings += 1;
        assert!(sittings < 50);
        let zones = out.zones.len();
        match extract(&mut t, &mut StopAfter(2500.into()), Options::default(), &mut out, &mut |_| ()) {
            Ok(()) => {}
            Err(e) => assert_eq!(e, ProbeError::Interrupted),
        }
        assert!(out.zones.len() >= zones);
    }
    assert!(sittings > 1, "it was stopped at least once");
    assert_eq!(out.zones, whole.zones);
    check_all(&m, &out);
}

#[test]
fn what_does_not_rotate_is_refused() {
    let m = model("cassuto2010-307gb");
    let mut t = target(&m);
    let mut out = Extraction::new(t.blocks().0);
    let e = extract(&mut t, &mut Quiet, Options::default(), &mut out, &mut |_| ()).unwrap_err();
    assert!(matches!(e, ProbeError::NotADisk(_)), "{e}");
}
