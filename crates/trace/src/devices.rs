//! Devices that a trace calls by name get numbers in the order in which they come.

use crate::fields::{Reason, uint32};
use std::collections::HashMap;

/// Devices a trace may name; more are a sign of a wrong column.
const LIMIT: usize = 1 << 20;

/// The names seen so far. The map is only looked up in, never walked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    names: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    last: u32,
    key: Vec<u8>,
}

impl Names {
    /// The number of the device called `name`.
    ///
    /// # Errors
    /// When the trace names more than a million devices.
    #[inline]
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u32, Reason> {
        // Consecutive requests mostly go to the same device.
        if self.names.get(self.last as usize).is_some_and(|n| n == name) {
            return Ok(self.last);
        }
        self.look_up(name)
    }

    /// The number of the device called by two fields, joined by `sep`.
    ///
    /// # Errors
    /// Like [`Self::number`].
    #[inline]
    pub(crate) fn pair(&mut self, a: &[u8], sep: u8, b: &[u8]) -> Result<u32, Reason> {
        if let Some(n) = self.names.get(self.last as usize)
            && n.len() == a.len() + 1 + b.len()
            && n.starts_with(a)
            && n[a.len()] == sep
            && n.ends_with(b)
        {
            return Ok(self.last);
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend_from_slice(a);
        key.push(sep);
        key.extend_from_slice(b);
        let number = self.look_up(&key);
        self.key = key;
        number
    }

    fn look_up(&mut self, name: &[u8]) -> Result<u32, Reason> {
        if let Some(n) = self.numbers.get(name) {
            self.last = *n;
            return Ok(*n);
        }
        if self.names.len() >= LIMIT {
            return Err(Reason::Borrowed(
                "more than a million different devices: is this the device's column?",
            ));
        }
        let n = self.names.len() as u32;
        self.names.push(name.to_vec());
        self.numbers.insert(name.to_vec(), n);
        self.last = n;
        Ok(n)
    }

    /// The name of device `number`.
    pub(crate) fn name(&self, number: u32) -> String {
        self.names
            .get(number as usize)
            .map_or_else(|| number.to_string(), |n| String::from_utf8_lossy(n).into_owned())
    }
}

/// Devices that a trace calls by numbers (which are kept) or by names (which get numbers as they come); the first
/// line decides.
#[derive(Clone, Debug)]
pub(crate) enum Devices {
    /// Not known yet.
    Unknown(&'static str),
    /// Numbers, with what goes before them in a name.
    Numbers(&'static str),
    /// Names.
    Names(Names),
}

impl Devices {
    /// `prefix` goes before the number in the name of a device that has a number.
    pub(crate) fn new(prefix: &'static str) -> Self {
        Self::Unknown(prefix)
    }

    /// The number of the device that the field `text` says.
    ///
    /// # Errors
    /// When it is no number although the first device was, or there are too many names.
    pub(crate) fn number(&mut self, text: &[u8]) -> Result<u32, Reason> {
        let text = text.trim_ascii();
        if let Self::Unknown(prefix) = *self {
            let numeric = uint32(text, "device").is_ok();
            *self = if numeric { Self::Numbers(prefix) } else { Self::Names(Names::default()) };
        }
        match self {
            Self::Names(names) => names.number(text),
            _ => uint32(text, "device"),
        }
    }

    /// The name of a device.
    pub(crate) fn name(&self, number: u32) -> String {
        match self {
            Self::Names(names) => names.name(number),
            Self::Numbers(prefix) | Self::Unknown(prefix) => format!("{prefix}{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million and some; those that are known stay known.
    #[test]
    fn names_are_so_many() {
        let last = LIMIT as u32 - 1;
        let mut names = Names { names: vec![b"known".to_vec(); LIMIT - 1], ..Names::default() };
        assert_eq!(names.number(b"last"), Ok(last));
        let told = "more than a million different devices: is this the device's column?";
        assert_eq!(names.number(b"another"), Err(told.into()));
        assert_eq!((names.number(b"last"), names.name(last)), (Ok(last), "last".to_owned()));
        assert_eq!(names.name(LIMIT as u32), "1048576", "what has no name is called by its number");
    }

    /// Two fields are one name with the separator between them, wherever else that is.
    #[test]
    fn names_of_two_fields_are_told_apart() {
        let mut names = Names::default();
        let mut number = |a: &[u8], b: &[u8]| names.pair(a, b'.', b).unwrap();
        let numbers = [number(b"x", b"yz"), number(b"x.", b"z"), number(b"x", b"yz"), number(b"x", b"az")];
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!(names.number(b"x..z").unwrap(), 1);
    }
}
