//! Prefills that are kept in files: the run that takes one is the run that wrote it and the run without a cache, and the folder stays
//! within its bound.

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

/// The specification of a run on a drive of 60 GB after a prefill.
fn spec(layer: &str, prefill: &str) -> Spec {
    let text = format!(
        "drive = 'modern-7200,capacity=60GB'\nlayer = '{layer}'\nprefill = '{prefill}'\narrivals = 'closed'\n\
         trace = 'synth:uniform,requests=3000,write=70%,size=16KiB'"
    );
    Spec::from_toml(&text).unwrap()
}

/// The document of a run with prefills kept in `folder`.
fn kept(spec: &Spec, folder: &Path, bytes: u64, program: &str) -> Value {
    let keep = Keep { folder: folder.to_owned(), bytes, program: program.into() };
    run(spec, &Control::keeping(Some(keep)), None).unwrap().json
}

/// A layer whose state is larger than what it takes to get there is not kept.
#[test]
fn a_run_from_a_kept_prefill_is_the_run_that_wrote_it() {
    let layers = smrlab_stl::LAYERS.iter().map(|l| l.name).filter(|&l| l != "raw");
    let mut found = Vec::new();
    for layer in layers {
        let folder = folder(&layer.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let spec = spec(layer, "30%");
        let first = kept(&spec, &folder.0, 1 << 30, "test");
        let files = || files(&folder.0);
        let written = files();
        if written.len() == 1 {
            found.push(layer);
        }
        assert_eq!(first, kept(&spec, &folder.0, 1 << 30, "test"), "{layer}");
        assert_eq!(written, files(), "{layer}: the second run writes nothing");
        let none = run(&spec, &Control::new(), None).unwrap().json;
        assert_eq!(first, none, "{layer}: without a cache");
    }
    assert!(found.len() >= 8, "only {found:?} were kept");
}

/// What is written before the run onto a drive that has a state depends on that state: it is written anew, whatever is in the cache.
#[test]
fn a_prefill_onto_a_state_is_not_the_one_onto_an_empty_drive() {
    let folder = folder("state");
    std::fs::create_dir_all(&folder.0).unwrap();
    let state = folder.0.join("half.state").to_str().unwrap().to_owned();
    let done = |spec: &Spec| kept(spec, &folder.0, 1 << 30, "test");
    done(&Spec { save_state: Some(state.clone()), ..spec("log", "50%") });
    let onto = Spec { from_state: Some(state), ..spec("log", "30%") };
    let (first, files_then) = (run(&onto, &Control::new(), None).unwrap().json, files(&folder.0));
    assert_ne!(first, done(&spec("log", "30%")), "that one is in the cache now");
    assert_eq!(files(&folder.0).len(), files_then.len() + 1);
    assert_eq!(first, done(&onto));
    assert_eq!(files(&folder.0).len(), files_then.len() + 1, "the one onto the state is not kept");
}

#[test]
fn another_prefill_drive_or_program_has_its_own_file_and_the_longest_unused_goes() {
    let folder = folder("own");
    let one = |prefill: &str, program: &str, bytes: u64| {
        kept(&spec("rmw", prefill), &folder.0, bytes, program);
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

/// A run on a drive of 6 GB, of which 30 % are written before: as little as is kept.
fn small(more: &str) -> Spec {
    let base = [
        ("drive", "modern-7200,capacity=6GB"),
        ("layer", "rmw"),
        ("prefill", "30%"),
        ("metadata", "nv"),
        ("array", "single"),
    ];
    let given = |name: &str| more.lines().any(|line| line.starts_with(&format!("{name} = ")));
    let rest =
        base.iter().filter(|(name, _)| !given(name)).map(|(name, text)| format!("{name} = '{text}'\n"));
    let text = format!("trace = 'synth:uniform,requests=9,span=1GB'\n{}{more}\n", rest.collect::<String>());
    Spec::from_toml(&text).unwrap()
}

/// Each thing that the state depends on makes another file, and what does not depend on it none.
#[test]
fn what_a_prefill_depends_on_tells_its_file() {
    let folder = folder("depends");
    let run = |more: &str| {
        kept(&small(more), &folder.0, 1 << 30, "test");
        files(&folder.0).len()
    };
    assert_eq!(run(""), 1);
    let others = [
        "seed = 2",
        "layer = 'rmw,band=64tracks'",
        "metadata = 'media'",
        "drive = 'modern-7200,capacity=6GB,rpm=5400'",
        "prefill = '31%'",
        "prefill = '30%,order=random'",
        "host_blocks = 7500000",
        "array = 'spanning,disks=1'",
        "array = 'spanning,disks=2'",
    ];
    for (n, other) in (2..).zip(others) {
        assert_eq!(run(other), n, "{other}");
    }
    for same in
        ["", "limit = 3", "window = '1s'", "scheduler = 'sptf'", "arrivals = 'closed'", "requests = false"]
    {
        assert_eq!(run(same), 1 + others.len(), "{same}");
    }
    // Less than is worth it, and what is followed block by block, is written anew.
    for none in ["prefill = '10%'", "verify_media = true"] {
        assert_eq!(run(none), 1 + others.len(), "{none}");
    }
}

/// The file that was used last stays, what fills the bound to the byte too; files of others are nobody's business, and one that is larger than
/// the bound is not written.
#[test]
fn what_was_not_used_for_the_longest_time_goes() {
    let folder = folder("longest");
    let run = |more: &str, bytes: u64| {
        // Later than what was written or read before, for any clock of a file system.
        std::thread::sleep(std::time::Duration::from_millis(20));
        kept(&small(more), &folder.0, bytes, "test");
        files(&folder.0)
    };
    let first = run("", 1 << 30)[0].clone();
    let note = folder.0.join("notes.txt");
    std::fs::write(&note, "x".repeat(100_000)).unwrap();
    let second = run("seed = 2", 1 << 30).into_iter().find(|f| *f != first && *f != note).unwrap();
    let each = std::fs::metadata(&first).unwrap().len();
    assert_eq!(std::fs::metadata(&second).unwrap().len(), each);
    assert_eq!(run("seed = 3", each - 1).len(), 3, "larger than the bound");
    run("", 1 << 30);
    let left = run("seed = 4", 2 * each);
    assert!(left.contains(&first) && left.contains(&note) && !left.contains(&second), "{left:?}");
    assert_eq!(left.len(), 3);
}

/// So it is with arrays, but for those whose SSD knows what was used when.
#[test]
fn a_run_of_an_array_from_a_kept_prefill_is_the_run_that_wrote_it() {
    let cases =
        [("striped,disks=2", 1), ("raid5,disks=4,intent=on", 1), ("raid5,disks=4,ssd_write=64MiB", 0)];
    for (array, files_then) in cases {
        let folder = folder(&array.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let text = format!(
            "drive = 'modern-7200,capacity=20GB'\nlayer = 'rmw'\narray = '{array}'\nprefill = '20%'\n\
             arrivals = 'closed'\ntrace = 'synth:uniform,requests=1000,write=70%,size=16KiB'"
        );
        let spec = Spec::from_toml(&text).unwrap();
        let first = kept(&spec, &folder.0, 1 << 30, "test");
        assert_eq!(files(&folder.0).len(), files_then, "{array}");
        assert_eq!(first, kept(&spec, &folder.0, 1 << 30, "test"), "{array}");
        assert_eq!(first, run(&spec, &Control::new(), None).unwrap().json, "{array}: without a cache");
    }
}
