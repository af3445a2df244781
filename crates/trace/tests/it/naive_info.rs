//! The characterisation counted once more, figure by figure, from a list of all requests and plain sets of blocks.

use smrlab_trace::info::{DEFAULT_MEMORY, Info, Percentiles, info};
use smrlab_trace::{Memory, Record};
use smrlab_units::rng::Rng;
use smrlab_units::{Histogram, HostOp, Lba, SimTime, ZoneAction};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const DAY: u64 = 86_400_000_000_000;

/// Requests to a few devices, often behind each other or on each other, over some days.
fn any_trace(rng: &mut Rng, days: u64) -> Vec<Record> {
    let (mut at, mut before) = (rng.below(1 << 40), (0, 8));
    let n = 2 + rng.below(700);
    let gap = 1 + 2 * days * DAY / n;
    let ops = [
        HostOp::Read,
        HostOp::Read,
        HostOp::Write,
        HostOp::Write,
        HostOp::Write,
        HostOp::Discard,
        HostOp::Append,
    ];
    let mut all = Vec::new();
    for _ in 0..n {
        at += [0, rng.below(gap), rng.below(gap)][rng.below(3) as usize];
        let blocks = 1 + rng.below(40);
        let lba = match rng.below(3) {
            0 => before.0 + before.1,
            1 => before.0 + rng.below(20),
            _ => rng.below(3000),
        };
        before = (lba, blocks);
        let op = if rng.one_in(4) { ops[rng.below(7) as usize] } else { ops[rng.below(5) as usize] };
        // Numbers of devices are names: no room is taken for those between them.
        let device = if rng.one_in(3) { 2_000_000_000 * rng.below(3) as u32 } else { 4_000_000_000 };
        let mut r = Record {
            arrival: SimTime(at),
            op,
            lba: Lba(lba),
            blocks: blocks as u32,
            device,
            stream: 0,
            fua: false,
        };
        r.fua = op == HostOp::Write && rng.one_in(5);
        if rng.one_in(12) {
            let zones = [ZoneAction::Reset, ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish];
            let zone = HostOp::Zone(zones[rng.below(4) as usize]);
            r = Record { op: [HostOp::Flush, zone][rng.below(2) as usize], fua: false, ..r };
        }
        all.push(r);
    }
    all
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

fn percentiles(values: impl Iterator<Item = u64>, unit: f64) -> Percentiles {
    let mut h = Histogram::default();
    values.for_each(|v| h.add(v));
    let p = |at| h.percentile(at) * unit;
    Percentiles {
        mean: h.mean() * unit,
        p50: p(0.5),
        p90: p(0.9),
        p95: p(0.95),
        p99: p(0.99),
        max: h.max() as f64 * unit,
    }
}

fn blocks(r: &Record) -> std::ops::Range<u64> {
    r.lba.0..r.lba.0 + u64::from(r.blocks)
}

/// What was read and written: each block of each device with how often it was written.
#[derive(Default)]
struct Touched {
    read: BTreeSet<(u32, u64)>,
    written: HashMap<(u32, u64), u64>,
    units: BTreeSet<(u32, u64)>,
    updates: u64,
    blocks_updated: u64,
    /// Of each day the blocks that were written.
    days: BTreeMap<u64, BTreeSet<(u32, u64)>>,
}

fn touched(all: &[Record]) -> Touched {
    let mut t = Touched::default();
    for r in all.iter().filter(|r| matches!(r.op, HostOp::Read | HostOp::Write)) {
        t.units.extend(blocks(r).map(|b| (r.device, b / 8)));
        if r.op == HostOp::Read {
            t.read.extend(blocks(r).map(|b| (r.device, b)));
            continue;
        }
        let again = blocks(r).filter(|b| t.written.contains_key(&(r.device, *b))).count() as u64;
        t.updates += u64::from(again > 0);
        t.blocks_updated += again;
        let day = r.arrival.since(all[0].arrival).0 / DAY;
        for b in blocks(r) {
            *t.written.entry((r.device, b)).or_default() += 1;
            t.days.entry(day).or_default().insert((r.device, b));
        }
    }
    t
}

/// Requests of reads and writes that begin where the one before on the device ended: how many, and their blocks.
fn sequential(all: &[Record]) -> (u64, u64) {
    let (mut ends, mut sum) = (HashMap::new(), (0, 0));
    for r in all.iter().filter(|r| !matches!(r.op, HostOp::Flush | HostOp::Zone(_))) {
        let before = ends.insert(r.device, blocks(r).end);
        if before == Some(r.lba.0) && matches!(r.op, HostOp::Read | HostOp::Write) {
            sum = (sum.0 + 1, sum.1 + u64::from(r.blocks));
        }
    }
    sum
}

fn check(all: &[Record], i: &Info) {
    let of = |op: HostOp| all.iter().filter(|r| r.op == op).count() as u64;
    let long = |op: HostOp| all.iter().filter(|r| r.op == op).map(|r| u64::from(r.blocks)).sum::<u64>();
    let (reads, writes, moved) =
        (of(HostOp::Read), of(HostOp::Write), long(HostOp::Read) + long(HostOp::Write));
    let zone = |action| of(HostOp::Zone(action));
    assert_eq!(i.requests, all.len() as u64);
    assert_eq!((i.reads, i.writes, i.flushes), (reads, writes, of(HostOp::Flush)));
    assert_eq!((i.discards, i.appends), (of(HostOp::Discard), of(HostOp::Append)));
    let commands = zone(ZoneAction::Open) + zone(ZoneAction::Close) + zone(ZoneAction::Finish);
    assert_eq!((i.zone_resets, i.zone_commands), (zone(ZoneAction::Reset), commands));
    assert_eq!(i.fua_writes, all.iter().filter(|r| r.fua).count() as u64);
    assert_eq!(i.write_share, share(writes, reads + writes));
    assert_eq!((i.blocks_read, i.blocks_written), (long(HostOp::Read), long(HostOp::Write)));
    assert_eq!(i.mean_read_bytes, share(512 * long(HostOp::Read), reads));
    assert_eq!(i.mean_write_bytes, share(512 * long(HostOp::Write), writes));
    assert_eq!(i.mean_bytes, share(512 * moved, reads + writes));
    let span = all[all.len() - 1].arrival.since(all[0].arrival);
    assert_eq!(i.span_s, span.as_secs_f64());
    assert_eq!(i.rate, if span.0 == 0 { 0.0 } else { all.len() as f64 / span.as_secs_f64() });
    assert_eq!(
        i.interarrival_s,
        percentiles(all.windows(2).map(|w| w[1].arrival.since(w[0].arrival).0), 1e-9)
    );
    let moves = || all.iter().filter(|r| matches!(r.op, HostOp::Read | HostOp::Write));
    assert_eq!(i.size_bytes, percentiles(moves().map(|r| 512 * u64::from(r.blocks)), 1.0));
    let t = touched(all);
    assert_eq!((i.updates, i.blocks_updated), (t.updates, t.blocks_updated));
    assert_eq!(i.update_share, share(t.updates, writes));
    let either: BTreeSet<_> = t.read.iter().chain(t.written.keys()).collect();
    assert_eq!(i.unique_bytes, 512 * either.len() as u64);
    assert_eq!(i.unique_read_bytes, 512 * t.read.len() as u64);
    assert_eq!(i.unique_write_bytes, 512 * t.written.len() as u64);
    assert_eq!(i.footprint_bytes, 4096 * t.units.len() as u64);
    assert_eq!(
        i.never_updated_share,
        share(t.written.values().filter(|n| **n == 1).count() as u64, t.written.len() as u64)
    );
    let (n, long) = sequential(all);
    assert_eq!(i.sequential_share, share(n, reads + writes));
    assert_eq!(i.sequential_block_share, share(long, moved));
    let mut devices: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
    for r in all.iter().filter(|r| !matches!(r.op, HostOp::Flush | HostOp::Zone(_))) {
        let d = devices.entry(r.device).or_default();
        *d = (d.0 + 1, d.1 + u64::from(r.op == HostOp::Write), d.2.max(512 * blocks(r).end));
    }
    let listed: Vec<_> =
        i.device_list.iter().map(|d| (d.number, (d.requests, d.writes, d.end_bytes))).collect();
    assert_eq!((listed, i.devices), (devices.clone().into_iter().collect(), devices.len() as u64));
    assert!(i.device_list.iter().all(|d| d.name == d.number.to_string()));
    assert_eq!(i.max_offset_bytes, devices.values().map(|d| d.2).max().unwrap_or(0));
    assert_eq!(i.concat_bytes, devices.values().map(|d| d.2).sum::<u64>());
    let over = span.0 / DAY;
    let written: usize = t.days.range(..over).map(|d| d.1.len()).sum();
    let blocks = i.concat_bytes / 512 * over;
    let unchanged = (blocks > 0).then(|| 1.0 - written as f64 / blocks as f64);
    assert_eq!((i.unchanged_day_share, i.sets_exact), (unchanged, true));
    grid(all[0].arrival, &moves().copied().collect::<Vec<_>>(), i);
}

/// The smallest cells, in powers of two, of which 256 and 128 hold all from the first request on.
fn grid(first: SimTime, moves: &[Record], i: &Info) {
    let late = moves.iter().map(|r| r.arrival.since(first).0).max().unwrap_or(0);
    let far = moves.iter().map(|r| r.lba.0).max().unwrap_or(0);
    let column = (20..).map(|k| 1u64 << k).find(|w| late / w < 256).unwrap();
    let row = (3..).map(|k| 1u64 << k).find(|h| far / h < 128).unwrap();
    assert_eq!((i.grid.column_ns, i.grid.row_blocks), (column, row));
    let mut cells = vec![(0, 0); 256 * 128];
    for r in moves {
        let cell = &mut cells[(r.lba.0 / row * 256 + r.arrival.since(first).0 / column) as usize];
        *if r.op == HostOp::Write { &mut cell.1 } else { &mut cell.0 } += 1;
    }
    assert!(i.grid.cells.iter().map(|c| (c.reads, c.writes)).eq(cells));
}

#[test]
fn every_figure_is_what_plain_sets_say() {
    let mut rng = Rng::new(77);
    for round in 0..120 {
        let all = any_trace(&mut rng, [0, 1, 5][round % 3]);
        let i = info(&mut Memory::new(all.iter().copied()), DEFAULT_MEMORY, |_| true).unwrap();
        check(&all, &i);
    }
}
