//! FIU traces (SNIA IOTTA 390).

use super::Format;
use crate::devices::Names;
use crate::fields::{Reason, columns, extent, need, read_or_write, time, uint};
use crate::reader::LineFormat;
use crate::{Batch, Record};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "fiu",
    aliases: &["fiu-homes"],
    summary: "FIU: ns pid process LBA sectors R|W major minor md5",
    reference: "Koller & Rangaswami, I/O Deduplication, FAST'10; SNIA IOTTA 390. 512-byte sectors. A process' name may have \
                blanks: fields are counted from the end. A device is major:minor.",
    ..Format::lines::<Fiu>(|sample| sample.taken_by(Fiu::default()).into())
};

#[derive(Default)]
struct Fiu {
    names: Names,
}

impl LineFormat for Fiu {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let mut all = columns(line);
        let arrival = time(need(&mut all, "time")?, 1, "time")?;
        need(&mut all, "pid")?;
        need(&mut all, "process")?;
        // The last six of what is left, oldest first.
        let mut last: [&[u8]; 6] = [b""; 6];
        let mut count = 0;
        for field in all {
            last.rotate_left(1);
            last[5] = field;
            count += 1;
        }
        if count < 6 {
            return Err(Reason::Borrowed("there are fewer than 9 columns"));
        }
        let [first, sectors, op, major, minor, _] = last;
        let (lba, blocks) = extent(uint(first, "LBA")?, uint(sectors, "sectors")?)?;
        let op = read_or_write(op, "R|W")?;
        uint(major, "major")?;
        uint(minor, "minor")?;
        let device = self.names.pair(major, b':', minor)?;
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        self.names.name(device)
    }
}
