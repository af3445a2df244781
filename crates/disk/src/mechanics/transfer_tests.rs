//! Transfers over tracks, zones and what is slipped.

use super::super::tests::{any_mechanics, spec_7200};
use super::super::{Distance, Model, SeekCurve};
use super::*;
use crate::geometry::tests::any_spec;
use crate::geometry::{Geometry, GeometrySpec, ZoneSpec};
use proptest::prelude::*;
use std::sync::Arc;

/// Where seeks go by blocks, a transfer that goes on with the next block makes none; where they go by cylinders it makes one.
#[test]
fn the_next_track_is_no_seek_where_blocks_are_the_distance() {
    let geometry = GeometrySpec::single_surface(vec![ZoneSpec::plain(10, 100)]);
    let geometry = Arc::new(Geometry::new(geometry).unwrap());
    for (distance, seek) in [(Distance::Cylinders, 2000), (Distance::Blocks, 0)] {
        let curve = SeekCurve::Constant(SimTime::from_us(2000));
        let spec = super::super::MechanicsSpec { distance, read_seek: curve, ..spec_7200() };
        let m = Mechanics::new(geometry.clone(), &spec, Model::Full).unwrap();
        // A head switch takes 0.7 ms at least, whatever the distance.
        let times = [false, true].map(|changes| m.switch_time(Dir::Read, (0, 1), changes));
        assert_eq!(times, [seek, seek.max(700)].map(|us| us * 1000), "{distance:?}");
    }
}

/// Four tracks of 100 sectors on two surfaces, by twos: along the second surface the head goes back. A step out takes 1 ms, one back 2 ms, a
/// head switch 0.7 ms; with a skew of 0.15 turns, 1.25 ms, only the step back loses a turn, and in two commands it takes as long.
#[test]
fn a_step_back_takes_the_time_of_its_way() {
    let geometry = GeometrySpec {
        surfaces: 2,
        layout: crate::geometry::Layout::Hybrid { width: 2 },
        track_skew: REVOLUTION * 15 / 100,
        cylinder_skew: REVOLUTION * 15 / 100,
        ..GeometrySpec::single_surface(vec![ZoneSpec::plain(2, 100)])
    };
    let us = |n| vec![(1, SimTime::from_us(n))];
    let read_seek = SeekCurve::Directed { rising: us(1000), falling: us(2000) };
    let spec = super::super::MechanicsSpec { read_seek, ..spec_7200() };
    let m = Mechanics::new(Arc::new(Geometry::new(geometry).unwrap()), &spec, Model::Full).unwrap();
    for (blocks, hundredths) in [(100, 100), (200, 215), (300, 330), (400, 545)] {
        let (mut whole, mut parts) = (m.clone(), m.clone());
        let end = whole.service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(blocks));
        let exact = (REVOLUTION / 100 * hundredths).div_ceil(7200);
        assert!(whole.phases().transfer.0.abs_diff(exact) <= 1, "{blocks} blocks: {end}");
        let cut = (blocks - 100).max(1);
        let at = parts.service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(cut));
        assert_eq!(parts.service(at, Dir::Read, Pba(cut), Blocks(blocks - cut)), end, "{blocks} blocks");
    }
}

/// A track of four sectors, and two of two, the first of which holds no PBA: a turn for each that holds some.
#[test]
fn a_zone_may_begin_with_a_track_that_holds_nothing() {
    let short = ZoneSpec { front: 2, ..ZoneSpec::plain(2, 2) };
    let layout = crate::geometry::Layout::Cylinder { alternate: false };
    let geometry =
        GeometrySpec { layout, ..GeometrySpec::single_surface(vec![ZoneSpec::plain(1, 4), short]) };
    let at_once = SeekCurve::Constant(SimTime::ZERO);
    let spec = super::super::MechanicsSpec { read_seek: at_once, ..spec_7200() };
    let m = Mechanics::new(Arc::new(Geometry::new(geometry).unwrap()), &spec, Model::Full).unwrap();
    let (target, aim) = m.aim(Pba(0));
    let (angle, end) = m.full_transfer(Dir::Read, &target, aim, Pba(0), Blocks(6));
    assert_eq!((angle, end.track), (2 * REVOLUTION, 2));
}

proptest! {
    /// In every model, whatever is slipped and remapped.
    #[test]
    fn a_transfer_leaves_the_head_over_its_last_block(
        spec in any_spec(), mech in any_mechanics(), transfers in proptest::collection::vec((0u64..3000, 1u64..90), 1..6)
    ) {
        let g = Arc::new(Geometry::new(spec).unwrap());
        for model in [Model::Full, Model::NoRotation, Model::Instant] {
            let mut m = Mechanics::new(g.clone(), &mech, model).unwrap();
            for &(pba, n) in &transfers {
                let pba = pba % g.blocks().0;
                let n = n.min(g.blocks().0 - pba);
                m.service(m.head.ready, Dir::Read, Pba(pba), Blocks(n));
                let last = Pba(pba + n - 1);
                let place = m.target(last);
                prop_assert_eq!((m.head.cylinder, m.head.surface), (place.cylinder, place.surface));
                prop_assert_eq!(m.head.track, g.track_of(last));
                let first = m.target(Pba(pba));
                prop_assert_eq!(m.passed(Pba(pba), Blocks(n)), (first.track(), first.cylinder(), place.track()));
            }
        }
    }
}
