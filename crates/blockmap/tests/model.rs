//! Each container against the plainest model of it, over the borders of leaves, regions and directory pages.

use std::ops::Range;

use proptest::prelude::*;
use smrlab_blockmap::{BlockSet, UnitMap};

/// Units modelled: a little more than a region of 32 768.
const UNITS: u64 = 40_000;
/// The first of them, so that a directory page (2 M units) ends in their midst.
const BASE_UNIT: u64 = 3 * 2_097_152 - 20_000;
const BASE: u64 = BASE_UNIT * 8;
const BLOCKS: u64 = UNITS * 8;

/// One step: `put` or take away, `count` ranges of `len` that start `stride` apart.
#[derive(Clone, Debug)]
struct Step {
    put: bool,
    start: u64,
    len: u64,
    count: u64,
    stride: u64,
    tag: u32,
}

fn step(space: u64) -> impl Strategy<Value = Step> {
    let shape = prop_oneof![
        4 => (1..40u64, Just(1), Just(1u64)),
        2 => (1..space, Just(1), Just(1u64)),
        2 => (1..12u64, 1..900u64, 8..300u64),
        1 => (Just(8u64), 1..900u64, Just(8u64)),
        1 => (Just(8192u64), 1..6u64, Just(8192u64)),
    ];
    let start = prop_oneof![0..space, (0..space / 8192).prop_map(|leaf| leaf * 8192 + 8 * 20_000 % 8192)];
    (any::<bool>(), start, shape, 1..4u32).prop_map(|(put, start, (len, count, stride), tag)| Step {
        put,
        start,
        len,
        count,
        stride,
        tag,
    })
}

impl Step {
    fn ranges(&self, space: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        (0..self.count)
            .map(move |i| self.start + i * self.stride)
            .filter(move |s| *s < space)
            .map(move |s| s..(s + self.len).min(space))
    }
}

fn model_runs(model: &[bool]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for (i, _) in model.iter().enumerate().filter(|(_, set)| **set) {
        let block = BASE + i as u64;
        match runs.last_mut() {
            Some(run) if run.end == block => run.end += 1,
            _ => runs.push(block..block + 1),
        }
    }
    runs
}

fn slice<T>(model: &[T], range: &Range<u64>) -> Range<usize> {
    assert!(range.end as usize <= model.len());
    range.start as usize..range.end as usize
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn block_set_is_a_set(steps in prop::collection::vec(step(BLOCKS), 1..40)) {
        let mut set = BlockSet::new();
        let mut model = vec![false; BLOCKS as usize];
        for step in &steps {
            for range in step.ranges(BLOCKS) {
                let at = BASE + range.start..BASE + range.end;
                let part = &mut model[range.start as usize..range.end as usize];
                let held = part.iter().filter(|b| **b).count() as u64;
                prop_assert_eq!(set.contains_any(at.clone()), held > 0);
                prop_assert_eq!(set.contains_all(at.clone()), held == part.len() as u64);
                prop_assert_eq!(set.count_in(at.clone()), held);
                set.prefetch(at.start);
                let changed = if step.put { set.insert(at) } else { set.remove(at) };
                prop_assert_eq!(changed, if step.put { part.len() as u64 - held } else { held });
                part.fill(step.put);
            }
        }
        let runs = model_runs(&model);
        prop_assert_eq!(set.count(), runs.iter().map(|r| r.end - r.start).sum::<u64>());
        prop_assert_eq!(set.runs().collect::<Vec<_>>(), runs.clone());
        for step in &steps {
            let at = BASE + step.start;
            let next = runs.iter().find(|r| r.end > at);
            prop_assert_eq!(set.next_set(at), next.map(|r| r.start.max(at)));
            prop_assert_eq!(set.next_unset(at), next.filter(|r| r.start <= at).map_or(at, |r| r.end));
            prop_assert_eq!(set.contains(at), model[step.start as usize]);
        }
        // One look, at whatever comes next.
        let mut look = set.look();
        for range in steps.iter().flat_map(|step| step.ranges(BLOCKS)) {
            let at = BASE + range.start..BASE + range.end;
            let first = runs.get(runs.partition_point(|r| r.end <= at.start)).filter(|r| r.start < at.end);
            prop_assert_eq!(look.contains_all(at.clone()), first.is_some_and(|r| r.start <= at.start && r.end >= at.end));
            prop_assert_eq!(look.first_run(at.clone()), first.map(|r| r.start.max(at.start)..r.end.min(at.end)));
        }
        set.remove(BASE..BASE + BLOCKS);
        prop_assert!(set.is_empty() && set.runs().next().is_none());
    }

    #[test]
    fn unit_map_is_a_map(steps in prop::collection::vec(step(UNITS), 1..40)) {
        let mut map = UnitMap::new();
        let mut model = vec![0u32; UNITS as usize];
        for step in &steps {
            for range in step.ranges(UNITS) {
                let part = slice(&model, &range);
                let held = model[part.clone()].iter().filter(|t| **t != 0).count() as u64;
                let tag = step.tag * u32::from(step.put) * 0x4001_0003;
                let at = BASE_UNIT + range.start..BASE_UNIT + range.end;
                map.prefetch(at.start);
                if step.put && part.len() > 1 && step.start % 2 == 0 {
                    let own = |unit: u64| tag + (unit % 5) as u32;
                    map.set_each(at, own);
                    part.for_each(|i| model[i] = own(BASE_UNIT + i as u64));
                    continue;
                }
                if part.len() == 1 {
                    prop_assert_eq!(map.set(at.start, tag), model[part.start]);
                } else if step.put {
                    prop_assert_eq!(at.filter(|unit| map.set(*unit, tag) != 0).count() as u64, held);
                } else {
                    prop_assert_eq!(map.remove(at), held);
                }
                model[part].fill(tag);
            }
        }
        prop_assert_eq!(map.len(), model.iter().filter(|t| **t != 0).count() as u64);
        let mut seen = vec![0u32; UNITS as usize];
        for (run, tag) in map.runs_in(BASE_UNIT..BASE_UNIT + UNITS) {
            seen[(run.start - BASE_UNIT) as usize..(run.end - BASE_UNIT) as usize].fill(tag);
        }
        prop_assert!(seen == model);
        for (i, tag) in model.iter().enumerate().step_by(7) {
            prop_assert_eq!(map.get(BASE_UNIT + i as u64), *tag);
        }
    }
}
