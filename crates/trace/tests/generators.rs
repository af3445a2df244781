//! Generators keep to their parameters, and to their bits.

use smrlab_trace::generators::GENERATORS;
use smrlab_trace::{Batch, OpenContext, open, read_all};
use smrlab_units::{Blocks, HostOp};

fn all(item: &str) -> Batch {
    let context = OpenContext { capacity: Some(Blocks(1_000_000)), seed: 7, skip_bad: 0 };
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
        assert!(a.len() <= 20_000 && a.len() > 10_000, "{}", g.name);
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
    assert_eq!(a.arrival[1].0, 10_000_000);
}

/// Sheet 003, section 2: SYN is sequential, 8 blocks in the mean, Normal(50 ms, 10 ms), and updates nothing.
#[test]
fn backup_is_paper_003s_syn() {
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
