//! Algorithms V.2 and V.3: room in the cache ring, bought by moving on what is valid at its tail and by destaging S-blocks.

use super::cache::Front;
use super::choose::{Policy, View};
use super::pieces::patched;
use super::section::Section;
use super::work::Work;
use super::{Rules, records};
use crate::{Cause, Endpoint, Plan};
use smrlab_units::{Blocks, Pba};

impl Section {
    fn view(&self, rules: &Rules) -> View<'_> {
        View {
            slots: &self.slots,
            blocks: &self.blocks,
            cache: &self.cache,
            queue: self.queue.as_ref(),
            size: rules.size,
        }
    }

    /// Whether cleaning has to begin with a destage: no invalid block is left, or (repaired) few are.
    fn need_destage(&self, invalid: u64, destaged: u32, rules: &Rules) -> bool {
        if self.cache.live() == 0 {
            return false;
        }
        invalid == 0 || (!rules.literal && invalid < self.low && destaged < 1 + rules.destage_ahead)
    }

    /// Makes room for `n` blocks at the head of the cache ring.
    pub(super) fn make_room(&mut self, n: u64, rules: &Rules, work: &mut Work, plan: &mut Plan) {
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
            match self.cache.front() {
                Front::Valid(_) => moved += self.move_batch(rules.batch, work, plan),
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
        if rules.policy == Policy::ClosestToTail
            && let Some(ahead) = &mut self.ahead
        {
            ahead.destaged(&self.blocks, &self.slots);
        }
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
}
