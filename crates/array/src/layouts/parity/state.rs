//! Works under way, and the memory that they use again.

use super::Parity;
use super::code::Lost;
use super::method::{Needs, Planned};
use super::task::{At, Task};
use crate::{MemberPlan, Term, Ticket};
use smrlab_stl::HostRequest;
use smrlab_units::Blocks;
use std::ops::Range;

/// What a work is, and what it is at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doing {
    /// A read, a flush or a discard: its one phase.
    Once(HostRequest),
    /// A write.
    Write(HostRequest, Writing),
    /// Work of the array's own.
    Task(Task, At),
}

/// What a write is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// The reads that it needs.
    Olds,
    /// It waits for room in the journal.
    Room,
    /// Its next rows are being written to the journal.
    Journal,
    /// They are being written to the disks.
    Disks,
}

/// What a read wants of a lost chunk.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    pub row: u64,
    pub chunk: u64,
    /// Blocks within the chunk.
    pub blocks: Range<u64>,
    /// What was lost of the row when it was planned.
    pub lost: Lost,
}

/// A row whose parity goes to the log, and where in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub row: u64,
    pub at: u64,
}

/// A work under way.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub doing: Doing,
    /// [`Disks::changes`](crate::layouts::disks::Disks::changes) when it was planned.
    pub changes: u64,
    pub needs: Needs,
    /// Of a read: what is put together at the end.
    pub missing: Vec<Missing>,
    /// Of a task: the disks that it reads, in the order of their slots.
    pub sources: Vec<u64>,
    /// Rows whose parity goes to the log.
    pub logged: Vec<Logged>,
    /// Rows that are in the journal, and their places there.
    pub batch: Range<u64>,
    pub places: Vec<u64>,
}

impl State {
    /// The segments of a row, none where the disks of its parities are dead.
    pub(super) fn parity_of(&self, row: u64) -> &[Planned] {
        // Row by row, ascending; in a row all have a method or none.
        let planned = &self.needs.planned;
        let first = planned.partition_point(|p| p.row < row);
        let n = planned[first..].iter().take_while(|p| p.row == row && p.method.is_some()).count();
        &planned[first..first + n]
    }

    /// The term for a block that was read before.
    pub(super) fn slot(&self, row: u64, role: u64, at: u64) -> Option<Term> {
        let olds = &self.needs.olds;
        let i = olds.iter().position(|o| o.row == row && o.role == role && o.blocks.contains(&at))?;
        Some(Term::slot(i as u32, Blocks(at - olds[i].blocks.start)))
    }
}

impl Parity {
    pub(super) fn begin(&mut self, doing: Doing) -> Box<State> {
        let changes = self.disks.changes();
        let Some(mut state) = self.pool.pop() else {
            return Box::new(State {
                doing,
                changes,
                needs: Needs::default(),
                missing: Vec::new(),
                sources: Vec::new(),
                logged: Vec::new(),
                batch: 0..0,
                places: Vec::new(),
            });
        };
        (state.doing, state.changes) = (doing, changes);
        state.needs.planned.clear();
        state.needs.olds.clear();
        state.missing.clear();
        state.sources.clear();
        state.logged.clear();
        state.places.clear();
        state
    }

    /// A work goes on with the phase that was planned, or is over.
    pub(super) fn go_on(&mut self, ticket: Ticket, state: Box<State>, goes_on: bool, plan: &mut MemberPlan) {
        if goes_on {
            return self.states.put(ticket, state);
        }
        self.pool.push(state);
        plan.end(ticket);
    }
}
