//! From measurements to a drive file.

pub mod dig;
#[cfg(test)]
mod tests;
mod toml;
mod zoning;

pub use zoning::{Curve, EqualTracks, Paper, change_points, paper};

use crate::geometry::{Extraction, Order, Skews, Zone};
use crate::{ProbeError, Result};
use smrlab_disk::geometry::{Layout, REVOLUTION, Toward, ZoneSpec};
use smrlab_disk::{DRIVES, DriveSpec, Interference, PhysicalProfile, SeekCurve};
use smrlab_units::{SimTime, counted};

/// A drive made of measurements, and where its numbers come from.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The drive.
    pub spec: DriveSpec,
    /// What could not be measured or does not fit, one sentence each.
    pub notes: Vec<String>,
    /// By the beginning of a field's place: kind and source. The longest that fits counts.
    origins: Vec<(&'static str, &'static str, String)>,
}

const ASSUMED: &str = "not measured; as in the preset modern-7200";

impl Fitted {
    /// Everything assumed, under a name.
    fn new(name: &str, summary: String, reference: String) -> Self {
        let base = DRIVES.iter().find(|d| d.name == "modern-7200").map(|d| d.drive().spec().clone());
        let mut spec = base.unwrap_or_else(|| DRIVES[0].drive().spec().clone());
        (spec.name, spec.summary, spec.reference) = (name.to_owned(), summary, reference);
        Self { spec, notes: Vec::new(), origins: vec![("", "assumed", ASSUMED.to_owned())] }
    }

    fn because(&mut self, place: &'static str, kind: &'static str, source: String) {
        self.origins.push((place, kind, source));
    }

    /// Kind and source of a field.
    fn origin(&self, field: &str) -> (&'static str, String) {
        let best = self.origins.iter().filter(|o| field.starts_with(o.0)).max_by_key(|o| o.0.len());
        best.map_or(("assumed", ASSUMED.to_owned()), |o| (o.1, o.2.clone()))
    }
}

fn angle(turns: f64) -> u64 {
    (turns * REVOLUTION as f64).round() as u64 % REVOLUTION
}

fn time(ns: f64) -> SimTime {
    SimTime(ns.max(0.0).round() as u64)
}

/// A drive of an extraction.
///
/// # Errors
/// [`ProbeError::Input`] where zones or rotation are missing.
pub fn from_extraction(e: &Extraction, name: &str) -> Result<Fitted> {
    let Some(rpm) = e.rpm.filter(|_| e.complete && !e.zones.is_empty()) else {
        return Err(ProbeError::Input(
            "the extraction is not complete: run 'smrlab geometry extract' again".to_owned(),
        ));
    };
    let zones = counted(e.zones.len() as u64, "zone");
    let summary = format!("{} blocks, {:.0} rpm, {zones}, measured from outside", e.blocks, rpm.value);
    let mut out = Fitted::new(name, summary, "smrlab geometry extract".to_owned());
    out.spec.mechanics.rpm = rpm.value.round() as u32;
    out.because("mechanics.rpm", "measured", format!("{:.4} +- {:.1e}", rpm.value, rpm.spread));
    geometry(&mut out, e);
    if let Some(skew) = &e.skew {
        skews(&mut out, skew);
    } else {
        out.notes.push("skews and the order of surfaces are not measured: one surface is assumed".to_owned());
    }
    seeks(&mut out, e);
    out.notes.extend(e.notes.iter().cloned());
    Ok(out)
}

/// Zones of the first pass over the drive, from the outermost.
fn geometry(out: &mut Fitted, e: &Extraction) {
    let order = e.skew.map_or(Order::Surface { surfaces: 1 }, |s| s.order);
    let (surfaces, layout) = match order {
        Order::Cylinder { surfaces } => (surfaces, Layout::Cylinder { alternate: false }),
        Order::Surface { surfaces } => (surfaces, Layout::Surface),
        Order::Hybrid { surfaces, group_cylinders } => {
            (surfaces, Layout::Hybrid { width: group_cylinders as u32 })
        }
    };
    let g = &mut out.spec.geometry;
    (g.surfaces, g.layout) = (surfaces as u32, layout);
    let mut zones: Vec<ZoneSpec> = passes(&e.zones, order)
        .iter()
        .map(|(z, cylinders)| {
            let mut spec = ZoneSpec::plain(*cylinders as u32, z.sectors as u32);
            spec.spare_sectors = z.sectors.saturating_sub(z.usable) as u32;
            spec
        })
        .collect();
    let outwards = zones.first().map(|z| z.sectors) < zones.last().map(|z| z.sectors);
    if outwards {
        zones.reverse();
    }
    g.toward = if outwards { Toward::Outer } else { Toward::Inner };
    g.zones = zones;
    g.defects.clear();
    out.spec.interference = Interference::Physical(match outwards {
        false => PhysicalProfile { s_id: 2, s_od: 1, phi_cw: 0, phi_ccw: 0, wave: 0 },
        true => PhysicalProfile { s_id: 1, s_od: 2, phi_cw: 0, phi_ccw: 0, wave: 0 },
    });
    out.spec.counted = None;
    let seen = "from the angles of blocks".to_owned();
    out.because("geometry", "measured", seen);
    if surfaces == 1 {
        let unseen = "no change of surface shows: tracks are numbered as if all were on one".to_owned();
        out.because("geometry.surfaces", "assumed", unseen);
    }
    let slips: u64 = e.zones.iter().map(|z| z.slips).sum();
    let each = if slips > 0 { format!("; {slips} slipped sectors are left out") } else { String::new() };
    out.because(
        "geometry.zones",
        "measured",
        format!("change points of the track length, exact to the track{each}"),
    );
    if slips > 0 {
        out.notes
            .push(format!("{slips} slipped sectors were counted but not placed: the drive file has none"));
    }
}

/// The zones of the first surface (or of all cylinders) and the cylinders of each.
fn passes(zones: &[Zone], order: Order) -> Vec<(Zone, u64)> {
    match order {
        Order::Cylinder { surfaces } | Order::Hybrid { surfaces, .. } => {
            zones.iter().map(|z| (*z, z.tracks.div_ceil(surfaces.max(1)))).collect()
        }
        Order::Surface { surfaces } => {
            let mut left = zones.iter().map(|z| z.tracks).sum::<u64>() / surfaces.max(1);
            let mut out = Vec::new();
            for z in zones {
                let n = z.tracks.min(left);
                if n > 0 {
                    out.push((*z, n));
                }
                left -= n;
            }
            out
        }
    }
}

fn skews(out: &mut Fitted, s: &Skews) {
    let g = &mut out.spec.geometry;
    g.cylinder_skew = angle(s.cylinder.value);
    g.track_skew = s.track.map_or(0, |t| angle(t.value));
    out.because("geometry.cylinder_skew", "measured", format!("+- {:.1e} rev", s.cylinder.spread));
    match s.track {
        Some(t) => out.because("geometry.track_skew", "measured", format!("+- {:.1e} rev", t.spread)),
        None => out.because("geometry.track_skew", "assumed", "no change of surface was seen".to_owned()),
    }
}

/// A curve for both directions, or one for each where at least two distances take other times there than back, by more than the
/// spread explains.
fn curve(both: &[(u64, f64)], each: &[Vec<(u64, f64)>; 2], spread_ns: f64) -> SeekCurve {
    let points = |list: &[(u64, f64)]| list.iter().map(|&(d, ns)| (d, time(ns))).collect();
    let [rising, falling] = each;
    let apart = |(a, b): (&(u64, f64), &(u64, f64))| (a.1 - b.1).abs() > (6.0 * spread_ns).max(0.03 * a.1);
    if rising.iter().zip(falling).filter(|&p| apart(p)).count() < 2 {
        return SeekCurve::Table(points(both));
    }
    SeekCurve::Directed { rising: points(rising), falling: points(falling) }
}

fn seeks(out: &mut Fitted, e: &Extraction) {
    let Some(s) = e.seek.as_ref().filter(|s| !s.read.is_empty()) else {
        out.notes.push("seeks are not measured: the curve is assumed".to_owned());
        return;
    };
    let m = &mut out.spec.mechanics;
    m.read_seek = curve(&s.read, &s.read_by_direction, s.spread_ns);
    m.read_overhead = time(s.read_overhead_ns);
    m.head_switch = time(s.head_switch_ns.unwrap_or(0.0));
    let error = format!("least access times, +- {:.0} us", s.spread_ns / 1e3);
    if let Some(overhead) = s.write_overhead_ns.filter(|_| !s.write.is_empty()) {
        m.write_seek = curve(&s.write, &s.write_by_direction, s.spread_ns);
        (m.write_overhead, m.write_settle) = (time(overhead), SimTime::ZERO);
        out.because("mechanics.write_seek", "measured", error.clone());
        out.because("mechanics.write_overhead", "measured", error.clone());
        out.because("mechanics.write_settle", "measured", "contained in the curve of writes".to_owned());
    } else {
        m.write_seek = m.read_seek.clone();
        m.write_overhead = m.read_overhead;
        out.because("mechanics.write_seek", "assumed", "that of reads; writes were not allowed".to_owned());
        out.notes.push(
            "writes were not measured (--destroy): their seeks are assumed to be those of reads".to_owned(),
        );
    }
    out.because("mechanics.read_seek", "measured", error.clone());
    out.because("mechanics.read_overhead", "measured", error.clone());
    match s.head_switch_ns {
        Some(_) => out.because("mechanics.head_switch", "measured", error),
        None => out.because("mechanics.head_switch", "assumed", "no change of surface was seen".to_owned()),
    }
}

/// What a fit to the paper's text form gives: the drive, and what the paper's figures show.
#[derive(Clone, Debug)]
pub struct DigFit {
    /// The drive.
    pub fitted: Fitted,
    /// The zones of the drive.
    pub runs: Vec<EqualTracks>,
    /// The paper's polynomial and its zones, for figure 11.
    pub paper: (Curve, Vec<EqualTracks>),
    /// Tracks over which the skew adds up to a revolution (n in figure 12).
    pub period_tracks: f64,
}

/// A drive of the paper's text form, zones by change points or (`by_paper`) by the paper's polynomial. `rpm` where it is known; else it
/// follows from the times.
///
/// # Errors
/// [`ProbeError::Unclear`] where the rotation does not show.
pub fn from_dig(
    tracks: &[dig::Track],
    name: &str,
    how: Paper,
    by_paper: bool,
    rpm: Option<f64>,
) -> Result<DigFit> {
    let (period, skew) = dig::rotation(tracks)?;
    let measured = 60e6 / period;
    let speed = rpm.unwrap_or(measured);
    let blocks: u64 = tracks.iter().map(|t| t.sectors).sum();
    let paper = zoning::paper(tracks, how, blocks);
    let runs = if by_paper { paper.1.clone() } else { change_points(tracks) };
    let zones = counted(runs.len() as u64, "zone");
    let summary = format!("{} tracks, {speed:.0} rpm, {zones}, from a DIG text", tracks.len());
    let mut out = Fitted::new(name, summary, "the text form of Pitchumani et al. 2012, section 6".to_owned());
    let g = &mut out.spec.geometry;
    (g.surfaces, g.layout, g.toward) = (1, Layout::Surface, Toward::Inner);
    g.zones = runs.iter().map(|r| ZoneSpec::plain(r.tracks as u32, r.sectors as u32)).collect();
    (g.cylinder_skew, g.track_skew) = (angle(skew), 0);
    g.defects.clear();
    out.spec.counted = None;
    out.spec.mechanics.rpm = speed.round() as u32;
    let method = if by_paper { "polynomial and equal zones" } else { "change points" };
    out.because("geometry.surfaces", "assumed", "the text form has no surfaces".to_owned());
    out.because("geometry.zones", "measured", format!("{method} of the text's track sizes"));
    out.because("geometry.cylinder_skew", "measured", "from the text's times".to_owned());
    let (kind, source) =
        rpm.map_or(("measured", "from the text's times"), |_| ("assumed", "given with the text"));
    out.because("mechanics.rpm", kind, source.to_owned());
    out.notes.push("seeks, head switch and surfaces are not in the text form: they are assumed".to_owned());
    let period_tracks = 1.0 / crate::stats::wrap(skew).abs().max(1e-9);
    Ok(DigFit { fitted: out, runs, paper, period_tracks })
}

/// What an extraction of a drive would give if it were exact: for pictures of drives, and to compare with.
///
/// # Errors
/// [`ProbeError::Input`] where the drive's mechanics cannot be built.
pub fn of_drive(model: &smrlab_disk::DriveModel) -> Result<Extraction> {
    let (g, spec) = (model.geometry(), model.spec());
    let mut out = Extraction::new(g.blocks().0);
    let exact = |value: f64| crate::geometry::Measured { value, spread: 0.0 };
    out.rpm = Some(exact(f64::from(spec.mechanics.rpm)));
    out.complete = true;
    for z in g.zones() {
        let usable = g.track_blocks(z.first_track).0.max(z.blocks.0.div_ceil(z.tracks.max(1)));
        match out.zones.last_mut() {
            Some(last) if last.usable == usable && last.sectors == u64::from(z.sectors) => {
                last.tracks += z.tracks;
                last.blocks += z.blocks.0;
            }
            _ => out.zones.push(Zone {
                first_lba: z.first.0,
                blocks: z.blocks.0,
                first_track: z.first_track.0,
                tracks: z.tracks,
                usable,
                sectors: u64::from(z.sectors),
                sectors_exact: f64::from(z.sectors),
                slips: 0,
                jump: 0.0,
            }),
        }
    }
    for z in &mut out.zones {
        z.slips = (z.tracks * z.usable).saturating_sub(z.blocks);
    }
    let surfaces = u64::from(spec.geometry.surfaces);
    let order = match spec.geometry.layout {
        Layout::Surface => Order::Surface { surfaces },
        Layout::Hybrid { width } => Order::Hybrid { surfaces, group_cylinders: u64::from(width) },
        Layout::Cylinder { .. } | Layout::ZoneAlternate => Order::Cylinder { surfaces },
        // Its runs have skews of their own.
        Layout::Listed => return Ok(out),
    };
    let turns = |angle: u64| angle as f64 / REVOLUTION as f64;
    let cylinder = turns(spec.geometry.cylinder_skew);
    out.skew = Some(Skews {
        order,
        cylinder: exact(cylinder),
        track: (surfaces > 1).then(|| exact(turns(spec.geometry.track_skew))),
        period_tracks: 1.0 / crate::stats::wrap(cylinder).abs().max(1e-9),
    });
    Ok(out)
}
