use super::disksim;
use crate::mechanics::SeekCurve;
use crate::model::{DriveModel, ReadAhead, WriteBack};
use smrlab_units::{Blocks, Pba, SimTime};

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
    let imported = disksim("small.parv", &|name| match name {
        "small.parv" => Ok(PARV.to_owned()),
        "small.diskspecs" => Ok(SPECS.to_owned()),
        "small.model" => Ok(model.to_owned()),
        "small.seek" => Ok(SEEK.to_owned()),
        _ => Err(format!("{name}: no such file")),
    })?;
    Ok((DriveModel::from_toml(&imported.toml).map_err(|e| e.to_string())?, imported.left_out))
}

#[test]
fn blocks_lie_where_the_layout_puts_them() {
    // Spares at the zone's end (scheme 9): 40 sectors less 5 at the front and 3 spares; a slip takes a spare.
    for (slips, tenth) in [("", 15), ("9", 16), ("9, 39", 16)] {
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
    // Spares in every cylinder (scheme 8), and at the end of the disk (scheme 7).
    let (d, _) = import(&model(8, "17", "")).unwrap();
    assert_eq!(d.geometry().blocks(), Blocks(40 - 5 - 6 + 48));
    let at = |pba| {
        let p = d.geometry().position(Pba(pba));
        (p.cylinder, p.surface, p.sector)
    };
    assert_eq!(
        (at(11), at(12), at(13)),
        ((0, 1, 6), (1, 0, 0), (1, 0, 1)),
        "the slip at 17 is among the spares"
    );
    let (d, _) = import(&model(7, "6", "")).unwrap();
    assert_eq!(d.geometry().blocks(), Blocks(40 - 5 - 1 + 48));
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
    assert_eq!((c.read_hit, c.write_miss, c.done), ([us(300); 2], [us(400); 2], [SimTime::ZERO, us(50)]));
    assert_eq!((c.buffer.segments, c.buffer.segment_blocks, c.buffer.read_ahead_blocks), (4, 32, 16));
    assert_eq!((c.buffer.read_ahead, c.buffer.write_back), (ReadAhead::Segment, WriteBack::On));
    for part in ["1 remapped", "Preseeking level = 1", "Read hit over. after read = 0.2"] {
        assert!(left_out.iter().any(|l| l.contains(part)), "{part}: {left_out:?}");
    }
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let refused = |model: &str| import(model).unwrap_err();
    assert!(refused(&model(9, "", "").replace("dm_layout_g1 {", "dm_layout_g4 {")).contains("dm_layout_g4"));
    assert!(refused(&model(9, "", "").replace("extracted", "lee")).contains("extracted, hplplus10"));
    assert!(
        refused(&model(9, "", "").replace("small.seek", "none.seek")).contains("none.seek: no such file")
    );
    assert!(refused("dm_disk X {\n Model = }").contains("small.model: line 2"));
}
