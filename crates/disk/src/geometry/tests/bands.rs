//! Bands over geometries: drawn ones, and some by hand.

use super::*;
use crate::bands::{BandId, BandLayout, Bands};

proptest! {
    #[test]
    fn bands_map_both_ways(spec in any_spec(), tracks in 1u64..5, head_width in 1u64..4, raz in 0u64..16) {
        let g = Geometry::new(spec).unwrap();
        let Ok(b) = Bands::new(&g, BandLayout { tracks, head_width, random_access: raz }) else { return Ok(()) };
        let mut data = 0;
        let mut last = None;
        for id in (0..b.len()).map(BandId) {
            let band = b.band(id);
            prop_assert_eq!(b.first_data(id), data);
            prop_assert_eq!(g.track_start(band.first_track), band.first);
            prop_assert_eq!(g.track_start(TrackNo(band.first_track.0 + band.tracks)), band.first + band.blocks);
            prop_assert!(last.is_none_or(|end| end <= band.first) && band.first.0 < g.blocks().0);
            for o in 0..band.blocks.0 {
                let pba = band.first + Blocks(o);
                prop_assert_eq!(b.band_of(pba), Some((id, Blocks(o))));
                prop_assert_eq!(b.locate(data), (id, Blocks(o), pba));
                prop_assert_eq!(b.around(pba), Some(band.first.span(band.blocks)));
                prop_assert_eq!(b.band_at(data), (id, band.first.span(band.blocks), Blocks(o)));
                data += 1;
            }
            last = Some(band.first + band.blocks);
        }
        prop_assert_eq!(data, b.data_blocks().0);
        let mapped = (0..g.blocks().0).filter(|&p| b.band_of(Pba(p)).is_some()).count() as u64;
        prop_assert_eq!(mapped, data, "guards belong to no band");
        for p in 0..g.blocks().0 {
            prop_assert_eq!(b.around(Pba(p)).is_some(), b.band_of(Pba(p)).is_some());
        }
    }

    #[test]
    fn no_write_in_a_band_reaches_another(spec in any_spec(), tracks in 1u64..5, w in 1u64..4, raz in 0u64..16) {
        let g = Geometry::new(spec).unwrap();
        let Ok(b) = Bands::new(&g, BandLayout { tracks, head_width: w, random_access: raz }) else { return Ok(()) };
        let band_at = |t: TrackNo| (0..b.len()).find(|&i| {
            let x = b.band(BandId(i));
            (x.first_track.0..x.first_track.0 + x.tracks).contains(&t.0)
        });
        for t in (0..g.tracks()).map(TrackNo) {
            let own = band_at(t);
            for hit in (1..w as u32).filter_map(|j| g.following(t, j)) {
                prop_assert!(own.is_none() || band_at(hit).is_none_or(|h| Some(h) == own), "{t:?} hits {hit:?}");
            }
        }
        if let Some(r) = b.random_access() {
            for i in 0..r.usable {
                prop_assert_eq!(band_at(r.track(i)), None);
                for hit in (1..w as u32).filter_map(|j| g.following(r.track(i), j)) {
                    prop_assert_eq!(band_at(hit), None);
                    prop_assert!((0..r.usable).all(|k| r.track(k) != hit));
                }
            }
        }
    }
}

/// The only block of the last band is slipped, and the medium ends there.
#[test]
fn a_band_without_blocks_at_the_end_is_left_out() {
    let spec = |defects| GeometrySpec {
        surfaces: 4,
        layout: Layout::Hybrid { width: 2 },
        defects,
        ..GeometrySpec::single_surface(vec![ZoneSpec::plain(1, 1), ZoneSpec::plain(3, 1)])
    };
    let layout = BandLayout { tracks: 1, head_width: 1, random_access: 0 };
    let last = Geometry::new(spec(Vec::new())).unwrap().position(Pba(15));
    let end = Defect { cylinder: last.cylinder, surface: last.surface, sector: 0 };
    for defects in [vec![Defect { cylinder: 0, surface: 3, sector: 0 }], vec![end]] {
        let g = Geometry::new(spec(defects.clone())).unwrap();
        let b = Bands::new(&g, layout).unwrap();
        assert_eq!(b.data_blocks(), Blocks(15));
        assert_eq!(b.len(), if defects[0] == end { 15 } else { 16 }, "one inside only holds nothing");
        assert!((0..b.len()).all(|i| b.start(BandId(i)).0 < 15));
    }
    let all = (0..4).map(|surface| Defect { cylinder: 0, surface, sector: 0 });
    let tail = (1..4).flat_map(|cylinder| (0..4).map(move |surface| Defect { cylinder, surface, sector: 0 }));
    let g = Geometry::new(spec(all.skip(1).chain(tail).collect())).unwrap();
    assert_eq!(Bands::new(&g, layout).unwrap().len(), 1);
}

/// Sheet 003, 1.1: 2000 bands of 4 + 1 tracks of 100 blocks, 100 random-access tracks of which 50 are usable.
#[test]
fn the_he_and_du_example() {
    let g = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(10_100, 100)])).unwrap();
    let b = Bands::new(&g, BandLayout { tracks: 4, head_width: 2, random_access: 100 }).unwrap();
    assert_eq!((b.len(), b.data_blocks()), (2000, Blocks(800_000)));
    assert_eq!(b.random_access().unwrap().usable, 50);
    assert_eq!(b.band(BandId(1)).first_track, TrackNo(105));
}

/// By hand: 2 surfaces, groups of 10 cylinders; strokes of 10 tracks. 23 tracks set aside are two strokes and 3 tracks of the third.
#[test]
fn the_random_access_zone_may_be_longer_than_a_stroke() {
    let layout = Layout::Hybrid { width: 10 };
    let spec =
        GeometrySpec { surfaces: 2, layout, ..GeometrySpec::single_surface(vec![ZoneSpec::plain(40, 5)]) };
    let g = Geometry::new(spec).unwrap();
    let b = Bands::new(&g, BandLayout { tracks: 2, head_width: 3, random_access: 23 }).unwrap();
    // Three usable tracks of each stroke of 10, the third one at 6 with its reach of two behind it; one of the last three.
    let r = b.random_access().unwrap();
    let usable: Vec<u64> = (0..r.usable).map(|i| r.track(i).0).collect();
    assert_eq!(usable, [0, 3, 6, 10, 13, 16, 20]);
    // Bands of 2 + 2 tracks: one behind track 23, two in each of the five strokes that follow.
    assert_eq!(
        (b.len(), b.band(BandId(0)).first_track, b.band(BandId(1)).first_track),
        (11, TrackNo(23), TrackNo(30))
    );
    assert_eq!(b.band(BandId(10)).first_track, TrackNo(74));
    // Just whole strokes, and one more than there are.
    let at = |n| Bands::new(&g, BandLayout { tracks: 2, head_width: 3, random_access: n });
    assert_eq!(at(20).unwrap().band(BandId(0)).first_track, TrackNo(20));
    assert!(at(81).unwrap_err().to_string().contains("from 0 to 80"));
}

#[test]
fn plain_blocks_make_bands_with_guards() {
    let g = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(100, 10)])).unwrap();
    let b = Bands::of_blocks(&g, Pba(0), (Blocks(90), Blocks(19)), u64::MAX).unwrap();
    assert_eq!((b.len(), b.data_blocks()), (9, Blocks(810)));
    assert_eq!(b.band_of(Pba(89)), Some((BandId(0), Blocks(89))));
    assert_eq!((b.band_of(Pba(90)), b.band_of(Pba(109))), (None, Some((BandId(1), Blocks(0)))));
    assert_eq!(Bands::of_blocks(&g, Pba(0), (Blocks(90), Blocks(19)), 2).unwrap().len(), 2);
    // The last band has its guard, too: of 1000 blocks nine bands of 91 with 20 behind each are 999, and of ten of 82 the last one's
    // guard would end behind the drive.
    let bands =
        |blocks, guard| Bands::of_blocks(&g, Pba(0), (Blocks(blocks), Blocks(guard)), u64::MAX).unwrap();
    assert_eq!([(91, 20), (82, 20), (80, 20)].map(|(blocks, guard)| bands(blocks, guard).len()), [9, 9, 10]);
}
