//! Sizes and leftovers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::visit::{self, Visit};

/// Lines a function may have, from its signature to its closing brace.
const FUNCTION_LINES: usize = 70;
/// Lines a source file may have; files of tests may have more.
const FILE_LINES: usize = 500;
const TEST_FILE_LINES: usize = 1000;

/// Every fault in the tracked and not ignored files below `root`, one line each.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for path in files(root) {
        let Ok(text) = fs::read_to_string(root.join(&path)) else { continue };
        out.extend(text_faults(&path, &text));
        if path.extension().is_some_and(|e| e == "rs") {
            out.extend(function_faults(&path, &text));
            out.extend(crate::floors::impurities(&path, &text));
        }
    }
    out
}

/// The tracked and not ignored files below `root`.
pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .expect("git is installed");
    String::from_utf8_lossy(&list.stdout).split('\0').filter(|p| !p.is_empty()).map(PathBuf::from).collect()
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["rs", "py", "js", "css", "sh", "toml"].iter().any(|s| e == *s))
}

/// Whether a file holds tests or benches.
pub(crate) fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "benches")
        || stem == "tests"
        || stem.ends_with("_tests")
        || stem.starts_with("test_")
}

fn text_faults(path: &Path, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let limit = if is_test(path) { TEST_FILE_LINES } else { FILE_LINES };
    let lines = text.lines().count();
    if is_source(path) && lines > limit {
        out.push(format!("{}: {lines} lines; at most {limit}: split it", path.display()));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(what) = leftover(path, line) {
            out.push(format!("{}:{}: {what}", path.display(), number + 1));
        }
    }
    out
}

/// What should not be there. A marker of work to do must name an issue: `TODO(#12)`.
fn leftover(path: &Path, line: &str) -> Option<&'static str> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    if is_source(path) && marks.iter().any(|m| line.contains(m) && !line.contains(&format!("{m}(#"))) {
        return Some("work to do without an issue: write it down there, and name it like (#12)");
    }
    let macros = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("db", "g!(")];
    if is_source(path) && macros.iter().any(|m| line.contains(m)) {
        return Some("a placeholder that panics or prints");
    }
    line.contains(concat!("/wo", "rk/")).then_some("a path of one machine")
}

fn function_faults(path: &Path, text: &str) -> Vec<String> {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(e) => return vec![format!("{}: {e}", path.display())],
    };
    let mut lengths = Lengths { path, out: Vec::new() };
    lengths.visit_file(&file);
    lengths.out
}

struct Lengths<'a> {
    path: &'a Path,
    out: Vec<String>,
}

impl Lengths<'_> {
    fn check(&mut self, name: &syn::Ident, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let lines = block.brace_token.span.close().end().line + 1 - first;
        if lines > FUNCTION_LINES {
            let at = self.path.display();
            self.out.push(format!("{at}:{first}: fn {name} has {lines} lines; at most {FUNCTION_LINES}"));
        }
    }
}

impl<'ast> Visit<'ast> for Lengths<'_> {
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.check(&f.sig.ident, &f.sig, &f.block);
        visit::visit_item_fn(self, f);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.check(&f.sig.ident, &f.sig, &f.block);
        visit::visit_impl_item_fn(self, f);
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.check(&f.sig.ident, &f.sig, block);
        }
        visit::visit_trait_item_fn(self, f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("impl A {{\nfn long() {{\n{}}}\n}}\n", "g();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_may_have_seventy_lines_and_not_one_more() {
        let path = Path::new("a.rs");
        assert_eq!(function_faults(path, &function(70)), Vec::<String>::new());
        assert_eq!(function_faults(path, &function(71)), ["a.rs:2: fn long has 71 lines; at most 70"]);
    }

    #[test]
    fn files_of_tests_may_be_longer() {
        let text = "x\n".repeat(501);
        assert_eq!(text_faults(Path::new("a/b.rs"), &text).len(), 1);
        assert_eq!(text_faults(Path::new("a/b_tests.rs"), &text), Vec::<String>::new());
    }

    #[test]
    fn leftovers_are_found_and_issues_allowed() {
        let path = Path::new("a.rs");
        let mark = concat!("TO", "DO");
        assert!(leftover(path, &format!("// {mark}: later")).is_some());
        assert!(leftover(path, &format!("// {mark}(#12): later")).is_none());
        assert!(leftover(Path::new("a.md"), concat!("see /wo", "rk/x")).is_some());
    }
}
