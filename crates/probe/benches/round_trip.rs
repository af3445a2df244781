//! The round trip: drives extracted from outside, against what they are.
//!
//! `cargo bench -p smrlab-probe --bench round_trip` prints it as Markdown; `-- --write` makes `docs/probe-round-trip.md` of it. An
//! argument chooses the rows whose drive contains it; `-v` says what is wrong where something is.

#[path = "../tests/it/support/made.rs"]
mod made;
#[path = "../tests/it/support/page.rs"]
mod page;
#[path = "../tests/it/support/truth.rs"]
mod truth;

use made::{ZONES, layouts, made};
use page::Page;
use smrlab_disk::DriveModel;
use smrlab_disk::geometry::Layout;
use smrlab_probe::fit::from_extraction;
use smrlab_probe::geometry::ExtractOptions;

/// Extractions of each row, with other noise each.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

/// Every preset as it is shipped and with its cache switched over, a drive of each layout, drives with slipped and spare
/// sectors, and drives that were fitted to an extraction.
fn drives() -> Vec<(String, DriveModel)> {
    let mut out = Vec::new();
    let mut fitted = Vec::new();
    for name in truth::rotating() {
        let shipped = truth::model(name);
        let other = if shipped.spec().controller.is_some() { ",cache=off" } else { ",cache=on" };
        let text = format!("{name}{other}");
        if let Ok(e) = truth::seeded(&shipped, 0, ExtractOptions::default(), 0) {
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

/// What is counted over all rows.
#[derive(Default)]
struct Score {
    right: u32,
    all: u32,
    /// Within the 20 minutes.
    short: u32,
    wrong: Vec<String>,
}

impl Score {
    /// The longest time on the drive in minutes, and how many came out right.
    fn cell(&mut self, name: &str, model: &DriveModel, noise: u64) -> String {
        let seeds = if noise == 0 { 1..=1 } else { SEEDS };
        let (all, mut right, mut refused, mut longest) = (seeds.clone().count(), 0, 0, 0.0f64);
        let mut wrong = Vec::new();
        for seed in seeds {
            match truth::seeded(model, noise, ExtractOptions::default(), seed) {
                Err(e) => {
                    refused += 1;
                    wrong.push(format!("{name}, {noise} us: refused: {e}"));
                }
                Ok(e) => {
                    let found = truth::wrong(model, &e);
                    right += usize::from(found.is_empty());
                    longest = longest.max(e.quality.seconds / 60.0);
                    if !found.is_empty() {
                        wrong.push(format!("{name}, {noise} us, seed {seed}: {}", found.join("; ")));
                    }
                }
            }
        }
        // What is refused whatever the noise is said once.
        wrong.dedup();
        if refused < all {
            self.right += right as u32;
            self.all += all as u32;
            self.short += u32::from(longest < 20.0) * all as u32;
            self.wrong.append(&mut wrong);
        } else {
            self.wrong.extend(wrong.into_iter().next());
            return "refused".to_owned();
        }
        let of = if right == all { String::new() } else { format!("; {right} of {all} right") };
        if longest < 20.0 { format!("{longest:.1}{of}") } else { format!("**{longest:.1}**{of}") }
    }
}

/// The other half of the way: drives fitted to extractions with writes, against the drives themselves.
fn fitted(page: &mut Page, wanted: &str) {
    page.line("\nDrives fitted to an extraction with `--destroy`, their caches off: the demerit of 4000 random reads and writes in per cent of the mean,");
    page.line("the distances at which seeks were measured, and minutes of the drive's time.\n");
    page.line("| drive | demerit, % | with 20 us | with 100 us | distances | minutes |");
    page.line("|---|---|---|---|---|---|");
    for name in truth::rotating().filter(|name| name.contains(wanted)) {
        let bare = truth::model(&truth::without_cache(name));
        let options = ExtractOptions { destroy: true, ..ExtractOptions::default() };
        let cells = [0, 20, 100].map(|noise| {
            let e = truth::seeded(&bare, noise, options, 1).map_err(|e| e.to_string())?;
            let file = from_extraction(&e, name).map_err(|e| e.to_string())?.toml();
            let again = DriveModel::from_toml(&file).map_err(|e| e.to_string())?;
            let distances = e.seek.map_or(0, |s| s.read.len() + s.write.len());
            Ok((truth::demerit(&bare, &again), distances, e.quality.seconds / 60.0))
        });
        let cell = |of: &Result<(f64, usize, f64), String>, i: usize| match of {
            Ok((demerit, distances, minutes)) => {
                [format!("{demerit:.2}"), distances.to_string(), format!("{minutes:.1}")][i].clone()
            }
            Err(why) => why.clone(),
        };
        let [a, b, c] = &cells;
        let list = |i| [a, b, c].map(|of| cell(of, i)).join(", ");
        let row = [cell(a, 0), cell(b, 0), cell(c, 0), list(1), list(2)];
        page.line(&format!("| {name} | {} |", row.join(" | ")));
    }
}

fn main() {
    let wanted = page::wanted();
    let mut page = Page::new("Drives extracted from outside, and what they are", "round_trip");
    page.line("Minutes of the drive's time, the longest of one extraction without noise and of ten with; bold: more than 20.\n");
    page.line("| drive | without noise | with 20 us | with 100 us |");
    page.line("|---|---|---|---|");
    let mut score = Score::default();
    for (name, model) in drives().into_iter().filter(|d| d.0.contains(&wanted)) {
        let cells = [0, 20, 100].map(|noise| score.cell(&name, &model, noise));
        page.line(&format!("| {name} | {} |", cells.join(" | ")));
    }
    let Score { right, all, short, wrong } = score;
    fitted(&mut page, &wanted);
    page.line(&format!(
        "\nRight: {right} of {all} extractions that were not refused in all of their row's noise; {short} within 20 minutes.\n\nCPU time: {:.0} s.\n",
        page::cpu()
    ));
    page.line("Refused or wrong:\n");
    wrong.iter().for_each(|w| page.line(&format!("- {w}")));
    page.finish("probe-round-trip.md");
}
