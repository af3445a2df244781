//! SPC traces (UMass repository: Financial1/2, WebSearch).

use super::Format;
use crate::fields::{Reason, need, not, read_or_write, separated, time, touched, uint, uint32};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::BLOCK_BYTES;

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "spc",
    aliases: &["umass"],
    summary: "SPC (UMass Financial, WebSearch): ASU,LBA,Size,Opcode,Timestamp",
    reference: "Storage Performance Council trace file format 1.0.1; UMass Trace Repository. LBA in 512-byte blocks within \
                the ASU, size in bytes, time in seconds. Addresses repeat across ASUs: an ASU is a device; `concat` lays \
                them one behind the other.",
    ..Format::lines::<Spc>(|sample| sample.taken_by(Spc).into())
};

#[derive(Default)]
struct Spc;

impl LineFormat for Spc {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let f = &mut separated(line, b',');
        let device = uint32(need(f, "ASU")?, "ASU")?;
        let first = uint(need(f, "LBA")?, "LBA")?;
        let size = uint(need(f, "Size")?, "Size")?;
        let op = read_or_write(need(f, "Opcode")?, "Opcode")?;
        let arrival = time(need(f, "Timestamp")?, 1_000_000_000, "Timestamp")?;
        let offset = first.checked_mul(BLOCK_BYTES).ok_or_else(|| not(line, "LBA", "below 2^55"))?;
        let (lba, blocks) = touched(offset, size)?;
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        format!("asu{device}")
    }
}
