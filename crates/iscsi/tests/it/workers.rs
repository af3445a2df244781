//! Sessions with several workers: commands that are carried out at the same time, and what is aborted meanwhile.

use super::*;
use smrlab_iscsi::login::Agreed;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, RwLock};
use std::time::Duration;

/// A disk whose reads of block 0 wait until they are let go. Commands look at reservations side by side, as on a served disk.
pub(super) struct Gated(Memory, Mutex<bool>, Condvar, RwLock<Reservations>);

impl Gated {
    pub(super) fn open(&self) {
        *self.1.lock().unwrap() = true;
        self.2.notify_all();
    }
}

impl Disk for &'static Gated {
    fn facts(&self) -> &Facts {
        self.0.facts()
    }

    fn read(&self, lba: Lba, out: &mut [u8]) -> Done {
        if lba == Lba(0) {
            let wait = Duration::from_secs(5);
            let open = self.2.wait_timeout_while(self.1.lock().unwrap(), wait, |open| !*open).unwrap();
            assert!(!open.1.timed_out(), "nobody let it go");
        }
        self.0.read(lba, out)
    }

    fn write(&self, lba: Lba, data: &[u8], fua: bool) -> Done {
        self.0.write(lba, data, fua)
    }

    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done {
        self.0.change(lba, bytes, fua, change)
    }

    fn extents(&self, lba: Lba, out: &mut Extents<'_>) -> Done {
        self.0.extents(lba, out)
    }

    fn erase(&self, why: Erasing, wait: bool) -> Done {
        self.0.erase(why, wait)
    }

    fn modes(&self) -> Modes {
        self.0.modes()
    }

    fn set_modes(&self, modes: Modes) {
        self.0.set_modes(modes);
    }

    fn reserved(&self, look: &mut dyn FnMut(&Reservations)) {
        look(&self.3.read().unwrap());
    }

    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations)) {
        change(&mut self.3.write().unwrap());
    }

    fn flush(&self) -> Done {
        Ok(())
    }

    fn discard(&self, _: Lba, _: Blocks) -> Done {
        Ok(())
    }

    fn zone(&self, _: ZoneAction, _: Option<Range<Lba>>) -> Done {
        Ok(())
    }

    fn zones(&self, _: Lba, _: &mut dyn FnMut(&Zone) -> bool) {}
}

struct Socket(UnixStream);

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(out)
    }
}

impl Wire for Socket {
    fn waiting(&self) -> bool {
        false
    }
}

/// An initiator that reads answers as they come, and waits three seconds for one.
struct Host(UnixStream);

impl Host {
    fn sends(&mut self, pdu: &Pdu) {
        pdu::write(&mut self.0, pdu, &pdu.data, Digests::default()).unwrap();
        self.0.flush().unwrap();
    }

    /// Opcode, tag, and what it says: a task's response or a command's status.
    fn hears(&mut self) -> (u8, u32, u8) {
        let pdu = pdu::read(&mut self.0, Digests::default(), 1 << 20).unwrap();
        (
            pdu.opcode(),
            pdu.tag(),
            if pdu.opcode() == opcode::TASK_RESPONSE { pdu.header[2] } else { pdu.header[3] },
        )
    }
}

pub(super) fn gated() -> &'static Gated {
    Box::leak(Box::new(Gated(*Memory::boxed(), Mutex::default(), Condvar::new(), RwLock::default())))
}

/// A target with two workers, and what was agreed on with an initiator.
fn agreed(disk: &'static Gated) -> (Target, Agreed) {
    let target = Target::new(NAME.to_owned(), Box::new(disk), 2);
    let mut wire = Vec::new();
    let mut first = Pdu { data: NORMAL.replace(' ', "\0").into_bytes(), ..Pdu::new(opcode::LOGIN | 0x40) };
    first.header[1] = 0x87;
    pdu::write(&mut wire, &first.clone().with(24, 10), &first.data, Digests::default()).unwrap();
    let agreed = login(&target, &mut &wire[..], &mut Vec::new()).unwrap().unwrap();
    (target, agreed)
}

/// Has a session with two workers led by `host`; whether it ended well.
fn session(host: impl FnOnce(&mut Host, &Gated) + Send) -> bool {
    let disk = gated();
    let (target, agreed) = agreed(disk);
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        let led = scope.spawn(move || {
            theirs.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            host(&mut Host(theirs), disk);
        });
        let done =
            Session::new(&target, agreed, String::new(), ours.try_clone().unwrap()).serve(Socket(ours));
        // Else a session that ended early would wait for the disk.
        disk.open();
        led.join().unwrap();
        done.is_ok()
    })
}

fn read(tag: u32, number: u32, lba: u8) -> Pdu {
    command(tag, number, 0x40, 512, &read_10(lba, 1))
}

/// A command that waits for the medium holds up no other.
#[test]
fn a_command_overtakes_one_that_waits() {
    let ended = session(|host, disk| {
        host.sends(&read(1, 10, 0));
        for (tag, number) in [(2, 11), (3, 12), (4, 13)] {
            host.sends(&read(tag, number, 5));
            assert_eq!(host.hears(), (opcode::DATA_IN, tag, 0));
        }
        disk.open();
        assert_eq!(host.hears(), (opcode::DATA_IN, 1, 0));
        host.sends(&logout(14));
        assert_eq!(host.hears(), (opcode::LOGOUT_RESPONSE, 99, 0));
    });
    assert!(ended);
}

/// An ORDERED command begins when those before it are answered, and those behind it when it is; the head of the queue waits for neither.
#[test]
fn commands_are_carried_out_in_the_order_that_they_ask_for() {
    let ended = session(|host, disk| {
        host.sends(&read(1, 10, 0));
        for (tag, number, attribute) in [(2, 11, 2), (3, 12, 1), (4, 13, 3)] {
            let mut pdu = read(tag, number, 5);
            pdu.header[1] |= attribute;
            host.sends(&pdu);
        }
        assert_eq!(host.hears(), (opcode::DATA_IN, 4, 0));
        disk.open();
        for tag in [1, 2, 3] {
            assert_eq!(host.hears(), (opcode::DATA_IN, tag, 0));
        }
        host.sends(&logout(14));
        assert_eq!(host.hears(), (opcode::LOGOUT_RESPONSE, 99, 0));
    });
    assert!(ended);
}

/// What is aborted while it runs is not answered, and not aborted twice; its place in the window is free again. That it is aborted is said when it
/// has come to its end: an aborted write changes nothing behind that.
#[test]
fn what_is_aborted_while_it_runs_is_not_answered() {
    // Abort of the task, and of the set of tasks.
    for (function, again) in [(1, 1), (2, 0)] {
        let ended = session(|host, disk| {
            let task = |number: u32| {
                let mut pdu = Pdu::new(opcode::TASK).with(16, 50).with(20, 1).with(24, number);
                pdu.header[1] |= function;
                pdu
            };
            host.sends(&read(1, 10, 0));
            host.sends(&read(4, 11, 5));
            assert_eq!(host.hears(), (opcode::DATA_IN, 4, 0), "the one before is with the disk");
            host.sends(&task(12));
            host.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            assert!(pdu::read(&mut host.0, Digests::default(), 1 << 20).is_err(), "it goes on");
            host.0.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            disk.open();
            assert_eq!(host.hears(), (opcode::TASK_RESPONSE, 50, 0));
            host.sends(&task(13));
            assert_eq!(host.hears(), (opcode::TASK_RESPONSE, 50, again), "{function}");
            host.sends(&command(2, 14, 0, 0, &[0; 6]));
            assert_eq!(host.hears(), (opcode::RESPONSE, 2, 0));
            host.sends(&read(3, 15, 0));
            let answer = pdu::read(&mut host.0, Digests::default(), 1 << 20).unwrap();
            assert_eq!((answer.opcode(), answer.tag(), answer.word(28)), (opcode::DATA_IN, 3, 16));
            // It may still be on its way to the end of what nobody waits for.
            let free = |number: &u32| {
                host.sends(&command(4, *number, 0, 0, &[0; 6]));
                let answer = pdu::read(&mut host.0, Digests::default(), 1 << 20).unwrap();
                answer.word(32) - answer.word(28) == 127
            };
            let last = (16..10_000).find(free).expect("its place is free again");
            host.sends(&logout(last + 1));
            assert_eq!(host.hears(), (opcode::LOGOUT_RESPONSE, 99, 0));
        });
        assert!(ended);
    }
}

/// What waits for a worker when it is aborted is not carried out at all.
#[test]
fn what_is_aborted_before_it_runs_does_nothing() {
    let ended = session(|host, disk| {
        for (tag, number) in [(1, 10), (2, 11)] {
            host.sends(&read(tag, number, 0));
        }
        let write = Pdu { data: vec![7; 512], ..command(3, 12, 0xa0, 512, &write_10(5, 1)) };
        host.sends(&write);
        let mut abort = Pdu::new(opcode::TASK).with(16, 50).with(20, 3).with(24, 13);
        abort.header[1] |= 1;
        host.sends(&abort);
        assert_eq!(host.hears(), (opcode::TASK_RESPONSE, 50, 0), "while both workers are busy");
        disk.open();
        host.hears();
        host.hears();
        host.sends(&logout(14));
        assert_eq!(host.hears(), (opcode::LOGOUT_RESPONSE, 99, 0));
        let mut data = [1; 512];
        disk.0.read(Lba(5), &mut data).unwrap();
        assert_eq!(data, [0; 512]);
    });
    assert!(ended);
}

struct Panics;

impl Read for Panics {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("a fault of the reader's");
    }
}

impl Wire for Panics {
    fn waiting(&self) -> bool {
        false
    }
}

/// A fault of the thread that reads does not leave it waiting for its workers.
#[test]
fn a_session_that_panics_ends() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (target, agreed) = agreed(gated());
        let session = Session::new(&target, agreed, String::new(), Vec::new());
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.serve(Panics)));
        done.send(served.is_err()).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(true));
}
