//! How long blocks take to pass: by their zone, or at a rate.

use super::*;

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
