//! How an array is served: when what was due is done, and what a restart finds.

use crate::config::{Config, StoreKind, Timing};
use crate::device::Device;
use crate::table::Server as _;
use smrlab_stl::{HostBuffer, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::path::Path;

fn stored(array: &str, dir: &Path) -> Config {
    let array = Some(array.to_owned());
    Config { array, ..Config::new("t", "tiny", "cmr", StoreKind::Directory(dir.to_owned())) }
}

/// Without the store of one of its disks an array begins with that disk dead, whole or being rebuilt though it was.
#[test]
fn a_disk_whose_store_is_missing_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Device::open(stored("mirror,disks=2", dir.path())).unwrap();
    for before in ["whole", "rebuilding"] {
        let device = open();
        let (array, clock) = device.array().unwrap();
        if before == "rebuilding" {
            array.replace(clock, 1).unwrap();
        }
        assert_eq!(array.health()[1]["state"], before);
        drop(device);
        std::fs::remove_dir_all(dir.path().join("disk.1")).unwrap();
        let device = open();
        assert_eq!(device.array().unwrap().0.health()[1]["state"], "dead", "{before}");
        assert!(device.events.after(0).iter().any(|e| e.text == "the store of disk 1 is missing"));
    }
}

/// A server that is killed while a disk is written leaves that to the next one, however often it looked whether there is work; one that
/// had none under way does not.
#[test]
fn who_is_at_work_is_not_at_rest() {
    for at_work in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (timing, speed) = if at_work { (Timing::Model, 1e-9) } else { (Timing::None, 1.0) };
        let open = || Device::open(Config { timing, speed, ..stored("mirror,disks=2", dir.path()) }).unwrap();
        let device = open();
        let write = HostRequest::new(HostOp::Write, Lba(0), Blocks(8));
        if at_work {
            let mut state = device.array().unwrap().0.table.lock();
            state.submit(SimTime::from_ms(1000), &write, &mut HostBuffer::Write(&[7; 4096])).unwrap();
        } else {
            device.write(0, &[7; 4096], false).unwrap();
        }
        (0..3).for_each(|_| device.housekeeping());
        drop(device);
        assert_eq!(open().events.after(0).iter().any(|e| e.kind == "unclean"), at_work);
    }
}

/// A server that ends does not say so when a client wrote while it made things durable.
#[test]
fn who_is_written_while_it_ends_has_not_ended() {
    for written in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let open = || Device::open(stored("mirror,disks=2", dir.path())).unwrap();
        let device = open();
        let write = || device.write(0, &[7; 4096], false).unwrap();
        write();
        let array = device.array().unwrap().0;
        let wound_up = array.wind_up().unwrap();
        if written {
            write();
        }
        array.ends(wound_up).unwrap();
        drop(device);
        assert_eq!(open().events.after(0).iter().any(|e| e.kind == "unclean"), written);
    }
}

#[test]
fn fences_are_counted_anew() {
    let dir = tempfile::tempdir().unwrap();
    let device = Device::open(stored("raid5,disks=3,chunk=4blk,journal=on", dir.path())).unwrap();
    let fences = || device.stats()["array"]["fences"].as_u64().unwrap();
    (0..4).for_each(|i| device.write(i * 4096, &[7; 512], false).unwrap());
    device.close().unwrap();
    assert!(fences() > 0);
    device.reset_stats();
    assert_eq!(fences(), 0);
}

/// A request that comes late finds done what was due by then: of two writes a second apart one is at work, not two.
#[test]
fn what_was_due_is_done_before_a_request_comes() {
    for array in ["striped,disks=2", "mirror,disks=2", "raid5,disks=3,chunk=4KiB"] {
        let config = Config {
            array: Some(array.to_owned()),
            timing: Timing::Model,
            // The clock stands still.
            speed: 1e-9,
            ..Config::new("t", "tiny", "cmr", StoreKind::Memory)
        };
        let device = Device::open(config).unwrap();
        let mut state = device.array().unwrap().0.table.lock();
        for (id, second) in [(0, 1), (1, 2), (2, 3)] {
            let write = HostRequest::new(HostOp::Write, Lba(id * 64), Blocks(8));
            let mut data = HostBuffer::Write(&[7; 4096]);
            state.submit(SimTime::from_ms(second * 1000), &HostRequest { id, ..write }, &mut data).unwrap();
            assert_eq!(state.event_loop.in_flight(), 1, "{array}");
            // A seek and a revolution at most after it came, of each of two phases.
            if let Some(before) = id.checked_sub(1) {
                let ack = state.requests().hear(before, &mut HostBuffer::None).unwrap().unwrap();
                let came = SimTime::from_ms((second - 1) * 1000);
                assert!((came..came + SimTime::from_ms(60)).contains(&ack) && ack > came, "{array}: {ack:?}");
            }
        }
    }
}
