//! One run from its specification to its result.

use crate::control::Control;
use crate::document::{RunResult, document, efficiency, layer_bands};
use crate::engine::Feed;
use crate::error::{Result, RunError};
use crate::logs::{Logs, MediaLog, RequestLog};
use crate::metrics::band_walk::BandWalk;
use crate::metrics::{Metrics, MetricsSetup};
use crate::prefill::read_first;
use crate::prefill_cache::{self, Repeated};
use crate::resolve::{ArrayRun, Resolved, resolve};
use crate::rig::{Found, Ran, Rig, Runs};
use crate::spaces::Spaces;
use crate::spec::Spec;
use crate::state;
use crate::verify::{Discards, Disk, HostData, Verify};
use crate::watch::Watch;
use serde_json::json;
use smrlab_array::{BuiltArray, Chosen, EventLoop, Member};
use smrlab_blockmap::BlockSet;
use smrlab_disk::Interference;
use smrlab_drive::{Assembled, SavedState, ScheduledDrive};
use std::path::Path;

/// Does a run. `logs`: the directory for `requests.parquet` and `media.parquet`, needed where they are asked for.
///
/// # Errors
/// See [`RunError`]; its [`kind`](RunError::kind) says who has to act.
pub fn run(spec: &Spec, control: &Control, logs: Option<&Path>) -> Result<RunResult> {
    run_resolved(resolve(spec)?, control, logs)
}

/// Like [`run`], after [`resolve`].
///
/// # Errors
/// See [`RunError`].
pub fn run_resolved(mut run: Resolved, control: &Control, logs: Option<&Path>) -> Result<RunResult> {
    let logs = wanted_logs(&run, logs)?;
    let spaces = run.array.as_ref().map_or(1, |a| a.built.array.spaces());
    let mut reads: Vec<BlockSet> = (0..spaces).map(|_| BlockSet::new()).collect();
    if run.prefill.as_ref().is_some_and(|p| p.of_reads()) {
        if run.spec.trace.iter().any(|t| t == "-" || t.starts_with("-:")) {
            let problem =
                "'read' reads the trace twice, and standard input cannot be: save it to a file first";
            return Err(RunError::field("prefill", problem));
        }
        let mut feed = Feed::new(run.open_trace(control)?, run.steps.clone(), run.host)?;
        read_first(&mut feed, &mut reads)?;
    }
    let mut feed = Feed::new(run.open_trace(control)?, run.steps.clone(), run.host)?;
    if let Some(array) = run.array.take() {
        let again =
            |mut run: Resolved| Some(run.array.take()?).map(|array| several(run, array, Logs::default()));
        return several(run, array, logs).go(again, &mut feed, (&reads, control));
    }
    if logs.is_none() && !run.spec.verify_media {
        let again = |run| Some(one(run, Logs::default()));
        return one::<false>(run, logs).go(again, &mut feed, (&reads, control));
    }
    one::<true>(run, logs).go(|run| Some(one(run, Logs::default())), &mut feed, (&reads, control))
}

fn wanted_logs(run: &Resolved, folder: Option<&Path>) -> Result<Logs> {
    let directory = |field: &str| {
        folder.ok_or_else(|| RunError::field(field, "it needs a directory to write to: give --out DIR"))
    };
    let mut logs = Logs::default();
    if run.spec.requests {
        logs.requests = Some(RequestLog::create(directory("requests")?)?);
    }
    if run.spec.media_log {
        logs.media = Some(MediaLog::create(directory("media_log")?)?);
    }
    Ok(logs)
}

fn verify(drive: &Assembled) -> Verify {
    let (geometry, interference) = (drive.built.drive.geometry().clone(), drive.built.drive.interference());
    let discards = drive.built.capabilities.discards;
    Verify::new(1, Box::new(move |_| Disk::new(geometry.clone(), interference, discards)), None)
}

/// What follows every block of an array on drives like `drive`.
fn verify_array(chosen: &Chosen, ssds: usize, spaces: Spaces, drive: &Assembled) -> Verify {
    let (geometry, interference) = (drive.built.drive.geometry().clone(), drive.built.drive.interference());
    let discards = drive.built.capabilities.discards;
    let conventional: Vec<bool> = (0..chosen.disks).map(|disk| chosen.is_conventional(disk)).collect();
    let fresh = move |disk: usize| match conventional.get(disk) {
        Some(true) => Disk::new(geometry.clone(), Interference::tracks(1), false),
        _ => Disk::new(geometry.clone(), interference, discards),
    };
    let (disks, of_array) = (chosen.disks as usize, chosen.discards(discards));
    let host = HostData::new(disks + ssds, Discards { of_disk: discards, of_array }, spaces);
    Verify::new(disks, Box::new(fresh), Some(host))
}

/// A rig, and what is to be done with it.
struct Parts<V, const EXTRAS: bool> {
    rig: Rig<V, EXTRAS>,
    spec: Spec,
    state: Option<smrlab_array::ArrayState>,
    prefill: Option<crate::prefill::Prefill>,
    /// What the result says of the run as a whole.
    ran: Ran,
    /// What the array's state is the state of; empty for one drive.
    identity: String,
    /// A run that begins with its state is the run that goes on.
    repeats: bool,
    /// Everything that the drive is made of.
    model: String,
}

/// One drive.
fn one<const EXTRAS: bool>(run: Resolved, logs: Logs) -> Parts<ScheduledDrive, EXTRAS> {
    let mut metrics = Metrics::new(&run.measured());
    metrics.bands = layer_bands(&run.drive).map(BandWalk::new);
    let verify = run.spec.verify_media.then(|| verify(&run.drive));
    let watch = Watch::new(metrics, Vec::new(), logs, verify);
    let own = run.drive.built.layer.host_blocks().0;
    let ran = ran(&run, own as f64);
    let model = format!("{:?}", run.drive.built.drive.spec());
    let (drive, scheduler) = run.drive.start(run.spec.verify_media, false);
    let rig = Rig::new(ScheduledDrive::new(drive, &scheduler), watch, Vec::new());
    let Resolved { spec, state, prefill, .. } = run;
    Parts { rig, spec, state, prefill, ran, identity: String::new(), repeats: true, model }
}

/// An array.
fn several(run: Resolved, array: ArrayRun, logs: Logs) -> Parts<EventLoop, true> {
    let (identity, repeats) = (array.identity(), array.repeats());
    let ArrayRun { chosen, built: BuiltArray { array, ssds }, others } = array;
    let disks = chosen.disks as usize;
    let paths = if chosen.is_nested() {
        (0..chosen.disks).map(|disk| chosen.path(disk)).collect()
    } else {
        Vec::new()
    };
    let spaces = Spaces::several(array.spaces(), run.host);
    let setup = MetricsSetup { spaces, drives: disks, ..run.measured() };
    let bands = layer_bands(&run.drive);
    let own = run.drive.built.layer.host_blocks();
    let of_member =
        MetricsSetup { host_blocks: own, spaces: Spaces::one(own), foretold: false, heatmap: false, ..setup };
    let metrics = |_| {
        let mut m = Metrics::new(&of_member);
        m.bands = bands.clone().map(BandWalk::new);
        m
    };
    let data = run.spec.verify_media;
    let verify = data.then(|| verify_array(&chosen, ssds.len(), spaces, &run.drive));
    let watch = Watch::new(Metrics::new(&setup), (0..disks).map(metrics).collect(), logs, verify);
    let ran = ran(&run, array.host_blocks().0 as f64 * f64::from(array.spaces()) / disks as f64);
    let model = format!("{:?}", run.drive.built.drive.spec());
    let member = |drive: Assembled| {
        let (drive, chosen) = drive.start(data, false);
        Member::of_drive(drive, &chosen)
    };
    let mut members: Vec<Member> = std::iter::once(run.drive).chain(others).map(member).collect();
    let spares = members.split_off(disks);
    members.extend(ssds.into_iter().map(Member::Ssd));
    let event_loop = EventLoop::new(array, members, spares, chosen.schedule, data);
    let rig = Rig::new(event_loop, watch, paths);
    Parts { rig, spec: run.spec, state: run.state, prefill: run.prefill, ran, identity, repeats, model }
}

/// Of a trace that has requests, none were sent.
fn nothing_sent(spec: &Spec) -> RunError {
    let given =
        [("from", spec.from.is_some()), ("until", spec.until.is_some()), ("filter", spec.filter.is_some())];
    let given: Vec<_> = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
    let text = match given[..] {
        [] => "the trace has no request".to_owned(),
        _ => format!("no request of the trace is left: {} leaves all of them out", given.join(" with ")),
    };
    RunError::Request(text)
}

/// `own`: the blocks of the host's space that one drive has.
fn ran(run: &Resolved, own: f64) -> Ran {
    Ran { arrivals: run.arrivals, backlog: None, host: run.host, space: efficiency(&run.drive, own) }
}

impl<const EXTRAS: bool, V: Runs<EXTRAS>> Parts<V, EXTRAS> {
    /// `again`: the same from the specification resolved once more.
    fn go(
        self,
        again: impl FnOnce(Resolved) -> Option<Self>,
        feed: &mut Feed,
        (reads, control): (&[BlockSet], &Control),
    ) -> Result<RunResult> {
        let Self { mut rig, spec, state, prefill, mut ran, identity, repeats, model } = self;
        if let Some(state) = state {
            rig.restore(&state)?;
        }
        if let Some(prefill) = &prefill {
            let keep = control.keep();
            let repeated = repeats.then(|| Repeated::new(keep, &spec, prefill, ran.host, &model)).flatten();
            let fresh = |spec: &Spec| Ok(again(resolve(spec)?).map(|parts| parts.rig));
            rig = prefill_cache::write(prefill, repeated.as_ref(), rig, fresh, (reads, control))?;
        }
        // The prefill is no part of the run.
        rig.begins();
        ran.backlog = rig.run(feed, ran.arrivals, control)?;
        if rig.sent_nothing() {
            return Err(nothing_sent(&spec));
        }
        if let Some(path) = &spec.save_state {
            let array = SavedState { layer: identity, ..SavedState::default() };
            if let Some(state) = rig.state(array, &state::of_drive(&spec), usize::MAX) {
                state::save(Path::new(path), state)?;
            }
        }
        let Found { tables, keys, verified } = rig.finish(ran)?;
        let mut json = document(&spec, feed);
        json.extend(keys);
        if let Some(bytes) = verified {
            json.insert("verify".into(), json!({"ok": true, "bytes_peak": bytes}));
        }
        Ok(RunResult { json: json.into(), tables })
    }
}
