//! The leaves of the run map: in memory up to a budget, beyond it in a file without a name beside the store.
//!
//! The file holds nothing that has to survive: it goes with the process, and the map is recovered from the log.
#![allow(unsafe_code)]

use crate::error::{DeviceError, Result};
use std::fs::{File, OpenOptions};
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Runs in a full leaf: 24 bytes each, so that a leaf is a page.
pub(crate) const LEAF: usize = 170;
/// Leaves under a node before it is split.
pub(crate) const FAN: usize = 256;
/// Bytes of a leaf.
pub(crate) const LEAF_BYTES: usize = 4096;
/// The file grows by so many leaves at a time; their space is taken before it is used.
const STEP: u32 = 1024;
/// Frames are made so many at a time; they never move.
const CHUNK: usize = 16;
/// Leaves that are in memory at least, whatever the budget.
const FEWEST: usize = 32;
/// What one change of the map takes at most: leaves read back or put in.
const SPARE: usize = 8;

/// Consecutive blocks whose order among each other is ascending and that count, towards all blocks that they can
/// destroy or be destroyed by, as written at `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRun {
    /// First block.
    pub start: u64,
    /// One past the last block.
    pub end: u64,
    /// Number of the write; numbers rise and are never zero.
    pub seq: u64,
}

/// Runs side by side, in columns: what is searched lies together.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct Leaf {
    pub starts: [u64; LEAF],
    pub ends: [u64; LEAF],
    pub seqs: [u64; LEAF],
    _page: [u64; 2],
}

impl Leaf {
    pub(crate) const EMPTY: Self =
        Self { starts: [0; LEAF], ends: [0; LEAF], seqs: [0; LEAF], _page: [0; 2] };

    /// How many of the first `len` runs start at or before `block`, which is about `guess`: leaves are seldom in the
    /// processor's caches, so each further line that is looked at costs more than all the rest.
    #[inline]
    pub(crate) fn upto(&self, len: usize, block: u64, guess: usize) -> usize {
        let keys = &self.starts[..len];
        let (mut lo, mut hi, mut step) = (guess.min(len), guess.min(len), 1);
        while hi < len && keys[hi] <= block {
            lo = hi + 1;
            hi = (hi + step).min(len);
            step *= 2;
        }
        while lo > 0 && keys[lo - 1] > block {
            hi = lo - 1;
            lo = lo.saturating_sub(step);
            step *= 2;
        }
        lo + upto(&keys[lo..hi], block)
    }

    pub(crate) fn run(&self, i: usize) -> WriteRun {
        WriteRun { start: self.starts[i], end: self.ends[i], seq: self.seqs[i] }
    }

    pub(crate) fn insert(&mut self, len: usize, i: usize, run: WriteRun) {
        for (column, value) in
            [(&mut self.starts, run.start), (&mut self.ends, run.end), (&mut self.seqs, run.seq)]
        {
            column.copy_within(i..len, i + 1);
            column[i] = value;
        }
    }

    pub(crate) fn remove(&mut self, len: usize, from: usize, to: usize) {
        for column in [&mut self.starts, &mut self.ends, &mut self.seqs] {
            column.copy_within(to..len, from);
        }
    }

    /// Takes over the runs `from` of `other`, at `at`.
    fn take(&mut self, at: usize, other: &Self, from: Range<usize>) {
        let to = at..at + from.len();
        self.starts[to.clone()].copy_from_slice(&other.starts[from.clone()]);
        self.ends[to.clone()].copy_from_slice(&other.ends[from.clone()]);
        self.seqs[to].copy_from_slice(&other.seqs[from]);
    }

    fn bytes(&self) -> &[u8; LEAF_BYTES] {
        // SAFETY: plain numbers without padding, of exactly this size.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    fn bytes_mut(&mut self) -> &mut [u8; LEAF_BYTES] {
        // SAFETY: as above; every pattern of bits is a number.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

const _: () = assert!(size_of::<Leaf>() == LEAF_BYTES);

/// How many of the ascending `keys` are at or below `key`.
#[inline]
pub(crate) fn upto(keys: &[u64], key: u64) -> usize {
    let (mut lo, mut n) = (0, keys.len());
    while n > 0 {
        let half = n / 2;
        let right = keys[lo + half] <= key;
        lo = if right { lo + half + 1 } else { lo };
        n = if right { n - half - 1 } else { half };
    }
    lo
}

/// Where a leaf lies: a frame in memory, or a slot of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafPlace(u32);

const IN_FILE: u32 = 1 << 31;

impl LeafPlace {
    const NONE: Self = Self(0);

    /// The frame, if it is in memory.
    pub(crate) fn frame(self) -> Option<usize> {
        (self.0 & IN_FILE == 0).then_some(self.0 as usize)
    }
}

/// Leaves side by side: the first block of each, where it lies, and how many runs it has.
pub(crate) struct Node {
    pub len: usize,
    pub firsts: [u64; FAN],
    pub places: [LeafPlace; FAN],
    pub lens: [u8; FAN],
}

impl Node {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { len: 0, firsts: [0; FAN], places: [LeafPlace::NONE; FAN], lens: [0; FAN] })
    }

    pub(crate) fn insert(&mut self, i: usize, first: u64, place: LeafPlace, len: usize) {
        let n = self.len;
        self.firsts.copy_within(i..n, i + 1);
        self.places.copy_within(i..n, i + 1);
        self.lens.copy_within(i..n, i + 1);
        (self.firsts[i], self.places[i], self.lens[i]) = (first, place, len as u8);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, i: usize) {
        let n = self.len;
        self.firsts.copy_within(i + 1..n, i);
        self.places.copy_within(i + 1..n, i);
        self.lens.copy_within(i + 1..n, i);
        self.len -= 1;
    }

    /// Takes over what `other` has from `from` on.
    pub(crate) fn take(&mut self, other: &mut Self, from: usize) {
        let (at, n) = (self.len, other.len - from);
        self.firsts[at..at + n].copy_from_slice(&other.firsts[from..from + n]);
        self.places[at..at + n].copy_from_slice(&other.places[from..from + n]);
        self.lens[at..at + n].copy_from_slice(&other.lens[from..from + n]);
        self.len += n;
        other.len = from;
    }
}

/// A leaf to look at; one that lies in the file is a copy.
pub(crate) enum View<'a> {
    /// In memory.
    Frame(&'a Leaf),
    /// Read from the file.
    Copy(Box<Leaf>),
}

impl Deref for View<'_> {
    type Target = Leaf;

    #[inline]
    fn deref(&self) -> &Leaf {
        match self {
            Self::Frame(leaf) => leaf,
            Self::Copy(leaf) => leaf,
        }
    }
}

/// The file.
struct Spill {
    file: File,
    path: PathBuf,
    slots: u32,
    free: Vec<u32>,
}

impl Spill {
    /// Takes space for more leaves.
    fn grow(&mut self) -> Result<()> {
        let (at, len) = (u64::from(self.slots) * LEAF_BYTES as u64, u64::from(STEP) * LEAF_BYTES as u64);
        // SAFETY: a plain system call on an open descriptor.
        let errno = unsafe { libc::posix_fallocate64(self.file.as_raw_fd(), at as i64, len as i64) };
        if errno != 0 {
            let e = std::io::Error::from_raw_os_error(errno);
            return Err(DeviceError::io(format!("spilling the run map into {}", self.path.display()), &e));
        }
        self.free.extend((self.slots..self.slots + STEP).rev());
        self.slots += STEP;
        Ok(())
    }

    fn read(&self, slot: u32, leaf: &mut Leaf) {
        let at = u64::from(slot) * LEAF_BYTES as u64;
        self.file.read_exact_at(leaf.bytes_mut(), at).unwrap_or_else(|e| self.lost(&e));
    }

    fn write(&self, slot: u32, leaf: &Leaf) {
        let at = u64::from(slot) * LEAF_BYTES as u64;
        self.file.write_all_at(leaf.bytes(), at).unwrap_or_else(|e| self.lost(&e));
    }

    /// A part of the map is gone: nothing true can be said any more. The log still has all, as after a kill.
    #[cold]
    fn lost(&self, e: &std::io::Error) -> ! {
        eprintln!(
            "smrlab: the run map that was spilled into {}: {e}; the server ends, start the device again",
            self.path.display()
        );
        std::process::abort()
    }
}

/// What the leaves take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes in memory.
    pub resident: u64,
    /// Bytes in the file.
    pub spilled: u64,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Leaves {
    chunks: Vec<Box<[Leaf]>>,
    /// Frames that were used since the hand passed.
    hot: Vec<bool>,
    idle: Vec<u32>,
    hand: usize,
    /// Frames to have at most, as far as there is a file.
    most: usize,
    spill: Option<Spill>,
}

impl Leaves {
    /// Lets leaves go to a file in `dir` when there are more than `bytes` of them.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn spill_into(&mut self, dir: &Path, bytes: u64) -> Result<()> {
        let path = dir.join("spill");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path);
        let file = file.and_then(|f| std::fs::remove_file(&path).map(|()| f));
        let file = file.map_err(|e| DeviceError::io(format!("making {}", path.display()), &e))?;
        self.spill = Some(Spill { file, path, slots: 0, free: Vec::new() });
        self.most = ((bytes / LEAF_BYTES as u64) as usize).max(FEWEST);
        Ok(())
    }

    /// Whether there is a file to spill into.
    pub(crate) fn spills(&self) -> bool {
        self.spill.is_some()
    }

    /// What they take.
    pub(crate) fn room(&self) -> Room {
        let spilled = self.spill.as_ref().map_or(0, |s| s.slots as usize - s.free.len());
        let bytes = |leaves: usize| (leaves * LEAF_BYTES) as u64;
        Room { resident: bytes(self.hot.len()), spilled: bytes(spilled) }
    }

    /// A leaf to look at.
    #[inline]
    pub(crate) fn view(&self, place: LeafPlace) -> View<'_> {
        match place.frame() {
            Some(frame) => View::Frame(&self.chunks[frame / CHUNK][frame % CHUNK]),
            None => View::Copy(self.copy(place)),
        }
    }

    /// Fetches what is known of run `i` of a leaf into the processor's caches, all columns at once.
    #[inline]
    pub(crate) fn prefetch(&self, place: LeafPlace, i: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(frame) = place.frame() {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let leaf = &self.chunks[frame / CHUNK][frame % CHUNK];
            for column in [&leaf.starts, &leaf.ends, &leaf.seqs] {
                // SAFETY: a hint, and of memory that is ours.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(&column[i]).cast()) };
            }
        }
    }

    #[cold]
    fn copy(&self, place: LeafPlace) -> Box<Leaf> {
        let mut leaf = Box::new(Leaf::EMPTY);
        self.spill.as_ref().expect("a leaf in the file").read(place.0 & !IN_FILE, &mut leaf);
        leaf
    }

    /// The leaf in a frame, to change.
    pub(crate) fn frame(&mut self, frame: usize) -> &mut Leaf {
        self.hot[frame] = true;
        &mut self.chunks[frame / CHUNK][frame % CHUNK]
    }

    /// Copies runs of one frame to another.
    pub(crate) fn copy_runs(&mut self, from: usize, runs: Range<usize>, to: usize, at: usize) {
        let source = self.frame(from).clone();
        self.frame(to).take(at, &source, runs);
    }

    /// A frame for a leaf that is put in; takes more memory when there is none.
    pub(crate) fn take(&mut self) -> LeafPlace {
        if self.idle.is_empty() {
            let first = self.hot.len() as u32;
            self.chunks.push(vec![Leaf::EMPTY; CHUNK].into_boxed_slice());
            self.hot.resize(self.hot.len() + CHUNK, false);
            self.idle.extend((first..first + CHUNK as u32).rev());
        }
        LeafPlace(self.idle.pop().expect("just made"))
    }

    /// Reads a leaf back from the file.
    pub(crate) fn load(&mut self, place: LeafPlace) -> LeafPlace {
        let to = self.take();
        let (frame, slot) = (to.0 as usize, place.0 & !IN_FILE);
        let spill = self.spill.as_mut().expect("a leaf in the file");
        spill.read(slot, &mut self.chunks[frame / CHUNK][frame % CHUNK]);
        spill.free.push(slot);
        to
    }

    /// Gives a leaf up.
    pub(crate) fn free(&mut self, place: LeafPlace) {
        match (place.frame(), &mut self.spill) {
            (None, Some(spill)) => spill.free.push(place.0 & !IN_FILE),
            _ => self.idle.push(place.0),
        }
    }

    /// Whether a change may begin without putting a leaf out first.
    pub(crate) fn ready(&self) -> bool {
        self.idle.len() >= SPARE || self.spill.is_none() || self.hot.len() < self.most
    }

    /// Sees to it that leaves can be put out.
    ///
    /// # Errors
    /// When the disk is full.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Result<()> {
        match &mut self.spill {
            Some(spill) if self.hot.len() >= self.most && spill.free.len() < 2 * SPARE => spill.grow(),
            _ => Ok(()),
        }
    }

    /// Puts a leaf out that was not used of late: answers with its first block and its new place. `None` when there is
    /// no space for it: the map then takes more memory than its budget.
    pub(crate) fn put_out(&mut self) -> Option<(u64, LeafPlace)> {
        self.reserve().ok()?;
        let spill = self.spill.as_mut()?;
        // Idle frames are few here, or none would be put out.
        let frame = loop {
            self.hand = (self.hand + 1) % self.hot.len();
            if !std::mem::take(&mut self.hot[self.hand]) && !self.idle.contains(&(self.hand as u32)) {
                break self.hand;
            }
        };
        let (slot, leaf) = (spill.free.pop()?, &self.chunks[frame / CHUNK][frame % CHUNK]);
        spill.write(slot, leaf);
        self.idle.push(frame as u32);
        Some((leaf.starts[0], LeafPlace(slot | IN_FILE)))
    }

    /// From now on the file cannot grow.
    #[cfg(test)]
    pub(crate) fn disk_is_full(&mut self) {
        use std::os::fd::FromRawFd;
        let spill = self.spill.as_mut().expect("a file");
        // SAFETY: plain system calls, and a descriptor that nobody else has.
        let sealed =
            unsafe { File::from_raw_fd(libc::memfd_create(c"spill".as_ptr(), libc::MFD_ALLOW_SEALING)) };
        std::io::copy(&mut &spill.file, &mut &sealed).expect("a copy");
        // SAFETY: a plain system call.
        let done = unsafe { libc::fcntl(sealed.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) };
        assert_eq!(done, 0);
        spill.file = sealed;
        spill.free.clear();
    }
}
