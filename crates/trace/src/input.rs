//! Bytes of a trace file: opened, decompressed by what they are (not by the file's name), and cut into pieces.

use crate::{Result, Stop, TraceError, archive, remote};
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes kept in memory of an input; also the longest line and the largest sample for detection.
pub const BUFFER: usize = 1 << 20;
/// What is looked at to tell the format.
pub const SAMPLE: usize = 64 << 10;

/// A decompressed stream of bytes with a window of at most [`BUFFER`] bytes, consumed from its front.
pub struct Input {
    file: String,
    reader: Box<dyn Read + Send>,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Offset of `buf[start]` in the decompressed data.
    position: u64,
    raw_read: Arc<AtomicU64>,
    raw_size: Option<u64>,
    stop: Stop,
}

/// Counts the bytes taken from the file, for progress.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Fails once somebody asks to stop.
struct Halting<R> {
    inner: R,
    stop: Stop,
}

impl<R: Read> Read for Halting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        self.inner.read(buf)
    }
}

impl Input {
    /// Opens a file or the object that a URL names; `-` is the standard input. It is read until somebody asks to stop, also where an archive
    /// is searched for its file.
    ///
    /// # Errors
    /// When there is no such file, it is a directory, or it may not be read; when somebody asked to stop.
    pub fn open(path: &str, stop: &Stop) -> Result<Self> {
        let input = Self::opened(path, stop);
        if input.is_err() {
            stop.check()?;
        }
        Ok(input?.stopping(stop))
    }

    fn opened(path: &str, stop: &Stop) -> Result<Self> {
        if path == "-" {
            return Self::from_reader("(standard input)", Box::new(io::stdin()), None);
        }
        if path.trim().is_empty() {
            return Err(TraceError::unreadable(
                "the name of a trace",
                "it is empty: give a file, a URL or synth:NAME",
            ));
        }
        if remote::is_url(path) {
            let object = remote::open(path)?;
            let size = Some(object.size());
            let again = || {
                decompressed(Halting { inner: remote::Reader::new(Arc::clone(&object)), stop: stop.clone() })
            };
            let reader = Box::new(remote::Reader::new(Arc::clone(&object)));
            return Self::unpacked(&remote::shown(path), path, reader, size, &again);
        }
        let err = |e| TraceError::io(path, e);
        let meta = Path::new(path).metadata().map_err(err)?;
        if meta.is_dir() {
            return Err(err(io::ErrorKind::IsADirectory.into()));
        }
        let size = meta.is_file().then_some(meta.len());
        let again = || {
            File::open(path)
                .and_then(|f| decompressed(Halting { inner: io::BufReader::new(f), stop: stop.clone() }))
        };
        Self::unpacked(path, path, Box::new(File::open(path).map_err(err)?), size, &again)
    }

    /// From any reader; `file` is what messages call it, `raw_size` its length in bytes where known.
    ///
    /// # Errors
    /// When the first bytes cannot be read.
    pub fn from_reader(file: &str, reader: Box<dyn Read + Send>, raw_size: Option<u64>) -> Result<Self> {
        let again = || Err(io::ErrorKind::Unsupported.into());
        Self::unpacked(file, "-", reader, raw_size, &again)
    }

    /// Decompressed, and out of an archive where it is one; `again` opens the file at `path` once more.
    fn unpacked(
        file: &str,
        path: &str,
        reader: Box<dyn Read + Send>,
        raw_size: Option<u64>,
        again: &dyn Fn() -> io::Result<Box<dyn Read + Send>>,
    ) -> Result<Self> {
        let raw_read = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: reader, count: Arc::clone(&raw_read) };
        let err = |e| TraceError::io(file, e);
        let mut reader = decompressed(counted).map_err(err)?;
        let mut head = Vec::with_capacity(archive::HEAD);
        reader.by_ref().take(archive::HEAD as u64).read_to_end(&mut head).map_err(err)?;
        let reader: Box<dyn Read + Send> = match archive::kind(&head) {
            None => Box::new(io::Cursor::new(head).chain(reader)),
            Some(kind) => decompressed(archive::only_file(path, kind, again)?).map_err(err)?,
        };
        let reader = without_mark(reader).map_err(err)?;
        Ok(Self {
            file: file.to_owned(),
            reader,
            buf: vec![0; SAMPLE],
            start: 0,
            end: 0,
            ended: false,
            position: 0,
            raw_read,
            raw_size,
            stop: Stop::default(),
        })
    }

    /// The same, which fails once somebody asks to stop.
    fn stopping(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// What messages call it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Offset of the first byte of [`Self::window`] in the decompressed data.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Share of the file that has been read, from 0 to 1.
    pub fn progress(&self) -> Option<f64> {
        let size = self.raw_size.filter(|s| *s > 0)?;
        Some((self.raw_read.load(Ordering::Relaxed) as f64 / size as f64).min(1.0))
    }

    /// What is in memory now.
    pub fn window(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Drops `n` bytes of the window.
    ///
    /// # Panics
    /// When the window is smaller.
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.end - self.start, "consumed more than the window holds");
        self.start += n;
        self.position += n as u64;
    }

    /// The next line: its length without its end, and with it; 0 and 0 at the end. What is longer than [`BUFFER`] is cut.
    ///
    /// # Errors
    /// Like [`Self::fill`].
    pub fn line(&mut self) -> Result<(usize, usize)> {
        let mut seen = 0;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.window()[seen..]) {
                return Ok((seen + n, seen + n + 1));
            }
            seen = self.window().len();
            if self.fill(seen + 1)? == seen {
                return Ok((seen, seen));
            }
        }
    }

    /// Makes the window hold at least `n` bytes where the data has so many; returns its length.
    ///
    /// # Errors
    /// When the file cannot be read, or its compressed data is truncated or damaged; when somebody asked to stop.
    pub fn fill(&mut self, n: usize) -> Result<usize> {
        if self.end - self.start >= n {
            return Ok(self.end - self.start);
        }
        if self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // A trace that is only looked at, as those further on in a chain, has room for the sample alone.
        if self.position > 0 || n > SAMPLE {
            self.buf.resize(BUFFER, 0);
        }
        let goal = n.min(self.buf.len());
        while !self.ended && self.end < goal {
            self.stop.check()?;
            match self.reader.read(&mut self.buf[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(k) => self.end += k,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.stop.check()?;
                    return Err(TraceError::io(&self.file, e));
                }
            }
        }
        Ok(self.end)
    }
}

/// Text without the byte order mark that Windows programs begin UTF-8 with.
fn without_mark(mut reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::with_capacity(4);
    reader.by_ref().take(4).read_to_end(&mut head)?;
    if matches!(head[..], [0xef, 0xbb, 0xbf, b' '..=b'~']) {
        head.drain(..3);
    }
    Ok(Box::new(io::Cursor::new(head).chain(reader)))
}

/// All members of a gzip file. Zeroes behind one fill a block of a tape, as for gzip(1).
struct Gunzip<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let n = member.read(buf)?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            let Some(mut rest) = self.0.take().map(GzDecoder::into_inner) else { break };
            let more = loop {
                let ahead = rest.fill_buf()?;
                let zeroes = ahead.iter().take_while(|b| **b == 0).count();
                let (all, none) = (zeroes == ahead.len(), ahead.is_empty());
                rest.consume(zeroes);
                if none || !all {
                    break !none;
                }
            };
            self.0 = more.then(|| GzDecoder::new(rest));
        }
        Ok(0)
    }
}

/// Tells the compression by the first bytes; both gzip and zstd files may have several members.
fn decompressed(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::with_capacity(6);
    reader.by_ref().take(6).read_to_end(&mut magic)?;
    let kind = match magic.as_slice() {
        [0x1f, 0x8b, ..] => "gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zst",
        [0xfd, b'7', b'z', b'X', b'Z', 0] => "xz",
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => "bz2",
        _ => "",
    };
    let whole = io::BufReader::with_capacity(1 << 17, io::Cursor::new(magic).chain(reader));
    Ok(match kind {
        "gz" => Box::new(Gunzip(Some(GzDecoder::new(whole)))),
        "zst" => Box::new(zstd::stream::read::Decoder::with_buffer(whole)?),
        "xz" => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(whole)),
        "bz2" => Box::new(bzip2::bufread::MultiBzDecoder::new(whole)),
        _ => Box::new(whole),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte with each second call; the others are interrupted, as by a signal.
    struct Disturbed(u64, bool);

    impl Read for Disturbed {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            match self.0 {
                0 => Ok(0),
                _ if self.1 => Err(io::ErrorKind::Interrupted.into()),
                left => {
                    self.0 -= 1;
                    out[0] = if left % 8 == 1 { b'\n' } else { b'x' };
                    Ok(1)
                }
            }
        }
    }

    /// Of random letters gzip keeps about 6 of 8 bits: progress is of the file's bytes.
    #[test]
    fn progress_is_of_the_file_not_of_what_was_in_it() {
        let mut bits = smrlab_units::rng::Rng::new(1);
        let text: Vec<u8> = (0..8 * BUFFER).map(|_| b"0123456789abcdef"[bits.below(16) as usize]).collect();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gz, &text).unwrap();
        let gz = gz.finish().unwrap();
        let size = gz.len() as u64;
        let mut input = Input::from_reader("-", Box::new(io::Cursor::new(gz)), Some(size)).unwrap();
        for _ in 0..4 * BUFFER / SAMPLE {
            input.fill(SAMPLE).unwrap();
            input.consume(SAMPLE);
        }
        let progress = input.progress().unwrap();
        assert!((progress - 0.5).abs() < 0.15, "{progress}");
    }

    /// A program at the other end of a pipe may write no more for hours: nothing is waited for but what is asked for.
    #[test]
    fn no_more_is_read_than_what_is_asked_for() -> Result<()> {
        struct Slow(usize);
        impl Read for Slow {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                let n = out.len().min(1000);
                out[..n].fill(b'x');
                if self.0 <= 20 { Ok(n) } else { Err(io::Error::other("waits for ever")) }
            }
        }
        let mut input = Input::from_reader("t", Box::new(Slow(0)), None)?;
        for n in [1, 5000, 9000] {
            assert!((n..n + 1000).contains(&input.fill(n)?), "{n}");
        }
        input.consume(9000);
        assert!(input.fill(1000)? < 2000);
        Ok(())
    }

    /// Asked to stop, neither more of a file nor of a pipe that brings a byte at a time is read.
    #[test]
    fn what_is_stopped_reads_no_more() {
        let stop = Stop::default();
        let mut input = Input::from_reader("-", Box::new(io::repeat(b'x')), None).unwrap().stopping(&stop);
        let have = input.fill(1000).unwrap();
        stop.ask();
        assert_eq!(input.fill(have).unwrap(), have, "what is there already");
        assert!(matches!(input.fill(have + 1), Err(TraceError::Stopped)));
        assert_eq!(input.window().len(), have);
    }

    /// Nor is an archive searched for its file, however long that would take.
    #[test]
    fn what_is_stopped_searches_no_archive() {
        let file = std::env::temp_dir().join(format!("smrlab-searched-{}.tar", std::process::id()));
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(1000);
        archive.append_data(&mut header, "t.csv", io::repeat(b'x').take(1000)).unwrap();
        std::fs::write(&file, archive.into_inner().unwrap()).unwrap();
        let open = |stop: &Stop| Input::open(file.to_str().unwrap(), stop);
        let stop = Stop::default();
        let found = open(&stop).and_then(|mut input| input.fill(2000));
        stop.ask();
        let stopped = open(&stop).err();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(found.unwrap(), 1000);
        assert!(matches!(stopped, Some(TraceError::Stopped)), "{stopped:?}");
    }

    #[test]
    fn an_interrupted_read_is_tried_again() {
        let mut input = Input::from_reader("-", Box::new(Disturbed(80_000, false)), None).unwrap();
        let mut lines = 0;
        while let (7, whole) = input.line().unwrap() {
            input.consume(whole);
            lines += 1;
        }
        assert_eq!(lines, 10_000);
    }
}
