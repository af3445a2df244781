//! Random commands to served drives of many geometries: what each is answered and what it changes follow from the zones that REPORT ZONES told
//! before it, by the rules of ZBC-2.

use smrlab_device::config::StoreKind;
use smrlab_device::{Config, Device};
use smrlab_iscsi::served::disk;
use smrlab_scsi::{Disk, Refused, execute};
use smrlab_units::rng::Rng;
use smrlab_units::{Lba, ZoneCondition};
use std::ops::RangeInclusive;

/// A zone as REPORT ZONES tells it: type, condition, length, first block and write pointer, all of them numbers of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) kind: u64,
    pub(crate) condition: u64,
    pub(crate) length: u64,
    pub(crate) start: u64,
    pub(crate) pointer: u64,
}

pub(crate) const NO_POINTER: u64 = u64::MAX;
const CONVENTIONAL: u64 = 1;
const REQUIRED: u64 = 2;
const GAP: u64 = 5;
const EMPTY: u64 = 1;
const IMPLICIT: u64 = 2;
const EXPLICIT: u64 = 3;
const CLOSED: u64 = 4;
pub(crate) const READ_ONLY: u64 = 0xd;
pub(crate) const FULL: u64 = 0xe;
pub(crate) const OFFLINE: u64 = 0xf;

impl Told {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }

    fn open(&self) -> bool {
        matches!(self.condition, IMPLICIT | EXPLICIT)
    }

    fn closed(self) -> Self {
        Self { condition: if self.pointer == self.start { EMPTY } else { CLOSED }, ..self }
    }
}

pub(crate) fn number(data: &[u8]) -> u64 {
    data.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// A CDB of 16 bytes: code and byte 1, eight bytes, four, and the last two.
pub(crate) fn cdb(code: [u8; 2], lba: u64, count: u32, last: [u8; 2]) -> Vec<u8> {
    [&code[..], &lba.to_be_bytes(), &count.to_be_bytes(), &last].concat()
}

/// The zones of a list of REPORT ZONES.
pub(crate) fn list(data: &[u8]) -> Vec<Told> {
    let told = |d: &[u8]| {
        let [length, start, pointer] = [8, 16, 24].map(|at| number(&d[at..at + 8]));
        Told { kind: d[0].into(), condition: (d[1] >> 4).into(), length, start, pointer }
    };
    data.get(64..).unwrap_or_default().chunks_exact(64).map(told).collect()
}

struct Rig {
    name: String,
    device: std::sync::Arc<Device>,
    disk: Box<dyn Disk + Send + Sync>,
    zones: Vec<Told>,
    bytes: Vec<u8>,
    /// Blocks of the disk; bytes of a block; blocks of a physical one; the most open zones.
    all: u64,
    block: usize,
    physical: u64,
    most: usize,
}

impl Rig {
    fn new(layer: &str, block: u32, most: usize) -> Self {
        let config = Config { block, ..Config::new("x", "tiny", layer, StoreKind::Memory) };
        let device = Device::open(config).unwrap();
        let disk = disk(device.clone()).unwrap();
        let capacity = execute(&*disk, "h", &cdb([0x9e, 0x10], 0, 32, [0; 2]), &[]).unwrap();
        let (all, physical) = (number(&capacity[..8]) + 1, 1 << capacity[13]);
        let bytes = vec![0; all as usize * block as usize];
        let (name, block) = (format!("{layer} of {block} bytes"), block as usize);
        let mut rig = Self { name, device, disk, zones: Vec::new(), bytes, all, block, physical, most };
        rig.zones = rig.told();
        assert_eq!(rig.zones.iter().map(|z| z.length).sum::<u64>(), all);
        rig
    }

    fn told(&self) -> Vec<Told> {
        list(&execute(&*self.disk, "h", &cdb([0x95, 0], 0, 1 << 20, [0; 2]), &[]).unwrap())
    }

    /// REPORT ZONES from the one with block `lba` on: those that fit the option, as many as there is room for in `bytes`.
    fn report(&self, lba: u64, option: u8, partial: bool, bytes: u32) {
        let fits = |z: &&Told| match option {
            0 => true,
            1..=4 => z.condition == u64::from(option),
            5 => z.condition == FULL,
            6 => z.condition == READ_ONLY,
            7 => z.condition == OFFLINE,
            0x3e => z.kind != GAP,
            0x3f => z.condition == 0,
            _ => false,
        };
        let mut codes = Vec::new();
        codes.extend((!matches!(option, 0..=7 | 0x10 | 0x11 | 0x3e | 0x3f)).then_some(0x2400));
        codes.extend((lba >= self.all).then_some(0x2100));
        let cdb = cdb([0x95, 0], lba, bytes, [u8::from(partial) << 7 | option, 0]);
        let Some(data) = self.go(&cdb, &[], &codes) else { return };
        let all: Vec<Told> = self.zones.iter().filter(|z| z.end() > lba).filter(fits).copied().collect();
        let room = all.len().min((bytes.saturating_sub(64) / 64) as usize);
        let what = || format!("{}: {cdb:x?}", self.name);
        assert_eq!(list(&data), all[..room], "{}", what());
        assert!(data.len() <= bytes as usize, "{}", what());
        if data.len() >= 16 {
            let length = 64 * if partial { room } else { all.len() };
            let told = (number(&data[..4]), number(&data[8..16]));
            assert_eq!(told, (length as u64, self.all - 1), "{}", what());
        }
    }

    fn held(&mut self, lba: u64, blocks: u64) -> &mut [u8] {
        &mut self.bytes[lba as usize * self.block..(lba + blocks) as usize * self.block]
    }

    fn count(&self, of: impl Fn(&Told) -> bool) -> usize {
        self.zones.iter().filter(|z| of(z)).count()
    }

    /// Carries a command out, which is refused with one of `codes`, or done if there are none.
    fn go(&self, cdb: &[u8], out: &[u8], codes: &[u16]) -> Option<Vec<u8>> {
        match execute(&*self.disk, "h", cdb, out) {
            Ok(data) => {
                assert!(codes.is_empty(), "{}: {cdb:x?} is done, and is one of {codes:x?}", self.name);
                Some(data)
            }
            Err(Refused::Check(sense)) => {
                let code = u16::from_be_bytes(sense.code);
                assert!(
                    codes.contains(&code),
                    "{}: {cdb:x?} is refused with {code:x}: {codes:x?}",
                    self.name
                );
                None
            }
            Err(Refused::Conflict) => panic!("nobody reserved it"),
        }
    }

    /// The zones are as they were, but for `next`, and for `closed` that were implicitly open: they made room.
    fn hold(&mut self, next: Vec<Told>, closed: RangeInclusive<usize>, what: &[u8]) {
        let now = self.told();
        let differ: Vec<_> = now.iter().zip(&next).filter(|(a, b)| a != b).collect();
        let fits = |(a, b): &(&Told, &Told)| b.condition == IMPLICIT && b.closed() == **a;
        let fit = differ.iter().all(fits) && closed.contains(&differ.len());
        assert!(fit, "{}: {what:x?}: {differ:x?}", self.name);
        self.zones = now;
        assert!(self.count(Told::open) <= self.most);
    }

    /// Lets a zone fail, which only those with a write pointer do.
    fn fail(&mut self, zone: &Told, offline: bool) {
        let (condition, told) = match offline {
            true => (ZoneCondition::Offline, OFFLINE),
            false => (ZoneCondition::ReadOnly, READ_ONLY),
        };
        let start = Lba(zone.start * self.block as u64 / 512);
        let (failed, mut next) = (self.device.fail_zone(start, condition).is_ok(), self.zones.clone());
        assert_eq!(failed, zone.kind == REQUIRED, "{}: {zone:?}", self.name);
        for z in next.iter_mut().filter(|z| failed && z.start == zone.start) {
            (z.condition, z.pointer) = (told, NO_POINTER);
        }
        self.hold(next, 0..=0, &[]);
    }

    fn write(&mut self, lba: u64, blocks: u64, fill: u8, same: bool) {
        let mut codes = Vec::new();
        let at = self.zones.iter().position(|z| (z.start..z.end()).contains(&lba));
        let zone = at.map(|i| self.zones[i]);
        let (end, free) = (lba + blocks, self.count(|z| z.condition == EXPLICIT) < self.most);
        match zone {
            _ if end > self.all => codes.push(0x2100),
            _ if blocks == 0 => codes.extend(same.then_some(0x2400)),
            None => codes.push(0x2100),
            Some(z) if z.kind == GAP => codes.push(0x2109),
            Some(z) if z.kind == CONVENTIONAL => {
                let behind = self.zones.iter().find(|z| z.kind != CONVENTIONAL).map_or(self.all, |z| z.start);
                codes.extend((end > behind).then_some(0x2105));
            }
            Some(z) => {
                let unaligned =
                    !blocks.is_multiple_of(self.physical) || z.pointer != NO_POINTER && lba != z.pointer;
                let opens = matches!(z.condition, EMPTY | CLOSED);
                for (code, is) in [
                    (0x2400, z.condition == FULL),
                    (0x2708, z.condition == READ_ONLY),
                    (0x2c0e, z.condition == OFFLINE),
                    (0x2104, unaligned),
                    (0x2105, end > z.end()),
                    (0x550e, opens && !free),
                ] {
                    codes.extend(is.then_some(code));
                }
            }
        }
        let code = if same { 0x93 } else { 0x8a };
        let cdb = cdb([code, 0], lba, blocks as u32, [0; 2]);
        let out = vec![fill; self.block * if same { 1 } else { blocks as usize }];
        let (mut next, mut closed) = (self.zones.clone(), 0..=0);
        if self.go(&cdb, &out, &codes).is_some() && blocks > 0 {
            self.held(lba, blocks).fill(fill);
            let z = &mut next[at.unwrap()];
            if z.kind == REQUIRED {
                let full = usize::from(!z.open() && self.count(Told::open) == self.most);
                closed = full..=full;
                (z.condition, z.pointer) = (if z.open() { z.condition } else { IMPLICIT }, end);
                if end == z.end() {
                    (z.condition, z.pointer) = (FULL, NO_POINTER);
                }
            }
        }
        self.hold(next, closed, &cdb);
    }

    fn read(&mut self, lba: u64, blocks: u64) {
        let over = |z: &&Told| blocks > 0 && z.start < lba + blocks && lba < z.end();
        let of = |z: &Told| (z.kind == GAP).then_some(0x2109).or((z.condition == OFFLINE).then_some(0x2c0e));
        let codes = match lba + blocks > self.all {
            true => vec![0x2100],
            // The first that is in the way.
            false => self.zones.iter().filter(over).find_map(of).into_iter().collect(),
        };
        if let Some(data) = self.go(&cdb([0x88, 0], lba, blocks as u32, [0; 2]), &[], &codes) {
            assert!(data == self.held(lba, blocks), "{}: {blocks} blocks at {lba}", self.name);
        }
    }

    /// CLOSE, FINISH, OPEN, RESET of zones from `id` on, or of all.
    fn act(&mut self, action: u8, id: u64, count: u16, all: bool) {
        let mut codes = Vec::new();
        let first = self.zones.iter().position(|z| z.start == id && z.kind == REQUIRED);
        let of = |z: &Told, conditions: &[u64]| z.kind == REQUIRED && conditions.contains(&z.condition);
        let taken = [&[][..], &[2, 3], &[2, 3, 4], &[4], &[2, 3, 4, 0xe]][usize::from(action)];
        let many = usize::from(count.max(1));
        let places = 0..self.zones.len();
        let which: Vec<usize> = match (all, first) {
            (true, _) => places.filter(|i| of(&self.zones[*i], taken)).collect(),
            (false, None) => Vec::new(),
            (false, Some(first)) => {
                places.skip(first).filter(|i| self.zones[*i].kind != GAP).take(many).collect()
            }
        };
        let among = |conditions: &[u64]| which.iter().filter(|i| of(&self.zones[**i], conditions)).count();
        let (opened, explicit) = (self.count(Told::open), self.count(|z| z.condition == EXPLICIT));
        let mut closed = 0..=0;
        if !all && id >= self.all {
            codes.push(0x2100);
        } else if !all && which.len() < many {
            codes.push(0x2400);
        } else {
            codes.extend((among(&[READ_ONLY]) > 0).then_some(0x2708));
            codes.extend((among(&[OFFLINE]) > 0).then_some(0x2c0e));
            let new = among(&[EMPTY, CLOSED]);
            // A zone that is finished is open for a moment, for which another one may have to make room.
            let (opens, finishes) = (action == 3, action == 2 && !all && new > 0);
            let full =
                opens && explicit + new + among(&[IMPLICIT]) > self.most || finishes && explicit == self.most;
            if full && finishes && among(&[EXPLICIT]) > 0 {
                // Whether there is room hangs on which of them is finished first.
                return;
            }
            codes.extend(full.then_some(0x550e));
            let more = (opened + new).saturating_sub(self.most);
            closed = if opens { more..=more } else { 0..=usize::from(finishes && opened == self.most) };
        }
        let cdb = cdb([0x94, action], id, u32::from(count), [u8::from(all), 0]);
        let mut next = self.zones.clone();
        if self.go(&cdb, &[], &codes).is_some() {
            for i in &which {
                let z = &mut next[*i];
                match (action, z.condition) {
                    (1, IMPLICIT | EXPLICIT) => *z = z.closed(),
                    (2, EMPTY | IMPLICIT | EXPLICIT | CLOSED) => {
                        (z.condition, z.pointer) = (FULL, NO_POINTER)
                    }
                    (3, EMPTY | IMPLICIT | CLOSED) => z.condition = EXPLICIT,
                    (4, _) => (z.condition, z.pointer) = (EMPTY, z.start),
                    _ => {}
                }
            }
            if action == 4 {
                which.iter().for_each(|i| self.held(next[*i].start, next[*i].length).fill(0));
            }
            self.hold(next, closed, &cdb);
        } else {
            self.hold(next, 0..=0, &cdb);
        }
    }
}

/// A block and a number of them, at places where zones differ.
fn any_blocks(rig: &Rig, zone: &Told, rng: &mut Rng) -> (u64, u64) {
    let within = zone.start + rng.below(zone.length);
    let lba = match rng.below(6) {
        0 => within,
        1 => zone.start,
        _ if zone.pointer != NO_POINTER => zone.pointer,
        _ => within / rig.physical * rig.physical,
    };
    let left = zone.end() - lba;
    let blocks = match rng.below(6) {
        0 => rng.below(2 * zone.length + 2),
        1 => left,
        2 => left + rig.physical * rng.below(3),
        3 => 0,
        _ => rig.physical * (1 + rng.below(3)),
    };
    (lba, blocks)
}

#[test]
fn random_commands_are_answered_by_the_rules_of_zones() {
    for (layer, most) in [
        ("zoned,zone=64KiB,max_open=3,conventional=10%", 3),
        ("zoned,zone=64KiB,max_open=1,conventional=10%", 1),
        ("zoned,zone=44KiB,max_open=2,conventional=1%", 2),
        ("zoned,zone=64KiB,runt=4KiB,max_open=3,conventional=0%", 3),
        ("zoned,zone=64KiB,capacity=48KiB,max_open=3,conventional=10%", 3),
        ("zoned,zone=4KiB,max_open=5,conventional=10%", 5),
        ("zoned,zone=128KiB,max_open=10,conventional=0%", 10),
        ("zoned,zone=1MiB,max_open=2,conventional=0%", 2),
    ] {
        for (block, seed) in [(512, 1), (4096, 2)] {
            let (mut rig, mut rng) = (Rig::new(layer, block, most), Rng::new(seed));
            for _ in 0..300 {
                let zone = rig.zones[rng.below(rig.zones.len() as u64) as usize];
                let (lba, blocks) = any_blocks(&rig, &zone, &mut rng);
                match rng.below(9) {
                    0..=2 => rig.write(lba, blocks, 1 + rng.below(255) as u8, rng.one_in(5)),
                    3 => rig.read(lba, blocks),
                    8 => {
                        let from = if rng.one_in(20) { rig.all + rng.below(2) } else { lba };
                        let option = [rng.below(8), 0x3e, 0x3f, rng.below(64)][rng.below(4) as usize];
                        let bytes = [rng.below(900), 1 << 20][rng.below(2) as usize] as u32;
                        rig.report(from, option as u8, rng.one_in(2), bytes);
                    }
                    n => {
                        let id = [lba, rig.all, zone.start][rng.below(12).min(2) as usize];
                        let count = if rng.one_in(4) { rng.below(6) as u16 } else { 0 };
                        rig.act(n as u8 - 3, id, count, rng.one_in(8));
                    }
                }
                if rng.one_in(100) {
                    rig.fail(&zone, rng.one_in(2));
                }
            }
        }
    }
}
