//! From what a user wrote to a target.

use crate::target::{TargetError, TimedTarget};
use crate::{ProbeError, Result, sim};
use std::path::Path;

mod caching;
mod clock;
mod file;
mod nbd;
mod pages;
mod sg;
mod zones;

pub use file::DirectFile;
pub use nbd::Nbd;
pub use pages::pages;

/// The target that `text` names: `sim:DRIVE[/LAYER]`, an NBD URI, or the path of a block device or file. It is opened for
/// writing where `destroy` says so; caches of the drive's own are switched off while it is, where it lets them be and
/// `keep_cache` does not say otherwise. `read` brings the text of a simulated drive's file.
///
/// # Errors
/// When there is no such thing, it is in use, or is no target.
pub fn open(
    text: &str,
    destroy: bool,
    keep_cache: bool,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Box<dyn TimedTarget + Send>> {
    if let Some(drive) = text.strip_prefix("sim:") {
        return match sim::open(drive, read) {
            Ok(target) => Ok(Box::new(target)),
            Err(e) => Err(ProbeError::Input(e.to_string())),
        };
    }
    if text.contains("://") {
        return Ok(Box::new(Nbd::open(text)?));
    }
    let path = Path::new(text);
    if !path.exists() {
        return Err(ProbeError::Target(TargetError {
            what: format!(
                "'{text}' is no device's name, and there is no such file; write sim:DRIVE[/LAYER], an NBD URI, or a path"
            ),
            gone: false,
        }));
    }
    Ok(Box::new(DirectFile::open(path, destroy, keep_cache)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever has a scheme is a server's address, and what is wrong with it is said as of one: it is not looked for among files.
    #[test]
    fn an_address_is_not_taken_for_a_path() {
        for text in [
            "nbd+unix:///x?socket=/no/such/socket",
            "nbd://127.0.0.1:1/x",
            "nbds://h/x",
            "http://h/x",
            "nbd+vsock://1/x",
        ] {
            let told = open(text, false, false, |_| Err(String::new())).map(drop).unwrap_err().to_string();
            assert!(!told.contains("there is no such file") && told.contains(text), "{text}: {told}");
        }
        let told =
            open("no-such-device", false, false, |_| Err(String::new())).map(drop).unwrap_err().to_string();
        assert!(told.contains("'no-such-device' is no device's name"), "{told}");
    }
}
