//! Writes, discards and collections: chunks are packed into new stripes, and the tables follow when these are written.

use super::group::{self, Cell};
use super::group_write::GroupWrite;
use super::journal::TableChange;
use super::operation::{Purpose, Task, WriteOp, WritePhase};
use super::source::Source;
use super::{Dvs, Stripes};
use crate::layouts::chunks::{Chunk, Lost, missing};
use crate::{MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::BTreeSet;
use std::ops::Range;

impl Dvs {
    /// Begins a write of the host's, or a discard: where that takes a chunk in part it writes zeroes.
    pub(super) fn begin_write(
        &mut self,
        ticket: Ticket,
        r: &HostRequest,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let mut op = self.new_write(ticket, Purpose::Host(*r));
        self.add_range(&mut op, r.span(), 0, r.op == HostOp::Write)?;
        self.pack_and_read(op, plan)
    }

    /// Begins a write of several ranges, of which the host's buffer holds one after the other.
    pub(super) fn begin_runs(
        &mut self,
        ticket: Ticket,
        runs: Vec<Range<u64>>,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let touched: BTreeSet<u64> = runs.iter().flat_map(|r| self.groups_of(r)).collect();
        touched.into_iter().for_each(|group| self.touch(group..group + 1));
        let mut op = self.new_write(ticket, Purpose::Runs(Vec::new()));
        let mut at = 0;
        for run in &runs {
            self.add_range(&mut op, run.clone(), at, true)?;
            at += run.end - run.start;
        }
        op.purpose = Purpose::Runs(runs);
        self.pack_and_read(op, plan)
    }

    /// Begins the collection of a group in idle time.
    pub(super) fn begin_collection(
        &mut self,
        ticket: Ticket,
        group: u64,
        plan: &mut MemberPlan,
    ) -> Result<(), Lost> {
        let mut op = self.new_write(ticket, Purpose::Task(Task::Collect(group)));
        op.groups.push(self.new_group_write(group, true));
        self.pack_and_read(op, plan)
    }

    /// Adds the chunks of a range; `at`: where its first block is in the host's buffer; `host`: the host has data for them.
    fn add_range(&mut self, op: &mut WriteOp, range: Range<u64>, at: u64, host: bool) -> Result<(), Lost> {
        for (group, lcn, new, offset) in self.chunks(range) {
            // What the first range of a chunk leaves to be read holds the gaps before the others too.
            let last = op.groups.last_mut().filter(|d| d.group == group);
            if let Some(chunk) = last.and_then(|d| d.chunks.last_mut()).filter(|c| c.lcn == lcn) {
                chunk.more.push((new, at + offset));
                continue;
            }
            let source = self.source(group);
            let place = source.and_then(|source| source.tables.place(lcn));
            // Nothing is left there to discard.
            if !host && place.is_none() {
                continue;
            }
            let old = match (missing(self.shape.chunk, &new), source, place) {
                (Some(range), Some(source), Some(place)) => Some(source.read(place, range, &mut op.slots)?),
                _ => None,
            };
            self.counts.fills += u64::from(old.is_some());
            let chunk = Chunk { lcn, new, host: host.then_some(at + offset), more: Vec::new(), old };
            match op.groups.last_mut().filter(|write| write.group == group) {
                Some(write) => write.chunks.push(chunk),
                None => {
                    let mut write = self.new_group_write(group, false);
                    write.chunks.push(chunk);
                    op.groups.push(write);
                }
            }
        }
        Ok(())
    }

    /// Packs the chunks into stripes and reads what these need, or writes them at once.
    fn pack_and_read(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) -> Result<(), Lost> {
        let (shape, fill) = (self.shape, self.options.stripes == Stripes::Fill);
        for write in &mut op.groups {
            write.fresh = write.chunks.len();
            let (group, tables) = (write.group, &*self.groups.begin(write.group, &shape));
            let source = Source { shape: &shape, group, tables, disks: &self.disks };
            write.prepare(source, fill, &mut op.slots, &mut self.packer)?;
        }
        if op.groups.is_empty() {
            plan.end(op.ticket);
            self.recycle(op);
        } else if op.slots.reads.is_empty() {
            self.write(op, plan);
        } else {
            let why = if op.purpose.is_idle_collection() { Cause::Clean } else { Cause::Fill };
            op.slots.plan(op.ticket, why, plan);
            self.wait(op);
        }
        Ok(())
    }

    /// Chunks that a discard takes as a whole hold nothing any more.
    pub(super) fn unmap(&mut self, r: &HostRequest, plan: &mut MemberPlan) {
        for (group, lcn, part, _) in self.chunks(r.span()) {
            let whole = part == (0..self.shape.chunk);
            if whole && self.group(group).is_some_and(|g| g.place(lcn).is_some()) {
                self.unlist(group);
                self.group_mut(group).unmap(lcn);
                self.list(group);
                self.table_changed(plan.now(), group);
                plan.record(TableChange::Unmap { group, lcn });
            }
        }
    }

    /// A phase of a write is over: plans the next one.
    pub(super) fn go_on_with_write(&mut self, op: Box<WriteOp>, plan: &mut MemberPlan) {
        match op.phase {
            WritePhase::ReadOld => self.write(op, plan),
            WritePhase::AwaitPlaces => self.wait(op),
            WritePhase::WriteJournal => {
                self.journal_holds(&op, plan);
                self.write(op, plan);
            }
            WritePhase::WriteStripes => self.stripes_written(op, plan),
        }
    }

    /// Writes the stripes, or first the chunks of collections to the journal.
    fn write(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) {
        if self.options.journal && op.groups.iter().any(GroupWrite::wants_journal) {
            return self.enter_journal(op, plan);
        }
        op.phase = WritePhase::WriteStripes;
        let request = match op.purpose {
            Purpose::Host(r) => r,
            Purpose::Runs(_) | Purpose::Task(_) => HostRequest::new(HostOp::Write, Lba(0), Blocks(0)),
        };
        let before = plan.ops().len();
        for write in &op.groups {
            write.write(&self.shape, op.ticket, &request, &self.disks, plan);
            if write.collect {
                let moved = Blocks((write.chunks.len() - write.fresh) as u64 * self.shape.chunk);
                plan.cleaning("group-collection", op.ticket, moved);
            }
        }
        if plan.ops().len() > before {
            return self.wait(op);
        }
        // All disks of its stripes are dead.
        self.refuse(op.ticket, op.purpose.task(), plan);
        self.recycle(op);
    }

    /// Stripes are written: the tables have them, and what the journal had no room for follows. The work is refused where too many
    /// disks died meanwhile.
    fn stripes_written(&mut self, mut op: Box<WriteOp>, plan: &mut MemberPlan) {
        let background = op.purpose.task().is_some();
        op.groups.iter().for_each(|write| self.commit(write, background, plan));
        self.collecting &= !op.purpose.is_idle_collection();
        self.use_free_places(plan);
        if op.rest.is_empty() {
            match op.changes != self.disks.changes() && self.disks.too_many() {
                true => self.refuse(op.ticket, op.purpose.task(), plan),
                false => plan.end(op.ticket),
            }
            return self.recycle(op);
        }
        op.groups = std::mem::take(&mut op.rest);
        self.write(op, plan);
    }

    /// The new stripes of a group hold.
    fn commit(&mut self, write: &GroupWrite, background: bool, plan: &mut MemberPlan) {
        let (group, shape) = (write.group, self.shape);
        self.unlist(group);
        if write.collect {
            self.group_mut(group).reset(&shape);
            plan.record(TableChange::Reset(group));
        }
        if let Some(place) = write.journal {
            self.places.give(place);
        }
        let tables = self.group_mut(group);
        for stripe in write.stripes.chunks(shape.disks as usize) {
            plan.record(TableChange::Stripe(group, stripe.into()));
            tables.append(stripe);
        }
        self.list(group);
        self.table_changed(plan.now(), group);
        self.count(write, background);
    }

    fn count(&mut self, write: &GroupWrite, background: bool) {
        let counts = &mut self.counts;
        let nothing = |s: &[Cell]| s.iter().any(|c| c.holds() == group::Holds::Nothing);
        for stripe in write.stripes.chunks(self.shape.disks as usize) {
            *(if nothing(stripe) { &mut counts.partial } else { &mut counts.full }) += 1;
        }
        let moved = (write.chunks.len() - write.fresh) as u64;
        if !write.collect {
            counts.filled += moved;
            return;
        }
        counts.moved += moved;
        *(if background { &mut counts.background } else { &mut counts.foreground }) += 1;
    }
}
