//! A device that is erased as a whole: FORMAT UNIT and SANITIZE.

use super::Device;
use crate::error::{DeviceError, Result};
use smrlab_units::{BLOCK_BYTES, Lba, ZoneAction, ZoneKind};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// Blocks that are zeroed at a time: 64 MiB.
const PIECE: u64 = (64 << 20) / BLOCK_BYTES;

impl Device {
    /// Whether it can be used: not while it is erased, nor behind an erasure that failed, until one does not.
    pub(super) fn usable(&self) -> Result<()> {
        match self.erased.load(Relaxed) {
            true => Err(DeviceError::new(
                libc::EIO,
                "the disk is being erased, or that failed: FORMAT UNIT or SANITIZE of an iSCSI initiator",
            )),
            false => Ok(()),
        }
    }

    /// Has commands fail from now on: [`erase`](Self::erase) follows.
    pub fn begin_erasure(&self) {
        self.erased.store(true, Relaxed);
    }

    /// Empties all zones, and zeroes what lies in none that can be emptied; `tell` is told how many 65536ths are done. Commands that come meanwhile
    /// fail (`EIO`), through whatever surface: what they wrote could be lost, and what they read be half of the old and half of the new. So do those
    /// that come when it failed.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn erase(&self, tell: &dyn Fn(u16)) -> Result<()> {
        self.begin_erasure();
        self.zero_all(tell)?;
        self.erased.store(false, Relaxed);
        Ok(())
    }

    fn zero_all(&self, tell: &dyn Fn(u16)) -> Result<()> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        if self.zone_limits().is_some() {
            self.carry_out(0, |call| self.zoned()?.zone(call, ZoneAction::Reset, None))?;
            self.zones(Lba(0), &mut |zone| {
                if zone.kind == ZoneKind::Conventional {
                    parts.push(zone.start.0..zone.end().0);
                }
                true
            })?;
        } else {
            parts.push(0..self.blocks);
        }
        for part in parts {
            let mut at = part.start;
            while at < part.end {
                let blocks = PIECE.min(part.end - at);
                self.carry_out(at, |call| self.engine.zero(call, at, blocks, false))?;
                at += blocks;
                tell((u128::from(at) * 0xffff / u128::from(self.blocks)) as u16);
            }
        }
        self.carry_out(0, |call| self.engine.flush(call))
    }
}
