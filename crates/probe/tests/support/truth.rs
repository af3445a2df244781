//! Extractions against the truth of a simulated drive.

use smrlab_disk::geometry::{Layout, REVOLUTION};
use smrlab_disk::model::load;
use smrlab_disk::{DriveModel, Model};
use smrlab_drive::{Drive, DriveSetup};
use smrlab_probe::geometry::{Extraction, Measured, Options, Order, extract};
use smrlab_probe::{Noisy, ProbeError, SimTarget, TimedTarget, Watch};
use smrlab_units::{Blocks, Dir, SimTime};
use std::cell::Cell;
use std::sync::Arc;

/// A preset with changes, by its text.
pub fn model(text: &str) -> DriveModel {
    load(text, |_| Err("no files here".to_owned())).unwrap()
}

/// The names of the presets that turn.
pub fn rotating() -> impl Iterator<Item = &'static str> {
    smrlab_disk::DRIVES.iter().filter(|d| d.drive().spec().model == Model::Full).map(|d| d.name)
}

/// The drive without a layer, with the cache that it has.
pub fn target(model: &DriveModel) -> SimTarget<Drive> {
    let built = smrlab_stl::build("cmr", &smrlab_stl::BuildContext::new(Arc::new(model.clone()))).unwrap();
    let drive = Drive::new(built.layer, model.mechanics(None).unwrap(), DriveSetup::default());
    SimTarget::new(drive.behind(model.spec().controller))
}

/// Gives up after ten million requests.
#[derive(Default)]
struct Patience(Cell<u64>);

impl Watch for Patience {
    fn stopped(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 10_000_000
    }
}

/// Seen by a host with noise; one completion in 500 comes much too late where there is any.
pub fn seeded(
    model: &DriveModel,
    noise_us: u64,
    options: Options,
    seed: u64,
) -> Result<Extraction, ProbeError> {
    let mut t =
        Noisy::new(target(model), SimTime::from_us(noise_us), if noise_us > 0 { 500 } else { 0 }, seed);
    let mut out = Extraction::new(t.blocks().0);
    extract(&mut t, &mut Patience::default(), options, &mut out, &mut |_| ())?;
    Ok(out)
}

fn wrap(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
}

/// Zones as first block, tracks and blocks a track.
fn zones(model: &DriveModel, blocks: u64) -> Vec<(u64, u64, u64)> {
    let mut truth: Vec<(u64, u64, u64)> = Vec::new();
    for z in model.geometry().zones() {
        let spares = model.spec().geometry.zones[z.zone as usize].spare_sectors;
        let usable = u64::from(z.sectors) - u64::from(spares);
        match truth.last_mut() {
            Some(last) if last.2 == usable => last.1 += z.tracks,
            _ => truth.push((z.first.0, z.tracks, usable)),
        }
    }
    // What lies behind the blocks that the drive offers to its host is not seen from outside.
    truth.retain(|z| z.0 < blocks);
    if let Some(last) = truth.last_mut() {
        last.1 = last.1.min((blocks - last.0).div_ceil(last.2));
    }
    truth
}

/// What is not as it must be: zone boundaries exact.
pub fn wrong_zones(model: &DriveModel, e: &Extraction) -> Vec<String> {
    let truth = zones(model, e.blocks);
    let found: Vec<_> = e.zones.iter().map(|z| (z.first_lba, z.tracks, z.usable)).collect();
    if found == truth {
        return Vec::new();
    }
    let at = found.iter().zip(&truth).position(|(f, t)| f != t).unwrap_or(found.len().min(truth.len()));
    let (f, t) = (found.get(at), truth.get(at));
    vec![format!("{} zones for {}; zone {at} is {f:?}, in truth {t:?}", found.len(), truth.len())]
}

/// Within 10 ppm.
fn wrong_rpm(model: &DriveModel, e: &Extraction) -> Vec<String> {
    let (found, truth) = (e.rpm.unwrap().value, f64::from(model.spec().mechanics.rpm));
    let off = (found / truth - 1.0).abs() < 10e-6;
    if off { Vec::new() } else { vec![format!("{found} rpm, in truth {truth}")] }
}

/// The model's own seek over `d` cylinders of the first surface, the mean of there and back, overhead excluded, in
/// nanoseconds; none where it has no such.
fn seek(model: &DriveModel, dir: Dir, d: u32) -> Option<f64> {
    let g = model.geometry();
    let (near, far) = (g.at(0, 0, 0)?, g.at(d, 0, 0)?);
    let mut m = model.mechanics(None).unwrap();
    let mut sum = 0;
    for (from, to) in [(near, far), (far, near)] {
        let start = m.head().ready;
        let end = m.service(start, Dir::Read, from, Blocks(1));
        m.service(end, dir, to, Blocks(1));
        sum += m.phases().seek.0;
    }
    Some(sum as f64 / 2.0)
}

/// Within 2 % or three standard errors.
pub fn wrong_seeks(model: &DriveModel, e: &Extraction, dir: Dir) -> Vec<String> {
    let Some(seeks) = e.seek.as_ref() else { return vec!["no seeks".to_owned()] };
    let curve = if dir == Dir::Read { &seeks.read } else { &seeks.write };
    let mut wrong = Vec::new();
    for &(d, time) in curve {
        let truth = seek(model, dir, d as u32).unwrap_or(f64::INFINITY);
        if (time - truth).abs() > (0.02 * truth).max(3.0 * seeks.spread_ns) || truth.is_infinite() {
            wrong.push(format!("{d} cylinders take {:.3} ms, in truth {:.3}", time / 1e6, truth / 1e6));
        }
    }
    if curve.len() < 5 {
        wrong.push(format!("{} distances", curve.len()));
    }
    wrong
}

/// Skews within a sector or three standard errors; the order of surfaces.
fn wrong_skew(model: &DriveModel, e: &Extraction) -> Vec<String> {
    let Some(skew) = e.skew else { return vec!["no skew".to_owned()] };
    let spec = &model.spec().geometry;
    let sector = 1.0 / f64::from(spec.zones.iter().map(|z| z.sectors).min().unwrap());
    let mut wrong = Vec::new();
    let mut check = |found: Option<Measured>, truth: u64, what: &str| {
        let truth = truth as f64 / REVOLUTION as f64;
        let near = |m: Measured| wrap(m.value - truth).abs() <= sector.max(3.0 * m.spread);
        if !found.is_some_and(near) {
            wrong.push(format!("{what} skew {found:?}, in truth {truth}"));
        }
    };
    check(Some(skew.cylinder), spec.cylinder_skew, "cylinder");
    if spec.surfaces > 1 && !matches!(spec.layout, Layout::Surface) {
        check(skew.track, spec.track_skew, "track");
    }
    let surfaces = u64::from(spec.surfaces);
    let truth = match spec.layout {
        _ if surfaces == 1 => Order::Surface { surfaces },
        Layout::Surface => Order::Surface { surfaces },
        Layout::Cylinder { .. } | Layout::ZoneAlternate => Order::Cylinder { surfaces },
        Layout::Hybrid { width } => Order::Hybrid { surfaces, group_cylinders: u64::from(width) },
        Layout::Listed => unreachable!("no drive of these tests has a listed layout"),
    };
    if skew.order != truth {
        wrong.push(format!("order {:?}, in truth {truth:?}", skew.order));
    }
    wrong
}

/// Everything that is not as it must be, a sentence each.
pub fn wrong(model: &DriveModel, e: &Extraction) -> Vec<String> {
    let parts =
        [wrong_rpm(model, e), wrong_zones(model, e), wrong_skew(model, e), wrong_seeks(model, e, Dir::Read)];
    parts.concat()
}
