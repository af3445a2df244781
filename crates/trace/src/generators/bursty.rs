//! Requests in bursts with pauses between.

use super::{Common, Drawn, Gaps, Generator, Pattern};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "bursty",
    summary: "bursts of requests, close to each other within a burst and with a pause before the next",
    reference: "On-off model; the number of requests in a burst is geometric. Addresses are uniform.",
    params: &[
        Param::new("burst", Kind::Count(1, 1 << 40), "100").doc("mean requests in a burst"),
        Param::new("pause", Kind::Text, "exp(5s)").doc("time between bursts: 5s, exp(5s) or normal(5s;1s)"),
    ],
    defaults: &[("interarrival", "exp(1ms)")],
    make: |v, _| {
        let pause = Gaps::parse(v.text("pause").unwrap_or_default())
            .ok_or_else(|| v.bad("pause", "write 5s, exp(5s) or normal(5s;1s)"))?;
        Ok(Box::new(Bursty { end: 1.0 / v.count("burst") as f64, pause }))
    },
};

struct Bursty {
    /// Probability that a burst ends after a request.
    end: f64,
    pause: Gaps,
}

impl Pattern for Bursty {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let blocks = common.size();
        let lba = common.place(0, common.span, blocks);
        let mut drawn = common.at(lba, blocks);
        if common.rng.chance(self.end) {
            drawn.gap = self.pause.draw(&mut common.rng);
        }
        Some(drawn)
    }
}
