//! What a header line says of a table's columns: names of our own are read as they are, others get a suggestion.

use super::Sample;
use super::first_lines::{head, is_number, separator, split};

/// Names that say what a column is and in which unit, and how `columns=` says it. A header that has several of one kind
/// leaves it to the user which of them counts; the one that stands first here is suggested.
const KNOWN: &[(&str, &str)] = &[
    ("arrival_ns", "time:ns"),
    ("arrival_us", "time:us"),
    ("arrival_ms", "time:ms"),
    ("arrival_s", "time:s"),
    ("time_ns", "time:ns"),
    ("time_us", "time:us"),
    ("time_ms", "time:ms"),
    ("time_s", "time:s"),
    ("timestamp_ns", "time:ns"),
    ("timestamp_us", "time:us"),
    ("timestamp_ms", "time:ms"),
    ("timestamp_s", "time:s"),
    ("time", "time:?"),
    ("arrival", "time:?"),
    ("timestamp", "time:?"),
    ("op", "op"),
    ("lba", "lba"),
    ("offset_bytes", "offset:B"),
    ("blocks", "size:blk"),
    ("size_bytes", "size:B"),
    ("bytes", "size:B"),
    ("device", "device"),
    ("stream", "stream"),
    ("fua", "fua"),
];

/// Whole names that others use, and what they most likely are.
const SHORT: &[(&str, &str)] =
    &[("ts", "time:?"), ("t", "time:?"), ("blk", "lba"), ("nblk", "size:blk"), ("pos", "offset:B")];

/// Parts of names that others use, and what they most likely are.
const LIKELY: &[(&str, &str)] = &[
    ("time", "time:?"),
    ("stamp", "time:?"),
    ("arriv", "time:?"),
    ("sec", "time:?"),
    ("opcode", "op"),
    ("type", "op"),
    ("rw", "op"),
    ("cmd", "op"),
    ("command", "op"),
    ("oper", "op"),
    ("action", "op"),
    ("len", "size:B"),
    ("size", "size:B"),
    ("bytes", "size:B"),
    ("count", "size:blk"),
    ("nblocks", "size:blk"),
    ("sectors", "size:blk"),
    ("lba", "lba"),
    ("sector", "lba"),
    ("blocks", "size:blk"),
    ("block", "lba"),
    ("addr", "offset:B"),
    ("offset", "offset:B"),
    ("dev", "device"),
    ("disk", "device"),
    ("host", "device"),
    ("volume", "device"),
];

/// A table's header.
pub(crate) struct Headed {
    /// As it stands in the file.
    line: String,
    /// `None`: any run of blanks and tabs.
    pub(super) sep: Option<u8>,
    /// For each kind of column that was found: how `columns=` says it and the name in the header.
    columns: Vec<(&'static str, String)>,
    /// The kinds of column without which nothing can be read.
    needed: Vec<&'static str>,
    /// Columns of our own names that say the same, the suggested one first; one name for two columns of the same name.
    rivals: Vec<(String, String)>,
    /// What `columns=` would say of them in order, where the header has a name twice.
    in_order: Option<String>,
    /// All that is needed has a name of our own, its unit is known, and no other column says the same.
    sure: bool,
}

/// The kind of a column: a time has several spellings, and so have the place and the length.
fn kind(column: &str) -> &str {
    match column.split(':').next().unwrap_or_default() {
        "offset" => "lba",
        kind => kind,
    }
}

const NEEDED: [&str; 4] = ["time", "op", "lba", "size"];

impl Headed {
    /// The header that a sample begins with: a first line of names, none of which is a number, before a line with one. `said`:
    /// kinds of column that parameters take the place of.
    pub(crate) fn of(sample: &Sample<'_>, said: &[&'static str]) -> Option<Self> {
        let (first, row) = head(sample)?;
        let sep = separator(first);
        let mut names = split(first, sep);
        // Lines that end in a separator have an empty column last.
        names.truncate(names.iter().rposition(|n| !n.is_empty()).map_or(0, |last| last + 1));
        let row = row.map(|line| split(line, sep)).unwrap_or_default();
        let begins = names.iter().all(|n| n.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        if names.len() < 3
            || !begins
            || names.iter().any(|n| is_number(n))
            || !row.iter().any(|n| is_number(n))
        {
            return None;
        }
        let line = String::from_utf8_lossy(first).trim().to_owned();
        Some(Self::named((line, sep), &names, &row, said))
    }

    /// Whether a sample is nothing but a header that says everything.
    pub(crate) fn alone(sample: &Sample<'_>) -> bool {
        let Some((first, None)) = head(sample) else { return false };
        let sep = separator(first);
        Self::named((String::new(), sep), &split(first, sep), &[], &[]).sure
    }

    fn named(
        (line, sep): (String, Option<u8>),
        names: &[String],
        row: &[String],
        said: &[&'static str],
    ) -> Self {
        let needed: Vec<_> = NEEDED.into_iter().filter(|n| !said.contains(n)).collect();
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let take = |column: &'static str, name: &String, found: &mut Vec<(&'static str, String)>| {
            let others = said.contains(&kind(column));
            if !others && !found.iter().any(|(c, n)| kind(c) == kind(column) || n == name) {
                // Digits before and behind a point are seconds; whole numbers of an unnamed unit could be anything.
                let at = names.iter().position(|n| n == name).unwrap_or_default();
                let seconds = row.get(at).is_some_and(|t| t.contains('.')).then_some("time:s");
                let unit = match column {
                    "time:?" => unit(name).or(seconds),
                    _ => unit_of_space(column, name),
                };
                found.push((unit.unwrap_or(column), name.clone()));
            }
        };
        let mut rivals = Vec::new();
        for (known, column) in KNOWN.iter().filter(|(_, column)| !said.contains(&kind(column))) {
            for name in names.iter().filter(|n| n == known) {
                match found.iter().find(|(c, _)| kind(c) == kind(column)) {
                    Some((_, taken)) if rivals.iter().all(|(_, other)| other != name) => {
                        rivals.push((taken.clone(), name.clone()));
                    }
                    Some(_) => {}
                    None => take(column, name, &mut found),
                }
            }
        }
        let sure = |found: &[(&str, String)]| {
            let has = |wanted: &&str| found.iter().any(|(c, _)| kind(c) == *wanted && !c.ends_with('?'));
            rivals.is_empty() && needed.iter().all(has)
        };
        let sure = sure(&found);
        if !sure {
            for (known, column) in KNOWN.iter().chain(SHORT) {
                for name in names.iter().filter(|n| n.eq_ignore_ascii_case(known)) {
                    take(column, name, &mut found);
                }
            }
            for (part, column) in LIKELY {
                let means = |name: &String| {
                    let name = name.to_ascii_lowercase();
                    // A sector is no second.
                    name.contains(part) && (*part != "sec" || !name.contains("sect"))
                };
                for name in names.iter().filter(|n| means(n)) {
                    take(column, name, &mut found);
                }
            }
        }
        let twice = rivals.iter().any(|(taken, other)| taken == other);
        let in_order = twice.then(|| ordered(names, &found));
        Self { line, sep, columns: found, needed, rivals, in_order, sure }
    }

    /// What `columns=` would say, where that is certain.
    pub(crate) fn columns(&self) -> Option<String> {
        self.sure.then(|| self.text())
    }

    /// Whether it has all that is needed in names of our own, some of it twice.
    pub(crate) fn is_ambiguous(&self) -> bool {
        let has = |wanted: &&str| self.columns.iter().any(|(c, _)| kind(c) == *wanted);
        !self.rivals.is_empty() && self.needed.iter().all(has)
    }

    /// Whether it is that of a trace of ours, whose operations may be numbers.
    pub(super) fn is_arrival_ns(&self) -> bool {
        self.columns.iter().any(|(_, name)| name == "arrival_ns")
    }

    /// What `sep=` would say.
    fn separator(&self) -> &'static str {
        match self.sep {
            Some(b'\t') => "tab",
            Some(b';') => "semicolon",
            Some(b'|') => "pipe",
            Some(_) => "comma",
            None => "blank",
        }
    }

    fn text(&self) -> String {
        let column = |(c, name): &(&str, String)| format!("{}={name}", c.replace('?', "ms"));
        self.columns.iter().map(column).collect::<Vec<_>>().join(";")
    }

    /// What to tell a user whose `file` it is: the header, and the command that reads it.
    pub(crate) fn message(&self, file: &str) -> String {
        let missing: Vec<_> =
            self.needed.iter().filter(|n| !self.columns.iter().any(|(c, _)| kind(c) == **n)).collect();
        let mut columns = self.text();
        for name in &missing {
            let column = if **name == "time" { "time:ms" } else { name };
            columns.push_str(&format!(";{column}=NAME"));
        }
        let mut more = String::new();
        if let Some(in_order) = &self.in_order {
            columns.clone_from(in_order);
            more.push_str(",header=1");
        }
        if self.sep != Some(b',') {
            more.push_str(&format!(",sep={}", self.separator()));
        }
        let columns = columns.trim_start_matches(';');
        let mut text = format!(
            "{file}: its header is\n  {}\nIf it means what its names say, this reads it:\n  smrlab trace info \
             '{file}:csv,columns={columns}{more}'\n",
            self.line
        );
        for (taken, other) in &self.rivals {
            text.push_str(&match taken == other {
                true => format!("More than one column is named {taken}; this takes the first of them. "),
                false => format!("{taken} and {other} say the same; this takes {taken}. "),
            });
        }
        match self.columns.iter().find(|(c, _)| c.ends_with('?')) {
            Some((_, name)) => {
                text.push_str(&format!(
                    "{name} has no unit: ms is a guess; write time:s, :us or :ns where that is it. "
                ));
            }
            None => text
                .push_str("Check the units: time:s|ms|us|ns, lba (512-byte blocks), offset:B, size:B|blk. "),
        }
        if !missing.is_empty() {
            text.push_str(
                "NAME stands for a column that was not found; a trace without times needs gap=, one without \
                           operations all=. ",
            );
        }
        text.push_str("`smrlab explain csv` has all of it.");
        text
    }
}

/// What `columns=` says of a header's names one after the other, where `found` are those that count.
fn ordered(names: &[String], found: &[(&'static str, String)]) -> String {
    let mut left: Vec<_> = found.iter().collect();
    let column = |name: &String| {
        let at = left.iter().position(|(_, n)| n == name);
        at.map_or("-".to_owned(), |at| left.swap_remove(at).0.replace('?', "ms"))
    };
    names.iter().map(column).collect::<Vec<_>>().join(";")
}

/// The last word of a name, in small letters, where units stand: `Time (ms)`, `arrived_us`.
fn last_word(name: &str) -> Option<String> {
    let last = name.split(|c: char| !c.is_ascii_alphanumeric()).rfind(|word| !word.is_empty())?;
    Some(last.to_ascii_lowercase())
}

/// The unit that a name of a length or a place ends in: `Length (KB)`. With disks a KB is 1024 bytes.
fn unit_of_space(column: &str, name: &str) -> Option<&'static str> {
    let [bytes, blocks, kilo, mega] = match column.split(':').next()? {
        "size" => ["size:B", "size:blk", "size:1KiB", "size:1MiB"],
        "offset" => ["offset:B", "lba", "offset:1KiB", "offset:1MiB"],
        _ => return None,
    };
    match last_word(name)?.as_str() {
        "b" | "byte" | "bytes" => Some(bytes),
        "blk" | "block" | "blocks" | "sector" | "sectors" => Some(blocks),
        "k" | "kb" | "kib" | "kilobytes" => Some(kilo),
        "mb" | "mib" | "megabytes" => Some(mega),
        _ => None,
    }
}

/// The unit that a name of a time ends in.
fn unit(name: &str) -> Option<&'static str> {
    match last_word(name)?.as_str() {
        "ns" | "nanoseconds" => Some("time:ns"),
        "us" | "microseconds" => Some("time:us"),
        "ms" | "milliseconds" => Some("time:ms"),
        "s" | "sec" | "secs" | "seconds" => Some("time:s"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Headed> {
        Headed::of(&Sample { bytes: text.as_bytes(), lenient: false }, &[])
    }

    #[test]
    fn names_of_our_own_are_sure() {
        for (text, columns) in [
            ("arrival_ns,op,lba,blocks\n0,W,8,8\n", "time:ns=arrival_ns;op=op;lba=lba;size:blk=blocks"),
            (
                "id,arrival_ns,start_ns,op,lba,blocks,stream\n0,5,6,0,8,8,0\n",
                "time:ns=arrival_ns;op=op;lba=lba;size:blk=blocks;stream=stream",
            ),
            (
                "op;time_us;offset_bytes;size_bytes\nR;5;0;512\n",
                "time:us=time_us;op=op;offset:B=offset_bytes;size:B=size_bytes",
            ),
            ("time,op,lba,blocks\n0.001,R,8,8\n", "time:s=time;op=op;lba=lba;size:blk=blocks"),
        ] {
            assert_eq!(of(text).unwrap().columns().as_deref(), Some(columns), "{text}");
        }
    }

    #[test]
    fn a_name_of_a_time_ends_in_its_unit() {
        for (column, names) in [
            ("time:s", ["Time (s)", "at.sec", "SECONDS"]),
            ("time:ms", ["Time (ms)", "at_MS", "in milliseconds"]),
            ("time:us", ["Time [us]", "at us", "in_microseconds)"]),
            ("time:ns", ["Time (ns)", "at_ns", "nanoseconds"]),
        ] {
            assert_eq!(names.map(unit), [Some(column); 3]);
        }
        assert_eq!(["", "Time", "focus", "us_of_a_day"].map(unit), [None; 4]);
    }

    #[test]
    fn a_name_of_a_length_or_a_place_ends_in_its_unit() {
        for (header, told) in [
            ("Length (KB),Offset (KB)", "size:1KiB=Length (KB);offset:1KiB=Offset (KB)"),
            ("size_kib,offset [MB]", "size:1KiB=size_kib;offset:1MiB=offset [MB]"),
            ("size (sectors),offset (sectors)", "size:blk=size (sectors);lba=offset (sectors)"),
            ("SizeMB,Offset B", "size:B=SizeMB;offset:B=Offset B"),
        ] {
            let message = of(&format!("time_s,op,{header}\n5,R,0,8\n")).unwrap().message("T");
            assert!(message.contains(&format!("columns=time:s=time_s;op=op;{told}'")), "{message}");
        }
    }

    /// As spreadsheets write it where a cell was once used.
    #[test]
    fn a_separator_at_the_end_of_a_line_is_no_column() {
        let headed = of("time_s,op,lba,blocks,\n0,R,0,8,\n").unwrap();
        assert_eq!(headed.columns().as_deref(), Some("time:s=time_s;op=op;lba=lba;size:blk=blocks"));
        assert!(of(",,,,\n0,R,0,8,\n").is_none() && of("time_s,,lba,blocks\n0,R,0,8\n").is_none());
    }

    #[test]
    fn what_is_not_sure_is_suggested() {
        let whole = of("time,op,lba,blocks\n1,R,8,8\n").unwrap();
        assert_eq!(whole.columns(), None);
        let message = whole.message("T");
        assert!(message.contains("'T:csv,columns=time:ms=time;op=op;lba=lba;size:blk=blocks'"), "{message}");
        assert!(message.contains("time has no unit"), "{message}");
        let foreign = of("Timestamp\tType\tOffset\tLength\n1\tRead\t0\t512\n").unwrap();
        let message = foreign.message("T");
        let command = "'T:csv,columns=time:ms=Timestamp;op=Type;size:B=Length;offset:B=Offset,sep=tab'";
        assert!(foreign.columns().is_none() && message.contains(command), "{message}");
        let lacking = of("time_s,a,b\n1,2,3\n").unwrap().message("T");
        assert!(lacking.contains("columns=time:s=time_s;op=NAME;lba=NAME;size=NAME"), "{lacking}");
    }

    #[test]
    fn a_sector_is_no_second_and_short_names_are_known() {
        for (header, columns) in [
            ("ts;rw;sector;nblk", "time:ms=ts;size:blk=nblk;op=rw;lba=sector',"),
            ("t;op;start_sector;sectors", "op=op;time:ms=t;size:blk=sectors;lba=start_sector',"),
            ("secs;op;blk;len", "op=op;lba=blk;time:s=secs;size:B=len',"),
        ] {
            let message = of(&format!("{header}\n5;R;0;8\n")).unwrap().message("T");
            let said = format!("'T:csv,columns={}", columns.replace("',", ",sep=semicolon'"));
            assert!(message.contains(&said), "{message}");
        }
    }

    #[test]
    fn names_in_capitals_and_units_in_brackets_are_understood() {
        let message = of("Time (s),Op,LBA,Blocks\n5,R,0,8\n").unwrap().message("T");
        assert!(
            message.contains("'T:csv,columns=op=Op;lba=LBA;size:blk=Blocks;time:s=Time (s)'"),
            "{message}"
        );
    }

    /// Of two columns that say the same, nothing tells which counts.
    #[test]
    fn columns_that_say_the_same_are_left_to_the_user() {
        for (text, said) in [
            (
                "time_s,op,lba,lba,blocks\n5,R,0,1,8\n",
                [
                    "'T:csv,columns=time:s;op;lba;-;size:blk,header=1'",
                    "More than one column is named lba; this takes the first",
                ],
            ),
            (
                "time_s,op,offset_bytes,lba,blocks\n5,R,0,1,8\n",
                [
                    "columns=time:s=time_s;op=op;lba=lba;size:blk=blocks'",
                    "lba and offset_bytes say the same; this takes lba",
                ],
            ),
            (
                "time_s,op,arrival_ns,lba,blocks\n5,R,0,1,8\n",
                ["columns=time:ns=arrival_ns;op=op;", "arrival_ns and time_s say the same"],
            ),
        ] {
            let headed = of(text).unwrap();
            let message = headed.message("T");
            assert!(headed.columns().is_none(), "{text}");
            assert!(said.iter().all(|s| message.contains(s)), "{message}");
        }
        let thrice = of("time_s,op,lba,lba,lba,blocks\n5,R,0,1,2,8\n").unwrap().message("T");
        assert_eq!(thrice.matches("is named lba").count(), 1, "{thrice}");
        let spare = of("time_s,op,x,x,lba,blocks\n5,R,0,1,8,8\n").unwrap();
        assert!(spare.columns().is_some(), "columns that are passed over may have any name");
    }

    #[test]
    fn a_header_alone_is_told_from_what_is_none() {
        let alone = |text: &str| Headed::alone(&Sample { bytes: text.as_bytes(), lenient: false });
        assert!(alone("time_s,op,lba,blocks\n") && alone("arrival_ns;op;lba;blocks"));
        assert!(!alone("time_s,op,lba,blocks\n0,R,0,8\n") && !alone("a,b,c\n") && !alone(""));
    }

    #[test]
    fn numbers_are_no_header() {
        assert!(of("1,2,3\n4,5,6\n").is_none() && of("time,op,lba,blocks\n").is_none());
        assert!(of("a,1,2\n3,4,5\n").is_none() && of("time,op\n1,R\n").is_none());
    }
}
