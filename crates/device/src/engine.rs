//! What a device serves: the medium as it is, a layer on it, or an array of drives. Positions and lengths are in blocks.

use crate::clock::{Call, ModelClock};
use crate::error::Result;
use crate::medium::{Medium, write_zeroes};
use serde_json::{Value, json};
use smrlab_drive::SavedState;
use smrlab_stl::{HostBuffer, HostRequest};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, SimTime};
use std::sync::Arc;

/// A state of a drive or array as a file has it, and whose it is.
pub(crate) type StateFile = (std::io::Result<Vec<u8>>, Value);

/// See the [module](self). Commands answer with the model's time of their acknowledgement.
pub(crate) trait Engine: Send + Sync {
    /// Blocks that the host sees.
    fn blocks(&self) -> u64;

    /// Whether discarding frees space: discarded blocks read as zeroes.
    fn discards(&self) -> bool {
        false
    }

    /// The medium under it all, or that of a disk of an array; none where there is no such disk.
    fn medium(&self, disk: u64) -> Option<Arc<Medium>>;

    /// Serves a request with its bytes.
    ///
    /// # Errors
    /// The drive's refusal; what the store answers. A write that failed stops all but a raw medium: it is to be started again.
    fn serve(&self, call: Call<'_>, request: HostRequest, host: HostBuffer<'_>) -> Result<SimTime>;

    /// Makes durable what was carried out so far.
    ///
    /// # Errors
    /// As [`Medium::sync`].
    fn sync(&self) -> Result<()>;

    /// Reads blocks; answers also with a destroyed block that was met, on a raw medium.
    ///
    /// # Errors
    /// `EIO` for destroyed blocks where errors were asked for; as [`serve`](Self::serve).
    fn read(&self, call: Call<'_>, start: u64, buf: &mut [u8]) -> Result<(SimTime, Option<u64>)> {
        let blocks = Blocks(buf.len() as u64 / BLOCK_BYTES);
        let request = HostRequest::new(HostOp::Read, Lba(start), blocks);
        self.serve(call, request, HostBuffer::Read(buf)).map(|ack| (ack, None))
    }

    /// Reads `blocks` for who takes them in pieces, as [`HostBuffer::Lend`] says; nothing of what it does may wait for this device.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn lend(
        &self,
        call: Call<'_>,
        start: u64,
        blocks: u64,
        take: &dyn Fn(usize, &[u8]),
    ) -> Result<(SimTime, Option<u64>)> {
        let request = HostRequest::new(HostOp::Read, Lba(start), Blocks(blocks));
        self.serve(call, request, HostBuffer::Lend(take)).map(|ack| (ack, None))
    }

    /// Writes blocks; with `fua` they are durable on return.
    ///
    /// # Errors
    /// `EPERM` for a guard track; as [`serve`](Self::serve).
    fn write(&self, call: Call<'_>, start: u64, buf: &[u8], fua: bool) -> Result<SimTime> {
        let ack = self.put(call, start, buf, fua)?;
        self.keep(fua).map(|()| ack)
    }

    /// Writes blocks, of which the model knows whether they were to be durable.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn put(&self, call: Call<'_>, start: u64, buf: &[u8], fua: bool) -> Result<SimTime> {
        let blocks = Blocks(buf.len() as u64 / BLOCK_BYTES);
        let request = HostRequest { fua, ..HostRequest::new(HostOp::Write, Lba(start), blocks) };
        self.serve(call, request, HostBuffer::Write(buf))
    }

    /// What the model says is on the medium has to be there after a power loss of the host, too.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    fn keep(&self, fua: bool) -> Result<()> {
        if fua { self.sync() } else { Ok(()) }
    }

    /// Makes blocks read as zeroes: by a discard where there is one, else by writing. With `fua` that is durable on return.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn zero(&self, call: Call<'_>, start: u64, blocks: u64, fua: bool) -> Result<SimTime> {
        let ack = if self.discards() {
            let request = HostRequest::new(HostOp::Discard, Lba(start), Blocks(blocks));
            self.serve(call, request, HostBuffer::None)?
        } else {
            write_zeroes(start, blocks, |at, bytes| self.put(call, at, bytes, fua))?
        };
        self.keep(fua).map(|()| ack)
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    fn flush(&self, call: Call<'_>) -> Result<SimTime> {
        let ack = self.serve(call, HostRequest::flush(), HostBuffer::None)?;
        self.sync().map(|()| ack)
    }

    /// Which of the blocks may hold data: ascending (from, to, data), which may end early.
    fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool));

    /// Work that no request waits for, and checkpoints that are due.
    ///
    /// # Errors
    /// What stopped the device.
    fn idle(&self, clock: &ModelClock) -> Result<()>;

    /// Makes everything durable and leaves a checkpoint.
    ///
    /// # Errors
    /// What the operating system answers.
    fn close(&self) -> Result<()>;

    /// What it is, for people and programs.
    fn info(&self) -> Value;

    /// Its counters; a map of a medium takes at most `budget` bytes of memory.
    fn stats(&self, budget: u64) -> Value;

    /// Begins counting anew.
    fn reset(&self);

    /// The state for `from_state` of a run or of another device. Bytes are not in it.
    ///
    /// # Errors
    /// Where there is none, or not now.
    fn state(&self) -> Result<StateFile>;
}

/// The size of a medium's map, and what it may take.
pub(crate) fn map_stats(medium: &Medium, budget: u64) -> Value {
    medium.with_runs(|s| {
        let room = s.room();
        json!({"runs": s.runs().len(), "map_bytes": room.resident, "map_spilled_bytes": room.spilled,
               "map_budget_bytes": s.runs().spills().then_some(budget)})
    })
}

/// Whose state it is.
pub(crate) fn about(state: &SavedState, records: usize) -> Value {
    json!({"drive": state.drive, "layer": state.layer, "metadata": state.metadata, "records": records})
}
