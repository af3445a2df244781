//! The floors of the house: which crate may stand on which, and what a core crate may not touch.

use std::fs;
use std::path::Path;

/// Each crate with the crates of ours on which it may stand, itself left out.
const FLOORS: &[(&str, &[&str])] = &[
    ("features", &[]),
    ("units", &["features"]),
    ("blockmap", &["units"]),
    ("disk", &["units", "blockmap"]),
    ("trace", &["units", "blockmap"]),
    ("stl", &["units", "blockmap", "disk"]),
    ("drive", &["units", "blockmap", "disk", "stl"]),
    ("array", &["units", "blockmap", "disk", "stl", "drive"]),
    ("scsi", &["units"]),
    ("probe", &["units", "scsi", "blockmap", "disk", "stl", "drive"]),
    ("sim", &["units", "blockmap", "disk", "trace", "stl", "drive", "array"]),
    ("device", &["units", "blockmap", "disk", "trace", "stl", "drive", "array"]),
    ("nbdkit", &["units", "device", "fuse", "iscsi", "ublk"]),
    ("fuse", &["units", "device"]),
    ("ublk", &["units", "device"]),
    ("iscsi", &["units", "scsi", "stl", "device"]),
    ("testkit", &["units", "blockmap", "disk", "stl", "drive", "array"]),
];

/// Crates that read no clock, touch no file, spawn no thread and draw no randomness.
const PURE: &[&str] = &["units", "blockmap", "disk", "stl", "drive", "array", "scsi"];

/// What gives such a thing away, and what it is.
const IMPURE: &[(&str, &str)] = &[
    ("std::time::", "a clock"),
    ("Instant::now", "a clock"),
    ("SystemTime", "a clock"),
    ("std::thread", "a thread"),
    ("std::fs::", "a file"),
    ("std::net::", "a socket"),
    ("std::env::", "the environment"),
    ("HashMap", "a hash map, whose order is not ours: take a BTreeMap or a map of blockmap"),
    ("HashSet", "a hash set, whose order is not ours: take a BTreeSet or a set of blockmap"),
    ("rand::", "ambient randomness: take units::rng"),
];

/// Faults of the crates below `root`.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for (name, below) in FLOORS {
        if let Ok(text) = fs::read_to_string(root.join("crates").join(name).join("Cargo.toml")) {
            out.extend(edges(name, below, &text));
        }
    }
    out
}

/// Dependencies (not those of tests alone) that go against the floors.
fn edges(name: &str, below: &[&str], manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut out = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        }
        let Some(on) = line.strip_prefix("smrlab-").filter(|_| section == "[dependencies]") else { continue };
        let on = on.split(['.', ' ', '=']).next().unwrap_or(on);
        if on != "features" && !below.contains(&on) {
            let may = if below.is_empty() { "nothing of ours".to_owned() } else { below.join(", ") };
            out.push(format!("crates/{name}/Cargo.toml: it stands on {on}; it may stand on {may}"));
        }
    }
    out
}

/// Faults of one file: impurities in a core crate, outside its tests.
pub(crate) fn impurities(path: &Path, text: &str) -> Vec<String> {
    let mut parts = path.components().map(|c| c.as_os_str().to_string_lossy().into_owned());
    let inside = parts.next().as_deref() == Some("crates")
        && parts.next().is_some_and(|c| PURE.contains(&c.as_str()))
        && parts.next().as_deref() == Some("src");
    let test = path.file_stem().is_some_and(|s| {
        let s = s.to_string_lossy();
        s == "tests" || s.ends_with("_tests") || s.starts_with("test_")
    });
    if !inside || test {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        let code = line.split("//").next().unwrap_or(line);
        if let Some((_, what)) = IMPURE.iter().find(|(mark, _)| code.contains(mark)) {
            out.push(format!("{}:{}: {what}, in a core crate", path.display(), number + 1));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_against_the_floors_is_found_and_one_of_tests_is_not() {
        let manifest = "[dependencies]\nsmrlab-units.workspace = true\nsmrlab-sim.workspace = true\n\
                        [dev-dependencies]\nsmrlab-testkit.workspace = true\n";
        let found = edges("stl", &["units", "disk"], manifest);
        assert_eq!(found, ["crates/stl/Cargo.toml: it stands on sim; it may stand on units, disk"]);
    }

    #[test]
    fn a_clock_in_the_core_is_found_outside_tests_and_comments() {
        let text = "use std::time::Instant;\n// no SystemTime here\n#[cfg(test)]\nuse std::fs::File;\n";
        let found = impurities(Path::new("crates/stl/src/a.rs"), text);
        assert_eq!(found, ["crates/stl/src/a.rs:1: a clock, in a core crate"]);
        assert!(impurities(Path::new("crates/device/src/a.rs"), text).is_empty());
        assert!(impurities(Path::new("crates/stl/src/layers/tests.rs"), text).is_empty());
    }
}
