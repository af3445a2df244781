//! FORMAT UNIT and SANITIZE: what erases the whole disk.

use crate::command::{Answer, Call};
use crate::{Erasing, Sense, number};

/// Bytes of a header of FORMAT UNIT's parameters: none, a short or a long one.
pub(crate) fn header(call: &Call<'_>) -> u64 {
    match (call.byte(1) & 0x10 != 0, call.byte(1) & 0x20 != 0) {
        (false, _) => 0,
        (true, false) => 4,
        (true, true) => 8,
    }
}

/// FORMAT UNIT, without protection information, defects or a pattern of its own.
pub(crate) fn format(call: &Call<'_>) -> Answer {
    if call.byte(4) > 1 {
        return Err(Sense::at_field(4));
    }
    let length = header(call) as usize;
    let list = call.out.get(..length).ok_or(Sense::LIST_LENGTH)?;
    let (flags, usage) = (list.get(1).copied().unwrap_or(0), list.first().copied().unwrap_or(0));
    let defects = number(list, length / 2, length / 2);
    // Without FOV there are no other options; IP brings a pattern.
    let options = if flags & 0x80 == 0 { 0x7c } else { 0x0c };
    let exponent = if length == 8 { list[3] } else { 0 };
    if usage != 0 || flags & (options | 0x01) != 0 || defects != 0 || exponent != 0 {
        return Err(Sense::INVALID_LIST);
    }
    call.told(call.disk.erase(Erasing::Format, flags & 0x02 == 0)).map(|()| Vec::new())
}

/// SANITIZE by BLOCK ERASE.
pub(crate) fn sanitize(call: &Call<'_>) -> Answer {
    call.told(call.disk.erase(Erasing::Sanitize, call.byte(1) & 0x80 == 0)).map(|()| Vec::new())
}
