//! Who watches while a drive is looked at.

use crate::{ProbeError, Result};

/// Is told how far it is, and can stop it.
pub trait Watch {
    /// `stage` is under way, `share` of it is done (0 to 1); `at` is the target's clock in seconds.
    fn progress(&mut self, stage: &str, share: f64, at: f64) {
        let _ = (stage, share, at);
    }

    /// Whether to stop.
    fn stopped(&self) -> bool {
        false
    }

    /// [`stopped`](Self::stopped) as an error.
    ///
    /// # Errors
    /// [`ProbeError::Interrupted`].
    fn check(&self) -> Result<()> {
        if self.stopped() { Err(ProbeError::Interrupted) } else { Ok(()) }
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Watch for Quiet {}
