//! Where units are, and what the map of it says of bands.

use super::super::slots::tests::tiny;
use super::*;
use crate::Records;
use smrlab_disk::geometry::GeometrySpec;
use smrlab_disk::{BandLayout, Bands, Geometry, ZoneSpec};

fn live(h: &Homes, band: u32) -> Vec<u64> {
    h.live_in(band).map(|l| l.unit).collect()
}

#[test]
fn a_unit_lives_where_it_was_written_last() {
    let mut h = Homes::new(tiny(3, 8), true);
    h.open(0);
    h.open(1);
    assert_eq!(h.append(0, 7, 2), None);
    assert_eq!(h.append(0, 9, 3), None);
    assert_eq!((h.live(0), h.weight(0), h.written(0)), (2, 5, 2));
    assert_eq!(h.append(1, 7, 4), Some(0));
    assert_eq!((live(&h, 0), live(&h, 1)), (vec![9], vec![7]));
    assert_eq!((h.live(0), h.weight(0), h.weight(1)), (1, 3, 4));
    assert_eq!(h.find(7).unwrap().slot, h.slots().of(1).start);
    assert_eq!(h.remove(9), Some(0));
    assert_eq!((h.slot(9), h.live(0), h.mapped()), (None, 0, 1));
    h.free(0);
    h.open(0);
    assert_eq!(h.written(0), 0);
}

/// In two bands of some 1200 and 900 slots: also where runs begin and end within leaves of the map, which have 1024 units, and where some of a
/// leaf is there already.
#[test]
fn new_units_together_are_as_one_by_one() {
    let new = || Homes::new(tiny(40, 1), false);
    let (mut together, mut single) = (new(), new());
    for h in [&mut together, &mut single] {
        (0..2).for_each(|band| h.open(band));
    }
    for (band, units) in [(0, 5..6), (0, 1000..2100), (1, 6..9), (1, 2100..2400)] {
        assert!(together.are_new(units.clone()));
        together.append_new(band, units.clone());
        units.for_each(|unit| assert_eq!(single.append(band, unit, 0), None));
        assert_eq!(together.bytes(), single.bytes());
        assert_eq!((together.live(band), together.written(band)), (single.live(band), single.written(band)));
    }
    assert!((0..2).all(|band| live(&together, band) == live(&single, band)));
    assert!((0..4000).all(|unit| together.slot(unit) == single.slot(unit)));
    assert_eq!(together.mapped(), single.mapped());
    let mut taken = new();
    let mut records = Records::default();
    together.checkpoint(&mut records);
    assert!(records.changes().all(|r| taken.take(&r)));
    assert_eq!((taken.mapped(), taken.live(0), taken.written(1)), (1404, 1101, 303));
    assert!((0..2).all(|band| live(&taken, band) == live(&single, band)));
    assert!((0..4000).all(|unit| taken.slot(unit) == single.slot(unit)));
    assert!(!together.are_new(2399..2500) && together.are_new(9..1000) && !together.are_new(9..1001));
    assert!(!Homes::new(tiny(40, 1), true).are_new(0..1), "notes go with each unit");
}

#[test]
fn a_checkpoint_makes_the_same_map() {
    let mut h = Homes::new(tiny(3, 8), true);
    h.open(0);
    h.open(2);
    for (band, unit, note) in [(0, 3, 1), (0, 4, 1), (0, 5, 2), (2, 3, 7)] {
        h.append(band, unit, note);
    }
    let (mut records, mut again) = (Records::default(), Records::default());
    h.checkpoint(&mut records);
    let mut other = Homes::new(tiny(3, 8), true);
    assert!(records.changes().all(|r| other.take(&r)) && !other.take(&Record::default()));
    other.checkpoint(&mut again);
    assert_eq!(records, again);
    assert_eq!(records.len(), 2 + 3, "bands and runs of like notes");
    for band in 0..3 {
        assert_eq!((live(&h, band), h.written(band)), (live(&other, band), other.written(band)));
    }
}

/// Two bands of 24 units and two of 12.
#[test]
fn the_emptiest_band_is_the_first_with_the_least_share_of_live_units() {
    let spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(8, 64), ZoneSpec::plain(8, 32)]);
    let geometry = Geometry::new(spec).unwrap();
    let layout = BandLayout { tracks: 3, head_width: 2, random_access: 0 };
    let mut h = Homes::new(Slots::new(Bands::new(&geometry, layout).unwrap(), 8).unwrap(), false);
    for band in 0..4 {
        h.open(band);
        (0..h.slots().count(band)).for_each(|i| _ = h.append(band, u64::from(100 * band + i), 0));
    }
    assert_eq!([0, 1, 2, 3].map(|band| h.live(band)), [24, 24, 12, 12]);
    h.remove(100);
    assert_eq!(h.emptiest(), None, "none is closed");
    [0, 2, 3].into_iter().for_each(|band| h.close(band));
    assert_eq!(h.emptiest(), None, "nothing is dead in those that are closed");
    h.close(1);
    assert_eq!(h.emptiest(), Some(1));
    h.remove(300);
    assert_eq!(h.emptiest(), Some(3), "11 of 12 are less than 23 of 24");
    h.remove(101);
    assert_eq!(h.emptiest(), Some(1), "22 of 24 are as many, and come first");
    (301..312).for_each(|unit| _ = h.remove(unit));
    assert_eq!(h.emptiest(), Some(3));
    h.free(3);
    assert_eq!(h.emptiest(), Some(1));
    h.open(3);
    assert_eq!(h.emptiest(), Some(1), "an open band is not cleaned");
}

#[test]
fn a_note_follows_from_the_one_before() {
    let mut h = Homes::new(tiny(3, 8), true);
    h.open(0);
    h.open(1);
    h.append(0, 7, 40);
    assert_eq!(h.append_with(1, 7, |note| note / 2), Some(0));
    assert_eq!((h.find(7).unwrap().note, h.weight(0), h.weight(1)), (20, 0, 20));
    h.append_with(1, 8, |note| note + 3);
    assert_eq!(h.weight(1), 23, "one that had no home had no note");
}

#[test]
fn allocated_blocks_are_those_of_mapped_units_within_the_question() {
    let mut h = Homes::new(tiny(3, 8), false);
    h.open(0);
    for unit in [5, 6, 8] {
        h.append(0, unit, 0);
    }
    let mut out = Vec::new();
    h.allocated(42..70, &mut |r| out.push(r));
    assert_eq!(out, [42..56, 64..70]);
}
