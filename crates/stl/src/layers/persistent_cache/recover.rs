//! What survives a power cut: the records of the persistent cache, and how a fresh layer is rebuilt from them.

use super::clean::{Job, Work};
use super::log::{Head, Packet};
use super::records::{
    APPEND, BY_LAST, DIRECT, DISCARD, EXTENT, HEAD, HOME, JOB, OPEN, PACKET, PRESSURE, SPAN, STATE, STEP,
    STREAM, TAKE, TAKEN, WRITTEN,
};
use super::{At, PersistentCache};
use crate::parts::extents::Extent;
use crate::{Cause, Endpoint, Piece, Plan, Record, Records, Sink};
use smrlab_units::Blocks;

fn pair(high: u64, low: u64) -> u64 {
    (high << 32) | low
}

fn halves(word: u64) -> (u64, u64) {
    (word >> 32, word & 0xffff_ffff)
}

fn words(word: u64) -> [u32; 2] {
    [(word >> 32) as u32, word as u32]
}

/// Instead of a native band: the head is at the log.
const NOWHERE: u64 = u32::MAX as u64;

/// Of a packet of which no span was told yet.
const NONE: u64 = u64::MAX;

impl PersistentCache {
    pub(super) fn replay(&mut self, records: &Records, plan: &mut Plan) {
        let mut going_home = false;
        for r in records.changes::<Record>() {
            match r.tag {
                HOME => going_home = true,
                STEP => {
                    going_home = false;
                    self.finish_sub_step();
                }
                _ => self.replay_one(r),
            }
        }
        if going_home && let Some(job) = self.jobs.front() {
            self.go_home_again(job, plan);
            plan.record(Record { tag: STEP, words: [0; 3] });
            self.finish_sub_step();
        }
    }

    fn replay_one(&mut self, Record { tag, words: [a, b, c] }: Record) {
        match tag {
            APPEND => {
                let joined = c >> 63 == 1;
                let (lap, offset) = halves(c & !(1 << 63));
                let before = self.log.head.length;
                let last = self.log.packets.back().filter(|_| joined);
                let (begins, held) = last.map_or((offset, 0), |p| (p.offset.into(), u64::from(p.blocks)));
                let length = self.o.sizes.length(begins, held + b);
                self.append(Head { lap, offset, length: before }, length, joined, a..a + b);
            }
            DISCARD => self.forget(a..a + b),
            TAKE => self.take(a as usize, b != BY_LAST),
            PRESSURE => self.pressure = a == 1,
            OPEN => self.open_stream(a as usize, b),
            DIRECT => self.written_directly(a..a + b),
            _ => self.restore(Record { tag, words: [a, b, c] }),
        }
    }

    /// Writes in place again what a cut interrupted; what the drive's memory held is read from the medium.
    fn go_home_again(&self, job: &Job, plan: &mut Plan) {
        let Some(Work::Home(r)) = job.steps.get(job.done).map(|s| &s.work) else { return };
        let mut sources = Vec::new();
        self.home_pieces(job, r, &mut sources);
        let staged: Vec<Piece> = sources
            .iter()
            .map(|p| match p.end {
                Endpoint::Held(from) => {
                    let op = plan.read_staged(Cause::Journal, from, p.blocks);
                    Piece { blocks: p.blocks, end: Endpoint::Staged(op, Blocks::ZERO) }
                }
                _ => *p,
            })
            .collect();
        let (at, blocks) = (self.layout.native[job.band].first + Blocks(r.start), Blocks(r.end - r.start));
        plan.write_pieces(Cause::Journal, at, blocks, |out| out.extend(staged));
    }

    fn restore(&mut self, Record { tag, words: [a, b, c] }: Record) {
        match tag {
            PACKET => {
                let ([lap, offset], [length, blocks], writes) = (words(a), words(b), (c >> 48) as u32);
                self.log.keep(Packet { lba: NONE, lap, offset, length, blocks, writes, live: 0, held: 0 });
            }
            SPAN => match self.log.packets.back_mut() {
                Some(p) if p.lba == NONE => p.lba = a,
                _ => self.log.keep_further(a..a + b),
            },
            EXTENT => {
                let e = self.extent(a, b, c);
                self.log.map.insert(e);
                self.log.live_blocks += e.blocks;
                let p = self.log.packet_mut(e.packet);
                p.live += e.blocks as u32;
                let first = p.live == e.blocks as u32;
                self.log.live += u64::from(first);
            }
            JOB => {
                let (scratch, tracks_before) = halves(b);
                let scratch = scratch as usize;
                let (by_last, done) = halves(c);
                let by_first = by_last != BY_LAST;
                let (band, done) = (a as usize, done as usize);
                let job = Job { band, scratch, tracks_before, done, by_first, ..Job::default() };
                self.jobs.push_back(Box::new(job));
            }
            TAKEN => {
                let e = self.extent(a, b, c);
                self.log.packet_mut(e.packet).held += e.blocks as u32;
                if let Some(job) = self.jobs.back_mut() {
                    job.taken.push(e);
                }
                // The sub-steps follow from all that is taken.
                if let Some(mut job) = self.jobs.pop_back() {
                    self.lay_down(&mut job);
                    self.jobs.push_back(job);
                }
            }
            HEAD => {
                let (lap, offset) = halves(a);
                self.log.head = Head { lap, offset, length: b };
                let (band, next) = halves(c);
                self.at = if band == NOWHERE { At::Log } else { At::Native { band: band as usize, next } };
            }
            STATE => {
                let (scratch, tracks) = halves(a);
                (self.scratch_next, self.scratch_tracks) = (scratch as usize, tracks);
                (self.read_last, self.since_journal) = halves(b);
                self.log.first = c;
            }
            STREAM => self.set_next(a as usize, b),
            WRITTEN => {
                if let Some(written) = &mut self.written {
                    written.insert(a..a + b);
                }
            }
            _ => debug_assert!(false, "record {tag} is not the persistent cache's"),
        }
    }

    fn extent(&self, a: u64, b: u64, c: u64) -> Extent {
        let (blocks, at) = halves(b);
        Extent { lba: a, blocks, packet: (self.log.first + c) as u32, at }
    }

    pub(super) fn write_checkpoint(&self, out: &mut dyn Sink) {
        let mut put = |tag, words| out.push(tag, words);
        let first = self.log.first;
        let state = pair(self.scratch_next as u64, self.scratch_tracks);
        put(STATE, [state, pair(self.read_last, self.since_journal), first]);
        let at = match self.at {
            At::Log => pair(NOWHERE, 0),
            At::Native { band, next } => pair(band as u64, next),
        };
        put(HEAD, [pair(self.log.head.lap, self.log.head.offset), self.log.head.length, at]);
        let mut before = self.log.head.length - self.log.kept;
        for (i, p) in self.log.packets.iter().enumerate() {
            let (place, size) = (pair(p.lap.into(), p.offset.into()), pair(p.length.into(), p.blocks.into()));
            put(PACKET, [place, size, u64::from(p.writes) << 48 | before]);
            self.log.spans(i).for_each(|s| put(SPAN, [s.start, s.end - s.start, 0]));
            before += u64::from(p.length);
        }
        let extent = |e: &Extent| [e.lba, pair(e.blocks, e.at), e.packet.wrapping_sub(first as u32).into()];
        self.log.map.iter().for_each(|e| put(EXTENT, extent(&e)));
        for job in &self.jobs {
            let rule = if job.by_first { 0 } else { BY_LAST };
            let scratch = pair(job.scratch as u64, job.tracks_before);
            put(JOB, [job.band as u64, scratch, pair(rule, job.done as u64)]);
            job.taken.iter().for_each(|e| put(TAKEN, extent(e)));
        }
        put(PRESSURE, [u64::from(self.pressure), 0, 0]);
        for run in self.discarded.runs() {
            put(DISCARD, [run.start, run.end - run.start, 0]);
        }
        if let Some(written) = &self.written {
            written.runs().for_each(|r| put(WRITTEN, [r.start, r.end - r.start, 0]));
        }
        for (band, next) in &self.streams {
            put(STREAM, [*band as u64, *next, 0]);
        }
    }
}
