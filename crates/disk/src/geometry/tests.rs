use super::*;
use proptest::prelude::*;
use smrlab_units::{Blocks, Pba};
use std::collections::BTreeSet;

mod bands;
pub(crate) mod naive;

/// The same places as those of a hybrid layout, as groups and runs: repeated ones where the zone has a whole number of groups.
fn as_listed(hybrid: &GeometrySpec) -> GeometrySpec {
    let Layout::Hybrid { width } = hybrid.layout else { panic!("{:?}", hybrid.layout) };
    let g = Geometry::new(hybrid.clone()).unwrap();
    let mut out = GeometrySpec { layout: Layout::Listed, ..hybrid.clone() };
    let turn = |from: u64, to: u64| (to + REVOLUTION - from) % REVOLUTION;
    for (i, z) in hybrid.zones.iter().enumerate() {
        let (zone, used) = (i as u32, z.cylinders - z.spare_cylinders);
        let mine: Vec<&ZoneRun> = g.zone_runs().iter().filter(|s| s.zone == zone).collect();
        let width = width.min(used);
        let regular = used.is_multiple_of(width);
        let start = mine[0].base_skew;
        let step = if regular { mine[0].group_skew } else { 0 };
        out.groups.push(GroupSpec { zone, cylinders: if regular { width } else { used }, start, step });
        for seg in mine {
            for track in (0..seg.tracks).step_by(seg.width.divisor() as usize) {
                let p = seg.place(track);
                if regular && p.group > 0 {
                    break;
                }
                let last = seg.place(track + seg.width.divisor() - 1);
                let cylinder =
                    |p| seg.cylinder(p) - hybrid.zones[..i].iter().map(|z| z.cylinders).sum::<u32>();
                out.runs.push(RunSpec {
                    zone,
                    from: cylinder(p),
                    to: cylinder(last),
                    surface: seg.surface(p),
                    sectors: z.sectors,
                    spare_sectors: z.spare_sectors,
                    start: turn(start, seg.start(p)),
                    step: hybrid.cylinder_skew,
                });
            }
        }
    }
    out
}

pub(crate) fn any_spec() -> impl Strategy<Value = GeometrySpec> {
    let zone = (1u32..14, 1u32..12, 0u32..3, 0u32..3).prop_map(|(c, s, ss, sc)| ZoneSpec {
        cylinders: c,
        sectors: s,
        spare_sectors: ss.min(s - 1),
        spare_cylinders: sc.min(c - 1),
        ..ZoneSpec::plain(c, s)
    });
    let layout = prop_oneof![
        any::<bool>().prop_map(|alternate| Layout::Cylinder { alternate }),
        Just(Layout::Surface),
        (1u32..7).prop_map(|width| Layout::Hybrid { width }),
    ];
    let skew = prop_oneof![Just(0), Just(REVOLUTION / 4), 0..REVOLUTION];
    let defect = (0u32..40, 0u32..4, 0u32..12);
    (
        1u32..5,
        proptest::collection::vec(zone, 1..5),
        layout,
        any::<bool>(),
        skew.clone(),
        skew,
        proptest::collection::vec(defect, 0..6),
        any::<bool>(),
    )
        .prop_map(|(surfaces, zones, layout, inner, track_skew, cylinder_skew, defects, listed)| {
            let toward = if inner { Toward::Inner } else { Toward::Outer };
            let mut spec = GeometrySpec {
                surfaces,
                zones,
                layout,
                toward,
                track_skew,
                cylinder_skew,
                defects: Vec::new(),
                slips: Vec::new(),
                groups: Vec::new(),
                runs: Vec::new(),
                remaps: Vec::new(),
            };
            if listed && inner && matches!(layout, Layout::Hybrid { .. }) {
                spec = as_listed(&spec);
            }
            for (cylinder, surface, sector) in defects {
                spec.defects.push(Defect { cylinder, surface, sector });
                if spec.check("g").is_err() {
                    spec.defects.pop();
                }
            }
            spec
        })
        .prop_filter("every sector is slipped", |s| Geometry::new(s.clone()).is_ok())
}

proptest! {
    #[test]
    fn a_listed_layout_is_the_hybrid_one_that_it_spells_out(spec in any_spec(), width in 1u32..7) {
        let hybrid = GeometrySpec {
            layout: Layout::Hybrid { width },
            toward: Toward::Inner,
            defects: Vec::new(),
            groups: Vec::new(),
            runs: Vec::new(),
            ..spec
        };
        let listed = Geometry::new(as_listed(&hybrid)).unwrap();
        let g = Geometry::new(hybrid).unwrap();
        prop_assert_eq!((g.blocks(), g.tracks(), g.cylinders()), (listed.blocks(), listed.tracks(), listed.cylinders()));
        for pba in (0..g.blocks().0).map(Pba) {
            prop_assert_eq!(g.position(pba), listed.position(pba));
        }
        // A run of one track has no direction.
        let directed = listed.spec().runs.iter().all(|r| r.from != r.to);
        for t in (0..g.tracks()).map(TrackNo).filter(|_| directed) {
            prop_assert_eq!(g.neighbour(t, 1), listed.neighbour(t, 1));
        }
    }

    /// Surfaces of unequal tracks, and blocks on spare sectors.
    #[test]
    fn uneven_surfaces_and_remapped_blocks_have_places_of_their_own(
        spec in any_spec(), width in 1u32..7, less in proptest::collection::vec(0u32..3, 4), remaps in proptest::collection::vec((0u64..400, 0usize..50), 0..5),
    ) {
        let hybrid = GeometrySpec {
            layout: Layout::Hybrid { width }, toward: Toward::Inner, groups: Vec::new(), runs: Vec::new(), ..spec
        };
        let mut listed = as_listed(&GeometrySpec { defects: Vec::new(), ..hybrid.clone() });
        for r in &mut listed.runs {
            r.sectors -= less[r.surface as usize].min(r.sectors - r.spare_sectors - 1);
        }
        for z in &mut listed.zones {
            z.sectors = 0;
        }
        for r in &listed.runs {
            let z = &mut listed.zones[r.zone as usize];
            z.sectors = z.sectors.max(r.sectors);
        }
        listed.defects = hybrid.defects.into_iter().filter(|d| d.sector < 3).collect();
        let Ok(g) = Geometry::new(listed.clone()) else { return Ok(()) };
        let spare: Vec<Defect> = listed.defects.iter().copied()
            .filter(|d| g.raw_at(d.cylinder, d.surface, d.sector).is_some()).collect();
        let mut taken = BTreeSet::new();
        for (block, to) in remaps {
            if block < g.blocks().0 && !spare.is_empty() && taken.insert(to % spare.len()) && !listed.remaps.iter().any(|r| r.block == block) {
                listed.remaps.push(Remap { block, to: spare[to % spare.len()] });
            }
        }
        let distinct: BTreeSet<_> = listed.remaps.iter().map(|r| (r.to.cylinder, r.to.surface, r.to.sector)).collect();
        prop_assume!(distinct.len() == listed.remaps.len());
        let g = Geometry::new(listed.clone()).unwrap();
        let mut seen = BTreeSet::new();
        for pba in (0..g.blocks().0).map(Pba) {
            let p = g.position(pba);
            prop_assert_eq!(g.at(p.cylinder, p.surface, p.sector), Some(pba));
            prop_assert!(seen.insert((p.cylinder, p.surface, p.sector)) && p.angle < REVOLUTION);
        }
        for r in &listed.remaps {
            let p = g.position(Pba(r.block));
            prop_assert_eq!((p.cylinder, p.surface, p.sector), (r.to.cylinder, r.to.surface, r.to.sector));
        }
    }

    #[test]
    fn every_block_has_its_own_place_and_comes_back(spec in any_spec()) {
        let g = Geometry::new(spec.clone()).unwrap();
        let mut seen = BTreeSet::new();
        for pba in (0..g.blocks().0).map(Pba) {
            let p = g.position(pba);
            prop_assert_eq!(g.at(p.cylinder, p.surface, p.sector), Some(pba));
            prop_assert!(seen.insert((p.cylinder, p.surface, p.sector)) && p.angle < REVOLUTION);
            let mut zones = spec.zones.iter().scan(0, |end, z| {
                *end += z.cylinders;
                Some(*end - z.spare_cylinders..*end)
            });
            prop_assert!(!zones.any(|spares| spares.contains(&p.cylinder)), "spares are at a zone's inner end");
            let t = g.track_of(pba);
            prop_assert!(g.track_start(t) <= pba && pba < g.track_start(t) + g.track_blocks(t));
        }
        let all: u64 = spec.zones.iter().map(|z| {
            u64::from(z.cylinders - z.spare_cylinders) * u64::from(z.sectors - z.spare_sectors)
        }).sum::<u64>() * u64::from(spec.surfaces);
        let slipped: BTreeSet<_> = spec.defects.iter().map(|d| (d.cylinder, d.surface, d.sector)).collect();
        let holes = (0..60).flat_map(|c| (0..4).flat_map(move |s| (0..12).map(move |k| (c, s, k))))
            .filter(|&(c, s, k)| g.at(c, s, k).is_some()).count() as u64;
        prop_assert_eq!(holes, g.blocks().0);
        prop_assert!(g.blocks().0 <= all && all - g.blocks().0 <= slipped.len() as u64);
    }

    #[test]
    fn tracks_of_a_stroke_lie_side_by_side(spec in any_spec()) {
        let spares = spec.zones.iter().any(|z| z.spare_cylinders > 0);
        let g = Geometry::new(spec).unwrap();
        let mut next = 0;
        for s in g.strokes() {
            prop_assert_eq!((s.first.0, s.tracks % s.unit), (next, 0));
            next += s.tracks;
            if spares || matches!(g.spec().layout, Layout::Cylinder { alternate: true }) {
                continue;
            }
            for t in s.first.0..s.first.0 + s.tracks - s.unit {
                prop_assert_eq!(g.following(TrackNo(t), 1), Some(TrackNo(t + s.unit)));
            }
        }
        prop_assert_eq!(next, g.tracks());
    }

    #[test]
    fn neighbours_are_on_the_same_surface(spec in any_spec(), j in 0i64..4) {
        let g = Geometry::new(spec).unwrap();
        let place = |t: TrackNo| {
            let (i, rel) = g.zone_run_of(t);
            let seg = &g.zone_runs()[i];
            (i64::from(seg.cylinder(seg.place(rel))), seg.surface(seg.place(rel)), seg.forward(seg.place(rel)))
        };
        for t in (0..g.tracks()).map(TrackNo) {
            if let Some(n) = g.neighbour(t, j) {
                let ((c, s, forward), (c2, s2, _)) = (place(t), place(n));
                prop_assert_eq!((s2, c2 - c), (s, if forward { j } else { -j }));
            }
        }
    }

    /// Each switch adds its skew, across zones too, and nothing is rounded; what lies side by side counts in whole sectors.
    #[test]
    fn skew_adds_up_from_track_to_track(spec in any_spec()) {
        let g = Geometry::new(GeometrySpec { defects: Vec::new(), ..spec }).unwrap();
        let (mut angle, mut last) = (0u64, g.position(Pba(0)));
        for t in (0..g.tracks()).map(TrackNo) {
            let p = g.position(g.track_start(t));
            if t.0 > 0 {
                let head_only = p.cylinder == last.cylinder;
                angle += if head_only { g.spec().track_skew } else { g.spec().cylinder_skew };
                angle %= REVOLUTION;
            }
            let n = u64::from(g.zone_of(t).sectors);
            for i in 0..g.track_blocks(t).0 {
                let want = (angle + i * REVOLUTION / n) % REVOLUTION;
                prop_assert_eq!(g.position(g.track_start(t) + Blocks(i)).angle, want, "track {}, block {}", t.0, i);
            }
            last = p;
        }
        for stroke in g.strokes() {
            let tracks = stroke.first.0..stroke.first.0 + stroke.tracks;
            for t in tracks.clone().map(TrackNo) {
                let zone = g.zone_of(t);
                let behind = t.0..tracks.end.min(zone.first_track.0 + zone.tracks);
                // Those of a cylinder by itself.
                for of in behind.take(if stroke.unit == 1 { 20 } else { 1 }).map(TrackNo) {
                    let n = u64::from(zone.sectors);
                    let angle = g.position(g.track_start(of)).angle;
                    let nearest = (angle * n * 2 + REVOLUTION) / (2 * REVOLUTION) % n;
                    prop_assert_eq!(g.start_slots(t).of(of.0 - t.0), nearest, "track {} from {}", of.0, t.0);
                }
            }
        }
    }
}

#[test]
fn faults_are_all_reported_with_their_place() {
    let mut spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(0, 5), ZoneSpec::plain(3, 0)]);
    spec.surfaces = 65;
    let e = Geometry::new(spec).unwrap_err().to_string();
    for part in ["geometry.zones[0].cylinders", "geometry.zones[1].sectors", "from 1 to 64"] {
        assert!(e.contains(part), "{e}");
    }
}

/// Rows of a stroke are tracks, or the cylinders of a layout that goes round the surfaces.
#[test]
fn rows_are_counted_from_the_beginning_of_a_stroke() {
    let (round, serpentine) = (Layout::Cylinder { alternate: true }, Layout::Hybrid { width: 3 });
    for (layout, rows) in [
        (round, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        (Layout::Surface, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]),
        (serpentine, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]),
    ] {
        let zones = vec![ZoneSpec::plain(6, 4)];
        let spec = GeometrySpec { surfaces: 2, layout, ..GeometrySpec::single_surface(zones) };
        let g = Geometry::new(spec).unwrap();
        assert_eq!((0..12).map(|t| g.row_of(TrackNo(t))).collect::<Vec<_>>(), rows, "{layout:?}");
    }
}

/// The first block and the last may lie elsewhere; two blocks on one sector may not.
#[test]
fn each_remapped_block_has_a_sector_of_its_own() {
    let defect = |sector| Defect { cylinder: 2, surface: 0, sector };
    let on = |remaps: &[(u64, u32)]| {
        let remaps = remaps.iter().map(|&(block, sector)| Remap { block, to: defect(sector) }).collect();
        let plain = GeometrySpec::single_surface(vec![ZoneSpec::plain(4, 5)]);
        Geometry::new(GeometrySpec { defects: vec![defect(1), defect(3)], remaps, ..plain })
    };
    let g = on(&[(17, 3), (0, 1)]).unwrap();
    let sector = |pba| (g.position(Pba(pba)).cylinder, g.position(Pba(pba)).sector);
    assert_eq!([0, 1, 16, 17].map(sector), [(2, 1), (0, 1), (3, 3), (2, 3)]);
    assert_eq!((g.at(2, 0, 3), g.at(3, 0, 4), g.at(0, 0, 0)), (Some(Pba(17)), None, None));
    for (remaps, said) in [
        ([(0, 1), (0, 3)], "block 0 is remapped twice"),
        ([(0, 1), (9, 1)], "blocks 0 and 9 are on one sector"),
        ([(0, 1), (18, 3)], "remaps[1]"),
    ] {
        let error = on(&remaps).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// Serpentines by hand: 2 surfaces, 4 cylinders.
#[test]
fn layouts_run_as_their_names_say() {
    let order = |layout| {
        let spec =
            GeometrySpec { surfaces: 2, layout, ..GeometrySpec::single_surface(vec![ZoneSpec::plain(4, 1)]) };
        let g = Geometry::new(spec).unwrap();
        (0..8).map(|p| g.position(Pba(p))).map(|p| (p.cylinder, p.surface)).collect::<Vec<_>>()
    };
    assert_eq!(order(Layout::Surface)[3..6], [(3, 0), (3, 1), (2, 1)]);
    assert_eq!(order(Layout::Hybrid { width: 2 })[1..6], [(1, 0), (1, 1), (0, 1), (2, 0), (3, 0)]);
    assert_eq!(order(Layout::Cylinder { alternate: false })[..4], [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert_eq!(order(Layout::Cylinder { alternate: true })[..4], [(0, 0), (0, 1), (1, 1), (1, 0)]);
}

/// Of the longest tracks that are accepted each sector begins where it should, to the unit; longer ones are refused.
#[test]
fn every_sector_of_the_longest_track_begins_at_its_angle() {
    let of = |sectors| GeometrySpec::single_surface(vec![ZoneSpec::plain(1, sectors)]);
    let g = Geometry::new(of(MOST_SECTORS)).unwrap();
    let n = u64::from(MOST_SECTORS);
    assert!((0..n).all(|i| g.position(Pba(i)).angle == i * REVOLUTION / n));
    let said = Geometry::new(of(MOST_SECTORS + 1)).unwrap_err().to_string();
    assert!(said.contains("sectors") && said.contains("16384"), "{said}");
}

/// Each number of a listed run up to its bound, and at it: a place of the drive, a sector for data, angles below a revolution, zones in order.
#[test]
fn listed_runs_lie_within_their_bounds() {
    let zones = vec![ZoneSpec::plain(4, 9), ZoneSpec::plain(6, 7)];
    let hybrid = GeometrySpec {
        surfaces: 2,
        layout: Layout::Hybrid { width: 2 },
        ..GeometrySpec::single_surface(zones)
    };
    let listed = as_listed(&hybrid);
    let told = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = listed.clone();
        change(&mut spec.runs[0]);
        Geometry::new(spec).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(told(&|_| ()), "");
    let (place, data) =
        ("a surface of the drive, cylinders of the zone's group", "a sector for data, angles below");
    let changes: [(&dyn Fn(&mut RunSpec), &str); 10] = [
        (&|r| r.spare_sectors = r.sectors - 1, ""),
        (&|r| r.spare_sectors = r.sectors, data),
        (&|r| r.sectors = 0, data),
        (&|r| r.start = REVOLUTION - 1, ""),
        (&|r| r.start = REVOLUTION, data),
        (&|r| r.step = REVOLUTION - 1, ""),
        (&|r| r.step = REVOLUTION, data),
        (&|r| r.surface = 2, place),
        (&|r| r.to = 2, place),
        (&|r| r.zone = 1, "zones in ascending order"),
    ];
    for (i, (change, said)) in changes.into_iter().enumerate() {
        let e = told(change);
        assert!(e.is_empty() == said.is_empty() && e.contains(said), "change {i}: {e}");
    }
}

/// Three cylinders of ten sectors and two of eight, on two surfaces.
#[test]
fn a_defect_is_a_sector_of_the_drive() {
    let zones = vec![ZoneSpec::plain(3, 10), ZoneSpec::plain(2, 8)];
    let plain = GeometrySpec { surfaces: 2, ..GeometrySpec::single_surface(zones) };
    for (cylinder, surface, sector, there) in [
        (2, 1, 9, true),
        (2, 1, 10, false),
        (2, 2, 9, false),
        (3, 1, 7, true),
        (3, 1, 8, false),
        (4, 1, 7, true),
        (4, 2, 7, false),
        (5, 1, 7, false),
    ] {
        let defects =
            vec![Defect { cylinder: 0, surface: 0, sector: 0 }, Defect { cylinder, surface, sector }];
        let checked = GeometrySpec { defects, ..plain.clone() }.check("g").map_err(|e| e.to_string());
        let named = checked.as_ref().is_err_and(|e| e.contains("g.defects[1]") && !e.contains("[0]"));
        assert!(checked.is_ok() == there && named != there, "{cylinder} {surface} {sector}: {checked:?}");
    }
}
