//! Reservations between two sessions, and task management that ends them.

use super::*;

/// Whether a host's first command is answered with status GOOD.
fn ready(target: &Target, initiator: &str, cdb: &[u8]) -> u8 {
    let text = NORMAL.replace("iqn.a", initiator);
    let (_, out, _) = converse(target, &text, &[command(1, 10, 0, 0, cdb)]);
    out[0].header[3]
}

/// PERSISTENT RESERVE OUT with its list.
fn out(number: u32, action: u8, kind: u8, keys: [u64; 2]) -> Pdu {
    let list = [&keys.map(u64::to_be_bytes).concat()[..], &[0; 8]].concat();
    let pdu = command(number, number, 0x20, 24, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0]);
    Pdu { data: list, ..pdu }
}

#[test]
fn another_initiators_reservation_is_the_status_of_a_conflict() {
    let target = target();
    let sent = [out(10, 0, 0, [0, 7]), out(11, 1, 1, [7, 0]), command(12, 12, 0x20, 512, &write_10(0, 1))];
    let (_, told, _) = converse(&target, NORMAL, &sent);
    assert_eq!(
        told.iter().map(|p| (p.opcode(), p.header[3])).collect::<Vec<_>>(),
        [(opcode::RESPONSE, 0), (opcode::RESPONSE, 0), (opcode::READY, 0),]
    );
    assert_eq!(ready(&target, "iqn.b", &write_10(0, 0)), 0x18);
    assert_eq!(ready(&target, "iqn.b", &[0; 6]), 0);
    // The port is the name and the ISID: the session is another one, the port the same.
    assert_eq!(ready(&target, "iqn.a", &write_10(0, 0)), 0);
}

#[test]
fn a_reset_starts_the_disk_brings_modes_back_and_ends_a_reservation_and_a_cold_one_the_session() {
    for (function, ends) in [(5, false), (6, false), (7, true)] {
        let target = target();
        target.disk.set_modes(Modes { write_protected: true, ..Modes::default() });
        let reset = Pdu::new(opcode::TASK).with(16, 50).with(24, 11);
        let mut reset = reset;
        reset.header[1] |= function;
        let [reserve, stop] = [0x16, 0x1b].map(|code| command(1, 10, 0, 0, &[code, 0, 0, 0, 0, 0]));
        let sent = [reserve, stop.with(24, 11), reset.with(24, 12), command(2, 13, 0, 0, &[0; 6])];
        let (_, told, good) = converse(&target, NORMAL, &sent);
        assert_eq!((told[0].header[3], told[1].header[3]), (0, 0));
        assert_eq!((told[2].opcode(), told[2].header[2]), (opcode::TASK_RESPONSE, 0));
        assert_eq!((told.len(), good), if ends { (3, true) } else { (4, false) }, "function {function}");
        assert_eq!(target.disk.modes(), Modes::default());
        assert_eq!(ready(&target, "iqn.b", &[0x16, 0, 0, 0, 0, 0]), 0, "it is free");
        assert_eq!(
            ready(&target, "iqn.c", &[0x16, 0, 0, 0, 0, 0]),
            0x18,
            "no listener says that its session is over"
        );
    }
}

/// A host that asks by REQUEST SENSE is told of the reset in its data, in the form and length that it asks for, and once; INQUIRY does not
/// tell it.
#[test]
fn request_sense_tells_of_a_reset_once() {
    for (cdb, told) in [
        ([0x03, 0, 0, 0, 14, 0], vec![0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0]),
        ([0x03, 1, 0, 0, 255, 0], vec![0x72, 6, 0x29, 0, 0, 0, 0, 0]),
    ] {
        let mut reset = Pdu::new(opcode::TASK).with(16, 50).with(24, 10);
        reset.header[1] |= 5;
        let sent = [
            reset,
            command(2, 11, 0x40, 255, &cdb),
            command(3, 12, 0x40, 255, &cdb),
            command(4, 13, 0, 0, &[0; 6]),
        ];
        let inquiry = command(5, 11, 0x40, 36, &[0x12, 0, 0, 0, 36, 0]);
        let (_, out, _) =
            converse(&target(), NORMAL, &[sent[0].clone(), inquiry, sent[1].clone().with(24, 12)]);
        assert_eq!((out[1].data.len(), &out[2].data), (36, &told));
        let (_, out, _) = converse(&target(), NORMAL, &sent);
        assert_eq!(out.iter().map(|p| p.header[3]).collect::<Vec<_>>(), [0; 4]);
        assert_eq!(out[1].data, told);
        let key = if cdb[1] == 0 { out[2].data[2] } else { out[2].data[1] };
        assert_eq!(key, 0, "nothing is left to tell");
    }
}

/// Another initiator takes the place of the one that holds a reservation: that one hears of it once.
#[test]
fn who_was_preempted_hears_of_it_once() {
    let target = target();
    let statuses = |initiator: &str, sent: &[Pdu]| {
        let (_, told, _) = converse(&target, &NORMAL.replace("iqn.a", initiator), sent);
        told.iter().map(|p| (p.opcode(), p.header[3])).collect::<Vec<_>>()
    };
    let good = (opcode::RESPONSE, 0);
    assert_eq!(statuses("iqn.a", &[out(10, 0, 0, [0, 7]), out(11, 1, 1, [7, 0])]), [good; 2]);
    assert_eq!(statuses("iqn.b", &[out(10, 0, 0, [0, 9]), out(11, 4, 1, [9, 7])]), [good; 2]);
    let ready = |number: u32| command(number, number, 0, 0, &[0; 6]);
    let heard = statuses("iqn.a", &[ready(10), ready(11), ready(12)]);
    assert_eq!(heard, [(opcode::RESPONSE, 2), good, good]);
}

/// What waits when PREEMPT AND ABORT ends its host's registration is neither carried out nor answered, and the host hears of that behind the end
/// of its registration; behind PREEMPT it gets the conflict. A host of which nothing waits has nothing to hear of.
#[test]
fn what_waits_is_aborted_with_its_registration() {
    let (good, attention) = ([0; 3], |code: [u8; 2]| [2, code[0], code[1]]);
    let [preempted, cleared] = [[0x2a, 5], [0x2f, 0]].map(attention);
    let conflict = [0x18, 0, 0];
    let data = data_out(3, 1, (0, 0), true, vec![7; 512]);
    let (two, three) = ([good, preempted], [good, preempted, cleared]);
    for (action, waits, told) in [
        (4, true, [&[conflict], &two[1..], &[good; 2]].concat()),
        (5, true, [&three[1..], &[good]].concat()),
        (5, false, [&two[1..], &[good; 2]].concat()),
    ] {
        let target = target();
        let mut sent = vec![out(10, 0, 0, [0, 7]), out(11, 1, 1, [7, 0])];
        if waits {
            sent.extend([command(3, 12, 0x20, 512, &write_10(0, 1)), data.clone()]);
        }
        let next = 12 + u32::from(waits);
        sent.extend((next..next + 3).map(|number| command(number, number, 0, 0, &[0; 6])));
        let other = NORMAL.replace("iqn.a", "iqn.b");
        let preempts = [out(10, 0, 0, [0, 9]), out(11, action, 1, [9, 7])];
        let left = 3 * 48 + if waits { 48 + 512 } else { 0 };
        let heard = hears_among(&target, (&other, &preempts), left, &sent);
        let byte = |pdu: &Pdu, at: usize| pdu.data.get(at).copied().unwrap_or(0);
        let answers = heard.iter().filter(|p| p.opcode() == opcode::RESPONSE);
        let answers: Vec<_> = answers.map(|p| [p.header[3], byte(p, 14), byte(p, 15)]).collect();
        assert_eq!(answers[..2], [good; 2]);
        assert_eq!(answers[2..], told, "action {action}, with a command that waits: {waits}");
        let last = heard.last().unwrap();
        assert_eq!(last.word(32) - last.word(28), 127, "all places in the window are free");
        let mut data = [1; 512];
        target.disk.read(Lba(0), &mut data).unwrap();
        assert_eq!(data, [0; 512], "nothing was written");
    }
}

/// A host that ends its own registration aborts its own commands, which is no news to it.
#[test]
fn who_aborts_its_own_commands_does_not_hear_of_it() {
    let sent = [
        out(10, 0, 0, [0, 7]),
        command(3, 11, 0x20, 512, &write_10(0, 1)),
        out(12, 5, 1, [7, 7]),
        data_out(3, 1, (0, 0), true, vec![7; 512]),
        command(13, 13, 0, 0, &[0; 6]),
    ];
    let (_, told, _) = converse(&target(), NORMAL, &sent);
    let told: Vec<_> = told.iter().map(|p| (p.opcode(), p.tag(), p.header[3])).collect();
    let answer = |tag| (opcode::RESPONSE, tag, 0);
    assert_eq!(told, [answer(10), (opcode::READY, 3, 0), answer(12), answer(13)]);
}
