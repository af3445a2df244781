//! The parser of lines of columns: any separator, named columns with units. `csv` takes a user's choice of columns;
//! formats that are only such a choice are a [`Preset`], each in its own file.

use super::Sample;
use super::first_lines::comment;
use super::headed::Headed;
use crate::devices::Devices;
use crate::fields::{Reason, columns, filetime, hex, need, not, number, separated, time, touched, uint32};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::spec::{SpecError, Values};
use smrlab_units::{BLOCK_BYTES, HostOp, Lba, Quantity, SimTime, Size};

/// A choice of columns, as the parameters of the format would say it.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The columns.
    pub columns: &'static str,
    /// The separator.
    pub sep: &'static str,
    /// Words for reads; empty: what begins with R.
    pub read: &'static str,
    /// Words for writes; empty: what begins with W.
    pub write: &'static str,
    /// What the trace's documentation puts before a device's number.
    pub device: &'static str,
}

/// No columns, a comma, and words by their first letter.
pub(super) const BARE: Preset =
    Preset { name: "csv", columns: "", sep: "comma", read: "", write: "", device: "" };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Ignored,
    /// In units of so many nanoseconds.
    Time(u64),
    /// In ticks since 1601.
    FileTime,
    Device,
    Stream,
    Op,
    /// In units of so many bytes.
    Offset(u64),
    /// In units of so many bytes.
    Size(u64),
    /// True or false.
    Fua,
}

impl Column {
    fn parse(text: &str) -> Option<Self> {
        let (name, unit) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let bytes = |default: u64| match unit {
            "" => Some(default),
            "B" | "bytes" => Some(1),
            "blk" | "blocks" | "sectors" => Some(512),
            _ => match Size::parse(unit).ok()? {
                Size::Bytes(b) if b > 0 => Some(b),
                _ => None,
            },
        };
        Some(match name {
            "-" | "" => Self::Ignored,
            "time" if unit == "filetime" => Self::FileTime,
            "time" => Self::Time(match unit {
                "s" => 1_000_000_000,
                "ms" => 1_000_000,
                "us" => 1_000,
                "ns" => 1,
                _ => return None,
            }),
            "device" | "dev" => Self::Device,
            "op" => Self::Op,
            "fua" => Self::Fua,
            "lba" => Self::Offset(bytes(512)?),
            "offset" => Self::Offset(bytes(1)?),
            "size" => Self::Size(bytes(1)?),
            "stream" => Self::Stream,
            _ => return None,
        })
    }
}

impl Column {
    fn is_time(&self) -> bool {
        matches!(self, Self::Time(_) | Self::FileTime)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// So many lines still.
    Lines(u64),
    /// The first line, where its time begins with a letter.
    Guess,
}

/// The parser of a choice of columns.
pub(crate) struct Csv {
    columns: Vec<Column>,
    /// `None`: any run of blanks and tabs.
    sep: Option<u8>,
    header: Header,
    read: Vec<Vec<u8>>,
    write: Vec<Vec<u8>>,
    devices: Devices,
    /// Where columns are named by the header: the name of each of `columns`, and where it was found.
    names: Vec<Vec<u8>>,
    places: Vec<usize>,
    /// A comment said so, which may stand above a header.
    commented: bool,
    /// What all requests are, where no column says it.
    op: HostOp,
    /// Time between requests, where no column says it.
    gap: Option<SimTime>,
    now: SimTime,
    hex: bool,
    /// Operations may be numbers, as in the Parquet traces that `trace convert` writes.
    numbered: bool,
    /// The names of the header say what the columns are.
    headed: bool,
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(';').filter(|w| !w.is_empty()).map(|w| w.trim().as_bytes().to_vec()).collect()
}

fn separator(text: &str) -> Option<Option<u8>> {
    Some(match text {
        "comma" => Some(b','),
        "tab" => Some(b'\t'),
        "semicolon" => Some(b';'),
        "pipe" => Some(b'|'),
        "blank" | "space" => None,
        t if t.len() == 1 => Some(t.as_bytes()[0]),
        _ => return None,
    })
}

impl Csv {
    /// A preset as it is.
    pub(crate) fn preset(p: &Preset) -> Self {
        Self {
            columns: p.columns.split(';').map(|c| Column::parse(c).unwrap_or(Column::Ignored)).collect(),
            sep: separator(p.sep).unwrap_or(Some(b',')),
            header: Header::Guess,
            read: words(p.read),
            write: words(p.write),
            devices: Devices::new(p.device),
            names: Vec::new(),
            places: Vec::new(),
            commented: false,
            op: HostOp::Read,
            gap: None,
            now: SimTime::ZERO,
            hex: false,
            headed: false,
            numbered: false,
        }
    }

    /// A preset with what the format's parameters say otherwise.
    ///
    /// # Errors
    /// Columns that are unknown, missing or there twice, and an unknown separator.
    pub(super) fn from_values(base: &Preset, v: &Values, headed: Option<&Headed>) -> Result<Self, SpecError> {
        let mut csv = Self::preset(base);
        let own = headed.and_then(Headed::columns);
        if let Some(headed) = headed {
            csv.sep = headed.sep;
            csv.headed = true;
            csv.numbered = headed.is_arrival_ns();
        }
        if let Some(text) = v.text("columns").or(own.as_deref()) {
            let named = text.contains('=');
            let split = text.split(';').map(|c| c.split_once('=').unwrap_or((c, "")));
            if named {
                csv.names = split.clone().map(|(_, name)| name.trim().as_bytes().to_vec()).collect();
                if csv.names.iter().any(Vec::is_empty) {
                    return Err(
                        v.bad("columns", "either all columns have the name of a header behind '=', or none")
                    );
                }
            }
            let parsed: Option<Vec<_>> = split.map(|(column, _)| Column::parse(column)).collect();
            csv.columns = parsed.ok_or_else(|| {
                v.bad(
                    "columns",
                    "columns are time:s|ms|us|ns|filetime, device, op, fua, lba, offset:UNIT, size:UNIT or -",
                )
            })?;
        }
        csv.gap = v.given("gap", Values::time);
        csv.hex = v.on("hex");
        if v.text("all") == Some("write") {
            csv.op = HostOp::Write;
        }
        for (wanted, what) in [
            (
                count(&csv.columns, Column::is_time) == usize::from(csv.gap.is_none()),
                "one time:UNIT, or else gap=",
            ),
            (count(&csv.columns, |c| matches!(c, Column::Offset(_))) == 1, "one lba or offset"),
            (count(&csv.columns, |c| matches!(c, Column::Size(_))) == 1, "one size"),
            (
                count(&csv.columns, |c| *c == Column::Op) == usize::from(v.text("all").is_none()),
                "one op, or else all=",
            ),
        ] {
            if !wanted {
                return Err(v.bad("columns", format!("the columns must have {what}; or choose a preset")));
            }
        }
        if let Some(sep) = v.text("sep") {
            csv.sep = separator(sep)
                .ok_or_else(|| v.bad("sep", "comma, tab, blank, semicolon, pipe, or one character"))?;
        }
        if let Some(lines) = v.given("header", Values::count) {
            csv.header = Header::Lines(lines);
        }
        if let Some(w) = v.text("read") {
            csv.read = words(w);
        }
        if let Some(w) = v.text("write") {
            csv.write = words(w);
        }
        Ok(csv)
    }

    /// Whether `line` is to be passed over as a header; counts it.
    fn in_header(&mut self, line: &[u8]) -> bool {
        match self.header {
            Header::Lines(n) => {
                self.header = Header::Lines(n - 1);
                true
            }
            Header::Guess => {
                self.header = Header::Lines(0);
                // A number in its place tells a request from a header: of the time, or else of the address.
                let address = || self.columns.iter().position(|c| matches!(c, Column::Offset(_)));
                let place = self.columns.iter().position(Column::is_time).or_else(address).unwrap_or(0);
                let time = match self.sep {
                    Some(sep) => separated(line, sep).nth(place),
                    None => columns(line).nth(place),
                };
                time.and_then(|t| t.trim_ascii().first()).is_some_and(u8::is_ascii_alphabetic)
            }
        }
    }

    /// Whether a word that begins as `name` does means it: what stands below names of our own has to be all of it.
    fn means(&self, text: &[u8], name: &str) -> bool {
        !self.headed || text.len() == 1 || text.eq_ignore_ascii_case(name.as_bytes())
    }

    fn op(&self, text: &[u8]) -> Result<HostOp, Reason> {
        let text = text.trim_ascii();
        if self.read.iter().any(|w| w == text) {
            return Ok(HostOp::Read);
        }
        if self.write.iter().any(|w| w == text) {
            return Ok(HostOp::Write);
        }
        match text.first() {
            Some(b'R' | b'r') if self.read.is_empty() && self.means(text, "read") => Ok(HostOp::Read),
            Some(b'W' | b'w') if self.write.is_empty() && self.means(text, "write") => Ok(HostOp::Write),
            Some(n @ b'0'..=b'8') if self.numbered && text.len() == 1 => {
                Ok(HostOp::ALL[usize::from(n - b'0')])
            }
            _ => HostOp::ALL[2..]
                .iter()
                .copied()
                .find(|op| text.eq_ignore_ascii_case(op.name().as_bytes()))
                .ok_or_else(|| unknown(text)),
        }
    }

    fn row<'a>(&mut self, fields: &mut impl Iterator<Item = &'a [u8]>) -> Result<Record, Reason> {
        let mut record = Record {
            arrival: self.now,
            op: self.op,
            lba: Lba(0),
            blocks: 0,
            device: 0,
            stream: 0,
            fua: false,
        };
        let (mut offset, mut size) = (0, 0);
        for i in 0..self.columns.len() {
            match self.columns[i] {
                // Columns passed over at the end of a line may be missing.
                Column::Ignored => {
                    fields.next();
                }
                Column::Time(unit) => record.arrival = time(need(fields, "time")?, unit, "time")?,
                Column::FileTime => record.arrival = filetime(need(fields, "time")?, "time")?,
                Column::Device => record.device = self.devices.number(need(fields, "device")?)?,
                Column::Stream => {
                    let n = uint32(need(fields, "stream")?, "stream")?;
                    record.stream = u16::try_from(n)
                        .map_err(|_| Reason::Borrowed("the stream's number is above 65535"))?;
                }
                Column::Op => record.op = self.op(need(fields, "op")?)?,
                Column::Fua => record.fua = flag(need(fields, "fua")?)?,
                Column::Offset(unit) => offset = scaled(need(fields, "offset")?, unit, self.hex, "offset")?,
                // A zone command has a place and no size of its own: nothing is 0.
                Column::Size(unit) => match need(fields, "size")?.trim_ascii() {
                    b"" => size = 0,
                    text => size = scaled(text, unit, self.hex, "size")?,
                },
            }
        }
        if size == 0 && matches!(record.op, HostOp::Zone(_)) {
            size = BLOCK_BYTES;
        }
        record.fua &= record.op == HostOp::Write;
        if record.op != HostOp::Flush {
            (record.lba, record.blocks) = touched(offset, size)?;
        }
        if let Some(gap) = self.gap {
            self.now = SimTime(self.now.0.saturating_add(gap.0));
        }
        Ok(record)
    }

    /// Finds the named columns in the header.
    fn find_names(&mut self, line: &[u8]) -> Result<(), Reason> {
        let found = fields_of(line, self.sep);
        let place = |name: &Vec<u8>| {
            let mut places = (0..found.len()).filter(|n| unquoted(found[*n]) == name.as_slice());
            let (first, second) = (places.next(), places.next());
            let name = String::from_utf8_lossy(name);
            if second.is_some() {
                return Err(Reason::Owned(format!(
                    "the header has two columns '{name}'; give columns= in order, without names and with '-' for \
                     columns to pass over, and header=1"
                )));
            }
            first.ok_or_else(|| {
                let known: Vec<_> = found.iter().map(|f| String::from_utf8_lossy(unquoted(f))).collect();
                Reason::Owned(format!("the header has no column '{name}'; it has {}", known.join(", ")))
            })
        };
        self.places = self.names.iter().map(place).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// A word that is no operation, and what may be meant.
#[cold]
fn unknown(text: &[u8]) -> Reason {
    let discards = ["trim", "unmap", "deallocate"];
    if discards.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes())) {
        return not(text, "op", "an operation: that is called discard here");
    }
    not(text, "op", "a read or a write (read= and write= say which words mean what)")
}

fn flag(text: &[u8]) -> Result<bool, Reason> {
    let text = text.trim_ascii();
    match text {
        b"1" => Ok(true),
        b"0" | b"" => Ok(false),
        t if t.eq_ignore_ascii_case(b"true") => Ok(true),
        t if t.eq_ignore_ascii_case(b"false") => Ok(false),
        _ => Err(not(text, "fua", "true or false")),
    }
}

fn fields_of(line: &[u8], sep: Option<u8>) -> Vec<&[u8]> {
    match sep {
        Some(sep) => separated(line, sep).collect(),
        None => columns(line).collect(),
    }
}

fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(text)
}

fn count(columns: &[Column], which: impl Fn(&Column) -> bool) -> usize {
    columns.iter().filter(|c| which(c)).count()
}

fn scaled(text: &[u8], unit: u64, bare_hex: bool, name: &'static str) -> Result<u64, Reason> {
    let n = if bare_hex { hex(text, name).or_else(|_| number(text, name)) } else { number(text, name) };
    n?.checked_mul(unit).ok_or_else(|| not(text, name, "below 2^64 bytes"))
}

impl LineFormat for Csv {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if matches!(self.header, Header::Lines(1..)) && self.in_header(line) {
            return Ok(());
        }
        if let Some(text) = comment(line) {
            // It may name the columns; otherwise it says nothing.
            self.commented |= self.places.is_empty() && self.find_names(text).is_ok();
            return Ok(());
        }
        if !self.names.is_empty() {
            if self.places.is_empty() {
                return self.find_names(line);
            }
            // A header below such a comment.
            if std::mem::take(&mut self.commented) && self.find_names(line).is_ok() {
                return Ok(());
            }
            let fields = fields_of(line, self.sep);
            let places = std::mem::take(&mut self.places);
            let record = self.row(&mut places.iter().map_while(|p| fields.get(*p).copied().map(unquoted)));
            self.places = places;
            out.push(record?);
            return Ok(());
        }
        if self.header == Header::Guess && self.in_header(line) {
            return Ok(());
        }
        let record = match self.sep {
            Some(sep) => self.row(&mut separated(line, sep)),
            None => self.row(&mut columns(line)),
        }?;
        out.push(record);
        Ok(())
    }

    fn device_name(&self, device: u32) -> String {
        self.devices.name(device)
    }
}

/// Whether every line of the sample fits the preset.
pub(super) fn fits(sample: &Sample<'_>, preset: &Preset) -> bool {
    sample.taken_by(Csv::preset(preset))
}
