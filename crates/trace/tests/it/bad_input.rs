//! What users get for bad input: one message with file, place, reason and remedy; and never a panic.

use proptest::prelude::*;
use smrlab_trace::formats::FORMATS;
use smrlab_trace::{Batch, OpenContext, ParquetSource, TraceError, TraceSource, open, open_bytes, read_all};
use std::path::PathBuf;

fn scratch(name: &str, bytes: &[u8]) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bad_input");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn message(target: &str) -> String {
    match open(target, &OpenContext::default()).and_then(|mut s| read_all(&mut s)) {
        Ok(_) => panic!("{target} was read"),
        Err(e) => e.to_string(),
    }
}

fn says(target: &str, needles: &[&str]) {
    let m = message(target);
    for n in needles {
        assert!(m.contains(n), "{target}: {m:?} lacks {n:?}");
    }
}

const GOOD: &str = "0,303567,3584,w,0.000000\n1,55590,3072,w,0.1\n0,303574,3584,w,0.2\n";

#[test]
fn files_that_are_not_there_or_no_files() {
    says("/nonexistent/trace.csv", &["/nonexistent/trace.csv", "no such file"]);
    says(env!("CARGO_TARGET_TMPDIR"), &["directory"]);
    says(&scratch("empty.spc", b""), &["empty.spc", "empty"]);
    says(&scratch("blank.spc", b"\n\n\n"), &["format could not be told"]);
    says(&format!("{}:spc", scratch("blank2.spc", b"\n\n\n")), &["the trace is empty"]);
    says(
        &scratch("poem.txt", b"Shall I compare thee\nto a summer's day?\n"),
        &["could not be told", "name it"],
    );
}

/// As spreadsheets and Windows programs write them: with a byte order mark, without an end of the last line, in UTF-16, and a
/// header alone.
#[test]
fn tables_of_other_programs_are_read_or_named() {
    let requests = |name: &str, text: &[u8]| {
        let mut source = open(&scratch(name, text), &OpenContext::default()).unwrap();
        read_all(&mut source).unwrap().len()
    };
    assert_eq!(requests("mark.csv", b"\xef\xbb\xbftime_s,op,lba,blocks\n0,R,0,8\n1,W,8,8\n"), 2);
    assert_eq!(requests("no-end.csv", b"time_s,op,lba,blocks\n0,R,0,8"), 1);
    assert_eq!(requests("no-end.spc", GOOD.trim_end().as_bytes()), 3);
    says(&scratch("header.csv", b"time_s,op,lba,blocks\n"), &["header.csv", "the trace is empty"]);
    let wide: Vec<u8> = "\u{feff}time_s,op\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    says(&scratch("wide.csv", &wide), &["UTF-16", "iconv"]);
    let other_end: Vec<u8> = wide.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
    says(&scratch("wide-be.csv", &other_end), &["UTF-16", "iconv"]);
}

#[test]
fn a_bad_line_is_shown_with_its_place_and_reason() {
    let path = scratch("line.spc", format!("{GOOD}0,12x,512,r,0.3\n{GOOD}").as_bytes());
    says(&path, &["line.spc, line 4", "LBA '12x'", "'0,12x,512,r,0.3'", "skip_bad"]);
    let long = format!("{GOOD}0,1,{},r,0.3\n", "9".repeat(500));
    let m = message(&scratch("long.spc", long.as_bytes()));
    assert!(m.len() < 400 && m.contains('…'), "{m}");
}

/// A header of two columns of one name, and words that others use.
#[test]
fn headers_that_say_a_thing_twice_and_words_of_others_are_refused_with_the_remedy() {
    let twice = scratch("twice.csv", b"time_s,op,lba,lba,blocks\n0,R,0,8,8\n1,W,8,16,8\n");
    says(&twice, &["twice.csv", "time_s,op,lba,lba,blocks", "columns=time:s;op;lba;-;size:blk,header=1'"]);
    let chosen = format!("{twice}:csv,columns=time:s;op;-;lba;size:blk,header=1");
    let read = read_all(&mut open(&chosen, &OpenContext::default()).unwrap()).unwrap();
    assert_eq!(read.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [8, 16]);
    let named = format!("{twice}:csv,columns=time:s=time_s;op=op;lba=lba;size:blk=blocks");
    says(&named, &["line 1", "two columns 'lba'", "header=1"]);
    let same = scratch("same.csv", b"time_s,op,lba,offset_bytes,blocks\n0,R,0,8,8\n1,W,8,16,8\n");
    says(&same, &["lba and offset_bytes say the same", "this takes lba"]);
    let trim = scratch("trim.csv", b"time_s,op,lba,blocks\n0,R,0,8\n1,TRIM,8,8\n");
    says(&trim, &["trim.csv, line 3", "'TRIM'", "discard"]);
    let late = scratch("late.csv", b"time_s,op,lba,blocks\n0,R,0,8\n100000000000000000000,W,8,8\n");
    says(&late, &["late.csv, line 3", "a time below 584 years"]);
}

#[test]
fn tolerated_lines_are_counted_and_the_next_is_an_error() {
    let text = format!("{GOOD}bad\n0,1,512,r\n0,1,512,r,0.3\n");
    let path = scratch("skip.spc", text.as_bytes());
    let mut s = open(&format!("{path}:spc,skip_bad=2"), &OpenContext::default()).unwrap();
    assert_eq!((read_all(&mut s).unwrap().len(), s.skipped()), (4, 2));
    let context = OpenContext { skip_bad: 2, ..OpenContext::default() };
    for target in [path.clone(), format!("{path}:spc"), format!("{path}:spc,start=zero")] {
        assert_eq!(read_all(&mut open(&target, &context).unwrap()).unwrap().len(), 4, "{target}");
    }
    let target = format!("{path}:spc,skip_bad=1");
    says(&target, &["line 5"]);
    let e = open(&target, &context).and_then(|mut s| read_all(&mut s)).unwrap_err();
    assert!(e.to_string().contains("line 5"), "what a trace says counts before what the run says: {e}");
}

#[test]
fn times_that_run_back_name_the_remedy_and_it_works() {
    let path = scratch("back.spc", b"0,1,512,r,0.5\n0,2,512,r,0.2\n0,3,512,r,0.6\n");
    says(&path, &["line 2", "0.2 s", "sort_window=300ms"]);
    let more = "0,1,512,r,0.5\n0,2,512,r,0.2\n0,3,512,r,0.6\nbad\n0,4,512,r,9\n0,5,512,r,1.5\n";
    let more = scratch("back-further.spc", more.as_bytes());
    says(&more, &["line 2", "sort_window=8s sorts"]);
    says(&format!("{more}:spc,sort_window=400ms,skip_bad=1"), &["line 6", "1.5 s", "9 s", "sort_window=8s"]);
    let all = open(&format!("{more}:spc,sort_window=8s,skip_bad=1"), &OpenContext::default());
    assert_eq!(read_all(&mut all.unwrap()).unwrap().len(), 5, "the window that was named is enough");
    let b = read_all(&mut open(&format!("{path}:spc,sort_window=300ms"), &OpenContext::default()).unwrap())
        .unwrap();
    assert_eq!(b.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [2, 1, 3]);
}

#[test]
fn formats_and_parameters_are_checked() {
    let path = scratch("ok.spc", GOOD.as_bytes());
    says(&format!("{path}:scp"), &["unknown trace format 'scp'", "'spc'"]);
    says(&format!("{path}:spc,skipbad=1"), &["skipbad", "did you mean 'skip_bad'"]);
    says(&format!("{path}:spc,skip_bad=many"), &["whole number"]);
    says(&format!("{path}:parquet"), &["Parquet"]);
    let odd = scratch("odd:name.spc", GOOD.as_bytes());
    assert_eq!(read_all(&mut open(&odd, &OpenContext::default()).unwrap()).unwrap().len(), 3);
    assert_eq!(
        read_all(&mut open(&format!("{odd}:spc"), &OpenContext::default()).unwrap()).unwrap().len(),
        3
    );
}

fn compressed() -> Vec<(&'static str, Vec<u8>)> {
    use std::io::Write;
    let text: String = (0..20_000).map(|i| format!("0,{},512,r,{}.5\n", i * 7919 % 100_003, i)).collect();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    let mut bz = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz.write_all(text.as_bytes()).unwrap();
    vec![
        ("gz", gz.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("bz2", bz.finish().unwrap()),
        ("zst", zstd::encode_all(text.as_bytes(), 1).unwrap()),
    ]
}

#[test]
fn compression_is_told_by_content_and_truncation_is_said() {
    for (kind, bytes) in compressed() {
        // No suffix: the name does not matter.
        let whole = scratch(&format!("whole-{kind}"), &bytes);
        assert_eq!(
            read_all(&mut open(&whole, &OpenContext::default()).unwrap()).unwrap().len(),
            20_000,
            "{kind}"
        );
        let mut two = bytes.clone();
        two.extend(&bytes);
        let two = format!("{}:spc,sort_window=20000s", scratch(&format!("two-{kind}"), &two));
        assert_eq!(
            read_all(&mut open(&two, &OpenContext::default()).unwrap()).unwrap().len(),
            40_000,
            "{kind}: members"
        );
        let cut = scratch(&format!("cut-{kind}"), &bytes[..bytes.len() * 2 / 3]);
        says(&cut, &[&format!("cut-{kind}"), "truncated"]);
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2..bytes.len() / 2 + 64].fill(0x5a);
        let m = open_bytes(damaged, "spc").and_then(|mut s| read_all(&mut s)).map(|b| b.len());
        assert!(m.is_err(), "{kind}: damage goes unseen ({m:?})");
    }
}

/// As gzip(1) does: zeroes fill the blocks of a tape, behind any member; anything else behind one is no gzip file.
#[test]
fn zeroes_behind_a_member_of_a_gzip_file_are_passed_over() {
    let (_, bytes) = compressed().remove(0);
    let zeroes = [0_u8; 300_000];
    for (name, parts, rows) in [
        ("one", [&bytes[..], &zeroes[..1], &[][..]], 20_000),
        ("long", [&bytes[..], &zeroes[..], &[][..]], 20_000),
        ("between", [&bytes[..], &zeroes[..], &bytes[..]], 40_000),
    ] {
        let path = format!("{}:spc,sort_window=20000s", scratch(&format!("zeroes-{name}"), &parts.concat()));
        assert_eq!(
            read_all(&mut open(&path, &OpenContext::default()).unwrap()).unwrap().len(),
            rows,
            "{name}"
        );
    }
    for more in [&b"\x1f"[..], b"\0\0garbage"] {
        let m = open_bytes([&bytes[..], more].concat(), "spc").and_then(|mut s| read_all(&mut s));
        assert!(m.is_err(), "{more:?} behind it goes unseen");
    }
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let e =
        open_bytes(vec![b'1'; 3 << 20], "spc").and_then(|mut s| read_all(&mut s)).unwrap_err().to_string();
    assert!(e.contains("longer than 1 MiB"), "{e}");
}

/// The fuzz targets' corpus: format (with the parameters it needs) and bytes.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let fuzz = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut seeds = Vec::new();
    for f in FORMATS {
        let target = f.name.replace('-', "_");
        assert!(fuzz.join(format!("fuzz_targets/{target}.rs")).exists(), "{} has no fuzz target", f.name);
        let mut files: Vec<_> = std::fs::read_dir(fuzz.join("corpus").join(&target))
            .unwrap_or_else(|e| panic!("{} has no corpus: {e}", f.name))
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no corpus", f.name);
        let item = match f.name {
            "csv" => "csv,columns=time:us;op;offset:B;size:4KiB;device",
            name => name,
        };
        seeds.extend(files.iter().map(|f| (item.to_owned(), std::fs::read(f).unwrap())));
    }
    seeds
}

/// Records of zeroes are requests of no bytes, which are none, and have no end.
#[test]
fn what_has_many_records_and_no_request_is_given_up() {
    says("/dev/zero:oracleGeneral", &["/dev/zero: ", "none of its first 67108864 records is a request"]);
}

/// Opens bytes in memory, Parquet too.
fn opened(format: &str, bytes: Vec<u8>) -> Result<Box<dyn TraceSource>, TraceError> {
    if format.starts_with("parquet") {
        return Ok(Box::new(ParquetSource::from_bytes(bytes, "(memory)")?));
    }
    open_bytes(bytes, format)
}

#[test]
fn every_format_has_a_fuzz_target_and_reads_its_corpus() {
    for (format, bytes) in seeds() {
        let rows = opened(&format, bytes).and_then(|mut s| read_all(&mut s));
        assert!(rows.as_ref().is_ok_and(|r| !r.is_empty()), "{format}: {rows:?}");
    }
}

/// Reads to the end or the first error; what comes out must keep the promises of a source.
fn survive(format: &str, bytes: Vec<u8>) -> Result<(), TestCaseError> {
    let Ok(mut source) = opened(format, bytes) else { return Ok(()) };
    let mut batch = Batch::new();
    let mut last = 0;
    while let Ok(true) = source.next_batch(&mut batch) {
        for r in batch.iter() {
            prop_assert!(r.arrival.0 >= last, "{}: arrivals fall", format);
            prop_assert!(r.end().0 >= r.lba.0 && (r.blocks > 0 || r.op == smrlab_units::HostOp::Flush));
            last = r.arrival.0;
        }
    }
    Ok(())
}

/// `SMRLAB_FUZZ_CASES` asks for more than the few of every test run.
fn config() -> ProptestConfig {
    let cases = std::env::var("SMRLAB_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_reader_panics_on_arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for (format, _) in seeds() {
            survive(&format!("{format},skip_bad=1000"), bytes.clone())?;
        }
        survive("auto", bytes)?;
    }

    #[test]
    fn no_reader_panics_on_damaged_input(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
        repeat in 1usize..4
    ) {
        for (format, seed) in seeds() {
            let mut bytes = seed.repeat(repeat);
            for (at, byte, kind) in &edits {
                let i = at.index(bytes.len());
                match kind {
                    0 => bytes[i] = *byte,
                    1 => bytes.insert(i, b"0123456789.,-+ \"[]\n"[usize::from(*byte) % 19]),
                    _ => { bytes.remove(i); }
                }
                if bytes.is_empty() { bytes.push(b'x'); }
            }
            survive(&format!("{format},skip_bad=1000"), bytes.clone())?;
            survive("auto", bytes)?;
        }
    }
}
