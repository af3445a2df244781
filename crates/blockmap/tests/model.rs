//! Each container against the plainest model of it, over the borders of leaves, regions and directory pages.

use std::ops::Range;

use proptest::prelude::*;
use smrlab_blockmap::{BlockSet, ExtentMap, Run, UnitMap};

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
                if part.len() == 1 {
                    prop_assert_eq!(map.set(at.start, tag), model[part.start]);
                } else if step.put {
                    prop_assert_eq!(map.set_range(at, tag), held);
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

    #[test]
    fn extent_map_is_a_map(steps in prop::collection::vec((step(BLOCKS), 0..3u64), 1..40)) {
        let mut map = ExtentMap::new();
        let mut model: Vec<Option<u64>> = vec![None; BLOCKS as usize];
        let mut fresh = 1 << 40;
        for (step, place) in &steps {
            for range in step.ranges(BLOCKS) {
                fresh += range.end - range.start + 1;
                // In place, at a fixed offset (neighbours join), or appended to a log.
                let base = [range.start, range.start + 7_777_777, fresh][*place as usize];
                let part = slice(&model, &range);
                let mut displaced = Vec::new();
                let value = step.put.then_some(base);
                map.replace(range.clone(), value, |range, v| displaced.push((range, v)));
                let was: Vec<_> = displaced.into_iter().flat_map(|(r, v)| r.clone().zip(v..v + r.end - r.start)).collect();
                let expected: Vec<_> = range.clone().zip(&model[part.clone()]).filter_map(|(k, v)| Some((k, (*v)?))).collect();
                prop_assert!(was == expected);
                for (i, slot) in model[part].iter_mut().enumerate() {
                    *slot = value.map(|v| v + i as u64);
                }
            }
        }
        check_extents(&map, &model, 0..BLOCKS)?;
        for (step, _) in &steps {
            check_extents(&map, &model, step.start..(step.start + 20_000).min(BLOCKS))?;
            prop_assert_eq!(map.get(step.start), model[step.start as usize]);
        }
        prop_assert_eq!(map.mapped(), model.iter().flatten().count() as u64);
        let joined = map.iter().count();
        prop_assert!(map.len() >= joined && map.len() <= joined + joined / 8 + 2, "{} of {joined}", map.len());
    }
}

/// Runs cover the range without a gap, are as long as can be, and say what the model says.
fn check_extents(
    map: &ExtentMap<u64>,
    model: &[Option<u64>],
    range: Range<u64>,
) -> Result<(), TestCaseError> {
    let mut at = range.start;
    let mut last: Option<Run<u64>> = None;
    for run in map.runs(range.clone()) {
        prop_assert_eq!(run.range.start, at);
        prop_assert!(run.range.end > at);
        for key in run.range.clone() {
            prop_assert_eq!(model[key as usize], run.value.map(|v| v + key - at));
        }
        if let Some(last) = last {
            let carried_on = last.value.map(|v| v + last.range.end - last.range.start);
            prop_assert!(carried_on != run.value, "{:?} and {:?} are one", last.range, run.range);
        }
        at = run.range.end;
        last = Some(run);
    }
    prop_assert_eq!(at, range.end);
    Ok(())
}

#[test]
fn extents_longer_than_an_extent_can_be() {
    let mut map = ExtentMap::new();
    let drive = 0..40_000_000_000;
    map.insert(drive.clone(), 5u64);
    assert_eq!(map.runs(drive.clone()).collect::<Vec<_>>(), [Run { range: drive, value: Some(5) }]);
    map.remove(1_000..30_000_000_000);
    let runs: Vec<_> = map.iter().collect();
    assert_eq!(runs, [(0..1_000, 5), (30_000_000_000..40_000_000_000, 30_000_000_005)]);
}

#[test]
fn many_leaves_and_branches_come_and_go() {
    let mut map = ExtentMap::new();
    let count = 200_000u64;
    // A permutation of the keys, in steps of 16.
    for i in 0..count {
        let key = i * 77_773 % count * 16;
        map.insert(key..key + 8, key * 3);
    }
    assert_eq!(map.len() as u64, count);
    assert!(map.iter().map(|(r, v)| (r.start, v)).eq((0..count).map(|i| (i * 16, i * 48))));
    map.insert(8_000..1_600_000, 1 << 50);
    assert_eq!(map.mapped(), (count - 99_500) * 8 + 1_592_000);
    for i in 0..count {
        let key = i * 77_773 % count * 16;
        map.remove(key..key + 16);
    }
    assert!(map.is_empty() && map.mapped() == 0 && map.iter().next().is_none());
}
