//! The map against one number per block.

use super::*;
use proptest::prelude::*;
use smrlab_units::rng::Rng;

fn check(map: &RunMap, plain: &[u64]) {
    let mut seen = vec![0u64; plain.len()];
    let mut last = 0;
    for r in map.iter() {
        assert!(r.start >= last && r.start < r.end);
        last = r.end;
        seen[r.start as usize..r.end as usize].fill(r.seq);
    }
    assert_eq!(map.iter().count(), map.len());
    assert!(seen == plain);
}

/// One change: what kind, where, how long.
fn change(map: &mut RunMap, plain: &mut [u64], seq: u64, (start, len, kind): (u64, u64, u8)) {
    let len = if kind == 11 { len * 20 } else { len };
    let range = start as usize..(start + len) as usize;
    let spot = map.spot(start);
    assert_eq!(spot.before, map.ending_at(start));
    if kind == 0 {
        map.clear(start, start + len);
        plain[range].fill(0);
    } else if kind < 4
        && let Some(before) = spot.before
    {
        map.extend(start, start + len, seq);
        plain[before.start as usize..(start + len) as usize].fill(seq);
    } else {
        if !map.renew(&spot, start, start + len, seq) {
            map.set(start, start + len, seq);
        }
        plain[range].fill(seq);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Through splits of leaves and removals of whole leaves.
    #[test]
    fn equals_a_number_per_block(ops in prop::collection::vec((0u64..3000, 1u64..40, 0u8..12), 1..2500)) {
        let mut map = RunMap::default();
        let mut plain = vec![0u64; 4000];
        for (n, op) in ops.into_iter().enumerate() {
            change(&mut map, &mut plain, n as u64 + 1, op);
        }
        check(&map, &plain);
    }
}

/// Random numbers below n.
fn random() -> impl FnMut(u64) -> u64 {
    let mut random = Rng::new(1);
    move |n| random.below(n)
}

/// Hundreds of leaves of which few fit into the budget: the same map, in bounded memory, and space comes back.
#[test]
fn a_map_that_spilled_is_the_same_map() {
    let dir = tempfile::tempdir().unwrap();
    let mut map = RunMap::default();
    map.spill_into(dir.path(), 1).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let mut next = random();
    let mut plain = vec![0u64; 400_000];
    let budget = 64 * 4096;
    for n in 0..120_000 {
        let len = if next(2000) == 0 { 20_000 } else { 1 + next(5) };
        let at = next(380_000);
        map.reserve().unwrap();
        change(&mut map, &mut plain, n + 1, (at, len, 1 + next(10) as u8));
        assert!(map.leaves.room().resident <= budget, "{:?}", map.room());
        if n % 30_000 == 29_999 {
            check(&map, &plain);
        }
    }
    let spilled = map.room().spilled;
    assert!(map.len() > 30_000 && spilled > 4 * budget, "{} runs, {spilled}", map.len());
    // Overwritten piece by piece the map shrinks again: small leaves join their neighbours.
    for at in (0..400_000).step_by(50) {
        change(&mut map, &mut plain, 200_000 + at, (at, 49, 5));
    }
    check(&map, &plain);
    let leaves = map.nodes.iter().map(|n| n.len).sum::<usize>();
    assert!(leaves < 5 * map.len() / LEAF, "{leaves} leaves for {} runs", map.len());
    map.clear(0, 400_000);
    assert_eq!((map.len(), map.room().spilled), (0, 0));
}

/// What is written again exactly as it was changes its number alone, and finds its leaf in the file as often as not: that keeps to the
/// budget, too.
#[test]
fn a_map_that_spilled_keeps_to_its_memory_where_runs_are_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let mut map = RunMap::default();
    map.spill_into(dir.path(), 1).unwrap();
    let n = 40_000;
    (0..n).for_each(|i| map.set(i * 10, i * 10 + 5, i + 1));
    let mut next = random();
    for seq in n..n + 4000 {
        let start = next(n) * 10;
        map.reserve().unwrap();
        let spot = map.spot(start);
        assert!(map.renew(&spot, start, start + 5, seq));
        assert_eq!(map.overlapping(start, start + 1).next(), Some(WriteRun { start, end: start + 5, seq }));
        assert!(map.leaves.room().resident <= 64 * 4096, "{:?}", map.room());
    }
    assert!(map.room().spilled > 100 * 4096);
}

/// Runs that arrive in ascending order fill their leaves.
#[test]
fn ascending_runs_fill_their_leaves() {
    let mut map = RunMap::default();
    for i in 0..200_000 {
        map.set(i * 10, i * 10 + 5, i + 1);
    }
    let bytes = map.room().resident;
    assert!(bytes < 200_000 * 26, "{bytes}");
}

/// Full nodes are split wherever the next leaf goes: runs in no order, enough of them for several nodes.
#[test]
fn runs_in_any_order_split_full_nodes() {
    let mut map = RunMap::default();
    let n = 1 << 17;
    // A multiple of an odd number goes round all of them.
    for at in (0..n).map(|i: u64| i * 40_503 % n) {
        map.set(at * 2, at * 2 + 1, at + 1);
    }
    assert!(map.nodes.len() > 3, "{} nodes", map.nodes.len());
    let run = |at: u64| WriteRun { start: at * 2, end: at * 2 + 1, seq: at + 1 };
    assert!(map.iter().eq((0..n).map(run)));
    for at in (0..n).step_by(101) {
        assert_eq!(map.overlapping(at * 2, at * 2 + 1).next(), Some(run(at)));
    }
}

/// The same map while leaves come and go where one node ends and the next begins: what is written over many runs takes their leaves out,
/// the first of a node too, and is found from any block of it.
#[test]
fn a_map_of_several_nodes_is_found_from_any_block() {
    let mut map = RunMap::default();
    let n = 1 << 17;
    let mut plain = vec![0u64; 2 * n + 8000];
    for at in (0..n).map(|i| i * 40_503 % n) {
        change(&mut map, &mut plain, at as u64 + 1, (at as u64 * 2, 1, 5));
    }
    let mut next = random();
    for seq in 200_000..201_000 {
        // Around where a node begins, for most.
        let border = map.nodes[next(map.nodes.len() as u64) as usize].firsts[0];
        let at = if next(4) == 0 { next(2 * n as u64) } else { border.saturating_sub(next(600)) };
        let len = [1 + next(5), 1 + next(700)][next(2) as usize];
        change(&mut map, &mut plain, seq, (at, len, next(9) as u8));
        for block in (0..8).map(|_| at.saturating_sub(20) + next(len + 40)) {
            let found = map.overlapping(block, block + 1).next().map_or(0, |r| r.seq);
            assert_eq!(found, plain[block as usize], "block {block} after a change at {at} of {len}");
        }
        if seq % 500 == 499 {
            check(&map, &plain);
        }
    }
    assert!(map.nodes.len() > 2, "{} nodes", map.nodes.len());
}

/// A full disk is an error before a change, and a change made all the same (as recovery does) is kept in memory.
#[test]
fn a_full_disk_is_said_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut map = RunMap::default();
    map.spill_into(dir.path(), 1).unwrap();
    let mut plain = vec![0u64; 400_000];
    let mut next = random();
    for n in 0..60_000 {
        if n == 30_000 {
            map.leaves.disk_is_full();
            assert!(map.reserve().unwrap_err().to_string().contains("spilling the run map into"));
        }
        change(&mut map, &mut plain, n + 1, (next(399_000), 1 + next(3), 5));
    }
    check(&map, &plain);
    assert!(map.leaves.room().resident > 64 * 4096);
}
