//! libCacheSim's oracleGeneral: requests to objects, laid out on a drive.

use super::{Clock, Format, Sample, Verdict};
use crate::fields::{Reason, extent};
use crate::layout::{Layout, hash};
use crate::reader::{RecordFormat, Records};
use crate::{Batch, Record};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "oracleGeneral",
    aliases: &["oraclegeneral", "libcachesim"],
    summary: "libCacheSim oracleGeneral: records of 24 bytes (seconds, object, size, next access), all reads",
    reference: "libCacheSim's documentation of its binary traces: little-endian u32 time in whole seconds, u64 object, u32 size \
                in bytes, i64 next access, without gaps. The format has no operation: all are reads. Objects have no place: \
                `object` says how they get one.",
    params: &[
        Param::new("object", Kind::Choice(&["place", "block"]), "place").doc(
            "place: each object lies behind the one first used before it; block: its number is a block \
             address of `unit` (for traces made from block traces without hashing)",
        ),
        Param::new("unit", Kind::Size, "4KiB")
            .doc("places begin and end at multiples of this; with object=block the size of an address"),
    ],
    clock: Clock::World,
    ..Format::stream(detect, |input, v, tolerance| {
        Ok(Box::new(Records::new(input, OracleGeneral::new(v)?, tolerance)))
    })
};

const BYTES: usize = 24;

struct OracleGeneral {
    layout: Option<Layout>,
    unit: u64,
}

impl OracleGeneral {
    fn new(v: &Values) -> Result<Self, SpecError> {
        let unit = v.size("unit", Blocks::ZERO).0;
        if !(1..=1 << 21).contains(&unit) {
            return Err(v.bad("unit", "from 512B to 1GiB"));
        }
        let layout = (v.text("object") != Some("block")).then(|| Layout::new(unit));
        Ok(Self { layout, unit })
    }
}

/// Seconds, object, bytes, next access.
fn parts(r: &[u8]) -> (u32, u64, u32, i64) {
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| r[at + i]));
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| r[at + i]));
    (u32_at(0), u64_at(4), u32_at(12), u64_at(16) as i64)
}

impl RecordFormat for OracleGeneral {
    const HEAD: usize = BYTES;

    fn length(&self, _: &[u8]) -> Result<usize, Reason> {
        Ok(BYTES)
    }

    fn record(&mut self, r: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let (seconds, object, bytes, _) = parts(r);
        // Empty objects take no space.
        let blocks = u64::from(bytes).div_ceil(BLOCK_BYTES);
        if blocks == 0 {
            return Ok(());
        }
        let first = match &mut self.layout {
            Some(layout) => layout.place(hash(&object.to_le_bytes()), blocks)?,
            None => object
                .checked_mul(self.unit)
                .ok_or("the object's number is no block address: object=place")?,
        };
        let (lba, blocks) = extent(first, blocks)?;
        let arrival = SimTime(u64::from(seconds) * 1_000_000_000);
        out.push(Record { arrival, op: HostOp::Read, lba, blocks, device: 0, stream: 0, fua: false });
        Ok(())
    }
}

/// There is no magic number: ten records whose times never fall and whose next accesses lie ahead.
fn detect(sample: &Sample<'_>) -> Verdict {
    let records = || sample.bytes.chunks_exact(BYTES).take(50).map(parts);
    let rising = records().zip(records().skip(1)).all(|(a, b)| a.0 <= b.0 && b.0 - a.0 < 1 << 24);
    let ahead = records().enumerate().all(|(i, (_, _, bytes, next))| {
        bytes < 1 << 31 && (next == -1 || next == i64::MAX || (next > i as i64 && next < 1 << 48))
    });
    (records().count() >= 10 && rising && ahead).into()
}
