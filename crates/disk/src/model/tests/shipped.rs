//! The shipped drives against what was published of them.

use super::*;

#[test]
fn every_shipped_drive_is_whole() {
    for entry in DRIVES {
        let d = entry.drive();
        assert_eq!(d.name(), entry.name);
        assert!(!d.spec().summary.is_empty() && d.provenance().len() > 10, "{}", entry.name);
        let silent = d.provenance().iter().find(|p| p.source == super::reader::NOT_STATED);
        assert!(
            silent.is_none(),
            "{}: every number of a shipped drive has its source: {silent:?}",
            entry.name
        );
        d.mechanics(None).unwrap();
        match d.spec().bands.blocks {
            Some(blocks) => d.block_bands(blocks),
            None => d.bands(None),
        }
        .unwrap();
    }
}

/// Sheet 003, 1.1: N = 4, W = 2, 2000 bands, 100 blocks a track, 50 of 100 random-access tracks usable.
#[test]
fn he2014_is_the_papers_example() {
    let b = preset("he2014-example").bands(None).unwrap();
    assert_eq!((b.len(), b.data_blocks()), (2000, Blocks(800_000)));
    assert_eq!(b.random_access().unwrap().usable, 50);
}

/// Sheet 001, 1.2 and common C2: 12 000 regions of 50 000 blocks; 0.8 ms + 4 ms sqrt(d / D) and 120 MB/s.
#[test]
fn cassuto2010_counts_its_size_without_guards() {
    let d = preset("cassuto2010-307gb");
    assert_eq!(d.counted_blocks(), Blocks(600_000_000));
    let b = d.block_bands(Blocks(50_000)).unwrap();
    assert_eq!((b.len(), b.data_blocks()), (12_000, Blocks(600_000_000)));
    assert_eq!(d.block_bands(Blocks(10_000)).unwrap().len(), 60_000);
    assert!(d.block_bands(Blocks(1000)).is_err(), "no room for so many guards");
    let mut m = d.mechanics(None).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Read, Pba(150_000_000), Blocks(8));
    assert_eq!(end.0, 2_800_000 + (4096u64 * 1000).div_ceil(120));
    assert_eq!(d.head_width(), 2, "2000 blocks from any place reach into the next track of 2000");
}

#[test]
fn the_modern_drive_has_its_published_size_and_rates() {
    let d = preset("modern-7200");
    let bytes = d.geometry().blocks().bytes() as f64;
    assert!((bytes / 16.000_900_661e12 - 1.0).abs() < 0.001, "{bytes}");
    let zones: Vec<_> = d.geometry().zones().collect();
    let rate = |sectors: u32| f64::from(sectors) * 512.0 * 120.0 / 1e6;
    assert!((rate(zones[0].sectors) - 261.0).abs() < 0.5);
    // Sequential reads lose only the skews: 16 % at a head switch, 13 % at a next track.
    let mut m = d.mechanics(None).unwrap();
    let n = 4248 * 1000;
    let start = SimTime::from_ms(1000);
    let t = m.service(start, Dir::Read, Pba(0), Blocks(n)).since(start).as_secs_f64();
    let sustained = n as f64 * 512.0 / 1e6 / t;
    assert!((sustained - 261.0 / 1.13).abs() < 2.0, "{sustained} MB/s");
}
