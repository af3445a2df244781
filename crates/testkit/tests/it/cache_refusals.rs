//! SSD caches before arrays that refuse what is destaged, because more drives are dead than they can stand: what was acknowledged stays
//! on the SSD and is read from it, whatever follows.

use smrlab_array::counted;
use smrlab_testkit::{ArrayHarness, Rng, drives};
use smrlab_units::HostOp;

/// Arrays, and how many dead drives are too many.
const CACHED: &[(&str, usize)] = &[
    ("striped,disks=3,chunk=4blk,ssd_write=24blk,ssd_page=2blk,ssd_group=24blk", 1),
    ("striped,disks=2,chunk=4blk,ssd_write=12blk,ssd_page=3blk,ssd_high=100%,ssd_low=100%", 1),
    ("spanning,disks=2,ssd_write=24blk,ssd_page=2blk,ssd_group=8blk,ssd_read=10blk", 1),
    ("mirror,disks=4,chunk=4blk,ssd_write=24blk,ssd_page=2blk,ssd_group=16blk,ssd_write_policy=lru", 3),
    ("raid5,disks=4,chunk=4blk,ssd_write=40blk,ssd_page=4blk,ssd_high=50%,ssd_low=20%", 2),
    ("raid5,disks=3,chunk=4blk,ssd_write=36blk,ssd_page=3blk,ssd_write_policy=scan,journal=on", 2),
    (
        "raid5,disks=4,chunk=4blk,ssd_write=64blk,ssd_read=30blk,ssd_page=3blk,ssd_write_policy=stow,ssd_control=rate",
        2,
    ),
    ("raid6,disks=5,chunk=4blk,ssd_write=40blk,ssd_page=4blk,ssd_write_policy=wow", 3),
    (
        "dvs,disks=5,chunk=2blk,segment=5,overprovision=30%,ssd_write=24blk,ssd_page=2blk,ssd_read=10blk,ssd_batch=3",
        2,
    ),
    ("dvs,disks=4,chunk=2blk,segment=5,overprovision=20%,stripes=wait,ssd_write=40blk,ssd_page=2blk", 2),
    (
        "dvs,groups=moving,fill=1,disks=4,chunk=2blk,segment=4,overprovision=10%,ssd_write=40blk,ssd_page=2blk",
        2,
    ),
    (
        "full-stripe,disks=4,chunk=3blk,segment=4,ssd_write=24blk,ssd_read=16blk,ssd_page=2blk,ssd_write_policy=least-rewrite",
        2,
    ),
    ("raid5,disks=3,chunk=4blk,ssd_write=24blk,ssd_page=4blk / mirror,chunk=2blk", 6),
];

fn counts(array: &ArrayHarness, name: &str) -> u64 {
    let all = array.array().members().into_iter().chain([array.array()]);
    all.filter_map(|array| counted(array).get(name)).sum()
}

/// Drives die, at any point, until the array takes no more; requests go on, and the power is cut.
#[test]
fn what_an_array_does_not_take_stays_on_the_ssd() {
    let drive = drives::plain(24, 6, 1, 4);
    for &(text, too_many) in CACHED {
        let (mut kept, mut refused) = (0, 0);
        for point in 0..40 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            let disks = array.disks();
            array.exercise(point % 23, 20, &mut rng);
            for i in 0..too_many {
                array.kill((point as usize + i) % disks);
                (0..point % 7).for_each(|_| _ = array.step(&mut rng));
            }
            array.settle(&mut rng);
            array.promises_begin();
            array.exercise(30, 6, &mut rng);
            array.read_promised(&mut rng);
            array.read_back(&mut rng);
            array.submit(HostOp::Write, point % 40, 12, &mut rng);
            (0..point % 17).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            array.read_promised(&mut rng);
            array.exercise(30, 6, &mut rng);
            array.read_promised(&mut rng);
            kept += counts(&array, "kept_ssd_pages");
            refused += array.refused;
        }
        assert!(kept > 0 && refused > 0, "{text}: {kept} pages were kept and {refused} requests refused");
    }
}
