//! A small mixed trace, run with both logs, and what the tests of results ask of it.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use smrlab_sim::table::{Column, Table};
use smrlab_sim::{Control, RunResult, Spec, run};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) mod shared;

pub(crate) const ADJUSTED: u64 = 4;

/// A request of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Asked {
    pub at: u64,
    pub write: bool,
    pub lba: u64,
    pub blocks: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub id: usize,
    pub arrival: u64,
    pub start: u64,
    pub completion: u64,
    /// Where the time from start to completion went: seek, rotation, transfer, cleaning, other.
    pub spent: [u64; 5],
    /// Why it was not done; empty where it was.
    pub refusal: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub disk: i64,
    pub request: i64,
    pub start: u64,
    pub end: u64,
    pub write: bool,
    pub cause: String,
    pub pba: u64,
    pub blocks: u64,
}

/// Reads and writes of 1 to 8 blocks, half of them within 200 blocks, the others within `span`, from `from` ns on: pauses, bursts and updates.
fn trace(span: u64, from: u64) -> Vec<Asked> {
    let (mut rng, mut at) = (smrlab_units::rng::Rng::new(7), from);
    let mut draw = |n: u64| rng.below(n);
    (0..400)
        .map(|i| {
            at += match i % 40 {
                0 => 400_000_000,
                1..=6 => 1_000_000,
                _ => (1 + draw(60)) * 1_000_000,
            };
            let span = if draw(2) == 0 { 200 } else { span };
            Asked { at, write: draw(3) > 0, lba: draw(span), blocks: 1 + draw(8) }
        })
        .collect()
}

/// A run, and which figures of its result were looked at.
pub(crate) struct Done {
    pub asked: Vec<Asked>,
    pub result: RunResult,
    pub requests: Vec<Served>,
    pub media: Vec<Op>,
    /// Every block of the host's was written before.
    pub prefilled: bool,
    /// The layer waits without a media operation, which no log has.
    pub pauses: bool,
    /// Whole units of a transfer and one more are counted, not units that were begun.
    pub one_more: bool,
    seen: RefCell<BTreeSet<String>>,
}

pub(crate) fn rows(dir: &Path, name: &str) -> Vec<Vec<Field>> {
    let file = std::fs::File::open(dir.join(name)).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let fields = reader.metadata().file_metadata().schema().get_fields();
    explained(name.trim_end_matches(".parquet"), fields.iter().map(|f| f.name()));
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|r| r.unwrap().get_column_iter().map(|(_, f)| f.clone()).collect()).collect()
}

/// `smrlab explain` knows the columns of a table, these and no others.
fn explained<'a>(table: &str, mut columns: impl Iterator<Item = &'a str>) {
    if table == "members" {
        assert_eq!(columns.next(), Some("disk"));
        return explained("timeline", columns);
    }
    let file = format!("{table}.parquet.");
    let known = smrlab_sim::keys::all().filter_map(|k| k.path.strip_prefix(&file));
    assert_eq!(known.collect::<Vec<_>>(), columns.collect::<Vec<_>>(), "crates/sim/src/columns.rs: {table}");
}

fn int(field: &Field) -> i64 {
    match field {
        Field::Long(n) => *n,
        other => panic!("{other:?} is no whole number"),
    }
}

fn text(field: &Field) -> &str {
    match field {
        Field::Str(s) => s,
        other => panic!("{other:?} is no text"),
    }
}

/// A folder of this run's own, of whatever test.
pub(crate) fn scratch() -> PathBuf {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("smrlab-golden-{}-{run}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs it on the small drive, from 1000 s on, with more lines of the specification.
pub(crate) fn go(layer: &str, span: u64, more: &str) -> Done {
    go_from(1_000_000_000_000, layer, span, more)
}

/// The same from another time on, in ns; the first request comes 0.4 s later.
pub(crate) fn go_from(from: u64, layer: &str, span: u64, more: &str) -> Done {
    let (dir, asked) = (scratch(), trace(span, from));
    let line = |a: &Asked| {
        let op = if a.write { 'W' } else { 'R' };
        format!("{}.{:09},{op},{},{}\n", a.at / 1_000_000_000, a.at % 1_000_000_000, a.lba, a.blocks)
    };
    let path = dir.join("trace.csv");
    std::fs::write(&path, asked.iter().map(line).collect::<String>()).unwrap();
    let spec = format!(
        "trace = '{}:csv,columns=time:s;op;lba;size:blk'\ndrive = 'tiny'\nmechanics = 'full'\nlayer = '{layer}'\n\
         requests = true\nmedia_log = true\nadjusted_blocks = {ADJUSTED}\n{more}\n",
        path.display()
    );
    let result = run(&Spec::from_toml(&spec).unwrap(), &Control::new(), Some(&dir)).unwrap();
    for table in &result.tables {
        explained(table.name, table.columns.iter().map(|c| c.0));
    }
    let requests = rows(&dir, "requests.parquet");
    for r in &requests {
        let a = asked[int(&r[0]) as usize];
        let logged = Asked {
            at: int(&r[1]) as u64,
            write: text(&r[4]) == "write",
            lba: int(&r[5]) as u64,
            blocks: int(&r[6]) as u64,
        };
        assert_eq!((logged, int(&r[7])), (a, 0), "{layer}: the log has the request as it was asked");
    }
    let served = |r: &Vec<Field>| Served {
        id: int(&r[0]) as usize,
        arrival: int(&r[1]) as u64,
        start: int(&r[2]) as u64,
        completion: int(&r[3]) as u64,
        spent: std::array::from_fn(|i| int(&r[8 + i]) as u64),
        refusal: text(&r[13]).to_owned(),
    };
    let media = rows(&dir, "media.parquet");
    let op = |(i, r): (usize, &Vec<Field>)| {
        assert_eq!(int(&r[0]), i as i64, "{layer}: operations are numbered");
        Op {
            disk: int(&r[2]),
            request: int(&r[1]),
            start: int(&r[3]) as u64,
            end: int(&r[4]) as u64,
            write: text(&r[5]) == "write",
            cause: text(&r[6]).to_owned(),
            pba: int(&r[7]) as u64,
            blocks: int(&r[8]) as u64,
        }
    };
    let (requests, media) =
        (requests.iter().map(served).collect(), media.iter().enumerate().map(op).collect());
    std::fs::remove_dir_all(&dir).unwrap();
    let (prefilled, pauses) =
        (more.contains("prefill"), ["persistent-cache", "host-aware"].iter().any(|l| layer.starts_with(l)));
    let one_more = more.contains("floor+1");
    Done { asked, result, requests, media, prefilled, pauses, one_more, seen: RefCell::default() }
}

impl Done {
    pub(crate) fn get(&self, path: &str) -> f64 {
        self.seen.borrow_mut().insert(path.to_owned());
        let v = self.result.json.pointer(path).and_then(Value::as_f64);
        v.unwrap_or_else(|| panic!("no number at {path} in {:#}", self.result.json))
    }

    /// The figure at `path` is `want` within the rounding of floating point.
    pub(crate) fn is(&self, path: &str, want: f64) {
        let got = self.get(path);
        assert!((got - want).abs() <= want.abs() * 1e-9 + 1e-12, "{path} is {got}, by hand {want}");
    }

    pub(crate) fn absent(&self, path: &str) {
        assert!(self.result.json.pointer(path).is_none(), "{path} does not apply");
    }

    pub(crate) fn host(&self, write: bool) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(move |a| a.write == write)
    }

    pub(crate) fn ops_of(&self, id: usize) -> impl Iterator<Item = &Op> {
        self.media.iter().filter(move |o| o.request == id as i64)
    }

    pub(crate) fn first_arrival(&self) -> u64 {
        self.asked[0].at
    }

    /// Seconds of work in idle time before the first request, after a prefill: no window has them.
    pub(crate) fn before_the_first(&self) -> f64 {
        let before = |t: u64| t.min(self.first_arrival());
        self.media.iter().map(|o| before(o.end) - before(o.start)).sum::<u64>() as f64 / 1e9
    }

    pub(crate) fn last_completion(&self) -> u64 {
        self.requests.iter().map(|r| r.completion).max().unwrap()
    }

    /// Numbers of the result that no test has asked for.
    pub(crate) fn unseen(&self) -> Vec<String> {
        let mut all = Vec::new();
        leaves(&self.result.json, "", &mut all);
        all.retain(|path| !self.seen.borrow().contains(path));
        all
    }

    /// Units of a transfer.
    pub(crate) fn adjusted(&self, blocks: u64) -> u64 {
        match self.one_more {
            true if blocks >= ADJUSTED => blocks / ADJUSTED + 1,
            _ => blocks.div_ceil(ADJUSTED),
        }
    }

    /// The width of the timeline's windows in ns.
    pub(crate) fn window(&self) -> u64 {
        (real(self.table("timeline"), "end_s")[0].unwrap() * 1e9).round() as u64
    }

    pub(crate) fn table(&self, name: &str) -> &Table {
        self.result.tables.iter().find(|t| t.name == name).unwrap()
    }
}

fn leaves(value: &Value, path: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(o) => o.iter().for_each(|(k, v)| leaves(v, &format!("{path}/{k}"), out)),
        Value::Number(_) => out.push(path.to_owned()),
        _ => {}
    }
}

/// A column of numbers.
pub(crate) fn real(t: &Table, name: &str) -> Vec<Option<f64>> {
    match &t.columns.iter().find(|c| c.0 == name).unwrap_or_else(|| panic!("no column {name}")).1 {
        Column::Int(v) => v.iter().map(|n| Some(*n as f64)).collect(),
        Column::Real(v) => v.iter().map(|x| Some(*x)).collect(),
        Column::Maybe(v) => v.clone(),
        Column::Text(_) => panic!("{name} is text"),
    }
}
