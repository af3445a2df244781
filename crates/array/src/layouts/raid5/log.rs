//! Parity logging (Stodolsky, Gibson and Holland): a small write appends what it changes of the parity to a log, and the log is
//! put into the parity when it is full.
//!
//! Rows are in regions. A region has a log for each disk, which takes the images (old data XOR new data) of rows whose parity is
//! on that disk, so no loss of one disk takes both a row's data and what its parity lacks. The parity of a row is what its disk
//! holds XOR its images. When a log is full, all logs of its region are read, each at once, and with them the parity of each of
//! their rows, which is written again.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// The role of an image among what was read.
const IMAGE: u64 = u64::MAX;

/// Where logs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Rows in a region.
    pub rows: u64,
    /// Blocks of the log that a region has for each disk; none: parity is written at once.
    pub blocks: u64,
    /// Logs are on the SSD and not behind the rows.
    pub ssd: bool,
}

/// What a log has of a row's parity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    /// Blocks of the parity chunk.
    blocks: Range<u64>,
    /// Where the first of them is in the log.
    at: u64,
}

/// All logs.
#[derive(Clone, Debug, Default)]
pub(super) struct Logs {
    /// Blocks of a log that are in use, by region and disk.
    used: BTreeMap<(u64, u64), u64>,
    /// By row, in the order in which they were written.
    images: BTreeMap<u64, Vec<Image>>,
    /// Regions whose logs will be put into the parity, and those of them of which nobody was told.
    full: BTreeSet<u64>,
    due: Vec<u64>,
    logged: u64,
    applied: u64,
    refused: u64,
}

impl Logs {
    /// Whether a row has images.
    pub fn has(&self, rows: Range<u64>) -> bool {
        self.images.range(rows).next().is_some()
    }

    /// Blocks `blocks` of the parity of `rows` lack nothing any more.
    fn void(&mut self, rows: Range<u64>, blocks: &Range<u64>) {
        let within: Vec<u64> = self.images.range(rows).map(|i| *i.0).collect();
        for row in within {
            let Some(images) = self.images.remove(&row) else { continue };
            let before =
                |i: &Image| Image { blocks: i.blocks.start..i.blocks.end.min(blocks.start), at: i.at };
            let behind = |i: &Image| {
                let start = i.blocks.start.max(blocks.end);
                Image { blocks: start..i.blocks.end, at: i.at + start - i.blocks.start }
            };
            let left = images.iter().flat_map(|i| [before(i), behind(i)]);
            let left: Vec<Image> = left.filter(|i| !i.blocks.is_empty()).collect();
            if !left.is_empty() {
                self.images.insert(row, left);
            }
        }
    }

    fn log(&mut self, row: u64, blocks: Range<u64>, at: u64) {
        self.images.entry(row).or_default().push(Image { blocks, at });
    }

    pub fn bytes(&self) -> u64 {
        (self.images.values().map(Vec::len).sum::<usize>() * size_of::<Image>()) as u64
    }

    pub fn counters(&self, out: &mut dyn FnMut(&'static str, u64)) {
        out("rows_logged", self.logged);
        out("parities_applied", self.applied);
        out("logs_full", self.refused);
    }
}

/// A range cut at the ends of others, so that each piece is all within or all outside of any of them.
fn cut<'a>(range: &Range<u64>, at: impl Iterator<Item = &'a Range<u64>>) -> Vec<Range<u64>> {
    let mut borders: Vec<u64> = at.flat_map(|r| [r.start, r.end]).collect();
    borders.retain(|b| range.contains(b) && *b > range.start);
    borders.extend([range.start, range.end]);
    borders.sort_unstable();
    borders.dedup();
    borders.windows(2).map(|w| w[0]..w[1]).collect()
}

impl Raid5 {
    /// Whether parity is logged.
    pub(super) fn logs_parity(&self) -> bool {
        self.options.log.blocks > 0
    }

    /// Blocks of all logs on the SSD.
    pub(super) fn log_size(&self) -> Blocks {
        let Settings { rows, blocks, ssd } = self.options.log;
        Blocks(if ssd { self.rows.rows.div_ceil(rows) * self.rows.disks * blocks } else { 0 })
    }

    pub(super) fn region_rows(&self, region: u64) -> Range<u64> {
        let n = self.options.log.rows;
        region * n..((region + 1) * n).min(self.rows.rows)
    }

    /// The log of a row's parity: region and disk.
    fn log_of(&self, row: u64) -> (u64, u64) {
        (row / self.options.log.rows, self.rows.disk(row, self.rows.data()))
    }

    fn in_log(&self, (region, disk): (u64, u64), blocks: Range<u64>) -> (MemberId, (Lba, Blocks)) {
        let log = self.options.log;
        let (member, first) = match log.ssd {
            true => (self.ssd(), (region * self.rows.disks + disk) * log.blocks),
            false => (MemberId(disk as u32), self.rows.rows * self.rows.chunk + region * log.blocks),
        };
        (member, place(first + blocks.start..first + blocks.end))
    }

    /// A row that was planned last, by reads from `olds` on, goes to the log where that has room: then the old parity is not
    /// read.
    pub(super) fn log_row(&mut self, row: u64, state: &mut State) {
        let own = state.parity_of(row);
        let modify = own.first().is_some_and(|p| p.method == Some(Method::Modify));
        if !self.logs_parity() || !modify || self.disks.degraded() {
            return;
        }
        let blocks: u64 = own.iter().map(|p| p.segment.hi - p.segment.lo).sum();
        let log = self.log_of(row);
        let used = self.logs.used.entry(log).or_default();
        if *used + blocks > self.options.log.blocks {
            self.logs.refused += 1;
            if self.logs.full.insert(log.0) {
                self.logs.due.push(log.0);
            }
            return;
        }
        state.logged.push((row, *used));
        *used += blocks;
        while state.olds.pop_if(|o| o.row == row && o.role == self.rows.data()).is_some() {}
    }

    /// Logs that are full are put into the parity as soon as their rows are free.
    pub(super) fn apply_full(&mut self, plan: &mut MemberPlan) {
        self.logs.due.drain(..).for_each(|region| plan.job(APPLY + region));
    }

    /// Writes what a row lacks of its parity to the log.
    pub(super) fn write_image(
        &self,
        ticket: Ticket,
        r: &HostRequest,
        (row, at): (u64, u64),
        state: &State,
        plan: &mut MemberPlan,
    ) {
        let own = state.parity_of(row);
        let blocks: u64 = own.iter().map(|p| p.segment.hi - p.segment.lo).sum();
        let (member, (lba, n)) = self.in_log(self.log_of(row), at..at + blocks);
        plan.ask(ticket, member, HostRequest { lba, blocks: n, why: Cause::Journal, ..*r }, |out| {
            for planned in own {
                let end = out.xor(&self.parity_terms(r, planned, state));
                out.push(Blocks(planned.segment.hi - planned.segment.lo), end);
            }
        });
    }

    /// A write is done: its images count, and where the parity is all new, older ones do not any more.
    pub(super) fn logged(&mut self, state: &State, plan: &mut MemberPlan) {
        if !self.logs_parity() {
            return;
        }
        let mut last = (u64::MAX, 0);
        for planned in state.planned.iter().filter(|p| p.method.is_some()) {
            let (row, blocks) = (planned.row, planned.segment.lo..planned.segment.hi);
            // The disk of the parity died meanwhile, and the log is void with it.
            if !self.has(self.rows.disk(row, self.rows.data()), row) {
                continue;
            }
            if let Some((_, first)) = state.logged.iter().find(|l| l.0 == row) {
                let at = if last.0 == row { last.1 } else { *first };
                last = (row, at + blocks.end - blocks.start);
                self.logs.logged += u64::from(at == *first);
                plan.record(Record { tag: LOGGED, words: [row, blocks.start << 32 | blocks.end, at] });
                self.logs.log(row, blocks, at);
            } else if planned.method == Some(Method::Reconstruct) {
                self.void(row..row + 1, &blocks, plan);
            }
        }
    }

    /// Parity lacks nothing any more.
    pub(super) fn void(&mut self, rows: Range<u64>, blocks: &Range<u64>, plan: &mut MemberPlan) {
        if self.logs.has(rows.clone()) {
            self.logs.void(rows.clone(), blocks);
            let word = blocks.start << 32 | blocks.end;
            plan.record(Record { tag: VOID, words: [rows.start, rows.end, word] });
        }
    }

    /// A disk died: what the parity on it lacks is of no use.
    pub(super) fn logs_die(&mut self, disk: u64) {
        let rows = self.rows;
        self.logs.images.retain(|row, _| rows.disk(*row, rows.data()) != disk);
    }

    pub(super) fn recover_log(&mut self, tag: u32, [a, b, c]: [u64; 3]) {
        let range = |word: u64| word >> 32..word & u64::from(u32::MAX);
        match tag {
            LOGGED => {
                let (log, blocks) = (self.log_of(a), range(b));
                let used = self.logs.used.entry(log).or_default();
                *used = (*used).max(c + blocks.end - blocks.start);
                self.logs.log(a, blocks, c);
            }
            _ => self.logs.void(a..b, &range(c)),
        }
    }

    pub(super) fn keep_log(&self, out: &mut dyn FnMut(Record)) {
        for (row, images) in &self.logs.images {
            for Image { blocks, at } in images {
                out(Record { tag: LOGGED, words: [*row, blocks.start << 32 | blocks.end, *at] });
            }
        }
    }

    /// Reads the images of `blocks` of a row into slots from `first` on.
    pub(super) fn read_images(
        &self,
        ticket: Ticket,
        (row, blocks, why): (u64, &Range<u64>, Cause),
        (first, olds): (u32, &mut Vec<Old>),
        plan: &mut MemberPlan,
    ) {
        for image in self.logs.images.get(&row).into_iter().flatten() {
            let own = image.blocks.start.max(blocks.start)..image.blocks.end.min(blocks.end);
            if !own.is_empty() {
                let at = image.at + own.start - image.blocks.start;
                let (member, place) = self.in_log(self.log_of(row), at..at + own.end - own.start);
                plan.read_slot(ticket, member, why, place, first + olds.len() as u32);
                olds.push(Old { row, role: IMAGE, blocks: own });
            }
        }
    }

    /// Blocks of a row, cut where images of it that were read begin and end.
    pub(super) fn cut_at_images(olds: &[Old], row: u64, blocks: &Range<u64>) -> Vec<Range<u64>> {
        cut(blocks, olds.iter().filter(|o| o.row == row && o.role == IMAGE).map(|o| &o.blocks))
    }

    /// The images of block `at` of a row among what was read, the first of it into slot `first`.
    pub(super) fn image_terms(olds: &[Old], first: u32, row: u64, at: u64) -> impl Iterator<Item = Term> {
        let own = move |o: &Old| o.row == row && o.role == IMAGE && o.blocks.contains(&at);
        let slots = (first..).zip(olds).filter(move |(_, o)| own(o));
        slots.map(move |(slot, o)| Term::Slot(slot, Blocks(at - o.blocks.start)))
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
    pub(super) fn start_apply(&mut self, ticket: Ticket, region: u64, plan: &mut MemberPlan) {
        let mut state = self.begin(&Work::Job(APPLY + region));
        state.at = At::Sources;
        self.states.put(ticket, state);
        let rows = self.lacking(region);
        if rows.is_empty() || self.disks.degraded() {
            return self.applied(ticket, region, rows.is_empty(), plan);
        }
        for disk in 0..self.rows.disks {
            let used = self.logs.used.get(&(region, disk)).copied().unwrap_or(0);
            if used > 0 {
                let (member, place) = self.in_log((region, disk), 0..used);
                plan.read_slot(ticket, member, Cause::Journal, place, disk as u32);
            }
        }
        for (slot, (row, blocks)) in (self.rows.disks as u32..).zip(&rows) {
            let (member, place) = (self.member(*row, self.rows.data()), self.on_member(*row, blocks));
            plan.read_slot(ticket, member, Cause::Parity, place, slot);
        }
    }

    /// Writes the parity with what it lacked. Until that is done it may or may not have it, so that after a power cut it is made
    /// from the data.
    pub(super) fn write_apply(&mut self, ticket: Ticket, region: u64, plan: &mut MemberPlan) {
        let rows = self.lacking(region);
        let (Some(first), Some(last), false) = (rows.first(), rows.last(), self.disks.degraded()) else {
            return self.applied(ticket, region, false, plan);
        };
        plan.record(Record { tag: DIRTY, words: [first.0, last.0 + 1, 0] });
        for (slot, (row, blocks)) in (self.rows.disks as u32..).zip(&rows) {
            let (member, (lba, n)) = (self.member(*row, self.rows.data()), self.on_member(*row, blocks));
            let write = HostRequest { why: Cause::Parity, ..HostRequest::new(HostOp::Write, lba, n) };
            let log = self.log_of(*row).1 as u32;
            plan.ask(ticket, member, write, |out| {
                let images = &self.logs.images[row];
                for piece in cut(blocks, images.iter().map(|i| &i.blocks)) {
                    let mut terms = vec![Term::Slot(slot, Blocks(piece.start - blocks.start))];
                    let own = images.iter().filter(|i| i.blocks.contains(&piece.start));
                    terms.extend(own.map(|i| Term::Slot(log, Blocks(i.at + piece.start - i.blocks.start))));
                    let end = out.xor(&terms);
                    out.push(Blocks(piece.end - piece.start), end);
                }
            });
        }
        self.logs.applied += rows.len() as u64;
    }

    /// The logs of a region are empty, or, where they could not be put into the parity, as they were.
    pub(super) fn applied(&mut self, ticket: Ticket, region: u64, empty: bool, plan: &mut MemberPlan) {
        self.logs.full.remove(&region);
        if empty {
            let rows = self.region_rows(region);
            self.void(rows.clone(), &(0..self.rows.chunk), plan);
            plan.record(Record { tag: CLEAN, words: [rows.start, rows.end, 0] });
            self.logs.used.retain(|log, _| log.0 != region);
        }
        self.end(ticket, plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayContext, parse};

    /// Does all phases of a work; what was asked: operation, member, first block, blocks. And the jobs that it wants.
    fn carry_out(array: &mut dyn Array, work: Work) -> (Vec<(HostOp, u32, u64, u64)>, Vec<u64>) {
        let (ticket, mut plan, mut asked) = (Ticket(0), MemberPlan::new(true), Vec::new());
        array.start(SimTime::ZERO, ticket, &work, &mut plan);
        let jobs = plan.jobs().to_vec();
        while !plan.ops().is_empty() {
            let of = |o: &crate::MemberOp| (o.request.op, o.member.0, o.request.lba.0, o.request.blocks.0);
            asked.extend(plan.ops().iter().map(of));
            plan.clear();
            array.complete(SimTime::ZERO, Phase { ticket, lost: false, busy: false }, &mut plan);
        }
        (asked, jobs)
    }

    /// Five drives of 96 blocks, chunks of 8, regions of 5 rows, logs of 8 blocks: two regions and a row, whose logs begin at
    /// blocks 88 on the drives. Row 0 has its parity on drive 4.
    #[test]
    fn a_small_write_reads_once_and_writes_twice_and_a_full_log_is_applied_at_once() {
        let text = "raid5,disks=5,chunk=8blk,parity=log,log=8blk,log_region=40blk";
        let mut array = parse(text).unwrap().build(&ArrayContext::new(&[Blocks(96); 5])).unwrap();
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
            (vec![(r, 0, 4, 2), (r, 4, 4, 2), (w, 0, 4, 2), (w, 4, 4, 2)], vec![APPLY])
        );
        // Blocks 0 to 4 of the parity lack something: three requests for four writes.
        let (asked, _) = carry_out(&mut *array, Work::Job(APPLY));
        assert_eq!(asked, [(r, 4, 80, 8), (r, 4, 0, 4), (w, 4, 0, 4)]);
        let (asked, _) = carry_out(&mut *array, write(4));
        assert_eq!(asked[2], (w, 4, 80, 2));
        let mut kept = 0;
        array.checkpoint(&mut |r| kept += u64::from(r.tag == LOGGED));
        assert_eq!(kept, 1);
    }

    /// On an SSD the disks see one read and one write.
    #[test]
    fn an_ssd_takes_the_images() {
        let text = "raid5,disks=5,chunk=8blk,parity=log,log=8blk,log_region=40blk,log_on=ssd";
        let mut array = parse(text).unwrap().build(&ArrayContext::new(&[Blocks(96); 5])).unwrap();
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

    /// Of an image of blocks 2 to 8 the middle is void: both ends are left, each where it was in the log.
    #[test]
    fn images_are_void_in_part() {
        let mut logs = Logs::default();
        logs.log(7, 2..8, 30);
        logs.void(7..8, &(4..5));
        let left = vec![Image { blocks: 2..4, at: 30 }, Image { blocks: 5..8, at: 33 }];
        assert_eq!(logs.images[&7], left);
        logs.void(0..8, &(0..8));
        assert!(!logs.has(0..8));
        assert_eq!(cut(&(2..8), [0..3, 5..9].iter()), [2..3, 3..5, 5..8]);
    }
}
