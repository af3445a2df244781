//! A trace that is read as a given format, before it is moved in time.

use crate::formats::tabular::Csv;
use crate::formats::{Clock, Format, Open};
use crate::input::Input;
use crate::reader::{Lines, Tolerance};
use crate::transforms::{Origin, SortWindow, Started};
use crate::{Result, TraceError, TraceSource};
use smrlab_units::SimTime;
use smrlab_units::spec::Values;
use std::path::Path;

/// Where the time of a trace that is being opened lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// As the trace says.
    Keep,
    /// The first request at 0.
    Zero,
    /// A date or time since boot, which says how files of one recording lie to each other; the format's name.
    World(&'static str),
}

/// A trace before it is moved in time.
pub(crate) struct Raw {
    pub source: Box<dyn TraceSource>,
    pub start: Start,
    /// What messages call it.
    pub file: String,
}

impl Raw {
    /// The trace by itself.
    pub(crate) fn started(self) -> Box<dyn TraceSource> {
        let origin = match self.start {
            Start::Keep => Origin::At(SimTime::ZERO),
            Start::Zero | Start::World(_) => Origin::First,
        };
        Box::new(Started::new(self.source, origin, &self.file))
    }
}

/// Opens `input` (the file at `path`) as `format` with checked parameters.
pub(crate) fn open_as(input: Input, path: &str, format: &Format, values: &Values) -> Result<Raw> {
    let window = values.time("sort_window");
    let tolerance = Tolerance { skip_bad: values.count("skip_bad"), window };
    let file = input.file().to_owned();
    let mut source = match format.open {
        Open::Stream(open) => open(input, values, tolerance)?,
        Open::Columns(preset) => Box::new(Lines::new(input, Csv::preset(preset), tolerance)),
        Open::File(_) if path == "-" => {
            let what = format!("{} needs a file that can be sought, not a pipe", format.name);
            return Err(TraceError::unreadable(&file, what));
        }
        Open::File(open) => open(Path::new(path), values)?,
    };
    if window > SimTime::ZERO {
        source = Box::new(SortWindow::new(source, window, &file));
    }
    let start = match (values.text("start"), format.clock) {
        (Some("zero"), _) => Start::Zero,
        (Some("keep"), _) | (_, Clock::Trace) => Start::Keep,
        (_, Clock::World) => Start::World(format.name),
    };
    Ok(Raw { source, start, file })
}
