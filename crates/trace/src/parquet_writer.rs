//! Writing the fast store; the schema is described in [`crate::formats::parquet`].

use crate::formats::parquet::COLUMNS;
use crate::{Batch, Result, TraceError, TraceSource};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use smrlab_units::SimTime;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the schema, in the file's metadata.
pub const SCHEMA_VERSION: &str = "1";

/// Rows of a row group: what the writer keeps in memory (29 bytes a row).
const GROUP_ROWS: usize = 1 << 19;
/// Rows of a page: what the reader keeps in memory a column.
const PAGE_ROWS: usize = 1 << 16;

/// Devices whose names are kept.
const NAMED_DEVICES: usize = 65_536;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Plain pages, no compression: the fastest to read.
    Plain,
    /// Plain pages with zstd.
    PlainZstd,
    /// Plain pages with LZ4.
    PlainLz4,
    /// Differences in as few bits as they need, with zstd: the smallest.
    DeltaZstd,
    /// Differences in as few bits as they need.
    Delta,
}

/// Writes a trace under a temporary name and renames it at the end, so that no partial file looks whole.
pub struct ParquetWriter {
    path: PathBuf,
    temporary: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
    rows: Batch,
    written: u64,
    last: SimTime,
    devices: BTreeSet<u32>,
    device: Option<u32>,
}

impl ParquetWriter {
    /// Starts the trace at `path`; `source` says what it is made of.
    ///
    /// # Errors
    /// When the temporary file beside it cannot be made.
    pub fn create(path: &Path, source: &str) -> Result<Self> {
        Self::with_packing(path, source, Packing::DeltaZstd)
    }

    /// Like [`Self::create`], with a packing other than the default.
    ///
    /// # Errors
    /// When the temporary file beside it cannot be made.
    pub fn with_packing(path: &Path, source: &str, packing: Packing) -> Result<Self> {
        let shown = path.display().to_string();
        let name = path.file_name().ok_or_else(|| TraceError::unreadable(&shown, "it names no file"))?;
        if path.is_dir() {
            return Err(TraceError::io(&shown, io::ErrorKind::IsADirectory.into()));
        }
        let temporary =
            path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        let file = File::create(&temporary).map_err(|e| unwritable(path, e))?;
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema()), Arc::new(properties(source, packing)))
                .map_err(|e| failed(path, e))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            writer: Some(writer),
            rows: Batch::new(),
            written: 0,
            last: SimTime::ZERO,
            devices: BTreeSet::new(),
            device: None,
        })
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// When arrivals fall, a value does not fit its column, or the disk is full.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        for r in batch.iter() {
            if r.arrival < self.last {
                return Err(TraceError::RunsBack {
                    file: self.path.display().to_string(),
                    place: String::new(),
                    at: r.arrival,
                    after: self.last,
                    needed: self.last.since(r.arrival),
                });
            }
            self.last = r.arrival;
            if self.devices.len() < NAMED_DEVICES && self.device != Some(r.device) {
                self.device = Some(r.device);
                self.devices.insert(r.device);
            }
            if r.arrival.0 > i64::MAX as u64 || r.lba.0 > i64::MAX as u64 {
                let what = "an arrival or address is beyond 2^63: convert with start=zero";
                return Err(TraceError::Request(format!("{}: {what}", self.path.display())));
            }
            self.rows.push(r);
        }
        if self.rows.len() >= GROUP_ROWS { self.flush_group() } else { Ok(()) }
    }

    /// Ends the file and gives it its name; returns the rows in it.
    ///
    /// # Errors
    /// When there was no request, or the disk is full.
    pub fn finish(mut self, device_name: impl Fn(u32) -> String) -> Result<u64> {
        if !self.rows.is_empty() {
            self.flush_group()?;
        }
        if self.written == 0 {
            return Err(TraceError::Empty(self.path.display().to_string()));
        }
        if let Some(mut writer) = self.writer.take() {
            let names: Vec<_> = self.devices.iter().map(|d| format!("{d}={}", device_name(*d))).collect();
            writer.append_key_value_metadata(KeyValue::new("smrlab.devices".to_owned(), names.join("\n")));
            writer.close().map_err(|e| failed(&self.path, e))?;
        }
        fs::rename(&self.temporary, &self.path).map_err(|e| unwritable(&self.path, e))?;
        Ok(self.written)
    }

    /// Writes the rows in memory as a row group.
    fn flush_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.written += rows.len() as u64;
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        write_group(writer, &rows).map_err(|e| failed(&self.path, e))?;
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }
}

impl Drop for ParquetWriter {
    /// A trace that was not finished leaves nothing behind.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

fn write_group(writer: &mut SerializedFileWriter<File>, rows: &Batch) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    let long: Vec<i64> = rows.arrival.iter().map(|t| t.0 as i64).collect();
    write_column::<Int64Type>(&mut group, &long)?;
    let short: Vec<i32> = rows.op.iter().map(|op| op.index() as i32).collect();
    write_column::<Int32Type>(&mut group, &short)?;
    let long: Vec<i64> = rows.lba.iter().map(|l| l.0 as i64).collect();
    write_column::<Int64Type>(&mut group, &long)?;
    // Lengths and devices above 2^31 wrap to negative numbers of an unsigned column.
    let short: Vec<i32> = rows.blocks.iter().map(|n| *n as i32).collect();
    write_column::<Int32Type>(&mut group, &short)?;
    let short: Vec<i32> = rows.device.iter().map(|d| *d as i32).collect();
    write_column::<Int32Type>(&mut group, &short)?;
    let short: Vec<i32> = rows.stream.iter().map(|s| i32::from(*s)).collect();
    write_column::<Int32Type>(&mut group, &short)?;
    write_column::<BoolType>(&mut group, &rows.fua)?;
    group.close().map(|_| ())
}

fn write_column<T: DataType>(
    group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column =
        group.next_column()?.ok_or_else(|| ParquetError::General("no such column".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn unwritable(path: &Path, source: io::Error) -> TraceError {
    TraceError::Unwritable { file: path.display().to_string(), source }
}

fn failed(path: &Path, e: ParquetError) -> TraceError {
    unwritable(
        path,
        match e {
            ParquetError::External(inner) => inner.downcast().map_or_else(io::Error::other, |e| *e),
            e => io::Error::other(e),
        },
    )
}

fn schema() -> Type {
    let column = |name: &str| {
        let physical = match name {
            "arrival_ns" | "lba" => Physical::INT64,
            "fua" => Physical::BOOLEAN,
            _ => Physical::INT32,
        };
        let bits = match name {
            "op" => 8,
            "stream" => 16,
            _ => 32,
        };
        let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        let unsigned = LogicalType::integer(bits, false);
        let column =
            if physical == Physical::INT32 { column.with_logical_type(Some(unsigned)) } else { column };
        Arc::new(column.build().expect("the schema is fixed and valid"))
    };
    Type::group_type_builder("trace")
        .with_fields(COLUMNS.iter().map(|c| column(c)).collect())
        .build()
        .expect("the schema is fixed and valid")
}

fn properties(source: &str, packing: Packing) -> WriterProperties {
    let kv = |k: &str, v: &str| KeyValue::new(k.to_owned(), v.to_owned());
    let mut p = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(format!("smrlab {}", env!("CARGO_PKG_VERSION")))
        .set_max_row_group_row_count(Some(GROUP_ROWS * 2))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_dictionary_enabled(false)
        .set_sorting_columns(Some(vec![SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: false,
        }]))
        .set_key_value_metadata(Some(vec![
            kv("smrlab.trace", SCHEMA_VERSION),
            kv("smrlab.sorted", COLUMNS[0]),
            kv("smrlab.source", source),
        ]))
        .set_compression(match packing {
            Packing::Plain | Packing::Delta => Compression::UNCOMPRESSED,
            Packing::PlainLz4 => Compression::LZ4_RAW,
            Packing::PlainZstd | Packing::DeltaZstd => Compression::ZSTD(ZstdLevel::default()),
        });
    for name in COLUMNS {
        let path = ColumnPath::from(name);
        let delta = matches!(packing, Packing::Delta | Packing::DeltaZstd);
        // Few different values make a dictionary of runs; arrivals and addresses do not.
        if matches!(name, "op" | "blocks" | "device" | "stream") {
            p = p.set_column_dictionary_enabled(path, true);
        } else if name == "fua" {
            p = p.set_column_encoding(path, if delta { Encoding::RLE } else { Encoding::PLAIN });
        } else if delta {
            p = p.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else {
            p = p.set_column_encoding(path, Encoding::PLAIN);
        }
    }
    p.build()
}

/// Copies a whole trace into a Parquet file; returns the requests written. `tick` is called after each batch with the
/// requests so far, and ends the work where it returns `false`.
///
/// # Errors
/// Those of the source and of the writer; no file is left then, nor where `tick` ended it.
pub fn convert(
    source: &mut dyn TraceSource,
    path: &Path,
    description: &str,
    mut tick: impl FnMut(u64) -> bool,
) -> Result<u64> {
    let mut writer = ParquetWriter::create(path, description)?;
    let (mut batch, mut rows) = (Batch::new(), 0);
    while source.next_batch(&mut batch)? {
        writer.write(&batch)?;
        rows += batch.len() as u64;
        if !tick(rows) {
            return Err(TraceError::Request(format!("{}: interrupted", path.display())));
        }
    }
    writer.finish(|d| source.device_name(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file says of itself, and how each packing packs.
    #[test]
    fn a_file_says_what_it_is_and_where_it_is_from() {
        for (packing, packed, delta) in [
            (Packing::Plain, "UNCOMPRESSED", false),
            (Packing::PlainLz4, "LZ4_RAW", false),
            (Packing::PlainZstd, "ZSTD", false),
            (Packing::Delta, "UNCOMPRESSED", true),
            (Packing::DeltaZstd, "ZSTD", true),
        ] {
            let p = properties("a.csv of somebody", packing);
            let said: Vec<_> = p.key_value_metadata().unwrap().iter().map(|kv| kv.value.as_deref()).collect();
            assert_eq!(said[1..], [Some("arrival_ns"), Some("a.csv of somebody")]);
            for name in COLUMNS {
                let path = ColumnPath::from(name);
                assert!(format!("{:?}", p.compression(&path)).starts_with(packed), "{packing:?} {name}");
                let few = ["op", "blocks", "device", "stream"].contains(&name);
                assert_eq!(p.dictionary_enabled(&path), few, "{name}");
                let encoding = match (name, delta) {
                    _ if few => None,
                    ("fua", true) => Some(Encoding::RLE),
                    (_, true) => Some(Encoding::DELTA_BINARY_PACKED),
                    (_, false) => Some(Encoding::PLAIN),
                };
                assert_eq!(p.encoding(&path), encoding, "{packing:?} {name}");
            }
        }
    }
}
