//! Several traces at the same time.

use crate::{Batch, Record, Result, TraceError, TraceSource};
use std::collections::BTreeMap;

/// A source with its batch and the place in it.
pub(super) struct Reading<S> {
    pub source: S,
    batch: Batch,
    at: usize,
    ended: bool,
}

impl<S: TraceSource> Reading<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source, batch: Batch::new(), at: 0, ended: false }
    }

    /// The next record, without taking it.
    pub(super) fn peek(&mut self) -> Result<Option<Record>> {
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
    pub(super) fn take(&mut self) {
        self.at += 1;
    }
}

/// The most sources that can be told apart by [`Record::stream`].
pub(super) const SOURCES: usize = 1 << 16;

/// Refuses no source, and more than can be told apart.
pub(super) fn check(sources: usize) -> Result<()> {
    if sources == 0 || sources > SOURCES {
        return Err(TraceError::Request("traces to combine: from 1 to 65536".to_owned()));
    }
    Ok(())
}

/// The devices of several traces under common numbers: equal names mean the same device, others keep their number where
/// it is free and get the next free one otherwise.
pub(super) struct Devices {
    /// By source: the common number of each of its devices.
    numbers: Vec<BTreeMap<u32, u32>>,
    by_name: BTreeMap<String, u32>,
    names: BTreeMap<u32, String>,
    /// The device looked up last: source, its number, the common one.
    last: Option<(usize, u32, u32)>,
}

impl Devices {
    pub(super) fn new(sources: usize) -> Self {
        Self {
            numbers: vec![BTreeMap::new(); sources],
            by_name: BTreeMap::new(),
            names: BTreeMap::new(),
            last: None,
        }
    }

    /// The common number of device `own` of the `i`-th trace.
    pub(super) fn number(&mut self, i: usize, own: u32, source: &dyn TraceSource) -> u32 {
        if let Some((last, device, number)) = self.last
            && (last, device) == (i, own)
        {
            return number;
        }
        let number = match self.numbers[i].get(&own) {
            Some(number) => *number,
            None => self.enter(i, own, source.device_name(own)),
        };
        self.last = Some((i, own, number));
        number
    }

    fn enter(&mut self, i: usize, own: u32, name: String) -> u32 {
        let number = match self.by_name.get(&name) {
            Some(number) => *number,
            None => {
                let free = |n: &u32| !self.names.contains_key(n);
                let number = Some(own).filter(free).or_else(|| (0..=u32::MAX).find(free)).unwrap_or(own);
                self.names.insert(number, name.clone());
                self.by_name.insert(name, number);
                number
            }
        };
        self.numbers[i].insert(own, number);
        number
    }

    /// The name of a device by its common number.
    pub(super) fn name(&self, number: u32) -> String {
        self.names.get(&number).cloned().unwrap_or_else(|| number.to_string())
    }
}

/// Several traces that are read side by side.
pub(super) struct Several<S> {
    pub readings: Vec<Reading<S>>,
    devices: Devices,
}

impl<S: TraceSource> Several<S> {
    /// Of at least one source.
    ///
    /// # Errors
    /// When there is none, or there are more than 65 536.
    pub(super) fn new(sources: Vec<S>) -> Result<Self> {
        check(sources.len())?;
        let devices = Devices::new(sources.len());
        Ok(Self { readings: sources.into_iter().map(Reading::new).collect(), devices })
    }

    /// A record of the `i`-th source as it is emitted: its stream and the device's common number.
    pub(super) fn emitted(&mut self, i: usize, record: Record) -> Record {
        let device = self.devices.number(i, record.device, &self.readings[i].source);
        Record { stream: i as u16, device, ..record }
    }

    pub(super) fn device_name(&self, device: u32) -> String {
        self.devices.name(device)
    }

    pub(super) fn skipped(&self) -> u64 {
        self.readings.iter().map(|r| r.source.skipped()).sum()
    }

    pub(super) fn progress(&self) -> Option<f64> {
        let parts: Option<Vec<f64>> = self.readings.iter().map(|r| r.source.progress()).collect();
        parts.map(|p| p.iter().sum::<f64>() / p.len() as f64)
    }
}

/// Merges traces by arrival; equal arrivals go in the order of the sources. The stream is the source's number.
pub struct Merge<S> {
    inner: Several<S>,
}

impl<S: TraceSource> Merge<S> {
    /// Of at least one source.
    ///
    /// # Errors
    /// When there is none, or there are more than 65 536.
    pub fn new(sources: Vec<S>) -> Result<Self> {
        Ok(Self { inner: Several::new(sources)? })
    }
}

impl<S: TraceSource> TraceSource for Merge<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        while !out.is_full() {
            let mut first: Option<(usize, Record)> = None;
            for (i, reading) in self.inner.readings.iter_mut().enumerate() {
                if let Some(r) = reading.peek()?
                    && first.is_none_or(|(_, f)| r.arrival < f.arrival)
                {
                    first = Some((i, r));
                }
            }
            let Some((i, record)) = first else { break };
            self.inner.readings[i].take();
            out.push(self.inner.emitted(i, record));
        }
        Ok(!out.is_empty())
    }
    crate::pass_through!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_traces_as_streams_are_told_apart() {
        assert_eq!(
            [0, 1, 65_535, 65_536, 65_537].map(|n| check(n).is_ok()),
            [false, true, true, true, false]
        );
    }
}
