//! What follows from how the three layers of the golden table work.

use super::figures::track;
use crate::support::Done;
use std::collections::HashSet;

/// Into how many extents the layer splits a request: bands of 128, 96 and 64 blocks, tracks, or appends to the cache.
pub(super) fn extents(layer: &str, d: &Done, i: usize) -> u64 {
    let a = d.asked[i];
    let unit = |lba: u64| match layer {
        // 8 bands of 4 tracks in each zone.
        "rmw" => match lba {
            0..1024 => lba / 128,
            _ => 8 + (lba - 1024) / 96,
        },
        _ => match lba {
            0..1024 => lba / 32,
            _ => 32 + (lba - 1024) / 24,
        },
    };
    match layer {
        "rmw" | "static-1234" => unit(a.lba + a.blocks - 1) - unit(a.lba) + 1,
        _ => d.ops_of(i).filter(|o| o.cause == "host" && o.write).count() as u64,
    }
}

/// Operations for each extent of updates and writes, and for each write.
pub(super) fn war(layer: &str, d: &Done) {
    let (mut written, mut update, mut write) = (HashSet::new(), (0, 0), (0, 0, 0));
    for (i, a) in d.asked.iter().enumerate().filter(|(_, a)| a.write) {
        let (ops, extents) = (d.ops_of(i).count() as u64, extents(layer, d, i));
        write = (write.0 + ops, write.1 + extents, write.2 + 1);
        if (a.lba..a.lba + a.blocks).any(|b| written.contains(&b)) {
            update = (update.0 + ops, update.1 + extents);
        }
        written.extend(a.lba..a.lba + a.blocks);
    }
    d.is("/war/per_update", update.0 as f64 / update.1 as f64);
    d.is("/war/per_write", write.0 as f64 / write.1 as f64);
    d.is("/war/per_request", write.0 as f64 / write.2 as f64);
}

/// Bands of four tracks and one of guard; forty tracks to a zone, so that none crosses its edge. The cache and its bands of
/// 24 blocks are counted by a unit test.
pub(super) fn bands(layer: &str, d: &Done) {
    if layer.starts_with("disk-cache") {
        return;
    }
    let band = |pba: u64| (track(pba) % 5 < 4).then_some(track(pba) / 5);
    let (mut here, mut switches) = ((band(0), 0), 0);
    for o in &d.media {
        let place = |pba: u64| (band(pba), if band(pba).is_some() { 0 } else { pba });
        switches += u64::from(place(o.pba) != here);
        here = place(o.pba + o.blocks - 1);
    }
    d.is("/movement/band_switches", switches as f64);
}

/// Operations that clean, as spans: what lies between the first and the last one of a rewrite.
pub(super) fn cleaning(layer: &str, d: &Done) {
    let mut spans = Vec::new();
    match layer {
        "rmw" => {
            let written: Vec<_> =
                d.asked.iter().enumerate().filter(|(_, a)| a.write).map(|(i, _)| i).collect();
            for i in written {
                let ops: Vec<_> = d.ops_of(i).collect();
                assert!(ops.len().is_multiple_of(2), "read and write of each band");
                spans.extend(ops.chunks(2).map(|pair| (pair[0].start, pair[1].end)));
            }
        }
        "static-1234" => {
            let rewritten = (0..d.asked.len()).filter(|&i| d.asked[i].write && d.ops_of(i).any(|o| !o.write));
            let one_band = |i: usize| d.asked[i].lba / 128 == (d.asked[i].lba + d.asked[i].blocks - 1) / 128;
            for i in rewritten.filter(|&i| one_band(i) && d.asked[i].lba + d.asked[i].blocks < 1024) {
                let ops: Vec<_> = d.ops_of(i).collect();
                spans.push((ops[0].start, ops[ops.len() - 1].end));
            }
            // Requests in two bands may rewrite one of them or both.
            assert!(d.get("/cleaning/count") >= spans.len() as f64 && spans.len() > 20);
            return;
        }
        _ => {
            let sets = d.get("/cleaning/by_kind/set-clean/count");
            let steps = d.get("/cleaning/by_kind/idle-clean/count");
            let rewrites = d.media.iter().filter(|o| o.write && o.cause == "clean").count() as f64;
            assert!(sets > 0.0 && steps > 0.0 && sets + steps <= rewrites, "{sets} {steps} {rewrites}");
            // A step ends with its write, so every band that was written was rewritten.
            d.is("/cache/bands_rewritten", rewrites);
            return;
        }
    }
    d.is("/cleaning/count", spans.len() as f64);
    d.is("/cleaning/total_s", spans.iter().map(|s| s.1 - s.0).sum::<u64>() as f64 / 1e9);
    d.is("/cleaning/max_s", spans.iter().map(|s| s.1 - s.0).max().unwrap() as f64 / 1e9);
    d.is("/cleaning/first_s", (spans[0].0 - d.first_arrival()) as f64 / 1e9);
}
