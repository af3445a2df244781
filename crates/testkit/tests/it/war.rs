//! Write amplification in exact counts: He & Du 2014, sections 3 and 4, on the paper's example of 2000 bands of four
//! tracks of 100 blocks and on other bands and heads. Each expected figure is a formula or a sum written out here.

use smrlab_disk::DriveModel;
use smrlab_stl::{BuildContext, HostRequest, Plan, Records, TranslationLayer};
use smrlab_testkit::drives;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::sync::Arc;

const TRACK: u64 = 100;
const BANDS: u64 = 2000;
/// The orders of the paper but 1234.
const NEW: [&str; 3] = ["static-R(4123)", "static-124R(3)", "static-14R(23)"];

fn example() -> Arc<DriveModel> {
    drives::plain(BANDS as u32 * 5, TRACK as u32, 2, 4)
}

struct Run {
    layer: Box<dyn TranslationLayer>,
    plan: Plan,
}

impl Run {
    fn new(text: &str, drive: &Arc<DriveModel>) -> Self {
        let built = smrlab_stl::build(text, &BuildContext::new(Arc::clone(drive))).unwrap();
        Self { layer: built.layer, plan: Plan::new(false, false) }
    }

    /// Operations and extents of a write.
    fn write(&mut self, lba: u64, blocks: u64) -> (u64, u64) {
        self.plan.clear();
        let r = HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks));
        self.layer.submit(SimTime::ZERO, &r, &mut self.plan);
        (self.plan.ops().len() as u64, u64::from(self.plan.extents()))
    }

    /// Writes the first `tracks` tracks of the host's space.
    fn fill(&mut self, tracks: u64) {
        for t in 0..tracks {
            self.write(t * TRACK, TRACK);
        }
    }

    /// Operations of one update of 8 blocks on each of the first `tracks` tracks.
    fn updates(&mut self, tracks: u64) -> u64 {
        (0..tracks).map(|t| self.write(t * TRACK + 40, 8).0).sum()
    }
}

/// Operations and updates where the usage is so many 32nds.
fn war(text: &str, used_32nds: u64) -> (u64, u64) {
    let tracks = 4 * BANDS * used_32nds / 32;
    let mut run = Run::new(text, &example());
    run.fill(tracks);
    (run.updates(tracks), tracks)
}

#[test]
fn every_order_gives_the_host_as_much() {
    for text in NEW.into_iter().chain(["static-1234"]) {
        assert_eq!(Run::new(text, &example()).layer.host_blocks(), Blocks(4 * BANDS * TRACK), "{text}");
    }
}

#[test]
fn the_natural_order_costs_four_at_every_usage() {
    for used in [8, 16, 24, 32] {
        let (ops, updates) = war("static-1234", used);
        assert_eq!(ops, 4 * updates, "{used}/32");
    }
}

#[test]
fn third_tracks_last_costs_five_thirds_up_to_three_quarters() {
    for used in [12, 24] {
        let (ops, updates) = war("static-124R(3)", used);
        assert_eq!(3 * ops, 5 * updates, "{used}/32");
    }
}

#[test]
fn spread_orders_cost_nothing_up_to_one_half() {
    for text in ["static-R(4123)", "static-14R(23)"] {
        for used in [8, 16] {
            let (ops, updates) = war(text, used);
            assert_eq!(ops, updates, "{text} {used}/32");
        }
    }
}

/// B5-B7: between one half and three quarters `(5f + 2(1-f)) / (3f + 2(1-f))`, then `(16f + 5(1-f)) / (4f + 3(1-f))`.
#[test]
fn in_between_bands_with_and_without_the_next_track_mix() {
    for text in NEW {
        for used in [18, 20, 24, 28, 30, 32] {
            if text == "static-124R(3)" && used < 24 {
                continue;
            }
            // Bands that have the track that fills now, and those that do not yet.
            let (full, with, without, updates_without) = if used <= 24 {
                (BANDS * (used - 16) / 8, 5, 2, 2)
            } else {
                (BANDS * (used - 24) / 8, 16, 5, 3)
            };
            let (ops, updates) = war(text, used);
            assert_eq!(ops, with * full + without * (BANDS - full), "{text} {used}/32");
            assert_eq!(updates, (updates_without + 1) * full + updates_without * (BANDS - full));
        }
    }
    let mean = |text, used| war(text, used).0 as f64 / war(text, used).1 as f64;
    assert!((mean("static-14R(23)", 20) - 1.400).abs() < 5e-4);
    assert!((mean("static-R(4123)", 28) - 3.000).abs() < 5e-4);
    assert!((mean("static-124R(3)", 30) - 3.533).abs() < 5e-4);
}

/// The sheet's `third_track_fill`: updates, discards and a recovery count each block of the last phase once.
#[test]
fn the_tracks_that_are_filled_last_are_counted() {
    let counted = |run: &Run| run.layer.facts().last_tracks;
    let all = Blocks(BANDS * TRACK);
    for text in NEW {
        let mut run = Run::new(text, &example());
        for (tracks, want) in [(6000, 0), (7000, 1000 * TRACK), (7500, 1500 * TRACK), (8000, 2000 * TRACK)] {
            run.fill(tracks);
            assert_eq!(counted(&run), Some((Blocks(want), all)), "{text} {tracks}");
        }
        // Over the border of the last phase, and over a track's end within it.
        for (lba, blocks, gone) in [(5950 * TRACK, 100 * TRACK, 50 * TRACK), (6999 * TRACK + 30, 80, 80)] {
            let discard = HostRequest::new(HostOp::Discard, Lba(lba), Blocks(blocks));
            let before = counted(&run).unwrap().0;
            run.plan.clear();
            run.layer.submit(SimTime::ZERO, &discard, &mut run.plan);
            assert_eq!(counted(&run), Some((before - Blocks(gone), all)), "{text}");
        }
        run.write(6999 * TRACK + 90, 20);
        run.write(6000 * TRACK - 10, 30);
        let want = Some((Blocks(2000 * TRACK - 50 * TRACK - 80 + 20 + 20), all));
        assert_eq!(counted(&run), want, "{text}: writes over a track's end, and over the border");
        let mut records = Records::default();
        run.layer.checkpoint(&mut records);
        let mut again = Run::new(text, &example());
        again.layer.recover(&records, &mut Plan::new(false, false));
        assert_eq!(counted(&again), want, "{text}: recovered");
    }
    assert_eq!(counted(&Run::new("static-1234", &example())), None);
    assert_eq!(counted(&Run::new("static,order=R(4321)", &example())), Some((Blocks(0), all)));
}

/// Sheet 1.4: what an update of each position costs, by usage.
#[test]
fn cost_by_position() {
    for (text, used, want) in [
        ("static-1234", 4, vec![7, 5, 3, 1]),
        ("static-124R(3)", 3, vec![3, 1, 1]),
        ("static-14R(23)", 2, vec![1, 1]),
        // In the order of their LBAs: positions 4, 1, 2 and 3.
        ("static-R(4123)", 4, vec![1, 7, 5, 3]),
    ] {
        let mut run = Run::new(text, &drives::plain(5, TRACK as u32, 2, 4));
        run.fill(used);
        let costs: Vec<u64> = (0..used).map(|t| run.write(t * TRACK + 40, 8).0).collect();
        assert_eq!(costs, want, "{text}");
    }
}

/// B8: a cold sequential write.
#[test]
fn a_cold_sequential_write_amplifies_only_third_tracks() {
    for text in NEW.into_iter().chain(["static-1234"]) {
        let mut run = Run::new(text, &example());
        let mut total = (0, 0);
        for request in 0..4 * BANDS * TRACK / 10 {
            let (ops, extents) = run.write(request * 10, 10);
            total = (total.0 + ops, total.1 + extents);
            if request + 1 == 3 * BANDS * TRACK / 10 {
                assert_eq!(total.0, total.1, "{text}: nothing to 75 %");
            }
        }
        let want = if text == "static-1234" { total.1 } else { total.1 * 3 / 2 };
        assert_eq!(total.0, want, "{text}");
    }
}

/// A full band costs N on average whatever the head's width is, and the ripple stops only where
/// `W - 1` tracks in a row are free.
#[test]
fn other_bands_and_heads() {
    for (tracks, width) in [(4, 2), (4, 3), (5, 3), (9, 4), (3, 9)] {
        let drive = drives::plain(tracks + width - 1, TRACK as u32, width, 4);
        let mut run = Run::new(&format!("static,order=1-{tracks}"), &drive);
        run.fill(u64::from(tracks));
        assert_eq!(run.updates(u64::from(tracks)), u64::from(tracks * tracks), "N={tracks} W={width}");
    }
    // Tracks 1, 4 and 5 of 5 in use: a head of three tracks does not reach the 4th from the 1st, one of four does.
    for (width, want) in [(2, 1), (3, 1), (4, 5)] {
        let mut run = Run::new("static,order=14523", &drives::plain(12, TRACK as u32, width, 4));
        run.fill(3);
        assert_eq!(run.write(40, 8).0, want, "W={width}");
    }
    // SFS: bands of 100 tracks (He & Du 2014, section 3).
    let mut run = Run::new("static,order=1-100", &drives::plain(101, TRACK as u32, 2, 4));
    run.fill(100);
    assert_eq!((run.write(40, 8).0, run.updates(100)), (199, 100 * 100));
}

/// Part of a band that is written, with blocks of the request itself behind it: those are not put back.
#[test]
fn what_the_request_overwrites_is_not_put_back() {
    let mut run = Run::new("static-1234", &drives::plain(5, TRACK as u32, 2, 4));
    run.fill(4);
    // Two whole tracks: the third and fourth are read and written.
    assert_eq!(run.write(0, 2 * TRACK), (6, 2));
    // From the middle of the first track to the middle of the second: the second's end is put back in the same write.
    assert_eq!(run.write(TRACK / 2, TRACK), (1 + 1 + 1 + 4, 2));
}
