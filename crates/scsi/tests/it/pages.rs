//! What a disk says of itself, byte by byte, and that the host's side reads it so.

mod modes;

use crate::disk::Memory;
use smrlab_scsi::says::{self, Pages};
use smrlab_scsi::{Kind, SelfTest, Sense, ask, execute_absent};

fn vital(disk: &Memory, code: u8) -> Vec<u8> {
    disk.ask(&ask::inquiry(Some(code), 512)).unwrap()
}

#[test]
fn standard_inquiry_data() {
    let data = Memory::new(1024, 512).ask(&ask::inquiry(None, 512)).unwrap();
    assert_eq!(data.len(), 96);
    assert_eq!(data[..8], [0x00, 0, 0x06, 0x12, 91, 0, 0, 0x02]);
    assert_eq!(data[8..36], *b"SMRLAB  tiny            0.1 ");
    assert_eq!((&data[36..58], &data[68..]), (&[0; 22][..], &[0; 28][..]));
    assert_eq!(data[58..68], [0x00, 0xa0, 0x04, 0x60, 0x04, 0xc0, 0x09, 0x60, 0, 0]);
    let zoned = Memory::zoned();
    let data = zoned.ask(&ask::inquiry(None, 512)).unwrap();
    assert_eq!((data[0], &data[66..68]), (0x14, &[0x06, 0x20][..]));
    assert_eq!(zoned.ask(&ask::inquiry(None, 5)).unwrap(), data[..5]);
    assert_eq!(zoned.ask(&[0x12, 0, 0x80, 0, 99, 0]).unwrap_err().field, Some(2), "a page without EVPD");
    assert_eq!(zoned.ask(&ask::inquiry(Some(0xb3), 99)).unwrap_err().field, Some(2));
}

#[test]
fn pages_of_vital_product_data() {
    let (disk, zoned) = (Memory::new(1024, 512), Memory::zoned());
    assert_eq!(vital(&disk, 0x00), [0, 0x00, 0, 7, 0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2]);
    assert_eq!(vital(&zoned, 0x00), [0x14, 0, 0, 8, 0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2, 0xb6]);
    let extended = vital(&zoned, 0x86);
    assert_eq!(extended[..14], [0x14, 0x86, 0, 60, 0, 7, 1, 0, 0, 0, 0, 0, 0, 28]);
    assert_eq!(extended[14..], [0; 50], "and sense data are no longer than that:");
    let longest = Sense { field: Some(1), ..Sense::UNRECOVERED_READ.about(1) };
    assert_eq!(longest.data(true).len(), 28);
    assert_eq!(vital(&disk, 0x80), [&[0, 0x80, 0, 15][..], b"a-serial-number"].concat());
    let names = vital(&disk, 0x83);
    assert_eq!(names[..8], [0, 0x83, 0, 55, 0x02, 0x01, 0, 39]);
    assert_eq!(names[8..47], *b"SMRLAB  tiny            a-serial-number");
    // FNV-1a of the first name, without its last four bits: hosts know the disk by it, so it stays as it is.
    assert_eq!(
        names[47..],
        [&[0x01, 0x03, 0, 8][..], &[0x34, 0x2c, 0x5f, 0x8c, 0x06, 0x9e, 0xb5, 0xe9]].concat()
    );
    let limits = vital(&disk, 0xb0);
    assert_eq!(limits[..4], [0, 0xb0, 0, 60]);
    assert_eq!(limits[4..12], [1, 255, 0, 8, 0, 1, 0, 0]);
    assert_eq!(limits[20..32], [0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 0, 8]);
    assert_eq!(limits[36..44], [0, 0, 0, 0, 0, 1, 0, 0]);
    // No optimal length, no prefetch, no alignment of what is unmapped, no atomic writes.
    assert_eq!((&limits[12..20], &limits[32..36], &limits[44..]), (&[0; 8][..], &[0; 4][..], &[0; 20][..]));
    let large = vital(&Memory::new(1024, 4096), 0xb0);
    assert_eq!(
        (&large[8..12], &large[40..44]),
        (&[0, 0, 0x20, 0][..], &[0, 0, 0x20, 0][..]),
        "in its own blocks"
    );
    assert_eq!(vital(&disk, 0xb1)[..9], [0, 0xb1, 0, 60, 0x1c, 0x20, 0, 0x42, 0x20]);
    assert_eq!(vital(&disk, 0xb1)[9..], [0; 55]);
    assert_eq!(vital(&zoned, 0xb1)[8], 0, "told by its device type");
    assert_eq!(vital(&disk, 0xb2), [0, 0xb2, 0, 4, 0, 0xe4, 2, 0]);
    let zones = vital(&zoned, 0xb6);
    assert_eq!(zones[..8], [0x14, 0xb6, 0, 60, 1, 0, 0, 0]);
    assert_eq!(zones[8..20], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3]);
    assert_eq!(zones[20..], [0; 44], "no alignment is said");
    assert_eq!(disk.ask(&ask::inquiry(Some(0xb6), 99)).unwrap_err().code, [0x24, 0]);
    let mut gaps = Memory::zoned();
    let Kind::HostManaged(limits) = &mut gaps.facts.kind else { panic!() };
    limits.pitch = Some(smrlab_units::Blocks(0x0108));
    gaps.facts.logical = 4096;
    assert_eq!(vital(&gaps, 0xb6)[23..32], [0x08, 0, 0, 0, 0, 0, 0, 0, 0x21], "constant distance of starts");
    let report = |disk: &Memory| disk.ask(&[0x95, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0]).unwrap();
    assert_eq!(
        (report(&zoned)[16..24] == [0; 8], report(&gaps)[16..24] == [0, 0, 0, 0, 0, 0, 0, 0x21]),
        (true, true)
    );
}

#[test]
fn the_host_reads_what_the_disk_says() {
    let all = |disk: &Memory| -> Pages {
        let vital = [0xb0, 0xb1, 0xb2, 0xb6].into_iter().filter_map(|code| {
            Some((format!("vpd_pg{code:02x}"), disk.ask(&ask::inquiry(Some(code), 512)).ok()?))
        });
        vital.chain([("inquiry".to_owned(), disk.ask(&ask::inquiry(None, 36)).unwrap())]).collect()
    };
    let said = says::read(&all(&Memory::zoned()));
    assert!(said.inquiry_type.is_some() && said.rpm == Some(7200) && said.unmap == Some(false));
    let zones = said.zones.unwrap();
    assert_eq!((zones.most_open, zones.unrestricted_reads, zones.optimal_open), (Some(3), true, None));
    let said = says::read(&all(&Memory::new(1024, 512)));
    assert_eq!(said.zbc_page, Some(says::Zones::DriveManaged));
    assert_eq!((said.unmap, said.provisioning, said.zones), (Some(true), Some("thin"), None));
    let mut plain = Memory::new(1024, 512);
    plain.facts.kind = Kind::Conventional;
    assert_eq!(says::read(&all(&plain)).zbc_page, None);
    let capacity = |bytes: u32| [[0; 4], bytes.to_be_bytes()].concat();
    let blocks = [0, 511, 512, 520, 4096].map(|bytes| says::logical_block(&capacity(bytes)));
    assert_eq!(blocks, [None, None, Some(512), None, Some(4096)]);
    assert_eq!(says::logical_block(&capacity(512)[..7]), None, "cut");
}

#[test]
fn capacity() {
    let disk = Memory::new(1024, 4096);
    let service = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    assert_eq!(disk.ask(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap(), [0, 0, 0, 127, 0, 0, 0x10, 0]);
    let long = disk.ask(&service).unwrap();
    assert_eq!(long[..16], [0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 0x10, 0, 0, 0, 0xc0, 0]);
    assert_eq!(long[16..], [0; 16]);
    let zoned = Memory::zoned().ask(&service).unwrap();
    assert_eq!(
        zoned[7..16],
        [159, 0, 0, 2, 0, 0x10, 3, 0, 0],
        "RC BASIS, and 8 logical blocks in a physical one"
    );
    let mut large = Memory::new(8, 512);
    large.facts.blocks = smrlab_units::Blocks((1 << 33) + 5);
    assert_eq!(large.ask(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap()[..4], [0xff; 4]);
}

#[test]
fn log_pages() {
    let mut disk = Memory::new(1024, 512);
    disk.usage = smrlab_scsi::Usage { read: 1 << 40, written: 0x0102, unrecovered: 3, minutes: 0x0405 };
    let told = |page: u8, subpage, from, length| {
        disk.ask(&[0x4d, 0, 0x40 | page, subpage, 0, 0, from, 0, length, 0])
    };
    assert_eq!(told(0, 0, 0, 255).unwrap(), [0, 0, 0, 7, 0x00, 0x02, 0x03, 0x0d, 0x10, 0x15, 0x2f]);
    let subpages = told(0, 0xff, 0, 255).unwrap();
    let plain = [0x02, 0x03, 0x0d, 0x10, 0x15, 0x2f].map(|page| [page, 0]).concat();
    assert_eq!(subpages, [&[0x40, 0xff, 0, 16, 0x00, 0, 0x00, 0xff], &plain[..]].concat());
    let counter = |code, n: u64| [&[0, code, 0x02, 8][..], &n.to_be_bytes()].concat();
    assert_eq!(told(0x02, 0, 0, 255).unwrap(), [&[0x02, 0, 0, 12][..], &counter(5, 0x0102)].concat());
    let reads = [&[0x03, 0, 0, 24][..], &counter(5, 1 << 40), &counter(6, 3)].concat();
    assert_eq!(told(0x03, 0, 0, 255).unwrap(), reads);
    assert_eq!(told(0x03, 0, 6, 255).unwrap()[4..], counter(6, 3));
    let scans = [0x15, 0, 0, 16, 0, 0, 0x03, 12, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(told(0x15, 0, 0, 255).unwrap(), scans, "no scan, and how long it has power");
    let temperature = [0x0d, 0, 0, 12, 0, 0, 0x03, 2, 0, 0xff, 0, 1, 0x03, 2, 0, 0xff];
    assert_eq!(told(0x0d, 0, 0, 255).unwrap(), temperature, "not known");
    assert_eq!(told(0x0d, 0, 0, 10).unwrap(), temperature[..10]);
    assert_eq!(told(0x0d, 0, 1, 255).unwrap(), [&[0x0d, 0, 0, 6][..], &temperature[10..]].concat());
    // No self-test was: twenty results of zeroes, 400 bytes.
    let cdb = |from, length: [u8; 2]| [0x4d, 0, 0x50, 0, 0, 0, from, length[0], length[1], 0];
    let results = disk.ask(&cdb(0, [2, 0])).unwrap();
    let each = (1..=20).flat_map(|code| [[0, code, 0x03, 16].as_slice(), &[0; 16]].concat());
    assert_eq!(results, [0x10, 0, 0x01, 0x90].into_iter().chain(each).collect::<Vec<u8>>());
    let last = [&[0x10, 0, 0, 20, 0, 20, 0x03, 16][..], &[0; 16]].concat();
    assert_eq!(disk.ask(&cdb(20, [2, 0])).unwrap(), last);
    assert_eq!(disk.ask(&cdb(21, [2, 0])).unwrap_err().field, Some(5), "there are twenty");
    assert_eq!(told(0x2f, 0, 0, 255).unwrap(), [0x2f, 0, 0, 7, 0, 0, 0x03, 3, 0, 0, 0xff]);
    assert_eq!(disk.ask(&[0x4d, 0, 0x0d, 0, 0, 0, 0, 0, 255, 0]).unwrap(), temperature, "whatever PC is");
    let refused = |cdb: [u8; 10]| disk.ask(&cdb).unwrap_err().field;
    assert_eq!(refused([0x4d, 0, 0x54, 1, 0, 0, 0, 0, 255, 0]), Some(2), "no zones");
    assert_eq!(refused([0x4d, 1, 0x40, 0, 0, 0, 0, 0, 255, 0]), Some(1), "nothing is saved");
    assert_eq!(refused([0x4d, 0, 0x45, 0, 0, 0, 0, 0, 255, 0]), Some(2), "no such page");
    assert_eq!(refused([0x4d, 0, 0x4d, 1, 0, 0, 0, 0, 255, 0]), Some(3), "no such subpage");
    assert_eq!(refused([0x4d, 0, 0x4d, 0, 0, 0, 2, 0, 255, 0]), Some(5), "no such parameter");
    assert_eq!(refused([0x4d, 0, 0x40, 0, 0, 0, 1, 0, 255, 0]), Some(5));
}

#[test]
fn a_page_of_what_is_counted_of_zones() {
    let counted = smrlab_units::ZoneStatistics {
        most_open: 3,
        most_explicit: 1,
        most_implicit: 2,
        least_empty: 70_000,
        most_non_sequential: 4,
        emptied: 5,
        suboptimal: 6,
        over_recommended: 7,
        failed_opens: 8,
        refused_reads: 9,
        refused_writes: 10,
    };
    let of = |mut disk: Memory, page: u8, subpage, from| {
        disk.statistics = Some(counted);
        disk.ask(&[0x4d, 0, 0x40 | page, subpage, 0, 0, from, 0, 255, 0])
    };
    let values = |data: &[u8]| -> Vec<(u8, u32)> {
        assert_eq!((data[..3].to_vec(), data[3] as usize), (vec![0x54, 1, 0], data.len() - 4));
        let each = |p: &[u8]| {
            assert_eq!((p[0], p[2..8].to_vec()), (0, vec![0x03, 8, 0, 0, 0, 0]));
            (p[1], u32::from_be_bytes(p[8..12].try_into().unwrap()))
        };
        data[4..].chunks(12).map(each).collect()
    };
    let all = [(0, 3), (1, 1), (2, 2), (3, 70_000), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10)];
    for disk in [Memory::zoned, Memory::aware] {
        assert_eq!(values(&of(disk(), 0x14, 1, 0).unwrap()), all);
    }
    assert_eq!(values(&of(Memory::aware(), 0x14, 1, 7).unwrap()), all[7..]);
    assert_eq!(of(Memory::zoned(), 0x14, 1, 11).unwrap_err().field, Some(5));
    assert_eq!(of(Memory::zoned(), 0x14, 0, 0).unwrap_err().field, Some(3), "nothing else is counted");
    assert_eq!(of(Memory::zoned(), 0, 0, 0).unwrap()[4..], [0, 2, 3, 0x0d, 0x10, 0x15, 0x2f]);
    let subpages = of(Memory::zoned(), 0, 0xff, 0).unwrap();
    assert_eq!(subpages[12..], [0x0d, 0, 0x10, 0, 0x14, 1, 0x15, 0, 0x2f, 0]);
}

#[test]
fn self_tests_pass_and_are_told_of() {
    let mut disk = Memory::new(1024, 512);
    disk.usage.minutes = 0x0203 * 60 + 59;
    for byte in [0x00, 0x04, 0x20, 0x40, 0xa0, 0xc0] {
        assert_eq!(disk.ask(&[0x1d, byte, 0, 0, 0, 0]), Ok(Vec::new()), "{byte:#x}");
    }
    // None to abort, none of such a code, and the default one is no other.
    for byte in [0x80, 0x60, 0xe0, 0x24] {
        assert_eq!(disk.ask(&[0x1d, byte, 0, 0, 0, 0]).unwrap_err().field, Some(1), "{byte:#x}");
    }
    let results = disk.ask(&[0x4d, 0, 0x50, 0, 0, 0, 0, 2, 0, 0]).unwrap();
    assert_eq!(results.len(), 404);
    let made = |code| [&[code, 0, 2, 3][..], &[0xff; 8], &[0; 4]].concat();
    let told: Vec<&[u8]> = results[4..].chunks(20).map(|p| &p[4..]).collect();
    assert_eq!(told[..4], [0xc0, 0xa0, 0x40, 0x20].map(made), "the last one first");
    assert_eq!(told[4..], [&[0; 16][..]; 16]);
    disk.self_tests.replace(vec![SelfTest { code: 5, minutes: 70_000 * 60 }]);
    let results = disk.ask(&[0x4d, 0, 0x50, 0, 0, 0, 0, 2, 0, 0]).unwrap();
    assert_eq!(results[8..12], [0xa0, 0, 0xff, 0xff], "more hours than can be told");
}

#[test]
fn lists_of_functions_and_of_defects() {
    let disk = Memory::new(1024, 512);
    assert_eq!(disk.ask(&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0]).unwrap(), [0xd8, 0, 0, 0]);
    let more = disk.ask(&[0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 99, 0, 0]).unwrap();
    assert_eq!((more.len(), &more[..4]), (16, &[0xd8, 0, 0, 12][..]));
    assert_eq!(disk.ask(&[0x37, 0, 0x1d, 0, 0, 0, 0, 0, 99, 0]).unwrap(), [0, 0x1d, 0, 0]);
    let long = [0xb7, 0x18, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0];
    assert_eq!(disk.ask(&long).unwrap(), [0, 0x18, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn supported_operation_codes() {
    let (disk, zoned) = (Memory::new(1024, 512), Memory::zoned());
    let asked = |disk: &Memory, how: u8, code: u8, service: u8| {
        disk.ask(&[0xa3, 0x0c, how, code, 0, service, 0, 0, 16, 0, 0, 0])
    };
    let read = asked(&disk, 1, 0x28, 0).unwrap();
    assert_eq!(read, [0, 3, 0, 10, 0x28, 0x18, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0]);
    assert_eq!(
        asked(&disk, 0x81, 0, 0).unwrap()[..],
        [0, 0x83, 0, 6, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(asked(&disk, 1, 0x7f, 0).unwrap(), [0, 1, 0, 0]);
    assert_eq!(asked(&disk, 3, 0x94, 4).unwrap(), [0, 1, 0, 0], "a zone command of a disk without zones");
    assert_eq!(asked(&zoned, 3, 0x94, 4).unwrap()[..6], [0, 3, 0, 16, 0x94, 0x04]);
    assert_eq!(asked(&zoned, 2, 0x94, 9).unwrap(), [0, 1, 0, 0]);
    assert_eq!(asked(&zoned, 1, 0x94, 0).unwrap_err().field, Some(2));
    assert_eq!(asked(&zoned, 2, 0x28, 0).unwrap_err().field, Some(2));
    let list = disk.ask(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0]).unwrap();
    assert_eq!(list[..4], (list.len() as u32 - 4).to_be_bytes());
    assert_eq!(list[4..12], [0x00, 0, 0, 0, 0, 0, 0, 6]);
    assert!(list[4..].chunks(8).any(|c| c == [0x9e, 0, 0, 0x10, 0, 1, 0, 16]));
    let more = zoned.ask(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0]).unwrap();
    assert_eq!(
        (more.len() - list.len()) / 8,
        2,
        "five zone commands more, and neither UNMAP nor GET LBA STATUS nor SANITIZE"
    );
}

#[test]
fn the_unit_and_units_that_are_not_there() {
    let disk = Memory::new(1024, 512);
    let luns = [0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0];
    let found = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        (disk.ask(&luns).unwrap(), execute_absent(&disk, &luns).unwrap()),
        (found.into(), found.into())
    );
    assert_eq!(disk.ask(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]).unwrap_err().code, [0x24, 0]);
    assert_eq!(disk.ask(&[0x03, 0, 0, 0, 252, 0]).unwrap(), Sense::NONE.fixed());
    assert_eq!(execute_absent(&disk, &[0x03, 0, 0, 0, 252, 0]).unwrap(), Sense::NO_SUCH_UNIT.fixed());
    let described = execute_absent(&disk, &[0x03, 1, 0, 0, 252, 0]).unwrap();
    assert_eq!(described, Sense::NO_SUCH_UNIT.descriptors());
    assert_eq!(execute_absent(&disk, &[0x03, 1, 0, 0, 3, 0]).unwrap(), described[..3]);
    assert_eq!(execute_absent(&disk, &ask::inquiry(None, 96)).unwrap()[0], 0x7f);
    assert_eq!(execute_absent(&disk, &[0; 6]), Err(Sense::NO_SUCH_UNIT.into()));
}

#[test]
fn a_host_aware_disk_is_an_ordinary_one_that_has_zones() {
    let disk = Memory::aware();
    let page = |code| disk.ask(&[0x12, 1, code, 1, 0, 0]).unwrap();
    let standard = disk.ask(&[0x12, 0, 0, 1, 0, 0]).unwrap();
    assert_eq!((standard[0], &standard[66..68]), (0, &[0x06, 0x20][..]), "an ordinary disk; ZBC");
    assert_eq!(page(0x00).last(), Some(&0xb6));
    // Byte 8 of the page, bits 5 and 4.
    assert_eq!((page(0xb1)[8], Memory::zoned().ask(&[0x12, 1, 0xb1, 1, 0, 0]).unwrap()[8]), (0x10, 0x00));
    let b6 = page(0xb6);
    assert_eq!(b6[..4], [0x00, 0xb6, 0, 60]);
    assert_eq!(b6[4..20], [1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff]);
}
