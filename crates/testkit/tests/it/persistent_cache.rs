//! The persistent cache with the options that make it clean at every turn: on bytes, cut everywhere, stopped and gone on.

use smrlab_stl::{
    BuildContext, Cause, Executor, Facts, HostBuffer, HostRequest, Metadata, OpId, Plan, Records, StepEnd,
};
use smrlab_testkit::{Cuts, Harness, PlainMedium, Workload, drives};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

const VARIANTS: &[&str] = &[
    "persistent-cache",
    "persistent-cache,map_trigger=6,map_limit=9,memory=16blk,slot=0.1,packet=6blk,idle=10ms",
    "persistent-cache,bypass=on,queued=4,packet=12blk,idle=10ms,map_trigger=9,map_limit=12",
    "persistent-cache,whole_bands=on,round=3,map_trigger=4,map_limit=4,bypass=on,slot=0.1",
    "persistent-cache,map_trigger=20,map_limit=20,memory=9blk,slot=0.05,packet=3blk,log=40blk,waits=running,readahead=off",
];

#[test]
fn cuts_lose_nothing_in_any_phase() {
    for text in VARIANTS {
        for drive in ["zones and skew", "tiny", "outwards, three tracks"] {
            let all = drives::all();
            let (_, drive) = all.iter().find(|d| d.0 == drive).expect("a drive of the kit");
            let Ok(mut h) = Harness::new(text, drive, Metadata::Nv) else { continue };
            let losses = Cuts { requests: 60, longest: 40, seed: 9 }.run(&mut h);
            println!("{text}: {losses:?}");
            assert!(losses.cuts > 100, "{text}: {losses:?}");
            assert_eq!((losses.lost, losses.mixed, losses.torn), (0, 0, 0), "{text}: {losses:?}");
        }
    }
}

#[test]
fn a_restart_in_mid_round_changes_nothing() {
    for text in VARIANTS {
        for (name, drive) in drives::all() {
            let run = |restart: Option<bool>| {
                let mut h = Harness::new(text, &drive, Metadata::Nv).ok()?;
                for part in 0..4 {
                    h.exercise(Workload { requests: 100, seed: 20 + part, longest: 60 });
                    if let Some(from_checkpoint) = restart {
                        h.restart(from_checkpoint);
                    }
                }
                Some(h.digest())
            };
            let digests = [None, Some(true), Some(false)].map(run);
            assert!(digests[0] == digests[1] && digests[1] == digests[2], "{text} on {name}: {digests:?}");
        }
    }
}

#[test]
fn every_drive_of_the_kit_keeps_what_it_is_given() {
    for text in VARIANTS {
        let mut fits = 0;
        for (name, drive) in drives::all() {
            println!("{text} on {name}");
            let Ok(mut h) = Harness::new(text, &drive, Metadata::Nv) else { continue };
            fits += 1;
            h.exercise(Workload { requests: 300, seed: fits, longest: u64::MAX });
            h.exercise(Workload { requests: 1_500, seed: 100 + fits, longest: 200 });
        }
        assert!(fits >= 3, "{text} fits on {fits} of the kit's drives only");
    }
}

/// A read with no round under way opens the one that is due, and the request behind it is the first to wait for that.
#[test]
fn a_read_does_not_wait_for_the_round_that_it_opens() {
    let text = "persistent-cache,map_trigger=4,map_limit=1000,idle=off";
    let mut layer = smrlab_stl::build(text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
    let (mut plan, mut rng) = (Plan::new(false, true), smrlab_units::rng::Rng::new(5));
    let (mut taken, mut cleaned, mut steps, mut opened) = (0, 0, 0, 0);
    for _ in 0..2_000 {
        let op = if rng.below(2) == 0 { HostOp::Read } else { HostOp::Write };
        let request = HostRequest::new(op, Lba(rng.below(layer.host_blocks().0)), Blocks(1));
        plan.clear();
        layer.submit(SimTime::ZERO, &request, &mut plan);
        let counted = smrlab_stl::counted(&*layer);
        let count = |name: &str| counted.get(name).unwrap_or(0);
        let (under_way, waited) = (taken > cleaned, count("cleaning_sub_steps") - steps);
        // Records with tag 3 take a band.
        let takes = plan.records().iter().filter(|r| r.tag == 3).count() as u64;
        if op == HostOp::Read {
            assert_eq!(waited, u64::from(under_way), "a read waits for one sub-step of a round under way");
            opened += u64::from(!under_way && takes > 0);
        } else {
            assert_eq!(waited > 0, under_way || takes > 0, "a write waits for the round that it opens");
        }
        taken += takes;
        (cleaned, steps) = (count("bands_cleaned"), count("cleaning_sub_steps"));
    }
    assert!(opened > 5, "{opened} rounds opened by reads that did not wait");
}

/// Requests wait when the map is full of packets, long before the log is full of blocks.
#[test]
fn a_cache_is_as_full_as_its_map_or_as_its_log() {
    let text = "persistent-cache,map_trigger=90,map_limit=100,idle=off";
    let mut layer = smrlab_stl::build(text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
    let share = |facts: Facts<'_>| {
        let (used, all) = facts.fill().unwrap();
        (used.0 as f64 / all.0 as f64, facts.cached.unwrap().0)
    };
    let (mut plan, apart) = (Plan::new(false, false), layer.host_blocks().0 / 4);
    for packet in 1..=4 {
        plan.clear();
        let write = HostRequest::new(HostOp::Write, Lba((packet - 1) * apart), Blocks(1));
        layer.submit(SimTime::ZERO, &write, &mut plan);
        let (full, blocks) = share(layer.facts());
        let all = layer.facts().cache.unwrap().0 as f64;
        assert!((full - packet as f64 / 100.0).abs() <= 1.0 / all || full == blocks as f64 / all, "{full}");
        assert!(full >= packet as f64 / 100.0 - 1.0 / all && blocks == packet, "{full} {blocks}");
    }
    let few = Facts {
        cache: Some(Blocks(1000)),
        cached: Some(Blocks(700)),
        entries: Some((1, 2)),
        ..Facts::default()
    };
    assert_eq!(few.fill(), Some((Blocks(700), Blocks(1000))), "the log is fuller");
    assert_eq!(
        Facts { cached: Some(Blocks(3)), ..few }.fill(),
        Some((Blocks(500), Blocks(1000))),
        "the map is"
    );
}

/// A request of twenty packets, where the map has nine entries: bands go home in its midst, whenever all are in use.
#[test]
fn a_long_write_waits_for_entries_of_the_map() {
    let text = "persistent-cache,packet=6blk,map_trigger=6,map_limit=9,idle=off";
    let mut layer = smrlab_stl::build(text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
    let mut plan = Plan::new(false, true);
    layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(0), Blocks(120)), &mut plan);
    // Records with tag 1 append a packet, those with tag 3 take a band.
    let tags: Vec<u32> = plan.records().iter().map(|r| r.tag).collect();
    let in_a_row = tags.split(|tag| *tag == 3).map(|run| run.iter().filter(|tag| **tag == 1).count());
    assert_eq!(in_a_row.clone().sum::<usize>(), 20);
    assert!(in_a_row.max() <= Some(9), "{tags:?}");
}

/// Every fifth packet waits for the journal, which then holds the four before it.
#[test]
fn the_journal_is_committed_every_so_many_packets() {
    let text = "persistent-cache,journal_every=4,map_trigger=90,map_limit=100,idle=off";
    let mut layer = smrlab_stl::build(text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
    let mut plan = Plan::new(false, false);
    let mut waits = |packet: &u64| {
        plan.clear();
        let write = HostRequest::new(HostOp::Write, Lba(packet * 5), Blocks(1));
        layer.submit(SimTime::ZERO, &write, &mut plan);
        plan.pauses().iter().any(|(_, p)| p.cause == Cause::Journal)
    };
    assert_eq!((1..=13).filter(&mut waits).collect::<Vec<_>>(), [5, 9, 13]);
    let counted = smrlab_stl::counted(&*layer);
    assert_eq!(
        ["packets", "journal_commits"].map(|name| counted.get(name)),
        [Some(13), Some(3)],
        "{counted:?}"
    );
}

/// At a megabyte a second each block of a commit takes 512 us more than where data take no time of their own.
#[test]
fn a_commit_takes_as_long_as_its_data_at_the_rate() {
    let takes = |option: &str, blocks: u64| {
        let text = format!("persistent-cache,idle=off{option}");
        let mut layer = smrlab_stl::build(&text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
        let mut plan = Plan::new(false, false);
        layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(0), Blocks(blocks)), &mut plan);
        plan.stated(OpId(0)).expect("the data of a commit last as the drive says").0
    };
    for blocks in [1, 9] {
        assert_eq!(takes(",commit_rate=1", blocks), takes("", blocks) + blocks * 512_000, "{blocks} blocks");
    }
}

/// Of a layer after writes of so many blocks each to the given place.
fn counter(text: &str, writes: impl Iterator<Item = (u64, u64)>, wanted: &str) -> u64 {
    let mut layer = smrlab_stl::build(text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
    let mut plan = Plan::new(false, false);
    for (lba, blocks) in writes {
        plan.clear();
        layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks)), &mut plan);
    }
    smrlab_stl::counted(&*layer).get(wanted).unwrap()
}

/// So many writes, and so many blocks, go into one packet.
#[test]
fn writes_that_are_queued_share_packets_as_far_as_they_fit() {
    for (queued, packet, writes, blocks, packets) in [
        (1, 12, 9, 1, 9),
        (2, 12, 9, 1, 5),
        (4, 12, 9, 1, 3),
        (4, 12, 6, 5, 3),
        (4, 12, 6, 6, 3),
        (4, 12, 6, 7, 6),
    ] {
        let text = format!("persistent-cache,queued={queued},packet={packet}blk,idle=off");
        let found = counter(&text, (0..writes).map(|i| (i * 50, blocks)), "packets");
        assert_eq!(found, packets, "{text}: {writes} writes of {blocks}");
    }
}

/// Packets whose blocks were all written again need no cleaning, however many there are; live ones do, from the trigger on.
#[test]
fn a_round_begins_when_too_many_packets_are_live() {
    let text = "persistent-cache,map_trigger=6,map_limit=9,idle=off";
    let live = |n: u64| counter(text, (0..40).map(|i| (i % n * 8, 8)), "bands_cleaned");
    assert_eq!((live(1), live(6)), (0, 0));
    assert!(live(7) > 0);
}

/// A packet is collected once for a band, however many of its writes lie there and whatever phases need them.
#[test]
fn a_packet_is_collected_once_for_a_band() {
    for memory in ["", ",memory=16blk"] {
        let collected = |writes: &[u64]| {
            let text = format!(
                "persistent-cache,queued=4,packet=12blk,map_trigger=1,map_limit=9,round=1,idle=off{memory}"
            );
            let mut layer =
                smrlab_stl::build(&text, &BuildContext::new(drives::preset("tiny"))).unwrap().layer;
            let far = layer.host_blocks().0 - 1;
            let (mut plan, mut collected) = (Plan::new(false, false), Vec::new());
            // The fifth write is a packet of its own; the reads that follow wait for a sub-step each.
            let mut writes = writes.to_vec();
            writes.resize(4, far);
            let writes = writes.into_iter().chain([far]).map(|lba| (HostOp::Write, lba));
            for (op, lba) in writes.chain((0..40).map(|_| (HostOp::Read, far))) {
                plan.clear();
                layer.submit(SimTime::ZERO, &HostRequest::new(op, Lba(lba), Blocks(1)), &mut plan);
                let pauses = plan.pauses().iter().filter(|(_, pause)| pause.cause == Cause::Clean);
                collected.extend(pauses.map(|(_, pause)| pause.time));
            }
            collected
        };
        assert_eq!(collected(&[0, 10, 20, 30]), collected(&[0]), "{memory}");
        assert_eq!(collected(&[0]).len(), 1, "{memory}");
    }
}

/// What the power leaves of blocks that were flushed at home, behind a stream that is written directly, after `change` made them forgettable
/// and the stream went on over the track before them: the medium has that write, and no record behind the last fence or flush.
fn left_behind_a_stream(change: HostOp) -> (Vec<u8>, [Vec<u8>; 2]) {
    let context = BuildContext::new(drives::preset("tiny"));
    let text = "persistent-cache,bypass=on,idle=10ms";
    let build = || smrlab_stl::build(text, &context).unwrap().layer;
    let (mut layer, drive) = (build(), &context.drive);
    let mut medium = PlainMedium::new(drive.geometry(), drive.interference());
    let (mut plan, mut exec, mut records) = (Plan::new(true, true), Executor::default(), Records::default());
    let (mut durable, now) = (0, SimTime::ZERO);
    let behind = |op| HostRequest::new(op, Lba(32), Blocks(32));
    let steps = [
        (Some(HostRequest::new(HostOp::Write, Lba(0), Blocks(8))), 1u8),
        (Some(behind(HostOp::Write)), 2),
        (None, 0),
        (Some(HostRequest::flush()), 0),
        (Some(behind(change)), 3),
        (Some(HostRequest::new(HostOp::Write, Lba(8), Blocks(24))), 4),
    ];
    for (request, fill) in steps {
        let mut go = |layer: &mut dyn smrlab_stl::TranslationLayer, plan: &Plan, data: &[u8]| {
            if plan.fences().contains(&0) {
                durable = records.len() + plan.records_within(0).count();
            }
            let Ok(()) = exec.run(plan, HostBuffer::Write(data), &mut medium);
            records.append(plan.records());
            if request.is_some_and(|r| r.op == HostOp::Flush) {
                durable = records.len();
                layer.durable();
            }
        };
        if let Some(r) = request {
            plan.clear();
            layer.submit(now, &r, &mut plan);
            go(&mut *layer, &plan, &vec![fill; r.blocks.bytes() as usize]);
            continue;
        }
        while layer.background_after().is_some() {
            plan.clear();
            layer.background(now, &mut plan);
            go(&mut *layer, &plan, &[]);
            layer.background_end(StepEnd::Done);
        }
    }
    assert_eq!(
        smrlab_stl::counted(&*layer).get("bypassed_blocks"),
        Some(32),
        "both writes of the stream are direct"
    );
    let mut after = build();
    plan.clear();
    records.truncate(durable);
    after.recover(&records, &mut plan);
    let Ok(()) = exec.run(&plan, HostBuffer::None, &mut medium);
    let mut read = |layer: &mut dyn smrlab_stl::TranslationLayer| {
        let mut out = vec![0x11; 32 * 512];
        plan.clear();
        layer.submit(now, &behind(HostOp::Read), &mut plan);
        let Ok(()) = exec.run(&plan, HostBuffer::Read(&mut out), &mut medium);
        out
    };
    let left = read(&mut *after);
    let new = if change == HostOp::Write { 3 } else { 0 };
    (left, [vec![2; 32 * 512], vec![new; 32 * 512]])
}

#[test]
fn what_lies_behind_a_stream_survives_until_its_successor_is_durable() {
    for change in [HostOp::Discard, HostOp::Write] {
        let (left, may) = left_behind_a_stream(change);
        assert!(may.contains(&left), "{change:?}: {:02x?}", &left[..8]);
    }
}
