//! Checks and generated files of this repository.
//!
//! `cargo xtask tidy` keeps functions and files small, the tree free of leftovers and of circles, the floors of the house and the purity of
//! its core, the reference pages true, what pages name in being, and integers that mean different things apart;
//! `cargo xtask docs` writes those pages. `cargo xtask mutants` plants bugs that tests must catch.

mod circles;
mod docs;
mod floors;
mod integers;
mod mutants;
mod names;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | docs [--check] | mutants [--list] [--area A] [--bug NAME] [--every N] [--resume] [--draw FILE --check COMMAND]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let faults = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => {
            let root = root();
            let faults = [
                tidy::faults,
                floors::faults,
                circles::faults,
                integers::faults,
                docs::faults,
                names::faults,
                mutants::faults,
            ];
            faults.iter().flat_map(|faults| faults(&root)).collect()
        }
        ["mutants", ..] => mutants::run(&root(), &args[1..].iter().map(String::as_str).collect::<Vec<_>>()),
        ["docs"] => docs::write(&root()).err().into_iter().collect(),
        ["docs", "--check"] => docs::faults(&root()),
        _ => vec![USAGE.to_owned()],
    };
    for fault in &faults {
        eprintln!("{fault}");
    }
    ExitCode::from(u8::from(!faults.is_empty()))
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/xtask is two levels deep")
        .to_owned()
}
