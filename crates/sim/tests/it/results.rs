//! What results say: each figure against one worked out by hand or from the logs' side of things.

use serde_json::Value;
use smrlab_sim::table::Column;
use smrlab_sim::{Control, RunResult, Spec, run};
use std::path::PathBuf;

/// A trace file that is removed when dropped.
struct TraceFile(PathBuf);

impl TraceFile {
    /// Lines `seconds,op,lba,blocks`.
    fn new(name: &str, lines: &[String]) -> Self {
        let path = std::env::temp_dir().join(format!("smrlab-{name}-{}.csv", std::process::id()));
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        Self(path)
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn done(trace: &str, rest: &str) -> RunResult {
    let text = format!("trace = '{trace}'\n{rest}");
    let spec = Spec::from_toml(&text).unwrap();
    run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

fn file(trace: &TraceFile, rest: &str) -> RunResult {
    done(&format!("{}:csv,columns=time:s;op;lba;size:blk", trace.0.display()), rest)
}

fn number(r: &RunResult, path: &str) -> f64 {
    r.json
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {path} in {:#}", r.json))
}

fn column<'a>(r: &'a RunResult, table: &str, name: &str) -> &'a Column {
    let table = r.tables.iter().find(|t| t.name == table).unwrap();
    &table.columns.iter().find(|c| c.0 == name).unwrap().1
}

const TINY: &str = "drive = 'tiny'\nmechanics = 'full'\n";

/// `rmw` writes the whole band for each block of the host's: three ways to say so, and each is another number.
#[test]
fn three_costs_of_writes_are_told_apart() {
    let r = done(
        "synth:uniform,requests=200,size=512B,write=100%,interarrival=1s",
        &format!("{TINY} layer = 'rmw'\nwrap = 'capacity'\nadjusted_blocks = 32"),
    );
    // A write reads and writes its band of 128, 96 or 64 blocks: two operations, up to eight adjusted ones.
    let (host, media) = (number(&r, "/host/blocks_written"), number(&r, "/media/blocks_written"));
    assert_eq!(number(&r, "/write_amplification"), media / host);
    assert!((64.0..=128.0).contains(&(media / host)));
    assert_eq!(number(&r, "/war/per_write"), 2.0);
    let adjusted = number(&r, "/media/adjusted_reads") + number(&r, "/media/adjusted_writes");
    assert_eq!(number(&r, "/write_overloading"), adjusted / 200.0);
    assert!((4.0..=8.0).contains(&(adjusted / 200.0)));
}

/// Two writes, and reads: of zones that are empty, of what the drive's buffer holds, and from the medium. As the
/// paper has it each read counts as one operation; the other figure counts what the medium did beside reading for the host.
#[test]
fn reads_without_the_medium_cost_no_writes() {
    let of = |name: &str, reads: [u32; 4], drive: &str, layer: &str| {
        let read = |(at, lba): (u32, u32)| format!("{at},R,{lba},8");
        let writes = ["0,W,0,8".to_owned(), "1,W,8,8".to_owned()];
        let lines: Vec<_> = writes.into_iter().chain((2..).zip(reads).map(read)).collect();
        let trace = TraceFile::new(name, &lines);
        let r = file(&trace, &format!("drive = '{drive}'\nlayer = '{layer}'\n"));
        (number(&r, "/write_overloading"), number(&r, "/write_overloading_media"))
    };
    // Two media writes. Four reads without the medium: (2 - 4) / 2.
    let zoned = "zoned,zone=96blk,conventional=0%";
    assert_eq!(of("nowhere", [900, 904, 908, 912], "tiny", zoned), (-1.0, 1.0));
    // One read from the medium, and three of the same block from the buffer: (2 + 1 - 4) / 2.
    let buffered = "tiny,write_cache=off,cache_size=32KiB,segments=4";
    assert_eq!(of("held", [300, 300, 300, 300], buffered, "cmr"), (-0.5, 1.0));
    // Each write reads its band and writes it, each read is one of the medium: (4 + 4 - 4) / 2.
    assert_eq!(of("band", [100, 104, 300, 900], "tiny", "rmw"), (2.0, 2.0));
}

#[test]
fn reads_of_blocks_that_nobody_wrote_are_counted() {
    let lines = ["0,R,10,4", "1,W,12,2", "2,R,10,4", "3,R,12,2", "4,W,500,1", "5,R,499,3"];
    let trace = TraceFile::new("unwritten", &lines.map(str::to_owned));
    let of = |more: &str| {
        let r = file(&trace, &format!("{TINY} layer = 'cmr'\n{more}"));
        (number(&r, "/host/reads_unwritten"), number(&r, "/host/blocks_read_unwritten"))
    };
    assert_eq!(of(""), (3.0, 4.0 + 2.0 + 2.0));
    assert_eq!(of("prefill = '100%'"), (0.0, 0.0));
    assert_eq!(of("prefill = 'read'"), (0.0, 0.0));
}

/// What the trace reads first is written before, and nothing else is.
#[test]
fn a_prefill_of_what_is_read_writes_no_more() {
    let lines = ["0,R,10,4", "1,W,40,2", "2,W,12,1", "3,R,40,2", "4,R,39,4"].map(str::to_owned);
    let trace = TraceFile::new("first", &lines);
    let r = file(&trace, &format!("{TINY} layer = 'cmr'\nprefill = 'read'"));
    assert_eq!(number(&r, "/host/updates"), 1.0, "block 12 was read and counts as written, 40 was not");
    assert_eq!(r.json["spec"]["prefill"], "read");
}

/// A trace that begins late is the same run.
#[test]
fn time_counts_from_the_first_arrival() {
    let trace = |name: &str, start: u64| {
        let line = |i: u64| format!("{},W,{},3", start as f64 + i as f64 * 0.07, (i * 37) % 500);
        TraceFile::new(name, &(0..300).map(line).collect::<Vec<_>>())
    };
    let (early, late) = (trace("early", 0), trace("late", 3600));
    let setup = format!("{TINY} layer = 'disk-cache,band=16blk,cache=20%'\nwindow = '1s'");
    let (a, b) = (file(&early, &setup), file(&late, &setup));
    for key in ["makespan_s", "iops", "mb_per_s", "offered_load", "backlog_max"] {
        let path = format!("/{key}");
        assert!((number(&a, &path) / number(&b, &path) - 1.0).abs() < 1e-6, "{key}");
    }
    // The angle of the medium differs by an hour's worth of turns, which are whole ones.
    assert_eq!(a.json["cleaning"], b.json["cleaning"]);
    assert!(number(&a, "/cleaning/first_s") > 0.0 && number(&a, "/cleaning/count") > 3.0);
    let rows = |r: &RunResult| match column(r, "timeline", "start_s") {
        Column::Real(v) => v.len(),
        other => panic!("{other:?}"),
    };
    assert!(rows(&a) == rows(&b) && rows(&a) < 60, "{} and {} windows", rows(&a), rows(&b));
}

/// Counters say what happened in the run, levels what there is.
#[test]
fn the_prefill_is_not_counted() {
    let setup = |prefill: &str| {
        let layer = "layer = 'disk-cache,band=16blk,cache=20%'\nwrap = 'capacity'";
        let trace = "synth:uniform,requests=50,size=512B,write=100%,interarrival=1s";
        done(trace, &format!("{TINY} {layer}\n{prefill}"))
    };
    let (without, with) = (setup(""), setup("prefill = '20%,order=random,of=cache'"));
    for r in [&without, &with] {
        let hits = number(r, "/cache/write_hits") + number(r, "/cache/write_misses");
        assert_eq!(hits, 50.0, "writes of one block have one part each");
    }
    assert!(number(&with, "/cache/cached_blocks") > number(&without, "/cache/cached_blocks"), "a level");
    assert_eq!(number(&with, "/cache/cache_blocks"), number(&without, "/cache/cache_blocks"));
}

/// Steps of cleaning that a request ended are no cleanings.
#[test]
fn cleaning_that_was_given_up_does_not_count() {
    let lines: Vec<_> = (0..400u64).map(|i| format!("{},W,{},1", i as f64 * 0.03, (i * 97) % 700)).collect();
    let trace = TraceFile::new("given-up", &lines);
    let r = file(&trace, &format!("{TINY} layer = 'disk-cache,band=16blk,cache=20%,idle=1ms'"));
    let cleanings = &r.json["cleaning"]["by_kind"];
    assert!(number(&r, "/cleaning_given_up/count") > 5.0, "{:#}", r.json);
    let rewrites = r.json["media"]["by_cause"]["clean"]["writes"].as_f64().unwrap();
    let counted: f64 =
        ["idle-clean", "set-clean"].iter().filter_map(|k| cleanings[*k]["count"].as_f64()).sum();
    assert!(counted <= rewrites, "{counted} cleanings of {rewrites} band writes");
}

/// A drive-managed drive cleans a band in several steps: all that it does in idle time is one cleaning.
#[test]
fn the_steps_of_a_cleaning_are_one() {
    let trace = "synth:uniform,requests=2,size=4KiB,write=100%,interarrival=60s";
    let r = done(trace, &format!("{TINY} layer = 'persistent-cache'\nwindow = '1s'\n"));
    let cleaned = |key: &str| number(&r, &format!("/cleaning/{key}"));
    assert_eq!((cleaned("count"), cleaned("max_s")), (1.0, cleaned("total_s")));
    let works = ["clean", "journal"].map(|cause| number(&r, &format!("/time_by_cause_s/{cause}")));
    assert!(works[0] > 0.0 && works[1] > 0.0, "{works:?}");
    for told in [cleaned("total_s"), sum(&r, "timeline", "cleaning_share")] {
        assert!((told - works[0] - works[1]).abs() < 1e-6, "{told}: {works:?}");
    }
}

/// The rewrites of static maps are cleanings, as those of `rmw` are.
#[test]
fn rewrites_of_static_maps_are_cleanings() {
    let trace = "synth:uniform,requests=100,size=512B,write=100%,interarrival=1s";
    let r = done(trace, &format!("{TINY} layer = 'static-1234'\nwrap = 'capacity'\nprefill = '100%'"));
    let amplified = number(&r, "/media/blocks_written") - 100.0;
    assert_eq!(number(&r, "/cleaning/relocated_blocks"), amplified);
    assert!(number(&r, "/cleaning/count") > 50.0);
}

/// Band switches by the layer's own bands: requests that go to and fro between two native bands, uncached.
#[test]
fn band_switches_go_by_the_bands_of_the_layer() {
    let lines: Vec<_> = (0..100u64).map(|i| format!("{i},R,{},1", i % 2 * 16)).collect();
    let trace = TraceFile::new("switches", &lines);
    let r = file(&trace, &format!("{TINY} layer = 'disk-cache,band=16blk,cache=5%'"));
    assert_eq!(number(&r, "/movement/band_switches"), 100.0, "from the cache's band on");
    let near: Vec<_> = (0..100u64).map(|i| format!("{i},R,{},1", i % 2 * 15)).collect();
    let r = file(&TraceFile::new("near", &near), &format!("{TINY} layer = 'disk-cache,band=16blk,cache=5%'"));
    assert_eq!(number(&r, "/movement/band_switches"), 1.0, "within one band");
}

/// Two requests have a time between them, so a load: the work of both over it.
#[test]
fn two_requests_are_a_load() {
    let trace = TraceFile::new("two", &["1.0,W,0,8", "3.0,W,500,8"].map(str::to_owned));
    let r = file(&trace, &format!("{TINY} layer = 'cmr'"));
    assert_eq!(number(&r, "/offered_load"), number(&r, "/busy_s") / 2.0);
}

/// Lines that were passed over are told, as many as there were.
#[test]
fn bad_lines_are_told() {
    let lines = ["1.0,W,0,8", "nonsense", "2.0,W,8", "3.0,W,500,8"].map(str::to_owned);
    let trace = TraceFile::new("bad-lines", &lines);
    let r = file(&trace, &format!("{TINY} layer = 'cmr'\nskip_bad = 5"));
    assert_eq!((number(&r, "/provenance/skipped_bad"), number(&r, "/host/writes")), (2.0, 2.0));
    let whole = TraceFile::new("no-bad-lines", &lines[..1]);
    let r = file(&whole, &format!("{TINY} layer = 'cmr'\nskip_bad = 5"));
    assert!(r.json.pointer("/provenance/skipped_bad").is_none());
}

/// A backlog beyond what is counted one by one says so.
#[test]
fn an_estimated_backlog_says_so() {
    let exact = |requests: u64| {
        let trace = format!("synth:uniform,requests={requests},size=512B,write=100%,interarrival=1us");
        let r = done(&trace, &format!("{TINY} layer = 'cmr'\nwrap = 'capacity'"));
        (r.json["backlog_exact"].as_bool().unwrap(), number(&r, "/backlog_max"))
    };
    let (is_exact, most) = exact(1000);
    assert!(is_exact && (990.0..=1000.0).contains(&most));
    assert!(!exact(6000).0);
}

/// What waits outside of a full queue is in the backlog.
#[test]
fn a_backlog_reaches_beyond_the_queue() {
    let trace = "synth:uniform,requests=30,size=512B,interarrival=0";
    for scheduler in ["fcfs", "sptf,depth=8", "sstf,depth=1"] {
        let setup = format!("{TINY} layer = 'cmr'\nscheduler = '{scheduler}'\nwindow = '10s'");
        let r = done(trace, &setup);
        assert_eq!(r.json["backlog_exact"], true, "{scheduler}");
        assert_eq!(number(&r, "/backlog_max"), 30.0, "{scheduler}");
    }
}

/// A raw disk with bands refuses what is not wholly within one, and does nothing for it.
#[test]
fn raw_bands_refuse_their_guards() {
    // Bands of four tracks of 32 blocks; the fifth is the guard.
    let lines = ["0,W,0,1", "1,W,127,1", "2,W,127,2", "3,W,128,1", "4,W,159,1", "5,W,160,1", "6,R,128,1"];
    let trace = TraceFile::new("raw", &lines.map(str::to_owned));
    let r = file(&trace, &format!("{TINY} layer = 'raw,band=4tracks'"));
    assert_eq!((number(&r, "/media/writes"), number(&r, "/media/blocks_written")), (3.0, 3.0));
    assert_eq!(number(&r, "/media/reads"), 1.0, "guards can be read");
}

fn sum(r: &RunResult, table: &str, name: &str) -> f64 {
    match column(r, table, name) {
        Column::Int(v) => v.iter().sum::<i64>() as f64,
        Column::Real(v) => v.iter().sum(),
        other => panic!("{name}: {other:?}"),
    }
}

/// What has to hold whatever the layer is: parts add up to the whole, in the document and in its tables.
#[test]
fn parts_add_up_for_every_layer() {
    let trace = "synth:uniform,requests=600,size=2KiB,write=60%,interarrival=exp(30ms)";
    for entry in smrlab_stl::LAYERS {
        let setup =
            format!("{TINY} layer = '{}'\nwrap = 'capacity'\nprefill = '30%'\nwindow = '1s'", entry.name);
        let r = done(trace, &setup);
        let name = entry.name;
        let same = |what: &str, a: f64, b: f64| {
            assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{name}: {what}: {a} and {b}");
        };
        let causes = r.json["media"]["by_cause"].as_object().unwrap();
        for key in ["reads", "writes", "blocks_read", "blocks_written", "adjusted_reads", "adjusted_writes"] {
            let parts: f64 = causes.values().map(|c| c[key].as_f64().unwrap()).sum();
            same(key, parts, number(&r, &format!("/media/{key}")));
        }
        let by_cause = r.json["time_by_cause_s"].as_object().unwrap();
        same("time by cause", by_cause.values().map(|v| v.as_f64().unwrap()).sum(), number(&r, "/busy_s"));
        same("busy shares of 1 s", sum(&r, "timeline", "busy_share"), number(&r, "/busy_s"));
        same("arrivals", sum(&r, "timeline", "arrivals"), 600.0);
        same("completions", sum(&r, "timeline", "completions"), 600.0);
        for (column, key) in [("read_blocks", "/host/blocks_read"), ("write_blocks", "/host/blocks_written")]
        {
            same(column, sum(&r, "timeline", column), number(&r, key));
        }
        for (column, key) in
            [("media_blocks_read", "/media/blocks_read"), ("media_blocks_written", "/media/blocks_written")]
        {
            same(column, sum(&r, "timeline", column), number(&r, key));
        }
        same("responses and services", sum(&r, "histogram", "count"), 1200.0);
        let refused = r.json.pointer("/host/refused_blocks_written").map_or(0.0, |n| n.as_f64().unwrap());
        let written = number(&r, "/host/blocks_written") - refused;
        let amplified = number(&r, "/media/blocks_written") / written;
        same("write amplification", number(&r, "/write_amplification"), amplified);
        same("IOPS", number(&r, "/iops") * number(&r, "/makespan_s"), 600.0);
        let [reads, writes] = ["reads", "writes"].map(|k| number(&r, &format!("/host/{k}")));
        let [all, read, write] =
            ["", "read_", "write_"].map(|k| number(&r, &format!("/{k}response_ms/mean")));
        same("mean response", all, (read * reads + write * writes) / 600.0);
        assert!(number(&r, "/host/reads_unwritten") <= reads, "{name}");
        assert!(number(&r, "/space/efficiency") <= 1.0, "{name}");
    }
}

/// Tracks that are set aside for random access count where the host's space has them.
#[test]
fn no_layer_holds_more_than_all_of_the_medium() {
    for entry in smrlab_stl::LAYERS {
        let setup = format!("drive = 'tiny,random_access=10'\nlayer = '{}'\nwrap = 'capacity'\n", entry.name);
        let r = done("synth:uniform,requests=1", &setup);
        let (all, aside, host) = (2880.0, 320.0, number(&r, "/space/host_blocks"));
        let of = if host > all - aside || entry.conventional { all } else { all - aside };
        assert_eq!(number(&r, "/space/efficiency"), host / of, "{}", entry.name);
    }
}

fn nulls(v: &Value, at: &str, out: &mut Vec<String>) {
    match v {
        Value::Object(o) => o.iter().for_each(|(k, v)| nulls(v, &format!("{at}/{k}"), out)),
        Value::Null => out.push(at.to_owned()),
        _ => {}
    }
}

/// A figure that does not apply is not there: no division by nothing in runs of reads, of writes, of one request, of none
/// that touches data.
#[test]
fn what_does_not_apply_is_absent() {
    let runs: [(&str, &[&str], &[&str]); 4] = [
        (
            "reads",
            &["1.0,R,0,8", "2.0,R,8,8"],
            &[
                "/write_amplification",
                "/write_overloading",
                "/write_overloading_media",
                "/war",
                "/write_response_ms",
                "/cleaning/first_s",
            ],
        ),
        ("writes", &["1.0,W,0,8", "2.0,W,8,8"], &["/war/per_update", "/read_response_ms"]),
        ("one", &["1.0,W,0,8"], &["/offered_load", "/overload"]),
        ("two-at-once", &["1.0,W,0,8", "1.0,W,8,8"], &["/offered_load", "/overload"]),
    ];
    for (name, lines, absent) in runs {
        let lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        let trace = TraceFile::new(&format!("absent-{name}"), &lines);
        for layer in ["cmr", "rmw", "disk-cache,band=24blk,cache=10%"] {
            let r = file(&trace, &format!("drive = 'tiny'\nlayer = '{layer}'\n"));
            // Nor was anything done before the first request, or given up.
            for path in absent.iter().chain(&["/busy_before_s", "/cleaning_given_up"]) {
                assert!(r.json.pointer(path).is_none(), "{name} {layer} {path}: {:#}", r.json);
            }
            let mut found = Vec::new();
            nulls(&r.json, "", &mut found);
            found.retain(|p| !p.starts_with("/spec"));
            assert_eq!(found, Vec::<String>::new(), "{name} {layer}: no numbers");
            assert!(number(&r, "/makespan_s") > 0.0);
        }
    }
}

const CACHED: &str =
    "drive = 'tiny,command=1ms,bus=1.024,write_cache=on'\nmechanics = 'full'\nlayer = 'cmr'\n";

/// A bus of 1.024 MB/s and a command of 1 ms: 1.5 ms into the buffer. At 1 s the head is where block 0 begins; block 8 passes from 2.5 to
/// 2.8125 ms after that.
#[test]
fn fua_of_a_trace_reaches_the_drive() {
    let lines = ["when,what,where,n,fua", "0,W,8,1,false", "1,W,8,1,true", "2,R,8,1,true"];
    let trace = TraceFile::new("fua", &lines.map(str::to_owned));
    let columns = "csv,columns=time:s=when;op=what;lba=where;size:blk=n;fua=fua";
    let r = done(&format!("{}:{columns}", trace.0.display()), CACHED);
    let buffer = |r: &RunResult, what: &str| number(r, &format!("/buffer/{what}"));
    assert_eq!((buffer(&r, "writes_buffered"), buffer(&r, "writes_through")), (1.0, 1.0));
    assert_eq!(number(&r, "/write_response_ms/max"), 2.8125);
    assert_eq!(number(&r, "/write_response_ms/mean"), (1.5 + 2.8125) / 2.0);
    for (fua, through) in [("0%", 0.0), ("100%", 200.0)] {
        let trace = format!("synth:uniform,requests=200,size=512B,write=100%,interarrival=1s,fua={fua}");
        let r = done(&trace, CACHED);
        assert_eq!((buffer(&r, "writes_through"), buffer(&r, "writes_buffered")), (through, 200.0 - through));
    }
}

/// What a layout writes for a FUA write is FUA on its disks.
#[test]
fn fua_reaches_the_disks_of_an_array() {
    for array in ["spanning,disks=3", "striped,disks=3", "dedicated,disks=3", "raid5,disks=3"] {
        for (fua, all) in [("0%", "writes_buffered"), ("100%", "writes_through")] {
            let trace = format!("synth:uniform,requests=60,size=512B,write=100%,interarrival=1s,fua={fua}");
            let r = done(&trace, &format!("{CACHED} array = '{array}'"));
            let of = |what: &str| -> f64 {
                (0..3).map(|m| number(&r, &format!("/members/{m}/buffer/{what}"))).sum()
            };
            let (through, buffered) = (of("writes_through"), of("writes_buffered"));
            assert_eq!(of(all), through + buffered, "{array}, {fua}: {through} and {buffered}");
            assert!(of(all) >= 60.0, "{array}");
        }
    }
}

/// The steps of a drive-managed drive's cleaning are operations and pauses of its own: neither the request that one delays nor the records
/// behind it are cleaning.
#[test]
fn a_step_of_cleaning_is_not_the_request_that_it_delays() {
    let trace = "synth:uniform,requests=250,size=8KiB,span=400KiB,write=80%,interarrival=20ms";
    for layer in [
        "persistent-cache,map_limit=60,map_trigger=40,idle=1h",
        "host-aware,map_limit=60,map_trigger=40,idle=1h,zone=64KiB",
    ] {
        let r = done(trace, &format!("drive = 'tiny'\nlayer = '{layer}'"));
        let own = number(&r, "/time_by_cause_s/clean") + number(&r, "/time_by_cause_s/journal");
        let told = number(&r, "/cleaning/total_s");
        assert!(
            number(&r, "/cleaning/count") > 3.0 && (told - own).abs() < 1e-9,
            "{layer}: {told} s, not {own} s"
        );
    }
}
