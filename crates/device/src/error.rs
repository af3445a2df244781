//! Errors as every surface can pass them on: an errno and one message.

use smrlab_stl::Refusal;
use smrlab_units::Lba;
use std::fmt;
use std::io;

/// What went wrong, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    errno: i32,
    message: String,
    /// The block, where the host read what was destroyed.
    destroyed: Option<u64>,
    /// Why the drive refused a request, and the block that stands against it.
    refusal: Option<(Refusal, Option<Lba>)>,
}

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, DeviceError>;

impl DeviceError {
    /// An error with its errno.
    pub fn new(errno: i32, message: impl Into<String>) -> Self {
        Self { errno, message: message.into(), destroyed: None, refusal: None }
    }

    /// A read found that `block` was destroyed (`EIO`).
    pub fn destroyed(block: u64) -> Self {
        let message = format!("block {block} was destroyed by a write to a track upstream");
        Self { destroyed: Some(block), ..Self::new(libc::EIO, message) }
    }

    /// The block, where the host read what was destroyed.
    pub fn destroyed_block(&self) -> Option<u64> {
        self.destroyed
    }

    /// The drive refuses a request, because of a block where that is known.
    pub fn refused(why: Refusal, at: Option<Lba>) -> Self {
        let errno = match why {
            Refusal::WriteProtected => libc::EPERM,
            Refusal::NoSpace => libc::ENOSPC,
            Refusal::Unsupported => libc::EOPNOTSUPP,
            _ => libc::EIO,
        };
        let place = at.map_or(String::new(), |at| format!(" at block {}", at.0));
        let message = format!("the drive refuses the request: {}{place}", why.name());
        Self { refusal: Some((why, at)), ..Self::new(errno, message) }
    }

    /// Why the drive refused the request, and the block that stands against it.
    pub fn refusal(&self) -> Option<(Refusal, Option<Lba>)> {
        self.refusal
    }

    /// The user's input is wrong (`EINVAL`).
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, message)
    }

    /// What the operating system answered to `what`.
    pub fn io(what: impl fmt::Display, e: &io::Error) -> Self {
        let errno = e.raw_os_error().unwrap_or(libc::EIO);
        Self::new(errno, format!("{what}: {e}{}", remedy(errno)))
    }

    /// The errno that a block device would answer with.
    pub fn errno(&self) -> i32 {
        self.errno
    }
}

fn remedy(errno: i32) -> &'static str {
    match errno {
        libc::ENOSPC | libc::EDQUOT => {
            " (free some space on the store's file system and try again; nothing was damaged)"
        }
        libc::EACCES | libc::EPERM => " (check the owner and the mode)",
        libc::EADDRINUSE => " (is the device being served already?)",
        _ => "",
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DeviceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_destroyed_has_a_block() {
        assert_eq!(DeviceError::destroyed(7).destroyed_block(), Some(7));
        assert_eq!(DeviceError::input("too far").destroyed_block(), None);
    }
}
