//! A drive after another one: of another size, speed, number of zones or rate. What does not follow from what was asked
//! for is taken over, and says from where.

use super::{DriveModel, DriveSpec, write};
use crate::geometry::{Layout, MOST_SECTORS, ZoneSpec};
use crate::mechanics::SeekCurve;
use crate::{DriveError, Result};
use smrlab_units::{BLOCK_BYTES, Blocks, counted};

/// What is asked of the new drive; what is `None` is the other one's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Like {
    /// Its name.
    pub name: String,
    /// Size, at least.
    pub capacity: Option<Blocks>,
    /// Revolutions a minute. Without `rate` the rate changes with it: tracks stay as long as they are.
    pub rpm: Option<u32>,
    /// Recording zones, of as many cylinders each.
    pub zones: Option<u32>,
    /// Bytes a second that pass the head on the outermost and the innermost track.
    pub rate: Option<(f64, f64)>,
    /// Recorded surfaces; default: as many as make cylinders about as many as on the other drive.
    pub surfaces: Option<u32>,
    /// Head width in tracks.
    pub tracks: Option<u32>,
}

/// The drive file.
///
/// # Errors
/// What does not make a drive, by field.
pub fn like(base: &DriveModel, wanted: &Like) -> Result<String> {
    let mut spec = base.spec().clone();
    spec.name.clone_from(&wanted.name);
    spec.reference = format!("made after {} by smrlab drive new", base.name());
    if let Some(rpm) = wanted.rpm {
        spec.mechanics.rpm = rpm;
    }
    let mut given = Vec::new();
    if wanted.rpm.is_some() {
        given.push("mechanics.rpm");
    }
    let zones = wanted.capacity.is_some()
        || wanted.rate.is_some()
        || wanted.zones.is_some()
        || wanted.surfaces.is_some();
    if zones {
        lay_out(&mut spec, base, wanted)?;
        given.extend(["geometry.zones", "geometry.surfaces"]);
    }
    for curve in [&mut spec.mechanics.read_seek, &mut spec.mechanics.write_seek] {
        if let SeekCurve::Sqrt { full, .. } | SeekCurve::ThreePoint { full, .. } = curve {
            *full = 0;
        }
    }
    let mut made = DriveModel::new(spec, Vec::new())?;
    if let Some(k) = wanted.tracks {
        made = made.with_tracks(k)?;
        given.extend(["interference.s_id", "interference.s_od"]);
    }
    let mut spec = made.spec().clone();
    spec.summary = summary(&made);
    let origin = |field: &str| match base.provenance().iter().find(|p| p.field == field) {
        _ if given.contains(&field) => ("assumed", "asked of smrlab drive new".to_owned()),
        Some(p) => ("assumed", format!("as in {} ({}: {})", base.name(), p.kind, p.source)),
        None => ("assumed", format!("as in {}", base.name())),
    };
    Ok(write(&spec, &origin))
}

fn summary(drive: &DriveModel) -> String {
    let zones = &drive.spec().geometry.zones;
    let rate = |z: Option<&ZoneSpec>| z.map_or(0.0, |z| rate_of(z, drive.spec().mechanics.rpm)) / 1e6;
    let (bytes, surfaces) = (drive.counted_blocks().bytes() as f64, drive.geometry().surfaces());
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (size, unit) = units.into_iter().find(|(size, _)| bytes >= *size).unwrap_or((1e3, "kB"));
    format!(
        "{} {unit}, {} rpm, {}, {} from {:.0} to {:.0} MB/s, head width {}",
        (bytes / size * 1e3).round() / 1e3,
        drive.spec().mechanics.rpm,
        counted(surfaces.into(), "surface"),
        counted(zones.len() as u64, "zone"),
        rate(zones.first()),
        rate(zones.last()),
        drive.head_width()
    )
}

/// Bytes a second that pass the head on a track of a zone.
pub(super) fn rate_of(zone: &ZoneSpec, rpm: u32) -> f64 {
    f64::from(zone.sectors - zone.spare_sectors) * BLOCK_BYTES as f64 * f64::from(rpm) / 60.0
}

/// Zones and surfaces for what is wanted.
fn lay_out(spec: &mut DriveSpec, base: &DriveModel, wanted: &Like) -> Result<()> {
    let fault = |place: &str, problem: String| Err(DriveError::one(place, problem));
    let (old, rpm) = (&base.spec().geometry, spec.mechanics.rpm);
    if old.layout == Layout::Listed {
        let problem = "zones of a listed layout are not made anew: take another drive";
        return fault("geometry.layout", problem.to_owned());
    }
    let Some((first, last)) = old.zones.first().zip(old.zones.last()) else { return Ok(()) };
    let count = wanted.zones.unwrap_or(old.zones.len() as u32);
    if !(1..=1000).contains(&count) {
        return fault("zones", format!("{count} is not accepted: from 1 to 1000"));
    }
    let ends = wanted.rate.unwrap_or((rate_of(first, rpm), rate_of(last, rpm)));
    let sectors = |i: u32| {
        let share = f64::from(i) / f64::from((count - 1).max(1));
        let rate = ends.0 + (ends.1 - ends.0) * share;
        (rate * 60.0 / f64::from(rpm.max(1)) / BLOCK_BYTES as f64).round()
    };
    if let Some(bad) = (0..count).map(sectors).find(|n| !(1.0..=f64::from(MOST_SECTORS)).contains(n)) {
        let problem = format!("{bad} blocks a track at {rpm} rpm are not accepted: from 1 to {MOST_SECTORS}");
        return fault("rate", problem);
    }
    let lengths: Vec<u32> = (0..count).map(|i| sectors(i) as u32).collect();
    let a_cylinder: u64 = lengths.iter().map(|&n| u64::from(n)).sum();
    let blocks = wanted.capacity.unwrap_or(base.counted_blocks()).0;
    let cylinders: u64 = old.zones.iter().map(|z| u64::from(z.cylinders)).sum();
    let fitting = (blocks * u64::from(count)) as f64 / (a_cylinder * cylinders) as f64;
    let surfaces = wanted.surfaces.unwrap_or((fitting.round() as u32).clamp(1, 64));
    let least = a_cylinder * u64::from(surfaces.max(1));
    if blocks < least {
        let problem =
            format!("{blocks}blk are less than a cylinder in each of {count} zones: at least {least}blk");
        return fault("capacity", problem);
    }
    let each = blocks.div_ceil(a_cylinder * u64::from(surfaces.max(1)));
    if each > 1 << 24 {
        return fault(
            "capacity",
            format!("{each} cylinders in each of {count} zones: more surfaces are needed"),
        );
    }
    let g = &mut spec.geometry;
    g.zones = lengths.iter().map(|&n| ZoneSpec::plain(each as u32, n)).collect();
    g.surfaces = surfaces;
    (g.defects, g.slips, g.remaps) = Default::default();
    (spec.counted, spec.mechanics.rate) = (None, None);
    Ok(())
}
