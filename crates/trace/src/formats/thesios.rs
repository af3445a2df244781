//! Google's synthesized storage traces (Thesios): requests to files, laid out on a drive.
//!
//! The layout is assumed: a file takes extents of fixed length (`extent`), each of which gets its place behind the last one
//! when it is first used. What crosses extents becomes several requests that arrive together.

use super::{Clock, Format};
use crate::fields::{Reason, need, read_or_write, separated, time, touched, uint};
use crate::layout::{Layout, hash};
use crate::reader::{LineFormat, Lines};
use crate::{Batch, Record};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, HostOp, Lba};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "thesios",
    aliases: &["google"],
    summary: "Google Thesios CSV: requests to files of a storage server, laid out in extents in order of first use",
    reference: "Phothilimthana et al., Thesios, ASPLOS'24; columns by the names of the header, which recurs in the middle of \
                published files. Times are Unix seconds. Reads that the server's memory served (cache_hit 1) do not reach \
                the drive and are passed over (level=server keeps them), as are requests of size 0. A read takes \
                disk_io_size_bytes where that is given, all else request_io_size_bytes.",
    params: &[
        Param::new("extent", Kind::Size, "1MiB")
            .doc("a file's space is given in extents of this size (assumed)"),
        Param::new("level", Kind::Choice(&["disk", "server"]), "disk")
            .doc("disk: what reaches the drive; server: hits of the server's memory too"),
    ],
    clock: Clock::World,
    sort_window: "10s",
    ..Format::stream(
        |sample| sample.lines().next().is_some_and(|l| places(l).is_some()).into(),
        |input, v, tolerance| Ok(Box::new(Lines::new(input, Thesios::new(v)?, tolerance))),
    )
};

const NAMES: [&[u8]; 7] = [
    b"filename",
    b"file_offset",
    b"op_type",
    b"cache_hit",
    b"request_io_size_bytes",
    b"disk_io_size_bytes",
    b"start_time",
];

struct Thesios {
    /// The column of each of [`NAMES`].
    places: Option<[usize; 7]>,
    layout: Layout,
    extent: u64,
    hits: bool,
}

impl Thesios {
    fn new(v: &Values) -> Result<Self, SpecError> {
        let extent = v.size("extent", Blocks::ZERO).0;
        if !(1..=1 << 24).contains(&extent) {
            return Err(v.bad("extent", "from 512B to 8GiB"));
        }
        let hits = v.text("level") == Some("server");
        Ok(Self { places: None, layout: Layout::new(extent), extent, hits })
    }

    /// Appends the parts of blocks `first..end` of the file, extent by extent.
    fn push(
        &mut self,
        file: u64,
        first: u64,
        end: u64,
        record: Record,
        out: &mut Batch,
    ) -> Result<(), Reason> {
        let mut at = first;
        while at < end {
            let (number, within) = (at / self.extent, at % self.extent);
            let n = (self.extent - within).min(end - at);
            let place = self.layout.place(file ^ hash(&number.to_le_bytes()), self.extent)?;
            out.push(Record { lba: Lba(place + within), blocks: n as u32, ..record });
            at += n;
        }
        Ok(())
    }
}

fn places(line: &[u8]) -> Option<[usize; 7]> {
    let fields: Vec<&[u8]> = separated(line, b',').map(<[u8]>::trim_ascii).collect();
    let mut places = [0; 7];
    for (place, name) in places.iter_mut().zip(NAMES) {
        *place = fields.iter().position(|f| *f == name)?;
    }
    Some(places)
}

impl LineFormat for Thesios {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if let Some(found) = places(line) {
            self.places = Some(found);
            return Ok(());
        }
        let Some(places) = self.places else {
            return Err("the first line must be the header, with filename, file_offset, op_type, …".into());
        };
        let field = |i: usize, name: &'static str| need(&mut separated(line, b',').skip(places[i]), name);
        let op = read_or_write(field(2, "op_type")?, "op_type")?;
        if op == HostOp::Read && !self.hits && field(3, "cache_hit")? == b"1" {
            return Ok(());
        }
        let asked = uint(field(4, "request_io_size_bytes")?, "request_io_size_bytes")?;
        let disk = uint(field(5, "disk_io_size_bytes")?, "disk_io_size_bytes")?;
        let size = if op == HostOp::Read && disk > 0 { disk } else { asked };
        if size == 0 {
            return Ok(());
        }
        if size > 1 << 32 {
            return Err("a request of more than 4 GiB".into());
        }
        let arrival = time(field(6, "start_time")?, 1_000_000_000, "start_time")?;
        let (first, blocks) = touched(uint(field(1, "file_offset")?, "file_offset")?, size)?;
        let file = hash(field(0, "filename")?);
        let record = Record { arrival, op, lba: first, blocks, device: 0, stream: 0, fua: false };
        self.push(file, first.0, first.0 + u64::from(blocks), record, out)
    }

    fn empty_hint(&self) -> Option<String> {
        Some("no request of the trace reaches the drive (level=server keeps what memory served)".to_owned())
    }
}
