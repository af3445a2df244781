//! A drive made from another one: what was asked for is changed, and nothing else.

use super::*;
use crate::geometry::Toward;
use crate::geometry::tests::naive::any_geometry;
use smrlab_units::rng::Rng;

fn tiny(change: impl FnOnce(&mut DriveSpec)) -> DriveModel {
    let mut spec = preset("tiny").spec().clone();
    change(&mut spec);
    DriveModel::new(spec, Vec::new()).unwrap()
}

/// The head of a drive that is shingled outwards grows outwards; bands in pairs are two and the guard.
#[test]
fn a_head_grows_to_its_own_side() {
    let physical = |[s_id, s_od]: [u32; 2], wave| {
        Interference::Physical(PhysicalProfile { s_id, s_od, phi_cw: 7, phi_ccw: 9, wave })
    };
    for (before, k, after) in
        [([2, 1], 5, [5, 1]), ([1, 2], 5, [1, 5]), ([1, 1], 3, [3, 1]), ([1, 4], 1, [1, 1])]
    {
        let drive = tiny(|s| {
            s.interference = physical(before, 0);
            s.geometry.toward = s.interference.toward();
        });
        let wanted = DriveSpec { interference: physical(after, 0), ..drive.spec().clone() };
        assert_eq!(drive.with_tracks(k).unwrap().spec(), &wanted, "{before:?}");
        let wave = 2 * 6 + u64::from(before[0].max(before[1])) - 1;
        let wanted = DriveSpec { interference: physical(before, wave), ..drive.spec().clone() };
        assert_eq!(drive.with_waves(6).unwrap().spec(), &wanted, "{before:?}");
    }
}

/// What the cache of a drive knows of its reads takes the place of the overhead; what it does not know leaves that.
#[test]
fn late_reads_take_the_place_of_an_overhead() {
    for (read_late, one_place, wanted) in [
        (Some(Blocks(9)), Some(4), (Blocks(9), 4, SimTime::ZERO)),
        (None, Some(4), (Blocks(0), 4, SimTime(50))),
        (Some(Blocks(9)), None, (Blocks(9), 0, SimTime::ZERO)),
    ] {
        let drive = tiny(|s| {
            s.mechanics.read_overhead = SimTime(50);
            s.cache = Some(CacheSpec { read_late, one_place, ..CacheSpec::default() });
        });
        let mut spec = drive.spec().clone();
        (spec.mechanics.read_late, spec.mechanics.one_place, spec.mechanics.read_overhead) = wanted;
        assert_eq!(drive.with_cache_measured().unwrap().spec(), &spec);
    }
}

/// Half of a drive with a block profile: of the tracks set aside half, unless their number was given; of its guards and seeks half.
#[test]
fn what_is_relative_to_the_size_shrinks_with_it() {
    let drive = tiny(|s| {
        s.interference = Interference::blocks(40);
        s.counted = Some(Blocks(2000));
        s.bands.random_access = 8;
        s.mechanics.distance = Distance::Blocks;
        s.mechanics.read_seek = SeekCurve::Sqrt { base: SimTime(5), span: SimTime(9), full: 0 };
    });
    for (drive, aside) in [(drive.with_random_access(8).unwrap(), 8), (drive, 4)] {
        let half = drive.shorten(Blocks(1000)).unwrap();
        let spec = half.spec();
        assert_eq!((spec.counted, spec.bands.random_access), (Some(Blocks(1000)), aside));
        assert_eq!(
            spec.mechanics.read_seek,
            SeekCurve::Sqrt { base: SimTime(5), span: SimTime(9), full: 1000 }
        );
    }
}

/// What is set aside is counted in rows, of tracks or of whole cylinders: 3 of 32 blocks on each of two surfaces.
#[test]
fn what_is_set_aside_is_counted_in_rows() {
    for (layout, blocks) in [(Layout::Surface, 96), (Layout::Cylinder { alternate: false }, 192)] {
        let drive = tiny(|s| {
            s.interference = Interference::blocks(40);
            (s.geometry.surfaces, s.geometry.layout) = (2, layout);
        });
        assert_eq!(drive.with_random_access(3).unwrap().unshingled(), Blocks(blocks), "{layout:?}");
    }
}

/// A drive that is cut has the blocks that are asked for, and they lie where they lay, whatever is slipped and left out; cylinders are
/// counted from the outermost that is left.
#[test]
fn what_is_left_of_a_drive_lies_where_it_lay() {
    let (mut rng, mut cuts) = (Rng::new(5), 0);
    while cuts < 300 {
        let geometry = any_geometry(&mut rng);
        let kept = !matches!(geometry.layout, Layout::Surface | Layout::Hybrid { .. });
        let spec = DriveSpec { geometry, ..preset("tiny").spec().clone() };
        let Ok(whole) = DriveModel::new(spec, Vec::new()) else { continue };
        if !kept {
            continue;
        }
        cuts += 1;
        let before = whole.geometry();
        let left = 1 + rng.below(before.blocks().0);
        let cut =
            whole.shorten(Blocks(left)).unwrap_or_else(|e| panic!("{left} of {:?}: {e}", before.spec()));
        let after = cut.geometry();
        assert!(after.blocks().0 >= left, "{left} of {:?}", before.spec());
        let outwards = before.spec().toward == Toward::Outer;
        let gone = if outwards { before.cylinders() - after.cylinders() } else { 0 };
        for pba in (0..left).map(Pba) {
            let mut place = after.position(pba);
            place.cylinder += gone;
            assert_eq!(before.position(pba), place, "{pba}, {left} of {:?}", before.spec());
        }
    }
}

#[test]
fn a_shortened_drive_keeps_its_first_cylinders() {
    let d = preset("tiny").shorten(Blocks(1300)).unwrap();
    let zones: Vec<_> = d.geometry().zones().map(|z| (z.tracks, z.sectors)).collect();
    assert_eq!(zones, [(40, 32), (1, 24)]);
    let spared = DRIVES[3].toml.replace("[40, 32]", "[40, 32, 2, 10]");
    let d = DriveModel::from_toml(&spared).unwrap();
    assert_eq!(d.geometry().zones().next().unwrap().tracks, 30, "ten cylinders are spare");
    let zones: Vec<_> = d.shorten(Blocks(25 * 30)).unwrap().geometry().zones().map(|z| z.tracks).collect();
    assert_eq!(zones, [25], "30 of 32 sectors hold blocks");
    let d = preset("cassuto2010-307gb,capacity=1%");
    assert_eq!((d.counted_blocks(), d.geometry().blocks()), (Blocks(6_000_000), Blocks(7_200_000)));
    let mut m = d.mechanics(None).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Read, Pba(6_000_000), Blocks(3));
    assert_eq!(end.0, 4_800_000 + 12_800, "C2 is relative to the drive's size");
}

#[test]
fn an_outward_drive_is_cut_at_its_outer_end() {
    let text = DRIVES[3]
        .toml
        .replace("s_od = { value = 1", "s_od = { value = 2")
        .replace("s_id = { value = 2", "s_id = { value = 1");
    let d = DriveModel::from_toml(&text).unwrap();
    assert_eq!(d.geometry().position(Pba(0)).cylinder, 119, "PBAs rise outwards");
    let short = d.shorten(Blocks(640 + 24)).unwrap();
    let zones: Vec<_> = short.geometry().zones().map(|z| (z.tracks, z.sectors)).collect();
    assert_eq!((zones, short.head_width()), (vec![(40, 16), (1, 24)], 2));
}

#[test]
fn cmr_is_the_same_drive_with_k_1() {
    let d = preset("he2014-example");
    let cmr = d.with_tracks(1).unwrap();
    assert_eq!((cmr.head_width(), cmr.geometry().blocks()), (1, d.geometry().blocks()));
    assert_eq!(preset("cassuto2010-307gb,k=1").head_width(), 1);
}

#[test]
fn a_drive_is_made_after_another() {
    let base = preset("modern-7200");
    let wanted = Like {
        name: "mine".into(),
        capacity: Some(Blocks(2_000_000_000_000 / 512)),
        rpm: Some(5400),
        zones: Some(25),
        rate: Some((210e6, 100e6)),
        ..Like::default()
    };
    let text = like(&base, &wanted).unwrap();
    let d = DriveModel::from_toml(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let size = d.counted_blocks().bytes() as f64;
    assert!((2.0e12..2.001e12).contains(&size), "{size}");
    let zones = &d.spec().geometry.zones;
    assert_eq!((zones.len(), d.spec().mechanics.rpm), (25, 5400));
    assert_eq!(d.spec().reference, format!("made after {} by smrlab drive new", base.name()));
    // One block more or less on a track of 90 turns a second.
    let rate = |i: usize| f64::from(zones[i].sectors) * 512.0 * 90.0;
    assert!(
        (rate(0) - 210e6).abs() < 46_080.0 && (rate(24) - 100e6).abs() < 46_080.0,
        "{} {}",
        rate(0),
        rate(24)
    );
    // As many surfaces as leave cylinders about as many: the seek curve is that of a drive of this kind.
    let cylinders = |d: &DriveModel| f64::from(d.geometry().cylinders());
    assert!((0.6..1.6).contains(&(cylinders(&d) / cylinders(&base))), "{}", cylinders(&d));
    assert!(d.provenance().iter().all(|p| p.kind == "assumed"));
    assert!(d.provenance().iter().any(|p| p.field == "geometry.surfaces" && p.source.contains("asked of")));
    assert_eq!(like(&base, &Like { zones: Some(0), ..wanted.clone() }).unwrap_err().0[0].field, "zones");
    assert_eq!(like(&base, &Like { rate: Some((1.0, 1.0)), ..wanted }).unwrap_err().0[0].field, "rate");
    // A cylinder in each zone is the least, and that is possible.
    let small = |n| like(&base, &Like { name: "s".into(), capacity: Some(Blocks(n)), ..Like::default() });
    let e = small(1).unwrap_err().0.remove(0);
    assert_eq!(e.field, "capacity");
    let least: u64 = e.problem.rsplit_once("at least ").unwrap().1.trim_end_matches("blk").parse().unwrap();
    assert!(small(least - 1).is_err());
    assert_eq!(DriveModel::from_toml(&small(least).unwrap()).unwrap().counted_blocks(), Blocks(least));
    // A rate alone lays out zones, too.
    let rate = Like { name: "fast".into(), rate: Some((100e6, 50e6)), ..Like::default() };
    let fast = DriveModel::from_toml(&like(&base, &rate).unwrap()).unwrap();
    let outer = f64::from(fast.spec().geometry.zones[0].sectors) * 512.0 * 120.0;
    assert!((outer - 100e6).abs() < 61_440.0, "{outer}");
    // Nothing asked: the same drive.
    let same = like(&base, &Like { name: base.name().into(), ..Like::default() }).unwrap();
    assert_eq!(DriveModel::from_toml(&same).unwrap().spec().geometry, base.spec().geometry);
}

/// A zone of 30 cylinders of 44 sectors, four of them spare, a defect on which another block lies, and blocks that do not count: what is made after it has zones of the
/// same rate without any of that.
#[test]
fn zones_made_anew_have_nothing_of_the_old_ones() {
    let tiny = preset("tiny");
    let zone = ZoneSpec { spare_sectors: 4, ..ZoneSpec::plain(30, 44) };
    let defects = vec![crate::geometry::Defect { cylinder: 1, surface: 0, sector: 3 }];
    let remaps = vec![crate::geometry::Remap { block: 5, to: defects[0] }];
    let geometry = GeometrySpec { defects, remaps, ..GeometrySpec::single_surface(vec![zone]) };
    let spec = DriveSpec { geometry, counted: Some(Blocks(900)), ..tiny.spec().clone() };
    let base = DriveModel::new(spec, Vec::new()).unwrap();
    let wanted = Like { name: "new".into(), zones: Some(1), capacity: Some(Blocks(1000)), ..Like::default() };
    let made = DriveModel::from_toml(&like(&base, &wanted).unwrap()).unwrap();
    let g = &made.spec().geometry;
    assert_eq!(
        (&g.zones[..], &g.defects[..], made.spec().counted),
        (&[ZoneSpec::plain(25, 40)][..], &[][..], None)
    );
}

#[test]
fn bands_are_as_long_as_asked_or_as_the_drive_says() {
    for (own, asked, tracks) in
        [(Some(6), Some(5), 5), (Some(6), None, 6), (None, Some(5), 5), (None, None, 4)]
    {
        let bands = tiny(|s| s.bands.tracks = own).bands(asked).unwrap();
        assert_eq!(bands.band(crate::BandId(0)).tracks, tracks, "{own:?} {asked:?}");
    }
}
