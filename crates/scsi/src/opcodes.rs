//! Commands about the target itself: supported operation codes, logical units, sense.

use crate::command::{Answer, Call, Command};
use crate::{SelfTest, Sense};

/// REPORT SUPPORTED OPERATION CODES.
pub(crate) fn supported(call: &Call<'_>) -> Answer {
    let timeouts = call.byte(2) & 0x80 != 0;
    let (code, service) = (call.byte(3), call.number(4, 2));
    let known = || call.known.iter().filter(|c| c.of(call.facts()));
    let named = || known().filter(move |c| c.code == code);
    let exact = || named().find(|c| c.service.is_some_and(|s| u64::from(s) == service));
    match call.byte(2) & 0x07 {
        0 => Ok(all(known(), timeouts)),
        1 if named().any(|c| c.service.is_some()) => Err(Sense::at_field(2)),
        1 => Ok(one(named().next(), timeouts)),
        2 if named().any(|c| c.service.is_none()) => Err(Sense::at_field(2)),
        2 => Ok(one(exact(), timeouts)),
        3 => Ok(one(named().find(|c| c.service.is_none() && service == 0).or_else(exact), timeouts)),
        _ => Err(Sense::at_field(2)),
    }
}

/// A timeouts descriptor that names none.
const TIMEOUTS: [u8; 12] = [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn all<'a>(commands: impl Iterator<Item = &'a Command>, timeouts: bool) -> Vec<u8> {
    let mut data = vec![0; 4];
    for command in commands {
        // SERVACTV and CTDP.
        let flags = u8::from(command.service.is_some()) | u8::from(timeouts) << 1;
        let service = command.service.unwrap_or(0);
        data.extend([command.code, 0, 0, service, 0, flags, 0, command.usage.len() as u8]);
        data.extend(TIMEOUTS.iter().filter(|_| timeouts));
    }
    let length = data.len() as u32 - 4;
    data[..4].copy_from_slice(&length.to_be_bytes());
    data
}

fn one(command: Option<&Command>, timeouts: bool) -> Vec<u8> {
    // SUPPORT: 001b no, 011b as the standard has it.
    let Some(command) = command else { return vec![0, 0x01, 0, 0] };
    let mut data = vec![0, 0x03 | u8::from(timeouts) << 7, 0, command.usage.len() as u8];
    data.extend(command.usage);
    data.extend(TIMEOUTS.iter().filter(|_| timeouts));
    data
}

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS: tasks and sets of tasks are aborted and cleared, the logical unit is reset.
pub(crate) fn task_functions(call: &Call<'_>) -> Answer {
    let extended = call.byte(2) & 0x80 != 0;
    let functions = vec![0xd8, 0, 0, if extended { 12 } else { 0 }];
    Ok(if extended { [functions, vec![0; 12]].concat() } else { functions })
}

/// SEND DIAGNOSTIC: the default self-test, or one that page 10h of LOG SENSE tells of. A simulated disk has no part that fails by itself, so each
/// passes, and at once: there is none to abort.
pub(crate) fn diagnose(call: &Call<'_>) -> Answer {
    let (code, default) = (call.byte(1) >> 5, call.byte(1) & 0x04 != 0);
    match (code, default) {
        (0, _) => {}
        // Short and extended, in the background or not.
        (1 | 2 | 5 | 6, false) => {
            call.disk.tested(SelfTest { code, minutes: call.disk.usage().minutes });
        }
        _ => return Err(Sense::at_field(1)),
    }
    Ok(Vec::new())
}

/// READ DEFECT DATA: both lists are empty, in whatever format.
pub(crate) fn defects(call: &Call<'_>) -> Answer {
    match call.byte(0) {
        0x37 => Ok(vec![0, call.byte(2) & 0x1f, 0, 0]),
        _ => Ok(vec![0, call.byte(1) & 0x1f, 0, 0, 0, 0, 0, 0]),
    }
}

/// REPORT LUNS: there is logical unit 0, and no well-known one.
pub(crate) fn report_luns(call: &Call<'_>) -> Answer {
    if call.number(6, 4) < 16 {
        return Err(Sense::at_field(6));
    }
    match call.byte(2) {
        0 | 2 => Ok([&[0, 0, 0, 8, 0, 0, 0, 0][..], &[0; 8]].concat()),
        1 => Ok(vec![0; 8]),
        _ => Err(Sense::at_field(2)),
    }
}

/// REQUEST SENSE: sense comes with each command, so there is none left; a disk that is stopped says so, one that is being erased how far that is.
pub(crate) fn request_sense(call: &Call<'_>) -> Answer {
    let sense = if call.disk.modes().stopped { Sense::STOPPED } else { Sense::NONE };
    let sense = call.disk.erasing().unwrap_or(sense);
    Ok(sense.data(call.byte(1) & 1 != 0))
}
