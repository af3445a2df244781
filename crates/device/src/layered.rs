//! A translation layer at work on a medium that shingles, with real bytes.
//!
//! Time and bytes are two executors of one plan: the drive says when, and hands the plan over; the bytes are moved and the
//! records kept here, all in the order of the plan. What a killed process leaves behind is therefore
//! exactly a cut between two media operations (or within one), which is what a layer's recovery is made for. What a host
//! that lost its power leaves behind is the state at the last fence or flush, and any part of what was written since: the
//! fences of a plan see to it that this does no harm.

use crate::carry::Bytes;
use crate::error::{DeviceError, Result};
use crate::medium::{Begun, Medium, with_gaps, write_zeroes};
use crate::pace::Pace;
use crate::queue::{Carry, Queue};
use crate::tag;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use smrlab_blockmap::BlockSet;
use smrlab_drive::{Assembled, Controller, Executed, State};
use smrlab_stl::{Capabilities, Cause, HostBuffer, HostRequest, Plan, Record};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, SimTime, Zone, ZoneAction, ZoneCondition, ZoneLimits};
use std::sync::Arc;

/// Steps of background work before there is another look at whether a checkpoint is due.
const STEPS: usize = 64;

/// See the [module](self). Positions and lengths are in blocks.
pub struct Layered {
    queue: Queue<Bytes>,
    /// The medium.
    pub medium: Arc<Medium>,
    resolved: String,
    drive: String,
    metadata: String,
    capabilities: Capabilities,
    /// LBA equals PBA: the medium knows what was written.
    identity: bool,
    blocks: u64,
    /// The host's blocks that were ever written, here or before the state that it began from. Locked before the medium.
    written: Mutex<BlockSet>,
}

impl Carry for Bytes {
    fn request(&mut self, executed: &Executed<'_>, host: HostBuffer<'_>) -> Result<()> {
        self.carry_out(executed.plan, (executed.done, true), Cause::Host, host)
    }

    fn background(&mut self, step: &Executed<'_>) -> Result<()> {
        self.carry_out(step.plan, (step.done, step.whole), Cause::Host, HostBuffer::None)
    }
}

impl Layered {
    /// A drive over a medium, its layer brought to where `records` say it was. `metadata`: where the layer's maps are;
    /// `by_step`: see [`Queue::new`].
    ///
    /// # Errors
    /// When what recovery has to write cannot be written.
    pub fn new(
        drive: Assembled,
        medium: Medium,
        records: Vec<Record>,
        metadata: &str,
        by_step: bool,
    ) -> Result<Self> {
        let (built, text) = (&drive.built, drive.drive.clone());
        let (resolved, capabilities) = (built.resolved.clone(), built.capabilities);
        let (identity, blocks) = (built.layer.facts().identity, built.layer.host_blocks().0);
        let (mut drive, scheduler) = drive.start(true, true);
        let mut written = BlockSet::new();
        let mut records = records;
        records.retain(|r| {
            let of_host = r.tag == tag::HOST;
            if of_host {
                written.insert(r.words[0]..r.words[1]);
            }
            !of_host
        });
        let bytes = Bytes::recovered(&mut drive, medium, records)?;
        let medium = bytes.medium.clone();
        let queue = Queue::new(Controller::new(drive, &scheduler), bytes, by_step);
        Ok(Self {
            queue,
            medium,
            resolved,
            drive: text,
            metadata: metadata.to_owned(),
            capabilities,
            identity,
            blocks,
            written: Mutex::new(written),
        })
    }

    /// Blocks that the host sees.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// What the layer promises.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Reads blocks.
    ///
    /// # Errors
    /// As [`Medium::read`].
    pub fn read(&self, pace: &Pace, start: u64, buf: &mut [u8]) -> Result<SimTime> {
        let blocks = buf.len() as u64 / BLOCK_BYTES;
        let request = HostRequest::new(HostOp::Read, Lba(start), Blocks(blocks));
        self.queue.submit(pace, request, HostBuffer::Read(buf))
    }

    /// Writes blocks; with `fua` they are durable on return.
    ///
    /// # Errors
    /// As [`Medium::write`]; after that the device answers with errors until it is started again.
    pub fn write(&self, pace: &Pace, start: u64, buf: &[u8], fua: bool) -> Result<SimTime> {
        let ack = self.put(pace, start, buf, fua)?;
        self.keep(fua).map(|()| ack)
    }

    fn put(&self, pace: &Pace, start: u64, buf: &[u8], fua: bool) -> Result<SimTime> {
        let blocks = buf.len() as u64 / BLOCK_BYTES;
        self.note_written(start, start + blocks)?;
        let request = HostRequest { fua, ..HostRequest::new(HostOp::Write, Lba(start), Blocks(blocks)) };
        self.queue.submit(pace, request, HostBuffer::Write(buf))
    }

    /// What the model says is on the medium has to be there after a power loss of the host, too.
    fn keep(&self, fua: bool) -> Result<()> {
        if fua { self.sync() } else { Ok(()) }
    }

    /// The limits of the zones that the host keeps in order, where there are such.
    pub fn zone_limits(&self) -> Option<ZoneLimits> {
        self.queue.lock().controller.drive().layer().facts().zones
    }

    /// The zones that the host keeps in order, from the one with `from` on, until `out` answers `false`.
    pub fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        self.queue.lock().controller.drive().layer().zones(from, out);
    }

    /// Does something with the zone that begins at `zone`, or with all.
    ///
    /// # Errors
    /// The drive's refusal; as [`write`](Self::write).
    pub fn zone(&self, pace: &Pace, action: ZoneAction, zone: Option<Lba>) -> Result<SimTime> {
        let mut of = (Lba(0), Blocks(self.blocks));
        if let Some(start) = zone {
            self.zones(start, &mut |found| {
                of = (found.start, found.blocks);
                false
            });
        }
        self.queue.submit(pace, HostRequest::new(HostOp::Zone(action), of.0, of.1), HostBuffer::None)
    }

    /// Makes the zone with this block read-only or offline, as a failing head does.
    ///
    /// # Errors
    /// When it has no write pointer; as [`Medium::write`].
    pub fn fail_zone(&self, zone: Lba, condition: ZoneCondition) -> Result<()> {
        let mut state = self.queue.lock();
        let mut plan = Plan::new(false, true);
        if !state.controller.drive_mut().layer_mut().fail_zone(zone, condition, &mut plan) {
            return Err(DeviceError::input(format!("block {} is in no zone with a write pointer", zone.0)));
        }
        plan.records().iter().try_for_each(|(_, r)| self.medium.keep(r.tag, r.words))
    }

    /// Notes that the host writes blocks: once, so that who writes the same again waits for no log.
    fn note_written(&self, start: u64, end: u64) -> Result<()> {
        let mut written = self.written.lock();
        if written.insert(start..end) == 0 {
            return Ok(());
        }
        self.medium.keep(tag::HOST, [start, end, 0])
    }

    /// Makes blocks read as zeroes: by a discard where the layer has it, else by writing. With `fua` that is durable on
    /// return.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn zero(&self, pace: &Pace, start: u64, blocks: u64, fua: bool) -> Result<SimTime> {
        let ack = if self.capabilities.discards {
            let request = HostRequest::new(HostOp::Discard, Lba(start), Blocks(blocks));
            self.queue.submit(pace, request, HostBuffer::None)?
        } else {
            write_zeroes(start, blocks, |at, bytes| self.put(pace, at, bytes, fua))?
        };
        self.keep(fua).map(|()| ack)
    }

    /// Makes everything acknowledged durable.
    ///
    /// # Errors
    /// As [`Medium::sync`].
    pub fn flush(&self, pace: &Pace) -> Result<SimTime> {
        let ack = self.queue.submit(pace, HostRequest::flush(), HostBuffer::None)?;
        self.sync().map(|()| ack)
    }

    /// Makes durable what was carried out so far.
    fn sync(&self) -> Result<()> {
        let before = self.queue.lock().carry.changes;
        self.medium.sync()?;
        let mut state = self.queue.lock();
        // The layer hears of it only if it planned nothing meanwhile, which would not be covered.
        if state.carry.changes == before {
            state.controller.drive_mut().layer_mut().durable();
        }
        Ok(())
    }

    /// Does the background work that is due. Step by step, requests that came meanwhile go first.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn idle(&self, pace: &Pace) -> Result<()> {
        let Some(mut state) = self.queue.try_lock() else { return Ok(()) };
        for _ in 0..STEPS {
            if !self.queue.step(&mut state, pace.now())? {
                return Ok(());
            }
            MutexGuard::bump(&mut state);
        }
        Ok(())
    }

    /// The drive with nothing in its buffer that is not on the medium. A write that fails stops the device, which later
    /// requests are told.
    fn settled(&self) -> MutexGuard<'_, crate::queue::State<Bytes>> {
        let mut state = self.queue.lock();
        let _ = self.queue.drain(&mut state);
        state
    }

    /// Which blocks hold data.
    pub fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        if self.identity {
            drop(self.settled());
            return self.medium.extents(start, start + blocks, out);
        }
        let mut ranges = Vec::new();
        let state = self.settled();
        state.controller.drive().layer().allocated(Lba(start), Blocks(blocks), &mut |r| ranges.push(r));
        drop(state);
        with_gaps(start..start + blocks, ranges, out);
    }

    /// Makes everything durable, what the drive's buffer holds included, and leaves a checkpoint.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn close(&self) -> Result<()> {
        drop(self.settled());
        self.medium.sync()?;
        self.checkpoint(true)
    }

    /// Writes a checkpoint; see [`Medium::begin_checkpoint`].
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint(&self, anyway: bool) -> Result<()> {
        if !self.medium.wants_checkpoint(anyway)? {
            return Ok(());
        }
        let state = self.queue.lock();
        if state.broken.is_some() {
            return Ok(());
        }
        let written = self.written.lock();
        let records = |out: &mut dyn FnMut(u32, [u64; 3])| {
            state.controller.drive().layer().checkpoint(&mut |r| out(r.tag, r.words));
            written.runs().for_each(|r| out(tag::HOST, [r.start, r.end, 0]));
        };
        let begun = self.medium.begin_checkpoint(anyway, &records)?;
        drop((written, state));
        begun.map_or(Ok(()), Begun::finish)
    }

    /// The drive's state between two requests, for `from_state` of a run or of another device. Bytes are not in it.
    pub fn state(&self) -> State {
        let state = self.settled();
        let drive = state.controller.drive();
        let written = self.written.lock().runs().collect();
        let identity = State {
            drive: self.drive.clone(),
            layer: self.resolved.clone(),
            metadata: self.metadata.clone(),
            written,
            ..State::default()
        };
        State::take(drive, identity)
    }

    /// What it is.
    pub fn info(&self) -> Value {
        let c = &self.capabilities;
        json!({"drive": self.drive, "layer": self.resolved, "keeps_data": c.keeps_data, "survives_cut": c.survives_cut,
               "discards": c.discards})
    }

    /// Its counters.
    pub fn stats(&self) -> Value {
        let state = self.queue.lock();
        state.carry.told(Some(state.controller.drive())).into()
    }

    /// Forgets the counters.
    pub fn reset(&self) {
        let state = &mut *self.queue.lock();
        state.carry.count_anew(Some(state.controller.drive()));
    }
}
