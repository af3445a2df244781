//! How many commands a session may send: whatever ends a command gives its place back. And how much of what is sent a write takes.

use super::*;

fn nop(number: u32) -> Pdu {
    Pdu::new(opcode::NOP_OUT).with(16, 90).with(24, number)
}

fn task(function: u8, number: u32, about: u32) -> Pdu {
    let mut pdu = Pdu::new(opcode::TASK).with(16, 50).with(20, about).with(24, number);
    pdu.header[1] |= function;
    pdu
}

/// What an initiator sends for commands that end, and what is asked for after them hears a window of 128 from the next command on.
#[test]
fn whatever_ends_a_command_gives_its_place_back() {
    let write = |tag, number| command(tag, number, 0x20, 512, &write_10(0, 1));
    let data = |transfer| data_out(1, transfer, (0, 0), true, vec![7; 512]);
    // Aborts of a task, of sets of tasks, and resets of the unit and of the target, while data are waited for.
    let aborts = [1, 2, 4, 5, 6].map(|function| {
        (
            "an abort",
            vec![
                write(1, 10),
                write(2, 11),
                task(function, 12, 1),
                task(1, 13, 2),
                task(1, 14, 2),
                // Hears of the reset.
                command(3, 15, 0, 0, &[0; 6]),
                command(4, 16, 0, 0, &[0; 6]),
            ],
        )
    });
    let others = [
        ("a read", vec![command(1, 10, 0x40, 512, &read_10(0, 1))]),
        ("a write", vec![write(1, 10), data(1)]),
        ("a write with data that do not fit", vec![write(1, 10), data(9)]),
        ("a command that is refused", vec![command(1, 10, 0, 0, &[0xee; 6])]),
        ("commands out of turn", vec![command(1, 12, 0, 0, &[0; 6]), command(2, 10, 0, 0, &[0; 6])]),
        ("a command of another unit", {
            let mut away = command(1, 10, 0x40, 512, &read_10(0, 1));
            away.header[9] = 1;
            vec![away]
        }),
    ];
    for (what, mut sent) in aborts.into_iter().chain(others) {
        let next = 10 + sent.iter().filter(|pdu| pdu.opcode() != opcode::DATA_OUT).count() as u32;
        let next = if what == "commands out of turn" { next - 1 } else { next };
        sent.extend([nop(next), logout(next + 1)]);
        let (_, out, good) = converse(&target(), NORMAL, &sent);
        let answer = out.iter().find(|pdu| pdu.opcode() == opcode::NOP_IN).expect(what);
        assert_eq!((answer.word(28), answer.word(32)), (next + 1, next + 128), "{what}: {:?}", told(&out));
        assert!(good, "{what}");
    }
}

/// As many commands may come as were allowed: when all places are taken none is, immediate ones take no place away that was given, and what was
/// allowed once is not taken back.
#[test]
fn a_window_is_what_was_said_of_it() {
    let write = |tag, number| command(tag, number, 0x20, 512, &write_10(0, 1));
    let mut past = write(1, 10);
    past.header[0] |= 0x40;
    let all = (0..128).map(|n| write(2 + n, 10 + n));
    for (immediate, after_one) in [(false, 138), (true, 137)] {
        let mut sent: Vec<Pdu> = all.clone().collect();
        if immediate {
            sent.insert(0, past.clone());
        }
        sent.push(data_out(2, 1, (0, 0), true, vec![7; 512]));
        let (_, out, _) = converse(&target(), NORMAL, &sent);
        assert_eq!(out.len(), sent.len(), "all are heard: {:?}", out.len());
        let allowed: Vec<u32> = out.iter().map(|pdu| pdu.word(32)).collect();
        assert!(allowed.is_sorted(), "{allowed:?}");
        let [.., full, freed] = &out[..] else { panic!("{out:?}") };
        assert_eq!((full.opcode(), full.word(28), full.word(32)), (opcode::READY, 138, 137));
        assert_eq!((freed.opcode(), freed.word(28), freed.word(32)), (opcode::RESPONSE, 138, after_one));
    }
}

/// Commands that another session's reset ended are not answered: who could send none for them hears that one may come.
#[test]
fn a_window_that_opens_without_an_answer_is_told() {
    let mut sent: Vec<Pdu> = (0..128).map(|n| command(2 + n, 10 + n, 0x20, 512, &write_10(0, 1))).collect();
    sent.extend((2..4).map(|tag| data_out(tag, 1, (0, 0), true, vec![7; 512])));
    let out = hears_with(&target(), task(5, 10, 0), 2 * (48 + 512), &sent);
    let [.., full, told] = &out[..] else { panic!("{out:?}") };
    assert_eq!((out.len(), full.opcode(), full.word(32)), (129, opcode::READY, 137));
    assert_eq!((told.opcode(), told.tag(), told.word(20)), (opcode::NOP_IN, NO_TAG, NO_TAG));
    // It has the number of the next status, and takes none.
    assert_eq!([24, 28, 32].map(|at| told.word(at)), [full.word(24), 138, 138]);
}

/// Immediate data where none were agreed on.
#[test]
fn no_data_come_with_a_command_where_that_was_agreed() {
    let mut write = command(1, 10, 0x20, 512, &write_10(0, 1));
    write.data = vec![7; 512];
    for (key, heard) in [("ImmediateData=Yes ", 1), ("ImmediateData=No ", 0)] {
        let (_, out, good) = converse(&target(), &format!("{NORMAL}{key}"), &[write.clone()]);
        assert_eq!(out.len(), heard, "{key}");
        assert!(!good, "{key}");
    }
}

/// Of data that come with a command the whole blocks are written that its CDB names and that the initiator said it sends.
#[test]
fn a_write_takes_what_was_said_of_it() {
    let text = NORMAL.replace("=1024", "=4096").replace("=512", "=4096");
    for (blocks, said, sent, written) in [
        (1, 512, 512, 1),
        (1, 1024, 1024, 1),
        (1, 100, 512, 0),
        (1, 0, 512, 0),
        (2, 512, 1024, 1),
        (2, 1023, 1024, 1),
        (2, 1024, 1024, 2),
        (2, 4096, 4096, 2),
        (0, 512, 512, 0),
    ] {
        let mut write = command(1, 10, 0x20, said, &write_10(4, blocks));
        write.data = vec![9; sent];
        let sends = [write, command(2, 11, 0x40, 2048, &read_10(4, 4)), logout(12)];
        let (_, out, good) = converse(&target(), &text, &sends);
        let what = format!("{blocks} blocks, {said} bytes said, {sent} sent");
        assert!(good && out[0].opcode() == opcode::RESPONSE && out[0].header[3] == 0, "{what}");
        // More than was said is O, less is U.
        let needed = u32::from(blocks) * 512;
        let flag = [(needed > said, 0x04), (needed < said, 0x02)].iter().map(|f| u8::from(f.0) * f.1).sum();
        assert_eq!((out[0].flags() & 0x06, out[0].word(44)), (flag, needed.abs_diff(said)), "{what}");
        let read: Vec<u8> = out[1..].iter().flat_map(|pdu| pdu.data.clone()).collect();
        assert_eq!(read, [vec![9; written * 512], vec![0; 2048 - written * 512]].concat(), "{what}");
    }
}
