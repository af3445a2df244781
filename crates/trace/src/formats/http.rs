//! Web-server logs (common and combined log format) rebuilt into block requests, as studies of arrays did.
//!
//! The file-layout model, all of it assumed:
//! - every URL (query included) is a file; a file gets its place when it is first sent, behind the file placed before it,
//!   with as many whole file-system blocks (`block`) as that response had bytes;
//! - a response that is longer than the file's place moves the file to a new place at the end;
//! - a `GET` answered 200 or 206 reads the file from its start, as many bytes as were sent, in requests of at most `max`
//!   that arrive together; everything else (304, errors, HEAD, POST) moves no data; there is no cache;
//! - a `PUT` answered with success writes the file instead.
//!
//! Memory: 24 bytes and the map's overhead per URL.

use super::{Clock, Format};
use crate::fields::{Reason, not, uint};
use crate::layout::{Layout, hash};
use crate::reader::{LineFormat, Lines};
use crate::{Batch, Record};
use smrlab_units::spec::{Kind, Param, Values};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, Lba, SimTime};

/// The registry entry.
pub(super) const FORMAT: Format = Format {
    name: "http",
    aliases: &["clf", "http-log"],
    summary: "web-server log (common or combined) rebuilt into reads of files laid out in order of first use",
    reference: "Apache common and combined log format; the rebuilding follows studies of arrays that made block traces from HTTP logs. \
                Times have whole seconds: requests of one second arrive together. Logs are written when a response ends, so \
                times run back a little: sorted within sort_window.",
    params: &[
        Param::new("block", Kind::Size, "4KiB")
            .doc("file-system block: files begin and end at multiples of it (assumed)"),
        Param::new("max", Kind::Size, "128KiB")
            .doc("longest request that a file is read with (assumed: Linux' default read-ahead)"),
    ],
    clock: Clock::World,
    sort_window: "300s",
    ..Format::stream(
        |sample| sample.all_lines(|l| parse(l).is_ok()).into(),
        |input, v, tolerance| {
            let format = Http::new(v).map_err(crate::TraceError::Spec)?;
            Ok(Box::new(Lines::new(input, format, tolerance)))
        },
    )
};

struct Http {
    layout: Layout,
    max: u64,
}

impl Http {
    fn new(v: &Values) -> Result<Self, smrlab_units::spec::SpecError> {
        let size = |key: &str| {
            let n = v.size(key, Blocks::ZERO).0;
            if (1..=1 << 21).contains(&n) { Ok(n) } else { Err(v.bad(key, "from 512B to 1GiB")) }
        };
        Ok(Self { layout: Layout::new(size("block")?), max: size("max")? })
    }
}

/// A line taken apart.
struct Hit<'a> {
    seconds: u64,
    method: &'a [u8],
    url: &'a [u8],
    status: u64,
    bytes: u64,
}

fn parse(line: &[u8]) -> Result<Hit<'_>, Reason> {
    let open = memchr::memchr(b'[', line).ok_or("there is no [date]")?;
    let date = line.get(open + 1..open + 27).ok_or("the date is cut short")?;
    let seconds = unix_seconds(date).ok_or_else(|| not(date, "date", "like 01/Jul/1995:00:00:01 -0400"))?;
    let rest = &line[open + 27..];
    let quote = memchr::memchr(b'"', rest).ok_or("there is no quoted request")? + 1;
    // A URL may hold quotes: the request ends at the quote that a status code follows.
    let digits =
        |s: &[u8]| s.len() >= 5 && s[0] == b' ' && s[1..4].iter().all(u8::is_ascii_digit) && s[4] == b' ';
    let end = memchr::memchr_iter(b'"', &rest[quote..])
        .map(|i| quote + i)
        .find(|i| digits(&rest[i + 1..]))
        .ok_or("no status follows the quoted request")?;
    let mut words = rest[quote..end].split(|b| *b == b' ').filter(|w| !w.is_empty());
    let mut after = rest[end + 2..].split(|b| *b == b' ');
    let status = uint(after.next().unwrap_or_default(), "status")?;
    let bytes = match after.next() {
        None => return Err("the number of bytes is missing".into()),
        Some(b"-") => 0,
        Some(n) => uint(n, "bytes")?,
    };
    let (method, url) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    Ok(Hit { seconds, method, url, status, bytes })
}

/// `01/Jul/1995:00:00:01 -0400` in seconds since 1970.
fn unix_seconds(d: &[u8]) -> Option<u64> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let number = |from: usize, to: usize| uint(&d[from..to], "date").ok().map(|n| n as i64);
    let month = MONTHS.chunks(3).position(|m| m == &d[3..6])? as i64 + 1;
    let (day, year) = (number(0, 2)?, number(7, 11)?);
    let (h, m, s) = (number(12, 14)?, number(15, 17)?, number(18, 20)?);
    let zone = (number(22, 24)? * 60 + number(24, 26)?) * if d[21] == b'-' { -60 } else { 60 };
    // Days from a civil date, years beginning in March (the usual closed form).
    let y = if month <= 2 { year - 1 } else { year };
    let (era, shifted) = (y.div_euclid(400), (month + 9) % 12);
    let of_era = y.rem_euclid(400);
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + (153 * shifted + 2) / 5 + day - 1;
    let days = era * 146_097 + day_of_era - 719_468;
    u64::try_from(days * 86_400 + h * 3_600 + m * 60 + s - zone).ok()
}

impl LineFormat for Http {
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Reason> {
        let hit = parse(line)?;
        let op = match (hit.method, hit.status) {
            (b"GET", 200 | 206) => HostOp::Read,
            (b"PUT", 200..=299) => HostOp::Write,
            _ => return Ok(()),
        };
        if hit.bytes == 0 {
            return Ok(());
        }
        if hit.bytes > 1 << 40 {
            return Err("a response of more than 1 TiB".into());
        }
        let blocks = hit.bytes.div_ceil(BLOCK_BYTES);
        let mut lba = self.layout.place(hash(hit.url), blocks)?;
        let ns = hit.seconds.checked_mul(1_000_000_000).ok_or("the date is beyond 584 years")?;
        let arrival = SimTime(ns);
        let end = lba + blocks;
        while lba < end {
            let n = (end - lba).min(self.max);
            out.push(Record {
                arrival,
                op,
                lba: Lba(lba),
                blocks: n as u32,
                device: 0,
                stream: 0,
                fua: false,
            });
            lba += n;
        }
        Ok(())
    }

    fn empty_hint(&self) -> Option<String> {
        Some("no line of the log moved data (GET with 200 or 206)".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_body_has_no_bytes() {
        let hit = |end: &str| {
            let line = format!("h - u [01/Jul/1995:00:00:04 -0400] \"GET /a HTTP/1.1\" 200 {end}");
            parse(line.as_bytes()).unwrap().bytes
        };
        assert_eq!((hit("-"), hit("0"), hit("17")), (0, 0, 17));
    }

    /// A request ends at the quote behind which a status of three digits stands, whatever stands behind others.
    #[test]
    fn a_quote_in_a_url_does_not_end_it() {
        for within in [" 2001 X", " 20 X", " 2x0 X", "200 5", " 200", ""] {
            let line = format!("h - - [01/Jul/1995:00:00:04 -0400] \"GET /a\"{within}\" 200 5");
            let hit = parse(line.as_bytes()).unwrap();
            assert_eq!((hit.status, hit.bytes, hit.url.starts_with(b"/a\"")), (200, 5, true), "{line}");
        }
    }

    #[test]
    fn dates_become_seconds_since_1970() {
        assert_eq!(unix_seconds(b"01/Jan/1970:00:00:00 +0000"), Some(0));
        assert_eq!(unix_seconds(b"01/Jul/1995:00:00:01 -0400"), Some(804_571_201));
        assert_eq!(unix_seconds(b"29/Feb/2000:12:00:00 +0100"), Some(951_822_000));
        assert_eq!(unix_seconds(b"01/Foo/1995:00:00:01 -0400"), None);
    }

    /// Sizes from a block to a GiB, both included.
    #[test]
    fn sizes_have_bounds() {
        let taken = |text: &str| {
            let params: Vec<_> = FORMAT.parameters();
            let values =
                Values::check("http", &params, &smrlab_units::spec::split_item(&format!("http,{text}")).1)
                    .unwrap();
            Http::new(&values).is_ok()
        };
        assert_eq!(
            ["512B", "1GiB", "0B", "1025MiB"].map(|size| taken(&format!("max={size}"))),
            [true, true, false, false]
        );
        assert_eq!(
            ["512B", "1GiB", "0B", "1025MiB"].map(|size| taken(&format!("block={size}"))),
            [true, true, false, false]
        );
    }
}
