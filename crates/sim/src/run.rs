//! One run from its specification to its result.

use crate::control::Control;
use crate::engine::{self, Feed, HostObserver};
use crate::error::RunError;
use crate::kept::{self, Kept};
use crate::logs::{MediaLog, RequestLog};
use crate::metrics::band_walk::BandWalk;
use crate::metrics::{Metrics, MetricsSetup};
use crate::prefill::read_first;
use crate::resolve::{Resolved, resolve};
use crate::result::{self, Facts};
use crate::spec::Spec;
use crate::state;
use crate::table::Table;
use crate::verify::Verify;
use crate::watch::Watch;
use serde_json::{Map, Value, json};
use smrlab_blockmap::BlockSet;
use smrlab_disk::{Bands, TrackNo};
use smrlab_drive::{Assembled, Controller};
use smrlab_stl::{TranslationLayer, is_level};
use std::path::Path;

/// The version of the result's schema.
pub const SCHEMA: u32 = 1;

/// What a run found.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The document, as `result.json` has it.
    pub json: Value,
    /// `timeline`, `histogram` and `heatmap`.
    pub tables: Vec<Table>,
}

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
    let requests = if run.spec.requests { Some(RequestLog::create(directory("requests")?)?) } else { None };
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
    let mut metrics = Metrics::new(&MetricsSetup {
        host_blocks: run.host,
        adjusted: run.adjusted,
        window: run.window,
        stall: run.stall,
    });
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
        let before = counters(self.controller.drive().layer());
        let backlog = engine::run(&mut self.controller, feed, self.arrivals, &mut observer, control)?;
        let (mut metrics, verify) = finish(observer)?;
        if let Some(path) = &self.spec.save_state {
            let written = metrics.updates.written();
            state::save(Path::new(path), &self.spec, self.controller.drive_mut(), written)?;
        }
        let layer = self.controller.drive().layer();
        let counters = counted_since(counters(layer), &before);
        let facts = Facts {
            arrivals: self.arrivals,
            backlog,
            host_blocks: self.host,
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

pub(crate) type Counted = Vec<(&'static str, u64)>;

fn counters(layer: &dyn TranslationLayer) -> Counted {
    let mut all = Vec::new();
    layer.counters(&mut |name, n| all.push((name, n)));
    all
}

/// What was counted since `before`: the prefill is no part of the run. Levels stay as they are.
pub(crate) fn counted_since(now: Counted, before: &Counted) -> Counted {
    let earlier = |name: &str| before.iter().find(|b| b.0 == name && !is_level(name)).map_or(0, |b| b.1);
    now.into_iter().map(|(name, n)| (name, n.saturating_sub(earlier(name)))).collect()
}

/// What every result begins with.
pub(crate) fn document(spec: &Spec, feed: &Feed) -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("schema".into(), json!(SCHEMA));
    json.insert("spec".into(), serde_json::to_value(spec).unwrap_or(Value::Null));
    json.insert("provenance".into(), provenance(spec, feed));
    json
}

fn provenance(spec: &Spec, feed: &Feed) -> Value {
    let mut p = Map::new();
    p.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    if let Some(git) = option_env!("SMRLAB_GIT") {
        p.insert("git".into(), json!(git));
    }
    p.insert("trace_digest".into(), json!(format!("{:016x}", feed.digest())));
    p.insert("seed".into(), json!(spec.seed));
    if feed.skipped() > 0 {
        p.insert("skipped_bad".into(), json!(feed.skipped()));
    }
    p.into()
}

/// The bands of a shingled medium: the layer's, or the drive's default.
pub(crate) fn layer_bands(drive: &Assembled) -> Option<Bands> {
    let own = || drive.built.layer.facts().bands.cloned();
    (!drive.built.entry.conventional).then(|| own().or_else(|| drive.built.drive.bands(None).ok())).flatten()
}

/// Space gain and efficiency of a host's space of `own` blocks a drive: those among the drive's blocks that are not set
/// aside for random access, and that times the head width.
pub(crate) fn efficiency(assembled: &Assembled, own: f64) -> (f64, f64) {
    let (drive, geometry) = (&assembled.built.drive, assembled.built.drive.geometry());
    let unit = geometry.strokes().next().map_or(1, |s| s.unit);
    let aside = if assembled.built.entry.conventional { 0 } else { drive.spec().bands.random_access * unit };
    let aside = geometry.track_start(TrackNo(aside.min(geometry.tracks()))).0;
    let efficiency = own / drive.counted_blocks().0.saturating_sub(aside).max(1) as f64;
    (efficiency * drive.head_width() as f64, efficiency)
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
