//! What a device serves: the medium as it is, a layer on it, or an array of drives. Positions and lengths are in blocks.

use crate::arrayed::Arrayed;
use crate::error::Result;
use crate::layered::Layered;
use crate::medium::Medium;
use crate::pace::Pace;
use crate::raw::Raw;
use serde_json::{Value, json};
use smrlab_units::SimTime;
use std::sync::Arc;

/// Blocks of a raw medium for which block status is given at a time.
const STATUS: u64 = 1 << 17;

/// See the [module](self).
pub enum Engine {
    /// The medium as it is.
    Raw(Box<Raw>),
    /// A translation layer on it.
    Layered(Box<Layered>),
    /// An array of drives with layers.
    Array(Box<Arrayed>),
}

impl Engine {
    /// Blocks that the host sees.
    pub fn blocks(&self) -> u64 {
        match self {
            Self::Raw(raw) => raw.blocks(),
            Self::Layered(layered) => layered.blocks(),
            Self::Array(array) => array.blocks(),
        }
    }

    /// Whether discarding frees space.
    pub fn discards(&self) -> bool {
        match self {
            Self::Raw(_) => false,
            Self::Layered(layered) => layered.capabilities().discards,
            Self::Array(array) => array.discards(),
        }
    }

    /// The medium under it all, or that of a disk of an array; none where there is no such disk.
    pub fn medium(&self, disk: u64) -> Option<Arc<Medium>> {
        match self {
            Self::Array(array) => array.medium(disk as usize),
            Self::Raw(raw) => (disk == 0).then(|| raw.medium.clone()),
            Self::Layered(layered) => (disk == 0).then(|| layered.medium.clone()),
        }
    }

    /// Reads blocks; answers with the model's time of the acknowledgement and, on a raw medium, a destroyed block that was
    /// met.
    ///
    /// # Errors
    /// `EIO` for destroyed blocks where errors were asked for; the store's own.
    #[inline]
    pub fn read(&self, pace: &Pace, start: u64, buf: &mut [u8]) -> Result<(SimTime, Option<u64>)> {
        match self {
            Self::Raw(raw) => raw.read(pace, start, buf),
            Self::Layered(layered) => layered.read(pace, start, buf).map(|ack| (ack, None)),
            Self::Array(array) => array.read(pace, start, buf).map(|ack| (ack, None)),
        }
    }

    /// Writes blocks, with `fua` durably; answers with the model's time of the acknowledgement, as all that follow do.
    ///
    /// # Errors
    /// `EPERM` for a guard track; the store's own, such as `ENOSPC`.
    #[inline]
    pub fn write(&self, pace: &Pace, start: u64, buf: &[u8], fua: bool) -> Result<SimTime> {
        match self {
            Self::Raw(raw) => raw.write(pace, start, buf, fua),
            Self::Layered(layered) => layered.write(pace, start, buf, fua),
            Self::Array(array) => array.write(pace, start, buf, fua),
        }
    }

    /// Makes blocks read as zeroes, by a discard where there is one; with `fua` durably.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn zero(&self, pace: &Pace, start: u64, blocks: u64, fua: bool) -> Result<SimTime> {
        match self {
            Self::Raw(raw) => raw.zero(pace, start, blocks, fua),
            Self::Layered(layered) => layered.zero(pace, start, blocks, fua),
            Self::Array(array) => array.zero(pace, start, blocks, fua),
        }
    }

    /// The layer, where it is one with zones that the host knows.
    pub fn zoned(&self) -> Option<&Layered> {
        match self {
            Self::Layered(layered) => layered.zone_limits().map(|_| &**layered),
            Self::Raw(_) | Self::Array(_) => None,
        }
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn flush(&self, pace: &Pace) -> Result<SimTime> {
        match self {
            Self::Raw(raw) => raw.flush(pace),
            Self::Layered(layered) => layered.flush(pace),
            Self::Array(array) => array.flush(pace),
        }
    }

    /// Which of the blocks may hold data: ascending (from, to, data), which may end early.
    pub fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        match self {
            Self::Raw(raw) => raw.medium.extents(start, start + blocks.min(STATUS), out),
            Self::Layered(layered) => layered.extents(start, blocks, out),
            Self::Array(array) => array.extents(start, blocks, out),
        }
    }

    /// Work that no request waits for.
    ///
    /// # Errors
    /// What stopped the device.
    pub fn idle(&self, pace: &Pace) -> Result<()> {
        match self {
            Self::Raw(raw) => raw.medium.checkpoint(false),
            Self::Layered(layered) => layered.idle(pace).and_then(|()| layered.checkpoint(false)),
            Self::Array(array) => array.idle(pace).and_then(|()| array.checkpoint(false)),
        }
    }

    /// Makes everything durable and leaves a checkpoint.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn close(&self) -> Result<()> {
        match self {
            Self::Raw(raw) => raw.medium.sync().and_then(|_| raw.medium.checkpoint(true)),
            Self::Layered(layered) => layered.close(),
            Self::Array(array) => array.close(),
        }
    }

    /// What it is, for people and programs.
    pub fn info(&self) -> Value {
        match self {
            Self::Raw(raw) => raw.info(),
            Self::Layered(layered) => layered.info(),
            Self::Array(array) => array.info(),
        }
    }

    /// Its counters; a map of a medium takes at most `budget` bytes of memory.
    pub fn stats(&self, budget: u64) -> Value {
        match self {
            Self::Raw(raw) => json!({"medium": map_stats(&raw.medium, budget)}),
            Self::Layered(layered) => {
                json!({"medium": map_stats(&layered.medium, budget), "media": layered.stats()})
            }
            Self::Array(array) => {
                let (own, mut disks) = array.stats();
                for disk in 0..array.disks() {
                    let medium = array.medium(disk);
                    disks[disk]["medium"] = medium.map_or(Value::Null, |m| map_stats(&m, budget));
                }
                json!({"array": own, "disks": disks})
            }
        }
    }

    /// Begins counting anew.
    pub fn reset(&self) {
        match self {
            Self::Raw(_) => {}
            Self::Layered(layered) => layered.reset(),
            Self::Array(array) => array.reset(),
        }
    }
}

fn map_stats(medium: &Medium, budget: u64) -> Value {
    medium.with_runs(|s| {
        let room = s.room();
        json!({"runs": s.runs().len(), "map_bytes": room.resident, "map_spilled_bytes": room.spilled,
               "map_budget_bytes": s.runs().spills().then_some(budget)})
    })
}
