//! The registry of trace formats: one file a format, one line here.

mod alibaba;
mod biosnoop;
mod blkparse;
mod blktrace;
mod btrecord;
mod csv;
mod diskmon;
mod disksim;
mod disksim_validate;
mod etw;
mod fio;
mod first_lines;
mod fiu;
pub(crate) mod headed;
mod hp_srt;
mod http;
mod mqsim;
mod msr;
mod msr_cut;
mod oracle_general;
pub mod parquet;
mod spc;
mod systor17;
pub(crate) mod tabular;
mod tencent;
mod thesios;
mod vscsi;
mod vscsi_csv;

use crate::input::Input;
use crate::reader::{LineFormat, Lines, Tolerance};
use crate::{Batch, Result, TraceSource};
use smrlab_units::spec::{Kind, Param, Values};
use std::path::Path;
use tabular::Preset;

/// Where a format's time 0 lies, which decides what `start=auto` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// At the start of the trace: times are kept.
    Trace,
    /// At some date or at the machine's boot: the first request is moved to 0.
    World,
}

/// What a format thinks of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Not this format.
    No,
    /// It could be, but so could others.
    Maybe,
    /// It is.
    Yes,
    /// Its first line says so: what others take for it does not count.
    Said,
}

impl From<bool> for Verdict {
    /// For formats that are sure either way.
    fn from(is_it: bool) -> Self {
        if is_it { Self::Yes } else { Self::No }
    }
}

/// What opening gives.
pub type Opened = Result<Box<dyn TraceSource>>;

/// How a format's file is opened.
#[derive(Clone, Copy)]
pub enum Open {
    /// From a stream of decompressed bytes.
    Stream(fn(Input, &Values, Tolerance) -> Opened),
    /// From such a stream of lines that all have these columns.
    Columns(&'static Preset),
    /// From a file that can be sought.
    File(fn(&Path, &Values) -> Opened),
}

/// A trace format.
#[derive(Clone, Copy)]
pub struct Format {
    /// What users call it.
    pub name: &'static str,
    /// Other names that are taken.
    pub aliases: &'static [&'static str],
    /// One line.
    pub summary: &'static str,
    /// Where it is defined, and traps.
    pub reference: &'static str,
    /// Its own parameters; [`Format::parameters`] has the common ones too.
    pub params: &'static [Param],
    /// Where its clock starts.
    pub clock: Clock,
    /// The default of `sort_window`: not 0 where the format's files are known to be out of order.
    pub sort_window: &'static str,
    /// Tells it from a sample.
    pub detect: fn(&Sample<'_>) -> Verdict,
    /// Opens it.
    pub open: Open,
}

/// All formats, in the order in which `smrlab list formats` shows them.
pub const FORMATS: &[Format] = &[
    parquet::FORMAT,
    msr::FORMAT,
    spc::FORMAT,
    csv::FORMAT,
    diskmon::FORMAT,
    mqsim::FORMAT,
    msr_cut::FORMAT,
    blkparse::FORMAT,
    blktrace::FORMAT,
    disksim::FORMAT,
    hp_srt::FORMAT,
    disksim_validate::FORMAT,
    fio::FORMAT,
    vscsi::FORMAT,
    vscsi_csv::FORMAT,
    tencent::FORMAT,
    alibaba::FORMAT,
    systor17::FORMAT,
    fiu::FORMAT,
    http::FORMAT,
    etw::FORMAT,
    thesios::FORMAT,
    biosnoop::FORMAT,
    btrecord::FORMAT,
    oracle_general::FORMAT,
];

/// The parameters that every format has.
const COMMON: &[Param] = &[
    Param::new("skip_bad", Kind::Count(0, u64::MAX), "0")
        .doc("bad lines or records to pass over and count; the next one is an error"),
    Param::new("sort_window", Kind::Time, "0").doc(
        "requests up to this much out of order are sorted (costs memory for the requests of one \
         window)",
    ),
    Param::new("start", Kind::Choice(&["auto", "zero", "keep"]), "auto").doc(
        "zero: the first request arrives at 0; keep: times as in the file; auto: keep where the \
         format's times count from the start of the trace, zero where they are dates or times since \
         boot",
    ),
];

impl Format {
    /// What most formats have: no other names, no parameters of its own, times from the trace's start, in order.
    const fn new(detect: fn(&Sample<'_>) -> Verdict, open: Open) -> Self {
        Self {
            name: "",
            aliases: &[],
            summary: "",
            reference: "",
            params: &[],
            clock: Clock::Trace,
            sort_window: "0",
            detect,
            open,
        }
    }

    /// One that is read from front to back.
    const fn stream(
        detect: fn(&Sample<'_>) -> Verdict,
        open: fn(Input, &Values, Tolerance) -> Opened,
    ) -> Self {
        Self::new(detect, Open::Stream(open))
    }

    /// One of lines, whose parser needs no parameters.
    const fn lines<F: LineFormat + Default + 'static>(detect: fn(&Sample<'_>) -> Verdict) -> Self {
        Self::stream(detect, |input, _, tolerance| Ok(Box::new(Lines::new(input, F::default(), tolerance))))
    }

    /// One of lines that all have these columns.
    const fn columns(preset: &'static Preset, detect: fn(&Sample<'_>) -> Verdict) -> Self {
        Self { name: preset.name, ..Self::new(detect, Open::Columns(preset)) }
    }

    /// The format that `name` means.
    pub fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|f| f.name == name || f.aliases.contains(&name))
    }

    /// All parameters: the format's own and the common ones.
    pub fn parameters(&self) -> Vec<Param> {
        let mut all = self.params.to_vec();
        all.extend_from_slice(COMMON);
        for p in all.iter_mut().filter(|p| p.name == "sort_window") {
            p.default = self.sort_window;
        }
        all
    }
}

/// The first bytes of a trace, decompressed.
pub struct Sample<'a> {
    /// At most [`crate::input::SAMPLE`] bytes.
    pub bytes: &'a [u8],
    /// Half of the lines may be bad: the second look, when no format takes them all.
    pub lenient: bool,
}

impl<'a> Sample<'a> {
    /// The first whole lines that are not empty, at most 50.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        // The last line may be cut off by the sample's end, unless the trace ends before it or it is the only one.
        let whole = match memchr::memrchr(b'\n', bytes) {
            Some(n) if bytes.len() >= crate::input::SAMPLE => n + 1,
            _ => bytes.len(),
        };
        bytes[..whole]
            .split(|b| *b == b'\n')
            .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
            .filter(|l| !l.is_empty())
            .take(50)
    }

    /// Whether there are lines and `good` is true of all of them (of half, when lenient).
    pub fn all_lines(&self, mut good: impl FnMut(&[u8]) -> bool) -> bool {
        let (mut all, mut fine) = (0, 0);
        for line in self.lines() {
            all += 1;
            fine += u32::from(good(line));
        }
        all > 0 && (fine == all || (self.lenient && fine * 2 >= all))
    }

    /// Whether `format` takes the lines and finds at least one request in them.
    pub fn taken_by(&self, mut format: impl LineFormat) -> bool {
        let mut rows = Batch::new();
        self.all_lines(|l| format.line(l, &mut rows).is_ok()) && !rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::SAMPLE;

    /// Blank lines are none, 50 are enough, and what a full sample cuts off is none unless there is no other.
    #[test]
    fn a_sample_is_its_first_whole_lines() {
        let lengths = |text: &str| {
            let sample = Sample { bytes: text.as_bytes(), lenient: false };
            sample.lines().map(<[u8]>::len).collect::<Vec<_>>()
        };
        let all: String = (1..60).map(|n| format!("\r\n{}\r\n\n", "x".repeat(n))).collect();
        assert_eq!(lengths(&all), (1..=50).collect::<Vec<_>>());
        let (line, last) = (format!("{}\n", "x".repeat(SAMPLE / 4 - 1)), "x".repeat(SAMPLE / 4));
        let three = [SAMPLE / 4 - 1; 3];
        assert_eq!(lengths(&format!("{}{last}", line.repeat(3))), three);
        assert_eq!(lengths(&line.repeat(4)), [SAMPLE / 4 - 1; 4], "it ends with the sample");
        assert_eq!(
            lengths(&format!("{}{}", line.repeat(3), &last[1..])),
            [SAMPLE / 4 - 1; 4],
            "it is all there is"
        );
        assert_eq!(lengths(&last.repeat(4)), [SAMPLE]);
    }
}
