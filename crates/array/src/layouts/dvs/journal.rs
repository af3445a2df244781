//! The journal: a collection's chunks are on the SSD before their segments are reset, so that a power cut in the middle of
//! it loses nothing.

use super::group::Cell;
use super::group_write::GroupWrite;
use super::operation::{Operation, Purpose, Task, WriteOp, WritePhase};
use super::{Dvs, pack};
use crate::layouts::chunks::{Chunk, Lost, SlotRead};
use crate::{Change, MemberPlan, Record, Sink, Ticket};
use smrlab_stl::Cause;
use smrlab_units::Blocks;
use std::borrow::Cow;

/// Collections that the journal holds at a time; others wait.
pub(super) const PLACES: u64 = 16;

/// A change of the tables, or of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TableChange<'a> {
    /// This group has this stripe: a cell a disk.
    Stripe(u64, Cow<'a, [Cell]>),
    /// This group was reset.
    Reset(u64),
    /// This chunk of this group holds nothing any more.
    Unmap { group: u64, lcn: u64 },
    /// This place of the journal holds this.
    Journalled(u64, Entry),
    /// As earlier versions recorded it: the next cell of a stripe.
    Cell { group: u64, first: bool, cell: Cell },
    /// As earlier versions recorded it: the next chunk of a place of the journal.
    JournalledChunk { place: u64, first: bool, group: u64, lcn: u64 },
}

/// Tags of records; 4 to 7 are about disks.
const CELL: u32 = 1;
const RESET: u32 = 2;
const UNMAP: u32 = 3;
const JOURNALLED_CHUNK: u32 = 8;
const STRIPE: u32 = 9;
const JOURNALLED: u32 = 10;

impl Change for TableChange<'_> {
    fn put(&self, to: &mut dyn Sink) {
        match self {
            Self::Stripe(group, cells) => {
                to.push_all(STRIPE, std::iter::once(*group).chain(cells.iter().map(|c| c.word())));
            }
            Self::Reset(group) => to.push(RESET, [*group]),
            Self::Unmap { group, lcn } => to.push(UNMAP, [*group, *lcn]),
            Self::Journalled(place, entry) => {
                to.push_all(JOURNALLED, [*place, entry.group].into_iter().chain(entry.lcns.iter().copied()));
            }
            Self::Cell { group, first, cell } => {
                to.push(CELL, [*group, u64::from(!first), cell.word()]);
            }
            Self::JournalledChunk { place, first, group, lcn } => {
                to.push(JOURNALLED_CHUNK, [*group, place << 32 | u64::from(!first), *lcn]);
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
            JOURNALLED => Self::Journalled(a, Entry { group: b, lcns: rest(2).collect() }),
            CELL => Self::Cell { group: a, first: b & 0xffff == 0, cell: Cell::from_word(c) },
            JOURNALLED_CHUNK => {
                Self::JournalledChunk { place: b >> 32, first: b as u32 == 0, group: a, lcn: c }
            }
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

    /// The chunks of collections go to the journal, of as many as it holds, or wait for free places there.
    pub(super) fn enter_journal(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) {
        let mut collections = 0;
        let fit = op.groups.iter().position(|write| {
            collections += u64::from(write.collect);
            collections > PLACES
        });
        let rest = op.groups.split_off(fit.unwrap_or(op.groups.len()));
        op.rest.splice(0..0, rest);
        op.phase = WritePhase::AwaitPlaces;
        let count = op.groups.iter().filter(|write| write.wants_journal()).count();
        match self.places.admit(op.ticket, count) {
            true => self.write_journal(op, plan),
            false => self.wait(op),
        }
    }

    /// The places are there: writes the chunks to them.
    fn write_journal(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) {
        op.phase = WritePhase::WriteJournal;
        let ticket = op.ticket;
        for write in op.groups.iter_mut().filter(|write| write.wants_journal()) {
            let entry = Entry { group: write.group, lcns: Vec::new() };
            let Some(place) = self.places.take(entry, plan) else { continue };
            write.journal = Some(place);
            self.counts.journalled += write.chunks.len() as u64;
            write.write_journal(&self.shape, ticket, place * self.place_blocks(), plan);
        }
        self.wait(op);
    }

    /// The journal has them: from here on a cut is followed by the same collection.
    pub(super) fn journal_holds(&mut self, op: &WriteOp, plan: &mut MemberPlan) {
        for write in &op.groups {
            let Some(place) = write.journal else { continue };
            let lcns: Vec<u64> = write.chunks.iter().map(|c| c.lcn).collect();
            let entry = Entry { group: write.group, lcns };
            plan.record(TableChange::Journalled(place, entry.clone()));
            self.places.put(place, entry);
            plan.fence();
            self.places.durable();
        }
    }

    /// Places may be free again: those that waited go on, in their order.
    pub(super) fn use_free_places(&mut self, plan: &mut MemberPlan) {
        let wants = |operation: &Operation| match operation {
            Operation::Write(op) => op.groups.iter().filter(|write| write.collect).count(),
            _ => 0,
        };
        while let Some(ticket) = self.places.next(|ticket| self.operations.get(ticket).map(wants)) {
            if let Some(Operation::Write(op)) = self.operations.take(ticket) {
                self.write_journal(op, plan);
            }
        }
    }

    /// Takes up a change; `cells`: of a stripe that arrays made by earlier versions have in several records.
    pub(super) fn recovered(&mut self, event: TableChange<'_>, cells: &mut Vec<Cell>) {
        let (disks, shape) = (self.shape.disks as usize, self.shape);
        match event {
            TableChange::Stripe(group, stripe) => self.group_mut(group).append(&stripe),
            TableChange::Cell { group, first, cell } => {
                if first {
                    cells.clear();
                }
                cells.push(cell);
                if cells.len() == disks {
                    self.group_mut(group).append(cells);
                    cells.clear();
                }
            }
            TableChange::Reset(group) => {
                self.group_mut(group).reset(&shape);
                self.close_journal(group);
            }
            TableChange::Unmap { group, lcn } => self.group_mut(group).unmap(lcn),
            TableChange::Journalled(place, entry) => self.places.put(place, entry),
            TableChange::JournalledChunk { place, first, group, lcn } => {
                self.recover_chunk(place, first, group, lcn)
            }
        }
    }

    /// A chunk that a place holds, as earlier versions recorded it.
    fn recover_chunk(&mut self, place: u64, first: bool, group: u64, lcn: u64) {
        let entry = self.places.give(place).filter(|k| !first && k.group == group);
        let mut entry = entry.unwrap_or(Entry { group, lcns: Vec::new() });
        entry.lcns.push(lcn);
        self.places.put(place, entry);
    }

    /// A group was emptied and written: its journal is over.
    fn close_journal(&mut self, group: u64) {
        let of_group: Vec<u64> =
            self.places.open().filter(|(_, entry)| entry.group == group).map(|(place, _)| place).collect();
        of_group.into_iter().for_each(|place| _ = self.places.give(place));
    }

    /// Reads a journalled collection back, to do it again.
    pub(super) fn begin_replay(
        &mut self,
        ticket: Ticket,
        place: u64,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let Some(Entry { group, mut lcns }) = self.places.get(place).cloned() else {
            plan.end(ticket);
            return Ok(());
        };
        let mut op = self.new_write(ticket, Purpose::Task(Task::Replay(place)));
        let mut write = GroupWrite { journal: Some(place), ..self.new_group_write(group, true) };
        for (i, lcn) in (0..).zip(&lcns) {
            let start = place * self.place_blocks() + i * self.shape.chunk;
            // The SSD stands behind the disks.
            let old = op.slots.read(SlotRead { disk: self.shape.disks, start, blocks: self.shape.chunk });
            write.chunks.push(Chunk::moved(*lcn, old));
        }
        lcns.sort_unstable();
        write.stripes = pack::pack_all(&self.shape, &lcns).ok_or(Lost)?;
        op.groups.push(write);
        self.group_mut(group);
        op.slots.plan(ticket, Cause::Journal, plan);
        self.wait(op);
        Ok(())
    }
}

/// A place of the journal that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub group: u64,
    /// Chunks that it holds, in their order; none before it holds them all.
    pub lcns: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;

    #[test]
    fn a_change_is_one_record_and_comes_back() {
        let cells = [0x0001_0002, 0xffff_0000, 0xfffe_0007].map(Cell::from_word);
        let entry = Entry { group: 5, lcns: vec![1, 200, 3] };
        let all = [
            TableChange::Stripe(7, cells.to_vec().into()),
            TableChange::Reset(8),
            TableChange::Unmap { group: 9, lcn: 3 },
            TableChange::Journalled(15, entry),
            TableChange::Cell { group: 1, first: false, cell: cells[0] },
            TableChange::JournalledChunk { place: 3, first: true, group: 1, lcn: 9 },
        ];
        let mut records = Records::default();
        all.iter().for_each(|event| records.add(event));
        let again: Vec<_> = records.iter().map(|r| TableChange::of(r).unwrap()).collect();
        assert_eq!((again.as_slice(), records.len()), (&all[..], 6));
    }
}
