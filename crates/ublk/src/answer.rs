//! Requests of the kernel's, carried out on the device. Data go through `/dev/ublkcN`, each request's at a place of its own.

use crate::abi::{Op, Packed, Request, data_at};
use parking_lot::Mutex;
use smrlab_device::{Device, DeviceError};
use smrlab_units::{Blocks, Lba, Zone, ZoneAction, ZoneKind};
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes of the kernel's `struct blk_zone`, which has the numbers of REPORT ZONES.
const ZONE_BYTES: usize = 64;
/// "All of the request": the kernel takes the smaller of this and what it asked for.
const WHOLE: i32 = 1 << 30;

/// How a request ended: bytes or 0, or an errno below 0; and where an append began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub result: i32,
    pub appended: u64,
}

/// Carries out requests; the same for all threads.
pub(crate) struct Disk {
    device: Arc<Device>,
    /// `/dev/ublkcN`.
    pub data: File,
    /// Held while an append looks where it begins and writes there.
    appending: Mutex<()>,
}

fn errno(e: &DeviceError) -> i32 {
    -e.errno()
}

impl Disk {
    pub(crate) fn new(device: Arc<Device>, data: File) -> Self {
        Self { device, data, appending: Mutex::new(()) }
    }

    /// Carries out the request with this tag; `buffer` keeps its room for the next one. A panic ends the request and nothing else.
    pub(crate) fn answer(&self, tag: u16, request: Request, buffer: &mut Vec<u8>) -> Answer {
        let done = catch_unwind(AssertUnwindSafe(|| self.done(tag, request, buffer)));
        done.unwrap_or(Answer { result: -libc::EIO, appended: 0 })
    }

    fn done(&self, tag: u16, request: Request, buffer: &mut Vec<u8>) -> Answer {
        // A flush names no place: all ones.
        let (at, bytes) = (request.start.saturating_mul(512), u64::from(request.blocks) * 512);
        let moved = |done: Result<(), i32>| done.map(|()| bytes as i32);
        let plain = |done: smrlab_device::Result<()>| done.map(|()| 0).map_err(|e| errno(&e));
        let done = match request.op {
            Some(Op::Read) => moved(self.read(tag, at, bytes)),
            Some(Op::Write) => {
                moved(self.fetch(tag, bytes, buffer).and_then(|()| self.write(at, buffer, request.fua)))
            }
            Some(Op::ZoneAppend) => match self.append(tag, request, buffer) {
                Ok(appended) => return Answer { result: bytes as i32, appended },
                Err(e) => Err(e),
            },
            Some(Op::Flush) => plain(self.device.flush()),
            Some(Op::Discard) => plain(self.device.trim(at, bytes, request.fua)),
            Some(Op::Zeroes) => plain(self.device.zero(at, bytes, request.fua)),
            Some(Op::ReportZones) => self.report(tag, request),
            Some(Op::ZoneResetAll) => plain(self.device.zone(ZoneAction::Reset, None)),
            Some(Op::ZoneOpen) => plain(self.zone(ZoneAction::Open, request)),
            Some(Op::ZoneClose) => plain(self.zone(ZoneAction::Close, request)),
            Some(Op::ZoneFinish) => plain(self.zone(ZoneAction::Finish, request)),
            Some(Op::ZoneReset) => plain(self.zone(ZoneAction::Reset, request)),
            None => Err(-libc::EOPNOTSUPP),
        };
        Answer { result: done.unwrap_or_else(|e| e), appended: 0 }
    }

    fn zone(&self, action: ZoneAction, request: Request) -> smrlab_device::Result<()> {
        self.device.zone(action, Some(Lba(request.start)))
    }

    fn read(&self, tag: u16, at: u64, bytes: u64) -> Result<(), i32> {
        given(
            |take| self.device.lend(at, bytes, take).map_err(|e| errno(&e)),
            |from, piece| self.give(tag, from, piece),
        )
    }

    fn write(&self, at: u64, data: &[u8], fua: bool) -> Result<(), i32> {
        self.device.write(at, data, fua).map_err(|e| errno(&e))
    }

    /// Brings the data of a write.
    fn fetch(&self, tag: u16, bytes: u64, buffer: &mut Vec<u8>) -> Result<(), i32> {
        buffer.resize(bytes as usize, 0);
        self.data.read_exact_at(buffer, data_at(tag)).map_err(|e| -e.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Hands over the data of a read, or those from a byte on.
    fn give(&self, tag: u16, from: usize, data: &[u8]) -> Result<(), i32> {
        let at = data_at(tag) + from as u64;
        self.data.write_all_at(data, at).map_err(|e| -e.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Writes at the write pointer of a zone; answers where that was.
    fn append(&self, tag: u16, request: Request, buffer: &mut Vec<u8>) -> Result<u64, i32> {
        self.fetch(tag, u64::from(request.blocks) * 512, buffer)?;
        let _held = self.appending.lock();
        let mut at = None;
        let first = self.device.zones(Lba(request.start), &mut |zone| {
            at = zone.pointer;
            false
        });
        first.map_err(|e| errno(&e))?;
        let at = at.ok_or(-libc::EIO)?.0;
        self.write(at * 512, buffer, request.fua)?;
        Ok(at)
    }

    /// The zones from one on, as many as are asked for.
    fn report(&self, tag: u16, request: Request) -> Result<i32, i32> {
        let mut out = Vec::with_capacity(request.blocks as usize * ZONE_BYTES);
        let most = request.blocks as usize * ZONE_BYTES;
        let pitch = self.device.zone_limits().and_then(|limits| limits.pitch);
        let all = self.device.zones(Lba(request.start), &mut |zone| {
            // The kernel counts a gap as the end of the zone before it.
            if zone.kind != ZoneKind::Gap {
                out.extend(described(zone, pitch));
            }
            out.len() < most
        });
        all.map_err(|e| errno(&e))?;
        self.give(tag, 0, &out)?;
        Ok(WHOLE)
    }
}

/// Gives all pieces that are lent, up to the first that cannot be given: that one's error is the answer.
fn given(
    lend: impl FnOnce(&dyn Fn(usize, &[u8])) -> Result<(), i32>,
    give: impl Fn(usize, &[u8]) -> Result<(), i32>,
) -> Result<(), i32> {
    let given = Cell::new(Ok(()));
    let take = |from: usize, piece: &[u8]| {
        if given.get().is_ok() {
            given.set(give(from, piece));
        }
    };
    lend(&take)?;
    given.get()
}

/// A zone as `struct blk_zone` has it: its length is the distance to the next one, its capacity what can be written.
fn described(zone: &Zone, pitch: Option<Blocks>) -> [u8; ZONE_BYTES] {
    let (start, blocks) = (zone.start.0, zone.blocks.0);
    let length = pitch.filter(|_| zone.kind.has_pointer()).map_or(blocks, |p| p.0);
    // Where there is no pointer the kernel has the end of the zone.
    let pointer = zone.pointer.map_or(start + length, |at| at.0);
    let (kind, condition) = (zone.kind as u8, zone.condition as u8);
    let out = Packed::default().u64(start).u64(length).u64(pointer).u8(kind).u8(condition);
    out.u8(0).u8(0).u32(0).u64(blocks).array()
}

#[cfg(test)]
mod tests;
