//! Power cuts of a drive with a write cache of its own, before every media operation: what was flushed, or written with FUA, is
//! there; what was only acknowledged may be lost; nothing else is ever read.
//!
//! A whole drive works on bytes: controller, scheduler, buffer and layer. What it takes is in its memory until the medium has it, and
//! gone with the power. Reads are compared with what the host wrote, those from the buffer too.

use crate::harness::{BYTES, new_data, random_request};
use crate::volatile::print;
use crate::{Digest, Harness, PlainMedium};
use smrlab_drive::{Buffered, Observer, ScheduledDrive, TimedPlan, Wanted, assemble};
use smrlab_stl::registry::build_as;
use smrlab_stl::{
    BuildContext, Dir, Executor, HostBuffer, HostRequest, LayerEntry, Plan, Records, Sink as _, Step,
};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// A run with such cuts.
#[derive(Clone, Copy, Debug)]
pub struct PowerCuts<'a> {
    /// The drive, with its cache.
    pub drive: &'a str,
    /// The layer.
    pub layer: &'a str,
    /// The scheduler.
    pub scheduler: &'a str,
    /// Requests, and the longest in blocks.
    pub requests: u64,
    /// Longest request in blocks.
    pub longest: u64,
    /// Seed.
    pub seed: u64,
    /// The host takes every acknowledged write for safe: what is lost then shows that the cache is volatile.
    pub believes: bool,
}

/// What the cuts did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// Cuts.
    pub cuts: u64,
    /// Blocks after them that read as neither what was promised last nor anything written later.
    pub lost: u64,
    /// Writes that the buffer took before they were on the medium.
    pub buffered: u64,
    /// Reads that were answered from such writes.
    pub answered: u64,
}

/// What a host wrote to a block: with which request, and when that was sent.
#[derive(Clone, Copy)]
struct Version {
    request: u64,
    print: Digest,
    sent: SimTime,
}

/// What a cut before the end of an operation leaves.
struct Left {
    at: SimTime,
    prints: Vec<Digest>,
}

/// The drive's medium, and the host's side.
struct Bench {
    entry: &'static LayerEntry,
    text: String,
    context: BuildContext,
    medium: PlainMedium,
    records: Records,
    exec: Executor,
    /// Data of writes, and what reads should bring, by request.
    data: BTreeMap<u64, Vec<u8>>,
    acks: BTreeMap<u64, SimTime>,
    /// Accepted writes that are not on the medium, in the order of that.
    pending: Vec<HostRequest>,
    left: Vec<Left>,
    outage: Outage,
}

impl Bench {
    fn recovered(&self) -> Vec<Digest> {
        let mut medium = self.medium.clone();
        let mut layer = build_as(self.entry, &self.text, &self.context).expect("built before").layer;
        let mut plan = Plan::new(true, true);
        layer.recover(&self.records, &mut plan);
        let Ok(()) = Executor::default().run(&plan, HostBuffer::None, &mut medium);
        Harness::read_all(&mut *layer, &mut medium).chunks(BYTES).map(print).collect()
    }

    /// Carries out a plan, with a cut before each of its operations.
    fn carry_out(&mut self, request: Option<&HostRequest>, e: &TimedPlan<'_>) {
        let mut data = request.and_then(|r| self.data.get(&r.id).cloned()).unwrap_or_default();
        let wanted = data.clone();
        let mut host = match request.map(|r| r.op) {
            Some(HostOp::Read) => HostBuffer::Read(&mut data),
            Some(HostOp::Write) => HostBuffer::Write(&data),
            _ => HostBuffer::None,
        };
        self.exec.begin();
        for step in e.plan.walk() {
            match step {
                Step::Record(record) if e.whole => self.records.take(record),
                Step::Op(id, op) if (id.0 as usize) < e.done => {
                    if op.dir == Dir::Write {
                        let (at, prints) = (e.ends[id.0 as usize], self.recovered());
                        self.left.push(Left { at, prints });
                    }
                    let Ok(()) = self.exec.step(e.plan, id, &mut host, &mut self.medium);
                }
                _ => {}
            }
        }
        Executor::finish(e.plan, &mut host);
        if let Some(r) = request.filter(|r| r.op == HostOp::Read) {
            assert!(data == wanted, "{}: {r:?} reads something else", self.text);
        }
    }
}

impl Observer for Bench {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.pending.retain(|p| p.id != r.id);
        self.carry_out(Some(r), e);
        self.acks.entry(r.id).or_insert(e.served.ack);
        self.outage.buffered += u64::from(r.op == HostOp::Write && e.ends.iter().any(|t| *t > e.served.ack));
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<(), Infallible> {
        self.pending.push(*write.request);
        self.acks.insert(write.request.id, write.served.ack);
        Ok(())
    }

    fn answered(&mut self, read: &Buffered<'_>, from: &HostRequest) -> Result<(), Infallible> {
        let r = read.request;
        assert!(self.pending.iter().any(|p| p == from), "{}: {from:?} is not in the buffer", self.text);
        // Each block as the accepted write that was sent last has it (one before it may have waited longer for room), or as the
        // medium does where none has.
        let of =
            |lba: u64| self.pending.iter().filter(move |p| (p.lba.0..p.lba.0 + p.blocks.0).contains(&lba));
        let newest = |lba: u64| of(lba).max_by_key(|p| p.id);
        let blocks = r.lba.0..r.lba.0 + r.blocks.0;
        assert!(
            blocks.clone().any(|b| newest(b).is_some()),
            "{}: no accepted write concerns {r:?}",
            self.text
        );
        let medium = if blocks.clone().all(|b| newest(b).is_some()) { Vec::new() } else { self.recovered() };
        for (lba, wanted) in blocks.zip(self.data[&r.id].chunks(BYTES)) {
            let held = newest(lba).map_or_else(
                || medium[lba as usize],
                |w| print(&self.data[&w.id][(lba - w.lba.0) as usize * BYTES..][..BYTES]),
            );
            assert!(
                held == print(wanted),
                "{}: block {lba} of {r:?} is answered with something else",
                self.text
            );
        }
        self.outage.answered += 1;
        Ok(())
    }

    fn background(&mut self, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.carry_out(None, e);
        Ok(())
    }
}

impl PowerCuts<'_> {
    /// Does random requests, several outstanding, and cuts the power before every operation. `None`: the layer does not fit the drive.
    ///
    /// # Panics
    /// When a read brings anything but what was written last.
    pub fn run(&self) -> Option<Outage> {
        let mut problems = Problems::default();
        let (drive, layer, scheduler) = (self.drive, self.layer, self.scheduler);
        let wanted =
            Wanted { drive, layer, scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 };
        let made = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems)?;
        let model = &made.built.drive;
        let mut bench = Bench {
            entry: made.built.entry,
            text: layer.to_owned(),
            context: BuildContext::new(model.clone()),
            medium: PlainMedium::new(model.geometry(), model.interference()),
            records: Records::default(),
            exec: Executor::default(),
            data: BTreeMap::new(),
            acks: BTreeMap::new(),
            pending: Vec::new(),
            left: Vec::new(),
            outage: Outage::default(),
        };
        let (space, discards) = (made.built.layer.host_blocks().0, made.built.capabilities.discards);
        let (drive, chosen) = made.start(true, true);
        let mut c = ScheduledDrive::new(drive, &chosen);
        let mut rng = crate::random(self.seed);
        let mut model = vec![0; space as usize * BYTES];
        let zero = Version { request: u64::MAX, print: print(&model[..BYTES]), sent: SimTime::ZERO };
        let mut versions = vec![vec![zero]; space as usize];
        let (mut sent, mut written) = (Vec::new(), (0, 1));
        let mut now = SimTime::ZERO;
        for id in 0..self.requests {
            let (op, mut lba, mut blocks) = random_request(&mut rng, space, self.longest.min(space));
            if op == HostOp::Read && rng.one_in(2) {
                // What was written last may still be in the drive's memory only.
                (lba, blocks) = written;
            }
            if op == HostOp::Write {
                written = (lba, blocks);
            }
            let mut r = HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id);
            r.fua = op == HostOp::Write && rng.one_in(6);
            now += SimTime::from_us(rng.below(8_000));
            let Ok(()) = c.wake(now, &mut bench);
            while !c.has_room() {
                now = now.max(c.next_decision().expect("a request waits"));
                let Ok(_) = c.decide_once(now, &mut bench);
            }
            let at = lba as usize * BYTES;
            let range = at..at + blocks as usize * BYTES;
            if op == HostOp::Write || (op == HostOp::Discard && discards) {
                let data =
                    if op == HostOp::Write { new_data(blocks, &mut rng) } else { vec![0; range.len()] };
                for (v, bytes) in versions[lba as usize..].iter_mut().zip(data.chunks(BYTES)) {
                    v.push(Version { request: id, print: print(bytes), sent: now });
                }
                model[range.clone()].copy_from_slice(&data);
            }
            bench.data.insert(id, model[range].to_vec());
            sent.push((now, r));
            let Ok(_) = c.submit(now, &r, &mut bench);
        }
        let Ok(()) = c.drain(&mut bench);
        let prints = bench.recovered();
        bench.left.push(Left { at: SimTime(u64::MAX), prints });
        Some(self.judge(&bench, &sent, &versions))
    }

    /// Holds what the cuts left against what was promised by then.
    fn judge(&self, bench: &Bench, sent: &[(SimTime, HostRequest)], versions: &[Vec<Version>]) -> Outage {
        let own = |r: &HostRequest| r.fua || (self.believes && r.op == HostOp::Write);
        let promised = promised(sent, &bench.acks, own);
        let mut out = bench.outage;
        for left in &bench.left {
            out.cuts += 1;
            for (versions, print) in versions.iter().zip(&left.prints) {
                // The first version was there before the first request.
                let holds = |v: &Version| promised.get(v.request as usize).is_none_or(|at| *at < left.at);
                let oldest = versions.iter().rposition(holds).unwrap_or(0);
                let mut may = versions[oldest..].iter().filter(|v| v.sent <= left.at);
                out.lost += u64::from(!may.any(|v| v.print == *print));
            }
        }
        out
    }
}

/// From when on what each of these requests changed is durable: from its own acknowledgement where `own` says so, else from that of the first flush that
/// was sent at or after it. `sent` has them by their numbers; what is never acknowledged promises nothing.
pub fn promised(
    sent: &[(SimTime, HostRequest)],
    acks: &BTreeMap<u64, SimTime>,
    own: impl Fn(&HostRequest) -> bool,
) -> Vec<SimTime> {
    let never = SimTime(u64::MAX);
    let ack = |id: u64| acks.get(&id).copied().unwrap_or(never);
    let flushes: Vec<_> = sent.iter().filter(|s| s.1.op == HostOp::Flush).collect();
    let from = |(_, r): &(SimTime, HostRequest)| {
        let acked = ack(r.id);
        let flush = flushes.iter().filter(|f| f.0 >= acked).map(|f| ack(f.1.id)).min();
        if own(r) { acked } else { flush.unwrap_or(never) }
    };
    sent.iter().map(from).collect()
}
