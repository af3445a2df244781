//! Writing a result to a directory, so that nothing partial ever looks whole.

use crate::error::RunError;
use crate::logs::failed;
use crate::run::RunResult;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A directory under a temporary name beside the one that is wanted; removed unless it is [finished](Self::finish).
#[derive(Debug)]
pub struct OutDir {
    temporary: PathBuf,
    wanted: PathBuf,
    finished: bool,
}

fn io_error(path: &Path, source: io::Error) -> RunError {
    RunError::Io { what: path.display().to_string(), source }
}

impl OutDir {
    /// Begins to write what will be `wanted`.
    ///
    /// # Errors
    /// When something else than an earlier result is there, or the directory cannot be made.
    pub fn begin(wanted: &Path) -> Result<Self, RunError> {
        let shown = wanted.display();
        let Some(name) = wanted.file_name() else {
            return Err(RunError::field("out", format!("{shown} names no directory")));
        };
        if wanted.exists() && !replaceable(wanted) {
            return Err(RunError::field(
                "out",
                format!("{shown} exists and is no earlier result: remove it or choose another directory"),
            ));
        }
        let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
        let temporary = wanted.with_file_name(name);
        if temporary.exists() {
            fs::remove_dir_all(&temporary).map_err(|e| io_error(&temporary, e))?;
        }
        fs::create_dir_all(&temporary).map_err(|e| io_error(&temporary, e))?;
        Ok(Self { temporary, wanted: wanted.to_owned(), finished: false })
    }

    /// Where to write now.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives it its name, in the place of an earlier result.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(mut self) -> Result<(), RunError> {
        if self.wanted.exists() {
            fs::remove_dir_all(&self.wanted).map_err(|e| io_error(&self.wanted, e))?;
        }
        fs::rename(&self.temporary, &self.wanted).map_err(|e| io_error(&self.wanted, e))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for OutDir {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing can be done about a directory that cannot be removed; its name says that it is temporary.
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// An empty directory, or an earlier result.
fn replaceable(path: &Path) -> bool {
    let empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    path.is_dir() && (empty || path.join("result.json").is_file())
}

/// Writes `result.json` and the tables into `dir`, which must be there.
///
/// # Errors
/// When the system refuses, for example for lack of space.
pub fn write(result: &RunResult, dir: &Path) -> Result<(), RunError> {
    for table in &result.tables {
        let path = dir.join(format!("{}.parquet", table.name));
        let file = File::create(&path).map_err(|e| io_error(&path, e))?;
        table.write(BufWriter::new(file)).map_err(|e| failed(&path.display().to_string(), e))?;
    }
    let path = dir.join("result.json");
    let mut text = serde_json::to_string_pretty(&result.json).unwrap_or_default();
    text.push('\n');
    let mut file = File::create(&path).map_err(|e| io_error(&path, e))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| io_error(&path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_directories_get_their_name_and_strangers_are_kept() {
        let base = std::env::temp_dir().join(format!("smrlab-out-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let wanted = base.join("result");
        drop(OutDir::begin(&wanted).unwrap());
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0, "an unfinished one is removed");
        for _ in 0..2 {
            let out = OutDir::begin(&wanted).unwrap();
            fs::write(out.path().join("result.json"), "{}").unwrap();
            out.finish().unwrap();
            assert!(wanted.join("result.json").is_file());
        }
        fs::remove_file(wanted.join("result.json")).unwrap();
        fs::write(wanted.join("thesis.tex"), "years of work").unwrap();
        let e = OutDir::begin(&wanted).unwrap_err();
        assert!(e.to_string().contains("no earlier result"), "{e}");
        fs::remove_dir_all(&base).unwrap();
    }
}
