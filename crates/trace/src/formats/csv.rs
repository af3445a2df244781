//! Generic columns: the user's choice of them, or a preset by name.

use super::tabular::{BARE, Csv, Preset};
use super::{Clock, Format, Open, Verdict};
use crate::input::Input;
use crate::reader::{Lines, Tolerance};
use crate::{TraceError, TraceSource};
use smrlab_units::spec::{Kind, Param, Values};

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "csv",
    aliases: &["columns", "text"],
    summary: "generic columns: any separator, named columns with units, or a preset",
    reference: "columns= names them in order, separated by ';': time:UNIT, device, op, fua (true or false), lba (512-byte blocks), \
                offset:UNIT, size:UNIT, '-' for columns to pass over. Units: s, ms, us, ns, filetime for times; B, blk, 4KiB … for \
                offsets and sizes. Example: T.csv:csv,columns=time:us;op;offset:B;size:B,header=1. Columns can be found by \
                the names in the file's header instead: columns=time:us=Timestamp;op=Type;offset:B=Off;size:B=Len. Numbers \
                that begin with 0x are hexadecimal. A trace without times needs gap=, one without operations all=.",
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
        Param {
            name: "all",
            kind: Kind::Choice(&["read", "write"]),
            default: "",
            doc: "what all requests are where there is no column for it",
        },
        Param {
            name: "gap",
            kind: Kind::Time,
            default: "",
            doc: "time between requests where there is no column for it; 0: all arrive at once",
        },
        Param {
            name: "hex",
            kind: Kind::Switch,
            default: "off",
            doc: "on: offsets and sizes are hexadecimal without 0x, too",
        },
    ],
    clock: Clock::Trace,
    sort_window: "0",
    detect: |_| Verdict::No,
    open: Open::Stream(open),
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

fn open(input: Input, v: &Values, tolerance: Tolerance) -> Result<Box<dyn TraceSource>, TraceError> {
    let named = |name: &str| PRESETS.iter().find(|p| p.name == name);
    let csv = Csv::from_values(v.text("preset").and_then(named).unwrap_or(&BARE), v)?;
    Ok(Box::new(Lines::new(input, csv, tolerance)))
}
