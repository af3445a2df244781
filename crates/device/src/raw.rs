//! The raw shingled disk: the host writes the medium as it is. Bands, on request, end in guard tracks that cannot be
//! written.

use crate::error::{DeviceError, Result};
use crate::medium::Medium;
use crate::pace::Pace;
use crate::queue::{Carry, Queue};
use crate::tracks::Tracks;
use serde::Serialize;
use serde_json::{Value, json};
use smrlab_disk::{BandId, Bands};
use smrlab_drive::{Controller, Executed};
use smrlab_stl::{HostBuffer, HostRequest};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, Pba, SimTime};
use std::sync::Arc;

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
    clock: Option<Queue<NoBytes>>,
}

/// The host's own thread moves its bytes: on a raw medium nothing depends on the order in which requests are served.
struct NoBytes;

impl Carry for NoBytes {
    fn request(&mut self, _: &Executed<'_>, _: HostBuffer<'_>) -> Result<()> {
        Ok(())
    }

    fn background(&mut self, _: &Executed<'_>) -> Result<()> {
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
        clock: Option<Controller>,
    ) -> Self {
        let clock = clock.map(|controller| Queue::new(controller, NoBytes, false));
        let medium = Arc::new(medium);
        Self { medium, tracks, head_width, blocks: blocks.0, bands, clock }
    }

    /// When the modelled drive acknowledges a request that comes now; at once where there is none.
    #[inline]
    fn acknowledged(&self, pace: &Pace, request: HostRequest) -> Result<SimTime> {
        let Some(clock) = &self.clock else { return Ok(SimTime::ZERO) };
        clock.submit(pace, request, HostBuffer::None)
    }

    /// When it acknowledges a write.
    #[inline]
    fn written(&self, pace: &Pace, (start, blocks): (u64, u64), fua: bool) -> Result<SimTime> {
        let request = HostRequest::new(HostOp::Write, Lba(start), Blocks(blocks));
        self.acknowledged(pace, HostRequest { fua, ..request })
    }

    /// What the model says is on the medium has to be there after a power loss of the host, too.
    #[inline]
    fn keep(&self, fua: bool) -> Result<()> {
        if fua { self.medium.sync().map(drop) } else { Ok(()) }
    }

    /// Blocks that the host sees.
    pub fn blocks(&self) -> u64 {
        self.blocks
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
        let append = self
            .medium
            .with_runs(|s| s.runs().overlapping(start, end).last().map_or(start, |r| r.end.min(end)));
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

    /// Reads blocks; answers with the model's time of the acknowledgement, and a destroyed block that was met.
    ///
    /// # Errors
    /// As [`Medium::read`].
    #[inline]
    pub fn read(&self, pace: &Pace, start: u64, buf: &mut [u8]) -> Result<(SimTime, Option<u64>)> {
        let blocks = Blocks(buf.len() as u64 / BLOCK_BYTES);
        let ack = self.acknowledged(pace, HostRequest::new(HostOp::Read, Lba(start), blocks))?;
        Ok((ack, self.medium.read(start, buf)?))
    }

    /// Writes blocks; with `fua` they are durable on return.
    ///
    /// # Errors
    /// `EPERM` for a guard track; as [`Medium::write`].
    #[inline]
    pub fn write(&self, pace: &Pace, start: u64, buf: &[u8], fua: bool) -> Result<SimTime> {
        let blocks = buf.len() as u64 / BLOCK_BYTES;
        let ack = self.written(pace, (start, blocks), fua)?;
        self.check_guard(start, blocks)?;
        self.medium.write(start, buf)?;
        self.keep(fua).map(|()| ack)
    }

    /// Writes zeroes; with `fua` they are durable on return.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn zero(&self, pace: &Pace, start: u64, blocks: u64, fua: bool) -> Result<SimTime> {
        let ack = self.written(pace, (start, blocks), fua)?;
        self.check_guard(start, blocks)?;
        self.medium.write_zeroes(start, blocks)?;
        self.keep(fua).map(|()| ack)
    }

    /// Makes everything acknowledged durable.
    ///
    /// # Errors
    /// As [`Medium::sync`].
    pub fn flush(&self, pace: &Pace) -> Result<SimTime> {
        let ack = self.acknowledged(pace, HostRequest::flush())?;
        self.medium.sync()?;
        Ok(ack)
    }

    /// The geometry in short.
    pub fn info(&self) -> Value {
        json!({"layer": "raw", "head_width": self.head_width, "tracks": self.tracks.count(),
               "blocks": self.blocks(), "bands": self.bands()})
    }
}
