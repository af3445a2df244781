//! What can be wrong with a trace; every message has the place and, where there is one, the remedy.

use smrlab_units::SimTime;
use smrlab_units::spec::SpecError;
use std::io;
use thiserror::Error;

/// A trace that could not be read, made or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be opened or read.
    #[error("{file}: {what}")]
    Unreadable {
        /// The file as the user named it.
        file: String,
        /// What is wrong, with the remedy.
        what: String,
        /// What the system said.
        #[source]
        source: Option<io::Error>,
    },
    /// A line or a binary record that its format does not allow.
    #[error("{file}, {place}: {reason}: {text} (skip_bad=N tolerates N such)")]
    Bad {
        /// The file as the user named it.
        file: String,
        /// `line 12`, or `record 12 (byte 672)`.
        place: String,
        /// Why it was refused.
        reason: String,
        /// The line shortened, or the first bytes of the record.
        text: String,
    },
    /// A request that arrives before the one ahead of it.
    #[error(
        "{file}{place}: a request at {} s comes after one at {} s; sort_window={} or more sorts such a trace",
        .at.as_secs_f64(), .after.as_secs_f64(), window(*.at, *.after)
    )]
    RunsBack {
        /// The file as the user named it.
        file: String,
        /// `, line 12` where known.
        place: String,
        /// The arrival that is too early.
        at: SimTime,
        /// The latest arrival before it.
        after: SimTime,
    },
    /// No request in the trace.
    #[error("{0}: the trace is empty: it has no read, write, flush or discard request")]
    Empty(String),
    /// A format that could not be told, or of which there are several candidates.
    #[error("{0}")]
    Format(String),
    /// A parameter or name that is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A request that a transform or a writer cannot take.
    #[error("{0}")]
    Request(String),
}

/// The span between the two times as a user writes it, rounded up to a whole unit.
fn window(at: SimTime, after: SimTime) -> String {
    let ns = after.since(at).0;
    match ns {
        0..=999_999 => format!("{}us", ns.div_ceil(1_000)),
        1_000_000..=999_999_999 => format!("{}ms", ns.div_ceil(1_000_000)),
        _ => format!("{}s", ns.div_ceil(1_000_000_000)),
    }
}

impl TraceError {
    /// A fault of `file` that is not tied to a line.
    pub fn unreadable(file: &str, what: impl Into<String>) -> Self {
        Self::Unreadable { file: file.to_owned(), what: what.into(), source: None }
    }

    /// What the system said about `file`, with the remedy for the common cases.
    pub fn io(file: &str, source: io::Error) -> Self {
        let what = match source.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "it may not be read: permission denied".to_owned(),
            io::ErrorKind::IsADirectory => "it is a directory: name one trace file in it".to_owned(),
            io::ErrorKind::StorageFull => "no space left on the device".to_owned(),
            io::ErrorKind::UnexpectedEof => {
                "the compressed data ends too early: the file is truncated; fetch it again".to_owned()
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                format!("the compressed data is damaged ({source}); fetch the file again")
            }
            _ => source.to_string(),
        };
        Self::Unreadable { file: file.to_owned(), what, source: Some(source) }
    }
}
