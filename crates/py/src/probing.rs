//! Drives seen from outside.

use crate::PyControl;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use smrlab_probe::geometry::{ExtractOptions, Extraction, extract};
use smrlab_probe::identify::{Sittings, identify_further};
use smrlab_probe::{Kind, ProbeError, TimedTarget, Watch, zone_with_room};
use smrlab_scsi::says::Pages;
use smrlab_sim::Control;
use smrlab_trace::{read_drive, replace_file};
use smrlab_units::{Blocks, Lba, Zone, ZoneCondition, ZoneKind};
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

fn save(path: &Path, known: &impl serde::Serialize) -> Result<(), ProbeError> {
    let text = serde_json::to_string_pretty(known).map_err(input)?;
    replace_file(path, text + "\n").map_err(|e| input(format!("{}: {e}", path.display())))
}

/// What an earlier sitting kept.
fn kept<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ProbeError> {
    let named = |e: &dyn std::fmt::Display| {
        input(format!(
            "{}: no measurement to go on with ({e}): remove it, or use another --out",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
    serde_json::from_str(&text).map_err(|e| named(&e))
}

/// What the user named, and how it is opened.
struct Named<'a> {
    target: &'a str,
    destroy: bool,
    keep_cache: bool,
    /// Where what was measured is kept.
    keep: Option<&'a Path>,
}

/// A measurement, and in one sentence what could not be put back of the target.
type Done<T> = (Result<T, ProbeError>, Option<String>);

/// What is kept of a measurement, and gone on with.
trait Known: serde::Serialize + serde::de::DeserializeOwned {
    fn of(blocks: u64) -> Self;
    fn own_cache(&mut self) -> &mut String;
}

impl Known for Extraction {
    fn of(blocks: u64) -> Self {
        Self::new(blocks)
    }
    fn own_cache(&mut self) -> &mut String {
        &mut self.own_cache
    }
}

impl Known for Sittings {
    fn of(blocks: u64) -> Self {
        Self::new(blocks)
    }
    fn own_cache(&mut self) -> &mut String {
        &mut self.found.own_cache
    }
}

/// Goes on with what is kept, or begins; what is measured is kept at every step, and the target put back at the end.
fn measured<K: Known>(
    named: &Named<'_>,
    measure: impl FnOnce(&mut dyn TimedTarget, &mut K, &mut dyn FnMut(&K)) -> Result<(), ProbeError>,
) -> Done<K> {
    let known = named.keep.filter(|path| path.exists()).map(kept).transpose();
    let opened = smrlab_probe::open::open(named.target, named.destroy, named.keep_cache, read_drive);
    let (mut opened, known) = match (opened, known) {
        (Ok(opened), Ok(known)) => (opened, known),
        (Err(e), _) | (_, Err(e)) => return (Err(e), None),
    };
    let mut known = known.unwrap_or_else(|| K::of(opened.blocks().0));
    let mut failed = Ok(());
    let mut keep = |known: &K| {
        if let Some(e) = named.keep.and_then(|path| save(path, known).err()) {
            failed = Err(e);
        }
    };
    let done = measure(&mut *opened, &mut known, &mut keep);
    let left = opened.finish();
    if left.is_some() {
        *known.own_cache() = opened.own_cache();
        if named.keep.is_some_and(Path::exists) {
            keep(&known);
        }
    }
    (done.and(failed).map(|()| known), left)
}

/// Gives Python the text of what was measured, after it was told what could not be put back.
fn handed<T: serde::Serialize>(
    py: Python<'_>,
    done: Done<T>,
    say: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    if let (Some(left), Some(say)) = (done.1, say) {
        say.call1((left,))?;
    }
    let known = done.0.map_err(|e| raised(py, &e))?;
    serde_json::to_string(&known).map_err(|e| raised(py, &input(e)))
}

/// Measures a target's geometry; what was measured is kept in the file `keep` at every step, and gone on with from there.
/// `say` is called with what could not be put back of the target, also where measuring fails.
#[pyfunction]
#[pyo3(signature = (target, zones_only, destroy, keep_cache, keep, control, say=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn geometry_extract(
    py: Python<'_>,
    target: &str,
    zones_only: bool,
    destroy: bool,
    keep_cache: bool,
    keep: Option<std::path::PathBuf>,
    control: &PyControl,
    say: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = ExtractOptions { zones_only, destroy };
    let named = Named { target, destroy, keep_cache, keep: keep.as_deref() };
    let control = &control.0;
    let done = py.detach(|| {
        measured(&named, |opened, known, keep| {
            extract(opened, &mut Controlled { control, requests: 0 }, options, known, keep)
        })
    });
    handed(py, done, say)
}

/// What a served device says of its zones.
#[derive(serde::Deserialize)]
struct Report {
    model: String,
    zones: Vec<Listed>,
}

/// One of them, in blocks of 512 bytes.
#[derive(serde::Deserialize)]
struct Listed {
    start: u64,
    blocks: u64,
    conventional: bool,
    pointer: Option<u64>,
}

/// A zone of such a report that can be written behind its write pointer.
fn reported(text: &str) -> Result<Option<Zone>, ProbeError> {
    let report: Report = serde_json::from_str(text).map_err(input)?;
    let preferred = report.model == "host-aware";
    let kind = |z: &Listed| match (z.conventional, preferred) {
        (true, _) => ZoneKind::Conventional,
        (false, true) => ZoneKind::SequentialPreferred,
        (false, false) => ZoneKind::SequentialRequired,
    };
    let zone = |z: Listed| Zone {
        start: Lba(z.start),
        blocks: Blocks(z.blocks),
        kind: kind(&z),
        condition: if z.pointer == Some(z.start) { ZoneCondition::Empty } else { ZoneCondition::Closed },
        pointer: z.pointer.map(Lba),
        non_sequential: false,
    };
    Ok(zone_with_room(report.zones.into_iter().map(zone)))
}

/// Finds out what kind of drive the target is; what was found out is kept in the file `keep` after every stage and when it is
/// stopped, and gone on with from there. Its data are destroyed. `say` as in `geometry_extract`; `zones`: what a served device says of its
/// zones, as JSON.
#[pyfunction]
#[pyo3(signature = (target, keep_cache, keep, control, say=None, zones=None))]
pub(crate) fn identify(
    py: Python<'_>,
    target: &str,
    keep_cache: bool,
    keep: Option<std::path::PathBuf>,
    control: &PyControl,
    say: Option<&Bound<'_, PyAny>>,
    zones: Option<&str>,
) -> PyResult<String> {
    let zone = zones.map(reported).transpose().map_err(|e| raised(py, &e))?.flatten();
    let named = Named { target, destroy: true, keep_cache, keep: keep.as_deref() };
    let control = &control.0;
    let (done, left) = py.detach(|| {
        measured(&named, |opened, known: &mut Sittings, keep| {
            zone.into_iter().for_each(|zone| opened.reports(zone));
            identify_further(opened, &mut Controlled { control, requests: 0 }, known, keep)
        })
    });
    handed(py, (done.map(|known| known.found), left), say)
}

/// The pages in which a block device says what it is, as bytes; none where it takes no commands for that.
#[pyfunction]
pub(crate) fn device_pages(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let found = py.detach(|| smrlab_probe::open::pages(&path))?;
    let pages = PyDict::new(py);
    for (name, data) in found {
        pages.set_item(name, PyBytes::new(py, &data))?;
    }
    Ok(pages)
}

/// What such pages say.
#[pyfunction]
pub(crate) fn device_says(py: Python<'_>, pages: Pages) -> PyResult<String> {
    serde_json::to_string(&smrlab_scsi::says::read(&pages)).map_err(|e| raised(py, &input(e)))
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
    let runs = |runs: &[fit::EqualTracks]| runs.iter().map(|r| (r.tracks, r.sectors)).collect::<Vec<_>>();
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
pub(crate) fn geometry_fit(py: Python<'_>, text: &str, options: &str) -> PyResult<String> {
    let done = py.detach(|| fitted(text, options));
    done.map(|v| v.to_string()).map_err(|e| raised(py, &e))
}

/// A drive's geometry in the form of an extraction.
#[pyfunction]
pub(crate) fn geometry_of(py: Python<'_>, drive: &str) -> PyResult<String> {
    let done = py.detach(|| {
        let model = smrlab_disk::model::load(drive, read_drive).map_err(input)?;
        serde_json::to_string(&smrlab_probe::fit::of_drive(&model)?).map_err(input)
    });
    done.map_err(|e| raised(py, &e))
}
