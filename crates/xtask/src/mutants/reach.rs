//! The tests of a check that pass through a bug's function, which are all that can catch it. Every test of the check runs once
//! alone with no bug on and notes the switches it comes to; a bug then meets only those that come to its own.

use super::copied::{Copied, work_of_children};
use super::switch::{REACHED, SWITCH};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A test, by the binary it is in; and what one run of it showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// The folder it runs in.
    folder: PathBuf,
    binary: PathBuf,
    /// `--ignored` and the like, without which the binary would leave it out.
    options: Vec<String>,
    name: String,
    work: Duration,
    time: Duration,
    /// The bugs whose functions it comes to.
    reached: BTreeSet<String>,
}

/// What is known of a check that passes with no bug on.
#[derive(Clone)]
pub(super) struct Sound {
    /// Seconds of processor time that it may take with a bug on.
    pub within: u64,
    /// Its tests, by the work they take, the least first, if it is one of cargo's.
    pub tests: Option<Vec<Test>>,
}

/// Cargo runs this with each binary of tests and its arguments: the folder, the binary, and the arguments are said, and
/// nothing runs.
const SAY: [&str; 4] = ["sh", "-c", r#"printf 'BINARY\t%s' "$PWD"; printf '\t%s' "$@"; echo"#, "sh"];

/// Runs a command and prints last what the kernel knows of the shell: the work of its children is in it.
const COUNT: [&str; 4] =
    ["sh", "-c", r#""$@"; failed=$?; read -r stat </proc/$$/stat; echo; echo "$stat"; exit $failed"#, "sh"];

/// Whether tests of a check can run one by one.
pub(super) fn has_tests(check: &str) -> bool {
    check.starts_with("cargo test ")
}

/// Runs every test of a check alone with no bug on; nothing if one fails, or if there is none. Those in `known` ran before.
pub(super) fn tests(copied: &Copied, check: &str, known: &[Test]) -> io::Result<Option<Vec<Test>>> {
    let mut all = Vec::new();
    for binary in binaries(copied, check)? {
        all.extend(binary.listed(copied)?);
    }
    each(copied, &all, known)
}

/// Runs each of `all` alone with no bug on.
fn each(copied: &Copied, all: &[Test], known: &[Test]) -> io::Result<Option<Vec<Test>>> {
    if all.is_empty() {
        return Ok(None);
    }
    let next = AtomicUsize::new(0);
    let run = |n: usize| -> io::Result<Option<Vec<Test>>> {
        let mut ran = Vec::new();
        while let Some(test) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let before = known.iter().find(|k| (&k.binary, &k.name) == (&test.binary, &test.name)).cloned();
            let Some(now) = before.map_or_else(|| test.with_reach(copied, n), |test| Ok(Some(test)))? else {
                return Ok(None);
            };
            ran.push(now);
        }
        Ok(Some(ran))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ran: Option<Vec<Vec<Test>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|n| scope.spawn(move || run(n))).collect();
        let failed = |_| Err(io::ErrorKind::Other.into());
        workers.into_iter().map(|w| w.join().unwrap_or_else(failed)).collect::<io::Result<_>>()
    })?;
    Ok(ran.map(|ran| {
        let mut tests = ran.concat();
        tests.sort_by(|a, b| (a.work, &a.name).cmp(&(b.work, &b.name)));
        tests
    }))
}

/// Whether one of the tests that come to a bug fails with it; the first that does ends it.
pub(super) fn caught(copied: &Copied, tests: &[Test], bug: &str) -> io::Result<bool> {
    for test in tests.iter().filter(|t| t.reached.contains(bug)) {
        // A bug that hangs is a bug that is seen: by its work, or by waiting without any.
        let (within, wait) = (20 + 4 * test.work.as_secs(), 600 + 10 * test.time.as_secs());
        if test.run(copied, (within, wait), (SWITCH, bug))?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The processor time that the tests take together.
pub(super) fn work(tests: &[Test]) -> u64 {
    tests.iter().map(|t| t.work).sum::<Duration>().as_secs()
}

/// The binaries that a check runs, each as a test with no name and the check's own options and filters.
fn binaries(copied: &Copied, check: &str) -> io::Result<Vec<Test>> {
    let mut command = Command::new("cargo");
    command.arg("--config").arg(format!("target.\"cfg(all())\".runner = {SAY:?}"));
    let done = copied.done(command.args(check.split_whitespace().skip(1)))?;
    Ok(String::from_utf8_lossy(&done.stdout).lines().filter_map(said).collect())
}

/// A binary and its arguments, of a line that the runner said.
fn said(line: &str) -> Option<Test> {
    let mut parts = line.strip_prefix("BINARY\t")?.split('\t');
    let (folder, binary) = (parts.next()?.into(), parts.next()?.into());
    let options = parts.filter(|o| *o != "--quiet").map(str::to_owned).collect();
    let (work, time) = Default::default();
    Some(Test { folder, binary, options, name: String::new(), work, time, reached: BTreeSet::new() })
}

impl Test {
    /// The tests of this binary that its filters let through.
    fn listed(&self, copied: &Copied) -> io::Result<Vec<Self>> {
        let mut command = self.command(copied, &[]);
        let done = command.args(&self.options).args(["--list", "--format", "terse"]).output()?;
        let kept = self.options.iter().filter(|o| o.ends_with("ignored")).cloned().collect::<Vec<_>>();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let names = text.lines().filter_map(|l| l.strip_suffix(": test"));
        Ok(names.map(|name| Self { name: name.to_owned(), options: kept.clone(), ..self.clone() }).collect())
    }

    /// The test and what it comes to with no bug on, if it passes; `n` is a number that no other has meanwhile.
    fn with_reach(&self, copied: &Copied, n: usize) -> io::Result<Option<Self>> {
        let notes = copied.build.join(format!("reached-{n}"));
        fs::write(&notes, "")?;
        let begun = Instant::now();
        let work = self.run(copied, (3600, 3600), (REACHED, &notes.to_string_lossy()))?;
        let reached = fs::read_to_string(&notes)?.lines().map(str::to_owned).collect();
        let time = begun.elapsed();
        Ok(work.map(|work| Self { work, time, reached, ..self.clone() }))
    }

    /// Runs it alone, with limits of processor time and of time in seconds; answers with the work it took, if it passes.
    fn run(&self, copied: &Copied, limits: (u64, u64), set: (&str, &str)) -> io::Result<Option<Duration>> {
        let (cpu, wait) = (format!("--cpu={}", limits.0), limits.1.to_string());
        // In the foreground it ends the test itself, and leaves Ctrl-C to all.
        let limits = ["timeout", "--foreground", &wait, "prlimit", &cpu, "--"];
        let mut command = self.command(copied, &[&COUNT[..], &limits].concat());
        command.args(&self.options).args(["--exact", &self.name, "--test-threads=1"]);
        let done = command.env_remove(SWITCH).env_remove(REACHED).env(set.0, set.1).output()?;
        Ok(done.status.success().then(|| work_said(&String::from_utf8_lossy(&done.stdout))))
    }

    /// Its binary, run by `wrapped`, where and as cargo would.
    fn command(&self, copied: &Copied, wrapped: &[&str]) -> Command {
        let binary = self.binary.as_os_str();
        let words: Vec<_> = wrapped.iter().map(|w| w.as_ref()).chain([binary]).collect();
        let mut command = Command::new(words[0]);
        copied
            .set(command.args(&words[1..]))
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// What the last line of [`COUNT`] says of the work of the children, which the kernel counts in hundredths of a second.
fn work_said(text: &str) -> Duration {
    Duration::from_millis(10 * work_of_children(text.lines().last().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder may have a space, and cargo's own option is not the test's.
    #[test]
    fn a_binary_is_said_with_its_filters() {
        let test = said("BINARY\t/a b/crates/x\t/t/it-1\tgolden::\t--quiet\t--include-ignored").unwrap();
        assert_eq!((test.folder, test.binary), ("/a b/crates/x".into(), "/t/it-1".into()));
        assert_eq!(test.options, ["golden::", "--include-ignored"]);
        assert_eq!(said("running 0 tests"), None);
    }

    /// A bug meets only the tests that come to it, and what fails without a bug is no check of any.
    #[test]
    fn a_bug_meets_the_tests_that_come_to_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("smrlab-reach-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let binary = folder.join("it");
        // `near` comes to both bugs and fails with one, `far` comes to none and would fail with any.
        let script = "#!/bin/sh\n[ \"$2\" = --list ] && echo 'near: test\nfar: test' && exit\n\
                      [ $2 = near ] && [ -n \"$SMRLAB_REACHED\" ] && printf 'a\\nb\\n' >>$SMRLAB_REACHED\n\
                      case $2-$SMRLAB_PLANTED in near-a|far-?) exit 1; esac\n";
        fs::write(&binary, script).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let copied = Copied { tree: folder.clone(), build: folder.clone() };
        let all = said(&format!("BINARY\t{0}\t{0}/it\tfilter", folder.display())).unwrap();
        let all = all.listed(&copied).unwrap();
        assert_eq!(all.iter().map(|t| &t.name[..]).collect::<Vec<_>>(), ["near", "far"]);
        let tests = each(&copied, &all, &[]).unwrap().unwrap();
        let near = tests.iter().find(|t| t.name == "near").unwrap();
        assert_eq!(near.reached.iter().collect::<Vec<_>>(), ["a", "b"]);
        let caught = |bug| super::caught(&copied, &tests, bug).unwrap();
        assert_eq!(["a", "b", "c"].map(caught), [true, false, false]);
        fs::write(&binary, "#!/bin/sh\nexit 1\n").unwrap();
        assert_eq!(each(&copied, &all, &[]).unwrap(), None, "it fails without a bug");
        assert_eq!(each(&copied, &all, &tests).unwrap().map(|t| t.len()), Some(2), "they ran before");
        assert_eq!(each(&copied, &[], &[]).unwrap(), None, "there is no test");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A command's end and its work are told, whatever it prints.
    #[test]
    fn work_of_a_command_is_counted() {
        let busy = "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; printf 'a ) b'; exit 7";
        let done = Command::new(COUNT[0]).args(&COUNT[1..]).args(["sh", "-c", busy]).output().unwrap();
        assert_eq!(done.status.code(), Some(7));
        assert!(work_said(&String::from_utf8_lossy(&done.stdout)) > Duration::ZERO);
    }
}
