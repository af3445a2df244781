//! Who comes to a target: each connection is logged in and served in a thread of its own.

use crate::login;
use crate::session::{Session, Wire};
use crate::target::Target;
use std::io::{self, BufReader, BufWriter};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Bytes that are read from, and collected for, a connection at a time.
const BUFFER: usize = 256 << 10;
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
    let mut reader = BufReader::with_capacity(BUFFER, stream.try_clone()?);
    let mut writer = BufWriter::with_capacity(BUFFER, stream.try_clone()?);
    let Some(agreed) = login::login(target, &mut reader, &mut writer)? else { return Ok(()) };
    stream.set_read_timeout(None)?;
    let port = agreed.port();
    let nexus = (agreed.initiator.clone(), agreed.isid);
    // A discovery session is nobody's, and lasts for a question or two.
    if !agreed.discovery {
        let mut sessions = target.sessions.lock();
        if sessions.len() >= MOST {
            return Ok(());
        }
        // Who logs in again has lost its old session: its connection ends.
        if let Some((_, old)) = sessions.insert(nexus.clone(), (id, stream.try_clone()?)) {
            let _ = old.shutdown(std::net::Shutdown::Both);
            target.disk.reserve(&mut |all| all.lost(&port));
        }
    }
    let done = Session::new(target, agreed, address, writer).serve(reader);
    let mut sessions = target.sessions.lock();
    if sessions.get(&nexus).is_some_and(|(own, _)| *own == id) {
        sessions.remove(&nexus);
        target.disk.reserve(&mut |all| all.lost(&port));
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    done
}

impl Wire for BufReader<TcpStream> {
    fn waiting(&self) -> bool {
        !self.buffer().is_empty()
    }
}
