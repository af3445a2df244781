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

/// Parsing from a user's text.
pub trait Quantity: Sized {
    /// Parses `text`.
    ///
    /// # Errors
    /// When `text` has no number, an unknown unit, or a value out of range.
    fn parse(text: &str) -> Result<Self, QuantityError>;
}

const SIZE_FORMS: &str = "a size: write 512B, 4KiB, 25MB, 2000blk or 1%";
const TIME_FORMS: &str = "a time: write 800ns, 50us, 4.5ms, 10s, 5min or 2h";
const SHARE_FORMS: &str = "a share: write 25% or 0.25";

/// Splits a number from its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let t = text.trim();
    let end = t.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(t.len());
    let (num, unit) = t.split_at(end);
    Some((num.replace('_', "").parse().ok()?, unit.trim()))
}

fn size_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "B" => 1.0,
        "blk" => BLOCK_BYTES as f64,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" | "K" | "k" => 1024.0,
        "MiB" | "M" => 1024.0 * 1024.0,
        "GiB" | "G" => 1024.0 * 1024.0 * 1024.0,
        "TiB" | "T" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

impl Quantity for Size {
    fn parse(text: &str) -> Result<Self, QuantityError> {
        let err = || QuantityError { text: text.to_owned(), expected: SIZE_FORMS };
        let (n, unit) = split(text).ok_or_else(err)?;
        if unit == "%" {
            return if n <= 100.0 { Ok(Self::Share(n / 100.0)) } else { Err(err()) };
        }
        let bytes = n * size_unit(unit).ok_or_else(err)?;
        if bytes > 1e19 { Err(err()) } else { Ok(Self::Bytes(bytes.round() as u64)) }
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
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        "" if n == 0.0 => 1.0,
        _ => return Err(err()),
    };
    if n * ns > 1e19 { Err(err()) } else { Ok(SimTime((n * ns).round() as u64)) }
}

/// A share from 0 to 1, written as `25%` or `0.25`.
///
/// # Errors
/// When `text` is no number, or the share is above one.
pub fn parse_share(text: &str) -> Result<f64, QuantityError> {
    let err = || QuantityError { text: text.to_owned(), expected: SHARE_FORMS };
    let (n, unit) = split(text).ok_or_else(err)?;
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
