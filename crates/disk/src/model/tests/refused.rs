//! What no drive may say, and that it is told by field.

use super::*;
use crate::geometry::Slip;

#[test]
fn what_is_wrong_is_said_with_the_remedy() {
    assert!(refused("modern-7020").contains("did you mean 'modern-7200'?"));
    assert!(refused("tiny,rmp=3").contains("did you mean 'rpm'?"));
    assert!(refused("tiny,rpm=0").contains("from 1 to 100000"));
    assert!(refused("a/b.toml").contains("a/b.toml: no such file"));
    assert!(
        refused("tiny,capacity=1TB").contains("capacity: 1953125000 blocks are not accepted: from 1 to 2880")
    );
    assert!(refused("cassuto2010-307gb,k=2").contains("interference_blocks"));
}

#[test]
fn all_faults_of_a_file_come_at_once_with_their_field() {
    let text = DRIVES[3]
        .toml
        .replace("rpm = { value = 6000, unit = \"1/min\"", "rmp = { value = 6000, unit = \"1/min\"")
        .replace("model = \"full\"", "model = \"ful\"")
        .replace(
            "unit = \"tracks\", kind = \"assumed\", source = \"the narrowest",
            "unit = \"track\", kind = \"guessed\", source = \"the narrowest",
        )
        .replace("[40, 24]", "[40]");
    let e = DriveModel::from_toml(&text).unwrap_err().to_string();
    for part in [
        "mechanics.rmp: unknown field (did you mean 'rpm'?)",
        "mechanics.rpm: missing",
        "mechanics.model: 'ful' is not accepted: one of full, no-rotation, instant (did you mean 'full'?)",
        "interference.s_id.unit: 'track' is not accepted: one of tracks (did you mean 'tracks'?)",
        "interference.s_id.kind: 'guessed' is not accepted: one of spec, measured, fitted, assumed",
        "geometry.zones.list[1]",
    ] {
        assert!(e.contains(part), "{part}\n---\n{e}");
    }
    let broken = DriveModel::from_toml("schema = 1\nname = ").unwrap_err().to_string();
    assert!(broken.starts_with("line 2"), "{broken}");
}

#[test]
fn ranges_are_checked_by_field() {
    let text = DRIVES[3].toml.replace("[40, 24]", "[0, 24]").replace("value = 6000", "value = 0");
    let e = DriveModel::from_toml(&text).unwrap_err().to_string();
    assert!(e.contains("geometry.zones[1].cylinders: 0 is not accepted: a whole number from 1"), "{e}");
    assert!(e.contains("mechanics.rpm: 0 is not accepted"), "{e}");
}

/// A number of more than 32 bits is shown as the user wrote it.
#[test]
fn numbers_that_are_far_too_large_are_shown_as_they_are() {
    let tiny = DRIVES[3].toml;
    let zones = |row: &str| tiny.replacen("[40, 24]", row, 1);
    for (text, part) in [
        (tiny.replacen("rpm = { value = 6000", "rpm = { value = 10000000000", 1), "rpm: 10000000000 is not"),
        (
            tiny.replacen("surfaces = { value = 1,", "surfaces = { value = 5000000000,", 1),
            "surfaces: 5000000000 is not",
        ),
        (
            zones("[5000000000, 24]"),
            "geometry.zones.list[1]: 5000000000 cylinders is not accepted: a whole number below 2^32",
        ),
        (zones("[40, 6000000000]"), "geometry.zones.list[1]: 6000000000 sectors a track is not"),
    ] {
        let e = DriveModel::from_toml(&text).unwrap_err().to_string();
        assert!(e.contains(part) && !e.contains("4294967295"), "{part}\n{e}");
    }
}

/// The clock ends after 292 years: a request for all of the medium has its share of that.
#[test]
fn drives_that_need_months_for_a_pass_are_refused() {
    let tiny = DriveModel::from_toml(DRIVES[3].toml).unwrap();
    let refused = |change: &dyn Fn(&mut DriveSpec)| {
        let mut spec = tiny.spec().clone();
        change(&mut spec);
        DriveModel::new(spec, Vec::new()).err().map(|e| e.to_string())
    };
    let bytes = tiny.geometry().blocks().bytes();
    let least = bytes.div_ceil(50 * 24 * 3600);
    assert_eq!(least, 1, "a tiny drive may be read at a byte a second");
    assert_eq!(refused(&|s| (s.model, s.mechanics.rate) = (Model::NoRotation, Some(1))), None);
    let long = |rate: Option<u64>| {
        refused(&move |s: &mut DriveSpec| {
            s.model = if rate.is_some() { Model::NoRotation } else { Model::Full };
            s.geometry.zones[0].cylinders = 1 << 20;
            s.mechanics.rate = rate;
            s.mechanics.rpm = 1;
        })
    };
    let slow = long(Some(1)).unwrap();
    assert!(
        slow.contains("mechanics.rate: a pass over the whole medium takes") && slow.contains("at most 50"),
        "{slow}"
    );
    assert_eq!(long(Some(1_000_000)), None);
    assert!(
        long(None).unwrap().contains("mechanics.rpm: a pass over"),
        "a revolution of a minute for each of a million tracks"
    );
}

/// What passes under the heads in one transfer is an angle of 63 bits: a drive that fits takes as long as it takes for all of its medium,
/// one that does not is refused; so is a line of seeks that goes on beyond a second.
#[test]
fn drives_whose_transfers_have_no_angle_are_refused() {
    let tiny = DriveModel::from_toml(DRIVES[3].toml).unwrap();
    let with = |cylinders: u32, seek: SeekCurve| {
        let mut spec = tiny.spec().clone();
        spec.geometry.zones.truncate(1);
        spec.geometry.zones[0].cylinders = cylinders;
        (spec.mechanics.rpm, spec.mechanics.read_seek) = (100_000, seek);
        DriveModel::new(spec, Vec::new()).map_err(|e| e.to_string())
    };
    let second = SeekCurve::Constant(SimTime::from_ms(1000));
    let drive = with(80_000, second.clone()).unwrap();
    let mut mechanics =
        Mechanics::new(drive.geometry().clone(), &drive.spec().mechanics, Model::Full).unwrap();
    let end = mechanics.service(SimTime::ZERO, Dir::Read, Pba(0), drive.geometry().blocks()).as_secs_f64();
    assert!((79_999.0..80_200.0).contains(&end), "a second for each track but the first: {end} s");
    let e = with(85_000, second).unwrap_err();
    assert!(e.contains("mechanics.rpm: a pass over the whole medium takes 1.0 days; at most 0.9"), "{e}");
    let steep = SeekCurve::Table(vec![(1, SimTime::from_ms(1)), (2, SimTime::from_ms(2))]);
    assert!(with(1000, steep.clone()).is_ok());
    let e = with(1001, steep).unwrap_err();
    assert!(e.contains("mechanics.read_seek: the longest seek on this drive takes 1001ms"), "{e}");
    // From 100 ms the line loses 1 ms a cylinder: nothing is left at the 100th beyond.
    let falls = vec![(1, SimTime::from_ms(101)), (2, SimTime::from_ms(100))];
    assert!(with(101, SeekCurve::Table(falls.clone())).is_ok());
    let e = with(102, SeekCurve::Table(falls.clone())).unwrap_err();
    assert!(e.contains("falls to 0 before the longest distance on this drive, 102: add a row there"), "{e}");
    let level = vec![(1, SimTime::from_ms(100))];
    let back = SeekCurve::Directed { rising: level.clone(), falling: falls };
    assert!(with(102, back).unwrap_err().contains("mechanics.read_seek: "));
    let none = vec![(1, SimTime::ZERO), (2, SimTime::ZERO)];
    assert!(with(102, SeekCurve::Directed { rising: level, falling: none }).is_ok());
}

/// What is counted is not cut to a whole number.
#[test]
fn half_a_surface_is_refused() {
    let whole = DRIVES[3].toml;
    for (field, was, given) in [
        ("geometry.surfaces", "value = 1, unit = \"surfaces\"", "value = 1.5, unit = \"surfaces\""),
        ("mechanics.rpm", "value = 6000", "value = 6000.25"),
        ("interference.s_id", "value = 2, unit = \"tracks\"", "value = 1.9, unit = \"tracks\""),
        ("bands.tracks", "value = 4, unit = \"tracks\"", "value = 4.5, unit = \"tracks\""),
    ] {
        let text = whole.replace(was, given);
        assert_ne!(text, whole, "{field}");
        let e = DriveModel::from_toml(&text).unwrap_err().to_string();
        let number = given.split([' ', ',']).nth(2).unwrap();
        assert!(e.contains(&format!("{field}: {number} is not accepted: a whole number")), "{e}");
    }
}

#[test]
fn a_seek_of_more_than_a_second_is_refused() {
    let fits = |ms: u64| {
        let text = DRIVES[3].toml.replace("time = { value = 2,", &format!("time = {{ value = {ms},"));
        assert!(ms == 2 || text != DRIVES[3].toml);
        DriveModel::from_toml(&text).map_err(|e| e.to_string())
    };
    assert!(fits(1000).is_ok());
    let e = fits(1001).unwrap_err();
    assert!(e.contains("mechanics.read_seek: a seek of 1001ms is not accepted: from 0 to 1s"), "{e}");
    assert!(e.contains("mechanics.write_seek"), "{e}");
}

/// A seek over a third of the drive takes as long as one to the next cylinder at least, and one over all of it as long as that.
#[test]
fn longer_seeks_take_longer_or_the_file_is_refused() {
    let with = |times: [u64; 3]| {
        let [single, average, full] =
            times.map(|ms| format!("{{ value = {ms}, unit = \"ms\", kind = \"spec\", source = \"t\" }}"));
        let curve = format!(
            "curve = \"three-point\"\nsingle = {single}\naverage = {average}\nfull_stroke = {full}\n"
        );
        let (before, behind) = DRIVES[3].toml.split_once("[mechanics.read_seek]\n").unwrap();
        let behind = &behind[behind.find("\n[").unwrap_or(behind.len())..];
        let text = format!("{before}[mechanics.read_seek]\n{curve}{behind}");
        DriveModel::from_toml(&text).map(drop).map_err(|e| e.to_string())
    };
    for times in [[1, 2, 3], [2, 2, 2], [1, 1, 5]] {
        assert_eq!(with(times), Ok(()), "{times:?}");
    }
    for times in [[3, 2, 5], [1, 5, 3], [5, 3, 1]] {
        let e = with(times).unwrap_err();
        assert!(e.contains("average: not accepted: single <= average <= full_stroke"), "{times:?}: {e}");
    }
}

/// Of the medium all may be counted, and all but a row be set aside; what is given again is there once.
#[test]
fn bounds_of_a_drive_are_accepted_and_no_more() {
    let tiny = preset("tiny");
    let all = tiny.geometry().blocks();
    for (counted, fits) in [(0, false), (1, true), (all.0, true), (all.0 + 1, false)] {
        let spec = DriveSpec { counted: Some(Blocks(counted)), ..tiny.spec().clone() };
        assert_eq!(DriveModel::new(spec, Vec::new()).is_ok(), fits, "{counted} of {all}");
    }
    let blocks = DriveSpec { interference: Interference::blocks(9), ..tiny.spec().clone() };
    let blocks = DriveModel::new(blocks, Vec::new()).unwrap();
    let rows = blocks.geometry().rows();
    assert_eq!([rows - 1, rows].map(|n| blocks.with_random_access(n).is_ok()), [true, false]);
    let twice =
        tiny.with_tracks(2).and_then(|d| d.shorten(Blocks(100))).and_then(|d| d.with_tracks(3)).unwrap();
    assert_eq!(twice.resolved(), "tiny,capacity=100blk,k=3");
    assert_eq!(preset("tiny,k=2").with_waves(3).unwrap().resolved(), "tiny,k=2");
    // Two surfaces of tracks of 40 blocks, one after the other, or cylinder by cylinder.
    for (layout, mean) in [(Layout::Surface, 40), (Layout::Cylinder { alternate: false }, 80)] {
        let zones = vec![ZoneSpec::plain(30, 40)];
        let geometry = GeometrySpec { surfaces: 2, layout, ..GeometrySpec::single_surface(zones) };
        let drive = DriveModel::new(DriveSpec { geometry, ..tiny.spec().clone() }, Vec::new()).unwrap();
        assert_eq!(drive.mean_track(), Blocks(mean));
    }
}

/// Each place that is slipped may cost a way of its own, which takes at most as long as the longest there is: so many of them have the same bound,
/// whatever takes the second.
#[test]
fn a_way_is_as_long_as_whatever_takes_longest() {
    let tiny = DriveModel::from_toml(DRIVES[3].toml).unwrap();
    let (none, half, second) = (SimTime::ZERO, SimTime::from_ms(500), SimTime::from_ms(1000));
    let slow: [(&str, &dyn Fn(&mut MechanicsSpec)); 6] = [
        ("reads", &|m| m.read_seek = SeekCurve::Constant(second)),
        ("writes", &|m| m.write_seek = SeekCurve::Constant(second)),
        ("settling", &|m| m.write_settle = second),
        ("a seek and settling", &|m| (m.write_seek, m.write_settle) = (SeekCurve::Constant(half), half)),
        ("switches", &|m| m.head_switch = second),
        ("switches of writes", &|m| m.write_head_switch = Some(second)),
    ];
    for (what, change) in slow {
        for (slips, fits) in [(75_000, true), (90_000, false)] {
            let mut spec = tiny.spec().clone();
            (spec.geometry.layout, spec.geometry.zones) =
                (Layout::Cylinder { alternate: false }, vec![ZoneSpec::plain(100, 3000)]);
            spec.geometry.slips = (0..slips).map(|i| Slip { zone: 0, first: 3 * i, blocks: 1 }).collect();
            let m = &mut spec.mechanics;
            (m.rpm, m.head_switch, m.write_head_switch, m.write_settle) = (100_000, none, None, none);
            (m.read_seek, m.write_seek) = (SeekCurve::Constant(none), SeekCurve::Constant(none));
            change(m);
            let told = DriveModel::new(spec, Vec::new()).err().map(|e| e.to_string()).unwrap_or_default();
            let said = if fits { "" } else { "mechanics.rpm: a pass over the whole medium takes" };
            assert!(told.is_empty() == fits && told.contains(said), "{what}, {slips} slips: {told}");
        }
    }
}

/// A list that is not there is told once, and not as one that is wrong, too.
#[test]
fn a_list_that_is_missing_is_one_fault() {
    let (before, behind) = DRIVES[3].toml.split_once("[mechanics.read_seek]\n").unwrap();
    let behind = &behind[behind.find("\n[").unwrap_or(behind.len())..];
    let with = |curve: &str| {
        let e = DriveModel::from_toml(&format!("{before}[mechanics.read_seek]\n{curve}{behind}"));
        e.map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(with("curve = \"table\"\nlist = [[1, 100], [9, 900]]\n"), Ok(()));
    let told = with("curve = \"table\"\n").unwrap_err();
    assert!(told.starts_with("mechanics.read_seek.list: missing: ") && !told.contains('\n'), "{told}");
    let told = with("curve = \"directed\"\n[mechanics.read_seek.rising]\n[mechanics.read_seek.falling]\n")
        .unwrap_err();
    let lines: Vec<_> = told.lines().map(|l| l.split_once(": missing").map(|(field, _)| field)).collect();
    let wanted = ["rising", "falling"].map(|way| format!("mechanics.read_seek.{way}.list"));
    assert_eq!(lines, wanted.iter().map(|field| Some(&field[..])).collect::<Vec<_>>(), "{told}");
}
