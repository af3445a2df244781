mod changed;
mod written;

use super::*;
use smrlab_units::{Dir, Pba, SimTime};

fn preset(name: &str) -> DriveModel {
    load(name, |_| Err("no files here".to_owned())).unwrap()
}

fn refused(text: &str) -> String {
    load(text, |_| Err("no such file".to_owned())).unwrap_err().to_string()
}

#[test]
fn every_shipped_drive_is_whole() {
    for entry in DRIVES {
        let d = entry.drive();
        assert_eq!(d.name(), entry.name);
        assert!(!d.spec().summary.is_empty() && d.provenance().len() > 10, "{}", entry.name);
        let silent = d.provenance().iter().find(|p| p.source == super::reader::NOT_STATED);
        assert!(
            silent.is_none(),
            "{}: every number of a shipped drive has its source: {silent:?}",
            entry.name
        );
        d.mechanics(None).unwrap();
        match d.spec().bands.blocks {
            Some(blocks) => d.block_bands(blocks),
            None => d.bands(None),
        }
        .unwrap();
    }
}

/// Sheet 003, 1.1: N = 4, W = 2, 2000 bands, 100 blocks a track, 50 of 100 random-access tracks usable.
#[test]
fn he2014_is_the_papers_example() {
    let b = preset("he2014-example").bands(None).unwrap();
    assert_eq!((b.len(), b.data_blocks()), (2000, Blocks(800_000)));
    assert_eq!(b.random_access().unwrap().usable, 50);
}

/// Sheet 001, 1.2 and common C2: 12 000 regions of 50 000 blocks; 0.8 ms + 4 ms sqrt(d / D) and 120 MB/s.
#[test]
fn cassuto2010_counts_its_size_without_guards() {
    let d = preset("cassuto2010-307gb");
    assert_eq!(d.counted_blocks(), Blocks(600_000_000));
    let b = d.block_bands(Blocks(50_000)).unwrap();
    assert_eq!((b.len(), b.data_blocks()), (12_000, Blocks(600_000_000)));
    assert_eq!(d.block_bands(Blocks(10_000)).unwrap().len(), 60_000);
    assert!(d.block_bands(Blocks(1000)).is_err(), "no room for so many guards");
    let mut m = d.mechanics(None).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Read, Pba(150_000_000), Blocks(8));
    assert_eq!(end.0, 2_800_000 + (4096u64 * 1000).div_ceil(120));
    assert_eq!(d.head_width(), 2, "2000 blocks from any place reach into the next track of 2000");
}

#[test]
fn the_modern_drive_has_its_published_size_and_rates() {
    let d = preset("modern-7200");
    let bytes = d.geometry().blocks().bytes() as f64;
    assert!((bytes / 16.000_900_661e12 - 1.0).abs() < 0.001, "{bytes}");
    let zones: Vec<_> = d.geometry().zones().collect();
    let rate = |sectors: u32| f64::from(sectors) * 512.0 * 120.0 / 1e6;
    assert!((rate(zones[0].sectors) - 261.0).abs() < 0.5);
    // Sequential reads lose only the skews: 16 % at a head switch, 13 % at a next track.
    let mut m = d.mechanics(None).unwrap();
    let n = 4248 * 1000;
    let start = SimTime::from_ms(1000);
    let t = m.service(start, Dir::Read, Pba(0), Blocks(n)).since(start).as_secs_f64();
    let sustained = n as f64 * 512.0 / 1e6 / t;
    assert!((sustained - 261.0 / 1.13).abs() < 2.0, "{sustained} MB/s");
}

#[test]
fn names_paths_and_overrides() {
    let d = preset("tiny,k=3,rpm=5400,write_settle=0.1ms,band_tracks=5");
    assert_eq!((d.head_width(), d.spec().mechanics.rpm, d.spec().bands.tracks), (3, 5400, Some(5)));
    assert_eq!(d.resolved(), "tiny,k=3,rpm=5400,band_tracks=5,write_settle=100us");
    assert_eq!(preset(&d.resolved()).resolved(), d.resolved(), "the resolved form is accepted again");
    let text = DRIVES[3].toml.replace("\"tiny\"", "\"mine\"");
    let d = load("my/drive,1.toml,k=1", |p| {
        if p == "my/drive,1.toml" { Ok(text.clone()) } else { Err(String::new()) }
    });
    let d = d.unwrap();
    assert_eq!((d.name(), d.head_width()), ("mine", 1));
}

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

/// A rate that has no divisor in common with a block's nanoseconds: the product of 2^26 blocks has more than 64 bits.
#[test]
fn long_transfers_at_a_rate_take_as_long_as_they_do() {
    let mut spec = preset("modern-7200").spec().mechanics.clone();
    spec.rate = Some(210_000_001);
    let geometry = preset("modern-7200").geometry().clone();
    let mut mechanics = Mechanics::new(geometry, &spec, Model::NoRotation).unwrap();
    let end = mechanics.service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(1 << 26)).0;
    let transfer = (512_000_000_000u128 << 26).div_ceil(210_000_001) as u64;
    assert_eq!(end, transfer + spec.read_overhead.0, "{}", SimTime(end));
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

/// Each point of a curve counts, of each direction and wherever the longest one is.
#[test]
fn the_longest_time_of_a_curve_is_found_wherever_it_stands() {
    let ms = SimTime::from_ms;
    let points = |a, b, c| vec![(1, ms(a)), (10, ms(b)), (100, ms(c))];
    for longest in 0..3 {
        let with = |at: usize| {
            points([1, 7][usize::from(at == 0)], [1, 7][usize::from(at == 1)], [1, 7][usize::from(at == 2)])
        };
        let (long, short) = (with(longest), points(1, 2, 3));
        let three =
            |single, average, full_stroke| SeekCurve::ThreePoint { single, average, full_stroke, full: 0 };
        let [single, average, full] = [0, 1, 2].map(|at| ms(if at == longest { 7 } else { 1 }));
        for curve in [
            SeekCurve::Table(long.clone()),
            SeekCurve::Directed { rising: long.clone(), falling: short.clone() },
            SeekCurve::Directed { rising: short.clone(), falling: long.clone() },
            SeekCurve::Nearest { rising: long.clone(), falling: short.clone() },
            SeekCurve::Nearest { rising: short, falling: long },
            three(single, average, full),
        ] {
            assert_eq!(curve.longest_stated(), ms(7), "{curve:?}");
        }
    }
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

/// All that is said of a controller, by hand: blocks are of half a KiB, 512 bytes in 4 us are 128 MB/s.
#[test]
fn what_a_controller_says_of_itself() {
    let us = |a, b| [SimTime::from_us(a), SimTime::from_us(b)];
    let buffer = BufferSpec {
        segments: 7,
        segment_blocks: 257,
        read_ahead_blocks: 96,
        write_segments: 3,
        zero_latency: [true, true],
        ..BufferSpec::PLAIN
    };
    let c = ControllerSpec {
        read_miss: us(1, 2),
        read_hit: us(3, 3),
        write_miss: us(4, 5),
        write_hit: us(6, 7),
        done: us(8, 9),
        bus: us(4, 0),
        buffer,
        ..ControllerSpec::NONE
    };
    let told: Vec<String> =
        c.describe().into_iter().map(|(name, words)| format!("{name}: {words}")).collect();
    assert_eq!(
        told,
        [
            "command: once a command: read 1us (2us after a write), in the buffer 3us; write 4us (5us after a write), \
             into the buffer 6us (7us after a write); at the end 8us and 9us",
            "bus: reads 128.0 MB/s, writes no time, beside the medium",
            "cache: 7 segments of 128.5 KiB",
            "read-ahead: segment, 48 KiB at most",
            "write cache: on, 3 writes; flush and FUA wait for the medium, what was not flushed may be lost with the power",
            "zero latency: reads and writes",
        ]
    );
}

/// A buffer's segments have blocks, and what it costs is told for reads and for writes.
#[test]
fn a_buffer_is_checked_and_described() {
    let mut spec = preset("seagate-exos-x24").spec().clone();
    let mut c = spec.controller.unwrap();
    c.done = [SimTime::from_us(10), SimTime::from_us(20)];
    let told = c.describe().into_iter().find(|d| d.0 == "command").unwrap().1;
    assert!(told.ends_with(&format!("at the end {} and {}", c.done[0], c.done[1])), "{told}");
    let of = |c: &ControllerSpec, name: &str| {
        c.describe().into_iter().find(|d| d.0 == name).map(|d| d.1.chars().take(24).collect::<String>())
    };
    c.buffer.zero_latency = [false, true];
    let some = ["cache", "read-ahead", "write cache", "zero latency"].map(|name| of(&c, name).unwrap());
    assert!(some[0].contains(" segments of ") && some[2].starts_with("on, "), "{some:?}");
    assert_eq!(
        (c.buffer.read_ahead.name(), some[3].as_str()),
        (some[1].split(',').next().unwrap(), "writes")
    );
    let off = ControllerSpec { buffer: BufferSpec::OFF, ..c };
    assert_eq!(
        (of(&off, "cache").unwrap().as_str(), of(&off, "read-ahead"), of(&off, "write cache")),
        ("off", None, None)
    );
    c.buffer.segment_blocks = 0;
    spec.controller = Some(c);
    let e = DriveModel::new(spec, Vec::new()).unwrap_err().to_string();
    assert!(e.contains("controller.buffer.segment_blocks: 0 is not accepted"), "{e}");
}

#[test]
fn a_shortened_drive_keeps_its_first_cylinders() {
    let d = preset("tiny").shorten(Blocks(1300)).unwrap();
    let zones: Vec<_> = d.geometry().zones().map(|z| (z.tracks, z.sectors)).collect();
    assert_eq!(zones, [(40, 32), (1, 24)]);
    let spared = DRIVES[3].toml.replace("[40, 32]", "[40, 32, 2, 10]");
    let d = DriveModel::from_toml(&spared).unwrap();
    assert_eq!(d.geometry().zones().next().unwrap().tracks, 30, "ten cylinders are spare");
    let zones: Vec<_> = d.shorten(Blocks(25 * 30)).unwrap().geometry().zones().map(|z| z.tracks).collect();
    assert_eq!(zones, [25], "30 of 32 sectors hold blocks");
    let d = preset("cassuto2010-307gb,capacity=1%");
    assert_eq!((d.counted_blocks(), d.geometry().blocks()), (Blocks(6_000_000), Blocks(7_200_000)));
    let mut m = d.mechanics(None).unwrap();
    let end = m.service(SimTime::ZERO, Dir::Read, Pba(6_000_000), Blocks(3));
    assert_eq!(end.0, 4_800_000 + 12_800, "C2 is relative to the drive's size");
}

#[test]
fn an_outward_drive_is_cut_at_its_outer_end() {
    let text = DRIVES[3]
        .toml
        .replace("s_od = { value = 1", "s_od = { value = 2")
        .replace("s_id = { value = 2", "s_id = { value = 1");
    let d = DriveModel::from_toml(&text).unwrap();
    assert_eq!(d.geometry().position(Pba(0)).cylinder, 119, "PBAs rise outwards");
    let short = d.shorten(Blocks(640 + 24)).unwrap();
    let zones: Vec<_> = short.geometry().zones().map(|z| (z.tracks, z.sectors)).collect();
    assert_eq!((zones, short.head_width()), (vec![(40, 16), (1, 24)], 2));
}

#[test]
fn cmr_is_the_same_drive_with_k_1() {
    let d = preset("he2014-example");
    let cmr = d.with_tracks(1).unwrap();
    assert_eq!((cmr.head_width(), cmr.geometry().blocks()), (1, d.geometry().blocks()));
    assert_eq!(preset("cassuto2010-307gb,k=1").head_width(), 1);
}

/// What the writer writes, the reader reads: every shipped drive, and one with everything that they do not have.
#[test]
fn drives_are_written_and_read_back() {
    for entry in DRIVES {
        let drive = entry.drive();
        let text = write(drive.spec(), &|_| ("assumed", "a \"test\"".to_owned()));
        let again = DriveModel::from_toml(&text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", entry.name));
        assert_eq!(again.spec(), drive.spec(), "{}", entry.name);
    }
}

#[test]
fn numbers_may_stand_alone_and_count_as_assumed() {
    let whole = DRIVES[3].toml;
    let start = whole.find("rpm = {").unwrap();
    let end = start + whole[start..].find('\n').unwrap();
    let with = |text: &str| DriveModel::from_toml(&format!("{}{text}{}", &whole[..start], &whole[end..]));
    for text in ["rpm = 6000", "rpm = \"6000 1/min\"", "rpm = { value = 6000, unit = \"1/min\" }"] {
        let d = with(text).unwrap();
        assert_eq!(d.spec(), DRIVES[3].drive().spec(), "{text}");
        let p = d.provenance().iter().find(|p| p.field == "mechanics.rpm").unwrap();
        assert_eq!((&*p.kind, &*p.value), ("assumed", "6000 1/min"), "{text}");
    }
    let e = with("rpm = 6000\nwrite_head_switch = 2").unwrap_err().to_string();
    assert!(e.contains("mechanics.write_head_switch: 2 is not accepted: a number as \"1 ms\""), "{e}");
    assert_eq!(
        with("rpm = 6000\nwrite_head_switch = \"2 ms\"").unwrap().spec().mechanics.write_head_switch,
        Some(SimTime::from_ms(2))
    );
    assert!(with("rpm = \"fast\"").is_err() && with("rpm = -1").is_err());
}

#[test]
fn a_drive_is_made_after_another() {
    let base = preset("modern-7200");
    let wanted = Like {
        name: "mine".into(),
        capacity: Some(Blocks(2_000_000_000_000 / 512)),
        rpm: Some(5400),
        zones: Some(25),
        rate: Some((210e6, 100e6)),
        ..Like::default()
    };
    let text = like(&base, &wanted).unwrap();
    let d = DriveModel::from_toml(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let size = d.counted_blocks().bytes() as f64;
    assert!((2.0e12..2.001e12).contains(&size), "{size}");
    let zones = &d.spec().geometry.zones;
    assert_eq!((zones.len(), d.spec().mechanics.rpm), (25, 5400));
    assert_eq!(d.spec().reference, format!("made after {} by smrlab drive new", base.name()));
    // One block more or less on a track of 90 turns a second.
    let rate = |i: usize| f64::from(zones[i].sectors) * 512.0 * 90.0;
    assert!(
        (rate(0) - 210e6).abs() < 46_080.0 && (rate(24) - 100e6).abs() < 46_080.0,
        "{} {}",
        rate(0),
        rate(24)
    );
    // As many surfaces as leave cylinders about as many: the seek curve is that of a drive of this kind.
    let cylinders = |d: &DriveModel| f64::from(d.geometry().cylinders());
    assert!((0.6..1.6).contains(&(cylinders(&d) / cylinders(&base))), "{}", cylinders(&d));
    assert!(d.provenance().iter().all(|p| p.kind == "assumed"));
    assert!(d.provenance().iter().any(|p| p.field == "geometry.surfaces" && p.source.contains("asked of")));
    assert_eq!(like(&base, &Like { zones: Some(0), ..wanted.clone() }).unwrap_err().0[0].field, "zones");
    assert_eq!(like(&base, &Like { rate: Some((1.0, 1.0)), ..wanted }).unwrap_err().0[0].field, "rate");
    // A cylinder in each zone is the least, and that is possible.
    let small = |n| like(&base, &Like { name: "s".into(), capacity: Some(Blocks(n)), ..Like::default() });
    let e = small(1).unwrap_err().0.remove(0);
    assert_eq!(e.field, "capacity");
    let least: u64 = e.problem.rsplit_once("at least ").unwrap().1.trim_end_matches("blk").parse().unwrap();
    assert!(small(least - 1).is_err());
    assert_eq!(DriveModel::from_toml(&small(least).unwrap()).unwrap().counted_blocks(), Blocks(least));
    // A rate alone lays out zones, too.
    let rate = Like { name: "fast".into(), rate: Some((100e6, 50e6)), ..Like::default() };
    let fast = DriveModel::from_toml(&like(&base, &rate).unwrap()).unwrap();
    let outer = f64::from(fast.spec().geometry.zones[0].sectors) * 512.0 * 120.0;
    assert!((outer - 100e6).abs() < 61_440.0, "{outer}");
    // Nothing asked: the same drive.
    let same = like(&base, &Like { name: base.name().into(), ..Like::default() }).unwrap();
    assert_eq!(DriveModel::from_toml(&same).unwrap().spec().geometry, base.spec().geometry);
}

/// What a controller accepts ends where it is said to.
#[test]
fn bounds_of_a_controller_are_accepted_and_no_more() {
    let accepts = |change: &dyn Fn(&mut ControllerSpec)| {
        let mut c = ControllerSpec { buffer: BufferSpec::PLAIN, ..ControllerSpec::NONE };
        change(&mut c);
        c.check("controller").is_ok()
    };
    let second = SimTime::from_ms(1000);
    for more in [0, 1] {
        let fits = more == 0;
        assert_eq!(accepts(&|c| c.read_settle[1] = second + SimTime(more)), fits);
        assert_eq!(accepts(&|c| c.read_gather = 1000 + more as u32), fits);
        assert_eq!(accepts(&|c| c.buffer.segments = 65_536 + more as u32), fits);
        assert_eq!(accepts(&|c| c.buffer.write_segments = 32 + more as u32), fits, "of 32 segments");
        assert_eq!(accepts(&|c| c.buffer.segment_blocks = (1 << 24) + more as u32), fits);
    }
    assert!(!accepts(&|c| c.buffer.write_segments = 0), "room for a write at least");
    assert!(accepts(&|c| (c.buffer.write_segments, c.buffer.write_back) = (0, WriteBack::Off)));
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

/// A zone of 30 cylinders of 44 sectors, four of them spare, a defect on which another block lies, and blocks that do not count: what is made after it has zones of the
/// same rate without any of that.
#[test]
fn zones_made_anew_have_nothing_of_the_old_ones() {
    let tiny = preset("tiny");
    let zone = ZoneSpec { spare_sectors: 4, ..ZoneSpec::plain(30, 44) };
    let defects = vec![crate::geometry::Defect { cylinder: 1, surface: 0, sector: 3 }];
    let remaps = vec![crate::geometry::Remap { block: 5, to: defects[0] }];
    let geometry = GeometrySpec { defects, remaps, ..GeometrySpec::single_surface(vec![zone]) };
    let spec = DriveSpec { geometry, counted: Some(Blocks(900)), ..tiny.spec().clone() };
    let base = DriveModel::new(spec, Vec::new()).unwrap();
    let wanted = Like { name: "new".into(), zones: Some(1), capacity: Some(Blocks(1000)), ..Like::default() };
    let made = DriveModel::from_toml(&like(&base, &wanted).unwrap()).unwrap();
    let g = &made.spec().geometry;
    assert_eq!(
        (&g.zones[..], &g.defects[..], made.spec().counted),
        (&[ZoneSpec::plain(25, 40)][..], &[][..], None)
    );
}

/// Sizes to the nearest block, a switch that is off, numbers of 32 bits and of more, seeks over no distance.
#[test]
fn numbers_at_the_edge_are_read_as_they_are_written() {
    let text = DRIVES[3].toml;
    let cache = |line: &str| {
        let text = format!("{text}\n[persistent_cache]\n{line}\n");
        DriveModel::from_toml(&text).unwrap().spec().cache.unwrap()
    };
    assert_eq!(
        [700, 800].map(|n| cache(&format!("packet = \"{n} B\"")).packet),
        [1, 2].map(|n| Some(Blocks(n)))
    );
    assert_eq!([0, 1].map(|n| cache(&format!("bypass = {n}")).bypass), [Some(false), Some(true)]);
    for (cylinders, wide) in [(u64::from(u32::MAX), false), (1 << 32, true)] {
        let e = DriveModel::from_toml(&text.replace("[40, 24]", &format!("[{cylinders}, 24]"))).unwrap_err();
        assert_eq!(e.to_string().contains("below 2^32"), wide, "{e}");
    }
    for (first, fits) in [(0, false), (1, true)] {
        let mut spec = preset("tiny").spec().clone();
        let points = [(first, SimTime(5)), (9, SimTime(7))];
        spec.mechanics.read_seek = SeekCurve::Table(points.to_vec());
        let written = write(&spec, &|_| ("assumed", "a test".to_owned()));
        assert_eq!(DriveModel::from_toml(&written).is_ok(), fits, "{first}");
    }
}
