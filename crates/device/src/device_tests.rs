//! When a served drive acknowledges: what it answers is what a drive by itself answers.

use super::*;
use crate::config::{StoreKind, Timing};
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
