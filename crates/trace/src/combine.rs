//! One trace out of several: merged by time or mixed in bursts, on the same addresses or side by side.

use crate::open::{open_raw, split_target, synth};
use crate::raw::{Raw, Start};
use crate::transforms::{Chain, Concat, DeviceExtents, Interleave, Merge, Offset, Origin, Peeked, Started};
use crate::{OpenContext, Result, TraceError, TraceSource, target};
use smrlab_units::spec::{Kind, Param, SpecError, Values, split_item};
use smrlab_units::{Blocks, SimTime};
use std::collections::BTreeMap;

/// How several traces share the address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressSpace {
    /// Addresses are kept: traces may touch the same blocks.
    #[default]
    Overlap,
    /// Traces, and the devices of each, lie one behind the other.
    Concat,
}

/// The order in which the requests of several traces come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// By their arrivals. Files of one format whose times are dates, or count from boot, are parts of one recording: the
    /// first request of all of them is at 0.
    #[default]
    ByTime,
    /// One trace after the other, this long after the last arrival of the one before.
    Chain(SimTime),
    /// In bursts of so many requests, drawn with the seed.
    Bursts {
        /// Requests in a burst.
        burst: u64,
        /// Seed of the order.
        seed: u64,
    },
}

impl Mix {
    /// `time`, `chain[,gap=T]` or `bursts[,requests=N]`.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str, seed: u64) -> Result<Self, SpecError> {
        let (name, pairs) = split_item(text);
        let gap = Param::new("gap", Kind::Time, "0").doc("pause between two traces");
        let burst = Param::new("requests", Kind::Count(1, u64::MAX), "1").doc("requests in a burst");
        match name {
            "time" => Values::check("time", &[], &pairs).map(|_| Self::ByTime),
            "chain" => Values::check("chain", &[gap], &pairs).map(|v| Self::Chain(v.time("gap"))),
            "bursts" => Values::check("bursts", &[burst], &pairs)
                .map(|v| Self::Bursts { burst: v.count("requests"), seed }),
            _ => Err(SpecError::Other(format!(
                "'{text}' is not accepted: time, chain[,gap=T] or bursts[,requests=N]"
            ))),
        }
    }
}

/// A trace to combine, or the files that its name stands for.
enum Input {
    Synth(Box<dyn TraceSource>),
    Files(Vec<Raw>),
}

/// Opens the traces that `texts` name, as [`open`](crate::open) does, and makes one of them. A directory or a pattern of
/// names stands for its files, merged by time. The stream of a request is the number of its trace. With
/// [`AddressSpace::Concat`] every trace is read once before, for its extent.
///
/// # Errors
/// Those of the traces; no trace; standard input where it would be read twice.
pub fn combine(
    texts: &[String],
    space: AddressSpace,
    mix: Mix,
    context: &OpenContext,
) -> Result<Box<dyn TraceSource>> {
    // Before anything is read: who writes into a pipe may take long.
    let piped = texts.iter().filter(|t| is_stdin(t)).count();
    if piped > 1 {
        return Err(TraceError::Request("standard input can be one trace only".to_owned()));
    }
    if piped > 0 && space == AddressSpace::Concat {
        let why = "standard input cannot be read twice, as laying traces side by side needs; store it first";
        return Err(TraceError::Request(why.to_owned()));
    }
    let parts = texts.iter().map(|t| part(t, context)).collect::<Result<Vec<_>, _>>()?;
    let mut sources = started(parts, mix)?;
    if space == AddressSpace::Concat {
        let mut base = Blocks::ZERO;
        let mut laid: Vec<Box<dyn TraceSource>> = Vec::new();
        for (source, text) in sources.into_iter().zip(texts) {
            let extents = extents(text, context)?;
            laid.push(Box::new(Offset::new(Concat::new(source, &extents)?, base)));
            base += extents.total();
        }
        sources = laid;
    }
    match (sources.len(), mix) {
        (1, _) => Ok(sources.remove(0)),
        (_, Mix::ByTime) => Ok(Box::new(Merge::new(sources)?)),
        (_, Mix::Chain(gap)) => Ok(Box::new(Chain::new(sources, gap)?)),
        (_, Mix::Bursts { burst, seed }) => Ok(Box::new(Interleave::new(sources, burst, seed)?)),
    }
}

fn is_stdin(text: &str) -> bool {
    text == "-" || text.starts_with("-:")
}

fn part(text: &str, context: &OpenContext) -> Result<Input> {
    if let Some(item) = text.strip_prefix("synth:") {
        return Ok(Input::Synth(synth(item, context)?));
    }
    let (path, item) = split_target(text)?;
    let Some(files) = target::files(path)? else {
        return Ok(Input::Files(vec![open_raw(path, item, context)?]));
    };
    let mut raws = Vec::new();
    let mut empty = None;
    for file in &files {
        match open_raw(file, item, context) {
            Ok(raw) => raws.push(raw),
            // A processor without requests leaves an empty file.
            Err(e @ TraceError::Empty(_)) => empty = Some(e),
            Err(e) => return Err(e),
        }
    }
    match empty {
        Some(e) if raws.is_empty() => Err(e),
        _ => Ok(Input::Files(raws)),
    }
}

/// One source a part, with its place in time.
fn started(parts: Vec<Input>, mix: Mix) -> Result<Vec<Box<dyn TraceSource>>> {
    let mut common = BTreeMap::new();
    let mut all = Vec::new();
    for part in parts {
        match part {
            Input::Synth(source) => all.push(Err(source)),
            Input::Files(mut files) if files.len() == 1 && mix != Mix::ByTime => {
                all.push(Err(files.remove(0).started()));
            }
            Input::Files(files) => {
                // Traces that are not merged by time have an origin of their own each.
                let group = if mix == Mix::ByTime { 0 } else { all.len() };
                all.push(Ok((
                    group,
                    peek(files, |format, at: SimTime| {
                        let first = common.entry((group, format)).or_insert(at);
                        *first = at.min(*first);
                    })?,
                )));
            }
        }
    }
    let place = |part| match part {
        Err(source) => Ok(source),
        Ok((group, files)) => joined(files, |format| common.get(&(group, format)).copied()),
    };
    all.into_iter().map(place).collect()
}

type Seen = (Peeked<Box<dyn TraceSource>>, Start, String);

/// Looks at the first requests of files; tells `first` the format and arrival of those that have a date.
fn peek(files: Vec<Raw>, mut first: impl FnMut(&'static str, SimTime)) -> Result<Vec<Seen>> {
    let many = files.len() > 1;
    let mut seen = Vec::new();
    let mut none = None;
    for raw in files {
        let source = match Peeked::new(raw.source) {
            Err(e @ TraceError::Nothing(_)) if many => {
                none = Some(e);
                continue;
            }
            other => other?,
        };
        match (source.first_arrival(), raw.start) {
            (None, _) if many => {
                none.get_or_insert(TraceError::Empty(raw.file));
                continue;
            }
            (Some(at), Start::World(format)) => first(format, at),
            _ => {}
        }
        seen.push((source, raw.start, raw.file));
    }
    match none {
        Some(e) if seen.is_empty() => Err(e),
        _ => Ok(seen),
    }
}

/// The files of one part, merged, with the origin that `common` tells for a format.
fn joined(
    files: Vec<Seen>,
    common: impl Fn(&'static str) -> Option<SimTime>,
) -> Result<Box<dyn TraceSource>> {
    let place = |(source, start, file): Seen| -> Box<dyn TraceSource> {
        let origin = match start {
            Start::Keep => Origin::At(SimTime::ZERO),
            Start::Zero => Origin::First,
            Start::World(format) => common(format).map_or(Origin::First, Origin::At),
        };
        Box::new(Started::new(source, origin, &file))
    };
    let mut sources: Vec<_> = files.into_iter().map(place).collect();
    if sources.len() == 1 {
        return Ok(sources.remove(0));
    }
    Ok(Box::new(Merge::new(sources)?))
}

fn extents(text: &str, context: &OpenContext) -> Result<DeviceExtents> {
    DeviceExtents::scan(&mut started(vec![part(text, context)?], Mix::ByTime)?.remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_all;

    fn combined(space: AddressSpace, mix: Mix) -> crate::Batch {
        let texts = ["synth:sequential,requests=3,size=4KiB,span=1MiB,interarrival=10ms,write=100%"; 2];
        let texts = texts.map(str::to_owned);
        read_all(&mut *combine(&texts, space, mix, &OpenContext::default()).unwrap()).unwrap()
    }

    #[test]
    fn merged_traces_keep_their_times_and_know_their_number() {
        let all = combined(AddressSpace::Overlap, Mix::ByTime);
        assert_eq!(all.stream, [0, 1, 0, 1, 0, 1]);
        assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 0, 8, 8, 16, 16]);
    }

    #[test]
    fn side_by_side_the_second_begins_where_the_first_ends() {
        let all = combined(AddressSpace::Concat, Mix::ByTime);
        assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 24, 8, 32, 16, 40]);
    }

    #[test]
    fn bursts_keep_every_request() {
        let all = combined(AddressSpace::Overlap, Mix::Bursts { burst: 3, seed: 1 });
        assert_eq!(all.len(), 6);
        assert!(all.stream[..3].iter().all(|s| *s == all.stream[0]), "{:?}", all.stream);
    }

    /// Standard input of tests may be anything: it is not looked at.
    #[test]
    fn what_is_read_twice_is_no_standard_input() {
        let refused = |texts: &[&str], space| {
            let texts: Vec<_> = texts.iter().map(|&t| t.to_owned()).collect();
            combine(&texts, space, Mix::ByTime, &OpenContext::default()).err().unwrap().to_string()
        };
        let twice =
            "standard input cannot be read twice, as laying traces side by side needs; store it first";
        for texts in [&["-"][..], &["-:spc"], &["no such file", "-"]] {
            assert_eq!(refused(texts, AddressSpace::Concat), twice, "{texts:?}");
        }
        for space in [AddressSpace::Concat, AddressSpace::Overlap] {
            assert_eq!(refused(&["-", "-:spc"], space), "standard input can be one trace only");
        }
    }
}
