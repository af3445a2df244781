//! The tables of groups: the SSD has them all, and those that changed are written, at an interval, to a random-access zone in
//! the middle of the disks, in place.
//!
//! The zone is some groups that hold nothing else: of each of their segments only the last chunk is used, which in a band of
//! the segment's length no other data follow, so that nothing is rewritten for a table. A group's table is on one disk.

use super::Dvs;
use super::operation::Operation;
use super::shape::TableZone;
use crate::{End, MemberId, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeSet;

/// Adjacent tables of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRun {
    /// The disk.
    pub member: MemberId,
    /// The first block.
    pub lba: Lba,
    /// How many tables.
    pub tables: u64,
}

/// Tables that changed since they were last written to the zone.
#[derive(Clone, Debug, Default)]
pub struct DirtyTables {
    /// Their groups.
    pub groups: BTreeSet<u64>,
    /// When they are written.
    pub due: Option<SimTime>,
    /// Tables written.
    pub written: u64,
    /// Requests that wrote them.
    pub writes: u64,
}

impl Dvs {
    /// The table of a group changed. What was written before the run begins, at time 0, is in the zone already.
    pub(super) fn table_changed(&mut self, now: SimTime, group: u64) {
        if let Some(zone) = self.shape.zone.filter(|_| now > SimTime::ZERO) {
            self.dirty_tables.groups.insert(group);
            self.cached_tables.put(group);
            self.dirty_tables.due.get_or_insert(now + zone.every);
        }
    }

    /// A fresh disk has no tables.
    pub(super) fn tables_gone(&mut self, now: SimTime, disk: u64) {
        let step = self.shape.disks as usize;
        let own = (disk..self.shape.groups).step_by(step).filter(|g| self.group(*g).is_some());
        own.collect::<Vec<_>>().into_iter().for_each(|group| self.table_changed(now, group));
    }

    /// Where the tables of groups are, adjacent ones together. Those of a dead disk are on the SSD alone.
    pub(super) fn in_zone(&self, zone: TableZone, groups: &mut dyn Iterator<Item = u64>) -> Vec<TableRun> {
        let mut places: Vec<(u64, u64)> = groups.map(|g| zone.place(&self.shape, g)).collect();
        places.sort_unstable();
        let runs = places.chunk_by(|a, b| a.0 == b.0 && a.1 + zone.table == b.1);
        let of = |places: &[(u64, u64)]| TableRun {
            member: MemberId(places[0].0 as u32),
            lba: Lba(places[0].1),
            tables: places.len() as u64,
        };
        let alive = |run: &TableRun| !self.disks.is_dead(run.member);
        runs.map(of).filter(alive).collect()
    }

    /// Writes the tables that changed, if there are any.
    pub(super) fn write_tables(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        self.dirty_tables.due = None;
        let groups = std::mem::take(&mut self.dirty_tables.groups);
        let runs = self.shape.zone.map(|zone| (zone, self.in_zone(zone, &mut groups.into_iter())));
        let Some((zone, runs)) = runs.filter(|(_, runs)| !runs.is_empty()) else { return plan.end(ticket) };
        for TableRun { member, lba, tables } in runs {
            let blocks = Blocks(tables * zone.table);
            let write = HostRequest::new(HostOp::Write, lba, blocks).because(Cause::Metadata);
            plan.ask(ticket, member, write, |p| p.push(blocks, End::Records));
            self.dirty_tables.written += tables;
            self.dirty_tables.writes += 1;
        }
        self.operations.put(ticket, Operation::Simple);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cached_tables::CachedTables;
    use super::super::shape::Shape;
    use super::super::{DvsOptions, Task};
    use super::*;
    use crate::{Array, Job, Phase, Work};

    fn write_tables() -> Job {
        Task::WriteTables(0).into()
    }

    /// Luo et al.'s shape: 200 entries of 4 bytes, 50 stripes of 5 cells of 4, 5 pointers of 2: 1810 bytes, 4 blocks, 32 tables
    /// in a chunk, 160 in a group of the zone.
    #[test]
    fn a_table_is_where_nothing_follows_it() {
        let shape = Shape { chunk: 128, disks: 5, length: 50, logical: 200, groups: 0, zone: None };
        let zone = TableZone::new(&shape, 1610, SimTime(1)).unwrap();
        assert_eq!((zone.table, zone.first, zone.groups), (4, 800, 10));
        // Group 7 is the second of disk 2, group 160 the 33rd of disk 0.
        assert_eq!(zone.place(&shape, 7), (2, (800 * 50 + 49) * 128 + 4));
        assert_eq!(zone.place(&shape, 160), (0, (801 * 50 + 49) * 128));
        // The last group's is within the zone.
        let (_, last) = zone.place(&shape, 1599);
        assert!(last + 4 <= 810 * 50 * 128, "{last}");
        assert_eq!(TableZone::new(&Shape { chunk: 3, ..shape }, 1610, SimTime(1)), None);
    }

    fn dvs(zone: Option<TableZone>) -> Dvs {
        let shape = Shape { chunk: 2, disks: 3, length: 4, logical: 8, groups: 9, zone };
        Dvs::new(shape, DvsOptions::plain())
    }

    /// Does all phases of a work; what was asked of the disks: member, first block, blocks, cause.
    fn carry_out(dvs: &mut Dvs, now: SimTime, work: Work) -> Vec<(u32, u64, u64, Cause)> {
        let (ticket, mut plan, mut asked) = (Ticket(0), MemberPlan::at(now), Vec::new());
        dvs.start(ticket, &work, &mut plan);
        while !plan.ops().is_empty() {
            asked.extend(
                plan.ops()
                    .iter()
                    .map(|op| (op.member.0, op.request.lba.0, op.request.blocks.0, op.request.why)),
            );
            plan.clear();
            dvs.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
        }
        asked
    }

    /// Three disks, 10 groups of 8 blocks a disk; tables of a block, six in a group of the zone, which is groups 4 and 5 on the disks.
    /// Two writes to group 0 and one to group 3, whose table is behind it on disk 0, are one write a second after the first.
    #[test]
    fn tables_that_changed_are_written_once_and_together() {
        let shape = dvs(None).shape;
        let zone = TableZone::new(&shape, 11, SimTime::from_ms(1000)).unwrap();
        assert_eq!((zone.table, zone.first, zone.groups), (1, 4, 2));
        let mut dvs = dvs(Some(zone));
        let write = |lba| Work::Host(HostRequest::new(HostOp::Write, Lba(lba), Blocks(2)));
        // Before the run: nothing is due.
        carry_out(&mut dvs, SimTime::ZERO, write(100));
        assert_eq!(dvs.wake_at(None), None);
        let at = SimTime::from_ms;
        carry_out(&mut dvs, at(10), write(0));
        carry_out(&mut dvs, at(20), write(2));
        carry_out(&mut dvs, at(30), write(50));
        assert_eq!(dvs.wake_at(None), Some(at(1010)));
        let mut plan = MemberPlan::at(at(1010));
        dvs.wake(&mut plan);
        assert_eq!(plan.jobs(), [write_tables()]);
        // Group 4 on the disks begins at block 32 and ends at 40; its last chunk is 38 and 39.
        let asked = carry_out(&mut dvs, at(1010), Work::Job(write_tables()));
        assert_eq!(asked, [(0, 38, 2, Cause::Metadata)]);
        assert_eq!((dvs.dirty_tables.written, dvs.dirty_tables.writes, dvs.wake_at(None)), (2, 1, None));
        // Group 4 of the host's is behind the zone.
        let asked = carry_out(&mut dvs, at(2000), write(64));
        assert_eq!(asked[0].1, 48, "{asked:?}");
    }

    /// The same array with room for two tables on the SSD. Groups 0 and 3 have theirs side by side on disk 0, blocks 38 and 39;
    /// group 1 on disk 1, group 2 on disk 2. A group has 16 blocks of the host's.
    #[test]
    fn tables_that_the_ssd_has_no_room_for_are_read_back() {
        let (zone, at) = (TableZone::new(&dvs(None).shape, 11, SimTime::from_ms(1000)), SimTime::from_ms);
        let mut dvs = dvs(zone);
        dvs.cached_tables = CachedTables::new(Some(2));
        let of = |op, group: u64, blocks| Work::Host(HostRequest::new(op, Lba(group * 16), Blocks(blocks)));
        let (read, write) = (|g| of(HostOp::Read, g, 2), |g| of(HostOp::Write, g, 2));
        let tables = |asked: Vec<(u32, u64, u64, Cause)>| {
            let own = asked.into_iter().filter(|a| a.3 == Cause::Metadata);
            own.map(|(disk, lba, blocks, _)| (disk, lba, blocks)).collect::<Vec<_>>()
        };
        // Before the run nothing is read, and the last two are held; a group never written has no table.
        (0..4).for_each(|g| assert_eq!(tables(carry_out(&mut dvs, SimTime::ZERO, write(g))), []));
        assert_eq!(tables(carry_out(&mut dvs, at(1), write(5))), []);
        // Of 3 and 5 the one that changed stays, and is written before it goes.
        assert_eq!(tables(carry_out(&mut dvs, at(2), read(5))), []);
        assert_eq!(
            (tables(carry_out(&mut dvs, at(3), read(3))), dvs.wake_at(None)),
            (vec![], Some(at(1001)))
        );
        assert_eq!(tables(carry_out(&mut dvs, at(4), read(0))), [(0, 38, 1)]);
        assert_eq!(dvs.wake_at(None), Some(at(4)));
        assert_eq!(tables(carry_out(&mut dvs, at(4), Work::Job(write_tables()))), [(2, 39, 1)]);
        // A request of four groups reads what is not there, adjacent tables as one.
        let all = of(HostOp::Read, 0, 64);
        assert_eq!(tables(carry_out(&mut dvs, at(5), all)), [(1, 38, 1), (2, 38, 1)]);
        assert_eq!(tables(carry_out(&mut dvs, at(6), all)), [(0, 38, 1), (1, 38, 1)]);
        assert_eq!(tables(carry_out(&mut dvs, at(7), read(1))), [(1, 38, 1)]);
        assert_eq!(tables(carry_out(&mut dvs, at(8), read(2))), [(2, 38, 1)]);
        assert_eq!(tables(carry_out(&mut dvs, at(9), all)), [(0, 38, 2)]);
        assert_eq!((dvs.cached_tables.read, dvs.cached_tables.reads), (9, 8));
    }
}
