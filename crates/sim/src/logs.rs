//! `requests.parquet` and `media.parquet`: written while the run goes on, in bounded memory.

use crate::error::{Result, RunError};
use crate::spent;
use crate::table::{Column, Table, TableWriter, clear};
use parquet::errors::ParquetError;
use smrlab_drive::{OpDone, Served};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{Dir, SimTime};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Rows kept in memory.
const GROUP_ROWS: usize = 1 << 16;

/// The logs that were asked for.
#[derive(Default)]
pub(crate) struct Logs {
    pub requests: Option<RequestLog>,
    pub media: Option<MediaLog>,
}

impl Logs {
    /// A plan was carried out: what its operations have put into memory goes to the file once that is much.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn written(&mut self) -> Result<()> {
        match &mut self.media {
            Some(media) if media.log.full() => media.log.flush(),
            _ => Ok(()),
        }
    }

    /// Whether none was.
    pub(crate) fn is_none(&self) -> bool {
        self.requests.is_none() && self.media.is_none()
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.requests.map_or(Ok(()), RequestLog::finish)?;
        self.media.map_or(Ok(()), MediaLog::finish)
    }
}

struct Log {
    table: Table,
    writer: TableWriter<BufWriter<File>>,
    file: String,
}

impl Log {
    fn create(dir: &Path, table: Table) -> Result<Self> {
        let path = dir.join(format!("{}.parquet", table.name));
        let file = path.display().to_string();
        let out = File::create(&path).map_err(|e| RunError::Io { what: file.clone(), source: e })?;
        let writer = TableWriter::new(&table, BufWriter::new(out)).map_err(|e| failed(&file, e))?;
        Ok(Self { table, writer, file })
    }

    fn column(&mut self, i: usize) -> &mut Column {
        &mut self.table.columns[i].1
    }

    fn full(&self) -> bool {
        self.table.rows() >= GROUP_ROWS
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.group(&self.table).map_err(|e| failed(&self.file, e))?;
        clear(&mut self.table);
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.flush()?;
        let file = self.file;
        self.writer.finish().map_err(|e| failed(&file, e))
    }
}

/// A Parquet error as the system's error that it wraps, where it does.
pub(crate) fn failed(file: &str, e: ParquetError) -> RunError {
    let source = match e {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other.to_string()),
        },
        other => {
            // The writer turns I/O errors into text; the cause that users can act on is told apart by it.
            let text = other.to_string();
            match text.contains("No space left") {
                true => std::io::Error::new(std::io::ErrorKind::StorageFull, text),
                false => std::io::Error::other(text),
            }
        }
    };
    RunError::Io { what: file.to_owned(), source }
}

fn ints(names: &[&'static str]) -> Vec<(&'static str, Column)> {
    names.iter().map(|n| (*n, Column::Int(Vec::new()))).collect()
}

/// One row for each host request, in order of completion; with where its time went.
pub(crate) struct RequestLog {
    log: Log,
}

impl RequestLog {
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let mut columns =
            ints(&["id", "arrival_ns", "start_ns", "completion_ns", "op", "lba", "blocks", "stream"]);
        columns[4].1 = Column::Text(Vec::new());
        columns.extend(ints(&spent::COLUMNS));
        columns.push(("refusal", Column::Text(Vec::new())));
        Ok(Self { log: Log::create(dir, Table { name: "requests", columns })? })
    }

    /// `spent`: see [`spent::COLUMNS`]; `refusal`: why it was not done, where it was not.
    pub(crate) fn add(
        &mut self,
        arrival: SimTime,
        r: &HostRequest,
        served: &Served,
        spent: [u64; spent::COLUMNS.len()],
        refusal: Option<Refusal>,
    ) -> Result<()> {
        let log = &mut self.log;
        log.column(4).push_text(r.op.name());
        let ints = [r.id, arrival.0, served.start.0, served.ack.0, r.lba.0, r.blocks.0, u64::from(r.stream)];
        for (column, value) in [0, 1, 2, 3, 5, 6, 7].into_iter().zip(ints) {
            log.column(column).push_int(value);
        }
        for (column, value) in (8..).zip(spent) {
            log.column(column).push_int(value);
        }
        log.column(8 + spent.len()).push_text(refusal.map_or("", Refusal::name));
        if log.full() { log.flush() } else { Ok(()) }
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.log.finish()
    }
}

/// One row for each media operation, in order. Background work has request -1.
pub(crate) struct MediaLog {
    log: Log,
    seq: u64,
}

impl MediaLog {
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let mut columns =
            ints(&["seq", "request_id", "disk", "start_ns", "end_ns", "op", "cause", "pba", "blocks"]);
        columns[5].1 = Column::Text(Vec::new());
        columns[6].1 = Column::Text(Vec::new());
        Ok(Self { log: Log::create(dir, Table { name: "media", columns })?, seq: 0 })
    }

    pub(crate) fn add(&mut self, done: &OpDone<'_>) {
        let log = &mut self.log;
        let (op, id) = (done.op, done.request.unwrap_or(u64::MAX));
        log.column(5).push_text(if op.dir == Dir::Read { "read" } else { "write" });
        log.column(6).push_text(done.cause.name());
        let ints = [self.seq, id, u64::from(done.member.0), done.start.0, done.end.0, op.pba.0, op.blocks.0];
        for (column, value) in [0, 1, 2, 3, 4, 7, 8].into_iter().zip(ints) {
            log.column(column).push_int(value);
        }
        self.seq += 1;
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.log.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    /// A full disk is one however the writer of Parquet says it.
    #[test]
    fn what_the_system_said_is_found_in_what_the_writer_says() {
        let full = || Error::new(ErrorKind::StorageFull, "full");
        for (e, kind, text) in [
            (ParquetError::External(Box::new(full())), ErrorKind::StorageFull, "full"),
            (ParquetError::External("odd".into()), ErrorKind::Other, "odd"),
            (
                ParquetError::General("No space left on device (os error 28)".to_owned()),
                ErrorKind::StorageFull,
                "Parquet error: No space left on device (os error 28)",
            ),
            (ParquetError::EOF("short".to_owned()), ErrorKind::Other, "EOF: short"),
        ] {
            let RunError::Io { what, source } = failed("o/media.parquet", e) else { panic!("the system's") };
            assert_eq!((&*what, source.kind(), &*source.to_string()), ("o/media.parquet", kind, text));
        }
    }
}
