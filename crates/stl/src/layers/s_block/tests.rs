use super::*;
use crate::Records;
use crate::layers::test_medium::{Medium, Rig, drawn, request, same_after_checkpoint};
use crate::parts::ring::Stretch;
use smrlab_units::rng::Rng;

const REACH: u64 = 12;

fn space(stretches: &[(u64, u64)], counted: u64) -> MediumSpace {
    let stretch = |&(first, blocks): &(u64, u64)| Stretch { first: Pba(first), blocks: Blocks(blocks) };
    MediumSpace {
        stretches: stretches.iter().map(stretch).collect(),
        reach: Blocks(REACH),
        counted: Blocks(counted),
    }
}

fn make(options: SBlockOptions) -> SBlockLayer {
    SBlockLayer::new(&space(&[(0, 2400)], 2000), options).expect("the options fit")
}

fn options() -> SBlockOptions {
    let rules = Rules { size: 16, batch: 8, low_water: 0.1, ..SBlockOptions::default().rules };
    SBlockOptions { cache: 0.1, overprovision: 0.05, sections: 2, rules }
}

fn with(change: impl Fn(&mut SBlockOptions)) -> SBlockLayer {
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
        || with(|o| (o.rules.literal, o.rules.skip, o.rules.paced) = (true, false, false)),
        || with(|o| (o.rules.skip, o.rules.granularity) = (false, 8)),
        || with(|o| (o.rules.paced, o.rules.policy) = (false, Policy::TailOfCache)),
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
        let mut rng = Rng::new(i as u64);
        for step in 0..10_000 {
            rig.go(drawn(&mut rng, span, 60), false);
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
        let mut rng = Rng::new(99 + i as u64);
        for step in 0..500 {
            rig.go(drawn(&mut rng, span, 40), step > 150);
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

/// Units are cached as a whole: two discards of half a unit each leave it in the cache, and so does a restart.
#[test]
fn a_unit_discarded_in_halves_stays_cached_over_a_restart() {
    let make = || with(|o| o.rules.granularity = 8);
    let (mut layer, mut plan) = (make(), Plan::new(false, false));
    for (op, lba, blocks) in
        [(HostOp::Write, 8, 16), (HostOp::Discard, 8, 4), (HostOp::Discard, 12, 4), (HostOp::Discard, 16, 8)]
    {
        plan.clear();
        layer.submit(SimTime::ZERO, &request(op, lba, blocks), &mut plan);
    }
    let state = |layer: &SBlockLayer| {
        let mut records = Records::default();
        layer.checkpoint(&mut records);
        records
    };
    let recovered = |records: &Records| {
        let mut layer = make();
        layer.recover(records, &mut Plan::new(false, false));
        layer
    };
    let records = state(&layer);
    let same = recovered(&records);
    assert_eq!([layer.facts().cached, same.facts().cached], [Some(Blocks(8)); 2], "{records:?}");
    assert!(state(&same) == records);
    // A state of before, which did not say so.
    let mut before = Records::default();
    records.changes().for_each(|Record { tag, words: [a, b, _] }| before.push(tag, [a, b, 0]));
    let before = recovered(&before);
    assert_eq!(before.facts().cached, Some(Blocks(0)));
    assert!(before.discarded.runs().eq(std::iter::once(8..24)));
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

fn write(layer: &mut SBlockLayer, lba: u64, blocks: u64) -> Plan {
    let mut plan = Plan::new(false, true);
    layer.submit(SimTime::ZERO, &request(HostOp::Write, lba, blocks), &mut plan);
    plan
}

fn copied(plan: &Plan) -> u64 {
    plan.ops().iter().filter(|o| o.cause == crate::Cause::Defrag && o.dir == crate::Dir::Write).count() as u64
}

/// Writing a small region again and again never turns the ring over S-blocks that nobody wrote, nor over discarded ones.
#[test]
fn what_holds_nothing_is_not_copied() {
    let one = |o: &mut SBlockOptions| o.sections = 1;
    let mut layer = with(one);
    let (n, size) = (layer.by_section.divisor(), layer.rules.size);
    for i in 0..20 * n {
        let plan = write(&mut layer, i % 5 * size, size);
        assert_eq!((plan.ops().len(), plan.records().len() <= 10), (1, true), "write {i}");
    }
    // All full, then all but the small region discarded.
    (0..n).for_each(|x| _ = write(&mut layer, x * size, size));
    let mut plan = Plan::new(false, false);
    layer.submit(SimTime::ZERO, &request(HostOp::Discard, 5 * size, (n - 5) * size), &mut plan);
    for i in 0..20 * n {
        assert_eq!(copied(&write(&mut layer, i % 5 * size, size)), 0, "write {i} after the discard");
    }
    // The paper's way: the ring is turned over what was never written.
    let mut literal = with(|o| (o.sections, o.rules.skip) = (1, false));
    let copies: u64 = (0..20 * n).map(|i| copied(&write(&mut literal, i % 5 * size, size))).sum();
    assert!(copies > 10 * n, "{copies} copies of {n} S-blocks");
}

/// A destage of an S-block that has no slot reads its cached blocks and nothing else; the rest is zeroes.
#[test]
fn the_first_destage_reads_no_home() {
    let mut layer = with(|o| (o.sections, o.rules.bypass) = (1, false));
    let (mut all, mut writes) = (Vec::new(), 0);
    while layer.work.counters.destages == 0 {
        let plan = write(&mut layer, writes * 16, 5);
        writes += 1;
        all.extend(plan.ops().iter().filter(|o| o.dir == crate::Dir::Read).map(|o| (o.cause, o.blocks.0)));
    }
    let reads: Vec<_> = all.into_iter().filter(|r| r.0 == crate::Cause::Destage).collect();
    assert_eq!(reads, [(crate::Cause::Destage, 5)]);
}

/// On a full drive no write moves more S-blocks than the page says, and the ring costs not much more than turned at once.
#[test]
fn a_full_drive_moves_in_steps() {
    let run = |paced: bool| {
        let mut layer = with(|o| {
            (o.sections, o.overprovision, o.cache) = (1, 0.1, 0.01);
            (o.rules.size, o.rules.batch, o.rules.paced) = (8, 1, paced);
        });
        let (n, size) = (layer.by_section.divisor(), layer.rules.size);
        (0..n).for_each(|x| _ = write(&mut layer, x * size, size));
        let spare = layer.sections[0].slots.spare();
        let copies: Vec<u64> =
            (0..40 * spare).map(|i| copied(&write(&mut layer, i % 5 * size, size))).collect();
        (n, spare, copies.iter().copied().max().unwrap(), copies.iter().sum::<u64>())
    };
    let (n, spare, most, total) = run(true);
    assert!(
        spare > 15 && most <= 4 * (n + spare) / spare + 1,
        "{most} copies at most; {n} S-blocks, {spare} spare"
    );
    let (_, _, at_once, least) = run(false);
    assert!(at_once >= n - 5, "{at_once} at once");
    assert!(total <= least + 2 * least / 5 + n && least > 30 * (n - 5), "{total} copies against {least}");
}

#[test]
fn sizes_of_the_papers_drive() {
    // D = 1e8, K = 10, S = 2000, 1 % + 1 %.
    let o = SBlockOptions::default();
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
    assert_eq!(at, [(l.by_section.divisor() * 16, 16)], "at the head of the S-block ring");
    plan.clear();
    l.submit(SimTime::ZERO, &request(HostOp::Write, 17, 16), &mut plan);
    assert_eq!(l.work.counters.bypassed, 1, "no whole S-block");
}

/// 20 TB: what is not touched costs nothing but a pointer for 64 S-blocks, a lone cached block less than 10 bytes and its
/// share of a table.
#[test]
fn memory_goes_by_what_is_touched() {
    let blocks = 40_000_000_000;
    let mut layer =
        SBlockLayer::new(&space(&[(0, 2 * blocks)], blocks), SBlockOptions::default()).expect("it fits");
    let mut plan = Plan::new(false, false);
    let untouched = layer.map_bytes();
    assert!(untouched < blocks / 2000 / 3, "{untouched} bytes untouched");
    for i in 0..100_000 {
        plan.clear();
        layer.submit(SimTime::ZERO, &request(HostOp::Write, i * 20, 1), &mut plan);
    }
    let grown = layer.map_bytes() - untouched;
    // No block's item can be told in less than four bytes.
    assert!(
        (100_000 * 4..100_000 * 17).contains(&grown),
        "{grown} bytes for lone blocks, 100 to an S-block, a quarter of room to grow and tables included"
    );
}

/// Few units, rewritten over and over before the ring has turned once, and among them some that are written once or none:
/// memory goes by what is cached.
#[test]
fn what_is_overwritten_gives_its_memory_back() {
    let blocks = 40_000_000_000;
    let grown = |cold: u64| {
        let mut layer =
            SBlockLayer::new(&space(&[(0, 2 * blocks)], blocks), SBlockOptions::default()).expect("it fits");
        let (untouched, mut plan, mut rng) = (layer.map_bytes(), Plan::new(false, false), Rng::new(3));
        for i in 0..200_000 {
            plan.clear();
            let unit = if i % 50 < cold { 64 + i } else { rng.below(64) };
            layer.submit(SimTime::ZERO, &request(HostOp::Write, 8 * unit, 8), &mut plan);
        }
        layer.map_bytes() - untouched
    };
    let alone = grown(0);
    assert!(alone < 400_000, "{alone} bytes for 64 units, one chunk of leaves and one of tables included");
    let (few, many) = (grown(3) - alone, grown(10) - alone);
    assert!(few < 12_000 * 60, "{few} bytes for 12 000 units among 188 000 that are superseded");
    assert!(many < 40_000 * 60, "{many} bytes for 40 000 units among 160 000 that are superseded");
}

/// A hot region and some cold blocks, in a ring that turns many times: what is left out of the circle of leaves lies where it
/// lay, is freed where it would have been, and is there after a checkpoint.
#[test]
fn places_that_are_left_out_come_round_as_they_were() {
    come_round(0);
    // Now and then two leaves full of cold blocks, before which leaves are left out.
    come_round(70);
}

fn come_round(burst: u64) {
    let make = || {
        let rules = Rules { size: 64, ..options().rules };
        let options = SBlockOptions { cache: 0.2, sections: 1, rules, ..options() };
        SBlockLayer::new(&space(&[(0, 60_000)], 50_000), options).expect("the options fit")
    };
    let mut rig = Rig::new(make, Medium::new(60_000, REACH));
    let (span, mut rng) = (rig.layer.host_blocks().0, Rng::new(5));
    let drawn = |rng: &mut Rng, step: u64| match rng.below(100) {
        _ if step % 150 < burst => request(HostOp::Write, 8 * rng.below(span / 8 - 1), 8),
        0 => request(HostOp::Write, 8 * rng.below(span / 8 - 1), 8),
        1 => request(HostOp::Write, rng.below(span - 8), 1 + rng.below(8)),
        2 => request(HostOp::Read, rng.below(span - 8), 8),
        3 => request(HostOp::Discard, 0, 16 * 8),
        _ => request(HostOp::Write, 8 * rng.below(16), 8),
    };
    for step in 0..20_000 {
        rig.go(drawn(&mut rng, step), false);
        if step % 5000 == 2500 {
            rig.swap_for_recovered();
        }
    }
    rig.read_everything();
    let (mut layer, mut plan, mut other) = (make(), Plan::new(true, true), Plan::new(false, false));
    for _ in 0..10 {
        let mut records = Records::default();
        layer.checkpoint(&mut records);
        let mut recovered = make();
        recovered.recover(&records, &mut plan);
        for r in (0..2000).map(|step| drawn(&mut rng, step)) {
            for (layer, plan) in [(&mut layer, &mut plan), (&mut recovered, &mut other)] {
                plan.clear();
                layer.submit(SimTime::ZERO, &r, plan);
            }
            assert_eq!(plan.ops(), other.ops(), "{r:?}");
        }
    }
    assert!(layer.work.counters.defrag_blocks > 1000, "the ring turns");
}

/// Rewritten all over, an S-block's units are found as fast as ever; the lists hold exactly what a plain map holds.
#[test]
fn lists_by_unit_agree_with_a_plain_map() {
    let mut l = make(options());
    let (size, mut plan) = (l.rules.size, Plan::new(false, false));
    let (mut cached, mut state) = (std::collections::BTreeSet::new(), 7u64);
    for _ in 0..20_000 {
        let x = smrlab_units::rng::splitmix(&mut state);
        let (at, n) = (x % (3 * size - 4), 1 + (x >> 32) % 4);
        let op = if x >> 62 == 0 { HostOp::Discard } else { HostOp::Write };
        plan.clear();
        l.submit(SimTime::ZERO, &request(op, at, n), &mut plan);
        // What was destaged or moved meanwhile is asked of the layer itself.
        let s = &l.sections[0];
        let parts = |x: u32| {
            let mut parts = Vec::new();
            s.cache.parts(&s.blocks.at(x), 0, size, &mut parts);
            parts
        };
        let all: Vec<_> = (0..3).flat_map(parts).collect();
        let live: u64 = all.iter().map(|p| p.blocks).sum();
        assert_eq!(live, s.cache.live(), "what the lists hold is what the ring holds");
        cached.clear();
        cached.extend(all.iter().flat_map(|p| p.at..p.at + p.blocks));
        assert_eq!(cached.len() as u64, live, "no place is listed twice");
    }
}
