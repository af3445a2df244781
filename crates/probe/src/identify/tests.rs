//! What is found out about simulated drives against what they are.

use super::*;
use crate::fakes::{StopAfter, Told, simulated};
use crate::{Mirrored, ProbeError, Quiet, SimTarget, TargetError, TimedTarget, Timing};
use smrlab_disk::model::load;
use smrlab_drive::{Drive, DriveSetup};
use smrlab_stl::{BuildContext, HostRequest};
use smrlab_units::{Blocks, Dir, HostOp, Lba, SimTime, Zone};
use std::sync::Arc;

/// What the layer's own facts say.
struct Truth {
    cache: Option<u64>,
}

/// A drive with a layer, all of its space written before where `filled`.
fn drive(model: &str, layer: &str, filled: bool) -> (SimTarget, Truth) {
    let model = load(model, |_| Err("no files here".to_owned())).unwrap();
    let built = smrlab_stl::build(layer, &BuildContext::new(Arc::new(model)))
        .unwrap_or_else(|e| panic!("{layer}: {e}"));
    let truth = Truth { cache: built.layer.facts().cache.map(|b| b.0) };
    let mechanics = built.drive.mechanics(None).unwrap();
    let mut drive = Drive::new(built.layer, mechanics, DriveSetup::default());
    if filled {
        let blocks = drive.layer().host_blocks().0;
        for lba in (0..blocks).step_by(1 << 16) {
            let n = (blocks - lba).min(1 << 16);
            drive.instantly(&HostRequest::new(HostOp::Write, Lba(lba), Blocks(n)));
        }
    }
    (SimTarget::new(drive), truth)
}

fn identified(model: &str, layer: &str, filled: bool) -> (Identity, Truth) {
    let (mut target, truth) = drive(model, layer, filled);
    let mut told = Told::default();
    let id = identify(&mut target, &mut told).unwrap_or_else(|e| panic!("{layer}: {e}"));
    eprintln!(
        "{model} {layer}: {:?} {:.2} {:?} place {:?} size {:?} (truth {:?}) band {:?} {:?} {:?}; {} requests, {:.0} s",
        id.kind,
        id.confidence,
        id.cache,
        id.cache_place,
        id.cache_size,
        truth.cache,
        id.band,
        id.mapping,
        id.cleaning,
        id.quality.requests,
        id.quality.seconds
    );
    for e in &id.evidence {
        eprintln!("    {}: {}", e.test, e.saw);
    }
    on_record(&format!("{model} {layer}{}", if filled { "" } else { " empty" }), &id, &told);
    (id, truth)
}

/// Five digits: what another processor rounds otherwise does not show.
fn number(value: f64) -> String {
    if value.abs() < 1e-9 { "0".to_owned() } else { format!("{value:.4e}") }
}

/// Holds all that is said of a drive, and what it cost, against the record, a line for each piece of evidence: the tests hold the results
/// against the truth within tolerances, here a change of the method shows. `SMRLAB_RECORD=/tmp/lines cargo test -p smrlab-probe` puts
/// the lines into a file; `sort -u` of those of drives with layers is the record.
fn on_record(name: &str, id: &Identity, told: &Told) {
    let numbers = [id.confidence, id.rpm, id.cache_place.unwrap_or(-1.0), id.quality.seconds].map(number);
    let band = id.band.map(|b| (b.blocks, b.end, number(b.spread), number(b.rewrite_s)));
    let along: Vec<_> = id.bands_along.iter().map(|b| (b.lba, b.blocks)).collect();
    let idle = id.idle.as_ref().map(|i| (number(i.after_s), number(i.band_s), i.piece));
    let mut lines = vec![format!(
        "{numbers:?} {} requests {:?} {band:?} {along:?} {:?} {idle:?}; {}",
        id.quality.requests, id.cache_size, id.toward, id.answer
    )];
    for e in &id.evidence {
        let sums = e.points.iter().fold([0.0; 2], |[a, b], p| [a + p.0, b + p.1]).map(number);
        lines.push(format!("{}: {}: {} ({} {:?} {sums:?})", e.test, e.did, e.saw, e.points.len(), e.axes));
    }
    let told = told.0.iter().map(|(stage, n, sum)| format!("{stage} {n} {}", number(*sum)));
    lines.push(format!("who watches is told: {}", told.collect::<Vec<_>>().join("; ")));
    let said: Vec<String> = lines.iter().enumerate().map(|(i, line)| format!("{name} {i}: {line}")).collect();
    if let Some(path) = std::env::var_os("SMRLAB_RECORD") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, format!("{}\n", said.join("\n")).as_bytes()).unwrap();
        return;
    }
    let own = |line: &&str| {
        let number = line.strip_prefix(name).and_then(|rest| rest.trim_start().split(':').next());
        number.is_some_and(|n| n.parse::<usize>().is_ok())
    };
    let recorded: Vec<&str> = include_str!("record.txt").lines().filter(own).collect();
    let missing = said.iter().find(|line| !recorded.contains(&&line[..]));
    assert_eq!((missing, said.len()), (None, recorded.len()), "{name}: not on record");
}

const DRIVE: &str = "modern-7200,capacity=20GB";

#[test]
fn a_conventional_drive_is_one() {
    for (drive, filled) in [(DRIVE, false), (DRIVE, true), ("he2014-example", false), ("tiny", true)] {
        let (id, _) = identified(drive, "cmr", filled);
        assert_eq!(id.kind, DriveKind::Cmr);
        assert!(id.confidence > 0.95 && id.cache.is_none());
    }
}

#[test]
fn layers_in_place_are_told_from_their_writes() {
    for layer in [
        "rmw,band=16",
        "rmw,mode=partial,band=16",
        "static-1234",
        "static-R(4123)",
        "static-124R(3)",
        "static-14R(23)",
    ] {
        let (id, _) = identified(DRIVE, layer, true);
        assert_eq!(id.kind, DriveKind::DriveManaged, "{layer}");
        assert_eq!((id.mapping, id.cleaning), (Some(Mapping::Static), Some(Cleaning::InPlace)), "{layer}");
        if layer.ends_with("band=16") {
            check_band(&id, 16 * TRACK);
        }
    }
}

/// Blocks on a track of [`DRIVE`].
const TRACK: u64 = 4248;

fn check_band(id: &Identity, truth: u64) {
    let band = id.band.map_or(0, |b| b.blocks);
    assert!(band.abs_diff(truth) < TRACK, "bands of {truth} blocks are {band}");
}

#[test]
fn caches_are_found() {
    for layer in ["disk-cache,cache=1%,band=84960", "disk-cache,cache=2%,band=84960,idle=1s", "s-block"] {
        let (id, truth) = identified(DRIVE, layer, true);
        assert_eq!(id.kind, DriveKind::DriveManaged, "{layer}");
        assert_eq!(id.cache, Some(CacheKind::Disk), "{layer}");
        let (found, truth) = (id.cache_size.unwrap().blocks, truth.cache.unwrap());
        assert!(found.abs_diff(truth) <= truth / 20, "{layer}: {found} blocks, in truth {truth}");
        if layer.starts_with("disk-cache") {
            check_band(&id, 84960);
        }
        assert_eq!(id.idle.is_some(), layer.ends_with("idle=1s"), "{layer}");
        if let Some(seen) = id.idle {
            check_rest(&seen);
            // 20 tracks are read and written, and the way to the cache and back.
            assert!((seen.band_s - 0.39).abs() < 0.02, "a band takes {} s", seen.band_s);
            assert_eq!(seen.order, Some(Order::ByPlace), "of two sets that hold as much the first");
        }
    }
}

/// A second; a drive that makes a read wait for less than four revolutions is not seen at work.
fn check_rest(seen: &Idle) {
    assert!((seen.after_s - 1.0).abs() < 0.04, "cleaning begins after {} s", seen.after_s);
}

/// A full cache whose writes wait for a minute each is not watched for days.
#[test]
fn a_day_is_enough_for_a_slow_drive() {
    let (id, _) = identified("modern-7200,capacity=120GB,rpm=5400,k=3", "s-block,cache=2%", true);
    assert!(id.quality.seconds < 86_400.0, "{} hours", id.quality.seconds / 3600.0);
    assert_eq!(id.cache_size.unwrap().limit, Some(Limit::Bytes));
}

#[test]
fn a_persistent_cache_shows_its_entries_its_bands_and_its_rest() {
    for (idle, cleaning) in [("off", Cleaning::Lazy), ("1s", Cleaning::Aggressive)] {
        let layer =
            format!("persistent-cache,log=2%,slot=0,map_trigger=2000,map_limit=2060,band=20,idle={idle}");
        let (id, _) = identified(DRIVE, &layer, true);
        assert_eq!((id.mapping, id.cleaning), (Some(Mapping::Static), Some(cleaning)), "{layer}");
        let size = id.cache_size.unwrap();
        assert_eq!(size.limit, Some(Limit::Entries), "{layer}");
        assert!(size.writes.abs_diff(2000) <= 100, "{} writes fill a map of 2000", size.writes);
        let band = id.band.unwrap().blocks;
        assert!(band.abs_diff(20 * 4248) < 4248, "bands of 20 tracks are {band} blocks");
        assert_eq!(id.toward, Some(Toward::Higher), "{layer}");
        // 20 tracks are read, written into the scratch band, and written home: 60 turns of 1/120 s.
        let rewrite_s = id.band.unwrap().rewrite_s;
        assert!((rewrite_s - 0.5).abs() < 0.05, "{layer}: a band takes {rewrite_s} s");
        if let Some(seen) = id.idle {
            check_rest(&seen);
            assert_eq!(seen.order, Some(Order::Oldest));
        }
        assert_eq!(id.idle.is_some(), cleaning == Cleaning::Aggressive);
    }
}

#[test]
fn a_log_moves_what_was_never_written() {
    for (idle, cleaning) in
        [("", Cleaning::Lazy), (",idle=1s,idle_dead=1%,idle_free=20%", Cleaning::Aggressive)]
    {
        let (id, _) = identified(DRIVE, &format!("log,band=20,overprovision=5%{idle}"), true);
        assert_eq!((id.mapping, id.cleaning), (Some(Mapping::Dynamic), Some(cleaning)), "{idle}");
        assert_eq!(id.cache_size.unwrap().limit, Some(Limit::Bytes));
    }
}

#[test]
fn bands_are_shingled_either_way() {
    for layer in ["rmw,mode=partial,band=16", "static,order=1-20"] {
        let (plain, _) = identified(DRIVE, layer, true);
        assert_eq!(plain.toward, Some(Toward::Higher), "{layer}");
        let id = identify(&mut Mirrored(drive(DRIVE, layer, true).0), &mut Quiet).unwrap();
        let saw: Vec<&str> = id.evidence.iter().map(|e| e.saw.as_str()).collect();
        assert_eq!(id.toward, Some(Toward::Lower), "{layer}: {saw:?}");
        assert!(id.evidence.iter().any(|e| e.test == "direction"), "how sure that is can be read");
    }
}

/// What lies behind a piece is cleaned with it at no more cost only on the side towards which tracks overlap.
#[test]
fn bands_of_a_cache_are_told_whichever_way_they_are_shingled() {
    for idle in ["off", "1s"] {
        let layer =
            format!("persistent-cache,log=2%,slot=0,map_trigger=2000,map_limit=2060,band=20,idle={idle}");
        let id = identify(&mut Mirrored(drive(DRIVE, &layer, true).0), &mut Quiet).unwrap();
        let saw: Vec<&str> = id.evidence.iter().map(|e| e.saw.as_str()).collect();
        assert_eq!(id.toward, Some(Toward::Lower), "{layer}: {saw:?}");
        check_band(&id, 20 * TRACK);
        let all = id.bands_along.iter().all(|b| b.blocks.abs_diff(20 * TRACK) < TRACK);
        assert!(all && id.bands_along.len() == 2, "{:?}", id.bands_along);
    }
}

/// A target whose clock begins anew with every sitting.
struct NewClock<'t>(&'t mut SimTarget, SimTime);

impl NewClock<'_> {
    fn seen(&self, t: Timing) -> Timing {
        Timing { start: t.start - self.1, end: t.end - self.1 }
    }
}

impl TimedTarget for NewClock<'_> {
    fn blocks(&self) -> Blocks {
        self.0.blocks()
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        self.0.access(dir, lba, blocks).map(|t| self.seen(t))
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        self.0.flush().map(|t| self.seen(t))
    }

    fn pause(&mut self, span: SimTime) {
        self.0.pause(span);
    }
}

#[test]
fn what_was_found_out_is_kept_and_gone_on_with() {
    for (layer, checks) in [
        ("persistent-cache,log=2%,slot=0,map_trigger=2000,map_limit=2060,band=20,idle=off", 13_000),
        ("persistent-cache,log=2%,slot=0,map_trigger=2000,map_limit=2060,band=20,idle=1s", 40_000),
        ("rmw,mode=partial,band=16", 4000),
    ] {
        let (whole, _) = identified(DRIVE, layer, true);
        let (mut target, _) = drive(DRIVE, layer, true);
        let mut known = Sittings::new(target.blocks().0);
        let mut sittings = 0u64;
        while known.found.answer.is_empty() {
            sittings += 1;
            assert!(sittings < 14, "{layer}: it gets on");
            let now = target.access(Dir::Read, Lba(sittings), Blocks(1)).unwrap().end;
            let text = serde_json::to_string(&known).unwrap();
            known = serde_json::from_str(&text).unwrap();
            let mut watch = StopAfter(std::cell::Cell::new(checks << sittings));
            match identify_further(&mut NewClock(&mut target, now), &mut watch, &mut known, &mut |_| ()) {
                Ok(()) => {}
                Err(e) => assert_eq!(e, ProbeError::Interrupted),
            }
        }
        assert!(sittings > 1, "{layer}: it was stopped");
        let found = &known.found;
        assert_eq!((found.mapping, found.cleaning), (whole.mapping, whole.cleaning), "{layer}");
        assert_eq!((found.toward, found.kind), (whole.toward, whole.kind), "{layer}");
        check_band(found, whole.band.unwrap().blocks);
        if let (Some(a), Some(b)) = (found.cache_size, whole.cache_size) {
            assert!(a.writes.abs_diff(b.writes) <= b.writes / 20, "{layer}: {a:?}, in one sitting {b:?}");
        }
        let names: Vec<_> = found.evidence.iter().map(|e| &e.test).collect();
        assert!(names.iter().all(|n| names.iter().filter(|m| m == &n).count() == 1), "{names:?}");
    }
    let mut other = drive("tiny", "cmr", false).0;
    let e = identify_further(&mut other, &mut Quiet, &mut Sittings::new(7), &mut |_| ()).unwrap_err();
    assert!(e.to_string().contains("use another --out"), "{e}");
}

/// What a second sitting asks comes to what the first one did; who prefers writes in order is host-aware, whatever else it does.
#[test]
fn sittings_add_up() {
    for (text, kind) in [
        ("modern-7200,capacity=100GB/cmr", DriveKind::Cmr),
        ("modern-7200,capacity=100GB/host-aware", DriveKind::HostAware),
    ] {
        let mut target = simulated(text);
        let mut known = Sittings::new(target.blocks().0);
        for _ in 0..2 {
            let before = known.found.quality.requests;
            identify_further(&mut target, &mut Quiet, &mut known, &mut |_| ()).unwrap();
            assert!(known.found.quality.requests > before, "{text}");
            assert_eq!(known.found.kind, kind, "{text}");
        }
    }
}

/// A drive whose writes go to flash until it is left alone for a second: reads of what is there take no way.
struct FlashCache {
    disk: SimTarget,
    held: std::collections::BTreeMap<u64, u64>,
}

const FLASH: SimTime = SimTime::from_us(100);

impl TimedTarget for FlashCache {
    fn blocks(&self) -> Blocks {
        self.disk.blocks()
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let held = self.held.range(..=lba.0).next_back().is_some_and(|(a, n)| lba.0 + blocks.0 <= a + n);
        if dir == Dir::Read && !held {
            return self.disk.access(dir, lba, blocks);
        }
        let start = self.flush()?.end;
        if dir == Dir::Write {
            self.held.insert(lba.0, blocks.0);
        }
        self.disk.pause(FLASH);
        // With its room used up, one piece goes to the disk for each that comes.
        if self.held.len() > 3000 {
            let (a, n) = self.held.pop_first().unwrap_or_default();
            self.disk.access(Dir::Write, Lba(a), Blocks(n))?;
        }
        Ok(Timing { start, end: self.flush()?.end })
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        self.disk.flush()
    }

    fn pause(&mut self, span: SimTime) {
        self.disk.pause(span);
    }
}

#[test]
fn a_cache_in_flash_is_told_from_one_on_the_disk() {
    let (disk, _) = drive(DRIVE, "cmr", true);
    let id = identify(&mut FlashCache { disk, held: Default::default() }, &mut Quiet).unwrap();
    assert_eq!((id.kind, id.cache), (DriveKind::DriveManaged, Some(CacheKind::Flash)), "{:?}", id.evidence);
    assert!(id.cache_place.is_none() && id.answer.contains("in flash"), "{}", id.answer);
    let size = id.cache_size.unwrap();
    assert!(size.writes.abs_diff(3000) <= 150, "{size:?}");
}

/// Nothing but reads.
struct Flash(u64, SimTime);

impl TimedTarget for Flash {
    fn blocks(&self) -> Blocks {
        Blocks(self.0)
    }

    fn access(&mut self, dir: Dir, _: Lba, _: Blocks) -> Result<Timing, TargetError> {
        assert_eq!(dir, Dir::Read, "nothing is written");
        let start = self.1;
        self.1 += SimTime::from_us(90);
        Ok(Timing { start, end: self.1 })
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        panic!("nothing is written");
    }

    fn pause(&mut self, span: SimTime) {
        panic!("{span:?} of waiting for what is no disk");
    }
}

#[test]
fn what_is_no_disk_is_refused_at_once_and_left_as_it_is() {
    for (blocks, why) in [(1 << 24, "a flash device"), (32, "32 blocks are too few")] {
        let e = identify(&mut Flash(blocks, SimTime::ZERO), &mut Quiet).unwrap_err();
        assert!(matches!(&e, ProbeError::NotADisk(text) if text.contains(why)), "{e}");
    }
}

#[test]
fn a_host_managed_drive_is_told_by_what_it_refuses() {
    for text in ["tiny/zoned", "tiny/zoned,conventional=0%,zone=64KiB,capacity=48KiB", "modern-7200/zoned"] {
        let mut target = simulated(text);
        let found = identify(&mut target, &mut Quiet).unwrap();
        assert_eq!((found.kind, found.confidence), (DriveKind::HostManaged, 1.0), "{text}");
        assert!(found.answer.contains("host-managed") && found.answer.contains("write pointer"));
        let [zones] = &found.evidence[..] else { panic!("{:?}", found.evidence) };
        assert!(
            zones.saw.contains("require") && zones.saw.contains("refused, the second taken"),
            "{}",
            zones.saw
        );
        assert_eq!(zones.points, [(8.0, 0.0), (0.0, 1.0)]);
    }
}

/// What a target says of zones is believed where it does so.
#[test]
fn zones_that_do_not_behave_are_said_and_others_prefer() {
    let does = |text: &str| {
        let mut target = simulated(text);
        let mut found = Sittings::new(target.blocks().0).found;
        (zoned::look(&mut target, &mut found).unwrap(), found)
    };
    let (aware, found) = does("tiny/host-aware,zone=64KiB");
    assert_eq!((aware, found.kind), (Does::Prefers, DriveKind::Cmr), "the rest is measured");
    assert!(
        found.evidence[0].saw.contains("prefer") && found.evidence[0].saw.contains("taken, the second taken")
    );
    assert_eq!(does("tiny/cmr").0, Does::NoZones);
    /// A drive without zones that says it has some.
    struct Boasts(SimTarget);
    impl TimedTarget for Boasts {
        fn blocks(&self) -> Blocks {
            self.0.blocks()
        }
        fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
            self.0.access(dir, lba, blocks)
        }
        fn flush(&mut self) -> Result<Timing, TargetError> {
            self.0.flush()
        }
        fn pause(&mut self, span: SimTime) {
            self.0.pause(span);
        }
        fn zone(&self) -> Option<Zone> {
            simulated("tiny/zoned").zone()
        }
    }
    let mut target = Boasts(simulated("tiny/cmr"));
    let mut found = Sittings::new(target.blocks().0).found;
    assert_eq!(zoned::look(&mut target, &mut found).unwrap(), Does::Other);
    assert!(found.evidence[0].saw.contains("does not do what it says"));
}

/// A drive with zones that is gone: nothing is known of it, and no write was refused.
#[test]
fn a_drive_that_is_gone_refuses_nothing() {
    struct Gone(bool);
    impl TimedTarget for Gone {
        fn blocks(&self) -> Blocks {
            Blocks(1 << 20)
        }
        fn access(&mut self, _: Dir, _: Lba, _: Blocks) -> Result<Timing, TargetError> {
            Err(TargetError { what: "no answer".to_owned(), gone: self.0 })
        }
        fn flush(&mut self) -> Result<Timing, TargetError> {
            unreachable!("nothing was written")
        }
        fn pause(&mut self, _: SimTime) {}
        fn zone(&self) -> Option<Zone> {
            simulated("tiny/zoned").zone()
        }
    }
    let look = |gone| zoned::look(&mut Gone(gone), &mut Sittings::new(1 << 20).found);
    assert!(look(true).unwrap_err().to_string().contains("no answer"));
    assert_eq!(look(false).unwrap(), Does::Other);
}

/// Few writes that take a turn more, and few pieces that lie elsewhere afterwards, are chance: of that the answer is less sure.
#[test]
fn few_slow_writes_make_no_shingled_drive() {
    for (slow, moved) in [(0, 0), (2, 0), (3, 0), (0, 3), (2, 5)] {
        let (mut writes, mut elsewhere) = (0, std::collections::BTreeSet::new());
        let mut target = crate::fakes::Fake::new(1 << 22, |dir, lba, _, now| {
            let written = dir == Dir::Write;
            writes += u64::from(written);
            if written && (slow + 1..=slow + moved).contains(&writes) {
                elsewhere.insert(lba);
            }
            let angle = lba as f64 / 1000.0 + if !written && elsewhere.contains(&lba) { 0.3 } else { 0.0 };
            let later = written && writes <= slow;
            crate::fakes::passes(angle, now) + if later { crate::fakes::TURN } else { 0 }
        });
        let found = identify(&mut target, &mut Quiet).unwrap();
        let pieces = found.evidence[0].points.len() as f64;
        assert_eq!(found.kind, DriveKind::Cmr, "{slow} {moved}: {}", found.evidence[0].saw);
        let sure = 1.0 - (slow + moved) as f64 / pieces;
        assert!((found.confidence - sure).abs() < 1e-9, "{slow} {moved}: {}", found.confidence);
    }
}
