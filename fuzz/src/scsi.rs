//! Bytes as a sequence of SCSI commands to a served device: what is refused changes no zone, and zones are always as ZBC has them.
//!
//! The first byte chooses the layer. Each command is a byte of length and flags, its CDB, and one byte with which the data are filled.

use super::bytes::Input;
use serde_json::json;
use smrlab_device::Device;
use smrlab_iscsi::served::disk;
use smrlab_scsi::{Disk, MOST_BYTES, Refused, Sense, data_out, execute, execute_absent};
use smrlab_units::{Lba, Zone, ZoneCondition, ZoneKind};

/// Commands of one input; more are left unread.
const MOST: usize = 64;
/// The most zones that may be open.
const OPEN: usize = 3;
/// Who sends the commands.
const HOSTS: [&str; 2] = ["iqn.a,i,0x000000000001", "iqn.b,i,0x000000000001"];
const LAYERS: &[&str] = &[
    "zoned,zone=64KiB,max_open=3,conventional=10%",
    "zoned,zone=64KiB,capacity=48KiB,max_open=3,max_active=5",
    "zoned,zone=64KiB,runt=16KiB,max_open=3,conventional=0%,urswrz=off",
    "host-aware,zone=64KiB,optimal_open=3,conventional=10%",
    "s-block",
    "cmr",
];

/// A served device of the layer that a byte chooses, as a SCSI disk.
pub fn served(choice: u64) -> Box<dyn Disk + Send + Sync> {
    let layer = LAYERS[choice as usize % LAYERS.len()];
    let config = json!({"name": "fuzz", "drive": "tiny", "layer": layer, "store": "memory", "timing": "none"});
    let device = Device::open(serde_json::from_value(config).expect("a configuration")).expect("a device");
    disk(device).expect("a disk without saved modes")
}

/// Carries out `data`; panics where a promise is not kept.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let disk = served(input.number(1));
    for _ in 0..MOST {
        if !input.more() {
            break;
        }
        command(&*disk, &mut input);
    }
}

fn command(disk: &dyn Disk, input: &mut Input<'_>) {
    let how = input.number(1);
    let cdb = input.take(how as usize & 0x1f);
    let fill = input.number(1) as u8;
    let before = zones(disk);
    let wanted = data_out(disk, cdb);
    assert!(wanted <= 2 * MOST_BYTES);
    // Less than a command takes may come, too.
    let brought = if how & 0x20 != 0 { wanted / 2 } else { wanted };
    let answer = if how & 0x40 != 0 {
        execute_absent(disk, cdb)
    } else {
        // Two hosts, so that there are reservations of another one.
        execute(disk, HOSTS[how as usize >> 7], cdb, &vec![fill; brought.min(1 << 20) as usize])
    };
    let after = zones(disk);
    hold(&after);
    // What is erased in the background may change between two looks.
    let unchanged = |a: &[Zone], b: &[Zone]| disk.erasing().is_some() || unchanged(a, b);
    match answer {
        Ok(data) => assert!(data.len() as u64 <= MOST_BYTES),
        Err(Refused::Conflict) => assert!(unchanged(&before, &after), "{cdb:x?}"),
        Err(Refused::Check(sense)) => {
            assert!(sense.data(false).len() == 18 && sense.data(true).len() >= 8);
            // A miscompare comes behind reads; errors of the medium are the drive's.
            let changed = || before.iter().zip(&after).find(|(a, b)| a != b);
            let same = unchanged(&before, &after) || sense == Sense::WRITE_ERROR;
            assert!(same, "{cdb:x?}: {sense:x?}: {:?}", changed());
        }
    }
}

fn zones(disk: &dyn Disk) -> Vec<Zone> {
    let mut all = Vec::new();
    if matches!(disk.facts().kind, smrlab_scsi::Kind::HostManaged(_) | smrlab_scsi::Kind::HostAware(_)) {
        disk.zones(Lba(0), &mut |zone| {
            all.push(*zone);
            true
        });
    }
    all
}

/// Whether zones are as they were, but for blocks that the drive itself brought home.
fn unchanged(before: &[Zone], after: &[Zone]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(a, b)| {
            let home = Zone { non_sequential: a.non_sequential && b.non_sequential, ..*a };
            *b == home
        })
}

/// Zones lie behind each other, pointers in their zones, and no more are open than can be.
fn hold(zones: &[Zone]) {
    assert!(zones.windows(2).all(|z| z[0].end() == z[1].start));
    for zone in zones {
        let within = |p: Lba| zone.start <= p && p < zone.end();
        assert!(zone.pointer.is_none_or(within), "{zone:?}");
        assert_eq!(zone.kind.has_pointer(), zone.condition != ZoneCondition::NotWritePointer, "{zone:?}");
        assert!(zone.condition != ZoneCondition::Empty || zone.pointer == Some(zone.start), "{zone:?}");
        assert!(!zone.non_sequential || zone.kind == ZoneKind::SequentialPreferred);
    }
    assert!(zones.iter().filter(|z| z.condition.is_open()).count() <= OPEN);
}
