//! A translation layer at work on a medium that shingles, with real bytes.
//!
//! Time and bytes are two executors of one plan: the drive says when, and hands the plan over; the bytes are moved and the
//! records kept here, all in the order of the plan. What a killed process leaves behind is therefore
//! exactly a cut between two media operations (or within one), which is what a layer's recovery is made for. What a host
//! that lost its power leaves behind is the state at the last fence or flush, and any part of what was written since: the
//! fences of a plan see to it that this does no harm.

use crate::error::{DeviceError, Result};
use crate::medium::{Begun, Medium};
use crate::pace::Pace;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use smrlab_disk::Mechanics;
use smrlab_drive::{Drive, DriveSetup, Executed};
use smrlab_stl::{
    Built, Capabilities, Dir, Executor, HostBuffer, HostRequest, Part, Plan, Record, Refusal, Step,
};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, Pba, SimTime};

/// Zeroes that are written at a time, in blocks.
const ZEROES: u64 = 2048;
/// Steps of background work before there is another look at whether a checkpoint is due.
const STEPS: usize = 64;

/// See the [module](self). Positions and lengths are in blocks.
pub struct Layered {
    state: Mutex<State>,
    /// The medium.
    pub medium: Medium,
    resolved: String,
    capabilities: Capabilities,
    /// LBA equals PBA: the medium knows what was written.
    identity: bool,
    /// Background work is done step by step between requests.
    by_step: bool,
    blocks: u64,
}

struct State {
    drive: Drive,
    bytes: Bytes,
    /// Why nothing more is done: layer and medium would no longer agree.
    broken: Option<DeviceError>,
}

/// Media operations by cause and direction: operations and blocks.
#[derive(Clone, Copy, Debug, Default)]
struct MediaCounts {
    by_cause: [[(u64, u64); 2]; smrlab_stl::Cause::ALL.len()],
    /// Fences at which there was something to be made durable, where the store can.
    fences: u64,
}

impl MediaCounts {
    fn json(&self) -> Value {
        let mut map = Map::new();
        for (cause, [reads, writes]) in smrlab_stl::Cause::ALL.iter().zip(self.by_cause) {
            if reads.0 + writes.0 > 0 {
                let counts = json!({"reads": reads.0, "blocks_read": reads.1,
                                    "writes": writes.0, "blocks_written": writes.1});
                map.insert(cause.name().to_owned(), counts);
            }
        }
        Value::Object(map)
    }
}

/// Moves the bytes of plans.
#[derive(Default)]
struct Bytes {
    executor: Executor,
    media: MediaCounts,
    /// Plans so far that changed anything.
    changes: u64,
}

/// A medium as the executor wants it.
struct Exclusive<'a>(&'a Medium);

impl smrlab_stl::Medium for Exclusive<'_> {
    type Error = DeviceError;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<()> {
        self.0.read(pba.0, out).map(|_| ())
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<()> {
        self.0.write(pba.0, data)
    }

    fn write_parts(&mut self, pba: Pba, parts: &[Part<'_>]) -> Result<()> {
        self.0.write_parts(pba.0, parts)
    }

    fn read_later(&mut self, pba: Pba, blocks: Blocks) -> Result<bool> {
        self.0.read_later(pba.0, blocks.0)
    }
}

impl Bytes {
    /// Carries out the first `ops` operations of a plan; its records only where it is `whole`.
    fn carry_out(
        &mut self,
        medium: &Medium,
        plan: &Plan,
        (ops, whole): (usize, bool),
        mut host: HostBuffer<'_>,
    ) -> Result<()> {
        self.executor.begin();
        let changes = !plan.records().is_empty() || plan.ops().iter().any(|op| op.dir == Dir::Write);
        self.changes += u64::from(changes);
        for step in plan.walk() {
            match step {
                // A step that was given up changes nothing: its records are void.
                Step::Record(record) if whole => medium.keep(record.tag, record.words)?,
                Step::Fence => self.media.fences += u64::from(medium.sync()?),
                Step::Op(id, op) => {
                    if id.0 as usize == ops {
                        break;
                    }
                    self.executor.step(plan, id, &mut host, &mut Exclusive(medium))?;
                    let counts =
                        &mut self.media.by_cause[op.cause as usize][usize::from(op.dir == Dir::Write)];
                    counts.0 += 1;
                    counts.1 += op.blocks.0;
                }
                Step::Record(_) | Step::Acknowledge | Step::Pause(_) => {}
            }
        }
        Executor::finish(plan, &mut host);
        Ok(())
    }

    /// Carries out a step of background work as far as it went.
    fn background(&mut self, medium: &Medium, step: &Executed<'_>) -> Result<()> {
        self.carry_out(medium, step.plan, (step.done, step.whole), HostBuffer::None)
    }
}

impl Layered {
    /// A freshly built layer over a medium, brought to where `records` say it was. `by_step`: background work is done
    /// step by step between requests, and not all that is due before the next one.
    ///
    /// # Errors
    /// When what recovery has to write cannot be written.
    pub fn new(
        built: Built,
        mechanics: Mechanics,
        medium: Medium,
        records: Vec<Record>,
        by_step: bool,
    ) -> Result<Self> {
        let setup = DriveSetup {
            wants_data: true,
            wants_records: true,
            stable_locations: built.capabilities.stable_location,
        };
        let blocks = built.layer.host_blocks().0;
        let identity = built.layer.facts().identity;
        let mut drive = Drive::new(built.layer, mechanics, setup);
        let mut bytes = Bytes::default();
        let mut plan = Plan::new(true, true);
        if !records.is_empty() {
            // A killed server left records that are not durable yet; a layer takes what it is given for durable.
            medium.sync()?;
            drive.layer_mut().recover(&mut records.into_iter(), &mut plan);
            bytes.carry_out(&medium, &plan, (plan.ops().len(), true), HostBuffer::None)?;
        }
        let state = Mutex::new(State { drive, bytes, broken: None });
        let (resolved, capabilities) = (built.resolved, built.capabilities);
        Ok(Self { state, medium, resolved, capabilities, identity, by_step, blocks })
    }

    /// Blocks that the host sees.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// What the layer promises.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Serves a request; answers with the model's time of its acknowledgement.
    fn submit(
        &self,
        pace: &Pace,
        op: HostOp,
        start: u64,
        blocks: u64,
        host: HostBuffer<'_>,
    ) -> Result<SimTime> {
        let request = HostRequest::new(op, Lba(start), Blocks(blocks));
        let state = &mut *self.state.lock();
        if let Some(e) = &state.broken {
            return Err(e.clone());
        }
        let now = pace.arrive(op, start, blocks)?;
        let State { drive, bytes, broken } = state;
        let done = (|| {
            if !self.by_step {
                while let Some(step) = drive.next_step(now, &mut ()) {
                    bytes.background(&self.medium, &step)?;
                }
            }
            if let Some(step) = drive.interrupt() {
                bytes.background(&self.medium, &step)?;
            }
            let executed = drive.dispatch(now, &request, &mut ());
            if let Some(why) = executed.plan.refusal() {
                return Ok(Err(refused(why)));
            }
            bytes.carry_out(&self.medium, executed.plan, (executed.done, true), host)?;
            Ok(Ok(executed.served.ack))
        })();
        done.unwrap_or_else(|e: DeviceError| {
            if op != HostOp::Read {
                *broken = Some(stopped(&e));
            }
            Err(e)
        })
    }

    /// Reads blocks.
    ///
    /// # Errors
    /// As [`Medium::read`].
    pub fn read(&self, pace: &Pace, start: u64, buf: &mut [u8]) -> Result<SimTime> {
        let blocks = buf.len() as u64 / BLOCK_BYTES;
        self.submit(pace, HostOp::Read, start, blocks, HostBuffer::Read(buf))
    }

    /// Writes blocks.
    ///
    /// # Errors
    /// As [`Medium::write`]; after that the device answers with errors until it is started again.
    pub fn write(&self, pace: &Pace, start: u64, buf: &[u8]) -> Result<SimTime> {
        let blocks = buf.len() as u64 / BLOCK_BYTES;
        self.submit(pace, HostOp::Write, start, blocks, HostBuffer::Write(buf))
    }

    /// Makes blocks read as zeroes: by a discard where the layer has it, else by writing.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn zero(&self, pace: &Pace, start: u64, blocks: u64) -> Result<SimTime> {
        if self.capabilities.discards {
            return self.submit(pace, HostOp::Discard, start, blocks, HostBuffer::None);
        }
        let zeroes = vec![0; (blocks.min(ZEROES) * BLOCK_BYTES) as usize];
        let (mut at, mut ack) = (start, SimTime::ZERO);
        while at < start + blocks {
            let n = ZEROES.min(start + blocks - at);
            ack = self.write(pace, at, &zeroes[..(n * BLOCK_BYTES) as usize])?;
            at += n;
        }
        Ok(ack)
    }

    /// Makes everything acknowledged durable.
    ///
    /// # Errors
    /// As [`Medium::sync`].
    pub fn flush(&self, pace: &Pace) -> Result<SimTime> {
        let ack = self.submit(pace, HostOp::Flush, 0, 0, HostBuffer::None)?;
        let before = self.state.lock().bytes.changes;
        self.medium.sync()?;
        let mut state = self.state.lock();
        // The layer hears of it only if it planned nothing meanwhile, which would not be covered.
        if state.bytes.changes == before {
            state.drive.layer_mut().durable();
        }
        Ok(ack)
    }

    /// Does the background work that is due. Step by step, requests that came meanwhile go first.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn idle(&self, pace: &Pace) -> Result<()> {
        let Some(mut state) = self.state.try_lock() else { return Ok(()) };
        for _ in 0..STEPS {
            let State { drive, bytes, broken } = &mut *state;
            if broken.is_some() {
                return Ok(());
            }
            let Some(step) = drive.next_step(pace.now(), &mut ()) else { return Ok(()) };
            if let Err(e) = bytes.background(&self.medium, &step) {
                *broken = Some(stopped(&e));
                return Err(e);
            }
            MutexGuard::bump(&mut state);
        }
        Ok(())
    }

    /// Which blocks hold data.
    pub fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        if self.identity {
            return self.medium.extents(start, start + blocks, out);
        }
        let mut ranges = Vec::new();
        let state = self.state.lock();
        state.drive.layer().allocated(Lba(start), Blocks(blocks), &mut |r| ranges.push(r));
        drop(state);
        let mut at = start;
        for r in ranges {
            if at < r.start {
                out(at, r.start, false);
            }
            out(r.start.max(at), r.end, true);
            at = r.end;
        }
        if at < start + blocks {
            out(at, start + blocks, false);
        }
    }

    /// Writes a checkpoint; see [`Medium::begin_checkpoint`].
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint(&self, anyway: bool) -> Result<()> {
        if !self.medium.wants_checkpoint(anyway)? {
            return Ok(());
        }
        let state = self.state.lock();
        if state.broken.is_some() {
            return Ok(());
        }
        let records = |out: &mut dyn FnMut(u32, [u64; 3])| {
            state.drive.layer().checkpoint(&mut |r| out(r.tag, r.words));
        };
        let begun = self.medium.begin_checkpoint(anyway, &records)?;
        drop(state);
        begun.map_or(Ok(()), Begun::finish)
    }

    /// What it is.
    pub fn info(&self) -> Value {
        let c = &self.capabilities;
        json!({"layer": self.resolved, "keeps_data": c.keeps_data, "survives_cut": c.survives_cut,
               "discards": c.discards})
    }

    /// Its counters.
    pub fn stats(&self) -> Value {
        let state = self.state.lock();
        let mut own = Map::new();
        state.drive.layer().counters(&mut |name, n| {
            own.insert(name.to_owned(), n.into());
        });
        json!({"by_cause": state.bytes.media.json(), "fences": state.bytes.media.fences, "layer": own,
               "map_bytes": state.drive.layer().map_bytes()})
    }

    /// Forgets the counters.
    pub fn reset(&self) {
        self.state.lock().bytes.media = MediaCounts::default();
    }
}

/// What a layer's refusal is to a host.
fn refused(why: Refusal) -> DeviceError {
    let errno = match why {
        Refusal::NotAtPointer | Refusal::OutOfRange => libc::EIO,
        Refusal::WriteProtected => libc::EPERM,
        Refusal::NoSpace => libc::ENOSPC,
        Refusal::Lost => libc::EIO,
        Refusal::Unsupported => libc::EOPNOTSUPP,
    };
    DeviceError::new(errno, format!("the drive refuses the request: {}", why.name()))
}

fn stopped(e: &DeviceError) -> DeviceError {
    DeviceError::new(
        libc::EIO,
        format!("the device stopped after an error of its store ({e}); start it again"),
    )
}
