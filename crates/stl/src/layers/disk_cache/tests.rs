use super::*;
use crate::layers::test_medium::{Medium, Rig, drawn, request, same_after_checkpoint};
use crate::{Cause, Dir};
use smrlab_units::rng::Rng;

/// `bands` bands of `band` blocks, each followed by a guard of two blocks (interference 3).
fn starts(bands: u64, band: u64) -> Vec<Pba> {
    (0..bands).map(|i| Pba(i * (band + 2))).collect()
}

fn make(bands: u64, band: u64, options: DiskCacheOptions) -> DiskCache {
    DiskCache::new(&starts(bands, band), band, options).expect("the options fit")
}

fn medium(bands: u64, band: u64) -> Medium {
    Medium::new(bands * (band + 2), 3)
}

/// Two cache bands and six native ones, three blocks each: C0 at 0, C1 at 5, N0 at 10, N1 at 15, ... N5 at 35.
fn tiny() -> DiskCache {
    make(8, 3, DiskCacheOptions { cache: 0.25, ..DiskCacheOptions::default() })
}

/// `R`ead or `W`rite, cause, PBA, blocks.
fn ops(plan: &Plan) -> String {
    let one = |o: &crate::MediaOp| {
        let dir = if o.dir == Dir::Read { "R" } else { "W" };
        let cause = match o.cause {
            Cause::Host => "",
            Cause::Fill => "f",
            Cause::Journal => "j",
            _ => "c",
        };
        format!("{dir}{cause} {}+{}", o.pba, o.blocks)
    };
    plan.ops().iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn small_cases() {
    let table: &[(HostOp, u64, u64, &str)] = &[
        (HostOp::Write, 1, 1, "W 0+1"),                // N0 belongs to C0
        (HostOp::Read, 0, 3, "R 10+1, R 0+1, R 12+1"), // native, cached, native
        (HostOp::Write, 2, 2, "W 1+1, W 5+1"),         // split: block 2 of N0 to C0, block 3 of N1 to C1
        (HostOp::Read, 1, 2, "R 0+2"),                 // neighbours in the cache are one read
        (HostOp::Read, 2, 3, "R 1+1, R 5+1, R 16+1"),  // across bands: C0, C1, N1
        (HostOp::Write, 1, 1, "W 2+1"),                // written again: appended again, C0 is full
        (HostOp::Read, 1, 1, "R 2+1"),                 // the newest copy
        // C0 is read, N0 rewritten; then the block goes to the beginning of C0.
        (HostOp::Write, 12, 1, "Rc 0+3, Rc 10+3, Wc 10+3, W 0+1"),
        (HostOp::Read, 0, 3, "R 10+3"), // all home
        (HostOp::Write, 7, 1, "W 1+1"), // N2 to C0
        // Cleaning in mid-request: one block fits, N2 and N4 go home in ascending order, two blocks follow.
        (HostOp::Write, 0, 3, "W 2+1, Rc 0+3, Rc 10+3, Wc 10+3, Rc 20+3, Wc 20+3, Rc 30+3, Wc 30+3, W 0+2"),
        (HostOp::Read, 0, 3, "R 10+1, R 0+2"),
        (HostOp::Discard, 0, 1, ""),
        (HostOp::Read, 0, 2, "R 0+1"), // zeroes cost nothing
    ];
    let mut rig = Rig::new(tiny, medium(8, 3));
    for (i, &(op, lba, blocks, want)) in table.iter().enumerate() {
        rig.go(request(op, lba, blocks), false);
        assert_eq!(ops(rig.plan()), want, "row {i}: {op:?} {lba}+{blocks}");
    }
    rig.read_everything();
}

#[test]
fn a_write_longer_than_a_band_is_appended_in_parts() {
    let mut rig = Rig::new(tiny, medium(8, 3));
    rig.go(request(HostOp::Write, 0, 9), false);
    let want = "W 0+3, W 5+3, Rc 0+3, Rc 10+3, Wc 10+3, W 0+3";
    assert_eq!(ops(rig.plan()), want);
    let cleaned: Vec<_> =
        rig.plan().cleanings().iter().map(|c| (c.kind, c.first, c.end, c.relocated.0)).collect();
    assert_eq!(cleaned, [("set-clean", 2, 5, 3)]);
}

#[test]
fn shares_of_the_paper() {
    // S10: 1 % of 12 000 regions, 99 native ones for each cache region.
    assert_eq!(Shares::of(12_000, 0.01), Some(Shares { cache: 120, native: 11_880, associated: 99 }));
    assert_eq!(Shares::of(60_000, 0.01), Some(Shares { cache: 600, native: 59_400, associated: 99 }));
    // Not divisible: the rest is not used.
    assert_eq!(Shares::of(1_000, 0.03), Some(Shares { cache: 30, native: 960, associated: 32 }));
    assert_eq!(Shares::of(1, 0.5), None);
}

#[test]
fn associated_bands_are_all_rewritten_where_asked() {
    let mut l =
        make(8, 3, DiskCacheOptions { cache: 0.25, all_associated: true, ..DiskCacheOptions::default() });
    let mut plan = Plan::new(false, false);
    for lba in [0, 1, 2, 0] {
        plan.clear();
        l.submit(SimTime::ZERO, &request(HostOp::Write, lba, 1), &mut plan);
    }
    assert_eq!(ops(&plan), "Rc 0+3, Rc 10+3, Wc 10+3, Rc 20+3, Wc 20+3, Rc 30+3, Wc 30+3, W 0+1");
}

#[test]
fn units_are_completed_from_where_they_lie() {
    let mut rig = Rig::new(
        || make(8, 24, DiskCacheOptions { cache: 0.25, granularity: 8, ..DiskCacheOptions::default() }),
        medium(8, 24),
    );
    rig.go(request(HostOp::Write, 3, 2), false);
    assert_eq!(ops(rig.plan()), "Rf 52+3, Rf 57+3, W 0+8");
    rig.go(request(HostOp::Write, 6, 10), false);
    assert_eq!(ops(rig.plan()), "Rf 0+6, W 8+16");
    rig.read_everything();
}

#[test]
fn partial_cleaning_keeps_the_rest_in_front() {
    let partial =
        DiskCacheOptions { cache: 0.25, cleaning: Cleaning::Partial(1), ..DiskCacheOptions::default() };
    let mut l = make(8, 4, partial);
    let mut plan = Plan::new(false, false);
    for lba in [0, 1, 8, 2] {
        l.submit(SimTime::ZERO, &request(HostOp::Write, lba, 1), &mut plan);
    }
    plan.clear();
    l.submit(SimTime::ZERO, &request(HostOp::Write, 9, 1), &mut plan);
    assert_eq!(ops(&plan), "Rc 0+4, Rc 12+4, Wc 12+4, Wc 0+1, W 1+1");
}

#[test]
fn dynamic_association_uses_the_roomiest_cache_band() {
    let mut l = make(8, 3, DiskCacheOptions { cache: 0.25, dynamic: true, ..DiskCacheOptions::default() });
    let mut plan = Plan::new(false, false);
    let mut first = |lba| {
        plan.clear();
        l.submit(SimTime::ZERO, &request(HostOp::Write, lba, 1), &mut plan);
        ops(&plan)
    };
    assert_eq!([first(0), first(6), first(1), first(12)], ["W 0+1", "W 5+1", "W 1+1", "W 6+1"]);
}

#[test]
fn idle_time_empties_the_cache_band_by_band() {
    let make = || {
        make(8, 3, DiskCacheOptions { cache: 0.25, idle: Some(SimTime(5)), ..DiskCacheOptions::default() })
    };
    let mut rig = Rig::new(make, medium(8, 3));
    assert_eq!(rig.layer.background_after(), None);
    rig.go(request(HostOp::Write, 0, 1), false);
    rig.go(request(HostOp::Write, 7, 1), false);
    let checked = rig.layer.background_after();
    assert_eq!(checked, Some(SimTime(5)));
    rig.idle();
    assert_eq!(ops(rig.plan()), "Rc 0+2, Rc 10+3, Wc 10+3");
    rig.go(request(HostOp::Read, 0, 8), false);
    rig.idle();
    assert_eq!(ops(rig.plan()), "Rc 0+2, Rc 20+3, Wc 20+3");
    assert_eq!(rig.layer.background_after(), None);
    rig.go(request(HostOp::Write, 0, 1), false);
    assert_eq!(ops(rig.plan()), "W 0+1");
    rig.read_everything();
}

#[test]
fn idle_time_begins_with_the_fullest_cache_band() {
    let make = || {
        make(8, 3, DiskCacheOptions { cache: 0.25, idle: Some(SimTime(5)), ..DiskCacheOptions::default() })
    };
    let mut rig = Rig::new(make, medium(8, 3));
    rig.go(request(HostOp::Write, 0, 1), false);
    rig.go(request(HostOp::Write, 3, 2), false);
    let relocated =
        |plan: &Plan| plan.cleanings().iter().map(|c| (c.kind, c.relocated.0)).collect::<Vec<_>>();
    rig.idle();
    assert_eq!(ops(rig.plan()), "Rc 5+2, Rc 15+3, Wc 15+3");
    assert_eq!(relocated(rig.plan()), [("idle-clean", 2)]);
    rig.idle();
    assert_eq!(ops(rig.plan()), "Rc 0+1, Rc 10+3, Wc 10+3");
    assert_eq!(relocated(rig.plan()), [("idle-clean", 1)]);
}

fn variants() -> Vec<fn() -> DiskCache> {
    const C: f64 = 0.2;
    vec![
        || make(20, 24, DiskCacheOptions { cache: C, ..DiskCacheOptions::default() }),
        || make(20, 24, DiskCacheOptions { cache: C, granularity: 8, ..DiskCacheOptions::default() }),
        || {
            make(
                20,
                24,
                DiskCacheOptions { cache: C, placement: Placement::PerSet, ..DiskCacheOptions::default() },
            )
        },
        || make(20, 24, DiskCacheOptions { cache: C, dynamic: true, ..DiskCacheOptions::default() }),
        || {
            make(
                20,
                24,
                DiskCacheOptions { cache: C, cleaning: Cleaning::Partial(2), ..DiskCacheOptions::default() },
            )
        },
        || make(20, 24, DiskCacheOptions { cache: C, all_associated: true, ..DiskCacheOptions::default() }),
        || make(20, 24, DiskCacheOptions { cache: C, journal: true, ..DiskCacheOptions::default() }),
        || {
            let cleaning = Cleaning::Partial(2);
            make(
                20,
                24,
                DiskCacheOptions {
                    cache: C,
                    dynamic: true,
                    cleaning,
                    journal: true,
                    granularity: 8,
                    ..DiskCacheOptions::default()
                },
            )
        },
    ]
}

#[test]
fn ten_thousand_requests_read_back() {
    for (i, make) in variants().into_iter().enumerate() {
        let mut rig = Rig::new(make, medium(20, 24));
        let span = rig.layer.host_blocks().0;
        let mut rng = Rng::new(i as u64);
        for step in 0..10_000 {
            rig.go(drawn(&mut rng, span, 100), false);
            match step % 1000 {
                500 => rig.swap_for_recovered(),
                250 | 251 => rig.idle(),
                _ => {}
            }
        }
        rig.read_everything();
    }
}

#[test]
fn a_recovered_layer_is_the_same_layer() {
    for (i, make) in variants().into_iter().enumerate() {
        same_after_checkpoint(make, i as u64, 60);
    }
}

/// Units are cached as a whole: two discards of half a unit each leave it in the cache, and so does a restart.
#[test]
fn a_unit_discarded_in_halves_stays_cached_over_a_restart() {
    let make =
        || make(20, 24, DiskCacheOptions { cache: 0.2, granularity: 8, ..DiskCacheOptions::default() });
    let (mut layer, mut plan) = (make(), Plan::new(false, false));
    for (op, lba, blocks) in
        [(HostOp::Write, 8, 16), (HostOp::Discard, 8, 4), (HostOp::Discard, 12, 4), (HostOp::Discard, 16, 8)]
    {
        plan.clear();
        layer.submit(SimTime::ZERO, &request(op, lba, blocks), &mut plan);
    }
    let state = |layer: &DiskCache| {
        let mut records = Records::default();
        layer.checkpoint(&mut records);
        records
    };
    let recovered = |records: &Records| {
        let mut layer = make();
        layer.recover(records, &mut Plan::new(false, false));
        layer
    };
    let records = state(&layer);
    let same = recovered(&records);
    assert_eq!([layer.cached, same.cached], [1, 1], "{records:?}");
    assert!(state(&same) == records);
    // A state of before, which did not say so.
    let mut before = Records::default();
    records.changes().for_each(|Record { tag, words: [a, b, c] }| {
        before.push(tag, [a, b, if tag == recover::DISCARD { 0 } else { c }]);
    });
    let before = recovered(&before);
    assert_eq!(before.cached, 0);
    assert!(before.discarded.runs().eq(std::iter::once(8..24)));
}

/// Band N0 belongs to C0 since its write, though nothing of it is cached any more: with all others of C0 it is rewritten, also after a restart.
#[test]
fn a_band_of_which_nothing_is_cached_belongs_to_its_set_over_a_restart() {
    let options =
        DiskCacheOptions { cache: 0.25, dynamic: true, all_associated: true, ..DiskCacheOptions::default() };
    let make = || make(8, 3, options);
    let mut plan = Plan::new(false, false);
    let mut go = |layer: &mut DiskCache, op, lba| {
        plan.clear();
        layer.submit(SimTime::ZERO, &request(op, lba, 1), &mut plan);
        ops(&plan)
    };
    let mut layer = make();
    let writes = [0, 6].map(|lba| go(&mut layer, HostOp::Write, lba));
    go(&mut layer, HostOp::Discard, 0);
    let more = [3, 9, 12].map(|lba| go(&mut layer, HostOp::Write, lba));
    assert_eq!((writes.join(", "), more.join(", ")), ("W 0+1, W 5+1".into(), "W 1+1, W 6+1, W 2+1".into()));
    let mut records = Records::default();
    layer.checkpoint(&mut records);
    let mut recovered = make();
    recovered.recover(&records, &mut Plan::new(false, false));
    let cleaned = [&mut layer, &mut recovered].map(|layer| go(layer, HostOp::Write, 3));
    let rewritten = "Rc 0+3, Rc 10+3, Wc 10+3, Rc 15+3, Wc 15+3, Rc 30+3, Wc 30+3";
    assert!(cleaned[0].starts_with(rewritten), "{}", cleaned[0]);
    assert_eq!(cleaned[0], cleaned[1]);
}

/// Block 0 of N0 is discarded and goes to C1 when it is written again. C0 is cleaned without N0 then, which would take what is cached of
/// it for written home after a restart.
#[test]
fn a_band_that_went_to_another_set_is_not_rewritten_with_the_old_one() {
    let options =
        DiskCacheOptions { cache: 0.25, dynamic: true, all_associated: true, ..DiskCacheOptions::default() };
    let (mut layer, mut plan, mut records) =
        (make(8, 3, options), Plan::new(false, true), Records::default());
    let mut go = |layer: &mut DiskCache, op, lba| {
        plan.clear();
        layer.submit(SimTime::ZERO, &request(op, lba, 1), &mut plan);
        records.append(plan.records());
        ops(&plan)
    };
    let (write, discard) = (HostOp::Write, HostOp::Discard);
    let begin = [(write, 0), (write, 3), (discard, 0), (write, 6), (write, 0), (write, 6)];
    let begin = begin.map(|(op, lba)| go(&mut layer, op, lba));
    assert_eq!(begin.join(", "), "W 0+1, W 5+1, , W 1+1, W 6+1, W 2+1");
    assert_eq!(go(&mut layer, write, 6), "Rc 0+3, Rc 20+3, Wc 20+3, W 0+1");
    let mut recovered = make(8, 3, options);
    recovered.recover(&records, &mut Plan::new(false, false));
    let read = [&mut layer, &mut recovered].map(|layer| {
        let mut plan = Plan::new(false, false);
        layer.submit(SimTime::ZERO, &request(HostOp::Read, 0, 3), &mut plan);
        ops(&plan)
    });
    assert_eq!(read, ["R 6+1, R 11+2"; 2]);
}

/// Partial cleanings never empty the set: bands of which nothing is cached any more leave their slots to others, so that keys stay below
/// what the map can number.
#[test]
fn a_set_has_no_more_slots_than_units_and_one() {
    let make = || {
        let (dynamic, cleaning) = (true, Cleaning::Partial(1));
        make(20, 3, DiskCacheOptions { cache: 0.05, dynamic, cleaning, ..DiskCacheOptions::default() })
    };
    let mut rig = Rig::new(make, medium(20, 3));
    for native in (0..19).chain(0..19) {
        rig.go(request(HostOp::Write, native * 3 + native % 3, 1), false);
        assert!(rig.layer.sets[0].slots() <= 4, "after {native}");
    }
    rig.read_everything();
    rig.swap_for_recovered();
    rig.read_everything();
}

#[test]
fn a_journal_survives_cuts_everywhere() {
    for (i, make) in variants().into_iter().enumerate().skip(6) {
        let mut rig = Rig::new(make, medium(20, 24));
        let span = rig.layer.host_blocks().0;
        let mut rng = Rng::new(77 + i as u64);
        for step in 0..600 {
            rig.go(drawn(&mut rng, span, 40), step > 100);
            if step % 50 == 49 {
                rig.swap_for_recovered();
            }
        }
    }
}

#[test]
#[should_panic(expected = "after a cut")]
fn without_a_journal_a_cut_loses_data_as_published() {
    let mut rig = Rig::new(variants()[0], medium(20, 24));
    let span = rig.layer.host_blocks().0;
    let mut rng = Rng::new(5);
    for _ in 0..600 {
        rig.go(drawn(&mut rng, span, 40), true);
    }
}

/// A step of idle time that is given up behind the journal's write leaves a scratch band that is soon overwritten.
#[test]
fn a_scratch_band_that_is_being_overwritten_is_not_replayed() {
    let mut plan = Plan::new(true, true);
    let held = Record { tag: recover::SCRATCH_BAND, words: [0; 3] };
    let free = Record { tag: recover::SCRATCH_FREE, words: [0; 3] };
    variants()[6]().recover(&[held, free].into_iter().collect(), &mut plan);
    assert!(plan.ops().is_empty());
    variants()[6]().recover(&[held, free, held].into_iter().collect(), &mut plan);
    assert_eq!(plan.ops().len(), 2, "read the scratch band, write the native band");
}

/// Bands begin with a track, and the guard is what the head touches besides: `W - 1` tracks.
#[test]
fn guards_on_a_drive_with_tracks_are_as_wide_as_needed() {
    let he = smrlab_disk::model::load("he2014-example", |_| Err(String::new())).unwrap();
    let tiny = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
    let blocks = |drive: &smrlab_disk::DriveModel, layer: &str| {
        let context = crate::BuildContext::new(std::sync::Arc::new(drive.clone()));
        crate::build(layer, &context).map(|b| b.layer.host_blocks().0)
    };
    // 10 000 tracks of 100 blocks in bands of 4 and 1 track of guard, of which 1 % is cache.
    assert_eq!(blocks(&he, "disk-cache"), Ok(2000 * 400 / 100 * 99));
    // Each third track is lost to the rest of the last track, or the guard: bands of 1.5 tracks take 3.
    assert_eq!(blocks(&he, "disk-cache,band=150"), Ok(3333 / 33 * 33 * 150 - 33 * 150));
    for (layer, k) in
        [("disk-cache,band=48", 2), ("disk-cache,band=100", 2), ("disk-cache,band=20,tracks=4", 4)]
    {
        let context = crate::BuildContext::new(std::sync::Arc::new(tiny.clone()));
        let built = crate::build(layer, &context).unwrap();
        let bands = built.layer.facts().bands.unwrap();
        let track = |pba: Pba| built.drive.geometry().track_of(pba).0;
        for b in 1..bands.len() {
            let (before, this) =
                (bands.band(smrlab_disk::BandId(b - 1)), bands.start(smrlab_disk::BandId(b)));
            let last = track(Pba(before.first.0 + before.blocks.0 - 1));
            assert_eq!(
                track(this),
                last + k,
                "{layer}: band {b} begins {k} tracks behind the last one of band {}",
                b - 1
            );
            assert_eq!(built.drive.geometry().track_start(smrlab_disk::TrackNo(track(this))), this);
        }
    }
}

/// A default that fits: drives of one gigabyte and less are no reason to refuse.
#[test]
fn small_drives_get_smaller_bands() {
    let large = smrlab_disk::model::load("modern-7200", |_| Err(String::new())).unwrap();
    let tiny = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
    // Of `tiny` 70 tracks are left, which are 14 bands of four and a guard; the others have a band a surface anyhow.
    for (drive, blocks) in [(&large, 1 << 21), (&large, 1 << 19), (&large, 1 << 17), (&tiny, 2000)] {
        let drive = drive.shorten(Blocks(blocks)).unwrap();
        let context = crate::BuildContext::new(std::sync::Arc::new(drive));
        let built = crate::build("disk-cache", &context).unwrap_or_else(|e| panic!("{blocks} blocks: {e}"));
        assert!(built.layer.facts().bands.unwrap().len() >= 16, "{blocks} blocks");
        assert!(built.layer.host_blocks().0 > blocks / 4, "{blocks} blocks: {}", built.layer.host_blocks());
    }
}

/// What cleaning leaves nothing of is not compacted.
#[test]
fn no_operation_has_no_blocks() {
    let (all_associated, cleaning) = (true, Cleaning::Partial(2));
    let mut layer = make(
        16,
        6,
        DiskCacheOptions { cache: 0.25, all_associated, cleaning, ..DiskCacheOptions::default() },
    );
    let span = layer.host_blocks().0;
    let (mut rng, mut plan, mut cleaned) = (Rng::new(5), Plan::new(true, true), 0);
    for _ in 0..2000 {
        plan.clear();
        // Few native bands, so that those with cached blocks are fewer than are cleaned.
        let r = HostRequest { op: HostOp::Write, ..drawn(&mut rng, span.min(12), 3) };
        layer.submit(SimTime::ZERO, &r, &mut plan);
        cleaned += plan.cleanings().len();
        assert!(plan.ops().iter().all(|o| o.blocks.0 > 0), "{:?}", plan.ops());
    }
    assert!(cleaned > 10);
}
