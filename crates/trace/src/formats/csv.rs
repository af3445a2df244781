//! Generic columns: any separator, named columns with units. Formats that are only a choice of columns are presets of
//! this one, each in its own file.

use super::{Clock, Format, Open, Sample, Verdict};
use crate::devices::Devices;
use crate::fields::{Reason, columns, need, not, separated, time, touched, uint};
use crate::input::Input;
use crate::reader::{LineFormat, Lines, Tolerance};
use crate::{Batch, Record, TraceError, TraceSource};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{HostOp, Quantity, SimTime, Size};

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "csv",
    aliases: &["columns", "text"],
    summary: "generic columns: any separator, named columns with units, or a preset",
    reference: "columns= names them in order, separated by ';': time:UNIT, device, op, lba (512-byte blocks), offset:UNIT, \
                size:UNIT, '-' for columns to pass over. Units: s, ms, us, ns, filetime for times; B, blk, 4KiB … for \
                offsets and sizes. Example: T.csv:csv,columns=time:us;op;offset:B;size:B,header=1.",
    params: &[
        Param {
            name: "columns",
            kind: Kind::Text,
            default: "",
            doc: "the columns in order, separated by ';' (see the reference)",
        },
        Param {
            name: "preset",
            kind: Kind::Choice(&[
                "diskmon",
                "mqsim",
                "msr-cut",
                "tencent",
                "alibaba",
                "systor17",
                "vscsi-csv",
            ]),
            default: "",
            doc: "columns, separator and words of a known format; the other parameters override it",
        },
        Param {
            name: "sep",
            kind: Kind::Text,
            default: "",
            doc: "comma, tab, blank (any run of blanks and tabs), semicolon, pipe, or one character; default comma",
        },
        Param {
            name: "header",
            kind: Kind::Count(0, 1_000_000),
            default: "",
            doc: "lines to pass over; by default the first where its time does not begin with a digit",
        },
        Param {
            name: "read",
            kind: Kind::Text,
            default: "",
            doc: "words that mean a read, separated by ';'; by default what begins with R",
        },
        Param {
            name: "write",
            kind: Kind::Text,
            default: "",
            doc: "words that mean a write, separated by ';'; by default what begins with W",
        },
    ],
    clock: Clock::Trace,
    sort_window: "0",
    detect: |_| Verdict::No,
    open: Open::Stream(open),
};

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
const BARE: Preset = Preset { name: "csv", columns: "", sep: "comma", read: "", write: "", device: "" };

const PRESETS: &[Preset] = &[
    super::diskmon::PRESET,
    super::mqsim::PRESET,
    super::msr_cut::PRESET,
    super::tencent::PRESET,
    super::alibaba::PRESET,
    super::systor17::PRESET,
    super::vscsi_csv::PRESET,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Ignored,
    /// In units of so many nanoseconds.
    Time(u64),
    Device,
    Op,
    /// In units of so many bytes.
    Offset(u64),
    /// In units of so many bytes.
    Size(u64),
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
            "time" => Self::Time(match unit {
                "s" => 1_000_000_000,
                "ms" => 1_000_000,
                "us" => 1_000,
                "ns" => 1,
                "filetime" => 100,
                _ => return None,
            }),
            "device" | "dev" => Self::Device,
            "op" => Self::Op,
            "lba" => Self::Offset(bytes(512)?),
            "offset" => Self::Offset(bytes(1)?),
            "size" => Self::Size(bytes(1)?),
            _ => return None,
        })
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
pub(super) struct Csv {
    columns: Vec<Column>,
    /// `None`: any run of blanks and tabs.
    sep: Option<u8>,
    header: Header,
    read: Vec<Vec<u8>>,
    write: Vec<Vec<u8>>,
    devices: Devices,
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
    pub(super) fn preset(p: &Preset) -> Self {
        Self {
            columns: p.columns.split(';').map(|c| Column::parse(c).unwrap_or(Column::Ignored)).collect(),
            sep: separator(p.sep).unwrap_or(Some(b',')),
            header: Header::Guess,
            read: words(p.read),
            write: words(p.write),
            devices: Devices::new(p.device),
        }
    }

    fn from_values(v: &Values) -> Result<Self, SpecError> {
        let base = v.text("preset").and_then(|n| PRESETS.iter().find(|p| p.name == n)).unwrap_or(&BARE);
        let mut csv = Self::preset(base);
        if let Some(text) = v.text("columns") {
            let parsed: Option<Vec<_>> = text.split(';').map(Column::parse).collect();
            csv.columns = parsed.ok_or_else(|| {
                v.bad(
                    "columns",
                    "columns are time:s|ms|us|ns|filetime, device, op, lba, offset:UNIT, size:UNIT or -",
                )
            })?;
        }
        for (wanted, what) in [
            (find(&csv.columns, |c| matches!(c, Column::Time(_))) == 1, "one time:UNIT"),
            (find(&csv.columns, |c| matches!(c, Column::Offset(_))) == 1, "one lba or offset"),
            (find(&csv.columns, |c| matches!(c, Column::Size(_))) == 1, "one size"),
            (find(&csv.columns, |c| *c == Column::Op) == 1, "one op"),
        ] {
            if !wanted {
                return Err(v.bad("columns", format!("the columns must have {what}; or choose a preset")));
            }
        }
        if let Some(sep) = v.text("sep") {
            csv.sep = separator(sep)
                .ok_or_else(|| v.bad("sep", "comma, tab, blank, semicolon, pipe, or one character"))?;
        }
        if let Some(lines) = v.count("header") {
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
                let place = self.columns.iter().position(|c| matches!(c, Column::Time(_))).unwrap_or(0);
                let time = match self.sep {
                    Some(sep) => separated(line, sep).nth(place),
                    None => columns(line).nth(place),
                };
                time.and_then(|t| t.trim_ascii().first()).is_some_and(u8::is_ascii_alphabetic)
            }
        }
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
            Some(b'R' | b'r') if self.read.is_empty() => Ok(HostOp::Read),
            Some(b'W' | b'w') if self.write.is_empty() => Ok(HostOp::Write),
            _ => Err(not(text, "op", "a read or a write (read= and write= say which words mean what)")),
        }
    }

    fn row<'a>(&mut self, fields: &mut impl Iterator<Item = &'a [u8]>) -> Result<Record, Reason> {
        let (mut arrival, mut op, mut offset, mut size, mut device) = (SimTime::ZERO, HostOp::Read, 0, 0, 0);
        for i in 0..self.columns.len() {
            match self.columns[i] {
                // Columns passed over at the end of a line may be missing.
                Column::Ignored => {
                    fields.next();
                }
                Column::Time(unit) => arrival = time(need(fields, "time")?, unit, "time")?,
                Column::Device => device = self.devices.number(need(fields, "device")?)?,
                Column::Op => op = self.op(need(fields, "op")?)?,
                Column::Offset(unit) => offset = scaled(need(fields, "offset")?, unit, "offset")?,
                Column::Size(unit) => size = scaled(need(fields, "size")?, unit, "size")?,
            }
        }
        let (lba, blocks) = touched(offset, size)?;
        Ok(Record { arrival, op, lba, blocks, device, stream: 0 })
    }
}

fn find(columns: &[Column], which: impl Fn(&Column) -> bool) -> usize {
    columns.iter().filter(|c| which(c)).count()
}

fn scaled(text: &[u8], unit: u64, name: &'static str) -> Result<u64, Reason> {
    uint(text, name)?.checked_mul(unit).ok_or_else(|| not(text, name, "below 2^64 bytes"))
}

impl LineFormat for Csv {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        if self.header != Header::Lines(0) && self.in_header(line) {
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

fn open(input: Input, v: &Values, tolerance: Tolerance) -> Result<Box<dyn TraceSource>, TraceError> {
    Ok(Box::new(Lines::new(input, Csv::from_values(v)?, tolerance)))
}

/// Opens a preset that is a format of its own.
pub(super) fn open_preset(
    input: Input,
    preset: &Preset,
    tolerance: Tolerance,
) -> Result<Box<dyn TraceSource>, TraceError> {
    Ok(Box::new(Lines::new(input, Csv::preset(preset), tolerance)))
}

/// Whether every line of the sample fits the preset.
pub(super) fn fits(sample: &Sample<'_>, preset: &Preset) -> bool {
    sample.taken_by(Csv::preset(preset))
}
