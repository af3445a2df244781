//! Arrays of arrays through the whole engine.

use serde_json::Value;
use smrlab_sim::{Control, Spec, run};

fn go(stack: &str, trace: &str, more: &str) -> Value {
    let text = format!("drive = 'tiny'\nstack = '{stack}'\ntrace = '{trace}'\nwrap = 'capacity'\n{more}");
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
        .unwrap_or_else(|e| panic!("{text}\n{e}"))
        .json
}

fn number(v: &Value, path: &str) -> f64 {
    v.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

const MIXED: &str = "synth:uniform,requests=600,size=2blk,write=50%,span=100%,align=1blk";
const CLOSED: &str = "arrivals = 'closed,depth=4'\n";

/// A member that is an array of one drive is that drive: every figure, of each drive too.
#[test]
fn members_of_one_drive_are_drives() {
    for (array, layer) in [
        ("raid5,disks=4,chunk=4blk", "rmw"),
        ("raid5,disks=4,chunk=4blk,fail=1@1s,replace=500ms", "cmr"),
        (
            "mirror,disks=3,chunk=4blk,ssd_write=32KiB,ssd_page=4KiB",
            "s-block,sblock_blocks=16,cache=20%,overprovision=30%,sections=1",
        ),
        ("striped,disks=3,chunk=3blk", "disk-cache,band=24blk,cache=10%,idle=5ms"),
    ] {
        for more in ["", CLOSED, "scheduler = 'sptf,depth=8'\narrivals = 'closed,depth=9'\nprefill = '50%'\n"]
        {
            let plain = go(&format!("{array} / {layer}"), MIXED, more);
            let mut nested = go(&format!("{array} / spanning,disks=1 / {layer}"), MIXED, more);
            for (i, member) in nested["members"].as_array_mut().unwrap().iter_mut().enumerate() {
                let path = member.as_object_mut().unwrap().remove("path").unwrap();
                assert_eq!(path, format!("{i}.0"));
            }
            nested["array"].as_object_mut().unwrap().remove("members");
            for (key, value) in plain.as_object().unwrap() {
                assert!(
                    *value == nested[key] || key == "spec",
                    "{array} over {layer}, {more:?}: {key}: {value:#} is not {:#}",
                    nested[key]
                );
            }
        }
    }
}

/// Whatever dies, every block that is read is what was last written.
#[test]
fn what_is_read_is_what_was_written() {
    for (stack, deaths) in [
        (
            "raid5,disks=3,chunk=4blk,fail=0.0@1s+0.1@1200ms,replace=1s,spares=2 / mirror,chunk=4blk / cmr",
            2.0,
        ),
        ("raid5,disks=3,chunk=4blk,fail=1@1s,replace=1s,spares=2 / mirror,chunk=4blk / rmw", 2.0),
        ("mirror,chunk=4blk,fail=0.1@1s,replace=1s / striped,disks=2,chunk=3blk / rmw", 1.0),
        (
            "raid5,disks=3,chunk=4blk,fail=1@1s,replace=1s / dm-zoned,reserved=1,copy=4KiB / zoned,zone=32KiB,conventional=50%",
            1.0,
        ),
        ("striped,disks=2,chunk=4blk,fail=1.2@1s,replace=1s / raid5,disks=3,chunk=4blk / cmr", 1.0),
        ("raid5,disks=4,chunk=8blk / ssd-cache,write=32KiB,read=16KiB,page=2KiB / rmw", 0.0),
        (
            "ssd-cache,write=64KiB,page=4KiB / mirror / bus,rate=50 / striped,disks=2 / mirror,chunk=4blk / cmr",
            0.0,
        ),
    ] {
        for more in [CLOSED, "scheduler = 'sptf,depth=8'\narrivals = 'closed,depth=9'\nprefill = '30%'\n"] {
            // A zoned layer cannot tell where requests start, which such a scheduler asks for.
            let more = if stack.ends_with("50%") { CLOSED } else { more };
            let r = go(stack, MIXED, &format!("{more}verify_media = true\n"));
            let counted =
                ["deaths", "refused"].map(|n| r["array"].get(n).and_then(Value::as_f64).unwrap_or(0.0));
            assert_eq!(counted, [deaths, 0.0], "{stack}");
        }
    }
}

/// A stripe that loses a drive is rebuilt as a whole when that is replaced.
#[test]
fn a_member_without_redundancy_comes_back_as_a_whole() {
    let r = go("mirror,chunk=4blk,fail=0.1@1s,replace=1s / striped,disks=2,chunk=4blk / cmr", MIXED, CLOSED);
    assert_eq!(number(&r, "/array/rebuilt_blocks"), number(&r, "/space/host_blocks"));
    let rebuilt = |r: &Value, drive: usize| {
        r.pointer(&format!("/members/{drive}/media/by_cause/rebuild/writes")).and_then(Value::as_f64)
    };
    assert!((0..4).all(|drive| rebuilt(&r, drive).is_some_and(|n| n > 0.0) == (drive < 2)), "{r:#}");
    let inner =
        go("raid5,disks=3,chunk=4blk,fail=0.1@1s,replace=1s / mirror,chunk=4blk / cmr", MIXED, CLOSED);
    // A mirror makes its drive from the other one, and nobody else hears of it.
    assert!((0..6).all(|drive| rebuilt(&inner, drive).is_some_and(|n| n > 0.0) == (drive == 1)));
    assert_eq!(number(&inner, "/array/members/0/rebuilds"), 1.0);
}

/// A SSD before each drive takes the writes of each.
#[test]
fn each_drive_has_an_ssd_of_its_own() {
    let r = go("raid5,disks=4,chunk=8blk / ssd-cache,write=64KiB,page=4KiB / cmr", MIXED, CLOSED);
    let members = r["array"]["members"].as_array().unwrap();
    assert_eq!(members.len(), 4);
    assert!(members.iter().all(|m| number(m, "/ssd_write_hits") > 0.0), "{members:#?}");
    assert_eq!(r["members"].as_array().unwrap().len(), 4);
}

/// What a prefill counted is no count of the run, at any depth: a run of reads alone has no page of an SSD written.
#[test]
fn what_was_prefilled_is_not_counted() {
    let reads = "synth:uniform,requests=50,size=2blk,write=0%,span=100%,align=1blk";
    for stack in [
        "raid5,disks=4,chunk=8blk / ssd-cache,write=64KiB,page=4KiB / cmr",
        "mirror,chunk=4blk / raid5,disks=3,chunk=4blk,intent=on / cmr",
    ] {
        let (fresh, filled) =
            (go(stack, reads, CLOSED), go(stack, reads, &format!("{CLOSED}prefill = '50%'\n")));
        let of = |r: &Value| r["array"]["members"].clone();
        assert!(of(&fresh).as_array().is_some_and(|m| m.len() > 1), "{stack}");
        for (fresh, filled) in of(&fresh).as_array().unwrap().iter().zip(of(&filled).as_array().unwrap()) {
            for (name, n) in fresh.as_object().unwrap().iter().filter(|(name, _)| name.contains("write")) {
                assert_eq!((n, &filled[name]), (&0.into(), &0.into()), "{stack}: {name}");
            }
        }
    }
}
