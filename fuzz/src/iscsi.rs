//! Bytes as what an iSCSI initiator sends: nothing panics, and what the target answers is whole PDUs with numbers in order.
//!
//! The first byte chooses the layer, and whether a login goes before the rest.

use super::bytes::Input;
use super::scsi::served;
use smrlab_iscsi::Target;
use smrlab_iscsi::keys::Text;
use smrlab_iscsi::login::login;
use smrlab_iscsi::pdu::{self, Digests, Pdu, opcode};
use smrlab_iscsi::session::{Session, Wire};
use std::io::{self, Read};

const NAME: &str = "iqn.2026-01.smrlab:fuzz";

struct Wires<'a>(&'a [u8]);

impl Read for Wires<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Wire for Wires<'_> {
    fn waiting(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Has a conversation with `data`.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.number(1);
    let target = Target::new(NAME.to_owned(), served(choice & 0x0f), 1);
    let mut sent = Vec::new();
    if choice & 0x80 != 0 {
        sent.extend(logs_in());
    }
    sent.extend_from_slice(input.0);
    let (mut from, mut answers) = (Wires(&sent), Vec::new());
    let Ok(Some(agreed)) = login(&target, &mut from, &mut answers) else { return };
    whole(&answers, Digests::default());
    let (digests, mut told) = (agreed.digests, Vec::new());
    let _ = Session::new(&target, agreed, "127.0.0.1:3260".to_owned(), &mut told).serve(from);
    whole(&told, digests);
}

/// A login request that is granted at once.
fn logs_in() -> Vec<u8> {
    let mut text = Text::default();
    text.add("InitiatorName", "iqn.2026-01.fuzz");
    text.add("TargetName", NAME);
    text.add("SessionType", "Normal");
    let mut request = Pdu::new(opcode::LOGIN | 0x40);
    // T, from the operational stage to the full feature phase.
    request.header[1] = 0x87;
    let mut out = Vec::new();
    pdu::write(&mut out, &request.with(24, 1), &text.0, Digests::default()).expect("memory");
    out
}

/// Answers are whole PDUs; those with a status number count by one.
fn whole(mut answers: &[u8], digests: Digests) {
    let mut next = None;
    while !answers.is_empty() {
        let pdu = pdu::read(&mut answers, digests, 1 << 24).expect("a whole PDU");
        let counts = match pdu.opcode() {
            opcode::DATA_IN => pdu.flags() & 1 != 0,
            opcode::READY => false,
            _ => true,
        };
        if counts {
            let number = pdu.word(24);
            assert!(next.is_none_or(|n| n == number), "status {number}, not {next:?}");
            next = Some(number.wrapping_add(1));
        }
    }
}
