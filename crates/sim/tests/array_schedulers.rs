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

/// One drive behind a layout does the same as one drive: the same order of requests, the same times. With a buffer only while the queue
/// has room for all: one drive alone takes the arrival of what had to wait outside for the time at which its buffer answers.
#[test]
fn one_drive_behind_a_layout_schedules_as_one_drive() {
    for drive in ["tiny", "tiny,cache=on,cache_size=64KiB,segments=4"] {
        for arrivals in ["trace", "closed,depth=6", "closed,depth=40,think=2ms"] {
            let buffered = drive != "tiny";
            if buffered && arrivals == "trace" {
                continue;
            }
            let shallow = ["sptf,depth=4", "sptf,depth=32", "look,depth=8,max_wait=200ms"];
            let schedulers =
                if buffered { ["sptf,depth=64", "look,depth=64", "sstf,depth=64"] } else { shallow };
            for scheduler in schedulers {
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
    let rate = |scheduler: &str| {
        let more = format!("arrivals = 'closed,depth=16'\nscheduler = '{scheduler}'\n");
        20_000.0
            / number(&go("seagate-exos-2x18-half", "spanning,disks=2", "cmr", reads, &more), "/makespan_s")
    };
    let (fcfs, sptf) = (rate("fcfs"), rate("sptf,depth=16"));
    println!("{fcfs:.1} reads a second first come, first served, {sptf:.1} behind SPTF");
    assert!((sptf / 304.0 - 1.0).abs() < 0.1 && sptf > 1.5 * fcfs, "{fcfs}, {sptf}");
}

/// Every block comes back, through parity, buffers and schedulers, and with a drive that dies with requests in its queue.
#[test]
fn nothing_is_lost_behind_schedulers() {
    for drive in ["tiny", "tiny,cache=on,cache_size=64KiB,segments=4"] {
        for (array, deaths) in [
            ("striped,disks=3,stripe_unit=2blk", None),
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
