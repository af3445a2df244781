//! Drives like `modern-7200` with other surfaces and zones.

use smrlab_disk::geometry::{Defect, Layout, ZoneSpec};
use smrlab_disk::{DriveModel, SeekCurve};
use smrlab_units::rng::Rng;

/// One with these surfaces, zones (cylinders, sectors, spare sectors a track, spare cylinders) and slipped sectors.
pub(crate) fn made(
    name: &str,
    surfaces: u32,
    layout: Layout,
    zones: &[[u32; 4]],
    defects: usize,
) -> DriveModel {
    let mut spec = super::truth::model("modern-7200").spec().clone();
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
    let mut rng = Rng::new(12_345);
    spec.geometry.defects = (0..defects)
        .map(|_| {
            let [cylinder, surface, sector] =
                [cylinders, surfaces, 500].map(|n| rng.below(u64::from(n)) as u32);
            Defect { cylinder, surface, sector }
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

/// Four plain zones.
pub(crate) const ZONES: [[u32; 4]; 4] =
    [[3000, 1200, 0, 0], [1777, 1100, 0, 0], [5011, 1000, 0, 0], [901, 900, 0, 0]];

/// One of each order of surfaces.
pub(crate) fn layouts() -> Vec<DriveModel> {
    vec![
        made("cylinder", 6, Layout::Cylinder { alternate: false }, &ZONES, 0),
        made("cylinder-to-and-fro", 4, Layout::Cylinder { alternate: true }, &ZONES, 0),
        made("cylinder-of-two", 2, Layout::Cylinder { alternate: false }, &ZONES, 0),
        made("surface", 3, Layout::Surface, &ZONES, 0),
        made("hybrid", 8, Layout::Hybrid { width: 50 }, &ZONES, 0),
        made("hybrid-wide", 4, Layout::Hybrid { width: 300 }, &ZONES, 0),
    ]
}
