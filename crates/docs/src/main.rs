//! Writes the reference pages from the registries (`cargo xtask docs`), or checks that they are what the registries say
//! (`--check`). Apart from the other checks, which need no engine and so are there at once.

mod pages;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let args: Vec<String> = std::env::args().skip(1).collect();
    let faults = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => pages::write(&root).err().into_iter().collect(),
        ["--check"] => pages::faults(&root),
        _ => vec!["usage: cargo xtask docs [--check]".to_owned()],
    };
    for fault in &faults {
        eprintln!("{fault}");
    }
    ExitCode::from(u8::from(!faults.is_empty()))
}
