//! When a served drive acknowledges: what it answers is what a drive by itself answers.

use super::*;
use crate::config::{StoreKind, Timing};
use crate::control::answer;
use crate::faults::{Fate, Injection};
use smrlab_drive::ScheduledDrive;
use smrlab_stl::HostRequest;
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp};

/// All requests come at time 0 of a clock that stands still. Each is answered with the time at which the drive is done with it, behind
/// those before: the time of its own drive, with its layer, its buffer and its options, forced to the medium where that was asked for.
#[test]
fn acknowledgements_are_those_of_the_drive() {
    let cached = "tiny,write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100";
    for (drive, layer) in [
        ("tiny", "cmr"),
        ("tiny,rpm=5400", "raw,tracks=3"),
        ("tiny", "rmw,journal=on"),
        ("tiny", "s-block,sblock_blocks=160"),
        (cached, "cmr"),
        (cached, "disk-cache"),
    ] {
        let (timing, speed) = (Timing::Model, 1e-12);
        let config = Config { timing, speed, ..Config::new("a", drive, layer, StoreKind::Memory) };
        let device = Device::open(config.clone()).unwrap();
        let (alone, scheduler) = crate::disk::assembled(&config, None).unwrap().start(false, false);
        let (mut alone, mut random) = (ScheduledDrive::new(alone, &scheduler), Rng::new(17));
        let blocks = device.size() / BLOCK_BYTES;
        let mut before = SimTime::ZERO;
        for i in 0..120 {
            let (start, fua) = (random.below(blocks - 16), random.one_in(5));
            let n = 1 + random.below(16);
            let (call, mut data) = (device.clock.call(), vec![i as u8; (n * BLOCK_BYTES) as usize]);
            let of = |op| HostRequest { id: i, ..HostRequest::new(op, Lba(start), Blocks(n)) };
            let (request, ack) = match i % 4 {
                0 | 1 => {
                    (HostRequest { fua, ..of(HostOp::Write) }, device.engine.write(call, start, &data, fua))
                }
                2 => (of(HostOp::Read), device.engine.read(call, start, &mut data).map(|(ack, _)| ack)),
                _ => (HostRequest { id: i, ..HostRequest::flush() }, device.engine.flush(call)),
            };
            let expected = alone.submit(SimTime::ZERO, &request, &mut ()).unwrap().map(|served| served.ack);
            let ack = ack.unwrap();
            assert_eq!(Some(ack), expected, "{layer} on {drive}: request {i}");
            before = before.max(ack);
        }
        assert!(before > SimTime::from_ms(100), "{layer} on {drive}: {before:?}");
    }
}

/// Zones are written in blocks of 4 KiB, everything else in blocks of the size that the host was told.
#[test]
fn physical_blocks_are_those_of_zones_or_of_the_host() {
    for (layer, block, physical) in
        [("zoned,zone=16KiB", 512, 4096), ("cmr", 512, 512), ("cmr", 4096, 4096), ("raw,tracks=3", 512, 512)]
    {
        let config = Config { block, ..Config::new("p", "tiny", layer, StoreKind::Memory) };
        assert_eq!(Device::open(config).unwrap().physical_block(), physical, "{layer}");
    }
}

/// One drive that shingles behind a layer: neither a conventional one nor an array.
#[test]
fn drives_that_hide_their_tracks_are_drive_managed() {
    let mut managed = Vec::new();
    let layers = ["cmr", "rmw", "s-block", "floating,what=all", "persistent-cache,readahead=off"];
    let layers = layers.map(|layer| (layer, None)).into_iter();
    for (layer, array) in layers.chain([("rmw", Some("mirror,disks=2"))]) {
        let array = array.map(str::to_owned);
        let config = Config { array, ..Config::new("m", "tiny", layer, StoreKind::Memory) };
        managed.push(Device::open(config).unwrap().drive_managed());
    }
    assert_eq!(managed, [false, true, true, false, true, false]);
}

/// Where nothing is waited for a response still takes the time until it is given.
#[test]
fn a_response_ends_when_it_is_given() {
    let device = Device::open(Config::new("r", "tiny", "cmr", StoreKind::Memory)).unwrap();
    device.read(0, &mut [0; 512]).unwrap();
    assert!(device.stats()["response_ms"]["max"].as_f64().unwrap() > 0.0);
}

/// What befalls disks in runs is refused wherever in a stack it stands.
#[test]
fn what_is_for_runs_is_refused_in_every_array() {
    for array in ["mirror,disks=2,fail=1@1s", "striped,disks=2 / mirror,replace=1s"] {
        let config =
            Config { array: Some(array.into()), ..Config::new("r", "tiny", "cmr", StoreKind::Memory) };
        let refused = Device::open(config).map(drop).unwrap_err().to_string();
        assert!(refused.contains("= is for runs"), "{array}: {refused}");
    }
}

/// A device whose idle time goes by at once.
fn in_memory(layer: &str, array: Option<&str>) -> Arc<Device> {
    let (array, speed) = (array.map(str::to_owned), 1e6);
    Device::open(Config { array, speed, ..Config::new("m", "tiny", layer, StoreKind::Memory) }).unwrap()
}

/// What the device answers on its control socket.
fn ask(device: &Device, line: Value) -> Value {
    answer(device, &|_, _| None, &line.to_string()).unwrap()
}

/// The next operation of the first disk's medium fails.
fn fails(device: &Device) {
    let next = Injection { error_at: Some(1), ..Injection::default() };
    device.medium(None).unwrap().faults.inject(&next);
}

/// A write that fails, of the host or of the layer's own, stops a device: nothing is said to be written after it, nor what state it has.
/// A read that fails is the reader's alone.
#[test]
fn a_stopped_device_claims_nothing() {
    let (dir, mut data) = (tempfile::tempdir().unwrap(), [7; 4096]);
    for (layer, array, background) in [
        ("cmr", None, false),
        ("disk-cache,cache=5%,idle=10ms", None, true),
        ("cmr", Some("striped,disks=2"), false),
    ] {
        let device = in_memory(layer, array);
        device.write(0, &data, false).unwrap();
        fails(&device);
        device.read(0, &mut data).unwrap_err();
        for i in 0..400 {
            device.write(i % 64 * 8192, &data, false).unwrap();
        }
        device.flush().unwrap();
        fails(&device);
        if background {
            (0..1000).for_each(|_| device.housekeeping());
        } else {
            device.write(0, &data, false).unwrap_err();
        }
        let state = dir.path().join("state");
        for done in [
            device.write(0, &data, false),
            device.read(0, &mut data),
            device.flush(),
            device.write_state(&state).map(drop),
            device.close(),
        ] {
            let told = done.map_err(|e| e.to_string());
            assert!(
                told.as_ref().is_err_and(|e| e.contains("start it again")),
                "{layer} {array:?}: {told:?}"
            );
        }
        assert!(!state.exists());
    }
}

/// A state takes the place of a state or of an empty file, and of nothing else.
#[test]
fn a_state_takes_the_place_of_states_alone() {
    let (dir, device) = (tempfile::tempdir().unwrap(), in_memory("rmw", None));
    let [file, letter] = ["state", "letter"].map(|name| dir.path().join(name));
    std::fs::write(&file, "").unwrap();
    std::fs::write(&letter, "dear").unwrap();
    (0..2).for_each(|_| _ = device.write_state(&file).unwrap());
    assert!(std::fs::metadata(&file).unwrap().len() > 0);
    assert!(device.write_state(&letter).is_err() && device.write_state(dir.path()).is_err());
    assert_eq!(std::fs::read(&letter).unwrap(), b"dear");
}

/// Zones are named by any of their blocks, and each action is of the one that is named.
#[test]
fn an_action_is_of_one_zone() {
    let device = in_memory("zoned,zone=16KiB,conventional=0%", None);
    (0..3).for_each(|i| device.write(i * 16384, &[7; 4096], false).unwrap());
    device.zone(ZoneAction::Reset, Some(Lba(32))).unwrap();
    device.write(16384, &[7; 4096], false).unwrap();
    device.zone(ZoneAction::Reset, Some(Lba(32 + 5))).unwrap();
    device.fail_zone(Lba(64 + 5), ZoneCondition::ReadOnly).unwrap();
    let told = device.events.after(0).pop().unwrap();
    assert_eq!((told.kind, told.block), ("inject", Some(64 + 5)));
    let zones = ask(&device, json!({"cmd": "zones"}));
    let of = |key: &str| [0, 1, 2, 3].map(|i| zones["zones"][i][key].clone());
    assert_eq!(of("condition"), ["implicitly-open", "empty", "read-only", "empty"]);
    assert_eq!(of("start"), [0, 32, 64, 96]);
    assert_eq!(zones["model"], "host-managed");
    let aware = in_memory("host-aware,zone=16KiB,log=64KiB,optimal_open=3,optimal_nonseq=2", None);
    let told = ask(&aware, json!({"cmd": "zones"}));
    let limits = (&told["model"], &told["optimal_open"], &told["optimal_non_sequential"]);
    assert_eq!(limits, (&json!("host-aware"), &json!(3), &json!(2)));
}

/// Zones of 32 blocks of which 24 can be written: the gaps between them are not told, and all zones are.
#[test]
fn zones_behind_gaps_are_told() {
    let device = in_memory("zoned,zone=16KiB,capacity=12KiB,conventional=0%", None);
    let zones = ask(&device, json!({"cmd": "zones"}))["zones"].clone();
    let zones = zones.as_array().unwrap();
    let told = zones.iter().map(|zone| (zone["start"].as_u64(), zone["blocks"].as_u64()));
    assert!(told.eq((0..device.size() / 16384).map(|i| (Some(32 * i), Some(24)))), "{zones:?}");
}

/// Of an array's disks that one is broken, and shown, which was named.
#[test]
fn disks_of_an_array_are_asked_by_their_numbers() {
    let device = in_memory("cmr", Some("striped,disks=2"));
    ask(&device, json!({"cmd": "inject", "disk": 1, "unreadable": [0, 8]}));
    let media = [0, 1].map(|disk| device.medium(Some(disk)).unwrap());
    assert_eq!([0, 1].map(|i: usize| media[i].faults.pass(false, 7, 9).ok()), [Some(Fate::Done), None]);
    media[1].write(0, &[7; 512]).unwrap();
    let map = |disk: u64| ask(&device, json!({"cmd": "map", "disk": disk, "cells": 4}))["cells"].clone();
    assert_eq!(map(0), json!([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]));
    assert!(map(1).as_array().is_some_and(|cells| cells.len() == 4 && cells[0] != json!([0, 0, 0])));
}

/// While a device is erased its commands fail, whatever they are, and change nothing; behind it all is zero and taken again. Where it failed they fail
/// until one does not.
#[test]
fn commands_fail_while_a_device_is_erased() {
    for (layer, trims) in
        [("cmr", false), ("s-block", true), ("host-aware,zone=64KiB,conventional=10%", true)]
    {
        let device = Device::open(Config::new("e", "tiny", layer, StoreKind::Memory)).unwrap();
        let write = |byte: u8| device.write(4096, &[byte; 4096], false).map_err(|e| e.errno());
        let read = || {
            let mut data = [9; 4096];
            device.read(4096, &mut data).map(|()| data).map_err(|e| e.errno())
        };
        assert_eq!(write(7), Ok(()));
        let eio = Err(libc::EIO);
        let refused = |_: u16| {
            let number = |done: Result<()>| done.map_err(|e| e.errno());
            assert_eq!((write(8), read()), (eio, Err(libc::EIO)), "{layer}");
            assert_eq!(number(device.lend(4096, 4096, &|_, _| panic!("lent"))), eio);
            assert_eq!((number(device.flush()), number(device.zero(0, 4096, false))), (eio, eio));
            assert_eq!(number(device.extents(0, 4096, &mut |_, _, _| panic!("told"))), eio);
            assert!(!trims || number(device.trim(0, 4096, false)) == eio);
            assert!(device.zone_limits().is_none() || number(device.zone(ZoneAction::Finish, None)) == eio);
        };
        device.erase(&refused).unwrap();
        assert_eq!(read(), Ok([0; 4096]), "{layer}");
        assert_eq!(write(8), Ok(()));
    }
    let device = Device::open(Config::new("e", "tiny", "cmr", StoreKind::Memory)).unwrap();
    let broken = Injection { error_at: Some(1), ..Injection::default() };
    device.medium(None).unwrap().faults.inject(&broken);
    device.erase(&|_| ()).unwrap_err();
    let told = device.read(0, &mut [0; 512]).unwrap_err().to_string();
    assert!(told.contains("being erased, or that failed"), "what the disk holds is not known: {told}");
}
