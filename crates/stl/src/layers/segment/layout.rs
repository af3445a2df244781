//! Where the chunks of segments lie: arcs of equal angle on the tracks of a band.
//!
//! A band of `L` tracks (on cylinder layouts: the tracks of one surface in it) is cut by angle into arcs of a chunk each;
//! segment `a` is arc `a` of all its tracks, chunk `j` the arc on track `j`. An arc is fixed by physical angle, so the chunks
//! of a segment lie over each other whatever the drive's skew is, and no write in one segment reaches another. Where the
//! skew puts a track's first sector within an arc, the chunk is two runs of PBAs.

use smrlab_disk::geometry::{StartSlots, wrapped};
use smrlab_disk::{BandId, Bands, DriveModel, Interference, TrackNo};
use smrlab_units::reciprocal::{Reciprocal, RunIndex};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;
use std::sync::Arc;

/// A band that is cut into segments.
#[derive(Clone, Copy, Debug)]
struct Region {
    /// Number of its first segment.
    first: u64,
    first_block: Pba,
    /// Arcs that each of its surfaces is cut into.
    arcs: Reciprocal,
    /// Where its tracks begin, where these follow each other on a surface; all of their sectors hold blocks.
    slots: StartSlots,
    first_track: u32,
    /// Bands that share a guard begin at their far ends: the row of the chunks 0, and the others lie before it. Else [`ALONE`].
    back: u32,
}

/// A band's guard is its own.
const ALONE: u32 = u32::MAX;

/// See the [module](self).
pub struct Layout {
    drive: Arc<DriveModel>,
    /// The bands that were cut.
    pub bands: Bands,
    regions: Vec<Region>,
    by_segment: RunIndex,
    by_chunk: Reciprocal,
    by_size: Reciprocal,
    segments: u64,
    /// Blocks in a chunk.
    pub chunk: u64,
    /// Chunks in a segment (`L`).
    pub length: u64,
    /// Tracks side by side on a cylinder that belong to different surfaces; 1 on other layouts.
    unit: u64,
    /// Tracks behind a written one that the write reaches (`W - 1`), at least 1.
    pub reach: u64,
}

impl Layout {
    /// Cuts the first `count` of `bands` into segments of chunks of `chunk` blocks. Bands that do not lie wholly within a
    /// recording zone, or have spare or slipped sectors in them, are left out.
    ///
    /// # Errors
    /// A sentence with the remedy, when there are no tracks, damage spreads along them, or no band is left.
    pub fn new(drive: &Arc<DriveModel>, bands: Bands, count: u64, chunk: u64) -> Result<Self, String> {
        match drive.interference() {
            Interference::Blocks(_) => {
                return Err(
                    "segments are arcs of tracks: this drive has a block profile and no tracks".to_owned()
                );
            }
            Interference::Physical(p) if p.phi_cw > 0 || p.phi_ccw > 0 => {
                return Err(
                    "segments do not shield each other on a drive where damage spreads along tracks \
                     (phi_cw, phi_ccw)"
                        .to_owned(),
                );
            }
            Interference::Physical(_) => {}
        }
        let geometry = drive.geometry();
        let unit = geometry.strokes().next().map_or(1, |s| s.unit);
        let rows = bands.band(BandId(0)).tracks / unit;
        // A pair of bands is two with a guard between them.
        let paired = matches!(drive.interference(), Interference::Physical(p) if p.wave > 0);
        let length = if paired { (rows + 1 - drive.head_width()) / 2 } else { rows };
        let halves = if paired { vec![ALONE, rows as u32 - 1] } else { vec![ALONE] };
        let (mut regions, mut segments) = (Vec::new(), 0);
        for b in 0..count {
            let band = bands.band(BandId(b));
            let zone = geometry.zone_of(band.first_track);
            let sectors = u64::from(zone.sectors);
            let within = band.first_track.0 + band.tracks <= zone.first_track.0 + zone.tracks;
            let arcs = sectors / chunk;
            if within && band.blocks.0 == band.tracks * sectors && arcs > 0 {
                for &back in &halves {
                    regions.push(Region {
                        first: segments,
                        first_block: band.first,
                        arcs: Reciprocal::new(arcs),
                        slots: geometry.start_slots(band.first_track),
                        first_track: band.first_track.0 as u32,
                        back,
                    });
                    segments += unit * arcs;
                }
            }
        }
        if regions.is_empty() {
            return Err(format!(
                "no band has tracks of {chunk} blocks or more without spare or slipped sectors: use a smaller chunk="
            ));
        }
        let by_segment = RunIndex::new(regions.iter().map(|r| r.first).collect(), segments);
        let reach = (drive.head_width() - 1).max(1);
        Ok(Self {
            drive: Arc::clone(drive),
            bands,
            regions,
            by_segment,
            segments,
            by_chunk: Reciprocal::new(chunk),
            by_size: Reciprocal::new((chunk * length).max(1)),
            chunk,
            length,
            unit,
            reach,
        })
    }

    /// Blocks in a segment.
    pub fn segment_blocks(&self) -> u64 {
        self.chunk * self.length
    }

    /// The segment of a block of the host's, and the offset in it.
    #[inline]
    pub fn segment_of(&self, lba: u64) -> (u64, u64) {
        self.by_size.div_rem_wide(lba)
    }

    /// The chunk of an offset in a segment.
    #[inline]
    pub fn chunk_of(&self, offset: u64) -> u64 {
        self.by_chunk.div_wide(offset)
    }

    /// Blocks in all segments.
    pub fn host_blocks(&self) -> Blocks {
        Blocks(self.segments * self.segment_blocks())
    }

    /// Where the chunks of a segment lie.
    #[inline]
    pub fn column(&self, segment: u64) -> Column<'_> {
        let region = &self.regions[self.by_segment.find(segment)];
        let (surface, arc) = region.arcs.div_rem_wide(segment - region.first);
        Column { layout: self, region, surface, first: arc * self.chunk }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (self.regions.capacity() * (size_of::<Region>() + size_of::<u64>())) as u64
    }
}

/// The chunks of a segment: one arc of the tracks of one surface.
pub struct Column<'a> {
    layout: &'a Layout,
    region: &'a Region,
    surface: u64,
    /// The slot (sector-sized angle) at which the arc begins.
    first: u64,
}

impl Column<'_> {
    /// Where a chunk of the segment lies.
    #[inline]
    pub fn chunk(&self, chunk_no: u64) -> Chunk {
        let Region { first_block, slots, back, .. } = *self.region;
        let (first_track, sectors) = (u64::from(self.region.first_track), slots.sectors());
        let row = if back == ALONE { chunk_no } else { u64::from(back) - chunk_no };
        let (track, slot) = if self.layout.unit == 1 {
            (row, slots.of(row))
        } else {
            let (geometry, base) = (self.layout.drive.geometry(), TrackNo(first_track + self.surface));
            let track = geometry.following(base, row as u32).expect("a band lies within its surface");
            (track.0 - first_track, geometry.start_slots(track).of(0))
        };
        let first = wrapped(self.first + sectors - slot, sectors);
        Chunk { track_start: first_block + Blocks(track * sectors), first, sectors }
    }
}

/// An arc of one track.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    track_start: Pba,
    /// The sector of the track at which the arc begins.
    first: u64,
    sectors: u64,
}

impl Chunk {
    /// Calls `each` with the one or two runs of PBAs that hold blocks `within` of the chunk: offset in the chunk, first
    /// block, length; in the order of their offsets.
    #[inline]
    pub fn runs(self, within: Range<u64>, mut each: impl FnMut(u64, Pba, Blocks)) {
        let first = wrapped(self.first + within.start, self.sectors);
        let blocks = within.end - within.start;
        let straight = blocks.min(self.sectors - first);
        each(within.start, self.track_start + Blocks(first), Blocks(straight));
        if straight < blocks {
            each(within.start + straight, self.track_start, Blocks(blocks - straight));
        }
    }
}
