//! The capture: what clients do, with the model's times, as a trace that `smrlab run` replays.

use crate::error::{DeviceError, Result};
use parking_lot::Mutex;
use smrlab_stl::HostRequest;
use smrlab_trace::{Batch, ParquetWriter, Record};
use smrlab_units::SimTime;
use std::path::Path;

/// Writes requests in the order in which the model got them.
pub struct Recorder(Mutex<Recording>);

struct Recording {
    /// None once the trace is finished, or could not be written on.
    writer: Option<ParquetWriter>,
    batch: Batch,
    last: SimTime,
}

impl Recorder {
    /// Begins a trace at `path`; it appears there when it is finished.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path, source: &str) -> Result<Self> {
        let writer = ParquetWriter::create(path, source).map_err(wrong)?;
        Ok(Self(Mutex::new(Recording { writer: Some(writer), batch: Batch::new(), last: SimTime::ZERO })))
    }

    /// Notes a request that the model got at `now`; the caller sees to the order.
    ///
    /// # Errors
    /// When the trace cannot be written on; it ends there.
    pub fn note(&self, now: SimTime, request: &HostRequest) -> Result<()> {
        let state = &mut *self.0.lock();
        state.last = state.last.max(now);
        let HostRequest { op, lba, fua, .. } = *request;
        let blocks = u32::try_from(request.blocks.0).unwrap_or(u32::MAX);
        state.batch.push(Record { arrival: state.last, op, lba, blocks, device: 0, stream: 0, fua });
        if state.batch.is_full() { state.drain() } else { Ok(()) }
    }

    /// Finishes the trace; nothing is noted after that.
    ///
    /// # Errors
    /// When there was no request, or the disk is full.
    pub fn finish(&self) -> Result<()> {
        let state = &mut *self.0.lock();
        state.drain()?;
        match state.writer.take() {
            Some(writer) => writer.finish(|_| "device".to_owned()).map(|_| ()).map_err(wrong),
            None => Ok(()),
        }
    }
}

impl Recording {
    fn drain(&mut self) -> Result<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.write(&self.batch).map_err(wrong)?;
        self.batch.clear();
        self.writer = Some(writer);
        Ok(())
    }
}

fn wrong(e: impl std::fmt::Display) -> DeviceError {
    DeviceError::new(libc::EIO, format!("recording: {e}"))
}
