//! Runs on a host-managed drive.

use smrlab_sim::{Control, RunResult, Spec, run};

fn done(text: &str) -> RunResult {
    let spec = Spec::from_toml(text).unwrap_or_else(|e| panic!("{text}\n{e}"));
    run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// Zones of 64 KiB, of which the first ones are conventional.
const DRIVE: &str = "drive = 'tiny'\nlayer = 'zoned,zone=16KiB,conventional=0%,max_open=4'\n";

#[test]
fn writers_that_keep_the_rules_are_never_refused() {
    let text =
        format!("{DRIVE}trace = 'synth:zoned,writers=4,zone=16KiB,size=uniform(4KiB;12KiB),requests=2000'");
    let r = done(&text).json;
    assert!(r.get("refusals").is_none(), "{}", r["refusals"]);
    let resets = r["cache"]["zone_resets"].as_u64().unwrap();
    assert!(resets > 50, "{resets} resets");
    assert_eq!(r["host"]["writes"].as_u64().unwrap() + resets, 2000);
    assert_eq!(r["media"]["blocks_written"], r["host"]["blocks_written"], "nothing is moved");
    assert_eq!(r["cache"]["zones_closed_for_others"], 0);
}

#[test]
fn an_ordinary_trace_is_refused_and_told_why() {
    let text = format!(
        "{DRIVE}wrap = 'capacity'\ntrace = 'synth:uniform,requests=500,size=4KiB,align=4KiB,write=70%'"
    );
    let r = done(&text).json;
    let refusals = &r["refusals"];
    let by_reason: u64 =
        refusals["by_reason"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    let count = refusals["count"].as_u64().unwrap();
    assert_eq!(by_reason, count);
    let writes = r["host"]["writes"].as_u64().unwrap();
    assert!(count > writes / 2 && count < writes, "{count} of {writes}");
    assert_eq!(r["media"]["writes"].as_u64().unwrap(), writes - count, "what is refused is not done");
    let first = &refusals["first"][0];
    assert_eq!((first["reason"].as_str(), first["op"].as_str()), (Some("not-at-pointer"), Some("write")));
}

/// A trace of the names and numbers of zones' commands, as blktrace has them: a reset names a block of the zone, or is for all.
#[test]
fn zone_commands_of_a_trace_are_carried_out() {
    let line = |rwbs: &str, rest: &str| {
        format!("  8,16   3        1     0.000000100   697  D  {rwbs} {rest} [fio]\n")
    };
    let all = [
        line("ZA", "0 + 8"),
        line("W", "8 + 8"),
        line("ZF", "0"),
        line("ZR", "0"),
        line("W", "0 + 8"),
        line("W", "32 + 8"),
        line("ZO", "64"),
        line("ZRA", ""),
        line("W", "0 + 8"),
        line("W", "32 + 8"),
        line("W", "40 + 8"),
        line("ZC", "32"),
    ]
    .concat();
    let path = std::env::temp_dir().join(format!("zone-commands-{}.txt", std::process::id()));
    std::fs::write(&path, all).unwrap();
    let r = done(&format!("{DRIVE}trace = '{}:blkparse'", path.display())).json;
    std::fs::remove_file(&path).unwrap();
    assert!(r.get("refusals").is_none(), "{}", r["refusals"]);
    assert_eq!(r["host"]["writes"], 6);
    let cache = |name: &str| r["cache"][name].as_u64().unwrap();
    // The finished zone; then of all zones the two that were written. The third was empty, and is open no more.
    assert_eq!(cache("zone_resets"), 3);
    assert_eq!((cache("open_zones"), cache("used_zones_closed")), (1, 1));
}
