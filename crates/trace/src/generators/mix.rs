//! Several generators at once.

use super::{Common, Drawn, Generator, Made, Pattern, RANDOM_GAP};
use smrlab_units::spec::{Kind, Param, Values};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "mix",
    summary: "each request is drawn from one of several generators, by their weights",
    reference: "The parts have their own parameters' defaults, and share the mix's common ones.",
    params: &[Param::new("of", Kind::Text, "sequential:30;zipf:40;uniform:30")
        .doc("NAME:WEIGHT, separated by ';' (any generator but mix and phases)")],
    defaults: &[("interarrival", RANDOM_GAP)],
    make,
};

fn make(v: &Values, common: &Common) -> Made {
    let mut parts = Vec::new();
    let mut total = 0.0;
    for part in v.text("of").unwrap_or_default().split(';') {
        let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
        let generator = Generator::find(name.trim())
            .filter(|g| g.name != GENERATOR.name && g.name != "phases")
            .ok_or_else(|| v.bad("of", format!("'{name}' is not a generator that can be mixed")))?;
        let weight: f64 = weight
            .trim()
            .parse()
            .ok()
            .filter(|w| (1e-6..1e9).contains(w))
            .ok_or_else(|| v.bad("of", format!("'{weight}' is not a weight above 0")))?;
        total += weight;
        let values = Values::check(generator.name, &generator.parameters(), &[])?;
        parts.push((total, (generator.make)(&values, common)?));
    }
    Ok(Box::new(Mix { parts, total }))
}

struct Mix {
    /// Each with the sum of the weights up to and with its own.
    parts: Vec<(f64, Box<dyn Pattern>)>,
    total: f64,
}

impl Pattern for Mix {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let x = common.rng.unit() * self.total;
        let last = self.parts.len() - 1;
        let i = self.parts.iter().position(|(sum, _)| x < *sum).unwrap_or(last);
        self.parts[i].1.next(common)
    }
}
