use super::*;
use crate::parts::ring::Stretch;
use crate::registry::build;
use crate::{BuildContext, Records};
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
