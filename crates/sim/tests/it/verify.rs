//! `verify_media`: every layer that keeps data passes, and one that does not is caught with the culprit named.

use smrlab_sim::error::Kind;
use smrlab_sim::{Control, RunError, RunResult, Spec, run};

fn try_run(layer: &str, more: &str) -> Result<RunResult, RunError> {
    let text = format!(
        "drive = 'tiny'\nlayer = '{layer}'\nwrap = 'capacity'\nverify_media = true\nmechanics = 'instant'\n\
         trace = 'synth:uniform,requests=4000,size=uniform(1blk;60blk),align=1blk,write=60%'\n{more}"
    );
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
}

#[test]
fn every_layer_that_keeps_data_returns_what_was_written() {
    for entry in smrlab_stl::LAYERS.iter().filter(|e| e.capabilities.keeps_data) {
        for more in ["", "prefill = '50%'", "prefill = '100%,order=random'"] {
            let r = try_run(entry.name, more).unwrap_or_else(|e| panic!("{} {more}: {e}", entry.name));
            assert_eq!(r.json["verify"]["ok"], true);
        }
    }
}

#[test]
fn a_shingled_drive_without_translation_is_caught() {
    let e = try_run("raw", "").unwrap_err();
    let text = e.to_string();
    assert_eq!(e.kind(), Kind::Verification);
    for part in ["verify-media: request", "read LBA", "media write", "of request", "destroyed it"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// The same requests on the same medium: what `raw` delivers destroyed, this layer refuses, and whatever it delivers is right.
#[test]
fn a_shingled_drive_that_says_what_it_lost_delivers_nothing_wrong() {
    let r = try_run("caveat-scriptor", "").unwrap();
    assert_eq!(r.json["verify"]["ok"], true);
    assert!(r.json["cache"]["reads_of_lost_blocks"].as_u64() > Some(0), "{}", r.json["cache"]);
    let guarded = try_run("caveat-scriptor,guard=refuse", "").unwrap().json;
    assert_eq!((&guarded["cache"]["blocks_lost"], &guarded["verify"]["ok"]), (&0.into(), &true.into()));
}

#[test]
fn following_identities_changes_nothing_else() {
    let with = try_run("rmw", "").unwrap().json;
    let spec: Spec = serde_json::from_value::<serde_json::Map<_, _>>(with["spec"].clone())
        .map(|map| Spec { verify_media: false, ..Spec::from_map(map).unwrap() })
        .unwrap();
    let without = run(&spec, &Control::new(), None).unwrap().json;
    for key in ["media", "host", "response_ms", "cleaning", "provenance"] {
        assert_eq!(with[key], without[key], "{key}");
    }
}

/// What was discarded reads as zeroes where a layer promises that, as what it was where it does not, and as what is written there next.
#[test]
fn what_was_discarded_is_followed() {
    let path = std::env::temp_dir().join(format!("discarded-{}.txt", std::process::id()));
    let text: String = (0..60)
        .map(|i| {
            let (rwbs, at) =
                (["W", "R", "D", "R", "W", "R", "R"][i % 7], 8 + i / 7 * 40 + [0, 4, 4, 0][i % 4]);
            format!("  8,16   3        1     {i}.000000100   697  D  {rwbs} {at} + 12 [fio]\n")
        })
        .collect();
    std::fs::write(&path, text).unwrap();
    let mut both = [0; 2];
    for entry in smrlab_stl::LAYERS.iter().filter(|e| e.capabilities.keeps_data) {
        let text = format!(
            "drive = 'tiny'\nlayer = '{}'\nverify_media = true\ntrace = '{}:blkparse'",
            entry.name,
            path.display()
        );
        let r = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
            .unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert_eq!(r.json["verify"]["ok"], true, "{}", entry.name);
        both[usize::from(entry.capabilities.discards)] += 1;
    }
    std::fs::remove_file(&path).unwrap();
    assert!(both[0] > 1 && both[1] > 1, "{both:?}");
}

/// Behind a scheduler reads are answered from writes that are not on the medium, too.
#[test]
fn reads_from_the_drives_own_buffer_are_followed() {
    for layer in ["cmr", "rmw", "log", "s-block"] {
        let text = format!(
            "drive = 'tiny,write_cache=on,cache_size=64KiB,segments=8'\nlayer = '{layer}'\nwrap = 'capacity'\nverify_media = true\n\
             scheduler = 'sptf,depth=8'\narrivals = 'closed'\n\
             trace = 'synth:zipf,requests=4000,size=uniform(1blk;12blk),align=1blk,write=50%'\n"
        );
        let r = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None);
        let r = r.unwrap_or_else(|e| panic!("{layer}: {e}")).json;
        assert_eq!(r["verify"]["ok"], true, "{layer}");
        let (hits, buffered) = (&r["buffer"]["read_hits"], &r["buffer"]["writes_buffered"]);
        assert!(
            hits.as_u64() > Some(20) && buffered.as_u64() > Some(500),
            "{layer}: {hits} hits, {buffered} buffered"
        );
    }
}

fn array_run(array: &str, layer: &str, more: &str) -> Result<RunResult, RunError> {
    let text = format!(
        "drive = 'tiny'\nlayer = '{layer}'\narray = '{array}'\nwrap = 'capacity'\nverify_media = true\narrivals = 'closed'\n\
         trace = 'synth:uniform,requests=3000,size=uniform(1blk;60blk),align=1blk,write=60%'\n{more}"
    );
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
}

/// Every array returns what was written, however it comes by it: from the SSD, from other disks, from a disk rebuilt.
#[test]
fn arrays_return_what_was_written() {
    for array in [
        "spanning,disks=2",
        "striped,disks=3,ssd_read=2MiB,ssd_write=1MiB",
        "dedicated,disks=2",
        "raid5,disks=4,fail=1@2s,replace=1s",
        "raid5,disks=5,chunk=64KiB,write=modify,parity=log,log=64KiB,log_region=1MiB,fail=3@3s,replace=1s",
        "raid5,disks=5,chunk=8KiB,journal=on,ssd_write=1MiB,fail=0@1s",
        "dvs,disks=4,chunk=8KiB,segment=20,overprovision=30%,idle=1ms,fail=2@2s,replace=1s",
        "dvs,disks=4,chunk=8KiB,segment=20,overprovision=30%,ssd_write=1MiB,stripes=fill,journal=on,fail=2@2s",
    ] {
        for (layer, more) in [("s-block", ""), ("rmw", "prefill = '50%'"), ("cmr", "prefill = '100%'")] {
            let r = array_run(array, layer, more).unwrap_or_else(|e| panic!("{array} on {layer}: {e}"));
            let refused = r.json.pointer("/array/refused").and_then(serde_json::Value::as_u64);
            assert_eq!((r.json["verify"]["ok"].as_bool(), refused.unwrap_or(0)), (Some(true), 0));
            let deaths = r.json.pointer("/array/deaths").and_then(serde_json::Value::as_u64);
            assert_eq!(deaths.is_some(), array.contains("fail="), "{array}");
        }
    }
}

/// With more drives dead than they can stand arrays refuse reads, and writes too: what a refused write was to change is old or new. What an
/// SSD has acknowledged is read from there.
#[test]
fn arrays_that_lost_too_much_deliver_nothing_wrong() {
    for array in [
        "dvs,disks=4,chunk=4blk,segment=8,overprovision=20%",
        "full-stripe,disks=4,chunk=1blk,segment=8,batch=5",
        "raid5,disks=4",
        "raid5,disks=4,ssd_write=256KiB",
        "striped,disks=3,chunk=8KiB,ssd_write=256KiB,ssd_read=128KiB,ssd_page=4KiB",
        "spanning,disks=3,ssd_write=256KiB,ssd_write_policy=stow,ssd_control=rate",
    ] {
        let lost = format!("{array},fail=0@1s+2@2s,replace=1s");
        let r = array_run(&lost, "log", "").unwrap_or_else(|e| panic!("{lost}: {e}"));
        assert_eq!(r.json["verify"]["ok"], true);
        assert!(r.json["array"]["refused"].as_u64() > Some(0), "{lost}: {}", r.json["array"]);
    }
}

/// The same run without following anything.
#[test]
fn following_an_array_changes_nothing_else() {
    let array = "dvs,disks=4,chunk=8KiB,segment=20,overprovision=30%,ssd_write=1MiB,ssd_read=1MiB";
    let with = array_run(array, "s-block", "prefill = '100%'").unwrap().json;
    let spec: Spec = serde_json::from_value::<serde_json::Map<_, _>>(with["spec"].clone())
        .map(|map| Spec { verify_media: false, ..Spec::from_map(map).unwrap() })
        .unwrap();
    let without = run(&spec, &Control::new(), None).unwrap().json;
    for key in ["media", "host", "response_ms", "cleaning", "array", "members"] {
        assert_eq!(with[key], without[key], "{key}");
    }
}

#[test]
fn an_array_of_shingled_drives_without_translation_is_caught_with_the_disk_named() {
    for array in ["striped,disks=3", "raid5,disks=4"] {
        let e = array_run(array, "raw", "").unwrap_err();
        assert_eq!(e.kind(), Kind::Verification);
        let text = e.to_string();
        assert!(text.contains("disk ") && text.contains("destroyed it"), "{text}");
    }
    let e = array_run("dvs,segment=20,chunk=8KiB,ssd_write=1MiB,ssd_round=on", "cmr", "")
        .unwrap_err()
        .to_string();
    assert!(e.contains("ssd_round"), "{e}");
}

/// `dedicated`: a drive for each source is a space for each. A prefill writes all of them, figures of what was written are of all of them, and data
/// of one are not taken for another's.
#[test]
fn sources_with_a_space_each_are_kept_apart() {
    let go = |requests: &str, more: &str| {
        let text = format!(
            "drive = 'tiny'\nlayer = 'log'\narray = 'dedicated,disks=2'\nwrap = 'capacity'\narrivals = 'closed'\n\
             trace = ['synth:uniform,seed=1,{requests}', 'synth:uniform,seed=2,{requests}', 'synth:uniform,seed=3,{requests}']\n{more}"
        );
        run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
            .unwrap_or_else(|e| panic!("{more}: {e}"))
            .json
    };
    let read = |r: &serde_json::Value| {
        let of = |host: &serde_json::Value| host["reads_unwritten"].as_u64().unwrap();
        (of(&r["host"]), [0, 1].map(|disk| of(&r["members"][disk]["host"])))
    };
    for more in ["prefill = '100%'", "prefill = '100%,order=random'", "prefill = 'read'"] {
        assert_eq!(read(&go("requests=300,write=0%", more)), (0, [0, 0]), "{more}");
    }
    let (all, each) = read(&go("requests=300,write=30%", "verify_media = true"));
    assert!(each[0] > 0 && each[1] > 0);
    assert_eq!(all, each[0] + each[1]);
    // The third source shares the first one's drive.
    let r = go("requests=300,write=60%,span=200blk", "verify_media = true");
    let updates = |host: &serde_json::Value| host["updates"].as_u64().unwrap();
    assert_eq!(updates(&r["host"]), updates(&r["members"][0]["host"]) + updates(&r["members"][1]["host"]));
    let one = go("requests=1,write=100%", "");
    assert_eq!(one["space"]["efficiency"].as_f64().map(|e| e > 0.3), Some(true), "{}", one["space"]);
}

/// What sees one space cannot stand before several.
#[test]
fn what_sees_one_space_is_refused_before_several() {
    for (stack, above) in [
        ("ssd-cache,write=64KiB / dedicated,disks=2 / log", "an SSD"),
        ("striped,disks=2 / dedicated,disks=2 / log", "striped"),
    ] {
        let text = format!("drive = 'tiny'\nstack = '{stack}'\ntrace = 'synth:uniform'\n");
        let e = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).unwrap_err().to_string();
        assert!(
            e.contains("dedicated") && e.contains(above) && e.contains("put dedicated first"),
            "{stack}: {e}"
        );
    }
}

/// What drives of an array hold from before the run is followed too: reads find what the prefill destroyed.
#[test]
fn a_prefill_that_destroys_what_it_wrote_is_caught() {
    for array in ["", "array = 'striped,disks=3'"] {
        let text = format!(
            "drive = 'tiny'\nlayer = 'raw'\n{array}\nverify_media = true\nprefill = '100%,order=random'\nwrap = 'capacity'\n\
             trace = 'synth:uniform,requests=500,size=8blk,align=1blk,write=0%'\n"
        );
        let e = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).err();
        let e = e.map(|e| e.to_string()).unwrap_or_default();
        assert!(
            e.contains("of the prefill or background work") && e.contains("destroyed it"),
            "{array}: {e}"
        );
        assert_eq!(e.contains("disk "), !array.is_empty(), "{e}");
    }
}

/// A head that writes two tracks, of 32 blocks each, of which the next begins a quarter of a turn later: above block 5 lies block 29 of
/// track 1, which was written before.
#[test]
fn the_write_that_destroyed_a_block_is_named_as_it_was() {
    let path = std::env::temp_dir().join(format!("smrlab-destroyed-{}.csv", std::process::id()));
    std::fs::write(&path, "0,W,61,1\n1,W,5,1\n2,R,61,1\n").unwrap();
    let text = format!(
        "drive = 'tiny'\nlayer = 'raw'\nverify_media = true\ntrace = '{}:csv,columns=time:s;op;lba;size:blk'\n",
        path.display()
    );
    let found = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        found.err().map(|e| e.to_string()).unwrap_or_default(),
        "verify-media: request 2 read LBA 61 from PBA 61, and not what was last written there: \
         media write 1 of request 1 (host, 1 block at PBA 5) destroyed it"
    );
}
