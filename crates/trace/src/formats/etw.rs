//! Disk events of Windows' event tracing, as `xperf -a dumper` prints them.

use super::{Format, Sample, Verdict};
use crate::devices::Devices;
use crate::fields::{Reason, need, number, separated, time, touched};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::{HostOp, Lba, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "etw",
    aliases: &["xperf", "snia-msps", "msps"],
    summary: "Windows ETW disk events (xperf dumper text): SNIA's Microsoft Production and Enterprise server traces",
    reference: "SNIA IOTTA 158 and 130 (Kavalanekar et al., Characterization of Storage Workload Traces from Production \
                Windows Servers, IISWC'08). The header between BeginHeader and EndHeader says where each event has its \
                columns; newer ones have a CPU column. Offsets and sizes are hexadecimal bytes. A line is written when its \
                request ends: it arrives ElapsedTime earlier (microseconds both), so lines are sorted within sort_window; \
                what was under way when recording began arrives at 0.",
    sort_window: "60s",
    ..Format::lines::<Etw>(detect)
};

/// Where an event has its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    time: usize,
    offset: usize,
    size: usize,
    elapsed: usize,
    disk: usize,
}

/// As in the published traces, for files whose header was cut off.
const PUBLISHED: Places = Places { time: 1, offset: 5, size: 6, elapsed: 7, disk: 8 };

struct Etw {
    /// Of reads and writes, of flushes.
    transfer: Places,
    flush: Places,
    devices: Devices,
    in_header: bool,
}

impl Default for Etw {
    fn default() -> Self {
        let flush = Places { elapsed: 5, disk: 6, ..PUBLISHED };
        Self { transfer: PUBLISHED, flush, devices: Devices::new("disk"), in_header: false }
    }
}

impl Etw {
    /// Takes in a line of the header.
    fn header(&mut self, line: &[u8]) {
        let names: Vec<&[u8]> = separated(line, b',').map(<[u8]>::trim_ascii).collect();
        let find = |name: &[u8], default: usize| names.iter().position(|n| *n == name).unwrap_or(default);
        let places = |known: Places| Places {
            time: find(b"TimeStamp", known.time),
            offset: find(b"ByteOffset", known.offset),
            size: find(b"IOSize", known.size),
            elapsed: find(b"ElapsedTime", known.elapsed),
            disk: find(b"DiskNum", known.disk),
        };
        match names.first() {
            Some(&b"DiskRead") => self.transfer = places(self.transfer),
            Some(&b"DiskFlush") => self.flush = places(self.flush),
            _ => {}
        }
    }
}

/// The `i`-th field of a line.
fn field<'a>(line: &'a [u8], i: usize, name: &'static str) -> Result<&'a [u8], Reason> {
    need(&mut separated(line, b',').skip(i), name).map(<[u8]>::trim_ascii)
}

impl LineFormat for Etw {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let event = field(line, 0, "event")?;
        match event {
            b"BeginHeader" => self.in_header = true,
            b"EndHeader" => self.in_header = false,
            _ if self.in_header => self.header(line),
            _ => {}
        }
        let op = match event {
            b"DiskRead" => HostOp::Read,
            b"DiskWrite" => HostOp::Write,
            b"DiskFlush" => HostOp::Flush,
            // Other events, and the start of requests, which says neither place nor size.
            _ => return Ok(()),
        };
        if self.in_header || field(line, 1, "TimeStamp")? == b"TimeStamp" {
            self.header(line);
            return Ok(());
        }
        let at = if op == HostOp::Flush { self.flush } else { self.transfer };
        let ended = time(field(line, at.time, "TimeStamp")?, 1_000, "TimeStamp")?;
        let took = time(field(line, at.elapsed, "ElapsedTime")?, 1_000, "ElapsedTime")?;
        let device = self.devices.number(field(line, at.disk, "DiskNum")?)?;
        let (lba, blocks) = match op {
            HostOp::Flush => (Lba(0), 0),
            _ => touched(
                number(field(line, at.offset, "ByteOffset")?, "ByteOffset")?,
                number(field(line, at.size, "IOSize")?, "IOSize")?,
            )?,
        };
        let arrival = SimTime(ended.0.saturating_sub(took.0));
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        self.devices.name(device)
    }

    fn empty_hint(&self) -> Option<String> {
        Some("the event trace has no DiskRead, DiskWrite or DiskFlush".to_owned())
    }
}

fn detect(sample: &Sample<'_>) -> Verdict {
    let begins = sample.lines().next().is_some_and(|l| l.trim_ascii() == b"BeginHeader");
    (begins || sample.taken_by(Etw::default())).into()
}
