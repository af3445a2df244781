//! The commands that a disk knows: one table, from which commands are carried out and supported operation codes reported.

use crate::command::{Answer, Call, Command, Handler, Length, Reserving, Run, Whose};
use crate::reservations::Access;
use crate::{Disk, Refused, Sense, blocks, erase, inquiry, log, mode, opcodes, persistent, zones};

const fn no_out(_: &Call<'_>) -> u64 {
    0
}

fn nothing(_: &Call<'_>) -> Answer {
    Ok(Vec::new())
}

const fn plain(code: u8, usage: &'static [u8], run: Run) -> Command {
    Command {
        code,
        service: None,
        usage,
        whose: Whose::All,
        writes: false,
        exact: false,
        allocation: None,
        out: no_out,
        access: Access::Reads,
        run: Handler::Plain(run),
    }
}

const fn asks(code: u8, usage: &'static [u8], allocation: (usize, usize), run: Run) -> Command {
    Command { allocation: Some(allocation), ..plain(code, usage, run) }
}

const fn brings(code: u8, usage: &'static [u8], out: Length, run: Run) -> Command {
    Command { out, ..plain(code, usage, run) }
}

const fn writes(code: u8, usage: &'static [u8], out: Length, run: Run) -> Command {
    Command { writes: true, access: Access::Writes, ..brings(code, usage, out, run) }
}

/// As [`writes`], with data of one length.
const fn changes(code: u8, usage: &'static [u8], out: Length, run: Run) -> Command {
    Command { exact: true, ..writes(code, usage, out, run) }
}

/// The same, carried out whatever other hosts reserved.
const fn always(command: Command) -> Command {
    Command { access: Access::Always, ..command }
}

/// The same, kept by RESERVE alone from other hosts.
const fn free(command: Command) -> Command {
    Command { access: Access::Asks, ..command }
}

/// The same, kept from other hosts as writes are.
const fn alters(command: Command) -> Command {
    Command { access: Access::Writes, ..command }
}

/// A command of reservations.
const fn reserves(code: u8, usage: &'static [u8], out: Length, run: Reserving) -> Command {
    Command { access: Access::Reserves, run: Handler::Reserving(run), ..brings(code, usage, out, nothing) }
}

/// PERSISTENT RESERVE IN, by its service action.
macro_rules! tells {
    ($action:literal) => {
        Command {
            service: Some($action),
            allocation: Some((7, 2)),
            ..reserves(0x5e, &[0x5e, $action, 0, 0, 0, 0, 0, 0xff, 0xff, 0], no_out, persistent::tell)
        }
    };
}

/// PERSISTENT RESERVE OUT, by its service action: scope and type, and the length of the list.
macro_rules! persists {
    ($action:literal) => {
        Command {
            service: Some($action),
            ..reserves(
                0x5f,
                &[0x5f, $action, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0],
                persistent::list,
                persistent::change,
            )
        }
    };
}

/// CDBs of reads and writes: DPO and FUA in byte 1 as `$flags`, a group number, no control bits.
macro_rules! cdb {
    (10, $code:literal, $flags:literal) => {
        &[$code, $flags, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0]
    };
    (12, $code:literal, $flags:literal) => {
        &[$code, $flags, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0]
    };
    (16, $code:literal, $flags:literal) => {
        &[$code, $flags, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0]
    };
}

/// A zone command: its action, the zone, how many zones, and ALL.
macro_rules! zone {
    ($action:literal) => {
        Command {
            service: Some($action),
            whose: Whose::Zoned,
            ..writes(
                0x94,
                &[0x94, $action, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0x01, 0],
                no_out,
                zones::act,
            )
        }
    };
}

/// Every command, ascending.
static COMMANDS: &[Command] = &[
    free(plain(0x00, &[0x00, 0, 0, 0, 0, 0], nothing)),
    always(asks(0x03, &[0x03, 0x01, 0, 0, 0xff, 0], (4, 1), opcodes::request_sense)),
    writes(0x04, &[0x04, 0x3f, 0, 0, 0x03, 0], erase::header, erase::format),
    plain(0x08, &[0x08, 0x1f, 0xff, 0xff, 0xff, 0], blocks::read),
    writes(0x0a, &[0x0a, 0x1f, 0xff, 0xff, 0xff, 0], blocks::length, blocks::write),
    always(asks(0x12, &[0x12, 0x01, 0xff, 0xff, 0xff, 0], (3, 2), inquiry::inquiry)),
    alters(brings(0x15, &[0x15, 0x11, 0, 0, 0xff, 0], mode::list_6, mode::select_6)),
    reserves(0x16, &[0x16, 0, 0, 0, 0, 0], no_out, persistent::take),
    always(reserves(0x17, &[0x17, 0, 0, 0, 0, 0], no_out, persistent::give_back)),
    asks(0x1a, &[0x1a, 0x08, 0xff, 0xff, 0xff, 0], (4, 1), mode::sense_6),
    free(plain(0x1b, &[0x1b, 0x01, 0, 0, 0x05, 0], blocks::start_stop)),
    alters(plain(0x1d, &[0x1d, 0xe4, 0, 0, 0, 0], opcodes::diagnose)),
    free(plain(0x25, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], blocks::capacity_10)),
    plain(0x28, cdb!(10, 0x28, 0x18), blocks::read),
    writes(0x2a, cdb!(10, 0x2a, 0x18), blocks::length, blocks::write),
    writes(0x2e, cdb!(10, 0x2e, 0x16), blocks::length, blocks::write),
    brings(0x2f, cdb!(10, 0x2f, 0x16), blocks::compared, blocks::verify),
    plain(0x34, cdb!(10, 0x34, 0x02), blocks::prefetch),
    alters(plain(0x35, cdb!(10, 0x35, 0x06), blocks::synchronize)),
    asks(0x37, &[0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0], (7, 2), opcodes::defects),
    changes(0x41, cdb!(10, 0x41, 0x08), blocks::one, blocks::write_same),
    Command {
        whose: Whose::Discards,
        ..writes(0x42, &[0x42, 0, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0], blocks::list, blocks::unmap)
    },
    Command {
        service: Some(0x02),
        whose: Whose::Thin,
        ..writes(0x48, &[0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0], no_out, erase::sanitize)
    },
    always(asks(0x4d, &[0x4d, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0], (7, 2), log::sense)),
    alters(brings(0x55, &[0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0], mode::list_10, mode::select_10)),
    asks(0x5a, &[0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0], (7, 2), mode::sense_10),
    tells!(0x00),
    tells!(0x01),
    tells!(0x02),
    tells!(0x03),
    persists!(0x00),
    persists!(0x01),
    persists!(0x02),
    persists!(0x03),
    persists!(0x04),
    persists!(0x05),
    persists!(0x06),
    plain(0x88, cdb!(16, 0x88, 0x18), blocks::read),
    changes(
        0x89,
        &[0x89, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0x3f, 0],
        blocks::two,
        blocks::compare_and_write,
    ),
    writes(0x8a, cdb!(16, 0x8a, 0x18), blocks::length, blocks::write),
    writes(0x8b, cdb!(16, 0x8b, 0x18), blocks::length, blocks::or_write),
    writes(0x8e, cdb!(16, 0x8e, 0x16), blocks::length, blocks::write),
    brings(0x8f, cdb!(16, 0x8f, 0x16), blocks::compared, blocks::verify),
    plain(0x90, cdb!(16, 0x90, 0x02), blocks::prefetch),
    alters(plain(0x91, cdb!(16, 0x91, 0x06), blocks::synchronize)),
    changes(0x93, cdb!(16, 0x93, 0x09), blocks::one, blocks::write_same),
    zone!(0x01),
    zone!(0x02),
    zone!(0x03),
    zone!(0x04),
    Command {
        service: Some(0x00),
        whose: Whose::Zoned,
        ..asks(
            0x95,
            &[0x95, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbf, 0],
            (10, 4),
            zones::report,
        )
    },
    Command {
        service: Some(0x10),
        access: Access::Asks,
        ..asks(
            0x9e,
            &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0],
            (10, 4),
            blocks::capacity_16,
        )
    },
    Command {
        service: Some(0x12),
        whose: Whose::Thin,
        ..asks(
            0x9e,
            &[0x9e, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
            (10, 4),
            blocks::status,
        )
    },
    always(asks(0xa0, &[0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0], (6, 4), opcodes::report_luns)),
    Command {
        service: Some(0x0c),
        access: Access::Asks,
        ..asks(
            0xa3,
            &[0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
            (6, 4),
            opcodes::supported,
        )
    },
    Command {
        service: Some(0x0d),
        access: Access::Asks,
        ..asks(
            0xa3,
            &[0xa3, 0x0d, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0],
            (6, 4),
            opcodes::task_functions,
        )
    },
    plain(0xa8, cdb!(12, 0xa8, 0x18), blocks::read),
    writes(0xaa, cdb!(12, 0xaa, 0x18), blocks::length, blocks::write),
    writes(0xae, cdb!(12, 0xae, 0x16), blocks::length, blocks::write),
    brings(0xaf, cdb!(12, 0xaf, 0x16), blocks::compared, blocks::verify),
    asks(0xb7, &[0xb7, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0], (6, 4), opcodes::defects),
];

/// The command of a CDB, whose reserved bits are zero and which is whole.
fn find(disk: &dyn Disk, cdb: &[u8]) -> Result<&'static Command, Sense> {
    let code = *cdb.first().ok_or(Sense::INVALID_OPCODE)?;
    let mut of_code = COMMANDS.iter().filter(|c| c.code == code && c.of(disk.facts())).peekable();
    of_code.peek().ok_or(Sense::INVALID_OPCODE)?;
    let service = cdb.get(1).map_or(0, |b| b & 0x1f);
    let command = of_code.find(|c| c.service.is_none_or(|s| s == service)).ok_or(Sense::at_field(1))?;
    if cdb.len() < command.usage.len() {
        return Err(Sense::INVALID_FIELD);
    }
    match (0..command.usage.len()).find(|&at| cdb[at] & !command.allowed(at) != 0) {
        Some(at) => Err(Sense::at_field(at as u16)),
        None => Ok(command),
    }
}

/// How many bytes the host sends with a command: none with one that is refused anyway. `cdb` may be padded.
pub fn data_out(disk: &dyn Disk, cdb: &[u8]) -> u64 {
    find(disk, cdb).map_or(0, |c| (c.out)(&Call { disk, known: COMMANDS, host: "", cdb, out: &[] }))
}

/// Whether the host sends exactly as many bytes as [`data_out`] says: more or less is an error, and not cut or filled up.
pub fn takes_exactly(disk: &dyn Disk, cdb: &[u8]) -> bool {
    find(disk, cdb).is_ok_and(|c| c.exact)
}

/// Carries out a command of the initiator port `host` and answers with the data for it. `out` is what it sent with the command; of a write that
/// brought less than [`data_out`] the whole blocks that it brought are written. `cdb` may be padded.
///
/// # Errors
/// Why it was not carried out.
pub fn execute(disk: &dyn Disk, host: &str, cdb: &[u8], out: &[u8]) -> Result<Vec<u8>, Refused> {
    let command = find(disk, cdb)?;
    let call = Call { disk, known: COMMANDS, host, cdb, out };
    let (access, mut answer) = (command.accesses(cdb), Err(Refused::Conflict));
    match command.run {
        Handler::Plain(run) => disk.reserved(&mut |all| {
            if all.admits(host, access) {
                answer = able(command, disk).and_then(|()| run(&call)).map_err(Refused::from);
            }
        }),
        Handler::Reserving(run) => disk.reserve(&mut |all| {
            if all.admits(host, access) {
                answer = run(all, &call);
            }
        }),
    }
    let mut data = answer?;
    if let Some((at, bytes)) = command.allocation {
        data.truncate(usize::try_from(call.number(at, bytes)).unwrap_or(usize::MAX));
    }
    Ok(data)
}

/// Fails where a host stopped the disk or protected it against what a command does, and where it is being erased.
fn able(command: &Command, disk: &dyn Disk) -> Result<(), Sense> {
    let modes = disk.modes();
    // INQUIRY, REPORT LUNS and REQUEST SENSE are answered all the same; an erasure that failed is done again.
    let answered = matches!(command.code, 0x03 | 0x12 | 0xa0);
    if let Some(sense) = disk.erasing()
        && !answered
        && (sense.key == Sense::FORMATTING.key || !matches!(command.code, 0x04 | 0x48))
    {
        return Err(sense);
    }
    // All that read or write the medium, and TEST UNIT READY; modes are looked at and changed without it.
    let of_modes = matches!(command.code, 0x15 | 0x1a | 0x55 | 0x5a);
    let medium = matches!(command.access, Access::Reads | Access::Writes) && !of_modes || command.code == 0;
    if modes.stopped && medium {
        return Err(Sense::STOPPED);
    }
    if command.writes && modes.write_protected { Err(Sense::SOFTWARE_PROTECTED) } else { Ok(()) }
}

/// Carries out a command for a logical unit that is not there, of a target whose unit 0 is `disk`.
///
/// # Errors
/// Why it was not carried out.
pub fn execute_absent(disk: &dyn Disk, cdb: &[u8]) -> Result<Vec<u8>, Refused> {
    let said = || execute(disk, "", cdb, &[]);
    match cdb.first() {
        Some(0xa0) => said(),
        Some(0x03) => said().map(|_| {
            let mut absent = Sense::NO_SUCH_UNIT.data(cdb[1] & 1 != 0);
            absent.truncate(cdb[4].into());
            absent
        }),
        Some(0x12) => said().map(|mut data| {
            // Peripheral qualifier 011b, and a type that nothing has.
            data.iter_mut().take(1).for_each(|b| *b = 0x7f);
            data
        }),
        _ => Err(Sense::NO_SUCH_UNIT.into()),
    }
}
