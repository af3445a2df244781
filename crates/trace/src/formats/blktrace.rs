//! The kernel's binary block trace (`*.blktrace.N`, or `blkparse -d`).

use super::blkparse::{EVENT, device_name, hint, zone_place};
use super::{Clock, Format};
use crate::fields::{Reason, extent, touched};
use crate::reader::{RecordFormat, Records};
use crate::{Batch, Record};
use smrlab_units::{BLOCK_BYTES, HostOp, Lba, SimTime, ZoneAction};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    summary: "binary blktrace: the kernel's own records, either byte order",
    reference: "struct blk_io_trace of linux/blktrace_api.h, version 7, and blk_io_trace2, version 8, which has zone commands. One file holds one CPU's events: merge them with \
                `blkparse -d`, or give all files and merge by time. Times count from boot.",
    params: &[EVENT],
    clock: Clock::World,
    ..Format::stream(
        |sample| (sample.bytes.len() >= 48 && Numbers::of(sample.bytes).is_ok()).into(),
        |input, v, tolerance| {
            let format = BlkTrace { queued: v.text("event") == Some("queued"), other_events: 0 };
            Ok(Box::new(Records::new(input, format, tolerance)))
        },
    )
};

/// Upper 24 bits of the magic number; the lower 8 are the version.
const MAGIC: u32 = 0x6561_7400;
/// Records of 48 bytes; those with twice as many kinds of requests, of 64 bytes.
const VERSION: u32 = 7;
const VERSION_2: u32 = 8;
/// Bytes of a record of the second version.
const LENGTH_2: usize = 64;

mod action {
    pub(super) const QUEUED: u32 = 1;
    pub(super) const ISSUED: u32 = 7;
}

mod category {
    pub(super) const WRITE: u32 = 1 << 1;
    pub(super) const FLUSH: u32 = 1 << 2;
    /// A SCSI command passed through.
    pub(super) const PASSED: u32 = 1 << 9;
    pub(super) const NOTIFY: u32 = 1 << 10;
    pub(super) const DISCARD: u32 = 1 << 13;
    pub(super) const FUA: u32 = 1 << 15;
    pub(super) const ZONE_RESET_ALL: u32 = 1 << 18;
}

/// Categories of the second version, and what they stand for.
const ZONES: [(u32, HostOp); 6] = [
    (1 << 16, HostOp::Append),
    (1 << 17, HostOp::Zone(ZoneAction::Reset)),
    (category::ZONE_RESET_ALL, HostOp::Zone(ZoneAction::Reset)),
    (1 << 19, HostOp::Zone(ZoneAction::Finish)),
    (1 << 20, HostOp::Zone(ZoneAction::Open)),
    (1 << 21, HostOp::Zone(ZoneAction::Close)),
];

struct BlkTrace {
    queued: bool,
    other_events: u64,
}

/// A record's numbers, in the byte order that its magic number shows.
struct Numbers<'a> {
    bytes: &'a [u8],
    big: bool,
    second: bool,
}

impl<'a> Numbers<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, Reason> {
        let first: [u8; 4] = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let (little, large) = (u32::from_le_bytes(first), u32::from_be_bytes(first));
        let known = |m: u32| m == MAGIC | VERSION || m == MAGIC | VERSION_2;
        let of = |m: u32, big| Ok(Self { bytes, big, second: m == MAGIC | VERSION_2 });
        match (little, large) {
            (m, _) if known(m) => of(m, false),
            (_, m) if known(m) => of(m, true),
            (m, _) if m & !0xff == MAGIC => {
                Err(Reason::Owned(format!("version {} of the record is not known (7 and 8 are)", m & 0xff)))
            }
            _ => Err(Reason::Borrowed("no blktrace record begins here (wrong magic number)")),
        }
    }

    /// Action, categories and device.
    fn what(&self) -> (u32, u32, u32) {
        if self.second {
            let action = self.u64(32);
            return (action as u32 & 0xffff, (action >> 16) as u32, self.u32(40));
        }
        (self.u32(28) & 0xffff, self.u32(28) >> 16, self.u32(36))
    }

    fn u32(&self, at: usize) -> u32 {
        let b = [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]];
        if self.big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
    }

    fn u64(&self, at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(at)), u64::from(self.u32(at + 4)));
        if self.big { first << 32 | second } else { second << 32 | first }
    }
}

impl RecordFormat for BlkTrace {
    const HEAD: usize = 48;
    const SHOWN: usize = LENGTH_2;

    fn length(&self, head: &[u8]) -> Result<usize, Reason> {
        let numbers = Numbers::of(head)?;
        if numbers.second {
            // The length of the data that follows lies behind the common part.
            let lengths = head.get(48..52).map_or([0; 4], |b| [b[0], b[1], b[2], b[3]]);
            let data = if numbers.big {
                u16::from_be_bytes([lengths[2], lengths[3]])
            } else {
                u16::from_le_bytes([lengths[2], lengths[3]])
            };
            return Ok(LENGTH_2 + usize::from(data));
        }
        let last = numbers.u32(44);
        // The last two 16-bit numbers: error, and the length of the data that follows.
        let data = if numbers.big { last & 0xffff } else { last >> 16 };
        Ok(Self::HEAD + data as usize)
    }

    fn record(&mut self, record: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let n = Numbers::of(record)?;
        let ((action, categories, device), bytes) = (n.what(), u64::from(n.u32(24)));
        if categories & (category::NOTIFY | category::PASSED) != 0 {
            return Ok(());
        }
        let queued = match action {
            action::QUEUED => true,
            action::ISSUED => false,
            _ => return Ok(()),
        };
        if queued != self.queued {
            self.other_events += 1;
            return Ok(());
        }
        let zone = ZONES.iter().find(|(bit, _)| categories & bit != 0).map(|(_, op)| *op);
        let op = match categories {
            _ if zone.is_some() => zone.unwrap_or(HostOp::Append),
            c if c & category::DISCARD != 0 => HostOp::Discard,
            c if c & category::FLUSH != 0 && bytes == 0 => HostOp::Flush,
            c if c & category::WRITE != 0 => HostOp::Write,
            _ => HostOp::Read,
        };
        let (lba, blocks) = match op {
            HostOp::Flush => (Lba(0), 0),
            HostOp::Zone(_) => zone_place(n.u64(16), categories & category::ZONE_RESET_ALL != 0)?,
            _ => {
                let (_, blocks) = touched(0, bytes)?;
                extent(n.u64(16), u64::from(blocks))?
            }
        };
        debug_assert!(u64::from(blocks) * BLOCK_BYTES >= bytes || matches!(op, HostOp::Zone(_)));
        let fua = op == HostOp::Write && categories & category::FUA != 0;
        out.push(Record { arrival: SimTime(n.u64(8)), op, lba, blocks, device, stream: 0, fua });
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        device_name(device)
    }

    fn empty_hint(&self) -> Option<String> {
        hint(self.queued, self.other_events)
    }
}
