//! Arrays with parameters that are drawn, over layers that are: data, deaths, restarts and power cuts of sets that nobody wrote down.

use smrlab_array::{Health, MemberId};
use smrlab_testkit::{ArrayHarness, DrawnArray, Rng, cases, drives, random};

/// Draws arrays until so many of them fit, of which `asked` holds.
fn each(
    written: u64,
    many: u64,
    asked: fn(&DrawnArray) -> bool,
    mut look: impl FnMut(&DrawnArray, ArrayHarness, &mut Rng),
) {
    let (mut rng, zoned) = (random(written), ("a drive with zones", crate::zoned_arrays::drive()));
    let mut looked = 0;
    while looked < many {
        let drawn = DrawnArray::new(&mut rng);
        let (name, drive) =
            if drawn.layer.starts_with("zoned") { zoned.clone() } else { drives::drawn(&mut rng) };
        if !asked(&drawn) {
            continue;
        }
        let Ok(array) = ArrayHarness::try_new(&drawn.text, &drawn.layer, &drive) else { continue };
        let seed = rng.bits();
        // What a failure is shown with.
        println!("{} over {} on {name}, seed {seed}", drawn.text, drawn.layer);
        looked += 1;
        look(&drawn, array, &mut Rng::new(seed));
    }
}

/// Requests of a length that is drawn, a few at a time or all at once.
fn exercise(array: &mut ArrayHarness, most: u64, rng: &mut Rng) {
    let longest = [1, 9, 40, 150][rng.below(4) as usize];
    let together = if rng.one_in(4) { ArrayHarness::burst } else { ArrayHarness::exercise };
    together(array, rng.below(most), longest, rng);
}

/// So many of the disks, each once.
fn some_disks(array: &ArrayHarness, many: usize, rng: &mut Rng) -> Vec<usize> {
    let mut disks: Vec<usize> = (0..array.disks()).collect();
    for i in 0..many {
        disks.swap(i, i + rng.below((array.disks() - i) as u64) as usize);
    }
    disks.truncate(many);
    disks
}

/// What drives hold is what was written, also with as many of them dead as may be, after those were replaced, and with others dead then.
#[test]
fn what_was_written_is_read_whatever_dies() {
    each(41, cases(300), |_| true, |drawn, array, rng| drives_die(drawn.losses(), array, rng));
}

/// What a member's read cache takes is what its drives have: the array above lays blocks of its own SSD over what it read in the instant
/// at which the member has answered, and parity would be made of those.
#[test]
fn a_members_read_cache_has_what_its_drives_have() {
    let array = "raid4s,chunk=2blk,ssd_page=2blk,ssd_write=10% / striped,disks=2,chunk=3blk,ssd_page=2blk,ssd_read=8blk";
    let (_, drive) = drives::all().into_iter().find(|(name, _)| *name == "smallest").unwrap();
    for seed in 30..42 {
        println!("seed {seed}");
        drives_die(1, ArrayHarness::new(array, "cmr", &drive), &mut Rng::new(seed));
    }
}

/// As many die as may; they are replaced, and others die.
fn drives_die(losses: usize, mut array: ArrayHarness, rng: &mut Rng) {
    exercise(&mut array, 80, rng);
    array.read_back(rng);
    array.check_restarts();
    let dead = some_disks(&array, losses, rng);
    println!("of {} disks {dead:?} die", array.disks());
    for disk in &dead {
        exercise(&mut array, 10, rng);
        array.kill(*disk);
    }
    exercise(&mut array, 20, rng);
    array.read_back(rng);
    assert_eq!(array.refused, 0, "with {dead:?} dead");
    array.check_restarts();
    for disk in dead.iter().rev() {
        println!("{disk} is replaced");
        array.replace(*disk);
        exercise(&mut array, 12, rng);
    }
    array.read_back(rng);
    assert!(!array.array().unfinished());
    for disk in &dead {
        assert_eq!(array.array().health(MemberId(*disk as u32)), Health::Whole, "{disk}");
    }
    array.check_restarts();
    for disk in some_disks(&array, losses, rng) {
        println!("{disk} dies");
        array.kill(disk);
    }
    array.read_back(rng);
    assert_eq!(array.refused, 0, "after {dead:?} were replaced");
}

/// What was acknowledged is there after a power cut at any member request, and again after another.
#[test]
fn what_was_acknowledged_survives_cuts() {
    each(42, cases(400), DrawnArray::is_one_after_cut, |drawn, mut array, rng| {
        for _ in 0..2 {
            exercise(&mut array, 40, rng);
            array.exercise(1 + rng.below(3), 40, rng);
            (0..rng.below(20)).for_each(|_| _ = array.step(rng));
            array.cut(rng);
            array.read_back(rng);
        }
        assert_eq!(array.refused, 0);
        if drawn.fits_after_cut() {
            for disk in some_disks(&array, drawn.losses(), rng) {
                array.kill(disk);
            }
            exercise(&mut array, 10, rng);
            array.read_back(rng);
            assert_eq!(array.refused, 0);
        }
    });
}

/// A drive is lost with the power, where that is promised; it is replaced, and then another is lost.
#[test]
fn a_drive_may_be_lost_with_the_power() {
    each(43, cases(120), DrawnArray::survives_cut_and_loss, |_, mut array, rng| {
        exercise(&mut array, 40, rng);
        array.exercise(1 + rng.below(3), 40, rng);
        (0..rng.below(20)).for_each(|_| _ = array.step(rng));
        let disk = rng.below(array.disks() as u64) as usize;
        array.cut_losing(Some(disk), rng);
        exercise(&mut array, 8, rng);
        array.read_back(rng);
        array.replace(disk);
        exercise(&mut array, 8, rng);
        array.settle(rng);
        array.cut(rng);
        array.read_back(rng);
        array.kill((disk + 1) % array.disks());
        array.read_back(rng);
        assert_eq!(array.refused, 0);
    });
}

/// Records that no fence keeps may be lost with the power.
#[test]
fn what_was_flushed_survives_the_loss_of_records() {
    each(44, cases(200), DrawnArray::is_one_after_cut, |_, mut array, rng| {
        array.sync();
        for _ in 0..3 {
            exercise(&mut array, 30, rng);
            array.sync();
            exercise(&mut array, 30, rng);
            (0..rng.below(7)).for_each(|_| _ = array.step(rng));
            array.cut_unsynced(rng);
        }
        assert_eq!(array.refused, 0);
    });
}
