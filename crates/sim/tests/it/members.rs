//! What a run of an array says of its drives, and of where its requests' time went.

use crate::support::{Done, go, real};
use smrlab_sim::{Control, Spec};

const MORE: &str = "wrap = 'capacity'\nwindow = '1s'\narrivals = 'trace'";

fn of(array: &str, layer: &str) -> Done {
    go(layer, 1000, &format!("{MORE}\narray = '{array}'"))
}

#[test]
fn the_time_of_a_request_to_one_drive_behind_a_layout_went_where_it_goes_on_one_drive() {
    for layer in ["cmr", "rmw", "disk-cache,cache=20%,idle=10ms", "log"] {
        let [plain, array] = [go(layer, 1000, MORE), of("spanning,disks=1", layer)];
        let spent = |d: &Done| {
            // An array begins with a request at once: that it waits for its drive is other.
            let mut all: Vec<_> = d.requests.iter().map(|r| (r.id, r.spent[..4].to_vec())).collect();
            all.sort_unstable();
            all
        };
        let (a, b) = (spent(&plain), spent(&array));
        let differs = a.iter().zip(&b).filter(|(a, b)| a != b).count();
        assert_eq!(differs, 0, "{layer}: {:?}", a.iter().zip(&b).find(|(a, b)| a != b));
        assert!(
            a.iter().map(|(_, s)| s[3]).sum::<u64>() > 0 || layer == "cmr" || layer == "log",
            "{layer}: cleaning"
        );
    }
}

#[test]
fn the_parts_of_a_requests_time_are_the_whole_in_arrays() {
    for (array, scheduler) in
        [("raid5,disks=3", "fcfs"), ("striped,disks=3,stripe_unit=2blk", "sptf,depth=8")]
    {
        let d = go("cmr", 1000, &format!("{MORE}\narray = '{array}'\nscheduler = '{scheduler}'"));
        for r in &d.requests {
            assert_eq!(r.spent.iter().sum::<u64>(), r.completion - r.start, "{array}: {r:?}");
        }
        // A small write reads and writes two drives: both turns of the disk are in it.
        let turned =
            d.requests.iter().filter(|r| d.asked[r.id].write && r.spent[1] > 0 && r.spent[2] > 0).count();
        let writes = d.host(true).count();
        assert!(2 * turned > writes, "{array}: {turned} of {writes} writes");
    }
}

/// A drive dies and is rebuilt before the first request comes: that is before the run, and in no window of it.
#[test]
fn what_befalls_drives_before_the_first_request_is_before_the_run() {
    let path = std::env::temp_dir().join(format!("late-first-{}.csv", std::process::id()));
    std::fs::write(&path, "arrival_ns,op,lba,blocks\n5000000000,W,8,8\n5100000000,R,8,8\n").unwrap();
    let text = format!(
        "drive = 'tiny'\nlayer = 'log'\narray = 'mirror,disks=2,fail=0@100ms,replace=300ms'\nwindow = '100ms'\ntrace = '{}:csv'",
        path.display()
    );
    let r = smrlab_sim::run(&smrlab_sim::Spec::from_toml(&text).unwrap(), &smrlab_sim::Control::new(), None)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let table = |name: &str| r.tables.iter().find(|t| t.name == name).unwrap();
    let seconds = |v: &serde_json::Value, key: &str| v[key].as_f64().unwrap_or(0.0);
    let (busy, before) = (seconds(&r.json, "busy_s"), seconds(&r.json, "busy_before_s"));
    let of_rebuild = r.json["time_by_cause_s"]["rebuild"].as_f64().unwrap();
    assert!(
        (before - of_rebuild).abs() < 1e-9 && before > 0.5,
        "{before} of {busy}, {of_rebuild} to rebuild"
    );
    let windows: f64 = real(table("timeline"), "busy_share").iter().flatten().map(|share| share * 0.1).sum();
    assert!((windows - (busy - before)).abs() < 1e-6, "{windows} in windows, {busy} in all");
    assert!(real(table("members"), "busy_share").iter().flatten().all(|share| *share <= 1.0));
    for member in r.json["members"].as_array().unwrap() {
        assert!(seconds(member, "busy_before_s") > 0.2, "{}", member["busy_before_s"]);
    }
}

#[test]
fn the_windows_of_an_arrays_drives_add_up_to_its_own() {
    let d = of("raid5,disks=3", "disk-cache,cache=20%,idle=10ms");
    let (all, each) = (d.table("timeline"), d.table("members"));
    let starts = real(all, "start_s");
    for column in ["media_blocks_read", "media_blocks_written", "busy_share", "cleaning_share"] {
        let mut sums = vec![0.0; starts.len()];
        for (start, value) in real(each, "start_s").iter().zip(real(each, column)) {
            sums[starts.iter().position(|s| s == start).unwrap()] += value.unwrap_or(0.0);
        }
        for (sum, own) in sums.iter().zip(real(all, column)) {
            assert!((sum - own.unwrap_or(0.0)).abs() < 1e-9, "{column}: {sum} and {own:?}");
        }
    }
    // Each disk's windows count what the log says of it.
    for disk in 0..3 {
        let of_disk = real(each, "disk").into_iter().zip(real(each, "media_blocks_written"));
        let windows: f64 = of_disk.filter(|(d, _)| *d == Some(f64::from(disk))).filter_map(|x| x.1).sum();
        let logged: u64 =
            d.media.iter().filter(|o| o.disk == i64::from(disk) && o.write).map(|o| o.blocks).sum();
        assert_eq!(windows, logged as f64, "disk {disk}");
    }
}

/// A drive that dies early has fewer windows of its own, and each of them as narrow as they are at first.
#[test]
fn the_windows_of_a_dead_drive_are_those_of_the_array() {
    let d = go("cmr", 1000, "wrap = 'capacity'\narray = 'mirror,disks=2,fail=1@1ms'");
    let (all, each) = (d.table("timeline"), d.table("members"));
    for column in ["start_s", "end_s"] {
        let whole = real(all, column);
        assert_eq!(real(each, column), [whole.clone(), whole].concat(), "{column}");
    }
}

/// The drive with the parity is conventional in a run: nothing is cleaned there, and what it holds is what it was given.
#[test]
fn the_parity_drive_of_raid4s_is_conventional() {
    let verified = format!("{MORE}\narray = 'raid4s,disks=3'\nverify_media = true");
    let cleaned = |d: &Done| -> Vec<u64> {
        let members = d.result.json["members"].as_array().unwrap();
        members.iter().map(|m| m["cleaning"]["relocated_blocks"].as_u64().unwrap_or(0)).collect()
    };
    let d = cleaned(&go("rmw", 1000, &verified));
    assert!(d[0] > 0 && d[1] > 0 && d[2] == 0, "{d:?}");
    let other = cleaned(&of("raid5,disks=3,layout=parity-last", "rmw"));
    assert!(other[2] > 0, "{other:?}");
    // So is the one that takes its place.
    let again = format!("{MORE}\narray = 'raid4s,disks=3,fail=2@1ms,replace=1ms'\nverify_media = true");
    let d = go("rmw", 1000, &again);
    let cleaned = cleaned(&d);
    assert!(cleaned[0] > 0 && cleaned[2] == 0, "{cleaned:?}");
    assert_eq!(d.result.json["array"]["rebuilds"], 1);
}

/// Each write is a packet, and what a rebuild writes at once, 1664 blocks, is 13 of them: counted from the run on, and of a drive that takes
/// another's place from its own beginning on.
#[test]
fn layers_of_drives_count_from_the_run_on() {
    let text = "drive = 'tiny'\nlayer = 'persistent-cache'\narray = 'mirror,disks=2,fail=1@1us,replace=1us'\nwrap = 'capacity'\n\
                prefill = '100%'\ntrace = 'synth:uniform,requests=200,size=4KiB,write=50%'\n";
    let run = smrlab_sim::run(&Spec::from_toml(text).unwrap(), &Control::new(), None).unwrap().json;
    let more = |m: &serde_json::Value| {
        m["cache"]["packets"].as_i64().unwrap() - m["host"]["writes"].as_i64().unwrap()
    };
    assert_eq!(run["members"].as_array().unwrap().iter().map(more).collect::<Vec<_>>(), [0, 12]);
}

/// Requests of a block each go to one of two drives behind each other, so that these count what the host counts: what they read from their
/// own buffers, and from writes that still wait there, too.
#[test]
fn the_requests_of_drives_behind_each_other_are_the_hosts() {
    let text = "drive = 'tiny,write_cache=on,cache_size=64KiB,segments=8'\nlayer = 'cmr'\narray = 'spanning,disks=2'\n\
                wrap = 'capacity'\nscheduler = 'sptf,depth=8'\narrivals = 'closed'\n\
                trace = 'synth:zipf,requests=3000,size=1blk,align=1blk,write=50%'\n";
    let run = smrlab_sim::run(&Spec::from_toml(text).unwrap(), &Control::new(), None).unwrap().json;
    let members = run["members"].as_array().unwrap();
    for key in ["reads", "writes", "blocks_read", "blocks_written"] {
        let each = members.iter().map(|m| m["host"][key].as_u64().unwrap());
        assert_eq!(each.sum::<u64>(), run["host"][key].as_u64().unwrap(), "{key}");
    }
    assert_eq!(run["host"]["reads"].as_u64().unwrap() + run["host"]["writes"].as_u64().unwrap(), 3000);
    assert!(run["buffer"]["read_hits"].as_u64() > Some(20), "{}", run["buffer"]);
}
