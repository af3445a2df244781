//! Control commands that need a surface: mounting, and NBD's clients.

use crate::clients;
use parking_lot::Mutex;
use serde_json::{Value, json};
use smrlab_device::{Device, DeviceError, Result};
use smrlab_fuse::Mounted;
use std::path::PathBuf;
use std::sync::Arc;

static MOUNTS: Mutex<Vec<(PathBuf, Mounted)>> = Mutex::new(Vec::new());

/// `mount` and `unmount`, both with `dir`; `clients` and `disconnect`.
pub(crate) fn commands(device: Arc<Device>) -> impl Fn(&str, &Value) -> Option<Result<Value>> + Send + Sync {
    let socket = device.config().control.clone().unwrap_or_default();
    move |cmd, request| match cmd {
        "clients" => Some(Ok(clients::list(&socket))),
        "disconnect" => Some(Ok(clients::disconnect(&socket).into())),
        "mount" => Some(dir(request).and_then(|d| mount(&device, d))),
        "unmount" => Some(dir(request).and_then(unmount)),
        "mounts" => Some(Ok(json!(MOUNTS.lock().iter().map(|m| m.0.clone()).collect::<Vec<_>>()))),
        _ => None,
    }
}

fn dir(request: &Value) -> Result<PathBuf> {
    request["dir"].as_str().map(PathBuf::from).ok_or_else(|| DeviceError::input("no \"dir\" in the request"))
}

fn mount(device: &Arc<Device>, dir: PathBuf) -> Result<Value> {
    let mounted = smrlab_fuse::mount(device.clone(), &dir)?;
    let file = mounted.file().to_owned();
    MOUNTS.lock().push((dir, mounted));
    Ok(json!({"file": file}))
}

fn unmount(dir: PathBuf) -> Result<Value> {
    let mut mounts = MOUNTS.lock();
    let Some(i) = mounts.iter().position(|m| m.0 == dir) else {
        return Err(DeviceError::input(format!("{} is not a mount of this device", dir.display())));
    };
    let (_, mounted) = mounts.remove(i);
    mounted.unmount().map(|()| Value::Null)
}

/// Takes every mount down: the server ends.
pub(crate) fn unmount_all() {
    MOUNTS.lock().clear();
}
