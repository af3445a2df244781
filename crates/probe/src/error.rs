//! What can go wrong while a drive is looked at.

use crate::target::TargetError;

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the user gave does not fit.
    Input,
    /// The environment lacks something, or a device is gone.
    Environment,
    /// It was asked to stop; what was measured is kept.
    Interrupted,
}

/// The result of what can fail with [`ProbeError`].
pub type Result<T, E = ProbeError> = std::result::Result<T, E>;

/// Why nothing (more) was found out; one sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProbeError {
    /// The target failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target has no timing of a disk.
    #[error("no timing of a rotating disk: {0}")]
    NotADisk(String),
    /// It is a disk, but a part of it cannot be told.
    #[error("{0}")]
    Unclear(String),
    /// What the user gave does not fit.
    #[error("{0}")]
    Input(String),
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ProbeError {
    /// Who has to act.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Interrupted => Kind::Interrupted,
            Self::Target(e) if e.gone => Kind::Environment,
            _ => Kind::Input,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_to_act_is_told_by_what_failed() {
        let target = |gone| ProbeError::Target(TargetError { what: String::new(), gone });
        assert_eq!((target(true).kind(), target(false).kind()), (Kind::Environment, Kind::Input));
        assert_eq!(ProbeError::Interrupted.kind(), Kind::Interrupted);
        assert_eq!(ProbeError::NotADisk(String::new()).kind(), Kind::Input);
    }
}
