//! Files that are there in full or not at all.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Writes a file next to its place first, so that a stop leaves the old or the new one.
///
/// # Errors
/// What the operating system answers; nothing is left behind then.
pub fn replace_file(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let partial = partial(path);
    let done = fs::write(&partial, contents).and_then(|()| fs::rename(&partial, path));
    if done.is_err() {
        let _ = fs::remove_file(&partial);
    }
    done
}

/// Whether the folder of `path` takes the file that [`replace_file`] would write first: before work that would be lost.
///
/// # Errors
/// What the operating system answers.
pub fn can_replace_file(path: &Path) -> io::Result<()> {
    let partial = partial(path);
    fs::File::create(&partial).map(drop).and_then(|()| fs::remove_file(&partial))
}

fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    partial.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_or_nothing_is_left_of_it() {
        let folder = std::env::temp_dir().join(format!("smrlab-replaced-{}", std::process::id()));
        let (file, taken) = (folder.join("file"), folder.join("folder"));
        fs::create_dir_all(&taken).unwrap();
        for text in ["old", "new"] {
            replace_file(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        replace_file(&taken, "a folder is there").unwrap_err();
        can_replace_file(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let nowhere = can_replace_file(&folder.join("nowhere/file")).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
