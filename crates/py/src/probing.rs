//! Drives seen from outside.

use crate::PyControl;
use pyo3::prelude::*;
use smrlab_probe::geometry::{Extraction, Options};
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
fn save(path: &Path, known: &Extraction) -> Result<(), ProbeError> {
    let text = serde_json::to_string_pretty(known).map_err(input)?;
    let part = path.with_extension("part");
    std::fs::write(&part, text + "\n")
        .and_then(|()| std::fs::rename(&part, path))
        .map_err(|e| input(format!("{}: {e}", path.display())))
}

fn extracted(
    target: &str,
    options: Options,
    keep: Option<&Path>,
    control: &Control,
) -> Result<Extraction, ProbeError> {
    let mut opened = smrlab_probe::open::open(target, options.destroy)?;
    let mut known = match keep.filter(|p| p.exists()) {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|e| input(format!("{}: {e}", path.display())))?;
            serde_json::from_str(&text).map_err(|e| input(format!("{}: {e}", path.display())))?
        }
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
#[pyo3(signature = (target, zones_only, destroy, keep, control))]
pub fn geometry_extract(
    py: Python<'_>,
    target: &str,
    zones_only: bool,
    destroy: bool,
    keep: Option<std::path::PathBuf>,
    control: &PyControl,
) -> PyResult<String> {
    let options = Options { zones_only, destroy };
    let done = py.detach(|| extracted(target, options, keep.as_deref(), &control.0));
    let known = done.map_err(|e| raised(py, &e))?;
    serde_json::to_string(&known).map_err(|e| raised(py, &input(e)))
}

/// Finds out what kind of drive the target is. Its data are destroyed.
#[pyfunction]
pub fn identify(py: Python<'_>, target: &str, control: &PyControl) -> PyResult<String> {
    let done = py.detach(|| {
        let mut opened = smrlab_probe::open::open(target, true)?;
        let mut watch = Controlled { control: &control.0, requests: 0 };
        smrlab_probe::identify::identify(&mut *opened, &mut watch)
    });
    let found = done.map_err(|e| raised(py, &e))?;
    serde_json::to_string(&found).map_err(|e| raised(py, &input(e)))
}
