//! Drive files from files of other simulators, and after other drives.

use crate::error::{Result, RunError};
use smrlab_disk::import::Imported;
use smrlab_trace::{read_described, read_drive};
use std::io::ErrorKind;
use std::path::Path;

/// Makes a drive file of DiskSim's `.parv` file at `path` and of the files beside it that it names.
///
/// # Errors
/// A file that cannot be read or understood, with its line.
pub fn disksim(path: &str) -> Result<Imported> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let read = |name: &str| {
        let file = if name == path { Path::new(path).to_owned() } else { folder.join(name) };
        let why = match read_described(&file) {
            Ok(bytes) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if e.kind() == ErrorKind::NotFound && name != path => {
                format!("there is no such file: put it beside {path}, which names it")
            }
            Err(e) if e.kind() == ErrorKind::NotFound => "there is no such file".to_owned(),
            Err(e) if e.kind() == ErrorKind::IsADirectory => {
                "is a folder: give the .parv file in it".to_owned()
            }
            Err(e) => e.to_string(),
        };
        Err(format!("{}: {why}", file.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_told_with_what_to_do() {
        let folder = std::env::temp_dir().join(format!("smrlab-parv-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let says = |path: &Path| disksim(&path.display().to_string()).unwrap_err().to_string();
        let (parv, at) = (folder.join("a.parv"), folder.display());
        assert_eq!(says(&folder), format!("{at}: is a folder: give the .parv file in it"));
        assert_eq!(says(&parv), format!("{at}/a.parv: there is no such file"));
        std::fs::write(&parv, "\nsource b.diskspecs\n").unwrap();
        let beside =
            format!("{at}/b.diskspecs: there is no such file: put it beside {at}/a.parv, which names it");
        assert_eq!(says(&parv), format!("{at}/a.parv: line 2: {beside}"));
        // A file that has no end is read no further than a parameter file goes.
        std::os::unix::fs::symlink("/dev/zero", folder.join("b.diskspecs")).unwrap();
        assert!(
            says(&parv).ends_with("b.diskspecs: no file of a drive: longer than 64 MiB"),
            "{}",
            says(&parv)
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
