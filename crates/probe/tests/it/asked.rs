//! All that the probe asks drives of any kind for, and all that it finds and says, on record: on hosts that see every completion at once,
//! a little late and much too late. The other tests hold what is found against the truth within tolerances; here every margin, every
//! bound of a search and every choice shows, for what is asked next follows from them.
//!
//! Where a change is wanted: `SMRLAB_RECORD=/tmp/lines cargo test -p smrlab-probe --test it -- asked` puts the lines into a file; those
//! that begin with "asked", `sort -u`, are `support/asked.txt`.

#[path = "support/asked.rs"]
mod log;
#[path = "support/odd.rs"]
mod odd;

use crate::geometry::{record, truth};
use log::{Log, Noted, Watcher, sum_of};
use odd::{buffered, odd, seamless};
use smrlab_disk::DriveModel;
use smrlab_drive::{Drive, DriveSetup};
use smrlab_probe::fit::{EqualTracks, Paper, change_points, dig, from_dig, from_extraction};
use smrlab_probe::geometry::{ExtractOptions, Extraction, extract};
use smrlab_probe::identify::{Sittings, identify_further};
use smrlab_probe::{Mirrored, Noisy, SimTarget, TimedTarget};
use smrlab_stl::{BuildContext, HostRequest};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::cell::Cell;
use std::sync::Arc;

fn hold(name: &str, said: &str) {
    record::hold(&format!("asked {name}"), said, include_str!("support/asked.txt"));
}

/// A host that sees completions this much late, in nanoseconds, and one in 300 by milliseconds where `spikes` says so; one in 25 where
/// it is nearly as late anyway.
#[derive(Clone, Copy)]
struct Host {
    ns: u64,
    spikes: bool,
}

impl Host {
    fn of<T>(self, target: T, seed: u64) -> Noisy<T> {
        let often = if self.ns > 50_000 { 25 } else { 300 };
        Noisy::new(target, SimTime(self.ns), if self.spikes { often } else { 0 }, seed)
    }
}

/// Checks of who watches after which a measurement is stopped, and not gone on with.
const LONG: u64 = 300_000;

/// Extracts a drive, in sittings of so many requests where there are several.
fn extracted(name: &str, m: &DriveModel, host: Host, options: ExtractOptions, sitting: u64, seed: u64) {
    let log = Log::new();
    let mut t = Noted(host.of(truth::target(m), seed), log.clone());
    let mut out = Extraction::new(t.blocks().0);
    let mut end = String::new();
    for i in 0..6 {
        let mut watch = Watcher(log.clone(), Cell::new(sitting << i));
        end = match extract(&mut t, &mut watch, options, &mut out, &mut |_| ()) {
            Ok(()) => "done".to_owned(),
            Err(e) => e.to_string(),
        };
        if end != "interrupted" || sitting >= LONG {
            break;
        }
    }
    let wrong = if out.rpm.is_some() { truth::wrong(m, &out).len() } else { 0 };
    let file = from_extraction(&out, "again")
        .map_or_else(|e| e.to_string(), |f| format!("{} {}", sum_of(&f.toml()), f.notes.join(" ")));
    let json = sum_of(&serde_json::to_string(&out).unwrap());
    let host = format!("{} ns{}", host.ns, if host.spikes { " and more" } else { "" });
    let what = format!("{name} at {host} {} {} {sitting}", options.destroy, options.zones_only);
    hold(&what, &format!("{end}; {wrong} wrong; {}; {json}; {}; {file}", record::said(&out), log.said()));
}

fn drawn(name: &str, seeds: std::ops::Range<u64>, of: impl Fn(u64) -> Option<DriveModel>, host: Host) {
    for seed in seeds {
        let Some(m) = of(seed) else { continue };
        let options = ExtractOptions { destroy: seed % 3 == 0, zones_only: seed % 7 == 3 };
        let sitting = if seed % 4 == 1 { 2500 } else { LONG };
        extracted(&format!("{name}-{seed}"), &m, host, options, sitting, seed);
    }
}

#[test]
fn odd_drives_at_once() {
    drawn("odd", 0..24, odd, Host { ns: 0, spikes: false });
}

/// Around the noise from which on the probe counts a host as noisy.
#[test]
fn odd_drives_a_little_late() {
    drawn("odd", 24..36, odd, Host { ns: 400, spikes: false });
    drawn("odd", 36..48, odd, Host { ns: 1500, spikes: false });
}

#[test]
fn odd_drives_late() {
    drawn("odd", 48..60, odd, Host { ns: 20_000, spikes: false });
}

#[test]
fn odd_drives_much_too_late() {
    drawn("odd", 60..72, odd, Host { ns: 10_000, spikes: true });
    drawn("odd", 72..84, odd, Host { ns: 100_000, spikes: true });
}

#[test]
fn more_odd_drives() {
    drawn("odd", 84..108, odd, Host { ns: 0, spikes: false });
    drawn("odd", 108..120, odd, Host { ns: 900, spikes: false });
    drawn("odd", 120..132, odd, Host { ns: 40_000, spikes: true });
}

#[test]
fn buffered_drives_at_once() {
    drawn("buffered", 0..12, buffered, Host { ns: 0, spikes: false });
}

#[test]
fn buffered_drives_late() {
    drawn("buffered", 12..18, buffered, Host { ns: 1200, spikes: false });
    drawn("buffered", 18..24, buffered, Host { ns: 30_000, spikes: true });
}

fn seamless_ones(seeds: std::ops::Range<u64>, host: Host) {
    for seed in seeds {
        let Some(m) = seamless(seed) else { continue };
        let options = ExtractOptions { destroy: false, zones_only: seed % 3 > 0 };
        let sitting = if seed % 3 == 1 { 3000 } else { LONG };
        extracted(&format!("seamless-{seed}"), &m, host, options, sitting, seed);
    }
}

#[test]
fn seamless_drives_at_once() {
    seamless_ones(0..9, Host { ns: 0, spikes: false });
}

#[test]
fn seamless_drives_late() {
    seamless_ones(9..15, Host { ns: 3000, spikes: false });
    seamless_ones(15..21, Host { ns: 30_000, spikes: true });
}

/// The drive of a preset with a layer, all of its space written before, and with its own cache where it has one.
fn layered(drive: &str, layer: &str) -> SimTarget {
    let model = Arc::new(truth::model(drive));
    let controller = model.spec().controller;
    let built =
        smrlab_stl::build(layer, &BuildContext::new(model)).unwrap_or_else(|e| panic!("{layer}: {e}"));
    let mechanics = built.drive.mechanics(None).unwrap();
    let mut drive = Drive::new(built.layer, mechanics, DriveSetup::default());
    let blocks = drive.layer().host_blocks().0;
    for lba in (0..blocks).step_by(1 << 16) {
        let n = (blocks - lba).min(1 << 16);
        drive.instantly(&HostRequest::new(HostOp::Write, Lba(lba), Blocks(n)));
    }
    SimTarget::new(drive.behind(controller))
}

/// Finds out what kind of drive it is, in sittings of so many requests where there are several.
fn identified(name: &str, target: impl TimedTarget, host: Host, sitting: u64) {
    let log = Log::new();
    let mut t = Noted(host.of(target, 7), log.clone());
    let mut known = Sittings::new(t.blocks().0);
    let mut end = String::new();
    for i in 0..8 {
        let mut watch = Watcher(log.clone(), Cell::new(sitting << i));
        end = match identify_further(&mut t, &mut watch, &mut known, &mut |_| ()) {
            Ok(()) => "done".to_owned(),
            Err(e) => e.to_string(),
        };
        if end != "interrupted" || sitting >= LONG {
            break;
        }
    }
    let json = sum_of(&serde_json::to_string(&known).unwrap());
    let host = format!("{} ns{}", host.ns, if host.spikes { " and more" } else { "" });
    let what = format!("{name} at {host} {sitting}");
    hold(&what, &format!("{end}; {}; {json}; {}", known.found.answer, log.said()));
}

const DRIVE: &str = "modern-7200,capacity=2GB";
/// Layers of every kind that a host cannot tell from the outside, but for what their requests take: those that write in place, and those
/// that write elsewhere first.
const IN_PLACE: [&str; 6] =
    ["cmr", "rmw,band=16", "rmw,mode=partial,band=16", "static-1234", "static-124R(3)", "static,order=1-20"];
const ELSEWHERE: [&str; 6] = [
    "disk-cache,cache=2%,band=84960",
    "disk-cache,cache=2%,band=84960,idle=1s",
    "s-block",
    "log,band=20,overprovision=5%",
    "persistent-cache,log=2%,slot=0,map_trigger=900,map_limit=940,band=20,idle=1s",
    "persistent-cache,log=2%,slot=0,map_trigger=900,map_limit=940,band=20,idle=off",
];
const HOSTS: [Host; 3] =
    [Host { ns: 0, spikes: false }, Host { ns: 15_000, spikes: false }, Host { ns: 5000, spikes: true }];

fn kinds(layers: &[&str], host: Host) {
    for layer in layers {
        identified(layer, layered(DRIVE, layer), host, 1 << 23);
    }
}

#[test]
fn drives_in_place() {
    HOSTS.into_iter().for_each(|host| kinds(&IN_PLACE, host));
}

#[test]
fn drives_with_caches_at_once() {
    kinds(&ELSEWHERE[..3], HOSTS[0]);
    kinds(&ELSEWHERE[4..5], HOSTS[0]);
}

#[test]
fn drives_with_full_logs() {
    kinds(&[ELSEWHERE[3], ELSEWHERE[5]], HOSTS[0]);
}

#[test]
fn drives_with_caches_late() {
    kinds(&ELSEWHERE, HOSTS[1]);
}

#[test]
fn drives_with_caches_much_too_late() {
    kinds(&ELSEWHERE, HOSTS[2]);
}

#[test]
fn drives_the_other_way_round() {
    for layer in [IN_PLACE[2], IN_PLACE[5], ELSEWHERE[1], ELSEWHERE[4]] {
        let turned = Mirrored(layered(DRIVE, layer));
        identified(&format!("{layer} turned"), turned, Host { ns: 2000, spikes: false }, 1 << 23);
    }
}

/// Repeated reads of these are answered by a cache of their own, one of which takes writes, too.
#[test]
fn drives_with_buffers() {
    for (cache, host) in [("on", HOSTS[0]), ("on,write_cache=off", HOSTS[1])] {
        for layer in [IN_PLACE[0], IN_PLACE[2], ELSEWHERE[1], ELSEWHERE[4]] {
            let drive = layered(&format!("{DRIVE},cache={cache}"), layer);
            identified(&format!("{layer} cache={cache}"), drive, host, 2 * LONG);
        }
    }
}

#[test]
fn drives_in_sittings() {
    for (layer, sitting) in [(IN_PLACE[2], 3000), (ELSEWHERE[0], 5000), (ELSEWHERE[4], 20_000)] {
        identified(layer, layered(DRIVE, layer), HOSTS[0], sitting);
    }
}

/// A text of tracks as DIG writes it, drawn by a seed: zones, tracks that are odd or left out, or there twice, blanks of every kind.
fn tracks(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let any = |rng: &mut Rng, of: &[u64]| of[rng.below(of.len() as u64) as usize];
    let (odd, gaps, jitter) =
        (any(&mut rng, &[7, 30, 1000]), any(&mut rng, &[9, 60, 5000]), any(&mut rng, &[1, 3, 40]));
    let (period, skew) =
        (any(&mut rng, &[4000, 8333, 11_111]) as f64, any(&mut rng, &[20, 70, 130, 310]) as f64 / 1000.0);
    let (mut text, mut number, mut sectors) = ("# a drive\n\n".to_owned(), any(&mut rng, &[0, 0, 17]), 2100);
    for _ in 0..any(&mut rng, &[1, 2, 5, 9]) {
        for _ in 0..any(&mut rng, &[5, 40, 300, 900]) {
            let size =
                if rng.one_in(odd) { any(&mut rng, &[0, 300, 2800]) } else { sectors + rng.below(jitter) };
            let turns = number as f64 * skew;
            let at = (turns - turns.floor()) * period + rng.below(9) as f64 / 10.0;
            let blank = ["\t", " ", ", ", "; ", "  "][rng.below(5) as usize];
            let times = if rng.one_in(gaps) { any(&mut rng, &[0, 2]) } else { 1 };
            (0..times).for_each(|_| text.push_str(&format!("{number}{blank}{size}{blank}{at:.1}\n")));
            number += 1;
        }
        sectors -= any(&mut rng, &[1, 2, 20, 137]);
    }
    text
}

/// Zones by change points and by the paper's polynomial, with limits that leave out much and polynomials of every degree.
#[test]
fn texts_of_tracks() {
    for seed in 0..40u64 {
        let text = tracks(seed);
        let how = Paper {
            least: [0, 1000, 2095][seed as usize % 3],
            most: [2200, 2099, 5000][seed as usize / 3 % 3],
            degree: [0, 1, 2, 5, 13][seed as usize % 5],
            zones: [1, 4, 18, 10_000][seed as usize / 2 % 4],
        };
        let rpm = (seed % 4 == 1).then_some(7000.0);
        let said = dig::parse(&text).and_then(|tracks| {
            let fit = from_dig(&tracks, "text", how, seed % 2 == 1, rpm)?;
            let runs = |of: &[EqualTracks]| of.iter().map(|r| (r.tracks, r.sectors)).collect::<Vec<_>>();
            let curve = [0.0, 10.0, 99.5, 700.0].map(|x| format!("{:.4e}", fit.paper.0.at(x)));
            let (paper, points) = (runs(&fit.paper.1), runs(&change_points(&tracks)));
            let first = |of: &[(u64, u64)]| {
                format!("{} {:?} {}", of.len(), &of[..of.len().min(4)], sum_of(&format!("{of:?}")))
            };
            let file = sum_of(&fit.fitted.toml());
            let same = runs(&fit.runs) == if seed % 2 == 1 { paper.clone() } else { points.clone() };
            let period = format!("{:.4e}", fit.period_tracks);
            let notes = fit.fitted.notes.join(" ");
            Ok(format!(
                "{} tracks; {}; {}; {curve:?}; {period}; {file} {same}; {notes}",
                tracks.len(),
                first(&points),
                first(&paper)
            ))
        });
        hold(&format!("text {seed}"), &said.unwrap_or_else(|e| e.to_string()));
    }
}
