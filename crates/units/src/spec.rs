//! Parameter tables: the one definition of what a registry entry accepts.
//!
//! A user writes `NAME[,key=value...]`. The entry's [`Param`] table says which keys there are, of which kind, with which
//! default and range; parsing, `smrlab explain`, the docs page and every error message come from that table.

use crate::{BandSize, Blocks, Quantity, SimTime, Size, parse_count, parse_share, parse_time};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;

/// The kind of a parameter's value, which fixes its syntax and its accepted range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number within the (inclusive) range.
    Count(u64, u64),
    /// A real number within the (inclusive) range.
    Real(f64, f64),
    /// Bytes, blocks or a share of the space that the documentation names.
    Size,
    /// The size of a band: bytes, blocks, tracks, or a bare number as the entry's page says.
    Band,
    /// A share within the (inclusive) range.
    Share(f64, f64),
    /// A span of time.
    Time,
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Free text; what it may say is in the documentation.
    Text,
}

impl Kind {
    /// The accepted values, in words.
    pub fn accepts(self) -> String {
        match self {
            Self::Count(lo, u64::MAX) => format!("a whole number from {lo}"),
            Self::Count(lo, hi) => format!("a whole number from {lo} to {hi}"),
            Self::Real(lo, hi) => format!("a number from {lo} to {hi}"),
            Self::Size => "a size such as 4KiB, 25MB, 2000blk or 1%".to_owned(),
            Self::Band => "the size of a band such as 25MB, 64tracks or 50000blk".to_owned(),
            Self::Share(lo, hi) => format!("a share from {}% to {}%", lo * 100.0, hi * 100.0),
            Self::Time => "a time such as 50ms".to_owned(),
            Self::Switch => "on or off".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Text => "text".to_owned(),
        }
    }
}

/// One parameter of a registry entry.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The key that users write.
    pub name: &'static str,
    /// Syntax and range of the value.
    pub kind: Kind,
    /// The default as a user would write it; empty means "none, decided by the entry".
    pub default: &'static str,
    /// One line: what it is, its unit, its source.
    pub doc: &'static str,
}

impl Param {
    /// With a default as a user would write it; [`doc`](Self::doc) follows.
    pub const fn new(name: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { name, kind, default, doc: "" }
    }

    /// The same with what its page says.
    #[must_use]
    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

/// Tables of parameters as one; `N` is how many there are in all.
///
/// # Panics
/// Where `N` is another number: when it is compiled.
pub const fn joined<const N: usize>(tables: &[&[Param]]) -> [Param; N] {
    let mut out = [tables[0][0]; N];
    let (mut table, mut row, mut at) = (0, 0, 0);
    while table < tables.len() {
        if row == tables[table].len() {
            (table, row) = (table + 1, 0);
            continue;
        }
        out[at] = tables[table][row];
        (row, at) = (row + 1, at + 1);
    }
    assert!(at == N, "N parameters");
    out
}

/// What is wrong with a user's specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A name that no registry entry has.
    #[error("unknown {what} '{name}'{}; known: {known}", nearest_hint(.nearest))]
    UnknownName {
        /// What was looked up: layer, drive, format, …
        what: &'static str,
        /// What the user wrote.
        name: String,
        /// The nearest known name, where one is near.
        nearest: Option<String>,
        /// All known names.
        known: String,
    },
    /// A key that the entry does not have.
    #[error("{entry} has no parameter '{key}'{}; it accepts {}", nearest_hint(.nearest), all_of(.known))]
    UnknownKey {
        /// The entry's name.
        entry: String,
        /// What the user wrote.
        key: String,
        /// The nearest parameter, where one is near.
        nearest: Option<String>,
        /// All keys.
        known: String,
    },
    /// A value outside what the parameter accepts.
    #[error("{entry}: {key}={value} is not accepted: {accepts}")]
    BadValue {
        /// The entry's name.
        entry: String,
        /// The parameter.
        key: String,
        /// What the user wrote.
        value: String,
        /// The accepted range, or the reason.
        accepts: String,
    },
    /// Several faults at once, a line each.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<SpecError>),
    /// Anything else; the message says what and what to do.
    #[error("{0}")]
    Other(String),
}

/// What an entry accepts that has these parameters.
fn all_of(known: &str) -> String {
    if known.is_empty() { "none".to_owned() } else { format!("these: {known}") }
}

impl SpecError {
    /// No entry of a registry is called `name`: `known` are the names of its entries, and `aliases` mean the same.
    pub fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
        aliases: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let nearest = nearest(name, known.clone().chain(aliases));
        let known = known.collect::<Vec<_>>().join(", ");
        Self::UnknownName { what, name: name.to_owned(), nearest, known }
    }
}

fn nearest_hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |n| format!(" (did you mean '{n}'?)"))
}

/// What a message says behind a `name` that is unknown: which of the candidates may have been meant, or nothing.
pub fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest_hint(&nearest(name, candidates))
}

/// The candidate nearest to `name` by edit distance, where it is near enough to be a typing error: something of it is there.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|c| (edit_distance(&name.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(d, c)| *d <= 1 + c.len() / 3 && *d < c.len().max(name.len()))
        .min()
        .map(|(_, c)| c.to_owned())
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// Splits `NAME[,key=value...]`; commas inside brackets or parentheses do not separate.
pub fn split_item(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let name = parts.remove(0).trim();
    let pairs =
        parts.into_iter().map(|p| p.split_once('=').map_or((p.trim(), ""), |(k, v)| (k.trim(), v.trim())));
    (name, pairs.collect())
}

/// The checked parameter values of one entry, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    entry: String,
    values: BTreeMap<&'static str, String>,
}

impl Values {
    /// Checks `pairs` against `table` and fills in the defaults.
    ///
    /// # Errors
    /// All faults at once: unknown keys with the nearest match, values out of range with the accepted range, keys that are given twice.
    pub fn check(entry: &str, table: &[Param], pairs: &[(&str, &str)]) -> Result<Self, SpecError> {
        let mut values: BTreeMap<&'static str, String> =
            table.iter().map(|p| (p.name, p.default.to_owned())).collect();
        let mut faults = Vec::new();
        for (i, (key, value)) in pairs.iter().enumerate() {
            match table.iter().find(|p| p.name == *key) {
                None => faults.push(SpecError::UnknownKey {
                    entry: entry.to_owned(),
                    key: (*key).to_owned(),
                    nearest: nearest(key, table.iter().map(|p| p.name)),
                    known: table.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                }),
                Some(p) if !accepted(p.kind, value) => faults.push(SpecError::BadValue {
                    entry: entry.to_owned(),
                    key: (*key).to_owned(),
                    value: (*value).to_owned(),
                    accepts: p.kind.accepts(),
                }),
                Some(p) if pairs[..i].iter().any(|(before, _)| before == key) => {
                    let (key, value) = (p.name.to_owned(), (*value).to_owned());
                    let accepts = "it is given more than once".to_owned();
                    faults.push(SpecError::BadValue { entry: entry.to_owned(), key, value, accepts });
                }
                Some(p) => {
                    values.insert(p.name, (*value).to_owned());
                }
            }
        }
        match faults.len() {
            0 => Ok(Self { entry: entry.to_owned(), values }),
            1 => Err(faults.remove(0)),
            _ => Err(SpecError::Several(faults)),
        }
    }

    /// The value as the user (or the default) wrote it; `None` where the default is empty and nothing was given.
    ///
    /// # Panics
    /// When the entry's table has no such parameter: an error in the entry, not of the user.
    pub fn text(&self, key: &str) -> Option<&str> {
        let v = self.values.get(key).unwrap_or_else(|| panic!("{} has no parameter {key}", self.entry));
        (!v.is_empty()).then_some(v.as_str())
    }

    /// What `read` finds at `key`; `None` where the default is empty and nothing was given.
    pub fn given<T>(&self, key: &str, read: impl FnOnce(&Self, &str) -> T) -> Option<T> {
        self.text(key).map(|_| read(self, key))
    }

    fn parsed<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> T {
        self.text(key)
            .and_then(parse)
            .unwrap_or_else(|| panic!("{}: default of {key} is not valid", self.entry))
    }

    /// A [`Kind::Count`].
    pub fn count(&self, key: &str) -> u64 {
        self.parsed(key, |v| parse_count(v).ok())
    }

    /// A [`Kind::Real`].
    pub fn real(&self, key: &str) -> f64 {
        self.parsed(key, |v| v.parse().ok())
    }

    /// A [`Kind::Size`] in blocks, a share being taken of `whole`.
    pub fn size(&self, key: &str, whole: Blocks) -> Blocks {
        self.parsed(key, |v| Size::parse(v).ok()).blocks(whole)
    }

    /// A [`Kind::Band`].
    pub fn band(&self, key: &str) -> BandSize {
        self.parsed(key, |v| BandSize::parse(v).ok())
    }

    /// A [`Kind::Share`], from 0 to 1.
    pub fn share(&self, key: &str) -> f64 {
        self.parsed(key, |v| parse_share(v).ok())
    }

    /// A [`Kind::Time`].
    pub fn time(&self, key: &str) -> SimTime {
        self.parsed(key, |v| parse_time(v).ok())
    }

    /// A [`Kind::Choice`] of the words of an enum, which `named` knows.
    pub fn word<T>(&self, key: &str, named: impl Fn(&str) -> Option<T>) -> T {
        self.parsed(key, named)
    }

    /// A [`Kind::Switch`]; absent counts as off.
    pub fn on(&self, key: &str) -> bool {
        self.text(key) == Some("on")
    }

    /// An error that names the entry, this parameter and its value.
    pub fn bad(&self, key: &str, reason: impl Into<String>) -> SpecError {
        SpecError::BadValue {
            entry: self.entry.clone(),
            key: key.to_owned(),
            value: self.text(key).unwrap_or_default().to_owned(),
            accepts: reason.into(),
        }
    }

    /// `NAME,key=value,...` with every value, defaults included: the resolved form that results carry.
    pub fn resolved(&self) -> String {
        let mut out = self.entry.clone();
        for (k, v) in self.values.iter().filter(|(_, v)| !v.is_empty()) {
            let _ = write!(out, ",{k}={v}");
        }
        out
    }
}

fn accepted(kind: Kind, v: &str) -> bool {
    match kind {
        Kind::Count(lo, hi) => parse_count(v).is_ok_and(|n| (lo..=hi).contains(&n)),
        Kind::Real(lo, hi) => v.parse::<f64>().is_ok_and(|x| (lo..=hi).contains(&x)),
        Kind::Size => Size::parse(v).is_ok(),
        Kind::Band => BandSize::parse(v).is_ok(),
        Kind::Share(lo, hi) => parse_share(v).is_ok_and(|x| (lo..=hi).contains(&x)),
        Kind::Time => parse_time(v).is_ok(),
        Kind::Switch => matches!(v, "on" | "off"),
        Kind::Choice(words) => words.contains(&v),
        Kind::Text => !v.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param::new("band", Kind::Count(1, 100), "4").doc("tracks a band"),
        Param::new("journal", Kind::Switch, "off").doc("journalled updates"),
        Param::new("span", Kind::Size, "").doc("addressed space"),
    ];

    /// A third of the letters and one more may differ.
    #[test]
    fn what_is_near_enough_is_a_typing_error() {
        let of = |name| nearest(name, ["window", "abcd"]);
        assert_eq!((of("xycd").as_deref(), of("xyzd")), (Some("abcd"), None));
        assert_eq!((of("Windxyz").as_deref(), of("winwxyz")), (Some("window"), None));
    }

    /// One letter less than a name of one letter is nothing, and another letter is another name.
    #[test]
    fn a_name_of_which_nothing_is_there_is_not_meant() {
        let of = |name| nearest(name, ["k", "on"]);
        assert_eq!(
            (of(""), of("x"), of("kk").as_deref(), of("o").as_deref()),
            (None, None, Some("k"), Some("on"))
        );
    }

    #[test]
    fn splits_at_commas_outside_parentheses() {
        let (name, pairs) = split_item("static-R(4123),interarrival=exp(10ms,2),band=4");
        assert_eq!(name, "static-R(4123)");
        assert_eq!(pairs, [("interarrival", "exp(10ms,2)"), ("band", "4")]);
    }

    #[test]
    fn all_faults_are_reported_at_once_with_remedies() {
        let e = Values::check("rmw", TABLE, &[("bnad", "4"), ("journal", "yes")]).unwrap_err().to_string();
        assert!(e.contains("did you mean 'band'?") && e.contains("on or off"), "{e}");
        let e = Values::check("rmw", TABLE, &[("band", "0")]).unwrap_err().to_string();
        assert!(e.contains("from 1 to 100"), "{e}");
        let e = Values::check("rmw", TABLE, &[("band", "2"), ("band", "3")]).unwrap_err().to_string();
        assert_eq!(e, "rmw: band=3 is not accepted: it is given more than once");
    }

    #[test]
    fn defaults_are_filled_in_and_resolved() {
        let v = Values::check("rmw", TABLE, &[("band", "7")]).unwrap();
        assert_eq!((v.count("band"), v.on("journal"), v.text("span")), (7, false, None));
        assert_eq!(v.resolved(), "rmw,band=7,journal=off");
    }
}
