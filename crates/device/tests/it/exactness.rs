//! The run map against a plain model of a shingled medium that destroys every sector forwards, as a head does, by the
//! disk's own definition of interference.

use proptest::prelude::*;
use smrlab_device::medium::{Medium, Mode, Reading};
use smrlab_device::shingle::Shingle;
use smrlab_device::store::Memory;
use smrlab_device::tracks::Tracks;
use smrlab_disk::geometry::{Defect, Layout, REVOLUTION, Toward};
use smrlab_disk::{BlockProfile, Geometry, GeometrySpec, Interference, ZoneSpec};
use smrlab_units::{Blocks, Pba};
use std::sync::Arc;

/// Which write each sector holds.
struct Plain {
    geometry: Arc<Geometry>,
    head: Interference,
    holds: Vec<u64>,
}

impl Plain {
    fn write(&mut self, start: u64, end: u64, stamp: u64) {
        self.holds[start as usize..end as usize].fill(stamp);
        let holds = &mut self.holds;
        self.head.victims(&self.geometry, Pba(start), Blocks(end - start), &mut |r| {
            holds[r.start as usize..r.end as usize].fill(stamp);
        });
    }
}

fn geometry() -> impl Strategy<Value = Arc<Geometry>> {
    let zone = (2u32..7, 2u32..24, 0u32..3);
    let layout = prop_oneof![
        Just(Layout::Surface),
        any::<bool>().prop_map(|alternate| Layout::Cylinder { alternate }),
        Just(Layout::ZoneAlternate),
        (1u32..4).prop_map(|width| Layout::Hybrid { width }),
    ];
    let skews = (0u64..8, 0u64..8);
    let defects = prop::collection::vec((0u32..8, 0u32..3, 0u32..24), 0..6);
    (prop::collection::vec(zone, 1..4), layout, 1u32..4, skews, any::<bool>(), defects).prop_map(
        |(zones, layout, surfaces, (skew, switch), inner, defects)| {
            let zone = |(cylinders, sectors, spare): (u32, u32, u32)| ZoneSpec {
                spare_sectors: spare.min(sectors - 1),
                spare_cylinders: spare.min(1),
                ..ZoneSpec::plain(cylinders, sectors)
            };
            let mut spec = GeometrySpec::single_surface(zones.into_iter().map(zone).collect());
            (spec.surfaces, spec.layout) = (surfaces, layout);
            spec.toward = if inner { Toward::Inner } else { Toward::Outer };
            (spec.track_skew, spec.cylinder_skew) = (switch * REVOLUTION / 9, skew * REVOLUTION / 11);
            let whole = spec.clone();
            let cylinders: u32 = spec.zones.iter().map(|z| z.cylinders).sum();
            let sectors = spec.zones.iter().map(|z| z.sectors).min().unwrap();
            let slipped = |(cylinder, surface, sector): (u32, u32, u32)| Defect {
                cylinder: cylinder % cylinders,
                surface: surface % surfaces,
                sector: sector % sectors,
            };
            spec.defects = defects.into_iter().map(slipped).collect();
            // What a zone leaves out at its ends is counted as slipped, too.
            if matches!(layout, Layout::Cylinder { .. }) && skew > 4 {
                (spec.zones[0].front, spec.zones[0].end) = (skew as u32 - 4, 1);
            }
            Arc::new(Geometry::new(spec).or_else(|_| Geometry::new(whole)).unwrap())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn reads_what_the_medium_holds(
        geometry in geometry(),
        k in 1u32..9,
        by_blocks in prop::option::weighted(0.2, (2u64..40, 0u64..60)),
        ops in prop::collection::vec((0u8..10, any::<u64>(), 1u64..30), 1..200),
    ) {
        let blocks = geometry.blocks().0;
        let head = match geometry.spec().toward {
            Toward::Inner => Interference::tracks(k),
            Toward::Outer => {
                let Interference::Physical(p) = Interference::tracks(1) else { unreachable!() };
                Interference::Physical(smrlab_disk::PhysicalProfile { s_od: k, ..p })
            }
        };
        let by_blocks = by_blocks.map(|(reach, from)| BlockProfile { reach, from });
        let head = by_blocks.map_or(head, Interference::Blocks);
        let mut plain = Plain { geometry: geometry.clone(), head, holds: vec![0; blocks as usize] };
        let tracks = Arc::new(Tracks::new(geometry));
        let mut shingle = match by_blocks {
            Some(profile) => Shingle::of_blocks(tracks, profile),
            None => Shingle::new(tracks, u64::from(k)),
        };
        // What lies at each address: the last write to it.
        let mut data = vec![0u64; blocks as usize];
        let mut cursors = [0u64; 6];
        for (n, (kind, at, len)) in ops.into_iter().enumerate() {
            // Six interleaved sequential streams, at times out of order, and some strays.
            let stream = cursors.get(kind as usize).copied();
            let ahead = if at % 5 == 0 { len } else { 0 };
            let start = (stream.unwrap_or(at) + ahead) % blocks;
            let end = (start + len).min(blocks);
            if let Some(c) = cursors.get_mut(kind as usize) {
                *c = match at % 15 {
                    0 => at,
                    5 | 10 => *c,
                    6 | 11 => end + len,
                    _ => end,
                };
            }
            let stamp = n as u64 + 1;
            shingle.write(start, end);
            plain.write(start, end, stamp);
            data[start as usize..end as usize].fill(stamp);
            if n % 8 == 7 || blocks < 20 {
                compare(&shingle, &plain, &data)?;
            }
        }
        compare(&shingle, &plain, &data)?;
    }
}

/// A write that goes on after one on any track near it was written in between: both what that destroyed and what it was
/// destroyed by are as on the medium, up to the farthest track that a head reaches.
#[test]
fn a_write_goes_on_after_each_track_near_it() {
    const SECTORS: u64 = 4;
    for (surfaces, k, alternate) in
        (1u32..5).flat_map(|s| (2u32..6).flat_map(move |k| [false, true].map(|a| (s, k, a))))
    {
        let mut spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(14, SECTORS as u32)]);
        (spec.surfaces, spec.layout) = (surfaces, Layout::Cylinder { alternate });
        let geometry = Arc::new(Geometry::new(spec).unwrap());
        let (tracks, middle) = (geometry.blocks().0 / SECTORS, u64::from(7 * surfaces));
        for (first, length) in (middle..middle + u64::from(surfaces)).flat_map(|t| [(t, 1), (t, 6)]) {
            for between in 0..tracks {
                let head = Interference::tracks(k);
                let holds = vec![0; geometry.blocks().0 as usize];
                let mut plain = Plain { geometry: geometry.clone(), head, holds };
                let mut shingle = Shingle::new(Arc::new(Tracks::new(geometry.clone())), u64::from(k));
                let mut data = vec![0u64; geometry.blocks().0 as usize];
                let half = first * SECTORS + length * SECTORS - 2;
                let parts =
                    [(first * SECTORS, half), (between * SECTORS, between * SECTORS + 4), (half, half + 2)];
                for (stamp, (start, end)) in (1..).zip(parts) {
                    shingle.write(start, end);
                    plain.write(start, end, stamp);
                    data[start as usize..end as usize].fill(stamp);
                }
                let found = compare(&shingle, &plain, &data);
                assert!(found.is_ok(), "{surfaces} surfaces, k={k}, {first} and {between}: {found:?}");
            }
        }
    }
}

fn compare(shingle: &Shingle, plain: &Plain, data: &[u64]) -> Result<(), TestCaseError> {
    let blocks = data.len() as u64;
    let mut pieces = Vec::new();
    shingle.resolve(0, blocks, &mut pieces);
    let mut at = 0;
    for p in &pieces {
        prop_assert_eq!(p.at, at);
        for i in 0..p.blocks {
            let (got, want) = (data[(p.from + i) as usize], plain.holds[(p.at + i) as usize]);
            prop_assert_eq!(got, want, "block {} read from {}", p.at + i, p.from + i);
        }
        at += p.blocks;
    }
    prop_assert_eq!(at, blocks);
    let (from, to) = (blocks / 3, blocks - blocks / 4);
    let written: Vec<u64> = shingle.written(from, to).flatten().collect();
    let known: Vec<u64> = (from..to).filter(|b| data[*b as usize] != 0).collect();
    prop_assert_eq!(written, known);
    for start in (0..blocks).step_by(3) {
        let end = (start + 5).min(blocks);
        let clean = (start..end).all(|b| plain.holds[b as usize] == data[b as usize]);
        prop_assert!(clean || !shingle.clean(start, end), "{start}..{end} is not clean");
    }
    Ok(())
}

fn plates(tracks: u32, sectors: u32, k: u64) -> Shingle {
    let mut spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(tracks, sectors)]);
    spec.cylinder_skew = REVOLUTION / 7;
    Shingle::new(Arc::new(Tracks::new(Arc::new(Geometry::new(spec).unwrap()))), k)
}

/// Two writes meet within a track: nothing of it is destroyed, though that is not seen at once; then its upper track is written again.
#[test]
fn what_was_written_in_pieces_can_be_copied_until_it_is_destroyed() {
    let reading = Reading { mode: Mode::Performance, errors: false };
    let shingle = plates(6, 100, 2);
    let store = Box::new(Memory::new(600 * 512).unwrap());
    let medium = Medium::new(shingle, store, None, reading);
    medium.write(0, &[1; 100 * 512]).unwrap();
    medium.write(150, &[2; 150 * 512]).unwrap();
    medium.write(100, &[3; 50 * 512]).unwrap();
    assert!(!medium.with_runs(|s| s.clean(100, 200)), "it is seen at once: the test asks for nothing");
    assert!(medium.read_later(100, 100).unwrap());
    medium.write(0, &[4; 60 * 512]).unwrap();
    assert!(!medium.read_later(100, 100).unwrap(), "some of it is destroyed");
    assert!(medium.read_later(0, 100).unwrap());
}

/// Figure 5 of the paper: three partly overlapping writes on tracks 1 to 3 with k = 3; a read of track 3 splits in four.
#[test]
fn figure_5() {
    let spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(6, 100)]);
    let mut shingle = Shingle::new(Arc::new(Tracks::new(Arc::new(Geometry::new(spec).unwrap()))), 3);
    shingle.write(300 + 20, 300 + 80);
    shingle.write(200 + 10, 200 + 60);
    shingle.write(100 + 30, 100 + 50);
    let mut pieces = Vec::new();
    shingle.resolve(310, 380, &mut pieces);
    let found: Vec<_> = pieces.iter().map(|p| (p.at, p.blocks, p.from)).collect();
    assert_eq!(found, [(310, 20, 210), (330, 20, 130), (350, 10, 250), (360, 20, 360)]);
}

/// Requests under way together arrive in any order: still few runs.
#[test]
fn a_stream_out_of_order_is_one_run() {
    let mut shingle = plates(100, 1000, 3);
    for group in 0..1000 {
        for i in [1, 0, 3, 2, 6, 5, 4, 7, 9, 8] {
            let at = group * 80 + i * 8;
            shingle.write(at, at + 8);
        }
    }
    assert!(shingle.runs().len() < 200, "{} runs", shingle.runs().len());
}

/// Memory follows runs: a drive written in bands, many streams at once, keeps one run a band.
#[test]
fn bands_are_one_run_each() {
    let mut shingle = plates(6400, 100, 3);
    for step in 0..980 {
        for band in 0..64 {
            let at = band * 10_000 + step * 10;
            shingle.write(at, at + 10);
        }
    }
    assert_eq!(shingle.runs().len(), 64);
    assert!(shingle.clean(0, 9_800));
}
