//! The characterisation against the figures that came with the shared traces, and by hand.

use crate::support;
use smrlab_trace::info::{DEFAULT_MEMORY, Info, info};
use smrlab_trace::{Memory, OpenContext, Record, TraceSource, open};
use smrlab_units::{HostOp, Lba, SimTime};

fn of(source: &mut dyn TraceSource) -> Info {
    info(source, DEFAULT_MEMORY, |_| true).unwrap()
}

fn record(ms: u64, op: HostOp, lba: u64, blocks: u32) -> Record {
    Record { arrival: SimTime::from_ms(ms), op, lba: Lba(lba), blocks, device: 0, stream: 0, fua: false }
}

#[test]
fn counts_by_hand() {
    use HostOp::{Discard, Flush, Read, Write};
    let i = of(&mut Memory::new([
        record(0, Write, 0, 8),
        record(10, Write, 8, 8),
        record(20, Write, 4, 8),
        record(40, Read, 100, 4),
        record(40, Read, 0, 4),
        record(40, Flush, 0, 0),
        record(50, Discard, 0, 100),
        record(60, Write, 4, 1),
    ]));
    assert_eq!((i.requests, i.reads, i.writes, i.flushes, i.discards), (8, 2, 4, 1, 1));
    assert_eq!(
        (i.updates, i.blocks_updated),
        (2, 9),
        "the third write touches 8 written blocks, the last one"
    );
    assert_eq!(i.unique_bytes, 20 * 512);
    assert_eq!((i.unique_write_bytes, i.unique_read_bytes), (16 * 512, 8 * 512));
    assert_eq!(i.footprint_bytes, 3 * 4096);
    assert_eq!(i.never_updated_share, 0.5);
    assert_eq!(i.sequential_share, 1.0 / 6.0);
    assert_eq!((i.mean_write_bytes, i.mean_read_bytes), (25.0 * 512.0 / 4.0, 2048.0));
    assert_eq!((i.span_s, i.max_offset_bytes), (0.06, 104 * 512));
}

/// A hundred blocks; ten of them are written on the first day, two of these twice, five on the second, and the third is not over.
#[test]
fn blocks_that_stay_as_they_are_over_a_day() {
    use HostOp::{Read, Write};
    let hour = 3_600_000;
    let i = of(&mut Memory::new([
        record(7, Write, 0, 10),
        record(hour, Write, 8, 2),
        record(2 * hour, Read, 60, 40),
        record(24 * hour + 7, Write, 0, 5),
        record(49 * hour, Write, 0, 100),
    ]));
    assert_eq!(i.unchanged_day_share, Some(1.0 - 15.0 / 200.0));
    // Three days at once, with writes on the first of them alone.
    let rare = of(&mut Memory::new(
        [(0, 10), (72, 5), (72, 5), (73, 5)].map(|(hours, n)| record(hours * hour, Write, 0, n)),
    ));
    assert_eq!(rare.unchanged_day_share, Some(1.0 - 10.0 / 30.0));
    let short = of(&mut Memory::new([record(0, Write, 0, 8), record(23 * hour, Write, 0, 8)]));
    assert_eq!(short.unchanged_day_share, None);
}

/// Columns of the tables in the traces' READMEs: rows, devices, span s, write %, read B, write B, footprint MB (4 KiB
/// units), max offset GB, sequential %.
#[test]
fn agrees_with_the_tables_beside_the_traces() {
    let rows: [(&str, [f64; 9]); 6] = [
        (
            "msr-cambridge/hm_0.first1000.csv.zst",
            [1000.0, 1.0, 127.233, 49.2, 12024.9, 7278.3, 7.9, 13.575, 3.9],
        ),
        (
            "msr-cambridge/prxy_0.first20000.csv.zst",
            [20000.0, 1.0, 938.832, 98.32, 18116.6, 2366.3, 12.2, 21.986, 70.0],
        ),
        (
            "umass-spc/Financial1_first948.spc.zst",
            [949.0, 16.0, 28.443, 80.717, 1653.5, 2961.0, 2.0, 0.513, 25.6],
        ),
        (
            "cloudphysics/cloudPhysicsIO.vscsi.zst",
            [113872.0, 1.0, 7200.09, 58.748, 38264.0, 36003.6, 1102.7, 33.585, 26.0],
        ),
        (
            "tencent-cbs/cloud_storage-sample.bz2",
            [50000.0, 2038.0, 1.0, 50.958, 26375.6, 34210.0, 1426.4, 1669.049, 7.5],
        ),
        (
            "diskmon-desktop/sys1.txt.zst",
            [58818.0, 1.0, 1204.559, 49.692, 16816.2, 30994.1, 715.8, 3.346, 25.5],
        ),
    ];
    for (file, expected) in rows {
        let Some(path) = support::shared(file) else { continue };
        let i = of(&mut open(&path, &OpenContext::default()).unwrap());
        let ours = [
            i.requests as f64,
            i.devices as f64,
            i.span_s,
            i.write_share * 100.0,
            i.mean_read_bytes,
            i.mean_write_bytes,
            i.footprint_bytes as f64 / 1e6,
            i.max_offset_bytes as f64 / 1e9,
            i.sequential_share * 100.0,
        ];
        for (k, (a, b)) in ours.iter().zip(expected).enumerate() {
            assert!((a - b).abs() <= 0.06 + b * 2e-4, "{file}, column {k}: {a} instead of {b}");
        }
        assert!(i.sets_exact);
    }
}

#[test]
fn the_memory_bound_is_said() {
    let mut t = open("synth:uniform,span=8TB,requests=200000", &OpenContext::default()).unwrap();
    let i = info(&mut t, 1 << 20, |_| true).unwrap();
    assert!(!i.sets_exact && i.requests == 200_000);
    // Nor are there sets beyond 4 PiB; what is no longer exact is not told as a share.
    let day = 86_400_000;
    let i = of(&mut Memory::new([(0, 0), (day, 1 << 43)].map(|(ms, lba)| record(ms, HostOp::Write, lba, 8))));
    assert_eq!((i.sets_exact, i.unchanged_day_share, i.requests), (false, None, 2));
    // What lies within comes too late.
    let i = of(&mut Memory::new([1u64 << 43, 0].map(|lba| record(0, HostOp::Write, lba, 1))));
    assert!(!i.sets_exact);
    assert!(of(&mut Memory::new([record(0, HostOp::Write, (1 << 43) - 1, 1)])).sets_exact);
}

/// Who says stop gets what was read until then.
#[test]
fn a_description_ends_where_it_is_told_to() {
    let mut source = open("synth:uniform,requests=300000,span=1GB", &OpenContext::default()).unwrap();
    let mut told = 0;
    let found = info(&mut source, DEFAULT_MEMORY, |rows| {
        told = rows;
        false
    });
    let requests = found.unwrap().requests;
    assert!(requests > 0 && requests < 300_000 && requests == told, "{requests}, told of {told}");
}
