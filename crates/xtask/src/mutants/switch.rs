//! Many bugs in one build: a function that is to have a bug gets its body once more for each, behind a switch that is read
//! from the environment. Only where a bug lies outside a function's body, or does not compile, it is planted alone.

use super::Bug;
use std::collections::BTreeMap;
use std::ops::Range;
use syn::visit::{self, Visit};

/// The variable that says which bug is switched on, by its name.
pub(super) const SWITCH: &str = "SMRLAB_PLANTED";

/// The variable that names a file, for the names of the bugs whose functions are entered.
pub(super) const REACHED: &str = "SMRLAB_REACHED";

/// A file with its bugs behind switches.
#[derive(Default)]
pub(super) struct Switched {
    pub text: String,
    /// Which lines of `text` (from 1) are which bug.
    pub lines: Vec<(Range<usize>, String)>,
}

/// The file `text` with every one of `bugs` that can be switched.
pub(super) fn switched(text: &str, bugs: &[&Bug]) -> Switched {
    let bodies = bodies(text);
    let mut chosen: BTreeMap<usize, Vec<&Bug>> = BTreeMap::new();
    for bug in bugs {
        let inside = |b: &Range<usize>, r: &Range<usize>| b.start <= r.start && r.end <= b.end;
        let body = bug.place(text).and_then(|r| bodies.iter().position(|b| inside(b, &r)));
        if let Some(body) = body {
            chosen.entry(body).or_default().push(bug);
        }
    }
    let (mut out, mut at) = (Switched::default(), 0);
    for (body, bugs) in chosen {
        let body = bodies[body].clone();
        out.text.push_str(&text[at..body.start]);
        out.text.push_str(&note(&bugs));
        for bug in bugs {
            let from = out.text.lines().count();
            out.text.push_str(&variant(text, &body, bug));
            out.lines.push((from..out.text.lines().count() + 1, bug.name.clone()));
        }
        out.text.push_str(&format!("{{\n{}\n}}", &text[body.clone()]));
        at = body.end;
    }
    out.text.push_str(&text[at..]);
    out
}

/// What notes the first time that a function with these bugs is entered.
fn note(bugs: &[&Bug]) -> String {
    let names: String = bugs.iter().map(|b| format!("{}\n", b.name)).collect();
    format!(
        "\n{{ static NOTE: std::sync::Once = std::sync::Once::new(); NOTE.call_once(|| \
         if let Some(to) = std::env::var_os({REACHED:?}) {{ \
         let _ = std::fs::OpenOptions::new().append(true).open(to).and_then(|mut to| \
         std::io::Write::write_all(&mut to, {names:?}.as_bytes())); }}) }}"
    )
}

/// `if` the bug is on, the body with it, `else`.
fn variant(text: &str, body: &Range<usize>, bug: &Bug) -> String {
    let place = bug.place(text).unwrap_or_default();
    format!(
        "\nif {{ static ON: std::sync::OnceLock<bool> = std::sync::OnceLock::new(); \
         *ON.get_or_init(|| std::env::var({SWITCH:?}).is_ok_and(|b| b == {:?})) }} {{\n{}{}{}\n}} else ",
        bug.name,
        &text[body.start..place.start],
        bug.replace,
        &text[place.end..body.end],
    )
}

/// The insides of the outermost functions that can have switches: not those of constants, nor those that answer with a type
/// that only their body names.
fn bodies(text: &str) -> Vec<Range<usize>> {
    let mut found = Bodies { text, out: Vec::new() };
    if let Ok(file) = syn::parse_file(text) {
        found.visit_file(&file);
    }
    found.out
}

struct Bodies<'a> {
    text: &'a str,
    out: Vec<Range<usize>>,
}

impl Bodies<'_> {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let braces = &block.brace_token.span;
        let body = braces.open().byte_range().end..braces.close().byte_range().start;
        let head = &self.text[signature.fn_token.span.byte_range().start..body.start];
        let opaque = head.split_once("->").is_some_and(|(_, output)| output.contains("impl "));
        let inner = self.out.last().is_some_and(|outer| body.start < outer.end);
        if signature.constness.is_none() && !opaque && !inner {
            self.out.push(body);
        }
    }
}

impl<'ast> Visit<'ast> for Bodies<'_> {
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.add(&f.sig, &f.block);
        visit::visit_item_fn(self, f);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.add(&f.sig, &f.block);
        visit::visit_impl_item_fn(self, f);
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.add(&f.sig, block);
        }
        visit::visit_trait_item_fn(self, f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two bugs of a function are two bodies before its own, and the text without them is as it was.
    #[test]
    fn a_function_has_a_body_for_each_bug() {
        let text = "const fn c() -> u8 { 1 }\nfn f(a: u8) -> u8 {\n    a + 2\n}\n";
        let bug = |name: &str, find: &str, replace: &str| Bug::new(name, "f.rs", find, replace);
        let bugs = [bug("less", "a + 2", "a - 2"), bug("more", "2\n", "3\n"), bug("const", "{ 1 }", "{ 2 }")];
        let made = switched(text, &bugs.iter().collect::<Vec<_>>());
        assert!(syn::parse_file(&made.text).is_ok(), "{}", made.text);
        assert_eq!(made.lines.iter().map(|(_, n)| n.as_str()).collect::<Vec<_>>(), ["less", "more"]);
        let line = |wanted: &str| 1 + made.text.lines().position(|l| l.trim() == wanted).unwrap();
        for (wanted, bug) in [("a - 2", 0), ("a + 3", 1)] {
            assert!(made.lines[bug].0.contains(&line(wanted)), "{wanted} in {:?}", made.lines);
        }
        assert!(
            !made.lines.iter().any(|(lines, _)| lines.contains(&line("a + 2"))),
            "its own body is no bug"
        );
        assert!(made.text.contains("less\\nmore\\n"), "who enters it comes to both: {}", made.text);
        assert_eq!(switched(text, &[]).text, text);
    }
}
