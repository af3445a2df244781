//! The state of a medium in a few numbers a cell, for drawing.

use crate::shingle::{Piece, Shingle};
use serde_json::{Value, json};

/// Blocks that are looked at in each cell, at most.
const SAMPLE: u64 = 1 << 16;

/// What part of a cell's blocks is in which state, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shares {
    written: u64,
    /// Written, and lost since.
    stale: u64,
    /// Never written, but overwritten from upstream.
    destroyed: u64,
}

/// `cells` equal parts of the medium: `[written, stale, destroyed]` in thousandths of the blocks looked at, which are the
/// first 65 536 of each cell.
pub fn cells(shingle: &Shingle, blocks: u64, cells: u64) -> Value {
    let cells = cells.clamp(1, blocks);
    let mut pieces = Vec::new();
    let all: Vec<[u64; 3]> = (0..cells)
        .map(|i| {
            let (start, end) = (blocks * i / cells, blocks * (i + 1) / cells);
            let end = end.min(start + SAMPLE);
            pieces.clear();
            shingle.resolve(start, end, &mut pieces);
            let s = shares(shingle, &pieces, end - start);
            [s.written, s.stale, s.destroyed]
        })
        .collect();
    json!({"blocks": blocks, "cells": all})
}

fn shares(shingle: &Shingle, pieces: &[Piece], blocks: u64) -> Shares {
    let mut s = Shares::default();
    for p in pieces {
        if !p.destroyed() {
            s.written += if p.written() { p.blocks } else { 0 };
            continue;
        }
        let own = shingle.written(p.at, p.at + p.blocks).map(|r| r.end - r.start).sum::<u64>();
        s.stale += own;
        s.destroyed += p.blocks - own;
    }
    let share = |n: u64| (n * 1000).div_ceil(blocks.max(1));
    Shares { written: share(s.written), stale: share(s.stale), destroyed: share(s.destroyed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracks::Tracks;
    use smrlab_disk::{Geometry, GeometrySpec, ZoneSpec};
    use std::sync::Arc;

    /// Five tracks of eight blocks, a head of two tracks. A write of a track destroys the next one: half of that was written.
    #[test]
    fn what_was_never_written_is_told_from_what_was_lost() {
        let geometry = Geometry::new(GeometrySpec::single_surface(vec![ZoneSpec::plain(5, 8)])).unwrap();
        let mut shingle = Shingle::new(Arc::new(Tracks::new(Arc::new(geometry))), 2);
        shingle.write(8, 12);
        shingle.write(0, 8);
        shingle.write(24, 26);
        let half = json!([[1000, 0, 0], [0, 500, 500], [0, 0, 500], [250, 0, 0], [0, 0, 250]]);
        assert_eq!(cells(&shingle, 40, 5), json!({"blocks": 40, "cells": half}));
        assert_eq!(cells(&shingle, 40, 1)["cells"], json!([[250, 100, 250]]));
        assert_eq!(
            cells(&shingle, 40, 99)["cells"].as_array().map(Vec::len),
            Some(40),
            "no less than a block each"
        );
    }
}
