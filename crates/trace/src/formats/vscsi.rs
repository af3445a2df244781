//! CloudPhysics' binary VSCSI traces.

use super::{Clock, Format, Sample, Verdict};
use crate::fields::{Reason, extent, touched};
use crate::reader::{RecordFormat, Records};
use crate::{Batch, Record};
use smrlab_units::{HostOp, Lba, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "vscsi",
    aliases: &["cloudphysics"],
    summary: "CloudPhysics VSCSI binary, versions 1 (32-byte records) and 2 (40 bytes), little-endian",
    reference: "Waldspurger et al., SHARDS, FAST'15; record layout as published with libCacheSim. Length in bytes, address in \
                512-byte blocks, time in microseconds since boot. SCSI commands that move no data are passed over.",
    clock: Clock::World,
    ..Format::stream(detect, |mut input, _, tolerance| {
        input.fill(40)?;
        // A file is of one version throughout: the version's place in the first record tells.
        if version(input.window()) == Some(2) {
            Ok(Box::new(Records::new(input, Vscsi::<40>, tolerance)))
        } else {
            Ok(Box::new(Records::new(input, Vscsi::<32>, tolerance)))
        }
    })
};

/// Records of `N` bytes. Version 1: sn, len, nSG: u32; cmd, ver: u16; lbn, ts: u64.
/// Version 2: cmd, ver: u16; sn, len, nSG: u32; lbn, ts, rt: u64.
struct Vscsi<const N: usize>;

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| b[at + i]))
}

/// The version that the first record of a file shows.
fn version(b: &[u8]) -> Option<u16> {
    match b.len() {
        40.. if u16_at(b, 2) >> 8 == 2 => Some(2),
        32.. if u16_at(b, 14) >> 8 == 1 => Some(1),
        _ => None,
    }
}

/// SCSI operation codes that move data or matter for it; `None` for all others.
pub(super) fn operation(code: u16) -> Option<HostOp> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(HostOp::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e => Some(HostOp::Write),
        0x35 | 0x91 => Some(HostOp::Flush),
        _ => None,
    }
}

impl<const N: usize> RecordFormat for Vscsi<N> {
    const HEAD: usize = N;

    fn length(&self, _: &[u8]) -> Result<usize, Reason> {
        Ok(N)
    }

    fn record(&mut self, r: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let (cmd, ver, len) = if N == 32 { (12, 14, 4) } else { (0, 2, 8) };
        let wanted = if N == 32 { 1 } else { 2 };
        if u16_at(r, ver) >> 8 != wanted {
            return Err(Reason::Borrowed("the record's version differs from the first one's"));
        }
        let Some(op) = operation(u16_at(r, cmd)) else { return Ok(()) };
        let length = u64::from(u16_at(r, len)) | u64::from(u16_at(r, len + 2)) << 16;
        let (lba, blocks) = match op {
            HostOp::Flush => (Lba(0), 0),
            _ => extent(u64_at(r, 16), u64::from(touched(0, length)?.1))?,
        };
        let us = u64_at(r, 24);
        let arrival = SimTime(us.checked_mul(1_000).ok_or(Reason::Borrowed("the time is beyond 584 years"))?);
        out.push(Record { arrival, op, lba, blocks, device: 0, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, _: u32) -> String {
        "vd".to_owned()
    }
}

fn detect(sample: &Sample<'_>) -> Verdict {
    let b = sample.bytes;
    let known = match version(b) {
        Some(1) => operation(u16_at(b, 12)).is_some(),
        Some(_) => operation(u16_at(b, 0)).is_some(),
        None => false,
    };
    known.into()
}
