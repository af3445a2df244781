//! Runs of arrays: several drives behind a layout.

pub(crate) mod assemble;
mod engine;
mod watch;

use crate::array::assemble::ArrayRun;
use crate::control::Control;
use crate::document::{RunResult, document, efficiency, layer_bands};
use crate::engine::Feed;
use crate::error::RunError;
use crate::logs::{MediaLog, RequestLog};
use crate::metrics::band_walk::BandWalk;
use crate::metrics::{Metrics, MetricsSetup};
use crate::resolve::Resolved;
use crate::result::{self, Facts};
use crate::verify::{ArrayVerify, Verify};
use serde_json::{Map, Value, json};
use smrlab_array::{Chosen, Controller, Member, MemberId};
use smrlab_blockmap::BlockSet;
use smrlab_drive::Assembled;
use smrlab_drive::onboard::Counters;
use smrlab_stl::{Cause, Counted, counted, counted_since};
use smrlab_units::{Blocks, Dir};
use std::ops::Add;
use watch::ArrayWatch;

fn member(drive: Assembled, data: bool) -> Member {
    let (drive, chosen) = drive.start(data, false);
    Member::of_drive(drive, &chosen)
}

/// What follows every block of an array on drives like `drive`.
fn verify(chosen: &Chosen, drive: &Assembled) -> ArrayVerify {
    let (geometry, interference) = (drive.built.drive.geometry().clone(), drive.built.drive.interference());
    let discards = drive.built.capabilities.discards;
    let fresh = move || Verify::new(geometry.clone(), interference, discards);
    let of_array = chosen.entry.capabilities.discards;
    ArrayVerify::new(chosen.disks as usize, Box::new(fresh), (discards, of_array))
}

/// Runs a resolved array.
pub(crate) fn run(
    mut run: Resolved,
    array: ArrayRun,
    logs: (Option<RequestLog>, Option<MediaLog>),
    reads: &BlockSet,
    control: &Control,
) -> Result<RunResult, RunError> {
    let source = run.open_trace()?;
    let mut feed = Feed::new(source, run.steps.clone(), run.host)?;
    let ArrayRun { chosen, array, others } = array;
    let disks = chosen.disks as usize;
    let (setup, bands) = (run.measured(), layer_bands(&run.drive));
    let of_member =
        MetricsSetup { host_blocks: run.drive.built.layer.host_blocks(), foretold: false, ..setup };
    let metrics = |_| {
        let mut m = Metrics::new(&of_member);
        m.bands = bands.clone().map(BandWalk::new);
        m
    };
    let verify = run.spec.verify_media.then(|| verify(&chosen, &run.drive));
    let data = verify.is_some();
    let mut watch = ArrayWatch::new(Metrics::new(&setup), (0..disks).map(metrics).collect(), logs, verify);
    let space = efficiency(&run.drive, array.host_blocks().0 as f64 / disks as f64);
    let mut members = vec![member(run.drive, data)];
    members.extend(others.into_iter().map(|d| member(d, data)));
    let spares = members.split_off(disks);
    members.extend(chosen.ssd(&*array).map(Member::Ssd));
    let mut controller = Controller::new(array, members, spares, chosen.schedule.clone(), data);
    if let Some(prefill) = run.prefill.take() {
        prefill.each((reads, None), control, |request| {
            let request = watch.prefills(request);
            controller.instantly(&request, &mut watch);
            watch.host_prefilled(&request);
        })?;
    }
    // The prefill is no part of the run.
    let before = of_array(&controller);
    watch.begins(controller.members().map(|m| m.drive().map(|d| counted(d.layer())).unwrap_or_default()));
    let most = engine::run(&mut controller, &mut feed, run.arrivals, &mut watch, control)?;
    let ArrayWatch { mut total, mut members, verify, before: earlier, .. } = watch.finish()?;
    let mut json = document(&run.spec, &feed);
    let facts: Vec<Facts> =
        controller.members().zip(&earlier).map(|(m, b)| of_drive(m, b, run.arrivals, &members)).collect();
    let of_all = Facts {
        arrivals: run.arrivals,
        backlog: most,
        host_blocks: run.host,
        last_tracks: None,
        gain: Some(space.0),
        efficiency: Some(space.1),
        counters: counted_by_all(&facts),
        buffer: facts.iter().filter_map(|f| f.buffer).reduce(Counters::plus),
        map_bytes: controller.array().map_bytes() + facts.iter().map(|f| f.map_bytes).sum::<u64>(),
        background: facts.iter().any(|f| f.background),
        work_ns: members.iter().map(|m| m.busy_ns - m.background.ns).max(),
    };
    json.extend(result::summary(&mut total, &of_all));
    // Each head is over the bands of its own disk.
    let switches = members.iter().filter_map(|m| m.bands.as_ref()).map(|walk| walk.switches);
    if let Some(n) = switches.reduce(u64::add) {
        json["movement"]["band_switches"] = json!(n);
    }
    json.insert("array".into(), array_json(&controller, &before, &total));
    let all = members.iter_mut().zip(&facts).map(|(m, f)| Value::Object(result::summary(m, f)));
    json.insert("members".into(), all.collect());
    if let Some(verify) = verify {
        json.insert("verify".into(), json!({"ok": true, "bytes_peak": verify.bytes()}));
    }
    Ok(RunResult { json: json.into(), tables: result::tables(&total) })
}

/// What the layers of all drives counted.
fn counted_by_all(facts: &[Facts]) -> Counted {
    let mut all = Counted::new();
    for &(name, n) in facts.iter().flat_map(|f| &f.counters) {
        match all.iter_mut().find(|c| c.0 == name) {
            Some(c) => c.1 += n,
            None => all.push((name, n)),
        }
    }
    all
}

fn of_drive(
    member: &Member,
    before: &Counted,
    arrivals: crate::engine::Arrivals,
    metrics: &[Metrics],
) -> Facts {
    let (mut counters, mut map_bytes, mut host_blocks, mut background) = (Vec::new(), 0, Blocks::ZERO, false);
    let (mut buffer, mut last_tracks) = (None, None);
    if let Some(drive) = member.drive() {
        let layer = drive.layer();
        counters = counted_since(counted(layer), before);
        (map_bytes, host_blocks, buffer) = (layer.map_bytes(), layer.host_blocks(), drive.buffer_counters());
        last_tracks = layer.facts().last_tracks;
        background = layer.background_after().is_some() || metrics.iter().any(|m| m.background.commands > 0);
    }
    let (gain, efficiency, backlog, work_ns) = (None, None, None, None);
    Facts {
        arrivals,
        backlog,
        host_blocks,
        last_tracks,
        gain,
        efficiency,
        counters,
        buffer,
        map_bytes,
        background,
        work_ns,
    }
}

fn of_array(controller: &Controller) -> Counted {
    let mut all = Vec::new();
    controller.array().counters(&mut |name, n| all.push((name, n)));
    all
}

/// What the array itself counted, and what befell its drives.
fn array_json(controller: &Controller, before: &Counted, total: &Metrics) -> Value {
    let refused = total.refused;
    let mut out = Map::new();
    for (name, n) in counted_since(of_array(controller), before) {
        out.insert(name.into(), json!(n));
    }
    if controller.deaths() > 0 || refused > 0 {
        out.insert("deaths".into(), json!(controller.deaths()));
        out.insert("refused".into(), json!(refused));
        let dead = (0..controller.members().count() as u32).filter(|m| controller.is_dead(MemberId(*m)));
        out.insert("dead".into(), dead.collect::<Vec<_>>().into());
    }
    let rebuilt = total.of_cause(Cause::Rebuild)[Dir::Write as usize];
    if rebuilt.blocks > 0 {
        out.insert("rebuilt_blocks".into(), json!(rebuilt.blocks));
    }
    out.into()
}
