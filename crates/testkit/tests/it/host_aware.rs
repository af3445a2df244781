//! `host-aware` against a second model of its zones and bytes, which shares no code with it; with the power cut at every media operation;
//! and that a host which stays sequential never makes it clean.

use smrlab_disk::DriveModel;
use smrlab_stl::{
    BuildContext, Executor, HostBuffer, HostRequest, OpId, Plan, Records, Refusal, StepEnd, TranslationLayer,
};
use smrlab_testkit::{PlainMedium, Rng, drives};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction, ZoneCondition, ZoneKind};
use std::ops::Range;
use std::sync::Arc;

pub(crate) const BLOCK: usize = 512;
/// The condition of zones without a write pointer.
const CONVENTIONAL: &str = "not-write-pointer";
pub(crate) const SMALL: &str = "host-aware,zone=16KiB,log=32KiB,optimal_open=3,optimal_nonseq=4,map_trigger=6,map_limit=9,memory=16blk,packet=6blk,idle=10ms,conventional=10%";

/// A fresh layer.
pub(crate) fn build_on(context: &BuildContext) -> Box<dyn TranslationLayer> {
    smrlab_stl::build(SMALL, context).expect("built before").layer
}

fn build(drive: &Arc<DriveModel>) -> Option<Box<dyn TranslationLayer>> {
    smrlab_stl::build(SMALL, &BuildContext::new(drive.clone())).ok().map(|b| b.layer)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    span: Range<u64>,
    /// As the report says, and how far it was written since it was reset.
    condition: &'static str,
    written: u64,
    /// Since the log was empty it was written behind its pointer only, and nothing of it discarded.
    in_order: bool,
    /// Blocks of it were discarded since it was reset.
    discarded: bool,
}

impl Zone {
    fn open(&self) -> bool {
        self.condition.ends_with("-open")
    }

    fn rest(&mut self) {
        if self.open() {
            self.condition = if self.written == 0 { "empty" } else { "closed" };
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Model {
    zones: Vec<Zone>,
    /// In the order in which writes opened them; others that are so no more.
    opened: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Model {
    pub(crate) fn of(layer: &dyn TranslationLayer) -> Self {
        let mut zones = Vec::new();
        layer.zones(Lba(0), &mut |z| {
            let span = z.start.0..z.end().0;
            let condition = if z.kind == ZoneKind::Conventional { CONVENTIONAL } else { "empty" };
            zones.push(Zone { span, condition, written: 0, in_order: true, discarded: false });
            true
        });
        Self { zones, opened: Vec::new(), bytes: vec![0; layer.host_blocks().bytes() as usize] }
    }

    fn meant(&self, r: &HostRequest) -> Vec<usize> {
        let end = r.lba.0 + r.blocks.0;
        (0..self.zones.len())
            .filter(|i| self.zones[*i].span.start < end && r.lba.0 < self.zones[*i].span.end)
            .collect()
    }

    /// Room for one more open zone: a zone that a write opened longest ago is closed for it.
    fn room(&mut self) -> bool {
        if self.zones.iter().filter(|z| z.open()).count() < 3 {
            return true;
        }
        let oldest = self.opened.iter().copied().find(|&z| self.zones[z].condition == "implicitly-open");
        if let Some(oldest) = oldest {
            self.zones[oldest].rest();
        }
        oldest.is_some()
    }

    fn write(&mut self, r: &HostRequest, data: &[u8]) {
        self.bytes[Blocks(r.lba.0).bytes() as usize..][..data.len()].copy_from_slice(data);
        for i in self.meant(r) {
            if self.zones[i].condition == CONVENTIONAL {
                continue;
            }
            let span = self.zones[i].span.clone();
            let (from, to) = (r.lba.0.max(span.start), (r.lba.0 + r.blocks.0).min(span.end));
            self.zones[i].in_order &= from == span.start + self.zones[i].written;
            self.zones[i].written = self.zones[i].written.max(to - span.start);
            if self.zones[i].condition == "full" || self.zones[i].written == span.end - span.start {
                self.zones[i].condition = "full";
            } else if !self.zones[i].open() {
                let room = self.room();
                self.zones[i].condition = if room { "implicitly-open" } else { "closed" };
                self.opened.retain(|z| *z != i);
                self.opened.push(i);
            }
        }
    }

    fn one(&mut self, action: ZoneAction, i: usize) -> bool {
        match (action, self.zones[i].condition) {
            (_, CONVENTIONAL) => return false,
            (ZoneAction::Reset, _) => {
                let zone = &mut self.zones[i];
                (zone.condition, zone.written, zone.discarded) = ("empty", 0, false);
                self.bytes[zone.span.start as usize * BLOCK..zone.span.end as usize * BLOCK].fill(0);
            }
            (ZoneAction::Close, _) => self.zones[i].rest(),
            (_, "full") => {}
            (_, from) => {
                if !from.ends_with("-open") && !self.room() {
                    return false;
                }
                self.zones[i].condition = if action == ZoneAction::Open { "explicitly-open" } else { "full" };
            }
        }
        true
    }

    /// With some zones, or with all blocks of the drive.
    fn act(&mut self, action: ZoneAction, meant: &[usize], all: bool) -> bool {
        let is = |z: &usize, condition| self.zones[*z].condition == condition;
        if let ([one], false) = (meant, all) {
            return self.one(action, *one);
        }
        if !all {
            // Several zones: each of them or none.
            let mut after = self.clone();
            let done = meant.iter().filter(|z| !is(z, CONVENTIONAL)).all(|z| after.one(action, *z));
            if done {
                *self = after;
            }
            return done;
        }
        let explicit = self.zones.iter().filter(|z| z.condition == "explicitly-open").count();
        let closed: Vec<usize> = meant.iter().copied().filter(|z| is(z, "closed")).collect();
        match action {
            ZoneAction::Open if explicit + closed.len() > 3 => false,
            ZoneAction::Open => closed.into_iter().all(|z| self.one(action, z)),
            ZoneAction::Finish => {
                for z in meant {
                    if self.zones[*z].open() || self.zones[*z].condition == "closed" {
                        self.zones[*z].condition = "full";
                    }
                }
                true
            }
            _ => {
                let others: Vec<usize> = meant.iter().copied().filter(|z| !is(z, CONVENTIONAL)).collect();
                others.into_iter().all(|z| self.one(action, z))
            }
        }
    }

    /// Whether the command is done; reads fill `data`.
    pub(crate) fn go(&mut self, r: &HostRequest, data: &mut [u8]) -> bool {
        let range = Blocks(r.lba.0).bytes() as usize..(Blocks(r.lba.0).bytes() + r.blocks.bytes()) as usize;
        match r.op {
            HostOp::Write => self.write(r, data),
            HostOp::Read => data.copy_from_slice(&self.bytes[range]),
            HostOp::Discard => {
                self.bytes[range].fill(0);
                self.meant(r).into_iter().for_each(|z| {
                    self.zones[z].in_order = false;
                    self.zones[z].discarded = true;
                });
            }
            HostOp::Zone(action) => {
                return self.act(action, &self.meant(r), r.all_zones);
            }
            _ => {}
        }
        true
    }
}

pub(crate) fn same_zones(layer: &dyn TranslationLayer, model: &Model, what: &str) {
    let mut own = model.zones.iter();
    layer.zones(Lba(0), &mut |z| {
        let wanted = own.next().expect("as many");
        let pointer =
            (!["full", CONVENTIONAL].contains(&wanted.condition)).then(|| wanted.span.start + wanted.written);
        let told = (z.start.0..z.end().0, z.condition.name(), z.pointer.map(|p| p.0));
        assert_eq!(told, (wanted.span.clone(), wanted.condition, pointer), "after {what}");
        assert!(!z.non_sequential || !wanted.in_order, "zone {told:?} was written in order: {what}");
        true
    });
    assert_eq!(own.next(), None);
}

/// A command of any kind, which may well be refused.
pub(crate) fn random_command(model: &Model, rng: &mut Rng) -> HostRequest {
    let all = (model.bytes.len() / BLOCK) as u64;
    let zone = &model.zones[rng.below(model.zones.len() as u64) as usize];
    let blocks = zone.span.end - zone.span.start;
    let pointer = (zone.span.start + zone.written).min(all - 1);
    let action = HostOp::Zone(ZoneAction::ALL[rng.below(4) as usize]);
    let (op, lba, blocks) = match rng.below(20) {
        0..=6 => (HostOp::Write, pointer, 1 + rng.below(blocks)),
        7..=11 => (HostOp::Write, rng.below(all), 1 + rng.below(20)),
        12..=14 => (HostOp::Read, rng.below(all), 1 + rng.below(2 * blocks)),
        15 => (HostOp::Discard, rng.below(all), 1 + rng.below(blocks)),
        16 => (action, rng.below(all), 1 + rng.below(all)),
        17 => (HostOp::Zone(ZoneAction::Reset), zone.span.start, blocks),
        18 => (action, 0, all),
        _ => (action, zone.span.start, blocks),
    };
    let request = HostRequest::new(op, Lba(lba), Blocks(blocks.min(all - lba)));
    let zones = matches!(op, HostOp::Zone(_)) && request.blocks.0 == all;
    HostRequest { all_zones: zones && rng.below(2) == 0, ..request }
}

struct Rig {
    drive: Arc<DriveModel>,
    layer: Box<dyn TranslationLayer>,
    medium: PlainMedium,
    records: Records,
    model: Model,
    non_sequential: u64,
    suboptimal: u32,
    /// The most zones that were out of order, and writes to such while more were than are recommended.
    most: u32,
    over: u32,
}

impl Rig {
    fn new(drive: &Arc<DriveModel>) -> Option<Self> {
        let layer = build(drive)?;
        let medium = PlainMedium::new(drive.geometry(), drive.interference());
        let model = Model::of(&*layer);
        Some(Self {
            drive: drive.clone(),
            layer,
            medium,
            records: Records::default(),
            model,
            non_sequential: 0,
            suboptimal: 0,
            most: 0,
            over: 0,
        })
    }

    fn go(&mut self, r: &HostRequest, rng: &mut Rng, cuts: bool) {
        let mut data = vec![0; r.blocks.bytes() as usize];
        if r.op == HostOp::Write {
            data.chunks_mut(8).for_each(|w| w.copy_from_slice(&rng.bits().to_le_bytes()));
        }
        let (mut next, mut wanted) = (self.model.clone(), data.clone());
        let done = next.go(r, &mut wanted);
        let mut plan = Plan::new(true, true);
        self.layer.submit(SimTime::ZERO, r, &mut plan);
        assert_eq!(plan.refusal().is_none(), done, "{r:?}");
        assert!(done || next == self.model && plan.records().is_empty(), "a refusal changes nothing");
        if cuts {
            self.cut_everywhere(&plan, &data, &next);
        }
        let host = match r.op {
            HostOp::Read => HostBuffer::Read(&mut data),
            HostOp::Write => HostBuffer::Write(&data),
            _ => HostBuffer::None,
        };
        let Ok(()) = Executor::default().run(&plan, host, &mut self.medium);
        assert!(data == wanted, "{r:?} reads other bytes");
        self.records.append(plan.records());
        // Counted are writes that do not begin at the write pointer of their zone.
        let first = self.model.zones.iter().find(|z| z.span.contains(&r.lba.0)).expect("in a zone");
        let at_pointer = first.condition == CONVENTIONAL || r.lba.0 == first.span.start + first.written;
        self.suboptimal += u32::from(r.op == HostOp::Write && !at_pointer);
        self.model = next;
        same_zones(&*self.layer, &self.model, &format!("{r:?}"));
        let (mut now, mut left) = (0, false);
        self.layer.zones(Lba(0), &mut |z| {
            now += u32::from(z.non_sequential);
            left |= z.non_sequential && z.start.0 < r.lba.0 + r.blocks.0 && r.lba.0 < z.end().0;
            true
        });
        self.non_sequential += u64::from(now);
        self.most = self.most.max(now);
        self.over += u32::from(r.op == HostOp::Write && left && now > 4);
        let counted = self.layer.facts().zone_statistics.expect("it has zones");
        let counted = (counted.suboptimal, counted.most_non_sequential, counted.over_recommended);
        assert_eq!(counted, (self.suboptimal, self.most, self.over), "{r:?}");
    }

    fn clean(&mut self) {
        while self.layer.background_after().is_some() {
            let mut plan = Plan::new(true, true);
            self.layer.background(SimTime::ZERO, &mut plan);
            let Ok(()) = Executor::default().run(&plan, HostBuffer::None, &mut self.medium);
            self.records.append(plan.records());
            self.layer.background_end(StepEnd::Done);
        }
    }

    /// After a cut the pointer of each zone is that of before or after the command, or between, and behind it there is nothing.
    fn cut_everywhere(&self, plan: &Plan, data: &[u8], next: &Model) {
        for whole in 0..=plan.ops().len() {
            let (mut medium, mut exec) = (self.medium.clone(), Executor::default());
            let mut host = HostBuffer::Write(data);
            for id in 0..whole as u32 {
                let Ok(()) = exec.step(plan, OpId(id), &mut host, &mut medium);
            }
            let mut records = self.records.clone();
            records.extend(plan.records_within(whole));
            let mut layer = build(&self.drive).expect("as before");
            let mut again = Plan::new(true, true);
            layer.recover(&records, &mut again);
            let Ok(()) = Executor::default().run(&again, HostBuffer::None, &mut medium);
            let mut bytes = vec![0x11; next.bytes.len()];
            let all = HostRequest::new(HostOp::Read, Lba(0), layer.host_blocks());
            let mut plan = Plan::new(true, false);
            layer.submit(SimTime::ZERO, &all, &mut plan);
            let Ok(()) = Executor::default().run(&plan, HostBuffer::Read(&mut bytes), &mut medium);
            let mut at = 0;
            layer.zones(Lba(0), &mut |z| {
                let (before, after) = (&self.model.zones[at], &next.zones[at]);
                at += 1;
                assert!(!z.condition.is_open());
                let Some(pointer) = z.pointer else { return true };
                let (low, high) = (before.written.min(after.written), before.written.max(after.written));
                assert!((low..=high).contains(&(pointer.0 - z.start.0)), "{z:?}: {before:?} {after:?}");
                let behind = &bytes[Blocks(pointer.0).bytes() as usize..Blocks(z.end().0).bytes() as usize];
                assert!(behind.iter().all(|b| *b == 0), "{z:?} returns what is behind its pointer");
                true
            });
            for (i, got) in bytes.chunks(BLOCK).enumerate() {
                let of = |m: &Model| m.bytes[i * BLOCK..][..BLOCK].to_vec();
                assert!(got == of(&self.model) || got == of(next), "block {i} after operation {whole}");
            }
        }
    }
}

#[test]
fn random_commands_do_what_a_second_model_says() {
    let (mut fits, mut non_sequential, mut over) = (0, 0, 0);
    for (name, drive) in drives::all() {
        let Some(mut rig) = Rig::new(&drive) else { continue };
        println!("{SMALL} on {name}");
        fits += 1;
        let mut rng = Rng::new(fits);
        for i in 0..2000 {
            let r = random_command(&rig.model, &mut rng);
            rig.go(&r, &mut rng, false);
            if i % 100 == 99 {
                rig.clean();
                rig.layer.zones(Lba(0), &mut |z| {
                    assert!(!z.non_sequential, "the log is empty");
                    true
                });
                rig.model.zones.iter_mut().for_each(|z| z.in_order = !z.discarded);
            }
        }
        (non_sequential, over) = (non_sequential + rig.non_sequential, over + rig.over);
    }
    assert!(fits >= 5 && non_sequential > 1000 && over > 100, "{fits} drives, {non_sequential}, {over}");
}

#[test]
fn pointers_and_bytes_survive_a_cut_at_every_media_operation() {
    let wanted = ["tiny", "zones and skew", "wide head"];
    for (_, drive) in drives::all().into_iter().filter(|d| wanted.contains(&d.0)) {
        let Some(mut rig) = Rig::new(&drive) else { continue };
        let mut rng = Rng::new(7);
        for _ in 0..150 {
            let r = random_command(&rig.model, &mut rng);
            rig.go(&r, &mut rng, true);
        }
    }
}

/// Writers that take turns, each in a zone of its own, with FUA and without; a zone is reset before it is written again.
/// A zone that failed takes no writes and no discards; one that can still be read is read.
#[test]
fn a_failed_zone_takes_no_writes() {
    let drive = drives::plain(400, 64, 2, 16);
    for (condition, why, reads) in [
        (ZoneCondition::ReadOnly, Refusal::ZoneReadOnly, None),
        (ZoneCondition::Offline, Refusal::ZoneOffline, Some(Refusal::ZoneOffline)),
    ] {
        let mut layer = build(&drive).unwrap();
        let mut zone = None;
        layer.zones(Lba(0), &mut |z| {
            zone = zone.or(z.kind.has_pointer().then_some(z.start));
            true
        });
        let (zone, mut plan) = (zone.unwrap(), Plan::new(false, true));
        assert!(layer.fail_zone(zone, condition, &mut plan));
        for (op, refused) in [(HostOp::Write, Some(why)), (HostOp::Discard, Some(why)), (HostOp::Read, reads)]
        {
            plan.clear();
            layer.submit(SimTime::ZERO, &HostRequest::new(op, zone, Blocks(8)), &mut plan);
            assert_eq!(plan.refusal(), refused, "{condition:?} {op:?}");
        }
    }
}

#[test]
fn a_host_that_stays_sequential_never_cleans() {
    let (_, drive) = drives::all().into_iter().find(|d| d.0 == "tiny").expect("a drive");
    let mut rig = Rig::new(&drive).expect("fits");
    let sequential = |rig: &Rig| {
        (0..rig.model.zones.len())
            .filter(|i| rig.model.zones[*i].condition != CONVENTIONAL)
            .collect::<Vec<_>>()
    };
    let mut rng = Rng::new(1);
    for round in 0..3 {
        let mut left = sequential(&rig);
        while !left.is_empty() {
            let i = left[rng.below(left.len().min(5) as u64) as usize];
            let zone = rig.model.zones[i].clone();
            let span = Blocks(zone.span.end - zone.span.start);
            let full = zone.written == span.0;
            let op = if full { HostOp::Zone(ZoneAction::Reset) } else { HostOp::Write };
            if full && (round == 2 || rng.below(2) == 0) {
                left.retain(|z| *z != i);
                continue;
            }
            let at = if full { zone.span.start } else { zone.span.start + zone.written };
            let blocks = if full { span.0 } else { (1 + rng.below(12)).min(zone.span.end - at) };
            let mut r = HostRequest::new(op, Lba(at), Blocks(blocks));
            r.fua = rng.below(3) == 0;
            rig.go(&r, &mut rng, false);
            assert_eq!(rig.layer.background_after(), None, "there is nothing to clean");
        }
    }
    assert_eq!(rig.non_sequential, 0);
}
