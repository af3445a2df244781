//! What pages name is there: code by its path (`split::ReadRuns`), files of the repository, and what links lead to.

use crate::tidy::files;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages written by hand: others are made from what they name, or tell of what was.
fn by_hand(path: &Path) -> bool {
    let made = ["docs/reference", "docs/papers", "scenarios", "CHANGELOG.md"];
    path.extension().is_some_and(|e| e == "md") && !made.iter().any(|m| path.starts_with(m))
}

/// Every name in the pages below `root` that nothing has, one line each.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    let all = files(root);
    let text = |path: &PathBuf| fs::read_to_string(root.join(path)).unwrap_or_default();
    // The names in this crate are made up.
    let sources = all.iter().filter(|p| p.extension().is_some_and(|e| e == "rs" || e == "py"));
    let sources = sources.filter(|p| !p.starts_with("crates/xtask"));
    let words = sources.flat_map(|p| words(&text(p)).map(str::to_owned).collect::<Vec<_>>()).collect();
    let places = all.iter().flat_map(|p| p.ancestors().map(Path::to_owned)).collect();
    let there = There { words, places };
    all.iter().filter(|p| by_hand(p)).flat_map(|p| page_faults(p, &text(p), &there)).collect()
}

/// What can be named.
struct There {
    /// All identifiers of the sources.
    words: HashSet<String>,
    /// All files and folders.
    places: BTreeSet<PathBuf>,
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

fn page_faults(page: &Path, text: &str, there: &There) -> Vec<String> {
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut missing = |what: &str| {
            out.push(format!("{}:{}: there is no {what}", page.display(), number + 1));
        };
        for span in line.split('`').skip(1).step_by(2) {
            code_names(span)
                .filter(|w| !there.words.contains(*w))
                .for_each(|w| missing(&format!("{w} (`{span}`)")));
            if is_place(span) && !there.places.contains(Path::new(span.trim_end_matches('/'))) {
                missing(span);
            }
        }
        for link in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let target = joined(page.parent().unwrap_or(Path::new("")), link);
            if !link.is_empty() && !link.contains("://") && !there.places.contains(&target) {
                missing(link);
            }
        }
    }
    out
}

/// The identifiers of a path of code, `a::B` or `a::{B, c}`; none of anything else.
fn code_names(span: &str) -> impl Iterator<Item = &str> {
    let path = span.split('(').next().unwrap_or_default();
    let is_path = path.contains("::") && path.chars().all(|c| c.is_alphanumeric() || "_:{}, ".contains(c));
    words(if is_path { path } else { "" })
}

/// Whether it is written like a file or folder from the repository's root on.
fn is_place(span: &str) -> bool {
    let plain = span.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let first = span.split('/').next().unwrap_or_default();
    let of_all = ["crates", "docs", "python", "tools", "drives", "scenarios", "examples"];
    plain && span.contains('/') && of_all.contains(&first)
}

/// A relative link from a folder.
fn joined(folder: &Path, link: &str) -> PathBuf {
    folder.join(link).components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            part => path.push(part),
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_has_is_found() {
        let there = There {
            words: ["split", "ReadRuns", "runs"].map(str::to_owned).into(),
            places: ["docs", "docs/a.md", "crates", "crates/x"].map(PathBuf::from).into(),
        };
        let faults = |text: &str| page_faults(Path::new("docs/b.md"), text, &there).len();
        for fine in [
            "`split::ReadRuns`, `split::{ReadRuns, runs}`, `split::runs(3)`",
            "`crates/x`, `crates/x/`, [a](a.md), [a](../docs/a.md#there), [b](https://b.org/c)",
            "`smrlab run -- ::`, `target/x`, `a/b`, split::Divider",
        ] {
            assert_eq!(faults(fine), 0, "{fine}");
        }
        for (wrong, n) in [
            ("`split::Divider`", 1),
            ("`split::{ReadRuns, Divider}`", 1),
            ("`crates/y`, [a](c.md), [a](../a.md)", 3),
        ] {
            assert_eq!(faults(wrong), n, "{wrong}");
        }
    }
}
