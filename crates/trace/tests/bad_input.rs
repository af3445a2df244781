//! What users get for bad input: one message with file, place, reason and remedy; and never a panic.

use proptest::prelude::*;
use smrlab_trace::formats::{FORMATS, Open};
use smrlab_trace::{Batch, OpenContext, TraceSource, open, open_bytes, read_all};
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

#[test]
fn a_bad_line_is_shown_with_its_place_and_reason() {
    let path = scratch("line.spc", format!("{GOOD}0,12x,512,r,0.3\n{GOOD}").as_bytes());
    says(&path, &["line.spc, line 4", "LBA '12x'", "'0,12x,512,r,0.3'", "skip_bad"]);
    let long = format!("{GOOD}0,1,{},r,0.3\n", "9".repeat(500));
    let m = message(&scratch("long.spc", long.as_bytes()));
    assert!(m.len() < 400 && m.contains('…'), "{m}");
}

#[test]
fn tolerated_lines_are_counted_and_the_next_is_an_error() {
    let text = format!("{GOOD}bad\n0,1,512,r\n0,1,512,r,0.3\n");
    let path = scratch("skip.spc", text.as_bytes());
    let mut s = open(&format!("{path}:spc,skip_bad=2"), &OpenContext::default()).unwrap();
    assert_eq!((read_all(&mut s).unwrap().len(), s.skipped()), (4, 2));
    let context = OpenContext { skip_bad: 2, ..OpenContext::default() };
    assert_eq!(read_all(&mut open(&path, &context).unwrap()).unwrap().len(), 4);
    says(&format!("{path}:spc,skip_bad=1"), &["line 5"]);
}

#[test]
fn times_that_run_back_name_the_remedy_and_it_works() {
    let path = scratch("back.spc", b"0,1,512,r,0.5\n0,2,512,r,0.2\n0,3,512,r,0.6\n");
    says(&path, &["line 2", "0.2 s", "sort_window=300ms"]);
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

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let e =
        open_bytes(vec![b'1'; 3 << 20], "spc").and_then(|mut s| read_all(&mut s)).unwrap_err().to_string();
    assert!(e.contains("longer than 1 MiB"), "{e}");
}

/// A line or record of each format that it takes, to be damaged.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut blktrace = Vec::new();
    for n in [0x6561_7407u32, 1, 5, 0, 100, 0, 4096, 0x0002_0007, 9, 0x80_0010, 1, 0] {
        blktrace.extend(n.to_le_bytes());
    }
    let mut srt = b"$$TR_IOREC-1.3\n".to_vec();
    for n in [56u32, 0x4_0001, 2, 500, 1, 2, 1024, 3, 0x0800_0108, 4, 0, 1, 0, 1] {
        srt.extend(n.to_be_bytes());
    }
    let mut vscsi = Vec::new();
    for n in [1u32, 1024, 1, 0x0100_002a, 77, 0, 1000, 0] {
        vscsi.extend(n.to_le_bytes());
    }
    vec![
        ("msr", b"128166372003061629,src1,1,Read,512,512,1\n".to_vec()),
        ("spc", GOOD.as_bytes().to_vec()),
        ("csv,columns=time:us;op;offset:B;size:4KiB;dev", b"1.5,R,4096,2,sda\n".to_vec()),
        ("diskmon", b"0\t4.656875\t0.00003815\t0\tWrite\t6194591\t32\n".to_vec()),
        ("mqsim", b"11413000 0 657728 16 1\n".to_vec()),
        ("msr-cut", b"223.412 0 3159347200 36864 0\n".to_vec()),
        ("blkparse", b"  8,16   5        2     0.000001850 18615  D   R 1444645666 + 256 [java]\n".to_vec()),
        ("blktrace", blktrace),
        ("disksim", b"0.5 0 100 8 1\n".to_vec()),
        ("hp-srt", srt),
        ("disksim-validate", b"W Hit 4583176 4 663.00000 45422.00000\n".to_vec()),
        ("fio", b"fio version 3 iolog\n2 n1 add\n878 n1 write 0 16384\n".to_vec()),
        ("vscsi", vscsi),
        ("vscsi-csv", b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n".to_vec()),
        ("tencent", b"1538323200,4247200,128,1,1058\n".to_vec()),
        ("alibaba", b"419,W,8792731648,16384,1577808144360767\n".to_vec()),
        (
            "systor17",
            b"Timestamp,Response,IOType,LUN,Offset,Size\n1455591804.3,0.006,R,0,1024,512\n".to_vec(),
        ),
        ("fiu", b"467651 2522 kjournald 644661632 8 W 6 0 98b9\n".to_vec()),
        ("http", b"h - - [01/Jul/1995:00:00:01 -0400] \"GET /a HTTP/1.0\" 200 6245\n".to_vec()),
    ]
}

#[test]
fn every_format_has_a_seed_and_reads_it() {
    let seeds = seeds();
    for f in FORMATS.iter().filter(|f| matches!(f.open, Open::Stream(_))) {
        assert!(seeds.iter().any(|(s, _)| s.split(',').next() == Some(f.name)), "{} has no seed", f.name);
    }
    for (format, bytes) in seeds {
        let rows = open_bytes(bytes, format).and_then(|mut s| read_all(&mut s));
        assert!(rows.is_ok_and(|r| !r.is_empty()), "{format}");
    }
}

/// Reads to the end or the first error; what comes out must keep the promises of a source.
fn survive(format: &str, bytes: Vec<u8>) -> Result<(), TestCaseError> {
    let Ok(mut source) = open_bytes(bytes, format) else { return Ok(()) };
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

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
