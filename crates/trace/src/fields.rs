//! Fields and numbers of a text line, read where they lie: no copies, no floating point where digits will do.

use smrlab_units::{BLOCK_BYTES, HostOp, Lba, SimTime};
use std::borrow::Cow;

/// Why a line or record is refused, in words.
pub type Reason = Cow<'static, str>;

/// Splits at every `sep`.
pub struct Separated<'a> {
    rest: Option<&'a [u8]>,
    sep: u8,
}

/// The fields of a line with one separator character, empty fields included.
pub fn separated(line: &[u8], sep: u8) -> Separated<'_> {
    Separated { rest: Some(line), sep }
}

impl<'a> Iterator for Separated<'a> {
    type Item = &'a [u8];
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        // Fields are short: a plain loop beats memchr's set-up.
        match rest.iter().position(|b| *b == self.sep) {
            Some(i) => {
                self.rest = Some(&rest[i + 1..]);
                Some(&rest[..i])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// Splits at runs of blanks and tabs.
pub struct Blank<'a>(&'a [u8]);

/// The fields of a line in columns: any run of blanks or tabs separates.
pub fn columns(line: &[u8]) -> Blank<'_> {
    Blank(line)
}

impl<'a> Iterator for Blank<'a> {
    type Item = &'a [u8];
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|b| !matches!(b, b' ' | b'\t'))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }
}

/// The next field, or why there is none.
///
/// # Errors
/// When the line has ended; the reason names the field.
#[inline]
pub fn need<'a>(fields: &mut impl Iterator<Item = &'a [u8]>, name: &'static str) -> Result<&'a [u8], Reason> {
    fields.next().ok_or_else(|| Reason::Owned(format!("field '{name}' is missing")))
}

#[cold]
fn bad(name: &str, what: &str, text: &[u8]) -> Reason {
    let shown = String::from_utf8_lossy(&text[..text.len().min(24)]).into_owned();
    Reason::Owned(format!("{name} '{shown}' is not {what}"))
}

/// Why a text is no whole number of 64 bits.
#[cold]
fn not_counted(name: &str, text: &[u8]) -> Reason {
    bad(name, if too_large(text) { "a whole number below 2^64" } else { "a whole number" }, text)
}

/// Whether a text that is no whole number of 64 bits is one of more.
fn too_large(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit) && text.iter().skip_while(|b| **b == b'0').count() >= 20
}

/// A whole number behind zeros.
#[cold]
fn long(text: &[u8], name: &'static str) -> Result<u64, Reason> {
    let zeros = text.iter().take_while(|b| **b == b'0').count();
    let digits = &text[zeros..];
    if zeros == 0 || digits.is_empty() || digits.len() > 20 {
        return Err(not_counted(name, text));
    }
    uint(digits, name)
}

/// A whole number in decimal digits.
///
/// # Errors
/// When there is anything else in the field, or more than 64 bits.
#[inline]
pub fn uint(text: &[u8], name: &'static str) -> Result<u64, Reason> {
    let text = text.trim_ascii();
    if text.is_empty() || text.len() > 20 {
        return long(text, name);
    }
    let mut n = 0u64;
    if text.len() < 19 {
        for b in text {
            let d = b.wrapping_sub(b'0');
            if d > 9 {
                return Err(bad(name, "a whole number", text));
            }
            n = n * 10 + u64::from(d);
        }
        return Ok(n);
    }
    for b in text {
        let d = b.wrapping_sub(b'0');
        let next = n.checked_mul(10).and_then(|n| n.checked_add(u64::from(d)));
        match next {
            Some(next) if d <= 9 => n = next,
            _ => return Err(not_counted(name, text)),
        }
    }
    Ok(n)
}

/// A whole number, hexadecimal where it begins with `0x`.
///
/// # Errors
/// Like [`uint`].
#[inline]
pub fn number(text: &[u8], name: &'static str) -> Result<u64, Reason> {
    let text = text.trim_ascii();
    match text {
        [b'0', b'x' | b'X', digits @ ..] => {
            hex(digits, name).map_err(|_| bad(name, "a hexadecimal number", text))
        }
        _ => uint(text, name),
    }
}

/// A whole number in hexadecimal digits, without a prefix.
///
/// # Errors
/// When there is anything else in the field, or more than 64 bits.
pub fn hex(text: &[u8], name: &'static str) -> Result<u64, Reason> {
    let digits = text.trim_ascii();
    let n = digits.iter().try_fold(0u64, |n, b| {
        let d = char::from(*b).to_digit(16)?;
        n.checked_mul(16)?.checked_add(u64::from(d))
    });
    n.filter(|_| !digits.is_empty()).ok_or_else(|| bad(name, "a hexadecimal number below 2^64", digits))
}

/// A whole number that fits 32 bits.
///
/// # Errors
/// Like [`uint`], and above 2^32 - 1.
#[inline]
pub fn uint32(text: &[u8], name: &'static str) -> Result<u32, Reason> {
    u32::try_from(uint(text, name)?).map_err(|_| bad(name, "a whole number below 2^32", text))
}

/// A decimal number of units of `unit_ns` nanoseconds as whole nanoseconds, exact up to 18 decimals, then rounded to
/// the nearest.
///
/// # Errors
/// When it is negative, no number, or beyond 584 years.
#[inline]
pub fn time(text: &[u8], unit_ns: u64, name: &'static str) -> Result<SimTime, Reason> {
    let text = text.trim_ascii();
    let Some(dot) = text.iter().position(|b| !b.is_ascii_digit()) else {
        return whole(text, name)?.checked_mul(unit_ns).map(SimTime).ok_or_else(|| too_late(text, name));
    };
    if text[dot] != b'.' || text.len() == 1 {
        return time_with_exponent(text, unit_ns, name);
    }
    let seconds = if dot == 0 { 0 } else { whole(&text[..dot], name)? };
    let decimals = &text[dot + 1..];
    let (mut fraction, mut scale) = (0u64, 1u64);
    for b in &decimals[..decimals.len().min(18)] {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return time_with_exponent(text, unit_ns, name);
        }
        fraction = fraction * 10 + u64::from(d);
        scale *= 10;
    }
    let part = if unit_ns.is_power_of_two() && unit_ns == 1 {
        u64::from(fraction * 2 >= scale && scale > 1)
    } else {
        ((u128::from(fraction) * u128::from(unit_ns) * 2 + u128::from(scale)) / (2 * u128::from(scale)))
            as u64
    };
    let ns = seconds.checked_mul(unit_ns).and_then(|w| w.checked_add(part));
    ns.map(SimTime).ok_or_else(|| too_late(text, name))
}

/// The whole part of a time.
#[inline]
fn whole(text: &[u8], name: &'static str) -> Result<u64, Reason> {
    uint(text, name).map_err(|reason| if too_large(text) { too_late(text, name) } else { reason })
}

#[cold]
fn too_late(text: &[u8], name: &str) -> Reason {
    bad(name, "a time below 584 years", text)
}

/// Ticks of 100 ns from 1601 to 1970.
const TICKS_TO_1970: u64 = 116_444_736_000_000_000;

/// A Windows filetime (ticks of 100 ns since 1601) in nanoseconds since 1970, so that dates of our days fit 63 bits.
/// Earlier ones are taken as counts from the start of a recording.
///
/// # Errors
/// When it is no whole number, or beyond the year 2554.
#[inline]
pub fn filetime(text: &[u8], name: &'static str) -> Result<SimTime, Reason> {
    let ticks = whole(text.trim_ascii(), name)?;
    let since = ticks.checked_sub(TICKS_TO_1970).unwrap_or(ticks);
    since.checked_mul(100).map(SimTime).ok_or_else(|| too_late(text, name))
}

#[cold]
fn time_with_exponent(text: &[u8], unit_ns: u64, name: &'static str) -> Result<SimTime, Reason> {
    let value = std::str::from_utf8(text).ok().and_then(|t| t.parse::<f64>().ok());
    match value.map(|v| v * unit_ns as f64) {
        Some(ns) if (0.0..1.8e19).contains(&ns) => Ok(SimTime(ns.round() as u64)),
        Some(ns) if ns > 0.0 => Err(too_late(text, name)),
        _ => Err(bad(name, "a time from 0 on", text)),
    }
}

/// `R`, `r`, `Read`, `0x28`-like words are each format's own: this one takes a word by its first letter.
///
/// # Errors
/// When the first letter is neither R nor W.
#[inline]
pub fn read_or_write(text: &[u8], name: &'static str) -> Result<HostOp, Reason> {
    match text.trim_ascii().first() {
        Some(b'R' | b'r') => Ok(HostOp::Read),
        Some(b'W' | b'w') => Ok(HostOp::Write),
        _ => Err(bad(name, "Read or Write", text)),
    }
}

/// A field that is not one of the accepted values.
#[cold]
pub fn not(text: &[u8], name: &'static str, accepted: &str) -> Reason {
    bad(name, accepted, text)
}

/// The blocks that `size` bytes at byte `offset` touch.
///
/// # Errors
/// When the size is zero, or the extent goes beyond 2^64 bytes or 2^32 blocks.
#[inline]
pub fn touched(offset: u64, size: u64) -> Result<(Lba, u32), Reason> {
    if size == 0 {
        return Err(Reason::Borrowed("the request has size 0"));
    }
    let end = offset.checked_add(size).ok_or(Reason::Borrowed("the request ends beyond 2^64 bytes"))?;
    let first = offset / BLOCK_BYTES;
    extent(first, end.div_ceil(BLOCK_BYTES) - first)
}

/// An extent in blocks.
///
/// # Errors
/// When it is empty, longer than 2^32 - 1 blocks, or ends beyond 2^63 blocks.
#[inline]
pub fn extent(lba: u64, blocks: u64) -> Result<(Lba, u32), Reason> {
    if blocks == 0 {
        return Err(Reason::Borrowed("the request has size 0"));
    }
    let n = u32::try_from(blocks).map_err(|_| Reason::Borrowed("the request is longer than 2^32 blocks"))?;
    if lba > (i64::MAX as u64) - blocks {
        return Err(Reason::Borrowed("the request ends beyond 2^63 blocks"));
    }
    Ok((Lba(lba), n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_where_floating_point_is_not() {
        assert_eq!(time(b"128166385.295514663", 1_000_000_000, "t"), Ok(SimTime(128_166_385_295_514_663)));
        assert_eq!(time(b"0.0005", 1_000_000, "t"), Ok(SimTime(500)));
        assert_eq!(time(b"17.", 1_000, "t"), Ok(SimTime(17_000)));
        assert_eq!(time(b"1.5", 1, "t"), Ok(SimTime(2)));
        assert_eq!(time(b"1.5e-3", 1_000_000_000, "t"), Ok(SimTime(1_500_000)));
        for bad in [&b"-1"[..], b"", b".", b"1.2.3", b"nan", b"99999999999999999999", b"18446744073.8"] {
            assert!(time(bad, 1_000_000_000, "t").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn times_that_are_too_late_are_told_so() {
        for text in [
            "99999999999999999999",
            "1000000000000000000000.5",
            "18446744074",
            "1e30",
            "inf",
            "18446744074.5",
        ] {
            let said = time(text.as_bytes(), 1_000_000_000, "time").unwrap_err();
            assert!(said.ends_with("is not a time below 584 years"), "{said}");
        }
        assert!(filetime(b"99999999999999999999", "time").unwrap_err().contains("584 years"));
        assert!(time(b"-1e30", 1, "time").unwrap_err().contains("a time from 0 on"));
        assert!(time(b"12a456789012345678901", 1, "time").unwrap_err().contains("a time from 0 on"));
    }

    #[test]
    fn numbers_stop_at_64_bits() {
        assert_eq!(uint(b"18446744073709551615", "n"), Ok(u64::MAX));
        for large in ["18446744073709551616", "000100000000000000000000"] {
            assert!(uint(large.as_bytes(), "n").unwrap_err().contains("a whole number below 2^64"));
        }
        assert_eq!(uint(b"000000000000000000000017", "n"), Ok(17));
        assert!(uint(b"12a", "n").unwrap_err().contains("n '12a'"));
    }

    #[test]
    fn hexadecimal_numbers_have_a_prefix() {
        assert_eq!(number(b"0x0a3e5e8000", "n"), Ok(0x0a_3e5e_8000));
        assert_eq!(number(b" 12 ", "n"), Ok(12));
        assert_eq!(hex(b"fF", "n"), Ok(255));
        for bad in [&b"0x"[..], b"0x1g", b"ff", b"0x11111111111111111", b""] {
            assert!(number(bad, "n").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn unaligned_bytes_become_the_blocks_they_touch() {
        assert_eq!(touched(511, 2), Ok((Lba(0), 2)));
        assert_eq!(touched(512, 512), Ok((Lba(1), 1)));
        assert_eq!(touched(512, 513), Ok((Lba(1), 2)));
        assert!(touched(u64::MAX, 1).is_err() && touched(0, 0).is_err());
    }

    #[test]
    fn fields_keep_empty_ones_and_columns_do_not() {
        let f: Vec<_> = separated(b"a,,b", b',').collect();
        assert_eq!(f, [&b"a"[..], b"", b"b"]);
        let c: Vec<_> = columns(b"  a\t b ").collect();
        assert_eq!(c, [b"a", b"b"]);
    }
}
