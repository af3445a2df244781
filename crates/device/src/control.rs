//! The control socket: a JSON object a line in, a JSON object a line out.
//!
//! `{"cmd": NAME, ...}` is answered by `{"ok": ...}` or `{"error": TEXT}`.

use crate::device::Device;
use crate::error::{DeviceError, Result};
use crate::faults::Injection;
use crate::picture;
use crate::shingle::Shingle;
use serde_json::{Value, json};
use smrlab_units::{Lba, ZoneCondition, ZoneKind};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

/// Commands of a surface: `None` for names it does not know.
pub type Extra = dyn Fn(&str, &Value) -> Option<Result<Value>> + Send + Sync;

/// Listens at `path` (private to the user) until the process ends.
///
/// # Errors
/// When the socket cannot be made.
pub fn listen(device: Arc<Device>, path: &Path, extra: Arc<Extra>) -> Result<()> {
    let fail = |e| DeviceError::io(format!("the control socket {}", path.display()), &e);
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(fail)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    let accept = move || {
        for stream in listener.incoming().flatten() {
            let (device, extra) = (device.clone(), extra.clone());
            let serve = move || {
                let _ = converse(&device, &*extra, stream);
            };
            let _ = std::thread::Builder::new().name("control".into()).spawn(serve);
        }
    };
    std::thread::Builder::new().name("control".into()).spawn(accept).map_err(fail)?;
    Ok(())
}

fn converse(device: &Device, extra: &Extra, stream: UnixStream) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let answer = match answer(device, extra, &line?) {
            Ok(value) => json!({"ok": value}),
            Err(e) => json!({"error": e.to_string()}),
        };
        out.write_all(format!("{answer}\n").as_bytes())?;
    }
    Ok(())
}

fn number(request: &Value, key: &str) -> Result<u64> {
    request[key]
        .as_u64()
        .ok_or_else(|| DeviceError::input(format!("no \"{key}\" in the request, or no whole number")))
}

/// Breaks something of a disk, or mends it.
fn inject(device: &Device, request: &Value) -> Result<Value> {
    let mut what = request.clone();
    what.as_object_mut().map(|o| (o.remove("cmd"), o.remove("disk")));
    let what: Injection =
        serde_json::from_value(what).map_err(|e| DeviceError::input(format!("inject: {e}")))?;
    let medium = device.medium(request["disk"].as_u64())?;
    let blocks = medium.with_runs(Shingle::blocks);
    if let Some((first, end)) = what.unreadable.filter(|(first, end)| first >= end || *end > blocks) {
        let problem = format!("inject: blocks {first} to {end} are none of the medium, which has {blocks}");
        return Err(DeviceError::input(problem));
    }
    device.events.push("inject", None, format!("{what:?}"));
    medium.faults.inject(&what);
    Ok(Value::Null)
}

/// The zones of a host-managed or host-aware drive, and one of them that fails.
fn zones(device: &Device, cmd: &str, request: &Value) -> Result<Value> {
    if cmd == "fail-zone" {
        let condition = match request["condition"].as_str() {
            Some("offline") => ZoneCondition::Offline,
            Some("read-only") => ZoneCondition::ReadOnly,
            _ => return Err(DeviceError::input("\"condition\" is offline or read-only")),
        };
        return device.fail_zone(Lba(number(request, "lba")?), condition).map(|()| Value::Null);
    }
    let mut zones = Vec::new();
    device.zones(Lba(0), &mut |z| {
        // Gaps show in where the next zone begins.
        if z.kind == ZoneKind::Gap {
            return true;
        }
        zones.push(
            json!({"start": z.start.0, "blocks": z.blocks.0, "conventional": z.kind == ZoneKind::Conventional,
                          "condition": z.condition.name(), "pointer": z.pointer.map(|p| p.0), "non_sequential": z.non_sequential}),
        );
        true
    })?;
    let limits = device.zone_limits();
    let preferred = limits.and_then(|l| l.preferred);
    let model = if preferred.is_some() { "host-aware" } else { "host-managed" };
    Ok(
        json!({"model": model, "max_open": limits.and_then(|l| l.most_open), "optimal_open": preferred.map(|p| p.open),
        "optimal_non_sequential": preferred.map(|p| p.non_sequential), "zones": zones}),
    )
}

/// Answers one line.
///
/// # Errors
/// When it is not understood, or the command fails.
pub fn answer(device: &Device, extra: &Extra, line: &str) -> Result<Value> {
    let request: Value =
        serde_json::from_str(line).map_err(|e| DeviceError::input(format!("not JSON: {e}")))?;
    let cmd = request["cmd"].as_str().ok_or_else(|| DeviceError::input("no \"cmd\" in the request"))?;
    if let Some(done) = extra(cmd, &request) {
        return done;
    }
    match cmd {
        "info" => Ok(device.info()),
        "stats" => Ok(device.stats()),
        "events" => Ok(json!(device.events.after(request["after"].as_u64().unwrap_or(0)))),
        "reset-stats" => {
            device.reset_stats();
            Ok(Value::Null)
        }
        "bands" => {
            let raw = device.raw()?;
            (0..raw.bands()).map(|i| raw.band(i).map(|b| json!(b))).collect::<Result<Value>>()
        }
        "band" => Ok(json!(device.raw()?.band(number(&request, "band")?)?)),
        "reset-band" => {
            let band = number(&request, "band")?;
            let state = device.raw()?.reset_band(band)?;
            device.events.push("reset-band", Some(state.start), format!("band {band} was reset"));
            Ok(json!(state))
        }
        "map" => {
            let cells = request["cells"].as_u64().unwrap_or(2048).min(1 << 16);
            let medium = device.medium(request["disk"].as_u64())?;
            let mut map = medium.with_runs(|s| picture::cells(s, s.blocks(), cells));
            if let Ok(raw) = device.raw() {
                let bands = (0..raw.bands().min(10_000)).map(|i| raw.band(i).map(|b| json!(b)));
                map["bands"] = bands.collect::<Result<Value>>()?;
            }
            Ok(map)
        }
        "zones" | "fail-zone" => zones(device, cmd, &request),
        "inject" => inject(device, &request),
        "fail" => {
            let (array, clock) = device.array()?;
            array.fail(clock, number(&request, "disk")?)
        }
        "replace" => {
            let (array, clock) = device.array()?;
            array.replace(clock, number(&request, "disk")?)
        }
        "state" => {
            let path =
                request["path"].as_str().ok_or_else(|| DeviceError::input("no \"path\" in the request"))?;
            device.write_state(Path::new(path))
        }
        "flush" => device.flush().map(|()| Value::Null),
        "crash" => {
            // The power is off: no goodbye, no checkpoint.
            std::process::abort()
        }
        _ => Err(DeviceError::input(format!("unknown command '{cmd}'"))),
    }
}
