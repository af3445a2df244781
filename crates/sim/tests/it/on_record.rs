//! What runs say, as it is on [record](smrlab_testkit::record) in `on_record.txt`: every part of the result and every table. Anew:
//! `SMRLAB_RECORD=FILE cargo test -p smrlab-sim --test it on_record`.

use crate::support::{rows, scratch};
use serde_json::Value;
use smrlab_sim::{Control, Spec, run};
use smrlab_testkit::Digest;
use smrlab_testkit::record::differs;
use std::fmt::{Debug, Write as _};

const MIXED: &str = "synth:hotcold,requests=900,size=4KiB,write=70%,interarrival=25ms";
const DENSE: &str = "synth:uniform,requests=600,size=8KiB,write=60%,interarrival=3ms";
const TINY: &str = "drive = 'tiny'\nwrap = 'capacity'\n";
const BUFFERED: &str =
    "drive = 'tiny,write_cache=on,segments=8,cache_size=32KiB,command=0.1ms,bus=100'\nwrap = 'capacity'\n";

/// Traces, and fields of a specification beside.
const RUNS: &[(&[&str], &str, &str)] = &[
    (
        &[MIXED],
        TINY,
        "layer = 'disk-cache,cache=10%,idle=5ms'\nprefill = '100%,order=random'\nwindow = '250ms'",
    ),
    (
        &[MIXED],
        TINY,
        "layer = 's-block,sblock_blocks=160'\nprefill = '60%'\nstall = '30ms'\nverify_media = true",
    ),
    (&[MIXED], TINY, "layer = 'log,overprovision=10%'\nprefill = '90%,of=space'\nmetadata = 'media'"),
    (
        &[MIXED],
        TINY,
        "layer = 'persistent-cache'\nprefill = '50%,of=cache'\nadjusted_rule = 'floor+1'\nadjusted_blocks = 32",
    ),
    (&[MIXED], TINY, "layer = 'rmw,mode=partial,journal=on'\nmechanics = 'no-rotation'"),
    (&[MIXED], TINY, "layer = 'static-R(4123)'\nmechanics = 'instant'\nprefill = 'read'"),
    (&[MIXED], "drive = 'tiny'\n", "layer = 'raw'\nhost_blocks = 900\nwrap = 'prefilled'\nprefill = '40%'"),
    (&[DENSE], TINY, "layer = 'cmr'\nscheduler = 'sptf,depth=16,max_wait=200ms'"),
    (&[DENSE], TINY, "layer = 'h-swd'\nscheduler = 'c-look,depth=8'\nscale_time = 3.0"),
    (&[DENSE], TINY, "layer = 'e-region'\narrivals = 'closed,depth=4,think=2ms'"),
    (&[DENSE], TINY, "layer = 'virtualguard'\narrivals = 'closed'\nlimit = 300"),
    (&[DENSE], TINY, "layer = 'segment'\nfrom = '300ms'\nuntil = '1500ms'\nfilter = 'op=write'"),
    (&[DENSE], BUFFERED, "layer = 'cmr'\nscheduler = 'look,depth=8'"),
    (&[DENSE], BUFFERED, "layer = 's-block,sblock_blocks=160'\nstall = '20ms'\nwindow = '100ms'"),
    (&[MIXED], BUFFERED, "layer = 'laz-raz'\nprefill = '70%'\nverify_media = true"),
    (
        &["synth:sequential,requests=500,size=16KiB,interarrival=4ms"],
        BUFFERED,
        "layer = 'log'\nmetadata = 'media'",
    ),
    (
        &["synth:backup,requests=300", "synth:zipf,requests=300,write=40%"],
        TINY,
        "layer = 'smart'\njoin = 'bursts,requests=20'\nseed = 7",
    ),
    (
        &["synth:runs,requests=200", "synth:bursty,requests=200"],
        TINY,
        "layer = 'steady-log'\njoin = 'chain,gap=2s'\naddress_space = 'concat'",
    ),
    (
        &["synth:idle-gaps,requests=300", "synth:mix,requests=200"],
        TINY,
        "layer = 'disk-cache,cache=10%,idle=1ms,journal=on'\nburst = 15",
    ),
    (
        &["synth:zoned,writers=3,requests=600"],
        "drive = 'tiny'\n",
        "layer = 'zoned,zone=16KiB,conventional=0%,max_open=2'\nwindow = '50ms'",
    ),
    (
        &["synth:zoned,writers=4,requests=600"],
        "drive = 'tiny'\n",
        "layer = 'host-aware,zone=16KiB,conventional=10%'",
    ),
    (
        &["synth:kv-store,requests=800,records=300,span=1MiB"],
        "drive = 'tiny'\nwrap = 'capacity'\n",
        "layer = 'log,overprovision=20%'",
    ),
    (&[MIXED], TINY, "stack = 'dm-zoned,reserved=2,copy=8KiB / zoned,zone=32KiB,conventional=45%'"),
    (
        &[MIXED],
        TINY,
        "stack = 'zone-log,overprovision=20% / zoned,zone=32KiB,conventional=0%'\nprefill = '80%'",
    ),
    (&[DENSE], TINY, "stack = 'ssd-cache,write=64KiB,read=32KiB,page=4KiB / log'"),
    (
        &[DENSE],
        TINY,
        "array = 'striped,disks=3,chunk=8KiB'\nlayer = 'disk-cache,cache=10%'\nscheduler = 'sptf,depth=8'",
    ),
    (&[DENSE], TINY, "array = 'spanning,disks=2'\nlayer = 'cmr'\nwindow = '100ms'"),
    (&[DENSE], TINY, "array = 'dedicated,disks=2'\nlayer = 's-block,sblock_blocks=160'"),
    (
        &[MIXED],
        TINY,
        "array = 'raid5,disks=4,chunk=4KiB,fail=1@2s,replace=500ms'\nlayer = 'rmw'\nverify_media = true",
    ),
    (
        &[MIXED],
        TINY,
        "array = 'raid6,disks=5,chunk=4KiB,fail=0@1s+3@4s,replace=300ms'\nlayer = 'cmr'\nscheduler = 'look,depth=8'",
    ),
    (&[MIXED], BUFFERED, "array = 'mirror,disks=4,chunk=4KiB,fail=2@3s,replace=1s'\nlayer = 'log'"),
    (
        &[MIXED],
        TINY,
        "array = 'dvs,disks=4,chunk=4KiB,segment=8,idle=5ms'\nlayer = 'cmr'\nprefill = '80%,order=random'",
    ),
    (
        &[DENSE],
        TINY,
        "array = 'full-stripe,disks=4,chunk=4KiB,segment=8,stripes=wait,ssd_write=64KiB,ssd_page=4KiB'\nlayer = 'cmr'",
    ),
    (
        &[DENSE],
        TINY,
        "array = 'raid5,disks=3,chunk=4KiB,parity=log,log=16KiB,log_region=64KiB'\nlayer = 'cmr'\nwindow = '200ms'",
    ),
    (
        &[DENSE],
        TINY,
        "stack = 'bus,rate=1 / timeout,after=60ms / raid5,disks=4,chunk=4KiB,journal=on / disk-cache,cache=10%'",
    ),
    (
        &[MIXED],
        TINY,
        "stack = 'mirror,disks=2,fail=0@2s / striped,disks=2,chunk=4KiB / persistent-cache'\nprefill = '50%'",
    ),
    (
        &["synth:local-space,requests=400"],
        "drive = 'seagate-st8000as0002'\n",
        "layer = 'persistent-cache'\nprefill = '30%,of=cache'",
    ),
    (&["synth:dvs-raid,requests=500"], "drive = 'dvs-raid'\n", "array = 'dvs,disks=5'\nlayer = 'segment'"),
];

/// The parts of a document, one number each.
fn parts(document: &Value) -> String {
    let mut out = String::new();
    for (name, part) in document.as_object().expect("an object") {
        // By which commit it was done.
        if ["schema", "provenance"].contains(&name.as_str()) {
            continue;
        }
        let mut digest = Digest::default();
        _ = write!(digest, "{part}");
        _ = match part {
            Value::Object(_) | Value::Array(_) => write!(out, " {name}={}", &digest.to_string()[8..]),
            plain => write!(out, " {name}={plain}"),
        };
    }
    out
}

fn said(traces: &[&str], rest: &str) -> String {
    let list: Vec<_> = traces.iter().map(|t| format!("'{t}'")).collect();
    let text = format!("trace = [{}]\nrequests = true\nmedia_log = true\n{rest}", list.join(", "));
    let spec = Spec::from_toml(&text).unwrap_or_else(|e| panic!("{text}\n{e}"));
    let dir = scratch();
    let done = run(&spec, &Control::new(), Some(&dir)).unwrap_or_else(|e| panic!("{text}\n{e}"));
    let mut out = parts(&done.json);
    let mut note = |name: &str, rows: usize, what: &dyn Debug| {
        let mut digest = Digest::default();
        digest.note_debug(&what);
        _ = write!(out, " {name}({rows})={}", &digest.to_string()[8..]);
    };
    for table in &done.tables {
        note(table.name, table.rows(), &table.columns);
    }
    for log in ["requests", "media"] {
        let rows = rows(&dir, &format!("{log}.parquet"));
        note(log, rows.len(), &rows);
    }
    std::fs::remove_dir_all(dir).unwrap();
    out
}

#[test]
fn runs_say_what_is_on_record() {
    let mut wrong = Vec::new();
    for (traces, drive, rest) in RUNS {
        let name = format!("{}; {drive}{rest}", traces.join(" + ")).replace('\n', "; ");
        let said = said(traces, &format!("{drive}{rest}"));
        wrong.extend(differs(include_str!("on_record.txt"), &name, said.trim_start()));
    }
    assert!(wrong.is_empty(), "other than on record are\n{}", wrong.join("\n"));
}
