//! Random requests written as lines by the words of each format's page, among blank lines, lines of other systems and bad ones, in files
//! longer than what is read at once; what is read is what was written.

use smrlab_trace::{Batch, TraceSource, open_bytes, read_all};
use smrlab_units::HostOp;
use smrlab_units::rng::Rng;

/// Arrival in ns, device, operation, first byte, bytes.
#[derive(Clone, Copy, Debug)]
struct Request {
    ns: u64,
    device: u64,
    reads: bool,
    byte: u64,
    bytes: u64,
}

/// How a format writes a request, and what it keeps of it: nanoseconds of its clock, whole blocks only.
struct Writer {
    format: &'static str,
    tick: u64,
    whole: bool,
    line: fn(&Request) -> String,
    device: fn(u64) -> String,
}

fn rw(r: &Request, read: &'static str, write: &'static str) -> &'static str {
    if r.reads { read } else { write }
}

const WRITERS: &[Writer] = &[
    Writer {
        format: "disksim",
        tick: 1,
        whole: true,
        line: |r| {
            let (block, n) = (r.byte / 512, r.bytes / 512);
            let ms = format!("{}.{:06}", r.ns / 1_000_000, r.ns % 1_000_000);
            // As some write it, and as others do.
            match r.ns % 3 {
                0 => format!("{ms} {} {block} {n} {}", r.device, u8::from(r.reads)),
                1 => format!("  {ms}\t{}  {block} {n} {}", r.device, rw(r, "0xb", "c")),
                _ => format!("{ms} {} {block:09} {n:04} {}", r.device, rw(r, "7", "4")),
            }
        },
        device: |d| d.to_string(),
    },
    Writer {
        format: "mqsim",
        tick: 1,
        whole: true,
        line: |r| format!("{} {} {} {} {}", r.ns, r.device, r.byte / 512, r.bytes / 512, rw(r, "1", "0")),
        device: |d| d.to_string(),
    },
    Writer {
        format: "msr-cut",
        tick: 1,
        whole: false,
        line: |r| {
            let ms = format!("{}.{:06}", r.ns / 1_000_000, r.ns % 1_000_000);
            format!("{ms} {} {} {} {}", r.device, r.byte, r.bytes, rw(r, "1", "0"))
        },
        device: |d| format!("d{d}"),
    },
    Writer {
        format: "spc",
        tick: 1,
        whole: false,
        line: |r| {
            let s = format!("{}.{:09}", r.ns / 1_000_000_000, r.ns % 1_000_000_000);
            format!("{},{},{},{},{s}", r.device, r.byte / 512, r.bytes, rw(r, "r", "W"))
        },
        device: |d| format!("asu{d}"),
    },
    Writer {
        format: "alibaba",
        tick: 1000,
        whole: false,
        line: |r| {
            format!(
                "{},{},{},{},{}",
                r.device,
                rw(r, "R", "W"),
                r.byte,
                r.bytes,
                1_577_808_000_000_000 + r.ns / 1000
            )
        },
        device: |d| d.to_string(),
    },
    Writer {
        format: "tencent",
        tick: 1_000_000_000,
        whole: true,
        line: |r| {
            let s = 1_538_323_200 + r.ns / 1_000_000_000;
            format!("{s},{},{},{},{}", r.byte / 512, r.bytes / 512, rw(r, "0", "1"), r.device)
        },
        device: |d| format!("v{d}"),
    },
    Writer {
        format: "systor17",
        tick: 1,
        whole: false,
        line: |r| {
            let s = format!("{}.{:09}", 1_455_592_560 + r.ns / 1_000_000_000, r.ns % 1_000_000_000);
            format!("{s},{},{},{},{},{}", rw(r, "0.5", ""), rw(r, "R", "W"), r.device, r.byte, r.bytes)
        },
        device: |d| format!("LUN{d}"),
    },
    Writer {
        format: "diskmon",
        tick: 1000,
        whole: true,
        line: |r| {
            let s = format!("{}.{:06}", r.ns / 1_000_000_000, r.ns % 1_000_000_000 / 1000);
            format!(
                "7\t{s}\t0.25\t{}\t{}\t{}\t{}",
                r.device,
                rw(r, "Read", "Write"),
                r.byte / 512,
                r.bytes / 512
            )
        },
        device: |d| format!("disk{d}"),
    },
    Writer {
        format: "fiu",
        tick: 1,
        whole: true,
        line: |r| {
            let (block, n) = (r.byte / 512, r.bytes / 512);
            format!("{} 892 a name {block} {n} {} 6 {} 0f", r.ns, rw(r, "R", "W"), r.device)
        },
        device: |d| format!("6:{d}"),
    },
    Writer {
        format: "msr",
        tick: 100,
        whole: false,
        line: |r| {
            let ticks = 128_166_372_000_000_000 + r.ns / 100;
            format!("{ticks},srv,{},{},{},{},41286", r.device, rw(r, "Read", "Write"), r.byte, r.bytes)
        },
        device: |d| format!("srv_{d}"),
    },
];

/// Requests in order of time on this clock.
fn any_requests(rng: &mut Rng, w: &Writer, n: u64) -> Vec<Request> {
    let (mut ns, unit) = (0, if w.whole || w.format == "spc" { 512 } else { 1 });
    let next = |_| {
        ns += w.tick * [0, rng.below(50), rng.below(900_000)][rng.below(3) as usize];
        let far = [1 << 12, 1 << 20, 1 << 36][rng.below(3) as usize];
        let byte = rng.below(far) / unit * unit;
        let bytes = (1 + rng.below(300)) * if w.whole { 512 } else { 1 + rng.below(700) };
        Request { ns, device: rng.below(3), reads: rng.one_in(2), byte, bytes }
    };
    (0..n).map(next).collect()
}

/// The row of a request: what it touches in blocks.
fn row(w: &Writer, origin: u64, r: &Request) -> (u64, String, HostOp, u64, u32) {
    let first = r.byte / 512;
    let op = if r.reads { HostOp::Read } else { HostOp::Write };
    let n = (r.byte + r.bytes).div_ceil(512) - first;
    (r.ns / w.tick * w.tick - origin, (w.device)(r.device), op, first, n as u32)
}

fn rows(source: &mut dyn TraceSource) -> Vec<(u64, String, HostOp, u64, u32)> {
    let all: Batch = read_all(source).unwrap_or_else(|e| panic!("{e}"));
    assert!(all.iter().all(|r| !r.fua && r.stream == 0), "none of these formats tells FUA or streams");
    let row = |r: smrlab_trace::Record| (r.arrival.0, source.device_name(r.device), r.op, r.lba.0, r.blocks);
    all.iter().map(row).collect()
}

#[test]
fn what_is_read_is_what_was_written() {
    let mut rng = Rng::new(90);
    for w in WRITERS {
        // More than is read at once of the one, in several batches; few of the others.
        let n = if w.format == "disksim" { 50_000 } else { 700 };
        let all = any_requests(&mut rng, w, n);
        let (mut text, mut bad, mut line, mut last_bad) = (String::new(), 0, 0, 0);
        for (i, r) in all.iter().enumerate() {
            if i > 60 && rng.one_in(40) {
                (bad, line) = (bad + 1, line + 1);
                last_bad = line;
                text.push_str(["x y z\n", "1;2;3\r\n"][rng.below(2) as usize]);
            }
            if rng.one_in(50) {
                line += 1;
                text.push_str(["\n", "\r\n"][rng.below(2) as usize]);
            }
            line += 1;
            text.push_str(&(w.line)(r));
            text.push_str(if rng.one_in(3) { "\r\n" } else { "\n" });
        }
        // The last line has no end.
        text.truncate(text.trim_end().len());
        let format = w.format;
        let item = |skip: u64| format!("{format},start=zero,skip_bad={skip}");
        let mut source =
            open_bytes(text.clone().into_bytes(), &item(bad)).unwrap_or_else(|e| panic!("{format}: {e}"));
        let origin = all[0].ns / w.tick * w.tick;
        let want: Vec<_> = all.iter().map(|r| row(w, origin, r)).collect();
        let got = rows(&mut source);
        let first = got.iter().zip(&want).position(|(a, b)| a != b);
        assert!(first.is_none(), "{format}: {:?}", first.map(|i| (&got[i], &want[i], (w.line)(&all[i]))));
        assert_eq!((got.len(), source.skipped()), (want.len(), bad), "{format}");
        let mut source =
            open_bytes(text.into_bytes(), &item(bad - 1)).unwrap_or_else(|e| panic!("{format}: {e}"));
        let e = read_all(&mut source).unwrap_err().to_string();
        assert!(
            e.contains(&format!("line {last_bad}")),
            "{format}: {e}, and the last bad line is {last_bad}"
        );
    }
}

/// What is written in one format is taken for no other: what it says is the same whether or not its name is given.
#[test]
fn a_format_is_told_from_the_others() {
    let mut rng = Rng::new(91);
    // Those of five numbers may be one another.
    for w in WRITERS.iter().filter(|w| !["mqsim", "msr-cut"].contains(&w.format)) {
        let all = any_requests(&mut rng, w, 60);
        let lines = all.iter().map(|r| (w.line)(r) + "\n");
        let header = if w.format == "systor17" { "Timestamp,Response,IOType,LUN,Offset,Size\n" } else { "" };
        let text: String = std::iter::once(header.to_owned()).chain(lines).collect();
        let named = rows(&mut open_bytes(text.clone().into_bytes(), w.format).unwrap());
        let mut source =
            open_bytes(text.into_bytes(), "auto").unwrap_or_else(|e| panic!("{}: {e}", w.format));
        assert!(rows(&mut source) == named, "{}", w.format);
    }
}
