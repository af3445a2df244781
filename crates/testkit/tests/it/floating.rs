//! RAID-5 over drives whose parity floats, or data too: bytes, power cuts, dead and rebuilt drives, as over any drive.

use smrlab_testkit::{ArrayHarness, Rng, drives};

const ARRAYS: &[&str] = &[
    "raid5,disks=4,chunk=4blk,write=modify,rebuild_unit=8blk",
    "raid5,disks=3,chunk=3blk,intent=on,rebuild_unit=6blk,rebuild_order=sorted,rebuild_batch=4",
];

const LAYERS: &[&str] =
    &["floating,unit=1blk,spare=10%,group=4", "floating,what=all,unit=2blk,spare=20%,group=3"];

/// Units that the disks wrote elsewhere than before.
fn floated(array: &mut ArrayHarness) -> u64 {
    (0..array.disks()).map(|disk| array.counted(disk).get("units_floated").unwrap()).sum()
}

#[test]
fn an_array_keeps_what_it_is_given_whatever_disk_is_lost() {
    let drive = drives::plain(60, 8, 1, 4);
    for (text, layer) in ARRAYS.iter().flat_map(|a| LAYERS.iter().map(move |l| (a, l))) {
        for disk in 0..3 {
            let mut rng = Rng::new(disk as u64);
            let mut array = ArrayHarness::new(text, layer, &drive);
            array.exercise(300, 12, &mut rng);
            array.read_back(&mut rng);
            assert_eq!(array.parity_faults(), 0, "{text} over {layer}");
            assert!(floated(&mut array) >= 20, "{text} over {layer}: {}", floated(&mut array));
            array.kill(disk);
            array.exercise(30, 12, &mut rng);
            array.read_back(&mut rng);
            array.replace(disk);
            array.exercise(60, 12, &mut rng);
            array.read_back(&mut rng);
            assert_eq!(array.parity_faults(), 0, "{text} over {layer}, rebuilt");
            array.kill((disk + 1) % array.disks());
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text} over {layer}");
        }
    }
}

/// With a remembered intent any disk may be lost after the cut.
#[test]
fn parity_fits_again_after_a_power_cut() {
    let drive = drives::plain(24, 8, 1, 4);
    for layer in LAYERS {
        for point in 0..40 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(ARRAYS[1], layer, &drive);
            array.exercise(30, 6, &mut rng);
            array.submit(smrlab_units::HostOp::Write, point % 40, 5, &mut rng);
            (0..point % 13).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            array.read_back(&mut rng);
            array.kill(point as usize % array.disks());
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{layer}: {point}");
        }
    }
}
