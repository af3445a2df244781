//! Power cuts of drives with a volatile write cache of their own, under every layer that survives cuts.

use smrlab_testkit::{Outage, PowerCuts, all_layers, layers};

const DRIVE: &str = "tiny,write_cache=on,cache_size=32KiB,segments=8,command=200us,bus=5";
const SCHEDULERS: [&str; 3] = ["fcfs", "sptf,depth=8", "look,depth=4"];

fn sum(all: &[Outage]) -> Outage {
    all.iter().fold(Outage::default(), |a, b| Outage {
        cuts: a.cuts + b.cuts,
        lost: a.lost + b.lost,
        buffered: a.buffered + b.buffered,
        answered: a.answered + b.answered,
    })
}

#[test]
fn what_flush_and_fua_promised_survives() {
    let mut all = Vec::new();
    let texts = layers().into_iter().flat_map(|entry| entry.durable_texts());
    for (i, layer) in texts.enumerate() {
        let scheduler = SCHEDULERS[i % 3];
        let cuts = PowerCuts {
            drive: DRIVE,
            layer: &layer,
            scheduler,
            requests: 60,
            longest: 24,
            seed: i as u64,
            believes: false,
        };
        let Some(o) = cuts.run() else { continue };
        println!("{layer}, {scheduler}: {o:?}");
        assert_eq!(o.lost, 0, "{layer}, {scheduler}: {o:?}");
        all.push(o);
    }
    let o = sum(&all);
    assert!(
        !all_layers() || all.len() > 12 && o.cuts > 1000 && o.buffered > 100 && o.answered > 10,
        "{} layers, {o:?}",
        all.len()
    );
}

/// A host that takes every acknowledged write for safe loses some of them: the cache is volatile, and the check can fail.
#[test]
fn what_was_only_acknowledged_may_be_lost() {
    for (layer, scheduler) in [("cmr", "fcfs"), ("cmr", "sptf,depth=8"), ("log", "look,depth=4")] {
        let cuts =
            PowerCuts { drive: DRIVE, layer, scheduler, requests: 150, longest: 24, seed: 5, believes: true };
        let o = cuts.run().expect("fits");
        println!("{layer}, {scheduler}: {o:?}");
        assert!(o.lost > 20, "{layer}, {scheduler}: {o:?}");
        let off = PowerCuts { drive: "tiny,cache=off", ..cuts };
        assert_eq!(
            off.run().expect("fits").lost,
            0,
            "{layer}: without a cache what was acknowledged is there"
        );
    }
}
