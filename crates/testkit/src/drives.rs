//! Small drives on which layers are proven: one surface and several, with zones, skew, serpentines, listed runs and slipped
//! sectors, down to the smallest legal ones.

use crate::Rng;
use smrlab_disk::geometry::{Defect, GroupSpec, Layout, REVOLUTION, RunSpec, Toward};
use smrlab_disk::{
    BlockProfile, DriveModel, DriveSpec, GeometrySpec, Interference, PhysicalProfile, ZoneSpec, model,
};
use std::sync::Arc;

/// The preset of this name.
///
/// # Panics
/// When there is none.
pub fn preset(name: &str) -> Arc<DriveModel> {
    Arc::new(model::load(name, |_| Err("no files here".to_owned())).unwrap_or_else(|e| panic!("{e}")))
}

/// The `tiny` preset with another geometry, head and band length.
///
/// # Panics
/// When they do not fit each other.
pub fn drive(geometry: GeometrySpec, interference: Interference, band_tracks: u64) -> Arc<DriveModel> {
    let mut spec: DriveSpec = preset("tiny").spec().clone();
    spec.geometry = geometry;
    spec.interference = interference;
    spec.bands.tracks = Some(band_tracks);
    Arc::new(DriveModel::new(spec, Vec::new()).unwrap_or_else(|e| panic!("{e}")))
}

/// One surface without skew: the example of He & Du in small, for exact counts.
pub fn plain(tracks: u32, sectors: u32, width: u32, band_tracks: u64) -> Arc<DriveModel> {
    let spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(tracks, sectors)]);
    drive(spec, Interference::tracks(width), band_tracks)
}

/// Groups of cylinders, each inwards on one surface and outwards on the other, whose tracks are shorter by a sector.
fn listed(mut spec: GeometrySpec) -> GeometrySpec {
    for (i, (zone, cylinders)) in spec.zones.iter().zip([13, 24, 9]).enumerate() {
        let run = |surface, from, to| RunSpec {
            zone: i as u32,
            from,
            to,
            surface,
            sectors: zone.sectors - surface,
            spare_sectors: 0,
            start: u64::from(surface) * REVOLUTION / 9,
            step: REVOLUTION / 5,
        };
        spec.runs.extend([run(0, 0, cylinders - 1), run(1, cylinders - 1, 0)]);
        spec.groups.push(GroupSpec { zone: i as u32, cylinders, start: 0, step: REVOLUTION / 11 });
    }
    spec
}

/// One of [`all`], or as often one that nobody wrote down: zones, surfaces, order of blocks, skews, spares, defects and head are drawn.
pub fn drawn(rng: &mut Rng) -> (&'static str, Arc<DriveModel>) {
    if rng.one_in(2) {
        let mut all = all();
        return all.swap_remove(rng.below(all.len() as u64) as usize);
    }
    loop {
        let mut spec: DriveSpec = preset("tiny").spec().clone();
        spec.geometry = drawn_geometry(rng);
        let inwards = rng.one_in(2);
        let mut reach = |most| if rng.one_in(2) { rng.below(most) } else { 0 };
        spec.interference = match reach(6) {
            1 => Interference::Blocks(BlockProfile { reach: 1 + reach(40), from: 0 }),
            _ => Interference::Physical(PhysicalProfile {
                s_id: if inwards { 1 + reach(4) as u32 } else { 1 },
                s_od: if inwards { 1 } else { 1 + reach(4) as u32 },
                phi_cw: 0,
                phi_ccw: 0,
                wave: 0,
            }),
        };
        spec.bands.tracks = Some(1 + rng.below(8));
        spec.bands.random_access = rng.below(7);
        if let Ok(drive) = DriveModel::new(spec, Vec::new()) {
            return ("a drawn drive", Arc::new(drive));
        }
    }
}

fn drawn_geometry(rng: &mut Rng) -> GeometrySpec {
    let surfaces = 1 + rng.below(3) as u32;
    let mut few = |most: u64| if rng.one_in(3) { rng.below(most) as u32 } else { 0 };
    let zones: Vec<_> = (0..1 + few(4))
        .map(|_| ZoneSpec {
            spare_sectors: few(3),
            spare_cylinders: few(3),
            ..ZoneSpec::plain(5 + few(30) + few(10), 1 + few(14) + few(6))
        })
        .collect();
    let defects = (0..few(6))
        .map(|_| Defect { cylinder: few(20), surface: few(u64::from(surfaces)), sector: few(6) })
        .collect();
    let layouts = [
        Layout::Surface,
        Layout::Cylinder { alternate: false },
        Layout::Cylinder { alternate: true },
        Layout::ZoneAlternate,
        Layout::Hybrid { width: 1 + few(12) },
    ];
    GeometrySpec {
        surfaces,
        zones,
        layout: layouts[rng.below(5) as usize],
        toward: [Toward::Inner, Toward::Outer][rng.below(2) as usize],
        track_skew: rng.below(REVOLUTION),
        cylinder_skew: rng.below(REVOLUTION),
        defects,
        ..GeometrySpec::default()
    }
}

/// All of them, with names.
pub fn all() -> Vec<(&'static str, Arc<DriveModel>)> {
    let zones = vec![ZoneSpec::plain(26, 12), ZoneSpec::plain(24, 9), ZoneSpec::plain(27, 10)];
    let spec = |layout, surfaces, toward| GeometrySpec {
        surfaces,
        zones: zones.clone(),
        layout,
        toward,
        track_skew: REVOLUTION / 7,
        cylinder_skew: REVOLUTION / 5,
        ..GeometrySpec::default()
    };
    let defects = [(3, 0, 4), (3, 0, 5), (9, 0, 0), (9, 0, 11), (30, 0, 8), (50, 0, 3)]
        .map(|(cylinder, surface, sector)| Defect { cylinder, surface, sector })
        .to_vec();
    let outwards =
        Interference::Physical(PhysicalProfile { s_id: 1, s_od: 3, phi_cw: 0, phi_ccw: 0, wave: 0 });
    let two = Interference::tracks(2);
    let mut spared = spec(Layout::Surface, 1, Toward::Inner);
    spared.zones[1] = ZoneSpec { spare_sectors: 2, spare_cylinders: 1, ..ZoneSpec::plain(24, 9) };
    vec![
        ("tiny", preset("tiny")),
        ("smallest", plain(15, 1, 2, 4)),
        ("one sector more", plain(16, 2, 2, 4)),
        ("wide head", plain(60, 8, 5, 4)),
        ("zones and skew", drive(spec(Layout::Surface, 1, Toward::Inner), two, 4)),
        ("spares", drive(spared, two, 4)),
        (
            "slipped sectors",
            drive(GeometrySpec { defects, ..spec(Layout::Surface, 1, Toward::Inner) }, two, 4),
        ),
        ("outwards, three tracks", drive(spec(Layout::Surface, 1, Toward::Outer), outwards, 4)),
        ("surface serpentine", drive(spec(Layout::Surface, 3, Toward::Inner), two, 4)),
        ("cylinders", drive(spec(Layout::Cylinder { alternate: false }, 2, Toward::Inner), two, 4)),
        ("cylinders there and back by zone", drive(spec(Layout::ZoneAlternate, 3, Toward::Inner), two, 4)),
        ("listed", drive(listed(spec(Layout::Listed, 2, Toward::Inner)), two, 4)),
        (
            "cylinders there and back",
            drive(spec(Layout::Cylinder { alternate: true }, 3, Toward::Inner), two, 4),
        ),
        ("hybrid serpentine", drive(spec(Layout::Hybrid { width: 11 }, 2, Toward::Inner), two, 4)),
    ]
}
