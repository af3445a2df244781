//! Runs that begin where another ended, or where a served device is: `from_state` and `save_state`.

use crate::error::{Result, RunError};
use crate::spec::Spec;
use serde_json::{Value, json};
use smrlab_array::ArrayState;
use smrlab_drive::{Assembled, SavedState};
use smrlab_trace::{can_replace_file, read_known, replace_file};
use std::io::Read;
use std::path::Path;

/// Reads the state in a file; that of one drive has no array.
///
/// # Errors
/// A file that cannot be read or is no state.
pub fn read(path: &Path) -> Result<ArrayState> {
    let bad = |e: String| RunError::field("from_state", format!("{}: {e}", path.display()));
    let bytes = read_known(path, ArrayState::is_any).map_err(bad)?;
    if ArrayState::is_one(&bytes) {
        return ArrayState::decode(&bytes).map_err(bad);
    }
    let one = SavedState::decode(&bytes).map_err(bad)?;
    let array = SavedState { written: one.written.clone(), ..SavedState::default() };
    Ok(ArrayState { array, members: vec![one] })
}

/// Whose state a file is.
///
/// # Errors
/// As [`read`].
pub fn summary(path: &Path) -> Result<Value> {
    let ArrayState { array, members } = read(path)?;
    let written: u64 = array.written.iter().map(|r| r.end - r.start).sum();
    let records = array.records.len() + members.iter().map(|m| m.records.len()).sum::<usize>();
    let mut out = json!({"schema": 1, "records": records, "written_blocks": written});
    if !array.layer.is_empty() {
        (out["array"], out["disks"]) = (json!(array.layer), json!(members.len()));
    }
    if let Some(s) = members.first() {
        (out["drive"], out["layer"], out["metadata"]) = (json!(s.drive), json!(s.layer), json!(s.metadata));
        (out["blocks"], out["head"]) = (json!(s.blocks), json!(s.head));
    }
    Ok(out)
}

/// Whether a layer is the user's own, in Python.
pub(crate) fn own_layer(resolved: &str) -> bool {
    resolved.contains(".py:") || resolved.starts_with("python:")
}

/// The state that a run begins with, checked against its drives and `array`, which is empty where there is one drive.
pub(crate) fn begin(spec: &Spec, drive: &Assembled, array: &str) -> Result<Option<ArrayState>> {
    let own = own_layer(&drive.built.resolved);
    for (field, given) in [("from_state", &spec.from_state), ("save_state", &spec.save_state)] {
        if own && given.is_some() {
            return Err(RunError::field(field, "layers in Python have no checkpoint: use a built-in layer"));
        }
    }
    if let Some(path) = &spec.save_state {
        replaceable(Path::new(path)).map_err(|e| RunError::field("save_state", format!("{path}: {e}")))?;
    }
    let Some(path) = &spec.from_state else { return Ok(None) };
    if spec.verify_media {
        let text =
            "it follows data from their first write on, which a state does not hold: give one of the two";
        return Err(RunError::field("verify_media", text));
    }
    let state = read(Path::new(path))?;
    let bad = |e: String| RunError::field("from_state", format!("{path}: {e}"));
    state.expect(array).map_err(bad)?;
    let blocks = drive.built.drive.geometry().blocks().0;
    for member in &state.members {
        member.expect(&drive.drive, &drive.built.resolved, &spec.metadata, blocks).map_err(bad)?;
    }
    Ok(Some(state))
}

/// Whether a state may be written to `path`: where nothing is, nothing in it, or a state; in a folder that takes files. It is asked before
/// the run, which would be lost.
fn replaceable(path: &Path) -> Result<(), String> {
    if path.exists() {
        let mut beginning = Vec::new();
        let file = Some(path).filter(|p| p.is_file()).and_then(|p| std::fs::File::open(p).ok());
        let read = file.is_some_and(|f| f.take(64).read_to_end(&mut beginning).is_ok());
        if !read || !(beginning.is_empty() || ArrayState::is_any(&beginning)) {
            return Err("is there already, and is no state: name another file".into());
        }
    }
    can_replace_file(path).map_err(|e| format!("cannot be written: {e}; choose another place"))
}

/// Who each drive of a run is.
pub(crate) fn of_drive(spec: &Spec) -> SavedState {
    SavedState {
        drive: spec.drive.clone(),
        layer: spec.layer.clone(),
        metadata: spec.metadata.clone(),
        ..SavedState::default()
    }
}

/// Writes a state; that of one drive is a drive's.
pub(crate) fn save(path: &Path, state: ArrayState) -> Result<()> {
    let fail = |e| RunError::Io { what: format!("save_state: {}", path.display()), source: e };
    let ArrayState { array, members } = state;
    let file = match <[SavedState; 1]>::try_from(members) {
        Ok([one]) if array.layer.is_empty() => SavedState { written: array.written, ..one }.encode(),
        Ok([one]) => ArrayState { array, members: vec![one] }.encode(),
        Err(members) => ArrayState { array, members }.encode(),
    };
    file.and_then(|file| replace_file(path, file)).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layer in Python is given as a file and a class, or by the name it was registered with; no built-in layer looks like either.
    #[test]
    fn layers_in_python_are_told_from_built_in_ones() {
        for own in ["own.py:Layer", "folder/own.py:Layer,bands=3", "python:mine"] {
            assert!(own_layer(own), "{own}");
        }
        for entry in smrlab_stl::LAYERS {
            assert!(!own_layer(entry.name), "{}", entry.name);
        }
    }
}
