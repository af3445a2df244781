//! `cargo xtask mutants`: planted bugs, each of which its named check must catch.
//!
//! The list is `crates/xtask/mutants/*.toml`, a file for each area. A bug is a text of a file and what stands there instead.
//! `cargo xtask tidy` refuses a bug whose text is not there any more, so the list is kept up with the code.

mod copied;
mod listed;
mod plant;
mod reach;
mod switch;

use plant::Outcome;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

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
    /// Where the text is, for bugs of a list.
    #[serde(skip)]
    at: Option<usize>,
}

impl Bug {
    fn new(name: &str, file: &str, find: &str, replace: &str) -> Self {
        let [name, file, find, replace] = [name, file, find, replace].map(str::to_owned);
        Self { name, file, find, replace, check: None, at: None }
    }

    /// Where it goes in the text of its file.
    fn place(&self, text: &str) -> Option<Range<usize>> {
        let start = self.at.or_else(|| text.find(&self.find))?;
        Some(start..start + self.find.len())
    }
}

/// The bugs of an area.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    /// The command that has to catch them, where a bug names no other: of cargo, or `pytest FILE`.
    check: String,
    bug: Vec<Bug>,
}

/// What the user asked for.
#[derive(Default)]
struct Wanted {
    list: bool,
    resume: bool,
    areas: Vec<String>,
    names: Vec<String>,
    sample: Sample,
    /// Lists of cargo-mutants whose bugs are planted instead: all of them in one build.
    from: Vec<From>,
}

/// A list of cargo-mutants, which of it are planted, and the commands of which one has to catch them.
struct From {
    list: String,
    sample: Sample,
    checks: Vec<String>,
}

/// Each `every`-th bug, from that at `offset` on.
#[derive(Clone, Copy)]
struct Sample {
    every: usize,
    offset: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self { every: 1, offset: 0 }
    }
}

const KNOWN: &str = "mutants knows --list, --area A, --bug NAME, --every N, --offset N, --resume (leave out what was caught \
                     before), and --from LIST --check COMMAND (both may be repeated: a --check, --every or --offset belongs to \
                     the list before it)";

/// Runs the command with these arguments; answers with what is wrong.
pub(crate) fn run(root: &Path, args: &[&str]) -> Vec<String> {
    let wanted = match parse(args) {
        Ok(wanted) => wanted,
        Err(faults) => return faults,
    };
    let read = match wanted.from.is_empty() {
        false => listed(root, &wanted.from).map_err(|e| vec![format!("--from {e}")]),
        true => read(root),
    };
    let areas = match read {
        Ok(areas) => areas,
        Err(faults) => return faults,
    };
    if let Some(unknown) = wanted.areas.iter().find(|a| !areas.contains_key(*a)) {
        let known: Vec<&str> = areas.keys().map(String::as_str).collect();
        return vec![format!("--area {unknown}: there are {}", known.join(", "))];
    }
    let faults = if wanted.from.is_empty() { faults_of(root, &areas) } else { Vec::new() };
    if wanted.list {
        for (area, bugs) in areas.iter().filter(|(name, _)| wanted.has(name)) {
            println!("{area}: {} bugs", bugs.bug.len());
            bugs.bug.iter().for_each(|b| println!("    {}", b.name));
        }
        println!("{} bugs", areas.values().map(|a| a.bug.len()).sum::<usize>());
        return faults;
    }
    match plant_all(root, &areas, &wanted) {
        Ok(survivors) => [faults, survivors].concat(),
        Err(e) => vec![format!("mutants: {e}")],
    }
}

/// What is wrong with the list itself.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    read(root).map_or_else(|faults| faults, |areas| faults_of(root, &areas))
}

impl Wanted {
    fn has(&self, area: &String) -> bool {
        self.areas.is_empty() || self.areas.contains(area)
    }
}

fn parse(args: &[&str]) -> Result<Wanted, Vec<String>> {
    let mut wanted = Wanted::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value =
            || rest.next().map(|v| (*v).to_owned()).ok_or_else(|| vec![format!("{arg} needs a value")]);
        match *arg {
            "--list" => wanted.list = true,
            "--resume" => wanted.resume = true,
            "--area" => wanted.areas.push(value()?),
            "--bug" => wanted.names.push(value()?),
            "--from" => {
                let list = From { list: value()?, sample: wanted.sample, checks: Vec::new() };
                wanted.from.push(list);
            }
            "--check" => match wanted.from.last_mut() {
                Some(from) => from.checks.push(value()?),
                None => return Err(vec!["--check belongs to the --from before it".to_owned()]),
            },
            "--every" | "--offset" => {
                let n = value()?;
                let sample = wanted.from.last_mut().map_or(&mut wanted.sample, |from| &mut from.sample);
                match n.parse::<usize>() {
                    Ok(n) if *arg == "--offset" => sample.offset = n,
                    Ok(n) if n > 0 => sample.every = n,
                    _ => return Err(vec![format!("{arg} {n}: a whole number, and of --every one from 1")]),
                }
            }
            other => return Err(vec![format!("{KNOWN}, not {other}")]),
        }
    }
    Ok(wanted)
}

/// Areas of bugs that cargo-mutants lists, by the names of the lists' files.
fn listed(root: &Path, from: &[From]) -> Result<BTreeMap<String, Area>, String> {
    let mut areas = BTreeMap::new();
    for From { list, sample, checks } in from {
        let check = checks.first().ok_or_else(|| {
            format!("{list}: it needs a --check that is to catch them (several are tried in turn)")
        })?;
        let bug = listed::listed(root, list)?;
        let bug = bug.into_iter().skip(sample.offset).step_by(sample.every).collect();
        let name = Path::new(list).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if areas.insert(name, Area { check: check.clone(), bug }).is_some() {
            return Err(format!("{list}: two lists of this name"));
        }
    }
    Ok(areas)
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

/// Bugs that cannot be planted: their text is not there, or not once.
fn faults_of(root: &Path, areas: &BTreeMap<String, Area>) -> Vec<String> {
    let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
    for (area, bug) in areas.iter().flat_map(|(name, a)| a.bug.iter().map(move |b| (name, b))) {
        let at = format!("crates/xtask/mutants/{area}.toml: '{}'", bug.name);
        if !can_be_planted(root, bug) {
            faults
                .push(format!("{at}: its text is not once in {}; copy the text that is there now", bug.file));
        }
        if bug.find == bug.replace || !seen.insert(&bug.name) {
            faults.push(format!("{at} changes nothing, or is there twice"));
        }
    }
    faults
}

fn can_be_planted(root: &Path, bug: &Bug) -> bool {
    let once = |text: String| text.matches(&bug.find).count() == 1;
    bug.at.is_some() || fs::read_to_string(root.join(&bug.file)).is_ok_and(once)
}

/// Plants what was asked for; answers with the survivors.
fn plant_all(root: &Path, areas: &BTreeMap<String, Area>, wanted: &Wanted) -> std::io::Result<Vec<String>> {
    let mut chosen = Vec::new();
    for (name, area) in areas.iter().filter(|(name, _)| wanted.has(name)) {
        let named = |b: &&Bug| wanted.names.is_empty() || wanted.names.contains(&b.name);
        let Sample { every, offset } = if wanted.from.is_empty() { wanted.sample } else { Sample::default() };
        let bugs = area.bug.iter().filter(named).skip(offset).step_by(every);
        let listed = wanted.from.iter().find(|from| Path::new(&from.list).file_stem() == Some(name.as_ref()));
        chosen.extend(bugs.filter(|b| can_be_planted(root, b)).map(|bug| {
            let own = std::slice::from_ref(bug.check.as_ref().unwrap_or(&area.check));
            (name, bug, listed.map_or(own, |from| &from.checks[..]))
        }));
    }
    // The copy has the same bugs whatever is asked for, so that it need not be built again; of a list, what is asked.
    let all: Vec<&Bug> = match wanted.from.is_empty() {
        true => areas.values().flat_map(|a| &a.bug).filter(|b| can_be_planted(root, b)).collect(),
        false => chosen.iter().map(|(_, bug, _)| *bug).collect(),
    };
    let mut place = plant::Workbench::new(root, wanted.resume, &all)?;
    let (mut faults, mut sums) = (Vec::new(), BTreeMap::new());
    // Those that need a build of their own come last.
    chosen.sort_by_key(|(_, bug, _)| !place.has_switch(bug));
    for (name, bug, checks) in chosen {
        let begun = Instant::now();
        let mut outcome = Outcome::Survived;
        for check in checks {
            outcome = place.plant(bug, check)?;
            if outcome != Outcome::Survived {
                break;
            }
        }
        println!("{:<10} {name}: {} ({:.0} s)", outcome.name(), bug.name, begun.elapsed().as_secs_f64());
        // What cargo-mutants calls unviable.
        if !wanted.from.is_empty() && outcome == Outcome::DoesNotBuild {
            continue;
        }
        let sum: &mut (u32, u32) = sums.entry(name).or_default();
        sum.0 += u32::from(outcome == Outcome::Caught);
        sum.1 += 1;
        if outcome != Outcome::Caught {
            faults.push(format!("{name}: '{}' {} {}", bug.name, outcome.why(), checks.join(", ")));
        }
    }
    for (name, (caught, all)) in &sums {
        println!("{name}: {caught} of {all} caught");
    }
    let all = sums.values().fold((0, 0), |(caught, all), sum| (caught + sum.0, all + sum.1));
    println!("in all {} of {} caught", all.0, all.1);
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check, a distance and an offset are those of the list before them, and of the committed list before any.
    #[test]
    fn each_list_has_its_own_sample_and_checks() {
        let args = "--every 2 --from a.json --check x --offset 3 --from b.json --every 5 --check y --check z";
        let wanted = parse(&args.split(' ').collect::<Vec<_>>()).unwrap();
        let of = |f: &From| (f.list.clone(), f.sample.every, f.sample.offset, f.checks.join(" "));
        let lists: Vec<_> = wanted.from.iter().map(of).collect();
        let listed =
            |list: &str, every, offset, checks: &str| (list.to_owned(), every, offset, checks.to_owned());
        assert_eq!(lists, [listed("a.json", 2, 3, "x"), listed("b.json", 5, 0, "y z")]);
        assert_eq!((wanted.sample.every, wanted.sample.offset), (2, 0));
        for wrong in ["--check x", "--every 0", "--offset -1", "--from"] {
            assert!(parse(&wrong.split(' ').collect::<Vec<_>>()).is_err(), "{wrong}");
        }
    }
}
