//! Fitting: what of a drive's mechanics the first half of a measured trace contradicts, judged on its second half.
//!
//! Two things are fitted, both of them times of the arm. *Seeks*: by classes of distance, reads and writes apart, the mean of what
//! requests took longer on the real drive, where that is more than 2.5 times its standard error. *Settling* on the cylinder where
//! the head is already, after a read and after a write: of sixteen values the one with the least demerit. Whatever does not make the
//! first half's demerit smaller is not kept.
//!
//! Where the head of a real drive meets the surface is chance for most drives (skews are not known to a fraction of a sector over a
//! whole zone), so that the model is asked several times, with pauses longer by parts of a revolution.

use super::{Compared, Measured, demerit, replay_on};
use crate::error::{Result, RunError};
use serde_json::{Value, json};
use smrlab_disk::mechanics::Distance;
use smrlab_disk::model::{DriveSpec, load, write};
use smrlab_disk::{DriveModel, SeekCurve};
use smrlab_trace::read_drive;
use smrlab_units::{HostOp, Pba, SimTime};

/// How often the model is asked.
const PHASES: u64 = 8;
/// Classes of distances in cylinders: each from one of these up to the next.
const CLASSES: [u64; 20] =
    [1, 2, 4, 9, 21, 51, 81, 121, 181, 261, 381, 551, 801, 1201, 1701, 2501, 3501, 5001, 9001, u64::MAX];
/// Requests that a class needs, and standard errors that its mean has to be away from nothing.
const LEAST: usize = 12;
const ERRORS: f64 = 2.5;
/// Settling times that are tried.
const STEP_US: u64 = 100;
const STEPS: u64 = 16;
/// Demerits count as smaller from here on.
const BETTER: f64 = 0.95;

/// A drive with what was fitted.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The drive file.
    pub toml: String,
    /// `fitted`: how many figures; `changes`: each; `halves`: demerits in ms before and after, of the first half and the second.
    pub doc: Value,
}

/// A correction of seeks of a class.
struct Correction {
    write: bool,
    from: u64,
    to: u64,
    ms: f64,
    error: f64,
    requests: usize,
}

/// A drive that is being fitted to a trace.
struct Fit<'a> {
    base: &'a DriveModel,
    spec: DriveSpec,
    measured: &'a [Measured],
    half: usize,
    fields: Vec<&'static str>,
}

/// Fits the drive file `drive` to the first half of `measured`, which `trace` names.
///
/// # Errors
/// A drive that cannot be loaded, without a table of seeks over cylinders or without a controller; a request beyond it.
pub fn fit(drive: &str, trace: &str, measured: &[Measured]) -> Result<Fitted> {
    let base = load(drive, read_drive).map_err(|e| RunError::field("drive", e))?;
    let spec = base.spec().clone();
    if spec.cache.is_some() {
        let problem =
            "its cache on the medium answers what it writes, so that its times say nothing of the arm alone";
        return Err(RunError::field("drive", format!("{}: {problem}", base.name())));
    }
    let tables = [&spec.mechanics.read_seek, &spec.mechanics.write_seek];
    let known = tables.iter().all(|c| matches!(c, SeekCurve::Table(_)));
    if !known || spec.mechanics.distance != Distance::Cylinders || spec.controller.is_none() {
        let problem = "only drives with a controller and tables of seeks over cylinders can be fitted";
        return Err(RunError::field("drive", format!("{}: {problem}", base.name())));
    }
    let mut f = Fit { base: &base, spec, measured, half: measured.len() / 2, fields: Vec::new() };
    let before = f.halves(&f.spec)?;
    let mut least = before[0];
    let mut changes = Vec::new();
    for (after, name) in
        [("read", "controller.read_settle_after_read"), ("write", "controller.read_settle_after_write")]
    {
        let mut best = (f64::MAX, 0, f.spec.clone());
        for step in 0..STEPS {
            let mut spec = f.spec.clone();
            settle(&mut spec, after, SimTime::from_us(step * STEP_US));
            let demerit = f.here(&spec, after)?;
            if demerit < best.0 {
                best = (demerit, step, spec);
            }
        }
        let (_, step, spec) = best;
        if f.keep(spec, name, &mut least)? {
            changes.push(json!({ "settle_after": after, "ms": (step * STEP_US) as f64 / 1e3 }));
        }
    }
    for write in [false, true] {
        let found = f.seeks(write)?;
        let mut spec = f.spec.clone();
        let (field, curve) = if write {
            ("mechanics.write_seek", &mut spec.mechanics.write_seek)
        } else {
            ("mechanics.read_seek", &mut spec.mechanics.read_seek)
        };
        *curve = corrected(curve, &found);
        if f.keep(spec, field, &mut least)? {
            changes.extend(found.iter().map(told));
        }
    }
    let after = f.halves(&f.spec)?;
    let origin = |field: &str| match base.provenance().iter().find(|p| p.field == field) {
        _ if f.fields.contains(&field) => ("fitted", format!("smrlab validate --fit, first half of {trace}")),
        Some(p) => (kind(&p.kind), p.source.clone()),
        None => ("assumed", format!("as in {}", base.name())),
    };
    let toml = write(&f.spec, &origin);
    let half = |i: usize| json!({ "before_ms": before[i], "after_ms": after[i] });
    let doc = json!({ "fitted": changes.len(), "changes": changes, "halves": [half(0), half(1)] });
    Ok(Fitted { toml, doc })
}

/// A kind of the drive files as a word that lasts.
fn kind(kind: &str) -> &'static str {
    ["spec", "measured", "fitted"].into_iter().find(|k| *k == kind).unwrap_or("assumed")
}

fn told(c: &Correction) -> Value {
    let to = if c.to == u64::MAX { Value::Null } else { json!(c.to - 1) };
    json!({
        "seeks_of": if c.write { "writes" } else { "reads" }, "from_cylinders": c.from, "to_cylinders": to,
        "ms": c.ms, "standard_error_ms": c.error, "requests": c.requests,
    })
}

fn settle(spec: &mut DriveSpec, after: &str, time: SimTime) {
    if let Some(c) = &mut spec.controller {
        c.read_settle[usize::from(after == "write")] = time;
    }
}

/// A curve with the corrections of its classes: steps at their borders.
fn corrected(curve: &SeekCurve, found: &[Correction]) -> SeekCurve {
    let SeekCurve::Table(points) = curve else { return curve.clone() };
    let mut at: Vec<u64> = points.iter().map(|p| p.0).collect();
    at.extend(
        found.iter().flat_map(|c| [c.from.max(2) - 1, c.from, c.to - 1, c.to]).filter(|d| *d < u64::MAX - 1),
    );
    at.sort_unstable();
    at.dedup();
    let time = |d: u64| {
        let more: f64 = found.iter().filter(|c| (c.from..c.to).contains(&d)).map(|c| c.ms * 1e6).sum();
        SimTime((curve.time(0, d).0 as f64 + more).max(0.0) as u64)
    };
    SeekCurve::Table(at.into_iter().map(|d| (d, time(d))).collect())
}

impl Fit<'_> {
    /// The answers of a drive to the trace, with pauses longer by up to `phase` revolutions.
    fn answers(&self, spec: &DriveSpec, phase: u64) -> Result<Vec<Compared>> {
        let toml = write(spec, &|_| ("fitted", "being fitted".to_owned()));
        let turn = 60_000_000_000 / u64::from(spec.mechanics.rpm);
        let later = |(i, m): (usize, &Measured)| Measured {
            gap: m.gap + SimTime(turn * phase * (i as u64 * 7919 % 1009) / 1009),
            ..*m
        };
        let asked: Vec<Measured> = self.measured.iter().enumerate().map(later).collect();
        replay_on("fitted.toml", |_| Ok(toml.clone()), &smrlab_stl::build, "cmr", &asked)
    }

    /// Demerits of both halves in milliseconds, means over the phases.
    fn halves(&self, spec: &DriveSpec) -> Result<[f64; 2]> {
        let mut sums = [0.0; 2];
        for phase in 0..PHASES {
            let rows = self.answers(spec, phase)?;
            for (sum, rows) in sums.iter_mut().zip([&rows[..self.half], &rows[self.half..]]) {
                let times =
                    |t: fn(&Compared) -> SimTime| rows.iter().map(|r| t(r).as_ms_f64()).collect::<Vec<_>>();
                *sum += demerit(&times(|r| r.measured), &times(|r| r.simulated)) / PHASES as f64;
            }
        }
        Ok(sums)
    }

    /// The demerit of the first half's reads on the cylinder where the command before ended, a read or a write as `after` says.
    fn here(&self, spec: &DriveSpec, after: &str) -> Result<f64> {
        let op = if after == "write" { HostOp::Write } else { HostOp::Read };
        let class = |i: &usize| {
            let (before, m) = (&self.measured[*i - 1], &self.measured[*i]);
            m.op == HostOp::Read && before.op == op && self.distance(*i) == 0
        };
        let class: Vec<usize> = (1..self.half).filter(class).collect();
        let mut sum = 0.0;
        for phase in 0..PHASES {
            let rows = self.answers(spec, phase)?;
            let times = |t: fn(&Compared) -> SimTime| {
                class.iter().map(|&i| t(&rows[i]).as_ms_f64()).collect::<Vec<_>>()
            };
            sum += demerit(&times(|r| r.measured), &times(|r| r.simulated));
        }
        Ok(sum)
    }

    /// Cylinders from the end of the request before to request `i`.
    fn distance(&self, i: usize) -> u64 {
        let cylinder = |lba: u64| u64::from(self.base.geometry().position(Pba(lba)).cylinder);
        let before = &self.measured[i - 1];
        cylinder(self.measured[i].lba.0).abs_diff(cylinder(before.lba.0 + before.blocks.0 - 1))
    }

    /// Takes `spec`, which differs in `field`, if that makes the first half's demerit smaller.
    fn keep(&mut self, spec: DriveSpec, field: &'static str, least: &mut f64) -> Result<bool> {
        let demerit = self.halves(&spec)?[0];
        let better = demerit < *least * BETTER;
        if better {
            (self.spec, *least) = (spec, demerit);
            self.fields.push(field);
        }
        Ok(better)
    }

    /// By class of distance, what seeks took longer on the real drive in the first half: of the requests whose time depends
    /// on the phase, which is to say that the medium was needed.
    fn seeks(&self, write: bool) -> Result<Vec<Correction>> {
        let runs = (0..PHASES).map(|p| self.answers(&self.spec, p)).collect::<Result<Vec<_>, _>>()?;
        let turn = 60_000.0 / f64::from(self.spec.mechanics.rpm);
        let op = if write { HostOp::Write } else { HostOp::Read };
        let mut by_class = vec![Vec::new(); CLASSES.len()];
        for i in 1..self.half {
            let m = &self.measured[i];
            let took = |r: &Vec<Compared>| r[i].simulated.as_ms_f64();
            let most = runs.iter().map(took).fold(f64::MIN, f64::max);
            let least = runs.iter().map(took).fold(f64::MAX, f64::min);
            if m.op == op && most - least > turn / 2.0 {
                let mean = runs.iter().map(took).sum::<f64>() / runs.len() as f64;
                by_class[CLASSES.partition_point(|&c| c <= self.distance(i))]
                    .push(m.service.as_ms_f64() - mean);
            }
        }
        let mut found = Vec::new();
        for (class, late) in CLASSES.windows(2).zip(&by_class[1..]) {
            let n = late.len() as f64;
            let mean = late.iter().sum::<f64>() / n;
            let error = (late.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt() / n.sqrt();
            if late.len() >= LEAST && mean.abs() > ERRORS * error {
                found.push(Correction {
                    write,
                    from: class[0],
                    to: class[1],
                    ms: mean,
                    error,
                    requests: late.len(),
                });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 10 to 20 cylinders seeks take 2 ms longer, from 40 on 1.5 ms less and never less than none: steps where the classes begin
    /// and end, between them what the curve says.
    #[test]
    fn a_correction_is_added_to_the_seeks_of_its_class() {
        let ms = SimTime::from_ms;
        let curve = SeekCurve::Table(vec![(1, ms(1)), (101, ms(101))]);
        let correction = |from, to, ms| Correction { write: false, from, to, ms, error: 0.1, requests: 40 };
        let found = corrected(&curve, &[correction(10, 20, 2.0), correction(40, u64::MAX, -1.5)]);
        let us = |d| found.time(0, d).0 / 1000;
        let distances = [1, 9, 10, 15, 19, 20, 39, 40, 101];
        let times = [1000, 9000, 12_000, 17_000, 21_000, 20_000, 39_000, 38_500, 99_500];
        assert_eq!(distances.map(us), times);
        // Classes side by side have their edges in common: one point each, or a drive file would refuse the curve.
        let SeekCurve::Table(points) = corrected(&curve, &[correction(10, 20, 2.0), correction(20, 40, 1.0)])
        else {
            panic!("a table stays one");
        };
        let at = points.iter().map(|point| point.0).collect::<Vec<_>>();
        assert_eq!(at, [1, 9, 10, 19, 20, 39, 40, 101]);
        let short = corrected(&curve, &[correction(1, 3, -5.0)]);
        assert_eq!([1, 2, 3].map(|d| short.time(0, d)), [SimTime::ZERO, SimTime::ZERO, ms(3)]);
    }

    /// What was kept is what the next one has to be better than: a drive whose seeks take 3 ms longer is not like one of 2 ms once 3 ms are
    /// known.
    #[test]
    fn a_change_has_to_be_better_than_those_before_it() {
        let base = load("tiny,cache=on", |_| Err(String::new())).unwrap();
        let slower = |ms: u64| {
            let mut spec = base.spec().clone();
            let table = [1, 119].map(|d| (d, SimTime::from_ms(2 + ms))).to_vec();
            (spec.mechanics.read_seek, spec.mechanics.write_seek) =
                (SeekCurve::Table(table.clone()), SeekCurve::Table(table));
            spec
        };
        let mut rng = smrlab_units::rng::Rng::new(1);
        let mut measured: Vec<Measured> = (0..60)
            .map(|_| Measured {
                op: HostOp::Read,
                lba: smrlab_units::Lba(rng.below(2800)),
                blocks: smrlab_units::Blocks(1),
                service: SimTime::ZERO,
                gap: SimTime::from_us(20_000 + rng.below(9000)),
            })
            .collect();
        fn whole<'a>(base: &'a DriveModel, spec: DriveSpec, measured: &'a [Measured]) -> Fit<'a> {
            Fit { base, spec, measured, half: measured.len(), fields: Vec::new() }
        }
        let real = whole(&base, slower(0), &measured).answers(&slower(3), 0).unwrap();
        measured.iter_mut().zip(real).for_each(|(m, a)| m.service = a.simulated);
        let mut fit = whole(&base, slower(0), &measured);
        let mut least = fit.halves(&fit.spec).unwrap()[0];
        let first = least;
        let mut keeps = |ms, field| fit.keep(slower(ms), field, &mut least).unwrap();
        assert_eq!([keeps(3, "a"), keeps(2, "b"), keeps(1, "c")], [true, false, false]);
        assert!(least < first * BETTER && fit.fields == ["a"], "{least} of {first}");
    }

    /// The last cylinder of a class is told, and nothing where it goes on to the end of the drive.
    #[test]
    fn a_correction_is_told_with_its_last_cylinder() {
        let of = |to| told(&Correction { write: true, from: 10, to, ms: 2.5, error: 0.5, requests: 40 });
        let common = json!({"seeks_of": "writes", "from_cylinders": 10, "ms": 2.5, "standard_error_ms": 0.5, "requests": 40});
        for (to, last) in [(20, json!(19)), (u64::MAX, Value::Null)] {
            let mut expected = common.clone();
            expected["to_cylinders"] = last;
            assert_eq!(of(to), expected);
        }
    }
}
