//! From a configuration to a device: drive, layer, store, recovery.

use crate::config::{Config, StoreKind, Timing};
use crate::device::Engine;
use crate::error::{DeviceError, Result};
use crate::layered::Layered;
use crate::log::Log;
use crate::medium::{Medium, Mode, Reading, recover, tag};
use crate::raw::Raw;
use crate::scan::this_boot;
use crate::shingle::Shingle;
use crate::store::header::{Header, StoreDir};
use crate::store::{BlockDevice, Memory, Sparse, Store};
use crate::tracks::Tracks;
use smrlab_disk::{Interference, Model, PhysicalProfile};
use smrlab_drive::{Assembled, Controller, State, Wanted, assemble};
use smrlab_stl::{Record, build};
use smrlab_units::problems::Problems;
use smrlab_units::{BLOCK_BYTES, Blocks, Pba};
use std::path::PathBuf;
use std::sync::Arc;

/// The layer that is no layer: the host sees the medium.
const RAW: &str = "raw";
/// Most attempts at a medium that gives the host what it is to see.
const ROUNDS: usize = 12;

/// The machine under a device; tests put another one in its place.
pub struct Machine {
    /// Which boot it is: another number after every start of its kernel.
    pub boot: u64,
    /// Comes between the device and the bytes of its store.
    pub between: Box<dyn FnOnce(Box<dyn Store>) -> Box<dyn Store>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self { boot: this_boot(), between: Box::new(|store| store) }
    }
}

/// Opens what `config` describes.
///
/// # Errors
/// When the drive, the layer or the store is not as it should be.
pub fn engine(config: &Config, host: Machine) -> Result<Engine> {
    let mut drive = drive(config)?;
    let built = &drive.built;
    served(built.drive.interference())?;
    let tracks = Arc::new(Tracks::new(built.drive.geometry().clone())?);
    let head_width = built.drive.head_width();
    let mut shingle = match built.drive.interference() {
        Interference::Blocks(reach) if reach > 1 => Shingle::of_blocks(tracks.clone(), reach),
        _ => Shingle::new(tracks.clone(), head_width),
    };
    let mut records = Vec::new();
    let mut resolved = built.resolved.clone();
    if config.metadata == "media" {
        resolved += ",metadata=media";
    }
    let (store, state) = store(config, &resolved, &built.drive.resolved(), &tracks)?;
    let store = (host.between)(store);
    let log = match state {
        Some((dir, id)) => {
            shingle.spill_into(&dir, config.map_budget)?;
            let each = &mut |e| {
                if let Some(e) = recover(&mut shingle, e) {
                    records.push(Record { tag: e.tag & !tag::LAYER, words: e.words });
                }
            };
            Some(Log::open(&dir, id, host.boot, each)?)
        }
        None => None,
    };
    let aged = match &config.from_state {
        Some(path) if records.is_empty() && log.as_ref().is_none_or(Log::is_empty) => {
            Some(aged_state(path, config, &drive)?)
        }
        _ => None,
    };
    let tells_holes = built.layer.facts().identity;
    let stale = tells_holes && log.as_ref().is_some_and(Log::stale);
    if built.entry.name != RAW {
        let reading = Reading { mode: Mode::Performance, errors: false };
        let medium = Medium::new(shingle, store, log, reading);
        if stale {
            medium.forget_unknown()?;
        }
        if let Some(state) = aged {
            drive.mechanics.rest_at(Pba(state.head));
            state.records.iter().try_for_each(|r| medium.keep(r.tag, r.words))?;
            records = state.records;
        }
        // A capture has to replay to the same operations, which is what doing at once all that is due is for.
        let by_step = config.timing == Timing::None && config.record.is_none();
        let layered = Layered::new(drive, medium, records, (by_step, &config.metadata))?;
        return Ok(Engine::Layered(Box::new(layered)));
    }
    let reading = Reading { mode: config.mode, errors: config.errors };
    let medium = Medium::new(shingle, store, log, reading);
    if stale {
        medium.forget_unknown()?;
    }
    let space = (built.layer.host_blocks(), built.layer.facts().bands.cloned());
    let clock = (config.timing == Timing::Model).then(|| {
        let (drive, scheduler) = drive.start(false, false);
        Controller::new(drive, &scheduler)
    });
    Ok(Engine::Raw(Box::new(Raw::new(medium, tracks, head_width, space, clock))))
}

/// Refuses what the served medium does not destroy as the drive would.
fn served(interference: Interference) -> Result<()> {
    match interference {
        Interference::Physical(PhysicalProfile { phi_cw: 0, phi_ccw: 0, .. }) | Interference::Blocks(_) => {
            Ok(())
        }
        Interference::Physical(_) => {
            Err(wrong("drives whose writes reach along the track (phi) cannot be served yet"))
        }
    }
}

fn wrong(e: impl std::fmt::Display) -> DeviceError {
    DeviceError::input(e.to_string())
}

/// The state that a new store begins with.
fn aged_state(path: &std::path::Path, config: &Config, drive: &Assembled) -> Result<State> {
    let bad = |e: String| DeviceError::input(format!("{}: {e}", path.display()));
    if drive.built.entry.name == RAW {
        return Err(bad("a raw disk has no state but its bytes: use device snapshot and clone".into()));
    }
    let file = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
    let state = State::decode(&file).map_err(bad)?;
    let blocks = drive.built.drive.geometry().blocks().0;
    state.expect(&drive.drive, &drive.built.resolved, &config.metadata, blocks).map_err(bad)?;
    Ok(state)
}

/// The drive with its layer, shortened to the medium asked for, or to what gives the host the size asked for.
fn drive(config: &Config) -> Result<Assembled> {
    let Some(bytes) = config.host_size else {
        return assembled(config, config.size.map(|bytes| Blocks(bytes / BLOCK_BYTES)));
    };
    let wanted = bytes.div_ceil(BLOCK_BYTES);
    let mut medium = wanted.max(1);
    for _ in 0..ROUNDS {
        let Ok(drive) = assembled(config, Some(Blocks(medium))) else {
            // So little medium that the layer has no room, or more than the drive has.
            medium = medium.saturating_mul(2);
            continue;
        };
        let host = drive.built.layer.host_blocks().0;
        if host >= wanted {
            return Ok(drive);
        }
        let scaled = u128::from(medium) * u128::from(wanted) / u128::from(host.max(1));
        medium = (scaled as u64).max(medium + medium / 256) + 1;
    }
    let whole = assembled(config, None)?;
    let host = whole.built.layer.host_blocks().0;
    if host >= wanted {
        return Ok(whole);
    }
    let text = format!(
        "{} on this drive offers the host {} bytes: --size can be no more",
        config.layer,
        host * BLOCK_BYTES
    );
    Err(DeviceError::input(text))
}

fn assembled(config: &Config, medium: Option<Blocks>) -> Result<Assembled> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
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
    assemble(&wanted, read, &build, &mut problems)
        .filter(|_| problems.is_empty())
        .ok_or_else(|| DeviceError::input(problems.to_string()))
}

/// The store, and where its state is kept with the number that tells it from others'; none in memory.
fn store(
    config: &Config,
    layer: &str,
    drive: &str,
    tracks: &Tracks,
) -> Result<(Box<dyn Store>, Option<(PathBuf, u64)>)> {
    let bytes = tracks.blocks() * BLOCK_BYTES;
    let (layer, drive, blocks) = (layer.to_owned(), drive.to_owned(), tracks.blocks());
    let header =
        |device| Header { id: fresh_id(), blocks, layer: layer.clone(), drive: drive.clone(), device };
    let (dir, device) = match &config.store {
        StoreKind::Memory => return Ok((Box::new(Memory::new(bytes)?), None)),
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
    Ok((Box::new(Locked { store, _dir: at }), Some(state)))
}

fn on_device(path: &std::path::Path, bytes: u64) -> Result<BlockDevice> {
    let (device, found) = BlockDevice::open(path)?;
    if found < bytes {
        let text = format!("{} has {found} bytes, the drive {bytes}", path.display());
        return Err(DeviceError::input(text + "; shorten the drive with --size"));
    }
    Ok(device)
}

/// A store that keeps its directory locked for as long as it is used.
struct Locked {
    store: Box<dyn Store>,
    _dir: StoreDir,
}

impl Store for Locked {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.store.read(offset, buf)
    }
    fn write(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.store.write(offset, buf)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.store.zero(offset, len)
    }
    fn sync(&self) -> Result<()> {
        self.store.sync()
    }
    fn starts_zeroed(&self) -> bool {
        self.store.starts_zeroed()
    }
}

/// A number that no other store has: the time and the process.
fn fresh_id() -> u64 {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    now ^ (u64::from(std::process::id()) << 40)
}
