//! The journal: a collection's chunks are on the SSD before their segments are reset, so that a power cut in the middle of
//! it loses nothing.

use super::*;

/// Collections that the journal holds at a time; others wait.
pub const PLACES: u64 = 16;

/// A stripe as records.
pub(super) fn record_stripe(group: u64, stripe: u64, cells: &[Cell], out: &mut dyn FnMut(Record)) {
    for (disk, cell) in cells.iter().enumerate() {
        out(Record { tag: CELL, words: [group, stripe << 16 | disk as u64, cell.word()] });
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
            kept.records(place, &mut |r| plan.record(r));
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

    /// A record of the journal, at recovery.
    pub(super) fn recover_journal(&mut self, [group, index, lcn]: [u64; 3]) {
        let fresh = index as u32 == 0;
        let kept = self.places.give(index >> 32).filter(|k| !fresh && k.group == group);
        let mut kept = kept.unwrap_or(Kept { group, lcns: Vec::new() });
        kept.lcns.push(lcn);
        self.places.put(index >> 32, kept);
    }

    /// A group was emptied and written: its journal is over.
    pub(super) fn close_journal(&mut self, group: u64) {
        let of_group: Vec<u64> =
            self.places.open().filter(|(_, kept)| kept.group == group).map(|(place, _)| place).collect();
        of_group.into_iter().for_each(|place| _ = self.places.give(place));
    }

    /// Reads a journalled collection back, to do it again.
    pub(super) fn start_redo(
        &mut self,
        ticket: Ticket,
        job: u64,
        plan: &mut MemberPlan,
    ) -> Result<Box<State>, Lost> {
        let place = job - REDO;
        let mut state = self.begin(&Work::Job(job), At::Olds);
        let Some(kept) = self.places.get(place).cloned() else {
            plan.end(ticket);
            return Ok(state);
        };
        let chunk = self.shape.chunk;
        let mut destage = Destage { journal: Some(place), ..self.destage(kept.group, true) };
        for (i, lcn) in kept.lcns.iter().enumerate() {
            let start = place * self.place_blocks() + i as u64 * chunk;
            let old = state.slots.read(self.shape.disks, start, chunk);
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
pub struct Kept {
    pub group: u64,
    /// Chunks that it holds, in their order; none before it holds them all.
    pub lcns: Vec<u64>,
}

impl Kept {
    /// As records.
    pub fn records(&self, place: u64, out: &mut dyn FnMut(Record)) {
        for (i, lcn) in self.lcns.iter().enumerate() {
            out(Record { tag: KEPT, words: [self.group, place << 32 | i as u64, *lcn] });
        }
    }
}
