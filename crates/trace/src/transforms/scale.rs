//! Time stretched or squeezed.

use crate::{Batch, TraceError, TraceSource};
use smrlab_units::SimTime;

/// Multiplies arrivals by a factor: 2 halves the load, 0.5 doubles it.
///
/// The factor is a whole number of 2^-40 and the product is rounded down, so that the result is the same everywhere.
pub struct Scale<S> {
    inner: S,
    factor: u128,
}

/// Binary digits behind the point of a factor.
const FRACTION: u32 = 40;

impl<S: TraceSource> Scale<S> {
    /// `factor` above 0.
    ///
    /// # Errors
    /// When the factor is not a number from 1e-9 to 1e9.
    pub fn new(inner: S, factor: f64) -> Result<Self, TraceError> {
        if !(1e-9..=1e9).contains(&factor) {
            return Err(TraceError::Request(format!("time scale {factor}: it must be from 1e-9 to 1e9")));
        }
        Ok(Self { inner, factor: (factor * (1u64 << FRACTION) as f64).round() as u128 })
    }
}

impl<S: TraceSource> TraceSource for Scale<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        let more = self.inner.next_batch(out)?;
        for a in &mut out.arrival {
            let ns = u64::try_from((u128::from(a.0) * self.factor) >> FRACTION);
            *a = ns.map(SimTime).map_err(|_| {
                TraceError::Request(
                    "the scaled times go beyond 584 years: choose a smaller factor".to_owned(),
                )
            })?;
        }
        Ok(more)
    }
    pass_through!();
}
