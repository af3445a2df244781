//! Transforms do what they say to each request, and nothing else.

use proptest::prelude::*;
use smrlab_trace::transforms::*;
use smrlab_trace::{Batch, Memory, Record, TraceError, TraceSource, read_all};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn record(ms: u64, device: u32, lba: u64, blocks: u32) -> Record {
    Record {
        arrival: SimTime::from_ms(ms),
        op: HostOp::Write,
        lba: Lba(lba),
        blocks,
        device,
        stream: 0,
        fua: false,
    }
}

fn all(mut source: impl TraceSource) -> Batch {
    read_all(&mut source).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_window_sorts_what_is_within_it(jitter in proptest::collection::vec(0u64..1000, 1..300)) {
        let rows: Vec<_> = jitter.iter().enumerate().map(|(i, j)| {
            Record { stream: i as u16, ..record(i as u64 * 10 + j, 0, i as u64, 1) }
        }).collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|r| r.arrival);
        let out = all(SortWindow::new(Memory::new(rows), SimTime::from_ms(1000), "t"));
        prop_assert_eq!(out.iter().collect::<Vec<_>>(), expected);
    }
}

/// Late requests straddle the batches in which the source comes.
#[test]
fn a_window_sorts_across_batches() {
    let late = |i: u64| if i % 50 == 49 { 990 } else { 0 };
    let rows: Vec<_> = (0..50_000u64).map(|i| record(i * 10 + 1000 - late(i), 0, i, 1)).collect();
    let mut expected = rows.clone();
    expected.sort_by_key(|r| r.arrival);
    assert!(expected != rows);
    let out = all(SortWindow::new(Memory::new(rows), SimTime::from_ms(1000), "t"));
    assert!(out.iter().eq(expected));
}

#[test]
fn beyond_the_window_is_an_error_that_names_a_sufficient_one() {
    let rows = (0..20_000).map(|i| record(if i == 15_000 { 5 } else { i }, 0, 0, 1));
    let e = read_all(&mut SortWindow::new(Memory::new(rows), SimTime::from_ms(10), "t")).unwrap_err();
    assert!(e.to_string().contains("sort_window="), "{e}");
    assert!(matches!(e, TraceError::RunsBack { .. }));
}

/// The base of a device is the sum of the extents before it.
#[test]
fn addresses_repeat_across_asus_and_are_laid_one_behind_the_other() {
    let rows =
        [record(0, 2, 10, 5), record(1, 0, 0, 8), record(2, 2, 0, 1), record(3, 1, 3, 3), record(4, 0, 4, 9)];
    let extents = DeviceExtents::scan(&mut Memory::new(rows)).unwrap();
    assert_eq!(extents.total(), Blocks(13 + 6 + 15));
    let out = all(Concat::new(Memory::new(rows), &extents).unwrap());
    assert_eq!(out.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [19 + 10, 0, 19, 13 + 3, 4]);
    assert!(out.device.iter().all(|d| *d == 0));
}

/// A zone command tells of its zones; one for all of them does not tell where they end.
#[test]
fn a_device_is_as_long_as_its_zones_that_are_named() {
    let reset = |lba, blocks| Record { op: HostOp::Zone(ZoneAction::Reset), ..record(0, 1, lba, blocks) };
    let extents = DeviceExtents::scan(&mut Memory::new([reset(8, 4), reset(0, Record::TO_END)])).unwrap();
    assert_eq!(extents.total(), Blocks(12));
}

/// Addresses of 512-byte blocks have 63 bits.
#[test]
fn devices_that_do_not_fit_one_behind_the_other_are_refused() {
    for (end, fits) in [((1 << 62) - 1, true), (1 << 62, false)] {
        let rows = [record(0, 0, (1 << 62) - 8, 8), record(1, 1, end - 8, 8)];
        let extents = DeviceExtents::scan(&mut Memory::new(rows)).unwrap();
        assert_eq!(Concat::new(Memory::new(rows), &extents).is_ok(), fits, "{end}");
    }
}

#[test]
fn merge_goes_by_time_and_marks_streams() {
    let a = Memory::new((0..10_000).map(|i| record(i * 2, 0, i, 1)));
    let b = Memory::new((0..10_000).map(|i| record(i * 3, 0, i, 1)));
    let out = all(Merge::new(vec![a, b]).unwrap());
    assert_eq!(out.len(), 20_000);
    assert!(out.arrival.windows(2).all(|w| w[0] <= w[1]));
    assert_eq!((out.stream[0], out.stream[1]), (0, 1), "equal arrivals in the order of the sources");
    assert_eq!(out.stream.iter().filter(|s| **s == 1).count(), 10_000);
}

#[test]
fn the_composer_emits_whole_bursts_and_everything_once() {
    let source = |n: u64| Memory::new((0..n).map(|i| record(i, 0, i, 1)));
    for burst in [1, 10, 250, 5000] {
        let mut composer =
            Interleave::new(vec![source(1000), source(700), source(1001), source(3)], burst, 5).unwrap();
        let out = read_all(&mut composer).unwrap();
        assert_eq!(out.len(), 2704);
        for s in 0..4u16 {
            let lbas: Vec<_> = out.iter().filter(|r| r.stream == s).map(|r| r.lba.0).collect();
            assert!(lbas.iter().copied().eq(0..lbas.len() as u64), "each source in its own order");
        }
        let mut left = [1000u64, 700, 1001, 3];
        let mut i = 0;
        while i < out.len() {
            let s = usize::from(out.stream[i]);
            let n = burst.min(left[s]);
            assert!((i..i + n as usize).all(|k| usize::from(out.stream[k]) == s), "burst {burst} at {i}");
            left[s] -= n;
            i += n as usize;
        }
        assert!(composer.tail() > 0);
        // Each source's gaps are kept: they add up to the lengths of all.
        assert_eq!(out.arrival[2703], SimTime::from_ms(999 + 699 + 1000 + 2));
    }
    // A source is picked with equal chances, whatever its length (1.5: not weighted).
    let out = all(Interleave::new(vec![source(10_000), source(20_000)], 1, 1).unwrap());
    let early = out.stream[..10_000].iter().filter(|s| **s == 0).count();
    assert!((4_700..5_300).contains(&early), "{early}");
}

/// A trace of one record that counts itself among those open, and has passed over a bad line.
struct Open(Option<Record>, Arc<AtomicUsize>);

impl Open {
    fn new(record: Record, count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Some(record), Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl TraceSource for Open {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        self.0.take().into_iter().for_each(|r| out.push(r));
        Ok(!out.is_empty())
    }
    fn skipped(&self) -> u64 {
        1
    }
    fn progress(&self) -> Option<f64> {
        Some(if self.0.is_some() { 0.0 } else { 1.0 })
    }
}

/// A hundred files one behind the other do not all stay open, with a buffer each, until the last one ends.
#[test]
fn a_chain_closes_each_trace_as_it_ends() {
    let open = Arc::new(AtomicUsize::new(0));
    let sources = (0..5).map(|i| Open::new(record(i, 0, i, 1), &open)).collect();
    let mut chain = Chain::new(sources, SimTime::ZERO).unwrap();
    let mut batch = Batch::new();
    for i in 0..5 {
        assert!(chain.next_batch(&mut batch).unwrap());
        assert_eq!((batch.lba[0].0, batch.stream[0]), (i, i as u16));
        assert_eq!(open.load(Ordering::Relaxed), 5 - i as usize);
        assert_eq!((chain.skipped(), chain.progress()), (i + 1, Some((i + 1) as f64 / 5.0)));
    }
    assert!(!chain.next_batch(&mut batch).unwrap());
    assert_eq!((open.load(Ordering::Relaxed), chain.skipped(), chain.progress()), (0, 5, Some(1.0)));
}
