//! Algorithm V.6: what is cached comes from the cache ring, the rest from where the S-block is.

use super::cache::CachedPart;
use super::section::Section;
use crate::Plan;
use crate::parts::split::ReadRuns;
use smrlab_units::Blocks;

impl Section {
    /// Algorithm V.6 for blocks of one S-block.
    #[inline]
    pub(super) fn read_runs(
        &self,
        x: u32,
        offset: u64,
        n: u64,
        parts: &mut Vec<CachedPart>,
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
}
