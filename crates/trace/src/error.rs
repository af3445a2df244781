//! What can be wrong with a trace; every message has the place and, where there is one, the remedy.

use smrlab_units::SimTime;
use smrlab_units::spec::SpecError;
use std::io;
use thiserror::Error;

/// The result of what can fail with [`TraceError`].
pub type Result<T, E = TraceError> = std::result::Result<T, E>;

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
    /// The file could not be made or written.
    #[error("{file}: cannot be written: {source}; choose another place")]
    Unwritable {
        /// The file as the user named it.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
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
    /// Data behind which nothing can be read.
    #[error("{file}, {place}: {reason}: {text}")]
    Broken {
        /// The file as the user named it.
        file: String,
        /// `record 12 (byte 672)`.
        place: String,
        /// Why it was refused, with the remedy where there is one.
        reason: String,
        /// The first bytes of the record.
        text: String,
    },
    /// A request that arrives before the one ahead of it.
    #[error(
        "{file}{place}: a request at {} s comes after one at {} s; sort_window={} sorts the whole trace",
        .at.as_secs_f64(), .after.as_secs_f64(), window(*.needed)
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
        /// The window that sorts everything that follows, too.
        needed: SimTime,
    },
    /// No request in the trace.
    #[error("{0}: the trace is empty: it has no read, write, flush or discard request")]
    Empty(String),
    /// No request in the trace, and the reason.
    #[error("{0}")]
    Nothing(String),
    /// A format that could not be told, or of which there are several candidates.
    #[error("{0}")]
    Format(String),
    /// A parameter or name that is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Stopped,
    /// A request that a transform or a writer cannot take.
    #[error("{0}")]
    Request(String),
}

/// A span as a user writes it, rounded up to a whole unit.
fn window(span: SimTime) -> String {
    match span.0 {
        ns @ 0..=999_999 => format!("{}us", ns.div_ceil(1_000)),
        ns @ 1_000_000..=999_999_999 => format!("{}ms", ns.div_ceil(1_000_000)),
        ns => format!("{}s", ns.div_ceil(1_000_000_000)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_faults_come_with_their_remedy() {
        let said = |kind: io::ErrorKind| TraceError::io("t", kind.into()).to_string();
        for (kind, part) in [
            (io::ErrorKind::NotFound, "there is no such file"),
            (io::ErrorKind::IsADirectory, "name one trace file in it"),
            (io::ErrorKind::StorageFull, "no space left on the device"),
            (io::ErrorKind::UnexpectedEof, "fetch it again"),
        ] {
            assert!(said(kind).contains(part), "{}", said(kind));
        }
    }
}
