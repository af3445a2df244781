//! Where tracks end: switches of heads and cylinders, and what passes meanwhile.

use super::*;
use crate::geometry::{Layout, Slip};

#[test]
fn a_head_switch_is_hidden_by_skew_at_t_and_costs_a_turn_at_t_minus_1() {
    let turn = REVOLUTION / 10; // 833 333.33 ns
    let g = GeometrySpec {
        surfaces: 2,
        layout: Layout::Cylinder { alternate: false },
        track_skew: turn,
        ..GeometrySpec::single_surface(vec![ZoneSpec::plain(10, 100)])
    };
    let g = Arc::new(Geometry::new(g).unwrap());
    let time = |switch: u64| {
        let spec = MechanicsSpec {
            head_switch: SimTime(switch),
            write_settle: SimTime::ZERO,
            read_overhead: SimTime::ZERO,
            ..spec_7200()
        };
        let mut m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
        m.service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(200)).0
    };
    assert_eq!(time(833_333), (2 * REVOLUTION + turn).div_ceil(7200));
    assert_eq!(time(833_334), (3 * REVOLUTION + turn).div_ceil(7200));
}

/// A head switch of 0.7 ms, 1.9 ms of a write, which settles for 0.1 ms; a seek to the next cylinder hides the first one only.
#[test]
fn a_write_has_a_head_switch_of_its_own() {
    let g = GeometrySpec {
        surfaces: 2,
        layout: Layout::Cylinder { alternate: false },
        ..GeometrySpec::single_surface(vec![ZoneSpec::plain(10, 100)])
    };
    let spec = MechanicsSpec { write_head_switch: Some(SimTime::from_us(1900)), ..spec_7200() };
    let fresh = Mechanics::new(Arc::new(Geometry::new(g).unwrap()), &spec, Model::Full).unwrap();
    for (dir, to, us) in [
        (Dir::Read, 50, 0),
        (Dir::Write, 50, 0),
        (Dir::Read, 150, 700),
        (Dir::Write, 150, 2000),
        (Dir::Read, 350, 1000),
        (Dir::Write, 350, 2000),
        (Dir::Write, 250, 1300),
    ] {
        let mut m = fresh.clone();
        m.service(SimTime::ZERO, dir, Pba(to), Blocks(1));
        assert_eq!(m.phases().seek, SimTime::from_us(us), "{dir:?} {to}");
    }
}

/// 6000 rpm, ten sectors of 1 ms, of which the last three of each cylinder are spare: they pass while the head goes to the next cylinder.
#[test]
fn spares_at_a_cylinders_end_pass_while_the_head_switches() {
    let zone = ZoneSpec { range_spares: 3, ..ZoneSpec::plain(4, 10) };
    let layout = Layout::Cylinder { alternate: false };
    let g =
        Arc::new(Geometry::new(GeometrySpec { layout, ..GeometrySpec::single_surface(vec![zone]) }).unwrap());
    for (seek, ms) in [(3000, 27), (3001, 37)] {
        let seek = SeekCurve::Constant(SimTime::from_us(seek));
        let spec = MechanicsSpec { rpm: 6000, read_seek: seek, ..spec_7200() };
        let mut m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
        let end = m.service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(14));
        // A turn until the first block, seven of them, three spares, seven on the next cylinder.
        assert_eq!(end, SimTime::from_ms(ms));
    }
}

/// Three tracks hold nothing at a zone's end, or four at the beginning of the next: a transfer over them waits for no sector of theirs.
#[test]
fn tracks_without_data_where_zones_meet_are_skipped() {
    let zones = vec![ZoneSpec::plain(6, 100), ZoneSpec::plain(6, 50)];
    for (slip, border, cylinder) in [
        (Slip { zone: 0, first: 300, blocks: 300 }, 300, 6),
        (Slip { zone: 1, first: 0, blocks: 200 }, 600, 10),
    ] {
        let layout = Layout::Cylinder { alternate: false };
        let spec = GeometrySpec { slips: vec![slip], layout, ..GeometrySpec::single_surface(zones.clone()) };
        let geometry = Arc::new(Geometry::new(spec).unwrap());
        let new = || Mechanics::new(geometry.clone(), &spec_7200(), Model::Full).unwrap();
        assert_eq!(geometry.position(Pba(border)).cylinder, cylinder);
        let whole = new().service(SimTime::ZERO, Dir::Read, Pba(border - 50), Blocks(100));
        // In two commands, each on its own track; the second follows at once.
        let mut parts = new();
        let first = parts.service(SimTime::ZERO, Dir::Read, Pba(border - 50), Blocks(50));
        assert_eq!(parts.service(first, Dir::Read, Pba(border), Blocks(50)), whole, "{slip:?}");
    }
}

/// 37 sectors a track at 6000 rpm, and a skew of the time of a seek to the next track, 1.35 ms: 0.135 turns, 4.995 sectors. No track starts
/// where that would be too early, so no switch of 40 loses a turn; with a skew that is a nanosecond short each of them does.
#[test]
fn a_skew_that_covers_the_seek_covers_it_at_every_track() {
    let seek = SimTime(1_350_000);
    let spec = MechanicsSpec { rpm: 6000, read_seek: SeekCurve::Constant(seek), ..spec_7200() };
    for (short, lost) in [(0, 0), (1, 40)] {
        let skew = (seek.0 - short) * 6000;
        let zones = vec![ZoneSpec::plain(50, 37)];
        let g = GeometrySpec { cylinder_skew: skew, ..GeometrySpec::single_surface(zones) };
        let g = Arc::new(Geometry::new(g).unwrap());
        let read = |m: &mut Mechanics, at: SimTime, pba, n| m.service(at, Dir::Read, Pba(pba), Blocks(n));
        let mut one = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
        let first = read(&mut one, SimTime(7), 0, 1);
        let mut parts = one.clone();
        let whole = read(&mut one, first, 1, 41 * 37 - 1);
        let units = (36 * REVOLUTION).div_ceil(37) + 40 * (REVOLUTION + skew + lost / 40 * REVOLUTION);
        assert!(whole.since(first).0.abs_diff(units.div_ceil(6000)) <= 1, "{short}: {whole}");
        // Track by track it takes the same.
        let mut at = read(&mut parts, first, 1, 36);
        for track in 1..41 {
            at = read(&mut parts, at, track * 37, 37);
        }
        assert_eq!(at, whole, "{short}");
    }
}

/// Reads and writes that follow each other take as long as one operation, however often the direction changes; at the end
/// of a track the switch of the new direction has to fit into the skew.
#[test]
fn a_change_of_direction_goes_on_from_the_exact_angle() {
    let skewed = |cylinder_skew| {
        let zones = vec![ZoneSpec::plain(10, 97)];
        Arc::new(
            Geometry::new(GeometrySpec { cylinder_skew, ..GeometrySpec::single_surface(zones) }).unwrap(),
        )
    };
    // Enough for a read of the next track (1 ms), not for a write (1.2 ms and 0.1 ms of settle).
    let turn_ns = REVOLUTION.div_ceil(7200);
    let skew = REVOLUTION * 13 / 97; // 1.117 ms
    for (first, second, lost) in [(Dir::Read, Dir::Write, true), (Dir::Write, Dir::Read, false)] {
        let mut m = Mechanics::new(skewed(skew), &spec_7200(), Model::Full).unwrap();
        let mut at = m.service(SimTime(7), first, Pba(0), Blocks(3));
        let began = at;
        for i in 1..32u64 {
            let dir = if i % 2 == 0 { first } else { second };
            at = m.service(at, dir, Pba(3 * i), Blocks(3));
        }
        let passed = at.since(began).0;
        let exact = (REVOLUTION * 93 / 97).div_ceil(7200);
        assert!(passed.abs_diff(exact) <= 1, "{first:?} {second:?}: {passed} against {exact}");
        at = m.service(at, first, Pba(96), Blocks(1));
        let end = m.service(at, second, Pba(97), Blocks(1));
        let gap = (REVOLUTION * 14 / 97).div_ceil(7200) + if lost { turn_ns } else { 0 };
        assert!(end.since(at).0.abs_diff(gap) <= 2, "{} against {gap}", end.since(at).0);
    }
}
