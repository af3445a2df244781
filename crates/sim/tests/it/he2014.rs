//! The claims of He & Du 2014, sections 4 and 5: the static maps on synthetic input.

use serde_json::Value;
use smrlab_sim::{Control, Spec, run};

const CAPACITY: u64 = 800_000;
const NEW: [&str; 3] = ["static-R(4123)", "static-124R(3)", "static-14R(23)"];

fn result(layer: &str, trace: &str, more: &str) -> Value {
    let text =
        format!("drive = 'he2014-example'\nmechanics = 'full'\nlayer = '{layer}'\ntrace = '{trace}'\n{more}");
    run(&Spec::from_toml(&text).unwrap(), &Control::new(), None)
        .unwrap_or_else(|e| panic!("{text}\n{e}"))
        .json
}

/// Uniform requests over the used part of the space, light load, everything written before.
fn uniform(layer: &str, used: f64, size: &str, writes: u32, requests: u32) -> Value {
    let span = (CAPACITY as f64 * used) as u64;
    let trace = format!(
        "synth:uniform,requests={requests},size={size},write={writes}%,span={span}blk,interarrival=exp(200ms)"
    );
    let prefill = if layer == "cmr" { String::new() } else { format!("prefill = '{}%'", used * 100.0) };
    result(layer, &trace, &prefill)
}

fn number(v: &Value, path: &str) -> f64 {
    v.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

/// Of 4 KiB updates, each extent of a track counted as one.
fn war(layer: &str, used: f64) -> f64 {
    let r = uniform(layer, used, "4KiB", 100, 40_000);
    assert_eq!(r["host"]["updates"], r["host"]["writes"], "everything was written before");
    number(&r, "/war/per_update")
}

fn near(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "{what}: {got}, expected {want} +- {tolerance}");
}

#[test]
fn b2_to_b7_amplification_by_usage() {
    for used in [0.25, 0.5, 0.75, 1.0] {
        near("B2 1234", war("static-1234", used), 4.0, 0.05);
    }
    for used in [0.25, 0.5, 0.75] {
        near("B3 124R(3)", war("static-124R(3)", used), 5.0 / 3.0, 0.03);
    }
    for layer in ["static-R(4123)", "static-14R(23)"] {
        for used in [0.25, 0.5] {
            assert_eq!(war(layer, used), 1.0, "B4 {layer} at {used}");
        }
        near("B5", war(layer, 0.75), 5.0 / 3.0, 0.03);
        near("B7 62.5 %", war(layer, 0.625), 1.4, 0.03);
        near("B7 93.75 %", war(layer, 0.9375), 53.0 / 15.0, 0.05);
    }
    for layer in NEW {
        near("B6", war(layer, 1.0), 4.0, 0.05);
        near("B7 87.5 %", war(layer, 0.875), 3.0, 0.05);
    }
}

/// Mean responses at light load by layer, for one usage and write share.
fn responses(used: f64, writes: u32) -> [f64; 5] {
    ["static-1234", "static-R(4123)", "static-124R(3)", "static-14R(23)", "cmr"]
        .map(|layer| number(&uniform(layer, used, "4KiB", writes, 6000), "/response_ms/mean"))
}

#[test]
fn b9_to_b12_responses() {
    for used in [0.25, 0.5, 0.75] {
        for (writes, ratio) in [(70, 1.5), (17, 1.15)] {
            let [old, new @ .., hdd] = responses(used, writes);
            for (name, t) in NEW.iter().zip(new) {
                assert!(old / t >= ratio, "B9 {name} at {used}, {writes} %: {old} / {t}");
            }
            let limit = if used <= 0.5 { 1.4 } else { 1.8 };
            for t in [new[0], new[2]] {
                assert!(t / hdd <= limit, "B11 at {used}, {writes} %: {t} / {hdd}");
            }
            if used <= 0.5 {
                let slack = if writes >= 50 { 1.0 } else { 1.15 };
                assert!(
                    new[0] <= new[1] * slack && new[2] <= new[1] * slack,
                    "B10 at {used}, {writes} %: {new:?}"
                );
            }
        }
    }
    let (mostly, full) = (responses(0.75, 70), responses(1.0, 70));
    for i in 1..4 {
        assert!(full[i] / mostly[i] >= 1.4, "B12: {} after {}", full[i], mostly[i]);
    }
}

#[test]
fn b8_sequential_backup() {
    // 4 KiB writes that follow each other from LBA 0: 75 % and 100 % of the space.
    for (requests, new) in [(75_000, 1.0), (100_000, 1.5)] {
        let trace = format!(
            "synth:sequential,requests={requests},size=4KiB,write=100%,interarrival=normal(50ms;10ms)"
        );
        let old = result("static-1234", &trace, "");
        assert_eq!(number(&old, "/war/per_write"), 1.0, "B8 1234");
        assert_eq!(old["host"]["updates"], 0);
        for layer in NEW {
            near(layer, number(&result(layer, &trace, ""), "/war/per_write"), new, 0.005);
        }
    }
}

#[test]
fn space_gain_and_efficiency_are_those_of_the_paper() {
    let r = uniform("static-1234", 0.25, "4KiB", 100, 10);
    assert_eq!((number(&r, "/space/gain"), number(&r, "/space/efficiency")), (1.6, 0.8));
    assert_eq!(r["space"]["host_blocks"], CAPACITY);
}
