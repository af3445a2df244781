//! Random events written as lines by the words of each format's page, with what a kernel or tool writes beside them; a second reader of
//! this file says what they are.

use super::support::written::{Row, Written, check};
use smrlab_trace::Record;
use smrlab_units::HostOp::{self, Append, Discard, Flush, Read, Write};
use smrlab_units::ZoneAction;
use smrlab_units::rng::Rng;
use std::collections::HashMap;

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Below one of these numbers.
fn below(rng: &mut Rng, of: &[u64]) -> u64 {
    let n = pick(rng, of);
    rng.below(n)
}

/// What RWBS letters say: operation and FUA; none moves data or is a zone's.
const LETTERS: &[(&str, HostOp, bool)] = &[
    ("R", Read, false),
    ("RA", Read, false),
    ("RSM", Read, false),
    ("W", Write, false),
    ("WS", Write, false),
    ("WFS", Write, true),
    ("FWS", Write, false),
    ("FWFSM", Write, true),
    ("D", Discard, false),
    ("DS", Discard, false),
    ("ZA", Append, false),
    ("ZAS", Append, false),
];

const ZONES: &[(&str, HostOp)] = &[
    ("ZR", HostOp::Zone(ZoneAction::Reset)),
    ("ZF", HostOp::Zone(ZoneAction::Finish)),
    ("ZO", HostOp::Zone(ZoneAction::Open)),
    ("ZCS", HostOp::Zone(ZoneAction::Close)),
];

/// The end of a line of blkparse behind its RWBS letters, and what it asks for.
fn asked(rng: &mut Rng) -> (String, Option<(HostOp, u64, u32, bool)>) {
    let (sector, n) = (below(rng, &[1 << 10, 1 << 30, 1 << 41]), 1 + below(rng, &[3, 2000]));
    match rng.below(8) {
        0 => {
            let (letters, op) = pick(rng, ZONES);
            let behind = pick(rng, &["", " + 0", " + 8", " [bash]"]);
            (format!("{letters} {sector}{behind}"), Some((op, sector, 1, false)))
        }
        1 => {
            let all = Some((HostOp::Zone(ZoneAction::Reset), 0, Record::TO_END, false));
            (format!("ZRA {sector} + {n}"), all)
        }
        2 => {
            let letters = pick(rng, &["F", "FF", "FS", "FWS", "FWSM", "FN"]);
            (
                format!("{letters} {}", pick(rng, &["0 + 0 [fsync]", "[fsync]", ""])),
                Some((Flush, 0, 0, false)),
            )
        }
        3 => (format!("{} 0 + 0 [udevd]", pick(rng, &["N", "NS"])), None),
        _ => {
            let (letters, op, fua) = pick(rng, LETTERS);
            (format!("{letters} {sector} + {n} [a name]"), Some((op, sector, n as u32, fua)))
        }
    }
}

fn blkparse(rng: &mut Rng, event: &str) -> Written {
    let (mut text, mut rows, mut ns) = (String::new(), Vec::new(), 0);
    for i in 0..1500 {
        ns += below(rng, &[2, 70_000, 3_000_000_000]);
        let device = pick(rng, &["8,16", "259,3", "0,0", "4095,1048575"]);
        let action = pick(rng, &["Q", "D", "Q", "D", "G", "C", "I", "M", "X", "A"]);
        let (what, row) = asked(rng);
        let at = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        text += &format!("{device:>8} {:4} {i:8} {at:>14} {:5}  {action} {what}\n", i % 7, rng.below(9000));
        if action == event {
            rows.extend(row.map(|(op, lba, n, fua)| (ns, device.to_owned(), op, lba, n, fua)));
        }
    }
    text += "CPU0 (sdb):\n Reads Queued:           1,        4KiB\t Writes Queued:   0,        0KiB\nTotal (sdb):\n 1 0\n\
             Input file sdb.blktrace.0 added\n8 entries\n";
    Written { bytes: text.into_bytes(), rows }
}

#[test]
fn blkparse_events() {
    let rng = &mut Rng::new(101);
    check("blkparse", blkparse(rng, "D"));
    check("blkparse,event=queued", blkparse(rng, "Q"));
    check("blkparse,event=issued", blkparse(rng, "D"));
}

fn fio(rng: &mut Rng, version: u64) -> Written {
    let zero = if version == 3 { "0 " } else { "" };
    let mut text = format!("fio version {version} iolog\n{zero}/dev/sda add\n{zero}/dev/sda open\n");
    let (mut rows, mut ns) = (Vec::new(), 0);
    for _ in 0..1500 {
        let file = pick(rng, &["/dev/sda", "/dev/sdb", "a"]);
        let us = below(rng, &[2, 900, 90_000_000]);
        ns += us * 1000;
        let stamp = if version == 3 { format!("{} ", ns / 1000) } else { String::new() };
        if version == 2 {
            text += &format!("{file} wait {us} 0\n");
        }
        let (offset, bytes) = (below(rng, &[1 << 12, 1 << 44]), 1 + below(rng, &[600, 1 << 20]));
        let (word, op) = pick(
            rng,
            &[
                ("read", Read),
                ("write", Write),
                ("trim", Discard),
                ("sync", Flush),
                ("datasync", Flush),
                ("sync_file_range", Flush),
            ],
        );
        text += &format!("{stamp}{file} {word} {offset} {bytes}\n");
        let place = if op == Flush { (0, 0) } else { touched(offset, bytes) };
        rows.push((ns, file.to_owned(), op, place.0, place.1, false));
        if rng.one_in(20) {
            text += &format!("{stamp}{file} {}\n", pick(rng, &["close", "open", "add"]));
        }
    }
    Written { bytes: text.into_bytes(), rows }
}

/// The blocks that bytes lie in.
fn touched(offset: u64, bytes: u64) -> (u64, u32) {
    let first = offset / 512;
    (first, ((offset + bytes - 1) / 512 - first + 1) as u32)
}

#[test]
fn fio_logs() {
    let rng = &mut Rng::new(102);
    check("fio", fio(rng, 2));
    check("fio", fio(rng, 3));
}

/// Lines are written when requests end: in order of ends, what ends earlier than it began began at 0.
fn etw(rng: &mut Rng, newer: bool) -> Written {
    let cpu = if newer { "CPU, " } else { "" };
    let mut text = format!(
        "BeginHeader\n  DiskRead, TimeStamp, Process Name ( PID), ThreadID, {cpu}IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags\n\
         DiskWrite, TimeStamp, Process Name ( PID), ThreadID, {cpu}IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags\n  \
         DiskFlush, TimeStamp, Process Name ( PID), ThreadID, {cpu}IrpPtr, ElapsedTime, DiskNum, IrpFlags\nEndHeader\n"
    );
    let (mut rows, mut ends): (Vec<Row>, u64) = (Vec::new(), 0);
    let cpu = if newer { " 2," } else { "" };
    for _ in 0..1500 {
        ends += below(rng, &[2, 4000, 100_000]);
        let (took, disk) = (below(rng, &[100, 1_000_000]), rng.below(4));
        let (offset, bytes) = (below(rng, &[1 << 12, 1 << 40]), 1 + below(rng, &[600, 1 << 20]));
        let at = ends.saturating_sub(took) * 1000;
        let start = format!("{ends:>11}, a.exe ( 12), 4132,{cpu} 0xfffffa8015b4d190");
        let (op, name) = pick(rng, &[(Read, "DiskRead"), (Write, "DiskWrite"), (Flush, "DiskFlush")]);
        if op == Flush {
            text += &format!("   DiskFlush, {start}, {took:>7}, {disk}, 0x060043\n");
            rows.push((at, format!("disk{disk}"), op, 0, 0, false));
        } else {
            text +=
                &format!("   {name}, {start}, 0x{offset:010x}, 0x{bytes:08x}, {took:>7}, {disk}, 0x060043\n");
            let (lba, n) = touched(offset, bytes);
            rows.push((at, format!("disk{disk}"), op, lba, n, false));
        }
        if rng.one_in(10) {
            text += &format!(
                "  {}, {start}\n",
                pick(rng, &["DiskReadInit", "DiskWriteInit", "FileIoRead", "CSwitch"])
            );
        }
    }
    Written { bytes: text.into_bytes(), rows }
}

#[test]
fn etw_events() {
    let rng = &mut Rng::new(103);
    check("etw", etw(rng, false));
    check("etw", etw(rng, true));
}

fn biosnoop(rng: &mut Rng, queued: bool, milli: bool) -> Written {
    let unit = if milli { "TIME(ms)" } else { "TIME(s)" };
    let more = if queued { "QUE(ms) " } else { "" };
    let mut text = format!(
        "Tracing block device I/O... Hit Ctrl-C to end.\n{unit} COMM PID DISK T SECTOR BYTES {more}LAT(ms)\n"
    );
    let (mut rows, mut us): (Vec<Row>, u64) = (Vec::new(), 0);
    for _ in 0..1500 {
        us += below(rng, &[2, 4000, 100_000]);
        let ends = if milli { us / 1000 * 1000 } else { us };
        let seconds = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let time = if milli { (us / 1000).to_string() } else { seconds };
        let (waits, took) = (10 * rng.below(3000), 10 * below(rng, &[10, 30_000]));
        let ms = |us: u64| format!("{}.{:02}", us / 1000, us % 1000 / 10);
        let que = if queued { ms(waits) + " " } else { String::new() };
        let (sector, bytes) = (rng.below(1 << 33), below(rng, &[2, 1 << 20]));
        let (name, disk) =
            (pick(rng, &["jbd2/sda1-8", "kworker u 8:1", "a b"]), pick(rng, &["sda", "nvme0n1"]));
        let (letters, op, fua) = pick(
            rng,
            &[
                ("R", Read, false),
                ("RA", Read, false),
                ("W", Write, false),
                ("WS", Write, false),
                ("WFS", Write, true),
                ("FWS", Write, false),
                ("D", Discard, false),
                ("F", Flush, false),
                ("FF", Flush, false),
            ],
        );
        text += &format!("{time:<12} {name:<16} 412 {disk} {letters} {sector} {bytes} {que} {}\n", ms(took));
        let at = (ends.saturating_sub(took)).saturating_sub(if queued { waits } else { 0 }) * 1000;
        match (op, bytes) {
            (Read | Discard, 0) => {}
            (Flush, _) | (_, 0) => rows.push((at, disk.to_owned(), Flush, 0, 0, false)),
            _ => rows.push((at, disk.to_owned(), op, sector, bytes.div_ceil(512) as u32, fua)),
        }
    }
    Written { bytes: text.into_bytes(), rows }
}

#[test]
fn biosnoop_lines() {
    let rng = &mut Rng::new(104);
    for (queued, milli) in [(false, false), (true, false), (false, true), (true, true)] {
        check("biosnoop", biosnoop(rng, queued, milli));
    }
}

/// Where names lie: behind each other in order of first use, moved to the end when they grow.
#[derive(Default)]
struct Places {
    of: HashMap<String, (u64, u64)>,
    end: u64,
}

impl Places {
    fn of(&mut self, name: String, blocks: u64, unit: u64) -> u64 {
        match self.of.get(&name) {
            Some((first, room)) if *room >= blocks => *first,
            _ => {
                let room = blocks.div_ceil(unit) * unit;
                self.of.insert(name, (self.end, room));
                self.end += room;
                self.end - room
            }
        }
    }
}

fn thesios(rng: &mut Rng, extent: u64, server: bool) -> Written {
    let names = [
        "start_time",
        "x",
        "op_type",
        "filename",
        "cache_hit",
        "disk_io_size_bytes",
        "request_io_size_bytes",
        "file_offset",
    ];
    let header = names.join(",") + "\n";
    let (mut text, mut rows) = (header.clone(), Vec::new());
    let (mut places, mut ms) = (Places::default(), 1_705_306_000_000);
    for _ in 0..1000 {
        ms += below(rng, &[2, 5000]);
        let back = ms - rng.below(3000);
        let (file, reads) = (pick(rng, &["a", "b", "a longer name of a file", "d"]), rng.one_in(2));
        let hit = pick(rng, &["1", "0", "-1"]);
        let [asked, disk] = [(); 2].map(|()| pick(rng, &[0, 0, 1, 512, 4096, 1_500_000]));
        let offset = below(rng, &[4096, 5_000_000]);
        let op = if reads { Read } else { Write };
        let word = if reads { "READ" } else { "WRITE" };
        text +=
            &format!("{}.{:03},y,{word},{file},{hit},{disk},{asked},{offset}\n", back / 1000, back % 1000);
        if rng.one_in(50) {
            text += &header;
        }
        let bytes = if reads && disk > 0 { disk } else { asked };
        if bytes == 0 || (reads && hit == "1" && !server) {
            continue;
        }
        let (first, n) = touched(offset, bytes);
        // Block by block; neighbours in one extent are one request.
        let mut parts: Vec<(u64, u64, u32)> = Vec::new();
        for block in first..first + u64::from(n) {
            match parts.last_mut() {
                Some((number, _, n)) if *number == block / extent => *n += 1,
                _ => {
                    let place = places.of(format!("{file} {}", block / extent), extent, extent);
                    parts.push((block / extent, place + block % extent, 1));
                }
            }
        }
        rows.extend(parts.iter().map(|(_, lba, n)| (back * 1_000_000, "0".to_owned(), op, *lba, *n, false)));
    }
    Written { bytes: text.into_bytes(), rows }
}

#[test]
fn thesios_files() {
    let rng = &mut Rng::new(105);
    check("thesios", thesios(rng, 2048, false));
    check("thesios,level=server,extent=64KiB", thesios(rng, 128, true));
}

fn http(rng: &mut Rng, unit: u64, max: u64) -> Written {
    let (mut text, mut rows) = (String::new(), Vec::new());
    let (mut places, mut s) = (Places::default(), 0u64);
    for _ in 0..1000 {
        s += rng.below(3);
        let back = s + 1000 - rng.below(200);
        // From 31 December 1999, 23:30 on, in a zone five and a half hours ahead, or four behind.
        let day = back + 84_600;
        let date = match day / 86_400 {
            0 => "31/Dec/1999",
            1 => "01/Jan/2000",
            _ => panic!("more than an hour and a half"),
        };
        let clock = format!("{date}:{:02}:{:02}:{:02}", day % 86_400 / 3600, day % 3600 / 60, day % 60);
        let url = pick(rng, &["/", "/a.html", "/a.html?q=\"x\"", "/b/c/d.jpg"]);
        let (method, status) =
            (pick(rng, &["GET", "GET", "PUT", "HEAD", "POST"]), pick(rng, &[200, 206, 201, 304, 404]));
        let bytes = below(rng, &[2, 5000, 1 << 20]);
        let shown = if bytes == 0 { "-".to_owned() } else { bytes.to_string() };
        let behind = pick(rng, &["", " \"http://x/y\" \"Mozilla/4.0 (a; b)\""]);
        text += &format!(
            "host{} - - [{clock} +0530] \"{method} {url} HTTP/1.0\" {status} {shown}{behind}\n",
            s % 3
        );
        let op = match (method, status) {
            ("GET", 200 | 206) => Read,
            ("PUT", 200 | 206 | 201) => Write,
            _ => continue,
        };
        if bytes == 0 {
            continue;
        }
        let n = bytes.div_ceil(512);
        let first = places.of(url.to_owned(), n, unit);
        let pieces = (0..n).step_by(max as usize);
        rows.extend(pieces.map(|at| {
            (back * 1_000_000_000, "0".to_owned(), op, first + at, (n - at).min(max) as u32, false)
        }));
    }
    Written { bytes: text.into_bytes(), rows }
}

#[test]
fn http_logs() {
    let rng = &mut Rng::new(106);
    check("http", http(rng, 8, 256));
    check("http,block=64KiB,max=5KiB", http(rng, 128, 10));
}

#[test]
fn disksim_validation() {
    let rng = &mut Rng::new(107);
    let (mut text, mut rows, mut ns) = (String::new(), Vec::new(), 0);
    for _ in 0..1500 {
        let (op, word) = pick(rng, &[(Read, "R"), (Write, "W")]);
        let (lba, n) = (rng.below(1 << 40), 1 + rng.below(500));
        let (service, gap) = (rng.below(30_000_000), below(rng, &[10, 1_000_000_000]));
        let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
        text += &format!("{word} {} {lba} {n} {} {}\n", pick(rng, &["Hit", "Miss"]), us(service), us(gap));
        rows.push((ns, "0".to_owned(), op, lba, n as u32, false));
        ns += service + gap;
    }
    check("disksim-validate", Written { bytes: text.into_bytes(), rows });
}

#[test]
fn vscsi_tables() {
    let rng = &mut Rng::new(108);
    let (mut text, mut rows, mut s) = ("version,time,op,size,lbn\n".to_owned(), Vec::new(), 77);
    for _ in 0..1500 {
        s += rng.below(3);
        let (word, op) = pick(
            rng,
            &[
                ("28", Read),
                ("8", Read),
                ("08", Read),
                ("88", Read),
                ("a8", Read),
                ("2a", Write),
                ("0a", Write),
                ("a", Write),
                ("8a", Write),
                ("aa", Write),
            ],
        );
        let (bytes, lba) = (1 + below(rng, &[600, 1 << 20]), rng.below(1 << 40));
        text += &format!("{},{s},{word},{bytes},{lba}\n", pick(rng, &["1", "2"]));
        rows.push((s * 1_000_000_000, "0".to_owned(), op, lba, bytes.div_ceil(512) as u32, false));
    }
    check("vscsi-csv", Written { bytes: text.into_bytes(), rows });
}
