//! Who is connected, and how clients are shown out.
//!
//! nbdkit ends only when its clients have left. Their sockets are this process's own: closed for reading, they give what a
//! client sent before, then their end; what was asked is answered, and nothing new is taken.
#![allow(unsafe_code)]

use serde_json::{Value, json};
use std::mem::ManuallyDrop;
use std::net::TcpStream;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection.
struct Client {
    fd: RawFd,
    pid: Option<i32>,
    address: String,
}

/// The process at the other end of a unix socket.
fn peer(fd: RawFd) -> Option<i32> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the place is valid for the length given.
    let done = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut who).cast(), &raw mut len)
    };
    (done == 0 && who.pid > 0).then_some(who.pid)
}

/// Whether the other end has left; the server may be about to notice.
fn left(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one valid place.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLNVAL) != 0
}

/// The client on `fd`, if it is one: any connected socket but those of the control socket at `control`.
fn client(fd: RawFd, control: &Path) -> Option<Client> {
    // SAFETY: only asked for its addresses, and not closed.
    let unix = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(fd) });
    if let Ok(local) = unix.local_addr() {
        unix.peer_addr().ok()?;
        let path = local.as_pathname().filter(|path| *path != control)?;
        return Some(Client { fd, pid: peer(fd), address: path.display().to_string() });
    }
    // SAFETY: as above.
    let tcp = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(fd) });
    tcp.peer_addr().ok().map(|address| Client { fd, pid: None, address: address.to_string() })
}

fn clients(control: &Path) -> Vec<Client> {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let fds = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    fds.collect::<Vec<RawFd>>()
        .into_iter()
        .filter_map(|fd| client(fd, control))
        .filter(|c| !left(c.fd))
        .collect()
}

/// The clients: process and its name where the socket tells, else the address.
pub(crate) fn list(control: &Path) -> Value {
    let told = |c: &Client| match c.pid {
        Some(pid) => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            json!({"peer": format!("pid {pid}"), "pid": pid, "name": name.trim(), "address": c.address})
        }
        None => json!({"peer": c.address, "address": c.address}),
    };
    clients(control).iter().map(told).collect()
}

/// Takes nothing more from any client; answers how many there were.
pub(crate) fn disconnect(control: &Path) -> usize {
    let all = clients(control);
    for client in &all {
        // SAFETY: a plain system call; on a descriptor that was closed meanwhile it does nothing.
        unsafe { libc::shutdown(client.fd, libc::SHUT_RD) };
    }
    all.len()
}
