//! From a configuration to a device: drive, layer, store, recovery.

use crate::arrayed::Arrayed;
use crate::config::{Config, StoreKind, Timing};
use crate::device::Engine;
use crate::error::{DeviceError, Result};
use crate::layered::Layered;
use crate::ledger::{Found, Ledger};
use crate::log::Log;
use crate::medium::{Medium, Mode, Reading, recover, tag};
use crate::members::{Members, Opened};
use crate::raw::Raw;
use crate::scan::this_boot;
use crate::shingle::Shingle;
use crate::stats::Events;
use crate::store::header::{Header, StoreDir};
use crate::store::{BlockDevice, Memory, Sparse, Store};
use crate::tracks::Tracks;
use smrlab_array::{ArrayContext, Chosen};
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
    /// Comes between the device and the bytes of its store; not of an array's disks.
    pub between: Between,
}

/// See [`Machine::between`].
pub type Between = Box<dyn FnOnce(Box<dyn Store>) -> Box<dyn Store>>;

impl Default for Machine {
    fn default() -> Self {
        Self { boot: this_boot(), between: Box::new(|store| store) }
    }
}

/// Opens what `config` describes; what happens to its disks is noted in `events`.
///
/// # Errors
/// When the drive, the layer, the array or the store is not as it should be.
pub fn engine(config: &Config, host: Machine, events: &Arc<Events>) -> Result<Engine> {
    let array = config.array.as_deref().map(smrlab_array::parse).transpose().map_err(wrong)?;
    if let Some(chosen) = array.filter(|a| !a.is_single()) {
        return array_engine(config, chosen, host.boot, events).map(Box::new).map(Engine::Array);
    }
    let of_layer = |drive: &Assembled| Ok(drive.built.layer.host_blocks().0);
    let drive = drive(config, 1, &of_layer)?;
    let space = (drive.built.layer.host_blocks(), drive.built.layer.facts().bands.cloned());
    let geometry = drive.built.drive.geometry().clone();
    let head_width = drive.built.drive.head_width();
    let raw = drive.built.entry.name == RAW;
    let mut opened = opened(config, drive, host.boot, host.between)?;
    if opened.blank
        && let Some(state) = &config.from_state
    {
        let state = aged_state(state, config, &opened.drive)?;
        opened.drive.mechanics.rest_at(Pba(state.head));
        state.records.iter().try_for_each(|r| opened.medium.keep(r.tag, r.words))?;
        opened.records = state.records;
    }
    if raw {
        let clock = (config.timing == Timing::Model).then(|| {
            let (drive, scheduler) = opened.drive.start(false, false);
            Controller::new(drive, &scheduler)
        });
        let tracks = Arc::new(Tracks::new(geometry)?);
        return Ok(Engine::Raw(Box::new(Raw::new(opened.medium, tracks, head_width, space, clock))));
    }
    let layered =
        Layered::new(opened.drive, opened.medium, opened.records, (by_step(config), &config.metadata))?;
    Ok(Engine::Layered(Box::new(layered)))
}

/// Whether idle work is done step by step: a capture has to replay to the same operations, which is what doing at once all
/// that is due is for.
fn by_step(config: &Config) -> bool {
    config.timing == Timing::None && config.record.is_none()
}

fn array_engine(config: &Config, chosen: Chosen, boot: u64, events: &Arc<Events>) -> Result<Arrayed> {
    let refuse = |text: &str| Err(DeviceError::input(text));
    if matches!(config.store, StoreKind::Device { .. }) {
        return refuse("an array's store is a directory or memory, not one block device");
    }
    if config.from_state.is_some() {
        return refuse("a state is that of one drive: an array cannot begin from one");
    }
    if !chosen.schedule.fails.is_empty() || chosen.schedule.replace_after.is_some() {
        return refuse("fail= and replace= are for runs: smrlab device fail and device replace do it here");
    }
    if config.scheduler != "fcfs" {
        return refuse("the drives of an array serve first come, first served: --scheduler fcfs");
    }
    let disks = chosen.disks as usize;
    let build = |each: Blocks| {
        let sizes = vec![each; disks];
        chosen.build(&ArrayContext::new(&sizes).seeded(config.seed)).map_err(wrong)
    };
    let of_array = |drive: &Assembled| Ok(build(drive.built.layer.host_blocks())?.host_blocks().0);
    let first = drive(config, disks as u64, &of_array)?;
    let medium = Some(first.built.drive.geometry().blocks());
    let array = build(first.built.layer.host_blocks())?;
    if chosen.ssd(&*array).is_some() {
        return refuse(
            "an SSD (ssd_read=, ssd_write=, journal=on) is for runs: a served array has disks only",
        );
    }
    let identity = format!("{};{}", chosen.resolved, first.built.resolved);
    let about = |id| Header {
        id,
        blocks: array.host_blocks().0,
        layer: identity.clone(),
        drive: first.built.drive.resolved(),
        device: None,
    };
    let members = Members::new(config, chosen.clone(), medium, boot, by_step(config));
    let StoreKind::Directory(dir) = &config.store else {
        let disks = (0..chosen.disks).map(|d| members.open(d)).collect::<Result<_>>()?;
        return Arrayed::new(array, members, disks, (None, Found::default()), events.clone());
    };
    let at = match StoreDir::exists(dir) {
        true => StoreDir::open(dir)?,
        false => StoreDir::create(dir, about(fresh_id()))?,
    };
    at.expect(&about(at.header.id))?;
    let (ledger, found) = Ledger::open(at, boot)?;
    let disks = (0..chosen.disks).map(|d| members.open(d)).collect::<Result<_>>()?;
    Arrayed::new(array, members, disks, (Some(ledger), found), events.clone())
}

/// Opens, or makes, the store of one drive; `between` comes between its medium and its bytes.
///
/// # Errors
/// When the drive cannot be served, or the store is not as it should be.
pub fn opened(config: &Config, drive: Assembled, boot: u64, between: Between) -> Result<Opened> {
    let built = &drive.built;
    served(built.drive.interference())?;
    let tracks = Arc::new(Tracks::new(built.drive.geometry().clone())?);
    let mut shingle = match built.drive.interference() {
        Interference::Blocks(reach) if reach > 1 => Shingle::of_blocks(tracks.clone(), reach),
        _ => Shingle::new(tracks.clone(), built.drive.head_width()),
    };
    let mut records = Vec::new();
    let mut resolved = built.resolved.clone();
    if config.metadata == "media" {
        resolved += ",metadata=media";
    }
    let (store, state, fresh) = store(config, &resolved, &built.drive.resolved(), &tracks)?;
    let store = between(store);
    let log = match state {
        Some((dir, id)) => {
            shingle.spill_into(&dir, config.map_budget)?;
            let each = &mut |e| {
                if let Some(e) = recover(&mut shingle, e) {
                    records.push(Record { tag: e.tag & !tag::LAYER, words: e.words });
                }
            };
            Some(Log::open(&dir, id, boot, each)?)
        }
        None => None,
    };
    let blank = records.is_empty() && log.as_ref().is_none_or(Log::is_empty);
    let stale = built.layer.facts().identity && log.as_ref().is_some_and(Log::stale);
    let reading = match built.entry.name == RAW {
        true => Reading { mode: config.mode, errors: config.errors },
        false => Reading { mode: Mode::Performance, errors: false },
    };
    let medium = Medium::new(shingle, store, log, reading);
    if stale {
        medium.forget_unknown()?;
    }
    Ok(Opened { drive, medium, records, fresh, blank })
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
///
/// `drives` of it offer the host what `host` says.
fn drive(config: &Config, drives: u64, host: &dyn Fn(&Assembled) -> Result<u64>) -> Result<Assembled> {
    let Some(bytes) = config.host_size else {
        return assembled(config, config.size.map(|bytes| Blocks(bytes / BLOCK_BYTES)));
    };
    let wanted = bytes.div_ceil(BLOCK_BYTES);
    let mut medium = (wanted / drives).max(1);
    for _ in 0..ROUNDS {
        let Ok(drive) = assembled(config, Some(Blocks(medium))) else {
            // So little medium that the layer has no room, or more than the drive has.
            medium = medium.saturating_mul(2);
            continue;
        };
        // An array may not fit on such small drives.
        let host = host(&drive).unwrap_or(wanted / 2);
        if host >= wanted {
            return Ok(drive);
        }
        let scaled = u128::from(medium) * u128::from(wanted) / u128::from(host.max(1));
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

/// The drive with its layer, with so much medium.
///
/// # Errors
/// What is wrong with them.
pub fn assembled(config: &Config, medium: Option<Blocks>) -> Result<Assembled> {
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
    Ok((Box::new(Locked { store, _dir: at }), Some(state), fresh))
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
