//! fio's I/O logs (`write_iolog`), versions 2 and 3.

use super::Format;
use crate::devices::Names;
use crate::fields::{Reason, columns, need, not, time, touched, uint};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::{HostOp, Lba, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "fio",
    aliases: &["iolog", "fio-iolog"],
    summary: "fio iolog 2 (file action offset length, with waits) and 3 (with time in microseconds)",
    reference: "fio(1), TRACE FILE FORMAT. Version 2 has no times but those of its wait lines, each counted from the one \
                before: all requests between two waits arrive at once. A file is a device.",
    ..Format::lines::<Fio>(|sample| sample.bytes.starts_with(b"fio version ").into())
};

#[derive(Default)]
struct Fio {
    names: Names,
    /// 0 until the first line has said it.
    version: u8,
    now: SimTime,
}

impl LineFormat for Fio {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if self.version == 0 {
            self.version = match line.trim_ascii() {
                b"fio version 2 iolog" => 2,
                b"fio version 3 iolog" => 3,
                _ => {
                    return Err(Reason::Borrowed(
                        "the first line must be 'fio version 2 iolog' or '… 3 iolog'",
                    ));
                }
            };
            return Ok(());
        }
        let f = &mut columns(line);
        if self.version == 3 {
            self.now = time(need(f, "timestamp")?, 1_000, "timestamp")?;
        }
        let file = need(f, "filename")?;
        let op = match need(f, "action")? {
            b"add" | b"open" | b"close" => return Ok(()),
            b"wait" => {
                let wait = time(need(f, "wait")?, 1_000, "wait")?;
                self.now = SimTime(self.now.0.saturating_add(wait.0));
                return Ok(());
            }
            b"read" => HostOp::Read,
            b"write" => HostOp::Write,
            b"trim" => HostOp::Discard,
            b"sync" | b"datasync" | b"sync_file_range" => HostOp::Flush,
            other => {
                return Err(not(
                    other,
                    "action",
                    "read, write, trim, sync, datasync, wait, add, open or close",
                ));
            }
        };
        let (lba, blocks) = match op {
            HostOp::Flush => (Lba(0), 0),
            _ => touched(uint(need(f, "offset")?, "offset")?, uint(need(f, "length")?, "length")?)?,
        };
        let device = self.names.number(file)?;
        out.push(Record { arrival: self.now, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        self.names.name(device)
    }
}
