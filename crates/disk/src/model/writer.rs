//! Writes a drive file: the reader gives back the same parts.

use super::form::{Form, Number, Rows};
use super::{DriveSpec, fields};
use std::fmt::Write;

/// Where the numbers of a written file come from: `kind` and `source` of a field.
pub type Origin<'a> = &'a dyn Fn(&str) -> (&'static str, String);

/// Writes `spec` as a drive file.
pub fn write(spec: &DriveSpec, origin: Origin<'_>) -> String {
    let mut w = Writer { out: String::new(), table: String::new(), origin };
    fields::drive(&mut w, &mut spec.clone());
    w.out
}

struct Writer<'a> {
    out: String,
    table: String,
    origin: Origin<'a>,
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn at(&self, key: &str) -> String {
        if self.table.is_empty() { key.to_owned() } else { format!("{}.{key}", self.table) }
    }
}

impl Form for Writer<'_> {
    fn doc(&mut self, _doc: &'static str) -> &mut Self {
        self
    }

    fn schema(&mut self) {
        self.line("schema = 1");
    }

    fn text(&mut self, key: &'static str, value: &mut String) {
        self.line(&format!("{key} = {}", quoted(value)));
    }

    fn word(
        &mut self,
        key: &'static str,
        _needed: bool,
        _words: &[&'static str],
        value: &mut &'static str,
    ) -> bool {
        self.line(&format!("{key} = {}", quoted(value)));
        true
    }

    fn given<T>(&mut self, key: &'static str, _needed: bool, of: &Number<T>, value: &mut Option<T>) -> bool {
        if let Some(value) = value {
            let (kind, source) = (self.origin)(&self.at(key));
            let (value, unit, source) = ((of.write)(value), of.units[0].0, quoted(&source));
            self.line(&format!(
                "{key} = {{ value = {value}, unit = \"{unit}\", kind = \"{kind}\", source = {source} }}"
            ));
        }
        true
    }

    fn rows<T>(&mut self, of: &Rows<T>, items: &mut Vec<T>) -> bool {
        self.line(&format!("# {}", of.columns.join(", ")));
        self.line("list = [");
        for item in items {
            self.line(&format!("    [{}],", (of.write)(item).join(", ")));
        }
        self.line("]");
        let (kind, source) = (self.origin)(&self.table);
        self.line(&format!("kind = {}\nsource = {}", quoted(kind), quoted(&source)));
        true
    }

    fn table(&mut self, key: &'static str, fill: impl FnOnce(&mut Self)) {
        let inner = self.at(key);
        let _ = write!(self.out, "\n[{inner}]\n");
        let outer = std::mem::replace(&mut self.table, inner);
        fill(self);
        self.table = outer;
    }

    fn opt_table(&mut self, key: &'static str, have: bool, fill: impl FnOnce(&mut Self)) -> bool {
        if have {
            self.table(key, fill);
        }
        have
    }

    fn fault(&mut self, _key: &str, _problem: &str) {}
}
