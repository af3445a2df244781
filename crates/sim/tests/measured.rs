//! The seven measured drives of the DiskSim distribution: imported, replayed, and held against what the real drives took.
//! Nothing is fitted to a drive; what DiskSim itself reaches is the bound.

use smrlab_sim::validate::{Reference, validate};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Drive, and the demerit of DiskSim 4.0 in microseconds.
const DRIVES: [(&str, u32); 7] = [
    ("hp_c2247a", 90),
    ("hp_c2490a", 254),
    ("dec_rz26", 340),
    ("atlas10k", 268),
    ("atlas_III", 378),
    ("cheetah4LP", 318),
    ("ibm18es", 135),
];

/// Past the harness, which keeps what a passing test prints to itself.
fn skipped(why: &str) {
    let this = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", this.name().unwrap_or_default());
}

fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("SMRLAB_SHARED").map_or(beside, PathBuf::from).join("validation/disksim");
    let there = folder.is_dir();
    if !there {
        skipped(&format!("no measured drives in {} (set SMRLAB_SHARED)", folder.display()));
    }
    there.then_some(folder)
}

#[test]
fn all_seven_drives_are_nearer_than_disksim() {
    let Some(shared) = shared() else { return };
    let folder = std::env::temp_dir().join(format!("smrlab-measured-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, bound_us) in DRIVES {
        let bound = f64::from(bound_us) / 1e3;
        let parv = shared.join(format!("models/{name}.parv"));
        let imported = smrlab_sim::import::disksim(&parv.to_string_lossy()).unwrap();
        let toml = folder.join(format!("{name}.toml"));
        std::fs::write(&toml, imported.toml).unwrap();
        let trace = shared.join(format!("traces/{name}.trace.zst"));
        let (doc, rows) =
            validate(&toml.to_string_lossy(), &trace.to_string_lossy(), "cmr", Reference::Repaired).unwrap();
        let demerit = doc["demerit_ms"].as_f64().unwrap();
        println!("{name}: {demerit:.3} ms, DiskSim {bound}");
        assert!(demerit < bound, "{name}: {demerit}, DiskSim {bound}");
        assert!(doc["mean_error_percent"].as_f64().unwrap().abs() < 4.0, "{name}: {doc}");
        assert_eq!(doc["requests"], rows.len());
        let parts = doc["reads"]["requests"].as_u64().unwrap() + doc["writes"]["requests"].as_u64().unwrap();
        assert_eq!(parts, rows.len() as u64);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A trace and its answers as a pair of CSV files: the preset without rotation answers by formula.
#[test]
fn a_reference_model_is_a_pair_of_files() {
    let folder = std::env::temp_dir().join(format!("smrlab-pair-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let input = folder.join("w.input.csv");
    std::fs::write(&input, "time_s,op,lba,blocks\n0,W,0,3\n0,R,3,3\n").unwrap();
    std::fs::write(
        folder.join("w.latency.csv"),
        "i,op,rel_ms,rep_ms\n0,W,1.0128,0.0128\n1,R,1.0128,0.0128\n",
    )
    .unwrap();
    // 3 blocks of 512 B at 120 MB/s, both where the head is.
    let run =
        |reference| validate("cassuto2010-307gb", &input.to_string_lossy(), "cmr", reference).unwrap().0;
    assert_eq!(run(Reference::Repaired)["demerit_ms"], 0.0);
    assert!((run(Reference::Released)["demerit_ms"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    std::fs::write(folder.join("w.latency.csv"), "i,op,rel_ms,rep_ms\n0,W,1,1\n").unwrap();
    let e = validate("cassuto2010-307gb", &input.to_string_lossy(), "cmr", Reference::Repaired).unwrap_err();
    assert!(e.to_string().contains("1 answers to the 2 requests"), "{e}");
    std::fs::write(&input, "R Hit 0 8\n").unwrap();
    let plain = folder.join("w.trace");
    std::fs::write(&plain, "R Hit 0 8 100 20\nR Hit nine 8 100 20\n").unwrap();
    let e = validate("cassuto2010-307gb", &plain.to_string_lossy(), "cmr", Reference::Repaired).unwrap_err();
    assert!(e.to_string().contains("line 2"), "{e}");
    std::fs::remove_dir_all(&folder).unwrap();
}
