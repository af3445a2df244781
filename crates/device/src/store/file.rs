//! Bytes in sparse files, or on a block device.
#![allow(unsafe_code)]

use super::{Store, holes};
use crate::buffer::Buffer;
use crate::error::{DeviceError, Result};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes in one file: below what common file systems allow in one.
const SEGMENT: u64 = 1 << 40;

/// Sparse files of 1 TiB each, `data.000` and on.
pub struct Sparse {
    files: Vec<File>,
    dir: PathBuf,
}

impl Sparse {
    /// Makes files for `bytes` in `dir`, which take no space until they are written.
    ///
    /// # Errors
    /// When a file exists already or cannot be made.
    pub fn create(dir: &Path, bytes: u64) -> Result<Self> {
        let files = Self::segments(bytes).map(|(i, len)| {
            let path = segment_path(dir, i);
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
            // Their sizes are durable before the store is used: a flush makes only data so.
            let file = file.and_then(|f| f.set_len(len).and_then(|()| f.sync_all()).map(|()| f));
            file.map_err(|e| DeviceError::io(format!("making {}", path.display()), &e))
        });
        Ok(Self { files: files.collect::<Result<_>>()?, dir: dir.to_owned() })
    }

    /// Opens what [`create`](Self::create) made.
    ///
    /// # Errors
    /// When a file is missing or shorter than it should be.
    pub fn open(dir: &Path, bytes: u64) -> Result<Self> {
        let files = Self::segments(bytes).map(|(i, len)| {
            let path = segment_path(dir, i);
            let fail = |e| DeviceError::io(format!("opening {}", path.display()), &e);
            let file = OpenOptions::new().read(true).write(true).open(&path).map_err(fail)?;
            let found = file.metadata().map_err(fail)?.len();
            if found == len {
                return Ok(file);
            }
            let text = format!("{}: {found} bytes instead of {len}: truncated or foreign", path.display());
            Err(DeviceError::input(text + "; restore it, or remove the device and create it anew"))
        });
        Ok(Self { files: files.collect::<Result<_>>()?, dir: dir.to_owned() })
    }

    fn segments(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        (0..bytes.div_ceil(SEGMENT)).map(move |i| (i, SEGMENT.min(bytes - i * SEGMENT)))
    }

    /// Calls `f` with each file's part of a transfer: file, offset in it, and the part.
    fn parts(
        &self,
        offset: u64,
        len: u64,
        mut f: impl FnMut(&File, u64, u64, u64) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while done < len {
            let (i, at) = ((offset + done) / SEGMENT, (offset + done) % SEGMENT);
            let n = (len - done).min(SEGMENT - at);
            let file = self.files.get(i as usize);
            let file = file.ok_or_else(|| DeviceError::new(libc::EIO, "beyond the end of the store"))?;
            f(file, at, done, n).map_err(|e| DeviceError::io(segment_path(&self.dir, i).display(), &e))?;
            done += n;
        }
        Ok(())
    }
}

fn segment_path(dir: &Path, i: u64) -> PathBuf {
    dir.join(format!("data.{i:03}"))
}

impl Store for Sparse {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.parts(offset, buf.len() as u64, |f, at, done, n| {
            f.read_exact_at(&mut buf[done as usize..(done + n) as usize], at)
        })
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.parts(offset, buf.len() as u64, |f, at, done, n| {
            holes::write(f, &buf[done as usize..(done + n) as usize], at)
        })
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.parts(offset, len, |f, at, _, n| {
            punch(f, at, n, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
        })
    }

    fn sync(&self) -> Result<()> {
        for (i, f) in self.files.iter().enumerate() {
            f.sync_data().map_err(|e| DeviceError::io(segment_path(&self.dir, i as u64).display(), &e))?;
        }
        Ok(())
    }
}

/// Zeroes by `fallocate`, or by writing where that is not to be had.
fn punch(file: &File, at: u64, len: u64, mode: i32) -> std::io::Result<()> {
    // SAFETY: a plain system call on an open descriptor.
    if unsafe { libc::fallocate64(file.as_raw_fd(), mode, at as i64, len as i64) } == 0 {
        return Ok(());
    }
    let e = std::io::Error::last_os_error();
    if !matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL)) {
        return Err(e);
    }
    let zeroes = Buffer::zeroes(len.min(1 << 20) as usize);
    let mut done = 0;
    while done < len {
        let n = (len - done).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..n as usize], at + done)?;
        done += n;
    }
    Ok(())
}

/// A block device (or a whole file) taken as it is: block addresses are its own, nothing else is put on it.
pub struct BlockDevice {
    file: File,
    path: PathBuf,
    dirty: AtomicBool,
}

impl BlockDevice {
    /// Opens `path` for itself alone; answers with its size in bytes.
    ///
    /// # Errors
    /// When it is no block device, is in use (mounted), or cannot be opened.
    pub fn open(path: &Path) -> Result<(Self, u64)> {
        let fail = |e| DeviceError::io(format!("opening {}", path.display()), &e);
        let kind = std::fs::metadata(path).map_err(fail)?.file_type();
        if !kind.is_block_device() {
            return Err(DeviceError::input(format!("{} is not a block device", path.display())));
        }
        let mut file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_EXCL).open(path).map_err(fail)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(fail)?;
        file.rewind().and_then(|()| file.read_exact(&mut [0; 512])).map_err(fail)?;
        Ok((Self::of(file, path), bytes))
    }

    /// A server before this one may have left something to be synced.
    fn of(file: File, path: &Path) -> Self {
        Self { file, path: path.to_owned(), dirty: AtomicBool::new(true) }
    }

    fn named(&self, r: std::io::Result<()>) -> Result<()> {
        r.map_err(|e| DeviceError::io(self.path.display(), &e))
    }
}

impl Store for BlockDevice {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.named(self.file.read_exact_at(buf, offset))
    }

    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.dirty.store(true, Ordering::Relaxed);
        self.named(self.file.write_all_at(buf, offset))
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.dirty.store(true, Ordering::Relaxed);
        self.named(punch(&self.file, offset, len, libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE))
    }

    fn sync(&self) -> Result<()> {
        if self.dirty.swap(false, Ordering::AcqRel) {
            let done = self.file.sync_data();
            self.dirty.fetch_or(done.is_err(), Ordering::Relaxed);
            return self.named(done);
        }
        Ok(())
    }

    fn starts_zeroed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file system that cannot punch holes has zeroes written, all that were asked for and no byte beside them.
    #[test]
    fn zeroes_are_written_where_holes_cannot_be_made() {
        let file = tempfile::tempfile().unwrap();
        let (at, len) = (512, (5 << 19) + 512);
        file.write_all_at(&vec![7; len + 2 * at], 0).unwrap();
        // No such mode: what a file system says that has none.
        punch(&file, at as u64, len as u64, 1 << 20).unwrap();
        let mut found = vec![0; len + 2 * at];
        file.read_exact_at(&mut found, 0).unwrap();
        let expected: Vec<u8> =
            (0..found.len()).map(|i| if (at..at + len).contains(&i) { 0 } else { 7 }).collect();
        assert!(found == expected);
    }

    /// A file that takes everything and cannot be synced.
    fn unsynced() -> File {
        OpenOptions::new().read(true).write(true).open("/dev/null").unwrap()
    }

    /// Whichever file of a store cannot be synced, the store was not, and it is named.
    #[test]
    fn all_files_of_a_store_are_synced() {
        for bad in 0..3 {
            let file = |i| if i == bad { unsynced() } else { tempfile::tempfile().unwrap() };
            let store = Sparse { files: (0..3).map(file).collect(), dir: PathBuf::from("d") };
            let e = store.sync().unwrap_err().to_string();
            assert!(e.contains(&format!("d/data.00{bad}")), "{e}");
        }
        let files = (0..3).map(|_| tempfile::tempfile().unwrap()).collect();
        Sparse { files, dir: PathBuf::from("d") }.sync().unwrap();
    }

    /// A block device is synced where there may be something to be synced: at first, after a write, after zeroes, and where
    /// that failed before; and only there.
    #[test]
    fn a_block_device_is_synced_until_that_succeeds() {
        let mut device = BlockDevice::of(unsynced(), Path::new("/dev/null"));
        for _ in 0..2 {
            assert!(device.sync().unwrap_err().to_string().contains("/dev/null"));
        }
        device.file = tempfile::tempfile().unwrap();
        device.sync().unwrap();
        for changes in [|d: &BlockDevice| d.write(0, &[1; 512]), |d: &BlockDevice| d.zero(0, 512)] {
            device.file = unsynced();
            device.sync().unwrap();
            changes(&device).unwrap();
            assert!(device.sync().is_err());
            device.file = tempfile::tempfile().unwrap();
            device.sync().unwrap();
        }
    }

    /// What lies over the edge of two files is in both, and is read, zeroed and found again there.
    #[test]
    fn a_store_of_several_files_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = SEGMENT + 8192;
        let store = Sparse::create(folder.path(), bytes).unwrap();
        let data: Vec<u8> = (0..4096u32).map(|i| (i % 251) as u8 + 1).collect();
        let from = SEGMENT - 1024;
        store.write(from, &data).unwrap();
        store.sync().unwrap();
        drop(store);
        let store = Sparse::open(folder.path(), bytes).unwrap();
        let read = |at: u64, len: usize| {
            let mut out = vec![0xee; len];
            store.read(at, &mut out).unwrap();
            out
        };
        assert!(read(from, 4096) == data);
        assert!(read(SEGMENT, 3072) == data[1024..]);
        store.zero(SEGMENT - 512, 1024).unwrap();
        let expected = [&data[..512], &[0; 1024], &data[1536..]].concat();
        assert!(read(from, 4096) == expected);
        assert_eq!(read(bytes - 512, 512), [0; 512]);
        assert_eq!(store.read(bytes - 512, &mut [0; 1024]).unwrap_err().errno(), libc::EIO);
        assert!([bytes + 512, bytes - 512].iter().all(|bytes| Sparse::open(folder.path(), *bytes).is_err()));
    }
}
