mod changed;
mod controllers;
mod refused;
mod shipped;
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
