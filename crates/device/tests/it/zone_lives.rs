//! Zones of served drives that are killed, and lose their power: each is as it was at some time since it was durable, up to its write
//! pointer, and no block of it is of another time.

use crate::drawn_stacks::{BUFFER, drawn_drive, sized};
use crate::power::{Disk, config, is_buffered, left_of, open, scratch};
use parking_lot::Mutex;
use smrlab_device::Device;
use smrlab_testkit::{Rng, cases, drawn, random};
use smrlab_units::{Lba, Zone, ZoneAction, ZoneCondition, ZoneKind};
use std::sync::Arc;
use tempfile::TempDir;

const BLOCK: u64 = 512;
/// Zoned drives are written in whole physical blocks.
const PHYSICAL: u64 = 8;

/// What a zone held from a reset on, or from when it was durable: a stamp for each of its blocks.
#[derive(Clone, Debug, Default)]
struct Time {
    stamps: Vec<u8>,
    /// So much of it at least is there, if the zone is of this time at all.
    durable: usize,
    finished: bool,
}

/// The zones of a store through many lives.
struct Zones {
    stack: String,
    dir: TempDir,
    disk: Arc<Mutex<Disk>>,
    boot: u64,
    /// Of each zone with a write pointer: where it begins, and what it may be, the newest time last.
    may: Vec<(u64, Vec<Time>)>,
    stamp: u8,
    random: Rng,
}

fn sequential(device: &Device) -> Vec<Zone> {
    let mut zones = Vec::new();
    let each = &mut |zone: &Zone| {
        zones.extend((zone.kind.has_pointer()).then_some(*zone));
        true
    };
    device.zones(Lba(0), each).unwrap();
    zones
}

impl Zones {
    fn new(stack: &str, seed: u64) -> Self {
        let dir = scratch();
        let disk = Arc::new(Mutex::new(Disk::of(&dir.path().join("store"), u64::MAX, Rng::new(seed + 1))));
        Self {
            stack: stack.to_owned(),
            dir,
            disk,
            boot: 1,
            may: Vec::new(),
            stamp: 0,
            random: Rng::new(seed),
        }
    }

    fn open(&self) -> Arc<Device> {
        open(&self.stack, None, (&self.dir.path().join("store"), self.boot), &self.disk)
    }

    /// One life of the server; answers whether the power was lost.
    fn live(&mut self, requests: u64) -> bool {
        let device = self.open();
        if self.may.is_empty() {
            self.may = sequential(&device).iter().map(|z| (z.start.0, vec![Time::default()])).collect();
            let store = self.dir.path().join("store");
            *self.disk.lock() = Disk::of(&store, u64::MAX, Rng::new(self.random.bits()));
        }
        self.settle(&device, false);
        self.disk.lock().answered += 1;
        self.disk.lock().left = 1 + self.random.below(200);
        let lost = |zones: &Self| zones.disk.lock().image.is_some();
        for _ in 0..requests {
            self.request(&device);
            if lost(self) {
                break;
            }
        }
        if !lost(self) && self.random.one_in(3) {
            device.close().unwrap();
            self.disk.lock().answered += 1;
            if !lost(self) {
                self.durable();
            }
        }
        drop(device);
        if lost(self) {
            self.lose_power();
            return true;
        }
        false
    }

    /// The host starts again with what its disk has.
    fn lose_power(&mut self) {
        (self.dir, self.disk) = left_of(&self.disk, Rng::new(self.random.bits()));
        self.boot += 1;
        let device = self.open();
        self.settle(&device, true);
    }

    /// All that was answered is durable.
    fn durable(&mut self) {
        for (_, times) in &mut self.may {
            let mut newest = times.pop().unwrap();
            newest.durable = newest.stamps.len();
            *times = vec![newest];
        }
    }

    /// Each zone is as it may be; that is what it is from now on, and behind a loss of power it is durable. A server that is killed loses
    /// nothing that it answered but what is in buffers.
    fn settle(&mut self, device: &Device, power: bool) {
        let all = !power && !is_buffered(&self.stack);
        for (zone, (start, times)) in sequential(device).iter().zip(&mut self.may) {
            let what = format!("{}, boot {}, power {power}: {zone:?}", self.stack, self.boot);
            assert_eq!(zone.start.0, *start, "{what}");
            assert!(!zone.condition.is_open(), "{what}: nobody opened it");
            let full = zone.condition == ZoneCondition::Full;
            let held = if full { zone.blocks.0 } else { zone.pointer.unwrap().0 - *start } as usize;
            let mut bytes = vec![0xee; held * BLOCK as usize];
            device.read(*start * BLOCK, &mut bytes).unwrap();
            let shown: Vec<u8> = bytes.iter().step_by(BLOCK as usize).copied().collect();
            assert!(
                bytes.chunks(BLOCK as usize).zip(&shown).all(|(b, s)| b.iter().all(|byte| byte == s)),
                "{what}"
            );
            // Zones that take writes anywhere may have a later one without the one before it.
            let holes = zone.kind == ZoneKind::SequentialPreferred;
            let fits = |time: &Time| {
                let least = if all { time.stamps.len() } else { time.durable };
                let written = time.stamps.len().min(held);
                let finished = full && time.finished && written == time.stamps.len();
                let may_be = |i: usize, is: u8| is == time.stamps[i] || holes && is == 0 && i >= least;
                (finished || written == held && written >= least) && (0..written).all(|i| may_be(i, shown[i]))
            };
            let least = if all { times.len() - 1 } else { 0 };
            let Some(i) = (least..times.len()).rev().find(|i| fits(&times[*i])) else {
                panic!("{what}: holds {shown:?}, and may be {times:?}");
            };
            times.truncate(i + 1);
            let newest = times.last_mut().unwrap();
            newest.stamps = shown[..newest.stamps.len().min(held)].to_vec();
            newest.finished = full;
            if power {
                newest.durable = newest.stamps.len();
                times.drain(..i);
            }
        }
    }

    fn request(&mut self, device: &Device) {
        // Mostly a few zones, which fill.
        let many = self.may.len() as u64;
        let among = if self.random.one_in(4) { many } else { many.min(4) };
        let i = self.random.below(among) as usize;
        let zone = sequential(device)[i];
        let (start, times) = &mut self.may[i];
        let newest = times.last_mut().unwrap();
        let at = zone.pointer.map_or(zone.blocks.0, |pointer| pointer.0 - *start);
        assert!(newest.finished || at == newest.stamps.len() as u64, "{}: {zone:?}: {newest:?}", self.stack);
        let act = |action| device.zone(action, Some(zone.start));
        match self.random.below(16) {
            0 => {
                device.flush().unwrap();
                let mut disk = self.disk.lock();
                disk.answered += 1;
                if disk.image.is_none() {
                    drop(disk);
                    self.durable();
                }
            }
            1 => {
                act(ZoneAction::Reset).unwrap();
                times.push(Time::default());
            }
            // An empty one may be beyond the limit of active zones.
            2 => newest.finished |= act(ZoneAction::Finish).is_ok(),
            3 => _ = act(ZoneAction::Open),
            4 => _ = act(ZoneAction::Close),
            5 => {
                let mut bytes = vec![0xee; (at * BLOCK) as usize];
                device.read(*start * BLOCK, &mut bytes).unwrap();
                let held = bytes.chunks(BLOCK as usize).zip(&newest.stamps);
                assert!(
                    held.into_iter().all(|(b, s)| b.iter().all(|byte| byte == s)),
                    "{zone:?}: {newest:?}"
                );
            }
            _ if at < zone.blocks.0 => {
                let len = (1 + self.random.below(4)) * PHYSICAL;
                let (len, fua) = (len.min(zone.blocks.0 - at), self.random.one_in(10));
                self.stamp = self.stamp % 250 + 1;
                let data = vec![self.stamp; (len * BLOCK) as usize];
                // Refused beyond the limit of active zones.
                if device.write((*start + at) * BLOCK, &data, fua).is_ok() {
                    newest.stamps.extend(vec![self.stamp; len as usize]);
                    if fua {
                        let mut disk = self.disk.lock();
                        disk.answered += 1;
                        if disk.image.is_none() {
                            newest.durable = newest.stamps.len();
                            times.drain(..times.len() - 1);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Zoned drives of any kind, alone.
#[test]
fn zones_are_as_they_were_at_one_time() {
    let mut rng = random(63);
    for name in ["zoned", "host-aware"] {
        let entry = smrlab_stl::registry::find(name).unwrap();
        let mut left = cases(20);
        while left > 0 {
            let dir = scratch();
            let on = match rng.below(4) {
                0 => String::new(),
                1 => drawn_drive(&mut rng, dir.path()),
                2 => " on tiny,command=0.1ms".to_owned(),
                _ => format!(" on tiny,{BUFFER}"),
            };
            let (stack, seed) = (drawn::durable_layer(entry, &mut rng) + &on, rng.bits() >> 1);
            let Some(stack) = sized(stack, &mut rng) else { continue };
            if config(&stack, smrlab_device::config::StoreKind::Memory).metadata == "media" {
                continue;
            }
            println!("{stack}, seed {seed}");
            let mut zones = Zones::new(&stack, seed);
            let mut losses = 0;
            while losses < 4 {
                let requests = 1 + zones.random.below(80);
                losses += u64::from(zones.live(requests));
            }
            left -= 1;
        }
    }
}
