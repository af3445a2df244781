//! The text of DiskSim's parameter files: blocks of `key = value`, lists, and files that others name.

/// A value of a parameter file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Word(String),
    List(Vec<Value>),
    Block(Block),
}

/// `KIND [NAME] { key = value, ... }`.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Block {
    pub kind: String,
    pub fields: Vec<(String, Value)>,
    /// The file, and the line where it begins.
    file: String,
    line: usize,
    /// The line of each field's value.
    lines: Vec<usize>,
}

/// A place in a file, before what is wrong there.
fn at(file: &str, line: usize) -> String {
    format!("{file}: line {line}: ")
}

impl Block {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.fields.iter().find(|f| f.0.eq_ignore_ascii_case(key)).map(|f| &f.1)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }

    /// What is wrong with `key`, with its place: that of the block where it is not there.
    pub(super) fn wrong(&self, key: &str, what: impl std::fmt::Display) -> String {
        let field = self.fields.iter().position(|f| f.0.eq_ignore_ascii_case(key));
        let line = field.and_then(|i| self.lines.get(i)).unwrap_or(&self.line);
        format!("{}{}: {what}", at(&self.file, *line), self.kind)
    }

    /// Where it begins, before what is wrong with all of it.
    pub(super) fn place(&self) -> String {
        at(&self.file, self.line)
    }

    /// A number that has to be there.
    pub(super) fn need(&self, key: &str) -> Result<f64, String> {
        self.number(key).ok_or_else(|| match self.get(key) {
            Some(Value::Word(word)) => self.wrong(key, format_args!("{key} = {word} is no number")),
            Some(_) => self.wrong(key, format_args!("{key} is no number")),
            None => self.wrong(key, format_args!("no number '{key}'")),
        })
    }

    /// Every value that is a word is a number: what is not would count as if it were not there.
    pub(super) fn numbers(&self) -> Result<(), String> {
        let mut words = self.fields.iter().filter(|(_, value)| matches!(value, Value::Word(_)));
        words.try_for_each(|(key, _)| self.need(key).map(drop))
    }

    /// A whole number up to `most` that has to be there.
    pub(super) fn whole(&self, key: &str, most: u32) -> Result<u32, String> {
        let n = self.need(key)?;
        if n.fract() != 0.0 || !(0.0..=f64::from(most)).contains(&n) {
            let what = format_args!("{key} = {n} is not accepted: a whole number from 0 to {most}");
            return Err(self.wrong(key, what));
        }
        Ok(n as u32)
    }

    /// First and last cylinder of a zone, behind zones that end before `next`.
    pub(super) fn cylinders(&self, next: u32) -> Result<(u32, u32), String> {
        let [first, last] =
            ["First cylinder number", "Last cylinder number"].map(|key| self.whole(key, 1 << 24));
        let (first, last) = (first?, last?);
        if first < next || last < first {
            let what = format_args!("no zone goes from cylinder {first} to {last} behind {next} others");
            return Err(self.wrong("First cylinder number", what));
        }
        Ok((first, last))
    }

    pub(super) fn block(&self, key: &str) -> Option<&Block> {
        match self.get(key)? {
            Value::Block(b) => Some(b),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Value] {
        match self.get(key) {
            Some(Value::List(l)) => l,
            _ => &[],
        }
    }
}

impl Value {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Word(w) => w.parse().ok().filter(|n: &f64| n.is_finite()),
            _ => None,
        }
    }
}

/// Reads the files that are named.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// All blocks at the top of a file, and of the files that it names.
pub(super) fn parse(name: &str, read: Read<'_>) -> Result<Vec<Block>, String> {
    file(name, read, 0)
}

fn file(name: &str, read: Read<'_>, depth: u32) -> Result<Vec<Block>, String> {
    if depth > 8 {
        return Err(format!("{name}: files name each other in a circle"));
    }
    let text = read(name)?;
    if text.contains('\0') {
        return Err(format!("{name}: no text, as DiskSim's parameter files are"));
    }
    let mut p = Parser { name, text: text.as_bytes(), at: 0, counted: (0, 1), read, depth, inside: 0 };
    p.top().map_err(|e| {
        // What is wrong in a file that it names has its place there.
        let line = p.line();
        format!("{}{e}", at(name, line))
    })
}

/// Blocks and lists in each other.
const DEEPEST: u32 = 32;

struct Parser<'a> {
    name: &'a str,
    text: &'a [u8],
    at: usize,
    /// A place, and the line there: lines are counted on from it.
    counted: (usize, usize),
    read: Read<'a>,
    depth: u32,
    /// In how many blocks and lists `at` is.
    inside: u32,
}

impl Parser<'_> {
    /// The line of `at`, which goes forwards.
    fn line(&mut self) -> usize {
        let (from, line) = self.counted;
        let to = self.at.min(self.text.len());
        self.counted = (to, line + self.text[from..to].iter().filter(|&&b| b == b'\n').count());
        self.counted.1
    }

    /// One block or list more is begun.
    fn enter(&mut self) -> Result<(), String> {
        self.inside += 1;
        if self.inside > DEEPEST {
            Err(format!("more than {DEEPEST} blocks and lists in each other"))
        } else {
            Ok(())
        }
    }

    /// Skips blanks, commas and comments; the next byte.
    fn peek(&mut self) -> Option<u8> {
        while let Some(&b) = self.text.get(self.at) {
            if b == b'#' {
                while self.text.get(self.at).is_some_and(|&b| b != b'\n') {
                    self.at += 1;
                }
            } else if b.is_ascii_whitespace() || b == b',' {
                self.at += 1;
            } else {
                return Some(b);
            }
        }
        None
    }

    fn word(&mut self) -> Result<String, String> {
        self.peek().ok_or("the file ends too early")?;
        let from = self.at;
        while self.text.get(self.at).is_some_and(|b| !b.is_ascii_whitespace() && !b",{}[]=#".contains(b)) {
            self.at += 1;
        }
        if from == self.at {
            return Err(format!("'{}' is not expected here", char::from(self.text[from])));
        }
        Ok(String::from_utf8_lossy(&self.text[from..self.at]).into_owned())
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.peek() {
            Some(next) if next == byte => {
                self.at += 1;
                Ok(())
            }
            None => Err(format!("the file ends where '{}' is missing", char::from(byte))),
            Some(_) => Err(format!("'{}' is missing", char::from(byte))),
        }
    }

    fn top(&mut self) -> Result<Vec<Block>, String> {
        let mut blocks = Vec::new();
        while self.peek().is_some() {
            let word = self.word()?;
            match word.as_str() {
                "source" => {
                    let name = self.word()?;
                    blocks.extend(file(&name, self.read, self.depth + 1)?);
                }
                "instantiate" => {
                    self.list()?;
                    self.word()?;
                    self.word()?;
                }
                "topology" => {
                    self.word()?;
                    self.word()?;
                    self.list()?;
                }
                _ => {
                    if self.peek() != Some(b'{') {
                        self.word()?;
                    }
                    blocks.push(self.fields(word)?);
                }
            }
        }
        Ok(blocks)
    }

    fn fields(&mut self, kind: String) -> Result<Block, String> {
        self.expect(b'{')?;
        self.enter()?;
        let (file, line) = (self.name.to_owned(), self.line());
        let (mut fields, mut lines) = (Vec::new(), Vec::new());
        loop {
            match self.peek() {
                None => return Err(format!("the block {kind} of line {line} does not end")),
                Some(b'}') => {
                    self.at += 1;
                    self.inside -= 1;
                    return Ok(Block { kind, fields, file, line, lines });
                }
                Some(_) => {
                    let from = self.at;
                    while self.text.get(self.at).is_some_and(|&b| b != b'=' && b != b'}') {
                        self.at += 1;
                    }
                    let key = String::from_utf8_lossy(&self.text[from..self.at]);
                    if let Some((before, _)) = key.split_once(',') {
                        self.at = from;
                        return Err(format!("'{}' is no 'KEY = VALUE'", before.trim()));
                    }
                    let key = key.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.expect(b'=')?;
                    self.peek();
                    lines.push(self.line());
                    fields.push((key, self.value()?));
                }
            }
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.peek() == Some(b'[') {
            return Ok(Value::List(self.list()?));
        }
        let word = self.word()?;
        if word == "source" {
            let name = self.word()?;
            let first = file(&name, self.read, self.depth + 1)?.into_iter().next();
            return first.map(Value::Block).ok_or_else(|| format!("{name}: no block in it"));
        }
        // A block may have a name; a plain value is followed by a comma, an end, or the next key.
        let here = self.at;
        if self.peek() == Some(b'{') {
            return Ok(Value::Block(self.fields(word)?));
        }
        self.at = here;
        Ok(Value::Word(word))
    }

    fn list(&mut self) -> Result<Vec<Value>, String> {
        self.expect(b'[')?;
        self.enter()?;
        let line = self.line();
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None => return Err(format!("the list of line {line} does not end")),
                Some(b']') => {
                    self.at += 1;
                    self.inside -= 1;
                    return Ok(items);
                }
                Some(_) => items.push(self.value()?),
            }
        }
    }
}

/// `distance, ms[, deviation[, ms of writes]]` a line, behind a line that tells how many.
pub(super) fn seek_points(text: &str) -> Result<Vec<(u64, f64, Option<f64>)>, String> {
    let mut points = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let words = line.split([',', ' ', '\t', '\r']).filter(|word| !word.is_empty());
        let numbers = words.map(|word| word.parse().ok().filter(|n: &f64| n.is_finite()));
        let (d, t, writes) = match numbers.collect::<Option<Vec<f64>>>().as_deref() {
            Some(&[d, t] | &[d, t, _]) => (d, t, None),
            Some(&[d, t, _, w]) => (d, t, Some(w)),
            _ if i == 0 || line.trim().is_empty() => continue,
            _ => return Err(format!("line {}: not a distance and a time", i + 1)),
        };
        let before = points.last().map_or(0, |p: &(u64, _, _)| p.0);
        if d.fract() != 0.0 || !(before as f64 + 1.0..=f64::from(1 << 24)).contains(&d) {
            return Err(format!("line {}: distance {d} is none behind {before}", i + 1));
        }
        if let Some(t) = [Some(t), writes].into_iter().flatten().find(|t| *t < 0.0) {
            return Err(format!("line {}: {t} ms is no time of a seek", i + 1));
        }
        points.push((d as u64, t, writes));
    }
    if points.is_empty() { Err("no point in it".to_owned()) } else { Ok(points) }
}
