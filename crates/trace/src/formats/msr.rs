//! MSR Cambridge block traces (SNIA IOTTA 388).

use super::{Clock, Format, Sample, Verdict};
use crate::devices::Names;
use crate::fields::{Reason, filetime, need, read_or_write, separated, touched, uint};
use crate::reader::LineFormat;
use crate::{Batch, Record};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "msr",
    aliases: &["msr-cambridge"],
    summary: "MSR Cambridge CSV: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    reference: "Narayanan et al., Write Off-Loading, FAST'08; SNIA IOTTA 388. Times are Windows filetime (100 ns), \
                offset and size bytes. Disk numbers repeat across hosts: a device is a host with a disk number.",
    clock: Clock::World,
    ..Format::lines::<Msr>(detect)
};

#[derive(Default)]
struct Msr {
    names: Names,
    header_passed: bool,
}

impl LineFormat for Msr {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if !self.header_passed {
            self.header_passed = true;
            if line.starts_with(b"Timestamp,") {
                return Ok(());
            }
        }
        let f = &mut separated(line, b',');
        let arrival = filetime(need(f, "Timestamp")?, "Timestamp")?;
        let host = need(f, "Hostname")?;
        let disk = need(f, "DiskNumber")?;
        let op = read_or_write(need(f, "Type")?, "Type")?;
        let offset = uint(need(f, "Offset")?, "Offset")?;
        let (lba, blocks) = touched(offset, uint(need(f, "Size")?, "Size")?)?;
        let device = self.names.pair(host, b'_', disk)?;
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        self.names.name(device)
    }
}

fn detect(sample: &Sample<'_>) -> Verdict {
    // A filetime of our days has 18 digits.
    let dated = sample.all_lines(|l| separated(l, b',').count() == 7);
    (dated && sample.taken_by(Msr::default())).into()
}
