//! Pages byte by byte, as the standards lay them out.

use super::*;
use std::ops::Range;

fn pages(of: &[(&str, Vec<u8>)]) -> Pages {
    of.iter().map(|(name, data)| ((*name).to_owned(), data.clone())).collect()
}

/// INQUIRY data of a type: 36 bytes, of SPC-5.
fn inquiry(kind: u8) -> Vec<u8> {
    let mut data = vec![kind, 0, 7, 2, 31, 0, 0, 2];
    data.extend(b"ATA     HGST HSH721414AL0001");
    data
}

/// A page of vital product data of `length` bytes in all, with bytes at places.
fn vital(code: u8, length: usize, at: &[(usize, &[u8])]) -> Vec<u8> {
    let mut page = vec![0; length];
    page[1] = code;
    page[2..4].copy_from_slice(&(length as u16 - 4).to_be_bytes());
    at.iter().for_each(|(n, bytes)| page[*n..n + bytes.len()].copy_from_slice(bytes));
    page
}

/// Answers to IDENTIFY DEVICE with words at places.
fn identify(at: &[(usize, u16)]) -> Vec<u8> {
    let mut data = vec![0; 512];
    data[0] = 0x40;
    at.iter().for_each(|(n, word)| data[2 * n..2 * n + 2].copy_from_slice(&word.to_le_bytes()));
    data
}

fn one(name: &str, data: Vec<u8>) -> Said {
    read(&pages(&[(name, data)]))
}

#[test]
fn the_device_type_of_a_host_managed_drive() {
    let said = one("inquiry", inquiry(0x14));
    assert_eq!(said.inquiry_type, Some("14h: host-managed zoned block device"));
    assert_eq!(said.model.as_deref(), Some("HGST HSH721414AL"), "without the revision");
    let mut other = inquiry(0x00);
    other[8..16].copy_from_slice(b"SEAGATE ");
    assert_eq!(one("inquiry", other).model.as_deref(), Some("SEAGATE HGST HSH721414AL"));
    assert_eq!(one("inquiry", inquiry(0x00)).inquiry_type, None);
    assert_eq!(one("inquiry", inquiry(0x7f)).inquiry_type, None, "no such device");
    assert_eq!(one("inquiry", Vec::new()), Said::default());
}

#[test]
fn rotation_and_zones_of_the_characteristics() {
    let page =
        |rate: u16, byte_8| one("vpd_pgb1", vital(0xb1, 64, &[(4, &rate.to_be_bytes()), (8, &[byte_8])]));
    assert_eq!(
        page(5980, 0x10),
        Said { rpm: Some(5980), zbc_page: Some(Zones::HostAware), ..Said::default() }
    );
    assert_eq!(page(0, 0x20), Said { zbc_page: Some(Zones::DriveManaged), ..Said::default() });
    assert_eq!(page(1, 0x00), Said { solid_state: true, ..Said::default() });
    // Reserved rates and zones, and the neighbouring bits of byte 8.
    for (rate, byte_8) in [(2, 0x30), (0x0400, 0xcf), (0xffff, 0)] {
        assert_eq!(page(rate, byte_8), Said::default(), "{rate} {byte_8:#x}");
    }
    assert_eq!(page(0x0401, 0).rpm, Some(1025));
}

#[test]
fn a_page_that_is_another_or_ends_early_says_nothing() {
    let whole = vital(0xb1, 64, &[(4, &[0x17, 0x5c]), (8, &[0x10])]);
    assert_eq!(one("vpd_pgb1", vital(0xb2, 64, &[(4, &[0x17, 0x5c])])), Said::default());
    for length in 0..6 {
        assert_eq!(one("vpd_pgb1", whole[..length].to_vec()), Said::default(), "{length}");
    }
    assert_eq!(one("vpd_pgb1", whole[..8].to_vec()), Said { rpm: Some(5980), ..Said::default() });
    // It says itself that it ends before byte 8; what lies behind is no part of it.
    let mut short = whole;
    short[3] = 4;
    assert_eq!(one("vpd_pgb1", short).zbc_page, None);
}

#[test]
fn unmap_by_its_bits_or_its_limit() {
    for (byte_5, unmap) in [(0x80, true), (0x40, true), (0x20, true), (0x1f, false)] {
        assert_eq!(one("vpd_pgb2", vital(0xb2, 8, &[(5, &[byte_5])])).unmap, Some(unmap), "{byte_5:#x}");
    }
    for (byte_6, kind) in
        [(0, None), (1, Some("resource")), (2, Some("thin")), (3, None), (0xfa, Some("thin"))]
    {
        assert_eq!(one("vpd_pgb2", vital(0xb2, 8, &[(6, &[byte_6])])).provisioning, kind, "{byte_6}");
    }
    for (most, unmap) in [([0, 0, 0, 0], false), ([0, 0, 0, 1], true), ([1, 0, 0, 0], true)] {
        assert_eq!(one("vpd_pgb0", vital(0xb0, 64, &[(20, &most)])).unmap, Some(unmap));
    }
    // Block limits of before UNMAP: 16 bytes.
    assert_eq!(one("vpd_pgb0", vital(0xb0, 16, &[])).unmap, None);
    let both =
        pages(&[("vpd_pgb0", vital(0xb0, 64, &[(20, &[0xff; 4])])), ("vpd_pgb2", vital(0xb2, 8, &[]))]);
    assert_eq!(read(&both).unmap, Some(false), "the bits count");
}

#[test]
fn the_limits_of_zones_by_page_and_by_log() {
    let none = [0xff; 4];
    let page = vital(0xb6, 64, &[(4, &[1]), (8, &none), (12, &none), (16, &[0, 0, 0, 128])]);
    let managed = ZoneLimits { unrestricted_reads: true, most_open: Some(128), ..ZoneLimits::default() };
    assert_eq!(one("vpd_pgb6", page).zones, Some(managed));
    let mut log = vec![0; 512];
    let mut put = |at: usize, value: u64| log[at..at + 8].copy_from_slice(&(1 << 63 | value).to_le_bytes());
    put(0, 0x09_0001);
    put(8, 0);
    put(24, 128);
    put(32, 8);
    let aware = ZoneLimits { optimal_open: Some(128), optimal_unordered: Some(8), ..ZoneLimits::default() };
    assert_eq!(one("zoned_log", log.clone()).zones, Some(aware));
    // Bit 63 says that a field is valid: without it neither reads, nor numbers, nor the page itself are said.
    for (at, value, want) in [
        (8, 1, aware),
        (24, 128, ZoneLimits { optimal_open: None, ..aware }),
        (32, 8, ZoneLimits { optimal_unordered: None, ..aware }),
        (40, 77, aware),
    ] {
        let mut other = log.clone();
        other[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        assert_eq!(one("zoned_log", other.clone()).zones, Some(want), "{at}");
        other[7] = 0;
        assert_eq!(one("zoned_log", other).zones, None);
    }
    let mut whole = log.clone();
    whole[8..16].copy_from_slice(&(1u64 << 63 | 1).to_le_bytes());
    whole[40..48].copy_from_slice(&(1u64 << 63 | 77).to_le_bytes());
    let said = ZoneLimits { unrestricted_reads: true, most_open: Some(77), ..aware };
    assert_eq!(one("zoned_log", whole).zones, Some(said));
    let mut other = log.clone();
    other[2] = 0x08;
    assert_eq!(one("zoned_log", other).zones, None, "another page of the log");
    log[..2].fill(0);
    assert_eq!(one("zoned_log", log).zones, None, "a revision of 0 is a page that is not there");
    assert_eq!(one("zoned_log", vec![0; 512]).zones, None);
}

#[test]
fn identify_device_directly_and_behind_a_bridge() {
    // "ST8000AS0022" in words 27 to 32, the first character above; blanks behind.
    let mut data = identify(&[(69, 0x4021), (169, 1), (217, 5980)]);
    let mut model = *b"ST8000AS0022-1WL17Z                     ";
    model.chunks_mut(2).for_each(|pair| pair.swap(0, 1));
    data[54..94].copy_from_slice(&model);
    let expected = Said {
        model: Some("ST8000AS0022-1WL17Z".to_owned()),
        rpm: Some(5980),
        identify_zones: Some(Zones::HostAware),
        identify_trim: Some(true),
        ..Said::default()
    };
    assert_eq!(one("identify", data.clone()), expected);
    let mut page = vital(0x89, 572, &[]);
    page[60..].copy_from_slice(&data);
    assert_eq!(one("vpd_pg89", page.clone()), expected);
    let own = identify(&[(69, 2), (217, 7200)]);
    let both = read(&pages(&[("vpd_pg89", page), ("identify", own.clone())]));
    assert_eq!(both, one("identify", own), "the disk itself goes before its bridge");
    assert_eq!(one("identify", data[..511].to_vec()), Said::default());
    data[1] = 0x80;
    assert_eq!(one("identify", data), Said::default(), "that of an ATAPI device");
    let flash = Said { identify_trim: Some(false), solid_state: true, ..Said::default() };
    assert_eq!(one("identify", identify(&[(217, 1)])), flash);
    let zones = |word| one("identify", identify(&[(69, word)])).identify_zones;
    assert_eq!([0, 1, 2, 3].map(zones), [None, Some(Zones::HostAware), Some(Zones::DriveManaged), None]);
}

#[test]
fn what_is_said_as_json() {
    let text = serde_json::to_string(&one("vpd_pgb1", vital(0xb1, 64, &[(4, &[0x1c, 0x20]), (8, &[0x20])])));
    assert_eq!(text.unwrap(), r#"{"rpm":7200,"zbc_page":"drive-managed"}"#);
}

/// Of each page the bits that change what is said if one alone is turned: those of the fields in the standards and of what says which page it
/// is, and none beside them.
#[test]
fn no_other_bit_counts() {
    let changing = |name: &str, page: Vec<u8>| {
        let whole = one(name, page.clone());
        let turned = |bit: &usize| {
            let mut other = page.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            one(name, other) != whole
        };
        (0..8 * page.len()).filter(turned).map(|bit| (bit / 8, bit % 8)).collect::<Vec<_>>()
    };
    let all = |bytes: Range<usize>| bytes.flat_map(|byte| (0..8).map(move |bit| (byte, bit)));
    // One bit is a rate of 1, which is none, or of 0800h and more.
    let low_first =
        |byte| [0].map(|bit| (byte, bit)).into_iter().chain((3..8).map(move |bit| (byte + 1, bit)));
    let high_first = |byte| (3..8).map(move |bit| (byte, bit)).chain([(byte + 1, 0)]);
    assert_eq!(
        changing("vpd_pgb1", vital(0xb1, 64, &[])),
        high_first(4).chain([(8, 4), (8, 5)]).collect::<Vec<_>>()
    );
    // A page that is four bytes shorter has no such bytes.
    let of_space = all(1..2).chain([(3, 2), (5, 5), (5, 6), (5, 7), (6, 0), (6, 1)]);
    assert_eq!(changing("vpd_pgb2", vital(0xb2, 8, &[])), of_space.collect::<Vec<_>>());
    assert_eq!(changing("vpd_pgb0", vital(0xb0, 64, &[])), all(1..2).chain(all(20..24)).collect::<Vec<_>>());
    let of_zones = all(1..2).chain([(4, 0)]).chain(all(8..20));
    assert_eq!(changing("vpd_pgb6", vital(0xb6, 64, &[])), of_zones.collect::<Vec<_>>());
    // Words: no data at all and no ATA device, an `@` in the model's two characters, zones, TRIM, and the rate.
    let model = (27..47).flat_map(|word| [(2 * word, 6), (2 * word + 1, 6)]);
    let known =
        [(0, 6), (1, 7)].into_iter().chain(model).chain([(138, 0), (138, 1), (338, 0)]).chain(low_first(434));
    assert_eq!(changing("identify", identify(&[])), known.collect::<Vec<_>>());
}
