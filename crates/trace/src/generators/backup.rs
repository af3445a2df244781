//! SYN of He & Du 2014: a backup that fills the drive.

use super::sequential::Sequential;
use super::{Common, Generator};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "backup",
    summary: "sequential writes of 8 blocks in the mean, 50 ± 10 ms apart, that fill the span once",
    reference: "SYN of He & Du, Novel Address Mappings for Shingled Write Disks (HotStorage 2014), evaluation. The paper gives the mean size only: sizes are geometric here; \
                size=4KiB makes them all alike.",
    params: &[Param::new("once", Kind::Switch, "on")
        .doc("on: the trace ends when the span is full; off: it goes on from its start")],
    defaults: &[
        ("requests", "18446744073709551615"),
        ("size", "exp(4KiB)"),
        ("write", "100%"),
        ("interarrival", "normal(50ms;10ms)"),
        ("align", "1blk"),
    ],
    make: |v, common: &Common| Ok(Box::new(Sequential::new(common, 1, v.on("once")))),
};
