//! Checks and generated files of this repository.
//!
//! `cargo xtask tidy` keeps functions and files small, the tree free of leftovers and of circles, the floors of the house and the purity of
//! its core, dependencies used and free, what pages name in being, and integers that mean different things apart; `cargo xtask docs` writes the reference
//! pages. `cargo xtask mutants` plants bugs that tests must catch.

mod circles;
mod dependencies;
mod floors;
mod integers;
mod mutants;
mod names;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask tidy | docs [--check] | mutants [--list] [--area A] [--bug NAME] [--every N] [--resume] [--draw FILE --check COMMAND]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let faults = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => {
            let root = root();
            let faults = [
                tidy::faults,
                dependencies::faults,
                floors::faults,
                circles::faults,
                integers::faults,
                names::faults,
                mutants::faults,
            ];
            faults.iter().flat_map(|faults| faults(&root)).collect()
        }
        ["mutants", ..] => mutants::run(&root(), &args[1..].iter().map(String::as_str).collect::<Vec<_>>()),
        ["docs", ..] => return docs(&args[1..]),
        _ => vec![USAGE.to_owned()],
    };
    for fault in &faults {
        eprintln!("{fault}");
    }
    ExitCode::from(u8::from(!faults.is_empty()))
}

/// Builds and runs what makes the reference pages, which needs the engine.
fn docs(args: &[String]) -> ExitCode {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "smrlab-docs", "--"]).args(args);
    match command.current_dir(root()).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("cargo run --package smrlab-docs: {e}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder: around the package that cargo runs, which may have been compiled when it lay elsewhere.
fn root() -> PathBuf {
    let compiled = || env!("CARGO_MANIFEST_DIR").to_owned();
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| compiled());
    Path::new(&package).ancestors().nth(2).expect("crates/xtask is two levels deep").to_owned()
}
