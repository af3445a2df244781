//! What extractions say and what they cost, as it is on record in `record.txt`, a line for each. The tests hold the results against the
//! truth within tolerances; here a change of the method shows, which may be right and ask for more than it did.
//!
//! Where a change is wanted: `SMRLAB_RECORD=/tmp/lines cargo test -p smrlab-probe` puts the lines into a file, and `sort -u` of those of
//! extractions is the record; read the difference.

use smrlab_probe::geometry::{ExtractOptions, Extraction, Measured};
use std::io::Write;

/// Five digits: what another processor rounds otherwise does not show.
fn number(value: f64) -> String {
    if value.abs() < 1e-9 { "0".to_owned() } else { format!("{value:.4e}") }
}

fn measured(m: Measured) -> String {
    format!("{}+-{}", number(m.value), number(m.spread))
}

/// The points of a curve, and the sums of their times and of these times their distances.
fn curve(of: &[(u64, f64)]) -> String {
    let [times, moments] =
        [0, 1].map(|power| of.iter().map(|(d, t)| t * (*d as f64).powi(power)).sum::<f64>());
    format!("{} {} {}", of.len(), number(times), number(moments))
}

/// An extraction in a line.
pub(crate) fn said(e: &Extraction) -> String {
    let mut parts = vec![e.rpm.map(measured).unwrap_or_default()];
    let sum = |f: &dyn Fn(usize) -> f64| number((0..e.zones.len()).map(f).sum());
    let (exact, jump) = (sum(&|i| e.zones[i].sectors_exact), sum(&|i| e.zones[i].jump));
    let (slips, ends) =
        (sum(&|i| e.zones[i].slips as f64), sum(&|i| (i + 1) as f64 * e.zones[i].blocks as f64));
    parts.push(format!("{} zones {exact} {ends} slips {slips} jump {jump}", e.zones.len()));
    if let Some(s) = &e.skew {
        let track = s.track.map(measured).unwrap_or_default();
        parts.push(format!("{:?} {} {track} {}", s.order, measured(s.cylinder), number(s.period_tracks)));
    }
    if let Some(s) = &e.seek {
        let [over, spread] = [s.read_overhead_ns, s.spread_ns].map(number);
        let [write, switch] =
            [s.write_overhead_ns, s.head_switch_ns].map(|n| n.map(number).unwrap_or_default());
        parts.push(format!("overhead {over} {write} switch {switch} spread {spread}"));
        let ways = s.read_by_direction.iter().chain(&s.write_by_direction);
        parts.extend([&s.read, &s.write].into_iter().chain(ways).map(|of| curve(of)));
    }
    if let Some(c) = e.cache.filter(|c| c.present) {
        parts.push(format!("cache {} {}", c.segments, c.read_ahead));
    }
    let q = e.quality;
    let [noise, seconds] = [q.noise_ns, q.seconds].map(number);
    parts.push(format!("{} requests {} hits {} outliers", q.requests, q.cache_hits, q.outliers));
    parts.push(format!("noise {noise} {seconds} s, {} notes", e.notes.len()));
    parts.join("; ")
}

/// Holds an extraction of the drive of this name against the record.
pub(crate) fn check(name: &str, noise_us: u64, options: ExtractOptions, e: &Extraction) {
    let what = [(options.destroy, " writes"), (options.zones_only, " zones")];
    let what: String = what.iter().filter(|w| w.0).map(|w| w.1).collect();
    hold(&format!("{name} {} at {noise_us} us{what}", e.blocks), &said(e), include_str!("record.txt"));
}

/// Holds what is said of a name against a record.
pub(crate) fn hold(name: &str, said: &str, record: &str) {
    if let Some(path) = std::env::var_os("SMRLAB_RECORD") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{name}: {said}\n").as_bytes()).unwrap();
        return;
    }
    // Several drives may have a name.
    let line = format!("{name}: {said}");
    let recorded: Vec<&str> = record.lines().filter(|line| line.starts_with(&format!("{name}: "))).collect();
    assert!(recorded.contains(&&line[..]), "it is\n{line}\nand on record is\n{}", recorded.join("\n"));
}
