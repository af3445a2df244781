//! Random drives, written as DiskSim's files by a walk over their sectors, and read again: each block lies where the walk put it.

use super::{G4, PARV, SPECS, import_all, import_with, model, place, with_layout};
use crate::geometry::REVOLUTION;
use crate::model::{ReadAhead, WriteBack};
use smrlab_units::rng::Rng;
use smrlab_units::{Pba, SimTime};
use std::fmt::Write;

struct Zone {
    first: u32,
    last: u32,
    sectors: u32,
    /// In sectors: from track to track of a cylinder, to the next cylinder, and where the first one starts.
    skews: [u32; 3],
}

/// A sector: cylinder, surface, number on the track, and the angle at which it starts in sectors of its zone.
type Sector = (u32, u32, u32, u32);

fn any_zones(rng: &mut Rng) -> Vec<Zone> {
    let mut next = 0;
    let zone = |i: u64| {
        let first = next + if i > 0 { rng.below(3) as u32 } else { 0 };
        let last = first + rng.below(4) as u32;
        next = last + 1;
        let sectors = 8 + rng.below(9) as u32;
        Zone { first, last, sectors, skews: [0; 3].map(|_| rng.below(u64::from(sectors)) as u32) }
    };
    (0..3).map(zone).collect()
}

/// All sectors in the order of the layout.
fn walk(zones: &[Zone], surfaces: u32, to_and_fro: bool) -> Vec<Vec<Sector>> {
    let of = |z: &Zone| {
        let (mut start, mut all) = (z.skews[2], Vec::new());
        for (i, cylinder) in (z.first..=z.last).enumerate() {
            for n in 0..surfaces {
                if i > 0 || n > 0 {
                    start += if n > 0 { z.skews[0] } else { z.skews[1] };
                }
                let surface = if to_and_fro && cylinder % 2 == 1 { surfaces - 1 - n } else { n };
                all.extend((0..z.sectors).map(|s| (cylinder, surface, s, (start + s) % z.sectors)));
            }
        }
        all
    };
    zones.iter().map(of).collect()
}

/// The map of these places, block after block: as far as they follow each other on a track they are one line.
fn map(places: &[Sector]) -> String {
    let mut out = "VENDOR\n".to_owned();
    let mut at = 0;
    while at < places.len() {
        let (cylinder, surface, sector, _) = places[at];
        let follows = |n: &usize| {
            let p = places.get(at + n);
            p.is_some_and(|p| (p.0, p.1, p.2) == (cylinder, surface, sector + *n as u32))
        };
        let n = (1..).find(|n| !follows(n)).unwrap();
        let count = if at % 2 == 0 { format!("seqcnt {}", n - 1) } else { format!("count {n}") };
        let _ = writeln!(out, "lbn {at} --> cyl {cylinder}, head {surface}, sect {sector}, {count}");
        at += n;
    }
    out
}

#[test]
fn a_map_of_any_drive_puts_each_block_on_its_sector() {
    let mut rng = Rng::new(17);
    let mut moved = 0;
    for round in 0..60 {
        let (zones, surfaces) = (any_zones(&mut rng), 1 + rng.below(3) as u32);
        let to_and_fro = rng.one_in(2);
        let (mut places, mut slipped) = (Vec::new(), Vec::new());
        for sector in walk(&zones, surfaces, to_and_fro).concat() {
            if rng.one_in(15) { slipped.push(sector) } else { places.push(sector) }
        }
        // One of the blocks lies on a sector that was left out, two where two of these follow each other.
        let near = |a: &Sector, b: &Sector| (a.0, a.1, a.2 + 1) == (b.0, b.1, b.2);
        let pair = slipped.windows(2).find(|w| near(&w[0], &w[1])).map(|w| w.to_vec());
        let spare = pair.unwrap_or_else(|| slipped[slipped.len() - 1..].to_vec());
        if places.len() > 50 {
            let at = rng.below(places.len() as u64 - 3) as usize;
            places[at..at + spare.len()].copy_from_slice(&spare);
            moved += spare.len();
        }
        let text: String = zones
            .iter()
            .map(|z| {
                format!(
                    "dm_layout_g2_zone {{ First cylinder number = {}, Last cylinder number = {}, Blocks per track = {}, \
                     Zone Skew = {}.0, Skew units = sectors, Skew for track switch = {}, Skew for cylinder switch = {} }},",
                    z.first, z.last, z.sectors, z.skews[2], z.skews[0], z.skews[1]
                )
            })
            .collect();
        let layout = format!(
            "dm_layout_g2 {{ Layout Map File = small.map, Zones = [ {} ] }}",
            text.trim_end_matches(',')
        );
        let layout = with_layout(&layout).replace("surfaces = 2", &format!("surfaces = {surfaces}"));
        let (d, _) =
            import_with(&layout, &map(&places)).unwrap_or_else(|e| panic!("{round}: {e}\n{}", map(&places)));
        assert_eq!(d.geometry().blocks().0, places.len() as u64, "{round}");
        for (pba, p) in (0..).zip(&places) {
            assert_eq!(place(&d, pba), (p.0, p.1, p.2), "{round}: block {pba}");
            let sectors = u64::from(zones.iter().find(|z| z.last >= p.0).unwrap().sectors);
            let off = d.geometry().position(Pba(pba)).angle.abs_diff(u64::from(p.3) * REVOLUTION / sectors);
            assert!(off.min(REVOLUTION - off) < 100, "{round}: block {pba} is off by {off}");
        }
    }
    assert!(moved > 40);
}

/// An index whose children go outwards: the second group of two cylinders lies before the first one, the third before that, and each
/// begins half a turn later.
#[test]
fn children_of_an_index_may_go_outwards() {
    let track = &G4[G4.find("[ 0, 0, 0.0, 10").unwrap()..G4.find("  [ 0, 0, 0.0, 6").unwrap()];
    let layout = format!(
        "dm_layout_g4 {{\nTP = [ 0, 9, 10,  0, 7, 8 ],\nIDX = [ {track}\n [ 0, 4, 0.0, 36, 2, 0.5, 108, -6, IDX, 0 ],\n\
         [ 0, 0, 0.0, 108, 6, 0.0, 216, 12, IDX, 1 ] ] }}"
    );
    let (d, _) = import_with(&with_layout(&layout), "").unwrap();
    let angle = |pba| d.geometry().position(Pba(pba)).angle as f64 / REVOLUTION as f64;
    for (pba, at, turn) in [
        (0, (4, 0, 0), 0.0),
        (10, (5, 0, 0), 0.1),
        (20, (5, 1, 0), 0.25),
        (28, (4, 1, 0), 0.375),
        (36, (2, 0, 0), 0.5),
        (46, (3, 0, 0), 0.6),
        (56, (3, 1, 0), 0.75),
        (72, (0, 0, 0), 0.0),
        (108, (10, 0, 0), 0.0),
        (144, (8, 0, 0), 0.5),
        (179, (8, 1, 7), 0.75),
    ] {
        assert_eq!(place(&d, pba), at, "block {pba}");
        assert!((angle(pba) - turn).abs() < 1e-5, "block {pba}: {}", angle(pba));
    }
}

/// Each word of the buffer and each time of the controller, one at a time, beside the file as it is.
#[test]
fn each_word_of_the_controller_has_its_place() {
    let us = SimTime::from_us;
    let with = |line: &str| {
        let (from, to) = line.split_once(" => ").unwrap_or(("Preseeking level = 1", line));
        let specs = SPECS.replace(from, to);
        assert_ne!(specs, SPECS, "{line}");
        let (d, left_out) = import_all(&model(9, "", ""), "", PARV, &specs).unwrap();
        (d.spec().controller.unwrap(), left_out)
    };
    let plain = with("Low (write) water mark = 0.0").0;
    assert_eq!(plain.read_settle, [SimTime::ZERO, us(750)], "half of the shortest seek");
    assert_eq!((plain.buffer.write_segments, plain.read_gather, plain.write_delay), (1, 0, SimTime::ZERO));
    let b = plain.buffer;
    let off = (b.keeps_requested, b.passing, b.ahead_on_hit, b.zero_latency, b.written_hits);
    assert_eq!(off, (true, false, false, [false; 2], false));
    for (words, read_ahead) in [
        ("0", ReadAhead::Off),
        ("1", ReadAhead::Track),
        ("2", ReadAhead::Cylinder),
        ("3,", ReadAhead::Segment),
        ("4", ReadAhead::TwoTracks),
    ] {
        let words = words.trim_end_matches(',');
        if words != "3" {
            let (c, _) = with(&format!("Buffer continuous read = 3 => Buffer continuous read = {words}"));
            assert_eq!(c.buffer.read_ahead, read_ahead, "{words}");
        }
    }
    for (n, write_back) in [(0, WriteBack::Off), (1, WriteBack::Append)] {
        let (c, _) = with(&format!("Fast write level = 2 => Fast write level = {n}"));
        assert_eq!(c.buffer.write_back, write_back);
    }
    assert!(!with("Read-ahead over requested = 1").0.buffer.keeps_requested);
    assert!(with("Read any free blocks = 1").0.buffer.passing);
    assert!(with("Read-ahead on idle hit = 1").0.buffer.ahead_on_hit);
    assert!(with("Allow read hits on write data = 1").0.buffer.written_hits);
    assert_eq!(with("High (read) water mark = 0.25").0.read_gather, 250);
    assert_eq!(with("Read completion overhead = 0.07").0.done, [us(70), us(50)]);
    let prepared = with("Data preparation overhead = 0.1").0;
    assert_eq!(
        (prepared.read_hit, prepared.read_miss),
        (plain.read_hit.map(|t| t + us(100)), plain.read_miss)
    );
    let extra = "Extradisc command overhead = 0.1, Extradisc disconnect overhead = 0.2, \
                 Extradisc inter-disconnect delay = 0.3, Extradisc 2nd disconnect overhead = 0.4";
    assert_eq!(with(extra).0.write_delay, us(1000));
    assert_eq!(with("Enable caching in buffer = 0").0.buffer, crate::model::BufferSpec::OFF);
    for word in ["Immediate buffer read = 1", "Minimum seek delay = 0.5", "Extradisc seek delta = 2"] {
        assert!(with(word).1.iter().any(|l| l == word), "{word}");
    }
    assert!(!with("Immediate buffer write = 0").1.iter().any(|l| l.contains("Immediate")));
}
