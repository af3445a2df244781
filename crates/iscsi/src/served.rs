//! A served device as a SCSI disk.

use crate::chap::Secrets;
use crate::target::Target;
use parking_lot::{Mutex, RwLock};
use smrlab_device::config::Timing;
use smrlab_device::{Device, DeviceError};
use smrlab_scsi::{Change, Disk, Done, Extents, Facts, Fault, Kind, Modes, Reservations, Sense};
use smrlab_stl::Refusal;
use smrlab_units::{Blocks, Lba, Zone, ZoneAction};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Arc;

/// Commands of a session that the modelled drive may have at a time; a SATA drive's queue is as deep.
const DEPTH: usize = 32;

/// Serves a device at `address` (HOST:PORT) until the process ends.
///
/// # Errors
/// When nobody can listen there; when the file of secrets is none.
pub fn listen(device: Arc<Device>, address: &str) -> smrlab_device::Result<()> {
    let fail = |e| DeviceError::io(format!("iSCSI at {address}"), &e);
    let listener = TcpListener::bind(address).map_err(fail)?;
    // In modelled time commands wait for the drive, and its scheduler chooses among them.
    let workers = if device.config().timing == Timing::Model { DEPTH } else { 1 };
    let name = target_name(&device.config().name);
    let secrets = device.config().chap.as_deref().map(Secrets::read).transpose();
    let secrets = secrets.map_err(DeviceError::input)?;
    let target = Target::new(name, disk(device), workers).guarded(secrets);
    crate::listener::listen(Arc::new(target), listener).map_err(fail)
}

/// A served device as a SCSI disk.
pub fn disk(device: Arc<Device>) -> Box<dyn Disk + Send + Sync> {
    Box::new(Served::new(device))
}

/// The name of a device's target.
pub fn target_name(device: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    format!("iqn.2026-01.smrlab:{}", device.chars().map(allowed).collect::<String>())
}

struct Served {
    device: Arc<Device>,
    facts: Facts,
    modes: Mutex<Modes>,
    /// Held by all that commands do together, and alone by what changes it.
    reservations: RwLock<Reservations>,
    /// Held by writes together, and alone by what reads and then writes.
    writers: RwLock<()>,
}

impl Served {
    fn new(device: Arc<Device>) -> Self {
        let zones = device.zone_limits();
        let facts = Facts {
            blocks: Blocks(device.size() / 512),
            logical: device.block_size(),
            physical: device.physical_block(),
            product: device.config().layer.split(',').next().unwrap_or_default().to_owned(),
            serial: device.config().name.clone(),
            rpm: None,
            discards: device.can_trim(),
            kind: match zones {
                Some(limits) if limits.preferred.is_some() => Kind::HostAware(limits),
                Some(limits) => Kind::HostManaged(limits),
                None if device.drive_managed() => Kind::DriveManaged,
                None => Kind::Conventional,
            },
        };
        Self {
            device,
            facts,
            modes: Mutex::default(),
            reservations: RwLock::default(),
            writers: RwLock::default(),
        }
    }
}

/// The sense of a refusal, as ZBC-2 has it; a boundary that is crossed is that of a read, or of a write.
fn refused(why: Refusal, otherwise: Sense) -> Sense {
    match why {
        Refusal::NotAtPointer => Sense::UNALIGNED_WRITE,
        Refusal::CrossesZone if otherwise == Sense::UNRECOVERED_READ => Sense::READ_BOUNDARY,
        Refusal::CrossesZone => Sense::WRITE_BOUNDARY,
        Refusal::AbovePointer => Sense::READ_INVALID,
        Refusal::ZoneFull | Refusal::Unsupported => Sense::INVALID_FIELD,
        Refusal::TooManyOpen => Sense::ZONE_RESOURCES,
        Refusal::ZoneReadOnly => Sense::ZONE_READ_ONLY,
        Refusal::ZoneOffline => Sense::ZONE_OFFLINE,
        Refusal::Gap => Sense::GAP,
        Refusal::OutOfRange => Sense::OUT_OF_RANGE,
        Refusal::WriteProtected => Sense::WRITE_PROTECTED,
        Refusal::NoSpace => Sense::NO_SPACE,
        Refusal::Lost => otherwise,
    }
}

/// What a host is told of an error.
fn fault(e: &DeviceError, otherwise: Sense) -> Fault {
    if let Some((why, at)) = e.refusal() {
        return Fault { why: refused(why, otherwise), at };
    }
    let why = match e.errno() {
        libc::EPERM => Sense::WRITE_PROTECTED,
        libc::ENOSPC => Sense::NO_SPACE,
        libc::EINVAL => Sense::OUT_OF_RANGE,
        _ => otherwise,
    };
    Fault { why, at: e.destroyed_block().map(Lba) }
}

impl Disk for Served {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&self, lba: Lba, out: &mut [u8]) -> Done {
        self.device.read(lba.0 * 512, out).map_err(|e| fault(&e, Sense::UNRECOVERED_READ))
    }

    fn write(&self, lba: Lba, data: &[u8], fua: bool) -> Done {
        let _together = self.writers.read();
        self.device.write(lba.0 * 512, data, fua).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done {
        let _alone = self.writers.write();
        self.read(lba, bytes)?;
        change(bytes)?;
        self.device.write(lba.0 * 512, bytes, fua).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn extents(&self, lba: Lba, out: &mut Extents<'_>) -> Done {
        let mut at = lba.0 * 512;
        let mut goes_on = true;
        while goes_on && at < self.device.size() {
            let from = at;
            // The device may end early.
            let each = &mut |start: u64, length: u64, data: bool| {
                if goes_on {
                    goes_on = out(Lba(start / 512)..Lba((start + length) / 512), data);
                    at = start + length;
                }
            };
            let length = self.device.size() - from;
            self.device.extents(from, length, each).map_err(|e| fault(&e, Sense::UNRECOVERED_READ))?;
            if at == from {
                break;
            }
        }
        Ok(())
    }

    fn modes(&self) -> Modes {
        *self.modes.lock()
    }

    fn set_modes(&self, modes: Modes) {
        *self.modes.lock() = modes;
    }

    fn reserved(&self, look: &mut dyn FnMut(&Reservations)) {
        look(&self.reservations.read());
    }

    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations)) {
        change(&mut self.reservations.write());
    }

    fn flush(&self) -> Done {
        self.device.flush().map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn discard(&self, lba: Lba, blocks: Blocks) -> Done {
        let _together = self.writers.read();
        self.device.trim(lba.0 * 512, blocks.bytes(), false).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn zone(&self, action: ZoneAction, zones: Option<Range<Lba>>) -> Done {
        let _together = self.writers.read();
        self.device.zones_act(action, zones).map_err(|e| fault(&e, Sense::WRITE_ERROR))
    }

    fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        // Asked only of a device that has some.
        let _ = self.device.zones(from, out);
    }
}
