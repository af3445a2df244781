//! Everything that is wrong with what a user wrote, at once, each fault with its field.

use crate::spec::{SpecError, nearest};
use std::fmt;

/// A fault of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, as in `trace[1]`.
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

    /// Notes a fault.
    pub fn add(&mut self, field: &str, problem: impl ToString) {
        self.0.push(FieldError { field: field.to_owned(), problem: problem.to_string() });
    }

    /// The index of `value` among `names`, or a fault that lists them.
    pub fn choice(&mut self, field: &str, value: &str, names: &[&str]) -> Option<usize> {
        let found = names.iter().position(|n| *n == value);
        if found.is_none() {
            let hint = nearest(value, names.iter().copied());
            let hint = hint.map_or_else(String::new, |n| format!(" (did you mean '{n}'?)"));
            self.add(field, format!("'{value}' is not accepted{hint}: one of {}", names.join(", ")));
        }
        found
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

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
