//! What a user may name instead of a file: a directory, or a pattern of names. Each stands for the files of one recording.

use crate::{Result, TraceError, remote};
use std::path::{Path, PathBuf};

/// Files that one name may stand for: each is open at the same time.
const FILES: usize = 1024;

/// The files that `path` stands for, in the order of their names (numbers in them by value); `None` where it is a file, or
/// no name of several.
///
/// # Errors
/// A directory or a pattern without a trace in it, or with more than 1024.
pub(crate) fn files(path: &str) -> Result<Option<Vec<String>>> {
    if remote::is_url(path) {
        let Some(mut found) = remote::list(path)? else { return Ok(None) };
        if path.ends_with('/') {
            keep_traces(&mut found, |url| url.rsplit('/').next().unwrap_or_default().to_owned());
        }
        return several(&remote::shown(path), found).map(Some);
    }
    let at = Path::new(path);
    let found = if at.is_dir() {
        let entries = at.read_dir().map_err(|e| TraceError::io(path, e))?;
        traces(entries.filter_map(|e| e.ok().map(|e| e.path())).collect())
    } else if !at.exists() && path.contains(['*', '?', '[']) {
        // As in a shell, a hidden file is meant by its dot alone.
        let how = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
        let paths = glob::glob_with(path, how)
            .map_err(|e| TraceError::unreadable(path, format!("no pattern: {e}")))?;
        paths.filter_map(Result::ok).filter(|p| p.is_file()).collect()
    } else {
        return Ok(None);
    };
    if found.is_empty() && at.is_dir() {
        return Err(TraceError::unreadable(path, "there is no file in this directory"));
    }
    let text = |p: &PathBuf| match p.to_str() {
        Some(name) => Ok(name.to_owned()),
        None => Err(TraceError::unreadable(&p.to_string_lossy(), "the name is not UTF-8: rename the file")),
    };
    several(path, found.iter().map(text).collect::<Result<_>>()?).map(Some)
}

/// Names in their order, unless there are none or too many of them.
fn several(path: &str, mut names: Vec<String>) -> Result<Vec<String>> {
    names.sort_by_cached_key(|n| by_numbers(n));
    match names.len() {
        0 => Err(TraceError::unreadable(path, "no file has such a name")),
        n if n > FILES => {
            let what = format!(
                "{n} files at once are more than the {FILES} that can be merged: store parts of them"
            );
            Err(TraceError::unreadable(path, what))
        }
        _ => Ok(names),
    }
}

/// The traces among what lies in a directory.
fn traces(mut all: Vec<PathBuf>) -> Vec<PathBuf> {
    all.retain(|p| p.is_file());
    keep_traces(&mut all, |p| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default());
    all
}

/// Of the files of a folder the traces, by their names: those of blktrace or btrecord where there are such, else all but notes.
fn keep_traces<T>(all: &mut Vec<T>, name: impl Fn(&T) -> String) {
    let name = |file: &T| name(file).to_lowercase();
    all.retain(|file| !name(file).starts_with('.'));
    for kind in [".blktrace.", ".replay."] {
        if all.iter().any(|file| name(file).contains(kind)) {
            return all.retain(|file| name(file).contains(kind));
        }
    }
    let note = |n: &str| {
        ["readme", "license"].iter().any(|s| n.starts_with(s))
            || is_of_sums(n)
            || [".md", ".pdf", ".html", ".py", ".sh"].iter().any(|s| n.ends_with(s))
    };
    all.retain(|file| !note(&name(file)));
}

/// Whether a file is named after check sums, as `sha256sums.txt` and `md5`; `shared.csv` is not.
fn is_of_sums(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let kind = stem.strip_prefix("md5").or_else(|| stem.strip_prefix("sha"));
    let kind = kind.map(|k| k.trim_start_matches(|c: char| c.is_ascii_digit() || "-_".contains(c)));
    kind.is_some_and(|rest| ["", "sum", "sums"].contains(&rest))
}

/// A name in parts of text and numbers, so that `t.10` comes behind `t.9`.
fn by_numbers(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for c in name.chars() {
        let digit = c.to_digit(10);
        if in_number && digit.is_none() {
            parts.push((String::new(), 0));
        }
        in_number = digit.is_some();
        if let Some((text, number)) = parts.last_mut() {
            match digit {
                Some(d) => *number = number.saturating_mul(10).saturating_add(u64::from(d)),
                None => text.push(c),
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many files as can be open at once, and what to do with more.
    #[test]
    fn a_name_stands_for_so_many_files() {
        let names = |n: usize| several("d/*", vec!["d/a".to_owned(); n]).map_err(|e| e.to_string());
        assert_eq!(names(1024).map(|all| all.len()), Ok(1024));
        let told = "d/*: 1025 files at once are more than the 1024 that can be merged: store parts of them";
        assert_eq!(names(1025), Err(told.to_owned()));
        assert_eq!(names(0), Err("d/*: no file has such a name".to_owned()));
        let told = files("/nowhere/[").unwrap_err().to_string();
        assert!(told.starts_with("/nowhere/[: no pattern: "), "{told}");
    }

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["t.10", "t.9", "s.99", "t.9.b", "t", "ca", "c11"];
        names.sort_by_cached_key(|n| by_numbers(n));
        assert_eq!(names, ["c11", "ca", "s.99", "t", "t.9", "t.9.b", "t.10"]);
        // Behind a number letters are together again.
        let mut names = ["a1bb", "a1b2", "a1b10", "a01b"];
        names.sort_by_cached_key(|n| by_numbers(n));
        assert_eq!(names, ["a01b", "a1b2", "a1b10", "a1bb"]);
        // 2^64 is more than 1.
        let mut names = ["t.18446744073709551616", "t.1"];
        names.sort_by_cached_key(|n| by_numbers(n));
        assert_eq!(names, ["t.1", "t.18446744073709551616"]);
    }
}
