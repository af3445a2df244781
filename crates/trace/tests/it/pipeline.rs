//! The steps between a trace and who reads it: each does what it says, in one order, by one rule.

use proptest::prelude::*;
use smrlab_trace::{Batch, Filter, Memory, Pipeline, Record, Steps, TraceSource, read_all};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

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

fn through(rows: impl IntoIterator<Item = Record>, steps: Steps) -> Batch {
    read_all(&mut Pipeline::new(Memory::new(rows), steps).unwrap()).unwrap()
}

fn wrap(space: u64) -> Steps {
    Steps { wrap: Some(Blocks(space)), ..Steps::default() }
}

/// Requests that would cross the end end there; the one that is too long is cut to the space.
#[test]
fn wrapped_requests_stay_one_request_of_their_length() {
    let rows = [record(0, 0, 95, 10), record(1, 0, 105, 10), record(2, 0, 3, 500), record(3, 0, 90, 10)];
    let got: Vec<_> = through(rows, wrap(100)).iter().map(|r| (r.lba.0, r.blocks)).collect();
    assert_eq!(got, [(90, 10), (5, 10), (0, 100), (90, 10)]);
    let got: Vec<_> = through([record(0, 0, 1995, 16), record(0, 0, 3995, 10)], wrap(2000))
        .iter()
        .map(|r| (r.lba.0, r.blocks))
        .collect();
    assert_eq!(got, [(1984, 16), (1990, 10)]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wrapped_requests_fit_and_keep_their_place_modulo_the_space(
        lba in 0u64..10_000, blocks in 1u32..300, space in 1u64..5_000
    ) {
        let r = through([record(0, 0, lba, blocks)], wrap(space)).get(0);
        prop_assert!(r.end().0 <= space);
        prop_assert_eq!(u64::from(r.blocks), u64::from(blocks).min(space));
        if lba % space + u64::from(blocks) <= space {
            prop_assert_eq!(r.lba.0, lba % space);
        }
    }

    /// Exactly the product, rounded to the nearest: what real numbers of 64 bits would lose is kept.
    #[test]
    fn times_are_scaled_exactly(at in 0u64..1 << 53, eighths in 1u64..10_000) {
        let steps = Steps { scale_time: eighths as f64 / 8.0, ..Steps::default() };
        let rows = [Record { arrival: SimTime(at), ..record(0, 0, 0, 1) }];
        let expected = (u128::from(at) * u128::from(eighths) + 4) / 8;
        prop_assert_eq!(u128::from(through(rows, steps).arrival[0].0), expected);
    }
}

#[test]
fn steps_that_cannot_be_done_are_refused() {
    let refused = |steps: Steps, needle: &str| {
        let e = Pipeline::new(Memory::default(), steps).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains(needle), "{e:?} lacks {needle:?}");
    };
    refused(wrap(0), "0 blocks");
    for factor in [0.0, -1.0, f64::NAN, 1e13] {
        refused(Steps { scale_time: factor, ..Steps::default() }, "1e-9 to 1e12");
    }
    refused(Steps { limit: Some(0), ..Steps::default() }, "from 1");
    let (from, until) = (SimTime::from_ms(2), SimTime::from_ms(2));
    refused(Steps { from, until, ..Steps::default() }, "no time");
    let far = [Record { arrival: SimTime(u64::MAX / 2), ..record(0, 0, 0, 1) }];
    let steps = Steps { scale_time: 3.0, ..Steps::default() };
    let e = read_all(&mut Pipeline::new(Memory::new(far), steps).unwrap()).unwrap_err().to_string();
    assert!(e.contains("smaller factor"), "{e}");
}

#[test]
fn limits_and_stretches_cut_where_they_say() {
    let rows: Vec<_> = (0..20_000).map(|i| record(i, 0, i, 1)).collect();
    let limit = |n| through(rows.clone(), Steps { limit: Some(n), ..Steps::default() }).len();
    assert_eq!((limit(8192), limit(9000), limit(30_000)), (8192, 9000, 20_000));
    let (from, until) = (SimTime::from_ms(9_000), SimTime::from_ms(18_000));
    let out = through(rows.clone(), Steps { from, until, ..Steps::default() });
    assert_eq!((out.len(), out.lba[0].0, out.arrival[0].0), (9_000, 9_000, 0));
    // A block of which bytes before a place are a part begins before it.
    let filter = Some(Filter::parse("lba=513B..1537B").unwrap());
    assert_eq!(through(rows, Steps { filter, ..Steps::default() }).lba, [Lba(2), Lba(3)]);
}

/// The stretch comes first, then the filter, then the limit, then the scaling, then the wrap.
#[test]
fn the_order_of_steps_is_fixed() {
    let rows: Vec<_> = (0..100).map(|i| record(i, (i % 2) as u32, i * 10, 1)).collect();
    let steps = Steps {
        from: SimTime::from_ms(10),
        until: SimTime::from_ms(90),
        filter: Some(Filter::parse("device=1,lba=300blk..").unwrap()),
        limit: Some(3),
        scale_time: 2.0,
        wrap: Some(Blocks(301)),
    };
    let out = through(rows, steps);
    let ms: Vec<u64> = out.arrival.iter().map(|at| at.0 / 1_000_000).collect();
    assert_eq!(ms, [42, 46, 50], "requests 31, 33 and 35, 10 ms earlier, twice as slow");
    assert_eq!(out.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [9, 29, 49]);
}

/// Nothing is read behind the end.
#[test]
fn reading_ends_where_nothing_more_can_come() {
    struct Endless(u64);
    impl TraceSource for Endless {
        fn next_batch(&mut self, out: &mut Batch) -> Result<bool, smrlab_trace::TraceError> {
            assert!(self.0 < 10, "read on behind the end");
            out.clear();
            out.push(record(self.0, 0, 0, 1));
            self.0 += 1;
            Ok(true)
        }
    }
    let read = |steps| read_all(&mut Pipeline::new(Endless(0), steps).unwrap()).unwrap().len();
    assert_eq!(read(Steps { limit: Some(5), ..Steps::default() }), 5);
    assert_eq!(read(Steps { until: SimTime::from_ms(7), ..Steps::default() }), 7);
}
