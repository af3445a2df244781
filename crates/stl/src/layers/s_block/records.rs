//! What survives a power cut: every change of a section's rings as a record, replayed by the same functions.

use super::SBlockLayer;
use super::blocks::SBlock;
use crate::{Record, Records, Sink};

/// Blocks from LBA `words[0]` on were put at the head of their cache ring. The lower half of `words[1]` is their number;
/// bits 32 to 47 and 48 to 63 say how many of the first and last are not the host's.
pub(super) const PUT: u32 = 1;
/// In the section of S-block `words[0]`, `words[1]` blocks moved from the tail of the cache ring to its head.
pub(super) const MOVE: u32 = 2;
/// In the section of S-block `words[0]`, `words[1]` blocks at the tail of the cache ring were freed.
pub(super) const RECLAIM: u32 = 3;
/// S-block `words[0]` was written to the head of its ring: 0 as it was, 1 with its cached blocks, 2 anew by the host.
pub(super) const PLACED: u32 = 4;
/// In the section of S-block `words[0]`, the slot at the tail was freed.
pub(super) const POP: u32 = 5;
/// Blocks `words[0]`, `words[1]` in number, were discarded. In a checkpoint, where they may be several discards in one, `words[2]` is 1:
/// what is cached of them stays so, because a unit of which no discard had all is.
pub(super) const DISCARD: u32 = 6;
/// Checkpoint: the S-block ring of the section of S-block `words[0]` begins at slot `words[1]`; slots follow.
const SLOTS: u32 = 7;
/// Checkpoint: the next slot of the section of S-block `words[0]` holds S-block `words[1]`, or nothing (all ones).
const SLOT: u32 = 8;
/// Checkpoint: the cache ring of the section of S-block `words[0]` begins at position `words[1]`; contents follow.
const RING: u32 = 9;
/// Checkpoint: `words[1]` invalid blocks in the cache ring of the section of S-block `words[0]`.
const INVALID: u32 = 10;
/// Checkpoint: S-block `words[0]` is the latest with its number of cached blocks.
const COUNTED: u32 = 11;
/// Checkpoint: `words[1]` blocks from LBA `words[0]` on are not valid in the cache any more.
const GONE: u32 = 12;

impl SBlockLayer {
    pub(super) fn replay(&mut self, records: &Records) {
        for Record { tag, words } in records.changes() {
            let [a, b, c] = words;
            let size = self.rules.size;
            if tag == DISCARD {
                if c == 1 {
                    self.discarded.insert(a..a + b);
                } else {
                    self.discard(a, b);
                }
                continue;
            }
            let id = if tag == PUT || tag == GONE { a / size } else { a };
            let (section, x) = self.section_of(id);
            let s = &mut self.sections[section];
            match tag {
                PUT => {
                    let (n, before, behind) = (b & 0xffff_ffff, (b >> 32) & 0xffff, b >> 48);
                    s.put(x, a % size, n);
                    self.discarded.remove(a + before..a + n - behind);
                }
                MOVE => s.cache.move_tail(b, &mut s.blocks),
                RECLAIM => s.cache.reclaim(b, &mut s.blocks),
                PLACED => {
                    _ = s.placed(x, b > 0);
                    if b == 2 {
                        self.discarded.remove(id * size..(id + 1) * size);
                    }
                }
                POP => s.slots.pop(),
                SLOTS => s.slots.restart(b),
                SLOT => {
                    let owner = (b != u64::MAX).then_some(b as u32);
                    let slot = s.slots.refill(owner);
                    if let Some(owner) = owner {
                        *s.blocks.at_mut(owner) = SBlock::at(slot);
                    }
                }
                RING => s.cache.ring = crate::parts::ring::Ring::with(s.cache.ring.size(), b, 0),
                GONE => s.forget(x, a % size, b),
                INVALID => s.cache.put_invalid(b, &mut s.blocks),
                COUNTED => s.queue.iter_mut().for_each(|q| q.renew(x)),
                _ => debug_assert!(false, "record {tag} is not the S-block layer's"),
            }
        }
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        let size = self.rules.size;
        for s in &self.sections {
            let mut section = |tag, word| out.push(tag, [s.first, word, 0]);
            if !s.slots.is_untouched() {
                section(SLOTS, s.slots.ring.tail());
                s.slots.owners().for_each(|o| section(SLOT, o.map_or(u64::MAX, u64::from)));
            }
            section(RING, s.cache.ring.tail());
            // A place is restored as one, with its invalid blocks: where they end decides what is freed at once.
            s.cache.contents(&mut |len, cached| match cached {
                Some((x, offset, valid)) => {
                    let lba = (s.first + u64::from(x)) * size + offset;
                    out.push(PUT, [lba, len, 0]);
                    (0..len).filter(|i| valid >> i & 1 == 0).for_each(|i| out.push(GONE, [lba + i, 1, 0]));
                }
                None => out.push(INVALID, [s.first, len, 0]),
            });
            if let Some(q) = &s.queue {
                q.order(&mut |x| out.push(COUNTED, [s.first + u64::from(x), 0, 0]));
            }
        }
        for run in self.discarded.runs() {
            out.push(DISCARD, [run.start, run.end - run.start, 1]);
        }
    }
}
