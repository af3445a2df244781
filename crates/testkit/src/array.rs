//! Random requests through an array on bytes: several at a time, members in any order, disks that die and are replaced,
//! power cuts between member requests; everything read back, parity checked.

use crate::harness::{BYTES, new_data, random_request};
use crate::{PlainMedium, Rng};
use smrlab_array::plan::Outcome;
use smrlab_array::{
    Array, ArrayContext, BuiltArray, Locks, MemberId, MemberOp, MemberPlan, Part, Phase, Records, Staging,
    Ticket, Work,
};
use smrlab_disk::DriveModel;
use smrlab_stl::{
    BuildContext, Executor, HostBuffer, HostRequest, Plan, Refusal, TranslationLayer, zones_of,
};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, SimTime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A disk: a layer on a medium.
struct Disk {
    /// Of an SSD, which come last: its bytes.
    ssd: Option<Vec<u8>>,
    layer: Box<dyn TranslationLayer>,
    medium: PlainMedium,
    exec: Executor,
    dead: bool,
    /// Requests with the data of a write and the parts of a read.
    queue: VecDeque<(MemberOp, Vec<u8>, Vec<Part>)>,
    discards: bool,
}

impl Disk {
    fn new(layer: &str, context: &BuildContext) -> Self {
        let built = smrlab_stl::build(layer, context).unwrap_or_else(|e| panic!("{e}"));
        let medium = PlainMedium::new(built.drive.geometry(), built.drive.interference());
        Self {
            ssd: None,
            layer: built.layer,
            medium,
            exec: Executor::default(),
            dead: false,
            queue: VecDeque::new(),
            discards: built.capabilities.discards,
        }
    }

    fn carry_out(&mut self, request: &HostRequest, host: HostBuffer<'_>) {
        if let Some(ssd) = &mut self.ssd {
            let at = range(request.lba, request.blocks);
            match host {
                HostBuffer::Write(data) => ssd[at].copy_from_slice(data),
                HostBuffer::Read(out) => out.copy_from_slice(&ssd[at]),
                HostBuffer::None => {}
            }
            return;
        }
        let mut plan = Plan::new(true, false);
        self.layer.submit(SimTime::ZERO, request, &mut plan);
        assert_eq!(plan.refusal(), None);
        let Ok(()) = self.exec.run(&plan, host, &mut self.medium);
    }
}

/// A work under way.
struct Running {
    work: Work,
    order: u64,
    locks: Locks,
    started: bool,
    waiting: usize,
    lost: bool,
    acked: bool,
    /// Data of a write, or what a read has brought so far.
    host: Vec<u8>,
    /// What a read must bring.
    want: Vec<u8>,
}

/// See the [module](self).
pub struct ArrayHarness {
    text: String,
    layer: String,
    context: BuildContext,
    disks: Vec<Disk>,
    /// How many of them are disks.
    real: usize,
    /// The array.
    pub array: Box<dyn Array>,
    staging: Staging,
    running: BTreeMap<Ticket, Running>,
    next_ticket: u32,
    order: u64,
    now: SimTime,
    /// What the host should read, by order of submission.
    pub model: Vec<u8>,
    /// Of each block: what it may be after a cut, and which request has put it there: those that overlap may be answered in any order.
    acked: Vec<u8>,
    newest: Vec<u64>,
    /// Blocks that were discarded where that promises nothing, and not written since.
    vague: BTreeSet<u64>,
    records: Records,
    last_read: Vec<u8>,
    /// Member requests carried out.
    pub done: u64,
    /// Requests refused because data are lost.
    pub refused: u64,
    discards: bool,
}

fn range(lba: Lba, blocks: Blocks) -> std::ops::Range<usize> {
    (lba.0 * BLOCK_BYTES) as usize..((lba.0 + blocks.0) * BLOCK_BYTES) as usize
}

impl ArrayHarness {
    /// `text` on disks with `layer` each.
    ///
    /// # Panics
    /// When they do not fit.
    pub fn new(text: &str, layer: &str, drive: &Arc<DriveModel>) -> Self {
        let context = BuildContext::new(Arc::clone(drive));
        let chosen = smrlab_array::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let mut disks: Vec<Disk> =
            (0..chosen.disks).map(|disk| Disk::new(chosen.layer_of(disk, layer), &context)).collect();
        let BuiltArray { array, ssds } = Self::build(text, &disks);
        let real = disks.len();
        disks.extend(ssds.into_iter().map(|ssd| Disk {
            ssd: Some(vec![0x44; ssd.blocks.bytes() as usize]),
            ..Disk::new(layer, &context)
        }));
        let discards = chosen.discards(disks[..real].iter().all(|d| d.discards));
        let bytes = array.host_blocks().bytes() as usize;
        Self {
            text: text.to_owned(),
            layer: layer.to_owned(),
            context,
            disks,
            real,
            array,
            staging: Staging::default(),
            running: BTreeMap::new(),
            next_ticket: 0,
            order: 0,
            now: SimTime::ZERO,
            model: vec![0; bytes],
            acked: vec![0; bytes],
            newest: vec![0; bytes / BYTES],
            vague: BTreeSet::new(),
            records: Records::default(),
            last_read: Vec::new(),
            done: 0,
            refused: 0,
            discards,
        }
    }

    fn build(text: &str, disks: &[Disk]) -> BuiltArray {
        let sizes: Vec<Blocks> = disks.iter().map(|d| d.layer.host_blocks()).collect();
        let chosen = smrlab_array::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let zones: Vec<_> = disks.iter().map(|d| zones_of(&*d.layer)).collect();
        chosen.build(&ArrayContext::new(&sizes).zoned(&zones)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// How many disks it has.
    pub fn disks(&self) -> usize {
        self.real
    }

    /// Sends a request; it is carried out by [`step`](Self::step).
    pub fn submit(&mut self, op: HostOp, lba: u64, blocks: u64, rng: &mut Rng) {
        let r = HostRequest::new(op, Lba(lba), Blocks(blocks));
        let at = range(r.lba, r.blocks);
        let (mut host, mut want) = (Vec::new(), Vec::new());
        match op {
            HostOp::Write => {
                host = new_data(blocks, rng);
                self.model[at].copy_from_slice(&host);
            }
            HostOp::Read => {
                host = vec![0x11; at.len()];
                want = self.model[at].to_vec();
            }
            HostOp::Discard if self.discards => self.model[at].fill(0),
            _ => {}
        }
        self.enter(Work::Host(r), host, want);
        self.start_ready();
        // What is there then is up to the disks: it is written again.
        if op == HostOp::Discard && !self.discards {
            self.submit(HostOp::Write, lba, blocks, rng);
        }
    }

    fn enter(&mut self, work: Work, host: Vec<u8>, want: Vec<u8>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.order += 1;
        let locks = self.array.locks(&work);
        let order = self.order;
        let running =
            Running { work, order, locks, started: false, waiting: 0, lost: false, acked: false, host, want };
        self.running.insert(ticket, running);
    }

    /// Starts every work that no older one keeps from its stripes.
    fn start_ready(&mut self) {
        loop {
            let meets = |a: &Locks, b: &Locks| {
                a.stripes.start < b.stripes.end && b.stripes.start < a.stripes.end && !(a.shared && b.shared)
            };
            let free =
                |w: &Running| self.running.values().all(|o| o.order >= w.order || !meets(&o.locks, &w.locks));
            let Some((&ticket, work)) =
                self.running.iter().find(|(_, w)| !w.started && free(w)).map(|(t, w)| (t, w.work))
            else {
                return;
            };
            if let Some(w) = self.running.get_mut(&ticket) {
                w.started = true;
            }
            self.planned(|array, now, plan| array.start(now, ticket, &work, plan));
        }
    }

    fn planned(&mut self, act: impl FnOnce(&mut dyn Array, SimTime, &mut MemberPlan)) {
        self.now += SimTime::from_ms(1);
        let mut plan = MemberPlan::new(true);
        act(&mut *self.array, self.now, &mut plan);
        for delivery in plan.deliveries() {
            if let Some(w) = self.running.get_mut(&delivery.ticket) {
                self.staging.deliver(&plan, delivery, &mut w.host);
            }
        }
        self.records.append(plan.records());
        for outcome in plan.outcomes() {
            match *outcome {
                Outcome::Acknowledged(ticket) => self.acknowledge(ticket),
                Outcome::Ended(ticket) => self.over(ticket, None),
                Outcome::Refused(ticket, why) => self.over(ticket, Some(why)),
            }
        }
        for op in plan.ops() {
            let of = self.running.get(&op.buffers).expect("a request for a work that is over");
            let data = match op.request.op {
                HostOp::Write => self.staging.gather(&plan, op, &of.host),
                _ => Vec::new(),
            };
            let w = self.running.get_mut(&op.ticket).expect("a request of a work that is over");
            w.waiting += 1;
            self.disks[op.member.at()].queue.push_back((*op, data, plan.parts(op).to_vec()));
        }
        plan.jobs().to_vec().into_iter().for_each(|job| self.enter(Work::Job(job), Vec::new(), Vec::new()));
        // Dead disks answer nothing.
        for i in 0..self.disks.len() {
            if self.disks[i].dead {
                self.drop_queue(i);
            }
        }
    }

    fn acknowledge(&mut self, ticket: Ticket) {
        let Some(w) = self.running.get_mut(&ticket).filter(|w| !w.acked) else { return };
        w.acked = true;
        let Work::Host(r @ HostRequest { op: HostOp::Write | HostOp::Discard, .. }) = w.work else { return };
        for (i, block) in (r.lba.0..r.lba.0 + r.blocks.0).enumerate() {
            if w.order < self.newest[block as usize] {
                continue;
            }
            self.newest[block as usize] = w.order;
            let to = &mut self.acked[range(Lba(block), Blocks(1))];
            match r.op {
                HostOp::Write => {
                    to.copy_from_slice(&w.host[i * BYTES..][..BYTES]);
                    self.vague.remove(&block);
                }
                _ if self.discards => to.fill(0),
                _ => _ = self.vague.insert(block),
            }
        }
    }

    fn over(&mut self, ticket: Ticket, refusal: Option<Refusal>) {
        if refusal.is_none() {
            self.acknowledge(ticket);
        }
        self.staging.end(ticket);
        let Some(w) = self.running.remove(&ticket) else { return };
        assert_eq!(w.waiting, 0, "{}: ended in mid-phase", self.text);
        match (w.work, refusal) {
            (Work::Host(_), Some(_)) => self.refused += 1,
            (Work::Host(r), None) if r.op == HostOp::Read => {
                for (i, (got, want)) in w.host.chunks(BYTES).zip(w.want.chunks(BYTES)).enumerate() {
                    let (text, a, b) = (&self.text, &got[..8], &want[..8]);
                    assert!(got == want, "{text}: {r:?}: block {i} is {a:02x?}, not {b:02x?}");
                }
                self.last_read = w.host;
            }
            _ => {}
        }
    }

    /// Carries out one member request, of a member drawn; `false`: nothing waits.
    pub fn step(&mut self, rng: &mut Rng) -> bool {
        let busy: Vec<usize> = (0..self.disks.len()).filter(|i| !self.disks[*i].queue.is_empty()).collect();
        if busy.is_empty() {
            return self.wake();
        }
        let i = busy[rng.below(busy.len() as u64) as usize];
        let disk = &mut self.disks[i];
        let Some((op, data, parts)) = disk.queue.pop_front() else { return false };
        self.done += 1;
        match op.request.op {
            HostOp::Write => disk.carry_out(&op.request, HostBuffer::Write(&data)),
            HostOp::Read => {
                let mut out = vec![0x22; op.request.blocks.bytes() as usize];
                disk.carry_out(&op.request, HostBuffer::Read(&mut out));
                if let Some(w) = self.running.get_mut(&op.buffers) {
                    self.staging.scatter(op.buffers, &parts, &out, &mut w.host);
                }
            }
            _ => disk.carry_out(&op.request, HostBuffer::None),
        }
        self.answered(op.ticket, true);
        true
    }

    fn answered(&mut self, ticket: Ticket, ok: bool) {
        let Some(w) = self.running.get_mut(&ticket) else { return };
        w.waiting -= 1;
        w.lost |= !ok;
        if w.waiting == 0 {
            let lost = std::mem::take(&mut w.lost);
            let busy = self.running.values().any(|w| matches!(w.work, Work::Host(_)));
            self.planned(|array, now, plan| array.complete(now, Phase { ticket, lost, busy }, plan));
            self.start_ready();
        }
    }

    fn drop_queue(&mut self, i: usize) {
        while let Some((op, ..)) = self.disks[i].queue.pop_front() {
            self.answered(op.ticket, op.request.op != HostOp::Read);
        }
    }

    /// Lets the array do what it wants to do by itself; `false`: nothing.
    pub fn wake(&mut self) -> bool {
        let Some(at) = self.array.wake_at(self.running.is_empty().then_some(SimTime::ZERO)) else {
            return false;
        };
        self.now = self.now.max(at);
        self.planned(|array, now, plan| array.wake(now, plan));
        self.start_ready();
        true
    }

    /// A disk dies, with all that was waiting for it.
    pub fn kill(&mut self, disk: usize) {
        self.disks[disk].dead = true;
        let member = MemberId(disk as u32);
        self.planned(|array, now, plan| array.failed(now, member, plan));
        self.drop_queue(disk);
        self.start_ready();
    }

    /// A fresh disk takes its place.
    pub fn replace(&mut self, disk: usize) {
        self.disks[disk] = Disk::new(&self.layer, &self.context);
        let member = MemberId(disk as u32);
        if self.array.rebuildable(member) {
            self.array.reported(member, &zones_of(&*self.disks[disk].layer));
        }
        self.planned(|array, now, plan| array.replaced(now, member, plan));
        self.start_ready();
    }

    /// Everything that waits is carried out.
    pub fn settle(&mut self, rng: &mut Rng) {
        while self.step(rng) {}
        assert!(self.running.is_empty(), "{}: works that nobody ends: {}", self.text, self.running.len());
    }

    /// Random requests, up to four at a time, each member at its own pace.
    pub fn exercise(&mut self, requests: u64, longest: u64, rng: &mut Rng) {
        let space = self.array.host_blocks().0;
        for _ in 0..requests {
            let (op, lba, blocks) = random_request(rng, space, longest.min(space));
            self.submit(op, lba, blocks, rng);
            while self.running.len() > 4 || rng.one_in(3) {
                if !self.step(rng) {
                    break;
                }
            }
        }
    }

    /// Settles, then reads everything.
    pub fn read_back(&mut self, rng: &mut Rng) {
        self.settle(rng);
        let space = self.array.host_blocks().0;
        let mut at = 0;
        while at < space {
            let n = (1 + rng.below(97)).min(space - at);
            self.submit(HostOp::Read, at, n, rng);
            at += n;
        }
        self.settle(rng);
    }

    /// What a disk holds, as its layer shows it.
    pub fn disk(&mut self, disk: usize) -> Vec<u8> {
        let disk = &mut self.disks[disk];
        let request = HostRequest::new(HostOp::Read, Lba(0), disk.layer.host_blocks());
        let mut out = vec![0; request.blocks.bytes() as usize];
        disk.carry_out(&request, HostBuffer::Read(&mut out));
        out
    }

    /// Blocks at which the XOR over all disks is not zero.
    pub fn parity_faults(&mut self) -> usize {
        let mut sum = self.disk(0);
        for i in 1..self.real {
            sum.iter_mut().zip(self.disk(i)).for_each(|(a, b)| *a ^= b);
        }
        sum.chunks(BYTES).filter(|b| b.iter().any(|x| *x != 0)).count()
    }

    /// The power fails: what waits is lost, and a fresh array recovers. Blocks that were being written may be old or new;
    /// the model becomes what is there.
    ///
    /// # Panics
    /// When a block is neither.
    pub fn cut(&mut self, rng: &mut Rng) {
        self.cut_losing(None, rng);
    }

    /// The same; with the power a disk is lost.
    ///
    /// # Panics
    /// When a block is neither old nor new.
    pub fn cut_losing(&mut self, disk: Option<usize>, rng: &mut Rng) {
        let mut may: Vec<(std::ops::Range<usize>, Vec<u8>)> = Vec::new();
        for w in std::mem::take(&mut self.running).into_values() {
            if let Work::Host(r) = w.work
                && !w.acked
            {
                match r.op {
                    HostOp::Write => may.push((range(r.lba, r.blocks), w.host)),
                    HostOp::Discard if self.discards => {
                        may.push((range(r.lba, r.blocks), vec![0; r.blocks.bytes() as usize]));
                    }
                    HostOp::Discard => self.vague.extend(r.lba.0..r.lba.0 + r.blocks.0),
                    _ => {}
                }
            }
        }
        self.disks.iter_mut().for_each(|d| d.queue.clear());
        self.staging = Staging::default();
        self.array = Self::build(&self.text, &self.disks[..self.real]).array;
        for (i, disk) in (0..).zip(&self.disks[..self.real]) {
            self.array.reported(MemberId(i), &zones_of(&*disk.layer));
        }
        let records = std::mem::take(&mut self.records);
        self.planned(|array, _, plan| array.recover(&records, plan));
        if let Some(disk) = disk {
            self.disks[disk].dead = true;
            let member = MemberId(disk as u32);
            self.planned(|array, now, plan| array.failed(now, member, plan));
        }
        self.records.clear();
        self.array.checkpoint(&mut self.records);
        self.start_ready();
        self.settle(rng);
        self.model.copy_from_slice(&self.acked);
        let found = self.read_all(rng);
        for (i, block) in found.chunks(BYTES).enumerate() {
            let at = i * BYTES..(i + 1) * BYTES;
            let new = may
                .iter()
                .filter(|(r, _)| r.contains(&at.start))
                .any(|(r, data)| block == &data[at.start - r.start..][..BYTES]);
            assert!(
                new || block == &self.acked[at.clone()] || self.vague.contains(&(i as u64)),
                "{}: block {i} is neither old nor new",
                self.text
            );
        }
        self.model.copy_from_slice(&found);
        self.acked.copy_from_slice(&found);
        self.vague.clear();
    }

    /// All of the host's space, not compared with anything.
    fn read_all(&mut self, rng: &mut Rng) -> Vec<u8> {
        let request = HostRequest::new(HostOp::Read, Lba(0), self.array.host_blocks());
        self.enter(Work::Host(request), vec![0x33; request.blocks.bytes() as usize], Vec::new());
        self.start_ready();
        self.settle(rng);
        std::mem::take(&mut self.last_read)
    }
}
