//! The one table that maps the engine's errors to Python's.

use pyo3::prelude::*;
use smrlab_sim::error::{Kind, RunError};

/// The exception of `smrlab.errors` for who has to act.
pub(crate) fn raised(py: Python<'_>, error: &RunError) -> PyErr {
    let class = match error.kind() {
        Kind::Verification => "CheckFailed",
        Kind::Input => "InputError",
        Kind::Environment => "MissingError",
        Kind::Interrupted => "Interrupted",
    };
    raise(py, class, &error.to_string())
}

/// An exception of `smrlab.errors` by its name.
pub(crate) fn raise(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py
        .import("smrlab.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message,)));
    made.map_or_else(|e| e, PyErr::from_value)
}

/// The value, or its error raised.
pub(crate) fn or_raise<T>(py: Python<'_>, result: Result<T, RunError>) -> PyResult<T> {
    result.map_err(|e| raised(py, &e))
}
