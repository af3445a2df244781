//! Drive files from files of other simulators, on disk.

use crate::error::RunError;
use smrlab_disk::import::Imported;
use std::path::Path;

/// Makes a drive file of DiskSim's `.parv` file at `path` and of the files beside it that it names.
///
/// # Errors
/// A file that cannot be read or understood, with its line.
pub fn disksim(path: &str) -> Result<Imported, RunError> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let read = |name: &str| {
        let file = if name == path { Path::new(path).to_owned() } else { folder.join(name) };
        std::fs::read(&file)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|e| format!("{}: {e}", file.display()))
    };
    smrlab_disk::import::disksim(path, &read).map_err(RunError::Request)
}
