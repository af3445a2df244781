//! Every command of a disk, by the bits of its CDB in SPC-4, SBC-4 and ZBC-2: what is looked at, what is cut, and from whom it is kept.

use crate::disk::Memory;
use Kept::{Always, Asks, Reads, Reserves, Writes};
use smrlab_scsi::{Kind, Refused, Sense, execute};

/// What other hosts' reservations keep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Always,
    Asks,
    Reads,
    Reserves,
    Writes,
}

/// Which disks know a command: all, those that discard, those that discard and have no zones, those with zones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    All,
    Discards,
    Thin,
    Zoned,
}

/// The bits of a CDB, whether byte 1 has a service action, who knows it, from whom it is kept, whether a protected disk refuses it.
type Row = (&'static str, bool, Of, Kept, bool);

const ROWS: &[Row] = &[
    ("00 00 00 00 00 00", false, Of::All, Asks, false),
    ("03 01 00 00 ff 00", false, Of::All, Always, false),
    ("04 3f 00 00 03 00", false, Of::All, Writes, true),
    ("08 1f ff ff ff 00", false, Of::All, Reads, false),
    ("0a 1f ff ff ff 00", false, Of::All, Writes, true),
    ("12 01 ff ff ff 00", false, Of::All, Always, false),
    ("15 11 00 00 ff 00", false, Of::All, Writes, false),
    ("16 00 00 00 00 00", false, Of::All, Reserves, false),
    ("17 00 00 00 00 00", false, Of::All, Always, false),
    ("1a 08 ff ff ff 00", false, Of::All, Reads, false),
    ("1b 01 00 00 05 00", false, Of::All, Writes, false),
    ("1d e4 00 00 00 00", false, Of::All, Writes, false),
    ("25 00 00 00 00 00 00 00 00 00", false, Of::All, Asks, false),
    ("28 18 ff ff ff ff 3f ff ff 00", false, Of::All, Reads, false),
    ("2a 18 ff ff ff ff 3f ff ff 00", false, Of::All, Writes, true),
    ("2e 16 ff ff ff ff 3f ff ff 00", false, Of::All, Writes, true),
    ("2f 16 ff ff ff ff 3f ff ff 00", false, Of::All, Reads, false),
    ("34 02 ff ff ff ff 3f ff ff 00", false, Of::All, Reads, false),
    ("35 06 ff ff ff ff 3f ff ff 00", false, Of::All, Writes, false),
    ("37 00 1f 00 00 00 00 ff ff 00", false, Of::All, Reads, false),
    ("41 08 ff ff ff ff 3f ff ff 00", false, Of::All, Writes, true),
    ("42 00 00 00 00 00 3f ff ff 00", false, Of::Discards, Writes, true),
    ("48 82 00 00 00 00 00 00 00 00", true, Of::Thin, Writes, true),
    ("4d 00 ff ff 00 ff ff ff ff 00", false, Of::All, Always, false),
    ("55 11 00 00 00 00 00 ff ff 00", false, Of::All, Writes, false),
    ("5a 18 ff ff 00 00 00 ff ff 00", false, Of::All, Reads, false),
    ("5e 00 00 00 00 00 00 ff ff 00", true, Of::All, Reserves, false),
    ("5e 01 00 00 00 00 00 ff ff 00", true, Of::All, Reserves, false),
    ("5e 02 00 00 00 00 00 ff ff 00", true, Of::All, Reserves, false),
    ("5e 03 00 00 00 00 00 ff ff 00", true, Of::All, Reserves, false),
    ("5f 00 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("5f 01 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("5f 02 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("5f 03 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("5f 04 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("5f 05 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("5f 06 ff 00 00 ff ff ff ff 00", true, Of::All, Reserves, false),
    ("88 18 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Reads, false),
    ("89 18 ff ff ff ff ff ff ff ff 00 00 00 ff 3f 00", false, Of::All, Writes, true),
    ("8a 18 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, true),
    ("8b 18 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, true),
    ("8e 16 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, true),
    ("8f 16 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Reads, false),
    ("90 02 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Reads, false),
    ("91 06 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, false),
    ("93 09 ff ff ff ff ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, true),
    ("94 01 ff ff ff ff ff ff ff ff 00 00 ff ff 01 00", true, Of::Zoned, Writes, true),
    ("94 02 ff ff ff ff ff ff ff ff 00 00 ff ff 01 00", true, Of::Zoned, Writes, true),
    ("94 03 ff ff ff ff ff ff ff ff 00 00 ff ff 01 00", true, Of::Zoned, Writes, true),
    ("94 04 ff ff ff ff ff ff ff ff 00 00 ff ff 01 00", true, Of::Zoned, Writes, true),
    ("95 00 ff ff ff ff ff ff ff ff ff ff ff ff bf 00", true, Of::Zoned, Reads, false),
    ("9e 10 00 00 00 00 00 00 00 00 ff ff ff ff 00 00", true, Of::All, Asks, false),
    ("9e 12 ff ff ff ff ff ff ff ff ff ff ff ff 00 00", true, Of::Thin, Reads, false),
    ("a0 00 ff 00 00 00 ff ff ff ff 00 00", false, Of::All, Always, false),
    ("a3 0c 87 ff ff ff ff ff ff ff 00 00", true, Of::All, Asks, false),
    ("a3 0d 80 00 00 00 ff ff ff ff 00 00", true, Of::All, Asks, false),
    ("a8 18 ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Reads, false),
    ("aa 18 ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, true),
    ("ae 16 ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Writes, true),
    ("af 16 ff ff ff ff ff ff ff ff 3f 00", false, Of::All, Reads, false),
    ("b7 1f ff ff ff ff ff ff ff ff 00 00", false, Of::All, Reads, false),
];

const ME: &str = "iqn.a,i,0x000000000001";
const OTHER: &str = "iqn.b,i,0x000000000001";

fn bytes(hex: &str) -> Vec<u8> {
    hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The CDB with nothing in it but its codes.
fn bare((usage, service, ..): &Row) -> Vec<u8> {
    let mut cdb = bytes(usage);
    cdb[usize::from(*service) + 1..].fill(0);
    cdb
}

/// A disk without zones, one whose zones a host has to write in order, and an ordinary one with zones that discards.
fn disks() -> [(Memory, fn(Of) -> bool); 3] {
    let mut zones_and_discards = Memory::aware();
    zones_and_discards.facts.discards = true;
    assert!(matches!(zones_and_discards.facts.kind, Kind::HostAware(_)));
    [
        (Memory::new(416, 512), |of| of != Of::Zoned),
        (Memory::zoned(), |of| matches!(of, Of::All | Of::Zoned)),
        (zones_and_discards, |of| of != Of::Thin),
    ]
}

#[test]
fn a_disk_has_these_commands_with_these_bits_and_no_others() {
    for (disk, knows) in disks() {
        let mut listed = Vec::new();
        for row in ROWS.iter().filter(|row| knows(row.2)) {
            let (usage, (name, service, ..)) = (bytes(row.0), row);
            let action = if *service { usage[1] & 0x1f } else { 0 };
            listed.extend([usage[0], 0, 0, action, 0, u8::from(*service), 0, usage.len() as u8]);
            let said = disk.ask(&[0xa3, 0x0c, 3, usage[0], 0, action, 0, 0, 0, 255, 0, 0]).unwrap();
            assert_eq!(said, [&[0, 3, 0, usage.len() as u8], &usage[..]].concat(), "{name}");
            for (at, bit) in (1..usage.len()).flat_map(|at| (0..8).map(move |bit| (at, 1 << bit))) {
                if usage[at] & bit != 0 || at == 1 && *service && bit < 0x20 {
                    continue;
                }
                let mut cdb = bare(row);
                cdb[at] |= bit;
                let refused = Sense { field: Some(at as u16), ..Sense::INVALID_FIELD };
                assert_eq!(disk.ask(&cdb), Err(refused), "{name}: bit {bit:#x} of byte {at}");
            }
        }
        let all = disk.ask(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0]).unwrap();
        assert_eq!(all[4..], listed);
    }
}

/// Where commands that answer have the length that their host has room for, and how many bytes it takes.
#[test]
fn answers_are_cut_to_the_room_that_the_host_has() {
    let (disk, zoned) = (Memory::new(416, 512), Memory::zoned());
    for (disk, cdb, (at, width)) in [
        (&disk, "03 00 00 00 00 00", (4, 1)),
        (&disk, "12 00 00 00 00 00", (3, 2)),
        (&disk, "1a 00 3f 00 00 00", (4, 1)),
        (&disk, "37 00 00 00 00 00 00 00 00 00", (7, 2)),
        (&disk, "4d 00 40 ff 00 00 00 00 00 00", (7, 2)),
        (&disk, "5a 00 3f 00 00 00 00 00 00 00", (7, 2)),
        (&disk, "5e 00 00 00 00 00 00 00 00 00", (7, 2)),
        (&disk, "5e 02 00 00 00 00 00 00 00 00", (7, 2)),
        (&zoned, "95 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", (10, 4)),
        (&disk, "9e 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00", (10, 4)),
        (&disk, "9e 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00", (10, 4)),
        (&disk, "a3 0c 00 00 00 00 00 00 00 00 00 00", (6, 4)),
        (&disk, "a3 0d 80 00 00 00 00 00 00 00 00 00", (6, 4)),
        (&disk, "b7 00 00 00 00 00 00 00 00 00 00 00", (6, 4)),
    ] {
        let told = |room: u32| {
            let mut filled = bytes(cdb);
            filled[at..at + width].copy_from_slice(&room.to_be_bytes()[4 - width..]);
            disk.ask(&filled).unwrap()
        };
        let most = if width == 1 { 255 } else { 0xffff };
        let all = told(most);
        assert!(all.len() >= 4, "{cdb}");
        for room in (0..24).chain([255, 256, 257, 258]).filter(|room| *room <= most) {
            // A report of zones ends behind a whole one, if its header is whole.
            let fits = if cdb.starts_with("95") && room > 64 { room / 64 * 64 } else { room };
            assert_eq!(told(room).len(), all.len().min(fits as usize), "{cdb}: {room}");
        }
    }
}

/// Each type of reservation of another host against each command, and a disk that is protected.
#[test]
fn what_is_kept_from_hosts_that_do_not_share_the_disk() {
    let reserved = |host: &str, kind: u8, disk: &Memory| {
        for (action, keys) in [(0, [0u64, 7]), (1, [7, 0])] {
            let list = [&keys.map(u64::to_be_bytes).concat()[..], &[0; 8]].concat();
            execute(disk, host, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list).unwrap();
        }
    };
    for row in ROWS {
        let (name, kept, protected) = (row.0, row.3, row.4);
        let answers = |prepare: &dyn Fn(&Memory)| {
            let fresh = disks().into_iter().filter(|(_, knows)| knows(row.2));
            let answer = |(disk, _)| {
                prepare(&disk);
                execute(&disk, ME, &bare(row), &[])
            };
            fresh.map(answer).collect::<Vec<_>>()
        };
        let conflicts = |prepare: &dyn Fn(&Memory), refused: bool| {
            for answer in answers(prepare) {
                assert_eq!(answer == Err(Refused::Conflict), refused, "{name}");
            }
        };
        // RESERVE and RELEASE are refused wherever somebody is registered. PERSISTENT RESERVE OUT names a key, and is asked with none here.
        let old = name.starts_with("16") || name.starts_with("17");
        if !name.starts_with("5f") {
            conflicts(&|disk| reserved(OTHER, 1, disk), old || kept == Writes);
            conflicts(&|disk| reserved(OTHER, 3, disk), old || matches!(kept, Writes | Reads));
            conflicts(&|disk| reserved(ME, 3, disk), old);
        }
        let alone = |disk: &Memory| drop(execute(disk, OTHER, &[0x16, 0, 0, 0, 0, 0], &[]).unwrap());
        conflicts(&alone, kept != Always);
        let protect = |disk: &Memory| {
            let mut modes = disk.modes.get();
            modes.write_protected = true;
            disk.modes.set(modes);
        };
        for answer in answers(&protect) {
            assert_eq!(answer == Err(Sense::SOFTWARE_PROTECTED.into()), protected, "{name}");
        }
    }
}

/// What a disk that is being erased, whose erasure failed, or that is stopped, carries out of each command.
#[test]
fn what_waits_for_an_erasure_and_for_a_start() {
    use smrlab_scsi::Erasing::{Format, Sanitize};
    for row in ROWS {
        let (name, code, kept) = (row.0, bytes(row.0)[0], row.3);
        let refused_with = |sense: Sense, prepare: &dyn Fn(&Memory)| {
            let fresh = disks().into_iter().filter(|(_, knows)| knows(row.2));
            let refused = fresh.map(|(disk, _)| {
                prepare(&disk);
                execute(&disk, ME, &bare(row), &[]) == Err(sense.into())
            });
            let refused: Vec<bool> = refused.collect();
            assert!(refused.iter().all(|one| *one == refused[0]), "{name}: disks differ");
            refused[0]
        };
        // REQUEST SENSE, INQUIRY, REPORT LUNS; reservations are no matter of the medium.
        let answered = matches!(code, 0x03 | 0x12 | 0xa0 | 0x16 | 0x17 | 0x5e | 0x5f);
        for erasing in [Format, Sanitize] {
            let (now, failed) = (erasing.going_on(7), erasing.failed());
            assert_eq!(refused_with(now, &|disk| disk.erasing.set(Some(now))), !answered, "{name}: erased");
            // FORMAT UNIT and SANITIZE are the way out.
            let again = answered || matches!(code, 0x04 | 0x48);
            assert_eq!(
                refused_with(failed, &|disk| disk.erasing.set(Some(failed))),
                !again,
                "{name}: failed"
            );
        }
        // TEST UNIT READY, and what touches the medium; START STOP UNIT is the way out, modes are no matter of it.
        let of_modes = matches!(code, 0x15 | 0x1a | 0x55 | 0x5a);
        let touches = code == 0 || matches!(kept, Reads | Writes) && !of_modes && code != 0x1b;
        let stop = |disk: &Memory| {
            let mut modes = disk.modes.get();
            modes.stopped = true;
            disk.modes.set(modes);
        };
        assert_eq!(refused_with(Sense::STOPPED, &stop), touches, "{name}: stopped");
    }
}
