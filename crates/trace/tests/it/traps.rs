//! Each format's traps, a test named after each, on lines made here.

use smrlab_trace::{Batch, TraceSource, open_bytes, read_all};
use smrlab_units::{HostOp, SimTime};

fn source(format: &str, text: &[u8]) -> Box<dyn TraceSource> {
    open_bytes(text.to_vec(), format).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn rows(format: &str, text: &str) -> Batch {
    read_all(&mut source(format, text.as_bytes())).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn rows_of(format: &str, bytes: &[u8]) -> Batch {
    read_all(&mut source(format, bytes)).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn extents(b: &Batch) -> Vec<(HostOp, u64, u32)> {
    b.iter().map(|r| (r.op, r.lba.0, r.blocks)).collect()
}

fn refused(format: &str, text: &str, needles: &[&str]) {
    let e = open_bytes(text.as_bytes().to_vec(), format).and_then(|mut s| read_all(&mut s)).err();
    let e = e.unwrap_or_else(|| panic!("{format} takes {text:?}")).to_string();
    for n in needles {
        assert!(e.contains(n), "{format}: {e:?} lacks {n:?}");
    }
}

use HostOp::{Discard, Flush, Read, Write};

#[test]
fn msr_disk_numbers_repeat_across_hosts() {
    let text = "128166372003061629,src1,1,Read,512,512,1\n128166372003061630,prn,1,Write,512,512,1\n\
                128166372003061631,src1,2,Read,512,512,1\n128166372003061632,src1,1,Read,512,512,1\n";
    let mut s = source("msr", text.as_bytes());
    let b = read_all(&mut s).unwrap();
    assert_eq!(b.device, [0, 1, 2, 0]);
    assert_eq!((s.device_name(0), s.device_name(1)), ("src1_1".to_owned(), "prn_1".to_owned()));
    assert_eq!(b.arrival[1], SimTime(100), "a tick is 100 ns, and the first request is at 0");
}

#[test]
fn msr_unaligned_requests_count_the_blocks_they_touch() {
    let b = rows("msr", "128166372003061629,a,0,Read,1000,100,1\n128166372003061629,a,0,Read,1000,25,1\n");
    assert_eq!(extents(&b), [(Read, 1, 2), (Read, 1, 2)], "1000..1025 crosses the block boundary at 1024");
}

#[test]
fn spc_opcodes_come_in_both_cases_and_fields_may_follow() {
    let b = rows("spc", "0,20941264,8192,W,0.551706\r\n3,1,512,r,0.551706,extra\n");
    assert_eq!(extents(&b), [(Write, 20_941_264, 16), (Read, 1, 1)]);
    assert_eq!(b.device, [0, 3]);
    assert_eq!(b.arrival[0], SimTime(551_706_000), "times of the trace's own clock are kept");
}

#[test]
fn disksim_flags_are_hexadecimal_and_bit_0_is_a_read() {
    let b = rows("disksim", "0.5 0 100 8 1\n0.5\t1  200 8 0\n0.6 0 1 1 b\n0.6 0 1 1 0x10\n");
    assert_eq!(b.op, [Read, Write, Read, Write]);
    assert_eq!(b.arrival[2], SimTime(600_000));
}

#[test]
fn five_numbers_that_could_be_three_formats_are_an_error_that_names_them() {
    refused("auto", "0 0 1024 512 1\n1 0 512 512 0\n", &["disksim", "mqsim", "msr-cut", "name the format"]);
    assert_eq!(rows("auto", "0.1 0 1024 8 1\n").len(), 1);
}

#[test]
fn blkparse_counts_one_event_of_a_request_and_passes_over_the_summary() {
    let text = "  8,16 1 1 0.000000000 9 A W 100 + 8 <- (8,17) 50\n  8,16 1 2 0.000000100 9 Q W 100 + 8 [x]\n\
                \x20 8,16 1 3 0.000000200 9 D W 100 + 8 [x]\n  8,16 1 4 0.000000300 0 C W 100 + 8 [0]\n\
                \x20 8,16 1 5 0.000000400 9 D FF 0 + 0 [x]\n  8,16 1 6 0.000000500 9 D D 8 + 8 [x]\n\
                \x20 8,16 1 7 0.000000600 9 D N 0 (12 00 ..) [x]\n  8,16 1 8 0.000000700 9 m N cfq3 Not idling\n\
                CPU1 (8,16):\n Reads Queued:           0,        0KiB\n";
    assert_eq!(extents(&rows("blkparse", text)), [(Write, 100, 8), (Flush, 0, 0), (Discard, 8, 8)]);
    assert_eq!(rows("blkparse,event=queued", text).arrival, [SimTime(100)]);
    refused("blkparse", "some text\n", &["line 1", "some"]);
    let line = "8,16 1 2 0.5 9 D W 100 + 8 [x]\n";
    assert_eq!(rows("auto", line).len(), 1);
    refused("auto", &line.replace("0.5", "05"), &["format"]);
}

#[test]
fn blkparse_without_the_asked_event_says_which_there_are() {
    refused(
        "blkparse",
        "8,16 1 2 0.1 9 Q W 100 + 8 [x]\n",
        &["no issued request", "1 queued", "event=queued"],
    );
}

#[test]
fn hp_sectors_have_256_bytes() {
    let mut t = b"$$TR_IOREC-1.3 (x) \0\nversion = 1.3;\n".to_vec();
    for n in [56u32, 0x4_0001, 2, 500, 1, 2, 1024, 3, 0x0800_0108, 4, 0, 1, 0, 1] {
        t.extend(n.to_be_bytes());
    }
    let mut s = source("auto", &t);
    let b = read_all(&mut s).unwrap();
    assert_eq!(extents(&b), [(Read, 1, 3)], "bytes 768..1792");
    assert_eq!((b.arrival[0], s.device_name(b.device[0])), (SimTime(2_000_500_000), "disk1".to_owned()));
    let cut = open_bytes(t[..t.len() - 1].to_vec(), "hp-srt").and_then(|mut s| read_all(&mut s)).unwrap_err();
    assert!(cut.to_string().contains("cut short") && cut.to_string().contains("skip_bad=1"), "{cut}");
    let b = rows_of("hp-srt,skip_bad=1", &[&t[..], &t[t.len() - 56..t.len() - 1]].concat());
    assert_eq!(b.len(), 1, "what the message advises helps");
}

#[test]
fn a_validation_trace_is_a_closed_loop() {
    let b = rows("auto", "W Hit 4583176 4 663.00000 45422.00000\nR Miss 100 2 1000.5 0.25\nR Hit 1 1 1 1\n");
    assert_eq!(b.arrival, [SimTime(0), SimTime(46_085_000), SimTime(47_085_750)]);
}

#[test]
fn fio_2_has_only_waits_and_fio_3_has_microseconds() {
    let b = rows(
        "fio",
        "fio version 2 iolog\n/d add\n/d open\n/d read 0 4096\n/d wait 500 0\n/d write 512 1\n/d sync 0 0\n/d close\n",
    );
    assert_eq!(extents(&b), [(Read, 0, 8), (Write, 1, 1), (Flush, 0, 0)]);
    assert_eq!(b.arrival, [SimTime(0), SimTime(500_000), SimTime(500_000)]);
    let b = rows("auto", "fio version 3 iolog\n2 n1 add\n872 n1 open\n878 n1 trim 0 16384\n");
    assert_eq!((b.op[0], b.arrival[0]), (Discard, SimTime(878_000)));
    refused("fio", "/d read 0 4096\n", &["first line"]);
    refused("fio", "fio version 2 iolog\n/d erase 0 4096\n", &["line 2", "erase"]);
}

#[test]
fn vscsi_versions_keep_their_fields_in_different_places() {
    let mut v1 = Vec::new();
    let mut v2 = Vec::new();
    for (i, cmd) in [0x2au16, 0x28, 0x12, 0x35].iter().enumerate() {
        let (us, lbn) = (1_000 + i as u64, 77u64);
        v1.extend([1u32, 1024, 1].iter().flat_map(|n| n.to_le_bytes()));
        v1.extend([*cmd, 0x100].iter().flat_map(|n| n.to_le_bytes()));
        v1.extend([lbn, us].iter().flat_map(|n| n.to_le_bytes()));
        v2.extend([*cmd, 0x200].iter().flat_map(|n| n.to_le_bytes()));
        v2.extend([1u32, 1024, 1].iter().flat_map(|n| n.to_le_bytes()));
        v2.extend([lbn, us, 9].iter().flat_map(|n| n.to_le_bytes()));
    }
    for bytes in [v1, v2] {
        let b = read_all(&mut source("auto", &bytes)).unwrap();
        assert_eq!(extents(&b), [(Write, 77, 2), (Read, 77, 2), (Flush, 0, 0)], "an inquiry moves no data");
        assert_eq!(b.arrival[1], SimTime(1_000));
    }
}

#[test]
fn tencent_seconds_run_back() {
    let text = "1538323201,4247200,128,1,1058\n1538323200,8,16,0,1063\n";
    assert_eq!(extents(&rows("auto", text)), [(Read, 8, 16), (Write, 4_247_200, 128)]);
    refused("tencent,sort_window=0", text, &["line 2", "sort_window=1s"]);
}

#[test]
fn alibaba_has_the_device_first_and_the_time_last() {
    let b = rows("auto", "419,W,8792731648,16384,1577808144360767\n725,R,0,512,1577808144360867\n");
    assert_eq!(extents(&b), [(Write, 17_173_304, 32), (Read, 0, 1)]);
    assert_eq!((b.arrival[1], b.device[0]), (SimTime(100_000), 419));
}

#[test]
fn systor_responses_may_be_missing_and_rows_come_as_they_complete() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n1455591804.310701000,0.006,R,0,1024,512\n\
                1455591804.300701000,,W,0,0,512\n";
    let b = rows("auto", text);
    assert_eq!(extents(&b), [(Write, 0, 1), (Read, 2, 1)]);
    assert_eq!(b.arrival[1], SimTime(10_000_000));
}

#[test]
fn fiu_process_names_may_have_blanks() {
    let b = rows("auto", "467651 2522 my odd proc 644661632 8 W 6 0 98b9cb\n467652 1 x 8 16 R 6 1 0\n");
    assert_eq!(extents(&b), [(Write, 644_661_632, 8), (Read, 8, 16)]);
    assert_eq!(b.device, [0, 1]);
    // Time, process and its name, and six more.
    let line = "467651 2522 x 8 16 R 6 1 0";
    for columns in 3..9 {
        let cut = line.split(' ').take(columns).collect::<Vec<_>>().join(" ");
        let e = smrlab_trace::open_bytes(cut.into(), "fiu").and_then(|mut s| smrlab_trace::read_all(&mut s));
        let e = e.map(|b| b.len()).unwrap_err().to_string();
        assert!(e.contains("there are fewer than 9 columns"), "{columns}: {e}");
    }
}

const LOG: &str = r#"h1 - - [01/Jul/1995:00:00:01 -0400] "GET /a HTTP/1.0" 200 6245
h2 - - [01/Jul/1995:00:00:03 -0400] "GET /b?"q" HTTP/1.0" 200 100
h1 - - [01/Jul/1995:00:00:02 -0400] "GET /a HTTP/1.0" 304 0
h1 - u [01/Jul/1995:00:00:04 -0400] "GET /a HTTP/1.1" 206 200000 "http://ref/" "agent (x) 200 1"
h1 - - [01/Jul/1995:00:00:05 -0400] "GET /b?"q" HTTP/1.0" 200 100
h1 - - [01/Jul/1995:00:00:05 -0400] "POST /c" 404 -
"#;

#[test]
fn http_files_lie_in_order_of_first_use_and_move_when_they_grow() {
    let b = rows("auto", LOG);
    let expected = [
        (Read, 0, 13),
        (Read, 16, 1),
        // /a has grown beyond its 16 blocks: a new place behind /b, read in pieces of 128 KiB.
        (Read, 24, 256),
        (Read, 280, 135),
        (Read, 16, 1),
    ];
    assert_eq!(extents(&b), expected);
    assert_eq!(b.arrival[1], SimTime(2_000_000_000));
    refused(
        "http",
        "h - - [01/Jul/1995:00:00:01 -0400] \"GET /a\" 404 -\n",
        &["no line of the log moved data"],
    );
}

#[test]
fn csv_takes_any_columns_and_says_what_is_missing() {
    let b = rows(
        "csv,columns=op;-;size:4KiB;offset:blk;time:us,sep=;,read=get,write=put",
        "get;x;2;8;5\nput;;1;0;6\n",
    );
    assert_eq!(extents(&b), [(Read, 8, 16), (Write, 0, 8)]);
    assert_eq!(rows("csv,columns=time:s;op;lba;size:blk,header=2", "a\nb\n1,R,2,3\n").len(), 1);
    refused("csv", "1,2\n", &["columns"]);
    refused("csv,columns=time:s;op;lba", "1,2\n", &["one size"]);
    refused("csv,columns=time:weeks;op;lba;size", "1,2\n", &["time:s|ms"]);
    refused("csv,preset=diskmno", "1,2\n", &["diskmon"]);
}

/// An F behind the W is FUA; one before it asks for a flush first, and reads have none.
#[test]
fn fua_is_the_f_behind_the_w() {
    let letters = ["W", "WF", "WFS", "WS", "FW", "FWFS", "FWS", "R", "RF"];
    let line = |(i, l): (usize, &&str)| format!("8,16 1 {i} 0.{i} 9 D {l} {i}00 + 8 [x]\n");
    let text: String = letters.iter().enumerate().map(line).collect();
    let expected = [false, true, true, false, false, true, false, false, false];
    assert_eq!(rows("blkparse", &text).fua, expected);
    let header = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
    let line = |(i, l): (usize, &&str)| format!("{i}.5 x 13 sdb {l} {i}00 4096 0.0\n");
    let text: String = letters.iter().enumerate().map(line).collect();
    assert_eq!(rows("biosnoop", &format!("{header}{text}")).fua, expected);
}

#[test]
fn columns_may_say_what_is_fua() {
    let text = "0,W,8,8,true\n1,W,8,8,false\n2,W,8,8,1\n3,W,8,8,0\n4,R,8,8,TRUE\n5,W,8,8,\n";
    let expected = [true, false, true, false, false, false];
    let format = "csv,columns=time:s;op;lba;size:blk;fua";
    assert_eq!(rows(format, text).fua, expected, "of writes alone");
    let named = format!("f,when,what,n,where\n{}", "yes,0,W,8,8\n");
    let format = "csv,columns=fua=f;time:s=when;op=what;size:blk=n;lba=where";
    refused(format, &named, &["line 2", "fua 'yes'", "true or false"]);
    assert_eq!(rows(format, &named.replace("yes", "true")).fua, [true]);
}
