//! A second model of geometries, from their description: all tracks one after the other, and all of their sectors.

use super::*;
use smrlab_units::rng::Rng;
use std::collections::BTreeMap;

/// A track that holds blocks, in their order.
struct Track {
    zone: usize,
    /// From the outermost.
    cylinder: u32,
    surface: u32,
    sectors: u32,
    usable: u32,
    start: u64,
    /// How many rows it is behind the first one of its stroke, and whether blocks rise with the cylinders there.
    row: u64,
    inwards: bool,
}

/// The cylinders of each zone that hold blocks, in the order of blocks, as its number and theirs from the side of block 0.
fn cylinders(spec: &GeometrySpec) -> Vec<(usize, Vec<u32>)> {
    let (mut first, mut out) = (0, Vec::new());
    for (zone, z) in spec.zones.iter().enumerate() {
        out.push((zone, (first..first + z.cylinders - z.spare_cylinders).collect::<Vec<_>>()));
        first += z.cylinders;
    }
    if spec.toward == Toward::Outer {
        out.reverse();
        out.iter_mut().for_each(|(_, all)| *all = all.iter().rev().map(|c| first - 1 - c).collect());
    }
    out
}

/// A track: its zone, cylinder (from the side of block 0), surface and row, and whether its stroke goes back.
type Step = (usize, u32, u32, usize, bool);

fn turned<T: Clone>(list: &[T], back: bool) -> Vec<T> {
    if back { list.iter().rev().cloned().collect() } else { list.to_vec() }
}

/// The tracks of the layouts that are regular, in the order of blocks.
fn steps(spec: &GeometrySpec) -> Vec<Step> {
    let (zones, mut out) = (cylinders(spec), Vec::new());
    let surfaces: Vec<u32> = (0..spec.surfaces).collect();
    let mut stroke = |tracks: &[(usize, u32)], s: u32| {
        let back = s % 2 == 1;
        out.extend((0..).zip(turned(tracks, back)).map(|(row, (zone, c))| (zone, c, s, row, back)));
    };
    match spec.layout {
        Layout::Surface => {
            let all: Vec<_> = zones.iter().flat_map(|(z, list)| list.iter().map(|c| (*z, *c))).collect();
            surfaces.iter().for_each(|s| stroke(&all, *s));
        }
        Layout::Hybrid { width } => {
            for (zone, list) in &zones {
                let list: Vec<_> = list.iter().map(|c| (*zone, *c)).collect();
                for group in list.chunks(width as usize) {
                    surfaces.iter().for_each(|s| stroke(group, *s));
                }
            }
        }
        _ => {
            let all = zones.iter().flat_map(|(z, list)| (0..).zip(list).map(move |(i, c)| (*z, i, *c)));
            for (row, (zone, i, cylinder)) in all.enumerate() {
                let back = match spec.layout {
                    Layout::Cylinder { alternate } => alternate && cylinder % 2 == 1,
                    _ => i % 2 == 1,
                };
                out.extend(turned(&surfaces, back).into_iter().map(|s| (zone, cylinder, s, row, false)));
            }
        }
    }
    out
}

fn tracks(spec: &GeometrySpec) -> Vec<Track> {
    if spec.layout == Layout::Listed {
        return listed(spec);
    }
    let all: u32 = spec.zones.iter().map(|z| z.cylinders).sum();
    let outwards = spec.toward == Toward::Outer;
    let mut out: Vec<Track> = Vec::new();
    for (zone, forward, surface, row, back) in steps(spec) {
        let cylinder = if outwards { all - 1 - forward } else { forward };
        let z = &spec.zones[zone];
        let skews = z.skew.map_or((spec.track_skew, spec.cylinder_skew), |s| (s.track, s.cylinder));
        let start = match (out.last(), z.skew) {
            (before, Some(own)) if before.is_none_or(|b| b.zone != zone) => own.start,
            (None, _) => 0,
            (Some(b), _) if b.cylinder == cylinder => b.start + skews.0,
            (Some(b), _) => b.start + skews.1,
        };
        let (sectors, usable) = (z.sectors, z.sectors - z.spare_sectors);
        let (start, row, inwards) = (start % REVOLUTION, row as u64, back == outwards);
        out.push(Track { zone, cylinder, surface, sectors, usable, start, row, inwards });
    }
    out
}

/// Those of a listed layout: group by group, run by run.
fn listed(spec: &GeometrySpec) -> Vec<Track> {
    let mut out = Vec::new();
    for ((zone, list), group) in cylinders(spec).into_iter().zip(&spec.groups) {
        for (i, cylinders) in (0..).zip(list.chunks(group.cylinders as usize)) {
            for run in spec.runs.iter().filter(|r| r.zone as usize == zone) {
                let (low, high) = (run.from.min(run.to) as usize, run.from.max(run.to) as usize);
                for (row, cylinder) in (0..).zip(turned(&cylinders[low..=high], run.to < run.from)) {
                    let start = group.start + i * group.step + run.start + row * run.step;
                    out.push(Track {
                        zone,
                        cylinder,
                        surface: run.surface,
                        sectors: run.sectors,
                        usable: run.sectors - run.spare_sectors,
                        start: start % REVOLUTION,
                        row,
                        inwards: run.from <= run.to,
                    });
                }
            }
        }
    }
    out
}

/// Which of all sectors, given as (track, sector) in the order of blocks, hold none.
fn left_out(spec: &GeometrySpec, tracks: &[Track], all: &[(usize, u32)]) -> BTreeSet<usize> {
    let place = |i: usize| (tracks[all[i].0].cylinder, tracks[all[i].0].surface, all[i].1);
    let bad: BTreeSet<_> = spec.defects.iter().map(|d| (d.cylinder, d.surface, d.sector)).collect();
    let mut out: BTreeSet<usize> = (0..all.len()).filter(|i| bad.contains(&place(*i))).collect();
    for (zone, z) in spec.zones.iter().enumerate() {
        let own: Vec<usize> = (0..all.len()).filter(|i| tracks[all[*i].0].zone == zone).collect();
        let slips = spec.slips.iter().filter(|s| s.zone as usize == zone);
        let slipped: BTreeSet<usize> = slips
            .flat_map(|s| {
                (s.first..s.first + u64::from(s.blocks)).filter_map(|n| own.get(n as usize)).copied()
            })
            .collect();
        out.extend(own.iter().take(z.front as usize).chain(own.iter().rev().take(z.end as usize)));
        let each = (z.sectors - z.spare_sectors) * spec.surfaces * z.range_cylinders;
        for range in own.chunks_exact(each as usize).filter(|_| z.range_spares > 0) {
            let good = range.iter().filter(|i| !slipped.contains(i));
            out.extend(good.skip((each - z.range_spares) as usize));
        }
        out.extend(slipped);
    }
    out
}

fn below(rng: &mut Rng, n: u32) -> u32 {
    rng.below(u64::from(n)) as u32
}

fn angle(rng: &mut Rng) -> u64 {
    rng.below(REVOLUTION)
}

/// One more zone of a listed layout: its group and a run on each surface.
fn listed_zone(g: &mut GeometrySpec, zone: u32, spare_cylinders: u32, rng: &mut Rng) -> ZoneSpec {
    let (groups, width) = (1 + below(rng, 3), 1 + below(rng, 3));
    g.groups.push(GroupSpec { zone, cylinders: width, start: angle(rng), step: angle(rng) });
    let mut longest = 0;
    for surface in (0..g.surfaces).rev() {
        let (from, to, sectors) = (below(rng, width), below(rng, width), 2 + below(rng, 6));
        let (spare_sectors, start, step) = (below(rng, 2), angle(rng), angle(rng));
        g.runs.push(RunSpec { zone, from, to, surface, sectors, spare_sectors, start, step });
        longest = longest.max(sectors);
    }
    ZoneSpec { spare_cylinders, ..ZoneSpec::plain(groups * width + spare_cylinders, longest) }
}

/// What [`any_spec`] does not have: skews of zones, what zones leave out, slips, groups and runs of any kind.
pub(crate) fn any_geometry(rng: &mut Rng) -> GeometrySpec {
    let layout = match rng.below(6) {
        0 => Layout::Surface,
        1 => Layout::Hybrid { width: 1 + below(rng, 5) },
        2 => Layout::Listed,
        3 => Layout::ZoneAlternate,
        n => Layout::Cylinder { alternate: n == 4 },
    };
    let (listed, regular) =
        (layout == Layout::Listed, matches!(layout, Layout::Surface | Layout::Hybrid { .. }));
    let toward = if !listed && rng.one_in(2) { Toward::Outer } else { Toward::Inner };
    let (surfaces, track_skew, cylinder_skew) = (1 + below(rng, 3), angle(rng), angle(rng));
    let plain = GeometrySpec::single_surface(Vec::new());
    let mut g = GeometrySpec { surfaces, layout, toward, track_skew, cylinder_skew, ..plain };
    for zone in 0..1 + below(rng, 3) {
        let (cylinders, sectors) = (1 + below(rng, 8), 3 + below(rng, 6));
        let spare_cylinders = below(rng, cylinders.min(3));
        let mut z = if listed {
            listed_zone(&mut g, zone, spare_cylinders, rng)
        } else {
            ZoneSpec { spare_cylinders, spare_sectors: below(rng, 3), ..ZoneSpec::plain(cylinders, sectors) }
        };
        if !listed && !regular {
            let own = ZoneSkew { track: angle(rng), cylinder: angle(rng), start: angle(rng) };
            z.skew = rng.one_in(2).then_some(own);
            (z.front, z.end) = (below(rng, 4), below(rng, 4));
            (z.range_spares, z.range_cylinders) = (below(rng, 3), 1 + below(rng, 3));
        }
        g.zones.push(z);
        for _ in 0..if regular { 0 } else { below(rng, 3) } {
            g.slips.push(Slip { zone, first: rng.below(60), blocks: 1 + below(rng, 9) });
        }
    }
    for _ in 0..below(rng, 4) {
        g.defects.push(Defect {
            cylinder: below(rng, 20),
            surface: below(rng, surfaces),
            sector: below(rng, 8),
        });
        if g.check("").is_err() {
            g.defects.pop();
        }
    }
    g
}

/// Of a geometry: its tracks, all sectors of these as (track, sector), and which of these sectors each block would lie on, and lies on.
struct Walked {
    tracks: Vec<Track>,
    all: Vec<(usize, u32)>,
    home: Vec<usize>,
    at: Vec<usize>,
}

impl Walked {
    fn check_blocks(&self, g: &Geometry) {
        let mut places = BTreeMap::new();
        for (pba, (i, home)) in (0..).map(Pba).zip(self.at.iter().zip(&self.home)) {
            let (t, sector) = (&self.tracks[self.all[*i].0], self.all[*i].1);
            let angle = (t.start + u64::from(sector) * REVOLUTION / u64::from(t.sectors)) % REVOLUTION;
            let (cylinder, surface) = (t.cylinder, t.surface);
            assert_eq!(
                g.position(pba),
                Position { cylinder, surface, sector, angle },
                "{pba} of {:?}",
                g.spec()
            );
            assert_eq!(g.track_of(pba).0, self.all[*home].0 as u64, "{pba} of {:?}", g.spec());
            places.insert((cylinder, surface, sector), pba);
            // Blocks that are said to follow each other do.
            let even = g.even(pba);
            let [first, last] = [even.blocks.start, even.blocks.end - 1].map(|b| self.at[b as usize]);
            let follow = first as u64 == even.raw(Pba(even.blocks.start))
                && last as u64 == even.raw(Pba(even.blocks.end - 1));
            assert!(even.has(pba, 1) && follow, "{pba} of {:?}", g.spec());
        }
        let surfaces = g.surfaces();
        let tracks = (0..=g.cylinders()).flat_map(|c| (0..=surfaces).map(move |s| (c, s)));
        for place in tracks.flat_map(|(c, s)| (0..9).map(move |n| (c, s, n))) {
            let there = g.at(place.0, place.1, place.2);
            assert_eq!(there, places.get(&place).copied(), "{place:?} of {:?}", g.spec());
        }
    }

    fn check_tracks(&self, g: &Geometry) {
        let before = |track: usize| self.home.partition_point(|h| self.all[*h].0 < track) as u64;
        for (i, t) in self.tracks.iter().enumerate() {
            let no = TrackNo(i as u64);
            let told = (g.track_start(no).0, g.track_blocks(no).0, g.sectors(no), g.usable_sectors(no));
            let wanted = (before(i), before(i + 1) - before(i), t.sectors, u64::from(t.usable));
            assert_eq!((told, g.row_of(no)), (wanted, t.row), "track {i} of {:?}", g.spec());
            for by in [-2, 1] {
                let cylinder = i64::from(t.cylinder) + if t.inwards { by } else { -by };
                let there = |o: &Track| i64::from(o.cylinder) == cylinder && o.surface == t.surface;
                let beside = self.tracks.iter().position(there).map(|i| TrackNo(i as u64));
                assert_eq!(g.neighbour(no, by), beside, "{by} from track {i} of {:?}", g.spec());
            }
        }
        for zone in 0..g.spec().zones.len() {
            let own = self.home.iter().filter(|i| self.tracks[self.all[**i].0].zone == zone).count() as u64;
            let told = g.zones().filter(|i| i.zone as usize == zone);
            assert_eq!(told.map(|i| i.blocks.0).sum::<u64>(), own, "zone {zone} of {:?}", g.spec());
        }
    }
}

#[test]
fn every_block_lies_where_a_walk_over_the_tracks_finds_it() {
    let (mut rng, mut made, mut remapped) = (Rng::new(28), 0, 0);
    while made < 250 {
        let mut spec = any_geometry(&mut rng);
        if Geometry::new(spec.clone()).is_err() {
            continue;
        }
        made += 1;
        let tracks = tracks(&spec);
        let sectors = |(i, t): (usize, &Track)| (0..t.usable).map(move |s| (i, s));
        let all: Vec<(usize, u32)> = tracks.iter().enumerate().flat_map(sectors).collect();
        let without = left_out(&spec, &tracks, &all);
        let home: Vec<usize> = (0..all.len()).filter(|i| !without.contains(i)).collect();
        let mut at = home.clone();
        for (&spare, _) in without.iter().zip(0..rng.below(4)) {
            let block = rng.below(home.len() as u64);
            let t = &tracks[all[spare].0];
            let to = Defect { cylinder: t.cylinder, surface: t.surface, sector: all[spare].1 };
            if !spec.remaps.iter().any(|r| r.block == block) {
                spec.remaps.push(Remap { block, to });
                at[block as usize] = spare;
                remapped += 1;
            }
        }
        let g = Geometry::new(spec).unwrap();
        assert_eq!((g.blocks().0, g.tracks()), (at.len() as u64, tracks.len() as u64), "{:?}", g.spec());
        let walked = Walked { tracks, all, home, at };
        walked.check_blocks(&g);
        walked.check_tracks(&g);
    }
    assert!(remapped > 100, "{remapped}");
}
