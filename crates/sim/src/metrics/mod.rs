//! Everything that a run's result says, gathered in one pass in bounded memory.

pub mod band_walk;
pub mod fill;
pub mod heatmap;
mod looks;
mod on_medium;
pub mod refusals;
mod tallies;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod times;
pub mod updates;
pub mod windows;

pub use tallies::{Adjusted, Amplification, Cleanings, Events, Movement, Tally};

use crate::spaces::Spaces;
use band_walk::BandWalk;
use fill::Fill;
use heatmap::HeatMap;
use refusals::Refusals;
use smrlab_drive::{Row, Served, TimedPlan};
use smrlab_stl::{HostRequest, Outcome, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Stalls};
use timeline::Timeline;
use times::Times;
use updates::Updates;

/// See the [module](self).
pub struct Metrics {
    adjusted: Adjusted,
    /// By [`HostOp`] number.
    pub host: [Tally; HostOp::KINDS],
    /// By number of [`Cause`](smrlab_stl::Cause) and of [`Dir`](smrlab_units::Dir).
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
    pub heatmap: Option<HeatMap>,
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
    /// A heat map is kept: the result shows none of an array's drives.
    pub heatmap: bool,
    /// Drives that have a timeline.
    pub drives: usize,
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
            timeline: Timeline::new(setup.window, setup.drives),
            heatmap: setup.heatmap.then(|| HeatMap::new(setup.host_blocks)),
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
        if let Some(map) = &mut self.heatmap {
            map.request(at, request.op, request.lba);
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

    /// Reads [arrived](Self::arrived), and were [answered](Self::held) from a drive's buffer.
    pub fn held_in_order(&mut self, row: &Row<'_>) {
        let Row { took, requests: [request, ..], came: [first, ..] } = *row else { return };
        let n = row.came.len();
        let (lba, blocks, until) = (request.lba, request.blocks, row.came[n - 1]);
        let (first, last, n) = (first.since(self.origin), until.since(self.origin), n as u64);
        let together = self.first_arrival.is_some()
            && took <= self.stalls.threshold()
            && self.timeline.same_windows((first, last), (first + took, last + took))
            && (self.heatmap.as_mut())
                .is_none_or(|m| m.same_bin((first, last), (lba, lba + Blocks(blocks.0 * (n - 1)))));
        if !together {
            row.each().for_each(|(came, request, served)| {
                self.arrived(came, request);
                self.held(came, request, &served);
            });
            return;
        }
        let op = HostOp::Read.index();
        self.last_arrival = until;
        self.last_ack = self.last_ack.max(until + took);
        self.timeline.arrivals(first, n);
        self.timeline.completions(first + took, took, op, blocks, n);
        if let Some(map) = &mut self.heatmap {
            map.requests(first, op, lba, n);
        }
        self.updates.reads(lba, blocks, n);
        self.times.again_times(op, took, n);
        let units = self.adjusted.units(blocks.0);
        self.host[op] =
            self.host[op] + Tally { commands: n, blocks: n * blocks.0, adjusted: n * units, ns: 0 };
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
}
