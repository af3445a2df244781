//! The traps of formats that users bring along from servers, tools and simulators; a test named after each.

use smrlab_trace::{Batch, TraceSource, open_bytes, read_all};
use smrlab_units::HostOp::{Discard, Flush, Read, Write};
use smrlab_units::{HostOp, SimTime};

fn source(format: &str, bytes: &[u8]) -> Box<dyn TraceSource> {
    open_bytes(bytes.to_vec(), format).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn rows(format: &str, bytes: impl AsRef<[u8]>) -> Batch {
    read_all(&mut source(format, bytes.as_ref())).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn extents(b: &Batch) -> Vec<(HostOp, u64, u32)> {
    b.iter().map(|r| (r.op, r.lba.0, r.blocks)).collect()
}

fn micros(b: &Batch) -> Vec<u64> {
    b.arrival.iter().map(|at| at.0 / 1000).collect()
}

fn refused(format: &str, bytes: impl AsRef<[u8]>, needles: &[&str]) {
    let e = open_bytes(bytes.as_ref().to_vec(), format).and_then(|mut s| read_all(&mut s)).err();
    let e = e.unwrap_or_else(|| panic!("{format} takes it")).to_string();
    needles.iter().for_each(|n| assert!(e.contains(n), "{format}: {e:?} lacks {n:?}"));
}

const ETW: &str = "BeginHeader
   DiskRead,  TimeStamp, Process Name ( PID),   ThreadID, IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags
   DiskFlush, TimeStamp, Process Name ( PID),   ThreadID, IrpPtr,  ElapsedTime,  DiskNum, IrpFlags
EndHeader
   DiskReadInit,       1200,     System (   4),      4132, 0xfffffa8015b4d190
   DiskRead,       5021,     System (   4),      4132, 0xfffffa8015b4d190, 0x0a3e5e8000, 0x00010000,        3821,        5, 0x060043
   DiskWrite,      6000,     System (   4),      4132, 0xfffffa8015b4d190, 0x0a3e5f8000, 0x00001000,        5900,        5, 0x060043
   DiskFlush,      6500,     System (   4),      4132, 0xfffffa8015b4d190,   500,        5, 0x060043
   DiskRead,         50,     System (   4),      4132, 0xfffffa8015b4d190, 0, 0x200,        9000,        6, 0x060043
   FileIoRead,     7000,     anything, else
";

#[test]
fn etw_lines_are_written_when_requests_end_and_numbers_are_hexadecimal() {
    let mut s = source("auto", ETW.as_bytes());
    let b = read_all(&mut s).unwrap();
    let expected =
        [(Read, 0, 1), (Write, 0x0a_3e5f_8000 / 512, 8), (Read, 0x0a_3e5e_8000 / 512, 128), (Flush, 0, 0)];
    assert_eq!(extents(&b), expected);
    assert_eq!(micros(&b), [0, 100, 1200, 6000], "what began before the recording arrives at 0");
    assert_eq!((s.device_name(b.device[0]), s.device_name(b.device[1])), ("disk6".into(), "disk5".into()));
}

#[test]
fn etw_columns_are_where_the_header_says() {
    let newer = "BeginHeader\nDiskRead, TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum\n\
                 EndHeader\nDiskRead, 8612, xperf.exe (3984), 11844, 1, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000, 283, 0\n";
    let b = rows("auto", newer);
    assert_eq!((extents(&b), micros(&b)), (vec![(Read, 0x01_8f0b_8000 / 512, 8)], vec![8329]));
    refused("etw", "DiskRead, 8612, x (1), 2, 0xf, 0x018f, 0x0, 283, 0\n", &["line 1", "size 0"]);
    refused("etw", "DiskRead, 8612, x (1), 2\n", &["line 1", "ElapsedTime"]);
    refused("etw", "BeginHeader\nEndHeader\nFileIoRead, 1\n", &["no DiskRead"]);
}

const THESIOS: &str = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,\
cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,x\n";

#[test]
fn thesios_files_are_laid_out_in_extents_and_the_header_recurs() {
    let text = format!(
        "{THESIOS}a,1048064,app,1,WARM,R,WRITE,O,0,-1,1024,0,0,1705306000.5,0,0\n\
         b,0,app,1,WARM,R,READ,O,0,0,512,4096,512,1705306001.5,0,0\n{THESIOS}\
         a,0,app,1,WARM,R,READ,O,0,1,512,0,512,1705306002.5,0,0\nc,0,app,1,WARM,R,WRITE,O,0,-1,0,0,0,1705306003,0,0\n\
         a,1048576,app,1,WARM,R,READ,O,0,0,512,512,512,1705306004.5,0,0\n"
    );
    let b = rows("auto", &text);
    // The first write ends extent 0 of file a (at 0) and begins extent 1 (at 2048), file b is behind them.
    let expected = [(Write, 2047, 1), (Write, 2048, 1), (Read, 4096, 8), (Read, 2048, 1)];
    assert_eq!(
        extents(&b),
        expected,
        "hits of the server's memory and empty requests do not reach the drive"
    );
    assert_eq!(micros(&b), [0, 0, 1_000_000, 4_000_000]);
    assert_eq!(rows("thesios,level=server", &text).len(), 5);
    refused("thesios", "a,1048064,app\n", &["line 1", "header"]);
    refused("thesios,extent=1%", &text, &["extent"]);
}

#[test]
fn biosnoop_commands_have_blanks_and_lines_come_when_requests_end() {
    let text = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
                0.000004    supervise      2287    vda       W 13092560   4096      0.00  0.50\n\
                0.500000    kworker u 8:1  13      sdb       R 128        8192      2.00 12.50\n\
                0.400000    jbd2           13      sdb       FWS 0        0      0.00 1.00\n";
    let mut s = source("auto", text.as_bytes());
    let b = read_all(&mut s).unwrap();
    assert_eq!(extents(&b), [(Write, 13_092_560, 8), (Flush, 0, 0), (Read, 128, 16)]);
    assert_eq!(micros(&b), [0, 399_000, 485_500]);
    assert_eq!((s.device_name(b.device[0]), s.device_name(b.device[2])), ("vda".into(), "sdb".into()));
    let bpftrace =
        "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash   4179        10\n";
    // A write of nothing is a flush, a read or discard of nothing is nothing.
    let nothing = ["R", "D", "W", "FN"].map(|op| format!("0.600000 sh 13 sdb {op} 8 0 0.00 1.00\n")).concat();
    let b = rows("biosnoop", format!("{text}{nothing}"));
    assert_eq!(extents(&b)[3..], [(Flush, 0, 0), (Flush, 0, 0)]);
    refused("biosnoop", bpftrace, &["line 1", "header"]);
    refused("biosnoop", format!("{text}x\n"), &["line 5", "columns are missing"]);
}

fn bunch(at: u64, packets: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut b: Vec<u8> = [packets.len() as u64, at].iter().flat_map(|n| n.to_le_bytes()).collect();
    for (sector, bytes, rw) in packets {
        b.extend([*sector, *bytes].iter().flat_map(|n| n.to_le_bytes()));
        b.extend([*rw, 0].iter().flat_map(|n| n.to_le_bytes()));
    }
    b
}

#[test]
fn btrecord_bunches_arrive_together_and_0_is_a_write() {
    let head: Vec<u8> = [0x1_0000u64, 5_000_000_000, 2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    let all = [
        head.clone(),
        bunch(5_000_000_000, &[(8, 4096, 0), (64, 100, 1)]),
        bunch(5_010_000_000, &[(16, 1024, 1)]),
    ];
    let b = rows("auto", all.concat());
    assert_eq!(extents(&b), [(Write, 8, 8), (Read, 64, 1), (Read, 16, 2)]);
    assert_eq!(micros(&b), [0, 0, 10_000]);
    let full = [head.clone(), bunch(7, &[(8, 512, 1); 512])].concat();
    assert_eq!(rows("btrecord", full).len(), 512);
    let many = [head.clone(), [513u64, 1].iter().flat_map(|n| n.to_le_bytes()).collect()].concat();
    refused("btrecord", many, &["record 2 (byte 32)", "513 requests"]);
    refused("btrecord", &all.concat()[..100], &["cut short", "skip_bad=1"]);
    let mut cut = source("btrecord,skip_bad=1", &all.concat()[..100]);
    assert_eq!((read_all(&mut cut).unwrap().len(), cut.skipped()), (2, 1));
    refused("btrecord", [head, bunch(1, &[(1, 512, 7)])].concat(), &["direction 7"]);
}

fn objects(all: &[(u32, u64, u32)]) -> Vec<u8> {
    let record = |(s, object, bytes): &(u32, u64, u32)| {
        [&s.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
    };
    all.iter().flat_map(record).collect()
}

#[test]
fn oracle_general_objects_get_places_and_all_are_reads() {
    let all = [(100, 9, 5000), (100, 7, 1), (101, 9, 4096), (102, 8, 0), (103, 9, 9000)];
    let b = rows("oracleGeneral", objects(&all));
    // Object 9 takes 16 blocks at 0, object 7 eight behind it; 9 moves when it grows to 18 blocks.
    assert_eq!(extents(&b), [(Read, 0, 10), (Read, 16, 1), (Read, 0, 8), (Read, 24, 18)]);
    assert_eq!(b.arrival[3], SimTime(3_000_000_000), "seconds since the first request");
    let b = rows("oracleGeneral,object=block,unit=4KiB", objects(&all));
    assert_eq!(b.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [72, 56, 72, 72]);
    let detected: Vec<_> = (0..20).map(|i| (1000 + i, u64::from(i) << 40, 4096)).collect();
    assert_eq!(rows("auto", objects(&detected)).len(), 20);
    // Half a year between two requests: these are no seconds.
    let apart: Vec<_> =
        detected.iter().map(|(s, object, n)| (1000 + (s - 1000) * (1 << 24), *object, *n)).collect();
    refused("auto", objects(&apart), &["could not be told"]);
}

/// Milliseconds with decimals, and whole blocks everywhere: few lines may be of either format, many are not by chance.
#[test]
fn many_lines_of_whole_blocks_are_bytes() {
    let lines = |n: u64| (0..n).map(|i| format!("{i}.5 0 {} 1024 1\n", 512 * i)).collect::<String>();
    refused("auto", lines(19), &["disksim", "msr-cut"]);
    let b = rows("auto", lines(20));
    assert_eq!((b.len(), extents(&b)[3]), (20, (Read, 3, 2)));
}

#[test]
fn ssdsim_times_are_nanoseconds_and_1_is_a_read() {
    let b = rows("ssdsim", "3563867500 0 2132871 16 1\n3563868500 0 8 8 0\n");
    assert_eq!(extents(&b), [(Read, 2_132_871, 16), (Write, 8, 8)]);
    assert_eq!(b.arrival[0], SimTime(3_563_867_500));
}

#[test]
fn csv_columns_are_found_by_the_names_of_the_header() {
    let text = "\"Host\",Req Type,Off,Len,TS\nh,Write,0x200,512,5\nh,Read,1024,0x400,6\n";
    let item = "csv,columns=time:us=TS;op=Req Type;offset:B=Off;size:B=Len;device=Host";
    let b = rows(item, text);
    assert_eq!(extents(&b), [(Write, 1, 1), (Read, 2, 2)]);
    assert_eq!(micros(&b), [5, 6]);
    refused("csv,columns=time:us=Time;op=Req Type;offset=Off;size=Len", text, &["no column 'Time'", "TS"]);
    refused("csv,columns=time:us=TS;op;offset=Off;size=Len", text, &["or none"]);
    refused(item, "Host,Req Type,Off,Len,TS\nh,Write,0\n", &["line 2", "time"]);
}

#[test]
fn a_header_of_our_own_names_says_all() {
    for format in ["", "csv"] {
        let b = rows(format, "time_s,op,lba,blocks\n0.5,W,8,16\n0.75,read,0,8\n1,flush,0,0\n1,discard,8,8\n");
        assert_eq!(extents(&b), [(Write, 8, 16), (Read, 0, 8), (Flush, 0, 0), (Discard, 8, 8)]);
        assert_eq!(micros(&b), [500_000, 750_000, 1_000_000, 1_000_000]);
        // As `requests.parquet` comes out of another tool.
        let b = rows(
            format,
            "id,arrival_ns,start_ns,op,lba,blocks,stream\n0,7000,8000,1,8,8,3\n1,9000,9000,2,0,0,0\n",
        );
        assert_eq!(extents(&b), [(Write, 8, 8), (Flush, 0, 0)]);
        assert_eq!((micros(&b), b.stream), (vec![7, 9], vec![3, 0]));
        // What follows the header would be another format's, too.
        let b = rows(format, "arrival_ns,op,lba,blocks,stream\n1000,W,8,16,0\n2000,W,0,8,0\n");
        assert_eq!(extents(&b), [(Write, 8, 16), (Write, 0, 8)]);
    }
    let b = rows("csv,gap=10ms,all=write", "lba\tblocks\tdevice\n8\t8\t1\n");
    assert_eq!(extents(&b), [(Write, 8, 8)]);
    let lines =
        ["time,op,lba,blocks", "(memory):csv,columns=time:ms=time;op=op;lba=lba;size:blk=blocks", "no unit"];
    refused("", "time,op,lba,blocks\n5,R,8,8\n", &lines);
    refused("csv", "time,op,lba,blocks\n5,R,8,8\n", &lines);
    refused("csv", "5,R,8,8\n", &["no header", "5,R,8,8", "columns=time:ms;op;lba;size:blk"]);
    // A word that begins as an operation does is none.
    for word in ["weird", "rewind", "wr"] {
        let table = format!("time_s,op,lba,blocks\n0.5,WRITE,8,8\n0.6,{word},8,8\n");
        refused("csv", &table, &["line 3", &format!("op '{word}'"), "write="]);
        assert_eq!(rows(&format!("csv,write=WRITE;{word}"), &table).op, [Write, Write]);
    }
    // Only our own traces number operations.
    refused("csv", "time_s,op,lba,blocks\n0.5,1,8,8\n", &["line 2", "op '1'", "read="]);
}

/// The command in the message is one that reads the file.
#[test]
fn the_command_that_a_refused_header_gets_reads_it() {
    for text in [
        "time,op,lba,blocks\n5,R,8,8\n",
        "Timestamp;Type;Offset;Length\n1;Read;4096;4096\n",
        "issue_time op_type sector nsectors\n1 W 8 8\n",
    ] {
        let message = open_bytes(text.into(), "").err().unwrap().to_string();
        let item = message.split("'(memory):").nth(1).and_then(|m| m.split('\'').next());
        let item = item.unwrap_or_else(|| panic!("no command in {message}"));
        assert_eq!(extents(&rows(item, text))[0].1, 8, "{message}");
        assert_eq!(micros(&rows(item, text))[0] % 1000, 0, "{message}");
    }
    for sep in [",", "\t", ";", "|", " ", "   "] {
        let text = ["time op lba blocks", "5 R 8 8", "6 W 16 8"].map(|l| l.replace(' ', sep)).join("\n");
        let message = open_bytes(text.clone().into(), "").err().unwrap().to_string();
        let item = message.split("'(memory):").nth(1).and_then(|m| m.split('\'').next()).unwrap_or_default();
        assert_eq!(extents(&rows(item, text)), [(Read, 8, 8), (Write, 16, 8)], "{message}");
    }
}

#[test]
fn csv_without_times_or_operations_says_what_they_are() {
    let b = rows("csv,columns=lba;size:blk,gap=10ms,all=write", "lba,n\n0,8\n8,8\n");
    assert_eq!((extents(&b), micros(&b)), (vec![(Write, 0, 8), (Write, 8, 8)], vec![0, 10_000]));
    refused("csv,columns=lba;size:blk;op", "0,8,R\n", &["time:UNIT", "gap="]);
    refused("csv,columns=time:s;lba;size:blk", "0,8,R\n", &["all="]);
    refused("csv,columns=time:s;lba;size:blk;op,gap=1ms", "0,8,R\n", &["gap="]);
    let b = rows("csv,columns=time:s;op;lba;size:blk,hex=on", "1,R,ff,1f\n2,R,0x10,a\n");
    assert_eq!(extents(&b), [(Read, 255, 31), (Read, 16, 10)]);
    let b = rows("csv,columns=time:filetime;op;lba;size:blk", "128166372003061629,R,1,1\n");
    assert_eq!(b.arrival[0].0 / 1_000_000_000, 1_172_163_600, "dates count from 1970");
}
