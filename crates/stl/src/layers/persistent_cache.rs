//! `persistent-cache`: a drive-managed drive with a log on the medium, a limited map and FIFO cleaning of bands
//! (Shafaei, Hajkazemi, Desnoyers and Aghayev 2017).
//!
//! Every write becomes a packet at the end of the log, which takes one of the map's few entries; long sequential ones may go home past it.
//! When the log is long, rounds of cleaning merge the cached blocks of the oldest packets' bands into these, and requests wait for
//! a step of that, or for all of it where the map is full.

mod clean;
mod direct;
mod entry;
mod layout;
mod log;
mod read;
mod records;
mod recover;
pub use entry::ENTRY;
pub(super) use entry::{IDLE, LOG, MAP_LIMIT, MAP_TRIGGER, MEMORY, PACKET, ROUND, before_zones};

use crate::parts::split::unset_runs;
use crate::{
    Cause, Counted, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, StepEnd,
    TranslationLayer,
};
use clean::Job;
use layout::Layout;
use log::{Head, Log};
use smrlab_blockmap::BlockSet;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::collections::VecDeque;
use std::ops::Range;

/// What can be chosen about the layer. Lengths are in blocks.
#[derive(Clone, Copy, Debug)]
struct PersistentCacheOptions {
    /// Length of the log beyond which requests wait for bands to go home.
    log: u64,
    /// Least length of a packet in the log, and what it takes beside its data.
    sizes: log::Sizes,
    /// Data in a packet at most.
    packet: u64,
    /// Consecutive host writes that share a packet.
    queued: u64,
    map_trigger: u64,
    map_limit: u64,
    /// Commit of a packet: fixed part, and bytes a second where the data count.
    commit: SimTime,
    commit_rate: Option<u64>,
    /// Before a commit where the head is at the log.
    commit_overhead: SimTime,
    journal: SimTime,
    journal_every: u64,
    round_bands: u64,
    collect: SimTime,
    memory: u64,
    idle: Option<SimTime>,
    bypass: Bypass,
    whole_bands: bool,
    /// Reads that follow each other cost what passes the head.
    read_ahead: bool,
    /// From packet to packet: one that begins less far from the last one, in blocks along the track, takes a whole turn. Of those that begin just
    /// so far from it half do, those in the first third of the track: in the published runs the rounding of numbers decides it.
    log_late: u64,
    /// Requests are acknowledged before the sub-step that follows them.
    running_only: bool,
}

/// Where the host's last block passed the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At the log.
    Log,
    /// In a native band, before this offset.
    Native { band: usize, next: u64 },
}

/// Which writes go to their band directly instead of to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bypass {
    /// None.
    Never,
    /// The one stream that began with a band of which nothing lies natively.
    Stream,
    /// Those that go on where the data of their band end, as many bands as are written in turn.
    EachBand,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    read_hits: u64,
    read_misses: u64,
    read_split: u64,
    packets: u64,
    journal_commits: u64,
    bands_cleaned: u64,
    sub_steps: u64,
    rounds_waited: u64,
    bypassed_blocks: u64,
}

/// See the [module](self) and the registry's page.
pub(super) struct PersistentCache {
    o: PersistentCacheOptions,
    layout: Layout,
    host_blocks: u64,
    log: Log,
    /// Bands of the round under way, the first one at work.
    jobs: VecDeque<Box<Job>>,
    /// Jobs that are done, whose memory the next ones take.
    over: VecDeque<Box<Job>>,
    pressure: bool,
    /// The scratch band of the next job, and how many tracks of the scratch log are full.
    scratch_next: usize,
    scratch_tracks: u64,
    /// Packets since the journal's last commit.
    since_journal: u64,
    at: At,
    /// Where the packet that was read last begins, in blocks along its track: in the published model the turn to the next one counts
    /// from there, whatever was written meanwhile.
    read_last: u64,
    /// Blocks that read as zeroes until they are written.
    discarded: BlockSet,
    /// Blocks whose newest copy lies natively; kept where streams may bypass the log.
    written: Option<BlockSet>,
    /// Bands that are written directly, ascending, each with the next block of the host's: one at most, but with [`Bypass::EachBand`].
    streams: Vec<(usize, u64)>,
    /// What lay natively behind the one stream was forgotten since its last fence, which is perhaps not durable.
    forgot_behind: bool,
    /// A step of idle time that is planned, with the band that it begins.
    idle_step: Option<Option<usize>>,
    counters: Counters,
}

impl PersistentCache {
    fn new(layout: Layout, options: PersistentCacheOptions, host_blocks: u64) -> Self {
        Self {
            written: (options.bypass != Bypass::Never).then(BlockSet::new),
            o: options,
            layout,
            host_blocks,
            log: Log::default(),
            jobs: VecDeque::new(),
            over: VecDeque::new(),
            pressure: false,
            scratch_next: 0,
            scratch_tracks: 0,
            since_journal: 0,
            at: At::Log,
            read_last: 0,
            discarded: BlockSet::new(),
            streams: Vec::new(),
            forgot_behind: false,
            idle_step: None,
            counters: Counters::default(),
        }
    }

    /// The packet that further writes may join: the last one, if it was not given up.
    fn open_packet(&self, blocks: u64) -> Option<(u64, Head)> {
        let last = self.log.packets.back().filter(|_| self.o.queued > 1)?;
        let head = self.log.head;
        let (offset, data) = (u64::from(last.offset), u64::from(last.blocks));
        let at_end = u64::from(last.lap) == head.lap && offset + u64::from(last.length) == head.offset;
        let length = self.o.sizes.length(offset, data + blocks);
        let fits = offset + length <= self.log_band(head.lap);
        let shared = u64::from(last.writes) < self.o.queued && data + blocks <= self.o.packet;
        (at_end && shared && fits).then_some((length, Head { offset: offset + data, ..head }))
    }

    fn log_band(&self, lap: u64) -> u64 {
        self.layout.log[(lap % self.layout.log.len() as u64) as usize].blocks
    }

    /// Length and place of a further packet of `blocks` of data.
    // In place: what a call puts together from parts waits to be copied.
    #[inline(always)]
    fn next_packet(&self, blocks: u64) -> (u64, Head) {
        let length = |offset| self.o.sizes.length(offset, blocks);
        let at = self.log.place(length(self.log.head.offset), |lap| self.log_band(lap));
        (length(at.offset), at)
    }

    /// Time of a commit of `blocks` of data.
    fn commit_time(&self, blocks: u64) -> SimTime {
        let data = self.o.commit_rate.map_or(0, |r| blocks * 512 * 1_000_000_000 / r);
        SimTime(self.o.commit.0 + data)
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut at, end) = (r.lba.0, r.lba.0 + r.blocks.0);
        let mut ops = 0;
        while at < end {
            let host = at - r.lba.0;
            let direct = self.direct(at, end, r.fua);
            let n = if direct > 0 {
                self.write_directly(at..at + direct, host, plan);
                direct
            } else {
                self.write_packet(at..at + self.packet_of(at, end), host, plan)
            };
            at += n;
            ops += 1;
        }
        plan.set_extents(ops);
        self.acknowledge_early(plan);
        self.wait_of_write(plan);
    }

    /// How many blocks from `at` a packet takes. Where zones are told apart it does not reach into the next one, whose write may be in order.
    fn packet_of(&self, at: u64, end: u64) -> u64 {
        let end = match self.o.bypass {
            Bypass::EachBand => end.min(self.layout.host(self.layout.native_of(at).0).end),
            Bypass::Never | Bypass::Stream => end,
        };
        (end - at).min(self.o.packet)
    }

    /// Acknowledges before the cleaning that follows, where only requests that come meanwhile wait for it.
    fn acknowledge_early(&self, plan: &mut Plan) {
        if self.o.running_only {
            plan.acknowledge();
        }
    }

    /// Appends `span` to the log, as a packet of its own or to the last one.
    fn write_packet(&mut self, span: Range<u64>, host: u64, plan: &mut Plan) -> u64 {
        let blocks = span.end - span.start;
        let joined = self.open_packet(blocks);
        let (length, at) = joined.unwrap_or_else(|| self.next_packet(blocks));
        if joined.is_none() && host > 0 {
            self.make_entry(plan);
        }
        if joined.is_none() && at.lap != self.log.head.lap {
            self.make_room(at.lap, plan);
            if at.lap >= self.layout.log.len() as u64 {
                // What lay there is durable at home before it is overwritten.
                plan.fence();
            }
        }
        if joined.is_none() && self.since_journal >= self.o.journal_every {
            plan.pause(Cause::Journal, self.o.journal);
        }
        self.plan_commit(at, blocks, joined.is_some(), host, plan);
        let place = (at.lap << 32) | if joined.is_some() { 1 << 63 } else { at.offset };
        plan.record(Record { tag: records::APPEND, words: [span.start, blocks, place] });
        self.append(at, length, joined.is_some(), span);
        blocks
    }

    /// The state after `span` was appended.
    fn append(&mut self, at: Head, length: u64, joined: bool, span: Range<u64>) {
        self.forget_natively(span.clone());
        self.at = At::Log;
        if joined {
            return self.log.join(length, span);
        }
        if self.since_journal >= self.o.journal_every {
            self.since_journal = 0;
            self.counters.journal_commits += 1;
        }
        self.since_journal += 1;
        self.counters.packets += 1;
        self.log.append(at, length, span);
    }

    fn forget_natively(&mut self, span: Range<u64>) {
        if !self.discarded.is_empty() {
            self.discarded.remove(span.clone());
        }
        if let Some(written) = &mut self.written {
            let behind = self.streams.first().map(|(band, next)| *next..self.layout.host(*band).end);
            let forgets = |behind: Range<u64>| {
                let (from, to) = (behind.start.max(span.start), behind.end.min(span.end));
                from < to && written.contains_any(from..to)
            };
            self.forgot_behind |= self.o.bypass == Bypass::Stream && behind.is_some_and(forgets);
            written.remove(span);
        }
    }

    /// Writes the data; the rest of the commit is time. From the log's own place the duration is the measured one; from
    /// elsewhere the mechanics bring the head there.
    fn plan_commit(&self, at: Head, blocks: u64, joined: bool, host: u64, plan: &mut Plan) {
        let pba = self.log_at(at.lap, at.offset);
        plan.write(Cause::Host, pba, Blocks(blocks), Endpoint::Host(Blocks(host)));
        let media = self.layout.turns(blocks, self.layout.track);
        if joined {
            let data = self.commit_time(blocks).0 - self.commit_time(0).0;
            return plan.lasting(SimTime(data.max(media.0)));
        }
        let commit = self.commit_time(blocks);
        if self.at == At::Log {
            plan.lasting(self.o.commit_overhead + commit);
        } else {
            plan.pause(Cause::Metadata, commit.since(self.layout.passing(at.offset, blocks)));
        }
    }

    pub(super) fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        plan.record(Record { tag: records::DISCARD, words: [r.lba.0, r.blocks.0, 0] });
        self.forget(r.span());
    }

    /// Whether blocks of `span` lie in the log, or are on their way home from there.
    pub(super) fn holds(&self, span: Range<u64>) -> bool {
        let band = self.layout.native_of(span.start).0;
        self.log.map.within(span).next().is_some() || self.jobs.iter().any(|j| j.band == band)
    }

    /// The host's blocks whose write a record tells of.
    pub(super) fn written_by(record: &Record) -> Option<Range<u64>> {
        let [at, blocks, _] = record.words;
        matches!(record.tag, records::APPEND | records::DIRECT).then_some(at..at + blocks)
    }

    fn forget(&mut self, span: Range<u64>) {
        self.log.kill(span.clone());
        self.log.trim();
        self.forget_natively(span.clone());
        if self.o.bypass == Bypass::EachBand {
            // What lay behind a stream may be forgotten, and that not durably yet: the stream begins anew, behind a fence.
            let first = self.layout.native_of(span.start).0;
            self.streams.retain(|(band, _)| *band < first || self.layout.host(*band).start >= span.end);
        }
        self.discarded.insert(span);
    }

    /// Where the first media operation of a read or write would be; `None` where cleaning may come first.
    fn first_operation(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        let end = r.lba.0 + r.blocks.0;
        if r.op == HostOp::Read {
            let lba = self.discarded.next_unset(r.lba.0);
            return (lba < end).then(|| (self.newest(lba, end).pba, Dir::Read));
        }
        if self.direct(r.lba.0, end, r.fua) > 0 {
            return Some((self.layout.home(r.lba.0), Dir::Write));
        }
        let blocks = self.packet_of(r.lba.0, end);
        if let Some((_, at)) = self.open_packet(blocks) {
            return Some((self.log_at(at.lap, at.offset), Dir::Write));
        }
        let (_, at) = self.next_packet(blocks);
        let room = at.lap == self.log.head.lap || self.log.room(at.lap, self.layout.log.len() as u64);
        room.then(|| (self.log_at(at.lap, at.offset), Dir::Write))
    }
}

impl TranslationLayer for PersistentCache {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.host_blocks)
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        matches!(r.op, HostOp::Read | HostOp::Write).then(|| self.first_operation(r)).flatten()
    }

    fn background_after(&self) -> Option<SimTime> {
        let idle = self.o.idle?;
        if !self.jobs.is_empty() {
            return Some(SimTime::ZERO);
        }
        (self.log.live_blocks > 0).then_some(idle)
    }

    fn background(&mut self, _now: SimTime, plan: &mut Plan) {
        self.plan_idle(plan);
    }

    fn background_end(&mut self, end: StepEnd) {
        let Some(begun) = self.idle_step.take().filter(|_| end == StepEnd::Done) else { return };
        if let Some(band) = begun {
            self.take(band, false);
        }
        self.finish_sub_step();
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        self.replay(records, plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        unset_runs(&self.discarded, lba.span(blocks), out);
    }

    fn facts(&self) -> Facts<'_> {
        let held: u64 = self.jobs.iter().map(|j| j.blocks).sum();
        Facts {
            bands: Some(&self.layout.bands),
            cache: Some(Blocks(self.o.log)),
            cached: Some(Blocks(self.log.live_blocks + held)),
            entries: Some((self.log.live, self.o.map_limit)),
            ..Facts::default()
        }
    }

    fn map_bytes(&self) -> u64 {
        self.log_bytes()
            + self.discarded.bytes() as u64
            + (self.streams.capacity() * size_of::<(usize, u64)>()) as u64
            + self.written.as_ref().map_or(0, |w| w.bytes() as u64)
    }

    fn counters(&self, out: &mut Counted) {
        let c = &self.counters;
        out.count("read_hits", c.read_hits);
        out.count("read_misses", c.read_misses);
        out.count("read_split", c.read_split);
        out.count("packets", c.packets);
        out.level("packets_live", self.log.live);
        out.level("cached_blocks", self.log.live_blocks);
        out.count("journal_commits", c.journal_commits);
        out.count("bands_cleaned", c.bands_cleaned);
        out.count("cleaning_sub_steps", c.sub_steps);
        out.count("rounds_waited_for", c.rounds_waited);
        out.count("bypassed_blocks", c.bypassed_blocks);
    }
}
