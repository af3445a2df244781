//! A copy of the runs that is made piece by piece while writes go on, and what was written meanwhile: together the medium.

use proptest::prelude::*;
use smrlab_device::run_map::WriteRun;
use smrlab_device::shingle::Shingle;
use smrlab_device::tracks::Tracks;
use smrlab_disk::geometry::{Defect, Layout, REVOLUTION};
use smrlab_disk::{BlockProfile, Geometry, GeometrySpec, ZoneSpec};
use std::sync::Arc;

/// A change of the medium, as the log has it.
#[derive(Clone, Copy, Debug)]
enum Change {
    Write(u64, u64),
    Forget(u64, u64),
}

fn apply(shingle: &mut Shingle, change: Change) {
    match change {
        Change::Write(start, end) => shingle.write(start, end),
        Change::Forget(start, end) => shingle.forget(start, end),
    }
}

fn geometry(zones: &[(u32, u32)], cylinders: bool, surfaces: u32, skew: u64) -> Arc<Tracks> {
    let mut spec = GeometrySpec::single_surface(zones.iter().map(|(c, s)| ZoneSpec::plain(*c, *s)).collect());
    spec.surfaces = surfaces;
    spec.layout = if cylinders { Layout::Cylinder { alternate: false } } else { Layout::Surface };
    spec.cylinder_skew = skew * REVOLUTION / 11;
    if skew % 2 == 1 {
        let slipped = [(0, 3), (1, 0), (1, 1)];
        spec.defects = slipped.map(|(cylinder, sector)| Defect { cylinder, surface: 0, sector }).to_vec();
    }
    Arc::new(Tracks::new(Arc::new(Geometry::new(spec).unwrap())))
}

/// What each block reads as, given what was written at each address.
fn contents(shingle: &Shingle, data: &[u64]) -> Vec<u64> {
    let mut pieces = Vec::new();
    shingle.resolve(0, data.len() as u64, &mut pieces);
    let each = |p: &smrlab_device::shingle::Piece| (p.from..p.from + p.blocks).map(|b| data[b as usize]);
    pieces.iter().flat_map(each).collect()
}

/// Requests of several interleaved streams, in order and out of order, and strays.
struct Streams {
    cursors: [u64; 6],
    blocks: u64,
}

impl Streams {
    fn next(&mut self, (kind, at, len): (u8, u64, u64)) -> Change {
        let stream = self.cursors.get(kind as usize).copied();
        let ahead = if at % 5 == 0 { len } else { 0 };
        let start = (stream.unwrap_or(at) + ahead) % self.blocks;
        let end = (start + len).min(self.blocks);
        if let Some(c) = self.cursors.get_mut(kind as usize) {
            *c = match at % 15 {
                0 => at,
                5 | 10 => *c,
                6 | 11 => end + len,
                _ => end,
            };
        }
        if kind == 9 && at % 3 == 0 { Change::Forget(start, end) } else { Change::Write(start, end) }
    }
}

/// Writes to the live medium, its log, and the data.
fn play(live: &mut Shingle, change: Change, data: &mut [u64], log: &mut Vec<Change>, stamp: u64) {
    apply(live, change);
    log.push(change);
    match change {
        Change::Write(a, b) => data[a as usize..b as usize]
            .iter_mut()
            .enumerate()
            .for_each(|(i, d)| *d = stamp * 1000 + i as u64),
        Change::Forget(a, b) => data[a as usize..b as usize].fill(0),
    }
}

fn copied(live: &Shingle, from: u64, most: usize, copy: &mut Vec<WriteRun>) -> Option<u64> {
    let mut batch = Vec::new();
    let next = live.copy_from(from, most, &mut batch);
    copy.extend(batch);
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_copy_made_during_writes_and_their_log_give_the_medium(
        zones in prop::collection::vec((2u32..7, 4u32..24), 1..4),
        layout in (any::<bool>(), 1u32..3, 0u64..8),
        k in 1u64..7,
        by_blocks in prop::option::weighted(0.15, 2u64..40),
        before in prop::collection::vec((0u8..10, any::<u64>(), 1u64..30), 1..120),
        during in prop::collection::vec((0u8..10, any::<u64>(), 1u64..30), 1..120),
        after in prop::collection::vec((0u8..10, any::<u64>(), 1u64..30), 1..120),
        (batch, pace) in (1usize..4, 1usize..8),
    ) {
        let tracks = geometry(&zones, layout.0, layout.1, layout.2);
        let blocks = tracks.blocks();
        let new = || match by_blocks {
            Some(reach) => Shingle::of_blocks(tracks.clone(), BlockProfile { reach, from: 0 }),
            None => Shingle::new(tracks.clone(), k),
        };
        let (mut live, mut data, mut log) = (new(), vec![0; blocks as usize], Vec::new());
        let mut streams = Streams { cursors: [0; 6], blocks };
        let mut stamp = 0;
        for op in before {
            stamp += 1;
            play(&mut live, streams.next(op), &mut data, &mut log, stamp);
        }
        log.clear();
        let (mut next, mut copy) = (Some(0), Vec::new());
        for (n, op) in during.into_iter().enumerate() {
            if n % pace == 0 && let Some(from) = next {
                next = copied(&live, from, batch, &mut copy);
            }
            stamp += 1;
            play(&mut live, streams.next(op), &mut data, &mut log, stamp);
        }
        while let Some(from) = next {
            next = copied(&live, from, batch, &mut copy);
        }
        let mut recovered = new();
        copy.iter().for_each(|r| recovered.restore(*r));
        log.iter().for_each(|c| apply(&mut recovered, *c));
        prop_assert_eq!(contents(&recovered, &data), contents(&live, &data));
        // It goes on as the live one does: nothing that decides about joining was lost.
        for op in after {
            stamp += 1;
            let change = streams.next(op);
            apply(&mut recovered, change);
            play(&mut live, change, &mut data, &mut log, stamp);
        }
        prop_assert_eq!(contents(&recovered, &data), contents(&live, &data));
    }
}

/// What was forgotten in the middle of a run parts it for good: the part before must not become later than the part behind.
#[test]
fn a_restored_run_with_a_forgotten_middle_stays_in_order() {
    let tracks = geometry(&[(8, 10)], false, 1, 0);
    let new = || Shingle::new(tracks.clone(), 3);
    let (mut live, mut data, mut log) = (new(), vec![0; 80], Vec::new());
    play(&mut live, Change::Write(0, 40), &mut data, &mut log, 1);
    play(&mut live, Change::Forget(13, 17), &mut data, &mut log, 0);
    let (mut recovered, mut copy) = (new(), Vec::new());
    copied(&live, 0, 100, &mut copy);
    copy.iter().for_each(|r| recovered.restore(*r));
    let change = Change::Write(13, 15);
    apply(&mut recovered, change);
    play(&mut live, change, &mut data, &mut log, 2);
    // Distinct data everywhere, so that every wrong source shows.
    data.iter_mut().enumerate().for_each(|(i, d)| *d = i as u64 + 1);
    assert_eq!(contents(&recovered, &data), contents(&live, &data));
}

/// A run of which parts were copied at different times is one run again.
#[test]
fn parts_of_a_copied_run_join() {
    let tracks = geometry(&[(8, 10)], false, 1, 0);
    let mut recovered = Shingle::new(tracks, 3);
    for start in [0, 10, 25] {
        recovered.restore(WriteRun { start, end: if start == 0 { 10 } else { 2 * start + 5 }, seq: 4 });
    }
    assert_eq!(recovered.runs().iter().map(|r| (r.start, r.end)).collect::<Vec<_>>(), [(0, 55)]);
}
