//! Traces without a drive: reading, transforming, storing.

use smrlab_sim::error::RunError;
use smrlab_sim::{Control, Spec};
use smrlab_trace::info::{DEFAULT_MEMORY, info};
use smrlab_trace::{Batch, TraceError, TraceSource, convert, remote};
use std::path::Path;

/// Tells a control how far a source has been read.
struct Watched<'a, S> {
    inner: S,
    control: &'a Control,
    rows: u64,
}

impl<S: TraceSource> TraceSource for Watched<'_, S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        let more = self.inner.next_batch(out)?;
        self.rows += out.len() as u64;
        self.control.progress(self.rows, self.inner.progress());
        Ok(more)
    }
    smrlab_trace::pass_through!();
}

fn watched<T>(
    spec: &Spec,
    control: &Control,
    work: impl FnOnce(&mut dyn TraceSource) -> Result<T, TraceError>,
) -> Result<T, RunError> {
    let mut source = Watched { inner: smrlab_sim::resolve::traces(spec, control)?, control, rows: 0 };
    Ok(work(&mut source)?)
}

/// Stores the traces as Parquet; the number of requests.
pub(crate) fn write(spec: &Spec, out: &Path, control: &Control) -> Result<u64, RunError> {
    let names = spec.trace.iter().map(|t| remote::shown(t)).collect::<Vec<_>>().join(" + ");
    watched(spec, control, |source| convert(source, out, &names, |_| true))
}

/// What the traces are like, as JSON.
pub(crate) fn characterise(spec: &Spec, control: &Control) -> Result<String, RunError> {
    let found = watched(spec, control, |source| info(source, DEFAULT_MEMORY, |_| true))?;
    serde_json::to_string(&found).map_err(|e| RunError::field("trace", e))
}
