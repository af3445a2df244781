//! Members of arrays behind schedulers of their own.

use serde_json::Value;
use smrlab_sim::{Control, Spec, run};

fn go(drive: &str, array: &str, layer: &str, trace: &str, more: &str) -> Value {
    let text = format!(
        "drive = '{drive}'\nlayer = '{layer}'\narray = '{array}'\ntrace = '{trace}'\nwrap = 'capacity'\n{more}"
    );
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
        .unwrap_or_else(|e| panic!("{text}\n{e}"))
        .json
}

fn number(v: &Value, path: &str) -> f64 {
    v.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

const MIXED: &str = "synth:uniform,requests=600,size=2blk,write=50%,span=100%,align=1blk";

/// One drive behind a layout does the same as one drive: the same order of requests, the same times, whether the queue has room for all
/// or not.
#[test]
fn one_drive_behind_a_layout_schedules_as_one_drive() {
    for drive in ["tiny", "tiny,cache=on,cache_size=64KiB,segments=4"] {
        for arrivals in ["trace", "closed,depth=6", "closed,depth=40,think=2ms"] {
            for scheduler in ["sptf,depth=4", "sptf,depth=32", "look,depth=8,max_wait=200ms"] {
                let more = format!("arrivals = '{arrivals}'\nscheduler = '{scheduler}'\n");
                for layer in ["cmr", "rmw"] {
                    let alone = go(drive, "single", layer, MIXED, &more);
                    let behind = go(drive, "spanning,disks=1", layer, MIXED, &more);
                    for path in [
                        "/makespan_s",
                        "/response_ms/mean",
                        "/response_ms/max",
                        "/media/writes",
                        "/movement/track_distance",
                    ] {
                        let (a, b) = (number(&alone, path), number(&behind, path));
                        assert_eq!(a, b, "{drive} {layer} {arrivals} {scheduler} {path}");
                    }
                }
            }
        }
    }
}

/// The dual-actuator drive as the host sees it, two halves with a queue each: 304 random reads of 4 KiB a second are stated at depth 16
/// (Tom's Hardware, ComputerBase 2022-11). The seek curve is assumed, and not made for this.
#[test]
fn both_actuators_reach_what_is_stated_of_the_drive() {
    let reads = "synth:uniform,requests=20000,size=4KiB,write=0%";
    let rate = |bus: &str, scheduler: &str| {
        let more = format!("arrivals = 'closed,depth=16'\nscheduler = '{scheduler}'\n");
        let array = format!("spanning,disks=2{bus}");
        20_000.0 / number(&go(HALF, &array, "cmr", reads, &more), "/makespan_s")
    };
    let (fcfs, sptf) = (rate("", "fcfs"), rate("", "sptf,depth=16"));
    let shared = rate(BUS, "sptf,depth=16");
    println!(
        "{fcfs:.1} reads a second first come, first served, {sptf:.1} behind SPTF, {shared:.1} on one bus"
    );
    assert!((sptf / 304.0 - 1.0).abs() < 0.1 && sptf > 1.5 * fcfs, "{fcfs}, {sptf}");
    // 4 KiB pass in 7 us.
    assert!((shared / sptf - 1.0).abs() < 0.01, "{shared}, {sptf}");
}

const HALF: &str = "seagate-exos-2x18-half";
/// What SATA carries of 6 Gb/s: the halves' own buses, as one.
const BUS: &str = ",bus=550";

/// Both stream at their media rates, unless one bus has to carry both: then at its own, however deep the host's queue is.
#[test]
fn one_bus_is_the_limit_of_two_actuators() {
    let rate = |bus: &str, trace: &str, depth: u32| {
        let array = format!("striped,disks=2,chunk=1MiB{bus}");
        let r = go(HALF, &array, "cmr", trace, &format!("arrivals = 'closed,depth={depth}'\n"));
        number(&r, "/host/blocks_read") * 512.0 / 1e6 / number(&r, "/makespan_s")
    };
    let stream = "synth:sequential,requests=2000,size=4MiB,write=0%";
    let (own, one) = (rate("", stream, 8), rate(BUS, stream, 8));
    let deep = rate(BUS, stream, 32);
    println!("stream: {own:.1} MB/s, on one bus {one:.1}, {deep:.1} at depth 32");
    assert!(own > 552.0 && (548.0..=550.0).contains(&one) && (548.0..=550.0).contains(&deep));
}

/// Every block comes back, through parity, buffers and schedulers, and with a drive that dies with requests in its queue.
#[test]
fn nothing_is_lost_behind_schedulers() {
    for drive in ["tiny", "tiny,cache=on,cache_size=64KiB,segments=4"] {
        for (array, deaths) in [
            ("striped,disks=3,chunk=2blk", None),
            ("raid5,disks=5,chunk=4blk", None),
            ("raid5,disks=5,chunk=4blk,fail=2@1s,replace=1s", Some(1.0)),
            ("dvs,disks=5,chunk=4blk,segment=10,overprovision=20%", None),
        ] {
            let more = "arrivals = 'closed,depth=24'\nscheduler = 'sptf,depth=8'\nverify_media = true\n";
            let r = go(drive, array, "rmw", MIXED, more);
            assert_eq!(number(&r, "/host/reads") + number(&r, "/host/writes"), 600.0, "{array}");
            assert_eq!(
                r.pointer("/array/deaths").and_then(Value::as_f64).unwrap_or(0.0),
                deaths.unwrap_or(0.0),
                "{array}"
            );
            assert_eq!(r["verify"]["ok"], true, "{array}");
            if deaths.is_some() {
                assert_eq!((number(&r, "/array/rebuilds"), number(&r, "/array/refused")), (1.0, 0.0));
            }
        }
    }
}
