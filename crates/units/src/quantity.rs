//! Quantities as users write them: `4KiB`, `25MB`, `2000blk`, `50ms`, `1%`.

use crate::{BLOCK_BYTES, Blocks, SimTime};
use thiserror::Error;

/// A quantity that could not be understood; the message names the forms that are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is not {expected}")]
pub struct QuantityError {
    text: String,
    expected: &'static str,
}

/// A size, absolute or as a share of something that the context names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In bytes.
    Bytes(u64),
    /// From 0 to 1.
    Share(f64),
}

impl Size {
    /// In blocks, rounded down; a share is taken of `whole`.
    pub fn blocks(self, whole: Blocks) -> Blocks {
        match self {
            Self::Bytes(b) => Blocks(b / BLOCK_BYTES),
            Self::Share(s) => Blocks((whole.0 as f64 * s).floor() as u64),
        }
    }
}

/// How long a band is, as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandSize {
    /// So many tracks (cylinders, where PBAs go round the surfaces).
    Tracks(u64),
    /// So many blocks.
    Blocks(u64),
    /// A number without a unit, which means what the layer's page says.
    Bare(u64),
}

impl Quantity for BandSize {
    fn parse(text: &str) -> Result<Self, QuantityError> {
        let err = || QuantityError { text: text.to_owned(), expected: BAND_FORMS };
        let (n, unit) = split(text).ok_or_else(err)?;
        let count = || parse_count(n).ok().filter(|n| *n > 0).ok_or_else(err);
        match unit {
            "" => count().map(Self::Bare),
            "track" | "tracks" => count().map(Self::Tracks),
            _ => {
                let bytes = whole(n, size_unit(unit).ok_or_else(err)?).ok_or_else(err)?;
                Some(bytes / BLOCK_BYTES).filter(|n| *n > 0).map(Self::Blocks).ok_or_else(err)
            }
        }
    }
}

/// Parsing from a user's text.
pub trait Quantity: Sized {
    /// Parses `text`.
    ///
    /// # Errors
    /// When `text` has no number, an unknown unit, or a value out of range.
    fn parse(text: &str) -> Result<Self, QuantityError>;
}

const SIZE_FORMS: &str = "a size: write 512B, 4KiB, 25MB, 2000blk or 1%";
const BAND_FORMS: &str = "the size of a band: write 25MB, 64tracks or 50000blk";
const TIME_FORMS: &str = "a time: write 800ns, 50us, 4.5ms, 10s, 5min or 2h";
const SHARE_FORMS: &str = "a share: write 25% or 0.25";
const COUNT_FORMS: &str = "a whole number: write 2000, 2_000, 1e5, 100k or 1.5M";

/// Splits a number from its unit. A number may have `_` between its digits and an exponent: `1_000`, `1e5`.
fn split(text: &str) -> Option<(&str, &str)> {
    let t = text.trim();
    let digits = |from: usize| {
        t[from..].find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).map_or(t.len(), |n| from + n)
    };
    let mut end = digits(0);
    if let Some(exponent) = t[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let from = end + 1 + sign;
        if t[from..].starts_with(|c: char| c.is_ascii_digit()) {
            end = digits(from);
        }
    }
    let (number, unit) = t.split_at(end);
    (!number.is_empty()).then_some((number, unit.trim()))
}

/// A number as [`split`] found it.
fn number(text: &str) -> Option<f64> {
    text.replace('_', "").parse().ok().filter(|n: &f64| n.is_finite())
}

/// A number times its unit, rounded, where it is below 2^64. Whole numbers of whole units are exact.
fn whole(text: &str, unit: f64) -> Option<u64> {
    if let Ok(n) = text.replace('_', "").parse::<u64>() {
        return n.checked_mul(unit as u64);
    }
    let product = number(text)? * unit;
    (0.0..1.844e19).contains(&product).then_some(product.round() as u64)
}

/// Upper and lower case mean the same: nobody means a millibyte.
fn size_unit(unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    if unit.is_empty() || unit == "b" {
        return Some(1.0);
    }
    if matches!(unit.as_str(), "blk" | "blks" | "blocks") {
        return Some(BLOCK_BYTES as f64);
    }
    let power = "kmgtp".find(unit.chars().next()?)? as i32 + 1;
    match &unit[1..] {
        "" | "ib" => Some(1024f64.powi(power)),
        "b" => Some(1000f64.powi(power)),
        _ => None,
    }
}

impl Quantity for Size {
    fn parse(text: &str) -> Result<Self, QuantityError> {
        let err = || QuantityError { text: text.to_owned(), expected: SIZE_FORMS };
        let (n, unit) = split(text).ok_or_else(err)?;
        if unit == "%" {
            let percent = number(n).filter(|n| *n <= 100.0).ok_or_else(err)?;
            return Ok(Self::Share(percent / 100.0));
        }
        size_unit(unit).and_then(|unit| whole(n, unit)).map(Self::Bytes).ok_or_else(err)
    }
}

/// A size that is no share, in bytes.
///
/// # Errors
/// When `text` is no size, a share of something, or 2^64 bytes or more.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    match Size::parse(text)? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Share(_) => Err(QuantityError {
            text: text.to_owned(),
            expected: "a size of its own: write 512B, 4KiB, 25MB or 2000blk",
        }),
    }
}

/// A span of time.
///
/// # Errors
/// When `text` has no number or no unit of time.
pub fn parse_time(text: &str) -> Result<SimTime, QuantityError> {
    let err = || QuantityError { text: text.to_owned(), expected: TIME_FORMS };
    let (n, unit) = split(text).ok_or_else(err)?;
    let ns = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        "" if number(n) == Some(0.0) => 1.0,
        _ => return Err(err()),
    };
    whole(n, ns).map(SimTime).ok_or_else(err)
}

/// A whole number as people write it: `2000`, `2_000`, `1e5`, `100k`, `1.5M`, `2G` (thousands, millions, billions).
///
/// # Errors
/// When `text` is no number, not whole, or 2^64 or more.
pub fn parse_count(text: &str) -> Result<u64, QuantityError> {
    let err = || QuantityError { text: text.to_owned(), expected: COUNT_FORMS };
    let (n, unit) = split(text).ok_or_else(err)?;
    let unit = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return Err(err()),
    };
    let value = number(n).ok_or_else(err)? * unit;
    if (value - value.round()).abs() > value * 1e-12 {
        return Err(err());
    }
    whole(n, unit).ok_or_else(err)
}

/// A share from 0 to 1, written as `25%` or `0.25`.
///
/// # Errors
/// When `text` is no number, or the share is above one.
pub fn parse_share(text: &str) -> Result<f64, QuantityError> {
    let err = || QuantityError { text: text.to_owned(), expected: SHARE_FORMS };
    let (n, unit) = split(text).ok_or_else(err)?;
    let n = number(n).ok_or_else(err)?;
    let share = match unit {
        "%" => n / 100.0,
        "" => n,
        _ => return Err(err()),
    };
    if share <= 1.0 { Ok(share) } else { Err(err()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_binary_and_decimal_units_apart() {
        assert_eq!(Size::parse("4KiB"), Ok(Size::Bytes(4096)));
        assert_eq!(Size::parse("25MB"), Ok(Size::Bytes(25_000_000)));
        assert_eq!(Size::parse("2000blk"), Ok(Size::Bytes(1_024_000)));
        assert_eq!(Size::parse("1%").map(|s| s.blocks(Blocks(600))), Ok(Blocks(6)));
    }

    #[test]
    fn letters_of_either_case_and_exponents_mean_the_same() {
        for text in ["4mb", "4MB", "4e6B", "4_000_000", "4000kb", " 4 mB "] {
            assert_eq!(Size::parse(text), Ok(Size::Bytes(4_000_000)), "{text}");
        }
        for text in ["4mib", "4MiB", "4m", "4M", "8192blk", "8192 blocks"] {
            assert_eq!(Size::parse(text), Ok(Size::Bytes(4 << 20)), "{text}");
        }
        assert_eq!(parse_bytes("18446744073709551615"), Ok(u64::MAX), "whole numbers are exact");
        assert_eq!(parse_bytes("0.5TB"), Ok(500_000_000_000));
        for bad in ["16EiB", "1e", "1ee5", "4mbb", "4bm", "1%", "e5", "1e400"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_are_what_people_write() {
        for (text, n) in
            [("2000", 2000), ("2_000", 2000), ("1e5", 100_000), ("100k", 100_000), ("1.5M", 1_500_000)]
        {
            assert_eq!(parse_count(text), Ok(n), "{text}");
        }
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        for bad in ["", "k", "1.5", "0.0005k", "-1", "1e-1", "4KiB", "1e30", "18446744073709551616"] {
            assert!(parse_count(bad).unwrap_err().to_string().contains("100k"), "{bad}");
        }
    }

    #[test]
    fn bands_have_a_unit_or_are_bare() {
        assert_eq!(BandSize::parse("64tracks"), Ok(BandSize::Tracks(64)));
        assert_eq!(BandSize::parse("50_000blk"), Ok(BandSize::Blocks(50_000)));
        assert_eq!(BandSize::parse("25MB"), Ok(BandSize::Blocks(48_828)));
        assert_eq!(BandSize::parse("64"), Ok(BandSize::Bare(64)));
        for bad in ["0", "0tracks", "1.5tracks", "100B", "1%", "many", "2 furlongs"] {
            assert!(BandSize::parse(bad).unwrap_err().to_string().contains("64tracks"), "{bad}");
        }
    }

    #[test]
    fn nonsense_names_the_accepted_forms() {
        for bad in ["", "KiB", "4 parsecs", "-3KiB", "140%", "1e400TB"] {
            assert!(Size::parse(bad).unwrap_err().to_string().contains("4KiB"), "{bad}");
        }
        assert!(parse_time("50").unwrap_err().to_string().contains("4.5ms"));
        assert!(parse_share("101%").is_err());
    }

    #[test]
    fn times_are_whole_nanoseconds() {
        assert_eq!(parse_time("4.5ms"), Ok(SimTime(4_500_000)));
        assert_eq!(parse_time("0"), Ok(SimTime::ZERO));
        assert_eq!(parse_time("50ms").unwrap().to_string(), "50ms");
    }
}
