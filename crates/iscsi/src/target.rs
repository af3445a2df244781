//! A target: a disk with a name, and who has sessions with it.

use crate::login;
use crate::session::{Session, Wire};
use parking_lot::Mutex;
use smrlab_scsi::Disk;
use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bytes that are read from, and collected for, a connection at a time.
const BUFFER: usize = 256 << 10;
/// How long a connection may take to log in.
const LOGIN: Duration = Duration::from_secs(15);
/// Connections at a time; who comes then is turned away.
const MOST: usize = 256;

/// Who has a session: the initiator's name and its part of the session's identity.
type Nexus = (String, [u8; 6]);

/// See the [module](self).
pub struct Target {
    name: String,
    /// The disk, logical unit 0.
    pub disk: Box<dyn Disk + Send + Sync>,
    /// Commands of one session that are carried out at the same time.
    pub workers: usize,
    numbers: AtomicU16,
    /// How often the logical unit was reset.
    pub resets: AtomicU64,
    sessions: Mutex<BTreeMap<Nexus, (u64, TcpStream)>>,
    connections: AtomicU64,
}

impl Target {
    /// A target of this name. With one worker commands are carried out in the order in which they came, each when the one before is
    /// answered.
    pub fn new(name: String, disk: Box<dyn Disk + Send + Sync>, workers: usize) -> Self {
        Self {
            name,
            disk,
            workers,
            numbers: AtomicU16::new(0),
            resets: AtomicU64::new(0),
            sessions: Mutex::default(),
            connections: AtomicU64::new(0),
        }
    }

    /// Its name, as initiators write it.
    pub fn name(&self) -> &str {
        &self.name
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

    /// Serves everybody who comes, each in a thread of its own, until the process ends.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn listen(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        let accept = move || {
            for stream in listener.incoming().flatten() {
                let target = self.clone();
                let serve = move || {
                    // What breaks the protocol, or goes away, loses its connection and nothing else.
                    let _ = target.converse(stream);
                };
                let _ = std::thread::Builder::new().name("iscsi".into()).spawn(serve);
            }
        };
        std::thread::Builder::new().name("iscsi".into()).spawn(accept).map(|_| ())
    }

    fn converse(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOGIN))?;
        let id = self.connections.fetch_add(1, Relaxed);
        let address = stream.local_addr()?.to_string();
        let mut reader = BufReader::with_capacity(BUFFER, stream.try_clone()?);
        let mut writer = BufWriter::with_capacity(BUFFER, stream.try_clone()?);
        let Some(agreed) = login::login(self, &mut reader, &mut writer)? else { return Ok(()) };
        stream.set_read_timeout(None)?;
        let nexus = (agreed.initiator.clone(), agreed.isid);
        // A discovery session is nobody's, and lasts for a question or two.
        if !agreed.discovery {
            let mut sessions = self.sessions.lock();
            if sessions.len() >= MOST {
                return Ok(());
            }
            // Who logs in again has lost its old session: its connection ends.
            if let Some((_, old)) = sessions.insert(nexus.clone(), (id, stream.try_clone()?)) {
                let _ = old.shutdown(std::net::Shutdown::Both);
            }
        }
        let done = Session::new(self, agreed, address, writer).serve(reader);
        let mut sessions = self.sessions.lock();
        if sessions.get(&nexus).is_some_and(|(own, _)| *own == id) {
            sessions.remove(&nexus);
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        done
    }
}

impl Wire for BufReader<TcpStream> {
    fn waiting(&self) -> bool {
        !self.buffer().is_empty()
    }
}
