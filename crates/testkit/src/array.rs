//! Random requests through an array on bytes, over the event loop that runs and served devices use: several at a time, members in any
//! order, disks that die and are replaced, power cuts between member requests; everything read back, parity checked.
//!
//! Nothing takes a drive time: each waits until the test has it serve one of its requests ([`EventLoop::decides`]), so that a cut may
//! fall between any two. What an SSD is asked for is done before time goes on.

mod bench;
mod cut;
mod restarted;
mod unsynced;

use crate::harness::{BYTES, new_data, random_request};
use crate::{Digest, PlainMedium, Rng};
use bench::{Bench, Disk, Flash, range};
use smrlab_array::{Array, ArrayContext, BuiltArray, EventLoop, Member, MemberId, Records, Schedule, Ssd};
use smrlab_disk::{DriveModel, Model};
use smrlab_drive::{Drive, DriveSetup, sched};
use smrlab_stl::{BuildContext, Executor, HostBuffer, HostRequest, Plan, zones_of};
use smrlab_units::spec::SpecError;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Bytes of SSDs are all in memory.
const MOST_ON_SSDS: Blocks = Blocks(1 << 16);
/// Steps after which works have no end.
const MOST_STEPS: u64 = 5_000_000;

/// A host request that is not answered.
struct Open {
    request: HostRequest,
    /// What it writes, or must bring.
    data: Vec<u8>,
    /// What it brings is compared with that.
    compared: bool,
}

/// See the [module](self).
pub struct ArrayHarness {
    text: String,
    layer: String,
    context: BuildContext,
    event_loop: EventLoop,
    bench: Bench,
    open: BTreeMap<u64, Open>,
    /// Requests so far.
    order: u64,
    /// What the host should read, by order of submission.
    pub model: Vec<u8>,
    /// Of each block: what it may be after a cut, and which request has put it there: those that overlap may be answered in any order.
    acked: Vec<u8>,
    newest: Vec<u64>,
    /// Blocks that were discarded where that promises nothing, and not written since.
    vague: BTreeSet<u64>,
    /// Blocks of writes that were refused, and not written since: which request was the last, and all that they may hold.
    torn: BTreeMap<u64, (u64, Vec<Vec<u8>>)>,
    /// Blocks that were written, and not discarded, since [`promises_begin`](Self::promises_begin).
    promised: BTreeSet<u64>,
    last_read: Vec<u8>,
    /// Requests refused because data are lost.
    pub refused: u64,
    discards: bool,
    unsynced: Option<unsynced::Unsynced>,
}

/// A blank disk with this layer, whether it discards, and its bytes.
fn disk(layer: &str, context: &BuildContext) -> Result<(Drive, bool, Disk), SpecError> {
    let built = smrlab_stl::build(layer, context)?;
    let medium = PlainMedium::new(built.drive.geometry(), built.drive.interference());
    let mechanics = built.drive.mechanics(Some(Model::Instant)).expect("a drive of the kit");
    let stable_locations = built.capabilities.stable_location;
    let setup = DriveSetup { wants_data: true, wants_records: false, stable_locations };
    let disk = Disk { medium, exec: Executor::default() };
    Ok((Drive::new(built.layer, mechanics, setup), built.capabilities.discards, disk))
}

/// The array of `text` on these disks, and the sizes of its SSDs.
fn build<'a>(
    text: &str,
    drives: impl Iterator<Item = &'a Drive>,
) -> Result<(Box<dyn Array>, Vec<Blocks>), SpecError> {
    let (sizes, zones): (Vec<Blocks>, Vec<_>) =
        drives.map(|d| (d.layer().host_blocks(), zones_of(d.layer()))).unzip();
    let chosen = smrlab_array::parse(text)?;
    let BuiltArray { array, ssds } = chosen.build(&ArrayContext::new(&sizes).zoned(&zones))?;
    Ok((array, ssds.into_iter().map(|ssd| ssd.blocks).collect()))
}

fn queued(drive: Drive) -> Member {
    Member::of_drive(drive, &sched::parse("c-look,depth=64").expect("a scheduler"))
}

/// The event loop of an array on disks and SSDs of these sizes.
fn event_loop(array: Box<dyn Array>, drives: Vec<Drive>, ssds: &[Blocks]) -> EventLoop {
    let flash = |blocks: &Blocks| Member::Ssd(Ssd::new(SimTime::from_us(1), 0, *blocks));
    let members = drives.into_iter().map(queued).chain(ssds.iter().map(flash)).collect();
    EventLoop::new(array, members, Vec::new(), Schedule::default(), true).decided_by_caller()
}

impl ArrayHarness {
    /// `text` on disks with `layer` each.
    ///
    /// # Panics
    /// When they do not fit.
    pub fn new(text: &str, layer: &str, drive: &Arc<DriveModel>) -> Self {
        Self::try_new(text, layer, drive).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`new`](Self::new).
    ///
    /// # Errors
    /// What does not fit.
    pub fn try_new(text: &str, layer: &str, drive: &Arc<DriveModel>) -> Result<Self, SpecError> {
        let context = BuildContext::new(Arc::clone(drive));
        let chosen = smrlab_array::parse(text)?;
        let (mut drives, mut bench, mut discards) = (Vec::new(), Bench::default(), true);
        for at in 0..chosen.disks {
            let (drive, own, bytes) = disk(chosen.layer_of(at, layer), &context)?;
            drives.push(drive);
            bench.disks.push(bytes);
            discards &= own;
        }
        let (array, ssds) = build(text, drives.iter())?;
        if ssds.iter().fold(Blocks::ZERO, |all, ssd| all + *ssd) > MOST_ON_SSDS {
            return Err(SpecError::Other(format!("{text}: SSDs of more than {MOST_ON_SSDS} blocks")));
        }
        let flash = |b: &Blocks| Flash { bytes: vec![0x44; b.bytes() as usize], queue: VecDeque::new() };
        bench.ssds = ssds.iter().map(flash).collect();
        let bytes = array.host_blocks().bytes() as usize;
        Ok(Self {
            text: text.to_owned(),
            layer: layer.to_owned(),
            context,
            event_loop: event_loop(array, drives, &ssds),
            bench,
            open: BTreeMap::new(),
            order: 0,
            model: vec![0; bytes],
            acked: vec![0; bytes],
            newest: vec![0; bytes / BYTES],
            vague: BTreeSet::new(),
            torn: BTreeMap::new(),
            promised: BTreeSet::new(),
            last_read: Vec::new(),
            refused: 0,
            discards: chosen.discards(discards),
            unsynced: None,
        })
    }

    /// The array.
    pub fn array(&self) -> &dyn Array {
        self.event_loop.array()
    }

    /// How many disks it has.
    pub fn disks(&self) -> usize {
        self.bench.disks.len()
    }

    /// Member requests carried out.
    pub fn done(&self) -> u64 {
        self.bench.done
    }

    /// All member requests and records so far.
    pub fn digest(&self) -> Digest {
        self.bench.digest
    }

    /// Sends a request; it is carried out by [`step`](Self::step).
    pub fn submit(&mut self, op: HostOp, lba: u64, blocks: u64, rng: &mut Rng) {
        let r = HostRequest::new(op, Lba(lba), Blocks(blocks));
        let at = range(r.lba, r.blocks);
        match op {
            HostOp::Write => self.model[at.clone()].copy_from_slice(&new_data(blocks, rng)),
            HostOp::Discard if self.discards => self.model[at.clone()].fill(0),
            _ => {}
        }
        let data = if op == HostOp::Flush { Vec::new() } else { self.model[at].to_vec() };
        self.send(r, data, true);
        // What is there then is up to the disks: it is written again.
        if op == HostOp::Discard && !self.discards {
            self.submit(HostOp::Write, lba, blocks, rng);
        }
    }

    fn send(&mut self, request: HostRequest, data: Vec<u8>, compared: bool) {
        self.order += 1;
        let request = request.numbered(self.order);
        let host = match request.op {
            HostOp::Write => data.clone(),
            HostOp::Read => vec![0x11; request.blocks.bytes() as usize],
            _ => Vec::new(),
        };
        self.bench.buffers.arrived(request.id, host);
        self.may_change(request.id, request.op, request.lba, request.blocks, &data);
        self.open.insert(request.id, Open { request, data, compared });
        let Ok(()) = self.event_loop.submit(self.event_loop.now(), &request, &mut self.bench);
        self.answers();
    }

    /// Takes what was answered.
    fn answers(&mut self) {
        while let Some(done) = self.event_loop.next_done() {
            let got = self.bench.buffers.answered(done.request.id);
            let Some(Open { request: r, data, compared }) = self.open.remove(&done.request.id) else {
                continue;
            };
            match r.op {
                _ if done.refusal.is_some() => {
                    self.refused += 1;
                    if matches!(r.op, HostOp::Write | HostOp::Discard) {
                        self.turned_down(&r, &data);
                    }
                }
                HostOp::Read => {
                    for (i, (got, want)) in got.chunks(BYTES).zip(data.chunks(BYTES)).enumerate() {
                        let (text, a, b) = (&self.text, &got[..8], &want[..8]);
                        let block = r.lba.0 + i as u64;
                        let torn = self.torn.get(&block).is_some_and(|torn| {
                            self.vague.contains(&block) || torn.1.iter().any(|may| got == may)
                        });
                        assert!(
                            !compared || got == want || torn,
                            "{text}: {r:?}: block {i} is {a:02x?}, not {b:02x?}"
                        );
                    }
                    self.last_read = got;
                }
                HostOp::Write | HostOp::Discard => self.acknowledged(&r, &data),
                _ => {}
            }
        }
    }

    fn acknowledged(&mut self, r: &HostRequest, data: &[u8]) {
        for (i, block) in (r.lba.0..r.lba.0 + r.blocks.0).enumerate() {
            if r.id < self.newest[block as usize] {
                continue;
            }
            self.newest[block as usize] = r.id;
            if r.op == HostOp::Discard {
                self.promised.remove(&block);
                if !self.discards {
                    self.vague.insert(block);
                    continue;
                }
            } else {
                self.promised.insert(block);
            }
            self.acked[range(Lba(block), Blocks(1))].copy_from_slice(&data[i * BYTES..][..BYTES]);
            self.vague.remove(&block);
            self.torn.remove(&block);
        }
    }

    /// A write or discard was refused: its blocks may hold what they held, or what they were to hold.
    fn turned_down(&mut self, r: &HostRequest, data: &[u8]) {
        for (i, block) in (r.lba.0..r.lba.0 + r.blocks.0).enumerate() {
            if r.id < self.newest[block as usize] {
                continue;
            }
            if r.op == HostOp::Discard && !self.discards {
                self.vague.insert(block);
            }
            let held = &self.acked[range(Lba(block), Blocks(1))];
            let torn = self.torn.entry(block).or_insert_with(|| (r.id, vec![held.to_vec()]));
            torn.0 = torn.0.max(r.id);
            torn.1.push(data[i * BYTES..][..BYTES].to_vec());
        }
    }

    /// From here on [`read_promised`](Self::read_promised) knows what was written.
    pub fn promises_begin(&mut self) {
        self.promised.clear();
    }

    /// Settles, then reads each block that was written since, one by one.
    ///
    /// # Panics
    /// When one of them is refused.
    pub fn read_promised(&mut self, rng: &mut Rng) {
        self.settle(rng);
        for block in self.promised.clone() {
            let refused = self.refused;
            self.submit(HostOp::Read, block, 1, rng);
            self.settle(rng);
            assert_eq!(self.refused, refused, "{}: block {block} was acknowledged and is lost", self.text);
        }
    }

    /// Carries out one member request, of a member drawn, or lets time go on; `false`: nothing is to be done.
    pub fn step(&mut self, rng: &mut Rng) -> bool {
        let drives: Vec<MemberId> = self.event_loop.waiting().collect();
        let waits = |ssd: &usize| !self.bench.ssds[*ssd].queue.is_empty();
        let ssds: Vec<usize> = (0..self.bench.ssds.len()).filter(waits).collect();
        let busy = drives.len() + ssds.len();
        // Phases end, and arrays do what they want to at a time, while drives have not done what they are to.
        if busy == 0 || rng.one_in(3) {
            if self.wake() {
                return true;
            }
            if busy == 0 {
                return false;
            }
        }
        let one = rng.below(busy as u64) as usize;
        match drives.get(one) {
            Some(&drive) => {
                let Ok(_) = self.event_loop.decides(drive, &mut self.bench);
            }
            None => self.bench.flashes(ssds[one - drives.len()]),
        }
        self.answers();
        true
    }

    /// Lets time go on until something is due; `false`: nothing is.
    pub fn wake(&mut self) -> bool {
        self.bench.flash_all();
        let Ok(any) = self.event_loop.step(None, &mut self.bench);
        self.answers();
        any
    }

    /// A disk dies, with all that was waiting for it.
    pub fn kill(&mut self, disk: usize) {
        let (now, member) = (self.event_loop.now(), MemberId(disk as u32));
        let Ok(()) = self.event_loop.fail(now, member, &mut self.bench);
        self.answers();
    }

    /// A fresh disk takes its place.
    pub fn replace(&mut self, at: usize) {
        let chosen = smrlab_array::parse(&self.text).expect("built before");
        let (drive, _, bytes) =
            disk(chosen.layer_of(at as u32, &self.layer), &self.context).expect("built before");
        self.bench.disks[at] = bytes;
        let (now, member) = (self.event_loop.now(), MemberId(at as u32));
        let Ok(()) = self.event_loop.replace(now, member, queued(drive), &mut self.bench);
        self.answers();
    }

    /// Everything that waits is carried out.
    pub fn settle(&mut self, rng: &mut Rng) {
        let ended = (0..MOST_STEPS).any(|_| !self.step(rng));
        assert!(ended, "{}: works without an end", self.text);
        assert!(self.event_loop.is_at_rest(), "{}: works that nobody ends", self.text);
        assert!(self.open.is_empty(), "{}: {} requests that nobody answers", self.text, self.open.len());
    }

    /// Random requests, up to four at a time, each member at its own pace.
    pub fn exercise(&mut self, requests: u64, longest: u64, rng: &mut Rng) {
        for _ in 0..requests {
            self.submit_random(longest, rng);
            while self.open.len() > 4 || rng.one_in(3) {
                if !self.step(rng) {
                    break;
                }
            }
        }
    }

    /// Random requests, all of them before any member does anything.
    pub fn burst(&mut self, requests: u64, longest: u64, rng: &mut Rng) {
        (0..requests).for_each(|_| self.submit_random(longest, rng));
    }

    fn submit_random(&mut self, longest: u64, rng: &mut Rng) {
        let space = self.array().host_blocks().0;
        let (op, lba, blocks) = random_request(rng, space, longest.min(space));
        self.submit(op, lba, blocks, rng);
    }

    /// Settles, then reads everything.
    pub fn read_back(&mut self, rng: &mut Rng) {
        self.settle(rng);
        let space = self.array().host_blocks().0;
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
        let drive = self.event_loop.drive_mut(MemberId(disk as u32)).expect("a disk");
        let request = HostRequest::new(HostOp::Read, Lba(0), drive.layer().host_blocks());
        let (mut out, mut plan) = (vec![0; request.blocks.bytes() as usize], Plan::new(true, false));
        drive.layer_mut().submit(SimTime::ZERO, &request, &mut plan);
        let Disk { medium, exec } = &mut self.bench.disks[disk];
        let Ok(()) = exec.run(&plan, HostBuffer::Read(&mut out), medium);
        out
    }

    /// What the layer of a disk counted.
    pub fn counted(&mut self, disk: usize) -> smrlab_stl::Counted {
        let drive = self.event_loop.drive_mut(MemberId(disk as u32)).expect("a disk");
        smrlab_stl::counted(drive.layer())
    }

    /// Blocks at which the XOR over all disks is not zero.
    pub fn parity_faults(&mut self) -> usize {
        let mut sum = self.disk(0);
        for i in 1..self.disks() {
            sum.iter_mut().zip(self.disk(i)).for_each(|(a, b)| *a ^= b);
        }
        sum.chunks(BYTES).filter(|b| b.iter().any(|x| *x != 0)).count()
    }
}
