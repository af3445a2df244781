//! The bytes of a drive's plans: moved and recorded in the order of the plan.

use crate::error::{DeviceError, Result};
use crate::medium::Medium;
use serde_json::{Map, Value, json};
use smrlab_drive::Drive;
use smrlab_stl::{Cause, Counted, Dir, Executor, HostBuffer, OpId, Plan, Records, Step, WritePart, counted};
use smrlab_units::{Blocks, Pba};
use std::sync::Arc;

/// Media operations by cause and direction: operations and blocks.
#[derive(Clone, Copy, Debug, Default)]
struct MediaCounts {
    by_cause: [[(u64, u64); 2]; Cause::ALL.len()],
    /// Fences at which there was something to be made durable, where the store can.
    fences: u64,
}

impl MediaCounts {
    fn json(&self) -> Value {
        let mut map = Map::new();
        for (cause, [reads, writes]) in Cause::ALL.iter().zip(self.by_cause) {
            if reads.0 + writes.0 > 0 {
                let counts = json!({"reads": reads.0, "blocks_read": reads.1,
                                    "writes": writes.0, "blocks_written": writes.1});
                map.insert(cause.name().to_owned(), counts);
            }
        }
        Value::Object(map)
    }
}

/// What a drive's buffer counted, where it has one.
fn of_buffer(drive: &Drive) -> Option<Counted> {
    let buffer = drive.buffer_counters()?;
    let mut all = Counted::default();
    all.counts(buffer.named());
    Some(all)
}

fn object(counted: &Counted) -> Value {
    counted.iter().map(|(name, n)| (name.to_owned(), n.into())).collect::<Map<_, _>>().into()
}

/// Moves the bytes of plans.
pub(crate) struct Bytes {
    pub(crate) medium: Arc<Medium>,
    executor: Executor,
    media: MediaCounts,
    /// What the layer and the buffer had counted when counting began.
    before: (Counted, Counted),
    /// Plans so far that changed anything.
    pub(crate) changes: u64,
}

/// A medium as the executor wants it.
struct Exclusive<'a>(&'a Medium);

impl smrlab_stl::Medium for Exclusive<'_> {
    type Error = DeviceError;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<()> {
        self.0.read(pba.0, out).map(|_| ())
    }

    fn lend(&mut self, pba: Pba, blocks: Blocks, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.0.lend(pba.0, blocks.0, take).map(drop)
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<()> {
        self.0.write(pba.0, data)
    }

    fn write_parts(&mut self, pba: Pba, parts: &[WritePart<'_>]) -> Result<()> {
        self.0.write_parts(pba.0, parts)
    }

    fn read_later(&mut self, pba: Pba, blocks: Blocks) -> Result<bool> {
        self.0.read_later(pba.0, blocks.0)
    }
}

impl Bytes {
    /// The bytes of a drive on `medium`, whose layer is brought to where `records` say it was.
    ///
    /// # Errors
    /// When what recovery has to write cannot be written.
    pub(crate) fn recovered(drive: &mut Drive, medium: Medium, records: &Records) -> Result<Self> {
        let medium = Arc::new(medium);
        let (executor, media, before) = Default::default();
        let mut bytes = Self { medium, executor, media, before, changes: 0 };
        if !records.is_empty() {
            // A killed server left records that are not durable yet; a layer takes what it is given for durable.
            bytes.medium.sync()?;
            let mut plan = Plan::new(true, true);
            drive.layer_mut().recover(records, &mut plan);
            bytes.carry_out(&plan, (plan.ops().len(), true), Cause::Host, HostBuffer::None)?;
        }
        Ok(bytes)
    }

    /// Carries out the first `ops` operations of a plan that is there for `why`; its records only where it is `whole`.
    pub(crate) fn carry_out(
        &mut self,
        plan: &Plan,
        (ops, whole): (usize, bool),
        why: Cause,
        mut host: HostBuffer<'_>,
    ) -> Result<()> {
        self.executor.begin();
        let changes = !plan.records().is_empty() || plan.ops().iter().any(|op| op.dir == Dir::Write);
        self.changes += u64::from(changes);
        if let Some(all) = plan.plain() {
            // As in the drive: without the cost of looking for what else there might be.
            for op in (0..all.len().min(ops) as u32).map(OpId) {
                self.operation(plan, op, why, &mut host)?;
            }
            Executor::finish(plan, &mut host);
            return Ok(());
        }
        for step in plan.walk() {
            match step {
                // A step that was given up changes nothing: its records are void.
                Step::Record(record) if whole => self.medium.keep_one(record)?,
                Step::Fence => self.media.fences += u64::from(self.medium.sync()?),
                Step::Op(id, _) => {
                    if id.0 as usize == ops {
                        break;
                    }
                    self.operation(plan, id, why, &mut host)?;
                }
                Step::Record(_) | Step::Acknowledge | Step::Pause(_) => {}
            }
        }
        Executor::finish(plan, &mut host);
        Ok(())
    }

    /// The medium was synced, when `before` plans had changed anything. The layer hears of it only if it planned nothing meanwhile, which
    /// would not be covered.
    pub(crate) fn synced(&self, before: u64, drive: &mut Drive) {
        if self.changes == before {
            drive.layer_mut().durable();
        }
    }

    /// Carries out an operation of a plan that is there for `why`.
    #[inline]
    fn operation(&mut self, plan: &Plan, id: OpId, why: Cause, host: &mut HostBuffer<'_>) -> Result<()> {
        self.executor.step(plan, id, host, &mut Exclusive(&self.medium))?;
        let op = &plan.ops()[id.0 as usize];
        let cause = if op.cause == Cause::Host { why } else { op.cause };
        let counts = &mut self.media.by_cause[cause as usize][usize::from(op.dir == Dir::Write)];
        counts.0 += 1;
        counts.1 += op.blocks.0;
        Ok(())
    }

    /// What was counted: media operations, and where there is a drive what its layer and its buffer did, and how full its
    /// cache is.
    pub(crate) fn stats(&self, drive: Option<&Drive>) -> Map<String, Value> {
        let mut stats = Map::new();
        stats.insert("by_cause".into(), self.media.json());
        stats.insert("fences".into(), self.media.fences.into());
        let Some(drive) = drive else { return stats };
        let layer = drive.layer();
        stats.insert("layer".into(), object(&counted(layer).since(&self.before.0)));
        stats.insert("map_bytes".into(), layer.map_bytes().into());
        if let Some((cached, cache)) = layer.facts().fill() {
            stats.insert("cache".into(), json!({"blocks": cache.0, "cached_blocks": cached.0}));
        }
        if let Some((used, all)) = layer.facts().last_tracks {
            stats.insert("third_track_fill".into(), json!(used.0 as f64 / all.0 as f64));
        }
        if let Some(buffer) = of_buffer(drive) {
            stats.insert("buffer".into(), object(&buffer.since(&self.before.1)));
        }
        stats
    }

    /// Begins counting anew.
    pub(crate) fn count_anew(&mut self, drive: Option<&Drive>) {
        self.media = MediaCounts::default();
        let layer = drive.map(|drive| counted(drive.layer()));
        self.before = (layer.unwrap_or_default(), drive.and_then(of_buffer).unwrap_or_default());
    }
}
