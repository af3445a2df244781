//! Block commands of SBC-4: reads, writes, comparisons, unmapping, capacity.

use crate::command::{Answer, Call};
use crate::{MOST_BYTES, Modes, Sense, number};
use smrlab_units::{Blocks, Lba};
use std::ops::Range;

/// Descriptors that one UNMAP may have.
pub(crate) const MOST_UNMAPPED: u32 = 256;
/// Blocks that one COMPARE AND WRITE may have.
pub(crate) const MOST_COMPARED: u8 = 255;
/// Bytes that are compared or checked at a time.
const PIECE: u64 = 1 << 20;

/// First block and number of blocks of a CDB, in logical blocks, by the length of its group.
fn named(call: &Call<'_>) -> (u64, u64) {
    match call.byte(0) >> 5 {
        0 => (call.number(1, 3) & 0x1f_ffff, if call.byte(4) == 0 { 256 } else { call.number(4, 1) }),
        4 if call.byte(0) == 0x89 => (call.number(2, 8), call.number(13, 1)),
        4 => (call.number(2, 8), call.number(10, 4)),
        5 => (call.number(2, 4), call.number(6, 4)),
        _ => (call.number(2, 4), call.number(7, 2)),
    }
}

/// Logical blocks that a command names, as those of the disk; where not all of them lie on it, the first that does not is told.
pub(crate) fn on_disk(call: &Call<'_>, first: u64, count: u64) -> Result<(Lba, Blocks), Sense> {
    let (all, ratio) = (call.facts().logical_blocks(), call.facts().ratio());
    match first.checked_add(count) {
        Some(end) if end <= all => Ok((Lba(first * ratio), Blocks(count * ratio))),
        _ => Err(Sense::OUT_OF_RANGE.about(first.max(all))),
    }
}

/// The blocks of a CDB, which lie on the disk.
fn span(call: &Call<'_>) -> Result<(Lba, Blocks), Sense> {
    let (first, count) = named(call);
    on_disk(call, first, count)
}

/// As [`span`], of no more than one command moves.
fn moved(call: &Call<'_>) -> Result<(Lba, Blocks), Sense> {
    let (lba, blocks) = span(call)?;
    if blocks.bytes() > MOST_BYTES {
        // Where CDBs of 10, 12 and 16 bytes have their length, by the group of their code.
        return Err(Sense::at_field(match call.byte(0) >> 5 {
            4 => 10,
            5 => 6,
            _ => 7,
        }));
    }
    Ok((lba, blocks))
}

/// Whether a write is durable when it ends: the host asks for that, or switched the write cache off.
fn durable(call: &Call<'_>) -> bool {
    let fua = call.byte(0) >> 5 != 0 && call.byte(1) & 0x08 != 0;
    fua || !call.disk.modes().write_cache
}

/// BYTCHK of VERIFY.
fn compares(call: &Call<'_>) -> u8 {
    call.byte(1) >> 1 & 3
}

pub(crate) fn length(call: &Call<'_>) -> u64 {
    moved(call).map_or(0, |(_, blocks)| blocks.bytes())
}

/// One block, unless there is no data-out buffer (NDOB).
pub(crate) fn one(call: &Call<'_>) -> u64 {
    let none = call.byte(0) == 0x93 && call.byte(1) & 1 != 0;
    if none { 0 } else { u64::from(call.facts().logical) }
}

/// Twice the blocks of the CDB: what is compared, and what is written.
pub(crate) fn two(call: &Call<'_>) -> u64 {
    2 * length(call)
}

pub(crate) fn compared(call: &Call<'_>) -> u64 {
    match compares(call) {
        1 => length(call),
        3 if named(call).1 > 0 => u64::from(call.facts().logical),
        _ => 0,
    }
}

pub(crate) fn list(call: &Call<'_>) -> u64 {
    call.number(7, 2)
}

pub(crate) fn read(call: &Call<'_>) -> Answer {
    let (lba, blocks) = moved(call)?;
    let mut data = vec![0; blocks.bytes() as usize];
    if !data.is_empty() {
        call.told(call.disk.read(lba, &mut data))?;
    }
    Ok(data)
}

/// WRITE, and WRITE AND VERIFY, which ends when the data are on the medium.
pub(crate) fn write(call: &Call<'_>) -> Answer {
    let (lba, blocks) = moved(call)?;
    let verified = call.byte(0) & 0x0f == 0x0e;
    if verified && compares(call) > 1 {
        return Err(Sense::at_field(1));
    }
    let brought = call.out.len() as u64 / u64::from(call.facts().logical) * u64::from(call.facts().logical);
    let data = &call.out[..brought.min(blocks.bytes()) as usize];
    if !data.is_empty() {
        call.told(call.disk.write(lba, data, verified || durable(call)))?;
    }
    Ok(Vec::new())
}

pub(crate) fn verify(call: &Call<'_>) -> Answer {
    let how = compares(call);
    let (lba, blocks) = if how == 1 { moved(call)? } else { span(call)? };
    if how == 2 {
        return Err(Sense::at_field(1));
    }
    let wanted = if blocks.0 == 0 { 0 } else { compared(call) };
    if (call.out.len() as u64) < wanted {
        return Err(Sense::INVALID_FIELD);
    }
    let mut buffer = vec![0; PIECE.min(blocks.bytes()) as usize];
    let mut done = 0;
    while done < blocks.bytes() {
        let n = (blocks.bytes() - done).min(PIECE) as usize;
        call.told(call.disk.read(Lba(lba.0 + done / 512), &mut buffer[..n]))?;
        let same = match how {
            1 => buffer[..n] == call.out[done as usize..done as usize + n],
            3 => {
                let block = &call.out[..call.facts().logical as usize];
                buffer[..n].chunks(block.len()).all(|c| c == block)
            }
            _ => true,
        };
        if !same {
            return Err(Sense::MISCOMPARE);
        }
        done += n as u64;
    }
    Ok(Vec::new())
}

/// COMPARE AND WRITE: writes the second half of what came where the first half is on the disk.
pub(crate) fn compare_and_write(call: &Call<'_>) -> Answer {
    let (lba, blocks) = moved(call)?;
    let length = blocks.bytes() as usize;
    if call.out.len() < 2 * length {
        return Err(Sense::INVALID_FIELD);
    }
    let (expected, data) = call.out[..2 * length].split_at(length);
    let mut bytes = vec![0; length];
    let mut change = |found: &mut [u8]| match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(byte) => Err(Sense::MISCOMPARE.about(byte as u64)),
        None => {
            found.copy_from_slice(data);
            Ok(())
        }
    };
    if length > 0 {
        call.changed(call.disk.change(lba, &mut bytes, durable(call), &mut change))?;
    }
    Ok(Vec::new())
}

/// ORWRITE: writes the union of the bits that came and of those on the disk.
pub(crate) fn or_write(call: &Call<'_>) -> Answer {
    let (lba, blocks) = moved(call)?;
    let length = blocks.bytes() as usize;
    let sent = call.out.get(..length).ok_or(Sense::INVALID_FIELD)?;
    let mut bytes = vec![0; length];
    let mut change = |found: &mut [u8]| {
        found.iter_mut().zip(sent).for_each(|(a, b)| *a |= b);
        Ok(())
    };
    if length > 0 {
        call.changed(call.disk.change(lba, &mut bytes, durable(call), &mut change))?;
    }
    Ok(Vec::new())
}

/// START STOP UNIT: what stops the disk makes everything durable first, unless NO_FLUSH is set.
pub(crate) fn start_stop(call: &Call<'_>) -> Answer {
    let stopped = call.byte(4) & 0x01 == 0;
    if stopped && call.byte(4) & 0x04 == 0 {
        call.told(call.disk.flush())?;
    }
    call.disk.set_modes(Modes { stopped, ..call.disk.modes() });
    Ok(Vec::new())
}

/// PRE-FETCH: nothing is kept for later, and nothing has to be; what a read would not bring is refused. No blocks: all up to the last one.
pub(crate) fn prefetch(call: &Call<'_>) -> Answer {
    let (lba, blocks) = span(call)?;
    let blocks = if blocks.0 == 0 { Blocks(call.facts().blocks.0 - lba.0) } else { blocks };
    if blocks.0 > 0 {
        call.told(call.disk.readable(lba, blocks))?;
    }
    Ok(Vec::new())
}

pub(crate) fn synchronize(call: &Call<'_>) -> Answer {
    span(call)?;
    call.told(call.disk.flush()).map(|()| Vec::new())
}

/// WRITE SAME. With UNMAP blocks of zeroes are freed; without a data-out buffer the block is one of zeroes.
pub(crate) fn write_same(call: &Call<'_>) -> Answer {
    let (lba, blocks) = moved(call)?;
    let unmaps = call.byte(1) & 0x08 != 0;
    if unmaps && !call.facts().discards {
        return Err(Sense::at_field(1));
    }
    if blocks.0 == 0 {
        // WSNZ: none does not mean all.
        return Err(Sense::at_field(if call.byte(0) == 0x93 { 10 } else { 7 }));
    }
    let logical = call.facts().logical as usize;
    let zeroes = vec![0; logical];
    let block = match one(call) {
        0 => &zeroes[..],
        n => call.out.get(..n as usize).ok_or(Sense::INVALID_FIELD)?,
    };
    if unmaps && block == &zeroes[..] {
        return call.told(call.disk.discard(lba, blocks)).map(|()| Vec::new());
    }
    let data = block.repeat((blocks.bytes() / logical as u64) as usize);
    call.told(call.disk.write(lba, &data, !call.disk.modes().write_cache)).map(|()| Vec::new())
}

/// UNMAP: a header of 8 bytes, descriptors of 16. Nothing is freed before all of them are found to be good.
pub(crate) fn unmap(call: &Call<'_>) -> Answer {
    let list = &call.out[..call.out.len().min(call.number(7, 2) as usize)];
    if call.number(7, 2) == 0 {
        return Ok(Vec::new());
    }
    if list.len() < 8 {
        return Err(Sense::LIST_LENGTH);
    }
    let bytes = (number(list, 2, 2) as usize).min(list.len() - 8) / 16 * 16;
    if bytes / 16 > MOST_UNMAPPED as usize {
        return Err(Sense::INVALID_LIST);
    }
    let spans = list[8..8 + bytes].chunks(16).map(|d| on_disk(call, number(d, 0, 8), number(d, 8, 4)));
    let spans: Vec<_> = spans.collect::<Result<_, _>>()?;
    for (lba, blocks) in spans.into_iter().filter(|(_, blocks)| blocks.0 > 0) {
        call.told(call.disk.discard(lba, blocks))?;
    }
    Ok(Vec::new())
}

/// GET LBA STATUS: a header of 8 bytes, 16 for each stretch of blocks that are mapped or not, as many as there is room for.
pub(crate) fn status(call: &Call<'_>) -> Answer {
    let (first, ratio) = (call.number(2, 8), call.facts().ratio());
    on_disk(call, first, 1)?;
    let room = (call.number(10, 4).saturating_sub(8) / 16).clamp(1, 1024) as usize;
    // Stretches that are alike are one; it is known where one ends when the next begins.
    let (mut found, mut held): (Vec<(u64, u64, bool)>, Option<(Range<Lba>, bool)>) = (Vec::new(), None);
    let mut tell = |(blocks, data): (Range<Lba>, bool)| {
        // A logical block of which a part holds data is mapped.
        let (from, to) = match data {
            true => (blocks.start.0 / ratio, blocks.end.0.div_ceil(ratio)),
            false => (blocks.start.0.div_ceil(ratio), blocks.end.0 / ratio),
        };
        let from = found.last().map_or(first, |last| from.max(last.1));
        let longest = from + u64::from(u32::MAX);
        if to > from {
            found.push((from, to.min(longest), data));
        }
        // What lies behind a stretch that is too long for its descriptor would not follow it.
        found.len() < room && to <= longest
    };
    let mut goes_on = true;
    let mut each = |blocks: Range<Lba>, data: bool| {
        match &mut held {
            Some((all, same)) if *same == data => all.end = blocks.end,
            _ => goes_on = held.replace((blocks, data)).is_none_or(&mut tell),
        }
        goes_on
    };
    call.told(call.disk.extents(Lba(first * ratio), &mut each))?;
    if let Some(last) = held.filter(|_| goes_on) {
        tell(last);
    }
    found.truncate(room);
    let mut data = ((4 + 16 * found.len()) as u32).to_be_bytes().to_vec();
    data.extend([0; 4]);
    for (from, to, mapped) in found {
        data.extend(from.to_be_bytes());
        data.extend(((to - from) as u32).to_be_bytes());
        data.extend([u8::from(!mapped), 0, 0, 0]);
    }
    Ok(data)
}

pub(crate) fn capacity_10(call: &Call<'_>) -> Answer {
    let last = u32::try_from(call.facts().logical_blocks() - 1).unwrap_or(u32::MAX);
    Ok([last.to_be_bytes(), call.facts().logical.to_be_bytes()].concat())
}

pub(crate) fn capacity_16(call: &Call<'_>) -> Answer {
    let facts = call.facts();
    let mut data = vec![0; 32];
    data[..8].copy_from_slice(&(facts.logical_blocks() - 1).to_be_bytes());
    data[8..12].copy_from_slice(&facts.logical.to_be_bytes());
    // RC BASIS: the last block is that of the drive, and not that of its conventional zones.
    data[12] = u8::from(facts.zones().is_some()) << 4;
    data[13] = (facts.physical / facts.logical).trailing_zeros() as u8;
    data[14] = if facts.discards { 0xc0 } else { 0 };
    Ok(data)
}
