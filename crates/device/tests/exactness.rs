//! The run map against a plain model of a shingled medium, which moves every byte that a write destroys.

use proptest::prelude::*;
use smrlab_device::shingle::Shingle;
use smrlab_device::tracks::{OneSurface, Track, Tracks};
use std::sync::Arc;

/// Every sector as it is: the number of the write that it holds. Destroys forwards, sector by sector, as a head does.
struct Plain {
    tracks: OneSurface,
    k: u64,
    holds: Vec<(u64, u64)>,
}

impl Plain {
    fn track_after(&self, t: &Track) -> Option<Track> {
        (t.end() < self.tracks.blocks()).then(|| self.tracks.at(t.end()))
    }

    fn write(&mut self, start: u64, end: u64, stamp: u64) {
        for b in start..end {
            self.holds[b as usize] = (stamp, b);
            let own = self.tracks.at(b);
            let angle = (b - own.start + own.shift) % own.sectors;
            let mut next = self.track_after(&own);
            for _ in 1..self.k {
                let Some(t) = next else { break };
                let first = angle * t.sectors / own.sectors;
                let last = if t.sectors > own.sectors {
                    ((angle + 1) * t.sectors).div_ceil(own.sectors)
                } else {
                    first + 1
                };
                for a in first..last {
                    let victim = t.start + (a + t.sectors - t.shift) % t.sectors;
                    self.holds[victim as usize] = (stamp, b);
                }
                next = self.track_after(&t);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reads_what_the_medium_holds(
        zones in prop::collection::vec((1u64..6, 1u64..24), 1..4),
        skew in 0u64..6,
        k in 1u64..9,
        ops in prop::collection::vec((0u8..10, any::<u64>(), 1u64..30), 1..200),
    ) {
        let tracks = OneSurface::new(&zones, skew);
        let blocks = tracks.blocks();
        let mut plain = Plain { tracks: tracks.clone(), k, holds: vec![(0, 0); blocks as usize] };
        let mut shingle = Shingle::new(Arc::new(tracks), k);
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
                compare(&shingle, &plain, &data, blocks)?;
            }
        }
        compare(&shingle, &plain, &data, blocks)?;
    }
}

fn compare(shingle: &Shingle, plain: &Plain, data: &[u64], blocks: u64) -> Result<(), TestCaseError> {
    let mut pieces = Vec::new();
    shingle.resolve(0, blocks, &mut pieces);
    let mut at = 0;
    for p in &pieces {
        prop_assert_eq!(p.at, at);
        for i in 0..p.blocks {
            let (stamp, from) = plain.holds[(p.at + i) as usize];
            let got = data[(p.from + i) as usize];
            prop_assert_eq!(
                got,
                stamp,
                "block {} from {} but the medium has it from {}",
                p.at + i,
                p.from + i,
                from
            );
            if stamp > 0 {
                prop_assert_eq!(p.from + i, from);
            }
        }
        at += p.blocks;
    }
    prop_assert_eq!(at, blocks);
    for start in (0..blocks).step_by(3) {
        let end = (start + 5).min(blocks);
        let clean = (start..end).all(|b| plain.holds[b as usize].0 == 0 || plain.holds[b as usize].1 == b);
        prop_assert!(clean || !shingle.clean(start, end), "{start}..{end} is not clean");
    }
    Ok(())
}

/// Figure 5 of the paper: three partly overlapping writes on tracks 1 to 3 with k = 3; a read of track 3 splits.
#[test]
fn figure_5() {
    let mut shingle = Shingle::new(Arc::new(OneSurface::new(&[(6, 100)], 0)), 3);
    shingle.write(300 + 20, 300 + 80);
    shingle.write(200 + 10, 200 + 60);
    shingle.write(100 + 30, 100 + 50);
    let mut pieces = Vec::new();
    shingle.resolve(310, 380, &mut pieces);
    let found: Vec<_> = pieces.iter().map(|p| (p.at, p.blocks, p.from)).collect();
    assert_eq!(found, [(310, 20, 210), (330, 20, 130), (350, 10, 250), (360, 20, 360)]);
}

/// Requests under way together arrive in any order: still one run.
#[test]
fn a_stream_out_of_order_is_one_run() {
    let mut shingle = Shingle::new(Arc::new(OneSurface::new(&[(100, 1000)], 7)), 3);
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
    let mut shingle = Shingle::new(Arc::new(OneSurface::new(&[(6400, 100)], 7)), 3);
    for step in 0..980 {
        for band in 0..64 {
            let at = band * 10_000 + step * 10;
            shingle.write(at, at + 10);
        }
    }
    assert_eq!(shingle.runs().len(), 64);
    assert!(shingle.clean(0, 9_800));
}
