use super::*;
use crate::registry::build;
use crate::{BuildContext, Plan, Records};
use smrlab_disk::model;
use smrlab_units::rng::Rng;

fn layer(options: &str) -> Box<dyn TranslationLayer> {
    let tiny = model::load("tiny", |_| Err(String::new())).unwrap();
    build(&format!("virtualguard{options}"), &BuildContext::new(Arc::new(tiny))).unwrap().layer
}

fn concrete(victim: Victim) -> VirtualGuard {
    let tiny = Arc::new(model::load("tiny", |_| Err(String::new())).unwrap());
    let bands = tiny.bands(None).unwrap();
    let places = entry::places(&tiny, bands.clone(), bands.len(), 0.1).unwrap();
    VirtualGuard::new(tiny, places, victim, None)
}

fn counted(layer: &dyn TranslationLayer, wanted: &str) -> u64 {
    crate::counted(layer).get(wanted).unwrap()
}

fn write(layer: &mut dyn TranslationLayer, plan: &mut Plan, lba: u64, blocks: u64) -> usize {
    plan.clear();
    layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks)), plan);
    plan.ops().len()
}

/// Random updates of a full drive fill the cache and empty it again and again; what is away never exceeds the slots.
#[test]
fn rows_that_go_away_come_back() {
    for options in ["", ",victim=fullest"] {
        let (mut layer, mut plan, mut rng) = (layer(options), Plan::new(false, false), Rng::new(3));
        let host = layer.host_blocks().0;
        write(&mut *layer, &mut plan, 0, host);
        for _ in 0..2000 {
            write(&mut *layer, &mut plan, rng.below(host), 1);
        }
        let [out, back, now, bands] =
            ["rows_to_guard_cache", "rows_given_back", "cached_rows", "bands_cleaned"]
                .map(|name| counted(&*layer, name));
        assert_eq!(out - back, now, "{options}");
        assert!(bands > 50 && back > bands, "{options}: {bands} bands, {back} rows");
    }
}

/// A track that is written again and again costs one operation each time after the first.
#[test]
fn a_hot_track_is_updated_in_place() {
    let (mut layer, mut plan) = (layer(""), Plan::new(false, false));
    let host = layer.host_blocks().0;
    write(&mut *layer, &mut plan, 0, host);
    assert_eq!(write(&mut *layer, &mut plan, 0, 2), 3, "the next track is read and copied first");
    for _ in 0..100 {
        assert_eq!(write(&mut *layer, &mut plan, 0, 2), 1);
    }
    assert_eq!(counted(&*layer, "rows_to_guard_cache"), 1);
}

/// What was discarded after the last fence may still be wanted after a cut: a write that destroys it waits for a fence, once.
#[test]
fn a_discard_is_durable_before_what_it_forgot_is_destroyed() {
    let (mut layer, mut plan) = (layer(""), Plan::new(false, true));
    let host = layer.host_blocks();
    write(&mut *layer, &mut plan, 0, host.0);
    layer.durable();
    plan.clear();
    layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Discard, Lba(2), host - Blocks(2)), &mut plan);
    assert!(plan.fences().is_empty());
    assert_eq!(write(&mut *layer, &mut plan, 0, 2), 1, "nothing is left that needs a copy");
    assert_eq!(plan.fences(), [0]);
    write(&mut *layer, &mut plan, 0, 2);
    assert!(plan.fences().is_empty());
}

/// Whatever goes home first, the first row in the order of their going is away: the oldest one, which is cleaned next.
#[test]
fn the_first_row_in_the_order_is_always_away() {
    for victim in [Victim::Oldest, Victim::Fullest] {
        let (mut layer, mut plan, mut rng) = (concrete(victim), Plan::new(false, false), Rng::new(11));
        let host = layer.host_blocks().0;
        write(&mut layer, &mut plan, 0, host);
        for _ in 0..2000 {
            write(&mut layer, &mut plan, rng.below(host), 1);
            let oldest = layer.held.iter().flatten().min_by_key(|h| h.since).map(|h| (h.row, h.since));
            assert_eq!(layer.order.front().copied(), oldest, "{victim:?}");
        }
        assert!(layer.counters.returned > 100, "{}", layer.counters.returned);
    }
}

/// With rows of other bands in the cache by then another one might be next: the one that was begun is to be finished first.
#[test]
fn a_checkpoint_knows_the_band_whose_cleaning_was_begun() {
    let (mut layer, mut plan) = (concrete(Victim::Fullest), Plan::new(false, false));
    let host = layer.host_blocks().0;
    write(&mut layer, &mut plan, 0, host);
    write(&mut layer, &mut plan, 0, 2);
    let band = layer.by_band.iter().position(|n| *n > 0).expect("a row of it is away") as u64;
    layer.apply(&records::cleaning(band));
    let mut again = concrete(Victim::Fullest);
    let mut records = Records::default();
    layer.write_checkpoint(&mut records);
    records.changes().for_each(|r| again.apply(&r));
    assert_eq!((again.cleaning, &again.by_band), (Some(band), &layer.by_band));
}

/// The band of which most rows are away is next, of equal ones the first; none where no row is away.
#[test]
fn the_fullest_band_is_next() {
    let mut layer = concrete(Victim::Fullest);
    assert_eq!(layer.next_band(), None);
    for (band, rows) in [(2, 1), (3, 2), (5, 2)] {
        layer.by_band[band] = rows;
    }
    assert_eq!(layer.next_band(), Some(3));
}
