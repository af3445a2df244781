//! A device as a block device of the kernel (`/dev/ublkbN`), without a client in between: ublk, from Linux 6.5 on.
//!
//! The kernel's driver puts requests into a table and tells a ring of `io_uring`; data are read and written at places of `/dev/ublkcN`
//! (`UBLK_F_USER_COPY`, which zones need). The crate `libublk` does the same; it builds only where libclang is, and takes 90 other
//! crates, which is too much for what every build has.

mod abi;
mod answer;
mod control;
mod queue;

use abi::Shape;
use answer::Disk;
use control::Control;
use smrlab_device::config::Timing;
use smrlab_device::{Device, DeviceError, Result};
use smrlab_units::{Blocks, Lba, ZoneKind};
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Requests that the kernel may send at a time.
const DEPTH: u16 = 64;
/// Requests that are with the modelled drive at a time; a SATA drive's queue is as deep.
const WORKERS: usize = 32;
/// Bytes of the largest transfer.
const TRANSFER: u32 = 1 << 20;
/// How long nodes may take to appear, and the kernel to notice that a server died.
const PATIENCE: Duration = Duration::from_secs(20);

/// A block device of the kernel, which goes when this is dropped.
pub struct Attached {
    id: u32,
    /// Both are there until it goes.
    disk: Option<Arc<Disk>>,
    queue: Option<JoinHandle<()>>,
}

impl Attached {
    /// Its number: that of `/dev/ublkbN`.
    pub fn number(&self) -> u32 {
        self.id
    }

    /// The block device.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/ublkb{}", self.id))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let Ok(mut control) = Control::open() else { return };
        let _ = control.stop(self.id);
        if let Some(queue) = self.queue.take() {
            let _ = queue.join();
        }
        // The kernel waits until nobody has its file open.
        self.disk = None;
        let _ = control.delete(self.id);
    }
}

/// Serves `device` as a new block device; or as the one with the number `again`, whose server died.
///
/// # Errors
/// Where the kernel has no ublk, or we may not; where there is no such device, or its server lives.
pub fn attach(device: Arc<Device>, again: Option<u32>) -> Result<Attached> {
    let mut control = Control::open()?;
    let shape = shape(&device)?;
    let id = match again {
        Some(id) => {
            patiently(libc::EBUSY, || control.start_recovery(id))?;
            id
        }
        None => {
            let flags = abi::USER_RECOVERY | abi::RECOVERY_REISSUE | abi::COMMAND_ENCODED | abi::USER_COPY;
            control.add(DEPTH, TRANSFER, flags | if shape.zone > Blocks::ZERO { abi::ZONED } else { 0 })?
        }
    };
    // From here on the device goes where anything fails; but not one that others have mounted.
    let mut attached = Attached { id, disk: None, queue: None };
    let served = serve(&mut attached, &mut control, device, again.is_none().then_some(&shape));
    match served {
        Ok(()) => Ok(attached),
        Err(e) => {
            if again.is_some() {
                std::mem::forget(attached);
            }
            Err(e)
        }
    }
}

/// Starts the queue, and then the device; where it is a new one, of this shape.
fn serve(
    attached: &mut Attached,
    control: &mut Control,
    device: Arc<Device>,
    new: Option<&Shape>,
) -> Result<()> {
    let workers = if device.config().timing == Timing::Model { WORKERS } else { 0 };
    let path = format!("/dev/ublkc{}", attached.id);
    let open =
        || OpenOptions::new().read(true).write(true).open(&path).map_err(|e| DeviceError::io(&path, &e));
    let data = patiently(libc::ENOENT, open)?;
    if let Some(shape) = new {
        control.set(attached.id, shape)?;
    }
    let disk = Arc::new(Disk::new(device, data));
    attached.disk = Some(disk.clone());
    attached.queue = Some(queue::start(disk, DEPTH, workers)?);
    match new {
        Some(_) => control.start(attached.id),
        None => control.end_recovery(attached.id),
    }
}

/// What the kernel is told of the disk.
fn shape(device: &Device) -> Result<Shape> {
    let limits = device.zone_limits().filter(|limits| limits.preferred.is_none());
    // Zones are written in whole physical blocks, and a ublk disk can say that of its logical blocks alone.
    let logical = if limits.is_some() { device.physical_block() } else { device.block_size() };
    let (mut zone, mut zones) = (Blocks::ZERO, 0);
    if limits.is_some() {
        device.zones(Lba(0), &mut |z| {
            zone = zone.max(z.blocks);
            zones += u32::from(z.kind != ZoneKind::Gap);
            true
        })?;
    }
    zone = limits.and_then(|l| l.pitch).unwrap_or(zone);
    let open = limits.and_then(|l| l.most_open).unwrap_or(0);
    Ok(Shape {
        logical,
        physical: device.physical_block(),
        size: Blocks(device.size() / 512),
        transfer: Blocks(u64::from(TRANSFER) / 512),
        zone,
        open: open.min(zones),
        discards: device.can_trim(),
    })
}

/// Does it again until it fails with another error than `errno`, or for too long.
fn patiently<T>(errno: i32, mut f: impl FnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match f() {
            Err(e) if e.errno() == errno && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20))
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn device(layer: &str) -> Arc<Device> {
        let config =
            json!({"name": "u", "drive": "tiny", "layer": layer, "store": "memory", "timing": "none"});
        Device::open(serde_json::from_value(config).unwrap()).unwrap()
    }

    /// Of a host-aware drive no zones; of a host-managed one at most as many open as it has.
    #[test]
    fn the_kernel_is_told_what_the_disk_is() {
        for (layer, (bytes, physical), zone, open, discards) in [
            ("cmr", (512, 512), 0, 0, false),
            ("log", (512, 512), 0, 0, true),
            ("host-aware,zone=64KiB", (512, 4096), 0, 0, true),
            ("zoned,zone=64KiB", (4096, 4096), 128, 16, false),
            ("zoned,zone=64KiB,capacity=48KiB,max_open=3", (4096, 4096), 128, 3, false),
        ] {
            let device = device(layer);
            let told = shape(&device).unwrap();
            let size = (told.size.bytes(), told.transfer.bytes());
            assert_eq!(size, (device.size(), u64::from(TRANSFER)), "{layer}");
            assert_eq!((told.logical, told.physical), (bytes, physical), "{layer}");
            assert_eq!((told.zone, told.open, told.discards), (Blocks(zone), open, discards), "{layer}");
        }
    }

    /// A limit of open zones that is never met is told as the number of zones: gaps between them are none.
    #[test]
    fn no_more_zones_are_said_to_be_open_than_there_are() {
        let layer = |most: u32| format!("zoned,zone=64KiB,capacity=48KiB,max_open={most}");
        let (mut zones, mut gaps) = (0, 0);
        let count = &mut |zone: &smrlab_units::Zone| {
            *if zone.kind == ZoneKind::Gap { &mut gaps } else { &mut zones } += 1;
            true
        };
        device(&layer(1)).zones(Lba(0), count).unwrap();
        assert!(gaps > 1);
        for (most, open) in [(zones - 1, zones - 1), (zones + 1, zones), (zones + gaps, zones)] {
            assert_eq!(shape(&device(&layer(most))).unwrap().open, open);
        }
    }
}
