mod random;
mod refused;

use super::disksim;
use crate::geometry::Layout;
use crate::mechanics::{Mechanics, SeekCurve};
use crate::model::{DriveModel, ReadAhead, WriteBack};
use smrlab_units::{Blocks, Dir, Pba, SimTime};

const PARV: &str = "# a comment\ndisksim_bus BUS0 {\n type = 1,\n Read block transfer time = 0.25,\n Write block transfer time = 0.0\n}\nsource small.diskspecs\ninstantiate [ disk0 ] as SMALL\ntopology disksim_bus bus0 [ disksim_disk disk0 [] ]\n";
const SPECS: &str = "disksim_disk SMALL {\n Model = source small.model,\n Bulk sector transfer time = 0.1,\n Number of buffer segments = 4,\n Maximum number of write segments = 1,\n Segment size (in blks) = 32,\n Maximum read-ahead (blks) = 16,\n Buffer continuous read = 3,\n Fast write level = 2,\n Preseeking level = 1,\n Read hit over. after write = 0.3,\n Read hit over. after read = 0.2,\n Write miss over. after read = 0.4,\n Write completion overhead = 0.05\n}\n";
const SEEK: &str = "Seek distances measured: 2\n1, 1.5\n10, 3.5\n";

/// Two zones of 2 and 3 cylinders on 2 surfaces; the first with a front and spares of which a slip takes one.
fn model(scheme: u32, slips: &str, more: &str) -> String {
    let zone = |first: u32, last: u32, sectors: u32, offset: u32, front: u32, spares: u32, slips: &str| {
        format!(
            "dm_layout_g1_zone {{ First cylinder number = {first}, Last cylinder number = {last}, Blocks per track = {sectors}, \
             Offset of first block = {offset}.0, Empty space at zone front = {front}, Skew for track switch = 2.0, \
             Skew for cylinder switch = 3, Number of spares = {spares}, slips = [ {slips} ], defects = [ {more} ] }}"
        )
    };
    format!(
        "dm_disk SMALL.model {{ Number of data surfaces = 2, Number of cylinders = 5, Block count = 1,\n\
         Mechanical Model = dm_mech_g1 {{ Seek type = extracted, Full seek curve = small.seek, \
         Add. write settling delay = 0.5, Head switch time = 0.7 # ms\n Rotation speed (in rpms) = 6000, }},\n\
         Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, Sparing scheme used = {scheme}, \
         Rangesize for sparing = 1, Zones = [ {}, {} ] }} }}",
        zone(0, 1, 10, 0, 5, 3, slips),
        zone(2, 4, 8, 4, 0, 0, "")
    )
}

fn import(model: &str) -> Result<(DriveModel, Vec<String>), String> {
    import_with(model, "")
}

fn import_with(model: &str, map: &str) -> Result<(DriveModel, Vec<String>), String> {
    import_all(model, map, PARV, SPECS)
}

fn import_all(model: &str, map: &str, parv: &str, specs: &str) -> Result<(DriveModel, Vec<String>), String> {
    let imported = disksim("small.parv", &|name| match name {
        "small.parv" => Ok(parv.to_owned()),
        "small.diskspecs" => Ok(specs.to_owned()),
        "small.model" => Ok(model.to_owned()),
        "small.seek" => Ok(SEEK.to_owned()),
        "small.map" => Ok(map.to_owned()),
        _ => Err(format!("{name}: no such file")),
    })?;
    Ok((DriveModel::from_toml(&imported.toml).map_err(|e| e.to_string())?, imported.left_out))
}

#[test]
fn blocks_lie_where_the_layout_puts_them() {
    // Spares at the zone's end (scheme 9): 40 sectors less 5 at the front and 3 spares; a slip takes a spare.
    for (slips, tenth) in [("", 15), ("9", 16), ("9, 39", 16), ("36, 37", 15), ("37, 36", 15)] {
        let (d, left_out) = import(&model(9, slips, "")).unwrap();
        assert_eq!(d.geometry().blocks(), Blocks(32 + 48), "{slips}");
        let p = d.geometry().position(Pba(10));
        assert_eq!((p.cylinder, p.surface, p.sector), (0, tenth / 10, tenth % 10), "{slips}");
        assert!(left_out.iter().any(|l| l.contains("Block count = 1")), "{left_out:?}");
        // The second zone begins at an angle of its own: 4 of 8 sectors.
        let p = d.geometry().position(Pba(32));
        assert_eq!((p.cylinder, p.surface, p.sector, p.angle), (2, 0, 0, crate::geometry::REVOLUTION / 2));
    }
    // Tracks as spares and slips (scheme 1): 4 tracks less 3.
    let (d, _) = import(&model(1, "", "")).unwrap();
    assert_eq!(d.geometry().blocks(), Blocks(5 + 48));
    // Spares in every cylinder (scheme 8), and at the end of the disk (scheme 7); a slip among the spares uses up none.
    for slips in ["17", "18", "19", "17, 19", "38"] {
        let (d, _) = import(&model(8, slips, "")).unwrap();
        assert_eq!(d.geometry().blocks(), Blocks(40 - 5 - 6 + 48));
        assert_eq!([11, 12, 13].map(|pba| place(&d, pba)), [(0, 1, 6), (1, 0, 0), (1, 0, 1)], "{slips}");
    }
    // Cylinder 2 is in no zone.
    let apart = model(9, "", "").replace("First cylinder number = 2", "First cylinder number = 3");
    let (d, _) = import(&apart).unwrap();
    assert_eq!((d.geometry().blocks(), place(&d, 31), place(&d, 32)), (Blocks(64), (1, 1, 6), (3, 0, 0)));
    let (d, _) = import(&model(7, "6", "")).unwrap();
    assert_eq!(d.geometry().blocks(), Blocks(40 - 5 - 1 + 48));
}

/// Keys are the same in any letters.
#[test]
fn letters_of_keys_may_be_large() {
    let plain = model(9, "9", "7, 38");
    let large = ["Number of data surfaces", "Head switch time", "Blocks per track", "slips", "Zones"]
        .into_iter()
        .fold(plain.clone(), |text, key| text.replace(key, &key.to_uppercase()));
    assert_eq!(import(&large).unwrap().0.spec(), import(&plain).unwrap().0.spec());
}

#[test]
fn times_and_buffer_are_those_of_the_files() {
    let (d, left_out) = import(&model(9, "", "7, 38")).unwrap();
    let m = &d.spec().mechanics;
    assert_eq!(
        (m.rpm, m.head_switch, m.write_head_switch),
        (6000, SimTime(700_000), Some(SimTime(1_200_000)))
    );
    let us = SimTime::from_us;
    assert_eq!(m.read_seek, SeekCurve::Table(vec![(1, us(1500)), (10, us(3500))]));
    assert_eq!(m.write_seek, SeekCurve::Table(vec![(1, us(2000)), (10, us(4000))]));
    let c = d.spec().controller.unwrap();
    assert_eq!(c.bus, [us(250), us(100)], "the slowest on the way");
    assert_eq!((c.read_hit, c.write_miss), ([us(200), us(300)], [us(400), SimTime::ZERO]), "as extracted");
    assert_eq!(c.done, [SimTime::ZERO, us(50)]);
    assert_eq!((c.buffer.segments, c.buffer.segment_blocks, c.buffer.read_ahead_blocks), (4, 32, 16));
    assert_eq!((c.buffer.read_ahead, c.buffer.write_back), (ReadAhead::Segment, WriteBack::On));
    let told = |left_out: &[String], part: &str| left_out.iter().any(|l| l.contains(part));
    for part in ["zone 1: sector 38 for 7", "Preseeking level = 1"] {
        assert!(told(&left_out, part), "{part}: {left_out:?}");
    }
    assert!(!told(&left_out, "zone 0: sector"), "{left_out:?}");
    let (_, left_out) = import(&model(9, "7", "7, 38")).unwrap();
    assert!(told(&left_out, "zone 0: sector 38 for 7"), "what was slipped is not remapped: {left_out:?}");
}

/// Three cylinders with two tracks of 16 000 sectors, and 32 blocks before them: 96 032 blocks.
#[test]
fn the_summary_has_the_size_in_gigabytes() {
    let (d, _) =
        import(&model(9, "", "").replace("Blocks per track = 8", "Blocks per track = 16000")).unwrap();
    assert_eq!(d.spec().summary, "0.05 GB, 6000 rpm, 2 surfaces, 2 zones; with its buffer and bus");
}

/// Below four cylinders 1 + 2 sqrt(d) ms, from there on 5 + d; the sixth value is what a single one takes, if not -1.
#[test]
fn seeks_by_formula_have_a_single_cylinder_of_their_own_or_none() {
    for (sixth, first) in [("0.5", 0.5), ("-1", 3.0)] {
        let formula =
            format!("Seek type = hpl, HPL seek equation values = [ 4, 1, 2, 5, 1, {sixth} ], Access");
        let text =
            model(9, "", "").replace("Seek type = extracted,", &(formula + " time type = averageRotation,"));
        let (d, left_out) = import(&text).unwrap();
        let ms = |t: f64| SimTime((t * 1e6).round() as u64);
        let seeks = [(1, first), (2, 1.0 + 8f64.sqrt()), (3, 1.0 + 12f64.sqrt()), (4, 9.0), (5, 10.0)];
        assert_eq!(d.spec().mechanics.read_seek, SeekCurve::Table(seeks.map(|(d, t)| (d, ms(t))).to_vec()));
        assert!(
            left_out.contains(&"Access time type = averageRotation: the rotation is followed".to_owned())
        );
    }
}

/// What any file of this format may say, though none of the measured seven does.
#[test]
fn times_are_scaled_and_negative_ones_said() {
    let us = SimTime::from_us;
    let import = |from: &str, to: &str, bus: &str| {
        let parv = PARV.replace("transfer time = 0.25", &format!("transfer time = {bus}"));
        import_all(&model(9, "", ""), "", &parv, &SPECS.replace(from, to)).unwrap()
    };
    let (d, _) = import(
        "Preseeking level = 1",
        "Time scale for overheads = 2.0, Per-request overhead time = 0.1",
        "0.25",
    );
    let c = d.spec().controller.unwrap();
    assert_eq!((c.read_hit, c.write_miss), ([us(600), us(800)], [us(1000), us(200)]));
    assert_eq!(c.done, [SimTime::ZERO, us(100)]);
    // The slowest of disk, bus and controller sets the pace; a negative time never is.
    let bulk = |bulk: &str, bus: &str| {
        let (d, left_out) = import("transfer time = 0.1", &format!("transfer time = {bulk}"), bus);
        let kind = d.provenance().iter().find(|p| p.field == "controller.bus_read").unwrap().kind.clone();
        (d.spec().controller.unwrap().bus[0], kind, left_out.join("; "))
    };
    let (bus, kind, left_out) = bulk("-0.015", "0.25");
    assert_eq!((bus, &*kind), (us(250), "measured"));
    assert!(left_out.contains("Bulk sector transfer time = -0.015: no time is negative"), "{left_out}");
    assert_eq!(left_out.matches("no time is negative").count(), 1, "{left_out}");
    let (bus, kind, left_out) = bulk("-0.015", "0.0");
    assert_eq!((bus, &*kind), (SimTime::ZERO, "assumed"));
    assert!(left_out.contains("the bus takes no time for reads"), "{left_out}");
    let (bus, kind, left_out) = bulk("0.1", "0.0");
    assert_eq!((bus, &*kind), (us(100), "measured"));
    assert!(!left_out.contains("bus"), "{left_out}");
    let ctlr = format!("{PARV}disksim_ctlr CTLR0 {{ type = 1, Bulk sector transfer time = 0.5 }}\n");
    let (d, _) = import_all(&model(9, "", ""), "", &ctlr, SPECS).unwrap();
    assert_eq!(d.spec().controller.unwrap().bus, [us(500); 2], "a controller slower than bus and disk");
    let (_, left_out) = import("Preseeking level = 1", "Enable caching in buffer = 2", "0.25");
    assert!(left_out.iter().any(|l| l == "Enable caching in buffer = 2"), "{left_out:?}");
}

/// A skew is what the file says, in sectors or in revolutions, whole or not, and the drive file says the same.
#[test]
fn skews_are_exact() {
    let turn = crate::geometry::REVOLUTION;
    let skewed = |skew: &str| {
        let (d, _) = import(&model(9, "", "").replace("Skew for track switch = 2.0", skew)).unwrap();
        let toml = crate::model::write(d.spec(), &|_| ("assumed", "a test".to_owned()));
        assert_eq!(DriveModel::from_toml(&toml).unwrap().spec().geometry, d.spec().geometry, "{skew}");
        d.spec().geometry.zones.iter().map(|z| z.skew.unwrap().track).collect::<Vec<_>>()
    };
    // Of ten and of eight sectors.
    assert_eq!(skewed("Skew for track switch = 2.0"), [turn / 5, turn / 4]);
    assert_eq!(skewed("Skew for track switch = 2.5"), [turn / 4, turn * 5 / 16]);
    assert_eq!(skewed("Skew for track switch = -2.5"), [turn * 3 / 4, turn * 11 / 16]);
    assert_eq!(skewed("Skew units = revolutions, Skew for track switch = 0.2055"), [turn / 10_000 * 2055; 2]);
    assert_eq!(crate::geometry::angle_of(3.0, 7), turn * 3 / 7 + 1, "never less");
}

fn place(d: &DriveModel, pba: u64) -> (u32, u32, u32) {
    let p = d.geometry().position(Pba(pba));
    (p.cylinder, p.surface, p.sector)
}

#[test]
fn a_remapped_sector_costs_the_way_to_its_spare_and_back() {
    // Sector 7 of the first zone (block 2, behind 5 at the front) lies on the spare sector 38: cylinder 1, surface 1, sector 8.
    let (d, _) = import(&model(9, "", "7, 38")).unwrap();
    assert_eq!((place(&d, 1), place(&d, 2), place(&d, 3)), ((0, 0, 6), (1, 1, 8), (0, 0, 8)));
    assert_eq!(d.geometry().at(0, 0, 7), None);
    assert_eq!(d.geometry().at(1, 1, 8), Some(Pba(2)));
    // 10 ms a turn, 1 ms a sector, the head before block 0 at 5 ms. Block 1 ends at 7 ms; a cylinder away at 8.5 ms; the spare's
    // track begins 7 sectors late, so its sector 8 passes from 15 to 16 ms; back at 17.5 ms; block 3 from 18 to 19 ms.
    let mut m = d.mechanics(None).unwrap();
    let read =
        |m: &mut Mechanics, pba, n| m.service(SimTime::ZERO, Dir::Read, Pba(pba), Blocks(n)).as_ms_f64();
    assert_eq!(read(&mut m.clone(), 1, 1), 7.0);
    assert_eq!(read(&mut m.clone(), 1, 2), 16.0);
    assert_eq!(read(&mut m.clone(), 1, 3), 19.0);
    // On its own: 1.5 ms to the spare, which passes at 5 ms.
    assert_eq!(read(&mut m.clone(), 2, 1), 6.0);
    assert_eq!(read(&mut m, 2, 2), 9.0);
    assert_eq!(m.head().next, Pba(4));
    // On sector 9 it passes from 16 to 17 ms, and the head is back too late for block 3.
    let mut m = import(&model(9, "", "7, 39")).unwrap().0.mechanics(None).unwrap();
    assert_eq!([read(&mut m.clone(), 1, 2), read(&mut m, 1, 3)], [17.0, 29.0]);
    // A spare may lie before it: among those at the front.
    assert_eq!(place(&import(&model(9, "", "7, 3")).unwrap().0, 2), (0, 0, 3));
    // So it is where another zone has no such sectors.
    let both = model(9, "", "7, 38");
    let (first, second) = both.rsplit_once("[ 7, 38 ]").unwrap();
    let (alone, _) = import(&format!("{first}[ ]{second}")).unwrap();
    assert_eq!(alone.spec().geometry, d.spec().geometry);
    // The file that is written says so, too; a shortened drive has no remapped blocks.
    let again =
        DriveModel::from_toml(&crate::model::write(d.spec(), &|_| ("assumed", "a test".to_owned()))).unwrap();
    assert_eq!(again.spec().geometry, d.spec().geometry);
    assert!(d.shorten(Blocks(2)).unwrap().spec().geometry.remaps.is_empty());
}

/// Groups of two cylinders with 10 sectors on the upper surface and 8 on the lower one, twice; then one of three cylinders with 6 of 7
/// sectors, behind a cylinder without data.
const G4: &str = "dm_layout_g4 {
TP = [ 0, 9, 10,  0, 7, 8,  0, 5, 7 ],  # lowest, highest, in a turn
IDX = [
  [ 0, 0, 0.0, 10, 1, 0.1, 20, 2, TRACK, 0, 0,
    20, 1, 0.25, 8, 1, 0.125, 16, -2, TRACK, 1, 1 ],
  [ 0, 0, 0.0, 6, 1, 0.0, 18, 3, TRACK, 2, 0,
    18, 2, 0.5, 6, 1, 0.0, 18, -3, TRACK, 2, 1 ],
  [ 0, 0, 0.0, 36, 2, 0.5, 72, 4, IDX, 0,
    72, 5, 0.75, 36, 3, 0.0, 36, 3, IDX, 1 ]
],
Slips = [ 3, 1, 40, 2 ],
Remaps = [ 5, 2, 2, 0, 4, 10 ] }";

fn with_layout(layout: &str) -> String {
    let g1 = model(9, "", "");
    format!("{}Layout Model = {layout} }}", &g1[..g1.find("Layout Model").unwrap()])
}

#[test]
fn layout_g4_puts_each_surface_where_its_runs_say() {
    let (d, left_out) = import(&with_layout(G4)).unwrap();
    let g = d.geometry();
    assert_eq!((g.blocks(), g.cylinders(), g.tracks()), (Blocks(72 + 36 - 3), 8, 8 + 6));
    assert!(left_out.iter().any(|l| l.contains("the zones give 105")), "{left_out:?}");
    let turn = crate::geometry::REVOLUTION;
    // Block, cylinder, surface, sector, angle in parts of a turn.
    for (pba, cylinder, surface, sector, (n, of)) in [
        (2, 0, 0, 2, (2, 10)),
        (3, 0, 0, 4, (4, 10)), // sector 3 is slipped
        (5, 2, 0, 4, (9, 10)), // remapped with the next; the second group begins half a turn later
        (6, 2, 0, 5, (0, 10)),
        (8, 0, 0, 9, (9, 10)),
        (9, 1, 0, 0, (1, 10)), // the next track begins a tenth later
        (19, 1, 1, 0, (2, 8)), // the lower surface goes outwards
        (27, 0, 1, 0, (3, 8)),
        (35, 2, 0, 0, (5, 10)),
        (39, 2, 0, 6, (1, 10)), // sectors 4 and 5 are slipped
        (53, 3, 1, 0, (6, 8)),
        (69, 5, 0, 0, (3, 4)), // 5.25 sectors
        (75, 6, 0, 0, (3, 4)), // the seventh sector is spare
        (87, 7, 1, 0, (1, 4)), // 1.25 turns
        (104, 5, 1, 5, (27, 28)),
    ] {
        let p = g.position(Pba(pba));
        assert_eq!((p.cylinder, p.surface, p.sector), (cylinder, surface, sector), "block {pba}");
        assert!(p.angle.abs_diff(turn / of * n) < of, "block {pba}: {} of {turn}", p.angle);
    }
    // 6000 rpm: from sector 9 of the first track on to the second one, a cylinder away in 1.5 ms: the tenth of a turn between them
    // (1 ms) is too short, and a whole one is lost.
    let mut m = d.mechanics(None).unwrap();
    let one = m.service(SimTime::ZERO, Dir::Read, Pba(8), Blocks(1));
    let two = d.mechanics(None).unwrap().service(SimTime::ZERO, Dir::Read, Pba(8), Blocks(2));
    assert_eq!((one.as_ms_f64(), two.as_ms_f64()), (10.0, 22.0));
    // Of a shortened drive the first groups are left, with all their tracks.
    let short = d.shorten(Blocks(30)).unwrap();
    assert_eq!((short.geometry().cylinders(), short.geometry().blocks()), (2, Blocks(35)));
    assert_eq!(short.geometry().position(Pba(19)), g.position(Pba(19)));
    // A defect takes the place of a block that is asked for.
    let mut spec = d.spec().clone();
    spec.geometry.slips.clear();
    spec.geometry.remaps.clear();
    spec.geometry.defects = vec![crate::geometry::Defect { cylinder: 0, surface: 0, sector: 3 }];
    let short = DriveModel::new(spec, Vec::new()).unwrap();
    for (asked, there) in [(35, 35), (36, 71), (71, 71), (72, 71 + 36)] {
        assert_eq!(short.shorten(Blocks(asked)).unwrap().geometry().blocks(), Blocks(there), "{asked}");
    }
}

/// A slip counts where it is: at the end of the first zone, at the beginning and the end of the second, and behind all.
#[test]
fn slips_of_a_layout_g4_are_in_the_zones_of_their_blocks() {
    for (slip, blocks, last_of_first, first_of_second, last) in [
        ("71, 1", 107, (2, 1, 6), (5, 0, 0), (5, 1, 5)),
        ("72, 1", 107, (2, 1, 7), (5, 0, 1), (5, 1, 5)),
        ("107, 1", 107, (2, 1, 7), (5, 0, 0), (5, 1, 4)),
        ("108, 1", 108, (2, 1, 7), (5, 0, 0), (5, 1, 5)),
    ] {
        let text = G4.replace("3, 1, 40, 2", slip).replace("5, 2, 2, 0, 4, 10", "");
        let g = import(&with_layout(&text)).unwrap().0;
        let first = if slip == "71, 1" { 71 } else { 72 };
        let places = [first - 1, first, blocks - 1].map(|pba| place(&g, pba));
        assert_eq!((g.geometry().blocks(), places), (Blocks(blocks), [last_of_first, first_of_second, last]));
    }
}

/// Distance and time, a deviation, and what a write takes.
#[test]
fn points_of_seeks_have_two_to_four_columns() {
    let points = |text| super::params::seek_points(text);
    let read = points("Seek distances measured: 3\n1, 1.5\n\n10 3.5 0.2\n20,\t4.5, 0.25 5.5\n");
    assert_eq!(read, Ok(vec![(1, 1.5, None), (10, 3.5, None), (20, 4.5, Some(5.5))]));
    assert_eq!(points("1, 2\n3\n"), Err("line 2: not a distance and a time".to_owned()));
    assert_eq!(points("2, 1.5\r\n4, 2.5\r\n"), Ok(vec![(2, 1.5, None), (4, 2.5, None)]));
    for (text, said) in [
        ("1, 2\n3, x, 4\n", "line 2: not a distance and a time"),
        ("1, 2\n3, nan\n", "line 2: not a distance and a time"),
        ("1, 2\n1, 3\n", "line 2: distance 1 is none behind 1"),
        ("1, 2\n-3, 3\n", "line 2: distance -3 is none behind 1"),
        ("1, 2\n1e300, 3\n", "line 2: distance 1"),
        ("1, 2\n3, -0.5\n", "line 2: -0.5 ms is no time of a seek"),
    ] {
        let e = points(text).unwrap_err();
        assert!(e.starts_with(said), "{text}: {e}");
    }
    assert_eq!(points("none\n"), Err("no point in it".to_owned()));
}

const G2: &str = "dm_layout_g2 { Layout Map File = small.map, Zones = [ dm_layout_g2_zone { First cylinder number = 0, \
    Last cylinder number = 2, First LBN = 0, Last LBN = 21, Blocks per track = 4, Zone Skew = 1.0, Skew units = sectors, \
    Skew for track switch = 1.0, Skew for cylinder switch = 2.0 } ] }";

/// Three cylinders of two surfaces with four sectors each: sector 2 of the second track is slipped, sector 1 of the third one is
/// remapped to the last sector of the disk.
const MAP: &str = "VENDOR\nMODEL\n3 cylinders, 6000 rot, 2 heads\n\
    lbn 0 --> cyl 0, head 0, sect 0, seqcnt 3\nlbn 4 --> cyl 0, head 1, sect 0, seqcnt 1\nlbn 6 --> cyl 0, head 1, sect 3, count 1\n\
    lbn 7 --> cyl 1, head 0, sect 0, seqcnt 0\nlbn 8 --> cyl 2, head 1, sect 3, seqcnt 0\nlbn 9 --> cyl 1, head 0, sect 2, seqcnt 1\n\
    lbn 11 --> cyl 1, head 1, sect 0, seqcnt 3\nlbn 15 --> cyl 2, head 0, sect 0, seqcnt 3\n\
    lbn 19 --> cyl 2, head 1, sect 0, seqcnt 2\nDefect at cyl 0, head 1, sect 2\nDefect at cyl 1, head 0, sect 1\n";

#[test]
fn layout_g2_is_the_map_of_the_drive() {
    let (d, left_out) = import_with(&with_layout(G2), MAP).unwrap();
    assert!(left_out.iter().any(|l| l.contains("the zones give 22")), "{left_out:?}");
    let want =
        [(0, (0, 0, 0)), (5, (0, 1, 1)), (6, (0, 1, 3)), (7, (1, 0, 0)), (8, (2, 1, 3)), (9, (1, 0, 2))];
    for (pba, at) in want.into_iter().chain([(11, (1, 1, 0)), (18, (2, 0, 3)), (21, (2, 1, 2))]) {
        assert_eq!(place(&d, pba), at, "block {pba}");
    }
    // Tracks begin 1, 2, 4, 5, 7 sectors late: the fifth (cylinder 2, surface 0) at 3 of 4.
    assert_eq!(d.geometry().position(Pba(15)).angle, crate::geometry::REVOLUTION / 4 * 3);
    // To and fro: the surfaces of the second cylinder are taken the other way.
    let swapped = MAP
        .replace("cyl 1, head 0", "cyl 1, head x")
        .replace("cyl 1, head 1", "cyl 1, head 0")
        .replace("head x", "head 1");
    let (d, _) = import_with(&with_layout(G2), &swapped).unwrap();
    assert_eq!((place(&d, 7), place(&d, 8), place(&d, 11)), ((1, 1, 0), (2, 1, 3), (1, 0, 0)));
    // A map of one cylinder fits all orders: it has the plainest one.
    let one = "lbn 0 --> cyl 0, head 0, sect 0, seqcnt 3\nlbn 4 --> cyl 0, head 1, sect 0, seqcnt 3\n";
    let (d, _) = import_with(&with_layout(&G2.replace("number = 2", "number = 0")), one).unwrap();
    assert_eq!(d.spec().geometry.layout, Layout::Cylinder { alternate: false });
    let refused = |map: &str| import_with(&with_layout(G2), map).unwrap_err();
    assert!(
        refused(&MAP.replace("lbn 6", "lbn 5")).contains("small.map: line 6: lbn 5, 1 blocks, follows 6")
    );
    let none = MAP.replace("lbn 6", "lbn 6 --> cyl 0, head 1, sect 3, count 0\nlbn 6");
    assert!(refused(&none).contains("small.map: line 6: lbn 6, 0 blocks, follows 6"));
    assert!(refused(&MAP.replace("sect 3, count 1", "sect 4, count 1")).contains("no sector of its zone"));
    assert!(
        refused(
            &MAP.replace("cyl 0, head 0", "cyl 2, head 0").replace(
                "cyl 2, head 0, sect 0, seqcnt 3\nlbn 19",
                "cyl 0, head 0, sect 0, seqcnt 3\nlbn 19"
            )
        )
        .contains("no order")
    );
}
