//! Runs of requests that begin at hot or at random places: a stand-in for real sources.

use super::{Common, Drawn, Generator, Pattern};
use smrlab_units::HostOp;
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "runs",
    summary: "sequential runs, each all reads or all writes, that begin in a hot part of the span or anywhere",
    reference: "A stand-in, of our own, for the traces of a study of shingled disks in arrays: run length 1 + Exp(run), all-write with probability `write`.",
    params: &[
        Param::new("hot", Kind::Share(0.0, 1.0), "5%").doc("share of the span that is hot (at its start)"),
        Param::new("share", Kind::Share(0.0, 1.0), "80%").doc("share of runs that begin there"),
        Param::new("run", Kind::Real(0.0, 1e9), "512").doc("mean requests of a run, beyond the first"),
    ],
    defaults: &[("write", "30%")],
    make: |v, common| {
        let hot = (common.span as f64 * v.share("hot")) as u64;
        let hot = hot.clamp(common.align.min(common.span), common.span);
        let (share, run) = (v.share("share"), v.real("run"));
        Ok(Box::new(Runs { hot, share, run, left: 0, at: 0, op: HostOp::Read }))
    },
};

struct Runs {
    hot: u64,
    share: f64,
    run: f64,
    /// Requests left in the run.
    left: u64,
    at: u64,
    op: HostOp,
}

impl Pattern for Runs {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let blocks = common.size();
        if self.left == 0 || self.at + blocks > common.span {
            let width = if common.rng.chance(self.share) { self.hot } else { common.span };
            self.at = common.place(0, width, blocks);
            self.op = common.op();
            self.left = 1 + (common.rng.exponential() * self.run) as u64;
        }
        let drawn = common.does(self.op, self.at, blocks);
        self.left -= 1;
        self.at += blocks;
        Some(drawn)
    }
}
