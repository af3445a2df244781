//! Public traces and measurements, where they are there.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder below `$SMRLAB_SHARED` or `../shared`; `None` where it is absent, and then the test says that it is
/// skipped: past the harness, which keeps what a passing test prints to itself.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let found = std::env::var_os("SMRLAB_SHARED").map_or(beside, PathBuf::from).join(path);
    if found.exists() {
        return Some(found);
    }
    let (this, at) = (std::thread::current(), found.display());
    let name = this.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {at} is not here (set SMRLAB_SHARED)");
    None
}
