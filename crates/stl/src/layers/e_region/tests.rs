use super::*;
use crate::parts::ring::Stretch;
use crate::registry::build;
use crate::{BuildContext, OpId, Records};
use smrlab_disk::model;
use smrlab_units::rng::Rng;
use std::sync::Arc;

fn layer(options: &str) -> Box<dyn TranslationLayer> {
    let tiny = model::load("tiny", |_| Err(String::new())).unwrap();
    build(&format!("e-region{options}"), &BuildContext::new(Arc::new(tiny))).unwrap().layer
}

fn write(layer: &mut dyn TranslationLayer, plan: &mut Plan, lba: u64) -> usize {
    plan.clear();
    layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(lba), Blocks(1)), plan);
    plan.ops().len()
}

fn counted(layer: &dyn TranslationLayer, wanted: &str) -> u64 {
    crate::counted(layer).get(wanted).unwrap()
}

/// In idle time the regions of which the ring holds something go to the spare place in the order of their positions, whatever the
/// order of the writes was, and then nothing is left to do.
#[test]
fn the_cursor_goes_in_the_order_of_positions_until_the_ring_is_empty() {
    let (mut layer, mut plan) = (layer(",band=2"), Plan::new(false, true));
    let host = layer.host_blocks().0;
    for lba in [host - 1, 5, host / 2] {
        assert_eq!(write(&mut *layer, &mut plan, lba), 1);
    }
    let mut order = Vec::new();
    while layer.background_after().is_some() {
        plan.clear();
        layer.background(SimTime::ZERO, &mut plan);
        layer.background_end(StepEnd::Done);
        order.extend(plan.records().iter().map(|r| r.word(0)));
    }
    order.dedup();
    assert!(order.is_sorted() && order.len() == 3, "{order:?}");
    assert_eq!(counted(&*layer, "cached_blocks"), 0);
    assert_eq!(counted(&*layer, "regions_refreshed"), 3);
}

/// Without idle time, too, no write waits for more than a few steps once they are paced.
#[test]
fn writes_without_a_pause_pay_step_by_step() {
    let (mut layer, mut plan, mut rng) = (layer(",cache=10%,pace=20%"), Plan::new(false, false), Rng::new(4));
    let host = layer.host_blocks().0;
    let mut long = 0;
    for _ in 0..3000 {
        long += u64::from(write(&mut *layer, &mut plan, rng.below(host)) > 60);
    }
    let regions = counted(&*layer, "regions_refreshed");
    assert!(regions > 100, "{regions} regions");
    assert!(long < 30, "{long} of 3000 writes waited for more than 60 operations");
}

/// Written were all ten blocks of a region, which went home, then 7, 2 and 3 at once, and 9, which was discarded. The step reads from the
/// ring 7, 2 and 3, which lie side by side, and at home what lies from 0 to 8, though the ring has newer ones of it.
#[test]
fn a_step_reads_what_lies_together_at_once() {
    let places = Places {
        ring: Laid::over(&[Stretch { first: Pba(0), blocks: Blocks(96) }]),
        regions: vec![Pba(200), Pba(220), Pba(240)],
        region: 10,
        guard: 2,
    };
    let options = ERegionOptions { step: 10, pace: 1.0, idle: Some(SimTime::ZERO) };
    let (mut layer, mut plan) = (ERegion::new(places, options), Plan::new(true, true));
    let ask = |layer: &mut ERegion, op, lba, blocks| {
        let mut plan = Plan::new(true, true);
        layer.submit(SimTime::ZERO, &HostRequest::new(op, Lba(lba), Blocks(blocks)), &mut plan);
    };
    ask(&mut layer, HostOp::Write, 0, 10);
    layer.background(SimTime::ZERO, &mut plan);
    layer.background_end(StepEnd::Done);
    ask(&mut layer, HostOp::Write, 7, 1);
    ask(&mut layer, HostOp::Write, 2, 2);
    ask(&mut layer, HostOp::Write, 9, 1);
    ask(&mut layer, HostOp::Discard, 9, 1);
    plan.clear();
    layer.background(SimTime::ZERO, &mut plan);
    let ops: Vec<_> = plan.ops().iter().map(|op| (op.dir, op.pba.0, op.blocks.0)).collect();
    // The first step took the spare place at 240.
    assert_eq!(ops, [(Dir::Read, 10, 3), (Dir::Read, 240, 9), (Dir::Write, 200, 10)]);
    let pieces: Vec<_> = plan.pieces(OpId(2)).iter().map(|p| (p.blocks.0, p.end)).collect();
    let (ring, home) =
        (|at| Endpoint::Staged(OpId(0), Blocks(at)), |at| Endpoint::Staged(OpId(1), Blocks(at)));
    assert_eq!(
        pieces,
        [(2, home(0)), (2, ring(1)), (3, home(4)), (1, ring(0)), (1, home(8)), (1, Endpoint::Zero)]
    );
}

/// What an entry of the ring counts is what a look at the map says, and what a recovery makes of a checkpoint.
#[test]
fn entries_count_the_blocks_that_are_needed_of_them() {
    let places = Places {
        ring: Laid::over(&[Stretch { first: Pba(0), blocks: Blocks(96) }]),
        regions: (0..=20).map(|i| Pba(200 + 10 * i)).collect(),
        region: 10,
        guard: 2,
    };
    let options = ERegionOptions { step: 4, pace: 0.6, idle: None };
    let new = || ERegion::new(places.clone(), options);
    let (mut layer, mut plan, mut rng) = (new(), Plan::new(false, false), Rng::new(9));
    let (mut wrapped, mut partly) = (0, 0);
    let counts = |layer: &ERegion| layer.tally.entries.iter().map(|e| (e.at, e.needed)).collect::<Vec<_>>();
    for _ in 0..4000 {
        let lba = rng.below(200);
        let blocks = 1 + rng.below((200 - lba).min(9));
        let op = if rng.one_in(8) { HostOp::Discard } else { HostOp::Write };
        plan.clear();
        layer.submit(SimTime::ZERO, &HostRequest::new(op, Lba(lba), Blocks(blocks)), &mut plan);
        for entry in &layer.tally.entries {
            let needed: u64 = layer.needed(entry).iter().map(|e| e.blocks).sum();
            assert_eq!(u64::from(entry.needed), needed, "{entry:?}");
            wrapped += u64::from(entry.at + u64::from(entry.blocks) > 96);
            partly += u64::from(0 < entry.needed && entry.needed < entry.blocks);
        }
        let (mut records, mut again) = (Records::default(), new());
        layer.checkpoint(&mut records);
        again.recover(&records, &mut plan);
        assert_eq!(counts(&again), counts(&layer));
    }
    assert!(wrapped > 100 && partly > 1000, "{wrapped} {partly}");
}

/// A write, and a discard of it, of whose records a power cut left the first ones: what is written there again holds data.
#[test]
fn what_is_written_again_after_a_cut_between_records_holds_data() {
    let mut plan = Plan::new(false, true);
    let ask = |layer: &mut dyn TranslationLayer, plan: &mut Plan, op| {
        plan.clear();
        layer.submit(SimTime::ZERO, &HostRequest::new(op, Lba(5), Blocks(3)), plan);
        plan.records().clone()
    };
    let mut first = layer("");
    let mut records = ask(&mut *first, &mut plan, HostOp::Write);
    records.append(&ask(&mut *first, &mut plan, HostOp::Discard));
    assert_eq!(records.len(), 4);
    for left in 0..=records.len() {
        let (mut kept, mut again) = (records.clone(), layer(""));
        kept.truncate(left);
        again.recover(&kept, &mut plan);
        ask(&mut *again, &mut plan, HostOp::Write);
        let mut holds = Vec::new();
        again.allocated(Lba(0), again.host_blocks(), &mut |run| holds.push(run));
        assert_eq!(holds, std::slice::from_ref(&(5..8)), "{left} records");
    }
}
