//! Several traces at the same time.

use crate::{Batch, Record, TraceError, TraceSource};

/// A source with its batch and the place in it.
pub(super) struct Reading<S> {
    pub source: S,
    batch: Batch,
    at: usize,
    ended: bool,
}

impl<S: TraceSource> Reading<S> {
    pub fn new(source: S) -> Self {
        Self { source, batch: Batch::new(), at: 0, ended: false }
    }

    /// The next record, without taking it.
    pub fn peek(&mut self) -> Result<Option<Record>, TraceError> {
        while self.at >= self.batch.len() {
            if self.ended {
                return Ok(None);
            }
            self.at = 0;
            self.ended = !self.source.next_batch(&mut self.batch)?;
        }
        Ok(Some(self.batch.get(self.at)))
    }

    /// Takes the record that was seen by [`Self::peek`].
    pub fn take(&mut self) {
        self.at += 1;
    }
}

/// The most sources that can be told apart by [`Record::stream`].
pub(super) const SOURCES: usize = 1 << 16;

pub(super) fn readings<S: TraceSource>(sources: Vec<S>) -> Result<Vec<Reading<S>>, TraceError> {
    if sources.is_empty() || sources.len() > SOURCES {
        return Err(TraceError::Request("traces to combine: from 1 to 65536".to_owned()));
    }
    Ok(sources.into_iter().map(Reading::new).collect())
}

/// Merges traces by arrival; equal arrivals go in the order of the sources. The stream is the source's number.
pub struct Merge<S> {
    readings: Vec<Reading<S>>,
}

impl<S: TraceSource> Merge<S> {
    /// Of at least one source.
    ///
    /// # Errors
    /// When there is none, or there are more than 65 536.
    pub fn new(sources: Vec<S>) -> Result<Self, TraceError> {
        Ok(Self { readings: readings(sources)? })
    }
}

impl<S: TraceSource> TraceSource for Merge<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        while !out.is_full() {
            let mut first: Option<(usize, Record)> = None;
            for (i, reading) in self.readings.iter_mut().enumerate() {
                if let Some(r) = reading.peek()?
                    && first.is_none_or(|(_, f)| r.arrival < f.arrival)
                {
                    first = Some((i, r));
                }
            }
            let Some((i, record)) = first else { break };
            self.readings[i].take();
            out.push(Record { stream: i as u16, ..record });
        }
        Ok(!out.is_empty())
    }
    fn device_name(&self, device: u32) -> String {
        self.readings[0].source.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.readings.iter().map(|r| r.source.skipped()).sum()
    }
    fn progress(&self) -> Option<f64> {
        let parts: Option<Vec<f64>> = self.readings.iter().map(|r| r.source.progress()).collect();
        parts.map(|p| p.iter().sum::<f64>() / p.len() as f64)
    }
}
