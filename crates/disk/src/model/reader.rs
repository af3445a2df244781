//! Reads a drive file field by field: unknown fields are refused, every number has unit, kind and source, and all faults
//! are collected with their place.

use smrlab_units::SimTime;
use smrlab_units::problems::Problems;
use smrlab_units::spec::hint;
use std::cell::RefCell;
use toml::{Table, Value};

/// Where a number of a drive file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The field, such as `mechanics.rpm`.
    pub field: String,
    /// Its value and unit as in the file.
    pub value: String,
    /// `spec`, `measured`, `fitted` or `assumed`.
    pub kind: String,
    /// Where the value was found, or why it is assumed.
    pub source: String,
}

/// What kinds of number there are.
const KINDS: [&str; 4] = ["spec", "measured", "fitted", "assumed"];

/// Units of a number, each with its factor.
pub(super) type Units = &'static [(&'static str, f64)];

/// Times, in nanoseconds.
pub(super) const TIME: Units = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// Angles, in revolutions.
pub(super) const ANGLE: Units = &[("rev", 1.0), ("deg", 1.0 / 360.0)];
/// Rates, in bytes a second.
pub(super) const RATE: Units = &[("B/s", 1.0), ("MB/s", 1e6)];
/// Sizes, in bytes.
pub(super) const SIZE: Units =
    &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("GB", 1e9)];
/// Numbers of packets, bands, map entries, or of anything.
pub(super) const COUNT: Units = &[("1", 1.0), ("packets", 1.0), ("bands", 1.0), ("entries", 1.0)];
/// Yes or no, as 1 or 0.
pub(super) const SWITCH: Units = &[("on", 1.0)];
/// Lengths in blocks.
pub(super) const BLOCKS: Units = &[("blk", 1.0)];
/// Shares, in thousandths.
pub(super) const SHARE: Units = &[("1", 1000.0)];
/// Numbers of tracks.
pub(super) const TRACKS: Units = &[("tracks", 1.0)];
/// Numbers of cylinders.
pub(super) const CYLINDERS: Units = &[("cylinders", 1.0)];
/// Numbers of surfaces.
pub(super) const SURFACES: Units = &[("surfaces", 1.0)];
/// Revolutions.
pub(super) const RPM: Units = &[("1/min", 1.0)];

/// The time of so many nanoseconds, to the nearest whole one.
pub(super) fn time(ns: f64) -> SimTime {
    SimTime(ns.round() as u64)
}

/// What is shared by the readers of all tables of a file.
#[derive(Default)]
pub(super) struct Log {
    pub faults: RefCell<Problems>,
    pub provenance: RefCell<Vec<Provenance>>,
    /// What was asked for: place, what is accepted, and whether it has to be there.
    pub asked: RefCell<Vec<(String, String, bool)>>,
}

/// The source of a number of which the file says nothing else.
pub(super) const NOT_STATED: &str = "not stated in the file";

/// One table of the file.
pub(super) struct Reader<'a> {
    table: &'a Table,
    place: String,
    log: &'a Log,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: &'a Table, place: &str, log: &'a Log) -> Self {
        Self { table, place: place.to_owned(), log, known: RefCell::default() }
    }

    pub(super) fn at(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    pub(super) fn fault(&self, key: &str, problem: impl ToString) {
        self.log.faults.borrow_mut().add(self.at(key), problem);
    }

    pub(super) fn get(&self, key: &'static str) -> Option<&'a Value> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&key) {
            known.push(key);
        }
        self.table.get(key)
    }

    pub(super) fn asked(&self, key: &str, what: impl Into<String>, needed: bool) {
        self.log.asked.borrow_mut().push((self.at(key), what.into(), needed));
    }

    fn need(&self, key: &'static str, what: &str) -> Option<&'a Value> {
        let v = self.get(key);
        if v.is_none() {
            self.fault(key, format!("missing: {what}"));
        }
        v
    }

    pub(super) fn text(&self, key: &'static str) -> Option<&'a str> {
        self.asked(key, "a text", true);
        let v = self.need(key, "a text")?;
        let t = v.as_str().filter(|t| !t.is_empty());
        if t.is_none() {
            self.fault(key, format!("{v} is not accepted: a text that is not empty"));
        }
        t
    }

    pub(super) fn choice(&self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        self.asked(key, words.join(", "), true);
        self.word(key, words)
    }

    /// As [`choice`](Self::choice), for a field that may be left out.
    pub(super) fn opt_choice(&self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        self.asked(key, words.join(", "), false);
        self.get(key)?;
        self.word(key, words)
    }

    fn word(&self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let v = self.text(key)?;
        let found = words.iter().find(|w| **w == v).copied();
        if found.is_none() {
            let hint = hint(v, words.iter().copied());
            self.fault(key, format!("'{v}' is not accepted: one of {}{hint}", words.join(", ")));
        }
        found
    }

    /// A sub-table that has to be there.
    pub(super) fn table(&self, key: &'static str) -> Option<Reader<'a>> {
        self.asked(key, "a table", true);
        let v = self.need(key, "a table")?;
        self.as_table(key, v)
    }

    pub(super) fn opt_table(&self, key: &'static str) -> Option<Reader<'a>> {
        self.asked(key, "a table", false);
        let v = self.get(key)?;
        self.as_table(key, v)
    }

    fn as_table(&self, key: &str, v: &'a Value) -> Option<Reader<'a>> {
        let t = v.as_table();
        if t.is_none() {
            self.fault(key, format!("{v} is not accepted: a table"));
        }
        Some(Reader::new(t?, &self.at(key), self.log))
    }

    /// A number with unit, kind and source, in the base of `units`.
    pub(super) fn number(&self, key: &'static str, units: Units) -> Option<f64> {
        self.asked(key, accepts(units), true);
        self.need(key, &form(units))?;
        self.opt_number(key, units)
    }

    /// As [`number`](Self::number), for a field that may be left out.
    pub(super) fn opt_number(&self, key: &'static str, units: Units) -> Option<f64> {
        self.asked(key, accepts(units), false);
        let v = self.get(key)?;
        let Some(t) = v.as_table() else {
            let Some((value, unit, factor)) = plain(v, units) else {
                self.fault(key, format!("{v} is not accepted: {}", form(units)));
                return None;
            };
            let r = Reader { place: self.at(key), ..Reader::new(self.table, "", self.log) };
            r.note(format!("{value} {unit}"), "assumed", NOT_STATED);
            return Some(value * factor);
        };
        let r = Reader::new(t, &self.at(key), self.log);
        let value = r.need("value", "a number").and_then(|v| {
            let n = v.as_float().or(v.as_integer().map(|i| i as f64)).filter(|n| n.is_finite() && *n >= 0.0);
            if n.is_none() {
                r.fault("value", format!("{v} is not accepted: a number from 0"));
            }
            n
        });
        let words: Vec<&'static str> = units.iter().map(|u| u.0).collect();
        let unit = r.choice("unit", &words);
        r.provenance(value.map(|v| v.to_string()), unit.unwrap_or_default());
        r.finish();
        let factor = units.iter().find(|u| Some(u.0) == unit)?.1;
        Some(value? * factor)
    }

    /// A [`number`](Self::number) of things: half a surface is a mistake, not one less.
    pub(super) fn count(&self, key: &'static str, units: Units) -> Option<u64> {
        self.whole(key, self.number(key, units)?)
    }

    /// As [`count`](Self::count), for a field that may be left out.
    pub(super) fn opt_count(&self, key: &'static str, units: Units) -> Option<u64> {
        self.whole(key, self.opt_number(key, units)?)
    }

    /// A [`count`](Self::count) of 32 bits. How many are accepted is looked at by whoever checks the drive.
    pub(super) fn count32(&self, key: &'static str, units: Units) -> Option<u32> {
        let n = self.count(key, units)?;
        let narrow = u32::try_from(n).ok();
        if narrow.is_none() {
            self.fault(key, format!("{n} is not accepted: a whole number below 2^32"));
        }
        narrow
    }

    fn whole(&self, key: &str, number: f64) -> Option<u64> {
        if number.fract() != 0.0 {
            self.fault(key, format!("{number} is not accepted: a whole number"));
            return None;
        }
        Some(number as u64)
    }

    /// Notes kind and source of this table's numbers.
    pub(super) fn provenance(&self, value: Option<String>, unit: &str) {
        let (kind, source) = if self.get("kind").is_none() && self.get("source").is_none() {
            (Some("assumed"), Some(NOT_STATED))
        } else {
            (self.choice("kind", &KINDS), self.text("source"))
        };
        if let (Some(value), Some(kind), Some(source)) = (value, kind, source) {
            self.note(format!("{value} {unit}"), kind, source);
        }
    }

    fn note(&self, value: String, kind: &str, source: &str) {
        self.log.provenance.borrow_mut().push(Provenance {
            field: self.place.clone(),
            value: value.trim_end().to_owned(),
            kind: kind.to_owned(),
            source: source.to_owned(),
        });
    }

    /// Refuses the fields that nobody asked for.
    pub(super) fn finish(self) {
        let known = self.known.borrow();
        for key in self.table.keys().filter(|k| !known.contains(&k.as_str())) {
            let hint = hint(key, known.iter().copied());
            self.fault(key, format!("unknown field{hint}; known: {}", known.join(", ")));
        }
    }
}

/// A number that stands alone: `7200`, or with its unit, `"0.8 ms"`; a bare time would leave its unit open.
fn plain(v: &Value, units: Units) -> Option<(f64, &'static str, f64)> {
    let (number, unit) = match v {
        Value::Integer(n) => (*n as f64, ""),
        Value::Float(x) => (*x, ""),
        Value::String(text) => {
            let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
            (text[..split].parse().ok()?, text[split..].trim())
        }
        _ => return None,
    };
    let open = unit.is_empty() && units == TIME && number != 0.0;
    let (name, factor) = units.iter().find(|u| u.0 == unit).or(units.first().filter(|_| unit.is_empty()))?;
    (number.is_finite() && number >= 0.0 && !open).then_some((number, *name, *factor))
}

/// What a number accepts, for the page of drive files.
fn accepts(units: Units) -> String {
    units.iter().map(|u| if u.0 == "1" { "a number" } else { u.0 }).collect::<Vec<_>>().join(", ")
}

fn form(units: Units) -> String {
    let words: Vec<_> = units.iter().map(|u| u.0).collect();
    let alone = match words[0] {
        _ if units == TIME => "\"1 ms\"".to_owned(),
        "1" => "1".to_owned(),
        unit => format!("\"1 {unit}\""),
    };
    format!(
        "a number as {alone} (which counts as assumed), or as {{ value = 1, unit = \"{}\", kind = \"{}\", source = \"...\" }}",
        words.join("|"),
        KINDS.join("|")
    )
}

/// Rows of whole numbers, `names` of which the first `needed` must be there.
pub(super) fn rows(r: &Reader<'_>, names: &[&str], needed: usize) -> Option<Vec<Vec<u64>>> {
    table(r, (names, needed), |_, v| v.as_integer().and_then(|n| u64::try_from(n).ok()))
}

/// The same of cells that `cell` reads, which is told the column.
pub(super) fn table<T>(
    r: &Reader<'_>,
    (names, needed): (&[&str], usize),
    cell: impl Fn(usize, &Value) -> Option<T>,
) -> Option<Vec<Vec<T>>> {
    let shape = || format!("rows of whole numbers [{}], the first {needed} needed", names.join(", "));
    r.asked("list", "rows of whole numbers", true);
    let Some(list) = r.get("list").and_then(Value::as_array) else {
        r.fault("list", format!("missing: {}", shape()));
        return None;
    };
    let rows: Vec<Vec<T>> = list
        .iter()
        .enumerate()
        .filter_map(|(i, row)| {
            let numbers = row
                .as_array()
                .and_then(|row| row.iter().enumerate().map(|(i, v)| cell(i, v)).collect::<Option<Vec<_>>>());
            let numbers = numbers.filter(|n| (needed..=names.len()).contains(&n.len()));
            if numbers.is_none() {
                r.fault(&format!("list[{i}]"), format!("{row} is not accepted: {}", shape()));
            }
            numbers
        })
        .collect();
    (rows.len() == list.len()).then_some(rows)
}
