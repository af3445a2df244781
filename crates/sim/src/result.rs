//! What a run's metrics look like as JSON: the keys that users' scripts rely on. A key that does not apply is absent.

use crate::engine::Arrivals;
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

fn object<const N: usize>(pairs: [(&str, Value); N]) -> Json {
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

fn seconds(t: SimTime) -> f64 {
    t.as_secs_f64()
}

/// All keys but `schema`, `spec` and `provenance`.
pub(crate) fn summary(m: &mut Metrics, facts: &Facts) -> Json {
    let (updates, unwritten) = (m.updates.total(), m.updates.unwritten());
    let m = &*m;
    let mut out = Json::new();
    out.insert("host".into(), host(m, updates.requests, unwritten));
    out.insert("media".into(), media(m, facts.background));
    amplification(m, updates, &mut out);
    times(m, &mut out);
    rates(m, &mut out);
    let mut movement = object([
        ("track_switches", json!(m.movement.switches)),
        ("track_distance", json!(m.movement.distance)),
    ]);
    if let Some(walk) = &m.bands {
        movement.insert("band_switches".into(), json!(walk.switches));
    }
    out.insert("movement".into(), movement.into());
    cleaning(m, &mut out);
    out.insert("stalls".into(), stalls(m));
    if m.refusals.count().is_some() {
        out.insert("refusals".into(), m.refusals.json());
    }
    if !facts.counters.is_empty() {
        let counters: Json = facts.counters.iter().map(|(name, n)| (name.to_owned(), json!(n))).collect();
        out.insert("cache".into(), counters.into());
    }
    if let Some(b) = facts.buffer {
        out.insert(
            "buffer".into(),
            Json::from_iter(b.named().map(|(name, n)| (name.to_owned(), json!(n)))).into(),
        );
    }
    load(m, facts, &mut out);
    let mut space = Json::new();
    if let (Some(gain), Some(efficiency)) = (facts.gain, facts.efficiency) {
        space.extend(object([("gain", json!(gain)), ("efficiency", json!(efficiency))]));
    }
    if let Some((used, all)) = facts.last_tracks {
        space.insert("third_track_fill".into(), json!(used.0 as f64 / all.0 as f64));
    }
    space.insert("host_blocks".into(), json!(facts.host_blocks.0));
    space.insert("map_bytes_peak".into(), json!(m.map_bytes_peak.max(facts.map_bytes)));
    out.insert("space".into(), space.into());
    out
}

fn host(m: &Metrics, updates: u64, unwritten: Unwritten) -> Value {
    let ([r, _, f, d, appends, zones @ ..], w) = (m.host, m.writes());
    let mut host = directions([r, w]);
    host.extend(object([
        ("updates", json!(updates)),
        ("reads_unwritten", json!(unwritten.reads)),
        ("blocks_read_unwritten", json!(unwritten.blocks)),
    ]));
    let zones = zones.into_iter().fold(Tally::default(), |sum, zone| sum + zone);
    for (name, t) in [("flushes", f), ("discards", d), ("appends", appends), ("zone_commands", zones)] {
        if t.commands > 0 {
            host.insert(name.into(), json!(t.commands));
        }
    }
    let [r, w] = m.undone;
    for (name, n) in [
        ("refused_blocks_read", r.blocks),
        ("refused_blocks_written", w.blocks),
        ("refused_adjusted_reads", r.adjusted),
        ("refused_adjusted_writes", w.adjusted),
    ] {
        if n > 0 {
            host.insert(name.into(), json!(n));
        }
    }
    host.into()
}

fn directions([r, w]: [Tally; 2]) -> Json {
    object([
        ("reads", json!(r.commands)),
        ("writes", json!(w.commands)),
        ("blocks_read", json!(r.blocks)),
        ("blocks_written", json!(w.blocks)),
        ("adjusted_reads", json!(r.adjusted)),
        ("adjusted_writes", json!(w.adjusted)),
    ])
}

fn media(m: &Metrics, background: bool) -> Value {
    let (read, write) = (m.media_total(Dir::Read), m.media_total(Dir::Write));
    let mut media = directions([read, write]);
    let by_cause = Cause::ALL.iter().map(|&c| (c, m.of_cause(c)));
    let by_cause: Json = by_cause
        .filter(|(_, [r, w])| r.commands + w.commands > 0)
        .map(|(c, t)| (c.name().to_owned(), directions(t).into()))
        .collect();
    media.insert("by_cause".into(), by_cause.into());
    let all = read.blocks + write.blocks;
    if background && all > 0 {
        media.insert("background_share".into(), json!(m.background.blocks as f64 / all as f64));
    }
    media.into()
}

/// Four ways to say what writes cost, where there are any: blocks written on the medium for each one of the host's
/// (`write_amplification`), media operations for each write (`war`, He & Du), and adjusted media operations, reads
/// included, for each of the host's writes, less a read for each of the host's (`write_overloading`, Cassuto) or less what the
/// medium read for the host (`write_overloading_media`). What was refused is not among the host's.
fn amplification(m: &Metrics, updates: Amplification, out: &mut Json) {
    let ([r, ..], w, [no_r, no_w]) = (m.host, m.writes(), m.undone);
    let (blocks, reads) = (w.blocks - no_w.blocks, (r.adjusted - no_r.adjusted) as f64);
    let writes = w.adjusted - no_w.adjusted;
    if blocks > 0 {
        let written = m.media_total(Dir::Write).blocks as f64;
        out.insert("write_amplification".into(), json!(written / blocks as f64));
    }
    if writes > 0 {
        let media = m.media_total(Dir::Read).adjusted + m.media_total(Dir::Write).adjusted;
        out.insert("write_overloading".into(), json!((media as f64 - reads) / writes as f64));
        let for_reads = m.of_cause(Cause::Host)[Dir::Read as usize].adjusted;
        out.insert("write_overloading_media".into(), json!((media - for_reads) as f64 / writes as f64));
    }
    let mut war = Json::new();
    let per = |ops: u64, n: u64| json!(ops as f64 / n as f64);
    if updates.extents > 0 {
        war.insert("per_update".into(), per(updates.ops, updates.extents));
    }
    if m.war_writes.extents > 0 {
        war.insert("per_write".into(), per(m.war_writes.ops, m.war_writes.extents));
        war.insert("per_request".into(), per(m.war_writes.ops, m.war_writes.requests));
    }
    if !war.is_empty() {
        out.insert("war".into(), war.into());
    }
}

fn times(m: &Metrics, out: &mut Json) {
    let mut all = Histogram::default();
    let (responses, service) = (m.times.responses(), m.times.services());
    responses.iter().for_each(|h| all.merge(h));
    let [read, write, _] = &responses;
    let kinds = [
        ("response_ms", &all),
        ("read_response_ms", read),
        ("write_response_ms", write),
        ("service_ms", &service),
    ];
    for (key, h) in kinds {
        if let Some(s) = Summary::of(h) {
            out.insert(key.into(), times_json(s));
        }
    }
    out.insert("histogram_relative_error".into(), json!(RELATIVE_ERROR));
}

fn times_json(s: Summary) -> Value {
    serde_json::to_value(s).unwrap_or(Value::Null)
}

fn rates(m: &Metrics, out: &mut Json) {
    let first = m.first_arrival.unwrap_or_default();
    let makespan = seconds(m.last_ack.since(first));
    out.insert("makespan_s".into(), json!(makespan));
    out.insert("busy_s".into(), json!(seconds(SimTime(m.busy_ns))));
    if m.before_ns > 0 {
        out.insert("busy_before_s".into(), json!(seconds(SimTime(m.before_ns))));
    }
    let by_cause = Cause::ALL.iter().map(|&c| (c.name(), m.of_cause(c).iter().map(|t| t.ns).sum::<u64>()));
    let by_cause: Json = by_cause
        .filter(|(_, ns)| *ns > 0)
        .map(|(name, ns)| (name.to_owned(), json!(seconds(SimTime(ns)))))
        .collect();
    out.insert("time_by_cause_s".into(), by_cause.into());
    if makespan > 0.0 {
        let [no_r, no_w] = m.undone;
        let blocks = m.host[HostOp::Read.index()].blocks + m.writes().blocks - no_r.blocks - no_w.blocks;
        out.insert("iops".into(), json!(m.completed() as f64 / makespan));
        out.insert("mb_per_s".into(), json!((blocks * BLOCK_BYTES) as f64 / 1e6 / makespan));
    }
}

/// Events; `origin` is the first arrival, from which `first_s` counts.
fn events(e: &Events, origin: SimTime, more: &[(&str, Value)]) -> Value {
    let mut out = object([("count", json!(e.count))]);
    if e.count > 0 {
        let times = [("first_s", e.first.since(origin)), ("total_s", e.total), ("max_s", e.max)];
        out.extend(times.map(|(k, t)| (k.to_owned(), json!(seconds(t)))));
    }
    out.extend(more.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
    out.into()
}

/// Requests that took longer than the threshold, and the share of the run in which one was waiting.
fn stalls(m: &Metrics) -> Value {
    let (s, begin) = (&m.stalls, m.first_arrival.unwrap_or_default());
    let span = m.last_ack.since(begin).0.max(1);
    let mut out = object([
        ("threshold_s", json!(seconds(s.threshold()))),
        ("count", json!(s.count)),
        ("share", json!(s.waiting_ns as f64 / span as f64)),
    ]);
    if s.count > 0 {
        out.extend(object([
            ("first_s", json!(seconds(s.first.since(begin)))),
            ("total_s", json!(s.total_ns as f64 / 1e9)),
            ("max_s", json!(seconds(s.max))),
            ("episodes", json!(s.episodes())),
        ]));
    }
    out.into()
}

fn cleaning(m: &Metrics, out: &mut Json) {
    let origin = m.first_arrival.unwrap_or_default();
    let mut all = Events::default();
    let mut by_kind = Json::new();
    for (kind, e) in m.cleaning.iter() {
        all.first = if all.count == 0 { e.first } else { all.first.min(e.first) };
        all.count += e.count;
        all.total += e.total;
        all.max = all.max.max(e.max);
        all.relocated += e.relocated;
        by_kind.insert(kind.to_owned(), events(e, origin, &[("relocated_blocks", json!(e.relocated))]));
    }
    if all.count > 0 {
        let mut more = vec![("relocated_blocks", json!(all.relocated)), ("by_kind", by_kind.into())];
        if let (Some(at), Some(begin)) = (m.fill.emptied, m.first_arrival) {
            more.push(("clean_again_s", json!(seconds(at.since(begin)))));
        }
        out.insert("cleaning".into(), events(&all, origin, &more));
    }
    if m.given_up.count > 0 {
        out.insert("cleaning_given_up".into(), events(&m.given_up, origin, &[]));
    }
}

/// Offered load against capacity, and what to do where the drive cannot keep up.
fn load(m: &Metrics, facts: &Facts, out: &mut Json) {
    if facts.arrivals != Arrivals::Trace {
        return;
    }
    out.insert("backlog_max".into(), json!(facts.backlog.unwrap_or_else(|| m.timeline.backlog_max())));
    out.insert("backlog_exact".into(), json!(facts.backlog.is_some()));
    let span = m.last_arrival.since(m.first_arrival.unwrap_or_default());
    let work = facts.work_ns.unwrap_or(m.busy_ns - m.background.ns);
    if span == SimTime::ZERO || m.completed() < 2 {
        return;
    }
    let offered = work as f64 / span.0 as f64;
    out.insert("offered_load".into(), json!(offered));
    if offered > LOAD_LIMIT {
        let capacity = m.completed() as f64 / seconds(SimTime(work));
        out.insert(
            "overload".into(),
            json!({
                "offered_iops": m.completed() as f64 / seconds(span),
                "capacity_iops": capacity,
                "suggested_scale_time": two_digits(offered / LOAD_WISHED),
            }),
        );
    }
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
    let rows: Vec<_> = m.heatmap.rows().collect();
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

    #[test]
    fn suggestions_are_round_and_never_too_small() {
        assert_eq!([1.36, 14.0, 14.2, 0.99, 1234.0].map(two_digits), [1.4, 14.0, 15.0, 0.99, 1300.0]);
    }
}
