//! Reads, writes, comparisons, unmapping.

use crate::disk::Memory;
use smrlab_scsi::{Erasing, Modes, Sense, data_out};
use smrlab_units::Blocks;

fn filled(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i / 7) as u8).collect()
}

/// READ and WRITE of one group: opcodes, and the CDB of `blocks` from `lba`.
fn cdb(code: u8, flags: u8, lba: u64, blocks: u32) -> Vec<u8> {
    let mut cdb = vec![code];
    match code >> 5 {
        0 => cdb.extend([&(lba as u32).to_be_bytes()[1..], &[blocks as u8, 0]].concat()),
        4 => {
            cdb.push(flags);
            cdb.extend(lba.to_be_bytes());
            cdb.extend(blocks.to_be_bytes());
            cdb.extend([0, 0]);
        }
        5 => {
            cdb.push(flags);
            cdb.extend((lba as u32).to_be_bytes());
            cdb.extend(blocks.to_be_bytes());
            cdb.extend([0, 0]);
        }
        _ => {
            cdb.push(flags);
            cdb.extend((lba as u32).to_be_bytes());
            cdb.push(0);
            cdb.extend((blocks as u16).to_be_bytes());
            cdb.push(0);
        }
    }
    cdb
}

#[test]
fn every_length_of_cdb_reads_what_every_other_wrote() {
    for logical in [512, 4096] {
        let disk = Memory::new(1024, logical);
        for (i, write) in [0x0a, 0x2a, 0x8a, 0xaa, 0x2e, 0x8e, 0xae].into_iter().enumerate() {
            let data = vec![i as u8 + 1; 3 * logical as usize];
            assert_eq!(data_out(&disk, &cdb(write, 0, 5, 3)), data.len() as u64, "{write:#x}");
            disk.tell(&cdb(write, 0, 5, 3), &data).unwrap();
            for read in [0x08, 0x28, 0x88, 0xa8] {
                assert_eq!(disk.ask(&cdb(read, 0, 5, 3)).unwrap(), data, "{write:#x} {read:#x}");
            }
            assert_eq!(disk.ask(&cdb(0x28, 0, 4, 1)).unwrap(), vec![0; logical as usize]);
            assert_eq!(disk.ask(&cdb(0x28, 0, 8, 1)).unwrap(), vec![0; logical as usize]);
        }
    }
}

#[test]
fn fua_reaches_the_disk() {
    let disk = Memory::new(1024, 512);
    for (code, flags) in
        [(0x2a, 0), (0x2a, 0x08), (0x8a, 0x18), (0x8a, 0x10), (0xaa, 0x08), (0x0a, 0), (0x2e, 0)]
    {
        disk.tell(&cdb(code, flags, 0, 1), &[0; 512]).unwrap();
    }
    assert_eq!(*disk.fua.borrow(), [false, true, true, false, true, false, true]);
    // What is FUA in longer ones is a part of the LBA in one of 6 bytes.
    let large = Memory::new((8 << 16) + 1, 512);
    large.tell(&cdb(0x0a, 0, 8 << 16, 1), &[0; 512]).unwrap();
    assert_eq!(*large.fua.borrow(), [false]);
}

/// Without a cache each command that writes is durable when it is answered; with one it is where that was asked for.
#[test]
fn what_is_written_without_a_cache_is_durable() {
    for write_cache in [true, false] {
        let disk = Memory::new(1024, 512);
        disk.modes.set(Modes { write_cache, ..Modes::default() });
        for code in [0x0a, 0x2a, 0x8a, 0xaa, 0x41, 0x93] {
            disk.tell(&cdb(code, 0, 8, 1), &[0; 512]).unwrap();
        }
        for (code, bytes) in [(0x89, 1024), (0x8b, 512)] {
            disk.tell(&changing(code, 0, 1), &vec![0; bytes]).unwrap();
        }
        assert_eq!(disk.fua.take(), [!write_cache; 8]);
    }
}

#[test]
fn what_is_beyond_the_end_is_refused_with_the_first_block_named_that_is_not_there() {
    let disk = Memory::new(1024, 512);
    let beyond = Err(Sense::OUT_OF_RANGE.about(1024));
    for code in [0x28, 0x88, 0xa8, 0x2a, 0x8a, 0xaa, 0x2f, 0x8f, 0x34, 0x90, 0x35, 0x91] {
        assert_eq!(disk.ask(&cdb(code, 0, 1024, 1)), beyond, "{code:#x}");
        assert_eq!(disk.ask(&cdb(code, 0, 1020, 5)), beyond, "{code:#x}");
    }
    assert_eq!(disk.ask(&cdb(0x88, 0, u64::MAX, 2)), Err(Sense::OUT_OF_RANGE.about(u64::MAX)));
    assert_eq!(disk.ask(&cdb(0x28, 0, 1024, 0)), Ok(Vec::new()), "no blocks behind the last one");
    assert_eq!(disk.ask(&cdb(0x28, 0, 1025, 0)), Err(Sense::OUT_OF_RANGE.about(1025)));
    // A read of 6 bytes means 256 by 0.
    assert_eq!(disk.ask(&cdb(0x08, 0, 768, 0)).unwrap().len(), 256 * 512);
    assert_eq!(disk.ask(&cdb(0x08, 0, 769, 0)), beyond);
}

#[test]
fn reserved_bits_and_unknown_commands_are_refused() {
    let disk = Memory::new(1024, 512);
    let field = |byte| Err(Sense { field: Some(byte), ..Sense::INVALID_FIELD });
    // RDPROTECT, and bits of byte 14 that are reserved; NACA.
    assert_eq!(disk.ask(&cdb(0x28, 0x20, 0, 1)), field(1));
    let mut read = cdb(0x88, 0, 0, 1);
    read[14] = 0x40;
    assert_eq!(disk.ask(&read), field(14));
    read[14] = 0x3f;
    assert!(disk.ask(&read).is_ok(), "a group number");
    let mut read = cdb(0x28, 0, 0, 1);
    read[9] = 0x04;
    assert_eq!(disk.ask(&read), field(9));
    for code in [0x01, 0x07, 0x56, 0x57, 0x7f, 0x94, 0x95, 0xff] {
        assert_eq!(disk.ask(&[code; 16]), Err(Sense::INVALID_OPCODE), "{code:#x}");
    }
    assert_eq!(disk.ask(&[]), Err(Sense::INVALID_OPCODE));
    assert_eq!(disk.ask(&[0x28, 0, 0]), Err(Sense::INVALID_FIELD), "cut short");
    assert_eq!(disk.ask(&[0x9e, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), field(1));
    // More than one command moves, whatever the CDB.
    let large = Memory::new(1 << 17, 512);
    assert_eq!(large.ask(&cdb(0x88, 0, 0, 65537)), field(10));
    assert_eq!(large.ask(&cdb(0x88, 0, 0, 65536)).unwrap().len(), 32 << 20);
}

#[test]
fn verify_compares_where_it_is_asked_to() {
    let disk = Memory::new(1024, 512);
    let data = filled(4 * 512);
    disk.tell(&cdb(0x2a, 0, 8, 4), &data).unwrap();
    for code in [0x2f, 0x8f, 0xaf] {
        assert_eq!(disk.tell(&cdb(code, 0x00, 8, 4), &[]), Ok(Vec::new()));
        assert_eq!(disk.tell(&cdb(code, 0x02, 8, 4), &data), Ok(Vec::new()));
        assert_eq!(disk.tell(&cdb(code, 0x02, 9, 4), &data), Err(Sense::MISCOMPARE));
        assert_eq!(disk.tell(&cdb(code, 0x06, 8, 4), &data), Err(Sense::MISCOMPARE));
        assert_eq!(disk.tell(&cdb(code, 0x06, 100, 4), &[0; 512]), Ok(Vec::new()), "one block for all");
        assert_eq!(disk.tell(&cdb(code, 0x04, 8, 4), &data).unwrap_err().field, Some(1));
    }
    // WRITE AND VERIFY compares byte by byte or not at all; what is refused is not written.
    disk.fua.take();
    for code in [0x2e, 0x8e, 0xae] {
        for how in [0x04, 0x06] {
            assert_eq!(disk.tell(&cdb(code, how, 8, 4), &[1; 2048]).unwrap_err().field, Some(1));
        }
        assert!(disk.fua.borrow().is_empty());
        assert_eq!(disk.tell(&cdb(code, 0x02, 8, 4), &data), Ok(Vec::new()));
        assert_eq!(disk.fua.take(), [true]);
    }
    disk.fault.set(Some(Sense::UNRECOVERED_READ));
    assert_eq!(disk.ask(&cdb(0x2f, 0, 8, 4)), Err(Sense::UNRECOVERED_READ), "it reads the medium");
    // Longer than what is looked at in one go: the block that differs is found wherever it is.
    let large = Memory::new(6000, 512);
    let mut data = vec![0; 5000 * 512];
    for block in [0, 2047, 2048, 4095, 4096, 4999] {
        assert_eq!(large.tell(&cdb(0x8f, 0x02, 900, 5000), &data), Ok(Vec::new()));
        assert_eq!(large.tell(&cdb(0x8f, 0x06, 900, 5000), &[0; 512]), Ok(Vec::new()));
        data[block * 512 + 511] = 1;
        assert_eq!(large.tell(&cdb(0x8f, 0x02, 900, 5000), &data), Err(Sense::MISCOMPARE), "block {block}");
        data[block * 512 + 511] = 0;
        large.tell(&cdb(0x2a, 0, 900 + block as u64, 1), &[1; 512]).unwrap();
        assert_eq!(large.tell(&cdb(0x8f, 0x06, 900, 5000), &[0; 512]), Err(Sense::MISCOMPARE));
        large.tell(&cdb(0x2a, 0, 900 + block as u64, 1), &[0; 512]).unwrap();
    }
}

#[test]
fn write_same_and_unmap() {
    let disk = Memory::new(1024, 512);
    let block = filled(512);
    for (code, flags) in [(0x41, 0), (0x93, 0)] {
        disk.tell(&cdb(code, flags, 16, 3), &block).unwrap();
        assert_eq!(disk.ask(&cdb(0x28, 0, 16, 3)).unwrap(), block.repeat(3));
        disk.tell(&cdb(code, 0x08, 17, 1), &block).unwrap();
        assert_eq!(disk.ask(&cdb(0x28, 0, 17, 1)).unwrap(), block, "no zeroes: written");
        disk.tell(&cdb(code, 0x08, 17, 1), &[0; 512]).unwrap();
        assert_eq!(disk.ask(&cdb(0x28, 0, 17, 1)).unwrap(), vec![0; 512], "unmapped");
        let none = disk.tell(&cdb(code, 0, 0, 0), &block).unwrap_err();
        let count = if code == 0x93 { 10 } else { 7 };
        assert_eq!((none.code, none.field), ([0x24, 0], Some(count)), "none is not all");
    }
    // As many as are named, of blocks of any size.
    for logical in [512, 4096] {
        let (disk, block) = (Memory::new(1024, logical), filled(logical as usize));
        disk.tell(&cdb(0x93, 0, 16, 21), &block).unwrap();
        let around = disk.ask(&cdb(0x28, 0, 15, 23)).unwrap();
        let zeroes = vec![0; block.len()];
        assert_eq!(around, [&zeroes[..], &block.repeat(21), &zeroes].concat());
    }
    // Without a data-out buffer: zeroes.
    assert_eq!(data_out(&disk, &cdb(0x93, 1, 16, 1)), 0);
    disk.tell(&cdb(0x93, 1, 16, 1), &[]).unwrap();
    assert_eq!(disk.ask(&cdb(0x28, 0, 16, 3)).unwrap()[..1024], [0; 1024]);
    let unmap = |list: &[u8]| disk.tell(&[0x42, 0, 0, 0, 0, 0, 0, 0, list.len() as u8, 0], list);
    let list = |first: u64, count: u32| {
        let head = [0, 22, 0, 16, 0, 0, 0, 0];
        [&head[..], &first.to_be_bytes(), &count.to_be_bytes(), &[0; 4]].concat()
    };
    // What is reserved behind a count is no part of it.
    disk.tell(&cdb(0x93, 0, 17, 4), &block).unwrap();
    let mut reserved = list(18, 1);
    reserved[20] = 9;
    unmap(&reserved).unwrap();
    let [zeroes, whole] = [vec![0; 512], block.to_vec()];
    assert_eq!(disk.ask(&cdb(0x28, 0, 17, 4)).unwrap(), [&whole[..], &zeroes, &whole, &whole].concat());
    // A stretch of no blocks is none, and not the last.
    let two = [&[0, 38, 0, 32, 0, 0, 0, 0][..], &list(0, 0)[8..], &list(20, 1)[8..]].concat();
    unmap(&two).unwrap();
    assert_eq!(disk.ask(&cdb(0x28, 0, 19, 2)).unwrap(), [&whole[..], &zeroes].concat());
    // What comes behind the descriptors' own length is none.
    let one = [&[0, 38, 0, 16, 0, 0, 0, 0][..], &list(17, 1)[8..], &list(19, 1)[8..]].concat();
    unmap(&one).unwrap();
    assert_eq!(disk.ask(&cdb(0x28, 0, 17, 3)).unwrap(), [&zeroes[..], &zeroes, &whole].concat());
    assert_eq!(unmap(&list(1023, 2)), Err(Sense::OUT_OF_RANGE.about(1024)));
    assert_eq!(unmap(&list(u64::MAX, 2)), Err(Sense::OUT_OF_RANGE.about(u64::MAX)));
    assert_eq!(unmap(&[0; 7]), Err(Sense::LIST_LENGTH));
    // As many stretches as the block limits page says, and no more.
    let many = |n: u16| {
        let stretches =
            (0..u64::from(n)).flat_map(|i| [&(2 * i).to_be_bytes()[..], &[0, 0, 0, 1, 0, 0, 0, 0]].concat());
        let head = [&(n * 16 + 6).to_be_bytes()[..], &(n * 16).to_be_bytes(), &[0; 4]].concat();
        let list: Vec<u8> = head.into_iter().chain(stretches).collect();
        let length = (list.len() as u16).to_be_bytes();
        disk.tell(&[0x42, 0, 0, 0, 0, 0, 0, length[0], length[1], 0], &list)
    };
    disk.tell(&cdb(0x93, 0, 0, 600), &block).unwrap();
    assert_eq!((many(257), many(256)), (Err(Sense::INVALID_LIST), Ok(Vec::new())));
    let held = disk.ask(&cdb(0x28, 0, 0, 600)).unwrap();
    for (lba, held) in held.chunks(512).enumerate() {
        assert_eq!(held == &block[..], lba >= 512 || lba % 2 == 1, "block {lba}");
    }
    assert_eq!(unmap(&[]), Ok(Vec::new()));
    let mut kept = Memory::new(1024, 512);
    kept.facts.discards = false;
    assert_eq!(kept.ask(&[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Sense::INVALID_OPCODE));
    assert_eq!(kept.tell(&cdb(0x93, 0x08, 0, 1), &block).unwrap_err().field, Some(1));
}

/// COMPARE AND WRITE or ORWRITE of `blocks` from block 8 on.
fn changing(code: u8, flags: u8, blocks: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[9], cdb[13]) = (code, flags, 8, blocks);
    cdb
}

#[test]
fn compare_and_write_writes_where_all_is_as_expected() {
    let disk = Memory::new(1024, 512);
    let (old, new) = (filled(1024), vec![0xc3; 1024]);
    disk.tell(&cdb(0x2a, 0, 8, 2), &old).unwrap();
    let held = || disk.ask(&cdb(0x28, 0, 8, 2)).unwrap();
    assert_eq!(data_out(&disk, &changing(0x89, 0, 2)), 2048);
    for byte in [0, 511, 700] {
        let mut wrong = old.clone();
        wrong[byte] ^= 1;
        let told = disk.tell(&changing(0x89, 0, 2), &[&wrong[..], &new].concat());
        assert_eq!(told, Err(Sense::MISCOMPARE.about(byte as u64)), "the first byte that differs");
        assert_eq!(held(), old);
    }
    disk.fua.take();
    disk.tell(&changing(0x89, 0x18, 2), &[&old[..], &new].concat()).unwrap();
    assert_eq!((held(), disk.fua.take()), (new.clone(), vec![true]));
    assert_eq!(disk.tell(&changing(0x89, 0, 2), &new), Err(Sense::INVALID_FIELD), "half of it");
    assert_eq!(disk.ask(&changing(0x89, 0, 0)), Ok(Vec::new()));
    assert_eq!(disk.ask(&changing(0x89, 0x20, 1)).unwrap_err().field, Some(1), "protection information");
    let mut beyond = changing(0x89, 0, 1);
    beyond[8] = 4;
    assert_eq!(disk.ask(&beyond), Err(Sense::OUT_OF_RANGE.about(1024 + 8)));
}

#[test]
fn or_write_unites_bits() {
    let disk = Memory::new(1024, 512);
    disk.tell(&cdb(0x2a, 0, 8, 1), &[0x0f; 512]).unwrap();
    disk.tell(&changing(0x8b, 0x08, 1), &[0x35; 512]).unwrap();
    assert_eq!(disk.ask(&cdb(0x28, 0, 8, 1)).unwrap(), [0x3f; 512]);
    assert_eq!(disk.fua.take(), [false, true]);
    assert_eq!(disk.tell(&changing(0x8b, 0, 1), &[0; 100]), Err(Sense::INVALID_FIELD));
}

#[test]
fn the_status_of_blocks_is_told_in_stretches() {
    let status = |disk: &Memory, lba: u64, room: u32| {
        let cdb = [&[0x9e, 0x12][..], &lba.to_be_bytes(), &room.to_be_bytes(), &[0, 0]].concat();
        disk.ask(&cdb)
    };
    let stretches = |data: &[u8]| {
        let of = |d: &[u8]| {
            (
                u64::from_be_bytes(d[..8].try_into().unwrap()),
                u32::from_be_bytes(d[8..12].try_into().unwrap()),
                d[12],
            )
        };
        data[8..].chunks(16).map(of).collect::<Vec<_>>()
    };
    let disk = Memory::new(1024, 512);
    disk.tell(&cdb(0x2a, 0, 8, 3), &[1; 1536]).unwrap();
    let told = status(&disk, 0, 4096).unwrap();
    assert_eq!(told[..8], [0, 0, 0, 52, 0, 0, 0, 0]);
    assert_eq!(stretches(&told), [(0, 8, 1), (8, 3, 0), (11, 1013, 1)]);
    assert_eq!(
        stretches(&status(&disk, 9, 8 + 16).unwrap()),
        [(9, 2, 0)],
        "from the block that is asked for, as much as there is room"
    );
    assert_eq!(status(&disk, 9, 5).unwrap(), [0, 0, 0, 20, 0]);
    assert_eq!(status(&disk, 1024, 64), Err(Sense::OUT_OF_RANGE.about(1024)));
    // A part of a logical block holds data.
    let large = Memory::new(1024, 4096);
    large.bytes.borrow_mut()[9 * 512] = 1;
    assert_eq!(stretches(&status(&large, 0, 4096).unwrap()), [(0, 1, 1), (1, 1, 0), (2, 126, 1)]);
    // A descriptor has 32 bits for the blocks of a stretch: what is longer is cut, and what lies behind it not told.
    let mut huge = Memory::new(8, 512);
    let (most, end) = (u64::from(u32::MAX), 1 << 33);
    huge.facts.blocks = Blocks(end + 5);
    huge.told = Some(vec![(0..end, false), (end..end + 5, true)]);
    let of_huge = |lba| stretches(&status(&huge, lba, 4096).unwrap());
    assert_eq!(of_huge(0), [(0, u32::MAX, 1)]);
    assert_eq!(of_huge(end - most - 1), [(end - most - 1, u32::MAX, 1)]);
    assert_eq!(of_huge(end - most), [(end - most, u32::MAX, 1), (end, 5, 0)]);
    let mut kept = Memory::new(1024, 512);
    kept.facts.discards = false;
    assert_eq!(status(&kept, 0, 64).unwrap_err().field, Some(1), "nothing is ever unmapped");
}

#[test]
fn a_disk_that_is_stopped_is_flushed_and_waits_to_be_started() {
    let disk = Memory::zoned();
    for (byte, flushes) in [(0x01, 0), (0x00, 1), (0x04, 1), (0x00, 2)] {
        disk.ask(&[0x1b, 0, 0, 0, byte, 0]).unwrap();
        assert_eq!((disk.flushes.get(), disk.modes.get().stopped), (flushes, byte & 1 == 0));
    }
    let zone = |code: u8, action| [&[code, action][..], &[0; 13], &[0]].concat();
    let medium = [cdb(0x28, 0, 0, 1), cdb(0x2a, 0, 0, 1), cdb(0x35, 0, 0, 0), zone(0x95, 0), zone(0x94, 3)];
    for cdb in medium.into_iter().chain([vec![0; 6]]) {
        assert_eq!(disk.tell(&cdb, &[0; 512]), Err(Sense::STOPPED), "{cdb:x?}");
    }
    assert_eq!((disk.flushes.get(), disk.acted.take().len()), (2, 0));
    // What it is and how it is set is told all the same; so is that it is stopped.
    for cdb in [[0x12, 0, 0, 0, 9, 0], [0x1a, 8, 0x08, 0, 255, 0], [0x1b, 1, 0, 0, 0, 0]] {
        assert!(disk.ask(&cdb).is_ok(), "{cdb:x?}");
    }
    let sense = |described| disk.ask(&[0x03, described, 0, 0, 18, 0]).unwrap();
    assert_eq!((sense(0), sense(1)), (Sense::STOPPED.fixed().to_vec(), vec![0x72, 2, 4, 2, 0, 0, 0, 0]));
    disk.ask(&[0x1b, 0, 0, 0, 1, 0]).unwrap();
    assert_eq!((disk.ask(&[0; 6]), sense(0)), (Ok(Vec::new()), Sense::NONE.fixed().to_vec()));
    // Nothing is ejected, and there are no other power conditions.
    for byte in [0x02, 0x03, 0x10, 0x30, 0xb0] {
        assert_eq!(disk.ask(&[0x1b, 0, 0, 0, byte, 0]).unwrap_err().field, Some(4));
    }
}

#[test]
fn a_disk_is_formatted_and_sanitized_while_the_host_waits_or_not() {
    use Erasing::{Format, Sanitize};
    let disk = Memory::new(1024, 512);
    let format = |flags: u8, ffmt: u8, list: &[u8]| disk.tell(&[0x04, flags, 0, 0, ffmt, 0], list);
    let sanitize = |how: u8| disk.ask(&[0x48, how, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Without a list, with a short one and a long one, with IMMED, FOV and DCRT, FFMT.
    format(0x00, 0, &[]).unwrap();
    format(0x18, 1, &[0, 0x02, 0, 0]).unwrap();
    format(0x30, 0, &[0, 0xa0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!((sanitize(0x02), sanitize(0x82)), (Ok(Vec::new()), Ok(Vec::new())));
    let all = [(Format, true), (Format, false), (Format, true), (Sanitize, true), (Sanitize, false)];
    assert_eq!(disk.erased.take(), all);
    for list in [[1, 0, 0, 0], [0, 0x20, 0, 0], [0, 0x88, 0, 0], [0, 0x01, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    {
        assert_eq!(format(0x10, 0, &list), Err(Sense::INVALID_LIST), "{list:?}");
    }
    for list in [[0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 8]] {
        assert_eq!(format(0x30, 0, &list), Err(Sense::INVALID_LIST), "{list:?}");
    }
    assert_eq!(format(0x10, 0, &[0; 3]), Err(Sense::LIST_LENGTH));
    assert_eq!(format(0x00, 2, &[]).unwrap_err().field, Some(4));
    // Overwriting, keys that are forgotten, the way out of a failure, ZNR, AUSE.
    assert_eq!([0x01, 0x03, 0x1f, 0x42, 0x22].map(|how| sanitize(how).unwrap_err().field), [Some(1); 5]);
    assert_eq!(Memory::zoned().ask(&[0x48, 2, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Sense::INVALID_OPCODE));
    assert!(disk.erased.take().is_empty());
    // Meanwhile, and where it failed.
    let sense = || disk.ask(&[0x03, 0, 0, 0, 18, 0]).unwrap();
    for (why, code) in [(Format, [0x04, 0x04]), (Sanitize, [0x04, 0x1b])] {
        let going_on = why.going_on(0x1234);
        disk.erasing.set(Some(going_on));
        for cdb in [cdb(0x28, 0, 0, 1), vec![0; 6], vec![0x04, 0, 0, 0, 0, 0], vec![0x1b, 0, 0, 0, 1, 0]] {
            assert_eq!(disk.ask(&cdb), Err(going_on), "{cdb:x?}");
        }
        assert_eq!((&sense()[12..14], &sense()[15..]), (&code[..], &[0x80, 0x12, 0x34][..]));
        assert!(disk.ask(&[0x12, 0, 0, 0, 9, 0]).is_ok());
        // Whether it is stopped is asked for in vain meanwhile.
        let modes = disk.modes.replace(Modes { stopped: true, ..disk.modes.get() });
        assert_eq!((disk.ask(&[0; 6]), &sense()[12..14]), (Err(going_on), &code[..]));
        disk.modes.set(modes);
        disk.erasing.set(Some(why.failed()));
        assert_eq!((disk.ask(&cdb(0x28, 0, 0, 1)), sense()[2]), (Err(why.failed()), 3));
        assert_eq!((format(0x00, 0, &[]), sanitize(0x02)), (Ok(Vec::new()), Ok(Vec::new())));
    }
}

#[test]
fn flushes_and_faults_reach_the_host() {
    let disk = Memory::new(1024, 512);
    for cdb in [cdb(0x35, 0, 0, 0), cdb(0x91, 2, 5, 5)] {
        disk.ask(&cdb).unwrap();
    }
    assert_eq!(disk.flushes.get(), 2);
    for code in [0x28, 0x2a, 0x35, 0x41] {
        disk.fault.set(Some(Sense::INTERNAL));
        assert_eq!(disk.tell(&cdb(code, 0, 0, 1), &[0; 512]), Err(Sense::INTERNAL), "{code:#x}");
    }
    // A write that brought less than it names writes what it brought.
    let data = filled(2048);
    smrlab_scsi::execute(&disk, crate::disk::HOST, &cdb(0x2a, 0, 40, 4), &data[..1100]).unwrap();
    assert_eq!(disk.ask(&cdb(0x28, 0, 40, 3)).unwrap(), [&data[..1024], &[0; 512]].concat());
}

/// More than one command moves: the sense points at the CDB's length.
#[test]
fn a_transfer_that_is_too_long_is_refused_at_its_length() {
    let disk = Memory::new(9000 * 8, 4096);
    let most: u16 = 8192;
    let read10 = |n: u16| [&[0x28, 0, 0, 0, 0, 0, 0][..], &n.to_be_bytes(), &[0]].concat();
    let read12 = |n: u32| [&[0xa8, 0, 0, 0, 0, 0][..], &n.to_be_bytes(), &[0, 0]].concat();
    let read16 = |n: u32| [&[0x88, 0][..], &0u64.to_be_bytes(), &n.to_be_bytes(), &[0, 0]].concat();
    assert_eq!(disk.ask(&read10(most)).unwrap().len(), 32 << 20);
    assert_eq!(disk.ask(&read10(most + 1)).unwrap_err().field, Some(7));
    assert_eq!(disk.ask(&read12(u32::from(most) + 1)).unwrap_err().field, Some(6));
    assert_eq!(disk.ask(&read16(u32::from(most) + 1)).unwrap_err().field, Some(10));
    // A check of the medium moves nothing to or from the host, and may be longer; what is compared byte by byte is moved.
    let verify16 =
        |how: u8| [&[0x8f, how][..], &0u64.to_be_bytes(), &8193u32.to_be_bytes(), &[0, 0]].concat();
    assert_eq!(disk.ask(&verify16(0)), Ok(Vec::new()));
    assert_eq!(disk.tell(&verify16(6), &[0; 4096]), Ok(Vec::new()));
    assert_eq!(disk.ask(&verify16(2)).unwrap_err().field, Some(10));
}

/// The disk says whether a read of them would bring data.
#[test]
fn blocks_that_cannot_be_read_are_not_fetched() {
    let disk = Memory::zoned();
    assert_eq!(disk.ask(&cdb(0x34, 0, 100, 92)), Ok(Vec::new()));
    assert_eq!(disk.ask(&cdb(0x90, 0, 200, 0)), Ok(Vec::new()), "no count is all that follow");
    assert_eq!(disk.ask(&cdb(0x90, 0, 416, 0)), Ok(Vec::new()), "none follow");
    assert_eq!(disk.readable.take(), [(100, 92), (200, 216)]);
    let large = Memory::new(1024, 4096);
    assert_eq!(large.ask(&cdb(0x90, 0, 100, 0)), Ok(Vec::new()), "to the end of 128 of 4 KiB");
    assert_eq!(large.readable.take(), [(800, 224)]);
    disk.fault.set(Some(Sense::ZONE_OFFLINE));
    assert_eq!(disk.ask(&cdb(0x34, 0, 100, 93)), Err(Sense::ZONE_OFFLINE));
}
