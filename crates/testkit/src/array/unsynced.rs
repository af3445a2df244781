//! Power cuts that take with them what was recorded and neither fenced nor synced: each block holds what it held at the last sync, or
//! something that was written to it since.

use super::{ArrayHarness, Records, range};
use crate::Rng;
use crate::harness::BYTES;
use smrlab_array::Stop;
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::BTreeSet;
use std::ops::Range;

/// What blocks may hold: what they held at the last sync, or what these requests put there; no data: anything.
#[derive(Default)]
pub(super) struct Unsynced {
    held: Vec<u8>,
    since: Vec<(u64, Range<usize>, Vec<u8>)>,
    /// Blocks that held anything at the sync.
    vague: BTreeSet<u64>,
}

impl ArrayHarness {
    /// All that was done and recorded so far is durable from here on, as when a server has answered a flush. To be called first before
    /// anything is written.
    pub fn sync(&mut self) {
        let mut since = self.unsynced.take().unwrap_or_default().since;
        since.retain(|w| self.open.contains_key(&w.0));
        self.unsynced = Some(Unsynced { held: self.acked.clone(), since, vague: self.vague.clone() });
        self.bench.durable(self.bench.records.len());
        self.event_loop.durable();
    }

    /// A request may change what blocks hold.
    pub(super) fn may_change(&mut self, id: u64, op: HostOp, lba: Lba, blocks: Blocks, data: &[u8]) {
        let Some(unsynced) = &mut self.unsynced else { return };
        match op {
            HostOp::Write => unsynced.since.push((id, range(lba, blocks), data.to_vec())),
            HostOp::Discard => {
                let data = if self.discards { data.to_vec() } else { Vec::new() };
                unsynced.since.push((id, range(lba, blocks), data));
            }
            _ => {}
        }
    }

    /// The power fails; of the plans whose records are not durable the first ones are kept, as many as are drawn.
    ///
    /// # Panics
    /// When a block holds what it may not.
    pub fn cut_unsynced(&mut self, rng: &mut Rng) {
        let Unsynced { held, since, vague } = self.unsynced.take().expect("a sync before");
        self.open.clear();
        let kept = self.bench.may_keep[rng.below(self.bench.may_keep.len() as u64) as usize];
        let mut records = Records::default();
        self.bench.records.iter().take(kept).for_each(|r| records.push(r.tag, r.words.iter().copied()));
        self.bench.records = records;
        self.power_lost(Stop::PowerLost);
        self.settle(rng);
        for (i, block) in self.found(rng).into_iter().enumerate() {
            let at = i * BYTES..(i + 1) * BYTES;
            let block = block.unwrap_or_else(|| panic!("{}: block {i} is lost", self.text));
            let may = |w: &(u64, Range<usize>, Vec<u8>)| {
                w.1.contains(&at.start) && (w.2.is_empty() || w.2[at.start - w.1.start..][..BYTES] == block)
            };
            let fits = block == held[at.clone()] || vague.contains(&(i as u64)) || since.iter().any(may);
            assert!(fits, "{}: block {i} holds what was not there at the sync, nor written since", self.text);
            self.acked[at].copy_from_slice(&block);
        }
        self.model.copy_from_slice(&self.acked);
        self.vague.clear();
        self.sync();
    }
}
