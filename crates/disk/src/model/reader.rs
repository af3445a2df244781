//! Reads a drive file field by field: unknown fields are refused, every number has unit, kind and source, and all faults
//! are collected with their place.

use super::form::{Form, Number, Rows, TIMES, Units};
use smrlab_units::problems::Problems;
use smrlab_units::spec::hint;
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

/// A field, for the page of drive files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDoc {
    /// Where it stands, such as `mechanics.rpm`.
    pub path: String,
    /// Units or words.
    pub accepts: String,
    /// It has to be there.
    pub needed: bool,
    /// What it is.
    pub doc: &'static str,
}

/// What kinds of number there are.
const KINDS: [&str; 4] = ["spec", "measured", "fitted", "assumed"];

/// The source of a number of which the file says nothing else.
pub(super) const NOT_STATED: &str = "not stated in the file";

/// A table of the file, and what was asked for in it.
struct Scope<'a> {
    table: &'a Table,
    place: String,
    known: Vec<&'static str>,
}

/// Reads one file.
pub(super) struct Reader<'a> {
    scope: Scope<'a>,
    doc: &'static str,
    pub faults: Problems,
    pub provenance: Vec<Provenance>,
    /// What was asked for, in this order.
    pub asked: Vec<FieldDoc>,
}

impl<'a> Reader<'a> {
    /// Reads `table` with `fill`.
    pub(super) fn read(table: &'a Table, fill: impl FnOnce(&mut Self)) -> Self {
        let scope = Scope { table, place: String::new(), known: Vec::new() };
        let (faults, provenance, asked) = Default::default();
        let mut reader = Self { scope, doc: "", faults, provenance, asked };
        fill(&mut reader);
        reader.refuse_others();
        reader
    }

    fn at(&self, key: &str) -> String {
        let place = &self.scope.place;
        if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
    }

    fn ask(&mut self, key: &str, accepts: impl Into<String>, needed: bool) {
        let doc = std::mem::take(&mut self.doc);
        self.asked.push(FieldDoc { path: self.at(key), accepts: accepts.into(), needed, doc });
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        if !self.scope.known.contains(&key) {
            self.scope.known.push(key);
        }
        self.scope.table.get(key)
    }

    fn need(&mut self, key: &'static str, what: &str) -> Option<&'a Value> {
        let v = self.get(key);
        if v.is_none() {
            self.fault(key, &format!("missing: {what}"));
        }
        v
    }

    fn some_text(&mut self, key: &'static str) -> Option<&'a str> {
        let v = self.need(key, "a text")?;
        let t = v.as_str().filter(|t| !t.is_empty());
        if t.is_none() {
            self.fault(key, &format!("{v} is not accepted: a text that is not empty"));
        }
        t
    }

    fn some_word(&mut self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let v = self.some_text(key)?;
        let found = words.iter().find(|w| **w == v).copied();
        if found.is_none() {
            let hint = hint(v, words.iter().copied());
            self.fault(key, &format!("'{v}' is not accepted: one of {}{hint}", words.join(", ")));
        }
        found
    }

    /// Goes into a table of this one.
    fn within<T>(&mut self, key: &str, table: &'a Table, fill: impl FnOnce(&mut Self) -> T) -> T {
        let inner = Scope { table, place: self.at(key), known: Vec::new() };
        let outer = std::mem::replace(&mut self.scope, inner);
        let filled = fill(self);
        self.refuse_others();
        self.scope = outer;
        filled
    }

    fn fill(&mut self, key: &str, v: &'a Value, fill: impl FnOnce(&mut Self)) {
        match v.as_table() {
            Some(table) => self.within(key, table, fill),
            None => self.fault(key, &format!("{v} is not accepted: a table")),
        }
    }

    /// A number with unit, kind and source, in the first of `units`.
    fn amount(&mut self, key: &'static str, v: &'a Value, units: Units) -> Option<f64> {
        let Some(table) = v.as_table() else {
            let Some((value, unit, factor)) = plain(v, units) else {
                self.fault(key, &format!("{v} is not accepted: {}", form(units)));
                return None;
            };
            self.note(self.at(key), format!("{value} {unit}"), "assumed", NOT_STATED);
            return Some(value * factor);
        };
        self.within(key, table, |r| {
            let value = r.need("value", "a number").and_then(|v| {
                let n =
                    v.as_float().or(v.as_integer().map(|i| i as f64)).filter(|n| n.is_finite() && *n >= 0.0);
                if n.is_none() {
                    r.fault("value", &format!("{v} is not accepted: a number from 0"));
                }
                n
            });
            let words: Vec<&'static str> = units.iter().map(|u| u.0).collect();
            let unit = r.some_word("unit", &words);
            r.note_table(value.map(|v| v.to_string()), unit.unwrap_or_default());
            let factor = units.iter().find(|u| Some(u.0) == unit)?.1;
            Some(value? * factor)
        })
    }

    /// Notes kind and source of this table's numbers.
    fn note_table(&mut self, value: Option<String>, unit: &str) {
        let (kind, source) = if self.get("kind").is_none() && self.get("source").is_none() {
            (Some("assumed"), Some(NOT_STATED))
        } else {
            (self.some_word("kind", &KINDS), self.some_text("source"))
        };
        if let (Some(value), Some(kind), Some(source)) = (value, kind, source) {
            self.note(self.scope.place.clone(), format!("{value} {unit}"), kind, source);
        }
    }

    fn note(&mut self, field: String, value: String, kind: &str, source: &str) {
        let value = value.trim_end().to_owned();
        self.provenance.push(Provenance { field, value, kind: kind.to_owned(), source: source.to_owned() });
    }

    /// Refuses the fields that nobody asked for.
    fn refuse_others(&mut self) {
        let known = std::mem::take(&mut self.scope.known);
        for key in self.scope.table.keys().filter(|k| !known.contains(&k.as_str())) {
            let hint = hint(key, known.iter().copied());
            self.fault(key, &format!("unknown field{hint}; known: {}", known.join(", ")));
        }
    }

    /// The rows of this table's list.
    fn list<T>(&mut self, of: &Rows<T>) -> Option<Vec<Vec<f64>>> {
        let (columns, needed) = (of.columns, of.needed);
        let shape = || format!("rows of whole numbers [{}], the first {needed} needed", columns.join(", "));
        let Some(list) = self.get("list").and_then(Value::as_array) else {
            self.fault("list", &format!("missing: {}", shape()));
            return None;
        };
        let cell = |(i, v): (usize, &Value)| {
            let whole = v.as_integer().filter(|n| *n >= 0).map(|n| n as f64);
            whole.or_else(|| v.as_float().filter(|x| i >= of.real && *x >= 0.0))
        };
        let mut rows = Vec::new();
        for (i, row) in list.iter().enumerate() {
            let cells =
                row.as_array().and_then(|row| row.iter().enumerate().map(cell).collect::<Option<Vec<_>>>());
            match cells.filter(|cells| (needed..=columns.len()).contains(&cells.len())) {
                Some(cells) => rows.push(cells),
                None => self.fault(&format!("list[{i}]"), &format!("{row} is not accepted: {}", shape())),
            }
        }
        let mut right = rows.len() == list.len();
        for (i, row) in rows.iter().enumerate().filter(|_| right).collect::<Vec<_>>() {
            let narrow = row.iter().enumerate().filter(|(column, _)| !of.wide.contains(column));
            for (column, n) in narrow.filter(|(_, n)| **n > f64::from(u32::MAX)) {
                let problem = format!("{n} {} is not accepted: a whole number below 2^32", columns[column]);
                self.fault(&format!("list[{i}]"), &problem);
                right = false;
            }
        }
        right.then_some(rows)
    }
}

impl Form for Reader<'_> {
    fn doc(&mut self, doc: &'static str) -> &mut Self {
        self.doc = doc;
        self
    }

    fn schema(&mut self) {
        self.ask("schema", "1", true);
        if self.get("schema").and_then(Value::as_integer) != Some(1) {
            self.fault("schema", "not accepted: 1 (the version of the file format)");
        }
    }

    fn text(&mut self, key: &'static str, value: &mut String) {
        self.ask(key, "a text", true);
        self.some_text(key).unwrap_or_default().clone_into(value);
    }

    fn word(
        &mut self,
        key: &'static str,
        needed: bool,
        words: &[&'static str],
        value: &mut &'static str,
    ) -> bool {
        self.ask(key, words.join(", "), needed);
        if !needed && self.get(key).is_none() {
            return true;
        }
        let word = self.some_word(key, words);
        *value = word.unwrap_or(value);
        word.is_some()
    }

    fn given<T>(&mut self, key: &'static str, needed: bool, of: &Number<T>, value: &mut Option<T>) -> bool {
        let accepts = |unit: &(&'static str, f64)| if unit.0 == "1" { "a number" } else { unit.0 };
        self.ask(key, of.units.iter().map(accepts).collect::<Vec<_>>().join(", "), needed);
        let v = if needed { self.need(key, &form(of.units)) } else { self.get(key) };
        let Some(v) = v else { return !needed };
        let Some(n) = self.amount(key, v, of.units) else { return false };
        let read = (of.read)(n);
        if let Err(accepted) = &read {
            self.fault(key, &format!("{n} is not accepted: {accepted}"));
        }
        *value = read.ok();
        value.is_some()
    }

    fn rows<T>(&mut self, of: &Rows<T>, items: &mut Vec<T>) -> bool {
        self.ask("list", "rows of whole numbers", true);
        let rows = self.list(of);
        self.note_table(rows.as_ref().map(|rows| rows.len().to_string()), of.name);
        *items = rows.iter().flatten().map(|row| (of.read)(row)).collect();
        rows.is_some()
    }

    fn table(&mut self, key: &'static str, fill: impl FnOnce(&mut Self)) {
        if let Some(v) = self.need(key, "a table") {
            self.fill(key, v, fill);
        }
    }

    fn opt_table(&mut self, key: &'static str, _have: bool, fill: impl FnOnce(&mut Self)) -> bool {
        let v = self.get(key);
        if let Some(v) = v {
            self.fill(key, v, fill);
        }
        v.is_some()
    }

    fn fault(&mut self, key: &str, problem: &str) {
        self.faults.add(self.at(key), problem);
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
    let open = unit.is_empty() && units == TIMES && number != 0.0;
    let (name, factor) = units.iter().find(|u| u.0 == unit).or(units.first().filter(|_| unit.is_empty()))?;
    (number.is_finite() && number >= 0.0 && !open).then_some((number, *name, *factor))
}

fn form(units: Units) -> String {
    let words: Vec<_> = units.iter().map(|u| u.0).collect();
    let alone = match words[0] {
        _ if units == TIMES => "\"1 ms\"".to_owned(),
        "1" => "1".to_owned(),
        unit => format!("\"1 {unit}\""),
    };
    format!(
        "a number as {alone} (which counts as assumed), or as {{ value = 1, unit = \"{}\", kind = \"{}\", source = \"...\" }}",
        words.join("|"),
        KINDS.join("|")
    )
}
