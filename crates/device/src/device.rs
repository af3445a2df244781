//! The device that surfaces serve: bytes in, bytes out, errors with an errno.

mod erase;

use crate::arrayed::Arrayed;
use crate::capture::Recorder;
use crate::clock::{Call, ModelClock};
use crate::config::Config;
use crate::error::{DeviceError, Result};
use crate::faults::PHYSICAL_OF_ZONES;
use crate::layered::Layered;
use crate::machine::Machine;
use crate::medium::Medium;
use crate::open::{self, Served};
use crate::raw::Raw;
use crate::stats::{Counters, Events, Responses};
use serde_json::{Value, json};
use smrlab_array::ArrayState;
use smrlab_trace::{read_known, replace_file};
use smrlab_units::{
    BLOCK_BYTES, Blocks, Lba, SimTime, Zone, ZoneAction, ZoneCondition, ZoneLimits, ZoneStatistics, counted,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Largest transfer in bytes (nbdkit's own limit).
pub const MOST: u32 = 64 << 20;

/// A served device. All methods may be called from many threads at once; positions and lengths are in bytes.
pub struct Device {
    config: Config,
    engine: Served,
    clock: ModelClock,
    /// What clients did.
    pub counters: Counters,
    /// What happened.
    pub events: Arc<Events>,
    responses: Responses,
    blocks: u64,
    /// See [`erase`](Self::erase).
    erased: AtomicBool,
}

impl Device {
    /// Opens the store of `config`, or makes it when there is none.
    ///
    /// # Errors
    /// When the configuration, the drive, the layer or the store is not as it should be; nothing was changed then.
    pub fn open(config: Config) -> Result<Arc<Self>> {
        Self::open_on(config, Machine::default())
    }

    /// As [`open`](Self::open), on a machine of the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn open_on(config: Config, host: Machine) -> Result<Arc<Self>> {
        let events = Arc::new(config.events.as_deref().map_or_else(Events::default, Events::kept_in));
        let engine = open::served(&config, host, &events)?;
        let record =
            |path: &std::path::PathBuf| Recorder::create(path, &format!("smrlab device {}", config.name));
        let clock =
            ModelClock::new(config.timing, config.speed, config.record.as_ref().map(record).transpose()?);
        // A drive with zones has whole ones: it is as large as was asked for, or a little larger.
        let asked = config.host_size.filter(|_| zoned(&engine).is_none());
        let all = asked.map_or(engine.blocks(), |bytes| engine.blocks().min(bytes.div_ceil(BLOCK_BYTES)));
        let unit = u64::from(config.block) / BLOCK_BYTES;
        let blocks = all / unit * unit;
        events.push("start", None, "the device is served");
        Ok(Arc::new(Self {
            responses: Responses::new(SimTime(config.stall_ns)),
            config,
            clock,
            engine,
            blocks,
            erased: AtomicBool::new(false),
            counters: Counters::default(),
            events,
        }))
    }

    /// How it was made.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes that the host sees.
    pub fn size(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// Smallest transfer in bytes.
    pub fn block_size(&self) -> u32 {
        self.config.block
    }

    /// Whether discarding frees space.
    pub fn can_trim(&self) -> bool {
        self.engine.discards()
    }

    /// Whether one shingled drive hides its tracks from the host.
    pub fn drive_managed(&self) -> bool {
        let name = self.config.layer.split(',').next().unwrap_or_default();
        let conventional = smrlab_stl::registry::find(name).is_ok_and(|entry| entry.conventional);
        matches!(self.engine, Served::Layered(_)) && !conventional
    }

    /// Revolutions a minute of the drive below a layer; `None`: no drive is below, or several are.
    pub fn rpm(&self) -> Option<u32> {
        match &self.engine {
            Served::Layered(layered) => Some(layered.rpm()),
            Served::Raw(_) | Served::Array(_) => None,
        }
    }

    /// The medium under it all, or that of a disk of an array; the first one's where none is named.
    ///
    /// # Errors
    /// When there is no such disk.
    pub fn medium(&self, disk: Option<u64>) -> Result<Arc<Medium>> {
        let disk = disk.unwrap_or(0);
        self.engine.medium(disk).ok_or_else(|| DeviceError::input(format!("there is no disk {disk}")))
    }

    /// The array that is served.
    ///
    /// # Errors
    /// When it is one drive.
    pub fn array(&self) -> Result<(&Arrayed, &ModelClock)> {
        match &self.engine {
            Served::Array(array) => Ok((array, &self.clock)),
            _ => Err(DeviceError::input("only an array (device create --array) has that command")),
        }
    }

    /// Has a command that comes now served, and answers it when the model's time is that of its acknowledgement. `block`: the
    /// first that it concerns.
    #[inline]
    fn command(&self, block: u64, act: impl FnOnce(Call<'_>) -> Result<SimTime>) -> Result<()> {
        self.noted(self.usable(), block)?;
        self.carry_out(block, act)
    }

    /// The same, whatever happens to the device.
    #[inline]
    fn carry_out(&self, block: u64, act: impl FnOnce(Call<'_>) -> Result<SimTime>) -> Result<()> {
        let call = self.clock.call();
        let ack = self.noted(act(call), block)?;
        self.clock.wait(ack);
        self.responses.note(call.came, self.clock.now());
        Ok(())
    }

    #[inline]
    fn blocks_of(&self, offset: u64, len: u64) -> Result<(u64, u64)> {
        let unit = u64::from(self.config.block) - 1;
        if (offset | len) & unit != 0 {
            let text =
                format!("{} at {offset}: not aligned to {} bytes", counted(len, "byte"), self.config.block);
            return Err(DeviceError::input(text));
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.size() => Ok((offset / BLOCK_BYTES, len / BLOCK_BYTES)),
            _ => Err(DeviceError::input(format!(
                "{len} bytes at {offset} lie beyond the end ({} bytes)",
                self.size()
            ))),
        }
    }

    fn noted<T>(&self, done: Result<T>, block: u64) -> Result<T> {
        if let Err(e) = &done {
            Counters::add(&self.counters.errors, 1);
            if let Some(block) = e.destroyed_block() {
                self.destroyed(block);
            }
            self.events.push("error", Some(block), e.to_string());
        }
        done
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `EINVAL` out of range or misaligned; `EIO` for destroyed blocks where errors were asked for; the store's own.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (start, blocks) = self.blocks_of(offset, buf.len() as u64)?;
        if blocks == 0 {
            return Ok(());
        }
        Counters::add(&self.counters.reads, 1);
        Counters::add(&self.counters.bytes_read, buf.len() as u64);
        self.command(start, |call| {
            let (ack, destroyed) = self.engine.read(call, start, buf)?;
            destroyed.into_iter().for_each(|block| self.destroyed(block));
            Ok(ack)
        })
    }

    /// Reads `len` bytes from `offset` for who takes them in pieces, in any order, with where in them each begins: uncopied where they are in
    /// memory. What comes later overrides what came before. Others may have to wait while `take` is at work.
    ///
    /// # Errors
    /// As [`read`](Self::read); some pieces may have been taken.
    pub fn lend(&self, offset: u64, len: u64, take: &dyn Fn(usize, &[u8])) -> Result<()> {
        let (start, blocks) = self.blocks_of(offset, len)?;
        if blocks == 0 {
            return Ok(());
        }
        Counters::add(&self.counters.reads, 1);
        Counters::add(&self.counters.bytes_read, len);
        self.command(start, |call| {
            let (ack, destroyed) = self.engine.lend(call, start, blocks, take)?;
            destroyed.into_iter().for_each(|block| self.destroyed(block));
            Ok(ack)
        })
    }

    #[cold]
    fn destroyed(&self, block: u64) {
        Counters::add(&self.counters.destroyed_reads, 1);
        if self.counters.destroyed_reads.load(Relaxed) < 100 {
            self.events.push("destroyed-read", Some(block), "a read found destroyed blocks");
        }
    }

    /// Writes `buf` at `offset`; with `fua` it is durable on return, and takes the time of a write that no cache answers.
    ///
    /// # Errors
    /// `EINVAL` out of range or misaligned; `EPERM` for a guard track; the store's own, such as `ENOSPC`.
    pub fn write(&self, offset: u64, buf: &[u8], fua: bool) -> Result<()> {
        let (start, blocks) = self.blocks_of(offset, buf.len() as u64)?;
        if blocks == 0 {
            return Ok(());
        }
        Counters::add(&self.counters.writes, 1);
        Counters::add(&self.counters.bytes_written, buf.len() as u64);
        Counters::add(&self.counters.fua, u64::from(fua));
        self.command(start, |call| self.engine.write(call, start, buf, fua))
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn flush(&self) -> Result<()> {
        Counters::add(&self.counters.flushes, 1);
        self.command(0, |call| self.engine.flush(call))
    }

    /// Frees blocks: they read as zeroes until they are written again, where the layer can do that; with `fua` that is
    /// durable on return.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn trim(&self, offset: u64, len: u64, fua: bool) -> Result<()> {
        let (start, blocks) = self.blocks_of(offset, len)?;
        Counters::add(&self.counters.trims, 1);
        Counters::add(&self.counters.fua, u64::from(fua));
        if !self.can_trim() || blocks == 0 {
            return Ok(());
        }
        self.command(start, |call| self.engine.zero(call, start, blocks, fua))
    }

    /// Writes zeroes; `fua` as in [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn zero(&self, offset: u64, len: u64, fua: bool) -> Result<()> {
        let (start, blocks) = self.blocks_of(offset, len)?;
        if blocks == 0 {
            return Ok(());
        }
        Counters::add(&self.counters.zeroes, 1);
        Counters::add(&self.counters.fua, u64::from(fua));
        self.command(start, |call| self.engine.zero(call, start, blocks, fua))
    }

    /// Which parts of `len` bytes from `offset` may hold data (the rest reads as zeroes): calls `out` with ascending
    /// (offset, length, data) that start at `offset` and may end early.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn extents(&self, offset: u64, len: u64, out: &mut dyn FnMut(u64, u64, bool)) -> Result<()> {
        let (start, blocks) = self.blocks_of(offset, len)?;
        if blocks == 0 {
            return Ok(());
        }
        self.noted(self.usable(), start)?;
        let mut each = |a: u64, b: u64, data| out(a * BLOCK_BYTES, (b - a) * BLOCK_BYTES, data);
        self.engine.extents(start, blocks, &mut each);
        Ok(())
    }

    fn zoned(&self) -> Result<&Layered> {
        let none = || {
            DeviceError::input(match &self.engine {
                Served::Array(_) => "an array has no zones: those of its drives are its own to write",
                _ => {
                    "only a host-managed or host-aware drive (device create --layer zoned, or host-aware) has zones"
                }
            })
        };
        zoned(&self.engine).ok_or_else(none)
    }

    /// The limits of the zones that the host keeps in order, where there are such.
    pub fn zone_limits(&self) -> Option<ZoneLimits> {
        zoned(&self.engine).and_then(Layered::zone_limits)
    }

    /// What is counted of these zones since the device was started, where there are such.
    pub fn zone_statistics(&self) -> Option<ZoneStatistics> {
        zoned(&self.engine).and_then(Layered::zone_statistics)
    }

    /// Whether a read of these blocks would bring data, as far as zones decide it.
    ///
    /// # Errors
    /// The drive's refusal.
    pub fn readable(&self, lba: Lba, blocks: Blocks) -> Result<()> {
        zoned(&self.engine).map_or(Ok(()), |zoned| zoned.readable(lba, blocks))
    }

    /// Bytes of a physical block, which a power cut leaves as it was or writes whole.
    pub fn physical_block(&self) -> u32 {
        if self.zone_limits().is_some() { PHYSICAL_OF_ZONES } else { self.block_size() }
    }

    /// The zones from the one with `from` on, in order, until `out` answers `false`.
    ///
    /// # Errors
    /// When there are no zones.
    pub fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) -> Result<()> {
        self.zoned().map(|zoned| zoned.zones(from, out))
    }

    /// Does something with the zone that begins at `zone`; `None`: with all to which the action applies.
    ///
    /// # Errors
    /// The drive's refusal; when there are no zones.
    pub fn zone(&self, action: ZoneAction, zone: Option<Lba>) -> Result<()> {
        let mut zones = None;
        if let Some(start) = zone {
            self.zones(start, &mut |found| {
                zones = Some(found.start..found.end());
                false
            })?;
        }
        self.zones_act(action, zones)
    }

    /// Does something with each of the zones of which `zones` has a block; `None`: with all to which the action applies.
    ///
    /// # Errors
    /// As [`zone`](Self::zone).
    pub fn zones_act(&self, action: ZoneAction, zones: Option<Range<Lba>>) -> Result<()> {
        let first = zones.as_ref().map_or(0, |z| z.start.0);
        self.command(first, |call| self.zoned()?.zone(call, action, zones))
    }

    /// Makes the zone with this block read-only or offline, as a failing head does.
    ///
    /// # Errors
    /// When it is none that has a write pointer.
    pub fn fail_zone(&self, zone: Lba, condition: ZoneCondition) -> Result<()> {
        self.zoned()?.fail_zone(zone, condition)?;
        self.events.push("inject", Some(zone.0), format!("a zone is {} now", condition.name()));
        Ok(())
    }

    /// Called every few milliseconds by the server: work that no request waits for.
    pub fn housekeeping(&self) {
        let _ = self.noted(self.engine.idle(&self.clock), 0);
    }

    /// Makes everything durable and leaves a checkpoint, so that the next start is immediate.
    ///
    /// # Errors
    /// What the operating system answers.
    pub fn close(&self) -> Result<()> {
        let _ = self.noted(self.clock.finish(), 0);
        self.engine.close()
    }

    /// What it is, for people and programs.
    pub fn info(&self) -> Value {
        json!({
            "name": self.config.name, "size": self.size(), "block": self.config.block,
            "pid": std::process::id(), "config": self.config, "can_trim": self.can_trim(),
            "engine": self.engine.info(),
        })
    }

    /// What clients did since the last reset, and the model's time since the device was started.
    pub fn counted(&self) -> (&Counters, SimTime) {
        (&self.counters, self.clock.now())
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Value {
        let mut stats = self.engine.stats(self.config.map_budget);
        stats["host"] = self.counters.json().into();
        (stats["response_ms"], stats["stalls"]) = self.responses.json(self.clock.now());
        if self.clock.modelled() {
            stats["lateness"] = self.clock.lateness();
        }
        stats
    }

    /// Begins counting anew.
    pub fn reset_stats(&self) {
        self.counters.reset();
        self.clock.reset();
        self.responses.reset(self.clock.now());
        self.engine.reset();
    }

    /// The raw disk's own commands.
    ///
    /// # Errors
    /// When a layer is served.
    pub fn raw(&self) -> Result<&Raw> {
        match &self.engine {
            Served::Raw(raw) => Ok(raw),
            _ => Err(DeviceError::input("only a raw device (--layer raw) has that command")),
        }
    }

    /// Writes the state of the drive or array, without its bytes, into a file that a run or a new device can begin from;
    /// answers whose state it is.
    ///
    /// # Errors
    /// A raw device, an array with a disk that is not whole, or a file that cannot be written.
    pub fn write_state(&self, path: &std::path::Path) -> Result<Value> {
        let (file, about) = self.engine.state()?;
        let fail = |e: std::io::Error| {
            let text = format!("{}: cannot be written: {e}; choose another --out", path.display());
            DeviceError::new(e.raw_os_error().unwrap_or(libc::EIO), text)
        };
        let fits = || read_known(path, |_| false).is_ok_and(|old| old.is_empty() || ArrayState::is_any(&old));
        if path.exists() && !(path.is_file() && fits()) {
            let text = format!("{}: is there already, and is no state: name another file", path.display());
            return Err(DeviceError::input(text));
        }
        file.and_then(|file| replace_file(path, file)).map_err(fail)?;
        Ok(about)
    }
}

/// The layer, where it is one with zones that the host knows.
fn zoned(engine: &Served) -> Option<&Layered> {
    match engine {
        Served::Layered(layered) => Some(&**layered).filter(|layered| layered.zone_limits().is_some()),
        Served::Raw(_) | Served::Array(_) => None,
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
