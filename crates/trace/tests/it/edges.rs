//! The largest that is taken, the first that is not, and what a message tells to do about it.

use smrlab_trace::{
    Batch, Filter, Memory, OpenContext, ParquetWriter, Pipeline, Record, Steps, TraceSource, open,
    open_bytes, read_all,
};
use smrlab_units::HostOp::{Read, Write};
use smrlab_units::{HostOp, Lba, SimTime};
use std::path::PathBuf;

fn rows(format: &str, text: &str) -> Result<Batch, String> {
    open_bytes(text.as_bytes().to_vec(), format).and_then(|mut s| read_all(&mut s)).map_err(|e| e.to_string())
}

fn record(ns: u64, op: HostOp, lba: u64) -> Record {
    Record { arrival: SimTime(ns), op, lba: Lba(lba), blocks: 8, device: 0, stream: 0, fua: false }
}

/// Each number of a line up to its largest; one more is refused with its line.
#[test]
fn numbers_are_taken_up_to_their_largest() {
    const CSV: &str = "csv,columns=time:s;stream;device;op;lba;size:blk";
    for (format, [before, behind], most) in [
        (CSV, ["1,", ",2,R,8,8\n"], u64::from(u16::MAX)),
        (CSV, ["1,2,3,R,", ",8\n"], (1 << 55) - 9),
        ("disksim", ["1 ", " 8 8 1\n"], u64::from(u32::MAX)),
        ("disksim", ["1 0 ", " 8 1\n"], i64::MAX as u64 - 8),
        ("disksim", ["1 0 8 ", " 1\n"], u64::from(u32::MAX)),
        ("spc", ["", ",8,512,R,1\n"], u64::from(u32::MAX)),
        ("blkparse", ["8,", " 1 2 0.1 9 D W 100 + 8 [x]\n"], (1 << 20) - 1),
        ("blkparse", ["", ",1 1 2 0.1 9 D W 100 + 8 [x]\n"], (1 << 12) - 1),
        ("fiu", ["", " 1 a 8 8 R 6 0 f\n"], u64::MAX / 2),
    ] {
        let of = |n: u64| rows(format, &format!("{before}{n}{behind}"));
        assert_eq!(of(most).map(|b| b.len()), Ok(1), "{format}: {before}{most}");
        let refused = of(most + 1).expect_err(format);
        assert!(refused.contains("line 1") || refused.contains("292 years"), "{format}: {refused}");
    }
}

/// By the name that the trace has for it as by its number.
#[test]
fn a_device_is_kept_by_name_and_by_number() {
    let text = "128166372003061629,src,1,Read,0,512,1\n128166372003061630,prn,1,Write,512,512,1\n";
    for (filter, kept) in [("device=prn_1", 1), ("device=1", 1), ("device=src_1", 0), ("device=0", 0)] {
        let source = open_bytes(text.as_bytes().to_vec(), "msr").unwrap();
        let steps = Steps { filter: Some(Filter::parse(filter).unwrap()), ..Steps::default() };
        let found = read_all(&mut Pipeline::new(source, steps).unwrap()).unwrap();
        assert_eq!(found.device, [kept], "{filter}");
    }
}

/// Of a limit what was passed on is done.
#[test]
fn progress_is_the_share_of_the_limit() {
    for (limit, share) in [(5, 1.0), (20, 0.5)] {
        let steps = Steps { limit: Some(limit), ..Steps::default() };
        let mut source = Pipeline::new(Memory::new((0..10).map(|i| record(i, Read, 0))), steps).unwrap();
        source.next_batch(&mut Batch::new()).unwrap();
        assert_eq!(source.progress(), Some(share), "{limit}");
    }
}

/// The window of the message sorts the trace; a tenth less does not.
#[test]
fn the_window_that_a_message_names_sorts_the_trace() {
    for back in
        [1, 999, 1000, 1001, 999_999, 1_000_001, 1_500_000, 999_000_001, 1_000_000_001, 2_500_000_000u64]
    {
        let at = 10_000_000_000 - back;
        let text = format!("0,8,512,R,10.0\n0,8,512,W,{}.{:09}\n", at / 1_000_000_000, at % 1_000_000_000);
        let said = rows("spc", &text).unwrap_err();
        let window = said.split("sort_window=").nth(1).and_then(|s| s.split(' ').next()).unwrap();
        let sorted = rows(&format!("spc,sort_window={window}"), &text).expect(&said);
        assert_eq!((sorted.op, sorted.arrival[0]), (vec![Write, Read], SimTime(at)), "{said}");
    }
}

/// A write alone can be FUA, whatever the column says.
#[test]
fn reads_are_never_fua() {
    let all =
        rows("csv,columns=time:s;op;lba;size:blk;fua", "1,R,8,8,1\n1,W,8,8,true\n1,discard,8,8,1\n").unwrap();
    assert_eq!(all.fua, [false, true, false]);
}

/// Ticks before 1970 count from the start of a recording.
#[test]
fn ticks_from_the_start_are_times() {
    let all = rows("csv,columns=time:filetime;op;lba;size:blk", "1000,R,8,8\n1025,R,8,8\n").unwrap();
    assert_eq!(all.arrival[1].0 - all.arrival[0].0, 2500);
}

/// 512 blocks, or 512 bytes: what each format would make of five numbers is said with its figures.
#[test]
fn formats_that_may_be_meant_are_told_with_their_figures() {
    let said = rows("auto", "0 0 1024 512 1\n1 0 512 512 0\n").unwrap_err();
    for line in [
        "disksim    2 requests (1 read) in 0.001000 s (2000.000 requests/s), 256.0 KiB each, up to 0.001 GB",
        "mqsim      2 requests (1 read) in 0.000000 s (2000000000.000 requests/s), 256.0 KiB each",
        "msr-cut    2 requests (1 read) in 0.001000 s (2000.000 requests/s), 0.5 KiB each, up to 0.000 GB",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

/// Between two batches as within one: nothing is left of a file whose requests run back.
#[test]
fn a_stored_trace_never_runs_back() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("edges");
    std::fs::create_dir_all(&folder).unwrap();
    let mut writer = ParquetWriter::create(&folder.join("t.parquet"), "x").unwrap();
    let batch = |ns: &[u64]| {
        let mut batch = Batch::new();
        ns.iter().for_each(|ns| batch.push(record(*ns, Read, 0)));
        batch
    };
    writer.write(&batch(&[5, 5, 7])).unwrap();
    writer.write(&batch(&[7])).unwrap();
    let said = writer.write(&batch(&[6])).unwrap_err().to_string();
    assert!(said.contains("t.parquet") && said.contains("comes after"), "{said}");
    drop(writer);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir(folder).unwrap();
}

/// Prefixes and digits in either case.
#[test]
fn hexadecimal_numbers_come_in_both_cases() {
    let all = rows("csv,columns=time:s;op;lba;size:blk", "1,R,0X1f,0x0A\n1,R,0x1F,10\n").unwrap();
    assert!(all.iter().all(|r| (r.lba, r.blocks) == (Lba(31), 10)), "{all:?}");
}

/// The command of the message reads the first of them, and passes over the others.
#[test]
fn the_first_of_three_columns_of_a_name_is_read() {
    let text = "time_s,op,lba,lba,lba,blocks\n5,R,7,1,2,8\n";
    let said = rows("", text).unwrap_err();
    let item = said.split("'(memory):").nth(1).and_then(|s| s.split('\'').next()).expect(&said);
    assert_eq!(item, "csv,columns=time:s;op;lba;-;-;size:blk,header=1");
    assert_eq!(rows(item, text).map(|b| b.lba), Ok(vec![Lba(7)]));
}

/// A stretch of 10 s has a thousand gaps of 10 ms; the one behind them is longer by the pause.
#[test]
fn a_busy_stretch_is_as_long_as_it_is_said_to_be() {
    let text = "synth:idle-gaps,requests=2500,busy=10s,idle=30s,interarrival=10ms,span=1GB";
    let all = read_all(&mut open(text, &OpenContext::default()).unwrap()).unwrap();
    let long = |i: &usize| all.arrival[i + 1].since(all.arrival[*i]) > SimTime::from_ms(10);
    assert_eq!((0..2499).filter(long).collect::<Vec<_>>(), [999, 2000]);
}
