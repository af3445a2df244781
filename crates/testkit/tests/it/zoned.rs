//! `zoned` against a second model of its zones, which shares no code with it: after each of many random commands conditions, write pointers,
//! refusals and bytes are equal; and after a power cut at every media operation of each.

use smrlab_disk::DriveModel;
use smrlab_stl::{BuildContext, Executor, HostBuffer, HostRequest, OpId, Plan, Record, TranslationLayer};
use smrlab_testkit::{PlainMedium, Rng, drives};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime, ZoneAction, ZoneKind};
use std::sync::Arc;

const BLOCK: usize = 512;

/// One zone of the model: its condition in the words of the report, and the bytes that were written since it was reset.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    start: u64,
    blocks: u64,
    condition: &'static str,
    /// Nothing can be done with it.
    gap: bool,
    bytes: Vec<u8>,
}

impl Zone {
    fn pointer(&self) -> Option<u64> {
        let valid = ["empty", "implicitly-open", "explicitly-open", "closed"].contains(&self.condition);
        valid.then(|| self.start + (self.bytes.len() / BLOCK) as u64)
    }

    fn open(&self) -> bool {
        self.condition.ends_with("-open")
    }

    fn conventional(&self) -> bool {
        self.condition == "not-write-pointer" && !self.gap
    }

    fn rest(&mut self) {
        if self.open() {
            self.condition = if self.bytes.is_empty() { "empty" } else { "closed" };
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    zones: Vec<Zone>,
    /// Zones in the order in which writes opened them, and others that are so no more.
    opened: Vec<usize>,
    most_open: usize,
    most_active: usize,
    zeroes: bool,
}

impl Model {
    fn of(layer: &dyn TranslationLayer, limits: (usize, usize), zeroes: bool) -> Self {
        let mut zones = Vec::new();
        layer.zones(Lba(0), &mut |z| {
            let condition = z.condition.name();
            let bytes = if z.pointer.is_none() { vec![0; z.blocks.bytes() as usize] } else { Vec::new() };
            let gap = z.kind == ZoneKind::Gap;
            zones.push(Zone { start: z.start.0, blocks: z.blocks.0, condition, gap, bytes });
            true
        });
        Self { zones, opened: Vec::new(), most_open: limits.0, most_active: limits.1, zeroes }
    }

    fn at(&self, lba: u64) -> usize {
        self.zones.iter().position(|z| (z.start..z.start + z.blocks).contains(&lba)).expect("in a zone")
    }

    fn is(&self, zone: usize, condition: &str) -> bool {
        self.zones[zone].condition == condition
    }

    /// Takes resources for one more open zone.
    fn take(&mut self, zone: usize) -> Result<(), &'static str> {
        let count = |f: fn(&Zone) -> bool| self.zones.iter().filter(|z| f(z)).count();
        if self.zones[zone].open() {
            return Ok(());
        }
        if self.is(zone, "empty") && count(|z| z.open() || z.condition == "closed") >= self.most_active {
            return Err("too-many-open");
        }
        if count(Zone::open) >= self.most_open {
            let oldest = self.opened.iter().copied().find(|&z| self.is(z, "implicitly-open"));
            self.zones[oldest.ok_or("too-many-open")?].rest();
        }
        Ok(())
    }

    fn write(&mut self, lba: u64, data: &[u8]) -> Result<(), &'static str> {
        let i = self.at(lba);
        let end = lba + (data.len() / BLOCK) as u64;
        if self.zones[i].conventional() {
            if self.zones.iter().any(|z| !z.conventional() && end > z.start) {
                return Err("crosses-zone");
            }
            for (k, block) in data.chunks(BLOCK).enumerate() {
                let zone = self.at(lba + k as u64);
                let at = (lba + k as u64 - self.zones[zone].start) as usize * BLOCK;
                self.zones[zone].bytes[at..at + BLOCK].copy_from_slice(block);
            }
            return Ok(());
        }
        if self.zones[i].gap {
            return Err("gap");
        }
        if self.is(i, "full") {
            return Err("zone-full");
        }
        if self.zones[i].pointer() != Some(lba) || !data.len().is_multiple_of(4096) {
            return Err("not-at-pointer");
        }
        if end > self.zones[i].start + self.zones[i].blocks {
            return Err("crosses-zone");
        }
        self.take(i)?;
        let zone = &mut self.zones[i];
        zone.bytes.extend_from_slice(data);
        if zone.bytes.len() as u64 == zone.blocks * BLOCK as u64 {
            zone.condition = "full";
        } else if !zone.open() {
            zone.condition = "implicitly-open";
            self.opened.retain(|z| *z != i);
            self.opened.push(i);
        }
        Ok(())
    }

    fn read(&self, lba: u64, out: &mut [u8]) -> Result<(), &'static str> {
        let end = lba + (out.len() / BLOCK) as u64;
        let zones = self.at(lba)..self.at(end - 1) + 1;
        if !self.zeroes {
            if zones.len() > 1 && zones.clone().any(|z| !self.zones[z].conventional()) {
                return Err("crosses-zone");
            }
            let zone = &self.zones[zones.start];
            if zone.gap {
                return Err("gap");
            }
            if zone.pointer().is_some_and(|p| end > p) {
                return Err("above-pointer");
            }
        }
        if zones.into_iter().any(|z| self.zones[z].gap) {
            return Err("gap");
        }
        for (k, block) in out.chunks_mut(BLOCK).enumerate() {
            let zone = &self.zones[self.at(lba + k as u64)];
            let at = (lba + k as u64 - zone.start) as usize * BLOCK;
            block.fill(0);
            if let Some(bytes) = zone.bytes.get(at..at + BLOCK) {
                block.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn one(&mut self, action: ZoneAction, i: usize) -> Result<(), &'static str> {
        match (action, self.zones[i].condition) {
            (_, "not-write-pointer") => return Err("unsupported"),
            (ZoneAction::Reset, _) => {
                self.zones[i].bytes.clear();
                self.zones[i].condition = "empty";
            }
            (ZoneAction::Close, _) => self.zones[i].rest(),
            (_, "full") => {}
            (ZoneAction::Open, _) => {
                self.take(i)?;
                self.zones[i].condition = "explicitly-open";
            }
            (ZoneAction::Finish, _) => {
                self.take(i)?;
                self.zones[i].condition = "full";
            }
        }
        Ok(())
    }

    fn act(&mut self, action: ZoneAction, lba: u64, blocks: u64) -> Result<(), &'static str> {
        let all = self.at(lba)..self.at(lba + blocks - 1) + 1;
        let zones: Vec<usize> = all.filter(|z| !self.zones[*z].gap).collect();
        match zones[..] {
            [] => return Err("unsupported"),
            [zone] => return self.one(action, zone),
            _ => {}
        }
        let explicit = self.zones.iter().filter(|z| z.condition == "explicitly-open").count();
        let closed = zones.iter().filter(|&&z| self.is(z, "closed")).count();
        if action == ZoneAction::Open && explicit + closed > self.most_open {
            return Err("too-many-open");
        }
        let meant: Vec<usize> = zones
            .into_iter()
            .filter(|&z| match action {
                ZoneAction::Open => self.is(z, "closed"),
                ZoneAction::Finish => self.zones[z].open() || self.is(z, "closed"),
                _ => !self.zones[z].conventional(),
            })
            .collect();
        for zone in meant {
            if action == ZoneAction::Finish {
                self.zones[zone].condition = "full";
            } else {
                self.one(action, zone)?;
            }
        }
        Ok(())
    }
}

struct Rig {
    text: &'static str,
    drive: Arc<DriveModel>,
    layer: Box<dyn TranslationLayer>,
    medium: PlainMedium,
    records: Vec<Record>,
    plan: Plan,
    model: Model,
}

/// Conditions and pointers as the layer reports them are those of the model.
fn same_zones(layer: &dyn TranslationLayer, model: &Model, what: &str) {
    let mut i = 0;
    layer.zones(Lba(0), &mut |z| {
        let own = &model.zones[i];
        let told = (z.start.0, z.blocks.0, z.condition.name(), z.pointer.map(|p| p.0));
        assert_eq!(told, (own.start, own.blocks, own.condition, own.pointer()), "zone {i} after {what}");
        i += 1;
        true
    });
    assert_eq!(i, model.zones.len());
}

fn read_zone(layer: &mut dyn TranslationLayer, medium: &mut PlainMedium, zone: &Zone) -> Vec<u8> {
    let mut out = vec![0x11; zone.blocks as usize * BLOCK];
    let mut plan = Plan::new(true, false);
    let request = HostRequest::new(HostOp::Read, Lba(zone.start), Blocks(zone.blocks));
    layer.submit(SimTime::ZERO, &request, &mut plan);
    if plan.refusal().is_none() {
        let Ok(()) = Executor::default().run(&plan, HostBuffer::Read(&mut out), medium);
    }
    out
}

impl Rig {
    fn new(text: &'static str, drive: &Arc<DriveModel>, limits: (usize, usize)) -> Self {
        let layer = build(text, drive);
        let medium = PlainMedium::new(drive.geometry(), drive.interference());
        let model = Model::of(&*layer, limits, !text.contains("urswrz=off"));
        let (drive, plan) = (drive.clone(), Plan::new(true, true));
        Self { text, drive, layer, medium, records: Vec::new(), plan, model }
    }

    fn random_command(&self, rng: &mut Rng) -> HostRequest {
        let all = self.layer.host_blocks().0;
        let zone = &self.model.zones[rng.below(self.model.zones.len() as u64) as usize];
        let actions = ZoneAction::ALL;
        let (op, lba, blocks) = match rng.below(20) {
            0..=8 => {
                (HostOp::Write, zone.pointer().unwrap_or(zone.start), 8 * (1 + rng.below(zone.blocks / 8)))
            }
            9 => (HostOp::Write, zone.start + rng.below(zone.blocks), 1 + rng.below(20)),
            10 => (HostOp::Append, zone.start, 8 * (1 + rng.below(3))),
            11..=13 => (HostOp::Read, rng.below(all), 1 + rng.below(3 * zone.blocks)),
            14 => (HostOp::Zone(actions[rng.below(4) as usize]), rng.below(all), 1 + rng.below(all)),
            15 => (HostOp::Zone(ZoneAction::Open), zone.start, zone.blocks),
            _ => (HostOp::Zone(actions[rng.below(4) as usize]), zone.start, zone.blocks),
        };
        HostRequest::new(op, Lba(lba), Blocks(blocks.min(all - lba)))
    }

    /// What the model makes of a command; reads fill `data`.
    fn expected(model: &mut Model, r: &HostRequest, data: &mut [u8]) -> Option<&'static str> {
        let (lba, blocks) = (r.lba.0, r.blocks.0);
        let done = match r.op {
            HostOp::Write => model.write(lba, data),
            HostOp::Append => {
                let zone = &model.zones[model.at(lba)];
                if zone.conventional() || zone.gap || zone.start != lba {
                    Err("not-at-pointer")
                } else {
                    model.write(zone.pointer().unwrap_or(lba), data)
                }
            }
            HostOp::Read => model.read(lba, data),
            HostOp::Zone(action) => model.act(action, lba, blocks),
            _ => Ok(()),
        };
        done.err()
    }

    /// Does a command, with the layer and with the model, and compares; `cuts` also cuts the power everywhere in it.
    fn go(&mut self, r: &HostRequest, rng: &mut Rng, cuts: bool) -> Option<&'static str> {
        let writes = matches!(r.op, HostOp::Write | HostOp::Append);
        let mut data = vec![0; r.blocks.bytes() as usize];
        if writes {
            data.chunks_mut(8).for_each(|w| w.copy_from_slice(&rng.bits().to_le_bytes()));
        }
        let mut next = self.model.clone();
        let mut wanted = data.clone();
        let expected = Self::expected(&mut next, r, &mut wanted);
        self.plan.clear();
        self.layer.submit(SimTime::ZERO, r, &mut self.plan);
        let refused = self.plan.refusal().map(|why| why.name());
        assert_eq!(refused, expected, "{r:?} on {:?}", self.model.zones[self.model.at(r.lba.0)].condition);
        if refused.is_some() {
            assert!(self.plan.ops().is_empty() && self.plan.records().is_empty());
            assert_eq!(next, self.model, "a refusal changes nothing");
        }
        if cuts {
            self.cut_everywhere(r, &data, &next);
        }
        let host = if writes { HostBuffer::Write(&data) } else { HostBuffer::None };
        if r.op == HostOp::Read && refused.is_none() {
            let Ok(()) = Executor::default().run(&self.plan, HostBuffer::Read(&mut data), &mut self.medium);
            assert!(data == wanted, "{r:?} reads other bytes");
        } else {
            let Ok(()) = Executor::default().run(&self.plan, host, &mut self.medium);
        }
        self.records.extend(self.plan.records().iter().map(|r| r.1));
        self.model = next;
        same_zones(&*self.layer, &self.model, &format!("{r:?}"));
        refused
    }

    fn cut_everywhere(&self, r: &HostRequest, data: &[u8], next: &Model) {
        let ops = self.plan.ops();
        for whole in 0..=ops.len() {
            for torn in [false, true] {
                let Some(op) = ops.get(whole).or(ops.last()).filter(|_| !torn || whole < ops.len()) else {
                    if torn {
                        continue;
                    } else {
                        self.recovered(next, self.medium.clone(), r, &self.all_records());
                        continue;
                    }
                };
                let (mut medium, mut exec, mut host) =
                    (self.medium.clone(), Executor::default(), HostBuffer::Write(data));
                for id in 0..whole as u32 {
                    let Ok(()) = exec.step(&self.plan, OpId(id), &mut host, &mut medium);
                }
                if torn && op.dir == smrlab_units::Dir::Write {
                    let half = op.blocks.0 / 2;
                    let Ok(()) =
                        smrlab_stl::Medium::write(&mut medium, op.pba, &vec![0x77; half as usize * BLOCK]);
                    medium.tear(Pba(op.pba.0 + half));
                }
                let durable =
                    self.plan.records().iter().filter(|(after, _)| *after as usize <= whole).map(|r| r.1);
                let records: Vec<Record> = self.records.iter().copied().chain(durable).collect();
                let model = if whole == ops.len() { next } else { &self.model };
                self.recovered(model, medium, r, &records);
            }
        }
    }

    fn all_records(&self) -> Vec<Record> {
        self.records.iter().copied().chain(self.plan.records().iter().map(|r| r.1)).collect()
    }

    /// A fresh layer that recovers has the model's zones, at rest, and the model's bytes; but for conventional blocks in flight.
    fn recovered(&self, model: &Model, mut medium: PlainMedium, r: &HostRequest, records: &[Record]) {
        let mut layer = build(self.text, &self.drive);
        layer.recover(&mut records.iter().copied(), &mut Plan::new(true, true));
        let mut model = model.clone();
        model.zones.iter_mut().for_each(Zone::rest);
        same_zones(&*layer, &model, "a power cut");
        for zone in
            model.zones.iter().filter(|z| !z.gap && (!z.conventional() || z.start + z.blocks <= r.lba.0))
        {
            let out = read_zone(&mut *layer, &mut medium, zone);
            let mut wanted = zone.bytes.clone();
            wanted.resize(out.len(), 0);
            let refused = out.first() == Some(&0x11) && !model.zeroes;
            assert!(refused || out == wanted, "zone at {} after a cut in {r:?}", zone.start);
        }
    }
}

fn build(text: &str, drive: &Arc<DriveModel>) -> Box<dyn TranslationLayer> {
    smrlab_stl::build(text, &BuildContext::new(drive.clone())).unwrap_or_else(|e| panic!("{text}: {e}")).layer
}

const SMALL: &str = "zoned,zone=16KiB,max_open=3,max_active=5,conventional=10%";
const GAPS: &str = "zoned,zone=16KiB,capacity=12KiB,max_open=3,max_active=5,conventional=10%";
const RUNT: &str = "zoned,zone=16KiB,runt=4KiB,max_open=3,max_active=5,conventional=0%";

#[test]
fn random_commands_do_what_a_second_model_says() {
    let mut refusals = std::collections::BTreeSet::new();
    let mut fits = 0;
    for (name, drive) in drives::all() {
        let refusing = "zoned,zone=16KiB,max_open=3,max_active=5,conventional=0%,urswrz=off";
        let gaps_refusing = "zoned,zone=16KiB,capacity=4KiB,max_open=3,max_active=5,urswrz=off";
        for text in [SMALL, GAPS, RUNT, refusing, gaps_refusing] {
            if smrlab_stl::build(text, &BuildContext::new(drive.clone())).is_err() {
                continue;
            }
            println!("{text} on {name}");
            fits += 1;
            let (mut rig, mut rng) = (Rig::new(text, &drive, (3, 5)), Rng::new(fits));
            for _ in 0..3000 {
                let r = rig.random_command(&mut rng);
                refusals.extend(rig.go(&r, &mut rng, false));
            }
        }
    }
    assert!(fits >= 10, "{fits}");
    let all = [
        "above-pointer",
        "crosses-zone",
        "gap",
        "not-at-pointer",
        "too-many-open",
        "unsupported",
        "zone-full",
    ];
    assert_eq!(refusals.into_iter().collect::<Vec<_>>(), all, "each was met");
}

#[test]
fn write_pointers_and_bytes_survive_a_cut_at_every_media_operation() {
    for (_, drive) in
        drives::all().into_iter().filter(|d| ["tiny", "zones and skew", "wide head"].contains(&d.0))
    {
        for (text, commands) in [(SMALL, 150), (GAPS, 60), (RUNT, 60)] {
            let (mut rig, mut rng) = (Rig::new(text, &drive, (3, 5)), Rng::new(9));
            for _ in 0..commands {
                let r = rig.random_command(&mut rng);
                rig.go(&r, &mut rng, true);
            }
        }
    }
}

#[test]
fn gaps_and_a_runt_lie_where_they_were_asked_for() {
    let drive = drives::all().into_iter().find(|d| d.0 == "tiny").unwrap().1;
    let zones = |text: &str| smrlab_stl::zones_of(&*build(text, &drive));
    let shape = |text: &str| zones(text).iter().map(|z| (z.kind, z.blocks.0)).collect::<Vec<_>>();
    use ZoneKind::{Conventional, Gap, SequentialRequired as Required};
    let gaps = shape(GAPS);
    assert_eq!(gaps[0], (Conventional, 32), "a conventional zone has no gap");
    let behind = gaps.iter().position(|z| z.0 == Required).unwrap();
    assert!(
        gaps[behind..].chunks(2).all(|z| z == [(Required, 24), (Gap, 8)]),
        "one behind the last one, too"
    );
    assert!(zones(GAPS).windows(2).all(|z| z[0].end() == z[1].start));
    let (runt, plain) = (shape(RUNT), shape("zoned,zone=16KiB,conventional=0%"));
    assert_eq!((runt.len(), runt.last()), (plain.len(), Some(&(Required, 8))));
    assert!(runt[..runt.len() - 1].iter().all(|z| *z == (Required, 32)));
    let fails =
        |text: &str| smrlab_stl::build(text, &BuildContext::new(drive.clone())).unwrap_err().to_string();
    for text in
        ["zoned,zone=16KiB,capacity=20KiB", "zoned,zone=16KiB,runt=1KiB", "zoned,zone=16KiB,capacity=0"]
    {
        assert!(fails(text).contains("a multiple of 4KiB, at most a zone's 32 blocks"), "{}", fails(text));
    }
    assert!(fails("zoned,zone=16KiB,capacity=8KiB,runt=8KiB").contains("runt="));
}

#[test]
fn a_zoned_drive_of_the_other_model_is_the_layer_host_aware() {
    let drive = drives::all().into_iter().find(|d| d.0 == "tiny").unwrap().1;
    let context = BuildContext::new(drive);
    let built = smrlab_stl::build(
        "zoned,model=host-aware,zone=16KiB,log=32KiB,max_open=7,conventional=10%",
        &context,
    )
    .unwrap();
    assert!(
        built.resolved.starts_with("host-aware,") && built.resolved.contains("optimal_open=7"),
        "{}",
        built.resolved
    );
    let zones = smrlab_stl::zones_of(&*built.layer);
    let conventional =
        zones.iter().take_while(|z| z.kind == ZoneKind::Conventional && z.pointer.is_none()).count();
    assert!((1..zones.len()).contains(&conventional));
    assert!(zones[conventional..].iter().all(|z| z.kind == ZoneKind::SequentialPreferred));
    let e = smrlab_stl::build("zoned,model=host-aware,urswrz=off", &context).unwrap_err().to_string();
    assert!(e.contains("host-aware") && e.contains("urswrz"), "{e}");
}
