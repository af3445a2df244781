//! The raw shingled disk: the host writes the medium as it is. Bands, on request, end in guard tracks that cannot be
//! written.

use crate::clock::{Call, ModelClock};
use crate::engine::{Engine, StateFile, map_stats};
use crate::error::{DeviceError, Result};
use crate::medium::Medium;
use crate::one_drive::{MovesBytes, OneDrive};
use crate::table::Table;
use crate::tracks::Tracks;
use serde::Serialize;
use serde_json::{Value, json};
use smrlab_disk::{BandId, Bands};
use smrlab_drive::{ScheduledDrive, TimedPlan};
use smrlab_stl::{HostBuffer, HostRequest, following};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, Pba, SimTime};
use std::sync::Arc;

/// Blocks for which block status is given at a time.
const STATUS: u64 = 1 << 17;

/// See the [module](self).
pub struct Raw {
    /// The medium.
    pub medium: Arc<Medium>,
    tracks: Arc<Tracks>,
    head_width: u64,
    /// Blocks that the host sees.
    blocks: u64,
    /// The disk's own bands, where they were asked for.
    bands: Option<Bands>,
    /// The modelled drive; none where requests take no time.
    clock: Option<Table<OneDrive<NoBytes>>>,
}

/// The host's own thread moves its bytes: on a raw medium nothing depends on the order in which requests are served.
struct NoBytes;

impl MovesBytes for NoBytes {
    fn request(&mut self, _: &TimedPlan<'_>, _: HostBuffer<'_>) -> Result<()> {
        Ok(())
    }

    fn background(&mut self, _: &TimedPlan<'_>) -> Result<()> {
        Ok(())
    }
}

/// One band of a raw medium, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BandState {
    /// First block.
    pub start: u64,
    /// First block of the guard.
    pub guard: u64,
    /// Where the next band begins: one past the guard, and past what is left at the end of a stroke.
    pub end: u64,
    /// One past the last block written: where appending destroys nothing.
    pub append: u64,
}

impl Raw {
    /// Serves `blocks` blocks of the medium. What lies between `bands` cannot be written; without them everything can.
    pub fn new(
        medium: Medium,
        tracks: Arc<Tracks>,
        head_width: u64,
        (blocks, bands): (Blocks, Option<Bands>),
        clock: Option<ScheduledDrive>,
    ) -> Self {
        let clock = clock.map(|scheduled| Table::new(OneDrive::new(scheduled, NoBytes, false)));
        let medium = Arc::new(medium);
        Self { medium, tracks, head_width, blocks: blocks.0, bands, clock }
    }

    /// When the modelled drive acknowledges a request that comes now; at once where there is none.
    #[inline]
    fn acknowledged(&self, call: Call<'_>, request: HostRequest) -> Result<SimTime> {
        let Some(clock) = &self.clock else { return Ok(SimTime::ZERO) };
        clock.serve(call, request, HostBuffer::None)
    }

    /// How many bands there are.
    pub fn bands(&self) -> u64 {
        self.bands.as_ref().map_or(0, Bands::len)
    }

    /// A band as it is now.
    ///
    /// # Errors
    /// When there are no bands, or no such one.
    pub fn band(&self, number: u64) -> Result<BandState> {
        let Some(bands) = self.bands.as_ref().filter(|b| number < b.len()) else {
            let text = format!(
                "there is no band {number}: the device has {} (layer raw,band=64tracks)",
                self.bands()
            );
            return Err(DeviceError::input(text));
        };
        let band = bands.band(BandId(number));
        let (start, guard) = (band.first.0, band.first.0 + band.blocks.0);
        let end = if number + 1 < bands.len() { bands.start(BandId(number + 1)).0 } else { self.blocks };
        let append = self.medium.with_runs(|s| s.written(start, end).last().map_or(start, |r| r.end));
        Ok(BandState { start, guard, end, append })
    }

    /// Makes a band as if never written.
    ///
    /// # Errors
    /// When there is no such band, or the store fails.
    pub fn reset_band(&self, number: u64) -> Result<BandState> {
        let band = self.band(number)?;
        self.medium.forget(band.start, band.end)?;
        self.band(number)
    }

    fn check_guard(&self, start: u64, blocks: u64) -> Result<()> {
        let Some(bands) = &self.bands else { return Ok(()) };
        if bands.around(Pba(start)).is_some_and(|band| start + blocks <= band.end) {
            return Ok(());
        }
        let last = start + blocks - 1;
        let text =
            format!("blocks {start} to {last} are not all in one band: guard tracks cannot be written");
        Err(DeviceError::new(libc::EPERM, text))
    }
}

impl Engine for Raw {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn medium(&self, disk: u64) -> Option<Arc<Medium>> {
        (disk == 0).then(|| self.medium.clone())
    }

    fn serve(&self, call: Call<'_>, request: HostRequest, host: HostBuffer<'_>) -> Result<SimTime> {
        let ack = self.acknowledged(call, request)?;
        match host {
            HostBuffer::Write(data) => {
                self.check_guard(request.lba.0, request.blocks.0)?;
                self.medium.write(request.lba.0, data)?;
            }
            HostBuffer::Read(out) => _ = self.medium.read(request.lba.0, out)?,
            HostBuffer::Lend(take) => {
                let (start, blocks) = (request.lba.0, request.blocks.0);
                self.medium.lend(start, blocks, &mut following(0, take))?;
            }
            HostBuffer::None => {}
        }
        Ok(ack)
    }

    fn sync(&self) -> Result<()> {
        self.medium.sync().map(drop)
    }

    fn read(&self, call: Call<'_>, start: u64, buf: &mut [u8]) -> Result<(SimTime, Option<u64>)> {
        let blocks = Blocks(buf.len() as u64 / BLOCK_BYTES);
        let ack = self.acknowledged(call, HostRequest::new(HostOp::Read, Lba(start), blocks))?;
        Ok((ack, self.medium.read(start, buf)?))
    }

    fn lend(
        &self,
        call: Call<'_>,
        start: u64,
        blocks: u64,
        take: &dyn Fn(usize, &[u8]),
    ) -> Result<(SimTime, Option<u64>)> {
        let ack = self.acknowledged(call, HostRequest::new(HostOp::Read, Lba(start), Blocks(blocks)))?;
        Ok((ack, self.medium.lend(start, blocks, &mut following(0, take))?))
    }

    fn zero(&self, call: Call<'_>, start: u64, blocks: u64, fua: bool) -> Result<SimTime> {
        let request = HostRequest::new(HostOp::Write, Lba(start), Blocks(blocks));
        let ack = self.acknowledged(call, HostRequest { fua, ..request })?;
        self.check_guard(start, blocks)?;
        self.medium.write_zeroes(start, blocks)?;
        self.keep(fua).map(|()| ack)
    }

    fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        self.medium.extents(start, start + blocks.min(STATUS), out);
    }

    fn idle(&self, _: &ModelClock) -> Result<()> {
        self.medium.checkpoint(false)
    }

    fn close(&self) -> Result<()> {
        self.sync()?;
        self.medium.checkpoint(true)
    }

    fn info(&self) -> Value {
        json!({"layer": "raw", "head_width": self.head_width, "tracks": self.tracks.count(),
               "blocks": self.blocks, "bands": self.bands()})
    }

    fn stats(&self, budget: u64) -> Value {
        json!({"medium": map_stats(&self.medium, budget)})
    }

    fn reset(&self) {}

    fn state(&self) -> Result<StateFile> {
        let text = "a raw device has no state that a drive could begin with: use device snapshot";
        Err(DeviceError::input(text))
    }
}
