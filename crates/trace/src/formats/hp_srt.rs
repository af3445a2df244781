//! HP Labs' SRT traces (cello, hplajw).

use super::Format;
use crate::fields::{Reason, not, touched};
use crate::input::{Input, SAMPLE};
use crate::reader::{RecordFormat, Records};
use crate::{Batch, Record, Result, TraceError};
use smrlab_units::{HostOp, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "hp-srt",
    aliases: &["srt"],
    summary: "HP Labs SRT 1.3: a text header, then big-endian 56-byte records",
    reference: "Ruemmler & Wilkes, UNIX disk access patterns, USENIX Winter 1993; SRT version 1.3. Sectors have 256 bytes; \
                the device is the disk, its partition is not used (addresses count from the disk's start).",
    ..Format::stream(
        |sample| sample.bytes.starts_with(MAGIC).into(),
        |mut input, _, tolerance| {
            skip_header(&mut input)?;
            Ok(Box::new(Records::new(input, HpSrt, tolerance)))
        },
    )
};

/// Bytes in a sector of these disks.
const SECTOR: u64 = 256;
/// Length of a record of version 1.3, which is also its first number.
const LENGTH: usize = 56;
const MAGIC: &[u8] = b"$$TR_IOREC";

/// Where the records begin: the header is text, the first record begins with its length.
fn header_length(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, &(LENGTH as u32).to_be_bytes())
}

fn skip_header(input: &mut Input) -> Result<()> {
    input.fill(SAMPLE)?;
    match header_length(input.window()).filter(|_| input.window().starts_with(MAGIC)) {
        Some(n) => {
            input.consume(n);
            Ok(())
        }
        None => Err(TraceError::unreadable(
            input.file(),
            "it is no SRT 1.3 trace: it must begin with $$TR_IOREC and have 56-byte records",
        )),
    }
}

struct HpSrt;

/// The `i`-th 32-bit number of a record.
fn number(record: &[u8], i: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|k| record[4 * i + k]))
}

impl RecordFormat for HpSrt {
    const HEAD: usize = LENGTH;

    fn length(&self, head: &[u8]) -> Result<usize, Reason> {
        match number(head, 0) as usize {
            LENGTH => Ok(LENGTH),
            _ => Err(not(b"", "a record of another length", "SRT 1.3 (56 bytes)")),
        }
    }

    /// Numbers: 0 length, 2 seconds, 3 microseconds, 6 bytes, 7 sector, 8 device (bits 8-15: disk), 11 flags (bit 0: read).
    fn record(&mut self, record: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let arrival =
            SimTime(u64::from(number(record, 2)) * 1_000_000_000 + u64::from(number(record, 3)) * 1_000);
        let (lba, blocks) = touched(u64::from(number(record, 7)) * SECTOR, u64::from(number(record, 6)))?;
        let op = if number(record, 11) & 1 == 1 { HostOp::Read } else { HostOp::Write };
        let device = number(record, 8) >> 8 & 0xff;
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        format!("disk{device}")
    }
}
