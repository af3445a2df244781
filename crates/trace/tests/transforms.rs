//! Transforms do what they say to each request, and nothing else.

use proptest::prelude::*;
use smrlab_trace::transforms::*;
use smrlab_trace::{Batch, Memory, OpenContext, Record, TraceError, TraceSource, open, read_all};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

fn record(ms: u64, device: u32, lba: u64, blocks: u32) -> Record {
    Record { arrival: SimTime::from_ms(ms), op: HostOp::Write, lba: Lba(lba), blocks, device, stream: 0 }
}

fn all(mut source: impl TraceSource) -> Batch {
    read_all(&mut source).unwrap()
}

#[test]
fn wrap_keeps_one_request_one_request() {
    let rows = [record(0, 0, 95, 10), record(1, 0, 105, 10), record(2, 0, 3, 500), record(3, 0, 90, 10)];
    let out = all(Wrap::new(Memory::new(rows), Blocks(100)).unwrap());
    let got: Vec<_> = out.iter().map(|r| (r.lba.0, r.blocks)).collect();
    assert_eq!(got, [(90, 10), (5, 10), (0, 100), (90, 10)]);
    assert!(Wrap::new(Memory::default(), Blocks(0)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wrapped_requests_fit_and_keep_their_place_modulo_capacity(
        lba in 0u64..10_000, blocks in 1u32..300, capacity in 1u64..5_000
    ) {
        let out = all(Wrap::new(Memory::new([record(0, 0, lba, blocks)]), Blocks(capacity)).unwrap());
        let r = out.get(0);
        prop_assert!(r.end().0 <= capacity);
        prop_assert_eq!(u64::from(r.blocks), u64::from(blocks).min(capacity));
        if lba % capacity + u64::from(blocks) <= capacity {
            prop_assert_eq!(r.lba.0, lba % capacity);
        }
    }

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

#[test]
fn clip_drops_and_cuts() {
    let rows = [record(0, 0, 95, 10), record(1, 0, 100, 1), record(2, 0, 0, 100)];
    let mut clip = Clip::new(Memory::new(rows), Blocks(100));
    let out = read_all(&mut clip).unwrap();
    assert_eq!(out.iter().map(|r| (r.lba.0, r.blocks)).collect::<Vec<_>>(), [(95, 5), (0, 100)]);
    assert_eq!(clip.changed(), (1, 1));
}

/// common.md C3: base = prefix sum of the per-ASU max extent.
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

#[test]
fn times_scale_without_drift() {
    let rows = [record(0, 0, 0, 1), record(1_000_000, 0, 0, 1)];
    let out = all(Scale::new(Memory::new(rows), 200.0).unwrap());
    assert_eq!(out.arrival[1], SimTime::from_ms(200_000_000));
    let out = all(Scale::new(Memory::new(rows), 0.5).unwrap());
    assert_eq!(out.arrival[1], SimTime::from_ms(500_000));
    assert!(Scale::new(Memory::default(), 0.0).is_err() && Scale::new(Memory::default(), f64::NAN).is_err());
    let far = [Record { arrival: SimTime(u64::MAX / 2), ..rows[0] }];
    assert!(read_all(&mut Scale::new(Memory::new(far), 3.0).unwrap()).is_err());
}

#[test]
fn limit_and_window_cut_where_they_say() {
    let rows: Vec<_> = (0..20_000).map(|i| record(i, 0, i, 1)).collect();
    assert_eq!(all(Limit::new(Memory::new(rows.clone()), 8192)).len(), 8192);
    assert_eq!(all(Limit::new(Memory::new(rows.clone()), 9000)).len(), 9000);
    assert_eq!(all(Limit::new(Memory::new(rows.clone()), 0)).len(), 0);
    let out = all(Window::new(Memory::new(rows), SimTime::from_ms(9_000), SimTime::from_ms(18_000)));
    assert_eq!((out.len(), out.lba[0].0, out.arrival[0].0), (9_000, 9_000, 0));
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

/// Sheet 000, section 1.5.
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
    }
    // A source is picked with equal chances, whatever its length (1.5: not weighted).
    let out = all(Interleave::new(vec![source(10_000), source(20_000)], 1, 1).unwrap());
    let early = out.stream[..10_000].iter().filter(|s| **s == 0).count();
    assert!((4_700..5_300).contains(&early), "{early}");
}

#[test]
fn prefill_covers_the_space_exactly_once() {
    for order in [Order::Sequential, Order::Random] {
        let out = all(Prefill::new(Blocks(100_003), Blocks(8), order, 3).unwrap());
        let mut seen: Vec<_> = out.iter().map(|r| (r.lba.0, r.end().0)).collect();
        let jumps = seen.windows(2).filter(|w| w[0].1 != w[1].0).count();
        assert_eq!(jumps > 1000, order == Order::Random);
        seen.sort_unstable();
        assert_eq!((seen[0].0, seen[seen.len() - 1].1), (0, 100_003));
        assert!(seen.windows(2).all(|w| w[0].1 == w[1].0));
    }
}

#[test]
fn the_digest_is_of_the_requests_not_of_the_batches() {
    let rows: Vec<_> = (0..20_000).map(|i| record(i, 0, i * 8 % 999, 8)).collect();
    let digest = |rows: Vec<Record>| {
        let (mut d, handle) = Digested::new(Limit::new(Memory::new(rows), 15_000));
        read_all(&mut d).unwrap();
        handle.load(std::sync::atomic::Ordering::Relaxed)
    };
    let mut other = rows.clone();
    other[14_999].blocks = 9;
    assert_eq!(digest(rows.clone()), digest(rows[..15_000].to_vec()));
    assert_ne!(digest(rows), digest(other));
}

#[test]
fn a_stream_can_be_selected_by_device() {
    let rows: Vec<_> = (0..20_000).map(|i| record(i, (i % 3) as u32, i, 1)).collect();
    assert_eq!(all(Select::new(Memory::new(rows), vec![2])).len(), 6666);
    assert!(open("synth:uniform,span=1GB", &OpenContext::default()).is_ok());
}
