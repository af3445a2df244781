//! The prefill cache: states after a prefill in files, for the next run that begins with the same, by what was written onto which drive
//! and layer, and by which program.
//!
//! A file is an [`ArrayState`], of one drive too; in the place of a drive's name stands everything that the state depends on, and it is
//! compared when the file is read. What takes longer to read than to do again is not kept. The run from it does what the
//! run that wrote it did, operation by operation; `map_bytes_peak` alone may differ, by what containers had
//! grown to, and of `zoned` how many zones are open: a drive that begins has closed them.

use crate::control::{Control, Keep};
use crate::error::Result;
use crate::prefill::Prefill;
use crate::rig::{Rig, Runs};
use crate::spec::Spec;
use crate::state;
use smrlab_array::ArrayState;
use smrlab_blockmap::BlockSet;
use smrlab_drive::SavedState;
use smrlab_trace::replace_file;
use smrlab_units::Blocks;
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

/// A prefill whose state may be in the cache.
pub(crate) struct CachedPrefill<'a> {
    keep: &'a Keep,
    spec: &'a Spec,
    volume: u64,
    what: String,
    path: PathBuf,
}

impl<'a> CachedPrefill<'a> {
    /// `None` where it is not to be kept.
    pub(crate) fn new(
        keep: &'a Keep,
        spec: &'a Spec,
        prefill: &Prefill,
        host: Blocks,
        model: &str,
    ) -> Option<Self> {
        let volume = prefill.volume().filter(|&n| n >= LEAST)?;
        if spec.verify_media || state::own_layer(&spec.layer) {
            return None;
        }
        let what = format!(
            "{} {} array={} layer={} metadata={} seed={} prefill={} span={} volume={volume} host={host} {model}",
            env!("CARGO_PKG_VERSION"),
            keep.program,
            spec.array,
            spec.layer,
            spec.metadata,
            spec.seed,
            prefill.resolved,
            prefill.span,
        );
        let what = what.replace('\n', " ");
        let path = keep.folder.join(format!("{:016x}.{ENDING}", hash(what.as_bytes())));
        Some(Self { keep, spec, volume, what, path })
    }

    /// Brings fresh drives to the state that is kept; `false` where none is, or it cannot be read.
    fn take<V: Runs<E>, const E: bool>(&self, rig: &mut Rig<V, E>) -> Result<bool> {
        let Some(found) = fs::read(&self.path).ok().and_then(|file| ArrayState::decode(&file).ok()) else {
            return Ok(false);
        };
        if found.array.drive != self.what {
            return Ok(false);
        }
        rig.restore(&found)?;
        // Used now: what was not for the longest time goes first. Where the time cannot be set it goes earlier.
        let _ = fs::File::options().append(true).open(&self.path).map(|f| f.set_modified(SystemTime::now()));
        Ok(true)
    }

    /// Keeps the state, if it is smaller than what it takes to get there again. A cache that cannot be written is none, and
    /// no fault of the run.
    fn put<V: Runs<E>, const E: bool>(&self, rig: &mut Rig<V, E>) {
        let most = MOST_RECORDS.min((self.volume / BLOCKS_A_RECORD) as usize);
        let identity = SavedState { drive: self.what.clone(), ..SavedState::default() };
        let Some(state) = rig.state(identity, &state::of_drive(self.spec), most) else { return };
        let Ok(file) = state.encode() else { return };
        if file.len() as u64 > self.keep.bytes {
            return;
        }
        let _ = fs::create_dir_all(&self.keep.folder).and_then(|()| replace_file(&self.path, file));
        bound(&self.keep.folder, self.keep.bytes);
    }
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

/// Writes `prefill` onto fresh drives, or takes what was kept of it.
///
/// # Errors
/// A cancelled run; those of the run's observers.
pub(crate) fn write<V: Runs<E>, const E: bool>(
    prefill: &Prefill,
    cached: Option<&CachedPrefill<'_>>,
    rig: &mut Rig<V, E>,
    (reads, control): (&[BlockSet], &Control),
) -> Result<()> {
    if let Some(cached) = cached
        && cached.take(rig)?
    {
        return Ok(());
    }
    rig.prefill(prefill, reads, control)?;
    if let Some(cached) = cached {
        cached.put(rig);
    }
    Ok(())
}
