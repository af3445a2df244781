//! Drives made of measurements against the drives that were measured.

use super::*;
use crate::geometry::{ExtractOptions, extract};
use crate::{Quiet, SimTarget, TimedTarget};
use smrlab_disk::DriveModel;
use smrlab_disk::model::load;
use smrlab_drive::{Drive, DriveSetup};
use std::sync::Arc;

fn model(text: &str) -> DriveModel {
    load(text, |_| Err("no files here".to_owned())).unwrap()
}

fn target(model: &DriveModel) -> SimTarget<Drive> {
    let context = smrlab_stl::BuildContext::new(Arc::new(model.clone()));
    let built = smrlab_stl::build("cmr", &context).unwrap();
    SimTarget::new(Drive::new(built.layer, model.mechanics(None).unwrap(), DriveSetup::default()))
}

fn measured(model: &DriveModel) -> Extraction {
    let mut t = target(model);
    let mut out = Extraction::new(t.blocks().0);
    let options = ExtractOptions { destroy: true, ..ExtractOptions::default() };
    extract(&mut t, &mut Quiet, options, &mut out, &mut |_| ()).unwrap();
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
    let text = fit.fitted.toml();
    let drive = DriveModel::from_toml(&text).unwrap();
    assert_eq!(drive.geometry().blocks().0, 2500 * 1800 + 1500 * 1500);
    assert_eq!(fit.paper.1.len(), 18);
}

#[test]
fn a_text_that_is_none_is_refused_with_its_line() {
    let e = dig::parse("0 1800 0\n1 abc 3\n").unwrap_err().to_string();
    assert!(e.contains("line 2") && e.contains("microseconds"), "{e}");
    assert!(dig::parse("0 1 2\n").unwrap_err().to_string().contains("too few"));
    let unfinished = Extraction::new(5);
    assert!(from_extraction(&unfinished, "x").unwrap_err().to_string().contains("not complete"));
}
