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
