//! From what a user writes to an open trace: `PATH[:FORMAT[,k=v...]]`, `-` or `synth:NAME[,k=v...]`.

use crate::formats::{Clock, FORMATS, Format, Open, Sample, Verdict};
use crate::generators;
use crate::input::{Input, SAMPLE};
use crate::reader::Tolerance;
use crate::transforms::{SortWindow, Started};
use crate::{TraceError, TraceSource};
use smrlab_units::spec::{SpecError, Values, nearest, split_item};
use smrlab_units::{Blocks, SimTime};
use std::path::Path;

/// What a trace needs to know of the run that it is opened for.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenContext {
    /// The capacity that spans written as shares are taken of.
    pub capacity: Option<Blocks>,
    /// The seed of generators that are not given one.
    pub seed: u64,
    /// Bad lines to pass over where the trace is not given `skip_bad`.
    pub skip_bad: u64,
}

/// Opens the trace that `text` names.
///
/// # Errors
/// When the text is wrong, the file cannot be read, its format cannot be told, or it has no request.
pub fn open(text: &str, context: &OpenContext) -> Result<Box<dyn TraceSource>, TraceError> {
    if let Some(item) = text.strip_prefix("synth:") {
        return generators::open(item, context);
    }
    let (path, item) = split_target(text)?;
    let (name, mut pairs) = split_item(item);
    let input = Input::open(path)?;
    let (format, input) = match name {
        "" | "auto" => detect(input)?,
        name => (known(name)?, input),
    };
    let tolerated = context.skip_bad.to_string();
    if context.skip_bad > 0 && !pairs.iter().any(|(k, _)| *k == "skip_bad") {
        pairs.push(("skip_bad", &tolerated));
    }
    let values = Values::check(format.name, &format.parameters(), &pairs)?;
    open_as(input, path, format, &values)
}

/// Opens `input` (the file at `path`) as `format` with checked parameters.
fn open_as(
    input: Input,
    path: &str,
    format: &Format,
    values: &Values,
) -> Result<Box<dyn TraceSource>, TraceError> {
    let window = values.time("sort_window").unwrap_or_default();
    let tolerance = Tolerance { skip_bad: values.count("skip_bad").unwrap_or(0), window };
    let file = input.file().to_owned();
    let mut source = match format.open {
        Open::Stream(open) => open(input, values, tolerance)?,
        Open::File(_) if path == "-" => {
            let what = format!("{} needs a file that can be sought, not a pipe", format.name);
            return Err(TraceError::unreadable(&file, what));
        }
        Open::File(open) => open(Path::new(path), values)?,
    };
    if window > SimTime::ZERO {
        source = Box::new(SortWindow::new(source, window, &file));
    }
    let to_zero = match values.text("start") {
        Some("zero") => true,
        Some("keep") => false,
        _ => format.clock == Clock::World,
    };
    Ok(Box::new(Started::new(source, to_zero, &file)))
}

/// Opens bytes that are already in memory, in the named format (and `k=v` parameters), as [`open`] would a file.
///
/// # Errors
/// Like [`open`]; formats that need a file to seek in are refused.
pub fn open_bytes(bytes: Vec<u8>, item: &str) -> Result<Box<dyn TraceSource>, TraceError> {
    let input = Input::from_reader("(memory)", Box::new(std::io::Cursor::new(bytes)), None)?;
    let (name, pairs) = split_item(item);
    let (format, input) = match name {
        "" | "auto" => detect(input)?,
        name => (known(name)?, input),
    };
    let values = Values::check(format.name, &format.parameters(), &pairs)?;
    open_as(input, "-", format, &values)
}

/// Splits path and format. A colon that belongs to the file's name is recognised by the file being there.
fn split_target(text: &str) -> Result<(&str, &str), TraceError> {
    if Path::new(text).exists() || text == "-" {
        return Ok((text, ""));
    }
    let mut fallback = None;
    for (i, _) in text.rmatch_indices(':') {
        let (path, item) = (&text[..i], &text[i + 1..]);
        let (name, _) = split_item(item);
        if name.is_empty() || name == "auto" || Format::find(name).is_some() {
            return Ok((path, item));
        }
        if path == "-" || Path::new(path).exists() {
            fallback = Some(name);
        }
    }
    match fallback {
        Some(name) => Err(known(name).map(|_| ()).unwrap_err()),
        None => Ok((text, "")),
    }
}

fn known(name: &str) -> Result<&'static Format, TraceError> {
    Format::find(name).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
        let aliases = FORMATS.iter().flat_map(|f| f.aliases.iter().copied());
        TraceError::Spec(SpecError::UnknownName {
            what: "trace format",
            name: name.to_owned(),
            nearest: nearest(name, names.iter().copied().chain(aliases)),
            known: names.join(", "),
        })
    })
}

/// The formats that are surest of a sample.
fn candidates(sample: &Sample<'_>) -> Vec<&'static Format> {
    let verdicts: Vec<_> =
        FORMATS.iter().map(|f| ((f.detect)(sample), f)).filter(|(v, _)| *v != Verdict::No).collect();
    let best = verdicts.iter().map(|(v, _)| *v).max();
    verdicts.iter().filter(|(v, _)| Some(*v) == best).map(|(_, f)| *f).collect()
}

/// The format of an input by its first bytes.
fn detect(mut input: Input) -> Result<(&'static Format, Input), TraceError> {
    let have = input.fill(SAMPLE)?;
    if have == 0 {
        return Err(TraceError::Empty(input.file().to_owned()));
    }
    let bytes = &input.window()[..have.min(SAMPLE)];
    let mut candidates = candidates(&Sample { bytes, lenient: false });
    if candidates.is_empty() {
        // Some lines may be bad: the format's reader has the better message for that.
        candidates = self::candidates(&Sample { bytes, lenient: true });
    }
    match candidates[..] {
        [one] => Ok((one, input)),
        [] => {
            let names: Vec<_> = FORMATS.iter().map(|f| f.name).collect();
            Err(TraceError::Format(format!(
                "{file}: its format could not be told; name it, as in '{file}:csv,columns=…' (known: {})",
                names.join(", "),
                file = input.file(),
            )))
        }
        _ => {
            let names: Vec<_> = candidates.iter().map(|f| f.name).collect();
            Err(TraceError::Format(format!(
                "{file}: it could be {}; name the format, as in '{file}:{}'",
                names.join(" or "),
                names[0],
                file = input.file(),
            )))
        }
    }
}
