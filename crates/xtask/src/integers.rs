//! Public functions that take two bare integers of one type, which a caller can confuse: units have types
//! (`smrlab_units`). The two ends of a range are no such pair, nor is a place with the length behind it, in this order
//! everywhere. Nor do they take tuples with bare values in them, which only hide such a pair. What was there before the rules is
//! listed in `integers.txt`, which may only become shorter.

use crate::tidy::{files, is_test};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

const LIST: &str = "crates/xtask/src/integers.txt";
/// Crates that others stand on, or that serve: their functions are called from afar.
const CRATES: &[&str] =
    &["units", "blockmap", "disk", "trace", "stl", "drive", "array", "probe", "sim", "device"];
/// What says nothing of what it means.
const BARE: &[&str] = &["u8", "u16", "u32", "u64", "usize", "i32", "i64", "bool", "f32", "f64"];
const INTEGERS: &[&str] = &["u8", "u16", "u32", "u64", "usize", "i32", "i64"];
/// Names that together mean one range: its ends, or where it begins and how long it is.
const RANGES: &[[&str; 2]] = &[
    ["start", "end"],
    ["from", "to"],
    ["from", "until"],
    ["first", "last"],
    ["a", "b"],
    ["lba", "blocks"],
    ["start", "blocks"],
    ["from", "blocks"],
    ["offset", "len"],
    ["offset", "n"],
    ["from", "n"],
    ["key", "n"],
];

/// Functions of the crates below `root` that are not listed, and listed ones that are gone.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    let mut found = BTreeSet::new();
    for path in files(root) {
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let ours = parts.next().as_deref() == Some("crates")
            && parts.next().is_some_and(|name| CRATES.contains(&&*name))
            && parts.next().as_deref() == Some("src");
        if ours && !is_test(&path) && path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
            found.extend(functions(&text).into_iter().map(|f| format!("{} {f}", path.display())));
        }
    }
    let listed = fs::read_to_string(root.join(LIST)).unwrap_or_default();
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let new =
        found.difference(&listed).map(|f| format!("{f}: give them types, or one argument (a range, a pair)"));
    let gone =
        listed.difference(&found).map(|f| format!("{LIST}: {f} is not so any more: take the line out"));
    new.chain(gone).collect()
}

/// The public functions of a file that take such a pair, with the names of all integers of that type.
fn functions(text: &str) -> Vec<String> {
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let mut found = Found::default();
    found.visit_file(&file);
    found.out
}

#[derive(Default)]
struct Found {
    /// The type whose methods are looked at.
    of: String,
    out: Vec<String>,
}

impl Found {
    fn check(&mut self, visibility: &syn::Visibility, signature: &syn::Signature) {
        if !matches!(visibility, syn::Visibility::Public(_)) {
            return;
        }
        let mut by_type: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let of = if self.of.is_empty() { String::new() } else { format!("{}::", self.of) };
        for input in &signature.inputs {
            if let syn::FnArg::Typed(arg) = input
                && let syn::Type::Tuple(tuple) = &*arg.ty
                && tuple.elems.iter().any(|of| word(of).is_some_and(|of| BARE.contains(&of.as_str())))
            {
                let words: Vec<_> = tuple.elems.iter().map(|of| word(of).unwrap_or("..".into())).collect();
                self.out.push(format!("{of}{}: ({})", signature.ident, words.join(", ")));
            }
            if let syn::FnArg::Typed(arg) = input
                && let (syn::Pat::Ident(name), syn::Type::Path(of)) = (&*arg.pat, &*arg.ty)
                && let Some(of) = of.path.get_ident().map(ToString::to_string)
                && INTEGERS.contains(&of.as_str())
            {
                by_type.entry(of).or_default().push(name.ident.to_string());
            }
        }
        for names in by_type.values().filter(|names| names.len() > 1) {
            if !RANGES.iter().any(|range| names == range) {
                self.out.push(format!("{of}{}({})", signature.ident, names.join(", ")));
            }
        }
    }
}

/// A type that is one word.
fn word(of: &syn::Type) -> Option<String> {
    let syn::Type::Path(of) = of else { return None };
    of.path.get_ident().map(ToString::to_string)
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, m: &'ast syn::ItemMod) {
        let tests = m.attrs.iter().any(|a| a.path().is_ident("cfg"));
        if !tests {
            visit::visit_item_mod(self, m);
        }
    }

    fn visit_item_impl(&mut self, i: &'ast syn::ItemImpl) {
        if let syn::Type::Path(of) = &*i.self_ty {
            self.of = of.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        }
        visit::visit_item_impl(self, i);
        self.of.clear();
    }

    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.check(&f.vis, &f.sig);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.check(&f.vis, &f.sig);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_integers_of_one_type_are_found_and_ranges_are_not() {
        let text = "pub fn a(tracks: u64, width: u64) {}\npub fn b(offset: u64, len: u64, of: Blocks) {}\n\
                    pub(crate) fn c(x: u64, y: u64) {}\npub fn d(n: u64, m: u32) {}\n\
                    impl<T> S<T> { pub fn e(&self, from: u64, to: u64, n: u64) {} fn f(x: u8, y: u8) {} }\n\
                    #[cfg(test)]\nmod tests { pub fn g(x: u64, y: u64) {} }\n";
        assert_eq!(functions(text), ["a(tracks, width)", "S::e(from, to, n)"]);
    }

    #[test]
    fn tuples_with_bare_values_are_found() {
        let text = "pub fn a((n, m): (u64, u32)) {}\npub fn b(at: (Lba, Blocks)) {}\n\
                    impl S { pub fn c(&self, of: (bool, &str)) {} fn d(x: (u8, u8)) {} }\n";
        assert_eq!(functions(text), ["a: (u64, u32)", "S::c: (bool, ..)"]);
    }
}
