//! Everything that is wrong with what a user wrote, at once, each fault with its field.

use crate::spec::{SpecError, hint};
use std::fmt;
use std::ops::RangeInclusive;

/// A fault of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, as in `trace[1]` or `geometry.zones[2].sectors`.
    pub field: String,
    /// What is wrong and what is accepted.
    pub problem: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Collects faults while everything that can be checked is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<FieldError>);

impl Problems {
    /// A single fault.
    pub fn one(field: impl Into<String>, problem: impl ToString) -> Self {
        Self(vec![FieldError { field: field.into(), problem: problem.to_string() }])
    }

    /// Keeps what is right, and notes what is not.
    pub fn keep<T>(&mut self, field: &str, result: Result<T, SpecError>) -> Option<T> {
        result.map_err(|e| self.place(field, e)).ok()
    }

    /// Notes the faults of a registry entry's text under `field`.
    fn place(&mut self, field: &str, e: SpecError) {
        match e {
            SpecError::Several(all) => all.into_iter().for_each(|e| self.place(field, e)),
            e => self.add(field, e),
        }
    }

    /// Notes a fault, once: the drives of an array have the same ones.
    pub fn add(&mut self, field: impl Into<String>, problem: impl ToString) {
        let fault = FieldError { field: field.into(), problem: problem.to_string() };
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Notes a fault where `value` is not within what is accepted.
    pub fn range(&mut self, field: impl Into<String>, value: impl Into<u64>, accepted: RangeInclusive<u64>) {
        let (value, lo, hi) = (value.into(), accepted.start(), accepted.end());
        if !accepted.contains(&value) {
            self.add(field, format!("{value} is not accepted: a whole number from {lo} to {hi}"));
        }
    }

    /// Takes over the faults of another check.
    pub fn take_from(&mut self, check: Result<(), Self>) {
        if let Err(others) = check {
            self.0.extend(others.0);
        }
    }

    /// The index of `value` among `names`, or a fault that lists them.
    pub fn choice(&mut self, field: &str, value: &str, names: &[&str]) -> Option<usize> {
        let found = names.iter().position(|n| *n == value);
        if found.is_none() {
            let hint = hint(value, names.iter().copied());
            self.add(field, format!("'{value}' is not accepted{hint}: one of {}", names.join(", ")));
        }
        found
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All is checked.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn finish(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl std::error::Error for Problems {}

/// A line for each.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_drives_of_an_array_have_wrong_is_said_once() {
        let mut problems = Problems::default();
        for _ in 0..3 {
            problems.choice("metadata", "x", &["nv", "media"]);
            problems.add("scheduler", "use fcfs");
        }
        let said = problems.finish().unwrap_err().to_string();
        assert_eq!(said, "metadata: 'x' is not accepted: one of nv, media\nscheduler: use fcfs");
    }
}
