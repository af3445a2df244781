//! Files that are there in full or not at all.

use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The bytes by which a file is known.
const BEGINNING: u64 = 64;

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

/// The bytes of a file that `is_known` knows by its beginning; of another its beginning alone, for it may have no end, as a
/// device.
///
/// # Errors
/// Why there is nothing to read, and what to do.
pub fn read_known(path: &Path, is_known: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, String> {
    // Opening it would wait for who writes into it, and nothing could end that.
    if fs::metadata(path).is_ok_and(|of| of.file_type().is_fifo()) {
        return Err("is a pipe, and is read more than once: name a file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|mut file| {
        file.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
        if is_known(&bytes) { file.read_to_end(&mut bytes) } else { Ok(0) }
    });
    match read {
        Ok(_) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err("there is no such file".to_owned()),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => Err("is a folder: name a file in it".to_owned()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Err(format!("{e}: check the owner and the mode"))
        }
        Err(e) => Err(e.to_string()),
    }
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

    #[test]
    fn what_is_no_file_of_the_kind_is_not_read_to_its_end() {
        let folder = std::env::temp_dir().join(format!("smrlab-known-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, known) = (folder.join("file"), |bytes: &[u8]| bytes.starts_with(b"mine"));
        for (text, whole) in [(b"mine".repeat(100), true), (b"else".repeat(100), false)] {
            fs::write(&file, &text).unwrap();
            let expected = if whole { &text[..] } else { &text[..64] };
            assert_eq!(read_known(&file, known).unwrap(), expected);
        }
        assert_eq!(read_known(Path::new("/dev/zero"), known).unwrap(), [0; 64]);
        let says = |path: &Path| read_known(path, known).unwrap_err();
        assert_eq!(says(&folder), "is a folder: name a file in it");
        assert_eq!(says(&folder.join("nowhere")), "there is no such file");
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(says(&pipe), "is a pipe, and is read more than once: name a file");
        fs::remove_dir_all(&folder).unwrap();
    }
}
