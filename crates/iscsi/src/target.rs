//! A target: a disk with a name, and who has sessions with it.

use crate::chap::Secrets;
use parking_lot::{Condvar, Mutex, RwLock};
use smrlab_scsi::Disk;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

/// Who has a session: the initiator's name and its part of the session's identity.
pub(crate) type Nexus = (String, [u8; 6]);

/// Commands of a session that have not begun.
#[derive(Default)]
struct Waiting {
    /// How many.
    commands: u64,
    /// How often another session aborted them.
    aborts: u64,
}

/// A session's place among those of its target, until it is dropped.
pub(crate) struct Seat<'a> {
    target: &'a Target,
    /// The initiator port, as SCSI names it.
    pub(crate) port: String,
    waiting: Arc<Mutex<Waiting>>,
}

impl Seat<'_> {
    /// A command came: how often those before it were aborted.
    pub(crate) fn came(&self) -> u64 {
        let mut waiting = self.waiting.lock();
        waiting.commands += 1;
        waiting.aborts
    }

    /// A command begins, or never will; whether it was aborted since it came.
    pub(crate) fn leaves(&self, came: u64) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.commands -= 1;
        waiting.aborts != came
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut seats = self.target.seats.lock();
        if seats.get(&self.port).is_some_and(|own| Arc::ptr_eq(own, &self.waiting)) {
            seats.remove(&self.port);
        }
    }
}

/// See the [module](self).
pub struct Target {
    name: String,
    /// The disk, logical unit 0.
    pub disk: Box<dyn Disk + Send + Sync>,
    /// Commands of one session that are carried out at the same time.
    pub workers: usize,
    /// Whoever logs in proves that it knows one of them; `None`: whoever comes may.
    pub(crate) secrets: Option<Secrets>,
    numbers: AtomicU16,
    /// How often the logical unit was reset.
    pub resets: AtomicU64,
    /// Held by all commands that are carried out, and alone by a reset.
    pub(crate) at_work: RwLock<()>,
    /// How often mode pages were changed.
    pub(crate) mode_changes: AtomicU64,
    /// By initiator ports.
    seats: Mutex<BTreeMap<String, Arc<Mutex<Waiting>>>>,
    pub(crate) sessions: Mutex<BTreeMap<Nexus, (u64, TcpStream)>>,
    pub(crate) connections: AtomicU64,
    /// Connections whose session is being served, and that one's is over.
    pub(crate) live: Mutex<BTreeSet<u64>>,
    pub(crate) ended: Condvar,
}

impl Target {
    /// A target of this name. With one worker commands are carried out in the order in which they came, each when the one before is
    /// answered.
    pub fn new(name: String, disk: Box<dyn Disk + Send + Sync>, workers: usize) -> Self {
        Self {
            name,
            disk,
            workers,
            secrets: None,
            numbers: AtomicU16::new(0),
            resets: AtomicU64::new(0),
            at_work: RwLock::default(),
            mode_changes: AtomicU64::new(0),
            seats: Mutex::default(),
            sessions: Mutex::default(),
            connections: AtomicU64::new(0),
            live: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// The same for those alone who can prove that they know one of `secrets`; `None`: for whoever comes.
    #[must_use]
    pub fn guarded(self, secrets: Option<Secrets>) -> Self {
        Self { secrets, ..self }
    }

    /// Its name, as initiators write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A place for a session of this initiator port; `known`: others may abort its commands.
    pub(crate) fn seat(&self, port: String, known: bool) -> Seat<'_> {
        let waiting = Arc::default();
        if known {
            self.seats.lock().insert(port.clone(), Arc::clone(&waiting));
        }
        Seat { target: self, port, waiting }
    }

    /// Aborts all commands of an initiator port that have not begun. Whether there were any.
    pub(crate) fn abort(&self, port: &str) -> bool {
        let seats = self.seats.lock();
        let Some(mut waiting) = seats.get(port).map(|waiting| waiting.lock()) else { return false };
        let any = waiting.commands > 0;
        waiting.aborts += u64::from(any);
        any
    }

    /// Ends the connections of everybody.
    pub(crate) fn end_sessions(&self) {
        for (_, stream) in self.sessions.lock().values() {
            // One that is gone has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The number of a new session, never 0.
    pub fn session_number(&self) -> u16 {
        loop {
            let number = self.numbers.fetch_add(1, Relaxed).wrapping_add(1);
            if number != 0 {
                return number;
            }
        }
    }
}
