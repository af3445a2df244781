//! `zoned` against a second model of its zones, which shares no code with it: after each of many random commands conditions, write pointers,
//! refusals and bytes are equal; and after a power cut at every media operation of each.

use crate::zones_model::{BLOCK, Model, Zone, read_zone, same_zones};
use smrlab_disk::geometry::{Defect, GeometrySpec};
use smrlab_disk::{DriveModel, Interference, ZoneSpec};
use smrlab_stl::{BuildContext, Executor, HostBuffer, HostRequest, OpId, Plan, Records, TranslationLayer};
use smrlab_testkit::{PlainMedium, Rng, cases, drives};
use smrlab_units::{HostOp, Pba, SimTime, ZoneAction, ZoneKind, ZoneStatistics};
use std::sync::Arc;

struct Rig {
    text: &'static str,
    drive: Arc<DriveModel>,
    layer: Box<dyn TranslationLayer>,
    medium: PlainMedium,
    records: Records,
    plan: Plan,
    model: Model,
    counted: ZoneStatistics,
}

impl Rig {
    fn new(text: &'static str, drive: &Arc<DriveModel>, limits: (usize, usize)) -> Self {
        let layer = build(text, drive);
        let medium = PlainMedium::new(drive.geometry(), drive.interference());
        let model = Model::of(&*layer, limits, !text.contains("urswrz=off"));
        let (drive, plan) = (drive.clone(), Plan::new(true, true));
        let counted = ZoneStatistics { least_empty: u32::MAX, ..ZoneStatistics::default() };
        let mut rig = Self { text, drive, layer, medium, records: Records::default(), plan, model, counted };
        rig.count(None, &rig.model.clone());
        rig
    }

    /// What the drive counts of a command, and whether it was refused, by the zones before it and now.
    fn count(&mut self, r: Option<(HostOp, &str)>, before: &Model) {
        let (zones, s) = (&self.model.zones, &mut self.counted);
        let of = |condition: &str| zones.iter().filter(|z| z.condition == condition).count() as u32;
        let (explicit, implicit) = (of("explicitly-open"), of("implicitly-open"));
        s.most_explicit = s.most_explicit.max(explicit);
        s.most_implicit = s.most_implicit.max(implicit);
        s.most_open = s.most_open.max(explicit + implicit);
        s.least_empty = s.least_empty.min(of("empty"));
        let held = |z: &Zone| !z.bytes.is_empty() || z.condition == "full";
        s.emptied +=
            before.zones.iter().zip(zones).filter(|(b, now)| held(b) && now.condition == "empty").count()
                as u32;
        match r {
            Some((HostOp::Read, _)) => s.refused_reads += 1,
            Some((HostOp::Write | HostOp::Append, why)) if why != "unsupported" => s.refused_writes += 1,
            Some((HostOp::Zone(ZoneAction::Open), "too-many-open")) => s.failed_opens += 1,
            _ => {}
        }
        assert_eq!(self.layer.facts().zone_statistics, Some(self.counted), "{r:?}");
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
        let expected = next.expected(r, &mut wanted);
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
        self.records.append(self.plan.records());
        let before = std::mem::replace(&mut self.model, next);
        self.count(refused.map(|why| (r.op, why)), &before);
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
                let mut records = self.records.clone();
                records.extend(self.plan.records_within(whole));
                let model = if whole == ops.len() { next } else { &self.model };
                self.recovered(model, medium, r, &records);
            }
        }
    }

    fn all_records(&self) -> Records {
        let mut all = self.records.clone();
        all.append(self.plan.records());
        all
    }

    /// A fresh layer that recovers has the model's zones, at rest, and the model's bytes; but for conventional blocks in flight.
    fn recovered(&self, model: &Model, mut medium: PlainMedium, r: &HostRequest, records: &Records) {
        let mut layer = build(self.text, &self.drive);
        layer.recover(records, &mut Plan::new(true, true));
        let mut model = model.clone();
        model.zones.iter_mut().for_each(Zone::rest);
        same_zones(&*layer, &model, "a power cut");
        let counted = layer.facts().zone_statistics.expect("it has zones");
        assert_eq!((counted.most_open, counted.emptied), (0, 0), "it is counted from there on");
        for zone in
            model.zones.iter().filter(|z| !z.gap && (!z.conventional() || z.start + z.blocks <= r.lba.0))
        {
            let out = read_zone(&mut *layer, &mut medium, zone);
            let mut wanted = zone.bytes.to_vec();
            wanted.resize(out.len(), 0);
            let refused = out.first() == Some(&0x11) && !model.zeroes;
            assert!(refused || out == wanted, "zone at {} after a cut in {r:?}", zone.start);
        }
    }
}

fn build(text: &str, drive: &Arc<DriveModel>) -> Box<dyn TranslationLayer> {
    smrlab_stl::build(text, &BuildContext::new(drive.clone())).unwrap_or_else(|e| panic!("{text}: {e}")).layer
}

/// A block profile that reaches over half a track, behind 24 tracks of 40 that are not shingled.
fn unshingled() -> Arc<DriveModel> {
    let mut spec = drives::plain(120, 20, 2, 4).spec().clone();
    (spec.interference, spec.bands.tracks, spec.bands.random_access) = (Interference::blocks(11), None, 24);
    Arc::new(DriveModel::new(spec, Vec::new()).unwrap())
}

/// A random command; some discard what others read, which is done and changes nothing, wherever it is.
fn command(model: &Model, rng: &mut Rng) -> HostRequest {
    let mut r = model.random_command(rng);
    if r.op == HostOp::Read && rng.one_in(3) {
        r.op = HostOp::Discard;
    }
    r
}

const SMALL: &str = "zoned,zone=16KiB,max_open=3,max_active=5,conventional=10%";
const GAPS: &str = "zoned,zone=16KiB,capacity=12KiB,max_open=3,max_active=5,conventional=10%";
const RUNT: &str = "zoned,zone=16KiB,runt=4KiB,max_open=3,max_active=5,conventional=0%";

#[test]
fn random_commands_do_what_a_second_model_says() {
    let mut refusals = std::collections::BTreeSet::new();
    let mut fits = 0;
    for (name, drive) in drives::all().into_iter().chain([("not shingled in front", unshingled())]) {
        let refusing = "zoned,zone=16KiB,max_open=3,max_active=5,conventional=0%,urswrz=off";
        let gaps_refusing = "zoned,zone=16KiB,capacity=4KiB,max_open=3,max_active=5,urswrz=off";
        for text in [SMALL, GAPS, RUNT, refusing, gaps_refusing] {
            if smrlab_stl::build(text, &BuildContext::new(drive.clone())).is_err() {
                continue;
            }
            println!("{text} on {name}");
            fits += 1;
            let (mut rig, mut rng) = (Rig::new(text, &drive, (3, 5)), Rng::new(fits));
            for _ in 0..cases(3000) {
                let r = command(&rig.model, &mut rng);
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
    let some = drives::all().into_iter().filter(|d| ["tiny", "zones and skew", "wide head"].contains(&d.0));
    for drive in some.map(|d| d.1).chain([unshingled()]) {
        for (text, commands) in [(SMALL, 150), (GAPS, 60), (RUNT, 60)] {
            let (mut rig, mut rng) = (Rig::new(text, &drive, (3, 5)), Rng::new(9));
            for _ in 0..commands {
                let r = command(&rig.model, &mut rng);
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

/// As many conventional zones as fit on the tracks that are not shingled (480 blocks), or as many as are asked for.
#[test]
fn conventional_zones_of_a_drive_with_a_block_profile_lie_on_tracks_that_are_not_shingled() {
    let drive = unshingled();
    let kinds = |text: &str| {
        let zones = smrlab_stl::zones_of(&*build(text, &drive));
        let first = zones.iter().filter(|z| z.kind == ZoneKind::Conventional).count();
        assert!(zones[first..].iter().all(|z| z.kind == ZoneKind::SequentialRequired));
        (first, zones.len() - first)
    };
    // Each with a guard of 10 blocks: (2400 - 480) / (32 + 10).
    assert_eq!(kinds("zoned,zone=16KiB"), (15, 45));
    assert_eq!(kinds("zoned,zone=16KiB,conventional=10%"), (8, 45));
    assert_eq!(kinds("zoned,zone=16KiB,conventional=0%"), (0, 45));
    let more = smrlab_stl::build("zoned,zone=16KiB,conventional=30%", &BuildContext::new(drive.clone()));
    assert!(more.unwrap_err().to_string().contains("give the drive random_access=37,"));
}

/// The advice helps where tracks differ, too: the first one may be so full of defects that it has no block.
#[test]
fn conventional_zones_fit_on_as_many_tracks_as_are_advised() {
    let defects = (0..4).map(|sector| Defect { cylinder: 0, surface: 0, sector }).collect();
    let zones = vec![ZoneSpec::plain(10, 4), ZoneSpec::plain(100, 24)];
    let geometry = GeometrySpec { defects, ..GeometrySpec::single_surface(zones) };
    let drive = drives::drive(geometry, Interference::blocks(11), 4);
    let with = |drive: Arc<DriveModel>| {
        let context = BuildContext::new(drive);
        smrlab_stl::build("zoned,zone=16KiB,conventional=20%", &context)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    // Of 2436 blocks 15.2 times 32: 36 on the first ten tracks, and 444 on 18.5 more.
    let advised = with(drive.clone()).unwrap_err();
    assert!(advised.contains("give the drive random_access=29,"), "{advised}");
    let enough = |tracks| with(Arc::new(drive.with_random_access(tracks).unwrap()));
    assert_eq!(enough(29), Ok(()));
    assert!(enough(28).is_err());
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
