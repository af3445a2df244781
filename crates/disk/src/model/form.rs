//! What reads and writes a drive file: both walk over the same fields, each of which is named once.

use crate::geometry::REVOLUTION;
use smrlab_units::{Blocks, SimTime};

/// Units of a number, each with its factor. The first one is written.
pub(super) type Units = &'static [(&'static str, f64)];

/// Numbers of packets, bands, map entries, or of anything.
pub(super) const COUNT: Units = &[("1", 1.0), ("packets", 1.0), ("bands", 1.0), ("entries", 1.0)];
/// Lengths in blocks.
pub(super) const LENGTH: Units = &[("blk", 1.0)];
/// Numbers of tracks.
pub(super) const TRACKS: Units = &[("tracks", 1.0)];
/// Numbers of cylinders.
pub(super) const CYLINDERS: Units = &[("cylinders", 1.0)];
/// Units of a time, in nanoseconds.
pub(super) const TIMES: Units = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// Units of an angle, in revolutions.
const ANGLES: Units = &[("rev", 1.0), ("deg", 1.0 / 360.0)];

/// What a number of a file stands for.
pub(super) struct Number<T> {
    pub units: Units,
    /// From the number in the first unit, or what would be accepted.
    pub read: fn(f64) -> Result<T, &'static str>,
    /// The number in the first unit.
    pub write: fn(&T) -> String,
}

/// A time, to the nearest nanosecond.
pub(super) const TIME: Number<SimTime> =
    Number { units: TIMES, read: |ns| Ok(SimTime(ns.round() as u64)), write: |t| t.0.to_string() };
/// An angle, in [`REVOLUTION`] units.
pub(super) const ANGLE: Number<u64> = Number {
    units: ANGLES,
    read: |turns| Ok((turns * REVOLUTION as f64).round() as u64),
    write: |angle| format!("{:?}", *angle as f64 / REVOLUTION as f64),
};
/// Revolutions.
pub(super) const TURNS: Number<f64> = real(ANGLES);
/// A rate, in bytes a second.
pub(super) const RATE: Number<u64> =
    Number { units: &[("B/s", 1.0), ("MB/s", 1e6)], read: |n| Ok(n as u64), write: u64::to_string };
/// A size, to the nearest block.
pub(super) const SIZE: Number<Blocks> = Number {
    units: &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("GB", 1e9)],
    read: |bytes| Ok(Blocks((bytes / 512.0).round() as u64)),
    write: |blocks| blocks.bytes().to_string(),
};
/// A length in blocks.
pub(super) const BLOCKS: Number<Blocks> =
    Number { units: LENGTH, read: |n| whole(n).map(Blocks), write: |blocks| blocks.0.to_string() };
/// A share, in thousandths.
pub(super) const SHARE: Number<u32> = Number {
    units: &[("1", 1000.0)],
    read: |n| Ok(n.round() as u32),
    write: |share| format!("{:?}", f64::from(*share) / 1000.0),
};
/// Yes or no, as 1 or 0.
pub(super) const ON: Number<bool> =
    Number { units: &[("on", 1.0)], read: |n| Ok(n > 0.0), write: |on| u8::from(*on).to_string() };

pub(super) const fn real(units: Units) -> Number<f64> {
    Number { units, read: Ok, write: |x| format!("{x:?}") }
}

/// A number of things: half a surface is a mistake, not one less.
pub(super) const fn count(units: Units) -> Number<u64> {
    Number { units, read: whole, write: u64::to_string }
}

/// The same of 32 bits. How many are accepted is looked at by whoever checks the drive.
pub(super) const fn count32(units: Units) -> Number<u32> {
    let narrow = |n| u32::try_from(whole(n)?).map_err(|_| "a whole number below 2^32");
    Number { units, read: narrow, write: u32::to_string }
}

fn whole(n: f64) -> Result<u64, &'static str> {
    if n.fract() == 0.0 { Ok(n as u64) } else { Err("a whole number") }
}

/// A table of rows of numbers.
pub(super) struct Rows<T: 'static> {
    /// What the rows are; of a geometry also the table's name.
    pub name: &'static str,
    pub columns: &'static [&'static str],
    /// So many columns have to be there.
    pub needed: usize,
    /// Columns that may hold numbers of more than 32 bits.
    pub wide: &'static [usize],
    /// From this column on numbers need not be whole.
    pub real: usize,
    pub read: fn(&[f64]) -> T,
    pub write: fn(&T) -> Vec<String>,
}

/// Walks over the fields of a file in its order. What is read replaces the value, what is written is the value; what tells whether
/// a field is right is always so where fields are written.
pub(super) trait Form {
    /// What the next field is.
    fn doc(&mut self, doc: &'static str) -> &mut Self;

    /// The version of the format.
    fn schema(&mut self);

    fn text(&mut self, key: &'static str, value: &mut String);

    /// One of `words`; whether it is.
    fn word(
        &mut self,
        key: &'static str,
        needed: bool,
        words: &[&'static str],
        value: &mut &'static str,
    ) -> bool;

    /// A number that is there or not; whether it is right.
    fn given<T>(&mut self, key: &'static str, needed: bool, of: &Number<T>, value: &mut Option<T>) -> bool;

    /// The rows of this table; whether they are right.
    fn rows<T>(&mut self, of: &Rows<T>, items: &mut Vec<T>) -> bool;

    /// A table that has to be there. Tables stand behind the other fields.
    fn table(&mut self, key: &'static str, fill: impl FnOnce(&mut Self));

    /// A table that is written where `have` says so; whether it is there.
    fn opt_table(&mut self, key: &'static str, have: bool, fill: impl FnOnce(&mut Self)) -> bool;

    /// What is wrong with a field that was read.
    fn fault(&mut self, key: &str, problem: &str);

    /// A number that has to be there; whether it is right.
    fn number<T: Copy>(&mut self, key: &'static str, of: &Number<T>, value: &mut T) -> bool {
        let mut given = Some(*value);
        let right = self.given(key, true, of, &mut given);
        *value = given.unwrap_or(*value);
        right
    }

    /// A number that stays as it is where it is left out.
    fn defaulted<T: Copy>(&mut self, key: &'static str, of: &Number<T>, value: &mut T) {
        let mut given = Some(*value);
        self.given(key, false, of, &mut given);
        *value = given.unwrap_or(*value);
    }

    /// A number that may be left out.
    fn optional<T>(&mut self, key: &'static str, of: &Number<T>, value: &mut Option<T>) {
        self.given(key, false, of, value);
    }

    /// A number that is left out where it is 0.
    fn unless_zero(&mut self, key: &'static str, of: &Number<u64>, value: &mut u64) {
        let mut given = Some(*value).filter(|n| *n > 0);
        self.given(key, false, of, &mut given);
        *value = given.unwrap_or(0);
    }

    /// A word for each value.
    fn choice<T: Copy + PartialEq>(&mut self, key: &'static str, of: &[(&'static str, T)], value: &mut T) {
        self.choice_or(key, true, of, value);
    }

    /// The same, which stays as it is where it is left out and not `needed`.
    fn choice_or<T: Copy + PartialEq>(
        &mut self,
        key: &'static str,
        needed: bool,
        of: &[(&'static str, T)],
        value: &mut T,
    ) {
        let words: Vec<&'static str> = of.iter().map(|choice| choice.0).collect();
        let mut word = of.iter().find(|choice| choice.1 == *value).map_or("", |choice| choice.0);
        self.word(key, needed, &words, &mut word);
        *value = of.iter().find(|choice| choice.0 == word).map_or(*value, |choice| choice.1);
    }
}
