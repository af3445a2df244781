//! The fuzz targets `device` and `store` on random bytes and on their corpus, so that every test run covers them.
// The fuzz targets, a crate of their own, use the same files.
#![allow(unreachable_pub)]

#[path = "../../../../fuzz/src/bytes.rs"]
mod bytes;
#[path = "../../../../fuzz/src/device.rs"]
mod device;
#[path = "../../../../fuzz/src/store.rs"]
mod store;

use proptest::prelude::*;
use std::path::Path;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let seeds = std::fs::read_dir(&dir).unwrap().map(|e| std::fs::read(e.unwrap().path()).unwrap());
    let seeds: Vec<_> = seeds.collect();
    assert!(seeds.len() >= 3, "{} has too few seeds", dir.display());
    seeds
}

#[test]
fn the_corpus_of_both_targets() {
    corpus("device").iter().for_each(|seed| device::run(seed));
    corpus("store").iter().for_each(|seed| store::run(seed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_calls_in_any_order(bytes in prop::collection::vec(any::<u8>(), 2..900)) {
        device::run(&bytes);
    }

    #[test]
    fn any_damage_to_a_store(bytes in prop::collection::vec(any::<u8>(), 1..60)) {
        store::run(&bytes);
    }
}
