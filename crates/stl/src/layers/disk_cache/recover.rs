//! What survives a power cut: the records of the disk cache, and how a fresh layer is rebuilt from them.

use super::{DiskCache, NativePart};
use crate::{Cause, Endpoint, Plan, Record, Records, Sink, TranslationLayer};
use smrlab_units::{Blocks, Lba};

/// Units `words[0]` (counted over the host's space) and those behind it were appended to set `words[2] >> 32` at
/// position `words[2] & 0xffff_ffff`. The lower half of `words[1]` is their number; bits 32 to 47 and 48 to 63 say how
/// many blocks of the first and last unit are not the host's.
pub(super) const APPEND: u32 = 1;
/// Native band `words[0]` was rewritten: none of its units is cached.
pub(super) const REWRITTEN: u32 = 2;
/// The cache band of set `words[0]` is empty.
pub(super) const RESET: u32 = 3;
/// The units of set `words[0]` moved to the beginning of its cache band.
pub(super) const COMPACTED: u32 = 4;
/// Blocks `words[0]`, `words[1]` in number, were discarded. In a checkpoint, where they may be several discards in one, `words[2]` is 1:
/// what is cached of them stays so, because a unit of which no discard had all is.
pub(super) const DISCARD: u32 = 5;
/// The scratch band is about to be overwritten.
pub(super) const SCRATCH_FREE: u32 = 6;
/// The scratch band holds what native band `words[0]` is about to be overwritten with.
pub(super) const SCRATCH_BAND: u32 = 7;
/// The scratch band holds `words[1]` units that the cache band of set `words[0]` is about to be overwritten with.
pub(super) const SCRATCH_SET: u32 = 8;
/// The first `words[1]` positions of set `words[0]` are taken.
const TAKEN: u32 = 9;
/// Checkpoint: native band `words[0]`, none of whose units is cached, belongs to set `words[1]` since that was empty: it is rewritten with
/// the others where all are.
const ADOPTED: u32 = 10;

/// What the scratch band protects.
#[derive(Clone, Copy)]
enum Pending {
    Band(u64),
    Set(u64, u64),
}

impl DiskCache {
    /// What an append leaves behind for recovery.
    #[inline]
    pub(super) fn append_record(&self, part: NativePart, unit: u64, n: u64, place: u64) -> Record {
        let g = self.options.granularity;
        let kept_before = part.offset.saturating_sub(unit * g);
        let kept_behind = ((unit + n) * g).saturating_sub(part.offset + part.blocks);
        let words = [part.native * self.units() + unit, n | (kept_before << 32) | (kept_behind << 48), place];
        Record { tag: APPEND, words }
    }

    pub(super) fn replay(&mut self, records: &Records, plan: &mut Plan) {
        let mut pending = None;
        for Record { tag, words } in records.changes() {
            let [a, b, c] = words;
            match tag {
                APPEND => self.replay_append(a, b, c),
                REWRITTEN => {
                    if let Some((set, slot)) = self.homes.of(a) {
                        self.drop_band(set, a, slot);
                    }
                    pending = None;
                }
                RESET => self.free_set(a as usize),
                COMPACTED => {
                    self.renumber(a as usize);
                    pending = None;
                }
                DISCARD => {
                    if c != 1 {
                        self.forget(Lba(a), Blocks(b));
                    }
                    self.discarded.insert(a..a + b);
                }
                SCRATCH_FREE => pending = None,
                SCRATCH_BAND => pending = Some(Pending::Band(a)),
                SCRATCH_SET => pending = Some(Pending::Set(a, b)),
                ADOPTED => _ = self.homes.settle(a, b as usize, &mut self.sets),
                TAKEN => self.sets[a as usize].index.skip_to(b as u32),
                _ => debug_assert!(false, "record {tag} is not the disk cache's"),
            }
        }
        self.durable();
        if let Some(pending) = pending {
            self.scratch_needed = true;
            self.finish_journalled(pending, plan);
        }
    }

    fn replay_append(&mut self, unit: u64, count: u64, place: u64) {
        let units = self.units();
        let (n, before, behind) = (count & 0xffff_ffff, (count >> 32) & 0xffff, count >> 48);
        let (native, offset) = (unit / units, unit % units);
        let (set, position) = ((place >> 32) as usize, place as u32);
        let (set, slot) = match self.homes.of(native) {
            Some(home) if home.0 == set => home,
            _ => self.homes.settle(native, set, &mut self.sets),
        };
        self.sets[set].index.skip_to(position);
        self.cached += self.sets[set].append(slot, units, offset, n);
        let g = self.options.granularity;
        if !self.discarded.is_empty() {
            self.discarded.remove(unit * g + before..(unit + n) * g - behind);
        }
    }

    /// Writes in place what the scratch band holds. The units of a native band stay cached: they are as new or newer.
    fn finish_journalled(&mut self, pending: Pending, plan: &mut Plan) {
        let Some(scratch) = self.scratch else { return };
        let (at, blocks) = match pending {
            Pending::Band(native) => (self.native_start(native), self.band),
            Pending::Set(set, units) => (self.sets[set as usize].base, units * self.options.granularity),
        };
        let staged = plan.read_staged(Cause::Journal, scratch, Blocks(blocks));
        plan.write(Cause::Journal, at, Blocks(blocks), Endpoint::Staged(staged, Blocks::ZERO));
        if let Pending::Set(set, _) = pending {
            plan.record(Record { tag: COMPACTED, words: [set, 0, 0] });
            self.renumber(set as usize);
        } else {
            plan.record(Record { tag: SCRATCH_FREE, words: [0; 3] });
        }
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        let units = self.units();
        for (set, s) in self.sets.iter().enumerate().filter(|_| self.options.all_associated) {
            let natives = s.natives.iter().map(|&native| u64::from(native)).zip(0..);
            // One may belong to another set by now.
            let own = natives.filter(|&(n, slot)| s.live(slot) == 0 && self.homes.of(n) == Some((set, slot)));
            own.for_each(|(native, _)| out.push(ADOPTED, [native, set as u64, 0]));
        }
        for (set, s) in self.sets.iter().enumerate() {
            for (key, position) in s.index.live() {
                let (slot, unit) = ((u64::from(key) / units) as u32, u64::from(key) % units);
                let native = self.homes.native(set, slot, &self.sets);
                let place = ((set as u64) << 32) | u64::from(position);
                out.push(APPEND, [native * units + unit, 1, place]);
            }
            if s.index.appended() > 0 {
                out.push(TAKEN, [set as u64, u64::from(s.index.appended()), 0]);
            }
        }
        for run in self.discarded.runs() {
            out.push(DISCARD, [run.start, run.end - run.start, 1]);
        }
    }
}
