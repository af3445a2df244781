//! The nbdkit plugin: `nbdkit smrlab-plugin.so config=FILE.json`. Glue only: everything happens in `smrlab-device`.
#![allow(unsafe_code)]

mod clients;
mod control;

use nbdkit::{Error, ExtentHandle, ExtentType, Flags, FuaFlags, Result, Server, ThreadModel};
use smrlab_device::{Config, Device, DeviceError};
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

static CONFIG: OnceLock<PathBuf> = OnceLock::new();
static DEVICE: OnceLock<Arc<Device>> = OnceLock::new();

/// A connection. The device is one for all of them.
struct Connection {
    device: &'static Device,
    writable: bool,
}

fn error(e: &DeviceError) -> Error {
    Error::new(e.errno(), e.to_string().replace('\0', " "))
}

/// A panic must not end the server with all its connections.
fn guarded<T>(f: impl FnOnce() -> smrlab_device::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(done) => done.map_err(|e| error(&e)),
        Err(_) => Err(Error::new(libc::EIO, "internal error: please report it with the server's log")),
    }
}

impl Server for Connection {
    fn name() -> &'static str {
        "smrlab"
    }

    fn longname() -> Option<&'static str> {
        Some("smrlab shingled disk")
    }

    fn version() -> Option<&'static str> {
        Some(env!("CARGO_PKG_VERSION"))
    }

    fn description() -> Option<&'static str> {
        Some("A shingled disk, or any smrlab translation layer on one, with real bytes.")
    }

    fn config_help() -> Option<&'static str> {
        Some("config=FILE     (required) The device, as written by 'smrlab device create'.")
    }

    fn magic_config_key() -> Option<&'static str> {
        Some("config")
    }

    fn config(key: &str, value: &str) -> Result<()> {
        match key {
            "config" if CONFIG.set(PathBuf::from(value)).is_ok() => Ok(()),
            "config" => Err(Error::new(libc::EINVAL, "config was given twice")),
            _ => Err(Error::new(
                libc::EINVAL,
                format!("unknown parameter '{key}'; the only one is config=FILE"),
            )),
        }
    }

    fn config_complete() -> Result<()> {
        if CONFIG.get().is_some() { Ok(()) } else { Err(Error::new(libc::EINVAL, "config=FILE is missing")) }
    }

    fn after_fork() -> Result<()> {
        guarded(start)
    }

    fn thread_model() -> Result<ThreadModel> {
        Ok(ThreadModel::Parallel)
    }

    fn open(readonly: bool) -> Result<Box<dyn Server>> {
        let device = DEVICE.get().ok_or_else(|| Error::new(libc::EIO, "the device is not open"))?;
        Ok(Box::new(Connection { device, writable: !readonly }))
    }

    fn get_size(&self) -> Result<i64> {
        Ok(self.device.size() as i64)
    }

    fn can_write(&self) -> Result<bool> {
        Ok(self.writable)
    }

    fn can_flush(&self) -> Result<bool> {
        Ok(true)
    }

    fn can_fua(&self) -> Result<FuaFlags> {
        Ok(FuaFlags::Native)
    }

    fn can_trim(&self) -> Result<bool> {
        Ok(self.device.can_trim())
    }

    fn can_zero(&self) -> Result<bool> {
        Ok(true)
    }

    fn can_multi_conn(&self) -> Result<bool> {
        Ok(true)
    }

    fn can_extents(&self) -> Result<bool> {
        Ok(true)
    }

    fn is_rotational(&self) -> Result<bool> {
        Ok(true)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        guarded(|| self.device.read(offset, buf))
    }

    fn write_at(&self, buf: &[u8], offset: u64, flags: Flags) -> Result<()> {
        guarded(|| self.device.write(offset, buf, flags.contains(Flags::FUA)))
    }

    fn flush(&self) -> Result<()> {
        guarded(|| self.device.flush())
    }

    fn trim(&self, count: u32, offset: u64, flags: Flags) -> Result<()> {
        guarded(|| self.device.trim(offset, u64::from(count), flags.contains(Flags::FUA)))
    }

    fn zero(&self, count: u32, offset: u64, flags: Flags) -> Result<()> {
        guarded(|| {
            let fua = flags.contains(Flags::FUA);
            if flags.contains(Flags::MAY_TRIM) && self.device.can_trim() {
                return self.device.trim(offset, u64::from(count), fua);
            }
            self.device.zero(offset, u64::from(count), fua)
        })
    }

    fn extents(&self, count: u32, offset: u64, _flags: Flags, handle: &mut ExtentHandle) -> Result<()> {
        let mut failed = None;
        let mut each = |at, len, data| {
            let kind = if data { ExtentType::Allocated } else { ExtentType::HoleZero };
            if failed.is_none() {
                failed = handle.add(at, len, kind).err();
            }
        };
        guarded(|| self.device.extents(offset, u64::from(count), &mut each))?;
        failed.map_or(Ok(()), Err)
    }
}

/// Opens the device, its control socket and the housekeeping.
fn start() -> smrlab_device::Result<()> {
    let path = CONFIG.get().ok_or_else(|| DeviceError::input("config=FILE is missing"))?;
    let config = Config::read(path)?;
    let device = Device::open(config)?;
    // Before the control socket, by which others see that all is well.
    if let Some(address) = &device.config().iscsi {
        control::listen(&device, address)?;
    }
    if let Some(socket) = device.config().control.clone() {
        smrlab_device::control::listen(device.clone(), &socket, Arc::new(control::commands(device.clone())))?;
    }
    let housekeeper = device.clone();
    let keep = move || {
        loop {
            std::thread::sleep(Duration::from_millis(5));
            housekeeper.housekeeping();
        }
    };
    let spawned = std::thread::Builder::new().name("housekeeping".into()).spawn(keep);
    spawned.map_err(|e| DeviceError::io("starting a thread", &e))?;
    let _ = DEVICE.set(device);
    Ok(())
}

/// nbdkit's structure with the members that the crate does not know yet appended.
#[repr(C)]
struct Extended {
    plugin: nbdkit::Plugin,
    list_exports: Option<extern "C" fn(c_int, c_int, *mut c_void) -> c_int>,
    default_export: Option<extern "C" fn(c_int, c_int) -> *const c_char>,
    export_description: Option<extern "C" fn(*mut c_void) -> *const c_char>,
    cleanup: Option<extern "C" fn()>,
    block_size: Option<extern "C" fn(*mut c_void, *mut u32, *mut u32, *mut u32) -> c_int>,
}

extern "C" fn block_size(
    _handle: *mut c_void,
    minimum: *mut u32,
    preferred: *mut u32,
    maximum: *mut u32,
) -> c_int {
    let Some(device) = DEVICE.get() else { return -1 };
    // SAFETY: nbdkit passes three valid places.
    unsafe {
        *minimum = device.block_size();
        *preferred = 4096;
        *maximum = smrlab_device::device::MOST;
    }
    0
}

extern "C" fn cleanup() {
    control::detach();
    if let Some(device) = DEVICE.get()
        && let Err(e) = device.close()
    {
        eprintln!("smrlab: closing the device: {e}");
    }
    control::unmount_all();
    // Who finds it knows that the server died.
    if let Some(socket) = DEVICE.get().and_then(|d| d.config().control.as_ref()) {
        let _ = std::fs::remove_file(socket);
    }
}

/// What nbdkit calls first.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_init() -> *const c_void {
    let mut builder = nbdkit::Builder::new();
    builder.config_help = true;
    builder.config = true;
    builder.config_complete = true;
    builder.after_fork = true;
    builder.thread_model = true;
    builder.can_write = true;
    builder.can_flush = true;
    builder.can_fua = true;
    builder.can_trim = true;
    builder.can_zero = true;
    builder.can_multi_conn = true;
    builder.can_extents = true;
    builder.is_rotational = true;
    builder.write_at = true;
    builder.flush = true;
    builder.trim = true;
    builder.zero = true;
    builder.extents = true;
    let plugin = builder.into_ptr::<Connection>();
    // SAFETY: the crate hands out a leaked, initialised structure that nobody else has.
    let mut plugin = unsafe { std::ptr::read(plugin) };
    plugin._struct_size = size_of::<Extended>() as u64;
    let extended = Extended {
        plugin,
        list_exports: None,
        default_export: None,
        export_description: None,
        cleanup: Some(cleanup),
        block_size: Some(block_size),
    };
    Box::into_raw(Box::new(extended)).cast()
}
