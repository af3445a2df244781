//! Traces in stores, read by ranges while they are used: the program that uses this crate brings the stores.

use crate::{Result, TraceError};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, OnceLock};

/// Bytes of the first piece that a reader asks for; each further one is twice as long, up to [`LONGEST`].
const FIRST: usize = 64 << 10;
/// Bytes of the longest piece.
const LONGEST: usize = 1 << 20;

/// An object of a store.
pub trait Ranges: Send + Sync {
    /// Its length in bytes.
    fn size(&self) -> u64;

    /// `length` bytes from byte `offset` on; fewer at its end only.
    ///
    /// # Errors
    /// When the store does not give them.
    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>>;
}

/// What opens URLs.
pub trait Stores: Send + Sync {
    /// The object that `url` names.
    ///
    /// # Errors
    /// When there is none, or the store cannot be reached.
    fn open(&self, url: &str) -> io::Result<Arc<dyn Ranges>>;

    /// The objects that a pattern of names or a folder stands for; `None` where `url` names one object.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn list(&self, url: &str) -> io::Result<Option<Vec<String>>>;
}

static STORES: OnceLock<Box<dyn Stores>> = OnceLock::new();

/// Has URLs opened by `stores` from now on. The first ones stay: a program has one way to its stores.
pub fn open_with(stores: Box<dyn Stores>) {
    let _ = STORES.set(stores);
}

/// Whether `text` names an object of a store: `s3://…`, `https://…`.
pub fn is_url(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// A URL as results and messages show it: without a password and without its query, which may be a signature.
pub fn shown(text: &str) -> String {
    if !is_url(text) {
        return text.to_owned();
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let host = rest.find(['/', '?']).unwrap_or(rest.len());
    let rest = rest[..host].rfind('@').map_or(rest, |at| &rest[at + 1..]);
    let query = rest.split_once('?').filter(|(_, query)| query.contains('='));
    let Some((path, query)) = query else { return format!("{scheme}://{rest}") };
    // The format stands behind the query.
    let format = query.rfind(':').map_or("", |at| &query[at..]);
    format!("{scheme}://{path}{format}")
}

fn stores() -> io::Result<&'static dyn Stores> {
    let missing = || io::Error::other("this program reads files only, no URLs");
    STORES.get().map(|s| &**s).ok_or_else(missing)
}

/// The object that `url` names.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Ranges>> {
    stores().and_then(|s| s.open(url)).map_err(|e| TraceError::io(&shown(url), e))
}

/// The objects that `url` stands for; `None` where it names one.
pub(crate) fn list(url: &str) -> Result<Option<Vec<String>>> {
    stores().and_then(|s| s.list(url)).map_err(|e| TraceError::io(&shown(url), e))
}

/// What can be read from any place.
pub(crate) trait Sought: Read + Seek + Send {}
impl<T: Read + Seek + Send> Sought for T {}

/// The file or the object of this name.
pub(crate) fn sought(path: &str) -> Result<Box<dyn Sought>> {
    if is_url(path) {
        return Ok(Box::new(Reader::new(open(path)?)));
    }
    Ok(Box::new(File::open(path).map_err(|e| TraceError::io(path, e))?))
}

/// Reads an object from some place on.
pub(crate) struct Reader {
    object: Arc<dyn Ranges>,
    piece: Vec<u8>,
    /// Bytes of the piece that were given out.
    used: usize,
    /// Where the piece ends in the object.
    end: u64,
    next: usize,
}

impl Reader {
    pub(crate) fn new(object: Arc<dyn Ranges>) -> Self {
        Self::from(object, 0)
    }

    fn from(object: Arc<dyn Ranges>, start: u64) -> Self {
        Self { object, piece: Vec::new(), used: 0, end: start, next: FIRST }
    }

    fn position(&self) -> u64 {
        self.end - (self.piece.len() - self.used) as u64
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.used == self.piece.len() {
            let left = self.object.size().saturating_sub(self.end);
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(self.next);
            if length == 0 {
                return Ok(0);
            }
            self.piece = self.object.read(self.end, length)?;
            if self.piece.is_empty() || self.piece.len() > length {
                return Err(io::Error::other("the store gave another range than was asked for"));
            }
            self.used = 0;
            self.end += self.piece.len() as u64;
            self.next = (self.next * 2).min(LONGEST);
        }
        let n = out.len().min(self.piece.len() - self.used);
        out[..n].copy_from_slice(&self.piece[self.used..self.used + n]);
        self.used += n;
        Ok(n)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position().checked_add_signed(by),
            SeekFrom::End(by) => self.object.size().checked_add_signed(by),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        if target != self.position() {
            *self = Self::from(Arc::clone(&self.object), target);
        }
        Ok(target)
    }
}

/// An object as the Parquet library reads files.
pub(crate) struct Object(pub(crate) Arc<dyn Ranges>);

impl Length for Object {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Object {
    type T = Reader;

    fn get_read(&self, start: u64) -> ParquetResult<Reader> {
        Ok(Reader::from(Arc::clone(&self.0), start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<bytes::Bytes> {
        let mut bytes = Vec::with_capacity(length);
        Reader::from(Arc::clone(&self.0), start).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Its size, and how often it was asked.
    struct Counting(u64, AtomicUsize);
    impl Ranges for Counting {
        fn size(&self) -> u64 {
            self.0
        }
        fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
            self.1.fetch_add(1, Relaxed);
            Ok((offset..offset + length as u64).map(|i| (i % 251) as u8).collect())
        }
    }

    #[test]
    fn a_reader_gives_every_byte_once_and_goes_where_it_is_sent() -> io::Result<()> {
        let mut reader = Reader::new(Arc::new(Counting(200_000, AtomicUsize::new(0))));
        let mut all = Vec::new();
        assert_eq!(reader.read_to_end(&mut all)?, 200_000);
        assert!(all.iter().enumerate().all(|(i, b)| *b == (i % 251) as u8));
        let mut one = [0];
        for (to, at) in
            [(SeekFrom::Start(70_000), 70_000), (SeekFrom::Current(9), 70_010), (SeekFrom::End(-1), 199_999)]
        {
            assert_eq!(reader.seek(to)?, at);
            reader.read_exact(&mut one)?;
            assert_eq!(u64::from(one[0]), at % 251);
        }
        Ok(())
    }

    /// Nothing where there is something is not the end, and more than was asked for is not what was asked for.
    #[test]
    fn another_range_than_was_asked_for_is_refused() {
        struct Gives(usize);
        impl Ranges for Gives {
            fn size(&self) -> u64 {
                100
            }
            fn read(&self, _: u64, _: usize) -> io::Result<Vec<u8>> {
                Ok(vec![7; self.0])
            }
        }
        for (given, right) in [(0, false), (1, true), (100, true), (101, false)] {
            let mut all = Vec::new();
            let read = Reader::new(Arc::new(Gives(given))).read_to_end(&mut all);
            let told = read.map_err(|e| e.to_string());
            let refused = Err("the store gave another range than was asked for".to_owned());
            assert_eq!(told, if right { Ok(100) } else { refused }, "{given}");
        }
    }

    /// Each request to a store takes its time: 3 MiB are pieces of 64, 128, 256 and 512 KiB, two of 1 MiB, and 64 KiB that are left.
    #[test]
    fn pieces_become_longer() -> io::Result<()> {
        let object = Arc::new(Counting(3 << 20, AtomicUsize::new(0)));
        let mut all = Vec::new();
        assert_eq!(Reader::new(object.clone()).read_to_end(&mut all)?, 3 << 20);
        assert_eq!(object.1.load(Relaxed), 7);
        Ok(())
    }

    #[test]
    fn a_url_is_shown_without_what_is_secret() {
        for (url, told) in [
            ("s3://key:secret@bucket/a@b.csv:msr", "s3://bucket/a@b.csv:msr"),
            ("s3://key:se@cr@t@bucket/a.csv", "s3://bucket/a.csv"),
            ("https://host:8080/t.gz?X-Amz-Signature=abc:msr", "https://host:8080/t.gz:msr"),
            ("https://host/t.gz?sig=abc", "https://host/t.gz"),
            ("s3://bucket/web_?.csv", "s3://bucket/web_?.csv"),
            ("a?b@c", "a?b@c"),
        ] {
            assert_eq!(shown(url), told);
        }
        assert!(is_url("s3://bucket/key") && !is_url("a/b://c") && !is_url("synth:uniform"));
    }
}
