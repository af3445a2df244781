use super::*;
use crate::BuildContext;
use crate::registry::build;
use smrlab_disk::geometry::GeometrySpec;
use smrlab_disk::{DriveModel, Interference, ZoneSpec, model};
use smrlab_units::rng::Rng;
use std::sync::Arc;

/// One zone of tracks of four blocks.
fn layer(tracks: u32, options: &str) -> Box<dyn TranslationLayer> {
    shingled(tracks, 2, options)
}

/// The same, where the head covers `width` tracks.
fn shingled(tracks: u32, width: u32, options: &str) -> Box<dyn TranslationLayer> {
    let mut spec = model::load("tiny", |_| Err(String::new())).unwrap().spec().clone();
    spec.geometry = GeometrySpec::single_surface(vec![ZoneSpec::plain(tracks, 4)]);
    spec.interference = Interference::tracks(width);
    let drive = DriveModel::new(spec, Vec::new()).unwrap();
    build(&format!("smart{options}"), &BuildContext::new(Arc::new(drive))).unwrap().layer
}

fn write(layer: &mut dyn TranslationLayer, plan: &mut Plan, lba: u64, blocks: u64) -> usize {
    plan.clear();
    layer.submit(SimTime::ZERO, &HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks)), plan);
    plan.ops().len()
}

fn counted(layer: &dyn TranslationLayer, wanted: &str) -> u64 {
    crate::counted(layer).get(wanted).unwrap()
}

/// Half full, each track moves at most once, to where its next one is free: from then on updates cost one operation.
#[test]
fn below_the_threshold_every_update_ends_in_place() {
    let (mut layer, mut plan, mut rng) = (layer(400, ""), Plan::new(false, false), Rng::new(9));
    let tracks = 100;
    write(&mut *layer, &mut plan, 0, 4 * tracks);
    for _ in 0..4000 {
        write(&mut *layer, &mut plan, 4 * rng.below(tracks), 1);
    }
    let moved = counted(&*layer, "tracks_moved_by_updates");
    assert!(moved <= tracks, "{moved} moves of {tracks} tracks");
    assert_eq!(counted(&*layer, "tracks_gathered"), 0);
    let all: usize = (0..tracks).map(|t| write(&mut *layer, &mut plan, 4 * t, 1)).sum();
    let few = tracks as usize + 3 * (tracks - moved) as usize;
    assert!(all <= few, "{all} operations for {tracks} updates");
}

/// A full drive moves tracks and gathers free ones, and more so than one with room.
#[test]
fn a_full_drive_gathers() {
    let gathered = |options: &str| {
        let (mut layer, mut plan, mut rng) = (layer(400, options), Plan::new(false, false), Rng::new(9));
        let host = layer.host_blocks().0;
        write(&mut *layer, &mut plan, 0, host);
        (0..2000).for_each(|_| _ = write(&mut *layer, &mut plan, rng.below(host), 1));
        counted(&*layer, "tracks_gathered")
    };
    let (full, room) = (gathered(",overprovision=2%"), gathered(",overprovision=45%"));
    assert!(full > 2000 && room < full / 4, "{full} and {room} tracks gathered");
}

/// What is not written for long ends at the beginning of the drive, in the order of the medium before what is hot.
#[test]
fn cold_tracks_gather_at_the_beginning() {
    let (mut layer, mut plan, mut rng) =
        (layer(200, ",overprovision=10%"), Plan::new(false, false), Rng::new(2));
    let host = layer.host_blocks().0;
    write(&mut *layer, &mut plan, 0, host);
    // Every tenth track is hot.
    (0..3000).for_each(|_| _ = write(&mut *layer, &mut plan, rng.below(host / 40) * 40, 1));
    let place = |track: u64| {
        let read = HostRequest::new(HostOp::Read, Lba(4 * track), Blocks(1));
        layer.locate(&read).unwrap().0.0
    };
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    (0..host / 4).for_each(|t| if t % 10 == 0 { &mut hot } else { &mut cold }.push(place(t)));
    let mean = |of: &[u64]| of.iter().sum::<u64>() / of.len() as u64;
    assert!(mean(&cold) < mean(&hot), "cold at {}, hot at {}", mean(&cold), mean(&hot));
}

/// Tracks 0 to 3 are in rows 0 to 3. While there is room track 0 leaves a free row behind the used one, so that track 3 can be updated in
/// place from then on; where it is to do so only on an empty drive, it goes to row 4, and track 3 has to move.
#[test]
fn updated_tracks_keep_their_distance_while_there_is_room() {
    for (options, row, operations) in [("", 5, 1), (",spread=100%", 4, 3)] {
        let (mut layer, mut plan) = (layer(400, options), Plan::new(false, false));
        write(&mut *layer, &mut plan, 0, 16);
        write(&mut *layer, &mut plan, 0, 1);
        let read = HostRequest::new(HostOp::Read, Lba(0), Blocks(1));
        assert_eq!(layer.locate(&read).unwrap().0.0 / 4, row, "{options}");
        assert_eq!(write(&mut *layer, &mut plan, 13, 1), operations, "{options}");
    }
}

/// A full pool with a wide head, as a random load left it: while most rows that can be written lay behind the runs that were cheapest to
/// move, each gathering left fewer, down to none.
#[test]
fn a_full_pool_gets_its_reserve_back() {
    let (mut layer, mut plan) = (shingled(60, 5, ",overprovision=0%,spread=100%"), Plan::new(false, false));
    // The track of each row, and one.
    let owners = [
        0, 20, 0, 0, 24, 36, 38, 27, 37, 25, 33, 26, 0, 28, 0, 16, 41, 21, 35, 32, 14, 0, 3, 19, 18, 0, 1, 4,
        0, 29, 22, 6, 7, 0, 10, 0, 23, 2, 31, 15, 17, 5, 13, 30, 34, 0, 12, 11, 8, 9,
    ];
    let placed = (0..).zip(owners).filter(|o| o.1 > 0).map(|(row, owner)| records::placed(owner - 1, row));
    layer.recover(&placed.chain([records::moved(8, 49)]).collect(), &mut plan);
    assert_eq!(counted(&*layer, "free_tracks_to_write"), 10);
    write(&mut *layer, &mut plan, 17, 98);
    assert!(counted(&*layer, "free_tracks_to_write") >= 10);
}
