//! Drives that report zones: whether they do what they say of them.

use super::{DriveKind, Evidence, Identity};
use crate::Result;
use crate::target::TimedTarget;
use smrlab_units::{Blocks, Dir, Lba, Zone, ZoneKind};

/// What is written at a time: a physical block of 4 KiB.
const UNIT: Blocks = Blocks(8);

/// What a target does with writes to a zone that it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It reports none.
    NoZones,
    /// It refuses what is not at the write pointer, and takes what is.
    Refuses,
    /// It takes both, and says that it prefers the one.
    Prefers,
    /// It does not do what it says.
    Other,
}

/// Writes off the write pointer of a zone and at it, and notes in `out` what was seen.
pub(super) fn look(target: &mut dyn TimedTarget, out: &mut Identity) -> Result<Does> {
    let Some(zone) = target.zone() else { return Ok(Does::NoZones) };
    let Some(pointer) = zone.pointer else { return Ok(Does::NoZones) };
    let off = accepts(target, pointer + UNIT)?;
    let at = accepts(target, pointer)?;
    let does = match (zone.kind, off, at) {
        (_, false, true) => Does::Refuses,
        (ZoneKind::SequentialPreferred, true, true) => Does::Prefers,
        _ => Does::Other,
    };
    out.evidence.push(evidence(&zone, (off, at), does));
    if does == Does::Refuses {
        (out.kind, out.confidence) = (DriveKind::HostManaged, 1.0);
    }
    Ok(does)
}

/// What is known of a target that was looked at before: one that refuses has no further sittings.
pub(super) fn said(target: &dyn TimedTarget) -> Does {
    let prefers = target.zone().is_some_and(|zone| zone.kind == ZoneKind::SequentialPreferred);
    if prefers { Does::Prefers } else { Does::NoZones }
}

/// Whether a write is taken; what ends the measurement is no refusal.
fn accepts(target: &mut dyn TimedTarget, lba: Lba) -> Result<bool> {
    match target.access(Dir::Write, lba, UNIT) {
        Ok(_) => Ok(true),
        Err(e) if !e.gone => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn evidence(zone: &Zone, (off, at): (bool, bool), does: Does) -> Evidence {
    let says = match zone.kind {
        ZoneKind::SequentialRequired => "require",
        _ => "prefer",
    };
    let taken = |taken| if taken { "taken" } else { "refused" };
    let follows = match does {
        Does::Refuses => "the host has to write in order",
        Does::Prefers => "the drive brings in order what the host did not",
        _ => "it does not do what it says",
    };
    Evidence {
        test: "zones".to_owned(),
        did: "the list of zones read; 4 KiB written behind a zone's write pointer with a gap, then at it"
            .to_owned(),
        saw: format!(
            "its zones {says} writes in order; the first write was {}, the second {}: {follows}",
            taken(off),
            taken(at)
        ),
        axes: ["blocks behind the write pointer".to_owned(), "taken".to_owned()],
        points: vec![(UNIT.0 as f64, f64::from(u8::from(off))), (0.0, f64::from(u8::from(at)))],
    }
}
