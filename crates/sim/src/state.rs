//! Runs that begin where another ended, or where a served device is: `from_state` and `save_state`.

use crate::engine::HostObserver;
use crate::error::RunError;
use crate::spec::Spec;
use serde_json::{Value, json};
use smrlab_drive::{Assembled, Drive, State};
use smrlab_stl::{HostRequest, Plan};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;
use std::path::Path;

/// Reads the state in a file.
///
/// # Errors
/// A file that cannot be read or is no state.
pub fn read(path: &Path) -> Result<State, RunError> {
    let bad = |e: String| RunError::field("from_state", format!("{}: {e}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => bad("there is no such file".into()),
        _ => bad(e.to_string()),
    })?;
    State::decode(&bytes).map_err(bad)
}

/// Whose state a file is.
///
/// # Errors
/// As [`read`].
pub fn summary(path: &Path) -> Result<Value, RunError> {
    let s = read(path)?;
    let written: u64 = s.written.iter().map(|r| r.end - r.start).sum();
    Ok(json!({
        "schema": 1, "drive": s.drive, "layer": s.layer, "metadata": s.metadata, "blocks": s.blocks, "head": s.head,
        "records": s.records.len(), "written_blocks": written,
    }))
}

/// Whether a layer is the user's own, in Python.
pub(crate) fn own_layer(resolved: &str) -> bool {
    resolved.contains(".py:") || resolved.starts_with("python:")
}

/// The state that a run begins with, checked against its drive.
pub(crate) fn begin(spec: &Spec, drive: &Assembled) -> Result<Option<State>, RunError> {
    let own = own_layer(&drive.built.resolved);
    for (field, given) in [("from_state", &spec.from_state), ("save_state", &spec.save_state)] {
        if own && given.is_some() {
            return Err(RunError::field(field, "layers in Python have no checkpoint: use a built-in layer"));
        }
    }
    let Some(path) = &spec.from_state else { return Ok(None) };
    if spec.verify_media {
        let text =
            "it follows data from their first write on, which a state does not hold: give one of the two";
        return Err(RunError::field("verify_media", text));
    }
    let state = read(Path::new(path))?;
    let blocks = drive.built.drive.geometry().blocks().0;
    state
        .expect(&drive.drive, &drive.built.resolved, &spec.metadata, blocks)
        .map_err(|e| RunError::field("from_state", format!("{path}: {e}")))?;
    Ok(Some(state))
}

/// Brings a fresh drive to a state; what was written there counts as written before.
pub(crate) fn restore(state: &State, drive: &mut Drive, observer: &mut impl HostObserver) {
    let mut plan = Plan::new(false, false);
    state.give(drive, &mut plan);
    plan.clear();
    for r in &state.written {
        let request = HostRequest::new(HostOp::Write, Lba(r.start), Blocks(r.end - r.start));
        observer.prefilled(&request, &plan);
    }
}

/// Writes the drive's state; what is under way in idle time is given up first.
pub(crate) fn save(
    path: &Path,
    spec: &Spec,
    drive: &mut Drive,
    written: Vec<Range<u64>>,
) -> Result<(), RunError> {
    drive.interrupt();
    let identity = State {
        drive: spec.drive.clone(),
        layer: spec.layer.clone(),
        metadata: spec.metadata.clone(),
        written,
        ..State::default()
    };
    let fail = |e| RunError::Io { what: path.display().to_string(), source: e };
    let partial = path.with_extension("partial");
    let file = State::take(drive, identity).encode().map_err(fail)?;
    std::fs::write(&partial, file).and_then(|()| std::fs::rename(&partial, path)).map_err(fail)
}
