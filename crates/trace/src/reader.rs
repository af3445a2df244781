//! The two drivers under all formats: lines of text and binary records. A format only says what one piece means.

use crate::fields::Reason;
use crate::input::{BUFFER, Input};
use crate::{Batch, Record, Result, TraceError, TraceSource};
use smrlab_units::SimTime;

/// What a line of a format means.
pub trait LineFormat: Send {
    /// Appends the requests of `line` (without its end) to `out`: none for headers, comments and other events.
    ///
    /// # Errors
    /// The reason why the line is refused; rows that were appended by then are taken back.
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason>;

    /// Whether [`plain`](Self::plain) takes any line.
    const PLAIN: bool = false;

    /// The request of the line that `text` begins with, and that line's length with its end, where it is written as nearly all
    /// are: one request and nothing else. `None`: [`line`](Self::line) is to look at it.
    #[inline(always)]
    fn plain(text: &[u8]) -> Option<(Record, usize)> {
        let _ = text;
        None
    }

    /// See [`TraceSource::device_name`].
    fn device_name(&self, device: u32) -> String {
        device.to_string()
    }

    /// What to say to a user whose trace gave no request at all.
    fn empty_hint(&self) -> Option<String> {
        None
    }
}

/// What a binary record of a format means.
pub trait RecordFormat: Send {
    /// Bytes that must be seen to know a record's length.
    const HEAD: usize;
    /// Bytes that are shown to learn the length, where there are so many.
    const SHOWN: usize = Self::HEAD;

    /// The length of the record that begins with `head`, in bytes; at least [`Self::HEAD`].
    ///
    /// # Errors
    /// When no record begins like that: reading cannot go on.
    fn length(&self, head: &[u8]) -> Result<usize, Reason>;

    /// Appends the request of a whole record, if it is one.
    ///
    /// # Errors
    /// The reason why the record is refused.
    fn record(&mut self, record: &[u8], out: &mut Batch) -> Result<(), Reason>;

    /// See [`TraceSource::device_name`].
    fn device_name(&self, device: u32) -> String {
        device.to_string()
    }

    /// What to say to a user whose trace gave no request at all.
    fn empty_hint(&self) -> Option<String> {
        None
    }
}

/// What every reader needs to know beside its format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// Bad lines or records to pass over.
    pub skip_bad: u64,
    /// Arrivals may run back by this much, because a sorting window follows.
    pub window: SimTime,
}

/// Lines or records without a request among them, behind which there is none to be expected: no recording begins so, and `/dev/zero` has
/// no end.
const BARREN: u64 = 1 << 26;

/// Counts pieces and bad pieces, and watches the order.
struct Watch {
    tolerance: Tolerance,
    pieces: u64,
    skipped: u64,
    latest: SimTime,
    rows: u64,
}

/// An arrival that runs back by more than what is sorted.
struct Early {
    at: SimTime,
    after: SimTime,
}

impl Watch {
    fn new(tolerance: Tolerance) -> Self {
        Self { tolerance, pieces: 0, skipped: 0, latest: SimTime::ZERO, rows: 0 }
    }

    #[cold]
    fn refuse(&mut self, file: &str, place: String, reason: Reason, text: String) -> Result<()> {
        self.skipped += 1;
        if self.skipped <= self.tolerance.skip_bad {
            return Ok(());
        }
        Err(TraceError::Bad { file: file.to_owned(), place, reason: reason.into_owned(), text })
    }

    /// Checks the rows from `from` on.
    #[inline]
    fn order(&mut self, out: &Batch, from: usize) -> Result<(), Early> {
        for at in &out.arrival[from..] {
            if *at < self.latest {
                if *at < self.latest.since(self.tolerance.window) {
                    return Err(Early { at: *at, after: self.latest });
                }
                continue;
            }
            self.latest = *at;
        }
        self.rows += (out.len() - from) as u64;
        Ok(())
    }

    /// Takes lines that are [`plain`](LineFormat::plain) and in order, some at a time; returns the bytes taken.
    #[inline]
    fn plain<F: LineFormat>(&mut self, text: &[u8], out: &mut Batch) -> usize {
        /// Few enough to be made room for in vain where the first one is not plain.
        const AT_ONCE: usize = 64;
        if !F::PLAIN {
            return 0;
        }
        let (mut at, mut latest, before) = (0, self.latest, out.len());
        out.push_all(AT_ONCE.min(Batch::ROWS - before), || {
            let (record, length) = F::plain(&text[at..])?;
            if record.arrival < latest {
                return None;
            }
            (latest, at) = (record.arrival, at + length);
            Some(record)
        });
        let rows = (out.len() - before) as u64;
        self.latest = latest;
        self.pieces += rows;
        self.rows += rows;
        at
    }

    /// The error of an early arrival; `rest` reads on, so that the window named in it sorts the whole trace.
    #[cold]
    fn runs_back(
        file: String,
        place: &str,
        early: Early,
        mut rest: impl FnMut(&mut Batch) -> bool,
    ) -> TraceError {
        let mut needed = early.after.since(early.at);
        let (mut latest, mut batch) = (early.after, Batch::new());
        while rest(&mut batch) {
            for at in &batch.arrival {
                latest = latest.max(*at);
                needed = needed.max(latest.since(*at));
            }
            batch.clear();
        }
        TraceError::RunsBack { file, place: format!(", {place}"), at: early.at, after: early.after, needed }
    }

    /// Refuses what has had so many `pieces` (as they are called) and no request.
    fn refuse_barren(&self, file: &str, pieces: &str) -> Result<()> {
        if self.rows > 0 || self.pieces < BARREN {
            return Ok(());
        }
        let what =
            format!("none of its first {} {pieces} is a request: is it of another format?", self.pieces);
        Err(TraceError::unreadable(file, what))
    }

    fn ended(&self, file: &str, hint: Option<String>) -> Result<bool> {
        match hint {
            Some(hint) if self.rows == 0 => Err(TraceError::Nothing(format!("{file}: {hint}"))),
            _ => Ok(false),
        }
    }
}

/// A line as a message shows it: at most 80 characters, nothing unprintable.
fn shortened(line: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(&line[..line.len().min(80)])
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if line.len() > 80 { format!("'{shown}…'") } else { format!("'{shown}'") }
}

/// A line format applied to an input.
pub struct Lines<F> {
    input: Input,
    format: F,
    watch: Watch,
}

impl<F: LineFormat> Lines<F> {
    /// Reads `input` as lines of `format`.
    pub fn new(input: Input, format: F, tolerance: Tolerance) -> Self {
        Self { input, format, watch: Watch::new(tolerance) }
    }

    /// Appends the rows of the next line, bad ones being passed over; `false` at the end.
    fn line(&mut self, out: &mut Batch) -> bool {
        let Ok((end, next)) = self.input.line() else { return false };
        if next == 0 {
            return false;
        }
        let rows = out.len();
        let line = &self.input.window()[..end];
        if self.format.line(line.strip_suffix(b"\r").unwrap_or(line), out).is_err() {
            out.truncate(rows);
        }
        self.input.consume(next);
        true
    }

    /// Takes lines of the window until it has no whole one or `out` is full; returns the bytes taken.
    fn window(&mut self, out: &mut Batch, whole: bool) -> Result<usize> {
        let Self { input, format, watch } = self;
        let window = input.window();
        let mut at = 0;
        while !out.is_full() && at < window.len() {
            let taken = watch.plain::<F>(&window[at..], out);
            if taken > 0 {
                at += taken;
                continue;
            }
            let (line, next) = match memchr::memchr(b'\n', &window[at..]) {
                Some(n) => (&window[at..at + n], at + n + 1),
                None if whole => (&window[at..], window.len()),
                None => break,
            };
            at = next;
            watch.pieces += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let rows = out.len();
            if let Err(reason) = format.line(line, out) {
                out.truncate(rows);
                watch.refuse(input.file(), format!("line {}", watch.pieces), reason, shortened(line))?;
            }
            if let Err(early) = watch.order(out, rows) {
                return Err(self.runs_back(early, at));
            }
        }
        Ok(at)
    }

    /// The error of an arrival that is too early; the lines behind the first `taken` bytes of the window are still to come.
    #[cold]
    fn runs_back(&mut self, early: Early, taken: usize) -> TraceError {
        self.input.consume(taken);
        let (file, place) = (self.input.file().to_owned(), format!("line {}", self.watch.pieces));
        Watch::runs_back(file, &place, early, |out| self.line(out))
    }
}

impl<F: LineFormat> TraceSource for Lines<F> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        while !out.is_full() {
            let before = self.input.window().len();
            let taken = self.window(out, false)?;
            self.input.consume(taken);
            if taken > 0 {
                self.watch.refuse_barren(self.input.file(), "lines")?;
                continue;
            }
            let after = self.input.fill(before + 1)?;
            if after == before {
                if before >= BUFFER {
                    let place = format!("line {}", self.watch.pieces + 1);
                    let reason = "the line is longer than 1 MiB: is this a text trace?".into();
                    let text = shortened(self.input.window());
                    let file = self.input.file().to_owned();
                    return Err(TraceError::Broken { file, place, reason, text });
                }
                let taken = self.window(out, true)?;
                self.input.consume(taken);
                break;
            }
        }
        if out.is_empty() && self.input.window().is_empty() {
            return self.watch.ended(self.input.file(), self.format.empty_hint());
        }
        Ok(!out.is_empty())
    }

    fn device_name(&self, device: u32) -> String {
        self.format.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.watch.skipped
    }
    fn progress(&self) -> Option<f64> {
        self.input.progress()
    }
}

/// A binary format applied to an input.
pub struct Records<F> {
    input: Input,
    format: F,
    watch: Watch,
}

impl<F: RecordFormat> Records<F> {
    /// Reads `input` as records of `format`.
    pub fn new(input: Input, format: F, tolerance: Tolerance) -> Self {
        Self { input, format, watch: Watch::new(tolerance) }
    }

    fn place(&self) -> String {
        format!("record {} (byte {})", self.watch.pieces, self.input.position())
    }

    fn fatal(&self, reason: &str) -> TraceError {
        let window = self.input.window();
        TraceError::Broken {
            file: self.input.file().to_owned(),
            place: self.place(),
            reason: reason.to_owned(),
            text: hex(&window[..window.len().min(24)]),
        }
    }

    /// The length of the next record; `None` at the end, or where the last one is cut short and that is tolerated.
    fn next(&mut self) -> Result<Option<usize>> {
        let have = self.input.fill(F::SHOWN)?;
        if have == 0 {
            return Ok(None);
        }
        self.watch.pieces += 1;
        let length = if have < F::HEAD {
            F::HEAD
        } else {
            self.format.length(&self.input.window()[..have.min(F::SHOWN)]).map_err(|r| self.fatal(&r))?
        };
        if self.input.fill(length)? >= length {
            return Ok(Some(length));
        }
        self.watch.skipped += 1;
        if self.watch.skipped <= self.watch.tolerance.skip_bad {
            let rest = self.input.window().len();
            self.input.consume(rest);
            return Ok(None);
        }
        let remedy = "the last record is cut short, as where recording was stopped or the copy is incomplete; \
                      skip_bad=1 reads the trace up to there";
        Err(self.fatal(remedy))
    }

    /// One record; `false` at the end.
    fn step(&mut self, out: &mut Batch) -> Result<bool> {
        let Some(length) = self.next()? else { return Ok(false) };
        let rows = out.len();
        let record = &self.input.window()[..length];
        if let Err(reason) = self.format.record(record, out) {
            out.truncate(rows);
            let text = hex(&record[..length.min(24)]);
            let place = self.place();
            self.watch.refuse(self.input.file(), place, reason, text)?;
        }
        if let Err(early) = self.watch.order(out, rows) {
            let (file, place) = (self.input.file().to_owned(), self.place());
            self.input.consume(length);
            return Err(Watch::runs_back(file, &place, early, |out| self.pass(out)));
        }
        self.input.consume(length);
        Ok(true)
    }

    /// Like [`Self::step`], without complaints.
    fn pass(&mut self, out: &mut Batch) -> bool {
        let Ok(Some(length)) = self.next() else { return false };
        let rows = out.len();
        if self.format.record(&self.input.window()[..length], out).is_err() {
            out.truncate(rows);
        }
        self.input.consume(length);
        true
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

impl<F: RecordFormat> TraceSource for Records<F> {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        while !out.is_full() {
            if !self.step(out)? {
                break;
            }
            self.watch.refuse_barren(self.input.file(), "records")?;
        }
        if out.is_empty() {
            return self.watch.ended(self.input.file(), self.format.empty_hint());
        }
        Ok(true)
    }
    fn device_name(&self, device: u32) -> String {
        self.format.device_name(device)
    }
    fn skipped(&self) -> u64 {
        self.watch.skipped
    }
    fn progress(&self) -> Option<f64> {
        self.input.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{HostOp, Lba};

    /// A number is a request of that many nanoseconds; `!` behind it refuses the line, when the request is there already.
    struct Late;

    impl LineFormat for Late {
        fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
            let text = std::str::from_utf8(line).unwrap();
            let arrival = SimTime(text.trim_end_matches('!').parse().unwrap());
            let (op, lba) = (HostOp::Read, Lba(0));
            out.push(Record { arrival, op, lba, blocks: 1, device: 0, stream: 0, fua: false });
            if text.ends_with('!') { Err("refused".into()) } else { Ok(()) }
        }
    }

    /// The times of the requests of a text, of which lines that are refused give none; `Err`: the time that ran back, and the window that sorts all.
    fn times(text: &'static str) -> Result<Vec<u64>, (u64, u64)> {
        let input = Input::from_reader("text", Box::new(text.as_bytes()), None).unwrap();
        let tolerance = Tolerance { skip_bad: 9, window: SimTime::ZERO };
        let (mut lines, mut out) = (Lines::new(input, Late, tolerance), Batch::new());
        match lines.next_batch(&mut out) {
            Ok(_) => Ok(out.arrival.iter().map(|at| at.0).collect()),
            Err(TraceError::RunsBack { at, needed, .. }) => Err((at.0, needed.0)),
            Err(e) => panic!("{e}"),
        }
    }

    /// Neither as requests, nor as what a window has to sort.
    #[test]
    fn what_a_refused_line_said_counts_for_nothing() {
        assert_eq!(times("1\n2!\n3\n0!\n3"), Ok(vec![1, 3, 3]));
        assert_eq!(times("100\n50\n1!\n900!\n20\n"), Err((50, 80)));
        assert_eq!(times("100\n7!\n50\n300\n250\n"), Err((50, 50)));
    }
}
