//! Where tracks lie, as far as destruction goes.

use std::ops::Range;

/// One track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Number of the track in the order of block addresses.
    pub index: u64,
    /// Its first block.
    pub start: u64,
    /// Blocks on it.
    pub sectors: u64,
    /// Sectors from the reference line to its first block (the skew), below `sectors`.
    pub shift: u64,
}

impl Track {
    /// One past the last block.
    pub fn end(&self) -> u64 {
        self.start + self.sectors
    }
}

/// The geometry of the medium. Block addresses rise in the shingling direction.
pub trait Tracks: Send + Sync {
    /// Blocks in all.
    fn blocks(&self) -> u64;

    /// Tracks in all.
    fn count(&self) -> u64;

    /// The track of a block.
    fn at(&self, block: u64) -> Track;

    /// The track of a number below [`count`](Self::count).
    fn by_index(&self, index: u64) -> Track;

    /// The track that lies `distance` tracks upstream on the same surface: a write there destroys `track` if the head
    /// is wider than `distance`. `None` beyond the edge.
    fn upstream(&self, track: &Track, distance: u64) -> Option<Track>;

    /// The track that a write to `track` destroys at `distance` tracks downstream, with the same measure.
    fn downstream(&self, track: &Track, distance: u64) -> Option<Track>;

    /// How far apart, in track numbers, two tracks can be that lie `distance` tracks apart on their surface.
    fn spread(&self, distance: u64) -> u64 {
        distance
    }
}

/// The sectors of `writer` that destroy sectors `from..from + n` of `victim`, as at most two ranges of block addresses;
/// in the order of angles, so that between tracks of equal length the k-th block of the ranges destroys the k-th
/// of the victims.
///
/// Between tracks of unequal length the mapping is that of the emulator's paper with its rounding repaired (sheet 004,
/// 1.3): towards fewer sectors several writers share a victim, towards more a writer destroys all that it reaches into.
pub fn writers(victim: &Track, from: u64, n: u64, writer: &Track) -> [Range<u64>; 2] {
    let (tv, tw) = (victim.sectors, writer.sectors);
    debug_assert!(n > 0 && from + n <= tv);
    let first = if tv == tw {
        (from + victim.shift) % tw
    } else {
        let angle = (from + victim.shift) % tv;
        if angle + n > tv {
            // Over the reference line with unequal lengths: the whole track is an answer that is never too small.
            return [writer.start..writer.end(), 0..0];
        }
        let first = if tw > tv { (angle * tw).div_ceil(tv) } else { angle * tw / tv };
        let end = ((angle + n) * tw).div_ceil(tv);
        return wrapped(writer, first % tw, end - first);
    };
    wrapped(writer, first, n)
}

/// `n` sectors of `track` from `angle` sectors past the reference line.
fn wrapped(track: &Track, angle: u64, n: u64) -> [Range<u64>; 2] {
    let first = (angle + track.sectors - track.shift) % track.sectors;
    let head = n.min(track.sectors - first);
    let start = track.start + first;
    [start..start + head, track.start..track.start + (n - head)]
}

/// A drive with one surface: recording zones of equal tracks and a constant skew.
#[derive(Clone, Debug)]
pub struct OneSurface {
    zones: Vec<Zone>,
    skew_period: u64,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    block: u64,
    track: u64,
    sectors: u64,
    end: u64,
}

impl OneSurface {
    /// Zones as (tracks, sectors per track) from the outside in; after `skew_period` tracks the skew has gone round once
    /// (0: no skew).
    pub fn new(zones: &[(u64, u64)], skew_period: u64) -> Self {
        let (mut block, mut track) = (0, 0);
        let zones = zones
            .iter()
            .map(|(tracks, sectors)| {
                let zone = Zone { block, track, sectors: *sectors, end: track + tracks };
                block += tracks * sectors;
                track += tracks;
                zone
            })
            .collect();
        Self { zones, skew_period }
    }

    fn track(&self, zone: &Zone, index: u64) -> Track {
        let start = zone.block + (index - zone.track) * zone.sectors;
        let shift = match self.skew_period {
            0 => 0,
            n => (((index % n) * zone.sectors * 2 + n) / (2 * n)) % zone.sectors,
        };
        Track { index, start, sectors: zone.sectors, shift }
    }
}

impl Tracks for OneSurface {
    fn blocks(&self) -> u64 {
        self.zones.iter().map(|z| (z.end - z.track) * z.sectors).sum()
    }

    fn count(&self) -> u64 {
        self.zones.last().map_or(0, |z| z.end)
    }

    fn at(&self, block: u64) -> Track {
        let i = self.zones.partition_point(|z| z.block <= block) - 1;
        let zone = &self.zones[i];
        self.track(zone, zone.track + (block - zone.block) / zone.sectors)
    }

    fn by_index(&self, index: u64) -> Track {
        let i = self.zones.partition_point(|z| z.track <= index) - 1;
        self.track(&self.zones[i], index)
    }

    fn upstream(&self, track: &Track, distance: u64) -> Option<Track> {
        track.index.checked_sub(distance).map(|i| self.by_index(i))
    }

    fn downstream(&self, track: &Track, distance: u64) -> Option<Track> {
        let index = track.index + distance;
        (index < self.count()).then(|| self.by_index(index))
    }
}
