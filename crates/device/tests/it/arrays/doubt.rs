//! Rows of served arrays that may not fit after a bad end: which those are, and that they are made good.

use super::{Checked, config, events, scratch};
use serde_json::Value;
use smrlab_device::Device;
use smrlab_device::machine::Machine;
use smrlab_units::rng::Rng;
use std::path::Path;

/// A kernel that starts again without a goodbye leaves rows in doubt: all parity is made good, and remembered until it is.
#[test]
fn after_a_power_loss_parity_is_made_good() {
    let open = |dir: &Path, boot| {
        let machine = Machine { boot, ..Machine::default() };
        Device::open_on(config("raid5,disks=4,chunk=8blk", "cmr", dir), machine).unwrap()
    };
    let doubt = |device: &Device| device.stats()["array"]["rows_in_doubt"].clone();
    let dir = scratch();
    let plain = vec![0; open(dir.path(), 1).size() as usize];
    let mut checked = Checked { device: open(dir.path(), 1), plain, random: Rng::new(7) };
    checked.write(100);
    // What was never written is zeroes after a power loss: the first three rows were.
    checked.device.write(0, &[0x11; 3 * 3 * 8 * 512], false).unwrap();
    checked.device.flush().unwrap();
    // What a cut between data and parity leaves: rows that do not fit.
    let spoiled = checked.device.medium(Some(0)).unwrap();
    for row in 0..3 {
        spoiled.write(8 * row + 3, &[0x77; 512]).unwrap();
    }
    drop((checked.device, spoiled));
    let device = open(dir.path(), 2);
    assert_eq!(events(&device, "unclean"), 1);
    assert!(doubt(&device).as_u64().unwrap() > 0);
    drop(device);
    // Another start on the same boot: the doubt is not forgotten.
    let device = open(dir.path(), 2);
    assert_eq!(events(&device, "unclean"), 0);
    for _ in 0..100_000 {
        if doubt(&device) == Value::Null {
            break;
        }
        device.housekeeping();
    }
    assert_eq!(doubt(&device), Value::Null);
    let mut before = vec![0; device.size() as usize];
    device.read(0, &mut before).unwrap();
    let spoiled = before[..3 * 3 * 8 * 512].chunks(512).filter(|block| **block == [0x77; 512]).count();
    assert_eq!(spoiled, 3, "data stay as the power loss left them");
    let (served, clock) = device.array().unwrap();
    served.fail(clock, 0).unwrap();
    let mut after = vec![0; device.size() as usize];
    device.read(0, &mut after).unwrap();
    assert!(before == after, "a disk was made from parity that does not fit");
    device.close().unwrap();
    drop(device);
    // Stopped in good order: another boot means nothing.
    assert_eq!(events(&open(dir.path(), 3), "unclean"), 0);
}

/// Of an array of arrays each member tells what it counts and what it doubts, as it does in a run.
#[test]
fn members_tell_what_is_in_doubt_there() {
    let dir = scratch();
    let open = |boot| {
        let machine = Machine { boot, ..Machine::default() };
        let own = config("striped,disks=2,chunk=8blk / raid5,disks=3,chunk=8blk", "cmr", dir.path());
        Device::open_on(own, machine).unwrap()
    };
    let device = open(1);
    device.write(0, &[7; 64 * 512], true).unwrap();
    drop(device);
    let device = open(2);
    let of = |member: usize, key: &str| device.stats()["array"]["members"][member][key].as_u64();
    assert!([0, 1].into_iter().all(|member| of(member, "rows_in_doubt").is_some_and(|rows| rows > 0)));
    while of(0, "rows_in_doubt").or(of(1, "rows_in_doubt")).is_some() {
        device.housekeeping();
    }
    device.write(0, &[8; 8 * 512], false).unwrap();
    let ways = ["rows_written_whole", "rows_modified", "rows_reconstructed"];
    let writes = |member| ways.into_iter().filter_map(|way| of(member, way)).sum::<u64>();
    assert_eq!([writes(0), writes(1)], [1, 0], "{}", device.stats()["array"]);
}

/// A server that was killed while disks were written may have left a row half done; one that was killed at rest, or stopped, has
/// not; and with `intent=on` it is known which rows.
#[test]
fn after_a_kill_parity_is_made_good_where_rows_were_under_way() {
    for (array, unclean) in [("raid5,disks=4,chunk=8blk", 1), ("raid5,disks=4,chunk=8blk,intent=on", 0)] {
        let dir = scratch();
        let mut checked = Checked::new(config(array, "cmr", dir.path()));
        checked.write(30);
        let again = |checked: Checked| {
            let Checked { device, plain, random } = checked;
            drop(device);
            Checked { device: Device::open(config(array, "cmr", dir.path())).unwrap(), plain, random }
        };
        let doubt = |c: &Checked| c.device.stats()["array"]["rows_in_doubt"].as_u64();
        let mut checked = again(checked);
        assert_eq!(events(&checked.device, "unclean"), 1, "{array}");
        assert_eq!(doubt(&checked).is_some(), unclean == 1, "{array}");
        while doubt(&checked).is_some() {
            checked.device.housekeeping();
        }
        checked.check(array);
        checked.write(5);
        // Noted as being at rest after a while without writes.
        (0..3).for_each(|_| checked.device.housekeeping());
        let checked = again(checked);
        assert_eq!(events(&checked.device, "unclean"), 0, "{array}: killed at rest");
        checked.device.close().unwrap();
        let mut checked = again(checked);
        assert_eq!(events(&checked.device, "unclean"), 0, "{array}: stopped");
        checked.write(5);
        checked.device.close().unwrap();
        assert_eq!(events(&again(checked).device, "unclean"), 0, "{array}: stopped after writes");
    }
}
