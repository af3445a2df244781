//! From what a user wrote to everything that a run is made of; all faults at once.

use crate::engine::Arrivals;
use crate::error::{FieldError, RunError, placed};
use crate::metrics::Adjusted;
use crate::prefill::Prefill;
use crate::spec::Spec;
use smrlab_disk::{DriveModel, Model};
use smrlab_drive::sched::{self, Chosen};
use smrlab_stl::{BuildContext, Built, Metadata};
use smrlab_trace::{AddressSpace, Filter, Mix, OpenContext, Steps, TraceSource, combine, pipeline};
use smrlab_units::spec::{Kind, Param, SpecError, Values, nearest, split_item};
use smrlab_units::{Blocks, SimTime, parse_time};
use std::sync::Arc;

/// A run that can be started.
pub struct Resolved {
    /// The specification with every default spelled out.
    pub spec: Spec,
    /// The layer as built, and the drive on whose medium it works.
    pub built: Built,
    /// Which parts of the mechanics count.
    pub model: Model,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// Who is served next.
    pub scheduler: Chosen,
    /// What is written before.
    pub prefill: Option<Prefill>,
    /// What is done to the requests of the trace.
    pub steps: Steps,
    /// Width of the timeline's windows.
    pub window: Option<SimTime>,
    /// Counting of adjusted commands.
    pub adjusted: Adjusted,
    /// The host's space: the layer's, or less where the specification says so.
    pub host: Blocks,
}

/// The parameters of `arrivals = "closed"`.
pub const CLOSED: &[Param] = &[
    Param {
        name: "depth",
        kind: Kind::Count(1, 65_536),
        default: "1",
        doc: "requests outstanding at all times",
    },
    Param {
        name: "think",
        kind: Kind::Time,
        default: "0",
        doc: "pause between a completion and the request that follows it",
    },
];

/// Collects faults while everything that can be checked is checked.
#[derive(Default)]
struct Faults(Vec<FieldError>);

impl Faults {
    fn keep<T>(&mut self, field: &str, result: Result<T, SpecError>) -> Option<T> {
        result.map_err(|e| self.0.extend(placed(field, e))).ok()
    }

    fn add(&mut self, field: &str, problem: impl ToString) {
        self.0.push(FieldError { field: field.to_owned(), problem: problem.to_string() });
    }

    /// One of `names`, or a fault that lists them.
    fn choice(&mut self, field: &str, value: &str, names: &[&str]) -> Option<usize> {
        let found = names.iter().position(|n| *n == value);
        if found.is_none() {
            let hint = nearest(value, names.iter().copied());
            let hint = hint.map_or_else(String::new, |n| format!(" (did you mean '{n}'?)"));
            self.add(field, format!("'{value}' is not accepted{hint}: one of {}", names.join(", ")));
        }
        found
    }
}

fn arrivals(text: &str) -> Result<(Arrivals, String), SpecError> {
    let (name, pairs) = split_item(text);
    match name {
        "trace" if pairs.is_empty() => Ok((Arrivals::Trace, text.to_owned())),
        "closed" => {
            let values = Values::check("closed", CLOSED, &pairs)?;
            let depth = values.count("depth").unwrap_or(1) as usize;
            let think = values.time("think").unwrap_or_default();
            Ok((Arrivals::Closed { depth, think }, values.resolved()))
        }
        _ => Err(SpecError::Other(format!(
            "'{text}' is not accepted: 'trace' or 'closed[,depth=N][,think=T]'"
        ))),
    }
}

/// A preset, or the drive file of that path.
fn load_drive(text: &str) -> Result<DriveModel, SpecError> {
    smrlab_disk::model::load(text, |path| {
        std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => e.to_string(),
        })
    })
}

/// Checks as much of a layer as can be checked without a drive.
fn layer_name(text: &str) -> Result<(), SpecError> {
    let (name, pairs) = split_item(text);
    let entry = smrlab_stl::registry::find(name)?;
    Values::check(entry.name, entry.params, &pairs).map(|_| ())
}

/// Checks everything, builds the layer, and spells out the defaults.
///
/// # Errors
/// All faults of the specification at once, each with its field.
pub fn resolve(given: &Spec) -> Result<Resolved, RunError> {
    resolve_with(given, &smrlab_stl::build)
}

/// Like [`resolve`], with a layer that is not in the registry: `build` makes it from the specification's text.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_with(
    given: &Spec,
    build: &dyn Fn(&str, &BuildContext) -> Result<Built, SpecError>,
) -> Result<Resolved, RunError> {
    let mut faults = Faults::default();
    let mut spec = given.clone();
    numbers(&spec, &mut faults);
    let arrivals = faults.keep("arrivals", arrivals(&spec.arrivals));
    let scheduler = faults.keep("scheduler", sched::parse(&spec.scheduler));
    let window = spec.window.as_deref().and_then(|w| window(w, &mut faults));
    let metadata = faults.choice("metadata", &spec.metadata, &["nv", "media"]);
    let model = spec.mechanics.clone().map(|name| {
        faults.choice("mechanics", &name, &Model::NAMES);
        Model::parse(&name)
    });
    let metadata = if metadata == Some(1) { Metadata::Media } else { Metadata::Nv };
    let built = layer(&mut spec, metadata, build, &mut faults);
    if let (Some(built), Some(scheduler)) = (&built, &scheduler)
        && scheduler.entry.reorders
        && !built.capabilities.locates
    {
        let (s, l) = (scheduler.entry.name, built.entry.name);
        faults
            .add("scheduler", format!("{l} cannot tell where requests start, which {s} asks for: use fcfs"));
    }
    let host = built.as_ref().map(|b| {
        let own = b.layer.host_blocks();
        spec.host_blocks.map_or(own, |limit| own.min(Blocks(limit)))
    });
    if host == Some(Blocks::ZERO) {
        faults.add("layer", "the host's space has no blocks on this drive");
    }
    let prefill = match (&spec.prefill, host, &built) {
        (Some(text), Some(host), Some(built)) => {
            faults.keep("prefill", Prefill::parse(text, host, &*built.layer, spec.seed))
        }
        _ => None,
    };
    let steps = steps(&spec, host, prefill.as_ref(), &mut faults);
    let adjusted =
        Adjusted { blocks: spec.adjusted_blocks.max(1), floor_plus_one: spec.adjusted_rule == "floor+1" };
    let (Some(built), Some((arrivals, text)), Some(scheduler), Some(host)) =
        (built, arrivals, scheduler, host)
    else {
        return Err(RunError::Spec(faults.0));
    };
    if !faults.0.is_empty() {
        return Err(RunError::Spec(faults.0));
    }
    spec.arrivals = text;
    spec.scheduler = scheduler.resolved.clone();
    spec.layer = built.resolved.clone();
    spec.prefill = prefill.as_ref().map(|p| p.resolved.clone());
    let model = model.flatten().unwrap_or(built.drive.spec().model);
    spec.mechanics = Some(model.name().to_owned());
    Ok(Resolved { spec, built, model, arrivals, scheduler, prefill, steps, window, adjusted, host })
}

/// The drive and the layer on it.
fn layer(
    spec: &mut Spec,
    metadata: Metadata,
    build: &dyn Fn(&str, &BuildContext) -> Result<Built, SpecError>,
    faults: &mut Faults,
) -> Option<Built> {
    let Some(drive) = faults.keep("drive", load_drive(&spec.drive)) else {
        faults.keep("layer", layer_name(&spec.layer));
        return None;
    };
    // A drive file's path is kept: its name alone would not find it again.
    if smrlab_disk::DRIVES.iter().any(|d| d.name == split_item(&spec.drive).0) {
        spec.drive = drive.resolved();
    }
    let context = BuildContext { seed: spec.seed, metadata, ..BuildContext::new(Arc::new(drive)) };
    faults.keep("layer", build(&spec.layer, &context))
}

fn window(text: &str, faults: &mut Faults) -> Option<SimTime> {
    match parse_time(text) {
        Ok(t) if t > SimTime::ZERO => return Some(t),
        Ok(_) => faults.add("window", "a window of no width is not accepted"),
        Err(e) => faults.add("window", e),
    }
    None
}

/// What needs nothing but the field itself.
fn numbers(spec: &Spec, faults: &mut Faults) {
    if spec.trace.is_empty() {
        faults.add("trace", "missing: name a trace file, '-', or synth:NAME[,k=v...]");
    }
    faults.choice("array", &spec.array, &["single"]);
    faults.choice("adjusted_rule", &spec.adjusted_rule, &["ceil", "floor+1"]);
    faults.choice("address_space", &spec.address_space, &["overlap", "concat"]);
    if !pipeline::SCALES.contains(&spec.scale_time) {
        faults.add("scale_time", format!("{} is not accepted: from 1e-9 to 1e12", spec.scale_time));
    }
    if spec.adjusted_blocks == 0 {
        faults.add("adjusted_blocks", "0 is not accepted: a whole number from 1");
    }
    if spec.limit == Some(0) {
        faults.add("limit", "0 is not accepted: a whole number from 1");
    }
}

/// What is done to the requests of the trace.
fn steps(spec: &Spec, host: Option<Blocks>, prefill: Option<&Prefill>, faults: &mut Faults) -> Steps {
    let mut time = |field: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(|t| parse_time(t).map_err(|e| SpecError::Other(e.to_string())));
        parsed.and_then(|t| faults.keep(field, t))
    };
    let from = time("from", &spec.from).unwrap_or(SimTime::ZERO);
    let until = time("until", &spec.until).unwrap_or(SimTime::MAX);
    if from >= until {
        faults.add("until", format!("no time lies from {from} on and before {until}"));
    }
    Steps {
        from,
        until,
        filter: spec.filter.as_deref().and_then(|f| faults.keep("filter", Filter::parse(f))),
        limit: spec.limit,
        scale_time: spec.scale_time,
        wrap: wrap(spec, host, prefill, faults),
    }
}

fn wrap(spec: &Spec, host: Option<Blocks>, prefill: Option<&Prefill>, faults: &mut Faults) -> Option<Blocks> {
    match spec.wrap.as_deref() {
        None => None,
        Some("capacity") => host,
        Some("prefilled") if spec.prefill.is_none() => {
            faults.add("wrap", "'prefilled' needs a prefill: give prefill = \"50%\" or the like");
            None
        }
        Some("prefilled") => prefill.map(|p| p.span).filter(|span| {
            let empty = *span == Blocks::ZERO;
            if empty {
                faults.add("wrap", "'prefilled' with a prefill of nothing leaves no space");
            }
            !empty
        }),
        Some(other) => {
            faults.choice("wrap", other, &["capacity", "prefilled"]);
            None
        }
    }
}

impl Resolved {
    /// Opens the trace (or traces).
    ///
    /// # Errors
    /// Those of the trace.
    pub fn open_trace(&self) -> Result<Box<dyn TraceSource>, RunError> {
        let context =
            OpenContext { capacity: Some(self.host), seed: self.spec.seed, skip_bad: self.spec.skip_bad };
        let space =
            if self.spec.address_space == "concat" { AddressSpace::Concat } else { AddressSpace::Overlap };
        Ok(combine(&self.spec.trace, space, Mix::ByTime, &context)?)
    }
}
