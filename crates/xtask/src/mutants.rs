//! `cargo xtask mutants`: planted bugs, each of which its named check must catch.
//!
//! The list is `crates/xtask/mutants/*.toml`, a file for each area. A bug is a text of a file and what stands there instead.
//! Bugs are planted one at a time in a copy of the tree under the target folder, which keeps its own build from run to
//! run (cargo cannot tell two trees in one target folder apart), so that only what a bug touches is built again. The tree itself is never changed.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A check that takes longer was caught: a bug that hangs is a bug that is seen.
const PATIENCE: Duration = Duration::from_secs(900);

/// Where the copy lies in the target folder.
const TREE: &str = "mutants/tree";

/// One planted bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    /// What it does wrong, in a few words; unique.
    name: String,
    /// The file, from the root of the tree.
    file: String,
    /// Text that occurs once there.
    find: String,
    /// What stands there instead.
    replace: String,
    /// The check that has to catch it, if not the area's.
    check: Option<String>,
}

/// The bugs of an area.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    /// The command that has to catch them, where a bug names no other.
    check: String,
    bug: Vec<Bug>,
}

/// What the user asked for.
#[derive(Default)]
struct Wanted {
    list: bool,
    areas: Vec<String>,
    names: Vec<String>,
    every: usize,
}

/// Runs the command with these arguments; answers with what is wrong.
pub fn run(root: &Path, args: &[&str]) -> Vec<String> {
    let (areas, wanted) = match (read(root), parse(args)) {
        (Ok(areas), Ok(wanted)) => (areas, wanted),
        (Err(faults), _) | (_, Err(faults)) => return faults,
    };
    let faults = faults_of(root, &areas);
    if wanted.list {
        for (area, bugs) in &areas {
            println!("{area}: {} bugs", bugs.bug.len());
            bugs.bug.iter().for_each(|b| println!("    {}", b.name));
        }
        return faults;
    }
    match plant_all(root, &areas, &wanted) {
        Ok(survivors) => [faults, survivors].concat(),
        Err(e) => vec![format!("mutants: {e}")],
    }
}

fn parse(args: &[&str]) -> Result<Wanted, Vec<String>> {
    let mut wanted = Wanted { every: 1, ..Wanted::default() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value =
            || rest.next().map(|v| (*v).to_owned()).ok_or_else(|| vec![format!("{arg} needs a value")]);
        match *arg {
            "--list" => wanted.list = true,
            "--area" => wanted.areas.push(value()?),
            "--bug" => wanted.names.push(value()?),
            "--every" => {
                let n = value()?;
                wanted.every = n
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| vec![format!("--every {n}: a number from 1")])?;
            }
            other => {
                return Err(vec![format!(
                    "mutants knows --list, --area A, --bug NAME and --every N, not {other}"
                )]);
            }
        }
    }
    Ok(wanted)
}

/// The areas by name, which is that of their file.
fn read(root: &Path) -> Result<BTreeMap<String, Area>, Vec<String>> {
    let dir = root.join("crates/xtask/mutants");
    let (mut areas, mut faults) = (BTreeMap::new(), Vec::new());
    let files = fs::read_dir(&dir).map_err(|e| vec![format!("{}: {e}", dir.display())])?;
    for path in files.flatten().map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let text = fs::read_to_string(&path).map_err(|e| e.to_string());
        match text.and_then(|t| toml::from_str::<Area>(&t).map_err(|e| e.to_string())) {
            Ok(area) => {
                let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
                areas.insert(name, area);
            }
            Err(e) => faults.push(format!("{}: {e}", path.display())),
        }
    }
    if faults.is_empty() { Ok(areas) } else { Err(faults) }
}

/// Bugs that cannot be planted: their text is not there, or not once. So the list is kept up with the code.
fn faults_of(root: &Path, areas: &BTreeMap<String, Area>) -> Vec<String> {
    let (mut faults, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    for (area, bug) in areas.iter().flat_map(|(name, a)| a.bug.iter().map(move |b| (name, b))) {
        if !can_be_planted(root, bug) {
            faults.push(format!("mutants/{area}.toml: '{}': its text is not once in {}", bug.name, bug.file));
        }
        if bug.find == bug.replace || !seen.insert(&bug.name) {
            faults.push(format!("mutants/{area}.toml: '{}' changes nothing, or is there twice", bug.name));
        }
    }
    faults
}

fn can_be_planted(root: &Path, bug: &Bug) -> bool {
    fs::read_to_string(root.join(&bug.file)).is_ok_and(|t| t.matches(&bug.find).count() == 1)
}

/// Plants what was asked for; answers with the survivors.
fn plant_all(root: &Path, areas: &BTreeMap<String, Area>, wanted: &Wanted) -> std::io::Result<Vec<String>> {
    let scratch = scratch(root)?;
    let (mut survivors, mut sums) = (Vec::new(), BTreeMap::new());
    for (name, area) in areas.iter().filter(|(n, _)| wanted.areas.is_empty() || wanted.areas.contains(n)) {
        let chosen = |b: &&Bug| wanted.names.is_empty() || wanted.names.contains(&b.name);
        for bug in area.bug.iter().filter(chosen).step_by(wanted.every) {
            let check = bug.check.as_ref().unwrap_or(&area.check);
            let begun = Instant::now();
            if !can_be_planted(root, bug) {
                continue;
            }
            let outcome = plant(&scratch, bug, check)?;
            println!("{:<9} {name}: {} ({:.0} s)", outcome.name(), bug.name, begun.elapsed().as_secs_f64());
            let sum: &mut (u32, u32) = sums.entry(name).or_default();
            sum.0 += u32::from(outcome == Outcome::Caught);
            sum.1 += 1;
            if outcome != Outcome::Caught {
                survivors.push(format!("{name}: '{}' {} {check}", bug.name, outcome.why()));
            }
        }
    }
    for (name, (caught, all)) in sums {
        println!("{name}: {caught} of {all} caught");
    }
    Ok(survivors)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Caught,
    Survived,
    DoesNotBuild,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Survived => "SURVIVED",
            Self::DoesNotBuild => "no build",
        }
    }

    fn why(self) -> &'static str {
        if self == Self::DoesNotBuild { "does not build for" } else { "survives" }
    }
}

/// Plants one bug, runs its check, and takes the bug out again.
fn plant(scratch: &Path, bug: &Bug, check: &str) -> std::io::Result<Outcome> {
    let file = scratch.join(&bug.file);
    let text = fs::read_to_string(&file)?;
    fs::write(&file, text.replacen(&bug.find, &bug.replace, 1))?;
    let build = done(scratch, &format!("{check} --no-run"));
    let outcome = match build {
        Ok(false) => Ok(Outcome::DoesNotBuild),
        Ok(true) => done(scratch, check).map(|ok| if ok { Outcome::Survived } else { Outcome::Caught }),
        Err(e) => Err(e),
    };
    fs::write(&file, text)?;
    outcome
}

/// Whether a command ended well, in time.
fn done(scratch: &Path, command: &str) -> std::io::Result<bool> {
    // What follows `--` goes to the tests, so other options come before it.
    let (command, no_run) = match command.strip_suffix(" --no-run") {
        Some(rest) => (rest, true),
        None => (command, false),
    };
    let mut words: Vec<&str> = command.split_whitespace().collect();
    if no_run {
        words.truncate(words.iter().position(|w| *w == "--").unwrap_or(words.len()));
        words.push("--no-run");
    }
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .current_dir(scratch)
        .env("CARGO_TARGET_DIR", scratch.with_file_name("build"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if !no_run && begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The copy of the tree, brought up to date: files that are the same keep their time, so that they are not built again.
fn scratch(root: &Path) -> std::io::Result<PathBuf> {
    let tree =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join(TREE);
    let files = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    for name in files.stdout.split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let name = String::from_utf8_lossy(name).into_owned();
        let (from, to) = (root.join(&name), tree.join(&name));
        let Ok(text) = fs::read(&from) else { continue };
        if fs::read(&to).ok().as_deref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap_or(&tree))?;
            fs::write(&to, text)?;
        }
    }
    Ok(tree)
}
