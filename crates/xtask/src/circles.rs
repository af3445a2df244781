//! Circles of imports between the files of a crate: `use` of one another, over however many. A module and those inside it
//! are one thing and may know each other.

use crate::tidy::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

/// A module's path in its crate.
type Module = Vec<String>;

/// Every circle in the crates below `root`, one line each.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    for path in files(root) {
        let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if let [first, name, src, inside @ ..] = parts.as_slice()
            && (first.as_str(), src.as_str()) == ("crates", "src")
            && let Some(module) = module_of(inside)
        {
            let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
            crates.entry(name.clone()).or_default().insert(module, text);
        }
    }
    let of_crate = |(name, modules): (&String, &BTreeMap<Module, String>)| {
        let tell = |circle: Vec<Module>| {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            format!(
                "crates/{name}: a circle of imports, {}: move what they share to a file below",
                names.join(" -> ")
            )
        };
        circle(&imports(modules)).map(tell)
    };
    crates.iter().filter_map(of_crate).collect()
}

/// The module that a file below `src` is; `None` for what is no Rust.
fn module_of(inside: &[String]) -> Option<Module> {
    let (file, folders) = inside.split_last()?;
    let stem = file.strip_suffix(".rs")?;
    let own = (!["lib", "main", "mod"].contains(&stem)).then(|| stem.to_owned());
    Some(folders.iter().cloned().chain(own).collect())
}

/// Which modules each imports from, outside of tests, itself and those around and inside it left out.
fn imports(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let of = |(module, text): (&'_ Module, &String)| -> Vec<Module> {
        let Ok(file) = syn::parse_file(text) else { return Vec::new() };
        let mut uses = Uses { module: module.clone(), out: Vec::new() };
        uses.visit_file(&file);
        uses.out
    };
    let mut out = BTreeMap::new();
    for (module, text) in modules {
        // The longest part of a path that is a file leads to what is named.
        let known = |path: Module| {
            (0..=path.len()).rev().find_map(|n| modules.get_key_value(&path[..n])).map(|found| found.0)
        };
        let apart = |other: &&Module| !other.starts_with(module) && !module.starts_with(other);
        out.insert(module, of((module, text)).into_iter().filter_map(known).filter(apart).collect());
    }
    out
}

/// A circle, its first module once more at its end; `None`: there is none.
fn circle(imports: &BTreeMap<&Module, BTreeSet<&Module>>) -> Option<Vec<Module>> {
    fn walk<'a>(
        at: &'a Module,
        imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
        way: &mut Vec<&'a Module>,
        done: &mut BTreeSet<&'a Module>,
    ) -> Option<Vec<Module>> {
        if let Some(first) = way.iter().position(|m| *m == at) {
            return Some(way[first..].iter().chain([&at]).map(|m| (*m).clone()).collect());
        }
        if !done.contains(at) {
            way.push(at);
            let found = imports[at].iter().find_map(|next| walk(next, imports, way, done));
            way.pop();
            done.insert(at);
            return found;
        }
        None
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    imports.keys().find_map(|start| walk(start, imports, &mut way, &mut done))
}

/// The paths that a module's `use` lead to.
struct Uses {
    module: Module,
    out: Vec<Module>,
}

impl Uses {
    fn tree(&mut self, tree: &syn::UseTree, path: &Module, first: bool) {
        match tree {
            syn::UseTree::Path(p) => {
                let (name, mut path) = (p.ident.to_string(), path.clone());
                match name.as_str() {
                    "crate" if first => path = Vec::new(),
                    "self" if first => path = self.module.clone(),
                    "super" if first => path = self.module[..self.module.len().saturating_sub(1)].to_vec(),
                    "super" => _ = path.pop(),
                    _ if first => return,
                    _ => path.push(name.clone()),
                }
                self.tree(&p.tree, &path, false);
            }
            syn::UseTree::Group(g) => g.items.iter().for_each(|tree| self.tree(tree, path, first)),
            syn::UseTree::Name(n) if !first => {
                self.out.push(path.iter().cloned().chain([n.ident.to_string()]).collect());
            }
            _ if !first => self.out.push(path.clone()),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, m: &'ast syn::ItemMod) {
        if !m.attrs.iter().any(|a| a.path().is_ident("cfg")) {
            visit::visit_item_mod(self, m);
        }
    }

    fn visit_item_use(&mut self, u: &'ast syn::ItemUse) {
        self.tree(&u.tree, &Vec::new(), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<String> {
        let module = |path: &str| module_of(&path.split('/').map(str::to_owned).collect::<Vec<_>>()).unwrap();
        let modules = files.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect();
        circle(&imports(&modules)).map(|c| c.iter().map(|m| m.join("::")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_circle_is_found_and_a_module_may_know_what_is_inside_it() {
        let ground = ("lib.rs", "mod a; mod b; mod c;");
        let fine = [
            ground,
            ("a.rs", "use crate::b::{self, B}; use std::fmt;"),
            ("b/mod.rs", "mod inside; use inside::I; use crate::c::C;"),
            ("b/inside.rs", "use super::B; use crate::c::C;"),
            ("c.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(found(&fine), None);
        let back =
            [ground, ("a.rs", "use crate::b::B;"), ("b.rs", "use super::c;"), ("c.rs", "use crate::{a::A};")];
        assert_eq!(found(&back).as_deref(), Some("a b c a"));
        let below =
            [("b/mod.rs", "mod x; mod y;"), ("b/x.rs", "use super::y::Y;"), ("b/y.rs", "use super::x::X;")];
        assert_eq!(found(&below).as_deref(), Some("b::x b::y b::x"));
    }
}
