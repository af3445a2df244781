//! Emptying cache bands: Algorithm IV.2, its partial variant, the step of idle time, and completing units.

use super::{Cleaning, DiskCache, Found, NativePart, recover};
use crate::parts::split::ReadRuns;
use crate::{Cause, Endpoint, HostRequest, OpId, Piece, Plan, Record, StepEnd, TranslationLayer};
use smrlab_units::{Blocks, Dir, HostOp, Pba};
use std::ops::Range;

/// Lists that are reused from one cleaning to the next.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Key and position of cached units.
    entries: Vec<(u32, u32)>,
    /// Native bands to rewrite, with their slots.
    bands: Vec<(u64, u32)>,
}

/// What is written in place of a native band: itself, patched with cached units.
#[derive(Clone, Copy)]
struct Patch<'a> {
    band: OpId,
    cached: OpId,
    /// Units by key, of this native band only.
    entries: &'a [(u32, u32)],
    /// Key of the band's first unit.
    first_key: u32,
    granularity: u64,
    blocks: u64,
}

impl Patch<'_> {
    fn pieces(&self, out: &mut Vec<Piece>) {
        let g = self.granularity;
        let first = out.len();
        let mut at = 0;
        for &(key, position) in self.entries {
            let offset = u64::from(key - self.first_key) * g;
            if offset > at {
                out.push(Piece { blocks: Blocks(offset - at), end: Endpoint::Staged(self.band, Blocks(at)) });
            }
            push_joined(out, first, self.cached, u64::from(position) * g, g);
            at = offset + g;
        }
        if at < self.blocks {
            out.push(Piece {
                blocks: Blocks(self.blocks - at),
                end: Endpoint::Staged(self.band, Blocks(at)),
            });
        }
    }
}

/// Appends `n` blocks staged by `op` at `from`, joined to the last piece since `first` where they continue it.
fn push_joined(out: &mut Vec<Piece>, first: usize, op: OpId, from: u64, n: u64) {
    match out[first..].last_mut() {
        Some(Piece { blocks, end: Endpoint::Staged(last, start) })
            if *last == op && start.0 + blocks.0 == from =>
        {
            blocks.0 += n;
        }
        _ => out.push(Piece { blocks: Blocks(n), end: Endpoint::Staged(op, Blocks(from)) }),
    }
}

impl DiskCache {
    /// Makes room in a cache band: reads its used part, rewrites native bands, frees it.
    pub(super) fn clean(&mut self, set: usize, plan: &mut Plan) {
        let first = plan.ops().len();
        let before = self.sets[set].live_units;
        let mut work = std::mem::take(&mut self.work);
        let all = self.choose_bands(set, &mut work.bands);
        self.counters.sets_cleaned += 1;
        if !work.bands.is_empty() {
            let cached = self.read_used(set, plan);
            self.list_entries(set, plan.wants_data(), &mut work.entries);
            for &(native, slot) in &work.bands {
                let band = entries_of(&work.entries, slot, self.units());
                self.rewrite(native, slot, (cached, band), plan);
                self.scratch_used();
                self.counters.bands_rewritten += 1;
            }
            if !all {
                self.compact(set, cached, &work, plan);
            }
        }
        let kept = if all { 0 } else { self.sets[set].live_units };
        if all {
            self.reset(set, plan);
        }
        self.work = work;
        plan.cleaned("set-clean", first, Blocks((before - kept) * self.options.granularity));
    }

    fn read_used(&self, set: usize, plan: &mut Plan) -> OpId {
        let used = u64::from(self.sets[set].index.appended()) * self.options.granularity;
        plan.read_staged(Cause::Clean, self.sets[set].base, Blocks(used))
    }

    fn reset(&mut self, set: usize, plan: &mut Plan) {
        plan.record(Record { tag: recover::RESET, words: [set as u64, 0, 0] });
        self.free_set(set);
    }

    pub(super) fn free_set(&mut self, set: usize) {
        self.cached -= self.sets[set].live_units;
        self.homes.release(set, &self.sets);
        self.sets[set].reset();
        self.sets[set].emptied = self.fences;
    }

    /// The native bands to rewrite, ascending; answers whether nothing is left in the set afterwards.
    fn choose_bands(&self, set: usize, out: &mut Vec<(u64, u32)>) -> bool {
        out.clear();
        let s = &self.sets[set];
        let whole = self.options.all_associated && s.live_units > 0;
        let natives = (0..s.slots()).map(|slot| (self.homes.native(set, slot, &self.sets), slot));
        // One of which nothing is cached may belong to another set by now.
        out.extend(natives.filter(|&(native, slot)| {
            s.live(slot) > 0 || whole && self.homes.of(native) == Some((set, slot))
        }));
        let mut all = true;
        if let Cleaning::Partial(most) = self.options.cleaning
            && out.len() > most as usize
        {
            out.sort_unstable_by_key(|&(native, slot)| (u32::MAX - s.live(slot), native));
            out.truncate(most as usize);
            all = false;
        }
        out.sort_unstable();
        all
    }

    /// All cached units of a set by key; nothing where only the operations are wanted.
    fn list_entries(&self, set: usize, wanted: bool, out: &mut Vec<(u32, u32)>) {
        out.clear();
        if wanted {
            out.extend(self.sets[set].index.live());
            out.sort_unstable();
        }
    }

    /// A plan went by way of the scratch band, with a fence behind it.
    fn scratch_used(&mut self) {
        if self.scratch.is_some() {
            self.durable();
            self.scratch_needed = true;
        }
    }

    /// Begins to write the scratch band: what it holds has to be durable where it belongs.
    fn free_scratch(&self, plan: &mut Plan) {
        if self.scratch_needed {
            plan.fence();
        }
        plan.record(Record { tag: recover::SCRATCH_FREE, words: [0; 3] });
    }

    /// Reads a native band, patches it and writes it, by way of the scratch band where there is a journal.
    fn rewrite(&self, native: u64, slot: u32, cached: (OpId, &[(u32, u32)]), plan: &mut Plan) {
        let (at, blocks) = (self.native_start(native), Blocks(self.band));
        let band = plan.read_staged(Cause::Clean, at, blocks);
        let patch = Patch {
            band,
            cached: cached.0,
            entries: cached.1,
            first_key: (u64::from(slot) * self.units()) as u32,
            granularity: self.options.granularity,
            blocks: blocks.0,
        };
        if let Some(scratch) = self.scratch {
            self.free_scratch(plan);
            plan.write_pieces(Cause::Journal, scratch, blocks, |out| patch.pieces(out));
            plan.record(Record { tag: recover::SCRATCH_BAND, words: [native, 0, 0] });
            plan.fence();
        }
        plan.write_pieces(Cause::Clean, at, blocks, |out| patch.pieces(out));
        plan.record(Record { tag: recover::REWRITTEN, words: [native, 0, 0] });
    }

    /// After a partial cleaning: what is left in the cache band moves to its beginning.
    fn compact(&mut self, set: usize, cached: OpId, work: &Work, plan: &mut Plan) {
        for &(native, slot) in &work.bands {
            self.drop_band(set, native, slot);
        }
        let left = self.sets[set].live_units;
        if left == 0 {
            // Everything that was cached is home.
            return self.reset(set, plan);
        }
        let g = self.options.granularity;
        let (at, blocks) = (self.sets[set].base, Blocks(left * g));
        let mut survivors: Vec<u32> = Vec::new();
        if plan.wants_data() {
            survivors.extend(self.sets[set].index.live().map(|(_, p)| p));
        }
        let pieces = |out: &mut Vec<Piece>| {
            let first = out.len();
            survivors.iter().for_each(|&p| push_joined(out, first, cached, u64::from(p) * g, g));
        };
        if let Some(scratch) = self.scratch {
            self.free_scratch(plan);
            plan.write_pieces(Cause::Journal, scratch, blocks, pieces);
            plan.record(Record { tag: recover::SCRATCH_SET, words: [set as u64, left, 0] });
            plan.fence();
        }
        plan.write_pieces(Cause::Clean, at, blocks, pieces);
        plan.record(Record { tag: recover::COMPACTED, words: [set as u64, 0, 0] });
        self.scratch_used();
        self.renumber(set);
    }

    /// Takes all units of a native band out of its set: they are home.
    pub(super) fn drop_band(&mut self, set: usize, native: u64, slot: u32) {
        let units = self.units();
        debug_assert_eq!(self.homes.native(set, slot, &self.sets), native);
        if self.sets[set].live(slot) > 0 {
            self.cached -= self.sets[set].forget_band(slot, units);
        }
    }

    /// The units of a set get the first positions, in their order.
    pub(super) fn renumber(&mut self, set: usize) {
        let keys: Vec<u32> = self.sets[set].index.live().map(|(k, _)| k).collect();
        let index = &mut self.sets[set].index;
        index.clear();
        for key in keys {
            index.append(key, 1);
        }
    }

    /// Writes units of which the host gives only a part: the rest is read from where it lies.
    #[cold]
    pub(super) fn plan_filled(
        &mut self,
        native: u64,
        span: Range<u64>,
        host: Range<u64>,
        from: Blocks,
        at: Pba,
        plan: &mut Plan,
    ) {
        let stage = |gap: Range<u64>, plan: &mut Plan| {
            if gap.is_empty() {
                return None;
            }
            let mut runs = ReadRuns::staged(Cause::Fill);
            let part = NativePart { native, offset: gap.start, blocks: gap.end - gap.start, host: 0 };
            self.read_part(part, &mut Found::default(), &mut runs, plan);
            runs.end(plan);
            // A gap is part of one unit, which lies in one place.
            Some((OpId(plan.ops().len() as u32 - 1), gap.end - gap.start))
        };
        let before = stage(span.start..host.start, plan);
        let behind = stage(host.end..span.end, plan);
        plan.write_pieces(Cause::Host, at, Blocks(span.end - span.start), |out| {
            let staged = |(op, n)| Piece { blocks: Blocks(n), end: Endpoint::Staged(op, Blocks::ZERO) };
            out.extend(before.map(staged));
            out.push(Piece { blocks: Blocks(host.end - host.start), end: Endpoint::Host(from) });
            out.extend(behind.map(staged));
        });
    }

    /// Where the first media operation of a read or write would be.
    pub(super) fn first_operation(&self, request: &HostRequest) -> Option<(Pba, Dir)> {
        let g = self.options.granularity;
        let lba =
            if request.op == HostOp::Read { self.discarded.next_unset(request.lba.0) } else { request.lba.0 };
        if lba >= request.lba.0 + request.blocks.0 {
            return None;
        }
        let (native, offset) = self.by_band.div_rem_wide(lba);
        let home = self.homes.of(native);
        let lies = |offset: u64| {
            let cached = home.and_then(|(set, slot)| {
                let position = self.sets[set].find(slot, self.units(), offset / g)?;
                Some(self.sets[set].base + Blocks(u64::from(position) * g + offset % g))
            });
            cached.unwrap_or(self.native_start(native) + Blocks(offset))
        };
        if request.op == HostOp::Read {
            return Some((lies(offset), Dir::Read));
        }
        let settled = home.filter(|h| !self.options.dynamic || self.sets[h.0].live(h.1) > 0);
        let set = match settled {
            Some((set, _)) => set,
            None => (0..self.sets.len()).rev().max_by_key(|&s| self.sets[s].index.free())?,
        };
        let s = &self.sets[set];
        let (mut appended, mut free) = (u64::from(s.index.appended()), u64::from(s.index.free()));
        if free == 0 {
            if s.live_units > 0 {
                return Some((s.base, Dir::Read));
            }
            (appended, free) = (0, appended);
        }
        let end = offset + request.blocks.0.min(self.band - offset);
        let first_chunk_end = (offset / g + free) * g;
        if !offset.is_multiple_of(g) {
            return Some((lies(offset / g * g), Dir::Read));
        }
        if !end.is_multiple_of(g) && end < first_chunk_end {
            return Some((lies(end), Dir::Read));
        }
        Some((s.base + Blocks(appended * g), Dir::Write))
    }

    /// Plans one step of cleaning in idle time: the first native band of the fullest set. The state stays as it is.
    pub(super) fn plan_step(&mut self, plan: &mut Plan) {
        let cached = |s: &usize| self.sets[*s].live_units > 0;
        let fullest =
            (0..self.sets.len()).filter(cached).rev().max_by_key(|&s| self.sets[s].index.appended());
        let Some(set) = fullest else { return };
        let present = (0..self.sets[set].slots()).filter(|&slot| self.sets[set].live(slot) > 0);
        let Some((native, slot)) = present.map(|slot| (self.homes.native(set, slot, &self.sets), slot)).min()
        else {
            return;
        };
        let first = plan.ops().len();
        let staged = self.read_used(set, plan);
        let mut entries = Vec::new();
        self.list_entries(set, plan.wants_data(), &mut entries);
        self.rewrite(native, slot, (staged, entries_of(&entries, slot, self.units())), plan);
        let moved = u64::from(self.sets[set].live(slot)) * self.options.granularity;
        if self.sets[set].live_units == u64::from(self.sets[set].live(slot)) {
            plan.record(Record { tag: recover::RESET, words: [set as u64, 0, 0] });
        }
        plan.cleaned("idle-clean", first, Blocks(moved));
        self.step = Some(native);
    }

    /// Ends the step: the band's units are home, or nothing happened.
    pub(super) fn end_step(&mut self, end: StepEnd) {
        let Some(native) = self.step.take().filter(|_| end == StepEnd::Done) else { return };
        let Some((set, slot)) = self.homes.of(native) else { return };
        self.drop_band(set, native, slot);
        self.scratch_used();
        self.counters.bands_rewritten += 1;
        if self.sets[set].live_units == 0 {
            self.counters.sets_cleaned += 1;
            self.free_set(set);
        }
    }
}

/// The entries of one native band among all of its set, sorted by key.
fn entries_of(entries: &[(u32, u32)], slot: u32, units: u64) -> &[(u32, u32)] {
    let first = u64::from(slot) * units;
    let from = entries.partition_point(|e| u64::from(e.0) < first);
    let to = entries.partition_point(|e| u64::from(e.0) < first + units);
    &entries[from..to]
}
