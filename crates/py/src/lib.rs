//! The Python module `smrlab._core`: glue without logic.
//!
//! Specifications and documents cross as JSON text, tables as Parquet; every call releases the GIL.

mod errors;
mod layer;
mod probing;
mod stores;
mod traces;

use errors::or_raise;
use layer::PyLayerClass;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use smrlab_sim::error::RunError;
use smrlab_sim::resolve::Resolved;
use smrlab_sim::{Control, Keep, RunResult, Spec};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sparse maps grow in many small steps; measured 1.15 to 1.2 times as fast as with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Does both at the same time.
fn together(one: &mut (dyn FnMut() + Send), other: &mut (dyn FnMut() + Send)) {
    std::thread::scope(|scope| {
        scope.spawn(other);
        one();
    });
}

/// Cancel flag and progress of a run.
#[pyclass(name = "Control", frozen, module = "smrlab._core")]
struct PyControl(Arc<Control>);

#[pymethods]
impl PyControl {
    /// `keep`: a folder in which prefills are kept, the bytes that they may take, and which program this is.
    #[new]
    #[pyo3(signature = (keep=None))]
    fn new(keep: Option<(PathBuf, u64, String)>) -> Self {
        let keep = keep.map(|(folder, bytes, program)| Keep { folder, bytes, program });
        Self(Arc::new(Control::keeping(keep).doing(together)))
    }

    fn cancel(&self) {
        self.0.cancel();
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn requests(&self) -> u64 {
        self.0.requests()
    }

    fn share(&self) -> f64 {
        self.0.share()
    }

    fn prefills(&self) -> bool {
        self.0.prefills()
    }
}

type Tables = Vec<(&'static str, Vec<u8>)>;

fn resolve(spec: &str, class: Option<&PyLayerClass>) -> Result<Resolved, RunError> {
    resolved_with(&Spec::from_json(spec)?, class)
}

/// The run of a specification, with the layer of `class` where that is given.
fn resolved_with(spec: &Spec, class: Option<&PyLayerClass>) -> Result<Resolved, RunError> {
    match class {
        None => smrlab_sim::resolve(spec),
        Some(class) => smrlab_sim::resolve_with(spec, &|name, context| class.build(name, context)),
    }
}

fn run_to_bytes(run: Resolved, control: &Control, logs: Option<&Path>) -> Result<(String, Tables), RunError> {
    let RunResult { json, tables } = smrlab_sim::run_resolved(run, control, logs)?;
    let mut out = Vec::new();
    for table in tables {
        let mut bytes = Vec::new();
        table.write(&mut bytes).map_err(|e| RunError::Io {
            what: format!("table {}", table.name),
            source: std::io::Error::other(e),
        })?;
        out.push((table.name, bytes));
    }
    Ok((json.to_string(), out))
}

fn json(spec: &Spec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
}

/// Bound to `smrlab._core`.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::PyControl;

    #[pymodule_export]
    use super::layer::{Medium, PlanHandle};

    #[pymodule_export]
    use super::probing::{device_pages, device_says, geometry_extract, geometry_fit, geometry_of, identify};

    /// URLs are opened by `smrlab.urls`.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let _ = module;
        smrlab_trace::remote::open_with(Box::new(stores::PythonStores));
        Ok(())
    }

    /// The version of the engine.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The fields of a specification file, checked; as JSON with defaults filled in.
    #[pyfunction]
    fn spec_from_toml(py: Python<'_>, text: &str) -> PyResult<String> {
        or_raise(py, Spec::from_toml(text).map(|spec| json(&spec)))
    }

    /// A specification for each layer, all on the smallest host space among them; with the class of those that are the
    /// user's own.
    #[pyfunction]
    fn compared(
        py: Python<'_>,
        spec: &str,
        layers: Vec<(String, Option<Py<PyAny>>)>,
    ) -> PyResult<Vec<String>> {
        let class = |class: Py<PyAny>| PyLayerClass::new(class, Arc::new(Control::new()));
        let (names, classes): (Vec<_>, Vec<_>) = layers.into_iter().map(|(n, c)| (n, c.map(class))).unzip();
        let specs = py.detach(|| {
            let resolve = |i: usize, spec: &Spec| resolved_with(spec, classes[i].as_ref());
            smrlab_sim::compared::compared(&Spec::from_json(spec)?, &names, &resolve)
        });
        if let Some(error) = classes.iter().flatten().find_map(PyLayerClass::raised) {
            return Err(error);
        }
        Ok(or_raise(py, specs)?.iter().map(json).collect())
    }

    /// The specification with every default spelled out; its faults are raised.
    #[pyfunction]
    #[pyo3(signature = (spec, layer=None))]
    fn resolved(py: Python<'_>, spec: &str, layer: Option<Py<PyAny>>) -> PyResult<String> {
        let class = layer.map(|class| PyLayerClass::new(class, Arc::new(Control::new())));
        let done = py.detach(|| resolve(spec, class.as_ref()).map(|run| json(&run.spec)));
        class.and_then(|class| class.raised()).map_or_else(|| or_raise(py, done), Err)
    }

    /// Runs a specification, on the layer that a Python class describes where that is given; its document, and its
    /// tables as Parquet.
    #[pyfunction]
    #[pyo3(signature = (spec, control, folder, layer=None))]
    fn run<'py>(
        py: Python<'py>,
        spec: &str,
        control: &PyControl,
        folder: Option<&str>,
        layer: Option<Py<PyAny>>,
    ) -> PyResult<(String, Bound<'py, PyDict>)> {
        let class = layer.map(|class| PyLayerClass::new(class, control.0.clone()));
        let done = py.detach(|| {
            resolve(spec, class.as_ref()).and_then(|run| run_to_bytes(run, &control.0, folder.map(Path::new)))
        });
        if let Some(error) = class.and_then(|class| class.raised()) {
            return Err(error);
        }
        let (document, tables) = or_raise(py, done)?;
        let out = PyDict::new(py);
        for (name, bytes) in tables {
            out.set_item(name, PyBytes::new(py, &bytes))?;
        }
        Ok((document, out))
    }

    /// Reads, transforms and stores traces; the number of requests.
    #[pyfunction]
    fn trace_write(py: Python<'_>, spec: &str, out: &str, control: &PyControl) -> PyResult<u64> {
        or_raise(py, py.detach(|| traces::write(&Spec::from_json(spec)?, Path::new(out), &control.0)))
    }

    /// The characterisation of traces.
    #[pyfunction]
    fn trace_info(py: Python<'_>, spec: &str, control: &PyControl) -> PyResult<String> {
        or_raise(py, py.detach(|| traces::characterise(&Spec::from_json(spec)?, &control.0)))
    }

    /// The layer of a drive itself, which its file describes; `cmr` of one without.
    #[pyfunction]
    fn own_layer(py: Python<'_>, drive: &str) -> PyResult<&'static str> {
        or_raise(py, smrlab_sim::validate::own_layer(drive))
    }

    /// A measured trace replayed on a drive: the document, and for each request whether it reads, what it took (ns) and what
    /// the model took.
    #[pyfunction]
    fn validate(
        py: Python<'_>,
        drive: &str,
        trace: &str,
        layer: Option<&str>,
        reference: &str,
    ) -> PyResult<(String, Vec<(bool, u64, u64)>)> {
        let done = py.detach(|| {
            let reference = smrlab_sim::validate::Reference::parse(reference)?;
            let layer = layer.map_or_else(|| smrlab_sim::validate::own_layer(drive), Ok)?;
            smrlab_sim::validate::validate(drive, trace, layer, reference)
        });
        let (doc, rows) = or_raise(py, done)?;
        let row = |r: smrlab_sim::validate::Compared| {
            (r.op == smrlab_units::HostOp::Read, r.measured.0, r.simulated.0)
        };
        Ok((doc.to_string(), rows.into_iter().map(row).collect()))
    }

    /// A drive file fitted to the first half of a measured trace, and what was fitted.
    #[pyfunction]
    fn fit(py: Python<'_>, drive: &str, trace: &str, reference: &str) -> PyResult<(String, String)> {
        let done = py.detach(|| {
            let reference = smrlab_sim::validate::Reference::parse(reference)?;
            let measured = smrlab_sim::validate::read_measured(trace, reference)?;
            smrlab_sim::validate::fit(drive, trace, &measured)
        });
        or_raise(py, done).map(|f| (f.toml, f.doc.to_string()))
    }

    /// A drive file made of DiskSim's parameter files, and what it cannot express.
    #[pyfunction]
    fn import_disksim(py: Python<'_>, path: &str) -> PyResult<(String, Vec<String>)> {
        let done = py.detach(|| smrlab_sim::import::disksim(path));
        or_raise(py, done).map(|drive| (drive.toml, drive.left_out))
    }

    /// A drive file after the drive `base`; rates in bytes a second, outermost and innermost.
    #[pyfunction]
    #[pyo3(signature = (base, name, capacity=None, rpm=None, zones=None, rate=None, surfaces=None, tracks=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
    fn drive_like(
        py: Python<'_>,
        base: &str,
        name: String,
        capacity: Option<u64>,
        rpm: Option<u32>,
        zones: Option<u32>,
        rate: Option<(f64, f64)>,
        surfaces: Option<u32>,
        tracks: Option<u32>,
    ) -> PyResult<String> {
        let capacity = capacity.map(|bytes| smrlab_units::Blocks(bytes.div_ceil(512)));
        let wanted = smrlab_disk::model::Like { name, capacity, rpm, zones, rate, surfaces, tracks };
        or_raise(py, smrlab_sim::import::like(base, &wanted))
    }

    /// A drive, a preset or a file: as it is listed, with its zones and bands.
    #[pyfunction]
    fn drive_json(py: Python<'_>, drive: &str) -> PyResult<String> {
        or_raise(py, py.detach(|| smrlab_sim::list::drive_json(drive).map(|v| v.to_string())))
    }

    /// Bytes of a size such as 8GiB, 25MB or 2000blk; shares are refused.
    #[pyfunction]
    fn size_bytes(py: Python<'_>, text: &str) -> PyResult<u64> {
        or_raise(py, smrlab_units::parse_bytes(text).map_err(|e| RunError::Request(e.to_string())))
    }

    /// A count such as 2000, 1e5 or 100k.
    #[pyfunction]
    fn count(py: Python<'_>, text: &str) -> PyResult<u64> {
        or_raise(py, smrlab_units::parse_count(text).map_err(|e| RunError::Request(e.to_string())))
    }

    /// Whose state a file of `--save-state` or `device state` is.
    #[pyfunction]
    fn state_json(py: Python<'_>, path: &str) -> PyResult<String> {
        or_raise(py, py.detach(|| smrlab_sim::state::summary(Path::new(path)).map(|v| v.to_string())))
    }

    /// The array, and the layer where it ends in one, that a stack is short for.
    #[pyfunction]
    fn stack_json(py: Python<'_>, text: &str) -> PyResult<String> {
        or_raise(py, smrlab_sim::resolve::stack_json(text).map(|v| v.to_string()))
    }

    /// The entries of a registry.
    #[pyfunction]
    fn list_json(py: Python<'_>, kind: &str) -> PyResult<String> {
        or_raise(py, smrlab_sim::list_json(kind).map(|v| v.to_string()))
    }

    /// The entry of this name, whatever it is.
    #[pyfunction]
    fn explain_json(py: Python<'_>, name: &str) -> PyResult<String> {
        or_raise(py, smrlab_sim::explain_json(name).map(|v| v.to_string()))
    }
}
