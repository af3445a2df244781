//! Zone commands of ZBC-2: REPORT ZONES, and what can be done with zones.

use crate::Sense;
use crate::blocks::on_disk;
use crate::command::{Answer, Call};
use smrlab_units::{Blocks, Lba, Zone, ZoneAction, ZoneCondition, ZoneKind};
use std::ops::Range;

/// CLOSE, FINISH, OPEN ZONE, RESET WRITE POINTER.
pub(crate) fn act(call: &Call<'_>) -> Answer {
    let action = ZoneAction::ALL.into_iter().find(|a| *a as u8 == call.byte(1) & 0x1f);
    let action = action.ok_or(Sense::at_field(1))?;
    let all = call.byte(14) & 1 != 0;
    let zones = if all { None } else { Some(named(call)?) };
    call.told(call.disk.zone(action, zones)).map(|()| Vec::new())
}

/// The blocks of the zones of a CDB: as many as its count says, at least one, from the one whose first block is the zone ID on. All have write
/// pointers.
fn named(call: &Call<'_>) -> Result<Range<Lba>, Sense> {
    let (id, count) = (call.number(2, 8), call.number(12, 2).max(1));
    let (first, _) = on_disk(call, id, 1)?;
    let (mut end, mut found, mut starts) = (first, 0, true);
    call.disk.zones(first, &mut |zone| {
        // Gap zones between zones belong to those before them.
        if zone.kind == ZoneKind::Gap && found > 0 {
            return true;
        }
        starts &= found > 0 || zone.start == first;
        if !starts || !zone.kind.has_pointer() {
            return false;
        }
        (end, found) = (zone.end(), found + 1);
        found < count
    });
    match found == count {
        true => Ok(first..end),
        false if found == 0 => Err(Sense::at_field(2)),
        false => Err(Sense::at_field(12)),
    }
}

/// Whether a zone is one of those that are asked for; `None`: there is no such option.
fn wanted(option: u8) -> Option<fn(&Zone) -> bool> {
    let with: fn(&Zone) -> bool = match option {
        0x00 => |_| true,
        0x01 => |z| z.condition == ZoneCondition::Empty,
        0x02 => |z| z.condition == ZoneCondition::ImplicitlyOpen,
        0x03 => |z| z.condition == ZoneCondition::ExplicitlyOpen,
        0x04 => |z| z.condition == ZoneCondition::Closed,
        0x05 => |z| z.condition == ZoneCondition::Full,
        0x06 => |z| z.condition == ZoneCondition::ReadOnly,
        0x07 => |z| z.condition == ZoneCondition::Offline,
        // A reset is never recommended.
        0x10 => |_| false,
        0x11 => |z| z.non_sequential,
        0x3e => |z| z.kind != ZoneKind::Gap,
        0x3f => |z| z.condition == ZoneCondition::NotWritePointer,
        _ => return None,
    };
    Some(with)
}

/// REPORT ZONES: a header of 64 bytes, which has the distance of zones where there are gaps, and 64 bytes a zone.
pub(crate) fn report(call: &Call<'_>) -> Answer {
    let (facts, start) = (call.facts(), call.number(2, 8));
    let wanted = wanted(call.byte(14) & 0x3f).ok_or(Sense::at_field(14))?;
    let (first, _) = on_disk(call, start, 1)?;
    let partial = call.byte(14) & 0x80 != 0;
    let room = (call.number(10, 4).saturating_sub(64) / 64) as usize;
    let ratio = facts.ratio();
    let mut data = vec![0; 64];
    let (mut found, mut alike) = (0u64, Alike::default());
    call.disk.zones(first, &mut |zone| {
        if wanted(zone) {
            alike.see(zone);
            found += 1;
            if found as usize <= room {
                data.extend(described(zone, ratio));
            }
        }
        !(partial && found as usize >= room)
    });
    let counted = if partial { found.min(room as u64) } else { found };
    data[..4].copy_from_slice(&u32::try_from(counted * 64).unwrap_or(u32::MAX).to_be_bytes());
    data[4] = alike.same();
    data[8..16].copy_from_slice(&(facts.logical_blocks() - 1).to_be_bytes());
    if let Some(pitch) = facts.zones().and_then(|limits| limits.pitch) {
        data[16..24].copy_from_slice(&(pitch.0 / ratio).to_be_bytes());
    }
    Ok(data)
}

/// What the zones of a report have in common.
#[derive(Default)]
struct Alike {
    first: Option<(ZoneKind, Blocks)>,
    types_differ: bool,
    /// A zone whose length differs from the first one's, and whether others follow it.
    other_length: bool,
    other_inside: bool,
}

impl Alike {
    fn see(&mut self, zone: &Zone) {
        let (kind, blocks) = *self.first.get_or_insert((zone.kind, zone.blocks));
        self.types_differ |= zone.kind != kind;
        self.other_inside |= self.other_length;
        self.other_length |= zone.blocks != blocks;
    }

    /// The field SAME: 1 types and lengths, 2 both but for the length of the last one, 3 lengths, 0 nothing.
    fn same(&self) -> u8 {
        match (self.types_differ, self.other_length, self.other_inside) {
            (false, false, _) => 1,
            (false, true, false) => 2,
            (true, false, _) => 3,
            _ => 0,
        }
    }
}

fn described(zone: &Zone, ratio: u64) -> [u8; 64] {
    let mut out = [0; 64];
    out[0] = zone.kind as u8;
    out[1] = (zone.condition as u8) << 4 | u8::from(zone.non_sequential) << 1;
    out[8..16].copy_from_slice(&(zone.blocks.0 / ratio).to_be_bytes());
    out[16..24].copy_from_slice(&(zone.start.0 / ratio).to_be_bytes());
    let pointer = zone.pointer.map_or(u64::MAX, |p| p.0 / ratio);
    out[24..32].copy_from_slice(&pointer.to_be_bytes());
    out
}
