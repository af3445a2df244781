//! A served device that is erased: FORMAT UNIT and SANITIZE, in the background or while the host waits.

use parking_lot::{Mutex, RwLock};
use smrlab_device::Device;
use smrlab_scsi::{Done, Erasing, Sense};
use smrlab_units::{BLOCK_BYTES, Lba, ZoneAction, ZoneKind};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are zeroed at a time.
const PIECE: u64 = 64 << 20;

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
        let (device, told) = (device.clone(), self.0.clone());
        let erase = move || {
            let done = zeroed(&device, &|done| *told.lock() = Some(why.going_on(done)));
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

/// Empties all zones, and zeroes what lies in none that can be emptied; `tell` is told how much is done.
fn zeroed(device: &Device, tell: &dyn Fn(u16)) -> smrlab_device::Result<()> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    if device.zone_limits().is_some() {
        device.zones_act(ZoneAction::Reset, None)?;
        device.zones(Lba(0), &mut |zone| {
            if zone.kind == ZoneKind::Conventional {
                parts.push(zone.start.0 * BLOCK_BYTES..zone.end().0 * BLOCK_BYTES);
            }
            true
        })?;
    } else {
        parts.push(0..device.size());
    }
    for part in parts {
        let mut at = part.start;
        while at < part.end {
            let length = PIECE.min(part.end - at);
            device.zero(at, length, false)?;
            at += length;
            tell((u128::from(at) * 0xffff / u128::from(device.size())) as u16);
        }
    }
    device.flush()
}
