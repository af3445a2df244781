//! A target: a disk with a name, and who has sessions with it.

use crate::chap::Secrets;
use crate::events::{Event, Tells};
use parking_lot::{Condvar, Mutex, RwLock};
use smrlab_scsi::Disk;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Who has a session: the initiator's name and its part of the session's identity.
pub(crate) type Nexus = (String, [u8; 6]);

/// A session's connection.
pub(crate) struct Connection {
    /// Which of all that came.
    pub(crate) id: u64,
    pub(crate) stream: TcpStream,
    pub(crate) out: Arc<dyn Tells>,
}

impl Connection {
    /// Tells the initiator of something, unless that takes until `end`.
    fn tell(&self, event: Event, end: Instant) {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
        // A host that takes nothing holds up nobody else.
        let _ = self.stream.set_write_timeout(Some(left)).and_then(|()| self.out.tell(event, end));
    }
}

/// How the sessions of a target ended that was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Those whose initiators left when they were asked to.
    pub left: usize,
    /// Those that it closed itself.
    pub closed: usize,
}

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

/// How long initiators may take to hear that their sessions are closed.
const GOODBYE: Duration = Duration::from_millis(500);

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
    pub(crate) sessions: Mutex<BTreeMap<Nexus, Connection>>,
    /// Nobody logs in any more.
    pub(crate) closing: AtomicBool,
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
            closing: AtomicBool::new(false),
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
        for Connection { stream, .. } in self.sessions.lock().values() {
            // One that is gone has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets nobody log in any more, asks all initiators to log out within `time` (whole seconds), and closes the sessions of those that did not. What
    /// is under way then comes to its end.
    pub fn close(&self, time: Duration) -> Ended {
        let (seconds, end) = (time.as_secs().try_into().unwrap_or(u16::MAX), Instant::now() + time);
        let mut told = Ended::default();
        let asked: Vec<u64> = {
            let sessions = self.sessions.lock();
            self.closing.store(true, Relaxed);
            // All at once: one that takes nothing holds nobody up. With no time at all nobody is asked.
            std::thread::scope(|scope| {
                for connection in sessions.values().filter(|_| seconds > 0) {
                    let ask = || connection.tell(Event::Leave(seconds), end);
                    let _ = std::thread::Builder::new().spawn_scoped(scope, ask);
                }
            });
            sessions.values().map(|connection| connection.id).collect()
        };
        let mut live = self.live.lock();
        while asked.iter().any(|id| live.contains(id)) && !self.ended.wait_until(&mut live, end).timed_out() {
        }
        told.closed = asked.iter().filter(|id| live.contains(id)).count();
        told.left = asked.len() - told.closed;
        drop(live);
        let end = Instant::now() + GOODBYE;
        for connection in self.sessions.lock().values() {
            connection.tell(Event::Closed, end);
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        told
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
