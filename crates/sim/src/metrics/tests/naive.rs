//! The list of all that happened, and the figures from it.

use crate::metrics::heatmap::{BINS, HeatMap};
use crate::metrics::{Amplification, Events, Metrics, MetricsSetup, Movement, Tally};
use smrlab_disk::Bands;
use smrlab_drive::{Served, Tracks};
use smrlab_stl::{Cause, HostRequest, MediaOp, Outcome};
use smrlab_units::{Blocks, Dir, Histogram, HostOp, Pba, SimTime};
use std::collections::{BTreeMap, BTreeSet};

/// A media operation.
pub(super) struct Op {
    pub idle: bool,
    pub cause: Cause,
    pub op: MediaOp,
    pub start: u64,
    pub end: u64,
    pub tracks: Tracks,
}

/// A request that was answered: when it came, what it took (operations, extents), and how it ended.
pub(super) struct Plans {
    pub came: u64,
    pub r: HostRequest,
    pub served: Served,
    pub work: (u64, u64),
    pub outcome: Outcome,
}

pub(super) struct List {
    setup: MetricsSetup,
    pub arrivals: Vec<(u64, HostRequest)>,
    pub ops: Vec<Op>,
    /// In idle time or not, why, and from when to when.
    pub pauses: Vec<(bool, Cause, u64, u64)>,
    pub done: Vec<Plans>,
    /// Kind, begin, end, blocks, and whether it was whole.
    pub cleanings: Vec<(&'static str, u64, u64, Option<u64>, bool)>,
    pub cleaned_since: bool,
    /// When the cache was looked at, and what it held of how much; whether something was cleaned since the look before.
    looks: Vec<(u64, Option<(u64, u64)>, bool)>,
    before: BTreeSet<u64>,
}

impl List {
    pub(super) fn new(setup: &MetricsSetup) -> Self {
        Self {
            setup: *setup,
            arrivals: Vec::new(),
            ops: Vec::new(),
            pauses: Vec::new(),
            done: Vec::new(),
            cleanings: Vec::new(),
            cleaned_since: false,
            looks: Vec::new(),
            before: BTreeSet::new(),
        }
    }

    pub(super) fn prefilled(&mut self, r: &HostRequest) {
        self.before.extend(r.lba.0..r.lba.0 + r.blocks.0);
    }

    pub(super) fn looked(&mut self, at: u64, fill: Option<(u64, u64)>) {
        self.looks.push((at, fill, std::mem::take(&mut self.cleaned_since)));
    }

    /// Whether the cache has to be looked at: at first, after a cleaning, and each sixteenth of a window; never where there is none. `None`:
    /// windows become wider, and nobody follows that here.
    pub(super) fn due(&self, at: u64) -> Option<bool> {
        let Some((last, fill, _)) = self.looks.last() else { return Some(true) };
        if fill.is_none() || self.cleaned_since {
            return Some(fill.is_some());
        }
        self.setup.window.map(|width| at >= self.origin().max(*last) + width.0 / 16)
    }

    fn origin(&self) -> u64 {
        self.arrivals.first().map_or(0, |a| a.0)
    }

    /// When the drive worked, from when to when.
    fn worked(&self) -> impl Iterator<Item = (u64, u64)> {
        let ops = self.ops.iter().map(|o| (o.start, o.end));
        ops.chain(self.pauses.iter().map(|p| (p.2, p.3)))
    }

    fn tally(&self, ops: impl Fn(&Op) -> bool, pauses: impl Fn(&(bool, Cause, u64, u64)) -> bool) -> Tally {
        let ops: Vec<_> = self.ops.iter().filter(|o| ops(o)).collect();
        let paused: u64 = self.pauses.iter().filter(|p| pauses(p)).map(|p| p.3 - p.2).sum();
        Tally {
            commands: ops.len() as u64,
            blocks: ops.iter().map(|o| o.op.blocks.0).sum(),
            adjusted: ops.iter().map(|o| self.units(o.op.blocks.0)).sum(),
            ns: ops.iter().map(|o| o.end - o.start).sum::<u64>() + paused,
        }
    }

    fn units(&self, n: u64) -> u64 {
        let (of, plus) = (self.setup.adjusted.blocks, self.setup.adjusted.floor_plus_one);
        if n < of {
            1
        } else if plus {
            n / of + 1
        } else {
            n.div_ceil(of)
        }
    }

    /// Steps of events, from when to when each, and what was moved where it is the last one.
    fn events(steps: &[(u64, u64, Option<u64>)]) -> Events {
        let took = |steps: &[(u64, u64, Option<u64>)]| SimTime(steps.iter().map(|s| s.1 - s.0).sum());
        let mut max = SimTime::ZERO;
        let mut unfinished = None;
        for event in steps.split_inclusive(|s| s.2.is_some()) {
            if event.iter().any(|s| s.2.is_some()) {
                max = max.max(took(event));
            } else {
                unfinished = Some(took(event));
            }
        }
        Events {
            count: steps.iter().filter(|s| s.2.is_some()).count() as u64,
            first: SimTime(steps.first().map_or(0, |s| s.0)),
            total: took(steps),
            max,
            relocated: steps.iter().filter_map(|s| s.2).sum(),
            unfinished,
        }
    }

    /// When stalled requests waited, as spans that are apart.
    fn stalls(&self) -> Vec<(u64, u64)> {
        let stalled = |d: &&Plans| d.served.ack.0 - d.came > self.setup.stall.0;
        let mut all: Vec<_> = self.done.iter().filter(stalled).map(|d| (d.came, d.served.ack.0)).collect();
        all.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match apart.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => apart.push((from, to)),
            }
        }
        apart
    }

    pub(super) fn happened(&self) -> [u64; 9] {
        let refused = |d: &&Plans| matches!(d.outcome, Outcome::Refused { .. });
        let (updates, unwritten) = self.updates();
        [
            updates.requests,
            unwritten.0,
            self.cleanings.iter().filter(|c| c.4).count() as u64,
            self.cleanings.iter().filter(|c| !c.4).count() as u64,
            self.stalls().len() as u64,
            u64::from(self.worked().any(|w| w.0 < self.origin())),
            self.ops.iter().filter(|o| o.idle).count() as u64,
            self.done.iter().filter(refused).count() as u64,
            self.pauses.len() as u64,
        ]
    }

    /// Writes to what was written, and reads of what was not with their blocks.
    fn updates(&self) -> (Amplification, (u64, u64)) {
        let (mut written, mut sum, mut unwritten) = (self.before.clone(), Amplification::default(), (0, 0));
        for d in self.done.iter().filter(|d| !matches!(d.outcome, Outcome::Refused { .. })) {
            let blocks = d.r.lba.0..d.r.lba.0 + d.r.blocks.0;
            if d.r.op == HostOp::Write {
                if blocks.clone().any(|b| written.contains(&b)) {
                    sum.ops += d.work.0;
                    sum.extents += d.work.1.max(1);
                    sum.requests += 1;
                }
                written.extend(blocks);
            } else if d.r.op == HostOp::Read {
                let never = blocks.filter(|b| !written.contains(b)).count() as u64;
                unwritten = (unwritten.0 + u64::from(never > 0), unwritten.1 + never);
            }
        }
        (sum, unwritten)
    }

    /// Compares each figure.
    pub(super) fn agrees(&self, m: &mut Metrics, bands: Option<&Bands>, of: &str) {
        self.counts(m, of);
        self.requests(m, of);
        self.windows(m, of);
        self.map(m, of);
        let place = |p: u64| {
            let bands = bands?;
            let of = |i: &u64| {
                let b = bands.band(smrlab_disk::BandId(*i));
                (b.first.0..b.first.0 + b.blocks.0).contains(&p)
            };
            (0..bands.len()).find(of).or(Some(u64::MAX - p))
        };
        let (mut here, mut switches) = (place(0), 0);
        for o in &self.ops {
            let Pba(first) = o.op.pba;
            switches += u64::from(place(first) != here);
            here = place(first + o.op.blocks.0 - 1);
        }
        assert_eq!(m.bands.as_ref().map_or(0, |b| b.switches), switches, "{of}: switches of bands");
        let emptied = self.looks.windows(2).rev().find(|w| {
            let (before, now) = (w[0].1.unwrap_or_default(), w[1].1.unwrap_or_default());
            now.0 == 0 && (before.0 > 0 || w[1].2)
        });
        let first = self.looks.first().filter(|l| l.2 && l.1.is_some_and(|f| f.0 == 0)).map(|l| l.0);
        let emptied = emptied.map(|w| w[1].0).or(first);
        let capacity = self.looks.last().and_then(|l| l.1).map_or(0, |f| f.1);
        let emptied = emptied.filter(|_| capacity > 0).map(SimTime);
        assert_eq!((m.fill.emptied, m.fill.capacity), (emptied, capacity), "{of}: the cache");
    }

    /// Operations, by cause and direction, and what they moved and cleaned.
    fn counts(&self, m: &Metrics, of: &str) {
        let causes = [
            Cause::Host,
            Cause::Clean,
            Cause::Destage,
            Cause::Defrag,
            Cause::Metadata,
            Cause::Journal,
            Cause::Fill,
            Cause::Parity,
            Cause::Rebuild,
        ];
        for cause in causes {
            for dir in [Dir::Read, Dir::Write] {
                let pauses = |p: &(bool, Cause, u64, u64)| dir == Dir::Write && p.1 == cause;
                let want = self.tally(|o| o.cause == cause && o.op.dir == dir, pauses);
                assert_eq!(m.of_cause(cause)[dir as usize], want, "{of}: {cause:?} {dir:?}");
            }
        }
        for dir in [Dir::Read, Dir::Write] {
            let want = self.tally(|o| o.op.dir == dir, |_| dir == Dir::Write);
            assert_eq!(m.media_total(dir), want, "{of}: all {dir:?}");
        }
        assert_eq!(m.background, self.tally(|o| o.idle, |p| p.0), "{of}: idle work");
        let busy: u64 = self.worked().map(|w| w.1 - w.0).sum();
        let early = |w: (u64, u64)| w.1.min(self.origin()) - w.0.min(self.origin());
        let before: u64 = self.worked().map(early).sum();
        assert_eq!((m.busy_ns, m.before_ns), (busy, before), "{of}: busy");
        let movement = Movement {
            switches: self.ops.iter().filter(|o| o.tracks.before != o.tracks.first).count() as u64,
            distance: self.ops.iter().map(|o| u64::from(o.tracks.cylinders)).sum(),
        };
        assert_eq!(m.movement, movement, "{of}");
        let mut kinds: BTreeMap<&str, Vec<(u64, u64, Option<u64>)>> = BTreeMap::new();
        for c in self.cleanings.iter().filter(|c| c.4) {
            kinds.entry(c.0).or_default().push((c.1, c.2, c.3));
        }
        let kinds: Vec<_> = kinds.into_iter().map(|(kind, all)| (kind, Self::events(&all))).collect();
        assert_eq!(m.cleaning.iter().map(|(kind, e)| (kind, *e)).collect::<Vec<_>>(), kinds, "{of}");
        let given_up = self.cleanings.iter().filter(|c| !c.4).map(|c| (c.1, c.2, Some(0)));
        assert_eq!(m.given_up, Self::events(&given_up.collect::<Vec<_>>()), "{of}: given up");
    }

    /// Reads and writes that were refused.
    fn undone(&self) -> [Tally; 2] {
        [HostOp::Read, HostOp::Write].map(|op| {
            let refused =
                self.done.iter().filter(|d| d.r.op == op && matches!(d.outcome, Outcome::Refused { .. }));
            refused.fold(Tally::default(), |sum, d| {
                let (blocks, adjusted) = (d.r.blocks.0, self.units(d.r.blocks.0));
                sum + Tally { commands: 1, blocks, adjusted, ns: 0 }
            })
        })
    }

    /// Requests: how many, how long, and what they were.
    fn requests(&self, m: &mut Metrics, of: &str) {
        let mut times: ([Histogram; 3], Histogram) = Default::default();
        let (mut host, mut refusals) = ([Tally::default(); HostOp::KINDS], BTreeMap::new());
        let (mut writes, mut refused) = (Amplification::default(), 0);
        for d in &self.done {
            let (op, n) = (d.r.op.index(), d.r.blocks.0);
            times.0[op.min(2)].add(d.served.ack.0 - d.came);
            times.1.add(d.served.ack.0 - d.served.start.0);
            host[op] = host[op] + Tally { commands: 1, blocks: n, adjusted: self.units(n), ns: 0 };
            if let Outcome::Refused { why, .. } = d.outcome {
                *refusals.entry(why.name()).or_insert(0u64) += 1;
                refused += 1;
            } else if d.r.op == HostOp::Write {
                let Amplification { ops, extents, requests } = writes;
                writes = Amplification {
                    ops: ops + d.work.0,
                    extents: extents + d.work.1,
                    requests: requests + 1,
                };
            }
        }
        assert_eq!((m.host, m.war_writes, m.completed()), (host, writes, self.done.len() as u64), "{of}");
        assert_eq!(m.undone, self.undone(), "{of}");
        let got = m.times.responses().into_iter().chain([m.times.services()]);
        for (i, (got, want)) in got.zip(times.0.into_iter().chain([times.1])).enumerate() {
            assert!(got.rows().eq(want.rows()), "{of}: times {i}");
        }
        assert_eq!(m.refusals.count(), (refused > 0).then_some(refused), "{of}");
        if let Some(first) = self.done.iter().find(|d| matches!(d.outcome, Outcome::Refused { .. })) {
            let Outcome::Refused { why, lba } = first.outcome else { return };
            let json = m.refusals.json();
            assert_eq!(json["by_reason"].as_object().unwrap().len(), refusals.len());
            refusals.iter().for_each(|(why, n)| assert_eq!(json["by_reason"][why], *n, "{of}: {why}"));
            let all = json["first"].as_array().unwrap();
            let told = all.iter().find(|f| f["reason"] == why.name()).unwrap();
            assert_eq!((&told["request"], &told["at"]), (&first.r.id.into(), &lba.0.into()), "{of}");
        }
        let (updates, unwritten) = self.updates();
        let (total, never) = (m.updates.total(), m.updates.unwritten());
        assert_eq!((total, (never.reads, never.blocks)), (updates, unwritten), "{of}");
        let spans = self.stalls();
        let stalled: Vec<_> =
            self.done.iter().filter(|d| d.served.ack.0 - d.came > self.setup.stall.0).collect();
        let took = |d: &&Plans| d.served.ack.0 - d.came;
        let want = (
            stalled.len() as u64,
            stalled.iter().map(|d| d.came).min().unwrap_or(0),
            stalled.iter().map(took).map(u128::from).sum::<u128>(),
            stalled.iter().map(took).max().unwrap_or(0),
            spans.iter().map(|s| s.1 - s.0).sum::<u64>(),
            spans.len() as u64,
        );
        let s = &m.stalls;
        assert_eq!(
            (s.count, s.first.0, s.total_ns, s.max.0, s.waiting_ns, s.episodes()),
            want,
            "{of}: stalls"
        );
        let ends = (
            self.arrivals.first().map(|a| SimTime(a.0)),
            SimTime(self.arrivals.last().map_or(0, |a| a.0)),
            self.done.iter().map(|d| d.served.ack).max().unwrap_or_default(),
        );
        assert_eq!((m.first_arrival, m.last_arrival, m.last_ack), ends, "{of}");
    }

    /// The timeline, window by window.
    fn windows(&self, m: &Metrics, of: &str) {
        let (width, origin) = (m.timeline.width().0, self.origin());
        let at = |t: u64| t.saturating_sub(origin);
        let last = self.worked().map(|w| w.1).chain(self.done.iter().map(|d| d.served.ack.0));
        let last = last.chain(self.arrivals.iter().map(|a| a.0)).chain(self.looks.iter().map(|l| l.0));
        let windows = last.map(at).max().unwrap_or(0) / width;
        match self.setup.window {
            Some(asked) => assert_eq!(width, asked.0),
            None => assert!(
                windows < 2000 && (width == 1_000_000 || 2 * windows + 2 > 2000),
                "{of}: {windows} of {width}"
            ),
        }
        let part = |(from, to): (u64, u64), i: u64| {
            let (from, to) = (at(from).max(i * width), at(to).min((i + 1) * width));
            to.saturating_sub(from)
        };
        let (stalls, mut backlog, mut most) = (self.stalls(), 0, 0);
        let rows: Vec<_> = m.timeline.rows().collect();
        assert!(rows.len() as u64 > windows, "{of}: {} windows, and {windows}", rows.len());
        for (i, (w, waiting)) in (0..).zip(&rows) {
            let inside = |t: u64| at(t) / width == i;
            let of = format!("{of}: window {i} of {width} ns");
            let done: Vec<_> = self.done.iter().filter(|d| inside(d.served.ack.0)).collect();
            let arrivals = self.arrivals.iter().filter(|a| inside(a.0)).count() as u64;
            assert_eq!((w.arrivals, w.completions), (arrivals, done.len() as u64), "{of}");
            backlog = (backlog + arrivals).saturating_sub(done.len() as u64);
            most = most.max(backlog);
            assert_eq!(*waiting, backlog, "{of}");
            let refused = done.iter().filter(|d| matches!(d.outcome, Outcome::Refused { .. })).count();
            assert_eq!((w.refused, w.resets, w.zones), (refused as u64, 0, None), "{of}");
            let moves_data = |d: &&&Plans| matches!(d.r.op, HostOp::Read | HostOp::Write | HostOp::Append);
            let undone =
                done.iter().filter(|d| matches!(d.outcome, Outcome::Refused { .. })).filter(moves_data);
            assert_eq!(w.undone_blocks, undone.map(|d| d.r.blocks.0).sum::<u64>(), "{of}");
            let took = || done.iter().map(|d| d.served.ack.0 - d.came);
            assert_eq!(w.response_ns, took().map(u128::from).sum::<u128>(), "{of}");
            assert_eq!(w.response_max, took().max().unwrap_or(0), "{of}");
            for op in 0..HostOp::KINDS {
                let blocks = done.iter().filter(|d| d.r.op.index() == op).map(|d| d.r.blocks.0);
                assert_eq!(w.host_blocks[op], blocks.sum::<u64>(), "{of}");
            }
            let ops: Vec<_> = self.ops.iter().filter(|o| inside(o.end)).collect();
            for dir in [Dir::Read, Dir::Write] {
                let blocks = ops.iter().filter(|o| o.op.dir == dir).map(|o| o.op.blocks);
                assert_eq!(
                    Blocks(w.media_blocks[dir as usize]),
                    blocks.fold(Blocks(0), |a, b| a + b),
                    "{of}"
                );
            }
            let tracks: Vec<u64> = ops.iter().map(|o| o.tracks.last).collect();
            let mean = tracks.iter().sum::<u64>() as f64 / tracks.len() as f64;
            let want = tracks.iter().min().map(|min| (*min, *tracks.iter().max().unwrap(), mean));
            assert_eq!((w.ops, w.tracks()), (tracks.len() as u64, want), "{of}");
            assert_eq!(w.busy_ns, self.worked().map(|s| part(s, i)).sum::<u64>(), "{of}");
            let cleaned = self.cleanings.iter().map(|c| part((c.1, c.2), i));
            assert_eq!(w.cleaning_ns, cleaned.sum::<u64>(), "{of}");
            assert_eq!(w.stalled_ns, stalls.iter().map(|s| part(*s, i)).sum::<u64>(), "{of}");
            let cached = self.looks.iter().rfind(|l| inside(l.0)).and_then(|l| l.1).map(|f| f.0);
            assert_eq!(w.cached, cached, "{of}");
        }
        assert_eq!(m.timeline.backlog_max(), most, "{of}");
    }

    /// Reads and writes by time and place.
    fn map(&self, m: &Metrics, of: &str) {
        let moves = |a: &&(u64, HostRequest)| matches!(a.1.op, HostOp::Read | HostOp::Write);
        let all: Vec<_> = self.arrivals.iter().filter(moves).map(|a| (a.0 - self.origin(), a.1)).collect();
        let far = all.iter().map(|a| a.1.lba.0).max().unwrap_or(0);
        let shift = (0..).find(|s| far >> s < BINS as u64).unwrap();
        let late = all.iter().map(|a| a.0).max().unwrap_or(0);
        let width = (0..).map(|k| 8_000_000u64 << k).find(|w| late / w < 240).unwrap();
        let mut cells: BTreeMap<(u64, u64), [u32; 2]> = BTreeMap::new();
        for (at, r) in &all {
            cells.entry((at / width, r.lba.0 >> shift)).or_default()[r.op.index()] += 1;
        }
        let edge = |bin: u64| (bin << shift).min(self.setup.host_blocks.0);
        let want = cells
            .into_iter()
            .map(|((i, bin), n)| (i, SimTime(i * width), bin as usize, edge(bin), edge(bin + 1), n));
        assert!(m.heatmap.iter().flat_map(HeatMap::rows).eq(want), "{of}: the heat map");
    }
}
