//! Result tables: in memory as plain columns, on disk as Parquet.

use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Int(Vec<i64>),
    /// Real numbers.
    Real(Vec<f64>),
    /// Real numbers that may be missing.
    Maybe(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<String>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Int(v) => v.len(),
            Self::Real(v) => v.len(),
            Self::Maybe(v) => v.len(),
            Self::Text(v) => v.len(),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Int(v) => v.clear(),
            Self::Real(v) => v.clear(),
            Self::Maybe(v) => v.clear(),
            Self::Text(v) => v.clear(),
        }
    }

    /// Appends the values of a column of the same kind.
    ///
    /// # Panics
    /// When it is of another kind.
    pub fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Int(own), Self::Int(other)) => own.extend(other),
            (Self::Real(own), Self::Real(other)) => own.extend(other),
            (Self::Maybe(own), Self::Maybe(other)) => own.extend(other),
            (Self::Text(own), Self::Text(other)) => own.extend(other),
            (own, other) => panic!("{other:?} below {own:?}"),
        }
    }

    /// Appends a whole number.
    ///
    /// # Panics
    /// When it is no column of whole numbers.
    #[inline]
    pub fn push_int(&mut self, n: u64) {
        match self {
            Self::Int(v) => v.push(n as i64),
            other => panic!("a whole number for {other:?}"),
        }
    }

    /// Appends a text.
    ///
    /// # Panics
    /// When it is no column of texts.
    pub fn push_text(&mut self, text: &str) {
        match self {
            Self::Text(v) => v.push(text.to_owned()),
            other => panic!("a text for {other:?}"),
        }
    }

    fn schema(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, repetition) = match self {
            Self::Int(_) => (Physical::INT64, Repetition::REQUIRED),
            Self::Real(_) => (Physical::DOUBLE, Repetition::REQUIRED),
            Self::Maybe(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
            Self::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        let text = matches!(self, Self::Text(_)).then_some(parquet::basic::LogicalType::String);
        builder.with_logical_type(text).build()
    }
}

/// A table by name, its columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File name without its extension.
    pub name: &'static str,
    /// Names and values of the columns.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, c)| c.len())
    }

    /// The whole table as a Parquet file.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let mut out = Vec::new();
        self.write(&mut out)?;
        Ok(out)
    }

    /// Writes the whole table as Parquet.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let mut writer = TableWriter::new(self, out)?;
        writer.group(self)?;
        writer.finish()
    }
}

/// Writes a table part by part, a row group each.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts a file with the columns of `table`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(table: &Table, out: W) -> Result<Self, ParquetError> {
        let columns =
            table.columns.iter().map(|(n, c)| c.schema(n).map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder(table.name).with_fields(columns).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_created_by("smrlab".to_owned());
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Self { writer })
    }

    /// Appends the rows of `table` as a row group.
    ///
    /// # Errors
    /// Those of the output.
    pub fn group(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (_, column) in &table.columns {
            let Some(mut out) = group.next_column()? else { break };
            match column {
                Column::Int(v) => out.typed::<Int64Type>().write_batch(v, None, None)?,
                Column::Real(v) => out.typed::<DoubleType>().write_batch(v, None, None)?,
                Column::Maybe(v) => {
                    let values: Vec<f64> = v.iter().flatten().copied().collect();
                    let levels: Vec<i16> = v.iter().map(|x| i16::from(x.is_some())).collect();
                    out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?
                }
                Column::Text(v) => {
                    let values: Vec<ByteArray> = v.iter().map(|s| s.as_str().into()).collect();
                    out.typed::<ByteArrayType>().write_batch(&values, None, None)?
                }
            };
            out.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> Result<(), ParquetError> {
        self.writer.close().map(|_| ())
    }
}

/// Empties all columns.
pub(crate) fn clear(table: &mut Table) {
    table.columns.iter_mut().for_each(|(_, c)| c.clear());
}
