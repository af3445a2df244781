use super::*;
use crate::geometry::tests::any_spec;
use crate::geometry::{GeometrySpec, Layout, Position, Slip, Toward, ZoneSpec};
use proptest::prelude::*;

mod naive;

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

/// The sector walk that the closed forms must agree with: angles of one block after the other.
fn walk(m: &Mechanics, dir: Dir, pba: Pba, blocks: Blocks) -> u64 {
    let g = m.geometry();
    let turn = |from: u64, to: u64| (to + REVOLUTION - from % REVOLUTION) % REVOLUTION;
    let mut units = 0;
    let mut before: Option<(Position, TrackNo, u64)> = None;
    for p in (pba.0..pba.0 + blocks.0).map(Pba) {
        let (here, track) = (g.position(p), g.track_of(p));
        let (n, sector) = (u64::from(g.zone_of(track).sectors), u64::from(here.sector));
        if let Some((last, on, end)) = before {
            let gap = turn(end, here.angle);
            let surface_changes = last.surface != here.surface;
            let switch = m.switch_time(dir, (last.cylinder, here.cylinder), surface_changes);
            let need = if track == on { 0 } else { switch * m.rpm };
            units += gap + need.saturating_sub(gap).div_ceil(REVOLUTION) * REVOLUTION;
        }
        let passes = (sector + 1) * REVOLUTION / n - sector * REVOLUTION / n;
        units += passes;
        before = Some((here, track, here.angle + passes));
    }
    units
}

/// Slipped sectors only within tracks: a slipped sector at either end of a track counts as passed, not as a gap in
/// which the head can switch.
fn any_walkable() -> impl Strategy<Value = GeometrySpec> {
    any_spec().prop_map(|mut spec| {
        let whole = Geometry::new(GeometrySpec { defects: Vec::new(), ..spec.clone() }).unwrap();
        let mut tracks = Vec::new();
        spec.defects.retain(|d| {
            let inner = d.sector > 0
                && whole.at(d.cylinder, d.surface, d.sector).is_some()
                && whole.at(d.cylinder, d.surface, d.sector + 1).is_some();
            let new = !tracks.contains(&(d.cylinder, d.surface));
            tracks.push((d.cylinder, d.surface));
            inner && new
        });
        spec
    })
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

proptest! {
    #[test]
    fn transfers_agree_with_a_walk_from_sector_to_sector(
        spec in any_walkable(), mech in any_mechanics(),
        ops in proptest::collection::vec((0u64..3000, 1u64..400, any::<bool>(), 0..4), 1..8)
    ) {
        let g = Arc::new(Geometry::new(spec).unwrap());
        let mut m = Mechanics::new(g.clone(), &mech, Model::Full).unwrap();
        let (mut now, mut last) = (SimTime(12_345), (0, 1));
        for (pba, n, write, again) in ops {
            // The same once more, or from the same block on, or something else.
            last = match again {
                0 => last,
                1 => (last.0, n),
                _ => (pba % g.blocks().0, n),
            };
            let (pba, n) = (Pba(last.0), Blocks(last.1.min(g.blocks().0 - last.0)));
            let dir = if write { Dir::Write } else { Dir::Read };
            now += SimTime(777);
            let p = m.position(now, m.angle(now), dir, &m.target(pba));
            let want = p.arrive + (p.wait as u64 + walk(&m, dir, pba, n)).div_ceil(m.rpm);
            now = m.service(now, dir, pba, n);
            prop_assert_eq!(now.0, want);
            prop_assert_eq!(m.head().track, g.track_of(pba + Blocks(n.0 - 1)));
        }
    }

    /// Whatever was looked at before: near it, far from it, remapped and slipped.
    #[test]
    fn a_block_lies_where_it_lies_whatever_was_noted_before(
        spec in any_spec(), blocks in proptest::collection::vec((0u64..3000, 0u64..3, any::<bool>()), 2..20)
    ) {
        let g = Arc::new(Geometry::new(spec).unwrap());
        let mut m = Mechanics::new(g.clone(), &spec_7200(), Model::Full).unwrap();
        for (pba, apart, noted) in blocks {
            let pba = Pba((m.noted.0.pba * apart.min(1) + pba / (1 + 300 * apart)) % g.blocks().0);
            let track = |g: &Geometry| {
                let (blocks, sectors) = g.track_with(pba);
                (blocks, SimTime(60_000_000_000 / 7200 / sectors.divisor()))
            };
            prop_assert_eq!(m.track_with(pba), track(&g));
            let want = m.aim(pba);
            let got = if noted { m.aim_noted(pba) } else { m.aim_near(pba) };
            prop_assert_eq!(got, want);
            prop_assert_eq!(m.track_with(pba), track(&g));
        }
    }

    /// Reading on behind a read, until some time and whatever was looked at meanwhile; and the read itself, of which a part is gathered.
    #[test]
    fn a_transfer_goes_on_as_it_would_without_a_short_way(
        spec in any_spec(), mech in any_mechanics(), pba in 0u64..3000, first in 1u64..30, most in 1u64..30,
        until in 0u64..30_000_000, looked in proptest::option::of(0u64..3000), edge in proptest::option::of((1u64..30, 0u64..3))
    ) {
        let g = Arc::new(Geometry::new(spec).unwrap());
        let blocks = g.blocks().0;
        prop_assume!(blocks > first + most);
        let (pba, first, most) = (pba % (blocks - first - most), Blocks(first), Blocks(most));
        let mut short = Mechanics::new(g, &mech, Model::Full).unwrap();
        let mut long = short.clone();
        let gather = Blocks(1 + first.0 / 2);
        let (gathered, end) = short.read_gathering(SimTime(5), Pba(pba), first, gather);
        prop_assert_eq!(gathered, long.preview(SimTime(5), Dir::Read, Pba(pba), gather).1);
        prop_assert_eq!(end, long.service(SimTime(5), Dir::Read, Pba(pba), first));
        if let Some(other) = looked {
            short.look_at(Pba(other % blocks));
        }
        // Some time, or right when a block has passed, or a nanosecond before or after that.
        let (next, mut until) = (Pba(pba) + first, end + SimTime(until));
        if let Some((n, apart)) = edge {
            let passed = long.preview(end, Dir::Read, next, Blocks(n.min(most.0))).1;
            until = SimTime((passed.0 + apart).saturating_sub(1).max(end.0));
        }
        prop_assert_eq!(short.read_until(end, next, most, until), long.read_some(end, next, most, until));
        prop_assert_eq!((short.head, short.began, short.phases()), (long.head, long.began, long.phases()));
    }

    #[test]
    fn a_transfer_in_parts_takes_as_long_as_in_one(
        spec in any_walkable(), mech in any_mechanics(), pba in 0u64..3000, parts in proptest::collection::vec(1u64..60, 1..6), write: bool
    ) {
        let g = Arc::new(Geometry::new(spec).unwrap());
        let dir = if write { Dir::Write } else { Dir::Read };
        let pba = pba % g.blocks().0;
        let total = parts.iter().sum::<u64>().min(g.blocks().0 - pba);
        for model in [Model::Full, Model::Instant] {
            let mut one = Mechanics::new(g.clone(), &mech, model).unwrap();
            let mut many = one.clone();
            let whole = one.service(SimTime(5), dir, Pba(pba), Blocks(total));
            let (mut now, mut at) = (SimTime(5), pba);
            for n in parts.iter().copied() {
                let n = n.min(pba + total - at);
                if n > 0 {
                    now = many.service(now, dir, Pba(at), Blocks(n));
                    at += n;
                }
            }
            if at < pba + total {
                now = many.service(now, dir, Pba(at), Blocks(pba + total - at));
            }
            prop_assert_eq!(whole, now);
        }
    }
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

/// Common C2: 0.8 ms + 4 ms sqrt(d / D), 120 MB/s; a command at the head pays neither seek nor rotation.
#[test]
fn the_model_without_rotation_is_seek_plus_transfer() {
    let g = plain(vec![ZoneSpec::plain(300, 2000)]);
    let curve = SeekCurve::Sqrt { base: SimTime::from_us(800), span: SimTime::from_us(4000), full: 600_000 };
    let spec = MechanicsSpec {
        distance: Distance::Blocks,
        read_seek: curve.clone(),
        write_seek: curve,
        head_switch: SimTime::ZERO,
        write_settle: SimTime::ZERO,
        read_overhead: SimTime::ZERO,
        write_overhead: SimTime::ZERO,
        rate: Some(120_000_000),
        ..spec_7200()
    };
    let mut m = Mechanics::new(g, &spec, Model::NoRotation).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Write, Pba(0), Blocks(3));
    assert_eq!(end, SimTime(12_800), "3 * 512 B at 120 MB/s, no seek");
    let end = m.service(SimTime(1_000_000), Dir::Read, Pba(150_003), Blocks(8));
    assert_eq!(end.0, 1_000_000 + 2_800_000 + (8u64 * 12_800).div_ceil(3));
    assert_eq!(m.head().next, Pba(150_011));
    assert_eq!(m.positioning(SimTime(9_000_000), Dir::Write, &m.target(Pba(150_011))), SimTime(9_000_000));
}

#[test]
fn without_rotation_the_rate_is_that_of_the_zones() {
    let g = plain(vec![ZoneSpec::plain(1, 100), ZoneSpec::plain(1, 50)]);
    let spec = MechanicsSpec { read_overhead: SimTime::ZERO, ..spec_7200() };
    let mut m = Mechanics::new(g, &spec, Model::NoRotation).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(125));
    assert_eq!(end.0, (REVOLUTION + REVOLUTION / 2).div_ceil(7200));
}

/// 64 blocks from 1 us on, at 512 ns each or, with rotation, a hundredth of a turn each, the first of which comes after a turn: at any time
/// those have passed whose end has come, and none before the first one's end.
#[test]
fn a_block_has_passed_at_its_end() {
    let spec = MechanicsSpec { read_overhead: SimTime::from_us(50), ..spec_7200() };
    let new = || Mechanics::new(plain(vec![ZoneSpec::plain(3, 100)]), &spec, Model::Full).unwrap();
    let (arrive, end) = (51 * US, |n: u64| (REVOLUTION + n * (REVOLUTION / 100)).div_ceil(7200));
    let mut moments = vec![0, arrive - 1000, arrive - 1, arrive, arrive + 1, 99 * US];
    moments.extend([1, 2, 63, 64, 65].map(end).into_iter().flat_map(|at| [at - 1, at, at + 1]));
    for until in moments {
        let done = (1..=64).take_while(|n| end(*n) <= until).count() as u64;
        let last = if done > 0 { end(done) } else { 1000 };
        let got = new().read_until(SimTime(1000), Pba(0), Blocks(64), SimTime(until));
        assert_eq!(got, (Blocks(done), SimTime(last)), "{until} ns");
    }
    let first_and_last = |m: &Mechanics, blocks| m.preview(SimTime(1000), Dir::Read, Pba(0), Blocks(blocks));
    assert_eq!(first_and_last(&new(), 64), (SimTime(end(1)), SimTime(end(64))));
    let spec = MechanicsSpec { read_overhead: SimTime::ZERO, rate: Some(1_000_000_000), ..spec_7200() };
    for until in [0, 1, 511, 512, 513, 1023, 1024, 63 * 512, 64 * 512 - 1, 64 * 512, 99_999] {
        let mut m = Mechanics::new(plain(vec![ZoneSpec::plain(3, 100)]), &spec, Model::NoRotation).unwrap();
        let start = SimTime(1000);
        let (done, end) = m.read_until(start, Pba(0), Blocks(64), SimTime(1000 + until));
        assert_eq!(done.0, (until / 512).min(64), "{until} ns");
        assert_eq!(end.0, 1000 + done.0 * 512, "{until} ns");
    }
    let m = Mechanics::new(plain(vec![ZoneSpec::plain(3, 100)]), &spec, Model::NoRotation).unwrap();
    assert_eq!(first_and_last(&m, 64), (SimTime(1512), SimTime(1000 + 64 * 512)));
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

/// The overhead of a command is hidden only behind the one before it.
#[test]
fn a_command_that_follows_late_pays_overhead_and_rotation() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    let mut m = Mechanics::new(g, &spec_7200(), Model::NoRotation).unwrap();
    let end = m.service(SimTime(5), Dir::Read, Pba(0), Blocks(10));
    let next = m.target(Pba(10));
    assert_eq!(m.positioning(end, Dir::Read, &next), end);
    assert_eq!(m.positioning(end + SimTime(1), Dir::Read, &next), end + SimTime(1 + 50 * US));
    let mut m = Mechanics::new(m.geometry().clone(), &spec_7200(), Model::Full).unwrap();
    let end = m.service(SimTime(5), Dir::Read, Pba(0), Blocks(10));
    let turn = REVOLUTION.div_ceil(7200);
    assert!(m.positioning(end, Dir::Read, &next).since(end) <= SimTime(1));
    assert!(m.positioning(end + SimTime(1), Dir::Read, &next).since(end) >= SimTime(turn - 2));
}

/// The disk turns by the clock, not by where the heads were left, and nothing is under way at time 0: a command from any block on
/// has its overhead of 50 us, and waits for the block.
#[test]
fn heads_at_rest_wait_for_the_block_before_which_they_rest() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    for at in [0, 1, 10, 50, 99, 100, 250] {
        let mut m = Mechanics::new(g.clone(), &spec_7200(), Model::Full).unwrap();
        m.rest_at(Pba(at));
        let angle = m.target(Pba(at)).angle;
        let switch = if at % 100 == 0 && at > 0 { 1000 } else { 0 };
        let turns = u64::from(angle < (50 + switch) * US * 7200) * REVOLUTION;
        let end = m.service(SimTime::ZERO, Dir::Read, Pba(at), Blocks(1));
        assert_eq!(end.0, (turns + angle + REVOLUTION / 100).div_ceil(7200), "block {at}");
        assert_eq!(m.phases().overhead.0, 50 * US);
    }
}

/// The first operation of a drive, at time 0 on its first block: 50 us of overhead, the rest of a turn, the block. Beginning with
/// whichever block comes first it goes once round; without rotation it has its overhead and the block.
#[test]
fn nothing_goes_on_before_the_first_operation() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    let fresh = |model| Mechanics::new(g.clone(), &spec_7200(), model).unwrap();
    let (turn, block) = (REVOLUTION, REVOLUTION / 100);
    let first = fresh(Model::Full).service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(1));
    assert_eq!(first.0, (turn + block).div_ceil(7200));
    let mut m = fresh(Model::Full);
    assert_eq!(m.read_gathering(SimTime::ZERO, Pba(0), Blocks(1), Blocks(1)).1, first);
    let any = fresh(Model::Full).service_any(SimTime::ZERO, Dir::Read, Pba(0), Blocks(100)).1;
    assert_eq!(any.0, (turn + block).div_ceil(7200), "from the edge behind 50 us on");
    let plain = fresh(Model::NoRotation).service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(1));
    assert_eq!(plain.0, 50 * US + block.div_ceil(7200));
    // What follows it at once goes on.
    let next = m.target(Pba(1));
    assert!(m.positioning(first, Dir::Read, &next) <= first);
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

/// Where the block under the head is not a whole number of angle units: with 7 sectors edges are as exact as the sectors.
#[test]
fn what_begins_in_the_middle_waits_for_the_next_sectors_edge() {
    let g = plain(vec![ZoneSpec::plain(10, 7)]);
    let spec = MechanicsSpec { read_overhead: SimTime::ZERO, ..spec_7200() };
    for sector in 1..7u64 {
        // A unit before the edge of a sector, on it, and behind it.
        for late in [-1i64, 0, 1] {
            let mut m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
            let edge = (sector * REVOLUTION / 7).div_ceil(7200);
            let at = SimTime(edge.wrapping_add_signed(late));
            let (first, end) = m.service_any(at, Dir::Read, Pba(0), Blocks(7));
            let edges = (1..=7).map(|i| i * REVOLUTION / 7);
            let from = edges.into_iter().find(|edge| *edge >= at.0 * 7200).unwrap();
            assert_eq!(end.0, (from + REVOLUTION).div_ceil(7200), "{sector} {late}");
            assert_eq!(first.0, (REVOLUTION + REVOLUTION / 7).div_ceil(7200));
            assert_eq!(m.head().angle, from % REVOLUTION);
        }
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
