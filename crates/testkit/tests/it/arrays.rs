//! Every array, on disks with layers that shingle: everything is read back, whatever dies.

use smrlab_stl::Metadata;
use smrlab_testkit::{ArrayHarness, Harness, Rng, cases, drives, layers};
use smrlab_units::HostOp;

/// Arrays of all kinds.
pub(crate) const ARRAYS: &[&str] = &[
    "spanning,disks=3",
    "striped,disks=3,chunk=1blk",
    "striped,disks=4,chunk=7blk",
    "dedicated,disks=2",
    "raid5,disks=3,chunk=1blk",
    // Units of five rows, the last one shorter.
    "raid5,disks=5,chunk=4blk,rebuild_unit=20blk",
    "raid5,disks=4,chunk=8blk,layout=left-symmetric,write=modify",
    "raid5,disks=4,chunk=8blk,layout=right-symmetric,write=reconstruct",
    "raid5,disks=6,chunk=3blk,layout=right-asymmetric,intent=on",
    "raid5,disks=4,chunk=4blk,journal=on",
    "raid5,disks=3,chunk=1blk,journal=on,layout=left-symmetric",
    "raid5,disks=4,chunk=2blk,journal=on,ssd_write=240blk,ssd_page=2blk,ssd_group=240blk",
    "raid5,disks=4,chunk=4blk,write=modify,parity=log,log=9blk,log_region=12blk",
    "raid5,disks=5,chunk=4blk,write=modify,parity=log,log=5blk,log_region=24blk,log_on=ssd,intent=on",
    "raid5,disks=3,chunk=3blk,layout=left-symmetric,write=modify,parity=log,log=6blk,log_region=30blk,rebuild_unit=9blk,intent=on",
    "raid5,disks=4,chunk=4blk,parity=log,log=20blk,log_region=16blk,ssd_write=40blk,ssd_page=4blk,log_on=ssd",
    "raid5,disks=4,chunk=4blk,layout=parity-last,rebuild_unit=12blk",
    "raid4s,disks=4,chunk=4blk,rebuild_unit=12blk",
    "raid4s,disks=3,chunk=3blk,write=modify,intent=on",
    "raid4s,disks=4,chunk=4blk,journal=on",
    "raid6,disks=4,chunk=1blk",
    "raid6,disks=6,chunk=4blk,rebuild_unit=20blk",
    "raid6,disks=5,chunk=3blk,layout=left-symmetric,write=modify,intent=on",
    "raid6,disks=6,chunk=8blk,layout=right-asymmetric,write=reconstruct",
    "raid6,disks=5,chunk=4blk,layout=right-symmetric,journal=on,rebuild_depth=3",
    "raid6,disks=6,chunk=4blk,ssd_write=40blk,ssd_page=4blk,ssd_high=50%,ssd_low=20%",
    "mirror",
    "mirror,disks=3,copies=3,chunk=4blk,reads=turns,rebuild_unit=12blk",
    "mirror,disks=4,chunk=4blk,intent=on,rebuild_depth=2",
    "mirror,disks=3,chunk=3blk,rebuild_unit=9blk,intent=on",
    "mirror,disks=5,copies=3,chunk=2blk,reads=first,rebuild_unit=8blk,ssd_write=24blk,ssd_page=2blk",
    "dvs,overprovision=0%,disks=3,chunk=1blk,segment=6",
    "dvs,disks=5,chunk=2blk,segment=5,overprovision=30%,idle=1s,obsolete=0%",
    "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%",
    "dvs,disks=4,chunk=2blk,segment=6,overprovision=30%,stripes=fill,idle=1s,obsolete=0%,victim=frequent",
    "dvs,disks=5,chunk=2blk,segment=6,overprovision=20%,tables=zone,tables_every=5ms,idle=1s,victim=least-recent",
    "dvs,disks=3,chunk=2blk,segment=4,overprovision=20%,tables=zone,tables_cache=1blk,ssd_write=24blk,ssd_page=2blk,idle=1s",
    "dvs,disks=4,chunk=2blk,segment=5,overprovision=20%,stripes=wait,ssd_write=40blk,ssd_page=2blk,idle=1s,victim=recent",
    "dvs,disks=4,chunk=2blk,segment=5,overprovision=20%,stripes=fill,tables=zone,journal=on",
    "dvs,groups=moving,overprovision=0%,disks=3,chunk=1blk,segment=6,batch=2,fill=2",
    "dvs,groups=moving,fill=1,disks=5,chunk=2blk,segment=5,overprovision=30%,batch=7",
    "dvs,groups=moving,fill=1,disks=4,chunk=2blk,segment=4,overprovision=10%,batch=1,ssd_write=40blk,ssd_page=2blk,stripes=wait",
    "full-stripe,overprovision=0%,disks=3,chunk=2blk,segment=5,batch=3",
    "full-stripe,disks=4,chunk=1blk,segment=8,batch=5,rebuild_unit=3blk,rebuild_depth=2",
    "full-stripe,disks=5,chunk=2blk,segment=6,stripes=wait,ssd_write=48blk,ssd_page=2blk,rebuild_unit=4blk",
    "full-stripe,disks=4,chunk=3blk,segment=4,stripes=wait,ssd_write=24blk,ssd_read=16blk,ssd_page=2blk,batch=2",
    "striped,disks=3,chunk=7blk,ssd_read=20blk,ssd_page=5blk,ssd_read_policy=arc",
    "striped,disks=2,chunk=4blk,ssd_write=12blk,ssd_page=3blk,ssd_high=100%,ssd_low=100%",
    "raid5,disks=4,chunk=4blk,ssd_write=40blk,ssd_page=4blk,ssd_high=50%,ssd_low=20%",
    "raid5,disks=4,chunk=4blk,ssd_write=64blk,ssd_read=30blk,ssd_page=3blk,ssd_write_policy=stow,ssd_control=rate",
    "dvs,disks=5,chunk=2blk,segment=5,overprovision=30%,ssd_write=24blk,ssd_page=2blk,ssd_read=10blk,ssd_batch=3",
    "dvs,overprovision=0%,disks=3,chunk=1blk,segment=2,journal=on",
    "dvs,overprovision=0%,disks=4,chunk=2blk,segment=5,journal=on",
    "dvs,disks=4,chunk=2blk,segment=5,overprovision=20%,journal=on,ssd_write=24blk,ssd_page=2blk",
    "dvs,overprovision=0%,disks=4,chunk=4blk,segment=8,ssd_write=200blk,ssd_page=8blk,ssd_write_policy=least-rewrite,ssd_depth=1",
    // Arrays of arrays.
    "mirror,chunk=4blk / striped,disks=2,chunk=3blk",
    "raid5,disks=3,chunk=4blk,rebuild_unit=20blk / mirror,chunk=2blk",
    "striped,disks=2,chunk=5blk / raid5,disks=3,chunk=2blk",
    "raid5,disks=3,chunk=2blk,intent=on / raid5,disks=3,chunk=3blk,intent=on",
    "raid5,disks=3,chunk=4blk,intent=on / spanning,disks=1,ssd_write=12blk,ssd_page=3blk",
    "raid5,disks=3,chunk=8blk / spanning,disks=1,ssd_write=64blk,ssd_page=8blk",
    "raid6,disks=4,chunk=4blk,journal=on / spanning,disks=1,ssd_read=12blk,ssd_write=9blk,ssd_page=3blk",
    "striped,disks=2,chunk=5blk / mirror,chunk=4blk,intent=on / striped,disks=2,chunk=3blk",
    "raid5,disks=3,chunk=4blk,ssd_write=24blk,ssd_page=4blk / dvs,disks=3,chunk=2blk,segment=6,overprovision=30%",
];

#[test]
fn everything_is_read_back_over_every_layer() {
    let drive = drives::plain(60, 8, 2, 4);
    for text in ARRAYS {
        for layer in ["cmr", "rmw", "s-block,sblock_blocks=24,cache=20%,overprovision=30%,sections=1"] {
            let mut rng = Rng::new(7);
            let mut array = ArrayHarness::new(text, layer, &drive);
            array.exercise(400, 80, &mut rng);
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0);
            if in_step(text) {
                assert_eq!(array.parity_faults(), 0, "{text} over {layer}");
            }
            // Whatever disk is lost: parity of every live stripe is right.
            if redundant(text) {
                let disk = rng.below(array.disks() as u64) as usize;
                array.kill(disk);
                array.read_back(&mut rng);
            }
        }
    }
}

pub(crate) fn redundant(text: &str) -> bool {
    losses(text) > 0
}

/// How many disks, whichever they are, may be dead at a time.
pub(crate) fn losses(text: &str) -> usize {
    smrlab_array::parse(text).unwrap().capabilities().losses as usize + usize::from(text.contains("copies=3"))
}

/// Whether the disks alone have all of the parity.
fn in_step(text: &str) -> bool {
    (text.starts_with("raid5") || text.starts_with("raid4s"))
        && !text.contains("parity=log")
        && !text.contains(" / ")
}

/// A disk dies at any point of a run, with requests under way; later it is replaced, while the run goes on.
#[test]
fn every_disk_may_die_at_every_point_and_come_back() {
    let drive = drives::plain(24, 6, 1, 4);
    for text in ARRAYS.iter().filter(|a| redundant(a)) {
        for disk in 0..6 {
            // Of each disk others, where there are not all.
            for point in (0..25).filter(|point| (point + disk) % 4 < cases(4)) {
                let mut rng = Rng::new(100 * point + disk);
                let mut array = ArrayHarness::new(text, "cmr", &drive);
                if disk as usize >= array.disks() {
                    continue;
                }
                array.exercise(point, 40, &mut rng);
                array.kill(disk as usize);
                array.exercise(15, 40, &mut rng);
                array.read_back(&mut rng);
                array.exercise(5, 40, &mut rng);
                array.replace(disk as usize);
                array.exercise(20, 40, &mut rng);
                array.read_back(&mut rng);
                assert_eq!(array.refused, 0, "{text}");
                if in_step(text) {
                    assert_eq!(array.parity_faults(), 0, "{text}: disk {disk} at {point}");
                }
                // What was rebuilt is as good as what was lost.
                array.kill((disk as usize + 1) % array.disks());
                array.read_back(&mut rng);
                assert_eq!(array.refused, 0, "{text}");
            }
        }
    }
}

/// As many disks as may die do, one after the other and at any point; they are replaced in another order while requests go on, and
/// then as many others die.
#[test]
fn as_many_disks_may_die_as_are_promised() {
    let drive = drives::plain(24, 6, 1, 4);
    for text in ARRAYS.iter().filter(|a| losses(a) > 1) {
        for point in 0..60 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            let n = array.disks();
            let (one, two) =
                (point as usize % n, (point as usize % n + 1 + point as usize / n % (n - 1)) % n);
            array.exercise(point % 17, 40, &mut rng);
            array.kill(one);
            array.exercise(point % 5, 40, &mut rng);
            array.kill(two);
            array.exercise(12, 40, &mut rng);
            array.read_back(&mut rng);
            array.replace(two);
            (0..point % 13).for_each(|_| _ = array.step(&mut rng));
            array.replace(one);
            array.exercise(12, 40, &mut rng);
            // The last of them dies again while it, or the one before it, is rebuilt.
            if point % 3 == 0 {
                array.kill(one);
                array.exercise(6, 40, &mut rng);
                array.replace(one);
            }
            array.exercise(6, 40, &mut rng);
            array.read_back(&mut rng);
            assert!(!array.array().unfinished(), "{text}: {point}");
            array.kill((one + 1) % n);
            array.kill((one + n - 1) % n);
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}: {point}");
        }
    }
}

/// Of four disks in two pairs one of each may be dead, and is rebuilt; with a pair its chunks are lost, and the others are not.
#[test]
fn a_mirror_lives_as_long_as_a_copy_does() {
    let drive = drives::plain(24, 6, 1, 4);
    let mut rng = Rng::new(9);
    let mut array = ArrayHarness::new("mirror,disks=4,chunk=4blk", "cmr", &drive);
    array.exercise(60, 30, &mut rng);
    array.kill(0);
    array.kill(3);
    array.read_back(&mut rng);
    array.replace(0);
    array.replace(3);
    array.exercise(20, 30, &mut rng);
    array.read_back(&mut rng);
    array.kill(1);
    array.kill(2);
    array.read_back(&mut rng);
    assert_eq!(array.refused, 0);
    array.kill(3);
    array.replace(2);
    array.submit(HostOp::Read, 4, 4, &mut rng);
    array.submit(HostOp::Write, 4, 4, &mut rng);
    array.submit(HostOp::Read, 0, 4, &mut rng);
    array.settle(&mut rng);
    assert_eq!((array.refused, array.array().unfinished()), (2, false));
}

/// RAID-5 over every layer of the registry: a disk dies at several points of a run and is rebuilt.
#[test]
fn raid5_loses_no_disk_over_any_layer() {
    let all = drives::all();
    for entry in layers().into_iter().filter(|entry| entry.capabilities.keeps_data) {
        let fits = |d: &&(&str, _)| Harness::new(entry.name, &d.1, Metadata::Nv).is_ok();
        let (name, drive) = all.iter().rev().find(fits).expect("a drive of the kit");
        for point in [0, 7, 20, 33] {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new("raid5,disks=3,chunk=4blk", entry.name, drive);
            array.exercise(point, 60, &mut rng);
            array.kill(point as usize % 3);
            array.exercise(12, 60, &mut rng);
            array.read_back(&mut rng);
            array.replace(point as usize % 3);
            array.exercise(12, 60, &mut rng);
            array.read_back(&mut rng);
            assert_eq!((array.refused, array.parity_faults()), (0, 0), "{} on {name}: {point}", entry.name);
            array.kill((point as usize + 1) % 3);
            array.read_back(&mut rng);
        }
    }
}

/// A hundred rows, of which the journal holds 64.
#[test]
fn a_write_of_more_rows_than_the_journal_holds_is_written_whole() {
    let mut rng = Rng::new(5);
    let drive = drives::plain(24, 6, 1, 4);
    let mut array = ArrayHarness::new("raid5,disks=3,chunk=1blk,journal=on", "cmr", &drive);
    array.submit(HostOp::Write, 0, 200, &mut rng);
    array.settle(&mut rng);
    array.read_back(&mut rng);
    assert_eq!((array.refused, array.parity_faults()), (0, 0));
}

/// Two dead disks: what needs them is refused, and nothing else is made up.
#[test]
fn what_is_lost_is_refused() {
    let drive = drives::plain(24, 6, 1, 4);
    let mut rng = Rng::new(3);
    let mut array = ArrayHarness::new("raid5,disks=4,chunk=4blk", "cmr", &drive);
    array.exercise(50, 30, &mut rng);
    array.settle(&mut rng);
    array.kill(0);
    array.kill(2);
    array.submit(HostOp::Read, 0, 12, &mut rng);
    array.submit(HostOp::Write, 0, 12, &mut rng);
    array.settle(&mut rng);
    assert_eq!(array.refused, 2);
}

/// Two drives of a member die, which throws it out. When fresh ones are there it begins anew with them and with what the others
/// hold: old parity, which writes that only modify it would keep wrong. Then a drive of it dies, and its mirror.
#[test]
fn a_member_that_begins_anew_does_not_trust_its_old_drives() {
    let drive = drives::plain(40, 24, 2, 2);
    for seed in 0..4 {
        let text = "mirror,chunk=4blk,rebuild_unit=4blk / raid5,disks=5,chunk=4blk";
        begins_anew(ArrayHarness::new(text, "cmr", &drive), seed);
        // Zones of the old drives are full, or half so.
        let text = "mirror,chunk=4blk,rebuild_unit=12blk / full-stripe,disks=5,chunk=8blk";
        let layer = "zoned,zone=20KiB,conventional=0%,max_open=6";
        begins_anew(ArrayHarness::new(text, layer, &crate::zoned_arrays::drive()), seed);
    }
}

/// Twice: the second time the power is lost before all that died were replaced.
fn begins_anew(mut array: ArrayHarness, seed: u64) {
    let mut rng = Rng::new(seed);
    array.exercise(300, 12, &mut rng);
    for cut in [false, true] {
        array.settle(&mut rng);
        array.kill(0);
        array.kill(1);
        array.exercise(100, 12, &mut rng);
        array.settle(&mut rng);
        array.replace(0);
        if cut {
            array.cut(&mut rng);
        }
        array.replace(1);
        array.exercise(20, 12, &mut rng);
        array.settle(&mut rng);
        assert!(!array.array().unfinished());
    }
    for disk in [seed as usize, 5, 6] {
        array.kill(disk);
    }
    array.read_back(&mut rng);
    assert_eq!(array.refused, 0);
}

/// A log of stripes comes to rest when it is full, however few chunks a collection moves at a time: one a stripe would take as much as
/// what it leaves.
#[test]
fn collecting_full_stripes_ends() {
    let drive = drives::plain(120, 32, 2, 4);
    for (disks, batch) in (3..=6).flat_map(|disks| [1, 2, 3, 5, 64].map(|batch| (disks, batch))) {
        for rest in
            ["segment=9,overprovision=22%", "segment=9,overprovision=0%", "segment=50,overprovision=0%"]
        {
            let text = format!("full-stripe,disks={disks},chunk=3blk,batch={batch},{rest}");
            println!("{text}");
            let (mut array, mut rng) = (ArrayHarness::new(&text, "cmr", &drive), Rng::new(batch));
            let space = array.array().host_blocks().0;
            for at in (0..space).step_by(30) {
                array.submit(HostOp::Write, at, 30.min(space - at), &mut rng);
            }
            array.exercise(300, 9, &mut rng);
            array.settle(&mut rng);
            println!("killed");
            array.kill(1);
            array.exercise(100, 9, &mut rng);
            array.settle(&mut rng);
        }
    }
}
