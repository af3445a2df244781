//! INQUIRY: what a disk is, and its pages of vital product data.

use crate::blocks::{MOST_COMPARED, MOST_UNMAPPED};
use crate::command::{Answer, Call};
use crate::{Facts, Kind, MOST_BYTES, Sense};

const VENDOR: &[u8; 8] = b"SMRLAB  ";
const REVISION: &[u8; 4] = b"0.1 ";
/// SAM-5, SPC-4, SBC-3, iSCSI, each with no version claimed; ZBC is added by zoned drives.
const STANDARDS: [u16; 4] = [0x00a0, 0x0460, 0x04c0, 0x0960];
const ZBC: u16 = 0x0620;

pub(crate) fn inquiry(call: &Call<'_>) -> Answer {
    let facts = call.facts();
    let vital = call.byte(1) & 1 != 0;
    match (vital, call.byte(2)) {
        (false, 0) => Ok(standard(facts)),
        (true, code) => match page(facts, code) {
            Some(body) => {
                let mut data = vec![kind(facts), code];
                data.extend((body.len() as u16).to_be_bytes());
                data.extend(body);
                Ok(data)
            }
            None => Err(Sense::at_field(2)),
        },
        (false, _) => Err(Sense::at_field(2)),
    }
}

/// The peripheral device type.
fn kind(facts: &Facts) -> u8 {
    if matches!(facts.kind, Kind::HostManaged(_)) { 0x14 } else { 0x00 }
}

fn standard(facts: &Facts) -> Vec<u8> {
    let mut data = vec![0; 96];
    data[0] = kind(facts);
    // SPC-4; HISUP and response format 2; 91 bytes follow; CMDQUE.
    (data[2], data[3], data[4], data[7]) = (0x06, 0x12, 91, 0x02);
    data[8..16].copy_from_slice(VENDOR);
    data[16..32].copy_from_slice(&padded(&facts.product, 16));
    data[32..36].copy_from_slice(REVISION);
    let zbc = facts.zones().map(|_| ZBC);
    for (i, standard) in STANDARDS.into_iter().chain(zbc).enumerate() {
        data[58 + 2 * i..60 + 2 * i].copy_from_slice(&standard.to_be_bytes());
    }
    data
}

/// Printable ASCII, filled up with blanks.
fn padded(text: &str, length: usize) -> Vec<u8> {
    let printable = text.bytes().map(|b| if b.is_ascii_graphic() { b } else { b' ' });
    printable.chain(std::iter::repeat(b' ')).take(length).collect()
}

/// What follows the four bytes of a page's header.
fn page(facts: &Facts, code: u8) -> Option<Vec<u8>> {
    match code {
        0x00 => {
            let zoned = facts.zones().map(|_| 0xb6);
            Some([0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2].into_iter().chain(zoned).collect())
        }
        0x80 => Some(padded(&facts.serial, facts.serial.len().clamp(1, 64))),
        0x83 => Some(identification(facts)),
        0x86 => Some(extended()),
        0xb0 => Some(limits(facts)),
        0xb1 => Some(characteristics(facts)),
        0xb2 => Some(provisioning(facts)),
        0xb6 => zoned(facts),
        _ => None,
    }
}

/// A designator of vendor, product and serial number, and a locally assigned name made of it.
fn identification(facts: &Facts) -> Vec<u8> {
    let mut text = VENDOR.to_vec();
    text.extend(padded(&facts.product, 16));
    text.extend(padded(&facts.serial, facts.serial.len().clamp(1, 64)));
    // FNV-1a; the upper four bits say that the name is locally assigned.
    let hash =
        text.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    let mut data = vec![0x02, 0x01, 0, text.len() as u8];
    data.extend(text);
    data.extend([0x01, 0x03, 0, 8]);
    data.extend((hash >> 4 | 0x3 << 60).to_be_bytes());
    data
}

/// Extended INQUIRY data: all kinds of tasks, a write cache that is empty after a power loss, and how long sense data are at most.
fn extended() -> Vec<u8> {
    let mut data = vec![0; 60];
    // HEADSUP, ORDSUP, SIMPSUP; V_SUP.
    (data[1], data[2], data[9]) = (0x07, 0x01, Sense::LONGEST);
    data
}

fn limits(facts: &Facts) -> Vec<u8> {
    let mut data = vec![0; 60];
    let most = MOST_BYTES / u64::from(facts.logical);
    let grain = facts.physical / facts.logical;
    // WSNZ.
    (data[0], data[1]) = (0x01, MOST_COMPARED);
    data[2..4].copy_from_slice(&(grain as u16).to_be_bytes());
    data[4..8].copy_from_slice(&(most as u32).to_be_bytes());
    if facts.discards {
        data[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        data[20..24].copy_from_slice(&MOST_UNMAPPED.to_be_bytes());
        data[24..28].copy_from_slice(&grain.to_be_bytes());
    }
    data[32..40].copy_from_slice(&most.to_be_bytes());
    data
}

fn characteristics(facts: &Facts) -> Vec<u8> {
    let mut data = vec![0; 60];
    data[0..2].copy_from_slice(&facts.rpm.unwrap_or(0).to_be_bytes());
    // A form factor of 3.5 inches. WABEREQ where blocks are erased by SANITIZE: they can be read behind it.
    data[3] = 0x02 | if facts.discards && facts.zones().is_none() { 0x40 } else { 0 };
    // ZONED.
    data[4] = match facts.kind {
        Kind::HostAware(_) => 0x10,
        Kind::DriveManaged => 0x20,
        Kind::Conventional | Kind::HostManaged(_) => 0,
    };
    data
}

fn provisioning(facts: &Facts) -> Vec<u8> {
    // UNMAP and both WRITE SAME free blocks, which read as zeroes then; thin provisioning.
    if facts.discards { vec![0, 0xe4, 0x02, 0] } else { vec![0; 4] }
}

fn zoned(facts: &Facts) -> Option<Vec<u8>> {
    let limits = facts.zones()?;
    let mut data = vec![0; 60];
    data[0] = u8::from(limits.unrestricted_reads);
    // What is recommended of zones that prefer sequential writes; all ones where there are none.
    data[4..12].fill(0xff);
    if let Some(preferred) = limits.preferred {
        data[4..8].copy_from_slice(&preferred.open.to_be_bytes());
        data[8..12].copy_from_slice(&preferred.non_sequential.to_be_bytes());
    }
    data[12..16].copy_from_slice(&limits.most_open.unwrap_or(u32::MAX).to_be_bytes());
    if let Some(pitch) = limits.pitch {
        // Zones begin at multiples of a number that is larger than their length: gap zones lie between them.
        data[19] = 0x08;
        data[20..28].copy_from_slice(&(pitch.0 / facts.ratio()).to_be_bytes());
    }
    Some(data)
}
