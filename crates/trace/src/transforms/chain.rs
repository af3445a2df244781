//! Traces one after the other in time.

use super::merge::Devices;
use crate::{Batch, Result, TraceError, TraceSource};
use smrlab_units::SimTime;
use std::vec::IntoIter;

/// Emits one trace after the other: each begins a gap after the last arrival of the one before it, its own times counting
/// from there. The stream is the trace's number. A trace is closed when its end was read.
pub struct Chain<S> {
    /// The trace that is being read, and those behind it.
    source: Option<S>,
    rest: IntoIter<S>,
    gap: SimTime,
    /// Traces in all, and before the one that is being read.
    count: usize,
    at: usize,
    /// Bad lines in those.
    skipped: u64,
    /// Where the trace that is being read begins.
    base: SimTime,
    last: SimTime,
    devices: Devices,
}

impl<S: TraceSource> Chain<S> {
    /// Of at least one source, which all begin to count their times at 0.
    ///
    /// # Errors
    /// When there is none, or there are more than 65 536.
    pub fn new(sources: Vec<S>, gap: SimTime) -> Result<Self> {
        super::merge::check(sources.len())?;
        let (count, devices) = (sources.len(), Devices::new(sources.len()));
        let mut rest = sources.into_iter();
        let source = rest.next();
        let (base, last) = (SimTime::ZERO, SimTime::ZERO);
        Ok(Self { source, rest, gap, count, at: 0, skipped: 0, base, last, devices })
    }
}

impl<S: TraceSource> TraceSource for Chain<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        while let Some(source) = &mut self.source {
            if source.next_batch(out)? {
                for at in &mut out.arrival {
                    let later = at.0.checked_add(self.base.0);
                    *at = later.map(SimTime).ok_or_else(|| {
                        TraceError::Request("the traces together take more than 584 years".to_owned())
                    })?;
                }
                self.last = out.arrival.last().copied().unwrap_or(self.last);
                for (device, stream) in out.device.iter_mut().zip(&mut out.stream) {
                    *device = self.devices.number(self.at, *device, source);
                    *stream = self.at as u16;
                }
                return Ok(true);
            }
            self.skipped += source.skipped();
            self.source = self.rest.next();
            self.at += 1;
            self.base = SimTime(self.last.0.saturating_add(self.gap.0));
        }
        out.clear();
        Ok(false)
    }
    fn device_name(&self, device: u32) -> String {
        self.devices.name(device)
    }
    fn skipped(&self) -> u64 {
        self.skipped + self.source.as_ref().map_or(0, TraceSource::skipped)
    }
    fn progress(&self) -> Option<f64> {
        let part = self.source.as_ref().map_or(Some(0.0), TraceSource::progress)?;
        Some((self.at as f64 + part) / self.count as f64)
    }
}
