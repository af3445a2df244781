//! Mode pages: what they say, what a host can set, and what of it is saved.

use crate::disk::Memory;
use smrlab_scsi::{Modes, Sense, ask};
use smrlab_units::Blocks;

#[test]
fn mode_pages() {
    // The short descriptor has 32 bits for the number of blocks: of more it says the most.
    for (blocks, said) in [(u64::from(u32::MAX) - 1, [0xff, 0xff, 0xff, 0xfe]), ((1 << 32) + 5, [0xff; 4])] {
        let mut large = Memory::new(0, 512);
        large.facts.blocks = Blocks(blocks);
        assert_eq!(large.ask(&[0x1a, 0, 0x08, 0, 255, 0]).unwrap()[4..8], said, "{blocks}");
    }
    let disk = Memory::new(1024, 512);
    let caching = disk.ask(&ask::mode_sense(255)).unwrap();
    assert_eq!(caching[..11], [0, 26, 0, 0x10, 0, 0, 0, 0, 0x08, 0x12, 0x04]);
    assert_eq!(ask::caching_page(&caching).unwrap().len(), 20);
    // Each page: current, changeable and default values. WCE, D_SENSE and SWP can be changed.
    disk.modes.set(Modes { write_cache: false, descriptors: true, write_protected: true, stopped: true });
    let pages: [(u8, usize, [[u8; 3]; 3]); 4] = [
        (0x01, 12, [[0x80, 0, 0], [0, 0, 0], [0x80, 0, 0]]),
        (0x08, 20, [[0, 0, 0], [0x04, 0, 0], [0x04, 0, 0]]),
        (0x0a, 12, [[0x26, 0x10, 0x08], [0x04, 0, 0x08], [0x22, 0x10, 0]]),
        (0x1c, 12, [[0, 0x06, 0], [0, 0, 0], [0, 0x06, 0]]),
    ];
    for control in 0..3 {
        let mut all = Vec::new();
        for (code, length, values) in pages {
            let mut page = vec![0; length];
            (page[0], page[1]) = (code, length as u8 - 2);
            page[2..5].copy_from_slice(&values[usize::from(control)]);
            // The control page has a subpage: its extension, of 32 bytes, in which nothing can be changed.
            let mut extension = vec![0x4a, 0x01, 0, 28];
            extension.resize(32, 0);
            let subpages = if code == 0x0a { [&page[..], &extension].concat() } else { page.clone() };
            let told = |subpage| disk.ask(&[0x1a, 8, control << 6 | code, subpage, 255, 0]);
            assert_eq!(told(0).unwrap()[4..], page, "{control} {code:#x}");
            assert_eq!(told(0xff).unwrap()[4..], subpages, "{control} {code:#x}");
            match told(1) {
                Ok(told) => assert_eq!((code, &told[4..]), (0x0a, &extension[..])),
                Err(refused) => assert_eq!((code == 0x0a, refused.field), (false, Some(3))),
            }
            all.push((page, subpages));
        }
        let told = |subpage| disk.ask(&[0x1a, 0, control << 6 | 0x3f, subpage, 255, 0]);
        let (pages, subpages): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let head = |length| [length, 0, 0x90, 8, 0, 0, 4, 0, 0, 0, 2, 0];
        assert_eq!(told(0).unwrap(), [&head(67)[..], &pages.concat()].concat());
        assert_eq!(told(0xff).unwrap(), [&head(99)[..], &subpages.concat()].concat());
        for subpage in [0x01, 0x02, 0xfe] {
            assert_eq!(told(subpage).unwrap_err().field, Some(3), "reserved");
        }
    }
    for code in [0x01, 0x08, 0x0a, 0x1c, 0x3f] {
        let saved = disk.ask(&[0x1a, 0, 0xc0 | code, 0, 255, 0]);
        assert_eq!(saved.unwrap_err().code, [0x39, 0], "nothing is saved");
    }
    assert_eq!(disk.ask(&[0x1a, 0, 0x05, 0, 255, 0]).unwrap_err().field, Some(2));
    // No such page, whatever the subpage: those of ports and of background control among them.
    for (code, subpage) in [(0x05, 0xff), (0x19, 0), (0x19, 1), (0x0f, 0), (0x1d, 0)] {
        let refused = disk.ask(&[0x1a, 0, code, subpage, 255, 0]).unwrap_err();
        assert_eq!((refused.code, refused.field), ([0x24, 0], Some(2)), "{code:#x}");
    }
    // Nor such a subpage: hints about reads and writes, limits of commands' durations, scans in the background.
    for (code, subpage) in [(0x0a, 0x05), (0x0a, 0x07), (0x0a, 0xf2), (0x1c, 0x01), (0x08, 1)] {
        let refused = disk.ask(&[0x1a, 0, code, subpage, 255, 0]).unwrap_err();
        assert_eq!((refused.code, refused.field), ([0x24, 0], Some(3)), "{code:#x}, {subpage:#x}");
    }
}

/// MODE SELECT(6) or (10) of one page, without a descriptor.
fn select(disk: &Memory, long: bool, page: &[u8]) -> Result<Vec<u8>, Sense> {
    let list = [&[0; 8][..if long { 8 } else { 4 }], page].concat();
    let n = list.len() as u8;
    let short = [0x15, 0x10, 0, 0, n, 0];
    let cdb: &[u8] = if long { &[0x55, 0x10, 0, 0, 0, 0, 0, 0, n, 0] } else { &short };
    disk.tell(cdb, &list)
}

/// A block descriptor has as many blocks as there are, none, or the largest number: a disk is not made smaller.
#[test]
fn mode_select_leaves_a_disk_as_large_as_it_is() {
    let disk = Memory::new(1024, 512);
    for (blocks, taken) in [(0, true), (1024, true), (u32::MAX, true), (1023, false), (1025, false)] {
        let list = [&[0, 0, 0, 8][..], &u32::to_be_bytes(blocks), &[0, 0, 2, 0]].concat();
        let done = disk.tell(&[0x15, 0x10, 0, 0, list.len() as u8, 0], &list);
        assert_eq!(done, if taken { Ok(Vec::new()) } else { Err(Sense::INVALID_LIST) }, "{blocks}");
    }
}

#[test]
fn mode_select_changes_three_bits_and_no_other() {
    let disk = Memory::new(1024, 512);
    let control = |second: u8, fourth: u8| [0x0a, 0x0a, 0x20 | second, 0x10, fourth, 0, 0, 0, 0, 0, 0, 0];
    let shown = || disk.ask(&[0x1a, 8, 0x0a, 0, 255, 0]).unwrap();
    select(&disk, false, &control(0x06, 0)).unwrap();
    assert!(disk.modes.get().descriptors);
    assert_eq!(shown()[4..], control(0x06, 0));
    select(&disk, true, &control(0x02, 0x08)).unwrap();
    assert_eq!((shown()[2], &shown()[4..]), (0x90, &control(0x02, 0x08)[..]), "WP, and SWP");
    assert_eq!(disk.ask(&[0x1a, 8, 0x8a, 0, 255, 0]).unwrap()[4..], control(0x02, 0), "the default");
    for write in
        [&[0x0a, 0, 0, 0, 1, 0][..], &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    {
        assert_eq!(disk.tell(write, &[0; 512]), Err(Sense::SOFTWARE_PROTECTED), "{write:x?}");
    }
    assert!(disk.ask(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]).is_ok(), "reads go on");
    select(&disk, true, &control(0x02, 0)).unwrap();
    // The write cache is off: writes are durable when they are acknowledged.
    let mut caching = [0; 20];
    (caching[0], caching[1]) = (0x08, 0x12);
    select(&disk, false, &caching).unwrap();
    disk.tell(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[0; 512]).unwrap();
    disk.tell(&[0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[0; 512]).unwrap();
    assert_eq!(disk.fua.take(), [true; 2]);
    // What cannot be changed, and lists that are not whole, change nothing.
    let held = disk.modes.get();
    let list = |page: &[u8]| select(&disk, false, page).unwrap_err().code;
    assert_eq!(list(&control(0x00, 0)), [0x26, 0], "GLTSD");
    assert_eq!(list(&[control(0x06, 0), control(0x06, 1)].concat()), [0x26, 0], "the second page");
    assert_eq!(list(&control(0x06, 0)[..11]), [0x1a, 0]);
    assert_eq!(list(&[0x05, 2, 0, 0]), [0x26, 0], "no such page");
    // The extension comes back as it is, with other pages behind it; not with another length, priority or limit of sense data, nor another subpage.
    let mut extension = [0; 32];
    extension[..4].copy_from_slice(&[0x4a, 0x01, 0, 28]);
    assert_eq!(select(&disk, true, &[&extension[..], &control(0x02, 0)].concat()), Ok(Vec::new()));
    assert_eq!(list(&[0x4a]), [0x26, 0]);
    assert_eq!(list(&extension[..31]), [0x1a, 0]);
    for (at, value) in [(1, 0x05), (3, 27), (4, 0x04), (5, 1), (6, 18), (31, 1), (0, 0x0a), (0, 0x48)] {
        let mut other = extension;
        other[at] = value;
        assert_eq!(list(&other), [0x26, 0], "byte {at}");
    }
    for (at, value) in [(2, 0x08), (3, 0x05)] {
        let mut exceptions = [0x1c, 0x0a, 0, 0x06, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(select(&disk, false, &exceptions), Ok(Vec::new()), "as it is");
        exceptions[at] = value;
        assert_eq!(list(&exceptions), [0x26, 0], "DEXCPT, MRIE");
    }
    assert_eq!(disk.tell(&[0x15, 0x10, 0, 0, 3, 0], &[0; 3]).unwrap_err().code, [0x1a, 0]);
    assert_eq!(disk.tell(&[0x15, 0x11, 0, 0, 0, 0], &[]).unwrap_err().field, Some(1), "nothing is saved");
    assert_eq!(disk.modes.get(), held);
    assert_eq!(disk.tell(&[0x15, 0x10, 0, 0, 0, 0], &[]), Ok(Vec::new()), "no list is no error");
    // The descriptor that MODE SENSE gives comes back.
    let told = disk.ask(&[0x1a, 0, 0x08, 0, 255, 0]).unwrap();
    let list = [&[0, 0, 0][..], &told[3..]].concat();
    disk.tell(&[0x15, 0x10, 0, 0, list.len() as u8, 0], &list).unwrap();
    let told = disk.ask(&[0x5a, 0, 0x08, 0, 0, 0, 0, 0, 255, 0]).unwrap();
    let list = [&[0, 0, 0][..], &told[3..]].concat();
    disk.tell(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, list.len() as u8, 0], &list).unwrap();
    let told = &told[4..];
    let other = [&[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 4, 0][..], &told[12..]].concat();
    assert_eq!(disk.tell(&[0x15, 0x10, 0, 0, 32, 0], &other).unwrap_err().code, [0x26, 0], "other blocks");
    // LONGLBA: descriptors of 16 bytes, which MODE SENSE does not give.
    let mut long = list;
    for longlba in [1, 0] {
        long[4] = longlba;
        let done = disk.tell(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, long.len() as u8, 0], &long);
        assert_eq!(done.map_err(|e| e.code), if longlba == 1 { Err([0x26, 0]) } else { Ok(Vec::new()) });
    }
}

/// Of a page that comes back as it was told, each bit turned alone: two of them can be set, and nothing else of it is another page or length.
#[test]
fn no_other_bit_of_a_mode_page_can_be_turned() {
    let disk = Memory::new(1024, 512);
    let control = [0x0a, 0x0a, 0x22, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(select(&disk, false, &control), Ok(Vec::new()));
    let turned = |bit: &usize| {
        let mut page = control;
        page[bit / 8] ^= 1 << (bit % 8);
        select(&disk, false, &page).is_ok()
    };
    let taken: Vec<_> = (0..8 * control.len()).filter(turned).map(|bit| (bit / 8, bit % 8)).collect();
    assert_eq!(taken, [(2, 2), (4, 3)], "D_SENSE, SWP");
}

#[test]
fn modes_are_saved_all_at_once() {
    let disk = Memory::new(1024, 512);
    disk.saved.set(Some(Modes::default()));
    let caching = |wce: u8| [&[0, 0, 0, 0, 0x08, 0x12, wce][..], &[0; 17]].concat();
    let shown = |control: u8| disk.ask(&[0x1a, 8, control << 6 | 0x08, 0, 255, 0]).unwrap()[4..7].to_vec();
    disk.tell(&[0x15, 0x10, 0, 0, 24, 0], &caching(0)).unwrap();
    assert_eq!([0, 1, 2, 3].map(shown), [0, 4, 4, 4].map(|wce| vec![0x88, 0x12, wce]), "PS; SP was not set");
    // What is saved is all that was set, in this list or before.
    let control = [0, 0, 0, 0, 0x0a, 0x0a, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
    disk.fault.set(Some(Sense::WRITE_ERROR));
    assert_eq!(disk.tell(&[0x15, 0x11, 0, 0, 16, 0], &control), Err(Sense::WRITE_ERROR));
    assert!(!disk.modes.get().descriptors, "neither saved nor set");
    disk.tell(&[0x15, 0x11, 0, 0, 16, 0], &control).unwrap();
    let want = Modes { write_cache: false, descriptors: true, ..Modes::default() };
    assert_eq!((disk.saved.get(), disk.modes.get(), shown(3)[2]), (Some(want), want, 0));
    assert_eq!(shown(2)[2], 4, "the default is not what was saved");
    disk.tell(&[0x15, 0x10, 0, 0, 24, 0], &caching(4)).unwrap();
    assert_eq!(disk.saved.get(), Some(want));
    disk.tell(&[0x15, 0x11, 0, 0, 0, 0], &[]).unwrap();
    assert_eq!((disk.saved.get().unwrap().write_cache, shown(3)[2]), (true, 4), "without a list");
    // As text.
    assert_eq!(want.to_text(), "WCE=0\nD_SENSE=1\nSWP=0\n");
    assert_eq!(Modes::from_text(&want.to_text()), Some(want));
    for text in
        ["", "WCE=0\n", "WCE=0\nD_SENSE=1\nSWP=2\n", "D_SENSE=1\nWCE=0\nSWP=0\n", "WCE=0\nD_SENSE=1\nSWP=0"]
    {
        assert_eq!(Modes::from_text(text), None, "{text:?}");
    }
}
