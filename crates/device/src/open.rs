//! From a configuration to a device: drive, layer, store, recovery.

use crate::config::{Config, StoreKind};
use crate::error::{DeviceError, Result};
use crate::log::Log;
use crate::medium::{Medium, Reading, recover};
use crate::raw::Raw;
use crate::shingle::Shingle;
use crate::store::header::{Header, StoreDir};
use crate::store::{BlockDevice, Memory, Sparse, Store};
use crate::tracks::{OneSurface, Tracks};
use smrlab_units::BLOCK_BYTES;
use smrlab_units::spec::{Kind, Param, Values, split_item};
use std::sync::Arc;

const RAW: &[Param] = &[
    Param { name: "tracks", kind: Kind::Count(1, 1000), default: "3", doc: "head width k" },
    Param { name: "band", kind: Kind::Count(1, 1 << 32), default: "", doc: "data tracks a band" },
];

/// Opens a raw shingled disk.
///
/// # Errors
/// When the drive, the layer or the store is not as it should be.
pub fn raw(config: &Config) -> Result<Raw> {
    let (_, pairs) = split_item(&config.layer);
    let values = Values::check("raw", RAW, &pairs).map_err(|e| DeviceError::input(e.to_string()))?;
    let tracks: Arc<dyn Tracks> = drive(config)?;
    let head_width = values.count("tracks").unwrap_or(3);
    let mut shingle = Shingle::new(tracks.clone(), head_width);
    let (store, log) = store(config, &values.resolved(), &*tracks, &mut shingle)?;
    let reading = Reading { mode: config.mode, errors: config.errors };
    let medium = Medium::new(shingle, head_width, store, log, reading);
    Ok(Raw::new(medium, tracks, head_width, values.count("band")))
}

fn drive(config: &Config) -> Result<Arc<dyn Tracks>> {
    let sectors = 2000;
    let bytes = config.size.unwrap_or(8 << 30);
    let tracks = bytes / BLOCK_BYTES / sectors;
    Ok(Arc::new(OneSurface::new(&[(tracks.max(1), sectors)], 10)))
}

fn store(
    config: &Config,
    layer: &str,
    tracks: &dyn Tracks,
    shingle: &mut Shingle,
) -> Result<(Box<dyn Store>, Option<Log>)> {
    let bytes = tracks.blocks() * BLOCK_BYTES;
    let header = |device| Header {
        id: fresh_id(),
        blocks: tracks.blocks(),
        layer: layer.to_owned(),
        geometry: 0,
        device,
    };
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
    let log = Log::open(&at.path, at.header.id, |e| {
        recover(shingle, e);
    })?;
    Ok((Box::new(Locked { store, _dir: at }), Some(log)))
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
