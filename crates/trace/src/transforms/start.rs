//! The last stage of opening a trace: where its time starts, and that there is something in it.

use crate::{Batch, Result, TraceError, TraceSource};
use smrlab_units::SimTime;

/// The arrivals that the fast store and the logs of runs can hold, in nanoseconds: 292 years.
const LATEST: u64 = i64::MAX as u64;

/// Which time of a trace becomes 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// That of the first request.
    First,
    /// This one, which no request comes before.
    At(SimTime),
}

/// Moves a trace in time, and refuses an empty one.
pub struct Started<S> {
    inner: S,
    origin: Origin,
    begun: bool,
    /// The first request comes after 0.
    late: bool,
    name: String,
}

impl<S: TraceSource> Started<S> {
    /// `name` is what messages call the trace.
    pub fn new(inner: S, origin: Origin, name: &str) -> Self {
        Self { inner, origin, begun: false, late: false, name: name.to_owned() }
    }
}

impl<S: TraceSource> TraceSource for Started<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        let more = self.inner.next_batch(out)?;
        if !self.begun {
            self.begun = true;
            let first = *out.arrival.first().ok_or_else(|| TraceError::Empty(self.name.clone()))?;
            self.origin = match self.origin {
                Origin::First => Origin::At(first),
                at => at,
            };
            self.late = matches!(self.origin, Origin::At(origin) if first > origin);
        }
        if let Origin::At(origin) = self.origin
            && origin > SimTime::ZERO
        {
            out.arrival.iter_mut().for_each(|a| *a = a.since(origin));
        }
        // Arrivals never fall: the last is the latest.
        if out.arrival.last().is_some_and(|a| a.0 > LATEST) {
            let remedy = match self.late {
                true => "use start=zero, which moves the first request to time 0",
                false => "the first request is at 0, so their unit may be another",
            };
            let what = format!("it has times beyond 292 years: {remedy}");
            return Err(TraceError::unreadable(&self.name, what));
        }
        Ok(more)
    }
    crate::pass_through!();
}
