//! Whole conversations, byte by byte: what an initiator sends goes in, what the target sends comes out.

mod aware;
mod chap;
mod headers;
mod listening;
mod reserving;
mod text;
mod window;
mod workers;
mod zones;

use proptest::prelude::*;
use smrlab_iscsi::Target;
use smrlab_iscsi::login::login;
use smrlab_iscsi::pdu::{self, Digests, NO_TAG, Pdu, opcode};
use smrlab_iscsi::session::{Session, Wire};
use smrlab_scsi::{Change, Disk, Done, Erasing, Extents, Facts, Kind, Modes, Reservations};
use smrlab_units::{Blocks, Lba, Zone, ZoneAction};
use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;

const NAME: &str = "iqn.2026-01.smrlab:t";

struct Memory(Facts, Mutex<Vec<u8>>, Mutex<Modes>, Mutex<Reservations>);

impl Memory {
    fn boxed() -> Box<Self> {
        let facts = Facts {
            blocks: Blocks(2048),
            logical: 512,
            physical: 512,
            product: "t".to_owned(),
            serial: "t".to_owned(),
            rpm: None,
            discards: false,
            kind: Kind::Conventional,
        };
        Box::new(Self(facts, Mutex::new(vec![0; 2048 * 512]), Mutex::default(), Mutex::default()))
    }
}

impl Disk for Memory {
    fn facts(&self) -> &Facts {
        &self.0
    }

    fn read(&self, lba: Lba, out: &mut [u8]) -> Done {
        let at = lba.0 as usize * 512;
        out.copy_from_slice(&self.1.lock().unwrap()[at..at + out.len()]);
        Ok(())
    }

    fn write(&self, lba: Lba, data: &[u8], _: bool) -> Done {
        let at = lba.0 as usize * 512;
        self.1.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done {
        self.read(lba, bytes)?;
        change(bytes)?;
        self.write(lba, bytes, fua)
    }

    fn extents(&self, _: Lba, _: &mut Extents<'_>) -> Done {
        Ok(())
    }

    fn erase(&self, _: Erasing, _: bool) -> Done {
        self.1.lock().unwrap().fill(0);
        Ok(())
    }

    fn modes(&self) -> Modes {
        *self.2.lock().unwrap()
    }

    fn set_modes(&self, modes: Modes) {
        *self.2.lock().unwrap() = modes;
    }

    fn reserved(&self, look: &mut dyn FnMut(&Reservations)) {
        look(&self.3.lock().unwrap());
    }

    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations)) {
        change(&mut self.3.lock().unwrap());
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

struct Bytes<'a>(&'a [u8]);

impl Read for Bytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(out)
    }
}

impl Wire for Bytes<'_> {
    fn waiting(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Sends everything at once, with digests after the login, and answers with what comes back; `Err`: the target ended it.
fn converse(target: &Target, login_text: &str, sent: &[Pdu]) -> (Vec<Pdu>, Vec<Pdu>, bool) {
    let digests = Digests {
        header: login_text.contains("HeaderDigest=CRC32C"),
        data: login_text.contains("DataDigest=CRC32C"),
    };
    let mut wire = Vec::new();
    let mut first = Pdu { data: login_text.replace(' ', "\0").into_bytes(), ..Pdu::new(opcode::LOGIN) };
    first.header[0] |= 0x40;
    // From the operational stage to the full feature phase; command number 10.
    first.header[1] = 0x87;
    pdu::write(&mut wire, &first.clone().with(24, 10), &first.data, Digests::default()).unwrap();
    for pdu in sent {
        pdu::write(&mut wire, pdu, &pdu.data, digests).unwrap();
    }
    raw(target, &wire, digests)
}

fn raw(target: &Target, wire: &[u8], digests: Digests) -> (Vec<Pdu>, Vec<Pdu>, bool) {
    let all = |bytes: &[u8], digests| {
        let mut rest = bytes;
        std::iter::from_fn(|| pdu::read(&mut rest, digests, 1 << 24).ok()).collect::<Vec<_>>()
    };
    let (mut from, mut told, mut out) = (Bytes(wire), Vec::new(), Vec::new());
    let agreed = login(target, &mut from, &mut told);
    let mut good = agreed.is_ok();
    if let Ok(Some(agreed)) = agreed {
        good = Session::new(target, agreed, "127.0.0.1:3260".to_owned(), &mut out).serve(from).is_ok();
    }
    (all(&told, Digests::default()), all(&out, digests), good)
}

const NORMAL: &str =
    "InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t MaxBurstLength=1024 FirstBurstLength=512 ";

/// A command: READ (40h) or WRITE (20h) flags, how much the initiator expects, and 10 bytes of CDB.
fn command(tag: u32, number: u32, flags: u8, expected: u32, cdb: &[u8]) -> Pdu {
    let mut pdu = Pdu::new(opcode::COMMAND).with(16, tag).with(20, expected).with(24, number);
    pdu.header[1] |= flags;
    pdu.header[32..32 + cdb.len()].copy_from_slice(cdb);
    pdu
}

const fn write_10(lba: u8, blocks: u8) -> [u8; 10] {
    [0x2a, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

const fn read_10(lba: u8, blocks: u8) -> [u8; 10] {
    [0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

fn data_out(tag: u32, transfer: u32, (number, offset): (u32, u32), last: bool, data: Vec<u8>) -> Pdu {
    let mut pdu = Pdu { data, ..Pdu::new(opcode::DATA_OUT) };
    pdu.header[1] = u8::from(last) << 7;
    pdu.with(16, tag).with(20, transfer).with(36, number).with(40, offset)
}

fn logout(number: u32) -> Pdu {
    Pdu::new(opcode::LOGOUT).with(16, 99).with(24, number)
}

fn target() -> Target {
    Target::new(NAME.to_owned(), Memory::boxed(), 1)
}

/// Opcode, tag and status number of each.
fn told(pdus: &[Pdu]) -> Vec<(u8, u32, u32)> {
    pdus.iter().map(|p| (p.opcode(), p.tag(), p.word(24))).collect()
}

#[test]
fn a_write_in_two_bursts_with_another_command_between_and_a_read() {
    for digests in ["", "HeaderDigest=CRC32C DataDigest=CRC32C "] {
        let data: Vec<u8> = (0..1536).map(|i| (i / 3) as u8).collect();
        let mut write = command(1, 10, 0x20, 1536, &write_10(4, 3));
        write.data = data[..256].to_vec();
        let sent = [
            write,
            command(2, 11, 0, 0, &[0; 6]),
            data_out(1, 1, (0, 256), false, data[256..512].to_vec()),
            data_out(1, 1, (1, 512), true, data[512..1280].to_vec()),
            data_out(1, 2, (0, 1280), true, data[1280..].to_vec()),
            command(3, 12, 0x40, 2000, &read_10(4, 3)),
            logout(13),
        ];
        let (logins, out, good) = converse(&target(), &format!("{NORMAL}{digests}"), &sent);
        assert!(good && logins.len() == 1 && logins[0].header[1] == 0x87 && logins[0].header[36] == 0);
        let text = String::from_utf8(logins[0].data.clone()).unwrap();
        assert!(
            text.contains("MaxBurstLength=1024\0") && text.contains("TargetPortalGroupTag=1\0"),
            "{text}"
        );
        let kinds = [
            (opcode::READY, 1, 2),
            (opcode::RESPONSE, 2, 2),
            (opcode::READY, 1, 3),
            (opcode::RESPONSE, 1, 3),
            (opcode::DATA_IN, 3, 4),
            (opcode::LOGOUT_RESPONSE, 99, 5),
        ];
        let last = out.iter().filter(|p| p.opcode() != opcode::DATA_IN || p.header[1] & 1 != 0).cloned();
        assert_eq!(told(&last.collect::<Vec<_>>()), kinds);
        assert_eq!([out[0].word(36), out[0].word(40), out[0].word(44)], [0, 256, 1024]);
        assert_eq!([out[2].word(36), out[2].word(40), out[2].word(44)], [1, 1280, 256]);
        let read: Vec<u8> =
            out.iter().filter(|p| p.opcode() == opcode::DATA_IN).flat_map(|p| p.data.clone()).collect();
        assert_eq!(read, data);
        let end = &out[out.len() - 2];
        assert_eq!((end.header[1] & 0x06, end.word(44)), (0x02, 2000 - 1536), "less than was expected");
    }
}

#[test]
fn refusals_come_as_sense_and_residuals_are_counted() {
    let sent = [
        command(1, 10, 0x40, 512, &[0x28, 0, 0, 0, 0x10, 0, 0, 0, 1, 0]),
        command(2, 11, 0x40, 100, &read_10(0, 1)),
        command(3, 12, 0, 0, &write_10(0, 1)),
        command(4, 13, 0, 512, &read_10(0, 1)),
        command(5, 14, 0x20, 512, &read_10(0, 1)),
        command(6, 15, 0x40, 512, &write_10(0, 1)),
        command(7, 16, 0x40, 512, &[0; 6]),
    ];
    let (_, out, _) = converse(&target(), NORMAL, &sent);
    assert_eq!(
        (out[0].opcode(), out[0].header[3], &out[0].data[..5]),
        (opcode::RESPONSE, 2, &[0, 18, 0xf0, 0, 5][..])
    );
    assert_eq!(
        (out[1].data.len(), out[1].header[1] & 0x07, out[1].word(44)),
        (100, 0x05, 412),
        "more than was expected"
    );
    assert_eq!((out[2].header[1] & 0x06, out[2].word(44)), (0x04, 512), "a write without data");
    let told = |pdu: &Pdu| (pdu.opcode(), pdu.header[3], pdu.header[1] & 0x06, pdu.word(44));
    for (pdu, what) in out[3..6].iter().zip(["no data are taken", "data are sent", "data are awaited"]) {
        assert_eq!(told(pdu), (opcode::RESPONSE, 0, 0x04, 512), "{what}");
    }
    assert_eq!(told(&out[6]), (opcode::RESPONSE, 0, 0x02, 512), "nothing is read");
}

/// Whatever the pieces are: here of 512 bytes in bursts of 1280.
#[test]
fn a_sequence_of_data_is_no_longer_than_a_burst() {
    let text = NORMAL.replace("Length=1024", "Length=1280 MaxRecvDataSegmentLength=512");
    let (_, out, _) = converse(&target(), &text, &[command(1, 10, 0x40, 2048, &read_10(0, 4))]);
    assert_eq!(out.iter().map(|p| p.flags() >> 7).collect::<Vec<_>>(), [0, 1, 0, 1]);
}

#[test]
fn data_out_of_order_end_a_command_and_a_task_is_aborted() {
    let write = |tag, number| command(tag, number, 0x20, 512, &write_10(0, 1));
    let abort = |tag, number| {
        let mut pdu = Pdu::new(opcode::TASK).with(16, 50).with(20, tag).with(24, number);
        pdu.header[1] |= 1;
        pdu
    };
    let sent = [
        write(1, 10),
        data_out(1, 1, (1, 0), true, vec![7; 512]),
        write(2, 11),
        abort(2, 12),
        abort(2, 13),
        // Of a task that is gone.
        data_out(2, 1, (0, 0), true, vec![7; 512]),
        command(3, 14, 0x40, 512, &read_10(0, 1)),
    ];
    let (_, out, good) = converse(&target(), NORMAL, &sent);
    assert!(!good, "the initiator went away");
    let kinds: Vec<_> = out.iter().map(|p| (p.opcode(), p.header[2], p.header[3])).collect();
    let expected = [
        (opcode::READY, 0, 0),
        (opcode::RESPONSE, 0, 2),
        (opcode::READY, 0, 0),
        (opcode::TASK_RESPONSE, 0, 0),
        (opcode::TASK_RESPONSE, 1, 0),
        (opcode::DATA_IN, 0, 0),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(out[5].data, [0; 512], "nothing was written");
}

#[test]
fn commands_out_of_the_window_are_not_heard() {
    let sent = [command(1, 9, 0, 0, &[0; 6]), command(2, 200, 0, 0, &[0; 6]), command(3, 10, 0, 0, &[0; 6])];
    let (_, out, _) = converse(&target(), NORMAL, &sent);
    assert_eq!(told(&out), [(opcode::RESPONSE, 3, 2)]);
    assert_eq!((out[0].word(28), out[0].word(32)), (11, 11 + 127));
}

/// What another session, of this text of a login, sends when this one has that many bytes left to read.
struct After<'a>(&'a Target, (&'a str, &'a [Pdu]), Bytes<'a>, Option<usize>);

impl Read for After<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.3.take_if(|left| self.2.0.len() <= *left).is_some() {
            let (_, told, _) = converse(self.0, self.1.0, self.1.1);
            assert!(told.iter().all(|told| (told.header[2], told.header[3]) == (0, 0)));
            assert_eq!(told.len(), self.1.1.len());
        }
        self.2.read(out)
    }
}

impl Wire for After<'_> {
    fn waiting(&self) -> bool {
        false
    }
}

/// What a session hears of what it sends, when another one sends something before the last `left` bytes of it.
fn hears_with(target: &Target, other: Pdu, left: usize, sent: &[Pdu]) -> Vec<Pdu> {
    hears_among(target, (NORMAL, &[other]), left, sent)
}

/// The same, when another initiator sends all of that.
fn hears_among(target: &Target, other: (&str, &[Pdu]), left: usize, sent: &[Pdu]) -> Vec<Pdu> {
    let mut wire = Vec::new();
    let mut first = Pdu { data: NORMAL.replace(' ', "\0").into_bytes(), ..Pdu::new(opcode::LOGIN) };
    first.header[0] |= 0x40;
    first.header[1] = 0x87;
    pdu::write(&mut wire, &first.clone().with(24, 10), &first.data, Digests::default()).unwrap();
    let agreed = login(target, &mut &wire[..], &mut Vec::new()).unwrap().unwrap();
    let (mut out, mut commands) = (Vec::new(), Vec::new());
    for pdu in sent {
        pdu::write(&mut commands, pdu, &pdu.data, Digests::default()).unwrap();
    }
    let from = After(target, other, Bytes(&commands), Some(left));
    let _ = Session::new(target, agreed, String::new(), &mut out).serve(from);
    let mut rest = &out[..];
    std::iter::from_fn(|| pdu::read(&mut rest, Digests::default(), 1 << 20).ok()).collect()
}

/// A write whose data are to come when another session resets the logical unit writes nothing, and is not answered.
#[test]
fn a_reset_ends_what_other_sessions_wait_for() {
    let mut reset = Pdu::new(opcode::TASK).with(16, 50).with(24, 10);
    reset.header[1] |= 5;
    let sent = [
        command(1, 10, 0x20, 512, &write_10(0, 1)),
        data_out(1, 1, (0, 0), true, vec![7; 512]),
        // INQUIRY does not tell of it.
        command(2, 11, 0x40, 36, &[0x12, 0, 0, 0, 36, 0]),
        command(3, 12, 0, 0, &[0; 6]),
        command(4, 13, 0x40, 512, &read_10(0, 1)),
    ];
    let out = hears_with(&target(), reset, 4 * 48 + 512, &sent);
    let heard: Vec<_> = out.iter().map(|p| (p.opcode(), p.tag(), p.header[3])).collect();
    let data = |tag| (opcode::DATA_IN, tag, 0);
    assert_eq!(heard, [(opcode::READY, 1, 0), data(2), (opcode::RESPONSE, 3, 2), data(4)]);
    assert_eq!(out[3].data, [0; 512]);
    assert_eq!(out[3].word(32) - out[3].word(28), 127, "its place in the window is free");
}

/// A logical unit that is not there has nothing to tell of the one that is, and does not hear it in its place.
#[test]
fn a_reset_is_told_of_the_unit_that_was_reset() {
    let mut reset = Pdu::new(opcode::TASK).with(16, 50).with(24, 10);
    reset.header[1] |= 5;
    let mut away = command(1, 10, 0, 0, &[0; 6]);
    away.header[9] = 1;
    let heard = hears_with(&target(), reset, usize::MAX, &[away, command(2, 11, 0, 0, &[0; 6])]);
    let sense: Vec<_> = heard.iter().map(|p| (p.header[3], p.data[4], p.data[14])).collect();
    assert_eq!(sense, [(2, 5, 0x25), (2, 6, 0x29)]);
}

/// A command overtakes a write whose data are to come, but not an ORDERED one, nor one at the head of the queue; unless that is aborted.
#[test]
fn nothing_overtakes_an_ordered_command() {
    let (ready, written, read) = ((opcode::READY, 1), (opcode::RESPONSE, 1), (opcode::DATA_IN, 2));
    let mut abort = Pdu::new(opcode::TASK).with(16, 50).with(20, 1).with(24, 12);
    abort.header[1] |= 1;
    let data = data_out(1, 1, (0, 0), true, vec![7; 512]);
    for (attribute, last, told, byte) in [
        (1, &data, [ready, read, written], 0),
        (2, &data, [ready, written, read], 7),
        (3, &data, [ready, written, read], 7),
        (2, &abort, [ready, (opcode::TASK_RESPONSE, 50), read], 0),
    ] {
        let write = command(1, 10, 0x20 | attribute, 512, &write_10(0, 1));
        let sent = [write, command(2, 11, 0x41, 512, &read_10(0, 1)), last.clone()];
        let (_, out, _) = converse(&target(), NORMAL, &sent);
        assert_eq!(out.iter().map(|p| (p.opcode(), p.tag())).collect::<Vec<_>>(), told, "{attribute}");
        let data = out.iter().find(|p| p.opcode() == opcode::DATA_IN).unwrap();
        assert_eq!(data.data, [byte; 512], "{attribute}");
    }
}

#[test]
fn what_one_session_changes_is_told_once_to_those_that_began_before() {
    let mut reset = Pdu::new(opcode::TASK).with(16, 50).with(24, 10);
    reset.header[1] |= 5;
    let select = |protects: u8| {
        let page = [&[0; 4][..], &[0x0a, 0x0a, 0x22, 0x10, protects, 0, 0, 0, 0, 0, 0, 0]].concat();
        let pdu = command(1, 10, 0x20, page.len() as u32, &[0x15, 0x10, 0, 0, 16, 0]);
        Pdu { data: page, ..pdu }
    };
    // A page as it is already is no news.
    for (other, code) in [(reset, Some(0x29)), (select(0x08), Some(0x2a)), (select(0), None)] {
        let sent = [command(1, 10, 0, 0, &[0; 6]), command(2, 11, 0, 0, &[0; 6])];
        let heard = hears_with(&target(), other, usize::MAX, &sent);
        let [first, second] = &heard[..] else { panic!("{heard:?}") };
        let attention = (first.header[3], first.data.get(4), first.data.get(14).copied());
        assert_eq!(attention, (code.map_or(0, |_| 2), code.map(|_| &6), code), "unit attention");
        assert_eq!(second.header[3], 0, "once");
    }
}

#[test]
fn discovery_and_logins_that_fail() {
    let mut ask = Pdu { data: b"SendTargets=All\0".to_vec(), ..Pdu::new(opcode::TEXT) };
    ask = ask.with(16, 5).with(20, NO_TAG).with(24, 10);
    let sent = [command(1, 10, 0, 0, &[0; 6]), ask.with(24, 11), logout(12)];
    let (_, out, good) = converse(&target(), "InitiatorName=iqn.a SessionType=Discovery ", &sent);
    assert!(good);
    assert_eq!(out[0].opcode(), opcode::REJECT, "no commands in a discovery session");
    assert_eq!(out[1].data, format!("TargetName={NAME}\0TargetAddress=127.0.0.1:3260,1\0").into_bytes());
    for (text, why) in [
        ("InitiatorName=iqn.a TargetName=iqn.other ", [2, 3]),
        ("TargetName=iqn.2026-01.smrlab:t ", [2, 7]),
        ("InitiatorName=iqn.a ", [2, 7]),
        ("InitiatorName=iqn.a SessionType=Odd ", [2, 9]),
        ("InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t MaxBurstLength=none ", [2, 0]),
        ("nonsense ", [2, 0]),
        ("InitiatorName=iqn.a InitiatorName=iqn.b ", [2, 0]),
        (&format!("InitiatorName=iqn.a X-{}=1 ", "k".repeat(62)), [2, 0]),
    ] {
        let (logins, out, _) = converse(&target(), text, &[]);
        assert_eq!(logins[0].header[36..38], why, "{text}");
        assert!(out.is_empty());
    }
    assert!(!raw(&target(), b"GET / HTTP/1.0\r\n\r\n", Digests::default()).2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A conversation that is damaged at random: nothing panics, and it ends.
    #[test]
    fn damaged_conversations_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12), cut: prop::sample::Index) {
        let data = vec![5; 1024];
        let sent = [
            command(1, 10, 0x20, 1024, &write_10(4, 2)),
            data_out(1, 1, (0, 0), true, data),
            command(3, 11, 0x40, 2000, &read_10(4, 3)),
            Pdu { data: b"SendTargets=\0".to_vec(), ..Pdu::new(opcode::TEXT).with(24, 12) },
            logout(13),
        ];
        let mut wire = Vec::new();
        let mut first = Pdu { data: NORMAL.replace(' ', "\0").into_bytes(), ..Pdu::new(opcode::LOGIN) };
        first.header[0] |= 0x40;
        first.header[1] = 0x87;
        pdu::write(&mut wire, &first.clone().with(24, 10), &first.data, Digests::default()).unwrap();
        for pdu in &sent {
            pdu::write(&mut wire, pdu, &pdu.data, Digests::default()).unwrap();
        }
        for (at, byte) in changes {
            let at = at.index(wire.len());
            wire[at] ^= byte;
        }
        wire.truncate(cut.index(wire.len()) + 1);
        let _ = raw(&target(), &wire, Digests::default());
    }
}
