//! `/dev/ublk-control`: makes devices, starts, stops and deletes them, and takes over those of a server that died.
#![allow(unsafe_code)]

use crate::abi;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use smrlab_device::{DeviceError, Result};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

const CONTROL: &str = "/dev/ublk-control";

/// The file of control, with a ring of one command at a time.
pub(crate) struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    /// Opens it.
    ///
    /// # Errors
    /// Where the kernel has no ublk, or an old one, or we may not.
    pub(crate) fn open() -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|e| {
            DeviceError::io(format!("opening {CONTROL} (as root: modprobe ublk_drv; Linux 6.5 or newer)"), &e)
        })?;
        let ring =
            IoUring::builder().build(4).map_err(|e| DeviceError::io("making a ring of io_uring", &e))?;
        let mut control = Self { file, ring };
        let mut features = [0; 8];
        let place = (features.as_mut_ptr() as u64, features.len());
        let old = || {
            DeviceError::new(
                libc::EOPNOTSUPP,
                "this kernel's ublk is too old: Linux 6.5 or newer has what is needed",
            )
        };
        control.send(abi::GET_FEATURES, u32::MAX, place, 0).map_err(|_| old())?;
        if u64::from_ne_bytes(features) & abi::USER_COPY == 0 {
            return Err(old());
        }
        Ok(control)
    }

    /// Makes a device; answers its number.
    pub(crate) fn add(&mut self, depth: u16, transfer: u32, flags: u64) -> Result<u32> {
        let mut info = abi::info(depth, transfer, flags);
        let place = (info.as_mut_ptr() as u64, info.len());
        self.command("making a device", abi::ADD_DEV, u32::MAX, place, 0)?;
        Ok(abi::number_of(&info))
    }

    /// Says what the disk is like.
    pub(crate) fn set(&mut self, id: u32, shape: &abi::Shape) -> Result<()> {
        let params = abi::params(shape);
        self.command("describing the disk", abi::SET_PARAMS, id, (params.as_ptr() as u64, params.len()), 0)
    }

    /// Has the block device appear; queues must fetch requests by then, as the kernel reads from it.
    pub(crate) fn start(&mut self, id: u32) -> Result<()> {
        self.command("starting the device", abi::START_DEV, id, (0, 0), u64::from(std::process::id()))
    }

    /// Begins to take over a device whose server died.
    pub(crate) fn start_recovery(&mut self, id: u32) -> Result<()> {
        self.command("taking over the device", abi::START_RECOVERY, id, (0, 0), 0)
    }

    /// Ends that; queues must fetch requests by then.
    pub(crate) fn end_recovery(&mut self, id: u32) -> Result<()> {
        self.command("taking over the device", abi::END_RECOVERY, id, (0, 0), u64::from(std::process::id()))
    }

    /// Takes the block device away; requests that come then fail.
    pub(crate) fn stop(&mut self, id: u32) -> Result<()> {
        self.command("stopping the device", abi::STOP_DEV, id, (0, 0), 0)
    }

    /// Deletes the device.
    pub(crate) fn delete(&mut self, id: u32) -> Result<()> {
        self.command("deleting the device", abi::DEL_DEV, id, (0, 0), 0)
    }

    fn command(&mut self, what: &str, command: u32, id: u32, place: (u64, usize), data: u64) -> Result<()> {
        self.send(command, id, place, data).map_err(|errno| {
            DeviceError::io(format!("ublk: {what}"), &std::io::Error::from_raw_os_error(errno))
        })
    }

    /// Sends one command and waits for its end; the errno where it fails.
    fn send(
        &mut self,
        command: u32,
        id: u32,
        place: (u64, usize),
        data: u64,
    ) -> std::result::Result<(), i32> {
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(fd, command).cmd(abi::control(id, place, data)).build();
        // SAFETY: what `place` names lives until the command has ended, which is waited for here.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| libc::EBUSY)?;
        while let Err(e) = self.ring.submit_and_wait(1) {
            if e.raw_os_error() != Some(libc::EINTR) {
                return Err(e.raw_os_error().unwrap_or(libc::EIO));
            }
        }
        match self.ring.completion().next().map(|done| done.result()) {
            Some(0..) => Ok(()),
            Some(errno) => Err(-errno),
            None => Err(libc::EIO),
        }
    }
}
