//! The copy of the tree that bugs are planted in, and how commands run there.

use super::switch::Switched;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The copy of the tree, and the folder that it is built in.
pub(super) struct Copied {
    pub tree: PathBuf,
    pub build: PathBuf,
}

impl Copied {
    /// Runs a command in the copy.
    pub(super) fn done(&self, command: &mut Command) -> io::Result<Output> {
        self.set(command).current_dir(&self.tree).output()
    }

    /// What all that is built or run in the copy has for an environment.
    pub(super) fn set<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        // Drawn as `make test` draws, so that a bug is caught in every run or in none.
        command.env("CARGO_TARGET_DIR", &self.build).env("PROPTEST_RNG_SEED", "20261122");
        // A case that failed with one bug is not drawn for the next ones, which it would catch only there.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        // Nobody reads these tests' traces: less to build and to link.
        command.env("CARGO_PROFILE_DEV_DEBUG", "none").stdin(Stdio::null())
    }
}

/// Hundredths of a second of processor time that the children of a process took, from its `/proc/N/stat`.
pub(super) fn work_of_children(stat: &str) -> u64 {
    // What follows the name in brackets; of it the children's user and system time.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(13).take(2);
    fields.filter_map(|f| f.parse::<u64>().ok()).sum()
}

/// Brings the copy up to date: files that are the same keep their time, so that they are not built again.
pub(super) fn copy(root: &Path, tree: &Path, switched: &BTreeMap<String, Switched>) -> io::Result<()> {
    let files = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    let names = String::from_utf8_lossy(&files.stdout).into_owned();
    let built = ["python/smrlab/_core.abi3.so", "python/smrlab/libsmrlab_nbdkit.so"];
    for name in names.split('\0').filter(|n| !n.is_empty()).chain(built) {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(own) = fs::read(&from) else { continue };
        let text = switched.get(name).map_or(own, |s| s.text.clone().into_bytes());
        if fs::read(&to).ok().as_deref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap_or(tree))?;
            fs::write(&to, text)?;
            // The compiler is called by a script.
            fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
        }
    }
    Ok(())
}
