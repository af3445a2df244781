use super::*;
use crate::geometry::{GeometrySpec, ZoneSpec};
use proptest::prelude::*;

mod beginning;
mod borders;
mod naive;
mod rates;
mod walked;

const US: u64 = 1_000;

pub(crate) fn spec_7200() -> MechanicsSpec {
    let three = |single| SeekCurve::ThreePoint {
        single: SimTime::from_us(single),
        average: SimTime::from_us(8000),
        full_stroke: SimTime::from_us(16_000),
        full: 1000,
    };
    MechanicsSpec {
        rpm: 7200,
        distance: Distance::Cylinders,
        read_seek: three(1000),
        write_seek: three(1200),
        head_switch: SimTime::from_us(700),
        write_head_switch: None,
        write_settle: SimTime::from_us(100),
        read_overhead: SimTime::from_us(50),
        write_overhead: SimTime::from_us(60),
        read_late: Blocks::ZERO,
        one_place: 0,
        rate: None,
    }
}

fn plain(zones: Vec<ZoneSpec>) -> Arc<Geometry> {
    Arc::new(Geometry::new(GeometrySpec::single_surface(zones)).unwrap())
}

pub(crate) fn any_mechanics() -> impl Strategy<Value = MechanicsSpec> {
    let time = || prop_oneof![Just(0u64), Just(2_083_333), 0u64..20_000_000].prop_map(SimTime);
    (1u32..20_000, time(), time(), time(), time()).prop_map(
        |(rpm, seek, write, head_switch, write_settle)| MechanicsSpec {
            rpm,
            read_seek: SeekCurve::Constant(seek),
            write_seek: SeekCurve::Sqrt { base: write, span: SimTime(5_000_000), full: 40 },
            head_switch,
            write_head_switch: None,
            write_settle,
            ..spec_7200()
        },
    )
}

/// 100 sectors a track at 7200 rpm: a sector passes in 83 333.33 ns.
#[test]
fn rotation_is_caught_at_t_and_missed_at_t_minus_nothing() {
    let g = plain(vec![ZoneSpec::plain(1000, 100)]);
    let mut spec = spec_7200();
    spec.read_overhead = SimTime::ZERO;
    let m = Mechanics::new(g, &spec, Model::Full).unwrap();
    let target = m.target(Pba(30));
    let pass = (60_000_000_000u64 * 30 / 100).div_ceil(7200); // 2.5 ms
    assert_eq!(pass, 2_500_000);
    assert_eq!(m.positioning(SimTime(pass), Dir::Read, &target), SimTime(pass), "just in time");
    let next = (60_000_000_000u64 + 60_000_000_000 * 30 / 100).div_ceil(7200);
    assert_eq!(m.positioning(SimTime(pass + 1), Dir::Read, &target), SimTime(next), "1 ns late: a turn");
    assert_eq!(m.positioning(SimTime(pass - 1), Dir::Read, &target), SimTime(pass));
}

#[test]
fn the_clock_does_not_drift_in_a_year() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    let mut spec = spec_7200();
    for rpm in [5400, 7200, 10_045, 15_000] {
        spec.rpm = rpm;
        let m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
        let year = SimTime(365 * 86_400 * 1_000_000_000);
        assert_eq!(m.angle(year), 0, "{rpm} rpm: a whole number of minutes");
        assert_eq!(m.angle(year + SimTime(1)), u64::from(rpm));
    }
}

#[test]
fn a_command_is_overhead_seek_settle_rotation_transfer() {
    let g = plain(vec![ZoneSpec::plain(1000, 100)]);
    let mut m = Mechanics::new(g, &spec_7200(), Model::Full).unwrap();
    // A third of the stroke (333): the middle point of the curve.
    let arrive = 1_000_000 + 60 * US + 8000 * US + 100 * US;
    let begins = ((arrive * 7200).div_ceil(60_000_000_000) * 60_000_000_000).div_ceil(7200);
    let end = m.service(SimTime(1_000_000), Dir::Write, Pba(33_300), Blocks(10));
    let exact_begin_angle = (arrive * 7200).div_ceil(60_000_000_000) * 60_000_000_000;
    assert_eq!(end.0, (exact_begin_angle + 6_000_000_000).div_ceil(7200));
    let p = m.phases();
    assert_eq!((p.overhead.0, p.seek.0), (60 * US, 8100 * US));
    assert_eq!(p.rotation.0, begins - arrive);
    assert_eq!(1_000_000 + p.overhead.0 + p.seek.0 + p.rotation.0 + p.transfer.0, end.0);
    // A read, as far: it has not to settle.
    m.service(end, Dir::Read, Pba(66_600), Blocks(10));
    assert_eq!((m.phases().overhead.0, m.phases().seek.0), (50 * US, 8000 * US));
}

/// What can be reached in some time, by the seek alone and at once, is within reach; of what is more than a step of time farther nothing is.
#[test]
fn all_that_is_near_in_time_is_within_reach() {
    let us = SimTime::from_us;
    let table = |times: [u64; 3]| SeekCurve::Table([1, 40, 300].into_iter().zip(times.map(us)).collect());
    let three =
        SeekCurve::ThreePoint { single: us(900), average: us(5000), full_stroke: us(9000), full: 400 };
    for (curve, ascends) in
        [(table([800, 3000, 9000]), true), (three, true), (table([800, 3000, 2900]), false)]
    {
        let spec = MechanicsSpec {
            read_seek: curve.clone(),
            write_seek: curve,
            write_settle: SimTime::ZERO,
            ..spec_7200()
        };
        let m = Mechanics::new(plain(vec![ZoneSpec::plain(400, 100)]), &spec, Model::Full).unwrap();
        let (reach, longest) = (m.reach(), m.read_seek(0, 399).0.max(m.read_seek(0, 40).0));
        let times = (0..400).map(|d| m.read_seek(0, d).0).flat_map(|t| [t.saturating_sub(1), t, t + 1]);
        for delay in times.chain([0, 1]) {
            let within = u64::from(reach.within(SimTime(delay))[0]);
            let farthest = |time| (0..400).filter(|d| m.read_seek(0, *d).0 <= time).max().unwrap();
            assert!(within >= farthest(delay), "{delay}");
            let near = within <= farthest(delay + longest / 50) || delay + longest / 50 > longest;
            assert_eq!(near, ascends || delay + longest / 50 > longest, "{delay}");
        }
    }
}

/// A sector has begun at its own angle, and not right before it.
#[test]
fn the_last_edge_is_that_of_the_last_sector_that_has_begun() {
    for sectors in [1, 2, 7, 100, 333, 1 << 14] {
        let g = plain(vec![ZoneSpec::plain(3, sectors)]);
        let run = &g.zone_runs()[0];
        for n in 1..=u64::from(sectors) {
            let angle = run.sector_angle(n);
            assert_eq!([angle - 1, angle].map(|angle| run.last_edge(angle)), [n - 1, n], "of {sectors}");
        }
    }
}

/// 100 blocks a turn: a read that arrives 10 blocks before its first one, when 20 are missed, loses a turn. Within the cylinders
/// that are one place there is no seek, from there it counts from their end, and nothing is missed on the way there or back.
#[test]
fn reads_miss_what_passes_behind_their_arrival_but_for_those_of_the_one_place() {
    let g = plain(vec![ZoneSpec::plain(1000, 100)]);
    let none = SeekCurve::Table(vec![(1, SimTime::ZERO), (400, SimTime::ZERO), (401, SimTime::from_ms(3))]);
    let spec = MechanicsSpec {
        read_seek: none,
        read_overhead: SimTime::ZERO,
        read_late: Blocks(20),
        one_place: 50,
        ..spec_7200()
    };
    let took = |from: u64, to: u64| {
        let mut m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
        m.service(SimTime::ZERO, Dir::Write, Pba(from), Blocks(1));
        let start = m.head().ready;
        let turns = (m.service(start, Dir::Read, Pba(to), Blocks(1)).since(start).0 * 7200) as f64;
        (turns / REVOLUTION as f64 * 100.0).round()
    };
    assert_eq!(took(10_000, 10_111), 111.0, "10 blocks ahead: missed");
    assert_eq!(took(10_000, 10_126), 26.0, "25 blocks ahead: in time");
    assert_eq!(took(100, 10_111), 11.0, "from the one place nothing is missed");
    assert_eq!(took(10_000, 111), 11.0, "nor on the way there");
    assert_eq!(took(4_900, 45_011), 11.0, "400 cylinders from the end of the one place");
    assert_eq!(took(4_900, 45_147), 47.0, "401: 3 ms, 36 of them a turn");
}

#[test]
fn faults_name_the_field() {
    let g = plain(vec![ZoneSpec::plain(1, 1)]);
    let spec = MechanicsSpec { rpm: 0, head_switch: SimTime::from_ms(2000), ..spec_7200() };
    let e = Mechanics::new(g, &spec, Model::Full).unwrap_err().to_string();
    assert!(e.contains("mechanics.rpm") && e.contains("mechanics.head_switch"), "{e}");
}
