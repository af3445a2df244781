//! Commands by the bytes of their standards, and reports against a look at each block and each zone.

use crate::disk::Memory;
use smrlab_scsi::ask::{self, LogPage};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Lba, Zone, ZoneCondition, ZoneKind};

/// SPC-5 (INQUIRY, MODE SENSE and MODE SELECT), SAT-4 (ATA PASS-THROUGH), ACS-4 (IDENTIFY DEVICE, READ LOG EXT, SET FEATURES).
#[test]
fn what_a_host_asks_byte_by_byte() {
    assert_eq!(ask::inquiry(None, 36), [0x12, 0, 0, 0, 36, 0]);
    assert_eq!(ask::inquiry(Some(0x83), 0x0102), [0x12, 1, 0x83, 1, 2, 0]);
    // DBD, the present values of page 8.
    assert_eq!(ask::mode_sense(192), [0x5a, 0x08, 0x08, 0, 0, 0, 0, 0, 192, 0]);
    // PF, and not SP.
    assert_eq!(ask::mode_select(28), [0x55, 0x10, 0, 0, 0, 0, 0, 0, 28, 0]);
    assert_eq!(ask::identify(), [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]);
    let of = LogPage { log: 0x30, page: 0x09 };
    assert_eq!(ask::read_log(of), [0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x30, 0, 0x09, 0, 0, 0, 0x2f, 0]);
    assert_eq!(ask::set_features(0x82), [0x85, 0x06, 0, 0, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xef, 0]);
}

/// The caching page behind a header of 8 bytes and what block descriptors there are; what is sent back is it without the saveable bit.
#[test]
fn the_caching_page_is_found_and_sent_back() {
    let page: Vec<u8> = [0x88, 18].into_iter().chain(1..19).collect();
    for descriptors in [0u16, 8, 16] {
        let header = [&[0, 0, 0, 0, 0, 0][..], &descriptors.to_be_bytes()].concat();
        let answer = [&header[..], &vec![7; usize::from(descriptors)], &page, &[9, 9]].concat();
        assert_eq!(ask::caching_page(&answer), Some(page.clone()));
        for cut in 0..answer.len() - 2 {
            assert_eq!(ask::caching_page(&answer[..cut]), None, "{cut} bytes");
        }
    }
    let other: Vec<u8> = [vec![0; 8], vec![0x0a, 18], vec![0; 18]].concat();
    assert_eq!(ask::caching_page(&other), None, "another page");
    let short = |n: u8| [vec![0; 8], vec![0x08, n], vec![0; usize::from(n)]].concat();
    assert_eq!([10, 11].map(|n| ask::caching_page(&short(n)).is_some()), [false, true]);
    let sent = ask::parameters(&page);
    assert_eq!((sent.len(), &sent[..8], sent[8], &sent[9..]), (28, &[0; 8][..], 0x08, &page[1..]));
}

/// GET LBA STATUS of random blocks: stretches that are alike, from the block that is asked for, as many as there is room for.
#[test]
fn the_status_of_random_blocks_is_that_of_each() {
    let mut rng = Rng::new(5);
    for round in 0..300 {
        let logical = [512, 4096][round % 2];
        let (disk, ratio) = (Memory::new(160, logical), u64::from(logical) / 512);
        let often = 1 + rng.below(9);
        for block in 0..160 {
            disk.bytes.borrow_mut()[block * 512] = u8::from(rng.one_in(often));
        }
        let mapped =
            |lba: u64| (lba * ratio..(lba + 1) * ratio).any(|b| disk.bytes.borrow()[b as usize * 512] != 0);
        let (all, first) = (160 / ratio, rng.below(160 / ratio));
        let mut want: Vec<(u64, u64, u8)> = Vec::new();
        for lba in first..all {
            let provisioned = u8::from(!mapped(lba));
            match want.last_mut() {
                Some(last) if last.2 == provisioned => last.1 += 1,
                _ => want.push((lba, 1, provisioned)),
            }
        }
        let room = rng.below(300);
        want.truncate((room.saturating_sub(8) / 16).max(1) as usize);
        let stretch = |w: &(u64, u64, u8)| {
            [&w.0.to_be_bytes()[..], &(w.1 as u32).to_be_bytes(), &[w.2, 0, 0, 0]].concat()
        };
        let mut bytes = (4 + 16 * want.len() as u32).to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        want.iter().for_each(|w| bytes.extend(stretch(w)));
        bytes.truncate(room as usize);
        let cdb = [&[0x9e, 0x12][..], &first.to_be_bytes(), &(room as u32).to_be_bytes(), &[0, 0]].concat();
        let got = disk.ask(&cdb).unwrap();
        if ratio == 1 {
            assert_eq!(got, bytes, "{round}: from {first}, {room} bytes");
            continue;
        }
        // Parts of logical blocks: stretches that are alike may follow each other.
        let number = |d: &[u8]| d.iter().fold(0, |n, b| n << 8 | u64::from(*b));
        let mut next = first;
        for d in got.get(8..).unwrap_or_default().chunks_exact(16) {
            assert_eq!(number(&d[..8]), next, "{round}");
            let to = next + number(&d[8..12]);
            assert!(to > next && (next..to).all(|b| d[12] == u8::from(!mapped(b))), "{round}: {d:?}");
            next = to;
        }
        let most = (room.saturating_sub(8) / 16).max(1);
        let told = (got.len() as u64).saturating_sub(8) / 16;
        assert!(told <= most && (told == most || next == all || room < 24), "{round}: {told} of {most}");
    }
}

const CONDITIONS: [ZoneCondition; 8] = [
    ZoneCondition::NotWritePointer,
    ZoneCondition::Empty,
    ZoneCondition::ImplicitlyOpen,
    ZoneCondition::ExplicitlyOpen,
    ZoneCondition::Closed,
    ZoneCondition::ReadOnly,
    ZoneCondition::Full,
    ZoneCondition::Offline,
];

/// A few zones of one length, or of 8 blocks, in any condition; often all of one type.
fn any_zones(rng: &mut Rng) -> Vec<Zone> {
    let (length, mut start, alike) = (8 * (1 + rng.below(9)), 0, rng.one_in(2));
    let mut zone = |rng: &mut Rng| {
        let condition = CONDITIONS[if alike { 1 + rng.below(7) } else { rng.below(8) } as usize];
        let kinds = [ZoneKind::SequentialRequired, ZoneKind::SequentialPreferred, ZoneKind::Gap];
        let other = kinds[if alike { 0 } else { rng.below(3) } as usize];
        let kind = if condition == ZoneCondition::NotWritePointer { ZoneKind::Conventional } else { other };
        let blocks = if rng.one_in(4) { 8 } else { length };
        let pointer = rng.one_in(2).then(|| Lba(start + blocks / 16 * 8));
        let non_sequential = rng.one_in(3);
        start += blocks;
        Zone { start: Lba(start - blocks), blocks: Blocks(blocks), kind, condition, pointer, non_sequential }
    };
    let n = 1 + rng.below(8);
    (0..n).map(|_| zone(rng)).collect()
}

/// Whether a zone is one of those that an option of ZBC-2 asks for; conditions by their numbers there.
fn wanted(z: &Zone, option: u8) -> bool {
    let condition = z.condition as u8;
    match option {
        0x00 => true,
        0x10 => false,
        0x11 => z.non_sequential,
        0x3e => z.kind != ZoneKind::Gap,
        0x3f => condition == 0,
        5 => condition == 0xe,
        6 => condition == 0xd,
        7 => condition == 0xf,
        n => condition == n,
    }
}

/// SAME of ZBC-2.
fn same(zones: &[&Zone]) -> u8 {
    let alike = |n: usize| zones.iter().take(n).all(|z| z.blocks == zones[0].blocks);
    let types = zones.iter().all(|z| z.kind == zones[0].kind);
    match (types, alike(zones.len())) {
        (true, true) => 1,
        (true, false) if alike(zones.len() - 1) => 2,
        (false, true) => 3,
        _ => 0,
    }
}

/// REPORT ZONES of random zones, of either size of logical blocks: the header, and each zone that the option wants.
#[test]
fn a_report_of_random_zones_is_that_of_each() {
    let options = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x10, 0x11, 0x3e, 0x3f];
    let mut rng = Rng::new(6);
    for round in 0..400 {
        let (mut disk, ratio) = (Memory::zoned(), [1, 8][round % 2]);
        disk.facts.logical = 512 * ratio as u32;
        disk.zones = any_zones(&mut rng);
        let end = |z: &Zone| z.start.0 + z.blocks.0;
        disk.facts.blocks = Blocks(end(&disk.zones[disk.zones.len() - 1]));
        let all = disk.facts.blocks.0 / ratio;
        let (start, option) = (rng.below(all), options[rng.below(12) as usize]);
        let (partial, room) = (rng.one_in(2), rng.below(600));
        let asked = |z: &&Zone| end(z) > start * ratio && wanted(z, option);
        let mut want: Vec<&Zone> = disk.zones.iter().filter(asked).collect();
        let fit = (room.saturating_sub(64) / 64) as usize;
        let count = if partial { want.len().min(fit) } else { want.len() };
        // All that were looked at are compared: with the partial bit one at least, and no more than fit.
        let seen = if partial { want.len().min(fit.max(1)) } else { want.len() };
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(&(64 * count as u32).to_be_bytes());
        bytes[4] = same(&want[..seen]);
        bytes[8..16].copy_from_slice(&(all - 1).to_be_bytes());
        want.truncate(fit);
        for z in want {
            let mut d = [0; 64];
            (d[0], d[1]) = (z.kind as u8, (z.condition as u8) << 4 | u8::from(z.non_sequential) << 1);
            let pointer = z.pointer.map_or(u64::MAX, |p| p.0 / ratio);
            for (at, n) in [(8, z.blocks.0 / ratio), (16, z.start.0 / ratio), (24, pointer)] {
                d[at..at + 8].copy_from_slice(&n.to_be_bytes());
            }
            bytes.extend(d);
        }
        bytes.truncate(room as usize);
        let option = option | if partial { 0x80 } else { 0 };
        let cdb = [&[0x95, 0][..], &start.to_be_bytes(), &(room as u32).to_be_bytes(), &[option, 0]].concat();
        assert_eq!(disk.ask(&cdb).unwrap(), bytes, "{round}: option {option:#x} from {start}, {room} bytes");
    }
}

/// MODE SENSE of 10 bytes has what that of 6 bytes has, behind a longer header: block descriptors too, unless these are not wanted.
#[test]
fn both_mode_senses_say_the_same() {
    for (blocks, logical) in [(1024u64, 512u32), (4096, 4096)] {
        let disk = Memory::new(blocks, logical);
        for dbd in [0, 8] {
            let six = disk.ask(&[0x1a, dbd, 0x3f, 0, 255, 0]).unwrap();
            let ten = disk.ask(&[0x5a, dbd, 0x3f, 0, 0, 0, 0, 0, 255, 0]).unwrap();
            assert_eq!((&ten[8..], ten[7], ten[3]), (&six[4..], six[3], six[2]));
            let lengths = (u16::from_be_bytes([ten[0], ten[1]]), u16::from(six[0]));
            assert_eq!(lengths, (ten.len() as u16 - 2, six.len() as u16 - 1));
            let descriptor =
                [(blocks as u32 / (logical / 512)).to_be_bytes(), logical.to_be_bytes()].concat();
            assert_eq!(six[4..].starts_with(&descriptor), dbd == 0);
        }
    }
}

/// A disk that does not say how fast it turns reports no rate: page B1h of vital product data.
#[test]
fn a_disk_without_a_speed_reports_none() {
    let mut disk = Memory::new(1024, 512);
    for (rpm, bytes) in [(Some(7200), [0x1c, 0x20]), (None, [0, 0])] {
        disk.facts.rpm = rpm;
        let page = disk.ask(&[0x12, 1, 0xb1, 0, 255, 0]).unwrap();
        assert_eq!(page[4..6], bytes);
    }
}
