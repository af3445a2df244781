//! What users get without options is a load that a conventional drive sustains.

use smrlab_sim::{Control, Spec, list_json, run};

fn names(kind: &str) -> Vec<String> {
    let listed = list_json(kind).unwrap();
    let name = |doc: &serde_json::Value| doc["name"].as_str().unwrap().to_owned();
    listed.as_array().unwrap().iter().map(name).collect()
}

/// Every generator on every drive. `back-to-back` is one request after the other, for `--arrivals closed`; a tenth of the tiny
/// drive is less than a request of `phases`; `zoned` writes half a MiB at a time, which is for drives that have zones.
#[test]
fn generators_at_their_defaults_do_not_overload_conventional_drives() {
    let mut late = Vec::new();
    for drive in names("drives") {
        for trace in names("generators") {
            let other = ["synth:back-to-back", "synth:zoned"].contains(&trace.as_str());
            if other || (trace == "synth:phases" && drive == "tiny") {
                continue;
            }
            let text = format!("drive = '{drive}'\nlayer = 'cmr'\ntrace = '{trace}'\nlimit = 3000\n");
            let result = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).unwrap().json;
            let load = result["offered_load"].as_f64().unwrap_or_else(|| panic!("no load: {text}"));
            if !(0.0..0.95).contains(&load) {
                late.push(format!("{trace} on {drive}: {load:.2}"));
            }
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}
