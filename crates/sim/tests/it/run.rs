//! Whole runs: from a specification to its result.

use serde_json::Value;
use smrlab_sim::error::Kind;
use smrlab_sim::{Control, RunError, RunResult, Spec, run};

fn spec(text: &str) -> Spec {
    Spec::from_toml(text).unwrap()
}

fn done(text: &str) -> RunResult {
    run(&spec(text), &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

fn number(v: &Value, path: &str) -> f64 {
    v.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

const UNIFORM: &str = "
drive = 'he2014-example'
trace = 'synth:uniform,requests=2000,size=4KiB,write=70%,interarrival=60ms'
wrap = 'capacity'
";

#[test]
fn a_conventional_drive_does_what_the_host_asks_and_nothing_else() {
    let r = done(&format!("{UNIFORM} layer = 'cmr'"));
    let j = &r.json;
    for key in ["reads", "writes", "blocks_read", "blocks_written", "adjusted_reads"] {
        assert_eq!(j["host"][key], j["media"][key], "{key}");
    }
    assert_eq!(number(j, "/host/reads") + number(j, "/host/writes"), 2000.0);
    assert_eq!((number(j, "/write_overloading"), number(j, "/war/per_write")), (1.0, 1.0));
    assert_eq!(j["space"]["gain"], 1.0);
    assert!(j.get("cleaning").is_none() && j.get("overload").is_none(), "keys that do not apply are absent");
    let (mean, p99, max) =
        (number(j, "/response_ms/mean"), number(j, "/response_ms/p99"), number(j, "/response_ms/max"));
    assert!(0.0 < mean && mean < p99 && p99 <= max, "{mean} {p99} {max}");
    assert!(number(j, "/busy_s") < number(j, "/makespan_s"));
}

/// 250 000 writes that come at once, each a rewrite of a band of 100 tracks: they wait for more than 584 years together, which is
/// what 64 bits of nanoseconds hold.
#[test]
fn waits_that_add_up_to_centuries_are_summed() {
    let j = done(
        "drive = 'he2014-example'\nlayer = 'rmw,band=100'\nwrap = 'capacity'
         trace = 'synth:uniform,requests=250000,size=4KiB,write=100%,interarrival=1us'",
    )
    .json;
    let (total, mean) = (number(&j, "/stalls/total_s"), number(&j, "/response_ms/mean") / 1e3);
    assert!(total > u64::MAX as f64 / 1e9, "{total} s");
    assert!((total / (mean * 250e3) - 1.0).abs() < 1e-3, "{total} s, of {mean} s in the mean");
}

#[test]
fn tables_agree_with_the_document() {
    let r = done(&format!("{UNIFORM} layer = 'static-1234'\nwindow = '1s'"));
    let column = |table: usize, name: &str| {
        let (_, c) = r.tables[table].columns.iter().find(|(n, _)| *n == name).unwrap();
        match c {
            smrlab_sim::table::Column::Int(v) => v.iter().sum::<i64>() as f64,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(column(0, "arrivals"), 2000.0);
    assert_eq!(column(0, "completions"), 2000.0);
    assert_eq!(column(0, "media_blocks_written"), number(&r.json, "/media/blocks_written"));
    assert_eq!(column(2, "reads") + column(2, "writes"), 2000.0);
    assert_eq!(column(1, "count"), 4000.0, "responses and services");
    for t in &r.tables {
        assert!(!t.parquet().unwrap().is_empty(), "{}", t.name);
    }
}

fn fails(text: &str) -> RunError {
    match run(&spec(text), &Control::new(), None) {
        Err(e) => e,
        Ok(r) => panic!("{text}\n{:#}", r.json),
    }
}

#[test]
fn bad_input_is_told_all_at_once_with_remedies() {
    let e = fails("drive = 'modern-720'\nlayer = 'cmmr'\nscheduler = 'sptff'\nwindow = '5'");
    let text = e.to_string();
    for part in ["trace: missing", "'modern-7200'?", "'cmr'?", "'sptf'?", "window: '5' is not a time"] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
    assert_eq!(e.kind(), Kind::Input);
    let e = fails("drive = 'tiny'\ntrace = 'synth:uniform,requests=10,span=16GiB'");
    assert!(e.to_string().contains("--wrap capacity"), "{e}");
    assert_eq!(e.kind(), Kind::Input);
}

/// Each field of words and numbers by itself, with what it accepts.
#[test]
fn a_field_says_what_it_accepts() {
    for (field, accepted) in [
        ("adjusted_rule = 'round'", "floor+1"),
        ("address_space = 'beside'", "concat"),
        ("wrap = 'round'", "prefilled"),
        ("join = 'togethr'", "bursts"),
        ("scale_time = 0.0", "from 1e-9 to 1e12"),
        (
            "arrivals = 'closd,depth=4'",
            "is not accepted (did you mean 'closed'?): 'trace', 'pauses' or 'closed[",
        ),
        ("arrivals = 'at-once'", "is not accepted: 'trace', 'pauses' or"),
        ("adjusted_blocks = 0", "a whole number from 1"),
        ("limit = 0", "a whole number from 1"),
    ] {
        let e = fails(&format!("trace = 'synth:uniform,requests=10,span=1MiB'\ndrive = 'tiny'\n{field}"));
        let name = field.split(' ').next().unwrap_or_default();
        let text = e.to_string();
        assert!(text.contains(name) && text.contains(accepted), "{field}: {text}");
        assert_eq!(e.kind(), Kind::Input, "{field}");
    }
}

/// Flushes and discards are counted where a trace has any, and there is no word of them where it has none.
#[test]
fn flushes_and_discards_of_a_trace_are_counted() {
    let line = |rwbs: &str, rest: &str| {
        format!("  8,16   3        1     0.000000100   697  D  {rwbs} {rest} [fio]\n")
    };
    let of = |name: &str, lines: &[String]| {
        let path = std::env::temp_dir().join(format!("flushes-{name}-{}.txt", std::process::id()));
        std::fs::write(&path, lines.concat()).unwrap();
        let r = done(&format!("drive = 'tiny'\ntrace = '{}:blkparse'", path.display())).json;
        std::fs::remove_file(&path).unwrap();
        ["reads", "writes", "flushes", "discards"].map(|n| r["host"][n].as_u64())
    };
    let writes = [line("W", "8 + 8"), line("R", "8 + 8"), line("W", "16 + 8")];
    let others = [line("F", ""), line("D", "8 + 8"), line("F", ""), line("F", ""), line("D", "16 + 8")];
    assert_eq!(of("none", &writes), [Some(1), Some(2), None, None]);
    assert_eq!(of("some", &[&writes[..], &others].concat()), [Some(1), Some(2), Some(3), Some(2)]);
}

/// Whoever looks on sees all requests done at the end, of one drive and of several, of one batch and of several.
#[test]
fn progress_counts_every_request() {
    for (more, requests) in [("", 2000), ("array = 'striped,disks=2'", 2000), ("", 20_000)] {
        let control = Control::new();
        let uniform = UNIFORM.replace("2000", &requests.to_string());
        run(&spec(&format!("{uniform} layer = 'cmr'\n{more}")), &control, None).unwrap();
        assert_eq!((control.requests(), control.prefills()), (requests, false), "{more}");
    }
}

#[test]
fn a_cancelled_run_stops() {
    let control = Control::new();
    control.cancel();
    let e = run(&spec(&format!("{UNIFORM} layer = 'cmr'")), &control, None).unwrap_err();
    assert_eq!(e.kind(), Kind::Interrupted);
    let array = format!("{UNIFORM} layer = 'cmr'\narray = 'striped,disks=2'");
    assert_eq!(run(&spec(&array), &control, None).unwrap_err().kind(), Kind::Interrupted);
}

/// The layer and the count of what was written are told of random writes apart: that is the same in turns, at the same time,
/// and where both are told of each write.
#[test]
fn a_random_prefill_is_the_same_with_and_without_threads() {
    let text = |more: &str| {
        let rest = "layer = 'disk-cache'\nprefill = '60%,order=random,of=cache'";
        format!(
            "drive = 'modern-7200,capacity=8GB'\ntrace = 'synth:uniform,requests=2000,size=8KiB'\n{rest}\n{more}"
        )
    };
    let of = |more: &str, control: &Control| run(&spec(&text(more)), control, None).unwrap().json;
    let threads = Control::new().doing(|one, other| {
        std::thread::scope(|scope| {
            scope.spawn(other);
            one();
        });
    });
    let (turns, threads) = (of("", &Control::new()), of("", &threads));
    assert_eq!(turns, threads);
    let each = of("verify_media = true", &Control::new());
    for key in ["media", "host", "cache", "cleaning", "response_ms"] {
        assert_eq!(turns[key], each[key], "{key}");
    }
    // Memory alone differs: room for a round is made at once.
    assert_eq!(turns["space"]["host_blocks"], each["space"]["host_blocks"]);
    assert!(number(&turns, "/host/reads_unwritten") < number(&turns, "/host/reads"), "{turns:#}");
}

#[test]
fn logs_have_a_row_for_each_request_and_each_operation() {
    let dir = std::env::temp_dir().join(format!("smrlab-logs-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let text =
        format!("{UNIFORM} layer = 'static-1234'\nprefill = '100%'\nrequests = true\nmedia_log = true");
    let e = run(&spec(&text), &Control::new(), None).unwrap_err();
    assert!(e.to_string().contains("--out DIR"), "{e}");
    let r = run(&spec(&text), &Control::new(), Some(&dir)).unwrap();
    let rows = |name: &str| {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        let file = std::fs::File::open(dir.join(format!("{name}.parquet"))).unwrap();
        SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows() as f64
    };
    assert_eq!(rows("requests"), 2000.0);
    assert_eq!(rows("media"), number(&r.json, "/media/reads") + number(&r.json, "/media/writes"));
    assert!(r.tables.iter().all(|t| t.rows() > 0), "timeline, histogram and heatmap");
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The dotted paths of everything that is no object.
fn paths(v: &Value, path: &str, out: &mut Vec<String>) {
    match v {
        Value::Object(map) => map.iter().for_each(|(k, v)| {
            let below = if path.is_empty() { k.clone() } else { format!("{path}.{k}") };
            paths(v, &below, out);
        }),
        _ => out.push(path.to_owned()),
    }
}

#[test]
fn every_key_of_a_result_is_explained() {
    let runs = [
        "layer = 'disk-cache,idle=10ms'\nmetadata = 'media'\nprefill = '50%'",
        "layer = 's-block'\nverify_media = true",
        "layer = 'rmw'\nscale_time = 0.01",
        "layer = 'static-14R(23)'",
        "layer = 'zoned'",
        "layer = 'disk-cache,idle=1ms,cache=20%'\nscale_time = 100.0\nlimit = 50",
        "drive = 'modern-7200,capacity=4GB,cache=on'\nlayer = 'cmr'",
        "array = 'raid5,disks=3,ssd_read=1MiB,ssd_write=1MiB'\nlayer = 'cmr'",
        "array = 'raid5,disks=3,fail=1@10s,replace=10s'\nlayer = 'cmr'\ndrive = 'tiny'",
        "array = 'raid5,disks=3,journal=on'\nlayer = 'cmr'",
        "array = 'striped,disks=3,ssd_write=256KiB,fail=1@10s'\nlayer = 'cmr'",
        "array = 'raid5,disks=3,parity=log'\nlayer = 'cmr'",
        "array = 'dvs,disks=3,journal=on'\nlayer = 'cmr'",
        "array = 'dvs,disks=3,stripes=fill,tables=zone'\nlayer = 'cmr'",
        "layer = 'disk-cache,idle=1ms'\nprefill = '90%,of=cache'\ntrace = 'synth:phases,of=idle(10s);burst(100)'",
    ];
    let mut seen = Vec::new();
    let trace = "trace = 'synth:uniform,requests=3000,size=4KiB,write=70%,interarrival=60ms'\n";
    for more in runs {
        let drive = if more.contains("drive = ") { "" } else { "drive = 'modern-7200,capacity=4GB'\n" };
        let trace = if more.contains("trace = ") { "" } else { trace };
        let text = format!("{drive}wrap = 'capacity'\n{trace}stall = '20ms'\n{more}");
        paths(&done(&text).json, "", &mut seen);
    }
    let own = ["schema", "spec", "provenance"];
    let results = || seen.iter().filter(|p| !own.contains(&p.split('.').next().unwrap_or_default()));
    let unknown: Vec<_> = results().filter(|p| smrlab_sim::keys::of(p).is_none()).collect();
    assert!(unknown.is_empty(), "explain them in crates/sim/src/keys.rs: {unknown:?}");
    let elsewhere = ["host.flushes", "host.discards", "host.appends", "host.zone_commands"];
    let told = |key: &smrlab_sim::key::Key| {
        results().any(|p| smrlab_sim::keys::of(p).is_some_and(|k| k.path == key.path))
    };
    // What stands in tables only is no key of the document; these generators neither flush nor discard, and know no zones;
    // arrays have tests of their own.
    let never: Vec<_> = smrlab_sim::keys::KEYS
        .iter()
        .filter(|k| !k.doc.contains("in tables only") && !elsewhere.contains(&k.path) && !told(k))
        .map(|k| k.path)
        .collect();
    assert!(never.is_empty(), "no run gives these, or the runs of this test are too tame: {never:?}");
}

/// A run that would come beyond the times that there are ends with a message, not with a wrong time.
#[test]
fn a_run_of_centuries_is_refused() {
    let run = |trace: &str, drive: &str, arrivals: &str| {
        let text = format!(
            "trace = 'synth:uniform,{trace}'\ndrive = '{drive}'\nlayer = 'cmr'\nwrap = 'capacity'\narrivals = '{arrivals}'"
        );
        let spec = Spec::from_toml(&text).unwrap();
        smrlab_sim::run(&spec, &Control::new(), None).map(|_| ()).map_err(|e| e.to_string())
    };
    let refused = |think: &str, requests: u64| {
        run(&format!("requests={requests}"), "tiny", &format!("closed,think={think}"))
    };
    assert_eq!(refused("86400s", 100_000), Ok(()));
    let e = refused("86400s", 250_000).unwrap_err();
    assert!(e.contains("would go on after 292 years"), "{e}");
    let e = refused("86401s", 10).unwrap_err();
    assert!(e.contains("at most 86400s"), "{e}");
    // Requests that come at once, each of which keeps the drive busy for days.
    let text = include_str!("../../../../drives/tiny.toml");
    let text =
        text.replace("[[40, 32], [40, 24], [40, 16]]", "[[20000, 32]]").replace("value = 6000", "value = 1");
    let slow = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("slow.toml");
    std::fs::write(&slow, text).unwrap();
    let slow = slow.to_str().unwrap();
    assert_eq!(run("requests=1000,size=300MB,interarrival=1ms", slow, "trace"), Ok(()));
    let e = run("requests=30000,size=300MB,interarrival=1ms", slow, "trace").unwrap_err();
    assert!(e.contains("would go on after 292 years"), "{e}");
}

/// Of what was chosen of the trace, all that was given is named, and nothing else.
#[test]
fn a_run_without_requests_names_what_leaves_them_out() {
    let choices = ["from = \"300s\"", "until = \"400s\"", "filter = \"device=7\""];
    for given in [1, 3, 4, 5, 6, 7] {
        let lines: Vec<&str> = (0..3).filter(|i| given >> i & 1 == 1).map(|i| choices[i]).collect();
        let text = format!(
            "trace = \"synth:uniform,requests=9\"\ndrive = \"tiny\"\nlayer = \"cmr\"\n{}\n",
            lines.join("\n")
        );
        let said = run(&spec(&text), &Control::new(), None).map(|_| ()).unwrap_err().to_string();
        let names: Vec<&str> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert!(
            said.contains(&format!("is left: {} leaves all of them out", names.join(" with "))),
            "{said}"
        );
    }
    let spec = Spec { limit: Some(0), ..Spec::new("synth:uniform,requests=9", "tiny", "cmr") };
    let said = run(&spec, &Control::new(), None).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("limit: 0 is not accepted: a whole number from 1"), "{said}");
}
