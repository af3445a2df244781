//! What a shingled medium holds: which write is the last that reached each sector.
//!
//! A write only notes its run. A block at some angle of a track holds the data of the latest writer at that angle among the
//! track itself and the `k - 1` tracks upstream, and those data lie at the writer's own address: one level, never more
//! (Pitchumani 2012, section 3.2.3). All that has to be known is who wrote last, so a write costs the same for every `k`.
//!
//! Where tracks matter and sectors are slipped, runs are those of [`Tracks`], which count them: what callers name is brought there and back.

use crate::error::Result;
use crate::leaves::Room;
pub use crate::pieces::Piece;
use crate::pieces::{cover, join};
use crate::run_map::{RunMap, WriteRun};
use crate::tracks::{Track, Tracks};
use smrlab_disk::BlockProfile;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A write that does not simply go on looks for a way to join the run before it only if that is not older than so many
/// writes: out of order are requests that are under way together.
const TOGETHER: u64 = 4096;

/// See the [module](self).
pub struct Shingle {
    tracks: Arc<Tracks>,
    heads: u64,
    /// Following blocks that a write damages, where the head is described by blocks and not by tracks.
    following: Option<u64>,
    /// Whether runs count slipped sectors.
    slipped: bool,
    /// The first shingled block: no write before it damages anything.
    from: u64,
    map: RunMap,
    /// Per track: a number that no run on it exceeds. Memory is taken where there was a write.
    last: Vec<u64>,
    seq: u64,
    /// What was restored last.
    restored: WriteRun,
}

impl Shingle {
    /// A medium never written; a track write touches `head_width` tracks, itself included.
    pub fn new(tracks: Arc<Tracks>, head_width: u64) -> Self {
        let last = vec![0; tracks.count() as usize];
        let restored = WriteRun { start: 0, end: 0, seq: 0 };
        let (heads, map) = (head_width.max(1), RunMap::default());
        let slipped = heads > 1 && tracks.geometry().slipped();
        Self { tracks, heads, following: None, slipped, from: 0, map, last, seq: 0, restored }
    }

    /// A medium whose head damages following blocks, wherever tracks end.
    pub fn of_blocks(tracks: Arc<Tracks>, profile: BlockProfile) -> Self {
        let heads = if profile.reach > 1 { 2 } else { 1 };
        let following = Some(profile.reach.max(1) - 1).filter(|n| *n > 0);
        Self { following, slipped: false, from: profile.from, ..Self::new(tracks, heads) }
    }

    /// Keeps the map within `budget` bytes of memory; see [`RunMap::spill_into`].
    ///
    /// # Errors
    /// As there.
    pub fn spill_into(&mut self, dir: &Path, budget: u64) -> Result<()> {
        self.map.spill_into(dir, budget)
    }

    /// Takes the space that the next write may need for the map.
    ///
    /// # Errors
    /// When the disk is full; nothing was changed then.
    #[inline]
    pub fn reserve(&mut self) -> Result<()> {
        self.map.reserve()
    }

    /// The file of the map grows no more.
    #[cfg(test)]
    pub(crate) fn disk_is_full(&mut self) {
        self.map.disk_is_full();
    }

    /// Whether no write destroys anything: an ordinary disk, of which only is known where it was written.
    pub fn plain(&self) -> bool {
        self.heads == 1
    }

    /// The runs.
    pub fn runs(&self) -> &RunMap {
        &self.map
    }

    /// The stretches of `start..end` that were written, in order.
    pub fn written(&self, start: u64, end: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.raw(start, end).flat_map(|raw| {
            let back = raw.start - self.block(raw.start);
            let held = self.map.overlapping(raw.start, raw.end);
            held.map(move |r| r.start.max(raw.start) - back..r.end.min(raw.end) - back)
        })
    }

    /// What these blocks are in the map.
    fn raw(&self, start: u64, end: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let whole = (!self.slipped).then_some(start..end);
        let parts = self.slipped.then(|| self.tracks.geometry().raw_ranges(start..end));
        whole.into_iter().chain(parts.into_iter().flatten())
    }

    /// The block of one in the map.
    fn block(&self, raw: u64) -> u64 {
        if self.slipped { self.tracks.geometry().block_of_raw(raw) } else { raw }
    }

    /// Blocks of the medium.
    pub fn blocks(&self) -> u64 {
        self.tracks.blocks()
    }

    /// What the map takes.
    pub fn room(&self) -> Room {
        self.map.room()
    }

    /// Takes over a run of a checkpoint, as [`copy_from`](Self::copy_from) gave it, in ascending order of addresses: their numbers are in no order.
    pub fn restore(&mut self, run: WriteRun) {
        let before = std::mem::replace(&mut self.restored, run);
        self.seq = self.seq.max(run.seq);
        if self.plain() {
            return self.cover(run.start, run.end);
        }
        if run.start < before.end {
            // Not one of ours, which ascend.
            self.restored = WriteRun { start: run.start, end: before.end.max(run.end), seq: 0 };
            self.map.set(run.start, run.end, run.seq);
        } else if before.seq != run.seq {
            self.map.push(run);
        } else if before.end == run.start {
            self.map.extend(run.start, run.end, run.seq);
            self.restored.start = before.start;
        } else {
            // Parts of one run, and what lay between was forgotten: see `forget`.
            self.map.push(run);
            self.seq += 1;
            self.touch(run.start - 1, run.start, self.seq);
        }
        self.touch(run.start, run.end, run.seq);
    }

    /// Copies runs from block `from` on, `most` of them; answers where to go on, if not at the end. Between calls writes
    /// may go on. The copy then has numbers of several moments, and yet the order that blocks have here, as far as they
    /// are not written meanwhile: while one of two blocks counts as later than the other, and one can destroy the other or
    /// both a third, the earlier one's number does not change, and that of the later one stays above it.
    pub fn copy_from(&self, from: u64, most: usize, out: &mut Vec<WriteRun>) -> Option<u64> {
        let runs = self.map.overlapping(from, u64::MAX).take(most);
        out.extend(runs.map(|r| WriteRun { start: r.start.max(from), ..r }));
        out.last().map(|r| r.end)
    }

    /// Whether a write of `start..end` changes nothing, because this is an ordinary disk and was written there.
    #[inline]
    pub fn known(&self, start: u64, end: u64) -> bool {
        self.plain()
            && self.map.overlapping(start, end).next().is_some_and(|r| r.start <= start && end <= r.end)
    }

    /// Adds to where an ordinary disk was written.
    fn cover(&mut self, start: u64, end: u64) {
        if self.known(start, end) {
            return;
        }
        let near = self.map.overlapping(start.saturating_sub(1), end + 1);
        let (from, to) = near.fold((start, end), |(from, to), r| (from.min(r.start), to.max(r.end)));
        self.map.set(from, to, 1);
    }

    /// Notes that `start..end` was written. Any order that gives every block that another can destroy its right place
    /// will do, so a write joins the run before it, or that behind it, wherever it can count as written with that one.
    pub fn write(&mut self, start: u64, end: u64) {
        if !self.slipped {
            return self.note(start, end);
        }
        let tracks = self.tracks.clone();
        tracks.geometry().raw_ranges(start..end).for_each(|raw| self.note(raw.start, raw.end));
    }

    #[inline]
    fn note(&mut self, start: u64, end: u64) {
        self.seq += 1;
        if self.plain() {
            return self.cover(start, end);
        }
        let track = self.tracks.at(start);
        let spot = self.map.spot(start);
        let before = spot.before.filter(|_| !self.tracks.begins_stroke(start, &track));
        let seq = match before {
            Some(before) if self.undisturbed(&before, start, &track) => {
                self.map.extend(start, end, self.seq);
                self.seq
            }
            Some(before)
                if self.seq - before.seq <= TOGETHER
                    && !self.conflict(start, end, before.seq, Some(&before)) =>
            {
                self.map.extend(start, end, before.seq);
                self.absorb(end, before.seq);
                before.seq
            }
            _ => {
                if !self.map.renew(&spot, start, end, self.seq) {
                    self.map.set(start, end, self.seq);
                }
                self.seq
            }
        };
        self.touch_from(&track, end, seq);
    }

    /// Joins runs that start at `end` to the one of `seq` that ends there, where they may count as written with it:
    /// requests that were under way together arrive in any order.
    fn absorb(&mut self, mut end: u64, seq: u64) {
        loop {
            let next = self.map.overlapping(end, end + 1).next();
            let Some(next) = next.filter(|r| r.start == end && r.seq > seq) else { return };
            let Some(before) = self.map.ending_at(end) else { return };
            if self.conflict(next.start, next.end, seq, Some(&before)) {
                return;
            }
            self.map.extend(next.start, next.end, seq);
            end = next.end;
        }
    }

    /// Whether any run but `except` that `start..end` destroys, is destroyed by, or shares a victim with is not earlier
    /// than `seq`. Also said of what is too long to look at, and near the edge of a recording zone, where neighbours on
    /// one track share victims.
    fn conflict(&self, start: u64, end: u64, seq: u64, except: Option<&WriteRun>) -> bool {
        if let Some(n) = self.following {
            let mut near = self.map.overlapping(start.saturating_sub(n), end + n);
            return near.any(|w| w.seq >= seq && Some(&w) != except);
        }
        let track = self.tracks.at(start);
        if end > track.end() {
            return true;
        }
        let up = (1..self.heads).filter_map(|j| self.tracks.upstream(&track, j));
        let down = (1..self.heads).filter_map(|j| self.tracks.downstream(&track, j));
        up.chain(down).any(|other| {
            if other.turn != track.turn {
                return true;
            }
            let ranges = self.tracks.writers(&track, start - track.start, end - start, &other);
            // Not to be shortened by `last`: a run that was renewed is later than what its older tracks say.
            ranges.into_iter().filter(|(_, r)| !r.is_empty()).any(|(_, r)| {
                self.map.overlapping(r.start, r.end).any(|w| w.seq >= seq && Some(&w) != except)
            })
        })
    }

    /// Makes `start..end` never written.
    pub fn forget(&mut self, start: u64, end: u64) {
        let ranges: Vec<Range<u64>> = self.raw(start, end).collect();
        ranges.into_iter().for_each(|raw| self.clear(raw.start, raw.end));
    }

    fn clear(&mut self, start: u64, end: u64) {
        self.map.clear(start, end);
        // What is left of a run on either side must not take for untouched what lies between.
        self.seq += 1;
        self.touch(start, end, self.seq);
    }

    fn touch(&mut self, start: u64, end: u64, seq: u64) {
        let first = self.tracks.at(start);
        self.touch_from(&first, end, seq);
    }

    #[inline]
    fn touch_from(&mut self, first: &Track, end: u64, seq: u64) {
        let last = if end <= first.end() { first.index } else { self.tracks.at(end - 1).index };
        for t in &mut self.last[first.index as usize..=last as usize] {
            *t = (*t).max(seq);
        }
    }

    /// Whether nothing that could destroy `run`, which ends at `end` on `track`, or be destroyed by it, was written since
    /// it was last extended. Tracks inside the run are covered by it, so only its ends and what lies around them need a
    /// look.
    #[inline]
    fn undisturbed(&self, run: &WriteRun, end: u64, track: &Track) -> bool {
        if let Some(n) = self.following {
            return self.map.overlapping(run.start.saturating_sub(n), run.end + n).all(|r| r.seq <= run.seq);
        }
        // The run's own last track, as a rule: most writes that do not go on end here.
        (end == track.start || self.last[track.index as usize] <= run.seq) && self.undisturbed_around(run)
    }

    fn undisturbed_around(&self, run: &WriteRun) -> bool {
        let (first, last) = (self.tracks.at(run.start), self.tracks.at(run.end - 1));
        if !self.tracks.same_stroke(&first, &last) {
            return false;
        }
        let quiet = |index: u64| self.last[index as usize] <= run.seq;
        let unit = self.tracks.unit();
        if unit > 1 {
            // Cylinder by cylinder: the ends are whole cylinders with all that is near them.
            let from = first.index.saturating_sub(unit * self.heads);
            let to = (last.index + unit * self.heads + 1).min(self.last.len() as u64);
            let inner = (first.index + unit).min(last.index + 1)..(last.index + 1).saturating_sub(unit);
            return (from..to).filter(|i| !inner.contains(i)).all(quiet);
        }
        let up = (1..self.heads).filter_map(|j| self.tracks.upstream(&first, j));
        let down = (1..self.heads).filter_map(|j| self.tracks.downstream(&last, j));
        quiet(first.index) && quiet(last.index) && up.chain(down).all(|t| quiet(t.index))
    }

    /// Whether `start..end` holds what was last written there, as far as can be said without allocating.
    pub fn clean(&self, start: u64, end: u64) -> bool {
        if self.slipped {
            return self.raw(start, end).all(|raw| self.clean_between(raw.start, raw.end));
        }
        self.clean_between(start, end)
    }

    #[inline]
    fn clean_between(&self, start: u64, end: u64) -> bool {
        if self.heads == 1 || (self.following.is_some() && end <= self.from) {
            return true;
        }
        if let Some(n) = self.following {
            let Some(own) = self.map.overlapping(start, start + 1).next().filter(|r| end <= r.end) else {
                return self.map.overlapping(start.saturating_sub(n), end).next().is_none();
            };
            return self.map.overlapping(start.saturating_sub(n), end).all(|r| r == own || r.seq < own.seq);
        }
        let mut at = start;
        while at < end {
            let track = self.tracks.at(at);
            let stop = end.min(track.end());
            if !self.clean_on(&track, at, stop) {
                return false;
            }
            at = stop;
        }
        true
    }

    fn clean_on(&self, track: &Track, start: u64, end: u64) -> bool {
        let own = self.map.overlapping(start, end).next();
        let own = own.filter(|r| r.start <= start && end <= r.end);
        let (seq, from) = own.map_or((0, u64::MAX), |r| (r.seq, r.start));
        // A tie is one run, whose higher addresses came later.
        let harmless = |up: &Track| {
            let older = self.last[up.index as usize];
            older < seq || (older == seq && up.start < start) || (from <= up.start && up.start < start)
        };
        let ranges = |up: Track| {
            let ranges = self.tracks.writers(track, start - track.start, end - start, &up).map(|(_, r)| r);
            ranges.iter().filter(|r| !r.is_empty()).for_each(|r| self.map.prefetch(r.start));
            (up.start, ranges)
        };
        let ups = (1..self.heads).filter_map(|j| self.tracks.upstream(track, j)).filter(|up| !harmless(up));
        // One ahead: the next is fetched while this one is looked at.
        let mut ups = ups.map(ranges).peekable();
        while let Some((up_start, ranges)) = ups.next() {
            ups.peek();
            let older = |w: WriteRun| w.seq < seq || (w.seq == seq && up_start < start);
            let mut ranges = ranges.into_iter().filter(|r| !r.is_empty());
            if !ranges.all(|r| self.map.overlapping(r.start, r.end).all(older)) {
                return false;
            }
        }
        true
    }

    /// Says that a write of `start` comes soon.
    #[inline]
    pub fn prefetch(&self, start: u64) {
        self.map.prefetch(start);
    }

    /// Where the data of `start..end` lie, in ascending order.
    pub fn resolve(&self, start: u64, end: u64, out: &mut Vec<Piece>) {
        if let Some(n) = self.following {
            return self.resolve_following(start, end, n, out);
        }
        let found = out.len();
        self.raw(start, end).for_each(|raw| self.resolve_between(raw.start, raw.end, out));
        if self.slipped {
            for piece in &mut out[found..] {
                (piece.at, piece.from) = (self.block(piece.at), self.block(piece.from));
            }
        }
        join(out);
    }

    fn resolve_between(&self, start: u64, end: u64, out: &mut Vec<Piece>) {
        let mut at = start;
        while at < end {
            let track = self.tracks.at(at);
            let stop = end.min(track.end());
            let first = out.len();
            self.own(at, stop, out);
            for up in (1..self.heads).filter_map(|j| self.tracks.upstream(&track, j)) {
                if self.last[up.index as usize] > 0 {
                    self.overlay(&track, at, stop, &up, out, first);
                }
            }
            at = stop;
        }
    }

    /// [`resolve`](Self::resolve) where each run damages the `n` blocks behind it, with its last block.
    fn resolve_following(&self, start: u64, end: u64, n: u64, out: &mut Vec<Piece>) {
        let first = out.len();
        self.own(start, end, out);
        for run in self.map.overlapping(start.saturating_sub(n), end).filter(|run| run.end > self.from) {
            for at in run.end.max(start)..(run.end + n).min(end) {
                cover(out, first, Piece { at, blocks: 1, from: run.end - 1, seq: run.seq });
            }
        }
    }

    fn own(&self, start: u64, end: u64, out: &mut Vec<Piece>) {
        let mut at = start;
        let mut push = |at: u64, end: u64, seq| {
            if at < end {
                out.push(Piece { at, blocks: end - at, from: at, seq });
            }
        };
        for run in self.map.overlapping(start, end) {
            let (from, to) = (run.start.max(start), run.end.min(end));
            push(at, from, 0);
            push(from, to, run.seq);
            at = to;
        }
        push(at, end, 0);
    }

    fn overlay(&self, track: &Track, at: u64, end: u64, up: &Track, out: &mut Vec<Piece>, first: usize) {
        if track.turn != up.turn {
            for block in at..end {
                self.overlay_one(track, block, up, out, first);
            }
            return;
        }
        for (victim, range) in self.tracks.writers(track, at - track.start, end - at, up) {
            if range.is_empty() {
                continue;
            }
            for run in self.map.overlapping(range.start, range.end) {
                let (from, to) = (run.start.max(range.start), run.end.min(range.end));
                let hit = track.start + victim + (from - range.start);
                cover(out, first, Piece { at: hit, blocks: to - from, from, seq: run.seq });
            }
        }
    }

    /// Between tracks of unequal length: the last of the sectors that reach into this one.
    fn overlay_one(&self, track: &Track, block: u64, up: &Track, out: &mut Vec<Piece>, first: usize) {
        let best = self
            .tracks
            .writers(track, block - track.start, 1, up)
            .into_iter()
            .filter(|(_, r)| !r.is_empty())
            .flat_map(|(_, r)| {
                self.map.overlapping(r.start, r.end).map(move |w| (w.seq, w.end.min(r.end) - 1))
            })
            .max();
        if let Some((seq, from)) = best {
            cover(out, first, Piece { at: block, blocks: 1, from, seq });
        }
    }
}
