//! Figures of any layer, worked out again from the trace and the two logs.

use crate::support::{Asked, Done, Op, Served, real};
use serde_json::Value;
use smrlab_sim::table::Column;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub(super) const IDLE_NS: u64 = 5_000_000;

/// Forty tracks each of 32, 24 and 16 blocks.
pub(super) fn track(pba: u64) -> u64 {
    match pba {
        0..1280 => pba / 32,
        1280..2240 => 40 + (pba - 1280) / 24,
        _ => 80 + (pba - 2240) / 16,
    }
}

/// Requests start when the drive is free, with their first operation, and end with their last one.
pub(super) fn logs(d: &Done) {
    assert_eq!(d.requests.len(), d.asked.len());
    let mut free = 0;
    for (i, r) in d.requests.iter().enumerate() {
        assert_eq!((r.id, r.arrival), (i, d.asked[i].at), "first come, first served");
        let (first, last) = (d.ops_of(i).next().unwrap(), d.ops_of(i).last().unwrap());
        assert_eq!((r.start, r.completion), (first.start, last.end), "request {i}");
        let behind: Vec<_> = d.media.iter().filter(|o| o.request < 0 && o.start < r.start).collect();
        let idle = behind.last().map_or(0, |o| o.end);
        assert_eq!(r.start, r.arrival.max(free).max(idle), "request {i} starts when the drive is free");
        free = r.completion;
        let blocks: u64 = d.ops_of(i).filter(|o| o.cause == "host").map(|o| o.blocks).sum();
        if !d.asked[i].write {
            assert_eq!(blocks, d.asked[i].blocks, "a read reads what was asked");
        }
    }
    for pair in d.media.windows(2) {
        assert!(pair[0].end <= pair[1].start && pair[0].start < pair[0].end, "{pair:?}");
        if pair[0].request >= 0 && pair[1].request < 0 {
            assert_eq!(
                pair[1].start,
                pair[0].end + IDLE_NS,
                "idle work waits for so long after the last request"
            );
        }
    }
}

pub(super) fn counts(d: &Done) {
    for (name, write) in [("read", false), ("write", true)] {
        let all: Vec<_> = d.host(write).collect();
        d.is(&format!("/host/{name}s"), all.len() as f64);
        let past = if write { "written" } else { "read" };
        d.is(&format!("/host/blocks_{past}"), all.iter().map(|a| a.blocks).sum::<u64>() as f64);
        d.is(
            &format!("/host/adjusted_{name}s"),
            all.iter().map(|a| d.adjusted(a.blocks)).sum::<u64>() as f64,
        );
    }
    let causes: HashSet<&str> = d.media.iter().map(|o| o.cause.as_str()).collect();
    for cause in causes.iter().map(|c| Some(*c)).chain([None]) {
        let at = cause.map_or("/media".to_owned(), |c| format!("/media/by_cause/{c}"));
        for (name, past, write) in [("read", "read", false), ("write", "written", true)] {
            let of = |o: &&Op| o.write == write && cause.is_none_or(|c| o.cause == c);
            let ops: Vec<_> = d.media.iter().filter(of).collect();
            d.is(&format!("{at}/{name}s"), ops.len() as f64);
            d.is(&format!("{at}/blocks_{past}"), ops.iter().map(|o| o.blocks).sum::<u64>() as f64);
            d.is(
                &format!("{at}/adjusted_{name}s"),
                ops.iter().map(|o| d.adjusted(o.blocks)).sum::<u64>() as f64,
            );
        }
        if let Some(c) = cause {
            let ns: u64 = d.media.iter().filter(|o| o.cause == c).map(|o| o.end - o.start).sum();
            if !d.pauses {
                d.is(&format!("/time_by_cause_s/{c}"), ns as f64 / 1e9);
            }
        }
    }
    assert_eq!(d.result.json["media"]["by_cause"].as_object().unwrap().len(), causes.len());
    let (mut written, mut updates, mut unwritten, mut never) = (HashSet::new(), 0, 0, 0);
    if d.prefilled {
        written.extend(0..508);
    }
    // What was refused read and wrote nothing.
    for a in d.requests.iter().filter(|r| r.refusal.is_empty()).map(|r| &d.asked[r.id]) {
        let old = (a.lba..a.lba + a.blocks).filter(|b| written.contains(b)).count() as u64;
        if a.write {
            updates += u64::from(old > 0);
            written.extend(a.lba..a.lba + a.blocks);
        } else {
            unwritten += u64::from(old < a.blocks);
            never += a.blocks - old;
        }
    }
    d.is("/host/updates", updates as f64);
    d.is("/host/reads_unwritten", unwritten as f64);
    d.is("/host/blocks_read_unwritten", never as f64);
}

/// Refusals by reason, the first of each, and that nothing was done for them.
pub(super) fn refusals(d: &Done) {
    let refused: Vec<_> = d.requests.iter().filter(|r| !r.refusal.is_empty()).collect();
    if refused.is_empty() {
        return d.absent("/refusals");
    }
    let reasons: BTreeSet<&str> = refused.iter().map(|r| r.refusal.as_str()).collect();
    let found = &d.result.json["refusals"];
    assert_eq!(found["by_reason"].as_object().unwrap().len(), reasons.len());
    d.is("/refusals/count", refused.len() as f64);
    for why in reasons {
        let of: Vec<_> = refused.iter().filter(|r| r.refusal == why).collect();
        d.is(&format!("/refusals/by_reason/{why}"), of.len() as f64);
        let first = found["first"].as_array().unwrap().iter().find(|f| f["reason"] == why).unwrap();
        let asked = d.asked[of[0].id];
        let told = |key: &str| first[key].as_u64().unwrap();
        assert_eq!(
            (told("request"), told("lba"), told("blocks")),
            (of[0].id as u64, asked.lba, asked.blocks)
        );
        // What a write would destroy lies within the next two tracks.
        assert!((asked.lba..=asked.lba + asked.blocks + 64).contains(&told("at")), "{why}: {first}");
    }
    for r in refused {
        assert!(d.ops_of(r.id).next().is_none() && r.start == r.completion, "{r:?}");
    }
}

pub(super) fn costs(d: &Done) {
    let sum = |write: bool, of: &dyn Fn(&Op) -> u64| {
        d.media.iter().filter(|o| o.write == write).map(of).sum::<u64>() as f64
    };
    // What was refused the host neither read nor wrote.
    let of_host = |write: bool, refused: bool, of: &dyn Fn(&Asked) -> u64| {
        let requests = d.requests.iter().filter(|r| r.refusal.is_empty() != refused);
        requests.map(|r| &d.asked[r.id]).filter(|a| a.write == write).map(of).sum::<u64>()
    };
    let (blocks, adjusted) = (|a: &Asked| a.blocks, |a: &Asked| d.adjusted(a.blocks));
    for (write, past, name) in [(false, "read", "reads"), (true, "written", "writes")] {
        for (key, n) in [
            (format!("blocks_{past}"), of_host(write, true, &blocks)),
            (format!("adjusted_{name}"), of_host(write, true, &adjusted)),
        ] {
            let path = format!("/host/refused_{key}");
            if n > 0 { d.is(&path, n as f64) } else { d.absent(&path) }
        }
    }
    let written = of_host(true, false, &blocks);
    if written == 0 {
        d.absent("/write_amplification");
        d.absent("/write_overloading_media");
        return d.absent("/write_overloading");
    }
    d.is("/write_amplification", sum(true, &|o| o.blocks) / written as f64);
    let units = |o: &Op| d.adjusted(o.blocks);
    let (reads, writes) = (of_host(false, false, &adjusted), of_host(true, false, &adjusted));
    let but_reads = |o: &Op| if o.write || o.cause != "host" { units(o) } else { 0 };
    d.is("/write_overloading_media", (sum(false, &but_reads) + sum(true, &units)) / writes as f64);
    d.is("/write_overloading", (sum(false, &units) + sum(true, &units) - reads as f64) / writes as f64);
}

/// Mean and maximum exact; percentiles are the time at or below which that share lies, within the stated error.
pub(super) fn times(d: &Done) {
    let error = d.get("/histogram_relative_error");
    assert!(error < 0.01);
    let response = |r: &Served| r.completion - r.arrival;
    let of = |write: Option<bool>| {
        let all = d.requests.iter().filter(|r| write.is_none_or(|w| d.asked[r.id].write == w));
        all.map(response).collect::<Vec<u64>>()
    };
    let service = d.requests.iter().map(|r| r.completion - r.start).collect();
    let kinds = [
        ("response_ms", of(None)),
        ("read_response_ms", of(Some(false))),
        ("write_response_ms", of(Some(true))),
        ("service_ms", service),
    ];
    for (key, mut ns) in kinds {
        ns.sort_unstable();
        let n = ns.len();
        d.is(&format!("/{key}/mean"), ns.iter().sum::<u64>() as f64 / n as f64 / 1e6);
        d.is(&format!("/{key}/max"), ns[n - 1] as f64 / 1e6);
        for (name, tenths) in [("p50", 500), ("p90", 900), ("p95", 950), ("p99", 990), ("p999", 999)] {
            let want = ns[(n * tenths).div_ceil(1000) - 1] as f64 / 1e6;
            let got = d.get(&format!("/{key}/{name}"));
            // What is refused may take no time at all.
            assert!((got - want).abs() <= want * error, "{key}.{name} is {got}, by hand {want}");
        }
    }
}

pub(super) fn rates(d: &Done) {
    let makespan = (d.last_completion() - d.first_arrival()) as f64 / 1e9;
    let busy: u64 = d.media.iter().map(|o| o.end - o.start).sum();
    let done = d.requests.iter().filter(|r| r.refusal.is_empty());
    let blocks: u64 = done.map(|r| d.asked[r.id].blocks).sum();
    d.is("/makespan_s", makespan);
    if d.pauses {
        let served: u64 = d.requests.iter().map(|r| r.completion - r.start).sum();
        assert!(d.get("/busy_s") >= busy.max(served) as f64 / 1e9);
    } else {
        d.is("/busy_s", busy as f64 / 1e9);
    }
    let causes = d.result.json["time_by_cause_s"].as_object().unwrap();
    d.is("/busy_s", causes.values().filter_map(Value::as_f64).sum());
    let shares: f64 = real(d.table("timeline"), "busy_share").iter().flatten().sum();
    let windows = shares * d.window() as f64 / 1e9;
    // What was done before the first request came is in no window.
    let before = match d.result.json.pointer("/busy_before_s") {
        Some(_) => d.get("/busy_before_s"),
        None => 0.0,
    };
    assert!(d.pauses || (before - d.before_the_first()).abs() < 1e-9, "{before} s before the first request");
    let all = d.get("/busy_s");
    assert!(
        (windows + before - all).abs() < 1e-6,
        "{windows} s in windows and {before} s before, {all} s in all"
    );
    d.is("/iops", d.asked.len() as f64 / makespan);
    d.is("/mb_per_s", blocks as f64 * 512.0 / 1e6 / makespan);
    let span = d.asked.last().unwrap().at - d.first_arrival();
    let asked: u64 = d.media.iter().filter(|o| o.request >= 0).map(|o| o.end - o.start).sum();
    let load = d.get("/offered_load");
    if !d.pauses {
        d.is("/offered_load", asked as f64 / span as f64);
    }
    if load > 1.0 {
        let offered = d.asked.len() as f64 / (span as f64 / 1e9);
        d.is("/overload/offered_iops", offered);
        d.is("/overload/capacity_iops", offered / load);
        let scale = d.get("/overload/suggested_scale_time") * 0.7 / load;
        assert!((1.0..=1.1).contains(&scale), "rounded up to two digits, not to {scale}");
    }
    // What takes no time waits nowhere; a request that comes is one.
    let there = |at: u64| d.requests.iter().filter(|e| e.arrival <= at && at < e.completion).count();
    d.is("/backlog_max", d.requests.iter().map(|r| there(r.arrival)).max().unwrap().max(1) as f64);
    stalls(d);
    let background: u64 = d.media.iter().filter(|o| o.request < 0).map(|o| o.blocks).sum();
    let all: u64 = d.media.iter().map(|o| o.blocks).sum();
    if background > 0 {
        d.is("/media/background_share", background as f64 / all as f64);
    } else if d.result.json.pointer("/media/background_share").is_some() {
        d.is("/media/background_share", 0.0);
    }
}

/// Requests that took longer than the threshold, and the spans of time in which any of them waited.
pub(super) fn stalls(d: &Done) {
    let threshold = (d.get("/stalls/threshold_s") * 1e9).round() as u64;
    let long: Vec<_> = d.requests.iter().filter(|r| r.completion - r.arrival > threshold).collect();
    d.is("/stalls/count", long.len() as f64);
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let mut waits: Vec<_> = long.iter().map(|r| (r.arrival, r.completion)).collect();
    waits.sort_unstable();
    for (from, to) in waits {
        match spans.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => spans.push((from, to)),
        }
    }
    let waiting: u64 = spans.iter().map(|(from, to)| to - from).sum();
    d.is("/stalls/share", waiting as f64 / (d.last_completion() - d.first_arrival()) as f64);
    let shares: f64 = real(d.table("timeline"), "stalled_share").iter().flatten().sum();
    assert!(
        (shares * d.window() as f64 - waiting as f64).abs() < 1e3,
        "{shares} windows, {waiting} ns by hand"
    );
    if long.is_empty() {
        return d.absent("/stalls/first_s");
    }
    d.is("/stalls/episodes", spans.len() as f64);
    d.is("/stalls/first_s", (spans[0].0 - d.first_arrival()) as f64 / 1e9);
    let took = long.iter().map(|r| r.completion - r.arrival);
    d.is("/stalls/total_s", took.clone().sum::<u64>() as f64 / 1e9);
    d.is("/stalls/max_s", took.max().unwrap() as f64 / 1e9);
}

/// Reads that found what they wanted in the cache, or not, are all reads; parts of writes are at most the media's writes
/// for the host.
pub(super) fn cache(d: &Done) {
    let counted = |names: &[&str]| {
        let at = |n: &&str| d.result.json.pointer(&format!("/cache/{n}")).is_some();
        names.iter().filter(|n| at(n)).map(|n| d.get(&format!("/cache/{n}"))).sum::<f64>()
    };
    let reads = counted(&["read_hits", "read_misses", "read_split"]);
    if d.result.json.pointer("/cache/read_hits").is_some() {
        assert_eq!(reads, d.host(false).count() as f64, "reads of the cache's counters");
    }
    let writes = counted(&["write_hits", "write_misses", "bypassed"]);
    if d.result.json.pointer("/cache/write_hits").is_some() {
        let most = d.media.iter().filter(|o| o.write && o.cause == "host").count() as f64;
        let least = d.host(true).count() as f64;
        assert!((least..=most).contains(&writes), "{writes} parts of writes, {least} to {most} by hand");
    }
}

pub(super) fn movement(d: &Done) {
    let (mut at, mut switches, mut distance) = (0, 0, 0);
    for o in &d.media {
        let first = track(o.pba);
        (switches, distance) = (switches + u64::from(first != at), distance + first.abs_diff(at));
        at = track(o.pba + o.blocks - 1);
    }
    d.is("/movement/track_switches", switches as f64);
    d.is("/movement/track_distance", distance as f64);
}

/// What the kinds of cleaning add up to.
pub(super) fn kinds_of_cleaning(d: &Done) {
    let Some(kinds) = d.result.json.pointer("/cleaning/by_kind").and_then(Value::as_object) else { return };
    for key in ["count", "total_s", "relocated_blocks"] {
        let sum: f64 = kinds.values().map(|k| k[key].as_f64().unwrap()).sum();
        d.is(&format!("/cleaning/{key}"), sum);
    }
    let longest = kinds.values().map(|k| k["max_s"].as_f64().unwrap()).fold(0.0, f64::max);
    d.is("/cleaning/max_s", longest);
    let first = kinds.values().map(|k| k["first_s"].as_f64().unwrap()).fold(f64::MAX, f64::min);
    d.is("/cleaning/first_s", first);
}

/// Every row of the timeline.
pub(super) fn timeline(d: &Done) {
    let t = d.table("timeline");
    let since = |ns: u64| ns.saturating_sub(d.first_arrival());
    let width = d.window();
    let window = |ns: u64| (since(ns) / width) as usize;
    let n = real(t, "start_s").len();
    let mut want: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut add = |name: &'static str, at: usize, x: f64| {
        want.entry(name).or_insert_with(|| vec![0.0; n])[at] += x;
    };
    for i in 0..n {
        add("start_s", i, (i as u64 * width) as f64 / 1e9);
        add("end_s", i, ((i + 1) as u64 * width) as f64 / 1e9);
    }
    for (a, r) in d.asked.iter().zip(&d.requests) {
        add("arrivals", window(a.at), 1.0);
        add("refused", window(r.completion), if r.refusal.is_empty() { 0.0 } else { 1.0 });
        add("completions", window(r.completion), 1.0);
        add("iops", window(r.completion), 1e9 / width as f64);
        let moved = if r.refusal.is_empty() { a.blocks } else { 0 };
        add("mb_per_s", window(r.completion), (moved * 512) as f64 / 1e6 / (width as f64 / 1e9));
        add(if a.write { "write_blocks" } else { "read_blocks" }, window(r.completion), a.blocks as f64);
        (window(a.at)..window(r.completion)).for_each(|i| add("backlog", i, 1.0));
    }
    for o in &d.media {
        let name = if o.write { "media_blocks_written" } else { "media_blocks_read" };
        add(name, window(o.end), o.blocks as f64);
        for i in window(o.start)..=window(o.end) {
            let from = since(o.start).max(i as u64 * width);
            let to = since(o.end).min((i as u64 + 1) * width);
            if !d.pauses {
                add("busy_share", i, to.saturating_sub(from) as f64 / width as f64);
            }
        }
    }
    for (name, want) in &want {
        for (i, (got, want)) in real(t, name).iter().zip(want).enumerate() {
            assert!((got.unwrap() - want).abs() < 1e-9, "{name} of window {i} is {got:?}, by hand {want}");
        }
    }
    let per_window = |name: &str, of: &dyn Fn(usize) -> Option<f64>| {
        for (i, got) in real(t, name).into_iter().enumerate() {
            let same =
                got.is_some() == of(i).is_some() && (got.unwrap_or(0.0) - of(i).unwrap_or(0.0)).abs() < 1e-9;
            assert!(same, "{name} of window {i} is {got:?}, by hand {:?}", of(i));
        }
    };
    let (mut responses, mut tracks) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for r in &d.requests {
        responses[window(r.completion)].push((r.completion - r.arrival) as f64 / 1e6);
    }
    for o in &d.media {
        tracks[window(o.end)].push(track(o.pba + o.blocks - 1) as f64);
    }
    let mean = |v: &[f64]| (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64);
    per_window("response_ms_mean", &|i| mean(&responses[i]));
    per_window("response_ms_max", &|i| responses[i].iter().copied().reduce(f64::max));
    per_window("head_track_mean", &|i| mean(&tracks[i]));
    per_window("head_track_min", &|i| tracks[i].iter().copied().reduce(f64::min));
    per_window("head_track_max", &|i| tracks[i].iter().copied().reduce(f64::max));
    let cleaned: f64 = real(t, "cleaning_share").iter().flatten().sum::<f64>() * d.window() as f64 / 1e9;
    let given_up = d.result.json.pointer("/cleaning_given_up/total_s").and_then(Value::as_f64);
    let whole = d.result.json.pointer("/cleaning/total_s").and_then(Value::as_f64);
    let want = whole.unwrap_or(0.0) + given_up.unwrap_or(0.0) - d.before_the_first();
    assert!(
        d.pauses || (cleaned - want).abs() < 1e-6,
        "the shares of cleaning add up to {cleaned} s, not {want}"
    );
}

/// Every row of the histogram and the sums of the heat map.
pub(super) fn histogram(d: &Done) {
    let t = d.table("histogram");
    let Column::Text(kinds) = &t.columns[0].1 else { panic!("kinds are text") };
    let (lo, hi, count) = (real(t, "lo_ms"), real(t, "hi_ms"), real(t, "count"));
    for kind in ["read", "write", "service"] {
        let of = |r: &&Served| kind == "service" || d.asked[r.id].write == (kind == "write");
        let from = |r: &Served| if kind == "service" { r.start } else { r.arrival };
        let all: Vec<f64> =
            d.requests.iter().filter(of).map(|r| (r.completion - from(r)) as f64 / 1e6).collect();
        let mut total = 0.0;
        for i in (0..kinds.len()).filter(|&i| kinds[i] == kind) {
            let (lo, hi) = (lo[i].unwrap(), hi[i].unwrap());
            let inside = all.iter().filter(|ms| lo <= **ms && **ms < hi).count() as f64;
            assert_eq!(count[i], Some(inside), "{kind} from {lo} to {hi} ms");
            total += inside;
        }
        assert_eq!(total, all.len() as f64, "{kind}");
    }
    heat(d);
}

/// Every row of the heat map: the requests that came in its window and begin in its part of the space; no request in none.
fn heat(d: &Done) {
    let t = d.table("heatmap");
    let column = |name: &str| real(t, name).into_iter().map(Option::unwrap).collect::<Vec<_>>();
    let (window, start) = (column("window"), column("start_s"));
    let (lo, hi) = (column("lba_lo"), column("lba_hi"));
    let last = window.len() - 1;
    let width = (start[last] / window[last] * 1e9).round() as u64;
    for (name, write) in [("reads", false), ("writes", true)] {
        let n = column(name);
        for (i, n) in n.iter().enumerate() {
            let came = |a: &&Asked| {
                let at = (a.at - d.first_arrival()) / width;
                at as f64 == window[i] && lo[i] <= a.lba as f64 && (a.lba as f64) < hi[i]
            };
            assert_eq!(*n, d.host(write).filter(came).count() as f64, "{name} in row {i} of the heat map");
        }
        assert_eq!(n.iter().sum::<f64>(), d.host(write).count() as f64, "{name} of the heat map");
    }
}
