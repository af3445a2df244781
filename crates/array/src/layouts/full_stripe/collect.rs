//! Collecting: what is live in a group moves to the group of what has outlived others, some chunks at a time, and the group is free.

use super::table::{Cell, Holds, StripeCell};
use super::work::{Purpose, WriteOp};
use super::{FullStripe, Task};
use crate::layouts::chunks::{Chunk, Lost};
use crate::{MemberPlan, Ticket};
use smrlab_stl::Cause;
use smrlab_units::Blocks;
use std::collections::BTreeMap;

impl FullStripe {
    /// Reads the next live chunks of the group with fewest of them.
    pub(super) fn start_collect(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        let chosen = self.victim.filter(|v| self.table.group(*v).is_some_and(|g| g.live > 0));
        let Some(victim) = chosen.or_else(|| self.table.victim()) else {
            (self.victim, self.collecting) = (None, false);
            return plan.end(ticket);
        };
        if self.victim.replace(victim) != Some(victim) {
            self.counts.collections += 1;
        }
        let mut op = WriteOp::new(Purpose::Collect(BTreeMap::new()), self.disks.changes());
        let batch = self.live_of(victim);
        for (lcn, place) in &batch {
            match self.read_chunk(&mut op.reads, *place, &(0..self.shape.chunk)) {
                Ok(old) => op.left.push_back(Chunk::moved(*lcn, old)),
                Err(Lost) => {
                    // What is lost cannot be moved: no group is freed any more.
                    (self.stuck, self.collecting) = (true, false);
                    self.over(ticket, &op.reads);
                    plan.end(ticket);
                    return self.go_on(plan);
                }
            }
        }
        plan.cleaning("group-collection", ticket, Blocks(batch.len() as u64 * self.shape.chunk));
        op.purpose = Purpose::Collect(batch.into_iter().collect());
        self.first_phase(ticket, op, Cause::Clean, plan);
    }

    /// The first live chunks of a group, as many as are moved at a time, and where they are.
    fn live_of(&self, victim: u64) -> Vec<(u64, StripeCell)> {
        let Some(group) = self.table.group(victim) else { return Vec::new() };
        let cells = (0..).zip(group.stripes()).flat_map(|(stripe, words)| {
            (0..).zip(words).filter_map(move |(disk, word)| match Cell::of(*word).holds {
                Holds::Chunk(lcn) => Some((lcn, StripeCell { group: victim as u32, stripe, disk })),
                _ => None,
            })
        });
        cells.take(self.options.batch as usize).collect()
    }

    /// Some chunks were moved: on with this group or another one, as long as few are free.
    pub(super) fn collected(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        plan.end(ticket);
        let more = self.victim.is_some_and(|v| self.table.group(v).is_some_and(|g| g.live > 0));
        self.collecting = more || (self.table.is_short() && self.table.victim().is_some());
        if self.collecting {
            plan.job(Task::Collect(0));
        }
        if !more {
            self.victim = None;
        }
    }
}
