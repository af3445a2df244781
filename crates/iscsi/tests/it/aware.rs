//! Random commands to served host-aware drives, of which a host writes and frees blocks anywhere: data, zones and refusals by a second model.

use crate::zones::{FULL, NO_POINTER, OFFLINE, READ_ONLY, Told, cdb, list, number};
use smrlab_device::config::StoreKind;
use smrlab_device::{Config, Device};
use smrlab_iscsi::served::disk;
use smrlab_scsi::{Disk, Refused, execute};
use smrlab_units::rng::Rng;
use smrlab_units::{Lba, ZoneCondition};
use std::sync::Arc;

/// The type of zones that prefer sequential writes.
const PREFERRED: u64 = 3;

struct Rig {
    device: Arc<Device>,
    disk: Box<dyn Disk + Send + Sync>,
    block: usize,
    all: u64,
    zones: Vec<Told>,
    bytes: Vec<u8>,
}

impl Rig {
    fn new(layer: &str, block: u32) -> Self {
        let config = Config { block, ..Config::new("x", "tiny", layer, StoreKind::Memory) };
        let device = Device::open(config).unwrap();
        let disk = disk(device.clone()).unwrap();
        let capacity = execute(&*disk, "h", &cdb([0x9e, 0x10], 0, 32, [0; 2]), &[]).unwrap();
        // LBPME and LBPRZ: blocks can be freed, and read as zeroes then.
        assert_eq!(capacity[14], 0xc0);
        let (all, block) = (number(&capacity[..8]) + 1, block as usize);
        let mut rig =
            Self { device, disk, block, all, zones: Vec::new(), bytes: vec![0; all as usize * block] };
        rig.zones = rig.told();
        rig
    }

    fn told(&self) -> Vec<Told> {
        list(&self.ask(&cdb([0x95, 0], 0, 1 << 20, [0; 2]), &[]).unwrap())
    }

    /// What a command reads, or the code of its refusal.
    fn ask(&self, cdb: &[u8], out: &[u8]) -> Result<Vec<u8>, u16> {
        execute(&*self.disk, "h", cdb, out).map_err(|why| match why {
            Refused::Check(sense) => u16::from_be_bytes(sense.code),
            Refused::Conflict => panic!("nobody reserved it"),
        })
    }

    fn held(&mut self, (lba, blocks): (u64, u64)) -> &mut [u8] {
        &mut self.bytes[lba as usize * self.block..(lba + blocks) as usize * self.block]
    }

    /// Why blocks cannot be changed: those beyond the end first, then the first zone that failed.
    fn kept(&self, (lba, blocks): (u64, u64)) -> Result<(), u16> {
        let over = |z: &&Told| blocks > 0 && z.start < lba + blocks && lba < z.end();
        let failed = |z: &Told| match z.condition {
            READ_ONLY => Some(0x2708),
            OFFLINE => Some(0x2c0e),
            _ => None,
        };
        match lba + blocks > self.all {
            true => Err(0x2100),
            false => self.zones.iter().filter(over).find_map(failed).map_or(Ok(()), Err),
        }
    }

    fn write(&mut self, at: (u64, u64), fill: u8) {
        let (lba, blocks) = at;
        let out = vec![fill; blocks as usize * self.block];
        let done = self.ask(&cdb([0x8a, 0], lba, blocks as u32, [0; 2]), &out).map(|_| ());
        assert_eq!(done, self.kept(at), "a write of {at:?}");
        let mut next = self.zones.clone();
        if done.is_ok() && blocks > 0 {
            self.held(at).fill(fill);
            for z in next.iter_mut().filter(|z| z.kind == PREFERRED && z.pointer != NO_POINTER) {
                if z.start < lba + blocks && lba < z.end() {
                    z.pointer = z.pointer.max((lba + blocks).min(z.end()));
                }
                if z.pointer == z.end() {
                    (z.condition, z.pointer) = (FULL, NO_POINTER);
                }
            }
        }
        // Which of them are open is asked elsewhere.
        self.zones = self.told();
        let pointers = |zones: &[Told]| zones.iter().map(|z| (z.start, z.pointer)).collect::<Vec<_>>();
        assert_eq!(pointers(&self.zones), pointers(&next), "a write of {at:?}");
    }

    /// UNMAP of stretches: none is freed where one is not on the disk, else all up to the first that lies in a zone that failed. Zones stay as they
    /// are, wherever their pointers.
    fn unmap(&mut self, stretches: &[(u64, u64)]) {
        let each = stretches.iter().flat_map(|(lba, blocks)| {
            [&lba.to_be_bytes()[..], &(*blocks as u32).to_be_bytes(), &[0; 4]].concat()
        });
        let bytes = 16 * stretches.len() as u8;
        let out: Vec<u8> = [0, bytes + 6, 0, bytes, 0, 0, 0, 0].into_iter().chain(each).collect();
        let done = self.ask(&[0x42, 0, 0, 0, 0, 0, 0, 0, out.len() as u8, 0], &out).map(|_| ());
        let beyond = stretches.iter().find(|(lba, blocks)| lba + blocks > self.all).map(|_| 0x2100);
        let mut expected = beyond.map_or(Ok(()), Err);
        for at in stretches {
            if expected.is_ok() {
                expected = self.kept(*at);
            }
            if expected.is_ok() {
                self.held(*at).fill(0);
            }
        }
        assert_eq!(done, expected, "{stretches:?}");
        assert_eq!(self.told(), self.zones, "{stretches:?}");
    }

    /// WRITE SAME of zeroes with UNMAP, with a block that is sent or without one (NDOB): the same as UNMAP.
    fn unmap_by_same(&mut self, at: (u64, u64), sent: bool) {
        let (lba, blocks) = at;
        let flags = 0x08 | u8::from(!sent);
        let out = vec![0; if sent { self.block } else { 0 }];
        let done = self.ask(&cdb([0x93, flags], lba, blocks as u32, [0; 2]), &out).map(|_| ());
        let expected = self.kept(at).and(if blocks == 0 { Err(0x2400) } else { Ok(()) });
        assert_eq!(done, expected, "{at:?}");
        if done.is_ok() {
            self.held(at).fill(0);
        }
        assert_eq!(self.told(), self.zones, "{at:?}");
    }

    fn reset(&mut self, zone: usize) {
        let z = self.zones[zone];
        let done = self.ask(&cdb([0x94, 4], z.start, 0, [0; 2]), &[]).map(|_| ());
        let expected = if z.kind == PREFERRED { self.kept((z.start, z.length)) } else { Err(0x2400) };
        assert_eq!(done, expected, "{z:?}");
        if done.is_ok() {
            self.held((z.start, z.length)).fill(0);
            (self.zones[zone].condition, self.zones[zone].pointer) = (1, z.start);
        }
        assert_eq!(self.told(), self.zones);
    }

    fn fail(&mut self, zone: usize, offline: bool) {
        let at = Lba(self.zones[zone].start * self.block as u64 / 512);
        let condition = if offline { ZoneCondition::Offline } else { ZoneCondition::ReadOnly };
        let failed = self.device.fail_zone(at, condition).is_ok();
        assert_eq!(failed, self.zones[zone].kind == PREFERRED);
        self.zones = self.told();
    }

    /// All that can be read is as it was written, or freed.
    fn holds(&mut self) {
        for z in self.zones.clone() {
            let read = self.ask(&cdb([0x88, 0], z.start, z.length as u32, [0; 2]), &[]);
            match z.condition {
                OFFLINE => assert_eq!(read, Err(0x2c0e)),
                _ => assert!(read.unwrap() == self.held((z.start, z.length)), "{z:?}"),
            }
        }
    }
}

#[test]
fn blocks_of_host_aware_drives_are_freed_wherever_the_pointers_are() {
    for (layer, seed) in [
        ("host-aware,zone=64KiB,optimal_open=3,conventional=10%", 1),
        ("host-aware,zone=16KiB,optimal_open=2,log=32KiB,conventional=0%", 2),
    ] {
        for block in [512, 4096] {
            let (mut rig, mut rng) = (Rig::new(layer, block), Rng::new(seed));
            for step in 0..600 {
                let zone = rng.below(rig.zones.len() as u64) as usize;
                let z = rig.zones[zone];
                let mut any = || {
                    let lba =
                        if rng.one_in(3) && z.pointer < rig.all { z.pointer } else { rng.below(rig.all) };
                    let most = if rng.one_in(4) { 2 * z.length } else { 9 };
                    let blocks = rng.below(most);
                    (lba, if rng.one_in(20) { blocks } else { blocks.min(rig.all - lba) })
                };
                let (one, two) = (any(), [any(), any(), any()]);
                match rng.below(12) {
                    0..=4 => rig.write(one, 1 + rng.below(255) as u8),
                    5..=6 => rig.unmap(&two[..rng.below(4) as usize]),
                    7 => rig.unmap_by_same(one, rng.one_in(2)),
                    8 => rig.reset(zone),
                    9 if rng.one_in(25) => rig.fail(zone, rng.one_in(2)),
                    _ => rig.device.housekeeping(),
                }
                if step % 20 == 0 {
                    rig.holds();
                }
            }
            assert!(rig.bytes.iter().any(|b| *b != 0));
            rig.holds();
        }
    }
}
