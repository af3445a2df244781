//! From what a user writes to an open trace: `PATH[:FORMAT[,k=v...]]`, `-` or `synth:NAME[,k=v...]`.

use crate::detect::detect;
use crate::formats::{FORMATS, Format};
use crate::generators;
use crate::input::Input;
use crate::raw::{Raw, open_as};
use crate::stop::Stoppable;
use crate::{Result, Stop, TraceSource, remote};
use smrlab_units::Blocks;
use smrlab_units::spec::{SpecError, Values, split_item};
use std::path::Path;

/// What a trace needs to know of the run that it is opened for.
#[derive(Clone, Debug, Default)]
pub struct OpenContext {
    /// The capacity that spans written as shares are taken of.
    pub capacity: Option<Blocks>,
    /// The seed of generators that are not given one.
    pub seed: u64,
    /// Bad lines to pass over where the trace is not given `skip_bad`.
    pub skip_bad: u64,
    /// Ends the reading.
    pub stop: Stop,
}

/// Opens the trace that `text` names.
///
/// # Errors
/// When the text is wrong, the file cannot be read, its format cannot be told, or it has no request.
pub fn open(text: &str, context: &OpenContext) -> Result<Box<dyn TraceSource>> {
    if let Some(item) = text.strip_prefix("synth:") {
        return synth(item, context);
    }
    let (path, item) = split_target(text)?;
    Ok(open_raw(path, item, context)?.started())
}

/// The requests of a generator.
pub(crate) fn synth(item: &str, context: &OpenContext) -> Result<Box<dyn TraceSource>> {
    Ok(Box::new(Stoppable::new(generators::open(item, context)?, &context.stop)))
}

/// Opens the file at `path` as the format `item`, whose name may be missing.
pub(crate) fn open_raw(path: &str, item: &str, context: &OpenContext) -> Result<Raw> {
    let (name, mut pairs) = split_item(item);
    let input = Input::open(path, &context.stop)?;
    let (format, input) = match name {
        "" | "auto" => detect(input)?,
        name => (known(name)?, input),
    };
    let tolerated = context.skip_bad.to_string();
    if context.skip_bad > 0 && !pairs.iter().any(|(k, _)| *k == "skip_bad") {
        pairs.push(("skip_bad", &tolerated));
    }
    let values = Values::check(format.name, &format.parameters(), &pairs)?;
    let raw = open_as(input, path, format, &values)?;
    Ok(Raw { source: Box::new(Stoppable::new(raw.source, &context.stop)), ..raw })
}

/// Opens bytes that are already in memory, in the named format (and `k=v` parameters), as [`open`] would a file.
///
/// # Errors
/// Like [`open`]; formats that need a file to seek in are refused.
pub fn open_bytes(bytes: Vec<u8>, item: &str) -> Result<Box<dyn TraceSource>> {
    let input = Input::from_reader("(memory)", Box::new(std::io::Cursor::new(bytes)), None)?;
    let (name, pairs) = split_item(item);
    let (format, input) = match name {
        "" | "auto" => detect(input)?,
        name => (known(name)?, input),
    };
    let values = Values::check(format.name, &format.parameters(), &pairs)?;
    Ok(open_as(input, "-", format, &values)?.started())
}

/// Splits path and format. A colon that belongs to the file's name is recognised by the file being there.
pub(crate) fn split_target(text: &str) -> Result<(&str, &str)> {
    if Path::new(text).exists() || text == "-" {
        return Ok((text, ""));
    }
    let mut fallback = None;
    let pattern = |path: &str| path.contains(['*', '?', '[']);
    for (i, _) in text.rmatch_indices(':') {
        let (path, item) = (&text[..i], &text[i + 1..]);
        let (name, _) = split_item(item);
        if name.is_empty() || name == "auto" || Format::find(name).is_some() {
            return Ok((path, item));
        }
        // In a URL a colon may stand before a port, or in the object's name.
        let object = remote::is_url(path) && name.chars().all(|c| c.is_ascii_alphabetic());
        if path == "-" || Path::new(path).exists() || pattern(path) || object {
            fallback = Some(name);
        }
    }
    match fallback {
        Some(name) => Err(known(name).map(|_| ()).unwrap_err()),
        None => Ok((text, "")),
    }
}

fn known(name: &str) -> Result<&'static Format> {
    Format::find(name).ok_or_else(|| {
        let aliases = FORMATS.iter().flat_map(|f| f.aliases.iter().copied());
        SpecError::unknown("trace format", name, FORMATS.iter().map(|f| f.name), aliases).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A colon stands before a format, a port, or within a name.
    #[test]
    fn a_format_is_told_from_other_colons() {
        for (text, parts) in [
            ("http://h:8080/a.csv", ("http://h:8080/a.csv", "")),
            ("http://h:8080/a.csv:spc,k=v:w", ("http://h:8080/a.csv", "spc,k=v:w")),
            ("s3://b/k:7", ("s3://b/k:7", "")),
            ("s3://b/k:disksim", ("s3://b/k", "disksim")),
            ("nowhere/a:b", ("nowhere/a:b", "")),
            ("nowhere/a:auto", ("nowhere/a", "auto")),
            ("-:", ("-", "")),
            ("/:csv,columns=time:ms;op", ("/", "csv,columns=time:ms;op")),
        ] {
            assert_eq!(split_target(text).unwrap(), parts);
        }
        for text in ["s3://b/k:disksym", "nowhere/*:disksym", "-:disksym", "/:disksym"] {
            let e = split_target(text).unwrap_err().to_string();
            assert!(e.contains("disksim"), "{e}");
        }
    }
}
