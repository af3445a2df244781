//! From what a user wrote to everything that a run is made of; all faults at once.

use crate::control::Control;
use crate::engine::Arrivals;
use crate::error::{Result, RunError};
use crate::metrics::{Adjusted, MetricsSetup};
use crate::prefill::Prefill;
use crate::spaces::Spaces;
use crate::spec::Spec;
use crate::state;
use smrlab_array::{ArrayContext, ArrayState, BuiltArray, Chosen};
use smrlab_drive::assemble::BuildLayer;
use smrlab_drive::{Assembled, Wanted, assemble};
use smrlab_stl::{BuildContext, Built, zones_of};
use smrlab_trace::{
    AddressSpace, Filter, Mix, OpenContext, Pipeline, Steps, TraceSource, combine, pipeline, read_drive,
};
use smrlab_units::problems::Problems;
use smrlab_units::spec::{Kind, Param, SpecError, Values, hint, split_item};
use smrlab_units::{Blocks, SimTime, parse_time};

/// An array that can be started; its first drive is the run's own.
pub struct ArrayRun {
    /// What was asked for.
    pub chosen: Chosen,
    /// The state machine, and its SSDs.
    pub built: BuiltArray,
    /// The other drives, spares last.
    pub others: Vec<Assembled>,
}

impl ArrayRun {
    /// Whether a state has all that it goes by: of an SSD's caches not what was used when.
    pub(crate) fn repeats(&self) -> bool {
        self.built.ssds.is_empty()
    }

    /// What a state of it is the state of.
    pub(crate) fn identity(&self) -> String {
        self.chosen.identity()
    }
}

/// A run that can be started.
pub struct Resolved {
    /// The specification with every default spelled out.
    pub spec: Spec,
    /// The drive, layer and all; of an array the first.
    pub drive: Assembled,
    /// The array, where there is more than one drive.
    pub array: Option<ArrayRun>,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// What the drive begins as.
    pub state: Option<ArrayState>,
    /// What is written before.
    pub prefill: Option<Prefill>,
    /// What is done to the requests of the trace.
    pub steps: Steps,
    /// Width of the timeline's windows.
    pub window: Option<SimTime>,
    /// A response longer than this is a stall.
    pub stall: SimTime,
    /// Counting of adjusted commands.
    pub adjusted: Adjusted,
    /// The host's space: the layer's, or less where the specification says so.
    pub host: Blocks,
}

/// The parameters of `arrivals = "closed"`.
pub const CLOSED: &[Param] = &[
    Param::new("depth", Kind::Count(1, 65_536), "1").doc("requests outstanding at all times"),
    Param::new("think", Kind::Time, "0").doc("pause between a completion and the request that follows it"),
];

fn arrivals(text: &str) -> Result<(Arrivals, String), SpecError> {
    let (name, pairs) = split_item(text);
    match name {
        "trace" if pairs.is_empty() => Ok((Arrivals::Trace, text.to_owned())),
        "pauses" if pairs.is_empty() => Ok((Arrivals::Pauses, text.to_owned())),
        "closed" => {
            let values = Values::check("closed", CLOSED, &pairs)?;
            let depth = values.count("depth") as usize;
            let think = values.time("think");
            if think > SimTime::from_ms(86_400_000) {
                let what = format!("closed: think={think} is not accepted: at most 86400s, a day");
                return Err(SpecError::Other(what));
            }
            Ok((Arrivals::Closed { depth, think }, values.resolved()))
        }
        _ => Err(SpecError::Other(format!(
            "'{text}' is not accepted{}: 'trace', 'pauses' or 'closed[,depth=N][,think=T]'",
            hint(name, ["trace", "pauses", "closed"])
        ))),
    }
}

/// Checks everything, builds the layer, and spells out the defaults.
///
/// # Errors
/// All faults of the specification at once, each with its field.
pub fn resolve(given: &Spec) -> Result<Resolved> {
    resolve_with(given, &smrlab_stl::build)
}

/// Builds the array of a run on drives like `first`; `None`: one drive alone, or faults were noted.
fn assemble_array(
    text: &str,
    first: Option<&Assembled>,
    wanted: &Wanted<'_>,
    build: BuildLayer<'_>,
    faults: &mut Problems,
) -> Option<ArrayRun> {
    let chosen = faults.keep("array", smrlab_array::parse(text))?;
    let first = first.filter(|_| !chosen.is_single())?;
    let mut others = Vec::new();
    for disk in 1..chosen.disks + chosen.spares {
        let layer = chosen.layer_of(disk, wanted.layer);
        let build: BuildLayer<'_> = if layer == wanted.layer { build } else { &smrlab_stl::build };
        let wanted = Wanted { seed: wanted.seed.wrapping_add(disk.into()), layer, ..*wanted };
        others.push(assemble(&wanted, read_drive, build, faults)?);
    }
    let all = || std::iter::once(first).chain(&others).take(chosen.disks as usize);
    let sizes: Vec<Blocks> = all().map(|d| d.built.layer.host_blocks()).collect();
    let zones: Vec<_> = all().map(|d| zones_of(&*d.built.layer)).collect();
    let limits = first.built.layer.facts().zones;
    let context = ArrayContext::new(&sizes).zoned(&zones).limited(limits).seeded(wanted.seed);
    let built = faults.keep("array", chosen.build(&context))?;
    Some(ArrayRun { chosen, built, others })
}

/// What a run of an array cannot do.
fn not_of_arrays(array: &ArrayRun, spec: &Spec, faults: &mut Problems) {
    if spec.verify_media && array.chosen.invents() {
        let problem = "with ssd_round=on the host's writes are less than what is written: leave one out";
        faults.add("verify_media", problem);
    }
}

/// Like [`resolve`], with a layer that is not in the registry: `build` makes it from the specification's text.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_with(
    given: &Spec,
    build: &dyn Fn(&str, &BuildContext) -> Result<Built, SpecError>,
) -> Result<Resolved> {
    let mut faults = Problems::default();
    let mut spec = given.clone();
    burst(&mut spec, &mut faults);
    stack(&mut spec, &mut faults);
    numbers(&spec, &mut faults);
    let arrivals = faults.keep("arrivals", arrivals(&spec.arrivals));
    let window = spec.window.as_deref().and_then(|w| window(w, &mut faults));
    let stall = parse_time(&spec.stall).map_err(|e| faults.add("stall", e)).unwrap_or_default();
    let wanted = Wanted {
        drive: &spec.drive,
        layer: &spec.layer,
        scheduler: &spec.scheduler,
        metadata: &spec.metadata,
        mechanics: spec.mechanics.as_deref(),
        medium: None,
        seed: spec.seed,
    };
    let drive = assemble(&wanted, read_drive, build, &mut faults);
    let built = drive.as_ref().map(|d| &d.built);
    let array = assemble_array(&spec.array, drive.as_ref(), &wanted, build, &mut faults);
    array.iter().for_each(|a| not_of_arrays(a, &spec, &mut faults));
    let host = built.as_ref().map(|b| {
        let own = array.as_ref().map_or_else(|| b.layer.host_blocks(), |a| a.built.array.host_blocks());
        spec.host_blocks.map_or(own, |limit| own.min(Blocks(limit)))
    });
    if spec.host_blocks == Some(0) {
        faults.add("host_blocks", "0 is not accepted: a whole number from 1");
    } else if host == Some(Blocks::ZERO) {
        faults.add(
            "layer",
            format!("{}: the host's space has no blocks on this drive: use a larger one", spec.layer),
        );
    }
    let prefill = match (&spec.prefill, host, &built) {
        (Some(text), Some(host), Some(built)) => {
            faults.keep("prefill", Prefill::parse(text, host, built, spec.seed))
        }
        _ => None,
    };
    let steps = steps(&spec, host, prefill.as_ref(), &mut faults);
    let adjusted =
        Adjusted { blocks: spec.adjusted_blocks.max(1), floor_plus_one: spec.adjusted_rule == "floor+1" };
    let (Some(drive), Some((arrivals, text)), Some(host), true) = (drive, arrivals, host, faults.is_empty())
    else {
        return Err(RunError::Spec(faults));
    };
    let state = state::begin(&spec, &drive, &array.as_ref().map(ArrayRun::identity).unwrap_or_default())?;
    spec.arrivals = text;
    spec.drive.clone_from(&drive.drive);
    if let Some(array) = &array {
        spec.array.clone_from(&array.chosen.resolved);
    }
    spec.scheduler = drive.scheduler.resolved.clone();
    spec.layer = drive.built.resolved.clone();
    spec.prefill = prefill.as_ref().map(|p| p.resolved.clone());
    spec.mechanics = Some(drive.model.name().to_owned());
    Ok(Resolved { spec, drive, array, arrivals, state, prefill, steps, window, stall, adjusted, host })
}

fn window(text: &str, faults: &mut Problems) -> Option<SimTime> {
    match parse_time(text) {
        Ok(t) if t > SimTime::ZERO => return Some(t),
        Ok(_) => faults.add("window", format!("{text} is not accepted: a time from 1ns")),
        Err(e) => faults.add("window", e),
    }
    None
}

/// `burst` is short for a `join` in bursts.
fn burst(spec: &mut Spec, faults: &mut Problems) {
    match spec.burst.take() {
        Some(0) => faults.add("burst", "0 is not accepted: a whole number from 1"),
        Some(_) if spec.join != "time" => {
            faults.add("burst", format!("join={} says how traces are joined: leave one out", spec.join));
        }
        Some(n) => spec.join = format!("bursts,requests={n}"),
        None => {}
    }
}

/// The array, and the layer where it ends in one, that a stack is short for.
///
/// # Errors
/// What is wrong with it.
pub fn stack_json(text: &str) -> Result<serde_json::Value> {
    let stack = smrlab_array::stack::parse(text).map_err(|e| RunError::field("stack", e))?;
    Ok(serde_json::json!({"array": stack.array, "layer": stack.layer}))
}

/// `stack` is short for an array and a layer; so is a layer with something above it, where several are compared.
fn stack(spec: &mut Spec, faults: &mut Problems) {
    let mut parts = std::mem::take(&mut spec.stack);
    if parts.is_empty() && smrlab_array::stack::is_stack(&spec.layer) {
        parts.push(std::mem::replace(&mut spec.layer, "cmr".to_owned()));
    }
    if parts.is_empty() {
        return;
    }
    let Some(stack) = faults.keep("stack", smrlab_array::stack::parse(&parts.join(" / "))) else { return };
    if spec.array != "single" {
        faults.add("stack", format!("array={} says what stands above the drives: leave one out", spec.array));
    }
    spec.array = stack.array;
    if let Some(layer) = stack.layer {
        if spec.layer != "cmr" {
            faults.add(
                "stack",
                format!("it ends in a layer, and layer={} is another: leave one out", spec.layer),
            );
        }
        spec.layer = layer;
    }
}

/// What needs nothing but the field itself.
fn numbers(spec: &Spec, faults: &mut Problems) {
    if spec.trace.is_empty() {
        faults.add("trace", "missing: name a trace file, '-', or synth:NAME[,k=v...]");
    }
    faults.keep("join", Mix::parse(&spec.join, spec.seed));
    faults.choice("adjusted_rule", &spec.adjusted_rule, &["ceil", "floor+1"]);
    faults.choice("address_space", &spec.address_space, &["overlap", "concat"]);
    if !pipeline::SCALES.contains(&spec.scale_time) {
        faults.add("scale_time", format!("{:?} is not accepted: from 1e-9 to 1e12", spec.scale_time));
    }
    if spec.adjusted_blocks == 0 {
        faults.add("adjusted_blocks", "0 is not accepted: a whole number from 1");
    }
    if spec.limit == Some(0) {
        faults.add("limit", "0 is not accepted: a whole number from 1");
    }
}

/// What is done to the requests of the trace.
fn steps(spec: &Spec, host: Option<Blocks>, prefill: Option<&Prefill>, faults: &mut Problems) -> Steps {
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

fn wrap(
    spec: &Spec,
    host: Option<Blocks>,
    prefill: Option<&Prefill>,
    faults: &mut Problems,
) -> Option<Blocks> {
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
    /// What the host's requests are measured by.
    pub fn measured(&self) -> MetricsSetup {
        MetricsSetup {
            host_blocks: self.host,
            spaces: Spaces::one(self.host),
            adjusted: self.adjusted,
            window: self.window,
            stall: self.stall,
            foretold: true,
            heatmap: true,
            drives: 1,
        }
    }

    /// Opens the trace (or traces), whose reading ends when `control` is cancelled.
    ///
    /// # Errors
    /// Those of the trace.
    pub fn open_trace(&self, control: &Control) -> Result<Box<dyn TraceSource>> {
        opened(&self.spec, Some(self.host), control)
    }
}

fn opened(spec: &Spec, capacity: Option<Blocks>, control: &Control) -> Result<Box<dyn TraceSource>> {
    let context =
        OpenContext { capacity, seed: spec.seed, skip_bad: spec.skip_bad, stop: control.stop().clone() };
    let mix = Mix::parse(&spec.join, spec.seed).map_err(|e| RunError::field("join", e))?;
    let space = if spec.address_space == "concat" { AddressSpace::Concat } else { AddressSpace::Overlap };
    Ok(combine(&spec.trace, space, mix, &context)?)
}

/// The requests of a specification's traces by themselves, with what is done to them on their way. There is no drive: `host_blocks` is
/// the space that addresses are wrapped to. Reading ends when `control` is cancelled.
///
/// # Errors
/// All that is wrong with the fields about traces; those of the trace.
pub fn traces(given: &Spec, control: &Control) -> Result<impl TraceSource + use<>> {
    let (mut spec, mut faults) = (given.clone(), Problems::default());
    burst(&mut spec, &mut faults);
    numbers(&spec, &mut faults);
    let host = spec.host_blocks.map(Blocks);
    let steps = steps(&spec, host, None, &mut faults);
    faults.finish().map_err(RunError::Spec)?;
    Ok(Pipeline::new(opened(&spec, host, control)?, steps)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of random requests on a small drive, and more fields.
    fn spec(more: &str) -> Spec {
        Spec::from_toml(&format!("trace = 'synth:uniform,requests=200,span=1GB'\ndrive = 'tiny'\n{more}"))
            .unwrap()
    }

    /// A layer of the caller's own is asked for itself alone: below the parity of `raid4s` lies one of the registry.
    #[test]
    fn a_layer_of_ones_own_is_not_asked_for_others() {
        let asked = std::cell::RefCell::new(Vec::new());
        let own = |text: &str, context: &BuildContext| {
            asked.borrow_mut().push(text.to_owned());
            smrlab_stl::build("log", context)
        };
        let array =
            resolve_with(&spec("layer = 'own'\narray = 'raid4s,disks=3'"), &own).unwrap().array.unwrap();
        assert_eq!(*asked.borrow(), ["own", "own"]);
        assert_eq!(array.others.iter().map(|d| &d.built.resolved[..3]).collect::<Vec<_>>(), ["log", "cmr"]);
    }

    /// What a stack or a burst is short for is not said a second time.
    #[test]
    fn what_is_said_twice_is_refused() {
        for (more, said) in [
            ("stack = 'mirror / rmw'\nlayer = 'log'", "stack: it ends in a layer, and layer=log is another"),
            (
                "stack = 'mirror / rmw'\narray = 'striped'",
                "stack: array=striped says what stands above the drives",
            ),
            ("burst = 3\njoin = 'chain'", "burst: join=chain says how traces are joined"),
            ("burst = 0", "burst: 0 is not accepted"),
        ] {
            let told = resolve(&spec(more)).map(drop).map_err(|e| e.to_string());
            assert!(told.as_ref().is_err_and(|e| e.contains(said)), "{more}: {told:?}");
        }
        let stacked = resolve(&spec("stack = 'mirror'\nlayer = 'rmw'")).unwrap().spec;
        assert!(stacked.array.starts_with("mirror,") && stacked.layer.starts_with("rmw,"), "{stacked:?}");
        assert_eq!(resolve(&spec("burst = 3")).unwrap().spec.join, "bursts,requests=3");
    }

    /// Standard input cannot be read twice, with options or without, alone or beside a file.
    #[test]
    fn a_prefill_of_what_is_read_needs_files() {
        for trace in ["'-'", "'-:csv,columns=time:ms;op;lba;blocks'", "['a.csv', '-:msr']"] {
            let text = format!("trace = {trace}\ndrive = 'tiny'\nlayer = 'cmr'\nprefill = 'read'");
            let run = crate::run(&Spec::from_toml(&text).unwrap(), &crate::Control::new(), None);
            let e = run.map(drop).unwrap_err().to_string();
            assert!(e.contains("standard input cannot be"), "{trace}: {e}");
        }
    }

    /// A limit of the host's space makes it smaller alone.
    #[test]
    fn a_limit_of_the_space_is_none_beyond_it() {
        let host = |more: &str| resolve(&spec(more)).unwrap().host.0;
        let own = host("");
        assert_eq!([host("host_blocks = 10"), host("host_blocks = 1000000000")], [10, own]);
    }

    /// A burst is short for a way to join them, which the order of their times is not.
    #[test]
    fn traces_by_themselves_come_in_bursts() {
        let all = |more: &str| {
            let synth = "synth:uniform,requests=20,span=1GB,interarrival";
            let text = format!("trace = ['{synth}=1ms', '{synth}=3ms']\nseed = 3\n{more}");
            let all = smrlab_trace::read_all(
                &mut traces(&Spec::from_toml(&text).unwrap(), &Control::new()).unwrap(),
            )
            .unwrap();
            all.iter().map(|r| (r.arrival.0, r.lba.0)).collect::<Vec<_>>()
        };
        assert_eq!(all("burst = 2"), all("join = 'bursts,requests=2'"));
        assert_ne!(all("burst = 2"), all(""));
    }

    /// Without a drive addresses are wrapped to the limit.
    #[test]
    fn traces_by_themselves_are_wrapped_to_the_limit() {
        let all =
            |more: &str| smrlab_trace::read_all(&mut traces(&spec(more), &Control::new()).unwrap()).unwrap();
        let wrapped = all("host_blocks = 4096\nwrap = 'capacity'");
        assert!(wrapped.iter().all(|r| r.end().0 <= 4096) && all("").iter().any(|r| r.end().0 > 4096));
    }
}
