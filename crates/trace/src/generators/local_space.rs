//! Requests near each other in space.

use super::{Common, Drawn, Generator, Pattern, RANDOM_GAP};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "local-space",
    summary: "requests fall near a place that stays for a while, then jumps elsewhere",
    reference: "Localised in space, as Cassuto et al. (MSST 2010) ask of a workload; the form is ours.",
    params: &[
        Param::new("near", Kind::Size, "16MiB").doc("width of the neighbourhood"),
        Param::new("stay", Kind::Count(1, 1 << 40), "200").doc("mean requests before a jump"),
    ],
    defaults: &[("interarrival", RANDOM_GAP)],
    make: |v, common| {
        let near = v.size("near", smrlab_units::Blocks(common.span)).0;
        let near = near.max(common.align).min(common.span.max(1));
        Ok(Box::new(LocalSpace { near, jump: 1.0 / v.count("stay") as f64, from: None }))
    },
};

struct LocalSpace {
    /// Blocks of the neighbourhood.
    near: u64,
    /// Probability of a jump before a request.
    jump: f64,
    from: Option<u64>,
}

impl Pattern for LocalSpace {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let jumps = common.rng.chance(self.jump);
        let from = match self.from {
            Some(from) if !jumps => from,
            _ => common.place(0, common.span, self.near),
        };
        self.from = Some(from);
        let blocks = common.size();
        let lba = common.place(from, self.near, blocks);
        Some(common.at(lba, blocks))
    }
}
