//! One drive on its store: assembled from its text, shortened to what was asked for, opened.

use crate::changes::{Assembly, Entries};
use crate::config::{Config, StoreKind, Timing};
use crate::error::{DeviceError, Result};
use crate::faults::PHYSICAL_OF_ZONES;
use crate::log::Log;
use crate::medium::{Medium, Mode, Reading, recover};
use crate::plan_bytes::Bytes;
use crate::shingle::Shingle;
use crate::store::header::{Header, StoreDir, fresh_id};
use crate::store::{BlockDevice, Locked, Memory, Sparse, Store};
use crate::tag;
use crate::tracks::Tracks;
use smrlab_array::Member;
use smrlab_blockmap::BlockSet;
use smrlab_disk::{Interference, Model, PhysicalProfile};
use smrlab_drive::{Assembled, SavedState, Wanted, assemble};
use smrlab_stl::{Records, build};
use smrlab_trace::read_drive;
use smrlab_units::problems::Problems;
use smrlab_units::spec::split_item;
use smrlab_units::{BLOCK_BYTES, Blocks, Pba};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The layer that is no layer: the host sees the medium.
pub(crate) const RAW: &str = "raw";
/// Most attempts at a medium that gives the host what it is to see.
const ROUNDS: usize = 12;

/// Comes between the bytes of a store and what uses them; it is told whose they are: a disk's by its number, the SSD's by the one behind
/// the last disk.
pub(crate) type Between = Arc<dyn Fn(usize, Box<dyn Store>) -> Box<dyn Store> + Send + Sync>;

/// A drive on its medium, before it is started.
pub(crate) struct Opened {
    /// The drive with its layer.
    pub drive: Assembled,
    /// Its medium.
    pub medium: Medium,
    /// What the layer kept.
    pub records: Records,
    /// The host's blocks that were ever written, where that is kept.
    pub written: BlockSet,
    /// Its store was made just now.
    pub fresh: bool,
    /// Nothing was written to it yet.
    pub blank: bool,
}

impl Opened {
    /// Brings a blank drive to a state, of which `written` says what the host had written, where that is kept. A start that is cut short
    /// leaves the store blank, not half as old.
    ///
    /// # Errors
    /// What the operating system answers.
    pub(crate) fn begin(&mut self, state: &SavedState, written: &[Range<u64>]) -> Result<()> {
        if !self.blank {
            return Ok(());
        }
        self.drive.mechanics.rest_at(Pba(state.head));
        self.records = state.records.clone();
        let mut entries = Entries::of(&self.records);
        for blocks in written {
            self.written.insert(blocks.clone());
            entries.written(blocks);
        }
        self.medium.keep(entries)
    }

    /// The drive at work as a member of an array, its layer brought to where the records say it was.
    ///
    /// # Errors
    /// When what recovery has to write cannot be written.
    pub(crate) fn start(self) -> Result<(Member, Bytes)> {
        let (mut drive, scheduler) = self.drive.start(true, true);
        let bytes = Bytes::recovered(&mut drive, self.medium, &self.records)?;
        Ok((Member::of_drive(drive, &scheduler), bytes))
    }
}

/// The drive with its layer, shortened to the medium asked for, or to what gives the host the size asked for.
///
/// `drives` of it offer the host what `host` says.
///
/// # Errors
/// What is wrong with them, or more asked for than the drive has.
pub(crate) fn drive(
    config: &Config,
    drives: u64,
    host: &dyn Fn(&Assembled) -> Result<u64>,
) -> Result<Assembled> {
    let Some(bytes) = config.host_size else {
        return assembled(config, config.size.map(|bytes| Blocks(bytes / BLOCK_BYTES)));
    };
    let wanted = bytes.div_ceil(BLOCK_BYTES);
    if let Some(drive) = stored(config).and_then(|medium| assembled(config, Some(medium)).ok())
        && host(&drive).is_ok_and(|offered| (wanted..2 * wanted).contains(&offered))
    {
        return Ok(drive);
    }
    let (mut too_small, mut medium) = (0, (wanted / drives).max(1));
    for _ in 0..ROUNDS {
        let Ok(drive) = assembled(config, Some(Blocks(medium))) else {
            // So little medium that the layer has no room, or more than the drive has.
            too_small = medium;
            medium = medium.saturating_mul(2);
            continue;
        };
        // An array may not fit on such small drives.
        let offered = host(&drive).unwrap_or(wanted / 2);
        if offered >= wanted {
            let enough = |drive: &Assembled| host(drive).is_ok_and(|offered| offered >= wanted);
            let little = offered - wanted <= wanted / 256;
            return Ok(if little { drive } else { smallest(config, drive, too_small..medium, &enough) });
        }
        too_small = medium;
        let scaled = u128::from(medium) * u128::from(wanted) / u128::from(offered.max(1));
        medium = (scaled as u64).max(medium + medium / 256) + 1;
    }
    let whole = assembled(config, None)?;
    let host = host(&whole)?;
    if host >= wanted {
        return Ok(whole);
    }
    let text = format!(
        "{} on {} offers the host {} bytes: --size can be no more",
        config.layer,
        if drives == 1 { "this drive".to_owned() } else { format!("{drives} of this drive") },
        host * BLOCK_BYTES
    );
    Err(DeviceError::input(text))
}

/// The medium to which the drive of a store that is there was shortened, however that was found when it was made.
fn stored(config: &Config) -> Option<Blocks> {
    let dir = match &config.store {
        StoreKind::Memory => return None,
        StoreKind::Directory(dir) | StoreKind::Device { state: dir, .. } => dir,
    };
    let header = StoreDir::header(dir).ok()?;
    let (_, capacity) = split_item(&header.drive).1.into_iter().find(|(key, _)| *key == "capacity")?;
    capacity.strip_suffix("blk")?.parse().ok().map(Blocks)
}

/// The drive with about the least medium in a range that is `enough`, as it is with `drive`, which has the end of it: where zones are
/// whole ones a little more medium may give a zone more, or zones of twice the size.
fn smallest(
    config: &Config,
    mut drive: Assembled,
    mut medium: Range<u64>,
    enough: &dyn Fn(&Assembled) -> bool,
) -> Assembled {
    while medium.end - medium.start > 1 + medium.end / 256 {
        let middle = medium.start.midpoint(medium.end);
        match assembled(config, Some(Blocks(middle))).ok().filter(enough) {
            Some(smaller) => (drive, medium.end) = (smaller, middle),
            None => medium.start = middle,
        }
    }
    drive
}

/// The drive with its layer, with so much medium.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn assembled(config: &Config, medium: Option<Blocks>) -> Result<Assembled> {
    let wanted = Wanted {
        drive: &config.drive,
        layer: &config.layer,
        scheduler: if config.timing == Timing::Model { &config.scheduler } else { "fcfs" },
        metadata: &config.metadata,
        mechanics: (config.timing == Timing::None).then(|| Model::Instant.name()),
        medium,
        seed: config.seed,
    };
    let mut problems = Problems::default();
    assemble(&wanted, read_drive, &build, &mut problems)
        .filter(|_| problems.is_empty())
        .ok_or_else(|| DeviceError::input(problems.to_string()))
}

/// Opens, or makes, the store of one drive; `between` comes between its medium and its bytes.
///
/// # Errors
/// When the drive cannot be served, or the store is not as it should be.
pub(crate) fn opened(
    config: &Config,
    drive: Assembled,
    boot: u64,
    between: &dyn Fn(Box<dyn Store>) -> Box<dyn Store>,
) -> Result<Opened> {
    let built = &drive.built;
    served(built.drive.interference())?;
    let tracks = Arc::new(Tracks::new(built.drive.geometry().clone()));
    let mut shingle = match built.drive.interference() {
        Interference::Blocks(p) if p.reach > 1 => Shingle::of_blocks(tracks.clone(), p),
        _ => Shingle::new(tracks.clone(), built.drive.head_width()),
    };
    let (mut records, mut written) = (Records::default(), BlockSet::new());
    let mut assembly = Assembly::default();
    let mut resolved = built.resolved.clone();
    if config.metadata == "media" {
        resolved += ",metadata=media";
    }
    let (store, state, fresh) = store(config, &resolved, &built.drive.resolved(), &tracks)?;
    let store = between(store);
    let log = match state {
        Some((dir, id)) => {
            shingle.spill_into(&dir, config.map_budget)?;
            let each = &mut |e| match recover(&mut shingle, e) {
                Some(e) if e.tag == tag::LAYER | tag::HOST => _ = written.insert(e.words[0]..e.words[1]),
                Some(e) => assembly.take(&e, &mut records),
                None => {}
            };
            Some(Log::open(&dir, id, boot, each)?)
        }
        None => None,
    };
    let blank = records.is_empty() && written.is_empty() && log.as_ref().is_none_or(Log::is_empty);
    let stale = built.layer.facts().identity && log.as_ref().is_some_and(Log::stale);
    let reading = match built.entry.name == RAW {
        true => Reading { mode: config.mode, errors: config.errors },
        false => Reading { mode: Mode::Performance, errors: false },
    };
    let medium = Medium::new(shingle, store, log, reading);
    if built.layer.facts().zones.is_some() {
        medium.faults.sectors_of(Blocks(u64::from(PHYSICAL_OF_ZONES) / BLOCK_BYTES));
    }
    if stale {
        medium.forget_unknown()?;
    }
    Ok(Opened { drive, medium, records, written, fresh, blank })
}

/// Refuses what the served medium does not destroy as the drive would.
fn served(interference: Interference) -> Result<()> {
    match interference {
        Interference::Physical(PhysicalProfile { phi_cw: 0, phi_ccw: 0, wave: 0, .. })
        | Interference::Blocks(_) => Ok(()),
        Interference::Physical(p) if p.wave > 0 => Err(DeviceError::input(
            "bands that share guards (guards=shared) are for runs and cannot be served yet",
        )),
        Interference::Physical(_) => {
            Err(DeviceError::input("drives whose writes reach along the track (phi) cannot be served yet"))
        }
    }
}

/// The store, where its state is kept with the number that tells it from others' (none in memory), and whether it is new.
fn store(
    config: &Config,
    layer: &str,
    drive: &str,
    tracks: &Tracks,
) -> Result<(Box<dyn Store>, Option<(PathBuf, u64)>, bool)> {
    let bytes = tracks.blocks() * BLOCK_BYTES;
    let (layer, drive, blocks) = (layer.to_owned(), drive.to_owned(), tracks.blocks());
    let header =
        |device| Header { id: fresh_id(), blocks, layer: layer.clone(), drive: drive.clone(), device };
    let (dir, device) = match &config.store {
        StoreKind::Memory => return Ok((Box::new(Memory::new(bytes)?), None, true)),
        StoreKind::Directory(dir) => (dir, None),
        StoreKind::Device { device, state } => (state, Some(device.clone())),
    };
    let fresh = !StoreDir::exists(dir);
    let wanted = header(device.clone());
    let at = if fresh { StoreDir::create(dir, wanted)? } else { StoreDir::open(dir)? };
    at.expect(&header(device.clone()))?;
    let store: Box<dyn Store> = match device {
        Some(path) => Box::new(on_device(&path, bytes)?),
        None if fresh => Box::new(Sparse::create(&at.path, bytes)?),
        None => Box::new(Sparse::open(&at.path, bytes)?),
    };
    let state = (at.path.clone(), at.header.id);
    Ok((Box::new(Locked::new(store, at)), Some(state), fresh))
}

fn on_device(path: &std::path::Path, bytes: u64) -> Result<BlockDevice> {
    let (device, found) = BlockDevice::open(path)?;
    if found < bytes {
        let text = format!("{} has {found} bytes, the drive {bytes}", path.display());
        return Err(DeviceError::input(text + "; shorten the drive with --size"));
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever the least medium lies that suffices, what is taken is more by at most a 200th: it is sought to a 256th, and has whole tracks.
    #[test]
    fn the_smallest_medium_is_hardly_more_than_the_least() {
        let config = Config::new("t", "modern-7200", "cmr", StoreKind::Memory);
        let blocks = |drive: &Assembled| drive.built.layer.host_blocks().0;
        let whole = blocks(&assembled(&config, None).unwrap());
        for least in [whole / 7, whole / 3, whole / 2 + 1, whole - whole / 5] {
            let enough = |drive: &Assembled| blocks(drive) >= least;
            let found = smallest(&config, assembled(&config, None).unwrap(), 0..whole, &enough);
            let more = blocks(&found).checked_sub(least).expect("what suffices");
            assert!(more <= least / 200, "{more} blocks more than {least}");
        }
    }
}
