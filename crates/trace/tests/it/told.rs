//! What is told, word by word: messages with their places, how far reading is, what a stored file says of itself.

use parquet::basic::ConvertedType;
use parquet::file::metadata::SortingColumn;
use parquet::file::reader::{FileReader, SerializedFileReader};
use smrlab_trace::formats::{FORMATS, Format};
use smrlab_trace::info::{DEFAULT_MEMORY, info};
use smrlab_trace::transforms::SortWindow;
use smrlab_trace::{
    Batch, Memory, OpenContext, ParquetWriter, Record, TraceSource, convert, open, open_bytes, read_all,
};
use smrlab_units::{HostOp, Lba, SimTime};
use std::path::PathBuf;

fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("told");
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn record(ns: u64) -> Record {
    let (arrival, op, lba) = (SimTime(ns), HostOp::Read, Lba(8));
    Record { arrival, op, lba, blocks: 1, device: 0, stream: 0, fua: false }
}

/// The message of bytes that cannot be read as `format`.
fn says(format: &str, bytes: &[u8]) -> String {
    match open_bytes(bytes.to_vec(), format).and_then(|mut s| read_all(&mut s)) {
        Ok(rows) => panic!("{format}: {} rows", rows.len()),
        Err(e) => e.to_string(),
    }
}

const SKIP: &str = "(skip_bad=N tolerates N such)";

/// Blank lines count, and lines that are read some at a time; of a long line 80 characters are shown, and what cannot be printed is not.
#[test]
fn a_bad_line_is_told_with_its_number_and_its_beginning() {
    let blank = b"0,1,512,w,0\n\n\r\n0,12x,512,r,0.3\n0,1,512,w,1\n";
    let told = format!("(memory), line 4: LBA '12x' is not a whole number: '0,12x,512,r,0.3' {SKIP}");
    assert_eq!(says("spc", blank), told);
    let line = |n: u64| format!("{n} 0 8 8 1\n");
    let many =
        (0..200).map(line).collect::<String>() + "200 0 x 8 1\n" + &(201..220).map(line).collect::<String>();
    let told = format!("(memory), line 201: block 'x' is not a whole number: '200 0 x 8 1' {SKIP}");
    assert_eq!(says("disksim", many.as_bytes()), told);
    let begin = format!("(memory), line 1: ASU '{}' is not a whole number: ", "x".repeat(24));
    for (n, shown) in [(80, "x".repeat(80)), (81, "x".repeat(80) + "…")] {
        assert_eq!(says("spc", "x".repeat(n).as_bytes()), format!("{begin}'{shown}' {SKIP}"));
    }
    let escape = says("spc", b"0,1,512,w,0\n7,8,512,w\x1b[1m,1\n8,8,512,q\x07,1\n");
    assert!(escape.ends_with(&format!("'8,8,512,q\u{fffd},1' {SKIP}")), "{escape}");
    // It is one line too many for any tolerance.
    for format in ["spc", "spc,skip_bad=9"] {
        let long = ["0,1,512,w,0\n".to_owned(), "1".repeat(3 << 20)].concat();
        let told = "(memory), line 2: the line is longer than 1 MiB: is this a text trace?";
        assert_eq!(says(format, long.as_bytes()), format!("{told}: '{}…'", "1".repeat(80)));
    }
}

/// A record of the first version of vscsi: number 1, 512 bytes, one piece.
fn vscsi(version: u16, lbn: u64, us: u64) -> Vec<u8> {
    let words = [0x28, version << 8].map(u16::to_le_bytes).concat();
    [[1u32, 512, 1].map(u32::to_le_bytes).concat(), words, [lbn, us].map(u64::to_le_bytes).concat()].concat()
}

/// Records are counted from 1 on, bytes from 0 on; 24 bytes are shown.
#[test]
fn a_bad_record_is_told_with_its_number_and_its_place() {
    let (one, other) = (vscsi(1, 7, 5), vscsi(2, 7, 6));
    let bytes = "01 00 00 00 00 02 00 00 01 00 00 00 28 00 00 02 07 00 00 00 00 00 00 00";
    let why = "the record's version differs from the first one's";
    let told = format!("(memory), record 2 (byte 32): {why}: {bytes} {SKIP}");
    assert_eq!(says("vscsi", &[&one[..], &other, &one].concat()), told);
    let why = "the last record is cut short, as where recording was stopped or the copy is incomplete; skip_bad=1 reads the \
               trace up to there";
    let told = format!("(memory), record 3 (byte 64): {why}: 01 00 00 00 00 02 00 00 01 00");
    assert_eq!(says("vscsi", &[&one[..], &one, &one[..10]].concat()), told);
    let late =
        [vscsi(1, 7, 500_000), vscsi(1, 7, 200_000), vscsi(1, 7, 900_000), vscsi(1, 7, 50_000)].concat();
    let told = "(memory), record 2 (byte 32): a request at 0.2 s comes after one at 0.5 s; sort_window=850ms sorts the whole trace";
    assert_eq!(says("vscsi", &late), told);
    let lines = b"0,1,512,r,0.5\n\n0,1,512,r,0.2\n0,1,512,r,0.6\n";
    let told = "(memory), line 3: a request at 0.2 s comes after one at 0.5 s; sort_window=300ms sorts the whole trace";
    assert_eq!(says("spc", lines), told);
    let rows = [0, 100, 200, 50].map(|ms| record(ms * 1_000_000));
    let sorted = read_all(&mut SortWindow::new(Memory::new(rows), SimTime::from_ms(100), "t"));
    let told =
        "t, request 4: a request at 0.05 s comes after one at 0.2 s; sort_window=150ms sorts the whole trace";
    assert_eq!(sorted.unwrap_err().to_string(), told);
}

/// Each format's own reasons, in the first line.
#[test]
fn a_line_is_refused_with_the_reason_of_its_format() {
    const CSV: &str = "csv,columns=time:s;stream;device;op;lba;size:blk";
    let get = "\"GET /a X\" 200";
    let clf = |rest: &str| format!("h - - [01/Jul/1995:00:00:01 -0400] {rest}");
    for (format, line, reason) in [
        ("disksim", "1 0 8 8 g".to_owned(), "flags 'g' is not a hexadecimal number"),
        ("disksim", "1 0 8 8 1 1".to_owned(), "there are more than 5 columns"),
        ("disksim", "1 0 8".to_owned(), "field 'blocks' is missing"),
        ("disksim", "1 0 8 4294967296 1".to_owned(), "the request is longer than 2^32 blocks"),
        ("disksim", "1 0 9223372036854775807 1 1".to_owned(), "the request ends beyond 2^63 blocks"),
        ("disksim-validate", "R 5 8 8 1 1".to_owned(), "Hit|Miss '5' is not a word"),
        ("spc", "0,36028797018963968,512,r,1".to_owned(), "LBA '0,36028797018963968,512,' is not below 2^55"),
        ("spc", "0,8,0,r,1".to_owned(), "the request has size 0"),
        ("spc", "0,8,512,x,1".to_owned(), "Opcode 'x' is not Read or Write"),
        ("msr", "1,h,0,Read,18446744073709551615,2,1".to_owned(), "the request ends beyond 2^64 bytes"),
        ("http", "h - - no date".to_owned(), "there is no [date]"),
        ("http", "h - - [01/Jul/1995:00:00".to_owned(), "the date is cut short"),
        (
            "http",
            "h - - [32/Foo/1995:00:00:01 -0400] x".to_owned(),
            "date '32/Foo/1995:00:00:01 -04' is not like 01/Jul/1995:00:00:01 -0400",
        ),
        ("http", clf("GET /a X 200 1"), "there is no quoted request"),
        ("http", clf("\"GET /a X\" 2x0 1"), "no status follows the quoted request"),
        ("http", clf(&format!("{get} x")), "bytes 'x' is not a whole number"),
        ("http", clf(&format!("{get} 1099511627777")), "a response of more than 1 TiB"),
        (
            "biosnoop",
            "1 a 1 sda R 8 512 1".to_owned(),
            "the header (TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)) must come first",
        ),
        (
            "fio",
            "fio version 4 iolog".to_owned(),
            "the first line must be 'fio version 2 iolog' or '… 3 iolog'",
        ),
        (
            "blkparse",
            "8,16 1 2 0.1 9 D W 100".to_owned(),
            "a request with RWBS 'W' is not complete: 'sector + sectors' is missing",
        ),
        (CSV, "1,65536,0,R,8,8".to_owned(), "the stream's number is above 65535"),
        (CSV, "1,0,0,R,36028797018963968,8".to_owned(), "offset '36028797018963968' is not below 2^64 bytes"),
        (CSV, "1,0,0,unmap,8,8".to_owned(), "op 'unmap' is not an operation: that is called discard here"),
    ] {
        assert_eq!(
            says(format, line.as_bytes()),
            format!("(memory), line 1: {reason}: '{line}' {SKIP}"),
            "{format}"
        );
    }
    let head = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
    let told = says("biosnoop", format!("{head}1 a 1 sda X 8 512 1\n").as_bytes());
    assert!(told.starts_with("(memory), line 2: T 'X' is not R, W, D or F: "), "{told}");
}

/// Beyond what is there at all, each format says what it looked for.
#[test]
fn a_trace_without_a_request_says_what_was_looked_for() {
    let thesios =
        "filename,file_offset,op_type,cache_hit,request_io_size_bytes,disk_io_size_bytes,start_time\n";
    for (format, text, told) in [
        ("spc", "\n", "the trace is empty: it has no read, write, flush or discard request"),
        ("etw", "FileIoRead, 1\n", "the event trace has no DiskRead, DiskWrite or DiskFlush"),
        (
            "http",
            "h - - [01/Jul/1995:00:00:01 -0400] \"POST /a X\" 200 1\n",
            "no line of the log moved data (GET with 200 or 206)",
        ),
        (
            "thesios",
            thesios,
            "no request of the trace reaches the drive (level=server keeps what memory served)",
        ),
    ] {
        assert_eq!(says(format, text.as_bytes()), format!("(memory): {told}"), "{format}");
    }
    assert_eq!(says("parquet", b"PAR1"), "(memory): parquet needs a file that can be sought, not a pipe");
    let known = FORMATS.iter().map(|f| f.name).collect::<Vec<_>>().join(", ");
    let name = "its format could not be told; name it, as in '(memory):csv,columns=time:ms;op;lba;size:blk'";
    let told =
        format!("(memory): {name} (known: {known}; `smrlab explain csv` says how to describe columns)");
    assert_eq!(says("auto", b"a poem of\ntwo lines\n"), told);
    let said = says("auto", b"0 0 1024 512 1\n1 0 512 512 0\n");
    let (first, rest) = said.split_once('\n').unwrap();
    assert_eq!(
        first,
        "(memory): it could be mqsim or msr-cut or disksim; name the format, as in '(memory):mqsim':"
    );
    let described = "or describe the columns: '(memory):csv,columns=time:ms;device;lba;size:blk;op,sep=blank,read=1,write=0'";
    assert_eq!((rest.lines().count(), rest.lines().last()), (4, Some(described)));
}

/// Formats by all of their names, and how far out of order their files are known to be.
#[test]
fn formats_are_found_by_each_of_their_names() {
    for f in FORMATS {
        for name in f.aliases.iter().chain([&f.name]) {
            assert_eq!(Format::find(name).map(|found| found.name), Some(f.name), "{name}");
        }
        let window = match f.name {
            "http" => "300s",
            "biosnoop" | "etw" | "systor17" => "60s",
            "tencent" | "thesios" => "10s",
            _ => "0",
        };
        let params = f.parameters();
        let told = params.iter().find(|p| p.name == "sort_window").map(|p| p.default);
        assert_eq!(told, Some(window), "{}", f.name);
        assert!(f.params.iter().all(|own| params.iter().any(|p| p.name == own.name)), "{}", f.name);
    }
    for (alias, name) in
        [("pq", "parquet"), ("umass", "spc"), ("ssdsim", "mqsim"), ("srt", "hp-srt"), ("clf", "http")]
    {
        assert_eq!(Format::find(alias).map(|f| f.name), Some(name));
    }
}

/// Of the bytes of the file, whatever is done to its requests; what is read ahead is a buffer of 1 MiB, and what the system gives at once.
#[test]
fn progress_is_the_share_of_a_file_that_was_read() {
    let line = |i: u64| format!("0,8,512,R,{i:07}.0\n");
    let object =
        |i: u32| [&i.to_le_bytes()[..], &[7; 8], &512u32.to_le_bytes(), &(-1i64).to_le_bytes()].concat();
    let (lines, objects) =
        ((0..200_000).map(line).collect::<String>(), (0..200_000).flat_map(object).collect::<Vec<u8>>());
    for (name, bytes, format) in [
        ("p.spc", lines.as_bytes(), "spc"),
        ("p.spc", lines.as_bytes(), "spc,sort_window=1ms,start=zero"),
        ("p.oracle", &objects[..], "oracleGeneral"),
    ] {
        let path = scratch(name);
        std::fs::write(&path, bytes).unwrap();
        let mut source = open(&format!("{}:{format}", path.display()), &OpenContext::default()).unwrap();
        let (mut batch, mut given, mut before, mut seen) = (Batch::new(), 0, 0.0, 0);
        while source.next_batch(&mut batch).unwrap() {
            given += batch.len();
            let read = source.progress().unwrap();
            let ahead = read - given as f64 / 200_000.0;
            assert!(
                (-1e-9..f64::from(2u32 << 20) / bytes.len() as f64).contains(&ahead),
                "{format}: {ahead} at {given}"
            );
            seen += u32::from(before < read && read < 1.0);
            assert!(read >= before);
            before = read;
        }
        assert!(given == 200_000 && before == 1.0 && seen > 2, "{format}: {given}, {before}, {seen} steps");
        let memory = open_bytes(bytes.to_vec(), format).unwrap();
        assert_eq!(memory.progress(), None, "{format}: of what has no length nothing is known");
    }
    // A generator's are counted, where they have a number.
    let context = OpenContext { capacity: Some(smrlab_units::Blocks(1 << 20)), ..OpenContext::default() };
    let mut drawn = open("synth:uniform,requests=16384", &context).unwrap();
    drawn.next_batch(&mut Batch::new()).unwrap();
    assert_eq!(drawn.progress(), Some(0.5));
    // One that ends before its number has nothing left.
    let mut short = open("synth:phases,requests=100,of=burst(7)", &context).unwrap();
    while short.next_batch(&mut Batch::new()).unwrap() {}
    assert_eq!(short.progress(), Some(1.0));
    let mut phases = open("synth:phases", &context).unwrap();
    phases.next_batch(&mut Batch::new()).unwrap();
    assert_eq!(phases.progress(), None);
}

/// Whatever a source is, a batch is as long as others count on.
#[test]
fn batches_have_so_many_requests() {
    let lines = |line: &dyn Fn(u64) -> String| (0..20_000).map(line).collect::<String>().into_bytes();
    let object =
        |i: u32| [&i.to_le_bytes()[..], &[7; 8], &512u32.to_le_bytes(), &(-1i64).to_le_bytes()].concat();
    for (format, bytes) in [
        ("spc", lines(&|i| format!("0,8,512,R,{i}\n"))),
        ("disksim", lines(&|i| format!("{i} 0 8 8 1\n"))),
        ("spc,sort_window=1ms", lines(&|i| format!("0,8,512,R,{i}\n"))),
        ("oracleGeneral", (0..20_000).flat_map(object).collect()),
    ] {
        let (mut source, mut batch, mut lengths) =
            (open_bytes(bytes, format).unwrap(), Batch::new(), Vec::new());
        while source.next_batch(&mut batch).unwrap() {
            lengths.push(batch.len());
        }
        assert_eq!(lengths, [8192, 8192, 20_000 - 2 * 8192], "{format}");
    }
}

/// Whoever stores a trace or describes it is told of all requests so far, and may end both.
#[test]
fn requests_are_told_as_they_are_read() {
    let rows = || Memory::new((0..20_000).map(record));
    let mut told = Vec::new();
    info(&mut rows(), DEFAULT_MEMORY, |n| {
        told.push(n);
        true
    })
    .unwrap();
    let path = scratch("ticks.parquet");
    let stored = convert(&mut rows(), &path, "x", |n| {
        told.push(n);
        true
    });
    assert_eq!((stored.unwrap(), told), (20_000, [8192, 16_384, 20_000].repeat(2)));
    std::fs::remove_file(&path).unwrap();
    let ended = convert(&mut rows(), &path, "x", |n| n < 10_000).unwrap_err().to_string();
    assert_eq!((ended, path.exists()), (format!("{}: interrupted", path.display()), false));
    let nowhere = scratch("none").join("t.parquet");
    let told = convert(&mut rows(), &nowhere, "x", |_| true).unwrap_err().to_string();
    let begin = format!("{}: cannot be written: ", nowhere.display());
    assert!(told.starts_with(&begin) && told.ends_with("; choose another place"), "{told}");
}

/// The first 64 of 70 devices by their numbers, each as the trace calls it; and how many lines were passed over.
#[test]
fn devices_are_listed_by_number_with_their_names() {
    let line = |n: u64| format!("{n},{n},512,{},{}\n", if n.is_multiple_of(2) { 'w' } else { 'r' }, 70 - n);
    let text = (0..70).rev().map(line).collect::<String>() + "bad\nworse\n";
    let mut source = open_bytes(text.into_bytes(), "spc,skip_bad=9").unwrap();
    let found = info(&mut source, DEFAULT_MEMORY, |_| true).unwrap();
    assert_eq!((found.devices, found.skipped, found.device_list.len()), (70, 2, 64));
    for (n, d) in (0u32..).zip(&found.device_list) {
        let told = (d.number, d.name.as_str(), d.requests, d.writes, d.end_bytes);
        assert_eq!(
            told,
            (n, &*format!("asu{n}"), 1, u64::from(n.is_multiple_of(2)), 512 * (u64::from(n) + 1))
        );
    }
}

/// What its program, its schema, its order and its devices are; groups of 2^19 rows and pages of 2^16, and no more names than 2^16.
#[test]
fn a_stored_trace_says_what_it_is() {
    let path = scratch("says.parquet");
    let mut writer = ParquetWriter::create(&path, "a.csv of a friend").unwrap();
    for first in (0..80).map(|batch| batch * 8192) {
        let mut batch = Batch::new();
        (first..first + 8192).for_each(|n| batch.push(Record { device: n as u32, ..record(n) }));
        writer.write(&batch).unwrap();
    }
    assert_eq!(writer.finish(|d| format!("disk {d}")).unwrap(), 80 * 8192);
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    assert_eq!(file.created_by(), Some(concat!("smrlab ", env!("CARGO_PKG_VERSION"))));
    let told = file.key_value_metadata().unwrap();
    let of = |key: &str| told.iter().find(|kv| kv.key == key).and_then(|kv| kv.value.as_deref());
    let own = ["smrlab.trace", "smrlab.sorted", "smrlab.source"].map(of);
    assert_eq!(own, ["1", "arrival_ns", "a.csv of a friend"].map(Some));
    let names: Vec<&str> = of("smrlab.devices").unwrap().lines().collect();
    assert_eq!((names.len(), names[0], names[65_535]), (65_536, "0=disk 0", "65535=disk 65535"));
    use ConvertedType::{NONE, UINT_8, UINT_16, UINT_32};
    let columns: Vec<_> =
        file.schema_descr().columns().iter().map(|c| (c.name(), c.converted_type())).collect();
    let all = ["arrival_ns", "op", "lba", "blocks", "device", "stream", "fua"];
    assert_eq!(
        columns,
        all.into_iter().zip([NONE, UINT_8, NONE, UINT_32, UINT_32, UINT_16, NONE]).collect::<Vec<_>>()
    );
    let groups = reader.metadata().row_groups();
    assert_eq!(groups.iter().map(|g| g.num_rows()).collect::<Vec<_>>(), [1 << 19, 1 << 17]);
    let sorted = vec![SortingColumn { column_idx: 0, descending: false, nulls_first: false }];
    assert!(groups.iter().all(|g| g.sorting_columns() == Some(&sorted)));
    let group = reader.get_row_group(0).unwrap();
    let pages: Vec<u32> =
        group.get_column_page_reader(0).unwrap().map(|page| page.unwrap().num_values()).collect();
    assert_eq!(pages, [1 << 16; 8]);
    // A device beyond those has its number alone.
    let source = open(path.to_str().unwrap(), &OpenContext::default()).unwrap();
    assert_eq!([7, 65_536].map(|d| source.device_name(d)), ["disk 7", "65536"]);
    std::fs::remove_file(&path).unwrap();
}

/// A parameter that makes no workload is refused with what would.
#[test]
fn a_generator_says_what_it_would_take() {
    for (item, why) in [
        ("uniform,align=0", "it must be at least one block"),
        ("uniform,size=8KiB,span=4KiB", "it must hold at least one request"),
        ("uniform,size=exp(4KiB;8KiB)", "write 4KiB, exp(4KiB) or uniform(4KiB;64KiB)"),
        ("uniform,interarrival=normal(1ms)", "write 10ms, exp(10ms) or normal(50ms;10ms)"),
        ("bursty,pause=long", "write 5s, exp(5s) or normal(5s;1s)"),
        ("sequential,streams=9,span=8blk,size=1blk", "the span must hold at least a block for each stream"),
        ("mix,of=uniform:0", "'0' is not a weight above 0"),
        ("mix,of=phases:1", "'phases' is not a generator that can be mixed"),
        ("zoned,zone=6KiB", "a multiple of 4KiB, such as 256MiB"),
        ("zoned,zone=1MiB,span=10MiB,writers=10", "at most 9, the zones behind from= in the span"),
        (
            "kv-store,span=1MiB,records=1000",
            "fewer, or a larger span: a store needs twice its data and ten tables",
        ),
        ("kv-store,table=12KiB", "room for sixteen records, in multiples of 4KiB"),
        (
            "kv-store,store=btree,span=1MiB,records=1000",
            "fewer, or a larger span: pages take 1.5 times the data",
        ),
        ("phases,of=burst(5", "'burst(5' lacks its closing ')'"),
        ("phases,of=probe(3);zoned(5,zone=6KiB)", "a multiple of 4KiB, such as 256MiB"),
        ("phases,of=idle(soon)", "idle: 'soon' is not a time"),
    ] {
        let context = OpenContext { capacity: Some(smrlab_units::Blocks(1 << 20)), ..OpenContext::default() };
        let told = open(&format!("synth:{item}"), &context).map(drop).unwrap_err().to_string();
        assert!(told.contains(why), "{item}: {told}");
    }
}
