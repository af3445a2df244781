//! The answer in one line: every kind of drive, with and without what could be found out.

use super::*;

fn told(kind: DriveKind, set: impl FnOnce(&mut Identity)) -> String {
    let mut id = Identity { kind, ..Identity::default() };
    set(&mut id);
    answer(&id)
}

fn size(bytes: u64) -> CacheSize {
    CacheSize { blocks: bytes / 512, writes: 7, write_blocks: 8, limit: None }
}

fn band(bytes: u64) -> BandSize {
    BandSize { blocks: bytes / 512, end: 5, spread: 8.0, rewrite_s: 0.5 }
}

#[test]
fn kinds_without_a_cache() {
    assert_eq!(
        told(DriveKind::Cmr, |id| id.cleaning = Some(Cleaning::InPlace)),
        "conventional (CMR), or shingled without a cache and so empty that it does not show"
    );
    assert_eq!(
        told(DriveKind::HostManaged, |id| id.cache_size = Some(size(1 << 30))),
        "shingled, host-managed: it reports zones, and refuses a write that is not at a zone's write pointer"
    );
    let in_place = "shingled, drive-managed, without a cache: small writes rewrite what lies behind them";
    assert_eq!(told(DriveKind::DriveManaged, |id| id.cleaning = Some(Cleaning::InPlace)), in_place);
    for (bytes, shown) in [
        (512, "1 kB"),
        (204_800, "205 kB"),
        (999_424, "999 kB"),
        (999_936, "1 MB"),
        (999_424_000, "999 MB"),
        (999_500_288, "1.0 GB"),
        (1_000_000_512, "1.0 GB"),
        (40_960_000, "41 MB"),
        (9_949_696_000, "9.9 GB"),
        (25_600_000_000, "25.6 GB"),
    ] {
        let found = told(DriveKind::DriveManaged, |id| {
            (id.cleaning, id.band) = (Some(Cleaning::InPlace), Some(band(bytes)));
        });
        assert_eq!(found, format!("{in_place} in bands of {shown}"));
    }
}

#[test]
fn a_cache_and_its_place_and_size() {
    for kind in [None, Some(CacheKind::Disk), Some(CacheKind::Flash)] {
        let place = if kind == Some(CacheKind::Flash) { "in flash" } else { "on the disk" };
        for cleaning in [None, Some(Cleaning::Lazy), Some(Cleaning::Aggressive)] {
            // Bands of a cache are said elsewhere.
            let found = told(DriveKind::DriveManaged, |id| {
                (id.cache, id.cleaning, id.band) = (kind, cleaning, Some(band(1 << 20)));
            });
            assert_eq!(found, format!("shingled, drive-managed, with a cache {place}"));
            let found = told(DriveKind::DriveManaged, |id| {
                (id.cache, id.cleaning, id.cache_size) = (kind, cleaning, Some(size(2_500_000_256)));
            });
            let stall = "; random writes stall after 2.5 GB of them without rest";
            assert_eq!(found, format!("shingled, drive-managed, with a cache of 2.5 GB {place}{stall}"));
        }
    }
}

/// What is inside of a host-aware drive is said as of one that hides it, which it does not.
#[test]
fn a_host_aware_drive_with_what_is_inside() {
    let begins = "shingled, host-aware: it reports zones that prefer sequential writes, and takes others";
    let found = told(DriveKind::HostAware, |id| id.cleaning = Some(Cleaning::InPlace));
    assert_eq!(found, format!("{begins} without a cache: small writes rewrite what lies behind them"));
    let found = told(DriveKind::HostAware, |id| id.cache = Some(CacheKind::Flash));
    assert_eq!(found, format!("{begins} with a cache in flash"));
}
