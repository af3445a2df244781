//! The drive-managed presets against the answers of the published model (Shafaei et al. 2017, errors repaired) and against what
//! others measured on a real drive. The workloads are looked for in `$SMRLAB_SHARED` or `../shared`; two small ones of our own, whose
//! answers were worked out by the model's rules on a small drive, are in `data/` and are always there.

mod claims;

use crate::support::shared::shared;
use smrlab_disk::model::load;
use smrlab_disk::{Mechanics, Model};
use smrlab_sim::validate::{Reference, validate};
use smrlab_stl::{BuildContext, Cause, HostRequest, Plan, Step, StepEnd, TranslationLayer};
use smrlab_trace::Stop;
use smrlab_trace::input::Input;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WORKLOADS: [&str; 6] =
    ["w1_randwrite", "w2_randread", "w3_mixed7030", "w4_seqwrite", "w5_randwrite_wide", "w6_hotcold_inner"];

fn rows(path: &Path) -> Vec<Vec<String>> {
    let mut input = Input::open(&path.to_string_lossy(), &Stop::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut text = Vec::new();
    loop {
        let n = input.fill(1).unwrap_or_else(|e| panic!("{e}"));
        if n == 0 {
            break;
        }
        text.extend_from_slice(input.window());
        let n = input.window().len();
        input.consume(n);
    }
    let text = String::from_utf8(text).expect("CSV files are text");
    text.lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect()
}

/// A request of a workload, with the reference's answer in milliseconds.
struct Line {
    op: HostOp,
    lba: u64,
    blocks: u64,
    total: f64,
    clean: f64,
    journal: f64,
}

/// One of the published model's workloads.
fn workload(name: &str) -> Option<Vec<Line>> {
    let file = |part: &str| shared(&format!("validation/dm-smr/ref/{name}.{part}.csv.zst"));
    Some(lines(&rows(&file("input")?), &rows(&file("latency")?)))
}

/// A file of our own.
fn own(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

fn lines(asked: &[Vec<String>], answers: &[Vec<String>]) -> Vec<Line> {
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let line = |(q, a): (&Vec<String>, &Vec<String>)| Line {
        op: if q[1] == "R" { HostOp::Read } else { HostOp::Write },
        lba: number(&q[2]) as u64,
        blocks: number(&q[3]) as u64,
        total: number(&a[8]),
        clean: number(&a[12]),
        journal: number(&a[13]),
    };
    asked.iter().zip(answers).map(line).collect()
}

/// A drive that serves one request at a time.
struct Served {
    layer: Box<dyn TranslationLayer>,
    mechanics: Mechanics,
    plan: Plan,
    now: SimTime,
}

/// What a request took, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    total: f64,
    clean: f64,
    journal: f64,
}

impl Served {
    fn new(drive: &str, layer: &str) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
        let drive = load(drive, read).unwrap_or_else(|e| panic!("{e}"));
        let context = BuildContext::new(Arc::new(drive));
        let built = smrlab_stl::build(layer, &context).unwrap_or_else(|e| panic!("{e}"));
        let mechanics = built.drive.mechanics(Some(Model::Full)).unwrap_or_else(|e| panic!("{e}"));
        Self { layer: built.layer, mechanics, plan: Plan::new(false, false), now: SimTime::ZERO }
    }

    fn carry_out(&mut self) -> Took {
        let start = self.now;
        let mut took = Took::default();
        for step in self.plan.walk() {
            let before = self.now;
            let cause = match step {
                Step::Op(id, op) => {
                    self.now = match self.plan.stated(id) {
                        Some(time) => self.now + time,
                        None => self.mechanics.service(self.now, op.dir, op.pba, op.blocks),
                    };
                    // Copies in the scratch band are part of cleaning; the journal is time only.
                    if op.cause == Cause::Host { Cause::Host } else { Cause::Clean }
                }
                Step::Pause(pause) => {
                    self.now += pause.time;
                    pause.cause
                }
                _ => continue,
            };
            let ms = (self.now - before).as_ms_f64();
            match cause {
                Cause::Clean => took.clean += ms,
                Cause::Journal => took.journal += ms,
                _ => {}
            }
        }
        took.total = (self.now - start).as_ms_f64();
        took
    }

    fn serve(&mut self, op: HostOp, lba: u64, blocks: u64) -> Took {
        let request = HostRequest { fua: true, ..HostRequest::new(op, Lba(lba), Blocks(blocks)) };
        self.plan.clear();
        self.layer.submit(self.now, &request, &mut self.plan);
        self.carry_out()
    }

    fn counter(&self, name: &str) -> u64 {
        smrlab_stl::counted(&*self.layer).get(name).unwrap()
    }

    /// Cleans until nothing is left to do; seconds and bands.
    fn idle(&mut self) -> (f64, u64) {
        let (start, before) = (self.now, self.counter("bands_cleaned"));
        while self.layer.background_after().is_some() {
            self.plan.clear();
            self.layer.background(self.now, &mut self.plan);
            self.carry_out();
            self.layer.background_end(StepEnd::Done);
        }
        ((self.now - start).as_secs_f64(), self.counter("bands_cleaned") - before)
    }
}

fn model_drive() -> Served {
    Served::new("seagate-st5000as0011", "persistent-cache")
}

/// As the reference reads: each request on its own.
fn compared_drive() -> Served {
    Served::new("seagate-st5000as0011", "persistent-cache,readahead=off")
}

fn replay(lines: &[Line]) -> Vec<Took> {
    replay_on(&mut model_drive(), lines)
}

fn replay_on(drive: &mut Served, lines: &[Line]) -> Vec<Took> {
    lines.iter().map(|l| drive.serve(l.op, l.lba, l.blocks)).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0u32, 0.0), |(n, sum), v| (n + 1, sum + v));
    sum / f64::from(n.max(1))
}

fn near(what: &str, got: f64, want: f64, tolerance: f64) {
    println!("{what}: {got:.4}, expected {want:.4} within {:.0} %", tolerance * 100.0);
    assert!((got / want - 1.0).abs() <= tolerance, "{what}: {got:.4} instead of {want:.4}");
}

/// RMS distance of 10 000 quantiles.
fn demerit(a: &[f64], b: &[f64]) -> f64 {
    let sorted = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(a), sorted(b));
    let at = |v: &[f64], p: f64| v[((p * v.len() as f64) as usize).min(v.len() - 1)];
    let squares =
        (0..10_000).map(|i| (f64::from(i) + 0.5) / 10_000.0).map(|p| (at(&a, p) - at(&b, p)).powi(2));
    mean(squares).sqrt()
}

/// Part of a workload's requests, with what they took here and there.
#[derive(Default)]
struct Part {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Part {
    /// Demerit as a share of the reference's mean, and by how much the mean is off, in percent.
    fn compared(&self) -> (f64, f64) {
        let (ours, theirs) = (mean(self.ours.iter().copied()), mean(self.theirs.iter().copied()));
        (100.0 * demerit(&self.ours, &self.theirs) / theirs, 100.0 * (ours / theirs - 1.0))
    }
}

/// Holds answers against the reference's: all of them, and reads and writes apart in each phase: while the map has room, while requests
/// wait for single sub-steps, and from the first one on that waits for more (0.7 s or longer).
fn judge(name: &str, lines: &[Line], took: &[Took]) {
    let first = |found: &dyn Fn(&Line) -> bool| lines.iter().position(found).unwrap_or(lines.len());
    let (cleaning, pressure) = (first(&|l| l.clean > 0.0), first(&|l| l.clean > 700.0));
    let phase = |i: usize| {
        if i < cleaning {
            "room"
        } else if i < pressure {
            "cleaning"
        } else {
            "pressure"
        }
    };
    let mut parts = std::collections::BTreeMap::<(HostOp, &str), Part>::new();
    let mut all = Part::default();
    for (i, (l, t)) in lines.iter().zip(took).enumerate() {
        for part in [&mut all, parts.entry((l.op, phase(i))).or_default()] {
            part.ours.push(t.total);
            part.theirs.push(l.total);
        }
    }
    let (rms, off) = all.compared();
    println!("{name}: {} requests: demerit {rms:.2} % of the mean, mean {off:+.2} %", lines.len());
    assert!(rms <= 3.0 && off.abs() <= 3.0, "{name}: {rms:.2} and {off:.2} %");
    for ((op, phase), part) in &parts {
        let ((rms, off), n) = (part.compared(), part.ours.len());
        let (ours, theirs) = (mean(part.ours.iter().copied()), mean(part.theirs.iter().copied()));
        println!(
            "{name}: {op:?} {phase}: {n} requests, {ours:.3} and {theirs:.3} ms: {off:+.2} %, demerit {rms:.2} %"
        );
        assert!(n < 500 || off.abs() <= 3.0, "{name}: {op:?}, {phase}: {off:.2} %");
    }
}

#[test]
fn latencies_are_distributed_as_the_repaired_models() {
    for name in WORKLOADS {
        let Some(lines) = workload(name) else { return };
        judge(name, &lines, &replay_on(&mut compared_drive(), &lines));
    }
}

/// Cleaning and journal of each request are those of the reference. In w1 its scratch log begins in the middle of a track, so that its
/// first band has a sub-step more and each later one comes a request earlier.
#[test]
fn cleaning_and_journal_agree_line_by_line() {
    for (name, share) in [
        ("w1_randwrite", 0.0),
        ("w3_mixed7030", 1.0),
        ("w4_seqwrite", 1.0),
        ("w5_randwrite_wide", 0.99),
        ("w6_hotcold_inner", 0.99),
    ] {
        let Some(lines) = workload(name) else { return };
        let took = replay(&lines);
        let journal = took.iter().zip(&lines).filter(|(t, l)| (t.journal - l.journal).abs() > 0.001).count();
        assert_eq!(journal, 0, "{name}: lines with another journal");
        let slow = lines.iter().filter(|l| l.clean > 0.0).count();
        let same = took
            .iter()
            .zip(&lines)
            .filter(|(t, l)| l.clean > 0.0 && (t.clean - l.clean).abs() < 0.02)
            .count();
        let (ours, theirs) =
            (took.iter().map(|t| t.clean).sum::<f64>(), lines.iter().map(|l| l.clean).sum::<f64>());
        println!(
            "{name}: {same} of {slow} lines with cleaning are equal; {ours:.0} and {theirs:.0} ms of it"
        );
        assert!(same as f64 >= share * slow as f64, "{name}: {same} of {slow}");
        if theirs > 0.0 {
            near(&format!("{name}: cleaning in all, ms"), ours, theirs, 0.01);
        }
        let first = |clean: Vec<f64>| clean.iter().position(|c| *c > 0.0);
        let (ours, theirs) =
            (took.iter().map(|t| t.clean).collect(), lines.iter().map(|l| l.clean).collect());
        assert_eq!(first(ours), first(theirs), "{name}: the first request that waits for cleaning");
    }
}

/// Writes with room, journal stalls, and four bands that go home in rounds of two, one sub-step a request; reads of a clean drive. Each
/// line is the sum of its parts by sheet 005, 1.4 to 1.7, with the true angle at 6000 rpm (point 6.6 of the sheet).
#[test]
fn a_small_drives_answers_are_those_of_the_rules_line_by_line() {
    let drive = own("drive-managed.toml").to_string_lossy().into_owned();
    for name in ["own_writes", "own_reads"] {
        let [asked, answers] = ["input", "latency"].map(|part| own(&format!("{name}.{part}.csv")));
        let lines = lines(&rows(&asked), &rows(&answers));
        assert!(lines.len() >= 10, "{name}: {} lines", lines.len());
        let took = replay_on(&mut Served::new(&drive, "persistent-cache"), &lines);
        for (i, (t, l)) in took.iter().zip(&lines).enumerate() {
            let parts = [(t.total, l.total), (t.clean, l.clean), (t.journal, l.journal)];
            assert!(
                parts.iter().all(|(ours, rule)| (ours - rule).abs() < 1e-4),
                "{name}, line {i}: {parts:?}"
            );
        }
        // The same through `smrlab validate`.
        let (doc, _) =
            validate(&drive, &asked.to_string_lossy(), "persistent-cache", Reference::Repaired).unwrap();
        assert!(doc["demerit_ms"].as_f64().unwrap() < 1e-4, "{name}: {doc}");
    }
}
