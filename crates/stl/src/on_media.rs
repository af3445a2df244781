//! Metadata on the medium: a decorator that makes any layer's records cost what they would cost.
//!
//! Tracks of the drive's random-access zone hold two logs in turn. The records of a plan are appended to the present
//! one, 16 to a block, by a write of their own as soon as the operations on which they hang are done, so they are durable
//! only then; nothing is acknowledged before. When a log is full the layer's checkpoint begins the other one. Records in
//! memory are handed to [`recover`](TranslationLayer::recover) as ever: which blocks held them is not modelled, and a
//! checkpoint that is longer than a log starts it over. `locate` answers where the first operation is that is not one of
//! these writes: a layer may have a record made durable before anything else.

use crate::{
    AnyRecord, Cause, Cleaning, Counted, Endpoint, Facts, HostRequest, OpId, Outcome, Part, Plan, Records,
    Refusal, Sink, Step, StepEnd, TranslationLayer,
};
use smrlab_disk::{Geometry, RandomAccess};
use smrlab_units::{Blocks, Dir, Lba, Pba, SimTime, Zone, ZoneCondition, forward};
use std::ops::Range;

/// Records in a block of 512 bytes.
const IN_BLOCK: u64 = 16;

/// Where the logs are: the usable tracks of the random-access zone.
#[derive(Debug)]
struct Area {
    tracks: Vec<(Pba, Blocks)>,
    /// Index of the track and offset in it where the next record goes.
    track: usize,
    offset: Blocks,
}

impl Area {
    /// Appends `blocks`; `true`: a log became full.
    fn append(&mut self, mut blocks: Blocks, plan: &mut Plan) -> bool {
        let mut full = false;
        while blocks.0 > 0 {
            let (pba, room) = self.tracks[self.track];
            let n = blocks.min(room - self.offset);
            plan.write(Cause::Metadata, pba + self.offset, n, Endpoint::Records);
            blocks -= n;
            self.offset += n;
            if self.offset == room {
                full |= self.next_track();
            }
        }
        full
    }

    fn next_track(&mut self) -> bool {
        self.offset = Blocks::ZERO;
        self.track = (self.track + 1) % self.tracks.len();
        self.track == 0 || self.track == self.tracks.len() / 2
    }
}

/// See the [module](self).
pub struct OnMedia {
    inner: Box<dyn TranslationLayer>,
    area: Area,
    /// The inner layer's plan; made when the first plan says whether data are wanted.
    plan: Option<Plan>,
    /// Of each inner operation: its number in the outer plan.
    ids: Vec<OpId>,
    checkpoints: u64,
    /// Blocks of the last checkpoint and of the records behind it: what a recovery would read now.
    to_read: Blocks,
}

impl OnMedia {
    /// Keeps the metadata of `inner` in the random-access zone; `None` where there is none or has fewer than two tracks.
    pub fn new(
        inner: Box<dyn TranslationLayer>,
        geometry: &Geometry,
        zone: Option<RandomAccess>,
    ) -> Option<Self> {
        let zone = zone?;
        let tracks: Vec<_> = (0..zone.usable)
            .map(|i| (geometry.track_start(zone.track(i)), geometry.track_blocks(zone.track(i))))
            .filter(|t| t.1.0 > 0)
            .collect();
        let area = Area { tracks, track: 0, offset: Blocks::ZERO };
        (area.tracks.len() >= 2).then_some(Self {
            inner,
            area,
            plan: None,
            ids: Vec::new(),
            checkpoints: 0,
            to_read: Blocks::ZERO,
        })
    }

    /// Lets the inner layer plan, and adds the writes of its records.
    fn planned(&mut self, plan: &mut Plan, act: impl FnOnce(&mut dyn TranslationLayer, &mut Plan)) {
        let mut inner = self.plan.take().unwrap_or_else(|| Plan::new(plan.wants_data(), true));
        inner.clear();
        act(&mut *self.inner, &mut inner);
        let full = self.splice(&inner, plan);
        if full {
            if inner.ack_after() == inner.ops().len() {
                plan.acknowledge();
            }
            self.checkpoint_to(plan);
        }
        self.plan = Some(inner);
    }

    /// Copies the inner plan, each group of records followed by its write. `true`: a log became full.
    fn splice(&mut self, inner: &Plan, plan: &mut Plan) -> bool {
        let mut full = false;
        let mut group = Records::default();
        let pauses = plan.pauses().len();
        self.ids.clear();
        for step in inner.walk() {
            if let Step::Record(record) = step {
                group.take(record);
                continue;
            }
            if !group.is_empty() {
                full |= self.append_records(&mut group, plan);
            }
            match step {
                Step::Op(op, _) => {
                    self.ids.push(OpId(plan.ops().len() as u32));
                    let ids = &self.ids;
                    plan.push_from(inner, op, |op| ids[op.0 as usize]);
                }
                // At the end of the plan the outer one says so of itself.
                Step::Acknowledge if inner.ack_after() < inner.ops().len() => plan.acknowledge(),
                Step::Fence => plan.fence(),
                Step::Pause(pause) => plan.pause(pause.cause, pause.time),
                Step::Acknowledge | Step::Record(_) => {}
            }
        }
        if !group.is_empty() {
            full |= self.append_records(&mut group, plan);
        }
        match inner.outcome() {
            Outcome::Done => {}
            Outcome::Appended(lba) => plan.appended(lba),
            Outcome::Refused { why, lba } => plan.refuse(why, lba),
        }
        let ids = &self.ids;
        let outer = |op: u32| ids.get(op as usize).map_or(plan.ops().len() as u32, |id| id.0);
        // A pause stands before the records that are written behind it.
        let begin = |op: u32| {
            let pause = inner.pauses().iter().position(|(before, _)| *before == op);
            pause.map_or(outer(op), |i| plan.pauses()[pauses + i].0)
        };
        let part =
            |p: &Part| Part { first: begin(p.first), end: outer(p.end), pauses: pauses as u32 + p.pauses };
        let of = |c: &Cleaning| Cleaning { first: outer(c.first), end: outer(c.end), ..*c };
        let ended: Vec<_> =
            inner.cleanings().iter().map(of).zip(inner.cleaning_parts().iter().map(part)).collect();
        let unfinished = inner.unfinished().map(|(kind, step)| (kind, part(&step)));
        ended.into_iter().for_each(|(cleaning, part)| plan.put_cleaning(cleaning, part));
        unfinished.into_iter().for_each(|(kind, step)| plan.put_unfinished(kind, step));
        inner.zeroes().iter().for_each(|&(at, blocks)| plan.zero_to_host(at, blocks));
        plan.set_extents(inner.extents());
        inner.zones_reset().iter().for_each(|zone| plan.reset_zone(zone.clone()));
        full
    }

    /// A write of these records; `true`: a log became full.
    fn append_records(&mut self, group: &mut Records, plan: &mut Plan) -> bool {
        let blocks = Blocks((group.len() as u64).div_ceil(IN_BLOCK));
        self.to_read += blocks;
        let full = self.area.append(blocks, plan);
        plan.take_records(group);
        group.clear();
        full
    }

    fn checkpoint_to(&mut self, plan: &mut Plan) {
        let mut records = 0;
        self.inner.checkpoint(&mut |_: AnyRecord<'_>| records += 1);
        self.checkpoints += 1;
        // What filled the other log may have run on into this one, which begins anew.
        let half = self.area.tracks.len() / 2;
        self.area.track = if self.area.track < half { 0 } else { half };
        self.area.offset = Blocks::ZERO;
        self.to_read = Blocks(u64::max(records, 1).div_ceil(IN_BLOCK));
        self.area.append(self.to_read, plan);
        // Before records go over what the log held that this checkpoint replaces.
        plan.fence();
    }
}

impl TranslationLayer for OnMedia {
    forward! { inner:
        fn host_blocks(&self) -> Blocks;
        fn locate(&self, request: &HostRequest) -> Option<(Pba, Dir)>;
        fn admit(&mut self, request: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)>;
        fn power_lost(&mut self);
        fn background_after(&self) -> Option<SimTime>;
        fn background_end(&mut self, end: StepEnd);
        fn durable(&mut self);
        fn checkpoint(&self, out: &mut dyn Sink);
        fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>));
        fn heeds_head(&self) -> bool;
        fn head(&mut self, next: Pba);
        fn prefetch(&self, request: &HostRequest);
        fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool);
        fn readable(&self, lba: Lba, blocks: Blocks) -> Result<(), (Refusal, Lba)>;
        fn facts(&self) -> Facts<'_>;
        fn location_reach(&self) -> Option<Blocks>;
        fn map_bytes(&self) -> u64;
    }

    fn submit(&mut self, now: SimTime, request: &HostRequest, plan: &mut Plan) {
        self.planned(plan, |inner, plan| inner.submit(now, request, plan));
    }

    fn background(&mut self, now: SimTime, plan: &mut Plan) {
        self.planned(plan, |inner, plan| inner.background(now, plan));
        // Given up before its records are written, a step would have changed what nobody knows of.
        if let Some(last) = self.ids.last() {
            plan.commit_with(*last);
        }
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        self.planned(plan, |inner, plan| inner.recover(records, plan));
        self.checkpoint_to(plan);
    }

    fn fail_zone(&mut self, zone: Lba, condition: ZoneCondition, plan: &mut Plan) -> bool {
        let mut failed = false;
        self.planned(plan, |inner, plan| failed = inner.fail_zone(zone, condition, plan));
        failed
    }

    fn counters(&self, out: &mut Counted) {
        self.inner.counters(out);
        out.count("metadata_checkpoints", self.checkpoints);
        out.level("blocks_to_recover_from", self.to_read.0);
    }
}
