//! Extractions of simulated drives against the truth.

#[path = "support/made.rs"]
pub(crate) mod made;
#[path = "support/record.rs"]
pub(crate) mod record;
#[path = "support/truth.rs"]
pub(crate) mod truth;

use made::{ZONES, layouts, made};
use smrlab_disk::geometry::Layout;
use smrlab_disk::model::ReadAhead;
use smrlab_disk::{DriveModel, SeekCurve};
use smrlab_probe::fit::from_extraction;
use smrlab_probe::geometry::{ExtractOptions, Extraction, extract};
use smrlab_probe::{ProbeError, Quiet, TargetError, TimedTarget, Timing, Watch};
use smrlab_units::{Blocks, Dir, Lba, SimTime};
use truth::{model, target, wrong, wrong_seeks, wrong_zones};

fn extraction(model: &DriveModel, noise_us: u64, options: ExtractOptions) -> Extraction {
    let e = truth::seeded(model, noise_us, options, 7).unwrap_or_else(|e| panic!("{}: {e}", model.name()));
    record::check(model.name(), noise_us, options, &e);
    e
}

fn check_all(model: &DriveModel, e: &Extraction) {
    assert_eq!(wrong(model, e), [""; 0], "{}", model.name());
}

#[test]
fn the_shipped_drives_come_out_as_they_are() {
    for name in truth::rotating() {
        let m = model(name);
        let e = extraction(&m, 0, ExtractOptions::default());
        eprintln!("{name}: {:?}", e.quality);
        check_all(&m, &e);
        assert!(e.quality.seconds < 1200.0, "{} s of the drive's time", e.quality.seconds);
    }
}

#[test]
fn a_drives_own_cache_does_not_hide_it() {
    for text in [
        "modern-7200,cache=on",
        "modern-7200,cache=on,write_cache=off,read_ahead=off",
        // 512 MiB that keep what passes the head on its way.
        "seagate-exos-x24",
        // No skew: a boundary shows by a lost revolution only.
        "arrays-interleaving,cache=on",
    ] {
        let m = model(text);
        assert!(m.spec().controller.is_some(), "{text} has a cache");
        for noise in [0, 20, 100] {
            let e = extraction(&m, noise, ExtractOptions::default());
            eprintln!("{text} at {noise} us: {:?} {:?}", e.quality, e.cache);
            check_all(&m, &e);
            let (cache, truth) = (e.cache.unwrap(), m.spec().controller.as_ref().unwrap());
            assert!(cache.present);
            if noise == 0 {
                assert_eq!(cache.segments, u64::from(truth.buffer.segments), "{text}");
                let reads_on = truth.buffer.read_ahead != ReadAhead::Off;
                let ahead = if reads_on { u64::from(truth.buffer.read_ahead_blocks) } else { 0 };
                assert_eq!(cache.read_ahead, ahead, "{text}");
            }
            assert!(e.quality.seconds < 1200.0, "{} s of the drive's time", e.quality.seconds);
        }
    }
}

#[test]
fn every_layout_comes_out() {
    for m in layouts() {
        check_all(&m, &extraction(&m, 0, ExtractOptions::default()));
    }
}

#[test]
fn noise_of_the_host_is_averaged_out() {
    for noise in [20, 100] {
        for m in [model("he2014-example"), model("modern-7200")].iter().chain(&layouts()) {
            let e = extraction(m, noise, ExtractOptions::default());
            eprintln!("{} at {noise} us: {:?}", m.name(), e.quality);
            check_all(m, &e);
            assert!(e.quality.seconds < 1200.0, "{} s of the drive's time", e.quality.seconds);
        }
    }
}

#[test]
fn slipped_and_spare_sectors_do_not_hide_the_zones() {
    let zones = [[3000, 1200, 8, 10], [1777, 1100, 0, 5], [5011, 1000, 20, 0], [901, 900, 0, 7]];
    for layout in [Layout::Cylinder { alternate: false }, Layout::Hybrid { width: 200 }] {
        let m = made("spares", 4, layout, &zones, 0);
        check_all(&m, &extraction(&m, 0, ExtractOptions::default()));
        let m = made("defects", 4, layout, &ZONES, 60);
        let e = extraction(&m, 0, ExtractOptions::default());
        check_all(&m, &e);
        let slips: u64 = e.zones.iter().map(|z| z.slips).sum();
        let held: u64 = e.zones.iter().map(|z| z.tracks * z.usable).sum();
        assert_eq!(slips, held - m.geometry().blocks().0, "every slipped sector is counted");
    }
}

#[test]
fn writes_are_measured_where_they_are_allowed() {
    let m = made("writes", 4, Layout::Hybrid { width: 300 }, &ZONES, 0);
    let e = extraction(&m, 0, ExtractOptions { destroy: true, ..ExtractOptions::default() });
    assert_eq!(wrong_seeks(&m, &e, Dir::Write), [""; 0]);
    let seeks = e.seek.unwrap();
    let truth = &m.spec().mechanics;
    for (found, truth) in [
        (seeks.read_overhead_ns, truth.read_overhead),
        (seeks.write_overhead_ns.unwrap(), truth.write_overhead),
        (seeks.head_switch_ns.unwrap(), truth.head_switch),
    ] {
        assert!((found - truth.0 as f64).abs() < 3.0 * seeks.spread_ns, "{found} ns, in truth {truth}");
    }
}

/// Among them drives whose seeks take other times there than back, in curves with jumps.
#[test]
fn a_fitted_drive_behaves_like_the_one_it_was_taken_from() {
    for name in truth::rotating() {
        let bare = model(&truth::without_cache(name));
        let e = extraction(&bare, 0, ExtractOptions { destroy: true, ..ExtractOptions::default() });
        assert!(e.quality.seconds < 1200.0, "{name}: {} s of the drive's time", e.quality.seconds);
        assert_eq!([Dir::Read, Dir::Write].map(|dir| wrong_seeks(&bare, &e, dir).len()), [0, 0], "{name}");
        let text = from_extraction(&e, "again").unwrap().toml();
        let fitted = DriveModel::from_toml(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        // Behind the last block that the host sees nothing is measured.
        let sizes = |m: &DriveModel| m.spec().geometry.zones.iter().map(|z| z.sectors).collect::<Vec<_>>();
        assert!(sizes(&bare).starts_with(&sizes(&fitted)), "{name}");
        assert!(fitted.provenance().iter().any(|p| p.field == "mechanics.rpm" && p.kind == "measured"));
        let demerit = truth::demerit(&bare, &fitted);
        // With one curve for both directions it would be more.
        let directed = matches!(fitted.spec().mechanics.read_seek, SeekCurve::Directed { .. });
        assert_eq!(directed, matches!(bare.spec().mechanics.read_seek, SeekCurve::Nearest { .. }), "{name}");
        let most = if directed { 0.5 } else { 2.0 };
        assert!(demerit < most, "{name}: demerit {demerit} % of the mean");
    }
}

#[test]
fn zones_alone_take_less_than_a_minute() {
    let m = model("modern-7200");
    for noise in [0, 100] {
        let e = extraction(&m, noise, ExtractOptions { zones_only: true, ..ExtractOptions::default() });
        assert_eq!(wrong_zones(&m, &e), [""; 0]);
        assert!(e.quality.seconds < 60.0, "{} s", e.quality.seconds);
        assert!(e.skew.is_none() && e.seek.is_none());
    }
}

#[test]
fn a_drive_that_its_cache_holds_is_refused() {
    let m = model("tiny,cache=on");
    // Noise does not let single blocks seem to be pushed out.
    for (noise, seed) in [(0, 7), (100, 3), (100, 5), (100, 6)] {
        let e = truth::seeded(&m, noise, ExtractOptions::default(), seed).unwrap_err();
        assert!(e.to_string().contains("answered from a cache: switch it off"), "{e}");
    }
}

/// One completion, by its number, comes much too late.
struct LateOnce<T>(T, u64);

impl<T: TimedTarget> TimedTarget for LateOnce<T> {
    fn blocks(&self) -> Blocks {
        self.0.blocks()
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let mut t = self.0.access(dir, lba, blocks)?;
        self.1 = self.1.wrapping_sub(1);
        if self.1 == 0 {
            let late = SimTime::from_us(13_300);
            self.0.pause(late);
            t.end += late;
        }
        Ok(t)
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        self.0.flush()
    }

    fn pause(&mut self, span: SimTime) {
        self.0.pause(span);
    }
}

#[test]
fn late_completions_do_not_tilt_the_rotation() {
    let m = model("tiny");
    for n in 40..=140 {
        let mut t = LateOnce(target(&m), n);
        let mut out = Extraction::new(t.blocks().0);
        let options = ExtractOptions { zones_only: true, ..ExtractOptions::default() };
        let done = extract(&mut t, &mut Quiet, options, &mut out, &mut |_| ());
        let found = out.rpm.unwrap_or_else(|| panic!("completion {n} is late: {done:?}"));
        assert!((found.value / 6000.0 - 1.0).abs() < 10e-6, "completion {n} is late: {found:?}");
    }
}

#[test]
fn tracks_without_a_visible_boundary_are_counted() {
    // A thousandth of a revolution from track to track, and no time for the way.
    for (text, noise) in [("seagate-st8000as0002", 100), ("seagate-st8000dm004,cache=off", 20)] {
        let e = extraction(&model(text), noise, ExtractOptions::default());
        check_all(&model(text), &e);
        assert!(e.notes.iter().any(|n| n.contains("surface")), "{:?}", e.notes);
        assert!(e.quality.seconds < 1200.0, "{} s of the drive's time", e.quality.seconds);
    }
    // In sittings, too, of which a later one takes the skew from what is known.
    let m = model("seagate-st8000as0002,cache=off");
    let mut t = target(&m);
    let mut out = Extraction::new(t.blocks().0);
    let quick = ExtractOptions { zones_only: true, ..ExtractOptions::default() };
    let first = extract(&mut t, &mut StopAfter(5000.into()), quick, &mut out, &mut |_| ());
    assert_eq!(first, Err(ProbeError::Interrupted));
    assert!((1..100).contains(&out.zones.len()));
    extract(&mut t, &mut Quiet, quick, &mut out, &mut |_| ()).unwrap();
    assert_eq!(wrong_zones(&m, &out), [""; 0]);
}

#[test]
fn tracks_of_one_size_without_a_visible_boundary_are_refused() {
    let mut spec = made("even", 1, Layout::Surface, &[[60_000, 1200, 0, 0]], 0).spec().clone();
    spec.geometry.cylinder_skew = smrlab_disk::geometry::REVOLUTION / 1000;
    spec.mechanics.read_seek = smrlab_disk::SeekCurve::Constant(SimTime::ZERO);
    let e = truth::seeded(&DriveModel::new(spec, Vec::new()).unwrap(), 0, ExtractOptions::default(), 7)
        .unwrap_err();
    assert!(e.to_string().contains("no track boundary shows"), "{e}");
}

/// Stops after so many checks.
struct StopAfter(std::cell::Cell<u32>);

impl Watch for StopAfter {
    fn stopped(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn what_was_measured_is_kept_and_not_measured_again() {
    let m = made("stops", 4, Layout::Hybrid { width: 300 }, &ZONES, 0);
    let whole = extraction(&m, 0, ExtractOptions::default());
    let mut t = target(&m);
    let mut out = Extraction::new(m.geometry().blocks().0);
    let mut sittings = 0;
    while !out.done(ExtractOptions::default()) {
        sittings += 1;
        assert!(sittings < 50);
        let (zones, mut kept) = (out.zones.len(), None);
        let mut keep = |known: &Extraction| kept = Some(known.clone());
        match extract(&mut t, &mut StopAfter(3000.into()), ExtractOptions::default(), &mut out, &mut keep) {
            Ok(()) => {}
            Err(e) => assert_eq!(e, ProbeError::Interrupted),
        }
        assert!(out.zones.len() >= zones);
        assert_eq!(kept.as_ref(), Some(&out), "what it took is kept with what was found, however it ended");
    }
    assert!(sittings > 1, "it was stopped at least once");
    assert_eq!(out.zones, whole.zones);
    check_all(&m, &out);
    // Where one stage is missing the others stay as they are; where none is, hardly a request is sent.
    type Forget = fn(&mut Extraction);
    let stages: [(&str, Forget); 4] = [
        ("none", |_| ()),
        ("skew", |e| e.skew = None),
        ("seeks", |e| e.seek = None),
        ("cache", |e| e.cache = None),
    ];
    for (stage, forget) in stages {
        let mut again = out.clone();
        forget(&mut again);
        extract(&mut t, &mut Quiet, ExtractOptions::default(), &mut again, &mut |_| ()).unwrap();
        let requests = again.quality.requests - out.quality.requests;
        let Extraction { skew, seek, cache, zones, .. } = again;
        let kept = [skew == out.skew, seek == out.seek, cache == out.cache, zones == out.zones];
        let others = ["skew", "seeks", "cache", "zones"].iter().zip(kept).filter(|(name, _)| **name != stage);
        let others: Vec<_> = others.collect();
        assert!(others.iter().all(|(_, kept)| *kept), "without {stage}: {others:?}");
        if stage == "none" {
            assert!(requests < out.quality.requests / 20, "{requests} of {}", out.quality.requests);
        }
    }
}

#[test]
fn what_does_not_rotate_is_refused() {
    let m = model("cassuto2010-307gb");
    let mut t = target(&m);
    let mut out = Extraction::new(t.blocks().0);
    let e = extract(&mut t, &mut Quiet, ExtractOptions::default(), &mut out, &mut |_| ()).unwrap_err();
    assert!(matches!(e, ProbeError::NotADisk(_)), "{e}");
}

/// Twenty of a thousand sectors are as many as the error of a first look under noise.
#[test]
fn spare_sectors_in_doubt_are_looked_at_again() {
    let zones = [[3000, 1200, 8, 10], [1777, 1100, 0, 5], [5011, 1000, 20, 0], [901, 900, 0, 7]];
    let m = made("spares", 4, Layout::Hybrid { width: 200 }, &zones, 0);
    for seed in 1..=8 {
        let e = truth::seeded(&m, 100, ExtractOptions::default(), seed).unwrap();
        assert!(e.zones[2].sectors.abs_diff(1000) <= 5, "seed {seed}: {:?}", e.zones[2]);
    }
}

/// What who watches is told of an extraction: stages, how often how much of each is done, and the sum of that.
#[derive(Default)]
struct Told(Vec<(String, u32, f64)>);

impl Watch for Told {
    fn progress(&mut self, stage: &str, share: f64, _: f64) {
        match self.0.last_mut().filter(|last| last.0 == stage && share > 0.0) {
            Some((_, n, sum)) => (*n, *sum) = (*n + 1, *sum + share),
            None => self.0.push((stage.to_owned(), u32::from(share > 0.0), share)),
        }
    }
}

/// `SMRLAB_RECORD=/tmp/lines` puts what they say behind the other lines; those that begin with "told" are in `told.txt`.
#[test]
fn what_who_watches_is_told_is_on_record() {
    for text in [
        "modern-7200",
        "modern-7200,cache=on",
        "modern-7200,cache=on,write_cache=off",
        "arrays-interleaving,cache=off",
        "arrays-interleaving,cache=on",
        "he2014-example",
        "tiny",
    ] {
        for options in [
            ExtractOptions::default(),
            ExtractOptions { destroy: true, ..Default::default() },
            ExtractOptions { zones_only: true, ..Default::default() },
        ] {
            let (mut told, m) = (Told::default(), model(text));
            let mut t = target(&m);
            let mut out = Extraction::new(t.blocks().0);
            let end = match extract(&mut t, &mut told, options, &mut out, &mut |_| ()) {
                Ok(()) => "done".to_owned(),
                Err(e) => e.to_string(),
            };
            let stages: Vec<String> =
                told.0.iter().map(|(stage, n, sum)| format!("{stage} {n} {sum:.4e}")).collect();
            let what = format!("told {text} {} {}", options.destroy, options.zones_only);
            record::hold(&what, &format!("{}; {end}", stages.join("; ")), include_str!("support/told.txt"));
        }
    }
}
