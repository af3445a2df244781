//! Bands: runs of contiguous tracks closed by a guard, laid over a geometry, or over plain blocks.
//!
//! A band and its guard do not leave their stroke, so that no write in a band harms another one. Bands may cross the edge
//! of a recording zone. *Data indices* number the blocks of all bands densely from 0.

use crate::geometry::{Geometry, Slips, StrokeRun, TrackNo};
use crate::{DriveError, Result};
use smrlab_units::problems::Problems;
use smrlab_units::reciprocal::{Reciprocal, RunIndex};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// A band's number, in PBA order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BandId(pub u64);

/// A band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// First block.
    pub first: Pba,
    /// Blocks.
    pub blocks: Blocks,
    /// First track; for bands of plain blocks the track of the first block.
    pub first_track: TrackNo,
    /// Tracks; zero for bands of plain blocks.
    pub tracks: u64,
}

/// How bands are laid over tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandLayout {
    /// Tracks in a band (`N`); whole cylinders on cylinder layouts.
    pub tracks: u64,
    /// Head width (`W`): a track write touches this many tracks, itself included. The guard is `W - 1`.
    pub head_width: u64,
    /// Tracks (or cylinders) from PBA 0 on that are set aside for random access.
    pub random_access: u64,
}

/// A random-access zone: every `W`-th of its tracks is usable, in each stroke from its beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomAccess {
    /// Tracks that may be written in place.
    pub usable: u64,
    /// Distance between usable tracks.
    pub spacing: u64,
    unit: u64,
    /// Of each stroke: its first usable track's number, and its first track.
    strokes: Vec<(u64, u64)>,
}

impl RandomAccess {
    /// The first `tracks` tracks (cylinders on cylinder layouts) of `geometry`; `None` where that is none.
    pub fn of(geometry: &Geometry, tracks: u64, head_width: u64) -> Option<Self> {
        let mut zone = Self { usable: 0, spacing: head_width, unit: 1, strokes: Vec::new() };
        for (stroke, rows) in geometry.set_aside(tracks).take_while(|s| s.1 > 0) {
            zone.strokes.push((zone.usable, stroke.first.0));
            zone.unit = stroke.unit;
            zone.usable += rows / head_width * stroke.unit;
        }
        (tracks > 0).then_some(zone)
    }

    /// The `i`-th usable track; on a cylinder layout all tracks of a usable cylinder count.
    pub fn track(&self, i: u64) -> TrackNo {
        let stroke = self.strokes.partition_point(|s| s.0 <= i).max(1) - 1;
        let (before, first) = self.strokes.get(stroke).copied().unwrap_or_default();
        let i = i - before;
        TrackNo(first + i / self.unit * self.unit * self.spacing + i % self.unit)
    }
}

/// Equal bands at regular distances: `in_stroke` of them in each of some strokes.
#[derive(Clone, Debug)]
struct BandSeries {
    first_band: u64,
    /// First data index, slipped blocks counted.
    first_data: u64,
    first_raw: u64,
    first_track: u64,
    tracks: u64,
    track_stride: u64,
    stroke_tracks: u64,
    in_stroke: Reciprocal,
    bands: u64,
    blocks: Reciprocal,
    stride: Reciprocal,
    stroke: Reciprocal,
}

/// Bands over a geometry or a part of it.
#[derive(Clone, Debug)]
pub struct Bands {
    runs: Vec<BandSeries>,
    by_band: RunIndex,
    by_data: RunIndex,
    by_raw: RunIndex,
    /// Slipped raw blocks, and where they would be among the data.
    slips: Slips,
    data_slips: Slips,
    len: u64,
    data: u64,
    random_access: Option<RandomAccess>,
}

impl Bands {
    /// Lays bands of tracks over `geometry`; a last band that would be incomplete is left out.
    ///
    /// # Errors
    /// When a number is zero, the random-access zone is larger than the drive, or no band fits.
    pub fn new(geometry: &Geometry, layout: BandLayout) -> Result<Self> {
        let mut f = Problems::default();
        f.range("bands.tracks", layout.tracks, 1..=1 << 32);
        f.range("bands.head_width", layout.head_width, 1..=1 << 16);
        f.finish()?;
        let rows = geometry.rows();
        if layout.random_access > rows {
            return Err(DriveError::one(
                "bands.random_access",
                format!("{} tracks are not accepted: from 0 to {rows}", layout.random_access),
            ));
        }
        let mut runs = Vec::new();
        let (mut skip, mut longest) = (layout.random_access, 0);
        for stroke in geometry.stroke_runs() {
            let rows = stroke.tracks / stroke.unit;
            longest = longest.max((rows * stroke.repeat).saturating_sub(skip).min(rows));
            skip = lay(geometry, &stroke, layout, skip, &mut runs);
        }
        let random_access = RandomAccess::of(geometry, layout.random_access, layout.head_width);
        Self::finish(runs, geometry.slips(), random_access, || {
            let guard = layout.head_width - 1;
            let most = longest.saturating_sub(guard);
            format!(
                "no band of {} + {guard} tracks fits on a stroke of this drive: at most {most}; use shorter bands or a larger drive",
                layout.tracks
            )
        })
    }

    /// Lays at most `most` bands of plain blocks over the PBAs from `first` on (Cassuto's one-dimensional medium).
    ///
    /// # Errors
    /// When `blocks` is zero or no band fits.
    pub fn of_blocks(
        geometry: &Geometry,
        first: Pba,
        (blocks, guard): (Blocks, Blocks),
        most: u64,
    ) -> Result<Self> {
        let mut f = Problems::default();
        f.range("bands.blocks", blocks.0, 1..=1 << 48);
        f.finish()?;
        let stride = blocks.0 + guard.0;
        let bands = (geometry.blocks().0.saturating_sub(first.0) / stride).min(most);
        let mut runs = Vec::new();
        let shape = Shape { blocks: blocks.0, stride, stroke: stride.saturating_mul(bands.max(1)) };
        push(&mut runs, Tracks::default(), first.0, (bands, bands), shape);
        Self::finish(runs, &Slips::default(), None, || {
            format!(
                "no band of {} + {} blocks fits on this drive: use smaller ones or a larger drive",
                blocks.0, guard.0
            )
        })
    }

    /// Bands of `blocks` blocks at `starts`, ascending and apart.
    ///
    /// # Errors
    /// When there are none.
    pub fn at(starts: &[Pba], blocks: Blocks) -> Result<Self> {
        let (mut runs, mut left) = (Vec::new(), starts);
        while let Some(&Pba(first)) = left.first() {
            let away = |i: usize| left.get(i).map(|start| start.0 - first);
            let stride = away(1).unwrap_or(blocks.0);
            let n = (1..).take_while(|&i| away(i) == Some(i as u64 * stride)).count() + 1;
            // As many more such rows as are equally far apart: the strokes of a zone.
            let stroke = away(n).unwrap_or(n as u64 * stride);
            let like = |&(row, starts): &(usize, &[Pba])| {
                (0..).zip(starts).all(|(k, start)| start.0 == first + row as u64 * stroke + k * stride)
            };
            let bands = n * left.chunks_exact(n).enumerate().take_while(like).count();
            let shape = Shape { blocks: blocks.0, stride, stroke };
            push(&mut runs, Tracks::default(), first, (bands as u64, n as u64), shape);
            left = &left[bands..];
        }
        Self::finish(runs, &Slips::default(), None, || "there are no bands".to_owned())
    }

    /// How many of the first bands hold no more than `most` blocks.
    pub fn within(&self, most: Blocks) -> u64 {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.first_data(BandId(middle)) <= most.0 { low = middle } else { high = middle - 1 }
        }
        low
    }

    fn finish(
        mut runs: Vec<BandSeries>,
        slips: &Slips,
        random_access: Option<RandomAccess>,
        none: impl Fn() -> String,
    ) -> Result<Self> {
        drop_empty_end(&mut runs, slips);
        let (mut len, mut data) = (0, 0);
        for r in &mut runs {
            (r.first_band, r.first_data) = (len, data);
            len += r.bands;
            data += r.bands * r.blocks.divisor();
        }
        let Some(last) = runs.last() else {
            return Err(DriveError::one("bands", none()));
        };
        let end = last.first_raw + last.stroke.divisor() * (last.bands / last.in_stroke.divisor()).max(1);
        let mut bands = Self {
            by_band: RunIndex::new(runs.iter().map(|r| r.first_band).collect(), len),
            by_data: RunIndex::new(runs.iter().map(|r| r.first_data).collect(), data),
            by_raw: RunIndex::new(runs.iter().map(|r| r.first_raw).collect(), end),
            slips: slips.clone(),
            data_slips: Slips::default(),
            runs,
            len,
            data,
            random_access,
        };
        let all = slips.within(0..u64::MAX).iter().cloned().flatten();
        let slipped = all.filter_map(|raw| bands.data_of_raw(raw)).collect();
        bands.data_slips = Slips::new(slipped);
        bands.data -= bands.data_slips.len();
        Ok(bands)
    }

    /// How many bands there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no band; never so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Blocks of the longest band, slipped ones included.
    pub fn longest(&self) -> Blocks {
        Blocks(self.runs.iter().map(|r| r.blocks.divisor()).max().unwrap_or(0))
    }

    /// Bytes on the heap, slips apart.
    pub fn bytes(&self) -> u64 {
        let index = self.by_band.bytes() + self.by_data.bytes() + self.by_raw.bytes();
        index + size_of_val(self.runs.as_slice()) as u64
    }

    /// Blocks in all bands.
    pub fn data_blocks(&self) -> Blocks {
        Blocks(self.data)
    }

    /// The random-access zone, where one was set aside.
    pub fn random_access(&self) -> Option<&RandomAccess> {
        self.random_access.as_ref()
    }

    /// A band's first raw block, its run, and its number there.
    #[inline]
    fn raw_of(&self, band: BandId) -> (u64, &BandSeries, u64) {
        debug_assert!(band.0 < self.len, "band {} of {}", band.0, self.len);
        let r = &self.runs[self.by_band.find(band.0)];
        let i = band.0 - r.first_band;
        let (stroke, k) = r.in_stroke.div_rem_wide(i);
        (r.first_raw + stroke * r.stroke.divisor() + k * r.stride.divisor(), r, i)
    }

    /// The first block of a band, which must be below [`len`](Self::len).
    #[inline]
    pub fn start(&self, band: BandId) -> Pba {
        Pba(self.slips.to_dense(self.raw_of(band).0))
    }

    /// The band `band`, which must be below [`len`](Self::len).
    #[inline]
    pub fn band(&self, band: BandId) -> Band {
        let (raw, r, i) = self.raw_of(band);
        let (stroke, k) = r.in_stroke.div_rem_wide(i);
        let first = self.slips.to_dense(raw);
        Band {
            first: Pba(first),
            blocks: Blocks(self.slips.to_dense(raw + r.blocks.divisor()) - first),
            first_track: TrackNo(r.first_track + stroke * r.stroke_tracks + k * r.track_stride),
            tracks: r.tracks,
        }
    }

    /// The run, band and offset in it (slipped blocks counted) of a raw block; `None` on guards and outside.
    #[inline]
    fn find_raw(&self, raw: u64) -> Option<(&BandSeries, u64, u64)> {
        let r = &self.runs[self.by_raw.find(raw)];
        let (stroke, rest) = r.stroke.div_rem_wide(raw.checked_sub(r.first_raw)?);
        let (k, offset) = r.stride.div_rem_wide(rest);
        let i = stroke * r.in_stroke.divisor() + k;
        (k < r.in_stroke.divisor() && i < r.bands && offset < r.blocks.divisor()).then_some((r, i, offset))
    }

    fn data_of_raw(&self, raw: u64) -> Option<u64> {
        self.find_raw(raw).map(|(r, i, offset)| r.first_data + i * r.blocks.divisor() + offset)
    }

    /// The band of a block and the block's offset in it; `None` on guards and outside.
    #[inline]
    pub fn band_of(&self, pba: Pba) -> Option<(BandId, Blocks)> {
        let raw = self.slips.to_raw(pba.0);
        let (r, i, offset) = self.find_raw(raw)?;
        let offset = if self.slips.is_empty() { offset } else { pba.0 - self.slips.to_dense(raw - offset) };
        Some((BandId(r.first_band + i), Blocks(offset)))
    }

    /// The blocks of the band that holds a block; `None` on guards and outside.
    #[inline]
    pub fn around(&self, pba: Pba) -> Option<Range<u64>> {
        let raw = self.slips.to_raw(pba.0);
        let (r, _, offset) = self.find_raw(raw)?;
        let first = raw - offset;
        Some(self.slips.to_dense(first)..self.slips.to_dense(first + r.blocks.divisor()))
    }

    /// The band that holds a data index below [`data_blocks`](Self::data_blocks), its blocks, and the offset there.
    #[inline]
    pub fn band_at(&self, data: u64) -> (BandId, Range<u64>, Blocks) {
        let (band, start, length, offset) = self.raw_of_data(data);
        let first = self.slips.to_dense(start);
        let blocks = first..self.slips.to_dense(start + length);
        (band, blocks, Blocks(self.slips.to_dense(start + offset) - first))
    }

    /// The band, the offset in it, and the PBA of a data index below [`data_blocks`](Self::data_blocks).
    #[inline]
    pub fn locate(&self, data: u64) -> (BandId, Blocks, Pba) {
        let (band, start, _, offset) = self.raw_of_data(data);
        let pba = self.slips.to_dense(start + offset);
        let offset = if self.slips.is_empty() { offset } else { pba - self.slips.to_dense(start) };
        (band, Blocks(offset), Pba(pba))
    }

    /// The band of a data index, where it begins and how long it is before slips, and the offset there.
    #[inline]
    fn raw_of_data(&self, data: u64) -> (BandId, u64, u64, u64) {
        debug_assert!(data < self.data, "data block {data} of {}", self.data);
        let raw_data = self.data_slips.to_raw(data);
        let r = &self.runs[self.by_data.find(raw_data)];
        let (i, offset) = r.blocks.div_rem_wide(raw_data - r.first_data);
        let (stroke, k) = r.in_stroke.div_rem_wide(i);
        let start = r.first_raw + stroke * r.stroke.divisor() + k * r.stride.divisor();
        (BandId(r.first_band + i), start, r.blocks.divisor(), offset)
    }

    /// The data index of a band's first block; `len()` gives `data_blocks()`.
    #[inline]
    pub fn first_data(&self, band: BandId) -> u64 {
        if band.0 >= self.len {
            return self.data;
        }
        let r = &self.runs[self.by_band.find(band.0)];
        self.data_slips.to_dense(r.first_data + (band.0 - r.first_band) * r.blocks.divisor())
    }
}

/// Leaves out the last bands as long as all their blocks are slipped: such a band begins nowhere.
fn drop_empty_end(runs: &mut Vec<BandSeries>, slips: &Slips) {
    while let Some(last) = runs.last_mut() {
        let (stroke, k) = last.in_stroke.div_rem_wide(last.bands - 1);
        let first = last.first_raw + stroke * last.stroke.divisor() + k * last.stride.divisor();
        if slips.to_dense(first) < slips.to_dense(first + last.blocks.divisor()) {
            return;
        }
        last.bands -= 1;
        if last.bands == 0 {
            runs.pop();
        }
    }
}

/// Tracks of the bands of a run.
#[derive(Clone, Copy, Default)]
struct Tracks {
    first: u64,
    each: u64,
    stride: u64,
    stroke: u64,
}

/// Blocks of the bands of a run.
#[derive(Clone, Copy)]
struct Shape {
    blocks: u64,
    stride: u64,
    stroke: u64,
}

/// Adds a run of `count.0` bands, `count.1` in each stroke.
fn push(runs: &mut Vec<BandSeries>, tracks: Tracks, first_raw: u64, count: (u64, u64), shape: Shape) {
    if count.0 == 0 {
        return;
    }
    runs.push(BandSeries {
        first_band: 0,
        first_data: 0,
        first_raw,
        first_track: tracks.first,
        tracks: tracks.each,
        track_stride: tracks.stride,
        stroke_tracks: tracks.stroke,
        in_stroke: Reciprocal::new(count.1),
        bands: count.0,
        blocks: Reciprocal::new(shape.blocks),
        stride: Reciprocal::new(shape.stride),
        stroke: Reciprocal::new(shape.stroke),
    });
}

/// Lays bands over equal strokes behind the first `skip` rows (tracks, or cylinders); answers how many are still to skip.
fn lay(g: &Geometry, stroke: &StrokeRun, layout: BandLayout, skip: u64, runs: &mut Vec<BandSeries>) -> u64 {
    let pitch = layout.tracks + layout.head_width - 1;
    let rows = stroke.tracks / stroke.unit;
    let behind = |strokes: u64| StrokeRun {
        first: stroke.first + strokes * stroke.tracks,
        repeat: stroke.repeat - strokes,
        ..stroke.clone()
    };
    if skip >= rows {
        let whole = (skip / rows).min(stroke.repeat);
        let skip = skip - whole * rows;
        return if whole == stroke.repeat { skip } else { lay(g, &behind(whole), layout, skip, runs) };
    }
    if stroke.repeat > 1 && skip > 0 {
        // The random-access zone makes this stroke unlike the others.
        lay_one(g, stroke, layout, skip, runs);
        return lay(g, &behind(1), layout, 0, runs);
    }
    if stroke.repeat > 1 {
        let seg = &g.zone_runs()[stroke.zone_runs.start];
        let in_stroke = stroke.tracks / pitch;
        let usable = seg.usable.divisor();
        let tracks =
            Tracks { first: stroke.first, each: layout.tracks, stride: pitch, stroke: stroke.tracks };
        let shape =
            Shape { blocks: layout.tracks * usable, stride: pitch * usable, stroke: stroke.tracks * usable };
        let first_raw = g.track_raw(TrackNo(stroke.first));
        push(runs, tracks, first_raw, (in_stroke * stroke.repeat, in_stroke), shape);
        return 0;
    }
    lay_one(g, stroke, layout, skip, runs);
    0
}

/// Lays bands over one stroke, row by row through the runs of zones that it crosses.
fn lay_one(g: &Geometry, stroke: &StrokeRun, layout: BandLayout, skip: u64, runs: &mut Vec<BandSeries>) {
    let (pitch, unit) = (layout.tracks + layout.head_width - 1, stroke.unit);
    let rows = stroke.tracks / unit;
    let mut row = skip;
    while row + pitch <= rows {
        let first = TrackNo(stroke.first + row * unit);
        let (i, rel) = g.zone_run_of(first);
        let seg = &g.zone_runs()[i];
        let left = (seg.tracks - rel) / unit;
        // A run of a zone of repeated strokes goes on behind this one.
        let whole = left.min(rows - row) / pitch;
        let first_raw = g.track_raw(first);
        let usable = seg.usable.divisor() * unit;
        let (count, blocks, stride) = if whole > 0 {
            (whole, layout.tracks * usable, pitch * usable)
        } else {
            let end = g.track_raw(TrackNo(first.0 + layout.tracks * unit));
            let guard_end = g.track_raw(TrackNo(first.0 + pitch * unit));
            (1, end - first_raw, guard_end - first_raw)
        };
        let tracks = Tracks { first: first.0, each: layout.tracks * unit, stride: pitch * unit, stroke: 0 };
        push(runs, tracks, first_raw, (count, count), Shape { blocks, stride, stroke: stride * count });
        row += count * pitch;
    }
}

#[cfg(test)]
mod tests;
