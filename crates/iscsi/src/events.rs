//! What a target tells an initiator that did not ask: asynchronous messages of RFC 7143, section 11.9.

use std::io;
use std::time::Instant;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It has so many seconds to log out.
    Leave(u16),
    /// Its connection, the only one, is closed now. It may come again, but finds nothing of this session.
    Closed,
}

/// Tells the initiator of a session, whichever of its threads is sending.
pub(crate) trait Tells: Send + Sync {
    /// Fails where it cannot be told before `end`.
    fn tell(&self, event: Event, end: Instant) -> io::Result<()>;
}
