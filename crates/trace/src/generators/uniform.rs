//! Requests anywhere, all addresses alike.

use super::{Common, Drawn, Generator, Pattern, RANDOM_GAP};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "uniform",
    summary: "every address of the span alike, independent of the one before",
    reference: "The usual random workload: Cassuto et al. (MSST 2010) and He & Du (HotStorage 2014) assume it in their tables.",
    params: &[],
    defaults: &[("interarrival", RANDOM_GAP)],
    make: |_, _| Ok(Box::new(Uniform)),
};

/// Every address alike.
pub(super) struct Uniform;

impl Pattern for Uniform {
    #[inline]
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let blocks = common.size();
        let lba = common.place(0, common.span, blocks);
        Some(common.at(lba, blocks))
    }
}
