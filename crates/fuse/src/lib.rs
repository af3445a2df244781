//! A device as the file `disk` of a FUSE file system: the fastest local way to it, and what loop devices are set up on.

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow,
    WriteFlags,
};
use smrlab_device::{Device, DeviceError, Result};
use std::cell::RefCell;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The file's name.
const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
/// Attributes never change while mounted.
const TTL: Duration = Duration::from_secs(3600);
/// Largest transfer that the kernel makes.
const TRANSFER: u32 = 1 << 20;
const THREADS: usize = 4;
/// How long something may take to let go of a mount.
const PATIENCE: Duration = Duration::from_secs(2);

/// A mount, undone when dropped.
pub struct Mounted {
    file: PathBuf,
    session: BackgroundSession,
}

impl Mounted {
    /// The path of the device's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Waits for a moment until nothing uses the mount: a loop device on it is gone a little after it was taken away.
    ///
    /// # Errors
    /// When it is in use still.
    pub fn wait_until_unused(&self) -> Result<()> {
        let Some(dir) = self.file.parent() else { return Ok(()) };
        let until = Instant::now() + PATIENCE;
        while in_use(dir) {
            if Instant::now() > until {
                let text = format!("{} is in use: something has {NAME} open, or works there", dir.display());
                return Err(DeviceError::new(libc::EBUSY, text));
            }
            std::thread::sleep(PATIENCE / 200);
        }
        Ok(())
    }

    /// Takes the mount down.
    ///
    /// # Errors
    /// When it is in use.
    pub fn unmount(self) -> Result<()> {
        let name = self.file.display().to_string();
        self.session.umount_and_join().map_err(|e| DeviceError::io(format!("unmounting {name}"), &e))
    }
}

/// Serves `device` as `dir/disk`.
///
/// # Errors
/// When `dir` is not a directory, or FUSE is not to be had.
pub fn mount(device: Arc<Device>, dir: &Path) -> Result<Mounted> {
    if !dir.is_dir() {
        return Err(DeviceError::input(format!("{} is not a directory", dir.display())));
    }
    let name = device.config().name.clone();
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName(format!("smrlab-{name}")), MountOption::Subtype("smrlab".into())];
    config.acl = SessionACL::Owner;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let disk = Disk { device, since: SystemTime::now(), edges: Mutex::new(()) };
    let session = fuser::spawn_mount(disk, dir, &config).map_err(|e| {
        DeviceError::io(
            format!("mounting at {} (is /dev/fuse there, and fuse3 installed?)", dir.display()),
            &e,
        )
    })?;
    Ok(Mounted { file: dir.join(NAME), session })
}

/// Whether something uses the mount at `dir`, as far as this user may know.
#[allow(unsafe_code)]
fn in_use(dir: &Path) -> bool {
    let Ok(at) = CString::new(dir.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string that outlives the call. Asked once, it marks a mount that nothing uses, and leaves it.
    let done = unsafe { libc::umount2(at.as_ptr(), libc::MNT_EXPIRE) };
    done != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
}

struct Disk {
    device: Arc<Device>,
    since: SystemTime,
    /// Held while a write that is not aligned to blocks reads, changes and writes them.
    edges: Mutex<()>,
}

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Disk {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let size = if ino == FILE { self.device.size() } else { 0 };
        let (kind, perm) =
            if ino == FILE { (FileType::RegularFile, 0o600) } else { (FileType::Directory, 0o700) };
        let t = self.since;
        let (mtime, ctime, crtime) = (t, t, t);
        let (atime, nlink, rdev, flags) = (t, 1, 0, 0);
        let (blksize, blocks) = (4096, size / 512);
        let (uid, gid) = ids();
        FileAttr {
            ino,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize,
            flags,
        }
    }

    /// The blocks around `len` bytes from `offset`, in bytes.
    fn around(&self, offset: u64, len: u64) -> (u64, u64) {
        let unit = u64::from(self.device.block_size());
        (offset / unit * unit, (offset + len).next_multiple_of(unit))
    }

    fn fetch(&self, offset: u64, size: u32, reply: ReplyData) {
        let len = u64::from(size).min(self.device.size().saturating_sub(offset));
        let (start, end) = self.around(offset, len);
        BUFFER.with_borrow_mut(|buf| {
            let n = (end - start) as usize;
            if buf.len() < n {
                buf.resize(n, 0);
            }
            match self.device.read(start, &mut buf[..n]) {
                Ok(()) => reply.data(&buf[(offset - start) as usize..(offset - start + len) as usize]),
                Err(e) => reply.error(errno(&e)),
            }
        });
    }

    fn store(&self, offset: u64, data: &[u8], fua: bool) -> Result<()> {
        let (start, end) = self.around(offset, data.len() as u64);
        if start == offset && end == offset + data.len() as u64 {
            return self.device.write(offset, data, fua);
        }
        let _held = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let mut whole = vec![0; (end - start) as usize];
        self.device.read(start, &mut whole)?;
        whole[(offset - start) as usize..][..data.len()].copy_from_slice(data);
        self.device.write(start, &whole, fua)
    }
}

fn ids() -> (u32, u32) {
    let me = std::fs::metadata("/proc/self");
    me.map_or((0, 0), |m| (std::os::unix::fs::MetadataExt::uid(&m), std::os::unix::fs::MetadataExt::gid(&m)))
}

fn errno(e: &DeviceError) -> Errno {
    Errno::from_i32(e.errno())
}

impl Filesystem for Disk {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.set_max_write(TRANSFER);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&TTL, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(ino));
    }

    /// Times, owner, mode and size are fixed; asking for others is no error, so that `dd of=…` works.
    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&TTL, &self.attributes(ino));
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // No page cache in between: it would hide what is destroyed.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.fetch(offset, size, reply);
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let fua = flags.0 & (libc::O_SYNC | libc::O_DSYNC) != 0;
        match self.store(offset, data, fua) {
            Ok(()) => reply.written(data.len() as u32),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        match self.device.flush() {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            libc::FALLOC_FL_PUNCH_HOLE if self.device.can_trim() => self.device.trim(offset, length, false),
            libc::FALLOC_FL_ZERO_RANGE => self.device.zero(offset, length, false),
            _ => Err(DeviceError::new(
                libc::EOPNOTSUPP,
                "no space to allocate, or none that this layer could free",
            )),
        };
        match done {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, NAME),
        ];
        for (i, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(ino, i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
