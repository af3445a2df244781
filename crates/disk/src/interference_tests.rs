use super::*;
use crate::geometry::tests::any_spec;
use crate::geometry::{GeometrySpec, ZoneSpec};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn victims(i: &Interference, g: &Geometry, pba: u64, n: u64) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    i.victims(g, Pba(pba), Blocks(n), &mut |r| out.extend(r));
    out
}

/// Sheet 004: tracks of one surface, skew of a whole turn every `n` tracks, and its corrected formula, literally.
struct Sheet {
    sectors: Vec<u64>,
    start: Vec<u64>,
    n: u64,
}

impl Sheet {
    fn new(zones: &[(u32, u32)], n: u64) -> (Self, Geometry) {
        let sectors: Vec<u64> =
            zones.iter().flat_map(|&(tracks, ts)| (0..tracks).map(move |_| u64::from(ts))).collect();
        let start = sectors.iter().scan(0, |sum, ts| Some(std::mem::replace(sum, *sum + ts))).collect();
        let spec = GeometrySpec {
            cylinder_skew: REVOLUTION / n % REVOLUTION,
            ..GeometrySpec::single_surface(zones.iter().map(|&(c, s)| ZoneSpec::plain(c, s)).collect())
        };
        (Self { sectors, start, n }, Geometry::new(spec).unwrap())
    }

    /// `round(frac(t / n) * TS) mod TS`.
    fn skew(&self, t: usize) -> u64 {
        let ts = self.sectors[t];
        ((t as u64 % self.n * ts * 2 + self.n) / (2 * self.n)) % ts
    }

    fn corrected(&self, t: usize, s: u64, u: usize) -> Range<u64> {
        let (ts, us) = (self.sectors[t], self.sectors[u]);
        let a = (s + self.skew(t)) % ts;
        let hit =
            if us > ts { a * us / ts..((a + 1) * us).div_ceil(ts) } else { a * us / ts..a * us / ts + 1 };
        hit.start + us - self.skew(u)..hit.end + us - self.skew(u)
    }

    /// As printed in the paper, its rescaling done in the right order.
    fn literal(&self, t: usize, s: u64, u: usize) -> u64 {
        let (ts, us) = (self.sectors[t], self.sectors[u]);
        let mut pos = s + self.skew(t);
        if pos > ts {
            pos -= ts;
        }
        let abs = pos * us / ts;
        let skew = self.skew(u);
        self.start[u] + if skew < abs { abs - skew } else { us - skew + abs }
    }
}

/// Sheet 004, errata 2: 45 of 732 victims differ from the printed formula, all of them off the target track, and the
/// printed one is a bijection on none of 21 pairs of tracks. The sheet leaves the zones open; these give its numbers.
#[test]
fn the_printed_formula_is_wrong_at_45_of_732_boundaries() {
    let k = 4;
    let (sheet, g) = Sheet::new(&[(4, 28), (5, 20), (4, 16)], 4);
    let profile = Interference::tracks(k);
    let (mut all, mut differ, mut outside, mut pairs) = (0, 0, 0, 0);
    for t in 0..sheet.sectors.len() {
        for s in 0..sheet.sectors[t] {
            let mut want = BTreeSet::new();
            for u in (t + 1..t + k as usize).filter(|&u| u < sheet.sectors.len()) {
                let victim = sheet.start[u] + sheet.corrected(t, s, u).start % sheet.sectors[u];
                want.insert(victim);
                all += 1;
                let printed = sheet.literal(t, s, u);
                differ += u64::from(printed != victim);
                let track = sheet.start[u]..sheet.start[u] + sheet.sectors[u];
                outside += u64::from(printed != victim && !track.contains(&printed));
            }
            assert_eq!(victims(&profile, &g, sheet.start[t] + s, 1), want, "track {t} sector {s}");
        }
        for u in (t + 1..t + k as usize).filter(|&u| u < sheet.sectors.len()) {
            if sheet.sectors[u] == sheet.sectors[t] {
                pairs += 1;
                let image: BTreeSet<u64> = (0..sheet.sectors[t]).map(|s| sheet.literal(t, s, u)).collect();
                let track: BTreeSet<u64> = (sheet.start[u]..sheet.start[u] + sheet.sectors[u]).collect();
                assert_ne!(image, track);
            }
        }
    }
    assert_eq!((all, differ, outside, pairs), (732, 45, 45, 21));
}

/// How much further than its sector a write reaches on one side: often not at all.
fn any_phi() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..REVOLUTION / 4]
}

proptest! {
    /// Within a zone every victim track is hit sector by sector, one to one; across zones it is covered.
    #[test]
    fn one_to_one_within_zones_and_covering_across(
        zones in proptest::collection::vec((2u32..6, 1u32..40), 1..4), n in prop_oneof![Just(1u64), Just(3), Just(4), Just(10)], k in 2u32..5
    ) {
        let (sheet, g) = Sheet::new(&zones, n);
        let profile = Interference::tracks(k);
        for t in 0..sheet.sectors.len() {
            for u in (t + 1..t + k as usize).filter(|&u| u < sheet.sectors.len()) {
                let track: BTreeSet<u64> = (sheet.start[u]..sheet.start[u] + sheet.sectors[u]).collect();
                let mut covered = BTreeSet::new();
                for s in 0..sheet.sectors[t] {
                    let hit: BTreeSet<u64> =
                        victims(&profile, &g, sheet.start[t] + s, 1).intersection(&track).copied().collect();
                    let want: BTreeSet<u64> =
                        sheet.corrected(t, s, u).map(|v| sheet.start[u] + v % sheet.sectors[u]).collect();
                    prop_assert_eq!(&hit, &want);
                    if sheet.sectors[t] == sheet.sectors[u] {
                        prop_assert!(hit.len() == 1 && !covered.contains(hit.first().unwrap()));
                    }
                    covered.extend(hit);
                }
                prop_assert_eq!(covered, track);
            }
        }
    }

    /// Any geometry and reach: an extent destroys what its blocks, written one after the other, leave destroyed; and a
    /// block destroys what overlaps its angle on the neighbouring tracks.
    #[test]
    fn extents_agree_with_a_walk_from_block_to_block(
        spec in any_spec(), k in 1u32..4, phi in (any_phi(), any_phi()), at in 0u64..4000, n in 1u64..60
    ) {
        let g = Geometry::new(spec).unwrap();
        let p = PhysicalProfile { s_id: k, s_od: 1, phi_cw: phi.0, phi_ccw: phi.1, wave: 0 };
        let profile = Interference::Physical(p);
        let at = at % g.blocks().0;
        let n = n.min(g.blocks().0 - at);
        let mut destroyed = BTreeSet::new();
        for b in at..at + n {
            destroyed.remove(&b);
            let hit = angle_overlap(&g, &p, Pba(b));
            prop_assert_eq!(&victims(&profile, &g, b, 1), &hit, "block {}", b);
            destroyed.extend(hit);
        }
        prop_assert_eq!(victims(&profile, &g, at, n), destroyed);
    }

    #[test]
    fn a_block_profile_hits_the_following_blocks_behind_those_that_are_not_shingled(
        i in 1u64..50, from in 0u64..100, at in 0u64..200, n in 1u64..50
    ) {
        let g = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(20, 10)])).unwrap();
        let (at, n) = (at.min(199), n.min(200 - at.min(199)));
        let behind = if at + n > from { (at + n + i - 1).min(200) } else { 0 };
        let profile = Interference::Blocks(BlockProfile { reach: i, from });
        prop_assert_eq!(victims(&profile, &g, at, n), (at + n..behind).collect());
    }
}

/// Blocks of the next tracks whose angle a write of `pba` reaches, from positions alone.
fn angle_overlap(g: &Geometry, p: &PhysicalProfile, pba: Pba) -> BTreeSet<u64> {
    let place = |b: Pba| {
        let (n, turn) = (i128::from(g.zone_of(g.track_of(b)).sectors), i128::from(REVOLUTION));
        let p = g.position(b);
        // What lies side by side counts in whole sectors: from the one that is nearest to the track's start.
        let start = (i128::from(p.angle) + turn - i128::from(p.sector) * turn / n) % turn;
        (((2 * start * n + turn) / (2 * turn) + i128::from(p.sector)) % n, n)
    };
    let (a, n) = place(pba);
    let (turn, before, after) = (i128::from(REVOLUTION), i128::from(p.phi_ccw), i128::from(p.phi_cw));
    let mut out = BTreeSet::new();
    for track in (1..p.s_id).filter_map(|j| g.following(g.track_of(pba), j)) {
        for b in g.track_start(track).span(g.track_blocks(track)) {
            let (s, m) = place(Pba(b));
            // The sheet's formula, which for fewer sectors counts only the one in which the write begins.
            let plain = match m.cmp(&n) {
                std::cmp::Ordering::Equal => s == a,
                std::cmp::Ordering::Less => s == a * m / n,
                std::cmp::Ordering::Greater => s * n < (a + 1) * m && (s + 1) * n > a * m,
            };
            let wide = (before > 0 || after > 0)
                && (-1..=1).any(|t| {
                    (s + t * m) * turn * n < ((a + 1) * turn + after * n) * m
                        && (s + 1 + t * m) * turn * n > (a * turn - before * n) * m
                });
            if plain || wide {
                out.insert(b);
            }
        }
    }
    out
}

#[test]
fn both_sides_at_once_and_wide_reaches_are_refused() {
    let p = PhysicalProfile { s_id: 2, s_od: 2, phi_cw: REVOLUTION, phi_ccw: 0, wave: 0 };
    let e = Interference::Physical(p).check("interference").unwrap_err().to_string();
    assert!(e.contains("one side only") && e.contains("interference.phi_cw"), "{e}");
}

/// What a profile may say at most, and what it says one further: a quarter of a revolution to either side, shingles over 1024 tracks, blocks of 2^32.
#[test]
fn profiles_go_as_far_as_they_may_and_no_further() {
    let plain = PhysicalProfile { s_id: 1, s_od: 1, phi_cw: 0, phi_ccw: 0, wave: 0 };
    let accepted = |p: PhysicalProfile| Interference::Physical(p).check("x").is_ok();
    let quarter = REVOLUTION / 4;
    for (phi, fits) in [(quarter - 1, true), (quarter, true), (quarter + 1, false)] {
        let both = [PhysicalProfile { phi_cw: phi, ..plain }, PhysicalProfile { phi_ccw: phi, ..plain }];
        assert_eq!(both.map(accepted), [fits; 2], "{phi} of {quarter}");
    }
    for (tracks, fits) in [(0, false), (1, true), (1024, true), (1025, false)] {
        let both = [PhysicalProfile { s_id: tracks, ..plain }, PhysicalProfile { s_od: tracks, ..plain }];
        assert_eq!(both.map(accepted), [fits; 2], "{tracks} tracks");
    }
    for (reach, fits) in [(0, false), (1, true), (1 << 32, true), ((1 << 32) + 1, false)] {
        assert_eq!(Interference::blocks(reach).check("x").is_ok(), fits, "{reach} blocks");
    }
}
