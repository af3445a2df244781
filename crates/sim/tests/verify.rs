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
