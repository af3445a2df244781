//! The commands of reservations: PERSISTENT RESERVE IN and OUT, RESERVE(6) and RELEASE(6).

use crate::command::Call;
use crate::reservations::{Keeps, Key, Reservations};
use crate::{Refused, Sense, number};

/// What such a command answers.
pub(crate) type Answer = Result<Vec<u8>, Refused>;

/// Bytes of the list of parameters of PERSISTENT RESERVE OUT.
const LIST: u64 = 24;

/// How many bytes PERSISTENT RESERVE OUT brings.
pub(crate) fn list(call: &Call<'_>) -> u64 {
    if call.number(5, 4) == LIST { LIST } else { 0 }
}

/// PERSISTENT RESERVE IN.
pub(crate) fn tell(all: &mut Reservations, call: &Call<'_>) -> Answer {
    let mut body = Vec::new();
    match call.byte(1) & 0x1f {
        0 => all.registered().for_each(|(_, key, _)| body.extend(key.0.to_be_bytes())),
        1 => {
            if let Some((key, keeps)) = all.held() {
                body.extend(key.0.to_be_bytes());
                body.extend([0, 0, 0, 0, 0, keeps as u8, 0, 0]);
            }
        }
        // PTPL_C, TMV, PTPL_A, and all types of reservations; a registration is for one port.
        2 => {
            let (can, does) = (u8::from(call.disk.keeps_reservations()), u8::from(all.kept()));
            return Ok(vec![0, 8, can, 0x80 | does, 0xea, 0x01, 0, 0]);
        }
        _ => {
            for (host, key, keeps) in all.registered() {
                body.extend(key.0.to_be_bytes());
                body.extend([
                    0,
                    0,
                    0,
                    0,
                    u8::from(keeps.is_some()),
                    keeps.map_or(0, |k| k as u8),
                    0,
                    0,
                    0,
                    0,
                ]);
                // The relative port, and the TransportID: format 1, of iSCSI.
                let name = padded(host);
                body.extend([0, 1]);
                body.extend((name.len() as u32 + 4).to_be_bytes());
                body.extend([0x45, 0]);
                body.extend((name.len() as u16).to_be_bytes());
                body.extend(name);
            }
        }
    }
    let mut data = all.generation().to_be_bytes().to_vec();
    data.extend((body.len() as u32).to_be_bytes());
    data.extend(body);
    Ok(data)
}

/// A name with a zero behind it, and as many as fill it up to four bytes.
fn padded(name: &str) -> Vec<u8> {
    let mut out = name.as_bytes().to_vec();
    out.resize((out.len() + 1).next_multiple_of(4), 0);
    out
}

/// PERSISTENT RESERVE OUT.
pub(crate) fn change(all: &mut Reservations, call: &Call<'_>) -> Answer {
    if call.number(5, 4) != LIST || (call.out.len() as u64) < LIST {
        return Err(Sense::LIST_LENGTH.into());
    }
    let (key, other) = (Key(number(call.out, 0, 8)), Key(number(call.out, 8, 8)));
    let (host, action) = (call.host, call.byte(1) & 0x1f);
    // Only who registers says whether all of that is kept.
    let (registers, keep) = (matches!(action, 0 | 6), call.out[20] & 0x01 != 0);
    // SPEC_I_PT, ALL_TG_PT: what is not there.
    if call.out[20] & 0x0c != 0 || registers && keep && !call.disk.keeps_reservations() {
        return Err(Sense::INVALID_LIST.into());
    }
    let before = all.clone();
    match action {
        0 => all.register(host, Some(key), other)?,
        1 => all.reserve(host, key, keeps(call)?)?,
        2 => all.release(host, key, keeps(call)?)?,
        3 => all.clear(host, key)?,
        4 => drop(all.preempt(host, key, other, keeps(call))?),
        // Commands that wait are the transport's; what had begun is over when this one is carried out.
        5 => {
            let hosts = all.preempt(host, key, other, keeps(call))?;
            all.abort(hosts);
        }
        _ => all.register(host, None, other)?,
    }
    if registers {
        all.keep(keep);
    }
    let text = all.to_text();
    if text != before.to_text()
        && let Err(fault) = call.disk.keep_reservations(text.as_deref())
    {
        *all = before;
        return Err(fault.why.into());
    }
    Ok(Vec::new())
}

/// Scope and type: the whole logical unit, and one of the types that there are.
fn keeps(call: &Call<'_>) -> Result<Keeps, Sense> {
    Keeps::ALL.into_iter().find(|keeps| *keeps as u8 == call.byte(2)).ok_or(Sense::at_field(2))
}

/// RESERVE(6) of the whole logical unit.
pub(crate) fn take(all: &mut Reservations, call: &Call<'_>) -> Answer {
    all.take_alone(call.host).map(|()| Vec::new())
}

/// RELEASE(6).
pub(crate) fn give_back(all: &mut Reservations, call: &Call<'_>) -> Answer {
    all.release_alone(call.host).map(|()| Vec::new())
}
