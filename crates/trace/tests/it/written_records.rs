//! Random events written as records by the words of each binary format's page, in either byte order, with events that are no requests
//! between them; a second reader of this file says what they are.

use super::support::written::{Row, Written, check};
use smrlab_trace::Record;
use smrlab_units::HostOp::{self, Append, Discard, Flush, Read, Write};
use smrlab_units::ZoneAction;
use smrlab_units::rng::Rng;

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Below one of these numbers.
fn below(rng: &mut Rng, of: &[u64]) -> u64 {
    let n = pick(rng, of);
    rng.below(n)
}

/// Numbers one behind the other: value and bytes.
fn packed(big: bool, numbers: &[(u64, usize)]) -> Vec<u8> {
    let one = |&(value, bytes): &(u64, usize)| {
        let mut all = value.to_le_bytes()[..bytes].to_vec();
        if big {
            all.reverse();
        }
        all
    };
    numbers.iter().flat_map(one).collect()
}

/// Bits of a block trace's categories: `READ`, `WRITE`, `FLUSH`, `SYNC`, `QUEUE`, `REQUEUE`, `ISSUE`, `COMPLETE`, `FS`, `PC`, `NOTIFY`,
/// `AHEAD`, `META`, `DISCARD`, `DRV_DATA`, `FUA`, of the second version `ZONE_APPEND`, `ZONE_RESET`, `ZONE_RESET_ALL`, `ZONE_FINISH`,
/// `ZONE_OPEN`, `ZONE_CLOSE`.
const READ: u64 = 1;
const WRITE: u64 = 1 << 1;
const FLUSH: u64 = 1 << 2;
const SYNC: u64 = 1 << 3;
const FS: u64 = 1 << 8;
const PC: u64 = 1 << 9;
const NOTIFY: u64 = 1 << 10;
const META: u64 = 1 << 12;
const DISCARD: u64 = 1 << 13;
const FUA: u64 = 1 << 15;

/// A request's bits, what it is, and whether it is FUA; no operation of what is none.
const KINDS: &[(u64, Option<HostOp>, bool)] = &[
    (READ | FS, Some(Read), false),
    (READ | META, Some(Read), false),
    (WRITE | FS, Some(Write), false),
    (WRITE | SYNC | FUA, Some(Write), true),
    (WRITE | FLUSH | SYNC, Some(Write), false),
    (WRITE | FLUSH | FUA, Some(Write), true),
    (WRITE | DISCARD, Some(Discard), false),
    (DISCARD, Some(Discard), false),
    (READ | PC, None, false),
    (NOTIFY, None, false),
];

const ZONES: &[(u64, HostOp)] = &[
    (1 << 16, Append),
    (1 << 17, HostOp::Zone(ZoneAction::Reset)),
    (1 << 18, HostOp::Zone(ZoneAction::Reset)),
    (1 << 19, HostOp::Zone(ZoneAction::Finish)),
    (1 << 20, HostOp::Zone(ZoneAction::Open)),
    (1 << 21, HostOp::Zone(ZoneAction::Close)),
];

/// What an event of these bits asks for.
fn asked(rng: &mut Rng, second: bool) -> (u64, u64, u64, Option<(HostOp, u64, u32, bool)>) {
    let (sector, bytes) = (below(rng, &[1 << 10, 1 << 41]), 1 + below(rng, &[1024, 1 << 24]));
    let n = bytes.div_ceil(512) as u32;
    if rng.one_in(8) {
        return (FLUSH | WRITE, sector, 0, Some((Flush, 0, 0, false)));
    }
    if second && rng.one_in(3) {
        let (bits, op) = pick(rng, ZONES);
        let place = match op {
            Append => (sector, n),
            _ if bits == 1 << 18 => (0, Record::TO_END),
            _ => (sector, 1),
        };
        return (
            bits | WRITE,
            sector,
            if op == Append { bytes } else { 0 },
            Some((op, place.0, place.1, false)),
        );
    }
    let (bits, op, fua) = pick(rng, KINDS);
    (bits, sector, bytes, op.map(|op| (op, sector, n, fua)))
}

fn blktrace(rng: &mut Rng, big: bool, second: bool, event: u64) -> Written {
    let (mut bytes, mut rows, mut ns): (_, Vec<Row>, _) = (Vec::new(), Vec::new(), 5_000_000_000);
    for i in 0..1500 {
        ns += below(rng, &[2, 70_000, 3_000_000_000]);
        let action = pick(rng, &[1, 7, 1, 7, 2, 3, 6, 8, 10, 15]);
        let (bits, sector, length, row) = asked(rng, second);
        let (major, minor) = pick(rng, &[(8, 16), (259, 3), (0, 0), (4095, 1_048_575)]);
        let device = major << 20 | minor;
        let data = pick(rng, &[0, 0, 0, 1, 40, 700]);
        let magic = 0x6561_7400 | if second { 8 } else { 7 };
        let common = [(magic, 4), (i, 4), (ns, 8), (sector, 8), (length, 4)];
        let (pid, cpu, error) = ((rng.below(1 << 32), 4), (i % 7, 4), (rng.below(1 << 16), 2));
        let rest = if second {
            vec![pid, (bits << 16 | action, 8), (device, 4), cpu, error, (data, 2), (rng.bits(), 8), (0, 4)]
        } else {
            vec![(bits << 16 | action, 4), pid, (device, 4), cpu, error, (data, 2)]
        };
        let record = packed(big, &[&common[..], &rest[..]].concat());
        assert_eq!(record.len(), if second { 64 } else { 48 });
        bytes.extend(record);
        bytes.extend((0..data).map(|_| rng.below(256) as u8));
        if action == event {
            rows.extend(row.map(|(op, lba, n, fua)| (ns, format!("{major},{minor}"), op, lba, n, fua)));
        }
    }
    Written { bytes, rows }
}

#[test]
fn blktrace_events() {
    let rng = &mut Rng::new(201);
    for (big, second) in [(false, false), (true, false), (false, true), (true, true)] {
        check("blktrace", blktrace(rng, big, second, 7));
        check("blktrace,event=issued", blktrace(rng, big, second, 7));
        check("blktrace,event=queued", blktrace(rng, big, second, 1));
    }
}

fn vscsi(rng: &mut Rng, second: bool) -> Written {
    let (mut bytes, mut rows, mut us): (_, Vec<Row>, _) = (Vec::new(), Vec::new(), 900_000);
    for i in 0..1500u64 {
        us += below(rng, &[2, 70_000]);
        // Of READ and WRITE those of 6, 10, 12 and 16 bytes, and WRITE AND VERIFY; SYNCHRONIZE CACHE; what moves nothing.
        let (code, op) = pick(
            rng,
            &[
                (0x28, Some(Read)),
                (0x08, Some(Read)),
                (0xa8, Some(Read)),
                (0x88, Some(Read)),
                (0x2a, Some(Write)),
                (0x0a, Some(Write)),
                (0xaa, Some(Write)),
                (0x8a, Some(Write)),
                (0x2e, Some(Write)),
                (0x8e, Some(Write)),
                (0x35, Some(Flush)),
                (0x91, Some(Flush)),
                (0x00, None),
                (0x12, None),
            ],
        );
        let (code, op) = if i == 0 { (0x28, Some(Read)) } else { (code, op) };
        let (length, lba, minor) = (1 + below(rng, &[600, 1 << 27]), rng.below(1 << 40), rng.below(256));
        let common = [(i, 4), (length, 4), (3, 4)];
        bytes.extend(if second {
            packed(
                false,
                &[&[(code, 2), (0x200 | minor, 2)][..], &common[..], &[(lba, 8), (us, 8), (77, 8)][..]]
                    .concat(),
            )
        } else {
            packed(false, &[&common[..], &[(code, 2), (0x100 | minor, 2), (lba, 8), (us, 8)][..]].concat())
        });
        rows.extend(op.map(|op| {
            let place = if op == Flush { (0, 0) } else { (lba, length.div_ceil(512) as u32) };
            (us * 1000, "vd".to_owned(), op, place.0, place.1, false)
        }));
    }
    Written { bytes, rows }
}

#[test]
fn vscsi_records() {
    let rng = &mut Rng::new(202);
    check("vscsi", vscsi(rng, false));
    check("vscsi", vscsi(rng, true));
}

#[test]
fn hp_srt_records() {
    let rng = &mut Rng::new(203);
    let mut bytes = b"$$TR_IOREC: version 1.3\nhost hplajw\n\0\0".to_vec();
    let (mut rows, mut us): (Vec<Row>, u64) = (Vec::new(), 0);
    for _ in 0..1500 {
        us += below(rng, &[2, 70_000, 9_000_000]);
        let (length, sector, disk) = (1 + below(rng, &[600, 1 << 20]), rng.below(1 << 32), rng.below(256));
        let flags = rng.below(1 << 32);
        let device = rng.below(1 << 16) << 16 | disk << 8 | rng.below(256);
        let mut any = || rng.below(1 << 32);
        let numbers = [
            56,
            any(),
            us / 1_000_000,
            us % 1_000_000,
            any(),
            any(),
            length,
            sector,
            device,
            any(),
            any(),
            flags,
            any(),
            any(),
        ];
        bytes.extend(packed(true, &numbers.map(|n| (n, 4))));
        let first = sector / 2;
        let n = (sector * 256 + length).div_ceil(512) - first;
        let op = if flags % 2 == 1 { Read } else { Write };
        rows.push((us * 1000, format!("disk{disk}"), op, first, n as u32, false));
    }
    check("hp-srt", Written { bytes, rows });
}

#[test]
fn btrecord_bunches() {
    let rng = &mut Rng::new(204);
    let numbers = |all: &[u64]| packed(false, &all.iter().map(|n| (*n, 8)).collect::<Vec<_>>());
    let mut bytes = numbers(&[1 << 16 | 5, 1_000_000, 300, 9000]);
    let (mut rows, mut ns): (Vec<Row>, u64) = (Vec::new(), 1_000_000);
    for _ in 0..300 {
        ns += below(rng, &[2, 10_000_000]);
        let packets = 1 + below(rng, &[1, 20]);
        bytes.extend(numbers(&[packets, ns]));
        for _ in 0..packets {
            let (sector, length) = (rng.below(1 << 40), 1 + below(rng, &[600, 1 << 24]));
            let (direction, op) = pick(rng, &[(0, Write), (1, Read)]);
            bytes.extend(packed(false, &[(sector, 8), (length, 8), (direction, 4), (rng.below(1 << 32), 4)]));
            rows.push((ns, "0".to_owned(), op, sector, length.div_ceil(512) as u32, false));
        }
    }
    check("btrecord", Written { bytes, rows });
}

#[test]
fn oracle_general_objects() {
    let rng = &mut Rng::new(205);
    for (item, unit) in
        [("oracleGeneral", 8), ("oracleGeneral,unit=64KiB", 128), ("oracleGeneral,object=block,unit=1KiB", 2)]
    {
        let (mut bytes, mut rows, mut s): (_, Vec<Row>, _) = (Vec::new(), Vec::new(), 1_600_000_000);
        let (mut places, mut end) = (std::collections::HashMap::new(), 0);
        for _ in 0..1500 {
            s += rng.below(3);
            let (object, length) = (rng.below(300), below(rng, &[2, 5000, 1 << 24]));
            bytes.extend(packed(false, &[(s, 4), (object, 8), (length, 4), (u64::MAX, 8)]));
            let n = length.div_ceil(512);
            if n == 0 {
                continue;
            }
            let lba = if item.contains("object=block") {
                object * unit
            } else {
                let place = places.entry(object).or_insert((0, 0));
                if place.1 < n {
                    *place = (end, n.div_ceil(unit) * unit);
                    end += place.1;
                }
                place.0
            };
            rows.push((s * 1_000_000_000, "0".to_owned(), Read, lba, n as u32, false));
        }
        check(item, Written { bytes, rows });
    }
}
