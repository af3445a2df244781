//! The stream of requests that everything here reads, wraps or makes.

use crate::{Batch, Result};

/// A trace as a stream of batches, in memory that does not grow with the trace.
///
/// Invariant: over all batches arrivals never fall.
pub trait TraceSource: Send {
    /// Replaces the rows of `out` by the next ones. `false`: the trace has ended and `out` is empty.
    ///
    /// # Errors
    /// When the trace cannot be read further; after that the source must not be used again.
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool>;

    /// The name that the trace gives a device, such as `hm_0`, `asu3` or `8,16`.
    fn device_name(&self, device: u32) -> String {
        device.to_string()
    }

    /// Lines or records that were bad and tolerated so far.
    fn skipped(&self) -> u64 {
        0
    }

    /// How much of the trace has been read, from 0 to 1, where that is known: for progress bars.
    fn progress(&self) -> Option<f64> {
        None
    }
}

impl<S: TraceSource + ?Sized> TraceSource for Box<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        (**self).next_batch(out)
    }
    fn device_name(&self, device: u32) -> String {
        (**self).device_name(device)
    }
    fn skipped(&self) -> u64 {
        (**self).skipped()
    }
    fn progress(&self) -> Option<f64> {
        (**self).progress()
    }
}

/// In an implementation of [`TraceSource`]: names, counts and progress are those of the field `inner`.
#[macro_export]
macro_rules! pass_through {
    () => {
        fn device_name(&self, device: u32) -> String {
            self.inner.device_name(device)
        }
        fn skipped(&self) -> u64 {
            self.inner.skipped()
        }
        fn progress(&self) -> Option<f64> {
            self.inner.progress()
        }
    };
}

/// A trace that is already in memory: for tests and small examples.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    rows: Batch,
    next: usize,
}

impl Memory {
    /// The records in the given order, which must be that of their arrivals.
    pub fn new(records: impl IntoIterator<Item = crate::Record>) -> Self {
        let mut rows = Batch::new();
        records.into_iter().for_each(|r| rows.push(r));
        Self { rows, next: 0 }
    }
}

impl TraceSource for Memory {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        let end = self.rows.len().min(self.next + Batch::ROWS);
        (self.next..end).for_each(|i| out.push(self.rows.get(i)));
        self.next = end;
        Ok(!out.is_empty())
    }
}

/// All records of a source: for tests and small traces only.
///
/// # Errors
/// Those of the source.
pub fn read_all(source: &mut dyn TraceSource) -> Result<Batch> {
    let (mut all, mut batch) = (Batch::new(), Batch::new());
    while source.next_batch(&mut batch)? {
        batch.iter().for_each(|r| all.push(r));
    }
    Ok(all)
}
