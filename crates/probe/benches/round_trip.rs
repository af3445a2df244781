//! The round trip: drives extracted from outside, against what they are.
//!
//! `cargo bench -p smrlab-probe --bench round_trip` prints it as Markdown; `docs/probe.md` holds its last results. An argument
//! chooses the rows whose drive contains it; `-v` says what is wrong where something is.

#[path = "../tests/support/made.rs"]
mod made;
#[path = "../tests/support/truth.rs"]
mod truth;

use made::{ZONES, layouts, made};
use smrlab_disk::DriveModel;
use smrlab_disk::geometry::Layout;
use smrlab_probe::fit::from_extraction;
use smrlab_probe::geometry::Options;

/// Extractions of each row, with other noise each.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Every preset as it is shipped and with its cache switched over, a drive of each layout, drives with slipped and spare
/// sectors, and drives that were fitted to an extraction.
fn drives() -> Vec<(String, DriveModel)> {
    let mut out = Vec::new();
    let mut fitted = Vec::new();
    for name in truth::rotating() {
        let shipped = truth::model(name);
        let other = if shipped.spec().controller.is_some() { ",cache=off" } else { ",cache=on" };
        let text = format!("{name}{other}");
        if let Ok(e) = truth::seeded(&shipped, 0, Options::default(), 0) {
            let file = from_extraction(&e, name).map(|f| f.toml()).unwrap_or_default();
            fitted.extend(DriveModel::from_toml(&file).map(|m| (format!("fitted to {name}"), m)));
        }
        out.push((name.to_owned(), shipped));
        out.push((text.clone(), truth::model(&text)));
    }
    out.extend(layouts().into_iter().map(|m| (format!("layout {}", m.name()), m)));
    let spares = [[3000, 1200, 8, 10], [1777, 1100, 0, 5], [5011, 1000, 20, 0], [901, 900, 0, 7]];
    for (name, layout) in
        [("cylinder", Layout::Cylinder { alternate: false }), ("hybrid", Layout::Hybrid { width: 200 })]
    {
        out.push((format!("{name}, spare sectors"), made(name, 4, layout, &spares, 0)));
        out.push((format!("{name}, 60 defects"), made(name, 4, layout, &ZONES, 60)));
    }
    out.append(&mut fitted);
    out
}

/// The longest time on the drive in minutes, and how many came out right.
fn cell(name: &str, model: &DriveModel, noise: u64) -> String {
    let talk = std::env::args().any(|a| a == "-v");
    let seeds = if noise == 0 { 1..=1 } else { SEEDS };
    let (all, mut right, mut longest) = (seeds.clone().count(), 0, 0.0f64);
    let mut refused = String::new();
    for seed in seeds {
        match truth::seeded(model, noise, Options::default(), seed) {
            Err(e) => refused = e.to_string(),
            Ok(e) => {
                let wrong = truth::wrong(model, &e);
                right += usize::from(wrong.is_empty());
                longest = longest.max(e.quality.seconds / 60.0);
                if talk && !wrong.is_empty() {
                    eprintln!("{name}, {noise} us, seed {seed}: {}", wrong.join("; "));
                }
            }
        }
    }
    if talk && !refused.is_empty() {
        eprintln!("{name}, {noise} us: {refused}");
    }
    match right {
        0 if !refused.is_empty() => "refused".to_owned(),
        _ if right == all => format!("{longest:.1}"),
        _ => format!("{longest:.1}; {right} of {all} right"),
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    println!("| drive | minutes without noise | with 20 us | with 100 us |");
    println!("|---|---|---|---|");
    for (name, model) in drives().into_iter().filter(|d| d.0.contains(&wanted)) {
        let cells = [0, 20, 100].map(|noise| cell(&name, &model, noise));
        println!("| {name} | {} |", cells.join(" | "));
    }
}
