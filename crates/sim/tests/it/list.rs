//! What lists and `explain` say of an entry is what the entry does.

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
