//! What the array does by itself: rebuilding, making parity fit again, and what the logs and the journal leave to do. Each reads its
//! sources and then writes its target.

use super::Parity;
use super::code::Lost;
use super::operation::{Operation, Task, TaskOp, TaskPhase};
use crate::{MemberId, MemberPlan, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::BTreeSet;
use std::ops::Range;

impl Parity {
    /// The rows that a task has for itself.
    pub(super) fn rows_of_task(&self, task: Task) -> Range<u64> {
        match task {
            Task::Rebuild(unit) => self.options.rebuild.rows_of(unit, self.rows.rows),
            Task::Resync(row) => row..row + 1,
            Task::ApplyLogs(region) => self.region_rows(region),
            Task::Replay(place) => {
                let row = self.journalled_row(place);
                row..row + 1
            }
        }
    }

    /// Begins work of its own.
    pub(super) fn start_task(&mut self, ticket: Ticket, task: Task, plan: &mut MemberPlan) {
        let (changes, phase) = (self.disks.changes(), TaskPhase::ReadSources);
        let mut op = TaskOp { ticket, task, changes, phase, sources: Vec::new(), images: Vec::new() };
        match self.read_sources(&mut op, plan) {
            true => self.operations.put(ticket, Operation::Task(op)),
            false => plan.end(ticket),
        }
    }

    /// A phase of a task is over.
    pub(super) fn go_on_with_task(&mut self, mut op: TaskOp, plan: &mut MemberPlan) {
        if op.phase == TaskPhase::WriteTargets {
            self.task_done(&op, plan);
            return plan.end(op.ticket);
        }
        let made_from_others = matches!(op.task, Task::Rebuild(_) | Task::Resync(_));
        if made_from_others && op.changes != self.disks.changes() {
            // A disk died meanwhile: what was read is not what the target is made from any more.
            return self.start_task(op.ticket, op.task, plan);
        }
        op.phase = TaskPhase::WriteTargets;
        match self.write_targets(&op, plan) {
            true => self.operations.put(op.ticket, Operation::Task(op)),
            false => plan.end(op.ticket),
        }
    }

    /// Plans the reads of a task; answers whether there are any.
    fn read_sources(&mut self, op: &mut TaskOp, plan: &mut MemberPlan) -> bool {
        match op.task {
            Task::Rebuild(unit) => self.read_for_rebuild(unit, op, plan),
            Task::Resync(row) => self.read_for_resync(row, op, plan),
            Task::ApplyLogs(region) => self.read_logs(op.ticket, region, plan),
            Task::Replay(place) => self.read_journal(op.ticket, place, plan),
        }
    }

    /// They are read: plans the writes; answers whether there are any.
    fn write_targets(&mut self, op: &TaskOp, plan: &mut MemberPlan) -> bool {
        match op.task {
            Task::Rebuild(unit) => self.write_rebuilt(unit, op, plan),
            Task::Resync(row) => self.write_resynced(row, op, plan),
            Task::ApplyLogs(region) => self.write_applied(op.ticket, region, plan),
            Task::Replay(place) => self.replay(op.ticket, place, plan),
        }
    }

    /// They are written.
    fn task_done(&mut self, op: &TaskOp, plan: &mut MemberPlan) {
        match op.task {
            Task::Rebuild(unit) => self.disks.rebuilt(unit, op.changes, plan),
            Task::Resync(row) => {
                self.intent.clean(row..row + 1, plan);
                self.void(row..row + 1, &(0..self.rows.chunk), plan);
                self.intent.looked_at(row, plan);
            }
            Task::ApplyLogs(region) => self.applied(region, true, plan),
            Task::Replay(place) => self.free_places(&mut vec![place], plan),
        }
    }

    /// Reads these rows, for each the roles that `wanted` names, one request a disk. Answers `false` where `wanted` has no answer.
    fn read_rows(
        &self,
        rows: &Range<u64>,
        why: Cause,
        op: &mut TaskOp,
        plan: &mut MemberPlan,
        wanted: impl Fn(u64) -> Option<BTreeSet<u64>>,
    ) -> bool {
        let mut disks = BTreeSet::new();
        // After as many rows as there are disks all comes again.
        for row in rows.clone().take(self.rows.disks as usize) {
            match wanted(row) {
                Some(roles) => disks.extend(roles.into_iter().map(|role| self.rows.disk(row, role))),
                None => return false,
            }
        }
        op.sources.extend(&disks);
        for (slot, disk) in disks.into_iter().enumerate() {
            plan.read_slot(op.ticket, MemberId(disk as u32), why, self.chunks_of(rows), slot as u32);
        }
        true
    }

    /// Where whole rows are on a disk.
    fn chunks_of(&self, rows: &Range<u64>) -> (Lba, Blocks) {
        (Lba(rows.start * self.rows.chunk), Blocks((rows.end - rows.start) * self.rows.chunk))
    }

    /// The terms of a role of a row, from block `at` of the rows that were read.
    fn source_terms(&self, row: u64, role: u64, lost: Lost, op: &TaskOp, at: u64) -> Vec<Term> {
        let slot = |disk: u64| op.sources.iter().position(|d| *d == disk).unwrap_or(usize::MAX) as u32;
        let shares = self.rows.code().made_of(role, lost).into_iter();
        shares.map(|s| Term::slot(slot(self.rows.disk(row, s.role)), Blocks(at)).times(s.times)).collect()
    }

    /// Reads all that a unit of the replaced disk is made from.
    fn read_for_rebuild(&mut self, unit: u64, op: &mut TaskOp, plan: &mut MemberPlan) -> bool {
        let rows = self.options.rebuild.rows_of(unit, self.rows.rows);
        let target = self.disks.target();
        let wanted = |row: u64| {
            let (lost, role) = (self.lost(row).ok()?, self.rows.role(row, target?));
            let shares = self.rows.code().made_of(role, lost).into_iter();
            Some(shares.map(|s| s.role).collect())
        };
        if !self.read_rows(&rows, Cause::Rebuild, op, plan, wanted) {
            self.disks.give_up(plan);
            return false;
        }
        for row in rows {
            self.read_images_to_rebuild(row, op, plan);
        }
        true
    }

    fn write_rebuilt(&self, unit: u64, op: &TaskOp, plan: &mut MemberPlan) -> bool {
        let Some(target) = self.disks.target() else { return false };
        let rows = self.options.rebuild.rows_of(unit, self.rows.rows);
        let (lba, blocks) = self.chunks_of(&rows);
        let write = HostRequest::new(HostOp::Write, lba, blocks).because(Cause::Rebuild);
        plan.ask(op.ticket, MemberId(target as u32), write, |out| {
            for row in rows.clone() {
                let (role, lost) = (self.rows.role(row, target), self.lost(row).unwrap_or_default());
                for piece in Self::cut_at_images(&op.images, row, &(0..self.rows.chunk)) {
                    let at = (row - rows.start) * self.rows.chunk + piece.start;
                    let mut terms = self.source_terms(row, role, lost, op, at);
                    let first = op.sources.len() as u32;
                    terms.extend(Self::image_terms(&op.images, first, row, piece.start));
                    let end = out.sum(&terms);
                    out.push(Blocks(piece.end - piece.start), end);
                }
            }
        });
        true
    }

    /// The parities of a row that are made to fit again: all that are there, but for those that make up for lost data.
    pub(super) fn resynced(&self, row: u64) -> Vec<u64> {
        let Ok(lost) = self.lost(row) else { return Vec::new() };
        let data = lost.iter().filter(|role| *role < self.rows.data()).count();
        self.rows.code().parities_without(lost).skip(data).collect()
    }

    /// What is not known of a row when it is resynchronised: what is lost, and the parities that are made anew.
    fn unknown(&self, row: u64) -> Option<Lost> {
        let lost = self.lost(row).ok()?;
        self.resynced(row).into_iter().try_fold(lost, Lost::and)
    }

    fn read_for_resync(&mut self, row: u64, op: &mut TaskOp, plan: &mut MemberPlan) -> bool {
        let wanted = |row: u64| {
            let (code, unknown) = (self.rows.code(), self.unknown(row)?);
            let shares = self.resynced(row).into_iter().flat_map(|p| code.made_of(p, unknown));
            Some(shares.map(|s| s.role).collect::<BTreeSet<u64>>()).filter(|roles| !roles.is_empty())
        };
        let goes_on = self.read_rows(&(row..row + 1), Cause::Rebuild, op, plan, wanted);
        if !goes_on {
            self.intent.looked_at(row, plan);
        }
        goes_on
    }

    fn write_resynced(&self, row: u64, op: &TaskOp, plan: &mut MemberPlan) -> bool {
        let (lba, blocks) = self.chunks_of(&(row..row + 1));
        let write = HostRequest::new(HostOp::Write, lba, blocks).because(Cause::Rebuild);
        let Some(unknown) = self.unknown(row) else { return false };
        for parity in self.resynced(row) {
            plan.ask(op.ticket, self.rows.member(row, parity), write, |out| {
                let end = out.sum(&self.source_terms(row, parity, unknown, op, 0));
                out.push(blocks, end);
            });
        }
        true
    }
}
