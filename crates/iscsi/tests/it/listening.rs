//! Connections over the loopback device: who has a session, and when it ends.

use super::*;
use smrlab_iscsi::Ended;
use smrlab_iscsi::listener::listen;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An initiator that has logged in.
struct Initiator(TcpStream);

impl Initiator {
    /// Logs in as `name`, from the port with this ISID.
    fn comes(to: SocketAddr, name: &str, isid: u8) -> Self {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let text = format!("InitiatorName={name}\0TargetName={NAME}\0");
        let mut login = Pdu { data: text.into_bytes(), ..Pdu::new(opcode::LOGIN | 0x40) };
        (login.header[1], login.header[13]) = (0x87, isid);
        pdu::write(&mut stream, &login, &login.data, Digests::default()).unwrap();
        let answer = pdu::read(&mut stream, Digests::default(), 1 << 20).unwrap();
        assert_eq!((answer.opcode(), answer.header[36]), (opcode::LOGIN_RESPONSE, 0));
        Self(stream)
    }

    /// The status of a command of six bytes; `None`: the connection is gone.
    fn asks(&mut self, number: u32, code: u8) -> Option<u8> {
        let pdu = command(1, number, 0, 0, &[code, 0, 0, 0, 0, 0]);
        pdu::write(&mut self.0, &pdu, &[], Digests::default()).ok()?;
        self.0.flush().ok()?;
        pdu::read(&mut self.0, Digests::default(), 1 << 20).ok().map(|answer| answer.header[3])
    }

    /// Asks from command `number` on until it is not a conflict any more; the number of the next command.
    fn waits(&mut self, number: u32) -> u32 {
        let free = (number..number + 1000).find(|number| {
            std::thread::sleep(Duration::from_millis(5));
            self.asks(*number, READY) == GOOD
        });
        free.unwrap() + 1
    }

    /// Until the target has ended the connection.
    fn ends(mut self) {
        assert_eq!(self.0.read(&mut [0]).unwrap_or(0), 0);
    }
}

/// RESERVE of SPC-2, which lasts as long as the session of its host; TEST UNIT READY shows it to others.
const RESERVE: u8 = 0x16;
const READY: u8 = 0x00;
const GOOD: Option<u8> = Some(0x00);
const CONFLICT: Option<u8> = Some(0x18);

/// A host has one session from each of its ports: a new login ends the old one, and what that reserved.
#[test]
fn a_session_ends_with_its_connection_or_with_the_next_login_of_its_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    listen(Arc::new(target()), listener).unwrap();
    let (mut first, mut other) = (Initiator::comes(at, "iqn.a", 1), Initiator::comes(at, "iqn.b", 1));
    assert_eq!((first.asks(0, RESERVE), first.asks(1, READY)), (GOOD, GOOD));
    assert_eq!(other.asks(0, READY), CONFLICT);
    // Another port of the same host is another nexus: both sessions go on.
    let mut second = Initiator::comes(at, "iqn.a", 2);
    assert_eq!((second.asks(0, READY), first.asks(2, READY)), (CONFLICT, GOOD));
    let mut again = Initiator::comes(at, "iqn.a", 1);
    first.ends();
    let next = other.waits(1);
    assert_eq!((again.asks(0, RESERVE), other.asks(next, READY)), (GOOD, CONFLICT));
    // After a logout the target ends the connection, and the reservation with it.
    pdu::write(&mut again.0, &logout(1), &[], Digests::default()).unwrap();
    let answer = pdu::read(&mut again.0, Digests::default(), 1 << 20).unwrap();
    assert_eq!(answer.opcode(), opcode::LOGOUT_RESPONSE);
    again.ends();
    assert_eq!((other.asks(next + 1, READY), second.asks(1, READY)), (GOOD, GOOD));
    // So does what goes away without one.
    assert_eq!(second.asks(2, RESERVE), GOOD);
    drop(second);
    other.waits(next + 2);
}

/// What the old session asked for comes to its end before the new one does anything.
#[test]
fn a_session_that_is_taken_over_ends_first() {
    let (disk, listener) = (workers::gated(), TcpListener::bind("127.0.0.1:0").unwrap());
    let at = listener.local_addr().unwrap();
    listen(Arc::new(Target::new(NAME.to_owned(), Box::new(disk), 2)), listener).unwrap();
    let mut old = Initiator::comes(at, "iqn.a", 1);
    for (tag, lba) in [(1, 0), (2, 5)] {
        let read = command(tag, tag - 1, 0x40, 512, &read_10(lba, 1));
        pdu::write(&mut old.0, &read, &[], Digests::default()).unwrap();
    }
    let answer = pdu::read(&mut old.0, Digests::default(), 1 << 20).unwrap();
    assert_eq!(answer.tag(), 2, "the first one is with the disk");
    let mut new = Initiator::comes(at, "iqn.a", 1);
    new.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(new.asks(0, READY), None);
    disk.open();
    new.0.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let answer = pdu::read(&mut new.0, Digests::default(), 1 << 20).unwrap();
    assert_eq!((answer.opcode(), answer.header[3]), (opcode::RESPONSE, 0));
}

/// An asynchronous message with its status number: the event, Time2Wait and Time2Retain, or the seconds that there are for a logout.
fn message(event: u8, status: u32, [wait, last]: [u8; 2]) -> [u8; 48] {
    let mut header = [0; 48];
    (header[0], header[1]) = (0x32, 0x80);
    header[16..20].fill(0xff);
    header[24..28].copy_from_slice(&status.to_be_bytes());
    // The next command is number 1, and 128 may be sent.
    (header[31], header[35], header[36]) = (1, 128, event);
    (header[41], header[43]) = (wait, last);
    header
}

/// Initiators are asked to log out, and have time for that; those that do not are told that their connection is closed. Nobody logs in any more.
#[test]
fn sessions_of_a_target_that_is_closed_are_asked_to_log_out() {
    let (target, listener) = (Arc::new(target()), TcpListener::bind("127.0.0.1:0").unwrap());
    let at = listener.local_addr().unwrap();
    listen(target.clone(), listener).unwrap();
    let (mut one, mut other) = (Initiator::comes(at, "iqn.a", 1), Initiator::comes(at, "iqn.b", 1));
    assert_eq!((one.asks(0, READY), other.asks(0, READY)), (GOOD, GOOD));
    let began = Instant::now();
    let closing = std::thread::spawn({
        let target = target.clone();
        move || target.close(Duration::from_secs(2))
    });
    let header = |of: &mut Initiator| {
        let pdu = pdu::read(&mut of.0, Digests::default(), 1 << 20).unwrap();
        assert!(pdu.data.is_empty());
        pdu.header
    };
    // The login had status number 1, the first command 2.
    assert_eq!([header(&mut one), header(&mut other)], [message(1, 3, [0, 2]); 2]);
    // A command that comes all the same is carried out, and has the next number.
    let ready = command(1, 1, 0, 0, &[READY, 0, 0, 0, 0, 0]);
    pdu::write(&mut one.0, &ready, &[], Digests::default()).unwrap();
    let answer = header(&mut one);
    assert_eq!((answer[0], answer[3], answer[27]), (opcode::RESPONSE, 0, 4));
    pdu::write(&mut one.0, &logout(2), &[], Digests::default()).unwrap();
    assert_eq!(header(&mut one)[..3], [opcode::LOGOUT_RESPONSE, 0x80, 0]);
    one.ends();
    // Time2Wait is 2 s.
    assert_eq!(header(&mut other), message(3, 4, [2, 0]));
    other.ends();
    assert_eq!(closing.join().unwrap(), Ended { left: 1, closed: 1 });
    assert!((2.0..4.0).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
    // Status 0301h: the service is not there.
    let text = format!("InitiatorName=iqn.a\0TargetName={NAME}\0");
    let mut login = Pdu { data: text.into_bytes(), ..Pdu::new(opcode::LOGIN | 0x40) };
    login.header[1] = 0x87;
    let mut again = TcpStream::connect(at).unwrap();
    pdu::write(&mut again, &login, &login.data, Digests::default()).unwrap();
    let answer = pdu::read(&mut again, Digests::default(), 1 << 20).unwrap();
    assert_eq!(answer.header[36..38], [3, 1]);
}

/// With all gone there is nothing to wait for; with no time nobody is asked.
#[test]
fn a_target_is_closed_as_soon_as_all_have_left() {
    for (seconds, logs_out, ended) in
        [(20, true, Ended { left: 1, closed: 0 }), (0, false, Ended { left: 0, closed: 1 })]
    {
        let (target, listener) = (Arc::new(target()), TcpListener::bind("127.0.0.1:0").unwrap());
        let at = listener.local_addr().unwrap();
        listen(target.clone(), listener).unwrap();
        let mut host = Initiator::comes(at, "iqn.a", 1);
        assert_eq!(host.asks(0, READY), GOOD);
        let began = Instant::now();
        let closing = std::thread::spawn(move || target.close(Duration::from_secs(seconds)));
        let told = pdu::read(&mut host.0, Digests::default(), 1 << 20).unwrap().header;
        if logs_out {
            assert_eq!(told, message(1, 3, [0, 20]));
            pdu::write(&mut host.0, &logout(1), &[], Digests::default()).unwrap();
        } else {
            assert_eq!(told, message(3, 3, [2, 0]));
        }
        assert_eq!(closing.join().unwrap(), ended);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

/// A host that takes nothing of what it asked for holds nobody up: its session is closed when the time is over.
#[test]
fn a_host_that_takes_nothing_is_closed_in_time() {
    let (target, listener) = (Arc::new(target()), TcpListener::bind("127.0.0.1:0").unwrap());
    let at = listener.local_addr().unwrap();
    listen(target.clone(), listener).unwrap();
    let (mut stuck, mut other) = (Initiator::comes(at, "iqn.a", 1), Initiator::comes(at, "iqn.b", 1));
    assert_eq!(other.asks(0, READY), GOOD);
    // 120 times 127 KiB: more than sockets hold.
    for tag in 0..120 {
        let read = command(tag, tag, 0x40, 255 * 512, &read_10(0, 255));
        pdu::write(&mut stuck.0, &read, &[], Digests::default()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    assert_eq!(target.close(Duration::from_secs(1)), Ended { left: 0, closed: 2 });
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let told = pdu::read(&mut other.0, Digests::default(), 1 << 20).unwrap().header;
    assert_eq!(told[36], 1, "it is asked all the same");
}
