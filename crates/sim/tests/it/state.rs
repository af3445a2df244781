//! A run in two parts, with the drive's state carried over in a file, is the run in one.

use serde_json::Value;
use smrlab_array::ArrayState;
use smrlab_sim::{Control, RunError, Spec, run};
use std::path::PathBuf;

const DRIVE: &str = "drive = 'modern-7200,capacity=100GB'\narrivals = 'closed'\nlimit = LIMIT\n";
const LAYERS: &[&str] = &[
    "cmr",
    "rmw",
    "static-1234",
    "disk-cache,cache=2%",
    "disk-cache,cache=2%,journal=on",
    "s-block,sblock_blocks=256",
];

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("smrlab-state-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Requests `from..to` of one random sequence, as a trace file.
fn part(folder: &Folder, from: u64, to: u64) -> String {
    let path = folder.file(&format!("{from}-{to}.csv"));
    let mut lines = String::new();
    for i in from..to {
        let x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 17);
        let (lba, op) = ((x >> 20) % 400_000, if x % 3 == 0 { 'R' } else { 'W' });
        lines += &format!("{i},{op},{lba},{}\n", 512 * (1 + (x >> 8) % 16));
    }
    std::fs::write(&path, lines).unwrap();
    format!("{path}:csv,columns=time:ms;op;lba;size")
}

fn done(trace: &str, layer: &str, more: &str) -> Result<Value, RunError> {
    let base = DRIVE.replace("LIMIT", "1000000");
    let text = format!("{base}trace = '{trace}'\nlayer = '{layer}'\n{more}");
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).map(|r| r.json)
}

fn number(v: &Value, path: &str) -> u64 {
    v.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

#[test]
fn two_parts_with_the_state_between_them_are_the_whole() {
    let folder = Folder::new("parts");
    let (first, second, whole) = (part(&folder, 0, 3000), part(&folder, 3000, 5000), part(&folder, 0, 5000));
    for layer in LAYERS {
        let file = folder.file("s");
        let one = done(&whole, layer, "").unwrap();
        let a = done(&first, layer, &format!("save_state = '{file}'")).unwrap();
        let b = done(&second, layer, &format!("from_state = '{file}'")).unwrap();
        for path in [
            "/media/reads",
            "/media/writes",
            "/media/blocks_read",
            "/media/blocks_written",
            "/movement/track_distance",
            "/movement/track_switches",
            "/host/updates",
        ] {
            assert_eq!(number(&a, path) + number(&b, path), number(&one, path), "{layer}: {path}");
        }
        // It would be false without the state: what was written before makes updates.
        let fresh = done(&second, layer, "").unwrap();
        assert!(number(&fresh, "/host/updates") < number(&b, "/host/updates"), "{layer}");
    }
}

fn of_array(trace: &str, array: &str, layer: &str, more: &str) -> Result<Value, RunError> {
    let text = format!(
        "drive = 'modern-7200,capacity=20GB'\narrivals = 'closed'\narray = '{array}'\nlayer = '{layer}'\ntrace = '{trace}'\n{more}"
    );
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).map(|r| r.json)
}

#[test]
fn two_parts_of_an_array_are_the_whole_and_each_of_its_drives_goes_on() {
    let folder = Folder::new("array-parts");
    let (first, second, whole) = (part(&folder, 0, 1500), part(&folder, 1500, 2500), part(&folder, 0, 2500));
    let file = folder.file("s");
    let (save, from) = (format!("save_state = '{file}'"), format!("from_state = '{file}'"));
    for (array, layer) in [
        ("spanning,disks=2", "disk-cache,cache=2%"),
        ("striped,disks=3", "rmw"),
        ("raid5,disks=4", "s-block,sblock_blocks=256"),
        ("raid5,disks=4,intent=on", "disk-cache,cache=2%"),
        ("raid5,disks=3 / mirror,disks=2", "s-block,sblock_blocks=256"),
    ] {
        let one = of_array(&whole, array, layer, "").unwrap();
        let a = of_array(&first, array, layer, &save).unwrap();
        let b = of_array(&second, array, layer, &from).unwrap();
        for path in ["/media/reads", "/media/blocks_written", "/movement/track_distance", "/host/updates"] {
            assert_eq!(number(&a, path) + number(&b, path), number(&one, path), "{array} {layer}: {path}");
        }
        for i in 0..2 {
            let path = format!("/members/{i}/host/updates");
            assert_eq!(number(&a, &path) + number(&b, &path), number(&one, &path), "{array} {layer}: {path}");
        }
        let fresh = of_array(&second, array, layer, "").unwrap();
        assert!(number(&fresh, "/host/updates") < number(&b, "/host/updates"), "{array} {layer}");
    }
}

/// Data that only an SSD holds, and groups of a log-structured array, are there again.
#[test]
fn arrays_with_maps_of_their_own_go_on_where_they_were() {
    let folder = Folder::new("array-maps");
    let (first, second) = (part(&folder, 0, 1500), part(&folder, 1500, 2500));
    let file = folder.file("s");
    let (save, from) = (format!("save_state = '{file}'"), format!("from_state = '{file}'"));
    for array in ["dvs,disks=4", "raid5,disks=4,ssd_write=64MiB", "mirror / spanning,disks=1,ssd_write=64MiB"]
    {
        of_array(&first, array, "cmr", &save).unwrap();
        let b = of_array(&second, array, "cmr", &from).unwrap();
        let fresh = of_array(&second, array, "cmr", "").unwrap();
        assert!(number(&fresh, "/host/updates") < number(&b, "/host/updates"), "{array}");
        assert_ne!(b["array"], fresh["array"], "{array}: what it has counted says how full it is");
    }
}

/// What befalls drives is no part of the state: an array is aged once, and then loses a disk.
#[test]
fn an_aged_array_can_lose_a_disk_and_another_array_is_refused() {
    let folder = Folder::new("array-fails");
    let (first, second, file) = (part(&folder, 0, 500), part(&folder, 500, 900), folder.file("s"));
    of_array(&first, "raid5,disks=4", "cmr", &format!("save_state = '{file}'")).unwrap();
    let from = format!("from_state = '{file}'");
    let r = of_array(&second, "raid5,disks=4,fail=1@1s,replace=1s", "cmr", &from).unwrap();
    assert_eq!((number(&r, "/array/deaths"), number(&r, "/array/refused")), (1, 0));
    assert!(number(&r, "/array/rebuilt_blocks") > 0);
    let says = |array: &str, layer: &str| of_array(&second, array, layer, &from).unwrap_err().to_string();
    let e = says("raid5,disks=5", "cmr");
    assert!(e.contains("here disks=5: give disks=4"), "{e}");
    assert!(says("single", "cmr").contains("here array=single"), "{}", says("single", "cmr"));
    assert!(says("raid5,disks=4", "rmw").contains("give layer=cmr"), "{}", says("raid5,disks=4", "rmw"));
    // One whose third disk is another's.
    let mut mixed = ArrayState::decode(&std::fs::read(&file).unwrap()).unwrap();
    mixed.members[2].layer = "rmw".to_owned();
    std::fs::write(&file, mixed.encode().unwrap()).unwrap();
    assert!(says("raid5,disks=4", "cmr").contains("give layer=rmw"), "{}", says("raid5,disks=4", "cmr"));
}

/// Layers that append go on at time 0 exactly where they ended.
#[test]
fn a_run_from_a_state_takes_no_longer_than_the_one_before() {
    let folder = Folder::new("times");
    for layer in ["cmr", "log", "s-block", "disk-cache"] {
        let file = folder.file("s");
        let go = |more: String| done("synth:uniform,requests=500,write=100%,span=1GB", layer, &more).unwrap();
        let mean = |v: &Value| v.pointer("/response_ms/mean").and_then(Value::as_f64).unwrap();
        let before = mean(&go(format!("save_state = '{file}'")));
        let after = mean(&go(format!("from_state = '{file}'")));
        assert!((before - after).abs() < 2.0, "{layer}: {before} ms, then {after} ms");
    }
}

#[test]
fn a_state_of_something_else_is_refused_with_what_to_write() {
    let folder = Folder::new("refused");
    let (trace, file) = (part(&folder, 0, 10), folder.file("s"));
    done(&trace, "s-block,sblock_blocks=256", &format!("save_state = '{file}'")).unwrap();
    let says = |layer: &str, more: &str| done(&trace, layer, more).unwrap_err().to_string();
    let from = format!("from_state = '{file}'");
    let e = says("rmw", &from);
    assert!(e.starts_with("from_state: ") && e.contains("give layer=s-block,"), "{e}");
    let e = says("s-block,sblock_blocks=256", &format!("{from}\nverify_media = true"));
    assert!(e.starts_with("verify_media: "), "{e}");
    assert!(says("rmw", "from_state = '/nowhere/s'").contains("no such file"));
    assert!(says("rmw", "from_state = '.'").ends_with(".: is a folder: name a file in it"));
    for other in ["/dev/zero", "/dev/null"] {
        assert!(
            says("rmw", &format!("from_state = '{other}'")).contains("no state that --save-state"),
            "{other}"
        );
    }
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(says("s-block,sblock_blocks=256", &from).contains("damaged"));
    std::fs::write(&file, "smrlab state 1\nnonsense").unwrap();
    assert!(says("s-block,sblock_blocks=256", &from).contains("damaged"));
}

/// A state takes the place of a state, and of nothing else: not of the trace that is run, of a folder or a device.
#[test]
fn a_state_is_written_over_no_other_file() {
    let folder = Folder::new("over");
    let (trace, file, mine) = (part(&folder, 0, 10), folder.file("s"), folder.file("s.partial"));
    std::fs::write(&mine, "mine").unwrap();
    for _ in 0..2 {
        done(&trace, "cmr", &format!("save_state = '{file}'")).unwrap();
    }
    for other in [&mine, &folder.file("0-10.csv"), &folder.file("."), &"/dev/null".to_owned()] {
        let e = done(&trace, "cmr", &format!("save_state = '{other}'")).unwrap_err().to_string();
        assert!(e.starts_with("save_state: ") && e.contains("is no state"), "{other}: {e}");
    }
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
}

/// That a folder takes no state is said before the run, which would be lost: before a trace that cannot be read.
#[test]
fn a_folder_that_takes_no_state_is_told_before_the_run() {
    let folder = Folder::new("nowhere");
    let trace = folder.file("bad.csv");
    std::fs::write(&trace, "no trace").unwrap();
    let text = |file: &str| done(&trace, "cmr", &format!("save_state = '{file}'")).unwrap_err().to_string();
    let nowhere = folder.file("none/s");
    let e = text(&nowhere);
    assert!(e.starts_with(&format!("save_state: {nowhere}: cannot be written: ")), "{e}");
    assert!(e.ends_with("; choose another place"), "{e}");
    let file = folder.file("s");
    assert!(!text(&file).contains("save_state"), "the trace is what is wrong");
    assert!(!std::path::Path::new(&file).exists(), "nothing is left");
}

/// A share of the caches, on layers of which one has none: that one begins as it is, and its result says so.
#[test]
fn a_comparison_fills_the_caches_that_there_are() {
    let text = "trace = 'synth:uniform,requests=10'\ndrive = 'tiny'\nprefill = '50%,of=cache'";
    let base = Spec::from_toml(text).unwrap();
    let layers = ["cmr".to_owned(), "disk-cache".to_owned()];
    let specs = smrlab_sim::compared::compared(&base, &layers, &|_, s| smrlab_sim::resolve(s)).unwrap();
    let given = |i: usize| specs[i].prefill.as_deref();
    assert_eq!((given(0), given(1)), (Some("0%,of=cache"), Some("50%,of=cache")));
    let json = run(&specs[0], &Control::new(), None).unwrap().json;
    assert_eq!(json["spec"]["prefill"], "0%,of=cache,order=sequential");
    let alone = Spec { layer: "cmr".into(), ..base };
    let e = run(&alone, &Control::new(), None).unwrap_err().to_string();
    assert!(e.contains("cmr has no cache; with of=space"), "{e}");
}
