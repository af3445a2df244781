//! A few lines or records of each format, made here, and what they say: the recordings of others, against which the
//! readers are held as well, are not in the tree.

use smrlab_trace::{TraceSource, open_bytes};
use smrlab_units::HostOp;
use smrlab_units::HostOp::{Discard, Flush, Read, Write};

/// Arrival in ns, device, operation, first block, blocks.
type Row = (u64, &'static str, HostOp, u64, u32);

fn check(format: &str, bytes: &[u8], expected: &[Row]) {
    let mut source = open_bytes(bytes.to_vec(), format).unwrap_or_else(|e| panic!("{format}: {e}"));
    let all = smrlab_trace::read_all(&mut source).unwrap_or_else(|e| panic!("{format}: {e}"));
    let found = all.iter().map(|r| (r.arrival.0, source.device_name(r.device), r.op, r.lba.0, r.blocks));
    let expected = expected.iter().map(|&(at, device, op, lba, n)| (at, device.to_owned(), op, lba, n));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{format}");
    // Of the formats only blktrace's say which writes were FUA.
    assert!(format.starts_with("blk") || all.iter().all(|r| !r.fua), "{format}");
}

const LINES: &[(&str, &str, &[Row])] = &[
    (
        "alibaba",
        "64,R,4096,8192,1577808000000046\n64,W,512,513,1577808000001046\n7,R,0,1,1577808000001047\n",
        &[(0, "64", Read, 8, 16), (1_000_000, "64", Write, 1, 2), (1_001_000, "7", Read, 0, 1)],
    ),
    (
        "tencent",
        "1538323200,10,8,1,1283\n1538323203,20,4,0,1284\n1538323202,30,1,0,1283\n",
        &[
            (0, "v1283", Write, 10, 8),
            (2_000_000_000, "v1283", Read, 30, 1),
            (3_000_000_000, "v1284", Read, 20, 4),
        ],
    ),
    (
        "systor17",
        "1455592560.5,0.001,R,0,1024,512\n1455592561.75,,W,1,4096,8192\n",
        &[(0, "LUN0", Read, 2, 1), (1_250_000_000, "LUN1", Write, 8, 16)],
    ),
    (
        "diskmon",
        "0\t0.001000\t0.0\t0\tWrite\t100\t8\n1\t0.5\t0.1\t1\tRead\t7\t1\n",
        &[(1_000_000, "disk0", Write, 100, 8), (500_000_000, "disk1", Read, 7, 1)],
    ),
    (
        "fiu",
        "70 892 a name 90320 8 W 6 0 0f\n500 892 cp 8 16 R 6 1 0f\n",
        &[(70, "6:0", Write, 90_320, 8), (500, "6:1", Read, 8, 16)],
    ),
    (
        "vscsi-csv",
        "1,5,2a,4096,100\n1,7,28,512,3\n",
        &[(0, "0", Write, 100, 8), (2_000_000_000, "0", Read, 3, 1)],
    ),
    ("mqsim", "1000 0 8 4 1\n2500 1 100 2 0\n", &[(1000, "0", Read, 8, 4), (2500, "1", Write, 100, 2)]),
    (
        "msr-cut",
        "0.5 3 1024 512 1\n2 3 513 1 0\n",
        &[(500_000, "d3", Read, 2, 1), (2_000_000, "d3", Write, 1, 1)],
    ),
    (
        "spc",
        "2,7,513,R,0.0000000015\n0,1,512,w,3\n",
        &[(2, "asu2", Read, 7, 2), (3_000_000_000, "asu0", Write, 1, 1)],
    ),
    (
        "fio",
        "fio version 2 iolog\nf wait 1000\nf read 512 512\nf wait 2000\nf sync_file_range 0 9\nf datasync\nf write 0 513\n",
        &[
            (1_000_000, "f", Read, 1, 1),
            (3_000_000, "f", Flush, 0, 0),
            (3_000_000, "f", Flush, 0, 0),
            (3_000_000, "f", Write, 0, 2),
        ],
    ),
    (
        "http",
        "h - - [01/Jul/1995:05:30:00 +0530] \"GET /a X\" 200 1\nh - - [01/Jul/1995:00:00:01 +0000] \"GET /b X\" 200 1\n",
        &[(0, "0", Read, 0, 1), (1_000_000_000, "0", Read, 8, 1)],
    ),
    (
        "biosnoop",
        "TIME(ms) COMM PID DISK T SECTOR BYTES LAT(ms)\n1500 a 1 sda W 8 512 0.5\n",
        &[(1_499_500_000, "sda", Write, 8, 1)],
    ),
    (
        "thesios",
        "filename,file_offset,op_type,cache_hit,request_io_size_bytes,disk_io_size_bytes,start_time\n\
         a,0,WRITE,1,512,4096,5\na,512,READ,0,512,4096,6\n",
        &[(0, "0", Write, 0, 1), (1_000_000_000, "0", Read, 1, 8)],
    ),
    (
        "etw",
        "BeginHeader\nDiskFlush, TimeStamp, Process, CPU, ThreadID, IrpPtr, ElapsedTime, DiskNum\nEndHeader\n\
         DiskFlush, 900, System (4), 0, 12, 0xf, 500, 3\n",
        &[(400_000, "disk3", Flush, 0, 0)],
    ),
    ("csv,columns=time:s;op;offset;size", "1,R,1024,513\n", &[(1_000_000_000, "0", Read, 2, 2)]),
    ("csv,columns=time:s;op;lba;size:blk,hex=on", "10,W,10,20\n", &[(10_000_000_000, "0", Write, 16, 32)]),
    (
        "csv,columns=time:s=t;op=o;lba=a;size:blk=n",
        "\"t\",\"o\",\"a\",\"n\"\n\"1\",\"W\",\"8\",\"2\"\n",
        &[(1_000_000_000, "0", Write, 8, 2)],
    ),
    (
        "csv,columns=time:s;device;op;lba;size:blk",
        "1, sda ,R,8,8\n2,sda,R,16,8\n",
        &[(1_000_000_000, "sda", Read, 8, 8), (2_000_000_000, "sda", Read, 16, 8)],
    ),
];

/// World clocks begin with the first request; bytes become the blocks that they touch; times are rounded to nanoseconds.
#[test]
fn lines_say_what_their_page_says() {
    for (format, text, expected) in LINES {
        check(format, text.as_bytes(), expected);
        // As Windows programs write it.
        check(format, format!("\u{feff}{text}").as_bytes(), expected);
        check(format, text.replace('\n', "\r\n").as_bytes(), expected);
    }
}

/// A record of blktrace in either byte order: time, sector, bytes, action with categories, and what follows it.
fn blktrace(big: bool, (at, sector): (u64, u64), (bytes, action): (u32, u32), data: &[u8]) -> Vec<u8> {
    let mut r = Vec::new();
    let u32s = |r: &mut Vec<u8>, all: &[u32]| {
        all.iter().for_each(|n| r.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() }));
    };
    u32s(&mut r, &[0x6561_7407, 0]);
    for n in [at, sector] {
        r.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() });
    }
    u32s(&mut r, &[bytes, action, 1, 8 << 20 | 16, 0]);
    // An error, which nobody reads, and the length of the data.
    for n in [0, data.len() as u16] {
        r.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() });
    }
    r.extend(data);
    r
}

#[test]
fn blktrace_counts_one_event_of_a_request_in_either_byte_order() {
    const ISSUED: u32 = 7;
    const QUEUED: u32 = 1;
    let (write, flush, passed, notify, discard) = (1 << 17, 1 << 18, 1 << 25, 1 << 26, 1 << 29);
    let fua = 1 << 31;
    let sector = 5 << 32 | 100;
    for big in [false, true] {
        let record =
            |at, sector, bytes, action, data: &[u8]| blktrace(big, (at, sector), (bytes, action), data);
        let all = [
            record(1000, 1, 512, QUEUED, &[]),
            record(7000, sector, 4096, ISSUED | write, b"name"),
            record(8000, 3, 513, ISSUED, &[]),
            record(9000, 0, 0, ISSUED | flush | write, &[]),
            record(9100, 0, 512, ISSUED | passed, &[]),
            record(9200, 0, 512, ISSUED | notify, b"text"),
            record(9500, 8, 8192, ISSUED | discard | write, &[]),
            record(9600, 9, 512, ISSUED | flush | write, &[]),
            record(9700, 9, 512, ISSUED | fua | write, &[]),
        ]
        .concat();
        check(
            "blktrace",
            &all,
            &[
                (0, "8,16", Write, sector, 8),
                (1000, "8,16", Read, 3, 2),
                (2000, "8,16", Flush, 0, 0),
                (2500, "8,16", Discard, 8, 16),
                (2600, "8,16", Write, 9, 1),
                (2700, "8,16", Write, 9, 1),
            ],
        );
        let rows = smrlab_trace::read_all(&mut open_bytes(all.clone(), "blktrace").unwrap()).unwrap();
        assert_eq!(rows.fua, [false, false, false, false, false, true], "a flush before it is none");
        check("blktrace,event=queued", &all, &[(0, "8,16", Read, 1, 1)]);
        // Where one kind alone was recorded the other finds nothing, and says how many there are; of no request at all it says nothing.
        let says = |bytes: Vec<u8>, format| {
            let all = open_bytes(bytes, format).and_then(|mut source| smrlab_trace::read_all(&mut source));
            all.err().map(|e| e.to_string()).unwrap_or_default()
        };
        let issued = [record(1, 1, 512, ISSUED, &[]), record(2, 2, 512, ISSUED | write, &[])].concat();
        let hint = says(issued, "blktrace,event=queued");
        assert!(hint.contains("no queued request, but 2 issued ones: use event=issued"), "{hint}");
        let hint = says(record(1, 1, 512, QUEUED, &[]), "blktrace");
        assert!(hint.contains("no issued request, but 1 queued ones: use event=queued"), "{hint}");
        let hint = says(record(1, 1, 512, ISSUED | notify, &[]), "blktrace");
        assert!(!hint.contains("event="), "{hint}");
    }
}

/// Version 1 has records of 32 bytes, version 2 of 40 with the numbers in another order.
#[test]
fn vscsi_has_two_versions() {
    let record = |version: u16, (command, bytes): (u16, u32), lba: u64, us: u64| {
        let mut r = Vec::new();
        let words = [command, version << 8].map(u16::to_le_bytes).concat();
        let numbers = [1u32, bytes, 1].map(u32::to_le_bytes).concat();
        r.extend(if version == 1 { [numbers, words].concat() } else { [words, numbers].concat() });
        r.extend([lba, us].map(u64::to_le_bytes).concat());
        r.extend(if version == 2 { vec![0; 8] } else { Vec::new() });
        r
    };
    for version in [1, 2] {
        let all = [
            record(version, (0x2a, 70_000), 5 << 32, 2_000_000),
            record(version, (0x12, 36), 0, 2_000_001),
            record(version, (0x88, 512), 9, 2_000_005),
            record(version, (0x35, 0), 0, 2_000_006),
            record(version, (0x2e, 512), 7, 2_000_007),
            record(version, (0x8e, 512), 8, 2_000_008),
        ]
        .concat();
        check(
            "vscsi",
            &all,
            &[
                (0, "vd", Write, 5 << 32, 137),
                (5000, "vd", Read, 9, 1),
                (6000, "vd", Flush, 0, 0),
                (7000, "vd", Write, 7, 1),
                (8000, "vd", Write, 8, 1),
            ],
        );
    }
}

/// Lines of DiskSim's are read in one go, but for the last ones; each count of decimals says the same either way.
#[test]
fn disksim_times_have_up_to_nine_decimals() {
    let times = ["7", "7.1", "7.12", "7.123", "7.1234", "7.12345", "7.123456", "7.1234564", "7.1234565"];
    let ns =
        [0, 100_000, 120_000, 123_000, 123_400, 123_450, 123_456, 123_456, 123_457].map(|ns| 7_000_000 + ns);
    let text: String = times.map(|t| format!("{t} 0 8 8 1\n")).concat();
    let rows = ns.map(|ns| (ns, "0", Read, 8, 8));
    for more in [0, 9] {
        let filled = (0..more).map(|_| (8_000_000, "0", Write, 16, 8));
        let bytes = text.clone() + &"8 0 16 8 0\n".repeat(more);
        check("disksim", bytes.as_bytes(), &rows.into_iter().chain(filled).collect::<Vec<_>>());
    }
}

/// Ten lines of five numbers: a request in 5 s of DiskSim's milliseconds there may be, one in 20 s is one in 20 µs of MQSim's.
#[test]
fn five_numbers_are_told_by_their_pace() {
    let lines = |gap: u64| (0..10).map(|i| format!("{} 0 {} 8 1\n", i * gap, 8 * i + 1)).collect::<String>();
    assert!(open_bytes(lines(5000).into_bytes(), "auto").is_err_and(|e| e.to_string().contains("disksim")));
    let rows = smrlab_trace::read_all(&mut open_bytes(lines(20_000).into_bytes(), "auto").unwrap()).unwrap();
    assert_eq!(rows.arrival[9].0, 180_000);
}

/// A record of the second version: its action has 64 bits, and its data begin behind 64 bytes.
fn blktrace_2(big: bool, sector: u64, (bytes, action): (u32, u64), data: &[u8]) -> Vec<u8> {
    let mut r = Vec::new();
    let u32s = |r: &mut Vec<u8>, all: &[u32]| {
        all.iter().for_each(|n| r.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() }));
    };
    let u64s = |r: &mut Vec<u8>, all: &[u64]| {
        all.iter().for_each(|n| r.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() }));
    };
    u32s(&mut r, &[0x6561_7408, 0]);
    u64s(&mut r, &[1000, sector]);
    u32s(&mut r, &[bytes, 1]);
    u64s(&mut r, &[action]);
    u32s(&mut r, &[8 << 20 | 16, 0]);
    for n in [0, data.len() as u16] {
        r.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() });
    }
    r.extend([0; 12]);
    r.extend(data);
    r
}

#[test]
fn blktrace_of_the_second_version_has_zone_commands() {
    const ISSUED: u64 = 7;
    let category = |bit: u64| 1u64 << (16 + bit);
    let (write, reset) = (category(1), |op| HostOp::Zone(op));
    use smrlab_units::ZoneAction::{Close, Finish, Open, Reset};
    let sector = 3 << 34;
    for big in [false, true] {
        let record = |sector, bytes, action, data: &[u8]| blktrace_2(big, sector, (bytes, action), data);
        let all = [
            record(sector, 0, ISSUED | write | category(17), b"a name of its own"),
            record(0, 0, ISSUED | write | category(18), &[]),
            record(sector, 4096, ISSUED | write | category(16), b""),
            record(524_288, 0, ISSUED | category(19), &[]),
            record(524_288, 0, ISSUED | category(20), &[]),
            record(524_288, 0, ISSUED | category(21), &[]),
            record(8, 4096, ISSUED | write, b"x"),
            record(8, 4096, ISSUED | write | category(9), &[]),
            // A record of the first version among them, as nobody writes it.
            blktrace(big, (1000, 16), (512, ISSUED as u32), &[]),
        ]
        .concat();
        let all_zones = smrlab_trace::Record::TO_END;
        check(
            "blktrace",
            &all,
            &[
                (0, "8,16", reset(Reset), sector, 1),
                (0, "8,16", reset(Reset), 0, all_zones),
                (0, "8,16", HostOp::Append, sector, 8),
                (0, "8,16", reset(Finish), 524_288, 1),
                (0, "8,16", reset(Open), 524_288, 1),
                (0, "8,16", reset(Close), 524_288, 1),
                (0, "8,16", Write, 8, 8),
                (0, "8,16", Read, 16, 1),
            ],
        );
    }
    let cut = blktrace_2(false, 8, (512, ISSUED), b"name");
    assert!(smrlab_trace::read_all(&mut open_bytes(cut[..50].to_vec(), "blktrace").unwrap()).is_err());
}

#[test]
fn blkparse_text_has_zone_commands() {
    use smrlab_units::ZoneAction::{Close, Finish, Open, Reset};
    let line = |rwbs: &str, rest: &str| {
        format!("  8,16   3        1     0.000000100   697  D  {rwbs} {rest} [fio]\n")
    };
    let text = [
        line("ZR", "524288"),
        line("ZRS", "1048576 + 0"),
        line("ZRA", ""),
        line("ZRAS", ""),
        line("ZA", "524288 + 16"),
        line("ZF", "524288"),
        line("ZO", "524288 + 524288"),
        line("ZC", "524288"),
        line("W", "8 + 8"),
    ]
    .concat();
    let zone = HostOp::Zone;
    check(
        "blkparse",
        text.as_bytes(),
        &[
            (100, "8,16", zone(Reset), 524_288, 1),
            (100, "8,16", zone(Reset), 1_048_576, 1),
            (100, "8,16", zone(Reset), 0, smrlab_trace::Record::TO_END),
            (100, "8,16", zone(Reset), 0, smrlab_trace::Record::TO_END),
            (100, "8,16", HostOp::Append, 524_288, 16),
            (100, "8,16", zone(Finish), 524_288, 1),
            (100, "8,16", zone(Open), 524_288, 1),
            (100, "8,16", zone(Close), 524_288, 1),
            (100, "8,16", Write, 8, 8),
        ],
    );
    let e = smrlab_trace::read_all(&mut open_bytes(line("ZR", "").into_bytes(), "blkparse").unwrap())
        .unwrap_err();
    assert!(e.to_string().contains("sector is missing"), "{e}");
}

#[test]
fn every_operation_travels_through_csv_by_name_and_by_number() {
    let names = HostOp::ALL.map(HostOp::name);
    let rows = |op: &dyn Fn(usize) -> String| {
        let line = |i: usize| format!("{i},{},{},8\n", op(i), 8 * i);
        "arrival_ns,op,lba,blocks\n".to_owned() + &(0..9).map(line).collect::<String>()
    };
    for text in [rows(&|i| names[i].to_owned()), rows(&|i| i.to_string())] {
        let read = smrlab_trace::read_all(&mut open_bytes(text.clone().into_bytes(), "csv").unwrap());
        assert_eq!(read.unwrap_or_else(|e| panic!("{e}\n{text}")).op, HostOp::ALL);
    }
    assert!(HostOp::ALL.iter().enumerate().all(|(i, op)| op.index() == i));
}

#[test]
fn zone_commands_of_tables_need_no_size() {
    let read = |columns: &str, text: &str| {
        smrlab_trace::read_all(&mut open_bytes(text.as_bytes().to_vec(), columns).unwrap())
    };
    let reset = HostOp::Zone(smrlab_units::ZoneAction::Reset);
    for (columns, text) in [
        ("csv", "arrival_ns,op,lba,blocks\n0,zone-reset,524288,0\n0,zone-reset,524288,\n0,flush,0,\n"),
        ("csv,columns=time:ms;size:4KiB;op;lba", "0,0,zone-reset,524288\n0,,zone-reset,524288\n0,,flush,0\n"),
    ] {
        let b = read(columns, text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(b.op, [reset, reset, HostOp::Flush]);
        assert_eq!((b.lba[1].0, &b.blocks[..2]), (524_288, &[1, 1][..]));
    }
    for size in ["0", ""] {
        let refused = read("csv", &format!("arrival_ns,op,lba,blocks\n0,read,8,{size}\n")).unwrap_err();
        assert!(refused.to_string().contains("size 0"), "{refused}");
    }
}
