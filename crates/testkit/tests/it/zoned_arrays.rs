//! What makes an ordinary drive of a host-managed one: on bytes, cut at every request of the drive's.

use smrlab_array::counted;
use smrlab_testkit::{ArrayHarness, Rng, cases, drives};
use smrlab_units::HostOp;

/// Each with the layer below it: few random zones, so that reclaim has always something to do; and many sequential ones or hardly any.
pub(crate) const ZONED: &[(&str, &str)] = &[
    ("dm-zoned,reserved=1,copy=4KiB", "zoned,zone=32KiB,conventional=45%,max_open=4"),
    ("dm-zoned,reserved=1,copy=12KiB,map=sequential", "zoned,zone=32KiB,conventional=45%"),
    ("dm-zoned,reserved=3,low=100%", "zoned,zone=64KiB,conventional=30%,max_open=2"),
    ("dm-zoned,reserved=2,low=0%,high=0%,copy=8KiB", "zoned,zone=32KiB,conventional=48%,max_open=8"),
    ("zone-log,overprovision=5%", "zoned,zone=32KiB,conventional=10%,max_open=2"),
    (
        "zone-log,overprovision=30%,policy=cost-benefit,separate=on",
        "zoned,zone=64KiB,conventional=0%,max_open=3",
    ),
    ("zone-log,policy=cost-benefit", "zoned,zone=16KiB,conventional=0%,max_open=1"),
    // Zones that are no whole number of units.
    ("zone-log,granularity=16,overprovision=5%", "zoned,zone=44KiB,conventional=10%,max_open=2"),
    (
        "full-stripe,disks=3,chunk=8blk,batch=5,overprovision=0%",
        "zoned,zone=16KiB,conventional=0%,max_open=4",
    ),
    (
        "full-stripe,disks=4,chunk=8blk,batch=3,rebuild_unit=12blk",
        "zoned,zone=20KiB,conventional=10%,max_open=4",
    ),
    (
        "full-stripe,disks=3,chunk=8blk,stripes=wait,ssd_write=80blk,ssd_page=4blk,batch=4",
        "zoned,zone=20KiB,conventional=0%,max_open=4",
    ),
];

pub(crate) fn drive() -> std::sync::Arc<smrlab_disk::DriveModel> {
    drives::plain(200, 24, 2, 4)
}

#[test]
fn everything_is_read_back() {
    let drive = drive();
    for (text, layer) in ZONED {
        for seed in 0..4 {
            let mut rng = Rng::new(seed);
            let mut array = ArrayHarness::new(text, layer, &drive);
            // Mostly in order, then anywhere.
            let space = array.array().host_blocks().0;
            for at in (0..space).step_by(24) {
                array.submit(HostOp::Write, at, 24.min(space - at), &mut rng);
                (0..3).for_each(|_| _ = array.step(&mut rng));
            }
            array.exercise(600, 90, &mut rng);
            array.submit(HostOp::Flush, 0, 0, &mut rng);
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}");
            println!("{text}: {:?}", counted(array.array()));
        }
    }
}

/// The power fails between any two requests of the drive's, in mid-reclaim too: what was acknowledged is there, and again after
/// another cut.
#[test]
fn the_power_may_fail_at_every_request() {
    let drive = drive();
    for (text, layer) in ZONED {
        for point in 0..cases(150) {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, layer, &drive);
            array.exercise(60 + point % 7, 70, &mut rng);
            (0..point % 23).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            array.exercise(30, 70, &mut rng);
            (0..point % 11).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}: {point}");
        }
    }
}

/// A checkpoint has the metadata that no flush has written yet: a run that begins with a kept state is the same run.
#[test]
fn what_no_flush_has_written_is_in_a_checkpoint() {
    // Eight chunks, and more random zones: nothing is reclaimed, which would write the metadata as well.
    let (text, layer) = ("dm-zoned,reserved=2,low=0%,high=0%", ZONED[3].1);
    let written = |cuts: u32| {
        let mut rng = Rng::new(3);
        let mut array = ArrayHarness::new(text, layer, &drive());
        for i in 0..40 {
            array.submit(HostOp::Write, i * 131 % (8 * 64 - 16), 16, &mut rng);
            array.settle(&mut rng);
        }
        // The second one recovers from a checkpoint.
        (0..cuts).for_each(|_| array.cut(&mut rng));
        let before = counted(array.array()).get("metadata_blocks").unwrap();
        array.submit(HostOp::Flush, 0, 0, &mut rng);
        array.settle(&mut rng);
        counted(array.array()).get("metadata_blocks").unwrap() - before
    };
    assert!(written(0) > 10);
    assert_eq!([written(1), written(2)], [written(0); 2]);
}

/// A drive of a log of stripes dies at any point and is replaced while requests go on, with power cuts between: all of its zones are written in
/// order, and what was rebuilt is as good as what was lost.
#[test]
fn a_drive_with_zones_may_die_and_is_rebuilt() {
    let drive = drive();
    for (text, layer) in ZONED.iter().filter(|(text, _)| text.starts_with("full-stripe")) {
        for point in 0..40 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, layer, &drive);
            let disk = point as usize % array.disks();
            array.exercise(40 + point, 90, &mut rng);
            if point % 4 > 1 {
                // Leaves holes in groups that are filled on.
                array.cut(&mut rng);
                array.exercise(20, 90, &mut rng);
            }
            if point % 3 == 0 {
                array.cut_losing(Some(disk), &mut rng);
            } else {
                array.kill(disk);
            }
            array.exercise(30, 90, &mut rng);
            array.read_back(&mut rng);
            array.exercise(5, 90, &mut rng);
            array.replace(disk);
            (0..point).for_each(|_| _ = array.step(&mut rng));
            array.exercise(15, 90, &mut rng);
            if point % 2 == 0 {
                array.cut(&mut rng);
            }
            array.exercise(15, 90, &mut rng);
            array.read_back(&mut rng);
            assert!(!array.array().unfinished(), "{text}: {point}");
            array.kill((disk + 1) % array.disks());
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}: {point}");
        }
    }
}
