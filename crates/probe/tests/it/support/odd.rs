//! Drives of odd shapes, drawn by a seed: few tracks and many, short ones and long ones, skews and ways of every kind.

use crate::geometry::truth::model;
use smrlab_disk::geometry::{Defect, Layout, REVOLUTION, ZoneSpec};
use smrlab_disk::model::ReadAhead;
use smrlab_disk::{DriveModel, DriveSpec, SeekCurve};
use smrlab_units::SimTime;
use smrlab_units::rng::Rng;

fn any<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// The drive of a seed, where it is one.
pub(crate) fn odd(seed: u64) -> Option<DriveModel> {
    let mut rng = Rng::new(seed);
    let mut spec = model("modern-7200").spec().clone();
    spec.name = format!("odd-{seed}");
    geometry(&mut spec, &mut rng);
    mechanics(&mut spec, &mut rng);
    spec.controller = None;
    if rng.one_in(3) {
        buffer(&mut spec, &mut rng);
    }
    DriveModel::new(spec, Vec::new()).ok()
}

/// One with a buffer that is small beside it.
pub(crate) fn buffered(seed: u64) -> Option<DriveModel> {
    let mut rng = Rng::new(seed);
    let mut spec = model("modern-7200").spec().clone();
    spec.name = format!("buffered-{seed}");
    geometry(&mut spec, &mut rng);
    let g = &mut spec.geometry;
    g.zones.truncate(3);
    for zone in &mut g.zones {
        zone.cylinders = zone.cylinders.max(100) * any(&mut rng, &[1, 3, 10]);
        zone.sectors += any(&mut rng, &[100, 600, 2000]);
    }
    mechanics(&mut spec, &mut rng);
    buffer(&mut spec, &mut rng);
    DriveModel::new(spec, Vec::new()).ok()
}

fn buffer(spec: &mut DriveSpec, rng: &mut Rng) {
    let mut controller = model("modern-7200,cache=on").spec().controller;
    if let Some(controller) = &mut controller {
        let b = &mut controller.buffer;
        (b.segments, b.segment_blocks, b.write_segments) = (any(rng, &[2, 5, 16, 40]), 256, 1);
        b.read_ahead =
            any(rng, &[ReadAhead::Off, ReadAhead::Track, ReadAhead::Segment, ReadAhead::TwoTracks]);
        b.read_ahead_blocks = if b.read_ahead == ReadAhead::Off { 0 } else { any(rng, &[10, 100, 200]) };
        b.passing = rng.one_in(4);
    }
    spec.controller = controller;
}

fn geometry(spec: &mut DriveSpec, rng: &mut Rng) {
    let g = &mut spec.geometry;
    g.surfaces = any(rng, &[1, 1, 2, 3, 4, 6]);
    let width = any(rng, &[3, 10, 50, 200]);
    g.layout = any(
        rng,
        &[
            Layout::Cylinder { alternate: false },
            Layout::Cylinder { alternate: true },
            Layout::Surface,
            Layout::Hybrid { width },
            Layout::Hybrid { width },
        ],
    );
    let mut sectors = any(rng, &[12, 30, 64, 151, 500, 1700]);
    g.zones = (0..any(rng, &[1, 2, 3, 3, 5]))
        .map(|_| {
            let mut zone = ZoneSpec::plain(any(rng, &[4, 9, 40, 130, 400, 1500]), sectors);
            zone.spare_sectors = any(rng, &[0, 0, 0, 1, 2, 5]);
            zone.spare_cylinders = any(rng, &[0, 0, 0, 2]);
            sectors -= 1 + rng.below(u64::from(sectors / 8)) as u32;
            zone
        })
        .collect();
    let cylinders: u32 = g.zones.iter().map(|z| z.cylinders).sum();
    let bounds = [cylinders, g.surfaces, sectors].map(u64::from);
    g.defects = (0..any(rng, &[0, 0, 0, 3, 40]))
        .map(|_| {
            let [cylinder, surface, sector] = bounds.map(|n| rng.below(n) as u32);
            Defect { cylinder, surface, sector }
        })
        .collect();
    let skews = [
        (0, 0),
        (0, 0),
        (0, 0),
        (1, 1),
        (160, 130),
        (160, 130),
        (50, 100),
        (250, 250),
        (0, 80),
        (500, 30),
        (24, 45),
        (970, 900),
    ];
    let (track, cylinder) = any(rng, &skews);
    (g.track_skew, g.cylinder_skew) = (track * (REVOLUTION / 1000), cylinder * (REVOLUTION / 1000));
}

fn mechanics(spec: &mut DriveSpec, rng: &mut Rng) {
    let m = &mut spec.mechanics;
    m.rpm = any(rng, &[4200, 5400, 7200, 7200, 10_000, 15_000]);
    let ms = |list: [(u64, u64); 3]| list.map(|(d, us)| (d, SimTime::from_us(us))).to_vec();
    let three = |single, average, full| SeekCurve::ThreePoint {
        single: SimTime::from_us(single),
        average: SimTime::from_us(average),
        full_stroke: SimTime::from_us(full),
        full: 0,
    };
    let curve = |kind: u64, more: u64| match kind {
        0 => SeekCurve::Constant(SimTime::ZERO),
        1 => SeekCurve::Constant(SimTime::from_us(2000 + more)),
        2 => three(800 + more, 4000 + more, 9000 + more),
        _ => SeekCurve::Directed {
            rising: ms([(1, 1000), (10, 2000 + more), (900, 6000)]),
            falling: ms([(1, 1300), (10, 2600), (900, 7100 + more)]),
        },
    };
    let kind = rng.below(4);
    (m.read_seek, m.write_seek) = (curve(kind, 0), curve(kind, 300));
    let us = |rng: &mut Rng, of: &[u64]| SimTime::from_us(any(rng, of));
    m.head_switch = us(rng, &[0, 500, 1000]);
    m.write_settle = us(rng, &[0, 700]);
    (m.read_overhead, m.write_overhead) = (us(rng, &[0, 50, 300]), us(rng, &[0, 50, 400]));
}

/// A drive of many zones on which no track boundary shows by itself: hardly a skew, and no time for the way.
pub(crate) fn seamless(seed: u64) -> Option<DriveModel> {
    let mut rng = Rng::new(seed);
    let mut spec = model("modern-7200").spec().clone();
    (spec.name, spec.controller) = (format!("seamless-{seed}"), None);
    let g = &mut spec.geometry;
    (g.surfaces, g.layout) = (1, Layout::Surface);
    let mut sectors = any(&mut rng, &[900, 2000, 3800]);
    g.zones = (0..12 + rng.below(6))
        .map(|_| {
            let zone = ZoneSpec::plain(any(&mut rng, &[400, 900, 2500, 6000]), sectors);
            sectors -= sectors / 30 + rng.below(u64::from(sectors / 20)) as u32;
            zone
        })
        .collect();
    let cylinders: u64 = g.zones.iter().map(|z| u64::from(z.cylinders)).sum();
    g.defects = (0..any(&mut rng, &[0, 0, 6]))
        .map(|_| Defect { cylinder: rng.below(cylinders) as u32, surface: 0, sector: rng.below(300) as u32 })
        .collect();
    g.cylinder_skew = any(&mut rng, &[4, 10, 17, 30, 9990]) * (REVOLUTION / 10_000);
    let m = &mut spec.mechanics;
    (m.read_seek, m.write_seek) = (SeekCurve::Constant(SimTime::ZERO), SeekCurve::Constant(SimTime::ZERO));
    (m.head_switch, m.write_settle) = (SimTime::ZERO, SimTime::ZERO);
    DriveModel::new(spec, Vec::new()).ok()
}
