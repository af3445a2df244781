//! A hot part and a cold part.

use super::{Common, Drawn, Generator, Pattern, RANDOM_GAP};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "hotcold",
    summary: "a share of the requests goes to a small hot part of the span, the rest to the cold remainder",
    reference: "The usual two-class model of skew (90/10 by default).",
    params: &[
        Param::new("hot", Kind::Share(0.0, 1.0), "10%")
            .doc("share of the span that is hot; it lies at the span's start"),
        Param::new("share", Kind::Share(0.0, 1.0), "90%").doc("share of requests that go there"),
    ],
    defaults: &[("interarrival", RANDOM_GAP)],
    make: |v, common| {
        let hot = (common.span as f64 * v.share("hot")) as u64 / common.align * common.align;
        if hot == 0 || hot >= common.span {
            return Err(v.bad("hot", "hot and cold part must each hold at least one aligned request"));
        }
        Ok(Box::new(HotCold { hot, share: v.share("share") }))
    },
};

struct HotCold {
    /// Blocks of the hot part.
    hot: u64,
    share: f64,
}

impl Pattern for HotCold {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let blocks = common.size();
        let (from, width) =
            if common.rng.chance(self.share) { (0, self.hot) } else { (self.hot, common.span - self.hot) };
        let lba = common.place(from, width, blocks);
        Some(common.at(lba, blocks))
    }
}
