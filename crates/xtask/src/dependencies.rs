//! Dependencies: each is used by the crate that names it, and has a licence under which ours may stand on it.

use crate::tidy::files;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Licences that ask for no more than their text.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// Named for a feature of theirs, not for a name: positions in parsed sources; all of `features`.
const FOR_FEATURES: &[(&str, &str)] = &[("xtask", "proc-macro2")];

/// Faults of all manifests below `root`, and of what they bring.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    // Of this platform: what only others need was perhaps never fetched.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let command = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform])
        .current_dir(root)
        .output();
    let metadata = command
        .map_err(|e| e.to_string())
        .and_then(|out| serde_json::from_slice::<Value>(&out.stdout).map_err(|e| e.to_string()));
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(e) => return vec![format!("cargo metadata: {e}")],
    };
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let licences = packages.iter().filter_map(|package| {
        let (name, licence) = (package["name"].as_str()?, package["license"].as_str().unwrap_or_default());
        (!may_use(licence))
            .then(|| format!("{name}: its licence is \"{licence}\"; see crates/xtask/src/dependencies.rs"))
    });
    licences.chain(unused(root)).collect()
}

/// Whether one of the alternatives of a licence expression is made of licences that we know.
fn may_use(expression: &str) -> bool {
    let known = |one: &str| LICENCES.contains(&one.trim());
    // "A OR B", "A/B", "(A OR B) AND C": every part of a conjunction has an alternative that we may choose.
    let all = expression.split(" AND ").map(|part| part.trim_matches(['(', ')', ' ']));
    let mut all = all.map(|part| part.split(" OR ").flat_map(|one| one.split('/')).any(known));
    all.all(|fits| fits)
}

/// Dependencies of our crates that none of their sources names.
fn unused(root: &Path) -> Vec<String> {
    let all = files(root);
    let mut out = Vec::new();
    for manifest in all.iter().filter(|p| p.starts_with("crates") && p.ends_with("Cargo.toml")) {
        let (Some(folder), Ok(text)) = (manifest.parent(), fs::read_to_string(root.join(manifest))) else {
            continue;
        };
        let Ok(table) = text.parse::<toml::Table>() else { continue };
        let package = table["package"]["name"].as_str().unwrap_or_default();
        let sources =
            all.iter().filter(|p| p.starts_with(folder) && p.extension().is_some_and(|e| e == "rs"));
        let words: HashSet<String> = sources
            .filter_map(|p| fs::read_to_string(root.join(p)).ok())
            .flat_map(|text| words(&text))
            .collect();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let named = table.get(section).and_then(toml::Value::as_table).into_iter().flat_map(|t| t.keys());
            let left = named.filter(|name| {
                !words.contains(&name.replace('-', "_"))
                    && !FOR_FEATURES.contains(&(package, name))
                    && name.as_str() != "smrlab-features"
                    && package != "smrlab-features"
            });
            out.extend(left.map(|name| format!("{}: nothing uses {name}", manifest.display())));
        }
    }
    out
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::may_use;

    #[test]
    fn a_licence_is_known_by_one_alternative_of_each_part() {
        for fits in ["MIT", "MIT/Apache-2.0", "LGPL-2.1-or-later OR MIT", "(MIT OR GPL-2.0) AND Unicode-3.0"]
        {
            assert!(may_use(fits), "{fits}");
        }
        for other in ["", "GPL-3.0", "MIT AND GPL-2.0", "AGPL-3.0 OR GPL-2.0"] {
            assert!(!may_use(other), "{other}");
        }
    }
}
