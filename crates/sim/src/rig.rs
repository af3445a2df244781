//! What runs: a volume with what watches it, and what the result says of it. One drive, or an array of drives.

use crate::control::Control;
use crate::engine::{self, Arrivals, Feed};
use crate::error::Result;
use crate::logs::Logs;
use crate::metrics::Metrics;
use crate::prefill::Prefill;
use crate::result::{Facts, summary, tables, timelines};
use crate::table::Table;
use crate::watch::Watch;
use serde_json::{Map, Value, json};
use smrlab_array::{ArrayState, Counts, EventLoop, Member, MemberId, Volume};
use smrlab_blockmap::BlockSet;
use smrlab_drive::buffer::Counters;
use smrlab_drive::{Drive, SavedState, ScheduledDrive};
use smrlab_stl::{Cause, Counted, HostRequest, Plan, counted};
use smrlab_units::{Blocks, Dir};
use std::ops::Add;

/// What was found, beside the document's head.
pub(crate) struct Found {
    /// The tables of the result.
    pub tables: Vec<Table>,
    /// The keys of the result.
    pub keys: Map<String, Value>,
    /// Bytes that verification took, where blocks were followed.
    pub verified: Option<usize>,
}

/// What a drive and an array each do in a way of their own around a run.
pub(crate) trait Runs<const EXTRAS: bool>: Volume<Watch<EXTRAS>> {
    /// The array, where it is one.
    fn array(&self) -> Option<&EventLoop>;

    /// Its drives; `None` in the place of what is no drive.
    fn drives(&self) -> impl Iterator<Item = Option<&Drive>>;

    /// Brings fresh drives to a state.
    ///
    /// # Errors
    /// Those of `watch`.
    fn give(&mut self, state: &ArrayState, watch: &mut Watch<EXTRAS>) -> Result<()>;

    /// Writes a part of each of the host's spaces before the run; `reads`: what the trace reads first of each, where that is to be written.
    ///
    /// # Errors
    /// A cancelled run.
    fn prefill(
        &mut self,
        prefill: &Prefill,
        watch: &mut Watch<EXTRAS>,
        reads: &[BlockSet],
        control: &Control,
    ) -> Result<()>;

    /// The state at rest but for what was written; `None`: it is known to have more than `most` records.
    fn take(&mut self, array: SavedState, drive: &SavedState, most: usize) -> Option<ArrayState>;
}

impl<const EXTRAS: bool> Runs<EXTRAS> for ScheduledDrive {
    fn array(&self) -> Option<&EventLoop> {
        None
    }

    fn drives(&self) -> impl Iterator<Item = Option<&Drive>> {
        std::iter::once(Some(self.drive()))
    }

    fn give(&mut self, state: &ArrayState, _: &mut Watch<EXTRAS>) -> Result<()> {
        let own = state.members.first();
        own.into_iter().for_each(|own| own.give(self.drive_mut(), &mut Plan::new(false, false)));
        Ok(())
    }

    fn prefill(
        &mut self,
        prefill: &Prefill,
        watch: &mut Watch<EXTRAS>,
        reads: &[BlockSet],
        control: &Control,
    ) -> Result<()> {
        prefill.write(self.drive_mut(), watch, &reads[0], control)
    }

    fn take(&mut self, array: SavedState, drive: &SavedState, most: usize) -> Option<ArrayState> {
        self.drive_mut().interrupt();
        let member = SavedState::take_within(self.drive(), drive.clone(), most)?;
        Some(ArrayState { array, members: vec![member] })
    }
}

impl Runs<true> for EventLoop {
    fn array(&self) -> Option<&EventLoop> {
        Some(self)
    }

    fn drives(&self) -> impl Iterator<Item = Option<&Drive>> {
        self.members().map(Member::drive)
    }

    fn give(&mut self, state: &ArrayState, watch: &mut Watch<true>) -> Result<()> {
        state.give(self, watch)
    }

    fn prefill(
        &mut self,
        prefill: &Prefill,
        watch: &mut Watch<true>,
        reads: &[BlockSet],
        control: &Control,
    ) -> Result<()> {
        (0..).zip(reads).try_for_each(|(stream, reads)| {
            prefill.each((reads, None), control, |request| {
                let request = watch.prefills(HostRequest { stream, ..request });
                self.instantly(&request, watch)?;
                watch.host_prefilled(&request, None)
            })
        })
    }

    fn take(&mut self, array: SavedState, drive: &SavedState, _: usize) -> Option<ArrayState> {
        Some(ArrayState::take(self, array, drive))
    }
}

/// See the [module](self).
pub(crate) struct Rig<V, const EXTRAS: bool> {
    volume: V,
    watch: Watch<EXTRAS>,
    /// What an array itself had counted before the run.
    before: Counts,
    /// Where each drive is, in an array of arrays.
    paths: Vec<String>,
}

impl<const EXTRAS: bool, V: Runs<EXTRAS>> Rig<V, EXTRAS> {
    pub(crate) fn new(volume: V, watch: Watch<EXTRAS>, paths: Vec<String>) -> Self {
        Self { volume, watch, before: Counts::default(), paths }
    }

    /// Takes the logs out.
    pub(crate) fn logs(&mut self) -> Logs {
        std::mem::take(&mut self.watch.logs)
    }

    /// Puts the logs in.
    pub(crate) fn log_to(&mut self, logs: Logs) {
        self.watch.logs = logs;
    }

    /// Brings fresh drives to a state; what was written there counts as written before.
    ///
    /// # Errors
    /// Those of the run's observers.
    pub(crate) fn restore(&mut self, state: &ArrayState) -> Result<()> {
        self.volume.give(state, &mut self.watch)?;
        self.watch.total.updates.restored(&state.array.written);
        for (metrics, of) in self.watch.members.iter_mut().zip(&state.members) {
            metrics.updates.restored(&of.written);
        }
        Ok(())
    }

    /// Writes a part of each of the host's spaces before the run; `reads`: what the trace reads first of each, where that is to be written.
    ///
    /// # Errors
    /// A cancelled run.
    pub(crate) fn prefill(&mut self, prefill: &Prefill, reads: &[BlockSet], control: &Control) -> Result<()> {
        self.volume.prefill(prefill, &mut self.watch, reads, control)
    }

    /// Whether no request has come.
    pub(crate) fn sent_nothing(&self) -> bool {
        self.watch.total.first_arrival.is_none()
    }

    /// What comes from here on is the run.
    pub(crate) fn begins(&mut self) {
        self.before = self.volume.array().map(|c| Counts::of(c.array())).unwrap_or_default();
        let drives = self.volume.drives();
        self.watch.before = drives.map(|d| d.map(|d| counted(d.layer())).unwrap_or_default()).collect();
    }

    /// Runs all requests of `feed`; answers the largest number of them in the system, where it was counted exactly.
    ///
    /// # Errors
    /// Those of [`engine::run`](crate::engine::run).
    pub(crate) fn run(
        &mut self,
        feed: &mut Feed,
        arrivals: Arrivals,
        control: &Control,
    ) -> Result<Option<u64>> {
        engine::run(&mut self.volume, feed, arrivals, &mut self.watch, control)
    }

    /// The state at rest, unless it has more than `most` records and ranges; `drive` says who each drive is, and `array`
    /// who they are together.
    pub(crate) fn state(&mut self, array: SavedState, drive: &SavedState, most: usize) -> Option<ArrayState> {
        // Each neighbourhood in a cache is a record: a look at a large checkpoint takes long, too.
        let cached = |d: &Drive| d.layer().facts().cached.is_some_and(|n| n.0 / 8 > most as u64);
        if self.volume.drives().flatten().any(cached) {
            return None;
        }
        let written = self.watch.total.updates.written_within(most)?;
        let mut state = self.volume.take(SavedState { written, ..array }, drive, most)?;
        for (of_member, metrics) in state.members.iter_mut().zip(&mut self.watch.members) {
            of_member.written = metrics.updates.written_within(most)?;
        }
        (size(&state) <= most).then_some(state)
    }

    /// Ends the logs and puts the result together.
    ///
    /// # Errors
    /// A log that cannot be written.
    pub(crate) fn finish(self, run: Ran) -> Result<Found> {
        let Self { volume, watch, before, paths } = self;
        let Watch { mut total, mut members, verify, before: of_drives, .. } = watch.finish()?;
        let idles = total.background.commands > 0;
        let mut facts: Vec<Facts> = (volume.drives().zip(&of_drives))
            .map(|(d, before)| d.map(|d| run.of_drive(d, before, idles)).unwrap_or_default())
            .collect();
        let of_all = match volume.array() {
            None => facts.pop().unwrap_or_default(),
            Some(array) => Facts {
                counters: counted_by_all(&facts),
                buffer: facts.iter().filter_map(|f| f.buffer).reduce(Counters::add),
                map_bytes: array.array().map_bytes() + facts.iter().map(|f| f.map_bytes).sum::<u64>(),
                background: facts.iter().any(|f| f.background),
                work_ns: members.iter().map(Metrics::work_ns).max(),
                ..Facts::default()
            },
        };
        let mut keys = summary(&mut total, &run.of_all(of_all));
        // All have the windows of the one that was busy for longest.
        members.iter().for_each(|m| total.timeline.follow(&m.timeline));
        let mut tables = tables(&total);
        if let Some(array) = volume.array() {
            // Each head is over the bands of its own disk.
            let switches = members.iter().filter_map(|m| m.bands.as_ref()).map(|walk| walk.switches);
            if let Some(n) = switches.reduce(u64::add) {
                keys["movement"]["band_switches"] = json!(n);
            }
            keys.insert("array".into(), array_json(array, &before, &total));
            let mut each: Vec<_> = members.iter_mut().zip(&facts).map(|(m, f)| summary(m, f)).collect();
            for (member, path) in each.iter_mut().zip(paths) {
                member.insert("path".into(), path.into());
            }
            keys.insert("members".into(), each.into());
            members.iter_mut().for_each(|m| m.timeline.follow(&total.timeline));
            tables.push(timelines(&members));
        }
        Ok(Found { tables, keys, verified: verify.map(|v| v.bytes()) })
    }
}

/// What the result says of the run as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    /// When requests were sent.
    pub arrivals: Arrivals,
    /// The most of them that were in the system, where it was counted exactly.
    pub backlog: Option<u64>,
    /// The host's space.
    pub host: Blocks,
    /// Gain and efficiency of the space.
    pub space: (f64, f64),
}

impl Ran {
    /// What the result says of a drive beside its metrics; `before`: what its layer had counted before the run; `idles`: some
    /// drive of the run worked in idle time.
    fn of_drive(&self, drive: &Drive, before: &Counted, idles: bool) -> Facts {
        let layer = drive.layer();
        Facts {
            host_blocks: layer.host_blocks(),
            last_tracks: layer.facts().last_tracks,
            counters: counted(layer).since(before),
            buffer: drive.buffer_counters(),
            map_bytes: layer.map_bytes(),
            background: layer.background_after().is_some() || idles,
            arrivals: self.arrivals,
            ..Facts::default()
        }
    }

    /// What it says of all drives together.
    fn of_all(&self, drives: Facts) -> Facts {
        let (gain, efficiency) = self.space;
        let (gain, efficiency) = (Some(gain), Some(efficiency));
        let (arrivals, backlog, host_blocks) = (self.arrivals, self.backlog, self.host);
        Facts { arrivals, backlog, host_blocks, gain, efficiency, ..drives }
    }
}

/// Records and written ranges of a state, all in all.
fn size(state: &ArrayState) -> usize {
    let parts = std::iter::once(&state.array).chain(&state.members);
    parts.map(|part| part.records.len() + part.written.len()).sum()
}

/// What the layers of all drives counted.
fn counted_by_all(facts: &[Facts]) -> Counted {
    let mut all = Counted::default();
    facts.iter().for_each(|f| all.add(&f.counters));
    all
}

/// What the array itself counted, and what befell its drives.
fn array_json(event_loop: &EventLoop, before: &Counts, total: &Metrics) -> Value {
    let refused = total.refusals.count().unwrap_or(0);
    let mut out =
        Counts::of(event_loop.array()).since(before).told(&|own, members: Vec<Map<String, Value>>| {
            let mut out: Map<String, Value> = own.iter().map(|(name, n)| (name.into(), json!(n))).collect();
            if !members.is_empty() {
                out.insert("members".into(), members.into_iter().map(Value::from).collect());
            }
            out
        });
    if event_loop.deaths() > 0 || refused > 0 {
        out.insert("deaths".into(), json!(event_loop.deaths()));
        out.insert("refused".into(), json!(refused));
        let dead = (0..event_loop.members().count() as u32).filter(|m| event_loop.is_dead(MemberId(*m)));
        out.insert("dead".into(), dead.collect::<Vec<_>>().into());
    }
    let rebuilt = total.of_cause(Cause::Rebuild)[Dir::Write as usize];
    if rebuilt.blocks > 0 {
        out.insert("rebuilt_blocks".into(), json!(rebuilt.blocks));
    }
    out.into()
}
