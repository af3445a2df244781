//! Runs `scenarios/*.md`. With `UPDATE=1` in the environment the files are rewritten to what happens.

use smrlab_array::ARRAYS;
use smrlab_stl::LAYERS;
use smrlab_testkit::scenario;
use std::path::PathBuf;

fn files() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .collect();
    files.sort();
    files
}

#[test]
fn host_operations_cause_the_media_operations_that_the_prose_says() {
    let update = std::env::var_os("UPDATE").is_some_and(|v| v == "1");
    let mut wrong = String::new();
    let (mut shown, mut built) = (Vec::new(), Vec::new());
    for path in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let outcome = scenario::run(&text).unwrap_or_else(|e| panic!("scenarios/{name}: {e}"));
        // The files that are nobody's are free to show only.
        if !outcome.layers.is_empty() || !outcome.arrays.is_empty() {
            assert!(outcome.claims > 0, "scenarios/{name} claims nothing: add a line 'claim write host 2'");
        }
        shown.extend(outcome.layers);
        built.extend(outcome.arrays);
        if outcome.actual != text {
            if update {
                std::fs::write(&path, &outcome.actual).unwrap();
            } else {
                wrong += &format!("scenarios/{name}\n{}\n", scenario::diff(&text, &outcome.actual));
            }
        }
    }
    assert!(wrong.is_empty(), "other media operations than written (UPDATE=1 rewrites the files):\n{wrong}");
    for entry in LAYERS {
        assert!(shown.iter().any(|l| l == entry.name), "no scenario shows the layer {}", entry.name);
    }
    for entry in ARRAYS {
        assert!(built.iter().any(|a| a == entry.name), "no scenario shows the array {}", entry.name);
    }
}
