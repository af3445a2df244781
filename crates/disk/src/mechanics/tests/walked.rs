//! Transfers on random drives: against a walk from sector to sector, and each way of asking against the others.

use super::*;
use crate::geometry::Position;
use crate::geometry::tests::any_spec;

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
