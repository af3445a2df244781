//! Prefills that are kept in files: the run that takes one is the run that wrote it, and the folder stays within its bound.

use serde_json::Value;
use smrlab_sim::{Control, Keep, Spec, run};
use std::path::{Path, PathBuf};

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("smrlab-kept-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    Folder(path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(folder).map_or(Vec::new(), |all| all.flatten().map(|f| f.path()).collect());
    found.sort();
    found
}

/// The document of a run on a drive of 60 GB after a prefill, with prefills kept in `folder`.
fn done(layer: &str, prefill: &str, folder: &Path, bytes: u64, program: &str) -> Value {
    let text = format!(
        "drive = 'modern-7200,capacity=60GB'\nlayer = '{layer}'\nprefill = '{prefill}'\narrivals = 'closed'\n\
         trace = 'synth:uniform,requests=3000,write=70%,size=16KiB'"
    );
    let keep = Keep { folder: folder.to_owned(), bytes, program: program.into() };
    run(&Spec::from_toml(&text).unwrap(), &Control::keeping(Some(keep)), None).unwrap().json
}

/// A layer whose state is larger than what it takes to get there is not kept.
#[test]
fn a_run_from_a_kept_prefill_is_the_run_that_wrote_it() {
    let layers = smrlab_stl::LAYERS.iter().map(|l| l.name).filter(|&l| l != "raw");
    let mut kept = Vec::new();
    for layer in layers {
        let folder = folder(&layer.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let done = |layer| {
            let mut doc = done(layer, "30%", &folder.0, 1 << 30, "test");
            // Containers that grew in another order.
            doc["space"].as_object_mut().unwrap().remove("map_bytes_peak");
            // A drive that begins has closed the zones that were open.
            if let Some(counted) = doc.get_mut("cache").and_then(Value::as_object_mut) {
                counted.retain(|name, _| !["open_zones", "used_zones_closed"].contains(&name.as_str()));
            }
            doc
        };
        let first = done(layer);
        let found = files(&folder.0);
        if found.len() == 1 {
            kept.push(layer);
        }
        let again = done(layer);
        assert_eq!(first, again, "{layer}");
        assert_eq!(found, files(&folder.0), "{layer}: the second run writes nothing");
    }
    assert!(kept.len() >= 8, "only {kept:?} were kept");
}

#[test]
fn another_prefill_drive_or_program_has_its_own_file_and_the_longest_unused_goes() {
    let folder = folder("own");
    let one = |prefill: &str, program: &str, bytes: u64| {
        done("rmw", prefill, &folder.0, bytes, program);
        files(&folder.0)
    };
    let first = one("30%", "a", 1 << 30);
    assert_eq!(first.len(), 1);
    assert_eq!(one("31%", "a", 1 << 30).len(), 2, "another share");
    assert_eq!(one("31%", "b", 1 << 30).len(), 3, "another program");
    // A file that is damaged is none.
    std::fs::write(&first[0], "nonsense").unwrap();
    let found = one("30%", "a", 1 << 30);
    assert_eq!(found.len(), 3);
    assert!(std::fs::metadata(&first[0]).unwrap().len() > 20, "it was written again");
    let each = std::fs::metadata(&first[0]).unwrap().len();
    let left = one("32%", "a", 2 * each + each / 2);
    assert_eq!(left.len(), 2, "no more than the bound: {left:?}");
    assert!(left.contains(&first[0]), "what was written last stays");
}

/// So it is with arrays, but for those whose SSD knows what was used when.
#[test]
fn a_run_of_an_array_from_a_kept_prefill_is_the_run_that_wrote_it() {
    let cases =
        [("striped,disks=2", 1), ("raid5,disks=4,intent=on", 1), ("raid5,disks=4,ssd_write=64MiB", 0)];
    for (array, kept) in cases {
        let folder = folder(&array.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let done = || {
            let text = format!(
                "drive = 'modern-7200,capacity=20GB'\nlayer = 'rmw'\narray = '{array}'\nprefill = '20%'\n\
                 arrivals = 'closed'\ntrace = 'synth:uniform,requests=1000,write=70%,size=16KiB'"
            );
            let keep = Keep { folder: folder.0.clone(), bytes: 1 << 30, program: "test".into() };
            let control = Control::keeping(Some(keep));
            let mut doc = run(&Spec::from_toml(&text).unwrap(), &control, None).unwrap().json;
            let members = doc["members"].as_array_mut().unwrap().iter_mut();
            members.for_each(|m| _ = m["space"].as_object_mut().unwrap().remove("map_bytes_peak"));
            doc["space"].as_object_mut().unwrap().remove("map_bytes_peak");
            doc
        };
        let first = done();
        assert_eq!(files(&folder.0).len(), kept, "{array}");
        assert_eq!(first, done(), "{array}");
    }
}
