//! Text requests and logouts in the full feature phase, and what other sessions hear.

use super::{NORMAL, command, converse, logout, target};
use smrlab_iscsi::pdu::{NO_TAG, Pdu, opcode};

fn text(number: u32, flags: u8, tag: u32, data: &[u8]) -> Pdu {
    let mut pdu = Pdu { data: data.to_vec(), ..Pdu::new(opcode::TEXT).with(16, number).with(20, tag) };
    pdu.header[1] = flags;
    pdu.with(24, number)
}

#[test]
fn text_that_goes_on_is_put_together() {
    let sent = [
        text(10, 0x40, NO_TAG, b"SendTar"),
        text(11, 0x40, 1, b"gets="),
        text(12, 0x80, 1, b"\0X-a=1\0"),
        // What was begun before is forgotten.
        text(13, 0x40, NO_TAG, b"SendTargets="),
        text(14, 0x00, NO_TAG, b"X-b=1\0"),
        // All are for discovery to tell.
        text(15, 0x80, 1, b"SendTargets=All\0"),
        logout(16),
    ];
    let (_, out, good) = converse(&target(), NORMAL, &sent);
    assert!(good);
    let told: Vec<_> = out.iter().map(|p| (p.flags(), p.word(20), p.data.is_empty())).collect();
    let goes_on = (0, 1, true);
    assert_eq!(told[..2], [goes_on, goes_on]);
    assert_eq!((told[2].0, told[2].1), (0x80, NO_TAG));
    assert!(out[2].data.starts_with(b"TargetName=") && out[2].data.ends_with(b"X-a=NotUnderstood\0"));
    assert_eq!((told[3], told[4]), (goes_on, (0, 1, false)), "the initiator has not said that it is over");
    assert_eq!((&out[4].data[..], told[5]), (&b"X-b=NotUnderstood\0"[..], (0x80, NO_TAG, true)));
}

/// How long PDUs may be the initiator says whenever it wants; what belongs to logins is refused, and what nobody knows is not understood.
#[test]
fn keys_of_the_full_feature_phase() {
    let read = |number| command(number, number, 0x40, 1024, &super::read_10(0, 2));
    let sent = [
        read(10),
        text(11, 0x80, NO_TAG, b"MaxRecvDataSegmentLength=0x200\0"),
        read(12),
        text(13, 0x80, NO_TAG, b"MaxBurstLength=512\0MaxRecvDataSegmentLength=511\0X-a=1\0"),
        logout(14),
    ];
    let (_, out, good) = converse(&target(), NORMAL, &sent);
    assert!(good);
    let lengths: Vec<usize> = out.iter().map(|pdu| pdu.data.len()).collect();
    assert_eq!(lengths[..4], [1024, 0, 512, 512]);
    let told = &b"MaxBurstLength=Reject\0MaxRecvDataSegmentLength=Reject\0X-a=NotUnderstood\0"[..];
    assert_eq!(&out[4].data[..], told);
}

/// SNACK has no number, and is refused at error recovery level 0; a command behind it is heard. So are functions of tasks that there are not.
#[test]
fn what_is_not_supported_is_said() {
    let task = |function: u8, number| {
        let mut pdu = Pdu::new(opcode::TASK).with(16, 50).with(20, 77).with(24, number);
        pdu.header[1] |= function;
        pdu
    };
    let snack = Pdu::new(0x10).with(16, 7).with(20, NO_TAG);
    let sent = [snack, task(3, 10), task(8, 11), task(9, 12), logout(13)];
    let (_, out, good) = converse(&target(), NORMAL, &sent);
    assert!(good);
    let told: Vec<_> = out.iter().map(|pdu| (pdu.opcode(), pdu.header[2])).collect();
    let response = opcode::TASK_RESPONSE;
    // A protocol error; no ACA; no other connection to go on by; none of the functions.
    let wanted =
        [(opcode::REJECT, 4), (response, 5), (response, 4), (response, 5), (opcode::LOGOUT_RESPONSE, 0)];
    assert_eq!(told, wanted);
    assert_eq!(out[0].data[..2], [0x10, 0x80]);
}

#[test]
fn text_that_does_not_end_or_is_none_ends_the_connection() {
    let part = vec![b'a'; 60_000];
    let sent = [text(10, 0x40, NO_TAG, &part), text(11, 0x40, 1, &part), logout(12)];
    assert!(!converse(&target(), NORMAL, &sent).2, "more text than is kept");
    for data in [&b"no pair\0"[..], b"a=1\0a=2\0", b"=1\0", b"\xff=1\0"] {
        let sent = [text(10, 0x80, NO_TAG, data), logout(11)];
        assert!(!converse(&target(), NORMAL, &sent).2, "{data:?}");
    }
}

#[test]
fn logouts_by_reason() {
    let out_of = |number: u32, reason: u8, connection: u32| {
        let mut pdu = Pdu::new(opcode::LOGOUT).with(16, number).with(20, connection << 16).with(24, number);
        pdu.header[1] = 0x80 | reason;
        pdu
    };
    // Another connection; recovery; a reason that there is not; this connection.
    let sent = [
        out_of(10, 1, 5),
        out_of(11, 2, 0),
        out_of(12, 9, 0),
        out_of(13, 1, 0),
        command(9, 14, 0, 0, &[0; 6]),
    ];
    let (_, out, good) = converse(&target(), NORMAL, &sent);
    let told: Vec<_> = out.iter().map(|p| (p.opcode(), p.header[2])).collect();
    let (response, reject) = (opcode::LOGOUT_RESPONSE, opcode::REJECT);
    assert_eq!(
        told,
        [(response, 1), (response, 2), (reject, 9), (response, 0)],
        "nothing is heard after that"
    );
    assert!(good);
}

#[test]
fn a_change_of_modes_is_news_to_the_other_sessions_alone() {
    let target = target();
    let page = [&[0; 4][..], &[0x0a, 0x0a, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut select = command(1, 10, 0x20, page.len() as u32, &[0x15, 0x10, 0, 0, 16, 0]);
    select.data = page;
    let out_of_range = command(2, 11, 0x40, 512, &[0x28, 0, 0xff, 0, 0, 0, 0, 0, 1, 0]);
    let sense = |p: &Pdu| (p.header[3], p.data.get(2..6).map(<[u8]>::to_vec));
    let (_, out, _) = converse(&target, NORMAL, &[select.clone(), out_of_range, logout(12)]);
    assert_eq!(sense(&out[0]), (0, None));
    assert_eq!(sense(&out[1]), (2, Some(vec![0x72, 5, 0x21, 0])), "sense data with descriptors from now on");
    // A session that begins later has no need to be told.
    let (_, out, _) = converse(&target, NORMAL, &[command(1, 10, 0, 0, &[0; 6]), logout(11)]);
    assert_eq!(sense(&out[0]), (0, None));
}
