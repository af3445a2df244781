//! Objects of stores, read by `smrlab.urls`.

use pyo3::exceptions::{PyFileNotFoundError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smrlab_trace::remote::{Ranges, Stores};
use std::io;
use std::sync::Arc;

/// The stores that Python knows.
pub(crate) struct PythonStores;

/// An `smrlab.urls.Ranges`.
struct PythonRanges {
    object: Py<PyAny>,
    size: u64,
}

/// An exception as what the system would have said; its message has no secret, and not `url` before it.
fn refused(py: Python<'_>, error: &PyErr, url: &str) -> io::Error {
    let text = error.value(py).to_string();
    let bare = text.strip_prefix(url).and_then(|t| t.strip_prefix(": "));
    let text = bare.map(str::to_owned).unwrap_or(text);
    if error.is_instance_of::<PyFileNotFoundError>(py) {
        io::Error::new(io::ErrorKind::NotFound, text)
    } else if error.is_instance_of::<PyPermissionError>(py) {
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    } else {
        io::Error::other(text)
    }
}

fn asked<T>(url: &str, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    Python::attach(|py| call(py).map_err(|e| refused(py, &e, url)))
}

impl Stores for PythonStores {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Ranges>> {
        asked(url, |py| {
            let object = py.import("smrlab.urls")?.call_method1("ranges", (url,))?;
            let size = object.getattr("size")?.extract()?;
            Ok(Arc::new(PythonRanges { object: object.unbind(), size }) as Arc<dyn Ranges>)
        })
    }

    fn list(&self, url: &str) -> io::Result<Option<Vec<String>>> {
        asked(url, |py| py.import("smrlab.urls")?.call_method1("listed", (url,))?.extract())
    }
}

impl Ranges for PythonRanges {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        asked("", |py| {
            let read = self.object.bind(py).call_method1("read", (offset, length))?;
            Ok(read.cast::<PyBytes>()?.as_bytes().to_vec())
        })
    }
}
