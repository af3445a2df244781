//! Control commands that need a surface: mounting, and NBD's clients.

use crate::clients;
use parking_lot::Mutex;
use serde_json::{Value, json};
use smrlab_device::{Device, DeviceError, Result};
use smrlab_fuse::Mounted;
use smrlab_iscsi::Target;
use smrlab_ublk::Attached;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

static MOUNTS: Mutex<Vec<(PathBuf, Mounted)>> = Mutex::new(Vec::new());

static TARGET: Mutex<Option<Arc<Target>>> = Mutex::new(None);

static ATTACHED: Mutex<Option<Attached>> = Mutex::new(None);

/// `attach` (with the `number` of a device whose server died, or `null`), `detach` and `attached`; `mount` and `unmount`, both with `dir`; `clients` and `disconnect`;
/// `logout`, which has the initiators of iSCSI leave within so many `seconds`.
pub(crate) fn commands(device: Arc<Device>) -> impl Fn(&str, &Value) -> Option<Result<Value>> + Send + Sync {
    let socket = device.config().control.clone().unwrap_or_default();
    move |cmd, request| match cmd {
        "clients" => Some(Ok(clients::list(&socket))),
        "disconnect" => Some(Ok(clients::disconnect(&socket).into())),
        "logout" => Some(Ok(logout(request["seconds"].as_u64().unwrap_or(0)))),
        "attach" => Some(attach(&device, request["number"].as_u64().map(|n| n as u32))),
        "attached" => Some(Ok(ATTACHED.lock().as_ref().map_or(Value::Null, described))),
        "detach" => Some(Ok(ATTACHED.lock().take().is_some().into())),
        "mount" => Some(dir(request).and_then(|d| mount(&device, d))),
        "unmount" => Some(dir(request).and_then(unmount)),
        "mounts" => Some(Ok(json!(MOUNTS.lock().iter().map(|m| m.0.clone()).collect::<Vec<_>>()))),
        _ => None,
    }
}

/// Serves the device over iSCSI, too.
pub(crate) fn listen(device: &Arc<Device>, address: &str) -> Result<()> {
    *TARGET.lock() = Some(smrlab_iscsi::listen(device.clone(), address)?);
    Ok(())
}

/// How many initiators of iSCSI logged out, and how many sessions were closed.
fn logout(seconds: u64) -> Value {
    let target = TARGET.lock().clone();
    let left = target.map(|target| target.close(Duration::from_secs(seconds))).unwrap_or_default();
    json!({"left": left.left, "closed": left.closed})
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
    // What is in use stays, and can be asked for again.
    mounts[i].1.wait_until_unused()?;
    let (_, mounted) = mounts.remove(i);
    mounted.unmount().map(|()| Value::Null)
}

fn described(attached: &Attached) -> Value {
    json!({"number": attached.number(), "path": attached.path()})
}

/// Has the kernel make a block device of it, or gives it back the one that a dead server left.
fn attach(device: &Arc<Device>, number: Option<u32>) -> Result<Value> {
    let mut attached = ATTACHED.lock();
    if let Some(there) = &*attached {
        return Err(DeviceError::input(format!("it is attached as {} already", there.path().display())));
    }
    let new = smrlab_ublk::attach(device.clone(), number)?;
    let answer = described(&new);
    *attached = Some(new);
    Ok(answer)
}

/// Takes the kernel's block device away, while the device still answers: the server ends.
pub(crate) fn detach() {
    ATTACHED.lock().take();
}

/// Takes every mount down: the server ends.
pub(crate) fn unmount_all() {
    MOUNTS.lock().clear();
}
