//! The seven measured drives of the DiskSim distribution: imported, replayed, and held against what the real drives took.
//! As they are imported nothing is fitted to a drive; fitted to the first half of a trace they are judged on the second.

use crate::support::shared::shared;
use smrlab_disk::model::ControllerSpec;
use smrlab_disk::{DriveModel, DriveSpec};
use smrlab_sim::validate::{Compared, Measured, Reference, demerit, fit, read_measured, replay, validate};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// Drive, its name on the page, and the demerit of DiskSim 4.0 in microseconds.
const DRIVES: [(&str, &str, u32); 7] = [
    ("hp_c2247a", "HP C2247A", 90),
    ("hp_c2490a", "HP C2490A", 254),
    ("dec_rz26", "DEC RZ26", 340),
    ("atlas10k", "Quantum Atlas 10K", 268),
    ("atlas_III", "Quantum Atlas III", 378),
    ("cheetah4LP", "Seagate Cheetah 4LP", 318),
    ("ibm18es", "IBM DNES-309170W", 135),
];

/// The page that has the figures.
const PAGE: &str = include_str!("../../../../docs/validation.md");

/// An imported drive, what the real one took, and a folder of its own.
struct Case {
    spec: DriveSpec,
    toml: String,
    measured: Vec<Measured>,
    folder: std::path::PathBuf,
}

impl Case {
    fn new(name: &str, what: &str, shared: &std::path::Path) -> Self {
        let folder = std::env::temp_dir().join(format!("smrlab-{what}-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let parv = shared.join(format!("models/{name}.parv"));
        let toml = smrlab_sim::import::disksim(&parv.to_string_lossy()).unwrap().toml;
        let trace = shared.join(format!("traces/{name}.trace.zst"));
        let measured = read_measured(&trace.to_string_lossy(), Reference::Repaired).unwrap();
        Self { spec: DriveModel::from_toml(&toml).unwrap().spec().clone(), toml, measured, folder }
    }

    /// A drive file of this text.
    fn file(&self, toml: &str) -> String {
        let path = self.folder.join("drive.toml");
        std::fs::write(&path, toml).unwrap();
        path.to_string_lossy().into_owned()
    }

    /// The demerit of the drive with a change.
    fn demerit(&self, change: impl Fn(&mut ControllerSpec)) -> f64 {
        let mut spec = self.spec.clone();
        change(spec.controller.as_mut().unwrap());
        let file = self.file(&smrlab_disk::model::write(&spec, &|_| ("assumed", "a test".to_owned())));
        let rows = replay(&file, "cmr", &self.measured).unwrap();
        let ms = |t: fn(&Compared) -> SimTime| rows.iter().map(|r| t(r).as_ms_f64()).collect::<Vec<_>>();
        demerit(&ms(|r| r.measured), &ms(|r| r.simulated))
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the import has beyond what DiskSim does with the same file: one rule of our own, and two parameters that DiskSim reads and that
/// change nothing there.
fn settle(c: &mut ControllerSpec) {
    c.read_settle[1] = SimTime::ZERO;
}

fn free_blocks(c: &mut ControllerSpec) {
    c.buffer.passing = false;
}

fn over_requested(c: &mut ControllerSpec) {
    c.buffer.keeps_requested = false;
}

/// The page's table of the drives says what comes out, to a microsecond of the demerit: as DiskSim, imported, and fitted to the first half
/// of a trace.
#[test]
fn the_pages_table_of_the_seven_drives() {
    let Some(shared) = shared("validation/disksim") else { return };
    let mut wrong = Vec::new();
    for (name, on_page, bound_us) in DRIVES {
        let case = Case::new(name, "table", &shared);
        let bound = f64::from(bound_us) / 1e3;
        let share = |demerit: f64| format!("{demerit:.3} ({:.0} %)", 100.0 * demerit / bound);
        let plain =
            case.demerit(|c| [settle, free_blocks, over_requested].into_iter().for_each(|off| off(c)));
        let imported = case.demerit(|_| ());
        let file = case.file(&case.toml);
        let fitted = fit(&file, name, &case.measured).unwrap();
        let halves = |of: &str| {
            let half = |i: usize| fitted.doc["halves"][i][of].as_f64().unwrap();
            format!("{:.3}, {:.3}", half(0), half(1))
        };
        let found = match fitted.doc["fitted"].as_u64().unwrap() {
            0 => "nothing found | |".to_owned(),
            n => {
                let rows = replay(&case.file(&fitted.toml), "cmr", &case.measured).unwrap();
                let ms =
                    |t: fn(&Compared) -> SimTime| rows.iter().map(|r| t(r).as_ms_f64()).collect::<Vec<_>>();
                let whole = demerit(&ms(|r| r.measured), &ms(|r| r.simulated));
                let figures = if n == 1 { "figure" } else { "figures" };
                format!("{}, {n} {figures} | {} |", share(whole), halves("after_ms"))
            }
        };
        let (imported, before) = (share(imported), halves("before_ms"));
        let row = format!("| {on_page} | {bound:.3} | {plain:.3} | {imported} | {before} | {found}");
        println!("{row}");
        if !PAGE.contains(&row) {
            println!("{}", fitted.doc["changes"]);
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "docs/validation.md has other rows than these:\n{}", wrong.join("\n"));
}

/// A rule stays only where drives that it was not chosen on are better with it: of six drives the mean of the demerits, as shares of
/// DiskSim's, says whether it is taken, and the seventh is judged; and so for each of the seven.
#[test]
fn the_rule_of_the_import_holds_on_drives_that_were_left_out() {
    let Some(shared) = shared("validation/disksim") else { return };
    let cases: Vec<_> =
        DRIVES.map(|(name, _, us)| (Case::new(name, "rules", &shared), f64::from(us) / 1e3)).into();
    // Whatever is fitted in an imported file is judged here.
    for (case, _) in &cases {
        let drive = DriveModel::from_toml(&case.toml).unwrap();
        let fitted: Vec<_> =
            drive.provenance().iter().filter(|p| p.kind == "fitted").map(|p| &*p.field).collect();
        assert_eq!(fitted, ["controller.read_settle_after_write"]);
    }
    let with: Vec<f64> = cases.iter().map(|(case, bound)| case.demerit(|_| ()) / bound).collect();
    let mut kept = Vec::new();
    for (rule, off) in
        [("settle", settle as fn(&mut _)), ("free blocks", free_blocks), ("over requested", over_requested)]
    {
        let without: Vec<f64> = cases.iter().map(|(case, bound)| case.demerit(off) / bound).collect();
        let gain: Vec<f64> = with.iter().zip(&without).map(|(w, o)| o - w).collect();
        let left_out = |i: usize| gain.iter().sum::<f64>() - gain[i] > 1e-3;
        let judged: f64 = (0..gain.len()).filter(|&i| left_out(i)).map(|i| gain[i]).sum();
        println!("{rule}: {gain:.3?}, left out {judged:.3}");
        if judged > 0.0 && (0..gain.len()).all(left_out) {
            kept.push(rule);
        }
    }
    // The two parameters are not rules: a file's word counts, and of one drive each nothing can be said of others.
    assert_eq!(kept, ["settle"]);
}

/// 400 cylinders at 6000 rpm with a controller; `SEEKS` and `SETTLE` are filled in.
const KNOWN: &str = r#"
schema = 1
name = "known"
summary = "a drive whose seeks are known"
reference = "made for this test"
[geometry]
surfaces = 1
layout = "cylinder"
track_skew = 0
cylinder_skew = 0.25
[geometry.zones]
list = [[400, 100]]
[interference]
s_id = 1
s_od = 1
[mechanics]
model = "full"
rpm = 6000
seek_over = "cylinders"
head_switch = 0
write_settle = 0
read_overhead = 0
write_overhead = 0
[mechanics.read_seek]
curve = "table"
list = SEEKS
[controller]
read_settle_after_write = { value = SETTLE, unit = "ms" }
"#;

/// A trace of a drive whose seeks over 121 to 180 cylinders take 3 ms longer than its file says, and that settles for 1.1 ms after
/// writes, is fitted by that, and by nothing else; and so is one the other way round, whose seeks are shorter.
#[test]
fn a_fit_finds_what_differs() {
    let folder = std::env::temp_dir().join(format!("smrlab-known-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, seeks: &str, settle: &str| {
        let path = folder.join(name);
        std::fs::write(&path, KNOWN.replace("SEEKS", seeks).replace("SETTLE", settle)).unwrap();
        path.to_string_lossy().into_owned()
    };
    let plain = "[[1, 1000000], [401, 9000000]]";
    let odd =
        "[[1, 1000000], [120, 3380000], [121, 6400000], [180, 7580000], [181, 4600000], [401, 9000000]]";
    let (said, real) = (file("said.toml", plain, "0"), file("real.toml", odd, "1.1"));
    let mut rng = smrlab_units::rng::Rng::new(1);
    let mut below = |n: u64| rng.below(n);
    // Every third read stays on the cylinder of the write before it.
    let mut at = 0;
    let mut asked = Vec::new();
    for i in 0..6000u64 {
        at = if i % 3 == 2 { at / 100 * 100 + below(99) } else { below(39_999) };
        let op = if i % 3 == 1 { HostOp::Write } else { HostOp::Read };
        let gap = SimTime::from_us(20_000 + below(10_000));
        asked.push(Measured { op, lba: Lba(at), blocks: Blocks(1), service: SimTime::ZERO, gap });
    }
    for (said, real, settles, longer) in [(&said, &real, 1.1, 3.0), (&real, &said, 0.0, -3.0)] {
        let mut asked = asked.clone();
        let answers = replay(real, "cmr", &asked).unwrap();
        asked.iter_mut().zip(answers).for_each(|(m, a)| m.service = a.simulated);
        // The phases of the real drive are not known.
        asked.iter_mut().for_each(|m| m.gap = SimTime::from_us(20_000 + below(10_000)));
        let fitted = fit(said, "known", &asked).unwrap();
        let changes = fitted.doc["changes"].as_array().unwrap();
        println!("{}", fitted.doc);
        let ms = |c: &serde_json::Value| c["ms"].as_f64().unwrap();
        let settle: Vec<_> = changes.iter().filter(|c| c.get("settle_after").is_some()).collect();
        assert!(settle.len() == 1 && settle[0]["settle_after"] == "write", "{changes:?}");
        assert!((ms(settle[0]) - settles).abs() < 0.25, "{changes:?}");
        let seeks: Vec<_> = changes.iter().filter(|c| c.get("seeks_of").is_some()).collect();
        let found = seeks.iter().find(|c| c["from_cylinders"] == 121 && c["seeks_of"] == "reads").unwrap();
        assert!((ms(found) - longer).abs() < 0.7, "{found}");
        assert!(seeks.iter().all(|c| c["from_cylinders"] == 121 || ms(c).abs() < 1.0), "{seeks:?}");
        let second = &fitted.doc["halves"][1];
        assert!(
            second["after_ms"].as_f64().unwrap() < 0.7 * second["before_ms"].as_f64().unwrap(),
            "{second}"
        );
        assert!(fitted.toml.contains("kind = \"fitted\""));
    }
    // What has no table of seeks cannot be fitted.
    let refused = fit("tiny", "known", &asked).unwrap_err().to_string();
    assert!(refused.contains("tables of seeks"), "{refused}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Answers of the first half are the drive's own, those of the second come 5 ms later: there is nothing to fit, and each half has
/// its demerit.
#[test]
fn halves_of_a_fit_are_told_in_their_order() {
    let file = std::env::temp_dir().join(format!("smrlab-halves-{}.toml", std::process::id()));
    std::fs::write(&file, KNOWN.replace("SEEKS", "[[1, 1000000], [401, 9000000]]").replace("SETTLE", "0"))
        .unwrap();
    let mut rng = smrlab_units::rng::Rng::new(1);
    let mut asked: Vec<Measured> = (0..400)
        .map(|_| {
            let (lba, gap) = (Lba(rng.below(39_999)), SimTime::from_us(20_000 + rng.below(10_000)));
            Measured { op: HostOp::Read, lba, blocks: Blocks(1), service: SimTime::ZERO, gap }
        })
        .collect();
    let answers = replay(&file.to_string_lossy(), "cmr", &asked).unwrap();
    for (i, (m, a)) in asked.iter_mut().zip(answers).enumerate() {
        m.service = a.simulated + SimTime::from_us(if i < 200 { 0 } else { 5000 });
    }
    let doc = fit(&file.to_string_lossy(), "known", &asked).unwrap().doc;
    let before = [0, 1].map(|i| doc["halves"][i]["before_ms"].as_f64().unwrap());
    assert!(doc["fitted"] == 0 && before[0] < 1.0 && (4.0..6.0).contains(&before[1]), "{doc}");
    std::fs::remove_file(&file).unwrap();
}

/// A trace and its answers as a pair of CSV files: the preset without rotation answers by formula.
#[test]
fn a_reference_model_is_a_pair_of_files() {
    let folder = std::env::temp_dir().join(format!("smrlab-pair-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let input = folder.join("w.input.csv");
    // Columns are known by their whole names, wherever they stand.
    std::fs::write(&input, "time_s,op_code,op,lba_end,lba,blocks\n0,R,W,9,0,3\n0,W,R,9,3,3\n").unwrap();
    std::fs::write(
        folder.join("w.latency.csv"),
        "i,op,rel_ms_old,rel_ms,rep_ms\n0,W,7,1.0128,0.0128\n1,R,7,2.0128,0.0128\n",
    )
    .unwrap();
    // 3 blocks of 512 B at 120 MB/s, both where the head is.
    let run =
        |reference| validate("cassuto2010-307gb", &input.to_string_lossy(), "cmr", reference).unwrap().0;
    assert_eq!(run(Reference::Repaired)["demerit_ms"], 0.0);
    // The write is 1 ms off, the read 2 ms.
    let released = run(Reference::Released);
    for (part, requests, off) in
        [(&released["writes"], 1, 1.0), (&released["reads"], 1, 2.0), (&released, 2, 1.5)]
    {
        let figure = |name: &str| part[name].as_f64().unwrap();
        let near = |name: &str, want: f64| assert!((figure(name) - want).abs() < 1e-9, "{name} in {part}");
        assert_eq!(part["requests"], requests);
        near("measured_mean_ms", off + 0.0128);
        near("simulated_mean_ms", 0.0128);
        near("per_request_mae_ms", off);
        near("mean_error_percent", -100.0 * off / (off + 0.0128));
        if requests == 1 {
            near("demerit_ms", off);
            near("demerit_percent", 100.0 * off / (off + 0.0128));
        }
    }
    std::fs::write(folder.join("w.latency.csv"), "i,op,rel_ms,rep_ms\n0,W,1,1\n").unwrap();
    let e = validate("cassuto2010-307gb", &input.to_string_lossy(), "cmr", Reference::Repaired).unwrap_err();
    assert!(e.to_string().contains("1 answers to the 2 requests"), "{e}");
    std::fs::write(&input, "R Hit 0 8\n").unwrap();
    assert_eq!(
        Reference::NAMES.map(|n| Reference::parse(n).unwrap()),
        [Reference::Repaired, Reference::Released]
    );
    let plain = folder.join("w.trace");
    std::fs::write(&plain, "W Miss 5 8 1500.5 20\n").unwrap();
    let [row] = read_measured(&plain.to_string_lossy(), Reference::Repaired).unwrap()[..] else {
        panic!("a row")
    };
    assert_eq!((row.op, row.lba, row.blocks), (HostOp::Write, Lba(5), Blocks(8)));
    assert_eq!((row.service, row.gap), (SimTime(1_500_500), SimTime(20_000)));
    std::fs::write(&plain, "R Hit 0 8 100 20\nR Hit nine 8 100 20\n").unwrap();
    let e = validate("cassuto2010-307gb", &plain.to_string_lossy(), "cmr", Reference::Repaired).unwrap_err();
    assert!(e.to_string().contains("line 2"), "{e}");
    std::fs::remove_dir_all(&folder).unwrap();
}
