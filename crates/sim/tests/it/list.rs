//! What lists and `explain` say of an entry is what the entry does.

use serde_json::{Value, json};
use smrlab_array::ARRAYS;
use smrlab_drive::sched::SCHEDULERS;
use smrlab_sim::list::{KINDS, drive_json};
use smrlab_sim::spec::FIELDS;
use smrlab_sim::{explain_json, list_json};
use smrlab_stl::{BuildContext, LAYERS, build};
use smrlab_trace::formats::FORMATS;
use smrlab_trace::generators::GENERATORS;
use smrlab_units::spec::Param;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A layer that is listed as surviving power cuts survives them with its defaults; the others say what it takes.
#[test]
fn capabilities_are_those_of_the_defaults() {
    let drive = Arc::new(smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap());
    let listed = list_json("layers").unwrap();
    for (entry, doc) in LAYERS.iter().zip(listed.as_array().unwrap()) {
        let promised =
            |text: &str| build(text, &BuildContext::new(drive.clone())).unwrap().capabilities.survives_cut;
        match &doc["capabilities"]["survives_cut"] {
            serde_json::Value::String(condition) => {
                let option = condition.strip_prefix("with ").unwrap();
                assert!(
                    promised(&format!("{},{option}", entry.name)) && !promised(entry.name),
                    "{}",
                    entry.name
                );
            }
            says => assert_eq!(says, promised(entry.name), "{}", entry.name),
        }
    }
}

/// 40 tracks of 32 blocks are seven bands of 4 + 1 tracks and one of 4 without its guard, or one band of 39 + 1.
#[test]
fn a_drive_is_shown_with_its_bands() {
    let tiny =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/tiny.toml")).unwrap();
    let path = std::env::temp_dir().join(format!("bands-shown-{}.toml", std::process::id()));
    for (tracks, bands) in [(4, 8), (39, 1)] {
        let text = tiny
            .replace(", [40, 24], [40, 16]", "")
            .replace("tracks = { value = 4,", &format!("tracks = {{ value = {tracks},"));
        std::fs::write(&path, text).unwrap();
        let doc = drive_json(path.to_str().unwrap()).unwrap();
        let of = |name: &str| doc["bands"][name].as_u64().unwrap();
        let told = ["count", "data_blocks", "mean_blocks"].map(of);
        assert_eq!(told, [bands, bands * tracks * 32, tracks * 32]);
    }
    std::fs::remove_file(path).unwrap();
}

/// The keys of an entry.
fn keys(entry: &Value) -> BTreeSet<&str> {
    entry.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The parameters of an entry are these, with all that is said of each.
fn has_params(entry: &Value, own: &[Param]) {
    let listed = entry["params"].as_array().unwrap();
    assert_eq!(listed.len(), own.len(), "{entry}");
    for (doc, p) in listed.iter().zip(own) {
        assert_eq!(keys(doc), BTreeSet::from(["name", "accepts", "default", "doc"]));
        let said = ["name", "accepts", "default", "doc"].map(|key| doc[key].as_str().unwrap());
        assert_eq!(said, [p.name, &*p.kind.accepts(), p.default, p.doc]);
    }
}

/// The entries of a kind, each with these keys and no others.
fn listed(kind: &str, one: &str, with: &[&str]) -> Vec<Value> {
    let all = list_json(kind).unwrap().as_array().unwrap().clone();
    let with: BTreeSet<&str> = with.iter().copied().chain(["kind", "name", "summary"]).collect();
    assert!(
        !all.is_empty() && all.iter().all(|e| e["kind"] == one && keys(e) == with),
        "{kind}: {:?}",
        keys(&all[0])
    );
    all
}

/// Each entry of each registry, in its order, with all that is said there and each under its own name.
#[test]
fn lists_say_what_the_registries_say() {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    let with = ["aliases", "reference", "page", "idle", "params", "capabilities"];
    let layers = listed("layers", "layer", &with);
    assert_eq!(layers.len(), LAYERS.len());
    for (doc, l) in layers.iter().zip(LAYERS) {
        let said = ["name", "summary", "reference", "page", "idle"].map(|key| text(doc, key));
        assert_eq!(said, [l.name, l.summary, l.reference, l.page, l.idle]);
        assert_eq!(doc["aliases"], json!(l.aliases));
        has_params(doc, l.params);
        let (c, told) = (&l.capabilities, &doc["capabilities"]);
        let flags =
            ["keeps_data", "locates", "stable_location", "discards"].map(|key| told[key].as_bool().unwrap());
        assert_eq!(flags, [c.keeps_data, c.locates, c.stable_location, c.discards], "{}", l.name);
        assert_eq!(keys(told).len(), 5);
    }
    let formats = listed("formats", "format", &["aliases", "reference", "params"]);
    assert_eq!(formats.len(), FORMATS.len());
    for (doc, f) in formats.iter().zip(FORMATS) {
        assert_eq!(
            ["name", "summary", "reference"].map(|key| text(doc, key)),
            [f.name, f.summary, f.reference]
        );
        assert_eq!(doc["aliases"], json!(f.aliases));
        has_params(doc, &f.parameters());
    }
    let generators = listed("generators", "generator", &["reference", "params"]);
    assert_eq!(generators.len(), GENERATORS.len());
    for (doc, g) in generators.iter().zip(GENERATORS) {
        let said = ["name", "summary", "reference"].map(|key| text(doc, key));
        assert_eq!(said, [&*format!("synth:{}", g.name), g.summary, g.reference]);
        has_params(doc, &g.parameters());
    }
    let schedulers = listed("schedulers", "scheduler", &["reference", "params"]);
    assert_eq!(schedulers.len(), SCHEDULERS.len());
    for (doc, s) in schedulers.iter().zip(SCHEDULERS) {
        assert_eq!(
            ["name", "summary", "reference"].map(|key| text(doc, key)),
            [s.name, s.summary, s.reference]
        );
        has_params(doc, smrlab_drive::sched::PARAMS);
    }
    assert_eq!(list_json("policies").unwrap(), Value::from(schedulers));
    let arrays = listed("arrays", "array", &["reference", "page", "params", "capabilities"]);
    assert_eq!(arrays.len(), ARRAYS.len());
    for (doc, a) in arrays.iter().zip(ARRAYS) {
        let said = ["name", "summary", "reference", "page"].map(|key| text(doc, key));
        assert_eq!(said, [a.name, a.summary, a.reference, a.page]);
        has_params(doc, &a.parameters());
        let c = &a.capabilities;
        let told = json!({"survives_a_lost_drive": c.losses > 0, "survives_cut": c.survives_cut, "discards": c.discards});
        assert_eq!(doc["capabilities"], told, "{}", a.name);
    }
}

/// So it is with fields of a specification, of a result and of a drive's file; a kind that there is not is told with the nearest.
#[test]
fn lists_of_fields_say_what_their_tables_say() {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    let fields = listed("fields", "field", &["default", "accepts"]);
    assert_eq!(fields.len(), FIELDS.len());
    for (doc, f) in fields.iter().zip(FIELDS) {
        let said = ["name", "summary", "default", "accepts"].map(|key| text(doc, key));
        assert_eq!(said, [f.name, f.doc, f.default, f.accepts]);
    }
    let metrics = listed("metrics", "metric", &["title", "aliases", "unit", "formula", "reference"]);
    assert_eq!(metrics.len(), smrlab_sim::keys::all().count());
    for (doc, k) in metrics.iter().zip(smrlab_sim::keys::all()) {
        let said = ["name", "title", "unit", "summary", "formula", "reference"].map(|key| text(doc, key));
        assert_eq!(said, [k.path, k.name, k.unit, k.doc, k.formula, k.source]);
        assert_eq!(doc["aliases"], json!(k.aliases));
    }
    let of_drives = listed("drive-fields", "drive-field", &["accepts", "needed"]);
    for (doc, f) in of_drives.iter().zip(smrlab_disk::model::fields()) {
        let said = (text(doc, "name"), text(doc, "summary"), text(doc, "accepts"), doc["needed"].as_bool());
        assert_eq!(said, (f.path.to_string(), f.doc.to_string(), f.accepts.to_string(), Some(f.needed)));
    }
    let e = list_json("drivs").unwrap_err().to_string();
    assert_eq!(
        e,
        format!("kind: unknown kind 'drivs' (did you mean 'drives'?); known: {}", KINDS.join(", "))
    );
    assert!(KINDS.iter().all(|kind| list_json(kind).is_ok()));
}

/// 120 tracks of 32, 24 and 16 blocks that turn a hundred times a second, as its file says.
#[test]
fn a_drive_is_listed_as_its_file_says() {
    let with = [
        "reference",
        "blocks",
        "bytes",
        "tracks",
        "surfaces",
        "head_width",
        "mechanics",
        "numbers",
        "params",
        "controller",
    ];
    let drives = listed("drives", "drive", &with);
    let tiny = drives.iter().find(|d| d["name"] == "tiny").unwrap();
    let facts =
        ["blocks", "bytes", "tracks", "surfaces", "head_width"].map(|key| tiny[key].as_u64().unwrap());
    assert_eq!(facts, [2880, 2880 * 512, 120, 1, 2]);
    let said = ["summary", "reference", "mechanics"].map(|key| tiny[key].as_str().unwrap());
    let summary = "three zones of 40 tracks of 32, 24 and 16 blocks, head width 2: for scenarios and tests";
    assert_eq!(said, [summary, "made for this project", "full"]);
    let source = "2.5 ms, more than the shortest seek";
    let skew =
        json!({"field": "geometry.cylinder_skew", "value": "0.25 rev", "kind": "assumed", "source": source});
    assert_eq!((tiny["numbers"].as_array().unwrap().len(), &tiny["numbers"][2]), (13, &skew));
    has_params(tiny, smrlab_disk::model::OVERRIDES);
    let none = "none in the drive's file: a write is answered when it is on the medium, nothing is read ahead, commands and bus take no \
                time; cache=on behind the drive's name gives it 16 MiB with write cache";
    assert_eq!(tiny["controller"], json!({ "cache": none }));
    let shown = drive_json("tiny").unwrap();
    assert!(tiny.as_object().unwrap().iter().all(|(key, value)| shown[key] == *value));
    let zone = |first: u64, sectors: u64, mb: f64| json!({"first_pba": first, "tracks": 40, "blocks_a_track": sectors, "mb_per_s": mb});
    assert_eq!(shown["zones"], json!([zone(0, 32, 1.6384), zone(1280, 24, 1.2288), zone(2240, 16, 0.8192)]));
    assert_eq!((&shown["rpm"], &shown["medium_blocks"]), (&json!(6000), &json!(2880)));
    assert_eq!(
        shown["bands"],
        json!({"count": 24, "data_blocks": 4 * 8 * (32 + 24 + 16), "mean_blocks": 96})
    );
    // A drive whose file says its rate has that one.
    assert_eq!(drive_json("cassuto2010-307gb").unwrap()["zones"][0]["mb_per_s"], 120.0);
    let controlled = explain_json("tiny,cache=on,k=3").unwrap();
    assert_eq!((&controlled["name"], &controlled["head_width"]), (&json!("tiny,cache=on,k=3"), &json!(3)));
    assert!(keys(&controlled["controller"]).len() > 3, "{}", controlled["controller"]);
    let e = explain_json("tiny,kk=3").unwrap_err().to_string();
    assert!(
        e.starts_with("name: tiny has no parameter 'kk' (did you mean 'k'?); it accepts these: k, "),
        "{e}"
    );
}

/// By its name, by another word for it, without `synth:`, and with parameters behind it; what is none is told with the nearest.
#[test]
fn an_entry_is_explained_by_each_of_its_names() {
    for (asked, name) in [
        ("umass", "spc"),
        ("uniform", "synth:uniform"),
        ("synth:uniform,requests=3", "synth:uniform"),
        ("csv,columns=time:s", "csv"),
        ("raid5,disks=5", "raid5"),
        ("tiny", "tiny"),
        ("sptf,depth=4", "sptf"),
        ("scale_time", "scale_time"),
        ("P99", "response_ms.p99"),
    ] {
        assert_eq!(explain_json(asked).unwrap()["name"], name, "{asked}");
    }
    let several = explain_json("war").unwrap();
    assert_eq!((&several["kind"], &several["name"]), (&json!("metrics"), &json!("war")));
    let names: Vec<_> = several["metrics"].as_array().unwrap().iter().map(|m| &m["name"]).collect();
    assert_eq!(names, ["war.per_update", "war.per_write", "war.per_request"]);
    for (asked, hint) in [
        ("unifrm", " (did you mean 'uniform'?)"),
        ("synth:unifrm", " (did you mean 'synth:uniform'?)"),
        ("umas", " (did you mean 'umass'?)"),
        ("raid55", " (did you mean 'raid5'?)"),
        ("overprovison", " (did you mean 'overprovision'?)"),
        ("stalls.shar", " (did you mean 'stalls.share'?)"),
        ("nonsense", ""),
    ] {
        let e = explain_json(asked).unwrap_err().to_string();
        assert_eq!(e, format!("name: nothing is called '{asked}'{hint}; smrlab list names everything"));
    }
}
