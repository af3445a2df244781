//! Generic columns: the user's choice of them, or a preset by name.

use super::headed::Headed;
use super::tabular::{BARE, Csv, Preset};
use super::{Format, Sample, Verdict};
use crate::input::{Input, SAMPLE};
use crate::reader::{Lines, Tolerance};
use crate::{Result, TraceError, TraceSource};
use smrlab_units::spec::{Kind, Param, Values};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "csv",
    aliases: &["columns", "text"],
    summary: "generic columns: any separator, named columns with units, or a preset",
    reference: "columns= names them in order, separated by ';': time:UNIT, device, op, fua (true or false), lba (512-byte blocks), \
                offset:UNIT, size:UNIT, '-' for columns to pass over. Units: s, ms, us, ns, filetime for times; B, blk, 4KiB … for \
                offsets and sizes. Example: T.csv:csv,columns=time:us;op;offset:B;size:B,header=1. Columns can be found by \
                the names in the file's header instead: columns=time:us=Timestamp;op=Type;offset:B=Off;size:B=Len. A header with \
                names of our own needs nothing said: arrival_ns or time_s (us, ms), op, lba or offset_bytes, blocks or \
                size_bytes, and device, stream, fua where they are there; others are passed over. Of two names for the same \
                (lba and offset_bytes), columns= must say which counts. Lines that begin with # are comments. Numbers \
                that begin with 0x are hexadecimal. Operations are read, write, flush, discard, append, zone-open, zone-close, \
                zone-finish and zone-reset. A zone command is for the zones that it touches: with size 0, or none, for the one at its offset. A trace without times needs gap=, one without operations all=.",
    params: &[
        Param::new("columns", Kind::Text, "")
            .doc("the columns in order, separated by ';' (see the reference)"),
        Param::new(
            "preset",
            Kind::Choice(&["diskmon", "mqsim", "msr-cut", "tencent", "alibaba", "systor17", "vscsi-csv"]),
            "",
        )
        .doc("columns, separator and words of a known format; the other parameters override it"),
        Param::new("sep", Kind::Text, "").doc(
            "comma, tab, blank (any run of blanks and tabs), semicolon, pipe, or one character; default \
             comma",
        ),
        Param::new("header", Kind::Count(0, 1_000_000), "")
            .doc("lines to pass over; by default the first where its time does not begin with a digit"),
        Param::new("read", Kind::Text, "")
            .doc("words that mean a read, separated by ';'; by default what begins with R, and below a header with names of our own R and \
                  Read"),
        Param::new("write", Kind::Text, "")
            .doc("words that mean a write, separated by ';'; by default what begins with W, and below a header with names of our own W and \
                  Write"),
        Param::new("all", Kind::Choice(&["read", "write"]), "")
            .doc("what all requests are where there is no column for it"),
        Param::new("gap", Kind::Time, "")
            .doc("time between requests where there is no column for it; 0: all arrive at once"),
        Param::new("hex", Kind::Switch, "off").doc("on: offsets and sizes are hexadecimal without 0x, too"),
    ],
    ..Format::stream(detect, open)
};

const PRESETS: &[Preset] = &[
    super::diskmon::PRESET,
    super::mqsim::PRESET,
    super::msr_cut::PRESET,
    super::tencent::PRESET,
    super::alibaba::PRESET,
    super::systor17::PRESET,
    super::vscsi_csv::PRESET,
];

/// A header whose names say everything.
fn detect(sample: &Sample<'_>) -> Verdict {
    let sure = Headed::of(sample, &[]).is_some_and(|h| h.columns().is_some());
    if sure { Verdict::Said } else { Verdict::No }
}

fn open(mut input: Input, v: &Values, tolerance: Tolerance) -> Result<Box<dyn TraceSource>> {
    let named = |name: &str| PRESETS.iter().find(|p| p.name == name);
    let preset = v.text("preset").and_then(named);
    let mut headed = None;
    if preset.is_none() && v.text("columns").is_none() {
        let have = input.fill(SAMPLE)?.min(SAMPLE);
        let said: Vec<_> = [("gap", "time"), ("all", "op")]
            .into_iter()
            .filter(|(p, _)| v.text(p).is_some())
            .map(|(_, c)| c)
            .collect();
        let sample = Sample { bytes: &input.window()[..have], lenient: false };
        headed = Headed::of(&sample, &said);
        if headed.as_ref().is_none_or(|h| h.columns().is_none()) {
            let file = input.file();
            return Err(TraceError::Format(match &headed {
                Some(headed) => headed.message(file),
                None => undescribed(file, &sample),
            }));
        }
    }
    let csv = Csv::from_values(preset.unwrap_or(&BARE), v, headed.as_ref())?;
    Ok(Box::new(Lines::new(input, csv, tolerance)))
}

/// What to say of a table without a header and without columns=.
fn undescribed(file: &str, sample: &Sample<'_>) -> String {
    let first = sample.lines().next().map(String::from_utf8_lossy).unwrap_or_default();
    format!(
        "{file}: it has no header, so columns= must say what its columns are. Its first line is\n  {}\nas in\n  smrlab trace \
         info '{file}:csv,columns=time:ms;op;lba;size:blk'\n`smrlab explain csv` lists columns, units, separators and presets.",
        first.chars().take(160).collect::<String>()
    )
}
