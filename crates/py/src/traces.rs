//! Traces without a drive: reading, transforming, storing.

use serde::Deserialize;
use smrlab_sim::Control;
use smrlab_sim::error::RunError;
use smrlab_trace::info::{DEFAULT_MEMORY, info};
use smrlab_trace::transforms::{Limit, Scale, Window, Wrap};
use smrlab_trace::{AddressSpace, Batch, Mix, OpenContext, TraceError, TraceSource, combine, convert};
use smrlab_units::{Blocks, SimTime, parse_time};
use std::path::Path;

/// Which traces, and what is done to them, in the order of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceSpec {
    trace: Vec<String>,
    skip_bad: u64,
    seed: Option<u64>,
    address_space: String,
    interleave: Option<u64>,
    from: Option<String>,
    until: Option<String>,
    scale_time: Option<f64>,
    wrap: Option<String>,
    host_blocks: Option<u64>,
    limit: Option<u64>,
}

impl TraceSpec {
    /// From JSON, as Python sends it.
    pub fn from_json(text: &str) -> Result<Self, RunError> {
        serde_json::from_str(text).map_err(|e| RunError::field("trace", e))
    }

    /// The traces as one source.
    pub fn open(&self) -> Result<Box<dyn TraceSource>, RunError> {
        if self.trace.is_empty() {
            return Err(RunError::field("trace", "missing: name a trace file, '-', or synth:NAME[,k=v...]"));
        }
        let seed = self.seed.unwrap_or(1);
        let context = OpenContext { capacity: self.host_blocks.map(Blocks), seed, skip_bad: self.skip_bad };
        let space = match self.address_space.as_str() {
            "" | "overlap" => AddressSpace::Overlap,
            "concat" => AddressSpace::Concat,
            other => {
                let problem = format!("'{other}' is not accepted: one of overlap, concat");
                return Err(RunError::field("address_space", problem));
            }
        };
        let mix = self.interleave.map_or(Mix::ByTime, |burst| Mix::Bursts { burst, seed });
        let mut source = combine(&self.trace, space, mix, &context)?;
        if self.from.is_some() || self.until.is_some() {
            let from = time("from", self.from.as_deref(), SimTime::ZERO)?;
            let until = time("until", self.until.as_deref(), SimTime::MAX)?;
            source = Box::new(Window::new(source, from, until));
        }
        if let Some(factor) = self.scale_time {
            source = Box::new(Scale::new(source, factor)?);
        }
        if let (Some(_), Some(blocks)) = (&self.wrap, self.host_blocks) {
            source = Box::new(Wrap::new(source, Blocks(blocks))?);
        }
        Ok(match self.limit {
            Some(0) => return Err(RunError::field("limit", "0 is not accepted: a whole number from 1")),
            Some(n) => Box::new(Limit::new(source, n)),
            None => source,
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
    fn device_name(&self, device: u32) -> String {
        self.inner.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
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
pub fn write(spec: &TraceSpec, out: &Path, control: &Control) -> Result<u64, RunError> {
    watched(spec, control, |source| convert(source, out, &spec.trace.join(" + "), |_| true))
}

/// What the traces are like, as JSON.
pub fn characterise(spec: &TraceSpec, control: &Control) -> Result<String, RunError> {
    let found = watched(spec, control, |source| info(source, DEFAULT_MEMORY, |_| true))?;
    serde_json::to_string(&found).map_err(|e| RunError::field("trace", e))
}
