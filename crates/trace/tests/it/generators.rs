//! Generators keep to their parameters, and to their bits.

use smrlab_trace::generators::GENERATORS;
use smrlab_trace::{Batch, OpenContext, open, read_all};
use smrlab_units::{Blocks, HostOp};

fn all(item: &str) -> Batch {
    let context = OpenContext { capacity: Some(Blocks(1_000_000)), seed: 7, ..OpenContext::default() };
    read_all(&mut open(&format!("synth:{item}"), &context).unwrap()).unwrap()
}

fn mean(x: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = x.fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
    sum / n
}

#[test]
fn every_generator_stays_in_its_span_and_repeats_its_bits() {
    for g in GENERATORS {
        let item = format!("{},requests=20000,span=50%", g.name);
        let a = all(&item);
        assert!(a == all(&item), "{}", g.name);
        assert!(a.len() <= 20_000 && (a.len() > 10_000 || g.name == "phases"), "{}", g.name);
        assert!(a.iter().all(|r| r.end().0 <= 500_000 && r.blocks > 0), "{}", g.name);
        assert_eq!(a.arrival[0].0, 0);
        assert!(a.arrival.windows(2).all(|w| w[0] <= w[1]), "{}", g.name);
        if g.name != "sequential" && g.name != "backup" {
            assert!(a != all(&format!("{item},seed=8")), "{}: the seed does not matter", g.name);
        }
    }
}

/// Recorded once: a change means that results of old seeds change.
#[test]
fn the_bits_of_a_seed_are_the_same_on_every_machine() {
    let a = all("zipf,requests=1000,interarrival=exp(10ms),size=exp(4KiB),align=1blk");
    let sum = a.iter().fold(0u64, |h, r| {
        (h ^ r.arrival.0 ^ r.lba.0 << 20 ^ u64::from(r.blocks))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(17)
    });
    assert_eq!(sum, 0x98a5_05a0_4915_c796, "digest");
}

#[test]
fn uniform_has_the_asked_share_of_writes_and_covers_the_span() {
    let a = all("uniform,requests=50000,write=70%");
    let writes = mean(a.op.iter().map(|o| f64::from(u8::from(*o == HostOp::Write))));
    assert!((writes - 0.7).abs() < 0.01, "{writes}");
    assert!((mean(a.lba.iter().map(|l| l.0 as f64)) / 500_000.0 - 1.0).abs() < 0.01);
    assert!(a.lba.iter().all(|l| l.0 % 8 == 0));
    assert_eq!(a.arrival[1].0, 20_000_000);
}

/// He & Du 2014, evaluation: SYN is sequential, 8 blocks in the mean, Normal(50 ms, 10 ms), and updates nothing.
#[test]
fn backup_is_the_syn_of_he_and_du() {
    let a = all("backup");
    assert_eq!(a.blocks.iter().map(|n| u64::from(*n)).sum::<u64>(), 1_000_000, "fills the drive once");
    assert!(a.iter().zip(a.iter().skip(1)).all(|(x, y)| x.end() == y.lba && x.op == HostOp::Write));
    assert!((mean(a.blocks.iter().map(|n| f64::from(*n))) - 8.0).abs() < 0.1);
    let gaps: Vec<f64> = a.arrival.windows(2).map(|w| (w[1].0 - w[0].0) as f64 / 1e6).collect();
    let m = mean(gaps.iter().copied());
    let deviation = mean(gaps.iter().map(|g| (g - m).powi(2))).sqrt();
    assert!((m - 50.0).abs() < 0.2 && (deviation - 10.0).abs() < 0.2, "{m} {deviation}");
}

#[test]
fn hotcold_sends_its_share_to_the_hot_part() {
    let a = all("hotcold,requests=50000,hot=10%,share=90%");
    let hot = mean(a.lba.iter().map(|l| f64::from(u8::from(l.0 < 100_000))));
    assert!((hot - 0.9).abs() < 0.01, "{hot}");
}

#[test]
fn idle_gaps_are_idle() {
    let a = all("idle-gaps,requests=3000,busy=10s,idle=30s");
    let gaps: Vec<u64> = a.arrival.windows(2).map(|w| w[1].0 - w[0].0).collect();
    assert!(gaps.iter().filter(|g| **g >= 30_000_000_000).count() >= 2);
    assert!(gaps.iter().all(|g| *g == 10_000_000 || *g == 30_010_000_000));
}

#[test]
fn locality_is_where_it_is_said_to_be() {
    let near = all("local-space,requests=20000,near=1MiB");
    let jumps = near.lba.windows(2).filter(|w| w[0].0.abs_diff(w[1].0) > 2048).count();
    assert!((40..200).contains(&jumps), "{jumps}");
    let again = all("local-time,requests=20000,reuse=80%,memory=100");
    let repeats = (100..again.len()).filter(|i| again.lba[i - 100..*i].contains(&again.lba[*i])).count();
    assert!((15_000..17_500).contains(&repeats), "{repeats}");
}

/// In a span so large that no place is drawn twice: what is repeated was last used so many requests ago at most, and that far back now and then.
#[test]
fn an_address_is_remembered_as_long_as_it_is_said_to_be() {
    for memory in [1, 2, 7] {
        let item = format!("synth:local-time,requests=5000,reuse=60%,memory={memory}");
        let context = OpenContext { capacity: Some(Blocks(1 << 45)), seed: 7, ..OpenContext::default() };
        let a = read_all(&mut open(&item, &context).unwrap()).unwrap();
        let back = (1..a.len()).filter_map(|i| a.lba[..i].iter().rev().position(|lba| *lba == a.lba[i]));
        assert_eq!(back.max(), Some(memory - 1), "{memory}");
    }
}

#[test]
fn wrong_parameters_name_the_remedy() {
    let fails = |item: &str, needle: &str| {
        let e = open(item, &OpenContext::default()).err().unwrap().to_string();
        assert!(e.contains(needle), "{item}: {e}");
    };
    fails("synth:unifrom", "did you mean 'uniform'");
    fails("synth:uniform,sapn=1GB", "did you mean 'span'");
    fails("synth:uniform,span=50%", "capacity");
    fails("synth:uniform", "capacity");
    fails("synth:uniform,span=1GB,interarrival=often", "exp(10ms)");
    fails("synth:uniform,span=1GB,size=0", "4KiB");
    fails("synth:mix,span=1GB,of=mix:1", "mixed");
    fails("synth:hotcold,span=4KiB", "hot");
}

/// The last place of a span and the longest of the sizes come as often as the others.
#[test]
fn every_place_and_every_length_is_drawn() {
    let a = all("uniform,requests=20000,span=64KiB,size=uniform(4KiB;8KiB),align=4KiB");
    let lengths: std::collections::BTreeSet<u32> = a.blocks.iter().copied().collect();
    assert_eq!(lengths, (8..=16).collect(), "both ends of the range");
    for g in
        ["uniform", "hotcold", "zipf", "local-space", "local-time", "bursty", "idle-gaps", "back-to-back"]
    {
        let a = all(&format!("{g},requests=20000,span=64KiB,size=4KiB"));
        assert!(a.lba.iter().all(|l| l.0.is_multiple_of(8)), "{g}: aligned to 4 KiB");
        let places: std::collections::BTreeSet<u64> = a.lba.iter().map(|l| l.0 / 8).collect();
        assert_eq!(places, (0..16).collect(), "{g}: all 16 places, the last included");
    }
    let a = all("uniform,requests=160000,span=64KiB,size=4KiB");
    let last = a.lba.iter().filter(|l| l.0 == 15 * 8).count();
    assert!((9_500..10_500).contains(&last), "{last} of 160000 requests at the last of 16 places");
}

/// Requests are cut off at the end of the span, and not before it.
#[test]
fn requests_end_with_the_span() {
    for g in [
        "uniform",
        "hotcold",
        "zipf",
        "local-space",
        "local-time",
        "bursty",
        "idle-gaps",
        "back-to-back",
        "sequential",
    ] {
        let a = all(&format!("{g},requests=5000,span=64KiB,size=uniform(4KiB;48KiB),align=4KiB"));
        assert_eq!(a.iter().map(|r| r.end().0).max(), Some(128), "{g}");
    }
}

/// Where the alignment is larger than the span there is one place, its beginning; parts of the span are no larger than it.
#[test]
fn an_alignment_beyond_the_span_leaves_one_place() {
    for g in GENERATORS.iter().filter(|g| !["zoned", "kv-store"].contains(&g.name)) {
        let item = format!("synth:{},requests=100,span=1000blk,align=1GiB", g.name);
        let context = OpenContext { capacity: Some(Blocks(1_000_000)), seed: 7, ..OpenContext::default() };
        let Ok(mut source) = open(&item, &context) else { continue };
        let a = read_all(&mut source).unwrap();
        assert!(a.iter().all(|r| r.end().0 <= 1000), "{}", g.name);
        if ["uniform", "hotcold", "zipf", "local-space", "local-time", "bursty"].contains(&g.name) {
            assert!(a.len() == 100 && a.iter().all(|r| r.lba.0 == 0), "{}", g.name);
        }
    }
}

/// With no argument as with any: what is not said is the phase's own.
#[test]
fn a_phase_without_arguments_has_its_defaults() {
    for (short, long) in [
        ("fill", "fill(once=on,size=1MiB,write=100%,interarrival=20ms)"),
        ("burst", "burst(write=100%,interarrival=1ms)"),
        ("probe", "probe(write=0%,interarrival=100ms)"),
        ("burst(9)", "uniform(requests=9,write=100%,interarrival=1ms)"),
        ("probe(9,size=8KiB)", "uniform(9,size=8KiB,write=0%,interarrival=100ms)"),
        ("fill(5%)", "sequential(span=5%,once=on,size=1MiB,write=100%,interarrival=20ms,requests=1000000)"),
        ("zipf(9)", "zipf(requests=9)"),
    ] {
        let [short, long] = [short, long].map(|of| all(&format!("phases,span=400MiB,of={of}")));
        assert!(short == long && !short.is_empty(), "{short:?}");
    }
}

#[test]
fn phases_follow_each_other() {
    let of = "fill(25%,size=64KiB);idle(10s);burst(20,size=8KiB);idle(1min);probe(5);zipf(7,write=0%,interarrival=normal(5ms;1ms))";
    let a = all(&format!("phases,span=4MiB,of={of}"));
    assert_eq!(a.len(), 16 + 20 + 5 + 7);
    let part = |from: usize, to: usize| a.iter().skip(from).take(to - from).collect::<Vec<_>>();
    let fill = part(0, 16);
    assert!(fill.iter().enumerate().all(|(i, r)| r.lba.0 == i as u64 * 128 && r.op == HostOp::Write));
    assert_eq!(fill[15].end().0, 2048, "a quarter of the span");
    let burst = part(16, 36);
    assert!(burst.iter().all(|r| r.blocks == 16 && r.op == HostOp::Write));
    assert_eq!(burst[0].arrival.0 - fill[15].arrival.0, 10_001_000_000, "the pause and the burst's own gap");
    assert_eq!(burst[19].arrival.0 - burst[0].arrival.0, 19_000_000);
    let probe = part(36, 41);
    assert!(probe.iter().all(|r| r.op == HostOp::Read));
    assert_eq!(probe[0].arrival.0 - burst[19].arrival.0, 60_100_000_000);
    let twice = all(&format!("phases,span=4MiB,repeat=2,of={of}"));
    assert_eq!(twice.len(), 96);
    assert!(twice.iter().take(48).eq(a.iter()), "the first time is as without repetition");
    assert!(twice.lba[48 + 16..48 + 36] != a.lba[16..36], "other places the second time");
    let led = all("phases,span=4MiB,of=idle(3s);idle(2s);probe(2);idle(1s);probe(1)");
    let arrivals: Vec<u64> = led.iter().map(|r| r.arrival.0 / 1_000_000).collect();
    assert_eq!(arrivals, [5000, 5100, 6200], "the pause before the first request is kept");
    for (of, needle) in [
        ("idle(5)", "a time"),
        ("idle(5s)", "no phase has requests"),
        ("dance(5)", "is no phase"),
        ("burst(5,sise=4KiB)", "did you mean 'size'"),
        ("burst(5", "closing"),
        ("phases(5)", "is no phase"),
    ] {
        let e = open(&format!("synth:phases,span=1GB,of={of}"), &OpenContext::default())
            .err()
            .unwrap()
            .to_string();
        assert!(e.contains(needle), "{of}: {e}");
    }
}

/// Luo et al., Table II: request count in millions, unique GB, mean read and write in bytes, shares of writes and updates.
#[test]
fn the_streams_of_the_dvs_study_fit_its_table() {
    for (name, unique, read, write, writes, updates) in [
        ("usr0", 2.41 / 2.0, 41848.0, 10559.0, 0.6, 0.992),
        ("web0", 7.26 / 2.0, 30778.0, 8828.0, 0.6975, 0.992),
        ("prxy0", 0.34 / 2.0, 6296.0, 2444.0, 0.9653, 0.991),
        ("mds0", 3.09 / 1.211, 24278.0, 7411.0, 0.8811, 0.989),
        ("financial1", 0.45 / 2.0, 2569.0, 4082.0, 0.7845, 0.975),
        ("financial2", 0.33 / 2.0, 2228.0, 3033.0, 0.1764, 0.981),
    ] {
        let context = OpenContext { capacity: Some(Blocks(1 << 40)), seed: 7, ..OpenContext::default() };
        let item = format!("synth:dvs-raid,stream={name},requests=200_000");
        let a = read_all(&mut open(&item, &context).unwrap()).unwrap();
        let bytes = |op| mean(a.iter().filter(|r| r.op == op).map(|r| f64::from(r.blocks) * 512.0));
        let near = |what: &str, got: f64, want: f64, by: f64| {
            assert!((got / want - 1.0).abs() < by, "{name}: {what} {got}, not {want}");
        };
        near("read", bytes(HostOp::Read), read, 0.06);
        near("write", bytes(HostOp::Write), write, 0.06);
        near("writes", mean(a.op.iter().map(|o| f64::from(u8::from(*o == HostOp::Write)))), writes, 0.05);
        let (mut used, mut written, mut updated, mut all) =
            (std::collections::BTreeSet::new(), std::collections::BTreeSet::new(), 0.0, 0.0);
        for r in a.iter() {
            // Blocks of 4 KiB, so that the sets stay small.
            let span = r.lba.0 / 8..r.end().0.div_ceil(8);
            if r.op == HostOp::Write {
                all += 1.0;
                updated += f64::from(u8::from(span.clone().any(|b| written.contains(&b))));
                written.extend(span.clone());
            }
            used.extend(span);
        }
        near("unique", used.len() as f64 * 4096.0, unique * 1e8 * 2.0, 0.15);
        assert!((updated / all - updates).abs() < 0.012, "{name}: updates {}, not {updates}", updated / all);
    }
}

/// What the table does not say can be set: all of the data written, and runs that begin all over it instead of four of five
/// in the first fifth (then 84 % of them: what begins all over it begins there too).
#[test]
fn the_streams_of_the_dvs_study_write_where_they_are_told_to() {
    let begun = |more: &str| {
        let trace = all(&format!("dvs-raid,stream=prxy0,requests=20000,unique=100000blk{more}"));
        let writes: Vec<u64> = trace.iter().filter(|r| r.op == HostOp::Write).map(|r| r.lba.0).collect();
        let most = writes.iter().max().copied().unwrap();
        (most, mean(writes.iter().map(|lba| f64::from(u8::from(lba * 5 < most)))))
    };
    let (first_writes, hot) = begun("");
    assert!((11_000..13_000).contains(&first_writes) && (hot - 0.84).abs() < 0.02, "{first_writes} {hot}");
    let (all, hot) = begun(",written=100%,hot=0");
    assert!((99_000..100_000).contains(&all) && (hot - 0.2).abs() < 0.02, "{all} {hot}");
}

/// What is not written is read in sixteen lanes as long as each other, each on from where it was read to, and again from its beginning when it
/// is through; also where only one block is written.
#[test]
fn the_streams_of_the_dvs_study_read_each_lane_in_order() {
    for (written, begin) in [("0", 1), ("40%", 51_200)] {
        let lane = (128_001 - begin) / 16;
        let of = format!("dvs-raid,stream=web0,requests=6000,unique=128001blk,written={written}");
        let mut next: Vec<u64> = (0..16).map(|i| begin + i * lane).collect();
        let (mut through, mut seen) = (0, [0; 16]);
        for r in all(&of).iter().filter(|r| r.lba.0 >= begin) {
            let i = (r.lba.0 - begin) / lane;
            let (first, at) = (begin + i * lane, next[i as usize]);
            through += usize::from(at == first + lane);
            let expected = if at < first + lane { at } else { first };
            assert_eq!((r.op, r.lba.0), (HostOp::Read, expected), "{of}: lane {i}");
            assert!(r.end().0 <= first + lane, "{of}: lane {i}");
            (next[i as usize], seen[i as usize]) = (r.end().0, seen[i as usize] + 1);
        }
        assert!(through > 0 && !seen.contains(&0), "{of}: {through} {seen:?}");
    }
}

/// Nothing at the ends is left out: the first and the last place, the shortest and the longest request.
#[test]
fn every_place_and_every_size_of_the_ranges_is_drawn() {
    for name in ["uniform", "back-to-back", "idle-gaps", "bursty"] {
        let places = all(&format!("{name},requests=3000,size=4blk,align=4blk,span=64blk"));
        let seen: std::collections::BTreeSet<u64> = places.lba.iter().map(|l| l.0).collect();
        assert_eq!(
            seen.into_iter().collect::<Vec<_>>(),
            (0..16).map(|i| 4 * i).collect::<Vec<_>>(),
            "{name}"
        );
        let sizes = all(&format!("{name},requests=3000,size=uniform(3blk;9blk),align=1blk,span=1000blk"));
        let seen: std::collections::BTreeSet<u32> = sizes.blocks.iter().copied().collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (3..=9).collect::<Vec<_>>(), "{name}");
    }
}

/// The share of the writes, whatever else is drawn: requests are the same with any share of FUA.
#[test]
fn a_share_of_the_writes_is_fua() {
    for g in GENERATORS {
        let item = if g.name == "phases" { "phases,of=burst(10000)" } else { g.name };
        let item = format!("{item},requests=10000");
        let (none, all_of_them, mut some) =
            (all(&item), all(&format!("{item},fua=100%")), all(&format!("{item},fua=30%")));
        if g.name == "phases" {
            some = all("phases,of=burst(10000,fua=30%)");
        }
        let writes = none.op.iter().filter(|op| **op == HostOp::Write).count() as f64;
        let fua = some.iter().filter(|r| r.fua).count() as f64;
        assert!(!none.fua.contains(&true), "{}", g.name);
        assert!(some.iter().all(|r| !r.fua || r.op == HostOp::Write), "{}", g.name);
        assert!((fua / writes - 0.3).abs() < 0.02, "{}: {fua} of {writes}", g.name);
        if g.name != "phases" {
            assert!(all_of_them.iter().all(|r| r.fua == (r.op == HostOp::Write)), "{}", g.name);
        }
        some.fua.fill(false);
        assert!(some == none, "{}: the share of FUA changes requests", g.name);
    }
}

/// A span holds the smallest request at least; sizes go from small to large.
#[test]
fn sizes_and_spans_that_do_not_fit_are_refused() {
    let opens =
        |item: &str| open(&format!("synth:uniform,requests=10,{item}"), &OpenContext::default()).is_ok();
    assert!(opens("size=uniform(1blk;100blk),span=50blk,align=1blk"));
    assert!(!opens("size=uniform(60blk;100blk),span=50blk,align=1blk"));
    assert!(opens("size=uniform(8blk;8blk),span=50blk") && !opens("size=uniform(8blk;4blk),span=50blk"));
}

/// The same puts and gets: SMRDB writes tables of its size in order, each place once between resets, and reads only what it wrote.
#[test]
fn smrdb_keeps_the_rules_of_zones() {
    let table = 1024;
    let a = all("kv-store,records=30000,value=1KiB,table=512KiB,reset=on,operations=60000");
    let mut pointers = std::collections::BTreeMap::<u64, u64>::new();
    let mut resets = 0;
    for r in a.iter() {
        let (zone, at) = (r.lba.0 / table, r.lba.0 % table);
        let pointer = pointers.entry(zone).or_default();
        match r.op {
            HostOp::Write => {
                assert_eq!(at, *pointer, "zone {zone}");
                *pointer += u64::from(r.blocks);
                assert!(*pointer <= table);
            }
            HostOp::Read => assert!(at + u64::from(r.blocks) <= *pointer, "read of what was not written"),
            _ => {
                assert_eq!((at, u64::from(r.blocks)), (0, table));
                (*pointer, resets) = (0, resets + 1);
            }
        }
    }
    assert!(resets > 100, "{resets} resets");
}

/// Of the same operations: a get reads one place at most, LevelDB writes more often and shorter than SMRDB, and only the B-tree goes back to
/// where it was without having freed it.
#[test]
fn stores_differ_in_what_they_make_of_the_same_operations() {
    let of = |store: &str, rest: &str| all(&format!("kv-store,store={store},records=40000,value=1KiB{rest}"));
    let sum =
        |a: &Batch, op: HostOp| -> u64 { a.iter().filter(|r| r.op == op).map(|r| u64::from(r.blocks)).sum() };
    let [smrdb, leveldb, btree] = ["smrdb", "leveldb", "btree"].map(|s| of(s, ",write=100%,theta=0"));
    // 80 000 puts of two blocks: each store logs them, and writes each key at least once more.
    for (a, name) in [(&smrdb, "smrdb"), (&leveldb, "leveldb"), (&btree, "btree")] {
        assert!(sum(a, HostOp::Write) > 2 * 80_000 + 2 * 39_000, "{name}");
    }
    let longest = |a: &Batch| a.iter().map(|r| r.blocks).max();
    assert_eq!((longest(&smrdb), longest(&btree)), (Some(2048), Some(128)));
    let random =
        mean(btree.iter().filter(|r| r.op == HostOp::Write).map(|r| f64::from(u8::from(r.blocks == 8))));
    assert!(random > 0.9, "{random} of the B-tree's writes are pages");
    // Ten pairs of a key of 16 bytes and 1 KiB are a page of the B-tree's: what is read is a page that was written, and most are in memory.
    let read = of("btree", ",write=50%,operations=20000");
    let pages: std::collections::BTreeSet<u64> =
        read.iter().filter(|r| r.op == HostOp::Write && r.blocks == 8).map(|r| r.lba.0).collect();
    let reads: Vec<u64> = read.iter().filter(|r| r.op == HostOp::Read).map(|r| r.lba.0).collect();
    assert!(reads.len() > 5000 && reads.iter().all(|lba| pages.contains(lba)), "{} reads", reads.len());
    let gets = of("smrdb", ",write=0%,operations=5000");
    let loaded = of("smrdb", ",operations=0").len();
    assert!(gets.len() - loaded <= 5000 && gets.len() > loaded + 3000, "{} behind {loaded}", gets.len());
    // Keys and kinds do not depend on the store: the same share of gets is answered by the same keys.
    assert!(gets.iter().skip(loaded).all(|r| r.op == HostOp::Read && r.blocks <= 8));
}
