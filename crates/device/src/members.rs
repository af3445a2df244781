//! The disks of a served array: opened, made, made anew.

use crate::config::{Config, StoreKind};
use crate::disk::{self, Opened};
use crate::error::{DeviceError, Result};
use smrlab_array::Chosen;
use smrlab_units::Blocks;
use std::path::{Path, PathBuf};

/// How the disks of an array are made.
pub struct Members {
    config: Config,
    /// The array.
    pub chosen: Chosen,
    /// The medium of each.
    medium: Option<Blocks>,
    boot: u64,
    /// The disks' own work is done step by step between requests.
    pub by_step: bool,
}

impl Members {
    /// Disks with so much medium each.
    pub fn new(config: &Config, chosen: Chosen, medium: Option<Blocks>, boot: u64, by_step: bool) -> Self {
        Self { config: config.clone(), chosen, medium, boot, by_step }
    }

    /// Opens, or makes, a disk.
    ///
    /// # Errors
    /// When its store is not as it should be.
    pub fn open(&self, disk: u32) -> Result<Opened> {
        let seed = self.config.seed + u64::from(disk);
        let store = match self.dir(disk) {
            Some(dir) => StoreKind::Directory(dir),
            None => StoreKind::Memory,
        };
        let config = Config { seed, store, ..self.config.clone() };
        let drive = disk::assembled(&config, self.medium)?;
        if !drive.built.capabilities.keeps_data {
            let text = format!("the disks of an array must keep their data, which {} does not", config.layer);
            return Err(DeviceError::input(
                text + ": give --layer cmr, s-block, disk-cache, ... (smrlab list layers)",
            ));
        }
        disk::opened(&config, drive, self.boot, Box::new(|store| store))
    }

    /// Makes a disk anew, in the place of a dead one.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn fresh(&self, disk: u32) -> Result<Opened> {
        if let Some(dir) = self.dir(disk) {
            remove(&dir)?;
        }
        self.open(disk)
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
