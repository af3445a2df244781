//! Bands that are shingled in opposite directions by twos and share a guard.

use smrlab_stl::{BuildContext, Metadata};
use smrlab_testkit::{Harness, Workload, drives};
use std::sync::Arc;

/// Of 90 tracks a head of 2 leaves 4 of 5 with a guard for each band, and 8 of 9 with one for two; of 84 a head of 5 leaves
/// 4 of 8, and 8 of 12.
#[test]
fn shared_guards_leave_two_bands_of_every_two_and_a_guard() {
    for (tracks, width, own, shared) in [(90, 2, 72, 80), (84, 5, 40, 56)] {
        let context = BuildContext::new(drives::plain(tracks, 8, width, 4));
        let blocks = |text: &str| {
            let built = smrlab_stl::build(text, &context).unwrap_or_else(|e| panic!("{text}: {e}"));
            built.layer.host_blocks().0
        };
        assert_eq!(blocks("segment,chunk=4blk"), own * 8, "{tracks} tracks");
        assert_eq!(blocks("segment,chunk=4blk,guards=shared"), shared * 8, "{tracks} tracks");
    }
}

/// What writes destroy in a pair of bands, by hand; journals and drives without tracks are refused.
#[test]
fn the_second_band_of_a_pair_is_hit_the_other_way() {
    let plain = drives::plain(90, 8, 2, 4);
    let paired = plain.with_waves(4).unwrap();
    let hit = |drive: &smrlab_disk::DriveModel, track: u64| {
        let (g, mut found) = (drive.geometry(), Vec::new());
        let start = g.track_start(smrlab_disk::TrackNo(track));
        drive.interference().victims(g, start, smrlab_units::Blocks(8), &mut |r| found.push(r.start / 8));
        found
    };
    // Tracks 0 to 3 and the guard 4 one way; 5 to 8 the other way; 9 is the first of the next pair.
    let all: Vec<Vec<u64>> = (0..10).map(|track| hit(&paired, track)).collect();
    assert_eq!(all, [[1], [2], [3], [4], [5], [4], [5], [6], [7], [10]]);
    assert_eq!(hit(&plain, 8), [9]);
    let refused = smrlab_stl::build("segment,chunk=4blk,guards=shared,journal=on", &BuildContext::new(plain));
    assert!(refused.is_err_and(|e| e.to_string().contains("share their guards")));
    let blocks = smrlab_disk::model::load("cassuto2010-307gb", |_| Err(String::new())).unwrap();
    assert!(smrlab_stl::build("segment,guards=shared", &BuildContext::new(Arc::new(blocks))).is_err());
}

/// On every drive that has tracks everything is read back after thousands of requests, all over and on a few hot blocks.
#[test]
fn nothing_is_destroyed_in_bands_that_share_guards() {
    let mut fits = Vec::new();
    for (name, drive) in drives::all() {
        for text in
            ["segment,guards=shared,band=3,chunk=4blk", "segment,guards=shared,band=2,rewrite=arc,chunk=1blk"]
        {
            if let Ok(mut harness) = Harness::new(text, &drive, Metadata::Nv) {
                harness.exercise(Workload { requests: 3_000, seed: 7, longest: 60 });
                fits.push(name);
            }
        }
    }
    assert!(
        fits.len() >= 14 && fits.contains(&"cylinders") && fits.contains(&"hybrid serpentine"),
        "{fits:?}"
    );
}
