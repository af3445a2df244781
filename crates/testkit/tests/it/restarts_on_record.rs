//! What layers and arrays plan for one random load each with power cuts, restarts, checkpoints and steps of background work, as it is on record in `restarts_on_record.txt` beside what
//! they [do](crate::on_record) with a drive below them: operations, records, fences, pieces, where requests would begin, and what is told of
//! zones.

use crate::arrays::{ARRAYS, losses};
use crate::on_record::{FULL_CACHES, Seen};
use crate::zoned_arrays::ZONED;
use smrlab_disk::DriveModel;
use smrlab_stl::{
    BuildContext, HostRequest, Metadata, OpId, Plan, Records, StepEnd, TranslationLayer, counted, zones_of,
};
use smrlab_testkit::record::differs;
use smrlab_testkit::{ArrayHarness, Rng, drives, layers};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, Zone, ZoneAction, ZoneCondition};
use std::fmt::Write as _;
use std::sync::Arc;

const ON_RECORD: &str = include_str!("restarts_on_record.txt");

/// A layer, what it has made durable, and what happened.
struct Rig<'a> {
    text: &'a str,
    context: BuildContext,
    layer: Box<dyn TranslationLayer>,
    records: Records,
    plan: Plan,
    now: SimTime,
    seen: Seen,
    recorded: u64,
}

fn built(text: &str, context: &BuildContext) -> Option<Box<dyn TranslationLayer>> {
    smrlab_stl::build(text, context).ok().map(|built| built.layer)
}

impl<'a> Rig<'a> {
    fn new(text: &'a str, drive: &Arc<DriveModel>, metadata: Metadata) -> Option<Self> {
        let context = BuildContext { metadata, ..BuildContext::new(Arc::clone(drive)) };
        let layer = built(text, &context)?;
        let (records, plan, seen) = (Records::default(), Plan::new(true, true), Seen::default());
        Some(Self { text, context, layer, records, plan, now: SimTime::ZERO, seen, recorded: 0 })
    }

    /// Notes the plan, and keeps the records that are durable after so many of its operations.
    fn carried_out(&mut self, done: usize) {
        let plan = &self.plan;
        for (i, op) in plan.ops().iter().enumerate() {
            let stated = plan.stated(OpId(i as u32)).map_or(0, |t| t.0);
            self.seen.digest.note(&[op.pba.0, op.blocks.0, op.dir as u64, op.cause as u64, stated]);
            self.seen.digest.note_debug(&plan.pieces(OpId(i as u32)));
        }
        for (at, r) in plan.recorded_after().iter().zip(plan.records().iter()) {
            self.seen.digest.note(&[(*at).into(), r.tag.into(), r.words[0], r.words[1], r.words[2]]);
        }
        let at = plan.fences().iter().map(|f| u64::from(*f)).collect::<Vec<_>>();
        self.seen.digest.note(&at);
        self.seen.digest.note(&[plan.ack_after() as u64, plan.extents().into()]);
        self.seen.digest.note_debug(&(
            plan.zeroes(),
            plan.cleanings(),
            plan.pauses(),
            plan.outcome(),
            plan.zones_reset(),
        ));
        self.seen.operations += plan.ops().len() as u64;
        self.recorded += plan.records().len() as u64;
        self.records.extend(plan.records_within(done));
        self.plan.clear();
    }

    /// The power fails after so many operations of the plan; a fresh layer recovers.
    fn cut(&mut self, done: usize) {
        self.carried_out(done);
        let mut fresh = built(self.text, &self.context).expect("built before");
        fresh.recover(&self.records, &mut self.plan);
        self.layer = fresh;
        self.carried_out(usize::MAX);
    }

    fn request(&mut self, r: &HostRequest) {
        self.seen.asked += 1;
        if let Some((pba, dir)) = self.layer.locate(r) {
            self.seen.digest.note(&[pba.0, dir as u64]);
        }
        self.layer.submit(self.now, r, &mut self.plan);
    }

    fn background(&mut self, end: StepEnd) {
        let Some(after) = self.layer.background_after() else { return };
        self.now += after;
        self.layer.background(self.now, &mut self.plan);
        self.layer.background_end(end);
        if end == StepEnd::GivenUp { self.plan.clear() } else { self.carried_out(usize::MAX) }
    }

    /// The records of now take the place of all before.
    fn checkpoint(&mut self) {
        self.records.clear();
        self.layer.checkpoint(&mut self.records);
        for r in self.records.iter() {
            self.seen.digest.note(&[r.tag.into(), r.words[0], r.words[1], r.words[2]]);
        }
    }

    fn zones(&mut self) {
        self.layer.zones(Lba(0), &mut |zone| {
            let pointer = zone.pointer.map_or(u64::MAX, |p| p.0);
            self.seen.digest.note(&[
                zone.start.0,
                zone.condition as u64,
                pointer,
                zone.non_sequential.into(),
            ]);
            true
        });
    }
}

/// A request of a host that mostly keeps its zones in order, where it has some.
fn any_request(space: u64, zones: &[Zone], rng: &mut Rng) -> HostRequest {
    if !zones.is_empty() && rng.below(4) > 0 {
        let zone = &zones[rng.below(zones.len().min(12) as u64) as usize];
        let (action, all_zones) = (ZoneAction::ALL[rng.below(4) as usize], rng.one_in(8));
        return match (zone.pointer, rng.below(5)) {
            (_, 0) if all_zones => {
                let r = HostRequest::new(HostOp::Zone(action), Lba(0), Blocks(space));
                HostRequest { all_zones, ..r }
            }
            (_, 0) => HostRequest::new(HostOp::Zone(action), zone.start, zone.blocks),
            (Some(_), 1) => HostRequest::new(HostOp::Append, zone.start, Blocks(8)),
            (Some(at), _) if at < zone.end() => {
                let blocks = (8 * (1 + rng.below(3))).min(zone.end().0 - at.0);
                HostRequest::new(HostOp::Write, at, Blocks(blocks))
            }
            _ => HostRequest::new(HostOp::Read, zone.start, zone.blocks),
        };
    }
    let op = match rng.below(20) {
        0..=13 => HostOp::Write,
        14..=17 => HostOp::Read,
        18 => HostOp::Discard,
        _ => return HostRequest::flush(),
    };
    let most = space.min(if rng.one_in(9) { 40 } else { 7 });
    let blocks = 1 + rng.below(most);
    let near = if rng.one_in(3) { space } else { space.div_ceil(4).max(blocks) };
    HostRequest::new(op, Lba(rng.below(near - blocks + 1)), Blocks(blocks))
}

fn said(mut rig: Rig<'_>) -> String {
    let (space, mut rng, mut cuts) = (rig.layer.host_blocks().0, Rng::new(53), 0);
    for id in 0..800 {
        rig.now += SimTime(1 + rng.below(20_000_000));
        let zones = zones_of(&*rig.layer);
        match rng.below(40) {
            0 => rig.background(StepEnd::GivenUp),
            1..=4 => rig.background(StepEnd::Done),
            5 if id % 4 == 0 => rig.checkpoint(),
            6 => rig.layer.durable(),
            7 if id % 8 == 0 && !zones.is_empty() => {
                let zone = zones[rng.below(zones.len() as u64) as usize].start;
                let condition = if rng.one_in(2) { ZoneCondition::Offline } else { ZoneCondition::ReadOnly };
                rig.layer.fail_zone(zone, condition, &mut rig.plan);
                rig.carried_out(usize::MAX);
            }
            8 => {
                rig.request(&any_request(space, &zones, &mut rng));
                let done = rng.below(rig.plan.ops().len() as u64 + 1);
                rig.cut(done as usize);
                rig.zones();
                cuts += 1;
            }
            _ => {
                rig.request(&any_request(space, &zones, &mut rng).numbered(id));
                rig.carried_out(usize::MAX);
            }
        }
    }
    rig.zones();
    rig.checkpoint();
    let layer = &*rig.layer;
    rig.seen.digest.note_debug(&(layer.facts().fill(), layer.facts().zone_counts, layer.facts().last_tracks));
    let mut out = format!(
        "{} asked, {cuts} cuts, {} operations, {} records, {} of them left, {};",
        rig.seen.asked,
        rig.seen.operations,
        rig.recorded,
        rig.records.len(),
        rig.seen.digest
    );
    counted(layer).iter().for_each(|(name, n)| _ = write!(out, " {name}={n}"));
    out
}

#[test]
fn layers_restart_as_it_is_on_record() {
    let mut wrong = Vec::new();
    for (name, drive) in drives::all().into_iter().filter(|d| ["tiny", "zones and skew"].contains(&d.0)) {
        for text in layers().into_iter().flat_map(|entry| entry.texts()) {
            let metadata = [Metadata::Nv, Metadata::Media];
            for metadata in &metadata[..if name == "tiny" { 2 } else { 1 }] {
                let Some(rig) = Rig::new(&text, &drive, *metadata) else { continue };
                wrong.extend(differs(ON_RECORD, &format!("{text} on {name}, {metadata:?}"), &said(rig)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What an array on bytes does while disks die and are replaced and the power fails, between any two member requests where it survives that.
fn said_by_array(text: &str, layer: &str, drive: &Arc<DriveModel>) -> String {
    let (mut rng, mut array) = (Rng::new(59), ArrayHarness::new(text, layer, drive));
    let lost = losses(text);
    // The others may lose what was acknowledged when a disk dies after a cut: they restart when nothing is under way.
    let cuts = lost == 0 || text.contains("intent=on") || text.contains("journal=on");
    for round in 0..4 {
        array.exercise(60, 30, &mut rng);
        if cuts {
            (0..rng.below(30)).for_each(|_| _ = array.step(&mut rng));
        } else {
            array.settle(&mut rng);
        }
        array.cut(&mut rng);
        array.exercise(20, 30, &mut rng);
        for disk in (0..array.disks()).skip(round).take(lost) {
            array.kill(disk);
            array.exercise(20, 30, &mut rng);
        }
        for disk in (0..array.disks()).skip(round).take(lost) {
            array.replace(disk);
            array.exercise(20, 30, &mut rng);
        }
        array.settle(&mut rng);
    }
    array.read_back(&mut rng);
    let mut out = format!("{} done, {} refused, {};", array.done(), array.refused, array.digest());
    smrlab_array::counted(array.array()).iter().for_each(|(name, n)| _ = write!(out, " {name}={n}"));
    out
}

#[test]
fn arrays_restart_as_it_is_on_record() {
    let plain = drives::plain(60, 8, 2, 4);
    let mut wrong = Vec::new();
    for text in ARRAYS.iter().chain(FULL_CACHES) {
        wrong.extend(differs(ON_RECORD, &format!("{text}, restarts"), &said_by_array(text, "cmr", &plain)));
    }
    let zoned = drives::plain(200, 24, 2, 4);
    for (text, layer) in ZONED {
        wrong.extend(differs(
            ON_RECORD,
            &format!("{text} / {layer}, restarts"),
            &said_by_array(text, layer, &zoned),
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
