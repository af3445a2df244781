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
}

impl Block {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.fields.iter().find(|f| f.0.eq_ignore_ascii_case(key)).map(|f| &f.1)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }

    /// A number that has to be there.
    pub(super) fn need(&self, key: &str) -> Result<f64, String> {
        self.number(key).ok_or_else(|| format!("{}: no number '{key}'", self.kind))
    }

    /// A whole number up to `most` that has to be there.
    pub(super) fn whole(&self, key: &str, most: u32) -> Result<u32, String> {
        let n = self.need(key)?;
        if n.fract() != 0.0 || !(0.0..=f64::from(most)).contains(&n) {
            return Err(format!(
                "{}: {key} = {n} is not accepted: a whole number from 0 to {most}",
                self.kind
            ));
        }
        Ok(n as u32)
    }

    /// First and last cylinder of a zone, behind zones that end before `next`.
    pub(super) fn cylinders(&self, next: u32) -> Result<(u32, u32), String> {
        let [first, last] =
            ["First cylinder number", "Last cylinder number"].map(|key| self.whole(key, 1 << 24));
        let (first, last) = (first?, last?);
        if first < next || last < first {
            return Err(format!(
                "{}: no zone goes from cylinder {first} to {last} behind {next} others",
                self.kind
            ));
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
    let mut p = Parser { text: text.as_bytes(), at: 0, read, depth };
    p.top().map_err(|e| {
        let line = 1 + p.text[..p.at.min(p.text.len())].iter().filter(|&&b| b == b'\n').count();
        format!("{name}: line {line}: {e}")
    })
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    read: Read<'a>,
    depth: u32,
}

impl Parser<'_> {
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
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(format!("'{}' is missing", char::from(byte)))
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
        let mut fields = Vec::new();
        loop {
            match self.peek() {
                None => return Err(format!("the block {kind} does not end")),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Block { kind, fields });
                }
                Some(_) => {
                    let from = self.at;
                    while self.text.get(self.at).is_some_and(|&b| b != b'=' && b != b'}') {
                        self.at += 1;
                    }
                    let key = String::from_utf8_lossy(&self.text[from..self.at]);
                    let key = key.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.expect(b'=')?;
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
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None => return Err("a list does not end".to_owned()),
                Some(b']') => {
                    self.at += 1;
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
        let fields: Vec<f64> = line.split([',', ' ', '\t']).filter_map(|f| f.parse().ok()).collect();
        match fields[..] {
            [d, t] | [d, t, _] => points.push((d as u64, t, None)),
            [d, t, _, w] => points.push((d as u64, t, Some(w))),
            _ if i == 0 || line.trim().is_empty() => {}
            _ => return Err(format!("line {}: not a distance and a time", i + 1)),
        }
    }
    if points.is_empty() { Err("no point in it".to_owned()) } else { Ok(points) }
}
