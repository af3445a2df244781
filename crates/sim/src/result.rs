//! What a run's metrics look like as JSON: the keys that users' scripts rely on. A key that does not apply is absent.

use crate::engine::Arrivals;
use crate::metrics::heatmap::HeatMap;
use crate::metrics::times::Summary;
use crate::metrics::updates::Unwritten;
use crate::metrics::{Amplification, Events, Metrics, Tally};
use crate::table::{Column, Table};
use serde_json::{Map, Value, json};
use smrlab_drive::buffer::Counters;
use smrlab_stl::{Cause, Counted, Dir};
use smrlab_units::histogram::{Histogram, RELATIVE_ERROR};
use smrlab_units::{BLOCK_BYTES, Blocks, HostOp, SimTime, ZoneCounts};

/// What the result says besides what was counted.
#[derive(Default)]
pub(crate) struct Facts {
    pub arrivals: Arrivals,
    /// Largest number of requests in the system, where it was counted exactly.
    pub backlog: Option<u64>,
    pub host_blocks: Blocks,
    /// Blocks that hold data on the tracks that the layer fills last, and all there are.
    pub last_tracks: Option<(Blocks, Blocks)>,
    /// Blocks of the medium, and tracks that hold data beside all tracks that there are, where the layer has bands.
    pub efficiency: Option<f64>,
    /// Data gained over tracks as wide as the head.
    pub gain: Option<f64>,
    /// The layer's own counters.
    pub counters: Counted,
    /// What the drive's own buffer did, where it has one.
    pub buffer: Option<Counters>,
    pub map_bytes: u64,
    /// The layer has background work.
    pub background: bool,
    /// Of an array: the work of its busiest drive.
    pub work_ns: Option<u64>,
}

/// Service above this share of the time between arrivals is called overload.
const LOAD_LIMIT: f64 = 0.95;
/// The load that a suggested `scale_time` would give.
const LOAD_WISHED: f64 = 0.7;

type Json = Map<String, Value>;

/// The entries of an object that apply: those that are not null.
fn present(all: Value) -> Json {
    let Value::Object(mut all) = all else { return Json::new() };
    all.retain(|_, value| !value.is_null());
    all
}

/// A number, where it is one of something.
fn some(n: u64) -> Option<u64> {
    (n > 0).then_some(n)
}

/// What there are of several, of so many.
fn per(all: u64, n: u64) -> Option<f64> {
    some(n).map(|n| all as f64 / n as f64)
}

fn counts<'a>(of: impl Iterator<Item = (&'a str, u64)>) -> Json {
    of.map(|(name, n)| (name.to_owned(), json!(n))).collect()
}

fn seconds(t: SimTime) -> f64 {
    t.as_secs_f64()
}

/// All keys but `schema`, `spec` and `provenance`.
pub(crate) fn summary(m: &mut Metrics, facts: &Facts) -> Json {
    let (updates, unwritten) = (m.updates.total(), m.updates.unwritten());
    let m = &*m;
    let mut out = present(json!({
        "host": host(m, updates.requests, unwritten),
        "media": media(m, facts.background),
    }));
    out.extend(amplification(m, updates));
    out.extend(times(m));
    out.extend(rates(m));
    out.extend(present(json!({
        "movement": present(json!({
            "track_switches": m.movement.switches,
            "track_distance": m.movement.distance,
            "band_switches": m.bands.as_ref().map(|walk| walk.switches),
        })),
        "cleaning": cleaning(m),
        "cleaning_given_up": m.given_up.began().map(|_| events(&m.given_up, m, Json::new())),
        "stalls": stalls(m),
        "refusals": m.refusals.count().map(|_| m.refusals.json()),
        "cache": (!facts.counters.is_empty()).then(|| counts(facts.counters.iter())),
        "buffer": facts.buffer.map(|b| counts(b.named())),
    })));
    out.extend(load(m, facts));
    let space = present(json!({
        "gain": facts.gain,
        "efficiency": facts.efficiency,
        "third_track_fill": facts.last_tracks.map(|(used, all)| used.0 as f64 / all.0 as f64),
        "host_blocks": facts.host_blocks.0,
        "map_bytes_peak": m.map_bytes_peak.max(facts.map_bytes),
    }));
    out.insert("space".into(), space.into());
    out
}

fn host(m: &Metrics, updates: u64, unwritten: Unwritten) -> Json {
    let ([r, _, f, d, appends, zones @ ..], [no_r, no_w]) = (m.host, m.undone);
    let zones = zones.into_iter().fold(Tally::default(), |sum, zone| sum + zone);
    let mut host = directions([r, m.writes()]);
    host.extend(present(json!({
        "updates": updates,
        "reads_unwritten": unwritten.reads,
        "blocks_read_unwritten": unwritten.blocks,
        "flushes": some(f.commands),
        "discards": some(d.commands),
        "appends": some(appends.commands),
        "zone_commands": some(zones.commands),
        "refused_blocks_read": some(no_r.blocks),
        "refused_blocks_written": some(no_w.blocks),
        "refused_adjusted_reads": some(no_r.adjusted),
        "refused_adjusted_writes": some(no_w.adjusted),
    })));
    host
}

fn directions([r, w]: [Tally; 2]) -> Json {
    present(json!({
        "reads": r.commands,
        "writes": w.commands,
        "blocks_read": r.blocks,
        "blocks_written": w.blocks,
        "adjusted_reads": r.adjusted,
        "adjusted_writes": w.adjusted,
    }))
}

fn media(m: &Metrics, background: bool) -> Json {
    let (read, write) = (m.media_total(Dir::Read), m.media_total(Dir::Write));
    let by_cause = Cause::ALL.iter().map(|&c| (c, m.of_cause(c)));
    let by_cause: Json = by_cause
        .filter(|(_, [r, w])| r.commands + w.commands > 0)
        .map(|(c, t)| (c.name().to_owned(), directions(t).into()))
        .collect();
    let mut media = directions([read, write]);
    media.extend(present(json!({
        "by_cause": by_cause,
        "background_share": per(m.background.blocks, read.blocks + write.blocks).filter(|_| background),
    })));
    media
}

/// Four ways to say what writes cost, where there are any: blocks written on the medium for each one of the host's
/// (`write_amplification`), media operations for each write (`war`, He & Du), and adjusted media operations, reads
/// included, for each of the host's writes, less a read for each of the host's (`write_overloading`, Cassuto) or less what the
/// medium read for the host (`write_overloading_media`). What was refused is not among the host's.
fn amplification(m: &Metrics, updates: Amplification) -> Json {
    let ([r, ..], w, [no_r, no_w]) = (m.host, m.writes(), m.undone);
    let (blocks, reads) = (w.blocks - no_w.blocks, (r.adjusted - no_r.adjusted) as f64);
    let writes = some(w.adjusted - no_w.adjusted).map(|n| n as f64);
    let media = m.media_total(Dir::Read).adjusted + m.media_total(Dir::Write).adjusted;
    let for_reads = m.of_cause(Cause::Host)[Dir::Read as usize].adjusted;
    let writing = m.war_writes;
    let war = present(json!({
        "per_update": per(updates.ops, updates.extents),
        "per_write": per(writing.ops, writing.extents),
        "per_request": per(writing.ops, writing.requests).filter(|_| writing.extents > 0),
    }));
    present(json!({
        "write_amplification": per(m.media_total(Dir::Write).blocks, blocks),
        "write_overloading": writes.map(|writes| (media as f64 - reads) / writes),
        "write_overloading_media": writes.map(|writes| (media - for_reads) as f64 / writes),
        "war": Some(war).filter(|war| !war.is_empty()),
    }))
}

fn times(m: &Metrics) -> Json {
    let mut all = Histogram::default();
    let responses = m.times.responses();
    responses.iter().for_each(|h| all.merge(h));
    let [read, write, _] = &responses;
    present(json!({
        "response_ms": Summary::of(&all),
        "read_response_ms": Summary::of(read),
        "write_response_ms": Summary::of(write),
        "service_ms": Summary::of(&m.times.services()),
        "histogram_relative_error": RELATIVE_ERROR,
    }))
}

fn rates(m: &Metrics) -> Json {
    let makespan = seconds(m.last_ack.since(m.first_arrival.unwrap_or_default()));
    let by_cause = Cause::ALL.iter().map(|&c| (c.name(), m.of_cause(c).iter().map(|t| t.ns).sum::<u64>()));
    let by_cause: Json = by_cause
        .filter(|(_, ns)| *ns > 0)
        .map(|(name, ns)| (name.to_owned(), json!(seconds(SimTime(ns)))))
        .collect();
    let [no_r, no_w] = m.undone;
    let blocks = m.host[HostOp::Read.index()].blocks + m.writes().blocks - no_r.blocks - no_w.blocks;
    let a_second = |n: f64| (makespan > 0.0).then(|| n / makespan);
    present(json!({
        "makespan_s": makespan,
        "busy_s": seconds(SimTime(m.busy_ns)),
        "busy_before_s": some(m.before_ns).map(|ns| seconds(SimTime(ns))),
        "time_by_cause_s": by_cause,
        "iops": a_second(m.completed() as f64),
        "mb_per_s": a_second((blocks * BLOCK_BYTES) as f64 / 1e6),
    }))
}

/// Events, and what else there is to say of them.
fn events(e: &Events, m: &Metrics, more: Json) -> Json {
    let begin = m.first_arrival.unwrap_or_default();
    let time = |t: SimTime| e.began().map(|_| seconds(t));
    let mut out = present(json!({
        "count": e.count,
        "first_s": e.began().map(|first| seconds(first.since(begin))),
        "total_s": time(e.total),
        "max_s": time(e.longest()),
    }));
    out.extend(more);
    out
}

/// Requests that took longer than the threshold, and the share of the run in which one was waiting.
fn stalls(m: &Metrics) -> Json {
    let (s, begin) = (&m.stalls, m.first_arrival.unwrap_or_default());
    let span = m.last_ack.since(begin).0.max(1);
    let any = some(s.count);
    present(json!({
        "threshold_s": seconds(s.threshold()),
        "count": s.count,
        "share": s.waiting_ns as f64 / span as f64,
        "first_s": any.map(|_| seconds(s.first.since(begin))),
        "total_s": any.map(|_| s.total_ns as f64 / 1e9),
        "max_s": any.map(|_| seconds(s.max)),
        "episodes": any.map(|_| s.episodes()),
    }))
}

fn cleaning(m: &Metrics) -> Option<Json> {
    let mut all = Events::default();
    let mut by_kind = Json::new();
    for (kind, e) in m.cleaning.iter() {
        all = all.and(e);
        let relocated = present(json!({"relocated_blocks": e.relocated}));
        by_kind.insert(kind.to_owned(), events(e, m, relocated).into());
    }
    let emptied = m.fill.emptied.zip(m.first_arrival);
    let more = json!({
        "relocated_blocks": all.relocated,
        "by_kind": by_kind,
        "clean_again_s": emptied.map(|(at, begin)| seconds(at.since(begin))),
    });
    all.began().map(|_| events(&all, m, present(more)))
}

/// Offered load against capacity, and what to do where the drive cannot keep up.
fn load(m: &Metrics, facts: &Facts) -> Json {
    if facts.arrivals != Arrivals::Trace {
        return Json::new();
    }
    let span = m.last_arrival.since(m.first_arrival.unwrap_or_default());
    let work = facts.work_ns.unwrap_or(m.work_ns());
    let offered = per(work, span.0).filter(|_| m.completed() >= 2);
    let overload = |offered: f64| {
        json!({
            "offered_iops": m.completed() as f64 / seconds(span),
            "capacity_iops": m.completed() as f64 / seconds(SimTime(work)),
            "suggested_scale_time": two_digits(offered / LOAD_WISHED),
        })
    };
    present(json!({
        "backlog_max": facts.backlog.unwrap_or_else(|| m.timeline.backlog_max()),
        "backlog_exact": facts.backlog.is_some(),
        "offered_load": offered,
        "overload": offered.filter(|load| *load > LOAD_LIMIT).map(overload),
    }))
}

/// Rounded up to two significant digits.
fn two_digits(x: f64) -> f64 {
    let mut unit = 1.0;
    while x / unit >= 100.0 {
        unit *= 10.0;
    }
    while x / unit < 10.0 {
        unit /= 10.0;
    }
    let n = (x / unit).ceil();
    if unit >= 1.0 { n * unit } else { n / (1.0 / unit).round() }
}

/// The tables `timeline`, `histogram` and `heatmap`.
pub(crate) fn tables(m: &Metrics) -> Vec<Table> {
    vec![timeline(m), histogram(m), heatmap(m)]
}

/// The timelines of an array's drives, one below the other.
pub(crate) fn timelines(members: &[Metrics]) -> Table {
    let (mut disks, mut columns) = (Vec::new(), Vec::new());
    for (disk, m) in (0..).zip(members) {
        let own = timeline(m);
        disks.extend(std::iter::repeat_n(disk, own.rows()));
        if columns.is_empty() {
            columns = own.columns;
        } else {
            columns.iter_mut().zip(own.columns).for_each(|(all, own)| all.1.append(own.1));
        }
    }
    columns.insert(0, ("disk", Column::Int(disks)));
    Table { name: "members", columns }
}

fn timeline(m: &Metrics) -> Table {
    let t = &m.timeline;
    let width = t.width().as_secs_f64();
    let rows: Vec<_> = t.rows().collect();
    let int = |f: &dyn Fn(&crate::metrics::timeline::Window) -> u64| {
        Column::Int(rows.iter().map(|(w, _)| f(w) as i64).collect())
    };
    let share = |f: &dyn Fn(&crate::metrics::timeline::Window) -> u64| {
        Column::Real(rows.iter().map(|(w, _)| f(w) as f64 / t.width().0 as f64).collect())
    };
    let rate = |f: &dyn Fn(&crate::metrics::timeline::Window) -> f64| {
        Column::Real(rows.iter().map(|(w, _)| f(w) / width).collect())
    };
    let done = |f: &dyn Fn(&crate::metrics::timeline::Window) -> f64| {
        Column::Maybe(rows.iter().map(|(w, _)| (w.completions > 0).then(|| f(w))).collect())
    };
    let track = |f: &dyn Fn((u64, u64, f64)) -> f64| {
        Column::Maybe(rows.iter().map(|(w, _)| w.tracks().map(f)).collect())
    };
    // Where nothing happened the cache held what it had held before.
    let cached = rows.iter().scan(None, |held: &mut Option<u64>, (w, _)| {
        *held = w.cached.or(*held);
        Some(held.map(|n| n as f64 / m.fill.capacity.max(1) as f64))
    });
    let zones = rows.iter().scan(None, |held: &mut Option<ZoneCounts>, (w, _)| {
        *held = w.zones.or(*held);
        Some(*held)
    });
    let zones: Vec<Option<ZoneCounts>> = zones.collect();
    let zoned = zones.iter().any(Option::is_some);
    let in_condition =
        |f: &dyn Fn(ZoneCounts) -> u64| Column::Maybe(zones.iter().map(|z| z.map(|z| f(z) as f64)).collect());
    let columns = vec![
        ("start_s", Column::Real((0..rows.len()).map(|i| i as f64 * width).collect())),
        ("end_s", Column::Real((0..rows.len()).map(|i| (i + 1) as f64 * width).collect())),
        ("arrivals", int(&|w| w.arrivals)),
        ("completions", int(&|w| w.completions)),
        ("iops", rate(&|w| w.completions as f64)),
        (
            "mb_per_s",
            rate(&|w| {
                let sent = w.host_blocks[HostOp::Read.index()] + w.blocks_written();
                let blocks = sent - w.undone_blocks;
                (blocks * BLOCK_BYTES) as f64 / 1e6
            }),
        ),
        ("read_blocks", int(&|w| w.host_blocks[HostOp::Read.index()])),
        ("write_blocks", int(&|w| w.blocks_written())),
        ("media_blocks_read", int(&|w| w.media_blocks[Dir::Read as usize])),
        ("media_blocks_written", int(&|w| w.media_blocks[Dir::Write as usize])),
        ("response_ms_mean", done(&|w| w.response_ns as f64 / w.completions as f64 / 1e6)),
        ("response_ms_max", done(&|w| w.response_max as f64 / 1e6)),
        ("busy_share", share(&|w| w.busy_ns)),
        ("cleaning_share", share(&|w| w.cleaning_ns)),
        ("cache_share", Column::Maybe(cached.collect())),
        ("stalled_share", share(&|w| w.stalled_ns)),
        ("backlog", Column::Int(rows.iter().map(|(_, b)| *b as i64).collect())),
        ("head_track_min", track(&|(lo, _, _)| lo as f64)),
        ("head_track_max", track(&|(_, hi, _)| hi as f64)),
        ("head_track_mean", track(&|(_, _, mean)| mean)),
        ("open_zones", in_condition(&|z| z.open)),
        ("closed_zones", in_condition(&|z| z.closed)),
        ("full_zones", in_condition(&|z| z.full)),
        ("zone_resets", Column::Maybe(rows.iter().map(|(w, _)| zoned.then_some(w.resets as f64)).collect())),
        ("refused", int(&|w| w.refused)),
    ];
    Table { name: "timeline", columns }
}

fn histogram(m: &Metrics) -> Table {
    let [read, write, _] = &m.times.responses();
    let (mut kind, mut lo, mut hi, mut count) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, h) in [("read", read), ("write", write), ("service", &m.times.services())] {
        for (from, to, n) in h.rows() {
            kind.push(name.to_owned());
            lo.push(from as f64 / 1e6);
            hi.push(to as f64 / 1e6);
            count.push(n as i64);
        }
    }
    let columns = vec![
        ("kind", Column::Text(kind)),
        ("lo_ms", Column::Real(lo)),
        ("hi_ms", Column::Real(hi)),
        ("count", Column::Int(count)),
    ];
    Table { name: "histogram", columns }
}

fn heatmap(m: &Metrics) -> Table {
    let rows: Vec<_> = m.heatmap.iter().flat_map(HeatMap::rows).collect();
    let int = |f: &dyn Fn(&(u64, SimTime, usize, u64, u64, [u32; 2])) -> u64| {
        Column::Int(rows.iter().map(|r| f(r) as i64).collect())
    };
    let columns = vec![
        ("window", int(&|r| r.0)),
        ("start_s", Column::Real(rows.iter().map(|r| r.1.as_secs_f64()).collect())),
        ("bin", int(&|r| r.2 as u64)),
        ("lba_lo", int(&|r| r.3)),
        ("lba_hi", int(&|r| r.4)),
        ("reads", int(&|r| u64::from(r.5[0]))),
        ("writes", int(&|r| u64::from(r.5[1]))),
    ];
    Table { name: "heatmap", columns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Adjusted, MetricsSetup};
    use crate::spaces::Spaces;

    fn tally(commands: u64, blocks: u64, adjusted: u64) -> Tally {
        Tally { commands, blocks, adjusted, ns: 0 }
    }

    /// Of 5 reads and 9 writes two reads and three writes were refused: they are told, and move nothing. 16 + 60 blocks in 2 s.
    #[test]
    fn what_was_refused_is_told_and_moves_nothing() {
        let host_blocks = Blocks(1000);
        let adjusted = Adjusted { blocks: 4, floor_plus_one: false };
        let (spaces, stall) = (Spaces::one(host_blocks), SimTime::from_ms(500));
        let mut m = Metrics::new(&MetricsSetup {
            host_blocks,
            spaces,
            adjusted,
            window: None,
            stall,
            foretold: false,
            heatmap: false,
            drives: 1,
        });
        (m.host[0], m.host[1]) = (tally(5, 20, 6), tally(9, 84, 25));
        m.undone = [tally(2, 4, 1), tally(3, 24, 7)];
        (m.first_arrival, m.last_ack) = (Some(SimTime::ZERO), SimTime::from_ms(2000));
        let told = host(&m, 0, Unwritten::default());
        let refused = ["blocks_read", "blocks_written", "adjusted_reads", "adjusted_writes"]
            .map(|name| told[&format!("refused_{name}")].as_u64());
        assert_eq!(refused, [4, 24, 1, 7].map(Some));
        assert_eq!(rates(&m)["mb_per_s"], json!(76.0 * 512.0 / 2e6));
    }

    #[test]
    fn suggestions_are_round_and_never_too_small() {
        assert_eq!([1.36, 14.0, 14.2, 0.99, 1234.0].map(two_digits), [1.4, 14.0, 15.0, 0.99, 1300.0]);
    }
}
