//! Who comes to a target: each connection is logged in and served in a thread of its own.

use crate::login;
use crate::pdu::HEADER;
use crate::session::{Out, Session, Wire};
use crate::target::{Connection, Target};
use parking_lot::Mutex;
use smrlab_device::Buffer;
use std::io::{self, BufWriter, Read};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Bytes that are read from, and collected for, a connection at a time.
const BUFFER: usize = 256 << 10;
/// Data of a PDU from which on they are received where they are to be: to read ahead would have them copied once more.
const LARGE: usize = 16 << 10;
/// How long a connection may take to log in.
const LOGIN: Duration = Duration::from_secs(15);
/// Connections at a time; who comes then is turned away.
const MOST: usize = 256;

/// Serves everybody who comes, each in a thread of its own, until the process ends.
///
/// # Errors
/// When no thread can be started.
pub fn listen(target: Arc<Target>, listener: TcpListener) -> io::Result<()> {
    let accept = move || {
        for stream in listener.incoming().flatten() {
            let target = target.clone();
            let serve = move || {
                // What breaks the protocol, or goes away, loses its connection and nothing else.
                let _ = converse(&target, stream);
            };
            let _ = std::thread::Builder::new().name("iscsi".into()).spawn(serve);
        }
    };
    std::thread::Builder::new().name("iscsi".into()).spawn(accept).map(|_| ())
}

fn converse(target: &Target, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOGIN))?;
    let id = target.connections.fetch_add(1, Relaxed);
    let address = stream.local_addr()?.to_string();
    let mut reader = Reader::new(stream.try_clone()?);
    let mut writer = BufWriter::with_capacity(BUFFER, stream.try_clone()?);
    let Some(agreed) = login::login(target, &mut reader, &mut writer)? else { return Ok(()) };
    stream.set_read_timeout(None)?;
    let port = agreed.port();
    let nexus = (agreed.initiator.clone(), agreed.isid);
    let live = Live::of(target, id);
    let out = Arc::new(Mutex::new(Out::new(&agreed, writer)));
    // A discovery session is nobody's, and lasts for a question or two.
    if !agreed.discovery {
        let mut sessions = target.sessions.lock();
        // Who asks the others to leave holds the sessions, so that nobody is forgotten.
        if sessions.len() >= MOST || target.closing.load(Relaxed) {
            return Ok(());
        }
        // Who logs in again has lost its old session: its connection ends.
        let connection = Connection { id, stream: stream.try_clone()?, out: out.clone() };
        if let Some(old) = sessions.insert(nexus.clone(), connection) {
            drop(sessions);
            let _ = old.stream.shutdown(std::net::Shutdown::Both);
            // What it asked for comes to its end first: no old write changes anything behind a new one.
            Live::wait_for(target, old.id);
            target.disk.reserve(&mut |all| all.lost(&port));
        }
    }
    let done = Session::with(target, agreed, address, out).serve(reader);
    drop(live);
    let mut sessions = target.sessions.lock();
    let own = sessions.get(&nexus).is_some_and(|own| own.id == id);
    let gone = if own { sessions.remove(&nexus) } else { None };
    if own {
        target.disk.reserve(&mut |all| all.lost(&port));
    }
    drop(sessions);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    // With it goes what is still to be sent: it waits for nobody now, and nobody waits for it.
    drop(gone);
    done
}

/// A session that is being served, until it is dropped.
struct Live<'a>(&'a Target, u64);

impl<'a> Live<'a> {
    fn of(target: &'a Target, id: u64) -> Self {
        target.live.lock().insert(id);
        Self(target, id)
    }

    /// Waits until the session of a connection is over.
    fn wait_for(target: &Target, id: u64) {
        let mut live = target.live.lock();
        while live.contains(&id) {
            target.ended.wait(&mut live);
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.live.lock().remove(&self.1);
        self.0.ended.notify_all();
    }
}

/// A connection's receiving side. It reads ahead, but no more than the next header where data are large.
struct Reader {
    stream: TcpStream,
    held: Buffer,
    /// What of it is not taken.
    rest: Range<usize>,
    ahead: usize,
}

impl Reader {
    fn new(stream: TcpStream) -> Self {
        let mut held = Buffer::default();
        held.more(BUFFER);
        Self { stream, held, rest: 0..0, ahead: BUFFER }
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = 0..self.stream.read(&mut self.held[..self.ahead])?;
        }
        let length = out.len().min(self.rest.len());
        out[..length].copy_from_slice(&self.held[self.rest.start..][..length]);
        self.rest.start += length;
        Ok(length)
    }

    fn read_exact(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        if out.len() > HEADER {
            self.ahead = if out.len() < LARGE { BUFFER } else { HEADER };
        }
        while !out.is_empty() {
            let large = self.rest.is_empty() && self.ahead == HEADER && out.len() > HEADER;
            let length = if large { self.stream.read(out) } else { self.read(out) };
            match length {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => out = &mut out[length..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl Wire for Reader {
    fn waiting(&self) -> bool {
        !self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn connected() -> (TcpStream, Reader) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (sender, Reader::new(listener.accept().unwrap().0))
    }

    #[test]
    fn behind_large_data_no_more_is_read_than_a_header() {
        let (mut sender, mut reader) = connected();
        let mut next = |sent: usize, read: &[usize]| {
            sender.write_all(&vec![1; sent]).unwrap();
            read.iter().for_each(|&length| reader.read_exact(&mut vec![0; length]).unwrap());
            reader.waiting()
        };
        assert!(!next(HEADER + LARGE, &[HEADER, LARGE]));
        assert!(!next(HEADER + 4096, &[HEADER]), "as after large data");
        assert!(!next(0, &[4096]));
        assert!(next(HEADER + 4096, &[HEADER]), "as after small data");
    }

    /// Whatever is read, small or large, follows what was read before.
    #[test]
    fn what_is_read_follows_what_was_read_before() {
        let (mut sender, mut reader) = connected();
        let pieces =
            [48, 4096, 48, 4, 48, LARGE, 48, 300_000, 48, BUFFER, 4, 48, 17, 48, 512, 48, LARGE - 1, 48];
        let byte = |at: usize| (at * 7 + (at >> 8)) as u8;
        let sent: Vec<u8> = (0..pieces.iter().sum()).map(byte).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| sent.chunks(10_007).for_each(|some| sender.write_all(some).unwrap()));
            let mut at = 0;
            for length in pieces {
                let mut out = vec![0; length];
                reader.read_exact(&mut out).unwrap();
                assert!(out == sent[at..at + length], "{length} bytes at {at}");
                at += length;
            }
        });
        drop(sender);
        assert_eq!(reader.read_exact(&mut [0; 2]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
