//! Zone commands.

use crate::disk::Memory;
use smrlab_scsi::{Sense, says};
use smrlab_units::{Blocks, Lba, Zone, ZoneAction, ZoneCondition, ZoneKind};

fn report(disk: &Memory, start: u64, room: u32, option: u8) -> Result<Vec<u8>, Sense> {
    let cdb = [&[0x95, 0][..], &start.to_be_bytes(), &room.to_be_bytes(), &[option, 0]].concat();
    disk.ask(&cdb)
}

/// Number of zones in the header, and first blocks of the descriptors.
fn listed(data: &[u8]) -> (u32, Vec<u64>) {
    let start = |d: &[u8]| u64::from_be_bytes(d[16..24].try_into().unwrap());
    let length = u32::from_be_bytes(data[..4].try_into().unwrap());
    (length / 64, data[64..].chunks(64).map(start).collect())
}

#[test]
fn a_report_byte_by_byte() {
    let data = report(&Memory::zoned(), 0, 4096, 0).unwrap();
    assert_eq!(data.len(), 64 + 7 * 64);
    assert_eq!(data[..16], [0, 0, 1, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 159]);
    let zone = |i: usize| &data[64 + 64 * i..][..32];
    let all = u64::MAX.to_be_bytes();
    assert_eq!(
        zone(0),
        [&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0][..], &all].concat()
    );
    assert_eq!((zone(1)[..2].to_vec(), &zone(1)[24..]), (vec![2, 0xe0], &all[..]));
    assert_eq!(zone(2)[1], 0x20);
    assert_eq!(zone(3)[..2], [2, 0x30]);
    assert_eq!(zone(3)[16..], [0, 0, 0, 0, 0, 0, 0, 192, 0, 0, 0, 0, 0, 0, 0, 208]);
    assert_eq!((zone(4)[1], zone(5)[1], zone(6)[15]), (0x40, 0x10, 32));
    // SAME: types and lengths differ; without the first zone all but the last are alike; empty ones differ in the last.
    let same = |start, option| report(&Memory::zoned(), start, 4096, option).unwrap()[4];
    assert_eq!((same(0, 0), same(64, 0), same(0, 1), same(0, 2)), (0, 2, 2, 1));
    // The lengths of zones of one type: 0 where another than the last one differs, also where that is the only one.
    for (lengths, told) in [
        ([64, 64, 64, 64, 64, 64, 64], 1),
        ([64, 64, 64, 64, 64, 64, 32], 2),
        ([64, 64, 64, 64, 64, 32, 64], 0),
        ([64, 64, 64, 64, 64, 32, 32], 0),
        ([32, 64, 64, 64, 64, 64, 64], 0),
        ([64, 32, 64, 64, 64, 64, 64], 0),
    ] {
        let mut disk = Memory::zoned();
        for (zone, blocks) in disk.zones.iter_mut().zip(lengths) {
            (zone.blocks, zone.kind) = (Blocks(blocks), ZoneKind::SequentialRequired);
        }
        assert_eq!(report(&disk, 0, 4096, 0).unwrap()[4], told, "{lengths:?}");
    }
}

/// Who reads a report has the zones that it was made of.
#[test]
fn a_report_is_read_as_what_it_tells() {
    for disk in [Memory::zoned(), Memory::aware()] {
        assert_eq!(says::reported_zones(&report(&disk, 0, 4096, 0).unwrap(), 512), disk.zones);
    }
}

#[test]
fn zones_that_prefer_sequential_writes_say_which_were_written_otherwise() {
    let data = report(&Memory::aware(), 0, 4096, 0).unwrap();
    let zone = |i: usize| &data[64 + 64 * i..][..2];
    assert_eq!((zone(0), zone(2), zone(3)), (&[1, 0][..], &[3, 0x20][..], &[3, 0x32][..]));
    assert_eq!(listed(&report(&Memory::aware(), 0, 4096, 0x11).unwrap()).1, [192]);
}

#[test]
fn options_and_room() {
    let disk = Memory::zoned();
    let of = |option| listed(&report(&disk, 0, 4096, option).unwrap()).1;
    assert_eq!(of(0x01), [320, 384]);
    assert_eq!((of(0x02), of(0x03), of(0x04), of(0x05)), (vec![128], vec![192], vec![256], vec![64]));
    assert_eq!((of(0x06), of(0x07), of(0x10), of(0x11)), (vec![], vec![], vec![], vec![]));
    assert_eq!((of(0x3f), of(0x3e).len()), (vec![0], 7));
    assert_eq!(report(&disk, 0, 4096, 0x08).unwrap_err().field, Some(14));
    // All that match are counted; with the partial bit those that are returned.
    assert_eq!(listed(&report(&disk, 70, 64 + 64 + 63, 0x00).unwrap()), (6, vec![64]));
    assert_eq!(listed(&report(&disk, 70, 64 + 64 + 63, 0x80).unwrap()), (1, vec![64]));
    assert_eq!(listed(&report(&disk, 0, 64, 0x80).unwrap()), (0, vec![]));
    assert_eq!(report(&disk, 0, 10, 0).unwrap().len(), 10, "a header that is cut");
    assert_eq!(report(&disk, 416, 4096, 0), Err(Sense::OUT_OF_RANGE.about(416)));
}

#[test]
fn a_count_of_zones_names_those_behind_each_other() {
    let mut disk = Memory::zoned();
    let act = |disk: &Memory, id: u64, count: u16| {
        disk.ask(&[&[0x94, 4][..], &id.to_be_bytes(), &[0, 0], &count.to_be_bytes(), &[0, 0]].concat())
    };
    let acted = |disk: &Memory| disk.acted.take().into_iter().map(|a| a.1.unwrap()).collect::<Vec<_>>();
    for count in [0, 1, 3, 6] {
        act(&disk, 64, count).unwrap();
    }
    let to = |end| Lba(64)..Lba(end);
    assert_eq!(acted(&disk), [to(128), to(128), to(256), to(416)], "none is one; the last one is a runt");
    assert_eq!(act(&disk, 64, 7).unwrap_err().field, Some(12), "more than there are");
    assert_eq!(act(&disk, 0, 2).unwrap_err().field, Some(2), "a conventional zone");
    // Without conventional zones a count can be of all zones, each of which is meant then: not ALL.
    let mut required = Memory::zoned();
    required.zones[0] = required.zones[5];
    (required.zones[0].start, required.zones[0].pointer) = (Lba(0), Some(Lba(0)));
    for action in 1..5 {
        required.ask(&[&[0x94, action][..], &0u64.to_be_bytes(), &[0, 0, 0, 7, 0, 0]].concat()).unwrap();
    }
    assert_eq!(acted(&required), vec![Lba(0)..Lba(416); 4]);
    // Gaps between zones count for nothing, and cannot be named.
    let gap = |at| Zone {
        kind: ZoneKind::Gap,
        condition: ZoneCondition::NotWritePointer,
        pointer: None,
        start: Lba(at),
        blocks: Blocks(16),
        non_sequential: false,
    };
    disk.zones[2].blocks = Blocks(48);
    disk.zones.insert(3, gap(176));
    act(&disk, 128, 2).unwrap();
    assert_eq!(acted(&disk), [Lba(128)..Lba(256)]);
    assert_eq!(act(&disk, 176, 1).unwrap_err().field, Some(2));
    let types =
        |option| report(&disk, 0, 4096, option).unwrap()[64..].chunks(64).map(|d| d[0]).collect::<Vec<_>>();
    assert_eq!(types(0x00), [1, 2, 2, 5, 2, 2, 2, 2]);
    assert_eq!(types(0x3e), [1, 2, 2, 2, 2, 2, 2], "all but gaps");
    assert_eq!(types(0x3f), [1, 5], "what has no write pointer");
}

#[test]
fn actions_reach_the_disk_and_zone_ids_are_checked() {
    let disk = Memory::zoned();
    let act = |service: u8, id: u64, all: u8| {
        disk.ask(&[&[0x94, service][..], &id.to_be_bytes(), &[0, 0, 0, 0, all, 0]].concat())
    };
    for (i, action) in ZoneAction::ALL.into_iter().enumerate() {
        act(i as u8 + 1, 64, 0).unwrap();
        // With ALL the zone is not looked at.
        act(i as u8 + 1, 77, 1).unwrap();
        assert_eq!(disk.acted.take(), [(action, Some(Lba(64)..Lba(128))), (action, None)]);
    }
    assert_eq!(act(4, 65, 0).unwrap_err().field, Some(2), "not the first block of a zone");
    assert_eq!(act(4, 0, 0).unwrap_err().field, Some(2), "a conventional zone");
    assert_eq!(act(4, 416, 0), Err(Sense::OUT_OF_RANGE.about(416)));
    assert_eq!(act(5, 64, 0).unwrap_err().field, Some(1));
    assert_eq!(act(4, 64, 2).unwrap_err().field, Some(14));
    disk.fault.set(Some(Sense::ZONE_RESOURCES));
    assert_eq!(act(3, 64, 0), Err(Sense::ZONE_RESOURCES));
    assert!(disk.acted.borrow().is_empty());
}
