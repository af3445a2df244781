//! Bugs that nobody thought of: those that cargo-mutants lists (`cargo mutants --list --json`), for the one build here instead
//! of one for each.

use super::Bug;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[derive(Deserialize)]
struct Listed {
    name: String,
    file: String,
    span: Span,
    replacement: String,
}

#[derive(Deserialize)]
struct Span {
    start: LineColumn,
    end: LineColumn,
}

/// Line and character, from 1.
#[derive(Deserialize)]
struct LineColumn {
    line: usize,
    column: usize,
}

/// The bugs of the list in `file`, in sources below `root`.
pub(super) fn listed(root: &Path, file: &str) -> Result<Vec<Bug>, String> {
    let read = |name: &str| fs::read_to_string(root.join(name)).map_err(|e| format!("{name}: {e}"));
    let list: Vec<Listed> = serde_json::from_str(&read(file)?)
        .map_err(|e| format!("{file}: {e}: it takes what `cargo mutants --list --json` prints"))?;
    let mut texts = BTreeMap::new();
    let mut bugs = Vec::new();
    for one in list {
        if !texts.contains_key(&one.file) {
            texts.insert(one.file.clone(), read(&one.file)?);
        }
        let text = &texts[&one.file];
        let (Some(start), Some(end)) = (offset(text, &one.span.start), offset(text, &one.span.end)) else {
            return Err(format!("{}: not in the text that is there now: list again", one.name));
        };
        if moved(text, &one) {
            return Err(format!("{}: another line stands there now: draw again", one.name));
        }
        let bug = Bug::new(&one.name, &one.file, &text[start..end], &one.replacement);
        bugs.push(Bug { at: Some(start), ..bug });
    }
    Ok(bugs)
}

/// Whether a bug that `tools/draw_bugs.py` drew, which is named after its place and ends with its line, is of another line than stands there.
fn moved(text: &str, bug: &Listed) -> bool {
    let line = bug.span.start.line;
    let drawn = bug.name.starts_with(&format!("{}:{line}: ", bug.file));
    let stands = text.lines().nth(line - 1).unwrap_or_default().trim();
    drawn && !bug.name.ends_with(&format!(" for {stands}"))
}

/// Where a place is in a text, in bytes.
fn offset(text: &str, place: &LineColumn) -> Option<usize> {
    let line = text.split_inclusive('\n').nth(place.line - 1)?;
    let within = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(place.column - 1)?;
    Some(line.as_ptr() as usize - text.as_ptr() as usize + within)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bug drawn of a line that has moved since would be planted in another one.
    #[test]
    fn a_line_that_moved_is_not_taken_for_another() {
        let of = |name: &str| {
            let place = || LineColumn { line: 2, column: 5 };
            let (start, end) = (place(), place());
            Listed {
                name: name.to_owned(),
                file: "a.rs".to_owned(),
                span: Span { start, end },
                replacement: String::new(),
            }
        };
        let text = "fn f() {\n    a + 2;\n}\n";
        assert!(!moved(text, &of("a.rs:2: a - 2; for a + 2;")));
        assert!(moved(text, &of("a.rs:2: b - 2; for b + 2;")));
        assert!(!moved(text, &of("replace f with ()")), "those of cargo-mutants do not say their line");
    }

    #[test]
    fn a_place_counts_characters() {
        let text = "ä\nµs + 1\n";
        let plus = offset(text, &LineColumn { line: 2, column: 4 }).unwrap();
        assert_eq!(&text[plus..=plus], "+");
        assert_eq!(offset(text, &LineColumn { line: 2, column: 8 }), Some(text.len()));
        assert_eq!(offset(text, &LineColumn { line: 4, column: 1 }), None);
    }
}
