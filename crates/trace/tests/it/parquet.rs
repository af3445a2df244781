//! The fast store gives back what was put in, refuses what is damaged, and leaves nothing half-written.

use parquet::data_type::{BoolType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use smrlab_trace::{
    Batch, OpenContext, Packing, ParquetSource, ParquetWriter, Record, TraceError, TraceSource, convert,
    open, read_all,
};
use smrlab_units::{HostOp, Lba, SimTime};
use std::path::PathBuf;
use std::sync::Arc;

fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn sample(n: u64) -> Batch {
    let mut b = Batch::new();
    for i in 0..n {
        let op = [HostOp::Read, HostOp::Write, HostOp::Flush, HostOp::Discard][(i % 4) as usize];
        let blocks = if op == HostOp::Flush { 0 } else { 1 + (i * i % 5000) as u32 };
        let (lba, device) = (Lba(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20), (i % 5) as u32 * 0x3000_0000);
        b.push(Record {
            arrival: SimTime(i * 1000 / 3),
            op,
            lba,
            blocks,
            device,
            stream: (i % 3) as u16,
            fua: i % 8 == 1,
        });
    }
    b
}

#[test]
fn every_packing_gives_back_what_was_put_in() {
    let dir = scratch("packings");
    let mut rows = sample(30_000);
    // Zone commands, but not in the first rows.
    for i in (10_000..30_000).filter(|i| i % 4 == 3) {
        rows.op[i] = HostOp::ALL[3 + i / 4 % 6];
    }
    for packing in [Packing::Plain, Packing::PlainZstd, Packing::PlainLz4, Packing::Delta, Packing::DeltaZstd]
    {
        let path = dir.join(format!("{packing:?}.parquet"));
        let mut w = ParquetWriter::with_packing(&path, "test", packing).unwrap();
        w.write(&rows).unwrap();
        assert_eq!(w.finish(|d| format!("dev=={d}=")).unwrap(), 30_000);
        let mut source = open(path.to_str().unwrap(), &OpenContext::default()).unwrap();
        let back = read_all(&mut source).unwrap();
        assert!(back == rows, "{packing:?}");
        assert_eq!(source.device_name(0x3000_0000), format!("dev=={}=", 0x3000_0000));
        // In pieces of a batch, each further than the one before.
        let mut source = open(path.to_str().unwrap(), &OpenContext::default()).unwrap();
        let (mut batch, mut read) = (Batch::new(), 0);
        while source.next_batch(&mut batch).unwrap() {
            assert!(batch.len() <= Batch::ROWS, "{} rows at once", batch.len());
            read += batch.len();
            assert_eq!(source.progress(), Some(read as f64 / 30_000.0));
        }
    }
    // The first half fills a group, the second does not.
    let path = dir.join("groups.parquet");
    let mut w = ParquetWriter::with_packing(&path, "test", Packing::Plain).unwrap();
    w.write(&sample(600_000)).unwrap();
    rows.arrival.fill(SimTime(1 << 40));
    w.write(&rows).unwrap();
    assert_eq!(w.finish(|d| d.to_string()).unwrap(), 630_000);
}

/// Of what other programs say of reads, flushes and discards.
#[test]
fn only_a_write_is_fua() {
    let mut rows = sample(1000);
    rows.fua.fill(true);
    let path = scratch("fua").join("t.parquet");
    let mut w = ParquetWriter::with_packing(&path, "test", Packing::Plain).unwrap();
    w.write(&rows).unwrap();
    w.finish(|d| d.to_string()).unwrap();
    let back = read_all(&mut open(path.to_str().unwrap(), &OpenContext::default()).unwrap()).unwrap();
    assert!(back.iter().all(|r| r.fua == (r.op == HostOp::Write)) && back.op == rows.op);
}

/// Each of the columns that a trace cannot do without is missed by its name, alone and with others; the last three may be absent. What
/// has such a name within something else is another.
#[test]
fn columns_that_are_not_there_are_named() {
    let all = ["arrival_ns", "op", "lba", "blocks", "device", "stream", "fua"];
    for missing in 0..1u32 << all.len() {
        let there = (0..all.len()).filter(|i| missing >> i & 1 == 0).map(|i| all[i]);
        let columns: String = there.clone().map(|name| format!("required int64 {name}; ")).collect();
        let schema = parse_message_type(&format!(
            "message other {{ required group more {{ required int64 op; required int64 lba; }} {columns} }}"
        ))
        .unwrap();
        let path = scratch("columns").join("t.parquet");
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            column.typed::<Int64Type>().write_batch(&[1], None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        let read = open(path.to_str().unwrap(), &OpenContext::default()).and_then(|mut s| read_all(&mut s));
        let gone: Vec<&str> = (0..4).filter(|i| missing >> i & 1 == 1).map(|i| all[i]).collect();
        match read {
            Ok(rows) => assert!(gone.is_empty() && rows.len() == 1, "{gone:?}"),
            Err(e) => assert!(
                !gone.is_empty()
                    && e.to_string().contains(&format!("lacks the column(s) {}", gone.join(", "))),
                "{gone:?}: {e}"
            ),
        }
    }
}

/// As other tools write them: every column nullable, INT64 throughout; arrivals, operations, first blocks, blocks. Where blocks
/// are fewer than rows, the others are null.
fn of_others(name: &str, columns: [&[i64]; 4]) -> Box<dyn TraceSource> {
    let schema = "message other { optional int64 arrival_ns; optional int64 op; optional int64 lba; optional int64 blocks; }";
    let path = scratch(name).join("t.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in columns {
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = (0..columns[0].len()).map(|row| i16::from(row < values.len())).collect();
        column.typed::<Int64Type>().write_batch(values, Some(&levels), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    Box::new(open(path.to_str().unwrap(), &OpenContext::default()).unwrap())
}

#[test]
fn what_others_wrote_is_checked_row_by_row() {
    let rows = 20_000;
    let (at, zeros, ones) = ((0..rows).collect::<Vec<i64>>(), vec![0; rows as usize], vec![1; rows as usize]);
    let mut source = of_others("whole", [&at, &zeros, &at, &ones]);
    let mut batch = Batch::new();
    source.next_batch(&mut batch).unwrap();
    assert_eq!(source.progress(), Some(batch.len() as f64 / rows as f64));
    let fallen: Vec<i64> = at.iter().map(|at| at - at / 8192 * 5).collect();
    for (name, columns, why) in [
        (
            "fallen",
            [&fallen, &zeros, &at, &ones],
            "t.parquet: near row 8193: arrivals run back; a Parquet trace is",
        ),
        (
            "no-blocks",
            [&at, &zeros, &at, &zeros],
            "t.parquet: near row 1: a request that is no flush has 0 blocks",
        ),
    ] {
        let read = read_all(&mut of_others(name, columns.map(|c| &c[..]))).map(|rows| rows.len());
        let said = read.map_or_else(|e| e.to_string(), |rows| format!("{rows} rows"));
        assert!(said.contains(why), "{said}");
    }
}

/// A column of another kind is named, with the kinds that it may have; a truth value is one of `fua` alone.
#[test]
fn a_column_of_another_kind_is_named() {
    const NAMES: [&str; 7] = ["arrival_ns", "op", "lba", "blocks", "device", "stream", "fua"];
    for (wrong, kind) in (0..7).flat_map(|i| [(i, "double"), (i, "boolean")]) {
        let fields =
            (0..7).map(|i| format!("required {} {};", if i == wrong { kind } else { "int64" }, NAMES[i]));
        let schema =
            parse_message_type(&format!("message other {{ {} }}", fields.collect::<String>())).unwrap();
        let path = scratch("another-kind").join("t.parquet");
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for i in 0..7 {
            let mut column = group.next_column().unwrap().unwrap();
            match kind {
                "double" if i == wrong => column.typed::<DoubleType>().write_batch(&[1.0], None, None),
                "boolean" if i == wrong => column.typed::<BoolType>().write_batch(&[true], None, None),
                _ => column.typed::<Int64Type>().write_batch(&[1], None, None),
            }
            .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        let read = open(path.to_str().unwrap(), &OpenContext::default()).and_then(|mut s| read_all(&mut s));
        let (name, or) = (NAMES[wrong], if wrong == 6 { "BOOLEAN, " } else { "" });
        match read {
            Ok(rows) => assert!((wrong, kind) == (6, "boolean") && rows.fua == [true], "{name}: {kind}"),
            Err(e) => {
                assert!(
                    e.to_string().ends_with(&format!("t.parquet: column {name} must be {or}INT32 or INT64")),
                    "{e}"
                );
            }
        }
    }
}

/// Numbers of operations are those that there are, whichever of their bits are set, alone and beside others.
#[test]
fn a_number_of_no_operation_is_refused() {
    for op in (0..40).chain([-1, 64, 255, 256, 1 << 31, 1 << 40]) {
        for others in [0, 8] {
            let read =
                read_all(&mut of_others("op", [&[0, 5, 9], &[others, op, others], &[8, 16, 24], &[1, 1, 1]]));
            let known = usize::try_from(op).ok().and_then(|op| HostOp::ALL.get(op)).copied();
            match (read, known) {
                (Ok(rows), known) => assert_eq!(Some(rows.op[1]), known, "{op} beside {others}"),
                (Err(e), None) => assert!(e.to_string().contains("op"), "{op}: {e}"),
                (Err(e), Some(_)) => panic!("{op} beside {others}: {e}"),
            }
        }
    }
}

/// A column of 32 or of 64 bits holds among good values one that cannot be: below nothing, or more than there can be.
#[test]
fn a_value_that_cannot_be_is_refused_in_each_column_of_each_kind() {
    const NAMES: [&str; 7] = ["arrival_ns", "op", "lba", "blocks", "device", "stream", "fua"];
    const GOOD: [[i64; 3]; 7] =
        [[0, 5, 9], [0, 1, 1], [8, 16, 24], [1, 1, 1], [3, 0, 3], [0, 2, 0], [0, 1, 0]];
    let last = HostOp::ALL.len() as i64 - 1;
    let most_of = [i64::MAX, last, i64::MAX >> 1, 0xffff_ffff, 0xffff_ffff, 0xffff, 1];
    let written = |kind: &str, wrong: Option<(usize, i64)>| {
        let fields: String = NAMES.iter().map(|name| format!("required {kind} {name};")).collect();
        let schema = Arc::new(parse_message_type(&format!("message other {{ {fields} }}")).unwrap());
        let path = scratch("kinds").join("t.parquet");
        let mut writer =
            SerializedFileWriter::new(std::fs::File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for (i, good) in GOOD.iter().enumerate() {
            let mut values = *good;
            if let Some((_, value)) = wrong.filter(|w| w.0 == i) {
                values[1] = value;
            }
            let mut column = group.next_column().unwrap().unwrap();
            if kind == "int64" {
                column.typed::<Int64Type>().write_batch(&values, None, None).unwrap();
            } else {
                column.typed::<Int32Type>().write_batch(&values.map(|v| v as i32), None, None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        let mut source = open(path.to_str().unwrap(), &OpenContext::default()).unwrap();
        read_all(&mut source).map(|rows| rows.len()).map_err(|e| e.to_string())
    };
    for kind in ["int32", "int64"] {
        assert_eq!(written(kind, None), Ok(3), "{kind}");
        for (i, name) in NAMES.iter().enumerate() {
            let least = if kind == "int32" { i64::from(i32::MIN) } else { i64::MIN };
            let most = if kind == "int32" { i64::from(i32::MAX) } else { i64::MAX };
            for value in [-1, least, most_of[i].saturating_add(1), most] {
                if value > most || (0..=most_of[i]).contains(&value) {
                    continue;
                }
                let read = written(kind, Some((i, value)));
                assert!(read.as_ref().is_err_and(|e| e.contains(name)), "{kind} {name}: {value}: {read:?}");
            }
        }
    }
}

/// Without a null they are read; a null is refused.
#[test]
fn nullable_columns_are_read_where_nothing_is_null() {
    for null in [false, true] {
        let blocks: &[i64] = if null { &[8, 16] } else { &[8, 16, 1] };
        let read = read_all(&mut of_others("nullable", [&[0, 5, 9], &[0, 1, 1], &[8, 16, 1 << 40], blocks]));
        match null {
            false => {
                let rows = read.unwrap();
                assert_eq!(rows.arrival.iter().map(|t| t.0).collect::<Vec<_>>(), [0, 5, 9]);
                assert_eq!(rows.op, [HostOp::Read, HostOp::Write, HostOp::Write]);
                assert_eq!(rows.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [8, 16, 1 << 40]);
                assert_eq!(rows.blocks, [8, 16, 1]);
            }
            true => assert!(read.unwrap_err().to_string().contains("blocks")),
        }
    }
}

#[test]
fn an_unfinished_file_is_not_there() {
    let dir = scratch("unfinished");
    let path = dir.join("t.parquet");
    let mut w = ParquetWriter::create(&path, "test").unwrap();
    w.write(&sample(100)).unwrap();
    drop(w);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    let mut source = open("synth:uniform,span=1GB,requests=100000", &OpenContext::default()).unwrap();
    assert!(convert(&mut source, &path, "test", |n| n < 20_000).is_err());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

/// A trace without a request is none, and what stood there before stays.
#[test]
fn a_trace_of_nothing_is_not_written() {
    let dir = scratch("nothing");
    let path = dir.join("t.parquet");
    std::fs::write(&path, "before").unwrap();
    let mut w = ParquetWriter::create(&path, "test").unwrap();
    w.write(&Batch::new()).unwrap();
    assert!(matches!(w.finish(|d| d.to_string()), Err(TraceError::Empty(_))));
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn a_truncated_file_is_told() {
    let dir = scratch("truncated");
    let path = dir.join("t.parquet");
    let mut w = ParquetWriter::create(&path, "test").unwrap();
    w.write(&sample(1000)).unwrap();
    w.finish(|d| d.to_string()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let e = open(path.to_str().unwrap(), &OpenContext::default()).err().unwrap().to_string();
    assert!(e.contains("t.parquet") && e.contains("truncated"), "{e}");
}

#[test]
fn falling_arrivals_are_not_written() {
    let dir = scratch("falling");
    let mut w = ParquetWriter::create(&dir.join("t.parquet"), "test").unwrap();
    let mut b = sample(10);
    b.arrival[5] = SimTime::ZERO;
    assert!(matches!(w.write(&b), Err(TraceError::RunsBack { .. })));
}

/// Writes the fuzz corpus of the Parquet reader anew where asked: `SMRLAB_WRITE_CORPUS=1 cargo test -p smrlab-trace`.
#[test]
fn the_fuzz_corpus_is_a_small_trace_of_ours() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parquet");
    for packing in [Packing::DeltaZstd, Packing::Plain] {
        let path = corpus.join(format!("{packing:?}"));
        if std::env::var_os("SMRLAB_WRITE_CORPUS").is_some() {
            let mut w = ParquetWriter::with_packing(&path, "corpus", packing).unwrap();
            w.write(&sample(50)).unwrap();
            w.finish(|d| d.to_string()).unwrap();
        }
        let back = read_all(&mut ParquetSource::open(&path).unwrap()).unwrap();
        assert!(back == sample(50), "{packing:?}");
    }
    // As files were before there was such a column.
    let back = read_all(&mut ParquetSource::open(&corpus.join("WithoutFua")).unwrap()).unwrap();
    let mut none = sample(50);
    none.fua.fill(false);
    assert!(back == none, "without a column fua");
}
