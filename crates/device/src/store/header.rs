//! What a store says of itself: a directory with `header`, the state's `checkpoint.N` and `log.N`, and the data.
#![allow(unsafe_code)]

use crate::error::{DeviceError, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// First line of the header file; the number is the version of the whole format.
const MAGIC: &str = "smrlab-store 2";

/// The content of the header: what has to be the same whenever the store is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Tells this store's checkpoints and logs from any other's.
    pub id: u64,
    /// Blocks of the medium.
    pub blocks: u64,
    /// The resolved layer.
    pub layer: String,
    /// The resolved drive.
    pub drive: String,
    /// The block device that holds the data; none: sparse files beside the header.
    pub device: Option<PathBuf>,
}

/// A store's directory, locked for this process.
pub struct StoreDir {
    /// Where it is.
    pub path: PathBuf,
    /// What it says of itself.
    pub header: Header,
    _lock: File,
}

impl StoreDir {
    /// Whether there is a store at `path`.
    pub fn exists(path: &Path) -> bool {
        path.join("header").exists()
    }

    /// Makes a new store; its data are not made yet.
    ///
    /// # Errors
    /// When `path` is a directory that holds anything, or cannot be made.
    pub fn create(path: &Path, header: Header) -> Result<Self> {
        let fail = |e| DeviceError::io(format!("making the store {}", path.display()), &e);
        if path.exists() && (!path.is_dir() || fs::read_dir(path).map_err(fail)?.next().is_some()) {
            let text = format!("{} exists and is not a store; nothing was changed", path.display());
            return Err(DeviceError::input(text + "; name an empty or a new directory"));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
        let lock = lock(path)?;
        let body = serde_json::to_string_pretty(&header).expect("a header is plain data");
        let text = format!("{MAGIC}\n{body}\ncrc32 {:08x}\n", crc32fast::hash(body.as_bytes()));
        replace(&path.join("header"), |f| f.write_all(text.as_bytes())).map_err(fail)?;
        Ok(Self { path: path.to_owned(), header, _lock: lock })
    }

    /// Opens and locks an existing store.
    ///
    /// # Errors
    /// When another process serves it, or the header is not one of ours, damaged, or of a later version.
    pub fn open(path: &Path) -> Result<Self> {
        let lock = lock(path)?;
        Ok(Self { path: path.to_owned(), header: Self::header(path)?, _lock: lock })
    }

    /// What the store at `path` says of itself.
    ///
    /// # Errors
    /// When the header is not one of ours, damaged, or of a later version.
    pub fn header(path: &Path) -> Result<Header> {
        let file = path.join("header");
        let mut text = String::new();
        let read = File::open(&file).and_then(|mut f| f.read_to_string(&mut text));
        read.map_err(|e| DeviceError::io(format!("reading {}", file.display()), &e))?;
        parse(&text)
            .map_err(|why| DeviceError::input(format!("{}: {why}; nothing was changed", file.display())))
    }

    /// Refuses a store that was made for something else.
    ///
    /// # Errors
    /// When the layer, the geometry, the size or the place of the data differ.
    pub fn expect(&self, wanted: &Header) -> Result<()> {
        let differs = |what: &str, has: &dyn std::fmt::Display, want: &dyn std::fmt::Display| {
            let text = format!("the store {} was made with {what} {has}, not {want}", self.path.display());
            Err(DeviceError::input(text + "; use the same, or create a new device"))
        };
        let has = &self.header;
        if has.layer != wanted.layer {
            return differs("layer", &has.layer, &wanted.layer);
        }
        if has.blocks != wanted.blocks {
            return differs("a size in blocks of", &has.blocks, &wanted.blocks);
        }
        if has.drive != wanted.drive {
            return differs("drive", &has.drive, &wanted.drive);
        }
        if has.device != wanted.device {
            return differs("data in", &format!("{:?}", has.device), &format!("{:?}", wanted.device));
        }
        Ok(())
    }
}

/// A number that no other store has: the time and the process.
pub fn fresh_id() -> u64 {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    now ^ (u64::from(std::process::id()) << 40)
}

fn parse(text: &str) -> std::result::Result<Header, String> {
    let (magic, rest) = text.split_once('\n').ok_or("not a store")?;
    if magic != MAGIC {
        return Err(if magic.starts_with("smrlab-store ") {
            format!(
                "the store has version '{magic}', this program reads '{MAGIC}'; copy its contents to a new device with \
                 the program that made it"
            )
        } else {
            "not a store (foreign file)".to_owned()
        });
    }
    let (body, crc) = rest.trim_end().rsplit_once("\ncrc32 ").ok_or("truncated")?;
    if crc != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
        return Err("damaged: the checksum does not match".to_owned());
    }
    serde_json::from_str(body).map_err(|e| format!("damaged: {e}"))
}

/// One server at a time.
fn lock(path: &Path) -> Result<File> {
    let file = path.join("lock");
    let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&file);
    let f = open.map_err(|e| DeviceError::io(format!("opening {}", file.display()), &e))?;
    // SAFETY: a plain system call on an open descriptor; the lock goes with it.
    if unsafe { libc::flock(f.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(f);
    }
    let e = std::io::Error::last_os_error();
    if e.kind() == std::io::ErrorKind::WouldBlock {
        let text = format!("the store {} is being served already", path.display());
        return Err(DeviceError::new(
            libc::EBUSY,
            text + "; stop that server first (smrlab device stop NAME)",
        ));
    }
    Err(DeviceError::io(format!("locking {}", file.display()), &e))
}

/// Writes a file so that it is either there in full and durable, or not at all.
///
/// # Errors
/// What the operating system answers; nothing is left behind then.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> std::io::Result<()>) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let made = (|| {
        let mut f = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        write(&mut f)?;
        f.sync_all()?;
        fs::rename(&new, path)
    })();
    if made.is_err() {
        let _ = fs::remove_file(&new);
        return made;
    }
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Makes durable which files are in a directory.
///
/// # Errors
/// What the operating system answers.
pub fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a store was made with counts; its number is its own.
    #[test]
    fn a_store_is_opened_as_what_it_was_made() {
        let [layer, drive] = ["rmw", "tiny"].map(str::to_owned);
        let made = Header { id: 1, blocks: 8, layer, drive, device: Some("/dev/a".into()) };
        let dir = tempfile::tempdir().unwrap();
        let store = StoreDir::create(dir.path(), made.clone()).unwrap();
        assert!(store.expect(&Header { id: 2, ..made.clone() }).is_ok());
        for other in [
            Header { blocks: 7, ..made.clone() },
            Header { blocks: 9, ..made.clone() },
            Header { layer: "cmr".into(), ..made.clone() },
            Header { drive: "tiny,rpm=5400".into(), ..made.clone() },
            Header { device: None, ..made.clone() },
            Header { device: Some("/dev/b".into()), ..made.clone() },
        ] {
            assert!(store.expect(&other).is_err(), "{other:?}");
        }
    }
}
