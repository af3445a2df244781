//! The raw shingled disk: the host writes the medium as it is. Bands, on request, end in guard tracks that cannot be
//! written.

use crate::error::{DeviceError, Result};
use crate::medium::Medium;
use crate::pace::Pace;
use crate::queue::{Carry, Queue};
use crate::tracks::Tracks;
use serde::Serialize;
use serde_json::{Value, json};
use smrlab_drive::{Controller, Executed};
use smrlab_stl::HostBuffer;
use smrlab_units::{HostOp, SimTime};
use std::sync::Arc;

/// See the [module](self).
pub struct Raw {
    /// The medium.
    pub medium: Medium,
    tracks: Arc<Tracks>,
    head_width: u64,
    /// Tracks in a band, its guard included.
    band: Option<u64>,
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
    /// One past the guard.
    pub end: u64,
    /// One past the last block written: where appending destroys nothing.
    pub append: u64,
}

impl Raw {
    /// `band` tracks of data and a guard of `head_width - 1` make a band; without it the whole medium is one.
    pub fn new(
        medium: Medium,
        tracks: Arc<Tracks>,
        head_width: u64,
        band: Option<u64>,
        clock: Option<Controller>,
    ) -> Self {
        let clock = clock.map(|controller| Queue::new(controller, NoBytes, false));
        let band = band.map(|b| b + head_width - 1);
        Self { medium, tracks, head_width, band, clock }
    }

    /// When the modelled drive acknowledges a request that comes now; at once where there is none.
    ///
    /// # Errors
    /// When the capture cannot be written on.
    #[inline]
    pub fn acknowledged(&self, pace: &Pace, op: HostOp, start: u64, blocks: u64) -> Result<SimTime> {
        let Some(clock) = &self.clock else { return Ok(SimTime::ZERO) };
        clock.submit(pace, (op, start, blocks), HostBuffer::None)
    }

    /// Blocks of the medium.
    pub fn blocks(&self) -> u64 {
        self.tracks.blocks()
    }

    /// The first block of track number `index`, or the end of the medium.
    fn track_start(&self, index: u64) -> u64 {
        if index >= self.tracks.count() { self.blocks() } else { self.tracks.by_index(index).start }
    }

    /// How many bands there are.
    pub fn bands(&self) -> u64 {
        self.band.map_or(0, |b| self.tracks.count().div_ceil(b))
    }

    /// A band as it is now.
    ///
    /// # Errors
    /// When there are no bands, or no such one.
    pub fn band(&self, number: u64) -> Result<BandState> {
        let Some(band) = self.band.filter(|_| number < self.bands()) else {
            let text =
                format!("there is no band {number}: the device has {} (layer raw,band=TRACKS)", self.bands());
            return Err(DeviceError::input(text));
        };
        let start = self.track_start(number * band);
        let guard = self.track_start((number + 1) * band - (self.head_width - 1));
        let end = self.track_start((number + 1) * band);
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
        let Some(band) = self.band else { return Ok(()) };
        let (first, last) = (self.tracks.at(start).index, self.tracks.at(start + blocks - 1).index);
        let data = band - (self.head_width - 1);
        // A head of one track needs no guard.
        if data == band {
            return Ok(());
        }
        if first / band == last / band && last % band < data {
            return Ok(());
        }
        let text =
            format!("blocks {start} to {} touch a guard track, which cannot be written", start + blocks - 1);
        Err(DeviceError::new(libc::EPERM, text))
    }

    /// Writes blocks.
    ///
    /// # Errors
    /// `EPERM` for a guard track; as [`Medium::write`].
    #[inline]
    pub fn write(&self, start: u64, buf: &[u8]) -> Result<()> {
        self.check_guard(start, buf.len() as u64 / smrlab_units::BLOCK_BYTES)?;
        self.medium.write(start, buf)
    }

    /// Writes zeroes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_zeroes(&self, start: u64, blocks: u64) -> Result<()> {
        self.check_guard(start, blocks)?;
        self.medium.write_zeroes(start, blocks)
    }

    /// The geometry in short.
    pub fn info(&self) -> Value {
        json!({"layer": "raw", "head_width": self.head_width, "tracks": self.tracks.count(),
               "blocks": self.blocks(), "bands": self.bands()})
    }
}
