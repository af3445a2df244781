//! The client against a server in a thread, which keeps what it was asked for.

use super::*;
use crate::target::TimedTarget;
use smrlab_units::{ZoneCondition, ZoneKind};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// A request: kind, first byte, bytes, and what came with it.
type Asked = (u16, u64, u32, Vec<u8>);

/// What a server says; all of it as a good server would, but where a test wants otherwise.
#[derive(Clone, Copy)]
struct Says {
    init: u64,
    /// What it knows: fixed newstyle, and no zeroes behind the export's flags.
    flags: u16,
    /// What GO is answered with behind the export's information.
    go: u32,
    bytes: u64,
    read_only: bool,
    /// Smallest request, where it says so.
    least: Option<u32>,
    /// Answers of requests: errors by their offset, and what is added to the handle.
    error: fn(u64) -> u32,
    handle: u64,
    /// Requests after which it ends the connection.
    requests: usize,
}

const GOOD: Says = Says {
    init: INIT_MAGIC,
    flags: 3,
    go: 1,
    bytes: 1 << 20,
    read_only: false,
    least: None,
    error: |_| 0,
    handle: 0,
    requests: usize::MAX,
};

fn number<const N: usize>(s: &mut UnixStream) -> u64 {
    let mut bytes = [0; N];
    s.read_exact(&mut bytes).unwrap();
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

fn option_reply(s: &mut UnixStream, kind: u32, data: &[u8]) {
    let mut all = REPLY_MAGIC.to_be_bytes().to_vec();
    [OPT_GO, kind, data.len() as u32].iter().for_each(|word| all.extend(word.to_be_bytes()));
    all.extend(data);
    s.write_all(&all).unwrap();
}

fn serve(says: Says, s: &mut UnixStream) -> Vec<Asked> {
    let greeting =
        [&says.init.to_be_bytes()[..], &OPTION_MAGIC.to_be_bytes(), &says.flags.to_be_bytes()].concat();
    s.write_all(&greeting).unwrap();
    if says.init != INIT_MAGIC || says.flags & 1 == 0 {
        return Vec::new();
    }
    // Of what the server knows it says what it knows, too.
    let known = u64::from(says.flags & 3);
    assert_eq!((number::<4>(s), number::<8>(s), number::<4>(s)), (known, OPTION_MAGIC, u64::from(OPT_GO)));
    let mut data = vec![0; number::<4>(s) as usize];
    s.read_exact(&mut data).unwrap();
    assert_eq!(
        data,
        [&[0, 0, 0, 3][..], b"e x", &[0, 1, 0, 3]].concat(),
        "its name, and block sizes asked for"
    );
    let flags = [0, 1 | if says.read_only { 2 } else { 0 }];
    option_reply(s, 3, &[&[0, 0][..], &says.bytes.to_be_bytes(), &flags].concat());
    if let Some(least) = says.least {
        option_reply(s, 3, &[&[0, 3][..], &least.to_be_bytes(), &[0, 0, 16, 0], &[2, 0, 0, 0]].concat());
    }
    option_reply(s, says.go, if says.go == 1 { b"" } else { b"no such thing" });
    let mut asked = Vec::new();
    while says.go == 1 && asked.len() < says.requests {
        assert_eq!((number::<4>(s), number::<2>(s)), (u64::from(REQUEST_MAGIC), 0));
        let (kind, handle) = (number::<2>(s) as u16, number::<8>(s));
        let (offset, length) = (number::<8>(s), number::<4>(s) as u32);
        let mut data = vec![0xee; if kind == 1 { length as usize } else { 0 }];
        s.read_exact(&mut data).unwrap();
        asked.push((kind, offset, length, data));
        if kind == 2 {
            break;
        }
        let error = (says.error)(offset);
        let mut reply = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
        reply.extend(error.to_be_bytes());
        reply.extend((handle + says.handle).to_be_bytes());
        reply.resize(reply.len() + if kind == 0 && error == 0 { length as usize } else { 0 }, 7);
        s.write_all(&reply).unwrap();
    }
    asked
}

/// A client of a server that says so, and what the server was asked for once the client has gone.
fn connected(says: Says) -> (Result<Nbd, TargetError>, JoinHandle<Vec<Asked>>) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let own = format!("smrlab-nbd-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(own);
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || serve(says, &mut listener.accept().unwrap().0));
    let client = Nbd::open(&format!("nbd+unix:///e%20x?socket={}", path.display()));
    std::fs::remove_file(path).unwrap();
    (client, server)
}

fn access(nbd: &mut Nbd, dir: Dir, lba: u64, blocks: u64) -> Result<(), TargetError> {
    nbd.access(dir, Lba(lba), Blocks(blocks)).map(|t| assert!(t.start <= t.end))
}

/// Requests are widened to what the server takes at least; writes are zeroes; the client says goodbye.
#[test]
fn whole_grains_are_asked_for() {
    for (least, read, write) in [
        (None, (4608, 1536), (7680, 1024)),
        (Some(4096), (4096, 4096), (4096, 8192)),
        (Some(1), (4608, 1536), (7680, 1024)),
    ] {
        let (client, server) = connected(Says { least, ..GOOD });
        let mut nbd = client.unwrap();
        assert_eq!(nbd.blocks(), Blocks(2048));
        access(&mut nbd, Dir::Read, 9, 3).unwrap();
        access(&mut nbd, Dir::Write, 15, 2).unwrap();
        nbd.flush().unwrap();
        access(&mut nbd, Dir::Read, 9, 3).unwrap();
        drop(nbd);
        let read = (0, read.0, read.1, Vec::new());
        let written = (1, write.0, write.1, vec![0; write.1 as usize]);
        let (flush, goodbye) = ((3, 0, 0, Vec::new()), (2, 0, 0, Vec::new()));
        assert_eq!(server.join().unwrap(), [read.clone(), written, flush, read, goodbye]);
    }
}

/// An export that is read-only is not asked to write, and read all the same.
#[test]
fn a_read_only_export_is_only_read() {
    let (client, server) = connected(Says { read_only: true, ..GOOD });
    let mut nbd = client.unwrap();
    let e = access(&mut nbd, Dir::Write, 0, 8).unwrap_err();
    assert!(e.what.ends_with("the export is read-only") && !e.gone, "{}", e.what);
    access(&mut nbd, Dir::Read, 0, 8).unwrap();
    drop(nbd);
    assert_eq!(server.join().unwrap().iter().map(|asked| asked.0).collect::<Vec<_>>(), [0, 2]);
}

const ZONE: Zone = Zone {
    start: Lba(0),
    blocks: Blocks(512),
    kind: ZoneKind::SequentialRequired,
    condition: ZoneCondition::Empty,
    pointer: Some(Lba(0)),
    non_sequential: false,
};

/// An error of the server's is the device's; not where the drive behind it said that it has zones, which refuse what does not fit.
/// The next request is answered as ever.
#[test]
fn an_error_is_the_devices_but_where_zones_refuse() {
    let (client, server) = connected(Says { error: |offset| if offset == 0 { 5 } else { 0 }, ..GOOD });
    let mut nbd = client.unwrap();
    let failed = |nbd: &mut Nbd| access(nbd, Dir::Write, 0, 8).unwrap_err();
    assert!(failed(&mut nbd).gone);
    access(&mut nbd, Dir::Read, 8, 8).unwrap();
    assert_eq!(nbd.zone(), None);
    nbd.reports(ZONE);
    assert_eq!(nbd.zone(), Some(ZONE));
    assert!(!failed(&mut nbd).gone);
    access(&mut nbd, Dir::Read, 8, 8).unwrap();
    drop(nbd);
    server.join().unwrap();
}

/// What is no server of this protocol, or has no such export, is said so; one that goes away is gone, zones or not.
#[test]
fn what_a_server_does_wrong_is_said() {
    let opened = |says| {
        let (client, server) = connected(says);
        server.join().unwrap();
        client.err().map(|e| (e.what, e.gone)).unwrap()
    };
    let (what, gone) = opened(Says { init: 7, ..GOOD });
    assert!(what.ends_with("this server does not speak NBD (fixed newstyle)") && !gone, "{what}");
    for flags in [0, 2] {
        let (what, gone) = opened(Says { flags, ..GOOD });
        assert!(what.ends_with("does not speak NBD (fixed newstyle)") && !gone, "{what}");
    }
    for flags in [1, 3, 7, u16::MAX] {
        let (client, server) = connected(Says { flags, ..GOOD });
        access(&mut client.unwrap(), Dir::Read, 0, 8).unwrap();
        server.join().unwrap();
    }
    let (what, gone) = opened(Says { go: 0x8000_0006, ..GOOD });
    assert!(what.ends_with("the server refuses the export 'e x' no such thing") && !gone, "{what}");
    let (client, server) = connected(Says { handle: 1, ..GOOD });
    let mut nbd = client.unwrap();
    let e = access(&mut nbd, Dir::Read, 0, 8).unwrap_err();
    assert!(e.what.ends_with("the server's reply is not NBD") && !e.gone, "{}", e.what);
    drop(nbd);
    server.join().unwrap();
    for (zone, dir) in [(None, Dir::Read), (None, Dir::Write), (Some(ZONE), Dir::Write)] {
        let (client, server) = connected(Says { requests: 1, ..GOOD });
        let mut nbd = client.unwrap();
        zone.into_iter().for_each(|zone| nbd.reports(zone));
        access(&mut nbd, dir, 0, 8).unwrap();
        server.join().unwrap();
        let e = access(&mut nbd, dir, 0, 8).unwrap_err();
        assert!(e.what.ends_with("the server ended the connection") && e.gone, "{}", e.what);
    }
}
