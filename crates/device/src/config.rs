//! What a device is made from: one JSON document, written by the command line, read by the server.

use crate::error::{DeviceError, Result};
use crate::medium::Mode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Where the bytes lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// In memory, lost when the server ends.
    Memory,
    /// In sparse files in this directory.
    Directory(PathBuf),
    /// On a block device, address by address; the state is kept in the directory.
    Device {
        /// The block device.
        device: PathBuf,
        /// Where header, checkpoints and logs are.
        state: PathBuf,
    },
}

/// When requests complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// As fast as the host can.
    #[default]
    None,
    /// When the modelled drive would have done them.
    Model,
}

/// See the [module](self).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The device's name.
    pub name: String,
    /// The drive: a preset's name or the path of a TOML file.
    pub drive: String,
    /// The layer, as `NAME[,key=value...]`.
    pub layer: String,
    /// The array, as `NAME[,key=value...]`, of as many such drives as it says; none: one drive.
    pub array: Option<String>,
    /// Bytes of medium to shorten the drive, or each of them, to.
    pub size: Option<u64>,
    /// Bytes that the host is to see; the drive is shortened to as much medium as the layer needs for that.
    pub host_size: Option<u64>,
    /// A state that a new store begins with, as `run --save-state` or another device wrote it.
    pub from_state: Option<PathBuf>,
    /// Where the bytes lie.
    pub store: StoreKind,
    /// What destroyed blocks read as.
    #[serde(default)]
    pub mode: Mode,
    /// Whether reading a destroyed block is an error.
    #[serde(default)]
    pub errors: bool,
    /// Smallest transfer in bytes: 512 or 4096.
    #[serde(default = "block")]
    pub block: u32,
    /// When requests complete.
    #[serde(default)]
    pub timing: Timing,
    /// Who is served next in modelled time: `NAME[,depth=N][,max_wait=T]`. A SATA drive does `sptf,depth=32`.
    #[serde(default = "scheduler")]
    pub scheduler: String,
    /// Where the layer's maps live: `nv` or `media`.
    #[serde(default = "metadata")]
    pub metadata: String,
    /// Seed of whatever the layer draws.
    #[serde(default)]
    pub seed: u64,
    /// How many times faster than the modelled drive.
    #[serde(default = "speed")]
    pub speed: f64,
    /// A response that takes longer is counted as a stall: ns of the model's time.
    #[serde(default = "stall_ns")]
    pub stall_ns: u64,
    /// Where the first events are written down.
    pub events: Option<PathBuf>,
    /// The control socket.
    pub control: Option<PathBuf>,
    /// Where iSCSI initiators reach it, as HOST:PORT.
    pub iscsi: Option<String>,
    /// File of the secrets by which iSCSI initiators prove who they are.
    pub chap: Option<PathBuf>,
    /// Where to write what clients do.
    pub record: Option<PathBuf>,
    /// Bytes of memory for the run map; what is beyond goes into a file in the store's directory, if it has one.
    #[serde(default = "map_budget")]
    pub map_budget: u64,
}

fn scheduler() -> String {
    "fcfs".to_owned()
}

fn metadata() -> String {
    "nv".to_owned()
}

fn map_budget() -> u64 {
    256 << 20
}

fn block() -> u32 {
    512
}

fn stall_ns() -> u64 {
    500_000_000
}

fn speed() -> f64 {
    1.0
}

impl Config {
    /// A device with every default.
    pub fn new(name: &str, drive: &str, layer: &str, store: StoreKind) -> Self {
        let given = json!({"name": name, "drive": drive, "layer": layer, "store": store});
        serde_json::from_value(given).expect("what is left out has a default")
    }

    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// When the file cannot be read, or a field is unknown or out of range.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| DeviceError::io(format!("reading {}", path.display()), &e))?;
        let config: Self = serde_json::from_str(&text)
            .map_err(|e| DeviceError::input(format!("{}: {e}", path.display())))?;
        config.check()?;
        Ok(config)
    }

    /// Whether idle work is done step by step: a capture has to replay to the same operations, which is what doing at once
    /// all that is due is for.
    pub fn by_step(&self) -> bool {
        self.timing == Timing::None && self.record.is_none()
    }

    fn check(&self) -> Result<()> {
        if !matches!(self.block, 512 | 4096) {
            return Err(DeviceError::input(format!("block={} is not accepted: 512 or 4096", self.block)));
        }
        if !(self.speed > 0.0 && self.speed <= 1e6) {
            return Err(DeviceError::input(format!(
                "speed={} is not accepted: above 0, up to 1000000",
                self.speed
            )));
        }
        if self.size.is_some() && self.host_size.is_some() {
            return Err(DeviceError::input("size (of the medium) and host_size are given: one of the two"));
        }
        if self.map_budget < 1 << 20 {
            let text = format!("map_budget={} is not accepted: from 1048576 (1 MiB)", self.map_budget);
            return Err(DeviceError::input(text));
        }
        Ok(())
    }
}
