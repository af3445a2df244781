//! Arrays through the whole engine: what a write costs, what members see, what a lost drive does.

use serde_json::Value;
use smrlab_sim::{Control, Spec, run};
use std::collections::BTreeMap;

fn go(array: &str, layer: &str, trace: &str, more: &str) -> Value {
    let text = format!(
        "drive = 'tiny'\nlayer = '{layer}'\narray = '{array}'\ntrace = '{trace}'\nwrap = 'capacity'\n{more}"
    );
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
        .unwrap_or_else(|e| panic!("{text}\n{e}"))
        .json
}

fn number(v: &Value, path: &str) -> f64 {
    v.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

const SMALL: &str = "synth:uniform,requests=400,size=1blk,write=100%,span=100%,align=1blk";
const MIXED: &str = "synth:uniform,requests=600,size=2blk,write=50%,span=100%,align=1blk";

#[test]
fn members_add_up_to_the_whole() {
    // Drives and members have seeds of their own behind the run's, of which this is the largest.
    let more = "arrivals = 'closed,depth=4'\nseed = '18446744073709551615'\n";
    let nested = "striped,disks=2 / mirror";
    for array in ["spanning,disks=3", "striped,disks=4,chunk=2blk", "raid5,disks=5,chunk=4blk", nested] {
        let r = go(array, "rmw", MIXED, more);
        let members = r["members"].as_array().unwrap();
        for path in ["/media/reads", "/media/writes", "/media/blocks_written", "/movement/track_switches"] {
            let sum: f64 = members.iter().map(|m| number(m, path)).sum();
            assert_eq!(sum, number(&r, path), "{array} {path}");
        }
        assert_eq!(number(&r, "/host/reads") + number(&r, "/host/writes"), 600.0);
        assert!(r["spec"]["array"].as_str().unwrap().starts_with(array.split(',').next().unwrap()));
    }
}

#[test]
fn a_small_write_costs_four_requests_with_read_modify_write() {
    let r = go("raid5,disks=6,chunk=4blk,write=modify", "cmr", SMALL, "arrivals = 'closed'\n");
    assert_eq!((number(&r, "/media/reads"), number(&r, "/media/writes")), (800.0, 800.0));
    assert_eq!(number(&r, "/media/by_cause/parity/writes"), 400.0);
    let r = go("raid5,disks=6,chunk=4blk,write=reconstruct", "cmr", SMALL, "arrivals = 'closed'\n");
    // N - w chunks are read: 5 - 1.
    assert_eq!((number(&r, "/media/reads"), number(&r, "/media/writes")), (1600.0, 800.0));
}

/// All numbers of a document, by path.
fn figures(doc: &Value) -> BTreeMap<String, f64> {
    let mut out = BTreeMap::new();
    collect(doc, "", &mut out);
    out.retain(|path, _| {
        !["/schema", "/spec", "/provenance", "/array", "/members"].iter().any(|p| path.starts_with(p))
    });
    out
}

fn collect(v: &Value, at: &str, out: &mut BTreeMap<String, f64>) {
    match v {
        Value::Object(o) => o.iter().for_each(|(k, v)| collect(v, &format!("{at}/{k}"), out)),
        v => out.extend(v.as_f64().map(|x| (at.to_owned(), x))),
    }
}

/// Layers that clean in idle time or wait without the medium, after a prefill, on a trace with pauses.
const WORKING: [&str; 3] = [
    "disk-cache,band=24blk,cache=10%,idle=5ms",
    "persistent-cache,log=96blk,band=24blk,idle=5ms",
    "s-block,sblock_blocks=16,cache=20%,overprovision=30%,sections=1",
];
const PAUSES: &str = "synth:uniform,requests=500,size=2blk,write=60%,span=100%,align=1blk,interarrival=90ms";

/// Every figure of one drive is that of the array with no other, and that of its only member.
#[test]
fn one_drive_behind_a_layout_gives_every_figure_of_one_drive() {
    let mut wrong = Vec::new();
    for layer in WORKING {
        let more = "prefill = '100%'\n";
        let alone = figures(&go("single", layer, PAUSES, more));
        let behind = go("spanning,disks=1", layer, PAUSES, more);
        for (whose, theirs) in [("array", figures(&behind)), ("member", figures(&behind["members"][0]))] {
            for (path, x) in &alone {
                // An array is at work on a request while that waits for its drives, and does not split it into extents;
                // what a medium offers is told of the whole.
                let other: &[&str] =
                    if whose == "array" { &["/service_ms", "/war/per_"] } else { &["/space/"] };
                if other.iter().any(|p| path.starts_with(p)) {
                    continue;
                }
                let there = theirs.get(path);
                if !there.is_some_and(|y| (x - y).abs() <= x.abs() * 1e-12) {
                    wrong.push(format!("{layer} {whose} {path}: {x}, behind the layout {there:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What drives did adds up, whatever they did it for.
#[test]
fn what_members_did_in_idle_time_adds_up() {
    for layer in WORKING {
        let r = go("striped,disks=3,chunk=4blk", layer, PAUSES, "prefill = '100%'\n");
        let members = r["members"].as_array().unwrap();
        for (path, x) in figures(&r) {
            let adds = [
                "/media/",
                "/cleaning/count",
                "/cleaning/total",
                "/busy_s",
                "/time_by",
                "/cache/",
                "/movement/",
            ];
            if !adds.iter().any(|p| path.starts_with(p)) || path.ends_with("share") {
                continue;
            }
            let sum: f64 = members.iter().filter_map(|m| m.pointer(&path).and_then(Value::as_f64)).sum();
            assert!((sum - x).abs() <= x.abs() * 1e-9, "{layer} {path}: {x}, members {sum}");
        }
        assert_eq!(number(&r, "/host/updates"), number(&r, "/host/writes"), "all was written before");
    }
}

#[test]
fn one_drive_behind_a_layout_takes_as_long_as_one_drive() {
    for arrivals in ["trace", "closed,depth=1", "closed,depth=3,think=2ms"] {
        let more = format!("arrivals = '{arrivals}'\n");
        for layer in ["cmr", "rmw", "s-block,sblock_blocks=16,cache=20%,overprovision=30%,sections=1"] {
            let alone = go("single", layer, MIXED, &more);
            let behind = go("spanning,disks=1", layer, MIXED, &more);
            for path in ["/makespan_s", "/response_ms/mean", "/media/writes", "/movement/track_distance"] {
                assert_eq!(number(&alone, path), number(&behind, path), "{layer} {arrivals} {path}");
            }
        }
    }
}

#[test]
fn a_small_write_costs_a_copy_or_two_parities_more() {
    let closed = "arrivals = 'closed'\n";
    let r = go("mirror,disks=5,copies=3,chunk=4blk", "cmr", SMALL, closed);
    assert_eq!((number(&r, "/media/reads"), number(&r, "/media/writes")), (0.0, 1200.0));
    let r = go("raid6,disks=7,chunk=4blk,write=modify", "cmr", SMALL, closed);
    assert_eq!((number(&r, "/media/reads"), number(&r, "/media/writes")), (1200.0, 1200.0));
    assert_eq!(number(&r, "/media/by_cause/parity/writes"), 800.0);
    let r = go("raid6,disks=7,chunk=4blk,write=reconstruct", "cmr", SMALL, closed);
    // N - w chunks are read: 5 - 1.
    assert_eq!((number(&r, "/media/reads"), number(&r, "/media/writes")), (1600.0, 1200.0));
}

/// Two drives die, the second while the first is not rebuilt, and every block that is read is what was last written: what P, Q and copies
/// make of it, too.
#[test]
fn two_dead_drives_are_served_around_and_rebuilt() {
    let more = "arrivals = 'closed,depth=4'\nverify_media = true\n";
    for array in [
        "raid6,disks=6,chunk=4blk",
        "mirror,disks=4,chunk=4blk",
        "mirror,disks=4,copies=3,chunk=4blk,reads=turns",
    ] {
        for layer in ["cmr", "rmw"] {
            let text = format!("{array},fail=0@1s+3@1500ms,replace=1s,spares=2");
            let r = go(&text, layer, MIXED, more);
            let counted = ["deaths", "rebuilds", "refused"].map(|n| number(&r, &format!("/array/{n}")));
            assert_eq!(counted, [2.0, 2.0, 0.0], "{text} over {layer}");
        }
    }
}

/// The trace did not ask for a rebuild: 600 requests, 20 ms apart, are as much of a load with it.
#[test]
fn a_rebuild_is_no_load() {
    let r = go("mirror,disks=2,fail=0@1s,replace=1s", "cmr", MIXED, "");
    let members = r["members"].as_array().unwrap();
    let took =
        |cause: &'static str| members.iter().map(move |m| number(m, &format!("/time_by_cause_s/{cause}")));
    assert!(took("rebuild").sum::<f64>() > 1.0);
    let busiest = took("host").reduce(f64::max).unwrap();
    assert!((number(&r, "/offered_load") * 599.0 * 0.02 - busiest).abs() < 1e-6, "{busiest}");
    assert!(members.iter().all(|m| number(m, "/offered_load") < 1.0));
}

/// Two writes of other blocks, and between them a fresh drive that is rebuilt: what the dead one held is no update there.
#[test]
fn nothing_is_written_on_a_replaced_drive() {
    let two = "synth:sequential,requests=2,size=8blk,write=100%,interarrival=60s";
    let r = go("mirror,disks=2,fail=1@1s,replace=1s", "cmr", two, "");
    assert_eq!((number(&r, "/array/rebuilds"), number(&r, "/host/updates")), (1.0, 0.0));
    // The second write is one: what it covers was rebuilt.
    let updates = [0, 1].map(|disk| number(&r, &format!("/members/{disk}/host/updates")));
    assert_eq!(updates, [0.0, 1.0]);
}

#[test]
fn a_dead_drive_is_served_around_and_rebuilt() {
    let healthy = go("raid5,disks=5,chunk=4blk", "cmr", MIXED, "arrivals = 'closed'\n");
    let lost = go("raid5,disks=5,chunk=4blk,fail=2@1s,replace=1s", "cmr", MIXED, "arrivals = 'closed'\n");
    assert_eq!((number(&lost, "/array/rebuilds"), number(&lost, "/array/deaths")), (1.0, 1.0));
    assert_eq!(number(&lost, "/array/refused"), 0.0);
    let chunks = number(&lost, "/space/host_blocks") / 4.0;
    assert_eq!(number(&lost, "/array/rebuilt_blocks"), chunks);
    assert!(number(&lost, "/array/degraded_rows") > 0.0);
    assert!(number(&lost, "/makespan_s") > number(&healthy, "/makespan_s"));
}

#[test]
fn what_a_lost_array_refuses_is_counted_by_reason_and_as_nothing_written() {
    let more = "arrivals = 'closed'\nprefill = '100%'\n";
    let gone = go("striped,disks=5,chunk=4blk,fail=2@1s", "cmr", MIXED, more);
    let refused = number(&gone, "/array/refused");
    assert!(refused > 0.0);
    assert_eq!(number(&gone, "/refusals/count"), refused);
    assert_eq!(number(&gone, "/refusals/by_reason/lost"), refused);
    // All of it was written before, so what is done updates something.
    let writes = number(&gone, "/host/writes") - number(&gone, "/host/refused_blocks_written") / 2.0;
    assert_eq!(number(&gone, "/host/updates"), writes);
}

/// A limit below what any request takes throws every drive out; one above throws out none.
#[test]
fn a_drive_that_answers_too_late_is_thrown_out() {
    let with = |limit: &str| {
        let array = format!("raid5,disks=5,chunk=4blk,timeout={limit}");
        go(&array, "cmr", MIXED, "arrivals = 'closed'\n")
    };
    assert!(with("10s").pointer("/array/deaths").is_none());
    let thrown = with("1us");
    assert!(number(&thrown, "/array/deaths") >= 2.0 && number(&thrown, "/array/refused") > 0.0);
}

/// The timeout is that of drives. Each request waits 1 s for the SSD of its member, which no layout could do without; no drive takes half of it.
#[test]
fn an_ssd_that_answers_late_is_not_thrown_out() {
    for name in ["spanning", "raid5"] {
        let array = format!("{name},disks=4,timeout=500ms,ssd_write=64blk,ssd_page=1blk,ssd_latency=1s");
        let r = go(&array, "cmr", MIXED, "arrivals = 'closed'\nlimit = 100\n");
        assert!(r.pointer("/array/deaths").is_none() && number(&r, "/response_ms/max") >= 1000.0, "{name}");
    }
}

/// Destaging ends at the low mark however many groups may be destaged at a time: four groups of 16 pages are not emptied
/// where one of them is enough, so as many writes find their page as with one at a time.
#[test]
fn more_destages_at_a_time_do_not_empty_the_cache() {
    let hits = |depth: u64| {
        let array = format!(
            "striped,disks=2,ssd_write=64blk,ssd_page=1blk,ssd_group=16blk,ssd_high=90%,ssd_low=70%,ssd_depth={depth}"
        );
        let trace =
            "synth:uniform,requests=4000,size=1blk,align=1blk,write=100%,span=80blk,interarrival=100ms";
        number(&go(&array, "cmr", trace, ""), "/array/ssd_write_hits")
    };
    let (one, four) = (hits(1), hits(4));
    assert!(one > 2000.0 && four > 0.95 * one, "{four} hits against {one}");
}

/// Requests a second apart, each done long before the next one comes.
fn seconds_apart(requests: &str) -> String {
    let path = std::env::temp_dir().join(format!("smrlab-ssd-{}.csv", std::process::id()));
    let line = |(at, text): (usize, &str)| {
        let (op, lba) = text.split_at(1);
        format!("{at},{op},{lba},1\n")
    };
    std::fs::write(&path, requests.split(' ').enumerate().map(line).collect::<String>()).unwrap();
    format!("{}:csv,columns=time:s;op;lba;size:blk", path.display())
}

/// Eight pages for writes, destaged one by one from more than four dirty ones down to two; four for reads.
#[test]
fn what_the_ssd_did_is_counted_as_by_hand() {
    // The fifth page begins it: 0, 1 and 2 go, two at a time or not. 3 is written again. 10 is brought, then there; 4 is
    // dirty, and there.
    let trace = seconds_apart("W0 W1 W2 W3 W4 W3 R10 R10 R4");
    for depth in 1..3 {
        let array = format!(
            "striped,disks=2,chunk=4blk,ssd_read=4blk,ssd_write=8blk,ssd_page=1blk,ssd_group=1blk,ssd_depth={depth},\
             ssd_write_policy=lru,ssd_high=50%,ssd_low=25%"
        );
        counted_by_hand(&go(&array, "cmr", &trace, ""));
    }
}

fn counted_by_hand(r: &Value) {
    let expected = [
        ("write_hits", 1.0),
        ("write_waits", 0.0),
        ("destages", 3.0),
        ("destaged_pages", 3.0),
        ("destaged_blocks", 3.0),
        ("read_hits", 2.0),
        ("read_misses", 1.0),
        ("fills", 1.0),
    ];
    for (name, n) in expected {
        assert_eq!(number(r, &format!("/array/ssd_{name}")), n, "{name}: {}", r["array"]);
    }
}

/// Chunks of one block: the host's are written once each for the host, what a collection moves for the collection.
#[test]
fn what_a_collection_moves_is_not_the_hosts() {
    let trace = "synth:uniform,requests=3000,size=1blk,write=100%,span=60blk,align=1blk";
    let r = go("dvs,disks=5,chunk=1blk,segment=10,overprovision=20%", "cmr", trace, "arrivals = 'closed'\n");
    assert_eq!(number(&r, "/media/by_cause/host/blocks_written"), 3000.0);
    assert!(number(&r, "/media/by_cause/clean/blocks_written") > 100.0, "{:#}", r["media"]);
    assert_eq!(number(&r, "/cleaning/relocated_blocks"), number(&r, "/media/by_cause/clean/blocks_written"));
}

/// A stack is short for an array and a layer, as one text or as a list; before one drive, too.
#[test]
fn a_stack_is_the_array_and_the_layer_that_it_names() {
    let run_it = |text: &str| {
        let base = format!("drive = 'tiny'\ntrace = '{MIXED}'\nwrap = 'capacity'\n");
        run(&Spec::from_toml(&(base + text)).unwrap(), &Control::new(), None)
    };
    let same = |stack: &str, plain: &str| {
        assert_eq!(run_it(stack).unwrap().json, run_it(plain).unwrap().json, "{stack}");
    };
    same(
        "stack = 'ssd-cache,write=64KiB,page=4KiB / rmw'",
        "array = 'spanning,disks=1,ssd_write=64KiB,ssd_page=4KiB'\nlayer = 'rmw'",
    );
    same(
        "stack = ['bus,rate=1', 'striped,disks=2', 'cmr']",
        "array = 'striped,disks=2,bus=1'\nlayer = 'cmr'",
    );
    same("stack = 'raid5,disks=3'\nlayer = 'rmw'", "array = 'raid5,disks=3'\nlayer = 'rmw'");
    let says = |text: &str| run_it(text).unwrap_err().to_string();
    assert!(says("stack = 'raid5 / cmr'\narray = 'striped'").contains("leave one out"));
    assert!(says("stack = 'raid5 / rmw'\nlayer = 'log'").contains("layer=log is another"));
    assert!(says("stack = 'cmr / raid5'").starts_with("stack: "));
}

/// The last page of a cache is shorter where the space is no multiple of a page: what is rounded up ends there, which the array asks of
/// all that it sends to its members.
#[test]
fn a_cache_that_rounds_to_pages_stays_within_its_array() {
    let array = "striped,disks=2,chunk=7blk,ssd_write=8KiB,ssd_page=4KiB,ssd_round=on";
    let r = go(array, "virtualguard", "synth:sequential,requests=1300,size=3blk,write=100%,span=100%", "");
    assert!(number(&r, "/space/host_blocks") % 8.0 > 0.0);
    assert!(number(&r, "/array/ssd_destaged_blocks") > 3800.0);
}
