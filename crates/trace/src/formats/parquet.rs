//! The fast store: Parquet with typed columns, sorted by arrival.
//!
//! | column | physical type | meaning |
//! |---|---|---|
//! | `arrival_ns` | INT64 | arrival in nanoseconds, never falling |
//! | `op` | INT32 (UINT_8) | 0 read, 1 write, 2 flush, 3 discard, 4 append, 5 to 8 close, finish, open, reset zones |
//! | `lba` | INT64 | first block of 512 bytes |
//! | `blocks` | INT32 | length in blocks; 0 for a flush only; of a zone command 4294967295: up to the end |
//! | `device` | INT32 | optional, 0 where the column is missing |
//! | `stream` | INT32 | optional, 0 where the column is missing |
//! | `fua` | BOOLEAN | optional, false where the column is missing: a write that is to be on the medium before it is answered |
//!
//! The reader also takes INT64 for INT32 and the reverse, either (0 and 1) for BOOLEAN, and nullable columns without nulls, as other tools write them.
//! Key-value metadata: `smrlab.trace` = version of this schema, `smrlab.sorted` = `arrival_ns`, `smrlab.source` = what it
//! was made of, `smrlab.devices` = `number=name` a line.

use super::{Clock, Format, Open};
use crate::{Batch, Result, TraceError, TraceSource, remote};
use bytes::Bytes;
use parquet::basic::ConvertedType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use smrlab_units::{HostOp, Lba, SimTime};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "parquet",
    aliases: &["pq"],
    summary: "Parquet with the columns arrival_ns, op, lba, blocks and optionally device, stream, fua: the fast store",
    reference: "This project's own schema; `smrlab trace convert` writes it. op: 0 read, 1 write, 2 flush, 3 discard, 4 append, 5 to 8 \
                zone-close, zone-finish, zone-open, zone-reset; \
                lba and blocks in 512-byte blocks; fua: true or false, for writes; sorted by arrival.",
    params: &[],
    clock: Clock::Trace,
    sort_window: "0",
    detect: |sample| sample.bytes.starts_with(b"PAR1").into(),
    open: Open::File(|path, _| Ok(Box::new(ParquetSource::open(path)?))),
};

/// The columns, in the order of the schema.
pub(crate) const COLUMNS: [&str; 7] = ["arrival_ns", "op", "lba", "blocks", "device", "stream", "fua"];
/// Columns from this one on may be missing.
const OPTIONAL_FROM: usize = 4;

/// Reads a Parquet trace row group by row group, in memory of a few pages a column.
pub struct ParquetSource {
    file: String,
    reader: Box<dyn FileReader>,
    places: [Option<usize>; 7],
    columns: [Column; 7],
    group: usize,
    left_in_group: usize,
    rows_read: u64,
    rows_total: u64,
    last: SimTime,
    devices: BTreeMap<u32, String>,
}

/// A column of the current row group.
enum Column {
    Absent,
    I32(Typed<Int32Type>),
    I64(Typed<Int64Type>),
    Bool(Typed<BoolType>),
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    levels: Vec<i16>,
    nullable: bool,
    /// Bits that count: all, or the lower 32 of an unsigned 32-bit column.
    mask: i64,
}

impl<T: DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>, column: &ColumnDescriptor) -> Self {
        let unsigned = column.converted_type() == ConvertedType::UINT_32;
        let mask = if unsigned { i64::from(u32::MAX) } else { -1 };
        Self { reader, values: Vec::new(), levels: Vec::new(), nullable: column.max_def_level() > 0, mask }
    }

    /// Reads exactly `n` values; `false` when there are nulls among them or too few.
    fn read(&mut self, n: usize) -> Result<bool, ParquetError> {
        self.values.clear();
        while self.values.len() < n {
            self.levels.clear();
            let levels = self.nullable.then_some(&mut self.levels);
            let (records, values, _) =
                self.reader.read_records(n - self.values.len(), levels, None, &mut self.values)?;
            if records == 0 || records != values {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Column {
    fn read(&mut self, n: usize) -> Result<bool, ParquetError> {
        match self {
            Self::Absent => Ok(true),
            Self::I32(c) => c.read(n),
            Self::I64(c) => c.read(n),
            Self::Bool(c) => c.read(n),
        }
    }

    /// The values through `convert`, into `out`; the bitwise or of all, which tells negative and too large ones.
    fn convert<V: Clone>(&self, n: usize, out: &mut Vec<V>, convert: impl Fn(i64) -> V) -> i64 {
        let mut seen = 0i64;
        match self {
            Self::Absent => out.resize(n, convert(0)),
            Self::I32(c) => out.extend(c.values.iter().map(|v| {
                let v = i64::from(*v) & c.mask;
                seen |= v;
                convert(v)
            })),
            Self::I64(c) => out.extend(c.values.iter().map(|v| {
                seen |= *v;
                convert(*v)
            })),
            Self::Bool(c) => out.extend(c.values.iter().map(|v| convert(i64::from(*v)))),
        }
        seen
    }

    /// As [`convert`](Self::convert), of the numbers of operations; -1 where one is none.
    fn operations(&self, n: usize, out: &mut Vec<HostOp>) -> i64 {
        let seen = self.convert(n, out, |v| HostOp::ALL[(v & 15).min(LAST_OP) as usize]);
        let mut numbers = Vec::new();
        // The last operation's number has a bit that no smaller one has: only with it can others be larger.
        if seen > 0 && seen & LAST_OP != 0 {
            self.convert(n, &mut numbers, |v| v);
        }
        if numbers.into_iter().any(|v| v > LAST_OP) { -1 } else { seen }
    }
}

impl ParquetSource {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// When it is no Parquet file, is truncated, or lacks a column.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.display().to_string();
        if remote::is_url(&file) {
            let object = remote::Object(remote::open(&file)?);
            let (file, size) = (remote::shown(&file), object.0.size());
            let reader = guarded(&file, || SerializedFileReader::new(object))?;
            return Self::new(Box::new(reader), file, size);
        }
        let handle = File::open(path).map_err(|e| TraceError::io(&file, e))?;
        let size = handle.metadata().map_err(|e| TraceError::io(&file, e))?.len();
        let reader = guarded(&file, || SerializedFileReader::new(handle))?;
        Self::new(Box::new(reader), file, size)
    }

    /// Reads a file that is in memory; messages call it `name`.
    ///
    /// # Errors
    /// Like [`Self::open`].
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Self> {
        let size = bytes.len() as u64;
        let reader = guarded(name, || SerializedFileReader::new(Bytes::from(bytes)))?;
        Self::new(Box::new(reader), name.to_owned(), size)
    }

    fn new(reader: Box<dyn FileReader>, file: String, size: u64) -> Result<Self> {
        check_places(reader.metadata(), size).map_err(|e| damaged(&file, &e))?;
        let meta = reader.metadata().file_metadata();
        let schema = meta.schema_descr();
        let mut places = [None; 7];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            *place = schema.columns().iter().position(|c| c.path().string() == name);
        }
        let missing: Vec<_> =
            (0..OPTIONAL_FROM).filter(|i| places[*i].is_none()).map(|i| COLUMNS[i]).collect();
        if !missing.is_empty() {
            let what = format!("the Parquet file lacks the column(s) {}", missing.join(", "));
            return Err(TraceError::unreadable(&file, what));
        }
        let names = meta
            .key_value_metadata()
            .and_then(|kv| kv.iter().find(|k| k.key == "smrlab.devices")?.value.clone());
        let devices = names
            .iter()
            .flat_map(|n| n.lines())
            .filter_map(|l| l.split_once('='))
            .filter_map(|(n, name)| Some((n.parse().ok()?, name.to_owned())))
            .collect();
        let rows_total = u64::try_from(meta.num_rows()).unwrap_or(0);
        Ok(Self {
            file,
            reader,
            places,
            columns: [const { Column::Absent }; 7],
            group: 0,
            left_in_group: 0,
            rows_read: 0,
            rows_total,
            last: SimTime::ZERO,
            devices,
        })
    }

    /// Requests in the file, by its metadata.
    pub fn rows(&self) -> u64 {
        self.rows_total
    }

    /// Moves to the next row group that has rows; `false` after the last.
    fn next_group(&mut self) -> Result<bool> {
        while self.left_in_group == 0 {
            if self.group == self.reader.num_row_groups() {
                return Ok(false);
            }
            let group = guarded(&self.file, || self.reader.get_row_group(self.group))?;
            self.group += 1;
            self.left_in_group = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            for (i, place) in self.places.iter().enumerate() {
                let Some(place) = *place else { continue };
                let column = group.metadata().column(place).column_descr_ptr();
                let reader = guarded(&self.file, || group.get_column_reader(place))?;
                self.columns[i] = match reader {
                    ColumnReader::Int32ColumnReader(r) => Column::I32(Typed::new(r, &column)),
                    ColumnReader::Int64ColumnReader(r) => Column::I64(Typed::new(r, &column)),
                    ColumnReader::BoolColumnReader(r) if COLUMNS[i] == "fua" => {
                        Column::Bool(Typed::new(r, &column))
                    }
                    _ => {
                        let or = if COLUMNS[i] == "fua" { "BOOLEAN, " } else { "" };
                        let what = format!("column {} must be {or}INT32 or INT64", COLUMNS[i]);
                        return Err(TraceError::unreadable(&self.file, what));
                    }
                };
            }
        }
        Ok(true)
    }

    fn refuse(&self, what: impl Into<String>) -> TraceError {
        TraceError::unreadable(&self.file, format!("near row {}: {}", self.rows_read + 1, what.into()))
    }

    /// Checks what the rows just converted held.
    fn check(&mut self, out: &Batch, seen: [i64; 7]) -> Result<()> {
        let (word, half) = (i64::from(u32::MAX), i64::from(u16::MAX));
        let limits = [i64::MAX, 15, i64::MAX >> 1, word, word, half, 1];
        for (i, (seen, limit)) in seen.iter().zip(limits).enumerate() {
            if *seen < 0 || *seen > limit {
                let most = if COLUMNS[i] == "op" { LAST_OP } else { limit };
                return Err(self.refuse(format!("column {} has values outside 0 to {most}", COLUMNS[i])));
            }
        }
        let mut last = self.last;
        let mut falls = false;
        for at in &out.arrival {
            falls |= *at < last;
            last = *at;
        }
        if falls {
            return Err(self.refuse(
                "arrivals run back; a Parquet trace is sorted by arrival_ns: sort it, or convert it again from its source",
            ));
        }
        self.last = last;
        let idle = out.blocks.iter().zip(&out.op).any(|(n, op)| *n == 0 && *op != HostOp::Flush);
        if idle { Err(self.refuse("a request that is no flush has 0 blocks")) } else { Ok(()) }
    }
}

/// The number of the last operation.
const LAST_OP: i64 = HostOp::KINDS as i64 - 1;

/// Refuses metadata that would make the library read outside the file: it panics on such.
fn check_places(meta: &ParquetMetaData, size: u64) -> Result<(), ParquetError> {
    for group in meta.row_groups() {
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let place = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
            let end = place.and_then(|(start, length)| start.checked_add(length));
            let flat = column.column_descr().max_rep_level() == 0;
            let odd = flat && column.num_values() != group.num_rows();
            if odd || end.is_none_or(|end| end > size) {
                return Err(ParquetError::General("a column lies outside the file".to_owned()));
            }
        }
    }
    Ok(())
}

/// Calls the library so that its panics on damaged data become errors too.
fn guarded<T>(file: &str, call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|e| damaged(file, &e)),
        Err(_) => Err(damaged(file, &ParquetError::General("damaged data".to_owned()))),
    }
}

/// The common faults of a file that ends too early, in words.
fn damaged(file: &str, e: &ParquetError) -> TraceError {
    TraceError::unreadable(
        file,
        format!("it cannot be read as Parquet ({e}): it is truncated, damaged, or compressed as a whole"),
    )
}

impl TraceSource for ParquetSource {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        if !self.next_group()? {
            return Ok(false);
        }
        let n = self.left_in_group.min(Batch::ROWS);
        for (i, name) in COLUMNS.iter().enumerate() {
            let column = &mut self.columns[i];
            match guarded(&self.file, || column.read(n)) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(self.refuse(format!("column {name} has nulls or too few values")));
                }
                Err(e) => return Err(e),
            }
        }
        let [arrival, op, lba, blocks, device, stream, fua] = &self.columns;
        let seen = [
            arrival.convert(n, &mut out.arrival, |v| SimTime(v as u64)),
            op.operations(n, &mut out.op),
            lba.convert(n, &mut out.lba, |v| Lba(v as u64)),
            blocks.convert(n, &mut out.blocks, |v| v as u32),
            device.convert(n, &mut out.device, |v| v as u32),
            stream.convert(n, &mut out.stream, |v| v as u16),
            fua.convert(n, &mut out.fua, |v| v != 0),
        ];
        // Only writes are: what other tools say of a read does not count.
        out.fua.iter_mut().zip(&out.op).for_each(|(fua, op)| *fua &= *op == HostOp::Write);
        self.check(out, seen)?;
        self.left_in_group -= n;
        self.rows_read += n as u64;
        Ok(true)
    }

    fn device_name(&self, device: u32) -> String {
        self.devices.get(&device).cloned().unwrap_or_else(|| device.to_string())
    }

    fn progress(&self) -> Option<f64> {
        (self.rows_total > 0).then(|| self.rows_read as f64 / self.rows_total as f64)
    }
}
