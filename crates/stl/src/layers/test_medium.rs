//! A one-dimensional shingled medium for the tests of single layers: a number a block, and Cassuto's block interference
//! profile, so that every write destroys the `interference - 1` blocks behind each block written.

use crate::{Dir, Endpoint, HostRequest, OpId, Plan, Records, TranslationLayer};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// What a destroyed block reads as.
const DESTROYED: u64 = u64::MAX;

#[derive(Clone)]
pub(crate) struct Medium {
    blocks: Vec<u64>,
    interference: u64,
}

impl Medium {
    pub(crate) fn new(blocks: u64, interference: u64) -> Self {
        Self { blocks: vec![0; blocks as usize], interference }
    }

    fn write(&mut self, pba: u64, data: &[u64]) {
        let end = pba as usize + data.len();
        self.blocks[pba as usize..end].copy_from_slice(data);
        let destroyed = (end + self.interference as usize - 1).min(self.blocks.len());
        self.blocks[end..destroyed].fill(DESTROYED);
    }

    /// Does the first `whole` operations of a plan and the first `part` blocks of the next one, if that is a write.
    /// `host` is the host's buffer.
    pub(crate) fn walk(&mut self, plan: &Plan, whole: usize, part: u64, host: &mut [u64]) {
        let mut staged: Vec<Vec<u64>> = Vec::new();
        for (i, op) in plan.ops().iter().enumerate().take(whole + 1) {
            let pieces = plan.pieces(OpId(i as u32));
            let (at, n) = (op.pba.0 as usize, op.blocks.0 as usize);
            assert_eq!(pieces.iter().map(|p| p.blocks.0 as usize).sum::<usize>(), n, "pieces of {op:?}");
            assert!(at + n <= self.blocks.len(), "{op:?} lies outside the medium");
            if op.dir == Dir::Read {
                let data = self.blocks[at..at + n].to_vec();
                if let Endpoint::Host(o) = pieces[0].end {
                    host[o.0 as usize..o.0 as usize + n].copy_from_slice(&data);
                }
                staged.push(data);
                continue;
            }
            let mut data = Vec::with_capacity(n);
            for p in pieces {
                let n = p.blocks.0 as usize;
                match p.end {
                    Endpoint::Host(o) => data.extend_from_slice(&host[o.0 as usize..o.0 as usize + n]),
                    Endpoint::Held(pba) => data.extend_from_slice(&self.blocks[pba.0 as usize..][..n]),
                    Endpoint::Staged(op, o) => {
                        data.extend_from_slice(&staged[op.0 as usize][o.0 as usize..][..n])
                    }
                    _ => data.extend(std::iter::repeat_n(0, n)),
                }
            }
            staged.push(Vec::new());
            let done = if i < whole { n } else { (part as usize).min(n) };
            if done > 0 {
                self.write(op.pba.0, &data[..done]);
            }
        }
        for &(at, n) in plan.zeroes() {
            host[at.0 as usize..(at.0 + n.0) as usize].fill(0);
        }
    }
}

/// A layer on a medium, and what its blocks should read as.
pub(crate) struct Rig<L> {
    pub(crate) layer: L,
    make: fn() -> L,
    pub(crate) medium: Medium,
    model: Vec<u64>,
    records: Records,
    plan: Plan,
    next: u64,
}

pub(crate) fn request(op: HostOp, lba: u64, blocks: u64) -> HostRequest {
    HostRequest::new(op, Lba(lba), Blocks(blocks))
}

impl<L: TranslationLayer> Rig<L> {
    pub(crate) fn new(make: fn() -> L, medium: Medium) -> Self {
        let layer = make();
        let model = vec![0; layer.host_blocks().0 as usize];
        Self { layer, make, medium, model, records: Records::default(), plan: Plan::new(true, true), next: 1 }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Submits a request, does it, and compares what a read brought. `cuts` also tries the cut at every operation.
    pub(crate) fn go(&mut self, request: HostRequest, cuts: bool) {
        let (lba, n) = (request.lba.0 as usize, request.blocks.0 as usize);
        let located = self.layer.locate(&request);
        self.plan.clear();
        self.layer.submit(SimTime::ZERO, &request, &mut self.plan);
        if let Some(begin) = located {
            assert_eq!(Some(begin), self.plan.ops().first().map(|o| (o.pba, o.dir)), "locate of {request:?}");
        }
        let mut host = vec![0; n];
        if request.op == HostOp::Write {
            host.iter_mut().for_each(|b| {
                *b = self.next;
                self.next += 1;
            });
        }
        if cuts {
            self.cut_everywhere(&request, &host);
        }
        self.medium.walk(&self.plan, self.plan.ops().len(), 0, &mut host);
        match request.op {
            HostOp::Write => self.model[lba..lba + n].copy_from_slice(&host),
            HostOp::Discard => self.model[lba..lba + n].fill(0),
            HostOp::Read => assert_eq!(host, self.model[lba..lba + n], "{request:?}"),
            _ => {}
        }
        self.records.append(self.plan.records());
    }

    pub(crate) fn read_everything(&mut self) {
        let n = self.model.len() as u64;
        self.go(request(HostOp::Read, 0, n), false);
    }

    fn cut_everywhere(&self, request: &HostRequest, host: &[u64]) {
        for whole in 0..=self.plan.ops().len() {
            let n =
                self.plan.ops().get(whole).map_or(0, |o| if o.dir == Dir::Write { o.blocks.0 } else { 0 });
            for part in [0, n / 2] {
                if part > 0 || n == 0 || whole == 0 {
                    self.cut(request, host, whole, part);
                }
            }
        }
    }

    /// A cut, recovery, and everything read back: what was acknowledged, and for the blocks in flight old or new.
    fn cut(&self, request: &HostRequest, host: &[u64], whole: usize, part: u64) {
        let mut medium = self.medium.clone();
        medium.walk(&self.plan, whole, part, &mut host.to_vec());
        let mut records = self.records.clone();
        records.extend(self.plan.records_within(whole));
        let mut layer = (self.make)();
        let mut plan = Plan::new(true, true);
        layer.recover(&records, &mut plan);
        // The recovery itself is cut at its last operation, then done again.
        let ops = plan.ops().len();
        if ops > 0 {
            let n = plan.ops()[ops - 1].blocks.0;
            medium.walk(&plan, ops - 1, n / 2, &mut []);
            records.extend(plan.records_within(ops - 1));
            layer = (self.make)();
            plan.clear();
            layer.recover(&records, &mut plan);
            medium.walk(&plan, plan.ops().len(), 0, &mut []);
        }
        let mut got = vec![0; self.model.len()];
        plan.clear();
        layer.submit(SimTime::ZERO, &self::request(HostOp::Read, 0, self.model.len() as u64), &mut plan);
        medium.walk(&plan, plan.ops().len(), 0, &mut got);
        let flight = if request.op == HostOp::Read { 0..0 } else { request.span() };
        for (lba, (&got, &want)) in got.iter().zip(&self.model).enumerate() {
            let new = flight.contains(&(lba as u64)).then(|| {
                let new = host[lba - flight.start as usize];
                if request.op == HostOp::Discard { 0 } else { new }
            });
            assert!(
                got == want || Some(got) == new,
                "block {lba} is {got}, not {want} or {new:?}, after a cut {part} blocks into operation {whole} of {:?}",
                self.plan.ops()
            );
        }
    }

    /// Does what is planned for idle time and ends it.
    pub(crate) fn idle(&mut self) {
        self.plan.clear();
        self.layer.background(SimTime::ZERO, &mut self.plan);
        self.medium.walk(&self.plan, self.plan.ops().len(), 0, &mut []);
        self.layer.background_end(crate::StepEnd::Done);
        self.records.append(self.plan.records());
    }

    /// The layer that recovers from this one's checkpoint plans the same operations for the next request.
    pub(crate) fn swap_for_recovered(&mut self) {
        let mut records = Records::default();
        self.layer.checkpoint(&mut records);
        let mut layer = (self.make)();
        self.plan.clear();
        layer.recover(&records, &mut self.plan);
        assert!(self.plan.ops().is_empty(), "a checkpoint leaves nothing to do");
        self.layer = layer;
        self.records = records;
    }
}

/// A request at random: mostly writes, mostly short, half of them near the beginning, sometimes a discard.
pub(crate) fn drawn(rng: &mut Rng, span: u64, longest: u64) -> HostRequest {
    let op = match rng.below(20) {
        0..=11 => HostOp::Write,
        12 => HostOp::Discard,
        _ => HostOp::Read,
    };
    let most = if rng.below(4) == 0 { longest } else { longest.min(8) };
    let blocks = 1 + rng.below(most.min(span));
    let within = if rng.below(2) == 0 { span.min(blocks + span / 8) } else { span };
    request(op, rng.below(within - blocks + 1), blocks)
}

/// Runs the same random requests over the layer as given and over one that was swapped for its recovered self, and
/// compares all planned operations.
pub(crate) fn same_after_checkpoint<L: TranslationLayer>(make: fn() -> L, seed: u64, longest: u64) {
    let (mut a, mut plan_a, mut plan_b) = (make(), Plan::new(true, true), Plan::new(false, false));
    let span = a.host_blocks().0;
    let mut rng = Rng::new(seed);
    for _ in 0..20 {
        let mut records = Records::default();
        a.checkpoint(&mut records);
        let mut b = make();
        b.recover(&records, &mut plan_a);
        for _ in 0..50 {
            let r = drawn(&mut rng, span, longest);
            for (l, p) in [(&mut a, &mut plan_a), (&mut b, &mut plan_b)] {
                p.clear();
                l.submit(SimTime::ZERO, &r, p);
            }
            assert_eq!(plan_a.ops(), plan_b.ops(), "{r:?}");
            assert_eq!(plan_a.cleanings(), plan_b.cleanings(), "{r:?}");
        }
    }
}
