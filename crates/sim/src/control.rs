//! What a caller on another thread may see and do while a run is under way.

use crate::error::{Result, RunError};
use smrlab_trace::Stop;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where prefills are kept, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The folder; it is made.
    pub folder: PathBuf,
    /// The most that the files there may take, in bytes: the longest unused go.
    pub bytes: u64,
    /// Which program it is: what another one kept is not taken.
    pub program: String,
}

/// Does both, at the same time where it can.
pub type Together = fn(&mut (dyn FnMut() + Send), &mut (dyn FnMut() + Send));

/// Cancel flag and progress of one run; shared by reference or `Arc`.
#[derive(Debug, Default)]
pub struct Control {
    cancel: Stop,
    requests: AtomicU64,
    share: AtomicU64,
    prefilling: AtomicBool,
    keep: Option<Keep>,
    together: Option<Together>,
}

impl Control {
    /// Nothing done, not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for runs whose prefills are kept in files, and taken from there.
    pub fn keeping(keep: Option<Keep>) -> Self {
        Self { keep, ..Self::default() }
    }

    /// The same for runs that do what they can at the same time by way of `together`: this crate has no threads.
    #[must_use]
    pub fn doing(self, together: Together) -> Self {
        Self { together: Some(together), ..self }
    }

    /// Does both, in any order or at the same time.
    pub(crate) fn together(&self, one: &mut (dyn FnMut() + Send), other: &mut (dyn FnMut() + Send)) {
        if let Some(together) = self.together {
            return together(one, other);
        }
        one();
        other();
    }

    /// Where prefills are kept.
    pub(crate) fn keep(&self) -> Option<&Keep> {
        self.keep.as_ref()
    }

    /// Asks the run to stop; it does so within a few milliseconds.
    pub fn cancel(&self) {
        self.cancel.ask();
    }

    /// Whether it was asked to stop.
    pub fn cancelled(&self) -> bool {
        self.cancel.asked()
    }

    /// What ends the reading of traces when the run is asked to stop.
    pub(crate) fn stop(&self) -> &Stop {
        &self.cancel
    }

    /// Host requests served so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The share of the trace that has been read, from 0 to 1; 0 where it is not known.
    pub fn share(&self) -> f64 {
        f64::from_bits(self.share.load(Ordering::Relaxed))
    }

    /// Called by the engine now and then.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled() { Err(RunError::Interrupted) } else { Ok(()) }
    }

    /// Whether what is under way is not the trace yet, but what is written before it; [`share`](Self::share) is of that.
    pub fn prefills(&self) -> bool {
        self.prefilling.load(Ordering::Relaxed)
    }

    /// Called by whoever writes before the run: the share that is written.
    pub(crate) fn prefilling(&self, share: f64) {
        self.prefilling.store(true, Ordering::Relaxed);
        self.share.store(share.to_bits(), Ordering::Relaxed);
    }

    /// Called by whoever reads the trace.
    pub fn progress(&self, requests: u64, share: Option<f64>) {
        if self.prefills() {
            self.prefilling.store(false, Ordering::Relaxed);
            self.share.store(0, Ordering::Relaxed);
        }
        self.requests.store(requests, Ordering::Relaxed);
        if let Some(share) = share {
            self.share.store(share.to_bits(), Ordering::Relaxed);
        }
    }
}
