//! Validation: a measured trace is replayed one request at a time, and the distribution of service times is held against
//! the measured one.
//!
//! The loop is closed: each request is sent as long after the simulated completion of the one before as it was on the real
//! drive. The figure of merit is the root mean square of the horizontal distance between the two cumulative distributions
//! (the demerit figure of Ruemmler and Wilkes, *An introduction to disk drive modeling*, IEEE Computer 27(3), 1994).

mod fit;
mod measured;

pub use fit::{Fitted, fit};
pub use measured::{Measured, Reference, read_measured};

use crate::error::{Result, RunError};
use serde_json::{Map, Value, json};
use smrlab_drive::assemble::BuildLayer;
use smrlab_drive::{ScheduledDrive, Wanted, assemble};
use smrlab_stl::HostRequest;
use smrlab_trace::read_drive;
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime, counted};

/// Quantiles at which two distributions are compared.
const QUANTILES: usize = 10_000;

/// The demerit figure of two samples, in the samples' unit; 0 where one is empty.
pub fn demerit(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let sorted = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(a), sorted(b));
    let sum: f64 = (0..QUANTILES)
        .map(|i| {
            let p = (i as f64 + 0.5) / QUANTILES as f64;
            (quantile(&a, p) - quantile(&b, p)).powi(2)
        })
        .sum();
    (sum / QUANTILES as f64).sqrt()
}

/// The `p`-quantile of a sorted sample, between its values by straight lines (the `i`-th stands for `(i + 1/2) / n`).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = (p * sorted.len() as f64 - 0.5).clamp(0.0, (sorted.len() - 1) as f64);
    let (i, rest) = (at as usize, at.fract());
    let next = sorted[(i + 1).min(sorted.len() - 1)];
    sorted[i] + (next - sorted[i]) * rest
}

/// One request of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// Read or write.
    pub op: HostOp,
    /// What the real drive, or the reference, took.
    pub measured: SimTime,
    /// What the model took.
    pub simulated: SimTime,
}

/// Replays `measured` on a drive with a layer; one row a request.
///
/// # Errors
/// Faults of the drive and the layer, or a request beyond the host's space.
pub fn replay(drive: &str, layer: &str, measured: &[Measured]) -> Result<Vec<Compared>> {
    replay_on(drive, read_drive, &smrlab_stl::build, layer, measured)
}

/// The same on a drive whose file `read` reads, with a layer that `build` builds.
fn replay_on(
    drive: &str,
    read: impl Fn(&str) -> Result<String, String>,
    build: BuildLayer<'_>,
    layer: &str,
    measured: &[Measured],
) -> Result<Vec<Compared>> {
    let mut problems = Problems::default();
    let wanted =
        Wanted { drive, layer, scheduler: "fcfs", metadata: "nv", mechanics: None, medium: None, seed: 1 };
    let drive = assemble(&wanted, read, build, &mut problems);
    let drive = drive.filter(|_| problems.is_empty()).ok_or(RunError::Spec(problems))?;
    let host = drive.built.layer.host_blocks();
    let (drive, scheduler) = drive.start(false, false);
    let mut scheduled = ScheduledDrive::new(drive, &scheduler);
    let mut now = SimTime::ZERO;
    let mut rows = Vec::with_capacity(measured.len());
    for (i, m) in measured.iter().enumerate() {
        if m.lba.0 + m.blocks.0 > host.0 {
            return Err(RunError::Request(format!(
                "request {} (LBA {}, {}) lies beyond the drive's {host} blocks: is it the trace of this drive?",
                i + 1,
                m.lba,
                counted(m.blocks.0, "block")
            )));
        }
        let request = HostRequest::new(m.op, m.lba, m.blocks).numbered(i as u64);
        let Ok(served) = scheduled.submit(now, &request, &mut ());
        let done = served.map_or(now, |served| served.ack);
        rows.push(Compared { op: m.op, measured: m.service, simulated: done.since(now) });
        now = done + m.gap;
    }
    Ok(rows)
}

fn ms(times: impl Iterator<Item = SimTime>) -> Vec<f64> {
    times.map(|t| t.0 as f64 / 1e6).collect()
}

/// The figures of a comparison, as `smrlab validate --json` has them; absent where there is no request.
pub fn figures(rows: &[&Compared]) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("requests".to_owned(), json!(rows.len()));
    if rows.is_empty() {
        return out;
    }
    let (measured, simulated) = (ms(rows.iter().map(|r| r.measured)), ms(rows.iter().map(|r| r.simulated)));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (m, s, d) = (mean(&measured), mean(&simulated), demerit(&measured, &simulated));
    let absolute: Vec<f64> = measured.iter().zip(&simulated).map(|(a, b)| (a - b).abs()).collect();
    out.insert("demerit_ms".to_owned(), json!(d));
    out.insert("demerit_percent".to_owned(), json!(100.0 * d / m));
    out.insert("measured_mean_ms".to_owned(), json!(m));
    out.insert("simulated_mean_ms".to_owned(), json!(s));
    out.insert("mean_error_percent".to_owned(), json!(100.0 * (s - m) / m));
    out.insert("per_request_mae_ms".to_owned(), json!(mean(&absolute)));
    out
}

/// The layer of a drive itself: of one whose file knows a cache on the medium the drive-managed one, else none.
///
/// # Errors
/// A drive that cannot be loaded.
pub fn own_layer(drive: &str) -> Result<&'static str> {
    let model = smrlab_disk::model::load(drive, read_drive);
    let model = model.map_err(|e| RunError::field("drive", e))?;
    Ok(if model.spec().cache.is_some() { "persistent-cache" } else { "cmr" })
}

/// Validates a drive against a measured trace; the document of `smrlab validate --json`, and the rows.
///
/// # Errors
/// As [`read_measured`] and [`replay`].
pub fn validate(
    drive: &str,
    trace: &str,
    layer: &str,
    reference: Reference,
) -> Result<(Value, Vec<Compared>)> {
    let measured = read_measured(trace, reference)?;
    let rows = replay(drive, layer, &measured)?;
    let part = |keep: &dyn Fn(&Compared) -> bool| rows.iter().filter(|r| keep(r)).collect::<Vec<_>>();
    let mut doc = Map::new();
    doc.insert("schema".to_owned(), json!(1));
    doc.insert("drive".to_owned(), json!(drive));
    doc.insert("layer".to_owned(), json!(layer));
    doc.insert("trace".to_owned(), json!(trace));
    doc.append(&mut figures(&part(&|_| true)));
    doc.insert("reads".to_owned(), Value::Object(figures(&part(&|r| r.op == HostOp::Read))));
    doc.insert("writes".to_owned(), Value::Object(figures(&part(&|r| r.op == HostOp::Write))));
    Ok((Value::Object(doc), rows))
}

/// A request of blocks from an LBA.
pub(crate) fn extent(lba: u64, blocks: u64) -> (Lba, Blocks) {
    (Lba(lba), Blocks(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A distribution moved by a constant is that far away, whatever the order; one stretched by 1 % of values from 0 to 1
    /// is at a distance of 0.01 / sqrt(3).
    #[test]
    fn the_demerit_is_the_rms_distance_of_the_distributions() {
        let a: Vec<f64> = (0..1000).map(|i| f64::from(i) / 1000.0).collect();
        let moved: Vec<f64> = a.iter().rev().map(|x| x + 0.25).collect();
        assert!((demerit(&a, &moved) - 0.25).abs() < 1e-9);
        let stretched: Vec<f64> = a.iter().map(|x| x * 1.01).collect();
        assert!((demerit(&a, &stretched) - 0.01 / 3f64.sqrt()).abs() < 1e-4);
        assert_eq!(demerit(&a, &a), 0.0);
        // One of two values is off by 2: half of the quantiles, but for the line between the values.
        let d = demerit(&[1.0, 5.0], &[1.0, 7.0]);
        assert!(d > 2.0 * 0.5f64.sqrt() * 0.9 && d < 2.0 * 0.6f64.sqrt(), "{d}");
    }

    /// Samples of all lengths, against the integral worked out piece by piece: between the shares for which values of either stand, the distance
    /// is a straight line.
    #[test]
    fn the_demerit_is_the_integral_of_the_distance() {
        let mut rng = smrlab_units::rng::Rng::new(5);
        for round in 0..60 {
            let mut sample =
                |n: u64| -> Vec<f64> { (0..n).map(|_| rng.below(1000) as f64 / 100.0).collect() };
            let (a, b) = (sample(1 + round % 7), sample(1 + round % 5));
            let shares =
                |v: &[f64]| (0..v.len()).map(|i| (i as f64 + 0.5) / v.len() as f64).collect::<Vec<_>>();
            let value = |v: &[f64], p: f64| {
                let (mut v, of) = (v.to_vec(), shares(v));
                v.sort_by(f64::total_cmp);
                match of.iter().position(|share| p <= *share) {
                    Some(0) => v[0],
                    Some(i) => v[i - 1] + (v[i] - v[i - 1]) * (p - of[i - 1]) / (of[i] - of[i - 1]),
                    None => v[v.len() - 1],
                }
            };
            let mut ends = [vec![0.0, 1.0], shares(&a), shares(&b)].concat();
            ends.sort_by(f64::total_cmp);
            let piece = |p: f64, q: f64| {
                let (from, to) = (value(&a, p) - value(&b, p), value(&a, q) - value(&b, q));
                (q - p) * (from * from + from * to + to * to) / 3.0
            };
            let expected: f64 = ends.windows(2).map(|of| piece(of[0], of[1])).sum();
            let got = demerit(&a, &b).powi(2);
            assert!((got - expected).abs() < 1e-4, "{got} for {expected}: {a:?} and {b:?}");
        }
    }

    /// A drive that turns in 10 ms reads a block, and again 4 ms after it has: when it did so, and not when the measured drive did. The block
    /// comes by 6 ms later.
    #[test]
    fn gaps_are_those_behind_the_simulated_requests() {
        let read = |lba, ms, gap| Measured {
            op: HostOp::Read,
            lba: Lba(lba),
            blocks: Blocks(1),
            service: SimTime::from_ms(ms),
            gap: SimTime::from_ms(gap),
        };
        let rows = replay("tiny", "cmr", &[read(0, 3, 4), read(0, 3, 17), read(0, 3, 0)]).unwrap();
        assert_eq!([1, 2].map(|i: usize| rows[i].simulated), [6, 3].map(SimTime::from_ms));
        assert!(rows.iter().all(|row| (row.op, row.measured) == (HostOp::Read, SimTime::from_ms(3))));
        // Of 2880 blocks the last one is one of the drive's.
        assert_eq!(replay("tiny", "cmr", &[read(2879, 3, 4)]).unwrap().len(), 1);
        let e = replay("tiny", "cmr", &[read(0, 3, 4), read(2880, 3, 4)]).map(drop).unwrap_err().to_string();
        assert!(e.contains("request 2 (LBA 2880, 1 block) lies beyond"), "{e}");
    }

    /// What a layer draws in a replay it draws in a run, too: the seed is that of a run where none is given.
    #[test]
    fn the_seed_of_a_replay_is_that_of_a_run() {
        let seen = std::cell::Cell::new(None);
        let build = |layer: &str, context: &smrlab_stl::BuildContext| {
            seen.set(Some(context.seed));
            smrlab_stl::build(layer, context)
        };
        replay_on("tiny", |_| unreachable!("a preset"), &build, "cmr", &[]).unwrap();
        assert_eq!(seen.get(), Some(crate::Spec::new("t", "tiny", "cmr").seed));
    }
}
