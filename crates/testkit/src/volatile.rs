//! Power cuts of a medium with a volatile write cache: of what was written since the last fence or flush any blocks may
//! have reached the medium, in any order and each with the destruction that it brings, and of the records only those up
//! to there hold.

use crate::harness::{BYTES, new_data, random_request};
use crate::{Digest, Harness, PlainMedium, Rng};
use smrlab_stl::registry::build_as;
use smrlab_stl::{Executor, HostBuffer, HostRequest, Medium, Plan, Records, Sink as _, Step};
use smrlab_units::{Blocks, HostOp, Lba, Pba};

/// A run with such cuts.
#[derive(Clone, Copy, Debug)]
pub struct Volatile {
    /// Requests.
    pub requests: u64,
    /// Longest request in blocks.
    pub longest: u64,
    /// Seed.
    pub seed: u64,
    /// One in so many places between two operations is tried.
    pub every: u64,
    /// Whether the medium heeds fences; a layer that needs them must lose data where it does not.
    pub fences: bool,
}

/// What the cuts did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Cuts that were tried.
    pub cuts: u64,
    /// Fences in the plans.
    pub fences: u64,
    /// Cuts after which the run went on with what had survived.
    pub survived: u64,
    /// Blocks that read as neither what was flushed last nor anything written later.
    pub lost: u64,
    /// Cuts after which there was such a block.
    pub harmful: u64,
}

/// The medium behind its cache, and the records that go with it.
struct Cache {
    durable: PlainMedium,
    seen: PlainMedium,
    since: Vec<(Pba, Vec<u8>)>,
    records: Records,
    durable_records: usize,
}

impl Medium for Cache {
    type Error = std::convert::Infallible;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error> {
        self.seen.read(pba, out)
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error> {
        let blocks = data.chunks(BYTES).zip(pba.0..);
        self.since.extend(blocks.map(|(bytes, block)| (Pba(block), bytes.to_vec())));
        self.seen.write(pba, data)
    }
}

/// How a plan is carried out.
struct Way<'a> {
    /// How many of its operations.
    ops: usize,
    fences: bool,
    /// Whether its records are kept; those of a step that is given up are not.
    records: bool,
    /// Called in all places between two operations.
    between: &'a mut dyn FnMut(&mut Cache),
}

impl Cache {
    fn new(medium: PlainMedium, records: Records) -> Self {
        let durable_records = records.len();
        Self { durable: medium.clone(), seen: medium, since: Vec::new(), records, durable_records }
    }

    /// Everything so far becomes durable.
    fn settle(&mut self) {
        for (pba, bytes) in self.since.drain(..) {
            let Ok(()) = self.durable.write(pba, &bytes);
        }
        self.durable_records = self.records.len();
    }

    /// What a cut leaves.
    fn cut(&self, rng: &mut Rng) -> Self {
        let mut medium = self.durable.clone();
        let mut arrived: Vec<_> = self.since.iter().collect();
        let share = [1, 50, 99][rng.below(3) as usize];
        arrived.retain(|_| rng.below(100) < share);
        if rng.one_in(2) {
            for i in (1..arrived.len()).rev() {
                arrived.swap(i, rng.below(i as u64 + 1) as usize);
            }
        }
        for (pba, bytes) in arrived {
            let Ok(()) = medium.write(*pba, bytes);
        }
        let mut records = self.records.clone();
        records.truncate(self.durable_records);
        Self::new(medium, records)
    }

    fn carry_out(&mut self, plan: &Plan, host: &mut HostBuffer<'_>, way: Way<'_>) {
        let mut exec = Executor::default();
        for step in plan.walk() {
            match step {
                Step::Record(record) if way.records => self.records.take(record),
                Step::Fence => {
                    // The power may go while things are being made durable, too.
                    (way.between)(self);
                    if way.fences {
                        self.settle();
                    }
                }
                Step::Op(id, _) => {
                    (way.between)(self);
                    if id.0 as usize == way.ops {
                        break;
                    }
                    let Ok(()) = exec.step(plan, id, host, self);
                }
                Step::Record(_) | Step::Acknowledge | Step::Pause(_) => {}
            }
        }
        if way.ops == plan.ops().len() {
            (way.between)(self);
        }
        Executor::finish(plan, host);
    }

    /// Recovers a fresh layer, sometimes cut again, and answers what the host reads.
    fn recover(mut self, h: &Harness, fences: bool, rng: &mut Rng) -> Vec<u8> {
        loop {
            let mut layer = build_as(h.entry, &h.text, &h.context).expect("built before").layer;
            let mut plan = Plan::new(true, true);
            layer.recover(&self.records, &mut plan);
            let all = plan.ops().len();
            let again = all > 0 && rng.one_in(3);
            let ops = if again { rng.below(all as u64 + 1) as usize } else { all };
            let way = Way { ops, fences, records: true, between: &mut |_| () };
            self.carry_out(&plan, &mut HostBuffer::None, way);
            if !again {
                return Harness::read_all(&mut *layer, &mut self.seen);
            }
            self = self.cut(rng);
        }
    }
}

/// What each block of the host may read as: what was flushed last, and what was written since.
struct Allowed(Vec<Vec<Digest>>);

pub(crate) fn print(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    digest.note_bytes(bytes);
    digest
}

impl Allowed {
    fn only(model: &[u8]) -> Self {
        Self(model.chunks(BYTES).map(|b| vec![print(b)]).collect())
    }

    fn add(&mut self, lba: u64, data: &[u8]) {
        for (may, bytes) in self.0[lba as usize..].iter_mut().zip(data.chunks(BYTES)) {
            may.push(print(bytes));
        }
    }

    fn count_others(&self, out: &[u8]) -> u64 {
        out.chunks(BYTES).zip(&self.0).filter(|(b, may)| !may.contains(&print(b))).count() as u64
    }
}

/// A run under way.
struct VolatileRun {
    way: Volatile,
    rng: Rng,
    allowed: Allowed,
    outcome: Outcome,
    /// What a cut left with which the run goes on.
    survivor: Option<Cache>,
}

impl Volatile {
    /// Does random requests and cuts the power in between; the harness must be new.
    pub fn run(&self, h: &mut Harness) -> Outcome {
        let allowed = Allowed::only(&h.model);
        let (rng, outcome) = (crate::random(self.seed), Outcome::default());
        let mut run = VolatileRun { way: *self, rng, allowed, outcome, survivor: None };
        let mut cache = Cache::new(h.medium.clone(), Records::default());
        let space = h.layer.host_blocks().0;
        for _ in 0..self.requests {
            let (op, lba, blocks) = random_request(&mut run.rng, space, self.longest.min(space));
            run.request(h, &mut cache, &HostRequest::new(op, Lba(lba), Blocks(blocks)));
            if run.rng.one_in(4) && h.plan_background() {
                run.background(h, &mut cache);
            }
            if let Some(survivor) = run.survivor.take() {
                cache = run.go_on(h, survivor);
            }
        }
        run.outcome
    }
}

impl VolatileRun {
    fn request(&mut self, h: &mut Harness, cache: &mut Cache, r: &HostRequest) {
        h.plan_request(r);
        let at = r.lba.0 as usize * BYTES;
        let range = at..at + r.blocks.bytes() as usize;
        let mut data = match r.op {
            HostOp::Write => new_data(r.blocks.0, &mut self.rng),
            _ => vec![0; range.len()],
        };
        let writes = r.op == HostOp::Write || (r.op == HostOp::Discard && h.entry.capabilities.discards);
        if writes {
            self.allowed.add(r.lba.0, &data);
        }
        let ops = h.plan.ops().len();
        if r.op == HostOp::Read {
            self.carry_out(h, cache, HostBuffer::Read(&mut data), ops, true);
            assert!(data == h.model[range], "{}: {r:?} reads something else", h.text);
            return;
        }
        self.carry_out(h, cache, HostBuffer::Write(&data), ops, true);
        if writes {
            h.model[range].copy_from_slice(&data);
        }
        if r.op == HostOp::Flush && self.survivor.is_none() {
            cache.settle();
            self.allowed = Allowed::only(&h.model);
            // A layer need not hear of a flush.
            if !self.rng.one_in(4) {
                h.tell_durable();
            }
        }
    }

    fn background(&mut self, h: &mut Harness, cache: &mut Cache) {
        let all = h.plan.ops().len();
        let done = h.step_done(&mut self.rng);
        self.carry_out(h, cache, HostBuffer::None, done, done == all);
        h.end_background(done == all);
    }

    fn carry_out(
        &mut self,
        h: &Harness,
        cache: &mut Cache,
        mut host: HostBuffer<'_>,
        ops: usize,
        records: bool,
    ) {
        let fences = self.way.fences;
        self.outcome.fences += h.plan.fences().len() as u64;
        let mut between = |cache: &mut Cache| {
            // The medium may write back whenever it likes.
            if self.rng.one_in(30) {
                cache.settle();
            }
            if self.rng.one_in(self.way.every) {
                let out = cache.cut(&mut self.rng).recover(h, fences, &mut self.rng);
                let lost = self.allowed.count_others(&out);
                self.outcome.cuts += 1;
                self.outcome.lost += lost;
                self.outcome.harmful += u64::from(lost > 0);
                if fences && self.rng.one_in(10) {
                    self.survivor = Some(cache.cut(&mut self.rng));
                }
            }
        };
        let way = Way { ops, fences, records, between: &mut between };
        cache.carry_out(&h.plan, &mut host, way);
    }

    /// Goes on with what survived.
    fn go_on(&mut self, h: &mut Harness, mut next: Cache) -> Cache {
        h.plan_recovery(&next.records);
        let ops = h.plan.ops().len();
        let way = Way { ops, fences: true, records: true, between: &mut |_| () };
        next.carry_out(&h.plan, &mut HostBuffer::None, way);
        // A read may bring the layer's own work forward, so it is one like any other.
        let blocks = h.layer.host_blocks();
        h.plan_request(&HostRequest::new(HostOp::Read, Lba(0), blocks));
        let mut out = vec![0; blocks.bytes() as usize];
        let way = Way { ops: h.plan.ops().len(), fences: true, records: true, between: &mut |_| () };
        next.carry_out(&h.plan, &mut HostBuffer::Read(&mut out), way);
        h.model = out;
        self.outcome.lost += self.allowed.count_others(&h.model);
        self.outcome.survived += 1;
        self.allowed = Allowed::only(&h.model);
        next
    }
}
