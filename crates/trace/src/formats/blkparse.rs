//! The text that blkparse prints from a Linux block trace.

use super::{Format, Sample, Verdict};
use crate::fields::{Reason, columns, extent, need, not, time, uint};
use crate::reader::{LineFormat, Lines};
use crate::{Batch, Record};
use smrlab_units::spec::{Kind, Param};
use smrlab_units::{HostOp, Lba, ZoneAction};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    summary: "blkparse text: device cpu sequence time pid action RWBS sector + sectors",
    reference: "blkparse(1), default output format. A request shows up in many events: `event` chooses the one that counts. \
                An F behind the W of RWBS is FUA. ZA is an append to a zone; ZR, ZF, ZO, ZC reset, finish, open and close the zone of the \
                sector, ZRA resets all. The summary at the end is passed over.",
    params: &[EVENT],
    ..Format::stream(detect, |input, v, tolerance| {
        Ok(Box::new(Lines::new(input, BlkParse::new(v.text("event") == Some("queued")), tolerance)))
    })
};

/// Which event of a request is its arrival; shared with the binary form.
pub(super) const EVENT: Param = Param::new("event", Kind::Choice(&["issued", "queued"]), "issued").doc(
    "the event that is the arrival: issued (D: what the drive was sent, after merging and scheduling) \
     or queued (Q: what the file system or program asked for)",
);

/// Bits of a device number's minor part, as in Linux' dev_t.
pub(super) const MINOR_BITS: u32 = 20;

/// `8,16` for a Linux device number.
pub(super) fn device_name(device: u32) -> String {
    format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1))
}

/// What to say where a trace has only events of the other kind.
pub(super) fn hint(queued: bool, other_events: u64) -> Option<String> {
    let (this, other) = if queued { ("queued", "issued") } else { ("issued", "queued") };
    (other_events > 0).then(|| {
        format!("the trace has no {this} request, but {other_events} {other} ones: use event={other}")
    })
}

struct BlkParse {
    queued: bool,
    other_events: u64,
    in_summary: bool,
}

impl BlkParse {
    fn new(queued: bool) -> Self {
        Self { queued, other_events: 0, in_summary: false }
    }
}

fn device(text: &[u8]) -> Option<u32> {
    let comma = text.iter().position(|b| *b == b',')?;
    let major = uint(&text[..comma], "major").ok().filter(|m| *m < 1 << (32 - MINOR_BITS))?;
    let minor = uint(&text[comma + 1..], "minor").ok().filter(|m| *m < 1 << MINOR_BITS)?;
    Some(((major << MINOR_BITS) | minor) as u32)
}

/// The operation of an RWBS field; `None` for what moves no data (`N`: commands that are passed through).
fn operation(rwbs: &[u8]) -> Option<HostOp> {
    if let Some(zone) = rwbs.strip_prefix(b"Z") {
        return zone.first().and_then(|letter| zone_operation(*letter));
    }
    // A leading F is a flush before the write; alone (or doubled, or with modifiers) it is a flush.
    rwbs.iter().find_map(|b| match b {
        b'R' => Some(HostOp::Read),
        b'W' => Some(HostOp::Write),
        b'D' => Some(HostOp::Discard),
        _ => None,
    })
}

/// What the letter behind the Z of zone commands stands for.
fn zone_operation(letter: u8) -> Option<HostOp> {
    Some(match letter {
        b'A' => HostOp::Append,
        b'C' => HostOp::Zone(ZoneAction::Close),
        b'F' => HostOp::Zone(ZoneAction::Finish),
        b'O' => HostOp::Zone(ZoneAction::Open),
        b'R' => HostOp::Zone(ZoneAction::Reset),
        _ => return None,
    })
}

/// The blocks of a zone command, which moves no data: one of its zone, or all of them.
pub(super) fn zone_place(sector: u64, all: bool) -> Result<(Lba, u32), Reason> {
    if all { Ok((Lba(0), Record::TO_END)) } else { extent(sector, 1) }
}

/// Whether a write is FUA, by its RWBS letters; shared with biosnoop: an F behind its letter. One before it asks for a flush first.
pub(super) fn fua(rwbs: &[u8]) -> bool {
    rwbs.iter().skip_while(|b| **b != b'W').any(|b| *b == b'F')
}

impl LineFormat for BlkParse {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let f = &mut columns(line);
        let first = need(f, "device")?;
        let Some(device) = device(first) else {
            self.in_summary |= first.starts_with(b"CPU") || first == b"Total" || first.starts_with(b"Input");
            return if self.in_summary { Ok(()) } else { Err(not(first, "device", "major,minor")) };
        };
        need(f, "cpu")?;
        need(f, "sequence")?;
        let at = need(f, "time")?;
        need(f, "pid")?;
        let queued = match need(f, "action")? {
            b"Q" => true,
            b"D" => false,
            _ => return Ok(()),
        };
        let rwbs = need(f, "RWBS")?;
        let (sector, plus, count) = (f.next(), f.next(), f.next());
        let place = match (sector, plus, count) {
            (Some(s), Some(b"+"), Some(n)) => Some((uint(s, "sector")?, uint(n, "sectors")?)),
            _ => None,
        };
        let (op, (lba, blocks)) = match (operation(rwbs), place) {
            (Some(op @ HostOp::Zone(_)), _) if rwbs.starts_with(b"ZRA") => (op, zone_place(0, true)?),
            (Some(op @ HostOp::Zone(_)), place) => {
                // Only kernels' own formats print a count of 0 behind the sector.
                let bare =
                    || sector.filter(|_| plus.is_none_or(|p| p != b"+")).and_then(|s| uint(s, "sector").ok());
                let first = place.map(|p| p.0).or_else(bare).ok_or_else(|| {
                    not(rwbs, "a zone command with RWBS", "complete: its sector is missing")
                })?;
                (op, zone_place(first, false)?)
            }
            (Some(op), Some((s, n))) if n > 0 => (op, extent(s, n)?),
            _ if rwbs.starts_with(b"F") => (HostOp::Flush, (Lba(0), 0)),
            (None, _) => return Ok(()),
            (Some(_), _) => {
                return Err(not(rwbs, "a request with RWBS", "complete: 'sector + sectors' is missing"));
            }
        };
        if queued != self.queued {
            self.other_events += 1;
            return Ok(());
        }
        let arrival = time(at, 1_000_000_000, "time")?;
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: fua(rwbs) });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        device_name(device)
    }

    fn empty_hint(&self) -> Option<String> {
        hint(self.queued, self.other_events)
    }
}

fn detect(sample: &Sample<'_>) -> Verdict {
    let event = |l: &[u8]| {
        let f: Vec<&[u8]> = columns(l).take(7).collect();
        f.len() >= 6 && device(f[0]).is_some() && uint(f[2], "sequence").is_ok() && f[3].contains(&b'.')
    };
    sample.all_lines(event).into()
}
