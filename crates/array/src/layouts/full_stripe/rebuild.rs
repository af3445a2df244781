//! Deaths and replacements: a lost disk's segments are made from the stripes, chunks that are out of date included.

use super::FullStripe;
use super::records::Event;
use super::work::{Operation, Reads, RebuildOp, RebuildPhase};
use crate::layouts::rebuild::{Order, Rebuild};
use crate::layouts::segments::ChunkPlace;
use crate::{Change as _, MemberId, MemberPlan, Records, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl FullStripe {
    /// A fresh disk takes the place of a dead one: what is appended from here on is in groups of which it gets all.
    pub(super) fn replace(&mut self, member: MemberId, plan: &mut MemberPlan) {
        if !self.disks.rebuildable(member) {
            return;
        }
        self.table.seal_all();
        let mut rebuild = self.rebuilds(plan.now())(u64::from(member.0));
        // Free groups lack nothing.
        let free = (0..self.shape.groups).filter(|g| self.table.group(*g).is_none());
        free.flat_map(|g| self.shape.units_of(g)).for_each(|unit| _ = rebuild.finished(unit));
        self.disks.replace(member, |_| rebuild, plan);
    }

    fn rebuilds(&self, now: SimTime) -> impl Fn(u64) -> Rebuild + use<> {
        let (units, seed) = (self.shape.groups * self.shape.units(), self.seed);
        move |disk| Rebuild::new(disk, units, Order::Address, seed, now)
    }

    /// The places of a unit that a disk's segment has: those that were written, in the order of the disk.
    fn places(&self, disk: u64, unit: u64) -> (u64, Range<u64>) {
        let (group, part) = (unit / self.shape.units(), unit % self.shape.units());
        let end = self.table.group(group).map_or(0, |g| u64::from(g.pointers[disk as usize]));
        let first = (part * self.shape.unit).min(end);
        (group, first..end.min((part + 1) * self.shape.unit))
    }

    /// Reads what a unit of the replaced disk is made from.
    pub(super) fn rebuild(&mut self, ticket: Ticket, unit: u64, plan: &mut MemberPlan) {
        let (changes, phase) = (self.disks.changes(), RebuildPhase::ReadOthers);
        let mut op = RebuildOp { unit, changes, phase, reads: Reads::default() };
        let Some(target) = self.disks.target() else { return plan.end(ticket) };
        let (group, places) = self.places(target, unit);
        if self.table.group(group).is_some_and(|g| g.writing > 0) {
            op.phase = RebuildPhase::AwaitStripes;
            self.operations.put(ticket, Operation::Rebuild(op));
            return self.parked.push_back(ticket);
        }
        let (segments, chunk) = (self.segments(group), 0..self.shape.chunk);
        let mut stripes = self.stripes_at(group, target, &places).into_values();
        if stripes.try_for_each(|s| segments.read_others(target, s, &chunk, &mut op.reads.slots)).is_err() {
            self.disks.give_up(plan);
            return plan.end(ticket);
        }
        self.pin(&mut op.reads, group);
        if op.reads.slots.reads.is_empty() {
            return self.write_rebuilt(ticket, op, plan);
        }
        let like = HostRequest::new(HostOp::Read, Lba(0), Blocks(0)).because(Cause::Rebuild);
        self.read_slots(ticket, &like, &op.reads, plan);
        self.operations.put(ticket, Operation::Rebuild(op));
    }

    /// A phase of a rebuild is over: the replaced disk is written, or the unit is done.
    pub(super) fn go_on_with_rebuild(&mut self, ticket: Ticket, op: RebuildOp, plan: &mut MemberPlan) {
        match op.phase {
            RebuildPhase::AwaitStripes => self.operations.put(ticket, Operation::Rebuild(op)),
            RebuildPhase::ReadOthers => self.write_rebuilt(ticket, op, plan),
            RebuildPhase::WriteTarget => self.unit_rebuilt(ticket, &op, plan),
        }
    }

    fn unit_rebuilt(&mut self, ticket: Ticket, op: &RebuildOp, plan: &mut MemberPlan) {
        self.over(ticket, &op.reads);
        self.disks.rebuilt(op.unit, op.changes, plan);
        plan.end(ticket);
    }

    /// The stripes that have something on a disk at these places.
    fn stripes_at(&self, group: u64, disk: u64, places: &Range<u64>) -> BTreeMap<u64, Vec<ChunkPlace>> {
        let Some(group) = self.table.group(group) else { return BTreeMap::new() };
        let there = (0..group.stripes().len() as u32).filter_map(|stripe| {
            let of = group.places(stripe);
            let own = of.clone().find(|p| p.disk == disk && places.contains(&p.at))?;
            Some((own.at, of.collect()))
        });
        there.collect()
    }

    /// Writes a unit of the replaced disk; where a cut left a hole, zeroes.
    fn write_rebuilt(&mut self, ticket: Ticket, mut op: RebuildOp, plan: &mut MemberPlan) {
        let Some(target) = self.disks.target().filter(|_| self.disks.is_own(op.changes)) else {
            self.over(ticket, &op.reads);
            return plan.end(ticket);
        };
        let (group, places) = self.places(target, op.unit);
        if places.is_empty() {
            return self.unit_rebuilt(ticket, &op, plan);
        }
        let chunk = self.shape.chunk;
        let blocks = places.start * chunk..places.end * chunk;
        self.advance(ticket, target, group, blocks.clone(), plan);
        let lba = Lba(self.shape.start(group) + blocks.start);
        let length = Blocks(blocks.end - blocks.start);
        let write = HostRequest::new(HostOp::Write, lba, length).because(Cause::Rebuild);
        let stripes = self.stripes_at(group, target, &places);
        // In the order in which they were read.
        let mut slots = 0..;
        plan.ask(ticket, MemberId(target as u32), write, |out| {
            for at in places {
                let stripe = stripes.get(&at).into_iter().flatten();
                let others = stripe.filter(|other| other.disk != target);
                let own = others.zip(&mut slots).map(|(_, slot)| Term::slot(slot, Blocks::ZERO));
                let terms: Vec<Term> = own.collect();
                let end = out.sum(&terms);
                out.push(Blocks(chunk), end);
            }
        });
        op.phase = RebuildPhase::WriteTarget;
        self.operations.put(ticket, Operation::Rebuild(op));
    }
}

impl FullStripe {
    /// Takes up what was recorded. Groups that were being filled are filled on where that is possible.
    pub(super) fn restore(&mut self, records: &Records) {
        let rebuild = self.rebuilds(SimTime::ZERO);
        for record in records.iter() {
            match Event::of(record) {
                Some(Event::Opened(group)) => self.table.begin(group),
                Some(Event::Stripe(group, cells)) => self.table.add(group, &cells),
                Some(Event::Unmap(lcn)) => self.table.unmap(lcn),
                Some(Event::Used(groups)) => self.table.used_up_to(groups),
                None => _ = self.disks.recover(record, &rebuild),
            }
        }
        let mut torn = BTreeSet::new();
        for (disk, zones) in self.zones.iter().enumerate() {
            for (group, zone) in (0..).zip(zones).filter(|(_, zone)| !zone.anywhere) {
                if !self.table.advance(group, disk, zone.written) {
                    torn.insert(group);
                }
            }
        }
        let (disks, shape) = (&self.disks, self.shape);
        // What a disk lacks is rebuilt from groups that nothing is added to.
        let whole = |group: u64| {
            disks.target().is_none_or(|disk| shape.units_of(group).all(|unit| disks.has(disk, unit)))
        };
        self.table.recovered(|group| !torn.contains(&group) && whole(group));
    }
}
