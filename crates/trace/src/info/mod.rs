//! What a trace is like: one pass, bounded memory, in the terms of the papers' tables.

mod days;
mod grid;
mod spans;

pub use grid::{Cell, Grid};
pub use spans::Percentiles;

use crate::{Batch, Record, Result, TraceError, TraceSource};
use days::Days;
use serde::Serialize;
use smrlab_blockmap::BlockSet;
use smrlab_units::{BLOCK_BYTES, Histogram, HostOp, SimTime};
use std::collections::BTreeMap;

/// Blocks of the unit in which a footprint is counted beside blocks: 4 KiB.
const UNIT_BLOCKS: u64 = 8;
/// Devices that are told apart.
const DEVICES: usize = 1 << 16;
/// The sets hold blocks below this: 4 PiB.
const SPACE: u64 = 1 << 43;

/// The characterisation of a trace. Times in seconds, sizes in bytes, shares from 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// All requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Writes among these that are to be on the medium before they are answered (FUA).
    pub fua_writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Appends to zones.
    pub appends: u64,
    /// Resets of zones.
    pub zone_resets: u64,
    /// Commands that open, close or finish zones.
    pub zone_commands: u64,
    /// Writes among reads and writes.
    pub write_share: f64,
    /// Blocks read.
    pub blocks_read: u64,
    /// Blocks written.
    pub blocks_written: u64,
    /// Mean length of a read.
    pub mean_read_bytes: f64,
    /// Mean length of a write.
    pub mean_write_bytes: f64,
    /// Mean length of a read or write.
    pub mean_bytes: f64,
    /// From the first arrival to the last.
    pub span_s: f64,
    /// Requests a second over the span.
    pub rate: f64,
    /// Times between arrivals, over all devices.
    pub interarrival_s: Percentiles,
    /// Lengths of reads and writes.
    pub size_bytes: Percentiles,
    /// Writes of which at least one block had been written before in this trace.
    pub updates: u64,
    /// Updates among writes.
    pub update_share: f64,
    /// Blocks written that had been written before.
    pub blocks_updated: u64,
    /// Different blocks read or written, in bytes: the unique data.
    pub unique_bytes: u64,
    /// Different blocks read, in bytes.
    pub unique_read_bytes: u64,
    /// Different blocks written, in bytes.
    pub unique_write_bytes: u64,
    /// Different 4 KiB units touched, in bytes.
    pub footprint_bytes: u64,
    /// Of the blocks ever written, the share that was written once only: never updated again.
    pub never_updated_share: f64,
    /// Of the blocks up to the highest of each device, the share that is not written on a day, in the mean of all whole days
    /// of the trace; `None` where it is shorter than a day or the sets are
    /// not exact (update stability, Amer et al. 2010).
    pub unchanged_day_share: Option<f64>,
    /// Whether sets of blocks (unique data, updates, footprint) are exact: `false` when they reached the memory bound or
    /// the trace's addresses went beyond what they hold; the figures are then those of the part before.
    pub sets_exact: bool,
    /// Requests that begin where the one before them on the same device ended.
    pub sequential_share: f64,
    /// The same, counted in blocks.
    pub sequential_block_share: f64,
    /// One past the last byte of any device.
    pub max_offset_bytes: u64,
    /// The space that all devices take when laid one behind the other.
    pub concat_bytes: u64,
    /// Different devices.
    pub devices: u64,
    /// The first devices, by number.
    pub device_list: Vec<DeviceInfo>,
    /// Bad lines tolerated.
    pub skipped: u64,
    /// Requests over time and address.
    pub grid: Grid,
}

/// One device of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceInfo {
    /// Its number.
    pub number: u32,
    /// What the trace calls it.
    pub name: String,
    /// Requests to it.
    pub requests: u64,
    /// Writes to it.
    pub writes: u64,
    /// One past its last block, in bytes.
    pub end_bytes: u64,
}

/// Devices listed one by one.
const LISTED: usize = 64;

struct Device {
    number: u32,
    requests: u64,
    writes: u64,
    /// One past the last block used.
    end: u64,
    /// Where the last request ended.
    next: u64,
    sets: Sets,
}

/// The blocks of a device, by what happened to them.
#[derive(Default)]
struct Sets {
    read: BlockSet,
    written: BlockSet,
    /// Written more than once.
    again: BlockSet,
    /// 4 KiB units touched.
    units: BlockSet,
}

impl Sets {
    fn bytes(&self) -> usize {
        self.read.bytes() + self.written.bytes() + self.again.bytes() + self.units.bytes()
    }

    /// Takes a read or write in; answers how many of its blocks are written again.
    fn add(&mut self, r: &Record) -> u64 {
        let blocks = r.lba.0..r.end().0;
        self.units.insert(blocks.start / UNIT_BLOCKS..blocks.end.div_ceil(UNIT_BLOCKS));
        if r.op == HostOp::Read {
            self.read.insert(blocks);
            return 0;
        }
        let again = &mut self.again;
        let before = self.written.runs_in(blocks.clone()).map(|run| {
            let n = run.end - run.start;
            again.insert(run);
            n
        });
        let before = before.sum();
        self.written.insert(blocks);
        before
    }

    /// Blocks read or written.
    fn touched(&self) -> u64 {
        let only_read = self.read.runs().map(|r| r.end - r.start - self.written.count_in(r));
        self.written.count() + only_read.sum::<u64>()
    }
}

/// Takes a trace in, batch by batch.
#[derive(Default)]
pub struct Characteriser {
    memory: usize,
    counts: [u64; HostOp::KINDS],
    blocks: [u64; HostOp::KINDS],
    fua: u64,
    gaps: Histogram,
    sizes: Histogram,
    first: Option<SimTime>,
    last: SimTime,
    sequential: (u64, u64),
    updates: u64,
    blocks_updated: u64,
    days: Days,
    exact: bool,
    batches: u64,
    places: BTreeMap<u32, usize>,
    devices: Vec<Device>,
    grid: Grid,
}

impl Characteriser {
    /// The sets of blocks take at most about `memory` bytes.
    pub fn new(memory: usize) -> Self {
        Self { memory, exact: true, ..Self::default() }
    }

    /// Takes the requests of a batch in.
    ///
    /// # Errors
    /// When the trace has more than 65 536 devices.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        for r in batch.iter() {
            self.request(&r)?;
        }
        // Adding up thousands of devices each time would cost more than the sets.
        self.batches += 1;
        if self.batches.is_multiple_of(1 + self.devices.len() as u64 / 64) {
            let sets = self.devices.iter().map(|d| d.sets.bytes()).sum::<usize>();
            self.exact &= sets + self.days.bytes() <= self.memory;
        }
        Ok(())
    }

    fn request(&mut self, r: &Record) -> Result<()> {
        self.counts[r.op.index()] += 1;
        self.blocks[r.op.index()] += u64::from(r.blocks);
        self.fua += u64::from(r.fua);
        if self.first.is_some() {
            self.gaps.add(r.arrival.since(self.last).0);
        }
        let first = *self.first.get_or_insert(r.arrival);
        self.last = r.arrival;
        let since_first = r.arrival.since(first);
        self.days.advance(since_first);
        if matches!(r.op, HostOp::Flush | HostOp::Zone(_)) {
            return Ok(());
        }
        let place = self.place(r.device)?;
        let device = &mut self.devices[place];
        device.requests += 1;
        device.writes += u64::from(r.op == HostOp::Write);
        device.end = device.end.max(r.end().0);
        let follows = device.requests > 1 && device.next == r.lba.0;
        device.next = r.end().0;
        // Where the blocks of an append lie only the drive knows.
        if matches!(r.op, HostOp::Discard | HostOp::Append) {
            return Ok(());
        }
        if follows {
            self.sequential.0 += 1;
            self.sequential.1 += u64::from(r.blocks);
        }
        self.sizes.add(u64::from(r.blocks) * BLOCK_BYTES);
        self.grid.add(since_first, r);
        self.exact &= r.end().0 <= SPACE;
        if self.exact {
            let before = self.devices[place].sets.add(r);
            self.updates += u64::from(before > 0);
            self.blocks_updated += before;
            if r.op == HostOp::Write {
                self.days.write(place, r.lba.0..r.end().0);
            }
        }
        Ok(())
    }

    /// The place in [`Self::devices`] of the device with this number.
    fn place(&mut self, number: u32) -> Result<usize> {
        if let Some(place) = self.places.get(&number) {
            return Ok(*place);
        }
        if self.devices.len() >= DEVICES {
            return Err(TraceError::Request(format!("the trace has more than {DEVICES} devices")));
        }
        self.devices.push(Device { number, requests: 0, writes: 0, end: 0, next: 0, sets: Sets::default() });
        self.places.insert(number, self.devices.len() - 1);
        Ok(self.devices.len() - 1)
    }

    /// The characterisation; names and the count of bad lines come from `source`.
    pub fn finish(self, source: &dyn TraceSource) -> Info {
        let [reads, writes, flushes, discards, appends, closes, finishes, opens, zone_resets] = self.counts;
        let zone_commands = closes + finishes + opens;
        let (moves, moved) = (reads + writes, self.blocks[0] + self.blocks[1]);
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let bytes = |blocks: u64, n: u64| share(blocks * BLOCK_BYTES, n);
        let requests = moves + flushes + discards + appends + zone_resets + zone_commands;
        let span = self.last.since(self.first.unwrap_or_default()).as_secs_f64();
        let all = |count: fn(&Sets) -> u64| self.devices.iter().map(|d| count(&d.sets)).sum::<u64>();
        let written = all(|s| s.written.count());
        let once = written - all(|s| s.again.count());
        let list = self.places.values().take(LISTED).map(|p| &self.devices[*p]).map(|d| DeviceInfo {
            number: d.number,
            name: source.device_name(d.number),
            requests: d.requests,
            writes: d.writes,
            end_bytes: d.end.saturating_mul(BLOCK_BYTES),
        });
        Info {
            requests,
            reads,
            writes,
            fua_writes: self.fua,
            flushes,
            discards,
            appends,
            zone_resets,
            zone_commands,
            write_share: share(writes, moves),
            blocks_read: self.blocks[0],
            blocks_written: self.blocks[1],
            mean_read_bytes: bytes(self.blocks[0], reads),
            mean_write_bytes: bytes(self.blocks[1], writes),
            mean_bytes: bytes(moved, moves),
            span_s: span,
            rate: if span > 0.0 { requests as f64 / span } else { 0.0 },
            interarrival_s: Percentiles::of(&self.gaps, 1e-9),
            size_bytes: Percentiles::of(&self.sizes, 1.0),
            updates: self.updates,
            update_share: share(self.updates, writes),
            blocks_updated: self.blocks_updated,
            unique_bytes: all(Sets::touched) * BLOCK_BYTES,
            unique_read_bytes: all(|s| s.read.count()) * BLOCK_BYTES,
            unique_write_bytes: written * BLOCK_BYTES,
            footprint_bytes: all(|s| s.units.count()) * UNIT_BLOCKS * BLOCK_BYTES,
            never_updated_share: share(once, written),
            unchanged_day_share: self
                .days
                .unchanged(self.devices.iter().map(|d| d.end).sum())
                .filter(|_| self.exact),
            sets_exact: self.exact,
            sequential_share: share(self.sequential.0, moves),
            sequential_block_share: share(self.sequential.1, moved),
            max_offset_bytes: self
                .devices
                .iter()
                .map(|d| d.end)
                .max()
                .unwrap_or(0)
                .saturating_mul(BLOCK_BYTES),
            concat_bytes: self
                .devices
                .iter()
                .fold(0u64, |sum, d| sum.saturating_add(d.end.saturating_mul(BLOCK_BYTES))),
            devices: self.devices.len() as u64,
            device_list: list.collect(),
            skipped: source.skipped(),
            grid: self.grid,
        }
    }
}

/// Memory for sets of blocks unless asked otherwise: enough for 100 GB of scattered 4 KiB units.
pub const DEFAULT_MEMORY: usize = 512 << 20;

/// Characterises a whole trace. `tick` is called after each batch with the requests so far, and ends the work where it
/// returns `false`; what has been read by then is characterised.
///
/// # Errors
/// Those of the source, and when it has more than 65 536 devices.
pub fn info(source: &mut dyn TraceSource, memory: usize, mut tick: impl FnMut(u64) -> bool) -> Result<Info> {
    let mut characteriser = Characteriser::new(memory);
    let (mut batch, mut rows) = (Batch::new(), 0);
    while source.next_batch(&mut batch)? {
        characteriser.add(&batch)?;
        rows += batch.len() as u64;
        if !tick(rows) {
            break;
        }
    }
    Ok(characteriser.finish(source))
}
