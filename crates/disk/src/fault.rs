//! What is wrong with a drive: every fault with its place, what was found there and what is accepted.

use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field, as a path in the drive file: `geometry.zones[2].sectors`.
    pub place: String,
    /// What is wrong and what is accepted.
    pub problem: String,
}

/// All faults that were found, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveError(pub Vec<Fault>);

impl DriveError {
    /// One fault.
    pub fn one(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self(vec![Fault { place: place.into(), problem: problem.into() }])
    }
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {}", fault.place, fault.problem)?;
        }
        Ok(())
    }
}

impl std::error::Error for DriveError {}

/// Collects faults, so that all are reported at once.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, place: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Fault { place: place.into(), problem: problem.into() });
    }

    /// Adds a fault where `value` lies outside `lo..=hi`.
    pub(crate) fn range(&mut self, place: impl Into<String>, value: u64, lo: u64, hi: u64) {
        if !(lo..=hi).contains(&value) {
            self.add(place, format!("{value} is not accepted: a whole number from {lo} to {hi}"));
        }
    }

    /// Takes over the faults of another check.
    pub(crate) fn take_from(&mut self, check: Result<(), DriveError>) {
        if let Err(e) = check {
            self.0.extend(e.0);
        }
    }

    pub(crate) fn finish(self) -> Result<(), DriveError> {
        if self.0.is_empty() { Ok(()) } else { Err(DriveError(self.0)) }
    }
}
