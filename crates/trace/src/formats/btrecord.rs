//! What btrecord makes of a block trace for btreplay: bunches of requests.

use super::{Clock, Format, Sample, Verdict};
use crate::fields::{Reason, extent, touched};
use crate::reader::{RecordFormat, Records};
use crate::{Batch, Record};
use smrlab_units::{HostOp, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "btrecord",
    aliases: &["btreplay"],
    summary: "btrecord bundles (*.replay.N): requests in bunches that are sent together",
    reference: "btreplay of the blktrace tools, file version 1: a header of 32 bytes, then bunches of at most 512 requests, 24 \
                bytes each, little-endian. All requests of a bunch arrive at its time (nanoseconds since boot). One file \
                holds one CPU's requests: name the directory for all.",
    clock: Clock::World,
    ..Format::stream(detect, |input, _, tolerance| {
        Ok(Box::new(Records::new(input, BtRecord { begun: false }, tolerance)))
    })
};

/// Length of the file's header, of a bunch's, of a request.
const FILE: usize = 32;
const BUNCH: usize = 16;
const PACKET: usize = 24;
/// Requests of a bunch at most.
const PACKETS: u64 = 512;

struct BtRecord {
    /// The file's header has been passed.
    begun: bool,
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| b[at + i]))
}

/// Major version 1, of three bytes.
fn version_1(b: &[u8]) -> bool {
    u64_at(b, 0) >> 16 == 1
}

impl RecordFormat for BtRecord {
    const HEAD: usize = BUNCH;

    fn length(&self, head: &[u8]) -> Result<usize, Reason> {
        if !self.begun {
            return if version_1(head) {
                Ok(FILE)
            } else {
                Err("no btrecord file of version 1 begins here".into())
            };
        }
        match u64_at(head, 0) {
            n @ 1..=PACKETS => Ok(BUNCH + n as usize * PACKET),
            n => Err(Reason::Owned(format!("a bunch of {n} requests: from 1 to {PACKETS}"))),
        }
    }

    fn record(&mut self, r: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if !self.begun {
            self.begun = true;
            return Ok(());
        }
        let arrival = SimTime(u64_at(r, 8));
        for packet in r[BUNCH..].chunks_exact(PACKET) {
            let op = match u32::from_le_bytes(std::array::from_fn(|i| packet[16 + i])) {
                0 => HostOp::Write,
                1 => HostOp::Read,
                other => {
                    return Err(Reason::Owned(format!(
                        "direction {other} is neither 0 (write) nor 1 (read)"
                    )));
                }
            };
            let blocks = touched(0, u64_at(packet, 8))?.1;
            let (lba, blocks) = extent(u64_at(packet, 0), u64::from(blocks))?;
            out.push(Record { arrival, op, lba, blocks, device: 0, stream: 0, fua: false });
        }
        Ok(())
    }
}

fn detect(sample: &Sample<'_>) -> Verdict {
    let b = sample.bytes;
    let fits = b.len() >= FILE + BUNCH + PACKET
        && version_1(b)
        && (1..=PACKETS).contains(&u64_at(b, FILE))
        && u64_at(b, 24) >= u64_at(b, 16)
        && u64_at(b, FILE + 8) >= u64_at(b, 8);
    fits.into()
}
