//! From a configuration to a device: drive, layer, store, recovery.

use crate::arrayed::{Arrayed, aged};
use crate::config::{Config, StoreKind, Timing};
use crate::disk::{RAW, drive, opened};
use crate::engine::Engine;
use crate::error::{DeviceError, Result};
use crate::layered::Layered;
use crate::ledger::{Found, Ledger};
use crate::machine::Machine;
use crate::members::Members;
use crate::raw::Raw;
use crate::stats::Events;
use crate::store::header::{Header, StoreDir, fresh_id};
use crate::tracks::Tracks;
use smrlab_array::stack::BELOW;
use smrlab_array::{ArrayContext, ArrayState, Chosen};
use smrlab_drive::{Assembled, SavedState, ScheduledDrive};
use smrlab_stl::zones_of;
use smrlab_trace::read_known;
use smrlab_units::spec::split_item;
use std::ops::Deref;
use std::sync::Arc;

/// What a device serves.
pub(crate) enum Served {
    /// The medium as it is.
    Raw(Box<Raw>),
    /// A translation layer on it.
    Layered(Box<Layered>),
    /// An array of drives with layers.
    Array(Box<Arrayed>),
}

impl Deref for Served {
    type Target = dyn Engine;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Raw(raw) => &**raw,
            Self::Layered(layered) => &**layered,
            Self::Array(array) => &**array,
        }
    }
}

/// Opens what `config` describes; what happens to its disks is noted in `events`.
///
/// # Errors
/// When the drive, the layer, the array or the store is not as it should be.
pub(crate) fn served(config: &Config, host: Machine, events: &Arc<Events>) -> Result<Served> {
    let array = config.array.as_deref().map(parse_array).transpose()?;
    if let Some(chosen) = array.filter(|a| !a.is_single()) {
        return array_of(config, chosen, host, events).map(Box::new).map(Served::Array);
    }
    let of_layer = |drive: &Assembled| Ok(drive.built.layer.host_blocks().0);
    let drive = drive(config, 1, &of_layer)?;
    let space = (drive.built.layer.host_blocks(), drive.built.layer.facts().bands.cloned());
    let geometry = drive.built.drive.geometry().clone();
    let head_width = drive.built.drive.head_width();
    let raw = drive.built.entry.name == RAW;
    let mut opened = opened(config, drive, host.boot, &|store| (host.between)(0, store))?;
    if config.size.is_some() || config.host_size.is_some() {
        opened.drive.drive = shortened(&opened.drive);
    }
    if opened.blank
        && let Some(state) = &config.from_state
    {
        let state = aged_state(state, config, &opened.drive)?;
        opened.begin(&state, &state.written)?;
    }
    if raw {
        let clock = (config.timing == Timing::Model).then(|| {
            let (drive, scheduler) = opened.drive.start(false, false);
            ScheduledDrive::new(drive, &scheduler)
        });
        let tracks = Arc::new(Tracks::new(geometry));
        return Ok(Served::Raw(Box::new(Raw::new(opened.medium, tracks, head_width, space, clock))));
    }
    let layered = Layered::new(opened, &config.metadata, config.by_step())?;
    Ok(Served::Layered(Box::new(layered)))
}

/// The text of a drive whose medium was shortened to the size asked for, as a run takes it.
fn shortened(drive: &Assembled) -> String {
    let (name, pairs) = split_item(&drive.drive);
    let kept =
        pairs.iter().filter(|(key, _)| *key != "capacity").map(|(key, value)| format!(",{key}={value}"));
    format!("{name}{},capacity={}blk", kept.collect::<String>(), drive.built.drive.counted_blocks())
}

/// What befalls the disks of an array in a run; those of a device are told by commands.
const FOR_RUNS: [&str; 3] = ["fail", "replace", "spares"];

fn parse_array(text: &str) -> Result<Chosen> {
    let mut pairs = text.split(BELOW).flat_map(|part| split_item(part).1);
    if let Some((key, _)) = pairs.find(|(key, _)| FOR_RUNS.contains(key)) {
        let fail = "smrlab device fail NAME --disk N lets a disk die";
        let replace = "smrlab device replace NAME --disk N puts a fresh one in its place and rebuilds it";
        return Err(DeviceError::input(format!("{key}= is for runs: here {fail}, and {replace}")));
    }
    smrlab_array::parse(text).map_err(wrong)
}

fn array_of(config: &Config, chosen: Chosen, host: Machine, events: &Arc<Events>) -> Result<Arrayed> {
    let refuse = |text: &str| Err(DeviceError::input(text));
    if matches!(config.store, StoreKind::Device { .. }) {
        return refuse("an array's store is a directory or memory, not one block device");
    }
    let disks = chosen.disks as usize;
    let build = |drive: &Assembled| {
        let layer = &*drive.built.layer;
        let zones_of = |disk| if chosen.is_conventional(disk) { Vec::new() } else { zones_of(layer) };
        let zones: Vec<_> = (0..chosen.disks).map(zones_of).collect();
        let sizes = vec![layer.host_blocks(); disks];
        let context = ArrayContext::new(&sizes).zoned(&zones).limited(layer.facts().zones);
        chosen.build(&context.seeded(config.seed)).map_err(wrong)
    };
    let of_array = |drive: &Assembled| Ok(build(drive)?.array.host_blocks().0);
    let first = drive(config, disks as u64, &of_array)?;
    let built = build(&first)?;
    let identity = format!("{};{}", chosen.resolved, first.built.resolved);
    let about = |id| Header {
        id,
        blocks: built.array.host_blocks().0,
        layer: identity.clone(),
        drive: first.built.drive.resolved(),
        device: None,
    };
    let boot = host.boot;
    let drive =
        if config.size.or(config.host_size).is_some() { shortened(&first) } else { first.drive.clone() };
    let members = Members::new(config, chosen.clone(), (drive, &first), host);
    let (ledger, mut found) = match &config.store {
        StoreKind::Directory(dir) => {
            let at = match StoreDir::exists(dir) {
                true => StoreDir::open(dir)?,
                false => StoreDir::create(dir, about(fresh_id()))?,
            };
            at.expect(&about(at.header.id))?;
            let (ledger, found) = Ledger::open(at, boot)?;
            (Some(ledger), found)
        }
        _ => (None, Found::default()),
    };
    let opened = (0..chosen.disks).map(|d| members.open(d, found.formed));
    let mut disks: Vec<_> = opened.collect::<Result<_>>()?;
    if let Some(state) = config.from_state.as_ref().filter(|_| !found.formed) {
        aged::begin(state, &members, &mut disks, ledger.as_ref(), &mut found)?;
    }
    Arrayed::new(built, members, disks, (ledger, found), events.clone())
}

fn wrong(e: impl std::fmt::Display) -> DeviceError {
    DeviceError::input(e.to_string())
}

/// The state that a new store begins with.
fn aged_state(path: &std::path::Path, config: &Config, drive: &Assembled) -> Result<SavedState> {
    let bad = |e: String| DeviceError::input(format!("{}: {e}", path.display()));
    if drive.built.entry.name == RAW {
        return Err(bad("a raw disk has no state but its bytes: use device snapshot and clone".into()));
    }
    let file = read_known(path, ArrayState::is_any).map_err(bad)?;
    let state = SavedState::decode(&file).map_err(bad)?;
    let blocks = drive.built.drive.geometry().blocks().0;
    state.expect(&drive.drive, &drive.built.resolved, &config.metadata, blocks).map_err(bad)?;
    Ok(state)
}
