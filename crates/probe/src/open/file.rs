//! A block device or a file as a target, past the host's page cache (O_DIRECT).

use super::caching::Caching;
use super::clock::Clock;
use super::sg::Sg;
use super::zones::zone;
use crate::target::{TargetError, TimedTarget, Timing, refuses};
use smrlab_units::{BLOCK_BYTES, Blocks, Dir, Lba, SimTime, Zone};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Buffers and lengths are multiples of this where a device asks for more than a block.
const PAGE: usize = 4096;

/// What is said of a file or device that cannot be opened, and whether it is gone.
fn unopened(e: &std::io::Error) -> (String, bool) {
    match e.raw_os_error() {
        Some(libc::EBUSY) => {
            ("mounted or in use: unmount it first, its traffic would be measured".to_owned(), false)
        }
        Some(libc::EINVAL) => {
            ("its file system has no direct access (O_DIRECT): use another".to_owned(), true)
        }
        Some(libc::EACCES) => (format!("{e}: root may read and write it"), true),
        _ => (e.to_string(), true),
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    place: String,
    blocks: u64,
    /// Blocks in the least transfer.
    grain: u64,
    clock: Clock,
    buffer: Vec<u8>,
    /// Of a block device.
    caching: Option<Caching<Sg>>,
    /// A zone that it reports.
    zone: Option<Zone>,
}

impl DirectFile {
    /// Opens a device or file; for writing where `write` says so. A device that is mounted or otherwise in use is refused. A device's
    /// own caches are switched off until this is dropped, but where `keep_cache` says so.
    ///
    /// # Errors
    /// When it cannot be opened past the page cache, is in use, or is too small.
    pub fn open(path: &Path, write: bool, keep_cache: bool) -> Result<Self, TargetError> {
        let place = path.display().to_string();
        let refuse = |what: String, gone| TargetError { what: format!("{place}: {what}"), gone };
        let meta =
            std::fs::metadata(path).map_err(|e| refuse(e.to_string(), e.kind() != ErrorKind::NotFound))?;
        let device = meta.file_type().is_block_device();
        if !device && !meta.is_file() {
            return Err(refuse("neither a block device nor a file".to_owned(), false));
        }
        Self::open_as(path, write, keep_cache, device)
    }

    /// The same of what is known to be a device, or a file.
    fn open_as(path: &Path, write: bool, keep_cache: bool, device: bool) -> Result<Self, TargetError> {
        let place = path.display().to_string();
        let refuse = |what: String, gone| TargetError { what: format!("{place}: {what}"), gone };
        let exclusive = if device { libc::O_EXCL } else { 0 };
        let mut file = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags(libc::O_DIRECT | exclusive)
            .open(path)
            .map_err(|e| unopened(&e))
            .map_err(|(what, gone)| refuse(what, gone))?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(|e| refuse(e.to_string(), true))?;
        let mut out = Self {
            file,
            place: place.clone(),
            blocks: bytes / BLOCK_BYTES,
            grain: 1,
            clock: Clock::start(),
            buffer: Vec::new(),
            caching: None,
            zone: None,
        };
        if out.access(Dir::Read, Lba(0), Blocks(1)).is_err() {
            out.grain = PAGE as u64 / BLOCK_BYTES;
            out.access(Dir::Read, Lba(0), Blocks(1))?;
        }
        if device {
            let mut commands = Sg(out.file.try_clone().map_err(|e| out.fail(&e))?);
            out.zone = zone(&mut commands);
            out.caching = Some(Caching::switch_off(commands, keep_cache));
        }
        Ok(out)
    }

    fn fail(&self, e: &std::io::Error) -> TargetError {
        TargetError { what: format!("{}: {e}", self.place), gone: true }
    }

    /// Why a transfer at a byte ended: the device failed or is gone, or a file became shorter.
    fn failed_at(&self, e: &std::io::Error, byte: u64) -> TargetError {
        let why =
            if e.kind() == ErrorKind::UnexpectedEof { "it ends there now".to_owned() } else { e.to_string() };
        TargetError { what: format!("{} at byte {byte}: {why}", self.place), gone: true }
    }
}

impl TimedTarget for DirectFile {
    fn blocks(&self) -> Blocks {
        Blocks(self.blocks)
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let first = lba.0 / self.grain * self.grain;
        let end = (lba.0 + blocks.0).next_multiple_of(self.grain).min(self.blocks);
        let length = ((end - first) * BLOCK_BYTES) as usize;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(length + PAGE, 0);
        let skip = buffer.as_ptr().align_offset(PAGE);
        let part = &mut buffer[skip..skip + length];
        let start = self.clock.now();
        let done = match dir {
            Dir::Read => self.file.read_exact_at(part, first * BLOCK_BYTES),
            Dir::Write => {
                part.fill(0);
                self.file.write_all_at(part, first * BLOCK_BYTES)
            }
        };
        let end = self.clock.now();
        self.buffer = buffer;
        done.map_err(|e| {
            let refused = refuses(self.zone.as_ref(), dir);
            let error = self.failed_at(&e, first * BLOCK_BYTES);
            TargetError { gone: error.gone && !refused, ..error }
        })?;
        Ok(Timing { start, end })
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        let start = self.clock.now();
        self.file.sync_data().map_err(|e| self.fail(&e))?;
        Ok(Timing { start, end: self.clock.now() })
    }

    fn zone(&self) -> Option<Zone> {
        self.zone
    }

    fn reports(&mut self, zone: Zone) {
        self.zone = Some(zone);
    }

    fn own_cache(&self) -> String {
        let none = "defeated by the pattern of accesses: a file has no commands for it";
        self.caching.as_ref().map_or(none, Caching::said).to_owned()
    }

    fn finish(&mut self) -> Option<String> {
        self.caching.as_mut()?.put_back(&self.place)
    }

    fn pause(&mut self, span: SimTime) {
        self.clock.pause(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{ZoneCondition, ZoneKind};

    /// A file of 1 MiB in a folder of temporary files; none where that has no direct access.
    fn opened(name: &str, write: bool) -> Option<(DirectFile, std::path::PathBuf)> {
        let path = std::env::temp_dir().join(format!("smrlab-direct-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        match DirectFile::open(&path, write, true) {
            Err(e) if e.what.contains("O_DIRECT") => {
                eprintln!("skipped: {e}");
                std::fs::remove_file(&path).unwrap();
                None
            }
            file => Some((file.unwrap(), path)),
        }
    }

    /// Who names a device that is in use has named a wrong one; what else fails is the target's.
    #[test]
    fn a_device_in_use_is_a_wrong_name() {
        for (code, gone, says) in [
            (libc::EBUSY, false, "mounted or in use: unmount it first"),
            (libc::EINVAL, true, "no direct access (O_DIRECT)"),
            (libc::EACCES, true, "root may read and write it"),
            (libc::EIO, true, "os error 5"),
        ] {
            let (what, found) = unopened(&std::io::Error::from_raw_os_error(code));
            assert!(found == gone && what.contains(says), "{what}");
        }
    }

    /// A name that leads nowhere is a wrong one, as a folder is; what cannot be looked at is the host's fault.
    #[test]
    fn what_is_no_file_is_said() {
        let said = |path: &Path| DirectFile::open(path, false, true).map(|_| ()).unwrap_err();
        let folder = std::env::temp_dir();
        let e = said(&folder.join("smrlab-no-such-file"));
        assert!(e.what.contains("smrlab-no-such-file: No such file") && !e.gone, "{e}");
        let e = said(&folder);
        assert!(e.what.ends_with("neither a block device nor a file") && !e.gone, "{e}");
        let e = said(Path::new("/dev/null"));
        assert!(e.what == "/dev/null: neither a block device nor a file" && !e.gone, "{e}");
        let file = folder.join(format!("smrlab-direct-below-{}", std::process::id()));
        std::fs::write(&file, [1; 512]).unwrap();
        let e = said(&file.join("x"));
        assert!(e.what.contains("Not a directory") && e.gone, "{e}");
        std::fs::remove_file(file).unwrap();
    }

    /// What is a device is asked for its zones and its own caches; a file that passes for one takes no such commands.
    #[test]
    fn a_device_is_asked_for_its_own_cache() {
        let Some((_, path)) = opened("device", false) else { return };
        for (keep, says) in
            [(false, "the device has no commands for it"), (true, "left as it is, as asked for")]
        {
            let mut device = DirectFile::open_as(&path, false, keep, true).unwrap();
            assert!(device.own_cache().contains(says), "{}", device.own_cache());
            assert_eq!((device.zone(), device.finish(), device.blocks()), (None, None, Blocks(2048)));
        }
        std::fs::remove_file(path).unwrap();
    }

    /// One that is opened to be read is not written, whoever may; what a device says of a byte is told with the byte.
    #[test]
    fn a_file_that_is_read_is_not_written() {
        let Some((mut file, path)) = opened("read", false) else { return };
        let e = file.access(Dir::Write, Lba(16), Blocks(8)).unwrap_err();
        assert!(e.what.contains("at byte 8192: Bad file descriptor") && e.gone, "{e}");
        assert!(std::fs::read(&path).unwrap().iter().all(|b| *b == 7));
        assert_eq!((file.finish(), file.place.as_str()), (None, path.to_str().unwrap()));
        std::fs::remove_file(path).unwrap();
    }

    /// Whole pages are written, with zeroes, and nothing beside them; a file that became shorter is gone where it was.
    #[test]
    fn a_file_is_read_and_written_past_the_cache() {
        let Some((mut file, path)) = opened("both", true) else { return };
        assert_eq!(file.blocks(), Blocks(2048));
        assert!(file.own_cache().starts_with("defeated by the pattern"));
        let read = file.access(Dir::Read, Lba(9), Blocks(3)).unwrap();
        assert!(read.start < read.end);
        file.access(Dir::Write, Lba(16), Blocks(8)).unwrap();
        let before = file.flush().unwrap();
        file.pause(SimTime::from_ms(3));
        assert!(file.flush().unwrap().start.since(before.end) >= SimTime::from_ms(3));
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.iter().enumerate().all(|(i, b)| *b == if (8192..12_288).contains(&i) { 0 } else { 7 }));
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let e = file.access(Dir::Read, Lba(2000), Blocks(8)).unwrap_err();
        assert!(e.what.ends_with("at byte 1024000: it ends there now") && e.gone, "{e}");
        std::fs::remove_file(path).unwrap();
    }

    /// A file takes transfers as short as its file system does: a block, or a page.
    #[test]
    fn the_least_transfer_is_that_of_the_file_system() {
        let Some((mut file, path)) = opened("least", true) else { return };
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
        let mut bytes = vec![0; 2 * PAGE];
        let at = bytes.as_ptr().align_offset(PAGE);
        let block = direct.read_exact_at(&mut bytes[at..at + 512], 512).is_ok();
        file.access(Dir::Write, Lba(19), Blocks(1)).unwrap();
        let zeroes = if block { 19 * 512..20 * 512 } else { 16 * 512..24 * 512 };
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.iter().enumerate().all(|(i, b)| *b == if zeroes.contains(&i) { 0 } else { 7 }));
        std::fs::remove_file(path).unwrap();
    }

    /// Where whole pages are asked for the last one ends with the file.
    #[test]
    fn the_last_page_ends_with_the_file() {
        let Some((mut file, path)) = opened("end", false) else { return };
        if file.grain == 1 {
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len((1 << 20) + 512).unwrap();
            (file.blocks, file.grain) = (2049, 8);
            file.access(Dir::Read, Lba(2048), Blocks(1)).unwrap();
            file.access(Dir::Read, Lba(2043), Blocks(6)).unwrap();
        }
        std::fs::remove_file(path).unwrap();
    }

    /// A write that fails is the device's fault, but where it reported a zone that refuses what does not fit; reads are its fault.
    #[test]
    fn a_zone_that_was_reported_refuses() {
        let Some((mut file, path)) = opened("zone", false) else { return };
        let failed = |file: &mut DirectFile| file.access(Dir::Write, Lba(0), Blocks(8)).unwrap_err().gone;
        assert_eq!((file.zone(), failed(&mut file)), (None, true));
        let zone = Zone {
            start: Lba(0),
            blocks: Blocks(512),
            kind: ZoneKind::SequentialRequired,
            condition: ZoneCondition::Empty,
            pointer: Some(Lba(0)),
            non_sequential: false,
        };
        file.reports(zone);
        assert_eq!((file.zone(), failed(&mut file)), (Some(zone), false));
        std::fs::remove_file(path).unwrap();
    }
}
