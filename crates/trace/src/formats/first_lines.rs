//! The first lines of a table: comments, which begin with `#`, the header, and how a line is split.

use super::Sample;
use crate::fields::{columns, separated};

/// What a line says that begins with `#`.
pub(super) fn comment(line: &[u8]) -> Option<&[u8]> {
    line.trim_ascii_start().strip_prefix(b"#").map(|text| text.trim_ascii_start())
}

/// The first line of a table and the one below it, comments left out. A comment right above the first row is taken for the
/// header where it has as many columns, all of them names: NumPy writes headers so.
pub(super) fn head<'a>(sample: &Sample<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let mut lines = sample.lines();
    let mut above = None;
    let first = loop {
        let Some(line) = lines.next() else { return above.map(|names| (names, None)) };
        match comment(line) {
            Some(text) => above = Some(text),
            None => break line,
        }
    };
    let sep = separator(first);
    let row = split(first, sep);
    if let Some(names) = above
        && row.iter().any(|n| is_number(n))
        && separator(names) == sep
        && split(names, sep).len() == row.len()
    {
        return Some((names, Some(first)));
    }
    Some((first, lines.find(|line| comment(line).is_none())))
}

/// What stands between the columns of a line; `None`: blanks.
pub(super) fn separator(line: &[u8]) -> Option<u8> {
    [b',', b'\t', b';', b'|'].into_iter().find(|sep| line.contains(sep))
}

pub(super) fn split(line: &[u8], sep: Option<u8>) -> Vec<String> {
    match sep {
        Some(sep) => separated(line, sep).map(plain).collect(),
        None => columns(line).map(plain).collect(),
    }
}

/// A name or value without blanks and quotes.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().trim_matches('"').to_owned()
}

pub(super) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{open_bytes, read_all};

    /// Comments above the header and between rows, a header in a comment, and one below a comment that says the same.
    #[test]
    fn lines_that_begin_with_a_hash_are_comments() {
        let rows = |text: &str, format: &str| {
            let source = open_bytes(text.as_bytes().to_vec(), format);
            let rows = source.and_then(|mut s| read_all(&mut s)).map_err(|e| e.to_string())?;
            Ok::<_, String>(rows.iter().map(|r| (r.arrival.0, r.lba.0)).collect::<Vec<_>>())
        };
        let both = Ok(vec![(0, 0), (100_000_000, 8)]);
        let table = "0.0,R,0,8\n # between, them, all, 4\n0.1,W,8,8\n";
        let names = "time_s,op,lba,blocks\n";
        for head in [
            format!("# of mine\n{names}"),
            format!("# {names}"),
            format!("# a\n#{names}"),
            format!("#{names}{names}"),
        ] {
            assert_eq!(rows(&format!("{head}{table}"), "auto"), both, "{head}");
        }
        let columns = "csv,columns=time:s;op;lba;size:blk";
        assert_eq!(rows(&format!("# of mine\n{table}"), columns), both);
        assert_eq!(rows(&format!("# of mine\n{names}{table}"), columns), both);
        assert_eq!(
            rows(&format!("# of mine\n{table}"), &format!("{columns},header=2")),
            Ok(vec![both.clone().unwrap()[1]])
        );
        // No header is found in a comment of other columns.
        for text in ["# a b c d\n0.0,R,0,8\n", "# of, all, this\n0.0,R,0,8\n"] {
            let first = head(&Sample { bytes: text.as_bytes(), lenient: false }).map(|(first, _)| first);
            assert_eq!(first, Some(b"0.0,R,0,8".as_slice()), "{text}");
        }
    }
}
