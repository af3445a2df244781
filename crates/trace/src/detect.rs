//! Telling a trace's format by its first bytes.

use crate::formats::headed::Headed;
use crate::formats::{FORMATS, Format, Open, Sample, Verdict};
use crate::input::{Input, SAMPLE};
use crate::raw::open_as;
use crate::{Batch, Result, TraceError};
use smrlab_units::spec::Values;
use smrlab_units::{BLOCK_BYTES, HostOp, counted};

/// The formats that are surest of a sample.
fn candidates(sample: &Sample<'_>) -> Vec<&'static Format> {
    let verdicts: Vec<_> =
        FORMATS.iter().map(|f| ((f.detect)(sample), f)).filter(|(v, _)| *v != Verdict::No).collect();
    let best = verdicts.iter().map(|(v, _)| *v).max();
    verdicts.iter().filter(|(v, _)| Some(*v) == best).map(|(_, f)| *f).collect()
}

/// The format of an input by its first bytes.
///
/// # Errors
/// An empty input, no format that fits, or several.
pub(crate) fn detect(mut input: Input) -> Result<(&'static Format, Input)> {
    let have = input.fill(SAMPLE)?;
    if have == 0 {
        return Err(TraceError::Empty(input.file().to_owned()));
    }
    let bytes = &input.window()[..have.min(SAMPLE)];
    // A format without a header could take the lines below one that leaves open what they mean.
    if let Some(headed) = Headed::of(&Sample { bytes, lenient: false }, &[]).filter(Headed::is_ambiguous) {
        return Err(TraceError::Format(headed.message(input.file())));
    }
    let mut candidates = candidates(&Sample { bytes, lenient: false });
    if candidates.is_empty() {
        // Some lines may be bad: the format's reader has the better message for that.
        candidates = self::candidates(&Sample { bytes, lenient: true });
    }
    let file = input.file();
    match candidates[..] {
        [one] => Ok((one, input)),
        [] => {
            let sample = Sample { bytes, lenient: false };
            if let Some(headed) = Headed::of(&sample, &[]) {
                return Err(TraceError::Format(headed.message(file)));
            }
            if Headed::alone(&sample) {
                return Err(TraceError::Empty(file.to_owned()));
            }
            if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
                return Err(TraceError::Format(format!(
                    "{file}: it is text in UTF-16, as Windows programs write it; make it UTF-8 first: iconv -f UTF-16 -t UTF-8"
                )));
            }
            let names: Vec<_> = FORMATS.iter().map(|f| f.name).collect();
            Err(TraceError::Format(format!(
                "{file}: its format could not be told; name it, as in '{file}:csv,columns=time:ms;op;lba;size:blk' \
                 (known: {}; `smrlab explain csv` says how to describe columns)",
                names.join(", "),
            )))
        }
        _ => Err(TraceError::Format(ambiguous(file, bytes, &candidates))),
    }
}

/// What each of several readings would mean, so that the user can choose.
fn ambiguous(file: &str, bytes: &[u8], candidates: &[&'static Format]) -> String {
    let names: Vec<_> = candidates.iter().map(|f| f.name).collect();
    let mut text =
        format!("{file}: it could be {}; name the format, as in '{file}:{}':", names.join(" or "), names[0]);
    for format in candidates {
        let reading = reading(bytes, format).unwrap_or_else(|e| format!("cannot be read so: {e}"));
        text.push_str(&format!("\n  {:<10} {reading}", format.name));
    }
    text.push_str(&format!(
        "\nor describe the columns: '{file}:csv,columns=time:ms;device;lba;size:blk;op,sep=blank,read=1,write=0'"
    ));
    text
}

/// The first lines of a sample as a format would read them.
fn reading(bytes: &[u8], format: &Format) -> Result<String> {
    if matches!(format.open, Open::File(_)) {
        return Ok(String::new());
    }
    // The last line may be cut off by the sample's end.
    let whole = memchr::memrchr(b'\n', bytes).map_or(bytes.len(), |n| n + 1);
    let input = Input::from_reader("sample", Box::new(std::io::Cursor::new(bytes[..whole].to_vec())), None)?;
    let values = Values::check(format.name, &format.parameters(), &[])?;
    let mut source = open_as(input, "-", format, &values)?.source;
    let (mut batch, mut requests, mut reads, mut blocks, mut end) = (Batch::new(), 0u64, 0u64, 0u64, 0u64);
    let (mut first, mut last) = (None, 0);
    while source.next_batch(&mut batch)? {
        for r in batch.iter() {
            requests += 1;
            reads += u64::from(r.op == HostOp::Read);
            blocks += u64::from(r.blocks);
            end = end.max(r.end().0);
            last = r.arrival.0;
            first.get_or_insert(last);
        }
    }
    let seconds = (last - first.unwrap_or(last)) as f64 / 1e9;
    let rate = if seconds > 0.0 {
        format!("{:.3} requests/s", requests as f64 / seconds)
    } else {
        "at once".to_owned()
    };
    let mean = blocks as f64 * BLOCK_BYTES as f64 / requests.max(1) as f64;
    Ok(format!(
        "{} ({}) in {seconds:.6} s ({rate}), {:.1} KiB each, up to {:.3} GB",
        counted(requests, "request"),
        counted(reads, "read"),
        mean / 1024.0,
        end as f64 * BLOCK_BYTES as f64 / 1e9,
    ))
}
