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
        let device = self.0.as_raw_fd();
        exchange(cdb, direction, data, length, |header| {
            // SAFETY: all pointers are to memory of the lengths given, which lives until the call returns.
            let done = unsafe { libc::ioctl(device, SG_IO as _, &raw mut *header) };
            if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    }
}

/// A command by whatever carries it to the device.
fn exchange(
    cdb: &[u8],
    direction: libc::c_int,
    data: *mut u8,
    length: usize,
    carry: impl FnOnce(&mut Header) -> io::Result<()>,
) -> io::Result<()> {
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
    carry(&mut header)?;
    // Bit 0: a status other than good, of the device, the host or the driver.
    if header.info & 1 != 0 {
        return Err(io::Error::other(format!("the device refuses the command {:#04x}", cdb[0])));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel is told of a command, field by field as the header of `sg` has them, before and behind pointers; nothing in a field
    /// that it fills.
    #[test]
    fn the_kernel_is_told_of_a_command_as_it_is() {
        let cdb = [0x12, 1, 0xb1, 0x02, 0x3c, 0];
        let mut data = [7u8; 40];
        let at = data.as_mut_ptr();
        exchange(&cdb, FROM_DEVICE, at, data.len(), |h| {
            assert_eq!((h.interface_id, h.direction, h.timeout_ms), (0x53, -3, 30_000));
            assert_eq!((h.cdb_length, h.cdb, h.length, h.data), (6, cdb.as_ptr(), 40, at.cast()));
            assert!(h.sense_room == 32 && !h.sense.is_null() && h.user.is_null());
            let words = [u32::from(h.pieces), h.flags, u32::from(h.host_status), u32::from(h.driver_status)];
            let bytes = [h.status, h.masked_status, h.message_status, h.sense_length];
            assert_eq!((words, bytes), ([0; 4], [0; 4]));
            assert_eq!([h.pack_id, h.left, h.duration as i32, h.info as i32], [0; 4]);
            Ok(())
        })
        .unwrap();
        assert_eq!(
            std::mem::offset_of!(Header, info),
            if cfg!(target_pointer_width = "64") { 80 } else { 60 }
        );
    }

    /// A command that the kernel does not take, and one that the device refuses; other bits of its information are no refusal.
    #[test]
    fn what_refuses_a_command_is_said() {
        let sent = |info: u32, done: io::Result<()>| {
            exchange(&[0x85, 0], NONE, std::ptr::null_mut(), 0, |header| {
                header.info = info;
                done
            })
        };
        assert!(sent(0, Ok(())).is_ok() && sent(6, Ok(())).is_ok());
        for info in [1, 3, u32::MAX] {
            assert_eq!(sent(info, Ok(())).unwrap_err().to_string(), "the device refuses the command 0x85");
        }
        let e = sent(0, Err(io::Error::from_raw_os_error(libc::ENODEV))).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENODEV));
        // What is no device takes none.
        let mut none = Sg(File::open("/dev/null").unwrap());
        assert_eq!(
            none.ask(&[0x12, 0, 0, 0, 36, 0], &mut [0; 36]).unwrap_err().raw_os_error(),
            Some(libc::ENOTTY)
        );
        assert_eq!(none.tell(&[0x85], &[]).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
