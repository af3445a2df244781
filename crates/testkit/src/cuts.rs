//! Power cuts at every media operation, in the middle of each and between its records, recovery, and what was lost.

use crate::harness::{BYTES, new_data, random_request};
use crate::medium::TORN;
use crate::{Harness, PlainMedium, Rng};
use smrlab_stl::registry::build_as;
use smrlab_stl::{Dir, Executor, HostBuffer, HostRequest, OpId, Plan, Records, Step, TranslationLayer};
use smrlab_units::{Blocks, HostOp, Lba, Pba};

/// What the cuts did to the host's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Cuts that were tried.
    pub cuts: u64,
    /// Those of them that cut background work.
    pub background: u64,
    /// Blocks that had been acknowledged, and read as something else after recovery.
    pub lost: u64,
    /// Blocks of the request in flight that read as neither old nor new, other than one torn sector in a cut.
    pub mixed: u64,
    /// Blocks of the request in flight that read as torn.
    pub torn: u64,
}

/// A run with cuts.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// Requests; each is cut everywhere.
    pub requests: u64,
    /// Longest request in blocks.
    pub longest: u64,
    /// Seed.
    pub seed: u64,
}

/// What survives a cut.
struct Survivors {
    medium: PlainMedium,
    records: Records,
}

impl Cuts {
    /// Runs random requests; at each, cuts the power at every operation of its plan and in the middle of each write,
    /// recovers a fresh layer, and reads everything.
    pub fn run(&self, h: &mut Harness) -> Losses {
        let mut rng = crate::random(self.seed);
        let mut losses = Losses::default();
        let space = h.layer.host_blocks().0;
        for i in 0..self.requests {
            let (op, lba, blocks) = random_request(&mut rng, space, self.longest.min(space));
            if matches!(op, HostOp::Read | HostOp::Flush) {
                continue;
            }
            if i % 16 == 15 {
                // What was recorded so far is replaced by a checkpoint.
                h.records.clear();
                h.layer.checkpoint(&mut h.records);
            }
            self.request(h, op, lba, blocks, &mut rng, &mut losses);
            if rng.one_in(3) {
                self.background(h, &mut rng, &mut losses);
            }
        }
        losses
    }

    /// Cuts a step of background work, of which a host request may have given up the rest.
    fn background(&self, h: &mut Harness, rng: &mut Rng, losses: &mut Losses) {
        if !h.plan_background() {
            return;
        }
        let nothing = HostRequest::flush();
        for cut in 0..=h.plan.ops().len() {
            for part in parts(&h.plan, cut, rng) {
                let out = recover(h, self.cut(h, &[], cut, part), rng);
                judge(h, &nothing, &out, &h.model, false, losses);
                losses.background += 1;
            }
        }
        h.finish_background(rng);
    }

    fn request(
        &self,
        h: &mut Harness,
        op: HostOp,
        lba: u64,
        blocks: u64,
        rng: &mut Rng,
        losses: &mut Losses,
    ) {
        let r = HostRequest::new(op, Lba(lba), Blocks(blocks));
        h.plan_request(&r);
        let data = if op == HostOp::Write { new_data(blocks, rng) } else { Vec::new() };
        let mut new = h.model.clone();
        let range = lba as usize * BYTES..(lba + blocks) as usize * BYTES;
        match op {
            HostOp::Write => new[range].copy_from_slice(&data),
            _ if h.entry.capabilities.discards => new[range].fill(0),
            _ => {}
        }
        for cut in 0..=h.plan.ops().len() {
            // Between the records that hang on one operation; nothing is acknowledged before the last of them.
            for kept in 0..records_at(&h.plan, cut) {
                let out = recover(h, self.cut_records(h, &data, cut, kept), rng);
                judge(h, &r, &out, &new, cut > h.plan.ack_after(), losses);
            }
            for part in parts(&h.plan, cut, rng) {
                let survivors = self.cut(h, &data, cut, part);
                let acknowledged = cut >= h.plan.ack_after();
                let out = recover(h, survivors, rng);
                judge(h, &r, &out, &new, acknowledged, losses);
            }
        }
        let host = if op == HostOp::Write { HostBuffer::Write(&data) } else { HostBuffer::None };
        let Ok(()) = Executor::default().run(&h.plan, host, &mut h.medium);
        h.records.append(h.plan.records());
        h.model = new;
    }

    /// Does `whole` operations, and keeps the first `kept` of the records that hang on the last of them.
    fn cut_records(&self, h: &Harness, data: &[u8], whole: usize, kept: usize) -> Survivors {
        let mut survivors = self.cut(h, data, whole, None);
        let lost = records_at(&h.plan, whole) - kept;
        survivors.records.truncate(survivors.records.len() - lost);
        survivors
    }

    /// Does `whole` operations, and of the next one `part` blocks and a torn one.
    fn cut(&self, h: &Harness, data: &[u8], whole: usize, part: Option<u64>) -> Survivors {
        let mut medium = h.medium.clone();
        let mut host = HostBuffer::Write(data);
        walk(&h.plan, &mut host, whole, part, &mut medium);
        let mut records = h.records.clone();
        records.extend(h.plan.records_within(whole));
        Survivors { medium, records }
    }
}

/// Records that are made durable when `ops` operations are done, one after the other.
fn records_at(plan: &Plan, ops: usize) -> usize {
    plan.recorded_after().iter().filter(|after| **after as usize == ops).count()
}

/// In how many blocks an operation may be cut: not at all, and for writes after none, some, and all but one.
fn parts(plan: &Plan, cut: usize, rng: &mut Rng) -> Vec<Option<u64>> {
    match plan.ops().get(cut) {
        Some(op) if op.dir == Dir::Write => {
            let mut parts = vec![0, rng.below(op.blocks.0), op.blocks.0 - 1];
            parts.dedup();
            [None].into_iter().chain(parts.into_iter().map(Some)).collect()
        }
        _ => vec![None],
    }
}

fn walk(plan: &Plan, host: &mut HostBuffer<'_>, whole: usize, part: Option<u64>, medium: &mut PlainMedium) {
    let mut exec = Executor::default();
    for step in plan.walk() {
        if let Step::Op(id, _) = step
            && (id.0 as usize) < whole
        {
            let Ok(()) = exec.step(plan, id, host, medium);
        }
    }
    if let Some(blocks) = part {
        let op = plan.ops()[whole];
        let mut bytes = Vec::new();
        for part in exec.parts(plan, OpId(whole as u32), host) {
            match part {
                smrlab_stl::WritePart::Bytes(part) => bytes.extend_from_slice(part),
                smrlab_stl::WritePart::Medium(from, blocks) => {
                    let first = bytes.len();
                    bytes.resize(first + blocks.bytes() as usize, 0);
                    let Ok(()) = smrlab_stl::Medium::read(medium, from, &mut bytes[first..]);
                }
            }
        }
        bytes.truncate(blocks as usize * BYTES);
        let Ok(()) = smrlab_stl::Medium::write(medium, op.pba, &bytes);
        medium.tear(Pba(op.pba.0 + blocks));
    }
}

/// Recovers a fresh layer, sometimes cut again, and reads everything.
fn recover(h: &Harness, mut s: Survivors, rng: &mut Rng) -> Vec<u8> {
    loop {
        let mut layer = build_as(h.entry, &h.text, &h.context).expect("built before").layer;
        let mut plan = Plan::new(true, true);
        layer.recover(&s.records, &mut plan);
        let ops = plan.ops().len();
        let again = ops > 0 && rng.one_in(3);
        let whole = if again { rng.below(ops as u64) as usize } else { ops };
        let part = again.then(|| parts(&plan, whole, rng).pop().flatten()).flatten();
        walk(&plan, &mut HostBuffer::None, whole, part, &mut s.medium);
        s.records.extend(plan.records_within(whole));
        if !again {
            return Harness::read_all(&mut *layer as &mut dyn TranslationLayer, &mut s.medium);
        }
    }
}

fn judge(h: &Harness, r: &HostRequest, out: &[u8], new: &[u8], acknowledged: bool, losses: &mut Losses) {
    losses.cuts += 1;
    let in_flight = r.span();
    let mut torn = 0;
    for block in 0..h.layer.host_blocks().0 {
        let range = block as usize * BYTES..(block as usize + 1) * BYTES;
        let (is, was, will) = (&out[range.clone()], &h.model[range.clone()], &new[range]);
        if is == will || (is == was && !acknowledged) {
            continue;
        }
        if acknowledged || !in_flight.contains(&block) {
            losses.lost += 1;
        } else if is == [TORN; BYTES] && torn == 0 {
            torn = 1;
        } else {
            losses.mixed += 1;
        }
    }
    losses.torn += torn;
}
