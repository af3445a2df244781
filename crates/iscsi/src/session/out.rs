//! What a session sends, and the numbers in it.

use crate::events::{Event, Tells};
use crate::login::{Agreed, WINDOW};
use crate::pdu::{self, Digests, NO_TAG, Pdu, opcode};
use parking_lot::Mutex;
use std::io::{self, Write};
use std::time::Instant;

/// The sending side of a session.
pub(crate) struct Out<W> {
    pub(super) to: W,
    digests: Digests,
    status: u32,
    /// The next command, and how many are not answered.
    pub(super) command: u32,
    pub(super) open: u32,
    /// The last command that may come: what was told once is not taken back.
    last: u32,
}

impl<W: Write> Out<W> {
    pub(crate) fn new(agreed: &Agreed, to: W) -> Self {
        let last = agreed.command.wrapping_add(WINDOW - 1);
        Self { to, digests: agreed.digests, status: agreed.status, command: agreed.command, open: 0, last }
    }

    /// Whether a command has this number and may come: then the one behind it is the next.
    pub(super) fn takes(&mut self, number: u32) -> bool {
        let next = number == self.command && at_most(number, self.last);
        if next {
            self.command = self.command.wrapping_add(1);
        }
        next
    }

    /// Sends a response that has a status number.
    pub(super) fn send(&mut self, pdu: Pdu, data: &[u8]) -> io::Result<()> {
        let next = self.status.wrapping_add(1);
        self.send_between(pdu.with(24, self.status), data)?;
        self.status = next;
        Ok(())
    }

    /// Sends an R2T, or a NOP-In that nobody asked for, which say which status number is the next one.
    pub(super) fn send_ready(&mut self, pdu: Pdu) -> io::Result<()> {
        self.send_between(pdu.with(24, self.status), &[])
    }

    /// A command ends without an answer. Where no other could come before, the initiator is told that one may: by a NOP-In that wants none.
    pub(super) fn give_back(&mut self) -> io::Result<()> {
        self.open -= 1;
        if at_most(self.command, self.last) {
            return Ok(());
        }
        self.send_ready(Pdu::new(opcode::NOP_IN).with(16, NO_TAG).with(20, NO_TAG))
    }

    /// Sends what has no status number, with the next command and the last that is taken.
    pub(super) fn send_between(&mut self, pdu: Pdu, data: &[u8]) -> io::Result<()> {
        let last = self.command.wrapping_add(WINDOW - 1).wrapping_sub(self.open);
        if at_most(self.last, last) {
            self.last = last;
        }
        pdu::write(&mut self.to, &pdu.with(28, self.command).with(32, self.last), data, self.digests)
    }
}

/// Serial numbers of 32 bits (RFC 1982).
fn at_most(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) < 1 << 31
}

impl<W: Write + Send> Tells for Mutex<Out<W>> {
    fn tell(&self, event: Event, end: Instant) -> io::Result<()> {
        let (code, [wait, keep]) = match event {
            Event::Leave(seconds) => (1, [0, seconds]),
            // Of all connections: Time2Wait, and Time2Retain.
            Event::Closed => (3, [TIME_TO_WAIT, 0]),
        };
        let mut pdu = Pdu::new(opcode::ASYNC).with(16, NO_TAG);
        pdu.header[36] = code;
        let pdu = pdu.with(40, u32::from(wait) << 16 | u32::from(keep));
        let mut out = self.try_lock_until(end).ok_or(io::ErrorKind::TimedOut)?;
        out.send(pdu, &[])?;
        out.to.flush()
    }
}

/// Seconds after which an initiator that lost its session may come again.
const TIME_TO_WAIT: u16 = 2;
