//! Extractions against the truth of a simulated drive.

use smrlab_disk::geometry::{Layout, REVOLUTION};
use smrlab_disk::model::load;
use smrlab_disk::{DriveModel, Model};
use smrlab_drive::{Drive, DriveSetup};
use smrlab_probe::geometry::{ExtractOptions, Extraction, Measured, Order, extract};
use smrlab_probe::{Noisy, ProbeError, SimTarget, TimedTarget, Watch};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, Lba, SimTime};
use std::cell::Cell;
use std::sync::Arc;

/// A preset with changes, by its text.
pub(crate) fn model(text: &str) -> DriveModel {
    load(text, |_| Err("no files here".to_owned())).unwrap()
}

/// The names of the presets that turn.
pub(crate) fn rotating() -> impl Iterator<Item = &'static str> {
    smrlab_disk::DRIVES.iter().filter(|d| d.drive().spec().model == Model::Full).map(|d| d.name)
}

/// A preset's text with its cache off, where it has one.
pub(crate) fn without_cache(name: &str) -> String {
    if model(name).spec().controller.is_some() { format!("{name},cache=off") } else { name.to_owned() }
}

/// The drive without a layer, with the cache that it has.
pub(crate) fn target(model: &DriveModel) -> SimTarget {
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
pub(crate) fn seeded(
    model: &DriveModel,
    noise_us: u64,
    options: ExtractOptions,
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
pub(crate) fn wrong_zones(model: &DriveModel, e: &Extraction) -> Vec<String> {
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

/// The model's own seeks over `d` cylinders of the first surface, there and back, overhead excluded, in nanoseconds; none
/// where it has no such.
fn seek(model: &DriveModel, dir: Dir, d: u32) -> Option<[f64; 2]> {
    let g = model.geometry();
    let (near, far) = (g.at(0, 0, 0)?, g.at(d, 0, 0)?);
    let mut m = model.mechanics(None).unwrap();
    Some([(near, far), (far, near)].map(|(from, to)| {
        let start = m.head().ready;
        let end = m.service(start, Dir::Read, from, Blocks(1));
        m.service(end, dir, to, Blocks(1));
        m.phases().seek.0 as f64
    }))
}

/// Within 2 % or three standard errors: the mean of both directions, and each, which rests on half as many measurements.
pub(crate) fn wrong_seeks(model: &DriveModel, e: &Extraction, dir: Dir) -> Vec<String> {
    let Some(seeks) = e.seek.as_ref() else { return vec!["no seeks".to_owned()] };
    let (mean, ways) = match dir {
        Dir::Read => (&seeks.read, &seeks.read_by_direction),
        Dir::Write => (&seeks.write, &seeks.write_by_direction),
    };
    let mut wrong = Vec::new();
    for ((&(d, mean), &(_, there)), &(_, back)) in mean.iter().zip(&ways[0]).zip(&ways[1]) {
        let truth = seek(model, dir, d as u32).unwrap_or([f64::INFINITY; 2]);
        let both = (mean, (truth[0] + truth[1]) / 2.0, 1.0);
        let each = [(there, truth[0], 2f64.sqrt()), (back, truth[1], 2f64.sqrt())];
        for (time, truth, errors) in [both, each[0], each[1]] {
            let most = (0.02 * truth).max(3.0 * errors * seeks.spread_ns);
            if (time - truth).abs() > most || truth.is_infinite() {
                wrong.push(format!("{d} cylinders take {:.3} ms, in truth {:.3}", time / 1e6, truth / 1e6));
            }
        }
    }
    if mean.len() < 5 || ways[0].len() != mean.len() {
        wrong.push(format!("{} distances", mean.len()));
    }
    wrong
}

/// Response times of the same reads and writes anywhere, one after the other, in milliseconds.
fn responses(model: &DriveModel, blocks: u64) -> Vec<f64> {
    let (mut t, mut rng) = (target(model), Rng::new(1));
    let mut took: Vec<f64> = (0..4000)
        .map(|_| {
            let dir = if rng.one_in(2) { Dir::Read } else { Dir::Write };
            t.access(dir, Lba(rng.below(blocks - 64)), Blocks(8)).unwrap().took() / 1e6
        })
        .collect();
    took.sort_unstable_by(f64::total_cmp);
    took
}

/// The demerit of a drive that was fitted to another one, in per cent of the mean: the root of the mean square of the distance
/// between the distributions of their responses (Ruemmler and Wilkes 1994).
pub(crate) fn demerit(truth: &DriveModel, fitted: &DriveModel) -> f64 {
    let blocks = truth.geometry().blocks().0.min(fitted.geometry().blocks().0);
    let (a, b) = (responses(truth, blocks), responses(fitted, blocks));
    let mean = |of: &dyn Fn(usize) -> f64| (0..a.len()).map(of).sum::<f64>() / a.len() as f64;
    100.0 * mean(&|i| (a[i] - b[i]).powi(2)).sqrt() / mean(&|i| a[i])
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
pub(crate) fn wrong(model: &DriveModel, e: &Extraction) -> Vec<String> {
    let parts =
        [wrong_rpm(model, e), wrong_zones(model, e), wrong_skew(model, e), wrong_seeks(model, e, Dir::Read)];
    parts.concat()
}
