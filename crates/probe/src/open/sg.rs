//! Commands to a disk: the SG_IO ioctl of Linux, the one place that has it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// What takes commands.
pub(super) trait Port {
    /// A command that answers with data.
    fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()>;
    /// A command with data or none.
    fn tell(&mut self, cdb: &[u8], data: &[u8]) -> io::Result<()>;
}

/// Commands to a block device by the SG_IO ioctl of Linux.
#[derive(Debug)]
pub(super) struct Sg(pub File);

/// `sg_io_hdr`, version 3.
#[repr(C)]
struct Header {
    interface_id: libc::c_int,
    direction: libc::c_int,
    cdb_length: u8,
    sense_room: u8,
    pieces: u16,
    length: u32,
    data: *mut libc::c_void,
    cdb: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: libc::c_int,
    user: *mut libc::c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    left: libc::c_int,
    duration: u32,
    info: u32,
}

const SG_IO: libc::c_ulong = 0x2285;
const NONE: libc::c_int = -1;
const TO_DEVICE: libc::c_int = -2;
const FROM_DEVICE: libc::c_int = -3;
/// A drive that empties its write cache first may take this long.
const PATIENCE_MS: u32 = 30_000;

impl Sg {
    /// `data` must be good for writing where the device answers with data.
    fn send(&self, cdb: &[u8], direction: libc::c_int, data: *mut u8, length: usize) -> io::Result<()> {
        let mut sense = [0u8; 32];
        let mut header = Header {
            interface_id: libc::c_int::from(b'S'),
            direction,
            cdb_length: cdb.len() as u8,
            sense_room: sense.len() as u8,
            pieces: 0,
            length: length as u32,
            data: data.cast(),
            cdb: cdb.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms: PATIENCE_MS,
            flags: 0,
            pack_id: 0,
            user: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            message_status: 0,
            sense_length: 0,
            host_status: 0,
            driver_status: 0,
            left: 0,
            duration: 0,
            info: 0,
        };
        // SAFETY: all pointers are to memory of the lengths given, which lives until the call returns.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), SG_IO as _, &raw mut header) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        // Bit 0: a status other than good, of the device, the host or the driver.
        if header.info & 1 != 0 {
            return Err(io::Error::other(format!("the device refuses the command {:#04x}", cdb[0])));
        }
        Ok(())
    }
}

impl Port for Sg {
    fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()> {
        self.send(cdb, FROM_DEVICE, answer.as_mut_ptr(), answer.len())
    }

    fn tell(&mut self, cdb: &[u8], data: &[u8]) -> io::Result<()> {
        let direction = if data.is_empty() { NONE } else { TO_DEVICE };
        self.send(cdb, direction, data.as_ptr().cast_mut(), data.len())
    }
}
