//! Several devices laid one behind the other.

use crate::{Batch, Record, Result, TraceError, TraceSource};
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::BTreeMap;

/// Devices a trace may have for this; the table's memory is about 50 bytes a device.
const LIMIT: usize = 1 << 20;

/// The extent of each device of a trace, found by reading it once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceExtents {
    ends: BTreeMap<u32, Lba>,
}

impl DeviceExtents {
    /// Reads the whole trace.
    ///
    /// # Errors
    /// Those of the source, and when it has more than a million devices.
    pub fn scan(source: &mut dyn TraceSource) -> Result<Self> {
        let mut extents = Self::default();
        let mut batch = Batch::new();
        while source.next_batch(&mut batch)? {
            extents.add(&batch)?;
        }
        Ok(extents)
    }

    /// Takes the requests of a batch into account.
    ///
    /// # Errors
    /// When there are more than a million devices.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        for r in batch.iter().filter(|r| r.op != HostOp::Flush) {
            let end = self.ends.entry(r.device).or_default();
            // A command for all zones says nothing of where the last one ends.
            let all = matches!(r.op, HostOp::Zone(_)) && r.blocks == Record::TO_END;
            *end = (*end).max(if all { r.lba } else { r.end() });
        }
        if self.ends.len() > LIMIT {
            return Err(TraceError::Request(
                "more than a million devices: they cannot be laid one behind the other".into(),
            ));
        }
        Ok(())
    }

    /// Each device with one past its last block, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Lba)> + '_ {
        self.ends.iter().map(|(d, e)| (*d, *e))
    }

    /// The space that all devices take together.
    pub fn total(&self) -> Blocks {
        Blocks(self.ends.values().fold(0, |sum, e| sum.saturating_add(e.0)))
    }

    /// Where each device begins: the prefix sum of the extents, by number.
    fn bases(&self) -> BTreeMap<u32, u64> {
        let mut base = 0;
        self.ends
            .iter()
            .map(|(d, end)| {
                let here = base;
                base += end.0;
                (*d, here)
            })
            .collect()
    }
}

/// Lays the devices of a trace one behind the other, as one device 0.
pub struct Concat<S> {
    inner: S,
    bases: BTreeMap<u32, u64>,
    last: (u32, u64),
}

impl<S: TraceSource> Concat<S> {
    /// `extents` must come from the same trace.
    ///
    /// # Errors
    /// When all devices together go beyond 2^63 blocks.
    pub fn new(inner: S, extents: &DeviceExtents) -> Result<Self> {
        if extents.total().0 > i64::MAX as u64 {
            return Err(TraceError::Request("all devices together go beyond 2^63 blocks".to_owned()));
        }
        let bases = extents.bases();
        let last = bases.first_key_value().map_or((0, 0), |(d, b)| (*d, *b));
        Ok(Self { inner, bases, last })
    }
}

impl<S: TraceSource> TraceSource for Concat<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        let more = self.inner.next_batch(out)?;
        for ((lba, device), op) in out.lba.iter_mut().zip(&mut out.device).zip(&out.op) {
            if *device != self.last.0 {
                let base = match self.bases.get(device) {
                    Some(base) => *base,
                    None if *op == HostOp::Flush => 0,
                    None => {
                        let what = format!("device {device} was not there when the extents were read");
                        return Err(TraceError::Request(what));
                    }
                };
                self.last = (*device, base);
            }
            lba.0 += self.last.1;
            *device = 0;
        }
        Ok(more)
    }
    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
}
