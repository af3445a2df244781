//! The journal: what a row is to hold is on the SSD before the disks are written, so that a power cut in the middle of it,
//! together with the loss of a disk, loses nothing (the write hole).

use super::Parity;
use super::method::SegmentPlan;
use super::operation::{Operation, Task, WriteOp, WritePhase};
use crate::layouts::places::Places;
use crate::{Change, End, MemberId, MemberPlan, Record, Sink, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

/// Rows that the journal holds at a time; a longer write goes through it batch by batch.
pub(super) const ROWS: u64 = 64;

/// A row in the journal: its new blocks, one after the other, and behind them its new parities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    row: u64,
    /// Blocks of the row that are written, from its start; none before the journal holds them all.
    part: Range<u64>,
    /// The parities that are there too, a bit each: their disks were alive.
    parities: u64,
}

/// A change of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum JournalChange {
    /// A place holds this.
    Taken(u64, Entry),
    /// The disks hold it too: the place is free.
    Freed(u64),
}

/// Tags of records.
const TAKEN: u32 = 8;
const FREED: u32 = 9;

impl Change for JournalChange {
    fn put(&self, to: &mut dyn Sink) {
        match self {
            Self::Taken(place, Entry { row, part, parities }) => {
                let words = [*row, place << 1 | parities & 1, part.start << 32 | part.end, parities >> 1];
                // RAID-5 has one parity, and no more to say.
                to.push_all(TAKEN, words.into_iter().take(if parities >> 1 == 0 { 3 } else { 4 }));
            }
            Self::Freed(place) => to.push(FREED, [*place]),
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let [row, place, part, more] = std::array::from_fn(|i| record.word(i));
        match record.tag {
            TAKEN => {
                let part = part >> 32..u64::from(part as u32);
                Some(Self::Taken(place >> 1, Entry { row, part, parities: place & 1 | more << 1 }))
            }
            FREED => Some(Self::Freed(row)),
            _ => None,
        }
    }
}

/// Places of a journal, if there is one.
pub(super) fn places(journal: bool) -> Places<Entry> {
    Places::new(if journal { ROWS } else { 0 })
}

/// Blocks of a parity of these segments.
fn parity_blocks(planned: &[SegmentPlan]) -> u64 {
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

    /// The rows of a write from `first` on go to the journal, as many as it holds, or wait for free places there.
    pub(super) fn enter_journal(&mut self, mut op: Box<WriteOp>, first: u64, plan: &mut MemberPlan) {
        let end = op.rows.end;
        op.journalled = first..end.min(first + ROWS);
        op.phase = WritePhase::AwaitPlaces;
        match self.places.admit(op.ticket, (op.journalled.end - first) as usize) {
            true => self.write_journal(op, plan),
            false => self.wait(op),
        }
    }

    /// The parities of a row that are written.
    fn parities_written(&self, planned: &[SegmentPlan]) -> impl Iterator<Item = u64> + use<> {
        let (code, lost) = (self.rows.code(), planned.first().map(|p| p.lost));
        lost.into_iter().flat_map(move |lost| code.parities_without(lost))
    }

    /// The places are there: writes the rows to them.
    fn write_journal(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) {
        op.phase = WritePhase::WriteJournal;
        for row in op.journalled.clone() {
            let Some(place) = self.take_place(row, plan) else { continue };
            op.places.push(place);
            self.write_place(row, place, &op, plan);
        }
        self.counts.journalled += op.places.len() as u64;
        self.wait(op);
    }

    /// Takes a free place for a row.
    pub(super) fn take_place(&mut self, row: u64, plan: &mut MemberPlan) -> Option<u64> {
        self.places.take(Entry { row, ..Entry::default() }, plan)
    }

    /// Writes the new blocks of a row and its new parities to a place.
    pub(super) fn write_place(&self, row: u64, place: u64, op: &WriteOp, plan: &mut MemberPlan) {
        let (span, own) = (op.span(), op.segments_of(row));
        let part = self.rows.within(row, &span);
        let parities: Vec<u64> = self.parities_written(own).collect();
        let n = part.end - part.start;
        let host = row * self.rows.host_blocks() + part.start - span.start;
        let blocks = Blocks(n + parities.len() as u64 * parity_blocks(own));
        let write = HostRequest::new(HostOp::Write, Lba(place * self.place_blocks()), blocks);
        plan.ask(op.ticket, self.ssd(), write.because(Cause::Journal), |out| {
            out.push(Blocks(n), End::Host(Blocks(host)));
            for (parity, planned) in parities.iter().flat_map(|p| own.iter().map(move |s| (*p, s))) {
                let end = out.sum(&self.parity_terms(parity, planned, op));
                out.push(planned.segment.blocks(), end);
            }
        });
    }

    /// The journal holds these rows: from here on a cut is followed by the same writes.
    pub(super) fn journal_holds(&mut self, op: &WriteOp, plan: &mut MemberPlan) {
        for (row, place) in op.journalled.clone().zip(&op.places) {
            let part = self.rows.within(row, &op.span());
            let written = self.parities_written(op.segments_of(row));
            let parities = written.map(|p| 1 << (p - self.rows.data())).sum();
            let entry = Entry { row, part, parities };
            plan.record(JournalChange::Taken(*place, entry.clone()));
            self.places.put(*place, entry);
        }
        plan.fence();
        self.places.durable();
    }

    /// The disks hold what these places do: those that waited for them go on, in their order.
    pub(super) fn free_places(&mut self, places: &mut Vec<u64>, plan: &mut MemberPlan) {
        for place in places.drain(..) {
            self.places.give(place);
            plan.record(JournalChange::Freed(place));
        }
        let wants = |op: &Operation| match op {
            Operation::Write(op) => (op.journalled.end - op.journalled.start) as usize,
            _ => 0,
        };
        while let Some(ticket) = self.places.next(|ticket| self.operations.get(ticket).map(wants)) {
            if let Some(Operation::Write(op)) = self.operations.take(ticket) {
                self.write_journal(op, plan);
            }
        }
    }

    /// Takes up a record, if it is one of the journal.
    pub(super) fn recover_journal(&mut self, record: Record<'_>) -> bool {
        match JournalChange::of(record) {
            Some(JournalChange::Taken(place, entry)) => self.places.put(place, entry),
            Some(JournalChange::Freed(place)) => _ = self.places.give(place),
            None => return false,
        }
        true
    }

    /// After a cut: what the journal holds is written to the disks again.
    pub(super) fn plan_replays(&self, plan: &mut MemberPlan) {
        self.places.open().for_each(|(place, _)| plan.job(Task::Replay(place)));
    }

    /// The journal's rows as records.
    pub(super) fn checkpoint_journal(&self, out: &mut dyn Sink) {
        let whole = self.places.open().filter(|(_, entry)| !entry.part.is_empty());
        whole.for_each(|(place, entry)| out.add(&JournalChange::Taken(place, entry.clone())));
    }

    /// The row that a place holds.
    pub(super) fn journalled_row(&self, place: u64) -> u64 {
        self.places.get(place).map_or(0, |entry| entry.row)
    }

    /// What a place holds, in its order, and how many blocks that are.
    fn pieces(&self, entry: &Entry) -> (Vec<Piece>, Blocks) {
        let (rows, mut all) = (self.rows, Vec::new());
        for chunk in rows.chunks(&entry.part) {
            let blocks = rows.of_chunk(chunk, &entry.part);
            let at = chunk * rows.chunk + blocks.start - entry.part.start;
            all.push(Piece { role: chunk, blocks, at });
        }
        let mut at = entry.part.end - entry.part.start;
        for parity in (0..rows.parities).filter(|j| entry.parities >> j & 1 == 1) {
            rows.segments(&entry.part, |s| {
                all.push(Piece { role: rows.data() + parity, blocks: s.lo..s.hi, at });
                at += s.hi - s.lo;
            });
        }
        (all, Blocks(at))
    }

    /// Reads a place; answers whether it holds anything.
    pub(super) fn read_journal(&self, ticket: Ticket, place: u64, plan: &mut MemberPlan) -> bool {
        let Some(entry) = self.places.get(place) else { return false };
        let from = (Lba(place * self.place_blocks()), self.pieces(entry).1);
        plan.read_slot(ticket, self.ssd(), Cause::Journal, from, 0);
        true
    }

    /// Writes what a place holds to the disks that are alive; answers whether there are any.
    pub(super) fn replay(&mut self, ticket: Ticket, place: u64, plan: &mut MemberPlan) -> bool {
        let Some(entry) = self.places.get(place).cloned() else { return false };
        let (row, rows) = (entry.row, self.rows);
        for Piece { role, blocks, at } in self.pieces(&entry).0 {
            if self.has(rows.disk(row, role), row) {
                let (lba, n) = rows.on_member(row, &blocks);
                let why = if role < rows.data() { Cause::Host } else { Cause::Parity };
                let write = HostRequest::new(HostOp::Write, lba, n).because(why);
                plan.ask(ticket, rows.member(row, role), write, |p| p.push(n, End::Slot(0, Blocks(at))));
            }
        }
        let any = !plan.ops().is_empty();
        if !any {
            self.free_places(&mut vec![place], plan);
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;
    use crate::layouts::intent;
    use crate::{ArrayContext, Work, parse};

    /// A discard does not go through the journal: that its rows may be out of step is remembered before the disks hear of it.
    #[test]
    fn discarded_rows_are_remembered() {
        let sizes = [Blocks(96); 3];
        let chosen = parse("raid5,disks=3,chunk=2blk,journal=on").unwrap();
        let mut array = chosen.build(&ArrayContext::new(&sizes)).unwrap().array;
        let (mut plan, discard) =
            (MemberPlan::new(true), HostRequest::new(HostOp::Discard, Lba(2), Blocks(10)));
        array.start(Ticket(0), &Work::Host(discard), &mut plan);
        let events: Vec<_> = plan.records().iter().map(intent::IntentChange::of).collect();
        assert_eq!(events, [Some(intent::IntentChange::Dirty(1..3))]);
    }

    /// 70 whole rows of three disks: 64 go through the journal, then six. What is written to the disks waits until the journal is durable.
    #[test]
    fn a_long_write_goes_through_the_journal_batch_by_batch() {
        let chosen = parse("raid5,disks=3,chunk=2blk,journal=on").unwrap();
        let mut array = chosen.build(&ArrayContext::new(&[Blocks(200); 3])).unwrap().array;
        let write = Work::Host(HostRequest::new(HostOp::Write, Lba(0), Blocks(70 * 4)));
        let (mut plan, mut asked) = (MemberPlan::new(true), Vec::new());
        array.start(Ticket(0), &write, &mut plan);
        while !plan.ops().is_empty() {
            let on_ssd = plan.ops().iter().filter(|op| op.member.0 == 3).count();
            asked.push((on_ssd, plan.ops().len() - on_ssd, plan.is_fence()));
            plan.begin(plan.now());
            let phase = crate::Phase { ticket: Ticket(0), lost: false, untaken: None, busy: false };
            array.complete(phase, &mut plan);
        }
        // The second batch goes over places of the first, of which it must be known that the disks have them.
        assert_eq!(asked, [(64, 0, false), (0, 3 * 64, true), (6, 0, true), (0, 3 * 6, true)]);
    }

    /// A row is in the journal when the server is cut; then disk 1 dies. The others get what the journal holds.
    #[test]
    fn a_journal_is_replayed_to_the_disks_that_are_left() {
        let chosen = parse("raid5,disks=3,chunk=2blk,journal=on").unwrap();
        let made = || chosen.build(&ArrayContext::new(&[Blocks(96); 3])).unwrap().array;
        let (mut array, mut plan) = (made(), MemberPlan::new(true));
        let phase = crate::Phase { ticket: Ticket(0), lost: false, untaken: None, busy: false };
        array.start(Ticket(0), &Work::Host(HostRequest::new(HostOp::Write, Lba(0), Blocks(4))), &mut plan);
        array.complete(phase, &mut plan);
        let kept = plan.records().clone();
        for dead in [None, Some(1)] {
            let (mut array, mut plan) = (made(), MemberPlan::new(true));
            array.recover(&kept, &mut plan);
            let job = plan.jobs()[0];
            dead.into_iter().for_each(|disk| array.failed(MemberId(disk), &mut MemberPlan::new(true)));
            let mut plan = MemberPlan::new(true);
            array.start(Ticket(1), &Work::Job(job), &mut plan);
            assert_eq!(plan.ops().iter().map(|op| op.member.0).collect::<Vec<_>>(), [3]);
            let mut plan = MemberPlan::new(true);
            array.complete(crate::Phase { ticket: Ticket(1), ..phase }, &mut plan);
            let mut written: Vec<_> = plan.ops().iter().map(|op| op.member.0).collect();
            written.sort_unstable();
            let expected: Vec<u32> = (0..3).filter(|disk| dead != Some(*disk)).collect();
            assert_eq!(written, expected, "{dead:?}");
        }
    }

    #[test]
    fn what_is_kept_comes_back() {
        for parities in [0, 1, 2, 3] {
            let event = JournalChange::Taken(63, Entry { row: 1 << 40, part: 5..900, parities });
            let mut records = Records::default();
            records.add(&event);
            assert_eq!(records.iter().map(JournalChange::of).collect::<Vec<_>>(), [Some(event)]);
        }
    }
}
