//! DiskSim's validation traces: requests replayed one at a time on a real drive.

use super::Format;
use crate::fields::{Reason, columns, extent, need, not, read_or_write, time, uint};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::SimTime;

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "disksim-validate",
    aliases: &["validate"],
    summary: "DiskSim validation: R|W Hit|Miss block blocks service_us gap_us, one request outstanding",
    reference: "DiskSim 4.0 validation traces. The recorded loop was closed; as an open trace a request arrives when the \
                drive had served the one before, plus its gap.",
    ..Format::lines::<Validate>(|sample| sample.taken_by(Validate::default()).into())
};

#[derive(Default)]
struct Validate {
    next: SimTime,
}

impl LineFormat for Validate {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let f = &mut columns(line);
        let op = read_or_write(need(f, "R|W")?, "R|W")?;
        let hit = need(f, "Hit|Miss")?;
        if !hit.iter().all(u8::is_ascii_alphabetic) {
            return Err(not(hit, "Hit|Miss", "a word"));
        }
        let first = uint(need(f, "block")?, "block")?;
        let (lba, blocks) = extent(first, uint(need(f, "blocks")?, "blocks")?)?;
        let service = time(need(f, "service")?, 1_000, "service")?;
        let gap = time(need(f, "gap")?, 1_000, "gap")?;
        out.push(Record { arrival: self.next, op, lba, blocks, device: 0, stream: 0, fua: false });
        self.next = SimTime(self.next.0.saturating_add(service.0).saturating_add(gap.0));
        Ok(())
    }
}
