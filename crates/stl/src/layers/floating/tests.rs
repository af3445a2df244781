use super::groups::Groups;
use crate::registry::build;
use crate::{BuildContext, Cause, HostRequest, Plan, TranslationLayer};
use smrlab_disk::model;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::sync::Arc;

/// Of a track of 32 blocks in 10 ms.
const BLOCK_NS: u64 = 312_500;

/// A unit is a block, a group a track: 24 units in 32 places, every fourth of which is free at first.
fn layer(more: &str) -> Box<dyn TranslationLayer> {
    let tiny = model::load("tiny", |_| Err(String::new())).unwrap();
    let text = format!("floating,unit=1blk,group=1,spare=25%{more}");
    build(&text, &BuildContext::new(Arc::new(tiny))).unwrap().layer
}

/// A write of parity when `halves` half blocks have passed the head: where it goes, and how many fences stand before it.
fn write(layer: &mut dyn TranslationLayer, halves: u64, lba: u64, blocks: u64) -> (Vec<u64>, usize) {
    write_why(layer, Cause::Parity, halves, lba, blocks)
}

fn write_why(
    layer: &mut dyn TranslationLayer,
    why: Cause,
    halves: u64,
    lba: u64,
    blocks: u64,
) -> (Vec<u64>, usize) {
    let mut plan = Plan::new(true, true);
    let r = HostRequest { why, ..HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks)) };
    layer.submit(SimTime(halves * BLOCK_NS / 2), &r, &mut plan);
    (plan.ops().iter().map(|op| op.pba.0).collect(), plan.fences().len())
}

fn read(layer: &mut dyn TranslationLayer, lba: u64, blocks: u64) -> Vec<u64> {
    let mut plan = Plan::new(true, false);
    layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Read, Lba(lba), Blocks(blocks)), &mut plan);
    plan.ops().iter().map(|op| op.pba.0).collect()
}

/// Units 0, 1, 2 are in places 0, 1, 2, and 3 in place 4. The head has read place 0: place 3 passes next; half a block behind
/// its beginning it is too late for that, and 7 is next.
#[test]
fn a_unit_goes_to_the_free_place_that_passes_first() {
    let mut l = layer("");
    assert_eq!(l.host_blocks().0 % 24, 0);
    assert_eq!((read(&mut *l, 2, 1), read(&mut *l, 3, 1)), (vec![2], vec![4]));
    assert_eq!(write(&mut *l, 2, 0, 1), (vec![3], 0));
    assert_eq!(read(&mut *l, 0, 2), [3, 1]);
    assert_eq!(write(&mut *layer(""), 7, 0, 1), (vec![7], 0));
    // Where its own place is the next one, it stays.
    assert_eq!(write(&mut *layer(""), 7, 3, 1), (vec![4], 0));
    // Two units one after the other: the second one's begins behind the first one's.
    assert_eq!(write(&mut *layer(""), 4, 0, 2), (vec![3, 7], 0));
    // Unit 1's own place passes before place 3 does; when unit 0 is written there, 7 is the next free one.
    assert_eq!(write(&mut *layer(""), 1, 0, 2), (vec![3, 7], 0));
}

/// What an array does not write as parity, and what is longer than four units, stays.
#[test]
fn only_small_writes_of_parity_float() {
    let mut l = layer("");
    assert_eq!(write_why(&mut *l, Cause::Host, 2, 0, 1), (vec![0], 0));
    // Place 3 is free: two pieces.
    assert_eq!(write(&mut *l, 2, 0, 5), (vec![0, 4], 0));
    assert_eq!(write_why(&mut *layer(",what=all"), Cause::Host, 2, 0, 1), (vec![3], 0));
    // Of units of two blocks half a one stays.
    let tiny = model::load("tiny", |_| Err(String::new())).unwrap();
    let text = "floating,unit=2blk,group=1,spare=25%";
    let mut pairs = build(text, &BuildContext::new(Arc::new(tiny))).unwrap().layer;
    assert_eq!(write(&mut *pairs, 2, 1, 1), (vec![1], 0));
}

/// A place that was left holds what a loss of power would need: it is taken again behind a fence, or once all is durable.
#[test]
fn a_place_that_was_left_is_taken_behind_a_fence() {
    for durable in [false, true] {
        let mut l = layer("");
        assert_eq!(write(&mut *l, 2, 0, 1), (vec![3], 0));
        if durable {
            l.durable();
        }
        // At the end of block 31 place 0 is next for unit 1.
        assert_eq!(write(&mut *l, 63, 1, 1), (vec![0], usize::from(!durable)));
    }
}

/// Groups of 32, 8 and more places of tiny's tracks: runs of all units, from any one on, are where the units are one by one, before and after
/// some of them moved.
#[test]
fn runs_lie_where_their_units_do() {
    let tiny = model::load("tiny", |_| Err(String::new())).unwrap();
    for (tracks, unit, spare) in [(1, 1, 0.25), (1, 1, 0.01), (3, 2, 0.4), (2, 3, 0.1), (5, 8, 0.0)] {
        let mut groups = Groups::new(&tiny, tracks, unit, spare).unwrap();
        for round in 0..40 {
            for from in [0, 1, 17, 23, 24, 25, groups.units() / 2, groups.units() - 1] {
                let end = groups.units().min(from + 70 + round);
                let (mut next, mut runs) = (from, 0);
                groups.runs(from..end, |units, place| {
                    assert_eq!(units.start, next);
                    assert!(
                        units.clone().zip(place..).all(|(unit, place)| groups.place(unit) == place),
                        "{units:?}"
                    );
                    (next, runs) = (units.end, runs + 1);
                });
                assert_eq!(next, end);
                assert!(
                    round > 0 || unit > 1 || spare < 0.2 || runs <= (end - from) / 3 + 2,
                    "{runs} of {from}"
                );
            }
            let unit = round * 7 % groups.units();
            let free = groups.free(unit).next();
            free.into_iter().for_each(|place| _ = groups.put(unit, place));
        }
    }
}
