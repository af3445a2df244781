//! Requests as the kernel sends them, with a file in place of `/dev/ublkcN`: what is written there is what a request brings.

use super::*;
use serde_json::json;

/// Zones of 128 blocks, of which 96 can be written; the first one that wants its writes in order.
const ZONE: u64 = 128;
const CAPACITY: u64 = 96;

fn disk(layer: &str) -> Disk {
    let config = json!({"name": "u", "drive": "tiny", "layer": layer, "store": "memory", "timing": "none"});
    let device = Device::open(serde_json::from_value(config).unwrap()).unwrap();
    Disk::new(device, tempfile::tempfile().unwrap())
}

fn zoned() -> (Disk, u64) {
    let disk = disk("zoned,zone=64KiB,capacity=48KiB,max_open=3,conventional=10%");
    let mut first = None;
    let all = disk.device.zones(Lba(0), &mut |zone| {
        first = zone.kind.has_pointer().then_some(zone.start.0);
        first.is_none()
    });
    all.unwrap();
    (disk, first.unwrap())
}

fn request(op: Op, start: u64, blocks: u32) -> Request {
    Request { op: Some(op), fua: false, blocks, start }
}

/// Carries a request out with this tag, which brings `data`; its result, and what it appended at.
fn sent(disk: &Disk, tag: u16, request: Request, data: &[u8]) -> (i32, u64) {
    disk.data.write_all_at(data, data_at(tag)).unwrap();
    let answer = disk.answer(tag, request, &mut vec![9; 9999]);
    (answer.result, answer.appended)
}

/// What a request hands over.
fn given(disk: &Disk, tag: u16, bytes: usize) -> Vec<u8> {
    let mut out = vec![0xee; bytes];
    disk.data.read_exact_at(&mut out, data_at(tag)).unwrap();
    out
}

/// Start, length, pointer, kind, condition and capacity of the zones of a report.
fn reported(disk: &Disk, start: u64, zones: u32) -> Vec<[u64; 6]> {
    disk.data.write_all_at(&vec![0xff; zones as usize * ZONE_BYTES + 1], data_at(1)).unwrap();
    let answer = disk.answer(1, request(Op::ReportZones, start, zones), &mut Vec::new());
    assert_eq!(answer.result, WHOLE);
    let bytes = given(disk, 1, zones as usize * ZONE_BYTES + 1);
    assert_eq!(bytes.last(), Some(&0xff), "no more than was asked for");
    let word = |zone: &[u8], at: usize| u64::from_ne_bytes(zone[at..at + 8].try_into().unwrap());
    let zone = |z: &[u8]| [word(z, 0), word(z, 8), word(z, 16), z[24].into(), z[25].into(), word(z, 32)];
    bytes.chunks_exact(ZONE_BYTES).map(zone).collect()
}

#[test]
fn data_go_to_the_place_of_their_tag_and_come_back() {
    let disk = disk("cmr");
    let data: Vec<u8> = (0..4096).map(|i| (i / 16) as u8).collect();
    assert_eq!(sent(&disk, 3, request(Op::Write, 8, 8), &data), (4096, 0));
    assert_eq!(sent(&disk, 5, request(Op::Read, 8, 8), &[]), (4096, 0));
    assert_eq!(given(&disk, 5, 4096), data);
    // A flush names no place; zeroes and reads of what was not written are zeroes.
    assert_eq!(sent(&disk, 0, request(Op::Flush, u64::MAX, 0), &[]), (0, 0));
    assert_eq!(sent(&disk, 0, request(Op::Zeroes, 8, 4), &[]), (0, 0));
    assert_eq!(sent(&disk, 5, request(Op::Read, 8, 8), &[]), (4096, 0));
    assert_eq!(given(&disk, 5, 4096), [&[0; 2048][..], &data[2048..]].concat());
    for op in [Op::Write, Op::Zeroes, Op::Discard] {
        sent(&disk, 0, Request { fua: true, ..request(op, 8, 8) }, &data);
    }
    assert_eq!(disk.device.counted().0.json()["fua"], 3, "durable at once");
}

#[test]
fn errors_are_numbers_below_zero() {
    let disk = disk("cmr");
    let end = disk.device.size() / 512;
    for (op, wanted) in
        [(Op::Read, -libc::EINVAL), (Op::Write, -libc::EINVAL), (Op::ZoneReset, -libc::EINVAL)]
    {
        assert_eq!(sent(&disk, 1, request(op, end, 8), &[0; 4096]).0, wanted, "{op:?}");
    }
    let unknown = Request { op: None, ..request(Op::Read, 0, 8) };
    assert_eq!(sent(&disk, 1, unknown, &[]).0, -libc::EOPNOTSUPP);
}

#[test]
fn zones_are_told_with_their_capacity_and_without_gaps() {
    let (disk, first) = zoned();
    let zones = reported(&disk, first, 3);
    let empty = |n: u64| {
        let start = first + n * ZONE;
        [start, ZONE, start, ZoneKind::SequentialRequired as u64, 1, CAPACITY]
    };
    assert_eq!(zones, (0..3).map(empty).collect::<Vec<_>>());
    let conventional = reported(&disk, 0, 1)[0];
    assert_eq!(conventional, [0, ZONE, ZONE, 1, 0, ZONE], "no pointer: its end");
}

#[test]
fn zone_commands_reach_one_zone_or_all() {
    let (disk, first) = zoned();
    let data = [7; 8 * 512];
    let done =
        |op, zone| assert_eq!(sent(&disk, 2, request(op, first + zone * ZONE, 0), &[]), (0, 0), "{op:?}");
    let conditions = || reported(&disk, first, 3).iter().map(|z| z[4]).collect::<Vec<_>>();
    done(Op::ZoneOpen, 0);
    assert_eq!(sent(&disk, 2, request(Op::Write, first + ZONE, 8), &data).0, 4096);
    assert_eq!(conditions(), [3, 2, 1]);
    done(Op::ZoneClose, 1);
    done(Op::ZoneFinish, 2);
    assert_eq!(conditions(), [3, 4, 14]);
    done(Op::ZoneReset, 2);
    assert_eq!(conditions(), [3, 4, 1]);
    done(Op::ZoneResetAll, 0);
    assert_eq!(conditions(), [1, 1, 1]);
}

#[test]
fn appends_go_to_the_write_pointer_and_say_where_that_was() {
    let (disk, first) = zoned();
    for n in 0..CAPACITY / 8 {
        let answer = sent(&disk, 4, request(Op::ZoneAppend, first, 8), &[n as u8; 4096]);
        assert_eq!(answer, (4096, first + 8 * n));
    }
    assert_eq!(sent(&disk, 4, request(Op::ZoneAppend, first, 8), &[1; 4096]), (-libc::EIO, 0), "it is full");
    assert_eq!(sent(&disk, 5, request(Op::Read, first + 8, 8), &[]).0, 4096);
    assert_eq!(given(&disk, 5, 4096), [1; 4096]);
    assert!(sent(&disk, 4, request(Op::Write, first + ZONE + 8, 8), &[1; 4096]).0 < 0, "not at the pointer");
    assert!(sent(&disk, 5, request(Op::Read, first + CAPACITY, 8), &[]).0 < 0, "a gap");
    let durable = Request { fua: true, ..request(Op::ZoneAppend, first + 2 * ZONE, 8) };
    assert_eq!(
        (sent(&disk, 4, durable, &[1; 4096]).0, disk.device.counted().0.json()["fua"].as_u64()),
        (4096, Some(1))
    );
}

/// Appends of several queues to a zone follow each other.
#[test]
fn appends_at_the_same_time_are_in_turn() {
    let (disk, first) = zoned();
    for zone in 1..=12 {
        let places = std::thread::scope(|scope| {
            let append = |tag| {
                let (disk, request) = (&disk, request(Op::ZoneAppend, first + zone * ZONE, 8));
                scope.spawn(move || [(); 3].map(|()| sent(disk, tag, request, &[1; 4096])))
            };
            let all = [1, 2, 3, 4].map(append);
            all.into_iter().flat_map(|one| one.join().unwrap()).collect::<std::collections::BTreeSet<_>>()
        });
        let expected = (0..CAPACITY / 8).map(|n| (4096, first + zone * ZONE + 8 * n));
        assert!(places.into_iter().eq(expected), "zone {zone}");
    }
}

/// Of three pieces the second cannot be given: its error is the answer, and the third is not given. What the disk itself says counts first.
#[test]
fn the_first_piece_that_cannot_be_given_is_told() {
    let lend = |take: &dyn Fn(usize, &[u8])| {
        [0, 512, 1024].iter().for_each(|from| take(*from, &[*from as u8; 512]));
        Ok(())
    };
    let asked = Cell::new(Vec::new());
    let give = |from, piece: &[u8]| {
        let mut all = asked.take();
        all.push((from, piece.len()));
        asked.set(all);
        if from == 512 { Err(-libc::ENOSPC) } else { Ok(()) }
    };
    assert_eq!(super::given(lend, give), Err(-libc::ENOSPC));
    assert_eq!(asked.take(), [(0, 512), (512, 512)]);
    assert_eq!(super::given(lend, |_, _| Ok(())), Ok(()));
    assert_eq!(super::given(|_| Err(-libc::EIO), |_, _| Ok(())), Err(-libc::EIO));
}

/// A disk whose file cannot be written to: what is read cannot be handed over.
#[test]
fn what_cannot_be_handed_over_is_an_error() {
    let Disk { device, .. } = disk("cmr");
    let disk = Disk::new(device, File::open("/dev/null").unwrap());
    assert_eq!(disk.answer(1, request(Op::Read, 8, 8), &mut Vec::new()).result, -libc::EBADF);
}
