//! Reads in order that a drive's buffer answers are counted many at a time. Verification has each of them done and counted by itself: results
//! are to be the same.

use smrlab_sim::{Control, Spec, run};
use smrlab_units::rng::Rng;
use std::fmt::Write;

/// Mostly reads in order, 20 ms apart; now and then a jump, another length, a write, or some at once.
fn trace(seed: u64, span: u64) -> String {
    let mut rng = Rng::new(seed);
    let (mut text, mut us, mut lba) = (String::new(), 0, 0);
    for _ in 0..30_000 {
        us += [20_000, 20_000, 20_000, rng.below(300)][rng.below(4) as usize];
        if rng.one_in(200) || lba + 16 > span {
            lba = rng.below(span - 16);
        }
        let blocks = if rng.one_in(60) { 1 + rng.below(16) } else { 8 };
        let read = u8::from(!rng.one_in(90));
        let _ = writeln!(text, "{}.{:03} 0 {lba} {blocks} {read}", us / 1000, us % 1000);
        lba += blocks;
    }
    text
}

/// Result and tables of a run, without what says that it was verified.
fn told(trace: &std::path::Path, rest: &str) -> (String, u64) {
    let text = format!("trace = '{}:disksim'\nlayer = 'cmr'\n{rest}", trace.display());
    let spec = Spec::from_toml(&text).unwrap();
    let mut done = run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}"));
    let hits = done.json["buffer"]["read_hits"].as_u64().unwrap();
    let all = done.json.as_object_mut().unwrap();
    ["spec", "verify"].iter().for_each(|key| _ = all.remove(*key));
    (format!("{:#}\n{:#?}", done.json, done.tables), hits)
}

#[test]
fn reads_in_order_are_counted_as_one_by_one() {
    let path = std::env::temp_dir().join(format!("smrlab-in-order-{}.disksim", std::process::id()));
    let [small, large] = ["tiny", "modern-7200"]
        .map(|name| format!("drive = '{name},command=100us,bus=80,cache=on,read_ahead=track'\nwrap = 'capacity'\nmechanics = 'full'"));
    let cases = [
        (&small, 900, ""),
        (&small, 900, "stall = '0.1ms'\nwindow = '1s'"),
        (&large, 400_000, "prefill = '1%'"),
        (&large, 400_000, "adjusted_blocks = 5\nwindow = '10s'"),
        (&large, 400_000, "arrivals = 'pauses'"),
    ];
    for (seed, (drive, span, rest)) in (1..).zip(cases) {
        std::fs::write(&path, trace(seed, span)).unwrap();
        let text = format!("{drive}\n{rest}");
        let (one_by_one, hits) = told(&path, &format!("{text}\nverify_media = true"));
        let in_rows = told(&path, &text).0;
        assert!(hits > 5000, "{text}: {hits}");
        let differ = one_by_one.lines().zip(in_rows.lines()).find(|(one, other)| one != other);
        assert!(one_by_one == in_rows, "{text}: {differ:?}");
    }
    std::fs::remove_file(&path).unwrap();
}
