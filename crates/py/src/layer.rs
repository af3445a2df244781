//! A translation layer that is written in Python, in the same engine as all others.
//!
//! The engine calls it like any layer; each call takes the interpreter's lock, hands the Python object a [`PlanHandle`]
//! to fill, and copies what it holds into the engine's plan. An exception ends the run and is raised where the run was
//! started.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smrlab_disk::BandId;
use smrlab_sim::Control;
use smrlab_stl::{
    BuildContext, Built, Capabilities, Cause, Endpoint, HostRequest, LayerEntry, OpId, Piece, Plan, Refusal,
    TranslationLayer,
};
use smrlab_units::spec::SpecError;
use smrlab_units::{Blocks, Dir, HostOp, Pba, SimTime, counted};
use std::sync::{Arc, Mutex};

/// The medium that a layer is built on.
#[pyclass(frozen, name = "Medium")]
pub struct Medium {
    context: BuildContext,
}

#[pymethods]
impl Medium {
    /// Blocks on the medium: PBAs are below this.
    #[getter]
    fn blocks(&self) -> u64 {
        self.context.drive.geometry().blocks().0
    }

    /// Tracks that one track write touches, itself included.
    #[getter]
    fn head_width(&self) -> u64 {
        self.context.drive.head_width()
    }

    /// First PBA and blocks of every band, with bands of `tracks` tracks or the drive's default.
    #[pyo3(signature = (tracks=None))]
    fn bands(&self, tracks: Option<u64>) -> PyResult<Vec<(u64, u64)>> {
        let bands = self.context.drive.bands(tracks).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok((0..bands.len()).map(|i| bands.band(BandId(i))).map(|b| (b.first.0, b.blocks.0)).collect())
    }
}

/// What a Python layer plans, in order.
enum Step {
    Read { pba: u64, blocks: u64, at: u64 },
    Write { pba: u64, blocks: u64, at: u64 },
    Stage { cause: Cause, pba: u64, blocks: u64 },
    WriteStaged { cause: Cause, pba: u64, blocks: u64, offset: u64 },
    Zero { blocks: u64, at: u64 },
    Cleaned { kind: &'static str, relocated: u64 },
}

/// The plan as a Python layer sees it.
#[pyclass(name = "Plan")]
#[derive(Default)]
pub struct PlanHandle {
    steps: Vec<Step>,
    staged: u64,
    medium: u64,
    /// Blocks of the request.
    request: u64,
}

impl PlanHandle {
    fn of_request(&self, blocks: u64, at: u64) -> PyResult<()> {
        if at.checked_add(blocks).is_some_and(|end| end <= self.request) {
            return Ok(());
        }
        let request = self.request;
        Err(PyValueError::new_err(format!("{} at {at}: the request has {request}", counted(blocks, "block"))))
    }

    fn check(&self, pba: u64, blocks: u64) -> PyResult<()> {
        if blocks > 0 && pba.checked_add(blocks).is_some_and(|end| end <= self.medium) {
            return Ok(());
        }
        let medium = self.medium;
        Err(PyValueError::new_err(format!(
            "{} at PBA {pba}: not on the medium of {medium} blocks",
            counted(blocks, "block")
        )))
    }
}

fn cause(name: &str) -> PyResult<Cause> {
    Cause::named(name).ok_or_else(|| {
        let known = Cause::NAMES.join(", ");
        PyValueError::new_err(format!("unknown cause '{name}'; one of {known}"))
    })
}

#[pymethods]
impl PlanHandle {
    /// Reads `blocks` at `pba` for the host, into its buffer at block `at`.
    #[pyo3(signature = (pba, blocks, at=0))]
    fn read(&mut self, pba: u64, blocks: u64, at: u64) -> PyResult<()> {
        self.check(pba, blocks)?;
        self.of_request(blocks, at)?;
        self.steps.push(Step::Read { pba, blocks, at });
        Ok(())
    }

    /// Writes `blocks` of the host's data, from block `at` of its buffer, to `pba`.
    #[pyo3(signature = (pba, blocks, at=0))]
    fn write(&mut self, pba: u64, blocks: u64, at: u64) -> PyResult<()> {
        self.check(pba, blocks)?;
        self.of_request(blocks, at)?;
        self.steps.push(Step::Write { pba, blocks, at });
        Ok(())
    }

    /// Reads for the host from several extents `(pba, blocks, at)`.
    fn read_all(&mut self, extents: Vec<(u64, u64, u64)>) -> PyResult<()> {
        extents.into_iter().try_for_each(|(pba, blocks, at)| self.read(pba, blocks, at))
    }

    /// Reads `blocks` at `pba` into the plan's staging memory; answers with their offset there.
    #[pyo3(signature = (pba, blocks, cause="clean"))]
    fn stage(&mut self, pba: u64, blocks: u64, cause: &str) -> PyResult<u64> {
        self.check(pba, blocks)?;
        self.steps.push(Step::Stage { cause: self::cause(cause)?, pba, blocks });
        self.staged += blocks;
        Ok(self.staged - blocks)
    }

    /// Stages several extents `(pba, blocks)`, one behind the other; answers with the offset of the first.
    #[pyo3(signature = (extents, cause="clean"))]
    fn stage_all(&mut self, extents: Vec<(u64, u64)>, cause: &str) -> PyResult<u64> {
        let first = self.staged;
        extents.into_iter().try_for_each(|(pba, blocks)| self.stage(pba, blocks, cause).map(|_| ()))?;
        Ok(first)
    }

    /// Writes `blocks` of the staging memory, from `offset` on, to `pba`.
    #[pyo3(signature = (pba, blocks, offset, cause="clean"))]
    fn write_staged(&mut self, pba: u64, blocks: u64, offset: u64, cause: &str) -> PyResult<()> {
        self.check(pba, blocks)?;
        if offset.checked_add(blocks).is_none_or(|end| end > self.staged) {
            let staged = self.staged;
            return Err(PyValueError::new_err(format!(
                "{} at {offset}: only {staged} were staged",
                counted(blocks, "block")
            )));
        }
        self.steps.push(Step::WriteStaged { cause: self::cause(cause)?, pba, blocks, offset });
        Ok(())
    }

    /// The host reads zeroes for `blocks` at block `at` of its buffer.
    #[pyo3(signature = (blocks, at=0))]
    fn zero(&mut self, blocks: u64, at: u64) -> PyResult<()> {
        self.of_request(blocks, at)?;
        self.steps.push(Step::Zero { blocks, at });
        Ok(())
    }

    /// What was staged and written since the last such call, or since the start, was one cleaning event that moved
    /// `relocated` live blocks.
    fn cleaned(&mut self, relocated: u64) -> PyResult<()> {
        self.check(0, relocated.max(1))?;
        self.steps.push(Step::Cleaned { kind: "compaction", relocated });
        Ok(())
    }
}

/// Copies the steps into the engine's plan.
fn fill(plan: &mut Plan, steps: &[Step]) {
    let mut staged: Vec<(u64, OpId, u64)> = Vec::new();
    let mut offset_end = 0;
    let mut cleaning_from = None;
    for step in steps {
        match *step {
            Step::Read { pba, blocks, at } => {
                plan.read_to_host(Cause::Host, Pba(pba), Blocks(blocks), Blocks(at));
            }
            Step::Write { pba, blocks, at } => {
                plan.write(Cause::Host, Pba(pba), Blocks(blocks), Endpoint::Host(Blocks(at)));
            }
            Step::Stage { cause, pba, blocks } => {
                cleaning_from.get_or_insert(plan.ops().len());
                staged.push((offset_end, plan.read_staged(cause, Pba(pba), Blocks(blocks)), blocks));
                offset_end += blocks;
            }
            Step::WriteStaged { cause, pba, blocks, offset } => {
                plan.write_pieces(cause, Pba(pba), Blocks(blocks), |out| {
                    pieces(&staged, offset, blocks, out)
                });
            }
            Step::Zero { blocks, at } => plan.zero_to_host(Blocks(at), Blocks(blocks)),
            Step::Cleaned { kind, relocated } => {
                plan.cleaned(kind, cleaning_from.take().unwrap_or(plan.ops().len()), Blocks(relocated));
            }
        }
    }
}

/// The parts of `blocks` staged blocks from `offset` on, by the reads that brought them.
fn pieces(staged: &[(u64, OpId, u64)], mut offset: u64, mut blocks: u64, out: &mut Vec<Piece>) {
    let mut at = staged.partition_point(|(first, _, n)| first + n <= offset);
    while blocks > 0 {
        let (first, op, n) = staged[at];
        let part = (first + n - offset).min(blocks);
        out.push(Piece { blocks: Blocks(part), end: Endpoint::Staged(op, Blocks(offset - first)) });
        (offset, blocks, at) = (offset + part, blocks - part, at + 1);
    }
}

/// How results name a layer of one's own; what it promises is not known beyond what its class declares.
static ENTRY: LayerEntry = LayerEntry {
    name: "python",
    summary: "A layer that is written in Python",
    reference: "the user's own",
    page: "A class that extends smrlab.TranslationLayer.",
    idle: "what the class says",
    capabilities: Capabilities {
        keeps_data: true,
        survives_cut: false,
        locates: false,
        stable_location: false,
        discards: false,
    },
    ..LayerEntry::new(|_, values| {
        Err(values.bad("layer", "a layer in Python is given as a class, not by name"))
    })
};

/// A class that describes a layer, and the first exception that it or its object raised.
pub(crate) struct PyLayerClass {
    class: Py<PyAny>,
    control: Arc<Control>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl PyLayerClass {
    /// For a run that `control` can stop.
    pub(crate) fn new(class: Py<PyAny>, control: Arc<Control>) -> Self {
        Self { class, control, raised: Arc::default() }
    }

    /// The exception that ended the run, where one did.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.raised.lock().ok()?.take()
    }

    /// Builds `class(medium)`.
    pub(crate) fn build(&self, name: &str, context: &BuildContext) -> Result<Built, SpecError> {
        let (layer, locates) = Python::attach(|py| self.instance(py, context)).map_err(|error| {
            let message = SpecError::Other(error.to_string());
            keep(&self.raised, error);
            message
        })?;
        Ok(Built {
            resolved: name.to_owned(),
            entry: &ENTRY,
            capabilities: Capabilities { locates, ..ENTRY.capabilities },
            drive: context.drive.clone(),
            layer: Box::new(layer),
        })
    }

    fn instance(&self, py: Python<'_>, context: &BuildContext) -> PyResult<(PyLayer, bool)> {
        let medium = context.drive.geometry().blocks().0;
        let object = self.class.bind(py).call1((Medium { context: context.clone() },))?;
        let host_blocks: u64 = object.call_method0("host_blocks")?.extract()?;
        // No layer gives the host more than the drive counts.
        let host_blocks = host_blocks.min(context.drive.counted_blocks().0);
        let locates = object.getattr("locates")?.extract()?;
        let plan = Py::new(py, PlanHandle { medium, ..PlanHandle::default() })?;
        let (raised, control) = (self.raised.clone(), self.control.clone());
        Ok((PyLayer { object: object.unbind(), plan, host_blocks, locates, raised, control }, locates))
    }
}

fn keep(raised: &Mutex<Option<PyErr>>, error: PyErr) {
    if let Ok(mut slot) = raised.lock() {
        slot.get_or_insert(error);
    }
}

/// The engine's side of a Python layer.
struct PyLayer {
    object: Py<PyAny>,
    plan: Py<PlanHandle>,
    host_blocks: u64,
    locates: bool,
    raised: Arc<Mutex<Option<PyErr>>>,
    control: Arc<Control>,
}

impl PyLayer {
    fn plan(&self, py: Python<'_>, request: &HostRequest, plan: &mut Plan) -> PyResult<()> {
        let handle = self.plan.bind(py);
        {
            let mut inner = handle.borrow_mut();
            inner.steps.clear();
            (inner.staged, inner.request) = (0, request.blocks.0);
        }
        let method = match request.op {
            HostOp::Read => pyo3::intern!(py, "read"),
            HostOp::Write => pyo3::intern!(py, "write"),
            HostOp::Discard => pyo3::intern!(py, "discard"),
            HostOp::Flush => return Ok(()),
            _ => {
                plan.refuse(Refusal::Unsupported, request.lba);
                return Ok(());
            }
        };
        self.object.bind(py).call_method1(method, (request.lba.0, request.blocks.0, handle))?;
        fill(plan, &handle.borrow().steps);
        Ok(())
    }

    /// Keeps an exception and stops the run.
    fn fail(&self, error: PyErr) {
        keep(&self.raised, error);
        self.control.cancel();
    }
}

impl TranslationLayer for PyLayer {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.host_blocks)
    }

    fn submit(&mut self, _now: SimTime, request: &HostRequest, plan: &mut Plan) {
        if let Err(error) = Python::attach(|py| self.plan(py, request, plan)) {
            self.fail(error);
        }
    }

    fn locate(&self, request: &HostRequest) -> Option<(Pba, Dir)> {
        if !self.locates {
            return None;
        }
        let write = request.op == HostOp::Write;
        let own = if write { Dir::Write } else { Dir::Read };
        let answer = Python::attach(|py| -> PyResult<Option<(Pba, Dir)>> {
            let args = (write, request.lba.0, request.blocks.0);
            let answer = self.object.bind(py).call_method1(pyo3::intern!(py, "locate"), args)?;
            if let Ok(pba) = answer.extract::<Option<u64>>() {
                return Ok(pba.map(|pba| (Pba(pba), own)));
            }
            let (pba, writes): (u64, bool) = answer.extract()?;
            Ok(Some((Pba(pba), if writes { Dir::Write } else { Dir::Read })))
        });
        answer.unwrap_or_else(|error| {
            self.fail(error);
            None
        })
    }
}
