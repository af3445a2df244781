//! The journal: a collection's chunks are on the SSD before their segments are reset, so that a power cut in the middle of
//! it loses nothing.

use super::destage::Destage;
use super::group::Cell;
use super::state::{At, Doing, State};
use super::{Dvs, Task, pack};
use crate::layouts::chunks::{Chunk, Lost, SlotRead};
use crate::{Change, MemberPlan, Record, Records, Ticket};
use smrlab_stl::Cause;
use smrlab_units::Blocks;
use std::borrow::Cow;

/// Collections that the journal holds at a time; others wait.
pub(super) const PLACES: u64 = 16;

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// This group has this stripe: a cell a disk.
    Stripe(u64, Cow<'a, [Cell]>),
    /// This group was reset.
    Reset(u64),
    /// This chunk of this group holds nothing any more.
    Unmap { group: u64, lcn: u64 },
    /// This place of the journal holds this.
    Kept(u64, Kept),
    /// As earlier versions recorded it: the next cell of a stripe.
    Cell { group: u64, first: bool, cell: Cell },
    /// As earlier versions recorded it: the next chunk of a place of the journal.
    KeptChunk { place: u64, first: bool, group: u64, lcn: u64 },
}

/// Tags of records; 4 to 7 are about disks.
const CELL: u32 = 1;
const RESET: u32 = 2;
const UNMAP: u32 = 3;
const KEPT_CHUNK: u32 = 8;
const STRIPE: u32 = 9;
const KEPT: u32 = 10;

impl Change for Event<'_> {
    fn put(&self, to: &mut Records) {
        match self {
            Self::Stripe(group, cells) => {
                to.push(STRIPE, std::iter::once(*group).chain(cells.iter().map(|c| c.word())));
            }
            Self::Reset(group) => to.push(RESET, [*group]),
            Self::Unmap { group, lcn } => to.push(UNMAP, [*group, *lcn]),
            Self::Kept(place, kept) => {
                to.push(KEPT, [*place, kept.group].into_iter().chain(kept.lcns.iter().copied()));
            }
            Self::Cell { group, first, cell } => {
                to.push(CELL, [*group, u64::from(!first), cell.word()]);
            }
            Self::KeptChunk { place, first, group, lcn } => {
                to.push(KEPT_CHUNK, [*group, place << 32 | u64::from(!first), *lcn]);
            }
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let [a, b, c] = std::array::from_fn(|i| record.word(i));
        let rest = |from: usize| record.words.iter().skip(from).copied();
        Some(match record.tag {
            STRIPE => Self::Stripe(a, rest(1).map(Cell::from_word).collect()),
            RESET => Self::Reset(a),
            UNMAP => Self::Unmap { group: a, lcn: b },
            KEPT => Self::Kept(a, Kept { group: b, lcns: rest(2).collect() }),
            CELL => Self::Cell { group: a, first: b & 0xffff == 0, cell: Cell::from_word(c) },
            KEPT_CHUNK => Self::KeptChunk { place: b >> 32, first: b as u32 == 0, group: a, lcn: c },
            _ => return None,
        })
    }
}

impl Dvs {
    /// Blocks of a place: all data chunks of a group.
    fn place_blocks(&self) -> u64 {
        self.shape.logical * self.shape.chunk
    }

    /// Blocks of all places.
    pub(super) fn journal_size(&self) -> Blocks {
        Blocks(if self.options.journal { PLACES * self.place_blocks() } else { 0 })
    }

    /// Writes the chunks of `count` collections to free places, or waits for these.
    pub(super) fn journal(&mut self, ticket: Ticket, state: &mut State, count: usize, plan: &mut MemberPlan) {
        state.at = At::Room;
        if self.places.admit(ticket, count) {
            self.write_journals(ticket, state, plan);
        }
    }

    fn write_journals(&mut self, ticket: Ticket, state: &mut State, plan: &mut MemberPlan) {
        state.at = At::Journal;
        for destage in state.destages.iter_mut().filter(|d| d.collect && d.journal.is_none()) {
            let kept = Kept { group: destage.group, lcns: Vec::new() };
            let Some(place) = self.places.take(kept, plan) else { continue };
            destage.journal = Some(place);
            self.counts.journalled += destage.chunks.len() as u64;
            destage.write_journal(&self.shape, ticket, place * self.place_blocks(), plan);
        }
    }

    /// The journal has them: from here on a cut is followed by the same collection.
    pub(super) fn journalled(&mut self, state: &State, plan: &mut MemberPlan) {
        for destage in &state.destages {
            let Some(place) = destage.journal else { continue };
            let lcns: Vec<u64> = destage.chunks.iter().map(|c| c.lcn).collect();
            let kept = Kept { group: destage.group, lcns };
            plan.record(&Event::Kept(place, kept.clone()));
            self.places.put(place, kept);
            plan.fence();
            self.places.durable();
        }
    }

    /// Places are free again: those that waited go on, in their order.
    pub(super) fn room(&mut self, plan: &mut MemberPlan) {
        let needs = |s: &State| s.destages.iter().filter(|d| d.collect).count();
        while let Some(ticket) = self.places.next(|t| self.states.get(t).map(|s| needs(s))) {
            let Some(mut state) = self.states.take(ticket) else { continue };
            self.write_journals(ticket, &mut state, plan);
            self.states.put(ticket, state);
        }
    }

    /// Takes up a change; `cells`: of a stripe that arrays made by earlier versions have in several records.
    pub(super) fn recovered(&mut self, event: Event<'_>, cells: &mut Vec<Cell>) {
        let (disks, shape) = (self.shape.disks as usize, self.shape);
        match event {
            Event::Stripe(group, stripe) => self.group_mut(group).append(&stripe),
            Event::Cell { group, first, cell } => {
                if first {
                    cells.clear();
                }
                cells.push(cell);
                if cells.len() == disks {
                    self.group_mut(group).append(cells);
                    cells.clear();
                }
            }
            Event::Reset(group) => {
                self.group_mut(group).reset(&shape);
                self.close_journal(group);
            }
            Event::Unmap { group, lcn } => self.group_mut(group).unmap(lcn),
            Event::Kept(place, kept) => self.places.put(place, kept),
            Event::KeptChunk { place, first, group, lcn } => self.recover_chunk(place, first, group, lcn),
        }
    }

    /// A chunk that a place holds, as earlier versions recorded it.
    fn recover_chunk(&mut self, place: u64, first: bool, group: u64, lcn: u64) {
        let kept = self.places.give(place).filter(|k| !first && k.group == group);
        let mut kept = kept.unwrap_or(Kept { group, lcns: Vec::new() });
        kept.lcns.push(lcn);
        self.places.put(place, kept);
    }

    /// A group was emptied and written: its journal is over.
    fn close_journal(&mut self, group: u64) {
        let of_group: Vec<u64> =
            self.places.open().filter(|(_, kept)| kept.group == group).map(|(place, _)| place).collect();
        of_group.into_iter().for_each(|place| _ = self.places.give(place));
    }

    /// Reads a journalled collection back, to do it again.
    pub(super) fn start_redo(
        &mut self,
        ticket: Ticket,
        place: u64,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        let mut state = self.begin(Doing::Task(Task::Redo(place)), At::Olds);
        let Some(kept) = self.places.get(place).cloned() else {
            plan.end(ticket);
            return Ok(state);
        };
        let chunk = self.shape.chunk;
        let mut destage = Destage { journal: Some(place), ..self.destage(kept.group, true) };
        for (i, lcn) in kept.lcns.iter().enumerate() {
            let start = place * self.place_blocks() + i as u64 * chunk;
            // The SSD stands behind the disks.
            let old = state.slots.read(SlotRead { disk: self.shape.disks, start, blocks: chunk });
            destage.chunks.push(Chunk { lcn: *lcn, new: 0..0, host: None, more: Vec::new(), old: Some(old) });
        }
        let mut lcns = kept.lcns;
        lcns.sort_unstable();
        destage.stripes = pack::pack_all(&self.shape, &lcns).ok_or(Lost)?;
        state.destages.push(destage);
        self.group_mut(kept.group);
        state.slots.plan(ticket, Cause::Journal, plan);
        Ok(state)
    }
}

/// A place of the journal that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub group: u64,
    /// Chunks that it holds, in their order; none before it holds them all.
    pub lcns: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_record_and_comes_back() {
        let cells = [0x0001_0002, 0xffff_0000, 0xfffe_0007].map(Cell::from_word);
        let kept = Kept { group: 5, lcns: vec![1, 200, 3] };
        let all = [
            Event::Stripe(7, cells.to_vec().into()),
            Event::Reset(8),
            Event::Unmap { group: 9, lcn: 3 },
            Event::Kept(15, kept),
            Event::Cell { group: 1, first: false, cell: cells[0] },
            Event::KeptChunk { place: 3, first: true, group: 1, lcn: 9 },
        ];
        let mut records = Records::default();
        all.iter().for_each(|event| records.add(event));
        let again: Vec<_> = records.iter().map(|r| Event::of(r).unwrap()).collect();
        assert_eq!((again.as_slice(), records.len()), (&all[..], 6));
    }
}
