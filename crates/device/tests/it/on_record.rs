//! What served devices do with one random host each, as it is on [record](smrlab_testkit::record) in `on_record.txt`: bytes, refusals, extents,
//! zones, counts, events, and the same after restarts. Anew: `SMRLAB_RECORD=FILE cargo test -p smrlab-device --test it on_record`.

use crate::served::scratch;
use serde_json::{Value, json};
use smrlab_device::config::StoreKind;
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device, control};
use smrlab_testkit::Digest;
use smrlab_testkit::record::differs;
use smrlab_units::rng::Rng;
use smrlab_units::{Lba, ZoneAction};
use std::fmt::Write as _;
use std::sync::Arc;

/// Drive, layer and array (of the drive alone: none), beside every layer on `tiny`.
const DEVICES: &[(&str, &str, &str)] = &[
    ("tiny", "zoned,zone=16KiB,conventional=10%,max_open=3", ""),
    ("tiny", "zoned,zone=32KiB,conventional=0%,urswrz=off", ""),
    ("tiny", "host-aware,zone=16KiB,conventional=10%", ""),
    ("tiny", "disk-cache,cache=10%,journal=on", ""),
    ("tiny,write_cache=on,segments=8,cache_size=32KiB", "s-block,sblock_blocks=160", ""),
    ("tiny", "cmr", "striped,disks=3,chunk=4KiB"),
    ("tiny", "rmw,journal=on", "spanning,disks=2"),
    ("tiny", "cmr", "raid5,disks=3,chunk=4KiB,intent=on"),
    ("tiny", "s-block,sblock_blocks=160", "raid5,disks=4,chunk=2KiB,journal=on"),
    ("tiny", "cmr", "raid6,disks=4,chunk=4KiB"),
    ("tiny", "log", "mirror,disks=2"),
    ("tiny", "cmr", "dvs,disks=4,chunk=4KiB,segment=8"),
    ("tiny", "cmr", "full-stripe,disks=4,chunk=4KiB,segment=8"),
    ("tiny", "cmr", "raid5,disks=3,chunk=4KiB,ssd_write=64KiB,ssd_read=32KiB,ssd_page=4KiB"),
    ("tiny", "zoned,zone=32KiB,conventional=45%", "dm-zoned,reserved=2,copy=8KiB"),
    ("tiny", "cmr", "mirror,chunk=4KiB / striped,disks=2,chunk=4KiB"),
];

/// A device and what it answered. On a store of a directory it begins again as often as it is told to.
struct Rig {
    config: Config,
    device: Option<Arc<Device>>,
    seen: Digest,
    requests: u64,
    refused: u64,
}

/// What is no time of the host's.
fn timeless(value: &Value) -> Value {
    let times = |key: &str| ["_ms", "_s", "_ns"].iter().any(|end| key.ends_with(end)) || key == "stalls";
    match value {
        Value::Object(o) => {
            o.iter().filter(|(key, _)| !times(key)).map(|(key, v)| (key.clone(), timeless(v))).collect()
        }
        Value::Array(a) => a.iter().map(timeless).collect(),
        plain => plain.clone(),
    }
}

impl Rig {
    fn new(config: Config) -> Self {
        let device = Some(Device::open(config.clone()).unwrap_or_else(|e| panic!("{config:?}: {e}")));
        Self { config, device, seen: Digest::default(), requests: 0, refused: 0 }
    }

    fn device(&self) -> &Device {
        self.device.as_ref().expect("it runs")
    }

    fn heard<T>(&mut self, answer: Result<T, smrlab_device::DeviceError>) {
        self.requests += 1;
        if let Err(e) = answer {
            self.refused += 1;
            self.seen.note_debug(&(e.errno(), e.to_string()));
        }
    }

    /// Sends a command to its control socket.
    fn ask(&mut self, what: &Value) -> Value {
        let answer = control::answer(self.device(), &|_, _| None, &what.to_string());
        let said = answer.map_or_else(|e| json!(e.to_string()), |value| timeless(&value));
        _ = write!(self.seen, "{said}");
        said
    }

    /// Its bytes, and which of them it says are data.
    fn look(&mut self) {
        let size = self.device().size();
        let (mut all, step) = (Vec::new(), 32_768);
        for at in (0..size).step_by(step) {
            let mut out = vec![0; step.min((size - at) as usize)];
            let answer = self.device().read(at, &mut out);
            if answer.is_ok() {
                all.extend(out);
            }
            self.heard(answer);
        }
        self.seen.note(
            &all.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect::<Vec<_>>(),
        );
        let mut extents = Vec::new();
        let answer = self.device().extents(0, size, &mut |at, len, data| extents.push((at, len, data)));
        self.heard(answer);
        self.seen.note_debug(&extents);
    }

    /// Lets the server work between requests until a disk that was replaced is whole.
    fn rebuilt(&self, disk: usize) {
        for _ in 0..10_000 {
            self.device().housekeeping();
            if self.device().stats()["disks"][disk]["state"] == "whole" {
                return;
            }
        }
        panic!("disk {disk} is not rebuilt: {}", self.device().stats());
    }

    fn restart(&mut self, closed: bool) {
        if let Some(device) = self.device.take().filter(|_| closed) {
            self.heard(device.close());
        }
        self.device = None;
        self.device = Some(Device::open(self.config.clone()).unwrap());
        self.look();
    }

    fn request(&mut self, rng: &mut Rng) {
        let (unit, size) = (u64::from(self.device().block_size()), self.device().size());
        let units = size / unit;
        let zones = self.device().zone_limits().is_some();
        let mut zone = (0, 0, None);
        if zones {
            let from = Lba(rng.below(size / 512));
            let answer = self.device().zones(from, &mut |z| {
                zone = (z.start.0 * 512, z.blocks.bytes(), z.pointer.map(|p| p.0 * 512));
                false
            });
            self.heard(answer);
        }
        let start = rng.below(units);
        let len = (1 + rng.below(24)).min(units - start) * unit;
        let (at, fua) = (start * unit, rng.one_in(10));
        let data = |rng: &mut Rng, len: u64| vec![rng.bits() as u8 | 1; len as usize];
        let answer = match (rng.below(24), zone.2) {
            (0..=9, Some(pointer)) if pointer < zone.0 + zone.1 => {
                let len = (4096 * (1 + rng.below(2))).min(zone.0 + zone.1 - pointer);
                self.device().write(pointer, &data(rng, len), fua)
            }
            (10, Some(_)) => {
                self.device().zone(ZoneAction::ALL[rng.below(4) as usize], Some(Lba(zone.0 / 512)))
            }
            (11, Some(_)) if rng.one_in(6) => {
                self.device().zone(ZoneAction::ALL[rng.below(4) as usize], None)
            }
            (0..=14, _) => self.device().write(at, &data(rng, len), fua),
            (15..=18, _) => {
                let mut out = vec![0; len as usize];
                let answer = self.device().read(at, &mut out);
                self.seen.note(&out.iter().map(|b| u64::from(*b)).collect::<Vec<_>>());
                answer
            }
            (19 | 20, _) => self.device().trim(at, len, fua),
            (21, _) => self.device().zero(at, len, fua),
            _ => self.device().flush(),
        };
        self.heard(answer);
    }
}

/// What a device does with a random host that restarts it, kills its disks and asks for everything that it tells.
fn said(config: Config) -> String {
    let (mut rig, mut rng) = (Rig::new(config), Rng::new(61));
    let durable = matches!(rig.config.store, StoreKind::Directory(_));
    let losses =
        rig.config.array.as_deref().map_or(0, |a| smrlab_array::parse(a).unwrap().capabilities().losses);
    let what = ["bands", "map", "zones"];
    for round in 0..4 {
        (0..90).for_each(|_| rig.request(&mut rng));
        _ = rig.ask(&json!({"cmd": what[round % 3], "cells": 50, "disk": (losses > 0).then_some(1)}));
        if losses > 0 {
            _ = rig.ask(&json!({"cmd": "fail", "disk": round % 2}));
            (0..40).for_each(|_| rig.request(&mut rng));
            _ = rig.ask(&json!({"cmd": "replace", "disk": round % 2}));
            // The last one stays as far as it came.
            if round < 3 {
                rig.rebuilt(round % 2);
            }
        }
        _ = rig.ask(&json!({"cmd": "stats"}));
        match round {
            0 | 3 if durable => rig.restart(true),
            1 if durable => rig.restart(false),
            2 => _ = rig.ask(&json!({"cmd": "reset-stats"})),
            3 => rig.look(),
            _ => {}
        }
    }
    _ = rig.ask(&json!({"cmd": "events"}));
    format!("{} requests, {} refused, {}", rig.requests, rig.refused, rig.seen)
}

#[test]
fn devices_do_what_is_on_record() {
    let folder = scratch();
    let layers = smrlab_stl::LAYERS.iter().map(|entry| ("tiny", entry.name, ""));
    let mut wrong = Vec::new();
    for (i, (drive, layer, array)) in layers.chain(DEVICES.iter().copied()).enumerate() {
        let name = format!("{array} / {layer}, {drive}");
        // By its name, so that a new layer or device changes no line but its own.
        let vary = name.bytes().map(usize::from).sum::<usize>();
        for durable in [false, true] {
            let store = if durable {
                StoreKind::Directory(folder.path().join(i.to_string()))
            } else {
                StoreKind::Memory
            };
            let array_text = (!array.is_empty()).then(|| array.to_owned());
            let mode = [Mode::Data, Mode::Performance][vary % 2];
            let metadata = if durable && vary % 3 == 0 { "media" } else { "nv" }.to_owned();
            let config = Config {
                array: array_text,
                mode,
                metadata,
                errors: vary % 4 == 1,
                block: if vary % 5 == 2 { 4096 } else { 512 },
                // How long the host takes is on no record.
                stall_ns: u64::MAX,
                ..Config::new("r", drive, layer, store)
            };
            let place = if durable { "in a directory" } else { "in memory" };
            let line = format!("{name}, {place}");
            wrong.extend(differs(include_str!("on_record.txt"), &line, &said(config)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
