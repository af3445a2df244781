//! What a disk says of itself, in its own pages: nothing is measured, nothing is written.
//!
//! Parsers only; [`ask`](crate::ask) has the commands. Fields are those of SPC-5 (INQUIRY), SBC-4 (vital product data
//! B0h, B1h, B2h), ZBC-2 (B6h), SAT-4 (89h), ACS-4 (IDENTIFY DEVICE) and ZAC-2 (the log page of zoned devices).

use crate::number;
use serde::Serialize;
use smrlab_units::{BLOCK_BYTES, Blocks, Lba, Zone, ZoneCondition, ZoneKind};
use std::collections::BTreeMap;

/// Pages as bytes, each under the name that the kernel gives its file: `inquiry`, `vpd_pgb1`; `identify` and `zoned_log` are those
/// of ATA.
pub type Pages = BTreeMap<String, Vec<u8>>;

/// Who keeps the zones of a shingled drive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zones {
    /// The drive does it for hosts that do not.
    HostAware,
    /// The drive alone.
    DriveManaged,
}

/// What a zoned drive says of its zones; absent is what it does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ZoneLimits {
    /// Reads behind a write pointer are answered.
    pub unrestricted_reads: bool,
    /// How many zones that prefer sequential writes are best open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_open: Option<u32>,
    /// How many of them are best written out of order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_unordered: Option<u32>,
    /// How many zones that require sequential writes may be open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_open: Option<u32>,
}

/// What a disk says of itself; absent is what it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The model in IDENTIFY DEVICE, or vendor and product of INQUIRY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The device type of INQUIRY, where it is that of a host-managed drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inquiry_type: Option<&'static str>,
    /// Nominal revolutions a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u16>,
    /// Whether it is said to have no medium that turns.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub solid_state: bool,
    /// ZONED in the page of block device characteristics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zbc_page: Option<Zones>,
    /// Zones in IDENTIFY DEVICE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identify_zones: Option<Zones>,
    /// The page of zoned block devices, or the log page of zoned ATA devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneLimits>,
    /// TRIM in IDENTIFY DEVICE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identify_trim: Option<bool>,
    /// UNMAP, or WRITE SAME that unmaps, in the page of logical block provisioning; UNMAP in that of block limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmap: Option<bool>,
    /// How blocks get their space, in the page of logical block provisioning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<&'static str>,
}

/// What the pages say. Those that are no such pages, or end before a field, do not say it.
pub fn read(pages: &Pages) -> Said {
    let page = |name: &str| pages.get(name).map(Vec::as_slice);
    let vital = |code: u8| vital_page(page(&format!("vpd_pg{code:02x}"))?, code);
    let mut said = Said::default();
    if let Some(inquiry) = page("inquiry") {
        said.inquiry(inquiry);
    }
    if let Some(b1) = vital(0xb1) {
        said.characteristics(b1);
    }
    said.unmap = unmaps(vital(0xb0), vital(0xb2));
    said.provisioning = vital(0xb2).and_then(provisioning);
    said.zones = vital(0xb6).and_then(zone_page);
    let behind = vital(0x89).and_then(|page| page.get(60..));
    if let Some(identify) = page("identify").or(behind).and_then(Identify::of) {
        said.identify(&identify);
    }
    said.zones = said.zones.or_else(|| page("zoned_log").and_then(zone_log));
    said
}

impl Said {
    fn inquiry(&mut self, data: &[u8]) {
        // Bits 7 to 5 of byte 0: whether there is such a device at all.
        if data.first() == Some(&0x14) {
            self.inquiry_type = Some("14h: host-managed zoned block device");
        }
        let [vendor, product] =
            [data.get(8..16), data.get(16..32)].map(|part| part.map(text).unwrap_or_default());
        // ATA: the vendor that translations of ATA disks give.
        let vendor = if vendor == "ATA" { String::new() } else { vendor };
        self.model = Some(format!("{vendor} {product}").trim().to_owned()).filter(|model| !model.is_empty());
    }

    fn characteristics(&mut self, page: &[u8]) {
        if let Some(rate) = page.get(4..6) {
            self.rate(u16::from_be_bytes([rate[0], rate[1]]));
        }
        self.zbc_page = page.get(8).and_then(|byte| zones(byte >> 4));
    }

    fn identify(&mut self, identify: &Identify<'_>) {
        if let Some(model) = identify.model() {
            self.model = Some(model);
        }
        self.rate(identify.word(217));
        self.identify_zones = zones(identify.word(69) as u8);
        self.identify_trim = Some(identify.word(169) & 1 == 1);
    }

    /// The medium's rotation rate, the same in SBC-4 and in ACS-4: 0001h is none, 0401h to FFFEh revolutions a minute.
    fn rate(&mut self, rate: u16) {
        match rate {
            1 => self.solid_state = true,
            0x0401..=0xfffe => self.rpm = Some(rate),
            _ => {}
        }
    }
}

/// A page of vital product data, as long as it says that it is; `None`: it is another.
fn vital_page(data: &[u8], code: u8) -> Option<&[u8]> {
    let length = 4 + usize::from(u16::from_be_bytes([*data.get(2)?, *data.get(3)?]));
    (data[1] == code).then(|| &data[..length.min(data.len())])
}

/// Two bits: 01b and 10b; the others are not reported, or reserved.
fn zones(bits: u8) -> Option<Zones> {
    match bits & 3 {
        1 => Some(Zones::HostAware),
        2 => Some(Zones::DriveManaged),
        _ => None,
    }
}

/// LBPU, LBPWS, LBPWS10 of the page of logical block provisioning, or the most blocks of an UNMAP in block limits.
fn unmaps(limits: Option<&[u8]>, provisioning: Option<&[u8]>) -> Option<bool> {
    let by_bits = provisioning.and_then(|page| page.get(5)).map(|byte| byte >> 5 != 0);
    let by_limit = || limits.and_then(|page| page.get(20..24)).map(|most| most != [0; 4]);
    by_bits.or_else(by_limit)
}

fn provisioning(page: &[u8]) -> Option<&'static str> {
    match page.get(6)? & 7 {
        1 => Some("resource"),
        2 => Some("thin"),
        _ => None,
    }
}

fn zone_page(page: &[u8]) -> Option<ZoneLimits> {
    let count = |at: usize| {
        let bytes = page.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?)).filter(|n| *n != u32::MAX)
    };
    Some(ZoneLimits {
        unrestricted_reads: page.get(4)? & 1 == 1,
        optimal_open: count(8),
        optimal_unordered: count(12),
        most_open: count(16),
    })
}

/// Page 09h of the log of identify data: words of eight bytes, each with a bit that says that it is valid.
fn zone_log(page: &[u8]) -> Option<ZoneLimits> {
    let field = |at: usize| {
        let value = u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?);
        (value >> 63 == 1).then_some(value)
    };
    field(0).filter(|header| header >> 16 & 0xff == 0x09 && header & 0xffff != 0)?;
    let count = |at| field(at).map(|n| n as u32).filter(|n| *n != u32::MAX);
    Some(ZoneLimits {
        unrestricted_reads: field(8).is_some_and(|capabilities| capabilities & 1 == 1),
        optimal_open: count(24),
        optimal_unordered: count(32),
        most_open: count(40),
    })
}

/// Bytes of a logical block in an answer to READ CAPACITY(10), where it is whole blocks of 512.
pub fn logical_block(answer: &[u8]) -> Option<u32> {
    let bytes = u32::from_be_bytes(answer.get(4..8)?.try_into().ok()?);
    (bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES as u32)).then_some(bytes)
}

/// The zones in an answer to REPORT ZONES of a disk with logical blocks of `logical` bytes; those of a type or condition that no standard has
/// are left out.
pub fn reported_zones(answer: &[u8], logical: u32) -> Vec<Zone> {
    let length = answer.get(..4).map_or(0, |l| number(l, 0, 4) as usize);
    let described = answer.get(64..).unwrap_or_default().chunks_exact(64).take(length / 64);
    let ratio = u64::from(logical) / BLOCK_BYTES;
    described.filter_map(|zone| reported_zone(zone, ratio)).collect()
}

fn reported_zone(data: &[u8], ratio: u64) -> Option<Zone> {
    use ZoneCondition as C;
    use ZoneKind as K;
    let kinds = [K::Conventional, K::SequentialRequired, K::SequentialPreferred, K::Gap];
    let conditions = [
        C::NotWritePointer,
        C::Empty,
        C::ImplicitlyOpen,
        C::ExplicitlyOpen,
        C::Closed,
        C::ReadOnly,
        C::Full,
        C::Offline,
    ];
    let blocks = |at| number(data, at, 8).checked_mul(ratio);
    let condition = conditions.into_iter().find(|c| *c as u8 == data[1] >> 4)?;
    let valid = condition.is_open() || matches!(condition, C::Empty | C::Closed);
    Some(Zone {
        start: Lba(blocks(16)?),
        blocks: Blocks(blocks(8)?),
        kind: kinds.into_iter().find(|k| *k as u8 == data[0] & 0xf)?,
        condition,
        pointer: if valid { Some(Lba(blocks(24)?)) } else { None },
        non_sequential: data[1] & 2 != 0,
    })
}

/// An answer to IDENTIFY DEVICE: 256 words.
pub struct Identify<'a>(&'a [u8]);

impl<'a> Identify<'a> {
    /// `None`: it is too short, or that of no ATA device.
    pub fn of(data: &'a [u8]) -> Option<Self> {
        let data = data.get(..512)?;
        (data[1] >> 7 == 0 && data.iter().any(|byte| *byte != 0)).then_some(Self(data))
    }

    /// Word `n` of 0 to 255.
    pub fn word(&self, n: usize) -> u16 {
        u16::from_le_bytes([self.0[2 * n], self.0[2 * n + 1]])
    }

    /// Whether words 82 to 84 (`n` is 83 or 84) and 85 to 87 (`n` is 87) are valid.
    pub fn valid(&self, n: usize) -> bool {
        self.word(n) >> 14 == 1
    }

    /// Words 27 to 46: two characters each, the first one in the upper byte.
    fn model(&self) -> Option<String> {
        let bytes: Vec<u8> = (27..=46).flat_map(|n| self.word(n).to_be_bytes()).collect();
        Some(text(&bytes)).filter(|model| !model.is_empty())
    }
}

/// ASCII that is filled up with blanks.
fn text(bytes: &[u8]) -> String {
    let printed = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' };
    bytes.iter().map(printed).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests;
