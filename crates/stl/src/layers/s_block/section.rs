//! One section: Algorithms V.1 to V.6 over its two rings.

use super::blocks::{END, NONE, SBlocks};
use super::cache::{CacheRing, Front, Part};
use super::choose::{Policy, Queue, View};
use super::pieces::{Fills, patched};
use super::slots::SlotRing;
use super::spare::Spare;
use super::work::Work;
use super::{Rules, records};
use crate::parts::split::ReadRuns;
use crate::{Cause, Endpoint, OpId, Plan, Record};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// See the [module](self).
pub(super) struct Section {
    /// Number of the section's first S-block in the drive.
    pub first: u64,
    pub cache: CacheRing,
    pub slots: SlotRing,
    pub blocks: SBlocks,
    pub queue: Option<Queue>,
    pub spare: Spare,
    /// What will be destaged soon, so that its list of items is in the processor's caches by then.
    soon: [Soon; 2],
}

/// A list of items that is brought into the processor's caches a step a write; a hint, never a fact.
#[derive(Clone, Copy, Debug)]
enum Soon {
    Idle,
    Block(u32),
    Item(u32),
}

impl Section {
    pub(super) fn new(
        first: u64,
        rings: (CacheRing, SlotRing),
        sblocks: u32,
        queue: Option<Queue>,
        reach: u64,
    ) -> Self {
        let first_slot = if rings.1.is_filled() { 0 } else { rings.1.first_virtual() };
        let (cache, slots) = rings;
        let (blocks, spare) = (SBlocks::new(sblocks, first_slot), Spare::new(reach));
        Self { first, cache, slots, blocks, queue, spare, soon: [Soon::Idle; 2] }
    }

    /// Before anything moves: what a fence elsewhere in the drive brought.
    #[inline]
    pub(super) fn see_fences(&mut self, work: &Work) {
        if !self.spare.is_of(work.fences) {
            self.renew(work.fences);
        }
    }

    fn renew(&mut self, fence: u64) {
        self.spare.renew(fence, self.cache.ring.free(), self.slots.room());
    }

    #[cold]
    fn fence(&mut self, work: &mut Work, plan: &mut Plan) {
        plan.fence();
        work.fences += 1;
        self.renew(work.fences);
    }

    /// `n` blocks will be written to the head of the cache ring. The ring's own pointers may have gone as far with their
    /// head as with their tail already.
    #[inline]
    pub(super) fn spend_blocks(&mut self, n: u64, work: &mut Work, plan: &mut Plan) {
        if !self.spare.take_blocks(n) {
            self.fence(work, plan);
            let taken = self.spare.take_blocks(n);
            debug_assert!(taken, "a fence makes room for every write");
        }
    }

    /// The slot at the head will be written.
    #[inline]
    pub(super) fn spend_slot(&mut self, work: &mut Work, plan: &mut Plan) {
        if !self.spare.take_slot() {
            self.fence(work, plan);
            let taken = self.spare.take_slot();
            debug_assert!(taken, "a fence makes room for a slot");
        }
    }

    /// Takes list `i` a step further.
    #[inline]
    fn warm(&mut self, i: usize) {
        let first = match self.soon[i] {
            Soon::Idle => return,
            Soon::Block(x) => self.blocks.at(x).first,
            Soon::Item(item) => self.cache.next_item(item),
        };
        self.soon[i] = if first & END != 0 {
            Soon::Idle
        } else {
            self.cache.fetch(first);
            Soon::Item(first)
        };
    }

    /// After a destage: the one but two after it will probably be the third one from the tail.
    fn look_ahead(&mut self, rules: &Rules) {
        if rules.policy != Policy::ClosestToTail {
            return;
        }
        let behind = |ahead: u64| self.slots.cached_from(ahead + 1);
        let third = self.slots.cached_from(0).and_then(|(_, a)| behind(a)).and_then(|(_, a)| behind(a));
        let soon = third.map_or(Soon::Idle, |(x, _)| {
            self.blocks.prefetch(x);
            Soon::Block(x)
        });
        self.soon = [self.soon[1], soon];
    }

    fn view(&self, rules: &Rules) -> View<'_> {
        View {
            slots: &self.slots,
            blocks: &self.blocks,
            cache: &self.cache,
            queue: self.queue.as_ref(),
            size: rules.size,
        }
    }

    /// Brings the slot marks and the queue up to date after `x`, which `had` cached blocks or not, has got `more` of them and
    /// lost `fewer`.
    #[inline]
    pub(super) fn recount(&mut self, x: u32, had: bool, more: u64, fewer: u64) {
        let s = self.blocks.at(x);
        if had != (s.first != NONE) {
            self.slots.mark(s.slot, !had);
        }
        if let Some(q) = &mut self.queue {
            q.change(x, more as u32, fewer as u32);
        }
    }

    /// Puts blocks of `x` at the head of the cache ring; older copies become invalid. Answers how many there were.
    #[inline]
    pub(super) fn put(&mut self, x: u32, offset: u64, n: u64) -> u64 {
        let s = self.blocks.at_mut(x);
        let had = s.first != NONE;
        let hit = self.cache.invalidate(s, offset, n);
        self.cache.put(x, offset, n, &mut self.blocks);
        self.recount(x, had, n, hit);
        hit
    }

    /// Takes blocks out of the cache.
    pub(super) fn forget(&mut self, x: u32, offset: u64, n: u64) {
        if self.blocks.at(x).first != NONE {
            let gone = self.cache.invalidate(self.blocks.at_mut(x), offset, n);
            self.recount(x, true, 0, gone);
        }
    }

    /// `x` was written to the head of its ring; `whole`: cached copies are not newer. Answers how many of these there were.
    pub(super) fn placed(&mut self, x: u32, whole: bool) -> u64 {
        let s = self.blocks.at_mut(x);
        s.slot = self.slots.place(x, s.slot);
        let had = s.first != NONE;
        if !whole || !had {
            return 0;
        }
        let gone = self.cache.invalidate_all(s);
        self.recount(x, true, 0, gone);
        gone
    }

    /// Whether a block was ever written since it was discarded, as far as the map knows: it is cached, or its S-block has
    /// a slot.
    pub(super) fn holds(&self, x: u32, offset: u64) -> bool {
        let s = self.blocks.at(x);
        self.slots.is_placed(s.slot) || self.is_cached(x, offset)
    }

    fn is_cached(&self, x: u32, offset: u64) -> bool {
        let mut parts = Vec::new();
        self.cache.parts(&self.blocks.at(x), offset, 1, &mut parts);
        !parts.is_empty()
    }

    pub(super) fn record(plan: &mut Plan, tag: u32, words: [u64; 3]) {
        plan.record(Record { tag, words });
    }

    /// Algorithm V.1 for blocks of one S-block: room, then one write for each place that lies in one piece.
    pub(super) fn write(
        &mut self,
        x: u32,
        span: Range<u64>,
        host: (Range<u64>, u64),
        rules: &Rules,
        work: &mut Work,
        plan: &mut Plan,
    ) -> u32 {
        let most = self.cache.longest(rules.granularity);
        let (mut at, mut ops) = (span.start, 0);
        self.see_fences(work);
        self.warm(0);
        while at < span.end {
            let end = (at + most).min(span.end);
            self.make_room(end - at, rules, work, plan);
            let given = host.0.start.max(at)..host.0.end.min(end);
            let fills = ((at..end) != given).then(|| self.stage_fills(x, at..end, &given, work, plan));
            while at < end {
                let (pba, side) = self.cache.laid.at(self.cache.ring.head());
                let n = side.0.min(end - at);
                self.spend_blocks(n, work, plan);
                let from = Blocks(host.1 + (at.max(host.0.start) - host.0.start));
                match &fills {
                    None => plan.write(Cause::Host, pba, Blocks(n), Endpoint::Host(from)),
                    Some(f) => plan.write_pieces(Cause::Host, pba, Blocks(n), |out| {
                        f.pieces(at..at + n, &given, host.1 + (given.start - host.0.start), out);
                    }),
                };
                let word = (self.first + u64::from(x)) * rules.size + at;
                let skipped = given.start.saturating_sub(at).min(n) << 32;
                let left_over = (at + n).saturating_sub(given.end).min(n) << 48;
                Self::record(plan, records::PUT, [word, n | skipped | left_over, 0]);
                let hit = self.put(x, at, n);
                work.counters.write_hits += u64::from(hit > 0);
                work.counters.write_misses += u64::from(hit == 0);
                at += n;
                ops += 1;
            }
        }
        self.warm(1);
        ops
    }

    /// Reads what completes the units around `given`.
    #[cold]
    fn stage_fills(
        &self,
        x: u32,
        span: Range<u64>,
        given: &Range<u64>,
        work: &mut Work,
        plan: &mut Plan,
    ) -> Fills {
        let mut stage = |gap: Range<u64>, plan: &mut Plan| {
            let first = plan.ops().len();
            if !gap.is_empty() && !self.holds(x, gap.start) {
                // Units are cached as a whole, so nothing in the gap is.
                return vec![(Endpoint::Zero, gap.end - gap.start)];
            }
            if !gap.is_empty() {
                let mut runs = ReadRuns::staged(Cause::Fill);
                self.read_runs(x, gap.start, gap.end - gap.start, &mut work.parts, &mut runs, plan);
                runs.end(plan);
            }
            let staged = |i: usize| Endpoint::Staged(OpId((first + i) as u32), Blocks::ZERO);
            plan.ops()[first..].iter().enumerate().map(|(i, o)| (staged(i), o.blocks.0)).collect()
        };
        let before = stage(span.start..given.start, plan);
        let behind = stage(given.end..span.end, plan);
        Fills { start: span.start, before, behind }
    }

    /// Whether cleaning has to begin with a destage: no invalid block is left, or (repaired) few are.
    fn need_destage(&self, invalid: u64, destaged: u32, rules: &Rules) -> bool {
        if self.cache.live() == 0 {
            return false;
        }
        let low = (rules.low_water * self.cache.capacity() as f64) as u64;
        invalid == 0 || (!rules.literal && invalid < low && destaged < 1 + rules.destage_ahead)
    }

    fn make_room(&mut self, n: u64, rules: &Rules, work: &mut Work, plan: &mut Plan) {
        while self.cache.room() < n {
            self.cache_defrag(n - self.cache.room(), rules, work, plan);
        }
    }

    /// Algorithm V.2: destages where needed, then moves valid blocks from the tail to the head until `need` invalid ones
    /// (or as many as lie there) could be freed.
    fn cache_defrag(&mut self, need: u64, rules: &Rules, work: &mut Work, plan: &mut Plan) {
        while self.need_destage(self.cache.invalid(), work.destaged, rules) {
            let Some(x) = self.view(rules).choose(rules.policy) else { break };
            self.group_destage(x, rules, work, plan);
            work.destaged += 1;
        }
        let first = plan.ops().len();
        let mut moved = 0;
        loop {
            moved += self.move_batch(rules.batch, work, plan);
            match self.cache.front() {
                Front::Valid(_) => {}
                Front::Invalid(n) => {
                    let n = n.min(need);
                    self.cache.reclaim(n, &mut self.blocks);
                    Self::record(plan, records::RECLAIM, [self.first, n, 0]);
                    break;
                }
                Front::Empty => break,
            }
        }
        if moved > 0 {
            work.counters.defrag_blocks += moved;
            plan.cleaned("cache-defrag", first, Blocks(moved));
        }
    }

    /// Copies up to `most` valid blocks from the tail to the head; answers how many.
    #[inline]
    fn move_batch(&mut self, most: u64, work: &mut Work, plan: &mut Plan) -> u64 {
        let to = self.cache.laid.at(self.cache.ring.head());
        let from = self.cache.laid.at(self.cache.ring.tail());
        let most = most.min(to.1.0).min(from.1.0);
        let mut n = self.cache.move_whole(most, &mut self.blocks);
        if n < most
            && let Front::Valid(rest) = self.cache.front()
        {
            let rest = rest.min(most - n);
            self.cache.move_tail(rest, &mut self.blocks);
            n += rest;
        }
        if n > 0 {
            self.spend_blocks(n, work, plan);
            let staged = plan.read_staged(Cause::Defrag, from.0, Blocks(n));
            plan.write(Cause::Defrag, to.0, Blocks(n), Endpoint::Staged(staged, Blocks::ZERO));
            Self::record(plan, records::MOVE, [self.first, n, 0]);
        }
        n
    }

    /// Algorithm V.3: S-block and its cached blocks are read, patched in memory, and written to the S-block ring.
    fn group_destage(&mut self, x: u32, rules: &Rules, work: &mut Work, plan: &mut Plan) {
        self.make_slot(x, rules, work, plan);
        let first = plan.ops().len();
        let s = self.blocks.at(x);
        let home = self.slots.pba(s.slot);
        let base = self.slots.is_placed(s.slot);
        let base = base.then(|| plan.read_staged(Cause::Destage, home, Blocks(rules.size)));
        work.parts.clear();
        self.cache.parts(&s, 0, rules.size, &mut work.parts);
        // Ascending PBAs: a ring that was laid over stretches in PBA order rises with its positions.
        work.parts.sort_unstable_by_key(|p| p.at);
        self.stage_parts(work, plan);
        self.spend_slot(work, plan);
        let head = self.slots.ring.head() as u32;
        let work_parts = &*work;
        plan.write_pieces(Cause::Destage, self.slots.pba(head), Blocks(rules.size), |out| {
            patched(work_parts, base, rules.size, out);
        });
        Self::record(plan, records::PLACED, [self.first + u64::from(x), 1, 0]);
        work.counters.destaged_blocks += self.placed(x, true);
        self.pop_slot(rules, plan);
        self.look_ahead(rules);
        work.counters.destages += 1;
        plan.cleaned("group-destage", first, Blocks(rules.size));
    }

    /// Reads the parts, those that lie side by side in one operation.
    fn stage_parts(&self, work: &mut Work, plan: &mut Plan) {
        work.staged.clear();
        let parts = &work.parts;
        let mut i = 0;
        while i < parts.len() {
            let (pba, side) = self.cache.laid.at(parts[i].at);
            let (mut n, mut j) = (parts[i].blocks, i + 1);
            while j < parts.len() && parts[i].at + n == parts[j].at && n + parts[j].blocks <= side.0 {
                n += parts[j].blocks;
                j += 1;
            }
            let op = plan.read_staged(Cause::Destage, pba, Blocks(n));
            work.staged.extend(parts[i..j].iter().map(|p| (op, p.at - parts[i].at)));
            i = j;
        }
    }

    /// Algorithm V.6 for blocks of one S-block.
    #[inline]
    pub(super) fn read_runs(
        &self,
        x: u32,
        offset: u64,
        n: u64,
        parts: &mut Vec<Part>,
        runs: &mut ReadRuns,
        plan: &mut Plan,
    ) -> bool {
        let s = self.blocks.at(x);
        let home = self.slots.pba(s.slot);
        let placed = self.slots.is_placed(s.slot);
        let at_home = |at: u64, n: u64, plan: &mut Plan, runs: &mut ReadRuns| {
            if placed {
                runs.push(home + Blocks(at), n, plan)
            } else {
                runs.push_empty(home + Blocks(at), n, plan)
            }
        };
        parts.clear();
        self.cache.parts(&s, offset, n, parts);
        parts.sort_unstable_by_key(|p| p.offset);
        let mut at = offset;
        for p in parts.iter() {
            if p.offset > at {
                at_home(at, p.offset - at, plan, runs);
            }
            runs.push(self.cache.laid.pba(p.at), p.blocks, plan);
            at = p.offset + p.blocks;
        }
        if at < offset + n {
            at_home(at, offset + n - at, plan, runs);
        }
        !parts.is_empty()
    }

    /// Where a block lies.
    pub(super) fn place(&self, x: u32, offset: u64) -> Pba {
        let mut parts = Vec::new();
        let s = self.blocks.at(x);
        self.cache.parts(&s, offset, 1, &mut parts);
        match parts.first() {
            Some(p) => self.cache.laid.pba(p.at),
            None => self.slots.pba(s.slot) + Blocks(offset),
        }
    }

    /// The first operation that putting `n` blocks would cause before the write itself.
    pub(super) fn first_cleaning(&self, n: u64, rules: &Rules) -> Option<Pba> {
        let n = n.min(self.cache.longest(rules.granularity));
        let (mut room, mut invalid) = (self.cache.room(), self.cache.invalid());
        let mut runs = self.cache.runs();
        while room < n {
            if self.need_destage(invalid, 0, rules) {
                let x = self.view(rules).choose(rules.policy)?;
                return Some(self.first_of_destage(x, rules));
            }
            let run = runs.next()?;
            if run.item.is_some() {
                return Some(self.cache.laid.pba(run.position));
            }
            let freed = run.blocks.min(n - room);
            (room, invalid) = (room + freed, invalid - freed);
        }
        None
    }

    pub(super) fn bytes(&self) -> u64 {
        self.blocks.bytes()
            + self.cache.bytes()
            + self.slots.bytes()
            + self.queue.as_ref().map_or(0, Queue::bytes)
    }
}
