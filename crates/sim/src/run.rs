//! One run from its specification to its result.

use crate::control::Control;
use crate::document::{RunResult, document, efficiency, layer_bands};
use crate::engine::{self, Feed, HostObserver};
use crate::error::RunError;
use crate::kept::{self, Kept};
use crate::logs::{MediaLog, RequestLog};
use crate::metrics::Metrics;
use crate::metrics::band_walk::BandWalk;
use crate::prefill::read_first;
use crate::resolve::{Resolved, resolve};
use crate::result::{self, Facts};
use crate::spec::Spec;
use crate::state;
use crate::verify::Verify;
use crate::watch::Watch;
use serde_json::json;
use smrlab_blockmap::BlockSet;
use smrlab_drive::Controller;
use smrlab_stl::{counted, counted_since};
use std::path::Path;

/// Does a run. `logs`: the directory for `requests.parquet` and `media.parquet`, needed where they are asked for.
///
/// # Errors
/// See [`RunError`]; its [`kind`](RunError::kind) says who has to act.
pub fn run(spec: &Spec, control: &Control, logs: Option<&Path>) -> Result<RunResult, RunError> {
    run_resolved(resolve(spec)?, control, logs)
}

/// Like [`run`], after [`resolve`].
///
/// # Errors
/// See [`RunError`].
pub fn run_resolved(
    mut run: Resolved,
    control: &Control,
    logs: Option<&Path>,
) -> Result<RunResult, RunError> {
    let directory = |field: &str| {
        logs.ok_or_else(|| RunError::field(field, "it needs a directory to write to: give --out DIR"))
    };
    let requests = if run.spec.requests {
        Some(RequestLog::create(directory("requests")?, run.array.is_none())?)
    } else {
        None
    };
    let media = if run.spec.media_log { Some(MediaLog::create(directory("media_log")?)?) } else { None };
    let mut reads = BlockSet::new();
    if run.prefill.as_ref().is_some_and(|p| p.of_reads) {
        if run.spec.trace.iter().any(|t| t == "-" || t.starts_with("-:")) {
            let problem =
                "'read' reads the trace twice, and standard input cannot be: save it to a file first";
            return Err(RunError::field("prefill", problem));
        }
        reads = read_first(&mut Feed::new(run.open_trace()?, run.steps.clone(), run.host)?)?;
    }
    if let Some(array) = run.array.take() {
        return crate::array::run(run, array, (requests, media), &reads, control);
    }
    let mut feed = Feed::new(run.open_trace()?, run.steps.clone(), run.host)?;
    let mut metrics = Metrics::new(&run.measured());
    metrics.bands = layer_bands(&run.drive).map(BandWalk::new);
    let verify = run.spec.verify_media.then(|| {
        let drive = &run.drive.built.drive;
        Verify::new(drive.geometry().clone(), drive.interference(), run.drive.built.capabilities.discards)
    });
    let parts = Parts { reads, ..Parts::new(run)? };
    if requests.is_none() && media.is_none() && verify.is_none() {
        return parts.go(&mut feed, metrics, control, |m| Ok((m, None)));
    }
    let watch = Watch { metrics, requests, media, verify };
    parts.go(&mut feed, watch, control, Watch::finish)
}

/// A drive ready to run, and what the result says of it.
struct Parts {
    spec: Spec,
    controller: Controller,
    arrivals: engine::Arrivals,
    state: Option<smrlab_drive::State>,
    prefill: Option<crate::prefill::Prefill>,
    /// What the trace reads first, where that is prefilled.
    reads: BlockSet,
    host: smrlab_units::Blocks,
    space: (f64, f64),
    /// Everything that the drive is made of.
    model: String,
}

impl Parts {
    fn new(run: Resolved) -> Result<Self, RunError> {
        let own = run.drive.built.layer.host_blocks().0;
        let space = efficiency(&run.drive, own as f64);
        let model = format!("{:?}", run.drive.built.drive.spec());
        let (drive, scheduler) = run.drive.start(run.spec.verify_media, false);
        Ok(Self {
            spec: run.spec,
            controller: Controller::new(drive, &scheduler),
            arrivals: run.arrivals,
            state: run.state,
            prefill: run.prefill,
            reads: BlockSet::new(),
            host: run.host,
            space,
            model,
        })
    }

    fn go<O: HostObserver>(
        mut self,
        feed: &mut Feed,
        mut observer: O,
        control: &Control,
        finish: impl FnOnce(O) -> Result<(Metrics, Option<Verify>), RunError>,
    ) -> Result<RunResult, RunError> {
        if let Some(state) = self.state.take() {
            state::restore(&state, self.controller.drive_mut(), &mut observer);
        }
        if let Some(prefill) = &self.prefill {
            let drive = self.controller.drive_mut();
            let kept = control.keep().and_then(|k| Kept::new(k, &self.spec, prefill, drive, &self.model));
            kept::write(prefill, kept.as_ref(), drive, &mut observer, (&self.reads, control))?;
        }
        // The prefill is no part of the run.
        let before = counted(self.controller.drive().layer());
        let backlog = engine::run(&mut self.controller, feed, self.arrivals, &mut observer, control)?;
        let (mut metrics, verify) = finish(observer)?;
        if let Some(path) = &self.spec.save_state {
            let written = metrics.updates.written();
            state::save(Path::new(path), &self.spec, self.controller.drive_mut(), written)?;
        }
        let layer = self.controller.drive().layer();
        let counters = counted_since(counted(layer), &before);
        let facts = Facts {
            arrivals: self.arrivals,
            backlog,
            host_blocks: self.host,
            last_tracks: layer.facts().last_tracks,
            gain: Some(self.space.0),
            efficiency: Some(self.space.1),
            counters,
            buffer: self.controller.drive().buffer_counters(),
            map_bytes: layer.map_bytes(),
            background: layer.background_after().is_some() || metrics.background.commands > 0,
            work_ns: None,
        };
        let mut json = document(&self.spec, feed);
        json.extend(result::summary(&mut metrics, &facts));
        if let Some(verify) = verify {
            json.insert("verify".into(), json!({"ok": true, "bytes_peak": verify.bytes()}));
        }
        Ok(RunResult { json: json.into(), tables: result::tables(&metrics) })
    }
}

impl Watch {
    fn finish(self) -> Result<(Metrics, Option<Verify>), RunError> {
        if let Some(log) = self.requests {
            log.finish()?;
        }
        if let Some(log) = self.media {
            log.finish()?;
        }
        Ok((self.metrics, self.verify))
    }
}
