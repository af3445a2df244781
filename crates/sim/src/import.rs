//! Drive files from files of other simulators, and after other drives.

use crate::error::{Result, RunError};
use crate::resolve::read_drive;
use smrlab_disk::import::Imported;
use std::path::Path;

/// Makes a drive file of DiskSim's `.parv` file at `path` and of the files beside it that it names.
///
/// # Errors
/// A file that cannot be read or understood, with its line.
pub fn disksim(path: &str) -> Result<Imported> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let read = |name: &str| {
        let file = if name == path { Path::new(path).to_owned() } else { folder.join(name) };
        std::fs::read(&file)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|e| format!("{}: {e}", file.display()))
    };
    smrlab_disk::import::disksim(path, &read).map_err(RunError::Request)
}

/// Makes a drive file after the drive `base`, a preset or a file.
///
/// # Errors
/// As loading a drive; what does not make one, by field.
pub fn like(base: &str, wanted: &smrlab_disk::model::Like) -> Result<String> {
    let base = smrlab_disk::model::load(base, read_drive).map_err(|e| RunError::field("like", e))?;
    smrlab_disk::model::like(&base, wanted).map_err(|e| RunError::Request(e.to_string()))
}
