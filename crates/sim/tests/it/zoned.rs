//! Runs on a host-managed drive.

use crate::support::{real, rows, scratch};
use parquet::record::Field;
use smrlab_sim::table::Column;
use smrlab_sim::{Control, RunResult, Spec, run};
use std::collections::BTreeMap;

fn done(text: &str) -> RunResult {
    let spec = Spec::from_toml(text).unwrap_or_else(|e| panic!("{text}\n{e}"));
    run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// Zones of 64 KiB, of which the first ones are conventional.
const DRIVE: &str = "drive = 'tiny'\nlayer = 'zoned,zone=16KiB,conventional=0%,max_open=4'\n";

#[test]
fn writers_that_keep_the_rules_are_never_refused() {
    let text =
        format!("{DRIVE}trace = 'synth:zoned,writers=4,zone=16KiB,size=uniform(4KiB;12KiB),requests=2000'");
    let r = done(&text).json;
    assert!(r.get("refusals").is_none(), "{}", r["refusals"]);
    let resets = r["cache"]["zone_resets"].as_u64().unwrap();
    assert!(resets > 50, "{resets} resets");
    assert_eq!(r["host"]["writes"].as_u64().unwrap() + resets, 2000);
    assert_eq!(r["media"]["blocks_written"], r["host"]["blocks_written"], "nothing is moved");
    assert_eq!(r["cache"]["zones_closed_for_others"], 0);
}

/// An append is a write of which the drive chooses the place: what it writes is the host's.
#[test]
fn appends_are_writes_of_the_host() {
    let path = std::env::temp_dir().join(format!("appends-{}.csv", std::process::id()));
    let rows = "0,append,0,8\n100,append,0,8\n200,W,16,8\n300,zone-finish,0,32\n400,append,0,8\n500,R,0,8\n";
    std::fs::write(&path, format!("time_ms,op,lba,blocks\n{rows}")).unwrap();
    let found = done(&format!("{DRIVE}trace = '{}'", path.display()));
    let host = &found.json["host"];
    let told = ["writes", "blocks_written", "refused_blocks_written", "appends", "zone_commands", "reads"];
    assert_eq!(told.map(|name| host[name].as_u64().unwrap()), [4, 32, 8, 3, 1, 1]);
    assert_eq!(found.json["write_amplification"], 1.0);
    assert_eq!(found.json["war"]["per_write"], 1.0);
    let timeline = found.tables.iter().find(|t| t.name == "timeline").unwrap();
    let written = crate::support::real(timeline, "write_blocks").into_iter().flatten().sum::<f64>();
    assert_eq!(written, 32.0);
    // What is refused is answered too; a command of zones is neither.
    let histogram = found.tables.iter().find(|t| t.name == "histogram").unwrap();
    let column = |name: &str| &histogram.columns.iter().find(|c| c.0 == name).unwrap().1;
    let (Column::Text(kinds), Column::Int(counts)) = (column("kind"), column("count")) else { panic!() };
    let of = |kind: &str| kinds.iter().zip(counts).filter(|(k, _)| *k == kind).map(|(_, n)| n).sum::<i64>();
    assert_eq!(["read", "write"].map(of), [1, 4]);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn an_ordinary_trace_is_refused_and_told_why() {
    let text = format!(
        "{DRIVE}wrap = 'capacity'\ntrace = 'synth:uniform,requests=500,size=4KiB,align=4KiB,write=70%'"
    );
    let r = done(&text).json;
    let refusals = &r["refusals"];
    let by_reason: u64 =
        refusals["by_reason"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    let count = refusals["count"].as_u64().unwrap();
    assert_eq!(by_reason, count);
    let writes = r["host"]["writes"].as_u64().unwrap();
    assert!(count > writes / 2 && count < writes, "{count} of {writes}");
    assert_eq!(r["media"]["writes"].as_u64().unwrap(), writes - count, "what is refused is not done");
    let first = &refusals["first"][0];
    assert_eq!((first["reason"].as_str(), first["op"].as_str()), (Some("not-at-pointer"), Some("write")));
}

/// A trace of the names and numbers of zones' commands, as blktrace has them: a reset names a block of the zone, or is for all.
#[test]
fn zone_commands_of_a_trace_are_carried_out() {
    let line = |rwbs: &str, rest: &str| {
        format!("  8,16   3        1     0.000000100   697  D  {rwbs} {rest} [fio]\n")
    };
    let all = [
        line("ZA", "0 + 8"),
        line("W", "8 + 8"),
        line("ZF", "0"),
        line("ZR", "0"),
        line("W", "0 + 8"),
        line("W", "32 + 8"),
        line("ZO", "64"),
        line("ZRA", ""),
        line("W", "0 + 8"),
        line("W", "32 + 8"),
        line("W", "40 + 8"),
        line("ZC", "32"),
    ]
    .concat();
    let path = std::env::temp_dir().join(format!("zone-commands-{}.txt", std::process::id()));
    std::fs::write(&path, all).unwrap();
    let r = done(&format!("{DRIVE}trace = '{}:blkparse'", path.display())).json;
    std::fs::remove_file(&path).unwrap();
    assert!(r.get("refusals").is_none(), "{}", r["refusals"]);
    let host = ["writes", "appends", "zone_commands"].map(|name| r["host"][name].as_u64().unwrap());
    assert_eq!(host, [7, 1, 5]);
    let cache = |name: &str| r["cache"][name].as_u64().unwrap();
    // The finished zone; then of all zones the two that were written. The third was empty, and is open no more.
    assert_eq!(cache("zone_resets"), 3);
    assert_eq!((cache("open_zones"), cache("used_zones_closed")), (1, 1));
}

/// What is followed of zones: appends, what a reset takes away, and what is written there then. And an append counts as a write of where
/// it went: its blocks can be read, and a write there after a reset is an update.
#[test]
fn appends_and_resets_are_followed_and_counted_as_what_they_did() {
    let path = std::env::temp_dir().join(format!("zones-followed-{}.csv", std::process::id()));
    let lines = "arrival_ns,op,lba,blocks\n\
        0,write,0,8\n\
        1000,append,0,8\n\
        2000,read,0,16\n\
        3000,zone-reset,20,1\n\
        4000,read,0,16\n\
        5000,append,0,8\n\
        6000,read,0,8\n\
        7000,write,8,8\n\
        8000,append,32,8\n\
        9000,read,32,8\n\
        9500,zone-reset,0,64\n\
        9600,read,32,8\n";
    std::fs::write(&path, lines).unwrap();
    for (drive, scheduler) in [
        ("tiny", "fcfs"),
        ("tiny", "sptf,depth=8"),
        ("tiny,write_cache=on,cache_size=64KiB,segments=8", "look"),
    ] {
        let r = done(&format!(
            "drive = '{drive}'\nlayer = 'zoned,zone=32blk,conventional=0%'\nscheduler = '{scheduler}'\nverify_media = true\n\
             trace = '{}:csv'",
            path.display()
        ));
        let host = ["writes", "appends", "updates", "reads_unwritten"]
            .map(|name| r.json["host"][name].as_u64().unwrap());
        assert_eq!(host, [5, 3, 2, 0], "{drive}, {scheduler}");
        assert_eq!(r.json["verify"]["ok"], true, "{drive}, {scheduler}");
        assert!(r.json.get("refusals").is_none(), "{}", r.json["refusals"]);
    }
    std::fs::remove_file(&path).unwrap();
}

/// Windows of a second, by hand: which zones are open, closed and full at the end of each, how many were reset, and how many requests were refused.
#[test]
fn zones_over_time_are_those_that_were_opened_filled_and_reset_by_then() {
    let all = [
        // Zones of 32 blocks: the first is begun.
        (0, "W", "0 + 8"),
        // The second is begun and filled.
        (1200, "W", "32 + 8"),
        (1500, "W", "40 + 24"),
        // One is off its write pointer, the third is begun.
        (3200, "W", "72 + 8"),
        (3500, "W", "64 + 8"),
        (4500, "ZC", "0"),
        // A full zone is reset, and an empty one.
        (5200, "ZR", "32"),
        (5500, "ZR", "160"),
        (6500, "ZRA", ""),
        (8000, "R", "0 + 8"),
    ];
    let line = |(ms, rwbs, rest): &(u64, &str, &str)| {
        format!(
            "  8,16   3        1     {}.{:03}000000   697  D  {rwbs} {rest} [fio]\n",
            ms / 1000,
            ms % 1000
        )
    };
    let path = std::env::temp_dir().join(format!("zones-over-time-{}.txt", std::process::id()));
    std::fs::write(&path, all.iter().map(line).collect::<String>()).unwrap();
    let text = format!("{DRIVE}window = '1s'\ntrace = '{}:blkparse'", path.display());
    let of = |text: &str| {
        let found = done(text);
        let timeline = found.tables.iter().find(|t| t.name == "timeline").unwrap();
        ["open_zones", "closed_zones", "full_zones", "zone_resets", "refused"].map(|name| {
            crate::support::real(timeline, name)
                .into_iter()
                .map(|n| n.unwrap_or(-1.0) as i64)
                .collect::<Vec<_>>()
        })
    };
    let want = [
        vec![1, 1, 1, 2, 1, 1, 0, 0, 0],
        vec![0, 0, 0, 0, 1, 1, 0, 0, 0],
        vec![0, 1, 1, 1, 1, 0, 0, 0, 0],
        vec![0, 0, 0, 0, 0, 1, 2, 0, 0],
        vec![0, 0, 0, 1, 0, 0, 0, 0, 0],
    ];
    assert_eq!(of(&text), want);
    // The same with the drive's write cache on, and behind a scheduler.
    let cached =
        text.replace("'tiny'", "'tiny,write_cache=on,cache_size=64KiB,segments=8,command=200us,bus=5'");
    assert_eq!(of(&cached), want);
    assert_eq!(of(&format!("{cached}\nscheduler = 'sptf'")), want);
    let plain = of(&text.replace("zoned,zone=16KiB,conventional=0%,max_open=4", "cmr"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(plain[..4], [-1; 4].map(|n| vec![n; 9]), "missing where the host knows no zones");
}

/// A reset is counted when the host is told that it is done, also where it fills a log of the drive's, which is written anew behind the
/// answer: in windows of 2 ms, which is a fifth of a revolution.
#[test]
fn resets_count_when_they_are_answered() {
    let pair = |i: u64| format!("{},write,512,8\n{},zone-reset,512,1\n", 1000 * i, 1000 * i + 500);
    let dir = scratch();
    let path = dir.join("resets.csv");
    let lines: String = (1..=200).map(pair).collect();
    // One record more, so that it is resets that fill the log: of 64 blocks, of which each pair takes three.
    std::fs::write(&path, format!("time_ms,op,lba,blocks\n0,zone-finish,1024,1\n{lines}")).unwrap();
    let text = format!(
        "drive = 'tiny'\nlayer = 'host-aware,zone=16KiB,conventional=10%'\nmetadata = 'media'\nwindow = '2ms'\n\
         requests = true\nmedia_log = true\ntrace = '{}:csv'",
        path.display()
    );
    let found = run(&Spec::from_toml(&text).unwrap(), &Control::new(), Some(&dir)).unwrap();
    let int = |field: &Field| if let Field::Long(n) = field { *n as u64 } else { panic!("{field:?}") };
    let requests = rows(&dir, "requests.parquet");
    let first = int(&requests[0][1]);
    let window = |at: u64| (at - first) / 2_000_000;
    let resets = requests.iter().filter(|r| matches!(&r[4], Field::Str(op) if op == "zone-reset"));
    let ends: BTreeMap<_, _> = resets.map(|r| (int(&r[0]), window(int(&r[3])))).collect();
    let mut answered = BTreeMap::new();
    ends.values().for_each(|window| *answered.entry(*window).or_insert(0) += 1);
    let media = rows(&dir, "media.parquet");
    let behind = media.iter().filter(|r| ends.get(&int(&r[1])).is_some_and(|end| window(int(&r[4])) > *end));
    assert_eq!((ends.len(), behind.count() > 0), (200, true));
    std::fs::remove_dir_all(dir).unwrap();
    let timeline = found.tables.iter().find(|t| t.name == "timeline").unwrap();
    let counted = real(timeline, "zone_resets").into_iter().flatten().map(|n| n as u64);
    assert_eq!((0..).zip(counted).filter(|w| w.1 > 0).collect::<BTreeMap<_, _>>(), answered);
}

/// Of an array the table of the whole has the sum over its drives, and that of each drive what the array did to it.
#[test]
fn zones_below_a_host_are_seen_too() {
    let hosts =
        [("zone-log", "zone=16KiB,conventional=30%"), ("dm-zoned,reserved=1", "zone=32KiB,conventional=50%")];
    for (host, zones) in hosts {
        let text = format!(
            "drive = 'tiny'\nstack = '{host} / zoned,{zones},max_open=4'\nwrap = 'capacity'\nwindow = '2s'\n\
             trace = 'synth:uniform,requests=3000,size=4KiB,align=4KiB,write=100%'"
        );
        let found = done(&text);
        let column = |table: &str, name: &str| {
            let table = found.tables.iter().find(|t| t.name == table).unwrap();
            crate::support::real(table, name)
        };
        for name in ["open_zones", "closed_zones", "full_zones", "zone_resets"] {
            let (whole, member) = (column("timeline", name), column("members", name));
            let n = whole.len().min(member.len());
            assert_eq!(whole[1..n - 1], member[1..n - 1], "{host}: {name}: one drive is all drives");
        }
        let all: f64 = column("timeline", "zone_resets").iter().flatten().sum();
        assert_eq!(all, found.json["members"][0]["cache"]["zone_resets"].as_f64().unwrap(), "{host}");
        assert!(all > 0.0, "{host}");
        assert!(column("timeline", "full_zones").iter().flatten().any(|n| *n > 0.0), "{host}");
    }
}

/// What the drive's controller needs where the medium is not asked, 0.05 ms, behind a scheduler and without one; most of these are refused.
#[test]
fn a_refusal_takes_the_controllers_time() {
    for scheduler in ["fcfs", "sptf"] {
        let text = format!(
            "drive = 'wd-ultrastar-dc-hc680'\nlayer = 'zoned'\nscheduler = '{scheduler}'\narrivals = 'closed'\n\
             trace = 'synth:uniform,requests=200,size=4KiB,align=4KiB,write=100%'"
        );
        let r = done(&text).json;
        assert!(r["refusals"]["count"].as_u64().unwrap() > 150);
        let median = r["response_ms"]["p50"].as_f64().unwrap();
        assert!((0.049..0.051).contains(&median), "{scheduler}: {median} ms");
    }
}

/// As somebody writes it who knows no option: cache on, any scheduler, zones, and a host that logs.
#[test]
fn presets_of_host_managed_drives_work_at_the_first_try() {
    for drive in ["wd-ultrastar-dc-hc680", "wd-ultrastar-dc-hc690"] {
        for scheduler in ["fcfs", "sptf"] {
            let head = format!("drive = '{drive}'\nscheduler = '{scheduler}'\nwrap = 'capacity'\n");
            let zoned =
                done(&format!("{head}layer = 'zoned'\ntrace = 'synth:zoned,writers=4,requests=300'")).json;
            assert!(zoned.get("refusals").is_none(), "{drive}: {}", zoned["refusals"]);
            assert_eq!(
                zoned["cache"]["open_zones"], 4,
                "{drive}: writers begin behind the conventional zones"
            );
            assert!(
                zoned["buffer"]["writes_buffered"].as_u64().unwrap() > 200,
                "{drive}: {}",
                zoned["buffer"]
            );
            let target = "trace = 'synth:uniform,requests=300,size=4KiB,write=70%'";
            let target = done(&format!("{head}stack = 'dm-zoned / zoned'\n{target}")).json;
            assert!(target["array"]["blocks_to_random_zones"].as_u64().unwrap() > 0, "{drive}");
            let log = "trace = 'synth:uniform,requests=300,size=4KiB,write=70%'";
            let log = done(&format!("{head}stack = 'zone-log / zoned'\n{log}")).json;
            assert_eq!(log["array"]["refused"].as_u64().unwrap_or(0), 0, "{drive}");
            assert!(
                log["members"][0].get("refusals").is_none(),
                "{drive}: {}",
                log["members"][0]["refusals"]
            );
        }
    }
}
