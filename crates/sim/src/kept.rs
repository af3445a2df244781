//! Prefills that are kept in files, for the next run that begins with the same: by what was written onto which drive
//! and layer, and by which program.
//!
//! A file is a [`State`]; in the place of the drive's name stands everything that the state depends on, and it is
//! compared when the file is read. What takes longer to read than to do again is not kept. The run from it does what the
//! run that wrote it did, operation by operation; `map_bytes_peak` alone may differ, by what containers had grown to.

use crate::control::{Control, Keep};
use crate::engine::HostObserver;
use crate::error::RunError;
use crate::prefill::Prefill;
use crate::spec::Spec;
use crate::state;
use smrlab_blockmap::BlockSet;
use smrlab_drive::{Drive, State};
use smrlab_stl::Record;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Blocks of a prefill below which doing it is faster than reading it.
const LEAST: u64 = 1 << 21;
/// Records of the layer's checkpoint above which doing the prefill again is faster, and takes less memory.
const MOST_RECORDS: usize = 1 << 24;
/// Blocks of the prefill for each record of the checkpoint, at least: reading a record takes about as long as writing
/// some 4 KiB.
const BLOCKS_A_RECORD: u64 = 32;
const ENDING: &str = "prefill";

/// A prefill that may be kept.
pub(crate) struct Kept<'a> {
    keep: &'a Keep,
    spec: &'a Spec,
    what: String,
    path: PathBuf,
}

impl<'a> Kept<'a> {
    /// `None` where it is not to be kept.
    pub fn new(
        keep: &'a Keep,
        spec: &'a Spec,
        prefill: &Prefill,
        drive: &Drive,
        model: &str,
    ) -> Option<Self> {
        let volume = prefill.volume().filter(|&n| n >= LEAST)?;
        if spec.verify_media || state::own_layer(&spec.layer) {
            return None;
        }
        let host = drive.layer().host_blocks();
        let what = format!(
            "{} {} layer={} metadata={} seed={} prefill={} span={} volume={volume} host={host} {model}",
            env!("CARGO_PKG_VERSION"),
            keep.program,
            spec.layer,
            spec.metadata,
            spec.seed,
            prefill.resolved,
            prefill.span,
        );
        let what = what.replace('\n', " ");
        let path = keep.folder.join(format!("{:016x}.{ENDING}", hash(what.as_bytes())));
        Some(Self { keep, spec, what, path })
    }

    /// Brings a fresh drive to the state that is kept; `false` where none is, or it cannot be read.
    pub fn take(&self, drive: &mut Drive, observer: &mut impl HostObserver) -> bool {
        let Some(found) = fs::read(&self.path).ok().and_then(|file| State::decode(&file).ok()) else {
            return false;
        };
        let blocks = drive.mechanics().geometry().blocks().0;
        if found.expect(&self.what, &self.spec.layer, &self.spec.metadata, blocks).is_err() {
            return false;
        }
        state::restore(&found, drive, observer);
        // Used now: what was not for the longest time goes first. Where the time cannot be set it goes earlier.
        let _ = fs::File::options().append(true).open(&self.path).map(|f| f.set_modified(SystemTime::now()));
        true
    }

    /// Keeps the drive's state, if it is smaller than what it takes to get there again. A cache that cannot be written is
    /// none, and no fault of the run.
    pub fn put(&self, drive: &Drive, volume: u64, observer: &mut impl HostObserver) {
        let most = MOST_RECORDS.min((volume / BLOCKS_A_RECORD) as usize);
        // Each neighbourhood in a cache is a record: a look at a large checkpoint takes long, too.
        if drive.layer().facts().cached.is_some_and(|n| n.0 / 8 > most as u64) {
            return;
        }
        let Some(written) = observer.written_within(most) else { return };
        let Some(records) = checkpoint(drive, most.saturating_sub(written.len())) else { return };
        let state = State {
            drive: self.what.clone(),
            layer: self.spec.layer.clone(),
            metadata: self.spec.metadata.clone(),
            blocks: drive.mechanics().geometry().blocks().0,
            head: drive.mechanics().head().next.0,
            records,
            written,
        };
        let Ok(file) = state.encode() else { return };
        if file.len() as u64 > self.keep.bytes {
            return;
        }
        let partial = self.path.with_extension(format!("{}.partial", std::process::id()));
        let done = fs::create_dir_all(&self.keep.folder)
            .and_then(|()| fs::write(&partial, file))
            .and_then(|()| fs::rename(&partial, &self.path));
        if done.is_err() {
            let _ = fs::remove_file(&partial);
        }
        bound(&self.keep.folder, self.keep.bytes);
    }
}

/// The layer's checkpoint, unless it has more than `most` records.
fn checkpoint(drive: &Drive, most: usize) -> Option<Vec<Record>> {
    let (mut records, mut more) = (Vec::new(), false);
    drive.layer().checkpoint(&mut |record| {
        more |= records.len() >= most;
        if !more {
            records.push(record);
        }
    });
    (!more).then_some(records)
}

/// Removes the files that were used the longest time ago until the rest take no more than `bytes`.
fn bound(folder: &Path, bytes: u64) {
    let Ok(found) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = found
        .flatten()
        .filter(|f| f.path().extension().is_some_and(|e| e == ENDING))
        .filter_map(|f| f.metadata().ok().and_then(|m| Some((m.modified().ok()?, m.len(), f.path()))))
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    for (_, size, path) in files {
        if total <= bytes {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= size;
        }
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Writes `prefill` onto a fresh drive, or takes what was kept of it.
///
/// # Errors
/// A cancelled run.
pub(crate) fn write(
    prefill: &Prefill,
    kept: Option<&Kept<'_>>,
    drive: &mut Drive,
    observer: &mut impl HostObserver,
    (reads, control): (&BlockSet, &Control),
) -> Result<(), RunError> {
    if kept.is_some_and(|k| k.take(drive, observer)) {
        return Ok(());
    }
    prefill.write(drive, observer, reads, control)?;
    if let (Some(kept), Some(volume)) = (kept, prefill.volume()) {
        kept.put(drive, volume, observer);
    }
    Ok(())
}
