//! What can go wrong with a run, by who has to act.

use smrlab_trace::TraceError;
use smrlab_units::problems::Problems;
use thiserror::Error;

/// Who has to act; fixes the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A check failed (exit status 1).
    Verification,
    /// The user's input is wrong (2).
    Input,
    /// The environment lacks something (3).
    Environment,
    /// Stopped on request (130).
    Interrupted,
}

/// The result of what can fail with [`RunError`].
pub type Result<T, E = RunError> = std::result::Result<T, E>;

/// A run that could not be done.
#[derive(Debug, Error)]
pub enum RunError {
    /// The specification is wrong: all faults at once, a line each.
    #[error("{0}")]
    Spec(Problems),
    /// The trace cannot be read.
    #[error("{0}")]
    Trace(#[source] TraceError),
    /// A request that the drive cannot take; the message names the remedy.
    #[error("{0}")]
    Request(String),
    /// A block was not what was last written there.
    #[error("{0}")]
    Verification(String),
    /// The system refused something.
    #[error("{what}: {source}{}", remedy(.source))]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<TraceError> for RunError {
    fn from(e: TraceError) -> Self {
        match e {
            TraceError::Stopped => Self::Interrupted,
            other => Self::Trace(other),
        }
    }
}

impl From<std::convert::Infallible> for RunError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

fn remedy(e: &std::io::Error) -> &'static str {
    match e.kind() {
        std::io::ErrorKind::StorageFull => {
            "; free some space or choose another place (nothing was left there)"
        }
        std::io::ErrorKind::PermissionDenied => "; choose another place",
        _ => "",
    }
}

impl RunError {
    /// One fault of one field.
    pub fn field(field: impl Into<String>, problem: impl ToString) -> Self {
        Self::Spec(Problems::one(field, problem))
    }

    /// Who has to act.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Spec(_) | Self::Request(_) => Kind::Input,
            Self::Trace(TraceError::Unreadable { source: Some(e), .. }) if environment(e) => {
                Kind::Environment
            }
            Self::Trace(TraceError::Unwritable { .. }) | Self::Io { .. } => Kind::Environment,
            Self::Trace(_) => Kind::Input,
            Self::Verification(_) => Kind::Verification,
            Self::Interrupted => Kind::Interrupted,
        }
    }
}

fn environment(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::OutOfMemory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    /// What the system refuses is told with what to do, and is nobody's input; a trace that is not there is.
    #[test]
    fn an_error_says_who_has_to_act() {
        let io = |kind| RunError::Io { what: "o/media.parquet".to_owned(), source: Error::new(kind, "why") };
        let read = |kind| RunError::Trace(TraceError::io("t", Error::new(kind, "why")));
        let write = TraceError::Unwritable { file: "t".to_owned(), source: Error::other("why") };
        let free = "; free some space or choose another place (nothing was left there)";
        for (e, kind, text) in [
            (io(ErrorKind::StorageFull), Kind::Environment, format!("o/media.parquet: why{free}")),
            (
                io(ErrorKind::PermissionDenied),
                Kind::Environment,
                "o/media.parquet: why; choose another place".to_owned(),
            ),
            (io(ErrorKind::NotFound), Kind::Environment, "o/media.parquet: why".to_owned()),
            (read(ErrorKind::StorageFull), Kind::Environment, "t: no space left on the device".to_owned()),
            (read(ErrorKind::OutOfMemory), Kind::Environment, "t: why".to_owned()),
            (read(ErrorKind::NotFound), Kind::Input, "t: there is no such file".to_owned()),
            (TraceError::unreadable("t", "why").into(), Kind::Input, "t: why".to_owned()),
            (write.into(), Kind::Environment, "t: cannot be written: why; choose another place".to_owned()),
            (RunError::field("layer", "why"), Kind::Input, "layer: why".to_owned()),
            (RunError::Request("why".to_owned()), Kind::Input, "why".to_owned()),
            (RunError::Verification("why".to_owned()), Kind::Verification, "why".to_owned()),
            (RunError::Interrupted, Kind::Interrupted, "interrupted".to_owned()),
        ] {
            assert_eq!((e.kind(), e.to_string()), (kind, text));
        }
    }
}
