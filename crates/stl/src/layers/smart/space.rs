//! Which rows are free, which of them can be written without harm, and where a track goes.
//!
//! A *pool* is the rows of one recording zone: they have the same length, and tracks do not leave their pool. A *segment* is a
//! run of rows of a pool on one stroke; the rows behind it that the head would reach belong to nobody.

use crate::Plan;
use crate::parts::rows::{Row, Rows};
use smrlab_blockmap::BlockSet;
use smrlab_disk::{DriveModel, TrackNo};
use smrlab_units::Blocks;
use std::ops::Range;

/// A run of rows that hold tracks.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub rows: Range<u64>,
    /// How many of the pool's rows come before it.
    before: u64,
    /// From here on a write does no harm: there are no rows of any pool, or those of another surface.
    pub bound: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Pool {
    /// First LBA, first track, blocks in a track, and tracks.
    pub lba: u64,
    pub track: u64,
    pub length: u64,
    tracks: u64,
    pub segments: Vec<Segment>,
    /// Rows in all.
    rows: u64,
    /// Rows that can be written without harm.
    pub writable: u64,
    /// Where the search for a place for an updated track goes on.
    pub cursor: u64,
}

/// See the [module](self).
pub(super) struct Space {
    pools: Vec<Pool>,
    /// Rows that a write destroys, itself included (`W`).
    pub(super) width: u64,
    /// What the host gets: no more than the drive counts as its size.
    host: u64,
    used: BlockSet,
    /// Free rows of segments behind which nothing is used as far as the head reaches.
    writable: BlockSet,
    /// Rows that were freed since the last fence: what was there may still be needed after a cut.
    unfenced: BlockSet,
}

impl Space {
    /// Of a drive; `overprovision` is the share of rows that no track of the host's has.
    pub(super) fn new(drive: &DriveModel, rows: &Rows, overprovision: f64) -> Result<Self, String> {
        let width = drive.head_width();
        let mut pools = pools_of(drive, rows);
        let (mut lba, mut track) = (0, 0);
        for pool in &mut pools {
            pool.rows = pool.segments.iter().map(|s| s.rows.end - s.rows.start).sum();
            // Between segments as many rows may be free and of no use; gathering needs a few to begin with.
            let lost = pool.segments.len() as u64 * (width - 1) + reserve(width) + width;
            let kept = (pool.rows as f64 * overprovision).ceil() as u64;
            pool.tracks = pool.rows.saturating_sub(lost + kept);
            (pool.lba, pool.track, pool.writable) = (lba, track, pool.rows);
            pool.cursor = pool.segments.first().map_or(0, |s| s.rows.start);
            (lba, track) = (lba + pool.tracks * pool.length, track + pool.tracks);
        }
        pools.retain(|p| p.tracks > 0);
        if pools.is_empty() {
            return Err("no recording zone has room for a track beside those that are kept free: use a larger drive or less \
                 overprovision="
                .to_owned());
        }
        let mut writable = BlockSet::new();
        pools.iter().flat_map(|p| &p.segments).for_each(|s| _ = writable.insert(s.rows.clone()));
        let host = lba.min(drive.counted_blocks().0);
        Ok(Self { pools, width, host, used: BlockSet::new(), writable, unfenced: BlockSet::new() })
    }

    pub(super) fn pools(&self) -> usize {
        self.pools.len()
    }

    pub(super) fn pool(&self, pool: usize) -> &Pool {
        &self.pools[pool]
    }

    pub(super) fn used(&self) -> &BlockSet {
        &self.used
    }

    pub(super) fn host_blocks(&self) -> Blocks {
        Blocks(self.host)
    }

    /// The pool of an LBA.
    pub(super) fn pool_of(&self, lba: u64) -> (usize, &Pool) {
        let i = self.pools.partition_point(|p| p.lba <= lba) - 1;
        (i, &self.pools[i])
    }

    /// The pool of a track.
    pub(super) fn pool_of_track(&self, track: u64) -> usize {
        self.pools.partition_point(|p| p.track <= track) - 1
    }

    /// Where a track would be that was never written.
    pub(super) fn nominal(&self, pool: usize, track: u64) -> u64 {
        let pool = &self.pools[pool];
        let nth = track - pool.track;
        let segment = &pool.segments[pool.segments.partition_point(|s| s.before <= nth) - 1];
        segment.rows.start + nth - segment.before
    }

    /// Whether the pool has as many writable rows as have to be kept.
    pub(super) fn has_reserve(&self, pool: usize) -> bool {
        self.pools[pool].writable >= reserve(self.width)
    }

    /// Writable rows of all pools.
    pub(super) fn writable(&self) -> u64 {
        self.pools.iter().map(|p| p.writable).sum()
    }

    /// Writable rows among these.
    pub(super) fn writable_in(&self, rows: Range<u64>) -> u64 {
        self.writable.count_in(rows)
    }

    /// The share of a pool's rows that can be written.
    pub(super) fn free_share(&self, pool: usize) -> f64 {
        let pool = &self.pools[pool];
        if pool.writable < reserve(self.width) + 2 * self.width {
            return 0.0;
        }
        pool.writable as f64 / pool.rows as f64
    }

    /// A row, and those behind it that a write to it destroys.
    fn reach(&self, pool: usize, row: u64) -> Range<u64> {
        let bound = self.segment_at(pool, row).map_or(row + 1, |i| self.pools[pool].segments[i].bound);
        row..(row + self.width).min(bound)
    }

    /// Whether a write to a row that is in use destroys nothing else that is.
    pub(super) fn is_updatable(&self, pool: usize, row: u64) -> bool {
        !self.used.contains_any(row + 1..self.reach(pool, row).end)
    }

    /// The first writable row of a pool: where cold data gather.
    pub(super) fn first_row(&self, pool: usize) -> Option<u64> {
        let segments = &self.pools[pool].segments;
        let (first, end) = (segments.first()?.rows.start, segments.last()?.rows.end);
        self.in_pool(pool, first, end)
    }

    /// The first writable row of a pool that is not among `rows`, or where there is no other one of these.
    pub(super) fn row_outside(&self, pool: usize, rows: Range<u64>) -> Option<u64> {
        let first = self.first_row(pool)?;
        if !rows.contains(&first) {
            return Some(first);
        }
        let end = self.pools[pool].segments.last()?.rows.end;
        self.in_pool(pool, rows.end, end).or(Some(first))
    }

    fn in_pool(&self, pool: usize, from: u64, end: u64) -> Option<u64> {
        // Zones of several surfaces take turns: rows of other pools may lie in between.
        let mut at = from;
        while let Some(row) = self.writable.next_set(at).filter(|&r| r < end) {
            match self.segment_at(pool, row) {
                Ok(_) => return Some(row),
                Err(next) => at = self.pools[pool].segments.get(next)?.rows.start,
            }
        }
        None
    }

    /// The segment of a pool that has this row, or the one behind it.
    pub(super) fn segment_at(&self, pool: usize, row: u64) -> Result<usize, usize> {
        let segments = &self.pools[pool].segments;
        let next = segments.partition_point(|s| s.rows.end <= row);
        if segments.get(next).is_some_and(|s| s.rows.contains(&row)) { Ok(next) } else { Err(next) }
    }

    /// The next writable row behind the cursor; with `distance` one such that the used row before it stays updatable.
    pub(super) fn next_row(&self, pool: usize, distance: bool) -> Option<u64> {
        let cursor = self.pools[pool].cursor;
        let end = self.pools[pool].segments.last()?.rows.end;
        let row = self.in_pool(pool, cursor, end).or_else(|| self.first_row(pool))?;
        let apart = row + self.width - 1;
        let near = self.used.contains_any(row.saturating_sub(self.width - 1)..row);
        let same = self.segment_at(pool, row).ok() == self.segment_at(pool, apart).ok();
        Some(if distance && near && same && self.writable.contains(apart) { apart } else { row })
    }

    /// An updated track went to `row`.
    pub(super) fn set_cursor(&mut self, pool: usize, row: u64) {
        self.pools[pool].cursor = row + self.width;
    }

    pub(super) fn restore_cursor(&mut self, pool: usize, row: u64) {
        self.pools[pool].cursor = row;
    }

    pub(super) fn take(&mut self, pool: usize, row: u64) {
        self.used.insert(row..row + 1);
        self.settle(pool, row);
    }

    pub(super) fn free(&mut self, pool: usize, row: u64) {
        self.used.remove(row..row + 1);
        self.unfenced.insert(row..row + 1);
        self.settle(pool, row);
    }

    /// Finds anew which rows can be written, of a row that changed and of those that reach it.
    fn settle(&mut self, pool: usize, row: u64) {
        for row in (row + 1).saturating_sub(self.width)..=row {
            if self.segment_at(pool, row).is_err() {
                continue;
            }
            let can = !self.used.contains_any(self.reach(pool, row));
            let did = self.writable.contains(row);
            if can && !did {
                self.writable.insert(row..row + 1);
                self.pools[pool].writable += 1;
            } else if did && !can {
                self.writable.remove(row..row + 1);
                self.pools[pool].writable -= 1;
            }
        }
    }

    /// Fences where a write to `row` goes over, or destroys, what was freed since the last fence.
    pub(super) fn fence_before(&mut self, row: u64, plan: &mut Plan) {
        if self.unfenced.contains_any(row..row + self.width) {
            plan.fence();
            self.durable();
        }
    }

    pub(super) fn durable(&mut self) {
        self.unfenced.clear();
    }

    pub(super) fn bytes(&self) -> u64 {
        let segments: usize = self.pools.iter().map(|p| p.segments.capacity()).sum();
        (self.used.bytes() + self.writable.bytes() + segments * size_of::<Segment>()) as u64
    }
}

/// Writable rows that are kept: a gathering takes up to `W - 1` more than it has given back.
fn reserve(width: u64) -> u64 {
    2 * width
}

/// The segments of each recording zone, with the length of its tracks that holds the most.
fn pools_of(drive: &DriveModel, rows: &Rows) -> Vec<Pool> {
    let (geometry, unit, width) = (drive.geometry(), rows.unit(), drive.head_width());
    let mut found: Vec<(u32, Range<u64>)> = Vec::new();
    for (stroke, aside) in geometry.set_aside(drive.spec().bands.random_access) {
        let (mut row, end) = (stroke.first.0 / unit + aside, (stroke.first.0 + stroke.tracks) / unit);
        while row < end {
            let zone = geometry.zone_of(TrackNo(row * unit));
            let zone_end = ((zone.first_track.0 + zone.tracks) / unit).min(end);
            // The next zone has to be out of reach, and where strokes lie side by side on a surface the next stroke.
            let reached = |j| geometry.following(TrackNo((zone_end - 1) * unit), j as u32).is_some();
            let last =
                if (1..width).any(reached) { zone_end.saturating_sub(width - 1).max(row) } else { zone_end };
            found.push((zone.zone, row..last));
            row = zone_end.max(row + 1);
        }
    }
    let mut zones: Vec<u32> = found.iter().map(|f| f.0).collect();
    zones.sort_unstable();
    zones.dedup();
    let pool = |zone: u32| {
        let ranges: Vec<Range<u64>> = found.iter().filter(|f| f.0 == zone).map(|f| f.1.clone()).collect();
        let blocks = |row: u64| rows.end(Row(row)).0 - rows.first(Row(row)).0;
        let mut lengths: Vec<u64> = ranges.iter().cloned().flatten().map(blocks).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let length =
            (0..lengths.len()).max_by_key(|&i| lengths[i] * (i as u64 + 1)).map_or(0, |i| lengths[i]);
        let (mut segments, mut before): (Vec<Segment>, u64) = (Vec::new(), 0);
        for range in ranges {
            let (mut open, bound) = (false, range.end);
            for row in range {
                if blocks(row) < length || length == 0 {
                    open = false;
                    continue;
                }
                match segments.last_mut() {
                    Some(last) if open => last.rows.end = row + 1,
                    _ => segments.push(Segment { rows: row..row + 1, before, bound }),
                }
                (open, before) = (true, before + 1);
            }
        }
        Pool { lba: 0, track: 0, length, tracks: 0, segments, rows: 0, writable: 0, cursor: 0 }
    };
    zones.into_iter().map(pool).collect()
}
