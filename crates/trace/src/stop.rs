//! Ending a trace's reading from outside.

use crate::{Batch, Result, TraceError, TraceSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells whoever reads to stop, from another thread. Copies of it are one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks to stop; that cannot be taken back.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`TraceError::Stopped`], once somebody asked.
    pub fn check(&self) -> Result<()> {
        if self.asked() { Err(TraceError::Stopped) } else { Ok(()) }
    }
}

/// A trace that ends with an error once somebody asks to stop.
pub(crate) struct Stoppable<S> {
    inner: S,
    stop: Stop,
}

impl<S: TraceSource> Stoppable<S> {
    pub(crate) fn new(inner: S, stop: &Stop) -> Self {
        Self { inner, stop: stop.clone() }
    }
}

impl<S: TraceSource> TraceSource for Stoppable<S> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        self.stop.check()?;
        self.inner.next_batch(out)
    }
    crate::pass_through!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressSpace, Mix, OpenContext, combine, open};

    /// Whatever it is made of, and however it is opened.
    #[test]
    fn a_trace_ends_when_it_is_told_to() {
        let file = std::env::temp_dir().join(format!("smrlab-stop-{}.csv", std::process::id()));
        let row = "128166372003061629,hm,1,Read,383496192,32768,413\n";
        std::fs::write(&file, row.repeat(3 * Batch::ROWS)).unwrap();
        let synth = "synth:uniform,requests=1000000,span=1GB".to_owned();
        for text in [synth, format!("{}:msr", file.display())] {
            let texts = std::slice::from_ref(&text);
            for is_combined in [false, true] {
                let context = OpenContext::default();
                let mut source = match is_combined {
                    false => open(&text, &context),
                    true => combine(texts, AddressSpace::Overlap, Mix::ByTime, &context),
                }
                .unwrap();
                let mut batch = Batch::new();
                assert!(source.next_batch(&mut batch).unwrap(), "{text}");
                context.stop.ask();
                assert!(matches!(source.next_batch(&mut batch), Err(TraceError::Stopped)), "{text}");
            }
        }
        std::fs::remove_file(&file).unwrap();
    }
}
