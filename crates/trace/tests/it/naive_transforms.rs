//! Each transform against a loop over lists of records, which are longer than a batch.

use smrlab_trace::pipeline::Steps;
use smrlab_trace::transforms::{
    Chain, Concat, DeviceExtents, Interleave, Merge, Offset, Origin, Peeked, SortWindow, Started,
};
use smrlab_trace::{Batch, Filter, Memory, Pipeline, Record, TraceError, TraceSource, read_all};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeMap;

/// A trace in memory whose devices have names, of which some are those of other traces.
#[derive(Clone)]
struct Named {
    rows: Memory,
    names: BTreeMap<u32, String>,
    bad: u64,
}

impl TraceSource for Named {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        self.rows.next_batch(out)
    }
    fn device_name(&self, device: u32) -> String {
        self.names[&device].clone()
    }
    fn skipped(&self) -> u64 {
        self.bad
    }
    fn progress(&self) -> Option<f64> {
        Some(self.bad as f64 / 8.0)
    }
}

fn any_records(rng: &mut Rng, most: u64) -> Vec<Record> {
    let (n, mut at) = (rng.below(most), rng.below(1 << 20));
    let next = |_| {
        at += [0, rng.below(100), rng.below(1 << 22)][rng.below(3) as usize];
        let op = [HostOp::Read, HostOp::Write, HostOp::Flush, HostOp::Discard][rng.below(4) as usize];
        let blocks = if op == HostOp::Flush { 0 } else { 1 + rng.below(300) as u32 };
        Record {
            arrival: SimTime(at),
            op,
            lba: Lba(rng.below(1 << 24)),
            blocks,
            device: 3 * rng.below(4) as u32,
            stream: rng.below(5) as u16,
            fua: op == HostOp::Write && rng.one_in(3),
        }
    };
    (0..n).map(next).collect()
}

fn named(rng: &mut Rng, all: &[Record]) -> Named {
    let name = |d: u32| (d, format!("disk{}", rng.below(6)));
    let mut names: BTreeMap<u32, String> = [0, 3, 6, 9].map(name).into();
    // No two of one trace have one name.
    names.iter_mut().skip(1).step_by(2).for_each(|(d, name)| *name = format!("{name}.{d}"));
    names.entry(6).and_modify(|name| name.push('x'));
    Named { rows: Memory::new(all.iter().copied()), names, bad: rng.below(8) }
}

fn rows(source: &mut dyn TraceSource) -> Vec<Record> {
    read_all(source).unwrap_or_else(|e| panic!("{e}")).iter().collect()
}

/// Common numbers of devices: a name that is known has its number; else its own, where it is free, or the lowest that is.
#[derive(Default)]
struct Common(Vec<(String, u32)>);

impl Common {
    fn number(&mut self, source: &Named, own: u32) -> u32 {
        let name = source.device_name(own);
        if let Some(known) = self.0.iter().find(|k| k.0 == name) {
            return known.1;
        }
        let free = |n: &u32| self.0.iter().all(|k| k.1 != *n);
        let number = Some(own).filter(free).or_else(|| (0..).find(free)).unwrap();
        self.0.push((name, number));
        number
    }

    fn check(&self, source: &dyn TraceSource) {
        self.0.iter().for_each(|(name, number)| assert_eq!(source.device_name(*number), *name));
        assert_eq!(source.device_name(77), "77");
    }
}

fn several(rng: &mut Rng) -> (Vec<Vec<Record>>, Vec<Named>) {
    let all: Vec<_> = (0..1 + rng.below(4)).map(|_| any_records(rng, 6000)).collect();
    let sources = all.iter().map(|records| named(rng, records)).collect();
    (all, sources)
}

#[test]
fn merged_traces_come_by_time_and_then_by_their_place() {
    let mut rng = Rng::new(1);
    for _ in 0..12 {
        let (all, sources) = several(&mut rng);
        let mut tagged: Vec<_> =
            all.iter().enumerate().flat_map(|(i, r)| r.iter().map(move |r| (i, *r))).collect();
        tagged.sort_by_key(|(i, r)| (r.arrival, *i));
        let mut common = Common::default();
        let of = |(i, r): &(usize, Record)| Record {
            stream: *i as u16,
            device: common.number(&sources[*i], r.device),
            ..*r
        };
        let want: Vec<_> = tagged.iter().map(of).collect();
        let mut merge = Merge::new(sources.clone()).unwrap();
        assert!(rows(&mut merge) == want);
        common.check(&merge);
        let bad = sources.iter().map(|s| s.bad).sum::<u64>();
        assert_eq!(merge.skipped(), bad);
        assert_eq!(
            merge.progress(),
            Some(sources.iter().map(|s| s.bad as f64 / 8.0).sum::<f64>() / sources.len() as f64)
        );
    }
}

#[test]
fn chained_traces_begin_a_gap_behind_each_other() {
    let mut rng = Rng::new(2);
    for _ in 0..12 {
        let (all, sources) = several(&mut rng);
        let gap = rng.below(1 << 30);
        let (mut common, mut want, mut base, mut last) = (Common::default(), Vec::new(), 0, 0);
        for (i, records) in all.iter().enumerate() {
            for r in records {
                last = base + r.arrival.0;
                let device = common.number(&sources[i], r.device);
                want.push(Record { arrival: SimTime(last), stream: i as u16, device, ..*r });
            }
            base = last + gap;
        }
        assert!(Chain::new(sources[..0].to_vec(), SimTime(gap)).is_err(), "there is no trace");
        let mut chain = Chain::new(sources.clone(), SimTime(gap)).unwrap();
        assert_eq!(chain.progress(), Some(sources[0].bad as f64 / 8.0 / sources.len() as f64));
        assert!(rows(&mut chain) == want);
        common.check(&chain);
        assert_eq!(chain.skipped(), sources.iter().map(|s| s.bad).sum::<u64>());
        assert_eq!(chain.progress(), Some(1.0), "all is read");
    }
}

/// The next source is drawn among those that are left; each request comes as long after the one before as it did in its own trace.
#[test]
fn interleaved_traces_come_in_bursts() {
    let mut rng = Rng::new(3);
    for seed in 0..12 {
        let (all, sources) = several(&mut rng);
        let burst = 1 + rng.below(40);
        let (mut draws, mut common, mut want, mut now, mut tail) =
            (Rng::new(seed), Common::default(), Vec::new(), 0, 0);
        let (mut at, mut last) = (vec![0; all.len()], vec![0; all.len()]);
        let mut left: Vec<usize> = (0..all.len()).collect();
        while !left.is_empty() {
            let source = left[draws.below(left.len() as u64) as usize];
            for _ in 0..burst {
                let Some(r) = all[source].get(at[source]) else { break };
                tail += u64::from(left.len() == 1);
                at[source] += 1;
                now += r.arrival.0 - last[source];
                last[source] = r.arrival.0;
                let device = common.number(&sources[source], r.device);
                want.push(Record { arrival: SimTime(now), stream: source as u16, device, ..*r });
            }
            left.retain(|s| at[*s] < all[*s].len());
        }
        let mut mix = Interleave::new(sources.clone(), burst, seed).unwrap();
        assert!(rows(&mut mix) == want);
        common.check(&mix);
        assert_eq!((mix.tail(), mix.skipped()), (tail, sources.iter().map(|s| s.bad).sum::<u64>()));
        assert_eq!(
            mix.progress(),
            Some(sources.iter().map(|s| s.bad as f64 / 8.0).sum::<f64>() / sources.len() as f64)
        );
    }
}

/// Devices in the order of their numbers, each behind the highest block of the one before; a flush needs no place.
#[test]
fn devices_are_laid_behind_each_other() {
    let mut rng = Rng::new(4);
    for _ in 0..12 {
        let all = any_records(&mut rng, 20_000);
        let source = named(&mut rng, &all);
        let extents = DeviceExtents::scan(&mut source.clone()).unwrap();
        let end = |d: u32| {
            let moves = all.iter().filter(|r| r.device == d && r.op != HostOp::Flush);
            moves.map(|r| r.lba.0 + u64::from(r.blocks)).max().unwrap_or(0)
        };
        let there: Vec<_> =
            [0, 3, 6, 9].iter().map(|d| (*d, Lba(end(*d)))).filter(|d| d.1 > Lba(0)).collect();
        assert!(extents.iter().eq(there.iter().copied()));
        assert_eq!(extents.total().0, there.iter().map(|d| d.1.0).sum::<u64>());
        let bases: BTreeMap<u32, u64> = [0, 3, 6, 9].map(|d| (d, (0..d).map(end).sum())).into();
        let moved = |r: &Record| Record { lba: Lba(r.lba.0 + bases[&r.device]), device: 0, ..*r };
        let want: Vec<_> = all.iter().map(moved).collect();
        let mut concat = Concat::new(source.clone(), &extents).unwrap();
        let got = rows(&mut concat);
        // Flushes have no block: where they lie does not matter.
        let same = |(a, b): (&Record, &Record)| {
            *a == Record { lba: if b.op == HostOp::Flush { a.lba } else { b.lba }, ..*b }
        };
        assert!(got.len() == want.len() && got.iter().zip(&want).all(same));
        assert_eq!((concat.skipped(), concat.progress()), (source.bad, source.progress()));
        let mut offset = Offset::new(source.clone(), Blocks(12_345));
        assert!(
            rows(&mut offset)
                .iter()
                .zip(&all)
                .all(|(a, b)| *a == Record { lba: b.lba + Blocks(12_345), ..*b })
        );
        assert_eq!(
            (offset.skipped(), offset.progress(), offset.device_name(3)),
            (source.bad, source.progress(), source.device_name(3))
        );
    }
}

/// Requests that come up to a window late, some at its very edge: as a stable sort puts them; a nanosecond later is too late.
#[test]
fn a_window_sorts_as_a_list_is_sorted() {
    let mut rng = Rng::new(5);
    let mut refused = 0;
    for round in 0..40 {
        let mut all = any_records(&mut rng, 20_000);
        let window = 1 + rng.below(1 << 22);
        let mut latest = 0;
        for r in &mut all {
            let late = [0, 0, rng.below(window + 1), window][rng.below(4) as usize];
            latest = latest.max(r.arrival.0);
            r.arrival = SimTime(latest.saturating_sub(late));
        }
        let mut sorted = SortWindow::new(named(&mut rng, &all), SimTime(window), "t");
        let mut want = all.clone();
        want.sort_by_key(|r| r.arrival);
        assert!(rows(&mut sorted) == want, "{round}");
        // The first one that is a nanosecond beyond the window is named.
        let Some(i) = (1..all.len()).find(|i| all[..*i].iter().map(|r| r.arrival.0).max().unwrap() > window)
        else {
            continue;
        };
        let before = all[..i].iter().map(|r| r.arrival.0).max().unwrap();
        all[i].arrival = SimTime(before - window - 1);
        let e = read_all(&mut SortWindow::new(Memory::new(all.iter().copied()), SimTime(window), "t"))
            .unwrap_err();
        assert!(e.to_string().contains(&format!("request {}", i + 1)), "{e}");
        refused += 1;
    }
    assert!(refused > 20);
}

#[test]
fn a_trace_starts_where_it_is_told_to() {
    let mut rng = Rng::new(6);
    for _ in 0..10 {
        let all = any_records(&mut rng, 20_000);
        let Some(first) = all.first().map(|r| r.arrival) else { continue };
        let source = named(&mut rng, &all);
        let peeked = Peeked::new(source.clone()).unwrap();
        assert_eq!(peeked.first_arrival(), Some(first));
        for (origin, by) in [
            (Origin::First, first.0),
            (Origin::At(SimTime(first.0 / 2)), first.0 / 2),
            (Origin::At(SimTime::ZERO), 0),
        ] {
            let mut started = Started::new(Peeked::new(source.clone()).unwrap(), origin, "t");
            assert!(
                rows(&mut started)
                    .iter()
                    .zip(&all)
                    .all(|(a, b)| *a == Record { arrival: SimTime(b.arrival.0 - by), ..*b })
            );
            assert_eq!(
                (started.skipped(), started.progress(), started.device_name(9)),
                (source.bad, source.progress(), source.device_name(9))
            );
        }
    }
    assert!(read_all(&mut Started::new(Memory::default(), Origin::First, "t")).is_err());
    let late = |at: u64| {
        let r = Record {
            arrival: SimTime(at),
            op: HostOp::Read,
            lba: Lba(0),
            blocks: 1,
            device: 0,
            stream: 0,
            fua: false,
        };
        // The request that is late is not the first that is read.
        let first = Record { arrival: SimTime::ZERO, ..r };
        read_all(&mut Started::new(Memory::new([first, r]), Origin::At(SimTime::ZERO), "t"))
    };
    assert!(late(i64::MAX as u64).is_ok());
    let refused = late(i64::MAX as u64 + 1).unwrap_err().to_string();
    assert!(refused.contains("292 years") && !refused.contains("start=zero"), "it begins at 0: {refused}");
}

/// A stretch of time, a filter, a limit, scaled times, wrapped addresses: in this order.
#[test]
fn steps_do_what_loops_do() {
    let mut rng = Rng::new(7);
    for round in 0..60 {
        let all = any_records(&mut rng, 12_000);
        let source = named(&mut rng, &all);
        let span = all.last().map_or(1000, |r| r.arrival.0);
        let from = SimTime(rng.below(2) * rng.below(span / 2));
        let until = if rng.one_in(2) { SimTime(from.0 + 1 + rng.below(span)) } else { SimTime::MAX };
        let (low, high) = (rng.below(1 << 23), (1 << 23) + rng.below(1 << 23));
        let (short, long) = (rng.below(60), 100 + rng.below(200));
        let wanted = format!(
            "op=read;write,device=3;{},lba={low}blk..{high}blk,size={short}blk..{long}blk",
            source.device_name(9)
        );
        let filter = rng.one_in(2).then(|| Filter::parse(&wanted).unwrap());
        let limit = rng.one_in(2).then(|| 1 + rng.below(9000));
        let scale_time = [1.0, 2.0, 0.5, 1.75][rng.below(4) as usize];
        let space = [None, Some(1000), Some(70), Some(1 << 20)][rng.below(4) as usize];
        let keeps = |r: &&Record| {
            let filtered = filter.is_none()
                || matches!(r.op, HostOp::Read | HostOp::Write)
                    && [3, 9].contains(&r.device)
                    && (low..high).contains(&r.lba.0)
                    && (short..=long).contains(&u64::from(r.blocks));
            from <= r.arrival && r.arrival < until && filtered
        };
        let change = |r: &Record| {
            let at = (r.arrival.0 - from.0) as f64 * scale_time;
            let (mut lba, mut n) = (r.lba.0, u64::from(r.blocks));
            if let Some(space) = space.filter(|space| lba + n > *space) {
                n = n.min(space);
                lba = (lba % space).min(space - n);
            }
            Record { arrival: SimTime((at + 0.5).floor() as u64), lba: Lba(lba), blocks: n as u32, ..*r }
        };
        let most = limit.map_or(usize::MAX, |n| n as usize);
        let want: Vec<_> = all.iter().filter(keeps).take(most).map(change).collect();
        let steps = Steps { from, until, filter: filter.clone(), limit, scale_time, wrap: space.map(Blocks) };
        let mut pipeline = Pipeline::new(source.clone(), steps).unwrap();
        let got = rows(&mut pipeline);
        let first = got.iter().zip(&want).position(|(a, b)| a != b);
        assert!(
            first.is_none() && got.len() == want.len(),
            "{round}: {:?}",
            first.map(|i| (got[i], want[i]))
        );
        let read = source.progress().unwrap();
        let share = limit.map_or(read, |n| read.max(got.len() as f64 / n as f64));
        assert!((pipeline.progress().unwrap() - share).abs() < 1e-9, "{round}");
        assert_eq!((pipeline.skipped(), pipeline.device_name(6)), (source.bad, source.device_name(6)));
    }
}
