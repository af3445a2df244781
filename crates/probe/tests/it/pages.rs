//! The pages that the benches make, and the page that tells of them.

#[path = "support/page.rs"]
#[allow(dead_code, reason = "benches use the rest")]
mod page;

const PAGES: [&str; 2] = ["probe-truth.md", "probe-round-trip.md"];

fn read(name: &str) -> String {
    std::fs::read_to_string(page::path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn the_sums_of_the_last_run_are_quoted() {
    let told = read("probe.md");
    for name in PAGES {
        let made = read(name);
        let sum = made.lines().find(|l| l.starts_with("Right:")).unwrap();
        assert!(told.contains(sum), "docs/probe.md does not say what docs/{name} does: {sum}");
        assert!(told.contains(name), "docs/probe.md does not lead to {name}");
    }
}

#[test]
fn what_is_wrong_is_explained() {
    let told = read("probe.md");
    let (truth, trip) = (read(PAGES[0]), read(PAGES[1]));
    let truth = truth.lines().filter(|l| l.contains("**no**")).filter_map(|l| l.split('|').nth(2));
    let trip = trip
        .lines()
        .filter(|l| l.contains("right |") || l.contains("| **"))
        .filter_map(|l| l.split('|').nth(1));
    for row in truth.chain(trip) {
        let name = row.trim().split(',').next().unwrap_or_default();
        assert!(told.contains(name), "docs/probe.md does not tell why {row} is not right");
    }
}
