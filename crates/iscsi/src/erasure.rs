//! A served device that is erased: FORMAT UNIT and SANITIZE, in the background or while the host waits.

use parking_lot::{Mutex, RwLock};
use smrlab_device::Device;
use smrlab_scsi::{Done, Erasing, Sense};
use std::sync::Arc;

/// What hosts are told: of an erasure that is going on, or that the last one failed.
#[derive(Default)]
pub(crate) struct Erasure(pub(crate) Arc<Mutex<Option<Sense>>>);

impl Erasure {
    pub(crate) fn told(&self) -> Option<Sense> {
        *self.0.lock()
    }

    /// Fails while the device is being erased.
    pub(crate) fn begun(&self) -> Done {
        self.told().filter(|sense| sense.progress.is_some()).map_or(Ok(()), |sense| Err(sense.into()))
    }

    /// Erases a device, when those that hold `writers` are done; see [`Disk::erase`](smrlab_scsi::Disk::erase).
    pub(crate) fn erase(&self, device: &Arc<Device>, why: Erasing, wait: bool, writers: &RwLock<()>) -> Done {
        let mut told = self.0.lock();
        if let Some(going_on) = told.filter(|sense| sense.progress.is_some()) {
            return Err(going_on.into());
        }
        *told = Some(why.going_on(0));
        drop(told);
        drop(writers.write());
        device.begin_erasure();
        let (device, told) = (device.clone(), self.0.clone());
        let erase = move || {
            let done = device.erase(&|done| *told.lock() = Some(why.going_on(done)));
            *told.lock() = done.is_err().then(|| why.failed());
            done.map_err(|_| why.failed().into())
        };
        if wait {
            return erase();
        }
        std::thread::spawn(erase);
        Ok(())
    }
}
