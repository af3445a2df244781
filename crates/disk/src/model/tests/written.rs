//! Drive files field by field: what the writer writes, with one thing changed.

use super::{Like, like, load, preset, refused, write};
use crate::geometry::tests::naive::any_geometry;
use crate::geometry::{Defect, GeometrySpec, Layout, REVOLUTION, Slip};
use crate::interference::{Interference, PhysicalProfile};
use crate::mechanics::{Distance, SeekCurve};
use crate::model::fields::fields;
use crate::model::{
    BandDefaults, BufferSpec, CacheSpec, ControllerSpec, DRIVES, DriveModel, DriveSpec, ReadAhead, WriteBack,
};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, SimTime};

/// A small drive with every table that a file can have, but for the places of other layouts.
fn rich() -> DriveSpec {
    let mut spec = preset("tiny").spec().clone();
    spec.counted = Some(Blocks(2000));
    spec.bands.tracks = Some(4);
    spec.bands.random_access = 3;
    spec.interference = Interference::Physical(PhysicalProfile {
        s_id: 2,
        s_od: 1,
        phi_cw: 3_000_000_000,
        phi_ccw: 6_000_000_000,
        wave: 0,
    });
    spec.geometry = GeometrySpec {
        layout: Layout::Cylinder { alternate: true },
        defects: vec![Defect { cylinder: 2, surface: 0, sector: 7 }],
        slips: vec![Slip { zone: 1, first: 9, blocks: 2 }],
        ..spec.geometry
    };
    spec.mechanics.write_head_switch = Some(SimTime(70));
    spec.mechanics.rate = Some(1_000_000);
    spec.controller = Some(ControllerSpec { buffer: BufferSpec::PLAIN, ..ControllerSpec::NONE });
    spec.cache = Some(CacheSpec {
        log: Some(Blocks(64)),
        bypass: Some(true),
        idle: Some(SimTime(9)),
        ..CacheSpec::default()
    });
    spec
}

fn text(spec: &DriveSpec) -> String {
    write(spec, &|_| ("measured", "here".to_owned()))
}

/// A field that nobody knows is refused in every table, and in every number.
#[test]
fn an_unknown_field_is_refused_wherever_it_stands() {
    let whole = text(&rich());
    assert_eq!(DriveModel::from_toml(&whole).map(|d| d.spec().clone()), Ok(rich()));
    let refused = |changed: &str, place: &str| {
        let e = DriveModel::from_toml(changed).unwrap_err().to_string();
        assert!(e.contains(&format!("{place}: unknown field")), "{place}: {e}");
    };
    refused(&format!("bogus = 1\n{whole}"), "bogus");
    let tables: Vec<&str> = whole.lines().filter_map(|l| l.strip_prefix('[')?.strip_suffix(']')).collect();
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let head = format!("[{table}]\n");
        refused(&whole.replacen(&head, &format!("{head}bogus = 1\n"), 1), &format!("{table}.bogus"));
    }
    let mut numbers = 0;
    let mut table = "";
    for line in whole.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = name;
        }
        let Some((key, _)) = line.split_once(" = { value") else { continue };
        let changed = whole.replacen(line, &line.replacen("{ ", "{ bogus = 1, ", 1), 1);
        let place = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
        refused(&changed, &format!("{place}.bogus"));
        numbers += 1;
    }
    assert!(numbers > 30, "{numbers}");
}

/// The page of drive files says which fields have to be there: without one of these a file is refused by its name, without another not.
#[test]
fn a_field_is_needed_where_its_page_says_so() {
    let whole = text(&rich());
    let (mut needed, mut others) = (0, 0);
    // What a curve needs depends on its word, and a version that is missing is none.
    let depends =
        |path: &str| path == "schema" || path.starts_with("mechanics.read_seek.") && !path.ends_with("curve");
    for field in fields().into_iter().filter(|f| !depends(&f.path)) {
        assert!(!field.doc.is_empty(), "{}", field.path);
        let (table, key) = field.path.rsplit_once('.').unwrap_or(("", &field.path));
        let (mut inside, mut left, mut found) = (table.is_empty(), String::new(), false);
        let mut skip = false;
        for line in whole.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                inside = name == table;
            }
            let this = inside && line.starts_with(&format!("{key} = "));
            found |= this;
            // A list has several lines.
            skip = (skip || this && line.ends_with('[')) && line != "]";
            let left_out = this || skip || found && inside && line == "]";
            if !left_out {
                left.push_str(line);
                left.push('\n');
            }
        }
        if !found {
            continue;
        }
        let answer = DriveModel::from_toml(&left);
        if field.needed {
            let e = answer.map(|_| ()).unwrap_err().to_string();
            assert!(e.contains(&format!("{}: missing", field.path)), "{}: {e}", field.path);
            needed += 1;
        } else {
            let missing =
                answer.err().is_some_and(|e| e.to_string().contains(&format!("{}: missing", field.path)));
            assert!(!missing, "{}", field.path);
            others += 1;
        }
    }
    assert!(needed > 25 && others > 8, "{needed} needed, {others} not");
}

/// A table is written where it says something.
#[test]
fn what_a_drive_does_not_have_is_not_written() {
    let mut spec = rich();
    for (tracks, random_access) in [(None, 0), (None, 3), (Some(4), 0)] {
        (spec.bands.tracks, spec.bands.random_access) = (tracks, random_access);
        let text = text(&spec);
        assert_eq!(text.contains("[bands]"), tracks.is_some() || random_access > 0);
        assert_eq!(text.contains("random_access"), random_access > 0);
        assert_eq!(DriveModel::from_toml(&text).unwrap().spec(), &spec);
    }
    (spec.controller, spec.cache, spec.counted) = (None, None, None);
    let text = text(&spec);
    assert!(
        !["[controller", "[persistent_cache", "counted_blocks"].iter().any(|t| text.contains(t)),
        "{text}"
    );
}

/// Every override of the controller alone, on a drive that has none and on one that has one.
#[test]
fn overrides_of_the_controller_do_what_they_say() {
    let of = |text: &str| preset(text).spec().controller.unwrap();
    let buffer = |text: &str| of(text).buffer;
    let bare = BufferSpec { read_ahead: ReadAhead::Off, write_back: WriteBack::Off, ..BufferSpec::PLAIN };
    assert_eq!(buffer("tiny,cache=on"), BufferSpec::PLAIN);
    assert_eq!(buffer("seagate-exos-x24,cache=off"), BufferSpec::OFF);
    assert_eq!(buffer("seagate-exos-x24,cache=on"), of("seagate-exos-x24,command=1us").buffer, "it has one");
    assert_eq!(of("tiny,cache=off").buffer, BufferSpec::OFF);
    let us = SimTime::from_us(70);
    let c = of("tiny,command=70us");
    assert_eq!([c.read_hit, c.read_miss, c.write_hit, c.write_miss], [[us; 2]; 4]);
    assert_eq!((c.buffer, c.done, c.bus), (BufferSpec::OFF, [SimTime::ZERO; 2], [SimTime::ZERO; 2]));
    assert_eq!(of("tiny,bus=256").bus, [SimTime(2000); 2], "256 MB/s: 512 bytes in 2 us");
    // The size stays where segments are made more or fewer; half of them, rounded up, may hold what is to be written.
    for (segments, blocks, for_writes) in [(7, 4681, 4), (64, 512, 32), (1, 32_768, 1)] {
        let b = buffer(&format!("tiny,segments={segments}"));
        assert_eq!((b.segments, b.segment_blocks, b.write_segments), (segments, blocks, for_writes));
    }
    let b = buffer("tiny,cache_size=1MiB");
    assert_eq!(b, BufferSpec { segment_blocks: 64, read_ahead_blocks: 64, ..bare });
    let b = buffer("tiny,cache_size=64MiB");
    assert_eq!(b, BufferSpec { segment_blocks: 4096, ..bare }, "no more is read ahead than before");
    assert_eq!(buffer("tiny,write_cache=on"), BufferSpec { write_back: WriteBack::On, ..bare });
    assert_eq!(
        buffer("tiny,cache=on,write_cache=off"),
        BufferSpec { write_back: WriteBack::Off, ..BufferSpec::PLAIN }
    );
    assert_eq!(buffer("tiny,read_ahead=track"), BufferSpec { read_ahead: ReadAhead::Track, ..bare });
    assert_eq!(buffer("tiny,zero_latency=on"), BufferSpec { zero_latency: [true; 2], ..bare });
    assert_eq!(buffer("tiny,zero_latency=on,cache=on").zero_latency, [true; 2]);
    // A buffer that reads nothing ahead reads as far as a segment once it is told to.
    let mut spec = rich();
    spec.controller.as_mut().unwrap().buffer.read_ahead_blocks = 0;
    let file = text(&spec);
    let d = load("d.toml,read_ahead=segment", |_| Ok(file.clone())).unwrap();
    assert_eq!(d.spec().controller.unwrap().buffer.read_ahead_blocks, 1024);
}

#[test]
fn overrides_of_the_mechanics_do_what_they_say() {
    let plain = preset("tiny");
    for (key, field) in [
        ("head_switch", (|s| s.mechanics.head_switch) as fn(&DriveSpec) -> SimTime),
        ("write_settle", |s| s.mechanics.write_settle),
        ("read_overhead", |s| s.mechanics.read_overhead),
        ("write_overhead", |s| s.mechanics.write_overhead),
    ] {
        let d = preset(&format!("tiny,{key}=77us"));
        assert_eq!(field(d.spec()), SimTime::from_us(77), "{key}");
        let others = DriveSpec { mechanics: plain.spec().mechanics.clone(), ..d.spec().clone() };
        assert_eq!(&others, plain.spec(), "{key} changes the mechanics alone");
    }
    assert_eq!(preset("tiny,random_access=9").spec().bands.random_access, 9);
    assert_eq!(preset("cassuto2010-307gb,interference_blocks=3000").head_width(), 3);
    assert!(refused("tiny,capacity=1").contains("less than a block"), "{}", refused("tiny,capacity=1"));
    assert!(DRIVES.iter().all(|d| preset(d.name).resolved() == d.name));
}

/// `tiny` turns 100 times a second, with 32 blocks on its outermost tracks and 16 on its innermost ones; 2880 blocks on 120 cylinders. Zones
/// between the two are on a straight line; as many surfaces as leave cylinders about as many, and cylinders until the size is reached.
#[test]
fn zones_of_a_drive_made_after_another_lie_on_a_line() {
    let base = preset("tiny");
    let plain = Like { name: "made".into(), ..Like::default() };
    let made = |wanted: Like| DriveModel::from_toml(&like(&base, &wanted).unwrap()).unwrap();
    let zones = |d: &DriveModel| {
        let of = |z: &crate::geometry::ZoneSpec| (z.cylinders, z.sectors);
        (d.spec().geometry.surfaces, d.spec().geometry.zones.iter().map(of).collect::<Vec<_>>())
    };
    let with = |cylinders, sectors: &[u32]| sectors.iter().map(|n| (cylinders, *n)).collect::<Vec<_>>();
    let five = made(Like { zones: Some(5), ..plain.clone() });
    assert_eq!(zones(&five), (1, with(24, &[32, 28, 24, 20, 16])));
    // 24 tracks of each of 120 blocks of 512 bytes in all; 32 and 16 of them, 100 times a second.
    let summary = "1.475 MB, 6000 rpm, 1 surface, 5 zones from 2 to 1 MB/s, head width 2";
    assert_eq!(five.spec().summary, summary);
    let large = made(Like { zones: Some(5), capacity: Some(Blocks(10_000)), ..plain.clone() });
    assert_eq!(zones(&large), (3, with(28, &[32, 28, 24, 20, 16])), "3.5 times the size");
    let two = made(Like { capacity: Some(Blocks(10_000)), surfaces: Some(2), ..plain.clone() });
    assert_eq!(zones(&two), (2, with(70, &[32, 24, 16])));
    // Twice as fast, the same blocks pass: rates go with the speed, unless they are given.
    let fast = made(Like { zones: Some(3), rpm: Some(12_000), ..plain.clone() });
    assert_eq!(zones(&fast), (1, with(40, &[32, 24, 16])));
    let rated = made(Like {
        zones: Some(3),
        rpm: Some(12_000),
        rate: Some((4_096_000.0, 1_024_000.0)),
        ..plain.clone()
    });
    assert_eq!(zones(&rated), (1, with(39, &[40, 25, 10])));
    let one = made(Like { zones: Some(1), tracks: Some(3), ..plain });
    assert_eq!((zones(&one), one.head_width()), ((1, with(90, &[32])), 3), "the outermost rate");
}

/// Each switch of a buffer alone is written as it is read.
#[test]
fn each_switch_of_a_buffer_has_its_own_word() {
    let change: [fn(&mut BufferSpec); 6] = [
        |b| b.keeps_requested ^= true,
        |b| b.passing ^= true,
        |b| b.ahead_on_hit ^= true,
        |b| b.zero_latency[0] ^= true,
        |b| b.zero_latency[1] ^= true,
        |b| b.written_hits ^= true,
    ];
    let written = change.map(|change| {
        let mut spec = rich();
        let controller = spec.controller.as_mut().unwrap();
        change(&mut controller.buffer);
        let again = DriveModel::from_toml(&text(&spec)).unwrap();
        assert_eq!(again.spec(), &spec);
        text(&spec)
    });
    assert!((1..6).all(|i| !written[..i].contains(&written[i])));
}

/// A drive of any kind: each number that a file can have, drawn.
fn any_drive(rng: &mut Rng) -> DriveSpec {
    let time = |rng: &mut Rng| SimTime(rng.below(9_000_000));
    let points = |rng: &mut Rng| vec![(1 + rng.below(3), time(rng)), (9, time(rng)), (90, time(rng))];
    let curve = |rng: &mut Rng| match rng.below(5) {
        0 => SeekCurve::Constant(time(rng)),
        1 => SeekCurve::Sqrt { base: time(rng), span: time(rng), full: 0 },
        2 => SeekCurve::Table(points(rng)),
        3 => SeekCurve::Nearest { rising: points(rng), falling: points(rng) },
        _ => SeekCurve::Directed { rising: points(rng), falling: points(rng) },
    };
    let (wide, phi) = (2 + rng.below(4) as u32, rng.below(REVOLUTION / 4));
    let [s_id, s_od] = if rng.one_in(2) { [wide, 1] } else { [1, wide] };
    let physical = PhysicalProfile { s_id, s_od, phi_cw: phi / 3, phi_ccw: phi, wave: 0 };
    let interference = match rng.below(3) {
        0 => Interference::blocks(1 + rng.below(9)),
        _ => Interference::Physical(physical),
    };
    let mut geometry = any_geometry(rng);
    geometry.toward = interference.toward();
    for angle in geometry.groups.iter_mut().flat_map(|g| [&mut g.start, &mut g.step]) {
        *angle -= *angle % 60_000;
    }
    for angle in geometry.runs.iter_mut().flat_map(|r| [&mut r.start, &mut r.step]) {
        *angle -= *angle % 60_000;
    }
    let mut spec = DriveSpec { geometry, interference, ..preset("tiny").spec().clone() };
    spec.counted = rng.one_in(2).then(|| Blocks(1 + rng.below(5)));
    spec.bands = BandDefaults {
        tracks: Some(1 + rng.below(9)),
        random_access: 0,
        blocks: Some(Blocks(rng.below(99))),
    };
    let m = &mut spec.mechanics;
    (m.rpm, m.read_seek, m.write_seek) = (3000 + rng.below(9000) as u32, curve(rng), curve(rng));
    m.distance = if rng.one_in(2) { Distance::Blocks } else { Distance::Cylinders };
    (m.head_switch, m.write_settle) = (time(rng), time(rng));
    (m.read_overhead, m.write_overhead) = (time(rng), time(rng));
    m.write_head_switch = rng.one_in(2).then(|| time(rng));
    m.rate = rng.one_in(2).then(|| 1 + rng.below(1 << 30));
    let on = [(); 6].map(|()| rng.one_in(2));
    let buffer = BufferSpec {
        segments: 9 + rng.below(9) as u32,
        segment_blocks: 1 + rng.below(99) as u32,
        write_segments: 1 + rng.below(9) as u32,
        read_ahead: [ReadAhead::Off, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::TwoTracks]
            [rng.below(4) as usize],
        read_ahead_blocks: rng.below(99) as u32,
        keeps_requested: on[0],
        passing: on[1],
        ahead_on_hit: on[2],
        zero_latency: [on[3], on[4]],
        write_back: [WriteBack::Off, WriteBack::Append, WriteBack::On][rng.below(3) as usize],
        written_hits: on[5],
    };
    let mut controller =
        ControllerSpec { read_gather: rng.below(1001) as u32, buffer, ..ControllerSpec::NONE };
    controller.overheads(|_, t, _| *t = time(rng));
    spec.controller = Some(controller);
    spec.cache = Some(any_cache(rng));
    spec
}

fn any_cache(rng: &mut Rng) -> CacheSpec {
    let blocks = |rng: &mut Rng| rng.one_in(2).then(|| Blocks(rng.below(1 << 30)));
    let count = |rng: &mut Rng| rng.one_in(2).then(|| rng.below(1 << 30));
    let real = |rng: &mut Rng| rng.one_in(2).then(|| rng.unit());
    let time = |rng: &mut Rng| rng.one_in(2).then(|| SimTime(rng.below(1 << 30)));
    let on = |rng: &mut Rng| rng.one_in(2).then(|| rng.one_in(2));
    CacheSpec {
        log: blocks(rng),
        slot_tracks: real(rng),
        packet: blocks(rng),
        overhead: blocks(rng),
        map_trigger: count(rng),
        map_limit: count(rng),
        commit_turns: real(rng),
        commit_rate: count(rng),
        commit_overhead: time(rng),
        journal_every: count(rng),
        journal: time(rng),
        round_bands: count(rng),
        collect_turns: real(rng),
        memory: blocks(rng),
        idle: time(rng),
        bypass: on(rng),
        whole_bands: on(rng),
        read_late: blocks(rng),
        one_place: count(rng),
    }
}

/// A file that does not say whether what was asked for stays in the buffer means that it does not.
#[test]
fn what_a_buffer_keeps_may_be_left_out() {
    let mut spec = rich();
    let keeps =
        |text: &str| DriveModel::from_toml(text).unwrap().spec().controller.unwrap().buffer.keeps_requested;
    spec.controller.as_mut().unwrap().buffer.keeps_requested = true;
    let said = text(&spec);
    assert!(keeps(&said) && !keeps(&said.replace("keeps_requested = \"on\"\n", "")));
}

#[test]
fn any_drive_is_read_as_it_is_written() {
    let (mut rng, mut read) = (Rng::new(11), 0);
    while read < 100 {
        let Ok(drive) = DriveModel::new(any_drive(&mut rng), Vec::new()) else { continue };
        read += 1;
        let text = text(drive.spec());
        let again = DriveModel::from_toml(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again.spec(), drive.spec(), "{text}");
    }
}

/// Each text of a file without a letter is refused by its name, and by nothing else.
#[test]
fn an_empty_text_is_refused_wherever_it_stands() {
    let whole = text(&rich());
    let (mut table, mut texts) = ("", 0);
    for (n, line) in whole.lines().enumerate() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = name;
        }
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let place = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
        // A text by itself, or those within a number: its unit, of what kind it is, and where it is from.
        let parts: Vec<&str> = value.split('"').collect();
        for i in (1..parts.len()).step_by(2) {
            let name = parts[i - 1].trim_end_matches(" = ").rsplit([' ', '{']).next().unwrap_or_default();
            let mut emptied = parts.clone();
            emptied[i] = "";
            let instead = format!("{key} = {}", emptied.join("\""));
            let lines: Vec<&str> =
                whole.lines().enumerate().map(|(at, l)| if at == n { &instead[..] } else { l }).collect();
            let changed = lines.join("\n");
            let told = DriveModel::from_toml(&changed).unwrap_err().to_string();
            let field = if i == 1 && parts[0].is_empty() { place.clone() } else { format!("{place}.{name}") };
            let said = format!("{field}: \"\" is not accepted: a text that is not empty");
            assert!(told.lines().any(|l| l == said), "{said}\n{told}");
            texts += 1;
        }
    }
    assert!(texts > 60, "{texts}");
}
