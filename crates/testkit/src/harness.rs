//! Random requests through a layer on bytes, everything read back.

use crate::{Digest, PlainMedium, Rng};
use smrlab_disk::DriveModel;
use smrlab_stl::registry::{build_as, find};
use smrlab_stl::{
    BuildContext, Built, Cause, Dir, Executor, HostBuffer, HostRequest, LayerEntry, MediaOp, Metadata, OpId,
    Plan, Records, StepEnd, TranslationLayer,
};
use smrlab_units::spec::{SpecError, split_item};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, Pba, SimTime};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

pub(crate) const BYTES: usize = BLOCK_BYTES as usize;

/// What a random workload does.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Requests.
    pub requests: u64,
    /// Seed.
    pub seed: u64,
    /// Longest request in blocks; all of the host's space where it is larger.
    pub longest: u64,
}

/// A layer, its medium, and a plain model of what the host should see.
pub struct Harness {
    /// The layer as a user would write it.
    pub text: String,
    /// What it is built for.
    pub context: BuildContext,
    /// Its entry in the registry.
    pub entry: &'static LayerEntry,
    /// The layer.
    pub layer: Box<dyn TranslationLayer>,
    /// A second one that is never asked for data: its operations must be the same.
    twin: Box<dyn TranslationLayer>,
    /// The medium on which it works.
    pub medium: PlainMedium,
    /// What the host should read.
    pub model: Vec<u8>,
    /// Records that are durable.
    pub records: Records,
    pub(crate) plan: Plan,
    twin_plan: Plan,
    exec: Executor,
    now: SimTime,
    digest: Digest,
    keeps_data: bool,
}

impl Harness {
    /// Builds the layer on a drive.
    ///
    /// # Errors
    /// What the registry says.
    pub fn new(text: &str, drive: &Arc<DriveModel>, metadata: Metadata) -> Result<Self, SpecError> {
        Self::of(find(split_item(text).0)?, text, drive, metadata)
    }

    /// As [`new`](Self::new), of an entry that need not be in the registry.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(
        entry: &'static LayerEntry,
        text: &str,
        drive: &Arc<DriveModel>,
        metadata: Metadata,
    ) -> Result<Self, SpecError> {
        let context = BuildContext { metadata, ..BuildContext::new(Arc::clone(drive)) };
        let Built { layer, drive, capabilities, .. } = build_as(entry, text, &context)?;
        let twin = build_as(entry, text, &context)?.layer;
        let medium = PlainMedium::new(drive.geometry(), drive.interference());
        let model = vec![0; layer.host_blocks().bytes() as usize];
        Ok(Self {
            text: text.to_owned(),
            context,
            entry,
            layer,
            twin,
            medium,
            model,
            records: Records::default(),
            plan: Plan::new(true, true),
            twin_plan: Plan::new(false, false),
            exec: Executor::default(),
            now: SimTime::ZERO,
            digest: Digest::default(),
            keeps_data: capabilities.keeps_data,
        })
    }

    /// A digest of all operations so far.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Plans a request with both layers, checks what can be checked without bytes, and leaves the plan in `self.plan`.
    pub(crate) fn plan_request(&mut self, r: &HostRequest) {
        self.now += SimTime::from_ms(1);
        let expected = self.layer.locate(r);
        let waiting = self.would_begin(r);
        self.plan.clear();
        self.layer.submit(self.now, r, &mut self.plan);
        self.twin_plan.clear();
        self.twin.prefetch(r);
        self.twin.submit(self.now, r, &mut self.twin_plan);
        self.compare_plans(r);
        self.compare_places(r, &waiting);
        if self.entry.capabilities.locates {
            // Metadata on the medium may be written before what the layer itself begins with.
            let media = self.context.metadata == Metadata::Media;
            let begins = |op: &&MediaOp| !media || op.cause != Cause::Metadata;
            let first = self.plan.ops().iter().find(begins).map(|op| (op.pba, op.dir));
            assert!(
                expected.is_none() || expected == first,
                "{}: {r:?}: located {expected:?}, began at {first:?}",
                self.text
            );
        }
    }

    /// Requests near `r`, and where they would begin now; none where what waits is looked at anew behind every request.
    fn would_begin(&self, r: &HostRequest) -> Vec<(HostRequest, (Pba, Dir))> {
        if self.layer.location_reach().is_none() || !matches!(r.op, HostOp::Read | HostOp::Write) {
            return Vec::new();
        }
        let (from, end) = (r.lba.0, r.lba.0 + r.blocks.0);
        let near = [from.saturating_sub(40), from.saturating_sub(1), from, from + 1, end, end + 40];
        let last = self.layer.host_blocks().0 - 1;
        let some = near.into_iter().map(|lba| HostRequest::new(HostOp::Write, Lba(lba.min(last)), Blocks(1)));
        some.filter_map(|r| Some((r, self.layer.locate(&r)?))).collect()
    }

    /// What waits begins elsewhere only where the layer said that it may.
    fn compare_places(&self, r: &HostRequest, waiting: &[(HostRequest, (Pba, Dir))]) {
        let Some(reach) = self.layer.location_reach() else { return };
        let ops = self.plan.ops().iter();
        let lowest = ops.clone().map(|op| op.pba.0).min().unwrap_or(u64::MAX);
        let end = ops.map(|op| op.pba.0 + op.blocks.0).max().unwrap_or(0);
        let near = lowest.saturating_sub(reach.0)..end + reach.0;
        for (w, before) in waiting {
            let now = self.layer.locate(w);
            assert!(
                now == Some(*before) || near.contains(&before.0.0),
                "{}: {r:?} at {near:?}: {w:?} waits for {before:?}, and begins at {now:?}",
                self.text
            );
        }
    }

    fn compare_plans(&mut self, what: &dyn Debug) {
        let (a, b) = (&self.plan, &self.twin_plan);
        let text = &self.text;
        assert_eq!(a.ops(), b.ops(), "{text}: {what:?}: operations differ where data are not wanted");
        assert_eq!(a.ack_after(), b.ack_after(), "{text}: {what:?}: acknowledged elsewhere");
        assert_eq!(a.extents(), b.extents(), "{text}: {what:?}: other extents");
        assert_eq!(a.cleanings(), b.cleanings(), "{text}: {what:?}: other cleanings");
        for op in a.ops() {
            self.digest.note(&[op.dir as u64, op.cause as u64, op.pba.0, op.blocks.0]);
        }
        let end = self.context.drive.geometry().blocks().0;
        let inside = |op: &MediaOp| op.pba.0 + op.blocks.0 <= end && op.blocks.0 > 0;
        assert!(a.ops().iter().all(inside), "{text}: {what:?}: outside the medium: {:?}", a.ops());
    }

    /// Does a request; a read is compared with the model.
    ///
    /// # Panics
    /// When the layer breaks a promise: that is what it is for.
    pub fn request(&mut self, op: HostOp, lba: u64, blocks: u64, rng: &mut Rng) {
        let r = HostRequest::new(op, Lba(lba), Blocks(blocks));
        self.plan_request(&r);
        let range = lba as usize * BYTES..(lba + blocks) as usize * BYTES;
        match op {
            HostOp::Write => _ = self.write_planned(range, rng),
            HostOp::Read => {
                let mut out = vec![0x11; range.len()];
                self.carry_out(HostBuffer::Read(&mut out));
                if self.keeps_data {
                    self.compare(&out, lba, &r);
                }
            }
            HostOp::Discard => {
                self.carry_out(HostBuffer::None);
                if self.entry.capabilities.discards {
                    self.model[range].fill(0);
                }
            }
            _ => self.carry_out(HostBuffer::None),
        }
    }

    /// Writes new data, which it answers.
    pub fn write_random(&mut self, lba: u64, blocks: u64, rng: &mut Rng) -> Vec<u8> {
        let r = HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks));
        self.plan_request(&r);
        self.write_planned(lba as usize * BYTES..(lba + blocks) as usize * BYTES, rng)
    }

    fn write_planned(&mut self, range: Range<usize>, rng: &mut Rng) -> Vec<u8> {
        let data = new_data((range.len() / BYTES) as u64, rng);
        self.carry_out(HostBuffer::Write(&data));
        self.model[range].copy_from_slice(&data);
        data
    }

    fn compare(&self, out: &[u8], lba: u64, what: &dyn Debug) {
        let want = &self.model[lba as usize * BYTES..][..out.len()];
        if let Some(i) =
            (0..out.len() / BYTES).find(|i| out[i * BYTES..][..BYTES] != want[i * BYTES..][..BYTES])
        {
            panic!(
                "{}: {what:?}: LBA {} reads {:02x?}, not {:02x?}; plan {:?}",
                self.text,
                lba + i as u64,
                &out[i * BYTES..][..8],
                &want[i * BYTES..][..8],
                self.plan.ops()
            );
        }
    }

    fn carry_out(&mut self, host: HostBuffer<'_>) {
        let Ok(()) = self.exec.run(&self.plan, host, &mut self.medium);
        self.records.append(self.plan.records());
    }

    /// Does a step of background work, or gives it up after some operations.
    pub fn background(&mut self, rng: &mut Rng) {
        if self.plan_background() {
            self.finish_background(rng);
        }
    }

    /// Plans a step of background work with both layers; `false`: there is nothing to do.
    pub(crate) fn plan_background(&mut self) -> bool {
        let due = self.layer.background_after();
        assert_eq!(due, self.twin.background_after(), "{}: the twin's background work differs", self.text);
        if due.is_none() {
            return false;
        }
        self.plan.clear();
        self.layer.background(self.now, &mut self.plan);
        self.twin_plan.clear();
        self.twin.background(self.now, &mut self.twin_plan);
        self.compare_plans(&"background");
        true
    }

    /// Carries out what [`plan_background`](Self::plan_background) planned, all of it or a part.
    pub(crate) fn finish_background(&mut self, rng: &mut Rng) {
        let ops = self.plan.ops().len();
        let done = self.step_done(rng);
        self.exec.begin();
        for op in 0..done as u32 {
            let Ok(()) = self.exec.step(&self.plan, OpId(op), &mut HostBuffer::None, &mut self.medium);
        }
        if done == ops {
            self.records.append(self.plan.records());
        }
        self.end_background(done == ops);
    }

    /// How many operations of the planned step are done: one in three is given up, where it can be.
    pub(crate) fn step_done(&self, rng: &mut Rng) -> usize {
        let ops = self.plan.ops().len();
        let done = if rng.one_in(3) { rng.below(ops as u64 + 1) as usize } else { ops };
        if self.plan.is_committed(done) { ops } else { done }
    }

    /// Tells both layers how the step ended.
    pub(crate) fn end_background(&mut self, done: bool) {
        let end = if done { StepEnd::Done } else { StepEnd::GivenUp };
        self.layer.background_end(end);
        self.twin.background_end(end);
    }

    /// Tells both layers that everything so far is durable.
    pub(crate) fn tell_durable(&mut self) {
        self.layer.durable();
        self.twin.durable();
    }

    /// Replaces both layers by fresh ones that recover from `records`; what they plan is left in `self.plan`.
    pub(crate) fn plan_recovery(&mut self, records: &Records) {
        for (layer, plan) in [(&mut self.layer, &mut self.plan), (&mut self.twin, &mut self.twin_plan)] {
            *layer = build_as(self.entry, &self.text, &self.context).expect("built before").layer;
            plan.clear();
            layer.recover(records, plan);
        }
        self.compare_plans(&"recovery");
    }

    /// Replaces both layers by fresh ones that recover: from a checkpoint, or from all records so far.
    ///
    /// # Panics
    /// When recovery has something to do: nothing was cut.
    pub fn restart(&mut self, from_checkpoint: bool) {
        if from_checkpoint {
            self.records.clear();
            self.layer.checkpoint(&mut self.records);
        }
        for (layer, wants_data) in [(&mut self.layer, true), (&mut self.twin, false)] {
            *layer = build_as(self.entry, &self.text, &self.context).expect("built before").layer;
            let mut plan = Plan::new(wants_data, true);
            layer.recover(&self.records, &mut plan);
            assert!(plan.ops().is_empty(), "{}: recovery without a cut does {:?}", self.text, plan.ops());
        }
    }

    /// Random requests of all sizes; then everything is read.
    ///
    /// # Panics
    /// When the layer breaks a promise.
    pub fn exercise(&mut self, load: Workload) {
        let mut rng = crate::random(load.seed);
        let space = self.layer.host_blocks().0;
        for _ in 0..load.requests {
            let (op, lba, blocks) = random_request(&mut rng, space, load.longest.min(space));
            self.request(op, lba, blocks, &mut rng);
            if rng.one_in(8) {
                self.background(&mut rng);
            }
        }
        self.request(HostOp::Read, 0, space, &mut rng);
    }

    /// Every block that the host can see, read through `layer`.
    pub(crate) fn read_all(layer: &mut dyn TranslationLayer, medium: &mut PlainMedium) -> Vec<u8> {
        let blocks = layer.host_blocks();
        let mut out = vec![0x11; blocks.bytes() as usize];
        let mut plan = Plan::new(true, false);
        let r = HostRequest::new(HostOp::Read, Lba(0), blocks);
        layer.submit(SimTime::ZERO, &r, &mut plan);
        let of_host = |op: &&MediaOp| op.cause == Cause::Host;
        assert!(plan.ops().iter().filter(of_host).all(|op| op.dir == Dir::Read), "a read that writes");
        let Ok(()) = Executor::default().run(&plan, HostBuffer::Read(&mut out), medium);
        out
    }
}

/// Different bytes for every block, and within it.
pub(crate) fn new_data(blocks: u64, rng: &mut Rng) -> Vec<u8> {
    const WORDS: u64 = BLOCK_BYTES / 8;
    let mut data = vec![0; (blocks * BLOCK_BYTES) as usize];
    let mut first = 0;
    for (i, word) in (0..).zip(data.as_chunks_mut::<8>().0) {
        if i % WORDS == 0 {
            first = rng.bits();
        }
        *word = first.wrapping_add(i % WORDS).to_le_bytes();
    }
    data
}

/// Mostly short requests, some as long as allowed; places with some locality, so that updates meet.
pub(crate) fn random_request(rng: &mut Rng, space: u64, longest: u64) -> (HostOp, u64, u64) {
    let op = match rng.below(20) {
        0..=10 => HostOp::Write,
        11..=16 => HostOp::Read,
        17..=18 => HostOp::Discard,
        _ => return (HostOp::Flush, 0, 0),
    };
    let most = match rng.below(40) {
        0 => longest,
        1..=12 => longest.min(64),
        _ => longest.min(9),
    };
    let blocks = 1 + rng.below(most);
    let room = space - blocks + 1;
    let lba = if rng.one_in(2) { rng.below(room) } else { rng.below(room.div_ceil(5)) };
    (op, lba, blocks)
}
