//! Planting bugs in a copy of the tree under the target folder. The copy keeps its own build from run to run (cargo cannot
//! tell two trees in one target folder apart); the tree itself is never changed. All bugs that can be [switched] are in one
//! build, the others are planted one at a time.
//!
//! [switched]: super::switch

use super::Bug;
use super::copied::{Copied, copy, work_of_children};
use super::reach::{self, Sound, Test};
use super::switch::{SWITCH, Switched, switched};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What became of a bug.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Caught,
    Survived,
    DoesNotBuild,
    /// Its check fails without it, which says nothing about the bug.
    FailsAnyway,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Survived => "SURVIVED",
            Self::DoesNotBuild => "no build",
            Self::FailsAnyway => "bad check",
        }
    }

    /// Of a check that passes with the bug, or fails.
    fn of(passes: bool) -> Self {
        if passes { Self::Survived } else { Self::Caught }
    }

    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Caught => "is caught by",
            Self::Survived => "survives",
            Self::DoesNotBuild => "does not build for",
            Self::FailsAnyway => "has a check that fails without it:",
        }
    }
}

/// The copy of the tree, and what is known from this run and, if it is resumed, the ones before.
pub(super) struct Workbench {
    root: PathBuf,
    bugs: Vec<Bug>,
    copied: Copied,
    /// The Python that runs `pytest`.
    python: PathBuf,
    /// Files with bugs behind switches, as they stand in the copy.
    files: BTreeMap<String, Switched>,
    /// Checks that were run without a bug, if they pass.
    sound: BTreeMap<String, Option<Sound>>,
    /// Their tests.
    tests: Vec<Test>,
    /// Bugs that were caught, by [`mark`].
    caught: BTreeSet<String>,
    log: fs::File,
}

impl Workbench {
    /// A copy of the tree below `root`, with all of `bugs` in it that can be switched.
    pub(super) fn new(root: &Path, resume: bool, bugs: &[&Bug]) -> io::Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let home = target.join("mutants");
        let tree = home.join("tree");
        let mut files = BTreeMap::new();
        for file in bugs.iter().map(|b| &b.file).filter(|f| f.ends_with(".rs")).collect::<BTreeSet<_>>() {
            let own: Vec<&Bug> = bugs.iter().copied().filter(|b| &b.file == file).collect();
            files.insert(file.clone(), switched(&fs::read_to_string(root.join(file))?, &own));
        }
        copy(root, &tree, &files)?;
        let log = home.join("caught");
        let before = if resume { fs::read_to_string(&log).unwrap_or_default() } else { String::new() };
        let caught = before.lines().map(str::to_owned).collect();
        let log =
            fs::OpenOptions::new().create(true).append(resume).write(true).truncate(!resume).open(log)?;
        let python =
            std::env::var_os("SMRLAB_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
        let (root, sound) = (root.to_owned(), BTreeMap::new());
        let copied = Copied { tree, build: home.join("build") };
        Ok(Self {
            root,
            bugs: bugs.iter().map(|b| (*b).clone()).collect(),
            copied,
            python,
            files,
            sound,
            tests: Vec::new(),
            caught,
            log,
        })
    }

    /// Whether a bug has a switch.
    pub(super) fn has_switch(&self, bug: &Bug) -> bool {
        self.files.get(&bug.file).is_some_and(|f| f.lines.iter().any(|(_, name)| *name == bug.name))
    }

    /// Runs the check of one bug with it.
    pub(super) fn plant(&mut self, bug: &Bug, check: &str) -> io::Result<Outcome> {
        let mark = mark(bug, check);
        if self.caught.contains(&mark) {
            return Ok(Outcome::Caught);
        }
        if !self.sound.contains_key(check) {
            self.try_out(check)?;
        }
        let Some(sound) = &self.sound[check] else { return Ok(Outcome::FailsAnyway) };
        let outcome = match (self.has_switch(bug), &sound.tests) {
            (true, Some(tests)) => Outcome::of(!reach::caught(&self.copied, tests, &bug.name)?),
            (true, None) => self.passes(check, sound.within, &bug.name)?,
            // Of a list, and it does not compile, or stands where no switch can.
            (false, _) if bug.at.is_some() && bug.file.ends_with(".rs") => Outcome::DoesNotBuild,
            (false, _) => self.alone(bug, check, sound.within)?,
        };
        if outcome == Outcome::Caught {
            writeln!(self.log, "{mark}")?;
            self.caught.insert(mark);
        }
        Ok(outcome)
    }

    /// Builds a check and runs it with no bug switched on.
    fn try_out(&mut self, check: &str) -> io::Result<()> {
        while let Some(failed) = self.builds(check)? {
            if !self.leave_out(&failed)? {
                eprintln!("{failed}");
                self.sound.insert(check.to_owned(), None);
                return Ok(());
            }
        }
        let before = work()?;
        let (passes, tests) = match reach::has_tests(check) {
            true => {
                let tests = reach::tests(&self.copied, check, &self.tests)?;
                (tests.is_some(), tests)
            }
            false => (self.passes(check, 3600, "")? == Outcome::Survived, None),
        };
        self.tests.extend(tests.clone().unwrap_or_default());
        // A bug that hangs is a bug that is seen: by its work, so that a machine that is busy catches nothing.
        let work = tests.as_deref().map_or(work()? - before, reach::work);
        self.sound.insert(check.to_owned(), passes.then_some(Sound { within: 20 + 4 * work, tests }));
        Ok(())
    }

    /// Takes the bugs that do not compile out of the copy, or where it is none of them all of a file; answers whether
    /// anything was left to take out.
    fn leave_out(&mut self, failed: &str) -> io::Result<bool> {
        let mut changed = BTreeSet::new();
        for (name, line) in errors(failed) {
            let Some(file) = self.files.get_mut(&name).filter(|f| !f.lines.is_empty()) else { continue };
            let before = file.lines.len();
            let guilty = |(lines, _): &(Range<usize>, String)| lines.contains(&line);
            match file.lines.iter().any(guilty) {
                true => file.lines.retain(|one| !guilty(one)),
                false if changed.contains(&name) => {}
                false => {
                    eprintln!("{name}:{line} does not compile with what is planted there: none of it is");
                    file.lines.clear();
                }
            }
            if file.lines.len() < before {
                changed.insert(name);
            }
        }
        for name in &changed {
            let kept: Vec<String> = self.files[name].lines.iter().map(|(_, bug)| bug.clone()).collect();
            let own = self.bugs.iter().filter(|b| &b.file == name && kept.contains(&b.name));
            let text = fs::read_to_string(self.root.join(name))?;
            let file = switched(&text, &own.collect::<Vec<_>>());
            fs::write(self.copied.tree.join(name), &file.text)?;
            self.files.insert(name.clone(), file);
        }
        Ok(!changed.is_empty())
    }

    /// Plants a bug that has no switch, runs its check, and takes it out again.
    fn alone(&self, bug: &Bug, check: &str, within: u64) -> io::Result<Outcome> {
        let file = self.copied.tree.join(&bug.file);
        let before = fs::read_to_string(&file)?;
        let text = fs::read_to_string(self.root.join(&bug.file))?;
        let place = bug.place(&text).unwrap_or_default();
        fs::write(&file, format!("{}{}{}", &text[..place.start], bug.replace, &text[place.end..]))?;
        let outcome = self.builds(check).and_then(|failed| match failed {
            Some(_) => Ok(Outcome::DoesNotBuild),
            None => self.passes(check, within, ""),
        });
        fs::write(&file, before)?;
        outcome
    }

    /// Builds what a check runs; answers with what the compiler says if it fails.
    fn builds(&self, check: &str) -> io::Result<Option<String>> {
        let mut words: Vec<&str> = check.split_whitespace().collect();
        if is_served(check) {
            words = vec!["cargo", "build", "-q", "-p", "smrlab-nbdkit"];
        } else if needs_core(check) {
            words = vec!["cargo", "build", "-q", "-p", "smrlab-py"];
        } else if words[0] == "cargo" {
            // What follows `--` goes to the tests.
            words.truncate(words.iter().position(|w| *w == "--").unwrap_or(words.len()));
            words.push("--no-run");
        } else {
            return Ok(None);
        }
        let mut command = Command::new(words[0]);
        if needs_core(check) {
            command.env("PYO3_PYTHON", &self.python);
        }
        let done = self.copied.done(command.args(&words[1..]))?;
        if needs_core(check) && done.status.success() {
            self.put_core()?;
        }
        Ok((!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned()))
    }

    /// Runs a check with a bug switched on: caught, or not. `timeout` in the foreground ends the test itself, and leaves
    /// Ctrl-C to all; it is for what hangs without work.
    fn passes(&self, check: &str, within: u64, bug: &str) -> io::Result<Outcome> {
        let (program, rest) = check.split_once(' ').unwrap_or((check, ""));
        let cpu = format!("--cpu={within}");
        let limits = ["timeout", "--foreground", "3600", "prlimit", &cpu, "--"];
        let mut command = Command::new(if program == "cargo" { program } else { limits[0] });
        if program == "cargo" {
            command.arg("--config").arg(format!("target.\"cfg(all())\".runner = {limits:?}"));
        } else {
            command.args(&limits[1..]).arg(&self.python).args(["-m", program, "-q", "-x"]);
        }
        let package = if needs_core(check) { &self.copied.build } else { &self.copied.tree }.join("python");
        command.args(rest.split_whitespace()).env("PYTHONPATH", package).env(SWITCH, bug);
        if is_served(check) {
            command.env("SMRLAB_NBDKIT_PLUGIN", self.copied.build.join("debug/libsmrlab_nbdkit.so"));
        }
        let passed = self.copied.done(&mut command)?.status.success();
        Ok(Outcome::of(passed))
    }

    /// The package of the copy with the module that has the bugs instead of the one that was built before.
    fn put_core(&self) -> io::Result<()> {
        const CORE: &str = "_core.abi3.so";
        let package = self.copied.build.join("python/smrlab");
        fs::remove_dir_all(&package)
            .or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
        fs::create_dir_all(&package)?;
        for file in fs::read_dir(self.copied.tree.join("python/smrlab"))? {
            let file = file?;
            if file.file_name() != CORE {
                std::os::unix::fs::symlink(file.path(), package.join(file.file_name()))?;
            }
        }
        fs::copy(self.copied.build.join("debug/lib_core.so"), package.join(CORE)).map(|_| ())
    }
}

/// Whether a check needs a server with the bug.
fn is_served(check: &str) -> bool {
    check.starts_with("pytest tests/device")
}

/// Whether a check needs the native module with the bug.
fn needs_core(check: &str) -> bool {
    ["test_layer_claims", "test_walk"]
        .iter()
        .any(|t| check.starts_with(&format!("pytest python/tests/{t}.py")))
}

/// Where the compiler found errors: files and lines; not where its notes point, which is code that is right.
fn errors(said: &str) -> Vec<(String, usize)> {
    let (mut found, mut wrong) = (Vec::new(), false);
    for line in said.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            wrong = line.starts_with("error");
        }
        let place = line.trim_start().strip_prefix("--> ").filter(|_| wrong);
        let mut parts = place.into_iter().flat_map(|p| p.split(':'));
        if let (Some(file), Some(Ok(line))) = (parts.next(), parts.next().map(str::parse)) {
            found.push((file.to_owned(), line));
            wrong = false;
        }
    }
    found
}

/// Seconds of processor time of everything that was run so far.
fn work() -> io::Result<u64> {
    Ok(work_of_children(&fs::read_to_string("/proc/self/stat")?) / 100)
}

/// A line that stands for a bug and its check as they are.
fn mark(bug: &Bug, check: &str) -> String {
    format!("{:?}", (&bug.name, &bug.file, &bug.find, &bug.replace, check))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an error's notes point at is right, and so is what is warned of.
    #[test]
    fn an_error_is_where_its_first_arrow_points() {
        let said = "warning: unused\n  --> a.rs:1:1\nerror[E0308]: mismatched types\n  --> a.rs:7:5\n   |\n\
                    note: method defined here\n  --> a.rs:3:8\nerror: other\n --> b.rs:2:1\n";
        assert_eq!(errors(said), [("a.rs".to_owned(), 7), ("b.rs".to_owned(), 2)]);
    }
}
