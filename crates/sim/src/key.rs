//! A key of a result, or a column of a table: how it is described.

/// A key of a result, or all keys of the same form.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it is in the document; `*` stands for one name, such as that of a cause.
    pub path: &'static str,
    /// What it is called in tables.
    pub name: &'static str,
    /// Other words for it that `explain` takes.
    pub aliases: &'static [&'static str],
    /// What it is counted in; empty for plain numbers.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// How it follows from other keys or from the logs; empty where it is counted.
    pub formula: &'static str,
    /// Where the definition comes from; empty: it is ours or common usage.
    pub source: &'static str,
}

/// A key that is counted and needs no more words.
pub(crate) const fn key(
    path: &'static str,
    name: &'static str,
    unit: &'static str,
    doc: &'static str,
) -> Key {
    Key { path, name, unit, doc, aliases: &[], formula: "", source: "" }
}

impl Key {
    pub(crate) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn is(self, formula: &'static str) -> Self {
        Self { formula, ..self }
    }

    pub(crate) const fn from(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// The keys that lead to it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.')
    }
}
