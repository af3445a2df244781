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
        let free = self.journals.iter().filter(|j| j.is_none()).count();
        if free < count || !self.room.is_empty() {
            state.at = At::Room;
            return self.room.push_back(ticket);
        }
        self.write_journals(ticket, state, plan);
    }

    fn write_journals(&mut self, ticket: Ticket, state: &mut State, plan: &mut MemberPlan) {
        state.at = At::Journal;
        for destage in state.destages.iter_mut().filter(|d| d.collect && d.journal.is_none()) {
            let Some(place) = self.journals.iter().position(Option::is_none) else { continue };
            let place = place as u64;
            destage.journal = Some(place);
            self.journals[place as usize] = Some(Kept { group: destage.group, lcns: Vec::new() });
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
            self.journals[place as usize] = Some(kept);
        }
    }

    /// Places are free again: those that waited go on, in their order.
    pub(super) fn room(&mut self, plan: &mut MemberPlan) {
        while let Some(&ticket) = self.room.front() {
            let Some(mut state) = self.states.take(ticket) else {
                self.room.pop_front();
                continue;
            };
            let count = state.destages.iter().filter(|d| d.collect).count();
            let fits = self.journals.iter().filter(|j| j.is_none()).count() >= count;
            if fits {
                self.room.pop_front();
                self.write_journals(ticket, &mut state, plan);
            }
            self.states.put(ticket, state);
            if !fits {
                return;
            }
        }
    }

    /// A record of the journal, at recovery.
    pub(super) fn recover_journal(&mut self, [group, index, lcn]: [u64; 3]) {
        if let Some(place) = self.journals.get_mut((index >> 32) as usize) {
            let fresh = index as u32 == 0;
            let kept = place.take().filter(|k| !fresh && k.group == group);
            let mut kept = kept.unwrap_or(Kept { group, lcns: Vec::new() });
            kept.lcns.push(lcn);
            *place = Some(kept);
        }
    }

    /// A group was emptied and written: its journal is over.
    pub(super) fn close_journal(&mut self, group: u64) {
        self.journals
            .iter_mut()
            .filter(|j| j.as_ref().is_some_and(|k| k.group == group))
            .for_each(|j| *j = None);
    }

    /// Reads a journalled collection back, to do it again.
    pub(super) fn start_redo(
        &mut self,
        ticket: Ticket,
        job: u64,
        plan: &mut MemberPlan,
    ) -> Result<State, Lost> {
        let place = job - REDO;
        let mut state = self.begin(&Work::Job(job), At::Olds);
        let Some(kept) = self.journals[place as usize].clone() else {
            plan.end(ticket);
            return Ok(state);
        };
        let chunk = self.shape.chunk;
        let mut destage = Destage {
            group: kept.group,
            chunks: Vec::new(),
            fresh: 0,
            collect: true,
            stripes: Vec::new(),
            journal: Some(place),
        };
        for (i, lcn) in kept.lcns.iter().enumerate() {
            let start = place * self.place_blocks() + i as u64 * chunk;
            let old = state.slots.read(self.shape.disks, start, chunk);
            destage.chunks.push(Chunk { lcn: *lcn, new: 0..0, host: None, more: Vec::new(), old: Some(old) });
        }
        let mut lcns = kept.lcns;
        lcns.sort_unstable();
        destage.stripes = group::pack(&self.shape, &lcns, &vec![0; self.shape.disks as usize]).ok_or(Lost)?;
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
