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

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_trace::{OpenContext, open, read_all};
    use smrlab_units::{Blocks, HostOp, Lba};

    /// More requests than are kept before they are written down: all are in the trace, once, as they came. A clock that goes back does not
    /// take the trace with it, and nothing follows its end.
    #[test]
    fn a_trace_has_every_request_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let recorder = Recorder::create(&path, "test").unwrap();
        let requests: Vec<HostRequest> = (0..2 * Batch::ROWS as u64 + 3)
            .map(|n| {
                let op = [HostOp::Read, HostOp::Write, HostOp::Discard][n as usize % 3];
                HostRequest { fua: n % 6 == 1, ..HostRequest::new(op, Lba(n * 8), Blocks(1 + n % 16)) }
            })
            .collect();
        let came = |n: u64| SimTime(1000 * if n % 100 == 50 { n - 20 } else { n });
        (0..).zip(&requests).for_each(|(n, request)| recorder.note(came(n), request).unwrap());
        recorder.finish().unwrap();
        recorder.note(SimTime(1 << 40), &requests[0]).unwrap();
        recorder.finish().unwrap();
        let trace = read_all(&mut *open(path.to_str().unwrap(), &OpenContext::default()).unwrap()).unwrap();
        let times = (0u64..).map(|n| SimTime(1000 * (n - u64::from(n % 100 == 50))));
        assert!(trace.arrival.iter().copied().eq(times.take(requests.len())));
        assert!(trace.lba.iter().copied().eq(requests.iter().map(|r| r.lba)));
        let rest = (0..trace.len()).map(|i| (trace.op[i], u64::from(trace.blocks[i]), trace.fua[i]));
        assert!(rest.eq(requests.iter().map(|r| (r.op, r.blocks.0, r.fua))));
    }
}
