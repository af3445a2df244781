//! The disks of a served array: opened, made, made anew.

use crate::config::Timing;
use crate::config::{Config, StoreKind};
use crate::disk::{self, Between, Opened};
use crate::error::{DeviceError, Result};
use crate::machine::Machine;
use crate::store::header::{Header, StoreDir, fresh_id};
use crate::store::{Locked, Memory, Sparse, Store};
use smrlab_array::{Chosen, Ssd};
use smrlab_drive::Assembled;
use smrlab_stl::zones_of;
use smrlab_units::{Blocks, SimTime};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the disks of an array are made.
pub(crate) struct Members {
    config: Config,
    /// The array.
    pub chosen: Chosen,
    /// Each of them, as a run takes it.
    pub drive: String,
    /// The layer that was asked for: some arrays want one of their drives conventional.
    pub layer: String,
    /// The medium of each.
    medium: Option<Blocks>,
    boot: u64,
    between: Between,
    /// The disks' own work is done step by step between requests.
    pub by_step: bool,
}

impl Members {
    /// Disks like `first`, the text of which is `drive`.
    pub(crate) fn new(
        config: &Config,
        chosen: Chosen,
        (drive, first): (String, &Assembled),
        host: Machine,
    ) -> Self {
        let Machine { boot, between } = host;
        let layer = first.built.resolved.clone();
        // What a drive is shortened to counts as its size, which may be less than the blocks that it has.
        let medium = Some(first.built.drive.counted_blocks());
        Self {
            config: config.clone(),
            chosen,
            drive,
            layer,
            medium,
            boot,
            between,
            by_step: config.by_step(),
        }
    }

    /// Whether requests take the model's time.
    pub(crate) fn timed(&self) -> bool {
        self.config.timing == Timing::Model
    }

    /// Where the maps of the disks' layers are.
    pub(crate) fn metadata(&self) -> &str {
        &self.config.metadata
    }

    /// Whether the array writes the zones of a disk in order.
    fn writes_zones_of(&self, drive: &Assembled) -> bool {
        self.chosen.keeps_zones() && !zones_of(&*drive.built.layer).is_empty()
    }

    /// Whether what these disks hold survives a loss of power.
    pub(crate) fn survive_cut(&self, disks: &[Opened]) -> bool {
        // Drives with zones promise it of what lies below their write pointers, which is enough here.
        let survives = |Opened { drive, .. }: &Opened| {
            drive.built.capabilities.survives_cut || self.writes_zones_of(drive)
        };
        self.chosen.capabilities().survives_cut && disks.iter().all(survives)
    }

    /// Whether the array passes discards on to these disks.
    pub(crate) fn discard(&self, disks: &[Opened]) -> bool {
        self.chosen.discards(disks.iter().all(|disk| disk.drive.built.capabilities.discards))
    }

    /// The SSD of this number: how long it takes, and where its bytes are. `formed`: it was there before.
    ///
    /// # Errors
    /// When its store is not as it should be, or is missing.
    pub(crate) fn ssd(&self, number: u32, mut ssd: Ssd, formed: bool) -> Result<(Ssd, Arc<dyn Store>)> {
        if self.config.timing == Timing::None {
            (ssd.latency, ssd.block_ns) = (SimTime::ZERO, 0);
        }
        let bytes = ssd.blocks.bytes();
        let store: Box<dyn Store> = match &self.config.store {
            StoreKind::Directory(dir) => {
                let dir = dir.join(if number == 0 { "ssd".to_owned() } else { format!("ssd.{number}") });
                let header = |id| Header {
                    id,
                    blocks: ssd.blocks.0,
                    layer: self.chosen.resolved.clone(),
                    drive: "ssd".to_owned(),
                    device: None,
                };
                if StoreDir::exists(&dir) {
                    let at = StoreDir::open(&dir)?;
                    at.expect(&header(at.header.id))?;
                    Box::new(Locked::new(Box::new(Sparse::open(&dir, bytes)?), at))
                } else if formed {
                    let text = format!(
                        "the SSD's store {} is missing, and with it what only the SSD held",
                        dir.display()
                    );
                    return Err(DeviceError::input(text + ": bring it back, or create the device anew"));
                } else {
                    let at = StoreDir::create(&dir, header(fresh_id()))?;
                    Box::new(Locked::new(Box::new(Sparse::create(&dir, bytes)?), at))
                }
            }
            StoreKind::Memory | StoreKind::Device { .. } => Box::new(Memory::new(bytes)?),
        };
        let store = (self.between)((self.chosen.disks + number) as usize, store);
        Ok((ssd, store.into()))
    }

    /// Opens, or makes, a disk. `formed`: it was there before; one that is missing then is dead, and a store is made for it no
    /// earlier than it is replaced: a start that is cut short must not leave an empty one that looks alive.
    ///
    /// # Errors
    /// When its store is not as it should be.
    pub(crate) fn open(&self, disk: u32, formed: bool) -> Result<Opened> {
        let seed = self.config.seed.wrapping_add(disk.into());
        let store = match self.dir(disk).filter(|dir| !formed || StoreDir::exists(dir)) {
            Some(dir) => StoreKind::Directory(dir),
            None => StoreKind::Memory,
        };
        let layer = self.chosen.layer_of(disk, &self.config.layer).to_owned();
        let config = Config { seed, store, layer, ..self.config.clone() };
        let drive = disk::assembled(&config, self.medium)?;
        if !drive.built.capabilities.keeps_data && !self.writes_zones_of(&drive) {
            let text = format!("the disks of an array must keep their data, which {} does not", config.layer);
            return Err(DeviceError::input(
                text + ": give --layer cmr, s-block, disk-cache, ... (smrlab list layers)",
            ));
        }
        let between = |store| (self.between)(disk as usize, store);
        disk::opened(&config, drive, self.boot, &between)
    }

    /// Makes a disk anew, in the place of a dead one.
    ///
    /// # Errors
    /// What the operating system answers.
    pub(crate) fn fresh(&self, disk: u32) -> Result<Opened> {
        if let Some(dir) = self.dir(disk) {
            remove(&dir)?;
        }
        self.open(disk, false)
    }

    fn dir(&self, disk: u32) -> Option<PathBuf> {
        match &self.config.store {
            StoreKind::Directory(dir) => Some(dir.join(format!("disk.{disk}"))),
            StoreKind::Memory | StoreKind::Device { .. } => None,
        }
    }
}

fn remove(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(DeviceError::io(format!("deleting the dead disk's store {}", dir.display()), &e))
        }
        _ => Ok(()),
    }
}
