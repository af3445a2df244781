//! Static maps are bijections: every LBA has a block of its own, in a band, and the inverse finds it again.

use smrlab_disk::{BandId, Interference};
use smrlab_stl::parts::order::Order;
use smrlab_stl::parts::position_map::PositionMap;
use smrlab_testkit::drives;
use smrlab_units::{Lba, Pba};

#[test]
fn every_lba_has_a_block_of_its_own() {
    for (name, drive) in drives::all() {
        for text in ["1234", "R(4123)", "124R(3)", "14R(23)", "21R(43)", "R(1)", "1-9"] {
            let order = Order::parse(text).unwrap();
            let Ok(bands) = drive.bands(Some(u64::from(order.tracks()))) else { continue };
            let map = PositionMap::new(drive.geometry(), &bands, bands.len(), &order);
            assert_eq!(map.blocks(), bands.data_blocks(), "{name}, {text}: blocks are left over");
            let by_tracks = matches!(drive.interference(), Interference::Physical(_));
            let mut harmless = 0;
            let mut taken = vec![false; drive.geometry().blocks().0 as usize];
            for lba in (0..map.blocks().0).map(Lba) {
                let extent = map.locate(&bands, lba);
                assert!(
                    !std::mem::replace(&mut taken[extent.pba.0 as usize], true),
                    "{name}, {text}: {extent:?}"
                );
                assert_eq!(
                    bands.band_of(extent.pba).map(|b| b.0),
                    Some(extent.band),
                    "{name}, {text}: LBA {lba}"
                );
                assert_eq!(map.lba_of(&bands, extent.pba), Some(lba), "{name}, {text}: {extent:?}");
                let track = drive.geometry().track_of(extent.pba);
                let end = drive.geometry().track_start(track) + drive.geometry().track_blocks(track);
                assert_eq!(extent.pba + extent.blocks, end, "{name}, {text}: LBA {lba} ends elsewhere");
                if extent.pba >= extent.last && extent.blocks == extent.track && by_tracks {
                    harmless += 1;
                    drive.interference().victims(drive.geometry(), extent.pba, extent.blocks, &mut |hit| {
                        let mut mapped = hit.filter_map(|at| map.lba_of(&bands, Pba(at)));
                        assert_eq!(
                            mapped.next(),
                            None,
                            "{name}, {text}: {extent:?} destroys more than a guard"
                        );
                    });
                }
            }
            assert_eq!(harmless > 0, by_tracks, "{name}, {text}: what lies last in a band is looked at");
            let guard = bands.band(BandId(0)).first + bands.band(BandId(0)).blocks;
            assert!(
                bands.len() == 1 || map.lba_of(&bands, guard).is_none(),
                "{name}, {text}: a guard is mapped"
            );
        }
    }
}
