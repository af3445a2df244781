//! The journal: what a row is to hold is on the SSD before the disks are written, so that a power cut in the middle of it,
//! together with the loss of a disk, loses nothing (the write hole).

use super::*;

/// Rows that the journal holds at a time; a longer write goes through it batch by batch.
const ROWS: u64 = 64;

/// A row in the journal: its new blocks, one after the other, and behind them its new parity.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    row: u64,
    /// Blocks of the row that are written, from its start; none before the journal holds them all.
    part: Range<u64>,
    /// The parity is there too: its disk was alive.
    parity: bool,
}

impl Kept {
    fn record(&self, place: u64) -> Record {
        let part = self.part.start << 32 | self.part.end;
        Record { tag: KEPT, words: [self.row, place << 1 | u64::from(self.parity), part] }
    }
}

/// Places of a journal, if there is one.
pub(super) fn places(journal: bool) -> Places<Kept> {
    Places::new(if journal { ROWS } else { 0 })
}

impl Raid5 {
    /// Blocks of a place: a row with its parity.
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
        let Work::Host(r) = state.work else { return };
        let all = self.rows.rows_of(r.lba.span(r.blocks));
        state.batch = from..all.end.min(from + ROWS);
        state.at = At::Room;
        if self.places.admit(ticket, (state.batch.end - from) as usize) {
            self.write_journal(ticket, &r, state, plan);
        }
    }

    fn write_journal(&mut self, ticket: Ticket, r: &HostRequest, state: &mut State, plan: &mut MemberPlan) {
        state.at = At::Journal;
        let span = r.lba.span(r.blocks);
        for row in state.batch.clone() {
            let Some(place) = self.places.take(Kept { row, ..Kept::default() }, plan) else { continue };
            state.places.push(place);
            let part = self.rows.within(row, &span);
            let own = state.parity_of(row);
            let parity: u64 = own.iter().map(|p| p.segment.hi - p.segment.lo).sum();
            let n = part.end - part.start;
            let host = row * self.rows.chunk * self.rows.data() + part.start - span.start;
            let lba = Lba(place * self.place_blocks());
            let write = HostRequest::new(HostOp::Write, lba, Blocks(n + parity));
            plan.ask(ticket, self.ssd(), HostRequest { why: Cause::Journal, ..write }, |out| {
                out.push(Blocks(n), End::Host(Blocks(host)));
                for planned in own {
                    let end = out.xor(&self.parity_terms(r, planned, state));
                    out.push(Blocks(planned.segment.hi - planned.segment.lo), end);
                }
            });
        }
        self.journalled += state.places.len() as u64;
    }

    /// The journal holds these rows: from here on a cut is followed by the same writes.
    pub(super) fn kept(&mut self, r: &HostRequest, state: &State, plan: &mut MemberPlan) {
        let span = r.lba.span(r.blocks);
        for (row, place) in state.batch.clone().zip(&state.places) {
            let part = self.rows.within(row, &span);
            let parity = state.planned.iter().any(|p| p.row == row && p.method.is_some());
            let kept = Kept { row, part, parity };
            plan.record(kept.record(*place));
            self.places.put(*place, kept);
        }
        plan.fence();
        self.places.durable();
    }

    /// The disks hold what these places do: those that waited for them go on, in their order.
    pub(super) fn give(&mut self, places: &mut Vec<u64>, plan: &mut MemberPlan) {
        for place in places.drain(..) {
            self.places.give(place);
            plan.record(Record { tag: FREE, words: [place, 0, 0] });
        }
        let needs = |states: &Tickets<Box<State>>, ticket| {
            states.get(ticket).map(|s| (s.batch.end - s.batch.start) as usize)
        };
        while let Some(ticket) = self.places.next(|t| needs(&self.states, t)) {
            let Some(mut state) = self.states.take(ticket) else { continue };
            if let Work::Host(r) = state.work {
                self.write_journal(ticket, &r, &mut state, plan);
            }
            self.states.put(ticket, state);
        }
    }

    /// A record of the journal, at recovery.
    pub(super) fn recover_kept(&mut self, [row, place, part]: [u64; 3]) {
        let part = part >> 32..u64::from(part as u32);
        self.places.put(place >> 1, Kept { row, part, parity: place & 1 == 1 });
    }

    /// The jobs that do again what the journal holds.
    pub(super) fn redo(&self, plan: &mut MemberPlan) {
        self.places.open().for_each(|(place, _)| plan.job(REDO + place));
    }

    /// The journal's rows as records.
    pub(super) fn keep(&self, out: &mut dyn FnMut(Record)) {
        let whole = self.places.open().filter(|(_, kept)| !kept.part.is_empty());
        whole.for_each(|(place, kept)| out(kept.record(place)));
    }

    /// The row that a place holds.
    pub(super) fn kept_row(&self, place: u64) -> u64 {
        self.places.get(place).map_or(0, |kept| kept.row)
    }

    /// Segments of a kept row, with where their parity is in its place.
    fn parities(&self, kept: &Kept) -> Vec<(Range<u64>, u64)> {
        let (mut behind, mut at) = (Vec::new(), kept.part.end - kept.part.start);
        if kept.parity {
            self.rows.segments(&kept.part, |s| {
                behind.push((s.lo..s.hi, at));
                at += s.hi - s.lo;
            });
        }
        behind
    }

    /// Reads a place.
    pub(super) fn start_redo(&mut self, ticket: Ticket, place: u64, plan: &mut MemberPlan) {
        let mut state = self.begin(&Work::Job(REDO + place));
        state.at = At::Sources;
        state.places.push(place);
        match self.places.get(place).cloned() {
            Some(kept) => {
                let parity: u64 =
                    self.parities(&kept).iter().map(|(blocks, _)| blocks.end - blocks.start).sum();
                let blocks = Blocks(kept.part.end - kept.part.start + parity);
                let from = (Lba(place * self.place_blocks()), blocks);
                plan.read_slot(ticket, self.ssd(), Cause::Journal, from, 0);
                self.states.put(ticket, state);
            }
            None => plan.end(ticket),
        }
    }

    /// Writes what a place holds to the disks that are alive.
    pub(super) fn write_redo(&mut self, ticket: Ticket, place: u64, plan: &mut MemberPlan) {
        let Some(kept) = self.places.get(place).cloned() else { return };
        let (row, rows) = (kept.row, self.rows);
        let mut writes = Vec::new();
        for chunk in rows.chunks(&kept.part) {
            let blocks = rows.of_chunk(chunk, &kept.part);
            let at = chunk * rows.chunk + blocks.start - kept.part.start;
            writes.push((chunk, blocks, at, Cause::Host));
        }
        let parities = self.parities(&kept).into_iter();
        writes.extend(parities.map(|(blocks, at)| (rows.data(), blocks, at, Cause::Parity)));
        for (role, blocks, at, why) in writes {
            if self.has(rows.disk(row, role), row) {
                let (lba, n) = self.on_member(row, &blocks);
                let write = HostRequest { why, ..HostRequest::new(HostOp::Write, lba, n) };
                plan.ask(ticket, self.member(row, role), write, |p| p.push(n, End::Slot(0, Blocks(at))));
            }
        }
        // All the disks that it would write are dead.
        if plan.ops().is_empty() {
            self.give(&mut vec![place], plan);
            self.end(ticket, plan);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayContext, parse};

    /// A discard does not go through the journal: that its rows may be out of step is remembered before the disks hear of it.
    #[test]
    fn discarded_rows_are_remembered() {
        let sizes = [Blocks(96); 3];
        let chosen = parse("raid5,disks=3,chunk=2blk,journal=on").unwrap();
        let mut array = chosen.build(&ArrayContext::new(&sizes)).unwrap();
        let (mut plan, discard) =
            (MemberPlan::new(true), HostRequest::new(HostOp::Discard, Lba(2), Blocks(10)));
        array.start(SimTime::ZERO, Ticket(0), &Work::Host(discard), &mut plan);
        assert_eq!(plan.records(), [Record { tag: DIRTY, words: [1, 3, 0] }]);
    }
}
