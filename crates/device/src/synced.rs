//! How much of a log is durable: of a medium's, and of the one that an array keeps beside its disks.

use crate::error::{DeviceError, Result};
use crate::scan::Position;
use parking_lot::Mutex;

/// What is known to be durable; locked while more becomes so, so that flushes that come meanwhile share the next one.
#[derive(Default)]
pub(crate) struct Synced(Mutex<Known>);

#[derive(Default)]
struct Known {
    upto: Position,
    /// Once the system could not write something, nobody knows what else it forgot.
    failed: Option<DeviceError>,
}

impl Synced {
    /// Makes all before `wanted` durable by `sync`, which answers up to where all is so then. Answers whether there was anything to do.
    ///
    /// # Errors
    /// Those of `sync`; every later call fails then, because what was still to be written may be gone.
    pub(crate) fn reach(&self, wanted: Position, sync: impl FnOnce() -> Result<Position>) -> Result<bool> {
        let mut known = self.0.lock();
        if let Some(e) = &known.failed {
            return Err(e.clone());
        }
        if known.upto >= wanted {
            return Ok(false);
        }
        match sync() {
            Ok(upto) => known.upto = upto,
            Err(e) => {
                let text = format!("an earlier flush failed ({e}): start the device again");
                known.failed = Some(DeviceError::new(libc::EIO, text));
                return Err(e);
            }
        }
        Ok(true)
    }

    /// Whether all before a position is known to be durable; not while more becomes so, for which nobody waits here.
    pub(crate) fn covers(&self, position: Position) -> bool {
        self.0.try_lock().is_some_and(|known| known.failed.is_none() && known.upto >= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is durable is not synced again; and after a sync that failed nothing is durable any more, though the next one would succeed.
    #[test]
    fn after_a_sync_that_failed_nothing_more_is_durable() {
        let (synced, at) = (Synced::default(), |index| Position { epoch: 2, index });
        assert!(synced.reach(at(5), || Ok(at(6))).unwrap());
        assert!(!synced.reach(at(6), || panic!("all of it is durable")).unwrap());
        assert!(synced.covers(at(6)) && !synced.covers(at(7)));
        let full = || Err(DeviceError::new(libc::ENOSPC, "no space"));
        assert_eq!(synced.reach(at(9), full).unwrap_err().errno(), libc::ENOSPC);
        let e = synced.reach(at(9), || Ok(at(9))).unwrap_err();
        assert_eq!(e.errno(), libc::EIO);
        assert!(e.to_string().contains("start the device again"), "{e}");
        assert!(!synced.covers(at(9)));
    }
}
