//! Every byte of the headers that the target sends, as RFC 7143, section 11, lays them out; and what a login agrees on, key by key.

use super::*;

/// A login whose tag, session identity (ISID) and connection have bytes that differ: what is copied from the wrong place shows.
fn first(flags: u8, text: &str) -> Pdu {
    let mut pdu = Pdu { data: text.replace(' ', "\0").into_bytes(), ..Pdu::new(opcode::LOGIN | 0x40) };
    pdu.header[1] = flags;
    pdu.header[8..14].copy_from_slice(&[0x80, 1, 2, 3, 4, 5]);
    pdu.with(16, 0x0a0b_0c0d).with(20, 0x0102 << 16).with(24, 10)
}

/// What a target says to a login and to PDUs, without digests.
fn told_by(target: &Target, logins: &[Pdu], sent: &[Pdu]) -> (Vec<Pdu>, Vec<Pdu>, bool) {
    let mut wire = Vec::new();
    for pdu in logins.iter().chain(sent) {
        pdu::write(&mut wire, pdu, &pdu.data, Digests::default()).unwrap();
    }
    raw(target, &wire, Digests::default())
}

/// A header, by its first four bytes, how many bytes follow it, the next eight, and eight words.
fn header(first: [u8; 4], length: u32, next: [u8; 8], words: [u32; 8]) -> Vec<u8> {
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&first[..], &length.to_be_bytes(), &next, &words].concat()
}

/// Logical unit 0 in another way of writing it.
const UNIT: [u8; 8] = [0x40, 0, 0, 0, 0, 0, 0, 0];
const NONE: [u8; 8] = [0; 8];

fn to_unit(mut pdu: Pdu) -> Pdu {
    pdu.header[8..16].copy_from_slice(&UNIT);
    pdu
}

/// Two of each that a session may get. MaxCmdSN is 127 behind the next command, less what is not answered.
#[test]
fn headers_are_those_of_the_standard() {
    let text = format!("{NORMAL}MaxRecvDataSegmentLength=512 ");
    let nop = |tag, number| {
        to_unit(Pdu { data: b"ping".to_vec(), ..Pdu::new(opcode::NOP_OUT) }.with(16, tag).with(24, number))
    };
    let mut silent = nop(NO_TAG, 11);
    silent.header[0] |= 0x40;
    let mut abort = Pdu::new(opcode::TASK).with(16, 6).with(20, 77).with(24, 13);
    abort.header[1] |= 1;
    let mut end = Pdu::new(opcode::LOGOUT).with(16, 9).with(20, 0x0102 << 16).with(24, 16);
    end.header[1] |= 1;
    let sent = [
        nop(7, 10),
        silent,
        to_unit(command(1, 11, 0x20, 1536, &write_10(4, 3))),
        data_out(1, 1, (0, 0), false, vec![1; 512]),
        data_out(1, 1, (1, 512), true, vec![2; 512]),
        data_out(1, 2, (0, 1024), true, vec![3; 512]),
        to_unit(command(2, 12, 0x40, 2000, &read_10(4, 3))),
        abort,
        // An opcode that no initiator sends, and a command that the disk has not.
        Pdu::new(0x1c).with(16, 8).with(24, 14),
        command(3, 15, 0, 0, &[0xee; 6]),
        end,
    ];
    let (logins, out, good) = told_by(&target(), &[first(0x87, &text)], &sent);
    assert!(good);
    let answer = header(
        [0x23, 0x87, 0, 0],
        logins[0].data.len() as u32,
        // The ISID, and the number of the session.
        [0x80, 1, 2, 3, 4, 5, 0, 1],
        [0x0a0b_0c0d, 0, 1, 10, 137, 0, 0, 0],
    );
    assert_eq!(logins[0].header[..], answer);
    let wanted = [
        header([0x20, 0x80, 0, 0], 4, UNIT, [7, NO_TAG, 2, 11, 138, 0, 0, 0]),
        // Ready to transfer: the status number is the next one's, its own number, where from, how much.
        header([0x31, 0x80, 0, 0], 0, UNIT, [1, 1, 3, 12, 138, 0, 0, 1024]),
        header([0x31, 0x80, 0, 0], 0, UNIT, [1, 2, 3, 12, 138, 1, 1024, 512]),
        header([0x21, 0x80, 0, 0], 0, NONE, [1, 0, 3, 12, 139, 0, 0, 0]),
        // Data: a burst ends with the second, the status comes with the third, and 464 bytes are missing.
        header([0x25, 0x00, 0, 0], 512, UNIT, [2, NO_TAG, 0, 13, 140, 0, 0, 0]),
        header([0x25, 0x80, 0, 0], 512, UNIT, [2, NO_TAG, 0, 13, 140, 1, 512, 0]),
        header([0x25, 0x83, 0, 0], 512, UNIT, [2, NO_TAG, 4, 13, 140, 2, 1024, 464]),
        header([0x22, 0x80, 1, 0], 0, NONE, [6, 0, 5, 14, 141, 0, 0, 0]),
        header([0x3f, 0x80, 5, 0], 48, NONE, [NO_TAG, 0, 6, 15, 142, 0, 0, 0]),
        header([0x21, 0x80, 0, 2], 20, NONE, [3, 0, 7, 16, 143, 0, 0, 0]),
        header([0x26, 0x80, 0, 0], 0, NONE, [9, 0, 8, 17, 144, 0, 0, 0]),
    ];
    for (i, (pdu, wanted)) in out.iter().zip(&wanted).enumerate() {
        assert_eq!(pdu.header[..], wanted[..], "answer {i}");
    }
    assert_eq!(out.len(), wanted.len());
    assert_eq!((&out[0].data[..], &out[8].data[..4]), (&b"ping"[..], &[0x1c, 0x80, 0, 0][..]));
    let read: Vec<u8> = out[4..7].iter().flat_map(|p| p.data.clone()).collect();
    assert_eq!(read, [[1; 512], [2; 512], [3; 512]].concat());
}

/// Whether a Data-Out is taken, by its tag of transfer, its number, its offset, its length and whether it is the last.
#[test]
fn data_are_what_was_asked_for_or_the_command_ends() {
    // Another tag; one that came before is missing; another place; too few, too many, and more to come.
    for (sense, transfer, number, offset, length, last) in [
        (None, 1, 0, 0, 512, true),
        (Some([0x4b, 1]), 2, 0, 0, 512, true),
        (Some([0x47, 5]), 1, 1, 0, 512, true),
        (Some([0x4b, 5]), 1, 0, 4, 512, true),
        (Some([0x0c, 0x0d]), 1, 0, 0, 508, true),
        (Some([0x0c, 0x0d]), 1, 0, 0, 516, true),
        (Some([0x0c, 0x0d]), 1, 0, 0, 512, false),
    ] {
        let good = sense.is_none();
        let data = data_out(1, transfer, (number, offset), last, vec![9; length]);
        let sent = [
            command(1, 10, 0x20, 512, &write_10(0, 1)),
            data,
            command(2, 11, 0x40, 512, &read_10(0, 1)),
            logout(12),
        ];
        let (_, out, _) = converse(&target(), NORMAL, &sent);
        let what = format!("{transfer}, {number}, {offset}, {length}, {last}");
        let written = if good { [9; 512] } else { [0; 512] };
        // It asked for the whole block: a write that was refused counts nothing as left over.
        assert_eq!(
            (out[1].header[3], out[1].header[1], out[1].word(44)),
            (if good { 0 } else { 2 }, if good { 0x80 } else { 0x82 }, if good { 0 } else { 512 }),
            "{what}"
        );
        assert_eq!((out[2].opcode(), &out[2].data[..]), (opcode::DATA_IN, &written[..]), "{what}");
        if let Some(sense) = sense {
            assert_eq!((out[1].data[2 + 2], &out[1].data[2 + 12..2 + 14]), (0x0b, &sense[..]), "{what}");
        }
    }
}

/// What is answered to each key of a login; nothing: it is not said again.
#[test]
fn a_login_agrees_on_each_key() {
    let who = "InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t ";
    for (asked, told) in [
        ("InitiatorAlias=x", ""),
        ("HeaderDigest=None", "HeaderDigest=None"),
        ("HeaderDigest=X,CRC32C,None", "HeaderDigest=CRC32C"),
        ("DataDigest=None,CRC32C", "DataDigest=None"),
        ("DataDigest=X", "DataDigest=Reject"),
        ("MaxBurstLength=512", "MaxBurstLength=512"),
        ("MaxBurstLength=16777215", "MaxBurstLength=16777215"),
        ("FirstBurstLength=512", "FirstBurstLength=512"),
        ("FirstBurstLength=262144", "FirstBurstLength=262144"),
        ("FirstBurstLength=262145", "FirstBurstLength=262144"),
        ("MaxBurstLength=0x400", "MaxBurstLength=1024"),
        ("MaxBurstLength=1024 FirstBurstLength=0X800", "FirstBurstLength=1024 MaxBurstLength=1024"),
        ("MaxRecvDataSegmentLength=512", ""),
        ("InitialR2T=No", "InitialR2T=Yes"),
        ("ImmediateData=Yes", "ImmediateData=Yes"),
        ("ImmediateData=No", "ImmediateData=No"),
        ("MaxConnections=8", "MaxConnections=1"),
        ("MaxOutstandingR2T=8", "MaxOutstandingR2T=1"),
        ("ErrorRecoveryLevel=2", "ErrorRecoveryLevel=0"),
        ("DefaultTime2Retain=20", "DefaultTime2Retain=0"),
        ("DefaultTime2Wait=1", "DefaultTime2Wait=2"),
        ("DefaultTime2Wait=3", "DefaultTime2Wait=3"),
        ("DefaultTime2Wait=3600", "DefaultTime2Wait=3600"),
        ("DataPDUInOrder=No", "DataPDUInOrder=Yes"),
        ("DataSequenceInOrder=No", "DataSequenceInOrder=Yes"),
        ("IFMarker=Yes", "IFMarker=No"),
        ("OFMarker=Yes", "OFMarker=No"),
        ("IFMarkInt=9", "IFMarkInt=Irrelevant"),
        ("OFMarkInt=9", "OFMarkInt=Irrelevant"),
        ("iSCSIProtocolLevel=0", "iSCSIProtocolLevel=0"),
        ("iSCSIProtocolLevel=2", "iSCSIProtocolLevel=1"),
        ("TaskReporting=FastAbort,RFC3720", "TaskReporting=RFC3720"),
        ("TaskReporting=FastAbort", "TaskReporting=Reject"),
        ("X-other=1", "X-other=NotUnderstood"),
    ] {
        let (logins, _, _) = told_by(&target(), &[first(0x87, &format!("{who}{asked} "))], &[]);
        let text = String::from_utf8(logins[0].data.clone()).unwrap();
        let mut pairs: Vec<&str> = text.split_terminator('\0').collect();
        pairs.sort_unstable();
        pairs.retain(|p| *p != "TargetPortalGroupTag=1" && *p != "MaxRecvDataSegmentLength=262144");
        assert_eq!((pairs.join(" "), text.matches("=1\0").count() > 0), (told.to_owned(), true), "{asked}");
        assert!(text.contains("MaxRecvDataSegmentLength=262144\0"), "{text}");
    }
    let refused = |asked: &str| {
        let (logins, _, _) = told_by(&target(), &[first(0x87, &format!("{who}{asked} "))], &[]);
        assert_eq!(logins[0].header[36..38], [2, 0], "{asked}");
    };
    for wrong in ["MaxBurstLength", "FirstBurstLength", "MaxRecvDataSegmentLength"] {
        for value in ["511", "16777216", "x", "0x1ff", "0x1000000", "0x", "0xg00", "+512"] {
            refused(&format!("{wrong}={value}"));
        }
    }
    refused("DefaultTime2Wait=3601");
    refused("iSCSIProtocolLevel=32");
}

/// A key that was said already, in this request or in one before it, ends the login.
#[test]
fn nothing_is_said_twice() {
    for (again, status) in [
        ("MaxOutstandingR2T=1", 0),
        ("MaxBurstLength=1024", 2),
        // Who it is may be said in each stage, if it is the same.
        ("InitiatorName=iqn.a TargetName=iqn.2026-01.smrlab:t", 0),
        ("InitiatorName=iqn.b", 2),
        ("TargetName=iqn.2026-01.smrlab:u", 2),
    ] {
        let again = first(0x87, &format!("{again} "));
        let (logins, _, _) = told_by(&target(), &[first(0x04, NORMAL), again.clone()], &[]);
        let told = logins.iter().map(|login| login.header[36]).collect::<Vec<_>>();
        assert_eq!(told, [0, status], "{}", String::from_utf8_lossy(&again.data));
    }
}

/// Discovery sessions have numbers as others have.
#[test]
fn a_discovery_session_has_a_number() {
    let text = "InitiatorName=iqn.a SessionType=Discovery ";
    let (logins, _, _) = told_by(&target(), &[first(0x83, text)], &[]);
    assert_eq!((logins[0].header[36], &logins[0].header[14..16]), (0, &[0, 1][..]));
}

/// Status of a login by its flags (transit, continue, stage, next), its version and its session.
#[test]
fn a_login_goes_from_stage_to_stage() {
    for (flags, version, session, told) in [
        (0x81, 0, 0, (0x81, [0, 0])),
        (0x83, 0, 0, (0x83, [0, 0])),
        (0x87, 0, 0, (0x87, [0, 0])),
        (0x00, 0, 0, (0x00, [0, 0])),
        (0x04, 0, 0, (0x04, [0, 0])),
        // The stage it is in, one that there is not, one before it, and out of one that there is not.
        (0x80, 0, 0, (0, [2, 11])),
        (0x82, 0, 0, (0, [2, 11])),
        (0x85, 0, 0, (0, [2, 11])),
        (0x84, 0, 0, (0, [2, 11])),
        (0x8b, 0, 0, (0, [2, 11])),
        (0x0c, 0, 0, (0, [2, 11])),
        (0x87, 1, 0, (0, [2, 5])),
        (0x87, 0, 7, (0, [2, 10])),
    ] {
        let mut pdu = first(flags, NORMAL);
        pdu.header[3] = version;
        pdu.header[15] = session;
        let (logins, _, _) = told_by(&target(), &[pdu], &[]);
        assert_eq!(
            (logins[0].flags(), [logins[0].header[36], logins[0].header[37]]),
            told,
            "{flags:#x}, version {version}, session {session}"
        );
    }
}

/// Who asks for methods in the first stage hears which one; a target without secrets takes nobody who wants to prove something.
#[test]
fn who_need_not_prove_anything_is_told_so() {
    for (methods, status, told) in
        [("None", [0, 0], true), ("CHAP,None", [0, 0], true), ("CHAP", [2, 1], false)]
    {
        let (logins, _, _) =
            told_by(&target(), &[first(0x81, &format!("{NORMAL}AuthMethod={methods} "))], &[]);
        let text = String::from_utf8(logins[0].data.clone()).unwrap();
        assert_eq!((&logins[0].header[36..38], text.contains("AuthMethod=None\0")), (&status[..], told));
    }
    // In the stage behind it nobody asks for one.
    let (logins, _, _) = told_by(&target(), &[first(0x87, &format!("{NORMAL}AuthMethod=None "))], &[]);
    assert!(!String::from_utf8_lossy(&logins[0].data).contains("AuthMethod"));
}

/// Text of logins may come in parts, and no more of it than 64 KiB, whether it goes on or not.
#[test]
fn a_login_in_parts() {
    let part = |flags, text: &str| first(flags, text);
    let parts = [part(0x44, "InitiatorName=iqn.a TargetName=iqn.2026"), part(0x87, "-01.smrlab:t X-a=1 ")];
    let (logins, _, _) = told_by(&target(), &parts, &[]);
    assert_eq!((logins[0].flags(), logins[0].data.len()), (0x04, 0), "it waits for the rest");
    assert_eq!((logins[1].flags(), logins[1].header[36]), (0x87, 0));
    assert_eq!((logins[0].word(24), logins[1].word(24)), (1, 2), "numbers of their statuses");
    assert!(logins[1].data.ends_with(b"X-a=NotUnderstood\0MaxRecvDataSegmentLength=262144\0"));
    for (parts, status) in [(8, [0, 0]), (9, [2, 0])] {
        let parts: Vec<Pdu> = (0..parts).map(|_| part(0x44, &"x".repeat(8192))).collect();
        let (logins, _, _) = told_by(&target(), &parts, &[]);
        let last = logins.last().unwrap();
        assert_eq!(([last.header[36], last.header[37]], logins.len()), (status, parts.len()));
    }
}

/// Sessions have numbers from 1 on, and after the last of 16 bits the first again.
#[test]
fn no_session_has_the_number_0() {
    let target = target();
    let numbers: Vec<u16> = (0..65_537).map(|_| target.session_number()).collect();
    assert_eq!((numbers[0], numbers[65_534], numbers[65_535]), (1, u16::MAX, 1));
}
