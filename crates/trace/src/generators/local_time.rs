//! Requests to what was used a short while ago.

use super::{Common, Drawn, Generator, Pattern, RANDOM_GAP};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "local-time",
    summary: "a share of the requests repeats a recent address, the later the likelier; the rest is uniform",
    reference: "Localised in time, as Cassuto et al. (MSST 2010) ask of a workload; the form is ours.",
    params: &[
        Param::new("reuse", Kind::Share(0.0, 1.0), "80%").doc("share of requests that repeat an address"),
        Param::new("memory", Kind::Count(1, 1 << 24), "1000").doc(
            "how many requests back an address is remembered; the distance is the smaller of two \
             uniform ones",
        ),
    ],
    defaults: &[("interarrival", RANDOM_GAP)],
    make: |v, _| {
        let memory = v.count("memory") as usize;
        Ok(Box::new(LocalTime { reuse: v.share("reuse"), recent: Vec::new(), memory, next: 0 }))
    },
};

struct LocalTime {
    reuse: f64,
    /// The last addresses and lengths, a ring.
    recent: Vec<(u64, u64)>,
    memory: usize,
    /// Where the ring goes on.
    next: usize,
}

impl Pattern for LocalTime {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let n = self.recent.len();
        let (lba, blocks) = if n > 0 && common.rng.chance(self.reuse) {
            let back = common.rng.below(n as u64).min(common.rng.below(n as u64)) as usize;
            self.recent[(self.next + n - 1 - back) % n]
        } else {
            let blocks = common.size();
            (common.place(0, common.span, blocks), blocks)
        };
        if n < self.memory {
            self.recent.push((lba, blocks));
            self.next = 0;
        } else {
            self.recent[self.next] = (lba, blocks);
            self.next = (self.next + 1) % n;
        }
        Some(common.at(lba, blocks))
    }
}
