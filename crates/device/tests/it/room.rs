//! What a served device makes for itself: who may see it, and what its maps take.

use crate::served::scratch;
use smrlab_device::config::StoreKind;
use smrlab_device::{Config, Device};
use std::path::Path;
use std::sync::Arc;

fn config(layer: &str, map_budget: u64, store: StoreKind) -> Config {
    Config { map_budget, size: Some(64 << 20), ..Config::new("t", "modern-7200", layer, store) }
}

fn at(dir: &Path) -> StoreKind {
    StoreKind::Directory(dir.join("store"))
}

/// Nobody else reads a disk's data, nor tells its server what to do.
#[test]
fn what_a_server_makes_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch();
    let device = Device::open(config("raw,tracks=1", 16 << 10, at(dir.path()))).unwrap();
    smrlab_device::control::listen(device.clone(), &dir.path().join("control"), Arc::new(|_, _| None))
        .unwrap();
    device.write(0, &[1; 512], false).unwrap();
    device.close().unwrap();
    let (mut folders, mut seen) = (vec![dir.path().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            let wanted = if kind.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "{}: {mode:o}", entry.path().display());
            seen.push(entry.file_name().into_string().unwrap());
            folders.extend(kind.is_dir().then(|| entry.path()));
        }
    }
    for wanted in ["control", "store", "log.1", "checkpoint.1"] {
        assert!(seen.iter().any(|name| name == wanted), "{wanted} in {seen:?}");
    }
}

/// A map that is too large for memory: what is there and what is in a file are counted apart. The first is within the budget, but for the
/// pieces of 64 KiB in which memory is taken.
#[test]
fn a_map_is_within_its_budget_and_the_rest_is_told_apart() {
    const RUNS: u64 = 30_000;
    // A run is three words.
    const BYTES: u64 = RUNS * 24;
    let (dir, map_budget) = (scratch(), 256 << 10);
    for (store, in_file) in [(at(dir.path()), true), (StoreKind::Memory, false)] {
        let device = Device::open(config("raw,tracks=1", map_budget, store)).unwrap();
        (0..RUNS).for_each(|i| device.write(i * 1024, &[1; 512], false).unwrap());
        let medium = device.stats()["medium"].clone();
        let of = |name: &str| medium[name].as_u64().unwrap_or_default();
        let (resident, spilled) = (of("map_bytes"), of("map_spilled_bytes"));
        assert_eq!(
            (of("runs"), of("map_budget_bytes")),
            (RUNS, if in_file { map_budget } else { 0 }),
            "{medium}"
        );
        if in_file {
            assert!(resident < map_budget + (64 << 10) && spilled > BYTES - resident, "{medium}");
        } else {
            assert!(resident > BYTES && spilled == 0, "{medium}");
        }
    }
}
