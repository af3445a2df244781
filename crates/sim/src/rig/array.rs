//! An array of drives.

use super::{Found, Ran, Rig, size};
use crate::control::Control;
use crate::engine::{self, Arrivals, Feed};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::prefill::Prefill;
use crate::result::{Facts, summary, tables, timelines};
use crate::watch::ArrayWatch;
use serde_json::{Map, Value, json};
use smrlab_array::{Array, ArrayState, Controller, MemberId};
use smrlab_blockmap::BlockSet;
use smrlab_drive::State;
use smrlab_drive::onboard::Counters;
use smrlab_stl::{Cause, Counted, counted};
use smrlab_units::Dir;
use std::ops::Add;

/// See the [module](self).
pub(crate) struct Several {
    controller: Controller,
    watch: ArrayWatch,
    /// What the array itself had counted before the run.
    before: Counts,
    /// Where each drive is, in an array of arrays.
    paths: Vec<String>,
}

impl Several {
    pub(crate) fn new(controller: Controller, watch: ArrayWatch, paths: Vec<String>) -> Self {
        Self { controller, watch, before: Counts::default(), paths }
    }
}

impl Rig for Several {
    fn restore(&mut self, state: &ArrayState) {
        state.give(&mut self.controller, &mut self.watch);
        self.watch.restored(state);
    }

    fn prefill(&mut self, prefill: &Prefill, reads: &BlockSet, control: &Control) -> Result<(), RunError> {
        prefill.each((reads, None), control, |request| {
            let request = self.watch.prefills(request);
            self.controller.instantly(&request, &mut self.watch);
            self.watch.host_prefilled(&request);
        })
    }

    fn begins(&mut self) {
        self.before = Counts::of(self.controller.array());
        let of_drives = self.controller.members().map(|m| m.drive().map(|d| counted(d.layer())));
        self.watch.before = of_drives.map(Option::unwrap_or_default).collect();
    }

    fn run(
        &mut self,
        feed: &mut Feed,
        arrivals: Arrivals,
        control: &Control,
    ) -> Result<Option<u64>, RunError> {
        engine::run(&mut self.controller, feed, arrivals, &mut self.watch, control)
    }

    fn state(&mut self, array: State, drive: &State, most: usize) -> Option<ArrayState> {
        let written = self.watch.total.updates.written_within(most)?;
        let mut state = ArrayState::take(&mut self.controller, State { written, ..array }, drive);
        for (of_member, metrics) in state.members.iter_mut().zip(&mut self.watch.members) {
            of_member.written = metrics.updates.written_within(most)?;
        }
        (size(&state) <= most).then_some(state)
    }

    fn finish(self, run: Ran) -> Result<Found, RunError> {
        let Self { controller, watch, before, paths } = self;
        let ArrayWatch { mut total, mut members, verify, before: of_drives, .. } = watch.finish()?;
        let idles = members.iter().any(|m| m.background.commands > 0);
        let facts: Vec<Facts> = (controller.members().zip(&of_drives))
            .map(|(m, before)| {
                m.drive().map_or_else(|| Facts::none(run.arrivals), |d| run.of_drive(d, before, idles))
            })
            .collect();
        let of_all = Facts {
            backlog: run.backlog,
            host_blocks: run.host,
            gain: Some(run.space.0),
            efficiency: Some(run.space.1),
            counters: counted_by_all(&facts),
            buffer: facts.iter().filter_map(|f| f.buffer).reduce(Counters::plus),
            map_bytes: controller.array().map_bytes() + facts.iter().map(|f| f.map_bytes).sum::<u64>(),
            background: facts.iter().any(|f| f.background),
            work_ns: members.iter().map(|m| m.busy_ns - m.background.ns).max(),
            ..Facts::none(run.arrivals)
        };
        let mut keys = summary(&mut total, &of_all);
        // Each head is over the bands of its own disk.
        let switches = members.iter().filter_map(|m| m.bands.as_ref()).map(|walk| walk.switches);
        if let Some(n) = switches.reduce(u64::add) {
            keys["movement"]["band_switches"] = json!(n);
        }
        keys.insert("array".into(), array_json(&controller, &before, &total));
        let mut each: Vec<_> = members.iter_mut().zip(&facts).map(|(m, f)| summary(m, f)).collect();
        for (member, path) in each.iter_mut().zip(paths) {
            member.insert("path".into(), path.into());
        }
        keys.insert("members".into(), each.into());
        let mut tables = tables(&total);
        tables.push(timelines(&members));
        Ok(Found { tables, keys, verified: verify.map(|v| v.bytes()) })
    }
}

/// What the layers of all drives counted.
fn counted_by_all(facts: &[Facts]) -> Counted {
    let mut all = Counted::default();
    facts.iter().for_each(|f| all.add(&f.counters));
    all
}

/// What an array has counted, and the arrays that are its members.
#[derive(Clone, Default)]
struct Counts {
    own: Counted,
    members: Vec<Self>,
}

impl Counts {
    fn of(array: &dyn Array) -> Self {
        Self {
            own: smrlab_array::counted(array),
            members: array.members().into_iter().map(Self::of).collect(),
        }
    }

    /// What was counted since.
    fn since(self, before: &Self) -> Map<String, Value> {
        let own = self.own.since(&before.own);
        let mut out: Map<String, Value> = own.iter().map(|(name, n)| (name.into(), json!(n))).collect();
        if !self.members.is_empty() {
            let nothing = Self::default();
            let before = before.members.iter().chain(std::iter::repeat(&nothing));
            out.insert(
                "members".into(),
                self.members.into_iter().zip(before).map(|(m, b)| m.since(b)).collect(),
            );
        }
        out
    }
}

/// What the array itself counted, and what befell its drives.
fn array_json(controller: &Controller, before: &Counts, total: &Metrics) -> Value {
    let refused = total.refused;
    let mut out = Counts::of(controller.array()).since(before);
    if controller.deaths() > 0 || refused > 0 {
        out.insert("deaths".into(), json!(controller.deaths()));
        out.insert("refused".into(), json!(refused));
        let dead = (0..controller.members().count() as u32).filter(|m| controller.is_dead(MemberId(*m)));
        out.insert("dead".into(), dead.collect::<Vec<_>>().into());
    }
    let rebuilt = total.of_cause(Cause::Rebuild)[Dir::Write as usize];
    if rebuilt.blocks > 0 {
        out.insert("rebuilt_blocks".into(), json!(rebuilt.blocks));
    }
    out.into()
}
