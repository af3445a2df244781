//! The Python module `smrlab._core`: glue without logic.

use pyo3::prelude::*;

/// Bound to `smrlab._core`.
#[pymodule]
mod _core {
    use super::*;

    /// The version of the engine.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
