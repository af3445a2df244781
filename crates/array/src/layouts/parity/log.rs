//! Parity logging (Stodolsky, Gibson and Holland): a small write appends what it changes of the parity to a log, and the log is
//! put into the parity when it is full.
//!
//! Rows are in regions. A region has a log for each disk, which takes the images (old data XOR new data) of rows whose parity is
//! on that disk, so no loss of one disk takes both a row's data and what its parity lacks. The parity of a row is what its disk
//! holds XOR its images. When a log is full, all logs of its region are read, each at once, and with them the parity of each of
//! their rows, which is written again.

use super::Parity;
use super::images::{IMAGE, Image, LogChange, LogId, cut};
use super::method::{Method, RowRead};
use super::operation::{LogWrite, LostPiece, Task, TaskOp, WriteOp};
use crate::{Change, MemberId, MemberPlan, Record, Sink, Term, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

/// Where logs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Rows in a region.
    pub rows: u64,
    /// Blocks of the log that a region has for each disk; none: parity is written at once.
    pub blocks: u64,
    /// Logs are on the SSD and not behind the rows.
    pub ssd: bool,
}

impl LogSettings {
    /// No logs.
    pub const OFF: Self = Self { rows: 1, blocks: 0, ssd: false };
}

impl Parity {
    /// Whether parity is logged.
    pub(super) fn logs_parity(&self) -> bool {
        self.options.log.blocks > 0
    }

    /// Blocks of all logs on the SSD.
    pub(super) fn log_size(&self) -> Blocks {
        let LogSettings { rows, blocks, ssd } = self.options.log;
        Blocks(if ssd { self.rows.rows.div_ceil(rows) * self.rows.disks * blocks } else { 0 })
    }

    pub(super) fn region_rows(&self, region: u64) -> Range<u64> {
        let n = self.options.log.rows;
        region * n..((region + 1) * n).min(self.rows.rows)
    }

    /// The log of a row's parity.
    fn log_of(&self, row: u64) -> LogId {
        LogId { region: row / self.options.log.rows, disk: self.rows.disk(row, self.rows.data()) }
    }

    fn in_log(&self, LogId { region, disk }: LogId, blocks: Range<u64>) -> (MemberId, (Lba, Blocks)) {
        let log = self.options.log;
        let (member, first) = match log.ssd {
            true => (self.ssd(), (region * self.rows.disks + disk) * log.blocks),
            false => (MemberId(disk as u32), self.rows.rows * self.rows.chunk + region * log.blocks),
        };
        (member, (Lba(first + blocks.start), Blocks(blocks.end - blocks.start)))
    }

    /// The row that was planned last goes to the log where that has room: then the old parity is not read.
    pub(super) fn log_row(&mut self, row: u64, op: &mut WriteOp) {
        if !self.logs_parity() || self.disks.degraded() {
            return;
        }
        let own = op.segments_of(row);
        if own.first().is_none_or(|p| p.method != Some(Method::Modify)) {
            return;
        }
        let blocks: u64 = own.iter().map(|p| p.segment.hi - p.segment.lo).sum();
        let log = self.log_of(row);
        let used = self.logs.used.entry(log).or_default();
        if *used + blocks > self.options.log.blocks {
            self.logs.refused += 1;
            if self.logs.full.insert(log.region) {
                self.logs.due.push(log.region);
            }
            return;
        }
        op.logged.push(LogWrite { row, at: *used });
        *used += blocks;
        let parity = self.rows.data();
        while op.plan.reads.pop_if(|o| o.row == row && o.role == parity).is_some() {}
    }

    /// Logs that are full are put into the parity as soon as their rows are free.
    pub(super) fn apply_full(&mut self, plan: &mut MemberPlan) {
        self.logs.due.drain(..).for_each(|region| plan.job(Task::ApplyLogs(region)));
    }

    /// Writes what a row lacks of its parity to the log.
    pub(super) fn write_image(&self, LogWrite { row, at }: LogWrite, op: &WriteOp, plan: &mut MemberPlan) {
        let own = op.segments_of(row);
        let blocks: u64 = own.iter().map(|p| p.segment.hi - p.segment.lo).sum();
        let (member, (lba, n)) = self.in_log(self.log_of(row), at..at + blocks);
        plan.ask(
            op.ticket,
            member,
            HostRequest { lba, blocks: n, why: Cause::Journal, ..op.request },
            |out| {
                for planned in own {
                    let end = out.sum(&self.parity_terms(self.rows.data(), planned, op));
                    out.push(planned.segment.blocks(), end);
                }
            },
        );
    }

    /// A write is done: its images count, and where the parity is all new, older ones do not any more.
    pub(super) fn log_written(&mut self, op: &WriteOp, plan: &mut MemberPlan) {
        if !self.logs_parity() {
            return;
        }
        for segments in op.plan.segments.chunk_by(|a, b| a.row == b.row) {
            let row = segments[0].row;
            // The disk of the parity died meanwhile, and the log is void with it.
            if !self.has(self.rows.disk(row, self.rows.data()), row) {
                continue;
            }
            let mut log = op.logged.iter().copied().find(|l| l.row == row);
            self.logs.logged += u64::from(log.is_some());
            for planned in segments {
                let blocks = planned.segment.lo..planned.segment.hi;
                match &mut log {
                    Some(LogWrite { at, .. }) => {
                        let image = Image { blocks, at: *at };
                        *at += planned.segment.blocks().0;
                        plan.record(LogChange::Logged(row, image.clone()));
                        self.logs.log(row, image);
                    }
                    None if planned.method == Some(Method::Reconstruct) => {
                        self.void(row..row + 1, &blocks, plan)
                    }
                    None => {}
                }
            }
        }
    }

    /// Parity lacks nothing any more.
    pub(super) fn void(&mut self, rows: Range<u64>, blocks: &Range<u64>, plan: &mut MemberPlan) {
        if self.logs.has(rows.clone()) {
            self.logs.void(rows.clone(), blocks);
            plan.record(LogChange::Void(rows, blocks.clone()));
        }
    }

    /// A disk died: what the parity on it lacks is of no use.
    pub(super) fn logs_die(&mut self, disk: MemberId) {
        let rows = self.rows;
        self.logs.images.retain(|row, _| rows.member(*row, rows.data()) != disk);
    }

    /// Takes up a record, if it is one of the logs.
    pub(super) fn recover_log(&mut self, record: Record<'_>) -> bool {
        match LogChange::of(record) {
            Some(LogChange::Logged(row, image)) => {
                let used = self.logs.used.entry(self.log_of(row)).or_default();
                *used = (*used).max(image.at + image.blocks.end - image.blocks.start);
                self.logs.log(row, image);
            }
            Some(LogChange::Void(rows, blocks)) => self.logs.void(rows, &blocks),
            None => return false,
        }
        true
    }

    /// The images as records.
    pub(super) fn checkpoint_log(&self, out: &mut dyn Sink) {
        let images = self.logs.images.iter().flat_map(|(row, of)| of.iter().map(move |i| (*row, i)));
        images.for_each(|(row, image)| out.add(&LogChange::Logged(row, image.clone())));
    }

    /// Reads the images of `blocks` of a row, the next of them into slot `first` and as many on as there are `reads` already.
    fn read_images_of(
        &self,
        ticket: Ticket,
        of: &RowRead,
        (first, why): (u32, Cause),
        reads: &mut Vec<RowRead>,
        plan: &mut MemberPlan,
    ) {
        for image in self.logs.images.get(&of.row).into_iter().flatten() {
            let own = image.blocks.start.max(of.blocks.start)..image.blocks.end.min(of.blocks.end);
            if !own.is_empty() {
                let at = image.at + own.start - image.blocks.start;
                let (member, place) = self.in_log(self.log_of(of.row), at..at + own.end - own.start);
                plan.read_slot(ticket, member, why, place, first + reads.len() as u32);
                reads.push(RowRead { blocks: own, ..of.clone() });
            }
        }
    }

    /// Reads the images that a lost chunk needs.
    pub(super) fn read_images(
        &self,
        ticket: Ticket,
        wanted: &LostPiece,
        reads: &mut Vec<RowRead>,
        plan: &mut MemberPlan,
    ) {
        let of = RowRead { row: wanted.row, role: IMAGE, blocks: wanted.blocks.clone() };
        self.read_images_of(ticket, &of, (0, Cause::Parity), reads, plan);
    }

    /// Reads the images of a row that is rebuilt, into slots behind those of its sources.
    pub(super) fn read_images_to_rebuild(&self, row: u64, op: &mut TaskOp, plan: &mut MemberPlan) {
        let of = RowRead { row, role: IMAGE, blocks: 0..self.rows.chunk };
        let first = op.sources.len() as u32;
        self.read_images_of(op.ticket, &of, (first, Cause::Rebuild), &mut op.images, plan);
    }

    /// Blocks of a row, cut where images of it that were read begin and end.
    pub(super) fn cut_at_images(reads: &[RowRead], row: u64, blocks: &Range<u64>) -> Vec<Range<u64>> {
        cut(blocks, reads.iter().filter(|o| o.row == row && o.role == IMAGE).map(|o| &o.blocks))
    }

    /// The images of block `at` of a row among what was read, the first of it into slot `first`.
    pub(super) fn image_terms(
        reads: &[RowRead],
        first: u32,
        row: u64,
        at: u64,
    ) -> impl Iterator<Item = Term> {
        let own = move |o: &RowRead| o.row == row && o.role == IMAGE && o.blocks.contains(&at);
        let slots = (first..).zip(reads).filter(move |(_, o)| own(o));
        slots.map(move |(slot, o)| Term::slot(slot, Blocks(at - o.blocks.start)))
    }

    /// The rows of a region that have images, each with the blocks from the first to the last that its parity lacks.
    fn lacking(&self, region: u64) -> Vec<(u64, Range<u64>)> {
        let hull = |images: &[Image]| {
            let start = images.iter().map(|i| i.blocks.start).min().unwrap_or(0);
            start..images.iter().map(|i| i.blocks.end).max().unwrap_or(0)
        };
        self.logs.images.range(self.region_rows(region)).map(|(row, images)| (*row, hull(images))).collect()
    }

    /// Reads the logs of a region, and the parity of their rows. Not while a disk is dead: parity that is half written and a power
    /// cut could then not be told from parity that lacks its images.
    pub(super) fn read_logs(&mut self, ticket: Ticket, region: u64, plan: &mut MemberPlan) -> bool {
        let rows = self.lacking(region);
        if rows.is_empty() || self.disks.degraded() {
            self.applied(region, rows.is_empty(), plan);
            return false;
        }
        for disk in 0..self.rows.disks {
            let log = LogId { region, disk };
            let used = self.logs.used.get(&log).copied().unwrap_or(0);
            if used > 0 {
                let (member, place) = self.in_log(log, 0..used);
                plan.read_slot(ticket, member, Cause::Journal, place, disk as u32);
            }
        }
        for (slot, (row, blocks)) in (self.rows.disks as u32..).zip(&rows) {
            let (member, place) =
                (self.rows.member(*row, self.rows.data()), self.rows.on_member(*row, blocks));
            plan.read_slot(ticket, member, Cause::Parity, place, slot);
        }
        true
    }

    /// Writes the parity with what it lacked. Until that is done it may or may not have it, so that after a power cut it is made
    /// from the data.
    pub(super) fn write_applied(&mut self, ticket: Ticket, region: u64, plan: &mut MemberPlan) -> bool {
        let rows = self.lacking(region);
        let (Some(first), Some(last), false) = (rows.first(), rows.last(), self.disks.degraded()) else {
            self.applied(region, false, plan);
            return false;
        };
        self.intent.dirty(first.0..last.0 + 1, plan);
        for (slot, (row, blocks)) in (self.rows.disks as u32..).zip(&rows) {
            let member = self.rows.member(*row, self.rows.data());
            let (lba, n) = self.rows.on_member(*row, blocks);
            let write = HostRequest::new(HostOp::Write, lba, n).because(Cause::Parity);
            let log = self.log_of(*row).disk as u32;
            plan.ask(ticket, member, write, |out| {
                let images = &self.logs.images[row];
                for piece in cut(blocks, images.iter().map(|i| &i.blocks)) {
                    let mut terms = vec![Term::slot(slot, Blocks(piece.start - blocks.start))];
                    let own = images.iter().filter(|i| i.blocks.contains(&piece.start));
                    terms.extend(own.map(|i| Term::slot(log, Blocks(i.at + piece.start - i.blocks.start))));
                    let end = out.sum(&terms);
                    out.push(Blocks(piece.end - piece.start), end);
                }
            });
        }
        self.logs.applied += rows.len() as u64;
        true
    }

    /// Rows whose parity is being written with what it lacked.
    pub(super) fn applying(&self, task: Task) -> Option<Range<u64>> {
        let Task::ApplyLogs(region) = task else { return None };
        let rows = self.lacking(region);
        Some(rows.first()?.0..rows.last()?.0 + 1)
    }

    /// The logs of a region are empty, or, where they could not be put into the parity, as they were.
    pub(super) fn applied(&mut self, region: u64, empty: bool, plan: &mut MemberPlan) {
        self.logs.full.remove(&region);
        if empty {
            let rows = self.region_rows(region);
            self.void(rows.clone(), &(0..self.rows.chunk), plan);
            self.intent.clean(rows, plan);
            self.logs.used.retain(|log, _| log.region != region);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;
    use crate::{Array, ArrayContext, Job, Phase, Work, parse};

    /// Does all phases of a work; what was asked: operation, member, first block, blocks. And the jobs that it wants.
    fn carry_out(array: &mut dyn Array, work: Work) -> (Vec<(HostOp, u32, u64, u64)>, Vec<Job>) {
        let (ticket, mut plan, mut asked) = (Ticket(0), MemberPlan::new(true), Vec::new());
        array.start(ticket, &work, &mut plan);
        let jobs = plan.jobs().to_vec();
        while !plan.ops().is_empty() {
            let of = |o: &crate::MemberOp| (o.request.op, o.member.0, o.request.lba.0, o.request.blocks.0);
            asked.extend(plan.ops().iter().map(of));
            plan.clear();
            array.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
        }
        (asked, jobs)
    }

    /// Five drives of 96 blocks, chunks of 8, regions of 5 rows, logs of 8 blocks: two regions and a row, whose logs begin at
    /// blocks 88 on the drives. Row 0 has its parity on drive 4.
    #[test]
    fn a_small_write_reads_once_and_writes_twice_and_a_full_log_is_applied_at_once() {
        let text = "raid5,disks=5,chunk=8blk,parity=log,log=8blk,log_region=40blk";
        let mut array = parse(text).unwrap().build(&ArrayContext::new(&[Blocks(96); 5])).unwrap().array;
        // 96 are 40 + 8 twice, and nothing is left.
        assert_eq!(array.host_blocks(), Blocks(10 * 4 * 8));
        let write = |lba| Work::Host(HostRequest::new(HostOp::Write, Lba(lba), Blocks(2)));
        let (r, w) = (HostOp::Read, HostOp::Write);
        for (i, lba) in [0, 2, 10, 1].into_iter().enumerate() {
            let (asked, jobs) = carry_out(&mut *array, write(lba));
            let (disk, at, log) = (lba as u32 / 8, lba % 8, 80 + 2 * i as u64);
            assert_eq!(asked, [(r, disk, at, 2), (w, disk, at, 2), (w, 4, log, 2)]);
            assert_eq!(jobs, []);
        }
        // The fifth finds the log full: four requests, and the log is to be applied.
        let (asked, jobs) = carry_out(&mut *array, write(4));
        assert_eq!(
            (asked, jobs),
            (vec![(r, 0, 4, 2), (r, 4, 4, 2), (w, 0, 4, 2), (w, 4, 4, 2)], vec![Task::ApplyLogs(0).into()])
        );
        // Blocks 0 to 4 of the parity lack something: three requests for four writes.
        let (asked, _) = carry_out(&mut *array, Work::Job(Task::ApplyLogs(0).into()));
        assert_eq!(asked, [(r, 4, 80, 8), (r, 4, 0, 4), (w, 4, 0, 4)]);
        let (asked, _) = carry_out(&mut *array, write(4));
        assert_eq!(asked[2], (w, 4, 80, 2));
        let mut kept = Records::default();
        array.checkpoint(&mut kept);
        assert_eq!(kept.iter().filter_map(LogChange::of).count(), 1);
    }

    /// On an SSD the disks see one read and one write.
    #[test]
    fn an_ssd_takes_the_images() {
        let text = "raid5,disks=5,chunk=8blk,parity=log,log=8blk,log_region=40blk,log_on=ssd";
        let mut array = parse(text).unwrap().build(&ArrayContext::new(&[Blocks(96); 5])).unwrap().array;
        assert_eq!((array.host_blocks(), array.journal_blocks()), (Blocks(12 * 4 * 8), Blocks(3 * 5 * 8)));
        // Row 6, the second of the second region, has its parity on drive 3.
        let write = Work::Host(HostRequest::new(HostOp::Write, Lba(6 * 32), Blocks(2)));
        let (asked, _) = carry_out(&mut *array, write);
        let (r, w) = (HostOp::Read, HostOp::Write);
        assert_eq!(asked, [(r, 0, 48, 2), (w, 0, 48, 2), (w, 5, 5 * 8 + 3 * 8, 2)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (more, key) in [("log=0blk", "log"), ("journal=on", "journal"), ("log=96blk", "log")] {
            let text = format!("raid5,disks=5,chunk=8blk,parity=log,{more}");
            let built = parse(&text).unwrap().build(&ArrayContext::new(&[Blocks(96); 5]));
            let error = built.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
