//! `cargo bench -p smrlab-sim --bench verify [-- WORD...]`: what following every block costs a run (`verify_media`), on one drive and on
//! arrays: requests per second of user CPU time, whole process without start-up. Requests of 16 KiB, 60 % writes, all over the drives.

#[expect(dead_code, reason = "this bench keeps no traces")]
mod support;

use smrlab_sim::{Control, Spec, run};
use support::{Wanted, measure};

/// As in the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REQUESTS: u64 = 400_000;

/// What is run, and how many requests a second it should follow.
const CONTESTANTS: [(&str, f64, &str); 5] = [
    ("cmr", 1e6, "layer = 'cmr'"),
    ("s-block", 1e6, "layer = 's-block'"),
    ("mirror cmr", 0.5e6, "layer = 'cmr'\narray = 'mirror'"),
    ("raid5 cmr", 0.4e6, "layer = 'cmr'\narray = 'raid5'"),
    ("raid5 s-block", 0.3e6, "layer = 's-block'\narray = 'raid5'"),
];

fn simulate(fields: &str) -> u64 {
    let trace = format!("synth:uniform,requests={REQUESTS},size=16KiB,write=60%");
    let text = format!("drive = 'seagate-st5000as0011'\ntrace = '{trace}'\n{fields}");
    let spec = Spec::from_toml(&text).expect("valid fields");
    run(&spec, &Control::new(), None).unwrap_or_else(|e| panic!("{fields}: {e}"));
    REQUESTS
}

fn main() {
    let wanted = Wanted::from_args();
    let rounds = wanted.rounds.unwrap_or(3);
    println!("{:<32}{:>13} {:>12} {:>12}", "400 000 requests", "user CPU", "a request", "peak");
    for (name, target, fields) in CONTESTANTS {
        if wanted.has(name) {
            measure(&format!("{name}, 16 KiB"), target, rounds, || simulate(fields));
            let followed = format!("{fields}\nverify_media = true");
            measure(&format!("{name}, 16 KiB, verified"), target, rounds, || simulate(&followed));
        }
    }
}
