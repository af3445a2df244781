//! Requests anywhere, all addresses alike.

use super::{Common, Drawn, Generator, Pattern};

/// The registry entry.
pub const GENERATOR: Generator = Generator {
    name: "uniform",
    summary: "every address of the span alike, independent of the one before",
    reference: "The usual random workload; the tables of sheets 001 and 003 assume it.",
    params: &[],
    defaults: &[],
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
