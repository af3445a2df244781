//! Planting one bug at a time, in a copy of the tree under the target folder. The copy keeps its own build from run to run
//! (cargo cannot tell two trees in one target folder apart), so that only what a bug touches is built again; the tree
//! itself is never changed.

use super::Bug;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test that takes longer was caught: a bug that hangs is a bug that is seen. Seconds of work, so that a machine that is
/// busy with something else catches nothing; and of waiting, for what hangs without work.
const WITHIN: [&str; 6] = ["timeout", "--foreground", "3600", "prlimit", "--cpu=300", "--"];

/// What became of a bug.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Caught,
    Survived,
    DoesNotBuild,
    /// Its check fails without it, which says nothing about the bug.
    FailsAnyway,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Survived => "SURVIVED",
            Self::DoesNotBuild => "no build",
            Self::FailsAnyway => "bad check",
        }
    }

    pub fn why(self) -> &'static str {
        match self {
            Self::Caught => "is caught by",
            Self::Survived => "survives",
            Self::DoesNotBuild => "does not build for",
            Self::FailsAnyway => "has a check that fails without it:",
        }
    }
}

/// The copy of the tree, and what is known from this run and, if it is resumed, the ones before.
pub struct Place {
    tree: PathBuf,
    build: PathBuf,
    /// The Python that runs `pytest`.
    python: PathBuf,
    /// Checks that were run without a bug, and whether they pass.
    sound: BTreeMap<String, bool>,
    /// Bugs that were caught, by [`mark`].
    caught: BTreeSet<String>,
    log: fs::File,
}

impl Place {
    pub fn new(root: &Path, resume: bool) -> io::Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let home = target.join("mutants");
        let tree = home.join("tree");
        copy(root, &tree)?;
        let log = home.join("caught");
        let before = if resume { fs::read_to_string(&log).unwrap_or_default() } else { String::new() };
        let caught = before.lines().map(str::to_owned).collect();
        let log =
            fs::OpenOptions::new().create(true).append(resume).write(true).truncate(!resume).open(log)?;
        let python =
            std::env::var_os("SMRLAB_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
        Ok(Self { tree, build: home.join("build"), python, sound: BTreeMap::new(), caught, log })
    }

    /// Plants one bug, runs its check, and takes the bug out again.
    pub fn plant(&mut self, bug: &Bug, check: &str) -> io::Result<Outcome> {
        let mark = mark(bug, check);
        if self.caught.contains(&mark) {
            return Ok(Outcome::Caught);
        }
        if !self.sound.contains_key(check) {
            let passes = self.builds(check)? && self.passes(check)?;
            self.sound.insert(check.to_owned(), passes);
        }
        if !self.sound[check] {
            return Ok(Outcome::FailsAnyway);
        }
        let file = self.tree.join(&bug.file);
        let text = fs::read_to_string(&file)?;
        fs::write(&file, text.replacen(&bug.find, &bug.replace, 1))?;
        let outcome = match self.builds(check) {
            Ok(false) => Ok(Outcome::DoesNotBuild),
            Ok(true) => self.passes(check).map(|ok| if ok { Outcome::Survived } else { Outcome::Caught }),
            Err(e) => Err(e),
        };
        fs::write(&file, text)?;
        if let Ok(Outcome::Caught) = outcome {
            writeln!(self.log, "{mark}")?;
            self.caught.insert(mark);
        }
        outcome
    }

    fn builds(&self, check: &str) -> io::Result<bool> {
        let mut words: Vec<&str> = check.split_whitespace().collect();
        if words[0] != "cargo" {
            return Ok(true);
        }
        // What follows `--` goes to the tests.
        words.truncate(words.iter().position(|w| *w == "--").unwrap_or(words.len()));
        words.push("--no-run");
        self.done(Command::new(words[0]).args(&words[1..]))
    }

    /// Whether the check passes in time. `timeout` in the foreground ends the test itself, and leaves Ctrl-C to all.
    fn passes(&self, check: &str) -> io::Result<bool> {
        let (program, rest) = check.split_once(' ').unwrap_or((check, ""));
        let words = rest.split_whitespace();
        if program == "cargo" {
            let runner = format!("target.\"cfg(all())\".runner = {WITHIN:?}");
            return self.done(Command::new(program).args(["--config", &runner]).args(words));
        }
        let mut command = Command::new(WITHIN[0]);
        command.args(&WITHIN[1..]).arg(&self.python).args(["-m", program, "-q", "-x"]).args(words);
        self.done(command.env("PYTHONPATH", "python"))
    }

    fn done(&self, command: &mut Command) -> io::Result<bool> {
        let command = command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.build);
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
    }
}

/// A line that stands for a bug and its check as they are.
fn mark(bug: &Bug, check: &str) -> String {
    format!("{:?}", (&bug.name, &bug.file, &bug.find, &bug.replace, check))
}

/// Brings the copy up to date: files that are the same keep their time, so that they are not built again.
fn copy(root: &Path, tree: &Path) -> io::Result<()> {
    let files = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    let names = String::from_utf8_lossy(&files.stdout).into_owned();
    let built = ["python/smrlab/_core.abi3.so", "python/smrlab/libsmrlab_nbdkit.so"];
    for name in names.split('\0').filter(|n| !n.is_empty()).chain(built) {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(text) = fs::read(&from) else { continue };
        if fs::read(&to).ok().as_deref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap_or(tree))?;
            fs::write(&to, text)?;
        }
    }
    Ok(())
}
