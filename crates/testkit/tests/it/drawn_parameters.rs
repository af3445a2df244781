//! Layers with parameters that are drawn from their own tables: sets of them that nobody wrote down, after restarts and power cuts.

use smrlab_stl::{LayerEntry, Metadata};
use smrlab_testkit::{
    Cuts, Harness, Outage, PowerCuts, Rng, Volatile, Workload, all_layers, cases, drawn, drives, layers,
    random,
};

/// What is asked of layers in `a_layer_that_recovers_goes_on_as_if_nothing_had_been`, with bytes that are read back, of sets
/// of parameters that are refused less often than not. Two faults of restarts were found so that no text of the registry shows.
#[test]
fn layers_with_drawn_parameters_go_on_after_a_restart() {
    let mut rng = random(31);
    let (mut others, mut fits) = (Vec::new(), 0);
    let layers: Vec<&LayerEntry> = layers().into_iter().filter(|e| e.capabilities.keeps_data).collect();
    for entry in &layers {
        for _ in 0..cases(24) {
            let text = drawn::layer(entry, &mut rng);
            let (name, drive) = &drives::drawn(&mut rng);
            let longest = [9, 40, 100, 300][rng.below(4) as usize];
            let seed = rng.below(1 << 32);
            let [straight, checkpoint, records] = [None, Some(true), Some(false)].map(|restart| {
                let mut h = Harness::new(&text, drive, Metadata::Nv).ok()?;
                h.exercise(Workload { requests: 500, seed, longest });
                if let Some(from_checkpoint) = restart {
                    h.restart(from_checkpoint);
                }
                h.exercise(Workload { requests: 300, seed: seed + 1, longest });
                Some(h.digest())
            });
            fits += usize::from(straight.is_some());
            let case = format!("{text} on {name}, requests of up to {longest}, seed {seed}");
            if straight != checkpoint {
                others.push(format!("{case}, from a checkpoint"));
            }
            if straight != records {
                others.push(format!("{case}, from its records"));
            }
        }
    }
    assert!(others.is_empty(), "go on otherwise: {others:#?}");
    assert!(fits >= 2 * layers.len(), "only {fits} sets of parameters fit");
}

/// Draws layers that survive power cuts, on drives of the kit, until so many of each fit or did not.
fn each_durable(written: u64, many: u64, mut look: impl FnMut(&str, &mut Harness, &mut Rng)) {
    let (mut rng, mut fits) = (random(written), 0);
    let layers: Vec<&LayerEntry> = layers().into_iter().filter(|e| e.capabilities.survives_cut).collect();
    for entry in &layers {
        for _ in 0..many {
            let text = drawn::durable_layer(entry, &mut rng);
            let (name, drive) = &drives::drawn(&mut rng);
            let metadata = if rng.one_in(4) { Metadata::Media } else { Metadata::Nv };
            let seed = rng.bits();
            let Ok(mut h) = Harness::new(&text, drive, metadata) else { continue };
            // What a failure is shown with.
            println!("{text} on {name}, metadata {metadata:?}, seed {seed}");
            fits += 1;
            look(&text, &mut h, &mut Rng::new(seed));
        }
    }
    assert!(fits >= layers.len(), "only {fits} sets of parameters fit");
}

/// A request's length at most.
fn longest(rng: &mut Rng) -> u64 {
    [9, 40, 100][rng.below(3) as usize]
}

#[test]
fn layers_with_drawn_parameters_survive_cuts_at_every_operation() {
    each_durable(32, cases(16), |text, h, rng| {
        let losses = Cuts { requests: 12 + rng.below(30), longest: longest(rng), seed: rng.bits() }.run(h);
        assert_eq!((losses.lost, losses.mixed), (0, 0), "{text}: {losses:?}");
    });
}

#[test]
fn layers_with_drawn_parameters_survive_the_loss_of_what_no_fence_keeps() {
    each_durable(33, cases(16), |text, h, rng| {
        let every = 1 + rng.below(20);
        let requests = 20 * (1 + every / 2);
        let load = Volatile { requests, longest: longest(rng), seed: rng.bits(), every, fences: true };
        let outcome = load.run(h);
        assert_eq!(outcome.lost, 0, "{text}: {outcome:?}");
    });
}

/// Behind a write cache of the drive's, with a scheduler that is drawn.
#[test]
fn layers_with_drawn_parameters_keep_what_a_flush_promised() {
    let mut rng = random(34);
    let (mut fits, mut sum) = (0, Outage::default());
    let layers: Vec<&LayerEntry> = layers().into_iter().filter(|e| e.capabilities.survives_cut).collect();
    for entry in &layers {
        for _ in 0..cases(16) {
            let layer = drawn::durable_layer(entry, &mut rng);
            let size = ["2blk", "4KiB", "32KiB"][rng.below(3) as usize];
            let drive = format!(
                "tiny,write_cache=on,cache_size={size},segments={},command=200us,bus=5",
                1 + rng.below(8)
            );
            let scheduler =
                ["fcfs", "sptf,depth=8", "look,depth=4", "sstf", "c-look,depth=3"][rng.below(5) as usize];
            let (requests, longest, seed) = (20 + rng.below(60), longest(&mut rng), rng.bits());
            println!("{layer} on {drive}, {scheduler}, {requests} requests of up to {longest}, seed {seed}");
            let cuts = PowerCuts {
                drive: &drive,
                layer: &layer,
                scheduler,
                requests,
                longest,
                seed,
                believes: false,
            };
            let Some(outage) = cuts.run() else { continue };
            assert_eq!(outage.lost, 0, "{outage:?}");
            fits += 1;
            (sum.cuts, sum.buffered) = (sum.cuts + outage.cuts, sum.buffered + outage.buffered);
        }
    }
    let often = !all_layers() || sum.cuts > 500 && sum.buffered > 50;
    assert!(fits >= layers.len() && often, "{fits} fit, {sum:?}");
}
