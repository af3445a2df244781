//! DiskSim's default ASCII format.

use super::{Format, Sample, Verdict};
use crate::fields::{Reason, columns, extent, need, not, time, uint, uint32};
use crate::reader::LineFormat;
use crate::{Batch, Record};
use smrlab_units::{HostOp, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "disksim",
    aliases: &["disksim-ascii"],
    summary: "DiskSim ASCII: arrival_ms device block blocks flags (bit 0: 1 read, 0 write)",
    reference: "DiskSim 4.0 manual, section on input workloads. Flags are hexadecimal; blocks are 512 bytes.",
    ..Format::lines::<DiskSim>(detect)
};

/// The format's parser, also asked by the formats that look alike.
#[derive(Default)]
pub(super) struct DiskSim;

impl LineFormat for DiskSim {
    const PLAIN: bool = true;

    #[inline(always)]
    fn plain(text: &[u8]) -> Option<(Record, usize)> {
        plain(text)
    }

    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let f = &mut columns(line);
        let arrival = time(need(f, "arrival")?, 1_000_000, "arrival")?;
        let device = uint32(need(f, "device")?, "device")?;
        let first = uint(need(f, "block")?, "block")?;
        let (lba, blocks) = extent(first, uint(need(f, "blocks")?, "blocks")?)?;
        let flags = need(f, "flags")?;
        let last = flags.last().copied().and_then(|b| char::from(b).to_digit(16));
        let op = match last {
            Some(d) if flags.iter().all(|b| b.is_ascii_hexdigit() || *b == b'x') => {
                if d & 1 == 1 {
                    HostOp::Read
                } else {
                    HostOp::Write
                }
            }
            _ => return Err(not(flags, "flags", "a hexadecimal number")),
        };
        if f.next().is_some() {
            return Err(Reason::Borrowed("there are more than 5 columns"));
        }
        out.push(Record { arrival, op, lba, blocks, device, stream: 0, fua: false });
        Ok(())
    }
}

/// Takes a line as it is written nearly always, in one go: five numbers with one blank between them, the first one with up to
/// six decimals, the last one a digit. `None`: anything else, and what may reach beyond the end of `text`; that is looked at field
/// by field.
#[inline(always)]
fn plain(text: &[u8]) -> Option<(Record, usize)> {
    let text = text.first_chunk::<WINDOW>()?;
    let ms = digits(text, 0)?;
    let (ns, decimals) = if ms.follows == b'.' {
        let decimals = digits(text, ms.next)?;
        let scale = [0, 100_000, 10_000, 1000, 100, 10, 1].get(decimals.next - 1 - ms.next)?;
        (decimals.value * scale, decimals)
    } else {
        (0, ms)
    };
    let arrival = SimTime(ms.value.checked_mul(1_000_000)?.checked_add(ns)?);
    let device = few_digits(text, decimals.next)?;
    let first = digits(text, device.next)?;
    let length = few_digits(text, first.next)?;
    let [flags, end] = *text[length.next % LONGEST..].first_chunk()?;
    // Each is nearly always as it should be: one branch for all.
    let blanks = [decimals, device, first, length].iter().fold(0, |odd, n| odd | (n.follows ^ b' '));
    let whole = (blanks | (end ^ b'\n') == 0) & (flags.wrapping_sub(b'0') <= 9);
    if !whole || length.next >= LONGEST - 1 {
        return None;
    }
    let (lba, blocks) = extent(first.value, length.value).ok()?;
    let op = if flags & 1 == 1 { HostOp::Read } else { HostOp::Write };
    let device = u32::try_from(device.value).ok()?;
    Some((Record { arrival, op, lba, blocks, device, stream: 0, fua: false }, length.next + 2))
}

/// A line that is taken in one go has at most so many characters.
const LONGEST: usize = 64;

/// Characters that are there behind the beginning of such a line: a number is read eight characters at a time.
const WINDOW: usize = LONGEST + 8;

/// A number in a line.
#[derive(Clone, Copy)]
struct Number {
    value: u64,
    /// The character behind it, and where the line goes on behind that: beyond [`LONGEST`] where the number lies there, whatever it is.
    follows: u8,
    next: usize,
}

/// Eight characters from `at` on, which is below [`LONGEST`]; what is taken from elsewhere lies in a line that is too long.
#[inline(always)]
fn eight(text: &[u8; WINDOW], at: usize) -> Option<[u8; 8]> {
    text[at % LONGEST..].first_chunk().copied()
}

/// A whole number of at most 15 digits, most of them with several.
#[inline(always)]
fn digits(text: &[u8; WINDOW], at: usize) -> Option<Number> {
    let (places, mut value) = leading_digits(eight(text, at)?);
    let mut next = at + places;
    let mut follows = text[next % LONGEST];
    if follows.wrapping_sub(b'0') <= 9 {
        let (more, rest) = leading_digits(eight(text, next)?);
        value = value * POWERS.get(more)? + rest;
        next += more;
        follows = text[next % LONGEST];
    }
    (places > 0).then_some(Number { value, follows, next: next + 1 })
}

/// Of ten, up to the 7th.
const POWERS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The same of a number that mostly has one digit.
#[inline(always)]
fn few_digits(text: &[u8; WINDOW], at: usize) -> Option<Number> {
    let [first, follows, ..] = eight(text, at)?;
    let value = first.wrapping_sub(b'0');
    if (value <= 9) & (follows.wrapping_sub(b'0') > 9) {
        return Some(Number { value: u64::from(value), follows, next: at + 2 });
    }
    digits(text, at)
}

/// How many of eight characters, from the first on, are digits, and the number that they make; 0 and whatever where none is. Without a
/// branch: how long a number is cannot be predicted.
#[inline(always)]
fn leading_digits(text: [u8; 8]) -> (usize, u64) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let values = u64::from_le_bytes(text) ^ (ONES * 0x30);
    // The upper bit of the first byte that is no digit; of those behind it, whatever.
    let others = (values | values.wrapping_add(ONES * 0x76)) & (ONES * 0x80);
    let bits = others.trailing_zeros() & !7;
    // Zeros before the digits; then pairs, fours and all are put together.
    let digits = values.wrapping_shl(bits.wrapping_neg());
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let upper = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    (bits as usize / 8, upper.wrapping_add(lower) >> 32)
}

fn detect(sample: &Sample<'_>) -> Verdict {
    five_numbers(sample).map_or(Verdict::No, |f| f.disksim)
}

/// What the three formats of five numbers think of a sample.
pub(super) struct FiveNumbers {
    pub disksim: Verdict,
    pub mqsim: Verdict,
    pub msr_cut: Verdict,
}

/// Formats with five numeric columns look alike: `ms dev block blocks flags` (disksim), `ns dev block blocks op` (mqsim)
/// and `ms dev offset size op` (msr-cut). Told apart by what would be absurd in the others.
pub(super) fn five_numbers(sample: &Sample<'_>) -> Option<FiveNumbers> {
    if !sample.taken_by(DiskSim) {
        return None;
    }
    let rows: Vec<Vec<&[u8]>> =
        sample.lines().map(|l| columns(l).collect::<Vec<_>>()).filter(|r| r.len() == 5).collect();
    let number = |t: &[u8]| uint(t, "number").unwrap_or(u64::MAX);
    let whole_times = rows.iter().all(|r| !r[0].contains(&b'.'));
    let bytes = rows.iter().all(|r| number(r[2]) % 512 == 0 && number(r[3]) % 512 == 0);
    let (first, last) = (number(rows[0][0]), number(rows[rows.len() - 1][0]));
    // Mean gap above 10 s if the times were milliseconds: they are nanoseconds.
    let nanoseconds =
        whole_times && rows.len() >= 10 && last.saturating_sub(first) / rows.len() as u64 > 10_000;
    let many = rows.len() >= 20;
    use Verdict::{Maybe, No, Yes};
    Some(match (whole_times, bytes) {
        (true, _) if nanoseconds => FiveNumbers { disksim: No, mqsim: Yes, msr_cut: No },
        (true, true) => FiveNumbers { disksim: Maybe, mqsim: Maybe, msr_cut: Maybe },
        (true, false) => FiveNumbers { disksim: Maybe, mqsim: Maybe, msr_cut: No },
        (false, true) if many => FiveNumbers { disksim: No, mqsim: No, msr_cut: Yes },
        (false, true) => FiveNumbers { disksim: Maybe, mqsim: No, msr_cut: Maybe },
        (false, false) => FiveNumbers { disksim: Yes, mqsim: No, msr_cut: No },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight characters at a time, whatever follows the digits among them.
    #[test]
    fn digits_are_counted_and_put_together() {
        let number = 9_018_273_645u64;
        for places in 0..=8 {
            let value = number % 10u64.pow(places);
            for other in (0..=u8::MAX).filter(|b| !b.is_ascii_digit()) {
                let digits =
                    if places == 0 { String::new() } else { format!("{value:0>w$}", w = places as usize) };
                let mut text = [other; 8];
                text[..digits.len()].copy_from_slice(digits.as_bytes());
                if places == 0 {
                    assert_eq!(leading_digits(text).0, 0, "{text:?}");
                    continue;
                }
                assert_eq!(leading_digits(text), (digits.len(), value), "{text:?}");
                // Digits behind it are not its.
                if digits.len() < 7 {
                    text[digits.len() + 1..].fill(b'7');
                    assert_eq!(leading_digits(text), (digits.len(), value), "{text:?}");
                }
            }
        }
    }

    /// What is taken in one go is what is taken field by field.
    #[test]
    fn lines_of_any_length_are_numbers_as_they_are_written() {
        for (line, first) in [
            ("0.5 0 7 8 1", 7),
            ("12345678.123456 0 12345678 8 1", 12_345_678),
            ("12345678.123456 12 12345678 08 1", 12_345_678),
            ("999999999.1 0 123456789 8 1", 123_456_789),
            ("1 0 123456789012345 8 1", 123_456_789_012_345),
        ] {
            let text = format!("{line}\n{}", "1.5 0 100 8 1\n".repeat(5));
            let (record, length) = plain(text.as_bytes()).expect(line);
            assert_eq!(length, line.len() + 1);
            let mut batch = Batch::new();
            DiskSim.line(line.as_bytes(), &mut batch).unwrap();
            assert_eq!(batch.get(0), record);
            assert!(plain(line.as_bytes()).is_none(), "it may go on");
            for end in 0..WINDOW {
                assert!(plain(&text.as_bytes()[..end]).is_none(), "{line}: it may go on behind {end}");
            }
            assert_eq!((record.lba.0, record.blocks, record.op), (first, 8, HostOp::Read));
            let at = line.split(' ').next().unwrap_or_default().as_bytes();
            assert_eq!(record.arrival, time(at, 1_000_000, "arrival").unwrap());
        }
        // As long as it may be, and one longer; then each number beyond what is taken.
        let long = |n: usize| format!("12345678901234.123456 12345 123456789012345 {:0>n$} 1\n", 8);
        for n in 0..=16 {
            let text = long(n) + &"1.5 0 100 8 1\n".repeat(5);
            let length = long(n).len();
            assert_eq!(
                plain(text.as_bytes()).map(|r| r.1),
                (length <= LONGEST && n <= 15).then_some(length),
                "{n}"
            );
        }
        for other in [
            "12345678901234.123456 123456789012345 123456789012345 12345678 1",
            "1.5 0 100 000000000000008 000000000000000000000000000000000000001",
            "1 0 1234567890123456 8 1",
            "1 0 1234567812345678 8 1",
            "1 4294967296 1 8 1",
            "1 0 1 8  1",
            "1 0 1 8 11",
            "1. 0 1 8 1",
            "1 0 1 8 f",
            "1.1234567 0 1 8 1",
            "1 0 1 8 1 ",
            "1  0 1 8 1",
            "1 0 x 8 1",
            "1 0 1 8",
            "",
        ] {
            let text = format!("{other}\n{}", "1.5 0 100 8 1\n".repeat(5));
            assert!(plain(text.as_bytes()).is_none(), "{other}");
        }
    }
}
