//! Traces without a drive: reading, transforming, storing.

use serde::{Deserialize, Deserializer};
use smrlab_sim::Control;
use smrlab_sim::error::RunError;
use smrlab_trace::info::{DEFAULT_MEMORY, info};
use smrlab_trace::{
    AddressSpace, Batch, Filter, Mix, OpenContext, Pipeline, Steps, TraceError, TraceSource, combine,
    convert, remote,
};
use smrlab_units::{Blocks, SimTime, parse_count, parse_time};
use std::path::Path;

/// Which traces, and what is done to them, in the order of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TraceSpec {
    trace: Vec<String>,
    #[serde(deserialize_with = "count")]
    skip_bad: Option<u64>,
    #[serde(deserialize_with = "count")]
    seed: Option<u64>,
    address_space: String,
    #[serde(deserialize_with = "count")]
    interleave: Option<u64>,
    join: Option<String>,
    from: Option<String>,
    until: Option<String>,
    filter: Option<String>,
    scale_time: Option<f64>,
    wrap: Option<String>,
    #[serde(deserialize_with = "count")]
    host_blocks: Option<u64>,
    #[serde(deserialize_with = "count")]
    limit: Option<u64>,
}

/// A count, as a number or as a text such as `100k`.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Number(u64),
        Text(String),
    }
    match Option::<Given>::deserialize(from)? {
        None => Ok(None),
        Some(Given::Number(n)) => Ok(Some(n)),
        Some(Given::Text(text)) => parse_count(&text).map(Some).map_err(serde::de::Error::custom),
    }
}

impl TraceSpec {
    /// From JSON, as Python sends it.
    pub(crate) fn from_json(text: &str) -> Result<Self, RunError> {
        serde_json::from_str(text).map_err(|e| RunError::field("trace", e))
    }

    /// The traces as one source.
    pub(crate) fn open(&self) -> Result<Box<dyn TraceSource>, RunError> {
        if self.trace.is_empty() {
            return Err(RunError::field("trace", "missing: name a trace file, '-', or synth:NAME[,k=v...]"));
        }
        let seed = self.seed.unwrap_or(1);
        let context = OpenContext {
            capacity: self.host_blocks.map(Blocks),
            seed,
            skip_bad: self.skip_bad.unwrap_or(0),
        };
        let space = match self.address_space.as_str() {
            "" | "overlap" => AddressSpace::Overlap,
            "concat" => AddressSpace::Concat,
            other => {
                let problem = format!("'{other}' is not accepted: one of overlap, concat");
                return Err(RunError::field("address_space", problem));
            }
        };
        let mix = match (self.interleave, &self.join) {
            (Some(burst), _) => Mix::Bursts { burst, seed },
            (None, Some(join)) => Mix::parse(join, seed).map_err(|e| RunError::field("join", e))?,
            _ => Mix::ByTime,
        };
        let source = combine(&self.trace, space, mix, &context)?;
        Ok(Box::new(Pipeline::new(source, self.steps()?)?))
    }

    fn steps(&self) -> Result<Steps, RunError> {
        let filter = self.filter.as_deref().map(Filter::parse).transpose();
        Ok(Steps {
            from: time("from", self.from.as_deref(), SimTime::ZERO)?,
            until: time("until", self.until.as_deref(), SimTime::MAX)?,
            filter: filter.map_err(|e| RunError::field("filter", e))?,
            limit: self.limit,
            scale_time: self.scale_time.unwrap_or(1.0),
            wrap: self.wrap.as_ref().and(self.host_blocks).map(Blocks),
        })
    }
}

fn time(field: &str, text: Option<&str>, default: SimTime) -> Result<SimTime, RunError> {
    text.map_or(Ok(default), |t| parse_time(t).map_err(|e| RunError::field(field, e)))
}

/// Tells a control how far a source has been read, and ends it when that is cancelled.
struct Watched<'a> {
    inner: Box<dyn TraceSource>,
    control: &'a Control,
    rows: u64,
}

impl TraceSource for Watched<'_> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        if self.control.cancelled() {
            return Err(TraceError::Request("interrupted".to_owned()));
        }
        let more = self.inner.next_batch(out)?;
        self.rows += out.len() as u64;
        self.control.progress(self.rows, self.inner.progress());
        Ok(more)
    }
    smrlab_trace::pass_through!();
}

fn watched<'a, T>(
    spec: &TraceSpec,
    control: &'a Control,
    work: impl FnOnce(&mut Watched<'a>) -> Result<T, TraceError>,
) -> Result<T, RunError> {
    let mut source = Watched { inner: spec.open()?, control, rows: 0 };
    match work(&mut source) {
        Err(_) if control.cancelled() => Err(RunError::Interrupted),
        other => Ok(other?),
    }
}

/// Stores the traces as Parquet; the number of requests.
pub(crate) fn write(spec: &TraceSpec, out: &Path, control: &Control) -> Result<u64, RunError> {
    let names = spec.trace.iter().map(|t| remote::shown(t)).collect::<Vec<_>>().join(" + ");
    watched(spec, control, |source| convert(source, out, &names, |_| true))
}

/// What the traces are like, as JSON.
pub(crate) fn characterise(spec: &TraceSpec, control: &Control) -> Result<String, RunError> {
    let found = watched(spec, control, |source| info(source, DEFAULT_MEMORY, |_| true))?;
    serde_json::to_string(&found).map_err(|e| RunError::field("trace", e))
}
