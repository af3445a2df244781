//! The drives that ship with a buffer: rates, caches, zones.

use super::*;

/// The drives that ship with a cache: how fast they stream, what their cache says, and zones of their size.
#[test]
fn presets_of_current_drives_stream_at_their_rate() {
    for (name, layer, rate) in [
        ("seagate-exos-x24", "cmr", 285.0),
        ("seagate-exos-2x18-half", "cmr", 277.0),
        ("wd-ultrastar-dc-hc680", "raw", 265.0),
        ("wd-ultrastar-dc-hc690", "raw", 269.5),
        ("seagate-st8000dm004", "cmr", 190.0),
    ] {
        let mut c = drive(name, layer, "fcfs", None);
        assert!(c.drive().buffer().is_some(), "{name}");
        let mut now = SimTime::ZERO;
        let (from, each, count) = (1 << 20, 256, 8000);
        let mut begin = SimTime::ZERO;
        for i in 0..count {
            if i == 100 {
                begin = now;
            }
            let r = request(Read, from + i * each, each);
            let Ok(served) = c.submit(now, &r, &mut Seen::default());
            now = served.map_or(now, |s| s.ack);
        }
        let got = ((count - 100) * each * 512) as f64 / 1e6 / now.since(begin).as_secs_f64();
        assert!((got / rate - 1.0).abs() < 0.02, "{name}: {got:.1} MB/s, stated {rate}");
    }
}

/// Zones of 256 MiB as bands: their size, and how many there are behind the conventional part.
#[test]
fn host_managed_presets_have_zones_as_bands() {
    for (name, zones) in [("wd-ultrastar-dc-hc680", 99_578), ("wd-ultrastar-dc-hc690", 118_008)] {
        let c = drive(name, "rmw", "fcfs", None);
        let bands = c.drive().layer().facts().bands.unwrap();
        assert!(bands.len().abs_diff(zones) <= 1, "{name}: {}", bands.len());
        assert_eq!(bands.band(smrlab_disk::BandId(bands.len() - 1)).blocks.0, 524_288, "{name}");
    }
}

/// The conventional zones of these are longer than a serpentine group: bands of tracks begin behind them, too.
#[test]
fn bands_of_tracks_lie_behind_conventional_zones_longer_than_a_group() {
    for name in ["wd-ultrastar-dc-hc680", "wd-ultrastar-dc-hc690"] {
        let c = drive(name, "rmw,band=64tracks", "fcfs", None);
        let preset = smrlab_disk::model::load(name, |_| Err(String::new())).unwrap();
        let aside = preset.spec().bands.random_access;
        let bands = c.drive().layer().facts().bands.unwrap();
        let first = bands.band(smrlab_disk::BandId(0));
        assert!((aside..aside + 4096).contains(&first.first_track.0), "{name}: {first:?}");
        assert_eq!(
            (first.tracks, bands.random_access().map(|r| r.usable > 2 * 4096)),
            (64, Some(true)),
            "{name}"
        );
    }
}
