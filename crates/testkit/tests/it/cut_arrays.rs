//! Every array, on disks with layers that shingle, when the power fails between any two member requests, and when it restarts from its records.

use crate::arrays::{ARRAYS, losses, redundant};
use crate::zoned_arrays::{ZONED, drive as zoned_drive};
use smrlab_array::{Health, MemberId};
use smrlab_testkit::{ArrayHarness, Rng, cases, drives};
use smrlab_units::HostOp;

/// A log, which needs no journal: nothing is written over that is needed.
fn is_log(text: &str) -> bool {
    text.starts_with("full-stripe") || text.contains("groups=moving")
}

/// The power fails at any member request, when images are logged and when they are put into the parity: with a remembered
/// intent any disk may be lost afterwards.
#[test]
fn the_power_may_fail_while_parity_is_logged() {
    let drive = drives::plain(24, 6, 1, 4);
    for text in ARRAYS.iter().filter(|a| a.contains("parity=log") && a.contains("intent=on")) {
        let mut applied = 0;
        for point in 0..200 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            array.exercise(40, 8, &mut rng);
            array.submit(HostOp::Write, point % 60, 6, &mut rng);
            (0..point % 31).for_each(|_| _ = array.step(&mut rng));
            applied += smrlab_array::counted(array.array()).get("parities_applied").unwrap();
            array.cut(&mut rng);
            array.exercise(6, 8, &mut rng);
            array.settle(&mut rng);
            array.cut(&mut rng);
            let disk = point as usize % array.disks();
            array.kill(disk);
            array.read_back(&mut rng);
            array.replace(disk);
            array.exercise(6, 8, &mut rng);
            array.settle(&mut rng);
            array.kill((disk + 1) % array.disks());
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}");
        }
        assert!(applied > 100, "{text}: only {applied} parities were made from logs");
    }
}

/// The power fails at any member request: with a remembered intent, as many disks may be lost afterwards as ever.
#[test]
fn copies_and_parities_fit_again_after_a_power_cut() {
    let drive = drives::plain(24, 6, 1, 4);
    for text in ARRAYS.iter().filter(|a| a.contains("intent=on") && !a.contains("parity=log")) {
        for point in 0..80 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            array.exercise(10, 30, &mut rng);
            array.submit(HostOp::Write, point % 40, 20, &mut rng);
            (0..point % 19).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            array.read_back(&mut rng);
            (0..losses(text)).for_each(|i| array.kill((point as usize + 2 * i) % array.disks()));
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}: {point}");
        }
    }
}

/// The power fails between any two member requests: what was acknowledged is there; with `intent=on` the parity fits
/// again, so that any disk may be lost afterwards.
#[test]
fn the_power_may_fail_at_every_member_request() {
    let drive = drives::plain(24, 6, 1, 4);
    let (mut holes, mut cuts) = (0, 0);
    for text in ["raid5,disks=4,chunk=4blk", "raid5,disks=4,chunk=4blk,intent=on"] {
        for point in 0..60 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            array.exercise(10, 30, &mut rng);
            array.submit(HostOp::Write, point, 20, &mut rng);
            (0..point % 9).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            cuts += 1;
            if text.ends_with("intent=on") {
                assert_eq!(array.parity_faults(), 0, "{point}");
                array.kill((point % 4) as usize);
                array.read_back(&mut rng);
            } else {
                holes += u64::from(array.parity_faults() > 0);
            }
        }
    }
    assert!(holes > 5, "{cuts} cuts without a remembered intent left only {holes} rows in doubt");
}

/// The write hole: the power fails at any member request and with it any disk is lost. With the journal what was
/// acknowledged is there, on RAID-5 and on DVS; a remembered intent alone loses blocks that nobody was writing.
#[test]
fn a_power_cut_and_a_lost_disk_together_lose_nothing_with_the_journal() {
    let drive = drives::plain(24, 6, 1, 4);
    let survives = |text: &str, point: u64, disk: u64| {
        let mut rng = Rng::new(point);
        let mut array = ArrayHarness::new(text, "cmr", &drive);
        let space = array.array().host_blocks().0;
        array.exercise(10, 30, &mut rng);
        // Every fourth write is longer than the journal has rows.
        let blocks = if point % 4 == 3 { (space - 40).min(160) } else { 20 };
        array.submit(HostOp::Write, point % 40, blocks, &mut rng);
        (0..point * 7 % (9 + blocks)).for_each(|_| _ = array.step(&mut rng));
        let disk = disk as usize % array.disks();
        array.cut_losing(Some(disk), &mut rng);
        array.exercise(6, 30, &mut rng);
        array.read_back(&mut rng);
        array.replace(disk);
        array.exercise(6, 30, &mut rng);
        array.settle(&mut rng);
        // A second cut, after which all is whole.
        array.cut(&mut rng);
        array.read_back(&mut rng);
        if text.starts_with("raid5") {
            assert_eq!(array.parity_faults(), 0, "{text}: {point}");
        }
        array.kill((disk + 1) % array.disks());
        array.read_back(&mut rng);
        assert_eq!(array.refused, 0, "{text}");
    };
    for text in ARRAYS.iter().filter(|a| a.contains("journal=on") || is_log(a)) {
        (0..60).for_each(|point| (0..4).for_each(|disk| survives(text, point, disk)));
    }
    let lost = (0..60).filter(|point| {
        let hole = || survives("raid5,disks=4,chunk=4blk,intent=on", *point, point % 3);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(hole)).is_err()
    });
    let lost = lost.count();
    assert!(lost > 5, "without the journal only {lost} of 60 cuts lost something");
}

/// Tables recover from their records: after a restart between requests everything is there, and a disk may be lost.
#[test]
fn tables_recover_from_records_and_from_a_checkpoint() {
    let drive = drives::plain(24, 6, 1, 4);
    for text in ARRAYS.iter().filter(|a| redundant(a)) {
        for seed in 0..10 {
            let mut rng = Rng::new(seed);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            for round in 0..4 {
                array.exercise(12, 30, &mut rng);
                if round == 2 {
                    array.settle(&mut rng);
                    array.kill(1);
                }
                array.settle(&mut rng);
                // The first round recovers from records, the later ones from a checkpoint and records.
                array.cut(&mut rng);
                array.read_back(&mut rng);
            }
            assert_eq!(array.refused, 0, "{text}");
        }
    }
}

/// With a write cache that acknowledges, the power fails between any two member requests: what was acknowledged is there.
#[test]
fn the_power_may_fail_at_every_request_to_a_cached_array() {
    let drive = drives::plain(24, 6, 1, 4);
    for text in ARRAYS.iter().filter(|a| a.starts_with("raid5") && a.contains("ssd_write")) {
        for point in 0..80 {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, "cmr", &drive);
            array.exercise(12, 30, &mut rng);
            array.submit(HostOp::Write, point, 20, &mut rng);
            (0..point % 23).for_each(|_| _ = array.step(&mut rng));
            array.cut(&mut rng);
            array.exercise(6, 30, &mut rng);
            array.read_back(&mut rng);
        }
    }
}

/// A discard of all that a page holds, while more of the page is being written: its place on the SSD stays its own.
#[test]
fn a_page_that_is_being_written_keeps_its_place() {
    let drive = drives::plain(60, 8, 2, 4);
    let text = "dvs,overprovision=0%,disks=4,chunk=2blk,segment=5,ssd_write=24blk,ssd_page=2blk";
    let layer = "s-block,sblock_blocks=24,cache=20%,overprovision=30%,sections=1";
    let mut rng = Rng::new(1);
    let mut array = ArrayHarness::new(text, layer, &drive);
    array.submit(HostOp::Write, 0, 1, &mut rng);
    array.settle(&mut rng);
    array.submit(HostOp::Write, 1, 1, &mut rng);
    array.submit(HostOp::Discard, 0, 1, &mut rng);
    array.submit(HostOp::Write, 8, 2, &mut rng);
    array.read_back(&mut rng);
    array.cut(&mut rng);
    array.read_back(&mut rng);
}

/// A power cut of DVS at any member request, in mid-collection too: with the journal what was acknowledged is there and any
/// disk may be lost afterwards; without it live chunks are gone.
#[test]
fn the_power_may_fail_in_mid_collection() {
    let drive = drives::plain(24, 6, 1, 4);
    let survives = |text: &str, point: u64| {
        let mut rng = Rng::new(point);
        let mut array = ArrayHarness::new(text, "cmr", &drive);
        array.exercise(14, 30, &mut rng);
        array.submit(HostOp::Write, point % 40, 20, &mut rng);
        (0..point % 29).for_each(|_| _ = array.step(&mut rng));
        array.cut(&mut rng);
        array.exercise(6, 30, &mut rng);
        array.settle(&mut rng);
        array.cut(&mut rng);
        array.kill(point as usize % array.disks());
        array.read_back(&mut rng);
    };
    for text in ARRAYS.iter().filter(|a| a.contains("journal=on") || is_log(a)) {
        (0..120).for_each(|point| survives(text, point));
    }
    let lost = (0..120).filter(|point| {
        let off = || survives("dvs,overprovision=0%,disks=4,chunk=2blk,segment=5", *point);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(off)).is_err()
    });
    let lost = lost.count();
    assert!(lost > 5, "without the journal only {lost} of 120 cuts lost something");
}

/// The power fails when no flush was answered for a while, while requests are under way and after any of them: records that no fence
/// keeps may be lost, and what they were about is not yet written over.
#[test]
fn what_no_fence_keeps_may_be_lost() {
    let plain = (drives::plain(24, 6, 1, 4), "cmr");
    // Groups of DVS are written over in place, but for those that move, and need the journal.
    let in_place = |text: &str| text.contains("dvs") && !is_log(text) && !text.contains("journal=on");
    let has_tables = |text: &&&str| {
        !in_place(text) && ["full-stripe", "dvs", "ssd_write", "journal"].iter().any(|t| text.contains(t))
    };
    let arrays = ARRAYS.iter().filter(has_tables).map(|text| (*text, plain.1, &plain.0));
    let wide = zoned_drive();
    for (text, layer, drive) in arrays.chain(ZONED.iter().map(|(text, layer)| (*text, *layer, &wide))) {
        for point in 0..cases(6) {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, layer, drive);
            array.sync();
            for round in 0..4 {
                array.exercise(12 + 6 * round, 40, &mut rng);
                array.sync();
                array.exercise(9 * (point % 4), 40, &mut rng);
                (0..point % 7).for_each(|_| _ = array.step(&mut rng));
                array.cut_unsynced(&mut rng);
            }
            assert_eq!(array.refused, 0, "{text}: {point}");
        }
    }
}

/// Whatever befalls disks, and with requests under way: who takes up what was recorded, or the checkpoint, knows as much as who recorded it.
#[test]
fn who_begins_anew_knows_as_much() {
    let (drive, wide) = (drives::plain(24, 6, 1, 4), zoned_drive());
    let plain = ARRAYS.iter().map(|text| (*text, "cmr", &drive));
    let zoned = ZONED.iter().map(|(text, layer)| (*text, *layer, &wide));
    for (text, layer, drive) in plain.chain(zoned) {
        for seed in 0..3 {
            let mut rng = Rng::new(seed);
            let mut array = ArrayHarness::new(text, layer, drive);
            // zone-log has what is being written in its map already, and records it when it is written.
            let check = |array: &mut ArrayHarness| {
                if text.starts_with("zone-log") {
                    array.settle(&mut Rng::new(seed));
                }
                array.check_restarts();
            };
            let mut look = |array: &mut ArrayHarness, steps: u64| {
                for _ in 0..steps {
                    check(array);
                    array.exercise(2, 40, &mut rng);
                }
                check(array);
            };
            look(&mut array, 5);
            for disk in (0..losses(text)).rev() {
                array.kill(disk);
                look(&mut array, 2);
            }
            for disk in 0..losses(text) {
                array.replace(disk);
                if text.contains(" / ") {
                    // A member without copies comes back when what it does is over, and at once after a restart.
                    array.settle(&mut Rng::new(seed));
                }
                look(&mut array, 2);
            }
            array.settle(&mut Rng::new(seed));
            array.check_restarts();
            array.begin_anew();
            look(&mut array, 4);
            if text.contains("intent=on") {
                // Works that were cut have left rows in doubt: they are that until they were looked at.
                array.begin_anew();
                array.check_restarts();
            }
            array.kill(array.disks() - 1);
            array.check_restarts();
        }
    }
}

/// A restart in the midst of a rebuild, of arrays of which little was ever written: the rebuild goes on, has an end, and what was lost is there.
#[test]
fn a_rebuild_has_an_end_after_a_restart() {
    let (drive, wide) = (drives::plain(24, 6, 1, 4), zoned_drive());
    let plain = ARRAYS.iter().map(|text| (*text, "cmr", &drive));
    let zoned = ZONED.iter().map(|(text, layer)| (*text, *layer, &wide));
    let redundant = plain.chain(zoned).filter(|(text, ..)| redundant(text));
    let mut amid = 0;
    for (text, layer, drive) in redundant {
        for point in 0..cases(8) {
            let mut rng = Rng::new(point);
            let mut array = ArrayHarness::new(text, layer, drive);
            let disk = point as usize % array.disks();
            for (requests, dies) in [(point % 4, true), (2, false)] {
                array.exercise(requests, 6, &mut rng);
                array.settle(&mut rng);
                if dies {
                    array.kill(disk);
                }
            }
            array.replace(disk);
            (0..point * 3 % 17).for_each(|_| _ = array.step(&mut rng));
            amid += u32::from(array.array().unfinished());
            array.cut(&mut rng);
            array.settle(&mut rng);
            let (health, left) = (array.array().health(MemberId(disk as u32)), array.array().unfinished());
            assert_eq!((health, left), (Health::Whole, false), "{text}: {point}");
            array.kill((disk + 1) % array.disks());
            array.read_back(&mut rng);
            assert_eq!(array.refused, 0, "{text}: {point}");
        }
    }
    assert!(amid > 50, "{amid}");
}
