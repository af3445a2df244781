//! The journal: what a row is to hold is on the SSD before the disks are written, so that a power cut in the middle of it,
//! together with the loss of a disk, loses nothing (the write hole).

use super::Parity;
use super::method::Planned;
use super::state::{Doing, State, Writing};
use crate::layouts::places::Places;
use crate::{Change, End, MemberId, MemberPlan, Record, Records, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

use super::task::Task;

/// Rows that the journal holds at a time; a longer write goes through it batch by batch.
const ROWS: u64 = 64;

/// A row in the journal: its new blocks, one after the other, and behind them its new parities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    row: u64,
    /// Blocks of the row that are written, from its start; none before the journal holds them all.
    part: Range<u64>,
    /// The parities that are there too, a bit each: their disks were alive.
    parities: u64,
}

/// What is recorded of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// A place holds this.
    Kept(u64, Kept),
    /// The disks hold it too: the place is free.
    Free(u64),
}

/// Tags of records.
const KEPT: u32 = 8;
const FREE: u32 = 9;

impl Change for Event {
    fn put(&self, to: &mut Records) {
        match self {
            Self::Kept(place, Kept { row, part, parities }) => {
                let words = [*row, place << 1 | parities & 1, part.start << 32 | part.end, parities >> 1];
                // RAID-5 has one parity, and no more to say.
                to.push(KEPT, words.into_iter().take(if parities >> 1 == 0 { 3 } else { 4 }));
            }
            Self::Free(place) => to.push(FREE, [*place]),
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let [row, place, part, more] = std::array::from_fn(|i| record.word(i));
        match record.tag {
            KEPT => {
                let part = part >> 32..u64::from(part as u32);
                Some(Self::Kept(place >> 1, Kept { row, part, parities: place & 1 | more << 1 }))
            }
            FREE => Some(Self::Free(row)),
            _ => None,
        }
    }
}

/// Places of a journal, if there is one.
pub(super) fn places(journal: bool) -> Places<Kept> {
    Places::new(if journal { ROWS } else { 0 })
}

/// Blocks of a parity of these segments.
fn parity_blocks(planned: &[Planned]) -> u64 {
    planned.iter().map(|p| p.segment.blocks().0).sum()
}

/// A piece of a place, and where it belongs.
struct Piece {
    role: u64,
    /// Blocks within the chunk.
    blocks: Range<u64>,
    /// Where it is in the place.
    at: u64,
}

impl Parity {
    /// Blocks of a place: a row with its parities.
    fn place_blocks(&self) -> u64 {
        self.rows.disks * self.rows.chunk
    }

    pub(super) fn ssd(&self) -> MemberId {
        MemberId(self.rows.disks as u32)
    }

    /// Blocks of all places.
    pub(super) fn journal_size(&self) -> Blocks {
        Blocks(if self.options.journal { ROWS * self.place_blocks() } else { 0 })
    }

    /// The next rows of a write go to the journal, or wait for room there.
    pub(super) fn journal(&mut self, ticket: Ticket, from: u64, state: &mut State, plan: &mut MemberPlan) {
        let Doing::Write(r, _) = state.doing else { return };
        let all = self.rows.rows_of(r.lba.span(r.blocks));
        state.batch = from..all.end.min(from + ROWS);
        state.doing = Doing::Write(r, Writing::Room);
        if self.places.admit(ticket, (state.batch.end - from) as usize) {
            self.write_journal(ticket, &r, state, plan);
        }
    }

    /// The parities of a row that are written.
    fn parities_there(&self, planned: &[Planned]) -> impl Iterator<Item = u64> + use<> {
        let lost = planned.first().map(|p| p.lost);
        lost.into_iter().flat_map({
            let code = self.rows.code();
            move |lost| code.parities_without(lost)
        })
    }

    fn write_journal(&mut self, ticket: Ticket, r: &HostRequest, state: &mut State, plan: &mut MemberPlan) {
        state.doing = Doing::Write(*r, Writing::Journal);
        let span = r.lba.span(r.blocks);
        for row in state.batch.clone() {
            let Some(place) = self.places.take(Kept { row, ..Kept::default() }, plan) else { continue };
            state.places.push(place);
            let part = self.rows.within(row, &span);
            let own = state.parity_of(row);
            let parities: Vec<u64> = self.parities_there(own).collect();
            let n = part.end - part.start;
            let host = row * self.rows.host_blocks() + part.start - span.start;
            let blocks = Blocks(n + parities.len() as u64 * parity_blocks(own));
            let write = HostRequest::new(HostOp::Write, Lba(place * self.place_blocks()), blocks);
            plan.ask(ticket, self.ssd(), HostRequest { why: Cause::Journal, ..write }, |out| {
                out.push(Blocks(n), End::Host(Blocks(host)));
                for (parity, planned) in parities.iter().flat_map(|p| own.iter().map(move |s| (*p, s))) {
                    let end = out.sum(&self.parity_terms(r, parity, planned, state));
                    out.push(planned.segment.blocks(), end);
                }
            });
        }
        self.counts.journalled += state.places.len() as u64;
    }

    /// The journal holds these rows: from here on a cut is followed by the same writes.
    pub(super) fn kept(&mut self, r: &HostRequest, state: &State, plan: &mut MemberPlan) {
        let span = r.lba.span(r.blocks);
        for (row, place) in state.batch.clone().zip(&state.places) {
            let part = self.rows.within(row, &span);
            let there = self.parities_there(state.parity_of(row));
            let parities = there.map(|p| 1 << (p - self.rows.data())).sum();
            let kept = Kept { row, part, parities };
            plan.record(&Event::Kept(*place, kept.clone()));
            self.places.put(*place, kept);
        }
        plan.fence();
        self.places.durable();
    }

    /// The disks hold what these places do: those that waited for them go on, in their order.
    pub(super) fn give(&mut self, places: &mut Vec<u64>, plan: &mut MemberPlan) {
        for place in places.drain(..) {
            self.places.give(place);
            plan.record(&Event::Free(place));
        }
        let rows = |state: &State| (state.batch.end - state.batch.start) as usize;
        while let Some(ticket) = self.places.next(|t| self.states.get(t).map(|state| rows(state))) {
            let Some(mut state) = self.states.take(ticket) else { continue };
            if let Doing::Write(r, _) = state.doing {
                self.write_journal(ticket, &r, &mut state, plan);
            }
            self.states.put(ticket, state);
        }
    }

    /// Takes up a record, if it is one of the journal.
    pub(super) fn recover_journal(&mut self, record: Record<'_>) -> bool {
        let event = Event::of(record);
        let found = event.is_some();
        match event {
            Some(Event::Kept(place, kept)) => self.places.put(place, kept),
            Some(Event::Free(place)) => _ = self.places.give(place),
            None => {}
        }
        found
    }

    /// The jobs that do again what the journal holds.
    pub(super) fn redo(&self, plan: &mut MemberPlan) {
        self.places.open().for_each(|(place, _)| plan.job(Task::Redo(place)));
    }

    /// The journal's rows as records.
    pub(super) fn keep_journal(&self, out: &mut Records) {
        let whole = self.places.open().filter(|(_, kept)| !kept.part.is_empty());
        whole.for_each(|(place, kept)| out.add(&Event::Kept(place, kept.clone())));
    }

    /// The row that a place holds.
    pub(super) fn kept_row(&self, place: u64) -> u64 {
        self.places.get(place).map_or(0, |kept| kept.row)
    }

    /// What a place holds, in its order, and how many blocks that are.
    fn pieces(&self, kept: &Kept) -> (Vec<Piece>, Blocks) {
        let (rows, mut all) = (self.rows, Vec::new());
        for chunk in rows.chunks(&kept.part) {
            let blocks = rows.of_chunk(chunk, &kept.part);
            let at = chunk * rows.chunk + blocks.start - kept.part.start;
            all.push(Piece { role: chunk, blocks, at });
        }
        let mut at = kept.part.end - kept.part.start;
        for parity in (0..rows.parities).filter(|j| kept.parities >> j & 1 == 1) {
            rows.segments(&kept.part, |s| {
                all.push(Piece { role: rows.data() + parity, blocks: s.lo..s.hi, at });
                at += s.hi - s.lo;
            });
        }
        (all, Blocks(at))
    }

    /// Reads a place; answers whether it holds anything.
    pub(super) fn read_journal(&self, ticket: Ticket, place: u64, plan: &mut MemberPlan) -> bool {
        let Some(kept) = self.places.get(place) else { return false };
        let from = (Lba(place * self.place_blocks()), self.pieces(kept).1);
        plan.read_slot(ticket, self.ssd(), Cause::Journal, from, 0);
        true
    }

    /// Writes what a place holds to the disks that are alive; answers whether there are any.
    pub(super) fn write_again(&mut self, ticket: Ticket, place: u64, plan: &mut MemberPlan) -> bool {
        let Some(kept) = self.places.get(place).cloned() else { return false };
        let (row, rows) = (kept.row, self.rows);
        for Piece { role, blocks, at } in self.pieces(&kept).0 {
            if self.has(rows.disk(row, role), row) {
                let (lba, n) = rows.on_member(row, &blocks);
                let why = if role < rows.data() { Cause::Host } else { Cause::Parity };
                let write = HostRequest { why, ..HostRequest::new(HostOp::Write, lba, n) };
                plan.ask(ticket, rows.member(row, role), write, |p| p.push(n, End::Slot(0, Blocks(at))));
            }
        }
        let any = !plan.ops().is_empty();
        if !any {
            self.give(&mut vec![place], plan);
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::intent;
    use crate::{ArrayContext, Work, parse};
    use smrlab_units::SimTime;

    /// A discard does not go through the journal: that its rows may be out of step is remembered before the disks hear of it.
    #[test]
    fn discarded_rows_are_remembered() {
        let sizes = [Blocks(96); 3];
        let chosen = parse("raid5,disks=3,chunk=2blk,journal=on").unwrap();
        let mut array = chosen.build(&ArrayContext::new(&sizes)).unwrap().array;
        let (mut plan, discard) =
            (MemberPlan::new(true), HostRequest::new(HostOp::Discard, Lba(2), Blocks(10)));
        array.start(SimTime::ZERO, Ticket(0), &Work::Host(discard), &mut plan);
        let events: Vec<_> = plan.records().iter().map(intent::Event::of).collect();
        assert_eq!(events, [Some(intent::Event::Dirty(1..3))]);
    }

    #[test]
    fn what_is_kept_comes_back() {
        for parities in [0, 1, 2, 3] {
            let event = Event::Kept(63, Kept { row: 1 << 40, part: 5..900, parities });
            let mut records = Records::default();
            records.add(&event);
            assert_eq!(records.iter().map(Event::of).collect::<Vec<_>>(), [Some(event)]);
        }
    }
}
