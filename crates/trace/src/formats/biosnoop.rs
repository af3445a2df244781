//! What biosnoop prints: one line a block request, from BCC, libbpf-tools or bpftrace.

use super::Format;
use crate::devices::Names;
use crate::fields::{Reason, columns, extent, not, time, touched, uint};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::{HostOp, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "biosnoop",
    aliases: &["bpftrace"],
    summary: "biosnoop text (BCC, libbpf-tools): TIME(s) COMM PID DISK T SECTOR BYTES … LAT(ms)",
    reference: "biosnoop(8) of BCC. The header names the columns; a command's name may have blanks. A line is printed when its \
                request ends: it arrives LAT (with -Q also QUE) earlier, so lines are sorted within sort_window; what was \
                under way at time 0 arrives then. Sectors have 512 bytes. bpftrace's biosnoop.bt prints neither sector nor \
                size, so its output is no trace.",
    sort_window: "60s",
    ..Format::lines::<BioSnoop>(|sample| sample.lines().take(3).any(|l| header(l).is_some()).into())
};

/// Where a column is: counted from the front, or from behind where it follows the command's name.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    columns: usize,
    time: usize,
    unit_ns: u64,
    disk: usize,
    op: usize,
    sector: usize,
    bytes: usize,
    latency: Option<usize>,
    queued: Option<usize>,
}

#[derive(Default)]
struct BioSnoop {
    places: Option<Places>,
    names: Names,
}

fn header(line: &[u8]) -> Option<Places> {
    let names: Vec<&[u8]> = columns(line).collect();
    let find = |name: &[u8]| names.iter().position(|n| *n == name);
    let (time, unit_ns) = match (find(b"TIME(s)"), find(b"TIME(ms)")) {
        (Some(i), _) => (i, 1_000_000_000),
        (None, Some(i)) => (i, 1_000_000),
        _ => return None,
    };
    Some(Places {
        columns: names.len(),
        time,
        unit_ns,
        disk: find(b"DISK")?,
        op: find(b"T")?,
        sector: find(b"SECTOR")?,
        bytes: find(b"BYTES")?,
        latency: find(b"LAT(ms)"),
        queued: find(b"QUE(ms)"),
    })
}

impl LineFormat for BioSnoop {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if let Some(found) = header(line) {
            self.places = Some(found);
            return Ok(());
        }
        let Some(at) = self.places else {
            let what = "the header (TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)) must come first";
            // What the tool says before its header, such as 'Tracing block device I/O…', is passed over.
            return if line.starts_with(b"Tracing") { Ok(()) } else { Err(what.into()) };
        };
        let fields: Vec<&[u8]> = columns(line).collect();
        // Blanks in the command's name make more columns; those behind it are counted from the end.
        let more = fields.len().checked_sub(at.columns).ok_or("columns are missing")?;
        let field = |i: usize| fields[if i == at.time { i } else { i + more }];
        let wait =
            |place: Option<usize>| place.map_or(Ok(SimTime::ZERO), |i| time(field(i), 1_000_000, "LAT(ms)"));
        let ended = time(field(at.time), at.unit_ns, "TIME")?;
        let arrival = SimTime(ended.0.saturating_sub(wait(at.latency)?.0).saturating_sub(wait(at.queued)?.0));
        let op = match field(at.op) {
            t if t.contains(&b'R') => HostOp::Read,
            t if t.contains(&b'W') => HostOp::Write,
            t if t.contains(&b'D') => HostOp::Discard,
            t if t.contains(&b'F') => HostOp::Flush,
            other => return Err(not(other, "T", "R, W, D or F")),
        };
        let device = self.names.number(field(at.disk))?;
        let bytes = uint(field(at.bytes), "BYTES")?;
        if bytes == 0 || op == HostOp::Flush {
            // A flush, or a write that only flushes.
            let flush = Record {
                arrival,
                op: HostOp::Flush,
                lba: Default::default(),
                blocks: 0,
                device,
                stream: 0,
                fua: false,
            };
            if op != HostOp::Read && op != HostOp::Discard {
                out.push(flush);
            }
            return Ok(());
        }
        let (lba, blocks) = extent(uint(field(at.sector), "SECTOR")?, u64::from(touched(0, bytes)?.1))?;
        let fua = super::blkparse::fua(field(at.op));
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        self.names.name(device)
    }
}
