//! The prefill cache: states after a prefill in files, for the next run that begins with the same, by what was written onto which drive
//! and layer, and by which program.
//!
//! A file is an [`ArrayState`], of one drive too; in the place of a drive's name stands everything that the state depends on, and it is
//! compared when the file is read. What takes longer to read than to do again is not kept.
//!
//! A run that could begin with a file always goes on from a fresh drive with the state, with no cache and where it wrote the file
//! itself too. So no figure says where the prefill came from.

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

/// A prefill that leaves a state from which the run can begin.
pub(crate) struct Repeated<'a> {
    spec: &'a Spec,
    volume: u64,
    file: Option<CacheFile<'a>>,
}

/// Where the state is kept.
struct CacheFile<'a> {
    keep: &'a Keep,
    what: String,
    path: PathBuf,
}

impl<'a> Repeated<'a> {
    /// `None` where it is done anew each time. `keep`: where states are kept, if they are.
    pub(crate) fn new(
        keep: Option<&'a Keep>,
        spec: &'a Spec,
        prefill: &Prefill,
        host: Blocks,
        model: &str,
    ) -> Option<Self> {
        let volume = prefill.volume().filter(|&n| n >= LEAST)?;
        // What a run from a state writes before it depends on that state, too.
        if spec.verify_media || spec.from_state.is_some() || state::own_layer(&spec.layer) {
            return None;
        }
        let file = keep.map(|keep| CacheFile::new(keep, spec, (prefill, volume), host, model));
        Some(Self { spec, volume, file })
    }

    /// The state after the prefill, if it is smaller than what it takes to get there again.
    fn state<V: Runs<E>, const E: bool>(&self, rig: &mut Rig<V, E>) -> Option<ArrayState> {
        let most = MOST_RECORDS.min((self.volume / BLOCKS_A_RECORD) as usize);
        let what = self.file.as_ref().map(|file| file.what.clone()).unwrap_or_default();
        let identity = SavedState { drive: what, ..SavedState::default() };
        rig.state(identity, &state::of_drive(self.spec), most)
    }
}

impl<'a> CacheFile<'a> {
    fn new(
        keep: &'a Keep,
        spec: &Spec,
        (prefill, volume): (&Prefill, u64),
        host: Blocks,
        model: &str,
    ) -> Self {
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
        Self { keep, what, path }
    }

    /// The state that is kept; `None` where none is, or it cannot be read.
    fn take(&self) -> Option<ArrayState> {
        let found = fs::read(&self.path).ok().and_then(|file| ArrayState::decode(&file).ok())?;
        if found.array.drive != self.what {
            return None;
        }
        // Used now: what was not for the longest time goes first. Where the time cannot be set it goes earlier.
        let _ = fs::File::options().append(true).open(&self.path).map(|f| f.set_modified(SystemTime::now()));
        Some(found)
    }

    /// Keeps the state. A cache that cannot be written is none, and no fault of the run.
    fn put(&self, state: &ArrayState) {
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

/// Writes `prefill` onto the fresh drives of `rig`, or takes what was kept of it. Answers what the run goes on with: where the state can
/// be told, other fresh drives with that state, from `fresh`.
///
/// # Errors
/// A cancelled run; those of the run's observers.
pub(crate) fn write<V: Runs<E>, const E: bool>(
    prefill: &Prefill,
    repeated: Option<&Repeated<'_>>,
    mut rig: Rig<V, E>,
    fresh: impl FnOnce(&Spec) -> Result<Option<Rig<V, E>>>,
    (reads, control): (&[BlockSet], &Control),
) -> Result<Rig<V, E>> {
    let file = repeated.and_then(|r| r.file.as_ref());
    if let Some(state) = file.and_then(CacheFile::take) {
        rig.restore(&state)?;
        return Ok(rig);
    }
    rig.prefill(prefill, reads, control)?;
    let Some((spec, state)) = repeated.and_then(|r| Some((r.spec, r.state(&mut rig)?))) else {
        return Ok(rig);
    };
    if let Some(file) = file {
        file.put(&state);
    }
    let Some(mut begins) = fresh(spec)? else { return Ok(rig) };
    begins.log_to(rig.logs());
    // What the prefill has grown need not stand beside what is made anew.
    drop(rig);
    begins.restore(&state)?;
    Ok(begins)
}
