use super::*;
use crate::layers::test_medium::{Medium, Rig, Sequence, request, same_after_checkpoint};
use crate::parts::ring::Stretch;

const REACH: u64 = 12;

fn space(stretches: &[(u64, u64)], counted: u64) -> MediumSpace {
    let stretch = |&(first, blocks): &(u64, u64)| Stretch { first: Pba(first), blocks: Blocks(blocks) };
    MediumSpace {
        stretches: stretches.iter().map(stretch).collect(),
        reach: Blocks(REACH),
        counted: Blocks(counted),
    }
}

fn make(options: Options) -> SBlockLayer {
    SBlockLayer::new(&space(&[(0, 2400)], 2000), options).expect("the options fit")
}

fn options() -> Options {
    let rules = Rules { size: 16, batch: 8, low_water: 0.1, ..Options::default().rules };
    Options { cache: 0.1, overprovision: 0.05, sections: 2, rules }
}

fn with(change: impl Fn(&mut Options)) -> SBlockLayer {
    let mut o = options();
    change(&mut o);
    make(o)
}

fn variants() -> Vec<fn() -> SBlockLayer> {
    vec![
        || with(|_| ()),
        || with(|o| o.rules.granularity = 8),
        || with(|o| o.rules.policy = Policy::MostCached),
        || with(|o| o.rules.policy = Policy::TailOfCache),
        || with(|o| o.rules.policy = Policy::Mix(Weights { tail: 1.0, cached: 1.0, age: 1.0 })),
        || with(|o| o.rules.literal = true),
        || with(|o| (o.rules.destage_ahead, o.rules.bypass) = (2, false)),
        // Interference far beyond an S-block, and rings over several stretches.
        || with(|o| o.rules.size = 8),
        || {
            let stretches = [(0, 150), (200, 301), (600, 77), (800, 700), (1600, 700)];
            SBlockLayer::new(&space(&stretches, 1700), options()).expect("it fits")
        },
    ]
}

fn medium() -> Medium {
    Medium::new(2400, REACH)
}

#[test]
fn ten_thousand_requests_read_back() {
    for (i, make) in variants().into_iter().enumerate() {
        let mut rig = Rig::new(make, medium());
        let span = rig.layer.host_blocks().0;
        let mut sequence = Sequence(i as u64);
        for step in 0..10_000 {
            rig.go(sequence.request(span, 60), false);
            if step % 1000 == 500 {
                rig.swap_for_recovered();
            }
        }
        rig.read_everything();
        assert!(rig.layer.work.counters.destages > 100, "variant {i} destages");
        assert!(rig.layer.work.counters.sblock_copies > 0, "variant {i} moves S-blocks");
    }
}

#[test]
fn cuts_everywhere_lose_nothing() {
    for (i, make) in variants().into_iter().enumerate() {
        let mut rig = Rig::new(make, medium());
        let span = rig.layer.host_blocks().0;
        let mut sequence = Sequence(99 + i as u64);
        for step in 0..500 {
            rig.go(sequence.request(span, 40), step > 150);
            if step % 50 == 49 {
                rig.swap_for_recovered();
            }
        }
    }
}

#[test]
fn a_recovered_layer_is_the_same_layer() {
    for (i, make) in variants().into_iter().enumerate() {
        same_after_checkpoint(make, i as u64, 60);
    }
}

/// Invalid places are freed before a destage is chosen: if that changed an age, `locate` would announce another choice.
#[test]
fn freeing_invalid_places_changes_no_age() {
    let mut layer = with(|o| (o.rules.size, o.sections) = (16, 1));
    let s = &mut layer.sections[0];
    s.put(0, 0, 8);
    s.put(1, 0, 8);
    s.put(0, 0, 3);
    let age = s.cache.age(&s.blocks.at(0));
    s.cache.reclaim(2, &mut s.blocks);
    assert_eq!(s.cache.age(&s.blocks.at(0)), age, "two of three invalid places are freed");
    s.cache.reclaim(1, &mut s.blocks);
    assert_eq!(s.cache.age(&s.blocks.at(0)), age);
    assert!(age > s.cache.age(&s.blocks.at(1)));
}

#[test]
fn sizes_of_the_sheet() {
    // D = 1e8, K = 10, S = 2000, 1 % + 1 %.
    let o = Options::default();
    let s = Sizes::of(10_000_000, &o, 2000).unwrap();
    assert_eq!(s, Sizes { cache: 100_000, slots: 4_950, sblocks: 4_901 });
    assert_eq!(Sizes::of(20_000, &o, 2000), Some(Sizes { cache: 8_004, slots: 5, sblocks: 2 }));
    assert_eq!(Sizes::of(6_000, &o, 2000), None);
}

#[test]
fn whole_sblocks_bypass_the_cache() {
    let mut l = make(options());
    let mut plan = Plan::new(false, false);
    l.submit(SimTime::ZERO, &request(HostOp::Write, 16, 16), &mut plan);
    let at: Vec<_> = plan.ops().iter().map(|o| (o.pba.0, o.blocks.0)).collect();
    assert_eq!(at, [(l.by_section.by() * 16, 16)], "at the head of the S-block ring");
    plan.clear();
    l.submit(SimTime::ZERO, &request(HostOp::Write, 17, 16), &mut plan);
    assert_eq!(l.work.counters.bypassed, 1, "no whole S-block");
}

/// 20 TB: what is not touched costs nothing but a pointer for 64 S-blocks, a lone cached block less than 10 bytes.
#[test]
fn memory_goes_by_what_is_touched() {
    let blocks = 40_000_000_000;
    let mut layer =
        SBlockLayer::new(&space(&[(0, 2 * blocks)], blocks), Options::default()).expect("it fits");
    let mut plan = Plan::new(false, false);
    let untouched = layer.map_bytes();
    assert!(untouched < blocks / 2000 / 3, "{untouched} bytes untouched");
    for i in 0..100_000 {
        plan.clear();
        layer.submit(SimTime::ZERO, &request(HostOp::Write, i * 20, 1), &mut plan);
    }
    let grown = layer.map_bytes() - untouched;
    assert!(
        grown < 100_000 * 12,
        "{grown} bytes for lone blocks, 100 to an S-block, a quarter of room to grow included"
    );
}
