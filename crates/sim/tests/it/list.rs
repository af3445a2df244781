//! What lists and `explain` say of an entry is what the entry does.

use smrlab_sim::list::drive_json;
use smrlab_sim::list_json;
use smrlab_stl::{BuildContext, LAYERS, build};
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
