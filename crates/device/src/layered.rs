//! A translation layer at work on a medium that shingles, with real bytes.
//!
//! Time and bytes are two executors of one plan: the drive says when, and hands the plan over; the bytes are moved and the
//! records kept here, all in the order of the plan. What a killed process leaves behind is therefore
//! exactly a cut between two media operations (or within one), which is what a layer's recovery is made for. What a host
//! that lost its power leaves behind is the state at the last fence or flush, and any part of what was written since: the
//! fences of a plan see to it that this does no harm.

use crate::changes::Entries;
use crate::clock::{Call, ModelClock};
use crate::disk::Opened;
use crate::engine::{Engine, StateFile, about, map_stats};
use crate::error::{DeviceError, Result};
use crate::medium::{Medium, with_gaps};
use crate::one_drive::{MovesBytes, OneDrive};
use crate::plan_bytes::Bytes;
use crate::table::Table;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use smrlab_blockmap::BlockSet;
use smrlab_drive::{SavedState, ScheduledDrive, TimedPlan};
use smrlab_stl::{Capabilities, Cause, HostBuffer, HostRequest, Plan};
use smrlab_units::{
    Blocks, HostOp, Lba, SimTime, Zone, ZoneAction, ZoneCondition, ZoneLimits, ZoneStatistics,
};
use std::ops::Range;
use std::sync::Arc;

/// Steps of background work before there is another look at whether a checkpoint is due.
const STEPS: usize = 64;

/// See the [module](self). Positions and lengths are in blocks.
pub struct Layered {
    table: Table<OneDrive<Bytes>>,
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

impl MovesBytes for Bytes {
    fn request(&mut self, executed: &TimedPlan<'_>, host: HostBuffer<'_>) -> Result<()> {
        self.carry_out(executed.plan, (executed.done, true), Cause::Host, host)
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<()> {
        self.carry_out(step.plan, (step.done, step.whole), Cause::Host, HostBuffer::None)
    }
}

impl Layered {
    /// A drive over its medium, its layer brought to where it was. `metadata`: where the layer's maps are; `by_step`: see
    /// [`OneDrive::new`].
    ///
    /// # Errors
    /// When what recovery has to write cannot be written.
    pub(crate) fn new(opened: Opened, metadata: &str, by_step: bool) -> Result<Self> {
        let Opened { drive, medium, records, written, .. } = opened;
        let (built, text) = (&drive.built, drive.drive.clone());
        let (resolved, capabilities) = (built.resolved.clone(), built.capabilities);
        let (identity, blocks) = (built.layer.facts().identity, built.layer.host_blocks().0);
        let (mut drive, scheduler) = drive.start(true, true);
        let bytes = Bytes::recovered(&mut drive, medium, &records)?;
        let medium = bytes.medium.clone();
        let table = Table::new(OneDrive::new(ScheduledDrive::new(drive, &scheduler), bytes, by_step));
        Ok(Self {
            table,
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

    /// Revolutions a minute of the drive.
    pub fn rpm(&self) -> u32 {
        self.table.lock().scheduled.drive().mechanics().rpm()
    }

    /// The limits of the zones that the host keeps in order, where there are such.
    pub fn zone_limits(&self) -> Option<ZoneLimits> {
        self.table.lock().scheduled.drive().layer().facts().zones
    }

    /// What is counted of these zones.
    pub fn zone_statistics(&self) -> Option<ZoneStatistics> {
        self.table.lock().scheduled.drive().layer().facts().zone_statistics
    }

    /// Whether a read of these blocks brings data.
    ///
    /// # Errors
    /// The drive's refusal.
    pub fn readable(&self, lba: Lba, blocks: Blocks) -> Result<()> {
        let answer = self.table.lock().scheduled.drive().layer().readable(lba, blocks);
        answer.map_err(|(why, at)| DeviceError::refused(why, Some(at)))
    }

    /// The zones that the host keeps in order, from the one with `from` on, until `out` answers `false`.
    pub fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        self.table.lock().scheduled.drive().layer().zones(from, out);
    }

    /// Does something with each of the zones of which `zones` has a block; `None`: with all to which the action applies.
    ///
    /// # Errors
    /// The drive's refusal; what the store answers.
    pub fn zone(&self, call: Call<'_>, action: ZoneAction, zones: Option<Range<Lba>>) -> Result<SimTime> {
        let all_zones = zones.is_none();
        let of = zones.unwrap_or(Lba(0)..Lba(self.blocks));
        let request = HostRequest::new(HostOp::Zone(action), of.start, Blocks(of.end.0 - of.start.0));
        let request = HostRequest { all_zones, ..request };
        self.serve(call, request, HostBuffer::None)
    }

    /// Makes the zone with this block read-only or offline, as a failing head does.
    ///
    /// # Errors
    /// When it has no write pointer; what the log answers.
    pub fn fail_zone(&self, zone: Lba, condition: ZoneCondition) -> Result<()> {
        let mut server = self.table.lock();
        let (mut plan, mut gap) = (Plan::new(false, true), false);
        let layer = server.scheduled.drive_mut().layer_mut();
        layer.zones(zone, &mut |found| {
            gap = !found.kind.has_pointer();
            false
        });
        if gap || !layer.fail_zone(zone, condition, &mut plan) {
            return Err(DeviceError::input(format!("block {} is in no zone with a write pointer", zone.0)));
        }
        self.medium.keep(Entries::of(plan.records()))
    }

    /// Notes that the host writes blocks: once, so that who writes the same again waits for no log.
    fn note_written(&self, blocks: Range<u64>) -> Result<()> {
        let mut written = self.written.lock();
        if written.insert(blocks.clone()) == 0 {
            return Ok(());
        }
        let mut entries = Entries::default();
        entries.written(&blocks);
        self.medium.keep(entries)
    }

    /// The drive with nothing in its buffer that is not on the medium, unless a write that failed has stopped the device.
    fn settled(&self) -> MutexGuard<'_, OneDrive<Bytes>> {
        let mut server = self.table.lock();
        self.table.call(&mut *server, OneDrive::drain);
        server
    }

    /// Writes a checkpoint where one is due.
    ///
    /// # Errors
    /// As [`Medium::checkpoint_with`].
    fn checkpoint(&self, anyway: bool) -> Result<()> {
        let lock = || {
            let server = self.table.lock();
            server.broken.is_none().then(|| (server, self.written.lock()))
        };
        self.medium.checkpoint_with(anyway, lock, |(server, written), out| {
            server.scheduled.drive().layer().checkpoint(out);
            written.runs().for_each(|run| out.written(&run));
        })
    }
}

impl Engine for Layered {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn discards(&self) -> bool {
        self.capabilities.discards
    }

    fn medium(&self, disk: u64) -> Option<Arc<Medium>> {
        (disk == 0).then(|| self.medium.clone())
    }

    fn serve(&self, call: Call<'_>, request: HostRequest, host: HostBuffer<'_>) -> Result<SimTime> {
        if request.op == HostOp::Write {
            self.note_written(request.span())?;
        }
        self.table.serve(call, request, host)
    }

    fn sync(&self) -> Result<()> {
        let before = self.table.lock().bytes.changes;
        self.medium.sync()?;
        let mut server = self.table.lock();
        let OneDrive { scheduled, bytes, .. } = &mut *server;
        bytes.synced(before, scheduled.drive_mut());
        Ok(())
    }

    fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        let server = self.settled();
        if self.identity {
            drop(server);
            return self.medium.extents(start, start + blocks, out);
        }
        let mut ranges = Vec::new();
        let layer = server.scheduled.drive().layer();
        layer.allocated(Lba(start), Blocks(blocks), &mut |r| ranges.push(r));
        drop(server);
        with_gaps(start..start + blocks, ranges, out);
    }

    /// Step by step, requests that came meanwhile go first.
    fn idle(&self, clock: &ModelClock) -> Result<()> {
        if let Some(mut server) = self.table.try_lock() {
            for _ in 0..STEPS {
                if !self.table.call(&mut *server, |s| s.step(clock.now()))? {
                    break;
                }
                MutexGuard::bump(&mut server);
            }
        }
        self.checkpoint(false)
    }

    /// What the drive's buffer holds is made durable, too.
    fn close(&self) -> Result<()> {
        let stopped = self.settled().broken.clone();
        self.medium.sync()?;
        self.checkpoint(true)?;
        stopped.map_or(Ok(()), Err)
    }

    fn info(&self) -> Value {
        let c = &self.capabilities;
        json!({"drive": self.drive, "layer": self.resolved, "keeps_data": c.keeps_data, "survives_cut": c.survives_cut,
               "discards": c.discards})
    }

    fn stats(&self, budget: u64) -> Value {
        let server = self.table.lock();
        json!({"medium": map_stats(&self.medium, budget), "media": server.bytes.stats(Some(server.scheduled.drive()))})
    }

    fn reset(&self) {
        let server = &mut *self.table.lock();
        server.bytes.count_anew(Some(server.scheduled.drive()));
    }

    fn state(&self) -> Result<StateFile> {
        let server = self.settled();
        if let Some(e) = &server.broken {
            return Err(e.clone());
        }
        let identity = SavedState {
            drive: self.drive.clone(),
            layer: self.resolved.clone(),
            metadata: self.metadata.clone(),
            written: self.written.lock().runs().collect(),
            ..SavedState::default()
        };
        let state = SavedState::take(server.scheduled.drive(), identity);
        let about = about(&state, state.records.len());
        Ok((state.encode(), about))
    }
}
