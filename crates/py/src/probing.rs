//! Drives seen from outside.

use crate::PyControl;
use pyo3::prelude::*;
use smrlab_probe::geometry::{Extraction, Options};
use smrlab_probe::identify::{Identity, Sittings, identify_further};
use smrlab_probe::{Kind, ProbeError, Watch};
use smrlab_sim::Control;
use std::path::Path;

/// The control of another thread as who watches.
struct Controlled<'a> {
    control: &'a Control,
    requests: u64,
}

impl Watch for Controlled<'_> {
    fn progress(&mut self, stage: &str, share: f64, _: f64) {
        // Each stage its part of the bar; zones take the most requests on real drives.
        let (from, to) = match stage {
            "rotation" => (0.0, 0.1),
            "zones" => (0.1, 0.5),
            "skew and order of surfaces" => (0.5, 0.65),
            "seeks" => (0.65, 0.95),
            "on-board cache" => (0.95, 1.0),
            "writing and looking where it went" => (0.1, 0.2),
            "where the cache is" => (0.2, 0.3),
            "filling the cache" => (0.3, 0.7),
            "bands" => (0.7, 1.0),
            _ => (0.0, 1.0),
        };
        self.requests += 1;
        self.control.progress(self.requests, Some(from + (to - from) * share.clamp(0.0, 1.0)));
    }

    fn stopped(&self) -> bool {
        self.control.cancelled()
    }
}

fn raised(py: Python<'_>, e: &ProbeError) -> PyErr {
    crate::errors::raise(
        py,
        match e.kind() {
            Kind::Input => "InputError",
            Kind::Environment => "MissingError",
            Kind::Interrupted => "Interrupted",
        },
        &e.to_string(),
    )
}

fn input(e: impl ToString) -> ProbeError {
    ProbeError::Input(e.to_string())
}

/// Written next to its place first, so that a stop leaves the old or the new one.
fn save(path: &Path, known: &impl serde::Serialize) -> Result<(), ProbeError> {
    let text = serde_json::to_string_pretty(known).map_err(input)?;
    let part = path.with_extension("part");
    std::fs::write(&part, text + "\n")
        .and_then(|()| std::fs::rename(&part, path))
        .map_err(|e| input(format!("{}: {e}", path.display())))
}

/// What an earlier sitting kept.
fn kept<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ProbeError> {
    let named = |e: &dyn std::fmt::Display| input(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
    serde_json::from_str(&text).map_err(|e| named(&e))
}

fn extracted(
    target: &str,
    options: Options,
    keep_cache: bool,
    keep: Option<&Path>,
    control: &Control,
) -> Result<Extraction, ProbeError> {
    let mut opened = smrlab_probe::open::open(target, options.destroy, keep_cache)?;
    let mut known = match keep.filter(|p| p.exists()) {
        Some(path) => kept(path)?,
        None => Extraction::new(opened.blocks().0),
    };
    let mut failed = None;
    let mut watch = Controlled { control, requests: 0 };
    let done = smrlab_probe::geometry::extract(&mut *opened, &mut watch, options, &mut known, &mut |known| {
        if let Some(Err(e)) = keep.map(|path| save(path, known)) {
            failed = Some(e);
        }
    });
    done.and(failed.map_or(Ok(()), Err))?;
    Ok(known)
}

/// Measures a target's geometry; what was measured is kept in the file `keep` at every step, and gone on with from there.
#[pyfunction]
#[pyo3(signature = (target, zones_only, destroy, keep_cache, keep, control))]
pub fn geometry_extract(
    py: Python<'_>,
    target: &str,
    zones_only: bool,
    destroy: bool,
    keep_cache: bool,
    keep: Option<std::path::PathBuf>,
    control: &PyControl,
) -> PyResult<String> {
    let options = Options { zones_only, destroy };
    let done = py.detach(|| extracted(target, options, keep_cache, keep.as_deref(), &control.0));
    let known = done.map_err(|e| raised(py, &e))?;
    serde_json::to_string(&known).map_err(|e| raised(py, &input(e)))
}

fn identified(
    target: &str,
    keep_cache: bool,
    keep: Option<&Path>,
    control: &Control,
) -> Result<Identity, ProbeError> {
    let mut opened = smrlab_probe::open::open(target, true, keep_cache)?;
    let mut known = match keep.filter(|p| p.exists()) {
        Some(path) => kept(path)?,
        None => Sittings::new(opened.blocks().0),
    };
    let mut failed = None;
    let mut watch = Controlled { control, requests: 0 };
    let done = identify_further(&mut *opened, &mut watch, &mut known, &mut |known| {
        if let Some(Err(e)) = keep.map(|path| save(path, known)) {
            failed = Some(e);
        }
    });
    done.and(failed.map_or(Ok(()), Err))?;
    Ok(known.found)
}

/// Finds out what kind of drive the target is; what was found out is kept in the file `keep` after every stage and when it is
/// stopped, and gone on with from there. Its data are destroyed.
#[pyfunction]
#[pyo3(signature = (target, keep_cache, keep, control))]
pub fn identify(
    py: Python<'_>,
    target: &str,
    keep_cache: bool,
    keep: Option<std::path::PathBuf>,
    control: &PyControl,
) -> PyResult<String> {
    let done = py.detach(|| identified(target, keep_cache, keep.as_deref(), &control.0));
    let found = done.map_err(|e| raised(py, &e))?;
    serde_json::to_string(&found).map_err(|e| raised(py, &input(e)))
}

/// How a text is fitted.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FitOptions {
    name: String,
    polynomial: bool,
    degree: usize,
    zones: u64,
    least: u64,
    most: u64,
    rpm: Option<f64>,
}

/// At most `most` of the values, evenly.
fn thinned<T: Clone>(values: &[T], most: usize) -> Vec<T> {
    let step = values.len().div_ceil(most.max(1)).max(1);
    values.iter().step_by(step).cloned().collect()
}

fn fitted(text: &str, options: &str) -> Result<serde_json::Value, ProbeError> {
    use smrlab_probe::fit;
    let o: FitOptions = serde_json::from_str(options).map_err(input)?;
    if text.trim_start().starts_with('{') {
        let e: Extraction =
            serde_json::from_str(text).map_err(|e| input(format!("not an extraction: {e}")))?;
        let f = fit::from_extraction(&e, &o.name)?;
        let runs: Vec<_> = e.zones.iter().map(|z| (z.tracks, z.usable)).collect();
        return Ok(serde_json::json!({ "toml": f.toml(), "notes": f.notes, "runs": runs }));
    }
    let tracks = fit::dig::parse(text)?;
    let how = fit::Paper { least: o.least, most: o.most, degree: o.degree, zones: o.zones };
    let d = fit::from_dig(&tracks, &o.name, how, o.polynomial, o.rpm)?;
    let runs = |runs: &[fit::Run]| runs.iter().map(|r| (r.tracks, r.sectors)).collect::<Vec<_>>();
    let measured: Vec<_> = tracks.iter().map(|t| (t.number, t.sectors)).collect();
    let times: Vec<_> = tracks.iter().map(|t| (t.number, t.us / 1e3)).collect();
    let curve: Vec<_> =
        thinned(&tracks, 400).iter().map(|t| (t.number, d.paper.0.at(t.number as f64))).collect();
    Ok(serde_json::json!({
        "toml": d.fitted.toml(), "notes": d.fitted.notes, "runs": runs(&d.runs), "paper_runs": runs(&d.paper.1),
        "curve": curve, "measured": thinned(&measured, 4000), "times": times, "period_tracks": d.period_tracks,
    }))
}

/// A drive file of an extraction or of the paper's text form; with what its figures show.
#[pyfunction]
pub fn geometry_fit(py: Python<'_>, text: &str, options: &str) -> PyResult<String> {
    let done = py.detach(|| fitted(text, options));
    done.map(|v| v.to_string()).map_err(|e| raised(py, &e))
}

/// A drive's geometry in the form of an extraction.
#[pyfunction]
pub fn geometry_of(py: Python<'_>, drive: &str) -> PyResult<String> {
    let done = py.detach(|| {
        let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
        let model = smrlab_disk::model::load(drive, read).map_err(input)?;
        serde_json::to_string(&smrlab_probe::fit::of_drive(&model)?).map_err(input)
    });
    done.map_err(|e| raised(py, &e))
}
