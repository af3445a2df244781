//! The golden table: a small mixed trace on three layers, of which every figure of the result, every row of the timeline
//! and every row of the logs is worked out again here, from the trace and the two logs alone.

mod figures;
mod layers;
mod spent;

use crate::support::{Done, go, go_from};
use figures::*;
use layers::{bands, cleaning, war};
use smrlab_stl::LAYERS as ALL;
use spent::spent;
use std::collections::BTreeSet;

/// What other tests look at: sums of these are worked out here, or they are not results.
const ELSEWHERE: [&str; 9] = [
    "/schema",
    "/spec",
    "/provenance",
    "/cleaning/by_kind",
    "/cleaning_given_up",
    "/cleaning/clean_again_s",
    "/cache",
    "/movement/band_switches",
    "/space/map_bytes_peak",
];

const LAYERS: [&str; 3] = ["rmw", "static-1234", "disk-cache,band=24blk,cache=10%,idle=5ms"];

/// What holds for every layer.
fn everywhere(d: &Done) {
    counts(d);
    refusals(d);
    costs(d);
    times(d);
    rates(d);
    if !d.pauses {
        movement(d);
        spent(d);
    }
    kinds_of_cleaning(d);
    timeline(d);
    histogram(d);
    cache(d);
}

#[test]
fn every_figure_is_what_it_is_by_hand() {
    for layer in LAYERS {
        let d = go(layer, 1000, "window = '250ms'");
        logs(&d);
        everywhere(&d);
        war(layer, &d);
        bands(layer, &d);
        cleaning(layer, &d);
        let host = d.get("/space/host_blocks");
        d.is("/space/efficiency", host / 2880.0);
        d.is("/space/gain", 2.0 * host / 2880.0);
        let unseen =
            d.unseen().into_iter().filter(|path| !ELSEWHERE.iter().any(|known| path.starts_with(known)));
        assert_eq!(
            unseen.collect::<Vec<_>>(),
            Vec::<String>::new(),
            "{layer}: figures that nobody works out"
        );
    }
}

/// The identities hold for every layer with every option of its tests.
#[test]
fn figures_agree_with_the_logs_on_every_layer() {
    let mut refused = BTreeSet::new();
    for (name, text) in ALL.iter().flat_map(|e| e.texts().into_iter().map(|text| (e.name, text))) {
        println!("{text}");
        let d = go(&text, 300, "window = '250ms'");
        everywhere(&d);
        refused.extend(d.requests.iter().any(|r| !r.refusal.is_empty()).then_some(name));
        // Windows that double, and the other rule for units.
        everywhere(&go(&text, 300, "prefill = '100%'\nstall = '30ms'\nadjusted_rule = 'floor+1'"));
    }
    assert_eq!(refused, BTreeSet::from(["caveat-scriptor", "zoned"]));
}

/// The first request comes in the middle of what the drive does in a pause: the part before it is in no window.
#[test]
fn work_before_the_first_request_is_told_to_the_nanosecond() {
    let mut in_the_middle = 0;
    for from in (0..20).map(|i| i * 3_700_000) {
        let d = go_from(
            from,
            "disk-cache,band=24blk,cache=10%,idle=5ms",
            500,
            "prefill = '100%,order=random'\nwindow = '250ms'",
        );
        everywhere(&d);
        let first = d.first_arrival();
        in_the_middle += usize::from(d.media.iter().any(|o| o.start < first && first < o.end));
    }
    assert!(in_the_middle > 2, "the first request came between two operations in all but {in_the_middle}");
}
