//! Everything that a run's result says, gathered in one pass in bounded memory.

pub mod band_walk;
pub mod fill;
pub mod heatmap;
mod looks;
pub mod refusals;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod times;
pub mod updates;
pub mod windows;

use crate::spaces::Spaces;
use band_walk::BandWalk;
use fill::Fill;
use heatmap::HeatMap;
use refusals::Refusals;
use smrlab_drive::{OpDone, Served, TimedPlan};
use smrlab_stl::{Cause, Dir, HostRequest, Outcome, Pause, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Stalls, counters};
use timeline::Timeline;
use times::Times;
use updates::Updates;

/// How transfers are counted in units of at most so many blocks (Cassuto et al. 2010, III.B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjusted {
    /// Blocks in a unit, at least 1.
    pub blocks: u64,
    /// `floor(n / blocks) + 1` instead of `ceil(n / blocks)`.
    pub floor_plus_one: bool,
}

impl Adjusted {
    /// Units of a transfer of `n` blocks.
    #[inline]
    pub fn units(self, n: u64) -> u64 {
        match self.floor_plus_one {
            _ if n < self.blocks => 1,
            true => n / self.blocks + 1,
            false => n.div_ceil(self.blocks),
        }
    }
}

counters! {
    /// Commands in one direction.
    pub struct Tally {
        /// Commands.
        commands,
        /// Blocks.
        blocks,
        /// Units of at most the adjusted size.
        adjusted,
        /// Time that they took, ns; media only.
        ns,
    }
}

impl Tally {
    #[inline]
    fn add(&mut self, blocks: u64, adjusted: u64, ns: u64) {
        self.commands += 1;
        self.blocks += blocks;
        self.adjusted += adjusted;
        self.ns += ns;
    }
}

/// Events with a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// How many.
    pub count: u64,
    /// When the first began.
    pub first: SimTime,
    /// Sum of the durations.
    pub total: SimTime,
    /// The longest.
    pub max: SimTime,
    /// Live blocks moved (cleaning only).
    pub relocated: u64,
}

impl Events {
    fn add(&mut self, from: SimTime, to: SimTime, relocated: u64) {
        if self.count == 0 {
            self.first = from;
        }
        let took = to.since(from);
        self.count += 1;
        self.total += took;
        self.max = self.max.max(took);
        self.relocated += relocated;
    }
}

/// Cleaning events by the layer's own names: a few, looked up for every event.
#[derive(Clone, Debug, Default)]
pub struct Cleanings(Vec<(&'static str, Events)>);

impl Cleanings {
    fn of(&mut self, kind: &'static str) -> &mut Events {
        // The same name is nearly always the same text at the same place.
        let found = self.0.iter().position(|e| std::ptr::eq(e.0, kind) || e.0 == kind);
        let i = found.unwrap_or_else(|| {
            self.0.push((kind, Events::default()));
            self.0.len() - 1
        });
        &mut self.0[i].1
    }

    /// All kinds by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Events)> {
        let mut all: Vec<_> = self.0.iter().map(|(kind, events)| (*kind, events)).collect();
        all.sort_unstable_by_key(|e| e.0);
        all.into_iter()
    }
}

/// Sub-requests and the extents that caused them (He & Du's write amplification).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amplification {
    /// Media operations.
    pub ops: u64,
    /// Extents into which the layer split the requests.
    pub extents: u64,
    /// Host requests.
    pub requests: u64,
}

impl Amplification {
    #[inline]
    fn add(&mut self, ops: u64, extents: u64) {
        self.ops += ops;
        self.extents += extents;
        self.requests += 1;
    }
}

/// Head movement over tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Movement {
    /// Operations that began on another track than the last one ended on.
    pub switches: u64,
    /// Sum of the cylinders between the end of an operation and the beginning of the next.
    pub distance: u64,
}

/// See the [module](self).
pub struct Metrics {
    adjusted: Adjusted,
    /// By [`HostOp`] number.
    pub host: [Tally; HostOp::KINDS],
    /// By [`Cause`] and [`Dir`] number.
    pub media: [[Tally; 2]; 9],
    /// Writes that touched at least one block that had been written before.
    pub updates: Updates,
    /// What those are seen as by the sources of requests: what is told of updates is [placed](Spaces::placed) among them.
    pub spaces: Spaces,
    /// Over all writes.
    pub war_writes: Amplification,
    /// Response and service times.
    pub times: Times,
    /// Windows.
    pub timeline: Timeline,
    /// Bins.
    pub heatmap: HeatMap,
    /// Movement of the head.
    pub movement: Movement,
    /// Movement over bands, where the medium has any.
    pub bands: Option<BandWalk>,
    /// Cleaning events by the layer's own names.
    pub cleaning: Cleanings,
    /// Cleaning in idle time that was given up for a request.
    pub given_up: Events,
    /// How full the layer's cache is.
    pub fill: Fill,
    /// Requests that took longer than people wait.
    pub stalls: Stalls,
    /// Time in which the drive worked, ns.
    pub busy_ns: u64,
    /// That of it which lies before the first arrival, and so in no window of the timeline, ns.
    pub before_ns: u64,
    /// Media blocks moved in background steps, and the time for it.
    pub background: Tally,
    /// First arrival.
    pub first_arrival: Option<SimTime>,
    /// From when on the results count time: the first arrival of the run; 0 before that.
    origin: SimTime,
    /// That is known.
    begun: bool,
    /// Latest arrival so far.
    pub last_arrival: SimTime,
    /// Latest completion so far.
    pub last_ack: SimTime,
    /// Largest mapping seen, bytes.
    pub map_bytes_peak: u64,
    /// Requests that were refused.
    pub refusals: Refusals,
    /// Of the host's reads and writes, appends included, those that were refused.
    pub undone: [Tally; 2],
}

/// What a request took on the medium.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Media operations.
    pub ops: u64,
    /// Runs of blocks that the host sees as one.
    pub extents: u64,
}

/// What [`Metrics`] needs to know of the run.
#[derive(Clone, Copy, Debug)]
pub struct MetricsSetup {
    /// The host's space.
    pub host_blocks: Blocks,
    /// The same, or one for each source.
    pub spaces: Spaces,
    /// Counting of adjusted commands.
    pub adjusted: Adjusted,
    /// Width of the timeline's windows; `None`: adaptive.
    pub window: Option<SimTime>,
    /// A response longer than this is a stall.
    pub stall: SimTime,
    /// Requests are told of before they come ([`Metrics::coming`]).
    pub foretold: bool,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new(setup: &MetricsSetup) -> Self {
        Self {
            adjusted: setup.adjusted,
            host: Default::default(),
            media: Default::default(),
            spaces: setup.spaces,
            updates: Updates::new(setup.spaces.blocks(), setup.foretold),
            war_writes: Amplification::default(),
            times: Times::default(),
            timeline: Timeline::new(setup.window),
            heatmap: HeatMap::new(setup.host_blocks),
            movement: Movement::default(),
            bands: None,
            cleaning: Cleanings::default(),
            given_up: Events::default(),
            fill: Fill::default(),
            stalls: Stalls::new(setup.stall),
            busy_ns: 0,
            before_ns: 0,
            background: Tally::default(),
            first_arrival: None,
            origin: SimTime::ZERO,
            begun: false,
            last_arrival: SimTime::ZERO,
            last_ack: SimTime::ZERO,
            map_bytes_peak: 0,
            refusals: Refusals::default(),
            undone: Default::default(),
        }
    }

    /// This request will come soon.
    #[inline]
    pub fn coming(&self, request: &HostRequest) {
        self.updates.prefetch(request.lba);
    }

    /// The run begins with a request that comes at `at`, to this drive or to another one of the array.
    pub fn began(&mut self, at: SimTime) {
        (self.origin, self.begun) = (at, true);
    }

    /// A request arrives. Arrivals come in order, but possibly long after completions that are later in time.
    // In place, as `counted`: both kinds of watch call it, and a call costs the loop of one drive.
    #[inline(always)]
    pub fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        if self.first_arrival.is_none() {
            self.first_arrival = Some(at);
            if !self.begun {
                self.began(at);
            }
        }
        self.last_arrival = at;
        let at = at.since(self.origin);
        self.timeline.arrival(at);
        self.heatmap.request(at, request.op, request.lba);
    }

    /// The drive was busy from `start` to `end`.
    #[inline]
    fn worked(&mut self, start: SimTime, end: SimTime) {
        self.busy_ns += end.0 - start.0;
        let origin = self.origin;
        if start < origin {
            self.before_ns += end.min(origin).0 - start.0;
        }
    }

    /// A request that arrived at `arrival` was served.
    #[inline]
    pub fn served(&mut self, arrival: SimTime, request: &HostRequest, executed: &TimedPlan<'_>) {
        self.executed(executed);
        let plan = executed.plan;
        let work = Work { ops: plan.ops().len() as u64, extents: u64::from(plan.extents()) };
        match plan.outcome() {
            Outcome::Refused { why, lba } => {
                return self.refused(arrival, request, &executed.served, (why, lba));
            }
            // Where it was written is known now.
            Outcome::Appended(at) => self.updates.add(at, request.blocks, work.ops, work.extents),
            Outcome::Done => {}
        }
        self.counted(arrival, request, &executed.served, work);
    }

    /// A request that arrived at `arrival` was answered and not done, because of a block.
    #[cold]
    pub fn refused(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        served: &Served,
        (why, at): (Refusal, Lba),
    ) {
        self.refusals.add(request, why, at);
        let n = request.blocks.0;
        let side = if request.op == HostOp::Append { HostOp::Write } else { request.op };
        let of_host = self.undone.get_mut(side.index());
        let undone = if of_host.is_some() { n } else { 0 };
        if let Some(of_host) = of_host {
            of_host.add(n, self.adjusted.units(n), 0);
        }
        self.timeline.refused(served.ack.since(self.origin), undone);
        self.timed::<false>(arrival, request, served);
    }

    /// A request that arrived at `arrival` was served with so much work.
    #[inline(always)]
    pub fn counted(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        served: &Served,
        Work { ops, extents }: Work,
    ) {
        match request.op {
            HostOp::Read => self.updates.read(request.lba, request.blocks),
            HostOp::Write => {
                self.war_writes.add(ops, extents);
                self.updates.add(request.lba, request.blocks, ops, extents);
            }
            // The layer alone knows where it was written.
            HostOp::Append => self.war_writes.add(ops, extents),
            _ => {}
        }
        self.timed::<false>(arrival, request, served);
    }

    /// A read that arrived at `arrival` was answered from a drive's buffer.
    #[inline]
    pub fn held(&mut self, arrival: SimTime, request: &HostRequest, served: &Served) {
        self.updates.read(request.lba, request.blocks);
        self.timed::<true>(arrival, request, served);
    }

    /// The same of a request that may have been refused: what it did is not counted, but that it was sent and answered.
    /// `HELD`: it came out of a drive's buffer.
    #[inline]
    fn timed<const HELD: bool>(&mut self, arrival: SimTime, request: &HostRequest, served: &Served) {
        let (op, n) = (request.op.index(), request.blocks.0);
        let response = served.ack.since(arrival);
        let service = served.ack.since(served.start);
        self.host[op].add(n, self.adjusted.units(n), 0);
        // Reads, writes and others.
        let kind = if request.op == HostOp::Append { HostOp::Write.index() } else { op.min(2) };
        if HELD {
            self.times.again(kind, response, service);
        } else {
            self.times.add(kind, response, service);
        }
        self.timeline.completion(served.ack.since(self.origin), response, op, n);
        self.last_ack = self.last_ack.max(served.ack);
        let (origin, timeline) = (self.origin, &mut self.timeline);
        let waiting = |from: SimTime, to: SimTime| timeline.stalled(from.since(origin), to.since(origin));
        self.stalls.response(arrival, served.ack, waiting);
    }

    /// What the host wrote, where it said and where a zone's write pointer was.
    pub fn writes(&self) -> Tally {
        self.host[HostOp::Write.index()] + self.host[HostOp::Append.index()]
    }

    /// Requests completed so far.
    pub fn completed(&self) -> u64 {
        self.host.iter().map(|t| t.commands).sum()
    }

    /// Media commands in one direction, over all causes.
    pub fn media_total(&self, dir: Dir) -> Tally {
        self.media.iter().fold(Tally::default(), |sum, t| sum + t[dir as usize])
    }

    /// Both directions of a cause.
    pub fn of_cause(&self, cause: Cause) -> [Tally; 2] {
        self.media[cause as usize]
    }

    /// A cleaning event of several drives together.
    pub fn cleaned_event(&mut self, kind: &'static str, from: SimTime, to: SimTime, relocated: u64) {
        self.cleaning.of(kind).add(from, to, relocated);
        let origin = self.origin;
        self.timeline.cleaning(from.since(origin), to.since(origin));
    }

    /// A plan was carried out, or the part of a step that will be.
    #[inline]
    pub fn executed(&mut self, executed: &TimedPlan<'_>) {
        if !executed.plan.cleanings().is_empty() {
            self.cleaned(executed);
        }
        if !executed.plan.zones_reset().is_empty() {
            let at = executed.served.ack.since(self.origin);
            self.timeline.reset(at, executed.plan.zones_reset().len() as u64);
        }
    }

    #[cold]
    #[inline(never)]
    fn cleaned(&mut self, executed: &TimedPlan<'_>) {
        self.fill.cleaned();
        for c in executed.plan.cleanings() {
            let end = (c.end as usize).min(executed.done);
            if c.first as usize >= end {
                continue;
            }
            // A step that was given up took its time, and cleaned nothing.
            let whole = executed.whole;
            let from = match c.first {
                0 => executed.began,
                n => executed.ends[n as usize - 1],
            };
            let to = executed.ends[end - 1];
            if whole {
                self.cleaning.of(c.kind).add(from, to, c.relocated.0);
            } else {
                self.given_up.add(from, to, 0);
            }
            let origin = self.origin;
            self.timeline.cleaning(from.since(origin), to.since(origin));
        }
    }
}

impl Metrics {
    /// A media operation was carried out.
    // In place: an operation's description is small parts, slow to copy.
    #[inline(always)]
    pub fn op(&mut self, done: &OpDone<'_>) {
        let n = done.op.blocks.0;
        let ns = done.end.0 - done.start.0;
        let units = self.adjusted.units(n);
        self.media[done.cause as usize][done.op.dir as usize].add(n, units, ns);
        self.worked(done.start, done.end);
        if done.request.is_none() {
            self.background.add(n, units, ns);
        }
        self.movement.switches += u64::from(done.tracks.before != done.tracks.first);
        self.movement.distance += u64::from(done.tracks.cylinders);
        if let Some(walk) = &mut self.bands {
            walk.op(done.op.pba, done.op.blocks);
        }
        self.timeline.media(done, self.origin);
    }

    /// A drive spent time without a media operation, for this request or in idle time.
    pub fn paused(&mut self, request: Option<u64>, pause: &Pause, start: SimTime) {
        self.worked(start, start + pause.time);
        self.media[pause.cause as usize][Dir::Write as usize].ns += pause.time.0;
        self.timeline.paused(start, start + pause.time, self.origin);
        if request.is_none() {
            self.background.ns += pause.time.0;
        }
    }
}
