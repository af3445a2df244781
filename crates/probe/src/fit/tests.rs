//! Drives made of measurements against the drives that were measured.

use super::*;
use crate::geometry::{ExtractOptions, Measured, Seeks, extract};
use crate::{Quiet, SimTarget, TimedTarget};
use smrlab_disk::DriveModel;
use smrlab_disk::model::load;
use smrlab_drive::{Drive, DriveSetup};
use std::sync::Arc;

fn model(text: &str) -> DriveModel {
    load(text, |_| Err("no files here".to_owned())).unwrap()
}

fn target(model: &DriveModel) -> SimTarget {
    let context = smrlab_stl::BuildContext::new(Arc::new(model.clone()));
    let built = smrlab_stl::build("cmr", &context).unwrap();
    SimTarget::new(Drive::new(built.layer, model.mechanics(None).unwrap(), DriveSetup::default()))
}

fn measured(model: &DriveModel) -> Extraction {
    let mut t = target(model);
    let mut out = Extraction::new(t.blocks().0);
    let options = ExtractOptions { destroy: true, ..ExtractOptions::default() };
    extract(&mut t, &mut Quiet, options, &mut out, &mut |_| ()).unwrap();
    // A further sitting has nothing to measure and forgets nothing.
    let before = out.quality.requests;
    extract(&mut t, &mut Quiet, options, &mut out, &mut |_| ()).unwrap();
    assert!(before > 0 && out.quality.requests >= before, "{before}, then {}", out.quality.requests);
    out
}

#[test]
fn an_extraction_is_what_the_drive_file_says() {
    for name in ["modern-7200", "tiny"] {
        let truth = of_drive(&model(name)).unwrap();
        let found = measured(&model(name));
        let zones =
            |e: &Extraction| e.zones.iter().map(|z| (z.first_lba, z.tracks, z.usable)).collect::<Vec<_>>();
        assert_eq!(zones(&found), zones(&truth));
        assert_eq!(found.skew.unwrap().order, truth.skew.unwrap().order);
    }
}

fn exact(value: f64) -> Measured {
    Measured { value, spread: 1e-4 }
}

/// Tracks that get longer, on two surfaces by cylinders: the drive begins inside, and its zones turn round.
#[test]
fn an_extraction_by_hand_becomes_its_drive() {
    let zone = |tracks, usable, sectors, slips| Zone {
        first_lba: 0,
        blocks: tracks * usable,
        first_track: 0,
        tracks,
        usable,
        sectors,
        sectors_exact: sectors as f64,
        slips,
        jump: 0.0,
    };
    let mut e = Extraction::new(348_990);
    (e.rpm, e.complete, e.zones) =
        (Some(exact(7200.4)), true, vec![zone(201, 990, 1000, 0), zone(100, 1500, 1500, 7)]);
    let skew = |order| Skews { order, cylinder: exact(0.25), track: Some(exact(0.875)), period_tracks: 4.0 };
    e.skew = Some(skew(Order::Cylinder { surfaces: 2 }));
    e.seek = Some(Seeks {
        read_overhead_ns: 3e5,
        spread_ns: 1e3,
        read: vec![(1, 1e6), (100, 4e6)],
        write: vec![(1, 2e6), (100, 5e6)],
        read_by_direction: [Vec::new(), Vec::new()],
        write_by_direction: [Vec::new(), Vec::new()],
        write_overhead_ns: Some(4e5),
        head_switch_ns: Some(7e5),
    });
    let fitted = from_extraction(&e, "x").unwrap();
    let zones = |f: &Fitted| {
        let of = |z: &ZoneSpec| (z.cylinders, z.sectors, z.spare_sectors);
        f.spec.geometry.zones.iter().map(of).collect::<Vec<_>>()
    };
    let (g, m) = (&fitted.spec.geometry, &fitted.spec.mechanics);
    assert_eq!(zones(&fitted), [(50, 1500, 0), (101, 1000, 10)], "a cylinder that is cut is one");
    assert_eq!((g.surfaces, g.layout, g.toward), (2, Layout::Cylinder { alternate: false }, Toward::Outer));
    assert_eq!((g.cylinder_skew, g.track_skew, m.rpm), (REVOLUTION / 4, REVOLUTION / 8 * 7, 7200));
    let times = [m.read_overhead, m.write_overhead, m.write_settle, m.head_switch];
    assert_eq!(times, [300, 400, 0, 700].map(SimTime::from_us));
    let table =
        |ms: [u64; 2]| SeekCurve::Table(vec![(1, SimTime::from_ms(ms[0])), (100, SimTime::from_ms(ms[1]))]);
    assert_eq!((&m.read_seek, &m.write_seek), (&table([1, 4]), &table([2, 5])));
    assert!(matches!(fitted.spec.interference, Interference::Physical(p) if (p.s_id, p.s_od) == (1, 2)));
    // The longest place that fits says where a number is from.
    let from = |field: &str| fitted.origin(field);
    assert_eq!(from("mechanics.rpm"), ("measured", "7200.4000 +- 1.0e-4".to_owned()));
    assert!(
        from("geometry.zones").1.ends_with("7 slipped sectors are left out")
            && from("capacity").0 == "assumed"
    );
    assert_eq!(["geometry.layout", "mechanics.write_settle"].map(|f| from(f).0), ["measured"; 2]);
    let skews = of_drive(&DriveModel::from_toml(&fitted.toml()).unwrap()).unwrap().skew.unwrap();
    assert_eq!((skews.order, skews.cylinder.value), (Order::Cylinder { surfaces: 2 }, 0.25));
    assert_eq!(skews.track.unwrap().value, 0.875);
    // Writes that were not allowed are taken to be as reads; surfaces one after the other share the tracks.
    e.seek.iter_mut().for_each(|s| (s.write_overhead_ns, s.head_switch_ns) = (None, None));
    e.skew = Some(skew(Order::Surface { surfaces: 2 }));
    let fitted = from_extraction(&e, "x").unwrap();
    let m = &fitted.spec.mechanics;
    assert_eq!((zones(&fitted), fitted.spec.geometry.toward), (vec![(150, 1000, 10)], Toward::Inner));
    assert_eq!(
        (&m.write_seek, m.write_overhead, m.head_switch),
        (&m.read_seek, m.read_overhead, SimTime::ZERO)
    );
    let assumed = ["mechanics.write_seek", "mechanics.head_switch"].map(|f| fitted.origin(f).0);
    assert_eq!(assumed, ["assumed"; 2]);
}

/// What an exact extraction of a drive says is that drive again.
#[test]
fn a_drive_goes_round_through_its_extraction() {
    for name in ["modern-7200", "tiny"] {
        let (model, truth) = (model(name), of_drive(&model(name)).unwrap());
        let again = DriveModel::from_toml(&from_extraction(&truth, "again").unwrap().toml()).unwrap();
        let (was, is) = (&model.spec().geometry, &again.spec().geometry);
        assert_eq!((was.surfaces, was.layout, was.toward), (is.surfaces, is.layout, is.toward), "{name}");
        assert_eq!((was.cylinder_skew, was.track_skew), (is.cylinder_skew, is.track_skew), "{name}");
        assert_eq!(of_drive(&again).unwrap().zones, truth.zones, "{name}");
    }
}

/// One curve where both directions take the same, but for a distance; one for each where they do not.
#[test]
fn seeks_become_the_curve_that_was_measured() {
    let points = |ns: [f64; 3]| [(1, ns[0]), (40, ns[1]), (900, ns[2])];
    let table = |us: [u64; 3]| {
        vec![(1, SimTime::from_us(us[0])), (40, SimTime::from_us(us[1])), (900, SimTime::from_us(us[2]))]
    };
    let (both, slower) = (points([1e6, 2e6, 5e6]), points([1e6, 2.5e6, 6e6]));
    let once = points([1e6, 2e6, 6e6]);
    let (same, apart) = ([both.to_vec(), once.to_vec()], [both.to_vec(), slower.to_vec()]);
    assert_eq!(curve(&both, &same, 0.0), SeekCurve::Table(table([1000, 2000, 5000])));
    let directed =
        SeekCurve::Directed { rising: table([1000, 2000, 5000]), falling: table([1000, 2500, 6000]) };
    assert_eq!(curve(&both, &apart, 0.0), directed);
    // A spread of half a millisecond explains as much.
    assert_eq!(curve(&both, &apart, 5e5), SeekCurve::Table(table([1000, 2000, 5000])));
}

/// A text as the paper's tool writes it, of a drive of two zones with outliers.
fn dig_text() -> String {
    let (period, skew) = (60e6 / 7200.0, 0.04);
    let mut text = "# track sectors microseconds\n".to_owned();
    for n in 0..4000u64 {
        let sectors = if n % 97 == 3 {
            2800
        } else if n < 2500 {
            1800
        } else {
            1500
        };
        let turns = n as f64 * skew;
        text.push_str(&format!(
            "{n}\t{sectors}\t{:.1}\n",
            (turns - turns.floor()) * period + n as f64 * 0.01
        ));
    }
    text
}

#[test]
fn the_papers_text_form_becomes_a_drive() {
    let tracks = dig::parse(&dig_text()).unwrap();
    let fit = from_dig(&tracks, "pmr", Paper::default(), false, None).unwrap();
    assert_eq!(
        fit.runs,
        [EqualTracks { tracks: 2500, sectors: 1800 }, EqualTracks { tracks: 1500, sectors: 1500 }]
    );
    assert!((fit.period_tracks - 25.0).abs() < 0.1, "a revolution after {} tracks", fit.period_tracks);
    assert!(fit.fitted.spec.mechanics.rpm.abs_diff(7200) <= 7, "{} rpm", fit.fitted.spec.mechanics.rpm);
    assert_eq!(fit.fitted.origin("mechanics.rpm"), ("measured", "from the text's times".to_owned()));
    let text = fit.fitted.toml();
    let drive = DriveModel::from_toml(&text).unwrap();
    assert_eq!(drive.geometry().blocks().0, 2500 * 1800 + 1500 * 1500);
    assert_eq!(fit.paper.1.len(), 18);
}

/// Lines are counted as an editor does, with those that say nothing.
#[test]
fn a_line_that_is_no_track_is_named_by_its_number() {
    let text = dig_text().replacen("2\t", "\n# two\n2 sectors ", 1);
    let told = dig::parse(&text).unwrap_err().to_string();
    assert!(told.contains("line 6: '2 sectors 1800"), "{told}");
}

/// Tracks that begin at one time, as those of a cylinder without skew of its heads do, say nothing of the skew: 100 us from cylinder to
/// cylinder, of ten in a revolution.
#[test]
fn steps_of_nothing_are_no_steps() {
    let track = |n: u64| dig::Track { number: n, sectors: 9, us: (n / 4 % 10) as f64 * 100.0 };
    let (period, skew) = dig::rotation(&(0..400).map(track).collect::<Vec<_>>()).unwrap();
    assert_eq!((period, skew), (1000.0, 0.1));
}

/// Tracks that are not there leave no step; the speed that is given counts; eight tracks are enough.
#[test]
fn a_text_with_gaps_says_the_same() {
    let gaps: String = dig_text()
        .lines()
        .filter(|l| !l.contains("1800") || l.len() % 3 > 0)
        .flat_map(|l| [l, "\n"])
        .collect();
    let [whole, gaps] = [dig_text(), gaps].map(|text| dig::rotation(&dig::parse(&text).unwrap()).unwrap());
    assert!((whole.0 - gaps.0).abs() < 0.5 && (whole.1 - 0.04).abs() < 1e-4, "{whole:?} {gaps:?}");
    assert!((gaps.1 - 0.04).abs() < 1e-4, "{gaps:?}");
    let fit =
        from_dig(&dig::parse(&dig_text()).unwrap(), "pmr", Paper::default(), false, Some(7100.0)).unwrap();
    let (g, m) = (&fit.fitted.spec.geometry, &fit.fitted.spec.mechanics);
    assert_eq!((g.track_skew, m.rpm), (0, 7100));
    assert_eq!(fit.fitted.origin("mechanics.rpm"), ("assumed", "given with the text".to_owned()));
    assert!((g.cylinder_skew as f64 / REVOLUTION as f64 - 0.04).abs() < 1e-4, "{}", g.cylinder_skew);
    let tracks = |n| dig::parse(&(0..n).map(|i| format!("{i} 9 {i}\n")).collect::<String>());
    assert_eq!((tracks(7).is_err(), tracks(8).unwrap().len()), (true, 8));
}

#[test]
fn a_text_that_is_none_is_refused_with_its_line() {
    let e = dig::parse("0 1800 0\n1 abc 3\n").unwrap_err().to_string();
    assert!(e.contains("line 2") && e.contains("microseconds"), "{e}");
    assert!(dig::parse("0 1 2\n").unwrap_err().to_string().contains("too few"));
    let mut unfinished = Extraction::new(5);
    assert!(from_extraction(&unfinished, "x").unwrap_err().to_string().contains("not complete"));
    // As long as zones may be missing.
    unfinished = of_drive(&model("tiny")).unwrap();
    unfinished.zones[0].slips = 7;
    let notes = from_extraction(&unfinished, "x").unwrap().notes;
    assert!(
        notes.iter().any(|n| n.starts_with("7 slipped sectors were counted but not placed")),
        "{notes:?}"
    );
    unfinished.complete = false;
    assert!(from_extraction(&unfinished, "x").unwrap_err().to_string().contains("not complete"));
    // Lines may come in any order.
    let tracks = dig::parse("7 8 1\n6 8 1\n0 9 1\n5 8 1\n4 8 1\n3 8 1\n2 8 1\n1 8 1\n").unwrap();
    assert!(tracks.iter().map(|t| t.number).eq(0..8) && tracks[0].sectors == 9);
}

/// Tracks of each zone that a surface passes: all of a cylinder together, or one surface's share from the outside on.
#[test]
fn zones_of_a_surface_are_its_share_of_the_tracks() {
    let zone = |tracks| Zone {
        first_lba: 0,
        blocks: tracks * 100,
        first_track: 0,
        tracks,
        usable: 100,
        sectors: 100,
        sectors_exact: 100.0,
        slips: 0,
        jump: 0.0,
    };
    let shares = |tracks: &[u64], order| {
        let zones: Vec<Zone> = tracks.iter().map(|n| zone(*n)).collect();
        passes(&zones, order).iter().map(|(z, n)| (z.tracks, *n)).collect::<Vec<_>>()
    };
    for order in [Order::Cylinder { surfaces: 4 }, Order::Hybrid { surfaces: 4, group_cylinders: 9 }] {
        assert_eq!(
            shares(&[8, 9, 3, 4], order),
            [(8, 2), (9, 3), (3, 1), (4, 1)],
            "a broken cylinder is one"
        );
    }
    assert_eq!(shares(&[8, 9], Order::Cylinder { surfaces: 0 }), [(8, 8), (9, 9)]);
    let surface = |surfaces| Order::Surface { surfaces };
    assert_eq!(shares(&[5, 3, 3, 5], surface(2)), [(5, 5), (3, 3)]);
    assert_eq!(shares(&[5, 6, 6, 4], surface(3)), [(5, 5), (6, 2)]);
    assert_eq!(shares(&[30, 1], surface(3)), [(30, 10)]);
    assert_eq!(shares(&[7, 2], surface(1)), [(7, 7), (2, 2)]);
}

/// What is told of a drive's zones adds up to the drive, whatever is spare on its tracks or was slipped.
#[test]
fn zones_of_a_drive_are_all_of_its_blocks() {
    use smrlab_disk::SeekCurve;
    use smrlab_disk::geometry::{Defect, ZoneSpec};
    let mut spec = model("modern-7200,capacity=20GB").spec().clone();
    spec.geometry.surfaces = 1;
    let zone = |cylinders, sectors, spare_sectors| {
        let mut zone = ZoneSpec::plain(cylinders, sectors);
        zone.spare_sectors = spare_sectors;
        zone
    };
    spec.geometry.zones =
        vec![zone(300, 1200, 0), zone(200, 1200, 30), zone(250, 1200, 30), zone(100, 1000, 0)];
    spec.geometry.defects =
        [3, 310, 620].map(|cylinder| Defect { cylinder, surface: 0, sector: cylinder % 7 }).to_vec();
    for curve in [&mut spec.mechanics.read_seek, &mut spec.mechanics.write_seek] {
        if let SeekCurve::ThreePoint { full, .. } = curve {
            *full = 0;
        }
    }
    let odd = DriveModel::new(spec, Vec::new()).unwrap();
    let tracks = |e: &Extraction| e.zones.iter().map(|z| (z.tracks, z.usable)).collect::<Vec<_>>();
    assert_eq!(tracks(&of_drive(&odd).unwrap()), [(300, 1200), (450, 1170), (100, 1000)]);
    for drive in [odd, model("modern-7200"), model("tiny"), model("he2014-example")] {
        let found = of_drive(&drive).unwrap();
        let (mut lba, mut track) = (0, 0);
        for z in &found.zones {
            assert_eq!((z.first_lba, z.first_track), (lba, track));
            assert_eq!(z.blocks + z.slips, z.tracks * z.usable);
            (lba, track) = (z.end(), track + z.tracks);
        }
        assert_eq!(lba, drive.geometry().blocks().0);
        assert!(found.zones.windows(2).all(|z| (z[0].usable, z[0].sectors) != (z[1].usable, z[1].sectors)));
    }
}
